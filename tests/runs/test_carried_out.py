"""What a setup asks for and a method does not do is refused before anything is trained."""

from typing import Any

import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.runs.require import require_carried_out, require_planned_for
from tests.runs.over_radio import DIM, NODES, problem, radio, setup

OVER_RADIO = {"power-controlled", "noiseless"}
NOT_ON_AIR = {"local-only", "central-dp"}
NAMES = sorted(set(registry.NAMES) - {"ped2fl", "dwfl"})  # these two need other gains than this network's


def learnt(name: str) -> mc.Quadratic:
    """A radio needs a ball for models, and many methods know no way back into one."""
    return problem() if name in OVER_RADIO else mc.Quadratic.random(NODES, DIM, seed=1)


def built(name: str, carrying: mc.Radio | None, rounds: int = 1) -> Algorithm:
    algorithm: Algorithm = registry.find(name).make(setup(carrying, rounds, learnt(name)))
    return algorithm


@pytest.mark.parametrize("name", NAMES)
def test_only_methods_made_for_it_send_over_a_radio(name: str) -> None:
    if name in OVER_RADIO | NOT_ON_AIR:
        require_planned_for(built(name, radio()), learnt(name))
        return
    with pytest.raises(mc.Error, match=r"radio") as raised:
        require_planned_for(built(name, radio()), learnt(name))
    assert "power-controlled" in raised.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_only_methods_that_have_them_are_given_further_rounds(name: str) -> None:
    require_carried_out(built(name, None))
    if name in OVER_RADIO | NOT_ON_AIR:
        require_carried_out(built(name, None, rounds=2))
        return
    with pytest.raises(mc.Error, match=r"rounds") as raised:
        require_carried_out(built(name, None, rounds=2))
    assert "schedule.rounds = 1" in raised.value.hint


def test_two_rounds_of_its_own_are_not_mixing_rounds() -> None:
    """push-pull has two rounds whatever the schedule says."""
    algorithm = built("push-pull", None, rounds=2)
    assert len(algorithm.rounds) == 2
    with pytest.raises(mc.Error, match=r"schedule\.rounds is 2, and push-pull has no further mixing rounds"):
        mc.run(algorithm, learnt("push-pull"))


def test_a_run_says_so_before_it_begins() -> None:
    with pytest.raises(mc.Error, match="the setup has a radio, and dp-dsgd does not send over it") as raised:
        mc.run(built("dp-dsgd", radio()), learnt("dp-dsgd"))
    assert raised.value.hint == "use power-controlled or noiseless, or leave the radio out"


def test_a_round_taken_off_the_radio_is_noticed() -> None:
    """A method of one's own that keeps one round on the paper's channel does not carry the radio out."""
    ours, ideal = built("power-controlled", radio(), rounds=2), built("power-controlled", None)
    first, second = ours.rounds
    mixed: Any = ours._replace(rounds=(first, second._replace(channel=ideal.rounds[0].channel)))
    with pytest.raises(mc.Error, match="radio"):
        require_carried_out(mixed)
