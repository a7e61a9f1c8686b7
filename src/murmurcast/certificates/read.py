"""What a ledger says, read with suspicion.

A folder may be incomplete, or edited by somebody who made its hashes anew. So every entry is checked for its shape and
its range, and the parts of a run must tell one story. Whatever does not fit is refused as `Altered`.
"""

import re
import sys
import tomllib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.account import TOLERANCE
from murmurcast.algorithms.tables import row_of
from murmurcast.errors import Altered
from murmurcast.privacy.conversion import Curve, NoiseSource, curve
from murmurcast.runs.result import LEDGER_FORMAT, Result

if TYPE_CHECKING:
    import xarray as xr

LARGEST_NUMBER = 1e100  # beyond, squares and products leave the numbers
_BUDGET_MET = 1e-6  # relative: how nearly a plan meets its budget
# Where an experiment file says what the ledger says too.
_WRITTEN = {
    ("algorithm", "name"): "algorithm",
    ("algorithm", "gradient_at"): "gradient_at",
    ("algorithm", "publish"): "publish",
    ("privacy", "unit"): "unit",
    ("privacy", "delta"): "delta",
    ("privacy", "clip"): "clip",
    ("privacy", "noise_source"): "noise_source",
    ("problem", "clipping"): "clipping",
    ("problem", "batch"): "batch",
    ("run", "stop_after"): "stop_after",
}


