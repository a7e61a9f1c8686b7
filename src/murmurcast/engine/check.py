"""Whether an algorithm and a problem fit together, found out before anything is compiled.

Everything is evaluated by shape only. What does not fit ends in an error with a way out, instead of one of JAX's own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from murmurcast import _check
from murmurcast.algorithms.base import Algorithm, Local
from murmurcast.algorithms.early_end import has_drops
from murmurcast.channels.base import Channel
from murmurcast.engine import draws, node
from murmurcast.errors import Error
from murmurcast.problems.base import Problem

Shape = tuple[int, ...]


class First(NamedTuple):
    """A node before its first message.

    Attributes:
        state: By shape.
        gradients: How many it has taken, at the public start.
    """

    state: Any
    gradients: int


class Fitting(NamedTuple):
    """What was found out.

    Attributes:
        info: Names of the metrics that updates leave for people.
        start_gradients: How many gradients a node takes before its first message.
    """

    info: tuple[str, ...]
    start_gradients: int


def signal_shape(channel: Channel, shape: Shape) -> Shape:
    """Of all that a node sends in a round."""
    return shape if channel.signals is None else (channel.signals, *shape)


def heard_shape(channel: Channel, shape: Shape) -> Shape:
    """Of all that a node hears in a round."""
    return shape if channel.neighbours is None else (channel.neighbours, *shape)


def require_fitting(algorithm: Algorithm, problem: Problem, test: Any, dtype: Any) -> Fitting:
    """An algorithm's functions take and give what the engine hands around, and models can be evaluated on `test`."""
    _require_names(algorithm)
    with jax.enable_x64(np.dtype(dtype) == np.float64):
        _require_loss(algorithm, problem, test, dtype)
        first = first_state(algorithm, problem, dtype)
        _require_models(algorithm, problem, first)
        info = [
            _require_round(algorithm, number, problem, first.state, dtype) for number in range(len(algorithm.rounds))
        ]
    return Fitting(tuple(name for names in info for name in names), first.gradients)


def _require_models(algorithm: Algorithm, problem: Problem, first: First) -> None:
    for field in ("own", "published"):
        if getattr(getattr(first.state, field, None), "shape", None) != problem.shape:
            raise Error(
                f'the state of "{algorithm.name}" has no {field} of the model\'s shape {problem.shape}',
                hint="give it the fields own and published: models are evaluated by them",
            )


def first_state(algorithm: Algorithm, problem: Problem, dtype: Any) -> First:
    """What init makes of the public start."""
    model = jax.ShapeDtypeStruct(problem.shape, dtype)
    taken = 0

    def gradient(point: jax.Array) -> jax.Array:
        nonlocal taken
        taken += 1
        return point

    counting = Local(gradient, gradient, lambda point: point)
    state = _evaluated(algorithm, "init", lambda: jax.eval_shape(lambda start: algorithm.init(start, counting), model))
    return First(state, taken)


def _require_round(algorithm: Algorithm, number: int, problem: Problem, state: Any, dtype: Any) -> tuple[str, ...]:
    """One round's functions; the names of the metrics it leaves."""
    one = algorithm.rounds[number]
    local = Local(lambda point: point, lambda point: point, lambda point: point)
    drawn = _drawn(algorithm, number, problem.shape, dtype)
    name = f'{algorithm.name}, round "{one.name}"'
    sent = _evaluated(
        algorithm,
        "send",
        lambda: jax.eval_shape(lambda *given: node.transmit(one, *given), constants(one.sending, dtype), state, drawn),
    )
    carried = signal_shape(one.channel, problem.shape)
    if getattr(sent, "shape", None) != carried:
        raise Error(
            f"{name}: the signal has shape {getattr(sent, 'shape', type(sent).__name__)}, and the channel "
            f'"{one.channel.kind}" carries {carried}',
            hint="let send return an array of that shape; a second message is a round of its own",
        )
    if sent.dtype != dtype:
        raise Error(
            f"{name}: the signal is made of {sent.dtype}, and the run of {np.dtype(dtype)}",
            hint="compute with the state and the draws as they come, or end in .astype(state.own.dtype)",
        )
    heard = jax.ShapeDtypeStruct(heard_shape(one.channel, problem.shape), dtype)
    received = _evaluated(
        algorithm,
        "update",
        lambda: jax.eval_shape(
            lambda here, state, sent, heard: node.receive(one, here, state, sent, heard, local),
            constants(one.receiving, dtype),
            state,
            sent,
            heard,
        ),
    )
    before, after = (jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree) for tree in (state, received.state))
    if before != after:
        raise Error(
            f"{name}: update returns another state than it was given",
            hint="return the same NamedTuple with arrays of the same shapes and types",
        )
    return tuple(received.info)


def _drawn(algorithm: Algorithm, number: int, shape: Shape, dtype: Any) -> dict[str, jax.ShapeDtypeStruct]:
    gains = algorithm.setup.network.gains
    return {
        name: jax.ShapeDtypeStruct((*draws.owners(source.draw, gains), *shape), dtype)
        for name, source in draws.sources(algorithm, number).items()
    }


def constants(tables: Any, dtype: Any) -> Any:
    """One node's entries of tables, by shape."""
    return jax.tree.map(lambda table: jax.ShapeDtypeStruct(np.shape(table)[2:], dtype), tables)


def _evaluated(algorithm: Algorithm, what: str, evaluate: Callable[[], Any]) -> Any:
    try:
        return evaluate()
    except Error:
        raise
    except Exception as problem:  # noqa: BLE001 - a method or problem of the user's own may fail in any way
        raise Error(
            f'{what} of "{algorithm.name}" cannot be evaluated: {type(problem).__name__}: {_check.short(problem)}',
            hint="look at its shapes and names; murmurcast.testing.check_algorithm tries it step by step",
        ) from None


def _require_loss(algorithm: Algorithm, problem: Problem, test: Any, dtype: Any) -> None:
    """The metric that must be there is there, before anything is trained."""

    def shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
        array = np.asarray(leaf)
        return jax.ShapeDtypeStruct(array.shape, dtype if np.issubdtype(array.dtype, np.floating) else array.dtype)

    model, shapes = jax.ShapeDtypeStruct(problem.shape, dtype), jax.tree.map(shape_of, test)
    metrics = _evaluated(algorithm, "evaluate", lambda: jax.eval_shape(problem.evaluate, model, shapes))
    if not isinstance(metrics, dict) or "loss" not in metrics or any(value.shape for value in metrics.values()):
        returned = sorted(metrics) if isinstance(metrics, dict) else type(metrics).__name__
        raise Error(
            f"{type(problem).__name__} evaluates a model to {returned}",
            hint='let evaluate return a dict of scalars with "loss" among them: every run is judged by it',
        )


def _require_names(algorithm: Algorithm) -> None:
    names = [one.name for one in algorithm.rounds]
    if not names or len(set(names)) < len(names) or not all(name.isidentifier() and "_" not in name for name in names):
        raise Error(
            f'the rounds of "{algorithm.name}" are called {names}',
            hint="give every round a name of its own, one word: the ledger keeps its tables under it",
        )
    if len(names) > 1 and has_drops(algorithm):
        raise Error(f"nodes of {algorithm.name} cannot drop out", hint="leave drops out")
