"""The page of saved runs: what they reached, what they promise, over which networks, and how they came about."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from murmurcast import _files
from murmurcast._check import FloatArray
from murmurcast.algorithms.method import Method
from murmurcast.certificates.compare import shown
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt
from murmurcast.errors import Error
from murmurcast.privacy.certificate import COINS, PLAIN_BOUND
from murmurcast.privacy.rounding import at_most
from murmurcast.reports import charts, coalitions, cost_axes, ledger, radio
from murmurcast.reports.page import (
    GENERATOR,
    Block,
    Cell,
    Chart,
    Code,
    Row,
    Section,
    Table,
    Text,
    Verdict,
    number,
    render,
)
from murmurcast.reports.promises import is_not_certified, promise, promises
from murmurcast.runs.compare import NOT_CERTIFIED, Comparison, compare
from murmurcast.runs.result import Result, listed, samples_in_words

PAPER = (
    "Amir Ziaeddini, Yauhen Yakimenka, Jörg Kliewer. Differentially-Private Decentralized Learning in Heterogeneous "
    "Multicast Networks."
)
_KINDS = ("accuracy", "distance", "loss")
_ROWS_UP_TO = 500  # nodes; of more, the worst are listed
_WORST = 50
_COLUMNS_UP_TO = 6  # runs


def report(
    runs: Sequence[Result], path: Path | str, methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt
) -> None:
    """Writes one self-contained, interactive page about runs. It shows an epsilon only where a run's account holds.

    Args:
        runs: At least one, made by `mc.run` or read by `mc.load_run`; best of one problem.
        path: Where to write it; ends in .html. A file that is no such page is not overwritten.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
        rebuild: Makes a run's plan anew from its experiment, to compare every table with it; `murmurcast.report` does.
    """
    path = Path(path)
    require_path(path)
    _files.write_atomically(path, page_of(runs, methods, rebuild).encode(errors="backslashreplace"))


def require_path(path: Path) -> None:
    """A page may be written there."""
    if path.suffix != ".html":
        raise Error(f"{path} is not a page's name", hint="end it in .html")
    _files.require_writable(path)
    if path.exists() and not _is_ours(path):
        raise Error(f"{path} exists and is not a murmurcast report", hint="choose another name, or remove the file")


def page_of(runs: Sequence[Result], methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt) -> str:
    """The page as text."""
    runs = [shown(run, methods, rebuild) for run in listed(runs)]
    names = charts.labels(runs)
    title = f"Run {names[0]}" if len(runs) == 1 else f"{len(runs)} runs side by side"
    made_by = f"Made by murmurcast {version('murmurcast')} from the runs' own files. All of it is in this one file."
    lead = [f"{name}: {in_short(run)}" for name, run in zip(names, runs, strict=True)]
    of_each = [_run(run, name, place) for place, (run, name) in enumerate(zip(runs, names, strict=True), 1)]
    sections = [summary(runs, names), _curves(runs), *of_each, _how_it_was_made(runs, names), citation()]
    return render(title, [*lead, made_by], sections)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(1000)
    except OSError as problem:
        raise Error(f"{path} cannot be read: {problem.strerror}", hint="choose another name") from None


def in_short(run: Result) -> str:
    """What was run, in a line."""
    info = run.info
    seeds = f"{len(info['seeds'])} seed{'s' if len(info['seeds']) > 1 else ''}"
    return f"{info['algorithm']} on {info['problem']['nodes']} nodes, {info['epochs']} epochs, {seeds}"


def summary(runs: Sequence[Result], names: Sequence[str]) -> Section:
    """What runs promise, and where they ended: published models beside what is promised, own ones apart."""
    kind = shared_kinds(runs)[0]
    tables = [comparison_table(compare(*runs, metric=f"{model}_{kind}"), names) for model in ("published", "own")]
    notes = dict.fromkeys(f"{_sentence(run.info['privacy']['note'])}." for run in runs)
    cover = (
        "A promise covers what is sent and published. No noise covers the nodes' own models: they stay where they are."
    )
    return Section("Summary", (*promises(runs, names), Text((cover, *notes)), *tables), "summary")


def comparison_table(comparison: Comparison, names: Sequence[str]) -> Table:
    """A row for every run, under the names given."""
    rows: list[Row] = []
    for name, row, texts in zip(names, comparison.rows, comparison.cells, strict=True):
        promised = (row.epsilon_against(who) for who in comparison.adversaries)
        taken = (row.air_seconds, None if row.joules is None else 1e3 * row.joules) if comparison.has_radio else ()
        difference = (row.difference,) if comparison.has_differences else ()
        values = (row.final, row.spread, *difference, row.worst, row.epochs, row.channel_uses, *taken, *promised)
        rows.append((name, row.algorithm, *map(Cell, texts[2:], values)))
    note = " ".join(f"{line[:1].upper()}{line[1:]}." for line in comparison.notes)
    return Table(f"At the end, {_words(comparison.metric)}", tuple(map(_words, comparison.headings)), tuple(rows), note)


def _curves(runs: Sequence[Result]) -> Section:
    """All metrics against epochs, the first of them also against what it takes; power sent; what methods leave."""
    kinds = shared_kinds(runs)
    blocks: list[Block] = [
        Text(
            (
                "Lines are means over nodes and seeds; bands are one standard deviation over seeds. "
                "Choose in the legend what to see: single nodes are there too.",
                *(f"{_sentence(line)}." for line in samples_in_words(*runs)),
            )
        )
    ]
    for metric in (f"{model}_{kind}" for kind in kinds for model in ("published", "own")):
        caption = f"{_sentence(_words(metric))} against epochs."
        blocks.append(Chart(charts.curves(runs, metric), caption, f"chart-{metric.replace('_', '-')}"))
    blocks[3:3] = _against_costs(runs, f"published_{kinds[0]}")
    if any(run.metrics["sent_power"].values.any() for run in runs):
        blocks.append(Chart(charts.sent_power(runs), _power_caption(runs), "chart-sent-power"))
    for metric in dict.fromkeys(name for run in runs for name in run.left_by_method):
        having = [run for run in runs if metric in run.left_by_method]
        caption = f"{_sentence(_words(metric))}, which the method leaves for people to look at."
        blocks.append(Chart(charts.curves(having, metric), caption, f"chart-{metric.replace('_', '-')}"))
    return Section("Curves", tuple(blocks), "curves")


def _against_costs(runs: Sequence[Result], metric: str) -> list[Block]:
    """A metric against channel uses, and over a radio against seconds and energy."""
    left_out = {"channel_uses": "A run that sends nothing is left out."}
    blocks: list[Block] = []
    for against in cost_axes.shown(runs)[1:]:
        words = left_out.get(against, "A run without a radio is left out.")
        caption = f"{_sentence(_words(metric))} against {cost_axes.in_words(against)}. {words}"
        blocks.append(Chart(charts.curves(runs, metric, against), caption, f"chart-{against.replace('_', '-')}"))
    return blocks


def _power_caption(runs: Sequence[Result]) -> str:
    over_radio = "Over a radio: mean power of a symbol over the power budget p, which limits its expectation."
    without = (
        "Energy of a whole message over the power budget p; the message counts as one channel use. Signals are "
        "simulated as written, without the public factor that brings them within p; it changes neither models nor "
        "privacy, but signals would be that much weaker over receivers' noise."
    )
    kinds = dict.fromkeys(run.radio is not None for run in runs)
    return " ".join(over_radio if has_radio else without for has_radio in sorted(kinds))


def _run(run: Result, name: str, place: int) -> Section:
    blocks: list[Block] = [promise(run, name), *_ends(run), _power(run), *_finite(run), *radio.blocks(run)]
    blocks += _network(run, place)
    blocks += [*_epsilon(run, place), *coalitions.blocks(run), _nodes(run), _own_models(run)]
    if run.experiment:
        blocks.append(Code("Settings: the experiment as it was run", run.experiment))
    else:
        blocks.append(Text((f"Made in Python; there is no experiment file. Settings: {_settings(run)}.",)))
    return Section(f"Run {name}", tuple(blocks), f"run-{place}")


def _ends(run: Result) -> list[Block]:
    """What was fixed before the run that its promise rests on, and what it does not count on."""
    attributes, lines = run.ledger.attrs, []
    if "stop_after" in attributes:
        lines.append(
            f"It stops after epoch {attributes['stop_after']} of {attributes['planned_epochs']}, fixed before the run."
        )
    if "drops" in attributes:
        lines.append(f"Nodes drop out, fixed before the run: {attributes['drops']}.")
    if "batch" in attributes and run.info["privacy"]["epsilon"] is not None:
        lines.append(f"{_sentence(COINS if attributes.get('law') == 'sampled gaussian' else PLAIN_BOUND)}.")
    return [Text(tuple(lines))] if lines else []


def _power(run: Result) -> Verdict:
    loudest = float(run.metrics["loudest"].max()) * ledger.power_share(run)
    if run.radio is not None:
        sentence = f"The loudest message of any epoch took {loudest:.3g} times the power budget per symbol"
        return Verdict(f"{sentence}, which limits the expectation.", "held" if loudest <= 1 else "for information")
    if loudest == 0:
        return Verdict("Nothing is sent, so no power is used.")
    sentence = f"Signals stay within the power budgets: at most {loudest:.3g} times the budget was sent in any epoch."
    return Verdict(sentence, "held" if loudest <= 1 else "did not hold")


def _finite(run: Result) -> list[Block]:
    if np.isfinite(run.final("own_loss")).all():
        return []
    return [
        Verdict(
            "All models stay finite: the run diverged. Shorten its steps, or keep models in a ball.", "did not hold"
        )
    ]


def _network(run: Result, place: int) -> list[Block]:
    figure = charts.network(run)
    if figure is None:
        return [Text(("Nodes have no links of their own in this run, so there is no network to draw.",))]
    nodes, links = ledger.nodes(run), int(run.ledger.sizes[f"{ledger.first_round(run)}_link"])
    split = "Nodes show how they split their power; where they are drawn says nothing."
    if ledger.split_of_nodes(run) is None:
        per_link = ledger.split_of_links(run) is not None
        split = "Power is split anew for every link." if per_link else "The ledger tells no fixed power split."
    if nodes > charts.MATRIX_UP_TO:
        split = "It is too large to draw; the bars count links by gain, and nodes by power split where they have one."
    caption = f"The network: {nodes} nodes, {links} links, each direction with a gain of its own. {split}"
    return [Chart(figure, caption, f"chart-network-{place}")]


def _epsilon(run: Result, place: int) -> list[Block]:
    if is_not_certified(run):
        return [Text(("The paper's per-epoch epsilon is not shown: the run is not certified.",))]
    figure = charts.epsilon_matrix(run)
    if run.radio is not None:
        return [Text(("The paper's per-epoch epsilon is not shown: its theorem is about an ideal channel.",))]
    if figure is None:
        sentence = (
            "The paper's per-epoch epsilon is not shown: its theorem speaks of nodes that all send a model with noise "
            "and divide their gradients by z. This run is not of that kind."
        )
        return [Text((sentence,))]
    nominal = " Gradients were not clipped, so it is nominal." if run.ledger.attrs["clipping"] == "none" else ""
    caption = (
        "The paper's epsilon of one epoch seen alone: what a receiver learns of a sender. A claim, not a guarantee; it "
        f"does not add up over epochs. Worked out from the ledger, with theta = {ledger.theta(run):.4g}, the largest "
        f"1/z.{nominal}"
    )
    return [Chart(figure, caption, f"chart-epsilon-{place}")]


def _nodes(run: Result) -> Table:
    """Every node's split, cost and published metrics; of a large network, the worst."""
    return _by_node(run, "published", "Nodes", _columns(run), "Means over seeds. Power is that of the last epoch.")


