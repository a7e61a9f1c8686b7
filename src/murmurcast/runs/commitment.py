"""A commitment to the data of a run: shows later which data it was, and tells nothing about it by itself.

    commitment = HMAC-SHA256(key, SHA-256(training records and who holds them)),    key: 32 random bytes, one per run

**What it hides.** A plain hash of the data would be a test for guesses: whoever knows all records but one, which is the
adversary of every promise here, could try what the last one is. Under a secret key the commitment looks random, however
few the possible records are, as long as HMAC-SHA256 is a pseudorandom function. The key lies in a file of its own,
`data.key`, which is no part of the run: whoever gets the folder to check it gets it without that file. Whoever has the
key can try guesses.

**What it shows.** Whoever holds key and data can show that they are the ones committed to: no other data with any key
gives the same commitment unless SHA-256 is broken. It does not show that the run was really trained on them, nor that
they are true.

Test records are not in it: nothing is promised about them.
"""

import hmac
import re
import secrets
from pathlib import Path

import jax
import numpy as np

from murmurcast import _files
from murmurcast.data.fingerprint import sha256_of
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs.result import BEGUN, DATA_KEY, write_data_key

_COMMITMENT_BYTES = 100  # more than it has, so that nothing large is read in its place


def new_key() -> str:
    """A key that nobody can guess: the seed, which is known, must not give it away."""
    return secrets.token_hex(32)


def commitment(problem: Problem, key: str) -> str:
    """To the training data of a problem and who holds which part of it, under this key.

    Guarantees:
        Hides the data from whoever does not have the key, if HMAC-SHA256 is a pseudorandom function; binds to it, if
        SHA-256 has no collisions.
    """
    return hmac.digest(bytes.fromhex(key), bytes.fromhex(data_hash(problem)), "sha256").hex()


def data_hash(problem: Problem) -> str:
    """SHA-256 of the training records and who holds them: a secret, where they are."""
    data = getattr(problem, "data", None)
    if isinstance(data, Partition):
        return data.sha256
    return sha256_of(map(np.asarray, jax.tree.leaves(problem.local_data())))


def begin(folder: Path, problem: Problem, *, resume: bool) -> str:
    """The key of a run that begins in a folder, or goes on there with the data that it began with."""
    begun = folder / BEGUN
    if resume and begun.is_file() and (folder / DATA_KEY).is_file():
        key = read_key(folder)
        if not opens(problem, key, begun.read_bytes()[:_COMMITMENT_BYTES].decode("ascii", "replace").strip()):
            raise Error(
                f"{folder} was begun on other data, or with another partition",
                hint="give the data it was begun with, or run anew in another folder",
            )
        return key
    key = new_key()
    write_data_key(folder, key)
    _files.write_atomically(begun, f"{commitment(problem, key)}\n".encode())
    return key


def opens(problem: Problem, key: str, committed: str) -> bool:
    """Whether this is the data that a run was committed to."""
    return hmac.compare_digest(commitment(problem, key), committed)


def read_key(folder: Path) -> str:
    """The key of a run's commitment."""
    path = folder / DATA_KEY
    if not path.is_file():
        raise Error(
            f"{path} is not there: without it nobody can say whether data is the run's",
            hint="ask for it whoever keeps the data; it was written with the run",
        )
    with path.open("rb") as file:
        key = file.read(100).decode("ascii", "replace").strip()
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise Error(f"{path} is not the key of a commitment", hint="restore it: 64 hexadecimal digits")
    return key
