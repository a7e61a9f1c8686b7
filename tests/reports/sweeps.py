"""Sweeps to draw: real runs of a quadratic problem, put together without worker processes."""

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import murmurcast as mc
from murmurcast.runs.sweep import Failure, point_of
from murmurcast.runs.sweep_data import dataset
from tests.conftest import asymmetric_network

_NODES = 4


@cache
def _run(algorithm: str, epsilon: float, step: float, seeds: int) -> mc.Result:
    problem = mc.Quadratic.random(_NODES, dim=3, seed=1, ball=2.0)
    schedule = mc.Schedule(epochs=6, step=step, noise_timing="aligned")
    plan = mc.plan(asymmetric_network(7, nodes=_NODES), problem, mc.Budget(epsilon=epsilon, delta=1e-5), schedule)
    built = getattr(mc, algorithm.replace("-", "_"))(plan)
    return mc.run(built, problem, seeds=range(seeds))


def sweep(
    algorithms: tuple[str, ...] = ("power-controlled", "mped2fl"),
    epsilons: tuple[float, ...] = (1.0, 2.0, 8.0),
    steps: tuple[float, ...] = (0.1,),
    seeds: int = 3,
    drawn: tuple[str, ...] = (),
    **more: tuple[Any, ...],
) -> mc.Sweep:
    """All combinations; keys of `more` (network_seed for network.seed) change nothing but the labels."""
    axes = {"privacy.epsilon": epsilons, "algorithm.name": algorithms, "schedule.step": steps}
    axes |= {key.replace("_", ".", 1): values for key, values in more.items()}
    if len(steps) == 1 and not drawn:
        del axes["schedule.step"]
    points = [point_of(dict(zip(axes, values, strict=True))) for values in product(*axes.values())]
    runs = {}
    for point in points:
        values = point.values
        step = values.get("schedule.step", steps[0])
        run = _run(values["algorithm.name"], values["privacy.epsilon"], step, seeds)
        runs[point.name] = mc.Result(**vars(run) | {"info": run.info | {"name": point.name}})
    epsilon = {name: run.info["privacy"]["epsilon"] for name, run in runs.items()}
    return mc.Sweep(
        folder=Path("sweeps/example"),
        axes=tuple(axes),
        points=tuple(points),
        runs=runs,
        failures=(),
        drawn=drawn,
        experiment="[network]\n",
        epsilons=epsilon,
        data=dataset(tuple(axes), points, runs, epsilon, drawn=bool(drawn)),
    )


def with_failure(result: mc.Sweep, name: str, problem: str) -> mc.Sweep:
    """The same with one point that failed."""
    runs = {key: run for key, run in result.runs.items() if key != name}
    epsilons = {key: value for key, value in result.epsilons.items() if key != name}
    data = dataset(result.axes, result.points, runs, epsilons, drawn=bool(result.drawn))
    failures = (Failure(name, problem, "raise epsilon", 1),)
    return mc.Sweep(**vars(result) | {"runs": runs, "epsilons": epsilons, "failures": failures, "data": data})
