"""A model of Equinox: a network with a hidden layer on the digits, every example clipped, privately.

Run it:  pip install equinox && python examples/equinox_model.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp

import murmurcast as mc


def network_of_mine(key: jax.Array) -> eqx.nn.MLP:
    """Where all nodes begin; the key is public. Bounded activations do well under clipping."""
    return eqx.nn.MLP(in_size=64, out_size=10, width_size=16, depth=1, activation=jnp.tanh, key=key)


network = mc.topologies.complete(4, seed=0)
data = mc.datasets.digits().partition("iid", nodes=network.nodes)
problem = mc.Model(data=data, module=network_of_mine, loss="cross-entropy", clip=1.0)
schedule = mc.Schedule(epochs=60, step=0.5, decay="constant", noise_timing="aligned")
plan = mc.plan(network, problem, mc.Budget(epsilon=8.0, unit="record"), schedule, z="perron")
result = mc.run(mc.power_controlled(plan, publish="average"), problem)

print(f"{problem.dim} parameters, accuracy {result.final('published_accuracy').mean():.3f}")
print("certify says:", mc.certify(result).verdict, f"epsilon {plan.certificate.epsilon.max():.3g}")

# A published model as Equinox has it: its arrays, put back into a module of the same form.
trained = eqx.combine(problem.parameters(result.published[0, 0]), network_of_mine(jax.random.key(0)))
print("label of the first test image:", int(jnp.argmax(trained(jnp.asarray(data.dataset.test_features[0])))))
