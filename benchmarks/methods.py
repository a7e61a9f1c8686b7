"""What an epoch of every method costs beside Algorithm 1's, on W100, in one process, both in turn."""

import numpy as np

import murmurcast as mc
from benchmarks.training import WORKS, Ours, Work, seconds
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm

ROUNDS, EPOCHS = 3, 30
BAR = 2.0
BARS = {"decor": 3.0, "decor-exact-diffusion": 3.0}  # a draw for every pair besides


def bench() -> None:
    """One line per method that can run there."""
    work = WORKS["W100"]()
    reference = Ours(work)
    for method in registry.methods():
        setup = work.plan if method.needs_plan else _setup(work)
        try:
            algorithm = method.make(setup)
        except mc.Error as reason:
            print(f"{method.name}: not on this network: {reason}")
            continue
        ratio, own = ratio_of_epochs(reference, work, algorithm)
        bar = BARS.get(method.name, BAR)
        verdict = "within" if ratio <= bar else "OVER"
        print(
            f"{method.name}: {own * 1e3:.3g} ms per epoch, {ratio:.2f} times Algorithm 1's, {verdict} {bar:g}",
            flush=True,
        )


def _setup(work: Work) -> mc.Setup:
    plan = work.plan
    return mc.Setup(network=plan.network, problem=plan.problem, budget=plan.budget, schedule=plan.schedule)


def ratio_of_epochs(reference: Ours, work: Work, algorithm: Algorithm) -> tuple[float, float]:
    """The median ratio of whole epochs taken in turn, and the method's best time."""
    other = Ours(work, algorithm)
    for side in (reference, other):
        side(1)
    ratios, times = [], []
    for _ in range(ROUNDS):
        taken = [_per_epoch(side) for side in (reference, other)]
        ratios.append(taken[1] / taken[0])
        times.append(taken[1])
    return float(np.median(ratios)), min(times)


def _per_epoch(side: Ours) -> float:
    whole, once = seconds(lambda: side(EPOCHS + 1)), seconds(lambda: side(1))
    return (whole - once) / EPOCHS
