"""A radio between the antennas: what it delivers is the matrix form, its draws are public and by epoch alone."""

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.channels import radio_links
from murmurcast.channels.base import Moment, is_over_radio, sums_by_gains
from murmurcast.channels.flood import Flood
from murmurcast.channels.public_draws import PublicDraws, Purpose
from murmurcast.channels.radio_air import RadioAir, quarter_turn
from murmurcast.engine import sharding
from murmurcast.network.graph import Network
from murmurcast.radio.flooding import flood_cost
from murmurcast.radio.physics import Split, physics
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace
from tests.conftest import asymmetric_network

NODES, SEEDS, EPOCHS = 6, 2, 5
ACCESS = ("aligned", "own-slot", "referenced", "digital")
PERFECT: dict[str, Any] = {"noise_figure_db": -400.0, "self_interference_db": 400.0, "duplex": "full"}


def network(nodes: int = NODES) -> Network:
    plain = asymmetric_network(4, nodes)
    return Network(gains=plain.gains * 1e-4, power=0.05 * plain.power)


def channel(dim: int = 4, round_number: int = 0, **settings: Any) -> RadioAir:
    radio, where = Radio(**settings), network()
    rng = np.random.default_rng(2)
    split = Split(rng.uniform(0.2, 0.8, NODES), rng.uniform(0.1, 1.0, (EPOCHS, NODES)), 6, dim, 3.0, 2)
    return RadioAir(where.gains, radio, physics(where, radio, split), round_number, 2)


def said(dim: int) -> FloatArray:
    return np.random.default_rng(1).standard_normal((NODES, SEEDS, dim))


def heard(one: RadioAir | Flood, sent: FloatArray, epoch: int, noise: Any = None) -> FloatArray:
    layout = sharding.layout(NODES, 5, 0)  # by seed: all nodes on one device
    lists = jax.tree.map(jnp.asarray, one.lists(NODES))
    silent = lambda number: jnp.zeros(sent.shape[1:])  # noqa: E731, ARG005
    moment = Moment(jnp.asarray(epoch), jnp.arange(NODES), noise or silent)
    entries, hear = one.deliver(lists, jnp.asarray(sent), moment, layout.exchange)
    return np.asarray(jax.vmap(hear)(entries))


def symbols(values: FloatArray) -> Any:
    padded = np.pad(values, ((0, 0), (0, 0), (0, values.shape[-1] % 2)))
    return padded[..., 0::2] + 1j * padded[..., 1::2]


def parameters(values: Any, dim: int) -> FloatArray:
    return np.stack([values.real, values.imag], axis=-1).reshape(*values.shape[:-1], -1)[..., :dim]


ANALOG = list(product(("aligned", "own-slot", "referenced"), ("none", "iid", "jakes"), (4, 5), (0.0, 2.0)))


