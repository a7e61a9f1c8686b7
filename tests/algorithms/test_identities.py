"""What must hold exactly, whatever the numbers: methods that are each other, sums that nothing moves."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Draw
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.weights import mixing, perron
from tests.algorithms.networks import DIM, NODES, gradients, one_way, two_way
from tests.algorithms.paths import LocalWork, Path, draws_of, follow, no_draws, random_draws
from tests.conftest import asymmetric_network

EPOCHS = 12
PROBLEM = mc.Quadratic.random(NODES, DIM, seed=3)
START = np.random.default_rng(4).normal(size=(NODES, DIM))


def work() -> LocalWork:
    def gradient(i: Any, _: Any, point: Any) -> Any:
        return jnp.asarray(PROBLEM.curvature)[i] @ (point - jnp.asarray(PROBLEM.centre)[i])

    return LocalWork(gradient, gradient)


def setup_on(network: mc.Network, decay: Any = "constant") -> mc.Setup:
    schedule = mc.Schedule(epochs=EPOCHS, step=0.05, decay=decay, noise_timing="aligned")
    return mc.Setup(network=network, problem=PROBLEM, budget=mc.Budget(epsilon=5.0), schedule=schedule)


def built(name: str, network: mc.Network, **options: Any) -> Algorithm:
    return registry.find(name).make(setup_on(network), **options)


def path_of(algorithm: Algorithm, seed: int = 0, start: FloatArray = START) -> Path:
    return follow(algorithm, random_draws(algorithm.setup.network.gains, EPOCHS, DIM, seed), start, work())


def own_points(path: Path, start: FloatArray = START) -> FloatArray:
    """[epochs + 1, nodes, dim] x, from the start on."""
    return np.concatenate([start[None], path.states.own])


def pi_of(algorithm: Algorithm) -> FloatArray:
    """[nodes] the weights' left vector, from their powers."""
    network = algorithm.setup.network
    made_rows = mixing(network, np.ones(network.nodes), int(network.heard_degree.max()) + 1)
    return np.asarray(np.linalg.matrix_power(made_rows.weights.toarray(), 5000)[0])


