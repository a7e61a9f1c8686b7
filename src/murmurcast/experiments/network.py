"""The network that an experiment file describes, from its sections [network] and [radio]."""

from pathlib import Path
from typing import Any

from murmurcast.errors import Error
from murmurcast.experiments.data import require_beside
from murmurcast.experiments.schema import NetworkSection
from murmurcast.network.files import EdgeList, NeedsRadio, read_gains
from murmurcast.network.gains import Uniform
from murmurcast.network.graph import Network
from murmurcast.network.path_loss import PathLoss, with_carrier
from murmurcast.radio.channel_files import read_channel
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace

_SHAPE_KEYS: "dict[str, tuple[tuple[str, ...], tuple[str, ...]]]" = {  # topology: (needed, optional)
    "diamond": ((), ("size_m",)),
    "complete": (("nodes",), ("size_m",)),
    "ring": (("nodes",), ("size_m",)),
    "path": (("nodes",), ("size_m",)),
    "star": (("nodes",), ("size_m",)),
    "grid": (("rows", "columns"), ("size_m",)),
    "erdos-renyi": (("nodes", "probability"), ()),
    "random-regular": (("nodes", "degree"), ()),
    "geometric": (("nodes",), ("radius", "size_m")),
}


def build_network(section: NetworkSection, radio: Radio | None, folder: Path = Path()) -> Network:
    """The network of a section, its nodes named as it says; `folder` is where a relative `network.file` starts.

    With a radio its power is the nodes', its carrier that of gains with path loss, and its trace says the links.
    """
    network = _from_source(_with_radio(section, radio), radio, folder)
    return network if section.names is None else network.named(section.names)


def _from_source(section: NetworkSection, radio: Radio | None, folder: Path) -> Network:
    """By whatever says who hears whom."""
    sources = [name for name in ("gains", "file", "topology") if getattr(section, name) is not None]
    if radio is not None and radio.trace is not None:
        if sources:
            raise Error(
                f"links are given twice: by network.{sources[0]} and by radio.trace",
                hint=f"remove network.{sources[0]}: the trace says who hears whom, and how strongly",
            )
        _forbid_shape_keys(section, "radio.trace", ())
        _forbid_gain(section, "radio.trace, which gives the gains")
        return radio.trace.network(section.power)
    if len(sources) != 1:
        given = " and ".join(sources) or "none of them"
        raise Error(
            f"[network] needs exactly one of gains, file and topology, and has {given}",
            hint='give one, such as topology = "ring" with nodes = 10',
        )
    if section.topology is None:
        _forbid_shape_keys(section, f"network.{sources[0]}", ())
    if section.gains is not None:
        _forbid_gain(section, "gains")
        return Network(gains=section.gains, power=section.power)
    if section.file is not None:
        require_beside(section.file, folder, "network.file")
        return _network_from_file(section, radio, folder / section.file)
    return _network_from_topology(section)


def build_trace(name: str | None, folder: Path = Path()) -> ChannelTrace | None:
    """The channel of `radio.trace`; a relative path starts at `folder`."""
    if name is None:
        return None
    require_beside(name, folder, "radio.trace")
    return read_channel(folder / name)


def _with_radio(section: NetworkSection, radio: Radio | None) -> NetworkSection:
    """The section with what the radio says."""
    if radio is None:
        return section
    if "power" in section.model_fields_set:
        raise Error(
            "power is given twice: by network.power and by [radio], whose power_dbm it is",
            hint="remove network.power",
        )
    update: dict[str, Any] = {"power": radio.power_w.tolist()}
    if isinstance(section.gain, PathLoss):
        update["gain"] = with_carrier(section.gain, radio.carrier_hz)
    return section.model_copy(update=update)


def _network_from_file(section: NetworkSection, radio: Radio | None, path: Path) -> Network:
    try:
        contents = read_gains(path)
    except NeedsRadio:
        if radio is None:
            raise
        _forbid_gain(section, f"{path.name}, which gives the gains")
        return _network_from_channel(section, path)
    if not isinstance(contents, EdgeList):
        _forbid_gain(section, f"{path.name}, which gives the gains")
        return Network(gains=contents, power=section.power)
    if section.gain is None:
        raise Error(f"{path} gives no gains", hint='add a column gain, or network.gain = {kind = "uniform"}')
    return Network.from_links(contents.nodes, contents.links, gain=section.gain, power=section.power, seed=section.seed)


def _network_from_channel(section: NetworkSection, path: Path) -> Network:
    """The amplitudes of a channel that stands still and has no phases, such as a table in decibels."""
    channel = read_channel(path)
    if channel.steps > 1 or channel.blocks > 1 or channel.has_phases:
        what = f"{channel.steps} steps of time" if channel.steps > 1 else "phases, or blocks of the band"
        raise Error(
            f"{path} holds a channel with {what}, and network.file gives amplitudes that stay",
            hint=f'remove network.file and set radio.trace = "{section.file}": a run plays it back, one step an epoch',
        )
    return channel.network(section.power)


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
    given = {key: value for key, value in shape.items() if value is not None}
    make = getattr(topologies, name.replace("-", "_"))
    network: Network = make(**given, gain=section.gain or Uniform(), power=section.power, seed=section.seed)
    return network


def _forbid_shape_keys(section: NetworkSection, what: str, allowed: tuple[str, ...]) -> None:
    for key in ("nodes", "rows", "columns", "probability", "degree", "radius", "size_m"):
        if getattr(section, key) is not None and key not in allowed:
            raise Error(f"network.{key} has no meaning with {what}", hint=f"remove {key}")


def _forbid_gain(section: NetworkSection, what: str) -> None:
    if section.gain is not None:
        raise Error(f"network.gain has no meaning beside {what}", hint="remove gain, or give links without gains")
