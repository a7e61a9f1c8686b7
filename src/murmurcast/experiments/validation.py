"""A validation part, cut off the training part: settings are chosen on it, and the test part is never looked at."""

from dataclasses import replace

import numpy as np

from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression

Examples = SoftmaxRegression | RidgeRegression
EVERY = 5  # every fifth record of every node is held out


def with_validation(problem: Examples) -> Examples:
    """The problem on four fifths of every node's records, evaluated on the others instead of the test part.

    Every fifth record of a node is held out, in the order in which it holds them: where they are sorted by label, all
    labels are in both parts. A node with fewer than five holds out its last, and one with a single record nothing.
    """
    whole, old = problem.data, problem.data.dataset
    if whole.first is not None:
        raise Error(
            "the data is centred or whitened by what all of its records released, and settings are chosen on a part",
            hint="set privacy.centring and privacy.whitening to 0 to rank methods",
        )
    held_out = [_held_out(len(rows)) for rows in whole.rows]
    if not any(np.any(mask) for mask in held_out):
        raise Error(
            "no node has two records, so none can be held out to choose settings on",
            hint="use fewer nodes, or more data",
        )
    kept_rows = [rows[~mask] for rows, mask in zip(whole.rows, held_out, strict=True)]
    tested = np.concatenate([rows[mask] for rows, mask in zip(whole.rows, held_out, strict=True)])
    training = np.concatenate(kept_rows)
    dataset = replace(
        old,
        features=old.features[training],
        targets=old.targets[training],
        test_features=old.features[tested],
        test_targets=old.targets[tested],
        optimum=None,
        holders=None,
    )
    ends = np.cumsum([len(rows) for rows in kept_rows])
    rows = tuple(np.split(np.arange(len(training)), ends[:-1]))
    return replace(problem, data=Partition(dataset=dataset, rule=whole.rule, rows=rows, names=whole.names))


def _held_out(count: int) -> "np.typing.NDArray[np.bool_]":
    mask = np.asarray(np.arange(1, count + 1) % EVERY == 0)
    if 1 < count < EVERY:
        mask[-1] = True
    return mask
