"""mPED2FL, PED2FL and DWFL with headroom: noise by an explicit loop, and when anything is promised."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.errors import Infeasible
from murmurcast.privacy.conversion import mu_of
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, plan_of, setup_of, words_of
from tests.algorithms.networks import NODES, POWER, two_way
from tests.conftest import changed

BY_SENDER = np.array([0.9, 0.5, 0.7, 1.1, 0.6])
HEARD: dict[str, Any] = {"headroom": 0.7, "publish_from": "heard"}


def network_of(name: str) -> mc.Network:
    if name == "mped2fl":
        return two_way()
    links = 1 - np.eye(NODES) if name == "dwfl" else two_way().gains.toarray() > 0
    return mc.Network(gains=BY_SENDER[:, None] * links, power=POWER)


def make(name: str, setup: dict[str, Any] | None = None, **options: Any) -> Algorithm:
    network, given = network_of(name), setup or {}
    if name == "dwfl":
        return mc.dwfl(setup_of(network, **given), **options)
    factory: Callable[..., Algorithm] = {"mped2fl": mc.mped2fl, "ped2fl": mc.ped2fl}[name]
    return factory(plan_of(network, **given), **options)


def hidden_by(name: str, headroom: float) -> FloatArray:
    """[nodes] the sum over a node's signals of alpha/(1 - alpha), each by its own share of power."""
    network = network_of(name)
    gains = network.gains.toarray()
    arriving = gains * np.sqrt(network.power)[:, None]
    result = np.zeros(NODES)
    for sender in range(NODES):
        for receiver in np.flatnonzero(gains[sender]):
            heard = arriving[:, receiver] if name == "mped2fl" else arriving
            alpha = (headroom * heard[heard > 0].min() / arriving[sender, receiver]) ** 2
            result[sender] += alpha / (1 - alpha)
            if name != "mped2fl":
                break  # one signal serves all
    return result


def own_weight(name: str, rate: float) -> FloatArray:
    degree = network_of(name).degree
    return np.full(NODES, 1 - rate) if name == "dwfl" else np.asarray(1 - degree / (degree.max() + 1))


def memory_by_hand(name: str, record: bool, smoothness: float, rate: float) -> FloatArray:
    """[nodes] sqrt(sum over t of (d_t/std_t)^2), the difference followed epoch by epoch, gradient by gradient."""
    total = np.zeros(NODES)
    for node, weight in enumerate(own_weight(name, rate)):
        moves, difference = 2 * CLIP / (EXAMPLES[node] if record else 1), 0.0
        for epoch in range(1, EPOCHS + 1):
            newest = epoch if name == "dwfl" else epoch - 1  # DWFL steps before it sends
            if newest:
                seen = 0.0 if difference == 0 else smoothness * weight * difference
                difference = weight * difference + 0.2 / np.sqrt(newest) * min(2 * CLIP, moves + seen)
            total[node] += (difference / (0.2 / np.sqrt(max(epoch - 1, 1)))) ** 2
    return np.sqrt(total)


@pytest.mark.parametrize("smoothness", [np.inf, 0.0, 2.0])
@pytest.mark.parametrize("unit", ["node", "record"])
@pytest.mark.parametrize("name", ["mped2fl", "ped2fl", "dwfl"])
def test_noise_is_that_of_the_memory_followed_by_hand(name: str, unit: str, smoothness: float) -> None:
    options = {"rate": 0.6} if name == "dwfl" else {}
    algorithm = make(name, {"unit": unit}, smoothness=smoothness, **HEARD, **options)
    hidden = hidden_by(name, 0.7)
    unit_cost = memory_by_hand(name, unit == "record", smoothness, 0.6) * np.sqrt(hidden)
    (part,) = algorithm.releases
    np.testing.assert_allclose(mu_of(part), allowed_mu(), rtol=1e-9)
    expected = unit_cost / allowed_mu()
    sending = algorithm.rounds[0].sending
    if name != "mped2fl":
        noise = np.sqrt(POWER - sending.amplitude[0] ** 2) * expected
        np.testing.assert_allclose(sending.noise[0], noise, rtol=1e-9)
        return
    for sender in range(NODES):
        loud = sending.amplitude[0, sender][: len(network_of(name).neighbours(sender))]
        noise = np.sqrt(POWER[sender] - loud**2) * expected[sender]
        np.testing.assert_allclose(sending.noise[0, sender, : len(loud)], noise, rtol=1e-9)


