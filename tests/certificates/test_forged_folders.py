"""Forged folders, each refused, and honest ones of every kind, each accepted; all through the command itself."""

import contextlib
import io
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.cli import main
from murmurcast.engine.observe import MOST_EVALUATED, SAMPLE
from murmurcast.runs.result import Result
from tests.certificates import forgeries as forge
from tests.certificates.forgeries import Forge, all_of, in_experiment, in_hdf5, in_ledger, in_run, metric, times, told


class Said(NamedTuple):
    code: int
    out: str
    err: str


def command(*words: str) -> Said:
    """The command in this process: quicker than a new one for every call."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["murmurcast", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
            main()
    finally:
        sys.argv = before
    assert isinstance(left.value.code, int)
    return Said(left.value.code, out.getvalue(), err.getvalue())


ONE_WAY = [[0.0, 0.9, 0.0, 0.0], [0.0, 0.0, 1.1, 0.5], [0.8, 0.0, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]]
QUADRATIC: dict[str, Any] = {
    "data": None,
    "problem__kind": "quadratic",
    "privacy__unit": "node",
    "problem__radius": 3.0,
}
HONEST: dict[str, dict[str, Any]] = {
    "ours": {},
    "again": {"run__seeds": [7]},
    "other": {"privacy__epsilon": 1.0, "run__seeds": [9]},
    "loose": {"schedule__noise_to_step": 400.0, "privacy__epsilon": 9.0, "run__seeds": [11]},
    "seeds": {"run__seeds": 3},
    "perron": {"network__z": "perron", "schedule__noise_timing": "aligned"},
    "average": {"algorithm__publish": "average", "schedule__decay": "constant"},
    "drops": {"run__drops": {"3": 3}},
    "stopped": {"run__stop_after": 4},
    "secure": {"privacy__noise_source": "secure", "run__precision": "float64"},
    "batch": {"problem__batch": 4},
    "node": QUADRATIC,
    "own point": QUADRATIC | {"algorithm__gradient_at": "own"},
    "per epoch": {"privacy__target": "per-epoch", "privacy__epsilon": 1.0, "privacy__unit": "node"},
    "orthogonal": {"algorithm__name": "orthogonal"},
    "decor": {"algorithm__name": "decor"},
    "central": {"algorithm__name": "central-dp"},
    "alone": {"algorithm__name": "local-only"},
    "one way": QUADRATIC | {"algorithm__name": "frost", "network__gains": ONE_WAY, "problem__radius": None},
    "noiseless": {"algorithm__name": "noiseless"},
    "seldom": {"run__evaluate_every": 4},
    "own network": {"network__gains": None, "network__file": "gains.csv"},
    "own data": {"data__name": "mine.npz", "data__examples": None, "data__features": None},
    "drawn": {
        "network__gains": None,
        "network__power": None,
        "network__topology": "erdos-renyi",
        "network__nodes": 6,
        "network__probability": 0.7,
    },
    "large": QUADRATIC
    | {
        "network__gains": None,
        "network__power": None,
        "network__topology": "ring",
        "network__nodes": MOST_EVALUATED + 1,
        "schedule__noise_timing": "aligned",
    },
}
SHARED_OUT = {"data__partition": "iid", "run__seeds": [21]}  # the same records at other nodes


class Runs:
    """Runs as the command makes them, each when it is first asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        rng = np.random.default_rng(5)
        np.savez(place / "mine.npz", x=rng.normal(size=(90, 5)), y=rng.normal(size=90))
        (place / "gains.csv").write_text("sender,receiver,gain\n0,1,0.9\n1,0,0.7\n1,2,1.1\n2,1,0.6\n2,3,0.4\n3,2,0.8\n")

    def __getitem__(self, name: str) -> Path:
        if not (self.place / name).exists():
            file = self.place / f"{name}.toml"
            file.write_text(forge.experiment(**(HONEST | {"shared out": SHARED_OUT})[name]))
            done = command("run", str(file), "--out", str(self.place / name))
            assert done.code == 0, done.err
        return self.place / name


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Made once for all tests."""
    return Runs(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def folder(honest: Runs, tmp_path: Path) -> Path:
    """A copy of the first run that a test may spoil, with others beside it."""
    for name in ("ours", "other", "loose", "secure"):
        shutil.copytree(honest[name], tmp_path / name)
    return tmp_path


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_is_accepted(honest: Runs, name: str) -> None:
    done = command("certify", str(honest[name]))
    assert done.code == 0, done.err
    assert "error" not in done.err
    verdict = "nothing is promised" if name in ("one way", "noiseless") else "kept"
    assert f"Verdict  {verdict}" in done.out
    assert "not at hand" not in done.out
    assert mc.certify(mc.load_run(honest[name])).verdict == verdict


def swapped(name: str) -> Forge:
    """The ledger of another run, with all that run.json says of its promise."""

    def edit(run: Result, other: Result) -> Result:
        return replace(run, ledger=other.ledger, info=run.info | {"privacy": other.info["privacy"]})

    return lambda folder: edit(mc.load_run(folder), mc.load_run(folder.parent / name)).save(folder)


def with_sizes(ledger: xr.Dataset) -> xr.Dataset:
    """More examples than there are, so that each counts less."""
    return times(examples_per_node=3.0, sensitivity=1 / 3)(ledger)


def with_clip(ledger: xr.Dataset) -> xr.Dataset:
    return times(sensitivity=0.5)(ledger).assign_attrs(clip=0.35)


def one_weaker_gain(ledger: xr.Dataset) -> xr.Dataset:
    """A gain changed, and the receiver's factor with it: weights still sum to 1, and z is of other weights."""
    gain, heard = np.array(ledger["model_gain"]), np.array(ledger["model_receiving_heard"])
    receiver, sender = np.asarray(ledger["model_receiver"]), np.asarray(ledger["model_sender"])
    loud, into = np.asarray(ledger["model_sending_amplitude"])[0], int(receiver[0])
    before = (gain * loud[sender])[receiver == into].sum()
    gain[0] /= 3
    heard[:, into] *= before / (gain * loud[sender])[receiver == into].sum()
    return ledger.assign(model_gain=("model_link", gain), model_receiving_heard=(("always", "node"), heard))


