"""Every method, listed once.

A method is a file of this folder that ends in `METHOD`; a method of a user's own is named by where it is,
"my_package.my_module:my_method", and is a `Method` or a factory of algorithms.
"""

import inspect
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from murmurcast import _check
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.algorithms.base import Algorithm
    from murmurcast.algorithms.method import Make, Method

Feature = Literal["secure", "drops", "projects", "free_rounds", "counts_coins", "radio"]  # fields of `Method`

# Hyphens instead of underscores make the names; the order is that of every list.
_HOMES = (
    "power_controlled",
    "orthogonal",
    "power_controlled_diffusion",
    "dp_dsgd",
    "subgradient_push_gaussian",
    "row_stochastic_laplace",
    "private_frost",
    "private_push_pull",
    "private_gradient_tracking",
    "private_exact_diffusion",
    "muffliato",
    "mafalda",
    "decor",
    "decor_exact_diffusion",
    "locally_balanced",
    "mped2fl",
    "ped2fl",
    "dwfl",
    "noiseless",
    "dsgd",
    "row_stochastic",
    "subgradient_push",
    "frost",
    "push_pull",
    "gradient_tracking",
    "exact_diffusion",
    "local_only",
    "central_dp",
)
NAMES = tuple(home.replace("_", "-") for home in _HOMES)
DEFAULT = NAMES[0]  # the paper's own
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WHAT_A_METHOD_IS = "name a murmurcast.testing.Method, or a function that makes an Algorithm of a setup or a plan"
_UNKNOWN = "it brings no account: nothing can be recomputed from its ledger"


def methods() -> "tuple[Method, ...]":
    """All methods of the house."""
    return tuple(find(name) for name in NAMES)


def names_that(feature: Feature) -> str:
    """The methods of the house that can do something, in words: a way out where another cannot."""
    *others, last = [method.name for method in methods() if getattr(method, feature)]
    return f"{', '.join(others)} or {last}" if others else last


def find(name: str) -> "Method":
    """A method by its name, or by where it is."""
    if ":" in name:
        return own(name)
    if name not in NAMES:
        raise Error(
            f'there is no method "{name}"',
            hint=f"{_check.nearest(name, NAMES)} A method of your own is named package.module:name",
        )
    method: Method = import_module(f"murmurcast.algorithms.{name.replace('-', '_')}").METHOD
    return method


def own(name: str) -> "Method":
    """A method of a user's own, from package.module:name."""
    from murmurcast.algorithms.method import Method

    named = _check.own_code(name, "method")
    if isinstance(named, Method):
        return named._replace(name=name, make=_checked_maker(name, named.make))
    if callable(named):
        summary = (named.__doc__ or "").partition("\n")[0]
        return Method(name, _checked_maker(name, named), summary, _UNKNOWN, reference="your own")
    raise Error(f'"{name}" is {type(named).__name__}, expected a method', hint=_WHAT_A_METHOD_IS)


def _checked_maker(name: str, make: "Make") -> "Make":
    """The factory, with an error and a way out where it takes or gives something else, or fails."""
    try:
        takes_setup = any(one.kind in _BY_PLACE for one in inspect.signature(make).parameters.values())
    except (TypeError, ValueError):  # something built in
        takes_setup = False
    if not takes_setup:
        raise Error(f'"{name}" takes no setup', hint=_WHAT_A_METHOD_IS)

    @wraps(make)
    def checked(setup: Any, /, **options: Any) -> "Algorithm":
        from murmurcast.algorithms.base import Algorithm

        try:
            algorithm = make(setup, **options)
        except Error:
            raise
        except Exception as problem:  # noqa: BLE001 - their code may fail in any way
            raise Error(
                f'"{name}" could not make an algorithm: {type(problem).__name__}: {_check.short(problem)}',
                hint="murmurcast.testing.check_algorithm tries it step by step, with the whole traceback",
            ) from None
        if not isinstance(algorithm, Algorithm):
            raise Error(f'"{name}" made {type(algorithm).__name__}, expected an Algorithm', hint=_WHAT_A_METHOD_IS)
        return algorithm

    return checked
