"""`run --resume` from a folder that was spoilt: on to the very same numbers, or an error; and reproductions."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.reproduction import writing
from murmurcast.reproduction.reproduce import _put_in_place, require_replaceable
from murmurcast.runs import checkpoint
from murmurcast.runs import result as results
from murmurcast.runs import run as runs
from tests.fuzz.corruptions import STAND_INS, Bomb, as_npy, bomb, call, fuzz, npy, npz, spoilt, stand_in

EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 6
[run]
seeds = [4, 9]
checkpoint_every = 3
"""


class Stopped(Exception):  # noqa: N818
    """The machine went down."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment, a whole run of it, and one that was cut short."""
    built = tmp_path_factory.mktemp("cut")
    (built / "my.toml").write_text(EXPERIMENT)
    assert call("run", "my.toml", "--json", "--out", "whole", folder=built).code == 0
    experiment = experiment_files.load(built / "my.toml")
    problem = experiment.build_problem(3)
    algorithm = experiment.build_algorithm(experiment.build_plan(problem=problem))

    def stop(done: int, of: int, latest: dict[str, float]) -> None:
        del of, latest
        if done == 4:
            raise Stopped

    options = runs.RunOptions(folder=built / "cut", checkpoint_every=3, on_progress=stop)
    with pytest.raises(Stopped):
        runs.run(algorithm, problem, seeds=(4, 9), options=options)
    (built / "cut" / results.EXPERIMENT).write_text(experiment.as_toml())
    return built


def require_same_or_refused(folder: Path, name: str, content: bytes, *, refused: bool = False) -> None:
    again = folder / "again"
    shutil.rmtree(again, ignore_errors=True)
    shutil.copytree(folder / "cut", again)
    (again / name).write_bytes(content)
    done = call("run", "my.toml", "--json", "--out", "again", "--resume", folder=folder)
    assert not Bomb.went_off
    if done.code:
        assert done.code == 2
        assert (again / name).read_bytes() == content, "what was there is lost"
        return
    assert not refused
    np.testing.assert_array_equal(
        results.load_run(again).published, results.load_run(folder / "whole").published, strict=True
    )


def test_a_whole_checkpoint_goes_on_to_the_same_numbers(folder: Path) -> None:
    content = (folder / "cut" / results.CHECKPOINT).read_bytes()
    require_same_or_refused(folder, results.CHECKPOINT, content)
    assert (folder / "again" / results.RUN).exists()


@pytest.mark.parametrize("name", [results.CHECKPOINT, results.EXPERIMENT])
@given(data=st.data())
@fuzz(25)
def test_any_accident(folder: Path, name: str, data: st.DataObject) -> None:
    require_same_or_refused(folder, name, data.draw(spoilt((folder / "cut" / name).read_bytes())))


@given(data=st.data())
@fuzz(25)
def test_a_checkpoint_written_anew_is_refused(folder: Path, data: st.DataObject) -> None:
    """Arrays and head with other numbers, types or shapes: going on would give other models, silently."""
    with np.load(folder / "cut" / results.CHECKPOINT) as archive:
        parts = {name: as_npy(array) for name, array in archive.items()}
        head = json.loads(str(archive["head"]))
        name = data.draw(st.sampled_from(sorted(parts)))
        array = archive[name]
    if name == "head":
        key = data.draw(st.sampled_from(sorted(head)))
        head[key] = data.draw(st.sampled_from([None, -1, 0, 2**70, 1e308, float("nan"), "x", [], {}, [[1]], True]))
        parts[name] = as_npy(np.array(json.dumps(head)))
    else:
        changed = st.sampled_from([array[..., :0], array + 1, array[::-1] * 2, array.astype(np.float16), bomb()])
        parts[name] = data.draw(changed.map(lambda outcome: as_npy(outcome, pickled=True)) | npy())
    require_same_or_refused(folder, results.CHECKPOINT, npz(**parts), refused=True)


@pytest.mark.parametrize("content", [b"[" * 50_000, b"a = " + b"[" * 50_000, b"a" + b".a" * 3_000 + b" = 1"], ids=len)
def test_an_experiment_nested_without_end(folder: Path, content: bytes) -> None:
    require_same_or_refused(folder, results.EXPERIMENT, content, refused=True)


@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", [results.CHECKPOINT, results.EXPERIMENT])
def test_something_else_in_its_place(folder: Path, name: str, kind: str) -> None:
    if name == results.CHECKPOINT and kind in ("dangling", "loop", "nothing"):
        return  # a run that had not come to a checkpoint begins anew
    with stand_in(folder / "cut" / name, kind):
        assert call("run", "my.toml", "--json", "--out", "cut", "--resume", folder=folder).code == 2
    checkpoint.load(folder / "cut" / results.CHECKPOINT)


@given(content=st.binary(max_size=60) | st.just(b"[" * 50_000) | st.sampled_from([b"{}", b"[]", b'{"made_by": 3}']))
@fuzz(30)
def test_only_a_reproduction_is_replaced(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    built = tmp_path_factory.mktemp("reproduction")
    (built / writing.MARK).write_bytes(content)
    with pytest.raises(Error, match="something else"):
        require_replaceable(built)
    assert call("reproduce", "--out", built, folder=built).code == 2
    assert (built / writing.MARK).read_bytes() == content


@pytest.mark.parametrize("kind", ["folder", "dangling", "loop", "pipe", "device"])
def test_something_else_in_the_place_of_the_mark(tmp_path: Path, kind: str) -> None:
    (tmp_path / writing.MARK).write_text('{"made_by": "murmurcast 0"}')
    require_replaceable(tmp_path)
    with stand_in(tmp_path / writing.MARK, kind), pytest.raises(Error, match="something else"):
        require_replaceable(tmp_path)


def test_a_reproduction_is_not_written_through_links(tmp_path: Path) -> None:
    for name in ("outside", "beside", "earlier"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "mine").write_text("mine")
    (tmp_path / "beside" / "figures").mkdir()
    (tmp_path / "beside" / "summary.md").write_text("new")
    (tmp_path / "earlier" / "figures").symlink_to(tmp_path / "outside")
    (tmp_path / "earlier" / "summary.md").symlink_to(tmp_path / "outside" / "mine")
    _put_in_place(tmp_path / "beside", tmp_path / "earlier")
    assert (tmp_path / "outside" / "mine").read_text() == "mine"
    assert not (tmp_path / "earlier" / "figures").is_symlink()
    assert (tmp_path / "earlier" / "summary.md").read_text() == "new"


def test_control_characters_do_not_reach_a_terminal(tmp_path: Path) -> None:
    """In a process of its own, on a terminal: nothing takes them out on the way."""
    (tmp_path / "my.toml").write_text(
        '[network]\n"\\u001b[31mred\\u0007\\nhint: do it" = 1\n[privacy]\nepsilon = 1.0\n'
    )
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", "from murmurcast.cli import main; main()", "plan", "my.toml"]
    environment = os.environ | {"PYTHONPATH": str(Path(experiment_files.__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, stderr=theirs, stdout=subprocess.PIPE, check=False)
    os.close(theirs)
    stated = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 2
    assert all(char.isprintable() or char in "\r\n" for char in stated), ascii(stated)
    assert [line.split(": ")[0] for line in stated.splitlines()] == ["error", "hint"]
