"""PED2FL: multicast with one common compensation factor, for networks whose gains depend on the sender alone.

    c       = min over all links of h_j sqrt(p_j)                     h_ji = h_j for every receiver i
    alpha_j = (c / h_j)^2 / p_j                                       every sender arrives everywhere with amplitude c
    sent_j  = sqrt(alpha_j p_j) x_j + sqrt((1 - alpha_j) p_j) eta_j   eta_j ~ N(0, sigma_j,t^2), fresh each epoch
    m_i     = heard_i / (c R) + (1 - d_i/R) x_i
    x_i    <- Proj( m_i - step_factor gamma_t g_i )

Weights: 1/R for every neighbour, 1 - d_i/R for itself: doubly stochastic.
Noise: one draw per node; the weakest sender has alpha = 1 and sends without any.
Channel uses: 1 per epoch.
"""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import NOISE, Algorithm, send_model_with_noise
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.power_controlled import GradientAt
from murmurcast.algorithms.tables import same_always
from murmurcast.channels.air import Air
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan


def ped2fl(plan: Plan, *, gradient_at: GradientAt = "mixed", step_factor: float = 1.0) -> Algorithm:
    """PED2FL: as `mped2fl`, but one signal serves all neighbours.

    Guarantees:
        None: the weakest sender sends no noise.
    """
    network = plan.network
    amplitude = _gain_of_senders(network) * np.sqrt(network.power)
    weakest = amplitude.min()
    alpha = np.minimum((weakest / amplitude) ** 2, 1.0)
    per_link = mped2fl(plan, gradient_at=gradient_at, step_factor=step_factor)
    (slots,) = per_link.rounds
    common = slots._replace(
        channel=Air(network.gains),
        draws=NOISE,
        sending=slots.sending._replace(
            amplitude=same_always(np.sqrt(alpha * network.power)),
            noise=same_always(np.sqrt((1 - alpha) * network.power) * plan.noise_to_step),
        ),
        receiving=slots.receiving._replace(
            heard=same_always(np.full(network.nodes, 1 / (weakest * plan.mixing.normaliser)))
        ),
        send=send_model_with_noise,
    )
    return per_link._replace(name="ped2fl", rounds=(common,))


def _gain_of_senders(network: Network) -> FloatArray:
    """[nodes] h_j, which must be the same for all receivers of j."""
    gains = network.gains
    largest = np.maximum.reduceat(gains.data, gains.indptr[:-1])
    smallest = np.minimum.reduceat(gains.data, gains.indptr[:-1])
    if not np.allclose(largest, smallest, rtol=1e-9, atol=0):
        node = int(np.argmax(largest / smallest))
        raise Error(
            f"ped2fl needs gains that depend on the sender alone; node {node} is heard with {smallest[node]:g} "
            f"and with {largest[node]:g}",
            hint="use mped2fl, made for unequal gains",
        )
    return np.asarray(largest)


METHOD = Method(
    name="ped2fl",
    make=ped2fl,
    summary="multicast with one common compensation factor",
    account="the weakest sender adds no noise",
    reference="reference [10025677] of the paper; see docs/train.md",
    needs="two-way links, gains that depend on the sender alone",
)
