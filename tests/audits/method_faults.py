"""Methods that do not do what they claim: corners that can be cut in trackers, corrections, pairs and gossip."""

from typing import Any

import jax
import numpy as np

from murmurcast.algorithms.base import NOISE, Algorithm, Draw, Local, Model, Round
from murmurcast.algorithms.exact_diffusion import corrected
from murmurcast.algorithms.mixer import radiate, spoken
from murmurcast.privacy.releases import Releases
from tests.audits.faults import Drawn, WithSending, changed, only


def with_round(algorithm: Algorithm, number: int, **changes: Any) -> Algorithm:
    """The same algorithm with another part of one of its rounds."""
    rounds = list(algorithm.rounds)
    rounds[number] = rounds[number]._replace(**changes)
    return algorithm._replace(rounds=tuple(rounds))


def all_noise_at(algorithm: Algorithm, share: float) -> Algorithm:
    """Noise at a share of its std (or scale), in every round that adds some."""
    for number, one in enumerate(algorithm.rounds):
        if "noise" in one.sending._fields:
            sending = one.sending._replace(noise=share * np.asarray(one.sending.noise))
            algorithm = with_round(algorithm, number, sending=sending)
    return algorithm


def tracker_draws_anew(algorithm: Algorithm) -> Algorithm:
    """One gradient stands in two messages of an epoch, in each under a draw of its own."""
    return with_round(algorithm, 1, draws=NOISE)


def old_gradient_under_another_draw(algorithm: Algorithm) -> Algorithm:
    """What is taken back with the old gradient is not the noise that was added with it, but a fresh draw."""
    tracker: Round = algorithm.rounds[1]

    def send(here: Any, state: Any, drawn: Drawn) -> jax.Array:
        return tracker.send(here, state, {"noise": drawn["noise"] - drawn["second"]})

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:
        unhidden = state._replace(tracker=spoken(here.amplitude, sent))  # as if nothing had been added
        return tracker.update(here, unhidden, sent, heard, local)

    return with_round(algorithm, 1, draws={"noise": Draw(), "second": Draw()}, send=send, update=update)


def gradient_without_own_noise(algorithm: Algorithm) -> Algorithm:
    """Exact diffusion whose gradients are taken where the node would be without its own noise."""
    diffuse = only(algorithm).update

    def update(here: WithSending, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:
        seen: list[Model] = []

        def look(point: Model) -> Model:
            seen.append(point)
            return point

        said = corrected(state, here.sending.step, state.gradient)
        diffuse(
            here.inner, state, radiate(here.sending.amplitude, said), heard, local._replace(gradient_at_public=look)
        )
        private = local._replace(gradient_at_public=lambda _: local.gradient_at_private(seen[0]))
        return diffuse(here.inner, state, sent, heard, private)

    receiving = WithSending(only(algorithm).receiving, only(algorithm).sending)
    return changed(algorithm, receiving=receiving, update=update)


def own_model_passed_on(algorithm: Algorithm) -> Algorithm:
    """Muffliato whose second message is the node's own model, instead of what it made of what it heard."""

    def send(here: Any, state: Any, drawn: Drawn) -> jax.Array:  # noqa: ARG001
        return radiate(here.amplitude, state.own)

    return with_round(algorithm, 1, send=send)


def pairs_left_out(algorithm: Algorithm) -> Algorithm:
    """Only a node's own noise is sent; what its pairs drew is forgotten."""
    sending = only(algorithm).sending
    return changed(algorithm, sending=sending._replace(shared=0 * np.asarray(sending.shared)))


def secret_pairs_claimed_against_everybody(algorithm: Algorithm) -> Algorithm:
    """What an eavesdropper can learn, claimed to be all that anybody can who knows the pairs' noise."""
    (secret,) = [part for part in algorithm.releases if part.against == "eavesdropper"]
    return algorithm._replace(releases=(Releases(secret.law, secret.ratio, "everybody"),))
