"""A ledger's tables, links and rounds as they are asked for, and what is refused of them."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from murmurcast.certificates.ledger import LARGEST_NUMBER, Ledger
from murmurcast.errors import Altered

NODES, EPOCHS, LINKS = 3, 4, 2
DEEP = ("row", "node", "place")


def ledger(tables: dict[str, Any] | None = None, **attributes: Any) -> Ledger:
    return Ledger(xr.Dataset(tables or {}, attrs=attributes), "one", NODES, EPOCHS)


@pytest.mark.parametrize("rows", [1, 2, EPOCHS])
def test_a_table_of_links_has_up_to_as_many_rows_as_epochs(rows: int) -> None:
    values = np.arange(rows * NODES * LINKS, dtype=float).reshape(rows, NODES, LINKS)
    np.testing.assert_array_equal(ledger({"x": (DEEP, values)}).link_table("x"), values)


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        (DEEP, (EPOCHS + 1, NODES, LINKS)),
        (DEEP, (0, NODES, LINKS)),
        (DEEP, (1, NODES + 1, LINKS)),
        (DEEP, (1, NODES - 1, LINKS)),
        (("row", "place", "node"), (1, LINKS, NODES)),
        (("node", "row", "place"), (NODES, 1, LINKS)),
        (("row", "node"), (1, NODES)),
        (("node",), (NODES,)),
        ((*DEEP, "more"), (1, NODES, LINKS, 1)),
    ],
)
def test_a_table_of_links_of_another_shape_is_refused(dims: tuple[str, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(Altered, match="x of shape"):
        ledger({"x": (dims, np.ones(shape))}).link_table("x")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "not finite"),
        (np.inf, "not finite"),
        (-1e-300, "negative"),
        (LARGEST_NUMBER * 2, "above 1e\\+100"),
    ],
)
def test_numbers_out_of_range_are_refused_of_links(value: float, words: str) -> None:
    values = np.ones((1, NODES, LINKS))
    values[0, 2, 1] = value
    with pytest.raises(Altered, match=words) as caught:
        ledger({"x": (DEEP, values)}).link_table("x")
    assert caught.value.hint


def test_dimensions_are_counted_of_numbers_alone() -> None:
    tables = {
        "one": ("epoch", np.ones(EPOCHS)),
        "two": (("row", "node"), np.ones((1, NODES))),
        "three": (DEEP, np.ones((1, NODES, LINKS))),
        "words": ("epoch", ["a"] * EPOCHS),
        "flags": ("epoch", [True] * EPOCHS),
    }
    result = ledger(tables)
    assert [result.ndim(name) for name in ("one", "two", "three")] == [1, 2, 3]
    for name in ("words", "flags"):
        with pytest.raises(Altered, match=f"{name}, which must be numeric"):
            result.ndim(name)
    with pytest.raises(Altered, match="has no four"):
        result.ndim("four")
    assert result.has("one")
    assert not result.has("four")


ROUNDS: dict[str, Any] = {"rounds": "a b", "a_draws": "noise: normal of a node", "b_draws": "none"}
DRAWN = {"a": "noise: normal of a node", "b": "none"}


@pytest.mark.parametrize("start", [0, np.int64(0), 0.0])
def test_rounds_before_which_no_gradient_was_taken(start: Any) -> None:
    result = ledger(**ROUNDS, start_gradients=start)
    result.require_rounds(**DRAWN)
    with pytest.raises(Altered, match=r"other gradients at the start .* which are 1"):
        result.require_rounds_after_gradient(**DRAWN)


@pytest.mark.parametrize("start", [1, np.int64(1), np.float64(1)])
def test_rounds_after_one_gradient(start: Any) -> None:
    result = ledger(**ROUNDS, start_gradients=start)
    result.require_rounds_after_gradient(**DRAWN)
    with pytest.raises(Altered, match=r"other gradients at the start .* which are 0"):
        result.require_rounds(**DRAWN)


@pytest.mark.parametrize("start", [2, -1, 0.5, "1", True, None, np.nan])
def test_other_gradients_at_the_start_fit_neither(start: Any) -> None:
    result = ledger(**ROUNDS, start_gradients=start)
    for require in (result.require_rounds, result.require_rounds_after_gradient):
        with pytest.raises(Altered, match="other gradients at the start"):
            require(**DRAWN)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rounds": "a"}, 'the rounds "a", expected a b'),
        ({"rounds": "b a"}, 'the rounds "b a"'),
        ({"rounds": "a b c"}, 'the rounds "a b c"'),
        ({"rounds": 3}, "does not say its rounds"),
        ({"a_draws": "none"}, 'draws "none" in round a'),
        ({"b_draws": "noise: normal of a node"}, "in round b"),
        ({"b_draws": None}, "does not say its b_draws"),
    ],
)
@pytest.mark.parametrize("start", [0, 1])
def test_other_rounds_and_draws_are_refused_either_way(changed: dict[str, Any], words: str, start: int) -> None:
    result = ledger(**(ROUNDS | {"start_gradients": start} | changed))
    require = result.require_rounds_after_gradient if start else result.require_rounds
    with pytest.raises(Altered, match=words):
        require(**DRAWN)


def test_tables_of_more_or_fewer_names_are_refused() -> None:
    result = ledger({"a_sending_x": ("node", np.ones(NODES)), "power": ("node", np.ones(NODES))})
    result.require_tables("a_sending_x")
    with pytest.raises(Altered, match="has no a_receiving_y"):
        result.require_tables("a_sending_x", "a_receiving_y")
    with pytest.raises(Altered, match="a_sending_x, which this algorithm does not use"):
        result.require_tables()


def test_links_lead_to_nodes_that_exist() -> None:
    ends = {"a_sender": ("a_link", [0, 1]), "a_receiver": ("a_link", [1, 2]), "a_gain": ("a_link", [0.5, 0.25])}
    sender, receiver, gain = ledger(ends).links("a")
    assert (sender.tolist(), receiver.tolist(), gain.tolist()) == ([0, 1], [1, 2], [0.5, 0.25])
    for spoilt in ([0, NODES], [0.5, 1]):
        with pytest.raises(Altered, match="a node that does not exist"):
            ledger(ends | {"a_receiver": ("a_link", spoilt)}).links("a")
