"""Ends that are fixed before a run: an epoch after which all stop, and nodes that drop out on the way.

Both are tables like any other, so engine and ledger need no rule of their own for them. What a node sends up to epoch e
exposes its gradients 1..e-1, and it pays for these only. That holds because the end was fixed beforehand: an end chosen
by looking at what was sent says something about the data by itself, and is paid for by the cost of the whole plan only.
One chosen by looking at own models is paid for by nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Local, Round, Updated, counting_first_releases, with_proof_of
from murmurcast.algorithms.tables import row_of, without_repeats
from murmurcast.channels.base import sums_by_gains
from murmurcast.errors import Error

if TYPE_CHECKING:
    import jax

_NO_DROPS = "leave drops out, or use Algorithm 1"


def with_ends(algorithm: Algorithm, stop_after: int | None = None, drops: Mapping[int, int] | None = None) -> Algorithm:
    """The same algorithm, with ends fixed before the run, and all that its nodes release before training counted.

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
    if (stop_after is not None or drops) and has_drops(algorithm):
        raise Error("nodes drop out of this algorithm already", hint="name stop_after and all drops at once")
    ended = algorithm if stop_after is None else _stopped(algorithm, stop_after)
    return counting_first_releases(with_proof_of(algorithm, _with_drops(ended, drops) if drops else ended))


def has_drops(algorithm: Algorithm) -> bool:
    """Whether nodes drop out on the way."""
    return any(hasattr(one.receiving, "sends") for one in algorithm.rounds)


def _stopped(algorithm: Algorithm, stop_after: int) -> Algorithm:
    planned = algorithm.epochs
    _check.at_least(2, stop_after=stop_after)
    if stop_after > planned:
        raise Error(f"stop_after is {stop_after}, and the plan has {planned} epochs", hint="lower it, or leave it out")

    def cut(one: Round) -> Round:
        sending, receiving = (
            type(tables)(*(table[:stop_after] for table in tables)) for tables in (one.sending, one.receiving)
        )
        return one._replace(sending=sending, receiving=receiving)

    return algorithm._replace(
        setup=algorithm.setup.until(stop_after),
        rounds=tuple(map(cut, algorithm.rounds)),
        releases=tuple(part.until(stop_after) for part in algorithm.releases),
        settings=algorithm.settings | {"stop_after": stop_after, "planned_epochs": planned},
    )


def _with_drops(algorithm: Algorithm, drops: Mapping[int, int]) -> Algorithm:
    only = _multicast_round(algorithm)
    last = _last_epochs(algorithm, drops)
    tables = {name: getattr(only.sending, name) for name in ("amplitude", "noise")}
    # The row after the last drop stands for all later epochs.
    rows = np.arange(1, max(max(drops.values()) + 1, *map(len, tables.values()), len(only.receiving.heard)) + 1)
    sends = (rows[:, None] <= last).astype(np.float64)
    sending = only.sending._replace(**{name: row_of(table, rows) * sends for name, table in tables.items()})
    heard = _shared_out(algorithm, only, sending.amplitude, sends)
    receiving = _with_table(only.receiving._replace(heard=heard), sends)

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:
        import jax
        import jax.numpy as jnp

        following = only.update(here, state, sent, heard, local)
        updated = following if isinstance(following, Updated) else Updated(following, {})
        next_state = jax.tree.map(lambda new, old: jnp.where(here.sends > 0, new, old), updated.state, state)
        return Updated(next_state, updated.info)

    words = ", ".join(f"node {node} after epoch {epoch}" for node, epoch in sorted(drops.items()))
    return algorithm._replace(
        rounds=(only._replace(sending=sending, receiving=receiving, update=update),),
        releases=tuple(part.until(last) for part in algorithm.releases),
        settings=algorithm.settings | {"drops": words},
    )


def _multicast_round(algorithm: Algorithm) -> Round:
    """The one round of an algorithm whose neighbours can share the weight of a node that is gone among the others."""
    only = algorithm.rounds[0]
    fields = set(getattr(only.sending, "_fields", ())) & {"amplitude", "noise"}
    multicasts = len(algorithm.rounds) == 1 and sums_by_gains(only.channel) and len(fields) == 2
    if not multicasts or not hasattr(only.receiving, "heard"):
        raise Error(
            f"nodes of {algorithm.name} cannot drop out: only algorithms that multicast know how",
            hint=_NO_DROPS,
        )
    if algorithm.releases and algorithm.name in registry.NAMES and not registry.find(algorithm.name).drops:
        raise Error(
            f"nodes of {algorithm.name} cannot drop out: no account of it is known that counts what they still send",
            hint=_NO_DROPS,
        )
    return only


def _last_epochs(algorithm: Algorithm, drops: Mapping[int, int]) -> NDArray[np.int64]:
    """[nodes] the last epoch in which every node sends."""
    nodes, epochs = algorithm.setup.network.nodes, algorithm.epochs
    last = np.full(nodes, epochs)
    for node, epoch in drops.items():
        if not 0 <= node < nodes:
            raise Error(f"drops names node {node}", hint=f"nodes are numbered 0 to {nodes - 1}")
        _check.at_least(1, **{f"drops.{node}": epoch})
        if epoch >= epochs:
            raise Error(f"drops.{node} is {epoch}, and the run has {epochs} epochs", hint="lower it, or leave it out")
        last[node] = epoch
    if (last < epochs).all():
        raise Error(
            f"all {nodes} nodes drop out, the last of them after epoch {last.max()}",
            hint=f"end the whole run instead: run.stop_after = {max(2, last.max())}",
        )
    return last


def _shared_out(algorithm: Algorithm, only: Round, amplitude: FloatArray, sends: FloatArray) -> FloatArray:
    """[rows, nodes] the factor of what is heard, so that a receiver's weights still sum to 1 with fewer senders."""
    gains, rows = algorithm.setup.network.gains, np.arange(1, len(sends) + 1)
    before, now = (np.asarray(part @ gains) for part in (row_of(only.sending.amplitude, rows), amplitude))
    alone = (now <= 0) & (sends > 0)
    if alone.any():
        row, node = np.argwhere(alone)[0]
        raise Error(
            f"node {node} would hear nobody after epoch {row}",
            hint="let it drop out too, or keep one of its neighbours",
        )
    return np.asarray(row_of(only.receiving.heard, rows) * before / np.where(now > 0, now, before))


def _with_table(receiving: Any, sends: FloatArray) -> Any:
    """The tables of what is received, with one more: 1 in the epochs in which a node takes part."""
    make: Any = NamedTuple  # of fields that only the run knows
    receiving_type = make("Receiving", [(name, Any) for name in (*receiving._fields, "sends")])
    return receiving_type(*receiving, without_repeats(sends))
