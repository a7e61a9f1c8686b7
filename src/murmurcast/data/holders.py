"""Records that already belong to nodes, by a column that names them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast.errors import Error

Words = NDArray[np.str_]
MAX_NAME = 100  # characters


class Holders(NamedTuple):
    """The name of the node that every record belongs to.

    Attributes:
        column: What the column is called.
        training: [examples] of the training part.
        test: [test examples] of the test part; None where it is not known.
    """

    column: str
    training: Words
    test: Words | None = None

    def require_length(self, examples: int, test_examples: int) -> None:
        """There is a name for every record."""
        for names, count in ((self.training, examples), (self.test, test_examples)):
            if names is not None and len(names) != count:
                raise Error(
                    f"{len(names)} names of nodes are given for {count} examples", hint="name one node per example"
                )

    def cut(self, training: NDArray[np.int64], test: NDArray[np.int64]) -> "Holders":
        """Those of one pool, parted into a training and a test part by their rows."""
        return Holders(self.column, self.training[training], self.training[test])

    def pooled(self, training: NDArray[np.int64], test: NDArray[np.int64]) -> "Holders":
        """Those of both parts together, parted anew by their rows."""
        if self.test is None:
            raise Error(
                "which node the test part's records belong to is not known, so both parts cannot be pooled",
                hint="leave test_fraction out, or give all records as one table",
            )
        both = np.concatenate([self.training, self.test])
        return Holders(self.column, both[training], both[test])

    def dealt(self, names: Sequence[str]) -> list[NDArray[np.int64]]:
        """The rows of the training part that every one of the named nodes holds."""
        known = set(self.training.tolist())
        strangers, missing = sorted(known - set(names)), [name for name in names if name not in known]
        if strangers:
            raise Error(
                f'the column "{self.column}" names "{strangers[0]}", which is not a node ({len(strangers)} such names)',
                hint=f"name the nodes as the column does; nodes: {_few(names)}",
            )
        if missing:
            raise Error(
                f'the column "{self.column}" has no training record of node "{missing[0]}"',
                hint="every node needs at least one record; leave the node out, or give it some",
            )
        return [np.flatnonzero(self.training == name) for name in names]

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes that hold a training record, sorted; numbers by their value."""
        distinct = np.unique(self.training).tolist()
        return tuple(sorted(distinct, key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name)))


def holder_names(column: str, values: Any) -> Words:
    """The names in a column, as words; 3 and 3.0 are the node "3"."""
    _check.unmasked(**{f'the column "{column}"': values})
    if not isinstance(values, Iterable):
        raise Error(f"{column} is {values!r:.60}, expected a list", hint="give every record the name of its node")
    words = np.array([_word(column, place, value) for place, value in enumerate(values)], dtype=np.str_)
    words.flags.writeable = False
    return words


def _word(column: str, place: int, value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and np.isfinite(value) and value == np.floor(value):
        value = int(value)
    word = str(value).strip()
    missing = value is None or word.lower() in ("nan", "<na>") or (word == "NaT" and not isinstance(value, str))
    if missing or not word or len(word) > MAX_NAME or not word.isprintable():
        raise Error(
            f'the column "{column}" names no node for example {place + 1}',
            hint=f"give every record the name of its node, printable and of at most {MAX_NAME} characters",
        )
    return word


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
