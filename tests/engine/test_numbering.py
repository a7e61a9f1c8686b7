"""Who holds which node of a large network, against plain loops over all links."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.engine.numbering import Numbering, numbering, shared_out
from murmurcast.network.topologies import geometric, random_regular

NODES = 60


def one_way_links(seed: int = 0) -> csr_array:
    """Random links, most of them in one direction only."""
    rng = np.random.default_rng(seed)
    gains = rng.random((NODES, NODES)) * (rng.random((NODES, NODES)) < 0.06)
    np.fill_diagonal(gains, 0)
    gains[np.arange(NODES), (np.arange(NODES) + 1) % NODES] = 0.5
    return csr_array(gains)


def team_of(hearing: csr_array, processes: int) -> list[Numbering]:
    parts = shared_out(hearing, processes)
    return [numbering(hearing, parts, process) for process in range(processes)]


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
@pytest.mark.parametrize("has_metis", [True, False])
def test_every_signal_is_where_it_is_heard(processes: int, has_metis: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_metis:
        monkeypatch.setitem(sys.modules, "pymetis", None)
    hearing = one_way_links()
    team = team_of(hearing, processes)
    kept = np.concatenate([one.own for one in team])
    assert sorted(kept) == list(range(NODES))
    for process, one in enumerate(team):
        assert len(one.own) > 0
        assert all(np.array_equal(part, other) for part, other in zip(one.parts, team[0].parts, strict=True))
        rows = np.concatenate([one.own, *one.halo])
        assert len(rows) == one.rows == len(set(rows))
        row_of = one.row_of()
        for receiver in one.own:
            for sender in np.flatnonzero(hearing.toarray()[:, receiver]):
                assert rows[row_of[sender]] == sender
        for other, there in enumerate(team):
            np.testing.assert_array_equal(one.own[one.wanted[other]], there.halo[process])


def test_no_signal_crosses_that_nobody_there_hears() -> None:
    hearing = one_way_links(3)
    for process, one in enumerate(team_of(hearing, 3)):
        dense = hearing.toarray()
        for sender in np.concatenate(one.halo):
            assert dense[sender, one.own].any(), (process, sender)
        assert one.crossing == sum(len(part) for there in team_of(hearing, 3) for part in there.halo)


def test_neighbours_lie_close_together_and_few_links_are_cut() -> None:
    network = geometric(400, seed=2)
    (alone,) = team_of(network.gains, 1)
    row = alone.row_of()
    links = network.gains.tocoo()
    sender, receiver = links.coords
    assert np.abs(row[sender] - row[receiver]).max() < np.abs(sender - receiver).max() / 2
    halves = team_of(network.gains, 2)
    assert halves[0].crossing < 400 / 2
    # Where everything is as far as everything else, nearly every node is heard on the other side too.
    assert team_of(random_regular(400, 10, seed=2).gains, 2)[0].crossing > 400 / 2
