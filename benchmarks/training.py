"""Whole epochs of training against NumPy, in one process, both sides in turn, the better of 1 and 2 threads for NumPy.

"plain" is the stacked loop of benchmarks/rival.py, which the bars are about. "tuned" is benchmarks/tuned.py: the same
work by hand, threaded and blocked for the cache, with mixing and gradient of the quadratic folded into one matrix.

With the source folder of an earlier version in BEFORE, that version is timed too: see benchmarks/before.py.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import murmurcast as mc
from benchmarks import before, rival, tuned
from murmurcast._npz import taken_together
from murmurcast.algorithms.base import Algorithm
from murmurcast.data.base import Dataset
from murmurcast.data.partition import Partition
from murmurcast.engine import train
from murmurcast.network.gains import Uniform
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.problems.base import Problem

ROUNDS = 5


class Work(NamedTuple):
    """One workload: our run and NumPy's, each a function of the number of epochs that returns models [nodes, ...]."""

    name: str
    epochs: int
    bar: float
    plan: Plan
    problem: Problem
    seeds: int
    plain: Callable[[int], NDArray[np.float32]]
    tuned: Callable[[int, int], NDArray[np.float32]]


def images(nodes: int, each: int) -> Partition:
    """Ten classes of made-up images of MNIST's size, in equal parts."""
    generator = np.random.default_rng(0)
    centres = generator.random((10, 784), dtype=np.float32)
    labels = generator.integers(0, 10, nodes * each + 2000).astype(np.int32)
    features = np.clip(centres[labels] + generator.standard_normal((len(labels), 784), dtype=np.float32), 0, 1)
    cut = nodes * each
    built = Dataset(
        name="images",
        features=features[:cut],
        targets=labels[:cut],
        test_features=features[cut:],
        test_targets=labels[cut:],
        classes=10,
    )
    return built.partition("sorted", nodes)


def softmax_work(name: str, network: Network, each: int, batch: int | None, epochs: int, bar: float) -> Work:
    """Softmax regression on made-up images."""
    data = images(network.nodes, each)
    problem = mc.SoftmaxRegression(data=data, clip=1.0, batch=batch)
    budget = mc.Budget(epsilon=1e5, unit="record")  # little noise, drawn all the same, so that results can be compared
    schedule = mc.Schedule(epochs=1000, step=0.4 / network.nodes)  # z divides it by about 1/nodes
    plan = mc.plan(network, problem, budget, schedule, z="perron")
    order = np.concatenate(data.rows)
    flat, labels = data.dataset.features[order], data.dataset.targets[order].astype(np.int32)
    steps, std = plan.schedule.steps.astype(np.float32), plan.effective_noise.astype(np.float32)
    z = plan.z[-1].astype(np.float32)
    stacked = flat.reshape(network.nodes, each, -1)

    def plain(count: int) -> NDArray[np.float32]:
        return rival.softmax_loop(
            stacked, labels.reshape(network.nodes, each), plan.mixing.weights, steps[:count], std[:count], z, 1.0, batch
        )

    def by_hand(count: int, threads: int) -> NDArray[np.float32]:
        sizes = np.full(network.nodes, each)
        return tuned.softmax_loop(
            flat, labels, sizes, plan.mixing.weights, steps, std, z, 1.0, batch, count, 0, threads
        )

    return Work(name, epochs, bar, plan, problem, 1, plain, by_hand)


def quadratic_work() -> Work:
    """100 seeds of a small quadratic."""
    network = mc.Network(gains=mc.gains.paper(1))
    problem = mc.Quadratic.random(4, 10, clip=1.0, clipping="none")
    schedule = mc.Schedule(epochs=10_001, step=0.05)
    plan = mc.plan(network, problem, mc.Budget(epsilon=1e5), schedule, z="perron")
    curvature, centre = problem.curvature.astype(np.float32), problem.centre.astype(np.float32)
    steps, std = schedule.steps.astype(np.float32), plan.effective_noise.astype(np.float32)
    z, weights = plan.z[-1].astype(np.float32), plan.mixing.weights

    def plain(count: int) -> NDArray[np.float32]:
        result = rival.quadratic_loop(curvature, centre, weights, steps[:count], std[:count], z, 100)
        return np.asarray(result.mean(axis=2))

    def by_hand(count: int, threads: int) -> NDArray[np.float32]:
        result = tuned.quadratic_loop(curvature, centre, weights, steps, std, z, count, range(100), threads=threads)
        return np.asarray(result.mean(axis=0))

    return Work("100 seeds of a quadratic, 4 nodes, dim 10", 10_000, 0.7, plan, problem, 100, plain, by_hand)


