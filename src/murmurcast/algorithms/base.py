"""What an algorithm is: three pure functions of one node, cut at the antenna.

`init` makes a node's state, `send` makes all that leaves it, `update` makes its next state from what it hears. Between
the two lies a medium, which belongs to the engine. Whoever audits privacy reads `send`.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan

Model = jax.Array
Tables = Any  # a NamedTuple of constants; see `Algorithm`
Here = Any  # the same NamedTuple for one node and epoch
Leaf = Any  # an array of NumPy outside the engine, of JAX inside
Publish = Literal["last", "average"]
_AVERAGE_LEAN = 3  # early, rough points are soon forgotten


class Air(NamedTuple):
    """Everybody sends at once; receiver i hears sum_j gains[j, i] times the signal of j."""

    gains: csr_array


class Slots(NamedTuple):
    """One channel use per receiver: in i's slot every neighbour j sends a signal made for i alone."""

    gains: csr_array


class Server(NamedTuple):
    """Everybody hears the sum of all signals, and nothing else."""


class Silence(NamedTuple):
    """Nobody hears anything."""


Medium = Air | Slots | Server | Silence


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x, the node's model.
        published: What the node would give to the world.
    """

    own: Model
    published: Model


class Local(NamedTuple):
    """What only the node can do, in one epoch.

    Attributes:
        gradient_at_public: Its gradient at a point that everybody may know.
        gradient_at_private: Its gradient at a point of its own.
        project: The nearest point of Omega.
    """

    gradient_at_public: Callable[[Model], Model]
    gradient_at_private: Callable[[Model], Model]
    project: Callable[[Model], Model]


class Promise(NamedTuple):
    """What a run costs in privacy.

    Attributes:
        mu: [nodes] of Gaussian DP; infinite where nothing is promised, 0 where nothing is sent.
        basis: In words, what stands behind the number.
        caveat: What must be said in one breath with the number; empty for a certificate.
    """

    mu: FloatArray
    basis: str
    caveat: str = ""


class Sending(NamedTuple):
    """Constants of a signal that is a model with noise.

    Attributes:
        amplitude: sqrt(alpha p), of the model.
        noise: sqrt((1 - alpha) p) q, of the noise, in units of its schedule.
        schedule: sigma_t / q.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf


class Algorithm(NamedTuple):
    """One way to learn over a network.

    Tables are NamedTuples of arrays: [epochs] (the same at all nodes), or [rows, nodes] where rows is 1 (the same in
    all epochs) or up to `epochs`, the last row standing for all later epochs. Tables of what is sent through `Slots`
    have one more axis, [rows, sender, neighbour], the neighbours in the order of the sender's row of gains.

    Attributes:
        name: As in an experiment file.
        plan: The plan it carries out.
        medium: Who hears what.
        sending: Tables for `send`.
        receiving: Tables for `update`.
        channel_uses: Per epoch.
        promise: What a run costs.
        settings: The options it was made with, for the ledger.
        init: (start) -> state.
        send: (here, state, standard normal noise) -> the signal, all that leaves the node.
        update: (here, state, own signal, heard, local) -> next state.
        promise_until: (last [nodes]) -> what a run costs in which node j sends up to epoch last_j only; None leaves
            the promise of the whole run, which holds for a part of it too.
    """

    name: str
    plan: Plan
    medium: Medium
    sending: Tables
    receiving: Tables
    channel_uses: int
    promise: Promise
    settings: dict[str, str | float]
    init: Callable[[Model], Any]
    send: Callable[[Here, Any, jax.Array], jax.Array]
    update: Callable[[Here, Any, jax.Array, jax.Array, Local], Any]
    promise_until: "Callable[[NDArray[np.int64]], Promise] | None" = None


def send_model_with_noise(here: Sending, state: State, noise: jax.Array) -> jax.Array:
    """sqrt(alpha p) x + sqrt((1 - alpha) p) eta, with eta ~ N(0, sigma_t^2)."""
    return here.amplitude * state.own + here.noise * here.schedule * noise


def start(model: Model) -> State:
    """The state of a node that has heard nothing yet."""
    return State(model, model)


def newest_share(epochs: int) -> FloatArray:
    """[epochs] the share of the newest point in an average of all so far that favours later ones: weights like t^3."""
    return np.asarray((1 + _AVERAGE_LEAN) / (np.arange(1.0, epochs + 1) + _AVERAGE_LEAN))


def require_publish(publish: str) -> None:
    """What is published is a known choice."""
    if publish not in get_args(Publish):
        raise Error(f'publish is "{publish}"', hint=_check.nearest(publish, get_args(Publish)))


def same_always(values: FloatArray) -> FloatArray:
    """A table of what does not change over epochs."""
    return np.asarray(values, np.float64)[None]


def without_repeats(table: FloatArray) -> FloatArray:
    """A table [epochs, nodes] without the rows at its end that repeat."""
    if table.strides[0] == 0:
        return table[:1]
    changes = np.flatnonzero((table[1:] != table[:-1]).any(axis=1))
    return table[: (changes[-1] + 2 if len(changes) else 1)]


def padded(links: csr_array, values: NDArray[Any]) -> NDArray[Any]:
    """[rows, most per row] values of the links, row by row, filled up with zeros."""
    degree = np.diff(links.indptr)
    slot = np.arange(len(values)) - np.repeat(links.indptr[:-1], degree)
    table = np.zeros((len(degree), int(degree.max())), values.dtype)
    table[np.repeat(np.arange(len(degree)), degree), slot] = values
    return table
