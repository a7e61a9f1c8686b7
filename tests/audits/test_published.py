"""Published models alone: under gradients that do not react, readings are white and the shift is exact."""

import numpy as np
import pytest

from murmurcast.algorithms.base import Publish
from murmurcast.algorithms.observed import system_of
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits import canaries
from murmurcast.audits.published import read_published
from murmurcast.audits.transcript import transcripts
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from tests.audits import faults
from tests.conftest import asymmetric_network

NODES, DIM, RUNS, TARGET = 4, 5, 3000, 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("publish", ["last", "average"])
def test_readings_are_white_and_shifted_by_the_canaries(publish: Publish) -> None:
    curvature = np.zeros((NODES, DIM, DIM))
    curvature[:, 0, 0] = 1.0
    problem = Quadratic(curvature=curvature + 1e-12 * np.eye(DIM), centre=np.full((NODES, DIM), 1e6), clip=0.7)
    schedule = Schedule(epochs=5, step=0.4, noise_timing="aligned", noise_to_step=(3.0, 2.0, 5.0, 2.5))
    built = plan(asymmetric_network(4, NODES), problem, Budget(epsilon=8.0), schedule)
    algorithm = power_controlled(built, publish=publish)
    planted = canaries.draw(algorithm, (TARGET,), DIM, RUNS, 1.0, seed=2)
    prepare = canaries.plant(planted, algorithm)
    kept = transcripts(canaries.planted(algorithm), problem, range(RUNS), "float64", prepare=prepare)
    quiet = canaries.planted(faults.noise_at(algorithm, 0.0))
    half_way = canaries.plant(canaries.half_way(planted, 1), algorithm)
    expected = transcripts(quiet, problem, (0,), "float64", prepare=half_way).published[0]
    readings = read_published(algorithm, system_of(algorithm.plan), kept, expected)
    evidence = readings.about(TARGET, float(planted.change[0]))
    assert 0.1 < evidence.mu < built.certificate.mu[TARGET]
    noise = evidence.readings - evidence.shift[:, None, None] / 2 * planted.signs[0]
    spread = np.cov(noise.reshape(len(noise), -1))
    assert np.abs(spread - np.eye(NODES)).max() < 5 / np.sqrt(RUNS * DIM)
    assert np.abs((noise * planted.signs[0]).mean(axis=(1, 2))).max() < 4.5 / np.sqrt(RUNS * DIM)