WORKS: dict[str, Callable[[], Work]] = {
    "W4": lambda: softmax_work(
        "W4: 4 nodes x 14,000 images, full batch", mc.Network(gains=mc.gains.paper(1)), 14_000, None, 10, 0.6
    ),
    "W100": lambda: softmax_work(
        "W100: ring of 100 nodes, batch 32", mc.topologies.ring(100, seed=0), 560, 32, 60, 0.7
    ),
    "W1000": lambda: softmax_work(
        "W1000: 1,000 nodes of degree 4, batch 32",
        Network.from_networkx(nx.random_regular_graph(4, 1000, seed=0), gain=Uniform(), seed=0),
        56,
        32,
        10,
        0.7,
    ),
    "quadratic": quadratic_work,
}


class Ours:
    """Our side of a workload, compiled as `mc.run` does it: Algorithm 1, or another method."""

    def __init__(self, work: Work, algorithm: Algorithm | None = None) -> None:
        begun = time.perf_counter()
        seeds = tuple(range(work.seeds))
        self.nodes = work.problem.nodes
        self.program = train.program(algorithm or mc.power_controlled(work.plan), work.problem, seeds, np.float32)
        self.start = [np.array(taken_together(leaf)) for leaf in self.program.keep(self.program.start)]
        self.setting_up = time.perf_counter() - begun

    def __call__(self, epochs: int) -> NDArray[np.float32]:
        """The own models after so many epochs, the mean over seeds."""
        carry = self.program.restore(self.start)
        carry = self.program.advance(self.program.given, carry, np.int32(1), np.int32(epochs + 1))
        return np.asarray(np.asarray(carry.state.own)[: self.nodes].mean(axis=1))


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def compare(work: Work) -> None:
    """One line per opponent: milliseconds per epoch, the ratio, its bar, and that both sides find the same."""
    ours = Ours(work)
    ours(1)
    sides: dict[str, Callable[[int], object]] = {"ours": ours}
    for threads in (1, 2):
        sides[f"plain {threads}"] = lambda count, threads=threads: _limited(threads, work.plain, count)  # type: ignore[misc]
        sides[f"tuned {threads}"] = lambda count, threads=threads: work.tuned(count, threads)  # type: ignore[misc]
    best = epoch_of(sides, work.epochs, ROUNDS)
    plain = work.plain(work.epochs)
    far, usual = difference(ours(work.epochs), plain), difference(work.tuned(work.epochs, 1), plain)
    print(f"{work.name}: {best['ours'] * 1e3:.3g} ms per epoch, {ours.setting_up:.1f} s setting up and compiling")
    for name in ("plain", "tuned"):
        other = min(best[f"{name} 1"], best[f"{name} 2"])
        ratio = best["ours"] / other
        verdict = "" if name == "tuned" else f", {'within' if ratio <= work.bar else 'OVER'} {work.bar:g}"
        print(f"    {name} NumPy {other * 1e3:.3g} ms, ratio {ratio:.2f}{verdict}")
    print(f"    mean models: {far:.2%} from plain NumPy's, as tuned NumPy's are {usual:.2%}: other draws", flush=True)


def epoch_of(sides: dict[str, Callable[[int], object]], epochs: int, rounds: int) -> dict[str, float]:
    """Seconds of one epoch of every side, all in turn. Setting up is no epoch: a call of one epoch is taken off.

    The quickest calls of each length count: a quick one less a slow one would be less than any epoch takes.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            whole, once = seconds(lambda side=side: side(epochs + 1)), seconds(lambda side=side: side(1))  # type: ignore[misc]
            taken[name].append((whole, once))
    quickest = {name: [min(column) for column in zip(*times, strict=True)] for name, times in taken.items()}
    return {name: (whole - once) / epochs for name, (whole, once) in quickest.items()}


def _limited(threads: int, loop: Callable[[int], object], count: int) -> object:
    with threadpool_limits(threads):
        return loop(count)


def difference(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Between the mean models, relative."""
    left, right = one.mean(axis=0), other.mean(axis=0)
    return float(np.linalg.norm(left - right) / np.linalg.norm(right))


def memory(side: str) -> float:
    """MiB that W1000 needs at its peak, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", side], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def bench() -> None:
    """Everything about training."""
    for make in WORKS.values():
        compare(make())
    ours, numpy = memory("ours"), memory("plain")
    verdict = "within" if ours <= numpy + 500 else "OVER"
    print(f"W1000 peak memory: {ours:.0f} MiB against {numpy:.0f} of the plain loop, {verdict} 500 MiB more")
    if earlier := os.environ.get("BEFORE"):
        before.compare(Path(earlier), tuple(WORKS))


def peak_of(side: str) -> float:
    """MiB at the peak of the run itself; making up the data comes before and does not count."""
    large = WORKS["W1000"]()
    Path("/proc/self/clear_refs").write_text("5")
    if side == "ours":
        Ours(large)(5)
    else:
        large.plain(5)
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    print(peak_of(sys.argv[1]))
