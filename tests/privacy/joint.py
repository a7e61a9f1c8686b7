"""What everything on the air gives away together, calculated without any formula of the house.

With gradients that are linear, all signals of a run are a linear function of all draws and of one node's data. Models
here have one coordinate for every draw of every node, link or pair in every epoch, and one for every gradient of every
node: a run through the method's real functions on unit draws then is that function. The signals are Gaussian, so what
they give away is the distance of two means in units of their covariance, given the draws that the adversary knows.
"""

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw
from tests.algorithms.paths import Fresh, LocalWork, Path, follow

_REACHABLE = 1e-8  # relative: what no draw can make moves all the same


class Joint(NamedTuple):
    """How all that is seen depends on draws and data.

    Attributes:
        noise: [seen, draws].
        owners: Who knows each draw.
        moved: [seen, gradients, nodes] by one unit of every node's every gradient, the one at the start first.
    """

    noise: FloatArray
    owners: tuple[frozenset[int], ...]
    moved: FloatArray


class Units(NamedTuple):
    """What a run on unit draws takes.

    Attributes:
        owners: Who knows each draw.
        fresh: The draws.
        start: [nodes, draws and gradients] zeros.
        work: Gradients with one coordinate for each of them.
    """

    owners: tuple[frozenset[int], ...]
    fresh: Fresh
    start: FloatArray
    work: LocalWork

    def joint(self, path: Path, *, published: bool = True) -> Joint:
        """From the path on these draws."""
        (nodes, dim), count = self.start.shape, len(self.owners)
        seen = [sent.reshape(-1, dim) for sent in path.sent]
        if published:
            seen.append(path.states.published.reshape(-1, dim))
        whole = np.concatenate(seen)
        whole = whole[
            np.isfinite(whole).all(axis=1)
        ]  # a mean of what was heard, where nothing is taken from it, is none
        return Joint(whole[:, :count], self.owners, whole[:, count:].reshape(len(whole), -1, nodes))


def units_of(algorithm: Algorithm, curvature: float = 0.0) -> Units:
    """Gradients are curvature times the point, plus the data's."""
    network, epochs = algorithm.setup.network, algorithm.epochs
    kinds = [draw for one in algorithm.rounds for draw in one.draws.values() if isinstance(draw, Draw)]
    places: list[dict[tuple[int, ...], int]] = []
    owners: list[frozenset[int]] = []
    for draw in kinds:
        who, table = _numbered(network, draw, epochs, len(owners))
        owners += who
        places.append(table)
    gradients = epochs + 1
    dim = len(owners) + gradients * network.nodes
    waiting = iter([_units(place, draw, network, dim) for place, draw in zip(places, kinds, strict=True)])
    shift = np.eye(dim)[len(owners) :].reshape(gradients, network.nodes, dim)

    def gradient(i: Any, epoch: Any, point: Any) -> Any:
        return curvature * point + jnp.asarray(shift)[epoch, i]

    return Units(tuple(owners), lambda *_: next(waiting), np.zeros((network.nodes, dim)), LocalWork(gradient, gradient))


def joint_of(algorithm: Algorithm, *, curvature: float = 0.0, published: bool = True) -> Joint:
    """From one run on unit draws."""
    units = units_of(algorithm, curvature)
    return units.joint(follow(algorithm, *units[1:]), published=published)


def _numbered(
    network: mc.Network, draw: Draw, epochs: int, first: int
) -> tuple[list[frozenset[int]], dict[tuple[int, ...], int]]:
    """Who knows each draw of a kind, and the number of each by (epoch, owners)."""
    nodes, gains = network.nodes, network.gains
    links = [(i, int(j)) for i in range(nodes) for j in gains.indices[gains.indptr[i] : gains.indptr[i + 1]]]
    kinds: dict[str, list[tuple[int, ...]]] = {
        "node": [(i,) for i in range(nodes)],
        "link": [*links],
        "pair": [(i, j) for i, j in links if i < j],
    }
    each = kinds[draw.per]
    known = [frozenset(one) if draw.per == "pair" else frozenset(one[:1]) for one in each]
    table = {
        (epoch, *one): first + epoch * len(each) + place for epoch in range(epochs) for place, one in enumerate(each)
    }
    return known * epochs, table


def _units(place: dict[tuple[int, ...], int], draw: Draw, network: mc.Network, dim: int) -> FloatArray:
    """[epochs, nodes, ...] draws that are unit vectors."""
    gains, nodes = network.gains, network.nodes
    epochs = 1 + max(key[0] for key in place)
    degree = np.diff(gains.indptr)
    result = np.zeros((epochs, nodes, *(() if draw.per == "node" else (int(degree.max()),)), dim))
    for epoch, i in product(range(epochs), range(nodes)):
        if draw.per == "node":
            result[epoch, i, place[epoch, i]] = 1
            continue
        for slot, j in enumerate(gains.indices[gains.indptr[i] : gains.indptr[i + 1]].tolist()):
            if draw.per == "link":
                result[epoch, i, slot, place[epoch, i, j]] = 1
            else:
                result[epoch, i, slot, place[epoch, min(i, j), max(i, j)]] = 1 if i < j else -1
    return result


def exact_mu(joint: Joint, target: int, by: FloatArray, adversary: Iterable[int] = ()) -> float:
    """The largest mu over all ways to move every gradient of a node by plus or minus [gradients] by; or infinity."""
    knows = set(adversary)
    unknown = np.array([not owner & knows for owner in joint.owners])
    noise, moved = joint.noise[:, unknown], joint.moved[:, :, target] * by
    counts = np.abs(moved).max(axis=0) > 0
    moved = moved[:, counts]
    # Signals in units of their own noise: rows differ by orders of magnitude.
    size = np.maximum(np.linalg.norm(noise, axis=1), np.finfo(float).tiny)
    heard = np.linalg.norm(noise, axis=1) > 0
    if (np.abs(moved[~heard]) > 0).any():
        return float("inf")
    noise, moved = noise[heard] / size[heard, None], moved[heard] / size[heard, None]
    needed, *_ = np.linalg.lstsq(noise, moved, rcond=1e-11)
    if np.abs(noise @ needed - moved).max() > _REACHABLE * np.abs(moved).max():
        return float("inf")
    gram = needed.T @ needed
    signs = np.array(list(product((-1.0, 1.0), repeat=len(gram))))
    return float(np.sqrt(np.einsum("pi,ij,pj->p", signs, gram, signs).max()))
