"""The reproduction as one page: what held first, then every setting with its curves, networks and tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from murmurcast.reports import charts
from murmurcast.reports import runs as pages
from murmurcast.reports.page import Block, Chart, Code, Picture, Section, Table, Text, Verdict, render
from murmurcast.reproduction import document, run_tables
from murmurcast.reproduction.document import Chapter, Finding
from murmurcast.reproduction.outcome import Reproduction
from murmurcast.reproduction.settings import GROUP_TITLES, OURS, PROMISED, Group
from murmurcast.reproduction.training import Run
from murmurcast.runs.result import Result

_AGAINST: tuple[charts.Against, ...] = ("epoch", "channel_uses")
_BAND = "Mean over nodes and seeds, band of one standard deviation over seeds; single nodes wait in the legend."
_SETTING_TEXTS: dict[Group, str] = {
    "published": (
        "The paper's experiment as it describes it. Nothing is clipped, so every epsilon here is nominal: it would "
        "hold for one epoch seen alone if gradients had the bound that the budget is calibrated to. Nothing is "
        "promised."
    ),
    "matched": (
        "Algorithm 1 divides its gradient by z, about one over the number of nodes, and so takes longer steps than "
        "mPED2FL with the same learning rate. Here mPED2FL takes steps of the same length; with the same noise they "
        "also cost it more of its nominal epsilon. All else is as published. Nothing is promised."
    ),
    "certified": (
        "One total budget for the whole run, one image hidden, against everybody who hears every antenna. Every "
        "image's gradient is clipped, gradients are taken at the public mixed point, and what counts is the accuracy "
        "of the models that nodes may publish: averages of their mixed points. The schedule was chosen on public data, "
        "Fashion-MNIST (make choose), which costs nothing of the budget; no image of MNIST was looked at."
    ),
    "features": (
        "The same promise on better inputs. Every image is deskewed and described by its own gradients (HOG), which "
        "looks at no other image. Nodes release noisy means and second moments once, to centre and to whiten what they "
        "learn from, and pay for them out of the same total budget. Twelve long epochs; clip and steps were chosen on "
        "Fashion-MNIST (murmurcast tune)."
    ),
}


def page(reproduction: Reproduction, figures: Path) -> str:
    """The page; printed figures are taken from the folder `figures`."""
    accuracy, privacy, *others = reproduction.chapters
    sections = [
        _in_short(reproduction),
        *(_setting(reproduction, group) for group in GROUP_TITLES),
        _privacy(reproduction, privacy),
        *(_chapter(chapter, figures) for chapter in others),
        _printed(accuracy, figures),
        _settings(reproduction.runs),
        Section("How it was made", (pages.surroundings([reproduction.runs[0].result], ["all runs"]),), "origin"),
        pages.citation(),
    ]
    lead = [
        *reproduction.first_lines,
        f"Data: {reproduction.data}; {reproduction.seeds} seed{'s' if reproduction.seeds > 1 else ''}.",
    ]
    return render("The paper, reproduced", lead, sections)


def _in_short(reproduction: Reproduction) -> Section:
    """The main table, what held of the accuracies, and whatever else did not hold."""
    accuracy, *others = reproduction.chapters
    broken = [finding for chapter in others for finding in chapter.findings if finding.holds is False]
    verdicts = map(_verdict, (*accuracy.findings, *broken))
    return Section("What held", (_table(accuracy.tables[0]), *verdicts))


def _setting(reproduction: Reproduction, group: Group) -> Section:
    shown = [run for run in reproduction.runs if run.setting.group == group]
    if group == "matched":
        ours = [run for run in reproduction.runs if run.setting.group == "published" and run.setting.algorithm == OURS]
        shown = [*ours, *shown]
    charted = _by_budget(shown) if group in PROMISED else _by_time_and_uses(shown)
    return Section(GROUP_TITLES[group], (Text((_SETTING_TEXTS[group],)), *charted), group)


def _by_time_and_uses(shown: Sequence[Run]) -> list[Chart]:
    results, group = [_named(run) for run in shown], shown[-1].setting.group
    curves = (charts.curves(results, run_tables.metric_of(group), against) for against in _AGAINST)
    captions = (f"Test accuracy against epochs. {_BAND}", "The same against channel uses.")
    return [
        Chart(figure, caption, f"{against.replace('_', '-')}-{group}")
        for figure, caption, against in zip(curves, captions, _AGAINST, strict=True)
    ]


def _by_budget(shown: Sequence[Run]) -> list[Chart]:
    """One chart for each budget: nine curves in one would hide each other."""
    by_budget = []
    for budget in sorted({run.setting.epsilon for run in shown}):
        results = [_named(run) for run in shown if run.setting.epsilon == budget]
        group = shown[0].setting.group
        figure = charts.curves(results, run_tables.metric_of(group))
        caption = f"Total epsilon {budget:g}: test accuracy of published models against epochs. {_BAND}"
        by_budget.append(Chart(figure, caption, f"{group}-{budget:g}".replace(".", "-")))
    return by_budget


def _privacy(reproduction: Reproduction, chapter: Chapter) -> Section:
    blocks: list[Block] = []
    for run in reproduction.runs:
        if run.setting.group == "published" and run.setting.algorithm == OURS:
            budget = f"{run.setting.epsilon:g}"
            blocks += [
                Chart(charts.network(run.result), f"The network of budget {budget}.", f"network-{budget}"),
                Chart(
                    charts.epsilon_matrix(run.result),
                    f"Budget {budget}: the paper's epsilon of one epoch seen alone. A claim, not a guarantee.",
                    f"epsilon-{budget}",
                ),
            ]
    verdicts = map(_verdict, chapter.findings)
    return Section(chapter.title, (*verdicts, *blocks, *map(_table, chapter.tables)), "privacy")


def _chapter(chapter: Chapter, figures: Path) -> Section:
    verdicts = map(_verdict, chapter.findings)
    return Section(chapter.title, (*verdicts, *_pictures(chapter, figures), *map(_table, chapter.tables)))


def _printed(chapter: Chapter, figures: Path) -> Section:
    return Section("Plots for print", (*_pictures(chapter, figures), *map(_table, chapter.tables[1:])))


def _settings(runs: Sequence[Run]) -> Section:
    note = Text(("Each of these files runs by itself: murmurcast run experiment.toml",))
    return Section("Settings", (note, *(Code(run.setting.label, run.result.experiment) for run in runs)))


def _pictures(chapter: Chapter, figures: Path) -> list[Picture]:
    return [
        Picture((figures / f"{picture.name}.png").read_bytes(), picture.caption, picture.caption)
        for picture in chapter.pictures
    ]


def _named(run: Run) -> Result:
    """The result under a name for people."""
    return replace(run.result, info=run.result.info | {"name": run.setting.label})


def _verdict(finding: Finding) -> Verdict:
    return Verdict(finding.text, finding.outcome)


def _table(table: document.Table) -> Table:
    return Table(table.title, table.headings, table.rows, table.note)
