"""A channel over time: what is checked, how long it lasts, and the network it comes to."""

from pathlib import Path

import numpy as np
import pytest

from murmurcast.errors import Error, NotConnected
from murmurcast.radio.channel_files import read_channel
from murmurcast.radio.trace import ChannelTrace


def made_up(steps: int = 4, nodes: int = 3, blocks: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(5)
    shape = (steps, nodes, nodes, *(() if blocks is None else (blocks,)))
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


def test_gains_stay_in_the_order_from_to_and_the_diagonal_is_dropped() -> None:
    given = made_up()
    given[2, 1, 1] = np.nan  # what a node hears of itself may be anything
    trace = ChannelTrace(gains=given)
    assert (trace.steps, trace.nodes, trace.blocks) == (4, 3, 1)
    assert trace.gains[3, 0, 2] == given[3, 0, 2]
    assert trace.gains[3, 2, 0] == given[3, 2, 0] != given[3, 0, 2]
    assert not np.einsum("tii->ti", trace.gains).any()
    assert np.isnan(given[2, 1, 1])


def test_views_of_the_same_numbers() -> None:
    given = made_up()
    trace = ChannelTrace(gains=given)
    assert trace.by_receiver[2, 3, 0] == given[3, 0, 2]
    assert np.shares_memory(trace.by_receiver, trace.gains)
    np.testing.assert_allclose(trace.rms[0, 2], np.sqrt(np.mean(np.abs(given[:, 0, 2]) ** 2)), rtol=1e-12)
    assert trace.rms[0, 2] != trace.rms[2, 0]


def test_the_fingerprint_is_that_of_the_gains() -> None:
    one = ChannelTrace(gains=made_up(), positions=np.zeros((3, 2)))
    assert one.sha256 == ChannelTrace(gains=made_up(), interval_s=0.1).sha256
    assert one.sha256 != ChannelTrace(gains=made_up().swapaxes(1, 2)).sha256
    assert len(one.sha256) == 64


@pytest.mark.parametrize(
    ("epochs", "expected"), [(2, [1, 1]), (4, [1, 1, 1, 1]), (5, [2, 1, 1, 1]), (12, [3, 3, 3, 3])]
)
def test_how_often_steps_are_played(epochs: int, expected: list[int]) -> None:
    assert ChannelTrace(gains=made_up()).times_played(epochs).tolist() == expected


def test_nothing_in_it_can_be_changed() -> None:
    trace = ChannelTrace(gains=made_up(), positions=np.zeros((3, 3)))
    assert trace.positions is not None
    for array in (trace.gains, trace.positions, trace.at(2)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        trace.carrier_hz = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (made_up()[0], "no time axis"),
        (made_up()[None, None], "1 x 1 x 4 x 3 x 3"),
        (made_up()[:, :2], "4 x 2 x 3"),
        (made_up()[:, :1, :1], "2 nodes"),
        (made_up()[:0], "0 x 3 x 3"),
        (np.where(np.arange(36).reshape(4, 3, 3) == 11, np.nan, 1.0), r"gains\[1, 0, 2\] is not a finite"),
        (np.where(np.arange(36).reshape(4, 3, 3) == 11, 1e31, 1.0), r"gains\[1, 0, 2\] is above 1e\+30"),
        (np.full((1, 2, 2), 1e308 * (1 + 1j)), "above"),
        ([[["a"]]], "not numbers"),
        ([[1.0], [1.0, 2.0]], "not an array"),
        (np.broadcast_to(1.0, (2**14, 100, 100)), "16384 x 100 x 100 gains, more than"),
    ],
)
def test_gains_that_are_none(gains: object, words: str) -> None:
    with pytest.raises(Error, match=words) as raised:
        ChannelTrace(gains=gains)  # type: ignore[arg-type]
    assert raised.value.hint


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"carrier_hz": 0.0}, "carrier_hz"),
        ({"interval_s": float("nan")}, "interval_s"),
        ({"interval_s": [0.1, 0.2]}, "interval_s is not one number"),
        ({"carrier_hz": "fast"}, "carrier_hz must be numeric"),
        ({"positions": np.zeros((3, 4))}, "3 x 2 or 3 x 3"),
        ({"positions": [[0.0, np.inf]] * 3}, "finite"),
        ({"positions": "here"}, "numeric"),
        ({"velocity": 3.0}, "no argument velocity"),
    ],
)
def test_what_stands_beside_the_gains_is_checked(more: dict[str, object], words: str) -> None:
    with pytest.raises(Error, match=words):
        ChannelTrace(gains=made_up(), **more)  # type: ignore[arg-type]


