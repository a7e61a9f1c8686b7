"""What finished runs cost, recomputed from their ledgers and compared with what was promised.

The plan that made a run is not asked. From the ledger alone, which holds every constant that the engine was given, node
j's cost under Algorithm 1 is

    mu_j^2 = sum_{t=1}^{T-1} ( S_j gamma_t / (z_jj,t s_j,t+1) )^2,      s_j,t = noise_j,t course_t / amplitude_j,t

with S_j from clip, unit and examples. With secure noise S_j is counted as float64 computes it, the grid must be that of
the noise, and rounding adds 2^-25 sqrt(m (T - 1)) to mu_j: `murmurcast.privacy.discrete`. Several runs on the same data
compose: mu_j^2 is the sum of the runs'. Where one of them has secure noise, epsilon is by the bound of concentrated DP,
which holds for Gaussian noise with the same mu too.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.ledgers import LARGEST, TOLERANCE, Ledger, at, curve_of, demand_epsilon, read
from murmurcast.privacy import discrete
from murmurcast.privacy.certificate import PLAIN_BOUND
from murmurcast.privacy.curves import EXACT, Curve, note
from murmurcast.results import Result

Tier = Literal["tier 1", "trusted server", "nothing sent", "none"]
Verdict = Literal["kept", "broken", "nothing is promised"]
_ADVERSARY: dict[Tier, str] = {
    "tier 1": "everybody else together: hears every antenna, knows all other data and noise, sees all published models",
    "trusted server": "everybody but the server, who is trusted with the sum of gradients and draws the noise",
    "nothing sent": "everybody",
    "none": "nobody",
}
_FORMULA: dict[Tier, str] = {
    "tier 1": "certificate, against everybody: mu_j^2 = sum over t < T of (S_j gamma_t / (z_jj,t s_j,t+1))^2",
    "trusted server": "if the server is trusted: mu_j^2 = sum over t < T of (S_j / rho_t+1)^2",
    "nothing sent": "nothing is sent, and nothing published: mu = 0",
    "none": "nothing is promised",
}
_ON_A_GRID = (
    "certificate by the discrete Gaussian's bound, against everybody: mu_j = (sum over t < T of (S_j gamma_t / (z_jj,t "
    "s_j,t+1))^2)^(1/2) + 2^-25 (m (T - 1))^(1/2) for rounding, rho_j = mu_j^2 / 2 of concentrated DP"
)
_WEAKEST: tuple[Tier, ...] = ("none", "trusted server", "tier 1", "nothing sent")
_NO_GUARANTEE = {
    "noiseless": "no noise is sent",
    "mped2fl": "the weakest links carry no noise",
    "ped2fl": "the weakest sender adds no noise",
}
_CHUNK = 4096  # epochs


class Certified(NamedTuple):
    """What runs really cost every node, and whether that was promised. Only "tier 1" is a certificate.

    Attributes:
        tier: What stands behind the numbers: "tier 1" (the certificate), "trusted server", "nothing sent" or "none".
        unit: What is hidden: a whole "node", or one "record" of it.
        adversary: Against whom the numbers hold.
        mu: [nodes] recomputed from the ledger, all runs together; infinite where nothing is promised.
        epsilon: [nodes] the exact epsilon at `delta`; with secure noise, its bound.
        delta: Failure probability.
        promised_mu: [nodes] what the runs promised, all together.
        basis: The formula, in words.
        assumptions: What must be true besides.
        verdict: "kept", "broken" or "nothing is promised".
        verdicts: [nodes] in words: "kept", "costs more", "costs less" or "nothing is promised".
        problems: A line for each run whose promise does not hold.
        note: What may be said of the transcripts themselves.
    """

    tier: Tier
    unit: str
    adversary: str
    mu: FloatArray
    epsilon: FloatArray
    delta: float
    promised_mu: FloatArray
    basis: str
    assumptions: tuple[str, ...]
    verdict: Verdict
    verdicts: tuple[str, ...]
    problems: tuple[str, ...]
    note: str


class Account(NamedTuple):
    """One run, from its ledger.

    Attributes:
        run: What it is called.
        tier: As in `Certified`.
        unit: What is hidden.
        delta: The ledger's.
        mu: [nodes] recomputed.
        promised_mu: [nodes].
        verdicts: [nodes] as in `Certified`.
        reason: Why nothing is promised; else empty.
        assumptions: What must be true of this run.
        curve: From mu to epsilon.
        seeds: Of its noise; empty where no noise stands behind the number.
    """

    run: str
    tier: Tier
    unit: str
    delta: float
    mu: FloatArray
    promised_mu: FloatArray
    verdicts: tuple[str, ...]
    reason: str
    assumptions: tuple[str, ...]
    curve: Curve
    seeds: tuple[int, ...] = ()


def certify(runs: Result | Sequence[Result], delta: float | None = None) -> Certified:
    """Recomputes what runs cost from their ledgers, and compares it with what they promised.

    Args:
        runs: One run, or several on the same data by the same nodes, which compose.
        delta: Failure probability for epsilon; by default the runs'.

    Guarantees:
        Unit: the ledger's; record level only with gradients at the public mixed point.
        Adversary: everybody else together (tier 1), or everybody but the server (trusted server).
        Formula: see the module; for several runs mu_j = sqrt(sum of mu_j^2), also where later runs were chosen by what
            earlier ones sent. epsilon is exact at `delta`, or with secure noise the bound of `privacy.discrete`.
        Range: verdict "kept", and the assumptions listed.

    Raises:
        Altered: A ledger is incomplete, out of range, or at odds with itself or with the rest of its run.
        Error: Runs that do not compose: other units, other numbers of nodes, the same noise twice.
    """
    listed = [runs] if isinstance(runs, Result) else list(runs)
    if not listed:
        raise Error("no run is given", hint="name at least one")
    if delta is not None:
        _check.fraction(delta=delta)
    return _composed([account(run) for run in listed], delta)


def account(run: Result) -> Account:
    """What one run costs every node, from its ledger, beside what it promised."""
    ledger = read(run)
    promised = ledger.per_node("promised_mu", infinite=True)
    demand_epsilon(run, ledger, promised)
    unit, delta, curve = ledger.text("unit"), ledger.number("delta"), curve_of(run, ledger)
    if np.isinf(promised).any():
        if not np.isinf(promised).all():
            ledger.refuse("promises something to some nodes only")
        words = ("nothing is promised",) * ledger.nodes
        return Account(ledger.run, "none", unit, delta, promised, promised, words, _why_nothing(ledger), (), curve)
    tier, mu = _recomputed(run, ledger)
    verdicts = tuple(_judged(*pair) for pair in zip(mu.tolist(), promised.tolist(), strict=True))
    # Secure noise is fresh whatever the seed.
    seeded = tier in ("tier 1", "trusted server") and curve.source == "seeded"
    seeds = tuple(run.info["seeds"]) if seeded else ()
    return Account(ledger.run, tier, unit, delta, mu, promised, verdicts, "", _assumed(run, ledger, tier), curve, seeds)


def exposed(
    steps: FloatArray,
    course: FloatArray,
    z: FloatArray,
    amplitude: FloatArray,
    noise: FloatArray,
    sends: FloatArray | None = None,
) -> FloatArray:
    """sum_{t=1}^{T-1} ( gamma_t / (z_t s_t+1) )^2 with s = noise course / amplitude, from tables as they were sent.

    Args:
        steps: [epochs] gamma_t.
        course: [epochs] of the noise.
        z: [rows, nodes] what gradients are divided by; as all tables, its last row stands for all later epochs.
        amplitude: [rows, nodes] of the model.
        noise: [rows, nodes] standard deviation in units of the course.
        sends: [rows, nodes] 1 while a node sends, 0 once it has dropped out and exposes nothing more; by default 1.

    Returns:
        [nodes]; infinite where a gradient is covered by no noise.
    """
    last = len(steps) - 1  # gradients that are exposed
    sends = np.ones((1, z.shape[1])) if sends is None else sends
    changing = min(max(map(len, (z, amplitude, noise, sends))), last)
    with np.errstate(all="ignore"):
        pace = (steps[:-1] / course[1:]) ** 2
        total = np.zeros(z.shape[1])
        for first in range(0, changing, _CHUNK):
            here = np.arange(first, min(first + _CHUNK, changing))
            ratio = at(amplitude, here + 1) / (at(z, here) * at(noise, here + 1))
            total += pace[here] @ np.where(at(sends, here + 1) > 0, ratio**2, 0.0)
        if changing < last:  # tables have come to their last rows
            ratio = amplitude[-1] / (z[-1] * noise[-1])
            total += pace[changing:].sum() * np.where(sends[-1] > 0, ratio**2, 0.0)
    return np.where(np.isnan(total), np.inf, total)  # 0/0: neither a step nor noise is known to be there


def _recomputed(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    name = ledger.text("algorithm")
    if name in _NO_GUARANTEE:
        return "none", np.full(ledger.nodes, np.inf)
    if ledger.noise_source == "secure" and name != "power-controlled":
        ledger.refuse(f'has secure noise, and is of the algorithm "{name}", which has none')
    if name not in _RULES:
        ledger.refuse(f'is of the algorithm "{name}", for which no rule is known: its promise cannot be checked')
    return _RULES[name](run, ledger)


def _over_the_air(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    """Algorithm 1: a Gaussian mechanism in every epoch, given all that was sent before."""
    secure = ledger.noise_source == "secure"
    ledger.text("medium", ("Air",))
    ledger.text("publish", ("last", "average"))  # either is a function of what was sent
    sending = ("sending_amplitude", "sending_noise", "sending_course")
    sends = ledger.sends()
    known = ("heard", "kept", "step", "z", "newest", *(() if sends is None else ("sends",)))
    grid = ("sending_spacing", "receiving_limit") if secure else ()
    ledger.demand_tables(*sending, *grid, *(f"receiving_{name}" for name in known))
    where = ledger.text("gradient_at", ("mixed", "own"))
    if ledger.text("unit") == "record" and where != "mixed":
        ledger.refuse(f'has unit record and gradient_at "{where}": that carries no certificate, "mixed" is needed')
    ledger.per_epoch("receiving_newest")
    ledger.per_node("power")
    amplitude, z = _above_zero(ledger, "sending_amplitude", sends), _above_zero(ledger, "receiving_z")
    _demand_mixing(ledger, amplitude, sends)
    steps, course = ledger.per_epoch("receiving_step"), ledger.per_epoch("sending_course")
    noise = ledger.table("sending_noise")
    moved, curve = sensitivity(ledger), curve_of(run, ledger)
    if secure:
        _demand_grid(ledger, course, amplitude, noise)
        moved = _as_computed(ledger, moved)
    return "tier 1", curve.whole(_times(moved, np.sqrt(exposed(steps, course, z, amplitude, noise, sends))))


def _demand_grid(ledger: Ledger, course: FloatArray, amplitude: FloatArray, noise: FloatArray) -> None:
    """The grid of every epoch and node is the one of its noise, and the sampler is the one that is counted."""
    if ledger.number("sampler_error") != discrete.SAMPLER_ERROR:
        ledger.refuse(f"was written with another sampler: its error is {ledger.number('sampler_error'):g}")
    spacing, limit = _above_zero(ledger, "sending_spacing"), ledger.table("receiving_limit")
    fine = 2.0**discrete.FINENESS
    for first in range(0, ledger.epochs, _CHUNK):
        here = np.arange(first, min(first + _CHUNK, ledger.epochs))
        steps, following = at(spacing, here), at(spacing, np.minimum(here + 1, ledger.epochs - 1))
        with np.errstate(all="ignore"):
            std = course[here, None] * at(noise, here) / (at(amplitude, here) * steps)
        within = (std >= fine * (1 - TOLERANCE)) & (std <= 2 * fine * (1 + TOLERANCE))
        if not (within & (np.frexp(steps)[0] == 0.5)).all():
            ledger.refuse("has a sending_spacing that is not the grid of its noise")
        sent_later = here < ledger.epochs - 1  # what follows the last epoch stays on the node
        if not np.array_equal(at(limit, here)[sent_later], discrete.HELD_WITHIN * following[sent_later]):
            ledger.refuse("has a receiving_limit that does not belong to its grid")


def _as_computed(ledger: Ledger, exact: FloatArray) -> FloatArray:
    """[nodes] S with the roundings of float64."""
    examples = ledger.per_node("examples_per_node") if "examples_per_node" in ledger.data.variables else 0.0
    return discrete.sensitivity(exact, ledger.number("clip"), examples, int(ledger.number("dim")))


def _through_a_server(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    """A trusted server: T - 1 noisy sums of gradients, with noise of standard deviation rho, drawn in parts."""
    del run
    ledger.text("medium", ("Server",))
    ledger.text("publish", ("last", "average"))
    ledger.demand_tables("sending_noise", "receiving_step", "receiving_newest")
    for name in ("receiving_step", "receiving_newest"):
        ledger.per_epoch(name)
    ledger.per_node("power")
    rho = np.sqrt(np.sum(ledger.table("sending_noise") ** 2, axis=1, keepdims=True))
    one, always = np.ones((1, 1)), np.ones(ledger.epochs)
    return "trusted server", _times(sensitivity(ledger), np.sqrt(exposed(always, always, one, one, rho)))


def _in_silence(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    """Everybody alone: nothing is sent, and what is published is where all started."""
    ledger.text("medium", ("Silence",))
    ledger.demand_tables("receiving_step")
    ledger.per_epoch("receiving_step")
    ledger.per_node("power")
    if np.asarray(run.published != 0).any():
        ledger.refuse("says that nothing is published, and the published models are not those of the start")
    return "nothing sent", np.zeros(ledger.nodes)


_RULES: dict[str, Callable[[Result, Ledger], tuple[Tier, FloatArray]]] = {
    "power-controlled": _over_the_air,
    "central-dp": _through_a_server,
    "local-only": _in_silence,
}


def sensitivity(ledger: Ledger) -> FloatArray:
    """[nodes] S: 2 clip for unit node, 2 clip / n for unit record; infinite where nothing is clipped.

    The ledger's own figure must agree.
    """
    clipping, clip = ledger.text("clipping", ("node", "example", "none")), ledger.number("clip")
    found = np.full(ledger.nodes, 2 * clip)
    if ledger.text("unit") == "record":
        if clipping == "node":
            ledger.refuse("has unit record, and clips nodes: every example's gradient must be clipped")
        examples = ledger.per_node("examples_per_node")
        if (examples < 1).any():
            ledger.refuse("has a node without examples")
        found = found / examples
    held = ledger.per_node("sensitivity")
    if not np.allclose(held, found, rtol=TOLERANCE, atol=0):
        node = int(np.argmax(np.abs(held - found)))
        ledger.refuse(f"has sensitivity {held[node]:.6g} of node {node}, and clip and unit make it {found[node]:.6g}")
    return np.full(ledger.nodes, np.inf) if clipping == "none" else found


def _demand_mixing(ledger: Ledger, amplitude: FloatArray, sends: FloatArray | None) -> None:
    """The mixed point is made of what was sent, the node's own noisy signal among it, with weights that sum to 1.

    Own term: kept = (1 - d/R) / amplitude. Any other coefficient is that of a point which is not the public one. A node
    that has dropped out mixes nothing any more.
    """
    taking_part = np.ones_like(amplitude[:1]) if sends is None else sends
    sender, receiver, gain = ledger.links()
    degree = np.bincount(sender, minlength=ledger.nodes)
    share = degree / ledger.number("normaliser")
    if (share > 1).any() or not np.array_equal(degree, np.bincount(receiver, minlength=ledger.nodes)):
        ledger.refuse("has links that do not fit its normaliser, or go one way only")
    kept, heard = ledger.table("receiving_kept"), ledger.table("receiving_heard")
    tables = (amplitude, kept, heard, taking_part)
    for epoch in range(max(map(len, tables))):
        loud, own, factor, here = (table[min(epoch, len(table) - 1)] for table in tables)
        off = np.abs(own * loud - 1 + share) * here
        if not (off <= TOLERANCE).all():
            node = int(np.argmax(off))
            ledger.refuse(f"has receiving_kept of node {node} at which its own noisy signal is not what it keeps")
        arriving = np.bincount(receiver, gain * loud[sender], ledger.nodes)
        if not np.allclose(factor * arriving * here, share * here, rtol=TOLERANCE, atol=TOLERANCE):
            ledger.refuse("has amplitudes, gains and receiving_heard that do not belong together")


def _above_zero(ledger: Ledger, name: str, sends: FloatArray | None = None) -> FloatArray:
    """A table of numbers above 0, of all nodes that have not dropped out."""
    found = ledger.table(name)
    needed = np.ones(found.shape) if sends is None else at(sends, np.arange(len(found)))
    if not (found[needed > 0] > 0).all():
        ledger.refuse(f"has a 0 in {name}")
    return found


def _times(sensitivity: FloatArray, ratio: FloatArray) -> FloatArray:
    """Their product; a gradient that nothing bounds costs infinitely much, unless it is never sent."""
    with np.errstate(invalid="ignore", over="ignore"):
        mu = np.where(ratio == 0, 0.0, sensitivity * ratio)
    return np.where(mu > LARGEST, np.inf, mu)


def _judged(mu: float, promised: float) -> str:
    """One node's verdict. A run costs what it promised; less means that ledger or promise was changed."""
    if not mu <= promised * (1 + TOLERANCE):
        return "costs more"
    return "costs less" if mu < promised * (1 - TOLERANCE) else "kept"


