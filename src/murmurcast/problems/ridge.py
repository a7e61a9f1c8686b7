"""Ridge regression: f_i(w) = mean over i's examples of (x'w - y)^2 / 2 + l2/2 ||w||^2.

An example's gradient is (x'w - y) x, so its norm is |x'w - y| ||x||: clipping needs no loop over examples.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.problems import base
from murmurcast.problems.base import Constants, Leaf, Metrics
from murmurcast.problems.clip import length, norm
from murmurcast.problems.examples import OnExamples, Rows, TestPart, example_weights, stacked


class RidgeTest(NamedTuple):
    """What models are evaluated on."""

    part: TestPart
    optimum: Leaf


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeRegression(OnExamples):
    """Linear regression without intercept (add a constant column for one); arguments as `OnExamples`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.dataset.classes is not None:
            raise Error(
                f'the targets of "{self.data.dataset.name}" are labels, not values', hint='use the problem "softmax"'
            )

    @property
    def shape(self) -> tuple[int]:
        """(features,)."""
        return (self.data.dataset.features.shape[1],)

    def local_data(self) -> Rows:
        """All nodes' examples."""
        return stacked(self)

    def test_data(self) -> RidgeTest:
        """The test part, and the optimum."""
        dataset = self.data.dataset
        return RidgeTest(TestPart(dataset.test_features, dataset.test_targets), self.optimum())

    def gradient_at_public(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient; the L2 term, free of data here, is added after clipping."""
        rows, count = self.drawn(mine, key)
        residual = rows.features @ model - rows.targets
        scale = self.gradient_clip.of_examples(rows.present, jnp.abs(residual) * rows.reach)
        return self.averaged((residual * scale) @ rows.features, count) + self.l2 * model

    def gradient_at_private(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient, the L2 term inside the clip.

        ||r x + l2 w||^2 = r^2 ||x||^2 + 2 l2 r x'w + l2^2 ||w||^2.
        """
        rows, count = self.drawn(mine, key)
        predicted = rows.features @ model
        residual = predicted - rows.targets
        parts = (residual * rows.reach) ** 2 + self.l2**2 * jnp.sum(model * model)
        norms = length(parts + 2 * self.l2 * residual * predicted, parts)
        scale = self.gradient_clip.of_examples(rows.present, norms)
        return self.averaged((residual * scale) @ rows.features + self.l2 * jnp.sum(scale) * model, count)

    def evaluate(self, model: jax.Array, test: RidgeTest) -> Metrics:
        """Half the mean squared error on the test part, and the distance to the optimum."""
        residual = test.part.features @ model - test.part.targets
        return {"loss": jnp.mean(residual**2) / 2, "distance": norm(model - test.optimum)}

    @cached_property
    def constants(self) -> Constants:
        """Strong convexity of F; smoothness of every f_i; the gradient's bound is the clip."""
        hessian, _ = self._quadratic_form()
        bounded_by = base.largest_curvature if self._averages_all else self.mean_square_reach
        curvature = [bounded_by(self._features(rows)) for rows in self.data.rows]
        bound = self.clip if self.gradient_clip.bounds else np.inf
        return Constants(float(np.linalg.eigvalsh(hessian)[0]), np.asarray(curvature) + self.l2, bound)

    def optimum(self) -> FloatArray:
        """x*, [features]: the minimiser of F over Omega, unclipped, in float64."""
        return base.quadratic_optimum(*self._quadratic_form(), self.omega)

    def _features(self, rows: "np.typing.NDArray[np.int64]") -> FloatArray:
        return self.data.dataset.features[rows].astype(np.float64)

    def _quadratic_form(self) -> tuple[FloatArray, FloatArray]:
        """H and b with F(w)/nodes = w'Hw/2 - b'w + constant."""
        x = np.concatenate([self._features(rows) for rows in self.data.rows])
        y = np.concatenate([self.data.dataset.targets[rows] for rows in self.data.rows]).astype(np.float64)
        weighted = x * example_weights(self.data)[:, None]
        return weighted.T @ x + self.l2 * np.eye(self.dim), weighted.T @ y
