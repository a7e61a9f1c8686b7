"""What every node releases once, before training: its mean row ("centring") and its second moment ("whitening").

Rows are cut to norm 1 first. A row in place of another then moves a mean of n rows by at most 2/n; by sqrt(2)/n where
no entry is negative, because u'v >= 0. It moves a second moment by at most sqrt(2)/n in the Frobenius norm, whatever
the signs: ||uu' - vv'||^2 = |u|^4 + |v|^4 - 2 (u'v)^2. A node's whole data moves either by n times as much at the most.
Noise is Gaussian and alike in all directions of that norm, so each release is a Gaussian mechanism, and mu^2 adds up
with that of training.
"""

import math
from typing import Literal

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.privacy.certificate import Unit

Statistic = Literal["centring", "whitening"]
STATISTICS: tuple[Statistic, ...] = ("centring", "whitening")  # in the order in which they are released
Rows = Literal["signed", "non-negative"]


def sensitivity(statistic: str, rows: str, unit: Unit, examples: FloatArray, records_per_person: int = 1) -> FloatArray:
    """[nodes] how far one unit's data can move what a node releases.

    Args:
        statistic: Which.
        rows: Whether entries may be negative.
        unit: What is hidden.
        examples: [nodes] n, how many rows every node has.
        records_per_person: k, how many rows change together; for unit record only.

    Guarantees:
        Unit record: k sqrt(2)/n, or 2 k/n for the mean of signed rows. Unit node: without k/n. Range: rows of norm at
        most 1, n public.
    """
    furthest = 2.0 if statistic == "centring" and rows == "signed" else math.sqrt(2)
    moved = np.full(np.shape(examples), furthest)
    return moved if unit == "node" else np.asarray(moved * records_per_person / examples)
