"""What methods share whose nodes keep their own model without noise: options, noise and account of that memory."""

from typing import Any, Literal, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Settings
from murmurcast.algorithms.gossip import noise_for, require_fixed_batches
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.setup import Setup
from murmurcast.privacy.plain_own_term import memory, memory_releases
from murmurcast.privacy.releases import Releases

_ROUNDING = 1e-12  # of a share of power
PublishFrom = Literal["mixed", "heard"]


class Memory(NamedTuple):
    """How far a node's model remembers what one unit's data did to it.

    Attributes:
        own_weight: [nodes] w_jj.
        seen: [nodes] L times what a gradient sees of a difference; infinite where L is not known.
        push: [epochs] the step of the newest gradient in what is sent.
    """

    own_weight: FloatArray
    seen: FloatArray
    push: FloatArray

    def releases(self, setup: Setup, hidden_by: FloatArray, noise_to_step: FloatArray) -> Releases:
        """What a run releases: [nodes] hidden_by is the sum over links of 1/s^2 where q std = 1."""
        most = 2 * setup.problem.gradient_clip.limit
        moved = memory(self.own_weight, self.push, setup.sensitivity, most, self.seen)
        return memory_releases(moved, hidden_by, setup.schedule.noise_schedule[:, None] * noise_to_step)


def share_of_power(amplitude: FloatArray, power: FloatArray) -> FloatArray:
    """Amplitude^2 / p, exactly 1 where rounding leaves it just below: a trace of noise there hides nothing."""
    alpha = amplitude**2 / power
    return np.where(alpha > 1 - _ROUNDING, 1.0, alpha)


def require_options(headroom: float, publish_from: str, smoothness: float) -> None:
    """Options in their range."""
    if not 0 < headroom <= 1:
        raise Error(
            f"headroom is {headroom:g}, expected above 0, at most 1", hint="1 is as published, 0.7 leaves noise"
        )
    _check.one_of(("mixed", "heard"), publish_from=publish_from)
    if not smoothness >= 0:
        raise Error(f"smoothness is {smoothness:g}, expected 0 or more", hint="leave it out where it is not known")


def options_in_ledger(headroom: float, publish_from: str, smoothness: float, **others: Any) -> Settings:
    """The options, for the ledger; what is not known is not said."""
    known = {"smoothness": float(smoothness)} if np.isfinite(smoothness) else {}
    return {**others, "headroom": float(headroom), "publish_from": publish_from, **known}


def seen_by(gradient_at: str, own_weight: FloatArray, smoothness: float) -> FloatArray:
    """[nodes] L, times the own weight where gradients are taken at the mixed point."""
    share = own_weight if gradient_at == "mixed" else np.ones_like(own_weight)
    return np.asarray(np.where(share > 0, smoothness, 0.0) * share)


def noise_of(setup: Setup, name: str, own: Memory, hidden_by: FloatArray) -> FloatArray:
    """[nodes] q: what was given, else the least that meets the budget by the method's own form.

    Where some links carry no noise, no noise on the others meets it; then it is that of a node that forgets at once.
    """
    require_fixed_batches(setup, name)
    if isinstance(setup, Plan) and not setup.noise_is_automatic:
        return setup.noise_to_step
    nodes = setup.network.nodes
    if np.isfinite(hidden_by).all():
        return noise_for(setup, name, own.releases(setup, hidden_by, np.ones(nodes)))
    forgetful = own._replace(own_weight=np.zeros(nodes), seen=np.zeros(nodes))
    return noise_for(setup, name, forgetful.releases(setup, np.ones(nodes), np.ones(nodes)))


def account_of_memory(ledger: accounts.LedgerTables, own: Memory, hidden_by: FloatArray) -> tuple[Releases, ...]:
    """From the ledger's tables; [nodes] hidden_by is the sum over links of 1/s^2 where std = 1."""
    if ledger.text("publish_from", ("mixed", "heard")) != "heard":
        return ()  # mixed points hold own models as they are
    sensitivity = accounts.sensitivity(ledger)
    most = 2 * ledger.number("clip") if np.isfinite(sensitivity).all() else np.inf
    moved = memory(own.own_weight, own.push, sensitivity, most, own.seen)
    return (memory_releases(moved, hidden_by, ledger.per_epoch("model_sending_schedule")[:, None]),)


def smoothness_of(ledger: accounts.LedgerTables) -> float:
    """L as the ledger says; infinite where it does not."""
    return ledger.number("smoothness") if ledger.says("smoothness") else np.inf
