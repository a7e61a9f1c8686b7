"""A waveform through the air: with a cyclic prefix, multipath and timing are one complex gain per subcarrier."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from murmurcast.radio import combining
from murmurcast.radio.combining import Pilot

SUBCARRIERS, PREFIX, TAPS = 64, 16, 5
SYMBOL = SUBCARRIERS + PREFIX


class Air(NamedTuple):
    """What lies between the senders and one receiver.

    Attributes:
        taps: [senders, 5] multipath.
        late: [senders] samples by which a sender's signal comes late.
        offset: [senders] carrier frequency against the receiver's, in subcarrier spacings.
    """

    taps: Any
    late: Any
    offset: Any


def air(seed: int, senders: int, offset: float = 0.0) -> Air:
    rng = np.random.default_rng(seed)
    taps = rng.normal(size=(senders, TAPS)) + 1j * rng.normal(size=(senders, TAPS))
    late = rng.integers(0, PREFIX - TAPS + 2, senders)
    return Air(taps * 0.7 ** np.arange(TAPS), late, offset * rng.uniform(-1, 1, senders))


def waveform(symbols: Any) -> Any:
    """[samples] of complex numbers [symbols, subcarriers]: each symbol with its end in front of it."""
    body = np.fft.ifft(symbols, axis=1) * np.sqrt(SUBCARRIERS)
    return np.concatenate([body[:, -PREFIX:], body], axis=1).ravel()


def received(sent: Any, through: Air) -> Any:
    """[symbols, subcarriers] of what all senders sent at once, [senders, symbols, subcarriers]; sample by sample."""
    senders, symbols, _ = sent.shape
    total = np.zeros(symbols * SYMBOL + PREFIX + TAPS, complex)
    for sender in range(senders):
        signal = np.convolve(waveform(sent[sender]), through.taps[sender])
        start = int(through.late[sender])
        total[start : start + len(signal)] += signal * np.exp(
            2j * np.pi * through.offset[sender] * np.arange(start, start + len(signal)) / SUBCARRIERS
        )
    body = total[: symbols * SYMBOL].reshape(symbols, SYMBOL)[:, PREFIX:]
    return np.fft.fft(body, axis=1) / np.sqrt(SUBCARRIERS)


def gains(through: Air) -> Any:
    """[subcarriers, senders] the matrix form: multipath and lateness of a sender on every subcarrier."""
    turned = np.exp(-2j * np.pi * np.outer(np.arange(SUBCARRIERS), through.late) / SUBCARRIERS)
    return np.fft.fft(through.taps, SUBCARRIERS, axis=1).T * turned


def drawn_symbols(seed: int, *shape: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("seed", range(4))
def test_the_waveform_is_the_matrix_form(seed: int) -> None:
    through, sent = air(seed, 5), drawn_symbols(seed, 5, 7, SUBCARRIERS)
    expected = np.einsum("kj,jnk->nk", gains(through), sent)
    np.testing.assert_allclose(received(sent, through), expected, atol=1e-12)


def test_beyond_the_prefix_it_is_not() -> None:
    through, sent = air(0, 5), drawn_symbols(0, 5, 7, SUBCARRIERS)
    through.late[2] = PREFIX
    expected = np.einsum("kj,jnk->nk", gains(through), sent)
    assert np.abs(received(sent, through) - expected).max() > 0.1


def mixed(pilot: Any, heard: Any, own: Any, arriving: Any) -> Any:
    """[symbols, subcarriers] what a receiver makes of it by `referenced` combining, one pilot for each symbol."""
    power = np.square(np.abs(arriving)).sum(axis=1)
    return own + pilot.conj() * (heard - pilot * own) / (np.abs(pilot) ** 2 + power)


def test_a_pilot_in_the_waveform_gives_the_weights_of_the_matrix_form() -> None:
    through, sent, own = air(3, 4), drawn_symbols(3, 4, 6, SUBCARRIERS), drawn_symbols(4, 6, SUBCARRIERS)
    sent[:, 0] = 1.0  # the pilot: the same for all, and free of data
    arriving = gains(through)
    heard = received(sent, through)
    power, zero = np.square(np.abs(arriving)).sum(axis=1), np.zeros(SUBCARRIERS)
    result = combining.referenced(arriving, np.ones(arriving.shape, bool), Pilot(zero, zero, zero), power, 1.0, 1.0)
    expected = np.einsum("kj,jnk->nk", result.weights, sent) + result.own * own
    np.testing.assert_allclose(mixed(heard[0], heard, own, arriving)[1:], expected[1:], atol=1e-12)


def change(offset: float, data_per_pilot: int, seed: int) -> float:
    """By how much a model that all have in common is changed in one epoch, relative to its norm."""
    through, model = air(seed, 8, offset), drawn_symbols(seed, 24, SUBCARRIERS)
    blocks = model.reshape(-1, data_per_pilot, SUBCARRIERS)
    with_pilots = np.concatenate([np.ones((len(blocks), 1, SUBCARRIERS)), blocks], axis=1)
    heard = received(np.broadcast_to(with_pilots.reshape(-1, SUBCARRIERS), (8, with_pilots.size // 64, 64)), through)
    heard = heard.reshape(with_pilots.shape)
    result = mixed(heard[:, :1], heard[:, 1:], blocks, gains(through))
    return float(np.linalg.norm(result - blocks) / np.linalg.norm(blocks))


def test_a_wrong_carrier_changes_a_model_that_all_have_in_common() -> None:
    """So small a change in every epoch adds up against steps that vanish: the common reference must be renewed."""
    assert change(0.0, 4, 0) < 1e-13
    rarely = np.median([change(1e-3, 4, seed) for seed in range(20)])
    often = np.median([change(1e-3, 1, seed) for seed in range(20)])
    assert 0.004 < rarely < 0.016
    assert 0.0015 < often < 0.006
    assert np.median([change(1e-4, 4, seed) for seed in range(20)]) == pytest.approx(rarely / 10, rel=0.05)
