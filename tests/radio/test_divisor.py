"""Divisors under fading: the reference's, closed forms of the mean weights, and the lemma."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import erfcx, exp1

from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.gains import Uniform
from murmurcast.network.weights import arriving_amplitudes, mixing
from murmurcast.radio import combining, divisor, fading
from murmurcast.radio.combining import Pilot
from murmurcast.radio.divisor import Channel, Reception
from tests.radio.reference import Instance, instances, require_equal

RAYLEIGH = Channel("iid")


def amplitudes(nodes: int, seed: int) -> Any:
    """[receiver, sender] of a connected, asymmetric network."""
    rng = np.random.default_rng(seed)
    linked = rng.random((nodes, nodes)) < 0.4
    linked |= np.roll(np.eye(nodes, dtype=bool), 1, axis=0)
    linked |= linked.T
    np.fill_diagonal(linked, False)
    return np.where(linked, rng.uniform(0.2, 2.0, (nodes, nodes)), 0)


@pytest.mark.parametrize("one", instances("fading"), ids=lambda one: one.name)
def test_every_divisor_is_the_expected_one(one: Instance) -> None:
    given, expected = one.inputs, one.expected
    sent = np.sqrt(given["alpha"] * given["power_w"])
    arriving = np.swapaxes(np.abs(given["gains"]) * sent[:, None], 1, 2)
    weights = divisor.weights(arriving, given["normaliser"])
    require_equal(weights, expected["weights"])
    mean = csr_array(weights.mean(axis=0))
    require_equal(mean.toarray(), expected["mean_weights"])
    require_equal(divisor.mean(mean), expected["mean"])
    require_equal(divisor.predicted(weights, mean, given["blend"]), expected["predicted"])
    require_equal(divisor.recursive(weights), expected["recursive"])
    require_equal(divisor.instant(weights), expected["instant"])
    require_equal(divisor.absolute(weights), expected["absolute"])


@pytest.mark.parametrize("access", ["aligned", "own-slot", "digital"])
def test_without_fading_the_mean_weights_are_the_networks(access: Any) -> None:
    network = topologies.geometric(25, gain=Uniform(), seed=4)
    alpha = np.linspace(0.2, 0.8, 25)
    resolved = network.max_degree + 1
    result = divisor.expected(arriving_amplitudes(network, alpha), Reception(access, resolved))
    np.testing.assert_allclose(result.toarray(), mixing(network, alpha, resolved).weights.toarray(), atol=1e-15)


def rayleigh_shares(rms: Any) -> Any:
    """E[r_j / sum r] of independent Rayleigh amplitudes: the integral of -L_j'(s) prod_{k != j} L_k(s) over s > 0."""

    def transform(s: float) -> Any:
        # L(s) = 1 - sqrt(pi) x erfcx(x) with x = rms s/2
        return 1 - np.sqrt(np.pi) * (rms * s / 2) * erfcx(rms * s / 2)

    def slope(s: float) -> Any:
        x = rms * s / 2
        return rms / 2 * (np.sqrt(np.pi) * erfcx(x) * (1 + 2 * x**2) - 2 * x)

    def part(j: int) -> float:
        return quad(lambda s: slope(s)[j] * np.delete(transform(s), j).prod(), 0, np.inf, limit=200)[0]

    return np.array([part(j) for j in range(len(rms))])


def test_mean_weights_under_rayleigh_fading_have_the_integrals_value() -> None:
    arriving = amplitudes(6, 3)
    degree = (arriving > 0).sum(axis=1)
    result = divisor.expected(csr_array(arriving), Reception("own-slot", 7), RAYLEIGH).toarray()
    np.testing.assert_allclose(result.sum(axis=1), 1, atol=1e-14)
    for receiver, row in enumerate(arriving):
        exact = degree[receiver] / 7 * rayleigh_shares(row[row > 0])
        np.testing.assert_allclose(exact.sum(), degree[receiver] / 7, rtol=1e-8)
        np.testing.assert_allclose(result[receiver, row > 0], exact, atol=5 * 0.25 / np.sqrt(divisor.DRAWS))
        np.testing.assert_allclose(result[receiver, receiver], 1 - degree[receiver] / 7, atol=1e-14)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("channel", [RAYLEIGH, Channel("iid", 3.0), Channel("none")])
