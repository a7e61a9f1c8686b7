"""What a run's files must look like, whoever wrote them.

Hashes show that nobody touched a folder by accident; somebody who makes them anew can write anything. Whatever is read
further on is of the right kind and shape, or is refused here.
"""

import re
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurcast.runs.radio_use import RadioUse, radio_round, radio_use

if TYPE_CHECKING:
    import xarray as xr

LARGEST_SEED = 2**32 - 1  # a key has 32 bits for it
LARGEST_NUMBER = 1e100  # of a constant in a ledger: beyond, squares and products leave the numbers
_BY_NODE = ("seed", "epoch", "node")
SENDER = "sender"  # the axis of all nodes, where the metrics of models are of a sample of them
SHAPES = {
    "own_loss": _BY_NODE,
    "published_loss": _BY_NODE,
    "sent_power": _BY_NODE,
    "loudest": ("seed", "node"),
    "consensus_error": ("seed", "epoch"),
    "channel_uses": ("epoch",),
    "seconds": ("epoch",),
}
RADIO_METRICS = {"air_seconds": ("epoch",), "joules": ("epoch", "node")}
_SAME = 1e-9  # relative


class Test(Protocol):
    """Whether a value is of its kind."""

    def __call__(self, value: Any, /) -> bool:
        """True if it is."""
        ...


