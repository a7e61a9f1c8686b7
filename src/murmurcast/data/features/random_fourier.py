"""Random Fourier features: a linear model on them is a smooth model of the original numbers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows

_PURPOSE = 5  # of the draws, beside the seed


@dataclass(frozen=True, kw_only=True)
class RandomFourier:
    """sqrt(2 / features) cos(x W + b): products of two rows come near exp(-||x - y||^2 / (2 width^2)).

    W is drawn from N(0, 1 / width^2) and b from [0, 2 pi), by a public seed and the number of columns alone.

    Args:
        features: How many.
        width: Distance at which two examples are about as different as they can be.
        seed: Of the draws; public.
    """

    kind: Literal["random-fourier"] = "random-fourier"
    features: int = 1024
    width: float = 1.0
    seed: int = 0
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "its directions are drawn from a public seed"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, features=self.features)
        _check.at_most(2**16, features=self.features)
        _check.positive(width=self.width)
        _check.at_least(0, seed=self.seed)

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:  # noqa: ARG002
        """Waves are no images."""
        return None

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:  # noqa: ARG002
        """[examples, features], each entry within sqrt(2 / features) of 0."""
        generator = np.random.default_rng([self.seed, _PURPOSE])
        waves = (generator.standard_normal((rows.shape[1], self.features)) / self.width).astype(np.float32)
        phases = generator.uniform(0, 2 * np.pi, self.features).astype(np.float32)
        return np.asarray(np.sqrt(2 / self.features) * np.cos(rows @ waves + phases), np.float32)
