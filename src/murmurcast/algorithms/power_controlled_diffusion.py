"""Algorithm 1's multicast without its bias: exact diffusion on the plan's power-controlled, row-stochastic weights.

    psi_i,t = x_i - gamma (g_i(x_i) + nu_i e_i,t)/(K pi_i),   phi_i = psi_i,t + x_i - psi_i,t-1
    sent_i  = sqrt(alpha_i p_i) phi_i,   x_i <- (phi_i + sum_j a_ij phi_j)/2

One multicast, as Algorithm 1, and the same certificate; but what it learns does not depend on how unequally the data is
shared out. The derivation is in docs/exact-diffusion.md. Weights: the row-stochastic A of the plan, pi its left Perron
vector; the plan says whether they pass the stability check. Noise: one draw per node and epoch, inside the gradient.
Channel uses: 1 per epoch.
"""

from murmurcast.algorithms import private_exact_diffusion as private
from murmurcast.algorithms.base import Algorithm, Publish, Settings, proved
from murmurcast.algorithms.method import Method
from murmurcast.planning.plan import Plan


def power_controlled_diffusion(plan: Plan, *, step_factor: float = 0.0, publish: Publish = "last") -> Algorithm:
    """Exact diffusion on the plan's weights, with the least noise that meets the budget.

    Args:
        plan: Network, power split, schedule and budget.
        step_factor: Of the steps; 0 takes the number of nodes, which makes them as long as Algorithm 1's.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t <= T of (S_j / nu_j)^2. Range: gradients clipped, taken at the public x.
    """
    factor = float(step_factor) or float(plan.network.nodes)
    algorithm = private.diffusing_with_noise(plan, "power-controlled-diffusion", "row", "air", factor, publish)
    settings: Settings = {"step_factor": factor, "publish": publish}
    return proved(algorithm._replace(settings=settings))


METHOD = Method(
    name="power-controlled-diffusion",
    make=power_controlled_diffusion,
    summary="Algorithm 1's multicast without its bias: exact diffusion on the plan's weights",
    account=private.account,
    promises="against everybody",
    formula=private.METHOD.formula,
    reference="our own; see docs/exact-diffusion.md",
    needs=private.METHOD.needs,
    projects=False,
    counts_coins=True,
    noise_sent=private.noise_sent,
    side_vector="z",
    averages=True,
)
