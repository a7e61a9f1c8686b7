"""Private memories: how far one unit's data can have moved them, and what that releases."""

import numpy as np
import pytest

from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.plain_own_term import memory, memory_releases, sent_next

PUSH = np.array([0.0, 0.5, 0.4, 0.3])
OWN, S = np.array([0.0, 0.25, 0.6]), np.array([0.1, 0.2, 0.05])


def test_the_recursion_written_out() -> None:
    seen = 0.7 * OWN
    result = memory(OWN, PUSH, S, 2.0, seen)
    for node in range(3):
        d, rows = 0.0, []
        for step in PUSH:
            d = OWN[node] * d + step * min(2.0, S[node] + seen[node] * d)
            rows.append(d)
        np.testing.assert_allclose(result[:, node], rows, rtol=1e-15)


def test_a_node_that_forgets_at_once_pays_for_its_newest_gradient_alone() -> None:
    np.testing.assert_allclose(memory(np.zeros(3), PUSH, S, 2.0, np.zeros(3)), PUSH[:, None] * S)


def test_a_node_that_forgets_nothing_adds_all_up() -> None:
    np.testing.assert_allclose(memory(np.ones(3), PUSH, S, 2.0, np.zeros(3)), np.cumsum(PUSH)[:, None] * S)


def test_without_a_smoothness_only_the_first_gradient_is_bounded_by_the_unit() -> None:
    result = memory(OWN, PUSH, S, 2.0, np.full(3, np.inf))
    np.testing.assert_allclose(result[1], 0.5 * S)
    np.testing.assert_allclose(result[2], OWN * result[1] + 0.4 * 2.0)


@pytest.mark.parametrize("bigger", ["own", "seen", "sensitivity", "most"])
def test_it_grows_with_everything(bigger: str) -> None:
    def at(**more: float) -> np.ndarray:
        factor = {"own": 1.0, "seen": 1.0, "sensitivity": 1.0, "most": 1.0} | more
        return np.asarray(
            memory(OWN * factor["own"], PUSH, S * factor["sensitivity"], 0.15 * factor["most"], OWN * factor["seen"])
        )

    assert (at(**{bigger: 1.3}) >= at() - 1e-15).all()
    assert (at(**{bigger: 1.3}) > at() + 1e-6).any()


def test_links_add_up_in_squares_and_no_noise_is_no_promise() -> None:
    moved, std = memory(OWN, PUSH, S, 2.0, 0.7 * OWN), np.full((4, 3), 0.5)
    one, two = (mu_of(memory_releases(moved, np.full(3, hidden), std)) for hidden in (1.0, 2.0))
    np.testing.assert_allclose(two, np.sqrt(2) * one)
    np.testing.assert_allclose(one, np.sqrt((moved**2).sum(axis=0)) / 0.5)
    assert np.isinf(mu_of(memory_releases(moved, np.full(3, np.inf), std))).all()
    assert np.isinf(mu_of(memory_releases(moved, np.ones(3), 0 * std))).all()
    assert np.isfinite(mu_of(memory_releases(moved, np.ones(3), np.where(np.arange(4)[:, None] == 0, 0, std)))).all()


def test_a_gradient_that_is_sent_in_the_next_epoch() -> None:
    np.testing.assert_array_equal(sent_next(np.array([3.0, 2.0, 1.0])), [0.0, 3.0, 2.0])