def z_and_noise(ledger: xr.Dataset) -> xr.Dataset:
    """What gradients are divided by raised, and the noise lowered with it: the promise stays as it was."""
    return times(model_receiving_z=1.5, model_sending_noise=1 / 1.5)(ledger)


def fewer_epochs(run: Result) -> Result:
    rows = {str(dim): slice(0, 5) for dim in run.ledger.dims if str(dim) == "epoch" or str(dim).endswith("_row")}
    ledger = run.ledger.isel(rows).assign_attrs(epochs=5)
    kept = replace(run, ledger=ledger, metrics=run.metrics.sel(epoch=run.metrics["epoch"] <= 5))
    text = run.experiment.replace("epochs = 6", "epochs = 5")
    return forge.promised_anew(replace(kept, info=run.info | {"epochs": 5}, experiment=text))


def unit_node_for_record(ledger: xr.Dataset) -> xr.Dataset:
    return ledger.assign(sensitivity=("node", np.full(4, 1.4))).assign_attrs(unit="node", clipping="node")


def without_experiment(edit: Forge) -> Forge:
    """As if made in Python: nothing to rebuild a plan from."""
    return all_of(in_run(lambda run: replace(run, experiment="")), edit)


def published(edit: Any) -> Forge:
    return in_run(lambda run: replace(run, published=edit(run.published)))


def another_network(folder: Path) -> None:
    file = folder / "gains.csv"
    file.write_text(file.read_text().replace("0.9", "1.9"))


def attribute(file: h5py.File, where: str, name: str, value: Any) -> None:
    (file if not where else file[where]).attrs[name] = value


