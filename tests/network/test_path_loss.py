"""Path loss in metres and hertz: the table's values, shadowing, and one draw for both directions of a link."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.network.gains import FreeSpace, GainModel, Indoor, LogDistance, Street, Uniform
from murmurcast.network.path_loss import free_space_loss_db, with_carrier

MANY = 200_000
CARRIER = 2.4e9


def loss_db(model: GainModel, metres: float) -> float:
    return float(-20 * np.log10(model.draw(np.random.default_rng(0), 1, np.array([metres]))[0]))


@pytest.mark.parametrize(
    ("model", "metres", "expected"),
    [
        # 20 lg(4 pi d f / c), by hand: 40.052 dB at a metre of 2.4 GHz, 20 dB more for ten times the distance.
        (FreeSpace(carrier_hz=CARRIER), 1.0, 40.0520),
        (FreeSpace(carrier_hz=CARRIER), 10.0, 60.0520),
        (Indoor(carrier_hz=1e9, line_of_sight=True, shadowing=False), 10.0, 49.7),
        (Indoor(carrier_hz=1e9, shadowing=False), 10.0, 55.6),
        (Indoor(carrier_hz=CARRIER, shadowing=False), 30.0, 83.3398),
        (Street(carrier_hz=1e9, line_of_sight=True, shadowing=False), 10.0, 53.4),
        (Street(carrier_hz=1e9, shadowing=False), 100.0, 93.0),
        (Street(carrier_hz=CARRIER, shadowing=False), 200.0, 111.7246),
        # Near by, the line of sight loses more than the formula without it: the larger counts.
        (Indoor(carrier_hz=1e9, shadowing=False), 1.0, 32.4),
        (Street(carrier_hz=1e9, shadowing=False), 1.0, 32.4),
        # Beyond the street's break point, 4 x 9 x 0.5 x f / c = 60.04 m at 1 GHz.
        (Street(carrier_hz=1e9, line_of_sight=True, shadowing=False), 1000.0, 118.5275),
    ],
)
def test_the_formulas(model: GainModel, metres: float, expected: float) -> None:
    assert loss_db(model, metres) == pytest.approx(expected, abs=2e-3)


def test_the_two_slopes_of_a_street_meet() -> None:
    model = Street(line_of_sight=True)
    break_point = 4 * 9 * 0.5 * CARRIER / 299_792_458
    around = model.loss_db(break_point * np.array([1 - 1e-9, 1 + 1e-9]), CARRIER)
    # The table leaves a step of 9.5 lg(1 + (8.5/b)^2).
    assert np.diff(around)[0] == pytest.approx(-9.5 * np.log10(1 + (8.5 / break_point) ** 2), abs=1e-6)
    assert abs(np.diff(around)[0]) < 0.02


def test_typical_links_have_the_signal_to_noise_ratio_of_the_textbook() -> None:
    noise = mc.Radio().noise_w(np.zeros(1))[0]
    for model, metres, expected in (
        (Indoor(carrier_hz=CARRIER, shadowing=False), 30.0, 23.6),
        (Street(carrier_hz=CARRIER, shadowing=False), 200.0, -4.7),
    ):
        assert -loss_db(model, metres) - 30 - 10 * np.log10(noise) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(
    ("model", "spread"),
    [
        (Indoor(carrier_hz=CARRIER), 8.03),
        (Indoor(carrier_hz=CARRIER, line_of_sight=True), 3.0),
        (Street(carrier_hz=CARRIER), 7.82),
        (Street(carrier_hz=CARRIER, line_of_sight=True), 4.0),
    ],
)
def test_shadowing_has_its_spread_around_the_median(model: GainModel, spread: float) -> None:
    drawn = 20 * np.log10(model.draw(np.random.default_rng(0), MANY, np.full(MANY, 20.0)))
    assert drawn.std() == pytest.approx(spread, rel=0.01)
    assert abs(drawn.std() / spread - 1.1) > 0.05  # a spread a tenth larger would be noticed
    still = type(model)(**{**vars(model), "shadowing": False})
    assert np.median(drawn) == pytest.approx(-loss_db(still, 20.0), abs=0.1)


def test_less_than_a_metre_counts_as_a_metre() -> None:
    for model in (FreeSpace(carrier_hz=CARRIER), Indoor(carrier_hz=CARRIER, shadowing=False)):
        assert loss_db(model, 0.0) == loss_db(model, 1.0)


@pytest.mark.parametrize("model", [Indoor(carrier_hz=CARRIER), Street(carrier_hz=CARRIER)])
def test_both_directions_of_a_link_share_a_draw_unless_told_otherwise(model: Indoor | Street) -> None:
    both = mc.topologies.geometric(12, gain=model, seed=4, size_m=50.0).gains.toarray()
    np.testing.assert_array_equal(both, both.T)
    assert len(np.unique(both[both > 0])) == (both > 0).sum() / 2  # and no two links share one
    apart = type(model)(carrier_hz=CARRIER, reciprocal=False)
    one_way = mc.topologies.geometric(12, gain=apart, seed=4, size_m=50.0).gains.toarray()
    assert (one_way[one_way > 0] != one_way.T[one_way > 0]).all()


def test_a_reciprocal_draw_belongs_to_its_pair_and_its_distance() -> None:
    links = [(3, 1), (0, 1), (2, 3), (2, 0)]
    spots = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 100.0], [40.0, 0.0]])
    model = Indoor(carrier_hz=CARRIER, shadowing=False)
    network = mc.Network.from_links(4, links, gain=model, positions=spots)
    for i, j in links:
        metres = float(np.linalg.norm(spots[i] - spots[j]))
        for result in (network.gains[i, j], network.gains[j, i]):
            assert -20 * np.log10(result) == pytest.approx(float(model.loss_db(np.array(metres), CARRIER)))


def test_models_that_are_not_reciprocal_draw_as_they_did() -> None:
    """Each direction on its own, in the order of sender and receiver."""
    network = mc.topologies.ring(5, gain=Uniform(low=0.2, high=0.9), seed=7)
    expected = np.random.default_rng(7).uniform(0.2, 0.9, 10)
    np.testing.assert_array_equal(network.gains.data, expected)


def test_positions_are_in_metres() -> None:
    for make in (mc.topologies.diamond, lambda **given: mc.topologies.ring(6, **given)):
        plain, large = make(seed=2), make(seed=2, size_m=30.0)
        assert plain.positions is not None
        np.testing.assert_array_equal(large.positions, 30 * plain.positions)
        np.testing.assert_array_equal(large.gains.data, plain.gains.data)
    with pytest.raises(Error, match="size_m is 0"):
        mc.topologies.grid(2, 3, size_m=0.0)


def test_log_distance_takes_its_reference_from_free_space() -> None:
    model = LogDistance(exponent=2.0, carrier_hz=CARRIER)
    assert loss_db(model, 25.0) == pytest.approx(float(free_space_loss_db(25.0, CARRIER)))
    assert loss_db(LogDistance(exponent=2.0), 10.0) == pytest.approx(20.0)  # without a carrier as before
    with pytest.raises(Error, match="reference_gain_db"):
        LogDistance(carrier_hz=CARRIER, reference_gain_db=-40.0)


def test_the_radios_carrier_does_not_replace_a_given_one() -> None:
    assert with_carrier(Indoor(), 5e9).carrier_hz == 5e9
    assert with_carrier(Street(carrier_hz=CARRIER), 5e9).carrier_hz == CARRIER


@pytest.mark.parametrize("model", [FreeSpace(), Indoor(), Street()])
def test_positions_and_a_carrier_are_needed(model: GainModel) -> None:
    with pytest.raises(Error, match="need a carrier"):
        model.draw(np.random.default_rng(0), 1, np.ones(1))
    with pytest.raises(Error, match="need positions"):
        model.draw(np.random.default_rng(0), 1, None)
    with pytest.raises(Error, match="expected 1e6 to 1e12"):
        type(model)(carrier_hz=2.4)  # type: ignore[call-arg]
