"""alpha -> 0, alpha -> 1, z = 0, sigma = 0: errors wherever they come in, never numbers. Denormals too."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.experiments import load as experiment_files
from murmurcast.planning.power.certified import certified_noise
from murmurcast.planning.power.per_epoch_limits import limits
from murmurcast.privacy import certificate, gaussian, linear, paper
from murmurcast.privacy.amplification import spread_and_clean
from murmurcast.privacy.coalitions import collusion
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import caught, entry, make_plan, quadratic, with_ledger
from tests.cli.test_plan import refused, run
from tests.conftest import asymmetric_network
from tests.privacy.test_linear import setting

NO_SPLIT = (0.0, 1.0, -0.1, 1.1, 5e-324, 1e-310, 1e-200, 1e-17, 1 - 1e-16, np.nan, np.inf)
NO_NUMBER = (0.0, -1.0, 5e-324, 1e-310, 1e-200, 1e-120, np.nan, np.inf)
NODES, EPOCHS = 3, 4
WEIGHTS, NOISE, PUSH, _ = setting(1, EPOCHS, NODES)
ONES, EVEN = np.ones(EPOCHS), np.ones(NODES)


@pytest.fixture(scope="module")
def ours() -> Result:
    return mc.run(mc.power_controlled(make_plan(quadratic())), quadratic())


def with_entry(array: Any, value: float) -> Any:
    """The array with one entry changed, in a later epoch where it has epochs."""
    changed = np.array(array, float)
    changed[(*(2,) * (changed.ndim - 1), 1)] = value
    return changed


def require_refusal(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mc.Error) as refusal:
            call()
    assert refusal.value.hint


@pytest.mark.parametrize("alpha", NO_SPLIT)
def test_no_split(alpha: float) -> None:
    network, bad = asymmetric_network(1, NODES), with_entry(EVEN / 2, alpha)
    for call in (
        lambda: mc.PowerRule(alpha=alpha),
        lambda: mc.PowerRule(alpha=(0.5, alpha, 0.5)),
        lambda: mc.PowerRule(minimum=alpha),
        lambda: mc.PowerRule(maximum=alpha),
        lambda: certificate.mu(EVEN, bad, EVEN, EVEN),
        lambda: paper.ratio(network.gains, network.power, bad, EVEN, EVEN, 2.0),
        lambda: certified_noise(EVEN, bad, EVEN, 1.0, 1e-5),
        lambda: limits(network, EVEN, EVEN, 2.0, 1.0, 1e-5, alpha, 0.99),
        lambda: limits(network, EVEN, EVEN, 2.0, 1.0, 1e-5, 0.01, alpha),
    ):
        require_refusal(call)


@pytest.mark.parametrize("z", NO_NUMBER)
def test_no_z(z: float) -> None:
    table = with_entry(np.full((EPOCHS, NODES), 0.4), z)
    for call in (
        lambda: certificate.exposure(ONES, ONES, table),
        lambda: certificate.exposure(ONES, ONES, np.broadcast_to(table[2], (EPOCHS, NODES))),
        lambda: certificate.exposure(ONES, ONES, table, np.array([2, 4, 4])),
        lambda: certificate.mu_of_record_at_own_point(ONES, table, NOISE, 1.0, EVEN * 5, EVEN),
    ):
        require_refusal(call)


@pytest.mark.parametrize("sigma", NO_NUMBER)
def test_no_noise(sigma: float) -> None:
    network, noise = asymmetric_network(1, NODES), with_entry(NOISE, sigma)
    z, per_node = np.full((EPOCHS, NODES), 0.4), with_entry(EVEN, sigma)
    for call in (
        lambda: mc.Schedule(epochs=5, noise_to_step=sigma),
        lambda: mc.Schedule(epochs=5, noise_to_step=(1.0, sigma, 2.0)),
        lambda: mc.Schedule(epochs=5, step=sigma),
        lambda: certificate.exposure(ONES, np.array([1.0, sigma, 1.0, 1.0]), z),
        lambda: certificate.mu(EVEN, EVEN / 2, per_node, EVEN),
        lambda: certificate.mu_of_record_at_own_point(ONES, z, noise, 1.0, EVEN * 5, EVEN),
        lambda: paper.ratio(network.gains, network.power, EVEN / 2, per_node, EVEN, 2.0),
        lambda: linear.common_direction(WEIGHTS, (0,), noise, PUSH),
        lambda: linear.steady_or_turning(WEIGHTS, (0,), noise, PUSH),
        lambda: linear.worst_direction(WEIGHTS, (0,), noise, PUSH),
        lambda: collusion(WEIGHTS, noise, PUSH),
        lambda: spread_and_clean(WEIGHTS, (0,), noise, PUSH, EVEN, 1.0, 0.1),
        lambda: limits(network, per_node, EVEN, 2.0, 1.0, 1e-5, 0.01, 0.99),
    ):
        require_refusal(call)


@pytest.mark.parametrize("moved", NO_NUMBER)
def test_no_sensitivity(moved: float) -> None:
    push, per_node = with_entry(PUSH, moved), with_entry(EVEN, moved)
    for call in (
        lambda: mc.ClippedGradients(clip=moved),
        lambda: certificate.mu(EVEN, EVEN / 2, EVEN, per_node),
        lambda: spread_and_clean(WEIGHTS, (0,), NOISE, push, EVEN, 1.0, 0.1),
    ):
        require_refusal(call)


@pytest.mark.parametrize("moved", [np.nan, np.inf, -np.inf])
def test_no_push(moved: float) -> None:
    """None at all is a number: whoever is not moved shows nothing."""
    push = with_entry(PUSH, moved)
    for call in (
        lambda: linear.common_direction(WEIGHTS, (0,), NOISE, push),
        lambda: linear.worst_direction(WEIGHTS, (0,), NOISE, push),
        lambda: collusion(WEIGHTS, NOISE, push),
    ):
        require_refusal(call)


def test_what_leaves_the_numbers_on_its_way() -> None:
    """Every input is a number, and the answer is none."""
    z = np.full((EPOCHS, NODES), 1e-99)
    for call in (
        lambda: certificate.exposure(np.full(EPOCHS, 1e80), np.full(EPOCHS, 1e-80), z),
        lambda: certificate.mu(np.full(NODES, 1e300), EVEN / 2, EVEN * 1e-99, EVEN * 1e99),
        lambda: certificate.mu(EVEN * np.nan, EVEN / 2, EVEN, EVEN),
        lambda: gaussian.epsilon(1e160, 1e-5),
        lambda: gaussian.delta(1.0, 1e160),
        lambda: gaussian.compose([1.0, 1e200]),
        lambda: gaussian.epsilon(np.nan, 1e-5),
    ):
        with np.errstate(all="ignore"):
            require_refusal(call)
    assert np.isinf(gaussian.epsilon(np.inf, 1e-5))  # where nothing is promised


@pytest.mark.parametrize("quiet", [1e-30, 1e-10, 1e10, 1e30])
@pytest.mark.parametrize("clip", [1e-30, 1.0, 1e30])
def test_plans_at_the_ends_are_numbers_or_errors(quiet: float, clip: float) -> None:
    network, problem = asymmetric_network(1, NODES), mc.ClippedGradients(clip=clip)
    for budget in (mc.Budget(epsilon=1e30, target="per-epoch"), mc.Budget(epsilon=1e-3), mc.Budget(epsilon=1e4)):
        try:
            plan = mc.plan(network, problem, budget, mc.Schedule(epochs=5, noise_to_step=quiet))
            outcome = (plan.certificate.mu, plan.certificate.epsilon, plan.collusion().single_mu, plan.linear((0,)))
        except mc.Error as refusal:
            assert refusal.hint  # noqa: PT017 - either way is fine, an infinity is not
            continue
        for numbers in outcome:
            assert np.isfinite(numbers).all()
        assert (plan.certificate.mu > 0).all()


TEXT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 2.0
"""


