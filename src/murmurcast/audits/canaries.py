"""Planted data whose presence an attacker must guess: at every target, one canary for every coordinate of the model.

Canary i of a target is a unit of its data. In every epoch its gradient is +c u_i in one world and -c u_i in the other,
u_i the i-th coordinate: a change of 2c, at most the sensitivity S. Directions are orthogonal and every sign is drawn by
itself, so one run tries as many canaries at each target as the model has parameters; to whoever attacks one target, the
canaries of all others are more randomness. They are added to the target's gradient behind the clip, which could not let
through more of them than a clip's worth at once.

They stand beside the target's own data. Only where gradients are taken at a private point, and a whole node is hidden,
are they all that the target has: there its own gradient would differ between the worlds as well.

Where a promise counts on secret coins, every canary has one of its own in every epoch, of the target's probability, as
its records have; who guesses does not know how it fell.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Gradient, Local, Model, Round, state_of
from murmurcast.audits.claims import takes_private_gradients
from murmurcast.audits.transcript import Prepare
from murmurcast.engine import noise

Numbers = NDArray[np.int64]


class Canaries(NamedTuple):
    """What is planted where.

    Attributes:
        targets: [targets] the nodes that hold them.
        signs: [targets, seeds, dim] +1 or -1, a world for every run and canary; 0 is half way between the worlds.
        change: [targets] 2c, between a canary's two worlds.
        alone: Whether targets have no other data.
        rates: [targets] the probability of a canary's coin; None where all take part in every epoch.
        keys: [seeds, 2] of the coins.
    """

    targets: Numbers
    signs: FloatArray
    change: FloatArray
    alone: bool
    rates: FloatArray | None = None
    keys: NDArray[np.uint32] | None = None

    def of_runs(self, runs: "list[int]") -> "Canaries":
        """Those of some runs."""
        return self._replace(signs=self.signs[:, runs], keys=None if self.keys is None else self.keys[runs])


class Coins(NamedTuple):
    """What decides which of a node's canaries take part in an epoch.

    Attributes:
        key: [2] of the run.
        below: A random number of 32 bits below this lets a canary take part: whatever the precision, the same do.
        number: Of the node.
        epoch: The last one that is over.
    """

    key: jax.Array
    below: jax.Array
    number: jax.Array
    epoch: jax.Array


def tossed(coins: Coins, epoch: jax.Array, canary: jax.Array) -> jax.Array:
    """The canaries that take part in an epoch; 0 in place of the others. Epoch 0 is that of a gradient at the start."""
    key = noise.at_node(noise.at_node(coins.key, epoch), coins.number)
    fell = jax.random.bits(jax.random.wrap_key_data(key), canary.shape, jnp.uint32) < coins.below
    return jnp.where(fell, canary, 0)


def threshold(rate: ArrayLike) -> NDArray[np.uint32]:
    """What lets a canary take part with this probability."""
    return np.minimum(np.asarray(rate) * 2.0**32, 2.0**32 - 1).astype(np.uint32)


class Planted(NamedTuple):
    """An algorithm's state with what is planted at the node.

    Attributes:
        inner: The algorithm's own state.
        gradient: What the node's canaries add to its gradient.
        data: 1 where the node's data counts, 0 where canaries are all it has.
        begun: The public start and the gradients that were taken there; () where none was.
        coins: Of the canaries; () where no record has one.
    """

    inner: Any
    gradient: jax.Array
    data: jax.Array
    begun: Any = ()
    coins: Any = ()

    @property
    def own(self) -> Model:
        """The node's model."""
        model: Model = self.inner.own
        return model

    @property
    def published(self) -> Model:
        """What the node would give to the world."""
        model: Model = self.inner.published
        return model


def draw(
    algorithm: Algorithm, targets: tuple[int, ...], dim: int, runs: int, size: ArrayLike = 1.0, seed: int = 0
) -> Canaries:
    """Canaries with random signs.

    Args:
        algorithm: Its setup says how far one unit can change a gradient; its functions, where gradients are taken.
        targets: The nodes that get them.
        dim: Parameters of the model.
        runs: How many runs, each with signs of its own.
        size: Of the change, as a share of the sensitivity; one number or [targets].
        seed: Of the signs.
    """
    nodes, setup = np.array(targets), algorithm.setup
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(len(nodes), runs, dim))
    change = np.broadcast_to(np.asarray(size, np.float64), len(nodes)) * setup.sensitivity[nodes]
    alone = setup.budget.unit == "node" and takes_private_gradients(algorithm)
    if not any(part.law.name == "sampled gaussian" for part in algorithm.releases):
        return Canaries(nodes, signs, change, alone)
    rates = np.asarray(algorithm.releases[0].law.rates)[nodes]
    keys = np.random.default_rng([seed, 1]).integers(2**32, size=(runs, 2), dtype=np.uint32)
    return Canaries(nodes, signs, change, alone, rates, keys)


