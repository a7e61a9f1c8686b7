"""Experiment files: TOML in, validated, and the plan they describe.

Nothing here computes; it turns plain values into the objects of the library and says clearly what does not fit.
"""

import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from murmurcast import _check
from murmurcast._progress import Stage, quiet
from murmurcast.errors import Error
from murmurcast.network.files import EdgeList, read_gains
from murmurcast.network.gains import Constant, LogDistance, Rayleigh, Rician, Uniform
from murmurcast.network.graph import Network
from murmurcast.plans import Budget, ClippedGradients, PowerRule
from murmurcast.schedule import Decay, NoiseTiming, Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from murmurcast.plans import Plan

_LARGEST_FILE = 16 * 2**20
_SEE = "see a whole file with: murmurcast plan --example paper-1"
Gain = Annotated[Constant | Uniform | Rayleigh | Rician | LogDistance, Field(discriminator="kind")]
Topology = Literal["diamond", "complete", "ring", "path", "star", "grid", "erdos-renyi", "geometric"]
_SHAPE_KEYS: "dict[str, tuple[tuple[str, ...], tuple[str, ...]]]" = {  # topology: (needed, optional)
    "diamond": ((), ()),
    "complete": (("nodes",), ()),
    "ring": (("nodes",), ()),
    "path": (("nodes",), ()),
    "star": (("nodes",), ()),
    "grid": (("rows", "columns"), ()),
    "erdos-renyi": (("nodes", "probability"), ()),
    "geometric": (("nodes",), ("radius",)),
}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NetworkSection(_Section):
    """[network]: exactly one of gains, file and topology, and how it mixes."""

    gains: list[list[float]] | None = None
    file: str | None = None
    topology: Topology | None = None
    nodes: int | None = None
    rows: int | None = None
    columns: int | None = None
    probability: float | None = None
    radius: float | None = None
    seed: int = 0
    gain: Gain | None = None
    power: float | list[float] = 1.0
    normaliser: Literal["lazy", "max-degree"] | int = "lazy"
    z: Literal["recursive", "perron"] = "recursive"


class PrivacySection(_Section):
    """[privacy]: what may leak."""

    epsilon: float
    delta: float = 1e-5
    target: Literal["certificate", "per-epoch"] = "certificate"
    unit: Literal["node", "record"] = "node"
    clip: float = 1.0
    examples_per_node: int | list[int] | None = None
    theta: float | None = None


class ScheduleSection(_Section):
    """[schedule]: epochs, steps and noise."""

    epochs: int = 100
    step: float = 1.0
    decay: Decay = "sqrt"
    noise_to_step: float | list[float] | Literal["auto"] | None = None
    noise_timing: NoiseTiming = "paper"


class PowerSection(_Section):
    """[power]: how the split is chosen."""

    objective: Literal["sum", "max-min", "noise"] = "sum"
    min: float = 0.01
    max: float = 0.99
    alpha: float | list[float] = 0.5


class ProblemSection(_Section):
    """[problem]: what is known of the model, for the power that is sent."""

    dim: int | None = None
    radius: float | None = None


class Experiment(_Section):
    """One experiment file."""

    network: NetworkSection
    privacy: PrivacySection
    schedule: ScheduleSection = ScheduleSection()
    power: PowerSection = PowerSection()
    problem: ProblemSection = ProblemSection()

    def build_network(self, folder: Path = Path()) -> Network:
        """The network the file describes; `folder` is where a relative `network.file` starts."""
        section = self.network
        sources = [name for name in ("gains", "file", "topology") if getattr(section, name) is not None]
        if len(sources) != 1:
            found = " and ".join(sources) or "none of them"
            raise Error(
                f"[network] needs exactly one of gains, file and topology, and has {found}",
                hint='give one, such as topology = "ring" with nodes = 10',
            )
        if section.topology is None:
            _forbid_shape_keys(section, f"network.{sources[0]}", ())
        if section.gains is not None:
            _forbid_gain(section, "gains")
            return Network(gains=section.gains, power=section.power)
        if section.file is not None:
            return _network_from_file(section, folder / section.file)
        return _network_from_topology(section)

    def build_plan(self, folder: Path = Path(), on_stage: Stage = quiet) -> "Plan":
        """The plan the file describes."""
        from murmurcast.planner import plan

        on_stage("building the network")
        network = self.build_network(folder)
        privacy, schedule, power = self.privacy, self.schedule, self.power
        noise = schedule.noise_to_step
        return plan(
            network,
            ClippedGradients(
                clip=privacy.clip, examples_per_node=privacy.examples_per_node, **self.problem.model_dump()
            ),
            Budget(**privacy.model_dump(include={"epsilon", "delta", "target", "unit", "theta"})),
            Schedule(
                **schedule.model_dump(exclude={"noise_to_step"}),
                noise_to_step=tuple(noise) if isinstance(noise, list) else noise,
            ),
            power=PowerRule(objective=power.objective, minimum=power.min, maximum=power.max, alpha=power.alpha),
            normaliser=self.network.normaliser,
            z=self.network.z,
            on_stage=on_stage,
        )


def load(path: Path | str, overrides: "Mapping[str, str] | None" = None) -> Experiment:
    """Reads an experiment file; `overrides` maps dotted keys to TOML values that replace the file's."""
    path = Path(path)
    _check.readable(path)
    if path.stat().st_size > _LARGEST_FILE:
        raise Error(
            f"{path} has {path.stat().st_size / 1e6:.0f} MB, far too much for an experiment file",
            hint='keep large gain matrices in a file of their own: [network] file = "gains.npz"',
        )
    return parse(path.read_bytes(), str(path), overrides)


