"""`murmurcast audit`: attack the real system, and see whether its promise stands."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast.cli._options import AsJson, Sets, complain, echo_json, overrides
from murmurcast.errors import Error
from murmurcast.privacy.rounding import at_least, at_most

if TYPE_CHECKING:
    from murmurcast.audits.audit import Attack, Audit
    from murmurcast.experiments.build import Experiment
    from murmurcast.problems.base import Problem


def audit(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)],
    sets: Sets = None,
    target: Annotated[
        int | None, typer.Option(metavar="NODE", help="The node under attack. Default: the one that pays most.")
    ] = None,
    coalition: Annotated[
        str | None,
        typer.Option(metavar="NODES", help="Receivers that act together, such as 0,2. Default: all but the target."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(metavar="N", help="Runs to attack. Default: as many as make 16,000 canaries.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of runs and canaries.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page, with pictures of what leaks: audit.html."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack what an experiment really sends, and compare what adversaries learn with what is promised.

    Canaries are planted at one node; receivers, an eavesdropper and a holder of published models guess them.

    Exit code 1: somebody shows more than the promise allows. An audit can refute a promise, not prove it.

    Examples:
        murmurcast plan --example digits > digits.toml

        murmurcast audit digits.toml

        murmurcast audit digits.toml --target 2 --coalition 0,1 --out audit.html

        murmurcast audit digits.toml --set schedule.epochs=20 --json
    """
    from rich.console import Console

    from murmurcast.audits import audit as auditing
    from murmurcast.cli import _progress_bar
    from murmurcast.experiments import load as experiment_files

    if out is not None:
        from murmurcast.reports.runs import require_path

        require_path(out)
    members = None if coalition is None else _members(coalition)
    experiment = experiment_files.load(file, overrides(sets))
    with _progress_bar.stages(Console(stderr=True), "reading the experiment") as (on_stage, on_epoch):
        problem, algorithm = experiment.build(file.parent, on_stage)
        options = auditing.AuditOptions(precision=experiment.run.precision, on_stage=on_stage, on_epoch=on_epoch)
        found = auditing.audit(
            algorithm,
            problem,
            target=target,
            coalition=members,
            runs=runs,
            seed=seed,
            options=options,
        )
        if out is not None:
            _write_page(experiment, problem, found, file, out, on_stage)
    if as_json:
        echo_json(_as_dict(found, experiment))
    else:
        _show(found, experiment, out)
    if found.verdict == "FALSIFIED":
        complain(
            f"the promise is FALSIFIED by {' and '.join(found.falsified_by)}",
            "do not rely on this epsilon; look for noise that is missing, reused or shared",
        )
        raise typer.Exit(1)


def _write_page(
    experiment: "Experiment", problem: "Problem", found: "Audit", file: Path, out: Path, on_stage: Callable[[str], None]
) -> None:
    """The page, with pictures where the data are some."""
    from murmurcast.audits.inversion import image_side, run_inversion
    from murmurcast.problems.softmax import SoftmaxRegression
    from murmurcast.reports import audits

    pictures = None
    if isinstance(problem, SoftmaxRegression) and image_side(problem.data.dataset):
        pictures = run_inversion(problem.data.dataset, seed=0, on_stage=on_stage)
    on_stage("writing the page")
    audits.write(found, experiment.as_toml(), file.name, out, pictures, experiment.warnings)


def _members(names: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(name) for name in names.split(",")}))
    except ValueError:
        raise Error(f"--coalition {names}: not a list of nodes", hint="write --coalition 0,2") from None


def _as_dict(found: "Audit", experiment: "Experiment") -> dict[str, Any]:
    from dataclasses import asdict

    from murmurcast.audits.audit import FALSE_POSITIVE_RATES, NOTE

    attacks = []
    for attack in found.attacks:
        rates = dict(zip(map(str, FALSE_POSITIVE_RATES), attack.true_positives, strict=True))
        values = {key: value for key, value in attack._asdict().items() if key != "curve"}
        attacks.append({**values, "epsilon": attack.epsilon, "true_positives": rates})
    return {
        **asdict(found),
        "attacks": attacks,
        "verdict": found.verdict,
        "falsified_by": list(found.falsified_by),
        "caught_from": found.caught_from,
        "note": NOTE,
        "warnings": [*found.warnings, *experiment.warnings],
    }


def _show(found: "Audit", experiment: "Experiment", page: Path | None) -> None:
    """Who showed what, and what that says of the promise."""
    from murmurcast.audits.audit import FALSE_POSITIVE_RATES, NOTE, in_words
    from murmurcast.cli import _tables

    console, plain = _tables.console(), _tables.plain
    console.print(f"[bold]Audit[/bold]    {plain(in_words(found))}", soft_wrap=True)
    rates = tuple(f"TPR at {rate:g}" for rate in FALSE_POSITIVE_RATES)
    headings = ("adversary", "linear mu", "right", "mu >=", "epsilon >=", *rates, "catches")
    rows = [*(_row(attack) for attack in found.attacks), _allowed(found)]
    note = (
        f"mu and epsilon (at delta {at_most(found.delta)}): at least this is shown, all together at "
        f"{found.confidence:.0%} confidence; linear mu: what the diagnostic predicts; TPR at x: true-positive rate at "
        "a false-positive rate of x; catches: a cut of the noise's std to this share would have been caught, at "
        "power 0.9"
    )
    _tables.show_table(console, f"What adversaries learn of node {found.target}", rows, headings, note)
    for heading, line in (*found.summary, ("Note", NOTE)):
        console.print(f"[bold]{heading:<8}[/bold] {plain(line)}", soft_wrap=True)
    for line in (*found.warnings, *experiment.warnings):
        console.print(f"[yellow]warning:[/yellow] {plain(line)}")
    if page is not None:
        console.print(f"[bold]Page[/bold]     {plain(str(page))}")


def _row(attack: "Attack") -> tuple[str, ...]:
    rates = ("-" if rate is None else f"{rate:.3g}" for rate in attack.true_positives)
    right = f"{attack.right / attack.guesses:.1%}"
    caught = f"{attack.caught_from:.0%}" if attack.caught_from else "-"
    return (
        attack.adversary,
        f"{attack.mu_linear:.3g}",
        right,
        at_least(attack.mu, 3),
        at_least(attack.epsilon, 3),
        *rates,
        caught,
    )


def _allowed(found: "Audit") -> tuple[str, ...]:
    if found.verdict == "nothing is promised":
        return ("promised: nothing", "", "", "", "", "", "", "", "")
    rates = (f"{rate:.3g}" for rate in found.true_positives_allowed)
    return "certified, at most", "", "", at_most(found.mu_promised, 3), at_most(found.epsilon_promised, 3), *rates, ""
