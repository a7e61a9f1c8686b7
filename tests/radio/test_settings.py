"""A radio's settings: what a trace goes together with, and how a ledger names it."""

import json
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace
from tests.radio.traces import POWER_DBM, STEPS, gains

TRACE = ChannelTrace(gains=gains(), carrier_hz=2.4e9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fading": "iid"}, "fading has no meaning beside a trace"),
        ({"k_factor_db": 3.0}, "k_factor_db has no meaning"),
        ({"speed_mps": 2.0}, "speed_mps has no meaning"),
        ({"carrier_hz": 3.5e9}, r"measured at 2\.4e\+09 Hz, and carrier_hz is 3\.5e\+09"),
        ({"access": "referenced", "dither": False}, "without dither"),
        ({"trace": gains()}, "trace is ndarray, expected ChannelTrace"),
        ({"trace": ChannelTrace(gains=gains()[..., None].repeat(2, axis=3))}, "2 blocks of the band"),
        ({"trace": None, "repeat": True}, "repeat has no meaning without a trace"),
    ],
)
def test_what_does_not_go_with_a_trace(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Error, match=words) as raised:
        Radio(**{"trace": TRACE, **settings})
    assert raised.value.hint


def test_weights_change_with_a_trace_and_one_block_is_none() -> None:
    assert Radio(trace=TRACE).varies
    assert not Radio().varies
    assert Radio(trace=ChannelTrace(gains=gains()[..., None])).varies


def test_a_ledger_names_the_trace_by_its_hash() -> None:
    plain = Radio(power_dbm=POWER_DBM, trace=TRACE, repeat=True, pilots=9).as_plain()
    assert plain["trace"] == TRACE.sha256
    read = Radio.from_plain(json.loads(json.dumps(plain)))
    assert (read.pilots, read.trace, read.repeat) == (9, None, False)
    assert not {"trace", "repeat", "power_dbm"} & set(Radio().as_plain())
    assert Radio.from_plain(Radio(fading="iid").as_plain()).fading == "iid"
    with pytest.raises(Error, match="not named by its SHA-256"):
        Radio.from_plain(plain | {"trace": "channel.npz"})


def test_a_plan_takes_the_trace_s_own_network_for_as_long_as_it_lasts() -> None:
    problem, budget = mc.ClippedGradients(dim=4, radius=2.0), mc.Budget(epsilon=2.0)
    radio = Radio(power_dbm=POWER_DBM, trace=TRACE)
    network = TRACE.network(power=radio.power_w)
    mc.plan(network, problem, budget, mc.Schedule(epochs=STEPS), radio=radio)
    with pytest.raises(Error, match=f"ends with epoch {STEPS}, and epoch {STEPS + 1}"):
        mc.plan(network, problem, budget, mc.Schedule(epochs=STEPS + 1), radio=radio)
    others = (
        mc.Network(gains=network.gains.toarray().T, power=network.power),
        mc.Network(gains=network.gains[:4, :4], power=network.power[:4]),
        mc.Network(gains=np.where(network.gains.toarray() > 6e-5, network.gains.toarray(), 0), power=network.power),
    )
    for other in others:
        with pytest.raises(Error, match="not that of the radio's trace") as raised:
            mc.plan(other, problem, budget, mc.Schedule(epochs=STEPS), radio=radio)
        assert "trace.network" in raised.value.hint
