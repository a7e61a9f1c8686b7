"""`certify`, `compare` and `report` on folders of runs that were spoilt, or forged with fresh hashes."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import murmurcast as mc
from murmurcast.runs import result as results
from murmurcast.runs import sealed
from murmurcast.runs.labelled import from_xarray
from tests.certificates.ledger_edits import hashed_anew, make_plan, quadratic
from tests.fuzz.corruptions import (
    FLOATS,
    STAND_INS,
    VALUES,
    Bomb,
    Done,
    as_npy,
    bomb,
    call,
    fuzz,
    npy,
    npz,
    replaced,
    spoilt,
    stand_in,
)

FILES = (results.RUN, results.EXPERIMENT, results.METRICS, results.TABLE, results.LEDGER, results.MODELS)
COMMANDS = (("certify", "ours", "--json"), ("compare", "ours", "--json"), ("report", "ours", "-o", "page.html"))
TEXT = "[notes]\nunit = 'node'\n"  # of a run made in Python: there is no plan to make anew


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built, problem = tmp_path_factory.mktemp("runs"), quadratic()
    ours = mc.power_controlled(make_plan(problem))
    mc.run(ours, problem, seeds=(3, 8), options=mc.RunOptions(name="ours", folder=built / "ours", experiment=TEXT))
    mc.run(mc.mped2fl(make_plan(problem)), problem, options=mc.RunOptions(name="rival", folder=built / "rival"))
    (built / "whole").mkdir()
    shutil.copytree(built / "ours", built / "whole" / "ours")
    return built


def restored(folder: Path) -> None:
    shutil.rmtree(folder / "ours")
    shutil.copytree(folder / "whole" / "ours", folder / "ours")


def outcomes(folder: Path) -> list[Done]:
    """What all commands make of it; a certificate stays only where it was earned, and no page where none was made."""
    (folder / "page.html").unlink(missing_ok=True)
    done = [call(*command, folder=folder) for command in COMMANDS]
    assert done[0].code in (0, 1)
    assert (folder / "page.html").exists() == (done[2].code == 0)
    assert (folder / "ours" / results.CERTIFICATE).is_file() == (done[0].code == 0 and "tier 1" in done[0].out)
    (folder / "ours" / results.CERTIFICATE).unlink(missing_ok=True)
    return done


@pytest.fixture(scope="module")
def true(folder: Path) -> list[Done]:
    done = outcomes(folder)
    assert [outcome.code for outcome in done] == [0, 0, 0]
    return done


def require_true_or_caught(folder: Path, true: list[Done]) -> None:
    certified = call(*COMMANDS[0], folder=folder)
    if certified.code == 1 and '"verdict"' not in certified.out:  # it does not load, or its ledger is none
        return
    certified = outcomes(folder)[0]
    if certified.code == 0:
        outcome, expected = json.loads(certified.out), json.loads(true[0].out)
        if outcome["verdict"] == "kept":
            np.testing.assert_allclose(outcome["mu"], expected["mu"], rtol=3e-9)
            np.testing.assert_allclose(outcome["epsilon"], expected["epsilon"], rtol=3e-9)
            assert [outcome[key] for key in ("unit", "delta", "tier")] == [
                expected[key] for key in ("unit", "delta", "tier")
            ]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@fuzz(8)
def test_any_accident_is_noticed(folder: Path, true: list[Done], name: str, data: st.DataObject) -> None:
    whole = (folder / "ours" / name).read_bytes()
    content = data.draw(spoilt(whole))
    with replaced(folder / "ours" / name, content):
        outcome = outcomes(folder)
    if content == whole:
        return
    if name == results.RUN and outcome[0].code == 0:  # only what JSON does not count was changed
        assert outcome == true
    else:
        assert [done.code for done in outcome] == [1, 2, 2]


@pytest.mark.slow
@given(seed=st.randoms(use_true_random=False), indent=st.sampled_from([None, 0, 7]))
@fuzz(3)
def test_order_and_space_in_run_json_change_nothing(folder: Path, true: list[Done], seed: Any, indent: Any) -> None:
    stated = json.loads((folder / "ours" / results.RUN).read_text())
    items = list(stated.items())
    seed.shuffle(items)
    with replaced(folder / "ours" / results.RUN, json.dumps(dict(items), indent=indent).encode()):
        assert outcomes(folder)[:2] == true[:2]


@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", FILES)
def test_something_else_in_its_place(folder: Path, name: str, kind: str) -> None:
    with stand_in(folder / "ours" / name, kind):
        certified, compared, reported = (call(*command, folder=folder) for command in COMMANDS)
    assert certified.code in (1, 2)  # without run.json there is no run, altered or not
    assert (compared.code, reported.code) == (2, 2)
    assert not (folder / "ours" / results.CERTIFICATE).exists()


def edited(data: st.DataObject, info: dict[str, Any]) -> dict[str, Any]:
    place, keys = info, st.sampled_from(sorted(info))
    key = data.draw(keys)
    if isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    if data.draw(st.integers(0, 5)) == 0:
        del place[key]
    else:
        place[key] = data.draw(VALUES | st.none() | st.just("\ud800"))
    return info


@given(data=st.data())
@fuzz(15)
def test_a_run_json_forged(folder: Path, true: list[Done], data: st.DataObject) -> None:
    stated = json.loads((folder / "ours" / results.RUN).read_text())
    info = edited(data, {key: value for key, value in stated.items() if key not in ("format", "sha256")})
    with replaced(folder / "ours" / results.RUN, b""):
        (folder / "ours" / results.RUN).write_text(json.dumps(stated))
        hashed_anew(folder / "ours", info)
        require_true_or_caught(folder, true)


@contextmanager
def forged(run: Path, name: str, content: bytes) -> Iterator[None]:
    """For a while a file of the run holds something else, and run.json its hash."""
    with replaced(run / results.RUN, (run / results.RUN).read_bytes()), replaced(run / name, content):
        hashed_anew(run)
        yield


def spoilt_variable(data: st.DataObject, dataset: xr.Dataset) -> xr.Dataset:
    """One variable or attribute with other numbers, another type, shape or name; or in another order."""
    name = data.draw(st.sampled_from([str(name) for name in dataset.variables]))
    outcome = dataset[name]
    values = np.array(outcome)
    what = data.draw(st.sampled_from(["number", "all", "type", "drop", "reverse", "cut", "attribute", "turn"]))
    if what == "number":
        values = values.astype(np.float64)
        values.flat[data.draw(st.integers(0, values.size - 1))] = data.draw(FLOATS)
        return dataset.assign({name: (outcome.dims, values)})
    if what == "all":
        return dataset.assign({name: (outcome.dims, np.full(values.shape, data.draw(FLOATS)))})
    if what == "type":
        return dataset.assign(
            {name: (outcome.dims, values.astype(data.draw(st.sampled_from(["U9", "f2", "i8", "?"]))))}
        )
    if what == "drop":
        return dataset.drop_vars(name)
    if what == "reverse":
        return dataset.assign({name: (outcome.dims, values[::-1].copy())})
    if what in ("cut", "turn") and outcome.dims:
        dim = data.draw(st.sampled_from(list(outcome.dims)))
        part = slice(None, None, -1) if what == "turn" else slice(0, data.draw(st.integers(0, 2)))
        return dataset.isel({dim: part})
    values_of = st.sampled_from(["", "x\x1b", 0, -1, 2**40, np.nan, np.inf, 1e308, [1.0, 2.0]])
    return dataset.assign_attrs({data.draw(st.sampled_from([*map(str, dataset.attrs), "more"])): data.draw(values_of)})


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [results.METRICS, results.LEDGER])
@given(data=st.data())
@fuzz(12)
def test_figures_and_ledger_forged(folder: Path, true: list[Done], name: str, data: st.DataObject) -> None:
    with np.errstate(all="ignore"):
        changed = spoilt_variable(data, sealed.dataset((folder / "ours" / name).read_bytes(), name))
        content = from_xarray(changed).to_netcdf()
    with forged(folder / "ours", name, content):
        require_true_or_caught(folder, true)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [results.METRICS, results.LEDGER, results.MODELS, results.EXPERIMENT])
@given(data=st.data())
@fuzz(8)
def test_accidents_with_fresh_hashes(folder: Path, true: list[Done], name: str, data: st.DataObject) -> None:
    models = npy().map(lambda content: npz(published=content))
    strategy = spoilt((folder / "ours" / name).read_bytes())
    content = data.draw(strategy | models if name == results.MODELS else strategy)
    with forged(folder / "ours", name, content):
        require_true_or_caught(folder, true)


def test_pickles_are_not_opened(folder: Path, true: list[Done]) -> None:
    del true
    with forged(folder / "ours", results.MODELS, npz(published=as_npy(bomb(), pickled=True))):
        assert [done.code for done in outcomes(folder)] == [1, 2, 2]
    assert not Bomb.went_off


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", ["\x1b[31mred\x07", "[/bold][red]", "$\\frac{", "_hidden", "a\nb", "\udcff", ""])
def test_names_are_shown_and_not_obeyed(folder: Path, true: list[Done], name: str) -> None:
    del true
    stated = json.loads((folder / "ours" / results.RUN).read_text())
    info = {key: value for key, value in stated.items() if key not in ("format", "sha256")} | {"name": name}
    with replaced(folder / "ours" / results.RUN, json.dumps(stated).encode()):
        hashed_anew(folder / "ours", info)
        assert call("compare", "ours", "rival", "--figure", "courses.svg", folder=folder).code == 0
        assert call("report", "ours", "rival", "-o", "names.html", folder=folder).code == 0
        assert call("certify", "ours", folder=folder).code == 0
        (folder / "ours" / results.CERTIFICATE).unlink()


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"9" * 9_000, b"\xff", b'{"made_by": 3}'], ids=repr)
def test_a_certificate_of_somebody_else_stays(folder: Path, true: list[Done], content: bytes) -> None:
    del true
    path = folder / "ours" / results.CERTIFICATE
    path.write_bytes(content)
    assert call("certify", "ours", folder=folder).code == 2
    assert path.read_bytes() == content
    path.unlink()


def test_nothing_is_written_through_links(folder: Path, true: list[Done]) -> None:
    """Whoever made the folder cannot have files written, or removed, elsewhere."""
    del true
    outside = folder / "outside.json"
    outside.write_text('{"made_by": "murmurcast certify"}')
    path, temporary = folder / "ours" / results.CERTIFICATE, folder / "ours" / f".{os.getpid()}.part"
    path.symlink_to(outside)
    temporary.symlink_to(outside)
    assert call("certify", "ours", folder=folder).code == 0
    assert not path.is_symlink()
    assert outside.read_text() == '{"made_by": "murmurcast certify"}'
    path.unlink()
    path.mkdir()
    assert call("certify", "ours", folder=folder).code == 2
    path.rmdir()
    path.symlink_to(folder / "new.json")
    assert call("certify", "ours", folder=folder).code == 0
    assert not (folder / "new.json").exists()
    path.unlink()
    os.mkfifo(path)
    assert call("certify", "ours", folder=folder).code == 2
    restored(folder)