LOUDER = {"model_sending_noise": 2.0}
FORGED: dict[str, Forge] = {
    # the noise that is claimed
    "noise doubled, promise halved": in_ledger(times(**LOUDER)),
    "noise doubled, made in Python": without_experiment(in_ledger(times(**LOUDER))),
    "schedule of the noise doubled": in_ledger(times(model_sending_schedule=2.0)),
    "noise of one node": in_ledger(
        lambda ledger: ledger.assign(model_sending_noise=ledger["model_sending_noise"] * np.array([1.0, 1.0, 4.0, 1.0]))
    ),
    "noise and power sent quadrupled": all_of(
        in_ledger(times(**LOUDER)),
        metric("sent_power", lambda sent: 4 * sent),
        metric("loudest", lambda sent: 4 * sent),
    ),
    "noise of one epoch never sent": without_experiment(
        metric("sent_power", lambda sent: sent * np.r_[1, 1, 1, 1, 1, 0.0][:, None])
    ),
    "power sent not a number": metric("sent_power", lambda sent: sent * np.nan),
    "power sent infinite": all_of(
        metric("sent_power", lambda sent: sent + np.inf), metric("loudest", lambda sent: sent + np.inf)
    ),
    "louder than the loudest": metric("loudest", lambda sent: sent / 2),
    "power budgets": in_ledger(times(power=4.0)),
    # the weights
    "gains scaled": in_ledger(times(model_gain=2.0, model_receiving_heard=0.5)),
    "one gain": in_ledger(one_weaker_gain),
    "one gain, made in Python": without_experiment(in_ledger(one_weaker_gain)),
    "z and noise": in_ledger(z_and_noise),
    "z and noise, made in Python": without_experiment(in_ledger(z_and_noise)),
    "z raised, promise lowered": without_experiment(in_ledger(times(model_receiving_z=1.5))),
    "steps shortened": in_ledger(times(model_receiving_step=0.5)),
    "steps shortened in the experiment too": all_of(
        in_ledger(times(model_receiving_step=0.5)), in_experiment("step = 0.3", "step = 0.15")
    ),
    "shares of the newest point": in_ledger(times(model_receiving_newest=0.5)),
    # unit, clip, examples
    "more examples": in_ledger(with_sizes),
    "clip lowered": in_ledger(with_clip),
    "clip lowered in the experiment too": all_of(in_ledger(with_clip), in_experiment("clip = 0.7", "clip = 0.35")),
    "not clipped": in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(clipping="none"))),
    "unit node": all_of(
        in_ledger(unit_node_for_record),
        told("privacy", "unit", value="node"),
        in_experiment('unit = "record"', 'unit = "node"'),
    ),
    "a batch": in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(batch=4))),
    "delta": all_of(
        in_run(lambda run: forge.promised_anew(replace(run, ledger=run.ledger.assign_attrs(delta=1e-3)))),
        told("privacy", "delta", value=1e-3),
    ),
    # runs mixed up
    "ledger of another plan": swapped("other"),
    "ledger of a looser plan": swapped("loose"),
    "ledger of secure noise": swapped("secure"),
    "metrics of another run": lambda folder: replace(
        mc.load_run(folder), metrics=mc.load_run(folder.parent / "other").metrics.assign_coords(seed=[0])
    ).save(folder),
    "models of another run": lambda folder: replace(
        mc.load_run(folder), published=mc.load_run(folder.parent / "other").published
    ).save(folder),
    "models moved": published(lambda models: models + 0.5),
    "models not a number": published(lambda models: models * np.nan),
    "seeds copied": in_run(
        lambda run: replace(run, info=run.info | {"seeds": [5]}, metrics=run.metrics.assign_coords(seed=[5]))
    ),
    "an epoch dropped everywhere": in_run(fewer_epochs),
    "an evaluation dropped": in_run(lambda run: replace(run, metrics=run.metrics.isel(epoch=[0, 1, 3, 4, 5]))),
    "the last evaluation dropped": in_run(lambda run: replace(run, metrics=run.metrics.isel(epoch=slice(0, 5)))),
    # run.json and experiment
    "epsilon quoted lower": told("privacy", "epsilon", value=0.1),
    "precision": told("precision", value="float64"),
    "kind of problem": told("problem", "kind", value="Quadratic"),
    "settings": told("settings", value={"gradient_at": "mixed"}),
    "nodes by the milliard": told("problem", "nodes", value=10**9),
    "another method": all_of(
        told("algorithm", value="orthogonal"),
        in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(algorithm="orthogonal", model_channel="links"))),
    ),
    "another network in the experiment": in_experiment("0.9", "0.95"),
    "another budget in the experiment": in_experiment("epsilon = 3.0", "epsilon = 4.0"),
    "other data in the experiment": in_experiment("examples = 120", "examples = 130"),
    "a million nodes in the experiment": in_experiment("[privacy]", 'topology = "ring"\nnodes = 1000000\n[privacy]'),
    "an experiment that is none": in_experiment("[schedule]", "[sched]"),
    # what nobody accounts for
    "an unknown table": in_run(lambda run: replace(run, ledger=run.ledger.assign(raw=run.ledger["power"]))),
    "an unknown word": in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(reviewed="yes"))),
    "an unknown promise": in_run(
        lambda run: replace(run, ledger=run.ledger.assign(promised_mu_against_nobody=run.ledger["power"]))
    ),
    "a number that is none": in_run(
        lambda run: replace(run, ledger=run.ledger.assign(power=run.ledger["power"] * np.nan))
    ),
    "an infinite step": in_run(lambda run: replace(run, ledger=times(model_receiving_step=np.inf)(run.ledger))),
    "a scale beside a table": in_hdf5(lambda file: attribute(file, "model_sending_noise", "scale_factor", 2.0)),
    "a fill value": in_hdf5(lambda file: attribute(file, "model_sending_noise", "_FillValue", 1.0)),
    "a folder in the ledger": in_hdf5(lambda file: file.create_group("inside") and None),
    # nothing outside is read, nothing is waited for, nothing grows
    "a link to another file": in_hdf5(forge.external_link),
    "numbers in another file": in_hdf5(forge.external_storage),
    "a table of another file's": in_hdf5(forge.virtual),
    "a link within": in_hdf5(lambda file: file.__setitem__("model_sending_more", h5py.SoftLink("/power"))),
    "24 GB of nothing": in_hdf5(forge.huge),
    "24 GB, in pieces": in_hdf5(lambda file: forge.huge(file, chunks=(2**20,), compression="gzip")),
    "24 GB of metrics": in_hdf5(
        lambda file: file.create_dataset("own_more", (3_000_000_000,), "f8") and None, "metrics.nc"
    ),
    "compressed metrics": in_hdf5(
        lambda file: file.create_dataset("own_more", data=np.zeros(9), compression="gzip") and None, "metrics.nc"
    ),
    "8 GB of models": forge.then_hashed(forge.replaced("published.npz", forge.huge_models)),
    "a bomb of models": forge.then_hashed(forge.replaced("published.npz", forge.bomb)),
    "a ledger of holes": forge.replaced("ledger.nc", forge.sparse),
    **{
        f"{name} a pipe": forge.replaced(name, os.mkfifo)
        for name in ("run.json", "ledger.nc", "metrics.nc", "metrics.csv", "published.npz", "experiment.toml")
    },
    **{f"{name} a link": forge.replaced(name, forge.linked) for name in ("ledger.nc", "experiment.toml", "run.json")},
    "the ledger a device": forge.replaced("ledger.nc", lambda path: path.symlink_to("/dev/zero")),
}
OF_OTHERS: dict[tuple[str, str], Forge] = {
    ("drops", "a drop earlier"): in_run(
        lambda run: replace(
            run,
            ledger=run.ledger.assign_attrs(drops="node 3 after epoch 2"),
            info=run.info | {"settings": run.info["settings"] | {"drops": "node 3 after epoch 2"}},
        )
    ),
    ("drops", "power after a drop"): metric("sent_power", lambda sent: sent + 0.1),
    ("stopped", "a stop later"): in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(planned_epochs=4))),
    ("secure", "seeded"): all_of(
        in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(noise_source="seeded", law="gaussian"))),
        told("privacy", "noise_source", value="seeded"),
    ),
    ("secure", "noise quartered"): in_ledger(
        times(model_sending_noise=4.0, model_sending_spacing=4.0, model_receiving_limit=4.0)
    ),
    ("batch", "larger batch"): all_of(
        in_ledger(lambda ledger: times(examples_per_node=2.0, sensitivity=0.5)(ledger).assign_attrs(batch=8)),
        in_experiment("batch = 4", "batch = 8"),
    ),
    ("loose", "more examples"): in_ledger(with_sizes),
    ("decor", "shared noise"): in_ledger(times(model_sending_shared=3.0, model_sending_own=3.0)),
    ("decor", "shared noise, made in Python"): without_experiment(
        in_ledger(times(model_sending_shared=9.0, model_sending_own=9.0))
    ),
    ("node", "models moved"): published(lambda models: models + 0.5),
    ("own network", "another network"): another_network,
    ("own network", "no network"): lambda folder: (folder / "gains.csv").unlink(),
    ("own network", "a pipe for a network"): forge.replaced("gains.csv", os.mkfifo),
}


