"""What is drawn in public: phases, dither, pilots' noise, by the radio's own seed, epoch, round and owner.

Drawn in float32 whatever the precision of a run: float64 takes other bits of a key, so a run in float64 would meet
another channel than the one its z was made for.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import jax


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


class PublicDraws(NamedTuple):
    """Draws of one round.

    Attributes:
        seed: The radio's.
        when: A number of epoch and round; None for what stands still.
        dtype: Of real draws.
    """

    seed: int
    when: Any
    dtype: Any

    def always(self) -> PublicDraws:
        """The same for all epochs and rounds."""
        return self._replace(when=None)

    def normal(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """Standard normal, one for each owner's number [...]."""
        return self._each(purpose, owner, lambda random, key: self._cast(random.normal(key, dtype=np.float32)))

    def complex_normal(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """Circular, of mean power 1, one for each owner's number [...]."""
        import jax.numpy as jnp

        both = self._each(purpose, owner, lambda random, key: self._cast(random.normal(key, (2,), np.float32)))
        return jnp.asarray(np.sqrt(0.5), self.dtype) * (both[..., 0] + 1j * both[..., 1])

    def turn(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """A uniform phase, as a complex number of modulus 1, one for each owner's number [...]."""
        import jax.numpy as jnp

        share = self._each(purpose, owner, lambda random, key: self._cast(random.uniform(key, dtype=np.float32)))
        return jnp.exp(2j * np.pi * share)

    def coin(self, purpose: Purpose, owner: jax.Array) -> jax.Array:
        """True or false, one for each owner's number [...]."""
        return self._each(purpose, owner, lambda random, key: random.uniform(key, dtype=np.float32) < 0.5)

    def uniform(self, purpose: Purpose, owner: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """[..., *shape] between -1/2 and 1/2, for each owner's number [...]."""
        drawn = self._each(purpose, owner, lambda random, key: random.uniform(key, shape, np.float32, -0.5, 0.5))
        return self._cast(drawn)

    def _cast(self, drawn: jax.Array) -> jax.Array:
        return drawn.astype(self.dtype)

    def _each(self, purpose: Purpose, owner: jax.Array, draw: Any) -> jax.Array:
        import jax

        key = jax.random.fold_in(jax.random.key(self.seed), int(purpose))
        if self.when is not None:
            key = jax.random.fold_in(key, self.when)
        flat: jax.Array = jax.vmap(lambda number: draw(jax.random, jax.random.fold_in(key, number)))(owner.ravel())
        return flat.reshape(*owner.shape, *flat.shape[1:])
