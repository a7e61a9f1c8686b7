"""What a run leaves behind: its metrics with labels, the ledger of what was sent, and how it came about."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Round, counting_first_releases
from murmurcast.algorithms.promise import in_words, promise_to
from murmurcast.algorithms.promise import why_nothing as why_nothing
from murmurcast.algorithms.side_vectors import setup_uses
from murmurcast.data.assumptions import assumptions
from murmurcast.data.partition import Partition
from murmurcast.data.preprocessing import numbers_released
from murmurcast.engine import check, draws, node, noise
from murmurcast.engine.train import Record
from murmurcast.planning.plan import Plan
from murmurcast.privacy import discrete
from murmurcast.privacy.best_guess import of_releases
from murmurcast.privacy.conversion import epsilon_of, mu_of, note
from murmurcast.privacy.releases import Releases
from murmurcast.problems.base import Problem
from murmurcast.problems.sampling import Sampling
from murmurcast.problems.trust import data_facts
from murmurcast.runs.labelled import Labelled, Variable
from murmurcast.runs.radio_use import RadioUse, radio_use
from murmurcast.runs.result import LEDGER_FORMAT, hash_of_start
from murmurcast.runs.validate import SENDER

Precision = Literal["float32", "float64"]


def metrics(
    algorithm: Algorithm, seeds: tuple[int, ...], records: list[tuple[Record, ...]], nodes: NDArray[Any]
) -> Labelled:
    """All records, group of seeds by group, as one labelled set [seed, epoch, node] of the nodes that were evaluated.

    Where these are a sample, what was sent is [seed, epoch, sender] of all nodes.
    """
    power = algorithm.setup.network.power
    everybody = "node" if len(nodes) == len(power) else SENDER
    variables: dict[str, Variable] = {}
    for name, example in records[0][0].metrics.items():
        stacked = np.stack(
            [np.concatenate([group[i].metrics[name] for group in records], axis=-1) for i in range(len(records[0]))]
        )
        if example.ndim == 1:
            variables[name] = Variable(("seed", "epoch"), stacked.T)
        elif name == "loudest":
            variables[name] = Variable(("seed", everybody), (stacked[-1] / power[:, None]).T)
        elif name == "sent_power":
            variables[name] = Variable(
                ("seed", "epoch", everybody), (stacked / power[None, :, None]).transpose(2, 0, 1)
            )
        else:
            variables[name] = Variable(("seed", "epoch", "node"), stacked.transpose(2, 0, 1))
    epochs = np.array([record.epoch for record in records[0]])
    seconds = np.sum([[record.seconds for record in group] for group in records], axis=0)
    variables["channel_uses"] = Variable(("epoch",), epochs * algorithm.channel_uses)
    variables["seconds"] = Variable(("epoch",), seconds)
    if (taken := _over_radio(algorithm)) is not None:
        variables["air_seconds"] = Variable(("epoch",), taken.seconds_until(epochs))
        variables["joules"] = Variable(("epoch", everybody), taken.joules_until(epochs))
    labels = {"seed": np.array(seeds), "epoch": epochs, "node": nodes} | {everybody: np.arange(len(power))}
    return Labelled(variables, labels, {"algorithm": algorithm.name})


def _over_radio(algorithm: Algorithm) -> RadioUse | None:
    """What an epoch takes over a radio, by what the ledger will say; None where nothing goes over one."""
    rounds = of_rounds(algorithm)
    arrays = {name: one.values for name, one in rounds.variables.items()} | {"power": algorithm.setup.network.power}
    return radio_use(rounds.attributes | {"rounds": " ".join(one.name for one in algorithm.rounds)}, arrays)


def promised(algorithm: Algorithm, problem: Problem) -> tuple[Releases, ...]:
    """What is promised on this problem: nothing that goes further than its proof."""
    return () if why_nothing(algorithm, problem) else counting_first_releases(algorithm).releases


def promises_about_data(algorithm: Algorithm, problem: Problem) -> bool:
    """Whether something is promised about what data can move: where nothing leaves a node, nothing can be."""
    return any(part.ratio.any() for part in promised(algorithm, problem))


def claimed(algorithm: Algorithm, problem: Problem) -> tuple[Releases, ...]:
    """What an algorithm claims on a problem that says it clips, proved or not: what an audit tries to refute."""
    return counting_first_releases(algorithm).releases if problem.gradient_clip.bounds else ()


def strongest_mu(parts: tuple[Releases, ...], nodes: int) -> FloatArray:
    """[nodes] against the strongest adversary that anything is promised against; infinite where nothing is."""
    return mu_of(parts[0]) if parts else np.full(nodes, np.inf)


def basis(algorithm: Algorithm, problem: Problem) -> tuple[str, str]:
    """In words what stands behind the strongest promise, and what must be said in one breath with it."""
    reason = why_nothing(algorithm, problem)
    return (
        (f"{reason}: nothing is promised", "")
        if reason
        else in_words(algorithm.releases[0], algorithm.setup.budget.hidden)
    )


def ledger(algorithm: Algorithm, problem: Problem, seeds: tuple[int, ...], precision: Precision) -> Labelled:
    """What was sent, by which rule: the very tables that the engine was given, in float64."""
    setup, clip, parts = algorithm.setup, problem.gradient_clip, promised(algorithm, problem)
    by_node: dict[str, Any] = {
        "power": setup.network.power,
        "sensitivity": setup.sensitivity,
        "promised_mu": strongest_mu(parts, problem.nodes),
    }
    if parts and parts[0].law.name == "sampled gaussian":
        by_node["promised_epsilon"] = epsilon_of(parts[0], setup.budget.delta)
        by_node["promised_best_guess"] = of_releases(parts[0], setup.budget.delta)
    for part in parts[1:]:
        by_node[promise_to(part)] = mu_of(part)
    if problem.examples_per_node is not None:
        by_node["examples_per_node"] = problem.examples_per_node
    first, joining = first_releases(getattr(problem, "data", None)), sampling(getattr(problem, "sampled", None))
    by_node |= first.variables | joining.variables
    variables = {name: Variable(("node",), np.asarray(values)) for name, values in by_node.items()}
    attributes = {
        "format": LEDGER_FORMAT,
        "algorithm": algorithm.name,
        "rounds": " ".join(one.name for one in algorithm.rounds),
        "start_sha256": hash_of_start(node.starts(problem, noise.roots(seeds), precision)),
        "start_gradients": check.first_state(algorithm, problem, np.float32).gradients,
        "epochs": algorithm.epochs,
        "delta": setup.budget.delta,
        "unit": setup.budget.unit,
        **({"records_per_person": together} if (together := setup.budget.records_per_person) > 1 else {}),
        "clip": clip.limit,
        "clipping": clip.per,
        **({"normaliser": setup.mixing.normaliser} if isinstance(setup, Plan) else {}),
        **({} if (batch := getattr(problem, "batch", None)) is None else {"batch": batch}),
        **({"why_nothing": reason} if (reason := why_nothing(algorithm, problem)) else {}),
        "noise_source": setup.budget.noise_source,
        "settings_chosen": setup.budget.settings_chosen,
        "law": algorithm.releases[0].law.name if algorithm.releases else "none",
        **({"dim": problem.dim, "sampler_error": discrete.SAMPLER_ERROR} if _is_secure(algorithm) else {}),
        **algorithm.settings,
        **data_facts(problem).as_attributes(),
        **first.attributes,
        **joining.attributes,
    }
    rounds = of_rounds(algorithm)
    return Labelled(variables | rounds.variables, {}, attributes | rounds.attributes)


class FurtherEntries(NamedTuple):
    """What else a ledger says of the data: words and numbers, and arrays [nodes]."""

    attributes: dict[str, Any]
    variables: dict[str, Any]


def first_releases(partition: object) -> FurtherEntries:
    """The constants of what nodes released before training; nothing where they did not."""
    if not isinstance(partition, Partition) or partition.first is None:
        return FurtherEntries({}, {})
    first = partition.first
    attributes = {"first_releases": " ".join(first.noise), "first_rows": first.rows, "first_seed": first.seed}
    noise = {f"{name}_noise": values for name, values in first.noise.items()}
    return FurtherEntries(attributes, {"records_per_node": partition.sizes.astype(np.float64), **noise})


def sampling(sampled: object) -> FurtherEntries:
    """How records join by secret coins: what is public of it. Neither coins nor realised sizes are ever written."""
    if not isinstance(sampled, Sampling):
        return FurtherEntries({}, {})
    sizes = np.asarray(sampled.sizes, np.float64)
    return FurtherEntries({"sampling": "poisson", "room": sampled.room}, {"records_per_node": sizes})


def of_rounds(algorithm: Algorithm) -> Labelled:
    """What the ledger says of every round: its channel, its draws and its tables."""
    variables: dict[str, Variable] = {}
    attributes: dict[str, Any] = {}
    for one in algorithm.rounds:
        entries = one.channel.entries()
        attributes |= {f"{one.name}_channel": one.channel.kind, f"{one.name}_draws": draws.words(one)}
        attributes |= {f"{one.name}_{name}": value for name, value in entries.attributes.items()}
        variables |= {f"{one.name}_{name}": _of_round(one.name, *entry) for name, entry in entries.variables.items()}
        variables |= _tables(one)
    return Labelled(variables, {}, attributes)


def _of_round(name: str, dims: tuple[str, ...], values: Any) -> Variable:
    """Dimensions of a round's own get its name; those of nodes are common."""
    return Variable(tuple(dim if dim == "node" else f"{name}_{dim}" for dim in dims), np.asarray(values))


