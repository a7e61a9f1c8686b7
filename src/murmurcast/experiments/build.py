"""An experiment file, and the objects of the library it describes.

Nothing here computes; it turns plain values into objects and says clearly what does not fit.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.algorithms import registry
from murmurcast.data.assumptions import DataFacts, facts_of_section, partition_warnings
from murmurcast.errors import Error
from murmurcast.experiments.data import load_dataset
from murmurcast.experiments.network import build_network, build_trace
from murmurcast.experiments.problem import on_examples, require_keys
from murmurcast.experiments.schema import (
    AlgorithmSection,
    DataSection,
    NetworkSection,
    OwnMap,
    PowerSection,
    PrivacySection,
    ProblemSection,
    RadioSection,
    RunSection,
    ScheduleSection,
    Section,
    SweepSection,
)
from murmurcast.network.graph import Network
from murmurcast.planning.plan import PowerRule
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients, Setup
from murmurcast.privacy.certificate import PLAIN_BOUND
from murmurcast.radio.settings import Radio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from murmurcast.algorithms.base import Algorithm
    from murmurcast.algorithms.method import Method
    from murmurcast.data.base import Dataset
    from murmurcast.data.partition import Partition
    from murmurcast.planning.plan import Plan
    from murmurcast.planning.setup import ProblemFacts
    from murmurcast.privacy.first_releases import Rows
    from murmurcast.problems.base import Problem
    from murmurcast.problems.clip import Clipping

_BUDGET_KEYS = {
    *("epsilon", "delta", "target", "unit", "theta", "noise_source"),
    *("settings_chosen", "records_per_person", "centring", "whitening"),
}


class Built(NamedTuple):
    """What an experiment file comes to.

    Attributes:
        problem: What is learnt.
        algorithm: How; it carries its setup, and with it the network.
    """

    problem: "Problem"
    algorithm: "Algorithm"


class Experiment(Section):
    """One experiment file."""

    network: NetworkSection = NetworkSection()
    privacy: PrivacySection
    schedule: ScheduleSection = ScheduleSection()
    power: PowerSection = PowerSection()
    data: DataSection | None = None
    problem: ProblemSection = ProblemSection()
    radio: RadioSection | None = None
    algorithm: AlgorithmSection = AlgorithmSection()
    run: RunSection = RunSection()
    sweep: SweepSection | None = None

    def build_network(self, folder: Path = Path()) -> Network:
        """The network the file describes; `folder` is where relative `network.file` and `radio.trace` start."""
        return build_network(self.network, self.build_radio(folder), folder)

    def build_radio(self, folder: Path = Path()) -> Radio | None:
        """The radio that [radio] describes, with its trace; None where there is no such section."""
        if self.radio is None:
            return None
        try:
            return Radio(**self.radio.model_dump() | {"trace": build_trace(self.radio.trace, folder)})
        except Error as problem:
            raise Error(f"[radio] {problem}", hint=problem.hint) from None

    def build_partition(
        self, nodes: "int | Sequence[str]", folder: Path = Path(), on_stage: Stage = quiet
    ) -> "Partition":
        """Who holds which part, for so many nodes or nodes with these names; centred and whitened as [privacy] says."""
        dataset = self.build_dataset(folder, on_stage)
        on_stage("sharing the data out")
        section = self._data()
        partition = dataset.partition(section.partition, nodes, section.seed)
        if not self.build_budget().first_releases:
            return partition
        from murmurcast.planning.preprocess import preprocess

        on_stage("releasing what centres and whitens it")
        # No other run with noise of these seeds can be added up with this one, so this noise is fresh too.
        seed = 0 if isinstance(self.run.seeds, int) else self.run.seeds[0]
        rows: Rows = "non-negative" if section.non_negative else "signed"
        return preprocess(partition, self.build_budget(), rows=rows, seed=seed)

    def build_budget(self) -> Budget:
        """The budget that [privacy] describes."""
        return Budget(**self.privacy.model_dump(include=_BUDGET_KEYS))

    def build_dataset(self, folder: Path = Path(), on_stage: Stage = quiet) -> "Dataset":
        """The set that [data] names, split and scaled as it says; `folder` is where a relative file starts."""
        return load_dataset(self._data(), folder, on_stage)

    def build_problem(self, nodes: int, folder: Path = Path(), on_stage: Stage = quiet) -> "Problem":
        """The problem for so many nodes; loads the data it is about."""
        section, privacy = self.problem, self.privacy
        require_keys(section)
        common: dict[str, Any] = {
            "clip": privacy.clip,
            "clipping": self._clipping,
            "ball": section.radius,
            "box": section.box,
        }
        if section.kind == "quadratic":
            self._forbid_examples()
            if privacy.unit == "record":
                raise Error("a quadratic problem has no records to protect", hint='set privacy.unit = "node"')
            from murmurcast.problems.quadratic import Quadratic

            return Quadratic.random(nodes, 10 if section.dim is None else section.dim, seed=section.seed, **common)
        partition = self.build_partition(self.network.names or nodes, folder, on_stage)
        shared = {"data": partition, "l2": section.l2, "batch": section.batch, "sampling": section.sampling}
        problem = on_examples(section, shared | common)
        self._require_known(problem)
        return problem

    def build(self, folder: Path = Path(), on_stage: Stage = quiet) -> "Built":
        """Problem and algorithm, ready to be run; every part is built once."""
        on_stage("building the network")
        radio = self.build_radio(folder)
        network = build_network(self.network, radio, folder)
        problem = self.build_problem(network.nodes, folder, on_stage)
        build = self.build_plan if self._method.needs_plan else self.build_setup
        return Built(problem, self.build_algorithm(build(folder, on_stage, problem, network, radio)))

    def build_setup(
        self,
        folder: Path = Path(),
        on_stage: Stage = quiet,
        problem: "ProblemFacts | None" = None,
        network: Network | None = None,
        radio: Radio | None = None,
    ) -> Setup:
        """What every method takes, for parts that are at hand or for what the file says of them."""
        radio = radio or self.build_radio(folder)
        if network is None:
            on_stage("building the network")
            network = build_network(self.network, radio, folder)
        problem = problem or self._planned_problem(network.nodes, folder, on_stage)
        schedule = self.schedule
        if schedule.uses is not None or schedule.travel is not None:
            raise Error(
                "schedule.uses and schedule.travel are settled when a file is loaded, and these are not",
                hint="load the file, or give schedule.epochs, rounds and step",
            )
        noise = schedule.noise_to_step
        return Setup(
            network=_named_as(network, problem),
            problem=problem,
            budget=self.build_budget(),
            schedule=Schedule(
                **schedule.model_dump(exclude={"noise_to_step", "uses", "travel", "accelerated"}),
                accelerated=bool(schedule.accelerated),
                noise_to_step=tuple(noise) if isinstance(noise, list) else noise,
            ),
            radio=radio,
        )

    def build_plan(
        self,
        folder: Path = Path(),
        on_stage: Stage = quiet,
        problem: "ProblemFacts | None" = None,
        network: Network | None = None,
        radio: Radio | None = None,
    ) -> "Plan":
        """The plan the file describes, for parts that are at hand or for what the file says of them."""
        from murmurcast.planning.solve import planned

        power, setup = self.power, self.build_setup(folder, on_stage, problem, network, radio)
        rule = PowerRule(objective=power.objective, minimum=power.min, maximum=power.max, alpha=power.alpha)
        return planned(setup, rule, self.network.normaliser, self.network.z, on_stage)

    def build_algorithm(self, setup: Setup) -> "Algorithm":
        """The algorithm for a setup or plan, with the ends that [run] fixes."""
        from murmurcast.algorithms.early_end import with_ends

        method, options = self._method, self.algorithm.options
        known = {option.name for option in method.options}
        algorithm = method.make(setup, **method.checked({key: options[key] for key in options if key in known}))
        return with_ends(algorithm._replace(name=method.name), self.run.stop_after, self._drops())

    @property
    def _clipping(self) -> "Clipping":
        return self.problem.clipping or ("example" if self.privacy.unit == "record" else "node")

    @property
    def _method(self) -> "Method":
        return registry.find(self.algorithm.name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may mislead; options of other methods may stay in a file, so that the name alone can change."""
        name = self.algorithm.name
        unused = set(self.algorithm.options) - {option.name for option in self._method.options}
        lines = tuple(f"algorithm.{key} has no meaning with {name} and is not used" for key in sorted(unused))
        if self.sweep is not None:
            lines = (*lines, "[sweep] is for murmurcast sweep; here it is left alone")
        if self.problem.clipping == "none":
            return (*lines, "gradients are not clipped: every epsilon is nominal, and nothing is promised")
        batches = self.problem.batch is not None and not self._method.reason and self._method.sends
        plain = self.problem.sampling == "fixed" or not self._method.counts_coins
        return (*lines, PLAIN_BOUND) if batches and plain else lines

    @property
    def has_maps(self) -> bool:
        """Whether [data] names feature maps, which may need libraries that are not installed everywhere."""
        return self.data is not None and isinstance(self.data.features, list)

    @property
    def has_own_maps(self) -> bool:
        """Whether [data] names a feature map of the user's own: building the data then runs its code."""
        maps = None if self.data is None else self.data.features
        return isinstance(maps, list) and any(isinstance(one, OwnMap) for one in maps)

    @property
    def promised_data(self) -> DataFacts | None:
        """What a promise rests on as to the data, without loading it; None where nothing is promised about data."""
        if self.data is None or self.problem.clipping == "none":
            return None
        return facts_of_section(self.data.model_dump(), self.problem.model_dump())

    @property
    def plan_warnings(self) -> tuple[str, ...]:
        """What a plan shows that a run of this file would not keep."""
        lines = list(self.warnings)
        name, unit = self.algorithm.name, self.privacy.unit
        if name != registry.DEFAULT:
            lines.append(f"this is the plan of {registry.DEFAULT}; what {name} promises, its run says")
        refused = self.run.drops and self.privacy.noise_source == "secure"
        if (self.run.stop_after is not None or self.run.drops) and not refused:
            lines.append("this is the whole plan: run.stop_after and run.drops make a run of this file cost less")
        lines += self._secure_warnings()
        if self.promised_data is not None:
            lines += partition_warnings(self.promised_data, unit)
        if unit == "record" and self.algorithm.options.get("gradient_at") == "own":
            lines.append('unit record needs gradient_at = "mixed": a run of this file is refused')
        if unit == "record" and self.problem.clipping == "node":
            lines.append('unit record needs clipping = "example": a run of this file is refused')
        return tuple(lines)

    def _secure_warnings(self) -> list[str]:
        if self.privacy.noise_source == "seeded":
            return []
        seeds = self.run.seeds
        several_seeds = seeds > 1 if isinstance(seeds, int) else len(seeds) > 1
        refusals = {
            f"secure noise is for {registry.names_that('secure')}, not {self.algorithm.name}": not self._method.secure,
            'secure noise needs run.precision = "float64"': self.run.precision != "float64",
            "secure noise needs clipped gradients": self.problem.clipping == "none",
            "secure noise is for one seed": several_seeds,
            "secure noise keeps no checkpoints": self.run.checkpoint_every is not None,
            "no node can drop out of a run with secure noise": bool(self.run.drops),
        }
        return [f"{words}: a run of this file is refused" for words, holds in refusals.items() if holds]

    def as_toml(self) -> str:
        """The file as resolved: everything that was left to its default is written out, paths are cut to names."""
        import tomli_w

        values = self.values
        for section, key in (("network", "file"), ("radio", "trace"), ("data", "name")):
            if key in values.get(section, {}):
                values[section][key] = Path(values[section][key]).name
        return tomli_w.dumps(values)

    @property
    def values(self) -> dict[str, Any]:
        """Plain values that describe one run of it, section by section; what a sweep would vary is not among them."""
        values = self.model_dump(exclude_none=True, exclude={"sweep"})
        if self.radio is not None:  # it says the power
            del values["network"]["power"]
        return values

    def _drops(self) -> dict[int, int]:
        """Nodes by number; keys of TOML are words."""
        given = self.run.drops or {}
        for key in given:
            if not key.isdecimal():
                raise Error(f'run.drops names node "{key}"', hint='write drops = {"2" = 50}')
        if len({int(key) for key in given}) < len(given):
            raise Error("run.drops names a node twice", hint="name each once")
        return {int(key): epoch for key, epoch in given.items()}

    def _data(self) -> DataSection:
        if self.data is None:
            raise Error("there is no [data]", hint='say what to learn from: [data] name = "digits"')
        return self.data

    def _planned_problem(self, nodes: int, folder: Path, on_stage: Stage) -> "ProblemFacts":
        """What a plan must know; loads data only where the number of examples per node follows from it."""
        section, privacy = self.problem, self.privacy
        examples = section.batch or privacy.examples_per_node
        if section.batch is not None and privacy.examples_per_node not in (None, section.batch):
            raise Error(
                f"privacy.examples_per_node is {privacy.examples_per_node}, but gradients are averaged over a batch of "
                f"{section.batch}",
                hint="remove privacy.examples_per_node: it follows from the batch",
            )
        secure = privacy.noise_source == "secure"  # rounding is counted: for so many parameters and examples
        at_hand = self.data is not None or (section.kind == "quadratic" and secure)
        if section.sampling == "poisson" and self.data is None:
            raise Error(
                'problem.sampling = "poisson" needs [data]: what a coin hides depends on how many records there are',
                hint="say what to learn from, or leave sampling out",
            )
        if at_hand and (secure or section.sampling == "poisson" or (privacy.unit == "record" and examples is None)):
            return self.build_problem(nodes, folder, on_stage)
        return ClippedGradients(
            clip=privacy.clip,
            examples_per_node=examples,
            dim=section.dim,
            radius=section.radius if section.box is None else _half_diagonal(section.box, section.dim),
            clipping=self._clipping,
        )

    def _forbid_examples(self) -> None:
        for what, given in (
            ("[data]", self.data),
            ("problem.batch", self.problem.batch),
            ("problem.sampling", self.problem.sampling == "poisson"),
            ("problem.l2", self.problem.l2),
        ):
            if given:
                raise Error(f"{what} has no meaning with a quadratic problem", hint="remove it")

    def _require_known(self, problem: "Problem") -> None:
        """What the file says of the problem besides the data agrees with the data."""
        dim, examples = self.problem.dim, self.privacy.examples_per_node
        if dim is not None and dim != problem.dim:
            raise Error(f"problem.dim is {dim}, but the model has {problem.dim} parameters", hint="remove problem.dim")
        counts = problem.examples_per_node
        if examples is not None and counts is not None and not np.array_equal(_per_node(examples, counts), counts):
            raise Error(
                f"privacy.examples_per_node is {examples}, but gradients are averaged over {counts.min():g} to "
                f"{counts.max():g} examples",
                hint="remove privacy.examples_per_node: it follows from the data",
            )


def _named_as(network: Network, problem: "ProblemFacts") -> Network:
    """The network with the names that the data gives its nodes, where it has none of its own."""
    names = getattr(getattr(problem, "data", None), "names", ())
    return network if network.is_named or not names else network.named(names)


def _per_node(examples: int | list[int], counts: FloatArray) -> FloatArray:
    return np.full(len(counts), float(examples)) if isinstance(examples, int) else np.array(examples, np.float64)


def _half_diagonal(box: float, dim: int | None) -> float | None:
    """The largest norm in a box."""
    return None if dim is None else float(box * np.sqrt(dim))
