"""What [problem] names, where it is learnt from examples: problems of the house, and modules by name."""

from typing import TYPE_CHECKING, Any

from murmurcast.errors import Error
from murmurcast.experiments.schema import ProblemSection

if TYPE_CHECKING:
    from murmurcast.problems.base import Problem
    from murmurcast.problems.modules.base import Module

_OF_MODELS = ("module", "loss", "options")


def require_keys(section: ProblemSection) -> None:
    """The section has what its kind needs, and nothing of another kind's."""
    given = [key for key in _OF_MODELS if getattr(section, key) is not None]
    if section.kind != "model" and given:
        raise Error(
            f'problem.{given[0]} has no meaning with problem.kind = "{section.kind}"',
            hint=f'set problem.kind = "model", or remove {given[0]}',
        )
    if section.bias is not None and section.kind != "softmax":
        raise Error(f'problem.bias has no meaning with problem.kind = "{section.kind}"', hint="remove problem.bias")
    for key, such_as in (("module", "mlp"), ("loss", "cross-entropy")):
        if section.kind == "model" and key not in given:
            raise Error(f"problem.{key} is missing", hint=f'a model needs one: {key} = "{such_as}"')


def names_own_code(section: ProblemSection) -> bool:
    """Whether building the problem would run code that does not come with the package."""
    return section.module is not None and ":" in section.module


def _require_dim(dim: int, module: "Module") -> None:
    """A shipped module has as many parameters as is said: looked up by shape, before any of them is in memory."""
    from murmurcast.problems.modules.base import tree_of

    parameters = tree_of(module.initialise).size
    if parameters != dim:
        raise Error(f"problem.dim is {dim}, but the model has {parameters} parameters", hint="remove problem.dim")


def on_examples(section: ProblemSection, arguments: dict[str, Any]) -> "Problem":
    """The problem that the section names.

    Args:
        section: Names it.
        arguments: What all problems on examples take.
    """
    if section.kind == "softmax":
        from murmurcast.problems.softmax import SoftmaxRegression

        return SoftmaxRegression(**arguments, bias=1.0 if section.bias is None else section.bias)
    if section.kind == "ridge":
        from murmurcast.problems.ridge import RidgeRegression

        return RidgeRegression(**arguments)
    from murmurcast.problems.losses import named_loss
    from murmurcast.problems.model import Model
    from murmurcast.problems.modules import registry

    dataset, loss = arguments["data"].dataset, str(section.loss)
    named_loss(loss, dataset)
    module = registry.build(str(section.module), dataset, section.options or {}, section.seed)
    if section.dim is not None and not names_own_code(section):
        _require_dim(section.dim, module)
    return Model(module=module, loss=loss, **arguments)
