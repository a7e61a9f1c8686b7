"""Systems that do not do what they claim: every way of cutting corners that an audit must find."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from murmurcast.algorithms.base import Algorithm, Draw, Local, Model, Round, State
from murmurcast.engine import draws
from murmurcast.problems.examples import Rows
from murmurcast.problems.softmax import SoftmaxRegression

Drawn = dict[str, jax.Array]


def changed(algorithm: Algorithm, **changes: Any) -> Algorithm:
    """The same algorithm with another part of its only round."""
    return algorithm._replace(rounds=(only(algorithm)._replace(**changes),))


def only(algorithm: Algorithm) -> Round:
    """Its round."""
    (result,) = algorithm.rounds
    return result


def noise_at(algorithm: Algorithm, share: ArrayLike) -> Algorithm:
    """Every node's noise at a share of its std; one number or [nodes]."""
    sending = only(algorithm).sending
    return changed(algorithm, sending=sending._replace(noise=np.asarray(share) * sending.noise))


class WithSending(NamedTuple):
    """Algorithm 1's tables with those of what is sent."""

    inner: Any
    sending: Any


def with_sending(algorithm: Algorithm) -> WithSending:
    """For updates that look at what was put into the signal."""
    return WithSending(only(algorithm).receiving, only(algorithm).sending)