@pytest.mark.parametrize("weights", ["sinkhorn", "metropolis"])
def test_one_round_of_gossip_and_noise_without_memory_are_private_gradient_descent(weights: str) -> None:
    options = {"weights": weights, "access": "air" if weights == "sinkhorn" else "slots"}
    plain = path_of(built("dp-dsgd", two_way(), **options))
    for name, more in (("muffliato", {"gossip": 1}), ("mafalda", {"bandwidth": 1})):
        other = path_of(built(name, two_way(), **options, **more))
        np.testing.assert_allclose(other.states.own, plain.states.own, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(other.states.published, plain.states.published, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(other.sent[0], plain.sent[0], rtol=1e-14, atol=1e-14)


def test_a_split_like_the_squared_amplitudes_makes_the_papers_weights_balanced() -> None:
    for seed in range(20):
        network = asymmetric_network(seed)
        balanced = balanced_mixing(network)
        shape = balanced.amplitude**2 / network.power
        rows = mixing(network, 0.9 * shape / shape.max(), balanced.normaliser)
        np.testing.assert_allclose(rows.weights.toarray(), balanced.weights.toarray(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("weights", ["sinkhorn", "row"])
def test_pairs_cancel_in_the_mean_that_the_network_learns(weights: str) -> None:
    """All noise together is the nodes' own, weighed by pi on rows."""
    for name in ("decor", "decor-exact-diffusion"):
        algorithm = built(name, two_way(), weights=weights)
        fresh = random_draws(two_way().gains, EPOCHS, DIM)
        (drawn,), sending = draws_of(algorithm, fresh), algorithm.rounds[0].sending
        per_node = np.asarray(sending.step) if name != "decor" else np.asarray(sending.schedule)[:, None]
        own = per_node[..., None] * sending.own[0][:, None] * drawn["own"]
        shared = per_node[..., None] * sending.shared[0][:, None] * drawn["shared"].sum(axis=2)
        pi = perron(mixing(two_way(), np.ones(NODES), 4).weights) if weights == "row" else np.full(NODES, 1 / NODES)
        total, alone = (np.einsum("i,tid->td", pi, noise) for noise in (own + shared, own))
        assert np.abs(shared).max() > np.abs(own).max()
        np.testing.assert_allclose(total, alone, rtol=0, atol=1e-13 * np.abs(shared).max())


def test_locally_balanced_perturbations_leave_the_weighed_mean_alone() -> None:
    algorithm = built("locally-balanced", two_way(), noise_to_step=30.0)
    points, pi = own_points(path_of(algorithm)), pi_of(algorithm)
    other = own_points(path_of(algorithm, seed=1))
    assert np.abs(points[1] - other[1]).max() > 0.1  # points differ, by noise alone
    steps = algorithm.setup.schedule.steps[:, None]
    pushed = np.stack([gradients(PROBLEM, point).sum(axis=0) for point in points[:-1]])
    mean = np.einsum("i,tid->td", pi, points)
    np.testing.assert_allclose(mean[1:], mean[:-1] - steps * pushed, rtol=0, atol=1e-12)


TRACKING: dict[str, tuple[str, dict[str, Any]]] = {
    "push-pull": ("push-pull", {}),
    "ab": ("push-pull", {"form": "ab"}),
    "gradient-tracking": ("gradient-tracking", {}),
    "gradient-tracking, each heard apart": ("gradient-tracking", {"weights": "metropolis", "access": "orthogonal"}),
}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("case", TRACKING)
def test_the_sum_of_trackers_is_the_sum_of_gradients(case: str, private: bool) -> None:
    """In every epoch; private ones hold their newest gradient without its noise, and nothing accumulates."""
    name, options = TRACKING[case]
    network = one_way() if name == "push-pull" else two_way()
    path = path_of(built(f"private-{name}" if private else name, network, **options))
    wanted = np.stack([gradients(PROBLEM, point).sum(axis=0) for point in path.states.own])
    np.testing.assert_allclose(path.states.tracker.sum(axis=1), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("private", [False, True])
def test_frosts_trackers_hold_every_gradient_over_z(private: bool) -> None:
    """sum_i pi_i s_i,t+1 = sum_i pi_i g_i(x_i)/z_ii,t+1: what was divided by the old z is taken back with it."""
    algorithm = built("private-frost" if private else "frost", one_way(), step_factor=0.1)
    path, pi = path_of(algorithm), pi_of(algorithm)
    z = np.asarray(algorithm.rounds[1].receiving.next_z)
    for epoch, (own, tracker) in enumerate(zip(path.states.own, path.states.tracker, strict=True)):
        wanted = (pi / z[min(epoch, len(z) - 1)]) @ gradients(PROBLEM, own)
        np.testing.assert_allclose(pi @ tracker, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", ["sinkhorn", "row", "metropolis"])
def test_exact_diffusions_mean_moves_by_gradient_descent(weights: str) -> None:
    """The weighed mean of x moves by the mean gradient of all nodes, each at its own point, whatever the weights."""
    access = "orthogonal" if weights == "metropolis" else "air"
    algorithm = built("exact-diffusion", two_way(), weights=weights, access=access)
    start = np.broadcast_to(START[0], START.shape)  # psi_0 is the start: all begin at one public point
    points = own_points(follow(algorithm, no_draws, start, work()), start)
    pi = pi_of(algorithm) if weights == "row" else np.full(NODES, 1 / NODES)
    mean = np.einsum("i,tid->td", pi, points)
    pulled = np.stack([gradients(PROBLEM, point).mean(axis=0) for point in points[:-1]])
    np.testing.assert_allclose(mean[1:], mean[:-1] - 0.05 * pulled, rtol=0, atol=1e-13)


def test_nothing_is_drawn_where_no_noise_is_promised() -> None:
    silent = (
        "dsgd",
        "frost",
        "push-pull",
        "gradient-tracking",
        "exact-diffusion",
        "subgradient-push",
        "row-stochastic",
    )
    for name in silent:
        draws_of(built(name, two_way()), no_draws)
    with pytest.raises(AssertionError, match="noise is drawn"):
        draws_of(built("dp-dsgd", two_way()), no_draws)
    with pytest.raises(AssertionError, match="is drawn"):
        no_draws("noise", Draw())
