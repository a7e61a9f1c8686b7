"""Forged folders of runs over a radio, each refused with what contradicts; honest ones accepted; by the command itself.

Every forgery is tried twice: beside its experiment, from which the plan is made anew, and as if it had been made in
Python, where the ledger has nothing to be held against but itself.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.runs.result import Result
from tests.certificates import forgeries as forge
from tests.certificates.forged_folders import without_experiment
from tests.certificates.forgeries import Forge, in_ledger, in_run, metric, times
from tests.certificates.test_forged_folders import command

GAINS = 1e-4 * np.array([[0.0, 0.9, 0.4, 0.0], [0.7, 0.0, 1.1, 0.5], [0.8, 0.6, 0.0, 0.3], [0.0, 0.3, 0.7, 0.0]])
OVER_RADIO: dict[str, Any] = {
    "network__gains": GAINS.tolist(),
    "network__power": None,
    "problem__radius": 3.0,
    "schedule__noise_timing": "aligned",
    "radio__power_dbm": 10.0,
}
HONEST: dict[str, dict[str, Any]] = {
    "own slots": OVER_RADIO | {"radio__fading": "jakes", "network__z": "predicted"},
    "halves": OVER_RADIO | {"radio__access": "referenced", "schedule__rounds": 2, "run__seeds": 2},
    "renewed": OVER_RADIO | {"radio__recentre_every": 2},
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, as the command makes them."""
    place = tmp_path_factory.mktemp("radio")
    for name, changes in HONEST.items():
        file = place / f"{name}.toml"
        file.write_text(forge.experiment(**changes))
        done = command("run", str(file), "--out", str(place / name))
        assert done.code == 0, done.err
    return place


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.slow
def test_an_honest_run_over_a_radio_is_accepted(honest: Path, name: str) -> None:
    done = command("certify", str(honest / name))
    assert done.code == 0, done.err
    assert "Verdict  kept" in done.out
    run = mc.load_run(honest / name)
    without = mc.certify(replace(run, experiment=""))
    assert (without.verdict, without.tier) == ("kept", "tier 1")


def one_gain(ledger: xr.Dataset) -> xr.Dataset:
    """Of one link, and in one direction only."""
    names = [str(name) for name in ledger.variables if str(name).endswith("_gain")]
    values = {name: np.array(ledger[name]) for name in names}
    for table in values.values():
        table[1] *= 1.5
    return ledger.assign({name: (ledger[name].dims, table) for name, table in values.items()})


def radio(**changes: Any) -> Callable[[xr.Dataset], xr.Dataset]:
    """Settings of the radio changed, in all rounds."""

    def edit(ledger: xr.Dataset) -> xr.Dataset:
        names = [name for name in ledger.attrs if name.endswith("_radio")]
        return ledger.assign_attrs({name: json.dumps(json.loads(ledger.attrs[name]) | changes) for name in names})

    return edit


