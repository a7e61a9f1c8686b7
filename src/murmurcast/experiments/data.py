"""What [data] names: the set itself, and what may be said of it without loading it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murmurcast._progress import Stage
from murmurcast.data.features.own import named
from murmurcast.data.partition import Column
from murmurcast.errors import Error
from murmurcast.experiments.schema import DataSection, OwnMap

if TYPE_CHECKING:
    from murmurcast.data.base import Dataset

_FILES = (".npz", ".csv", ".parquet")
_SET_KEYS: "dict[str, tuple[str, ...]]" = {
    "least-squares": ("examples", "features", "heterogeneity"),
    "logistic": ("examples", "features", "classes"),
}
_FILE_KEYS = ("labels", "classes", "image_shape")
_ALL_SET_KEYS = tuple(dict.fromkeys(key for keys in (*_SET_KEYS.values(), _FILE_KEYS) for key in keys))


def load_dataset(section: DataSection, folder: Path, on_stage: Stage) -> "Dataset":
    """The set, split and scaled as the section says; `folder` is where a relative file starts."""
    from murmurcast.data import datasets

    maps = section.features if isinstance(section.features, list) else []
    given: dict[str, Any] = {key: value for key in _ALL_SET_KEYS if (value := getattr(section, key)) is not None}
    if maps:
        del given["features"]
    is_file = is_file_of_data(section.name)
    for key in given if is_file or section.name in datasets.NAMES else ():  # else the name itself is the mistake
        if key not in (_FILE_KEYS if is_file else _SET_KEYS.get(section.name, ())):
            raise Error(f'data.{key} has no meaning with the set "{section.name}"', hint=f"remove {key}")
    on_stage(f"loading {Path(section.name).name}")
    if section.name in _SET_KEYS:
        dataset: Dataset = getattr(datasets, section.name.replace("-", "_"))(seed=section.seed, **given)
    elif is_file:
        require_beside(section.name, folder, "data.name")
        column = section.partition.column if isinstance(section.partition, Column) else None
        dataset = datasets.from_file(folder / section.name, **given, node_column=column)
    else:
        dataset = datasets.load(section.name, on_stage=on_stage)
    if section.mean is not None or section.std is not None:
        mean, std = (0.0 if section.mean is None else section.mean), (1.0 if section.std is None else section.std)
        dataset = dataset.normalised(mean, std)
    if maps:  # before the split: every split of a set then has the same entry in the cache
        chosen = [named(one.map, one.declared, one.sha256) if isinstance(one, OwnMap) else one for one in maps]
        dataset = dataset.with_features(chosen, on_stage=on_stage)
    if section.test_fraction is not None:
        dataset = dataset.split(section.test_fraction, section.seed)
    return dataset


def is_file_of_data(name: str) -> bool:
    """Whether `data.name` is a file, and not a set that is known by its name."""
    return Path(name).suffix in _FILES


def require_beside(name: str, folder: Path, key: str) -> None:
    """A file that an experiment names is there; otherwise an error says where it was looked for."""
    if not os.path.lexists(folder / name):
        where = "" if Path(name).is_absolute() else f" starts at the folder of the experiment file, {folder.resolve()}"
        raise Error(
            f"{folder / name} does not exist",
            hint=f'check {key}: the path "{name}"{where or " is taken as it is"}',
        )
