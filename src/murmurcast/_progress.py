"""How long work tells of itself: callbacks that a program may pass and that do nothing by default."""

from typing import Protocol


class Stage(Protocol):
    """Told what begins."""

    def __call__(self, words: str, /) -> None:
        """A few words on the stage."""
        ...


class Count(Protocol):
    """Told how far a stage has come."""

    def __call__(self, done: int, of: int, /) -> None:
        """How many are done, of how many."""
        ...


def quiet(*_: object) -> None:
    """Tells nobody."""
