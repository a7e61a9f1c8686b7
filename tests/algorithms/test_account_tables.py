"""What accounts share: weights from tables by every access, and every tampered table refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.algorithms import account
from murmurcast.algorithms.mixer import Access, Mixer, Weights, mixer
from murmurcast.certificates.ledger import Ledger
from murmurcast.errors import Altered
from tests.algorithms.networks import NODES, one_way, setup_on, two_way

EPOCHS = 4
AMPLITUDE, HEARD, KEPT = "model_sending_amplitude", "model_receiving_heard", "model_receiving_kept"
CASES: dict[str, tuple[Weights, Access, account.Sums]] = {
    "air": ("sinkhorn", "air", "both"),
    "air, rows": ("row", "air", "rows"),
    "air, columns": ("column", "air", "columns"),
    "links": ("metropolis", "orthogonal", "both"),
    "slots": ("metropolis", "slots", "both"),
}


def ledger_of(tables: dict[str, Any], **attributes: Any) -> Ledger:
    return Ledger(xr.Dataset(tables, attrs=attributes), "one", NODES, EPOCHS)


def mixed_by(case: str) -> Mixer:
    weights, access, _ = CASES[case]
    return mixer(setup_on(two_way(), mc.Quadratic.random(NODES, 2), step=0.1), weights, access)


def written(by: Mixer) -> xr.Dataset:
    """The tables of a mixer as a ledger has them."""
    parts = {AMPLITUDE: by.amplitude, HEARD: by.heard, KEPT: by.kept}
    tables: dict[str, Any] = {
        name: ((f"{name}_row", "node", f"{name}_link")[: values.ndim], values) for name, values in parts.items()
    }
    result = by.channel.entries()
    for name, (_, values) in result.variables.items():
        tables[f"model_{name}"] = (("model_link",), values)
    return xr.Dataset(tables, attrs={"model_channel": by.channel.kind})


def checked(data: xr.Dataset, sums: account.Sums) -> Any:
    return account.require_weights(Ledger(data, "one", NODES, EPOCHS), "model", sums)


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_that_the_mixer_was_made_for(case: str) -> None:
    by = mixed_by(case)
    result = checked(written(by), CASES[case][2])
    np.testing.assert_allclose(result.toarray(), by.weights.toarray(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_weights_do_not_depend_on_the_order_of_links(case: str) -> None:
    by, data = mixed_by(case), written(mixed_by(case))
    order = np.random.default_rng(2).permutation(data.sizes["model_link"])
    result = checked(data.isel(model_link=order), CASES[case][2])
    np.testing.assert_allclose(result.toarray(), by.weights.toarray(), rtol=1e-12, atol=1e-15)


def one_entry(factor: float) -> Callable[[Any], Any]:
    def edit(values: Any) -> Any:
        result = np.array(values)
        result[0, 1, ...] *= factor
        return result

    return edit


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [AMPLITUDE, HEARD, KEPT])
@pytest.mark.parametrize("edit", [one_entry(1.001), one_entry(0.5), lambda values: 1.01 * np.asarray(values)])
def test_weights_that_do_not_sum_to_one_are_refused(case: str, name: str, edit: Callable[[Any], Any]) -> None:
    data = written(mixed_by(case))
    spoilt = data.assign({name: (data[name].dims, edit(data[name]))})
    sums = CASES[case][2]
    words = {"both": "(rows|columns)"}.get(sums, sums)
    # A sender's own amplitude stands in its column twice, as does a receiver's factor in its row: all is seen.
    with pytest.raises(Altered, match=f"whose {words} do not sum to 1"):
        checked(spoilt, sums)


@pytest.mark.parametrize("case", CASES)
def test_gains_other_than_those_are_refused(case: str) -> None:
    data = written(mixed_by(case))
    gain = np.array(data["model_gain"])
    gain[2] *= 1.1
    with pytest.raises(Altered, match="do not sum to 1"):
        checked(data.assign(model_gain=("model_link", gain)), CASES[case][2])


@pytest.mark.parametrize("case", CASES)
def test_tables_that_change_over_epochs_are_refused(case: str) -> None:
    data = written(mixed_by(case))
    for name in (AMPLITUDE, HEARD, KEPT):
        dims, twice = data[name].dims, np.repeat(np.asarray(data[name]), 2, axis=0)
        with pytest.raises(Altered, match=name):
            checked(data.drop_vars(name).assign({name: (dims, twice)}), CASES[case][2])


@pytest.mark.parametrize("case", CASES)
def test_silent_senders_and_deaf_receivers_are_refused(case: str) -> None:
    data = written(mixed_by(case))
    for name in (AMPLITUDE, HEARD):
        with pytest.raises(Altered, match=f"0 in {name}"):
            checked(data.assign({name: (data[name].dims, one_entry(0.0)(data[name]))}), CASES[case][2])


@pytest.mark.parametrize(("case", "name"), [("links", HEARD), ("slots", AMPLITUDE)])
def test_tables_with_fewer_places_than_links_are_refused(case: str, name: str) -> None:
    data = written(mixed_by(case))
    with pytest.raises(Altered, match="does not fit its links"):
        checked(data.isel({f"{name}_link": slice(0, -1)}), "both")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["air", "links", "slots", "post"])
def test_tables_of_another_channel_are_refused(case: str, kind: str) -> None:
    data = written(mixed_by(case))
    if data.attrs["model_channel"] != kind:
        with pytest.raises(Altered):
            checked(data.assign_attrs(model_channel=kind), CASES[case][2])


def test_sums_are_required_where_they_are_asked_for_and_nowhere_else() -> None:
    rows, columns = written(mixed_by("air, rows")), written(mixed_by("air, columns"))
    with pytest.raises(Altered, match="whose columns"):
        checked(rows, "columns")
    with pytest.raises(Altered, match="whose rows"):
        checked(columns, "rows")
    with pytest.raises(Altered, match="do not sum to 1"):
        checked(rows, "both")


def test_one_way_links_make_row_weights_too() -> None:
    by = mixer(setup_on(one_way(), mc.Quadratic.random(NODES, 2), step=0.1), "row")
    result = checked(written(by), "rows")
    np.testing.assert_allclose(result.toarray(), by.weights.toarray(), rtol=1e-12, atol=1e-15)
    assert (result.toarray() > 0).sum() == NODES + 8


def test_two_tables_must_hold_the_same_numbers() -> None:
    flat, deep = np.arange(1.0, NODES + 1)[None], np.ones((1, NODES, 2))
    tables = {
        "one": (("a", "node"), flat),
        "two": (("a", "node"), flat.copy()),
        "other": (("a", "node"), flat * (1 + 1e-15)),
        "deep": (("a", "node", "link"), deep),
        "deeper": (("a", "node", "link"), deep.copy()),
    }
    ledger = ledger_of(tables)
    account.require_same(ledger, "one", "two")
    account.require_same(ledger, "deep", "deeper")
    for name, other in (("one", "other"), ("one", "deep")):
        with pytest.raises(Altered, match=f"other numbers in {name} than in {other}"):
            account.require_same(ledger, name, other)


def test_numbers_by_epoch_are_of_all_nodes_or_of_each() -> None:
    steps = np.arange(1.0, EPOCHS + 1)
    rows = np.arange(2.0 * NODES).reshape(2, NODES)
    ledger = ledger_of({"of_all": ("epoch", steps), "of_each": (("r", "node"), rows), "short": ("epoch", steps)})
    np.testing.assert_array_equal(account.by_epoch(ledger, "of_all"), steps)
    np.testing.assert_array_equal(account.by_epoch(ledger, "of_each"), rows[[0, 1, 1, 1]])  # the last row stays
    shorter = Ledger(ledger.data, "one", NODES, EPOCHS + 1)
    with pytest.raises(Altered, match="of_all of shape"):
        account.by_epoch(shorter, "of_all")
    with pytest.raises(Altered, match="has no nothing"):
        account.by_epoch(ledger, "nothing")


def test_the_loudest_signal_is_over_a_nodes_links() -> None:
    deep = np.arange(1.0, 2 * NODES + 1).reshape(1, NODES, 2)
    deep[0, 3] = (5.0, 0.0)  # a place without a link
    tables = {
        "deep": (("r", "node", "link"), deep),
        "flat": (("r", "node"), deep[:, :, 1] + 1),
        "silent": (("r", "node"), deep[:, :, 1]),
        "changing": (("s", "node"), np.repeat(deep[:, :, 0], 2, axis=0)),
    }
    ledger = ledger_of(tables)
    np.testing.assert_array_equal(account.loudest(ledger, "deep"), [2, 4, 6, 5, 10])
    np.testing.assert_array_equal(account.loudest(ledger, "flat"), deep[0, :, 1] + 1)
    for name in ("silent", "changing"):
        with pytest.raises(Altered, match=f"has a 0 in {name}, or changes it over epochs"):
            account.loudest(ledger, name)
