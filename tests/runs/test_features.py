"""From an experiment file with features to a certificate: what is assumed of them travels in the ledger."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Altered
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from tests.certificates.ledger_edits import caught, with_ledger
from tests.fuzz.corruptions import call

EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 8.0
unit = "record"
clip = 0.5
[schedule]
epochs = 8
step = 2.0
[problem]
radius = 50.0
bias = 0.1
[data]
name = "digits"
partition = "iid"
features = ["deskew", {kind = "hog", cells = 4}]
"""
OWN = '{map = "my_maps:shifted", declared = "taken from a textbook"}'
MODULE = """
def shifted(rows):
    return rows - 0.5

def centred(rows):
    return rows - rows.mean(axis=0)
"""
WORDS = ["deskew(max_slope=1.5)", "hog(cells=4, orientations=8, blur=1.0)"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MURMURCAST_FEATURE_CACHE", str(tmp_path / "kept"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my.toml").write_text(EXPERIMENT)
    (tmp_path / "my_maps.py").write_text(MODULE)
    return tmp_path


def with_maps(listed: str) -> Experiment:
    return experiment_files.parse(EXPERIMENT.encode(), "my.toml", {"data.features": listed})


def make_run(experiment: Experiment) -> mc.Result:
    problem, algorithm = experiment.build()
    return replace(mc.run(algorithm, problem), experiment=experiment.as_toml())


def test_a_run_with_features_is_certified_and_says_what_it_assumes(folder: Path) -> None:
    done = call("run", folder / "my.toml", "--out", folder / "run", "--json", folder=folder)
    assert done.code == 0, done.err
    line = f"the features {', '.join(WORDS)} were chosen without looking at the records"
    assert line in json.loads((folder / "run" / "run.json").read_text())["privacy"]["assumptions"]
    run = mc.load_run(folder / "run")
    assert json.loads(run.ledger.attrs["data_features"]) == WORDS
    assert run.published.shape[2:] == (10, 4 * 4 * 8 + 1)
    certified = call("certify", folder / "run", folder=folder)
    assert certified.code == 0, certified.err
    assert "were chosen without looking at the records" in " ".join(certified.out.split())
    assert len(list((folder / "kept").iterdir())) == 1  # certify builds the data anew, from the cache


@pytest.mark.slow
def test_a_ledger_that_names_other_features_than_its_experiment_is_refused() -> None:
    run = make_run(with_maps('["hog"]'))
    mc.certify(run)
    for name, value in (
        ("data_features", json.dumps(["hog(cells=9, orientations=8, blur=1.0)"])),
        ("data_features", "[3]"),
        ("data_features", "not a list"),
        ("data_declared", json.dumps([["my_maps:shifted", "taken from a textbook"]])),
    ):
        forged = with_ledger(run, run.ledger.assign_attrs({name: value}))
        assert "feature" in caught(forged)  # without the data, by what ledger and experiment say
        with pytest.raises(Altered):
            mc.certify(forged)
    silent = run.ledger.copy()
    del silent.attrs["data_features"]
    with pytest.raises(Altered):
        mc.certify(with_ledger(run, silent))


@pytest.mark.slow
def test_a_map_of_ones_own_is_printed_with_the_promise_and_never_run_by_certify(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(with_maps(f'[{OWN}, "unit-norm"]'))
    hashed = run.ledger.attrs["data_features_sha256"]
    line = (
        'the feature map my_maps:shifted is declared free of data: "taken from a textbook"; its answers to public rows '
        f"have SHA-256 {hashed}, whatever the data"
    )
    assert line in run.info["privacy"]["assumptions"]
    monkeypatch.setattr("my_maps.shifted", None)
    result = mc.certify(run)
    assert [one for one in result.assumptions if "my_maps" in one] == [line]
    assert any("not of the house" in words for words in result.not_compared)
    undeclared = json.dumps([["my_maps:shifted", " "]])
    with pytest.raises(Altered, match="nobody declared"):
        mc.certify(with_ledger(run, run.ledger.assign_attrs(data_declared=undeclared)))


def test_without_a_declaration_a_promise_is_refused_and_nothing_else(folder: Path) -> None:
    bare = '[{map = "my_maps:shifted"}]'
    with pytest.raises(mc.Error, match="nobody has declared"):
        make_run(with_maps(bare))
    (folder / "my.toml").write_text(EXPERIMENT.replace('["deskew", {kind = "hog", cells = 4}]', bare))
    planned = call("plan", folder / "my.toml", folder=folder)
    assert planned.code == 2
    assert "nobody has declared" in planned.err
    assert (
        call(
            "run", folder / "my.toml", "--set", "algorithm.name=noiseless", "--out", folder / "run", folder=folder
        ).code
        == 0
    )


def test_a_map_fitted_on_the_rows_is_refused_whatever_it_declares() -> None:
    fitted = '[{map = "my_maps:centred", declared = "I promise"}]'
    with pytest.raises(mc.Error, match="is not free of data"):
        make_run(with_maps(fitted))


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ('["hogg"]', "names nothing known"),
        ('[{kind = "hog", cell = 4}]', "unknown key data.features.0.cell"),
        ('[{kind = "hog", cells = 0}]', "cells is 0"),
        ('["hog", "deskew"]', '"deskew" needs images'),
        ('[{map = "nothing_there:map"}]', "cannot be found: ModuleNotFoundError"),
        ('[{map = "my_maps"}]', "is not a place"),
        ("8", 'data.features has no meaning with the set "digits"'),
    ],
)
def test_mistakes_in_a_file_are_told(listed: str, words: str) -> None:
    with pytest.raises(mc.Error) as raised:
        with_maps(listed).build()
    assert words in str(raised.value)
    assert raised.value.hint