@pytest.mark.parametrize("name", ["mped2fl", "ped2fl", "dwfl"])
@pytest.mark.parametrize("headroom", [1.0, 0.7])
@pytest.mark.parametrize("publish_from", ["mixed", "heard"])
def test_something_is_promised_only_with_headroom_and_what_was_heard(
    name: str, headroom: float, publish_from: str
) -> None:
    algorithm = make(name, headroom=headroom, publish_from=publish_from)
    promised = headroom < 1 and publish_from == "heard"
    assert bool(algorithm.releases) == promised
    assert algorithm.is_as_proved == promised
    sending = algorithm.rounds[0].sending
    assert (sending.noise[sending.amplitude > 0] == 0).any() == (headroom == 1)
    assert algorithm.settings["headroom"] == headroom
    assert algorithm.settings["publish_from"] == publish_from
    assert "smoothness" not in algorithm.settings
    if promised:
        assert changed(algorithm, send=lambda *_: None).has_lost_its_proof


@pytest.mark.parametrize("name", ["mped2fl", "ped2fl", "dwfl"])
def test_headroom_lowers_what_arrives_and_nothing_else(name: str) -> None:
    full, less = (make(name, headroom=headroom).rounds[0] for headroom in (1.0, 0.5))
    np.testing.assert_allclose(less.sending.amplitude, full.sending.amplitude / 2, rtol=1e-12)
    np.testing.assert_allclose(less.receiving.heard, full.receiving.heard * 2, rtol=1e-12)
    np.testing.assert_array_equal(less.receiving.kept, full.receiving.kept)


@pytest.mark.parametrize("name", ["mped2fl", "ped2fl", "dwfl"])
def test_a_known_smoothness_is_said_and_never_costs_more(name: str) -> None:
    unknown, known = (make(name, {"unit": "record"}, smoothness=value, **HEARD) for value in (np.inf, 0.5))
    assert known.settings["smoothness"] == 0.5
    before, after = (np.asarray(one.rounds[0].sending.noise) for one in (unknown, known))
    assert (after <= before).all()
    assert after.sum() < 0.9 * before.sum()


@pytest.mark.parametrize(
    ("name", "draws", "kind", "uses"),
    [("mped2fl", "link", "slots", 3), ("ped2fl", "node", "air", 1), ("dwfl", "node", "air", 1)],
)
def test_channel_and_words(name: str, draws: str, kind: str, uses: int) -> None:
    algorithm = make(name)
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": f"noise: normal of a {draws}"}
    assert algorithm.channel_uses == uses


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("mped2fl", {"headroom": 0}, "headroom is 0, expected above 0, at most 1", "as published"),
    ("mped2fl", {"headroom": 1.1}, "headroom is 1.1", "0.7 leaves noise"),
    ("ped2fl", {"headroom": -0.5}, "headroom is -0.5", "0.7 leaves noise"),
    ("ped2fl", {"publish_from": "herd"}, 'publish_from is "herd"', 'did you mean "heard"'),
    ("dwfl", {"headroom": 2}, "headroom is 2", "as published"),
    ("dwfl", {"rate": 2}, "rate is 2", "a rate of 0 to 1"),
    ("dwfl", {"rate": -0.1}, "rate is -0.1", "a rate of 0 to 1"),
    ("dwfl", {"receiver_noise": -1}, "receiver_noise -1", "noise of 0 or more"),
    ("dwfl", {"step_factor": 0}, "step_factor is 0", "above 0"),
    ("dwfl", {"smoothness": -1.0}, "smoothness is -1", "leave it out"),
    ("mped2fl", {"gradient_at": "midxed"}, 'gradient_at is "midxed"', 'did you mean "mixed"'),
]


@pytest.mark.parametrize(("name", "options", "words", "hint"), BAD, ids=[f"{one[0]} {one[1]}" for one in BAD])
def test_bad_options_are_refused(name: str, options: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        make(name, **options)
    assert hint in raised.value.hint


def test_dwfl_moves_by_uniform_averaging_unless_a_rate_is_given() -> None:
    default, given = make("dwfl"), make("dwfl", rate=0.6)
    assert (default.settings["rate"], given.settings["rate"]) == (0.8, 0.6)
    np.testing.assert_allclose(default.rounds[0].receiving.kept, 0.2, rtol=1e-12)
    np.testing.assert_allclose(given.rounds[0].receiving.kept, 0.4, rtol=1e-12)
    weakest = (BY_SENDER * np.sqrt(POWER)).min()
    np.testing.assert_allclose(given.rounds[0].receiving.heard, 0.6 / (weakest * 4), rtol=1e-12)
    with pytest.raises(mc.Error, match="complete network") as raised:
        mc.dwfl(setup_of())
    assert '"mped2fl"' in raised.value.hint


def test_dwfl_refuses_given_noise_that_is_too_little() -> None:
    with pytest.raises(Infeasible, match="costs node") as raised:
        make("dwfl", {"noise_to_step": 0.1}, **HEARD)
    tried = make("dwfl", {"noise_to_step": 0.1, "epsilon": raised.value.smallest_epsilon}, **HEARD)
    assert tried.is_as_proved
    expected = np.sqrt(POWER - tried.rounds[0].sending.amplitude[0] ** 2) * 0.1
    np.testing.assert_allclose(tried.rounds[0].sending.noise[0], expected, rtol=1e-12)
