"""What one node put on the air is what the run sent, and nothing else."""

from functools import cache

import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.frost import frost
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.overheard import overhear, require_as_recorded
from murmurcast.audits.transcript import transcripts
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from murmurcast.runs.result import Result
from murmurcast.runs.run import run
from tests.conftest import asymmetric_network

NODES, EPOCHS, SEED = 5, 6, 11
PROBLEM = Quadratic.random(NODES, 7, seed=1)


@cache
def planned() -> Plan:
    return plan(asymmetric_network(4, NODES), PROBLEM, Budget(epsilon=5.0), Schedule(epochs=EPOCHS, step=0.3))


@cache
def finished() -> Result:
    return run(power_controlled(planned()), PROBLEM, seeds=(3, SEED))


def test_messages_are_those_of_the_whole_run() -> None:
    algorithm = power_controlled(planned())
    whole = transcripts(algorithm, PROBLEM, (SEED,), "float64")
    found = overhear(algorithm, PROBLEM, seed=SEED, node=3, epochs=range(2, 5), precision="float64")
    assert [(one.epoch, one.name, one.receiver) for one in found.messages] == [(t, "model", None) for t in (2, 3, 4)]
    np.testing.assert_array_equal([one.signal for one in found.messages], whole.sent[0, 1:4, 3])
    np.testing.assert_allclose(found.energy, (whole.sent[0, 1:4, 3] ** 2).sum(axis=1), rtol=1e-6)


def test_every_round_of_an_epoch_is_a_message() -> None:
    algorithm: Algorithm = frost(planned())
    whole = transcripts(algorithm, PROBLEM, (SEED,))
    found = overhear(algorithm, PROBLEM, seed=SEED, node=1, epochs=range(1, 4))
    names = [one.name for one in algorithm.rounds]
    assert len(names) > 1
    assert [one.name for one in found.messages] == names * 3
    by_round = [[one.sent[0, epoch, 1] for one in whole.rounds] for epoch in range(3)]
    np.testing.assert_allclose([one.signal for one in found.messages], np.concatenate(by_round), rtol=1e-6)


def test_a_signal_for_every_receiver_is_a_message_each() -> None:
    algorithm = mped2fl(planned())
    whole = transcripts(algorithm, PROBLEM, (SEED,))
    gains = planned().network.gains.toarray()
    node = int((gains > 0).sum(axis=1).argmin())  # its list is filled up
    found = overhear(algorithm, PROBLEM, seed=SEED, node=node, epochs=range(1, 2))
    assert [one.receiver for one in found.messages] == np.flatnonzero(gains[node]).tolist()
    assert len(found.messages) < whole.sent.shape[3]
    np.testing.assert_allclose([one.signal for one in found.messages], whole.sent[0, 0, node, : len(found.messages)])


def test_a_run_knows_its_own_signals() -> None:
    epochs = range(2, 6)
    for seed, node in ((SEED, 4), (3, 0)):
        found = overhear(power_controlled(planned()), PROBLEM, seed=seed, node=node, epochs=epochs)
        require_as_recorded(finished(), found, seed=seed, node=node, epochs=epochs)
    with pytest.raises(Error, match=r"in epoch 2 node 0 .* are not its signals") as raised:
        require_as_recorded(finished(), found, seed=SEED, node=0, epochs=epochs)
    assert "data of the run" in raised.value.hint


def test_other_data_is_noticed() -> None:
    other = Quadratic.random(NODES, 7, seed=2)
    found = overhear(power_controlled(planned()), other, seed=SEED, node=2, epochs=range(1, EPOCHS + 1))
    with pytest.raises(Error, match="are not its signals"):
        require_as_recorded(finished(), found, seed=SEED, node=2, epochs=range(1, EPOCHS + 1))


@pytest.mark.parametrize(
    ("node", "epochs", "words"),
    [
        (NODES, range(1, 2), "nodes are 0 to 4"),
        (-1, range(1, 2), "node is -1"),
        (0, range(2), "the run has 1 to 6"),
        (0, range(3, EPOCHS + 2), "epochs are 3 to 7"),
        (0, range(4, 4), "the run has 1 to 6"),
        (0, range(1, 6, 2), "the run has 1 to 6"),
    ],
)
def test_what_was_never_sent(node: int, epochs: range, words: str) -> None:
    with pytest.raises(Error, match=words):
        overhear(power_controlled(planned()), PROBLEM, seed=SEED, node=node, epochs=epochs)


def test_secure_noise_is_gone() -> None:
    budget = Budget(epsilon=5.0, noise_source="secure")
    made = plan(asymmetric_network(4, NODES), PROBLEM, budget, Schedule(epochs=EPOCHS, step=0.3))
    with pytest.raises(Error, match="its keys are gone"):
        overhear(power_controlled(made), PROBLEM, seed=SEED, node=0, epochs=range(1, 2), precision="float64")
