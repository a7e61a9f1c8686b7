"""`murmurcast export-iq`: what a node put on the air, as samples for radio tools."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from murmurcast.cli import _run_folder
from murmurcast.cli._options import AsJson, echo_json
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.audits.overheard import Message
    from murmurcast.experiments.build import Experiment
    from murmurcast.radio.settings import Radio
    from murmurcast.radio.sigmf import Band, Part
    from murmurcast.runs.result import Result

_IN_PYTHON = "use murmurcast.audits.overheard.overhear on its algorithm"


def export_iq(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN", show_default=False)],
    node: Annotated[int, typer.Option(metavar="NODE", help="Whose signals.", show_default=False)],
    epochs: Annotated[str, typer.Option(metavar="EPOCHS", help="Which epochs, such as 3 or 1-5.")] = "1",
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Which seed of the run. Default: its first.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the recording.")] = Path(),
    bandwidth: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="Samples per second, of a run without a radio. Default: 1e6."),
    ] = None,
    carrier: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="Carrier frequency, of a run without a radio. Default: 2.4e9."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what a node put on the air as a SigMF recording, for GNU Radio, SDRs and the like.

    The run is done again up to the last of these epochs, by the same functions, and its signals are compared with what
    it recorded. Before every message stands a pilot, which is free of data.

    What is exported is what every eavesdropper hears.

    Examples:
        murmurcast export-iq runs/ours --node 3

        murmurcast export-iq runs/ours --node 3 --epochs 1-5 --out recordings

        murmurcast export-iq runs/ours --node 0 --bandwidth 20e6 --carrier 3.5e9
    """
    from importlib.metadata import version

    from murmurcast.radio import sigmf
    from murmurcast.runs.result import load_run, require_folder, require_place

    result = load_run(run)
    asked = Asked(node, _range(epochs), _seed(result, seed))
    experiment = _experiment(run, result, asked)
    radio = experiment.build_radio(run)
    band = _band(radio, bandwidth, carrier)
    sigmf.require_band(band)
    require_place(out)
    base = out / _name(result, asked)
    if out.is_dir():
        sigmf.require_free(base)
    parts, words = _parts(run, result, experiment, asked)
    require_folder(out)
    description = f"What node {node} of a simulated network sent by {result.info['algorithm']}. {words}"
    files = sigmf.write(base, parts, band, description, version("murmurcast"))
    samples = sum(len(part.samples) for part in parts)
    chosen = "" if radio else ", as chosen: the run has no radio"
    exported = Exported(asked, files, samples, band, chosen, words, _warnings(result))
    if as_json:
        echo_json(_as_dict(exported))
    else:
        _show(exported)


class Asked(NamedTuple):
    """Whose signals, and which."""

    node: int
    epochs: range
    seed: int


class Exported(NamedTuple):
    """What was written.

    Attributes:
        asked: Whose signals, and which.
        files: Samples and metadata.
        samples: How many.
        band: Where in the spectrum.
        chosen: Whether that was left to the user, in words.
        words: What the samples are.
        warnings: What they tell, and to whom.
    """

    asked: Asked
    files: tuple[Path, Path]
    samples: int
    band: "Band"
    chosen: str
    words: str
    warnings: list[str]


def _range(words: str) -> range:
    match = re.fullmatch(r"\s*(\d{1,12})\s*(?:-\s*(\d{1,12})\s*)?", words)
    if match is None:
        raise Error(f"--epochs {words[:40]}: not a number of epochs", hint="write --epochs 3 or --epochs 1-5")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last:
        raise Error(f"--epochs {words[:40]}: not in order, from 1", hint="write --epochs 3 or --epochs 1-5")
    return range(first, last + 1)


def _seed(result: "Result", asked: int | None) -> int:
    seeds: list[int] = result.info["seeds"]
    if asked is not None and asked not in seeds:
        shown = ", ".join(map(str, seeds[:10])) + (", ..." if len(seeds) > 10 else "")
        raise Error(f"the run has no seed {asked}", hint=f"its seeds are {shown}")
    return seeds[0] if asked is None else asked


def _experiment(folder: Path, result: "Result", asked: Asked) -> "Experiment":
    """The experiment of a run that can be done again, by code of the house only."""
    from murmurcast.algorithms import registry
    from murmurcast.audits.overheard import require_seeded
    from murmurcast.experiments import load as experiment_files
    from murmurcast.experiments.problem import names_own_code

    file = _run_folder.experiment_file(folder, _IN_PYTHON)
    require_seeded(result.info["privacy"]["noise_source"])
    experiment = _run_folder.with_trace(experiment_files.parse(result.experiment.encode(), str(file)), folder)
    if experiment.algorithm.name not in registry.NAMES:
        raise Error(
            f'"{experiment.algorithm.name}" is a method of your own, and code that a run names is never run',
            hint=_IN_PYTHON,
        )
    if names_own_code(experiment.problem):
        raise Error(
            f'"{experiment.problem.module}" is a module of your own, and code that a run names is never run',
            hint=_IN_PYTHON,
        )
    last = (experiment.run.drops or {}).get(str(asked.node))
    if last is not None and asked.epochs[-1] > last:
        raise Error(
            f"node {asked.node} drops out after epoch {last}, and is silent in epoch {asked.epochs[-1]}",
            hint=f"ask for epochs up to {last}",
        )
    if experiment.data is None:
        return experiment
    otherwise = f"copy {experiment.data.name} into the folder of the run, or start the command where it lies"
    name = _run_folder.place_of_data(folder, experiment.data.name, otherwise)
    return experiment.model_copy(update={"data": experiment.data.model_copy(update={"name": name})})


