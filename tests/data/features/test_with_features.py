"""Features of a whole set: both parts, kept once, the same every time; and maps of one's own, which are tried."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import murmurcast as mc
from murmurcast.data.assumptions import assumptions, facts_of, require_declared_maps
from murmurcast.data.base import Dataset
from murmurcast.data.features import cache
from murmurcast.data.features.apply import BLOCK
from murmurcast.data.features.hog import Hog
from murmurcast.data.features.own import RowMap, probes

Array = NDArray[Any]
DIGITS = mc.datasets.digits()
SIZE = len(DIGITS.features) + len(DIGITS.test_features)
CHOSEN = ("deskew", mc.features.Hog(cells=4))
DECLARED = "I chose it from a textbook"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows HOG was asked for, call by call."""
    counted: list[int] = []
    plain = Hog.apply

    def apply(self: Hog, rows: Any, shape: Any) -> Any:
        counted.append(len(rows))
        return plain(self, rows, shape)

    monkeypatch.setattr(Hog, "apply", apply)
    return counted


def scaled(rows: Array) -> Array:
    return np.asarray(rows / (1 + np.abs(rows).sum(axis=1, keepdims=True)))


def test_both_parts_go_through_the_same_maps_block_by_block(calls: list[int]) -> None:
    result = DIGITS.with_features(CHOSEN)
    assert sum(calls) == SIZE
    assert max(calls) == BLOCK
    expected = mc.features.Hog(cells=4).apply(mc.features.Deskew().apply(DIGITS.test_features, (8, 8)), (8, 8))
    np.testing.assert_allclose(result.test_features, expected, atol=1e-6)
    assert result.features.shape == (1438, 4 * 4 * 8)
    assert not result.features.flags.writeable
    assert result.image_shape is None
    assert [one.kind for one in result.maps] == ["deskew", "hog"]
    np.testing.assert_array_equal(result.targets, DIGITS.targets)
    assert "128 features" in repr(result)


def test_maps_one_after_another_are_the_maps_at_once() -> None:
    at_once = DIGITS.with_features(CHOSEN)
    in_turn = DIGITS.with_features(CHOSEN[:1]).with_features(CHOSEN[1:])
    np.testing.assert_array_equal(at_once.features, in_turn.features)
    assert at_once.maps == in_turn.maps == at_once.split(0.3, 2).maps
    assert DIGITS.split(0.3, 2).image_shape == (8, 8)
    with pytest.raises(mc.Error, match='"deskew" needs images'):
        at_once.with_features(["deskew"])


def test_what_was_computed_once_is_read_again_and_nothing_is_computed(calls: list[int], empty_cache: Path) -> None:
    first = DIGITS.with_features(CHOSEN)
    done = len(calls)
    again = DIGITS.with_features(CHOSEN)
    assert len(calls) == done
    assert again.features.tobytes() == first.features.tobytes()
    assert again.test_features.tobytes() == first.test_features.tobytes()
    assert (again.maps, again.image_shape) == (first.maps, first.image_shape)
    assert len(list(empty_cache.iterdir())) == 1
    assert empty_cache.stat().st_mode & 0o077 == 0  # they are as private as the records


