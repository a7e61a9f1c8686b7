"""Small systems to audit, and many audits of them at once."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits import canaries, noise_checks
from murmurcast.audits.adversaries import MAX_ATTACKS, Gathered, System, evidence_of, gather
from murmurcast.audits.attack import BOUNDS, Attack, Promise, judge
from murmurcast.audits.audit import epsilon_of_mu, promises_to
from murmurcast.audits.noise_checks import Check
from murmurcast.data.datasets import logistic
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.privacy import gaussian
from murmurcast.problems.base import Problem
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.softmax import SoftmaxRegression
from tests.conftest import asymmetric_network

DIM, TARGET, DELTA = 40, 2, 1e-5
CONFIDENCE = 0.9999  # the default of an audit
Fault = Callable[[Algorithm], Algorithm]


def bowls(nodes: int) -> Quadratic:
    return Quadratic.random(nodes, DIM, seed=1)


def softmax(problem: type[SoftmaxRegression] = SoftmaxRegression, batch: int | None = None) -> SoftmaxRegression:
    data = logistic(examples=200, features=7, classes=4, seed=3).partition("sorted", 4)
    return problem(data=data, clip=0.5, l2=0.01, batch=batch)


def planned(problem: Problem, network: Network, epsilon: float = 2.0, unit: str = "node", epochs: int = 8) -> Plan:
    schedule = Schedule(epochs=epochs, step=0.5, noise_timing="aligned", noise_to_step="auto")
    return plan(network, problem, Budget(epsilon=epsilon, unit=unit), schedule)  # type: ignore[arg-type]


@cache
def claimed() -> Algorithm:
    """Of whole nodes, on bowls."""
    return power_controlled(planned(bowls(5), asymmetric_network(3, 5)))


@cache
def claimed_of_records() -> Algorithm:
    """Of records, on `softmax()`."""
    return power_controlled(planned(softmax(), asymmetric_network(5, 4), unit="record"))


def attacked(
    algorithm: Algorithm,
    actual: Algorithm,
    problem: Problem,
    runs: int,
    *,
    targets: tuple[int, ...] | None = None,
    coalition: tuple[int, ...] | None = None,
    share: float = 1.0,
    seed: int = 0,
) -> Gathered:
    """All runs of all audits at once."""
    nodes = np.arange(problem.nodes)
    planted = canaries.draw(algorithm, tuple(nodes) if targets is None else targets, problem.dim, runs, share, seed=5)
    return gather(System(algorithm, actual, problem, planted, nodes, seed), coalition)


def audits(gathered: Gathered, runs: int) -> Iterator[Gathered]:
    """The same as audits of so many runs each."""
    for start in range(0, gathered.canaries.signs.shape[1], runs):
        these = slice(start, start + runs)
        signals = gathered.following.of_runs(these)
        kept = gathered.published_models
        yield gathered._replace(
            canaries=gathered.canaries.of_runs(list(range(start, start + runs))),
            following=signals,
            heard=tuple(one._replace(readings=one.readings[:, these]) for one in gathered.heard),
            published_models=None if kept is None else kept._replace(readings=kept.readings[:, these]),
        )


def attacks(gathered: Gathered, mu: float, target: int = TARGET, seed: int = 0) -> dict[str, Attack]:
    """What everybody shows of a target, by name, as an audit judges it."""
    count = len(gathered.canaries.targets)
    each = 1 - (1 - CONFIDENCE) / (2 * BOUNDS * MAX_ATTACKS * count)
    promise = Promise(target, 1.0, mu, float(gaussian.epsilon(mu, DELTA)), np.inf, DELTA)
    signs = gathered.canaries.signs[gathered.canaries.targets.tolist().index(target)]
    result = judge(
        evidence_of(gathered, target), signs, (promise,), lambda part: float(gaussian.epsilon(part, DELTA)), each, seed
    )
    return {attack.adversary: attack for attack in result}


def checks(gathered: Gathered) -> tuple[Check, ...]:
    """What an audit sees of the noise."""
    return noise_checks.check_noise(gathered.following, gathered.canaries, 1 - (1 - CONFIDENCE) / 2)


def falsified_by(gathered: Gathered, algorithm: Algorithm) -> set[str]:
    """The checks and adversaries that accuse the system, as an audit of all its promises judges it."""
    accused = {check.name for check in checks(gathered) if check.refutes}
    targets = gathered.canaries.targets.tolist()
    each = 1 - (1 - CONFIDENCE) / (2 * BOUNDS * MAX_ATTACKS * len(targets))
    for place, target in enumerate(targets):
        promises = promises_to(algorithm, algorithm.releases, target, 1.0)
        evidence, signs = evidence_of(gathered, target), gathered.canaries.signs[place]
        shown = judge(evidence, signs, promises, lambda mu: epsilon_of_mu(algorithm, mu), each)
        accused |= {attack.adversary for attack in shown if attack.refutes}
    return accused


def is_caught(gathered: Gathered, algorithm: Algorithm) -> bool:
    """Whether an audit accuses the system: by the noise, which is quick, or by an attack on any node."""
    return any(check.refutes for check in checks(gathered)) or bool(falsified_by(gathered, algorithm))
