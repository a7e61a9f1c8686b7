"""Experiments: the objects an experiment file describes, and the file as resolved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurcast.channels.air import Air
from murmurcast.channels.server import Server
from murmurcast.channels.silence import Silence
from murmurcast.channels.slots import Slots
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression

BASE = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 4.0
[schedule]
epochs = 5
"""
LOGISTIC = '[data]\nname = "logistic"\nexamples = 100\nfeatures = 2\nclasses = 2\npartition = "iid"\n'
LEAST_SQUARES = '[data]\nname = "least-squares"\nexamples = 60\nfeatures = 3\n'


def parse(text: str, **overrides: str) -> Experiment:
    return experiment_files.parse(
        text.encode(), "my.toml", {key.replace("__", "."): value for key, value in overrides.items()}
    )


def test_softmax_is_built() -> None:
    problem = parse(BASE + LOGISTIC, problem__l2="0.1", problem__batch="4", problem__radius="3.0").build_problem(3)
    assert isinstance(problem, SoftmaxRegression)
    assert (problem.l2, problem.batch, problem.radius, problem.clipping) == (0.1, 4, 3.0, "node")
    assert problem.shape == (2, 3)
    assert problem.nodes == 3


def test_ridge_is_built() -> None:
    problem = parse(BASE + LEAST_SQUARES, problem__kind="ridge", problem__box="2.0").build_problem(3)
    assert isinstance(problem, RidgeRegression)
    assert problem.box == 2.0
    assert problem.data.rule.kind == "sorted"  # type: ignore[union-attr]
    assert (np.diff(problem.data.dataset.targets[np.concatenate(problem.data.rows)]) >= 0).all()


def test_quadratic_is_built() -> None:
    problem = parse(BASE, problem__kind="quadratic", problem__dim="7", problem__seed="3").build_problem(3)
    assert isinstance(problem, Quadratic)
    assert problem.dim == 7
    np.testing.assert_array_equal(problem.centre, Quadratic.random(3, 7, seed=3).centre)


@pytest.mark.parametrize(("unit", "clipping"), [("record", "example"), ("node", "node")])
def test_clipping_follows_the_unit(unit: str, clipping: str) -> None:
    experiment = parse(BASE + LOGISTIC, privacy__unit=unit, privacy__clip="0.3")
    clip = experiment.build_problem(3).gradient_clip
    assert (clip.per, clip.limit) == (clipping, 0.3)
    assert parse(BASE + LOGISTIC, problem__clipping="none").build_problem(3).gradient_clip.per == "none"


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ('"sorted"', "sorted"),
        ('{kind = "iid"}', "iid"),
        ('{kind = "shards", per_node = 3}', "shards"),
        ('{kind = "dirichlet", concentration = 2.0, minimum = 2}', "dirichlet"),
        ('"quantity"', "quantity"),
    ],
)
def test_every_partition_is_built(rule: str, kind: str) -> None:
    experiment = parse(BASE + LOGISTIC, data__partition=rule)
    partition = experiment.build_partition(3)
    assert partition.rule.kind == kind  # type: ignore[union-attr]
    assert partition.sizes.sum() == 80
    assert experiment_files.parse(experiment.as_toml().encode(), "again") == experiment


@pytest.mark.parametrize(
    ("name", "channel", "uses"),
    [
        ("power-controlled", Air, 1),
        ("noiseless", Air, 1),
        ("mped2fl", Slots, 3),
        ("local-only", Silence, 0),
        ("central-dp", Server, 2),
    ],
)
def test_every_algorithm_is_built(name: str, channel: type, uses: int) -> None:
    experiment = parse(BASE, algorithm__name=name)
    algorithm = experiment.build_algorithm(experiment.build_plan())
    assert algorithm.name == name
    assert isinstance(algorithm.rounds[0].channel, channel)
    assert algorithm.channel_uses == uses


def test_ped2fl_is_built_where_gains_depend_on_the_sender() -> None:
    gains = "[[0, 0.9, 0.9], [0.5, 0, 0.5], [0.8, 0.8, 0]]"
    experiment = parse(BASE, network__gains=gains, algorithm__name="ped2fl", algorithm__step_factor="2.0")
    assert experiment.build_algorithm(experiment.build_plan()).settings["step_factor"] == 2.0
    experiment = parse(BASE, algorithm__name="ped2fl")
    with pytest.raises(Error, match="depend on the sender alone"):
        experiment.build_algorithm(experiment.build_plan())


