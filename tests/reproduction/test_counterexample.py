"""The Corollary is refuted by counting, the certificate is not, and the verdict follows the numbers."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.bounds import Measured, epsilon_lower_bound
from murmurcast.audits.transcript import transcripts
from murmurcast.privacy import gaussian
from murmurcast.privacy.paper import PaperClaim
from murmurcast.privacy.rounding import at_least
from murmurcast.reports.plots import save
from murmurcast.reproduction import counterexample
from murmurcast.reproduction.counterexample import LOUD, RELAY, TARGET, Counterexample, refutes
from murmurcast.reproduction.counterexample_plot import counterexample_figure
from tests.audits import faults


@cache
def result() -> Counterexample:
    return counterexample.run_counterexample()


def test_plan_keeps_the_papers_limits_and_the_claim_is_small() -> None:
    plan = result().plan
    assert plan.budget.target == "per-epoch"
    assert plan.epsilon_per_epoch.max() <= plan.budget.epsilon * (1 + 1e-9)
    assert result().claim == plan.paper_claim
    assert result().claim.epsilon <= 1
    assert result().claim.delta <= 1e-3
    gains = plan.network.gains.toarray()
    assert (gains != gains.T).any()
    assert gains[TARGET, LOUD] == gains[LOUD, TARGET] == 0


def test_attack_refutes_the_claim_by_far() -> None:
    attack, shown = result().attack, result().attack.measured
    assert attack.observers == (LOUD,)
    assert shown.trials == len(attack.absent) // 2 == 4000
    assert shown.confidence == 0.95
    assert shown.delta == result().claim.delta
    counted = (attack.absent[shown.trials :], attack.present[shown.trials :])
    assert [int((world > shown.threshold).sum()) for world in counted] == [shown.false_positives, shown.true_positives]
    again = epsilon_lower_bound(shown.false_positives, shown.true_positives, shown.trials, shown.delta, 0.95)
    assert shown.epsilon == again
    assert shown.epsilon >= 3 > 1 >= result().claim.epsilon
    assert result().refuted


def test_order_of_shown_linear_and_certified() -> None:
    """On real ridge gradients, which react, the statistic still follows the linear diagnostic nearly."""
    attack = result().attack
    assert attack.measured.epsilon <= attack.linear_epsilon <= attack.certified_epsilon
    assert attack.mu == result().plan.linear_common((LOUD,))[TARGET]
    assert attack.certified_epsilon == gaussian.epsilon(result().plan.certificate.mu[TARGET], result().claim.delta)
    for world, sign in ((attack.absent, -1), (attack.present, 1)):
        assert world.mean() == pytest.approx(sign * attack.mu**2 / 2, rel=0.05)
        assert world.std() == pytest.approx(attack.mu, rel=0.05)


def test_worlds_differ_by_exactly_the_sensitivity() -> None:
    plan = result().plan
    assert (
        plan.sensitivity[TARGET]
        == 2 * plan.problem.gradient_clip.limit / np.asarray(plan.problem.examples_per_node)[TARGET]
    )
    np.testing.assert_allclose(result().change, 1, atol=1e-12)
    assert result().margin > 0
    present, absent, between = (counterexample.problem(world) for world in ("present", "absent", "half way"))
    differs = present.data.dataset.targets != absent.data.dataset.targets
    assert differs.sum() == 1
    assert differs[present.data.rows[TARGET]].sum() == 1
    np.testing.assert_array_equal(present.data.dataset.features, absent.data.dataset.features)
    np.testing.assert_array_equal(between.data.dataset.features[1:], present.data.dataset.features[1:])
    np.testing.assert_array_equal(between.data.dataset.targets[1:], present.data.dataset.targets[1:])


def test_controls_hold() -> None:
    neighbour, certified = result().neighbour, result().certified
    assert neighbour.observers == (RELAY,)
    assert neighbour.measured.epsilon <= neighbour.linear_epsilon + 1e-9 < result().claim.epsilon
    assert certified.certified_epsilon == pytest.approx(result().claim.epsilon, rel=1e-6)
    assert certified.mu == pytest.approx(certified.plan.certificate.mu[TARGET], rel=1e-9)  # everybody else reaches it
    assert 0 <= certified.measured.epsilon <= certified.certified_epsilon
    # The control is not blind: its statistic tells the worlds apart as far as the certificate lets it.
    error = certified.mu / np.sqrt(len(certified.absent))
    assert abs(certified.present.mean() - certified.mu**2 / 2) < 4.5 * error
    assert abs(certified.absent.mean() + certified.mu**2 / 2) < 4.5 * error


def test_attack_shows_more_where_the_target_drops_its_noise() -> None:
    plan = result().certified.plan
    algorithm = power_controlled(plan)
    mutated = faults.noise_at(algorithm, np.arange(plan.network.nodes) != TARGET)
    trials = range(len(result().certified.absent))
    kept = counterexample.Kept(
        *(transcripts(mutated, counterexample.problem(world), trials, "float64") for world in ("absent", "present"))
    )
    attack = counterexample.attacked(plan, kept, (RELAY, LOUD), result().claim.delta)
    assert attack.measured.epsilon > attack.certified_epsilon  # the broken promise is noticed


@pytest.mark.parametrize(
    ("epsilon", "delta", "verdict"), [(3.0, 1e-4, False), (2.0, 1e-4, False), (1.9, 1e-4, True), (1.9, 1e-2, False)]
)
def test_verdict_flips_with_the_claim(epsilon: float, delta: float, verdict: bool) -> None:
    shown = Measured(0.0, 1, 100, 1000, epsilon=2.0, delta=1e-4, confidence=0.95)
    assert refutes(shown, PaperClaim(epsilon, delta)) is verdict


def test_sentences_follow_the_numbers() -> None:
    truly = counterexample.findings(result())
    assert [holding for holding, _ in truly] == [False, True, None, None, True, True]
    assert at_least(result().attack.measured.epsilon, 3) in truly[0][1]
    large = result()._replace(claim=PaperClaim(50.0, result().claim.delta))
    assert counterexample.findings(large)[0][0] is True
    assert "50" in counterexample.findings(large)[0][1]
    other = result()._replace(change=(0.5, 1.0))
    assert counterexample.findings(other)[1][0] is False
    assert "exactly" in truly[1][1]
    assert "0.500000 to 1.000000" in counterexample.findings(other)[1][1]
    caught = result().certified.measured._replace(epsilon=5.0)
    broken = result()._replace(certified=result().certified._replace(measured=caught))
    assert counterexample.findings(broken)[-1][0] is False
    assert "exceeds" in counterexample.findings(broken)[-1][1]
    for _, text in truly:
        assert not ("certif" in text and "linear" in text)


def test_tables_and_curves() -> None:
    (table,) = counterexample.tables(result())
    assert all(len(row) == len(table.headings) for row in table.rows)
    assert [row[0] for row in table.rows] == ["node 2", "node 1", "nodes 1 and 2"]
    for headings, columns in counterexample.curves(result()).values():
        assert columns.shape[1] == len(headings)
        assert np.isfinite(columns).all()
    _, histogram = counterexample.curves(result())["counterexample-histogram"]
    width = histogram[1, 0] - histogram[0, 0]
    np.testing.assert_allclose(histogram[:, 1:3].sum(axis=0) * width <= 1 + 1e-9, True)
    headings, roc = counterexample.curves(result())["counterexample-roc"]
    wrong, right, linear, claimed = roc.T
    assert headings == ("wrong", "right", "linear", "claimed")
    assert all(later >= earlier for column in roc.T for earlier, later in pairwise(column))
    assert (right - claimed).max() > 0.5
    assert np.abs(right - linear)[wrong > 0.01].max() < 0.05
    assert claimed[-1] == 1
    np.testing.assert_allclose(norm.ppf(linear[5]) - norm.ppf(wrong[5]), result().attack.mu)


@pytest.mark.slow
def test_same_every_time() -> None:
    plan, world = result().plan, counterexample.problem("absent")
    seeds = range(len(result().attack.absent))
    kept = transcripts(power_controlled(plan), world, seeds, "float64")
    again = counterexample.attacked(plan, counterexample.Kept(kept, kept), (LOUD,), result().claim.delta)
    np.testing.assert_array_equal(again.absent, result().attack.absent)


def test_figure_is_drawn(tmp_path: Path) -> None:
    save(counterexample_figure(result()), tmp_path / "counterexample.pdf")
    assert (tmp_path / "counterexample.pdf").stat().st_size > 5000
