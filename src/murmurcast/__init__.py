"""Plan, train, certify and audit private learning over the air, without a server.

The catalogue: every public name, each imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from murmurcast import figures
    from murmurcast.config import Experiment, load
    from murmurcast.errors import Error, Infeasible, NotConnected
    from murmurcast.network import gains, mixing, topologies
    from murmurcast.network.files import read_gains
    from murmurcast.network.graph import Network
    from murmurcast.network.mixing import Mixing, mixing_rate
    from murmurcast.planner import plan
    from murmurcast.plans import Budget, ClippedGradients, Plan, PowerRule
    from murmurcast.privacy import gaussian
    from murmurcast.privacy.certificate import Certificate
    from murmurcast.privacy.linear import Linear
    from murmurcast.privacy.per_epoch import PaperClaim
    from murmurcast.schedule import Schedule

_HOME = {
    "Budget": "plans",
    "Certificate": "privacy.certificate",
    "ClippedGradients": "plans",
    "Error": "errors",
    "Experiment": "config",
    "Infeasible": "errors",
    "Linear": "privacy.linear",
    "Mixing": "network.mixing",
    "Network": "network.graph",
    "NotConnected": "errors",
    "PaperClaim": "privacy.per_epoch",
    "Plan": "plans",
    "PowerRule": "plans",
    "Schedule": "schedule",
    "figures": "figures",
    "gains": "network.gains",
    "gaussian": "privacy.gaussian",
    "load": "config",
    "mixing": "network.mixing",
    "mixing_rate": "network.mixing",
    "plan": "planner",
    "read_gains": "network.files",
    "topologies": "network.topologies",
}
_MODULES = ("figures", "gains", "gaussian", "mixing", "topologies")

__all__ = [
    "Budget",
    "Certificate",
    "ClippedGradients",
    "Error",
    "Experiment",
    "Infeasible",
    "Linear",
    "Mixing",
    "Network",
    "NotConnected",
    "PaperClaim",
    "Plan",
    "PowerRule",
    "Schedule",
    "figures",
    "gains",
    "gaussian",
    "load",
    "mixing",
    "mixing_rate",
    "plan",
    "read_gains",
    "topologies",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"murmurcast has no {name!r}")
    home = import_module(f"murmurcast.{_HOME[name]}")
    return home if name in _MODULES else getattr(home, name)


def __dir__() -> list[str]:
    return __all__