def _own_models(run: Result) -> Table:
    """Metrics of own models stand apart from every promise: no noise covers these models."""
    columns = [_metric(run, f"own_{kind}") for kind in shared_kinds([run])]
    note = "Means over seeds. No noise covers these models, and no promise is about them: they stay on their nodes."
    return _by_node(run, "own", "Own models", columns, note)


def _by_node(run: Result, model: str, title: str, columns: "list[_Column]", note: str) -> Table:
    """A row for every node; of a large network, for those whose models of this kind are worst."""
    kind = shared_kinds([run])[0]
    order: Sequence[int] = np.asarray(run.metrics["node"]).tolist()
    if len(order) > _ROWS_UP_TO:
        final = run.final(f"{model}_{kind}").mean(axis=0)
        worst = np.argsort(-final if kind != "accuracy" else final, kind="stable")[:_WORST]
        note = f"The {_WORST} nodes of {ledger.nodes(run)} with the worst {model} {kind}. {note}"
        order = [order[place] for place in worst]
    note = " ".join((*(f"{_sentence(line)}." for line in samples_in_words(run)), note))
    names = dict(enumerate(run.node_names))
    rows: list[Row] = [(names.get(node, str(node)), *(_entry(column, node) for column in columns)) for node in order]
    return Table(title, ("node", *(column.heading for column in columns)), tuple(rows), note)


