"""Plan, train, certify and audit private learning over the air, without a server.

The catalogue: every public name, each imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from murmurcast.algorithms.base import Algorithm
    from murmurcast.algorithms.central_dp import central_dp
    from murmurcast.algorithms.decor import decor
    from murmurcast.algorithms.frost import frost
    from murmurcast.algorithms.local_only import local_only
    from murmurcast.algorithms.mped2fl import mped2fl
    from murmurcast.algorithms.noiseless import noiseless
    from murmurcast.algorithms.orthogonal import orthogonal
    from murmurcast.algorithms.ped2fl import ped2fl
    from murmurcast.algorithms.power_controlled import power_controlled
    from murmurcast.algorithms.push_pull import push_pull
    from murmurcast.audits.audit import AuditOptions, audit
    from murmurcast.audits.verdict import Audit
    from murmurcast.certificates.compare import compare
    from murmurcast.data import datasets
    from murmurcast.errors import Error, Infeasible, NotConnected
    from murmurcast.experiments.build import Experiment
    from murmurcast.experiments.certify import certify
    from murmurcast.experiments.load import load
    from murmurcast.experiments.rank import RankOptions, rank
    from murmurcast.network import gains, topologies
    from murmurcast.network import weights as mixing
    from murmurcast.network.files import read_gains
    from murmurcast.network.graph import Network
    from murmurcast.network.weights import Mixing, mixing_rate
    from murmurcast.planning.plan import Plan, PowerRule
    from murmurcast.planning.schedule import Schedule
    from murmurcast.planning.setup import Budget, ClippedGradients, Setup
    from murmurcast.planning.solve import plan
    from murmurcast.privacy import gaussian
    from murmurcast.privacy.certificate import Certificate
    from murmurcast.privacy.coalitions import Collusion
    from murmurcast.privacy.linear import Linear
    from murmurcast.privacy.paper import PaperClaim
    from murmurcast.problems.model import Model
    from murmurcast.problems.quadratic import Quadratic
    from murmurcast.problems.ridge import RidgeRegression
    from murmurcast.problems.softmax import SoftmaxRegression
    from murmurcast.reports import plots as figures
    from murmurcast.reports.runs import report
    from murmurcast.runs.result import Result, load_run
    from murmurcast.runs.run import RunOptions, run

_HOME = {
    "Algorithm": "algorithms.base",
    "Audit": "audits.verdict",
    "AuditOptions": "audits.audit",
    "Budget": "planning.setup",
    "Certificate": "privacy.certificate",
    "ClippedGradients": "planning.setup",
    "Collusion": "privacy.coalitions",
    "Error": "errors",
    "Experiment": "experiments.build",
    "Infeasible": "errors",
    "Linear": "privacy.linear",
    "Mixing": "network.weights",
    "Model": "problems.model",
    "Network": "network.graph",
    "NotConnected": "errors",
    "PaperClaim": "privacy.paper",
    "Plan": "planning.plan",
    "PowerRule": "planning.plan",
    "Quadratic": "problems.quadratic",
    "RankOptions": "experiments.rank",
    "Result": "runs.result",
    "RidgeRegression": "problems.ridge",
    "RunOptions": "runs.run",
    "Schedule": "planning.schedule",
    "Setup": "planning.setup",
    "SoftmaxRegression": "problems.softmax",
    "audit": "audits.audit",
    "central_dp": "algorithms.central_dp",
    "certify": "experiments.certify",
    "compare": "certificates.compare",
    "datasets": "data.datasets",
    "decor": "algorithms.decor",
    "figures": "reports.plots",
    "frost": "algorithms.frost",
    "gains": "network.gains",
    "gaussian": "privacy.gaussian",
    "load": "experiments.load",
    "load_run": "runs.result",
    "local_only": "algorithms.local_only",
    "mixing": "network.weights",
    "mixing_rate": "network.weights",
    "mped2fl": "algorithms.mped2fl",
    "noiseless": "algorithms.noiseless",
    "orthogonal": "algorithms.orthogonal",
    "ped2fl": "algorithms.ped2fl",
    "plan": "planning.solve",
    "power_controlled": "algorithms.power_controlled",
    "push_pull": "algorithms.push_pull",
    "rank": "experiments.rank",
    "read_gains": "network.files",
    "report": "reports.runs",
    "run": "runs.run",
    "topologies": "network.topologies",
}
_MODULES = ("datasets", "figures", "gains", "gaussian", "mixing", "topologies")

__all__ = [
    "Algorithm",
    "Audit",
    "AuditOptions",
    "Budget",
    "Certificate",
    "ClippedGradients",
    "Collusion",
    "Error",
    "Experiment",
    "Infeasible",
    "Linear",
    "Mixing",
    "Model",
    "Network",
    "NotConnected",
    "PaperClaim",
    "Plan",
    "PowerRule",
    "Quadratic",
    "RankOptions",
    "Result",
    "RidgeRegression",
    "RunOptions",
    "Schedule",
    "Setup",
    "SoftmaxRegression",
    "audit",
    "central_dp",
    "certify",
    "compare",
    "datasets",
    "decor",
    "figures",
    "frost",
    "gains",
    "gaussian",
    "load",
    "load_run",
    "local_only",
    "mixing",
    "mixing_rate",
    "mped2fl",
    "noiseless",
    "orthogonal",
    "ped2fl",
    "plan",
    "power_controlled",
    "push_pull",
    "rank",
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
