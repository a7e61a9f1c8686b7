"""Who attacks, with what each of them has of the real system's runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast._progress import Count, Stage, quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Round
from murmurcast.algorithms.common_reference import renews_reference
from murmurcast.algorithms.early_end import has_drops
from murmurcast.algorithms.observed import Observed as Diagnostic
from murmurcast.algorithms.observed import System as Diagnosed
from murmurcast.algorithms.observed import observe, system_of, why_not_observed
from murmurcast.audits import canaries, following, published, receivers
from murmurcast.audits.canaries import Canaries, Numbers
from murmurcast.audits.claims import Claims, carries_out, takes_private_gradients
from murmurcast.audits.eavesdropper import of_signals, overheard
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.following import Following, Observed, claims_of
from murmurcast.audits.published import PublishedReadings
from murmurcast.audits.receivers import Heard
from murmurcast.audits.replay import replay
from murmurcast.audits.symbols import Symbols
from murmurcast.audits.transcript import Transcript, bytes_of_tape, transcripts
from murmurcast.channels.base import is_over_radio, sums_by_gains
from murmurcast.engine.secure import is_secure
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision

MAX_ATTACKS = 7  # on one target: that many bounds must hold together
_MAX_TAPE_BYTES = 2**28  # bytes of tape held at once
_MAX_RECEIVERS_SEARCHED = 64  # receivers among which those that learn most are looked for
_SIDE_BY_SIDE = 2  # more would hold more copies of the data
_MAX_LISTENERS = 2  # receivers that listen by themselves, and pairs: each follows all others, gradient by gradient
_MAX_PAIRS_SEARCHED = 64  # pairs among which those that learn most are looked for


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
        heard: What receivers heard, some alone, over a radio some in pairs; and the coalition, if one was named.
        published_models: What was read of them alone; None where it is not known what to expect of them.
        coalition: Receivers that act together; None for everybody but the target.
        together: Whether receivers attack at all.
        over_radio: Whether signals went over a radio: there it depends on the access what receivers have together.
    """

    canaries: Canaries
    following: Following
    heard: tuple[Heard, ...]
    published_models: PublishedReadings | None
    coalition: tuple[int, ...] | None
    together: bool
    over_radio: bool = False


def gather(system: System, coalition: tuple[int, ...] | None = None) -> Gathered:
    """Runs the real system, as many runs at once as memory allows, and lets every adversary take what it has.

    Args:
        system: What is attacked.
        coalition: Receivers that act together; None for everybody but the target.
    """
    claims = claims_of(system.claimed, system.canaries, system.nodes)
    carried_out = plan_carried_out(system.claimed, claims)
    listeners = _listeners(system, coalition) if carried_out else []
    expected = None if carried_out is None else _expected_models(system)
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
        signals, heard = _listen(system, listeners, observed, carried_out)
        models = None
        if carried_out is not None and expected is not None:
            models = published.read_published(system.claimed, carried_out, transcript, expected)
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
    over_radio = system.claimed.setup.radio is not None
    return Gathered(system.canaries, signals, heard, models, coalition, carried_out is not None, over_radio)


def _listen(
    system: System,
    listeners: list[tuple[int, ...]],
    observed: Observed,
    carried_out: Diagnosed | None,
) -> tuple[Following, tuple[Heard, ...]]:
    """What everybody makes of a transcript, side by side: each takes its gradients on one core."""
    system.on_stage("everybody listens")
    public = not takes_private_gradients(system.claimed)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        signals = pool.submit(following.follow, observed, system.on_epoch)
        heard = [pool.submit(_hear, who, observed, carried_out) for who in listeners if carried_out is not None]
        elsewhere = pool.submit(following.own_points, observed) if public else None
        followed = following.finished(signals.result(), None if elsewhere is None else elsewhere.result())
        return followed, tuple(one.result() for one in heard)


def _of_all_runs(readings: list[Symbols]) -> Symbols:
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
    outside = [one for one in gathered.heard if one.observers != gathered.coalition and target not in one.observers]
    for members in (1, 2):
        alike = [one for one in outside if len(one.observers) == members]
        if alike:
            best = max(alike, key=lambda one: float(np.linalg.norm(one.shift[target])))
            yield _name(best.observers), _with_own_noise(best.about(target, change), signals, place, best.observers)
    if gathered.together and gathered.coalition is None and not gathered.over_radio:
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
    if gathered.published_models is not None:
        yield "published alone", gathered.published_models.about(target, change)


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


