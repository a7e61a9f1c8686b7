"""Arrays with named axes, as a NetCDF file holds them.

What xarray holds, without it: importing xarray and pandas takes as long as a short run, and a run only writes.
"""

import csv
import io
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MAX_TABLE_LINES = 1_000_000


class Variable(NamedTuple):
    """One array.

    Attributes:
        dims: The names of its axes.
        values: Its numbers.
    """

    dims: tuple[str, ...]
    values: NDArray[Any]


class Labelled(NamedTuple):
    """Arrays that share axes.

    Attributes:
        variables: By name.
        coordinates: The labels along an axis, by its name; not every axis has some.
        attributes: Words and numbers about all of them.
    """

    variables: dict[str, Variable]
    coordinates: dict[str, NDArray[Any]]
    attributes: dict[str, Any]

    @property
    def sizes(self) -> dict[str, int]:
        """The length of every axis, in the order in which they appear."""
        lengths: dict[str, int] = {}
        for dims, values in self.variables.values():
            lengths |= dict(zip(dims, values.shape, strict=True))
        return lengths | {name: len(labels) for name, labels in self.coordinates.items()}

    def to_xarray(self) -> "xr.Dataset":
        """The same as a data set of xarray."""
        import xarray as xr

        return xr.Dataset(dict(self.variables), self.coordinates, self.attributes)

    def to_netcdf(self) -> bytes:
        """The same as a file."""
        import h5netcdf

        labels = {name: Variable((name,), values) for name, values in self.coordinates.items()}
        content = io.BytesIO()
        with h5netcdf.File(content, "w") as file:
            file.dimensions = self.sizes
            for name, (dims, values) in (labels | self.variables).items():
                file.create_variable(name, dims, data=values)
            file.attrs.update(self.attributes)
        return content.getvalue()

    def to_csv(self) -> bytes:
        """One line for every combination of labels; where that would be too many to read, means over nodes."""
        nodes = [axis for axis in self.sizes if axis not in ("seed", "epoch")]
        few = math.prod(self.sizes.values()) <= MAX_TABLE_LINES and len(nodes) < 2
        shown = self if few else from_xarray(self.to_xarray().mean(nodes, skipna=False))
        columns = [shown._column(Variable((name,), shown.coordinates[name])) for name in shown.sizes]
        columns += [shown._column(variable) for variable in shown.variables.values()]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*shown.sizes, *shown.variables])
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue().encode()

    def _column(self, variable: Variable) -> list[str]:
        """A variable's words, repeated along the axes it does not have; no word for what is no number."""
        words = ["" if value != value else str(value) for value in variable.values.ravel()]
        shape = [size if dim in variable.dims else 1 for dim, size in self.sizes.items()]
        places = np.arange(len(words)).reshape(variable.values.shape)
        order = [variable.dims.index(dim) for dim in self.sizes if dim in variable.dims]
        spread = np.broadcast_to(places.transpose(order).reshape(shape), tuple(self.sizes.values()))
        return [words[place] for place in spread.ravel().tolist()]


def from_xarray(dataset: "xr.Dataset") -> Labelled:
    """A data set of xarray, as it is."""
    return Labelled(
        {str(name): Variable(tuple(map(str, one.dims)), one.values) for name, one in dataset.data_vars.items()},
        {str(name): one.values for name, one in dataset.coords.items()},
        dict(dataset.attrs),
    )


def frame(dataset: "xr.Dataset") -> "pd.DataFrame":
    """A row for every combination of labels; where that would be too many to read, means over nodes."""
    nodes = [axis for axis in dataset.sizes if axis not in ("seed", "epoch")]
    few = math.prod(dataset.sizes.values()) <= MAX_TABLE_LINES and len(nodes) < 2
    shown = dataset if few else dataset.mean(nodes, skipna=False)
    return shown.to_dataframe([axis for axis in ("seed", "epoch", *nodes) if axis in shown.sizes]).reset_index()
