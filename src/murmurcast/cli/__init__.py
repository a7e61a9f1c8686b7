"""The command line. Each command has a file of its own and imports what it needs when it is called."""

import gc
import sys
import warnings
from typing import Annotated, Any

import typer

from murmurcast.cli._flags import Command, Group
from murmurcast.cli._options import complain
from murmurcast.cli._watched import LOST, is_watched, leave
from murmurcast.cli.audit import audit
from murmurcast.cli.certify import certify
from murmurcast.cli.compare import compare
from murmurcast.cli.export_iq import export_iq
from murmurcast.cli.link import link
from murmurcast.cli.methods import methods
from murmurcast.cli.plan import plan
from murmurcast.cli.rank import rank
from murmurcast.cli.report import report
from murmurcast.cli.reproduce import reproduce
from murmurcast.cli.run import run
from murmurcast.cli.sweep import sweep
from murmurcast.cli.tune import tune
from murmurcast.errors import Error, LongWork, LostOthers

app = typer.Typer(
    name="murmurcast",
    cls=Group,
    help="Plan, train, certify and audit private learning over the air, without a server.",
    epilog="Start with: murmurcast plan --example paper-1 > my.toml, then: murmurcast plan my.toml",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for _name, _command in (
    ("reproduce", reproduce),
    ("plan", plan),
    ("link", link),
    ("tune", tune),
    ("run", run),
    ("sweep", sweep),
    ("certify", certify),
    ("audit", audit),
    ("compare", compare),
    ("rank", rank),
    ("report", report),
    ("export-iq", export_iq),
    ("methods", methods),
):
    app.command(_name, cls=Command)(_command)

# Objects before Python looks for cycles among them: imports and traces make hundreds of thousands that all stay, and
# looking through them again and again took a tenth of a short run.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_usual_warning = warnings.showwarning

# typer keeps its usage errors to itself; this is the class all of them share.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"murmurcast {version('murmurcast')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point: `error:` and `hint:` on stderr and exit 2 for bad input, never a traceback."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    warnings.showwarning = _note_long_work  # type: ignore[assignment]
    leave(_status())


def _status() -> int:
    """What the command comes to, as an exit code."""
    try:
        status = app(standalone_mode=False)
    except LostOthers as problem:
        return LOST if is_watched() else _failed(str(problem), problem.hint)  # whoever watches tells
    except Error as problem:
        return _failed(str(problem), problem.hint)
    except _UsageError as problem:
        text = problem.format_message() if hasattr(problem, "format_message") else str(problem)
        if not text:  # no command was given: the help has been shown
            return 2
        return _failed(text, "see murmurcast --help, or murmurcast COMMAND --help")
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader (head, less) has left; there is nobody to tell. Keep Python from complaining at exit.
        sys.stdout = None
        return 1
    except OSError as problem:
        sys.stdout = None
        return _failed(f"the output cannot be written: {problem.strerror}", "free some space, or write elsewhere")
    except (ArithmeticError, MemoryError) as problem:
        return _failed(
            f"the numbers are too large to compute with ({problem})",
            "bring nodes, epochs, runs and values to a usual size",
        )
    return status if isinstance(status, int) else 0


def _note_long_work(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """As one line on stderr, without the line of code; all other warnings as usual."""
    if issubclass(category, LongWork):
        typer.echo(f"note: {message}", err=True)
    else:
        _usual_warning(message, category, *place)


def _failed(message: str, hint: str) -> int:
    complain(message, hint)
    return 2