def half_way(canaries: Canaries, runs: int) -> Canaries:
    """The same canaries in the world between the two."""
    keys = None if canaries.keys is None else canaries.keys[:runs]
    return canaries._replace(signs=np.zeros((len(canaries.targets), runs, canaries.signs.shape[2])), keys=keys)


def planted(algorithm: Algorithm) -> Algorithm:
    """The same algorithm with a place for canaries in the state of every node; `plant` puts them there.

    Args:
        algorithm: Any.
    """

    def init(start: Model, local: Local) -> Planted:
        taken: list[Model] = []

        def watched(gradient: Gradient) -> Gradient:
            def take(point: Model) -> Model:
                taken.append(gradient(point))
                return taken[-1]

            return take

        public, private = watched(local.gradient_at_public), watched(local.gradient_at_private)
        inner = algorithm.init(start, Local(public, private, local.project))
        begun = (start, tuple(taken)) if taken else ()
        nothing = jnp.zeros((), jnp.int32)
        always = Coins(jnp.zeros(2, jnp.uint32), jnp.asarray(threshold(1.0)), nothing, nothing)
        coins = () if algorithm.setup.sampling is None else always
        return Planted(inner, jnp.zeros_like(start), jnp.ones((), start.dtype), begun, coins)

    last = algorithm.rounds[-1].name
    return algorithm._replace(init=init, rounds=tuple(_planted_round(one, last) for one in algorithm.rounds))


def _planted_round(one: Round, last: str) -> Round:
    """The same round, its gradients with canaries; `last` is the name of an epoch's last round."""

    def send(here: Any, state: Planted, drawn: dict[str, jax.Array]) -> jax.Array:
        return one.send(here, state.inner, drawn)

    def update(here: Any, state: Planted, sent: jax.Array, heard: jax.Array, local: Local) -> Planted:
        coins: Any = state.coins
        added = tossed(coins, coins.epoch + 1, state.gradient) if coins else state.gradient
        with_canaries = Local(
            lambda point: state.data * local.gradient_at_public(point) + added,
            lambda point: state.data * local.gradient_at_private(point) + added,
            local.project,
        )
        if coins and one.name == last:
            coins = coins._replace(epoch=coins.epoch + 1)
        return state._replace(inner=state_of(one.update(here, state.inner, sent, heard, with_canaries)), coins=coins)

    return one._replace(send=send, update=update)


def plant(canaries: Canaries, algorithm: Algorithm) -> Prepare:
    """What puts canaries at their node, in the states of a `planted` algorithm; a row of signs for every seed.

    Args:
        canaries: What is planted.
        algorithm: The one that was planted in: a gradient that it takes at the start is taken again, with canaries.
    """

    def prepare(state: Planted) -> Planted:
        like: NDArray[Any] = np.asarray(state.gradient)  # [nodes, seeds, ...]
        gradient, data = np.zeros(like.shape), np.ones(like.shape[:2])
        signs = canaries.signs.reshape(len(canaries.targets), *like.shape[1:])
        gradient[canaries.targets] = canaries.change.reshape(-1, *(1,) * (like.ndim - 1)) / 2 * signs
        data[canaries.targets] = 0.0 if canaries.alone else 1.0
        changed: Any = {"gradient": gradient.astype(like.dtype), "data": data.astype(like.dtype)}
        changed["coins"] = _with_keys(state.coins, canaries)
        return _begun_again(state._replace(**changed), algorithm)

    return prepare


def _with_keys(coins: Any, canaries: Canaries) -> Any:
    """The coins of all nodes and runs, [nodes, seeds, ...], with the rates of targets and the keys of runs."""
    if not coins or canaries.rates is None or canaries.keys is None:
        return coins
    nodes, seeds = np.shape(coins.below)
    below = np.zeros((nodes, seeds), np.uint32)
    below[canaries.targets] = threshold(canaries.rates)[:, None]
    numbers = np.broadcast_to(np.arange(nodes, dtype=np.int32)[:, None], (nodes, seeds))
    return coins._replace(key=np.array(np.broadcast_to(canaries.keys, (nodes, seeds, 2))), below=below, number=numbers)


def _begun_again(state: Planted, algorithm: Algorithm) -> Planted:
    """With the first state made of gradients with canaries, where it is made of gradients."""
    if not state.begun:
        return state

    def begin(start: Model, taken: Any, gradient: Model, data: Model, coins: Any) -> Any:
        left = iter(taken)
        added = tossed(coins, jnp.zeros((), jnp.int32), gradient) if coins else gradient

        def take(point: Model) -> Model:  # noqa: ARG001
            return data * next(left) + added

        return algorithm.init(start, Local(take, take, lambda point: point))

    start, taken = state.begun
    inner = jax.vmap(jax.vmap(begin))(start, taken, state.gradient, state.data, state.coins)
    return state._replace(inner=jax.tree.map(np.asarray, inner))
