"""Reading experiment files: TOML in, an `Experiment` out, and errors in our own words."""

import dataclasses
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from murmurcast import _check
from murmurcast.algorithms import registry
from murmurcast.errors import Error
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.schema import FeatureMap, Gain, PartitionRule, RangeSection
from murmurcast.experiments.settle import INSTEAD_OF, settle

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES = 16 * 2**20
_UNIONS: "dict[tuple[Any, ...], Any]" = {
    ("network", "gain"): Gain,
    ("data", "partition"): PartitionRule,
    ("data", "features"): FeatureMap,
}
_RANGES = ("sweep", "ranges")  # below them stand the keys that are varied
MAX_DEPTH = 32  # levels of a file; its own sections have four
# tomllib takes time and memory that grow with the square of a key's parts.
_DEEP_KEY = re.compile(rf"(?<![^\s.,=\[\]{{}}#])(?:[^\s.,=\[\]{{}}#]++[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}")
_SEE = "see a whole file with: murmurcast plan --example paper-1"


def load(path: Path | str, overrides: "Mapping[str, str] | None" = None) -> Experiment:
    """Reads an experiment file; `overrides` maps dotted keys to TOML values that replace the file's."""
    path = Path(path)
    _check.readable(path)
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Error(
            f"{path} has {path.stat().st_size / 1e6:.0f} MB, far too much for an experiment file",
            hint='keep large gain matrices in a file of their own: [network] file = "gains.npz"',
        )
    return settle(parse(path.read_bytes(), str(path), overrides), path.parent)


def parse(content: bytes, name: str, overrides: "Mapping[str, str] | None" = None) -> Experiment:
    """Reads an experiment from the bytes of a file called `name`, as it is written: see `settle`."""
    try:
        text = content.decode("utf-8-sig")
        if _DEEP_KEY.search(text):
            raise ValueError(f"a key of more than {MAX_DEPTH} parts")
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # tomllib lets through what int() says of too many digits
        raise Error(f"{name} is not TOML: {problem}", hint=_SEE) from None
    override(values, overrides or {})
    return from_values(values)


def from_values(values: dict[str, Any]) -> Experiment:
    """The experiment that plain values describe, sections and keys as in a file."""
    _require_plain(values)
    try:
        experiment = Experiment.model_validate(values)
    except ValidationError as problem:
        raise _explained(problem) from None
    _require_method(experiment)
    return experiment


def with_changes(experiment: Experiment, changes: "Mapping[str, Any]") -> Experiment:
    """The experiment with other values, by dotted keys, as they are given: see `settle`; all else stays as it is."""
    values = experiment.values
    for key, value in changes.items():
        _make_room(values, key, changes)
        *sections, last = key.split(".")
        inner = values
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise Error(f"{key}: {section} is not a section", hint="write section.key, such as privacy.epsilon")
        inner[last] = value
    return from_values(values)


def example_names() -> tuple[str, ...]:
    """The experiments that come with the package."""
    folder = resources.files("murmurcast") / "experiments"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def example(name: str) -> str:
    """The text of an experiment that comes with the package."""
    if name not in example_names():
        raise Error(f'there is no example "{name}"', hint=_check.nearest(name, example_names()))
    return (resources.files("murmurcast") / "experiments" / f"{name}.toml").read_text(encoding="utf-8")


def override(values: dict[str, Any], overrides: "Mapping[str, str]") -> None:
    """Changes a file's values in place: dotted keys, and values as TOML or as bare words."""
    for key, value in overrides.items():
        _make_room(values, key, overrides)
        _override(values, key, value)


def _override(values: dict[str, Any], key: str, value: str) -> None:
    *sections, last = key.split(".")
    if len(sections) > MAX_DEPTH:
        raise Error(f"--set {key[:40]}...: a key of more than {MAX_DEPTH} parts", hint="write --set section.key=value")
    if not last or not all(sections):
        raise Error(f'--set {key}={value}: "{key}" is not a key', hint="write --set section.key=value")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise Error(f"--set {key}={value}: {section} is not a section", hint="write --set section.key=value")
    values[last] = toml_value(f"--set {key}", value)


def toml_value(where: str, text: str) -> Any:
    """What a value on the command line means: TOML, and what is not TOML is a string (power.objective=noise)."""
    try:
        parsed = {"value": text} if _DEEP_KEY.search(text) else tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        parsed = {"value": text}
    if len(parsed) > 1:
        raise Error(f"{where}: more than one value is given", hint=f"use {where.split()[0]} once for every key")
    return parsed["value"]


