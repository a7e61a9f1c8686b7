"""The link budget: the reference's numbers, closed forms, and what the combining of a round really does."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.weights import mixing
from murmurcast.radio import combining, units
from murmurcast.radio.link_budget import LinkBudget, link_budget
from murmurcast.radio.physics import Split, physics
from murmurcast.radio.settings import AccessName, Duplex, Radio
from tests.radio.reference import instances, require_equal

ONE = instances("units")[0]
EPOCHS, DIM, RADIUS = 6, 501, 3.0
ONE_WAY = Network(gains=[[0, 0.7, 0], [0, 0, 0.9], [0.4, 0, 0]])


def of_reference(**settings: Any) -> LinkBudget:
    given = ONE.inputs
    radio = Radio(power_dbm=given["power_dbm"], **{"pilots": 1, "efficiency": 1.0, **settings})
    return link_budget(
        Network(gains=given["gains"], power=radio.power_w),
        radio,
        alpha=given["alpha"],
        noise_std=given["noise_std"],
        dim=given["dim"],
        radius=given["radius"],
        normaliser=given["normaliser"],
    )


def asymmetric(nodes: int = 7, seed: int = 1) -> Network:
    gain = mc.gains.Indoor(carrier_hz=2.4e9, reciprocal=False)
    power = np.random.default_rng(seed).uniform(0.001, 0.1, nodes)
    return mc.topologies.geometric(nodes, gain=gain, power=power, seed=seed, size_m=120.0)


def budget(network: Network, radio: Radio, seed: int = 0, **changed: Any) -> LinkBudget:
    rng = np.random.default_rng(seed)
    values: dict[str, Any] = {
        "alpha": rng.uniform(0.2, 0.8, network.nodes),
        "noise_std": rng.uniform(0.1, 0.5, (EPOCHS, network.nodes)),
        "dim": DIM,
        "radius": RADIUS,
        "normaliser": int(network.heard_degree.max()) + 1,
    }
    return link_budget(network, radio, **(values | changed))


def test_the_reference() -> None:
    expected = ONE.expected
    result = of_reference(access="aligned")
    require_equal(result.receiver_noise_std, expected["receiver_noise_std"])
    table = np.zeros((4, 4))
    table[result.receiver, result.sender] = result.snr_db
    require_equal(table, expected["snr_db"])
    assert result.symbols[0] == expected["analog_symbols"] + 1
    digital = of_reference(access="digital")
    require_equal(digital.symbols, expected["digital_symbols"])
    assert digital.seconds == pytest.approx(expected["digital_seconds_own_slots"], rel=1e-9)
    require_equal(digital.joules, expected["digital_joules_per_node"])


def test_slots_time_and_energy() -> None:
    network = mc.topologies.complete(10, gain=mc.gains.Constant(value=1e-4), power=0.1)
    cases: list[tuple[AccessName, Duplex, int, int]] = [
        ("aligned", "full", 1, 1),
        ("own-slot", "half", 10, 1),
        ("referenced", "half", 2, 1),
        ("aligned", "half", 10, 9),
    ]
    for access, duplex, slots, sendings in cases:
        radio = Radio(access=access, duplex=duplex, pilots=36, efficiency=0.5)
        result = budget(network, radio, dim=7850, rounds=3)
        assert result.slots == slots
        assert result.uses == pytest.approx(3 * slots * 3961 / 0.5)
        assert result.seconds == pytest.approx(result.uses / 1e6)
        np.testing.assert_allclose(result.joules, 0.1 * 3 * sendings * 3961 / 1e6)
    spent = budget(network, Radio(circuit_watts=2.0, joules_per_gradient=0.5), dim=7850)
    radiated = budget(network, Radio(), dim=7850)
    np.testing.assert_allclose(spent.joules - radiated.joules, 2 * spent.seconds + 0.5)
    assert budget(network, Radio(), dim=7851).symbols[0] == budget(network, Radio(), dim=7852).symbols[0]


def test_doppler_counts_computing_too() -> None:
    network = asymmetric()
    result = budget(network, Radio(speed_mps=3.0, compute_seconds=0.1))
    assert result.doppler_per_epoch == pytest.approx(3 * 2.4e9 / 299_792_458 * (result.seconds + 0.1))


@pytest.mark.parametrize(("access", "times"), [("aligned", 1.0), ("own-slot", 3.0)])
def test_equal_nodes_need_what_the_closed_form_says(access: Any, times: float) -> None:
    """SNR* = (1 + r^2/(m s^2))/R, and as many times more as there are neighbours with slots of their own."""
    network = mc.topologies.complete(4, gain=mc.gains.Constant(value=2e-5), power=0.1)
    noise = np.array([0.5, 0.2, 0.1])[:, None] * np.ones(4)
    result = budget(network, Radio(access=access), alpha=np.full(4, 0.3), noise_std=noise)
    said = 0.7 / 0.3 * noise**2
    expected = times * (1 + RADIUS**2 / (DIM * said)) / 4
    np.testing.assert_allclose(10 ** (result.needed_snr_db / 10), expected)
    share = 1 / (1 + 10 ** ((result.heard_snr_db - result.needed_snr_db) / 10))
    np.testing.assert_allclose(result.receiver_noise_share, share)


def test_half_of_all_noise_is_the_receivers_at_the_needed_ratio() -> None:
    network, radio = asymmetric(), Radio()
    result = budget(network, radio)
    excess = result.heard_snr_db - result.needed_snr_db
    node = 3
    weaker = Network(gains=network.gains / 10 ** (excess[2, node] / 20), power=network.power)
    assert budget(weaker, radio).receiver_noise_share[2, node] == pytest.approx(0.5)


def test_receiver_noise_is_that_of_the_round() -> None:
    """tau and the privacy noise, against the weights that a receiver really forms."""
    network = asymmetric()
    forms: list[tuple[AccessName, Any]] = [("aligned", combining.aligned), ("own-slot", combining.own_slot)]
    for access, form in forms:
        radio = Radio(access=access)
        result = budget(network, radio)
        rng = np.random.default_rng(0)
        alpha, noise = rng.uniform(0.2, 0.8, network.nodes), rng.uniform(0.1, 0.5, (EPOCHS, network.nodes))
        scale = units.public_scale(alpha, noise, DIM, RADIUS)
        arriving = network.gains.T.toarray() * np.sqrt(alpha * network.power) * scale[4]
        wide = (network.nodes, network.nodes) if access == "own-slot" else network.nodes
        exact = combining.Pilot(np.zeros(wide), np.zeros(network.nodes), np.zeros(network.nodes))
        built = form(arriving, arriving > 0, exact, int(network.heard_degree.max()) + 1)
        tau = np.sqrt(radio.noise_w(network.power) / 2) * built.noise
        np.testing.assert_allclose(result.receiver_noise_std[4], tau)
        said = (1 / alpha - 1) * noise[4] ** 2
        variance = built.weights**2 @ said + built.own**2 * said
        np.testing.assert_allclose(result.privacy_noise_std[4] ** 2, variance)


def test_referenced_combining_is_the_mean_over_random_phases() -> None:
    nodes, draws = 14, 4000
    gain = mc.gains.Uniform(low=0.8e-5, high=1.2e-5)
    network = mc.topologies.complete(nodes, gain=gain, power=0.05, seed=3)
    radio = Radio(access="referenced", duplex="full", kappa=0.8, damping=0.7)
    result = budget(network, radio)
    rng = np.random.default_rng(0)
    alpha, noise = rng.uniform(0.2, 0.8, nodes), rng.uniform(0.1, 0.5, (EPOCHS, nodes))
    scale = units.public_scale(alpha, noise, DIM, RADIUS)
    amplitude = network.gains.T.toarray() * np.sqrt(alpha * network.power) * scale[1]
    arriving = amplitude * np.exp(2j * np.pi * rng.uniform(size=(draws, 1, nodes)))
    exact = combining.Pilot(np.zeros(nodes), np.zeros(nodes), np.zeros(nodes))
    built = combining.referenced(arriving, amplitude > 0, exact, (amplitude**2).sum(axis=1), 0.8, 0.7)
    tau = np.sqrt(radio.noise_w(network.power) / 2 * (built.noise**2).mean(axis=0))
    np.testing.assert_allclose(result.receiver_noise_std[1], tau, rtol=0.06)
    said = (1 / alpha - 1) * noise[1] ** 2
    variance = ((np.abs(built.weights) ** 2) @ said + built.own**2 * said).mean(axis=0)
    np.testing.assert_allclose(result.privacy_noise_std[1] ** 2, variance, rtol=0.06)
    halves = budget(network, Radio(access="referenced", kappa=0.8, damping=0.7, self_interference_db=400.0))
    thermal = budget(
        network, Radio(access="referenced", duplex="full", kappa=0.8, damping=0.7, self_interference_db=400.0)
    )
    np.testing.assert_allclose(halves.receiver_noise_std, np.sqrt(2) * thermal.receiver_noise_std)


def test_decoded_links_leave_no_receiver_noise_and_dead_ones_are_refused() -> None:
    network = asymmetric()
    result = budget(network, Radio(access="digital"))
    assert (result.receiver_noise_std == 0).all()
    assert (result.needed_snr_db == -np.inf).all()
    far = Network(gains=network.gains * 1e-12, power=network.power)
    with pytest.raises(Error, match="carries nothing"):
        budget(far, Radio(access="digital"))


def test_the_mixing_rate_is_that_of_the_weights() -> None:
    network = asymmetric()
    alpha = np.random.default_rng(0).uniform(0.2, 0.8, network.nodes)
    resolved = int(network.heard_degree.max()) + 1
    expected = mc.mixing_rate(mixing(network, alpha, resolved).weights).rate
    assert budget(network, Radio()).mixing_rate == pytest.approx(expected)
    ring = mc.topologies.ring(4, gain=mc.gains.Constant(value=1e-4), power=0.1)
    assert budget(ring, Radio(), normaliser=2).mixing_rate is None  # all of its own is given away: periodic
    assert budget(network, Radio()).mean_square_rate is None  # weights stay


def test_where_weights_change_agreement_is_counted_in_the_mean_square_too() -> None:
    network = mc.topologies.complete(6, gain=mc.gains.Uniform(low=0.5e-4, high=1e-4), power=0.1, seed=2)
    for radio in (Radio(access="referenced", duplex="full"), Radio(fading="iid")):
        result = budget(network, radio)
        assert result.mixing_rate is not None
        assert result.mean_square_rate is not None
        # A square shrinks at most as fast as the square of the mean, and here it does shrink.
        assert result.mixing_rate**2 <= result.mean_square_rate * 1.05
        assert result.mean_square_rate < 1
    wild = budget(network, Radio(access="referenced", duplex="full", kappa=8.0))
    assert (wild.mean_square_rate or 0) > 1  # too far towards what is heard


def test_with_further_rounds_receivers_add_what_the_runs_do() -> None:
    """Who sends a mixed point on may be as loud as its loudest neighbour, so that all send with less."""
    network, rng = asymmetric(), np.random.default_rng(0)
    alpha, noise_std = rng.uniform(0.2, 0.8, 7), rng.uniform(0.1, 0.5, (EPOCHS, 7))
    resolved = int(network.heard_degree.max()) + 1
    radio = Radio(power_dbm=units.dbm(network.power))
    for rounds in (1, 2):
        result = budget(network, radio, rounds=rounds)
        sent = physics(network, radio, Split(alpha, noise_std, resolved, DIM, RADIUS, rounds))
        compensation = mixing(network, alpha, resolved).compensation
        one = np.sqrt(sent.noise / 2 * network.heard_degree) / (compensation * resolved)
        np.testing.assert_allclose(result.receiver_noise_std, one / sent.scale[:, None], rtol=1e-12)
    once = budget(network, radio).receiver_noise_std
    assert (budget(network, radio, rounds=2).receiver_noise_std > once * 1.01).all()


def test_four_times_the_power_halves_the_receivers_noise() -> None:
    network = asymmetric()
    louder = Network(gains=network.gains, power=4 * network.power, positions=network.positions)
    listed: tuple[AccessName, ...] = ("aligned", "own-slot", "referenced")
    for access in listed:
        before, after = (budget(one, Radio(access=access)) for one in (network, louder))
        np.testing.assert_allclose(after.receiver_noise_std, before.receiver_noise_std / 2)
        np.testing.assert_allclose(after.needed_snr_db, before.needed_snr_db)
        np.testing.assert_allclose(after.privacy_noise_std, before.privacy_noise_std)


@pytest.mark.parametrize(
    ("network", "settings", "words", "not_said"),
    [
        (mc.topologies.complete(4), {"access": "aligned"}, "leaves 5 conditions", "is a tree"),
        (mc.topologies.diamond(), {"access": "aligned"}, "no known radio does this on this network", "is a tree"),
        (mc.topologies.ring(5), {"access": "aligned"}, "with one odd cycle, only where", "no known radio"),
        (mc.topologies.star(5), {"access": "aligned"}, "the network is a tree", "no known radio"),
        (ONE_WAY, {"access": "aligned"}, "where links go one way only", "is a tree"),
        (mc.topologies.ring(5), {"access": "aligned", "duplex": "full"}, "(full duplex)", "half duplex"),
        (mc.topologies.ring(5), {}, "(half duplex): a round takes 5 slots", "full duplex"),
        (mc.topologies.ring(5), {}, "heard alone", "Phases"),
        (mc.topologies.ring(5), {"access": "referenced"}, "random and complex", "heard alone"),
        (mc.topologies.ring(5), {"access": "digital", "bits": 4}, "4 bits", "pilot symbols"),
        (mc.topologies.ring(5), {"fading": "iid"}, "freezes at the gains of the first epochs", "Phases"),
        (mc.topologies.ring(5), {"pilots": 8}, "8 pilot symbols, and not exactly, and such errors add up", "freezes"),
        (mc.topologies.ring(5), {"recentre_every": 20}, "and not exactly.", "add up (set"),
    ],
)
def test_departures_are_said(network: Network, settings: dict[str, Any], words: str, not_said: str) -> None:
    text = " ".join(budget(network, Radio(**settings)).departures)
    assert words in text
    assert not_said not in text
    assert "never counted for privacy" in text