def plan_carried_out(algorithm: Algorithm, claims: Claims) -> Diagnosed | None:
    """The plan, if all is as it says in every epoch, so that a filter made of it fits; None where none is known."""
    known = all(map(_is_known_at_antennas, algorithm.rounds))
    if not known or has_drops(algorithm) or not isinstance(algorithm.setup, Plan):
        return None
    if not {"gradient_at", "publish"} <= algorithm.settings.keys() or why_not_observed(algorithm.setup):
        return None
    diagnosed = system_of(algorithm.setup)
    return diagnosed if carries_out(algorithm, diagnosed, claims) else None


def _is_known_at_antennas(one: Round) -> bool:
    """Whether it is known what an antenna has of a round: a sum, what a radio lets through, or the public reference."""
    return sums_by_gains(one.channel) or is_over_radio(one.channel) or renews_reference(one)


def _groups(system: System) -> "Iterator[list[int]]":
    size = np.dtype(system.precision).itemsize
    together = max(1, _MAX_TAPE_BYTES // bytes_of_tape(system.actual, system.problem, size))
    runs = range(system.canaries.signs.shape[1])
    for start in range(0, len(runs), together):
        yield list(runs[start : start + together])


def _hear(members: tuple[int, ...], observed: Observed, carried_out: Diagnosed) -> Heard:
    """What receivers make of what they have."""
    algorithm = observed.algorithm
    hidden = np.setdiff1d(np.arange(algorithm.setup.network.nodes), members)
    followed = replay(algorithm, observed.problem, observed.canaries, hidden, observed.seeds, data=observed.data)
    seen = receivers.view(algorithm, carried_out, observed.transcript, members)
    return receivers.listen(algorithm, carried_out, seen, followed)


def _name(members: tuple[int, ...]) -> str:
    return f"receiver{'' if len(members) == 1 else 's'} {', '.join(map(str, members))}"


def _expected_models(system: System) -> FloatArray:
    """[nodes, dim] the models of a run without noise, half way: what whoever has nothing of the air expects."""
    claimed, here = system.claimed, canaries.half_way(system.canaries, 1)
    options: dict[str, Any] = {key: claimed.settings[key] for key in ("gradient_at", "publish")}
    seeded = replace(claimed.plan, budget=replace(claimed.plan.budget, noise_source="seeded"))
    remade = registry.find(claimed.name).make(seeded, **options) if is_secure(claimed.setup) else claimed
    first, *further = remade.rounds
    sending = first.sending._replace(noise=np.zeros_like(first.sending.noise))
    quietly = canaries.planted(remade._replace(rounds=(first._replace(sending=sending), *further)))
    system.on_stage("the holder of published models looks")
    alone, prepare = (system.seed,), canaries.plant(here, remade)
    kept = transcripts(quietly, system.problem, alone, on_epoch=system.on_epoch, prepare=prepare)
    return np.asarray(kept.published[0])


def _listeners(system: System, coalition: tuple[int, ...] | None) -> list[tuple[int, ...]]:
    """Receivers that learn most of some target by the linear diagnostic, over a radio pairs too; and the coalition.

    Looked for among the neighbours of targets first. Of every target there is one that is not the target itself.
    """
    plan, targets = system.claimed.plan, system.canaries.targets
    watched = observe(plan)
    near = np.unique(plan.network.gains[targets].indices)
    searched = np.append(near, np.setdiff1d(np.arange(plan.network.nodes), near))[:_MAX_RECEIVERS_SEARCHED].tolist()
    alone = [one for one in _most_learnt([(node,) for node in searched], targets, watched) if one != coalition]
    if coalition is not None:
        return [*alone, coalition]
    if plan.radio is None or plan.network.nodes < 3:
        return alone
    pairs: list[tuple[int, ...]] = list(combinations(sorted(searched), 2))
    with_best = [pair for pair in pairs if any(node in pair for (node,) in alone)]
    tried = pairs if len(pairs) <= _MAX_PAIRS_SEARCHED else with_best[:_MAX_PAIRS_SEARCHED]
    return [*alone, *_most_learnt(tried, targets, watched)]


def _most_learnt(coalitions: list[tuple[int, ...]], targets: Numbers, watched: Diagnostic) -> list[tuple[int, ...]]:
    """A few that together learn most of all targets outside them."""
    learned = {one: np.where(np.isin(targets, one), 0.0, watched.linear_common(one)[targets]) for one in coalitions}
    chosen: list[tuple[int, ...]] = []
    best = np.zeros(len(targets))
    for _ in range(_MAX_LISTENERS):
        coalition = max(learned, key=lambda one: float(np.maximum(learned[one], best).sum()))
        if (learned[coalition] > best).any():
            chosen.append(coalition)
            best = np.maximum(best, learned[coalition])
    return chosen
