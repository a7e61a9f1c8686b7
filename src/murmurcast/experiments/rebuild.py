"""A finished run's ledger, made anew from its experiment: what `certify` compares every table with.

Everything is done as `murmurcast run` does it, up to training, except that nothing is fetched, no code that a folder
names is run, and no size is believed that the ledger does not bear out. Where the data is not at hand, all that does
not need it is made anew.
"""

import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._files import UNREADABLE
from murmurcast._progress import quiet
from murmurcast.algorithms import registry
from murmurcast.certificates.ledger import Ledger, refuse
from murmurcast.certificates.rebuilt import NO_EXPERIMENT, Rebuilt
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.network import build_network
from murmurcast.experiments.problem import names_own_code
from murmurcast.planning.preprocess import first_noise
from murmurcast.planning.setup import ClippedGradients
from murmurcast.problems.sampling import sampling
from murmurcast.runs.labelled import Labelled, Variable
from murmurcast.runs.result import Result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from murmurcast.algorithms.base import Algorithm
    from murmurcast.data.partition import Partition
    from murmurcast.network.graph import Network
    from murmurcast.planning.setup import ProblemFacts
    from murmurcast.privacy.first_releases import Rows
    from murmurcast.problems.base import Problem
    from murmurcast.radio.settings import Radio
    from murmurcast.radio.trace import ChannelTrace
    from murmurcast.runs.record import FurtherEntries

_OURS = ("network", "privacy")  # a text with one of these sections is an experiment, and not notes of one's own
_MADE_HERE = ("digits", "least-squares", "logistic")  # sets that are at hand wherever the package is
_MAX_ENTRIES = 10**8  # numbers of a set that is made up anew
_MAX_FILE_BYTES = 2 * 2**30  # unpacked, of a file of data


class _ProblemAtHand(NamedTuple):
    """The problem, or why it is not there, and the partition where that is."""

    problem: "Problem | None"
    why_not: str = ""
    partition: "Partition | None" = None


