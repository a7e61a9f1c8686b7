"""Sentences and tables about runs: they say what the numbers say, and change when the numbers do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from murmurcast.reproduction import curve_plots as curve_figures
from murmurcast.reproduction import run_tables, writing
from murmurcast.reproduction.reproduce import first_lines
from murmurcast.reproduction.settings import CENTRAL, NOISELESS, OURS, RIVAL, settings
from murmurcast.reproduction.training import Run
from murmurcast.runs.result import Result

EPOCHS = np.arange(10, 101, 10)
SEEDS, NODES = 5, 4


def result(accuracy: np.ndarray[Any, Any], uses: int, epsilon: float | None = None) -> Result:
    """A run whose accuracy is given [epoch], the same up to known offsets of seeds and nodes."""
    offsets = np.linspace(-0.02, 0.02, SEEDS)[:, None, None] + np.array([-0.03, -0.01, 0.01, 0.03])
    values = (("seed", "epoch", "node"), accuracy[None, :, None] + offsets)
    metrics = xr.Dataset(
        {
            "own_accuracy": values,
            "published_accuracy": values,
            "sent_power": (("seed", "epoch", "node"), np.full((SEEDS, len(EPOCHS), NODES), 7.0)),
            "loudest": (("seed", "node"), np.full((SEEDS, NODES), 9.0)),
            "channel_uses": ("epoch", EPOCHS * uses),
        },
        {"seed": range(SEEDS), "epoch": EPOCHS, "node": range(NODES)},
    )
    privacy: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 1e-5,
        "unit": "record",
        "caveat": "",
        "against": "everybody",
        "weaker": [],
    }
    info = {"name": "some", "algorithm": "any", "privacy": privacy, "problem": {"nodes": NODES}}
    return Result(metrics=metrics, ledger=xr.Dataset(), published=np.zeros(0), info=info)


def runs(**ends: float) -> list[Run]:
    """All runs of the reproduction, rising to 0.6 (Algorithm 1), 0.5 (mPED2FL) and so on, or to what is given."""
    usual = {OURS: 0.6, RIVAL: 0.5, CENTRAL: 0.8, NOISELESS: 0.9}
    uses = {OURS: 1, RIVAL: 4, CENTRAL: 2, NOISELESS: 1}
    outcome = []
    for setting in settings("mnist", SEEDS):
        end = ends.get(setting.name.replace("-", "_").replace(".", "_"), usual[setting.algorithm])
        course = end * (1 - np.exp(-EPOCHS / 30)) / (1 - np.exp(-100 / 30))
        promised = setting.epsilon if setting.group == "certified" and setting.algorithm != NOISELESS else None
        outcome.append(Run(setting, None, result(course, uses[setting.algorithm], promised)))  # type: ignore[arg-type]
    return outcome


def test_the_paper_s_claim_is_judged_at_every_epoch_from_20_on() -> None:
    claim = run_tables.above_the_rival(runs(), 1)
    assert claim.holds
    assert "from epoch 20 to 100" in claim.text
    assert "0.600 (spread 0.016) against 0.500" in claim.text
    crossing = runs()
    rival = run_tables.find(crossing, "published", RIVAL, 1)
    values = rival.result.metrics["own_accuracy"]
    values.loc[{"epoch": 50}] = 0.99  # at one epoch alone
    broken = run_tables.above_the_rival(crossing, 1)
    assert broken.holds is False
    assert "8 of 9 evaluated epochs" in broken.text
    assert "least at epoch 50" in broken.text
    assert run_tables.above_the_rival(crossing, 2).holds  # the other budget is not touched
    early = runs()
    run_tables.find(early, "published", RIVAL, 1).result.metrics["own_accuracy"].loc[{"epoch": 10}] = 0.99
    stated = run_tables.above_the_rival(early, 1)
    assert stated.holds  # before epoch 20 nothing is claimed, but it is told
    assert "Before that it does not at epoch 10." in stated.text
    assert "Before that" not in claim.text


def test_the_first_line_says_what_must_be_said_first() -> None:
    assert first_lines("", 5, runs()) == (
        "The paper's main claim held as published: from epoch 20 on Algorithm 1 lies above mPED2FL with both budgets.",
    )
    broken = first_lines("", 5, runs(published_mped2fl_2=0.7))
    assert broken[0].startswith("The paper's main claim did NOT hold. As published, budget 2:")
    assert "held as published" not in " ".join(broken)
    stated = first_lines("Other data.", 2, runs())
    assert stated[0] == "Other data."
    assert stated[1].startswith("Only 2 seeds")


@pytest.mark.parametrize(
    ("rival", "holds", "words"),
    [(0.5, True, "Algorithm 1 leads"), (0.62, False, "neither leads clearly"), (0.7, False, "mPED2FL leads")],
)
def test_a_lead_with_matched_steps_must_exceed_the_spread(rival: float, holds: bool, words: str) -> None:
    finding = run_tables.matched(runs(matched_mped2fl_1=rival), 1)
    assert finding.holds is holds
    assert words in finding.text


def test_channel_uses_are_compared_at_the_same_number() -> None:
    finding = run_tables.fewer_uses(runs(), 1)
    # After 100 uses the rival has come to epoch 25, between its evaluations at 20 and 30.
    expected = 0.5 * (1 - np.exp(-np.array([20, 30]) / 30)).mean() / (1 - np.exp(-100 / 30))
    assert finding.holds
    assert f"mPED2FL at {expected:.3f}" in finding.text
    assert "4 uses an epoch" in finding.text


def test_one_seed_tells_of_no_lead() -> None:
    alone = [
        run._replace(result=replace(run.result, metrics=run.result.metrics.isel(seed=[0])))
        for run in runs(matched_mped2fl_1=0.9)
    ]
    finding = run_tables.matched(alone, 1)
    assert finding.holds is False
    assert "neither leads clearly" in finding.text


def test_the_price_of_the_promise_is_told_against_the_same_steps_and_the_best() -> None:
    finding = run_tables.certified(runs(certified_power_controlled_1=0.885, certified_noiseless_3=0.95), 1.0)
    assert finding.holds is None  # nobody claimed anything
    for words in ("reach 0.885", "without noise reach 0.900, 0.015 more", "more than 0.950", "reaches 0.800"):
        assert words in finding.text


def test_power_is_judged_over_all_that_goes_on_air() -> None:
    built = runs()
    assert run_tables.power(built).holds is False
    assert (
        "as published 9, matched steps 9, certified 9, certified, on features 9 times" in run_tables.power(built).text
    )
    for run in built:
        run.result.metrics["loudest"] *= 0.1 if run.setting.algorithm != CENTRAL else 100.0
    assert run_tables.power(built).holds
    assert "stay within" in run_tables.power(built).text


def test_tables_show_the_figure_that_belongs_to_the_setting() -> None:
    built = runs()
    for run in built:
        run.result.metrics["published_accuracy"] = run.result.metrics["own_accuracy"] - 0.1
    rows = {row[:2]: row for row in run_tables.summary(built).rows}
    assert rows["As published", "Algorithm 1, epsilon 1"][2:] == ("0.6000", "0.0158", "0.5700 (0)", "nothing")
    certified = rows["Certified", "Algorithm 1, epsilon 0.3"]
    assert certified[2:] == ("0.5000", "0.0158", "0.4700 (0)", "epsilon 0.3, against everybody")
    targets = next(table for table in run_tables.tables(built) if table.name == "targets")
    [rival] = [row for row in targets.rows if row[:2] == ("As published", "mPED2FL, epsilon 2")]
    assert rival[2:4] == ("100 / 400", "never")


def test_curves_hold_the_band_and_every_node() -> None:
    built = runs()
    curve = curve_figures.curves(built)["published-power-controlled-1"]
    assert curve.headings == ("epoch", "uses", "mean", "low", "high", "node0", "node1", "node2", "node3")
    last = dict(zip(curve.headings, curve.columns[-1], strict=True))
    assert last["mean"] == pytest.approx(0.6)
    assert last["high"] - last["mean"] == pytest.approx(np.std(np.linspace(-0.02, 0.02, SEEDS), ddof=1))
    assert last["node0"] == pytest.approx(0.57)
    lines = writing.dat(curve).splitlines()
    assert lines[0].split() == list(curve.headings)
    assert len(lines) == 1 + len(EPOCHS)