def test_options_reach_the_algorithm() -> None:
    experiment = parse(BASE, algorithm__gradient_at="own", algorithm__publish="average")
    assert experiment.build_algorithm(experiment.build_plan()).settings == {"gradient_at": "own", "publish": "average"}
    experiment = parse(BASE + LOGISTIC, privacy__unit="record", algorithm__gradient_at="own")
    with pytest.raises(Error, match="public mixed point"):
        experiment.build_algorithm(experiment.build_plan())


def test_unused_options_are_warned_of() -> None:
    experiment = parse(BASE, algorithm__name="mped2fl", algorithm__publish="last", algorithm__step_factor="3.0")
    (warning,) = experiment.warnings
    assert "algorithm.publish has no meaning with mped2fl" in warning
    assert parse(BASE).warnings == ()
    assert len(parse(BASE, algorithm__name="local-only", algorithm__gradient_at="own").warnings) == 1


def test_the_plan_is_made_for_the_problem() -> None:
    experiment = parse(BASE + LOGISTIC, privacy__unit="record", data__partition="quantity")
    problem = experiment.build_problem(3)
    built = experiment.build_plan(problem=problem)
    assert built.problem is problem
    sizes = problem.examples_per_node
    np.testing.assert_allclose(built.sensitivity, 2.0 / np.asarray(sizes))
    alone = experiment.build_plan()  # without a problem at hand the data is asked
    np.testing.assert_allclose(alone.sensitivity, built.sensitivity)


