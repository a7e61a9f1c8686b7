"""The page of a sweep: what was varied, what came out of it, what it costs, and how it was made."""

from collections.abc import Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from murmurcast import _files
from murmurcast.algorithms.method import Method
from murmurcast.certificates.compare import shown
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt
from murmurcast.errors import Error
from murmurcast.reports import charts, cost_axes, sweep_charts, sweep_table
from murmurcast.reports.page import Block, Chart, Code, Facts, Row, Section, Table, Text, Verdict, number, render
from murmurcast.reports.promises import promises
from murmurcast.reports.runs import citation, in_one_column, origin, require_path
from murmurcast.reports.sweep_lines import View, default_axis, is_drawable, view
from murmurcast.runs.ranking import NOT_PAID
from murmurcast.runs.result import Result, samples_in_words
from murmurcast.runs.sweep import ALGORITHM, Sweep, text_of
from murmurcast.runs.sweep_data import in_order, labels

_LONG = 120  # characters
_KINDS = ("accuracy", "distance", "loss")


def report(sweep: Sweep, path: Path | str, methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt) -> None:
    """Writes one self-contained, interactive page about a sweep. It shows an epsilon only where an account holds.

    Args:
        sweep: At least one of its points is done.
        path: Where to write it; ends in .html. A file that is no such page is not overwritten.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
        rebuild: Makes a run's plan anew from its experiment, to compare every table with it; `murmurcast.report` does.
    """
    path = Path(path)
    require_path(path)
    _files.write_atomically(path, page_of(sweep, methods, rebuild).encode(errors="backslashreplace"))


def page_of(sweep: Sweep, methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt) -> str:
    """The page as text."""
    if not sweep.runs:
        raise Error(f"no point of {sweep.folder} is done", hint="finish the sweep first, with the same command")
    # Methods together, and within them by budget, as their colours are; the first has the first hue in all charts.
    points = sweep_table.in_order(sweep)
    names_of_methods = [point.values.get(ALGORITHM) for point in points]
    points = sorted(points, key=lambda point: names_of_methods.index(point.values.get(ALGORITHM)))
    runs = [shown(sweep.runs[point.name], methods, rebuild) for point in points]
    names = [point.name for point in points]
    sections = [_summary(sweep), Section("Points", tables(sweep), "points"), _curves(runs), _promises(runs, names)]
    if sweep.missing:
        sections.append(_missing(sweep))
    made_by = f"Made by murmurcast {version('murmurcast')} from the runs' own files. All of it is in this one file."
    lead = [in_short(sweep), made_by]
    return render(f"Sweep {sweep.name}", lead, [*sections, _how_it_was_made(sweep, runs, names), citation()])


def in_short(sweep: Sweep) -> str:
    """What was varied, in a line."""
    seeds = max(len(run.info["seeds"]) for run in sweep.runs.values())
    done = f"{len(sweep.runs)} of {len(sweep.points)} points" if sweep.missing else f"{len(sweep.points)} points"
    varied = "; ".join(f"{key} {_axis(sweep, key)}" for key in sweep.axes)
    return f"{done}, {seeds} seed{'s' if seeds > 1 else ''} each: {varied}."


def _axis(sweep: Sweep, key: str) -> str:
    """The values of a key in a few words."""
    values = in_order(labels(sweep.points, key))
    if key in sweep.drawn:
        return f"drawn, {text_of(values[0])} to {text_of(values[-1])}"
    listed = ", ".join(map(text_of, values))
    return listed if len(listed) < _LONG else f"of {len(values)} values"


def _summary(sweep: Sweep) -> Section:
    """What a reader comes for: the metric against everything that was varied."""
    metric = sweep_table.shown_metric(sweep, None)
    first = default_axis(sweep)
    # Words have no order to draw along: what they make of a difference is the difference between lines.
    keys = [first, *(key for key in sweep.axes if key != first and is_drawable(sweep, key))]
    blocks: list[Block] = [Verdict(f"Whoever chooses by this page: {NOT_PAID}.", "warning")]
    if sweep.failures:
        blocks.append(Verdict(f"{len(sweep.failures)} of {len(sweep.points)} points failed; see below.", "warning"))
    words = (
        "Hue says the algorithm, shade the budget: the stronger, the larger epsilon. Dashes and markers say what else "
        "differs. Means over nodes and seeds at the last epoch; bands are one standard deviation over seeds."
    )
    blocks.append(Text((words,)))
    for place, key in enumerate(keys):
        try:
            blocks += _against(view(sweep, metric, key), place)
        except Error as problem:  # too many panels: the table has them all
            blocks.append(Text((f"Not drawn against {key}: {problem}.",)))
    return Section("Summary", tuple(blocks), "summary")


