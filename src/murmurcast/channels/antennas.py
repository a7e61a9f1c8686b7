"""What a receiver's antenna has of one round over a radio, which may be more than the mixed point it makes of it.

own-slot, digital        every neighbour's signal, alone
aligned, half duplex     the sum of its neighbours; while others listen and it is silent, sums of some of them
aligned, referenced      one sum, and nothing of nodes of its own half

A receiver that holds, because its pilot was too weak, has heard its sum all the same.
"""

import numpy as np
from numpy.typing import NDArray

from murmurcast.channels.radio_air import RadioAir
from murmurcast.privacy.linear_radio import Antennas

Rows = NDArray[np.float64 | np.complex128]


def antennas(channel: RadioAir, epochs: NDArray[np.int64]) -> Antennas:
    """What observers hear: (observers) -> [epochs, rows, nodes], each row a sum of what nodes send, on any scale.

    Args:
        channel: The round.
        epochs: Which, from 1.
    """
    if channel.radio.access in ("own-slot", "digital"):
        return lambda observers: _alone(channel, observers, len(epochs))
    sums = channel.sums(epochs)
    if channel.radio.access == "aligned" and channel.radio.duplex == "half":
        return lambda observers: _in_all_slots(channel, sums, observers)
    return lambda observers: sums[:, list(observers)]


def _alone(channel: RadioAir, observers: tuple[int, ...], epochs: int) -> Rows:
    nodes = channel.gains.shape[0]
    heard = np.unique(channel.gains[:, list(observers)].nonzero()[0])
    return np.broadcast_to(np.eye(nodes)[heard], (epochs, len(heard), nodes))


def _in_all_slots(channel: RadioAir, sums: Rows, observers: tuple[int, ...]) -> Rows:
    """Nodes of one colour listen, and whoever has a neighbour among them sends; observers hear while they do not."""
    linked = (channel.gains + channel.gains.T).toarray() > 0
    turn = channel.physics.slots.turn
    sends = np.stack([linked[:, turn == slot].any(axis=1) for slot in range(int(turn.max()) + 1)])
    rows = [sums[:, observer] * sending for observer in observers for sending in sends if not sending[observer]]
    return np.stack(rows, axis=1)
