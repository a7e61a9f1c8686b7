"""What finished runs cost together, and whether that was promised.

Every run is recomputed from its ledger: `murmurcast.certificates.recompute`. Several runs on the same data compose:
mu_j^2 is the sum of the runs'. Where one of them has secure noise, epsilon is by the bound of concentrated DP, which
holds for Gaussian noise with the same mu too.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._display import html_of
from murmurcast.algorithms.method import Method
from murmurcast.certificates.data import require_maps_free_of_data
from murmurcast.certificates.read import data_of
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt
from murmurcast.certificates.recompute import RunAccount, Tier, account_of
from murmurcast.errors import Error
from murmurcast.planning.warnings import without_meaning
from murmurcast.privacy import settings_chosen
from murmurcast.privacy.best_guess import best_guess
from murmurcast.privacy.certificate import unit_in_words
from murmurcast.privacy.conversion import EXACT, Curve, joined, note
from murmurcast.runs.result import Result, listed

Verdict = Literal["kept", "broken", "nothing is promised"]
_ADVERSARY: dict[Tier, str] = {
    "eavesdropper and one node": "an eavesdropper who hears every antenna, together with one of the nodes",
    "eavesdropper": "an eavesdropper who hears every antenna, and nobody of the network",
    "tier 1": "everybody else together: hears every antenna, knows all other data and noise, sees all published models",
    "trusted server": "everybody but the server, who is trusted with the sum of gradients and draws the noise",
    "nothing sent": "everybody",
    "none": "nobody",
}
_IN_SHORT: dict[Tier, str] = {
    "tier 1": "certificate, against everybody",
    "eavesdropper and one node": "against an eavesdropper and one node only",
    "eavesdropper": "against an eavesdropper only",
    "trusted server": "if the server is trusted",
    "nothing sent": "nothing is sent, and nothing published",
    "none": "nothing is promised",
}
_ON_A_GRID = (
    "certificate by the discrete Gaussian's bound, against everybody: mu_j = (sum over t < T of (S_j gamma_t / (z_jj,t "
    "s_j,t+1))^2)^(1/2) + 2^-25 (m (T - 1))^(1/2) for rounding, rho_j = mu_j^2 / 2 of concentrated DP"
)
_WEAKEST: tuple[Tier, ...] = (
    "none",
    "trusted server",
    "eavesdropper",
    "eavesdropper and one node",
    "tier 1",
    "nothing sent",
)


class Certified(NamedTuple):
    """What runs really cost every node, and whether that was promised. Only "tier 1" is a certificate.

    Attributes:
        tier: What stands behind the numbers: "tier 1" (the certificate), a weaker adversary ("eavesdropper and one
            node", "eavesdropper", "trusted server"), "nothing sent" or "none".
        unit: What is hidden: a whole "node", or one "record" of it, or several of one person.
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
        weaker: Of one run alone, (adversary, [nodes] epsilon) of what is promised against weaker adversaries besides.
        settings_chosen: How clip, steps, epochs and noise were chosen, as the runs state.
        best_guess: [nodes] the best chance of guessing right whether one unit's data was used; a coin has 1/2.
        warnings: What the runs leave open about their settings, and what takes the meaning from the numbers.
        records_per_person: How many records are hidden together.
        not_compared: What must be taken on trust besides, because nothing was at hand to compare it with.
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
    weaker: tuple[tuple[str, FloatArray], ...] = ()
    settings_chosen: str = settings_chosen.NOT_STATED
    best_guess: FloatArray = np.ones(0)
    warnings: tuple[str, ...] = ()
    records_per_person: int = 1
    not_compared: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def hidden(self) -> str:
        """What is hidden, in words."""
        return unit_in_words(self.unit, self.records_per_person)


def certify(
    runs: Result | Sequence[Result],
    delta: float | None = None,
    methods: Sequence[Method] = (),
    rebuild: Rebuild = not_rebuilt,
) -> Certified:
    """Recomputes what runs cost from their ledgers, and compares it with what they promised.

    Args:
        runs: One run, or several on the same data by the same nodes, which compose.
        delta: Failure probability for epsilon; by default the runs'.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
        rebuild: Makes a run's plan anew from its experiment, to compare every table with it; `murmurcast.certify` does.

    Guarantees:
        Unit: the ledger's; record level only with gradients at the public mixed point.
        Adversary: everybody else together (tier 1), or everybody but the server (trusted server).
        Formula: see the module; for several runs mu_j = sqrt(sum of mu_j^2). What a later run does may depend on what
            earlier ones sent; how many there are and what each costs may not: a total fixed beforehand counts then.
            epsilon is exact at `delta`, or with secure noise the bound of `privacy.discrete`.
        Range: verdict "kept", and the assumptions listed.

    Raises:
        Altered: A ledger is incomplete, out of range, or at odds with itself or with the rest of its run; or a feature
            map that was declared free of data changes with the data.
        Error: Runs that do not compose: other units, other numbers of nodes, the same noise twice.
    """
    together = listed([runs] if isinstance(runs, Result) else runs)
    if delta is not None:
        _check.fraction(delta=delta)
    accounts = [account_of(run, methods, rebuild) for run in together]
    require_maps_free_of_data(together)
    certified = _composed(accounts if _same_data(together) else _wherever_a_record_lies(accounts), delta)
    return certified._replace(records_per_person=_records_per_person(together))


def _composed(accounts: list[RunAccount], delta: float | None) -> Certified:
    """All runs together."""
    _require_alike(accounts)
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
        _require_fresh_noise(accounts)
    # Of a broken promise nothing is left to stand on: its ledger may be the part that is wrong.
    tier = "none" if problems else min((account.tier for account in accounts), key=_WEAKEST.index)
    reasons = [account.reason for account in accounts if account.reason]
    curve = _common(accounts)
    epsilon = curve.epsilon(mu, delta)
    if not problems:
        _require_bounded(epsilon, mu, curve, delta)
    basis = "the promise does not hold" if problems else ": ".join((_formula(accounts, tier), *dict.fromkeys(reasons)))
    together = _adding_up(accounts) if len(accounts) > 1 and not (problems or reasons) else ""
    return Certified(
        tier=tier,
        unit=accounts[0].unit,
        adversary=_ADVERSARY[tier],
        mu=mu,
        epsilon=epsilon,
        delta=delta,
        promised_mu=promised,
        basis=basis + together,
        assumptions=() if problems or reasons else _assumed_of_all(accounts),
        verdict="broken" if problems else "nothing is promised" if reasons else "kept",
        verdicts=tuple(map(_worst, zip(*(account.verdicts for account in accounts), strict=True))),
        problems=problems,
        note=_said_of_all(accounts, kept=not (problems or reasons)),
        weaker=_against_weaker(accounts, delta) if not problems else (),
        settings_chosen="; ".join(dict.fromkeys(account.settings_chosen for account in accounts)),
        best_guess=best_guess(mu, curve, delta),
        warnings=() if problems or reasons else _open_questions(accounts, mu, curve, delta),
        not_compared=tuple(dict.fromkeys(line for account in accounts for line in account.not_compared)),
    )


def _require_bounded(epsilon: FloatArray, mu: FloatArray, curve: Curve, delta: float) -> None:
    """Every cost has an epsilon: the bounds of secure noise and of coins have an end."""
    if not np.isinf(epsilon[np.isfinite(mu)]).any():
        return
    cost, hint = f"mu {mu.max():.4g} at delta {delta:g}", "certify fewer runs together, or choose a larger delta"
    if curve.sampled:
        raise Error(
            f"the bound of records that join by coins says nothing about {cost}: with a probability of "
            f"{curve.overflow:.2g} in all, more join than there is room for, and that takes more than a thousandth of "
            "delta",
            hint=hint,
        )
    raise Error(f"the bound of secure noise says nothing about so large a cost: {cost}", hint=hint)


def _open_questions(accounts: list[RunAccount], mu: FloatArray, curve: Curve, delta: float) -> tuple[str, ...]:
    """What the runs do not state about their settings, and what is too large to protect anybody."""
    names = [account.run for account in accounts]
    asked = (
        settings_chosen.question(account.run, account.settings_chosen, (*names[:place], *names[place + 1 :]))
        for place, account in enumerate(accounts)
    )
    examples = min(account.examples for account in accounts)
    chance = float(best_guess(mu, curve, delta).max())
    return (*filter(None, asked), *without_meaning(chance, delta, accounts[0].unit, examples, len(mu)))


def _formula(accounts: list[RunAccount], tier: Tier) -> str:
    """What stands behind the numbers, in words and symbols."""
    if tier == "tier 1" and any(account.curve.source == "secure" for account in accounts):
        return _ON_A_GRID
    symbols = dict.fromkeys(account.formula for account in accounts if account.formula and tier != "none")
    return ": ".join((_IN_SHORT[tier], *(("; ".join(symbols),) if symbols else ())))


def _adding_up(accounts: list[RunAccount]) -> str:
    if any(account.overlapping for account in accounts):
        return "; for records in all of the runs, wherever they lie: mu^2 = sum over runs of the largest mu_j^2"
    return "; over runs mu_j^2 adds up"


def _against_weaker(accounts: list[RunAccount], delta: float) -> tuple[tuple[str, FloatArray], ...]:
    """Of one run: over several, costs against different adversaries are not added up."""
    if len(accounts) > 1:
        return ()
    return tuple((who, accounts[0].curve.epsilon(mu, delta)) for who, mu in accounts[0].weaker)


def _said_of_all(accounts: list[RunAccount], *, kept: bool) -> str:
    """One transcript for which nothing is claimed spoils the claim for all."""
    if not all(account.curve.source == "secure" for account in accounts):
        return note("seeded")
    return note("secure") if kept else "secure noise, but nothing is claimed for this transcript"


def _common(accounts: list[RunAccount]) -> Curve:
    """For runs together; where a record may lie at other nodes in another run, its coins are not counted on."""
    curves = [account.curve for account in accounts]
    if any(account.overlapping for account in accounts):
        curves = [curve._replace(sampled=()) for curve in curves]
    if not all(np.isfinite(account.mu).all() for account in accounts):
        return EXACT
    return joined(curves, [account.mu for account in accounts])


def _require_alike(accounts: list[RunAccount]) -> None:
    _require_same("units", [account.unit for account in accounts])
    _require_same("numbers of nodes", [len(account.mu) for account in accounts])


def _require_same(name: str, values: Sequence[object]) -> None:
    distinct = set(values)
    if len(distinct) > 1:
        raise Error(
            f"the runs have different {name} ({', '.join(map(str, sorted(distinct, key=str)))})",
            hint="costs add up only for the same unit and the same nodes: name runs that share them",
        )


def _records_per_person(runs: Sequence[Result]) -> int:
    """How many records all runs hide together."""
    counts = [int(run.ledger.attrs.get("records_per_person", 1)) for run in runs]
    _require_same("numbers of records per person", counts)
    return counts[0]


def _same_data(runs: Sequence[Result]) -> bool:
    """As far as experiments tell: what lies at another node, or is another's, does not add up node by node."""
    named = [data for run in runs if (data := data_of(run)) is not None]
    return all(data == named[0] for data in named)


def _wherever_a_record_lies(accounts: list[RunAccount]) -> list[RunAccount]:
    """The same runs where sets may overlap: a record may lie at any node of each, at the one that pays most too.

    So every node is given each run's largest cost. A node's whole data may be spread over all nodes of another run:
    of that nothing follows.
    """
    _require_same("units", [account.unit for account in accounts])
    if accounts[0].unit != "record":
        raise Error(
            "the runs' experiments name different data, or share it out differently: what a node holds in one may be "
            "spread over many nodes of the other, so costs do not add up node by node; records in both pay for both",
            hint="name runs with the same [data]; for unit record, runs on overlapping data do add up",
        )
    most = max(len(account.mu) for account in accounts)

    def everywhere(account: RunAccount) -> RunAccount:
        worst = next(word for word in ("costs more", "costs less", *account.verdicts) if word in account.verdicts)
        return account._replace(
            mu=np.full(most, account.mu.max()),
            promised_mu=np.full(most, account.promised_mu.max()),
            verdicts=(worst,) * most,
            overlapping=True,
        )

    return [everywhere(account) for account in accounts]


def _require_fresh_noise(accounts: list[RunAccount]) -> None:
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


def _assumed_of_all(accounts: list[RunAccount]) -> tuple[str, ...]:
    lines = dict.fromkeys(line for account in accounts for line in account.assumptions)
    if len(accounts) == 1:
        return tuple(lines)
    overlapping = any(account.overlapping for account in accounts)
    return (
        *lines,
        "a record that is in several runs is at one node of each; it pays for all of them"
        if overlapping
        else "all runs are of the same data by the same nodes",
        "how many runs there are and what each costs was fixed before the first; else what was fixed in all counts",
    )


def _worst(words: tuple[str, ...]) -> str:
    return next(word for word in ("costs more", "costs less", "nothing is promised", "kept") if word in words)


def _trouble(account: RunAccount) -> list[str]:
    """A line on the node that is worst off, where there is one."""
    for verdict in ("costs more", "costs less"):
        nodes = [node for node, word in enumerate(account.verdicts) if word == verdict]
        if nodes:
            node = nodes[int(np.argmax(account.mu[nodes] - account.promised_mu[nodes]))]
            costs = f"was promised mu {account.promised_mu[node]:.6g}, and what was sent costs {account.mu[node]:.6g}"
            cause = "" if verdict == "costs more" else ": ledger and promise are not of one run"
            return [f'run "{account.run}": node {node} {costs}{cause}']
    return []
