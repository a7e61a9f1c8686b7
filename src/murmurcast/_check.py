"""All validation and its wording."""

import difflib
import functools
import inspect
import operator
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast.errors import Error

FloatArray = NDArray[np.float64]
Class = TypeVar("Class")
_SMALLEST_SHARE = 1e-12
_SHORT = 3  # letters of a word in which one wrong letter is much
_ALIKE = 0.7  # how much of a word must be right before another is offered: a bad guess is worse than a list


def by_name(cls: type[Class]) -> type[Class]:
    """A class whose arguments are given by name; anything else is an error that shows how, not a TypeError."""
    plain: Any = cls.__init__
    known = dict(list(inspect.signature(plain).parameters.items())[1:])  # the first is the object itself
    needed = [name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty]

    @functools.wraps(plain)
    def init(self: Class, *unnamed: Any, **named: Any) -> None:
        if unnamed:
            example = f"{cls.__name__}({next(iter(known))}=...)"
            raise Error(f"{cls.__name__} takes its arguments by name", hint=f"write {example}")
        for name in named.keys() - known.keys():
            raise Error(f"{cls.__name__} has no argument {name}", hint=nearest(name, known))
        for name in needed:
            if name not in named:
                raise Error(f"{cls.__name__} needs {name}", hint=f"write {cls.__name__}({name}=..., ...)")
        plain(self, **named)

    cls.__init__ = init  # type: ignore[method-assign, assignment]
    return cls


def instance(expected: type, **values: object) -> None:
    """Every value is of this class; whoever mixed up the order is told the names."""
    for name, value in values.items():
        if not isinstance(value, expected):
            raise Error(
                f"{name} is {type(value).__name__}, expected {expected.__name__}",
                hint=f"give arguments by name: {name}=mc.{expected.__name__}(...)",
            )


def _array(name: str, value: ArrayLike) -> FloatArray:
    wrong = Error(f"{name} must be numeric", hint=f"give {name} as a number or a list of numbers")
    try:
        array = np.asarray(value)
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    if array.dtype.kind in "SU":  # NumPy reads "2", and whoever computes with it would not
        raise wrong
    return numbers


def _require(name: str, value: ArrayLike, expected: str, within: NDArray[np.bool_]) -> None:
    if within.all():
        return
    bad = np.flatnonzero(~np.atleast_1d(within))[0]
    where = f"{name}[{bad}]" if within.ndim else name
    shown = np.atleast_1d(_array(name, value))[bad]
    raise Error(f"{where} is {shown:g}, expected {expected}", hint=f"give {name} a value that is {expected}")


def positive(**values: ArrayLike) -> None:
    """Every value is above zero, and so far from the ends of floating point that products of several stay finite."""
    for name, value in values.items():
        array = _array(name, value)
        _require(name, value, "a number above 0 (1e-30 to 1e30)", (array >= 1e-30) & (array <= 1e30))


def above_zero(**values: ArrayLike) -> None:
    """Every value is above zero, and its square is still a number: for what was computed, not given."""
    for name, value in values.items():
        array = _array(name, value)
        _require(name, value, "a number above 0 (1e-100 to 1e100)", (array >= 1e-100) & (array <= 1e100))


def finite(**values: ArrayLike) -> None:
    """Every value is a number of zero or more, and none is infinite: for what came out of a formula."""
    for name, value in values.items():
        array = _array(name, value)
        _require(name, value, "a finite number of 0 or more", np.isfinite(array) & (array >= 0))


def split(**values: ArrayLike) -> None:
    """Every value is a share of power that leaves something for both, so that (1 - alpha)/alpha stays a number."""
    for name, value in values.items():
        array = _array(name, value)
        inside = (array >= _SMALLEST_SHARE) & (array <= 1 - _SMALLEST_SHARE)
        _require(name, value, f"strictly between 0 and 1 ({_SMALLEST_SHARE:g} from both)", inside)


def gaussian(**values: ArrayLike) -> None:
    """Every value is a mu of Gaussian DP: 0 or more, and so small that its square is a number, or infinite."""
    for name, value in values.items():
        array = _array(name, value)
        _require(name, value, "0 to 1e100, or infinite", ((array >= 0) & (array <= 1e100)) | (array == np.inf))


def not_negative(**values: ArrayLike) -> None:
    """Every value is at least zero (infinity allowed)."""
    for name, value in values.items():
        _require(name, value, "a number of 0 or more", _array(name, value) >= 0)


def fraction(**values: ArrayLike) -> None:
    """Every value lies strictly between 0 and 1."""
    for name, value in values.items():
        array = _array(name, value)
        _require(name, value, "strictly between 0 and 1", (array > 0) & (array < 1))


def at_least(least: int, **values: int) -> None:
    """Every value is a whole number of at least `least` (and no more than a million million)."""
    for name, value in values.items():
        expected = f"expected a whole number of at least {least}"
        try:
            enough = operator.index(value) >= least
        except TypeError:  # 8.0 too: nobody can count with it
            hint = f"write {name} without quotes or a decimal point, such as {max(least, 2)}"
            raise Error(f"{name} is {value!r:.60}, {expected}", hint=hint) from None
        if not enough:
            raise Error(f"{name} is {value}, {expected}", hint=f"raise {name}")
        if value > 10**12:
            raise Error(f"{name} is more than a million million", hint=f"lower {name}")


