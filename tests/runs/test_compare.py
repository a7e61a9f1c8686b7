"""Comparisons of hand-made runs, by arithmetic that fits on a napkin."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from murmurcast.errors import Error
from murmurcast.runs import labelled
from murmurcast.runs.compare import Comparison, compare
from murmurcast.runs.result import Result

ACCURACY = np.array(  # [seed, epoch, node]
    [[[0.1, 0.3], [0.4, 0.6], [0.7, 0.9]], [[0.2, 0.2], [0.5, 0.7], [0.5, 0.9]]]
)


def built(
    name: str = "ours",
    uses: int = 1,
    epsilon: float | None = 2.0,
    epochs: tuple[int, ...] = (10, 20, 30),
    privacy: dict[str, Any] | None = None,
    **figures: Any,
) -> Result:
    seeds, _, nodes = next(iter(figures.values())).shape
    variables: dict[str, Any] = {key: (("seed", "epoch", "node"), values) for key, values in figures.items()}
    variables["channel_uses"] = ("epoch", uses * np.array(epochs))
    variables["consensus_error"] = (("seed", "epoch"), np.zeros((seeds, len(epochs))))
    metrics = xr.Dataset(variables, {"seed": range(seeds), "epoch": list(epochs), "node": range(nodes)})
    info = {
        "name": name,
        "algorithm": "power-controlled",
        "problem": {"nodes": nodes},
        "privacy": {
            "epsilon": epsilon,
            "delta": 1e-5,
            "unit": "record",
            "caveat": "",
            "against": "nobody" if epsilon is None else "everybody",
            "weaker": [],
        }
        | (privacy or {}),
    }
    return Result(metrics=metrics, ledger=xr.Dataset(), published=np.zeros((seeds, nodes, 1)), info=info)


def test_mean_spread_and_worst_node() -> None:
    (row,) = compare(built(own_accuracy=ACCURACY)).rows
    assert row.final == pytest.approx(0.75)
    assert row.spread == pytest.approx(np.std([0.8, 0.7], ddof=1))
    assert row.worst == pytest.approx(0.6)
    assert row.worst_node == 0
    assert (row.name, row.algorithm, row.epsilon, row.delta, row.unit) == (
        "ours",
        "power-controlled",
        2.0,
        1e-5,
        "record",
    )


def test_worst_is_the_largest_where_less_is_better() -> None:
    (row,) = compare(built(own_loss=ACCURACY)).rows
    assert row.worst == pytest.approx(0.9)
    assert row.worst_node == 1


def test_one_seed_has_no_spread() -> None:
    (row,) = compare(built(own_accuracy=ACCURACY[:1])).rows
    assert row.spread is None


def test_epochs_and_channel_uses_to_a_mark_from_below() -> None:
    """Means over nodes and seeds: 0.2, 0.55, 0.75."""
    run = built(own_accuracy=ACCURACY, uses=4)
    for mark, epochs in ((0.1, 10), (0.2, 10), (0.21, 20), (0.55, 20), (0.7, 30), (0.75, 30), (0.76, None)):
        (row,) = compare(run, target=mark).rows
        assert row.epochs == epochs, mark
        assert row.channel_uses == (None if epochs is None else 4 * epochs)


def test_epochs_and_channel_uses_to_a_mark_from_above() -> None:
    """Means over nodes and seeds: 0.8, 0.45, 0.25."""
    run = built(own_loss=1 - ACCURACY, uses=3)
    for mark, epochs in ((0.9, 10), (0.8, 10), (0.7, 20), (0.3, 30), (0.25, 30), (0.2, None)):
        (row,) = compare(run, target=mark).rows
        assert row.epochs == epochs, mark
        assert row.channel_uses == (None if epochs is None else 3 * epochs)


def test_the_mark_is_what_the_weakest_ends_with() -> None:
    weak, strong = built("weak", own_accuracy=ACCURACY / 2), built("strong", own_accuracy=ACCURACY)
    outcome = compare(weak, strong)
    assert outcome.target == pytest.approx(0.375)
    assert [row.epochs for row in outcome.rows] == [30, 20]
    outcome = compare(built(own_loss=ACCURACY), built(own_loss=ACCURACY * 2))
    assert outcome.target == pytest.approx(1.5)
    assert [row.epochs for row in outcome.rows] == [10, 10]


def test_a_mark_lost_again_was_reached() -> None:
    course = np.array([[[0.2], [0.9], [0.3]]])
    (row,) = compare(built(own_accuracy=course), target=0.8).rows
    assert row.epochs == 20


def test_runs_of_other_lengths() -> None:
    short = built("short", epochs=(7,), own_accuracy=ACCURACY[:, -1:])
    rows = compare(built(own_accuracy=ACCURACY), short).rows
    assert [row.epochs for row in rows] == [30, 7]


def test_the_usual_figure_is_one_that_all_runs_have() -> None:
    both, loss = built(own_accuracy=ACCURACY, own_loss=1 - ACCURACY), built(own_loss=ACCURACY)
    assert compare(both).metric == "own_accuracy"
    assert compare(both, loss).metric == "own_loss"
    assert compare(both, metric="own_loss").metric == "own_loss"


@pytest.mark.parametrize("metric", ["own_acuracy", "consensus_error", "channel_uses", "seed", ""])
def test_an_unknown_figure_is_refused(metric: str) -> None:
    if metric == "":
        assert compare(built(own_accuracy=ACCURACY), metric="").metric == "own_accuracy"
        return
    with pytest.raises(Error, match="is not a metric") as raised:
        compare(built(own_accuracy=ACCURACY), metric=metric)
    assert "own_accuracy" in raised.value.hint


def test_a_figure_of_one_run_only_is_refused() -> None:
    with pytest.raises(Error, match="is not a metric of all") as raised:
        compare(built(own_accuracy=ACCURACY, own_loss=ACCURACY), built(own_loss=ACCURACY), metric="own_accuracy")
    assert raised.value.hint == "they share own_loss"


def test_no_run_is_refused() -> None:
    with pytest.raises(Error, match="no run") as raised:
        compare()
    assert raised.value.hint


def test_as_text() -> None:
    rival = built("rival", epsilon=None, published_accuracy=ACCURACY / 3)
    outcome = compare(built(published_accuracy=ACCURACY), rival, metric="published_accuracy", target=0.5)
    assert isinstance(outcome, Comparison)
    lines = str(outcome).split("\n")
    assert len(lines) == 3
    assert "epochs to 0.5" in lines[0]
    assert "2 (record)" in lines[1]
    assert "never" in lines[2]
    assert "not promised" in lines[2]
    assert len(outcome.headings) == len(outcome.cells[0])
    assert outcome.headings[-1] == "epsilon"


def test_every_adversary_has_a_column_of_its_own() -> None:
    """Numbers against different adversaries never stand in one column."""
    ours = built(published_accuracy=ACCURACY)
    server = {"against": "trusted server", "caveat": "trusted server"}
    central = built("central", epsilon=1.0, privacy=server, published_accuracy=ACCURACY)
    two = {"weaker": [{"against": "eavesdropper", "epsilon": 0.5}]}
    masked = built("masked", epsilon=3.0, privacy=two, published_accuracy=ACCURACY)
    quiet = built("quiet", epsilon=None, published_accuracy=ACCURACY)
    outcome = compare(ours, central, masked, quiet, metric="published_accuracy")
    assert outcome.adversaries == ("everybody", "eavesdropper", "trusted server")
    assert outcome.headings[-3:] == ("epsilon, everybody", "epsilon, eavesdropper", "epsilon, trusted server")
    assert [row.epsilon_against("everybody") for row in outcome.rows] == [2.0, None, 3.0, None]
    assert [cells[-1] for cells in outcome.cells][1] == "1 (trusted server)"
    assert outcome.cells[1][-3] == "not promised"
    assert outcome.cells[2][-3:-1] == ("3 (record)", "0.5 (record)")
    assert outcome.cells[3][-3:] == ("not promised",) * 3
    assert compare(quiet, metric="published_accuracy").headings[-1] == "epsilon"


def test_an_epsilon_stands_beside_published_models_only_and_is_rounded_up() -> None:
    run = built(epsilon=1.00049, own_accuracy=ACCURACY, published_accuracy=ACCURACY)
    own, published = (compare(run, metric=f"{model}_accuracy") for model in ("own", "published"))
    assert not any("epsilon" in heading for heading in own.headings)
    assert len(own.cells[0]) == len(own.headings) == 7
    assert "1.0" not in str(own)
    assert published.headings[-1] == "epsilon"
    assert published.cells[0][-1] == "1.01 (record)"


def test_intervals_and_paired_differences() -> None:
    """Means by seed: ours 0.8 and 0.7, the rival's a third of it and 0.1 more with the second seed."""
    other = ACCURACY / 3
    other[1] += 0.1
    outcome = compare(built(own_accuracy=ACCURACY), built("rival", own_accuracy=other))
    first, second = outcome.rows
    assert first.seeds == second.seeds == (0, 1)
    assert first.interval == pytest.approx((0.75 - 0.635310, 0.75 + 0.635310), abs=1e-5)
    assert (first.difference, first.difference_interval, first.paired) == (None, None, None)
    apart = np.array([0.8 / 3 - 0.8, 0.7 / 3 + 0.1 - 0.7])
    assert second.difference == pytest.approx(apart.mean())
    assert second.difference == pytest.approx(second.final - first.final)
    expected = stats.ttest_1samp(apart, 0).confidence_interval(0.95)
    assert second.difference_interval == pytest.approx((expected.low, expected.high))
    assert second.paired
    assert outcome.headings[2:5] == ("own_accuracy", "spread", "against first")
    assert outcome.cells[0][2:5] == ("0.7500 ± 0.6353", "0.0707", "-")
    half = (expected.high - expected.low) / 2
    assert outcome.cells[1][4] == f"{apart.mean():+.4f} ± {half:.4f}"
    assert "seed by seed" in outcome.notes[1]
    assert "Welch" not in "".join(outcome.notes)


