"""`murmurcast link` through its real entry point."""

import json
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from tests.commands import refused, run

TEXT = """
[network]
topology = "geometric"
nodes = 7
size_m = 80.0
seed = 1
gain = {kind = "indoor", reciprocal = false}
[privacy]
epsilon = 3.0
[schedule]
epochs = 20
[problem]
dim = 101
radius = 4.0
[radio]
power_dbm = [0, 2, 4, 6, 8, 10, 12]
"""


@pytest.fixture
def office(tmp_path: Path) -> Path:
    path = tmp_path / "office.toml"
    path.write_text(TEXT)
    return path


def test_tables(office: Path) -> None:
    done = run("link", office)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in (
        "own-slot, half duplex; 0 to 12 dBm, 1 MHz at 2.4 GHz, receiver noise -107.0 dBm",
        "101 parameters within radius 4; 20 epochs",
        "SNR* needed",
        "never counted for privacy",
        "mixing rate",
        "slots a round",
        "Where it departs from the paper",
        "every sender is heard alone",
    ):
        assert words in done.stdout
    assert "warning:" not in done.stdout


def test_json_is_the_link_budget_of_the_plan(office: Path) -> None:
    result = json.loads(run("link", office, "--json").stdout)
    experiment = mc.load(office)
    plan, radio = experiment.build_plan(), experiment.build_radio()
    assert radio is not None
    expected = mc.link_budget(
        plan.network,
        radio,
        alpha=plan.alpha,
        noise_std=plan.noise_std,
        dim=101,
        radius=4.0,
        normaliser=plan.mixing.normaliser,
    )
    for name in ("sender", "receiver", "distance_m", "snr_db", "noise_dbm", "heard_snr_db", "sendings", "symbols"):
        np.testing.assert_allclose(result[name], getattr(expected, name), err_msg=name)
    np.testing.assert_allclose(result["needed_snr_db"], expected.needed_snr_db.max(axis=0))
    np.testing.assert_allclose(result["receiver_noise_share"], expected.receiver_noise_share.max(axis=0))
    np.testing.assert_allclose(result["joules_per_epoch"], expected.joules)
    assert result["slots"] == expected.slots
    assert result["seconds_per_epoch"] == pytest.approx(expected.seconds)
    assert result["radio"]["power_dbm"] == [0, 2, 4, 6, 8, 10, 12]
    assert result["departures"] == list(expected.departures)


@pytest.mark.parametrize("access", ["aligned", "referenced", "digital"])
def test_every_access_is_shown(office: Path, access: str) -> None:
    done = run("link", office, "--set", f"radio.access={access}", "--set", "radio.fading=jakes")
    assert done.returncode == 0, done.stderr
    assert f"{access}, half duplex" in done.stdout
    assert ("no known radio does this" in " ".join(done.stdout.split())) == (access == "aligned")
    assert ("SNR* needed" in done.stdout) == (access != "digital")
    result = json.loads(run("link", office, "--set", f"radio.access={access}", "--json").stdout)
    assert (result["needed_snr_db"] == [None] * 7) == (access == "digital")


@pytest.mark.parametrize("name", ["out.png", "out.svg"])
def test_figure(office: Path, name: str) -> None:
    done = run("link", office, "--figure", office.parent / name)
    assert done.returncode == 0, done.stderr
    assert (office.parent / name).read_bytes().startswith({"png": b"\x89PNG", "svg": b"<?xml"}[name[-3:]])


def test_without_a_radio_the_lines_to_add_are_shown(office: Path) -> None:
    office.write_text(TEXT.split("[radio]")[0])
    text = refused(run("link", office))
    for words in ("nothing of a radio", '"[radio]"', '"power_dbm = 20.0"', '"carrier_hz = 2.4e9"'):
        assert words in text


@pytest.mark.parametrize(
    ("key", "words"), [("dim = 101", "how many parameters"), ("radius = 4.0", "how large a model")]
)
def test_what_is_missing_is_named(office: Path, key: str, words: str) -> None:
    office.write_text(TEXT.replace(key, ""))
    text = refused(run("link", office))
    assert words in text
    assert f"add {key.split()[0]} = " in text


def test_the_number_of_parameters_is_counted_where_the_problem_is_at_hand(office: Path) -> None:
    office.write_text(TEXT.replace("dim = 101", 'kind = "quadratic"'))
    assert json.loads(run("link", office, "--json").stdout)["dim"] == 10
    data = '[data]\nname = "logistic"\nexamples = 70\nfeatures = 3\n[radio]'
    office.write_text(TEXT.replace("dim = 101", "").replace("radius = 4.0", "box = 2.0").replace("[radio]", data))
    result = json.loads(run("link", office, "--json").stdout)
    assert result["radius"] == pytest.approx(2 * np.sqrt(result["dim"]))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "radio.carrier_hz=0"],
        ["--set", "radio.access=shouting"],
        ["--set", "network.power=1"],
        ["--set", "radio.power_dbm=[1, 2]"],
        ["--set", 'network.gain={kind = "indoor", carrier_hz = -1}'],
        ["--set", "network.topology=erdos-renyi"],
        ["--set", "radio.bandwidth_hz=nan"],
        ["--set", "radio.access=digital", "--set", "radio.power_dbm=-100", "--set", "radio.bandwidth_hz=1e25"],
        ["--figure", "out.jpeg"],
        ["--nonsense"],
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(office: Path, arguments: list[str]) -> None:
    refused(run("link", office, *arguments, cwd=office.parent))
    assert [entry.name for entry in office.parent.iterdir()] == ["office.toml"]


def test_gains_that_are_none_of_a_radio_are_warned_of(office: Path) -> None:
    done = run("link", office, "--set", 'network.gain={kind = "uniform"}')
    assert "choose gains with path loss" in " ".join(done.stdout.split())
    far = run("link", office, "--set", "network.size_m=900")
    assert "indoor gains were measured on 1 to 150 m" in " ".join(far.stdout.split())


def test_help_has_examples() -> None:
    text = " ".join(run("link", "--help").stdout.split())
    assert "murmurcast link my.toml --set radio.access=referenced" in text
