"""Algorithm 1 by orthogonal access: the same models, the same certificate, more channel uses."""

import numpy as np

import murmurcast as mc
from murmurcast.channels.links import Links
from tests.algorithms.networks import DIM, NODES, gradients, two_way


def plan_of(problem: mc.Quadratic, epochs: int = 30) -> mc.Plan:
    schedule = mc.Schedule(epochs=epochs, step=0.1, noise_timing="aligned")
    return mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), schedule)


def test_without_noise_it_is_the_plain_recursion() -> None:
    """The noise is taken out of its tables; what is left is x <- A x - gamma g / z."""
    problem = mc.Quadratic.random(NODES, DIM, seed=1, clipping="none")
    plan = plan_of(problem)
    algorithm = mc.orthogonal(plan, gradient_at="own")
    (only,) = algorithm.rounds
    silent = only._replace(sending=only.sending._replace(noise=0 * only.sending.noise))
    x = np.zeros((NODES, DIM))
    for step, z in zip(plan.schedule.steps, plan.z, strict=True):
        mixed = plan.mixing.weights @ x
        x = mixed - step * gradients(problem, x) / z[:, None]
    result = mc.run(algorithm._replace(rounds=(silent,), releases=()), problem, precision="float64")
    np.testing.assert_allclose(result.published[0], mixed, rtol=0, atol=1e-10)


def test_it_finds_what_algorithm_1_finds_and_costs_the_same() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    plan = plan_of(problem)
    ours, summed = (mc.run(make(plan), problem, precision="float64") for make in (mc.orthogonal, mc.power_controlled))
    np.testing.assert_allclose(ours.published, summed.published, rtol=0, atol=1e-10)
    outcome = mc.certify(ours)
    assert (outcome.tier, outcome.verdict) == ("tier 1", "kept")
    np.testing.assert_allclose(outcome.mu, mc.certify(summed).mu, rtol=1e-12)


def test_slots_are_shared_by_senders_without_a_common_receiver() -> None:
    assert Links(two_way().gains).uses == 3  # 0 and 3, 1 and 2, and 4, which shares a receiver with each of them
    path = np.zeros((6, 6))
    for node in range(5):
        path[node, node + 1], path[node + 1, node] = 0.5, 0.7
    assert Links(mc.Network(gains=path).gains).uses == 2  # 0 and 1 send at once, then 2 and 3
    complete = np.random.default_rng(0).uniform(0.3, 1.0, (6, 6)) * (1 - np.eye(6))
    assert Links(mc.Network(gains=complete).gains).uses == 6
