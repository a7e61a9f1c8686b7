"""How gradients are kept short, and what that makes of them: the sensitivity that every promise starts from."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.privacy.certificate import Unit

if TYPE_CHECKING:
    import jax

Clipping = Literal["node", "example", "layer", "none"]
_ROUNDINGS_OF_ONE = 4  # by which a single example's clip may be off: 5e-7 in float32, which a mean may be too


@dataclass(frozen=True, kw_only=True)
class Clip:
    """A bound of gradients, enforced and not assumed; it knows how far one unit's data can move a gradient.

    Args:
        limit: G or C, the longest gradient that passes.
        per: What is clipped: the "node"'s gradient, each "example"'s as a whole, each example's "layer" by layer (an
            example's whole gradient is then within the limit too), or "none", where the limit is only nominal.
        examples_per_node: The fixed n by which clipped examples are averaged, one number or [nodes]; None where there
            are no examples.
    """

    limit: float
    per: Clipping
    examples_per_node: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_clipping(self.limit, self.per)

    @property
    def bounds(self) -> bool:
        """Whether anything is clipped: without a clip nothing can be promised."""
        return self.per != "none"

    def sensitivity(self, unit: Unit, nodes: int, records_per_person: int = 1) -> FloatArray:
        """[nodes] S: the largest change of one node's gradient when one unit's data changes.

        Args:
            unit: What is hidden.
            nodes: How many nodes there are.
            records_per_person: k, how many records change together; for unit record only.

        Guarantees:
            Unit node: 2 limit, whichever is clipped. Unit record: 2 limit k / n with the fixed n; each example's
            gradient must be clipped, as a whole or layer by layer: the root of L (limit / sqrt(L))^2 is the limit.
            Nominal, and no guarantee, where nothing is clipped.
        """
        if unit == "node":
            return np.full(nodes, 2.0 * self.limit)
        if self.examples_per_node is None:
            raise Error(
                'unit "record" needs the number of examples per node',
                hint="give examples_per_node, one number or one per node (sizes are public)",
            )
        examples = _check.per_node(nodes, examples_per_node=self.examples_per_node)
        if records_per_person > examples.min():
            node = int(examples.argmin())
            raise Error(
                f"records_per_person is {records_per_person}, and node {node} averages over {examples[node]:g} records",
                hint='lower it, or hide all that a node holds: unit = "node"',
            )
        return np.asarray(2 * self.limit * records_per_person / examples)

    def require_unit(self, unit: Unit) -> None:
        """A promise about this unit can rest on the clip."""
        if unit == "record" and self.per == "node":
            raise Error(
                "unit record needs every example's gradient clipped, and the problem clips the node's",
                hint='set clipping to "example", or plan for unit "node"',
            )

    def of_node(self, gradient: "jax.Array") -> "jax.Array":
        """A node's gradient, shortened to the limit where nodes are clipped."""
        return gradient * shrink(norm(gradient), self.limit) if self.per == "node" else gradient

    def excess(self, mean: "jax.Array", most: float = 1.0) -> "jax.Array | float":
        """How many times too long rounding made a node's mean of clipped examples; 1 where it did not.

        In float32 a sum of n equal gradients of norm C may come out as n C (1 + 1e-4). Dividing by this brings a mean
        that left the ball of all such means back to its nearest point there. Projections on a ball move no two points
        apart, so one record moves the result by no more than it moves the mean: 2 C / n. Float64 needs none of this,
        and what is counted of its roundings (`privacy.discrete`) stays true.

        Args:
            mean: The sum of clipped examples over the fixed number n.
            most: How many examples may be in the sum, over n: above 1 where secret coins may let more join.
        """
        import jax.numpy as jnp  # planning needs a clip, and no engine

        if self.per not in ("example", "layer") or mean.dtype != np.float32:
            return 1.0
        longest = self.limit * most * (1 + _ROUNDINGS_OF_ONE * float(np.finfo(np.float32).eps))
        return jnp.maximum(norm(mean / longest), 1)  # squares of the mean itself overflow where the limit is 1e20

    def of_examples(self, present: "jax.Array", norms: "jax.Array") -> "jax.Array":
        """[examples] the factor of every example's gradient: 0 for filling, and what its clip leaves of the others."""
        return present * shrink(norms, self.limit) if self.per in ("example", "layer") else present

    def for_layers(self, count: int) -> "Clip":
        """The clip of each of so many layers of an example, limit / sqrt(count): all together keep the limit."""
        return replace(self, limit=self.limit / float(np.sqrt(count)))


def require_clipping(limit: float, per: str) -> None:
    """The limit is a number and what is clipped is known."""
    _check.positive(clip=limit)
    _check.one_of(get_args(Clipping), clipping=per)


def smallest_limit(dim: int, precision: str, largest_feature: float = 1.0) -> float:
    """The smallest clip that a computation in this precision can keep.

    A norm is the root of a sum of squares, and squares below the smallest normal number are lost: of a gradient with m
    entries, m times that number together. Where this is less than what rounding leaves open in the square of the limit,
    nothing longer passes, but for rounding. An example's norm may be worked out as that of its residuals times that
    of its features: what is lost then grows with the largest feature.

    Args:
        dim: m, the number of parameters.
        precision: "float32" or "float64".
        largest_feature: The largest size of a feature.
    """
    kind = np.finfo(precision)
    return float(np.sqrt(dim * float(kind.tiny) / float(kind.eps)) * max(1.0, largest_feature))


def norm(array: "jax.Array") -> "jax.Array":
    """Euclidean norm of all entries."""
    import jax.numpy as jnp  # planning needs a clip, and no engine

    return jnp.sqrt(jnp.sum(array * array))


def shrink(norms: "jax.Array", limit: float) -> "jax.Array":
    """The factor that brings vectors of these norms to at most `limit`."""
    import jax.numpy as jnp  # planning needs a clip, and no engine

    return jnp.minimum(1.0, limit / jnp.maximum(norms, limit * 1e-6))


def length(squares: "jax.Array", parts: "jax.Array") -> "jax.Array":
    """A norm from its square, which was added up from parts of both signs; `parts` is the sum of their sizes.

    Rounded up by what may be lost where the parts cancel, so that nothing longer than the clip passes.
    """
    import jax.numpy as jnp  # planning needs a clip, and no engine

    return jnp.sqrt(jnp.maximum(squares, 0) + 8 * float(np.finfo(squares.dtype).eps) * parts)
