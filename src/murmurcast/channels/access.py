"""How nodes share the air, one class for each way: what a receiver makes of its antenna, and at what price.

aligned      all at once, phases agree at every receiver: the paper's ideal
own-slot     every sender alone, with a pilot of its own
referenced   all at once, phases as they come, one pilot for all
digital      every sender alone, quantised
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from murmurcast.channels.public_draws import PublicDraws, Purpose
from murmurcast.radio import combining
from murmurcast.radio.combining import Combining, Pilot
from murmurcast.radio.settings import Radio

if TYPE_CHECKING:
    import jax


class Reception(NamedTuple):
    """What the receivers' antennas have in one round; [nodes, heard] unless said.

    Attributes:
        arriving: g, complex: how the symbols of every neighbour arrive.
        linked: Who is heard at all.
        sender: Numbers of the senders.
        receiver: [nodes] numbers of the receivers.
        nodes: How many there are.
        mean_power: [nodes] Lambda, what arrives on average.
        noise: [nodes] N, in a complex symbol.
        pilot_std: [nodes] of a pilot's error, in each part.
        draws: What is drawn in public.
    """

    arriving: jax.Array
    linked: jax.Array
    sender: jax.Array
    receiver: jax.Array
    nodes: int
    mean_power: jax.Array
    noise: jax.Array
    pilot_std: jax.Array
    draws: PublicDraws

    @property
    def link(self) -> jax.Array:
        """A number for every link, other in the two directions."""
        return self.sender * self.nodes + self.receiver[:, None]


class Access(Protocol):
    """One way to share the air; free of data."""

    def combine(self, here: Reception, /) -> Combining:
        """The weights of one round."""
        ...

    def carried(self, sent: jax.Array, numbers: jax.Array, draws: PublicDraws, /) -> jax.Array:
        """[own nodes, seeds, ...] what others make out of [own nodes, seeds, ...] that was sent, but for gain."""
        ...


@dataclass(frozen=True)
class Analog:
    """What all analog ways have in common.

    Attributes:
        radio: The radio.
        normaliser: R.
    """

    radio: Radio
    normaliser: int

    def carried(self, sent: jax.Array, numbers: jax.Array, draws: PublicDraws) -> jax.Array:  # noqa: ARG002
        """As it was sent."""
        return sent

    def _least(self, here: Reception) -> jax.Array:
        """Of a pilot's energy; relative to the noise of a pilot, so that the units of models do not matter."""
        return 2 * here.pilot_std**2 * self.radio.hold_below

    def _wrong(self, here: Reception) -> jax.Array:
        passing = here.draws.normal(Purpose.WRONG_PILOT, here.receiver) * self.radio.compensation_error
        lasting = here.draws.always().normal(Purpose.CALIBRATION, here.receiver) * self.radio.calibration_error
        return passing + lasting

    def _one_pilot(self, here: Reception) -> Pilot:
        error = here.draws.complex_normal(Purpose.PILOT, here.receiver) * (np.sqrt(2) * here.pilot_std)
        return Pilot(error, self._wrong(here), self._least(here))


class Aligned(Analog):
    """All at once, with phases that agree at every receiver, or miss by what a test asks for."""

    def combine(self, here: Reception) -> Combining:
        """The paper's mixed point."""
        import jax.numpy as jnp

        missed = self.radio.phase_std * here.draws.normal(Purpose.WRONG_PHASE, here.link)
        arriving = abs(here.arriving) * jnp.exp(1j * missed)
        return combining.aligned(arriving, here.linked, self._one_pilot(here), self.normaliser)


class OwnSlot(Analog):
    """Every sender alone, with a pilot of its own."""

    def combine(self, here: Reception) -> Combining:
        """Weights by how strongly each pilot arrived."""
        error = here.draws.complex_normal(Purpose.PILOT, here.link) * (np.sqrt(2) * here.pilot_std[:, None])
        pilot = Pilot(error, self._wrong(here), self._least(here))
        return combining.own_slot(here.arriving, here.linked, pilot, self.normaliser)


class Referenced(Analog):
    """All at once, phases as they come; nobody knows the channel.

    In half duplex a public coin splits the nodes in every round: each half sends once, and listens once.
    """

    def combine(self, here: Reception) -> Combining:
        """Towards what is heard, as far as the pilot is clear."""
        arriving, linked, share = here.arriving, here.linked, 1.0
        if self.radio.dither:
            arriving = arriving * here.draws.turn(Purpose.DITHER, here.sender)
        if self.radio.duplex == "half":
            side = here.draws.coin(Purpose.SIDE, here.receiver)
            linked = linked & (here.draws.coin(Purpose.SIDE, here.sender) != side[:, None])
            share = 0.5
        mean_power = share * here.mean_power
        return combining.referenced(
            arriving, linked, self._one_pilot(here), mean_power, self.radio.kappa, self.radio.damping
        )


@dataclass(frozen=True)
class Digital:
    """Every sender alone; what it says is quantised, and arrives without error.

    Quantising is done to what was said with its noise, so that it costs no privacy; so is its scale.

    Attributes:
        radio: The radio.
        normaliser: R.
    """

    radio: Radio
    normaliser: int

    def combine(self, here: Reception) -> Combining:
        """Weights by how strongly each arrives, without noise."""
        nothing = here.noise * 0
        pilot = Pilot(here.arriving * 0, nothing, nothing)
        combined = combining.own_slot(here.arriving, here.linked, pilot, self.normaliser)
        return combined._replace(noise=nothing)

    def carried(self, sent: jax.Array, numbers: jax.Array, draws: PublicDraws) -> jax.Array:
        """Rounded to a grid of 2^bits values that spans it, with a public dither that is taken off again."""
        import jax.numpy as jnp

        behind = tuple(range(2, sent.ndim))
        span = jnp.max(jnp.abs(sent), axis=behind, keepdims=True)
        step = jnp.where(span > 0, 2 * span / (2**self.radio.bits - 1), 1)
        dither = draws.uniform(Purpose.QUANTISER, numbers, sent.shape[2:])[:, None]
        return step * (jnp.round(sent / step + dither) - dither)


_ACCESS: dict[str, Any] = {"aligned": Aligned, "own-slot": OwnSlot, "referenced": Referenced, "digital": Digital}


def access_of(radio: Radio, normaliser: int) -> Access:
    """By its name."""
    access: Access = _ACCESS[radio.access](radio, normaliser)
    return access
