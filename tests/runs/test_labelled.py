"""Labelled arrays are written as xarray and pandas would have written them."""

import io

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.runs.labelled import Labelled, Variable, frame, from_xarray
from tests.algorithms.networks import NODES, two_way


@pytest.fixture(scope="module")
def labelled() -> Labelled:
    draw = np.random.default_rng(3).normal(size=(2, 3, 4))
    draw[0, 1, 2], draw[1, 2, 3], draw[0, 0, 0] = np.nan, np.inf, 1e-7
    variables = {
        "loudest": Variable(("seed", "node"), np.abs(draw[:, 0]).astype(np.float32)),
        "loss": Variable(("seed", "epoch", "node"), draw.astype(np.float32)),
        "mean": Variable(("seed", "epoch"), draw.mean(axis=2)),
        "uses": Variable(("epoch",), np.array([10, 20, 10**9])),
    }
    labels = {"seed": np.array([7, 0]), "epoch": np.array([1, 5, 9]), "node": np.arange(4)}
    return Labelled(variables, labels, {"algorithm": "mine", "epochs": 9, "delta": 1e-5})


def test_there_and_back(labelled: Labelled) -> None:
    again = from_xarray(labelled.to_xarray())
    xr.testing.assert_identical(again.to_xarray(), labelled.to_xarray())
    assert again.sizes == labelled.sizes == {"seed": 2, "node": 4, "epoch": 3}


def test_the_file_holds_what_xarray_would_have_written(labelled: Labelled) -> None:
    theirs = labelled.to_xarray().to_netcdf(None, engine="h5netcdf")
    ours = xr.load_dataset(io.BytesIO(labelled.to_netcdf()), engine="h5netcdf")
    xr.testing.assert_identical(ours, xr.load_dataset(io.BytesIO(bytes(theirs)), engine="h5netcdf"))
    assert {name: one.dtype for name, one in ours.items()} == {
        name: one.dtype for name, one in labelled.to_xarray().items()
    }


def test_the_table_is_what_pandas_would_have_written(labelled: Labelled) -> None:
    theirs = labelled.to_xarray().to_dataframe().reset_index().to_csv(index=False)
    assert labelled.to_csv() == theirs.encode()


@pytest.mark.slow
def test_a_real_run_goes_through_unchanged() -> None:
    problem = mc.Quadratic.random(NODES, 3)
    setup = mc.Setup(network=two_way(), problem=problem, budget=mc.Budget(epsilon=1.0), schedule=mc.Schedule(epochs=3))
    ran = mc.run(mc.frost(setup), problem)
    for dataset in (ran.metrics, ran.ledger):
        written = xr.load_dataset(io.BytesIO(from_xarray(dataset).to_netcdf()), engine="h5netcdf")
        xr.testing.assert_identical(written, dataset)


def test_of_many_nodes_one_that_diverged_leaves_no_mean() -> None:
    """Means over nodes stand where there are two kinds of them: of all, and of a sample."""
    values = np.arange(6.0).reshape(1, 2, 3)
    values[0, 1, 2] = np.nan
    axes = {"seed": [0], "epoch": [1, 2], "node": [4, 5, 9], "sender": [0, 1]}
    data = xr.Dataset({"own_loss": (("seed", "epoch", "node"), values)}, axes)
    data["sent_power"] = (("seed", "epoch", "sender"), np.ones((1, 2, 2)))
    assert frame(data)["own_loss"].isna().tolist() == [False, True]
    first, second = from_xarray(data).to_csv().decode().splitlines()[1:]
    assert first.split(",")[2] == "1.0"
    assert second.split(",")[2] == ""
