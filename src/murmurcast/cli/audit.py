"""`murmurcast audit`: attack the real system, and see whether its promise stands."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast.cli import _run_folder
from murmurcast.cli._options import AsJson, Sets, complain, echo_json, overrides
from murmurcast.errors import Error
from murmurcast.privacy.rounding import at_least, at_most

if TYPE_CHECKING:
    from murmurcast.audits.attack import Attack
    from murmurcast.audits.verdict import Audit
    from murmurcast.experiments.build import Experiment
    from murmurcast.problems.base import Problem


def audit(
    file: Annotated[
        Path,
        typer.Argument(
            help="The experiment, a TOML file; or the folder of a run, whose own experiment is audited.",
            metavar="FILE|RUN",
            show_default=False,
        ),
    ],
    sets: Sets = None,
    target: Annotated[
        int | None, typer.Option(metavar="NODE", help="The only node under attack. Default: every node.")
    ] = None,
    coalition: Annotated[
        str | None,
        typer.Option(metavar="NODES", help="Receivers that act together, such as 0,2. Default: all but the target."),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Runs to attack. Default: as many as make 16,000 canaries at each node."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of runs and canaries.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page, with pictures of what leaks: audit.html."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack what an experiment really sends, and compare what adversaries learn with what is promised.

    Canaries are planted at every node; receivers, an eavesdropper and a holder of published models guess them. The
    noise itself is looked at, and hostile data tries the clip.

    Exit code 1: something contradicts the promise. An audit can refute a promise, not prove it.

    Examples:
        murmurcast plan --example digits > digits.toml

        murmurcast audit digits.toml

        murmurcast audit runs/digits

        murmurcast audit digits.toml --target 2 --coalition 0,1 --out audit.html

        murmurcast audit digits.toml --set schedule.epochs=20 --json
    """
    from rich.console import Console

    from murmurcast.audits import audit as auditing
    from murmurcast.experiments import load as experiment_files
    from murmurcast.reports import progress_bar

    if out is not None:
        from murmurcast.reports.runs import require_path

        require_path(out)
    members = None if coalition is None else _members(coalition)
    folder, file = file, _run_folder.experiment_file(file, otherwise="audit it with mc.audit")
    experiment = experiment_files.load(file, overrides(sets))
    if folder is not file and experiment.data is not None and "data.name" not in overrides(sets):
        otherwise = "say where it is: --set data.name=FOLDER/" + experiment.data.name
        name = _run_folder.place_of_data(folder, experiment.data.name, otherwise)
        experiment = experiment_files.load(file, overrides(sets) | {"data.name": name})
    if folder is not file and "radio.trace" not in overrides(sets):
        experiment = _run_folder.with_trace(experiment, folder)
    with progress_bar.stages(Console(stderr=True), "reading the experiment") as (on_stage, on_epoch):
        problem, algorithm = experiment.build(file.parent, on_stage)
        options = auditing.AuditOptions(precision=experiment.run.precision, on_stage=on_stage, on_epoch=on_epoch)
        report = auditing.audit(
            algorithm,
            problem,
            target=target,
            coalition=members,
            runs=runs,
            seed=seed,
            options=options,
        )
        if out is not None:
            _write_page(experiment, problem, report, file, out, on_stage)
    if as_json:
        echo_json(_as_dict(report, experiment))
    else:
        _show(report, experiment, out)
    if report.verdict == "FALSIFIED":
        complain(
            f"the promise is FALSIFIED by {'; by '.join(report.falsified_by)}",
            "do not rely on this epsilon; look for noise that is missing, reused or shared, and for a clip that misses",
        )
        raise typer.Exit(1)


def _write_page(
    experiment: "Experiment",
    problem: "Problem",
    report: "Audit",
    file: Path,
    out: Path,
    on_stage: Callable[[str], None],
) -> None:
    """The page, with pictures where the data are some."""
    from murmurcast.audits.inversion import image_side, run_inversion
    from murmurcast.problems.softmax import SoftmaxRegression
    from murmurcast.reports import audits

    pictures = None
    if isinstance(problem, SoftmaxRegression) and image_side(problem.data.dataset):
        pictures = run_inversion(problem.data.dataset, seed=0, on_stage=on_stage)
    on_stage("writing the page")
    audits.write(report, experiment.as_toml(), file.name, out, pictures, experiment.warnings)


