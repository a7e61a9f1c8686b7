"""Accuracy against epsilon on better inputs: what the table, the plot and the sentences say follows from the runs."""

import numpy as np
import pytest

from murmurcast.privacy import gaussian
from murmurcast.reproduction import better_inputs, chapters, further, writing
from murmurcast.reproduction.further import NETWORK, Row
from murmurcast.reproduction.settings import CERTIFIED_BUDGETS, FEATURE_STEPS, NODES, settings
from tests.reproduction.test_run_tables import runs


def network_rows() -> tuple[Row, ...]:
    return tuple(
        Row(NETWORK, budget, server, 200, 0, 0.7 + 0.01 * place + 0.1 * server, 0.004, 0.69)
        for server in (False, True)
        for place, budget in enumerate(CERTIFIED_BUDGETS)
    )


def test_lines_are_the_ends_of_the_runs() -> None:
    built = runs(features_power_controlled_1=0.95, certified_central_dp_0_3=0.85)
    result = {line.name: line for line in better_inputs.lines(built)}
    np.testing.assert_allclose(result["raw pixels"].mean, 0.6)
    np.testing.assert_allclose(result["features"].mean, [0.6, 0.95, 0.6])
    np.testing.assert_allclose(result["raw pixels, trusted server"].mean, [0.85, 0.8, 0.8])
    assert (result["features"].spread > 0).all()
    assert len(result) == 4
    with_network = better_inputs.lines(built, network_rows())
    np.testing.assert_allclose(with_network[4].mean, [0.70, 0.71, 0.72])
    np.testing.assert_allclose(with_network[5].mean, [0.80, 0.81, 0.82])


def test_sentences_say_what_is_gained() -> None:
    texts = [one.text for one in better_inputs.findings(better_inputs.lines(runs(features_power_controlled_1=0.96)))]
    assert "epsilon 1 in all: on features the published models reach 0.960" in texts[1]
    assert "on raw pixels 0.600" in texts[1]
    assert "of the errors 10 % are left" in texts[1]
    assert "of the errors 100 % are left" in texts[0]


def test_the_table_says_how_to_get_what_is_missing() -> None:
    short = better_inputs.table(better_inputs.lines(runs()))
    assert short.rows[-1] == (NETWORK, *["murmurcast reproduce --full"] * 3)
    whole = better_inputs.table(better_inputs.lines(runs(), network_rows()))
    assert whole.rows[-2] == (NETWORK, "0.7000 (0.0040)", "0.7100 (0.0040)", "0.7200 (0.0040)")
    assert "--full" not in str(whole.rows)


def test_the_plot_has_a_line_for_each_with_its_bars() -> None:
    drawn = better_inputs.figure(better_inputs.lines(runs(), network_rows()))
    (axes,) = drawn.axes
    labels = axes.get_legend_handles_labels()[1]
    assert labels == [line.name for line in better_inputs.lines(runs(), network_rows())]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.3", "1", "3"]
    curve = better_inputs.curves(better_inputs.lines(runs()))["better-inputs"]
    assert curve.columns.shape == (3, 1 + 2 * 4)
    assert writing.dat(curve).split()[0] == "epsilon"


def test_further_rows_join_the_chapter() -> None:
    ring = Row("ring of 20, sorted, 100 channel uses", 1.0, False, 100, 9417, 0.93, 0.001, 0.91)
    chapter = chapters.better_inputs(runs(), (*network_rows(), ring))
    assert [table.name for table in chapter.tables] == ["better-inputs", "further"]
    assert ("ring of 20, sorted, 100 channel uses", "1", "100", "9417", "0.9300", "0.0010", "0.9100") in (
        chapter.tables[1].rows
    )
    assert "A ring of 20, sorted, 100 channel uses, epsilon 1: 0.930, worst node 0.910." in chapter.findings[-1].text
    assert [table.name for table in chapters.better_inputs(runs()).tables] == ["better-inputs"]


def test_every_case_plans_what_its_name_says() -> None:
    cases = further.cases()
    assert len({(case.name, case.epsilon, case.server) for case in cases}) == len(cases)
    for case in cases:
        experiment = case.experiment
        assert experiment.privacy.epsilon == case.epsilon
        assert experiment.privacy.unit == "record"
        assert experiment.data is not None
        assert (experiment.data.name == "fashion-mnist") == case.name.startswith("Fashion")
        assert (experiment.data.partition.kind == "iid") == case.name.endswith("iid")
        assert (experiment.algorithm.name == "central-dp") == case.server
        nodes = experiment.build_network().nodes
        assert nodes == (20 if "20" in case.name else 10 if "10 nodes" in case.name else 4)
        if case.name.startswith("ring"):
            schedule = experiment.schedule
            assert schedule.epochs * schedule.rounds == (400 if "400" in case.name else 100)
            assert bool(schedule.accelerated) == case.name.endswith("accelerated rounds")


@pytest.mark.parametrize("budget", CERTIFIED_BUDGETS)
def test_travel_is_the_chosen_one_for_four_nodes_and_less_for_more(budget: float) -> None:
    assert further.travel(budget, NODES) == pytest.approx(12 * FEATURE_STEPS[budget])
    on_the_mean = [further.travel(budget, nodes) * nodes for nodes in (4, 10, 20, 100)]
    assert on_the_mean == sorted(on_the_mean, reverse=True)


def test_travel_depends_on_the_noise_alone() -> None:
    """Four times the nodes and twice mu: as much noise in the common model, as far on the mean gradient."""
    mu = float(gaussian.mu(0.5, 1e-5))
    epsilon = float(gaussian.epsilon(2 * mu, 1e-5))
    assert further.travel(epsilon, 16) * 16 == pytest.approx(further.travel(0.5, 4) * 4, rel=1e-6)


def test_settings_on_features_are_certified_and_preprocessed() -> None:
    result = [setting for setting in settings("mnist", 2) if setting.group == "features"]
    assert len(result) == 6
    for setting in result:
        privacy, schedule = setting.experiment.privacy, setting.experiment.schedule
        assert (privacy.centring, privacy.whitening, privacy.unit) == (0.02, 0.10, "record")
        assert (schedule.epochs, schedule.step) == (12, FEATURE_STEPS[setting.epsilon])
        assert setting.label.endswith(f"on features, epsilon {setting.epsilon:g}")


def test_settings_are_public_only_where_the_set_of_their_choice_is_not_learnt_from() -> None:
    for case in further.cases():
        on_its_own = case.experiment.data is not None and case.experiment.data.name == "fashion-mnist"
        assert (case.experiment.privacy.settings_chosen == "on public data") is not on_its_own
