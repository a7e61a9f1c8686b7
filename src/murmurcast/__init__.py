"""Plan, train, certify and audit private learning over the air, without a server.

The catalogue: every public name, each imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from murmurcast.algorithms.base import Algorithm as Algorithm
    from murmurcast.algorithms.central_dp import central_dp as central_dp
    from murmurcast.algorithms.decor import decor as decor
    from murmurcast.algorithms.decor_exact_diffusion import decor_exact_diffusion as decor_exact_diffusion
    from murmurcast.algorithms.dp_dsgd import dp_dsgd as dp_dsgd
    from murmurcast.algorithms.dsgd import dsgd as dsgd
    from murmurcast.algorithms.dwfl import dwfl as dwfl
    from murmurcast.algorithms.exact_diffusion import exact_diffusion as exact_diffusion
    from murmurcast.algorithms.frost import frost as frost
    from murmurcast.algorithms.gradient_tracking import gradient_tracking as gradient_tracking
    from murmurcast.algorithms.local_only import local_only as local_only
    from murmurcast.algorithms.locally_balanced import locally_balanced as locally_balanced
    from murmurcast.algorithms.mafalda import mafalda as mafalda
    from murmurcast.algorithms.mped2fl import mped2fl as mped2fl
    from murmurcast.algorithms.muffliato import muffliato as muffliato
    from murmurcast.algorithms.noiseless import noiseless as noiseless
    from murmurcast.algorithms.observed import Observed as Observed
    from murmurcast.algorithms.observed import observe as observe
    from murmurcast.algorithms.orthogonal import orthogonal as orthogonal
    from murmurcast.algorithms.ped2fl import ped2fl as ped2fl
    from murmurcast.algorithms.power_controlled import power_controlled as power_controlled
    from murmurcast.algorithms.power_controlled_diffusion import (
        power_controlled_diffusion as power_controlled_diffusion,
    )
    from murmurcast.algorithms.private_exact_diffusion import private_exact_diffusion as private_exact_diffusion
    from murmurcast.algorithms.private_frost import private_frost as private_frost
    from murmurcast.algorithms.private_gradient_tracking import private_gradient_tracking as private_gradient_tracking
    from murmurcast.algorithms.private_push_pull import private_push_pull as private_push_pull
    from murmurcast.algorithms.push_pull import push_pull as push_pull
    from murmurcast.algorithms.row_stochastic import row_stochastic as row_stochastic
    from murmurcast.algorithms.row_stochastic_laplace import row_stochastic_laplace as row_stochastic_laplace
    from murmurcast.algorithms.subgradient_push import subgradient_push as subgradient_push
    from murmurcast.algorithms.subgradient_push_gaussian import subgradient_push_gaussian as subgradient_push_gaussian
    from murmurcast.audits.audit import AuditOptions as AuditOptions
    from murmurcast.audits.audit import audit as audit
    from murmurcast.audits.verdict import Audit as Audit
    from murmurcast.data import datasets as datasets
    from murmurcast.data import features as features
    from murmurcast.errors import Error as Error
    from murmurcast.errors import Infeasible as Infeasible
    from murmurcast.errors import LongWork as LongWork
    from murmurcast.errors import NotConnected as NotConnected
    from murmurcast.experiments import display as display
    from murmurcast.experiments.build import Experiment as Experiment
    from murmurcast.experiments.certify import certify as certify
    from murmurcast.experiments.load import load as load
    from murmurcast.experiments.rank import RankOptions as RankOptions
    from murmurcast.experiments.rank import rank as rank
    from murmurcast.experiments.shown import compare as compare
    from murmurcast.experiments.shown import report as report
    from murmurcast.experiments.sweep import SweepOptions as SweepOptions
    from murmurcast.experiments.sweep import load_sweep as load_sweep
    from murmurcast.experiments.sweep import sweep as sweep
    from murmurcast.experiments.tune import TuneOptions as TuneOptions
    from murmurcast.experiments.tune import tune as tune
    from murmurcast.experiments.tuning import Tuning as Tuning
    from murmurcast.network import gains as gains
    from murmurcast.network import topologies as topologies
    from murmurcast.network import weights as mixing  # noqa: F401
    from murmurcast.network.files import read_gains as read_gains
    from murmurcast.network.graph import Network as Network
    from murmurcast.network.weights import Mixing as Mixing
    from murmurcast.network.weights import mixing_rate as mixing_rate
    from murmurcast.planning.plan import Plan as Plan
    from murmurcast.planning.plan import PowerRule as PowerRule
    from murmurcast.planning.preprocess import preprocess as preprocess
    from murmurcast.planning.schedule import Schedule as Schedule
    from murmurcast.planning.setup import Budget as Budget
    from murmurcast.planning.setup import ClippedGradients as ClippedGradients
    from murmurcast.planning.setup import Setup as Setup
    from murmurcast.planning.solve import plan as plan
    from murmurcast.planning.spend_uses import spend_uses as spend_uses
    from murmurcast.privacy import gaussian as gaussian
    from murmurcast.privacy.certificate import Certificate as Certificate
    from murmurcast.privacy.coalitions import Collusion as Collusion
    from murmurcast.privacy.linear import Linear as Linear
    from murmurcast.privacy.paper import PaperClaim as PaperClaim
    from murmurcast.problems.model import Model as Model
    from murmurcast.problems.modules import shipped as modules  # noqa: F401
    from murmurcast.problems.quadratic import Quadratic as Quadratic
    from murmurcast.problems.ridge import RidgeRegression as RidgeRegression
    from murmurcast.problems.softmax import SoftmaxRegression as SoftmaxRegression
    from murmurcast.radio.channel_files import from_ray_tracer as from_ray_tracer
    from murmurcast.radio.channel_files import read_channel as read_channel
    from murmurcast.radio.link_budget import LinkBudget as LinkBudget
    from murmurcast.radio.link_budget import link_budget as link_budget
    from murmurcast.radio.settings import Radio as Radio
    from murmurcast.radio.trace import ChannelTrace as ChannelTrace
    from murmurcast.reports import plots as figures  # noqa: F401
    from murmurcast.reports.progress import progress as progress
    from murmurcast.runs.result import Result as Result
    from murmurcast.runs.result import load_run as load_run
    from murmurcast.runs.run import RunOptions as RunOptions
    from murmurcast.runs.run import run as run
    from murmurcast.runs.sweep import Sweep as Sweep

_HOME = {
    "Algorithm": "algorithms.base",
    "Audit": "audits.verdict",
    "AuditOptions": "audits.audit",
    "Budget": "planning.setup",
    "Certificate": "privacy.certificate",
    "ChannelTrace": "radio.trace",
    "ClippedGradients": "planning.setup",
    "Collusion": "privacy.coalitions",
    "Error": "errors",
    "Experiment": "experiments.build",
    "Infeasible": "errors",
    "LongWork": "errors",
    "Linear": "privacy.linear",
    "LinkBudget": "radio.link_budget",
    "Mixing": "network.weights",
    "Model": "problems.model",
    "Network": "network.graph",
    "NotConnected": "errors",
    "Observed": "algorithms.observed",
    "PaperClaim": "privacy.paper",
    "Plan": "planning.plan",
    "PowerRule": "planning.plan",
    "Quadratic": "problems.quadratic",
    "Radio": "radio.settings",
    "RankOptions": "experiments.rank",
    "Result": "runs.result",
    "RidgeRegression": "problems.ridge",
    "RunOptions": "runs.run",
    "Schedule": "planning.schedule",
    "Setup": "planning.setup",
    "SoftmaxRegression": "problems.softmax",
    "TuneOptions": "experiments.tune",
    "Tuning": "experiments.tuning",
    "Sweep": "runs.sweep",
    "SweepOptions": "experiments.sweep",
    "audit": "audits.audit",
    "central_dp": "algorithms.central_dp",
    "certify": "experiments.certify",
    "compare": "experiments.shown",
    "datasets": "data.datasets",
    "decor": "algorithms.decor",
    "decor_exact_diffusion": "algorithms.decor_exact_diffusion",
    "display": "experiments.display",
    "dp_dsgd": "algorithms.dp_dsgd",
    "dsgd": "algorithms.dsgd",
    "dwfl": "algorithms.dwfl",
    "exact_diffusion": "algorithms.exact_diffusion",
    "features": "data.features",
    "figures": "reports.plots",
    "from_ray_tracer": "radio.channel_files",
    "frost": "algorithms.frost",
    "gains": "network.gains",
    "gaussian": "privacy.gaussian",
    "gradient_tracking": "algorithms.gradient_tracking",
    "link_budget": "radio.link_budget",
    "load": "experiments.load",
    "load_run": "runs.result",
    "load_sweep": "experiments.sweep",
    "local_only": "algorithms.local_only",
    "locally_balanced": "algorithms.locally_balanced",
    "mafalda": "algorithms.mafalda",
    "mixing": "network.weights",
    "mixing_rate": "network.weights",
    "modules": "problems.modules.shipped",
    "mped2fl": "algorithms.mped2fl",
    "muffliato": "algorithms.muffliato",
    "noiseless": "algorithms.noiseless",
    "observe": "algorithms.observed",
    "orthogonal": "algorithms.orthogonal",
    "ped2fl": "algorithms.ped2fl",
    "plan": "planning.solve",
    "power_controlled": "algorithms.power_controlled",
    "power_controlled_diffusion": "algorithms.power_controlled_diffusion",
    "preprocess": "planning.preprocess",
    "private_exact_diffusion": "algorithms.private_exact_diffusion",
    "private_frost": "algorithms.private_frost",
    "private_gradient_tracking": "algorithms.private_gradient_tracking",
    "private_push_pull": "algorithms.private_push_pull",
    "progress": "reports.progress",
    "push_pull": "algorithms.push_pull",
    "rank": "experiments.rank",
    "read_channel": "radio.channel_files",
    "read_gains": "network.files",
    "report": "experiments.shown",
    "row_stochastic": "algorithms.row_stochastic",
    "row_stochastic_laplace": "algorithms.row_stochastic_laplace",
    "run": "runs.run",
    "spend_uses": "planning.spend_uses",
    "subgradient_push": "algorithms.subgradient_push",
    "subgradient_push_gaussian": "algorithms.subgradient_push_gaussian",
    "sweep": "experiments.sweep",
    "topologies": "network.topologies",
    "tune": "experiments.tune",
}
_MODULES = ("datasets", "display", "features", "figures", "gains", "gaussian", "mixing", "modules", "topologies")

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("murmurcast")
    if name not in _HOME:
        raise AttributeError(f"murmurcast has no {name!r}")
    home = import_module(f"murmurcast.{_HOME[name]}")
    return home if name in _MODULES else getattr(home, name)


def __dir__() -> list[str]:
    return __all__
