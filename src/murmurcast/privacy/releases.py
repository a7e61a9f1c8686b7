"""What a run releases of one unit's data, epoch by epoch, kept apart from how it is bounded.

A release is something that one unit's data can move, hidden by noise of a known law. All that an account needs of it is
the ratio of the two: how far the data can move it, over the noise's standard deviation (or scale). What the ratios of a
whole run come to, as mu or as epsilon, is said in one place: `murmurcast.privacy.conversion`.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray

LawName = Literal["gaussian", "discrete gaussian", "laplace", "sampled gaussian", "none"]
Adversary = Literal["everybody", "eavesdropper and one node", "eavesdropper", "trusted server"]
ADVERSARIES: tuple[str, ...] = get_args(Adversary)  # the strongest first


class Law(NamedTuple):
    """How the noise is distributed that hides a release.

    Attributes:
        name: "gaussian": real numbers. "discrete gaussian": integers on a public grid, rounding counted. "laplace": of
            a scale, each coordinate by itself. "sampled gaussian": Gaussian, over records that join by a secret coin.
            "none": nothing is released, so nothing has to hide it.
        dim: How many numbers every release has; needed where rounding of each is counted.
        rates: The coin's probability at every node, for "sampled gaussian".
        overflow: The probability, at most, that more records join one release than it has room for, so that some are
            left out by a rule that looks at the others.
    """

    name: LawName
    dim: int = 0
    rates: tuple[float, ...] = ()
    overflow: float = 0.0


GAUSSIAN, LAPLACE, NOTHING = Law("gaussian"), Law("laplace"), Law("none")


class Releases(NamedTuple):
    """What one unit's data can move, over the noise that hides it.

    Attributes:
        law: Of the noise.
        ratio: [epochs, nodes] of what node j sends in epoch t, given all that was sent before; 0 where that carries
            nothing of its data. Infinite where no noise hides it.
        against: From whom it is hidden.
        before: mu of what every node released before the first epoch, under Gaussian noise; 0 for nothing.
    """

    law: Law
    ratio: FloatArray
    against: Adversary
    before: float = 0.0

    def until(self, last: ArrayLike) -> "Releases":
        """The same where node j sends up to epoch last_j only, which was fixed before the run; one number or [nodes].

        Rows after the last of all are left out, others are masked.
        """
        ends = np.broadcast_to(np.asarray(last, np.int64), self.ratio.shape[1:])
        rows = self.ratio[: int(ends.max())]
        return self._replace(ratio=np.where(np.arange(1, len(rows) + 1)[:, None] <= ends, rows, 0.0))


def exposed_ratio(
    sensitivity: FloatArray, push: FloatArray, noise: FloatArray, sends: FloatArray | None = None
) -> FloatArray:
    """[epochs, nodes] of models that carry the last gradient: S push_t / s_t+1 in row t + 1, and 0 in the first.

    Args:
        sensitivity: [nodes] S.
        push: [epochs, nodes] gamma_t / z_t, how far a gradient moves what is sent next.
        noise: [epochs, nodes] s_t, the noise in what is sent, in units of the model.
        sends: [epochs, nodes] above 0 while a node sends, 0 once it has dropped out; by default all send.

    Returns:
        Infinite where a gradient is covered by no noise; 0 where it is never sent.
    """
    ratio = np.zeros(push.shape)
    with np.errstate(all="ignore"):
        ratio[1:] = sensitivity * (push[:-1] / noise[1:])
    ratio[1:] = np.where(np.isnan(ratio[1:]), np.inf, ratio[1:])  # 0/0: neither a step nor noise is known to be there
    if sends is not None:
        ratio = np.where(sends > 0, ratio, 0.0)
    return ratio


def nothing_released(epochs: int, nodes: int) -> Releases:
    """Of nodes that send nothing: it holds against everybody."""
    return Releases(NOTHING, np.zeros((epochs, nodes)), "everybody")