def _tables(one: Round) -> dict[str, Variable]:
    tables: dict[str, Variable] = {}
    for part in ("sending", "receiving"):
        for field, table in getattr(one, part)._asdict().items():
            name = f"{one.name}_{part}_{field}"
            rows = f"{name}_row" if table.ndim > 1 and len(table) > 1 else "always"
            slot = f"{one.name}_{'slot' if part == 'sending' else 'neighbour'}"
            dims = ("epoch",) if table.ndim == 1 else (rows, "node", slot)[: table.ndim]
            tables[name] = Variable(dims, np.asarray(table))
    return tables


def _is_secure(algorithm: Algorithm) -> bool:
    return algorithm.setup.budget.noise_source == "secure"


def info(
    algorithm: Algorithm, problem: Problem, name: str, seeds: tuple[int, ...], precision: Precision
) -> dict[str, Any]:
    """Names, seeds, versions and kind of machine: nothing about who ran it, or where."""
    budget, parts = algorithm.setup.budget, promised(algorithm, problem)
    words, caveat = basis(algorithm, problem)
    return {
        "name": name,
        "algorithm": algorithm.name,
        "settings": dict(algorithm.settings),
        "rounds": [one.name for one in algorithm.rounds],
        "problem": {"kind": type(problem).__name__, "nodes": problem.nodes, "dim": problem.dim}
        | _names(algorithm, problem),
        "epochs": algorithm.epochs,
        "channel_uses_per_epoch": algorithm.channel_uses,
        "setup_uses": _setup_uses(algorithm, problem),
        "seeds": list(seeds),
        "precision": precision,
        "privacy": {
            "epsilon": _worst_epsilon(parts[0], budget.delta) if parts else None,
            "delta": budget.delta,
            "unit": budget.unit,
            "records_per_person": budget.records_per_person,
            "against": parts[0].against if parts else "nobody",
            "basis": words,
            "caveat": caveat,
            "weaker": [{"against": part.against, "epsilon": _worst_epsilon(part, budget.delta)} for part in parts[1:]],
            "assumptions": list(
                assumptions(data_facts(problem), budget.unit) if promises_about_data(algorithm, problem) else ()
            ),
            "noise_source": budget.noise_source,
            "settings_chosen": budget.settings_chosen,
            "note": note(budget.noise_source),
        },
        "versions": {package: version(package) for package in ("murmurcast", "jax", "jaxlib", "numpy", "scipy")}
        | {"python": platform.python_version()},
        "machine": {"system": platform.system(), "kind": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
    }


def _names(algorithm: Algorithm, problem: Problem) -> dict[str, list[str]]:
    """What the nodes are called, where they have names besides their numbers: the network's, or those of the data."""
    network, partition = algorithm.setup.network, getattr(problem, "data", None)
    if not network.is_named and isinstance(partition, Partition):
        network = network.named(partition.names)
    return {"names": list(network.names)} if network.is_named else {}


def _setup_uses(algorithm: Algorithm, problem: Problem) -> float | None:
    """Channel uses before training, of methods of the house: of what is free of data, and of first releases."""
    if algorithm.name not in registry.NAMES:
        return None
    partition, released = getattr(problem, "data", None), 0
    if isinstance(partition, Partition) and partition.first is not None:
        released = numbers_released(partition.first, partition.dataset.features.shape[1])
    return setup_uses(registry.find(algorithm.name), algorithm, problem.dim, released)


def _worst_epsilon(part: Releases, delta: float) -> float | None:
    worst = float(epsilon_of(part, delta).max())
    return worst if np.isfinite(worst) else None


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