class Ledger(NamedTuple):
    """A ledger, and how long its tables must be.

    Attributes:
        data: As it was loaded.
        run: What the run is called.
        nodes: How many nodes there are.
        epochs: T, how many transmissions are in the ledger.
    """

    data: "xr.Dataset"
    run: str
    nodes: int
    epochs: int

    def refuse(self, what: str) -> NoReturn:
        """Says what is wrong with it."""
        refuse(self.run, f"the ledger {what}")

    def text(self, name: str, known: Collection[str] = ()) -> str:
        """An attribute that is one of the known words, or any word."""
        value = self.data.attrs.get(name)
        if not isinstance(value, str):
            self.refuse(f"does not say its {name}")
        if known and value not in known:
            self.refuse(f'has {name} "{value}", expected {" or ".join(sorted(known))}')
        return value

    def number(self, name: str) -> float:
        """An attribute that is a number above 0."""
        value = self.data.attrs.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            self.refuse(f"does not say its {name}")
        if not 0 < value <= LARGEST_NUMBER:
            self.refuse(f"has {name} {value:g}, expected a number above 0")
        return float(value)

    @property
    def noise_source(self) -> NoiseSource:
        """Where the noise came from; ledgers that do not say so are older than the choice."""
        if "noise_source" not in self.data.attrs:
            return "seeded"
        return "secure" if self.text("noise_source", ("seeded", "secure")) == "secure" else "seeded"

    def per_node(self, name: str, *, infinite: bool = False) -> FloatArray:
        """[nodes] numbers of 0 or more."""
        return self._numbers(name, ("node",), (self.nodes,), infinite=infinite)

    def per_epoch(self, name: str) -> FloatArray:
        """[epochs] numbers of 0 or more, not one fewer than there were transmissions."""
        return self._numbers(name, ("epoch",), (self.epochs,))

    def table(self, name: str) -> FloatArray:
        """[rows, nodes] numbers of 0 or more; the last row stands for all later epochs."""
        found = self._variable(name)
        if found.ndim != 2 or found.dims[1] != "node" or not 1 <= found.shape[0] <= self.epochs:
            self.refuse(f"has {name} of shape {found.shape}, expected 1 to {self.epochs} rows of {self.nodes} nodes")
        return self._numbers(name, found.dims, (found.shape[0], self.nodes))

    def sends(self, round_name: str) -> FloatArray | None:
        """[rows, nodes] 1 while a node sends, 0 once it has dropped out; None where nobody drops out.

        Who has dropped out stays out, and neither model nor noise of it is sent: tables and words must say the same.
        """
        told, name = self.data.attrs.get("drops"), f"{round_name}_receiving_sends"
        if told is None and not self.has(name):
            return None
        sends = self.table(name)
        if not np.isin(sends, (0.0, 1.0)).all() or (np.diff(sends, axis=0) > 0).any() or not sends[0].all():
            self.refuse(f"has a {name} of other numbers than 1 and then 0")
        for part in ("amplitude", "noise"):
            table = self.table(f"{round_name}_sending_{part}")
            rows = np.arange(1, max(len(sends), len(table)) + 1)
            if (row_of(table, rows)[row_of(sends, rows) == 0] != 0).any():
                self.refuse(f"has a {round_name}_sending_{part} of a node that has dropped out")
        last = sends.sum(axis=0).astype(int)
        gone = np.flatnonzero(sends[-1] == 0).tolist()
        found = ", ".join(f"node {node} after epoch {last[node]}" for node in gone)
        if told != found:
            self.refuse(f"says that drops are {told or 'none'}, and its tables have {found or 'none'}")
        return sends

    def links(self, round_name: str) -> "tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]":
        """Sender, receiver and gain of every link of a round, each [links]."""
        dims = (f"{round_name}_link",)
        shape = (self.data.sizes.get(dims[0], 0),)
        gain = self._numbers(f"{round_name}_gain", dims, shape)
        ends = tuple(self._numbers(f"{round_name}_{name}", dims, shape) for name in ("sender", "receiver"))
        if any((end >= self.nodes).any() or (end != np.floor(end)).any() for end in ends):
            self.refuse("has a link to a node that does not exist")
        return ends[0].astype(np.int64), ends[1].astype(np.int64), gain

    def has(self, name: str) -> bool:
        """Whether there is a table or array of this name."""
        return name in self.data.variables

    def says(self, name: str) -> bool:
        """Whether there is a word or number of this name."""
        return name in self.data.attrs

    def require_rounds(self, **rounds: str) -> None:
        """The run had these rounds and no others, each with the draws that it names; no gradient came before them."""
        if self.text("rounds").split() != list(rounds):
            self.refuse(f'has the rounds "{self.text("rounds")}", expected {" ".join(rounds)}')
        for name, words in rounds.items():
            if self.text(f"{name}_draws") != words:
                self.refuse(f'draws "{self.text(f"{name}_draws")}" in round {name}, expected "{words}"')
        if not _same(0, self.data.attrs.get("start_gradients")):
            self.refuse("has a gradient at the start, which this method does not take")

    def require_tables(self, *names: str) -> None:
        """These and no other tables of what is sent and received: what is not known here cannot be accounted for."""
        # Of all rounds, whether the ledger names them or not.
        found = {name for name in map(str, self.data.variables) if re.search("(^|_)(sending|receiving)_", name)}
        for name in sorted(set(names) - found):
            self.refuse(f"has no {name}")
        for name in sorted(found - set(names)):
            self.refuse(f"has {name}, which this algorithm does not use")

    def _variable(self, name: str) -> "xr.DataArray":
        if name not in self.data.variables:
            self.refuse(f"has no {name}")
        found = self.data[name]
        if found.dtype.kind not in "fiu":
            self.refuse(f"has {name}, which must be numeric")
        return found

    def _numbers(
        self, name: str, dims: tuple[Any, ...], shape: tuple[int, ...], *, infinite: bool = False
    ) -> FloatArray:
        found = self._variable(name)
        if found.dims != dims or found.shape != shape:
            self.refuse(f"has {name} of shape {found.shape}, expected {shape}")
        values = np.asarray(found, np.float64)
        if np.isnan(values).any() or not (infinite or np.isfinite(values).all()):
            self.refuse(f"has a number in {name} that is not finite")
        if (values < 0).any():
            self.refuse(f"has a negative number in {name}")
        if (values[np.isfinite(values)] > LARGEST_NUMBER).any():
            self.refuse(f"has a number above {LARGEST_NUMBER:g} in {name}")
        return values


def read(run: Result) -> Ledger:
    """A run's ledger, after checking that the run's other files tell the same story."""
    name, data = str(said(run, "name")), run.ledger
    if not _same(LEDGER_FORMAT, data.attrs.get("format")):
        refuse(name, "the ledger is of another version of murmurcast")
    epochs = data.attrs.get("epochs")
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 1:
        refuse(name, "the ledger does not say how many epochs it holds")
    if data.sizes.get("node", 0) < 1:
        refuse(name, "the ledger has no nodes")
    ledger = Ledger(data, name, int(data.sizes["node"]), int(epochs))
    _require_info(run, ledger)
    _require_experiment(run, ledger)
    _require_metrics(run, ledger)
    return ledger