class Rebuilder(NamedTuple):
    """Makes ledgers anew; meets `certificates.rebuilt.Rebuild`.

    Attributes:
        data: Where the experiments' files of data lie; None looks in a run's folder, beside it, and one folder up.
    """

    data: Path | None = None

    def __call__(self, run: Result, /) -> Rebuilt:
        """What a run's experiment leads to."""
        name = str(run.info.get("name", "run"))
        written = _sections(run.experiment)
        if not any(isinstance(written.get(section), dict) for section in _OURS):
            return Rebuilt(not_compared=(NO_EXPERIMENT,))
        section = written.get("algorithm", {})
        method = section.get("name", registry.DEFAULT) if isinstance(section, dict) else None
        if method not in registry.NAMES:
            line = "the ledger's tables are those of its plan, which was not made anew: the method is not of the house"
            return Rebuilt(not_compared=(line,))
        try:
            experiment = experiment_files.parse(run.experiment.encode(), "experiment.toml")
            _require_sizes(experiment, run)
            return self._rebuilt(experiment, run)
        except Error as problem:
            refuse(name, f"its experiment.toml leads to no such run: {problem}")

    def _rebuilt(self, experiment: Experiment, run: Result) -> Rebuilt:
        trace = None if experiment.radio is None else experiment.radio.trace
        place = (run.folder or Path()) if trace is None else self._place_of(trace, run)
        if place is None:
            return Rebuilt(not_compared=(_without_trace(str(trace), run),))
        radio = experiment.build_radio(place)
        if radio is not None and radio.trace is not None:
            _require_trace(radio.trace, run)
        network = build_network(experiment.network, radio, run.folder or Path())
        at_hand = self._problem(experiment, run, network.nodes)
        if at_hand.problem is None:
            facts = _facts(experiment, run, at_hand.partition)
            algorithm = _algorithm(experiment, network, facts, radio)
            line = f"numbers of examples are those of the data, which is not at hand ({at_hand.why_not})"
            counted = experiment.problem.batch is not None and experiment.problem.sampling == "fixed"
            needed = () if counted and not experiment.build_budget().first_releases else (line,)
            if at_hand.partition is not None:
                needed = (f"the model's metrics are as the run says: {at_hand.why_not}",)
            return Rebuilt(
                ledger=_without_problem(experiment, run, algorithm, facts, at_hand.partition),
                info=_algorithm_info(algorithm),
                evaluated=_evaluated(experiment, algorithm),
                uses=algorithm.channel_uses,
                not_compared=needed,
            )
        import jax

        from murmurcast.runs import record

        algorithm, problem = _algorithm(experiment, network, at_hand.problem, radio), at_hand.problem
        seeds, precision = tuple(run.info["seeds"]), experiment.run.precision
        with jax.enable_x64(precision == "float64"):
            ledger = record.ledger(algorithm, problem, seeds, precision)
            metrics = _metrics(run, problem)
        recorded = record.info(algorithm, problem, run.name, seeds, precision)
        kept = {key: recorded["privacy"][key] for key in ("epsilon", "delta", "unit", "against", "noise_source")}
        info = _algorithm_info(algorithm) | {"problem": recorded["problem"], "precision": precision, "privacy": kept}
        evaluated, uses = _evaluated(experiment, algorithm), algorithm.channel_uses
        return Rebuilt(ledger, info, is_whole=True, evaluated=evaluated, uses=uses, final=metrics)

    def _problem(self, experiment: Experiment, run: Result, nodes: int) -> _ProblemAtHand:
        """What is learnt, where its data is at hand."""
        name = None if experiment.data is None else experiment.data.name
        if name is None or name in _MADE_HERE:
            places = [run.folder or Path()]
        elif name in ("mnist", "fashion-mnist"):
            places = [Path()] if _is_on_this_machine(name) else []
        else:
            place = self._place_of(name, run)
            places = [] if place is None else [place]
        if not places:
            return _ProblemAtHand(None, f"{name} is not there")
        if experiment.has_own_maps:
            return _ProblemAtHand(None, "its feature map is not of the house, and no code that a folder names is run")
        try:
            if names_own_code(experiment.problem):
                why = (
                    f"its module, {experiment.problem.module}, is code that a folder names, and is never run by itself"
                )
                names = experiment.network.names or nodes
                return _ProblemAtHand(None, why, experiment.build_partition(names, places[0]))
            return _ProblemAtHand(_of_size(experiment, run).build_problem(nodes, places[0]))
        except Error as problem:
            if experiment.problem.kind == "model" or name is None or (name in _MADE_HERE and not experiment.has_maps):
                raise  # its data is there: what cannot be built of it is no reason to compare less
            return _ProblemAtHand(None, str(problem))

    def _place_of(self, name: str, run: Result) -> Path | None:
        """The folder in which a file lies that a run names, and does not keep."""
        folder = None if run.folder is None else run.folder.resolve()
        near = [] if folder is None else [folder, folder.parent, folder.parent.parent]
        places = (place for place in ([self.data] if self.data else near) if _is_file_of_data(place, name))
        return next(places, None)


def _of_size(experiment: Experiment, run: Result) -> Experiment:
    """The experiment, with a model of no more parameters than the run's own models have."""
    if experiment.problem.kind != "model":
        return experiment
    section = experiment.problem.model_copy(update={"dim": int(np.prod(run.published.shape[2:]))})
    return experiment.model_copy(update={"problem": section})