def _make_room(values: dict[str, Any], key: str, overrides: "Mapping[str, Any]") -> None:
    """Takes out what the file gives instead of this key, unless it is replaced too: then the two are at odds."""
    schedule = values.get("schedule")
    if not isinstance(schedule, dict):
        return
    schedule_key = key.removeprefix("schedule.")
    for one, others in INSTEAD_OF.items():
        for name in others if schedule_key == one else (one,) if schedule_key in others else ():
            if f"schedule.{name}" not in overrides:
                schedule.pop(name, None)


def _require_plain(values: dict[str, Any]) -> None:
    """Nothing is nested so deeply, and no number so large, that it could not even be named in an error."""
    left: list[tuple[str, Any, int]] = [(key, value, 1) for key, value in values.items()]
    while left:
        key, value, depth = left.pop()
        if depth > MAX_DEPTH:
            raise Error(f"{key} is nested more than {MAX_DEPTH} levels deep", hint=_SEE)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Error(f"{key} has a number of more than 64 bits", hint="give a smaller one, or one with a point")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(key, part, depth + 1) for part in inner]


def _require_method(experiment: Experiment) -> None:
    """The method is known, and every option is one of its own or of another's, and of its kind."""
    section = experiment.algorithm
    if ":" not in section.name and section.name not in registry.NAMES:
        raise Error(
            f'algorithm.name is "{section.name}"',
            hint=f"{_check.nearest(section.name, registry.NAMES)} A method of your own is named package.module:name",
        )
    if not section.options:
        return
    methods = (registry.find(section.name), *registry.methods())
    for key, value in section.options.items():
        method = next((one for one in methods if key in {option.name for option in one.options}), None)
        if method is None:
            known = {"name", *(option.name for one in methods for option in one.options)}
            raise Error(f"unknown key algorithm.{key}", hint=_check.nearest(key, sorted(known)))
        try:
            method.checked({key: value})
        except Error as problem:
            raise Error(f"algorithm.{problem}", hint=problem.hint) from None


def _explained(problem: ValidationError) -> Error:
    """The first thing wrong with a file, in our words."""
    wrong = problem.errors()[0]
    *above, last = wrong["loc"]
    # pydantic puts the names of types it tried between the keys; those are not for users.
    known_keys, is_range = _all_keys(), tuple(above[:2]) == _RANGES
    keys = [
        part
        for place, part in enumerate(above)
        if isinstance(part, int) or part in known_keys or (is_range and place == len(_RANGES))
    ]
    if wrong["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return Error(
            f"unknown key {_dotted([*keys, last])}", hint=_check.nearest(str(last), _known_keys(wrong["loc"][:-1]))
        )
    if wrong["type"] == "missing":
        return Error(f"{_dotted([*keys, last])} is missing", hint=f"add it; {_SEE}")
    where = _dotted([*keys, last] if isinstance(last, int) or last in known_keys else keys)
    shown = str(wrong["input"])
    shown = shown if len(shown) < 60 else shown[:57] + "..."
    if wrong["type"] == "literal_error":
        known = wrong["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return Error(f'{where} is "{shown}"', hint=_check.nearest(shown, known))
    if wrong["type"].startswith("union_tag"):
        known = _models(_UNIONS[tuple(map(str, wrong["loc"][:2]))])
        return Error(f"{where} = {shown} names nothing known", hint=f"set kind to one of {', '.join(known)}")
    if isinstance(cause := wrong.get("ctx", {}).get("error"), Error):
        return Error(f"{where}: {cause}", hint=cause.hint)
    return Error(f"{where} is {shown}: {wrong['msg'][0].lower()}{wrong['msg'][1:]}", hint=_SEE)


def _dotted(parts: "list[int | str]") -> str:
    return ".".join(map(str, parts))


def _models(union: Any) -> dict[str, Any]:
    """The classes of a union by their kind."""
    return {get_args(model.__annotations__["kind"])[0]: model for model in get_args(get_args(union)[0])}


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand at a place of the file."""
    if path[:2] in _UNIONS:
        return [one.name for one in dataclasses.fields(_models(_UNIONS[path[:2]])[str(path[-1])])]
    if path[:2] == _RANGES:
        return list(RangeSection.model_fields)
    if not path:
        return list(Experiment.model_fields)
    annotation = Experiment.model_fields[str(path[0])].annotation
    sections = [part for part in (annotation, *get_args(annotation)) if isinstance(part, type)]
    return [key for part in sections if issubclass(part, BaseModel) for key in part.model_fields]


def _all_keys() -> set[str]:
    return {*Experiment.model_fields, *RangeSection.model_fields}.union(
        *(_known_keys((name,)) for name in Experiment.model_fields)
    )
