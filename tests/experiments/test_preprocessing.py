"""Centring, whitening and coins from an experiment file."""

import re
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.experiments.load import load
from murmurcast.experiments.validation import with_validation
from tests import commands

FILE = """
[network]
topology = "ring"
nodes = 4
gain = {kind = "uniform", low = 0.4, high = 1.0}
[privacy]
epsilon = 2.0
unit = "record"
clip = 0.5
centring = 0.02
whitening = 0.1
[schedule]
epochs = 5
noise_timing = "aligned"
[data]
name = "logistic"
examples = 240
features = 4
classes = 3
"""
COINS = '[problem]\nbatch = 12\nsampling = "poisson"\n'


def experiment(folder: Path, text: str = FILE) -> mc.Experiment:
    (folder / "one.toml").write_text(text)
    return load(folder / "one.toml")


def test_a_file_releases_with_its_first_seed_and_its_rows(tmp_path: Path) -> None:
    text = FILE + "non_negative = true\n[run]\nseeds = [5, 6]\n"
    data = experiment(tmp_path, text).build_partition(4)
    assert data.first is not None
    assert (data.first.rows, data.first.seed) == ("non-negative", 5)
    assert list(data.first.noise) == ["centring", "whitening"]
    np.testing.assert_allclose(np.linalg.norm(data.dataset.features, axis=1), 1, atol=1e-5)
    off = experiment(tmp_path, FILE.replace("0.02", "0.0").replace("0.1\n", "0.0\n"))
    assert off.build_partition(4).first is None


def test_a_built_run_is_certified(tmp_path: Path) -> None:
    one = experiment(tmp_path, FILE + COINS)
    built = one.build(tmp_path)
    run = mc.run(built.algorithm, built.problem, options=mc.RunOptions(experiment=one.as_toml()))
    result = mc.certify(run)
    assert result.verdict == "kept"
    assert result.epsilon.max() == pytest.approx(2.0, rel=1e-5)
    assert run.info["setup_uses"] > (4 + 10) / built.problem.dim  # sent more than once, until it has settled


@pytest.mark.slow
def test_the_plan_says_what_is_spent_and_what_coins_are_worth(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(FILE + COINS)
    printed = " ".join(commands.run("plan", "one.toml", cwd=tmp_path).stdout.split())
    assert "as shares of mu^2: centring 0.02" in printed
    assert "joins by a secret coin: 25 % of a node's records are read" in printed  # 12 of 48
    assert re.search(r"has \d\.\d{3}( to \d\.\d{3})? times the noise of full batches", printed)
    assert "no amplification" not in printed
    fixed = (FILE + COINS).replace("poisson", "fixed")
    (tmp_path / "one.toml").write_text(fixed)
    assert "no amplification by sampling" in " ".join(commands.run("plan", "one.toml", cwd=tmp_path).stdout.split())


def test_methods_that_do_not_count_coins_say_so(tmp_path: Path) -> None:
    text = FILE + COINS + '[algorithm]\nname = "private-gradient-tracking"\n'
    assert any("no amplification" in line for line in experiment(tmp_path, text).warnings)
    assert not experiment(tmp_path, FILE + COINS).warnings


def test_coins_need_data_and_examples(tmp_path: Path) -> None:
    without = FILE[: FILE.index("[data]")].replace("centring = 0.02\nwhitening = 0.1\n", "") + COINS
    with pytest.raises(Error, match=r"needs \[data\]"):
        experiment(tmp_path, without).build_plan(tmp_path)
    quadratic = without.replace('unit = "record"', 'unit = "node"').replace(
        "[problem]", '[problem]\nkind = "quadratic"'
    )
    with pytest.raises(Error, match="has no meaning with a quadratic"):
        experiment(tmp_path, quadratic).build_problem(4)


def test_settings_are_not_chosen_on_a_part_of_what_was_released(tmp_path: Path) -> None:
    problem = experiment(tmp_path).build_problem(4)
    assert isinstance(problem, mc.SoftmaxRegression)
    with pytest.raises(Error, match="settings are chosen on a part") as raised:
        with_validation(problem)
    assert "centring" in raised.value.hint