def refused(folder: Path) -> str:
    """What the command says, after checking that it gives no certificate and leaves none behind."""
    done = command("certify", str(folder))
    assert done.code in (1, 2), done.out
    lines = [line for line in done.err.strip().split("\n") if not line.startswith("withdrawn: ")]
    assert lines[0].startswith("error: "), done.err
    assert lines[1].startswith("hint: "), done.err
    assert "Traceback" not in done.err
    assert not (folder / "certificate.json").exists()
    return lines[0]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_folder_is_refused(folder: Path, name: str) -> None:
    FORGED[name](folder / "ours")
    refused(folder / "ours")


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("of", "name"), OF_OTHERS)
def test_a_forged_folder_of_another_kind_is_refused(honest: Runs, tmp_path: Path, of: str, name: str) -> None:
    shutil.copytree(honest[of], tmp_path / of)
    OF_OTHERS[of, name](tmp_path / of)
    refused(tmp_path / of)


def test_of_a_large_network_the_public_sample_of_nodes_is_compared(honest: Runs, tmp_path: Path) -> None:
    """A forger may not choose the nodes that do well, nor say that they are others."""
    shutil.copytree(honest["large"], tmp_path / "large")
    run = mc.load_run(tmp_path / "large")
    assert run.metrics.sizes["node"] == SAMPLE
    assert "Verdict  kept" in command("certify", str(tmp_path / "large")).out
    replace(run, metrics=run.metrics.assign_coords(node=np.arange(SAMPLE))).save(tmp_path / "large")
    assert "other nodes than those that are evaluated" in refused(tmp_path / "large")


