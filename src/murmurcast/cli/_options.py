"""What several commands take."""

from typing import Annotated

import typer

from murmurcast.errors import Error

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, such as privacy.epsilon=2. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def overrides(sets: list[str] | None) -> dict[str, str]:
    """The values of --set by their keys."""
    return dict(_split(item) for item in sets or [])


def _split(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise Error(f'--set {item}: there is no "="', hint="write --set section.key=value, such as privacy.epsilon=2")
    return key.strip(), value.strip()
