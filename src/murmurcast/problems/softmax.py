"""Multinomial logistic regression: f_i(W) = mean over i's examples of -log softmax(W x)_y + l2/2 ||W||^2.

Models are class-major, [classes, features + 1], the bias last: it stands for a constant feature b, 1 unless said. With
p the softmax, an example's gradient is the outer product (p - y) (x, b)', so its norm is ||p - y|| ||(x, b)||: clipping
needs no loop over examples.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems import base
from murmurcast.problems.base import Constants, Metrics
from murmurcast.problems.clip import length
from murmurcast.problems.examples import OnExamples, Rows, TestPart, example_weights, stacked
from murmurcast.problems.matmul import product


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class SoftmaxRegression(OnExamples):
    """Multinomial logistic regression on a partitioned set, the L2 term on the bias too; arguments as `OnExamples`.

    Args:
        bias: The constant feature b that every example has besides its own. It takes its share of a clipped gradient:
            for rows of norm 1, a constant of 1 takes half of its square, and 0.1 hardly any.
    """

    bias: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive(bias=self.bias)
        if self.data.dataset.classes is None:
            raise Error(
                f'the targets of "{self.data.dataset.name}" are values, not labels', hint='use the problem "ridge"'
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(classes, features + 1)."""
        return int(self.data.dataset.classes or 0), self.data.dataset.features.shape[1] + 1

    def local_data(self) -> Rows:
        """All nodes' examples."""
        return stacked(self)

    @property
    def constant(self) -> float:
        """The bias."""
        return self.bias

    def test_data(self) -> TestPart:
        """The test part."""
        return TestPart(self.data.dataset.test_features, self.data.dataset.test_targets)

    def gradient_at_public(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient; the L2 term, free of data here, is added after clipping."""
        rows, count = self.drawn(mine, key)
        residual, _ = self._residual(model, rows)
        lengths = jnp.sqrt(jnp.sum(residual * residual, axis=0)) * rows.reach
        scale = self.gradient_clip.of_examples(rows.present, lengths)
        return self.averaged(_outer_sum(residual * scale, rows, self.bias), count) + self.l2 * model

    def gradient_at_private(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient, the L2 term inside the clip.

        ||r (x, b)' + l2 W||^2 = ||r||^2 ||(x, b)||^2 + 2 l2 r'W(x, b) + l2^2 ||W||^2: still no loop.
        """
        rows, count = self.drawn(mine, key)
        residual, scores = self._residual(model, rows)
        parts = jnp.sum(residual * residual, axis=0) * rows.reach**2 + self.l2**2 * jnp.sum(model * model)
        norms = length(parts + 2 * self.l2 * jnp.sum(residual * scores, axis=0), parts)
        scale = self.gradient_clip.of_examples(rows.present, norms)
        total = _outer_sum(residual * scale, rows, self.bias) + self.l2 * jnp.sum(scale) * model
        return self.averaged(total, count)

    def evaluate(self, model: jax.Array, test: TestPart) -> Metrics:
        """Mean cross-entropy and accuracy on the test part."""
        scores = product(test.features, model[:, :-1]) + self.bias * model[:, -1:]
        right = jnp.take_along_axis(scores, test.targets[None], axis=0)[0]
        loss = jnp.mean(jax.nn.logsumexp(scores, axis=0) - right)
        accuracy = jnp.mean(jnp.argmax(scores, axis=0) == test.targets, dtype=loss.dtype)
        return {"loss": loss, "accuracy": jnp.where(jnp.isfinite(loss), accuracy, jnp.nan)}

    @cached_property
    def constants(self) -> Constants:
        """Strong convexity l2; smoothness from diag(p) - pp' <= 1/2; the gradient's bound from ||p - y|| <= sqrt 2."""
        bounded_by = base.largest_curvature if self._averages_all else self.mean_square_reach
        curvature = [bounded_by(_with_bias(self.data, rows, self.bias)) for rows in self.data.rows]
        longest = max(
            np.sqrt(np.square(_with_bias(self.data, rows, self.bias)).sum(axis=1).max()) for rows in self.data.rows
        )
        bound = self.clip if self.gradient_clip.bounds else float(np.sqrt(2) * longest)
        return Constants(self.l2, np.asarray(curvature) / 2 + self.l2, bound)

    def optimum(self) -> FloatArray:
        """x*, [classes, features + 1]: the minimiser of F over Omega, unclipped, by L-BFGS in float64."""
        from scipy.optimize import minimize  # slow to import, and few commands ask for an optimum

        if self.l2 == 0 and self.ball is None and self.box is None:
            raise Error("without an L2 term the optimum may not exist", hint="set l2, radius or box above 0")
        x = np.concatenate([_with_bias(self.data, rows, self.bias) for rows in self.data.rows])
        y = np.concatenate([self.data.dataset.targets[rows] for rows in self.data.rows])
        share = example_weights(self.data)
        hit = (y[:, None] == np.arange(self.shape[0])).astype(np.float64)

        def value(flat: FloatArray, weight: float) -> tuple[float, FloatArray]:
            scores = x @ flat.reshape(self.shape).T
            total = logsumexp(scores, axis=1)
            loss = share @ (total - (scores * hit).sum(axis=1)) + weight / 2 * flat @ flat
            residual = np.exp(scores - total[:, None]) - hit
            return float(loss), ((residual * share[:, None]).T @ x).ravel() + weight * flat

        def solve(extra: float) -> FloatArray:
            bounds = None if self.box is None else [(-self.box, self.box)] * self.dim
            solution = minimize(
                partial(value, weight=self.l2 + extra),
                np.zeros(self.dim),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30},
            )
            return np.asarray(solution.x)

        return base.over_ball(solve, self.ball).reshape(self.shape)

    def _residual(self, model: jax.Array, rows: Rows) -> tuple[jax.Array, jax.Array]:
        """[classes, rows] softmax minus one-hot label, and the scores."""
        scores = product(rows.features, model[:, :-1]) + self.bias * model[:, -1:]
        residual = jax.nn.softmax(scores, axis=0) - jax.nn.one_hot(
            rows.targets, self.shape[0], axis=0, dtype=model.dtype
        )
        return residual, scores


def _outer_sum(residual: jax.Array, rows: Rows, bias: float) -> jax.Array:
    """Sum over the rows of residual times (features, bias)."""
    slopes = residual @ rows.features if rows.columns is None else product(rows.columns, residual)
    return jnp.concatenate([slopes, bias * jnp.sum(residual, axis=1, keepdims=True)], axis=1)


def _with_bias(data: Partition, rows: "np.typing.NDArray[np.int64]", bias: float) -> FloatArray:
    features = data.dataset.features[rows].astype(np.float64)
    return np.concatenate([features, np.full((len(rows), 1), bias)], axis=1)
