"""Reads a ledger, and whether all parts of its run tell one story: run.json, experiment, metrics, published models."""

import re
import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.account import TOLERANCE
from murmurcast.certificates.ledger import Ledger, is_number, refuse, said, same
from murmurcast.privacy.conversion import Curve, curve
from murmurcast.privacy.first_releases import STATISTICS
from murmurcast.privacy.settings_chosen import NOT_STATED
from murmurcast.runs import validate
from murmurcast.runs.result import LEDGER_FORMAT, Result

if TYPE_CHECKING:
    pass

_HEADING = re.compile(r"^\s*\[(network|privacy|schedule|algorithm)\]", re.MULTILINE)  # notes of one's own have none
_BUDGET_MET = 1e-6  # relative: how nearly a plan meets its budget
SAMPLED_TOLERANCE = 1e-6  # relative: sums over grids of privacy losses, which other machines round otherwise
# Where an experiment file says what the ledger says too.
_WRITTEN = {
    ("algorithm", "name"): "algorithm",
    ("algorithm", "gradient_at"): "gradient_at",
    ("algorithm", "publish"): "publish",
    ("privacy", "unit"): "unit",
    ("privacy", "delta"): "delta",
    ("privacy", "clip"): "clip",
    ("privacy", "noise_source"): "noise_source",
    ("privacy", "settings_chosen"): "settings_chosen",
    ("privacy", "records_per_person"): "records_per_person",
    ("problem", "clipping"): "clipping",
    ("problem", "batch"): "batch",
    ("problem", "sampling"): "sampling",
    ("run", "stop_after"): "stop_after",
}


def read(run: Result) -> Ledger:
    """A run's ledger, after checking that the run's other files tell the same story."""
    name, data = str(said(run, "name")), run.ledger
    if not same(LEDGER_FORMAT, data.attrs.get("format")):
        refuse(name, "the ledger is of another version of murmurcast")
    epochs = data.attrs.get("epochs")
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 1:
        refuse(name, "the ledger does not say how many epochs it holds")
    if data.sizes.get("node", 0) < 1:
        refuse(name, "the ledger has no nodes")
    ledger = Ledger(data, name, int(data.sizes["node"]), int(epochs))
    _require_info(run, ledger)
    _require_sizes(ledger)
    _require_experiment(run, ledger)
    _require_metrics(run, ledger)
    return ledger


def _require_all_epochs(run: Result, ledger: Ledger) -> None:
    """The ledger holds the epochs that the run was to have, all of the plan's or as many as were fixed beforehand."""
    stated = said(run, "epochs")
    if isinstance(stated, bool) or not isinstance(stated, int):
        refuse(ledger.run, "run.json does not say how many epochs the run has")
    if stated < ledger.epochs:
        refuse(ledger.run, f"the ledger holds {ledger.epochs} epochs, and {stated} were planned")
    if stated > ledger.epochs:
        refuse(
            ledger.run,
            f"the ledger holds {ledger.epochs} epochs of {stated}: a stop that was not fixed before the run counts as "
            "the whole run, and what the rest of it would send is not known",
        )
    written = ledger.data.sizes.get("epoch")  # of every method of the house, so that no word makes tables longer
    if written != ledger.epochs and (written is not None or ledger.text("algorithm") in registry.NAMES):
        ledger.refuse(f"says that it has {ledger.epochs} epochs, and its tables have {written or 'none'}")
    fixed, planned = (ledger.data.attrs.get(name) for name in ("stop_after", "planned_epochs"))
    if fixed is None and planned is None:
        return
    whole = all(isinstance(value, int | np.integer) for value in (fixed, planned))
    if not whole or fixed != ledger.epochs or int(planned or 0) < ledger.epochs:
        ledger.refuse(f"has {ledger.epochs} epochs, and says that a stop after {fixed} of {planned} was fixed")


def _require_info(run: Result, ledger: Ledger) -> None:
    """Names, unit, delta and settings of run.json are those of the ledger."""
    pairs = {
        "algorithm": (said(run, "algorithm"), ledger.text("algorithm")),
        "unit": (said(run, "privacy", "unit"), ledger.text("unit", ("node", "record"))),
        "delta": (said(run, "privacy", "delta"), ledger.number("delta")),
        "number of nodes": (said(run, "problem", "nodes"), ledger.nodes),
    }
    stated, recorded = said(run, "privacy").get("records_per_person", 1), ledger.data.attrs.get("records_per_person", 1)
    pairs["number of records per person"] = stated, recorded
    rounds = said(run, "rounds")
    if not isinstance(rounds, list) or not all(isinstance(one, str) for one in rounds):
        refuse(ledger.run, "run.json does not say its rounds")
    pairs["list of rounds"] = " ".join(rounds), ledger.text("rounds")
    stated = said(run, "privacy").get("noise_source", "seeded")
    pairs["noise source"] = stated, ledger.noise_source
    chosen = said(run, "privacy").get("settings_chosen", NOT_STATED)
    pairs["statement of how settings were chosen"] = chosen, ledger.settings_chosen
    settings = said(run, "settings")
    if not isinstance(settings, dict):
        refuse(ledger.run, "run.json does not say its settings")
    for key, value in settings.items():
        pairs[str(key)] = value, ledger.data.attrs.get(str(key))
    for name, (stated, recorded) in pairs.items():
        if not same(stated, recorded):
            refuse(ledger.run, f"its {name} is {stated} in run.json, and {recorded} in the ledger")
    if ledger.number("delta") >= 1:
        ledger.refuse(f"has delta {ledger.number('delta'):g}, expected less than 1")


