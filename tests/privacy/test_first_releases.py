"""How far data can move what is released before training: never further than is said, and as far by hostile rows."""

import numpy as np
import pytest

from murmurcast.privacy.first_releases import sensitivity

SIZES = np.array([5.0, 8.0])


def moments(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows.T @ rows / len(rows))


def unit_rows(rng: np.random.Generator, count: int, signed: bool) -> np.ndarray:
    rows = rng.standard_normal((count, 4)) * (rng.random((count, 4)) < 0.6)
    rows = rows if signed else np.abs(rows)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1))


@pytest.mark.parametrize("rows", ["signed", "non-negative"])
@pytest.mark.parametrize("unit", ["record", "node"])
def test_no_data_moves_a_statistic_further(rows: str, unit: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        one = unit_rows(rng, 5, rows == "signed")
        other = unit_rows(rng, 5, rows == "signed")
        if unit == "record":
            other = np.vstack([other[:1], one[1:]])
        for name, statistic in (("centring", lambda part: part.mean(axis=0)), ("whitening", moments)):
            most = sensitivity(name, rows, unit, SIZES)[0]  # type: ignore[arg-type]
            assert np.linalg.norm(statistic(one) - statistic(other)) <= most + 1e-12


@pytest.mark.parametrize(
    ("name", "rows", "other"), [("centring", "signed", 0), ("centring", "non-negative", 1), ("whitening", "signed", 1)]
)
def test_hostile_rows_move_it_as_far(name: str, rows: str, other: int) -> None:
    """The opposite of a row, or one at a right angle to it."""
    one = np.tile(np.eye(4)[0], (5, 1))
    changed = one.copy()
    changed[0] = -np.eye(4)[0] if other == 0 else np.eye(4)[1]
    statistic = moments if name == "whitening" else (lambda part: part.mean(axis=0))
    moved = np.linalg.norm(statistic(one) - statistic(changed))
    assert moved == pytest.approx(sensitivity(name, rows, "record", SIZES)[0])


def test_people_and_nodes() -> None:
    np.testing.assert_allclose(sensitivity("centring", "signed", "record", SIZES, 3), 6 / SIZES)
    np.testing.assert_allclose(sensitivity("whitening", "signed", "record", SIZES), np.sqrt(2) / SIZES)
    np.testing.assert_allclose(sensitivity("centring", "non-negative", "node", SIZES), [np.sqrt(2)] * 2)
