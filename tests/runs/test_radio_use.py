"""Seconds and joules of runs over a radio: by hand, in files, and refused where they were edited."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import murmurcast as mc
from murmurcast.errors import Altered
from murmurcast.radio.flooding import flood_cost
from murmurcast.runs.labelled import from_xarray
from murmurcast.runs.result import Outcome
from murmurcast.runs.validate import Unsound, require_radio
from tests.runs.over_radio import (
    COMPUTING,
    DIM,
    EPOCHS,
    POWER_DBM,
    aligned,
    joules_of_epoch,
    own_slot,
    plain,
    radio,
    renewed,
    setup,
)


def test_without_a_radio_nothing_is_added() -> None:
    run = plain()
    assert run.radio is None
    assert not {"air_seconds", "joules"} & set(map(str, run.metrics))
    require_radio(run.metrics, run.ledger)


def test_own_slots_by_hand() -> None:
    """Slots of equal length, one for every sender that shares no receiver; every node sends once an epoch."""
    run = own_slot()
    used = run.radio
    assert used is not None
    assert (used.rounds, used.compute_seconds) == (1, 0.0)
    assert used.slots == used.slots_per_epoch == run.info["channel_uses_per_epoch"]
    assert used.air_seconds == pytest.approx(used.slots * 66 / 0.8 / 1e6, rel=1e-12)
    np.testing.assert_allclose(used.joules, joules_of_epoch(), rtol=1e-9)
    assert run.metrics["epoch"].values.tolist() == [5, 10, 12]
    assert run.metrics["air_seconds"].dims == ("epoch",)
    assert run.metrics["joules"].dims == ("epoch", "node")
    np.testing.assert_allclose(run.metrics["air_seconds"], np.array([5, 10, 12]) * used.air_seconds, rtol=1e-12)
    np.testing.assert_allclose(run.metrics["joules"][1], 10 * joules_of_epoch(), rtol=1e-9)
    assert used.energy_in_words == "radiated only"
    assert used.access_in_words == "own-slot, half duplex"


@pytest.mark.slow
def test_rounds_computing_and_circuits_by_hand() -> None:
    """Two rounds of one slot; circuits take power while something is on the air, a gradient its own energy."""
    used = aligned().radio
    assert used is not None
    assert (used.slots, used.rounds, used.slots_per_epoch) == (1, 2, 2)
    air = 2 * 66 / 0.8 / 1e6
    assert used.air_seconds == pytest.approx(air, rel=1e-12)
    assert used.seconds == pytest.approx(air + 0.5, rel=1e-12)
    np.testing.assert_allclose(used.joules, joules_of_epoch(2) + 0.2 * air + 1e-3, rtol=1e-9)
    np.testing.assert_allclose(aligned().metrics["air_seconds"][-1], EPOCHS * (air + 0.5), rtol=1e-12)
    assert used.energy_in_words == "radiated, and circuits and gradients as given"


@pytest.mark.slow
def test_renewing_the_reference_takes_time_and_energy() -> None:
    """After 4, 8 and 12 epochs a reference that is renewed every five was renewed 0, 1 and 2 times."""
    run, cost = renewed(), flood_cost(setup(radio()).network, radio(), DIM)
    used = run.radio
    assert used is not None
    assert (used.renewed_every, used.renewal_seconds) == (5, cost.seconds)
    assert run.ledger.attrs["reference_air_seconds"] == cost.seconds
    np.testing.assert_array_equal(run.ledger["reference_joules"], cost.joules)
    assert run.metrics["epoch"].values.tolist() == [4, 8, 12]
    slots = own_slot().radio
    assert slots is not None
    expected = np.array([4, 8, 12]) * slots.air_seconds + np.array([0, 1, 2]) * cost.seconds
    np.testing.assert_allclose(run.metrics["air_seconds"], expected, rtol=1e-12)
    joules = np.array([4, 8, 12])[:, None] * joules_of_epoch() + np.array([0, 1, 2])[:, None] * cost.joules
    np.testing.assert_allclose(run.metrics["joules"], joules, rtol=1e-9)
    assert float(used.air_seconds_until(12)) == pytest.approx(expected[-1], rel=1e-12)
    assert mc.certify(run).verdict == "kept"
    row = mc.compare(run, metric="own_loss", target=1e9).rows[0]
    assert row.air_seconds == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference_air_seconds": -1.0}, "how long it takes to renew"),
        ({"reference_air_seconds": float("nan")}, "how long it takes to renew"),
        ({"reference_air_seconds": "soon"}, "what its radio was"),
        ({"reference_air_seconds": 0.0}, "air_seconds other than"),
    ],
)
def test_a_ledger_that_hides_what_the_reference_took_is_refused(change: dict[str, Any], words: str) -> None:
    run = renewed()
    with pytest.raises(Unsound, match=words):
        require_radio(run.metrics, run.ledger.assign_attrs(change))
    with pytest.raises(Unsound, match="what its radio was"):
        require_radio(run.metrics, run.ledger.drop_vars("reference_joules"))


def test_settings_are_those_of_the_radio() -> None:
    used = aligned().radio
    assert used is not None
    assert used.settings["power_dbm"] == pytest.approx(POWER_DBM)
    assert {key: used.settings[key] for key in COMPUTING} == COMPUTING
    again = mc.Radio(**used.settings)
    np.testing.assert_allclose(again.power_w, radio().power_w)


def test_an_outcome_says_the_same() -> None:
    run = own_slot()
    one, other = run.radio, run.outcome().radio
    assert one is not None
    assert other is not None
    assert one._replace(joules=other.joules, renewal_joules=other.renewal_joules) == other
    np.testing.assert_array_equal(one.joules, other.joules)
    assert plain().outcome().radio is None


def test_a_folder_and_its_table_hold_both(tmp_path: Path) -> None:
    run = own_slot()
    run.save(tmp_path / "run")
    loaded = mc.load_run(tmp_path / "run")
    assert loaded.metrics.identical(run.metrics)
    assert loaded.radio is not None
    table = pd.read_csv(tmp_path / "run" / "metrics.csv")
    last = table[(table.epoch == 12) & (table.seed == 8)].sort_values("node")
    np.testing.assert_allclose(last["joules"], 12 * joules_of_epoch(), rtol=1e-9)
    np.testing.assert_allclose(last["air_seconds"], 12 * loaded.radio.seconds, rtol=1e-12)
    assert mc.certify([loaded]).verdict == "kept"


def spoilt(**metrics: Any) -> mc.Result:
    run = own_slot()
    return mc.Result(metrics=run.metrics.assign(metrics), ledger=run.ledger, published=run.published, info=run.info)


FORGED = {
    "less energy": lambda run: {"joules": run.metrics["joules"] * 0.5},
    "one node for nothing": lambda run: {"joules": run.metrics["joules"].where(run.metrics["node"] != 2, 0.0)},
    "not so far": lambda run: {"joules": run.metrics["joules"].isel(epoch=[0, 0, 0]).drop_vars("epoch")},
    "sooner": lambda run: {"air_seconds": run.metrics["air_seconds"] - 1e-4},
    "no number": lambda run: {"air_seconds": run.metrics["air_seconds"] * np.nan},
    "by node": lambda run: {"air_seconds": run.metrics["air_seconds"] + 0 * run.metrics["joules"]},
    "whole numbers": lambda run: {"joules": run.metrics["joules"].astype(int)},
}


@pytest.mark.parametrize("how", FORGED)
def test_edited_metrics_are_refused(how: str, tmp_path: Path) -> None:
    forged = spoilt(**FORGED[how](own_slot()))
    with pytest.raises(Altered, match=r"air_seconds|joules"):
        mc.certify([forged])
    assert mc.compare(forged, metric="published_loss").rows[0].caveat == "not certified"
    forged.save(tmp_path / "run")
    with pytest.raises(Altered, match=r"air_seconds|joules"):
        mc.load_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["air_seconds", "joules"])
def test_metrics_of_a_radio_may_not_be_missing_nor_too_many(name: str) -> None:
    run = own_slot()
    with pytest.raises(Unsound, match=name):
        require_radio(run.metrics.drop_vars(name), run.ledger)
    one = plain()
    dims = run.metrics[name].dims
    more = one.metrics.assign({name: (dims, np.ones([one.metrics.sizes[dim] for dim in dims]))})
    with pytest.raises(Unsound, match="no radio"):
        require_radio(more, one.ledger)


def test_a_method_may_leave_metrics_of_these_names_without_a_radio() -> None:
    one = plain()
    left = one.metrics.assign(joules=one.metrics["own_loss"])
    require_radio(left, one.ledger)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_radio", "own-slot"),
        ("model_radio", "[]"),
        ("model_radio", '{"access": "loud"}'),
        ("model_radio", '{"bandwidth_hz": NaN}'),
        ("model_radio", '{"unheard_of": 1}'),
        ("model_radio", "[" * 5000),
        ("model_radio", 3),
        ("model_slots", 0),
        ("model_slots", 2.5),
        ("model_slots", "5"),
        ("model_air_seconds", -1.0),
        ("model_air_seconds", np.inf),
        ("model_air_seconds", "soon"),
    ],
)
def test_a_radio_that_cannot_be_is_refused(name: str, value: object) -> None:
    run = own_slot()
    with pytest.raises(Unsound, match=r"the ledger does not say"):
        require_radio(run.metrics, run.ledger.assign_attrs({name: value}))


def test_energy_of_every_node_is_needed() -> None:
    run = own_slot()
    for ledger in (run.ledger.drop_vars("model_joules"), run.ledger.assign(model_joules=("epoch", np.ones(EPOCHS)))):
        with pytest.raises(Unsound, match="energy"):
            require_radio(run.metrics, ledger)


def test_slower_air_in_the_ledger_alone_is_refused(tmp_path: Path) -> None:
    """Whoever makes all hashes anew still has two files to agree."""
    run = own_slot()
    stated = from_xarray(run.ledger)
    stated.attributes["model_air_seconds"] = 2 * stated.attributes["model_air_seconds"]
    Outcome(from_xarray(run.metrics), stated, run.published, run.info).save(tmp_path / "run")
    with pytest.raises(Altered, match="air_seconds"):
        mc.load_run(tmp_path / "run")


def test_the_certificate_is_that_without_a_radio() -> None:
    """Same budget, same noise: no number of the radio is in it."""
    one, other = mc.certify([own_slot()]), mc.certify([plain()])
    assert one.verdict == other.verdict == "kept"
    np.testing.assert_allclose(one.epsilon, other.epsilon, rtol=1e-6)
