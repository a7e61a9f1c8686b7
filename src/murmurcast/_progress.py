"""How long work tells of itself: callbacks that a program may pass and that do nothing by default."""

from collections.abc import Callable

Stage = Callable[[str], None]  # a few words on the stage that begins
Count = Callable[[int, int], None]  # how many are done, of how many


def quiet(*_: object) -> None:
    """Tells nobody."""
