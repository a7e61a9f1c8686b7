"""Models by name in a file: built, run and certified; code that a folder names is never run by `certify`."""

import sys
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.cli import _verification
from murmurcast.cli.export_iq import Asked, _experiment
from murmurcast.errors import Altered
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.problems.modules.dense import DenseStack

BASE = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 40.0
unit = "record"
[schedule]
epochs = 3
noise_to_step = "auto"
noise_timing = "aligned"
[data]
name = "logistic"
examples = 90
features = 4
classes = 3
partition = "quantity"
[problem]
kind = "model"
module = "mlp"
loss = "cross-entropy"
options = {hidden = [3]}
"""


def parse(**overrides: str) -> Experiment:
    return experiment_files.parse(
        BASE.encode(), "my.toml", {key.replace("__", "."): value for key, value in overrides.items()}
    )


def run(experiment: Experiment, folder: Path) -> mc.Result:
    built = experiment.build()
    options = mc.RunOptions(folder=folder, experiment=experiment.as_toml())
    return mc.run(built.algorithm, built.problem, options=options)


def test_a_model_is_built_from_its_name() -> None:
    problem = parse(problem__l2="0.1", problem__clipping="layer").build_problem(3)
    assert isinstance(problem, mc.Model)
    assert isinstance(problem.module, DenseStack)
    assert (problem.dim, problem.l2, problem.clipping) == (5 * 3 + 4 * 3, 0.1, "layer")
    np.testing.assert_allclose(problem.gradient_clip.sensitivity("record", 3), 2 / problem.data.sizes)
    again = experiment_files.parse(parse().as_toml().encode(), "again.toml")
    assert again.problem.options == {"hidden": [3]}


def test_values_are_learnt_by_a_squared_error() -> None:
    experiment = parse(
        data__name="least-squares", problem__module="ridge", problem__loss="squared-error", problem__options="{}"
    )
    text = experiment.as_toml().replace("classes = 3\n", "")
    problem = experiment_files.parse(text.encode(), "values.toml").build_problem(3)
    assert problem.dim == 4
    assert experiment.promised_data is not None
    assert experiment.promised_data.labels == "values"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"problem__kind": "softmax"}, 'problem.module has no meaning with problem.kind = "softmax"'),
        ({"problem__loss": "squared-error"}, "labels, not for squared-error"),
        ({"problem__module": "mpl"}, 'no module "mpl"'),
        ({"problem__module": "nowhere_at_all:net"}, "cannot be found"),
        ({"problem__options": "{width = 3}"}, "unexpected keyword argument 'width'"),
        ({"problem__loss": "hinge"}, "problem.loss"),
        ({"problem__dim": "3"}, "the model has 27 parameters"),
    ],
)
def test_what_does_not_fit_is_said(overrides: dict[str, str], words: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        parse(**overrides).build_problem(3)
    assert raised.value.hint


@pytest.mark.parametrize("missing", ["module", "loss"])
def test_a_model_needs_a_module_and_a_loss(missing: str) -> None:
    text = "\n".join(line for line in BASE.splitlines() if not line.startswith(missing))
    with pytest.raises(mc.Error, match=f"problem.{missing} is missing"):
        experiment_files.parse(text.encode(), "my.toml").build_problem(3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("clipping", ["example", "layer"])
def test_a_run_of_a_shipped_module_is_certified_as_a_whole(clipping: str, tmp_path: Path) -> None:
    run(parse(problem__clipping=clipping), tmp_path / "run")
    result = mc.certify(mc.load_run(tmp_path / "run"))
    assert result.verdict == "kept"
    assert not result.not_compared
    assert any("shape, start and loss" in line for line in result.assumptions)
    words = "layer by layer, together to 1" if clipping == "layer" else "each example's to 1"
    assert any(words in line for line in result.assumptions)


def test_no_model_of_another_size_is_taken(tmp_path: Path) -> None:
    saved = run(parse(), tmp_path / "run")
    other = saved.experiment.replace("    3,\n", "    300,\n")
    with pytest.raises(Altered, match=r"problem\.dim is 27, but the model has \d{4,}"):
        mc.certify(mc.Result(**{**vars(saved), "experiment": other}))


def test_no_model_is_made_anew_that_is_larger_than_the_runs_own(tmp_path: Path) -> None:
    """A folder could name one that fills the memory: 5 million million parameters here."""
    saved = run(parse(), tmp_path / "run")
    other = saved.experiment.replace("    3,\n", "    1000000,\n    5000000,\n")
    assert other != saved.experiment
    with pytest.raises(Altered, match=r"the model has 5e\+12 parameters; training needs"):
        mc.certify(mc.Result(**{**vars(saved), "experiment": other}))


def test_code_that_a_folder_names_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All else is compared, the number of examples with the data too."""
    (tmp_path / "nets_that_tell.py").write_text(
        "from murmurcast.problems.modules.shipped import mlp as net\nprint('was run')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run(parse(problem__module="nets_that_tell:net"), tmp_path / "run")
    sys.modules.pop("nets_that_tell")
    result = mc.certify(mc.load_run(tmp_path / "run"))
    assert result.verdict == "kept"
    assert "nets_that_tell" not in sys.modules
    assert any("never run by itself" in line for line in result.not_compared)
    saved = mc.load_run(tmp_path / "run")
    committed = _verification._problem(saved, tmp_path)  # who opens the commitment to the data needs no module
    assert committed.data.sha256 == parse(problem__module="mlp").build_problem(3).data.sha256  # type: ignore[attr-defined]
    with pytest.raises(mc.Error, match="module of your own") as raised:
        _experiment(tmp_path / "run", saved, Asked(0, range(1, 2), 0))
    assert "overhear" in raised.value.hint
    assert "nets_that_tell" not in sys.modules
    other = saved.experiment.replace("examples = 90", "examples = 120")
    with pytest.raises(Altered):
        mc.certify(mc.Result(**{**vars(saved), "experiment": other}))