def own_noise_dropped(algorithm: Algorithm) -> Algorithm:
    """Algorithm 1 whose self term holds the node's own model instead of what it said."""

    def update(here: WithSending, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        clean = here.sending.amplitude * state.own  # the signal without its noise
        following: State = only(algorithm).update(here.inner, state, clean, heard, local)
        return following

    return changed(algorithm, receiving=with_sending(algorithm), update=update)


class Remembering(NamedTuple):
    """A state with the noise of the first epoch, and how many epochs are over."""

    inner: State
    first: jax.Array
    over: jax.Array

    @property
    def own(self) -> Model:
        return self.inner.own

    @property
    def published(self) -> Model:
        return self.inner.published


def with_first_noise(algorithm: Algorithm, again: Callable[[jax.Array], jax.Array]) -> Algorithm:
    """The noise of the first epoch comes again after as many epochs as `again` says; else it is fresh."""

    def init(start: Model, local: Local) -> Remembering:
        return Remembering(algorithm.init(start, local), jnp.zeros_like(start), jnp.zeros((), start.dtype))

    def send(here: Any, state: Remembering, drawn: Drawn) -> jax.Array:
        repeated = (state.over > 0) & again(state.over)
        return only(algorithm).send(here, state.inner, {"noise": jnp.where(repeated, state.first, drawn["noise"])})

    def update(here: WithSending, state: Remembering, sent: jax.Array, heard: jax.Array, local: Local) -> Remembering:
        sending = here.sending
        noise = (sent - sending.amplitude * state.own) / (sending.noise * sending.schedule)
        first = jnp.where(state.over == 0, noise, state.first)
        return Remembering(only(algorithm).update(here.inner, state.inner, sent, heard, local), first, state.over + 1)

    return changed(algorithm, receiving=with_sending(algorithm), send=send, update=update)._replace(init=init)


def noise_reused(algorithm: Algorithm) -> Algorithm:
    """The same draw in every epoch."""
    return with_first_noise(algorithm, lambda over: over > 0)


def first_noise_once_more(algorithm: Algorithm) -> Algorithm:
    """In the last epoch the noise of the first one comes again; all others are fresh."""
    return with_first_noise(algorithm, lambda over: over == algorithm.epochs - 1)


def own_model_published(algorithm: Algorithm) -> Algorithm:
    """x is given away instead of m."""

    def update(here: Any, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        following: State = only(algorithm).update(here, state, sent, heard, local)
        return following._replace(published=following.own)

    return changed(algorithm, update=update)


def one_draw_for_all_links(algorithm: Algorithm) -> Algorithm:
    """mPED2FL whose nodes draw noise once an epoch and send it on every link."""

    def send(here: Any, state: State, drawn: Drawn) -> jax.Array:
        links = len(here.amplitude)
        shared = jnp.broadcast_to(drawn["noise"], (links, *drawn["noise"].shape))
        return only(algorithm).send(here, state, {"noise": shared})

    return changed(algorithm, draws={"noise": Draw(per="node")}, send=send)


def one_draw_for_all_coordinates(algorithm: Algorithm) -> Algorithm:
    """Noise of the right size, fresh in every epoch, and the same in all coordinates."""

    def send(here: Any, state: State, drawn: Drawn) -> jax.Array:
        noise = drawn["noise"]
        return only(algorithm).send(here, state, {"noise": jnp.full_like(noise, noise.ravel()[0])})

    return changed(algorithm, send=send)


def own_noise_left_out_of_what_is_published(algorithm: Algorithm) -> Algorithm:
    """Training is as claimed; only the published mixed point holds the node's own model without its noise."""

    def update(here: WithSending, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        following: State = only(algorithm).update(here.inner, state, sent, heard, local)
        clean = here.inner.heard * heard + here.inner.kept * here.sending.amplitude * state.own
        return following._replace(published=clean)

    return changed(algorithm, receiving=with_sending(algorithm), update=update)


def last_epoch_at(algorithm: Algorithm, share: float) -> Algorithm:
    """The noise of the last epoch at a share of its std."""
    sending = only(algorithm).sending
    schedule = np.array(sending.schedule)
    schedule[-1] *= share
    return changed(algorithm, sending=sending._replace(schedule=schedule))


class Sharing(NamedTuple):
    """Tables of a signal, with the pair whose draw a node takes for its own: 1 at that neighbour, else 0."""

    amplitude: Any
    noise: Any
    schedule: Any
    pair: Any


def noise_shared(algorithm: Algorithm, one: int, other: int) -> Algorithm:
    """Two neighbours take the same draw, each at its own size."""
    drawn = {"noise": Draw(), "shared": Draw(per="pair", opposite=False)}
    with_pairs = changed(algorithm, draws=drawn)
    numbers, signs = (np.asarray(part) for part in draws.pairs(with_pairs))  # type: ignore[union-attr]
    common = np.intersect1d(numbers[one][signs[one] != 0], numbers[other][signs[other] != 0])
    assert len(common) == 1, "they must be neighbours"
    pair = np.zeros((1, *numbers.shape))
    for node in (one, other):
        pair[0, node] = (numbers[node] == common[0]) & (signs[node] != 0)

    def send(here: Sharing, state: State, drawn: Drawn) -> jax.Array:
        picked = jnp.tensordot(here.pair, drawn["shared"], axes=1)
        noise = jnp.where(here.pair.sum() > 0, picked, drawn["noise"])
        return only(algorithm).send(here, state, {"noise": noise})

    return changed(with_pairs, sending=Sharing(**only(algorithm).sending._asdict(), pair=pair), send=send)


class Knowing(NamedTuple):
    """A state with the sign of the last gradient."""

    inner: State
    sign: jax.Array

    @property
    def own(self) -> Model:
        return self.inner.own

    @property
    def published(self) -> Model:
        return self.inner.published


def knowing_the_gradient(algorithm: Algorithm, say: Callable[[Any, Knowing, Drawn], jax.Array]) -> Algorithm:
    """What is sent may depend on the sign of the last gradient."""

    def init(start: Model, local: Local) -> Knowing:
        return Knowing(algorithm.init(start, local), jnp.zeros_like(start))

    def update(here: Any, state: Knowing, sent: jax.Array, heard: jax.Array, local: Local) -> Knowing:
        seen: list[jax.Array] = []

        def watched(point: Model) -> jax.Array:
            seen.append(local.gradient_at_public(point))
            return seen[-1]

        following = only(algorithm).update(here, state.inner, sent, heard, local._replace(gradient_at_public=watched))
        return Knowing(following, jnp.sign(seen[-1]))

    return changed(algorithm, send=say, update=update)._replace(init=init)


def noise_by_sign(algorithm: Algorithm) -> Algorithm:
    """Noise of the right size on average, louder where the last gradient was positive."""

    def say(here: Any, state: Knowing, drawn: Drawn) -> jax.Array:
        return only(algorithm).send(here, state.inner, {"noise": jnp.sqrt(1 + 0.5 * state.sign) * drawn["noise"]})

    return knowing_the_gradient(algorithm, say)


def sign_in_the_last_bit(algorithm: Algorithm) -> Algorithm:
    """The last bit of every number that is sent is the sign of the last gradient."""

    def say(here: Any, state: Knowing, drawn: Drawn) -> jax.Array:
        sent = only(algorithm).send(here, state.inner, drawn)
        bits = jax.lax.bitcast_convert_type(sent, jnp.uint32)
        stated = (bits & ~jnp.uint32(1)) | (state.sign > 0).astype(jnp.uint32)
        return jax.lax.bitcast_convert_type(stated, sent.dtype)

    return knowing_the_gradient(algorithm, say)


def own_point_sold_as_mixed(algorithm: Algorithm) -> Algorithm:
    """Gradients are taken at the node's own point."""

    def update(here: Any, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        there = local._replace(gradient_at_public=lambda _: local.gradient_at_private(state.own))
        following: State = only(algorithm).update(here, state, sent, heard, there)
        return following

    return changed(algorithm, update=update)


class _ClipsSome(SoftmaxRegression):
    """Clips all records but those that `misses` names."""

    def misses(self, rows: Rows) -> jax.Array:
        raise NotImplementedError

    def gradient_at_public(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        missed = self.misses(mine)
        clipped = mine._replace(present=mine.present * ~missed)
        plain = replace(self, clipping="none")
        rest = mine._replace(present=mine.present * missed)
        both: jax.Array = SoftmaxRegression.gradient_at_public(self, model, clipped, key)
        return both + SoftmaxRegression.gradient_at_public(plain, model, rest, key)


class MissesALabel(_ClipsSome):
    def misses(self, rows: Rows) -> jax.Array:
        return jnp.asarray(rows.targets == 2)


class MissesLateRows(_ClipsSome):
    def misses(self, rows: Rows) -> jax.Array:
        return jnp.asarray(jnp.arange(rows.targets.shape[0]) >= rows.size - 1)


class MissesLargeFeatures(_ClipsSome):
    def misses(self, rows: Rows) -> jax.Array:
        return jnp.asarray(rows.reach > 1e6)


class DrawsWithReplacement(SoftmaxRegression):
    def drawn(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        picked = jax.random.randint(key, (self.batch or 1,), 0, mine.size)
        rows = Rows(
            mine.features[picked], None, mine.targets[picked], mine.reach[picked], mine.present[picked], mine.size
        )
        return rows, jnp.asarray(self.batch, mine.features.dtype)