def _band(radio: "Radio | None", bandwidth: float | None, carrier: float | None) -> "Band":
    """Of the radio; where there is none, as asked, or as a radio has it by default."""
    from murmurcast.radio.settings import Radio
    from murmurcast.radio.sigmf import Band

    if radio is not None:
        if bandwidth is not None or carrier is not None:
            raise Error(
                f"the run has a radio: {radio.bandwidth_hz:g} Hz at {radio.carrier_hz:g} Hz",
                hint="leave --bandwidth and --carrier out",
            )
        return Band(radio.bandwidth_hz, radio.carrier_hz)
    usual = Radio()
    return Band(
        usual.bandwidth_hz if bandwidth is None else bandwidth, usual.carrier_hz if carrier is None else carrier
    )


def _parts(folder: Path, result: "Result", experiment: "Experiment", asked: Asked) -> "tuple[list[Part], str]":
    """Pilots and messages in the order they are sent, and in words what they are."""
    import numpy as np
    from rich.console import Console

    from murmurcast.audits import overheard
    from murmurcast.radio import sigmf
    from murmurcast.radio.settings import Radio
    from murmurcast.reports import progress_bar

    node, epochs, seed = asked
    with progress_bar.stages(Console(stderr=True), "reading the experiment") as (on_stage, on_epoch):
        problem, algorithm = experiment.build(folder, on_stage)
        on_stage("sending again")
        capture = overheard.overhear(
            algorithm,
            problem,
            seed=seed,
            node=node,
            epochs=epochs,
            precision=experiment.run.precision,
            on_epoch=on_epoch,
        )
    overheard.require_as_recorded(result, capture, seed=seed, node=node, epochs=epochs)
    pilots = (algorithm.setup.radio or Radio()).pilots
    parts = []
    for message in capture.messages:
        before, data = sigmf.pilot(pilots, message.pilot), sigmf.symbols(message.signal)
        turn = np.complex64(message.turn)
        parts += [
            sigmf.Part("pilot", _comment(message), turn * before),
            sigmf.Part("data", _comment(message), turn * data),
        ]
    return parts, _in_words(capture.messages, pilots, len(parts[-1].samples))


def _in_words(messages: "tuple[Message, ...]", pilots: int, symbols: int) -> str:
    count, each = ("a message", "it") if len(messages) == 1 else (f"{len(messages)} messages", "each")
    loud = sorted(message.pilot for message in messages)
    amplitude = f"{loud[0]:.6g}" if loud[0] == loud[-1] else f"{loud[0]:.6g} to {loud[-1]:.6g}"
    return (
        f"{count} of {symbols} symbols u = v[0::2] + i v[1::2], before {each} {pilots} pilot symbols of amplitude "
        f"{amplitude}"
    )


def _comment(message: "Message") -> str:
    made_for = "" if message.receiver is None else f", to node {message.receiver}"
    return f"epoch {message.epoch}, round {message.name}{made_for}"


def _name(result: "Result", asked: Asked) -> str:
    """Without the seed: whoever knows it takes the noise off."""
    first, last = asked.epochs[0], asked.epochs[-1]
    words = f"epoch-{first}" if first == last else f"epochs-{first}-{last}"
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', result.name)[:100]}-node-{asked.node}-{words}"


def _warnings(result: "Result") -> list[str]:
    privacy: dict[str, Any] = result.info["privacy"]
    promise = (
        f"it tells no more of the data than the run promises: {privacy['basis']}"
        if privacy["epsilon"] is not None
        else "nothing is promised about what it tells of the data"
    )
    return [f"this is what every eavesdropper hears; {promise}", str(privacy["note"])]


def _as_dict(exported: Exported) -> dict[str, Any]:
    return {
        "data": str(exported.files[0]),
        "meta": str(exported.files[1]),
        "node": exported.asked.node,
        "epochs": [exported.asked.epochs[0], exported.asked.epochs[-1]],
        "seed": exported.asked.seed,
        "samples": exported.samples,
        **exported.band._asdict(),
        "sent": exported.words,
        "warnings": exported.warnings,
    }


def _show(exported: Exported) -> None:
    """Where it is, what it is, and what it tells."""
    from murmurcast.reports import text_tables

    console, (data, meta), band = text_tables.console(), exported.files, exported.band
    lines = (
        ("Samples", f"{data}, {exported.samples} of them, {8 * exported.samples / 1024:.1f} KiB"),
        ("Meta", str(meta)),
        ("Sent", f"by node {exported.asked.node}: {exported.words}"),
        ("Band", f"{band.sample_rate:g} samples per second at {band.carrier_hz:g} Hz{exported.chosen}"),
    )
    for heading, line in lines:
        console.print(f"[bold]{heading:<8}[/bold] {text_tables.plain(line)}", soft_wrap=True)
    for line in exported.warnings:
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}", soft_wrap=True)
