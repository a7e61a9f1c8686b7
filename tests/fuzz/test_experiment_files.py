"""`plan` on experiment files that are not as they should be: a sound plan, or an error with a way out."""

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.corruptions import STAND_INS, VALUES, WORDS, call, fuzz, replaced, spoilt, stand_in
from tests.fuzz.plans import require_sound

WHOLE: dict[str, Any] = {
    "network": {"gains": [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]], "power": [1.0, 2.0, 0.5], "z": "recursive"},
    "privacy": {"epsilon": 3.0, "delta": 1e-5, "target": "certificate", "unit": "node", "clip": 1.0},
    "schedule": {"epochs": 12, "step": 0.5, "decay": "sqrt", "noise_timing": "paper"},
    "power": {"objective": "sum", "min": 0.01, "max": 0.99, "alpha": 0.5},
    "problem": {"kind": "softmax", "dim": 5, "radius": 2.0},
    "algorithm": {"name": "power-controlled", "gradient_at": "mixed"},
    "run": {"seeds": [0, 1], "precision": "float32"},
}
# Keys that replace or join those of WHOLE, so that every one of the format's keys is spoilt sooner or later.
SHAPES: list[dict[str, dict[str, Any]]] = [
    {},
    {"network": {"topology": "ring", "nodes": 5, "gain": {"kind": "uniform", "low": 0.3, "high": 1.0}, "seed": 1}},
    {"network": {"topology": "grid", "rows": 2, "columns": 3, "gain": {"kind": "rayleigh"}}},
    {"network": {"topology": "erdos-renyi", "nodes": 6, "probability": 0.9, "gain": {"kind": "rician"}}},
    {"network": {"topology": "geometric", "nodes": 6, "radius": 0.9, "gain": {"kind": "log-distance"}}},
    {"privacy": {"target": "per-epoch", "epsilon": 1.0, "theta": 9.0}, "schedule": {"noise_to_step": 10.0}},
    {"privacy": {"target": "per-epoch", "epsilon": 1.0}, "power": {"objective": "noise"}},
    {"privacy": {"unit": "record", "examples_per_node": [10, 20, 30]}, "schedule": {"noise_to_step": [5.0, 6.0, 7.0]}},
    {"network": {"normaliser": 4, "z": "perron"}, "power": {"objective": "max-min", "alpha": [0.3, 0.4, 0.5]}},
    {
        "privacy": {"unit": "record"},
        "data": {"name": "logistic", "examples": 60, "features": 2, "classes": 2, "partition": {"kind": "iid"}},
        "problem": {"l2": 0.1, "dim": 6},
    },
]


def joined(shape: dict[str, dict[str, Any]]) -> dict[str, Any]:
    built = {section: dict(keys) for section, keys in WHOLE.items()}
    for section, keys in shape.items():
        own = {} if section == "network" and "topology" in keys else built.get(section, {})
        built[section] = own | keys
    return built


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("experiments")
    (built / "my.toml").write_text(tomli_w.dumps(WHOLE))
    return built


def test_all_shapes_are_plans(folder: Path) -> None:
    for shape in SHAPES:
        with replaced(folder / "my.toml", tomli_w.dumps(joined(shape)).encode()):
            assert call("plan", "my.toml", "--json", folder=folder).code == 0, shape
            assert call("plan", "my.toml", "--observer", "0", folder=folder).code == 0, shape


@given(data=st.data())
@fuzz(150)
def test_any_accident(folder: Path, data: st.DataObject) -> None:
    whole = tomli_w.dumps(joined(data.draw(st.sampled_from(SHAPES)))).encode()
    with replaced(folder / "my.toml", data.draw(spoilt(whole))):
        require_sound(call("plan", "my.toml", "--json", folder=folder), folder / "my.toml")


def edited(data: st.DataObject, values: dict[str, Any]) -> dict[str, Any]:
    """One entry dropped, added or replaced, at any depth."""
    place: Any = values
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        break
    what = data.draw(st.sampled_from(["replace", "replace", "replace", "drop", "add"]))
    if what == "drop":
        del place[key]
    elif what == "add" and isinstance(place, dict):
        place[data.draw(WORDS)] = data.draw(VALUES)
    else:
        place[key] = data.draw(VALUES)
    return values


