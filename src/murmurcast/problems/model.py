"""A model of your own: any loss of one example, over any tree of parameters, from its own starting point.

Gradients are taken example by example, each is clipped over the whole tree (or layer by layer), and their sum is
divided by a fixed number: whatever the loss is, one record moves a node's gradient by at most 2 clip / n. Inside, a
model is one flat array; trees are for the functions you write.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems import model_checks, per_example
from murmurcast.problems.base import Metrics
from murmurcast.problems.examples import OnExamples, Rows, TestPart, stacked
from murmurcast.problems.losses import OfOutputs, named_loss, outputs_for
from murmurcast.problems.model_checks import CheckedGradient
from murmurcast.problems.modules.base import Initialise, Module, Parameters, ParameterTree, ravel, tree_of
from murmurcast.problems.modules.convert import as_module
from murmurcast.problems.modules.dense import DenseStack
from murmurcast.problems.per_example import Clips, Example, Loss, Predict

_ROWS_PER_EVALUATION = 256  # of the test part, worked on at once


@dataclass(frozen=True)
class _OfModule:
    """The loss of one example by name; meets `Loss`, and is the same for the same module."""

    module: Module
    of: OfOutputs

    def __call__(self, parameters: Parameters, example: Example, /) -> jax.Array:
        """A scalar."""
        return self.of(self.module.apply(parameters, example.features), example.target)


class _Judged(NamedTuple):
    """One example of the test part: its loss, and whether its label was predicted."""

    loss: jax.Array
    hit: jax.Array | None


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class Model(OnExamples):
    """A problem with a model of your own; further arguments as `OnExamples`.

    Give either a module and a loss by name, or `initialise` and a loss as a function.

    Args:
        loss: "cross-entropy" or "squared-error" of a module's outputs; or the loss of one example, a function of
            parameters and example.
        module: One of `mc.modules`; a module of Flax, Equinox or PyTorch; or a function from a JAX key to a module of
            Flax (nnx) or Equinox.
        initialise: Where nodes begin, without a module.
        predict: The label of one example, for the accuracy, without a module; None leaves it out.

    Guarantees:
        With clipping "example" or "layer" one record moves a node's gradient by at most 2 clip / n, n the fixed number
        of examples per node, for every loss and all data: an example whose gradient is not finite counts as 0.
    """

    loss: Loss | str
    module: Any = None
    initialise: Initialise | None = None
    predict: Predict | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.module is None) == (self.initialise is None) or isinstance(self.loss, str) == (self.module is None):
            raise Error(
                "a model is a module with a loss by name, or initialise with a loss as a function",
                hint='give module=mc.modules.mlp(64, 10), loss="cross-entropy"; or initialise, loss and predict',
            )
        dataset = self.data.dataset
        if self.predict is not None and (dataset.classes is None or self.module is not None):
            kind = "the targets are values" if dataset.classes is None else "a module's loss predicts them already"
            raise Error(f"predict gives labels, and {kind}", hint="leave predict out")
        examples = Example(*(jnp.asarray(part[:2]) for part in self.test_data()))
        if isinstance(self.loss, str):
            named_loss(self.loss, dataset)
            # From here on it is a module of ours, checked: a copy of this problem on other data need not do it again.
            object.__setattr__(self, "module", as_module(self.module, examples.features))
        self._tree  # noqa: B018 - checks itself
        if self.module is not None:
            model_checks.require_outputs(self.module, self._tree, examples.features, outputs_for(dataset))
        model_checks.require_loss(self._gradient, self._begin, examples)
        if self.predict is not None:
            model_checks.require_label(self.predict, self._begin, examples.features)

    @cached_property
    def _tree(self) -> ParameterTree:
        return tree_of(self._begin)

    @cached_property
    def _begin(self) -> Initialise:
        return self.module.initialise if self.initialise is None else self.initialise

    @cached_property
    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            return _OfModule(self.module, named_loss(self.loss, self.data.dataset).of)
        return self.loss

    @cached_property
    def _gradient(self) -> CheckedGradient:
        return CheckedGradient(self._loss)

    @property
    def constants_of_loss(self) -> tuple[Any, ...]:
        """What the loss holds besides its parameters, such as frozen layers: a run that goes on must have the same."""
        return self._gradient.constants

    @property
    def _dense(self) -> DenseStack | None:
        """The stack whose examples are clipped in closed form; a class derived from it may do anything in its place."""
        return self.module if isinstance(self.loss, str) and type(self.module) is DenseStack else None

    @property
    def shape(self) -> tuple[int]:
        """(parameters,)."""
        return (self._tree.size,)

    def parameters(self, model: jax.Array) -> Parameters:
        """The tree of a flat model, such as `result.published[0, 0]`."""
        return self._tree.unravel(jnp.asarray(model))

    def start(self, key: jax.Array) -> jax.Array:
        """Where `initialise` or the module begins, the same at all nodes."""
        return ravel(self._begin(key))

    def local_data(self) -> Rows:
        """All nodes' examples, filled up to whole blocks, so that none is filled up in every epoch."""
        rows = stacked(self)._replace(columns=None)
        missing = self.rows_of_node - rows.present.shape[1]

        def filled(leaf: Any) -> Any:
            return np.pad(leaf, [(0, 0), (0, missing), *[(0, 0)] * (leaf.ndim - 2)]) if leaf.ndim > 1 else leaf

        return jax.tree.map(filled, rows) if missing else rows

    @property
    def rows_of_node(self) -> int:
        """As many as the largest node has, and of full batches as many as whole blocks have."""
        most = int(self.data.sizes.max())
        return most if self.batch is not None else most + -most % self._rows_per_block(most)

    def test_data(self) -> TestPart:
        """The test part."""
        return TestPart(self.data.dataset.test_features, self.data.dataset.test_targets)

    def gradient_at_public(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient; the L2 term, free of data here, is added after clipping."""
        rows, count = self.drawn(mine, key)
        return self.averaged(self._clipped_sum(model, rows, 0.0), count) + self.l2 * model

    def gradient_at_private(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient, the L2 term inside the clip of every example."""
        rows, count = self.drawn(mine, key)
        return self.averaged(self._clipped_sum(model, rows, self.l2), count)

    def evaluate(self, model: jax.Array, test: TestPart) -> Metrics:
        """Mean loss on the test part, and accuracy where labels are predicted."""
        parameters, loss = self.parameters(model), self._loss

        def judge(example: Example) -> _Judged:
            if isinstance(loss, _OfModule) and self.data.dataset.classes is not None:
                outputs = loss.module.apply(parameters, example.features)
                return _Judged(loss.of(outputs, example.target), jnp.argmax(outputs) == example.target)
            hit = None if self.predict is None else self.predict(parameters, example.features) == example.target
            return _Judged(loss(parameters, example), hit)

        examples = Example(test.features, test.targets)
        judged: _Judged = jax.lax.map(judge, examples, batch_size=_ROWS_PER_EVALUATION)
        metrics = {"loss": jnp.mean(judged.loss)}
        if judged.hit is not None:
            accuracy = jnp.mean(judged.hit, dtype=metrics["loss"].dtype)
            metrics["accuracy"] = jnp.where(jnp.isfinite(metrics["loss"]), accuracy, jnp.nan)
        return metrics

    def _clipped_sum(self, model: jax.Array, rows: Rows, l2: float) -> jax.Array:
        """The sum of all examples' gradients, for one node and seed after the other where there are convolutions.

        Convolutions of many models at once are slow, and inside a sharded program JAX refuses them.
        """
        if not self._convolves(model, rows):
            return self._sum(model, rows, l2)
        return sequential_vmap(lambda model, rows: self._sum(model, rows, l2))(model, rows)

    def _sum(self, model: jax.Array, rows: Rows, l2: float) -> jax.Array:
        """The sum of all examples' gradients, each with the L2 term, each clipped; block by block."""
        parameters, clips = self.parameters(model), Clips(self.gradient_clip, self._tree.layers, l2)
        dense, loss = self._dense, self._loss

        def of_block(examples: Example, present: jax.Array) -> Parameters:
            if dense is not None and isinstance(loss, _OfModule):
                return per_example.sum_of_dense(dense, loss.of, parameters, (examples, present), clips)
            return per_example.sum_by_autodiff(self._gradient, parameters, examples, present, clips)

        everything = (Example(rows.features, rows.targets), rows.present)
        size = self._rows_per_block(len(rows.present))
        return ravel(per_example.over_blocks(of_block, parameters, everything, size))

    def _convolves(self, model: jax.Array, rows: Rows) -> bool:
        """Whether there are convolutions in what is trained."""
        if self._dense is not None:
            return False
        tree, examples = self._tree, Example(rows.features, rows.targets)
        leaves = [jax.ShapeDtypeStruct(shape, model.dtype) for shape in tree.shapes]
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), examples)
        program = self._gradient.program(jax.tree.unflatten(tree.structure, leaves), one)
        return "conv_general_dilated" in map(str, model_checks.primitives(program))

    def _rows_per_block(self, count: int) -> int:
        """Rows of which gradients, or activations where these are enough, fit in the cache."""
        numbers = self._tree.size if self._dense is None else sum(self._dense.sizes)
        return per_example.rows_per_block(4 * numbers, count)
