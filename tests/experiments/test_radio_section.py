"""[radio] in experiment files: its keys, what it says of the network, and that it is kept."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.schema import RadioSection
from murmurcast.radio.settings import Radio
from tests.commands import run

TEXT = """
[network]
topology = "geometric"
nodes = 6
size_m = 50.0
seed = 2
gain = {kind = "street", line_of_sight = true}
[privacy]
epsilon = 2.0
[schedule]
epochs = 4
[problem]
kind = "quadratic"
dim = 5
radius = 3.0
[radio]
power_dbm = [10, 12, 14, 16, 18, 20]
backoff_db = 2
access = "referenced"
k_factor_db = 6.0
"""
WITHOUT = TEXT.split("[radio]")[0]


def parse(text: str = TEXT, **overrides: str) -> Experiment:
    return experiment_files.parse(
        text.encode(), "my.toml", {key.replace("__", "."): value for key, value in overrides.items()}
    )


def test_the_keys_are_those_of_the_radio_with_its_defaults() -> None:
    assert list(RadioSection.model_fields) == [field.name for field in fields(Radio)]
    assert RadioSection().model_dump() == {field.name: field.default for field in fields(Radio)}


def test_every_key_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "experiment-file.md").read_text()
    section = page.split("\n## [radio]\n")[1].split("\n## ")[0]
    for field in fields(Radio):
        assert f"`{field.name}`" in section, field.name


def test_the_radio_is_built_and_passed_on() -> None:
    experiment = parse()
    radio = experiment.build_radio()
    assert radio is not None
    assert (radio.access, radio.backoff_db, radio.k_factor_db, radio.duplex) == ("referenced", 2, 6.0, "half")
    setup = experiment.build_setup()
    assert setup.radio == radio
    np.testing.assert_allclose(setup.network.power, 1e-3 * 10 ** (np.array([8, 10, 12, 14, 16, 18]) / 10))
    assert parse(WITHOUT, network__gain='{kind = "uniform"}').build_radio() is None
    assert parse(WITHOUT, network__gain='{kind = "uniform"}').build_setup().radio is None


def test_gains_take_the_radios_carrier_and_metres() -> None:
    network = parse(network__gain='{kind = "free-space"}', radio__carrier_hz="5e9").build_network()
    assert network.positions is not None
    sender, receiver = network.gains.nonzero()
    metres = np.linalg.norm(network.positions[sender] - network.positions[receiver], axis=1)
    assert 5 < metres.max() < 75
    np.testing.assert_allclose(network.gains.data, 299_792_458 / (4 * np.pi * np.maximum(metres, 1) * 5e9))
    own = parse(network__gain='{kind = "free-space", carrier_hz = 1e9}', radio__carrier_hz="5e9").build_network()
    np.testing.assert_allclose(own.gains.data, 5 * network.gains.data)


def test_the_privacy_of_a_plan_does_not_depend_on_it() -> None:
    given = {"network__gain": '{kind = "street", carrier_hz = 2.4e9}'}
    with_radio, without = parse(**given).build_plan(), parse(WITHOUT, **given).build_plan()
    np.testing.assert_allclose(with_radio.certificate.epsilon, without.certificate.epsilon, rtol=1e-9)


def test_the_resolved_file_keeps_the_section() -> None:
    experiment = parse()
    again = experiment_files.parse(experiment.as_toml().encode(), "resolved.toml")
    assert again.build_radio() == experiment.build_radio()
    first, second = experiment.build_network(), again.build_network()
    np.testing.assert_array_equal(first.gains.toarray(), second.gains.toarray())
    np.testing.assert_array_equal(first.power, second.power)
    assert again.as_toml() == experiment.as_toml()
    assert "[radio]" not in parse(WITHOUT).as_toml()
    assert "power = 1.0" in parse(WITHOUT).as_toml()


def test_a_run_with_a_radio_can_be_certified(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(TEXT)
    done = run("run", "my.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = mc.certify([mc.load_run(tmp_path / "out")])
    assert result.verdict == "kept"
    assert not result.not_compared
    ledger = mc.load_run(tmp_path / "out").ledger
    np.testing.assert_allclose(np.asarray(ledger["power"]), parse().build_network().power)


@pytest.mark.parametrize(
    ("overrides", "words", "hint"),
    [
        ({"radio__carrier_hz": "0"}, "[radio] carrier_hz is 0", "above 0"),
        ({"radio__carrier_hz": "2.4"}, "carrier_hz is 2.4", "hertz"),
        ({"network__power": "2.0"}, "power is given twice", "remove network.power"),
        ({"radio__access": "alinged"}, 'radio.access is "alinged"', '"aligned"'),
        ({"radio__duplexx": "half"}, "unknown key radio.duplexx", '"duplex"'),
        ({"radio__power_dbm": "[1, 2]"}, "power has shape (2,)", "per node"),
        ({"radio__power_dbm": "1000"}, "[radio] power_dbm is beyond", "dBm"),
        ({"radio__bits": "2.5"}, "radio.bits is 2.5", "see a whole file"),
        ({"radio__dither": "maybe"}, "radio.dither is maybe", "see a whole file"),
        ({"radio__efficiency": "1.5"}, "[radio] efficiency is 1.5", "share"),
        ({"network__size_m": "0"}, "size_m is 0", "above 0"),
        (
            {"network__gain": '{kind = "indoor", shadow = true}'},
            "unknown key network.gain.shadow",
            '"shadowing"',
        ),
    ],
)
def test_what_does_not_fit_is_said(overrides: dict[str, str], words: str, hint: str) -> None:
    with pytest.raises(Error) as stated:
        parse(**overrides).build_network()
    assert words in str(stated.value)
    assert hint in stated.value.hint


def test_path_loss_needs_a_carrier_and_positions(tmp_path: Path) -> None:
    with pytest.raises(Error, match="street gains need a carrier") as stated:
        parse(WITHOUT).build_network()
    assert "[radio]" in stated.value.hint
    edges = '[network]\nfile = "edges.csv"\ngain = {kind = "indoor"}\n[privacy]\nepsilon = 1.0\n[radio]\n'
    (tmp_path / "edges.csv").write_text("sender,receiver\n0,1\n1,2\n")
    with pytest.raises(Error, match="indoor gains need positions"):
        parse(edges).build_network(tmp_path)
    random = TEXT.replace('"geometric"', '"erdos-renyi"\nprobability = 0.9')
    with pytest.raises(Error, match=r"network\.size_m has no meaning"):
        parse(random).build_network()
    with pytest.raises(Error, match=r"network\.size_m has no meaning"):
        parse("[network]\ngains = [[0, 1], [1, 0]]\nsize_m = 2.0\n[privacy]\nepsilon = 1.0\n").build_network()