def test_every_epoch_takes_one_step() -> None:
    trace = ChannelTrace(gains=made_up(blocks=2))
    np.testing.assert_array_equal(trace.at(1), trace.gains[0])
    np.testing.assert_array_equal(trace.at(4), trace.gains[3])
    np.testing.assert_array_equal(trace.at(5, repeat=True), trace.gains[0])
    assert trace.at(1).shape == (3, 3, 2)
    assert trace.blocks == 2


def test_a_channel_that_ends_before_the_run_is_refused_unless_it_repeats() -> None:
    trace = ChannelTrace(gains=made_up())
    trace.require(4)
    trace.require(400, repeat=True)
    for ask in (lambda: trace.require(9), lambda: trace.at(9)):
        with pytest.raises(Error, match="ends with epoch 4, and epoch 9 is asked for") as raised:
            ask()
        assert "repeat = true" in raised.value.hint
    for wrong in (0, -1, 1.5):
        with pytest.raises(Error, match="epoch"):
            trace.at(wrong)  # type: ignore[arg-type]


def test_the_network_has_the_rms_of_every_link_that_is_ever_heard() -> None:
    given = made_up(blocks=2)
    given[:, 0, 2] = 0
    given[1:, 2, 1] = 0
    network = ChannelTrace(gains=given, positions=[[0, 0, 2], [3, 0, 2], [0, 4, 1]]).network(power=[1.0, 2.0, 3.0])
    expected = np.sqrt((np.abs(given) ** 2).mean(axis=(0, 3))) * (1 - np.eye(3))
    np.testing.assert_allclose(network.gains.toarray(), expected, rtol=1e-12)
    assert network.gains.nnz == 5
    assert network.power.tolist() == [1, 2, 3]
    assert network.positions is not None
    assert network.positions.tolist() == [[0, 0], [3, 0], [0, 4]]


def test_extremely_weak_gains_do_not_vanish_in_their_squares() -> None:
    weak = np.full((3, 2, 2), 1e-25) * np.array([1, 0, 2]).reshape(3, 1, 1)
    rms = ChannelTrace(gains=weak).network().gains.toarray()
    np.testing.assert_allclose(rms, 1e-25 * np.sqrt(5 / 3) * (1 - np.eye(2)), rtol=1e-12)
    with pytest.raises(Error, match="outside 1e-30"):
        ChannelTrace(gains=weak * 1e-140).network()


def test_nodes_that_never_hear_each_other_are_no_network() -> None:
    with pytest.raises(NotConnected):
        ChannelTrace(gains=np.zeros((2, 3, 3))).network()


def test_phases() -> None:
    amplitudes = np.abs(made_up())
    assert not ChannelTrace(gains=amplitudes).has_phases
    assert ChannelTrace(gains=-amplitudes).has_phases
    assert ChannelTrace(gains=made_up()).has_phases


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    trace = ChannelTrace(gains=made_up(blocks=3), positions=np.eye(3), carrier_hz=2.4e9, interval_s=0.01)
    trace.save(tmp_path / "whole.npz")
    result = read_channel(tmp_path / "whole.npz")
    np.testing.assert_array_equal(result.gains, trace.gains)
    np.testing.assert_array_equal(result.positions, np.eye(3))
    assert (result.carrier_hz, result.interval_s) == (2.4e9, 0.01)
    ChannelTrace(gains=made_up()).save(tmp_path / "bare.npz")
    bare = read_channel(tmp_path / "bare.npz")
    assert (bare.positions, bare.carrier_hz, bare.interval_s) == (None, None, None)
    with pytest.raises(Error, match=r"end it in \.npz|not the name"):
        trace.save(tmp_path / "channel.csv")
