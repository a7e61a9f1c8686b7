"""Runs side by side: where they ended, how far seeds and nodes lie apart, how soon they reached a target."""

from typing import NamedTuple

import numpy as np

from murmurcast.errors import Error
from murmurcast.privacy.certificate import unit_in_words
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.privacy.rounding import at_most
from murmurcast.runs.result import Result, listed, spread_over_seeds

_STRONGER = {
    "eavesdropper and one node": ("everybody",),
    "eavesdropper": ("everybody", "eavesdropper and one node"),
    "trusted server": ("everybody",),
}


NOT_CERTIFIED = "not certified"


class Row(NamedTuple):
    """One run.

    Attributes:
        name: What the run is called.
        algorithm: What it ran.
        final: Mean over nodes and seeds at the last epoch.
        spread: Standard deviation over seeds of the mean over nodes; None with one seed.
        worst: The worst node's mean over seeds.
        worst_node: Its number.
        epochs: First evaluated epoch at which the mean over nodes and seeds reaches the target; None if it never does.
        channel_uses: Up to that epoch.
        epsilon: What the run costs the worst node; None where nothing is promised.
        delta: The delta beside it.
        unit: What that protects.
        caveat: What must be said beside it, such as "trusted server".
        against: Whom epsilon holds against.
        weaker: (adversary, epsilon) of what is promised against weaker ones besides.
        radio: How nodes share the air, such as "own-slot, half duplex"; None without a radio.
        air_seconds: Up to the epoch at which the target is reached, over a radio: on the air, and computing as given.
        joules: Up to there, the mean over nodes.
    """

    name: str
    algorithm: str
    final: float
    spread: float | None
    worst: float
    worst_node: int
    epochs: int | None
    channel_uses: int | None
    epsilon: float | None
    delta: float
    unit: str
    caveat: str
    against: str = "everybody"
    weaker: tuple[tuple[str, float | None], ...] = ()
    radio: str | None = None
    air_seconds: float | None = None
    joules: float | None = None

    def epsilon_against(self, adversary: str) -> float | None:
        """What is promised against this adversary, or one that can do all that it can; None where nothing is."""
        promised = {self.against: self.epsilon, **dict(self.weaker)}
        epsilons = [promised.get(who) for who in (adversary, *_STRONGER.get(adversary, ()))]
        return min((epsilon for epsilon in epsilons if epsilon is not None), default=None)


