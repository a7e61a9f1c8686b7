"""What a sweep varies: words of the command line, combinations, draws, names."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.experiments.load import parse, with_changes
from murmurcast.experiments.sweep import SweepOptions, _at, _job
from murmurcast.experiments.sweep_points import Range, as_grid, as_ranges, in_turns, parse_grid, parse_ranges, points
from murmurcast.runs.sweep import Point, point_of
from tests.experiments.sweeps import TINY, tiny


def test_values_are_toml_and_bare_words_are_strings() -> None:
    words = [
        "privacy.epsilon=0.5,1,2",
        "algorithm.name=power-controlled,dp-dsgd",
        "data.partition=iid, sorted",
        'network.gain={kind="uniform", low=0.3, high=1.0},{kind="constant"}',
        "data.non_negative=true,false",
        "run.precision='float64'",
        'data.features=["deskew", "hog"],["deskew"]',
    ]
    assert parse_grid(words) == {
        "privacy.epsilon": (0.5, 1, 2),
        "algorithm.name": ("power-controlled", "dp-dsgd"),
        "data.partition": ("iid", "sorted"),
        "network.gain": ({"kind": "uniform", "low": 0.3, "high": 1.0}, {"kind": "constant"}),
        "data.non_negative": (True, False),
        "run.precision": ("float64",),
        "data.features": (["deskew", "hog"], ["deskew"]),
    }


def test_bare_words_beside_tables_are_cut_at_the_right_commas() -> None:
    result = parse_grid(['data.partition=iid,{kind="dirichlet", concentration=0.5}'])
    assert result["data.partition"] == ("iid", {"kind": "dirichlet", "concentration": 0.5})


def test_all_combinations_in_the_order_given() -> None:
    result = points({"privacy.epsilon": (1, 2), "algorithm.name": ("a", "b", "c")}, {}, None, 0)
    assert [tuple(point.values.values()) for point in result] == [(e, n) for e in (1, 2) for n in ("a", "b", "c")]
    assert len({point.name for point in result}) == 6


def test_draws_are_the_same_for_every_method_and_the_first_stay_as_they_are() -> None:
    ranges = {"schedule.step": Range(0.01, 1.0, "log"), "schedule.epochs": Range(20, 30)}
    few = points({"algorithm.name": ("a", "b")}, ranges, 5, 7)
    many = points({"algorithm.name": ("a", "b")}, ranges, 9, 7)
    assert many[: len(few)] == few
    drawn = {name: [p.values["schedule.step"] for p in few if p.values["algorithm.name"] == name] for name in "ab"}
    assert drawn["a"] == drawn["b"]
    assert len(set(drawn["a"])) == 5
    other = points({"algorithm.name": ("a", "b")}, ranges, 5, 8)
    assert [p.values["schedule.step"] for p in other] != [p.values["schedule.step"] for p in few]


def test_draws_are_even_in_their_scale() -> None:
    shares = [(one + 0.5) / 1000 for one in range(1000)]
    line, ratio = Range(2.0, 4.0), Range(0.01, 100.0, "log")
    assert np.mean([line.at(share) for share in shares]) == pytest.approx(3.0, rel=1e-3)
    assert np.mean([math.log10(ratio.at(share)) for share in shares]) == pytest.approx(0.0, abs=1e-3)
    whole = Counter(Range(3, 6).at(share) for share in shares)
    assert whole == {3: 250, 4: 250, 5: 250, 6: 250}
    assert all(isinstance(value, int) for value in whole)
    assert Range(1, 8, "log").at(0.0) == 1
    assert Range(1, 8, "log").at(0.999999) == 8


def test_whole_numbers_that_are_drawn_twice_are_one_point() -> None:
    assert len(points({}, {"schedule.epochs": Range(1, 3)}, 50, 0)) == 3


def test_names_say_the_values_and_no_two_points_share_one() -> None:
    assert point_of({"privacy.epsilon": 0.5, "algorithm.name": "dp-dsgd"}).name == "epsilon-0.5_dp-dsgd"
    assert point_of({"network.seed": 1, "data.seed": 2}).name == "network.seed-1_data.seed-2"
    values = ["a/b", "a b", "A-b", "a-b", "../a-b", "a" * 300, "a" * 301, {"kind": "x"}, ["x"], True, 1.0, 1, ""]
    named = [point_of({"data.name": value}).name for value in values]
    # 1 and 1.0 are the same number, and one run.
    assert len(set(named)) == len(values) - 1
    assert all("/" not in name and not name.startswith(".") and len(name) < 120 for name in named)
    assert point_of({"schedule.step": 0.1 + 0.2}).name == "step-0.30000000000000004"


def test_one_point_of_every_method_comes_first() -> None:
    result = points({"algorithm.name": ("a", "b"), "privacy.epsilon": (1, 2, 3)}, {}, None, 0)
    assert [point.values["algorithm.name"] for point in in_turns(result)] == ["a", "b", "a", "b", "a", "b"]
    assert sorted(in_turns(result)) == sorted(result)


def test_ranges_of_the_command_line() -> None:
    result = parse_ranges(["schedule.step=0.1:1:log", "schedule.epochs=20:30"])
    assert result == {"schedule.step": Range(0.1, 1, "log"), "schedule.epochs": Range(20, 30)}
    assert result["schedule.epochs"].is_whole


@pytest.mark.parametrize("words", ["privacy.epsilon", "=1", "privacy.epsilon=", ""])
def test_a_grid_without_key_or_values_is_refused(words: str) -> None:
    with pytest.raises(Error, match="a key and its values"):
        parse_grid([words])


@pytest.mark.parametrize("words", ["schedule.step=1", "schedule.step=a:b", "schedule.step=1:", "schedule.step=true:2"])
def test_a_range_without_two_numbers_is_refused(words: str) -> None:
    with pytest.raises(Error, match="not two numbers"):
        parse_ranges([words])


@pytest.mark.parametrize(
    ("grid", "ranges", "draws", "said"),
    [
        ({}, {}, None, "nothing to vary"),
        ({"a.b": ()}, {}, None, "no values of a.b"),
        ({"a.b": "text"}, {}, None, "no values of a.b"),
        ({"a.b": (1, 1)}, {}, None, "a.b twice"),
        ({"a.b": (1,)}, {"a.b": Range(0, 1)}, 2, "both in the grid"),
        ({"run.seeds": (1, 2)}, {}, None, "run.seeds is not varied"),
        ({"sweep.seeds": (1, 2)}, {}, None, "sweep.seeds is not varied"),
        ({}, {"sweep.random": Range(1, 2)}, 2, "sweep.random is not varied"),
        ({}, {"a.b": Range(0.0, 1.0)}, None, "no number of draws"),
        ({"a.b": (1,)}, {}, 3, "nothing to draw from"),
        ({}, {"a.b": Range(0.0, 1.0)}, 0, "random is 0"),
        ({}, {"a.b": Range(2.0, 1.0)}, 3, "the range of a.b is 2 to 1"),
        ({}, {"a.b": Range(1.0, math.inf)}, 3, "the range of a.b"),
        ({}, {"a.b": Range(0.0, 1.0, "log")}, 3, "no logarithm"),
        ({}, {"a.b": Range(0.5, 1.0, "lgo")}, 3, "lgo"),  # type: ignore[arg-type]
        ({"a.b": range(1000), "a.c": range(1000)}, {}, None, "1000000 points"),
    ],
)
def test_what_cannot_be_swept_is_refused(grid: dict, ranges: dict, draws: int | None, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(Error, match=said) as caught:
        points(grid, ranges, draws, 0)
    assert caught.value.hint


def test_a_key_is_given_once() -> None:
    with pytest.raises(Error, match="given twice"):
        parse_grid(["privacy.epsilon=1", "privacy.epsilon=2"])
    with pytest.raises(Error, match="given twice"):
        parse_ranges(["a.b=1:2", "a.b=1:3"])


DRAWS = "[sweep]\nseed = 7\nrandom = 2\n[sweep.ranges]\nschedule.step = {low = 0.1, high = 0.4}\n"


def test_a_seed_of_zero_overrides_the_files(tmp_path: Path) -> None:
    experiment = parse((TINY + DRAWS).encode(), "tiny.toml")

    def steps(seed: int | None) -> list[float]:
        drawn = _job(experiment, {}, SweepOptions(seed=seed, folder=tmp_path), tmp_path).manifest.points
        return [point.values["schedule.step"] for point in drawn]

    assert steps(None) == steps(7)
    expected = points({}, {"schedule.step": Range(0.1, 0.4)}, 2, 0)
    assert steps(0) == [point.values["schedule.step"] for point in expected] != steps(7)


def test_values_of_numpy_are_those_of_python() -> None:
    assert as_grid({"a.b": np.arange(1, 3), "a.c": [np.float32(0.5)]}) == {"a.b": (1, 2), "a.c": (0.5,)}
    assert as_ranges({"a.b": np.array([1, 4])})["a.b"].is_whole


@pytest.mark.parametrize(
    ("section", "said", "way_out"),
    [
        ("schedule.step = {low = 0.1}", "sweep.ranges.schedule.step.high is missing", "add it"),
        ('schedule.step = {low = 0.1, high = "a"}', "sweep.ranges.schedule.step.high is a", "--example"),
        ('schedule.step = {low = 0.1, high = 1, scal = "log"}', "sweep.ranges.schedule.step.scal", '"scale"'),
    ],
)
def test_a_slip_in_a_range_of_the_file_is_named(section: str, said: str, way_out: str) -> None:
    with pytest.raises(Error, match=said) as caught:
        parse(f"{TINY}[sweep.ranges]\n{section}\n".encode(), "tiny.toml")
    assert way_out in caught.value.hint


def test_known_keys_are_those_of_the_file() -> None:
    with pytest.raises(Error, match=r"unknown key data\.partition\.quux") as caught:
        parse(TINY.encode(), "tiny.toml", {"data.partition": '{kind = "shards", quux = 1}'})
    assert caught.value.hint == "known here: kind, per_node"


def test_channel_uses_and_travel_are_settled_at_every_point() -> None:
    base = with_changes(tiny(), {"network.topology": "ring", "network.nodes": 12, "network.gains": None})
    for uses, epochs, rounds in ((30, 10, 3), (60, 10, 6)):
        point = Point(f"uses-{uses}", {"schedule.uses": uses, "schedule.travel": 3.0})
        result = _at(base, point, Path()).schedule
        assert (result.epochs, result.rounds, result.uses, result.travel) == (epochs, rounds, None, None)
        assert mc.Schedule(epochs=epochs, step=result.step).steps.sum() == pytest.approx(3.0)