def _why_nothing(ledger: Ledger) -> str:
    name = ledger.text("algorithm")
    if ledger.text("clipping", ("node", "example", "none")) == "none" and name not in _NO_GUARANTEE:
        return "gradients are not clipped"
    return _NO_GUARANTEE.get(name, f"{name} makes no promise")


def _assumed(run: Result, ledger: Ledger, tier: Tier) -> tuple[str, ...]:
    """What a ledger cannot show."""
    if tier == "nothing sent":
        return ("the ledger is complete: no model leaves its node",)
    found = [
        "the ledger is complete and true: nothing else that depends on data leaves a node",
        f"gradients are clipped as it says (each {ledger.text('clipping')}'s to {ledger.number('clip'):g})",
        "noise is Gaussian, unpredictable and fresh in every epoch; rounding is not counted"
        if ledger.noise_source == "seeded"
        else "noise is discrete Gaussian on the grid it says, fresh in every epoch, from AES-128 with secret keys; "
        "rounding is counted, for IEEE float64 and sums in any order",
        "clip, steps, sizes and noise were chosen without looking at the data",
    ]
    if tier == "tier 1":
        found.append("own models stay on their nodes; only mixed points, or averages of them, are published")
    if ledger.text("unit") == "record":
        found.append("one record is hidden, not a person with many")
    if "stop_after" in ledger.data.attrs:
        found.append(f"that it stops after epoch {ledger.epochs} was fixed before the run")
    if "drops" in ledger.data.attrs:
        found.append(f"who drops out when was fixed before the run: {ledger.text('drops')}")
    if "batch" in ledger.data.attrs:
        found.append(PLAIN_BOUND)
    if len(run.published) > 1:
        count = len(run.published)
        found.append(f"one of the {count} seeds is released; all of them together cost sqrt({count}) times mu")
    return tuple(found)


