"""All runs of a sweep as one labelled data set, and as a tidy table."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.runs.result import Result
from murmurcast.runs.sweep import Point, text_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_BY_NODE, _BY_SEED, _BY_EPOCH = ("seed", "epoch", "node"), ("seed", "epoch"), ("epoch",)


class _Axes(NamedTuple):
    """Where points stand.

    Attributes:
        dims: Names of the dimensions before seeds and epochs.
        shape: Their lengths.
        places: Of every point, its index along each of them.
        coordinates: Labels, in the form that xarray takes.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    places: list[tuple[int, ...]]
    coordinates: dict[str, Any]


def dataset(
    axes: Sequence[str],
    points: Sequence[Point],
    runs: Mapping[str, Result],
    epsilons: Mapping[str, float | None],
    *,
    drawn: bool,
) -> "xr.Dataset":
    """All finished runs, labelled; what a run does not have is not a number.

    Args:
        axes: What was varied.
        points: All points, done or not: a grid keeps its shape.
        runs: By the names of points.
        epsilons: What a run costs, where its account holds; None where nothing is promised.
        drawn: Whether points are no grid.
    """
    import xarray as xr

    placed = _drawn(axes, points) if drawn else _grid(axes, points)
    seeds = sorted({int(seed) for run in runs.values() for seed in run.info["seeds"]})
    epochs = sorted({int(epoch) for run in runs.values() for epoch in run.metrics["epoch"].values})
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {}
    sizes = {"seed": len(seeds), "epoch": len(epochs)}

    def put(name: str, dims: tuple[str, ...], place: tuple[Any, ...], values: Any) -> None:
        shape = placed.shape + tuple(sizes[dim] for dim in dims)
        variables.setdefault(name, ((*placed.dims, *dims), np.full(shape, np.nan)))[1][place] = values

    for point, place in zip(points, placed.places, strict=True):
        put("epsilon", (), place, np.nan)
        run = runs.get(point.name)
        if run is None:
            continue
        rows = np.searchsorted(seeds, run.info["seeds"])
        columns = np.searchsorted(epochs, run.metrics["epoch"].values)
        for name, values in curves(run).items():
            at = (*place, *np.ix_(rows, columns)) if values.ndim == 2 else (*place, columns)
            put(name, _BY_SEED if values.ndim == 2 else _BY_EPOCH, at, values)
        for name, by_seed in finals(run).items():
            put(name, ("seed",), (*place, rows), by_seed)
        epsilon = epsilons.get(point.name)
        put("epsilon", (), place, np.nan if epsilon is None else epsilon)
        put("delta", (), place, run.info["privacy"]["delta"])
    coordinates = placed.coordinates | {"seed": seeds, "epoch": epochs}
    return xr.Dataset(variables, coordinates, {"axes": list(axes), "made_by": "murmurcast sweep"})


def curves(run: Result) -> dict[str, FloatArray]:
    """Means over nodes, [seed, epoch], and what is the same for all seeds, [epoch]."""
    return {
        str(name): np.asarray(
            one.mean([axis for axis in one.dims if axis not in ("seed", "epoch")], skipna=False), np.float64
        )
        for name, one in run.metrics.items()
        if one.dims in (_BY_NODE, _BY_SEED, _BY_EPOCH)
    }


def finals(run: Result) -> dict[str, FloatArray]:
    """[seed] at the last epoch: the mean over nodes, and the worst node's."""
    metrics = {}
    for name, one in run.metrics.items():
        if one.dims == _BY_NODE:
            last = np.asarray(one.isel(epoch=-1), np.float64)
            metrics[f"final_{name}"] = last.mean(axis=1)
            metrics[f"worst_{name}"] = last.min(axis=1) if str(name).endswith("accuracy") else last.max(axis=1)
        elif one.dims == _BY_SEED:
            metrics[f"final_{name}"] = np.asarray(one.isel(epoch=-1), np.float64)
    return metrics


def frame(
    axes: Sequence[str], points: Sequence[Point], runs: Mapping[str, Result], epsilons: Mapping[str, float | None]
) -> "pd.DataFrame":
    """One row for every finished point and seed: swept values, metrics of the last epoch, what the run costs."""
    import pandas as pd

    parts, words = [], {key: labels(points, key) for key in axes}
    for at, point in enumerate(points):
        run = runs.get(point.name)
        if run is None:
            continue
        seeds = run.info["seeds"]
        epsilon = epsilons.get(point.name)
        columns: dict[str, Any] = {"run": [point.name] * len(seeds)}
        columns |= {key: [words[key][at]] * len(seeds) for key in axes}
        columns |= {"seed": seeds, "epochs": [int(run.metrics["epoch"][-1])] * len(seeds)}
        columns |= finals(run)
        columns |= {"epsilon": [np.nan if epsilon is None else epsilon] * len(seeds)}
        columns |= {"delta": [run.info["privacy"]["delta"]] * len(seeds)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["run", *axes, "seed", "epochs"])


def as_netcdf(data: "xr.Dataset") -> bytes:
    """The data set as a file."""
    content = data.to_netcdf(engine="h5netcdf")
    return bytes(content)


def as_csv(table: "pd.DataFrame") -> bytes:
    """The table as a file."""
    text = io.StringIO()
    table.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue().encode()


def _grid(axes: Sequence[str], points: Sequence[Point]) -> _Axes:
    """A dimension for every axis: numbers in the order of size, words in that in which they were given."""
    of_points = {key: labels(points, key) for key in axes}
    of_axes = {key: in_order(values) for key, values in of_points.items()}
    places = [tuple(of_axes[key].index(of_points[key][at]) for key in axes) for at in range(len(points))]
    return _Axes(tuple(axes), tuple(len(of_axes[key]) for key in axes), places, dict(of_axes))


def _drawn(axes: Sequence[str], points: Sequence[Point]) -> _Axes:
    """One dimension, and the values of every axis along it."""
    coordinates: dict[str, Any] = {"point": [point.name for point in points]}
    coordinates |= {key: ("point", labels(points, key)) for key in axes}
    return _Axes(("point",), (len(points),), [(place,) for place in range(len(points))], coordinates)


def labels(points: Sequence[Point], key: str) -> list[Any]:
    """The values of a key, point by point: numbers where all are, and words otherwise."""
    values = [point.values[key] for point in points]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return values if numeric else [text_of(value) for value in values]


def in_order(values: Sequence[Any]) -> list[Any]:
    """Every value once: numbers by size, words as they come."""
    unique = list(dict.fromkeys(values))
    return unique if any(isinstance(value, str) for value in unique) else sorted(unique)
