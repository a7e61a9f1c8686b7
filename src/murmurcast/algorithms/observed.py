"""What given observers learn of a plan as its channel really carries it: the linear diagnostic. Not a guarantee.

Of the ideal channel in one round that is `Plan.linear`. Over a radio the weights of every epoch are those that its
seed makes, noise follows z where z follows the channel, receivers of hidden nodes add their noise, and observers, whose
antennas may be better than planned, hear without noise all that reaches them: each sender alone where each has a slot.
Further rounds send mixed points again, and observers hear these too. Quantising is left out: it could only hide more.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.algorithms import over_radio
from murmurcast.algorithms.tables import row_of
from murmurcast.channels.antennas import antennas
from murmurcast.channels.radio_air import RadioAir
from murmurcast.errors import Error
from murmurcast.planning.plan import DENSE_UP_TO, Plan
from murmurcast.privacy import coalitions, linear_radio
from murmurcast.privacy.coalitions import Collusion
from murmurcast.privacy.linear import Linear
from murmurcast.privacy.linear_radio import Epoch, OneRound, mixtures

MAX_NUMBERS = 3e7  # weights of all epochs and rounds
_COINS = "records join by secret coins, of which the linear diagnostic knows nothing"
_TIMES_LONGER = 2.5  # than with the ideal channel: complex numbers, and a row space in every epoch


class System(NamedTuple):
    """A plan as the diagnostic sees it.

    Attributes:
        rounds: Weights, receivers' noise and antennas.
        effective_noise: [epochs, nodes] s_k,t.
        push: [epochs, nodes] S_k gamma_t / z_kk,t.
    """

    rounds: Epoch
    effective_noise: FloatArray
    push: FloatArray


class Observed:
    """What observers learn of a plan; made by `murmurcast.observe`. A diagnostic, not a guarantee."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def system(self) -> System | None:
        """Of what a radio or several rounds make of the plan; None for the ideal channel in one round."""
        return None if self.plan.is_ideal else system_of(self.plan)

    def linear_common(self, observers: tuple[int, ...]) -> FloatArray:
        """[nodes] mu the observers reach under linear gradients, all changes in one direction."""
        if self.system is None:
            return self.plan.linear_common(observers)
        members = _check.observers(self.plan.network.nodes, observers)
        return linear_radio.common_direction_of(self.system.rounds, members, *self.system[1:])

    def linear(self, observers: tuple[int, ...], on_target: Count = quiet) -> Linear:
        """What the observers learn of every node under linear gradients."""
        _require_no_coins(self.plan)
        if self.system is None:
            return self.plan.linear(observers, on_target)
        members = _check.observers(self.plan.network.nodes, observers)
        lower, upper = linear_radio.worst_direction_of(self.system.rounds, members, *self.system[1:], on_target)
        return Linear(linear_radio.common_direction_of(self.system.rounds, members, *self.system[1:]), lower, upper)

    def collusion(self, seconds: float = coalitions.QUICK, on_coalition: Count = quiet) -> Collusion:
        """What every receiver alone, and pairs together, learn of every node under linear gradients.

        Args:
            seconds: About how long it may take; as many receivers and pairs are tried. `math.inf` tries all.
            on_coalition: Called with (coalitions done, coalitions in all).
        """
        _require_no_coins(self.plan)
        if self.system is None:
            return self.plan.collusion(seconds, on_coalition)
        rounds, effective_noise, push = self.system
        typical = np.abs(rounds[0].weights).mean(axis=0)

        def learnt(members: tuple[int, ...]) -> FloatArray:
            return linear_radio.steady_or_turning_of(rounds, members, effective_noise, push)

        longer = _TIMES_LONGER * len(rounds)
        return coalitions.collusion(typical, effective_noise, push, seconds, on_coalition, learnt, longer)


def observe(plan: Plan) -> Observed:
    """What observers learn of a plan, whatever carries its signals: `linear`, `linear_common` and `collusion` of it.

    Args:
        plan: Any; with a radio its weights are those of every epoch, as the radio's seed makes them.
    """
    _check.instance(Plan, plan=plan)
    return Observed(plan)


def why_not_observed(plan: Plan) -> str:
    """Why there is no diagnostic of a plan, in words; empty where there is one."""
    if plan.schedule.accelerated:
        return "accelerated rounds lean on two earlier ones, and the linear diagnostic follows one"
    return "the weights of all epochs do not fit into memory at once" if is_too_large(plan) else ""


def why_not_beside_the_certificate(plan: Plan) -> str:
    """Why what observers learn is not shown beside what is certified, in words; empty where it is.

    Without the coins that the certificate counts on, it would come out larger.
    """
    return why_not_observed(plan) or ("" if plan.sampling is None else _COINS)


def _require_no_coins(plan: Plan) -> None:
    if plan.sampling is not None:
        raise Error(_COINS, hint='set problem.sampling = "fixed" to see what observers learn')


def is_too_large(plan: Plan) -> bool:
    """Whether the diagnostic would need more memory than it may take."""
    numbers = 1 if plan.is_ideal else plan.schedule.epochs * plan.schedule.rounds * plan.network.nodes**2
    return plan.network.nodes > DENSE_UP_TO or numbers > MAX_NUMBERS


def system_of(plan: Plan) -> System:
    """A plan as the diagnostic sees it, with a radio or without."""
    if plan.schedule.accelerated:
        raise Error(why_not_observed(plan), hint="set schedule.accelerated = false to see what observers learn")
    if is_too_large(plan):
        raise Error(
            f"the linear diagnostic of {plan.network.nodes} nodes in {plan.schedule.epochs} epochs of "
            f"{plan.schedule.rounds} rounds needs the weights of all of them at once",
            hint="use it on fewer nodes or epochs; the certificate has no such limit",
        )
    epochs, steps = np.arange(1, plan.schedule.epochs + 1), plan.schedule.steps[:, None]
    if plan.radio is None:
        weights = np.broadcast_to(plan.mixing.weights.toarray(), (len(epochs), *plan.mixing.weights.shape))
        same = OneRound(weights, np.zeros(weights.shape[:2]), mixtures(weights))
        push = plan.sensitivity * steps / plan.z
        return System((same,) * plan.schedule.rounds, plan.effective_noise, np.asarray(push))
    carrier = over_radio.carrier(plan, plan.radio)
    sending = carrier.sending
    noise = np.asarray(sending.schedule)[:, None] * row_of(np.asarray(sending.noise), epochs) / sending.amplitude
    push = plan.sensitivity * steps / row_of(carrier.z, epochs)
    rounds = tuple(_round(channel, epochs) for channel in carrier.channels)
    return System(rounds, np.asarray(noise), np.asarray(push))


def _round(channel: RadioAir, epochs: np.typing.NDArray[np.int64]) -> OneRound:
    weights, noise = channel.realised(epochs)
    if not weights.imag.any():  # half the work
        return OneRound(weights.real, noise, antennas(channel, epochs))
    return OneRound(weights, noise, antennas(channel, epochs))