def _require_sizes(ledger: Ledger) -> None:
    """Numbers of records are such wherever they are said, whether the method's account looks at them or not."""
    if ledger.says("first_releases"):
        ledger.records_per_node  # noqa: B018 - refuses what no node has
    if not ledger.says("sampling"):
        return
    ledger.text("sampling", ("poisson",))
    batch, room = ledger.number("batch"), ledger.number("room")
    if any(number != np.floor(number) for number in (batch, room)) or batch > min(room, ledger.records_per_node.min()):
        ledger.refuse("has a batch, room and numbers of records that no sampling by coins has")


def _require_experiment(run: Result, ledger: Ledger) -> None:
    """What an experiment file says is what the ledger says; a run made in Python has no such file, or any text."""
    try:
        written: dict[str, Any] = tomllib.loads(run.experiment)
    except (ValueError, RecursionError):
        if _HEADING.search(run.experiment):
            refuse(ledger.run, "its experiment.toml cannot be read")
        return
    for (section, key), name in _WRITTEN.items():
        inner = written.get(section)
        unsaid = {
            "noise_source": "seeded",
            "settings_chosen": NOT_STATED,
            "records_per_person": 1,
            "sampling": "fixed",
        }
        attributes = unsaid | ledger.data.attrs
        if isinstance(inner, dict) and key in inner and name in attributes:
            stated, recorded = inner[key], attributes[name]
            if not same(stated, recorded):
                refuse(ledger.run, f"its {name} is {stated} in experiment.toml, and {recorded} in the ledger")
    schedule, running, privacy = (written.get(part) for part in ("schedule", "run", "privacy"))
    if isinstance(schedule, dict) and isinstance(running, dict):  # else notes of one's own, not an experiment
        _require_written(run, ledger, schedule, running)
        _require_within_budget(run, ledger, privacy if isinstance(privacy, dict) else {})
        _require_first_releases(ledger, privacy if isinstance(privacy, dict) else {})


def _require_first_releases(ledger: Ledger, privacy: dict[str, Any]) -> None:
    """What the experiment sets a share of the budget aside for was released, and nothing else."""
    stated = " ".join(name for name in STATISTICS if privacy.get(name))
    recorded = ledger.data.attrs.get("first_releases", "")
    if stated != recorded:
        ledger.refuse(f"has the first releases {recorded or 'none'}, and experiment.toml {stated or 'none'}")


def _require_written(run: Result, ledger: Ledger, schedule: dict[str, Any], running: dict[str, Any]) -> None:
    """Length, end, seeds and steps of the run are those that its experiment fixed beforehand."""
    attributes = ledger.data.attrs
    planned = attributes.get("planned_epochs", ledger.epochs)
    for name, stated, recorded in (
        ("number of epochs", schedule.get("epochs", planned), planned),
        ("stop_after", running.get("stop_after"), attributes.get("stop_after")),
        ("drops", _drops_in_words(running.get("drops")), attributes.get("drops")),
    ):
        if not (stated is None and recorded is None) and not same(stated, recorded):
            refuse(ledger.run, f"its {name} is {stated} in experiment.toml, and {recorded} in the ledger")
    if "seeds" in running and not _are_seeds(running["seeds"], said(run, "seeds")):
        refuse(ledger.run, "its seeds are not the same in experiment.toml and in run.json")
    # A step of its own making has a factor among its settings, or waits an epoch and starts at 0.
    if _has_step_factor(ledger) or not ledger.has("model_receiving_step"):
        return
    first, sent = schedule.get("step"), ledger.per_epoch("model_receiving_step")[0]
    if first is not None and not (is_number(first) and np.isclose(first, sent, rtol=TOLERANCE, atol=0)):
        refuse(ledger.run, f"its step is {first} in experiment.toml, and {sent:.6g} in the ledger")


