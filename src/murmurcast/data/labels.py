"""Which labels there are: declared, and so public, or read from the records, which nothing can be promised on.

A model has numbers for every label. Where labels are read from records, one record with a label of its own changes the
shape of every model that is sent, and no noise hides a shape. A declaration is made without looking at the records; a
record outside it is an error of the data.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast.errors import Error

LabelSource = Literal["declared", "built in", "records"]
Label = str | int
MAX_CLASSES = 10**6
_LARGEST_WHOLE = 2**53  # beyond it not every whole number is a float
_SHOWN = 8  # labels in a hint


def declared_labels(labels: Iterable[Label] | None, classes: int | None) -> tuple[Label, ...] | None:
    """What was declared, in its order: all words, or all whole numbers; None where nothing was.

    Args:
        labels: All labels there can be, as words or as whole numbers.
        classes: How many labels there can be, which are then 0 to classes - 1.
    """
    if labels is None and classes is None:
        return None
    if labels is not None and classes is not None:
        raise Error("both labels and classes are declared", hint="one is enough: classes = 3 means the labels 0, 1, 2")
    if classes is not None:
        _check.at_least(2, classes=classes)
        if classes > MAX_CLASSES:
            raise Error(f"classes is {classes}, more than {MAX_CLASSES}", hint="lower classes")
        return tuple(range(operator.index(classes)))
    return _listed(labels)


def _listed(labels: object) -> tuple[Label, ...]:
    wrong = Error(
        "labels must be a list of words, or a list of whole numbers",
        hint='write labels = ["no", "yes"] or labels = [0, 1]; a number of labels is classes = 2',
    )
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise wrong
    plain = tuple(_plain(label) for label in labels)
    if None in plain or len({type(label) for label in plain}) > 1:
        raise wrong
    if len(set(plain)) < max(2, len(plain)):
        raise Error("labels names fewer than two labels, or one of them twice", hint="name every label once")
    return tuple(label for label in plain if label is not None)


def _plain(label: object) -> Label | None:
    """The label as a plain word or number; None where it is neither."""
    if isinstance(label, str):
        return label.strip() or None
    if isinstance(label, bool | np.bool_):
        return None
    try:
        return operator.index(label)  # type: ignore[arg-type]
    except TypeError:
        return None


def places_of(declared: Sequence[Label], column: NDArray[Any]) -> NDArray[np.int64]:
    """[examples] the place of every record's label among the declared ones; -1 where it is none of them."""
    known, inverse = np.unique(column, return_inverse=True)
    read: Callable[[Any], Label | None] = _word if isinstance(declared[0], str) else _whole_number
    place = {label: number for number, label in enumerate(declared)}
    known_places = np.array([-1 if (label := read(value)) is None else place.get(label, -1) for value in known])
    return np.asarray(known_places[inverse], np.int64)


def _word(value: Any) -> Label:
    return str(value).strip()


def _whole_number(value: Any) -> Label | None:
    """A number, or a word that is written as one: 3, 3.0 and "3" are one label."""
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if abs(number) < _LARGEST_WHOLE and number == int(number) else None


def require_declared(declared: Sequence[Label], places: NDArray[np.int64], part: str) -> None:
    """Every record's label is declared.

    The error names the record by its number and not its label: that is enough for whoever holds the file, and a message
    that ends up in a log or in a question to others shows nothing of a record.
    """
    outside = np.flatnonzero(places < 0)
    if not len(outside):
        return
    shown = ", ".join(map(str, declared[:_SHOWN])) + (", ..." if len(declared) > _SHOWN else "")
    raise Error(
        f"the label of example {outside[0] + 1}{part} is not one of the {len(declared)} that are declared",
        hint=f"correct that record, or declare its label too if it is public that it can occur (declared: {shown})",
    )


def read_from(columns: list[NDArray[Any]]) -> tuple[tuple[Label, ...], list[NDArray[np.int64]]]:
    """All labels that occur, sorted, and every column as places among them."""
    known, places = np.unique(np.concatenate(columns), return_inverse=True)
    if len(known) < 2:
        raise Error(f'every label is "{known[0]}": nothing to tell apart', hint="give at least two labels")
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return tuple(str(label) for label in known), np.split(places, cuts)


def whole_numbers_or_words(words: NDArray[np.str_]) -> NDArray[Any]:
    """Labels of a table as int64 if all are whole numbers, otherwise as they are."""
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        return words
    whole = (np.abs(numbers) < _LARGEST_WHOLE) & (numbers == np.floor(numbers))
    if not whole.all():
        raise Error(
            f'label "{words[~whole][0]}" is a number but not a whole one below 2^53',
            hint='name the column "target" to predict values, or write labels as whole numbers or words',
        )
    return numbers.astype(np.int64)