def _composed(accounts: list[Account], delta: float | None) -> Certified:
    """All runs together."""
    _demand_alike(accounts)
    given = {account.delta for account in accounts}
    if delta is None and len(given) > 1:
        raise Error("the runs have different deltas", hint="choose one for all of them: delta (--delta on the line)")
    delta = given.pop() if delta is None else delta
    mu, promised = (
        np.sqrt(np.sum(np.square([getattr(account, name) for account in accounts]), axis=0))
        for name in ("mu", "promised_mu")
    )
    problems = tuple(line for account in accounts for line in _trouble(account))
    if not problems:
        _demand_fresh_noise(accounts)
    # Of a broken promise nothing is left to stand on: its ledger may be the part that is wrong.
    tier = "none" if problems else min((account.tier for account in accounts), key=_WEAKEST.index)
    reasons = [account.reason for account in accounts if account.reason]
    curve = _common([account.curve for account in accounts])
    formula = _ON_A_GRID if tier == "tier 1" and curve.source == "secure" else _FORMULA[tier]
    basis = "the promise does not hold" if problems else ": ".join((formula, *dict.fromkeys(reasons)))
    together = "; over runs mu_j^2 adds up" if len(accounts) > 1 and not (problems or reasons) else ""
    return Certified(
        tier=tier,
        unit=accounts[0].unit,
        adversary=_ADVERSARY[tier],
        mu=mu,
        epsilon=curve.epsilon(mu, delta),
        delta=delta,
        promised_mu=promised,
        basis=basis + together,
        assumptions=() if problems or reasons else _assumed_of_all(accounts),
        verdict="broken" if problems else "nothing is promised" if reasons else "kept",
        verdicts=tuple(map(_worst, zip(*(account.verdicts for account in accounts), strict=True))),
        problems=problems,
        note=_said_of_all(accounts, kept=not (problems or reasons)),
    )


