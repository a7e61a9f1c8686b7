"""Private methods on small systems, each as an audit sees it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.base import Problem
from tests.audits.systems import bowls, softmax
from tests.conftest import asymmetric_network

EPOCHS, EPSILON = 6, 2.0
MakeProblem = Callable[[], Problem]

# name, options, how it differs from the others
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "power-controlled-diffusion": ("power-controlled-diffusion", {}),
    "dp-dsgd": ("dp-dsgd", {}),
    "dp-dsgd, orthogonal": ("dp-dsgd", {"weights": "metropolis", "access": "orthogonal", "publish": "average"}),
    "dp-dsgd, slots": ("dp-dsgd", {"weights": "max-degree", "access": "slots"}),
    "subgradient-push-gaussian": ("subgradient-push-gaussian", {}),
    "row-stochastic-laplace": ("row-stochastic-laplace", {}),
    "private-frost": ("private-frost", {}),
    "private-push-pull": ("private-push-pull", {}),
    "private-push-pull, ab": ("private-push-pull", {"form": "ab"}),
    "private-gradient-tracking": ("private-gradient-tracking", {}),
    "private-gradient-tracking, slots": ("private-gradient-tracking", {"weights": "metropolis", "access": "slots"}),
    "private-exact-diffusion": ("private-exact-diffusion", {}),
    "private-exact-diffusion, orthogonal": (
        "private-exact-diffusion",
        {"weights": "metropolis", "access": "orthogonal"},
    ),
    "muffliato": ("muffliato", {"gossip": 3}),
    "mafalda": ("mafalda", {}),
    "decor": ("decor", {}),
    "decor, slots": ("decor", {"weights": "metropolis", "access": "slots", "shared_to_own": 3.0}),
    "decor-exact-diffusion": ("decor-exact-diffusion", {"shared_to_own": 3.0}),
    "mped2fl": ("mped2fl", {"headroom": 0.7, "publish_from": "heard"}),
    "ped2fl": ("ped2fl", {"headroom": 0.7, "publish_from": "heard"}),
    "dwfl": ("dwfl", {"headroom": 0.7, "publish_from": "heard"}),
}
_GAINS_BY_SENDER = {"ped2fl", "dwfl"}


def by_sender(nodes: int) -> Network:
    """A complete network whose gains depend on the sender alone."""
    gains = np.linspace(0.5, 1.1, nodes)[:, None] * (1 - np.eye(nodes))
    return Network(gains=gains, power=np.linspace(1.5, 0.8, nodes))


def planned_for(name: str, problem: Problem, unit: str, step: float) -> Plan:
    network = by_sender(problem.nodes) if name in _GAINS_BY_SENDER else asymmetric_network(5, problem.nodes)
    schedule = Schedule(epochs=EPOCHS, step=step, noise_timing="aligned", noise_to_step="auto")
    return plan(network, problem, Budget(epsilon=EPSILON, unit=unit), schedule)  # type: ignore[arg-type]


def built(variant: str, problem: Problem, unit: str, step: float = 0.2) -> Algorithm:
    """A method on a setup; on a plan only where it needs one."""
    name, options = VARIANTS[variant]
    on = planned_for(name, problem, unit, step)
    needs_plan = name in {"power-controlled-diffusion", "mped2fl", "ped2fl"}
    setup = on if needs_plan else mc.Setup(network=on.network, problem=problem, budget=on.budget, schedule=on.schedule)
    algorithm: Algorithm = registry.find(name).make(setup, **options)
    return algorithm


@cache
def of_nodes(variant: str) -> Algorithm:
    """Of whole nodes, on bowls."""
    return built(variant, bowls(5), "node")


@cache
def of_records(variant: str, step: float = 0.2) -> Algorithm:
    """Of records, on `softmax()`."""
    return built(variant, softmax(), "record", step)
