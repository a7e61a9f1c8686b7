"""PyTorch modules, run by JAX through torchax: written for batches, so each example is a batch of one."""

import copy
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.base import Converted, Parameters
from murmurcast.problems.modules.convert import refuse_dropout, refuse_mixing, require_unmixed

_MIXING = ("BatchNorm", "SyncBatchNorm", "LazyBatchNorm")  # how their classes' names begin


def from_torch(module: Any, features: jax.Array) -> Converted:
    """An `nn.Module` as it stands: nodes begin at its weights. Buffers and frozen parameters are constants."""
    try:
        import torchax
    except ImportError as problem:
        raise Error(
            f"a PyTorch module needs torchax, which cannot be imported: {_check.short(problem)}",
            hint='install it: pip install "murmurcast[torch]"',
        ) from None
    _require_own_gradients(module)
    module = _copied(module)  # hooks and JAX tensors stay out of the user's, and later steps of its own out of this
    trained, frozen = _parameters(module)
    kept = {name: jnp.asarray(array) for name, array in _arrays([*module.named_buffers(), *frozen]).items()}
    weights = _arrays(trained)
    entered: list[str] = []

    def initialise(key: jax.Array) -> Parameters:
        del key  # the module was initialised where it was made
        return {name: jnp.asarray(value) for name, value in weights.items()}

    def apply_to_all(parameters: Parameters, rows: jax.Array) -> jax.Array:
        # In the precision of the run, as parameters are.
        constant = {name: one.astype(rows.dtype) if _is_real(one) else one for name, one in kept.items()}
        return call(parameters | constant, (rows,))

    def apply(parameters: Parameters, one: jax.Array) -> jax.Array:
        return apply_to_all(parameters, one[None])[0]

    try:
        entered = _watched(module)
        _, call = torchax.extract_jax(module)
        jax.eval_shape(jax.grad(lambda weights: jnp.sum(apply(weights, features[0]))), initialise(jax.random.key(0)))
    except Exception as problem:  # noqa: BLE001 - whatever the bridge raises is said in our words
        layer = entered[-1] if entered else type(module).__name__
        raise Error(
            f"the layer {layer} cannot be converted to JAX: {type(problem).__name__}: {_check.short(problem)}",
            hint="use another layer, or write the model in JAX, Flax or Equinox",
        ) from None
    require_unmixed(apply_to_all, apply, initialise(jax.random.key(0)), features)
    return Converted(initialise, apply)


def _require_own_gradients(module: Any) -> None:
    """No layer mixes examples, draws at random, or has whole numbers to learn."""
    for name, layer in module.named_modules():
        kind, words = type(layer).__name__, f"{name or 'the module'} ({type(layer).__name__})"
        names = [base.__name__ for base in type(layer).__mro__]
        if any(one.startswith(_MIXING) for one in names):
            raise refuse_mixing(words, kind)
        if getattr(layer, "track_running_stats", False):
            raise refuse_mixing(words, f"{kind} with running statistics")
        drops = "Dropout" in kind and getattr(layer, "p", 0) > 0
        if layer.training and (drops or getattr(layer, "dropout", 0) not in (0, 0.0)):
            raise refuse_dropout(words)
    for name, value in _parameters(module)[0]:
        if not value.is_floating_point():
            raise Error(f"the parameter {name} is of {value.dtype}, which has no gradient", hint="make it float32")


def _parameters(module: Any) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Those that are trained, and those that the user has frozen."""
    everything = list(module.named_parameters())
    trained = [(name, value) for name, value in everything if value.requires_grad]
    if everything and not trained:
        raise Error(
            f"all parameters of {type(module).__name__} are frozen: nothing could be learnt",
            hint="leave requires_grad at True for those to be trained",
        )
    return trained, [(name, value) for name, value in everything if not value.requires_grad]


def _is_real(array: jax.Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _copied(module: Any) -> Any:
    try:
        return copy.deepcopy(module)
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is said in our words
        raise Error(
            f"{type(module).__name__} cannot be copied: {type(problem).__name__}: {_check.short(problem)}",
            hint="let it hold parameters and buffers only, no results of computations",
        ) from None


def _arrays(tensors: Iterable[tuple[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Tensors by name, as arrays; bfloat16, other devices and layers that have not seen their input yet have none."""
    arrays = {}
    for name, tensor in tensors:
        try:
            arrays[name] = np.asarray(tensor.detach().numpy())
        except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is said in our words
            raise Error(
                f"{name} cannot be read as an array: {type(problem).__name__}: {_check.short(problem)}",
                hint="make the module float32 on the CPU: module.float().cpu(); call one with lazy layers once before",
            ) from None
    return arrays


def _watched(module: Any) -> list[str]:
    """The layers that were entered, in order: the last one is where a conversion fails."""
    entered: list[str] = []
    for name, layer in module.named_modules():
        words = f"{name} ({type(layer).__name__})"
        if name:
            layer.register_forward_pre_hook(lambda *_, words=words: entered.append(words))
    return entered
