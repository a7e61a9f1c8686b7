"""What one node put on the air in some epochs of a run: its messages, by the very `send` that the run called."""

from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.algorithms.base import Algorithm, Round
from murmurcast.audits.transcript import transcripts
from murmurcast.channels.base import is_over_radio
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision
from murmurcast.runs.result import Result

_TOLERANCE = 1e-3  # of the power: rounding differs between machines, other noise or data differs by far more


class Message(NamedTuple):
    """One signal of a node.

    Attributes:
        epoch: From 1.
        name: Of its round.
        receiver: Whom it is made for; None for one that is made for all.
        signal: [dim] real, as `send` made it.
        pilot: Amplitude of the symbols before it; without a radio the root of the node's power.
        turn: By which the phase of both is turned, in public; 1 unless a radio has dither.
    """

    epoch: int
    name: str
    receiver: int | None
    signal: NDArray[Any]
    pilot: float
    turn: complex = 1.0


class Overheard(NamedTuple):
    """What a node put on the air.

    Attributes:
        messages: In the order in which they are sent.
        energy: [epochs] of the loudest round of each, as metrics have it.
    """

    messages: tuple[Message, ...]
    energy: FloatArray


def require_seeded(source: str) -> None:
    """The noise can be drawn again."""
    if source != "seeded":
        raise Error(
            "the noise of this run was secure: its keys are gone, so nobody can make the same signals again",
            hint='export a run with privacy.noise_source = "seeded", which is a simulation',
        )


def overhear(
    algorithm: Algorithm,
    problem: Problem,
    *,
    seed: int,
    node: int,
    epochs: range,
    precision: Precision = "float32",
    on_epoch: Count = quiet,
) -> Overheard:
    """Does a run again up to the last of some epochs, and keeps what one node sent in them.

    Nothing but the signals is kept: what every antenna in reach hears. Models stay where they are.

    Args:
        algorithm: One whose nodes talk over the air, with noise from a seed.
        problem: What they learn.
        seed: Of the run.
        node: Whose messages.
        epochs: Which, from 1, without gaps.
        precision: Of the run.
        on_epoch: Called with (epochs done, epochs in all).
    """
    network = algorithm.setup.network
    require_seeded(algorithm.setup.budget.noise_source)
    _require_waveform(algorithm)
    _check.at_least(0, node=node)
    if node >= network.nodes:
        raise Error(f"node is {node}, and nodes are 0 to {network.nodes - 1}", hint="name one of them")
    if not epochs or epochs[0] < 1 or epochs[-1] > algorithm.epochs or epochs.step != 1:
        raise Error(
            f"epochs are {epochs.start} to {epochs.stop - 1}, and the run has 1 to {algorithm.epochs}",
            hint="give the first and the last of them, such as 1-5",
        )
    kept = transcripts(algorithm, problem, (seed,), precision, on_epoch, epochs=epochs[-1])
    messages: list[Message] = []
    energy = np.zeros(len(epochs))
    for place, epoch in enumerate(epochs):
        for one, on_air in zip(algorithm.rounds, kept.rounds, strict=True):
            if not one.channel.on_air:  # a public point, sent on digitally: it has no waveform here
                continue
            sent = on_air.sent[0, epoch - 1, node]
            with jax.enable_x64(precision == "float64"):
                messages += _messages(one, network, node, epoch, sent)
            energy[place] = max(energy[place], float(one.channel.energy(sent[..., None, :])[0]))
    if not all(np.isfinite(message.signal).all() for message in messages):
        raise Error(f"node {node} sends values that are not finite: the run diverged", hint="export earlier epochs")
    return Overheard(tuple(messages), energy)


def _messages(one: Round, network: Network, node: int, epoch: int, sent: NDArray[Any]) -> list[Message]:
    """Of one round, from [dim] or [signals, dim]."""
    channel = one.channel
    pilot, turn = float(np.sqrt(network.power[node])), 1.0 + 0.0j
    if is_over_radio(channel):
        pilot, turn = channel.pilot_amplitude(epoch, node), channel.turn(epoch, node, sent.dtype)
    if channel.signals is None:
        return [Message(epoch, one.name, None, sent, pilot, turn)]
    receivers = network.neighbours(node)
    signals = zip(receivers, sent[: len(receivers)], strict=True)  # short lists are filled up with nothing
    return [Message(epoch, one.name, receiver, signal, pilot, turn) for receiver, signal in signals]


def _require_waveform(algorithm: Algorithm) -> None:
    """Signals are sent as they are, not as bits."""
    for one in algorithm.rounds:
        if is_over_radio(one.channel) and not one.channel.carries_as_sent:
            raise Error(
                'nodes with radio.access = "digital" send coded bits, and their waveform is not modelled',
                hint='export a run with another access, such as "own-slot"',
            )


def require_as_recorded(run: Result, overheard: Overheard, *, seed: int, node: int, epochs: range) -> None:
    """The signals have the power that the run wrote down, at all of these epochs at which it was evaluated.

    Raises:
        Error: They are of other data, or of another version.
    """
    power = float(run.ledger["power"][node])
    recorded = run.metrics["sent_power"].sel(seed=seed)[:, node]
    for epoch in sorted(set(epochs) & set(recorded["epoch"].values.tolist())):
        stated, measured = float(recorded.sel(epoch=epoch)), float(overheard.energy[epoch - epochs[0]]) / power
        if not abs(measured - stated) <= _TOLERANCE * max(abs(stated), 1e-30):
            raise Error(
                f"in epoch {epoch} node {node} would send {measured:.6g} of its power, and the run says {stated:.6g}: "
                "these are not its signals",
                hint="put the data of the run beside it, and use the versions that its run.json names",
            )