@pytest.mark.parametrize(("access", "fading", "dim", "dense_from"), ANALOG)
@pytest.mark.slow
def test_what_is_delivered_is_the_matrix_form(
    access: str, fading: str, dim: int, dense_from: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(radio_links, "_DENSE_FROM", dense_from)
    one = channel(dim, 1, access=access, fading=fading)
    values, epoch = said(dim), 3
    amplitude = one.physics.scale[epoch - 1] * one.physics.amplitude
    weights = one.weights(np.array([epoch]))[0]
    expected = parameters(np.einsum("ij,jsm->ism", weights, symbols(values)), dim)
    result = heard(one, amplitude[:, None, None] * values, epoch)
    np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-5)
    assert np.abs(result - np.einsum("ji,jsm->ism", weights.real, values)).max() > 0.01  # the transposed would be seen


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("access", "duplex"), list(product(ACCESS, ("half", "full"))))
def test_rows_sum_to_one_and_a_common_model_passes(access: str, duplex: str) -> None:
    one = channel(access=access, fading="iid", hold_below=0.0, **(PERFECT | {"duplex": duplex}))
    weights = one.weights(np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(weights.sum(axis=2), 1, atol=2e-6)  # of single precision, as training has it
    assert np.abs(np.diff(weights, axis=0)).max() > 0.01
    common = np.broadcast_to(said(4)[:1], (NODES, SEEDS, 4))
    amplitude = one.physics.scale[0] * one.physics.amplitude
    result = heard(one, amplitude[:, None, None] * common, 1)
    step = 2 * np.abs(common).max() / 63 if access == "digital" else 0.0
    np.testing.assert_allclose(result, common, atol=1e-5 + step)


@pytest.mark.parametrize("access", ["aligned", "own-slot", "referenced"])
def test_receiver_noise_is_what_the_link_budget_says(access: str) -> None:
    one = channel(access=access, duplex="full", pilots=10**9)
    ones = np.ones((NODES, SEEDS, 4))
    with_noise = heard(one, 0 * ones, 2, lambda number: jnp.ones((SEEDS, 4)))  # noqa: ARG005
    at_four_times_the_power = replace(one, gains=one.gains * 2)
    louder = heard(at_four_times_the_power, 0 * ones, 2, lambda number: jnp.ones((SEEDS, 4)))  # noqa: ARG005
    assert (with_noise > 0).all()
    np.testing.assert_allclose(louder, with_noise / 2, rtol=1e-3)
    if access == "aligned":
        tau = np.sqrt(one.physics.noise / 2) / one.physics.scale[1]
        arriving = one.gains.T @ one.physics.amplitude
        np.testing.assert_allclose(
            with_noise[:, 0, 0], tau * np.diff(one.gains.tocsc().indptr) / 6 / arriving, rtol=1e-3
        )


def test_digital_access_has_no_noise_and_rounds_to_so_many_bits() -> None:
    values = said(4)
    fine, rough = (channel(access="digital", bits=bits) for bits in (16, 3))
    amplitude = fine.physics.scale[0] * fine.physics.amplitude
    weights = fine.weights(np.array([1]))[0].real
    expected = np.einsum("ij,jsm->ism", weights, values)
    sent = amplitude[:, None, None] * values
    np.testing.assert_allclose(heard(fine, sent, 1), expected, atol=1e-3)
    off = np.abs(heard(rough, sent, 1) - expected).max()
    assert 0.01 < off < 2 * np.abs(values).max() / 7


@pytest.mark.slow
def test_halves_hear_each_other_only() -> None:
    one = channel(access="referenced", fading="iid", duplex="half", hold_below=0.0)
    weights = one.weights(np.arange(1, EPOCHS + 1))
    links = one.gains.toarray().T > 0
    for epoch, realised in enumerate(weights, start=1):
        draws = PublicDraws(one.radio.seed, (epoch - 1) * one.rounds, np.float32)
        side = np.asarray(draws.coin(Purpose.SIDE, jnp.arange(NODES)))
        np.testing.assert_array_equal((np.abs(realised) > 0) & links, links & (side[:, None] != side[None, :]))
    assert any((np.abs(weights[t]) > 0).sum() != (np.abs(weights[0]) > 0).sum() for t in range(1, EPOCHS))


def test_a_receiver_that_hears_too_little_keeps_its_own() -> None:
    one = channel(access="own-slot", hold_below=1e12)
    np.testing.assert_array_equal(one.weights(np.array([1, 2])), np.broadcast_to(np.eye(NODES), (2, NODES, NODES)))


@pytest.mark.parametrize("access", ["aligned", "own-slot", "referenced"])
@pytest.mark.slow
def test_the_units_of_models_decide_nothing(access: str) -> None:
    """Models and noise a thousand times as large are sent a thousand times as softly; who is heard stays the same."""
    weights = []
    for unit in (1.0, 1000.0):
        radio, where = Radio(access=access, noise_figure_db=65.0, fading="iid"), network()  # type: ignore[arg-type]
        rng = np.random.default_rng(2)
        split = Split(rng.uniform(0.2, 0.8, NODES), unit * rng.uniform(0.1, 1.0, (EPOCHS, NODES)), 6, 4, 3.0 * unit, 2)
        one = RadioAir(where.gains, radio, physics(where, radio, split), 0, 2)
        weights.append(one.weights(np.arange(1, EPOCHS + 1)))
    np.testing.assert_allclose(weights[1], weights[0], atol=2e-5)
    of_links = weights[0][:, network().gains.toarray().T > 0]
    assert 0 < np.count_nonzero(of_links == 0) < of_links.size  # some hold, and not all


@pytest.mark.slow
def test_gains_are_those_of_the_epoch_and_the_two_directions_fade_alike() -> None:
    one = channel(access="own-slot", fading="jakes", speed_mps=30.0, **PERFECT)
    together, apart = one.weights(np.arange(1, EPOCHS + 1)), [one.weights(np.array([t]))[0] for t in (5, 1, 3)]
    np.testing.assert_allclose(apart, together[[4, 0, 2]], atol=1e-6)
    other = replace(one, radio=replace(one.radio, seed=1)).weights(np.array([1]))
    assert np.abs(other - together[:1]).max() > 0.01
    lists = one.lists(NODES)
    pair = {(int(i), int(j)): lists.pair[i, j] for i in range(NODES) for j in range(NODES) if lists.gains[i, j] > 0}
    assert all(pair[i, j] == pair[j, i] for i, j in pair)


@pytest.mark.slow
def test_impairments_do_what_they_are_for() -> None:
    honest = channel(access="aligned", **PERFECT).weights(np.array([1]))[0]
    wrong = channel(access="aligned", compensation_error=0.1, **PERFECT).weights(np.array([1]))[0]
    missed = channel(access="aligned", phase_std=0.5, **PERFECT).weights(np.array([1]))[0]
    turned = channel(access="aligned", cfo=0.3, **PERFECT).weights(np.array([1]))[0]
    np.testing.assert_allclose(honest.sum(axis=1), 1, atol=1e-5)
    assert 0.005 < np.abs(wrong.sum(axis=1) - 1).max() < 0.5
    assert np.abs(missed - honest).max() > 0.01
    assert np.abs(turned.sum(axis=1) - 1).max() > 0.01


@pytest.mark.slow
def test_an_error_of_calibration_stays_and_one_of_compensation_is_new() -> None:
    epochs = np.arange(1, EPOCHS + 1)
    lasting = channel(access="own-slot", calibration_error=0.1, **PERFECT).weights(epochs).sum(axis=2)
    passing = channel(access="own-slot", compensation_error=0.1, **PERFECT).weights(epochs).sum(axis=2)
    np.testing.assert_allclose(lasting, np.broadcast_to(lasting[:1], lasting.shape), atol=1e-6)
    assert 0.005 < np.abs(lasting[0] - 1).max() < 0.5
    assert np.abs(np.diff(lasting[0].real)).min() > 1e-4  # every receiver has its own
    assert np.abs(np.diff(passing, axis=0)).max() > 0.01


TRACED = list(product(ACCESS, (0.0, 2.0)))


def traced(trace: ChannelTrace, repeat: bool = True, round_number: int = 0, **settings: Any) -> RadioAir:
    radio, where = Radio(trace=trace, repeat=repeat, **settings), trace.network(power=0.05 * network().power)
    rng = np.random.default_rng(2)
    split = Split(rng.uniform(0.2, 0.8, NODES), rng.uniform(0.1, 1.0, (EPOCHS, NODES)), 6, 4, 3.0, 2)
    return RadioAir(where.gains, radio, physics(where, radio, split), round_number, 2)


def a_trace(steps: int = 3) -> ChannelTrace:
    """On the links of the network; node 0 hears nobody at the second step, and not node 3 at the third."""
    rng = np.random.default_rng(6)
    gains = network().gains.toarray() * (rng.normal(size=(steps, NODES, NODES, 2)) @ [1, 1j])
    gains[1, :, 0] = gains[2, 3, 0] = 0
    return ChannelTrace(gains=gains)


@pytest.mark.parametrize(("access", "dense_from"), TRACED)
@pytest.mark.slow
def test_a_trace_is_played_back_step_by_step(access: str, dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights by the plain formula, from gains[t - 1][from, to], in both rounds alike, and from the first again."""
    monkeypatch.setattr(radio_links, "_DENSE_FROM", dense_from)
    trace = a_trace()
    quiet = PERFECT | {"hold_below": 0.0, "dither": True}
    rounds = [traced(trace, round_number=number, access=access, **quiet) for number in (0, 1)]
    amplitude = rounds[0].physics.amplitude
    result = rounds[0].weights(np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(result.sum(axis=2), 1, atol=2e-6)
    if access == "referenced":
        assert np.abs(result[0] - rounds[1].weights(np.array([1]))[0]).max() > 0.01  # dither is each round's own
    else:
        for epoch in range(1, EPOCHS + 1):
            arriving = np.abs(trace.at(epoch, repeat=True).T) * amplitude
            heard_now = np.count_nonzero(arriving, axis=1)
            total = np.where(heard_now > 0, arriving.sum(axis=1), 1)
            expected = (heard_now / 6 / total)[:, None] * arriving + np.diag(1 - heard_now / 6)
            np.testing.assert_allclose(result[epoch - 1], expected, atol=2e-6)
        np.testing.assert_array_equal(rounds[1].weights(np.array([2])), result[1:2])
    np.testing.assert_allclose(result[1, 0], np.eye(NODES)[0], atol=1e-6)  # who hears nobody keeps its own
    values = said(4)
    scaled = rounds[0].physics.scale[1] * amplitude
    expected = parameters(np.einsum("ij,jsm->ism", result[1], symbols(values)), 4)
    step = 2 * np.abs(values).max() / 63 if access == "digital" else 0.0
    np.testing.assert_allclose(heard(rounds[0], scaled[:, None, None] * values, 2), expected, atol=1e-4 + step)


def test_amplitudes_without_phases_are_a_trace_too() -> None:
    """The same weights as with phases where every sender is heard alone."""
    trace = a_trace()
    plain = traced(ChannelTrace(gains=np.abs(trace.gains)), **PERFECT)
    np.testing.assert_allclose(
        plain.weights(np.array([1, 3])), traced(trace, **PERFECT).weights(np.array([1, 3])), atol=2e-6
    )


def test_rounds_share_one_array_of_the_trace() -> None:
    trace = a_trace()
    first, second = (traced(trace, round_number=number).lists(NODES) for number in (0, 1))
    assert first.trace is second.trace is trace.by_receiver
    assert np.shares_memory(first.trace, trace.gains)


def test_a_quarter_turn_is_multiplication_by_i() -> None:
    for dim in (4, 5):
        values = said(dim)
        expected = parameters(1j * symbols(values), dim)
        np.testing.assert_allclose(np.asarray(quarter_turn(jnp.asarray(values[0]))), expected[0], rtol=1e-6)


def test_a_flood_gives_all_the_same_numbers_of_node_0() -> None:
    cost = flood_cost(network(), Radio(), 7)
    one, values = Flood(cost), said(7)
    result = heard(one, values, 1)
    np.testing.assert_array_equal(result, np.broadcast_to(result[:1], result.shape))
    np.testing.assert_allclose(result[0], values[0], atol=2 * np.abs(values[0]).max() / 255)
    entries = one.entries()
    assert entries.attributes == {"hops": cost.hops, "bits": 8, "air_seconds": cost.seconds}
    assert not is_over_radio(one)
    assert not sums_by_gains(one)
    np.testing.assert_array_equal(entries.variables["joules"][1], cost.joules)


@pytest.mark.parametrize("access", ACCESS)
def test_what_a_radio_says_of_itself(access: str) -> None:
    one = channel(access=access)
    assert one.carries_as_sent == (access != "digital")
    np.testing.assert_array_equal(one.scale, one.physics.scale)
    assert not sums_by_gains(one)  # its receivers make the mixed point themselves
    assert is_over_radio(one)


def test_the_ledger_knows_the_radio() -> None:
    one = channel(access="referenced", fading="jakes")
    result = one.entries()
    assert '"access": "referenced"' in result.attributes["radio"]
    assert result.attributes["slots"] == one.uses == 2
    assert result.attributes["air_seconds"] > 0
    np.testing.assert_array_equal(result.variables["receiver_noise"][1], one.physics.noise)


def test_no_two_pairs_of_a_large_network_share_a_number() -> None:
    """In 32 bits those of (0, 40000) and (32768, 40000) would be one; on smaller networks numbers stay as they were."""
    ends = np.array([(0, 40000), (32768, 40000), (0, 40000), (1, 2)], np.int32)
    numbers = radio_links._pair_numbers(ends, 2**17)
    assert numbers[0] == numbers[2]
    assert len(set(numbers.tolist())) == 3
    np.testing.assert_array_equal(radio_links._pair_numbers(np.array([(0, 2), (1, 2)]), 7), [2, 9])
