"""A quadratic at every node: f_i(x) = (x - b_i)' Q_i (x - b_i) / 2. Everything about it is known in closed form."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.problems import base
from murmurcast.problems.base import Constants, Leaf, Metrics, Omega
from murmurcast.problems.clip import Clip, Clipping, norm, require_clipping


class Bowl(NamedTuple):
    """A node's quadratic, or all with a leading node axis."""

    curvature: Leaf
    centre: Leaf


class QuadraticTest(NamedTuple):
    """The mean quadratic, x'Hx/2 - b'x + constant, and its minimiser over Omega."""

    hessian: Leaf
    slope: Leaf
    constant: Leaf
    optimum: Leaf


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class Quadratic:
    """One quadratic per node.

    Args:
        curvature: [nodes, dim, dim] symmetric Q_i.
        centre: [nodes, dim] b_i.
        clip: What a node's gradient is clipped to.
        clipping: "node" or "none"; there are no examples to clip.
        ball: Omega is the ball of this radius.
        box: Omega is the box of this half width.
        begin: Where nodes begin, [dim], or [nodes, dim] for a point of each node's own; 0 by default.
    """

    curvature: FloatArray
    centre: FloatArray
    clip: float = 1.0
    clipping: Clipping = "node"
    ball: float | None = None
    box: float | None = None
    begin: FloatArray | None = None

    def __post_init__(self) -> None:
        require_clipping(self.clip, self.clipping)
        base.require_omega(self.ball, self.box)
        if self.clipping in ("example", "layer"):
            raise Error("a quadratic has no examples to clip", hint='set clipping to "node" or "none"')
        curvature, centre = np.array(self.curvature, np.float64), np.array(self.centre, np.float64)
        if centre.ndim != 2 or curvature.shape != (*centre.shape, centre.shape[-1]):
            raise Error(
                f"curvature has shape {curvature.shape}, centre {centre.shape}",
                hint="give curvature [nodes, dim, dim] and centre [nodes, dim]",
            )
        if not (np.isfinite(curvature).all() and np.isfinite(centre).all()):
            raise Error("a quadratic holds a number that is not finite", hint="check curvature and centre")
        if not np.allclose(curvature, curvature.transpose(0, 2, 1)):
            raise Error("a curvature is not symmetric", hint="give (Q + Q')/2")
        if self.begin is not None and np.shape(self.begin) not in (centre.shape, centre.shape[1:]):
            raise Error(f"begin has shape {np.shape(self.begin)}", hint="give one point, or one for every node")
        object.__setattr__(self, "curvature", _check.frozen(curvature))
        object.__setattr__(self, "centre", _check.frozen(centre))
        if np.linalg.eigvalsh(curvature.mean(axis=0))[0] <= 0:
            raise Error("the sum of the quadratics has no minimum", hint="give curvatures whose sum is positive")

    @classmethod
    def random(
        cls,
        nodes: int,
        dim: int,
        *,
        seed: int = 0,
        clip: float = 1.0,
        clipping: Clipping = "node",
        ball: float | None = None,
        box: float | None = None,
    ) -> "Quadratic":
        """Curvatures with eigenvalues between 0.5 and 2 in random directions, centres standard normal."""
        _check.at_least(1, nodes=nodes, dim=dim)
        _check.at_least(0, seed=seed)
        generator = np.random.default_rng([seed, 5])
        turned, _ = np.linalg.qr(generator.standard_normal((nodes, dim, dim)))
        values = generator.uniform(0.5, 2.0, (nodes, 1, dim))
        curvature = (turned * values) @ turned.transpose(0, 2, 1)
        return cls(
            curvature=(curvature + curvature.transpose(0, 2, 1)) / 2,
            centre=generator.standard_normal((nodes, dim)),
            clip=clip,
            clipping=clipping,
            ball=ball,
            box=box,
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.centre)

    @property
    def shape(self) -> tuple[int]:
        """(dim,)."""
        return (self.centre.shape[1],)

    @property
    def dim(self) -> int:
        """m, the number of parameters."""
        return int(self.centre.shape[1])

    @property
    def gradient_clip(self) -> Clip:
        """What gradients are clipped to."""
        return Clip(limit=self.clip, per=self.clipping)

    @property
    def examples_per_node(self) -> None:
        """There are no examples."""
        return

    @property
    def omega(self) -> Omega:
        """Where models may lie."""
        return Omega(self.ball, self.box)

    @property
    def radius(self) -> float | None:
        """The largest norm of a model."""
        return self.omega.radius(self.dim)

    @property
    def bytes_per_gradient(self) -> int:
        """The curvature."""
        return 4 * self.dim * self.dim

    def start(self, key: jax.Array) -> FloatArray:  # noqa: ARG002
        """All begin at 0, or where they are told to."""
        return np.zeros(self.shape) if self.begin is None else np.asarray(self.begin)

    def local_data(self) -> Bowl:
        """Every node's quadratic."""
        return Bowl(self.curvature, self.centre)

    def test_data(self) -> QuadraticTest:
        """F itself: there is nothing else to test on."""
        hessian, slope = self._mean_form()
        constant = np.einsum("ki,kij,kj->", self.centre, self.curvature, self.centre) / (2 * self.nodes)
        return QuadraticTest(hessian, slope, constant, self.optimum())

    def gradient_at_public(self, model: jax.Array, mine: Bowl, key: jax.Array) -> jax.Array:  # noqa: ARG002
        """The node's gradient Q (x - b), clipped."""
        return self.gradient_clip.of_node(mine.curvature @ (model - mine.centre))

    def gradient_at_private(self, model: jax.Array, mine: Bowl, key: jax.Array) -> jax.Array:
        """The same: there is no data-free term."""
        return self.gradient_at_public(model, mine, key)

    def project(self, model: jax.Array) -> jax.Array:
        """The nearest point of Omega."""
        return self.omega.project(model)

    def evaluate(self, model: jax.Array, test: QuadraticTest) -> Metrics:
        """F/nodes, and the distance to the optimum."""
        loss = model @ test.hessian @ model / 2 - test.slope @ model + test.constant
        return {"loss": loss, "distance": norm(model - test.optimum)}

    @cached_property
    def constants(self) -> Constants:
        """Strong convexity of F/nodes; smoothness of every f_i; the gradient's bound is the clip."""
        hessian, _ = self._mean_form()
        smoothness = np.abs(np.linalg.eigvalsh(self.curvature)).max(axis=1).astype(np.float64)
        bound = self.clip if self.gradient_clip.bounds else np.inf
        return Constants(float(np.linalg.eigvalsh(hessian)[0]), smoothness, bound)

    def optimum(self) -> FloatArray:
        """x*, [dim]: the minimiser of F over Omega, unclipped."""
        return base.quadratic_optimum(*self._mean_form(), self.omega)

    def _mean_form(self) -> tuple[FloatArray, FloatArray]:
        slope = np.einsum("kij,kj->i", self.curvature, self.centre) / self.nodes
        return self.curvature.mean(axis=0), slope
