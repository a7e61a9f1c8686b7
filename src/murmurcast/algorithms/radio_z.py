"""What gradients are divided by over a radio, recomputed from a ledger: its links, amplitudes and radio settings.

As without a radio, z must follow from what the ledger itself says: somebody who wrote down a larger one than was used
would be charged for shorter steps than were taken.
"""

import json

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables, gains
from murmurcast.algorithms.free_rounds import further_rounds
from murmurcast.algorithms.over_radio import following_channel
from murmurcast.algorithms.tables import row_of
from murmurcast.channels.radio_air import RadioAir
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.weights import Mixing, Z, perron
from murmurcast.planning.mean_mixing import mean_mixing, z_in_epochs
from murmurcast.planning.schedule import Schedule
from murmurcast.radio.physics import Split, physics
from murmurcast.radio.settings import Radio

_TOLERANCE = 1e-4  # relative: means are drawn, and the channel is made, in finite accuracy


def require_radio_z(ledger: LedgerTables, amplitude: FloatArray, last: str) -> None:
    """The z of the last round is one that a plan over this radio has: of mean weights, or following the channel."""
    z, epochs = ledger.table(f"{last}_receiving_z"), np.arange(1, ledger.epochs + 1)
    rounds, power = len(further_rounds(ledger)) + 1, ledger.per_node("power")
    alpha = amplitude[0] ** 2 / power
    if not (alpha < 1).all():
        ledger.refuse("has a model_sending_amplitude that leaves no power for the noise")
    try:
        plain = json.loads(ledger.text("model_radio"))
        radio = Radio.from_plain(plain)
        if "trace" in plain:
            _require_shares(ledger, z, last)
            return
        network = Network(gains=gains(ledger, "model"), power=power)
        mixing = mean_mixing(network, alpha, int(ledger.number("normaliser")), radio, ledger.epochs)
        if _alike(z, perron(mixing.weights)[None], epochs):
            return
        if not radio.varies:
            schedule = Schedule(epochs=max(2, ledger.epochs), rounds=rounds)
            possible = [z_in_epochs(mixing.weights, schedule, "recursive")]
        else:
            possible = _following(ledger, network, radio, mixing, rounds)
    except (Error, TypeError, ValueError) as problem:
        ledger.refuse(f"has a radio that no plan has: {str(problem)[:120]}")
    if not any(_alike(z, one, epochs) for one in possible):
        ledger.refuse(f"has a {last}_receiving_z that does not follow from its gains, amplitudes and radio")


def _require_shares(ledger: LedgerTables, z: FloatArray, last: str) -> None:
    """All that can be asked where the ledger only names the trace: no node's share of the whole exceeds 1.

    Whether z follows from the trace is asked where the experiment is rebuilt with the trace at hand.
    """
    if not (z <= 1 + _TOLERANCE).all():
        ledger.refuse(f"has a {last}_receiving_z above 1")


def _following(ledger: LedgerTables, network: Network, radio: Radio, mixing: Mixing, rounds: int) -> list[FloatArray]:
    """Those that follow the channel, which is made anew as the plan made it."""
    alpha = ledger.table("model_sending_amplitude")[0] ** 2 / network.power
    # With clear pilots weights do not depend on how loud nodes are, so any noise and any model will do.
    split = Split(alpha, np.ones((ledger.epochs, ledger.nodes)), mixing.normaliser, 2, 1.0, rounds)
    seconds = float(ledger.number("model_air_seconds"))
    doppler = radio.doppler_hz * (seconds + radio.compute_seconds)
    radio_physics = physics(network, radio, split)._replace(doppler=doppler)
    channels = tuple(RadioAir(network.gains, radio, radio_physics, number, rounds) for number in range(rounds))
    rules: tuple[Z, ...] = ("predicted", "recursive")
    return [following_channel(rule, mixing.weights, channels, ledger.epochs) for rule in rules]


def _alike(z: FloatArray, expected: FloatArray, epochs: "np.typing.NDArray[np.int64]") -> bool:
    return bool(np.allclose(row_of(z, epochs), row_of(expected, epochs), rtol=_TOLERANCE, atol=0))
