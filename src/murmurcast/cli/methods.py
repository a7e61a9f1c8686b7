"""`murmurcast methods`: every method, what it promises, what it needs."""

from typing import TYPE_CHECKING, Any

from murmurcast.cli._options import AsJson, echo_json

if TYPE_CHECKING:
    from murmurcast.algorithms.method import Method


def methods(as_json: AsJson = False) -> None:
    """List every method: what it does, what it promises, its options, what it asks of a network.

    A method of your own needs no place in this list: name it package.module:name in [algorithm].

    Examples:
        murmurcast methods

        murmurcast methods --json

        murmurcast run digits.toml --set algorithm.name=decor
    """
    from murmurcast.algorithms import registry

    listed = registry.methods()
    if as_json:
        echo_json({"methods": [_as_dict(method) for method in listed]})
        return
    from murmurcast.cli import _tables

    rows = [
        (method.name, method.summary, _promise(method), _options(method), method.needs or "any network")
        for method in listed
    ]
    note = "options: the first is the default; set them in [algorithm] of an experiment file"
    headings = ("method", "what it does", "promise", "options", "needs")
    _tables.show_table(_tables.console(), "Methods", rows, headings, note)


def _promise(method: "Method") -> str:
    return f"none: {method.reason}" if method.reason else method.promises


def _options(method: "Method") -> str:
    shown = (
        f"{option.name} = {' | '.join(_default_first(option.choices, option.default)) or f'{option.default:g}'}"
        for option in method.options
    )
    return ", ".join(shown) or "none"


def _default_first(choices: tuple[str, ...], default: str) -> list[str]:
    return sorted(choices, key=lambda choice: choice != default)


def _as_dict(method: "Method") -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "promises": method.promises or None,
        "reason": method.reason or None,
        "needs": method.needs or None,
        "needs_plan": method.needs_plan,
        "secure_noise": method.secure,
        "options": {
            option.name: {"default": option.default, "choices": list(option.choices) or None}
            for option in method.options
        },
        "reference": method.reference,
    }
