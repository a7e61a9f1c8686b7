"""The instances of tests/reference/methods.json: networks, problems, noise as numbers, and where every method goes."""

import json
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.network.weights import mixing, normaliser, perron, z_diagonal
from murmurcast.planning.plan import Plan, PowerRule

FILE = Path(__file__).parents[1] / "reference" / "methods.json"


@lru_cache
def instances() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(FILE.read_text())["instances"])


def names() -> list[str]:
    return [one["inputs"]["name"] for one in instances()]


def gradient(inputs: dict[str, Any], *, at_private: bool) -> Any:
    """(node, point) -> its clipped gradient; at a private point the L2 term is inside the clip."""
    problem = inputs["problem"]
    if problem["kind"] == "quadratic":
        curvature, centre = (jnp.asarray(problem[name]) for name in ("curvature", "centre"))
        return lambda i, point: curvature[i] @ (point - centre[i])
    features = [jnp.asarray([[*row, 1.0] for row in rows]) for rows in problem["features"]]
    labels = [jnp.asarray(row) for row in problem["labels"]]
    return partial(_logistic, features, labels, problem, inputs["clip"], at_private)


def _logistic(
    features: Any, labels: Any, problem: dict[str, Any], clip: float | None, inside: bool, i: int, point: Any
) -> Any:
    classes = problem["classes"]
    chances = jax.nn.softmax(features[i] @ point.reshape(classes, -1).T, axis=1)
    each = (chances - jax.nn.one_hot(labels[i], classes))[:, :, None] * features[i][:, None, :]
    flat, pull = each.reshape(len(each), -1), problem["l2"] * point
    flat = flat + pull if inside else flat
    if clip is not None:
        flat = flat * jnp.minimum(1, clip / jnp.linalg.norm(flat, axis=1))[:, None]
    return flat.mean(axis=0) + (0 if inside else pull)


def project(inputs: dict[str, Any]) -> Any:
    """Onto the ball, if there is one."""
    ball = inputs["ball"]
    if ball is None:
        return lambda point: point
    return lambda point: point * jnp.minimum(1, ball / jnp.maximum(jnp.linalg.norm(point), 1e-300))


def setup_of(inputs: dict[str, Any], *, constant: bool = False, epochs: int = 30) -> mc.Setup:
    """With the noise that is given, whatever it costs."""
    schedule = mc.Schedule(
        epochs=epochs,
        step=1.0 if constant else inputs["step"],
        decay="constant" if constant else inputs["decay"],
        noise_timing="aligned",
        noise_to_step=inputs["q"],
    )
    return mc.Setup(
        network=mc.Network(gains=np.array(inputs["gains"]), power=inputs["power"]),
        problem=mc.ClippedGradients(clip=1e-3, dim=len(inputs["start"][0])),
        budget=mc.Budget(epsilon=1e3),
        schedule=schedule,
    )


def plan_of(inputs: dict[str, Any], *, constant: bool = False, epochs: int = 30) -> Plan:
    """The same as a plan with the power split that is given."""
    setup, alpha = setup_of(inputs, constant=constant, epochs=epochs), np.array(inputs["alpha"])
    network = setup.network
    made = mixing(network, alpha, normaliser(network, "lazy"))
    return Plan(
        network=network,
        problem=setup.problem,
        budget=setup.budget,
        schedule=setup.schedule,
        rule=PowerRule(),
        alpha=alpha,
        noise_to_step=inputs["q"] * np.sqrt(alpha / (1 - alpha)),
        theta=1.0,
        mixing=made,
        z=z_diagonal(made.weights, epochs, "recursive"),
        perron=perron(made.weights),
    )


def start_of(inputs: dict[str, Any]) -> FloatArray:
    return np.array(inputs["start"])
