"""What every channel delivers, against plain sums, one-way links included; what it costs, and what it writes down."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.channels import air
from murmurcast.channels.air import Air
from murmurcast.channels.base import Channel, Moment, is_over_radio, sums_by_gains
from murmurcast.channels.links import Links
from murmurcast.channels.server import Server
from murmurcast.channels.silence import Silence
from murmurcast.channels.slots import Slots
from murmurcast.engine import sharding
from tests.algorithms.networks import NODES, one_way, two_way
from tests.conftest import changed

SEEDS, DIM = 2, 4


def no_noise(number: jax.Array) -> jax.Array:
    raise AssertionError(f"no receiver noise was asked for, at {number}")


def heard(channel: Channel, sent: FloatArray, epoch: int = 1, noise: Any = no_noise) -> FloatArray:
    """[nodes, ...] what every node hears."""
    layout = sharding.layout(NODES, 5, 0)  # by seed: all nodes on one device
    lists = jax.tree.map(jnp.asarray, channel.lists(NODES))
    moment = Moment(jnp.asarray(epoch), jnp.arange(NODES), noise)
    entries, hear = channel.deliver(lists, jnp.asarray(sent), moment, layout.exchange)
    return np.asarray(jax.vmap(hear)(entries))


def signals(*lead: int) -> FloatArray:
    return np.random.default_rng(1).standard_normal((NODES, *lead, SEEDS, DIM)).astype(np.float32)


@pytest.mark.parametrize("network", [two_way, one_way])
@pytest.mark.parametrize("dense_from", [0.0, 2.0])
def test_air_sums_what_arrives(
    network: Callable[[], mc.Network], dense_from: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(air, "_DENSE_FROM", dense_from)
    gains, sent = network().gains.toarray(), signals()
    expected = np.einsum("ji,j...->i...", gains, sent)
    np.testing.assert_allclose(heard(Air(network().gains), sent), expected, rtol=1e-5, atol=1e-6)
    assert np.abs(expected - np.einsum("ij,j...->i...", gains, sent)).max() > 0.1  # the transposed would be seen


@pytest.mark.parametrize("dense_from", [0.0, 2.0])
def test_air_varies_its_gains_by_epoch_and_adds_noise(dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def gains_at(epoch: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
        return 1 + epoch * (sender + 10 * receiver) / 100

    monkeypatch.setattr(air, "_DENSE_FROM", dense_from)
    std = np.linspace(0.1, 0.5, NODES)
    channel = Air(one_way().gains, gains_at=gains_at, receiver_noise=std)
    own = signals()

    def noise(number: jax.Array) -> jax.Array:
        return jnp.asarray(own)[number]

    sent = signals() + 1
    sender, receiver = np.arange(NODES)[:, None], np.arange(NODES)[None, :]
    for epoch in (1, 7):
        gains = one_way().gains.toarray() * (1 + epoch * (sender + 10 * receiver) / 100)
        expected = np.einsum("ji,j...->i...", gains, sent) + std[:, None, None] * own
        np.testing.assert_allclose(heard(channel, sent, epoch, noise), expected, rtol=1e-4, atol=1e-5)
    entries = channel.entries()
    assert entries.attributes["gains_at"] == "gains_at"
    np.testing.assert_array_equal(entries.variables["receiver_noise"][1], std)


@pytest.mark.parametrize("network", [two_way, one_way])
def test_links_give_every_neighbour_apart(network: Callable[[], mc.Network]) -> None:
    gains, sent = network().gains.toarray(), signals()
    channel = Links(network().gains)
    result = heard(channel, sent)
    assert result.shape[1] == channel.neighbours == (gains > 0).sum(axis=0).max()
    for receiver in range(NODES):
        senders = np.flatnonzero(gains[:, receiver])
        for place, sender in enumerate(senders):
            np.testing.assert_allclose(result[receiver, place], gains[sender, receiver] * sent[sender], rtol=1e-6)
        np.testing.assert_array_equal(result[receiver, len(senders) :], 0)


@pytest.mark.parametrize("network", [two_way, one_way])
def test_slots_sum_the_signals_made_for_a_receiver(network: Callable[[], mc.Network]) -> None:
    gains = network().gains.toarray()
    channel = Slots(network().gains)
    sent = signals(channel.signals)
    expected = np.zeros((NODES, SEEDS, DIM))
    for sender in range(NODES):
        for slot, receiver in enumerate(np.flatnonzero(gains[sender])):
            expected[receiver] += gains[sender, receiver] * sent[sender, slot]
    np.testing.assert_allclose(heard(channel, sent), expected, rtol=1e-5, atol=1e-6)
    energy = np.asarray(channel.energy(jnp.asarray(sent[0])))
    np.testing.assert_allclose(energy, np.square(sent[0]).sum(axis=-1).max(axis=0), rtol=1e-5)


def test_server_and_silence() -> None:
    sent = signals()
    np.testing.assert_allclose(heard(Server(), sent), np.broadcast_to(sent.sum(axis=0), sent.shape), rtol=1e-5)
    np.testing.assert_array_equal(heard(Silence(), sent), 0)


@pytest.mark.parametrize(
    ("channel", "uses", "on_air"),
    [
        (Air(two_way().gains), 1, True),
        (Slots(two_way().gains), 3, True),
        (Links(two_way().gains), 3, True),
        (Server(), 2, False),
        (Silence(), 0, False),
    ],
)
def test_what_a_channel_says_of_itself(channel: Channel, uses: int, on_air: bool) -> None:
    assert (channel.uses, channel.on_air) == (uses, on_air)
    assert channel.kind == type(channel).__name__.lower()
    variables = channel.entries().variables
    assert set(variables) == ({"sender", "receiver", "gain"} if on_air else set())
    assert sums_by_gains(channel) == (channel.kind == "air")
    assert not is_over_radio(channel)


def ours() -> tuple[Algorithm, mc.Quadratic]:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    plan = mc.plan(two_way(), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=8, step=0.1))
    return mc.power_controlled(plan), problem


@pytest.mark.slow
def test_receiver_noise_is_fresh_in_every_epoch_and_changes_no_promise() -> None:
    algorithm, problem = ours()
    noisy = changed(algorithm, channel=Air(two_way().gains, receiver_noise=np.full(NODES, 0.5)))
    plain, other = (mc.run(one, problem, precision="float64") for one in (algorithm, noisy))
    assert np.abs(plain.published - other.published).max() > 0.01
    np.testing.assert_allclose(mc.certify(other).mu, mc.certify(plain).mu, rtol=1e-12)
    again = mc.run(noisy, problem, precision="float64")
    np.testing.assert_array_equal(again.published, other.published)