def at_most(most: float, **values: float) -> None:
    """No value is larger than what can be computed with."""
    for name, value in values.items():
        if value > most:
            raise Error(f"{name} is {value}, expected {most} at most", hint=f"lower {name}")


def whole_numbers(such_as: str, **values: Iterable[int]) -> tuple[int, ...]:
    """Several whole numbers, as plain ones; `such_as` is what they may look like."""
    ((name, value),) = values.items()
    try:
        return tuple(operator.index(number) for number in value)
    except TypeError:
        raise Error(
            f"{name} is {value!r:.60}, expected a list of whole numbers", hint=f"give a list, such as {name}={such_as}"
        ) from None


def per_node(nodes: int, **values: ArrayLike) -> FloatArray:
    """One number for all nodes or one each, as a read-only array [nodes]."""
    ((name, value),) = values.items()
    array = _array(name, value)
    if array.shape not in ((), (nodes,)):
        raise Error(
            f"{name} has shape {array.shape}, expected one number or {nodes} of them (one per node)",
            hint=f"give {name} one entry per node, in the order of the gain matrix",
        )
    return frozen(np.array(np.broadcast_to(array, (nodes,))))


def observers(nodes: int, members: Iterable[int]) -> tuple[int, ...]:
    """A coalition: known nodes, each once, and somebody left to observe."""
    unique = tuple(sorted(set(whole_numbers("(0, 2)", observers=members))))
    if not unique:
        raise Error("no observer is given", hint="name at least one node, such as 0")
    for node in unique:
        if not 0 <= node < nodes:
            raise Error(f"observer {node} is not a node", hint=f"nodes are numbered 0 to {nodes - 1}")
    if len(unique) == nodes:
        raise Error("every node is an observer, nobody is left to observe", hint="leave at least one node out")
    return unique


def node_names(nodes: int, names: Iterable[object]) -> tuple[str, ...]:
    """What nodes are called: one printable name each, all different; their numbers where none is given."""
    given = tuple(str(name) for name in names) or tuple(map(str, range(nodes)))
    if len(given) != nodes or len(set(given)) < nodes:
        raise Error(
            f"{len(set(given))} different names are given for {nodes} nodes", hint="give every node a name of its own"
        )
    if not all(name.strip() and name.isprintable() and len(name) <= 100 for name in given):
        raise Error("the name of a node is empty, too long or not printable", hint="give names of 1 to 100 characters")
    return given


def unmasked(**values: object) -> None:
    """No entry is masked: NumPy drops masks on the way, and shows what they hide."""
    for name, value in values.items():
        parts = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
            raise Error(f"{name} has masked entries", hint="remove or fill in such examples first")


def frozen(array: FloatArray) -> FloatArray:
    """The same array, no longer writable."""
    array.flags.writeable = False
    return array


def one_of(known: Iterable[str], **values: str) -> None:
    """Words that are known; a hint offers the nearest."""
    choices = tuple(known)
    for name, value in values.items():
        if value not in choices:
            raise Error(f'{name} is "{value}"', hint=nearest(value, choices))


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that offers the known word most like a mistyped one."""
    known = sorted(known)
    close = difflib.get_close_matches(str(word), known, n=1, cutoff=_ALIKE if len(str(word)) > _SHORT else 0.5)
    return f'did you mean "{close[0]}"?' if close else f"known here: {', '.join(known)}"


def rounded_up(value: float) -> str:
    """Six digits that are never below the value, for a number that must work when it is typed in."""
    return f"{value * (1 + 5e-6):.6g}"


def short(problem: Exception) -> str:
    """What somebody else's reader says, on one line."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def printable(text: str) -> str:
    """The text with control characters spelled out: names in files must not steer the terminal they are shown on."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def readable(path: Path) -> None:
    """The path is a file that can be opened."""
    try:
        if path.is_dir():
            raise Error(f"{path} is a folder", hint="name a file in it")
        if not path.exists():
            here = "" if path.is_absolute() else f"; a relative path starts at the current folder, {Path.cwd()}"
            raise Error(f"{path} does not exist", hint=f"check the path{here}")
        if not path.is_file():
            raise Error(f"{path} is not a regular file", hint="copy its content to a file first")
        path.open("rb").close()
    except OSError as problem:
        raise Error(
            f"{str(path)[:200]} cannot be read: {problem.strerror}", hint="check name and permissions"
        ) from None


def own_code(name: str, what: str) -> Any:
    """What a user's own code holds under package.module:name; importing it runs it."""
    home, _, word = name.partition(":")
    try:
        return getattr(import_module(home), word)
    except Exception as problem:  # noqa: BLE001 - their code may fail in any way while it is imported
        raise Error(
            f'the {what} "{name}" cannot be found: {type(problem).__name__}: {short(problem)}',
            hint="write package.module:name, and run where that can be imported (PYTHONPATH=. helps)",
        ) from None
