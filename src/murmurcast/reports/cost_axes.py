"""What curves are drawn against: epochs, channel uses, and over a radio seconds and joules."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.runs.result import Result

Against = Literal["epoch", "channel_uses", "air_seconds", "joules"]
_WORDS: dict[Against, str] = {
    "epoch": "epochs",
    "channel_uses": "channel uses",
    "air_seconds": "seconds",
    "joules": "energy",
}
_FAR_APART = 5  # times


def along(run: Result, against: Against) -> FloatArray | None:
    """[epochs] how much was used up at every evaluated epoch; millijoules are the mean over nodes.

    None where the run never uses the channel, or has no radio to take time or energy.
    """
    if against in ("air_seconds", "joules") and run.radio is None:
        return None
    used = np.asarray(run.metrics[against], np.float64)
    if against == "joules":
        used = 1e3 * used.mean(axis=1)
    return used if used.any() else None


def shown(runs: Sequence[Result]) -> tuple[Against, ...]:
    """What any of these runs can be drawn against."""
    return tuple(against for against in _WORDS if any(along(run, against) is not None for run in runs))


def is_logarithmic(runs: Sequence[Result], against: Against) -> bool:
    """Whether runs end so far apart that on a plain scale only the slowest could be seen."""
    if against in ("epoch", "channel_uses"):
        return False
    ends = [used[-1] for run in runs if (used := along(run, against)) is not None]
    return bool(ends) and max(ends) > _FAR_APART * min(ends)


def in_words(against: Against) -> str:
    """Within a sentence."""
    return _WORDS[against]


def title(runs: Sequence[Result], against: Against) -> str:
    """Of the axis, with its unit and with what is counted."""
    radios = [run.radio for run in runs if run.radio is not None]
    if against == "air_seconds":
        computing = any(radio.compute_seconds > 0 for radio in radios)
        return "time, s (on the air and computing)" if computing else "time on the air, s"
    if against == "joules":
        kinds = {radio.energy_in_words for radio in radios}
        counted = f" ({kinds.pop()})" if len(kinds) == 1 else ""
        return f"energy of a node, mJ{counted}"
    return in_words(against)
