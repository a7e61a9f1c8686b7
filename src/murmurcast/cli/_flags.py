"""Help in which a flag stands alone: it takes no value, so none is named beside it."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose flags are shown without a type."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, flags without a word for their value."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """The same of the command that has all others below it."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, flags without a word for their value."""
        return _without_types(super().get_params(ctx))


def _without_types(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters
