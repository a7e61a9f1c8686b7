"""What runs promise, in words: a sentence for each of few, one table for many."""

from collections.abc import Sequence

from murmurcast.privacy.best_guess import in_words
from murmurcast.privacy.certificate import unit_in_words
from murmurcast.privacy.rounding import at_most, percent_at_most
from murmurcast.reports import ledger
from murmurcast.reports.page import Block, Cell, Row, Table, Verdict, promised
from murmurcast.runs.compare import NOT_CERTIFIED
from murmurcast.runs.result import Result

SENTENCES_UP_TO = 4  # runs


def promises(runs: Sequence[Result], names: Sequence[str]) -> list[Block]:
    """What all runs promise: a box for each of few, one table for many, and boxes for those that do not hold."""
    named = list(zip(runs, names, strict=True))
    if len(runs) <= SENTENCES_UP_TO:
        return [promise(run, name) for run, name in named]
    broken = [promise(run, name) for run, name in named if is_not_certified(run)]
    headings = ("run", "epsilon", "delta", "hides", "against", "best guess", "basis")
    note = (
        "epsilon: of the node that pays most. Best guess: how often whoever guesses whether one unit's data was used "
        "is right at most; a coin is right half of the time."
    )
    return [*broken, Table("What is promised", headings, tuple(_row(run, name) for run, name in named), note)]


def promise(run: Result, name: str) -> Verdict:
    """In words what the run promises, and on which basis."""
    privacy = run.info["privacy"]
    if is_not_certified(run):
        return Verdict(f"{name} is not certified. {_sentence(privacy['basis'])}.", "did not hold")
    if privacy["epsilon"] is None:
        return Verdict(f"{name} promises nothing. {_sentence(privacy['basis'])}.")
    if privacy["epsilon"] == 0:
        return Verdict(f"{name} costs no privacy. {_sentence(privacy['basis'])}.")
    caveat = f" Always say with it: {privacy['caveat']}." if privacy["caveat"] else ""
    numbers = f"epsilon {at_most(privacy['epsilon'])} at delta {at_most(privacy['delta'])}"
    meaning = _sentence(in_words(_best_guess(run), privacy["unit"]))
    worst = f"{numbers} for the node that pays most. {meaning}"
    return Verdict(f"{name} promises {worst}. Basis: {privacy['basis']}.{caveat}")


def is_not_certified(run: Result) -> bool:
    """Whether the run's account does not hold, so that nothing it promises may be shown."""
    return bool(run.info["privacy"]["caveat"] == NOT_CERTIFIED)


def _row(run: Result, name: str) -> Row:
    privacy = run.info["privacy"]
    basis = _sentence(privacy["basis"])
    if privacy["epsilon"] is None:
        return name, NOT_CERTIFIED if is_not_certified(run) else "not promised", "-", "-", "-", "-", basis
    caveat = f" ({privacy['caveat']})" if privacy["caveat"] else ""
    chance = _best_guess(run) if privacy["epsilon"] else 0.5
    unit = unit_in_words(privacy["unit"], privacy.get("records_per_person", 1))
    against = f"{privacy['against']}{caveat}"
    guess = Cell(percent_at_most(chance), chance)
    return name, promised(privacy["epsilon"]), promised(privacy["delta"]), unit, against, guess, basis


def _best_guess(run: Result) -> float:
    return float(ledger.best_guess_of(run.ledger, run.ledger.attrs).max())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
