"""What methods share that track the sum of all gradients: rounds for models and for trackers, plain or private.

    model:    x - gamma y ("pull"), or x alone
    tracker:  y,  with  y <- mixed y + g~(new x)/z' - g~(old x)/z

Private: g~ = g + nu e, with the SAME draw wherever g~ stands. What is added to the sum of trackers with the new
gradient is taken back with the old one, so nothing accumulates. The draw is made when the gradient is first sent: a
node's state holds the tracker without it, and what the node said shows what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import NO_DRAWS, NOISE, Again, Draws, Gradient, Local, Model, Round
from murmurcast.algorithms.gossip import averaged
from murmurcast.algorithms.mixer import Loud, Mixer, mix, radiate, send_own, spoken
from murmurcast.algorithms.tables import Leaf, row_of
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases

if TYPE_CHECKING:
    import jax

_AGAIN: Draws = {"noise": Again("noise", epochs_ago=0, of_round="model")}
_ONE_DRAW = "noise: normal of a node"
PULLING = {"model": _ONE_DRAW, "tracker": "noise: noise of model again, 0 epochs ago"}  # as the ledger words it
FOLLOWING = {"model": "none", "tracker": _ONE_DRAW}


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x.
        published: x as well, or an average of it.
        tracker: What the node holds of the sum of all gradients; without the noise of the newest.
        gradient: g(x), as it was taken last, without noise.
        mixed: The mixed model, between the two rounds.
    """

    own: Model
    published: Model
    tracker: Model
    gradient: Model
    mixed: Model


class Pulling(NamedTuple):
    """Constants of x - gamma y: the amplitude, and the step."""

    amplitude: Leaf
    step: Leaf


class NoisyPulling(NamedTuple):
    """The same, with nu/z, the noise in the tracker."""

    amplitude: Leaf
    step: Leaf
    noise: Leaf


class NoisyTracker(NamedTuple):
    """amplitude: of what is sent. noise: nu/z."""

    amplitude: Leaf
    noise: Leaf


class MixingFactors(NamedTuple):
    """Constants of a mixed point: the factors of what is heard, and of what the node sent itself."""

    heard: Leaf
    kept: Leaf


class Tracking(NamedTuple):
    """Constants of what is made of mixed trackers.

    Attributes:
        heard: Factor of what is heard.
        kept: Factor of the node's own signal.
        amplitude: Of the node's own signal.
        step: How far the model moves against the tracker after mixing; 0 where it moved before.
        z: What the old gradient was divided by.
        next_z: What the new one is divided by.
        newest: Weight of the newest point in the published model.
    """

    heard: Leaf
    kept: Leaf
    amplitude: Leaf
    step: Leaf
    z: Leaf
    next_z: Leaf
    newest: Leaf


class Tracked(NamedTuple):
    """How a method tracks.

    Attributes:
        models: How models are mixed.
        trackers: How trackers are mixed.
        steps: gamma_t, [epochs] or [epochs, nodes].
        z: [epochs + 1, nodes] or [1, nodes], what gradients are divided by.
        newest: [epochs].
    """

    models: Mixer
    trackers: Mixer
    steps: FloatArray
    z: FloatArray
    newest: FloatArray


def begin(start: Model, local: Local) -> State:
    """The tracker starts at the gradient of the public start; the ledger counts it."""
    return _at_start(start, local.gradient_at_public(start))


def begin_hiding_nothing(start: Model, local: Local) -> State:
    """The same for a method without noise, none of whose points is covered."""
    return _at_start(start, local.gradient_at_private(start))


def _at_start(start: Model, gradient: Model) -> State:
    return State(start, start, gradient, gradient, start)


def pulling_rounds(tracked: Tracked) -> tuple[Round, Round]:
    """X - gamma y, then y."""
    models, trackers = tracked.models, tracked.trackers
    sending = Pulling(models.amplitude, tracked.steps)
    model = Round("model", models.channel, NO_DRAWS, sending, _mixing(models), send_pulled, hold_mixed)
    tracking = _tracking(tracked, _no_step(tracked))
    return model, Round(
        "tracker", trackers.channel, NO_DRAWS, Loud(trackers.amplitude), tracking, send_tracker, track_hiding_nothing
    )


def following_rounds(tracked: Tracked) -> tuple[Round, Round]:
    """x, then y; the mixed model follows the tracker."""
    models, trackers = tracked.models, tracked.trackers
    model = Round("model", models.channel, NO_DRAWS, Loud(models.amplitude), _mixing(models), send_own, hold_mixed)
    tracking = _tracking(tracked, tracked.steps)
    return model, Round(
        "tracker", trackers.channel, NO_DRAWS, Loud(trackers.amplitude), tracking, send_tracker, track_hiding_nothing
    )


def private_pulling_rounds(tracked: Tracked, noise: FloatArray) -> tuple[Round, Round]:
    """X - gamma y, then y, with noise [nodes] nu in the newest gradient of both."""
    model, tracker = pulling_rounds(tracked)
    in_tracker = noise / tracker.receiving.z
    pulling = NoisyPulling(model.sending.amplitude, model.sending.step, in_tracker)
    noisy = NoisyTracker(tracker.sending.amplitude, in_tracker)
    return (
        model._replace(draws=NOISE, sending=pulling, send=send_noisy_pulled),
        tracker._replace(draws=_AGAIN, sending=noisy, send=send_noisy_tracker, update=track),
    )


