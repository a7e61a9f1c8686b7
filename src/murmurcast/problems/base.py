"""What every problem offers, and what problems share: projection, minibatches, optima over a ball.

Inside, a model is one array of `shape`; a problem whose users think in trees of parameters flattens them at its edge
(`murmurcast.problems.model`). Whatever an engine traces is a pure function of arrays; a problem's own fields are
plain numbers. Data goes in as an argument, never as a captured constant.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check, _cipher
from murmurcast._check import FloatArray
from murmurcast._devices import use_all_cores
from murmurcast.errors import Error
from murmurcast.problems.clip import Clip, norm, shrink

Leaf = Any  # an array of NumPy outside the engine, of JAX inside
Data = Any  # a pytree of leaves
Metrics = dict[str, jax.Array]

use_all_cores()  # here, because whatever of ours asks anything of JAX imports this first


class Problem(Protocol):
    """A learning problem spread over nodes: f_i at node i, F = sum of f_i."""

    @property
    def nodes(self) -> int:
        """How many nodes hold a part of it."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one model."""
        ...

    @property
    def dim(self) -> int:
        """m, the number of parameters."""
        ...

    @property
    def gradient_clip(self) -> Clip:
        """What gradients are clipped to; it knows how far one unit's data can move them."""
        ...

    @property
    def examples_per_node(self) -> FloatArray | None:
        """[nodes] the fixed number by which clipped examples are averaged; None where there are no examples."""
        ...

    @property
    def radius(self) -> float | None:
        """The largest norm of a model in Omega; None for all of R^m."""
        ...

    @property
    def bytes_per_gradient(self) -> int:
        """How much data one node reads for one gradient; engines choose by it how many nodes to take at once."""
        ...

    def start(self, key: jax.Array) -> jax.Array | FloatArray:
        """Where nodes begin, data free and public: one model for all, or [nodes, ...]. Every seed has its own key.

        A NumPy array is the same for all seeds, and nothing is compiled for it.
        """
        ...

    def local_data(self) -> Data:
        """What the nodes hold: a pytree of arrays, each [nodes, ...]."""
        ...

    def test_data(self) -> Data:
        """What models are evaluated on."""
        ...

    def gradient_at_public(self, model: jax.Array, mine: Data, key: jax.Array) -> jax.Array:
        """One node's gradient at a point that everybody may know: a data-free L2 term needs no clip."""
        ...

    def gradient_at_private(self, model: jax.Array, mine: Data, key: jax.Array) -> jax.Array:
        """One node's gradient at its own point: the L2 term is inside the clip, or it would carry the point along."""
        ...

    def project(self, model: jax.Array) -> jax.Array:
        """The nearest point of Omega."""
        ...

    def evaluate(self, model: jax.Array, test: Data) -> Metrics:
        """Metrics of one model, each a scalar; "loss" must be among them."""
        ...


class SharesPool(Protocol):
    """What a problem may offer besides, so that a large network holds its data once: places in a pool of examples."""

    def pool(self, nodes: NDArray[np.int64]) -> tuple[Data, Data]:
        """The examples of these nodes, each once, [examples, ...]; and which of them nodes hold, [all nodes, ...].

        Of other nodes, what they hold says nothing.
        """
        ...

    def of_pool(self, pool: Data, holdings: Data) -> Data:
        """What one node holds, as its entry of `local_data` would be."""
        ...


class KnownTheory(Protocol):
    """What a problem may offer besides, for whoever compares with theory."""

    @property
    def constants(self) -> "Constants":
        """What theory asks."""
        ...

    def optimum(self) -> FloatArray:
        """x*, the minimiser of F over Omega."""
        ...


class SolvePenalised(Protocol):
    """Solves a problem with an L2 term added to it."""

    def __call__(self, weight: float, /) -> FloatArray:
        """The minimiser where the term has this weight."""
        ...


