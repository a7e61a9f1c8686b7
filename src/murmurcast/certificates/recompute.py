"""What one finished run cost every node, recomputed from its ledger, beside what it promised.

The plan that made a run is not asked. From the ledger alone, which holds every constant that the engine was given, node
j's cost under Algorithm 1 is

    mu_j^2 = sum_{t=1}^{T-1} ( S_j gamma_t / (z_jj,t s_j,t+1) )^2,      s_j,t = noise_j,t schedule_t / amplitude_j,t

with S_j from clip, unit and examples. With secure noise S_j is counted as float64 computes it, the grid must be that of
the noise, and rounding adds 2^-25 sqrt(m (T - 1)) to mu_j: `murmurcast.privacy.discrete`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.certificates.read import LARGEST_NUMBER, TOLERANCE, Ledger, at, curve_of, read, require_epsilon
from murmurcast.privacy import discrete
from murmurcast.privacy.certificate import PLAIN_BOUND
from murmurcast.privacy.conversion import Curve
from murmurcast.runs.result import Result

Tier = Literal["tier 1", "trusted server", "nothing sent", "none"]
_NO_GUARANTEE = {
    "noiseless": "no noise is sent",
    "mped2fl": "the weakest links carry no noise",
    "ped2fl": "the weakest sender adds no noise",
}
_CHUNK = 4096  # epochs


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


def account_of(run: Result) -> Account:
    """What one run costs every node, from its ledger, beside what it promised."""
    ledger = read(run)
    promised = ledger.per_node("promised_mu", infinite=True)
    require_epsilon(run, ledger, promised)
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
    schedule: FloatArray,
    z: FloatArray,
    amplitude: FloatArray,
    noise: FloatArray,
    sends: FloatArray | None = None,
) -> FloatArray:
    """sum_{t=1}^{T-1} ( gamma_t / (z_t s_t+1) )^2 with s = noise schedule / amplitude, from tables as they were sent.

    Args:
        steps: [epochs] gamma_t.
        schedule: [epochs] of the noise.
        z: [rows, nodes] what gradients are divided by; as all tables, its last row stands for all later epochs.
        amplitude: [rows, nodes] of the model.
        noise: [rows, nodes] standard deviation in units of the schedule.
        sends: [rows, nodes] 1 while a node sends, 0 once it has dropped out and exposes nothing more; by default 1.

    Returns:
        [nodes]; infinite where a gradient is covered by no noise.
    """
    last = len(steps) - 1  # gradients that are exposed
    sends = np.ones((1, z.shape[1])) if sends is None else sends
    changing = min(max(map(len, (z, amplitude, noise, sends))), last)
    with np.errstate(all="ignore"):
        pace = (steps[:-1] / schedule[1:]) ** 2
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
    if ledger.noise_source == "secure" and len(run.published) > 1:
        ledger.refuse(f"has secure noise and {len(run.published)} seeds, which are so many runs on the same data")
    if name not in _RULES:
        ledger.refuse(f'is of the algorithm "{name}", for which no rule is known: its promise cannot be checked')
    return _RULES[name](run, ledger)


def _over_the_air(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    """Algorithm 1: a Gaussian mechanism in every epoch, given all that was sent before."""
    secure = ledger.noise_source == "secure"
    ledger.text("medium", ("Air",))
    ledger.text("publish", ("last", "average"))  # either is a function of what was sent
    sending = ("sending_amplitude", "sending_noise", "sending_schedule")
    sends = ledger.sends()
    known = ("heard", "kept", "step", "z", "newest", *(() if sends is None else ("sends",)))
    grid = ("sending_spacing", "receiving_limit") if secure else ()
    ledger.require_tables(*sending, *grid, *(f"receiving_{name}" for name in known))
    where = ledger.text("gradient_at", ("mixed", "own"))
    if ledger.text("unit") == "record" and where != "mixed":
        ledger.refuse(f'has unit record and gradient_at "{where}": that carries no certificate, "mixed" is needed')
    ledger.per_epoch("receiving_newest")
    ledger.per_node("power")
    amplitude, z = _above_zero(ledger, "sending_amplitude", sends), _above_zero(ledger, "receiving_z")
    _require_mixing(ledger, amplitude, sends)
    steps, schedule = ledger.per_epoch("receiving_step"), ledger.per_epoch("sending_schedule")
    noise = ledger.table("sending_noise")
    moved, curve = sensitivity(ledger), curve_of(run, ledger)
    if secure:
        _require_grid(ledger, schedule, amplitude, noise)
        moved = _as_computed(ledger, moved)
    return "tier 1", curve.with_rounding(_times(moved, np.sqrt(exposed(steps, schedule, z, amplitude, noise, sends))))


def _require_grid(ledger: Ledger, schedule: FloatArray, amplitude: FloatArray, noise: FloatArray) -> None:
    """The grid of every epoch and node is the one of its noise, and the sampler is the one that is counted."""
    if ledger.number("sampler_error") != discrete.SAMPLER_ERROR:
        ledger.refuse(f"was written with another sampler: its error is {ledger.number('sampler_error'):g}")
    spacing, limit = _above_zero(ledger, "sending_spacing"), ledger.table("receiving_limit")
    fine = 2.0**discrete.FINENESS
    for first in range(0, ledger.epochs, _CHUNK):
        here = np.arange(first, min(first + _CHUNK, ledger.epochs))
        steps, following = at(spacing, here), at(spacing, np.minimum(here + 1, ledger.epochs - 1))
        with np.errstate(all="ignore"):
            std = schedule[here, None] * at(noise, here) / (at(amplitude, here) * steps)
        within = (std >= fine * (1 - TOLERANCE)) & (std <= 2 * fine * (1 + TOLERANCE))
        if not (within & (np.frexp(steps)[0] == 0.5)).all():
            ledger.refuse("has a sending_spacing that is not the grid of its noise")
        sent_later = here < ledger.epochs - 1  # what follows the last epoch stays on the node
        if not np.array_equal(at(limit, here)[sent_later], discrete.MAX_STEPS * following[sent_later]):
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
    ledger.require_tables("sending_noise", "receiving_step", "receiving_newest")
    for name in ("receiving_step", "receiving_newest"):
        ledger.per_epoch(name)
    ledger.per_node("power")
    rho = np.sqrt(np.sum(ledger.table("sending_noise") ** 2, axis=1, keepdims=True))
    one, always = np.ones((1, 1)), np.ones(ledger.epochs)
    return "trusted server", _times(sensitivity(ledger), np.sqrt(exposed(always, always, one, one, rho)))


def _in_silence(run: Result, ledger: Ledger) -> tuple[Tier, FloatArray]:
    """Everybody alone: nothing is sent, and what is published is where all started."""
    ledger.text("medium", ("Silence",))
    ledger.require_tables("receiving_step")
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
        if "batch" in ledger.data.attrs and (examples != ledger.number("batch")).any():
            ledger.refuse("averages gradients over other numbers of examples than its batch")
        found = found / examples
    held = ledger.per_node("sensitivity")
    if not np.allclose(held, found, rtol=TOLERANCE, atol=0):
        node = int(np.argmax(np.abs(held - found)))
        ledger.refuse(f"has sensitivity {held[node]:.6g} of node {node}, and clip and unit make it {found[node]:.6g}")
    return np.full(ledger.nodes, np.inf) if clipping == "none" else found


def _require_mixing(ledger: Ledger, amplitude: FloatArray, sends: FloatArray | None) -> None:
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
    return np.where(mu > LARGEST_NUMBER, np.inf, mu)


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
        found.append(
            f'of the {count} seeds of "{ledger.run}" one, named before the run, is released; all of them, or the best, '
            f"cost sqrt({count}) times its mu"
        )
    return tuple(found)
