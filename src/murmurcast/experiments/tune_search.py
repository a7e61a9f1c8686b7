"""Which settings are tried, and in which order: a coarse grid, whatever lies beyond its edge, then the surroundings.

How far a run can come is the sum of its steps times its clip, and so is the noise that a budget asks for. Clip, epochs
and decay are therefore changed with that product held fixed: what changes then is their own effect, and not the length
of the way.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple, Protocol

from murmurcast.planning.schedule import Decay, Schedule

COARSE = 4.0  # between neighbours of the grid
STEPS_EACH_WAY = 3  # of the grid of steps, from the file's
_BEYOND = 3  # further ones at an edge, at most
_FEWER_EPOCHS = (2, 4)  # parts of the file's
_DIGITS = 4
_ALIKE = 1e-3  # relative; rounding a step moves it by less


class Setting(NamedTuple):
    """What is chosen.

    Attributes:
        clip: As privacy.clip.
        step: As schedule.step, gamma_1.
        epochs: As schedule.epochs.
        decay: As schedule.decay.
    """

    clip: float
    step: float
    epochs: int
    decay: Decay

    @property
    def way(self) -> float:
        """Sum of the steps that what is published rests on, times the clip."""
        return self.clip * self.step * _sum_of_steps(self.epochs, self.decay)

    def in_words(self) -> str:
        """For a line of progress."""
        return f"clip {self.clip:g}, {self.decay} step {self.step:g}, {self.epochs} epochs"


class Try(NamedTuple):
    """A setting, and how well it did.

    Attributes:
        setting: What was tried.
        value: Of the metric, mean over nodes and seeds; not a number where it diverged or could not be planned.
        spread: Standard deviation over seeds of the mean over nodes; not a number with one seed.
        refused: Why it could not be planned or run; empty where it could.
    """

    setting: Setting
    value: float
    spread: float = math.nan
    refused: str = ""


class Choices(NamedTuple):
    """What may be tried of each; () leaves it to the search, one value fixes it.

    Attributes:
        clips: Of privacy.clip.
        steps: Of schedule.step; taken as they are.
        epochs: Of schedule.epochs.
        decays: Of schedule.decay.
    """

    clips: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()
    epochs: tuple[int, ...] = ()
    decays: tuple[Decay, ...] = ()


class Judge(Protocol):
    """Says how well a setting does."""

    def __call__(self, setting: Setting, /) -> Try:
        """The setting with its value."""
        ...


class OnTry(Protocol):
    """Told how far a search has come."""

    def __call__(self, done: int, of: int, words: str, /) -> None:
        """How many settings are done, of about how many, and which comes next."""
        ...


Change = Callable[[Setting, float], Setting]


def search(first: Setting, choices: Choices, judge: Judge, on_try: OnTry, *, largest: bool) -> tuple[Try, ...]:
    """All settings that were tried, in their order.

    Args:
        first: The file's own settings: where the grid is centred.
        choices: What may be tried.
        judge: Says how well a setting does.
        on_try: Told how far it has come.
        largest: Whether the largest value is the best, as of an accuracy; else the smallest.
    """
    tried: dict[Setting, Try] = {}
    expected = _expected(choices)

    def attempt(settings: Iterable[Setting]) -> Setting:
        for setting in settings:
            if not any(_same(setting, one) for one in tried):
                on_try(len(tried), max(expected, len(tried) + 1), setting.in_words())
                tried[setting] = judge(setting)
        best_try = best(tried.values(), largest=largest)
        return first if best_try is None else best_try.setting

    chosen = attempt(_grid(first, choices))
    if not choices.steps:
        chosen = _onwards(chosen, attempt, _with_step, lambda one: one.step)
    if not choices.clips:
        chosen = attempt(_with_clip(chosen, factor, choices) for factor in (1 / COARSE, COARSE))
        chosen = _onwards(chosen, attempt, lambda one, by: _with_clip(one, by, choices), lambda one: one.clip)
    chosen = attempt(_schedules(chosen, first, choices))
    for change, factor in _finer(choices):
        chosen = attempt(change(chosen, by) for by in (1 / factor, factor))
    on_try(len(tried), len(tried), "done")
    return tuple(tried.values())


def best(tries: Iterable[Try], *, largest: bool) -> Try | None:
    """The best that has a value, of equals the first; None where none has."""
    finite = [one for one in tries if math.isfinite(one.value)]
    return (max if largest else min)(finite, key=lambda one: one.value, default=None)


def edges(chosen: Setting, tries: Iterable[Try], choices: Choices) -> tuple[str, ...]:
    """Where the chosen setting is the least or the most of what was tried: something better may lie beyond."""

    def length(setting: Setting) -> float:
        return setting.step if choices.steps else setting.way

    measures: dict[str, tuple[Callable[[Setting], float], str]] = {
        "step": (length, f"step {chosen.step:g}"),
        "clip": (lambda one: one.clip, f"clip {chosen.clip:g}"),
        "epochs": (lambda one: one.epochs, f"{chosen.epochs} epochs"),
    }
    settings = [one.setting for one in tries]
    lines = []
    for name, (measure, words) in measures.items():
        side = _edge(measure(chosen), [measure(one) for one in settings])
        if side:
            lines.append(
                f"the best lies at the edge: {words} is the {side} that was tried; try others with --try {name}=VALUE"
            )
    return tuple(lines)


def _edge(value: float, tried: list[float]) -> str:
    """Which edge of what was tried a value is at; empty where it is at none, or where it was the only one."""
    low, high = min(tried) * (1 + _ALIKE), max(tried) * (1 - _ALIKE)
    if high <= low:
        return ""
    return "least" if value <= low else "most" if value >= high else ""


def rounded(value: float) -> float:
    """To as many digits as are worth writing down."""
    return float(f"{value:.{_DIGITS}g}")


def _same(one: Setting, other: Setting) -> bool:
    """Up to the last digit that rounding leaves of a step."""
    return one._replace(step=other.step) == other and math.isclose(one.step, other.step, rel_tol=_ALIKE)


def _sum_of_steps(epochs: int, decay: Decay) -> float:
    """For a first step of 1. The last epoch's gradient is in nothing that is sent or published."""
    return float(Schedule(epochs=epochs, decay=decay).steps[:-1].sum())


