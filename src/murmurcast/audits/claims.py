"""What an algorithm claims of all that leaves its nodes, found out from its own functions.

Given all that was sent before, a node's next signal is known but for fresh draws and for what data did. How far a draw
moves every signal of an epoch, and how far a change of the node's gradients does, is asked of `send` and `update`
themselves, with models of one coordinate: both are linear in draws and gradients. A signal whose draws all stand in
earlier signals of the same epoch holds no noise of its own: given these, it is known.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local, Round
from murmurcast.algorithms.grid_noise import integer_std
from murmurcast.algorithms.observed import System
from murmurcast.algorithms.tables import row_of
from murmurcast.channels.base import is_over_radio
from murmurcast.engine import check, draws
from murmurcast.engine import node as one_node
from murmurcast.engine.draws import DrawnFrom
from murmurcast.errors import Error

Numbers = NDArray[np.int64]
NoiseOfReadings = Literal["normal", "laplace"]
_STD_OF_LAPLACE = float(np.sqrt(2))
_NO_NOISE_LEFT = 1e-6  # of a signal's noise: less is rounding
_NO_SHIFT_LEFT = 1e-9  # of a signal's shift


class Claims(NamedTuple):
    """What is claimed of the signals of some nodes, rounds and links in one row.

    Attributes:
        nodes: [nodes] whose.
        change: [nodes] of their gradients.
        law: Of a reading's noise.
        std: [nodes, epochs, signals] of the noise that is not in earlier signals of the epoch already; 0 for none.
        earlier: [nodes, epochs, signals, signals] how much of the readings of earlier signals is in each; None where
            all signals are independent.
        spread: [nodes, epochs, signals] std of all noise in the signal that the node draws for itself.
        scale: [nodes, epochs, signals] what readings are measured in: the std; without noise, the largest shift of the
            node; infinite where there is neither.
        shift: [nodes, epochs, signals] of readings, by the change of the node's gradients.
        shared: [nodes, epochs, signals, pairs of the node] how far the noise of its pairs moves a signal; of no pairs
            where none is drawn.
        published_shift: [nodes] of the model that is published at the end.
    """

    nodes: Numbers
    change: FloatArray
    law: NoiseOfReadings
    std: FloatArray
    earlier: FloatArray | None
    spread: FloatArray
    scale: FloatArray
    shift: FloatArray
    shared: FloatArray
    published_shift: FloatArray

    @property
    def readable(self) -> Numbers:
        """[readable] the signals that noise or data is in anywhere; all others follow from what was sent before."""
        return np.flatnonzero(np.isfinite(self.scale).any(axis=(0, 1)))


class _Source(NamedTuple):
    """A fresh draw of an epoch: in which round, as which of its draws, how many a node has of it, and what it is."""

    round_number: int
    draw_number: int
    owners: int
    drawn: DrawnFrom


def claim(algorithm: Algorithm, nodes: Numbers, change: FloatArray) -> Claims:
    """What is claimed of nodes whose gradients all change by so much, [nodes], in one direction."""
    sources = _sources(algorithm)
    with jax.enable_x64(True):
        rows, published = _probed(algorithm, sources, nodes, change)
    shift, noise, shared = (np.stack(part, axis=1) for part in zip(*rows, strict=True))
    noise = noise * _std_of_draws(algorithm, sources, nodes)
    std, earlier = _given_earlier(noise)
    left = _shift_given_earlier(shift, std, earlier)
    unhidden = np.abs(np.where(std > 0, 0.0, left)).max(axis=(1, 2), initial=0.0)[:, None, None]
    scale = np.where(std > 0, std, np.where(left != 0, unhidden, np.inf))
    spread = np.linalg.norm(noise, axis=-1)
    is_tied = bool(earlier.any())
    return Claims(
        nodes=nodes,
        change=change,
        law=_law(algorithm, sources),
        std=std,
        earlier=earlier if is_tied else None,
        spread=spread,
        scale=scale,
        shift=left / scale,
        shared=shared,
        published_shift=published,
    )


def takes_private_gradients(algorithm: Algorithm) -> bool:
    """Whether it takes gradients at points of the node's own."""
    taken = False

    def private(point: jax.Array) -> jax.Array:
        nonlocal taken
        taken = True
        return point

    local = Local(lambda point: point, private, lambda point: point)

    def one_epoch(start: jax.Array) -> Any:
        state = algorithm.init(start, local)
        for one in algorithm.rounds:
            here = jax.tree.map(lambda leaf: leaf[0], tables_at(one.receiving, 1, np.array([0]), np.dtype(np.float32)))
            sent, heard = _nothing(one)
            state = one_node.receive(one, here, state, sent, heard, local).state
        return state

    jax.eval_shape(one_epoch, jax.ShapeDtypeStruct((1,), np.float32))
    return taken


