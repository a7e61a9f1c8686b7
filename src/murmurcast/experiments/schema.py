"""What an experiment file may say, section by section: keys, types and defaults."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, create_model

from murmurcast.algorithms.registry import DEFAULT
from murmurcast.data.features import Deskew, Hog, RandomConvolution, RandomFourier, Scattering, UnitNorm
from murmurcast.data.partition import Column, Dirichlet, Drawn, Iid, QuantitySkew, Shards, Sorted
from murmurcast.network.gains import Constant, FreeSpace, Indoor, LogDistance, Rayleigh, Rician, Street, Uniform
from murmurcast.network.weights import Z
from murmurcast.planning.schedule import Decay, NoiseTiming
from murmurcast.privacy.settings_chosen import NOT_STATED
from murmurcast.problems.clip import Clipping
from murmurcast.problems.sampling import SamplingRule
from murmurcast.radio.settings import Radio

Gain = Annotated[
    Constant | Uniform | Rayleigh | Rician | LogDistance | FreeSpace | Indoor | Street, Field(discriminator="kind")
]


def _rule_spelled_out(value: Any) -> Any:
    """A word names a rule with its defaults, and whatever names a column shares out by it."""
    if isinstance(value, str):
        return {"kind": value}
    return {"kind": "column", **value} if isinstance(value, dict) and "column" in value else value


PartitionRule = Annotated[
    Sorted | Iid | Shards | Dirichlet | QuantitySkew | Drawn | Column,
    Field(discriminator="kind"),
    BeforeValidator(_rule_spelled_out),
]


@dataclass(frozen=True, kw_only=True)
class OwnMap:
    """A feature map of the user's own: where it is, and the declaration that it is free of data."""

    kind: Literal["own"] = "own"
    map: str
    declared: str = ""
    sha256: str = ""
    __pydantic_config__: ClassVar = {"extra": "forbid"}


def _spelled_out(value: Any) -> Any:
    """A word names a map with its defaults, and whatever says where its map is, is the user's own."""
    if isinstance(value, str):
        return {"kind": value}
    return {"kind": "own", **value} if isinstance(value, dict) and "map" in value else value


FeatureMap = Annotated[
    Deskew | Hog | Scattering | RandomFourier | RandomConvolution | UnitNorm | OwnMap,
    Field(discriminator="kind"),
    BeforeValidator(_spelled_out),
]
# Of a synthetic set how many features there are, of any other what maps its examples go through.
Features = Annotated[
    Annotated[int, Tag("number")] | Annotated[list[FeatureMap], Tag("maps")],
    Discriminator(lambda value: "number" if isinstance(value, int) else "maps"),
]
Topology = Literal["diamond", "complete", "ring", "path", "star", "grid", "erdos-renyi", "random-regular", "geometric"]


class Section(BaseModel):
    """Knows its keys, and refuses others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NetworkSection(Section):
    """[network]: exactly one of gains, file and topology, unless a radio's trace says it; and how it mixes."""

    gains: list[list[float]] | None = None
    file: str | None = None
    topology: Topology | None = None
    nodes: int | None = None
    rows: int | None = None
    columns: int | None = None
    probability: float | None = None
    degree: int | None = None
    radius: float | None = None
    size_m: float | None = None
    seed: int = 0
    gain: Gain | None = None
    power: float | list[float] = 1.0
    names: list[str] | None = None
    normaliser: Literal["lazy", "max-degree"] | int = "lazy"
    z: Z | None = None


_IN_A_FILE: "dict[str, Any]" = {"power_dbm": float | list[float], "trace": str | None}

if TYPE_CHECKING:

    class RadioSection(Section):
        """[radio]: the keys, types and defaults of `Radio`, which checks their values; a trace is named by its file."""

        trace: str | None = None

else:
    RadioSection = create_model(
        "RadioSection",
        __base__=Section,
        __doc__="[radio]: the keys, types and defaults of `Radio`, which checks their values.",
        **{field.name: (_IN_A_FILE.get(field.name, field.type), field.default) for field in fields(Radio)},
    )


