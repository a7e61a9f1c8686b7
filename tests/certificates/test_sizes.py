"""Numbers of records in ledgers of others: honest ones lead to the room they always did, nonsense leads nowhere."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray
from scipy.special import bdtrc

import murmurcast as mc
from murmurcast.algorithms import account, registry
from murmurcast.certificates.certify import certify
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt
from murmurcast.errors import Altered
from murmurcast.experiments.rebuild import Rebuilder
from murmurcast.problems.sampling import sampling
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import (
    Edit,
    caught,
    make_plan,
    quadratic,
    scaled,
    with_attributes,
    with_ledger,
    without_attribute,
)
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
epochs = 3
[data]
name = "mine.npz"
classes = 3
partition = "iid"
[problem]
batch = 10
sampling = "{sampling}"
[algorithm]
name = "{method}"
"""


def room_of_all(batch: int, sizes: NDArray[np.int64]) -> int:
    """The smallest room that hardly overflows, of all that there are."""
    beyond = np.arange(batch, int(sizes.max()) + 1)
    tails = np.max([bdtrc(np.minimum(beyond, size), size, batch / size) for size in np.unique(sizes)], axis=0)
    return int(beyond[np.argmax(tails <= 2.0**-64)])


@pytest.mark.parametrize("largest", [1, 2, 3, 7, 30, 64, 65, 200, 1000, 60_000])
def test_room_is_the_smallest_of_all_that_hardly_overflow(largest: int) -> None:
    for smallest in sorted({1, 2, largest // 3, largest - 1, largest} & set(range(1, largest + 1))):
        sizes = np.array([largest, smallest, (largest + smallest) // 2, smallest])
        batches = {1, 2, 10, smallest // 7, smallest // 2, smallest - 1, smallest}
        for batch in sorted(batches & set(range(1, smallest + 1))):
            result = sampling(batch, sizes)
            assert (result.room, result.batch, result.sizes) == (room_of_all(batch, sizes), batch, tuple(sizes))


def test_room_is_found_without_laying_out_all_that_there_are() -> None:
    sizes = np.array([2**31 - 1, 10**9, 300])
    tracemalloc.start()
    result = sampling(100, sizes)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**20
    assert 200 < result.room < 250  # as of a Poisson law with mean 100
    assert result.overflow <= 2.0**-64 < result._replace(room=result.room - 1).overflow


def test_more_records_than_tails_are_known_for_are_refused() -> None:
    assert np.isnan(bdtrc(220, 2**31, 100 / 2**31))  # why
    for largest in (2**31, 2**32, 10**11):
        with pytest.raises(mc.Error, match=f"a node has {largest} records"):
            sampling(100, np.array([300, largest]))


@pytest.mark.parametrize(("batch", "sizes"), [(0, [5, 9]), (6, [5, 9]), (-1, [5, 9]), (10**12, [5, 9])])
def test_a_batch_that_a_node_does_not_have_is_refused(batch: int, sizes: list[int]) -> None:
    with pytest.raises(mc.Error, match="a node has 5 records") as raised:
        sampling(batch, np.array(sizes))
    assert raised.value.hint == "set batch from 1 to 5"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes")
    rng = np.random.default_rng(5)
    np.savez(folder / "mine.npz", x=rng.normal(size=(240, 4)), y=rng.integers(3, size=240))
    return folder


def created(place: Path, method: str, sampling: str = "poisson", privacy: str = "") -> Result:
    (place / "my.toml").write_text(FILE.format(method=method, sampling=sampling, privacy=privacy))
    experiment = mc.load(place / "my.toml")
    built = experiment.build(place)
    return mc.run(built.algorithm, built.problem, options=mc.RunOptions(experiment=experiment.as_toml()))


@pytest.fixture(scope="module")
def runs(place: Path) -> dict[str, Result]:
    """One method that counts on coins, and one that does not: its account asks for no sizes."""
    return {method: created(place, method) for method in ("power-controlled", "decor")}


def of_every_node(value: float) -> Edit:
    return lambda ledger: ledger.assign(records_per_node=ledger["power"] * 0 + value)


def at_one_node(value: float) -> Edit:
    def edit(ledger: xr.Dataset) -> xr.Dataset:
        sizes = np.array(ledger["records_per_node"])
        sizes[2] = value
        return ledger.assign(records_per_node=("node", sizes))

    return edit


NONSENSE: dict[str, Edit] = {
    "no sizes": lambda ledger: ledger.drop_vars("records_per_node"),
    "fewer than a batch": of_every_node(9.0),
    "fewer than a batch at one node": at_one_node(9.0),
    "an 800 GB array": at_one_node(1e11),
    "more than there are numbers for": of_every_node(1e100),
    "half a record": at_one_node(60.5),
    "none": of_every_node(0.0),
    "fewer than none": at_one_node(-60.0),
    "not a number": at_one_node(np.nan),
    "of other nodes": lambda ledger: ledger.assign(records_per_node=("other", np.full(3, 60.0))),
    "of no nodes": lambda ledger: ledger.assign(records_per_node=60.0),
    "words": lambda ledger: ledger.assign(records_per_node=("node", ["60"] * 4)),
    "another sampling": with_attributes(sampling="fixed"),
    "no batch": lambda ledger: without_attribute(ledger, "batch"),
    "half a batch": with_attributes(batch=10.5),
    "a batch of many": with_attributes(batch=10**9),
    "no room": lambda ledger: without_attribute(ledger, "room"),
    "room for half a record": with_attributes(room=40.5),
    "less room than a batch": with_attributes(room=9),
    "room as a word": with_attributes(room="40"),
}


@pytest.mark.parametrize("what", NONSENSE)
@pytest.mark.parametrize("method", ["power-controlled", "decor"])
def test_nonsense_is_refused_whether_the_account_looks_at_sizes_or_not(
    runs: dict[str, Result], method: str, what: str
) -> None:
    run = runs[method]
    forged = with_ledger(run, NONSENSE[what](run.ledger))
    ways: tuple[Rebuild, ...] = (not_rebuilt, Rebuilder(Path("/nowhere")))
    for rebuild in ways:
        with pytest.raises(Altered) as raised:
            certify(forged, rebuild=rebuild)
        assert raised.value.hint


def test_honest_sizes_are_kept_with_and_without_the_data(runs: dict[str, Result], place: Path) -> None:
    for run in runs.values():
        assert certify(run).verdict == "kept"
        for folder in (place, Path("/nowhere")):
            assert certify(run, rebuild=Rebuilder(folder)).verdict == "kept"


def rebuilt(run: Result, edit: Edit, there: str = "", instead: str = "") -> Callable[[], Any]:
    """Asks for the plan alone, as if all before had been passed."""
    forged = with_ledger(run, edit(run.ledger))
    assert there in run.experiment
    text = run.experiment.replace(there, instead)
    return lambda: Rebuilder(Path("/nowhere"))(
        Result(metrics=run.metrics, ledger=forged.ledger, published=run.published, info=run.info, experiment=text)
    )


@pytest.mark.parametrize("what", ["no sizes", "an 800 GB array", "fewer than a batch", "of other nodes"])
def test_a_plan_that_is_made_anew_reads_them_no_less_carefully(runs: dict[str, Result], what: str) -> None:
    for run in runs.values():
        with pytest.raises(Altered, match=r"records_per_node|a node has 9 records"):
            rebuilt(run, NONSENSE[what])()


def test_coins_without_a_batch_lead_to_no_plan(runs: dict[str, Result]) -> None:
    with pytest.raises(Altered, match="leads to no such run"):
        rebuilt(runs["decor"], lambda ledger: ledger, "batch = 10", "")()
    with pytest.raises(Altered, match="leads to no such run"):
        rebuilt(runs["decor"], lambda ledger: ledger, "batch = 10", "batch = 100000")()


@pytest.mark.parametrize("what", ["no sizes", "of other nodes", "half a record", "none"])
def test_releases_before_training_rest_on_sizes_of_the_same_kind(place: Path, what: str) -> None:
    run = created(place, "power-controlled", "fixed", "centring = 0.02\nwhitening = 0.1")
    assert certify(run, rebuild=Rebuilder(Path("/nowhere"))).verdict == "kept"
    with pytest.raises(Altered, match="records_per_node"):
        certify(with_ledger(run, NONSENSE[what](run.ledger)))
    with pytest.raises(Altered, match="records_per_node"):
        rebuilt(run, NONSENSE[what])()
    assert scaled("records_per_node", 1.0)(run.ledger).identical(run.ledger)


@pytest.mark.parametrize("sizes", ["[60, 60]", "[60, 60, 60, 60, 60]", "[]", "[0, 60, 60, 60]", "-60"])
def test_sizes_of_other_nodes_in_an_experiment_lead_to_no_plan(place: Path, sizes: str) -> None:
    (place / "my.toml").write_text(
        FILE.format(method="power-controlled", sampling="fixed", privacy="")
        .replace('unit = "record"', 'unit = "node"')
        .replace("batch = 10\n", "")
    )
    experiment = mc.load(place / "my.toml")
    built = experiment.build(place)
    run = mc.run(built.algorithm, built.problem, options=mc.RunOptions(experiment=experiment.as_toml()))
    forged = replace(run, experiment=run.experiment.replace("[privacy]", f"[privacy]\nexamples_per_node = {sizes}"))
    with pytest.raises(Altered, match="leads to no such run"):
        certify(forged, rebuild=Rebuilder(Path("/nowhere")))


def without_epochs(ledger: xr.Dataset) -> xr.Dataset:
    """What changes over epochs, as a row that stands for all of them."""
    for name in [str(name) for name in ledger if ledger[name].dims == ("epoch",)]:
        ledger = ledger.assign({name: (("always", "node"), np.full((1, 4), ledger[name][0]))})
    return ledger


@pytest.mark.parametrize("edit", [lambda ledger: ledger, without_epochs], ids=["tables kept", "tables of one row"])
@pytest.mark.parametrize("name", ["power-controlled", "subgradient-push-gaussian", "private-exact-diffusion", "decor"])
def test_an_end_far_beyond_its_tables_is_not_waited_for(name: str, edit: Edit) -> None:
    problem = mc.Quadratic.random(4, 2, seed=1, clip=1.3)
    run = mc.run(registry.find(name).make(make_plan(problem, timing="aligned")), problem)
    far = 10**12
    forged = with_ledger(run, edit(run.ledger).assign_attrs(epochs=far), epochs=far)
    epochs = np.array(run.metrics["epoch"])
    epochs[-1] = far
    forged = replace(forged, metrics=run.metrics.assign_coords(epoch=epochs))
    assert "says that it has 1000000000000 epochs, and its tables have" in caught(forged)


def test_nothing_of_nodes_times_nodes_is_laid_out_where_no_plan_does(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, schedule = quadratic(), mc.Schedule(epochs=4, step=0.3, rounds=2)
    plan = mc.plan(asymmetric_network(3, 4), problem, mc.Budget(epsilon=4.0), schedule, z="recursive")
    run = mc.run(mc.power_controlled(plan), problem)
    assert certify(run).verdict == "kept"
    monkeypatch.setattr(account, "RECURSIVE_UP_TO", 3)
    monkeypatch.delattr(np.linalg, "matrix_power")
    assert "no plan of more than 3 nodes has" in caught(run)
