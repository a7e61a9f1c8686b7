"""What one finished run cost every node, recomputed from its ledger, beside what it promised.

The plan that made a run is not asked. The method's own account makes releases of the ledger, which holds every constant
that the engine was given; what they come to is said by `murmurcast.privacy.conversion`. Under Algorithm 1

    mu_j^2 = sum_{t=1}^{T-1} ( S_j gamma_t / (z_jj,t s_j,t+1) )^2,      s_j,t = noise_j,t schedule_t / amplitude_j,t
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.account import TOLERANCE, records_per_person
from murmurcast.algorithms.data_account import mu_before
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.promise import in_words, promise_to
from murmurcast.certificates.data import assumed_of_data
from murmurcast.certificates.known import require_coins_unseen, require_known, require_promises
from murmurcast.certificates.ledger import LARGEST_NUMBER, Ledger, refuse, said
from murmurcast.certificates.power import power_sent, require_noise_sent, require_silence
from murmurcast.certificates.radio import is_over_radio, require_radio
from murmurcast.certificates.read import SAMPLED_TOLERANCE, curve_of, read, require_epsilon
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt, require_as_rebuilt
from murmurcast.errors import Altered, Error
from murmurcast.privacy import conversion
from murmurcast.privacy.best_guess import best_guess
from murmurcast.privacy.certificate import COINS, PLAIN_BOUND, unit_in_words
from murmurcast.privacy.conversion import Curve, after
from murmurcast.privacy.releases import Releases
from murmurcast.privacy.settings_chosen import NOT_STATED, assumption
from murmurcast.runs.result import Result, hash_of_start

Tier = Literal["tier 1", "eavesdropper and one node", "eavesdropper", "trusted server", "nothing sent", "none"]

_CLIPPED = {  # what a ledger's word for it means
    "node": "each node's",
    "example": "each example's",
    "layer": "each example's, layer by layer, together",
    "none": "none's",
}


class RunAccount(NamedTuple):
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
        formula: What the method's account comes to, in symbols.
        weaker: (adversary, [nodes] mu) of what is promised against weaker adversaries besides, recomputed.
        not_compared: What must be taken on trust because nothing was at hand to compare it with.
        overlapping: Whether every node has been given the cost of the one that pays most, because runs share records.
        settings_chosen: How clip, steps, epochs and noise were chosen, as the run states.
        examples: The fewest records of a node by which it averages; 0 where the ledger does not say.
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
    formula: str = ""
    weaker: tuple[tuple[str, FloatArray], ...] = ()
    not_compared: tuple[str, ...] = ()
    overlapping: bool = False
    settings_chosen: str = NOT_STATED
    examples: float = 0.0


def account_of(run: Result, methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt) -> RunAccount:
    """What one run costs every node, from its ledger, beside what it promised; then all that can be compared with it.

    Args:
        run: The run.
        methods: Methods of your own whose accounts may be asked, besides those of the house.
        rebuild: Makes the run's plan anew from its experiment, a second check beside the ledger's own tables.
    """
    ledger = read(run)
    account = _from_tables(run, ledger, methods)
    sizes = ledger.per_node("examples_per_node") if ledger.has("examples_per_node") else np.zeros(1)
    account = account._replace(settings_chosen=ledger.settings_chosen, examples=float(sizes.min()))
    if not {"costs more", "costs less"}.isdisjoint(account.verdicts):  # there is nothing worse to say of it
        return account
    require_known(run, ledger, methods)
    require_coins_unseen(run, ledger)
    if account.reason:
        return account
    method = _method(ledger, methods)
    if not method.sends:
        require_silence(run, ledger)
    elif method.noise_sent is not None:
        require_noise_sent(run, ledger, method.noise_sent)
    if is_over_radio(ledger):
        dim, uses = int(np.prod(run.published.shape[2:])), np.asarray(run.metrics["channel_uses"], np.float64)
        require_radio(ledger, dim, power_sent(run, ledger), uses)
    rebuilt = rebuild(run)
    require_as_rebuilt(run, ledger, rebuilt)
    return account._replace(not_compared=rebuilt.not_compared)


def _from_tables(run: Result, ledger: Ledger, methods: Sequence[Method]) -> RunAccount:
    """From the ledger's tables alone."""
    promised = ledger.per_node("promised_mu", infinite=True)
    unit, delta, curve = ledger.text("unit"), ledger.number("delta"), curve_of(run, ledger)
    is_sampled = ledger.text("law") == "sampled gaussian" and bool(np.isfinite(promised).all())
    if not is_sampled:
        require_epsilon(run, ledger, promised, curve)
    if np.isinf(promised).any():
        if not np.isinf(promised).all():
            ledger.refuse("promises something to some nodes only")
        _require_quoted(run, ledger, ())
        words = ("nothing is promised",) * ledger.nodes
        reason = _why_nothing(ledger, methods)
        return RunAccount(ledger.run, "none", unit, delta, promised, promised, words, reason, (), curve)
    releases = _recomputed(run, ledger, methods)
    if not releases:  # a promise that nothing stands behind
        costs = np.full(ledger.nodes, np.inf)
        words = ("costs more",) * ledger.nodes
        return RunAccount(ledger.run, "none", unit, delta, costs, promised, words, "", (), curve)
    curve = conversion.curve_of(releases[0]) if is_sampled else curve
    tier, mu = _tier(releases[0]), _mu(releases[0])
    verdicts = tuple(_judged(*pair) for pair in zip(mu.tolist(), promised.tolist(), strict=True))
    weaker = _weaker(ledger, releases[1:])
    if set(verdicts) == {"kept"}:  # else there are worse things to say of it
        require_epsilon(run, ledger, promised, curve)
        if is_sampled:
            _require_of_releases(ledger, "promised_epsilon", curve.epsilon(promised, delta))
            _require_of_releases(ledger, "promised_best_guess", best_guess(promised, curve, delta))
        _require_quoted(run, ledger, releases)
    # Secure noise is fresh whatever the seed.
    seeded = tier != "nothing sent" and curve.source == "seeded"
    # The noise of first releases has a seed too.
    seeds = (*run.info["seeds"], *_first_seed(ledger, run.info["seeds"])) if seeded else ()
    assumed = _assumed(run, ledger, tier)
    formula = _formula(_method(ledger, methods), ledger)
    return RunAccount(ledger.run, tier, unit, delta, mu, promised, verdicts, "", assumed, curve, seeds, formula, weaker)


