"""An experiment file with some values changed, and all else as its author wrote it, comments too."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from murmurcast.data.files import FORMATS

HEADER = "# Settings chosen by murmurcast tune"
Changes = dict[tuple[str, str], Any]
_SECTION = re.compile(r"^\s*\[\s*(?P<name>[\w-]+)\s*\]\s*(#.*)?$")
_ANY_SECTION = re.compile(r"^\s*\[")
_PATHS = (("network", "file"), ("radio", "trace"), ("data", "name"))


class TunedFile(NamedTuple):
    """The text of a file.

    Attributes:
        text: TOML.
        comments_kept: Whether the author's comments and order are still there.
    """

    text: str
    comments_kept: bool


def tuned_file(text: str, changes: Changes, header: str) -> TunedFile:
    """The file with these values, and a line of comment above it.

    Values are changed where they stand. Where a file is written in a way that this cannot follow, such as a section in
    braces, it is written anew from its values, and comments are lost.

    Args:
        text: The file as it is.
        changes: New values by section and key; None leaves the key out.
        header: What the first line says.
    """
    wanted = _changed(tomllib.loads(text), changes)
    lines = [line for line in text.splitlines() if not line.startswith(HEADER)]
    for (section, key), value in changes.items():
        lines = _edited(lines, section, key, value)
    top = "".join(sign if sign.isprintable() else " " for sign in f"{HEADER} {header}").rstrip()  # on one line
    edited = "\n".join([top, *lines]) + "\n"
    if _reads_as(edited, wanted):
        return TunedFile(edited, comments_kept=True)
    import tomli_w

    return TunedFile(f"{top}\n{tomli_w.dumps(wanted)}", comments_kept=False)


def moved_paths(values: dict[str, Any], before: Path, after: Path) -> Changes:
    """What relative paths in a file become when it moves from one folder to another."""
    if before.resolve() == after.resolve():
        return {}
    moved: Changes = {}
    for section, key in _PATHS:
        name = values.get(section, {}).get(key)
        is_path = isinstance(name, str) and not os.path.isabs(name)
        if is_path and (section != "data" or Path(name).suffix in FORMATS):
            moved[section, key] = os.path.relpath((before / name).resolve(), after.resolve())
    return moved


def _changed(values: dict[str, Any], changes: Changes) -> dict[str, Any]:
    sections = {name: dict(part) if isinstance(part, dict) else part for name, part in values.items()}
    for (section, key), value in changes.items():
        part = sections.setdefault(section, {})
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value
    return sections


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _edited(lines: list[str], section: str, key: str, value: Any) -> list[str]:
    """The lines with one value changed, added to its section, or in a section of its own at the end."""
    span = _span(lines, section)
    if span is None:
        return lines if value is None else [*lines, "", f"[{section}]", f"{key} = {_toml(value)}"]
    first, last = span
    pattern = re.compile(rf"^(?P<before>\s*{re.escape(key)}\s*=\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^\s#]+)(?P<after>.*)$")
    for at in range(first, last):
        if match := pattern.match(lines[at]):
            new = [] if value is None else [match["before"] + _toml(value) + _aligned(match, _toml(value))]
            return [*lines[:at], *new, *lines[at + 1 :]]
    while last > first and not lines[last - 1].strip():
        last -= 1
    return lines if value is None else [*lines[:last], f"{key} = {_toml(value)}", *lines[last:]]


def _aligned(match: "re.Match[str]", new: str) -> str:
    """What stands behind a value, a comment as a rule: in the column where it was, if there is room."""
    after = match["after"]
    comment = after.lstrip()
    if not comment:
        return ""
    column = len(match["before"]) + len(match["value"]) + len(after) - len(comment)
    return " " * max(2, column - len(match["before"]) - len(new)) + comment


def _span(lines: list[str], section: str) -> tuple[int, int] | None:
    """Where the section's own lines begin and end."""
    starts = [at for at, line in enumerate(lines) if (match := _SECTION.match(line)) and match["name"] == section]
    if not starts:
        return None
    first = starts[0] + 1
    ends = (at for at in range(first, len(lines)) if _ANY_SECTION.match(lines[at]))
    return first, next(ends, len(lines))


def _toml(value: Any) -> str:
    """One value as TOML writes it."""
    import tomli_w

    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")
