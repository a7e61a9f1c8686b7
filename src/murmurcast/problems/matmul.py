"""Products of a tall matrix, the examples, with a few rows, one per class: quick for one model, quicker for many.

Matrix products are at their best with a multiple of eight columns. The models of several seeds see the same examples,
so their rows go through in one product: `jax.vmap` over models stacks them instead of repeating the product.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap


def _product(tall: jax.Array, rows: jax.Array) -> jax.Array:
    """[rows, n] = rows [rows, d] times the transpose of tall [n, d]."""
    widened = jnp.pad(rows, ((0, -len(rows) % 8), (0, 0)))
    return (tall @ widened.T)[:, : len(rows)].T


@custom_vmap
def product(tall: jax.Array, rows: jax.Array) -> jax.Array:
    """[rows, n] = rows [rows, d] times the transpose of tall [n, d]."""
    return _product(tall, rows)


@product.def_vmap
def _product_of_many(size: int, batched: list[bool], tall: jax.Array, rows: jax.Array) -> tuple[Any, bool]:
    if batched == [False, True]:  # many models, the same examples
        stacked = _product(tall, rows.reshape(-1, rows.shape[-1]))
        return stacked.reshape(size, -1, len(tall)), True
    axes = tuple(0 if one else None for one in batched)
    return jax.vmap(_product, in_axes=axes)(tall, rows), True