@pytest.mark.parametrize(
    ("text", "overrides", "message", "hint"),
    [
        (BASE, {}, r"there is no \[data\]", 'name = "digits"'),
        (BASE + LOGISTIC, {"problem__kind": "quadratic"}, r"\[data\] has no meaning with a quadratic", "remove"),
        (BASE, {"problem__kind": "quadratic", "problem__batch": "3"}, "problem.batch has no meaning", "remove"),
        (BASE, {"problem__kind": "quadratic", "problem__l2": "0.5"}, "problem.l2 has no meaning", "remove"),
        (BASE, {"problem__kind": "quadratic", "problem__dim": "-1"}, "dim is -1", "raise dim"),
        (BASE, {"problem__kind": "quadratic", "problem__dim": "0"}, "dim is 0", "raise"),
        (BASE + LOGISTIC, {"problem__batch": "1000"}, "batch is 1000", "or less"),
        (BASE + LOGISTIC, {"problem__batch": "0"}, "batch is 0", "raise batch"),
        (BASE + LOGISTIC, {"problem__kind": "ridge"}, "are labels", "softmax"),
        (BASE + LEAST_SQUARES, {}, "are values", "ridge"),
        (BASE + LOGISTIC, {"problem__dim": "5"}, "problem.dim is 5, but the model has 6", "remove"),
        (BASE + LOGISTIC, {"privacy__examples_per_node": "9"}, "examples_per_node is 9", "remove"),
        (BASE + LOGISTIC, {"privacy__examples_per_node": "[9, 9]"}, "examples_per_node", "remove"),
        (BASE + LOGISTIC, {"problem__radius": "1.0", "problem__box": "1.0"}, "both a ball and a box", "one of them"),
        (BASE + LOGISTIC, {"data__name": "digits", "data__examples": "5"}, "data.examples has no meaning", "remove"),
        ('[data]\nname = "digts"' + BASE, {}, '"digts" is not a data set', '"digits"'),
        (BASE + LOGISTIC, {"data__heterogeneity": "1.0"}, "data.heterogeneity has no meaning", "remove"),
        (BASE + LOGISTIC, {"data__test_fraction": "1.5"}, "test_fraction is 1.5", "between 0 and 1"),
        (BASE + LOGISTIC, {"data__std": "0.0"}, "std is 0", "above 0"),
        (BASE + LOGISTIC, {"data__partition": '{kind = "dirichlet", minimum = 99}'}, "do not give 3 nodes", "minimum"),
        ('[data]\nname = "none.csv"' + BASE, {}, "does not exist", "path"),
    ],
)
def test_what_does_not_fit_is_named(text: str, overrides: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        parse(text, **overrides).build_problem(3)
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("overrides", "message", "hint"),
    [
        (
            {"data__partition": '{kind = "dirichlet", concentraton = 1.0}'},
            "data.partition.concentraton",
            "concentration",
        ),
        ({"data__partition": '{kind = "sorted", seed = 1}'}, "data.partition.seed", "kind"),
        ({"data__partition": '{kind = "dirichlt"}'}, "names nothing known", "dirichlet"),
        ({"data__partition": '"srted"'}, "data.partition", "sorted"),
        ({"data__partition": "{per_node = 3}"}, "data.partition", "kind"),
        ({"data__partition": '{kind = "shards", per_node = 0}'}, "per_node is 0", "raise per_node"),
        ({"data__partition": "3"}, "data.partition is 3", "see a whole file"),
        ({"data__nme": "x"}, "unknown key data.nme", '"name"'),
        ({"problem__l3": "1"}, "unknown key problem.l3", '"l2"'),
        ({"problem__kind": "sofmax"}, "problem.kind", '"softmax"'),
        ({"algorithm__name": "mped2f"}, "algorithm.name", '"mped2fl"'),
        ({"algorithm__gradient_at": "mixd"}, "algorithm.gradient_at", '"mixed"'),
        ({"run__seed": "1"}, "unknown key run.seed", '"seeds"'),
        ({"run__precision": "float16"}, "run.precision", "float"),
        ({"run__seeds": "true"}, "run.seeds is True", "see a whole file"),
        ({"run__seeds": "[0.5]"}, "run.seeds", "see a whole file"),
    ],
)
def test_mistakes_in_new_sections_have_a_hint(overrides: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        parse(BASE + LOGISTIC, **overrides)
    assert hint in raised.value.hint


@pytest.mark.parametrize("name", experiment_files.example_names())
def test_shipped_examples_resolve_to_themselves(name: str) -> None:
    experiment = experiment_files.parse(experiment_files.example(name).encode(), name)
    assert experiment_files.parse(experiment.as_toml().encode(), "again") == experiment


FINITE = st.floats(1e-6, 1e6)
SECTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "privacy": {
        "epsilon": FINITE,
        "target": st.sampled_from(["certificate", "per-epoch"]),
        "unit": st.sampled_from(["node", "record"]),
        "examples_per_node": st.integers(1, 99) | st.lists(st.integers(1, 99), min_size=1, max_size=3),
    },
    "schedule": {
        "epochs": st.integers(2, 10**6),
        "noise_to_step": FINITE | st.just("auto") | st.lists(FINITE, min_size=1),
    },
    "power": {"alpha": st.floats(0.1, 0.9) | st.lists(st.floats(0.1, 0.9), min_size=1)},
    "data": {
        "name": st.sampled_from(["digits", "my.csv", "mnist", 'a "b" ü.npz']),
        "partition": st.sampled_from(
            [
                "iid",
                {"kind": "dirichlet", "concentration": 0.1},
                {"kind": "shards", "per_node": 4},
                {"kind": "quantity"},
            ]
        ),
        "seed": st.integers(0, 99),
    },
    "problem": {"kind": st.sampled_from(["softmax", "ridge", "quadratic"]), "box": FINITE, "l2": FINITE},
    "algorithm": {"name": st.sampled_from(["mped2fl", "central-dp"]), "step_factor": FINITE},
    "run": {"seeds": st.integers(1, 9) | st.lists(st.integers(0, 9), max_size=3), "evaluate_every": st.integers(1, 9)},
}


@given(
    st.fixed_dictionaries(
        {}, optional={key: st.fixed_dictionaries({}, optional=value) for key, value in SECTIONS.items()}
    )
)
@settings(max_examples=60)
def test_what_is_resolved_is_read_back_the_same(values: dict[str, Any]) -> None:
    if "data" in values:
        values["data"].setdefault("name", "digits")
    privacy = {"epsilon": 1.0, **values.pop("privacy", {})}
    experiment = Experiment.model_validate(
        {"network": {"topology": "ring", "nodes": 5, "gain": {"kind": "rayleigh"}}, "privacy": privacy, **values}
    )
    text = experiment.as_toml()
    again = experiment_files.parse(text.encode(), "again")
    assert again == experiment
    assert again.as_toml() == text