def _against(shown_: View, place: int) -> list[Block]:
    metric = _sentence(shown_.metric.replace("_", " "))
    blocks: list[Block] = []
    for number_, (title, figure) in enumerate(sweep_charts.against_axis(shown_)):
        where = f", {title}" if title else ""
        blocks.append(Chart(figure, f"{metric} against {shown_.against}{where}.", f"chart-axis-{place}-{number_}"))
    return blocks


def tables(sweep: Sweep) -> tuple[Table, ...]:
    """All points in one table, and metrics of own models apart from every promise."""
    kind = sweep_table.shown_metric(sweep, None).split("_", 1)[1]
    note = (
        "Mean over nodes and seeds; spread: standard deviation over seeds; worst node: its mean over seeds; uses: of "
        "the channel."
    )
    note = " ".join((note, *(f"{_sentence(line)}." for line in samples_in_words(*sweep.runs.values()))))
    ends = {
        "published": f"{note} epsilon paid: by the node that pays most, recomputed from the ledger.",
        "own": f"{note} No noise covers own models, and no promise is about them: they stay on their nodes.",
    }
    return tuple(
        Table(
            f"At the end, {model} {kind}",
            tuple(one.replace("_", " ") for one in sweep_table.headings(sweep, f"{model}_{kind}")),
            tuple(sweep_table.cells(sweep, f"{model}_{kind}")),
            words,
        )
        for model, words in ends.items()
    )


def _curves(runs: Sequence[Result]) -> Section:
    kinds = [kind for kind in _KINDS if all(f"published_{kind}" in run.metrics for run in runs)]
    blocks: list[Block] = [
        Text(("Means over nodes and seeds; bands are one standard deviation over seeds. The legend hides and shows.",))
    ]
    for kind in kinds:
        caption = f"Published {kind} against epochs."
        blocks.append(Chart(charts.curves(runs, f"published_{kind}"), caption, f"chart-published-{kind}"))
    costs = [one for one in cost_axes.shown(runs)[1:] if one != "channel_uses" or _uses_differ(runs)]
    for against in costs:
        caption = f"Published {kinds[0]} against {cost_axes.in_words(against)}."
        figure = charts.curves(runs, f"published_{kinds[0]}", against)
        blocks.append(Chart(figure, caption, f"chart-{against.replace('_', '-')}"))
    return Section("Curves", tuple(blocks), "curves")


def _uses_differ(runs: Sequence[Result]) -> bool:
    """Whether channel uses say anything that epochs do not."""
    return len({run.info["channel_uses_per_epoch"] for run in runs}) > 1


def _promises(runs: Sequence[Result], names: Sequence[str]) -> Section:
    cover = (
        "A promise covers what is sent and published in one run. Several runs on the same data add up: murmurcast "
        "certify composes them."
    )
    notes = dict.fromkeys(f"{_sentence(run.info['privacy']['note'])}." for run in runs)
    return Section("Promises", (*promises(runs, names), Text((cover, *notes))), "promises")


def _missing(sweep: Sweep) -> Section:
    """Points without a finished run, and why."""
    known = {one.name: one for one in sweep.failures}
    rows: list[Row] = []
    for point in sweep.missing:
        one = known.get(point.name)
        why = "not run yet" if one is None else one.problem
        rows.append((point.name, why, "" if one is None else one.hint, "0" if one is None else str(one.attempts)))
    return Section(
        "Not done", (Table("Not done", ("point", "why", "what to do", "attempts"), tuple(rows)),), "not-done"
    )


def _how_it_was_made(sweep: Sweep, runs: Sequence[Result], names: Sequence[str]) -> Section:
    total = chain.from_iterable(run.info["seconds"].items() for run in runs)
    sums: dict[str, float] = {}
    for part, seconds in total:
        sums[part] = sums.get(part, 0.0) + float(seconds)
    seconds = Table(
        "Seconds, summed over all runs", tuple(sums), (tuple(number(value, ".2f") for value in sums.values()),)
    )
    blocks = (
        Facts(tuple((key, (_axis(sweep, key),)) for key in sweep.axes)),
        in_one_column(origin(runs, names)),
        seconds,
        Code("Settings that all points share", sweep.experiment),
    )
    return Section("How it was made", blocks, "origin")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
