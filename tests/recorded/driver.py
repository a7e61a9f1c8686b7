"""Runs the recorded cases, small runs of all six methods, and says what each publishes, measures and costs.

    python -m tests.recorded.driver DEVICES NAME...    runs the cases whose names are given, or contain what is given
    python -m tests.recorded.driver --record           records all of them anew, for this processor

Recording anew is right only where a change of numbers is intended and stands in CHANGELOG.md. To find out whether a
change of the code changes a number, run the tests against the old record.

Only public names are used, so that the cases outlive any reshaping of what is behind them; the one exception is the
source of secure noise, which has to be replaced to be repeatable.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

import murmurcast as mc
from murmurcast.engine import secure
from tests.conftest import asymmetric_network

RECORD = Path(__file__).parent / "record.json"
DEVICES = (1, 2)
NODES, EPOCHS = 5, 8
STOP_AFTER = 5
DROPS = {1: 3, 4: 6}
BATCH = 8
NETWORK_SEED = 10  # degrees from 1 to 4, and nobody is left alone by the drops

METHODS: dict[str, Callable[..., Any]] = {
    "power-controlled": mc.power_controlled,
    "noiseless": mc.noiseless,
    "mped2fl": mc.mped2fl,
    "ped2fl": mc.ped2fl,
    "local-only": mc.local_only,
    "central-dp": mc.central_dp,
}
MULTICASTING = ("power-controlled", "noiseless", "ped2fl")  # from the others nobody can drop out

Precision = Literal["float32", "float64"]
Noise = Literal["seeded", "secure"]
Ends = Literal["none", "stop", "drops"]
Batch = Literal["full", "minibatch"]
Special = Literal["", "own", "average", "quadratic"]


class Case(NamedTuple):
    """One run.

    Attributes:
        method: Which of `METHODS`.
        precision: Of all arithmetic.
        noise: Where it comes from.
        ends: Whether all stop early, or some nodes drop out.
        batch: All examples, of one seed, so that two devices share the nodes; or minibatches, of two seeds, so that
            they share the seeds.
        special: "own": gradients at own models, unit node. "average": of all published points. "quadratic": another
            problem. Empty for none of them.
    """

    method: str
    precision: Precision
    noise: Noise
    ends: Ends
    batch: Batch
    special: Special = ""

    @property
    def name(self) -> str:
        """All of it, readable."""
        return "/".join(part for part in self if part)


def _cases() -> Iterable[Case]:
    precisions: tuple[Precision, ...] = ("float32", "float64")
    ends: tuple[Ends, ...] = ("none", "stop", "drops")
    batches: tuple[Batch, ...] = ("full", "minibatch")
    for method, precision, end, batch in product(METHODS, precisions, ends, batches):
        if end != "drops" or method in MULTICASTING:
            yield Case(method, precision, "seeded", end, batch)
    for end, batch in product(ends[:2], batches):  # secure noise is for one method and precision, and without drops
        yield Case("power-controlled", "float64", "secure", end, batch)
    yield Case("power-controlled", "float32", "seeded", "none", "full", "own")
    yield Case("mped2fl", "float64", "seeded", "none", "minibatch", "own")
    yield Case("power-controlled", "float32", "seeded", "stop", "minibatch", "average")
    yield Case("central-dp", "float64", "seeded", "none", "full", "average")
    yield Case("power-controlled", "float64", "seeded", "none", "full", "quadratic")


CASES = {case.name: case for case in _cases()}


def outcome(name: str) -> dict[str, Any]:
    """What a case publishes, measures and costs, as JSON has it.

    `published` and `metrics` are hashes of every bit. `mu` is recomputed from the ledger, "inf" where nothing is
    promised. The rest is for machines whose last digits differ: the norm of all published models, two fixed random
    projections of them, and the mean loss of own models at the end.
    """
    result = _run(CASES[name])
    flat = np.asarray(result.published, np.float64).ravel()
    projections = np.random.default_rng(flat.size).standard_normal((2, flat.size))
    measured = {str(metric): np.asarray(values) for metric, values in result.metrics.data_vars.items()}
    if result.info["algorithm"] == "mped2fl":  # recorded when every receiver had a slot of its own
        measured["channel_uses"] = np.asarray(result.metrics["epoch"]) * NODES
    del measured["seconds"]  # the only one that is not the same every time
    return {
        "published": _hash({"published": result.published}),
        "metrics": _hash(measured),
        "mu": [float(value) if np.isfinite(value) else "inf" for value in mc.certify(result).mu],
        "norm": float(np.sqrt((flat * flat).sum())),
        "projections": [float((row * flat).sum()) for row in projections],
        "own_loss": float(np.mean(result.final("own_loss"), dtype=np.float64)),
    }


def _run(case: Case) -> Any:
    """The run itself: the only place that knows how `mc.run` is called."""
    secure.source = _repeatable_source  # for good: this process runs nothing else
    problem = _problem(case)
    return mc.run(
        _algorithm(case, problem),
        problem,
        seeds=[3] if case.batch == "full" or case.noise == "secure" else [3, 4],
        precision=case.precision,
        stop_after=STOP_AFTER if case.ends == "stop" else None,
        drops=DROPS if case.ends == "drops" else None,
        # Secure noise is drawn for all epochs up to the next evaluation, or fewer where these take long: with one epoch
        # at a time, no clock decides which random word goes where.
        options=mc.RunOptions(evaluate_every=1 if case.noise == "secure" else 3),
    )


def _algorithm(case: Case, problem: Any) -> Any:
    plan = mc.plan(
        _network_of_senders() if case.method == "ped2fl" else asymmetric_network(NETWORK_SEED, NODES),
        problem,
        mc.Budget(
            epsilon=20.0, unit="node" if case.special in ("own", "quadratic") else "record", noise_source=case.noise
        ),
        mc.Schedule(epochs=EPOCHS, step=0.6),
    )
    if case.method in ("mped2fl", "ped2fl"):
        plan = replace(plan, noise_is_automatic=False)  # recorded with the plan's noise, as if it had been given
    options: dict[str, str] = {"own": {"gradient_at": "own"}, "average": {"publish": "average"}}.get(case.special, {})
    return METHODS[case.method](plan, **options)


@cache
def _data() -> Any:
    """Nodes of quite different sizes, the smallest with enough examples for a minibatch."""
    rule = mc.datasets.QuantitySkew(minimum=BATCH + 2)
    return mc.datasets.logistic(examples=300, features=6, classes=3, seed=1).partition(rule, NODES, seed=1)


def _problem(case: Case) -> Any:
    if case.special == "quadratic":
        return mc.Quadratic.random(NODES, 4, seed=1, box=0.5)
    return mc.SoftmaxRegression(
        data=_data(),
        clip=1.0,
        clipping="node" if case.special == "own" else "example",
        l2=0.05,
        batch=None if case.batch == "full" else BATCH,
        ball=0.8,  # so small that many models are brought back to it
    )


def _network_of_senders() -> mc.Network:
    """Gains that depend on the sender alone, as ped2fl needs them, unequal between senders."""
    support = asymmetric_network(NETWORK_SEED, NODES).gains.toarray() > 0
    gains = np.random.default_rng(5).uniform(0.3, 1.2, (NODES, 1))
    return mc.Network(gains=support * gains, power=np.random.default_rng(6).uniform(0.5, 2.0, NODES))


def _repeatable_source() -> Callable[[int], NDArray[np.uint64]]:
    """In place of a cipher with a fresh key: the same words every time, which protect nothing."""
    generator = np.random.default_rng(7)
    return lambda count: generator.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)


def _hash(arrays: dict[str, NDArray[Any]]) -> str:
    """Of names, types, shapes and every bit."""
    whole = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        whole.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def fingerprint() -> dict[str, str]:
    """What decides on the last digits: versions, and what the processor can do. Nothing about who or where."""
    return {package: version(package) for package in ("jax", "jaxlib", "numpy", "scipy")} | {
        "machine": platform.machine(),
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    stated = {line for line in lines if line.split(":")[0].strip() in ("model name", "flags", "Features")}
    return hashlib.sha256("\n".join(sorted(stated)).encode()).hexdigest()


def chosen(words: Iterable[str]) -> list[str]:
    """The cases of these names; a word that is no name stands for all that contain it."""
    words = tuple(words)
    return [name for name in CASES if any(word == name or (word not in CASES and word in name) for word in words)]


def found_apart(devices: int, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What cases come to in a process of its own: JAX takes its number of devices only once."""
    command = [sys.executable, "-m", "tests.recorded.driver", str(devices), *names]
    as_users = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # compiled as for them
    done = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, env=as_users, check=True)
    results: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return results


def _main(words: list[str]) -> None:
    if words == ["--record"]:
        here = {"fingerprint": fingerprint(), "devices": {str(n): found_apart(n, CASES) for n in DEVICES}}
        others = [one for one in json.loads(RECORD.read_text())["records"] if one["fingerprint"] != here["fingerprint"]]
        RECORD.write_text(json.dumps({"records": [*others, here]}, indent=1, allow_nan=False) + "\n")
        return
    if len(words) < 2 or not words[0].isdigit():
        sys.exit(__doc__)
    jax.config.update("jax_num_cpu_devices", int(words[0]))
    names = chosen(words[1:])
    sys.stdout.write(json.dumps({name: outcome(name) for name in names}, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
