"""What a run leaves behind: its figures with labels, the ledger of what was sent, and how it came about."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from murmurcast.algorithms.base import Air, Algorithm, Promise, Slots
from murmurcast.engine.train import Record
from murmurcast.privacy import discrete
from murmurcast.privacy.conversion import note
from murmurcast.problems.base import Problem

if TYPE_CHECKING:
    import xarray as xr

Precision = Literal["float32", "float64"]


def metrics(algorithm: Algorithm, seeds: tuple[int, ...], records: "list[tuple[Record, ...]]") -> "xr.Dataset":
    """All records, group of seeds by group, as one labelled set [seed, epoch, node]."""
    import xarray as xr

    power = algorithm.plan.network.power
    variables: dict[str, Any] = {}
    for name, example in records[0][0].figures.items():
        stacked = np.stack(
            [np.concatenate([group[i].figures[name] for group in records], axis=-1) for i in range(len(records[0]))]
        )
        if example.ndim == 1:
            variables[name] = (("seed", "epoch"), stacked.T)
        elif name == "loudest":
            variables[name] = (("seed", "node"), (stacked[-1] / power[:, None]).T)
        else:
            scaled = stacked / power[None, :, None] if name == "sent_power" else stacked
            variables[name] = (("seed", "epoch", "node"), scaled.transpose(2, 0, 1))
    epochs = np.array([record.epoch for record in records[0]])
    seconds = np.sum([[record.seconds for record in group] for group in records], axis=0)
    variables["channel_uses"] = ("epoch", epochs * algorithm.channel_uses)
    variables["seconds"] = ("epoch", seconds)
    return xr.Dataset(
        variables, {"seed": list(seeds), "epoch": epochs, "node": np.arange(len(power))}, {"algorithm": algorithm.name}
    )


def promise(algorithm: Algorithm, problem: Problem) -> Promise:
    """What holds on this problem: without a clip, nothing that depends on one."""
    if problem.clipping == "none" and algorithm.promise.mu.any():
        return Promise(np.full(problem.nodes, np.inf), "gradients are not clipped: nothing is promised")
    return algorithm.promise


def ledger(algorithm: Algorithm, problem: Problem) -> "xr.Dataset":
    """What was sent, by which rule: the very tables that the engine was given, in float64."""
    import xarray as xr

    plan, medium = algorithm.plan, algorithm.medium
    variables: dict[str, Any] = {
        "power": ("node", plan.network.power),
        "sensitivity": ("node", plan.sensitivity),
        "promised_mu": ("node", promise(algorithm, problem).mu),
    }
    if problem.examples_per_node is not None:
        variables["examples_per_node"] = ("node", problem.examples_per_node)
    for part in ("sending", "receiving"):
        for name, table in getattr(algorithm, part)._asdict().items():
            rows = f"{part}_{name}_row" if table.ndim > 1 and len(table) > 1 else "always"
            dims = ("epoch",) if table.ndim == 1 else (rows, "node", "slot")[: table.ndim]
            variables[f"{part}_{name}"] = (dims, table)
    if isinstance(medium, Air | Slots):
        links = medium.gains.tocoo()
        variables |= {
            "sender": ("link", links.coords[0]),
            "receiver": ("link", links.coords[1]),
            "gain": ("link", links.data),
        }
    return xr.Dataset(
        variables,
        attrs={
            "algorithm": algorithm.name,
            "medium": type(medium).__name__,
            "epochs": plan.schedule.epochs,
            "delta": plan.budget.delta,
            "unit": plan.budget.unit,
            "clip": problem.clip,
            "clipping": problem.clipping,
            "normaliser": plan.mixing.normaliser,
            **({} if (batch := getattr(problem, "batch", None)) is None else {"batch": batch}),
            "noise_source": plan.budget.noise_source,
            **({"dim": problem.dim, "sampler_error": discrete.SAMPLER_ERROR} if _is_secure(algorithm) else {}),
            **algorithm.settings,
        },
    )


def _is_secure(algorithm: Algorithm) -> bool:
    return algorithm.plan.budget.noise_source == "secure"


def info(
    algorithm: Algorithm, problem: Problem, name: str, seeds: tuple[int, ...], precision: Precision
) -> dict[str, Any]:
    """Names, seeds, versions and kind of machine: nothing about who ran it, or where."""
    held = promise(algorithm, problem)
    mu, delta = float(held.mu.max()), algorithm.plan.budget.delta
    return {
        "name": name,
        "algorithm": algorithm.name,
        "settings": dict(algorithm.settings),
        "problem": {"kind": type(problem).__name__, "nodes": problem.nodes, "dim": problem.dim},
        "epochs": algorithm.plan.schedule.epochs,
        "seeds": list(seeds),
        "precision": precision,
        "privacy": {
            "epsilon": float(algorithm.plan.curve.epsilon(np.array(mu), delta)) if np.isfinite(mu) else None,
            "delta": delta,
            "unit": algorithm.plan.budget.unit,
            "basis": held.basis,
            "caveat": held.caveat,
            "noise_source": algorithm.plan.budget.noise_source,
            "note": note(algorithm.plan.budget.noise_source),
        },
        "versions": {package: version(package) for package in ("murmurcast", "jax", "jaxlib", "numpy", "scipy")}
        | {"python": platform.python_version()},
        "machine": {"system": platform.system(), "kind": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of murmurcast's own source, where it runs from a checkout; with a + where files differ from it."""
    folder = Path(__file__).parents[1]
    git = shutil.which("git")
    if git is None or not (folder.parents[1] / ".git").exists():
        return None

    def ask(*words: str) -> str:
        command = [git, "-C", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
        return done.stdout.strip()

    commit = ask("rev-parse", "HEAD")
    return f"{commit}{'+' if ask('status', '--porcelain', '--', '.') else ''}" if commit else None
