"""Draws by key: no two are the same unless a method says so, and then the ledger does too."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Again, Algorithm, Draw, Draws, Local, Round
from murmurcast.channels.air import Air
from murmurcast.channels.slots import Slots
from murmurcast.engine import draws
from tests.algorithms.networks import NODES, two_way

DIM = 300


class Nothing(NamedTuple):
    """No constants."""


class Epoch(NamedTuple):
    number: Any


class Heard(NamedTuple):
    """A state that keeps what was sent in two rounds, epoch by epoch."""

    own: Any
    published: Any
    first: Any
    second: Any


def _wide(dim: int) -> mc.Quadratic:
    return mc.Quadratic(curvature=np.tile(np.eye(dim), (NODES, 1, 1)), centre=np.zeros((NODES, dim)))


def two_rounds(first: Draws, second: Draws, problem: mc.Quadratic, epochs: int = 3) -> Algorithm:
    """Sends nothing but what it draws, in two rounds, and keeps it."""
    setup = mc.Setup(
        network=two_way(), problem=problem, budget=mc.Budget(epsilon=1.0), schedule=mc.Schedule(epochs=epochs)
    )

    def send(here: Nothing, state: Heard, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        values = jnp.stack([part if part.ndim == 1 else part.sum(axis=0) for part in drawn.values()])
        return values[0] if len(values) == 1 else values.sum(axis=0)

    def init(model: Any, local: Local) -> Heard:  # noqa: ARG001
        tape = jnp.zeros((epochs, *model.shape), model.dtype)
        return Heard(model, model, tape, tape)

    def keep(field: str) -> Any:
        def update(here: Epoch, state: Heard, sent: Any, heard: Any, local: Local) -> Heard:  # noqa: ARG001
            row = here.number.astype(jnp.int32) - 1
            return state._replace(**{field: getattr(state, field).at[row].set(sent)}, own=sent, published=sent)

        return update

    channel, numbers = Air(two_way().gains), Epoch(np.arange(1.0, epochs + 1))
    rounds = tuple(
        Round(name, channel, drawn, Nothing(), numbers, send, keep(name))
        for name, drawn in (("first", first), ("second", second))
    )
    return Algorithm("draws", setup, rounds, {}, init)


def sent(algorithm: Algorithm, problem: mc.Quadratic, seed: int = 3) -> tuple[FloatArray, FloatArray]:
    """[nodes, epochs, dim] of the two rounds."""
    from murmurcast.engine import loop, sharding

    layout = sharding.layout(NODES, 1, 10**9)
    program = loop.program(algorithm, problem, layout, (seed,), np.float32)
    carry = program.advance(program.given, program.start, np.int32(1), np.int32(algorithm.epochs + 1))
    state = layout.take(carry.state)
    return state.first[:, 0], state.second[:, 0]


def test_two_rounds_never_draw_the_same() -> None:
    """Two messages with the same noise could be subtracted: what is left would have none at all."""
    first, second = sent(two_rounds({"noise": Draw()}, {"noise": Draw()}, _wide(DIM)), _wide(DIM))
    difference = first - second
    assert difference.std() == pytest.approx(np.sqrt(2), rel=0.06)
    everything = np.concatenate([first.reshape(-1, DIM), second.reshape(-1, DIM)])
    correlation = np.corrcoef(everything)[np.triu_indices(len(everything), 1)]
    assert np.abs(correlation).max() < 5.5 / np.sqrt(DIM)


def test_several_draws_of_one_round_have_keys_of_their_own() -> None:
    one = sent(two_rounds({"a": Draw()}, {"b": Draw()}, _wide(DIM)), _wide(DIM))[0]
    both = sent(two_rounds({"a": Draw(), "c": Draw()}, {"b": Draw()}, _wide(DIM)), _wide(DIM))[0]
    other = both - one  # the second draw alone
    assert other.std() == pytest.approx(1, rel=0.06)
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(one.size)


def test_the_first_draw_is_what_it_always_was() -> None:
    first, _ = sent(two_rounds({"noise": Draw()}, {"noise": Draw()}, _wide(DIM)), _wide(DIM))
    key = jax.random.wrap_key_data(jnp.array([0, 3], jnp.uint32))
    expected = jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, 1), 1), (DIM,))
    np.testing.assert_array_equal(first[0, 0], np.asarray(expected))


def test_a_draw_comes_again_only_where_it_is_named() -> None:
    problem = _wide(DIM)
    algorithm = two_rounds(
        {"noise": Draw()},
        {"before": Again("noise", epochs_ago=1, of_round="first"), "now": Again("noise", 0, "first")},
        problem,
    )
    first, second = sent(algorithm, problem)
    np.testing.assert_allclose(second[:, 0], first[:, 0], rtol=1e-6)  # before epoch 1 there is nothing
    np.testing.assert_allclose(second[:, 1:], first[:, 1:] + first[:, :-1], rtol=1e-5, atol=1e-5)
    ledger = mc.run(algorithm, problem).ledger
    assert ledger.attrs["second_draws"] == (
        "before: noise of first again, 1 epochs ago; now: noise of first again, 0 epochs ago"
    )


@pytest.mark.parametrize(
    "again", [Again("other", of_round="first"), Again("noise", 0), Again("noise", of_round="third"), Again("noise", -1)]
)
def test_a_draw_that_was_not_made_before_is_an_error(again: Again) -> None:
    problem = _wide(3)
    with pytest.raises(mc.Error, match="not made before") as raised:
        mc.run(two_rounds({"noise": Draw()}, {"noise": Draw(), "again": again}, problem), problem)
    assert "earlier" in raised.value.hint


def test_pairs_cancel_between_their_ends_and_nowhere_else() -> None:
    problem = _wide(DIM)
    first, second = sent(
        two_rounds({"pairs": Draw(per="pair")}, {"pairs": Draw(per="pair", opposite=False)}, problem), problem
    )
    np.testing.assert_allclose(first.sum(axis=0), 0, atol=1e-5)
    degree = two_way().degree
    np.testing.assert_allclose(first.var(axis=(1, 2)), degree, rtol=0.25)
    np.testing.assert_allclose(second.var(axis=(1, 2)), degree, rtol=0.25)
    adjacent = two_way().gains.toarray() > 0
    for sign, tape in ((-1, first), (1, second)):
        covariance = np.cov(tape.reshape(NODES, -1))
        np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), sign * adjacent, atol=0.3)


def test_no_two_pairs_of_a_large_network_share_a_number() -> None:
    """In 32 bits the numbers of (0, 40000) and (32768, 40000) would be one."""
    nodes = 2**17
    one_way = [*zip(range(nodes - 1), range(1, nodes), strict=True), (0, 40000), (32768, 40000)]
    sender, receiver = np.array([*one_way, *((b, a) for a, b in one_way)], np.int32).T  # as SciPy has it, if it can
    network = mc.Network(gains=csr_array((np.ones(len(sender)), (sender, receiver)), shape=(nodes, nodes)))
    problem = mc.ClippedGradients()
    setup = mc.Setup(
        network=network, problem=problem, budget=mc.Budget(epsilon=1.0), schedule=mc.Schedule(epochs=2, step=0.1)
    )
    one = two_rounds({"pairs": Draw(per="pair")}, {}, _wide(3))._replace(setup=setup)
    listed = draws.pairs(one)
    assert listed is not None
    numbers = listed.number[listed.sign != 0]
    np.testing.assert_array_equal(np.bincount(numbers), 2)  # each at its two ends


def test_laplace_draws_are_laplace() -> None:
    problem = _wide(DIM)
    first, second = sent(two_rounds({"noise": Draw(law="laplace")}, {"noise": Draw()}, problem), problem)
    assert stats.kstest(first.ravel(), stats.laplace.cdf).pvalue > 1e-4
    assert stats.kstest(first.ravel(), stats.norm(scale=np.sqrt(2)).cdf).pvalue < 1e-6
    assert stats.kstest(second.ravel(), stats.norm.cdf).pvalue > 1e-4


def test_draws_are_named_in_words() -> None:
    one = Round("model", Slots(two_way().gains), {"a": Draw(per="link", law="laplace")}, (), (), None, None)  # type: ignore[arg-type]
    assert draws.words(one) == "a: laplace of a link"
    assert draws.words(one._replace(draws={})) == "none"


def test_per_link_draws_differ_from_link_to_link() -> None:
    problem = mc.Quadratic.random(NODES, 3)
    algorithm = mc.mped2fl(mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=3)))
    source = draws.sources(algorithm, 0)["noise"]
    place = (DIM, draws.owners(source.draw, two_way().gains), None)
    drawn = np.asarray(
        draws.draw_all(source, jnp.array([[0, 1]], jnp.uint32), jnp.asarray(1), jnp.arange(NODES), place, np.float32)
    ).reshape(-1, DIM)
    assert len(drawn) == NODES * 3
    correlation = np.corrcoef(drawn)[np.triu_indices(len(drawn), 1)]
    assert np.abs(correlation).max() < 5.5 / np.sqrt(DIM)
