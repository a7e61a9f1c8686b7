"""A clip that the run's precision cannot keep is refused before anything is sent."""

from dataclasses import replace

import numpy as np
import pytest

import murmurcast as mc
from tests.conftest import asymmetric_network


def planned(clip: float, features: float = 1.0) -> tuple[mc.Algorithm, mc.SoftmaxRegression]:
    network = asymmetric_network(4, 3)
    digits = mc.datasets.digits()
    scaled = replace(digits, features=(digits.features * features).astype(np.float32))
    problem = mc.SoftmaxRegression(data=scaled.partition("iid", nodes=3), clip=clip, clipping="example")
    budget = mc.Budget(epsilon=1.0, unit="record")
    plan = mc.plan(network, problem, budget, mc.Schedule(epochs=2))
    return mc.power_controlled(plan), problem


@pytest.mark.slow
def test_a_clip_below_float32_is_refused_with_the_way_out() -> None:
    with pytest.raises(mc.Error, match="clip is 1e-24, and float32 can clip 650 parameters to") as refused:
        mc.run(*planned(1e-24))
    assert "float64" in refused.value.hint
    assert mc.run(*planned(1e-24), precision="float64").info["precision"] == "float64"


@pytest.mark.slow
def test_the_same_clip_is_refused_where_features_are_large() -> None:
    assert mc.run(*planned(1e-13)).info["privacy"]["epsilon"] is not None
    with pytest.raises(mc.Error, match="clip is 1e-13"):
        mc.run(*planned(1e-13, features=1e4))


def test_an_audit_refuses_it_too() -> None:
    with pytest.raises(mc.Error, match="clip is 1e-24"):
        mc.audit(*planned(1e-24))
