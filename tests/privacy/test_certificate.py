"""The certificate at the ends of its range, and at the node's own point."""

from itertools import pairwise

import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.planning.schedule import Schedule
from murmurcast.privacy import certificate

EPOCHS, NODES = 12, 3
ALPHA, NOISE = np.array([0.2, 0.5, 0.9]), np.array([3.0, 5.0, 8.0])
EXAMPLES = np.array([10.0, 50.0, 400.0])
SCHEDULE = Schedule(epochs=EPOCHS, step=0.7)
Z = np.random.default_rng(0).uniform(0.2, 0.9, (EPOCHS, NODES))
EFFECTIVE = np.sqrt((1 - ALPHA) / ALPHA) * NOISE * SCHEDULE.noise_schedule[:, None]


def mu(sensitivity: FloatArray) -> FloatArray:
    return certificate.mu(certificate.exposure(SCHEDULE.steps, SCHEDULE.noise_schedule, Z), ALPHA, NOISE, sensitivity)


def own_point(lipschitz: float) -> FloatArray:
    constant = np.full(NODES, lipschitz)
    return certificate.mu_of_record_at_own_point(SCHEDULE.steps, Z, EFFECTIVE, 1.5, EXAMPLES, constant)


def test_own_point_without_drift_is_the_mixed_point() -> None:
    np.testing.assert_allclose(own_point(0.0), mu(2 * 1.5 / EXAMPLES), rtol=1e-12)


def test_own_point_with_any_drift_is_at_most_node_level() -> None:
    node = mu(np.full(NODES, 2 * 1.5))
    assert (own_point(1e9) < node).all()  # the first gradient still differs by one record only
    assert (own_point(1e9) > 0.8 * node).all()
    costs = [own_point(lipschitz) for lipschitz in (0.0, 0.1, 1.0, 10.0)]
    assert all((low < high).all() for low, high in pairwise(costs))


def test_own_point_by_hand() -> None:
    steps, z = np.array([1.0, 0.5, 0.25]), np.full((3, 1), 0.5)
    noise = np.array([[1.0], [2.0], [4.0]])
    result = certificate.mu_of_record_at_own_point(steps, z, noise, 1.0, np.array([10.0]), np.array([0.3]))
    first = 2.0 * (2 / 10)
    second = 1.0 * (2 / 10 + 0.3 * first)
    assert result[0] == pytest.approx(np.hypot(first / 2, second / 4))


def test_one_repeated_row_of_z_is_the_same_as_all_rows() -> None:
    row = np.array([0.2, 0.3, 0.5])
    view, full = np.broadcast_to(row, (EPOCHS, NODES)), np.tile(row, (EPOCHS, 1))
    first, second = (certificate.exposure(SCHEDULE.steps, SCHEDULE.noise_schedule, z) for z in (view, full))
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_ends_of_alpha_are_errors(alpha: float) -> None:
    with pytest.raises(Error, match="alpha is"):
        certificate.mu(np.ones(1), np.asarray(alpha), np.ones(1), np.ones(1))


def test_no_noise_and_no_z_are_errors() -> None:
    with pytest.raises(Error, match="noise_to_step"):
        certificate.mu(np.ones(1), np.full(1, 0.5), np.zeros(1), np.ones(1))
    with pytest.raises(Error, match="z"):
        certificate.exposure(SCHEDULE.steps, SCHEDULE.noise_schedule, np.zeros((EPOCHS, NODES)))
