"""Large networks: time and memory of an epoch by the number of nodes, each size in a process of its own.

Softmax regression on made-up images of MNIST's size (7,850 parameters), 32 records a node drawn from a pool of 60,000,
geometric networks of mean degree 20. Run with: make bench PART=scale.

With the source folder of an earlier version in BEFORE, that version is measured too, at 10,000 nodes in turn with this
one: BEFORE=../old/src make bench PART=scale.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (100, 1_000, 10_000, 100_000)
COMPARED = 10_000
DEGREE, EACH, POOL, TEST = 20, 32, 60_000, 1_000
MEMORY = {10_000: 1.6, 100_000: 8.0}  # GiB
GROWTH, RATIO, TOGETHER = 11.0, 0.55, 0.5


def measured(nodes: int, epochs: int = 3, *, source: str = "", processes: int = 1) -> dict[str, float]:
    """Seconds and GiB of an epoch of so many nodes; where there are several processes, of the first of them."""
    words = [sys.executable, "-m", "benchmarks.scale", str(nodes), str(epochs), "old" if source else "new"]
    path = os.pathsep.join(filter(None, (source, str(Path.cwd()), os.environ.get("PYTHONPATH", ""))))
    members: list[dict[str, str]] = [{}]
    if processes > 1:
        cores = sorted(os.sched_getaffinity(0))
        members = [
            {"RANK": str(rank), "SIZE": str(processes), "CORE": str(cores[rank % len(cores)])}
            for rank in range(processes)
        ]
    started = [
        subprocess.Popen(words, env=os.environ | {"PYTHONPATH": path} | member, stdout=subprocess.PIPE, text=True)
        for member in members
    ]
    stated = [process.communicate()[0] for process in started]
    result: dict[str, float] = json.loads(stated[0].strip().splitlines()[-1])
    return result


def work(nodes: int, epochs: int, old: bool) -> dict[str, float]:
    """In a process of its own: sets up, goes through some epochs, and says what the later ones took."""
    import murmurcast as mc
    from murmurcast.data.base import Dataset

    generator = np.random.default_rng(0)
    examples = nodes * EACH if old else POOL  # an earlier version cannot share examples
    features = generator.random((examples + TEST, 784), dtype=np.float32)
    labels = generator.integers(0, 10, examples + TEST).astype(np.int32)
    dataset = Dataset(
        name="images",
        features=features[:examples],
        targets=labels[:examples],
        test_features=features[examples:],
        test_targets=labels[examples:],
        classes=10,
    )
    network = mc.topologies.geometric(nodes, radius=float(np.sqrt(DEGREE * 1.1 / (np.pi * nodes))), seed=_seed(nodes))
    data: Any = dataset.partition("iid" if old else mc.datasets.Drawn(per_node=EACH), nodes=nodes)
    problem = mc.SoftmaxRegression(data=data, clip=1.0)
    begun = time.process_time()
    schedule = mc.Schedule(epochs=epochs + 1, step=0.4 / nodes)
    plan = mc.plan(network, problem, mc.Budget(epsilon=1e4, unit="record"), schedule, z="perron")
    planning = time.process_time() - begun
    program = _program(mc.power_controlled(plan), problem, old)
    carry = program.advance(program.given, program.start, np.int32(1), np.int32(2))
    wall, cpu = time.perf_counter(), time.process_time()
    carry = program.advance(program.given, carry, np.int32(2), np.int32(epochs + 2))
    np.asarray(carry.sent)
    return {
        "wall": (time.perf_counter() - wall) / epochs,
        "cpu": (time.process_time() - cpu) / epochs,
        "planning": planning,
        "gib": int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20,
    }


def _seed(nodes: int) -> int:
    """Of a network that is connected."""
    return {100: 1, 1_000: 7}.get(nodes, 0)


def _program(algorithm: Any, problem: Any, old: bool) -> Any:
    if old:
        from murmurcast.engine import loop, sharding

        layout = sharding.layout(problem.nodes, 1, problem.nodes * problem.bytes_per_gradient)
        return loop.program(algorithm, problem, layout, (0,), np.float32)
    from murmurcast.engine import large

    return large.program(algorithm, problem, (0,), np.float32)


def _line(nodes: int, result: dict[str, float]) -> str:
    bar = MEMORY.get(nodes)
    verdict = "" if bar is None else f", {'within' if result['gib'] <= bar else 'OVER'} {bar:g}"
    return (
        f"{nodes} nodes: {result['wall']:.3g} s per epoch, {result['cpu']:.3g} s of processor time, "
        f"{result['gib']:.2f} GiB{verdict}; plan {result['planning']:.3g} s"
    )


def bench() -> None:
    """Everything about large networks."""
    result = {}
    for nodes in SIZES:
        result[nodes] = measured(nodes)
        print(_line(nodes, result[nodes]), flush=True)
    sizes = [nodes for nodes in SIZES if nodes >= 1_000]
    exponent = np.polyfit(np.log(sizes), np.log([result[nodes]["cpu"] for nodes in sizes]), 1)[0]
    grows = result[100_000]["wall"] / result[10_000]["wall"]
    print(f"processor time grows with the power {exponent:.2f} of the nodes, from 1,000 on")
    print(f"from 10,000 to 100,000 nodes: {grows:.1f} times, {'within' if grows <= GROWTH else 'OVER'} {GROWTH:g}")
    two = measured(COMPARED, processes=2)
    print(f"{COMPARED} nodes in two processes: {two['wall']:.3g} s per epoch, {two['gib']:.2f} GiB each", flush=True)
    if before := os.environ.get("BEFORE"):
        old = measured(COMPARED, source=str(Path(before).resolve()))
        print(f"before, {_line(COMPARED, old)}")
        for words, ratio, bar in (
            ("processor time", result[COMPARED]["cpu"] / old["cpu"], RATIO),
            ("time of two processes", two["wall"] / old["wall"], TOGETHER),
        ):
            print(f"{words} over that before: {ratio:.2f}, {'within' if ratio <= bar else 'OVER'} {bar:g}")


if __name__ == "__main__":
    if "SIZE" in os.environ:
        from murmurcast.engine.membership import Membership, join

        os.sched_setaffinity(0, {int(os.environ["CORE"])})
        join(Membership("127.0.0.1:29411", int(os.environ["RANK"]), int(os.environ["SIZE"])))
    print(json.dumps(work(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "old")))
