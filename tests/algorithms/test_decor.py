"""Noise that cancels between neighbours: its recursion, its covariance, and a promise for every adversary."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.engine import draws, noise
from murmurcast.errors import Infeasible
from murmurcast.privacy.cancelling import noise_left
from murmurcast.privacy.conversion import mu_of
from tests.algorithms.calibrated import CLIP, EPOCHS, allowed_mu, left_perron, noise_in, setup_of, words_of
from tests.algorithms.networks import DIM, NODES, gradients, one_way, row_weights, setup_on, two_way
from tests.algorithms.test_dsgd import BY_ACCESS


def drawn(algorithm: mc.Algorithm, seed: int, epochs: int) -> tuple[FloatArray, FloatArray]:
    """[epochs, nodes, dim] own draws, and the sums of the pairs' draws, as the engine makes them."""
    pairs = draws.pairs(algorithm)
    assert pairs is not None
    outcome = {}
    with jax.enable_x64(True):
        for name, source in draws.sources(algorithm, 0).items():
            several = draws.owners(source.draw, algorithm.setup.network.gains)
            place = (DIM, several, draws.Pairs(*map(jnp.asarray, pairs)))

            def one(epoch: jax.Array, source: draws.DrawnFrom = source, place: Any = place) -> jax.Array:
                return draws.draw_all(
                    source, jnp.asarray(noise.roots((seed,))), epoch, jnp.arange(NODES), place, np.float64
                )

            values = np.asarray(jax.jit(jax.vmap(one))(jnp.arange(1, epochs + 1)))[..., 0, :]
            outcome[name] = values.sum(axis=2) if several else values
    return outcome["own"], outcome["shared"]


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
    outcome = mc.certify(result)
    assert (outcome.tier, outcome.verdict) == ("tier 1", "kept")
    assert outcome.epsilon.max() == pytest.approx(privacy["epsilon"])
    assert [who for who, _ in outcome.weaker] == ["eavesdropper and one node", "eavesdropper"]
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


def inverse_by_hand(shared_to_own: float, links: Any) -> FloatArray:
    """[nodes] [C^-1]_jj where own noise is 1: C_ii = 1 + d_i s^2, C_ij = -s^2 for neighbours."""
    covariance = np.eye(len(links))
    for i, j in zip(*np.nonzero(links), strict=True):
        covariance[i, i] += shared_to_own**2
        covariance[i, j] -= shared_to_own**2
    return np.asarray(np.diag(np.linalg.inv(covariance)))


@pytest.mark.parametrize("shared_to_own", [0.5, 10.0])
@pytest.mark.parametrize("timing", ["paper", "aligned"])
def test_the_scale_is_that_of_the_node_that_is_hidden_least(timing: Any, shared_to_own: float) -> None:
    algorithm = mc.decor(setup_of(noise_timing=timing), weights="sinkhorn", shared_to_own=shared_to_own)
    links = two_way().gains.toarray() > 0
    unit = np.sqrt(sum((epoch + 1) / epoch if timing == "paper" else 1.0 for epoch in range(1, EPOCHS)))
    expected = 2 * CLIP * unit * np.sqrt(inverse_by_hand(shared_to_own, links)).max() / allowed_mu()
    sending = algorithm.rounds[0].sending
    np.testing.assert_allclose(sending.own[0], expected, rtol=1e-9)
    np.testing.assert_allclose(sending.shared[0], expected * shared_to_own, rtol=1e-9)


def test_one_curious_node_leaves_the_pairs_of_all_others() -> None:
    algorithm = mc.decor(setup_of(), weights="sinkhorn", against="eavesdropper and one node", shared_to_own=3.0)
    links, worst = two_way().gains.toarray() > 0, np.zeros(NODES)
    for curious in range(NODES):
        others = np.delete(np.arange(NODES), curious)
        worst[others] = np.maximum(worst[others], inverse_by_hand(3.0, links[np.ix_(others, others)]))
    expected = 2 * CLIP * np.sqrt(EPOCHS - 1) * np.sqrt(worst.max()) / allowed_mu()
    np.testing.assert_allclose(algorithm.rounds[0].sending.own[0], expected, rtol=1e-9)
    cost = {part.against: mu_of(part).max() for part in algorithm.releases}
    assert cost["eavesdropper and one node"] == pytest.approx(allowed_mu(), rel=1e-9)
    assert cost["eavesdropper"] < cost["eavesdropper and one node"] <= cost["everybody"]


@pytest.mark.parametrize("weights", ["sinkhorn", "row"])
def test_against_everybody_only_own_noise_counts(weights: Any) -> None:
    """Then it is dp-dsgd's noise, or with rows K times gamma/z over 1/z: the same at every node."""
    setup = setup_of()
    algorithm = mc.decor(setup, weights=weights, against="everybody")
    factor = 1.0 if weights == "sinkhorn" else 1 / left_perron(row_weights(two_way()))
    expected = noise_in(mc.dp_dsgd(setup)) * factor
    np.testing.assert_allclose(algorithm.rounds[0].sending.own[0], expected, rtol=1e-9)
    np.testing.assert_allclose(mu_of(algorithm.releases[0]), allowed_mu(), rtol=1e-9)
    assert algorithm.releases[0].against == "everybody"


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
@pytest.mark.parametrize("weights", ["row", "sinkhorn", "metropolis"])
def test_options_and_words(weights: Any, access: Any, kind: str, uses: int) -> None:
    if (weights, access) == ("metropolis", "air"):
        with pytest.raises(mc.Error, match="cannot be made by one multicast"):
            mc.decor(setup_of(), weights=weights, access=access)
        return
    algorithm = mc.decor(setup_of(), weights=weights, access=access, step_factor=2.0)
    draws_in_words = "own: normal of a node; shared: normal of a pair with opposite signs"
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": draws_in_words}
    assert algorithm.channel_uses == uses
    assert (algorithm.settings["weights"], algorithm.settings["step_factor"]) == (weights, 2.0)
    z = algorithm.rounds[0].receiving.z[0]
    expected = left_perron(row_weights(two_way())) if weights == "row" else np.ones(NODES)
    np.testing.assert_allclose(z, expected, rtol=1e-9)


def test_given_noise_is_the_own_noise_or_is_refused() -> None:
    least = float(mc.decor(setup_of(), weights="sinkhorn").rounds[0].sending.own[0, 0])
    more = mc.decor(setup_of(noise_to_step=3 * least), weights="sinkhorn", shared_to_own=10.0)
    np.testing.assert_allclose(more.rounds[0].sending.own[0], 3 * least, rtol=1e-12)
    np.testing.assert_allclose(more.rounds[0].sending.shared[0], 30 * least, rtol=1e-12)
    with pytest.raises(Infeasible, match="costs node") as raised:
        mc.decor(setup_of(noise_to_step=least / 3), weights="sinkhorn")
    again = mc.decor(setup_of(noise_to_step=least / 3, epsilon=raised.value.smallest_epsilon), weights="sinkhorn")
    assert again.is_as_proved


def test_given_noise_on_rows_is_shared_out_over_how_much_nodes_count() -> None:
    """n_i/D_i with D = K pi: the weighed mean of own noise is that of equal nodes."""
    own = mc.decor(setup_of(noise_to_step=500.0)).rounds[0].sending.own[0]
    pi = left_perron(row_weights(two_way()))
    np.testing.assert_allclose(own, 500.0 / (NODES * pi), rtol=1e-9)
    np.testing.assert_allclose(pi * own, 100.0, rtol=1e-9)
