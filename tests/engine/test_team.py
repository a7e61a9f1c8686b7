"""What processes tell each other, with a wire that is a queue; `tests/cli/test_processes.py` has real ones."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.engine import large
from murmurcast.engine import team as wires
from murmurcast.engine.numbering import Numbering
from murmurcast.engine.team import Team
from tests.engine.test_numbering import NODES, one_way_links, team_of

SIGNAL = (2, 3)


def said_by(nodes: NDArray[Any]) -> FloatArray:
    """[nodes, ...] a signal that only this node sends."""
    return np.asarray(nodes)[:, None, None] + np.arange(6.0).reshape(SIGNAL) / 10


@pytest.mark.parametrize("processes", [2, 3, 5])
@pytest.mark.parametrize("bytes_at_once", [2**28, 100])
def test_just_the_rows_of_the_cut_cross(processes: int, bytes_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: defaultdict[tuple[int, int], SimpleQueue[Any]] = defaultdict(SimpleQueue)
    crossed: list[int] = []

    def swap(self: Team, other: int, said: NDArray[Any], heard: NDArray[Any]) -> NDArray[Any]:
        crossed.append(len(said))
        sent[self.rank, other].put(said.copy())
        got: NDArray[Any] = sent[other, self.rank].get()
        assert got.shape == heard.shape
        return got

    def exchanged(one: Numbering) -> FloatArray:
        rows = np.full((one.rows, *SIGNAL), np.nan)
        rows[: len(one.own)] = said_by(one.own)
        Team(processes, one.process).exchange(one, rows)
        return rows

    monkeypatch.setattr(Team, "_swap", swap)
    monkeypatch.setattr(wires, "_BYTES_AT_ONCE", bytes_at_once)
    team = team_of(one_way_links(), processes)
    with ThreadPoolExecutor(processes) as at_once:
        result = list(at_once.map(exchanged, team))
    for one, rows in zip(team, result, strict=True):
        np.testing.assert_array_equal(rows, said_by(np.concatenate([one.own, *one.halo])))
    assert sum(crossed) == team[0].crossing > NODES / 4


def test_one_process_shares_the_network_out_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What METIS finds may differ from process to process."""
    hearing, stated = one_way_links(), []

    def from_leader(self: Team, values: NDArray[Any]) -> NDArray[Any]:
        if self.leads:
            stated.append(values)
        return np.asarray(stated[0])

    monkeypatch.setattr(Team, "from_leader", from_leader)
    expected = large._parts(Team(3, 0), hearing)
    assert sorted(np.concatenate(expected)) == list(range(NODES))
    monkeypatch.setattr(large, "shared_out", lambda *_: pytest.fail("a process that does not lead cut the network"))
    for process in (1, 2):
        result = large._parts(Team(3, process), hearing)
        assert [part.tolist() for part in result] == [part.tolist() for part in expected]


def test_one_process_is_a_team() -> None:
    alone = Team(1, 0)
    assert alone.leads
    assert alone.here == 1
    assert alone.same_everywhere(np.arange(3))
    np.testing.assert_array_equal(alone.gather(np.arange(3)), [[0, 1, 2]])
    np.testing.assert_array_equal(alone.from_leader(np.arange(3)), [0, 1, 2])
