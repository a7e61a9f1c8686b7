"""A channel of your own: gains that fade from epoch to epoch, and receivers with noise of their own.

The certificate is the one without: what a channel does between two antennas is free of data, and nobody is promised
that the air is noisy. What suffers is the learning.

Run it:  python examples/own_channel.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import murmurcast as mc
from murmurcast.channels.air import Air


def fading(epoch: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
    """A factor of every link in every epoch, by key: computed when it is needed, and never kept."""
    link = jnp.asarray(sender * 1000 + receiver)
    keys = jax.vmap(lambda number: jax.random.fold_in(jax.random.fold_in(jax.random.key(7), epoch), number))
    factors = jax.vmap(lambda key: jax.random.uniform(key, minval=0.9, maxval=1.1))(keys(link.ravel()))
    return factors.reshape(link.shape)


network = mc.topologies.complete(5, seed=0)
problem = mc.Quadratic.random(network.nodes, 6, clip=1.0, ball=5.0)
plan = mc.plan(network, problem, mc.Budget(epsilon=20.0), mc.Schedule(epochs=60, step=0.05), z="perron")
ideal = mc.power_controlled(plan)
(only,) = ideal.rounds
noisy_air = Air(network.gains, gains_at=fading, receiver_noise=np.full(network.nodes, 0.05))
real = ideal._replace(rounds=(only._replace(channel=noisy_air),))

for name, algorithm in (("ideal air", ideal), ("fading, with receiver noise", real)):
    result = mc.run(algorithm, problem, seeds=range(5))
    found = mc.certify(result)
    distance = result.final("published_distance").mean()
    print(f"{name}: {distance:.3f} from the optimum; {found.verdict}, epsilon {found.epsilon.max():.3g}")
