"""What planning costs in time and memory, each number beside its threshold."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

from murmurcast.errors import NotConnected
from murmurcast.network import topologies
from murmurcast.network.gains import Uniform
from murmurcast.network.graph import Network
from murmurcast.network.weights import mixing, perron, z_diagonal
from murmurcast.planning.power.largest_sum import largest_sum
from murmurcast.planning.power.per_epoch_limits import limits
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from murmurcast.privacy import gaussian, linear

COMMAND = Path(sys.executable).with_name("murmurcast")


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of the quickest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def show(what: str, seconds: float, bar: float, more: str = "") -> None:
    """One line: what was measured, and whether it is within its bar."""
    verdict = "within" if seconds <= bar else "OVER"
    print(f"{what:<74} {seconds:8.2f} s   {verdict} {bar:g} s   {more}", flush=True)


def process_seconds(*arguments: str) -> float:
    """Processor time of one command, start-up included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(COMMAND), *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def random_regular(nodes: int) -> Network:
    """Ten neighbours each, chosen at random: no locality, the worst case for factorisations."""
    return Network.from_networkx(nx.random_regular_graph(10, nodes, seed=1), gain=Uniform(), seed=0)


def geometric(nodes: int, degree: int = 10) -> Network:
    """About so many neighbours each, all near: what a wireless network looks like."""
    radius = np.sqrt(degree / np.pi / nodes)
    for seed in range(100):
        try:
            return topologies.geometric(nodes, radius, seed=seed)
        except NotConnected:
            radius *= 1.02
    raise AssertionError("no connected draw")


def bench_linear_program(nodes: int, times: int, bar: float) -> None:
    """Over the regimes of the program: most alpha at the maximum, about half, none."""
    for name, make in (("geometric", geometric), ("random regular", random_regular)):
        network = make(nodes)
        for regime, strength in (("loose", 30.0), ("middle", 100.0), ("tight", 1000.0)):
            sensitivity = np.full(nodes, float(np.sqrt(strength) / gaussian.classical_epsilon(1.0, 1e-5)))
            within = limits(network, np.full(nodes, 10.0), sensitivity, 1.0, 1.0, 1e-5, 0.01, 0.99)
            seconds = best_of(times, lambda within=within: largest_sum(within))  # type: ignore[misc]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            what = f"linear program, {name}, {nodes} nodes, {network.links} links, {regime}"
            show(what, seconds, bar, f"{memory:.2f} GiB at most")


def bench_linear_diagnostic() -> None:
    """All targets of one observer, common direction."""
    network = topologies.geometric(100, seed=1)
    weights = mixing(network, np.full(100, 0.5), network.max_degree + 1).weights
    schedule = Schedule(epochs=1000)
    noise = np.ones(100) * 10 * schedule.noise_schedule[:, None]
    push = 2 * schedule.steps[:, None] / z_diagonal(weights, 1000, "recursive")
    dense = weights.toarray()
    seconds = best_of(3, lambda: linear.common_direction(dense, (0,), noise, push))
    show("linear diagnostic, one observer, 100 nodes, 1000 epochs, all targets", seconds, 2)


def bench_large_network() -> None:
    """Building and mixing a network that no dense matrix could hold."""
    nodes = 100_000
    links = np.array(nx.random_regular_graph(10, nodes, seed=1).edges())
    both = np.concatenate([links, links[:, ::-1]])
    values = np.random.default_rng(0).uniform(0.3, 1, len(both))
    gains = csr_array((values, (both[:, 0], both[:, 1])), shape=(nodes, nodes))
    show("network of 100,000 nodes with 10 links each", best_of(2, lambda: Network(gains=gains)), 10)
    network = Network(gains=gains)
    weights = mixing(network, np.full(nodes, 0.5), 11).weights
    show("  its weights' Perron vector", best_of(2, lambda: perron(weights)), 10)


def bench_per_epoch_plans() -> None:
    """Whole plans of 10,000 nodes, all rounds of theta together, over the regimes of the program."""
    network = geometric(10_000, 20)
    for regime, noise in (("loose", 5e5), ("middle", 1.5e5), ("tight", 5e4)):
        start = time.process_time()
        budget, schedule = Budget(epsilon=1.0, target="per-epoch"), Schedule(epochs=100, noise_to_step=noise)
        built = plan(network, ClippedGradients(), budget, schedule, z="perron")
        what = f"per-epoch plan, {network.nodes} nodes, {network.links} links, {regime}, processor time"
        show(what, time.process_time() - start, 120, f"sum of alpha {built.alpha.sum():.1f}")


def bench_largest_plan() -> None:
    """Network, plan for a total budget and Perron vector of 100,000 nodes with 20 links each."""
    start = time.process_time()
    network = geometric(100_000, 20)
    built = plan(network, ClippedGradients(), Budget(epsilon=1.0), Schedule(epochs=100), z="perron")
    perron(built.mixing.weights)
    what = f"network, certified plan, Perron vector, {network.nodes} nodes, {network.links} links, processor time"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    show(what, time.process_time() - start, 120, f"{memory:.2f} GiB at most, within 4")


def bench_commands() -> None:
    """Start-up is what a user waits for most often."""
    show("murmurcast --help, processor time", min(process_seconds("--help") for _ in range(3)), 0.5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "paper-1.toml"
        example = subprocess.run([str(COMMAND), "plan", "--example", "paper-1"], check=True, capture_output=True)
        path.write_bytes(example.stdout)
        show(
            "murmurcast plan paper-1.toml, processor time", min(process_seconds("plan", str(path)) for _ in range(3)), 2
        )


def bench() -> None:
    """Everything about planning."""
    bench_commands()
    bench_linear_diagnostic()
    bench_large_network()
    bench_largest_plan()
    bench_per_epoch_plans()
    bench_linear_program(1_000, times=3, bar=1)
    bench_linear_program(10_000, times=1, bar=60)
