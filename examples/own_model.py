"""A model of your own: a network with a hidden layer on the digits, from its own starting point, privately.

Run it:  python examples/own_model.py
"""

from typing import Any

import jax
import jax.numpy as jnp

import murmurcast as mc

HIDDEN = 16


def initialise(key: jax.Array) -> dict[str, jax.Array]:
    """Where all nodes begin; the key is public."""
    first, second = jax.random.split(key)
    return {
        "hidden": jax.random.normal(first, (64, HIDDEN)) / 8,
        "bias": jnp.zeros(HIDDEN),
        "out": jax.random.normal(second, (HIDDEN, 10)) / 4,
    }


def scores(parameters: dict[str, jax.Array], features: jax.Array) -> jax.Array:
    """Bounded activations do well under clipping."""
    return jnp.tanh(features @ parameters["hidden"] + parameters["bias"]) @ parameters["out"]


def loss(parameters: Any, example: Any) -> jax.Array:
    """Cross-entropy of one example."""
    found = scores(parameters, example.features)
    return jax.nn.logsumexp(found) - found[example.target]


def predict(parameters: Any, features: jax.Array) -> jax.Array:
    """The label."""
    return jnp.argmax(scores(parameters, features))


network = mc.topologies.complete(4, seed=0)
data = mc.datasets.digits().partition("iid", nodes=network.nodes)
problem = mc.Model(data=data, initialise=initialise, loss=loss, predict=predict, clip=1.0)
schedule = mc.Schedule(epochs=60, step=0.5, decay="constant", noise_timing="aligned")
plan = mc.plan(network, problem, mc.Budget(epsilon=8.0, unit="record"), schedule, z="perron")
result = mc.run(mc.power_controlled(plan, publish="average"), problem)

print(f"{problem.dim} parameters, accuracy {result.final('published_accuracy').mean():.3f}")
print("certify says:", mc.certify(result).verdict, f"epsilon {plan.certificate.epsilon.max():.3g}")
print({name: array.shape for name, array in problem.parameters(result.published[0, 0]).items()})
