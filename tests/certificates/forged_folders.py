"""Every forgery of a run's folder that is tried, by what it claims.

All but a few are consistent as far as their own tables go: see forgeries.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

import murmurcast as mc
from murmurcast.runs.result import Result
from tests.certificates import forgeries as forge
from tests.certificates.forgeries import Forge, all_of, in_experiment, in_hdf5, in_ledger, in_run, metric, stated, times


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
        stated("privacy", "unit", value="node"),
        in_experiment('unit = "record"', 'unit = "node"'),
    ),
    "a batch": in_run(lambda run: replace(run, ledger=run.ledger.assign_attrs(batch=4))),
    "delta": all_of(
        in_run(lambda run: forge.promised_anew(replace(run, ledger=run.ledger.assign_attrs(delta=1e-3)))),
        stated("privacy", "delta", value=1e-3),
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
    "epsilon quoted lower": stated("privacy", "epsilon", value=0.1),
    "precision": stated("precision", value="float64"),
    "kind of problem": stated("problem", "kind", value="Quadratic"),
    "settings": stated("settings", value={"gradient_at": "mixed"}),
    "nodes by the milliard": stated("problem", "nodes", value=10**9),
    "another method": all_of(
        stated("algorithm", value="orthogonal"),
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
        stated("privacy", "noise_source", value="seeded"),
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