def _sections(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _require_sizes(experiment: Experiment, run: Result) -> None:
    """No network and no set is built that is larger than what the run's own files bear out."""
    section, nodes = experiment.network, run.info["problem"]["nodes"]
    grid = None if section.rows is None or section.columns is None else section.rows * section.columns
    for size in (section.nodes, grid, None if section.gains is None else len(section.gains)):
        if size is not None and size != nodes:
            raise Error(f"it has {size} nodes, and the ledger {nodes}", hint="restore the run's folder")
    if section.file is not None:
        if Path(section.file).name != section.file:
            raise Error("its network's file is not in the run's folder", hint="restore the run's folder")
        path = (run.folder or Path()) / section.file
        if path.is_symlink() or not path.is_file():
            raise Error(f"{section.file} is not in the run's folder", hint="put the network's file back")
        if _unpacked_bytes(path) > 64 * nodes * (nodes + 64) + 2**20:
            raise Error(f"{section.file} is too large for {nodes} nodes", hint="restore the run's folder")
    data = experiment.data
    columns = data.features if data is not None and isinstance(data.features, int) else 1
    if data is not None and (data.examples or 1) * (columns or 1) * (data.classes or 1) > _MAX_ENTRIES:
        raise Error(f"its made-up set has more than {_MAX_ENTRIES} numbers", hint="certify a smaller run")


def _named_trace(run: Result) -> str:
    """The SHA-256 by which the ledger names its trace; empty where it names none."""
    used = run.radio
    return "" if used is None else str(used.settings.get("trace", ""))


def _without_trace(name: str, run: Result) -> str:
    return (
        f"z, weights and links are those of the channel {name} (SHA-256 {_named_trace(run)[:16]}...), which is not at "
        "hand: the plan was not made anew"
    )


def _require_trace(trace: "ChannelTrace", run: Result) -> None:
    """The channel at hand is the one that the ledger names."""
    named = _named_trace(run)
    if trace.sha256 != named:
        raise Error(
            f"its trace has SHA-256 {trace.sha256[:16]}..., and the ledger's is {named[:16] or 'not named'}...",
            hint="put the channel's file back that the run was made with",
        )


def _unpacked_bytes(path: Path) -> int:
    """How large a file is once it is read, by what its archive declares."""
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return sum(one.file_size for one in archive.infolist())
    except UNREADABLE:
        return path.stat().st_size  # its reader will say what is wrong with it
    return path.stat().st_size


def _is_file_of_data(place: Path, name: str) -> bool:
    """A regular file in this very place; a run's experiment has names only, and no other path is followed."""
    path = place / name
    return Path(name).name == name and path.is_file() and _unpacked_bytes(path) <= _MAX_FILE_BYTES


def _is_on_this_machine(name: str) -> bool:
    """Whether a set is at hand without asking anybody."""
    from murmurcast.data import sources

    recipe = {"mnist": sources.MNIST, "fashion-mnist": sources.FASHION_MNIST}[name]
    try:
        sources.obtain(replace(recipe, mirrors=(), clients=()), on_stage=quiet)
    except Error:
        return False
    return True


def _facts(experiment: Experiment, run: Result, partition: "Partition | None") -> ClippedGradients:
    """What a plan must know of a problem that is not at hand: from file or data, else from the ledger."""
    examples: Any = experiment.problem.batch or experiment.privacy.examples_per_node
    if experiment.problem.sampling == "poisson":
        if experiment.problem.batch is None:
            raise Error('sampling = "poisson" needs the expected size of a batch', hint="restore the run's folder")
        sizes = _records_per_node(run) if partition is None else partition.sizes
        return ClippedGradients(
            clip=experiment.privacy.clip,
            examples_per_node=examples,
            dim=run.info["problem"]["dim"],
            sampled=sampling(experiment.problem.batch, sizes),
        )
    if examples is None and partition is not None:
        examples = partition.sizes
    if examples is None and "examples_per_node" in run.ledger:
        return ClippedGradients(
            clip=experiment.privacy.clip,
            examples_per_node=np.asarray(run.ledger["examples_per_node"], np.float64),
            dim=run.info["problem"]["dim"],
        )
    return ClippedGradients(clip=experiment.privacy.clip, examples_per_node=examples, dim=run.info["problem"]["dim"])


def _records_per_node(run: Result) -> "NDArray[np.int64]":
    """[nodes] as the ledger has them, where no data says."""
    return Ledger(run.ledger, run.name, run.info["problem"]["nodes"], run.info["epochs"]).records_per_node


def _algorithm(
    experiment: Experiment, network: "Network", problem: "ProblemFacts", radio: "Radio | None"
) -> "Algorithm":
    build = experiment.build_plan if registry.find(experiment.algorithm.name).needs_plan else experiment.build_setup
    return experiment.build_algorithm(build(problem=problem, network=network, radio=radio))


def _without_problem(
    experiment: Experiment,
    run: Result,
    algorithm: "Algorithm",
    facts: ClippedGradients,
    partition: "Partition | None",
) -> Labelled:
    """What the ledger holds that does not come from the problem itself."""
    from murmurcast.runs import record

    joining = record.sampling(facts.sampled)
    first = record.first_releases(partition) if partition is not None else _first_releases(experiment, run)
    setup, rounds, nodes = algorithm.setup, record.of_rounds(algorithm), algorithm.setup.network.nodes
    batch, privacy = experiment.problem.batch, experiment.privacy
    by_node: dict[str, Any] = {"power": setup.network.power, "sensitivity": setup.sensitivity}
    by_node |= first.variables | joining.variables
    if facts.examples_per_node is not None:
        by_node["examples_per_node"] = _check.per_node(nodes, examples_per_node=facts.examples_per_node)
    attributes = {
        "algorithm": algorithm.name,
        "rounds": " ".join(one.name for one in algorithm.rounds),
        "epochs": algorithm.epochs,
        "delta": privacy.delta,
        "unit": privacy.unit,
        "clip": privacy.clip,
        "clipping": experiment.problem.clipping or ("example" if privacy.unit == "record" else "node"),
        "noise_source": privacy.noise_source,
        **({} if batch is None else {"batch": batch}),
        **first.attributes,
        **joining.attributes,
        **algorithm.settings,
    }
    variables = {name: Variable(("node",), np.asarray(values)) for name, values in by_node.items()}
    return Labelled(variables | rounds.variables, {}, attributes | rounds.attributes)


def _first_releases(experiment: Experiment, run: Result) -> "FurtherEntries":
    """What nodes released before training, as the budget has it, for numbers of records that the ledger says."""
    from murmurcast.runs.record import FurtherEntries

    budget = experiment.build_budget()
    if not budget.first_releases:
        return FurtherEntries({}, {})
    rows: Rows = "non-negative" if experiment.data is not None and experiment.data.non_negative else "signed"
    noise = first_noise(_records_per_node(run), budget, rows)
    attributes = {"first_releases": " ".join(noise), "first_rows": rows, "first_seed": run.info["seeds"][0]}
    return FurtherEntries(attributes, {f"{name}_noise": values for name, values in noise.items()})


def _algorithm_info(algorithm: "Algorithm") -> dict[str, Any]:
    """What run.json says of the algorithm."""
    return {
        "algorithm": algorithm.name,
        "settings": dict(algorithm.settings),
        "rounds": [one.name for one in algorithm.rounds],
        "epochs": algorithm.epochs,
    }


def _evaluated(experiment: Experiment, algorithm: "Algorithm") -> tuple[int, ...]:
    from murmurcast.runs.run import evaluated_epochs

    return evaluated_epochs(algorithm.epochs, experiment.run.evaluate_every)


def _metrics(run: Result, problem: "Problem") -> dict[str, Any]:
    """[seeds, evaluated nodes] how well the published models do on the test part."""
    import jax

    from murmurcast.engine.compile_cache import use_compile_cache
    from murmurcast.engine.observe import evaluated_nodes

    use_compile_cache()
    nodes = np.asarray(run.metrics["node"])
    if not any(np.array_equal(nodes, one) for one in (np.arange(problem.nodes), evaluated_nodes(problem.nodes))):
        refuse(run.name, "the metrics are of other nodes than those that are evaluated")
    published = run.published[:, nodes]
    test, models = problem.test_data(), published.reshape(-1, *problem.shape)
    metrics = jax.jit(lambda models, test: jax.lax.map(lambda one: problem.evaluate(one, test), models))(models, test)
    return {f"published_{name}": np.asarray(values).reshape(published.shape[:2]) for name, values in metrics.items()}
