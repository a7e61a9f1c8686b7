"""A fingerprint of arrays: the same numbers in the same order and type, and nothing else, have the same one."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def sha256_of(arrays: Iterable[NDArray[Any]]) -> str:
    """The SHA-256 of all arrays in their order, each with its type and shape; read once, and not copied."""
    state = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        state.update(f"{whole.dtype.str} {whole.shape}\n".encode())
        state.update(whole.reshape(-1).view(np.uint8).data)
    return state.hexdigest()
