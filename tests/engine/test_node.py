"""One node's step is all there is: nodes stepped one by one, by hand, make the very run that the engine makes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.tables import row_of
from murmurcast.engine import node, noise
from tests.algorithms.networks import DIM, NODES, one_way, setup_on, two_way


def by_hand(algorithm: Algorithm, problem: mc.Quadratic, seed: int) -> FloatArray:
    """[nodes, dim] published, from one process per node that hears what others sent, without the compiled loop."""
    root = noise.roots((seed,))[0]
    data = [jax.tree.map(lambda leaf, own=own: jnp.asarray(leaf[own]), problem.local_data()) for own in range(NODES)]
    local = [node.local(problem, mine, jax.random.key(0)) for mine in data]
    start = node.points(problem, root[None], np.arange(NODES, dtype=np.int32), np.float64)[:, 0]
    states = [algorithm.init(jnp.asarray(start[own]), local[own]) for own in range(NODES)]
    gains = algorithm.setup.network.gains.toarray()
    for epoch in range(1, algorithm.epochs + 1):
        for number, one in enumerate(algorithm.rounds):
            sending, receiving = (node.constants_at(part, epoch, NODES) for part in (one.sending, one.receiving))
            sent = []
            for own in range(NODES):
                drawn: dict[str, Any] = {}
                for place, name in enumerate(one.draws):
                    stream = noise.stream(noise.draw_key(root, epoch, number, place)[None], DIM)
                    drawn[name] = noise.normal(stream, own, np.float64)
                here = jax.tree.map(lambda table, own=own: table[own], sending)
                sent.append(node.transmit(one, here, states[own], drawn))
            heard = gains.T @ np.array(sent)
            for own in range(NODES):
                here = jax.tree.map(lambda table, own=own: table[own], receiving)
                given = (here, states[own], sent[own], jnp.asarray(heard[own]), local[own])
                states[own] = node.receive(one, *given).state
    return np.array([state.published for state in states])


def ours(problem: mc.Quadratic) -> Algorithm:
    schedule = mc.Schedule(epochs=7, step=0.2, noise_timing="aligned")
    return mc.power_controlled(mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), schedule), publish="average")


@pytest.mark.parametrize(
    "make",
    [
        lambda problem: mc.frost(setup_on(one_way(), problem, step=0.02, epochs=7)),
        ours,
        lambda problem: mc.push_pull(setup_on(one_way(), problem, step=0.05, epochs=7)),
    ],
    ids=["frost", "power-controlled", "push-pull"],
)
@pytest.mark.one_in(3)
def test_nodes_stepped_one_by_one_are_the_run(make: Any) -> None:
    begin = np.random.default_rng(4).standard_normal((NODES, DIM))
    random = mc.Quadratic.random(NODES, DIM, seed=1)
    problem = mc.Quadratic(curvature=random.curvature, centre=random.centre, clip=2.0, begin=begin)
    algorithm = make(problem)
    with jax.enable_x64(True):
        expected = by_hand(algorithm, problem, seed=6)
    result = mc.run(algorithm, problem, seeds=[6], precision="float64").published[0]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)


def test_the_last_row_of_a_table_stands_for_all_later_epochs() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    for epoch, expected in ((1, [1, 2]), (2, [3, 4]), (3, [3, 4]), (99, [3, 4])):
        np.testing.assert_array_equal(row_of(table, epoch), expected)
        np.testing.assert_array_equal(jax.jit(lambda when: row_of(jnp.asarray(table), when))(epoch), expected)
    np.testing.assert_array_equal(row_of(table, np.array([1, 2, 5])), table[[0, 1, 1]])
    steps = np.array([0.5, 0.25])
    np.testing.assert_array_equal(node.constants_at((steps, table), 2, 2)[0], [0.25, 0.25])
