"""`murmurcast methods`: every method, what it promises, what it needs."""

import inspect
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast.cli._options import AsJson, echo_json

if TYPE_CHECKING:
    from murmurcast.algorithms.method import Method, Option


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="One method, in full. Default: all.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List every method: what it does, promises to whom, uses of the channel, and asks of a network.

    Named alone, a method is shown in full: its equations, its options, the formula of its account and its reference. A
    method of your own needs no place in this list: name it package.module:name in [algorithm].

    Examples:
        murmurcast methods

        murmurcast methods power-controlled-diffusion

        murmurcast methods --json

        murmurcast run digits.toml --set algorithm.name=decor
    """
    from murmurcast.algorithms import registry

    listed = registry.methods() if name is None else (registry.find(name),)
    if as_json:
        echo_json({"methods": [_as_dict(method) for method in listed]})
        return
    if name is not None:
        _show_one(listed[0])
        return
    from murmurcast.reports import text_tables

    rows = [(method.name, method.summary, _promise(method), method.uses) for method in listed]
    note = (
        "uses: of the channel per epoch, by air. slots: as many as receivers (or senders) need that may not be served "
        "at once.\nEquations, needs, options and references: murmurcast methods METHOD"
    )
    headings = ("method", "what it does", "promise", "uses")
    text_tables.show_table(text_tables.console(), "Methods", rows, headings, note)


def _show_one(method: "Method") -> None:
    from murmurcast.reports import text_tables

    console, options = text_tables.console(), method.options
    module = inspect.getmodule(method.make)
    console.print(inspect.cleandoc((module.__doc__ if module else None) or method.summary), markup=False)
    lines = {
        "promise": _promise(method),
        "else": f"none: {method.otherwise}" if method.otherwise else "",
        "formula": "" if method.reason else method.formula,
        "needs": method.needs or "any network",
        "reference": method.reference,
    }
    console.print()
    for word, text in lines.items():
        if text:
            console.print(f"{word:10} {text}", markup=False)
    if options:
        rows = [(option.name, _default(option), " | ".join(option.choices) or "number") for option in options]
        text_tables.show_table(console, "Options", rows, ("option", "default", "may be"), "in [algorithm] of a file")


def _promise(method: "Method") -> str:
    return f"none: {method.reason}" if method.reason else method.promises


def _default(option: "Option") -> str:
    if option.choices:
        return str(option.default)
    return f"{option.default:g}" if math.isfinite(option.default) else "not known"


def _as_dict(method: "Method") -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "promises": method.promises or None,
        "reason": method.reason or None,
        "otherwise": method.otherwise or None,
        "formula": None if method.reason else method.formula,
        "uses": method.uses,
        "needs": method.needs or None,
        "needs_plan": method.needs_plan,
        "secure_noise": method.secure,
        "projects": method.projects,
        "options": {
            option.name: {
                "default": option.default if option.choices or math.isfinite(option.default) else None,
                "choices": list(option.choices) or None,
            }
            for option in method.options
        },
        "reference": method.reference,
    }