def _require_all_epochs(run: Result, ledger: Ledger) -> None:
    """The ledger holds the epochs that the run was to have, all of the plan's or as many as were fixed beforehand."""
    told = said(run, "epochs")
    if isinstance(told, bool) or not isinstance(told, int):
        refuse(ledger.run, "run.json does not say how many epochs the run has")
    if told < ledger.epochs:
        refuse(ledger.run, f"the ledger holds {ledger.epochs} epochs, and {told} were planned")
    if told > ledger.epochs:
        refuse(
            ledger.run,
            f"the ledger holds {ledger.epochs} epochs of {told}: a stop that was not fixed before the run counts as "
            "the whole run, and what the rest of it would send is not known",
        )
    fixed, planned = (ledger.data.attrs.get(name) for name in ("stop_after", "planned_epochs"))
    if fixed is None and planned is None:
        return
    whole = all(isinstance(value, int | np.integer) for value in (fixed, planned))
    if not whole or fixed != ledger.epochs or int(planned or 0) < ledger.epochs:
        ledger.refuse(f"has {ledger.epochs} epochs, and says that a stop after {fixed} of {planned} was fixed")


def said(run: Result, *keys: str) -> Any:
    """What run.json says."""
    value: Any = run.info
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            refuse(str(run.info.get("name", "run")), f"run.json does not say its {'.'.join(keys)}")
        value = value[key]
    return value


def refuse(run: str, what: str) -> NoReturn:
    """Says what is wrong with a run."""
    raise Altered(f'run "{run}": {what}', hint="restore the run's folder, or run it again")


def _require_info(run: Result, ledger: Ledger) -> None:
    """Names, unit, delta and settings of run.json are those of the ledger."""
    pairs = {
        "algorithm": (said(run, "algorithm"), ledger.text("algorithm")),
        "unit": (said(run, "privacy", "unit"), ledger.text("unit", ("node", "record"))),
        "delta": (said(run, "privacy", "delta"), ledger.number("delta")),
        "number of nodes": (said(run, "problem", "nodes"), ledger.nodes),
    }
    rounds = said(run, "rounds")
    if not isinstance(rounds, list) or not all(isinstance(one, str) for one in rounds):
        refuse(ledger.run, "run.json does not say its rounds")
    pairs["list of rounds"] = " ".join(rounds), ledger.text("rounds")
    told = said(run, "privacy").get("noise_source", "seeded")
    pairs["noise source"] = told, ledger.noise_source
    settings = said(run, "settings")
    if not isinstance(settings, dict):
        refuse(ledger.run, "run.json does not say its settings")
    for key, value in settings.items():
        pairs[str(key)] = value, ledger.data.attrs.get(str(key))
    for name, (told, held) in pairs.items():
        if not _same(told, held):
            refuse(ledger.run, f"its {name} is {told} in run.json, and {held} in the ledger")
    if ledger.number("delta") >= 1:
        ledger.refuse(f"has delta {ledger.number('delta'):g}, expected less than 1")


def _require_experiment(run: Result, ledger: Ledger) -> None:
    """What an experiment file says is what the ledger says; a run made in Python has no such file, or any text."""
    try:
        written: dict[str, Any] = tomllib.loads(run.experiment)
    except (ValueError, RecursionError):
        return
    for (section, key), name in _WRITTEN.items():
        inner = written.get(section)
        attributes = {"noise_source": "seeded"} | ledger.data.attrs
        if isinstance(inner, dict) and key in inner and name in attributes:
            told, held = inner[key], attributes[name]
            if not _same(told, held):
                refuse(ledger.run, f"its {name} is {told} in experiment.toml, and {held} in the ledger")
    schedule, running, privacy = (written.get(part) for part in ("schedule", "run", "privacy"))
    if isinstance(schedule, dict) and isinstance(running, dict):  # else notes of one's own, not an experiment
        _require_written(run, ledger, schedule, running)
        _require_within_budget(run, ledger, privacy if isinstance(privacy, dict) else {})


