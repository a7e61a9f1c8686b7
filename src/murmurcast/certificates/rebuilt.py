"""A run's ledger against the one that its experiment makes anew: the second, independent check.

The first is the account of the ledger's own tables (`murmurcast.certificates.recompute`), which trusts no plan. This
one asks whether those tables are the ones that the experiment leads to. Whoever can build experiments hands the second
ledger in; nothing here builds one.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurcast.algorithms.tables import row_of
from murmurcast.certificates.ledger import Ledger, is_number, refuse, same
from murmurcast.runs.labelled import Labelled, from_xarray
from murmurcast.runs.result import Result

_TOLERANCE = 1e-5  # relative: programs are solved to finite accuracy, and other machines round otherwise
_COARSE = 1e-3  # the same for networks of so many nodes that a first-order method solves them
_COARSE_FROM = 1000  # nodes
_METRIC_TOLERANCE = 1e-3  # absolute and relative: sums over the test part in float32
_ROWS = 4096
NO_EXPERIMENT = (
    "the ledger's tables are those of the plan: there is no experiment from which it could be made anew and compared"
)


class Rebuilt(NamedTuple):
    """What an experiment leads to.

    Attributes:
        ledger: All that could be made anew; None where nothing could.
        info: What run.json says of such a run, as far as it could be made anew.
        is_whole: Whether the ledger is all of it, so that the run's may hold nothing else.
        evaluated: The epochs at which such a run is evaluated; () where that is not known.
        uses: Of the channel in one epoch; None where that is not known.
        final: [seeds, evaluated nodes] metrics that the published models reach on the test part, by name.
        not_compared: A line for each thing that must be taken on trust.
    """

    ledger: Labelled | None = None
    info: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_whole: bool = False
    evaluated: tuple[int, ...] = ()
    uses: int | None = None
    final: dict[str, NDArray[Any]] = {}  # noqa: RUF012 - never changed
    not_compared: tuple[str, ...] = ()


class Rebuild(Protocol):
    """Makes the ledger of a run anew, from its experiment and nothing else."""

    def __call__(self, run: Result, /) -> Rebuilt:
        """What the experiment leads to. An experiment that leads nowhere is refused as `Altered`."""
        ...


def not_rebuilt(run: Result) -> Rebuilt:  # noqa: ARG001
    """For accounts of the tables alone."""
    return Rebuilt()


def require_as_rebuilt(run: Result, ledger: Ledger, rebuilt: Rebuilt) -> None:
    """Every table, word and number that could be made anew is the run's."""
    for name, (stated, expected) in _pairs(run.info, rebuilt.info).items():
        if not _alike(stated, expected, _TOLERANCE):
            refuse(ledger.run, f"its {name} is {stated} in run.json, and its experiment makes it {expected}")
    if rebuilt.evaluated and np.asarray(run.metrics["epoch"]).tolist() != list(rebuilt.evaluated):
        refuse(ledger.run, "the metrics are of other epochs than its experiment has evaluated")
    if rebuilt.uses is not None and (run.metrics["channel_uses"] != rebuilt.uses * run.metrics["epoch"]).any():
        refuse(ledger.run, f"the metrics have other channel_uses than {rebuilt.uses} in every epoch")
    unmeasured = sorted({str(name) for name in run.metrics if str(name).startswith("published_")} - set(rebuilt.final))
    if rebuilt.final and unmeasured:
        refuse(ledger.run, f"the metrics have {unmeasured[0][:60]}, which its experiment does not measure")
    if rebuilt.ledger is not None:
        _require_same(ledger, rebuilt.ledger, is_whole=rebuilt.is_whole)
    for name, values in rebuilt.final.items():
        if name not in run.metrics or not np.allclose(
            run.final(name), values, rtol=_METRIC_TOLERANCE, atol=_METRIC_TOLERANCE, equal_nan=True
        ):
            refuse(ledger.run, f"the published models have another {name} than the metrics say")


def _require_same(ledger: Ledger, anew: Labelled, *, is_whole: bool) -> None:
    """All of the new ledger is in the run's, and nothing else where it is whole."""
    recorded, tolerance = from_xarray(ledger.data), _COARSE if ledger.nodes > _COARSE_FROM else _TOLERANCE
    for name, expected in anew.attributes.items():
        if not _alike(recorded.attributes.get(name), expected, tolerance):
            ledger.refuse(f"has {name} {recorded.attributes.get(name)}, and its experiment makes it {expected}")
    for name, table in anew.variables.items():
        if name not in recorded.variables or not _same_table(recorded.variables[name].values, table.values, tolerance):
            ledger.refuse(f"has another {name} than its experiment leads to")
    unknown = sorted(
        (set(recorded.attributes) - set(anew.attributes)) | (set(recorded.variables) - set(anew.variables))
    )
    if unknown and is_whole:
        ledger.refuse(f"has {unknown[0][:60]}, to which its experiment does not lead")


def _pairs(stated: Any, expected: dict[str, Any], above: str = "") -> dict[str, tuple[Any, Any]]:
    """What is said and what is expected, by name."""
    pairs: dict[str, tuple[Any, Any]] = {}
    for key, value in expected.items():
        said = stated.get(key) if isinstance(stated, dict) else None
        pairs |= _pairs(said, value, f"{above}{key}.") if isinstance(value, dict) else {above + key: (said, value)}
    return pairs


def _alike(stated: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, list | tuple):
        listed = isinstance(stated, list | tuple) and len(stated) == len(expected)
        return listed and all(_alike(one, other, tolerance) for one, other in zip(stated, expected, strict=True))
    if isinstance(expected, float) and is_number(stated):
        return bool(np.isclose(stated, expected, rtol=tolerance, atol=0))
    if isinstance(stated, np.floating) and is_number(expected):
        return bool(np.isclose(stated, expected, rtol=tolerance, atol=0))
    return (stated is None and expected is None) or same(stated, expected)


def _same_table(recorded: NDArray[Any], expected: NDArray[Any], tolerance: float) -> bool:
    """The same numbers in every epoch: where the last row stands for all later ones, it may do so earlier or later."""
    if recorded.shape[1:] != expected.shape[1:] or recorded.ndim != expected.ndim:
        return False
    if recorded.ndim < 2:
        return recorded.shape == expected.shape and _close(recorded, expected, tolerance)
    for first in range(1, max(len(recorded), len(expected)) + 1, _ROWS):
        rows = np.arange(first, min(first + _ROWS, max(len(recorded), len(expected)) + 1))
        if not _close(row_of(recorded, rows), row_of(expected, rows), tolerance):
            return False
    return True


def _close(recorded: NDArray[Any], expected: NDArray[Any], tolerance: float) -> bool:
    if expected.dtype.kind in "iu":
        return np.array_equal(recorded, expected)
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    return bool(np.allclose(recorded, expected, rtol=tolerance, atol=1e-12 * largest))
