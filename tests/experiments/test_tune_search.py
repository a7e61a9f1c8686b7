"""Which settings are tried: a grid, what lies beyond its edge, then the surroundings of the best."""

import math

import pytest

from murmurcast.experiments.tune_search import COARSE, Choices, Setting, Try, best, edges, rounded, search
from murmurcast.planning.schedule import Schedule

FIRST = Setting(clip=1.0, step=0.4, epochs=40, decay="sqrt")


class Bowl:
    """Best at one way and clip, and worse with every factor away from them."""

    def __init__(self, way: float, clip: float, decay: str = "constant") -> None:
        self.way, self.clip, self.decay = way, clip, decay
        self.asked: list[Setting] = []

    def __call__(self, setting: Setting) -> Try:
        self.asked.append(setting)
        away = abs(math.log(setting.way / self.way)) + 0.3 * abs(math.log(setting.clip / self.clip))
        return Try(setting, 1 - 0.05 * away - 0.01 * (setting.decay != self.decay) - 0.001 * (40 - setting.epochs))


def result(judge: Bowl, choices: Choices | None = None, first: Setting = FIRST) -> tuple[Setting, tuple[Try, ...]]:
    tries = search(first, choices or Choices(), judge, lambda *_: None, largest=True)
    chosen = best(tries, largest=True)
    assert chosen is not None
    return chosen.setting, tries


@pytest.mark.parametrize("way", [0.003, 0.7, 30.0, 5000.0])
@pytest.mark.parametrize("clip", [0.05, 1.0, 11.0])
def test_it_comes_near_the_best_wherever_that_lies(way: float, clip: float) -> None:
    chosen, tries = result(Bowl(way * FIRST.way, clip))
    assert abs(math.log(chosen.way / (way * FIRST.way))) <= math.log(math.sqrt(2)) + 1e-3
    assert abs(math.log(chosen.clip / clip)) <= math.log(2) + 1e-9
    assert chosen.decay == "constant"
    assert len(tries) <= 32


def test_no_setting_is_tried_twice_and_the_files_own_is_tried_as_it_is() -> None:
    first = FIRST._replace(step=0.123456789, clip=0.987654321)
    judge = Bowl(first.way, first.clip)
    _, tries = result(judge, first=first)
    assert [one.setting for one in tries] == judge.asked
    assert first in judge.asked
    assert len({rounded(one.way) for one in judge.asked if one.clip == first.clip}) > 7
    for place, one in enumerate(judge.asked):
        others = judge.asked[:place]
        assert not any(
            one._replace(step=other.step) == other and math.isclose(one.step, other.step, rel_tol=1e-3)
            for other in others
        )


def test_a_change_of_clip_decay_or_epochs_leaves_the_way_as_it_is() -> None:
    judge = Bowl(FIRST.way, 1 / COARSE)
    result(judge)
    changed = [one for one in judge.asked if one._replace(clip=1.0, step=0.4) != FIRST or one.clip != FIRST.clip]
    ways = {rounded(one.way / FIRST.way) for one in changed}
    allowed = [COARSE**power for power in (-1, -0.5, -0.25, 0, 0.25, 0.5, 1)]
    assert all(any(math.isclose(way, one, rel_tol=2e-3) for one in allowed) for way in ways)


def test_the_way_is_clip_times_the_steps_that_what_is_published_rests_on() -> None:
    setting = Setting(clip=0.5, step=2.0, epochs=3, decay="sqrt")
    assert setting.way == pytest.approx(0.5 * 2.0 * (1 + 1 / math.sqrt(2)))
    assert setting.way == pytest.approx(0.5 * Schedule(epochs=3, step=2.0, decay="sqrt").steps[:2].sum())


def test_what_is_given_is_all_that_is_tried_of_it() -> None:
    judge = Bowl(1.0, 0.2)
    choices = Choices(clips=(0.1, 0.3), steps=(0.5, 1.0, 2.0), epochs=(10, 20), decays=("linear",))
    result(judge, choices)
    assert {one.clip for one in judge.asked} == {0.1, 0.3}
    assert {one.step for one in judge.asked} == {0.5, 1.0, 2.0}
    assert {one.epochs for one in judge.asked} == {10, 20}
    assert {one.decay for one in judge.asked} == {"linear"}
    assert len(judge.asked) == 2 * 3 * 2


def test_one_value_fixes_it_and_the_rest_is_searched() -> None:
    judge = Bowl(FIRST.way * 3, 5.0)
    chosen, _ = result(judge, Choices(clips=(0.25,), epochs=(12,)))
    assert {one.clip for one in judge.asked} == {0.25}
    assert {one.epochs for one in judge.asked} == {12}
    assert abs(math.log(chosen.way / (3 * FIRST.way))) <= math.log(math.sqrt(2))


def test_no_more_epochs_are_tried_than_the_file_has() -> None:
    judge = Bowl(FIRST.way, 1.0)
    result(judge)
    assert {one.epochs for one in judge.asked} == {40, 20, 10}


def test_what_diverges_or_is_refused_is_never_chosen() -> None:
    def judge(setting: Setting) -> Try:
        if setting.step > 0.1:
            return Try(setting, math.nan, refused="too far")
        return Try(setting, setting.step)

    tries = search(FIRST, Choices(), judge, lambda *_: None, largest=True)
    chosen = best(tries, largest=True)
    assert chosen is not None
    assert chosen.setting.step == 0.1
    nothing = [Try(FIRST, math.nan), Try(FIRST, math.inf)]
    assert best(nothing, largest=True) is None


def test_of_a_loss_the_smallest_is_the_best() -> None:
    tries = [Try(FIRST, 2.0), Try(FIRST._replace(step=1.0), 1.0), Try(FIRST._replace(step=2.0), 1.0)]
    assert best(tries, largest=False) == tries[1]
    assert best(tries, largest=True) == tries[0]


def test_an_edge_is_told_and_an_inner_best_is_not() -> None:
    choices = Choices(clips=(0.1, 0.2, 0.4), steps=(1.0, 2.0, 4.0), epochs=(10,), decays=("constant",))
    inner, tries = result(Bowl(2.0 * 9 * 0.2, 0.2), choices)
    assert (inner.clip, inner.step) == (0.2, 2.0)
    assert edges(inner, tries, choices) == ()
    outer, tries = result(Bowl(1e6, 0.001), choices)
    lines = edges(outer, tries, choices)
    assert any("step 4 is the most that was tried" in line and "--try step=" in line for line in lines)
    least = edges(Setting(0.1, 2.0, 10, "constant"), tries, choices)
    assert [line for line in least if "clip 0.1 is the least that was tried" in line]


def test_where_nothing_was_searched_there_is_no_edge() -> None:
    choices = Choices(clips=(0.1,), steps=(1.0,), epochs=(10,), decays=("constant",))
    chosen, tries = result(Bowl(1.0, 1.0), choices)
    assert len(tries) == 1
    assert edges(chosen, tries, choices) == ()


def test_progress_counts_every_setting_and_ends_at_all_of_them() -> None:
    stated: list[tuple[int, int, str]] = []
    judge = Bowl(FIRST.way, 1.0)
    search(FIRST, Choices(), judge, lambda *words: stated.append(words), largest=True)
    assert [done for done, _, _ in stated] == list(range(len(judge.asked) + 1))
    assert all(of >= done for done, of, _ in stated)
    assert stated[-1] == (len(judge.asked), len(judge.asked), "done")
    assert stated[0][2] == judge.asked[0].in_words()