class Unsound(ValueError):  # noqa: N818 - reads as a verdict, which it is
    """The message says what is wrong, in a few words."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST_NUMBER


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**63


def _is_fraction(value: Any) -> bool:
    return _is_number(value) and 0 < value < 1


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _are_seeds(value: Any) -> bool:
    whole = isinstance(value, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in value)
    return whole and all(0 <= seed <= LARGEST_SEED for seed in value) and 0 < len(set(value)) == len(value)


def _is_precision(value: Any) -> bool:
    return value in ("float32", "float64")


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


def _are_promises(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and set(one) == {"against", "epsilon"}
        and _is_text(one["against"])
        and (one["epsilon"] is None or _is_number(one["epsilon"]))
        for one in value
    )


def _are_words(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, str | int | float) for inner in value.values())


_INFO: dict[tuple[str, ...], Test] = {
    ("name",): _is_text,
    ("algorithm",): _is_text,
    ("settings",): _are_words,
    ("problem", "kind"): _is_text,
    ("problem", "nodes"): _is_count,
    ("problem", "dim"): _is_count,
    ("epochs",): _is_count,
    ("seeds",): _are_seeds,
    ("rounds",): _are_names,
    ("precision",): _is_precision,
    ("privacy", "epsilon"): _or_none(_is_number),
    ("privacy", "delta"): _is_fraction,
    **{("privacy", key): _is_text for key in ("unit", "against", "basis", "caveat", "note")},
    ("privacy", "weaker"): _are_promises,
    ("versions",): _are_words,
    ("machine", "system"): _is_text,
    ("machine", "kind"): _is_text,
    ("machine", "cores"): _or_none(_is_count),
    ("commit",): _or_none(_is_text),
    ("start_loss",): _or_none(_is_finite),
    **{("seconds", key): _is_number for key in ("compiling", "training", "all")},
}


def require_info(info: dict[str, Any]) -> None:
    """Whatever is said of a run in run.json is there, and of its kind."""
    for keys, is_right in _INFO.items():
        value: Any = info
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                raise Unsound(f"run.json does not say its {'.'.join(keys)}")
            value = value[key]
        if not is_right(value):
            raise Unsound(f"run.json has {'.'.join(keys)} {str(value)[:60]}")
    if not _is_count(info["privacy"].get("records_per_person", 1)):
        raise Unsound(f"run.json has privacy.records_per_person {str(info['privacy']['records_per_person'])[:60]}")
    if not _is_hash(info.get("data_commitment", "0" * 64)):
        raise Unsound(f"run.json has data_commitment {str(info['data_commitment'])[:60]}")


def require_metrics(metrics: "xr.Dataset", info: dict[str, Any]) -> None:
    """All metrics are there for every seed and node, in the order of epochs."""
    epochs, everybody = _coordinate(metrics, "epoch"), _axis_of_all(metrics)
    for name, count in (("seed", len(info["seeds"])), (everybody, info["problem"]["nodes"])):
        labels = _coordinate(metrics, name)
        expected = info["seeds"] if name == "seed" else range(len(labels))  # not range(count), which a file may inflate
        if len(labels) != count or labels.tolist() != list(expected):
            raise Unsound(f"the metrics are of other {name}s than run.json says")
    sample = _coordinate(metrics, "node")
    if not len(sample) or sample[0] < 0 or sample[-1] >= info["problem"]["nodes"] or (np.diff(sample) <= 0).any():
        raise Unsound("the metrics are of no nodes, or not in their order")
    if not len(epochs) or epochs[0] < 1 or epochs[-1] > info["epochs"] or (np.diff(epochs) <= 0).any():
        raise Unsound("the metrics are of no epochs, or not in their order")
    metric_names = {str(name): _BY_NODE for name in metrics if str(name).startswith(("own_", "published_"))}
    for name, dims in (SHAPES | _of_all(everybody) | metric_names).items():
        if name not in metrics or metrics[name].dims != dims or metrics[name].dtype.kind not in "fiu":
            raise Unsound(f"the metrics have no {name}, or not one for every {' and '.join(dims)}")
    for name in metric_names:
        model, kind = name.split("_", 1)
        if f"{'own' if model == 'published' else 'published'}_{kind}" not in metric_names:
            raise Unsound(f"the metrics have {name} of one model only")
    if not _rises(np.asarray(metrics["channel_uses"])):
        raise Unsound("the metrics have channel_uses that are no counts")


def _axis_of_all(metrics: "xr.Dataset") -> str:
    """Along which all nodes are: that of the nodes that were evaluated, unless these are a sample."""
    return SENDER if SENDER in metrics.sizes else "node"


def _of_all(everybody: str) -> dict[str, tuple[str, ...]]:
    """Shapes of what is said of all nodes."""
    return {"sent_power": ("seed", "epoch", everybody), "loudest": ("seed", everybody)}


def require_ledger(ledger: "xr.Dataset", info: dict[str, Any]) -> None:
    """Constants of nodes and links are numbers that can be reckoned with; whether they are true is not asked here."""
    nodes, attributes = info["problem"]["nodes"], ledger.attrs
    if ledger.sizes.get("node") != nodes:
        raise Unsound("the ledger is of another number of nodes than run.json says")
    rounds = attributes.get("rounds")
    if not isinstance(rounds, str) or rounds.split() != info["rounds"] or not rounds:
        raise Unsound("the ledger does not say its rounds, or others than run.json")
    for name in ("clipping", "law", "start_sha256", *(f"{one}_channel" for one in rounds.split())):
        if not isinstance(attributes.get(name), str):
            raise Unsound(f"the ledger does not say its {name}")
    delta = attributes.get("delta")
    if not isinstance(delta, float | np.floating) or not 0 < delta < 1:
        raise Unsound("the ledger has no delta between 0 and 1")
    for name in ("power", "sensitivity", "promised_mu"):
        if name not in ledger or ledger[name].dims != ("node",):
            raise Unsound(f"the ledger has no {name} of every node")
    _require_numbers(ledger)
    if not (np.asarray(ledger["power"]) > 0).all():
        raise Unsound("the ledger has a node without power")
    for one in rounds.split():
        _require_links(ledger, nodes, one)


def require_radio(metrics: "xr.Dataset", ledger: "xr.Dataset") -> None:
    """Time and energy over a radio are those of the ledger's epochs, as many as have passed; else there are none."""
    name, shapes = radio_round(ledger.attrs), RADIO_METRICS | {"joules": ("epoch", _axis_of_all(metrics))}
    if name is None:
        for metric, dims in shapes.items():
            if metric in metrics and metrics[metric].dims == dims:
                raise Unsound(f"the metrics have {metric}, and the ledger no radio")
        return
    used, epochs = _radio(ledger, name), np.asarray(metrics["epoch"])
    expected = {"air_seconds": used.seconds_until(epochs), "joules": used.joules_until(epochs)}
    for metric, dims in shapes.items():
        if metric not in metrics or metrics[metric].dims != dims or metrics[metric].dtype.kind != "f":
            raise Unsound(f"the metrics have no {metric}, or not one for every {' and '.join(dims)}")
        if not np.allclose(np.asarray(metrics[metric]), expected[metric], rtol=_SAME, atol=0):
            raise Unsound(f"the metrics have {metric} other than the ledger's of an epoch, for the epochs so far")


