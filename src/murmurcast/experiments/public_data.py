"""The same experiment on public data: nothing of the private set is read, because nothing in it names that set."""

import hashlib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from murmurcast import _check
from murmurcast._progress import Stage
from murmurcast.data import datasets
from murmurcast.data.files import FORMATS
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Error
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.data import load_dataset
from murmurcast.experiments.schema import DataSection, RunSection
from murmurcast.privacy.settings_chosen import NOT_STATED

if TYPE_CHECKING:
    from murmurcast.data.base import Dataset

_FILE_KEYS = ("labels", "classes", "image_shape")
_SYNTHETIC_KEYS = {"least-squares": ("examples", "heterogeneity"), "logistic": ("examples", "classes")}
_UNEQUAL_SIZES = 2.0


class Shape(NamedTuple):
    """What is public of a set's shape; None where it is not known.

    Attributes:
        classes: How many labels there are.
        features: How many numbers an example has, before any map.
        examples: How many examples there are in both parts.
    """

    classes: int | None = None
    features: int | None = None
    examples: int | None = None


_BUILT_IN = {
    "mnist": Shape(10, 784, 70_000),
    "fashion-mnist": Shape(10, 784, 70_000),
    "digits": Shape(10, 64, 1797),
}


class PublicData(NamedTuple):
    """Public data in the place of the private set.

    Attributes:
        name: Of the public set.
        sha256: Of the file's bytes, or of the arrays of a set by name as they come.
        experiment: On the public set, everything else as it was; it does not name the private one.
        warnings: Where the public set is of another shape than the private one is said to have.
    """

    name: str
    sha256: str
    experiment: Experiment
    warnings: tuple[str, ...]


def on_public_data(experiment: Experiment, public: Path | str, place: Path, on_stage: Stage) -> PublicData:
    """The experiment on public data.

    Args:
        experiment: About the private set, which is not read: its [data] is looked at as it is written.
        public: The name of a set, or a file; a relative path starts at the working folder.
        place: Where the experiment's relative files start.
        on_stage: Told what is being loaded.
    """
    private = _required_section(experiment)
    name = _required_public(public)
    _require_other(private, name, place)
    section = _section(private, name)
    raw = _as_it_comes(section, on_stage)
    if raw.labels_from == "records":  # they are of public records, so that declaring them tells nothing
        section = section.model_copy(update={"labels": list(raw.label_names), "classes": None})
    if _is_file(name) and private.name in _BUILT_IN and raw.features.shape[1] == _BUILT_IN[private.name].features:
        side = math.isqrt(raw.features.shape[1])  # rows of the same layout are images of the same shape
        section = section.model_copy(update={"image_shape": [side, side]})
    digest = _sha256(name, raw)
    shown = Path(name).name if _is_file(name) else name
    shape = Shape(raw.classes, raw.features.shape[1], len(raw.features) + len(raw.test_features))
    warnings = _differences(_declared(private), shape, shown, experiment.privacy.unit)
    return PublicData(shown, digest, _with_data(experiment, section), warnings)


def _required_section(experiment: Experiment) -> DataSection:
    if experiment.data is None or experiment.problem.kind == "quadratic":
        raise Error(
            "the experiment learns from no examples, so there is nothing that public data could stand for",
            hint='use an experiment with [data], and problem.kind "softmax", "ridge" or "model"',
        )
    return experiment.data


def _is_file(name: str) -> bool:
    return Path(name).suffix in FORMATS


def _required_public(public: Path | str) -> str:
    """A set's name as it is, or a file's whole path."""
    if not isinstance(public, str | os.PathLike):
        raise Error(
            f"public is {type(public).__name__}, expected the name of a set or of a file",
            hint='such as public="fashion-mnist" or public="public.csv"',
        )
    name = os.fspath(public)
    if name in datasets.NAMES:
        return name
    if not _is_file(name):
        raise Error(
            f'there is no public set "{name}"',
            hint=f"{_check.nearest(name, datasets.NAMES)} A file of your own ends in {', '.join(FORMATS)}",
        )
    _check.readable(Path(name))
    return os.path.abspath(name)


