"""What a reproduction comes to."""

from typing import NamedTuple

from murmurcast.reproduction.document import Chapter
from murmurcast.reproduction.settings import DataName
from murmurcast.reproduction.training import Run


class Reproduction(NamedTuple):
    """All of it, ready to be written.

    Attributes:
        data: What was learnt from.
        seeds: How many runs of each setting that has noise.
        first_lines: What must be said before anything else.
        runs: All runs.
        chapters: By subject.
    """

    data: DataName
    seeds: int
    first_lines: tuple[str, ...]
    runs: tuple[Run, ...]
    chapters: tuple[Chapter, ...]
