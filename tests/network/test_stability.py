"""Whether exact diffusion settles: the check beforehand, and what a run on such weights does."""

from typing import NoReturn

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence

import murmurcast as mc
from murmurcast.algorithms import exact_diffusion as diffusion
from murmurcast.algorithms.base import Algorithm
from murmurcast.network import stability
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.gains import Constant
from murmurcast.network.link_weights import metropolis_weights
from murmurcast.network.stability import disagreements, exact_diffusion_radius
from murmurcast.network.weights import column_mixing, mixing, mixing_rate
from tests.algorithms.paths import LocalWork, follow, no_draws
from tests.conftest import asymmetric_network


def ring_of_two_decades(seed: int, nodes: int = 6) -> mc.Network:
    """Gains that are strong one way around and weak the other."""
    rng = np.random.default_rng(seed)
    gains = np.zeros((nodes, nodes))
    for i in range(nodes):
        gains[i, (i + 1) % nodes] = rng.uniform(0.5, 1.0)
        gains[(i + 1) % nodes, i] = 10 ** rng.uniform(-2, 0)
    return mc.Network(gains=gains)


def first_unstable() -> mc.Network:
    return next(
        network
        for network in map(ring_of_two_decades, range(200))
        if exact_diffusion_radius(balanced_mixing(network).weights) > 1.01
    )


def setup_on(network: mc.Network, epochs: int) -> mc.Setup:
    schedule = mc.Schedule(epochs=epochs, step=1e-4, decay="constant")
    return mc.Setup(network=network, problem=mc.ClippedGradients(), budget=mc.Budget(epsilon=1.0), schedule=schedule)


def disagreement(algorithm: Algorithm) -> np.ndarray:
    """[epochs] how far nodes are apart, with unequal quadratics."""
    nodes = algorithm.setup.network.nodes

    def gradient(i: jnp.ndarray, _: jnp.ndarray, point: jnp.ndarray) -> jnp.ndarray:
        return point - i

    work = LocalWork(gradient, gradient)
    own = follow(algorithm, no_draws, np.zeros((nodes, 1)), work).states.own[..., 0]
    return np.asarray(own.max(axis=1) - own.min(axis=1))


@pytest.mark.parametrize("seed", range(20))
def test_symmetric_weights_are_always_stable(seed: int) -> None:
    """Real eigenvalues l below 1 make |s|^2 = l."""
    weights = metropolis_weights(asymmetric_network(seed))
    values = np.sort(np.linalg.eigvalsh((np.eye(weights.shape[0]) + weights.toarray()) / 2))
    assert exact_diffusion_radius(weights) == pytest.approx(np.sqrt(values[-2]))
    assert exact_diffusion_radius(weights) < 1


def test_the_radius_is_that_of_the_recursion_of_disagreement() -> None:
    """x+ = B (2 x - x before) with B = (I + W)/2: its second largest pair of eigenvalues, written out."""
    for seed in range(10):
        weights = balanced_mixing(asymmetric_network(seed, 6)).weights
        half = (np.eye(6) + weights.toarray()) / 2
        values = np.linalg.eigvals(np.block([[2 * half, -half], [np.eye(6), np.zeros((6, 6))]]))
        without = np.sort(np.abs(values))[:-2]  # the consensus: twice 1
        assert exact_diffusion_radius(weights) == pytest.approx(without[-1], abs=1e-6)


def test_ordinary_gains_are_stable() -> None:
    assert all(exact_diffusion_radius(balanced_mixing(asymmetric_network(seed)).weights) < 1 for seed in range(60))


def test_an_unstable_network_diverges_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = first_unstable()
    radius = exact_diffusion_radius(balanced_mixing(network).weights)
    for name in ("exact_diffusion", "private_exact_diffusion", "decor_exact_diffusion"):
        with pytest.raises(mc.Error, match="unstable on this network") as raised:
            getattr(mc, name)(setup_on(network, 5))
        assert "metropolis" in raised.value.hint
    metropolis = mc.exact_diffusion(setup_on(network, 2000), weights="metropolis", access="orthogonal")
    assert disagreement(metropolis).max() < 0.1
    # Without the check, however small the step, disagreement grows as fast as the check says.
    monkeypatch.setattr(diffusion, "exact_diffusion_radius", lambda _: 0.0)
    apart = disagreement(mc.exact_diffusion(setup_on(network, 2000)))
    assert apart[-1] > 1e3
    measured = (apart[-1] / apart[999]) ** (1 / 1000)
    assert measured == pytest.approx(radius, rel=2e-3)


