"""Centres and whitens data by what a budget sets aside for it, before anything is planned or trained."""

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.data.partition import Partition
from murmurcast.data.preprocessing import with_first_releases
from murmurcast.errors import Error
from murmurcast.planning.setup import Budget
from murmurcast.privacy.first_releases import Rows, Statistic, sensitivity

_SAME = 1e-9  # relative: two ways of working out the same noise


def preprocess(data: Partition, budget: Budget, *, rows: Rows = "signed", seed: int = 0) -> Partition:
    """The same data, its rows of norm 1, centred and whitened by statistics that every node releases once.

    Args:
        data: Who holds which rows; those of the test part are transformed by the released statistics too.
        budget: Its `centring` and `whitening` are the shares of mu^2 that the two releases may cost; plan with the same
            budget, which leaves the rest for training.
        rows: "non-negative" where no entry is below 0 by its nature, as of pixels; entries that are below are set to 0.
            The mean then needs less noise by a factor of sqrt(2).
        seed: Of the noise. Name the first seed of the run: no other run may draw the same noise.

    Guarantees:
        Unit: the budget's. Adversary: everybody. Formula: mu_1^2 = centring mu^2 and mu_2^2 = whitening mu^2, with mu
        that of the whole budget. Range: `privacy.first_releases.sensitivity`; rounding is not counted.
    """
    _check.instance(Partition, data=data)
    _check.instance(Budget, budget=budget)
    if not budget.first_releases:
        raise Error(
            "the budget sets nothing aside for centring and whitening",
            hint="mc.Budget(..., centring=0.02, whitening=0.10)",
        )
    return with_first_releases(data, first_noise(data.sizes, budget, rows), rows=rows, seed=seed)


def require_preprocessed(data: object, budget: Budget) -> None:
    """What the data released before training is what the budget counts: not more, not less, not nothing."""
    first = data.first if isinstance(data, Partition) else None
    released = {} if first is None else dict(first.noise)
    if released.keys() != budget.first_releases.keys():
        words = {True: " and ".join(released) or "nothing", False: " and ".join(budget.first_releases) or "nothing"}
        raise Error(
            f"the data released {words[True]} before training, and the budget counts {words[False]}",
            hint="make the data by mc.preprocess(data, budget), and plan with that very budget",
        )
    if first is None or not isinstance(data, Partition):
        return
    expected = first_noise(data.sizes, budget, first.rows)
    if not all(np.allclose(first.noise[name], expected[name], rtol=_SAME, atol=0) for name in expected):
        raise Error(
            "the data was centred or whitened for another budget, with other noise",
            hint="make the data by mc.preprocess(data, budget), and plan with that very budget",
        )


def first_noise(sizes: ArrayLike, budget: Budget, rows: Rows) -> dict[Statistic, FloatArray]:
    """[nodes] standard deviation of every node's noise, by statistic, as the budget's shares have it.

    Args:
        sizes: [nodes] how many rows every node has.
        budget: Sets shares of mu^2 aside.
        rows: Whether entries may be negative.
    """
    examples, together = np.asarray(sizes, np.float64), budget.records_per_person
    return {
        name: np.asarray(sensitivity(name, rows, budget.unit, examples, together) / mu)
        for name, mu in budget.first_releases.items()
    }
