"""The instances of tests/reference/radio.json: link budgets, trajectories with given noise, divisors, diagnostics."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).parents[1] / "reference" / "radio.json"


class Instance(NamedTuple):
    name: str
    kind: str
    inputs: dict[str, Any]
    expected: dict[str, Any]


def instances(kind: str) -> list[Instance]:
    result = [
        Instance(one["name"], one["kind"], _arrays(one["inputs"]), _arrays(one["expected"]))
        for one in json.loads(FILE.read_text())["instances"]
    ]
    return [one for one in result if one.kind == kind]


def require_equal(result: Any, expected: Any) -> None:
    """To 1e-9 of the largest entry."""
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-9 * float(np.abs(expected).max()))


def _arrays(values: dict[str, Any]) -> dict[str, Any]:
    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return np.array(value["re"]) + 1j * np.array(value["im"])
        return np.array(value) if isinstance(value, list) and not isinstance(value[0], str) else value

    return {name: value if name == "observers" else of(value) for name, value in values.items()}
