"""mPED2FL and PED2FL: one amplitude at every receiver, doubly stochastic weights, and noise drawn for every link."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.algorithms.base import Algorithm, State
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.ped2fl import ped2fl
from murmurcast.channels.slots import Slots
from murmurcast.engine import loop, sharding
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from tests.algorithms.test_protocol import NODES, network_of_senders, planned
from tests.conftest import changed


def links(algorithm: Algorithm, table: Any) -> Any:
    """[links] what a table of `Slots` says of the links, in the order of gains.data."""
    channel = algorithm.rounds[0].channel
    assert isinstance(channel, Slots)
    degree = np.diff(channel.gains.indptr)
    return np.concatenate([np.asarray(table)[0, node, :count] for node, count in enumerate(degree)])


def test_mped2fl_arrives_with_one_amplitude_per_receiver() -> None:
    noisy = planned()
    algorithm = mped2fl(replace(noisy, noise_is_automatic=False))  # with the plan's noise, as if it had been given
    sending, receiving = algorithm.rounds[0].sending, algorithm.rounds[0].receiving
    network, normaliser = algorithm.plan.network, algorithm.plan.mixing.normaliser
    gains = network.gains.toarray()
    expected = np.array(
        [min(gains[j, i] * np.sqrt(network.power[j]) for j in range(NODES) if gains[j, i]) for i in range(NODES)]
    )
    csr = network.gains
    receivers, senders = csr.indices, np.repeat(np.arange(NODES), np.diff(csr.indptr))
    arriving = csr.data * links(algorithm, sending.amplitude)
    np.testing.assert_allclose(arriving, expected[receivers], rtol=1e-12)
    np.testing.assert_allclose(receiving.heard[0], 1 / (expected * normaliser), rtol=1e-12)
    # Row and column sums of the weights: doubly stochastic.
    weights = np.diag(receiving.kept[0])
    weights[receivers, senders] = arriving * receiving.heard[0][receivers]
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=1e-12)
    # Power is used up, and the weakest link of every receiver is the one without noise.
    noise = links(algorithm, sending.noise)
    power = links(algorithm, sending.amplitude) ** 2 + (noise / algorithm.plan.noise_to_step[senders]) ** 2
    np.testing.assert_allclose(power, network.power[senders], rtol=1e-12)
    for receiver in range(NODES):
        into = np.flatnonzero(receivers == receiver)
        weakest = into[np.argmin(csr.data[into] * np.sqrt(network.power[senders[into]]))]
        assert noise[weakest] == pytest.approx(0, abs=1e-7)
        assert (np.delete(noise[into], np.flatnonzero(into == weakest)) > 0).all()


def test_mped2fl_draws_noise_for_every_link_by_itself() -> None:
    """Through the engine, from models at zero: what node 1 sends to its first two neighbours."""
    dim = 4000
    gains = np.array([[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]])
    network = Network(gains=gains, power=[1.0, 2.0, 0.5])
    problem = Quadratic(curvature=np.ones((3, 1, 1)), centre=np.zeros((3, 1)))
    wide = _Wide(problem, dim)
    algorithm = mped2fl(plan(network, ClippedGradients(clip=1.0), Budget(epsilon=5.0), Schedule(epochs=3)))
    algorithm = changed(algorithm, update=lambda here, state, sent, heard, local: State(sent[0], sent[1]))  # noqa: ARG005
    layout = sharding.layout(3, 1, 10**9)
    program = loop.program(algorithm, wide, layout, (3,), np.float32)  # type: ignore[arg-type]
    carry = program.advance(program.given, program.start, np.int32(1), np.int32(2))
    sending = algorithm.rounds[0].sending
    expected = sending.noise[0] * sending.schedule[0]
    first, second = (np.asarray(leaf)[:3, 0] for leaf in carry.state)
    np.testing.assert_allclose(np.stack([first, second], axis=1).std(axis=2), expected, rtol=0.05, atol=1e-6)
    noisy = [signal for node in range(3) for signal in (first[node], second[node]) if signal.std() > 1e-6]
    assert len(noisy) == 3  # six links, three of them the weakest of their receiver
    correlation = np.corrcoef(noisy)
    assert np.abs(correlation - np.eye(len(noisy))).max() < 5 / np.sqrt(dim)


class _Wide:
    """A problem with a long model and nothing to learn, so that noise can be told from chance."""

    def __init__(self, problem: Quadratic, dim: int) -> None:
        self.inner, self.shape, self.nodes, self.dim, self.bytes_per_gradient = problem, (dim,), 3, dim, 4
        self.local_data, self.test_data, self.project = problem.local_data, problem.test_data, problem.project
        self.gradient_clip = problem.gradient_clip

    def start(self, key: jax.Array) -> jax.Array:  # noqa: ARG002
        return jnp.zeros(self.dim)

    def evaluate(self, model: jax.Array, test: Any) -> dict[str, jax.Array]:  # noqa: ARG002
        return {"loss": model.sum()}


def test_ped2fl_refuses_gains_that_depend_on_the_receiver() -> None:
    with pytest.raises(Error, match="depend on the sender alone") as raised:
        ped2fl(planned())
    assert "mped2fl" in raised.value.hint


def test_ped2fl_arrives_everywhere_with_one_amplitude() -> None:
    network = network_of_senders()
    algorithm = ped2fl(planned(network))
    sending, receiving = algorithm.rounds[0].sending, algorithm.rounds[0].receiving
    gain = network.gains.toarray().max(axis=1)
    arriving = gain * sending.amplitude[0]
    weakest = (gain * np.sqrt(network.power)).min()
    np.testing.assert_allclose(arriving, weakest, rtol=1e-12)
    assert np.count_nonzero(sending.noise[0] > 1e-7) == NODES - 1
    weights = csr_array(network.gains.T).toarray() * sending.amplitude[0]
    weights = weights * receiving.heard[0][:, None] + np.diag(receiving.kept[0])
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_step_factor_is_above_zero(factor: float) -> None:
    with pytest.raises(Error, match="step_factor is"):
        mped2fl(planned(), step_factor=factor)