class Constants(NamedTuple):
    """What theory asks of a problem.

    Attributes:
        strong_convexity: Of F/nodes.
        smoothness: [nodes] a Lipschitz constant of every node's gradient, as clipped.
        gradient_bound: The largest norm of a node's gradient without the L2 term; infinite where nothing bounds it.
    """

    strong_convexity: float
    smoothness: FloatArray
    gradient_bound: float


class Omega(NamedTuple):
    """Where models may lie: a ball around 0, a box around 0, or everywhere (both None)."""

    ball: float | None = None
    box: float | None = None

    def project(self, model: jax.Array) -> jax.Array:
        """The nearest point of Omega."""
        if self.ball is not None:
            return model * shrink(norm(model), self.ball)
        return model if self.box is None else jnp.clip(model, -self.box, self.box)

    def radius(self, dim: int) -> float | None:
        """The largest norm in Omega."""
        if self.ball is not None:
            return self.ball
        return None if self.box is None else self.box * float(np.sqrt(dim))


def require_omega(ball: float | None, box: float | None) -> None:
    """At most one of ball and box is given, and is a length."""
    if ball is not None and box is not None:
        raise Error("both a ball and a box are given", hint="Omega is one of them: give radius or box")
    for name, value in (("radius", ball), ("box", box)):
        if value is not None:
            _check.positive(**{name: value})


def minibatch(key: jax.Array, size: jax.Array, batch: int) -> jax.Array:
    """[batch] rows of a node's `size` examples, each row at most once, each with the same chance.

    The examples stand on a circle that is turned at random and cut into `batch` arcs; one is drawn from each. So no
    record counts twice, as the certificate needs, and nothing has to be sorted.
    """
    turn, within = _cipher.split(jax.random.key_data(key))
    numbers, examples = jnp.arange(batch + 1, dtype=jnp.uint32), size.astype(jnp.uint32)
    # numbers * examples // batch, without leaving 32 bits.
    edges = (numbers * (examples // batch) + numbers * (examples % batch) // batch).astype(jnp.int32)
    inside = _cipher.below(within, edges[1:] - edges[:-1])
    return (edges[:-1] + inside + _cipher.below(turn, size[None])[0]) % size


def over_ball(solve: SolvePenalised, radius: float | None) -> FloatArray:
    """The minimiser over a ball, from one that solves the problem with an added L2 term of a given weight.

    The Lagrangian of ||x||^2 <= radius^2 is such a problem; its weight is found by bracketing.
    """
    from scipy.optimize import brentq  # slow to import, and few commands ask for an optimum

    free = solve(0.0)
    if radius is None or np.linalg.norm(free) <= radius:
        return free

    def excess(weight: float) -> float:
        return float(np.linalg.norm(solve(weight)) - radius)

    high = 1.0
    while excess(high) > 0:
        high *= 4
    return solve(float(brentq(excess, 0.0, high, xtol=1e-13, rtol=1e-14)))


def quadratic_optimum(hessian: FloatArray, slope: FloatArray, omega: Omega) -> FloatArray:
    """The minimiser of x'Hx/2 - b'x over Omega, for positive semidefinite H; the shortest where several are best."""
    if omega.box is not None:
        from scipy.optimize import lsq_linear

        values, vectors = np.linalg.eigh(hessian)
        root = vectors * np.sqrt(np.maximum(values, 0))  # H = root root'
        target = np.linalg.lstsq(root, slope, rcond=None)[0]
        return np.asarray(lsq_linear(root.T, target, (-omega.box, omega.box), tol=1e-14, method="bvls").x)

    def solve(weight: float) -> FloatArray:
        return np.asarray(np.linalg.lstsq(hessian + weight * np.eye(len(slope)), slope, rcond=None)[0])

    return over_ball(solve, omega.ball)


def largest_curvature(features: FloatArray) -> float:
    """The largest eigenvalue of the mean of x x' over the rows."""
    return float(np.linalg.norm(features, ord=2) ** 2 / len(features))