def _said_of_all(accounts: list[Account], *, kept: bool) -> str:
    """One transcript for which nothing is claimed spoils the claim for all."""
    if not all(account.curve.source == "secure" for account in accounts):
        return note("seeded")
    return note("secure") if kept else "secure noise, but nothing is claimed for this transcript"


def _common(curves: list[Curve]) -> Curve:
    """For runs together: Gaussian noise meets the discrete Gaussian's bound too, so it serves where both occur."""
    if all(curve.source == "seeded" for curve in curves):
        return EXACT
    return Curve("secure", samples=sum(curve.samples for curve in curves))


def _demand_alike(accounts: list[Account]) -> None:
    for name, found in (
        ("units", {account.unit for account in accounts}),
        ("numbers of nodes", {len(account.mu) for account in accounts}),
    ):
        if len(found) > 1:
            raise Error(
                f"the runs have different {name} ({', '.join(map(str, sorted(found, key=str)))})",
                hint="costs add up only for the same unit and the same nodes: name runs that share them",
            )


def _demand_fresh_noise(accounts: list[Account]) -> None:
    """No two runs draw the same noise: from two signals with one noise it can be subtracted, whatever each costs."""
    used: dict[int, str] = {}
    for account in accounts:
        for seed in account.seeds:
            if seed in used:
                raise Error(
                    f'runs "{used[seed]}" and "{account.run}" both have seed {seed}, which is the same noise twice: '
                    "their costs do not add up",
                    hint="release one of them only, or run one again with other seeds (run.seeds)",
                )
            used[seed] = account.run


def _assumed_of_all(accounts: list[Account]) -> tuple[str, ...]:
    found = dict.fromkeys(line for account in accounts for line in account.assumptions)
    if len(accounts) == 1:
        return tuple(found)
    return (*found, "all runs are of the same data by the same nodes; later ones may be chosen by earlier ones")


def _worst(words: tuple[str, ...]) -> str:
    return next(word for word in ("costs more", "costs less", "nothing is promised", "kept") if word in words)


def _trouble(account: Account) -> list[str]:
    """A line on the node that is worst off, where there is one."""
    for verdict in ("costs more", "costs less"):
        nodes = [node for node, word in enumerate(account.verdicts) if word == verdict]
        if nodes:
            node = nodes[int(np.argmax(account.mu[nodes] - account.promised_mu[nodes]))]
            costs = f"was promised mu {account.promised_mu[node]:.6g}, and what was sent costs {account.mu[node]:.6g}"
            cause = "" if verdict == "costs more" else ": ledger and promise are not of one run"
            return [f'run "{account.run}": node {node} {costs}{cause}']
    return []