def with_seeds(run: Result, *seeds: int) -> Result:
    return Result(**vars(run) | {"metrics": run.metrics.assign_coords(seed=list(seeds))})


def test_other_seeds_are_marked_and_not_paired() -> None:
    ours = built(own_accuracy=ACCURACY)
    rival = with_seeds(built("rival", own_accuracy=ACCURACY / 2), 1, 2)
    again = with_seeds(built("again", own_accuracy=ACCURACY[::-1]), 1, 0)
    outcome = compare(ours, rival, again)
    assert [row.paired for row in outcome.rows] == [None, False, True]
    assert outcome.cells[1][4].endswith(" *")
    assert "*: the seeds are others, so not seed by seed" in outcome.notes[1]
    # The same numbers under the same seeds, in another order: no difference, seed by seed.
    assert outcome.rows[2].difference_interval == (0.0, 0.0)
    assert outcome.cells[2][4] == "+0.0000 ± 0.0000"


def test_one_seed_has_no_interval_and_it_is_said() -> None:
    alone = built(own_accuracy=ACCURACY[:1])
    outcome = compare(alone, built("rival", own_accuracy=ACCURACY[1:]))
    assert [row.interval for row in outcome.rows] == [None, None]
    assert outcome.rows[1].difference == pytest.approx(-0.1)
    assert outcome.rows[1].difference_interval is None
    assert outcome.cells[1][2:5] == ("0.7000", "", "-0.1000")
    assert "one seed, so no interval" in outcome.notes[0]
    mixed = compare(built(own_accuracy=ACCURACY), built("rival", own_accuracy=ACCURACY[1:]))
    assert "none with one seed" in mixed.notes[0]


