"""Features that were computed before, in the user's cache folder.

An entry is found by a hash of the data, the maps with all their parameters, their versions and NumPy's: whatever
changes one of them is computed anew. An entry is written whole or not at all, so that several processes can share the
folder; a damaged one counts as none. The entries not used for longest go when the folder is full. An entry holds
features of records, which are as private as the records: only the user can open the folder, and with
`MURMURCAST_FEATURE_CACHE=off` nothing is kept.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from murmurcast._files import UNREADABLE, writing
from murmurcast.data.features.base import FeatureMap, ImageShape, Rows
from murmurcast.data.features.catalogue import in_words
from murmurcast.data.fingerprint import sha256_of
from murmurcast.data.sources import cache_folder
from murmurcast.errors import Error

VARIABLE = "MURMURCAST_FEATURE_CACHE"  # "off", or a folder
MAX_BYTES = 4 * 2**30  # half of it for one entry: scattering of all 70,000 images of MNIST takes 1.1 GiB
_FORMAT = 1


class Parts(NamedTuple):
    """The rows of a training part and of a test part."""

    training: Rows
    test: Rows


def folder() -> Path | None:
    """Where features are kept; None where they are not."""
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() == "off":
        return None
    return Path(asked) if asked else cache_folder() / "features"


def entry(maps: Sequence[FeatureMap], parts: Parts, shape: ImageShape | None) -> Path | None:
    """The file that these features are kept in; None where none is kept."""
    place = folder()
    if place is None:
        return None
    known = json.dumps([_FORMAT, np.__version__, shape, *([in_words(one), one.version] for one in maps)])
    return place / f"{sha256_of([np.frombuffer(known.encode(), np.uint8), *parts])}.npz"


def read(path: Path) -> Parts | None:
    """What was kept, read-only; None where nothing was, or where it is damaged."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            parts = Parts(archive["training"], archive["test"])
        os.utime(path)
    except UNREADABLE:
        return None
    if any(part.dtype != np.float32 or part.ndim != 2 for part in parts):
        return None
    for part in parts:
        part.flags.writeable = False
    return parts


def keep(path: Path, parts: Parts) -> None:
    """Keeps features, unless they are too many or the folder cannot be written to; older entries make room."""
    size = sum(part.nbytes for part in parts)
    if size > MAX_BYTES // 2:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_room(path.parent, size)
        with writing(path) as stream:
            np.savez(stream, **parts._asdict())
    except (OSError, Error):  # the features are there all the same
        return


def _make_room(place: Path, size: int) -> None:
    """Removes the entries that were not used for longest until there is room; another process may do the same."""
    kept = []
    for path in place.glob("*.npz"):
        try:
            kept.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        except OSError:  # removed meanwhile
            continue
    total = sum(one for _, one, _ in kept)
    for _, one, path in sorted(kept):
        if total + size <= MAX_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= one
