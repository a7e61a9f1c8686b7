"""Who attacks, with what each of them has of the real system's runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast._progress import Count, Stage, quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.early_end import has_drops
from murmurcast.audits import canaries, following, published, receivers
from murmurcast.audits.canaries import Canaries, Numbers
from murmurcast.audits.claims import Claims, carries_out, takes_private_gradients
from murmurcast.audits.eavesdropper import of_signals, overheard
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.following import Following, Observed, claims_of
from murmurcast.audits.published import Held
from murmurcast.audits.receivers import Heard
from murmurcast.audits.replay import replay
from murmurcast.audits.transcript import Transcript, bytes_of_tape, transcripts
from murmurcast.engine.secure import is_secure
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.privacy import linear
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision

MAX_ATTACKS = 7  # on one target: that many bounds must hold together
_MAX_TAPE_BYTES = 2**28  # bytes of tape held at once
_MAX_RECEIVERS_SEARCHED = 64  # receivers among which those that learn most are looked for
_SIDE_BY_SIDE = 2  # more would hold more copies of the data
_MAX_LISTENERS = 2  # receivers that listen by themselves: each follows all others, gradient by gradient


class System(NamedTuple):
    """What is attacked, and whom to tell.

    Attributes:
        claimed: What the nodes claim to do.
        actual: What they do.
        problem: What they learn.
        canaries: What is planted, with signs for every run.
        nodes: [nodes] whose signals are looked at; the targets are among them.
        seed: Of the first run; the others count on.
        precision: Of the runs.
        on_stage: Told what begins.
        on_epoch: Told (epochs done, epochs in all).
    """

    claimed: Algorithm
    actual: Algorithm
    problem: Problem
    canaries: Canaries
    nodes: Numbers
    seed: int = 0
    precision: Precision = "float32"
    on_stage: Stage = quiet
    on_epoch: Count = quiet


class Gathered(NamedTuple):
    """What everybody has of all runs.

    Attributes:
        canaries: What was planted.
        following: Of every signal by itself.
        heard: What receivers heard, some by themselves; and the coalition, if one was named.
        held: Of published models; None where it is not known what to expect of them.
        coalition: Receivers that act together; None for everybody but the target.
        together: Whether receivers attack at all.
    """

    canaries: Canaries
    following: Following
    heard: tuple[Heard, ...]
    held: Held | None
    coalition: tuple[int, ...] | None
    together: bool


def gather(system: System, coalition: tuple[int, ...] | None = None) -> Gathered:
    """Runs the real system, as many runs at once as memory allows, and lets every adversary take what it has.

    Args:
        system: What is attacked.
        coalition: Receivers that act together; None for everybody but the target.
    """
    claims = claims_of(system.claimed, system.canaries, system.nodes)
    together = receivers_attack(system.claimed, claims)
    listeners = _listeners(system, coalition) if together else []
    expected = _expected_models(system) if together else None
    data, parts = system.problem.local_data(), []
    for group in _groups(system):
        seeds = tuple(system.seed + run for run in group)
        here = system.canaries.of_runs(group)
        system.on_stage("running")
        planted = canaries.planted(system.actual)
        prepare = canaries.plant(here, system.actual)
        transcript = transcripts(planted, system.problem, seeds, system.precision, system.on_epoch, prepare)
        _require_numbers(transcript)
        observed = Observed(
            system.claimed, system.actual, system.problem, here, system.nodes, transcript, seeds, claims, data
        )
        signals, heard = _listen(system, listeners, observed)
        models = None if expected is None else published.hold(system.claimed, transcript, expected)
        parts.append((signals, heard, models))
    signals, heard, models = parts[0]
    if len(parts) > 1:
        signals = following.joined([part[0] for part in parts])
        heard = tuple(
            one._replace(readings=_of_all_runs([part[1][place].readings for part in parts]))
            for place, one in enumerate(heard)
        )
        if models is not None:
            models = models._replace(readings=_of_all_runs([part[2].readings for part in parts if part[2]]))
    return Gathered(system.canaries, signals, heard, models, coalition, together)


def _listen(
    system: System,
    listeners: list[tuple[int, ...]],
    observed: Observed,
) -> tuple[Following, tuple[Heard, ...]]:
    """What everybody makes of a transcript, side by side: each takes its gradients on one core."""
    system.on_stage("everybody listens")
    public = not takes_private_gradients(system.claimed)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        signals = pool.submit(following.follow, observed, system.on_epoch)
        heard = [pool.submit(_hear, who, observed) for who in listeners]
        elsewhere = pool.submit(following.own_points, observed) if public else None
        followed = following.finished(signals.result(), None if elsewhere is None else elsewhere.result())
        return followed, tuple(one.result() for one in heard)


def _of_all_runs(readings: list[FloatArray]) -> FloatArray:
    return np.concatenate(readings, axis=1)


def evidence_of(gathered: Gathered, target: int) -> "Iterator[tuple[str, Evidence]]":
    """What every adversary has of one target, one after the other: all at once would be large.

    Args:
        gathered: Of all targets.
        target: A node with canaries.

    Yields:
        A name, and the evidence.
    """
    signals, nodes = gathered.following, gathered.following.nodes.tolist()
    place = nodes.index(target)
    change = float(gathered.canaries.change[gathered.canaries.targets.tolist().index(target)])
    alone = [one for one in gathered.heard if one.observers != gathered.coalition and target not in one.observers]
    if alone:
        best = max(alone, key=lambda one: float(np.linalg.norm(one.shift[target])))
        yield _name(best.observers), _with_own_noise(best.about(target, change), signals, place, best.observers)
    if gathered.together and gathered.coalition is None:
        # Together they hear the target by itself: from any sum it is in, they subtract their own signals.
        others = tuple(node for node in nodes if node != target)
        yield "all other receivers", _with_own_noise(of_signals(signals, place), signals, place, others)
    for one in gathered.heard:
        if one.observers == gathered.coalition and target not in one.observers:
            yield (
                _name(one.observers),
                _with_own_noise(one.about(target, change), signals, place, one.observers),
            )
    yield from overheard(signals, place)
    if gathered.held is not None:
        yield "published alone", gathered.held.about(target, change)


def _with_own_noise(evidence: Evidence, signals: Following, place: int, members: tuple[int, ...]) -> Evidence:
    """Evidence beside the noise of the member whose own is most like the target's: each member knows its own."""
    nodes = signals.nodes.tolist()
    known = [nodes.index(node) for node in members if node in nodes]
    if not known:
        return evidence
    left = signals.surprises[place].ravel()
    likeness = [abs(float(np.dot(left, signals.noise[other].ravel()))) for other in known]
    own = signals.noise[known[int(np.argmax(likeness))]]
    return evidence.beside(own.reshape(-1, *own.shape[2:]).astype(np.float64))