def _radio(ledger: "xr.Dataset", name: str) -> RadioUse:
    """What the ledger says of its radio, all of it of its kind."""
    if f"{name}_joules" not in ledger or ledger[f"{name}_joules"].dims != ("node",):
        raise Unsound("the ledger does not say what every node's energy is over the radio")
    slots, seconds = (ledger.attrs.get(f"{name}_{number}") for number in ("slots", "air_seconds"))
    if not isinstance(slots, int | np.integer) or isinstance(slots, bool) or slots < 1:
        raise Unsound(f"the ledger does not say its {name}_slots")
    if not isinstance(seconds, float | np.floating) or not 0 < seconds < LARGEST_NUMBER:
        raise Unsound(f"the ledger does not say its {name}_air_seconds")
    try:
        used = radio_use(ledger.attrs, ledger)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        used = None
    if used is None or used.renewal_joules.shape != used.joules.shape:
        raise Unsound("the ledger does not say what its radio was")
    if not 0 <= used.renewal_seconds < LARGEST_NUMBER:
        raise Unsound("the ledger does not say how long it takes to renew the reference")
    return used


def require_published(published: NDArray[Any], info: dict[str, Any]) -> None:
    """A model of numbers for every seed and node, of as many as the problem has parameters."""
    if published.dtype != np.dtype(info["precision"]):  # in this machine's order of bytes, which the engine needs
        raise Unsound(f"the published models are not in {info['precision']}, in which run.json says they were trained")
    if published.shape[:2] != (len(info["seeds"]), info["problem"]["nodes"]):
        raise Unsound("the published models are not those of its seeds and nodes")
    if np.prod(published.shape[2:]) != info["problem"]["dim"]:
        raise Unsound("the published models have another number of parameters than run.json says")


def _require_numbers(ledger: "xr.Dataset") -> None:
    for name in map(str, ledger.variables):
        values = ledger[name]
        if values.dtype.kind not in "fiu":
            raise Unsound(f"the ledger has {name}, which must be numeric")
        reckoned = np.asarray(values, np.float64)  # a half-precision number cannot be compared with the largest
        allowed = (reckoned >= 0) & ((reckoned <= LARGEST_NUMBER) | name.startswith("promised_mu"))
        if not allowed.all() or not values.size:
            raise Unsound(f"the ledger has a number in {name} that is not from 0 to {LARGEST_NUMBER:g}")


def _require_links(ledger: "xr.Dataset", nodes: int, one: str) -> None:
    names = [f"{one}_{part}" for part in ("sender", "receiver", "gain")]
    present = [name for name in names if name in ledger]
    if not present:
        return
    if len(present) < 3 or any(ledger[name].dims != (f"{one}_link",) for name in present):
        raise Unsound("the ledger has links without their ends or gains")
    ends = [np.asarray(ledger[name]) for name in names[:2]]
    if any(end.dtype.kind not in "iu" or (end >= nodes).any() for end in ends) or (ends[0] == ends[1]).any():
        raise Unsound("the ledger has a link to a node that does not exist")
    if not (np.asarray(ledger[names[2]]) > 0).all():
        raise Unsound("the ledger has a link without gain")


def _coordinate(metrics: "xr.Dataset", name: str) -> NDArray[Any]:
    if name not in metrics.coords or metrics[name].dims != (name,) or metrics[name].dtype.kind not in "iu":
        raise Unsound(f"the metrics do not say their {name}s")
    return np.asarray(metrics[name])


def _rises(counts: NDArray[Any]) -> bool:
    return counts.dtype.kind in "iu" and bool((counts >= 0).all() and (np.diff(counts) >= 0).all())
