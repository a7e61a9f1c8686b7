"""A run's folder: what is written is read back, and what is not whole does not load."""

import getpass
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.errors import Error
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from murmurcast.runs.compare import compare
from murmurcast.runs.result import Result, load_run
from murmurcast.runs.run import RunOptions, run
from tests.conftest import asymmetric_network

FILES = ("experiment.toml", "ledger.nc", "metrics.csv", "metrics.nc", "published.npz", "run.json")


@pytest.fixture(scope="module")
def result() -> Result:
    problem = Quadratic.random(4, 3, seed=1, ball=2.0)
    built = plan(asymmetric_network(3, 4), problem, Budget(epsilon=5.0), Schedule(epochs=12))
    return run(
        power_controlled(built),
        problem,
        seeds=(3, 8),
        options=RunOptions(evaluate_every=5, name="my", experiment="# réglé\n[network]\n"),
    )


@pytest.fixture(scope="module")
def saved(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "runs" / "my"
    result.save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(saved, tmp_path / "my"))


def refused(folder: Path) -> Error:
    with pytest.raises(Error) as raised:
        load_run(folder)
    assert raised.value.hint
    return raised.value


def test_what_is_saved_is_loaded(result: Result, saved: Path) -> None:
    assert sorted(entry.name for entry in saved.iterdir()) == ["data.key", *FILES]
    loaded = load_run(saved)
    assert loaded.metrics.identical(result.metrics)
    assert loaded.ledger.identical(result.ledger)
    np.testing.assert_array_equal(loaded.published, result.published)
    assert loaded.published.dtype == result.published.dtype
    assert loaded.info == json.loads(json.dumps(result.info))
    assert loaded.experiment == result.experiment
    assert loaded.name == "my"


def test_shapes_and_labels(result: Result) -> None:
    metrics = result.metrics
    assert metrics["own_loss"].dims == ("seed", "epoch", "node")
    assert metrics["seed"].values.tolist() == [3, 8]
    assert metrics["epoch"].values.tolist() == [5, 10, 12]
    assert metrics["channel_uses"].values.tolist() == [5, 10, 12]
    assert metrics["consensus_error"].dims == ("seed", "epoch")
    assert metrics["loudest"].dims == ("seed", "node")
    assert (metrics["loudest"] >= metrics["sent_power"].isel(epoch=-1)).all()
    assert result.published.shape == (2, 4, 3)
    assert result.final("own_loss").shape == (2, 4)
    assert result.final("consensus_error").shape == (2,)


def test_the_table_says_what_the_set_says(saved: Path) -> None:
    loaded, table = load_run(saved).metrics, pd.read_csv(saved / "metrics.csv")
    assert len(table) == 2 * 3 * 4
    labelled = table.set_index(["seed", "epoch", "node"])
    for name, values in loaded.items():
        for row in labelled.index:
            place = {
                key: label for key, label in zip(("seed", "epoch", "node"), row, strict=True) if key in values.dims
            }
            outcome, expected = labelled.loc[row, name], float(values.sel(place))
            assert outcome == pytest.approx(expected, rel=1e-6), (name, row)


def test_the_ledger_holds_what_the_engine_was_given(result: Result) -> None:
    ledger = result.ledger
    assert ledger.attrs["unit"] == "node"
    assert ledger.attrs["epochs"] == 12
    assert ledger.attrs["format"] == 2
    assert ledger.attrs["rounds"] == "model"
    assert ledger.attrs["model_channel"] == "air"
    assert ledger.attrs["model_draws"] == "noise: normal of a node"
    assert ledger.attrs["start_gradients"] == 0
    assert ledger["model_sending_noise"].shape == (1, 4)
    assert ledger["model_sending_schedule"].shape == (12,)
    gains = np.zeros((4, 4))
    gains[ledger["model_sender"], ledger["model_receiver"]] = ledger["model_gain"]
    np.testing.assert_array_equal(gains, asymmetric_network(3, 4).gains.toarray())


def test_nothing_tells_who_ran_it_or_where(saved: Path) -> None:
    info = json.loads((saved / "run.json").read_text())
    info.pop("sha256")
    text = json.dumps(info)
    for secret in (str(Path.home()), str(Path.cwd()), str(saved.parent), "/"):
        assert secret not in text, secret
    words = {word for value in _leaves(info) for word in str(value).split()}
    assert getpass.getuser() not in words


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    return [leaf for inner in value for leaf in _leaves(inner)] if isinstance(value, list) else [value]


def test_a_run_says_that_it_is_a_simulation(result: Result) -> None:
    assert "no privacy is claimed" in result.info["privacy"]["note"]
    assert result.info["privacy"]["epsilon"] == pytest.approx(5.0)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refused(folder)


