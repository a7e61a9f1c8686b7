"""Every method, listed once.

A method is a file of this folder that ends in `METHOD`; a method of a user's own is named by where it is,
"my_package.my_module:my_method", and is a `Method` or a factory of algorithms.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from murmurcast import _check
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.algorithms.method import Method

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
_UNKNOWN = "it brings no account: nothing can be recomputed from its ledger"


def methods() -> "tuple[Method, ...]":
    """All methods of the house."""
    return tuple(find(name) for name in NAMES)


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

    found = _check.own_code(name, "method")
    if isinstance(found, Method):
        return found._replace(name=name)
    if callable(found):
        return Method(name, found, (found.__doc__ or "").partition("\n")[0], _UNKNOWN, reference="your own")
    raise Error(
        f'"{name}" is {type(found).__name__}, expected a method',
        hint="name a murmurcast.testing.Method, or a function that makes an algorithm of a setup",
    )