def carries_out(algorithm: Algorithm, system: System, claims: Claims) -> bool:
    """Whether noise, steps and weights are those of Algorithm 1 on its plan, in every epoch and at all these nodes.

    Args:
        algorithm: Whatever has a plan.
        system: The plan, as the linear diagnostic sees it.
        claims: Of the nodes' signals.
    """
    plan, nodes = algorithm.plan, claims.nodes
    amplitude = amplitude_in_epochs(algorithm)[:, nodes]
    if claims.law != "normal" or claims.shared.size or claims.readable.any():
        return False
    push = (system.push / plan.sensitivity)[:, nodes] * claims.change
    push = np.concatenate([np.zeros((1, len(nodes))), -push[:-1]])
    std, scale = claims.std[:, :, 0].T / amplitude, claims.scale[:, :, 0].T
    moved = claims.shift[:, :, 0].T * np.where(np.isfinite(scale), scale, 0.0) / amplitude
    with jax.enable_x64(True):
        heard, kept = (_own_after(algorithm, nodes, *part) for part in ((0.0, 1.0), (1.0, 0.0)))
    mixing = plan.mixing
    factors = 1 / (mixing.compensation * mixing.normaliser), mixing.weights.diagonal()
    if plan.radio is not None:  # its receivers make the mixed point themselves
        factors = np.ones(len(mixing.compensation)), np.zeros(len(mixing.compensation))
    return bool(
        (np.allclose(std, system.effective_noise[:, nodes], rtol=1e-6) or not std.any())
        and np.allclose(moved, push, rtol=1e-6)
        and np.allclose(heard, factors[0][nodes], rtol=1e-6)
        and np.allclose(kept * amplitude[0], factors[1][nodes], rtol=1e-6)
    )


def amplitude_in_epochs(algorithm: Algorithm) -> FloatArray:
    """[epochs, nodes] of the model in what a node sends, as its plan has it."""
    plan, channel = algorithm.plan, algorithm.rounds[0].channel
    scale = channel.scale if is_over_radio(channel) else np.ones(algorithm.epochs)
    return np.asarray(scale[:, None] * np.sqrt(plan.alpha * plan.network.power))


def _own_after(algorithm: Algorithm, nodes: Numbers, sent: float, heard: float) -> FloatArray:
    """[nodes] the own model after a first epoch in whose rounds so much was sent and heard, without gradients."""
    local = Local(jnp.zeros_like, jnp.zeros_like, lambda model: model)

    def after(tables: Any) -> jax.Array:
        state = algorithm.init(jnp.zeros(1), local)
        for one, here in zip(algorithm.rounds, tables, strict=True):
            state = one_node.receive(one, here, state, jnp.full(1, sent), jnp.full(1, heard), local).state
        own: jax.Array = state.own
        return own[0]

    tables = tuple(tables_at(one.receiving, 1, nodes, np.dtype(np.float64)) for one in algorithm.rounds)
    return np.asarray(jax.vmap(after)(tables))