class PrivacySection(Section):
    """[privacy]: what may leak."""

    epsilon: float
    delta: float = 1e-5
    target: Literal["certificate", "per-epoch"] = "certificate"
    unit: Literal["node", "record"] = "node"
    clip: float = 1.0
    examples_per_node: int | list[int] | None = None
    theta: float | None = None
    noise_source: Literal["seeded", "secure"] = "seeded"
    settings_chosen: str = NOT_STATED
    records_per_person: int = 1
    centring: float = 0.0
    whitening: float = 0.0


class ScheduleSection(Section):
    """[schedule]: epochs, steps and noise."""

    epochs: int = 100
    uses: int | None = None
    step: float = 1.0
    travel: float | None = None
    decay: Decay = "sqrt"
    noise_to_step: float | list[float] | Literal["auto"] | None = None
    noise_timing: NoiseTiming = "paper"
    rounds: int = 1
    accelerated: bool | None = None


class PowerSection(Section):
    """[power]: how the split is chosen."""

    objective: Literal["sum", "max-min", "noise", "balanced"] = "sum"
    min: float = 0.01
    max: float = 0.99
    alpha: float | list[float] = 0.5


class DataSection(Section):
    """[data]: what is learnt from, and who holds which part."""

    name: str
    partition: PartitionRule = Sorted()
    test_fraction: float | None = None
    seed: int = 0
    mean: float | None = None
    std: float | None = None
    non_negative: bool = False
    examples: int | None = None
    features: Features | None = None
    image_shape: list[int] | None = None
    labels: list[str | int] | None = None
    classes: int | None = None
    heterogeneity: float | None = None


class ProblemSection(Section):
    """[problem]: what is learnt. A plan alone needs at most dim and radius, for the power that is sent."""

    kind: Literal["softmax", "ridge", "quadratic", "model"] = "softmax"
    module: str | None = None
    loss: Literal["cross-entropy", "squared-error"] | None = None
    options: dict[str, Any] | None = None
    l2: float = 0.0
    bias: float | None = None
    batch: int | None = None
    sampling: SamplingRule = "fixed"
    clipping: Clipping | None = None
    radius: float | None = None
    box: float | None = None
    dim: int | None = None
    seed: int = 0


class AlgorithmSection(BaseModel):
    """[algorithm]: how it is learnt. Options are the method's own, and it checks them."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: str = DEFAULT

    @property
    def options(self) -> dict[str, Any]:
        """What is said besides the name."""
        return dict(self.model_extra or {})


class RunSection(Section):
    """[run]: how often, and how closely watched."""

    seeds: int | list[int] = 1
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    precision: Literal["float32", "float64"] = "float32"
    stop_after: int | None = None
    drops: dict[str, int] | None = None


class RangeSection(Section):
    """A range in [sweep.ranges]: both ends belong to it."""

    low: int | float
    high: int | float
    scale: Literal["linear", "log"] = "linear"


def _dotted_keys(value: Any) -> Any:
    """Tables within tables become dotted keys: privacy.epsilon = [1, 2] and "privacy.epsilon" = [1, 2] are the same."""
    if not isinstance(value, dict):
        return value
    dotted: dict[str, Any] = {}
    for key, inner in value.items():
        is_table = isinstance(inner, dict) and "low" not in inner and "high" not in inner
        deeper = _dotted_keys(inner) if is_table else {"": inner}
        dotted |= {f"{key}.{below}".rstrip("."): leaf for below, leaf in deeper.items()}
    return dotted


class SweepSection(Section):
    """[sweep]: what `murmurcast sweep` varies; all other commands leave it alone."""

    grid: Annotated[dict[str, list[Any]], BeforeValidator(_dotted_keys)] = {}
    ranges: Annotated[dict[str, RangeSection], BeforeValidator(_dotted_keys)] = {}
    random: int | None = None
    seed: int = 0
    seeds: int | None = None
