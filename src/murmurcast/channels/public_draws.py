"""What is drawn in public: phases, dither, pilots' noise, by the radio's own seed, epoch, round and owner."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import jax


_PUBLIC = 1  # the first word of the root, where nodes' own draws have 0: no secret draw has the key of a public one
_DRAWN = np.float32  # whatever a run computes with: the channel must be the same


class Purpose(IntEnum):
    """What a public draw is for; never renumber, or old seeds give new channels."""

    FADING = 1
    PHASE = 2
    DITHER = 3
    SIDE = 4
    PILOT = 5
    WRONG_PILOT = 6
    WRONG_PHASE = 7
    QUANTISER = 8
    CFO = 9
    CALIBRATION = 10


class PublicDraws(NamedTuple):
    """Draws of one round.

    Attributes:
        seed: The radio's.
        when: A number of epoch and round; None for what stands still.
        dtype: To which draws are cast.
    """

    seed: int
    when: Any
    dtype: Any

    def always(self) -> PublicDraws:
        """The same for all epochs and rounds."""
        return self._replace(when=None)

    def normal(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """Standard normal, one for each owner's number [...]."""
        return self._normals(purpose, owner, ())

    def complex_normal(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """Circular, of mean power 1, one for each owner's number [...]."""
        both = self._normals(purpose, owner, (2,))
        circular: jax.Array = np.sqrt(0.5).astype(self.dtype) * (both[..., 0] + 1j * both[..., 1])
        return circular

    def turn(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """A uniform phase, as a complex number of modulus 1, one for each owner's number [...]."""
        import jax.numpy as jnp

        return jnp.exp(2j * np.pi * self.uniform(purpose, owner, ()))

    def coin(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """True or false, one for each owner's number [...]."""
        return self.uniform(purpose, owner, ()) < 0

    def uniform(self, purpose: Purpose, owner: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """[..., *shape] between -1/2 and 1/2, for each owner's number [...]."""
        return self._each(purpose, owner, lambda random, key: random.uniform(key, shape, _DRAWN, -0.5, 0.5))

    def _normals(self, purpose: Purpose, owner: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return self._each(purpose, owner, lambda random, key: random.normal(key, shape, _DRAWN))

    def key_of(self, purpose: Purpose) -> jax.Array:
        """From which every owner's key follows by its number."""
        import jax
        import jax.numpy as jnp

        root = jax.random.wrap_key_data(jnp.array([_PUBLIC, self.seed], jnp.uint32))
        key = jax.random.fold_in(root, int(purpose))
        return key if self.when is None else jax.random.fold_in(key, self.when)

    def _each(self, purpose: Purpose, owner: jax.Array, draw: Any) -> jax.Array:
        import jax

        key = self.key_of(purpose)
        flat: jax.Array = jax.vmap(lambda number: draw(jax.random, jax.random.fold_in(key, number)))(owner.ravel())
        return flat.reshape(*owner.shape, *flat.shape[1:]).astype(self.dtype)
