"""What is read of a NetCDF file is what xarray reads of it, and an axis without a name is refused."""

import io
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from murmurcast.runs.labelled import Labelled, Variable
from murmurcast.runs.sealed import dataset
from murmurcast.runs.validate import Unsound

GIVEN = Labelled(
    variables={
        "loss": Variable(("seed", "node"), np.arange(6.0, dtype=np.float32).reshape(2, 3)),
        "uses": Variable(("node",), np.array([4, 5, 6])),
        "step": Variable(("always",), np.array([0.5])),
        "total": Variable((), np.array(7.5)),
        "missing": Variable(("seed",), np.array([np.nan, 1.0])),
    },
    coordinates={"seed": np.array([3, 9]), "node": np.arange(3)},
    attributes={"algorithm": "ring", "epochs": 20, "delta": 1e-5, "shares": np.array([0.5, 0.25]), "empty": ""},
)


def test_it_is_what_xarray_reads() -> None:
    content = GIVEN.to_netcdf()
    result, expected = dataset(content, "a.nc"), xr.load_dataset(io.BytesIO(content), engine="h5netcdf")
    assert result.identical(expected)
    assert list(result.variables) == list(expected.variables)
    assert [result[name].dtype for name in result] == [expected[name].dtype for name in expected]
    assert {name: type(word) for name, word in result.attrs.items()} == {
        name: type(word) for name, word in expected.attrs.items()
    }


def test_what_xarray_writes_is_read_too() -> None:
    content = io.BytesIO(bytes(GIVEN.to_xarray().to_netcdf(engine="h5netcdf")))
    assert dataset(content.getvalue(), "a.nc").identical(GIVEN.to_xarray())


def no_names(file: h5py.File) -> None:
    del file["loss"].attrs["DIMENSION_LIST"]


def one_name_less(file: h5py.File) -> None:
    names = file["loss"].attrs["DIMENSION_LIST"][:1]
    del file["loss"].attrs["DIMENSION_LIST"]
    file["loss"].attrs.create("DIMENSION_LIST", names, dtype=h5py.vlen_dtype(h5py.ref_dtype))


@pytest.mark.parametrize("edit", [no_names, one_name_less])
def test_an_axis_has_a_name(edit: Callable[[Any], None]) -> None:
    content = io.BytesIO(GIVEN.to_netcdf())
    with h5py.File(content, "r+") as file:
        edit(file)
    with pytest.raises(Unsound, match="an axis of loss has no name"):
        dataset(content.getvalue(), "a.nc")
