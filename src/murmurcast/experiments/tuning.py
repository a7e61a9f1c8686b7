"""What a search for settings found: every setting that was tried on public data, and the one that is chosen."""

import math
from typing import Any, NamedTuple

from murmurcast.experiments.build import Experiment
from murmurcast.experiments.schema import ScheduleSection
from murmurcast.experiments.tune_search import Setting, Try
from murmurcast.experiments.tuned_file import Changes
from murmurcast.privacy.settings_chosen import PublicChoice


class Tuning(NamedTuple):
    """Settings chosen on public data.

    Attributes:
        public: The name of the public set.
        sha256: Of the file's bytes, or of the arrays of a set by name as they come.
        training: How many public examples were trained on.
        test: How many others they were judged on.
        metric: "accuracy", or "loss" where there is none.
        seeds: How many seeds every value is a mean of.
        tries: All settings that were tried, in their order.
        chosen: The best of them.
        as_in_file: The experiment's own settings, if they were among them.
        warnings: What may mislead.
        experiment: The private experiment with the chosen settings, and with the statement where they come from.
    """

    public: str
    sha256: str
    training: int
    test: int
    metric: str
    seeds: int
    tries: tuple[Try, ...]
    chosen: Try
    as_in_file: Try | None
    warnings: tuple[str, ...]
    experiment: Experiment

    @property
    def statement(self) -> str:
        """As `privacy.settings_chosen` says it, and certificates print it."""
        return PublicChoice(self.public, self.sha256, len(self.tries)).statement

    @property
    def part(self) -> str:
        """Which part of the public set was used for what."""
        return (
            f"trained on {self.training} examples of {self.public}, judged on its test part, {self.test} others: "
            "both are public"
        )

    @property
    def changes(self) -> Changes:
        """What is written into the experiment file, by section and key."""
        return changes(self.chosen.setting, self.statement, self.experiment.schedule)

    @property
    def headings(self) -> tuple[str, ...]:
        """What the columns of the table are."""
        return "clip", "step", "decay", "epochs", self.metric, "spread", ""

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """One line of text per setting that was tried, the best first."""
        sign = -1 if self.metric == "accuracy" else 1

        def place(one: Try) -> float:
            return sign * one.value if math.isfinite(one.value) else math.inf

        return [self._line(one) for one in sorted(self.tries, key=place)]

    def _line(self, one: Try) -> tuple[str, ...]:
        setting = one.setting
        remarks = [
            *(["chosen"] if one is self.chosen else []),
            *(["as in the file"] if self.as_in_file is not None and setting == self.as_in_file.setting else []),
            *([one.refused] if one.refused else ["diverged"] if not math.isfinite(one.value) else []),
        ]
        return (
            f"{setting.clip:g}",
            f"{setting.step:g}",
            setting.decay,
            str(setting.epochs),
            f"{one.value:.4f}" if math.isfinite(one.value) else "-",
            f"{one.spread:.4f}" if math.isfinite(one.spread) else "-",
            ", ".join(remarks),
        )

    def __str__(self) -> str:
        rows = [self.headings, *self.cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "public": self.public,
            "sha256": self.sha256,
            "training": self.training,
            "test": self.test,
            "metric": self.metric,
            "seeds": self.seeds,
            "chosen": _plain(self.chosen),
            "as_in_file": None if self.as_in_file is None else _plain(self.as_in_file),
            "tries": [_plain(one) for one in self.tries],
            "settings_chosen": self.statement,
            "warnings": list(self.warnings),
        }


def changes(setting: Setting, statement: str, schedule: ScheduleSection) -> Changes:
    """A setting and its origin, as an experiment file has them; what they were given instead of is left out."""
    rounds = {("schedule", key): getattr(schedule, key) for key in ("rounds", "accelerated")}
    return {
        ("schedule", "uses"): None,
        ("schedule", "travel"): None,
        **(rounds if schedule.rounds > 1 else {}),
        ("privacy", "clip"): setting.clip,
        ("privacy", "settings_chosen"): statement,
        ("schedule", "epochs"): setting.epochs,
        ("schedule", "step"): setting.step,
        ("schedule", "decay"): setting.decay,
    }


def _plain(one: Try) -> dict[str, Any]:
    return {**one.setting._asdict(), "value": one.value, "spread": one.spread, "refused": one.refused}