def _require_numbers(transcript: Transcript) -> None:
    """Of what is not a number nothing can be learned, and nothing shown."""
    on_air = (
        (does, values, 2) for one in transcript.rounds for does, values in (("sends", one.sent), ("hears", one.heard))
    )
    for does, values, axis in (*on_air, ("publishes", transcript.published, 1)):
        wrong = ~np.isfinite(values)
        if wrong.any():
            first = np.unravel_index(np.argmax(wrong), wrong.shape)
            raise Error(
                f"node {first[axis]} {does} what is not a finite number",
                hint="look for overflow and division by 0 in what the nodes do, and for steps that are too large",
            )


def receivers_attack(algorithm: Algorithm, claims: Claims) -> bool:
    """Whether receivers and published models alone do: all is the plan's in every epoch, so the filter fits."""
    if len(algorithm.rounds) != 1 or algorithm.rounds[0].channel.kind != "air" or has_drops(algorithm):
        return False
    if not isinstance(algorithm.setup, Plan) or not {"gradient_at", "publish"} <= algorithm.settings.keys():
        return False
    return carries_out(algorithm, algorithm.setup, claims)


def _groups(system: System) -> "Iterator[list[int]]":
    size = np.dtype(system.precision).itemsize
    together = max(1, _MAX_TAPE_BYTES // bytes_of_tape(system.actual, system.problem, size))
    runs = range(system.canaries.signs.shape[1])
    for start in range(0, len(runs), together):
        yield list(runs[start : start + together])


def _hear(members: tuple[int, ...], observed: Observed) -> Heard:
    """What receivers make of what they have."""
    algorithm, plan = observed.algorithm, observed.algorithm.plan
    hidden = linear.hidden_from(plan.mixing.weights.toarray(), members)
    followed = replay(algorithm, observed.problem, observed.canaries, hidden, observed.seeds, data=observed.data)
    return receivers.listen(plan, receivers.view(plan, observed.transcript, members), followed)


def _name(members: tuple[int, ...]) -> str:
    return f"receiver{'' if len(members) == 1 else 's'} {', '.join(map(str, members))}"


def _expected_models(system: System) -> FloatArray:
    """[nodes, dim] the models of a run without noise, half way: what whoever has nothing of the air expects."""
    claimed, here = system.claimed, canaries.half_way(system.canaries, 1)
    options: dict[str, Any] = {key: claimed.settings[key] for key in ("gradient_at", "publish")}
    seeded = replace(claimed.plan, budget=replace(claimed.plan.budget, noise_source="seeded"))
    remade = registry.find(claimed.name).make(seeded, **options) if is_secure(claimed.setup) else claimed
    (only,) = remade.rounds
    sending = only.sending._replace(noise=np.zeros_like(only.sending.noise))
    quietly = canaries.planted(remade._replace(rounds=(only._replace(sending=sending),)))
    system.on_stage("the holder of published models looks")
    alone, prepare = (system.seed,), canaries.plant(here, remade)
    kept = transcripts(quietly, system.problem, alone, on_epoch=system.on_epoch, prepare=prepare)
    return np.asarray(kept.published[0])


def _listeners(system: System, coalition: tuple[int, ...] | None) -> list[tuple[int, ...]]:
    """Receivers that learn most of some target by the linear diagnostic, and the coalition.

    Looked for among the neighbours of targets first. Of every target there is one that is not the target itself.
    """
    plan, targets = system.claimed.plan, system.canaries.targets
    near = np.unique(plan.network.gains[targets].indices)
    searched = np.append(near, np.setdiff1d(np.arange(plan.network.nodes), near))[:_MAX_RECEIVERS_SEARCHED]
    learned = {int(node): plan.linear_common((int(node),))[targets] for node in searched}
    learned = {node: np.where(targets == node, 0.0, mu) for node, mu in learned.items()}
    chosen: list[int] = []
    best = np.zeros(len(targets))
    for _ in range(_MAX_LISTENERS):
        node = max(learned, key=lambda one: float(np.maximum(learned[one], best).sum()))
        if (learned[node] > best).any():
            chosen.append(node)
            best = np.maximum(best, learned[node])
    alone: list[tuple[int, ...]] = [(node,) for node in chosen if coalition != (node,)]
    return alone if coalition is None else [*alone, coalition]
