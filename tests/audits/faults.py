"""Systems that do not do what they claim: every way of cutting corners that an audit must find."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from murmurcast.algorithms.base import Algorithm, Draw, Local, Model, Round, State

Drawn = dict[str, jax.Array]


def changed(algorithm: Algorithm, **changes: Any) -> Algorithm:
    """The same algorithm with another part of its only round."""
    return algorithm._replace(rounds=(only(algorithm)._replace(**changes),))


def only(algorithm: Algorithm) -> Round:
    """Its round."""
    (found,) = algorithm.rounds
    return found


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