def _has_step_factor(ledger: Ledger) -> bool:
    """Whether steps are longer by a factor among the settings; a ledger may not claim one that its method lacks."""
    name = ledger.text("algorithm")
    if name in registry.NAMES and all(option.name != "step_factor" for option in registry.find(name).options):
        return False
    return ledger.says("step_factor")


def _require_within_budget(run: Result, ledger: Ledger, privacy: dict[str, Any]) -> None:
    """No more is promised away than the experiment allows for the whole run, against whomever its budget is about."""
    budget, promised = privacy.get("epsilon"), said(run, "privacy", "epsilon")
    if privacy.get("target") != "certificate" or promised is None:
        return
    if ledger.data.attrs.get("against") is not None:
        weaker = {one["against"]: one["epsilon"] for one in said(run, "privacy", "weaker")}
        promised = weaker.get(ledger.text("against", tuple(weaker)))
    if not (is_number(budget) and is_number(promised) and promised <= budget * (1 + _BUDGET_MET)):
        refuse(ledger.run, f"its budget is {budget} in experiment.toml, and it promises {promised}")


def _drops_in_words(drops: object) -> str | None:
    """As a ledger has them."""
    if not isinstance(drops, dict):
        return None if drops is None else str(drops)
    try:
        last = {int(node): epoch for node, epoch in drops.items()}
    except ValueError:
        return str(drops)
    return ", ".join(f"node {node} after epoch {last[node]}" for node in sorted(last)) or None


def _are_seeds(stated: object, recorded: object) -> bool:
    """3 means 0, 1 and 2."""
    if isinstance(stated, int) and isinstance(recorded, list):
        return stated == len(recorded) and recorded == list(range(stated))
    return stated == recorded


def data_of(run: Result) -> "dict[str, Any] | None":
    """Which data a run's experiment names, and how it is shared out; None where it does not say.

    How it is scaled is left out: that moves nothing from node to node.
    """
    try:
        section = tomllib.loads(run.experiment).get("data")
    except (ValueError, RecursionError):
        return None
    return {key: section[key] for key in section if key not in ("mean", "std")} if isinstance(section, dict) else None


def _require_metrics(run: Result, ledger: Ledger) -> None:
    """No epoch was evaluated that the ledger does not hold, and every seed and node has its published model."""
    _require_all_epochs(run, ledger)
    epochs = np.asarray(run.metrics["epoch"]) if "epoch" in run.metrics.variables else np.zeros(0)
    if epochs.dtype.kind not in "iu" or epochs.ndim != 1 or not len(epochs):
        refuse(ledger.run, "the metrics do not say their epochs")
    if int(epochs.max()) > ledger.epochs:
        refuse(ledger.run, f"the metrics go on to epoch {int(epochs.max())}, and the ledger ends at {ledger.epochs}")
    seeds = said(run, "seeds")
    if not isinstance(seeds, list) or run.published.shape[:2] != (len(seeds), ledger.nodes) or not seeds:
        refuse(ledger.run, "the published models are not those of its seeds and nodes")
    try:
        validate.require_radio(run.metrics, run.ledger)
    except validate.Unsound as problem:
        refuse(ledger.run, str(problem))


def curve_of(run: Result, ledger: Ledger) -> Curve:
    """From mu to epsilon for this run, by what the ledger says of its noise.

    Of records that join by coins this is the plain curve, which holds for any sample; what coins are worth depends on
    how releases compare with each other, which only their account knows.
    """
    law = ledger.text("law", ("gaussian", "discrete gaussian", "sampled gaussian", "laplace", "none"))
    if (law == "discrete gaussian") != (ledger.noise_source == "secure") and law != "none":
        ledger.refuse(f"has {ledger.noise_source} noise, and says that its law is {law}")
    if ledger.noise_source == "seeded":
        return Curve(laplace=law == "laplace")
    dim = ledger.number("dim")
    if dim != said(run, "problem", "dim") or dim != np.prod(run.published.shape[2:]):
        ledger.refuse(f"has dim {dim:g}, which is not that of the published models")
    return curve("secure", int(dim), ledger.epochs)


def require_epsilon(run: Result, ledger: Ledger, promised: FloatArray, curve: Curve) -> None:
    """The epsilon that run.json quotes is that of the ledger's promise to the node that pays most."""
    quoted, delta = said(run, "privacy", "epsilon"), ledger.number("delta")
    worst = float(curve.epsilon(promised, delta).max())
    if quoted is None and np.isinf(worst):
        return
    tolerance = SAMPLED_TOLERANCE if curve.sampled else TOLERANCE
    if not is_number(quoted) or not np.isclose(quoted, worst, rtol=tolerance, atol=tolerance):
        refuse(ledger.run, f"run.json quotes epsilon {quoted}, and what the ledger promises comes to {worst:.10g}")
