"""Systems that do not do what they claim: every way of cutting corners that an audit must find."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.algorithms.base import Algorithm, Local, Model, State


def noise_at(algorithm: Algorithm, share: float) -> Algorithm:
    """Every node's noise at a share of its std."""
    return algorithm._replace(sending=algorithm.sending._replace(noise=share * algorithm.sending.noise))


class WithAmplitude(NamedTuple):
    """Algorithm 1's tables with sqrt(alpha p)."""

    inner: Any
    amplitude: Any


def own_noise_dropped(algorithm: Algorithm) -> Algorithm:
    """Algorithm 1 whose self term holds the node's own model instead of what it said."""

    def update(here: Any, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        clean = here.amplitude * state.own  # the signal without its noise
        following: State = algorithm.update(here.inner, state, clean, heard, local)
        return following

    receiving = WithAmplitude(algorithm.receiving, algorithm.sending.amplitude)
    return algorithm._replace(receiving=receiving, update=update)


class Repeating(NamedTuple):
    """A state with the one draw that a node ever makes."""

    inner: State
    drawn: jax.Array

    @property
    def own(self) -> Model:
        return self.inner.own

    @property
    def published(self) -> Model:
        return self.inner.published


def noise_reused(algorithm: Algorithm, seed: int = 0) -> Algorithm:
    """The same draw in every epoch."""

    def init(start: Model) -> Repeating:
        return Repeating(algorithm.init(start), jax.random.normal(jax.random.key(seed), start.shape, start.dtype))

    def send(here: Any, state: Repeating, noise: jax.Array) -> jax.Array:  # noqa: ARG001
        return algorithm.send(here, state.inner, state.drawn)

    def update(here: Any, state: Repeating, sent: jax.Array, heard: jax.Array, local: Local) -> Repeating:
        return Repeating(algorithm.update(here, state.inner, sent, heard, local), state.drawn)

    return algorithm._replace(init=init, send=send, update=update)


def own_model_published(algorithm: Algorithm) -> Algorithm:
    """x is given away instead of m."""

    def update(here: Any, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        following: State = algorithm.update(here, state, sent, heard, local)
        return following._replace(published=following.own)

    return algorithm._replace(update=update)


class Sharing(NamedTuple):
    """A state with the draw of this epoch and the key of the next one."""

    inner: State
    drawn: jax.Array
    key: jax.Array

    @property
    def own(self) -> Model:
        return self.inner.own

    @property
    def published(self) -> Model:
        return self.inner.published


def one_draw_for_all_links(algorithm: Algorithm, seed: int = 0) -> Algorithm:
    """mPED2FL whose nodes draw noise once an epoch and send it on every link."""

    def init(start: Model) -> Sharing:
        nodes, seeds = start.shape[:2]
        keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(seed), (nodes, seeds))))
        drawn = jax.random.normal(jax.random.key(seed + 1), start.shape, start.dtype)
        return Sharing(algorithm.init(start), drawn, jnp.asarray(keys))

    def send(here: Any, state: Sharing, noise: jax.Array) -> jax.Array:  # noqa: ARG001
        return algorithm.send(here, state.inner, state.drawn)

    def update(here: Any, state: Sharing, sent: jax.Array, heard: jax.Array, local: Local) -> Sharing:
        key, drawing = jax.random.split(jax.random.wrap_key_data(state.key))
        drawn = jax.random.normal(drawing, state.drawn.shape, state.drawn.dtype)
        inner = algorithm.update(here, state.inner, sent, heard, local)
        return Sharing(inner, drawn, jax.random.key_data(key))

    return algorithm._replace(init=init, send=send, update=update)


class Counting(NamedTuple):
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


def first_noise_once_more(algorithm: Algorithm, seed: int = 0) -> Algorithm:
    """In the last epoch the noise of the first one comes again; all others are fresh."""
    last = algorithm.plan.schedule.epochs - 1

    def init(start: Model) -> Counting:
        first = jax.random.normal(jax.random.key(seed), start.shape, start.dtype)
        return Counting(algorithm.init(start), first, jnp.zeros(start.shape[:2]))

    def send(here: Any, state: Counting, noise: jax.Array) -> jax.Array:
        again = (state.over == 0) | (state.over == last)
        return algorithm.send(here, state.inner, jnp.where(again, state.first, noise))

    def update(here: Any, state: Counting, sent: jax.Array, heard: jax.Array, local: Local) -> Counting:
        return Counting(algorithm.update(here, state.inner, sent, heard, local), state.first, state.over + 1)

    return algorithm._replace(init=init, send=send, update=update)


def one_draw_for_all_coordinates(algorithm: Algorithm) -> Algorithm:
    """Noise of the right size, fresh in every epoch, and the same in all coordinates."""

    def send(here: Any, state: State, noise: jax.Array) -> jax.Array:
        return algorithm.send(here, state, jnp.full_like(noise, noise.ravel()[0]))

    return algorithm._replace(send=send)


def own_noise_left_out_of_what_is_published(algorithm: Algorithm) -> Algorithm:
    """Training is as claimed; only the published mixed point holds the node's own model without its noise."""

    def update(here: WithAmplitude, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        following: State = algorithm.update(here.inner, state, sent, heard, local)
        clean = here.inner.heard * heard + here.inner.kept * here.amplitude * state.own
        return following._replace(published=clean)

    receiving = WithAmplitude(algorithm.receiving, algorithm.sending.amplitude)
    return algorithm._replace(receiving=receiving, update=update)
