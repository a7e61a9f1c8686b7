"""What the antennas send of a whole message, against what they may: E||x~||^2 over p."""

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray


def sent_over_budget(alpha: FloatArray, noise_std: FloatArray, dim: int, radius: float) -> FloatArray:
    """[..., nodes] the most a node sends over its budget, before scaling: alpha radius^2 + beta dim sigma_t^2.

    Args:
        alpha: [nodes] power split.
        noise_std: [..., nodes] sigma, per coordinate, of one epoch or of several.
        dim: m, number of parameters.
        radius: The largest norm a model may have (Omega's).
    """
    _check.at_least(1, dim=dim)
    _check.not_negative(radius=radius)
    return np.asarray(alpha * radius**2 + (1 - alpha) * dim * noise_std**2)


def public_scale(sent_over_budget: FloatArray) -> float:
    """One factor for every node's signal that keeps all within budget.

    It depends on public numbers only. The same for all nodes, it leaves the weights as they are, and privacy too: the
    models and the noise that hides data shrink alike. Receivers' own noise does not, so their signal-to-noise ratio
    falls by the factor's square. Scaling by a model's actual norm would leak it.
    """
    return float(1 / np.sqrt(max(1.0, float(sent_over_budget.max()))))