@pytest.mark.parametrize(
    "line",
    [
        *(f"[power]\nalpha = {value}" for value in ("0.0", "1.0", "1e-310", "[0.5, 1.0, 0.5]")),
        *(f"[power]\n{end} = {value}" for end in ("min", "max") for value in ("0.0", "1.0", "5e-324")),
        *(f"[schedule]\nnoise_to_step = {value}" for value in ("0.0", "5e-324", "[1.0, 0.0, 1.0]", "nan", "inf")),
        "[schedule]\nstep = 0.0",
    ],
)
def test_experiment_files(line: str) -> None:
    require_refusal(lambda: experiment_files.parse((TEXT + line).encode(), "my").build_plan())


def test_z_of_zero_is_refused_by_the_planner() -> None:
    """R is the largest degree of a complete network: its second z is 0."""
    network = mc.Network(gains=[[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]])
    problem, budget, schedule = mc.ClippedGradients(clip=1.0), mc.Budget(epsilon=2.0), mc.Schedule(epochs=5)
    require_refusal(lambda: mc.plan(network, problem, budget, schedule, normaliser="max-degree"))


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(TEXT)
    for key in ("power.alpha=1.0", "power.max=1.0", "power.min=0.0", "schedule.noise_to_step=0.0"):
        assert key.split("=")[0].split(".")[1][:3] in refused(run("plan", "my.toml", "--set", key, cwd=tmp_path))
    message = refused(run("plan", "my.toml", "--set", "network.normaliser=max-degree", cwd=tmp_path))
    assert "z" in message


TABLES = ("model_sending_amplitude", "model_sending_noise", "model_sending_schedule", "model_receiving_z")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-310, 1e-200])
def test_ledgers(ours: Result, name: str, value: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caught(with_ledger(ours, entry(name, value)(ours.ledger)))
    assert certify(ours).verdict == "kept"
