"""What can be said of weights that PyTorch will not hand out, with PyTorch or without."""

import sys
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.problems.modules.from_torch import from_torch


class Tensor:
    """Answers as a tensor does: with numbers, or with PyTorch's refusal."""

    def __init__(self, numbers: Any) -> None:
        self.numbers, self.requires_grad = numbers, True

    def is_floating_point(self) -> bool:
        return True

    def detach(self) -> "Tensor":
        return self

    def numpy(self) -> Any:
        if isinstance(self.numbers, Exception):
            raise self.numbers
        return self.numbers


class Module:
    """A module with one weight."""

    def __init__(self, weight: Any, buffer: Any = 0.0) -> None:
        self.weight, self.buffer, self.training = Tensor(weight), Tensor(buffer), False

    def named_modules(self) -> Any:
        return [("", self)]

    def named_parameters(self) -> Any:
        return [("0.weight", self.weight)]

    def named_buffers(self) -> Any:
        return [("0.mean", self.buffer)]


class NotCopied(Module):
    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("only tensors created by the user support deepcopy")


class Frozen(Module):
    def __init__(self) -> None:
        super().__init__(np.ones(3))
        self.weight.requires_grad = False


def bridge(_: Any) -> Any:
    raise ValueError("no such operation")


@pytest.mark.parametrize(
    ("module", "words", "hint"),
    [
        (Module(TypeError("unsupported ScalarType BFloat16")), "0.weight cannot be read .*BFloat16", "float32"),
        (Module(ValueError("uninitialized parameter")), "0.weight cannot be read .*uninitialized", "lazy"),
        (Module(np.ones(3), TypeError("cuda:0")), "0.mean cannot be read .*cuda", "cpu"),
        (NotCopied(np.ones(3)), "NotCopied cannot be copied: RuntimeError", "buffers"),
        (Module(np.ones(3)), "layer Module cannot be converted to JAX: ValueError", "another layer"),
        (Frozen(), "all parameters of Frozen are frozen", "requires_grad"),
    ],
    ids=["bfloat16", "lazy", "device", "copy", "bridge", "frozen"],
)
def test_what_torch_refuses_is_said_in_our_words(
    module: Module, words: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchax", SimpleNamespace(extract_jax=bridge))
    with pytest.raises(mc.Error, match=words) as raised:
        from_torch(module, jnp.ones((2, 64)))
    assert hint in raised.value.hint