def words(**factors: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """Numbers among a ledger's words, in all rounds, each times a factor."""

    def edit(ledger: xr.Dataset) -> xr.Dataset:
        outcome = {}
        for ending, factor in factors.items():
            for name in (name for name in ledger.attrs if f"_{name}".endswith(f"_{ending}")):
                outcome[name] = type(ledger.attrs[name])(ledger.attrs[name] * factor)
        assert outcome
        return ledger.assign_attrs(outcome)

    return edit


def tables(**factors: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """Tables of all rounds, each times a factor."""

    def edit(ledger: xr.Dataset) -> xr.Dataset:
        names = [(str(name), factors[key]) for name in ledger.variables for key in factors if str(name).endswith(key)]
        assert names
        return times(**dict(names))(ledger)

    return edit


def noise_that_stands_still(ledger: xr.Dataset) -> xr.Dataset:
    """The first epoch's in all of them, whatever z does."""
    noise = ledger["model_sending_noise"]
    assert noise.shape[0] > 1
    return ledger.assign(model_sending_noise=noise * 0 + noise.isel({noise.dims[0]: 0}))


def one_epoch_louder(ledger: xr.Dataset) -> xr.Dataset:
    names = [str(name) for name in ledger.variables if str(name).endswith("sending_scale")]
    return ledger.assign({name: ledger[name] * np.r_[1, 1, 1, 1.4, 1, 1] for name in names})


def without_second_round(run: Result, of_two: float) -> Result:
    """As if the first round had been all, with so much of the time and energy that two took."""
    ledger = run.ledger
    moved = {f"mixing2_receiving_{name}": f"model_receiving_{name}" for name in ("step", "z", "newest")}
    rows = {f"{name}_row": f"{moved[name]}_row" for name in moved if f"{name}_row" in ledger.dims}
    ledger = ledger.rename(moved | rows)
    ledger = ledger.drop_vars([name for name in ledger.variables if str(name).startswith("mixing2_")])
    ledger.attrs = {name: value for name, value in ledger.attrs.items() if not name.startswith("mixing2_")}
    ledger = words(air_seconds=of_two)(tables(joules=of_two)(ledger)).assign_attrs(rounds="model")
    changed = {name: run.metrics[name] * of_two for name in ("air_seconds", "joules", "channel_uses")}
    metrics = run.metrics.assign(changed | {"channel_uses": changed["channel_uses"].astype(np.int64)})
    return forge.promised_anew(replace(run, ledger=ledger, metrics=metrics, info=run.info | {"rounds": ["model"]}))


class Case(NamedTuple):
    """A forgery of one of the runs, and what certify says of it where there is no experiment."""

    of: str
    forged: Forge
    says: str


def both(ledger: Callable[[xr.Dataset], xr.Dataset], **metrics: float) -> Forge:
    """Ledger and metrics changed alike."""

    def edit(run: Result) -> Result:
        changed = {name: run.metrics[name] * factor for name, factor in metrics.items()}
        return forge.promised_anew(replace(run, ledger=ledger(run.ledger), metrics=run.metrics.assign(changed)))

    return in_run(edit)


FORGED: dict[str, Case] = {
    "one gain": Case("own slots", in_ledger(one_gain), "receiving_z"),
    "gains doubled at one end": Case("halves", in_ledger(one_gain), "receiving_z"),
    "a quieter receiver in the settings": Case("own slots", in_ledger(radio(noise_figure_db=0.0)), "receiver_noise"),
    "more bandwidth in the settings": Case("own slots", in_ledger(radio(bandwidth_hz=2e6)), "air_seconds"),
    "another seed of the radio": Case("own slots", in_ledger(radio(seed=5)), "receiving_z"),
    "no fading": Case("own slots", in_ledger(radio(fading="none")), "receiving_z"),
    "full duplex": Case("own slots", in_ledger(radio(duplex="full")), "receiver_noise"),
    "access renamed": Case("own slots", in_ledger(radio(access="aligned")), "slots"),
    "halves renamed": Case("halves", in_ledger(radio(access="own-slot")), ""),
    "a reference that is never renewed": Case("own slots", in_ledger(radio(recentre_every=3)), "recentre_every"),
    "receiver noise": Case("own slots", in_ledger(tables(receiver_noise=0.5)), "receiver_noise"),
    "seconds": Case("halves", both(words(air_seconds=0.5), air_seconds=0.5), "air_seconds"),
    "joules": Case("halves", both(tables(joules=0.5), joules=0.5), "joules"),
    "slots": Case("halves", in_ledger(words(slots=2)), "slots"),
    "joules of a flood": Case("renewed", in_ledger(tables(reference_joules=0.5)), "joules"),
    "seconds of a flood": Case("renewed", in_ledger(words(reference_air_seconds=0.5)), "air_seconds"),
    "channel uses": Case("halves", metric("channel_uses", lambda uses: uses // 2), "channel_uses"),
    "z raised": Case("own slots", in_ledger(tables(receiving_z=1.5)), "receiving_z"),
    "z raised, noise lowered": Case("halves", in_ledger(tables(receiving_z=1.5, sending_noise=1 / 1.5)), "receiving_z"),
    "noise that does not follow the step": Case("own slots", in_ledger(noise_that_stands_still), "sending_scale"),
    "noise doubled": Case("halves", in_ledger(tables(sending_noise=2.0)), "noise"),
    "a round removed, not its time": Case(
        "halves", in_run(lambda run: without_second_round(run, 1.0)), "model_air_seconds"
    ),
    "public factor": Case("own slots", both(tables(sending_scale=0.5), sent_power=0.25, loudest=0.25), "sending_scale"),
    "public factor of one epoch": Case("halves", in_ledger(one_epoch_louder), "scale"),
    "power sent above the scale": Case(
        "own slots", both(lambda ledger: ledger, sent_power=25.0, loudest=25.0), "model_sending_scale"
    ),
    "power sent below the noise": Case(
        "own slots", both(lambda ledger: ledger, sent_power=0.02, loudest=0.02), "was not sent"
    ),
    "power in watts": Case("own slots", in_ledger(times(power=2.0)), ""),
    "a split without noise": Case("own slots", in_ledger(times(model_sending_amplitude=2.0)), "no power for the noise"),
}
# Of these the ledger alone cannot say that they are wrong: it is that of another honest run.
OTHER_RUNS: dict[str, Case] = {
    "a round removed with its time": Case("halves", in_run(lambda run: without_second_round(run, 0.5)), "rounds"),
    "held less often": Case("own slots", in_ledger(radio(hold_below=1.0)), "model_radio"),
    "another seed where z is a mean": Case("halves", in_ledger(radio(seed=5)), "radio"),
}


def refused(folder: Path) -> str:
    """What the command says, after checking that it gives no certificate and leaves none behind."""
    done = command("certify", str(folder))
    assert done.code == 1, done.out + done.err
    lines = [line for line in done.err.strip().split("\n") if not line.startswith("withdrawn: ")]
    assert lines[0].startswith("error: "), done.err
    assert not (folder / "certificate.json").exists()
    return lines[0]


def forged(honest: Path, place: Path, case: Case) -> Path:
    shutil.copytree(honest / case.of, place / "run")
    return place / "run"


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.slow
def test_a_forged_folder_is_refused_by_its_own_contradiction(honest: Path, tmp_path: Path, name: str) -> None:
    case = FORGED[name]
    folder = forged(honest, tmp_path, case)
    without_experiment(case.forged)(folder)
    assert case.says in refused(folder)


@pytest.mark.parametrize("name", [*OTHER_RUNS, *FORGED])
@pytest.mark.slow
def test_a_forged_folder_is_refused_beside_its_experiment(honest: Path, tmp_path: Path, name: str) -> None:
    case = (FORGED | OTHER_RUNS)[name]
    folder = forged(honest, tmp_path, case)
    case.forged(folder)
    assert (case.says if name in OTHER_RUNS else "") in refused(folder)
