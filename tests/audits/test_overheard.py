"""What one node put on the air is what the run sent, and nothing else."""

from functools import cache

import jax
import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.frost import frost
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.overheard import overhear, require_as_recorded
from murmurcast.audits.transcript import transcripts
from murmurcast.channels.radio_air import RadioAir
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Built
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from murmurcast.runs.record import Precision
from murmurcast.runs.result import Result
from murmurcast.runs.run import run
from tests.conftest import asymmetric_network

NODES, EPOCHS, SEED = 5, 6, 11
OVER_RADIO = """
[network]
gains = [[0, 1e-4, 4e-5], [5e-5, 0, 7e-5], [6e-5, 8e-5, 0]]
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 5
radius = 2.0
[schedule]
epochs = 4
rounds = 2
[radio]
power_dbm = [10.0, 20.0, 17.0]
duplex = "full"
access = """
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
    outcome = overhear(algorithm, PROBLEM, seed=SEED, node=3, epochs=range(2, 5), precision="float64")
    assert [(one.epoch, one.name, one.receiver) for one in outcome.messages] == [(t, "model", None) for t in (2, 3, 4)]
    np.testing.assert_array_equal([one.signal for one in outcome.messages], whole.sent[0, 1:4, 3])
    assert {(one.pilot, one.turn) for one in outcome.messages} == {(np.sqrt(planned().network.power[3]), 1.0)}
    np.testing.assert_allclose(outcome.energy, (whole.sent[0, 1:4, 3] ** 2).sum(axis=1), rtol=1e-6)


def test_every_round_of_an_epoch_is_a_message() -> None:
    algorithm: Algorithm = frost(planned())
    whole = transcripts(algorithm, PROBLEM, (SEED,))
    outcome = overhear(algorithm, PROBLEM, seed=SEED, node=1, epochs=range(1, 4))
    names = [one.name for one in algorithm.rounds]
    assert len(names) > 1
    assert [one.name for one in outcome.messages] == names * 3
    by_round = [[one.sent[0, epoch, 1] for one in whole.rounds] for epoch in range(3)]
    np.testing.assert_allclose([one.signal for one in outcome.messages], np.concatenate(by_round), rtol=1e-6)


def test_a_signal_for_every_receiver_is_a_message_each() -> None:
    algorithm = mped2fl(planned())
    whole = transcripts(algorithm, PROBLEM, (SEED,))
    gains = planned().network.gains.toarray()
    node = int((gains > 0).sum(axis=1).argmin())  # its list is filled up
    outcome = overhear(algorithm, PROBLEM, seed=SEED, node=node, epochs=range(1, 2))
    assert [one.receiver for one in outcome.messages] == np.flatnonzero(gains[node]).tolist()
    assert len(outcome.messages) < whole.sent.shape[3]
    np.testing.assert_allclose(
        [one.signal for one in outcome.messages], whole.sent[0, 0, node, : len(outcome.messages)]
    )


def test_a_run_knows_its_own_signals() -> None:
    epochs = range(2, 6)
    for seed, node in ((SEED, 4), (3, 0)):
        outcome = overhear(power_controlled(planned()), PROBLEM, seed=seed, node=node, epochs=epochs)
        require_as_recorded(finished(), outcome, seed=seed, node=node, epochs=epochs)
    with pytest.raises(Error, match=r"in epoch 2 node 0 .* are not its signals") as raised:
        require_as_recorded(finished(), outcome, seed=SEED, node=0, epochs=epochs)
    assert "data of the run" in raised.value.hint


def test_other_data_is_noticed() -> None:
    other = Quadratic.random(NODES, 7, seed=2)
    outcome = overhear(power_controlled(planned()), other, seed=SEED, node=2, epochs=range(1, EPOCHS + 1))
    with pytest.raises(Error, match="are not its signals"):
        require_as_recorded(finished(), outcome, seed=SEED, node=2, epochs=range(1, EPOCHS + 1))


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


def over_radio(access: str) -> Built:
    return experiment_files.parse(f'{OVER_RADIO}"{access}"'.encode(), "radio.toml").build()


def channels(algorithm: Algorithm) -> list[RadioAir]:
    outcome = [one.channel for one in algorithm.rounds if isinstance(one.channel, RadioAir)]
    assert len(outcome) == len(algorithm.rounds) == 2
    return outcome


@pytest.mark.slow
def test_pilots_of_a_radio_are_as_loud_as_the_loudest_node_has_room_for() -> None:
    problem, algorithm = over_radio("own-slot")
    power = algorithm.setup.network.power
    share = np.array(
        [
            [[channel.pilot_amplitude(epoch, node) for node in range(3)] for channel in channels(algorithm)]
            for epoch in range(1, 5)
        ]
    )
    share = share**2 / power
    np.testing.assert_allclose(share.max(axis=-1), 1, rtol=1e-6)
    assert share.min() > 0
    outcome = overhear(algorithm, problem, seed=SEED, node=1, epochs=range(2, 5))
    np.testing.assert_allclose(
        [one.pilot**2 / power[1] for one in outcome.messages], share[1:, :, 1].ravel(), rtol=1e-6
    )
    assert {one.turn for one in outcome.messages} == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_public_turn_of_phase_is_the_one_that_receivers_hear(precision: Precision) -> None:
    """How the weights of two senders at one receiver turn against each other from one epoch to the next."""
    problem, algorithm = over_radio("referenced")
    epochs = range(1, 5)
    with jax.enable_x64(precision == "float64"):
        for channel in channels(algorithm):
            turns = np.array([[channel.turn(epoch, node, precision) for node in range(3)] for epoch in epochs])
            np.testing.assert_allclose(np.abs(turns), 1, rtol=1e-6)
            assert len(np.unique(turns.round(6))) == turns.size
            weights = channel.weights(np.array(epochs))
            at_0, expected = weights[:, 0, 1] / weights[:, 0, 2], turns[:, 1] / turns[:, 2]
            np.testing.assert_allclose(at_0 / at_0[0], expected / expected[0], rtol=1e-4)
    outcome = overhear(algorithm, problem, seed=SEED, node=1, epochs=epochs, precision=precision)
    np.testing.assert_allclose([one.turn for one in outcome.messages[1::2]], turns[:, 1], rtol=1e-6)


def test_bits_have_no_waveform() -> None:
    problem, algorithm = over_radio("digital")
    with pytest.raises(Error, match="send coded bits"):
        overhear(algorithm, problem, seed=SEED, node=0, epochs=range(1, 2))


def test_secure_noise_is_gone() -> None:
    budget = Budget(epsilon=5.0, noise_source="secure")
    built = plan(asymmetric_network(4, NODES), PROBLEM, budget, Schedule(epochs=EPOCHS, step=0.3))
    with pytest.raises(Error, match="its keys are gone"):
        overhear(power_controlled(built), PROBLEM, seed=SEED, node=0, epochs=range(1, 2), precision="float64")
