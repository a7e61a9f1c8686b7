"""The instances of tests/reference/methods.json: networks, problems, noise as numbers, and where every method goes."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Draw
from murmurcast.network.weights import mixing, normaliser, perron, z_diagonal
from murmurcast.planning.plan import Plan, PowerRule
from tests.algorithms.paths import Fresh, Gradient, LocalWork

FILE = Path(__file__).parents[1] / "reference" / "methods.json"
EPOCHS = 30
Inputs = dict[str, Any]


@lru_cache
def instances() -> dict[str, dict[str, Any]]:
    """(inputs, expected) by name."""
    return {one["inputs"]["name"]: one for one in json.loads(FILE.read_text())["instances"]}


def gradient(inputs: Inputs, *, at_private: bool) -> Gradient:
    """A node's clipped gradient; at a private point the L2 term is inside the clip."""
    problem = inputs["problem"]
    if problem["kind"] == "quadratic":
        curvature, centre = (np.array(problem[name]) for name in ("curvature", "centre"))
        return lambda i, _, point: jnp.asarray(curvature)[i] @ (point - jnp.asarray(centre)[i])
    counts = [len(rows) for rows in problem["labels"]]
    features = np.zeros((len(counts), max(counts), len(problem["features"][0][0]) + 1))
    labels = np.full((len(counts), max(counts)), -1)
    for i, (rows, words) in enumerate(zip(problem["features"], problem["labels"], strict=True)):
        features[i, : counts[i], :-1], features[i, : counts[i], -1], labels[i, : counts[i]] = rows, 1, words
    return partial(_logistic, features, labels, problem, inputs["clip"] if inputs["clip"] else np.inf, at_private)


def _logistic(
    features: FloatArray, labels: Any, problem: Inputs, clip: float, inside: bool, i: Any, _: Any, point: Any
) -> Any:
    classes, rows, words = problem["classes"], jnp.asarray(features)[i], jnp.asarray(labels)[i]
    chances = jax.nn.softmax(rows @ point.reshape(classes, -1).T, axis=1)
    each = (chances - jax.nn.one_hot(words, classes))[:, :, None] * rows[:, None, :]
    flat, pull = each.reshape(len(each), -1), problem["l2"] * point
    flat = flat + pull if inside else flat
    norm = jnp.linalg.norm(flat, axis=1)
    flat = flat * jnp.minimum(1, clip / jnp.where(norm > 0, norm, 1))[:, None]
    there = (words >= 0)[:, None]
    return jnp.where(there, flat, 0).sum(axis=0) / there.sum() + (0 if inside else pull)


def work_of(inputs: Inputs) -> LocalWork:
    """Gradients, and the projection onto the ball if there is one."""
    ball = inputs["ball"] or np.inf
    return LocalWork(
        gradient(inputs, at_private=False),
        gradient(inputs, at_private=True),
        lambda point: point * jnp.minimum(1, ball / jnp.maximum(jnp.linalg.norm(point), 1e-300)),
    )


def noise_of(inputs: Inputs) -> Fresh:
    """The given numbers: see the note of the file."""
    numbers: dict[str, FloatArray] = {
        name: np.array(inputs[name]) for name in inputs if name.startswith(("normal_", "laplace_"))
    }
    neighbours = [np.flatnonzero(row) for row in np.array(inputs["gains"])]
    most = max(map(len, neighbours))

    def fresh(name: str, draw: Draw) -> FloatArray:
        if name == "itself":
            return np.asarray(np.einsum("tiid->tid", numbers["normal_per_link"]))
        if draw.per == "node":
            return numbers[f"{draw.law}_per_node"]
        epochs, nodes, dim = numbers["normal_per_node"].shape
        result = np.zeros((epochs, nodes, most, dim))
        for i, there in enumerate(neighbours):
            for place, j in enumerate(map(int, there)):
                if draw.per == "link":
                    result[:, i, place] = numbers["normal_per_link"][:, i, j]
                else:
                    pair = numbers["normal_per_pair"][:, min(i, j), max(i, j)]
                    result[:, i, place] = pair if i < j else -pair
        return result

    return fresh


def plan_of(
    inputs: Inputs, *, constant: bool = False, epochs: int = EPOCHS, noise: float = 1.0, network: Any = None
) -> Plan:
    """With the noise and the power split that are given, whatever it costs; other noise is a multiple of it."""
    schedule = mc.Schedule(
        epochs=epochs,
        step=1.0 if constant else inputs["step"],
        decay="constant" if constant else inputs["decay"],
        noise_timing="aligned",
        noise_to_step=noise * inputs["q"],
    )
    over = network or mc.Network(gains=np.array(inputs["gains"]), power=inputs["power"])
    alpha = np.array(inputs["alpha"])
    built = mixing(over, alpha, normaliser(over, "lazy"))
    return Plan(
        network=over,
        problem=mc.ClippedGradients(clip=1e-3, dim=len(inputs["start"][0])),
        budget=mc.Budget(epsilon=1e3),
        schedule=schedule,
        rule=PowerRule(),
        alpha=alpha,
        noise_to_step=inputs["q"] * np.sqrt(alpha / (1 - alpha)),
        theta=1.0,
        mixing=built,
        z=z_diagonal(built.weights, epochs, "recursive"),
        perron=perron(built.weights),
    )


