"""Ends that are fixed before a run: an epoch after which all stop, and nodes that drop out on the way.

Both are tables like any other, so engine and ledger need no rule of their own for them. What a node sends up to epoch e
exposes its gradients 1..e-1, and it pays for these only. That holds because the end was fixed beforehand: an end chosen
by looking at what was sent says something about the data by itself, and is paid for by the cost of the whole plan only.
One chosen by looking at own models is paid for by nothing.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Air, Algorithm, Local, Promise, without_repeats
from murmurcast.errors import Error


def with_ends(algorithm: Algorithm, stop_after: int | None = None, drops: Mapping[int, int] | None = None) -> Algorithm:
    """The same algorithm, with ends fixed before the run.

    Args:
        algorithm: What the nodes do.
        stop_after: The last epoch of the run; None takes the plan's.
        drops: The last epoch in which a node sends, of nodes that drop out; then it holds its state, and its
            neighbours share its weight out among the others they hear. For algorithms that multicast.

    Guarantees:
        Unit, adversary, range: the algorithm's own. Formula: its own, over what each node really sends: mu_j^2 of a
        node that sends up to epoch e has the terms t = 1..e-1. Of the others nothing changes: tier 1 rests on a node's
        own noise, steps and z, and these stay. A node that has dropped out publishes what it published in its last
        epoch, a function of what was sent; the gradient it took there stays on the node.
    """
    if (stop_after is not None or drops) and hasattr(algorithm.receiving, "sends"):
        raise Error("nodes drop out of this algorithm already", hint="name stop_after and all drops at once")
    if stop_after is not None:
        algorithm = _stopped(algorithm, stop_after)
    return _with_drops(algorithm, drops) if drops else algorithm


def _stopped(algorithm: Algorithm, stop_after: int) -> Algorithm:
    planned = algorithm.plan.schedule.epochs
    _check.at_least(2, stop_after=stop_after)
    if stop_after > planned:
        raise Error(f"stop_after is {stop_after}, and the plan has {planned} epochs", hint="lower it, or leave it out")

    def cut(table: FloatArray) -> FloatArray:
        return table[:stop_after]

    sending, receiving = (jax.tree.map(cut, tables) for tables in (algorithm.sending, algorithm.receiving))
    last = np.full(algorithm.plan.network.nodes, stop_after)
    return algorithm._replace(
        plan=algorithm.plan.until(stop_after),
        sending=sending,
        receiving=receiving,
        promise=_promise(algorithm, last),
        settings=algorithm.settings | {"stop_after": stop_after, "planned_epochs": planned},
    )


def _with_drops(algorithm: Algorithm, drops: Mapping[int, int]) -> Algorithm:
    last = _last_epochs(algorithm, drops)
    tables = {name: getattr(algorithm.sending, name) for name in ("amplitude", "noise")}
    # The row after the last drop stands for all later epochs.
    rows = max(max(drops.values()) + 1, *map(len, tables.values()), len(algorithm.receiving.heard))
    sends = (np.arange(1, rows + 1)[:, None] <= last).astype(np.float64)
    sending = algorithm.sending._replace(**{name: _rows(table, rows) * sends for name, table in tables.items()})
    heard = _shared_out(algorithm, sending.amplitude, sends)
    receiving = _with_table(algorithm.receiving._replace(heard=heard), sends)

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:
        following = algorithm.update(here, state, sent, heard, local)
        return jax.tree.map(lambda new, old: jnp.where(here.sends > 0, new, old), following, state)

    words = ", ".join(f"node {node} after epoch {epoch}" for node, epoch in sorted(drops.items()))
    return algorithm._replace(
        sending=sending,
        receiving=receiving,
        promise=_promise(algorithm, last),
        settings=algorithm.settings | {"drops": words},
        update=update,
    )


def _promise(algorithm: Algorithm, last: "NDArray[np.int64]") -> Promise:
    """What is promised up to the last epochs; the whole promise where somebody has put another one in its place."""
    if algorithm.promise_until is None:
        return algorithm.promise
    whole = algorithm.promise_until(np.full_like(last, algorithm.plan.schedule.epochs))
    ours = np.allclose(whole.mu, algorithm.promise.mu, rtol=1e-9, atol=0)
    return algorithm.promise_until(last) if ours else algorithm.promise


def _last_epochs(algorithm: Algorithm, drops: Mapping[int, int]) -> "NDArray[np.int64]":
    """[nodes] the last epoch in which every node sends."""
    nodes, epochs = algorithm.plan.network.nodes, algorithm.plan.schedule.epochs
    fields = set(getattr(algorithm.sending, "_fields", ())) & {"amplitude", "noise"}
    if not isinstance(algorithm.medium, Air) or len(fields) < 2 or not hasattr(algorithm.receiving, "heard"):
        raise Error(
            f"nodes of {algorithm.name} cannot drop out: only algorithms that multicast know how",
            hint="leave drops out, or use power-controlled",
        )
    last = np.full(nodes, epochs)
    for node, epoch in drops.items():
        if not 0 <= node < nodes:
            raise Error(f"drops names node {node}", hint=f"nodes are numbered 0 to {nodes - 1}")
        _check.at_least(1, **{f"drops.{node}": epoch})
        if epoch >= epochs:
            raise Error(f"drops.{node} is {epoch}, and the run has {epochs} epochs", hint="lower it, or leave it out")
        last[node] = epoch
    return last


def _shared_out(algorithm: Algorithm, amplitude: FloatArray, sends: FloatArray) -> FloatArray:
    """[rows, nodes] the factor of what is heard, so that a receiver's weights still sum to 1 with fewer senders."""
    gains = algorithm.plan.network.gains
    before, now = (np.asarray(rows @ gains) for rows in (_rows(algorithm.sending.amplitude, len(sends)), amplitude))
    alone = (now <= 0) & (sends > 0)
    if alone.any():
        row, node = np.argwhere(alone)[0]
        raise Error(
            f"node {node} would hear nobody after epoch {row}",
            hint="let it drop out too, or keep one of its neighbours",
        )
    return _rows(algorithm.receiving.heard, len(sends)) * before / np.where(now > 0, now, before)


def _rows(table: FloatArray, rows: int) -> FloatArray:
    """[rows, nodes] the table, its last row repeated."""
    return table[np.minimum(np.arange(rows), len(table) - 1)]


def _with_table(receiving: Any, sends: FloatArray) -> Any:
    """The tables of what is received, with one more: 1 in the epochs in which a node takes part."""
    make: Any = NamedTuple  # of fields that only the run knows
    made = make("Receiving", [(name, Any) for name in (*receiving._fields, "sends")])
    return made(*receiving, without_repeats(sends))
