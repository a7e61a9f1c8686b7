"""How the settings of a run were chosen: clip, steps, epochs and noise.

A run pays for what it sends. If its settings were picked because they did best on the very data it protects, the runs
that were tried have cost something too, and what is picked tells of the data. Nothing in a ledger shows this, so
whoever makes a run says it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from murmurcast.errors import Error

NOT_STATED, BEFOREHAND, ON_PUBLIC_DATA = "not stated", "fixed beforehand", "on public data"
PAID = "on this data, paid: "  # followed by the runs that were tried, with commas between them
_FIXED = (NOT_STATED, BEFOREHAND, ON_PUBLIC_DATA)
_LONGEST_NAME = 80
_TUNED = re.compile(
    rf"{ON_PUBLIC_DATA}: (?P<name>[\w.+ -]{{1,{_LONGEST_NAME}}}), sha256 (?P<sha256>[0-9a-f]{{64}}), "
    r"(?P<tried>[1-9][0-9]{0,5}) settings tried"
)


class PublicChoice(NamedTuple):
    """Settings that were chosen on public data, which is named.

    Attributes:
        name: Of the public set.
        sha256: Of the public set.
        tried: How many settings were tried on it.
    """

    name: str
    sha256: str
    tried: int

    @property
    def statement(self) -> str:
        """As a run states it; a name's unusual characters are replaced."""
        name = re.sub(r"[^\w.+ -]", "_", self.name)[:_LONGEST_NAME] or "_"
        return f"{ON_PUBLIC_DATA}: {name}, sha256 {self.sha256}, {self.tried} settings tried"


def public_choice(statement: str) -> PublicChoice | None:
    """Which public data a statement names; None where it names none."""
    match = _TUNED.fullmatch(statement) if isinstance(statement, str) else None
    return None if match is None else PublicChoice(match["name"], match["sha256"], int(match["tried"]))


def check(statement: str) -> None:
    """The statement is one of those that are known."""
    if statement in _FIXED or paid_runs(statement) or public_choice(statement) is not None:
        return
    raise Error(
        f'settings_chosen is "{statement!s:.80}"',
        hint=f'write "{BEFOREHAND}", "{ON_PUBLIC_DATA}", or "{PAID}RUN, RUN" with the runs that were tried; '
        "murmurcast tune writes which public data it was",
    )


def paid_runs(statement: str) -> tuple[str, ...]:
    """The runs that a statement says were tried on the same data; () where it names none."""
    if not isinstance(statement, str) or not statement.startswith(PAID):
        return ()
    return tuple(name.strip() for name in statement.removeprefix(PAID).split(",") if name.strip())


def missing_runs(statement: str, others: Sequence[str], asking: str = "") -> tuple[str, ...]:
    """The runs that were tried and are not among those that are counted with the run that asks.

    A run is known by its name or its folder's: "runs/a" is "a" as long as no other run ends in "a". Where several end
    alike, whole names are compared. Each run that is counted is one of those that were tried at most.

    Args:
        statement: What the run says that asks.
        others: What the runs are called that are counted with it: it is none of those that it tried.
        asking: What it is called itself.
    """
    tried, counted = ([PurePath(name) for name in names] for names in (paid_runs(statement), others))
    endings = Counter(one.name for one in tried) | Counter(one.name for one in (*counted, PurePath(asking)))
    known, same = {one.name for one in counted}, Counter(tried) & Counter(counted)
    missing = []
    for name, one in zip(paid_runs(statement), tried, strict=True):
        if same[one]:
            same[one] -= 1
        elif one.name not in known or endings[one.name] > 1:
            missing.append(name)
    return tuple(missing)


def assumption(statement: str) -> str:
    """What must be true for a certificate to count everything, in the words of its list of assumptions."""
    if statement == BEFOREHAND:
        return "clip, steps, sizes and noise were fixed beforehand, as the run states"
    if statement == ON_PUBLIC_DATA:
        return "clip, steps, sizes and noise were chosen on public data, as the run states: nobody's of this run"
    if (public := public_choice(statement)) is not None:
        return (
            f"clip, steps, sizes and noise were chosen on public data, as the run states: nobody's of this run, but "
            f"{public.name} (sha256 {public.sha256}), on which {public.tried} settings were tried"
        )
    if runs := paid_runs(statement):
        return (
            f"clip, steps, sizes and noise were chosen by these runs on the same data and no others: {', '.join(runs)}"
        )
    return "clip, steps, sizes and noise were chosen without looking at the data, which the run does not state"


def question(run: str, statement: str, others: Sequence[str]) -> str:
    """What a run leaves open about its settings, and what to do; empty where all is stated, and counted beside it."""
    if statement == NOT_STATED:
        return (
            f'run "{run}" does not state how its settings were chosen; if they were tried out on this data, that cost '
            f'is missing here. State it: privacy.settings_chosen = "{BEFOREHAND}", "{ON_PUBLIC_DATA}" or "{PAID}RUN"'
        )
    missing = missing_runs(statement, others, run)
    if not missing:
        return ""
    return (
        f'the settings of run "{run}" were chosen by runs whose cost is missing here: {", ".join(missing)}. Certify '
        "them together: murmurcast certify RUN RUN..."
    )
