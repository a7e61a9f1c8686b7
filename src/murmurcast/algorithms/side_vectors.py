"""What nodes exchange before training.

Free of data are the vectors behind z and y and the factors of balanced weights; statistics of data go under noise. They
cost channel uses too: z, K numbers a round, is not negligible once the number of nodes K comes near the number of
parameters m. A use carries m numbers.
"""

import math

from scipy.sparse import csr_array

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.method import Method
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.stability import DENSE_UP_TO, rate_alone
from murmurcast.network.weights import column_mixing
from murmurcast.planning.row_mixing import row_mixing

_NO_LIMIT = 10**9  # rounds
_SETTLED = 1e-6  # relative: from there on a side vector changes nothing that anybody could measure


def setup_numbers(method: Method, algorithm: Algorithm) -> int | None:
    """How many numbers a node sends before training; None where the network is too large to find out."""
    setup = algorithm.setup
    count = 0
    if algorithm.settings.get("weights") == "sinkhorn":
        count += 2 * balanced_mixing(setup.network).rounds  # a receiver's factor, then a sender's
    if method.side_vector == "none" or algorithm.settings.get("weights", "row") not in ("row", "column"):
        return count
    if setup.network.nodes > DENSE_UP_TO:
        return None
    if method.side_vector == "z":
        return count + setup.network.nodes * _rounds(row_mixing(setup).mixing.weights, algorithm.epochs)
    return count + _rounds(csr_array(column_mixing(setup.network).weights.T), algorithm.epochs)


def setup_uses(method: Method, algorithm: Algorithm, dim: int, released: int = 0) -> float | None:
    """The same in channel uses of m = `dim` numbers.

    Args:
        method: Of the algorithm.
        algorithm: Its network and settings.
        dim: m.
        released: How many numbers every node releases before training, under noise. All of them are public, and
            everybody needs their average over all rows: they are mixed by the row-stochastic weights, each scaled by
            its share of the rows over its pi, until they have settled, by accelerated rounds where the schedule has
            them. A server is heard by all at once.
    """
    numbers = setup_numbers(method, algorithm)
    if numbers is None or not released:
        return None if numbers is None else numbers / dim
    if algorithm.setup.network.nodes > DENSE_UP_TO:
        return None
    if not any(one.channel.on_air for one in algorithm.rounds):
        return (numbers + released) / dim
    weights = row_mixing(algorithm.setup).mixing.weights
    accelerated = algorithm.setup.schedule.accelerated
    rounds = _accelerated_rounds(weights) if accelerated else _rounds(weights, _NO_LIMIT)
    return (numbers + released * rounds) / dim


def _accelerated_rounds(weights: csr_array) -> int:
    """Until accelerated rounds have settled, by the law that holds where eigenvalues are real: 1 / T_L(1 / rate)."""
    rate = rate_alone(weights)
    return math.ceil(math.acosh(1 / _SETTLED) / math.acosh(1 / rate)) if 0 < rate < 1 else 1


def _rounds(weights: csr_array, epochs: int) -> int:
    """Until powers of the weights have settled, and no more than there are epochs to use them in."""
    rate = rate_alone(weights)
    return min(epochs, math.ceil(math.log(_SETTLED) / math.log(rate)) if 0 < rate < 1 else 1)
