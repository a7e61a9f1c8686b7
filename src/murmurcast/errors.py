"""What can go wrong, always with a way out."""


class Error(ValueError):
    """Bad input or an impossible request.

    Attributes:
        hint: What the user can do about it, in one sentence.
    """

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Altered(Error):  # noqa: N818 - reads as a verdict, which it is
    """What a run left behind is incomplete, contradicts itself, or is not what the run wrote."""


class NotWritten(Error):  # noqa: N818 - as above
    """A file or a folder cannot be written: the disk is full, or not open to us. It is not the fault of any input."""


class Infeasible(Error):  # noqa: N818 - as above
    """No power split meets the budget.

    Attributes:
        smallest_epsilon: The smallest budget that every alpha at its minimum would meet; it works when tried.
    """

    def __init__(self, message: str, *, hint: str, smallest_epsilon: float) -> None:
        super().__init__(message, hint=hint)
        self.smallest_epsilon = smallest_epsilon


class NotConnected(Error):  # noqa: N818 - as above
    """The network falls apart.

    Attributes:
        pieces: The nodes of every piece, largest piece first.
    """

    def __init__(self, message: str, *, hint: str, pieces: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(message, hint=hint)
        self.pieces = pieces


class LostOthers(Error):  # noqa: N818 - as above
    """One of several processes that train together can no longer reach the others."""


class LongWork(UserWarning):
    """Told before work that will take minutes or more: about how long, and what to do instead."""
