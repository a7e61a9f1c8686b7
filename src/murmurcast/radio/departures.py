"""Where a radio departs from what the paper assumes: one plain sentence each, before anything is trained."""

from typing import TYPE_CHECKING

import numpy as np

from murmurcast.network.graph import Network
from murmurcast.radio import units
from murmurcast.radio.phases import alignment

if TYPE_CHECKING:
    from murmurcast.radio.settings import Radio


def departures(network: Network, radio: "Radio", slots: int, symbols: float) -> tuple[str, ...]:
    """All that apply, the weightiest first.

    Args:
        network: Who hears whom.
        radio: What carries the signals.
        slots: Of one round.
        symbols: Of one message, pilots included.
    """
    lines = (
        _access(network, radio),
        _duplex(network, radio, slots),
        f"A message is {symbols:.0f} complex symbols in each slot; the paper counts it as one channel use.",
        _fading(radio),
        _pilots(radio),
        "Receivers have noise of their own, which the paper leaves out; it is never counted for privacy.",
    )
    return tuple(line for line in lines if line)


def _access(network: Network, radio: "Radio") -> str:
    if radio.access == "own-slot":
        return "Signals do not add up on the air: every sender is heard alone, and receivers form the sum."
    if radio.access == "digital":
        return (
            f"Signals do not add up on the air: every sender is heard alone, rounded to {radio.bits} bits a parameter, "
            "and receivers form the sum."
        )
    if radio.access == "referenced":
        return (
            "Phases do not agree at the receivers: weights are random and complex, and only their mean mixes as the "
            "paper's do."
        )
    return f"Phases agree at every receiver: {_alignment(network)}."


def _alignment(network: Network) -> str:
    if network.one_way_link is not None:
        return "no known radio does this where links go one way only"
    phase_alignment = alignment(network)
    if phase_alignment.possible:
        return "possible here, because the network is a tree, where every node knows the phases of its links exactly"
    if phase_alignment.reciprocal_conditions == 0:
        return (
            "possible here, with one odd cycle, only where both directions of every link turn the phase alike, and "
            "every node knows the phases of its links exactly"
        )
    return (
        "one signal would have to arrive in phase at all who hear it, which is possible on trees, and this network "
        f"leaves {phase_alignment.conditions} conditions that only chance could meet; no known radio does this on this "
        "network"
    )


def _duplex(network: Network, radio: "Radio", slots: int) -> str:
    if radio.duplex == "half":
        return f"Nodes do not hear while they send (half duplex): a round takes {slots} slots, the paper's takes one."
    if radio.access in ("own-slot", "digital"):
        return f"Every sender has a slot of its own: a round takes {slots} slots, the paper's takes one."
    thermal = units.thermal_noise(radio.bandwidth_hz, radio.noise_figure_db, radio.temperature_k)
    raised = float(10 * np.log10(radio.noise_w(network.power).max() / thermal))
    return (
        f"Nodes hear while they send (full duplex): their own signal is taken out to {radio.self_interference_db:g} "
        f"dB, and what is left of it raises the receivers' noise by {raised:.2g} dB."
    )


def _fading(radio: "Radio") -> str:
    if radio.fading == "none" and radio.trace is None:
        return ""
    return (
        "Gains change from epoch to epoch, and nobody compensates that: weak links get small weights, and the paper's "
        "recursion for z freezes at the gains of the first epochs. The numbers here are those of the mean gains."
    )


def _pilots(radio: "Radio") -> str:
    drift = "" if radio.recentre_every else ", and such errors add up (set radio.recentre_every = 20 against it)"
    if radio.access == "digital":
        return ""
    return f"Receivers know the channel from {radio.pilots} pilot symbols, and not exactly{drift}."
