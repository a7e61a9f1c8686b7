"""Plans for records that join by coins: the budget is met, and what that buys is compute."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.privacy import gaussian
from tests.conftest import asymmetric_network

BATCH = 15


def problem(batch: int | None = BATCH, **options: Any) -> mc.SoftmaxRegression:
    data = mc.datasets.logistic(examples=400, features=5, classes=3, seed=1)
    rule = mc.datasets.QuantitySkew(concentration=4.0, minimum=40)
    return mc.SoftmaxRegression(data=data.partition(rule, nodes=4, seed=2), clip=0.5, batch=batch, **options)


def planned(of: mc.SoftmaxRegression, z: Any = "perron", epochs: int = 30, **options: Any) -> mc.Plan:
    budget = mc.Budget(**{"epsilon": 1.0, "unit": "record", **options})
    schedule = mc.Schedule(epochs=epochs, step=0.3, noise_timing="aligned", decay="constant")
    return mc.plan(asymmetric_network(3, 4), of, budget, schedule, z=z)


@pytest.mark.parametrize("z", ["perron", "recursive"])
@pytest.mark.slow
def test_the_budget_is_met_with_less_noise_than_a_fixed_batch_needs(z: Any) -> None:
    built, fixed = planned(problem(sampling="poisson"), z), planned(problem(), z)
    assert built.certificate.epsilon.max() <= 1.0
    assert built.certificate.epsilon.min() > 0.999
    rates = np.asarray(built.sampling.rates)  # type: ignore[union-attr]
    assert (built.noise_to_step < fixed.noise_to_step * np.sqrt(rates)).all()
    np.testing.assert_allclose(fixed.certificate.mu, gaussian.mu(1.0, 1e-5), rtol=1e-9)
    assert (built.certificate.mu > fixed.certificate.mu).all()  # of the plain bound


def test_what_coins_buy_is_compute() -> None:
    """At the same epsilon and delta the averaged gradient has about the noise of full batches, or more."""
    full, built = planned(problem(batch=None)), planned(problem(sampling="poisson"))
    noise = built.noise_over_full_batches
    assert noise is not None
    np.testing.assert_allclose(noise, built.noise_to_step / full.noise_to_step, rtol=1e-3)
    assert (noise > 0.97).all()
    assert (noise < 1.3).all()
    assert full.noise_over_full_batches is None


def test_a_batch_of_everything_costs_what_full_batches_do() -> None:
    data = mc.datasets.logistic(examples=120, features=5, classes=3, seed=1).split(0.2).partition("iid", nodes=4)
    sizes = data.sizes
    one = mc.SoftmaxRegression(data=data, clip=0.5, batch=int(sizes.min()), sampling="poisson")
    full = mc.SoftmaxRegression(data=data, clip=0.5)
    everybody = sizes == sizes.min()
    np.testing.assert_allclose(planned(one).noise_to_step[everybody], planned(full).noise_to_step[everybody], rtol=2e-3)


def test_a_run_joins_as_it_was_planned() -> None:
    coins, fixed = problem(sampling="poisson"), problem()
    for planned_for, run_on in ((coins, fixed), (fixed, coins)):
        with pytest.raises(mc.Error, match="by other coins, or by none"):
            mc.run(mc.power_controlled(planned(planned_for, epochs=3)), run_on)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"unit": "node"}, "hides whole nodes"),
        ({"records_per_person": 2}, "hides 2 records together"),
        ({"noise_source": "secure"}, "has secure noise"),
    ],
)
def test_what_coins_are_not_known_to_hide_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(mc.Error, match=match) as raised:
        planned(problem(sampling="poisson"), **options)
    assert "fixed" in raised.value.hint


def test_a_split_for_given_noise_and_a_tier_that_needs_a_whole_gradient_are_refused() -> None:
    of = problem(sampling="poisson")
    schedule = mc.Schedule(epochs=5, noise_to_step=3.0)
    with pytest.raises(mc.Error, match="finds the noise"):
        mc.plan(asymmetric_network(3, 4), of, mc.Budget(epsilon=1.0, unit="record"), schedule)
    with pytest.raises(mc.Error, match="network amplification"):
        planned(of).amplified((0,), 1.0)
    with pytest.raises(mc.Error, match="whole gradient"):
        mc.mped2fl(planned(of))
    with pytest.raises(mc.Error, match="public mixed point"):
        mc.power_controlled(planned(of), gradient_at="own")


def test_a_delta_that_room_would_use_up_is_refused() -> None:
    """There is room for all who join but for a probability that such a delta would notice: noise would be endless."""
    with pytest.raises(mc.Error, match="leaves nothing for steps") as raised:
        planned(problem(sampling="poisson"), delta=1e-17, epochs=3)
    assert "raise delta" in raised.value.hint
