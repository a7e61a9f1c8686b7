"""Where a reproduction goes: nothing is lost, whatever lies there and whatever happens."""

import json
from pathlib import Path

import pytest

from murmurcast.errors import Error
from murmurcast.reproduction import reproduce as module
from murmurcast.reproduction import writing
from murmurcast.reproduction.outcome import Reproduction
from murmurcast.reproduction.reproduce import Watching, reproduce, require_replaceable


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but the work: a run's folder, a page and the mark are written as the real thing writes them."""
    count = iter(range(100))

    def make(folder: Path, *_: object) -> Reproduction:
        (folder / "runs" / f"run-{next(count)}").mkdir(parents=True)
        return Reproduction("digits", 1, (), (), ())

    def write(built: Reproduction, folder: Path, _: object) -> None:
        (folder / "report.html").write_text("page")
        (folder / writing.MARK).write_text(json.dumps(writing.as_dict(built)))

    monkeypatch.setattr(module, "_reproduction", make)
    monkeypatch.setattr(writing, "write", write)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def make(folder: Path) -> None:
    reproduce(folder, "digits", 1, Watching())


@pytest.mark.usefixtures("quick")
def test_an_earlier_one_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "reproduction"
    make(folder)
    assert names(folder) == ["report.html", "reproduction.json", "runs", "runs/run-0"]
    (folder / "my-notes.txt").write_text("mine")
    make(folder)
    assert names(folder) == ["my-notes.txt", "report.html", "reproduction.json", "runs", "runs/run-1"]
    assert (folder / "my-notes.txt").read_text() == "mine"


@pytest.mark.usefixtures("quick")
def test_a_link_stays_a_link_and_here_is_a_place_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    for _ in range(2):
        make(link)
    assert link.is_symlink()
    assert (tmp_path / "real" / "report.html").exists()
    monkeypatch.chdir(tmp_path / "real")
    make(Path())
    assert (tmp_path / "real" / "runs" / "run-2").exists()
    assert not list(tmp_path.rglob(".making*"))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_what_fails_leaves_the_earlier_one_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise stop

    make(tmp_path / "old")
    before = names(tmp_path)
    monkeypatch.setattr(writing, "write", fail)
    for folder in (tmp_path / "old", tmp_path / "new"):
        with pytest.raises(stop):
            make(folder)
    assert names(tmp_path) == before


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"made_by": "somebody"}', "\x00"])
def test_a_mark_of_somebody_else_s_is_not_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "reproduction.json").write_text(content)
    with pytest.raises(Error, match="something else"):
        require_replaceable(tmp_path)
