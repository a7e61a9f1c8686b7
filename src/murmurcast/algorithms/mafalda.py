"""Mafalda: private decentralised gradient descent with noise that is correlated in time.

    n_i,t = q_i std_t w_i,t with w_i = C^-1 e_i
    V_i = x_i + n_i,   m_i = sum_j w_ij V_j,   x_i <- Proj( m_i - gamma_t g_i(m_i) )

C is lower triangular and the same along diagonals, C[t, s] = binomial(2k, k)/4^k for k = t - s < bandwidth, so that
part of one epoch's noise is taken back in the next. Weights: doubly stochastic. Noise: one draw per node, in its own
term too; a node remembers what it added in the last epochs. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms import gossip
from murmurcast.algorithms.base import NOISE, Algorithm, Init, Local, Model, Publish, Round, Send, Settings, proved
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Doubly, mix, mixer, radiate, spoken
from murmurcast.algorithms.tables import Leaf
from murmurcast.errors import Error
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import GAUSSIAN, Releases

if TYPE_CHECKING:
    import jax

_MAX_BANDWIDTH = 64


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x.
        published: The newest mixed point, or an average of them.
        earlier: [bandwidth - 1, ...] w of the last epochs, the latest first; private.
    """

    own: Model
    published: Model
    earlier: Model


class Receiving(NamedTuple):
    """Factors of what is heard and sent; the step; the newest point's weight; what w is found by again."""

    heard: Leaf
    kept: Leaf
    step: Leaf
    newest: Leaf
    amplitude: Leaf
    noise: Leaf
    schedule: Leaf


def mafalda(
    setup: Setup,
    *,
    bandwidth: int = 4,
    weights: Doubly = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Mafalda with the least noise that meets the budget.

    Args:
        setup: Network, schedule and budget.
        bandwidth: Over how many epochs noise hangs together; 1 makes it independent.
        weights: How neighbours are weighed.
        access: How they are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t of (sum over s <= t of C[t, s] S_j gamma_s-1 / s_j,s)^2: all gradients moved at
        once, the worst way, as C has no negative entries. It holds for gradients that react to what was sent, because C
        is lower triangular. Range: gradients clipped, at the public point.
    """
    memory = remembered(bandwidth)
    by, steps = mixer(setup, weights, access), gossip.steps_of(setup, step_factor)
    unit = correlated(gossip.gossip_releases(setup, steps, setup.sensitivity**0), memory)
    noise = gossip.noise_for(setup, "mafalda", unit)
    said = gossip.sending(by, setup, noise)
    receiving = Receiving(by.heard, by.kept, steps, gossip.newest(setup, publish), *said)
    only = Round("model", by.channel, NOISE, said, receiving, _say(memory), step_at_mixed)
    settings: Settings = {"bandwidth": int(bandwidth), "weights": weights, "access": access}
    releases = (correlated(gossip.gossip_releases(setup, steps, noise), memory),)
    return proved(
        Algorithm(
            "mafalda",
            setup,
            (only,),
            settings | {"step_factor": float(step_factor), "publish": publish},
            _begin(len(memory)),
            releases,
        )
    )


def remembered(bandwidth: int) -> FloatArray:
    """[bandwidth - 1] C[t, t-1], C[t, t-2] and so on; one 0 where noise is independent."""
    _check.at_least(1, bandwidth=bandwidth)
    if bandwidth > _MAX_BANDWIDTH:
        raise Error(f"bandwidth is {bandwidth}, expected at most {_MAX_BANDWIDTH} epochs", hint="give a few, such as 4")
    lags = np.arange(1, bandwidth)
    coefficients = np.cumprod((2 * lags - 1) / (2 * lags))  # binomial(2k, k)/4^k
    return np.asarray(coefficients, np.float64) if len(coefficients) else np.zeros(1)


def correlated(independent: Releases, memory: FloatArray) -> Releases:
    """C applied to what every epoch moves: the ratios of noise C^-1 e from those of noise e."""
    ratio = independent.ratio.copy()
    for lag, share in enumerate(memory, start=1):
        ratio[lag:] += share * independent.ratio[:-lag] if lag < len(ratio) else 0.0
    return Releases(GAUSSIAN, ratio, independent.against)


def _begin(remembers: int) -> Init:
    def begin(start: Model, local: Local) -> State:  # noqa: ARG001
        import jax.numpy as jnp

        return State(start, start, jnp.zeros((remembers, *start.shape), start.dtype))

    return begin


def _say(memory: FloatArray) -> Send:
    """Says x + q std_t w_t, with w_t = e_t - sum_k C[t, t-k] w_t-k."""

    def say(here: gossip.Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
        fresh = drawn["noise"] - sum(share * state.earlier[lag] for lag, share in enumerate(memory.tolist()))
        return radiate(here.amplitude, state.own + here.noise * here.schedule * fresh)

    return say


def step_at_mixed(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(m)); what was added is remembered."""
    import jax.numpy as jnp

    mixed, scale = mix(here, sent, heard), here.noise * here.schedule
    own = local.project(mixed - here.step * local.gradient_at_public(mixed))
    added = jnp.where(scale > 0, (spoken(here.amplitude, sent) - state.own) / jnp.where(scale > 0, scale, 1), 0)
    earlier = jnp.concatenate([added[None], state.earlier[:-1]])
    return State(own, gossip.averaged(here, state, mixed), earlier)


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """All gradients moved at once through C, from the ledger's tables alone."""
    ledger.require_rounds(model="noise: normal of a node")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in gossip.Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    accounts.require_weights(ledger, "model", "both")
    for name in ("amplitude", "noise"):
        accounts.require_same(ledger, f"model_sending_{name}", f"model_receiving_{name}")
    if not np.array_equal(ledger.per_epoch("model_sending_schedule"), ledger.per_epoch("model_receiving_schedule")):
        ledger.refuse("remembers noise by another schedule than it was sent with")
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")
    push = accounts.by_epoch(ledger, "model_receiving_step")
    independent = gossip.exposed_releases(accounts.sensitivity(ledger), push, gossip.said_std(ledger))
    return (correlated(independent, remembered(int(ledger.number("bandwidth")))),)


METHOD = Method(
    name="mafalda",
    make=mafalda,
    summary="private decentralised gradient descent with noise that partly takes itself back over epochs",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t of (sum over s <= t of C[t, s] S_j gamma_s-1 / s_j,s)^2",
    reference="MAFALDA-SGD, matrix factorisation for decentralised learning, 2026; its code was read, the account is "
    "our own",
    needs="two-way links",
    noise_sent=gossip.noise_sent,
    averages=True,
)
