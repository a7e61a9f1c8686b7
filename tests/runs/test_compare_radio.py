"""Runs over a radio beside one without: what reaching a target takes in epochs, uses, seconds and joules."""

import numpy as np
import pytest

import murmurcast as mc
from tests.runs.over_radio import aligned, own_slot, plain


@pytest.mark.slow
def test_time_and_energy_up_to_the_target() -> None:
    run = own_slot()
    used = run.radio
    assert used is not None
    curve = np.asarray(run.metrics["published_loss"].mean(("seed", "node")))
    target = float(curve.max()) + 1
    (row,) = mc.compare(run, metric="published_loss", target=target).rows
    assert row.epochs == 5  # the first that was evaluated
    assert row.channel_uses == 5 * used.slots_per_epoch
    assert row.air_seconds == pytest.approx(float(run.metrics["air_seconds"][0]))
    assert row.joules == pytest.approx(float(run.metrics["joules"][0].mean()))
    assert row.radio == "own-slot, half duplex"


def test_columns_only_where_a_radio_is() -> None:
    result = mc.compare(plain(), metric="published_loss")
    assert not result.has_radio
    assert "s" not in result.headings
    assert "mJ" not in result.headings
    assert (result.rows[0].radio, result.rows[0].air_seconds, result.rows[0].joules) == (None, None, None)


@pytest.mark.slow
def test_a_dash_stands_for_a_run_without_a_radio() -> None:
    result = mc.compare(plain(), own_slot(), aligned(), metric="published_loss", target=1e9)
    at = result.headings.index("uses") + 1
    assert result.headings[at : at + 2] == ("s", "mJ")
    seconds, energy = zip(*(cells[at : at + 2] for cells in result.cells), strict=True)
    assert (seconds[0], energy[0]) == ("-", "-")
    rows = result.rows
    for row, time, joules in zip(rows[1:], seconds[1:], energy[1:], strict=True):
        assert row.air_seconds is not None
        assert row.joules is not None
        assert float(time) == pytest.approx(row.air_seconds, rel=0.01)
        assert float(joules) == pytest.approx(1e3 * row.joules, rel=0.01)
    assert rows[2].air_seconds is not None
    assert rows[2].air_seconds > 0.5  # computing is counted where it was given
    assert " - " in str(result).splitlines()[1]


def test_a_target_that_is_never_reached_takes_no_time() -> None:
    result = mc.compare(plain(), own_slot(), metric="published_loss", target=-1.0)
    at = result.headings.index("uses")
    assert [cells[at : at + 3] for cells in result.cells] == [("", "-", "-"), ("", "", "")]
    assert result.rows[1].air_seconds is None
    assert result.rows[1].joules is None
