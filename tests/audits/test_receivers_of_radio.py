"""Receivers over a radio: their statistic on real transcripts has the distribution that the linear diagnostic says."""

from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.observed import observe, system_of
from murmurcast.audits import canaries
from murmurcast.audits.published import read_published
from murmurcast.audits.receivers import View, listen, view
from murmurcast.audits.replay import replay
from murmurcast.audits.symbols import as_numbers, as_symbols, turned
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.problems.quadratic import Quadratic
from murmurcast.radio.settings import Radio
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS, RUNS, TARGET = 5, 4, 5, 600, 1
# Receivers' noise of about a tenth of what nodes say: it is on the way to whoever hears a relay.
SYSTEMS: dict[str, dict[str, Any]] = {
    "own slots, fading": {"access": "own-slot", "fading": "iid", "z": "predicted"},
    "halves, 2 rounds": {"access": "referenced", "rounds": 2, "z": "mean"},
    "aligned, half duplex": {"access": "aligned", "fading": "iid", "z": "mean"},
    "referenced, full duplex": {"access": "referenced", "duplex": "full", "fading": "jakes", "z": "mean"},
    "aligned, 2 rounds, reference": {"access": "aligned", "rounds": 2, "recentre_every": 2},
}
QUICK = ("own slots, fading", "halves, 2 rounds")


class Attacked(NamedTuple):
    """A system, what was planted, and what was sent."""

    algorithm: Algorithm
    problem: Quadratic
    planted: canaries.Canaries
    kept: Transcript


def saturated() -> Quadratic:
    """Gradients of the length of the clip along the first coordinate, wherever the models are."""
    curvature = np.zeros((NODES, DIM, DIM))
    curvature[:, 0, 0] = 1.0
    centre = np.full((NODES, DIM), 1e6)
    return Quadratic(curvature=curvature + 1e-12 * np.eye(DIM), centre=centre, clip=0.7, ball=100.0)


def built(name: str) -> Algorithm:
    given = {"rounds": 1, "z": None} | SYSTEMS[name]
    rounds, z = given.pop("rounds"), given.pop("z")
    network = mc.Network(gains=asymmetric_network(4, NODES).gains.toarray() * 1e-4, power=0.1)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.4, noise_timing="aligned", rounds=rounds)
    plan = mc.plan(network, saturated(), mc.Budget(epsilon=8.0), schedule, radio=Radio(**given), z=z)
    return mc.power_controlled(plan)


@cache
def attacked(name: str) -> Attacked:
    algorithm, problem = built(name), saturated()
    planted = canaries.draw(algorithm, (TARGET,), DIM, RUNS, 1.0, seed=2)
    prepare = canaries.plant(planted, algorithm)
    kept = transcripts(canaries.planted(algorithm), problem, range(RUNS), "float64", prepare=prepare)
    return Attacked(algorithm, problem, planted, kept)


def seen_by(one: Attacked, observers: tuple[int, ...]) -> View:
    return view(one.algorithm, system_of(one.algorithm.plan), one.kept, observers)


def readings(one: Attacked, seen: View) -> tuple[FloatArray, FloatArray]:
    """[readings, runs, coordinates without a gradient of their own], and their shifts."""
    hidden = np.setdiff1d(np.arange(NODES), seen.observers)
    with jax.enable_x64(True):
        followed = replay(one.algorithm, one.problem, one.planted, hidden, tuple(range(RUNS)))
        heard = listen(one.algorithm, system_of(one.algorithm.plan), seen, followed)
    evidence = heard.about(TARGET, float(one.planted.change[0]))
    return evidence.readings[:, :, 2:], evidence.shift


def deviations(result: FloatArray, shift: FloatArray, one: Attacked) -> FloatArray:
    """How far means, variances and correlations of readings are off, in standard errors."""
    signs = one.planted.signs[0][:, 2:]
    white = (result - shift[:, None, None] * signs / 2).reshape(len(result), -1)
    count = white.shape[1]
    covariance = white @ white.T / count
    off = np.abs(covariance - np.eye(len(white))) * np.sqrt(count / (1 + np.eye(len(white))))
    return np.append(off.ravel(), np.abs(white.mean(axis=1)) * np.sqrt(count))