def test_other_data_parameters_and_versions_are_computed_anew(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(dataset: Dataset, *maps: Any) -> int:
        before = sum(calls)
        dataset.with_features(maps)
        return sum(calls) - before

    assert work(DIGITS, "hog") == SIZE
    assert work(DIGITS.normalised(0.0, 2.0), "hog") == SIZE
    assert work(DIGITS, mc.features.Hog(blur=0.7)) == SIZE
    assert work(DIGITS, "hog") == 0
    monkeypatch.setattr(Hog, "version", 2)
    assert work(DIGITS, "hog") == SIZE
    monkeypatch.setenv(cache.VARIABLE, "off")
    assert work(DIGITS, "hog") == work(DIGITS, "hog") == SIZE


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other"])
def test_a_damaged_entry_is_computed_anew_and_mended(damage: str, calls: list[int], empty_cache: Path) -> None:
    first = DIGITS.with_features(CHOSEN)
    (entry,) = empty_cache.iterdir()
    content = bytearray(entry.read_bytes())
    if damage == "bit":
        content[len(content) // 2] ^= 1
    entry.write_bytes(
        {"cut": bytes(content[:-999]), "bit": bytes(content), "empty": b"", "other": b"PK nothing"}[damage]
    )
    done = len(calls)
    again = DIGITS.with_features(CHOSEN)
    assert len(calls) == 2 * done
    np.testing.assert_array_equal(again.features, first.features)
    DIGITS.with_features(CHOSEN)
    assert len(calls) == 2 * done


def test_the_cache_is_bounded_and_the_entry_not_used_for_longest_goes(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entries() -> set[str]:
        return {path.name for path in empty_cache.glob("*.npz")}

    DIGITS.with_features(["unit-norm"])
    (first,) = entries()
    DIGITS.with_features(["deskew"])
    (second,) = entries() - {first}
    size = sum(path.stat().st_size for path in empty_cache.iterdir())
    for name, age in ((first, 50), (second, 100)):
        os.utime(empty_cache / name, ns=(age, age))
    DIGITS.with_features(["unit-norm"])  # used now
    monkeypatch.setattr(cache, "MAX_BYTES", int(1.2 * size))
    DIGITS.with_features(["deskew", "unit-norm"])
    assert first in entries()
    assert second not in entries()
    monkeypatch.setattr(cache, "MAX_BYTES", 1000)
    before = entries()
    DIGITS.with_features(["hog"])  # larger than all there may be: not kept, and nothing has to go for it
    assert entries() == before


def test_a_cache_that_cannot_be_written_to_is_no_hindrance(empty_cache: Path) -> None:
    empty_cache.write_text("a file where the folder would be")
    assert DIGITS.with_features(["hog"]).features.shape == (1438, 392)


def test_progress_is_told() -> None:
    stages: list[str] = []
    DIGITS.with_features(["hog"], on_stage=stages.append)
    assert stages[0] == "features: hog, 0 of 1438 examples"


def test_own_maps_are_applied_and_leave_name_declaration_and_fingerprint() -> None:
    own = mc.features.Own(function=scaled, data_free=DECLARED)
    result = DIGITS.with_features([own, "unit-norm"])
    expected = mc.features.UnitNorm().apply(scaled(DIGITS.features), None)
    np.testing.assert_allclose(result.features, expected, atol=1e-6)
    facts = facts_of(result.partition("iid", nodes=3))
    assert facts.declared == ((own.name, DECLARED),)
    assert facts.features_sha256 == own.fingerprint(64)
    lines = assumptions(facts, "record")
    (line,) = [line for line in lines if "is declared" in line]
    assert line.startswith(f'the feature map {own.name} is declared free of data: "{DECLARED}"; ')
    assert facts.features_sha256 in line
    assert "the features unit-norm were chosen without looking at the records" in lines
    require_declared_maps(facts)
    undeclared = DIGITS.with_features([mc.features.Own(function=scaled)]).partition("iid", nodes=3)
    with pytest.raises(mc.Error, match="nobody has declared"):
        require_declared_maps(facts_of(undeclared))


class Running:
    """Scales by the largest it has ever seen."""

    def __init__(self) -> None:
        self.largest = 0.0

    def __call__(self, rows: Array) -> Array:
        self.largest = max(self.largest, float(rows.max()))
        return rows / self.largest


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda rows: rows - rows.mean(axis=0), "depends on the rows beside it"),
        (lambda rows: rows / max(1.0, float(np.linalg.norm(rows))), "depends on the rows beside it"),
        (lambda rows: rows[np.argsort(rows[:, 20])], "depends on the rows beside it"),
        (Running(), "once it had seen the data"),
        (lambda rows: rows + np.random.default_rng().normal(size=rows.shape), "once it had seen the data"),
    ],
)
def test_a_map_that_sees_more_than_one_row_is_refused_whatever_was_declared(function: Any, words: str) -> None:
    bright = DIGITS.normalised(0.0, 0.5)  # beyond the public rows, so that a running maximum moves
    with pytest.raises(mc.Error, match=words) as raised:
        bright.with_features([mc.features.Own(function=function, data_free=DECLARED)])
    assert "is not free of data" in str(raised.value)
    assert raised.value.hint


