"""How the settings of a run were chosen: clip, steps, epochs and noise.

A run pays for what it sends. If its settings were picked because they did best on the very data it protects, the runs
that were tried have cost something too, and what is picked tells of the data. Nothing in a ledger shows this, so
whoever makes a run says it.
"""

from pathlib import PurePath

from murmurcast.errors import Error

NOT_STATED, BEFOREHAND, ON_PUBLIC_DATA = "not stated", "fixed beforehand", "on public data"
PAID = "on this data, paid: "  # followed by the runs that were tried, with commas between them
_FIXED = (NOT_STATED, BEFOREHAND, ON_PUBLIC_DATA)


def check(statement: str) -> None:
    """The statement is one of those that are known."""
    if statement in _FIXED or paid_runs(statement):
        return
    raise Error(
        f'settings_chosen is "{statement!s:.80}"',
        hint=f'write "{BEFOREHAND}", "{ON_PUBLIC_DATA}", or "{PAID}RUN, RUN" with the runs that were tried',
    )


def paid_runs(statement: str) -> tuple[str, ...]:
    """The runs that a statement says were tried on the same data; () where it names none."""
    if not isinstance(statement, str) or not statement.startswith(PAID):
        return ()
    return tuple(name.strip() for name in statement.removeprefix(PAID).split(",") if name.strip())


def missing_runs(statement: str, counted: tuple[str, ...]) -> tuple[str, ...]:
    """The runs that were tried and are not among those counted; a run is known by its name or its folder's."""
    names = {PurePath(name).name for name in counted}
    return tuple(name for name in paid_runs(statement) if PurePath(name).name not in names)


def assumption(statement: str) -> str:
    """What must be true for a certificate to count everything, in the words of its list of assumptions."""
    if statement == BEFOREHAND:
        return "clip, steps, sizes and noise were fixed beforehand, as the run states"
    if statement == ON_PUBLIC_DATA:
        return "clip, steps, sizes and noise were chosen on public data, as the run states: nobody's of this run"
    if runs := paid_runs(statement):
        return (
            f"clip, steps, sizes and noise were chosen by these runs on the same data and no others: {', '.join(runs)}"
        )
    return "clip, steps, sizes and noise were chosen without looking at the data, which the run does not state"


def question(run: str, statement: str, counted: tuple[str, ...]) -> str:
    """What a run leaves open about its settings, and what to do; empty where all is stated and counted."""
    if statement == NOT_STATED:
        return (
            f'run "{run}" does not state how its settings were chosen; if they were tried out on this data, that cost '
            f'is missing here. State it: privacy.settings_chosen = "{BEFOREHAND}", "{ON_PUBLIC_DATA}" or "{PAID}RUN"'
        )
    missing = missing_runs(statement, counted)
    if not missing:
        return ""
    return (
        f'the settings of run "{run}" were chosen by runs whose cost is missing here: {", ".join(missing)}. Certify '
        "them together: murmurcast certify RUN RUN..."
    )
