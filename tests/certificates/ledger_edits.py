"""Runs to certify, and ways to spoil their ledgers."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.errors import Altered
from murmurcast.runs import result as results
from murmurcast.runs.result import Result
from tests.conftest import asymmetric_network

EPOCHS = 9
Edit = Callable[[xr.Dataset], xr.Dataset]


def quadratic(**options: Any) -> mc.Quadratic:
    return mc.Quadratic.random(4, 2, seed=1, ball=2.0, clip=1.3, **options)


def regression() -> mc.RidgeRegression:
    data = mc.datasets.least_squares(examples=60, features=3, seed=2).partition("quantity", nodes=4, seed=1)
    return mc.RidgeRegression(data=data, clip=0.7, ball=5.0)


def make_plan(
    problem: Any, unit: Any = "node", timing: Any = "paper", z: Any = "recursive", source: Any = "seeded"
) -> mc.Plan:
    # Noise is given, so that every node pays a price of its own.
    schedule = mc.Schedule(epochs=EPOCHS, step=0.3, noise_timing=timing, noise_to_step=(3.0, 4.0, 5.0, 6.0))
    rule = mc.PowerRule(maximum=0.6)
    budget = mc.Budget(epsilon=90.0, unit=unit, noise_source=source)
    return mc.plan(asymmetric_network(3, 4), problem, budget, schedule, power=rule, z=z)


def with_ledger(run: Result, ledger: xr.Dataset, **info: Any) -> Result:
    stated = json.loads(json.dumps(run.info | info))
    return Result(metrics=run.metrics, ledger=ledger, published=run.published, info=stated, experiment=run.experiment)


def scaled(name: str, factor: float) -> Edit:
    return lambda ledger: ledger.assign({name: ledger[name] * factor})


def with_attributes(**changed: Any) -> Edit:
    return lambda ledger: ledger.assign_attrs(changed)


def entry(name: str, value: float) -> Edit:
    def edit(ledger: xr.Dataset) -> xr.Dataset:
        values = np.array(ledger[name], np.float64)
        values.flat[1] = value
        return ledger.assign({name: (ledger[name].dims, values)})

    return edit


def without_own_noise(ledger: xr.Dataset) -> xr.Dataset:
    """(1 - d/R), the coefficient of the model itself, as in mped2fl."""
    return ledger.assign(model_receiving_kept=ledger["model_receiving_kept"] * ledger["model_sending_amplitude"])


def without_attribute(ledger: xr.Dataset, name: str) -> xr.Dataset:
    outcome = ledger.copy()
    outcome.attrs = {key: value for key, value in ledger.attrs.items() if key != name}
    return outcome


EDITS: dict[str, Edit] = {
    "noise halved": scaled("model_sending_noise", 0.5),
    "noise doubled": scaled("model_sending_noise", 2.0),
    "noise of one node": entry("model_sending_noise", 0.0),
    "course halved": scaled("model_sending_schedule", 0.5),
    "amplitude raised": scaled("model_sending_amplitude", 1.1),
    "amplitude of one node": entry("model_sending_amplitude", 0.1),
    "steps lengthened": scaled("model_receiving_step", 1.01),
    "steps shortened": scaled("model_receiving_step", 0.5),
    "z lowered": scaled("model_receiving_z", 0.9),
    "z raised": scaled("model_receiving_z", 1.1),
    "z 0": entry("model_receiving_z", 0.0),
    "clip lowered": with_attributes(clip=0.5),
    "clip 0": with_attributes(clip=0.0),
    "clip a word": with_attributes(clip="1.3"),
    "not clipped": with_attributes(clipping="none"),
    "sensitivity lowered": scaled("sensitivity", 0.5),
    "clip and sensitivity lowered": lambda ledger: scaled("sensitivity", 0.5)(ledger.assign_attrs(clip=0.65)),
    "promise lowered": scaled("promised_mu", 0.9),
    "promise of one node": entry("promised_mu", 0.01),
    "promise a nan": entry("promised_mu", np.nan),
    "promise to some": entry("promised_mu", np.inf),
    "unit": with_attributes(unit="record"),
    "delta": with_attributes(delta=1e-3),
    "an epoch dropped": lambda ledger: ledger.isel(epoch=slice(0, -1)),
    "an epoch dropped and not counted": lambda ledger: ledger.isel(
        epoch=slice(0, -1), model_receiving_z_row=slice(0, -1)
    ).assign_attrs(epochs=EPOCHS - 1),
    "an epoch more": with_attributes(epochs=EPOCHS + 1),
    "epochs a word": with_attributes(epochs="9"),
    "a node dropped": lambda ledger: ledger.isel(node=slice(0, -1)),
    "a link dropped": lambda ledger: ledger.isel(model_link=slice(1, None)),
    "a link to nobody": entry("model_receiver", 9.0),
    "own noise dropped": without_own_noise,
    "own term gone": scaled("model_receiving_kept", 0.0),
    "gains": scaled("model_gain", 1.5),
    "normaliser": with_attributes(normaliser=40),
    "something more is sent": lambda ledger: ledger.assign(model_sending_raw=ledger["power"]),
    "something more is sent in no round": lambda ledger: ledger.assign(sending_raw=ledger["power"]),
    "something more is sent in a round that is not named": lambda ledger: ledger.assign(
        gradient_sending_raw=ledger["power"]
    ),
    "another channel": with_attributes(model_channel="slots"),
    "channel not said": lambda ledger: without_attribute(ledger, "model_channel"),
    "a round dropped": with_attributes(rounds=""),
    "a round more, without tables": with_attributes(rounds="model gradient"),
    "a round twice": with_attributes(rounds="model model"),
    "rounds not said": lambda ledger: without_attribute(ledger, "rounds"),
    "a draw made again": with_attributes(model_draws="noise: noise again, 1 epochs ago"),
    "a draw more": with_attributes(model_draws="noise: normal of a node; more: normal of a node"),
    "a draw of another law": with_attributes(model_draws="noise: laplace of a node"),
    "a draw for every link": with_attributes(model_draws="noise: normal of a link"),
    "no draws": with_attributes(model_draws="none"),
    "draws not said": lambda ledger: without_attribute(ledger, "model_draws"),
    "a gradient at the start": with_attributes(start_gradients=1),
    "gradients at the start not said": lambda ledger: without_attribute(ledger, "start_gradients"),
    "another format": with_attributes(format=1),
    "format not said": lambda ledger: without_attribute(ledger, "format"),
    "an unknown algorithm": with_attributes(algorithm="mine"),
    "noiseless": with_attributes(algorithm="noiseless"),
    "gradient at": with_attributes(gradient_at="own"),
    "publish": with_attributes(publish="everything"),
    "text for numbers": lambda ledger: ledger.assign(model_receiving_step=("epoch", ["a"] * EPOCHS)),
    "turned": lambda ledger: ledger.assign(model_receiving_z=ledger["model_receiving_z"].T),
}
SECURE_EDITS: dict[str, Edit] = {
    "spacing doubled": scaled("model_sending_spacing", 2.0),
    "spacing halved": scaled("model_sending_spacing", 0.5),
    "spacing no power of two": scaled("model_sending_spacing", 1.25),
    "spacing of one node": entry("model_sending_spacing", 1.0),
    "spacing 0": entry("model_sending_spacing", 0.0),
    "spacing dropped": lambda ledger: ledger.drop_vars("model_sending_spacing"),
    "limit raised": scaled("model_receiving_limit", 2.0),
    "limit dropped": lambda ledger: ledger.drop_vars("model_receiving_limit"),
    "noise and spacing halved": lambda ledger: scaled("model_receiving_limit", 0.5)(
        scaled("model_sending_spacing", 0.5)(scaled("model_sending_noise", 0.5)(ledger))
    ),
    "seeded": with_attributes(noise_source="seeded"),
    "draws of real numbers": with_attributes(model_draws="noise: normal of a node"),
    "another source": with_attributes(noise_source="dice"),
    "source not said": lambda ledger: without_attribute(ledger, "noise_source"),
    "fewer parameters": with_attributes(dim=1),
    "parameters not said": lambda ledger: without_attribute(ledger, "dim"),
    "parameters a word": with_attributes(dim="2"),
    "a better sampler": with_attributes(sampler_error=2.0**-60),
    "sampler not said": lambda ledger: without_attribute(ledger, "sampler_error"),
}
NEEDED = (
    *(
        "power",
        "sensitivity",
        "promised_mu",
        "model_sending_amplitude",
        "model_sending_noise",
        "model_sending_schedule",
    ),
    *(f"model_receiving_{name}" for name in ("heard", "kept", "step", "z", "newest")),
    *("model_sender", "model_receiver", "model_gain"),
)


def caught(run: Result) -> str:
    """The line that says what is wrong."""
    try:
        outcome = certify(run)
    except Altered as problem:
        assert problem.hint  # noqa: PT017 - either way is fine, a traceback is not
        return str(problem)
    assert outcome.verdict == "broken", outcome
    assert outcome.tier == "none"
    assert outcome.problems
    return outcome.problems[0]


def hashed_anew(folder: Path, info: dict[str, Any] | None = None) -> None:
    """run.json with fresh hashes of all files, as a forger would write it."""
    stated = json.loads((folder / results.RUN).read_text())
    hashes = stated.pop("sha256")
    form = stated.pop("format")
    stated = stated if info is None else info
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in hashes if name != results.RUN}
    hashes[results.RUN] = results._hash_of(stated)
    (folder / results.RUN).write_text(json.dumps({"format": form, **stated, "sha256": hashes}))