def quiet_draws(algorithm: Algorithm, number: int, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of a round's draws of one node, by name."""
    gains = algorithm.setup.network.gains
    sources = draws.sources(algorithm, number).items()
    return {name: (*draws.owners(source.draw, gains), *shape) for name, source in sources}


def tables_at(tables: Any, epoch: int, nodes: Numbers, dtype: "np.dtype[Any]") -> Any:
    """The tables' entries for nodes in an epoch, [nodes, ...]."""

    def entry(table: Any) -> NDArray[Any]:
        row = row_of(np.asarray(table), epoch)
        return (np.broadcast_to(row, len(nodes)) if np.ndim(row) == 0 else row[nodes]).astype(dtype)

    return jax.tree.map(entry, tables)


def _nothing(one: Round) -> tuple[jax.Array, jax.Array]:
    """A node that sends and hears nothing, with models of one coordinate."""
    return jnp.zeros(check.signal_shape(one.channel, (1,))), jnp.zeros(check.heard_shape(one.channel, (1,)))


def _sources(algorithm: Algorithm) -> tuple[_Source, ...]:
    """All fresh draws of an epoch; of what is drawn once more epochs later it is not known what to expect."""
    by_draw: dict[tuple[int, int], _Source] = {}
    gains = algorithm.setup.network.gains
    for number in range(len(algorithm.rounds)):
        for name, source in draws.sources(algorithm, number).items():
            if source.epochs_ago:
                raise Error(
                    f'no attack is known on "{algorithm.name}", whose draw "{name}" is made again in later epochs',
                    hint="audit an algorithm whose draws are fresh in every epoch",
                )
            owners = draws.owners(source.draw, gains)
            key = source.round_number, source.draw_number
            by_draw.setdefault(key, _Source(*key, owners[0] if owners else 1, source))
    return tuple(by_draw.values())


def _law(algorithm: Algorithm, sources: tuple[_Source, ...]) -> NoiseOfReadings:
    """One law of all readings: sums of different ones have none that is known here."""
    laws = {source.drawn.draw.law for source in sources}
    if "laplace" not in laws:
        return "normal"
    if len(sources) > 1 or sources[0].drawn.draw.per == "pair":
        raise Error(
            f'no attack is known on "{algorithm.name}", whose signals add up draws that are not all normal',
            hint="audit an algorithm with normal draws, or with one draw",
        )
    return "laplace"


def _probed(algorithm: Algorithm, sources: tuple[_Source, ...], nodes: Numbers, change: FloatArray) -> Any:
    """How signals move, epoch by epoch, and the published model in the end.

    Rows of ([nodes, signals] shift, [nodes, signals, draws] own noise, [nodes, signals, pairs]); and [nodes] shift.
    """
    float64 = np.dtype(np.float64)

    def local(of: jax.Array) -> Local:
        return Local(lambda _: jnp.full(1, of), lambda _: jnp.full(1, of), lambda model: model)

    def begin(of: jax.Array) -> Any:
        return tuple(algorithm.init(jnp.zeros(1), local(each)) for each in (jnp.zeros_like(of), of))

    def one_epoch(tables: Any, worlds: Any, of: jax.Array) -> Any:
        rows = []
        for number, one in enumerate(algorithm.rounds):
            sending, receiving = tables[number]
            rows.append(_moved(algorithm, sources, number, sending, worlds))
            sent, heard = _nothing(one)
            worlds = tuple(
                one_node.receive(one, receiving, state, sent, heard, local(each)).state
                for state, each in zip(worlds, (jnp.zeros_like(of), of), strict=True)
            )
        return worlds, tuple(jnp.concatenate(part) for part in zip(*rows, strict=True))

    step = jax.jit(jax.vmap(one_epoch))
    worlds, rows = jax.vmap(begin)(jnp.asarray(change)), []
    for epoch in range(1, algorithm.epochs + 1):
        tables = [
            tuple(tables_at(part, epoch, nodes, float64) for part in (one.sending, one.receiving))
            for one in algorithm.rounds
        ]
        worlds, row = step(tables, worlds, jnp.asarray(change))
        rows.append(jax.tree.map(np.asarray, row))
    return rows, np.asarray(worlds[1].published - worlds[0].published)[:, 0]


def _moved(algorithm: Algorithm, sources: tuple[_Source, ...], number: int, here: Any, worlds: Any) -> Any:
    """([signals] by the change, [signals, draws] by own draws, [signals, pairs] by pairs') of one node in one round."""
    one = algorithm.rounds[number]
    nothing = {name: jnp.zeros(shape) for name, shape in quiet_draws(algorithm, number, (1,)).items()}
    without, with_change = (one_node.transmit(one, here, state, nothing).reshape(-1) for state in worlds)
    here_drawn = draws.sources(algorithm, number)
    columns: dict[bool, list[jax.Array]] = {False: [jnp.zeros((len(without), 0))], True: [jnp.zeros((len(without), 0))]}
    for source in sources:
        names = [
            name
            for name, candidate in here_drawn.items()
            if (candidate.round_number, candidate.draw_number) == (source.round_number, source.draw_number)
        ]

        def of_unit(unit: jax.Array, names: list[str] = names) -> jax.Array:
            drawn = nothing | {name: unit.reshape(nothing[name].shape) for name in names}
            return one_node.transmit(one, here, worlds[0], drawn).reshape(-1) - without

        columns[source.drawn.draw.per == "pair"].append(jax.vmap(of_unit, out_axes=1)(jnp.eye(source.owners)))
    own, shared = (jnp.concatenate(columns[pairs], axis=1) for pairs in (False, True))
    return with_change - without, own, shared


def _std_of_draws(algorithm: Algorithm, sources: tuple[_Source, ...], nodes: Numbers) -> FloatArray:
    """[nodes, epochs, 1, draws] the standard deviation of every own draw."""
    parts = [np.zeros((len(nodes), algorithm.epochs, 0))]
    for source in sources:
        draw = source.drawn.draw
        if draw.per == "pair":
            continue
        std = np.full((len(nodes), algorithm.epochs), _STD_OF_LAPLACE if draw.law == "laplace" else 1.0)
        if draw.law == "discrete gaussian":
            std = integer_std(algorithm.rounds[source.round_number].sending).T[nodes]
        parts.append(np.repeat(std[:, :, None], source.owners, axis=2))
    return np.concatenate(parts, axis=2)[:, :, None]


def _given_earlier(noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Std of every signal's noise given the signals before it, and how much of their readings is in it."""
    *places, signals, _ = noise.shape
    fresh = np.zeros_like(noise)  # directions of what each signal's noise brings
    std, earlier = np.zeros((*places, signals)), np.zeros((*places, signals, signals))
    for signal in range(signals):
        here = noise[..., signal, :]
        known = np.einsum("...ic,...c->...i", fresh[..., :signal, :], here)
        rest = here - np.einsum("...i,...ic->...c", known, fresh[..., :signal, :])
        left = np.linalg.norm(rest, axis=-1)
        std[..., signal] = np.where(left > _NO_NOISE_LEFT * np.linalg.norm(here, axis=-1), left, 0.0)
        earlier[..., signal, :signal] = known
        unit = np.where(std[..., signal] > 0, left, np.inf)
        fresh[..., signal, :] = rest / unit[..., None]
    return std, np.where(np.abs(earlier) > _NO_NOISE_LEFT * np.abs(noise).max(initial=0.0), earlier, 0.0)


def _shift_given_earlier(shift: FloatArray, std: FloatArray, earlier: FloatArray) -> FloatArray:
    """[nodes, epochs, signals] of what is left of every signal, in its own units."""
    left, in_units = np.zeros_like(shift), np.zeros_like(shift)
    for signal in range(shift.shape[-1]):
        parts = earlier[..., signal, :signal] * in_units[..., :signal]
        rest = shift[..., signal] - parts.sum(axis=-1)
        size = np.abs(shift[..., signal]) + np.abs(parts).sum(axis=-1)
        left[..., signal] = np.where(np.abs(rest) > _NO_SHIFT_LEFT * size, rest, 0.0)
        in_units[..., signal] = left[..., signal] / np.where(std[..., signal] > 0, std[..., signal], np.inf)
    return left