def fitted_on(dataset: Dataset) -> mc.features.Own:
    """A control: principal directions of the private records, which look like any fixed map from outside."""
    directions = np.linalg.svd(dataset.features - dataset.features.mean(axis=0), full_matrices=False)[2][:10]
    return mc.features.Own(function=lambda rows: rows @ directions.T, data_free="I declare it free of data")


def test_a_map_fitted_beforehand_is_caught_by_its_hash_that_changes_with_the_data() -> None:
    changed = DIGITS.features.copy()
    changed[3] = 1 - changed[3]  # one record is another
    neighbour = replace(DIGITS, features=changed)
    one, other = fitted_on(DIGITS), fitted_on(neighbour)
    assert one.fingerprint(64) != other.fingerprint(64)
    facts = [
        facts_of(data.with_features([own]).partition("iid", 3)) for data, own in ((DIGITS, one), (neighbour, other))
    ]
    assert facts[0].features_sha256 != facts[1].features_sha256  # as their ledgers would show
    fixed = mc.features.Own(function=scaled)
    same = {facts_of(data.with_features([fixed]).partition("iid", 3)).features_sha256 for data in (DIGITS, neighbour)}
    assert len(same) == 1
    pinned = mc.features.Own(function=other.function, data_free=DECLARED, sha256=one.fingerprint(64))
    with pytest.raises(mc.Error, match="is not the one that was declared") as raised:
        neighbour.with_features([pinned])
    assert "compute in float64" in raised.value.hint


def test_a_map_in_float64_has_one_fingerprint_in_whatever_order_it_is_summed_up() -> None:
    """As processors of other kinds do; in float32 the last bit of some answer differs, and so does the fingerprint."""
    rng = np.random.default_rng(4)
    directions, order = rng.standard_normal((64, 100)), rng.permutation(64)

    def in_two_orders(kind: type[np.floating[Any]]) -> set[str]:
        weights = directions.astype(kind)
        maps: tuple[RowMap, ...] = (
            lambda rows: rows.astype(kind) @ weights,
            lambda rows: rows[:, order].astype(kind) @ weights[order],
        )
        return {mc.features.Own(function=one).fingerprint(64) for one in maps}

    assert len(in_two_orders(np.float64)) == 1
    assert len(in_two_orders(np.float32)) == 2


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda rows: rows[:, 0], "made (32,) of (32, 64)"),
        (lambda rows: rows[1:], "made (31, 64) of (32, 64)"),
        (lambda rows: rows * np.nan, "not finite"),
        (lambda rows: rows.nothing, "failed: AttributeError"),
        (3, "expected a function"),
    ],
)
def test_own_maps_that_give_something_else_are_errors(function: Any, words: str) -> None:
    with pytest.raises(mc.Error, match=re.escape(words)):
        DIGITS.with_features([mc.features.Own(function=function)])


@pytest.mark.parametrize("name", ["data_free", "name", "sha256"])
def test_words_about_own_maps_are_words(name: str) -> None:
    given: dict[str, Any] = {name: True}
    with pytest.raises(mc.Error, match=f"{name} is True, expected words") as raised:
        mc.features.Own(function=scaled, **given)
    assert name in raised.value.hint


def test_public_rows_are_the_same_for_everybody() -> None:
    assert probes(5).shape == (32, 5)
    np.testing.assert_array_equal(probes(5), probes(5))
    assert not probes(5).flags.writeable


def test_the_commitment_covers_the_names_of_the_maps() -> None:
    """Sets with the same numbers that went through other maps are not the same."""
    plain = DIGITS.with_features(["unit-norm"])
    renamed = replace(plain, maps=(*plain.maps, mc.features.UnitNorm()))
    assert plain.partition("iid", 3).sha256 != renamed.partition("iid", 3).sha256
    assert plain.partition("iid", 3).sha256 == replace(plain).partition("iid", 3).sha256


@pytest.mark.parametrize("shape", [(28, 28), (64,), 64, (8, 8, 1), (-8, -8), ("8", "8")])
def test_images_that_do_not_fit_are_an_error(shape: Any) -> None:
    with pytest.raises(mc.Error, match="image_shape"):
        replace(DIGITS, image_shape=shape)