def test_too_many_nodes_are_refused() -> None:
    with pytest.raises(mc.Error, match="needs all eigenvalues") as raised:
        exact_diffusion_radius(csr_array((3001, 3001)))
    assert "3000" in raised.value.hint


def test_relabelling_nodes_leaves_the_radius_alone() -> None:
    network, order = asymmetric_network(3, 7), np.random.default_rng(4).permutation(7)
    other = mc.Network(gains=network.gains.toarray()[np.ix_(order, order)])
    one, there = (exact_diffusion_radius(balanced_mixing(which).weights) for which in (network, other))
    assert there == pytest.approx(one, rel=1e-9)


def test_a_cycle_in_one_direction_in_closed_form() -> None:
    """Half own, half from the node before: l = (3 + e^(2 pi i k/n))/4, and s = l + sqrt(l^2 - l)."""
    nodes = 8
    weights = csr_array((np.eye(nodes) + np.roll(np.eye(nodes), 1, axis=0)) / 2)
    values = (3 + np.exp(2j * np.pi * np.arange(1, nodes) / nodes)) / 4
    root = np.sqrt(values**2 - values)
    expected = max(np.abs(values + root).max(), np.abs(values - root).max())
    assert exact_diffusion_radius(weights) == pytest.approx(expected, rel=1e-9)
    assert expected > 1


def test_keeping_more_of_the_own_model_is_stable_sooner() -> None:
    """Towards the identity the factors of an unstable network come back to 1, from above."""
    weights = balanced_mixing(first_unstable()).weights.toarray()
    radii = [exact_diffusion_radius(csr_array((1 - w) * np.eye(6) + w * weights)) for w in (1.0, 0.1, 1e-6)]
    assert radii[0] > 1.01
    assert radii[2] == pytest.approx(1, abs=2e-3)
    assert radii[0] != pytest.approx(radii[1], abs=1e-4)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of over 70 nodes go as those of over 300 do."""
    monkeypatch.setattr(stability, "_EXACT_UP_TO", 70)


def large_network(seed: int) -> mc.Network:
    return mc.topologies.random_regular(90, 4 + 2 * seed, seed=seed)


def uneven_weights(network: mc.Network) -> csr_array:
    alpha = np.random.default_rng(5).uniform(0.05, 0.95, network.nodes)
    return mixing(network, alpha, network.max_degree + 1).weights


def without_all_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> NoReturn:
        raise AssertionError("all eigenvalues were asked for")

    for name in ("eig", "eigvals"):
        monkeypatch.setattr(np.linalg, name, forbidden)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("seed", range(3))
def test_the_rate_alone_is_that_of_all_eigenvalues(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = uneven_weights(large_network(seed))
    columns = csr_array(column_mixing(large_network(seed)).weights.T)
    expected = [np.abs(disagreements(one)).max() for one in (weights, columns)]
    without_all_eigenvalues(monkeypatch)
    rates = [stability.rate_alone(one) for one in (weights, columns)]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    assert stability.rate_alone(weights) == rates[0]  # the same bits again


def test_slow_and_symmetric_networks_have_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """All in all links: nothing is left. A ring of equal gains: 1 - (2/3)(1 - cos(2 pi/n)), twice."""
    equal = Constant()
    everybody = mixing(mc.topologies.complete(320, gain=equal), np.full(320, 0.5), 320).weights
    assert stability.rate_alone(everybody) < 1e-12
    without_all_eigenvalues(monkeypatch)
    ring = mixing(mc.topologies.ring(600, gain=equal), np.full(600, 0.5), 3).weights
    assert stability.rate_alone(ring) == pytest.approx(1 - 2 / 3 * (1 - np.cos(2 * np.pi / 600)), abs=1e-12)


def test_a_small_network_has_the_very_rate_of_before() -> None:
    weights = uneven_weights(asymmetric_network(3, 12))
    assert stability.rate_alone(weights) == mixing_rate(weights).rate


@pytest.mark.usefixtures("few_are_many")
def test_where_the_iteration_does_not_end_all_eigenvalues_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = uneven_weights(large_network(0))

    def in_vain(*_: object, **__: object) -> NoReturn:
        raise ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(stability, "eigs", in_vain)
    assert stability.rate_alone(weights) == np.abs(disagreements(weights)).max()


def test_large_periodic_weights_have_no_rate() -> None:
    ring = mc.topologies.ring(400, gain=Constant())
    with pytest.raises(mc.Error, match="periodic"):
        stability.rate_alone(mixing(ring, np.full(400, 0.5), 2).weights)
