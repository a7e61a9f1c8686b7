"""Who attacks, with what each of them has of the real system's runs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from murmurcast._progress import Count, Stage, quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.early_end import has_drops
from murmurcast.audits import canaries, published, receivers
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.eavesdropper import overhear
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.replay import replay
from murmurcast.audits.transcript import Transcript, bytes_of_tape, transcripts
from murmurcast.engine.secure import is_secure
from murmurcast.errors import Error
from murmurcast.privacy import linear
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision

_MAX_TAPE_BYTES = 2**28  # bytes of tape held at once
_MAX_RECEIVERS_SEARCHED = 64  # receivers among which the one that learns most is looked for


class Attacker(Protocol):
    """Takes what it has of some runs."""

    def __call__(self, here: Canaries, transcript: Transcript, seeds: tuple[int, ...], /) -> dict[str, Evidence]:
        """Evidence by name, from canaries whose signs it does not look at, and from what was on the air."""
        ...


class System(NamedTuple):
    """What is attacked, and whom to tell.

    Attributes:
        claimed: What the nodes claim to do.
        actual: What they do.
        problem: What they learn.
        canaries: What is planted, with signs for every run.
        seed: Of the first run; the others count on.
        precision: Of the runs.
        on_stage: Told what begins.
        on_epoch: Told (epochs done, epochs in all).
    """

    claimed: Algorithm
    actual: Algorithm
    problem: Problem
    canaries: Canaries
    seed: int = 0
    precision: Precision = "float32"
    on_stage: Stage = quiet
    on_epoch: Count = quiet


def gather(system: System, coalition: tuple[int, ...]) -> dict[str, Evidence]:
    """Runs the real system, as many runs at once as memory allows, and lets every adversary take what it has.

    Args:
        system: What is attacked.
        coalition: Receivers that act together.

    Returns:
        Evidence of all runs, by adversary.
    """
    adversaries, parts = _adversaries(system, coalition), []
    for group in _groups(system):
        seeds = tuple(system.seed + run for run in group)
        here = system.canaries._replace(signs=system.canaries.signs[group])
        system.on_stage("running")
        planted = canaries.planted(system.actual)
        transcript = transcripts(
            planted, system.problem, seeds, system.precision, system.on_epoch, canaries.plant(here)
        )
        _require_numbers(transcript)
        parts.append({who: found for make in adversaries for who, found in make(here, transcript, seeds).items()})
    return {
        who: Evidence(np.concatenate([part[who].readings for part in parts], axis=1), found.shift)
        for who, found in parts[0].items()
    }


def _require_numbers(transcript: Transcript) -> None:
    """Of what is not a number nothing can be learned, and nothing shown."""
    for does, values, axis in (
        ("sends", transcript.sent, 2),
        ("hears", transcript.heard, 2),
        ("publishes", transcript.published, 1),
    ):
        wrong = ~np.isfinite(values)
        if wrong.any():
            first = np.unravel_index(np.argmax(wrong), wrong.shape)
            raise Error(
                f"node {first[axis]} {does} what is not a finite number",
                hint="look for overflow and division by 0 in what the nodes do, and for steps that are too large",
            )


def receivers_attack(algorithm: Algorithm) -> bool:
    """Whether receivers and published models alone do: weights are the plan's in every epoch, so the filter fits."""
    sums = len(algorithm.rounds) == 1 and algorithm.rounds[0].channel.kind == "air"
    return sums and {"gradient_at", "publish"} <= algorithm.settings.keys() and not has_drops(algorithm)


def _groups(system: System) -> "Iterator[list[int]]":
    size = np.dtype(system.precision).itemsize
    together = max(1, _MAX_TAPE_BYTES // bytes_of_tape(system.actual, system.problem, size))
    runs = range(len(system.canaries.signs))
    for start in range(0, len(runs), together):
        yield list(runs[start : start + together])


def _adversaries(system: System, coalition: tuple[int, ...]) -> list[Attacker]:
    """Everybody who attacks."""
    plan, target = system.claimed.plan, system.canaries.target

    def eavesdropper(here: Canaries, transcript: Transcript, seeds: tuple[int, ...]) -> dict[str, Evidence]:
        system.on_stage("the eavesdropper listens")
        found = overhear(system.claimed, system.problem, here, transcript, seeds, system.on_epoch)
        return {"eavesdropper": found.air, "published, with the air": found.published}

    def receiver(members: tuple[int, ...], name: str) -> Attacker:
        def listen(here: Canaries, transcript: Transcript, seeds: tuple[int, ...]) -> dict[str, Evidence]:
            system.on_stage(f"{name} listen{'s' if len(members) == 1 else ''}")
            hidden = linear.hidden_from(plan.mixing.weights.toarray(), members)
            followed = replay(system.claimed, system.problem, here, hidden, seeds)
            seen = receivers.view(plan, transcript, members)
            return {name: receivers.listen(plan, seen, followed, target, here.change, system.on_epoch)}

        return listen

    if not receivers_attack(system.claimed):
        return [eavesdropper]
    worst = _worst_receiver(system.claimed, target)
    listeners = dict.fromkeys([(worst,), coalition])  # once, if they are the same
    return [*(receiver(who, _name(who, plan.network.nodes)) for who in listeners), eavesdropper, _holder(system)]


def _name(members: tuple[int, ...], nodes: int) -> str:
    if len(members) == 1:
        return f"receiver {members[0]}"
    return "all other receivers" if len(members) == nodes - 1 else f"receivers {', '.join(map(str, members))}"


def _holder(system: System) -> Attacker:
    """Who has the published models and nothing else."""
    claimed, here = system.claimed, canaries.half_way(system.canaries, 1)
    options: dict[str, Any] = {key: claimed.settings[key] for key in ("gradient_at", "publish")}
    seeded = replace(claimed.plan, budget=replace(claimed.plan.budget, noise_source="seeded"))
    remade = registry.find(claimed.name).make(seeded, **options) if is_secure(claimed.setup) else claimed
    (only,) = remade.rounds
    sending = only.sending._replace(noise=np.zeros_like(only.sending.noise))
    quietly = remade._replace(rounds=(only._replace(sending=sending),))

    def hold(planted: Canaries, transcript: Transcript, seeds: tuple[int, ...]) -> dict[str, Evidence]:  # noqa: ARG001
        system.on_stage("the holder of published models looks")
        half, prepare = canaries.planted(quietly), canaries.plant(here)
        alone = (system.seed,)
        expected = transcripts(half, system.problem, alone, on_epoch=system.on_epoch, prepare=prepare).published[0]
        return {"published alone": published.hold(claimed, planted, transcript, expected)}

    return hold


def _worst_receiver(algorithm: Algorithm, target: int) -> int:
    """The receiver that learns most of the target by the linear diagnostic, looked for among its neighbours first."""
    plan = algorithm.plan
    near = plan.network.gains[[target]].indices
    others = np.setdiff1d(np.arange(plan.network.nodes), [target, *near])
    searched = [int(node) for node in (*near, *others)][:_MAX_RECEIVERS_SEARCHED]
    return max(searched, key=lambda node: float(plan.linear_common((node,))[target]))
