"""Experiment files: what is accepted and how mistakes are told."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.data.partition import Column
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.settle import settle
from murmurcast.network import gains

MINIMAL = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 1.0
"""


def parse(text: str = MINIMAL, **overrides: str) -> Experiment:
    return experiment_files.parse(
        text.encode(), "my.toml", {key.replace("__", "."): value for key, value in overrides.items()}
    )


def test_defaults_give_a_certified_plan() -> None:
    built = parse().build_plan()
    np.testing.assert_allclose(built.certificate.epsilon, 1.0, rtol=1e-9)
    assert built.budget.unit == "node"
    assert built.schedule.epochs == 100


@pytest.mark.parametrize("name", experiment_files.example_names())
def test_shipped_examples_plan(name: str) -> None:
    # Plans of these look at the data, which takes long where there is much of it.
    quick = {"features": {"data.features": '["unit-norm"]'}, "small-network": {"problem.batch": "32"}}.get(name, {})
    smaller = {"data.name": "digits", **quick} if quick else {}
    experiment = experiment_files.parse(experiment_files.example(name).encode(), name, smaller)
    assert settle(experiment).build_plan().certificate.epsilon.max() > 0


@pytest.mark.parametrize("case", [1, 2])
def test_shipped_gains_are_the_papers(case: int) -> None:
    network = experiment_files.parse(experiment_files.example(f"paper-{case}").encode(), "paper").build_network()
    np.testing.assert_array_equal(network.gains.toarray(), gains.paper(case))


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("privacy.epsilom", "2", "unknown key privacy.epsilom", '"epsilon"'),
        ("privcy.epsilon", "2", "unknown key privcy", '"privacy"'),
        ("network.quux", "2", "unknown key network.quux", "known here"),
        ("privacy.target", "certified", 'privacy.target is "certified"', '"certificate"'),
        ("privacy.epsilon", "0", "epsilon is 0", "above 0"),
        ("privacy.epsilon", "-1.5", "epsilon is -1.5", "above 0"),
        ("privacy.epsilon", "true", "privacy.epsilon is True", "--example"),
        ("privacy.epsilon", '"much"', "privacy.epsilon is much", "--example"),
        ("privacy.delta", "0.0", "delta is 0", "between 0 and 1"),
        ("privacy.delta", "1.0", "delta is 1", "between 0 and 1"),
        ("privacy.delta", "nan", "delta is nan", "between 0 and 1"),
        ("network.power", "0", "power is 0", "above 0"),
        ("network.power", "[1, -2, 1]", r"power\[1\] is -2", "above 0"),
        ("network.power", "[1, 2]", "power has shape", "one entry per node"),
        ("network.topology", "ring", "exactly one of gains, file and topology, and has gains and topology", "one"),
        ("network.nodes", "4", "network.nodes has no meaning with network.gains", "remove nodes"),
        ("network.normaliser", "max-degree", "is 0 in epoch 2", 'z = "perron"'),
        ("network.normaliser", "1", "below the largest degree", "lazy"),
        ("schedule.epochs", "0", "epochs is 0", "raise epochs"),
        ("schedule.epochs", "2.5", "schedule.epochs is 2.5", "--example"),
        ("schedule.noise_to_step", "[1, 2]", "noise_to_step has shape", "one entry per node"),
        ("power.min", "0.0", r"power\.min is 0", "between 0 and 1"),
        ("power.alpha", "0.999", r"power\.alpha leaves its bounds", "power.max"),
        ("network", "3", "network is 3", "--example"),
    ],
)
def test_mistakes_are_named_with_a_way_out(key: str, value: str, message: str, hint: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        parse(**{key.replace(".", "__"): value}).build_plan()
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("network", "message", "hint"),
    [
        ('topology = "rign"\nnodes = 5', "rign", '"ring"'),
        ('topology = "ring"', 'topology "ring" needs network.nodes', "add nodes"),
        ('topology = "ring"\nnodes = 5\nradius = 1.0', "network.radius has no meaning", "remove radius"),
        ('topology = "grid"\nrows = 2', "needs network.columns", "add columns"),
        ('topology = "ring"\nnodes = 5\ngain = {kind = "unifrm"}', "names nothing known", "uniform"),
        ('topology = "ring"\nnodes = 5\ngain = {kind = "uniform", lo = 2}', "unknown key network.gain.lo", '"low"'),
        ('topology = "ring"\nnodes = 5\ngain = {kind = "uniform", low = 2.0, high = 1.0}', "above high", "swap"),
        ('topology = "erdos-renyi"\nnodes = 30\nprobability = 0.01', "not connected", "probability"),
        ('file = "none.npz"', "does not exist", "path"),
        ("", "has none of them", "give one"),
    ],
)
def test_wrong_networks_are_named(network: str, message: str, hint: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        parse(f"[network]\n{network}\n[privacy]\nepsilon = 1").build_plan()
    assert hint in raised.value.hint


def test_missing_section() -> None:
    with pytest.raises(Error, match=r"privacy is missing|privacy\.epsilon is missing"):
        parse("[network]\ngains = [[0, 1], [1, 0]]\n")


def test_network_files_are_found_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("sender,receiver\n0,1\n1,2\n2,0\n")
    text = '[network]\nfile = "links.csv"\ngain = {kind = "rayleigh"}\nseed = 3\n[privacy]\nepsilon = 1'
    assert parse(text).build_network(tmp_path).links == 6
    with pytest.raises(Error, match="gives no gains"):
        parse(text.replace('gain = {kind = "rayleigh"}\n', "")).build_network(tmp_path)


@pytest.mark.parametrize("text", ['{column = "site"}', '{kind = "column", column = "site"}'])
def test_a_column_alone_says_that_it_shares_the_data_out(text: str) -> None:
    experiment = parse(data__name="my.csv", data__partition=text)
    assert experiment.data is not None
    assert experiment.data.partition == Column(column="site")
    assert experiment.values["data"]["partition"] == {"kind": "column", "column": "site"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{colum = "site"}', "names nothing known"),
        ('{column = "site", per_node = 2}', "unknown key data.partition.per_node"),
        ('{kind = "iid", column = "site"}', "unknown key data.partition.column"),
        ("{column = 3}", "data.partition is 3"),
    ],
)
def test_a_rule_that_is_no_column_does_not_become_one(text: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        parse(data__name="my.csv", data__partition=text)


def test_override_creates_sections_and_takes_bare_words() -> None:
    experiment = parse(power__objective="noise", schedule__noise_to_step="[1, 2, 3]")
    assert experiment.power.objective == "noise"
    assert experiment.schedule.noise_to_step == [1, 2, 3]


@given(st.binary(max_size=300))
def test_any_bytes_are_an_experiment_or_an_error(content: bytes) -> None:
    with pytest.raises(Error) as raised:
        experiment_files.parse(content, "fuzz").build_plan()
    assert raised.value.hint


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_override_is_an_experiment_or_an_error(key: str, value: str) -> None:
    try:
        experiment_files.parse(MINIMAL.encode(), "fuzz", {key: value})
    except Error as problem:
        assert problem.hint  # noqa: PT017 - either way is fine, a traceback is not
