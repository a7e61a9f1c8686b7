"""What people see of a large network: metrics of some nodes and of the mean model on the way, models at the end."""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast._npz import InPieces, in_one_piece
from murmurcast._threads import Item, Outcome, Work, over_cores
from murmurcast.engine.numbering import Numbering
from murmurcast.engine.program import Carry
from murmurcast.engine.team import Team
from murmurcast.problems.base import Problem

MOST_EVALUATED = 1024  # nodes: up to here all are evaluated
SAMPLE = 256  # nodes that are evaluated of a larger network
_MODELS_AT_ONCE = 16  # that share one pass over the test part
_ROWS_AT_ONCE = 64  # of models that are added up


def evaluated_nodes(nodes: int) -> NDArray[np.int64]:
    """Numbers of the nodes that are evaluated: all, or a sample that is public and the same in every run."""
    if nodes <= MOST_EVALUATED:
        return np.arange(nodes)
    return np.sort(np.random.default_rng(0).choice(nodes, SAMPLE, replace=False))


@dataclass(frozen=True, kw_only=True, eq=False)
class Observer:
    """Looks at the rows of a large network.

    Attributes:
        problem: What is learnt.
        numbering: Who has which rows.
        team: Who trains together; all must look at the same time.
        dtype: Of models.
    """

    problem: Problem
    numbering: Numbering
    team: Team
    dtype: "np.dtype[Any]"

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """Numbers of the nodes that are evaluated."""
        return evaluated_nodes(self.numbering.nodes)

    def metrics(self, carry: Carry) -> dict[str, NDArray[Any]]:
        """By name, [evaluated nodes, seeds], of what was sent [all nodes, seeds], of the mean model [seeds]."""
        place = np.full(self.numbering.nodes, -1)
        place[self.sample] = np.arange(len(self.sample))
        seen = np.flatnonzero(place[self.numbering.own] >= 0)
        where = place[self.numbering.own[seen]]
        by_node = {
            f"{name}_{metric}": values
            for name in ("own", "published")
            for metric, values in self._evaluated(getattr(carry.state, name), seen).items()
        }
        by_node |= {name: values[seen] for name, values in carry.info.items()}
        sent = {"sent_power": carry.sent, "loudest": carry.loudest}  # of all nodes: `certify` asks every one of them
        return (
            {name: self._of_all(values, where) for name, values in by_node.items()}
            | {
                name: self.team.rows_of_all(self.numbering, rows, _room(self.numbering.nodes, rows))
                for name, rows in sent.items()
            }
            | self._of_mean(carry)
        )

    def _of_all(self, values: NDArray[Any], where: NDArray[Any]) -> NDArray[Any]:
        """[evaluated nodes, ...] from those that are here, and their places."""
        all_values = np.zeros((len(self.sample), *values.shape[1:]), values.dtype)
        all_values[where] = values
        return np.asarray(self.team.gather(all_values).sum(axis=0))

    def _evaluated(self, models: NDArray[Any], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """By name, [rows, seeds]."""
        pieces = [rows[first : first + _MODELS_AT_ONCE] for first in range(0, len(rows), _MODELS_AT_ONCE)]

        def of(piece: NDArray[Any]) -> dict[str, NDArray[Any]]:
            filled = np.pad(piece, (0, _MODELS_AT_ONCE - len(piece)), mode="edge")
            metrics = self._evaluate(models[filled], self._test)
            return {name: np.asarray(values)[: len(piece)] for name, values in metrics.items()}

        by_piece = over_cores(in_precision_of(models, of), pieces) or [of(np.zeros(1, np.int64))]
        return {name: np.concatenate([one[name] for one in by_piece])[: len(rows)] for name in by_piece[0]}

    def _of_mean(self, carry: Carry) -> dict[str, NDArray[Any]]:
        """By name, [seeds]: of the mean of all own models, and how far they are from it."""
        own, nodes = carry.state.own[: len(self.numbering.own)], self.numbering.nodes
        # In float64, so that it is the same model however nodes are shared out: accuracies jump where it is not.
        mean = self._total(chunk.sum(axis=0, dtype=np.float64) for chunk in _chunks(own)) / nodes
        centre = mean.astype(self.dtype)

        def spread(chunk: NDArray[Any]) -> FloatArray:
            away = (chunk - centre).reshape(len(chunk), len(centre), -1)
            return np.einsum("ksm,ksm->s", away, away).astype(np.float64)

        apart = self._total(over_cores(spread, _chunks(own))) / nodes
        metrics = {
            f"mean_{name}": np.asarray(values)[0] for name, values in self._evaluate(centre[None], self._test).items()
        }
        return metrics | {"consensus_error": np.sqrt(apart).astype(self.dtype)}

    def _total(self, parts: Iterable[FloatArray]) -> FloatArray:
        return np.asarray(self.team.gather(np.sum(list(parts), axis=0)).sum(axis=0))

    @cached_property
    def _test(self) -> Any:
        def placed(leaf: Any) -> jax.Array:
            array = np.asarray(leaf)
            return jnp.asarray(array.astype(self.dtype) if np.issubdtype(array.dtype, np.floating) else array)

        return jax.tree.map(placed, self.problem.test_data())

    @cached_property
    def _evaluate(self) -> Any:
        """(models [models, seeds, ...], test part) -> metrics by name, [models, seeds]."""
        problem = self.problem
        return jax.jit(lambda models, test: jax.vmap(jax.vmap(lambda model: problem.evaluate(model, test)))(models))

    def keep(self, carry: Carry) -> list[InPieces]:
        """What a checkpoint holds: numbers of nodes, and what each has, row by row."""
        numbers = np.concatenate(self.numbering.parts)
        return [in_one_piece(numbers), *map(self._in_pieces, jax.tree.leaves(carry))]

    def _in_pieces(self, leaf: NDArray[Any]) -> InPieces:
        own = leaf[: len(self.numbering.own)]
        shape = (self.numbering.nodes, *leaf.shape[1:])
        return InPieces(shape, leaf.dtype, self.team.to_leader(self.numbering, own))

    def restore(self, carry: Carry, leaves: list[NDArray[Any]]) -> Carry:
        """The carry with what a checkpoint holds in its rows, whoever held them before."""
        row = np.empty(self.numbering.nodes, np.int64)
        row[leaves[0]] = np.arange(len(leaves[0]))
        own = row[self.numbering.own]
        for ours, theirs in zip(jax.tree.leaves(carry), leaves[1:], strict=True):
            for first in range(0, len(own), _ROWS_AT_ONCE):
                ours[first : first + len(own[first : first + _ROWS_AT_ONCE])] = theirs[
                    own[first : first + _ROWS_AT_ONCE]
                ]
        return carry

    def published(self, carry: Carry) -> NDArray[Any]:
        """[nodes, seeds, ...] what nodes may publish; uses up the carry, in whose room it is sorted by number.

        Where several processes train, only the one that leads has it, in a file; the others have no node's.
        """
        models = carry.state.published[: len(self.numbering.own)]
        if self.team.size == 1:
            return self.team.rows_of_all(self.numbering, models, carry.state.own)
        into = _in_a_file((self.numbering.nodes if self.team.leads else 0, *models.shape[1:]), models.dtype)
        numbers, done = np.concatenate(self.numbering.parts), 0
        for piece in self.team.to_leader(self.numbering, models):
            into[numbers[done : done + len(piece)]] = piece
            done += len(piece)
        return into


def _room(nodes: int, like: NDArray[Any]) -> NDArray[Any]:
    return np.empty((nodes, *like.shape[1:]), like.dtype)


def _in_a_file(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> NDArray[Any]:
    """An array for which memory can be taken back: of all models of a network, where no process has room for them."""
    if not np.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(tempfile.TemporaryFile(), dtype, "w+", shape=shape)


def in_precision_of(array: NDArray[Any], work: Work[Item, Outcome]) -> Work[Item, Outcome]:
    """The work as a thread of its own must do it: whether JAX computes in 64 bits is said thread by thread."""
    wide = array.dtype == np.float64

    def done(item: Item) -> Outcome:
        with jax.enable_x64(wide):
            return work(item)

    return done


def _chunks(rows: NDArray[Any]) -> list[NDArray[Any]]:
    return [rows[first : first + _ROWS_AT_ONCE] for first in range(0, len(rows), _ROWS_AT_ONCE)]
