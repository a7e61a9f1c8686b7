"""The experiment on public data: everything as it was but the set, and the private set never opened."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._progress import quiet
from murmurcast.data import datasets
from murmurcast.data.partition import Sorted
from murmurcast.experiments.load import parse
from murmurcast.experiments.public_data import PublicData, on_public_data
from murmurcast.experiments.schema import DataSection

TEXT = """
[network]
gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]
[data]
name = "private.npz"
classes = 10
image_shape = [8, 8]
partition = "sorted"
test_fraction = 0.25
seed = 3
mean = 0.3
features = ["unit-norm"]
non_negative = true
[problem]
dim = 650
bias = 0.1
[privacy]
epsilon = 2.0
unit = "record"
centring = 0.02
examples_per_node = 300
noise_source = "secure"
settings_chosen = "fixed beforehand"
[run]
seeds = [4, 5]
precision = "float64"
"""


def experiment(text: str = TEXT) -> mc.Experiment:
    return parse(text.encode(), "mine.toml")


def built(public: str | Path, text: str = TEXT, place: Path = Path("/nowhere")) -> PublicData:
    return on_public_data(experiment(text), public, place, quiet)


def section(result: PublicData) -> DataSection:
    assert result.experiment.data is not None
    return result.experiment.data


def save(path: Path, seed: int = 0, columns: int = 64, **more: Any) -> Path:
    rng = np.random.default_rng(seed)
    labels = np.arange(120) % 10
    np.savez(path, x=rng.random((120, columns)), y=more.get("y", labels))
    return path


def test_all_is_as_it_was_but_the_set() -> None:
    result = built("digits")
    new, old = result.experiment, experiment()
    assert section(result).name == "digits"
    assert (section(result).partition, section(result).test_fraction, section(result).seed) == (Sorted(), 0.25, 3)
    assert old.data is not None
    assert (section(result).mean, section(result).features) == (0.3, old.data.features)
    assert section(result).non_negative
    assert (section(result).labels, section(result).classes, section(result).image_shape) == (None, None, None)
    assert new.network == old.network
    assert (new.algorithm, new.schedule, new.power) == (old.algorithm, old.schedule, old.power)
    assert (new.privacy.epsilon, new.privacy.centring, new.privacy.unit) == (2.0, 0.02, "record")
    assert (new.privacy.noise_source, new.privacy.settings_chosen) == ("seeded", "not stated")
    assert (new.privacy.examples_per_node, new.problem.dim) == (None, None)
    assert "private" not in new.model_dump_json()


def test_a_public_file_keeps_what_is_declared_of_the_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "public.npz")
    monkeypatch.chdir(tmp_path)
    result = built("public.npz")
    assert section(result).name == str(path)  # from the working folder, not from the experiment's
    assert (section(result).classes, section(result).image_shape) == (10, [8, 8])
    assert result.name == "public.npz"
    assert result.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_set_by_name_is_known_by_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = built("digits").sha256
    assert before == built("digits", TEXT.replace("mean = 0.3", "").replace("0.25", "0.5")).sha256
    other = mc.datasets.digits().split(0.5, 1)
    monkeypatch.setitem(datasets._NAMED, "digits", lambda: other)
    assert built("digits").sha256 != before


def test_labels_that_nobody_declared_are_those_of_the_public_file(tmp_path: Path) -> None:
    path = save(tmp_path / "public.npz", y=np.array(["b", "a", "c"] * 40))
    result = built(path, TEXT.replace('"private.npz"', '"mnist"').replace("classes = 10\nimage_shape = [8, 8]\n", ""))
    assert section(result).labels == ["a", "b", "c"]
    assert any("3 labels, the private set 10" in line for line in result.warnings)


@pytest.mark.parametrize(
    ("public", "private", "said"),
    [
        ("digits", "", "digits"),
        ("private.npz", "private.npz", "private.npz"),
        ("link.npz", "private.npz", "link.npz"),
        ("hard.npz", "private.npz", "hard.npz"),
        ("folder/../private.npz", "private.npz", "private.npz"),
    ],
)
def test_the_private_set_itself_is_refused(tmp_path: Path, public: str, private: str, said: str) -> None:
    path = save(tmp_path / "private.npz")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.npz").symlink_to(path)
    os.link(path, tmp_path / "hard.npz")
    name = tmp_path / public if private else public
    text = TEXT if private else TEXT.replace('"private.npz"\nclasses = 10\nimage_shape = [8, 8]', '"digits"')
    with pytest.raises(mc.Error, match="is the set that the experiment protects") as refused:
        built(name, text, tmp_path)
    assert said in str(refused.value)
    assert "public" in refused.value.hint


def test_the_private_file_is_not_opened_even_to_tell_it_apart(tmp_path: Path) -> None:
    (tmp_path / "private.npz").write_bytes(b"no set at all")
    (tmp_path / "private.npz").chmod(0)
    public = save(tmp_path / "public.npz")
    assert built(public, place=tmp_path).name == "public.npz"


@pytest.mark.parametrize(
    ("public", "said", "hint"),
    [
        ("fashion-mnit", 'no public set "fashion-mnit"', "fashion-mnist"),
        ("missing.csv", "missing.csv does not exist", "check the path"),
        (7, "public is int", "fashion-mnist"),
    ],
)
def test_what_is_no_set_is_refused(public: Any, said: str, hint: str) -> None:
    with pytest.raises(mc.Error) as refused:
        built(public)
    assert said in str(refused.value)
    assert hint in refused.value.hint


def test_without_examples_there_is_nothing_to_stand_for() -> None:
    for text in (
        "[network]\ntopology = 'ring'\nnodes = 3\n[privacy]\nepsilon = 1.0\n",
        "[network]\ntopology = 'ring'\nnodes = 3\n[problem]\nkind = 'quadratic'\n[privacy]\nepsilon = 1.0\n",
    ):
        with pytest.raises(mc.Error, match="learns from no examples"):
            built("digits", text)


def test_other_shapes_are_told(tmp_path: Path) -> None:
    assert built("digits").warnings == ()
    lines = built(
        "digits", TEXT.replace("classes = 10\nimage_shape = [8, 8]", "labels = ['a', 'b']\nimage_shape = [9, 9]")
    )
    assert [("10 labels, the private set 2" in line, "64 numbers" in line) for line in lines.warnings] == [
        (True, False),
        (False, True),
    ]
    mnist = TEXT.replace('"private.npz"\nclasses = 10\nimage_shape = [8, 8]', '"mnist"')
    stated = " ".join(built("digits", mnist).warnings)
    assert "64 numbers per example, the private set 784" in stated
    assert "1797 examples, the private set 70000" in stated
    node = built("digits", mnist.replace('unit = "record"', 'unit = "node"'))
    assert "70000" not in " ".join(node.warnings)
    values = save(tmp_path / "values.npz", y=np.linspace(0, 1, 120))
    assert any("no labels" in line for line in built(values, mnist).warnings)


def test_a_synthetic_private_set_passes_on_what_a_synthetic_public_one_knows() -> None:
    text = TEXT.replace('"private.npz"\nclasses = 10\nimage_shape = [8, 8]', '"logistic"\nexamples = 90\nclasses = 4')
    text = text.replace('features = ["unit-norm"]', "features = 5")
    squares = section(built("least-squares", text))
    assert (squares.examples, squares.features, squares.classes) == (90, 5, None)
    assert section(built("digits", text)).features is None


def test_rows_of_an_image_sets_layout_are_images(tmp_path: Path) -> None:
    text = TEXT.replace('"private.npz"\nclasses = 10\nimage_shape = [8, 8]', '"digits"')
    assert section(built(save(tmp_path / "alike.npz"), text)).image_shape == [8, 8]
    assert section(built(save(tmp_path / "other.npz", columns=63), text)).image_shape is None
