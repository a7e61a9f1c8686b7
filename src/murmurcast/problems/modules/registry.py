"""Every module, listed once.

A module of a user's own is named by where it is, "my_package.my_nets:small_cnn": a function that takes `features`,
`outputs` and options and returns whatever `Model` takes as its module.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from murmurcast import _check
from murmurcast.data.base import Dataset
from murmurcast.errors import Error
from murmurcast.problems.losses import outputs_for
from murmurcast.problems.modules.convert import library_of
from murmurcast.problems.modules.shipped import SHIPPED


def build(name: str, dataset: Dataset, options: Mapping[str, Any], seed: int) -> Any:
    """A module for this set, by its name or by where it is.

    Args:
        name: One of `SHIPPED`, or package.module:name.
        dataset: What it is to learn; only its public shape is looked at.
        options: The module's own.
        seed: Where PyTorch begins to draw weights from: it has no keys.
    """
    make = _check.own_code(name, "module") if ":" in name else _shipped(name)
    if library_of(make) is not None:
        if options:
            raise Error(f'"{name}" is a module and takes no options', hint="remove problem.options")
        return make
    if not callable(make):
        raise Error(
            f'"{name}" is {type(make).__name__}, expected a module or a function that makes one',
            hint="let it take features, outputs and options, and return a module",
        )
    _require_options(name, make, options)
    with _seeded(seed):
        return _build_module(name, make, dataset, options)


def _build_module(name: str, make: Any, dataset: Dataset, options: Mapping[str, Any]) -> Any:
    """What a function makes for this set; whatever goes wrong in one that is not ours is said in our words."""
    try:
        return make(dataset.features.shape[1], outputs_for(dataset), **options)
    except Error:
        raise
    except Exception as problem:  # noqa: BLE001 - their code may fail in any way
        raise Error(
            f'the module "{name}" cannot be made: {type(problem).__name__}: {_check.short(problem)}',
            hint=f"it was called with {dataset.features.shape[1]} features, {outputs_for(dataset)} outputs and the "
            "options of problem.options: check these, and try it by hand",
        ) from None


def _shipped(name: str) -> Any:
    if name not in SHIPPED:
        raise Error(
            f'there is no module "{name}"',
            hint=f"{_check.nearest(name, SHIPPED)} A module of your own is named package.module:name",
        )
    return SHIPPED[name]


def _require_options(name: str, make: Any, options: Mapping[str, Any]) -> None:
    """The function takes the data's shape and these options."""
    try:
        taken = inspect.signature(make)
    except (TypeError, ValueError):  # some functions of C have none
        raise Error(
            f'"{name}" does not say what it takes, so nobody knows whether it makes modules',
            hint="write a function in Python that takes features, outputs and options, and returns a module",
        ) from None
    try:
        taken.bind(1, 1, **options)
    except TypeError as problem:
        known = [one.name for one in taken.parameters.values() if one.kind == one.KEYWORD_ONLY]
        raise Error(
            f'the module "{name}" cannot be made: {problem}',
            hint=f"its options are {', '.join(known) or 'none'}; it takes features and outputs before them",
        ) from None


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """PyTorch, where it is loaded, draws from this seed; what drew before goes on as if nothing had been drawn."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    generator = torch.default_generator  # torchax replaces the functions that would do the same
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)