class Form(Protocol):
    """How a number is written."""

    def __call__(self, value: float, /) -> str:
        """As text."""
        ...


class _Column(NamedTuple):
    """A heading, the number of every node below it, and how it is written."""

    heading: str
    values: FloatArray
    form: Form = "{:.4g}".format
    infinite: str = "inf"


def _columns(run: Result) -> list[_Column]:
    """Only what the run has."""
    split, mu = ledger.split_of_nodes(run), np.asarray(run.ledger["promised_mu"], np.float64)
    delta = float(run.ledger.attrs["delta"])
    columns = [] if split is None else [_Column("alpha", split.alpha), _Column("beta", split.beta)]
    epsilon = ledger.promised_epsilon(run)
    for heading, values in (("mu promised", mu), (f"epsilon at delta {at_most(delta)}", epsilon)):
        infinite = NOT_CERTIFIED if is_not_certified(run) else "not promised"
        columns.append(_Column(heading, values, at_most, infinite=infinite))
    columns += [_metric(run, f"published_{kind}") for kind in shared_kinds([run])]
    return [*columns, _Column("sent power over budget", run.final("sent_power").mean(axis=0) * ledger.power_share(run))]


def _metric(run: Result, name: str) -> _Column:
    values = np.full(ledger.nodes(run), np.nan)
    values[np.asarray(run.metrics["node"])] = run.final(name).mean(axis=0)
    return _Column(_words(name), values, "{:.4f}".format)


