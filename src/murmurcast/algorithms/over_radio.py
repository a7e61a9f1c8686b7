"""Algorithm 1's signals over a radio: the same in physical units, and mixed points as a real receiver makes them.

    V_j     = x_j + s_j,t eta_j                            what node j says, as without a radio
    sent_j  = rho_t sqrt(alpha_j p_j) V_j
    m_i     = what the receiver makes of its antenna       `murmurcast.channels.radio_air`
    x_i    <- Proj( m_i - gamma_t g_i / z_i,t )

Gains, phases, dither, pilots, outages and receiver noise are free of data. Given to the adversary together with all V,
they make every m public: V_j,t+1 is a Gaussian mechanism given the public past, so the certificate is that of the plan,
whatever the radio does. What it rests on is kept here: a node sends a function of V_j alone, its own term is V_j,
further rounds send the public m, and where z follows the channel, so does the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.algorithms.free_rounds import Carrier, MixingState, MixingTables
from murmurcast.algorithms.tables import Leaf, same_always, without_repeats
from murmurcast.channels.radio_air import RadioAir
from murmurcast.errors import Error
from murmurcast.network.weights import Z
from murmurcast.planning.plan import Plan
from murmurcast.radio import divisor
from murmurcast.radio.physics import Split, physics
from murmurcast.radio.settings import Radio

if TYPE_CHECKING:
    import jax


class RadioSending(NamedTuple):
    """Constants of what leaves the antenna.

    Attributes:
        amplitude: sqrt(alpha p), of the model.
        noise: sqrt((1 - alpha) p) q, of the noise, in units of its schedule.
        schedule: sigma_t / q.
        scale: rho_t, the public factor.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf
    scale: Leaf


class Passing(NamedTuple):
    """Constants of a round that sends the public mixed point.

    Attributes:
        amplitude: sqrt(alpha p).
        scale: rho_t.
    """

    amplitude: Leaf
    scale: Leaf


def send(here: RadioSending, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:
    """Rho (sqrt(alpha p) x + sqrt((1 - alpha) p) eta)."""
    return here.scale * (here.amplitude * state.own + here.noise * here.schedule * drawn["noise"])


def pass_on(here: Passing, state: MixingState, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """The public mixed point, without noise."""
    return here.scale * here.amplitude * state.mixed


def carrier(plan: Plan, radio: Radio) -> Carrier[RadioAir]:
    """What a radio makes of a plan."""
    network = plan.network
    z, follows = without_repeats(plan.z), np.ones((1, network.nodes))
    if plan.z_follows_channel:
        channels = _channels(plan, radio, plan.noise_std)
        z = following_channel(plan.z_rule, plan.mixing.weights, channels, plan.schedule.epochs)
        # Row t of the noise covers the gradient of epoch t - 1, so it follows that epoch's z.
        follows = np.concatenate([np.ones((1, network.nodes)), plan.z[:-1] / z[:-1]])
    channels = _channels(plan, radio, plan.noise_std * follows)
    sending = RadioSending(
        amplitude=same_always(np.sqrt(plan.alpha * network.power)),
        noise=np.sqrt(plan.beta * network.power) * plan.noise_to_step * follows,
        schedule=plan.schedule.noise_schedule,
        scale=channels[0].physics.scale,
    )
    return Carrier(
        channels=channels,
        sending=sending,
        send=send,
        passing=Passing(sending.amplitude, sending.scale),
        pass_on=pass_on,
        mixing=MixingTables(np.ones((1, network.nodes)), np.zeros((1, network.nodes))),
        z=z,
    )


def _channels(plan: Plan, radio: Radio, noise_std: FloatArray) -> tuple[RadioAir, ...]:
    """One for every round of an epoch."""
    dim, radius, rounds = plan.problem.dim, plan.problem.radius, plan.schedule.rounds
    if dim is None or radius is None:
        missing = "problem.dim" if dim is None else "problem.radius"
        raise Error(
            f"a radio needs {missing}: it decides how loud a node may send",
            hint="set problem.radius, the largest norm of a model, such as 10, and problem.dim where no data is given",
        )
    radio_physics = physics(
        plan.network, radio, Split(plan.alpha, noise_std, plan.mixing.normaliser, dim, radius, rounds)
    )
    return tuple(RadioAir(plan.network.gains, radio, radio_physics, number, rounds) for number in range(rounds))


def following_channel(rule: Z, expected: csr_array, channels: tuple[RadioAir, ...], epochs: int) -> FloatArray:
    """[epochs, nodes] what gradients are divided by, as the channel turns out: free of data, and known in time.

    Args:
        rule: "predicted" or "recursive".
        expected: [nodes, nodes] E[A].
        channels: Of the rounds of an epoch.
        epochs: How many.
    """
    divisor.require_followed(rule, expected.shape[0])
    at_once = channels[0].epochs_at_once
    remembered = rule == "predicted" and channels[0].radio.fading == "jakes"
    share = divisor.blend(expected, channels[0].physics.doppler) if remembered else 0.0
    influence, divisors = np.eye(expected.shape[0]), []
    for first in range(1, epochs + 1, at_once):
        here = np.arange(first, min(first + at_once, epochs + 1))
        weights = channels[0].clear_weights(here).real
        for channel in channels[1:]:
            weights = channel.clear_weights(here).real @ weights
        if rule == "predicted":
            divisors.append(divisor.predicted(weights, expected, share))
            continue
        for now in weights:
            divisors.append(influence.diagonal()[None].copy())
            influence = now @ influence
    return np.concatenate(divisors)