@given(data=st.data())
@fuzz(150)
def test_any_value(folder: Path, data: st.DataObject) -> None:
    values = json.loads(json.dumps(joined(data.draw(st.sampled_from(SHAPES)))))
    for _ in range(data.draw(st.integers(1, 2))):
        values = edited(data, values)
    with replaced(folder / "my.toml", tomli_w.dumps(values).encode()):
        require_sound(call("plan", "my.toml", "--json", folder=folder), folder / "my.toml")
        call("plan", "my.toml", folder=folder)


KEYS = [f"{section}.{key}" for shape in SHAPES for section, keys in joined(shape).items() for key in keys]


@given(key=st.sampled_from(KEYS) | WORDS, value=VALUES.map(lambda value: tomli_w.dumps({"v": value})[4:]) | WORDS)
@fuzz(150)
def test_any_override(folder: Path, key: str, value: str) -> None:
    if "\x00" in key + value:
        return  # no operating system passes it on
    done = call("plan", "my.toml", "--json", "--set", f"{key}={value}", folder=folder)
    if "=" not in key:
        require_sound(done, folder / "my.toml", {key.strip(): value.strip()})


@pytest.mark.parametrize("kind", STAND_INS)
def test_something_else_in_its_place(folder: Path, kind: str) -> None:
    with stand_in(folder / "my.toml", kind):
        assert call("plan", "my.toml", "--json", folder=folder).code == 2
        assert call("run", "my.toml", "--json", folder=folder).code == 2
    assert [entry.name for entry in folder.iterdir()] == ["my.toml"]


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from(SHAPES))
@fuzz(20)
def test_order_comments_and_space_change_nothing(folder: Path, seed: int, shape: dict[str, Any]) -> None:
    values = joined(shape)
    with replaced(folder / "my.toml", tomli_w.dumps(values).encode()):
        expected = call("plan", "my.toml", "--json", folder=folder)
    mixer = random.Random(seed)  # noqa: S311 - no secret depends on it

    def shuffled(inner: dict[str, Any]) -> dict[str, Any]:
        items = list(inner.items())
        mixer.shuffle(items)
        return {key: shuffled(value) if isinstance(value, dict) else value for key, value in items}

    text = "\ufeff# a word\r\n" + tomli_w.dumps(shuffled(values)).replace("\n", "   # more\r\n\r\n")
    text = text.replace("[   # more", "[").replace(",   # more", ",")
    try:
        assert tomllib.loads(text[1:]) == values
    except tomllib.TOMLDecodeError:
        text = tomli_w.dumps(shuffled(values))
    with replaced(folder / "my.toml", text.encode()):
        assert call("plan", "my.toml", "--json", folder=folder) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[network]\ngains" + ".a" * 50_000 + " = 1\n[privacy]\nepsilon = 1.0\n",
        "[network]\ngains" + ".a" * 2_000 + " = 1\n[privacy]\nepsilon = 1.0\n",
        "[network]\ngains = " + "[" * 200 + "]" * 200 + "\n[privacy]\nepsilon = 1.0\n",
        "a = " + "[" * 100_000,
        "a = " + "{a=" * 50_000,
        "[run]\nseeds = 0x" + "f" * 6_000,
        "[run]\nseeds = " + "9" * 6_000,
        '"' + "k" * 100_000 + '" = 1',
        "[privacy]\nepsilon = 1979-05-27T07:32:00Z",
    ],
    ids=lambda text: text[:25],
)
def test_depth_and_length(folder: Path, text: str) -> None:
    with replaced(folder / "my.toml", text.encode()):
        done = call("plan", "my.toml", "--json", folder=folder)
    assert done.code == 2
    assert len(done.err) < 10_000


@pytest.mark.parametrize("key", ["a." * 3_000 + "b", "privacy." + "b" * 100_000])
def test_overrides_of_any_length(folder: Path, key: str) -> None:
    done = call("plan", "my.toml", "--set", f"{key}=1", folder=folder)
    assert done.code == 2
    assert len(done.err) < 10_000
