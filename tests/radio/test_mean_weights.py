"""Mean weights of a trace: a loop over the steps that a run plays; random draws where there are phases to draw."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.network.weights import arriving_amplitudes
from murmurcast.radio import combining, divisor
from murmurcast.radio.combining import Pilot
from murmurcast.radio.mean_weights import mean_weights, reception_of
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace
from tests.radio.traces import POWER_DBM, STEPS, gains, left_perron, weights_by_hand

ALPHA = np.array([0.3, 0.6, 0.5, 0.2, 0.7])
TRACE = ChannelTrace(gains=gains())


def network(trace: ChannelTrace = TRACE) -> mc.Network:
    return trace.network(power=mc.Radio(power_dbm=POWER_DBM).power_w)


def amplitude() -> np.ndarray:
    return np.sqrt(ALPHA * network().power)


@pytest.mark.parametrize("access", ["own-slot", "aligned", "digital"])
@pytest.mark.parametrize("epochs", [1, 3, 8])
def test_the_mean_is_over_the_steps_that_are_played(access: str, epochs: int) -> None:
    radio = Radio(access=access, trace=TRACE, repeat=True)  # type: ignore[arg-type]
    outcome = mean_weights(network(), ALPHA, radio, 4, epochs).toarray()
    steps = [weights_by_hand(gains()[epoch % STEPS], amplitude()) for epoch in range(epochs)]
    np.testing.assert_allclose(outcome, np.mean(steps, axis=0), rtol=1e-12)
    turned = [weights_by_hand(gains()[epoch % STEPS].T, amplitude()) for epoch in range(epochs)]
    assert np.abs(outcome - np.mean(turned, axis=0)).max() > 0.01
    assert np.abs(left_perron(outcome) - left_perron(np.mean(turned, axis=0))).max() > 1e-3


def test_steps_in_small_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    radio = Radio(trace=TRACE, repeat=True)
    whole = mean_weights(network(), ALPHA, radio, 4, 8).toarray()
    monkeypatch.setattr("murmurcast.radio.mean_weights._CHUNK", 1)
    np.testing.assert_allclose(mean_weights(network(), ALPHA, radio, 4, 8).toarray(), whole, rtol=1e-14)


@pytest.mark.parametrize("duplex", ["full", "half"])
def test_towards_a_reference_the_mean_is_over_phases_too(duplex: str) -> None:
    """Against the receiver's own formula, with dither and halves drawn by brute force."""
    radio = Radio(access="referenced", duplex=duplex, trace=TRACE)  # type: ignore[arg-type]
    outcome = mean_weights(network(), ALPHA, radio, 4, STEPS).toarray()
    np.testing.assert_allclose(outcome.sum(axis=1), 1, rtol=1e-12)
    rng, draws, share = np.random.default_rng(8), 30_000, 0.5 if duplex == "half" else 1.0
    power = share * np.square(TRACE.rms.T * amplitude()).sum(axis=1)
    expected = np.zeros((5, 5))
    for step in gains():
        arriving = step.T * amplitude() * np.exp(2j * np.pi * rng.random((draws, 1, 5)))
        sides = rng.random((draws, 5)) < 0.5
        linked = (np.abs(step.T) > 0) & ((sides[:, :, None] != sides[:, None, :]) | (duplex == "full"))
        pilot = Pilot(0.0, np.zeros((draws, 5)), np.zeros((draws, 5)))
        result = combining.referenced(arriving, linked, pilot, power, 1.0, 1.0)
        together = result.weights + result.own[..., None] * np.eye(5)
        expected += together.real.mean(axis=0) / STEPS
    np.testing.assert_allclose(outcome, expected, atol=0.012)
    assert np.abs(outcome - expected.T).max() > 0.05


def test_without_a_trace_it_is_the_fading_model() -> None:
    radio = Radio(fading="iid")
    expected = divisor.expected(
        arriving_amplitudes(network(), ALPHA), reception_of(radio, 4), divisor.Channel("iid")
    ).toarray()
    np.testing.assert_array_equal(mean_weights(network(), ALPHA, radio, 4, 9).toarray(), expected)


def test_steps_that_leave_the_network_in_pieces() -> None:
    cut = gains()
    cut[0, :, 4] = cut[0, 4] = 0  # node 4 is alone at the first step
    trace = ChannelTrace(gains=cut)
    assert mean_weights(network(trace), ALPHA, Radio(trace=trace), 4, 2).shape == (5, 5)
    with pytest.raises(Error, match="in the steps of the trace that 1 epochs play") as raised:
        mean_weights(network(trace), ALPHA, Radio(trace=trace), 4, 1)
    assert "more epochs" in raised.value.hint