def test_nothing_outside_is_looked_at_and_no_code_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that the experiment names is not imported, and its file of data is not looked for elsewhere."""
    (folder / "hostile.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(folder)
    for words in ('name = "hostile:method"', 'name = "hostile:method"\npublish = "last"'):
        run = folder / f"run{len(words)}"
        shutil.copytree(folder / "ours", run)
        in_experiment('name = "power-controlled"', words)(run)
        assert "experiment.toml" in refused(run)
    in_experiment('name = "least-squares"\n', 'name = "../../outside.npz"\n')(folder / "loose")
    in_experiment("examples = 120\nfeatures = 12\n", "")(folder / "loose")
    assert "is not there" in " ".join(mc.certify(mc.load_run(folder / "loose")).not_compared)


@pytest.mark.slow
def test_data_that_is_not_at_hand_is_an_assumption(honest: Runs, tmp_path: Path) -> None:
    """All the rest is compared; where the data lies, one may say."""
    shutil.copytree(honest["own data"], tmp_path / "away" / "far" / "own")
    run = mc.load_run(tmp_path / "away" / "far" / "own")
    assert mc.certify(run).verdict == "kept"
    assert "mine.npz is not there" in " ".join(mc.certify(run).not_compared)
    done = command("certify", str(run.folder), "--data", str(honest.place))
    assert done.code == 0
    assert "not at hand" not in done.out
    with np.load(honest.place / "mine.npz") as held:
        np.savez(tmp_path / "mine.npz", x=held["x"][:80], y=held["y"][:80])
    assert "sensitivity" in refuse_with(run, tmp_path)
    in_ledger(times(**LOUDER))(run.folder or Path())
    assert "model_sending_noise" in refused(run.folder or Path())


def refuse_with(run: Result, data: Path) -> str:
    with pytest.raises(mc.Error) as caught:
        mc.certify(run, data=data)
    return str(caught.value)


@pytest.mark.slow
def test_records_in_two_runs_pay_for_both(honest: Runs) -> None:
    """The same records at other nodes: the largest costs of each run, squared, add up; of nodes nothing follows."""
    runs = [mc.load_run(honest[name]) for name in ("loose", "shared out")]
    parts, both = [mc.certify(run) for run in runs], mc.certify(runs)
    assert len(set(parts[0].mu.round(9))) > 1
    np.testing.assert_allclose(both.mu, np.hypot(*(part.mu.max() for part in parts)), rtol=1e-12)
    assert (both.verdict, both.tier) == ("kept", "tier 1")
    assert (both.mu >= np.hypot(*(part.mu for part in parts)) * (1 - 1e-12)).all()
    assert any("it pays for all of them" in line for line in both.assumptions)
    assert not any("same nodes" in line for line in both.assumptions)
    done = command("certify", str(honest["node"]), str(honest["per epoch"]))
    assert done.code == 2
    assert "do not add up" in done.err


def test_no_epsilon_is_shown_without_its_account(folder: Path) -> None:
    """Neither side by side nor on a page; the runs beside it keep theirs."""
    in_ledger(times(**LOUDER))(folder / "ours")
    lower = mc.load_run(folder / "ours").info["privacy"]["epsilon"]
    names = [str(folder / name) for name in ("ours", "other")]
    done = command("compare", *names, "--metric", "published_loss")
    assert done.code == 0
    assert done.out.count("not certified") == 2  # the run's cell, and what it means
    assert "1 (record)" in done.out
    rows = json.loads(command("compare", *names, "--metric", "published_loss", "--json").out)["runs"]
    assert [row["epsilon"] is None for row in rows] == [True, False]
    assert rows[0]["caveat"] == "not certified"
    page = folder / "page.html"
    assert command("report", *names, "-o", str(page)).code == 0
    text = page.read_text()
    assert "is not certified" in text
    assert f"epsilon {lower:.4g}" not in text
    assert mc.compare(mc.load_run(folder / "ours")).rows[0].epsilon is None
