"""Folders that lie consistently about coins, first releases and feature maps: what is at hand to compare shows it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.data_account import mu_before
from murmurcast.certificates.certify import certify
from murmurcast.certificates.ledger import Ledger
from murmurcast.errors import Altered
from murmurcast.experiments.certify import certify as certify_with_experiment
from murmurcast.experiments.rebuild import Rebuilder
from murmurcast.privacy import conversion
from murmurcast.privacy.best_guess import of_releases
from murmurcast.runs.result import Result
from tests import commands
from tests.certificates.ledger_edits import caught, with_attributes, without_attribute
from tests.conftest import asymmetric_network

FILE = """
[network]
gains = [[0.0, 0.9, 0.4, 0.0], [0.7, 0.0, 1.1, 0.5], [0.8, 0.6, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]]
power = [1.0, 2.0, 0.5, 1.5]
[privacy]
epsilon = 1.5
unit = "record"
clip = 0.5
{privacy}
[schedule]
epochs = 4
noise_timing = "aligned"
[data]
{data}
partition = "iid"
[problem]
batch = 10
sampling = "poisson"
{problem}
"""
MADE_UP = 'name = "logistic"\nexamples = 300\nfeatures = 4\nclasses = 3'
FROM_FILE = 'name = "mine.npz"\nclasses = 3'
SHARES = "centring = 0.02\nwhitening = 0.1"
OWN_MODULE = 'kind = "model"\nmodule = "my_nets_of_a_test:net"\nloss = "cross-entropy"'
NETS = "import murmurcast as mc\n\n\ndef net(features, outputs):\n    return mc.modules.softmax(features, outputs)\n"
Edit = Callable[[xr.Dataset], xr.Dataset]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a set in a file and a module of a user's own beside the experiment."""
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "mine.npz", x=rng.normal(size=(300, 4)), y=rng.integers(3, size=300))
    (tmp_path / "my_nets_of_a_test.py").write_text(NETS)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def run_of(folder: Path, data: str = MADE_UP, privacy: str = "", problem: str = "", text: str = FILE) -> Result:
    (folder / "my.toml").write_text(text.format(data=data, privacy=privacy, problem=problem))
    experiment = mc.load(folder / "my.toml")
    built = experiment.build(folder)
    return mc.run(built.algorithm, built.problem, options=mc.RunOptions(experiment=experiment.as_toml()))


def forged(run: Result, edit: Edit) -> Result:
    """The ledger changed, and every number of the promise as its tables then have it."""
    ledger = edit(run.ledger)
    tables = Ledger(ledger, "forged", int(ledger.sizes["node"]), int(ledger.attrs["epochs"]))
    method: Any = registry.find(str(ledger.attrs["algorithm"]))
    (releases,) = (conversion.after(mu_before(tables), part) for part in method.account(tables))
    costs = conversion.epsilon_of(releases, float(ledger.attrs["delta"]))
    promised = {"promised_mu": conversion.mu_of(releases), "promised_epsilon": costs}
    promised["promised_best_guess"] = of_releases(releases, float(ledger.attrs["delta"]))
    ledger = ledger.assign({name: ("node", values) for name, values in promised.items()})
    privacy = run.info["privacy"] | {"epsilon": float(costs.max())}
    return replace(run, ledger=ledger, info=run.info | {"privacy": privacy})


def rarer_coins(ledger: xr.Dataset) -> xr.Dataset:
    """More records than there are: each joins more seldom."""
    return ledger.assign(records_per_node=ledger["records_per_node"] * 4)


def more_room(ledger: xr.Dataset) -> xr.Dataset:
    return ledger.assign_attrs(room=int(ledger.attrs["room"]) + 5)


def louder(name: str) -> Edit:
    return lambda ledger: ledger.assign({f"{name}_noise": ledger[f"{name}_noise"] * 2})


EDITS: dict[str, Edit] = {
    "rarer coins": rarer_coins,
    "more room": more_room,
    "centring under more noise": louder("centring"),
    "whitening under more noise": louder("whitening"),
    "rows that are not negative": with_attributes(first_rows="non-negative"),
}


@pytest.mark.slow
def test_tables_alone_show_none_of_it(folder: Path) -> None:
    """A forger has the library too: without the experiment a ledger is believed, and is assumed to be true."""
    run = run_of(folder, privacy=SHARES)
    for edit in EDITS.values():
        assert certify(forged(run, edit)).verdict == "kept"
    assert certify(forged(run, rarer_coins)).epsilon.max() < 0.9 * certify(run).epsilon.max()


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("problem", ["", OWN_MODULE], ids=["softmax", "own module"])
@pytest.mark.slow
def test_with_experiment_and_data_at_hand_all_of_it_shows(folder: Path, problem: str, edit: str) -> None:
    run = run_of(folder, privacy=SHARES, problem=problem)
    assert certify_with_experiment(run).verdict == "kept"
    # What coins and noise come to shows first, where the forger changed it.
    with pytest.raises(
        Altered, match=r"records_per_node|room|_noise|first_rows|privacy.epsilon .* its experiment makes"
    ):
        certify_with_experiment(forged(run, EDITS[edit]))


