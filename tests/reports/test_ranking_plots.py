"""Plots of a ranking made by hand: panels, series, and words beside them."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from murmurcast.errors import Error
from murmurcast.reports import ranking_plots
from murmurcast.runs.ranking import TRUSTED
from tests.runs.rankings import EAVESDROPPER, EPSILONS, ONE_NODE, USES, full, ranking, score


def annotations(axes: Axes) -> list[str]:
    return [one.get_text() for one in axes.texts if isinstance(one, Annotation)]


def test_one_panel_per_epsilon_and_one_line_per_method_and_adversary() -> None:
    figure = ranking_plots.uses_figure(full())
    assert len(figure.axes) == len(EPSILONS)
    for axes, epsilon, gained in zip(figure.axes, EPSILONS, (0.0, 0.1), strict=True):
        assert axes.get_title() == f"epsilon {epsilon:g}, delta 1e-05, unit record"
        assert axes.get_xlabel() == "channel uses"
        assert axes.get_xscale() == "log"
        assert [text.get_text() for text in axes.get_xticklabels()] == [str(uses) for uses in USES]
        assert sorted(annotations(axes)) == sorted(
            [
                *("power-controlled", "slow", "paired", "paired (eavesdr. + 1 node)", "paired (eavesdropper)"),
                "server (server)",
            ]
        )
        drawn = [
            line for line in axes.lines if len(np.asarray(line.get_xdata())) == len(USES) and line.get_marker() == "o"
        ]
        assert len(drawn) == 6
        assert list(np.asarray(drawn[0].get_ydata())) == pytest.approx([0.5 + gained, 0.55 + gained])
        assert drawn[0].get_linewidth() > drawn[1].get_linewidth()  # Algorithm 1 stands out
    assert figure.axes[0].get_ylabel() == "published accuracy, test part"


def test_one_colour_per_method_and_one_dash_per_adversary() -> None:
    axes = ranking_plots.uses_figure(full()).axes[0]
    drawn = [line for line in axes.lines if line.get_marker() == "o"]
    everybody, one_node, eavesdropper = drawn[2], drawn[3], drawn[4]
    assert everybody.get_color() == one_node.get_color() == eavesdropper.get_color() != drawn[1].get_color()
    styles = {str(line._dash_pattern) for line in (everybody, one_node, eavesdropper)}  # type: ignore[attr-defined]
    assert len(styles) == 3


def test_lines_of_what_diverged_end_before_it() -> None:
    scores = (score("any", 0.5, uses=10), score("any", 0.0, uses=40, by_seed=(math.nan, 0.0)))
    gone = score("gone", 0.0, by_seed=(math.nan, 0.0))
    axes = ranking_plots.uses_figure(ranking(*scores, gone, uses=USES)).axes[0]
    assert annotations(axes) == ["any"]
    assert [list(np.asarray(line.get_xdata())) for line in axes.lines if line.get_marker() == "o"] == [[10]]


def test_a_row_of_panels_per_adversary_and_a_panel_per_budget() -> None:
    figure = ranking_plots.adversaries_figure(full())
    assert len(figure.axes) == 3 * len(EPSILONS) * len(USES)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "against everybody\nepsilon 0.5, 10 uses"
    assert titles[-1] == "against eavesdropper\nepsilon 2, 40 uses"
    first, last = figure.axes[0], figure.axes[-1]
    assert [text.get_text() for text in first.get_yticklabels()] == ["power-controlled", "slow", "paired"]
    assert [text.get_text() for text in last.get_yticklabels()] == ["paired", "power-controlled", "slow"]
    assert [bar.get_width() for bar in last.patches if isinstance(bar, Rectangle)] == pytest.approx([0.85, 0.65, 0.45])
    assert last.yaxis_inverted()  # the first is on top
    assert last.get_xlim() == (0, 1)
    assert last.get_xlabel() == "published accuracy, test part"
    assert "trusted server" in annotations(first)


def test_the_best_and_algorithm_1_have_colours_of_their_own() -> None:
    figure = ranking_plots.adversaries_figure(full())
    colours = [bar.get_facecolor() for bar in figure.axes[-1].patches]
    assert len(set(colours)) == 3
    same = ranking_plots.adversaries_figure(ranking(score("power-controlled", 0.9), score("b", 0.5), score("c", 0.4)))
    ours, second, third = (bar.get_facecolor() for bar in same.axes[0].patches)
    assert ours == colours[1]
    assert second == third == colours[2]


def test_losses_are_not_cut_at_one() -> None:
    figure = ranking_plots.adversaries_figure(ranking(score("a", 3.0), score("b", 7.0), metric="loss"))
    assert figure.axes[0].get_xlim()[1] > 7
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert figure.axes[0].get_xlabel() == "published loss, test part"


def test_what_diverged_has_no_bar() -> None:
    lost = score("lost", 0.0, by_seed=(math.nan, 0.0))
    axes = ranking_plots.adversaries_figure(ranking(lost, score("a", 0.5))).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a"]


@pytest.mark.parametrize("scores", [(), (score("server", 0.9, against=TRUSTED),)])
def test_without_a_promise_there_is_nothing_to_draw(scores: tuple[()]) -> None:
    for draw in (ranking_plots.uses_figure, ranking_plots.adversaries_figure):
        with pytest.raises(Error, match="nothing to draw") as caught:
            draw(ranking(*scores))
        assert caught.value.hint


def test_labels_name_the_adversary_where_it_is_not_everybody() -> None:
    assert ranking_plots.label(score("any", 0.5)) == "any"
    assert ranking_plots.label(score("any", 0.5, against=ONE_NODE)) == "any (eavesdr. + 1 node)"
    assert ranking_plots.label(score("any", 0.5, against=EAVESDROPPER)) == "any (eavesdropper)"
    assert len(ranking_plots.label(score("x" * 300, 0.5))) == 40
    assert "\x1b" not in ranking_plots.label(score("\x1b[31m", 0.5))


def test_names_are_drawn_as_they_are() -> None:
    figure = ranking_plots.adversaries_figure(ranking(score("$\\frac{", 0.5)))
    figure.canvas.draw()
    ranking_plots.uses_figure(ranking(score("$\\frac{", 0.5))).canvas.draw()


def test_places_of_names_keep_order_gap_and_bounds() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        wanted = np.sort(rng.uniform(0, 1, 12))
        places = ranking_plots._apart(wanted, 0.05, (0.0, 1.0))
        assert (np.diff(places) >= 0.05 - 1e-12).all()
        assert places[0] >= -1e-12
        assert places[-1] <= 1 + 1e-12
    far = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(ranking_plots._apart(far, 0.05, (0.0, 1.0)), far)
    np.testing.assert_allclose(ranking_plots._apart(np.array([0.5, 0.5]), 0.1, (0.0, 1.0)), [0.45, 0.55])
    assert ranking_plots._apart(np.array([]), 0.1, (0.0, 1.0)).shape == (0,)
