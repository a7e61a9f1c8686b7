"""What six methods publish, measure and cost is what was recorded: the code may change, and the numbers may not.

Where versions and processor are those of a record, every bit is compared. Another processor is given other
instructions, which round otherwise: there a few numbers are compared to some digits. What a run costs is compared
everywhere. All records are of the code before it was reshaped into rooms, rounds and channels. Two defaults have
changed since, as CHANGELOG.md says, and are set as they were: noise of mped2fl and ped2fl, and how slots of mped2fl are
counted. To record anew, for this processor:

    python -m tests.recorded.driver --record

That is right only where a change of numbers is intended and stands in CHANGELOG.md.
"""

import json
from typing import Any

import numpy as np
import pytest

from tests.recorded.driver import CASES, DEVICES, RECORD, fingerprint, found_apart

HERE = fingerprint()
RECORDS: list[dict[str, Any]] = json.loads(RECORD.read_text())["records"]
RECORDED = next((record for record in RECORDS if record["fingerprint"] == HERE), RECORDS[0])
COST_DIGITS = 1e-12
DIGITS = {"float32": 1e-4, "float64": 1e-9}
QUICK = (  # every value of every axis, with few minibatches because these take longest to compile
    "power-controlled/float32/seeded/none/full",
    "power-controlled/float64/secure/stop/minibatch",
    "power-controlled/float32/seeded/none/full/own",
    "power-controlled/float64/seeded/none/full/quadratic",
    "noiseless/float32/seeded/drops/full",
    "mped2fl/float64/seeded/stop/full",
    "ped2fl/float64/seeded/none/full",
    "local-only/float32/seeded/stop/full",
    "central-dp/float64/seeded/none/full/average",
)
SHARED = (  # of these, on two devices: they share nodes, or seeds
    "power-controlled/float32/seeded/none/full",
    "mped2fl/float64/seeded/stop/full",
)


def differences(name: str, result: dict[str, Any], recorded: dict[str, Any], every_bit: bool) -> list[str]:
    """What is not as recorded, in words."""
    precision = DIGITS[CASES[name].precision]
    scale = precision * recorded["norm"]  # a projection may be near 0 by chance, and is as good as its parts
    near = {
        "mu": within(result["mu"], recorded["mu"], COST_DIGITS),
        "norm": within(result["norm"], recorded["norm"], precision),
        "projections": within(result["projections"], recorded["projections"], precision, scale),
        "own_loss": within(result["own_loss"], recorded["own_loss"], precision),
    }
    same = {what: not every_bit or result[what] == recorded[what] for what in ("published", "metrics")}
    return [
        f"{name}: {what} is {result[what]}, not {recorded[what]}" for what, holds in (same | near).items() if not holds
    ]


def within(result: Any, recorded: Any, relative: float, absolute: float = 0.0) -> bool:
    """Equal to so many digits; "inf" equals only itself."""
    one, other = np.asarray(result, float), np.asarray(recorded, float)
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=relative, atol=absolute))


def quick(devices: int) -> tuple[str, ...]:
    return QUICK if devices == 1 else SHARED


def compare(devices: int, names: list[str]) -> None:
    """Runs the cases in one process, and names all that differ at once."""
    recorded = RECORDED["devices"][str(devices)]
    every_bit = RECORDED["fingerprint"] == HERE
    result = found_apart(devices, names)
    assert list(result) == names
    lines = [line for name in names for line in differences(name, result[name], recorded[name], every_bit)]
    assert not lines, "\n".join(["not as recorded:", *lines])


@pytest.mark.parametrize("devices", DEVICES)
def test_some_of_every_kind_are_as_recorded(devices: int) -> None:
    compare(devices, [name for name in CASES if name in quick(devices)])


@pytest.mark.slow
@pytest.mark.parametrize("devices", DEVICES)
def test_all_others_are_as_recorded(devices: int) -> None:
    compare(devices, [name for name in CASES if name not in quick(devices)])


def test_every_case_has_its_record_and_every_record_its_case() -> None:
    for record in RECORDS:
        assert set(record["devices"]) == set(map(str, DEVICES))
        for recorded in record["devices"].values():
            assert set(recorded) == set(CASES)


def test_records_of_other_processors_agree_to_some_digits() -> None:
    for record in RECORDS[1:]:
        for devices, cases in record["devices"].items():
            for name, recorded in cases.items():
                assert differences(name, recorded, RECORDS[0]["devices"][devices][name], every_bit=False) == []


def test_the_quick_ones_have_every_value_of_every_axis() -> None:
    assert set(SHARED) < set(QUICK) < set(CASES)
    for axis in range(len(next(iter(CASES.values())))):
        assert {CASES[name][axis] for name in QUICK} == {case[axis] for case in CASES.values()}


def test_every_bit_is_compared_here() -> None:
    """Skipped aloud on other machines, so that nobody takes a comparison of digits for one of bits."""
    others = [name for name, value in RECORDED["fingerprint"].items() if HERE[name] != value]
    if others:
        pytest.skip(f"recorded with another {', '.join(others)}: digits are compared, not bits")


@pytest.mark.parametrize("every_bit", [True, False])
def test_what_differs_is_named(every_bit: bool) -> None:
    name = "power-controlled/float64/seeded/none/full"
    recorded = RECORDED["devices"]["1"][name]
    assert differences(name, recorded, recorded, every_bit) == []
    for what in ("mu", "norm", "projections", "own_loss"):
        moved = recorded | {what: (np.asarray(recorded[what]) * (1 + 1e-8)).tolist()}
        assert [line.split()[1] for line in differences(name, moved, recorded, every_bit)] == [what]
    for what in ("published", "metrics"):
        assert bool(differences(name, recorded | {what: "other"}, recorded, every_bit)) is every_bit
    promised = recorded | {"mu": ["inf"] * len(recorded["mu"])}
    assert differences(name, promised, recorded, every_bit)
    assert differences(name, recorded, promised, every_bit)
