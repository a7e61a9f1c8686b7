"""How to spend a number of channel uses: on epochs, or on mixing rounds without noise. Free of data, so it costs none.

At one certificate the noise that reaches the consensus depends on how far a run travels in all, not on how many epochs
it takes, so few long epochs lose nothing. What is left of unlike data after L rounds of mixing in each of T epochs is
about lambda^L / ((1 - lambda^L) T) where one round leaves lambda of a disagreement. With T L fixed it falls as L grows.
So rounds come first, until hardly anything is left or the fewest epochs remain; the rest goes to more epochs.
"""

import math
from typing import NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.network.acceleration import leads, left_after, plainly_left_after
from murmurcast.network.graph import Network
from murmurcast.network.stability import disagreements
from murmurcast.network.weights import mixing, normaliser
from murmurcast.planning.schedule import MAX_EPOCHS, MAX_ROUNDS

FEWEST_EPOCHS = 10  # with fewer, steps are too long to follow the gradient
HARDLY_ANY = 0.2  # of a disagreement: more rounds would mend little


class Spending(NamedTuple):
    """Epochs and rounds for a number of channel uses.

    Attributes:
        epochs: T.
        rounds: L, mixing rounds of an epoch; the first carries the noise.
        uses: What they take of the channel: at most what there was.
        per_round: The largest share of a disagreement that is left after one round.
        per_epoch: The same after the rounds of an epoch.
    """

    epochs: int
    rounds: int
    uses: int
    per_round: float
    per_epoch: float

    def __str__(self) -> str:
        """In words."""
        return (
            f"{self.uses} channel uses: {self.epochs} epochs of {self.rounds} round{'s' if self.rounds > 1 else ''}; "
            f"one round leaves {self.per_round:.3g} of a disagreement, those of an epoch {self.per_epoch:.3g}"
        )


def spend_uses(network: Network, uses: int, *, uses_per_round: int = 1, accelerated: bool = False) -> Spending:
    """Chooses epochs and rounds from how fast the network mixes with an even power split.

    Args:
        network: Who hears whom, how well.
        uses: Channel uses in all.
        uses_per_round: What one round takes: 1 on the paper's channel, the slots of a radio.
        accelerated: Whether further rounds lean on the two before them.

    Raises:
        Error: Too few uses for two epochs, or too many nodes for all eigenvalues.
    """
    _check.instance(Network, network=network)
    _check.at_least(1, uses=uses, uses_per_round=uses_per_round)
    rounds_in_all = uses // uses_per_round
    if rounds_in_all < 2:
        raise Error(
            f"two epochs need {2 * uses_per_round} channel uses, and there are {uses}", hint="allow more channel uses"
        )
    modes = disagreements(mixing(network, np.ones(network.nodes), normaliser(network, "lazy")).weights)

    def left(rounds: int) -> float:
        return left_after(modes, leads(modes, rounds)) if accelerated else plainly_left_after(modes, rounds)

    most = max(1, min(rounds_in_all // FEWEST_EPOCHS, MAX_ROUNDS))
    rounds = next((count for count in range(1, most) if left(count) <= HARDLY_ANY), most)
    epochs = min(max(2, rounds_in_all // rounds), MAX_EPOCHS)
    return Spending(epochs, rounds, epochs * rounds * uses_per_round, left(1), left(rounds))


def step_of_travel(travel: float, lengths: float) -> float:
    """The first step of a schedule whose steps sum up to `travel`, where they sum up to `lengths` with step 1."""
    _check.positive(travel=travel)
    step = travel / lengths
    if not math.isfinite(step) or step <= 0:
        raise Error(f"travel is {travel:g}: no step is that long", hint="give a smaller schedule.travel")
    return step