def _grid(first: Setting, choices: Choices) -> Iterator[Setting]:
    """Clips, epochs and decays that are given, with steps that are given or lie around the file's."""
    given = product(choices.clips or (first.clip,), choices.epochs or (first.epochs,), choices.decays or (first.decay,))
    for clip, epochs, decay in given:
        if choices.steps:
            yield from (Setting(clip, step, epochs, decay) for step in choices.steps)
            continue
        centre = _as_far(first, Setting(clip, first.step, epochs, decay))
        yield from (_with_step(centre, COARSE**power) for power in range(-STEPS_EACH_WAY, STEPS_EACH_WAY + 1))


def _onwards(
    chosen: Setting,
    attempt: Callable[[Iterable[Setting]], Setting],
    change: Change,
    value: Callable[[Setting], float],
) -> Setting:
    """On beyond the edge, as long as it gets better there: only the next one tells whether this is an edge."""
    for factor in (1 / COARSE, COARSE):
        for _ in range(_BEYOND):
            further = change(chosen, factor)
            best_setting = attempt([further])
            if value(best_setting) != value(further):
                break
            chosen = best_setting
    return chosen


def _schedules(chosen: Setting, first: Setting, choices: Choices) -> Iterator[Setting]:
    """Other decays, and fewer epochs: more of them would use the channel more often than the file asks for."""
    if choices.steps:
        return
    decays: tuple[Decay, ...] = ("constant", "sqrt")
    if not choices.decays:
        yield from (_as_far(chosen, chosen._replace(decay=decay)) for decay in decays if decay != chosen.decay)
    if not choices.epochs:
        fewer = (first.epochs // part for part in _FEWER_EPOCHS)
        yield from (_as_far(chosen, chosen._replace(epochs=epochs)) for epochs in fewer if epochs >= 2)


def _finer(choices: Choices) -> Iterator[tuple[Change, float]]:
    """Half way to the neighbours, and half of that for steps."""
    root = math.sqrt(COARSE)
    if not choices.steps:
        yield _with_step, root
    if not choices.clips:
        yield lambda one, by: _with_clip(one, by, choices), root
    if not choices.steps:
        yield _with_step, math.sqrt(root)


def _with_step(setting: Setting, factor: float) -> Setting:
    return setting if factor == 1 else setting._replace(step=rounded(setting.step * factor))


def _with_clip(setting: Setting, factor: float, choices: Choices) -> Setting:
    changed = setting._replace(clip=rounded(setting.clip * factor))
    return changed if choices.steps else _as_far(setting, changed)


def _as_far(before: Setting, setting: Setting) -> Setting:
    """The setting with the step that makes its way as long as it was before."""
    same = setting._replace(step=before.step)
    return same if same.way == before.way else same._replace(step=rounded(before.step * before.way / same.way))


def _expected(choices: Choices) -> int:
    """About how many settings will be tried."""
    steps = len(choices.steps) or 2 * STEPS_EACH_WAY + 1
    grid = steps * max(1, len(choices.clips)) * max(1, len(choices.epochs)) * max(1, len(choices.decays))
    further = 2 * len(list(_finer(choices))) + (0 if choices.clips else 3)
    schedules = 0 if choices.steps else (not choices.decays) + 2 * (not choices.epochs)
    return grid + further + schedules
