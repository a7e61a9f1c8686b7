"""Figure 3 with slots that a radio can have: counted by the network, judged by the numbers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.network import gains, topologies
from murmurcast.reproduction import chapters, real_slots
from murmurcast.reproduction.settings import OURS
from murmurcast.reproduction.training import Run
from tests.reproduction.test_run_tables import runs

PAPER = mc.Network(gains=gains.paper(1))


def built(network: mc.Network = PAPER, **ends: float) -> list[Run]:
    plan: Any = SimpleNamespace(network=network, problem=SimpleNamespace(dim=7850))
    return [run._replace(plan=plan) for run in runs(**ends)]


def test_slots_sendings_time_and_energy_of_the_papers_network() -> None:
    full, half, own, rival = real_slots.ways(PAPER, 7850, 4)
    assert [way.slots for way in (full, half, own, rival)] == [1, 4, 4, 4]
    assert [way.possible for way in (full, half, own, rival)] == [False, True, True, True]
    assert [way.sendings.tolist() for way in (full, half, own, rival)] == [[1] * 4, [3] * 4, [1] * 4, [3] * 4]
    slot = (7850 / 2 + 64) / 0.8 / 1e6
    assert own.seconds == pytest.approx(4 * slot)
    assert own.joules == pytest.approx(4 * 0.1 * (7850 / 2 + 64) / 1e6)
    assert rival.joules == pytest.approx(3 * own.joules)
    assert real_slots.buildable((full, half, own, rival)) is own


def test_of_one_use_against_four_nothing_remains_on_the_papers_network() -> None:
    count, *others = real_slots.findings(*real_slots.ways_and_duels(built()))
    assert count.holds is False
    assert "1 against 4 takes full duplex" in count.text
    assert "takes 4 against 4 (half duplex 4, own slots 4), with 0.33 times the radiated energy" in count.text
    assert len(others) == 2


def test_on_a_tree_the_paper_s_count_can_be_had() -> None:
    path = topologies.path(4, seed=1)
    ways = real_slots.ways(path, 100, 4)
    assert ways[0].possible
    assert real_slots.buildable(ways) is ways[0]
    _, duels = real_slots.ways_and_duels(built())
    count, *_ = real_slots.findings(ways, duels)
    assert count.holds is True
    assert "no multicast" not in count.text


def test_who_is_ahead_after_as_many_slots_is_computed() -> None:
    ways, duels = real_slots.ways_and_duels(built(matched_mped2fl_1=0.7, published_mped2fl_2=0.65))
    _, first, second = real_slots.findings(ways, duels)
    assert first.holds is True
    assert "after 400 slots" in first.text
    assert "Algorithm 1 stands at 0.600, mPED2FL as published at 0.500" in first.text
    assert "at 0.700: there mPED2FL leads" in first.text
    assert second.holds is False
    assert "there Algorithm 1 leads" in second.text


def test_the_chapter_has_table_picture_and_curves_of_the_same_runs() -> None:
    listed = built()
    chapter = chapters.on_a_radio(listed)
    [table], [picture] = chapter.tables, chapter.pictures
    assert [row[3] for row in table.rows] == ["1", "4", "4", "4"]
    assert [row[2] for row in table.rows] == ["no", "yes", "yes", "yes"]
    assert picture.name == table.name == "real-slots"
    assert "Alg. 1, 1 slot (impossible)" in picture.figure.legends[0].get_texts()[0].get_text()
    headings, columns = chapter.curves["real-slots-1"]
    [ours] = [run for run in listed if (run.setting.group, run.setting.algorithm) == ("published", OURS)][:1]
    np.testing.assert_allclose(columns[:, headings.index("slots")], 4 * ours.result.metrics["epoch"])
    np.testing.assert_allclose(
        columns[:, headings.index("ours")], ours.result.metrics["own_accuracy"].mean(("seed", "node"))
    )