def test_a_frame_has_the_numbers_in_full() -> None:
    rival = built("rival", epsilon=None, published_accuracy=ACCURACY / 3, own_accuracy=ACCURACY)
    ours = built(published_accuracy=ACCURACY, own_accuracy=ACCURACY)
    outcome = compare(ours, rival, metric="published_accuracy")
    frame = outcome.to_frame()
    assert list(frame["name"]) == ["ours", "rival"]
    assert list(frame["final"]) == [row.final for row in outcome.rows]
    assert list(frame["seeds"]) == [2, 2]
    assert tuple(frame.loc[0, ["low", "high"]]) == outcome.rows[0].interval
    assert tuple(frame.loc[1, ["difference_low", "difference_high"]]) == outcome.rows[1].difference_interval
    assert frame.loc[0, "epsilon"] == 2.0
    assert np.isnan(frame.loc[1, "epsilon"])
    assert not {"radio", "joules", "weaker", "interval"} & set(frame)
    own = compare(ours, rival, metric="own_accuracy")
    assert not {"epsilon", "delta", "unit"} & set(own.to_frame())
    assert [sorted(one) for one in own.records] == [sorted(own.records[0])] * 2
    assert not {"epsilon", "joules"} & set(own.records[0])


def test_a_frame_has_a_column_for_every_adversary() -> None:
    two = {"weaker": [{"against": "eavesdropper", "epsilon": 0.5}]}
    masked = built("masked", epsilon=3.0, privacy=two, published_accuracy=ACCURACY)
    frame = compare(masked, built(published_accuracy=ACCURACY), metric="published_accuracy").to_frame()
    assert list(frame["epsilon, eavesdropper"]) == [0.5, 2.0]
    assert list(frame["epsilon, everybody"]) == [3.0, 2.0]