@pytest.mark.slow
def test_without_the_data_what_follows_from_sizes_shows_and_sizes_are_named_as_trusted(folder: Path) -> None:
    run = run_of(folder, FROM_FILE, SHARES)
    nowhere = Rebuilder(data=folder / "elsewhere")
    outcome = certify(run, rebuild=nowhere)
    assert outcome.verdict == "kept"
    assert any("numbers of examples are those of the data" in line for line in outcome.not_compared)
    for edit in ("more room", "centring under more noise", "whitening under more noise", "rows that are not negative"):
        with pytest.raises(Altered):
            certify(forged(run, EDITS[edit]), rebuild=nowhere)
    with pytest.raises(Altered, match=r"records_per_node|privacy.epsilon .* its experiment makes"):
        certify(forged(run, rarer_coins), rebuild=Rebuilder(data=folder))


@pytest.mark.slow
def test_an_experiment_that_cannot_be_built_is_no_reason_to_compare_less(folder: Path) -> None:
    """Made-up data is always at hand: a partition that fails there led to no run."""
    uneven = '{{kind = "quantity", concentration = 4.0, minimum = 20}}'
    run = run_of(folder, text=FILE.replace("poisson", "fixed").replace('"iid"', uneven))
    broken = run.experiment.replace("minimum = 20", "minimum = 2000")
    assert broken != run.experiment
    with pytest.raises(Altered, match="leads to no such run"):
        certify_with_experiment(replace(run, experiment=broken))


def fitted_on(rows: np.ndarray) -> mc.features.Own:
    """Principal directions of the private records, declared to be free of data: from outside a map like any other."""
    directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:3]
    return mc.features.Own(function=lambda given: given @ directions.T, data_free="from a textbook", name="mine")


def with_map(rows: np.ndarray, own: mc.features.Own, seed: int) -> Result:
    labels = np.arange(len(rows)) % 3
    data = mc.datasets.from_arrays(rows, labels, classes=3).with_features([own]).partition("iid", nodes=4)
    problem = mc.SoftmaxRegression(data=data, clip=0.5)
    budget = mc.Budget(epsilon=1.5, unit="record")
    schedule = mc.Schedule(epochs=3, step=0.2, noise_timing="aligned")
    plan = mc.plan(asymmetric_network(3, 4), problem, budget, schedule)
    return mc.run(mc.power_controlled(plan), problem, seeds=(seed,), options=mc.RunOptions(name=f"run {seed}"))


@pytest.fixture(scope="module")
def two_sets() -> tuple[np.ndarray, np.ndarray]:
    """Neighbours: one record is another."""
    rows = np.random.default_rng(3).normal(size=(150, 6)).astype(np.float32)
    other = rows.copy()
    other[100] = -other[100]
    return rows, other


@pytest.mark.slow
def test_a_map_fitted_on_the_records_is_caught_by_its_hash(
    two_sets: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Each run alone rests on the declaration; runs on two sets show that the map changed with the data."""
    runs = [with_map(rows, fitted_on(rows), seed) for seed, rows in enumerate(two_sets)]
    hashes = [str(run.ledger.attrs["data_features_sha256"]) for run in runs]
    assert hashes[0] != hashes[1]
    for run, outcome in zip(runs, hashes, strict=True):
        (line,) = [line for line in certify(run).assumptions if "declared free of data" in line]
        assert outcome in line
    with pytest.raises(Altered, match="answer other numbers to public rows than in run"):
        certify(runs)
    for run in runs:
        run.save(tmp_path / run.name.replace(" ", "-"))
    done = commands.run("certify", "run-0", "run-1", cwd=tmp_path)
    assert done.returncode != 0
    assert "changes with the data is not free of data" in " ".join(done.stderr.split())


def test_a_map_that_looks_at_no_data_has_one_hash(two_sets: tuple[np.ndarray, np.ndarray]) -> None:
    fixed = mc.features.Own(function=lambda given: given[:, :3] ** 2, data_free="squares", name="squares")
    runs = [with_map(rows, fixed, seed) for seed, rows in enumerate(two_sets)]
    assert certify(runs).verdict == "kept"
    other_columns = with_map(two_sets[0][:, :5], fixed, 2)  # public rows have as many columns as the data
    assert other_columns.ledger.attrs["data_features_sha256"] != runs[0].ledger.attrs["data_features_sha256"]


def test_a_ledger_without_the_hash_or_with_no_hash_is_refused(two_sets: tuple[np.ndarray, np.ndarray]) -> None:
    run = with_map(two_sets[0], fitted_on(two_sets[0]), 0)
    assert "public rows" in caught(replace(run, ledger=without_attribute(run.ledger, "data_features_sha256")))
    for other in ("", "abc", "0" * 63, f"{'0' * 64} {'0' * 64}", 7):
        assert "public rows" in caught(replace(run, ledger=run.ledger.assign_attrs(data_features_sha256=other)))
