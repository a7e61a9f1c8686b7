"""A run cut short, kept so that it can go on to the very same numbers.

A checkpoint holds the nodes' own models, which privacy does not cover: it stays where the run is and is removed when
the run is done.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check, _files, _npz
from murmurcast._npz import InPieces, in_one_piece
from murmurcast.algorithms.base import Algorithm
from murmurcast.engine import draws
from murmurcast.engine.train import Point, Record
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs import commitment

_FORMAT = 4
_FOR_THE_OWNER = 0o600  # own models are in it


class Checkpoint(NamedTuple):
    """Everything a run needs to go on.

    Attributes:
        digest: Of all that the run depends on; another run must not go on from here.
        groups: How many seeds go together, group by group.
        in_blocks: Whether the network goes block by block, as several processes must, or in one compiled loop.
        finished: The records of the groups of seeds that are done, and their published models.
        point: Where the group under way has come to; its carry as a list of arrays, in pieces where it is to be saved.
    """

    digest: str
    groups: tuple[int, ...]
    in_blocks: bool
    finished: tuple[tuple[tuple[Record, ...], Any], ...]
    point: Point


def digest(algorithm: Algorithm, problem: Problem, *settings: object) -> str:
    """A fingerprint of all that a run depends on: its data, what is sent and heard, and the settings."""
    setup = algorithm.setup
    plain = {key: value for key, value in vars(problem).items() if isinstance(value, int | float | str)}
    rounds = [(one.name, one.channel.entries(), draws.words(one)) for one in algorithm.rounds]
    channels = [(name, entries.attributes, drawn) for name, entries, drawn in rounds]
    words = (algorithm.name, algorithm.settings, setup.schedule, setup.budget, type(problem).__name__, plain, settings)
    state = hashlib.blake2b(repr((words, channels)).encode(), digest_size=16)
    tables = [(one.sending, one.receiving) for one in algorithm.rounds]
    links = [[values for _, values in entries.variables.values()] for _, entries, _ in rounds]
    state.update(commitment.data_hash(problem).encode())
    parts = (problem.test_data(), tables, links, setup.network.power)
    for leaf in jax.tree.leaves(parts):
        state.update(np.ascontiguousarray(leaf).data)
    for constant in getattr(problem, "constants_of_loss", ()):  # keys of JAX are no numbers as they are
        is_key = jnp.issubdtype(getattr(constant, "dtype", np.float64), jax.dtypes.prng_key)
        state.update(np.asarray(jax.random.key_data(constant) if is_key else constant).tobytes())
    return state.hexdigest()


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Writes all of it or nothing, for nobody else to read; the carry is a list of arrays in pieces, which it takes."""
    arrays: dict[str, Any] = {}
    point = checkpoint.point
    head = {
        "format": _FORMAT,
        "digest": checkpoint.digest,
        "groups": checkpoint.groups,
        "in_blocks": checkpoint.in_blocks,
        "epoch": point.epoch,
        "leaves": len(point.carry),
        "seconds": point.seconds,
        "records": _packed("now", point.records, arrays),
        "finished": [
            _packed(f"group{number}", records, arrays) for number, (records, _) in enumerate(checkpoint.finished)
        ],
    }
    arrays |= {f"published{number}": published for number, (_, published) in enumerate(checkpoint.finished)}
    kept = [(name, in_one_piece(np.asarray(array))) for name, array in arrays.items()]
    kept += [(f"carry{number}", leaf) for number, leaf in enumerate(point.carry)]
    with _files.writing(path, _FOR_THE_OWNER) as stream, _npz.writer(stream) as add:
        head["content"] = _content(head, {name: add(name, array) for name, array in kept})
        add("head", in_one_piece(np.array(json.dumps(head))))


def pass_on(carry: list[InPieces]) -> None:
    """What a process does that does not lead, while the one that leads saves: its rows go there."""
    for leaf in carry:
        for _ in leaf.pieces:
            continue


def load(path: Path) -> Checkpoint:
    """Reads a checkpoint; large arrays stay in the file."""
    _check.readable(path)
    try:
        arrays = _npz.read(path)
        head = json.loads(str(arrays.pop("head")))
        if head["format"] != _FORMAT:
            raise ValueError("another version")
        fingerprints = {name: _npz.fingerprint(name, array) for name, array in arrays.items()}
        if head.pop("content") != _content(head, fingerprints):
            raise ValueError("altered")
        carry = [arrays[f"carry{number}"] for number in range(int(head["leaves"]))]
        return Checkpoint(
            head["digest"],
            tuple(int(size) for size in head["groups"]),
            bool(head["in_blocks"]),
            tuple(
                (_unpacked(f"group{number}", packed, arrays), arrays[f"published{number}"])
                for number, packed in enumerate(head["finished"])
            ),
            Point(int(head["epoch"]), carry, float(head["seconds"]), _unpacked("now", head["records"], arrays)),
        )
    except _files.UNREADABLE as problem:
        raise Error(
            f"{path} cannot be read as a checkpoint ({type(problem).__name__})",
            hint="remove the folder and run again without --resume",
        ) from None


def _content(head: dict[str, Any], fingerprints: dict[str, str]) -> str:
    """Of all that is kept: what was changed or mixed up would go on to other numbers, and nobody would notice."""
    words = json.dumps([head, sorted(fingerprints.items())], sort_keys=True)
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()


def _packed(prefix: str, records: tuple[Record, ...], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    for number, record in enumerate(records):
        arrays |= {f"{prefix}.{number}.{name}": value for name, value in record.metrics.items()}
    return [{"epoch": r.epoch, "seconds": r.seconds, "names": list(r.metrics)} for r in records]


def _unpacked(prefix: str, packed: list[dict[str, Any]], arrays: dict[str, Any]) -> tuple[Record, ...]:
    return tuple(
        Record(
            int(item["epoch"]),
            float(item["seconds"]),
            {name: arrays[f"{prefix}.{number}.{name}"] for name in item["names"]},
        )
        for number, item in enumerate(packed)
    )