def private_following_rounds(tracked: Tracked, noise: FloatArray) -> tuple[Round, Round]:
    """x, then y with noise [nodes] nu in its newest gradient."""
    model, tracker = following_rounds(tracked)
    noisy = NoisyTracker(tracker.sending.amplitude, noise / tracker.receiving.z)
    return model, tracker._replace(draws=NOISE, sending=noisy, send=send_noisy_tracker, update=track)


def factor_setting(step_factor: Any) -> float | str:
    """How a step factor stands in the ledger, which has words and numbers."""
    return float(step_factor) if np.ndim(step_factor) == 0 else " ".join(f"{float(each):.17g}" for each in step_factor)


def _mixing(by: Mixer) -> MixingFactors:
    return MixingFactors(by.heard, by.kept)


def _tracking(tracked: Tracked, step: FloatArray) -> Tracking:
    by, z = tracked.trackers, tracked.z
    now, following = (z, z) if len(z) == 1 else (z[:-1], z[1:])
    return Tracking(by.heard, by.kept, by.amplitude, step, now, following, tracked.newest)


def _no_step(tracked: Tracked) -> FloatArray:
    return np.zeros((1, tracked.z.shape[1]))


def send_pulled(here: Pulling, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """X - gamma y."""
    return radiate(here.amplitude, state.own - here.step * state.tracker)


def send_noisy_pulled(here: NoisyPulling, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """X - gamma y, the newest gradient in y under noise."""
    return radiate(here.amplitude, state.own - here.step * (state.tracker + here.noise * drawn["noise"]))


def send_tracker(here: Loud, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """Y."""
    return radiate(here.amplitude, state.tracker)


def send_noisy_tracker(here: NoisyTracker, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """y, the newest gradient in it under the same noise as in the model."""
    return radiate(here.amplitude, state.tracker + here.noise * drawn["noise"])


def hold_mixed(here: MixingFactors, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
    """The mixed model waits for the tracker."""
    return state._replace(mixed=mix(here, sent, heard))


def track(here: Tracking, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The next model, a public point, and the tracker that follows it."""
    return _follow(here, state, sent, heard, local.gradient_at_public)


def track_hiding_nothing(here: Tracking, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The same for a method without noise."""
    return _follow(here, state, sent, heard, local.gradient_at_private)


def _follow(here: Tracking, state: State, sent: jax.Array, heard: jax.Array, gradient_at: Gradient) -> State:
    """Y <- mixed y + g~(new x)/z' - g~(old x)/z, the new gradient still without noise."""
    said = spoken(here.amplitude, sent)
    own = state.mixed - here.step * said
    gradient = gradient_at(own)
    # What the node said of its tracker, less what it holds, is the noise of the old gradient, over z.
    old = state.gradient / here.z + (said - state.tracker)
    tracker = mix(here, sent, heard) + gradient / here.next_z - old
    return State(own, averaged(here, state, own), tracker, gradient, state.mixed)


def tracking_releases(setup: Setup, noise: FloatArray, law: Law = GAUSSIAN) -> Releases:
    """Every message carries one new gradient, under its own noise: S/nu in every epoch, the first included."""
    ratio = np.broadcast_to(setup.sensitivity / noise, (setup.schedule.epochs, setup.network.nodes))
    return Releases(law, np.array(ratio), "everybody")


def account_of_tracking(
    ledger: accounts.LedgerTables, draws: dict[str, str], divisor: FloatArray
) -> tuple[Releases, ...]:
    """S/nu in every epoch, from the tables: one noise, one amplitude and one z wherever a gradient stands.

    Args:
        ledger: The ledger.
        draws: The words of every round's draws.
        divisor: [rows, nodes] z, as it follows from the ledger's weights.
    """
    ledger.require_rounds_after_gradient(**draws)
    pulls = draws == PULLING
    ledger.require_tables(
        *(f"model_sending_{name}" for name in (NoisyPulling if pulls else Loud)._fields),
        *(f"model_receiving_{name}" for name in MixingFactors._fields),
        *(f"tracker_sending_{name}" for name in NoisyTracker._fields),
        *(f"tracker_receiving_{name}" for name in Tracking._fields),
    )
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("tracker_receiving_newest")
    accounts.require_same(ledger, "tracker_sending_amplitude", "tracker_receiving_amplitude")
    if pulls:
        accounts.require_same(ledger, "tracker_sending_noise", "model_sending_noise")
    epochs = np.arange(1, ledger.epochs + 1)
    noise, z, following = (
        row_of(accounts.above_zero(ledger, f"tracker_{name}"), epochs)
        for name in ("sending_noise", "receiving_z", "receiving_next_z")
    )
    if (z[0] != 1).any():
        ledger.refuse("begins with a tracker_receiving_z other than 1, by which no tracker begins")
    if not np.array_equal(following[:-1], z[1:]):
        ledger.refuse("takes an old gradient back with another tracker_receiving_z than it was added with")
    accounts.require_divisor(ledger, "tracker_receiving_z", divisor)
    return (Releases(GAUSSIAN, np.asarray(accounts.sensitivity(ledger) / (noise * z)), "everybody"),)


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Of the tracker's signal, a part of all that is sent."""
    noise = row_of(ledger.table("tracker_sending_noise"), epochs)
    return np.asarray(noise * accounts.loudest(ledger, "tracker_sending_amplitude"))
