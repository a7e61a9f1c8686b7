"""The transcript is the run's own: same models to the bit, and the sums the air makes."""

import jax
import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.central_dp import central_dp
from murmurcast.algorithms.local_only import local_only
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.data.datasets import least_squares, logistic
from murmurcast.engine import loop, sharding, train
from murmurcast.engine.train import Point
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.base import Problem
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression
from murmurcast.runs.record import Precision
from murmurcast.runs.run import run
from tests.conftest import asymmetric_network

NODES, EPOCHS, SEEDS = 5, 7, (3, 11, 4)


def planned(problem: Problem, epochs: int = EPOCHS) -> Plan:
    schedule = Schedule(epochs=epochs, step=0.3, noise_timing="aligned")
    return plan(asymmetric_network(4, NODES), problem, Budget(epsilon=5.0), schedule)


def ridge() -> RidgeRegression:
    data = least_squares(examples=100, features=3, seed=2).partition("sorted", NODES)
    return RidgeRegression(data=data, clip=0.8, clipping="node", l2=0.1, ball=2.0)


def plainly(algorithm: Algorithm, problem: Problem, precision: Precision) -> tuple[np.ndarray, np.ndarray]:
    """[nodes, seeds, dim] own and published models of the algorithm without a tape."""
    layout = sharding.layout(problem.nodes, len(SEEDS), 0)
    with jax.enable_x64(precision == "float64"):
        program = loop.program(algorithm, problem, layout, SEEDS, np.dtype(precision))
        point = Point(0, program.start)
        while point.epoch < EPOCHS:
            point = train.advance(program, point, EPOCHS)
        state = layout.take(point.carry).state
    return np.asarray(state.own), np.asarray(state.published)


def mixed_points(built: Plan, kept: Transcript) -> np.ndarray:
    """[seed, epoch, node, dim] what every node makes of its own signal and of what it heard."""
    amplitude = np.sqrt(built.alpha * built.network.power)[:, None]
    kept_share = (1 - built.network.degree / built.mixing.normaliser)[:, None]
    gain = (built.mixing.compensation * built.mixing.normaliser)[:, None]
    return np.asarray(kept.heard / gain + kept_share * kept.sent / amplitude)


def test_models_are_those_of_the_plain_algorithm_to_the_bit() -> None:
    problem = Quadratic.random(NODES, 4, seed=1, ball=0.5)
    algorithm = power_controlled(planned(problem), publish="average")
    kept = transcripts(algorithm, problem, SEEDS, "float64")
    own, published = plainly(algorithm, problem, "float64")
    np.testing.assert_array_equal(kept.own, own.swapaxes(0, 1))
    np.testing.assert_array_equal(kept.published, published.swapaxes(0, 1))
    assert kept.sent.dtype == np.float64


def test_published_models_are_those_of_a_run() -> None:
    problem = ridge()
    algorithm = power_controlled(planned(problem))
    kept = transcripts(algorithm, problem, SEEDS)
    assert kept.sent.dtype == np.float32
    np.testing.assert_array_equal(kept.published, run(algorithm, problem, seeds=SEEDS).published)


def test_air_adds_up_what_was_sent_and_a_seed_alone_is_the_same_run() -> None:
    """Alone, the nodes are spread over cores; together, the seeds."""
    problem = ridge()
    built = planned(problem)
    kept, alone = (transcripts(power_controlled(built), problem, seeds, "float64") for seeds in (SEEDS, SEEDS[1:2]))
    for whole, part in zip(kept[:4], alone[:4], strict=True):
        np.testing.assert_allclose(part[0], whole[1], rtol=1e-10, atol=1e-10)
    assert kept.sent.shape == kept.heard.shape == (len(SEEDS), EPOCHS, NODES, 3)
    gains = built.network.gains.toarray()  # sender first
    np.testing.assert_allclose(kept.heard, np.einsum("ji,stjd->stid", gains, kept.sent), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mixed_points(built, kept)[:, -1], kept.published, rtol=1e-12, atol=1e-12)


def test_first_signal_is_noise_of_the_promised_size_and_never_repeats() -> None:
    problem = Quadratic.random(NODES, 2, seed=1)
    built = planned(problem, epochs=3)
    kept = transcripts(power_controlled(built), problem, range(4000), "float64")
    noise = np.sqrt(built.beta * built.network.power) * built.noise_std[0]
    spread = kept.sent[:, 0].std(axis=(0, 2)) / noise  # models start at 0
    np.testing.assert_allclose(spread, 1, atol=5 / np.sqrt(2 * 8000))
    between = np.corrcoef(kept.sent[:, 0, :, 0], kept.sent[:, 0, :, 1], rowvar=False)
    assert np.abs(between - np.eye(2 * NODES)).max() < 5 / np.sqrt(4000)
    assert len(np.unique(kept.sent)) == kept.sent.size


def test_models_of_any_shape_are_flattened() -> None:
    data = logistic(examples=80, features=3, classes=3, seed=1).partition("iid", NODES)
    problem = SoftmaxRegression(data=data, clip=1.0, clipping="node")
    kept = transcripts(power_controlled(planned(problem)), problem, (0, 1))
    assert kept.sent.shape == (2, EPOCHS, NODES, 12)
    assert kept.own.shape == (2, NODES, 12)


@pytest.mark.parametrize("make", [local_only, central_dp])
def test_other_media_are_an_error(make: object) -> None:
    problem = Quadratic.random(NODES, 2, seed=1)
    with pytest.raises(Error, match="on the air") as raised:
        transcripts(make(planned(problem)), problem, (0,))  # type: ignore[operator]
    assert "power-controlled" in raised.value.hint


def test_too_large_a_tape_is_an_error() -> None:
    problem = Quadratic.random(NODES, 2, seed=1)
    algorithm = power_controlled(planned(problem, epochs=1000))
    with pytest.raises(Error, match="GiB") as raised:
        transcripts(algorithm, problem, range(20_000))
    assert "fewer seeds" in raised.value.hint


def test_a_seed_given_twice_is_an_error() -> None:
    problem = Quadratic.random(NODES, 2, seed=1)
    with pytest.raises(Error, match="twice"):
        transcripts(power_controlled(planned(problem)), problem, (1, 1))
