"""A budget's shares for centring and whitening, and what is left for training."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.partition import Partition
from murmurcast.planning.preprocess import require_preprocessed
from murmurcast.privacy.first_releases import sensitivity
from tests.conftest import asymmetric_network

SHARES: dict[str, float] = {"centring": 0.02, "whitening": 0.10}


def shared(nodes: int = 4) -> Partition:
    return mc.datasets.logistic(examples=120, features=5, classes=3, seed=1).partition("quantity", nodes=nodes, seed=2)


def budget(**options: Any) -> mc.Budget:
    return mc.Budget(**{"epsilon": 1.0, "unit": "record", **SHARES, **options})


def planned(of: mc.Budget, data: Partition, **options: Any) -> mc.Plan:
    problem = mc.SoftmaxRegression(data=data, clip=0.5)
    schedule = mc.Schedule(epochs=5, step=0.3, noise_timing="aligned", **options)
    return mc.plan(asymmetric_network(3, 4), problem, of, schedule)


def test_mu_is_shared_out_and_the_whole_is_the_budgets() -> None:
    of, data = budget(), shared()
    whole = float(mc.gaussian.mu(1.0, 1e-5))
    assert of.first_releases == pytest.approx({"centring": whole * 0.02**0.5, "whitening": whole * 0.1**0.5})
    assert of.spent_before == pytest.approx(whole * 0.12**0.5)
    built, plain = planned(of, mc.preprocess(data, of)), planned(budget(centring=0.0, whitening=0.0), data)
    np.testing.assert_allclose(built.certificate.mu, whole, rtol=1e-9)
    np.testing.assert_allclose(built.certificate.epsilon, 1.0, rtol=1e-9)
    # mu_train^2 = 0.88 mu^2, so noise is 1/sqrt(0.88) as large.
    np.testing.assert_allclose(built.noise_to_step, plain.noise_to_step / 0.88**0.5, rtol=1e-9)
    assert (built.mu_until(2) < whole).all()
    assert (built.mu_until(2) > of.spent_before).all()
    np.testing.assert_allclose(built.mu_until(5), whole, rtol=1e-9)


def test_a_given_noise_leaves_less_of_the_split() -> None:
    of, data = budget(epsilon=30.0), shared()
    built = planned(of, mc.preprocess(data, of), noise_to_step=0.1)
    np.testing.assert_allclose(built.certificate.epsilon.max(), 30.0, rtol=1e-6)
    plain = planned(budget(epsilon=30.0, centring=0.0, whitening=0.0), data, noise_to_step=0.1)
    assert (built.alpha <= plain.alpha).all()
    assert built.alpha.sum() < plain.alpha.sum()


def test_the_epsilon_that_would_work_works() -> None:
    """Shares grow with the budget."""
    data = shared()

    def tried(epsilon: float) -> mc.Plan:
        of = budget(epsilon=epsilon, centring=0.3)
        return planned(of, mc.preprocess(data, of), noise_to_step=0.05)

    with pytest.raises(mc.Infeasible) as raised:
        tried(1.0)
    needed = raised.value.smallest_epsilon
    assert tried(needed).certificate.epsilon.max() <= needed * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"unit": "node"}, {"records_per_person": 3}, {"whitening": 0.0}])
def test_noise_follows_from_what_data_can_move(options: dict[str, Any]) -> None:
    of, data = budget(**options), shared()
    first = mc.preprocess(data, of, rows="non-negative", seed=3).first
    assert first is not None
    assert (first.rows, first.seed) == ("non-negative", 3)
    assert list(first.noise) == list(of.first_releases)
    for name, mu in of.first_releases.items():
        moved = sensitivity(name, "non-negative", of.unit, data.sizes.astype(float), of.records_per_person)
        np.testing.assert_allclose(moved / first.noise[name], mu)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"centring": 0.5, "whitening": 0.5}, "nothing is left"),
        ({"centring": -0.1}, "centring"),
        ({"noise_source": "secure"}, "no secure noise"),
        ({"target": "per-epoch"}, "per epoch"),
    ],
)
def test_shares_that_make_no_sense_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(mc.Error, match=match):
        budget(**options)


def test_a_plan_without_data_knows_its_shares() -> None:
    facts = mc.ClippedGradients(clip=0.5, examples_per_node=30)
    built = mc.plan(asymmetric_network(3, 4), facts, budget(), mc.Schedule(epochs=5))
    np.testing.assert_allclose(built.certificate.epsilon, 1.0, rtol=1e-9)


def test_data_and_budget_belong_together() -> None:
    of, data = budget(), shared()
    require_preprocessed(mc.preprocess(data, of), of)
    require_preprocessed(data, budget(centring=0.0, whitening=0.0))
    for kept, counted, match in (
        (data, of, "released nothing before training, and the budget counts centring and whitening"),
        (mc.preprocess(data, of), budget(whitening=0.0), "released centring and whitening"),
        (mc.preprocess(data, of), budget(centring=0.0, whitening=0.0), "counts nothing"),
        (mc.preprocess(data, of), budget(epsilon=2.0), "another budget"),
        (mc.preprocess(data, of), budget(records_per_person=2), "another budget"),
    ):
        with pytest.raises(mc.Error, match=match) as raised:
            require_preprocessed(kept, counted)
        assert "mc.preprocess" in raised.value.hint
    with pytest.raises(mc.Error, match="sets nothing aside"):
        mc.preprocess(data, budget(centring=0.0, whitening=0.0))


def test_a_run_on_other_data_than_the_budget_counts_is_refused() -> None:
    of, data = budget(), shared()
    problem = mc.SoftmaxRegression(data=data, clip=0.5)
    algorithm = mc.power_controlled(planned(of, mc.preprocess(data, of)))
    with pytest.raises(mc.Error, match="released nothing before training"):
        mc.run(algorithm, problem)


def test_methods_without_gaussian_noise_are_refused() -> None:
    built = planned(budget(), mc.preprocess(shared(), budget()))
    for method in (mc.row_stochastic_laplace, mc.local_only):
        with pytest.raises(mc.Error, match="released under Gaussian noise"):
            method(built)
