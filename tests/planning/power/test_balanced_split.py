"""The split that makes the paper's own weights doubly stochastic, at the largest level that a budget allows."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Infeasible
from murmurcast.network.balanced import balanced_mixing
from tests.conftest import asymmetric_network

CLIP = mc.ClippedGradients(clip=0.8)


def planned(
    network: mc.Network, *, noise: Any = None, target: Any = "certificate", epsilon: float = 3.0, **rule: Any
) -> mc.Plan:
    return mc.plan(
        network,
        CLIP,
        mc.Budget(epsilon=epsilon, target=target),
        mc.Schedule(epochs=8, step=0.1, noise_timing="aligned", noise_to_step=noise),
        power=mc.PowerRule(objective="balanced", **rule),
    )


CASES: dict[str, dict[str, Any]] = {
    "noise found": {},
    "noise given": {"noise": 400.0},
    "per epoch": {"noise": 30.0, "target": "per-epoch"},
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", CASES)
def test_rows_and_columns_sum_to_one_and_the_budget_holds(case: str, seed: int) -> None:
    network = asymmetric_network(seed, 5)
    plan = planned(network, minimum=1e-4, **CASES[case])
    weights = plan.mixing.weights.toarray()
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(plan.perron, 1 / network.nodes, rtol=1e-9)
    arriving = plan.alpha * network.power / balanced_mixing(network).amplitude ** 2
    np.testing.assert_allclose(arriving, arriving[0], rtol=1e-9)
    assert (plan.alpha >= 1e-4 * (1 - 1e-9)).all()
    assert (plan.alpha <= plan.rule.maximum * (1 + 1e-9)).all()
    if case == "per epoch":
        assert plan.epsilon_per_epoch.max() <= 3.0 * (1 + 1e-9)
    else:
        assert plan.certificate.epsilon.max() <= 3.0 * (1 + 1e-9)


def test_it_is_the_largest_level() -> None:
    """Somebody pays the whole budget, or has the largest share that is allowed."""
    network = asymmetric_network(2, 5)
    plan = planned(network, noise=400.0, minimum=1e-4)
    at_the_top = plan.alpha.max() > plan.rule.maximum * (1 - 1e-6)
    assert at_the_top or plan.certificate.epsilon.max() == pytest.approx(3.0, rel=1e-6)


def test_with_noise_that_is_found_the_mean_alpha_is_the_one_asked_for() -> None:
    plan = planned(asymmetric_network(1, 5), alpha=0.3)
    assert plan.alpha.mean() == pytest.approx(0.3)
    np.testing.assert_allclose(plan.certificate.epsilon, 3.0, rtol=1e-6)


def test_too_little_noise_names_an_epsilon_that_works() -> None:
    network = asymmetric_network(3, 5)
    with pytest.raises(Infeasible, match="no balanced power split") as raised:
        planned(network, noise=0.5)
    smallest = raised.value.smallest_epsilon
    assert smallest is not None
    assert "smallest feasible epsilon" in raised.value.hint
    assert planned(network, noise=0.5, epsilon=smallest).alpha.min() >= 0.01 * (1 - 1e-9)
    with pytest.raises(Infeasible):
        planned(network, noise=0.5, epsilon=smallest * 0.99)


def test_shares_that_would_lie_too_far_apart_are_refused() -> None:
    with pytest.raises(mc.Error, match=r"lie .* apart") as raised:
        planned(asymmetric_network(0, 5), minimum=0.5, maximum=0.51)
    assert 'objective = "sum"' in raised.value.hint


def test_a_quiet_start_costs_the_same() -> None:
    """The first message is free of data: its noise is in no term of the certificate."""
    network, budget = asymmetric_network(4, 5), mc.Budget(epsilon=3.0)
    loud, quiet = (
        mc.plan(network, CLIP, budget, mc.Schedule(epochs=8, step=0.1, noise_timing=timing))
        for timing in ("aligned", "quiet-start")
    )
    assert quiet.schedule.noise_schedule[0] == 0
    np.testing.assert_allclose(quiet.noise_to_step, loud.noise_to_step, rtol=1e-12)
    np.testing.assert_allclose(quiet.certificate.mu, loud.certificate.mu, rtol=1e-12)


FLOOR = 0.05
LITTLE: dict[str, dict[str, Any]] = {
    "noise given": {"noise": 5.0, "minimum": FLOOR},
    "per epoch": {"noise": 0.5, "target": "per-epoch", "minimum": FLOOR},
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", LITTLE)
def test_the_smallest_epsilon_is_the_smallest(case: str, seed: int) -> None:
    """With it the split stands at its floor, and a hair less is refused again."""
    network = asymmetric_network(seed, 5)
    with pytest.raises(Infeasible, match="no balanced power split") as raised:
        planned(network, epsilon=0.01, **LITTLE[case])
    smallest = raised.value.smallest_epsilon
    if not np.isfinite(smallest):
        assert "no epsilon is feasible" in raised.value.hint
        return
    plan = planned(network, epsilon=smallest, **LITTLE[case])
    assert plan.alpha.min() == pytest.approx(FLOOR, rel=1e-6)
    with pytest.raises(Infeasible):
        planned(network, epsilon=smallest * 0.999, **LITTLE[case])


@pytest.mark.parametrize("case", CASES)
def test_more_epsilon_never_gives_less(case: str) -> None:
    network = asymmetric_network(1, 5)
    plans = [planned(network, epsilon=epsilon, minimum=1e-4, **CASES[case]) for epsilon in (2.0, 3.0, 4.0)]
    if case == "noise found":
        noise = [plan.noise_to_step for plan in plans]
        assert (noise[0] > noise[1]).all()
        assert (noise[1] > noise[2]).all()
        return
    shapes = [plan.alpha / plan.alpha.max() for plan in plans]
    np.testing.assert_allclose(shapes[0], shapes[2], rtol=1e-12)  # the level moves, never the shape
    levels = [plan.alpha.max() for plan in plans]
    assert levels == sorted(levels)


@pytest.mark.parametrize("case", CASES)
def test_relabelling_nodes_permutes_the_split(case: str) -> None:
    network, order = asymmetric_network(2, 5), np.array([4, 2, 0, 1, 3])
    other = mc.Network(gains=network.gains.toarray()[np.ix_(order, order)], power=network.power[order])
    one, there = (planned(which, minimum=1e-4, **CASES[case]) for which in (network, other))
    np.testing.assert_allclose(there.alpha, one.alpha[order], rtol=1e-9)
    np.testing.assert_allclose(there.noise_to_step, one.noise_to_step[order], rtol=1e-9)


def test_noise_that_is_found_keeps_shares_within_their_bounds() -> None:
    """A mean that would push somebody over the top, or below the floor, is not reached."""
    network = asymmetric_network(1, 5)
    top, bottom = planned(network, alpha=0.9, maximum=0.9), planned(network, alpha=0.011, minimum=0.011)
    assert top.alpha.max() == pytest.approx(0.9)
    assert top.alpha.mean() < 0.9
    assert bottom.alpha.min() == pytest.approx(0.011)
    assert bottom.alpha.mean() > 0.011


@pytest.mark.parametrize("objective", ["sum", "balanced"])
def test_a_plan_knows_whether_exact_diffusion_is_stable_on_its_weights(objective: Any) -> None:
    """The largest factor of disagreement but the two of consensus, written out."""
    for seed in range(5):
        network = asymmetric_network(seed, 5)
        plan = mc.plan(
            *(network, CLIP, mc.Budget(epsilon=3.0), mc.Schedule(epochs=4)), power=mc.PowerRule(objective=objective)
        )
        half = (np.eye(5) + plan.mixing.weights.toarray()) / 2
        factors = np.linalg.eigvals(np.block([[2 * half, -half], [np.eye(5), np.zeros((5, 5))]]))
        assert plan.exact_diffusion_radius == pytest.approx(np.sort(np.abs(factors))[-3], abs=1e-6)
        assert mc.power_controlled_diffusion(plan).is_as_proved == (plan.exact_diffusion_radius < 1)
