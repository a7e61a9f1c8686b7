"""Runs to report on: real ones, small, on an asymmetric network."""

from functools import cache

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm
from tests.conftest import asymmetric_network

NODES = 5


@cache
def plan() -> mc.Plan:
    return mc.plan(
        asymmetric_network(7, nodes=NODES),
        problem(),
        mc.Budget(epsilon=8.0, delta=1e-5),
        mc.Schedule(epochs=12, step=0.1, noise_timing="aligned"),
    )


@cache
def problem() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, dim=3, seed=1, ball=2.0)


def algorithm(name: str) -> Algorithm:
    built: Algorithm = getattr(mc, name)(plan())
    return built


@cache
def example(name: str, seeds: int = 2, called: str | None = None) -> mc.Result:
    """The run of an algorithm, by the name of its factory."""
    return mc.run(algorithm(name), problem(), seeds=range(seeds), options=mc.RunOptions(name=called))


def sampled(run: mc.Result, *nodes: int) -> mc.Result:
    """The same run as if only these nodes had been evaluated."""
    of_all = ["sent_power", "loudest"]
    sent = run.metrics[of_all].rename(node="sender").assign_coords(sender=range(run.metrics.sizes["node"]))
    metrics = run.metrics.drop_vars(of_all).isel(node=list(nodes)).merge(sent)
    return mc.Result(**vars(run) | {"metrics": metrics})