def _require_written(run: Result, ledger: Ledger, schedule: dict[str, Any], running: dict[str, Any]) -> None:
    """Length, end, seeds and steps of the run are those that its experiment fixed beforehand."""
    held = ledger.data.attrs
    planned = held.get("planned_epochs", ledger.epochs)
    for name, told, found in (
        ("number of epochs", schedule.get("epochs", planned), planned),
        ("stop_after", running.get("stop_after"), held.get("stop_after")),
        ("drops", _drops_in_words(running.get("drops")), held.get("drops")),
    ):
        if not (told is None and found is None) and not _same(told, found):
            refuse(ledger.run, f"its {name} is {told} in experiment.toml, and {found} in the ledger")
    if "seeds" in running and not _are_seeds(running["seeds"], said(run, "seeds")):
        refuse(ledger.run, "its seeds are not the same in experiment.toml and in run.json")
    # A step of its own making has a factor among its settings, or waits an epoch and starts at 0.
    if _has_step_factor(ledger) or not ledger.has("model_receiving_step"):
        return
    first, sent = schedule.get("step"), ledger.per_epoch("model_receiving_step")[0]
    if first is not None and not (_is_number(first) and np.isclose(first, sent, rtol=TOLERANCE, atol=0)):
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
    if not (_is_number(budget) and _is_number(promised) and promised <= budget * (1 + _BUDGET_MET)):
        refuse(ledger.run, f"its budget is {budget} in experiment.toml, and it promises {promised}")


def _drops_in_words(told: object) -> str | None:
    """As a ledger has them."""
    if not isinstance(told, dict):
        return None if told is None else str(told)
    try:
        last = {int(node): epoch for node, epoch in told.items()}
    except ValueError:
        return str(told)
    return ", ".join(f"node {node} after epoch {last[node]}" for node in sorted(last)) or None


def _are_seeds(told: object, held: object) -> bool:
    """3 means 0, 1 and 2."""
    if isinstance(told, int) and isinstance(held, list):
        return told == len(held) and held == list(range(told))
    return told == held


def data_of(run: Result) -> "dict[str, Any] | None":
    """Which data a run's experiment names, and how it is shared out; None where it does not say.

    How it is scaled is left out: that moves nothing from node to node.
    """
    try:
        told = tomllib.loads(run.experiment).get("data")
    except (ValueError, RecursionError):
        return None
    return {key: told[key] for key in told if key not in ("mean", "std")} if isinstance(told, dict) else None


def _is_number(value: Any) -> "TypeGuard[float]":
    """One that can be reckoned with: files may hold whole numbers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _same(told: object, held: object) -> bool:
    """Equal words, or equal numbers whatever their type: a file knows 1, 1.0 and NumPy's kinds of both."""
    numbers = (int, float, np.integer, np.floating)
    if isinstance(told, numbers) and isinstance(held, numbers):
        return bool(told == held) and isinstance(told, bool) == isinstance(held, bool)
    return isinstance(told, str) and isinstance(held, str) and told == held


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


def curve_of(run: Result, ledger: Ledger) -> Curve:
    """From mu to epsilon for this run, by what the ledger says of its noise."""
    law = ledger.text("law", ("gaussian", "discrete gaussian", "laplace", "none"))
    if (law == "discrete gaussian") != (ledger.noise_source == "secure") and law != "none":
        ledger.refuse(f"has {ledger.noise_source} noise, and says that its law is {law}")
    if ledger.noise_source == "seeded":
        return Curve(laplace=law == "laplace")
    dim = ledger.number("dim")
    if dim != said(run, "problem", "dim") or dim != np.prod(run.published.shape[2:]):
        ledger.refuse(f"has dim {dim:g}, which is not that of the published models")
    return curve("secure", int(dim), ledger.epochs)


def require_epsilon(run: Result, ledger: Ledger, promised: FloatArray) -> None:
    """The epsilon that run.json quotes is that of the ledger's promise to the node that pays most."""
    told, delta = said(run, "privacy", "epsilon"), ledger.number("delta")
    worst = float(curve_of(run, ledger).epsilon(promised.max(), delta))
    if told is None and np.isinf(worst):
        return
    if not _is_number(told) or not np.isclose(told, worst, rtol=TOLERANCE, atol=TOLERANCE):
        refuse(ledger.run, f"run.json quotes epsilon {told}, and what the ledger promises comes to {worst:.10g}")