def _members(names: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(name) for name in names.split(",")}))
    except ValueError:
        raise Error(f"--coalition {names}: not a list of nodes", hint="write --coalition 0,2") from None


def _as_dict(report: "Audit", experiment: "Experiment") -> dict[str, Any]:
    from murmurcast.audits.attack import FALSE_POSITIVE_RATES
    from murmurcast.audits.verdict import NOTE

    attacks = []
    for attack in report.attacks:
        rates = dict(zip(map(str, FALSE_POSITIVE_RATES), attack.true_positives, strict=True))
        values = {key: value for key, value in attack._asdict().items() if key != "curve"}
        attacks.append({**values, "epsilon": attack.epsilon, "true_positives": rates})
    names = ("algorithm", "unit", "nodes", "runs", "canaries", "delta", "confidence", "cut_caught")
    return {
        **{name: getattr(report, name) for name in names},
        "targets": list(report.targets),
        "share": report.worst.share,
        "mu_promised": report.mu_promised,
        "epsilon_promised": report.worst.epsilon,
        "epsilon_whole": report.worst.epsilon_whole,
        "promises": [promise._asdict() for promise in report.promises],
        "weaker": [promise._asdict() for promise in report.weaker],
        "attacks": attacks,
        "checks": [check._asdict() for check in report.checks],
        "clip": report.clip,
        "clip_worst": report.hostile.worst,
        "verdict": report.verdict,
        "falsified_by": list(report.falsified_by),
        "unseen": list(report.unseen),
        "caught_from": report.caught_from,
        "note": NOTE,
        "warnings": [*report.warnings, *experiment.warnings],
    }


def _show(report: "Audit", experiment: "Experiment", page: Path | None) -> None:
    """Who showed what, and what that says of the promise."""
    from murmurcast.audits.attack import FALSE_POSITIVE_RATES
    from murmurcast.audits.verdict import NOTE, in_words, sure
    from murmurcast.reports import text_tables

    console, plain = text_tables.console(), text_tables.plain
    console.print(f"[bold]Audit[/bold]    {plain(in_words(report))}", soft_wrap=True)
    rates = tuple(f"TPR {rate:g}" for rate in FALSE_POSITIVE_RATES)
    headings = ("adversary", "node", "linear mu", "right", "mu >=", "epsilon >=", *rates, "catches")
    rows = [*(_row(attack) for attack in report.strongest), _allowed(report)]
    note = (
        f"each row: the node of which the adversary showed most; mu and epsilon (at delta {at_most(report.delta)}): at "
        f"least this is shown, all together at {sure(report)} confidence; linear mu: what the diagnostic predicts; TPR "
        "x: true-positive rate at a false-positive rate of x; catches: a cut of the noise's std to this share would "
        "have been caught by guessing, at power 0.9"
    )
    text_tables.show_table(console, "What adversaries learn", rows, headings, note)
    for heading, line in (*report.summary, ("Note", NOTE)):
        console.print(f"[bold]{heading:<8}[/bold] {plain(line)}", soft_wrap=True)
    for line in (*report.warnings, *experiment.warnings):
        console.print(f"[yellow]warning:[/yellow] {plain(line)}")
    if page is not None:
        console.print(f"[bold]Page[/bold]     {plain(str(page))}")


def _row(attack: "Attack") -> tuple[str, ...]:
    rates = ("-" if rate is None else f"{rate:.3g}" for rate in attack.true_positives)
    right = f"{attack.right / attack.guesses:.1%}"
    caught = f"{attack.caught_from:.0%}" if attack.caught_from else "-"
    shown = (f"{attack.mu_linear:.3g}", right, at_least(attack.mu, 3), at_least(attack.epsilon, 3))
    return attack.adversary, str(attack.target), *shown, *rates, caught


def _allowed(report: "Audit") -> tuple[str, ...]:
    if report.verdict == "nothing is promised":
        return ("promised: nothing", "", "", "", "", "", "", "", "", "")
    rates = (f"{rate:.3g}" for rate in report.true_positives_allowed)
    limits = (at_most(report.mu_promised, 3), at_most(report.worst.epsilon, 3))
    return "certified, at most", str(report.worst.target), "", "", *limits, *rates, ""
