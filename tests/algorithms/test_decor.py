"""Noise that cancels between neighbours: its recursion, its covariance, and a promise for every adversary."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.engine import draws, noise
from murmurcast.privacy.cancelling import noise_left
from tests.algorithms.networks import DIM, NODES, gradients, one_way, row_weights, setup_on, two_way


def drawn(algorithm: mc.Algorithm, seed: int, epochs: int) -> tuple[FloatArray, FloatArray]:
    """[epochs, nodes, dim] own draws, and the sums of the pairs' draws, as the engine makes them."""
    pairs = draws.pairs(algorithm)
    assert pairs is not None
    found = {}
    with jax.enable_x64(True):
        for name, source in draws.sources(algorithm, 0).items():
            several = draws.owners(source.draw, algorithm.setup.network.gains)
            place = (DIM, several, draws.Pairs(*map(jnp.asarray, pairs)))

            def one(epoch: jax.Array, source: draws.DrawnFrom = source, place: Any = place) -> jax.Array:
                return draws.draw_all(
                    source, jnp.asarray(noise.roots((seed,))), epoch, jnp.arange(NODES), place, np.float64
                )

            values = np.asarray(jax.jit(jax.vmap(one))(jnp.arange(1, epochs + 1)))[..., 0, :]
            found[name] = values.sum(axis=2) if several else values
    return found["own"], found["shared"]


def test_decor_is_its_recursion() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1, clipping="none")
    setup = setup_on(two_way(), problem, step=0.05)
    algorithm = mc.decor(setup)
    own, shared = drawn(algorithm, 4, 30)
    weights = row_weights(two_way())
    values, vectors = np.linalg.eig(weights.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    pi = pi / pi.sum()
    sending = algorithm.rounds[0].sending
    np.testing.assert_allclose(sending.shared[0] / sending.own[0], 10.0)
    x = np.zeros((NODES, DIM))
    for t, (step, std) in enumerate(zip(setup.schedule.steps, setup.schedule.noise_schedule, strict=True)):
        said = x + std * (sending.own[0][:, None] * own[t] + sending.shared[0][:, None] * shared[t])
        mixed = weights @ said
        x = mixed - step * gradients(problem, mixed) / pi[:, None]
        # In the consensus all pairs cancel.
        np.testing.assert_allclose(pi @ (sending.shared[0][:, None] * shared[t]), 0, atol=1e-10)
    result = mc.run(algorithm, problem, seeds=[4], precision="float64")
    np.testing.assert_allclose(result.published[0], mixed, rtol=0, atol=1e-10)


def test_what_is_left_is_the_inverse_covariance_of_all_that_is_on_the_air() -> None:
    """Against the covariance counted from many draws, and against brute force for every curious node."""
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    algorithm = mc.decor(setup_on(two_way(), problem, step=0.05), shared_to_own=2.0)
    own, shared = drawn(algorithm, 0, 3000)
    sending = algorithm.rounds[0].sending
    said = sending.own[0][:, None] * own + sending.shared[0][:, None] * shared
    sample = np.moveaxis(said, 1, 0).reshape(NODES, -1)
    counted = 1 / np.sqrt(np.diag(np.linalg.inv(np.cov(sample))))
    left = noise_left(two_way().gains, sending.own[0], sending.shared[0])
    np.testing.assert_allclose(left["eavesdropper"], counted, rtol=0.05)
    assert (left["eavesdropper"] > 1.2 * left["everybody"]).all()
    assert (left["everybody"] <= left["eavesdropper and one node"] * (1 + 1e-12)).all()
    assert (left["eavesdropper and one node"] < left["eavesdropper"]).all()


def test_every_adversary_has_a_promise_of_its_own() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    result = mc.run(mc.decor(setup_on(two_way(), problem, step=0.05)), problem)
    privacy = result.info["privacy"]
    assert privacy["against"] == "everybody"
    weaker = {one["against"]: one["epsilon"] for one in privacy["weaker"]}
    assert weaker["eavesdropper"] == pytest.approx(5.0)  # the budget is about the eavesdropper
    assert weaker["eavesdropper"] < weaker["eavesdropper and one node"] <= privacy["epsilon"]
    found = mc.certify(result)
    assert (found.tier, found.verdict) == ("tier 1", "kept")
    assert found.epsilon.max() == pytest.approx(privacy["epsilon"])
    assert [who for who, _ in found.weaker] == ["eavesdropper and one node", "eavesdropper"]
    table = mc.compare(result, result, metric="published_loss")
    assert {"epsilon, everybody", "epsilon, eavesdropper"} <= set(table.headings)


def test_a_weaker_promise_that_was_edited_is_refused() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    result = mc.run(mc.decor(setup_on(two_way(), problem, step=0.05)), problem)
    ledger = result.ledger.copy(deep=True)
    ledger["promised_mu_against_eavesdropper"] = ledger["promised_mu_against_eavesdropper"] * 0.9
    edited = mc.Result(
        metrics=result.metrics, ledger=ledger, published=result.published, info=result.info, experiment=""
    )
    with pytest.raises(mc.Error, match="against an eavesdropper"):
        mc.certify(edited)


def test_pairs_need_two_way_links() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    with pytest.raises(mc.Error, match="two-way links") as raised:
        mc.decor(setup_on(one_way(), problem, step=0.05))
    assert "one-way" in raised.value.hint