def _require_other(private: DataSection, name: str, place: Path) -> None:
    """The public set is not the private one, by name or by place; the private one is not opened to find out."""
    mine = os.path.abspath(place / private.name) if _is_file(private.name) else private.name
    same = name == mine
    if not same and _is_file(name) and _is_file(mine):
        # Another name of the same file: what the file system says, without reading it.
        same = os.path.realpath(name) == os.path.realpath(mine) or (
            os.path.exists(mine) and os.path.samefile(name, mine)
        )
    if same:
        raise Error(
            f'"{Path(name).name}" is the set that the experiment protects: every setting tried on it would be one more '
            "run on its records, and the choice would tell of them",
            hint="give other data of the same kind that is public, such as --public fashion-mnist for MNIST",
        )


def _section(private: DataSection, name: str) -> DataSection:
    """[data] with the public set in the private one's place: same partition, features and split."""
    changed: dict[str, Any] = {"name": name}
    kept = _FILE_KEYS if _is_file(name) and _is_file(private.name) else ()
    synthetic = _SYNTHETIC_KEYS.get(name, ())
    for key in (*_FILE_KEYS, "examples", "heterogeneity"):
        if key not in (*kept, *synthetic):
            changed[key] = None
    if isinstance(private.features, int) and name not in _SYNTHETIC_KEYS:
        changed["features"] = None
    return private.model_copy(update=changed)


def _as_it_comes(section: DataSection, on_stage: Stage) -> "Dataset":
    """The public set before anything is made of it."""
    plain: dict[str, Any] = {"mean": None, "std": None, "test_fraction": None}
    if isinstance(section.features, list):
        plain["features"] = None
    return load_dataset(section.model_copy(update=plain), Path(), on_stage)


def _sha256(name: str, raw: "Dataset") -> str:
    if _is_file(name):
        with Path(name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    return sha256_of((raw.features, raw.targets, raw.test_features, raw.test_targets))


def _with_data(experiment: Experiment, section: DataSection) -> Experiment:
    """The experiment about this set; what is said of the private set's size is said of no other."""
    privacy = {"examples_per_node": None, "noise_source": "seeded", "settings_chosen": NOT_STATED}
    run = experiment.run
    return experiment.model_copy(
        update={
            "data": section,
            "privacy": experiment.privacy.model_copy(update=privacy),
            "problem": experiment.problem.model_copy(update={"dim": None}),
            "run": RunSection(stop_after=run.stop_after, drops=run.drops),
        }
    )


def _declared(section: DataSection) -> Shape:
    """What the private [data] says of its shape, without the data."""
    if section.name in _BUILT_IN:
        return _BUILT_IN[section.name]
    labels = section.labels
    pixels = section.image_shape
    numbers = section.features if isinstance(section.features, int) else None
    if numbers is None and pixels is not None and len(pixels) == 2:
        numbers = pixels[0] * pixels[1]
    return Shape(len(labels) if labels is not None else section.classes, numbers, section.examples)


def _differences(private: Shape, public: Shape, name: str, unit: str) -> tuple[str, ...]:
    """A line for everything in which the two are known to differ."""
    lines = []
    for what, said, public_count in (
        ("labels", private.classes, public.classes),
        ("numbers per example", private.features, public.features),
    ):
        if said is not None and said != public_count:
            has = "no" if public_count is None else str(public_count)
            lines.append(f"{name} has {has} {what}, the private set {said}: what suits one need not suit the other")
    if private.examples is not None and public.examples is not None and unit == "record":
        ratio = private.examples / public.examples
        if not 1 / _UNEQUAL_SIZES <= ratio <= _UNEQUAL_SIZES:
            lines.append(
                f"{name} has {public.examples} examples, the private set {private.examples}: one record weighs "
                "otherwise, and so does the noise that hides it"
            )
    return tuple(lines)
