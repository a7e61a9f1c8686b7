"""Exact diffusion: gradient descent that corrects itself, so that unequal data leaves no bias; one multicast per epoch.

    psi_i,t = x_i - gamma g_i(x_i)/D_i,   phi_i = psi_i,t + x_i - psi_i,t-1,   x_i <- (phi_i + sum_j w_ij phi_j)/2

psi_0 is the start. Weights: doubly stochastic with D = 1, or row-stochastic ("row") with D_i = K pi_i, pi the left
Perron vector: either way sum_i pi_i x_i moves by plain gradient descent, whatever W is, and with a constant step every
node reaches the optimum. Whether disagreement dies out depends on W and is checked beforehand: see
`murmurcast.network.stability`. Nothing is projected: the correction would be lost.
Noise: none, so nothing is promised. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Gradient, Local, Model, Publish, Round, Settings
from murmurcast.algorithms.gossip import averaged, newest, require_unbounded, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Mixer, mix, mixer, radiate, spoken
from murmurcast.algorithms.tables import Leaf, row_of
from murmurcast.errors import Error
from murmurcast.network.stability import exact_diffusion_radius
from murmurcast.network.weights import perron
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax

DiffusionWeights = Literal["row", "sinkhorn", "max-degree", "metropolis"]


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x.
        published: x as well, or an average of it.
        before: psi of the epoch before; public like x, noise included.
        gradient: g(x), without noise.
    """

    own: Model
    published: Model
    before: Model
    gradient: Model


class Sending(NamedTuple):
    """amplitude: of phi. step: gamma/D."""

    amplitude: Leaf
    step: Leaf


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: Factor of what is heard.
        kept: Factor of the node's own signal.
        amplitude: Of the node's own signal.
        newest: Weight of the newest point in the published model.
    """

    heard: Leaf
    kept: Leaf
    amplitude: Leaf
    newest: Leaf


class Diffusing(NamedTuple):
    """What all forms of exact diffusion share.

    Attributes:
        by: How phi is mixed.
        step: [epochs, nodes] gamma_t/D_i.
        receiving: Tables of what is made of what is heard.
        settings: The options, for the ledger.
    """

    by: Mixer
    step: FloatArray
    receiving: Receiving
    settings: Settings


def exact_diffusion(
    setup: Setup,
    *,
    weights: DiffusionWeights = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Exact diffusion.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.
        weights: "sinkhorn", "max-degree" or "metropolis" (D = 1), or "row" (D = K pi).
        access: How neighbours are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    how = diffusing(setup, "exact-diffusion", weights, access, step_factor, publish)
    sending = Sending(how.by.amplitude, how.step)
    only = Round("model", how.by.channel, NO_DRAWS, sending, how.receiving, send_corrected, diffuse_hiding_nothing)
    return Algorithm("exact-diffusion", setup, (only,), how.settings, begin_hiding_nothing)


def diffusing(
    setup: Setup, name: str, weights: DiffusionWeights, access: Access, step_factor: float, publish: Publish
) -> Diffusing:
    """What all forms share, checked: models are not bound, and disagreement dies out on these weights."""
    require_unbounded(setup, name, "projecting would lose its correction")
    by = mixer(setup, weights, access)
    radius = exact_diffusion_radius(by.weights)
    if radius >= 1:
        raise Error(
            f"{name} is unstable on this network: disagreement grows by {radius:.4g} in every epoch, however small the "
            "step, because gains differ too much around a cycle",
            hint='with two-way links, set weights = "metropolis" and access = "orthogonal"; or use another method',
        )
    nodes = setup.network.nodes
    divisor = nodes * perron(by.weights) if weights == "row" else np.ones(nodes)
    receiving = Receiving(by.heard, by.kept, by.amplitude, newest(setup, publish))
    step = steps_of(setup, step_factor)[:, None] / divisor
    settings: Settings = {"access": access, "step_factor": float(step_factor), "publish": publish}
    return Diffusing(by, step, receiving, {"weights": weights, **settings})


def begin(start: Model, local: Local) -> State:
    """psi_0 is the public start; the gradient there is sent in the first epoch, and the ledger counts it."""
    return State(start, start, start, local.gradient_at_public(start))


def begin_hiding_nothing(start: Model, local: Local) -> State:
    """The same without noise, where no point is covered."""
    return State(start, start, start, local.gradient_at_private(start))


def corrected(state: State, step: Any, gradient: Model) -> Model:
    """Phi = psi + x - psi before."""
    return state.own - step * gradient + state.own - state.before


def send_corrected(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """Phi."""
    return radiate(here.amplitude, corrected(state, here.step, state.gradient))


def diffuse(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """X = (phi + mixed phi)/2, a public point, and psi as the node said it."""
    return _combine(here, state, sent, heard, local.gradient_at_public)


def diffuse_hiding_nothing(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The same without noise."""
    return _combine(here, state, sent, heard, local.gradient_at_private)


def _combine(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, gradient_at: Gradient) -> State:
    said = spoken(here.amplitude, sent)
    own = (said + mix(here, sent, heard)) / 2
    return State(own, averaged(here, state, own), said - state.own + state.before, gradient_at(own))


def require_diffusion(ledger: accounts.LedgerTables, draws: str, fields: tuple[str, ...]) -> None:
    """The ledger is of exact diffusion with these draws: one message, and what is said is what is kept."""
    ledger.require_rounds_after_gradient(model=draws)
    ledger.require_tables(
        *(f"model_sending_{name}" for name in fields), *(f"model_receiving_{name}" for name in Receiving._fields)
    )
    accounts.require_same(ledger, "model_sending_amplitude", "model_receiving_amplitude")
    accounts.require_weights(ledger, "model", "rows")
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")


def step_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """[these epochs, nodes] how loud a gradient is in what is sent: amplitude gamma/D."""
    step = row_of(ledger.table("model_sending_step"), epochs)
    return np.asarray(step * accounts.loudest(ledger, "model_sending_amplitude"))


METHOD = Method(
    name="exact-diffusion",
    make=exact_diffusion,
    summary="gradient descent that corrects for unequal data; exact with constant steps, nothing hidden",
    account="no noise is sent",
    reference="Yuan, Ying, Zhao, Sayed: Exact diffusion for distributed optimization and learning, 2019; with row "
    "weights our own",
    needs="two-way links, no ball or box, weights that pass its stability check",
    projects=False,
    side_vector="z",
    averages=True,
)
