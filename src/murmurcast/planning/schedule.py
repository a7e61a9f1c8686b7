"""When a run steps how far, and how its noise follows: gamma_t and sigma_t for epochs t = 1..T."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error

Decay = Literal["sqrt", "linear", "constant"]
NoiseTiming = Literal["paper", "aligned", "quiet-start"]
MAX_EPOCHS = 10_000_000
MAX_ROUNDS = 64  # each is compiled
_EXPONENT = {"sqrt": 0.5, "linear": 1.0, "constant": 0.0}


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps and the schedule of the noise.

    Args:
        epochs: T, the number of transmissions. They expose the gradients 1..T-1.
        step: gamma_1.
        decay: gamma_t = step / sqrt(t) ("sqrt"), step / t ("linear") or step ("constant").
        noise_timing: "paper": sigma_t = q gamma_t. "aligned": sigma_{t+1} = q gamma_t (and sigma_1 = q gamma_1),
            because the noise that protects gradient t is drawn in epoch t + 1. "quiet-start": the same with
            sigma_1 = 0, because the first message is free of data.
        noise_to_step: q, noise std over step: one number, one per node, or "auto" for the least noise that meets a
            total budget. None: "auto" for a total budget, 10 (the paper's) for a per-epoch one.
        rounds: Mixing rounds of an epoch. The first carries the noise; further ones send the public mixed point again:
            they cost channel uses, and no privacy.
        accelerated: Whether further rounds lean on the two before them (Chebyshev's recursion), so that models agree
            after about the square root of as many. Needs at least two rounds.
    """

    epochs: int
    step: float = 1.0
    decay: Decay = "sqrt"
    noise_timing: NoiseTiming = "paper"
    noise_to_step: float | tuple[float, ...] | Literal["auto"] | None = None
    rounds: int = 1
    accelerated: bool = False

    def __post_init__(self) -> None:
        _check.at_least(2, epochs=self.epochs)
        if self.epochs > MAX_EPOCHS:
            raise Error(f"epochs is {self.epochs}, more than {MAX_EPOCHS}", hint="lower schedule.epochs")
        _check.at_least(1, rounds=self.rounds)
        if self.rounds > MAX_ROUNDS:
            raise Error(f"rounds is {self.rounds}, more than {MAX_ROUNDS}", hint="lower schedule.rounds")
        if self.accelerated and self.rounds == 1:
            raise Error(
                "rounds are accelerated, and there is one: only further rounds can be",
                hint="set schedule.rounds to 2 or more, or accelerated = false",
            )
        _check.positive(step=self.step)
        if isinstance(self.noise_to_step, str):
            if self.noise_to_step != "auto":
                raise Error(f'noise_to_step is "{self.noise_to_step}"', hint='give a number, a list, or "auto"')
        elif self.noise_to_step is not None:
            _check.positive(noise_to_step=self.noise_to_step)
        for name, value, known in (
            ("decay", self.decay, _EXPONENT),
            ("noise_timing", self.noise_timing, get_args(NoiseTiming)),
        ):
            if value not in known:
                raise Error(f'{name} is "{value}"', hint=_check.nearest(value, known))

    @property
    def steps(self) -> FloatArray:
        """[epochs] gamma_t."""
        return np.asarray(self.step / np.arange(1.0, self.epochs + 1) ** _EXPONENT[self.decay])

    @property
    def noise_schedule(self) -> FloatArray:
        """[epochs] sigma_k,t / q_k, the same for all nodes."""
        steps = self.steps
        if self.noise_timing == "paper":
            return steps
        first = steps[:1] if self.noise_timing == "aligned" else np.zeros(1)
        return np.concatenate([first, steps[:-1]])
