"""Row-stochastic gradient descent under Laplace noise, the private method that Algorithm 1 is closest to.

    V_i = x_i + Laplace(b_i,t),   m_i = sum_j a_ij V_j,   x_i <- Proj( m_i - gamma_t g_i/z_ii,t )

Weights: row-stochastic. Noise: one draw per node, in its own term too, with the scale b_i,t = q_i std_t. Channel uses:
one message per epoch.

The literature calibrates by the L1 norm, which pays sqrt(m) for m parameters, and adds up epsilons over epochs. That is
kept as calibration = "l1". Laplace noise needs neither: see `murmurcast.privacy.laplace`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms import gossip
from murmurcast.algorithms.base import Algorithm, Draw, Publish, Round, Settings, proved, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, mixer
from murmurcast.algorithms.power_controlled import GradientAt, require_gradient_at
from murmurcast.algorithms.row_stochastic import Receiving, divided, step_at_mixed, step_at_own
from murmurcast.algorithms.tables import row_of
from murmurcast.errors import Error
from murmurcast.network.weights import z_diagonal
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import LAPLACE, Releases

Calibration = Literal["certified", "l1"]
# |Laplace noise| of scale 1 is larger in distribution than |Gaussian noise| of this standard deviation: their densities
# agree at 0, and everywhere else 1 - e^-x <= erf(x sqrt(pi)/2).
_STD_OF_SCALE_1 = float(np.sqrt(2 / np.pi))


def row_stochastic_laplace(
    setup: Setup,
    *,
    gradient_at: GradientAt = "mixed",
    calibration: Calibration = "certified",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Row-stochastic gradient descent under Laplace noise.

    Args:
        setup: Network, schedule and budget; of a plan also the power split.
        gradient_at: "mixed", the public mixed point, which unit record needs; or "own", the literature's.
        calibration: "certified": the least noise whose certificate meets the budget. "l1": as the literature does, by
            the L1 norm and adding up epsilons, which for models of any size is far more noise and costs less than was
            asked for; never less noise than the budget needs.
        access: How neighbours are heard.
        step_factor: Of the steps.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        Unit: the budget's, one record (or node) over the whole run; the literature hides one epoch's. Adversary:
        everybody else together. Formula: mu = sqrt(pi/2) sqrt(sum over t < T of (S_j gamma_t / (z_jj,t b_j,t+1))^2), or
        concentrated DP with half that sum; the smaller epsilon holds. Range: gradients clipped.
    """
    require_gradient_at(gradient_at)
    _check.one_of(("certified", "l1"), calibration=calibration)
    if setup.budget.unit == "record" and gradient_at == "own":
        raise Error(
            "unit record is certified only for gradients at the public mixed point",
            hint='set gradient_at = "mixed", or unit = "node"',
        )
    by, steps = mixer(setup, "row", access), gossip.steps_of(setup, step_factor)
    receiving = divided(setup, by, steps, publish)
    push = steps[:, None] / row_of(receiving.z, np.arange(1, len(steps) + 1))
    unit = gossip.gossip_releases(setup, push, np.ones(setup.network.nodes), LAPLACE)
    least = gossip.noise_for(setup, "row-stochastic-laplace", unit)
    noise = least if calibration == "certified" or _is_given(setup) else np.maximum(least, _by_l1(setup, push))
    step = step_at_mixed if gradient_at == "mixed" else step_at_own
    draws = {"noise": Draw(law="laplace")}
    only = Round("model", by.channel, draws, gossip.sending(by, setup, noise), receiving, gossip.say, step)
    settings: Settings = {"gradient_at": gradient_at, "calibration": calibration, "access": access}
    releases = (gossip.gossip_releases(setup, push, noise, LAPLACE),)
    return proved(
        Algorithm(
            "row-stochastic-laplace",
            setup,
            (only,),
            settings | {"step_factor": float(step_factor), "publish": publish},
            start,
            releases,
        )
    )


def _is_given(setup: Setup) -> bool:
    """Whether the noise is a number of the schedule, which no calibration changes."""
    return not (setup.schedule.noise_to_step is None or isinstance(setup.schedule.noise_to_step, str))


def _by_l1(setup: Setup, push: FloatArray) -> FloatArray:
    """[nodes] q: every epoch is pure DP with an equal share of epsilon, by sqrt(m) times the L2 sensitivity."""
    dim, budget = setup.problem.dim, setup.budget
    if dim is None:
        raise Error("calibration by the L1 norm needs the number of parameters", hint="set problem.dim")
    ratio = gossip.gossip_releases(setup, push, np.ones(push.shape[1]), LAPLACE).ratio
    exposed = setup.schedule.epochs - 1
    return np.asarray(np.sqrt(dim) * ratio.max(axis=0) * exposed / budget.epsilon)


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """A Laplace mechanism in every epoch, given all that was sent before."""
    ledger.require_rounds(model="noise: laplace of a node")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in gossip.Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    where = ledger.text("gradient_at", ("mixed", "own"))
    if ledger.text("unit") == "record" and where != "mixed":
        ledger.refuse(f'has unit record and gradient_at "{where}": that carries no certificate, "mixed" is needed')
    weights = accounts.require_weights(ledger, "model", "rows")
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")
    accounts.require_divisor(ledger, "model_receiving_z", z_diagonal(weights, ledger.epochs, "recursive"))
    z = row_of(accounts.above_zero(ledger, "model_receiving_z"), np.arange(1, ledger.epochs + 1))
    push = ledger.per_epoch("model_receiving_step")[:, None] / z
    return (gossip.exposed_releases(accounts.sensitivity(ledger), push, gossip.said_std(ledger), LAPLACE),)


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Of Gaussian noise whose energy is smaller in distribution: that is what energies are compared with."""
    return np.asarray(_STD_OF_SCALE_1 * gossip.noise_sent(ledger, epochs))


METHOD = Method(
    name="row-stochastic-laplace",
    make=row_stochastic_laplace,
    summary="row-stochastic gradient descent under Laplace noise, for one-way links too",
    account=account,
    promises="against everybody",
    formula="mu_j = sqrt(pi/2) sqrt(sum over t < T of (S_j gamma_t / (z_jj,t b_j,t+1))^2)",
    reference="reference [9013030] of the paper; its recursion is inferred from the paper's eq. (2) and proof, not "
    "read in the source; [10552083] is of the same family, not identified",
    noise_sent=noise_sent,
    side_vector="z",
)
