"""How long messages take on the air, and what they cost in energy."""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.radio import units
from murmurcast.radio.settings import Radio
from murmurcast.radio.slots import Slots


def message_symbols(network: Network, radio: Radio, dim: int) -> FloatArray:
    """[nodes] of one message: two parameters each, and a pilot; digitally as many as the weakest listener needs."""
    if radio.access != "digital":
        return np.full(network.nodes, float(-(-dim // 2) + radio.pilots))
    links, noise = network.gains.tocoo(), radio.noise_w(network.power)
    sender, receiver = links.coords
    weakest = np.full(network.nodes, np.inf)
    np.minimum.at(weakest, sender, units.snr_db(links.data, network.power[sender], noise[receiver]))
    return np.asarray(dim * radio.bits / require_carried(weakest, radio))


def require_carried(snr_db: FloatArray, radio: Radio) -> FloatArray:
    """[nodes] bits in a symbol of each node's digital link, which carries something."""
    carried = units.bits_per_symbol(snr_db, radio.gap_db)
    if not (carried > 0).all():
        node = int(np.argmin(carried))
        raise Error(
            f"a digital link of node {node} carries nothing: its signal-to-noise ratio is {snr_db[node]:.0f} dB",
            hint="raise radio.power_dbm, bring nodes closer, or leave that link out",
        )
    return carried


def uses_of_round(turns: Slots, symbols: FloatArray, radio: Radio) -> float:
    """Slots of one length each; digital slots last as long as the longest message in them."""
    if radio.access != "digital":
        return float(turns.number * symbols.max() / radio.efficiency)
    longest = np.zeros(turns.number)
    np.maximum.at(longest, turns.turn, symbols)
    return float(longest.sum() / radio.efficiency)


def joules(power: FloatArray, radio: Radio, symbols: FloatArray, seconds: float) -> FloatArray:
    """[nodes] radiated in so many symbols at full power, and what circuits and a gradient take where that was given."""
    radiated = power * symbols / radio.bandwidth_hz
    return np.asarray(radiated + radio.circuit_watts * seconds + radio.joules_per_gradient)