def parse(content: bytes, name: str, overrides: "Mapping[str, str] | None" = None) -> Experiment:
    """Reads an experiment from the bytes of a file called `name`."""
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:  # tomllib lets through what int() says of too many digits
        raise Error(f"{name} is not TOML: {problem}", hint=_SEE) from None
    for key, value in (overrides or {}).items():
        _override(values, key, value)
    try:
        return Experiment.model_validate(values)
    except ValidationError as problem:
        raise _explained(problem) from None


def example_names() -> tuple[str, ...]:
    """The experiments that come with the package."""
    folder = resources.files("murmurcast") / "experiments"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def example(name: str) -> str:
    """The text of an experiment that comes with the package."""
    if name not in example_names():
        raise Error(f'there is no example "{name}"', hint=_check.nearest(name, example_names()))
    return (resources.files("murmurcast") / "experiments" / f"{name}.toml").read_text(encoding="utf-8")


def _network_from_file(section: NetworkSection, path: Path) -> Network:
    found = read_gains(path)
    if not isinstance(found, EdgeList):
        _forbid_gain(section, f"{path.name}, which gives the gains")
        return Network(gains=found, power=section.power)
    if section.gain is None:
        raise Error(f"{path} gives no gains", hint='add a column gain, or network.gain = {kind = "uniform"}')
    return Network.from_links(found.nodes, found.links, gain=section.gain, power=section.power, seed=section.seed)


def _network_from_topology(section: NetworkSection) -> Network:
    from murmurcast.network import topologies

    name = section.topology
    if name is None:
        raise Error("no topology is given", hint='set network.topology, such as "ring"')
    needed, optional = _SHAPE_KEYS[name]
    _forbid_shape_keys(section, f'topology "{name}"', needed + optional)
    shape = {key: getattr(section, key) for key in needed + optional}
    for key in needed:
        if shape[key] is None:
            raise Error(f'topology "{name}" needs network.{key}', hint=f"add {key} = ... to [network]")
    make = getattr(topologies, name.replace("-", "_"))
    network: Network = make(**shape, gain=section.gain or Uniform(), power=section.power, seed=section.seed)
    return network


def _forbid_shape_keys(section: NetworkSection, what: str, allowed: tuple[str, ...]) -> None:
    for key in ("nodes", "rows", "columns", "probability", "radius"):
        if getattr(section, key) is not None and key not in allowed:
            raise Error(f"network.{key} has no meaning with {what}", hint=f"remove {key}")


def _forbid_gain(section: NetworkSection, what: str) -> None:
    if section.gain is not None:
        raise Error(f"network.gain has no meaning beside {what}", hint="remove gain, or give links without gains")


def _override(values: dict[str, Any], key: str, value: str) -> None:
    *sections, last = key.split(".")
    if not last or not all(sections):
        raise Error(f'--set {key}={value}: "{key}" is not a key', hint="write --set section.key=value")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise Error(f"--set {key}={value}: {section} is not a section", hint="write --set section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        parsed = {"value": value}  # a bare word is a string: --set power.objective=noise
    if len(parsed) > 1:
        raise Error(f"--set {key}: more than one value is given", hint="use --set once for every key")
    values[last] = parsed["value"]


def _explained(problem: ValidationError) -> Error:
    """The first thing wrong with a file, in our words."""
    wrong = problem.errors()[0]
    *above, last = wrong["loc"]
    # pydantic puts the names of types it tried between the keys; those are not for users.
    keys = [part for part in above if isinstance(part, int) or part in _all_keys()]
    if wrong["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return Error(
            f"unknown key {_dotted([*keys, last])}", hint=_check.nearest(str(last), _known_keys(wrong["loc"][:-1]))
        )
    where = _dotted([*keys, last] if isinstance(last, int) or last in _all_keys() else keys)
    if wrong["type"] == "missing":
        return Error(f"{where} is missing", hint=f"add it; {_SEE}")
    shown = str(wrong["input"])
    shown = shown if len(shown) < 60 else shown[:57] + "..."
    if wrong["type"] == "literal_error":
        known = wrong["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return Error(f'{where} is "{shown}"', hint=_check.nearest(shown, known))
    if wrong["type"].startswith("union_tag"):
        return Error(f"{where} = {shown} names no gain model", hint=f"set kind to one of {', '.join(_gain_models())}")
    if isinstance(cause := wrong.get("ctx", {}).get("error"), Error):
        return Error(f"{where}: {cause}", hint=cause.hint)
    return Error(f"{where} is {shown}: {wrong['msg'][0].lower()}{wrong['msg'][1:]}", hint=_SEE)


def _dotted(parts: "list[int | str]") -> str:
    return ".".join(map(str, parts))


def _gain_models() -> dict[str, Any]:
    """The gain models by their kind."""
    return {get_args(model.__annotations__["kind"])[0]: model for model in get_args(get_args(Gain)[0])}


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand at a place of the file."""
    if path[:2] == ("network", "gain"):
        return list(_gain_models()[str(path[2])].__dataclass_fields__)
    if not path:
        return list(Experiment.model_fields)
    section = Experiment.model_fields[str(path[0])].annotation
    return list(section.model_fields) if isinstance(section, type) and issubclass(section, BaseModel) else []


def _all_keys() -> set[str]:
    return set(Experiment.model_fields).union(*(_known_keys((name,)) for name in Experiment.model_fields))