def test_mean_weights_of_referenced_combining_are_those_of_many_rounds(channel: Channel, halves: bool) -> None:
    rng, arriving, count = np.random.default_rng(5), amplitudes(5, 6), 20_000
    scattered = fading.rayleigh(rng, (count, 5, 5)) if channel.fading == "iid" else np.ones((count, 5, 5))
    factor = fading.with_line_of_sight(scattered, channel.k_factor_db) * np.exp(2j * np.pi * rng.random((count, 1, 5)))
    coins = rng.random((count, 5)) < 0.5
    linked = (arriving > 0) & ((coins[:, :, None] != coins[:, None, :]) | (not halves))
    pilot = Pilot(np.zeros((count, 5)), np.zeros((count, 5)), np.zeros((count, 5)))
    power = np.square(arriving).sum(axis=1) / (2 if halves else 1)
    drawn = combining.referenced(arriving * factor, linked, pilot, power, 0.8, 1.5)
    mean = drawn.weights.mean(axis=0) + np.diag(drawn.own.mean(axis=0))
    result = divisor.expected(csr_array(arriving), Reception("referenced", 0, 0.8, 1.5, halves), channel).toarray()
    np.testing.assert_allclose(result, mean, atol=0.012)
    np.testing.assert_allclose(result.sum(axis=1), 1, atol=1e-14)
    assert result.min() >= 0


def test_mean_weights_of_referenced_combining_under_rayleigh_fading_have_a_closed_form() -> None:
    arriving = amplitudes(7, 8)
    share = arriving**2 / np.square(arriving).sum(axis=1, keepdims=True)
    moved = 1 - 0.7 * np.exp(0.7) * exp1(0.7)
    result = divisor.expected(csr_array(arriving), Reception("referenced", 0, 1.0, 0.7), RAYLEIGH).toarray()
    np.testing.assert_allclose(result, moved * share + (1 - moved) * np.eye(7), atol=1e-14)


def test_a_weak_pilot_leaves_more_of_the_own_point() -> None:
    arriving, reception = csr_array(amplitudes(6, 3)), Reception("aligned", 7)
    free = divisor.expected(arriving, reception, RAYLEIGH).diagonal()
    kept = divisor.expected(arriving, reception, RAYLEIGH, least=np.full(6, 20.0)).diagonal()
    assert (kept > free).all()
    assert (divisor.expected(arriving, reception, RAYLEIGH, least=np.full(6, 1e9)).diagonal() == 1).all()


@pytest.mark.parametrize("access", ["own-slot", "referenced"])
def test_relabelling_nodes_relabels_the_divisor(access: Any) -> None:
    arriving, order = amplitudes(8, 1), np.random.default_rng(1).permutation(8)
    reception = Reception(access, 8)
    result = divisor.mean(divisor.expected(csr_array(arriving), reception, RAYLEIGH))
    other = divisor.mean(divisor.expected(csr_array(arriving[np.ix_(order, order)]), reception, RAYLEIGH))
    np.testing.assert_allclose(other, result[order], rtol=0.03)


@pytest.mark.parametrize("heard", [1, 2, 5, 40])
def test_the_sum_over_ln_s_has_the_integrals_value(heard: int) -> None:
    rms = np.random.default_rng(heard).uniform(-30, 30, heard)
    rms = 10 ** (rms / 20) * 1e-5  # 60 dB apart, as loud as a radio
    result = divisor.rayleigh_shares(rms[None])[0]
    np.testing.assert_allclose(result, rayleigh_shares(rms / rms.max()), rtol=1e-6)
    np.testing.assert_allclose(divisor.rayleigh_shares(np.stack([rms, 7 * rms]))[1], result, rtol=1e-12)


