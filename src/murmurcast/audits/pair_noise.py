"""Noise that two neighbours share: who knows it, and what is left of it to those who do not.

Everybody together knows the noise of all pairs, one node besides an eavesdropper that of its own pairs, an eavesdropper
none. Readings of other nodes then still tell something of a target's noise: with C their covariance, in units of every
node's own noise, the best reading of target j is (C^-1 y)_j, of mu shift_j sqrt([C^-1]_jj).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw
from murmurcast.audits.claims import Claims
from murmurcast.audits.evidence import Evidence
from murmurcast.engine import draws, noise
from murmurcast.engine.draws import DrawnFrom
from murmurcast.errors import Error

Numbers = NDArray[np.int64]


class PairNoise(NamedTuple):
    """The noise of all pairs, and how it stands in readings.

    Attributes:
        weight: [nodes, epochs, pairs] in the first reading of every node, in units of the node's own noise.
        noise: [epochs, pairs, runs, dim] what was drawn.
        ends: [pairs, 2] the two nodes of every pair.
    """

    weight: FloatArray
    noise: NDArray[np.float32]
    ends: Numbers

    def known_to_nobody(self, known_to: int | None = None) -> NDArray[np.bool_]:
        """[pairs] which pairs' noise an eavesdropper does not know, with one node besides or alone."""
        return ~(self.ends == known_to).any(axis=1) if known_to is not None else np.ones(len(self.ends), bool)


class PairsAtNodes(NamedTuple):
    """Where the noise of pairs comes from.

    Attributes:
        source: The draw.
        roots: [seeds, 2] keys of the runs.
        pairs: Every node's pairs.
        ends: [pairs, 2].
        dim: Of a model.
        dtype: Of the draws.
    """

    source: DrawnFrom
    roots: NDArray[np.uint32]
    pairs: draws.Pairs
    ends: Numbers
    dim: int
    dtype: "np.dtype[Any]"

    def drawn(self, epoch: int) -> FloatArray:
        """[nodes, pairs of a node, runs, dim] as every node has it, with its sign."""
        nodes, several = self.pairs.number.shape
        own = draws.Pairs(*map(jnp.asarray, self.pairs))
        place = (self.dim, (several,), own)
        values = draws.draw_all(
            self.source, jnp.asarray(self.roots), jnp.asarray(epoch), jnp.arange(nodes), place, self.dtype
        )
        return np.asarray(values, np.float64)

    def in_units(self, claims: Claims, epochs: int) -> PairNoise:
        """All pairs' noise, and its weights in the first reading of every node."""
        first = int(claims.readable[0])
        number, sign = (np.asarray(part)[claims.nodes] for part in self.pairs)
        weight = np.zeros((len(claims.nodes), epochs, len(self.ends)))
        in_units = claims.shared[:, :, first] / claims.scale[:, :, first, None]
        for place in range(len(claims.nodes)):
            real = sign[place] != 0
            weight[place][:, number[place][real]] = in_units[place][:, real] * sign[place][real]
        return PairNoise(weight, np.stack([self._by_pair(epoch) for epoch in range(1, epochs + 1)]), self.ends)

    def _by_pair(self, epoch: int) -> NDArray[np.float32]:
        """[pairs, runs, dim] as the first end of each has it."""
        number, sign, drawn = np.asarray(self.pairs.number), np.asarray(self.pairs.sign), self.drawn(epoch)
        noise = np.zeros((len(self.ends), *drawn.shape[2:]), np.float32)
        noise[number[sign > 0]] = drawn[sign > 0]
        return noise


def pairs_at_nodes(
    actual: Algorithm, claimed: Algorithm, seeds: tuple[int, ...], dim: int, dtype: "np.dtype[Any]"
) -> PairsAtNodes | None:
    """The noise of pairs as it was really drawn, or should have been; None where none is claimed."""
    source, pairs = _pair_draw(actual) or _pair_draw(claimed), draws.pairs(claimed)
    if source is None or pairs is None:
        return None
    number, sign = np.asarray(pairs.number), np.asarray(pairs.sign)
    ends = np.zeros((int(number[sign != 0].max()) + 1, 2), np.int64)
    nodes = np.broadcast_to(np.arange(len(number))[:, None], number.shape)
    for side, which in enumerate((sign > 0, sign < 0)):
        ends[number[which], side] = nodes[which]
    return PairsAtNodes(source, noise.roots(seeds), pairs, ends, dim, np.dtype(dtype))


def _pair_draw(algorithm: Algorithm) -> DrawnFrom | None:
    """The one draw of pairs that an algorithm makes."""
    of_pairs = [
        source
        for number, one in enumerate(algorithm.rounds)
        for name, source in draws.sources(algorithm, number).items()
        if isinstance(one.draws[name], Draw) and source.draw.per == "pair"
    ]
    if len(of_pairs) > 1:
        raise Error(
            f'no attack is known on "{algorithm.name}", whose pairs share more than one draw',
            hint="audit an algorithm with one draw of pairs",
        )
    return of_pairs[0] if of_pairs else None


def without_keys(
    readings: tuple[NDArray[Any], NDArray[Any]],
    shift: FloatArray,
    pairs: PairNoise,
    place: int,
    curious: int | None,
    nodes: Numbers,
) -> Evidence:
    """What an eavesdropper has of one target, alone or with one node besides.

    Args:
        readings: [nodes, epochs, runs, dim] the first reading of every node without the noise of its pairs: beyond what
            the eavesdropper expects, and beyond what follows from all data and canaries, of which it knows the others'.
        shift: [epochs] of the target's.
        pairs: What was drawn.
        place: Of the target.
        curious: The node besides, which knows the noise of its pairs; None for nobody.
        nodes: [nodes] whose readings these are.
    """
    surprises, known = readings
    others = np.flatnonzero(nodes != (-1 if curious is None else curious))
    target = int(np.flatnonzero(others == place)[0])
    hidden = pairs.known_to_nobody(curious)
    rows, moved, alone = [], [], []
    for epoch in range(len(shift)):
        weight = pairs.weight[others, epoch][:, hidden]
        inverse = np.linalg.inv(np.eye(len(others)) + weight @ weight.T)
        heard = known[others, epoch].astype(np.float64)
        heard[target] = surprises[place, epoch]
        heard += np.tensordot(weight, pairs.noise[epoch][hidden], axes=1)
        size = np.sqrt(inverse[target, target])
        alone.append(heard[target] / np.linalg.norm(np.append(weight[target], 1.0)))
        rows.append(np.tensordot(inverse[target], heard, axes=1) / size)
        moved.append(shift[epoch] * size)
    # By itself the target's reading says little, unless what should hide it was left out.
    return Evidence(np.stack(rows), np.array(moved)).beside(np.stack(alone))


def mu_without_keys(shift: FloatArray, pairs: PairNoise, place: int, curious: int | None, nodes: Numbers) -> float:
    """What such an eavesdropper reaches, if all is as claimed."""
    others = np.flatnonzero(nodes != (-1 if curious is None else curious))
    target = int(np.flatnonzero(others == place)[0])
    hidden, total = pairs.known_to_nobody(curious), 0.0
    for epoch in np.flatnonzero(shift):
        weight = pairs.weight[others, epoch][:, hidden]
        total += shift[epoch] ** 2 * np.linalg.inv(np.eye(len(others)) + weight @ weight.T)[target, target]
    return float(np.sqrt(total))