def _entry(column: _Column, node: int) -> Cell:
    value = float(column.values[node])
    return Cell(column.infinite if np.isposinf(value) else column.form(value), value)


def _how_it_was_made(runs: Sequence[Result], names: Sequence[str]) -> Section:
    table = origin(runs, names)
    table = in_one_column(table) if len(runs) > _COLUMNS_UP_TO else table
    return Section("How it was made", (table, _seconds(runs, names)), "origin")


def in_one_column(table: Table) -> Table:
    """A table with a column for every run, as one: what all share is said once."""
    names = table.headings[1:]
    rows: list[Row] = []
    for head, *cells in table.rows:
        same = len(set(cells)) == 1
        listed = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        rows.append((head, cells[0] if same else listed))
    return Table(table.title, ("", "all runs"), tuple(rows), table.note)


def origin(runs: Sequence[Result], names: Sequence[str]) -> Table:
    """What it takes to run again: seeds, precision, settings, versions, commit, kind of machine."""
    rows: tuple[Row, ...] = (
        ("seeds", *(", ".join(map(str, run.info["seeds"])) for run in runs)),
        ("precision", *(run.info["precision"] for run in runs)),
        ("settings", *(_settings(run) for run in runs)),
    )
    around = surroundings(runs, names)
    return around._replace(rows=rows + around.rows)


def surroundings(runs: Sequence[Result], names: Sequence[str]) -> Table:
    """What runs were made with: versions, commit, kind of machine."""
    versions = sorted({package for run in runs for package in run.info["versions"]})
    rows: list[Row] = [
        *((package, *(run.info["versions"].get(package, "") for run in runs)) for package in versions),
        ("commit", *(_commit(run) for run in runs)),
        ("machine", *("{system} {kind}, {cores} cores".format(**run.info["machine"]) for run in runs)),
    ]
    return Table("Origin", ("", *names), tuple(rows))


def _commit(run: Result) -> str:
    """In short; a + says that files differed from it."""
    commit: str = run.info["commit"] or "not known"
    return commit if len(commit) < 40 else f"{commit[:12]}{commit[40:]}"


def _seconds(runs: Sequence[Result], names: Sequence[str]) -> Table:
    parts = ("compiling", "training", "all")
    rows: list[Row] = [
        (name, *(number(run.info["seconds"][part], ".2f") for part in parts))
        for run, name in zip(runs, names, strict=True)
    ]
    return Table("Seconds", ("run", *parts), tuple(rows), "On the machine above, which may have had other work.")


def citation() -> Section:
    """How to cite the software and the paper."""
    software = f"The murmurcast developers. murmurcast, version {version('murmurcast')}. Software, Apache-2.0."
    words = "If you use these results, please cite the software and the paper it starts from."
    return Section("How to cite", (Text((words, software, PAPER)),), "cite")


def shared_kinds(runs: Sequence[Result]) -> list[str]:
    """Kinds of metric that all runs have, the most telling first; a loss is always among them."""
    return [kind for kind in _KINDS if all(f"own_{kind}" in run.metrics for run in runs)]


def _settings(run: Result) -> str:
    settings: dict[str, Any] = run.info["settings"]
    return ", ".join(f"{key} = {value}" for key, value in settings.items()) or "none"


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