def test_where_draws_would_be_few_the_integral_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A star: one row of 10,000, and 10,000 rows of one."""
    network, reception = topologies.star(10_000, gain=Uniform()), Reception("own-slot", 10_000)
    arriving = arriving_amplitudes(network, np.full(10_000, 0.5))
    result = divisor.expected(arriving, reception, RAYLEIGH)
    assert result.nnz == network.links + network.nodes
    pi = divisor.mean(result)
    np.testing.assert_allclose(pi @ result, pi, atol=1e-12)
    np.testing.assert_array_equal(divisor.expected(arriving, reception, RAYLEIGH, seed=1).data, result.data)
    small, other = csr_array(amplitudes(6, 3)), Reception("aligned", 7)
    drawn = divisor.expected(small, other, RAYLEIGH)
    monkeypatch.setattr(divisor, "MAX_DRAWN", 4e3)
    np.testing.assert_allclose(divisor.expected(small, other, RAYLEIGH).toarray(), drawn.toarray(), atol=0.02)
    with_sight = [divisor.expected(small, other, Channel("iid", 3.0), seed=seed).toarray() for seed in (0, 1)]
    assert np.abs(with_sight[0] - with_sight[1]).max() > 1e-4  # there is no such integral: it is drawn


@pytest.mark.parametrize("seed", range(5))
def test_lemma_a_step_is_unbiased_where_epochs_are_independent(seed: int) -> None:
    """E[pi' x_{t+1} | past] = pi' V_t - gamma sum g, whatever V_t is: checked over all of a finite set of weights."""
    rng = np.random.default_rng(seed)
    arriving = amplitudes(6, seed) * rng.exponential(1.0, (9, 6, 6))
    arriving[2, 3] = 0  # node 3 hears nobody
    weights = divisor.weights(arriving, 6)
    pi = divisor.mean(csr_array(weights.mean(axis=0)))
    said, gradient, gamma = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), 0.3
    following = weights @ said - gamma * gradient / pi[:, None]
    np.testing.assert_allclose((pi @ following).mean(axis=0), pi @ said - gamma * gradient.sum(axis=0), atol=1e-13)
    assert np.abs(pi @ following - (pi @ following).mean(axis=0)).max() > 1e-3
    common = np.tile(rng.normal(size=4), (6, 1))  # at consensus nothing is left of the channel's chance
    np.testing.assert_allclose(pi @ weights @ common - common[0], 0, atol=1e-13)
    wrong = np.full(6, 1 / 6)
    biased = (wrong @ (weights @ said)).mean(axis=0) - wrong @ said
    assert np.abs(biased).max() > 1e-3


def test_the_exact_divisor_makes_every_gradient_count_alike() -> None:
    arriving = amplitudes(6, 2) * np.random.default_rng(2).exponential(1.0, (30, 6, 6))
    weights = divisor.weights(arriving, 6)
    exact = divisor.absolute(weights)
    for epoch in (0, 11, 29):
        state = np.diag(1 / exact[epoch + 1])  # a unit gradient of every node, in a direction of its own
        for now in weights[epoch + 1 :]:
            state = now @ state
        np.testing.assert_allclose(state.mean(axis=0), 1, atol=1e-12)


def test_the_blend_goes_from_the_mean_to_the_present_as_the_channel_slows_down() -> None:
    mean = divisor.expected(csr_array(amplitudes(6, 4)), Reception("own-slot", 7), RAYLEIGH)
    blends = [divisor.blend(mean, doppler) for doppler in (5.0, 0.5, 0.05, 0.005, 0.0)]
    assert blends == sorted(blends)
    assert blends[0] < 0.1
    assert 0.999 < blends[-1] < 1
    weights = divisor.weights(amplitudes(6, 4), 7)
    np.testing.assert_allclose(divisor.predicted(weights, mean, 0.0), divisor.mean(mean), rtol=1e-12)
    result = divisor.predicted(np.eye(6), mean, 0.999999)
    np.testing.assert_allclose(result, divisor.mean(mean), rtol=1e-6)
    silenced = np.full((6, 6), 0.0)
    silenced[:, 0] = 1.0  # all follow node 0: nobody else counts, but for the floor
    assert divisor.predicted(silenced, mean, 0.999)[1:] == pytest.approx(0.1 * divisor.mean(mean).min())


def test_prediction_refuses_large_networks() -> None:
    large = csr_array(np.full((301, 301), 1 / 301))
    with pytest.raises(Error, match="predicted"):
        divisor.blend(large, 0.1)


RING, NORMALISER, EPOCHS, NETWORKS, UNLIKE = 6, 3, 3000, 20, 1.9
# Distances that were measured elsewhere, medians of four rings: z = recursive, mean and predicted.
MEASURED = {
    "iid": (0.087, 0.007, 0.007),
    0.1: (0.341, 0.014, 0.007),
    0.02: (0.362, 0.025, 0.009),
    0.004: (0.452, 0.063, 0.002),
}


class Rings(NamedTuple):
    """Weights of all epochs, what to divide by, and quadratics; [networks, ...]."""

    weights: Any
    z: Any
    curvature: Any
    centre: Any


def one_ring(kind: Any, seed: int) -> Rings:
    """Links of -10 to 10 dB that fade alike in both directions; nodes' own optima lie 1.9 from x*, of norm 1."""
    rng = np.random.default_rng(seed)
    receiver = np.repeat(np.arange(RING), 2)
    sender = (receiver + np.tile([1, -1], RING)) % RING
    mean_amplitude = 10 ** (rng.uniform(-10, 10, 2 * RING) / 20)
    pairs, pair = np.unique(np.sort(np.stack([sender, receiver], axis=1), axis=1), axis=0, return_inverse=True)
    if kind == "iid":
        factor = fading.rayleigh(rng, (EPOCHS, len(pairs)))
    else:
        factor = fading.jakes(np.arange(EPOCHS), *fading.sinusoids(pairs, seed), kind)
    arriving = np.zeros((EPOCHS, RING, RING))
    arriving[:, receiver, sender] = mean_amplitude * np.abs(factor)[:, pair.ravel()]
    weights = divisor.weights(arriving, NORMALISER)
    links = csr_array((mean_amplitude, (receiver, sender)), shape=(RING, RING))
    mean = divisor.expected(links, Reception("own-slot", NORMALISER), RAYLEIGH)
    blend = 0.0 if kind == "iid" else divisor.blend(mean, kind)
    steady = np.broadcast_to(divisor.mean(mean), (EPOCHS, RING))
    z = np.stack([divisor.recursive(weights), steady, divisor.predicted(weights, mean, blend)], axis=1)
    curvature, away = rng.uniform(0.5, 1.5, (RING, 4)), rng.normal(size=(RING, 4))
    away -= (curvature * away).sum(axis=0) / curvature.sum(axis=0)  # now the common optimum is 0
    return Rings(weights, z, curvature, 0.5 + UNLIKE * away / np.sqrt(np.square(away).sum(axis=1).mean()))


def distances(kind: Any) -> Any:
    """[3, networks] distance to the optimum of all nodes' quadratics, over its norm, which is 1."""
    rings = [one_ring(kind, seed) for seed in range(NETWORKS)]
    weights, z, curvature, centre = (np.stack(part) for part in zip(*rings, strict=True))
    own = np.zeros((3, NETWORKS, RING, 4))
    for epoch in range(EPOCHS):
        mixed = weights[:, epoch] @ own
        divided = curvature * (mixed - centre) / np.moveaxis(z[:, epoch], 1, 0)[..., None]
        own = mixed - 0.3 / (epoch + 1) * divided
    return np.linalg.norm(own.mean(axis=2) - 0.5, axis=-1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", MEASURED)
def test_the_mean_divisor_finds_the_optimum_and_the_papers_does_not(kind: Any) -> None:
    result, measured = np.median(distances(kind), axis=1), np.array(MEASURED[kind])
    assert (result < 2 * measured).all()
    assert result[0] > measured[0] / 2
    assert result[0] > 2 * result[1]