@pytest.mark.parametrize("name", FILES[:-1])
@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b + b" ", lambda b: bytes([b[0] ^ 1]) + b[1:]])
def test_a_cut_or_edited_file_is_refused(folder: Path, name: str, spoil: Callable[[bytes], bytes]) -> None:
    (folder / name).write_bytes(spoil((folder / name).read_bytes()))
    assert "is not what the run wrote" in str(refused(folder))


def test_files_of_two_runs_mixed_up_are_refused(folder: Path, result: Result, tmp_path: Path) -> None:
    Result(metrics=result.metrics * 2, ledger=result.ledger, published=result.published, info=result.info).save(
        tmp_path / "other"
    )
    shutil.copy(tmp_path / "other" / "metrics.nc", folder / "metrics.nc")
    assert "is not what the run wrote" in str(refused(folder))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"3",
        b'"run"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b"{}",
        b'{"format": 1, "sha256": {}, "name": "my"}',
        b'{"format": 3, "sha256": {}, "name": "my"}',
        b'{"format": 2, "sha256": [], "name": "my"}',
        b'{"format": 2, "sha256": {}, "name": 3}',
        b'{"format": 2, "sha256": {}, "name": "my"}',
    ],
)
def test_a_run_json_of_something_else_is_refused(folder: Path, content: bytes) -> None:
    (folder / "run.json").write_bytes(content)
    refused(folder)


@pytest.mark.parametrize("key", ["privacy", "algorithm", "seeds", "epochs", "settings"])
@pytest.mark.parametrize("wrong", [None, "text", 3, [1, 2]], ids=str)
def test_a_run_json_with_wrong_types_is_refused_or_harmless(folder: Path, key: str, wrong: object) -> None:
    """Hashes of all files are right, one entry of run.json is not: no traceback, here or in a comparison."""
    info = json.loads((folder / "run.json").read_text())
    info[key] = wrong
    (folder / "run.json").write_text(json.dumps(info))
    _loads_or_is_refused(folder)


def test_a_run_json_without_its_privacy_is_refused_or_harmless(folder: Path) -> None:
    info = json.loads((folder / "run.json").read_text())
    del info["privacy"]
    (folder / "run.json").write_text(json.dumps(info))
    _loads_or_is_refused(folder)


def _loads_or_is_refused(folder: Path) -> None:
    try:
        str(compare(load_run(folder)))
    except Error as problem:
        assert problem.hint  # noqa: PT017 - either way is fine, a traceback is not


@pytest.mark.parametrize("name", ["metrics.nc", "ledger.nc", "published.npz", "experiment.toml"])
def test_a_file_that_is_none_is_named_though_its_hash_holds(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff none")
    info = json.loads((folder / "run.json").read_text())
    info["sha256"][name] = hashlib.sha256(b"\xff none").hexdigest()
    (folder / "run.json").write_text(json.dumps(info))
    assert f"{folder / name} cannot be read" in str(refused(folder))


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_as_run_json_are_refused(folder: Path, content: bytes) -> None:
    (folder / "run.json").write_bytes(content)
    refused(folder)


@given(data=st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_json_with_bytes_changed_loads_or_is_refused(saved: Path, folder: Path, data: st.DataObject) -> None:
    content = bytearray((saved / "run.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "run.json").write_bytes(bytes(content))
    try:
        load_run(folder)
        load_run(folder)
    except Error as problem:
        assert problem.hint  # noqa: PT017


def test_an_edited_epsilon_in_run_json_does_not_load(folder: Path) -> None:
    """What was edited does not load, says the module; the number that matters most stands in run.json itself."""
    text = (folder / "run.json").read_text()
    info = json.loads(text)
    info["privacy"]["epsilon"] = 0.01
    (folder / "run.json").write_text(json.dumps(info, indent=2) + "\n")
    refused(folder)


def test_what_is_no_folder_of_a_run(tmp_path: Path) -> None:
    assert "is not a folder" in str(refused(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    assert "is not a folder" in str(refused(tmp_path / "file"))
    assert "holds no finished run" in str(refused(tmp_path))
    (tmp_path / "checkpoint.npz").write_bytes(b"")
    assert "--resume" in refused(tmp_path).hint
    (tmp_path / "run.json").mkdir()
    refused(tmp_path)


def test_saving_where_nothing_can_be_written(result: Result, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(Error, match="cannot be made") as raised:
            result.save(wrong)
        assert raised.value.hint


def test_saving_again_replaces_all_of_it(result: Result, folder: Path) -> None:
    Result(metrics=result.metrics, ledger=result.ledger, published=result.published * 0, info=result.info).save(folder)
    assert (load_run(folder).published == 0).all()


def test_a_table_too_long_to_read_holds_means_over_nodes(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("murmurcast.runs.labelled.MAX_TABLE_LINES", 1)
    result.save(tmp_path / "short")
    table = pd.read_csv(tmp_path / "short" / "metrics.csv")
    assert "node" not in table
    assert len(table) == result.metrics.sizes["seed"] * result.metrics.sizes["epoch"]