def _formula(method: Method, ledger: Ledger) -> str:
    """The method's, with what was released before training, and how epsilon follows where mu does not give it."""
    formula = method.formula
    if ledger.says("first_releases"):
        words = _first_in_words(ledger)
        formula += f", plus (how far one record moves it / its noise)^2 of the {words} released before training"
    if ledger.text("law") == "sampled gaussian":
        formula += (
            "; that is without the coins: with them, for one record replaced, epsilon comes from the privacy loss "
            "distributions of sampled Gaussian noise, composed over epochs, the larger of both directions"
        )
    return formula


def _recomputed(run: Result, ledger: Ledger, methods: Sequence[Method]) -> tuple[Releases, ...]:
    method = _method(ledger, methods)
    if ledger.noise_source == "secure" and not method.secure:
        ledger.refuse(f'has secure noise, and is of the algorithm "{method.name}", which has none')
    if ledger.noise_source == "secure" and len(run.published) > 1:
        ledger.refuse(f"has secure noise and {len(run.published)} seeds, which are so many runs on the same data")
    releases = _accounted(ledger, method)
    if releases and releases[0].law.name != ledger.text("law"):
        ledger.refuse(f"says that its law is {ledger.text('law')}, and what was sent has {releases[0].law.name}")
    if releases and not method.sends and _has_moved(run, ledger):
        ledger.refuse("says that nothing is published, and the published models are not those of the start")
    return releases


