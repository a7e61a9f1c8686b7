"""The reference instances come out, from experiment file to every tier."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmurcast.experiments import load as experiment_files
from murmurcast.planning.plan import Plan
from murmurcast.privacy import gaussian

HERE = Path(__file__).parents[1] / "reference"
INSTANCES: list[dict[str, Any]] = json.loads((HERE / "network_privacy.json").read_text())["instances"]
TOLERANCE = 1e-7


def experiment_text(inputs: dict[str, Any]) -> str:
    """An instance as a user would write it."""
    return f"""
        [network]
        gains = {inputs["h"]}
        power = {inputs["p"]}
        normaliser = {inputs["R"]}
        [privacy]
        epsilon = {inputs["eps_max"]}
        delta = {inputs["delta"]!r}
        target = "per-epoch"
        clip = {inputs["G"]}
        theta = {inputs["theta"]}
        [schedule]
        epochs = {inputs["T"]}
        step = {inputs["gamma0"]}
        noise_to_step = {inputs["sigma0"]}
        [power]
        min = {inputs["lo"]}
        max = {inputs["hi"]}
    """


@pytest.fixture(params=INSTANCES, ids=lambda instance: f"instance-{instance['id']}")
def instance(request: pytest.FixtureRequest) -> tuple[Plan, dict[str, Any]]:
    text = experiment_text(request.param["inputs"])
    return experiment_files.parse(text.encode(), "instance").build_plan(), request.param["expected"]


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=TOLERANCE, atol=0)


def test_power_split_and_weights(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    close(plan.alpha, expected["alpha"])
    close(plan.objective_value, expected["lp_objective"])
    close(plan.mixing.compensation, expected["c"])
    close(plan.mixing.weights.toarray(), expected["A"])


def test_paper_view(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    close(plan.epsilon_per_epoch.toarray(), expected["eps_paper"])


def test_certificate(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    close(plan.certificate.mu, expected["mu_local"])
    close(plan.certificate.epsilon.max(), expected["eps_of_mu"])


def test_delta_of_epsilon(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    close(gaussian.delta(plan.budget.epsilon, plan.certificate.mu.max()), expected["delta_of_eps"])


def test_linear_diagnostic_of_single_receivers(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    for observer in range(plan.network.nodes):
        result = plan.linear((observer,))
        close(result.mu_common, expected["mu_same"][observer])
        bracket = np.array(expected["mu_worst"][observer])
        close(result.mu_worst_lower, bracket[:, 0])
        close(result.mu_worst_upper, bracket[:, 1])


def test_linear_diagnostic_of_pairs(instance: tuple[Plan, dict[str, Any]]) -> None:
    plan, expected = instance
    for pair, costs in expected["mu_pair"].items():
        result = plan.linear_common(tuple(int(member) for member in pair.split(",")))
        for target, cost in costs.items():
            close(result[int(target)], cost)
