"""Plan, train, certify and audit private learning over the air, without a server.

The catalogue: every public name, each imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from murmurcast import figures
    from murmurcast.algorithms.base import Algorithm
    from murmurcast.algorithms.central_dp import central_dp
    from murmurcast.algorithms.local_only import local_only
    from murmurcast.algorithms.mped2fl import mped2fl
    from murmurcast.algorithms.noiseless import noiseless
    from murmurcast.algorithms.ped2fl import ped2fl
    from murmurcast.algorithms.power_controlled import power_controlled
    from murmurcast.auditing import Audit, audit
    from murmurcast.certification import certify
    from murmurcast.comparison import compare
    from murmurcast.config import load
    from murmurcast.data import datasets
    from murmurcast.errors import Error, Infeasible, NotConnected
    from murmurcast.experiment import Experiment
    from murmurcast.network import gains, mixing, topologies
    from murmurcast.network.files import read_gains
    from murmurcast.network.graph import Network
    from murmurcast.network.mixing import Mixing, mixing_rate
    from murmurcast.planner import plan
    from murmurcast.plans import Budget, ClippedGradients, Plan, PowerRule
    from murmurcast.privacy import gaussian
    from murmurcast.privacy.certificate import Certificate
    from murmurcast.privacy.collusion import Collusion
    from murmurcast.privacy.linear import Linear
    from murmurcast.privacy.per_epoch import PaperClaim
    from murmurcast.problems.quadratic import Quadratic
    from murmurcast.problems.ridge import RidgeRegression
    from murmurcast.problems.softmax import SoftmaxRegression
    from murmurcast.reports.runs import report
    from murmurcast.results import Result, load_run
    from murmurcast.runner import run
    from murmurcast.schedule import Schedule

_HOME = {
    "Algorithm": "algorithms.base",
    "Audit": "auditing",
    "Budget": "plans",
    "Certificate": "privacy.certificate",
    "ClippedGradients": "plans",
    "Collusion": "privacy.collusion",
    "Error": "errors",
    "Experiment": "experiment",
    "Infeasible": "errors",
    "Linear": "privacy.linear",
    "Mixing": "network.mixing",
    "Network": "network.graph",
    "NotConnected": "errors",
    "PaperClaim": "privacy.per_epoch",
    "Plan": "plans",
    "PowerRule": "plans",
    "Quadratic": "problems.quadratic",
    "Result": "results",
    "RidgeRegression": "problems.ridge",
    "Schedule": "schedule",
    "SoftmaxRegression": "problems.softmax",
    "audit": "auditing",
    "central_dp": "algorithms.central_dp",
    "certify": "certification",
    "compare": "comparison",
    "datasets": "data.datasets",
    "figures": "figures",
    "gains": "network.gains",
    "gaussian": "privacy.gaussian",
    "load": "config",
    "load_run": "results",
    "local_only": "algorithms.local_only",
    "mixing": "network.mixing",
    "mixing_rate": "network.mixing",
    "mped2fl": "algorithms.mped2fl",
    "noiseless": "algorithms.noiseless",
    "ped2fl": "algorithms.ped2fl",
    "plan": "planner",
    "power_controlled": "algorithms.power_controlled",
    "read_gains": "network.files",
    "report": "reports.runs",
    "run": "runner",
    "topologies": "network.topologies",
}
_MODULES = ("datasets", "figures", "gains", "gaussian", "mixing", "topologies")

__all__ = [
    "Algorithm",
    "Audit",
    "Budget",
    "Certificate",
    "ClippedGradients",
    "Collusion",
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
    "Quadratic",
    "Result",
    "RidgeRegression",
    "Schedule",
    "SoftmaxRegression",
    "audit",
    "central_dp",
    "certify",
    "compare",
    "datasets",
    "figures",
    "gains",
    "gaussian",
    "load",
    "load_run",
    "local_only",
    "mixing",
    "mixing_rate",
    "mped2fl",
    "noiseless",
    "ped2fl",
    "plan",
    "power_controlled",
    "read_gains",
    "report",
    "run",
    "topologies",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"murmurcast has no {name!r}")
    home = import_module(f"murmurcast.{_HOME[name]}")
    return home if name in _MODULES else getattr(home, name)


def __dir__() -> list[str]:
    return __all__
