"""A map of the user's own: declared free of data, and tried for what can be tried.

Whether a map was fitted on the private records nobody can see from its code. What shows is refused: a map whose answer
for one row depends on the rows beside it, on what it saw before, or on chance. What does not show, such as a map that
was fitted beforehand, rests on the declaration, which is printed with every promise. Its answers to fixed public rows
stand in the ledger as a hash: a map that is free of data has the same one whatever the data is.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Error

_PROBES, _PURPOSE = 32, 8  # public rows, and the purpose of their draw
_TRIED_ALONE = 8  # rows of the data
ONE_BIT = "Let it compute in float64: in float32 the last bit may differ from processor to processor"
_TOLERANCE = 1e-4  # of the largest number: sums may be rounded in another order, and means move further than that


class RowMap(Protocol):
    """A pure function of rows: what it gives for one row depends on that row alone."""

    def __call__(self, rows: Rows, /) -> Any:
        """[examples, features] float32 to [examples, other features], finite numbers."""
        ...


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class Own:
    """A map of your own.

    Args:
        function: From rows [examples, features] to rows, every example alone; called with blocks of rows.
        data_free: Your declaration that it was chosen without looking at the private records, in your words. Without
            one nothing is promised on what it gives.
        name: What it is called; the function's own name where it is left out.
        sha256: Its `fingerprint` as it was declared: any other is refused.
    """

    function: RowMap
    data_free: str = ""
    name: str = ""
    sha256: str = ""
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise Error(
                f"function is {type(self.function).__name__}, expected a function from rows to rows",
                hint="give a function of an array [examples, features]",
            )
        for field in ("data_free", "name", "sha256"):
            if not isinstance(given := getattr(self, field), str):
                raise Error(
                    f"{field} is {given!r:.60}, expected words",
                    hint='say it in your words: data_free="I chose it without looking at the records"'
                    if field == "data_free"
                    else f"give {field} as a string, or leave it out",
                )
        if not self.name:
            kind = type(self.function)
            module = getattr(self.function, "__module__", None) or kind.__module__
            object.__setattr__(self, "name", f"{module}:{getattr(self.function, '__qualname__', kind.__qualname__)}")

    @property
    def kind(self) -> str:
        """Not a map of these."""
        return "own"

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:  # noqa: ARG002
        """What comes out, nobody knows."""
        return None

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:  # noqa: ARG002
        """[examples, other features], checked to be finite numbers, a row each."""
        try:
            given = np.asarray(self.function(rows))
            answer = np.asarray(given, np.float32)
        except Error:
            raise
        except Exception as problem:  # noqa: BLE001 - anything may happen in a function that is not ours
            raise Error(
                f"the feature map {self.name} failed: {type(problem).__name__}: {_check.short(problem)}",
                hint="it is called with rows [examples, features] in float32, also with one alone",
            ) from None
        if answer.ndim != 2 or len(answer) != len(rows) or not answer.shape[1]:
            raise Error(
                f"the feature map {self.name} made {answer.shape} of {rows.shape}",
                hint="return one row of numbers per example",
            )
        if given.dtype.kind not in "fiub" or not np.isfinite(answer).all():
            raise Error(f"the feature map {self.name} gave a number that is not finite", hint="return finite numbers")
        return answer

    def fingerprint(self, columns: int) -> str:
        """The SHA-256 of its answers to fixed public rows: of a map that is free of data, the same for any data.

        Of every bit of them in float32. Were they rounded to a few digits first, what is fitted on many records could
        hide below the last digit; and among thousands of numbers some always lie so near to where rounding changes that
        the last bit of a sum decides. Kinds of processors differ in that bit. A map that computes in float64 has the
        same fingerprint on all of them, but for one time in thousands: what they differ in is then far below the last
        bit of its answers.
        """
        return sha256_of([self.apply(probes(columns), None)])


def probes(columns: int) -> Rows:
    """Fixed public rows of numbers in [0, 1)."""
    drawn = np.random.default_rng([0, _PURPOSE]).random((_PROBES, columns), np.float32)
    drawn.flags.writeable = False
    return drawn


def named(place: str, declared: str, sha256: str) -> Own:
    """The map that a file names as `module:function`."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise Error(f'the feature map "{place}" is not a place', hint='write map = "my_module:my_map"')
    function = _check.own_code(place, "feature map")
    return Own(function=function, data_free=declared, name=place, sha256=sha256)


def require_row_by_row(own: Own, before: str, rows: Rows, answers: Rows) -> None:
    """What the map gave for rows depends on no other row, on nothing it saw before, and on no chance.

    Args:
        own: The map.
        before: Its fingerprint before it saw any of the data.
        rows: [examples, features] data it was applied to.
        answers: What it gave for all of them.

    Raises:
        Error: It is not a fixed function of each row.
    """
    after = own.fingerprint(rows.shape[1])
    if before != after:
        raise _not_free(own, "its answers to fixed public rows changed once it had seen the data")
    if own.sha256 and own.sha256 != after:
        raise Error(
            f"the feature map {own.name} is not the one that was declared: its fingerprint is {after}",
            hint="a map that is free of data never changes with the data; declare it anew if you have changed it. "
            + ONE_BIT,
        )
    public, tried = probes(rows.shape[1]), np.linspace(0, len(rows) - 1, _TRIED_ALONE).astype(np.int64)
    alone = np.concatenate([own.apply(rows[[row]], None) for row in tried])
    among = own.apply(np.concatenate([public, rows[tried[::-1]]]), None)[len(public) :][::-1]
    for other in (alone, among):
        scale = max(1.0, float(np.abs(other).max()))
        if other.shape != answers[tried].shape or np.abs(other - answers[tried]).max() > _TOLERANCE * scale:
            raise _not_free(own, "what it gives for a row depends on the rows beside it")


def _not_free(own: Own, why: str) -> Error:
    return Error(
        f"the feature map {own.name} is not free of data: {why}",
        hint="apply a fixed function to every row alone; means, scales and directions must be public constants, not "
        "fitted on these rows",
    )
