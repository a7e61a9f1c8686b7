"""A real radio between the antennas: path loss, fading, phases, pilots and receiver noise, in physical units.

What a node hears is what its receiver makes of the air: the mixed point, in the units of what nodes say. Sender j's
symbols arrive with g_ij = h_ji f_t(j, i) b_j, b_j = rho_t sqrt(alpha_j p_j) being the amplitude of its model.

    m_i = sum_j w_ij u_j + w_ii u_i + n_i,   u_j = sent_j / b_j

`murmurcast.radio.combining` has the weights w of every access. Gains, phases, dither and pilots come from the radio's
own seed: public, the same in every run, and any epoch at once, so neither chunks nor resumption nor cores change them.
Where the radio has a trace, h f is its step of the epoch instead, in all rounds alike, looked up as the epoch comes.
A receiver's own noise comes from the run's seed. None of it depends on data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from murmurcast.channels.access import Access, Reception, access_of
from murmurcast.channels.base import (
    Entries,
    Exchange,
    Hear,
    Moment,
    energy_of_signal,
    link_entries,
)
from murmurcast.channels.public_draws import PublicDraws, Purpose
from murmurcast.channels.radio_links import Lists, RadioLinks
from murmurcast.radio.combining import Combining
from murmurcast.radio.fading import jakes, with_line_of_sight
from murmurcast.radio.physics import Physics
from murmurcast.radio.settings import Radio

if TYPE_CHECKING:
    import jax

_EPOCHS_AT_ONCE = 64  # of dense weights, and no more
_WEIGHTS_AT_ONCE = 2**24  # of them, complex: 256 MiB


class Arriving(NamedTuple):
    """One receiver's share of a round.

    Attributes:
        sums: [2, heard] real and imaginary factors of what was sent, or [2, seeds, ...] the two sums themselves.
        signals: [heard] numbers of the senders; None where the sums are there already.
        own: Factor of what it sent itself.
        sent: [seeds, ...] what it sent itself.
        noise: Standard deviation of its noise in the mixed point, per coordinate.
        number: Its number.
    """

    sums: Any
    signals: Any
    own: Any
    sent: Any
    noise: Any
    number: Any


class Realised(NamedTuple):
    """A round of some epochs, as the channel turns out.

    Attributes:
        weights: [epochs, receiver, sender] of what nodes say.
        noise: [epochs, receiver] tau, the standard deviation of what receivers add to their mixed points.
    """

    weights: NDArray[np.complex128]
    noise: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RadioAir:
    """One round over a radio.

    Attributes:
        gains: [sender, receiver] amplitudes with path loss.
        radio: How nodes share the air, and how the channel moves.
        physics: What the plan makes of it.
        round_number: Which of an epoch's rounds, from 0.
        rounds: How many an epoch has.
    """

    kind: ClassVar[str] = "radio"
    signals: ClassVar[None] = None
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = True

    gains: csr_array
    radio: Radio
    physics: Physics
    round_number: int = 0
    rounds: int = 1

    @property
    def uses(self) -> int:
        """Slots, each as long as one message."""
        return self.physics.slots.number

    @cached_property
    def access(self) -> Access:
        """How nodes share the air."""
        return access_of(self.radio, self.physics.normaliser)

    def lists(self, filled_nodes: int) -> Lists:
        """Who hears whom, how strongly, and from where the waves come."""
        return self._links.lists(filled_nodes)

    def lists_of(self, receivers: NDArray[Any]) -> Lists:
        """The same of these receivers only."""
        return self._links.lists_of(receivers)

    @cached_property
    def _links(self) -> RadioLinks:
        return RadioLinks(self.gains, self.radio, self.physics)

    @property
    def carries_as_sent(self) -> bool:
        """Whether others make out what was sent but for gain: not where it is quantised on the way."""
        return self.radio.access != "digital"

    @property
    def scale(self) -> NDArray[np.float64]:
        """[epochs] rho, the public factor."""
        return self.physics.scale

    def deliver(self, lists: Lists, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:
        """Every receiver's mixed point."""
        import jax.numpy as jnp

        draws, scale = self._draws(moment.epoch, lists), self._scale(moment.epoch, lists)
        combined = self._combining(lists, moment, scale, draws)
        factor = combined.weights / jnp.where(lists.gains > 0, scale * lists.amplitude, 1)
        own, std = combined.own / (scale * lists.own), jnp.sqrt(lists.noise / 2) * combined.noise
        signals = exchange.reach(self.access.carried(sent, moment.numbers, draws))
        both = jnp.stack([factor.real, factor.imag], axis=1)  # [nodes, 2, heard]
        everybody = signals.everybody
        if everybody is not None and lists.signals.shape[1] == len(everybody):  # everybody is listed
            heard = both.reshape(-1, len(everybody)) @ everybody.reshape(len(everybody), -1)
            sums = heard.reshape(len(sent), 2, *sent.shape[1:])
            return Arriving(sums, None, own, sent, std, moment.numbers), lambda one: _mixed(
                one, one.sums[0] + quarter_turn(one.sums[1]), moment
            )

        def hear(one: Arriving) -> jax.Array:
            real, imaginary = signals.weighed(one.signals, *one.sums)
            return _mixed(one, real + quarter_turn(imaginary), moment)

        return Arriving(both, lists.signals, own, sent, std, moment.numbers), hear

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the one signal."""
        return energy_of_signal(sent)

    def pilot_amplitude(self, epoch: int, node: int) -> float:
        """lambda_t b_j: of every symbol of a node's pilot, in the root of watts."""
        physics = self.physics
        return float(physics.pilot_gain[epoch - 1] * physics.scale[epoch - 1] * physics.amplitude[node])

    def turn(self, epoch: int, node: int, dtype: DTypeLike) -> complex:
        """By which a node turns the phase of pilot and message, in public; 1 without dither. `dtype` is the run's."""
        if self.radio.access != "referenced" or not self.radio.dither:
            return 1.0
        import jax.numpy as jnp

        draws = PublicDraws(self.radio.seed, self._when(epoch), np.dtype(dtype))
        return complex(draws.turn(Purpose.DITHER, jnp.asarray(node)))

    def entries(self) -> Entries:
        """Links, the radio's settings, the public factor, and the receivers' noise."""
        entries = link_entries(self.gains)
        entries.attributes["radio"] = json.dumps(self.radio.as_plain(), sort_keys=True)
        entries.attributes.update(slots=self.physics.slots.number, air_seconds=self.physics.air_seconds)
        entries.variables["receiver_noise"] = (("node",), self.physics.noise)
        entries.variables["joules"] = (("node",), self.physics.joules)
        return entries

    def _combining(self, lists: Lists, moment: Moment, scale: jax.Array, draws: PublicDraws) -> Combining:
        """The weights of this round."""
        import jax.numpy as jnp

        linked = lists.gains > 0
        if lists.trace is None:
            arriving = lists.gains * lists.amplitude * scale * self._fading(lists, moment.epoch, draws)
        else:
            now = lists.trace[:, (moment.epoch - 1) % lists.trace.shape[1]]
            heard = jnp.take_along_axis(now, lists.signals, axis=1, mode="clip")  # fillers are beyond all senders
            linked = linked & (heard != 0)
            arriving = jnp.where(linked, heard * lists.amplitude * scale, 0)
        pilot_gain = jnp.asarray(self.physics.pilot_gain, lists.gains.dtype)[moment.epoch - 1]
        reception = Reception(
            arriving=arriving,
            linked=linked,
            sender=lists.signals,
            receiver=moment.numbers,
            nodes=self.gains.shape[0],
            mean_power=lists.mean_power * scale**2,
            noise=lists.noise,
            pilot_std=jnp.sqrt(lists.noise / (2 * self.radio.pilots)) / pilot_gain,
            draws=draws,
        )
        combined = self.access.combine(reception)
        if not self.radio.cfo:
            return combined
        turn = jnp.exp(1j * self.radio.cfo * draws.normal(Purpose.CFO, lists.signals))
        return combined._replace(weights=combined.weights * turn)

    def _fading(self, lists: Lists, epoch: jax.Array, draws: PublicDraws) -> jax.Array:
        """[nodes, heard] complex, of mean power 1."""
        radio, still = self.radio, draws.always().turn(Purpose.PHASE, lists.pair)
        if radio.fading == "none":
            return still
        if radio.fading == "jakes":
            time = epoch - 1 + self.round_number / self.rounds
            scattered = jakes(time, lists.angles, lists.phases, self.physics.doppler)
        else:
            scattered = draws.complex_normal(Purpose.FADING, lists.pair)
        faded: jax.Array = still * with_line_of_sight(scattered, radio.k_factor_db)
        return faded

    @property
    def epochs_at_once(self) -> int:
        """Of how many epochs dense weights should be asked for together."""
        return max(1, min(_EPOCHS_AT_ONCE, _WEIGHTS_AT_ONCE // self.gains.shape[0] ** 2))

    def weights(self, epochs: NDArray[np.int64]) -> NDArray[np.complex128]:
        """[epochs, receiver, sender] the weights of this round, as everybody can know them beforehand."""
        return self.realised(epochs).weights

    def realised(self, epochs: NDArray[np.int64]) -> Realised:
        """Weights of this round and what receivers add, as everybody can know them beforehand."""
        weights, noise = self._weights_and_noise(epochs, self.physics.noise)
        return Realised(weights, np.sqrt(self.physics.noise / 2) * noise)

    def clear_weights(self, epochs: NDArray[np.int64]) -> NDArray[np.complex128]:
        """[epochs, receiver, sender] the weights that clear pilots would make: they do not depend on how loud it is."""
        return self._weights_and_noise(epochs, np.zeros_like(self.physics.noise))[0]

    def sums(self, epochs: NDArray[np.int64]) -> NDArray[np.complex128]:
        """[epochs, receiver, sender] what arrives at every antenna at once, on any scale; also where a node holds."""
        weights = self.clear_weights(epochs)
        weights[:, np.arange(weights.shape[1]), np.arange(weights.shape[1])] = 0
        return weights

    def _weights_and_noise(
        self, epochs: NDArray[np.int64], noise: NDArray[np.float64]
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """[epochs, receiver, sender] weights, and [epochs, receiver] factors of noise, for [receiver] noise."""
        nodes, at_once, blocks = self.gains.shape[0], self.epochs_at_once, []
        for first in range(0, len(epochs), at_once):
            block = epochs[first : first + at_once]
            filled = np.concatenate([block, np.repeat(block[-1:], at_once - len(block))])
            blocks.append([np.asarray(part)[: len(block)] for part in self._combine_all(filled, noise)])
        realised, own, factor = (np.concatenate(part) for part in zip(*blocks, strict=True))
        weights = np.zeros((len(epochs), nodes, nodes), np.complex128)
        sender = self.lists(nodes).signals
        receiver = np.broadcast_to(np.arange(nodes)[:, None], sender.shape)
        for number, row in enumerate(realised):
            np.add.at(weights[number], (receiver, sender), row)
        weights[:, np.arange(nodes), np.arange(nodes)] += own
        return weights, factor.astype(np.float64)

    @cached_property
    def _combine_all(self) -> Any:
        """(epochs, noise) -> the rounds' `Combining`; compiled once, and quickly: it is small, and seldom called."""
        import jax
        import jax.numpy as jnp

        nodes = self.gains.shape[0]
        lists = jax.tree.map(jnp.asarray, self.lists(nodes))

        def of(epoch: jax.Array, here: Lists) -> Combining:
            moment = Moment(epoch, jnp.arange(nodes), lambda number: number)
            return self._combining(here, moment, self._scale(epoch, here), self._draws(epoch, here))

        quickly = {"xla_backend_optimization_level": 0}
        of_all = jax.jit(jax.vmap(of, in_axes=(0, None)), compiler_options=quickly)
        return lambda epochs, noise: of_all(
            jnp.asarray(epochs), lists._replace(noise=jnp.asarray(noise, lists.gains.dtype))
        )

    def _scale(self, epoch: jax.Array, lists: Lists) -> jax.Array:
        import jax.numpy as jnp

        return jnp.asarray(self.physics.scale, lists.gains.dtype)[epoch - 1]

    def _draws(self, epoch: jax.Array, lists: Lists) -> PublicDraws:
        return PublicDraws(self.radio.seed, self._when(epoch), lists.gains.dtype)

    def _when(self, epoch: Any) -> Any:
        """A number of epoch and round."""
        return (epoch - 1) * self.rounds + self.round_number


def _mixed(one: Arriving, heard: jax.Array, moment: Moment) -> jax.Array:
    """[seeds, ...] one receiver's mixed point, from what it heard."""
    mixed: jax.Array = heard + one.own * one.sent + one.noise * moment.noise(one.number)
    return mixed


def quarter_turn(values: jax.Array) -> jax.Array:
    """[seeds, ...] models of any shape times i, where u = v[0::2] + i v[1::2]."""
    import jax
    import jax.numpy as jnp

    flat = values.reshape(len(values), -1)
    # By shifts, which stay in one flat loop together with the noise: any other order of pairs keeps XLA from using the
    # processor's vectors, and takes three times as long.
    nothing = flat.dtype.type(0)
    behind, before = (jax.lax.pad(flat, nothing, [(0, 0, 0), ends]) for ends in ((-1, 1, 0), (1, -1, 0)))
    even = jax.lax.broadcasted_iota(jnp.int32, flat.shape, 1) % 2 == 0
    return jnp.where(even, -behind, before).reshape(values.shape)