def _make(name: str, *, noise: float = 1.0, **options: Any) -> Callable[[Inputs], Algorithm]:
    return lambda inputs: registry.find(name).make(plan_of(inputs, noise=noise), **options)


def _constant(name: str, **options: Any) -> Callable[[Inputs], Algorithm]:
    """With every node's own constant step."""
    return lambda inputs: registry.find(name).make(
        plan_of(inputs, constant=True), step_factor=inputs["constant_steps"], **options
    )


def _diffusing(name: str, **options: Any) -> Callable[[Inputs], Algorithm]:
    """With the first node's constant step for all."""
    return lambda inputs: registry.find(name).make(
        plan_of(inputs, constant=True), step_factor=inputs["constant_steps"][0], **options
    )


def _mped2fl(inputs: Inputs) -> Algorithm:
    plan = plan_of(inputs)
    return mc.mped2fl(replace(plan, noise_to_step=np.full(len(plan.alpha), inputs["q"])), headroom=0.9)


def _dwfl(inputs: Inputs) -> Algorithm:
    gain = np.array(inputs["sender_gain"])
    complete = np.outer(gain, np.ones(len(gain))) * (1 - np.eye(len(gain)))
    plan = plan_of(inputs, network=mc.Network(gains=complete, power=inputs["power"]))
    setup = mc.Setup(network=plan.network, problem=plan.problem, budget=plan.budget, schedule=plan.schedule)
    return registry.find("dwfl").make(setup, headroom=0.9, rate=0.6, receiver_noise=0.1)


METROPOLIS: dict[str, Any] = {"weights": "metropolis", "access": "orthogonal"}
METHODS: dict[str, Callable[[Inputs], Algorithm]] = {
    "power-controlled": _make("power-controlled"),
    "power-controlled/own": _make("power-controlled", gradient_at="own"),
    "dsgd/max-degree": _make("dsgd", weights="max-degree", access="slots"),
    "dsgd/metropolis": _make("dsgd", **METROPOLIS),
    "dsgd/sinkhorn": _make("dsgd", weights="sinkhorn"),
    "dsgd/row": _make("dsgd", weights="row"),
    "dp-dsgd/max-degree": _make("dp-dsgd", weights="max-degree", access="orthogonal"),
    "dp-dsgd/metropolis": _make("dp-dsgd", weights="metropolis", access="slots"),
    "dp-dsgd/sinkhorn": _make("dp-dsgd", weights="sinkhorn"),
    "subgradient-push/column": _make("subgradient-push"),
    "subgradient-push/out-degree": _make("subgradient-push", weights="out-degree", access="orthogonal"),
    "subgradient-push-gaussian/column": _make("subgradient-push-gaussian"),
    "row-stochastic": _make("row-stochastic"),
    "row-stochastic-laplace": _make("row-stochastic-laplace", gradient_at="own"),
    "row-stochastic-laplace/mixed": _make("row-stochastic-laplace"),
    "frost": _constant("frost"),
    "frost/private": _constant("private-frost"),
    "push-pull": _constant("push-pull"),
    "push-pull/private": _constant("private-push-pull"),
    "ab": _constant("push-pull", form="ab"),
    "gradient-tracking": _constant("gradient-tracking", **METROPOLIS),
    "gradient-tracking/private": _constant("private-gradient-tracking", **METROPOLIS),
    "exact-diffusion/sinkhorn": _diffusing("exact-diffusion"),
    "exact-diffusion/row": _diffusing("exact-diffusion", weights="row"),
    "exact-diffusion/sinkhorn/private": _diffusing("private-exact-diffusion"),
    "exact-diffusion/row/private": _diffusing("private-exact-diffusion", weights="row"),
    "locally-balanced": _make("locally-balanced", noise_to_step=0.5),
    "decor/sinkhorn": _make("decor", noise=0.3, shared_to_own=1 / 0.3, weights="sinkhorn"),
    "decor/metropolis": _make("decor", noise=0.3, shared_to_own=1 / 0.3, **METROPOLIS),
    "decor/row": _make("decor", noise=0.3, shared_to_own=1 / 0.3),
    "muffliato": _make("muffliato", gossip=3, **METROPOLIS),
    "mafalda": _make("mafalda"),
    "mped2fl/headroom": _mped2fl,
    "dwfl": _dwfl,
}
NOT_BUILT = {"dllr-oa"}