def test_paths_are_cut_to_names() -> None:
    text = BASE.replace("gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]", 'file = "/home/alice/nets/net.csv"')
    experiment = parse(text + '[data]\nname = "../secret/my.csv"\n')
    resolved = experiment.as_toml()
    assert "alice" not in resolved
    assert "secret" not in resolved
    assert 'file = "net.csv"' in resolved
    assert 'name = "my.csv"' in resolved


def test_data_files_are_found_beside_the_experiment(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "my.npz", x=rng.standard_normal((30, 2)), y=np.arange(30) % 2)
    problem = parse(BASE + '[data]\nname = "my.npz"\n').build_problem(3, tmp_path)
    assert problem.shape == (2, 3)


@pytest.mark.parametrize("every", ["0", "-1"])
def test_an_interval_of_no_epochs_is_refused(every: str) -> None:
    """Zero must not quietly mean "the default"."""
    from murmurcast.runs.run import RunOptions, run

    experiment = parse(BASE, problem__kind="quadratic", run__evaluate_every=every)
    problem = experiment.build_problem(3)
    with pytest.raises(Error, match="evaluate_every"):
        run(
            experiment.build_algorithm(experiment.build_plan(problem=problem)),
            problem,
            options=RunOptions(evaluate_every=experiment.run.evaluate_every),
        )


def test_a_batch_and_another_number_of_examples_are_refused() -> None:
    """The certificate would count a record n/batch times too lightly."""
    built = parse(BASE + LOGISTIC, privacy__unit="record", privacy__examples_per_node="4000", problem__batch="4")
    with pytest.raises(Error, match="averaged over a batch of 4"):
        built.build_plan()


def test_what_a_run_would_refuse_or_not_promise_is_said_by_the_plan() -> None:
    for override, words in (
        ({"algorithm__name": "mped2fl"}, "plan of power-controlled"),
        ({"privacy__unit": "record", "algorithm__gradient_at": "own"}, "gradient_at"),
        ({"privacy__unit": "record", "problem__clipping": "node"}, "clipping"),
        ({"problem__clipping": "none"}, "nominal"),
    ):
        assert any(words in line for line in parse(BASE + LOGISTIC, **override).plan_warnings)
    assert parse(BASE + LOGISTIC).plan_warnings == ()


def test_a_table_in_decibels_is_a_network_of_a_radio(tmp_path: Path) -> None:
    text = '[network]\nfile = "{}"\n[privacy]\nepsilon = 2.0\n'
    still = "sender,receiver,gain_db\n0,1,-60\n1,0,-63\n1,2,-80\n2,1,-81\n"
    (tmp_path / "still.csv").write_text(still)
    (tmp_path / "moving.csv").write_text("time," + still.replace("\n", "\n0,").rstrip("0,") + "\n1,0,1,-70\n")
    np.savez(tmp_path / "turned.npz", gains=np.full((1, 3, 3), 1e-3j))
    network = experiment_files.parse(f"{text.format('still.csv')}[radio]\npower_dbm = 20".encode(), "x").build_network(
        tmp_path
    )
    assert network.gains.toarray()[0].tolist() == [0, pytest.approx(1e-3), 0]
    assert network.gains.toarray()[2, 1] == pytest.approx(10 ** (-81 / 20))
    np.testing.assert_allclose(network.power, 0.1)
    for name, words in (("moving.csv", "2 steps of time"), ("turned.npz", "phases")):
        with pytest.raises(Error, match="gives amplitudes that stay") as raised:
            experiment_files.parse(f"{text.format(name)}[radio]\n".encode(), "x").build_network(tmp_path)
        assert words in str(raised.value)
        assert f'radio.trace = "{name}"' in raised.value.hint
        played = f'[radio]\ntrace = "{name}"\nrepeat = true\n[privacy]\nepsilon = 2.0\n'
        experiment = experiment_files.parse(played.encode(), "x")
        assert experiment.build_network(tmp_path).links == (4 if name == "moving.csv" else 6)
        assert f'trace = "{name}"' in experiment.as_toml()
    with pytest.raises(Error, match="need a radio"):
        experiment_files.parse(text.format("still.csv").encode(), "x").build_network(tmp_path)
    beside = text.replace("\n[priv", '\ngain = {{kind = "rayleigh"}}\n[priv').format("still.csv")
    with pytest.raises(Error, match=r"no meaning beside still\.csv"):
        experiment_files.parse(f"{beside}[radio]\n".encode(), "x").build_network(tmp_path)
