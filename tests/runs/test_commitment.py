"""The commitment to a run's data: it opens with the data and the key, and with nothing else."""

import hashlib
import hmac
import json
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.base import Dataset
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Altered
from murmurcast.runs import commitment
from tests.certificates.ledger_edits import make_plan, quadratic, regression
from tests.conftest import asymmetric_network

KEY = "ab" * 32


def of_rows(features: "np.typing.NDArray[np.float32]", nodes: int = 2) -> mc.RidgeRegression:
    targets = np.arange(len(features), dtype=np.float32)
    data = Dataset(name="mine", features=features, targets=targets, test_features=features, test_targets=targets)
    return mc.RidgeRegression(data=data.partition("sorted", nodes=nodes))


def test_it_is_the_keyed_hash_of_the_training_data_and_of_who_holds_it() -> None:
    features = np.arange(12, dtype=np.float32).reshape(4, 3)
    text = b"<f4 (4, 3)\n" + features.tobytes() + b"<f4 (4,)\n" + np.arange(4, dtype=np.float32).tobytes()
    text += b"<i8 (2,)\n" + np.array([0, 1]).tobytes() + b"<i8 (2,)\n" + np.array([2, 3]).tobytes()
    expected = hmac.digest(bytes.fromhex(KEY), hashlib.sha256(text).digest(), "sha256").hex()
    assert commitment.commitment(of_rows(features), KEY) == expected


def test_any_other_record_holder_or_key_gives_another() -> None:
    features = np.arange(12, dtype=np.float32).reshape(4, 3)
    first = commitment.commitment(of_rows(features), KEY)
    one_bit = features.copy()
    one_bit[3, 2] = np.nextafter(one_bit[3, 2], np.float32(99))
    others = [
        commitment.commitment(of_rows(one_bit), KEY),
        commitment.commitment(of_rows(features[[1, 0, 2, 3]]), KEY),
        commitment.commitment(of_rows(features, nodes=4), KEY),
        commitment.commitment(of_rows(features), "ac" * 32),
    ]
    assert len({first, *others}) == 5
    assert commitment.opens(of_rows(features), KEY, first)
    assert not commitment.opens(of_rows(one_bit), KEY, first)
    assert sha256_of([np.zeros(4)]) != sha256_of([np.zeros((2, 2))]) != sha256_of([np.zeros(2), np.zeros(2)])


def test_every_run_has_a_key_of_its_own_that_is_no_part_of_it(tmp_path: Path) -> None:
    problem = regression()
    runs = [mc.run(mc.power_controlled(make_plan(problem, "record")), problem) for _ in range(2)]
    first, again = (run.info["data_commitment"] for run in runs)
    assert first != again  # nobody sees that it is the same data
    runs[0].save(tmp_path / "run")
    key = commitment.read_key(tmp_path / "run")
    assert commitment.opens(problem, key, first)
    assert stat.S_IMODE((tmp_path / "run" / "data.key").stat().st_mode) == 0o600
    for path in (tmp_path / "run").iterdir():
        assert key.encode() not in path.read_bytes() or path.name == "data.key"
    assert key not in repr(runs[0])
    (tmp_path / "run" / "data.key").unlink()
    assert mc.certify(mc.load_run(tmp_path / "run")).verdict == "kept"
    with pytest.raises(mc.Error, match=r"data\.key is not there"):
        commitment.read_key(tmp_path / "run")


def test_problems_without_records_are_committed_to_as_well(tmp_path: Path) -> None:
    problem = quadratic()
    mc.run(mc.power_controlled(make_plan(problem)), problem, options=mc.RunOptions(folder=tmp_path / "run"))
    committed = json.loads((tmp_path / "run" / "run.json").read_text())["data_commitment"]
    key = commitment.read_key(tmp_path / "run")
    assert commitment.opens(problem, key, committed)
    moved = replace(problem, centre=problem.centre + np.eye(4, 2) * 1e-9)
    assert not commitment.opens(moved, key, committed)


def test_what_is_no_key_or_no_commitment_is_refused(tmp_path: Path) -> None:
    problem = quadratic()
    run = mc.run(mc.power_controlled(make_plan(problem)), problem)
    run.save(tmp_path)
    for content in (b"", b"words", b"AB" * 32, b"ab" * 31, b"ab" * 60, b"\xff" * 64):
        (tmp_path / "data.key").write_bytes(content)
        with pytest.raises(mc.Error, match="is not the key"):
            commitment.read_key(tmp_path)
    for wrong in ("", "AB" * 32, 7, None):
        replace(run, info=run.info | {"data_commitment": wrong}).save(tmp_path)
        with pytest.raises(Altered, match="data_commitment"):
            mc.load_run(tmp_path)


def test_a_run_that_came_to_no_checkpoint_goes_on_with_its_own_data_only(tmp_path: Path) -> None:
    """As after a crash before the first checkpoint: only the beginning is there."""
    begun, other = mc.Quadratic.random(4, 3, seed=1), mc.Quadratic.random(4, 3, seed=2)
    key = commitment.begin(tmp_path, begun, resume=False)
    assert commitment.begin(tmp_path, begun, resume=True) == key
    with pytest.raises(mc.Error, match="begun on other data") as caught:
        commitment.begin(tmp_path, other, resume=True)
    assert "another folder" in caught.value.hint
    network = asymmetric_network(3, 4)
    for problem, accepted in ((other, False), (begun, True)):
        plan = mc.plan(network, problem, mc.Budget(epsilon=2.0), mc.Schedule(epochs=4))
        options = mc.RunOptions(folder=tmp_path, resume=True)
        if not accepted:
            with pytest.raises(mc.Error, match="begun on other data"):
                mc.run(mc.power_controlled(plan), problem, options=options)
            continue
        mc.run(mc.power_controlled(plan), problem, options=options)
        assert not (tmp_path / "data.commitment").exists()
        assert mc.load_run(tmp_path).info["data_commitment"] == commitment.commitment(begun, key)
