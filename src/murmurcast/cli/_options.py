"""What several commands take."""

import functools
import inspect
import re
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar, get_type_hints

import typer

from murmurcast import _check
from murmurcast._json import json_text
from murmurcast.errors import Error

_LONGEST = 4000  # characters of a complaint
Asked_contra = TypeVar("Asked_contra", contravariant=True)


class _Command(Protocol[Asked_contra]):
    """A command with its options in one object."""

    def __call__(self, asked: Asked_contra, /) -> None:
        """Does what was asked."""
        ...


class _Typed(Protocol):
    """The same, as typer takes it: an argument for every option."""

    def __call__(self, **given: Any) -> None:
        """Does what was given."""
        ...


Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, such as privacy.epsilon=2. Repeatable."),
]
OwnMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="PACKAGE.MODULE:NAME",
        help="A method of your own whose account may be asked. Repeatable; code that a run names is never run.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def with_options(command: _Command[Asked_contra]) -> _Typed:
    """A command that takes the fields of a dataclass as its options, for those that have many."""
    options = next(hint for name, hint in get_type_hints(command).items() if name != "return")

    @functools.wraps(command)
    def called(**given: Any) -> None:
        command(options(**given))

    called.__signature__ = inspect.signature(options)  # type: ignore[attr-defined] # what typer reads
    called.__annotations__ = get_type_hints(options, include_extras=True)
    return called


def echo_json(values: dict[str, Any]) -> None:
    """Prints one JSON object."""
    typer.echo(json_text(values))


def complain(message: str, hint: str) -> None:
    """What is wrong and what to do about it, on stderr; names in it do not reach the terminal raw."""
    for word, text in (("error", message), ("hint", hint)):
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        shown = re.sub(r"\n(?!  )", r"\\n", shown)  # our lists are indented; any other line could pass for a hint
        typer.echo(f"{word}: {_check.printable(shown)}", err=True)


def with_runs_of_sweeps(folder: Path) -> list[Path]:
    """The folder of a run itself, or of a sweep the folders of its finished runs."""
    from murmurcast.runs.sweep import is_done, is_sweep, read_manifest, run_folder

    if not is_sweep(folder):
        return [folder]
    done = [run_folder(folder, point) for point in read_manifest(folder).points if is_done(folder, point)]
    if not done:
        raise Error(f"no point of {folder} is done", hint="finish the sweep first, with the same command")
    return done


def require_figure(path: Path) -> None:
    """Before the work, not after it: a plot can be written there."""
    from murmurcast import _files
    from murmurcast.reports import plots

    plots.require_format(path)
    _files.require_writable(path)


def overrides(sets: list[str] | None) -> dict[str, str]:
    """The values of --set by their keys."""
    return dict(_split(item) for item in sets or [])


def _split(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise Error(f'--set {item}: there is no "="', hint="write --set section.key=value, such as privacy.epsilon=2")
    return key.strip(), value.strip()