@pytest.mark.parametrize("observers", [(0,), (2, 4)], ids=str)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SYSTEMS]
)
@pytest.mark.slow
def test_readings_are_white_and_as_far_apart_as_the_diagnostic_says(name: str, observers: tuple[int, ...]) -> None:
    one = attacked(name)
    result, shift = readings(one, seen_by(one, observers))
    mu = observe(one.algorithm.plan).linear_common(observers)[TARGET]
    assert np.linalg.norm(shift) == pytest.approx(mu, rel=1e-6)
    assert 0.1 < mu <= one.algorithm.plan.certificate.mu[TARGET] * (1 + 1e-9)
    assert deviations(result, shift, one).max() < 5


@pytest.mark.slow
def test_an_own_slot_neighbour_learns_nearly_what_is_certified() -> None:
    """It hears the target alone; only what the target hears from others is left. With sums, more is."""
    learnt = []
    for name in ("own slots, fading", "aligned, half duplex"):
        plan = built(name).plan
        neighbours = np.flatnonzero(plan.network.gains.toarray()[TARGET])
        best = max(observe(plan).linear_common((int(node),))[TARGET] for node in neighbours)
        learnt.append(best / plan.certificate.mu[TARGET])
    assert 1.0 + 1e-9 > learnt[0] > 0.7
    assert learnt[0] > learnt[1]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", QUICK)
def test_their_own_signals_in_every_round_are_subtracted(name: str) -> None:
    one = attacked(name)
    seen = seen_by(one, (2, 4))
    for number in range(len(seen.said)):
        said = tuple(part * (place != number) for place, part in enumerate(seen.said))
        result, shift = readings(one, seen._replace(said=said))
        assert deviations(result, shift, one).max() > 10


def test_what_is_not_heard_is_not_used() -> None:
    """Own slots: of a node that no observer hears anything may be sent."""
    one = attacked("own slots, fading")
    gains = one.algorithm.plan.network.gains.toarray()
    observer, silent = next(zip(*np.nonzero((gains.T == 0) & ~np.eye(NODES, dtype=bool)), strict=True))
    spoiled = one.kept._replace(sent=one.kept.sent.copy(), heard=one.kept.heard * np.nan)
    spoiled.sent[:, :, silent] = 1e9
    plain = seen_by(one, (int(observer),))
    other = seen_by(one._replace(kept=spoiled), (int(observer),))
    np.testing.assert_array_equal(plain.received[0], other.received[0])


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.slow
def test_published_models_alone_are_as_far_apart_as_their_covariance_says(name: str) -> None:
    one = attacked(name)
    half_way = canaries.plant(canaries.half_way(one.planted, 400), one.algorithm)
    again = transcripts(
        canaries.planted(one.algorithm), one.problem, range(RUNS, RUNS + 400), "float64", prepare=half_way
    )
    expected = again.published.mean(axis=0)
    holding = read_published(one.algorithm, system_of(one.algorithm.plan), one.kept, expected)
    evidence = holding.about(TARGET, float(one.planted.change[0]))
    result = evidence.readings[:, :, 2:]
    white = result - evidence.shift[:, None, None] * one.planted.signs[0][:, 2:] / 2
    np.testing.assert_allclose(white.var(axis=(1, 2)), 1.0, atol=0.12)
    assert 0.01 < evidence.mu < one.algorithm.plan.certificate.mu[TARGET]


def test_symbols_are_pairs_of_coordinates_and_back() -> None:
    values = np.arange(10.0).reshape(2, 5)
    symbols = as_symbols(values, np.complex128)
    np.testing.assert_array_equal(symbols[0], [0 + 1j, 2 + 3j, 4])
    np.testing.assert_array_equal(as_numbers(symbols, 5), values)
    np.testing.assert_array_equal(as_symbols(values, np.float64), values)
    np.testing.assert_array_equal(as_numbers(values, 5), values)


def test_a_turn_back_leaves_every_coordinate_its_own_canary() -> None:
    rng = np.random.default_rng(3)
    shift, signs = np.array([0.6 * np.exp(2j), 0.0]), rng.choice([-1.0, 1.0], (7, 5))
    heard = shift[:, None, None] * as_symbols(signs, np.complex128)
    result, size = turned(heard, shift, 5)
    np.testing.assert_allclose(result, [0.6 * signs, 0 * signs], atol=1e-12)
    np.testing.assert_allclose(size, [0.6, 0.0])
