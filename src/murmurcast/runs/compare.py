"""Runs side by side: where they ended, how far seeds and nodes lie apart, how soon they reached a target."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from murmurcast._display import html_of
from murmurcast.errors import Error
from murmurcast.privacy.certificate import unit_in_words
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.privacy.rounding import at_most
from murmurcast.runs import over_seeds
from murmurcast.runs.result import Result, listed, samples_in_words, spread_over_seeds

if TYPE_CHECKING:
    import pandas as pd

_STRONGER = {
    "eavesdropper and one node": ("everybody",),
    "eavesdropper": ("everybody", "eavesdropper and one node"),
    "trusted server": ("everybody",),
}


NOT_CERTIFIED = "not certified"
_OF_PRIVACY = ("epsilon", "delta", "unit", "caveat", "against", "weaker")
_OF_RADIO = ("radio", "air_seconds", "joules")


class Row(NamedTuple):
    """One run.

    Attributes:
        name: What the run is called.
        algorithm: What it ran.
        final: Mean over nodes and seeds at the last epoch.
        spread: Standard deviation over seeds of the mean over nodes; None with one seed.
        worst: The worst node's mean over seeds.
        worst_node: Its number; of a large network, among the nodes of the public sample that was evaluated.
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
        seeds: Of the run.
        interval: (low, high), the 95 % interval of `final` over seeds, by Student's t; None with one seed.
        difference: `final` minus that of the first run; None for the first run.
        difference_interval: Its 95 % interval; None where either run has one seed.
        paired: Whether both runs have the same seeds, and the difference was taken seed by seed.
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
    seeds: tuple[int, ...] = ()
    interval: over_seeds.Interval | None = None
    difference: float | None = None
    difference_interval: over_seeds.Interval | None = None
    paired: bool | None = None

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
        samples: A line for metrics that are of a sample of nodes; empty where they are of all.
    """

    metric: str
    target: float
    rows: tuple[Row, ...]
    samples: tuple[str, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        """What the columns are."""
        target = f"epochs to {self.target:.4g}"
        taken = ("s", "mJ") if self.has_radio else ()
        difference = ("against first",) if self.has_differences else ()
        columns = ("run", "algorithm", self.metric, "spread", *difference, "worst (node)", target, "uses", *taken)
        only = self.adversaries == ("everybody",)
        return (*columns, *("epsilon" if only else f"epsilon, {who}" for who in self.adversaries))

    @property
    def has_radio(self) -> bool:
        """Whether any run went over a radio: time and energy then have a column each."""
        return any(row.radio for row in self.rows)

    @property
    def has_differences(self) -> bool:
        """Whether there is a second run to hold against the first."""
        return len(self.rows) > 1

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
                _with_interval(f"{row.final:.4f}", row.interval),
                "" if row.spread is None else f"{row.spread:.4f}",
                *((_difference(row),) if self.has_differences else ()),
                f"{row.worst:.4f} ({row.worst_node})",
                "never" if row.epochs is None else str(row.epochs),
                "" if row.channel_uses is None else str(row.channel_uses),
                *(_taken(row) if self.has_radio else ()),
                *(_promise(row, who) for who in self.adversaries),
            )
            for row in self.rows
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said below the table, a line each."""
        known = [row.interval is not None for row in self.rows]
        alone = "" if all(known) else "; none with one seed"
        mean = (
            f"mean over nodes and seeds, ± half its 95 % interval (Student's t over seeds{alone})"
            if any(known)
            else "mean over nodes; one seed, so no interval"
        )
        lines = [f"{mean}; spread: standard deviation over seeds; uses: of the channel"]
        if self.has_differences:
            lines.append(f"against first: minus the first run{self._how_subtracted()}")
        if self.has_radio:
            lines.append("s, mJ: time and a node's mean energy up to the same epoch, over a radio")
        return (*lines, *self.samples)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, for programs; what no run has, and an epsilon beside own models, is left out."""
        left_out = (*(() if self.is_covered else _OF_PRIVACY), *(() if self.has_radio else _OF_RADIO))
        return [{key: value for key, value in row._asdict().items() if key not in left_out} for row in self.rows]

    def to_frame(self) -> "pd.DataFrame":
        """A table of pandas with one row for every run: numbers in full, intervals as two columns each.

        `seeds` is how many there are. Where runs promise something against different adversaries there is a column for
        each, such as `epsilon, eavesdropper`.
        """
        import pandas as pd

        lines = []
        for row, record in zip(self.rows, self.records, strict=True):
            line: dict[str, Any] = {"metric": self.metric, "target": self.target}
            for key, value in record.items():
                if key.endswith("interval"):
                    ends = (np.nan, np.nan) if value is None else value
                    line |= dict(zip((key.replace("interval", end) for end in ("low", "high")), ends, strict=True))
                elif key != "weaker":
                    line[key] = len(value) if key == "seeds" else value
            if self.adversaries != ("everybody",):
                line |= {f"epsilon, {who}": row.epsilon_against(who) for who in self.adversaries}
            lines.append(line)
        return pd.DataFrame(lines)

    def _how_subtracted(self) -> str:
        """Whether runs were subtracted seed by seed, in words."""
        paired = {row.paired for row in self.rows[1:]}
        unpaired = "*: the seeds are others, so not seed by seed (Welch's interval)"
        return f"{', seed by seed' if True in paired else ''}{f'; {unpaired}' if False in paired else ''}"

    def _repr_html_(self) -> str:
        return html_of(self)

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
    rows = [_row(run, metric, target, higher) for run in runs]
    others = (_against(row, run, runs[0], metric) for row, run in zip(rows[1:], runs[1:], strict=True))
    return Comparison(metric, target, (rows[0], *others), samples_in_words(*runs))


def _against(row: Row, run: Result, first: Result, metric: str) -> Row:
    """The row, with how far its run lies above the first."""
    difference = over_seeds.difference(_by_seed(run, metric), _by_seed(first, metric))
    return row._replace(difference=difference.mean, difference_interval=difference.interval, paired=difference.paired)


def _by_seed(run: Result, metric: str) -> dict[int, float]:
    """The mean over nodes at the last epoch, by seed."""
    means = run.final(metric).mean(axis=1, dtype=np.float64)
    return {int(seed): float(mean) for seed, mean in zip(run.metrics["seed"].values, means, strict=True)}


def _with_interval(text: str, interval: over_seeds.Interval | None) -> str:
    return text if interval is None else f"{text} ± {over_seeds.half_width(interval):.4f}"


def _difference(row: Row) -> str:
    """How far a run lies above the first; a star where their seeds differ."""
    if row.difference is None:
        return "-"
    star = "" if row.paired else " *"
    return f"{_with_interval(f'{row.difference:+.4f}', row.difference_interval)}{star}"


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
    curve = np.asarray(run.metrics[metric].mean(("seed", "node"), skipna=False))
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
        seeds=tuple(int(seed) for seed in run.metrics["seed"].values),
        interval=over_seeds.interval(final.mean(axis=1, dtype=np.float64)),
        worst=float(by_node[worst]),
        worst_node=int(run.metrics["node"][worst]),
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
