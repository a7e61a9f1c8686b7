"""Runs as the command makes them, and folders forged from them with every hash made anew.

A forger has the library too: where a number is changed, all that follows from it is changed along, and the folder is
consistent as far as its own tables go.
"""

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np
import xarray as xr

import murmurcast as mc
from murmurcast.algorithms import account, power_controlled, registry
from murmurcast.certificates.ledger import Ledger
from murmurcast.privacy import conversion
from murmurcast.runs import result as results
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import hashed_anew

BASE = """
[network]
gains = [[0.0, 0.9, 0.4, 0.0], [0.7, 0.0, 1.1, 0.5], [0.8, 0.6, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]]
power = [1.0, 2.0, 0.5, 1.5]
[privacy]
epsilon = 3.0
unit = "record"
clip = 0.7
[schedule]
epochs = 6
step = 0.3
[data]
name = "least-squares"
examples = 120
features = 12
partition = "quantity"
[problem]
kind = "ridge"
[algorithm]
name = "power-controlled"
[run]
evaluate_every = 1
"""
Forge = Callable[[Path], None]


def experiment(**changes: Any) -> str:
    """The experiment with sections changed: `section__key=value`, None to leave a key out."""
    import tomllib

    import tomli_w

    values = tomllib.loads(BASE)
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if not name:
            values.pop(section, None)
        elif value is None:
            values.get(section, {}).pop(name, None)
        else:
            values.setdefault(section, {})[name] = value
    return tomli_w.dumps(values)


def promised_anew(run: Result) -> Result:
    """The run with the promise that its tables come to, in the ledger and in run.json: what a forger writes."""
    ledger = run.ledger
    method = registry.find(str(ledger.attrs["algorithm"]))
    assert not isinstance(method.account, str)
    tables = Ledger(ledger, "forged", int(ledger.sizes["node"]), int(ledger.attrs["epochs"]))
    # The sum, without the checks: those are what a forger hopes to pass.
    hoped = (power_controlled, "require_z"), (account, "require_z"), (power_controlled, "require_radio_z")
    with contextlib.ExitStack() as passed:
        for check in hoped:
            passed.enter_context(patch.object(*check))
        releases = method.account(tables)
    names = ["promised_mu", *(f"promised_mu_against_{part.against.replace(' ', '_')}" for part in releases[1:])]
    ledger = ledger.assign({name: ("node", conversion.mu_of(part)) for name, part in zip(names, releases, strict=True)})
    epsilons = [float(conversion.epsilon_of(part, float(ledger.attrs["delta"])).max()) for part in releases]
    weaker = [{"against": part.against, "epsilon": eps} for part, eps in zip(releases[1:], epsilons[1:], strict=True)]
    privacy = run.info["privacy"] | {"epsilon": epsilons[0], "weaker": weaker}
    return replace(run, ledger=ledger, info=run.info | {"privacy": privacy})


def in_ledger(edit: Callable[[xr.Dataset], xr.Dataset]) -> Forge:
    """The ledger changed, and the promise with it."""

    def forge(folder: Path) -> None:
        run = mc.load_run(folder)
        promised_anew(replace(run, ledger=edit(run.ledger))).save(folder)

    return forge


def in_run(edit: Callable[[Result], Result]) -> Forge:
    """Anything changed, and nothing else."""
    return lambda folder: edit(mc.load_run(folder)).save(folder)


def in_experiment(there: str, instead: str) -> Forge:
    """Words of the experiment changed."""

    def edit(run: Result) -> Result:
        assert there in run.experiment, run.experiment
        return replace(run, experiment=run.experiment.replace(there, instead))

    return in_run(edit)


def stated(*keys: str, value: Any) -> Forge:
    """A value of run.json changed."""

    def edit(run: Result) -> Result:
        info = json.loads(json.dumps(run.info))
        place = info
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return replace(run, info=info)

    return in_run(edit)


def all_of(*forges: Forge) -> Forge:
    """One after the other."""

    def forge(folder: Path) -> None:
        for one in forges:
            one(folder)

    return forge


def times(**factors: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """Tables of a ledger, each times a factor."""
    return lambda ledger: ledger.assign({name: ledger[name] * factor for name, factor in factors.items()})


def metric(name: str, edit: Callable[[Any], Any]) -> Forge:
    """A metric changed."""
    return in_run(
        lambda run: replace(
            run, metrics=run.metrics.assign({name: (run.metrics[name].dims, edit(run.metrics[name].values))})
        )
    )


def in_hdf5(edit: Callable[[h5py.File], None], name: str = results.LEDGER) -> Forge:
    """The bytes of a file changed through h5py."""

    def forge(folder: Path) -> None:
        with h5py.File(folder / name, "r+") as file:
            edit(file)
        hashed_anew(folder)

    return forge


def replaced(name: str, put: Callable[[Path], None]) -> Forge:
    """A file of the folder replaced by something else."""

    def forge(folder: Path) -> None:
        (folder / name).unlink()
        put(folder / name)

    return forge


def linked(path: Path) -> None:
    """The file elsewhere, and a link to it."""
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    elsewhere.write_bytes(b"x" if not elsewhere.exists() else elsewhere.read_bytes())
    path.symlink_to(elsewhere)


def external_link(file: h5py.File) -> None:
    """A table that lies in another file."""
    with h5py.File(Path(file.filename).parent.parent / "outside.h5", "w") as outside:
        outside["model_sending_noise"] = file["model_sending_noise"][:]
    del file["model_sending_noise"]
    file["model_sending_noise"] = h5py.ExternalLink("../outside.h5", "model_sending_noise")


def external_storage(file: h5py.File) -> None:
    """Numbers that lie in another file."""
    raw = Path(file.filename).parent.parent / "outside.raw"
    raw.write_bytes(file["power"][:].tobytes())
    del file["power"]
    file.create_dataset("power", (4,), "f8", external=[(str(raw), 0, h5py.h5f.UNLIMITED)])


def virtual(file: h5py.File) -> None:
    """A table put together from another file."""
    source = Path(file.filename).parent.parent / "source.h5"
    with h5py.File(source, "w") as outside:
        outside["power"] = file["power"][:]
    del file["power"]
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(str(source), "power", (4,))
    file.create_virtual_dataset("power", layout)


def huge(file: h5py.File, **storage: Any) -> None:
    """A table of 24 GB that takes no place."""
    file.create_dataset("model_sending_more", (3_000_000_000,), "f8", **storage)


def huge_models(path: Path) -> None:
    """Models of 8 GB, by their own word."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f8", "fortran_order": False, "shape": (1, 4, 250_000_000)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("published.npy", content.getvalue())


def bomb(path: Path) -> None:
    """Models of 1 GB of zeros in 1 MB."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (1, 4, 10**7)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("published.npy", "w") as stream:
        stream.write(content.getvalue())
        for _ in range(320):
            stream.write(bytes(10**6))


def sparse(path: Path) -> None:
    """A file of 1 TB of holes."""
    with path.open("wb") as file:
        os.truncate(file.fileno(), 2**40)


def then_hashed(forge: Forge) -> Forge:
    """With the hashes made anew."""

    def both(folder: Path) -> None:
        forge(folder)
        hashed_anew(folder)

    return both