def _accounted(ledger: Ledger, method: Method) -> tuple[Releases, ...]:
    """The releases of training, and what was released before it; () where the method has no account."""
    if isinstance(method.account, str):
        return ()
    before = mu_before(ledger)
    try:
        return tuple(after(before, part) for part in method.account(ledger))
    except Altered:
        raise
    except Error as problem:
        ledger.refuse(f"is not that of a run of {method.name}: {problem}")


def _has_moved(run: Result, ledger: Ledger) -> bool:
    """Whether published models are not where all started, as the ledger has it by its hash."""
    alike = not (run.published != run.published[:, :1]).any()
    return hash_of_start(run.published[:, 0] if alike else run.published) != ledger.text("start_sha256")


def _method(ledger: Ledger, methods: Sequence[Method]) -> Method:
    name = ledger.text("algorithm")
    for method in methods:
        if method.name == name:
            return method
    if name not in registry.NAMES:  # code that a folder names is not run
        ledger.refuse(
            f'is of the algorithm "{name}", for which no rule is known here: its promise cannot be checked; if '
            "it is your own, name it: murmurcast certify RUN --method package.module:name"
        )
    return registry.find(name)


def _mu(releases: Releases) -> FloatArray:
    mu = conversion.mu_of(releases)
    return np.where(mu > LARGEST_NUMBER, np.inf, mu)


def _tier(releases: Releases) -> Tier:
    if releases.law.name == "none":
        return "nothing sent"
    return "tier 1" if releases.against == "everybody" else releases.against


def _weaker(ledger: Ledger, releases: tuple[Releases, ...]) -> tuple[tuple[str, FloatArray], ...]:
    """What is promised against weaker adversaries, each held against its own promise."""
    costs = []
    for part in releases:
        mu = _mu(part)
        promised = ledger.per_node(promise_to(part))
        if not np.allclose(mu, promised, rtol=TOLERANCE, atol=0):
            node = int(np.argmax(np.abs(mu - promised)))
            ledger.refuse(
                f"promises mu {promised[node]:.6g} against an {part.against}, and what was sent costs {mu[node]:.6g}"
            )
        costs.append((str(part.against), mu))
    return tuple(costs)


def _require_of_releases(ledger: Ledger, name: str, expected: FloatArray) -> None:
    """What the ledger says of every node, where it is not a function of mu alone, is that of its releases."""
    if not np.allclose(ledger.per_node(name), expected, rtol=SAMPLED_TOLERANCE, atol=0):
        ledger.refuse(f"has a {name} that is not what its releases come to")


def _require_quoted(run: Result, ledger: Ledger, releases: tuple[Releases, ...]) -> None:
    """What run.json says of its promise is that of what was sent: against whom, on what basis, what besides.

    It is what people read beside the number; where nothing was released, nothing may be quoted.
    """
    require_promises(ledger, releases)
    against, expected_against = said(run, "privacy", "against"), releases[0].against if releases else "nobody"
    if against != expected_against:
        refuse(ledger.run, f'run.json says "against {against}", and what was sent is hidden from {expected_against}')
    unit = unit_in_words(ledger.text("unit"), records_per_person(ledger))
    words = {"caveat": ""}
    if releases:
        words = dict(zip(("basis", "caveat"), in_words(releases[0], unit), strict=True))
    elif ledger.says("why_nothing"):
        words |= {"basis": f"{ledger.text('why_nothing')}: nothing is promised"}
    for key, expected_words in words.items():
        if said(run, "privacy", key) != expected_words:
            refuse(ledger.run, f'its {key} is not "{expected_words}" in run.json, as what was sent makes it')
    quoted, delta = said(run, "privacy", "weaker"), ledger.number("delta")
    expected = {str(part.against): float(conversion.epsilon_of(part, delta).max()) for part in releases[1:]}
    try:
        stated = {one["against"]: np.inf if one["epsilon"] is None else float(one["epsilon"]) for one in quoted}
        same = len(quoted) == len(expected) and stated.keys() == expected.keys()
    except (TypeError, KeyError, ValueError):
        same = False
    if not same or not all(np.isclose(stated[who], expected[who], rtol=TOLERANCE, atol=TOLERANCE) for who in expected):
        refuse(ledger.run, "run.json quotes other numbers against weaker adversaries than what was sent comes to")