def test_the_metrics_of_a_run_as_a_frame() -> None:
    run = built(own_accuracy=ACCURACY, uses=4)
    frame = run.to_frame()
    assert len(frame) == 2 * 3 * 2
    row = frame[(frame["seed"] == 1) & (frame["epoch"] == 20) & (frame["node"] == 1)]
    assert float(row["own_accuracy"].iloc[0]) == 0.7
    assert int(row["channel_uses"].iloc[0]) == 80


def test_a_frame_of_too_many_rows_has_means_over_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MAX_TABLE_LINES", 11)
    frame = built(own_accuracy=ACCURACY).to_frame()
    assert "node" not in frame
    assert frame.set_index(["seed", "epoch"]).loc[(0, 30), "own_accuracy"] == pytest.approx(0.8)


def of_a_sample(nodes: list[int], of: int, name: str = "large") -> Result:
    """A run whose two columns of metrics are of two nodes of many."""
    run = built(name, own_accuracy=ACCURACY)
    return Result(
        **vars(run) | {"metrics": run.metrics.assign_coords(node=nodes), "info": run.info | {"problem": {"nodes": of}}}
    )


def test_of_a_sample_the_worst_node_has_its_own_number() -> None:
    compared = compare(of_a_sample([7, 1009], 1100))
    assert compared.rows[0].worst_node == 7
    assert "0.6000 (7)" in compared.cells[0]


def test_a_sample_is_said_once_for_all_or_with_the_runs_that_it_is_of() -> None:
    large, small = of_a_sample([7, 1009], 1100), built(own_accuracy=ACCURACY)
    words = "are of a public sample of 2 of 1100 nodes"
    assert compare(large, large).notes[-1] == f"metrics {words}"
    assert compare(small, large).notes[-1] == f"metrics of large {words}"
    assert not any("sample" in line for line in compare(small, small).notes)
    other = of_a_sample([0, 1], 2000, "larger\x1b[2J")
    assert compare(small, large, other).samples == (
        f"metrics of large {words}",
        "metrics of larger\\x1b[2J are of a public sample of 2 of 2000 nodes",
    )
    assert compare(small, *[large] * 5).samples == (f"metrics of 5 of 6 runs {words}",)
