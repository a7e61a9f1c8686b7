"""JSON as this package writes it: numbers that are not finite, which JSON does not know, become null."""

import json
import math
from typing import Any


def json_text(values: dict[str, Any], indent: int | None = None) -> str:
    """One JSON object."""
    return json.dumps(finite(values), allow_nan=False, indent=indent)


def finite(value: Any) -> Any:
    """The value without what JSON does not know."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