def _judged(mu: float, promised: float) -> str:
    """One node's verdict. A run costs what it promised; less means that ledger or promise was changed."""
    if not mu <= promised * (1 + TOLERANCE):
        return "costs more"
    return "costs less" if mu < promised * (1 - TOLERANCE) else "kept"


def _why_nothing(ledger: Ledger, methods: Sequence[Method]) -> str:
    if ledger.says("why_nothing"):
        return ledger.text("why_nothing")
    name, clipping = ledger.text("algorithm"), ledger.text("clipping", tuple(_CLIPPED))
    own = next((method for method in methods if method.name == name), None)
    try:
        reason = (own or registry.find(name)).reason if own or name in registry.NAMES else "it brings no account"
    except Error:
        reason = "it brings no account"
    return reason or ("gradients are not clipped" if clipping == "none" else f"{name} makes no promise")


def _assumed(run: Result, ledger: Ledger, tier: Tier) -> tuple[str, ...]:
    """What a ledger cannot show."""
    if tier == "nothing sent":
        return ("the ledger is complete: no model leaves its node",)
    lines = [
        "the ledger is complete and true: nothing else that depends on data leaves a node",
        f"gradients are clipped as it says ({_CLIPPED[ledger.text('clipping', tuple(_CLIPPED))]} to "
        f"{ledger.number('clip'):g})",
        "noise is Gaussian, unpredictable and fresh in every epoch; rounding is not counted"
        if ledger.noise_source == "seeded"
        else "noise is discrete Gaussian on the grid it says, fresh in every epoch, from AES-128 with secret keys; "
        "rounding is counted, for IEEE float64 and sums in any order",
        assumption(ledger.settings_chosen),
        *assumed_of_data(run, ledger),
    ]
    if tier != "trusted server":
        lines.append("own models stay on their nodes; only mixed points, or averages of them, are published")
    if ledger.text("unit") == "record":
        lines.append(_of_a_person(records_per_person(ledger), ledger.noise_source))
    if ledger.says("first_releases"):
        lines.append(
            f"before training every node released once, under noise, its {_first_in_words(ledger)}; rows were cut to "
            "norm 1 for that, and the cost is counted"
        )
    if ledger.says("stop_after"):
        lines.append(f"that it stops after epoch {ledger.epochs} was fixed before the run")
    if ledger.says("drops"):
        lines.append(f"who drops out when was fixed before the run: {ledger.text('drops')}")
    if ledger.text("law") == "sampled gaussian":
        lines.append(COINS)
    elif ledger.says("batch"):
        lines.append(PLAIN_BOUND)
    if len(run.published) > 1:
        count = len(run.published)
        lines.append(
            f'of the {count} seeds of "{ledger.run}" one, named before the run, is released; all of them, or the best, '
            f"cost sqrt({count}) times its mu"
        )
    return tuple(lines)


def _first_seed(ledger: Ledger, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seed of releases before training, where it is not one of the run's."""
    if not ledger.says("first_releases"):
        return ()
    seed = ledger.data.attrs.get("first_seed")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        ledger.refuse("does not say its first_seed")
    return () if int(seed) in seeds else (int(seed),)


def _first_in_words(ledger: Ledger) -> str:
    words = {"centring": "mean row", "whitening": "second moment"}
    return " and ".join(words[name] for name in ledger.text("first_releases").split())


def _of_a_person(records: int, source: str) -> str:
    """Who is hidden behind a record; why it may lie at several nodes is said in `planning.setup.Budget`."""
    if records == 1:
        return "one record is hidden, not a person with many"
    if source == "secure":
        return f"no person has more than {records} records, and all of them are at one node"
    where = "if they lie at several nodes, the cost of the one that pays most holds"
    return f"no person has more than {records} records; {where}"