class Comparison(NamedTuple):
    """Runs side by side.

    Attributes:
        metric: What is compared, such as "own_accuracy". An epsilon stands beside metrics of published models only.
        target: What runs are timed to; a run reaches it from below for an accuracy, from above for anything else.
        rows: One per run.
    """

    metric: str
    target: float
    rows: tuple[Row, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """What the columns are."""
        target = f"epochs to {self.target:.4g}"
        taken = ("s", "mJ") if self.has_radio else ()
        columns = ("run", "algorithm", self.metric, "spread", "worst (node)", target, "uses", *taken)
        only = self.adversaries == ("everybody",)
        return (*columns, *("epsilon" if only else f"epsilon, {who}" for who in self.adversaries))

    @property
    def has_radio(self) -> bool:
        """Whether any run went over a radio: time and energy then have a column each."""
        return any(row.radio for row in self.rows)

    @property
    def is_covered(self) -> bool:
        """Whether what is compared is of published models: a promise covers no others, and stands beside no others."""
        return self.metric.startswith("published_")

    @property
    def adversaries(self) -> tuple[str, ...]:
        """Against whom the runs promise anything, the strongest first: each has a column of its own.

        None where own models are compared.
        """
        if not self.is_covered:
            return ()
        promised = {row.against for row in self.rows if row.epsilon is not None}
        promised |= {who for row in self.rows for who, _ in row.weaker}
        return tuple(who for who in ADVERSARIES if who in promised) or ("everybody",)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """One line of text per run."""
        return [
            (
                row.name,
                row.algorithm,
                f"{row.final:.4f}",
                "" if row.spread is None else f"{row.spread:.4f}",
                f"{row.worst:.4f} ({row.worst_node})",
                "never" if row.epochs is None else str(row.epochs),
                "" if row.channel_uses is None else str(row.channel_uses),
                *(_taken(row) if self.has_radio else ()),
                *(_promise(row, who) for who in self.adversaries),
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [self.headings, *self.cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def compare(*runs: Result, metric: str | None = None, target: float | None = None) -> Comparison:
    """Sets runs side by side. What they promise is shown as it stands in run.json; `murmurcast.compare` checks it.

    Args:
        runs: At least one.
        metric: A metric of every node, such as "published_accuracy"; by default "own_accuracy" (the paper's curves), or
            "own_loss" where there is no accuracy.
        target: Time how soon runs reach this; by default what the weakest of them ends with.
    """
    runs = tuple(listed(runs))
    if target is not None and not np.isfinite(target):
        raise Error(f"target is {target:g}, expected a finite number", hint="give an accuracy or a loss to reach")
    metric = metric or next(
        name for name in ("own_accuracy", "own_loss") if all(name in run.metrics for run in runs) or name == "own_loss"
    )
    known = set.intersection(*(_metric_names(run) for run in runs))
    if metric not in known:
        raise Error(f'"{metric}" is not a metric of all these runs', hint=f"they share {', '.join(sorted(known))}")
    higher = metric.endswith("accuracy")
    finals = [float(run.final(metric).mean()) for run in runs]
    if target is None:
        finite = [final for final in finals if np.isfinite(final)] or [np.nan]  # a run that diverged sets no target
        target = min(finite) if higher else max(finite)
    return Comparison(metric, target, tuple(_row(run, metric, target, higher) for run in runs))


def _taken(row: Row) -> tuple[str, str]:
    """Seconds and millijoules up to the target; a dash where there is no radio."""
    if not row.radio:
        return "-", "-"
    if row.air_seconds is None or row.joules is None:
        return "", ""
    return f"{row.air_seconds:.3g}", f"{row.joules * 1e3:.3g}"


def _promise(row: Row, adversary: str) -> str:
    epsilon = row.epsilon_against(adversary)
    if epsilon is None:
        return NOT_CERTIFIED if row.caveat == NOT_CERTIFIED else "not promised"
    return f"{at_most(epsilon, 3)} ({row.caveat if row.caveat and adversary == row.against else row.unit})"


def _metric_names(run: Result) -> set[str]:
    return {str(name) for name, values in run.metrics.items() if values.dims == ("seed", "epoch", "node")}


def _row(run: Result, metric: str, target: float, higher: bool) -> Row:
    final = run.final(metric)
    by_node = final.mean(axis=0)
    worst = int(by_node.argmin() if higher else by_node.argmax())
    curve = np.asarray(run.metrics[metric].mean(("seed", "node")))
    # A target that is a run's own final mean is reached by it, whatever the rounding.
    close = 1e-6 * max(1.0, abs(target))
    reached = np.flatnonzero(curve >= target - close if higher else curve <= target + close)
    first = int(reached[0]) if len(reached) else None
    privacy, radio = run.info["privacy"], run.radio
    epochs = None if first is None else int(run.metrics["epoch"][first])
    return Row(
        name=run.name,
        algorithm=run.info["algorithm"],
        final=float(final.mean()),
        spread=float(spread_over_seeds(final.mean(axis=1))) if len(final) > 1 else None,
        worst=float(by_node[worst]),
        worst_node=worst,
        epochs=epochs,
        channel_uses=None if first is None else int(run.metrics["channel_uses"][first]),
        epsilon=privacy["epsilon"],
        delta=privacy["delta"],
        unit=unit_in_words(privacy["unit"], privacy.get("records_per_person", 1)),
        caveat=privacy["caveat"],
        against=privacy["against"],
        weaker=tuple((one["against"], one["epsilon"]) for one in privacy["weaker"]),
        radio=None if radio is None else radio.access_in_words,
        air_seconds=None if radio is None or epochs is None else float(radio.seconds_until(epochs)),
        joules=None if radio is None or epochs is None else float(radio.joules_until(epochs).mean()),
    )