def test_a_synthetic_set_still_says_how_many_features_it_has() -> None:
    text = EXPERIMENT.replace('name = "digits"', 'name = "logistic"')
    built = experiment_files.parse(text.encode(), "my.toml", {"data.features": "7"}).build_dataset()
    assert built.features.shape[1] == 7


@pytest.mark.parametrize("bias", [0.1, 1.0])
def test_the_bias_stands_for_a_constant_feature(bias: float) -> None:
    """The gradient is that of a model without bias on rows with that constant appended, clipped alike."""
    import jax

    from murmurcast.problems.softmax import SoftmaxRegression

    data = mc.datasets.digits().with_features(["unit-norm"]).partition("iid", nodes=2)
    problem = SoftmaxRegression(data=data, clip=0.3, bias=bias)
    model = np.random.default_rng(1).normal(0, 3, problem.shape)
    rows = jax.tree.map(lambda leaf: leaf[1], problem.local_data())
    result = problem.gradient_at_public(jax.numpy.asarray(model, np.float32), rows, jax.random.key(0))
    x = np.column_stack([data.dataset.features[data.rows[1]], np.full(data.sizes[1], bias)]).astype(np.float64)
    scores = x @ model.T
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    residual = chance - (data.dataset.targets[data.rows[1]][:, None] == np.arange(10))
    gradients = residual[:, :, None] * x[:, None, :]
    norms = np.sqrt(np.square(gradients).sum(axis=(1, 2)))
    expected = (gradients * np.minimum(1, 0.3 / norms)[:, None, None]).mean(axis=0)
    np.testing.assert_allclose(result, expected, atol=1e-6)


def sites(folder: Path, **overrides: Any) -> Experiment:
    rng = np.random.default_rng(0)
    lines = [
        f"{a:.3f},{'yes' if a > 0 else 'no'},{('mill', 'farm', 'port')[row % 3]}"
        for row, a in enumerate(rng.normal(size=60))
    ]
    (folder / "my.csv").write_text("\n".join(["one,label,site", *lines]) + "\n")
    text = EXPERIMENT.replace('"digits"', '"my.csv"\nlabels = ["no", "yes"]').replace(
        'features = ["deskew", {kind = "hog", cells = 4}]', ""
    )
    text = text.replace('partition = "iid"', 'partition = {kind = "column", column = "site"}')
    (folder / "sites.toml").write_text(text)
    return experiment_files.parse(
        text.encode(), "my.toml", {key.replace("__", "."): value for key, value in overrides.items()}
    )


@pytest.mark.slow
def test_names_of_nodes_go_from_the_column_to_tables_and_report(folder: Path) -> None:
    sites(folder)
    done = call("run", folder / "sites.toml", "--out", folder / "run", folder=folder)
    assert done.code == 0, done.err
    assert mc.load_run(folder / "run").node_names == ("farm", "mill", "port")
    assert "(node farm)" in done.out or "(node mill)" in done.out or "(node port)" in done.out
    assert call("certify", folder / "run", folder=folder).code == 0
    assert call("report", folder / "run", "--out", folder / "page.html", folder=folder).code == 0
    assert ">mill<" in (folder / "page.html").read_text()
    assert "mill" in call("plan", folder / "sites.toml", folder=folder).out
    planned = json.loads(call("plan", folder / "sites.toml", "--json", folder=folder).out)
    assert planned["names"] == ["farm", "mill", "port"]


def test_names_in_the_file_give_the_order_and_must_be_those_of_the_column(folder: Path) -> None:
    problem, algorithm = sites(folder, network__names='["port", "mill", "farm"]').build(folder)
    assert algorithm.setup.network.names == problem.data.names == ("port", "mill", "farm")  # type: ignore[attr-defined]
    with pytest.raises(mc.Error, match="which is not a node"):
        sites(folder, network__names='["port", "mill", "barn"]').build(folder)


@pytest.mark.slow
def test_names_of_a_graph_are_kept_and_must_not_contradict_the_data(folder: Path) -> None:
    import networkx as nx

    graph: Any = nx.DiGraph()
    for sender, receiver, gain in (
        ("port", "mill", 0.5),
        ("mill", "port", 0.9),
        ("mill", "farm", 0.7),
        ("farm", "mill", 0.4),
    ):
        graph.add_edge(sender, receiver, gain=gain)
    network = mc.Network.from_networkx(graph)
    assert network.names == ("port", "mill", "farm")
    assert network.to_networkx().nodes[2]["name"] == "farm"
    assert mc.Network.from_networkx(graph.to_undirected(), gain=mc.gains.Uniform()).names == network.names
    data = sites(folder).build_dataset(folder)
    schedule = mc.Schedule(epochs=3)
    for nodes, fits in ((network.names, True), (3, False)):
        problem = mc.SoftmaxRegression(data=data.partition("column", nodes=nodes), ball=2.0)
        plan = mc.plan(network, problem, mc.Budget(epsilon=3.0, unit="record"), schedule)
        if fits:
            assert mc.run(mc.power_controlled(plan), problem).node_names == ("port", "mill", "farm")
        else:
            with pytest.raises(mc.Error, match="not the same, or in another order"):
                mc.run(mc.power_controlled(plan), problem)
