"""Maps applied to a training part and a test part alike: block by block, once, and kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from murmurcast._progress import Stage
from murmurcast.data.features import cache
from murmurcast.data.features.base import FeatureMap, ImageShape, Rows
from murmurcast.data.features.cache import Parts
from murmurcast.data.features.own import Own, require_row_by_row
from murmurcast.errors import Error

MAX_BYTES = 16 * 2**30
BLOCK = 256  # examples: what a map computes with stays in the processor's cache
_TOLD_EVERY = 8  # blocks


class Mapped(NamedTuple):
    """Features, and how they came about.

    Attributes:
        parts: The features of both parts.
        shape: The image that every row is now; None where it is none.
        maps: What was applied; a map of the user's own with its fingerprint.
    """

    parts: Parts
    shape: ImageShape | None
    maps: tuple[FeatureMap, ...]


def applied(maps: Sequence[FeatureMap], parts: Parts, shape: ImageShape | None, on_stage: Stage) -> Mapped:
    """The features of both parts, from the cache where they are kept there; maps of the user's own never are.

    Args:
        maps: In their order.
        parts: The rows to begin with.
        shape: The image that every row is; None where it is none.
        on_stage: Told how far it has come.
    """
    place = None if any(isinstance(one, Own) for one in maps) else cache.entry(maps, parts, shape)
    kept = None if place is None else cache.read(place)
    if kept is not None and all(len(new) == len(old) for new, old in zip(kept, parts, strict=True)):
        for one in maps:
            shape = one.shape_after(shape)
        return Mapped(kept, shape, tuple(maps))
    done: list[FeatureMap] = []
    for one in maps:
        if isinstance(one, Own):
            parts, one = _own(one, parts, on_stage)
        else:
            parts = _in_blocks(one, parts, shape, on_stage)
        shape = one.shape_after(shape)
        done.append(one)
    if place is not None:
        cache.keep(place, parts)
    return Mapped(parts, shape, tuple(done))


def _own(own: Own, parts: Parts, on_stage: Stage) -> tuple[Parts, Own]:
    """What a map of the user's own gives, tried for what can be tried; and the map with its fingerprint."""
    before = own.fingerprint(parts.training.shape[1])
    mapped = _in_blocks(own, parts, None, on_stage)
    require_row_by_row(own, before, parts.training, mapped.training)
    return mapped, replace(own, sha256=before)


def _in_blocks(one: FeatureMap, parts: Parts, shape: ImageShape | None, on_stage: Stage) -> Parts:
    return Parts(*(_part_in_blocks(one, part, shape, on_stage) for part in parts))


def _part_in_blocks(one: FeatureMap, rows: Rows, shape: ImageShape | None, on_stage: Stage) -> Rows:
    blocks = -(-len(rows) // BLOCK)
    features: Rows | None = None
    for block in range(blocks):
        if block % _TOLD_EVERY == 0:
            on_stage(f"features: {one.kind}, {block * BLOCK} of {len(rows)} examples")
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        with np.errstate(over="ignore", invalid="ignore"):
            answers = one.apply(rows[here], shape)
        if features is None:
            _require_memory(one, len(rows), answers.shape[1])
            features = np.empty((len(rows), answers.shape[1]), np.float32)
        if answers.shape[1] != features.shape[1]:
            raise Error(
                f"the feature map {one.kind} gives {features.shape[1]} numbers for some rows and {answers.shape[1]} "
                "for others",
                hint="return the same number of numbers for every row",
            )
        features[here] = answers
    if features is None or not np.isfinite(features).all():
        raise Error(
            f'the feature map "{one.kind}" gave a number that is not finite', hint="scale the examples by a constant"
        )
    features.flags.writeable = False  # the next map may be the user's own, and must not write to it
    return features


def _require_memory(one: FeatureMap, rows: int, columns: int) -> None:
    if 4 * rows * columns > MAX_BYTES:
        raise Error(
            f'the feature map "{one.kind}" would give {4 * rows * columns / 2**30:.0f} GiB',
            hint="choose parameters that give fewer features, or use fewer examples",
        )
