"""Whether a run holds anything that nobody accounts for: every entry of its ledger has a meaning here.

Where a promise counts on secret coins, so has every metric and every word of run.json: a number that tells who joined,
or how many, would take away what is counted.
"""

from collections.abc import Sequence

from murmurcast.algorithms import registry
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.promise import OF_A_PROMISE, promise_to
from murmurcast.certificates.ledger import Ledger, refuse, said, same
from murmurcast.data.assumptions import DataFacts
from murmurcast.privacy.first_releases import STATISTICS
from murmurcast.privacy.releases import Releases
from murmurcast.runs.result import Result
from murmurcast.runs.validate import RADIO_METRICS, SENDER, SHAPES

ATTRIBUTES = frozenset(
    (
        *("format", "algorithm", "rounds", "start_sha256", "start_gradients", "epochs", "delta", "unit", "clip"),
        *("clipping", "normaliser", "batch", "why_nothing", "noise_source", "law", "dim", "sampler_error"),
        *("records_per_person", "settings_chosen", "stop_after", "planned_epochs", "drops"),
        *("first_releases", "first_rows", "first_seed", "sampling", "room"),
        *DataFacts("none").as_attributes(),
        *("data_features", "data_declared", "data_features_sha256"),
    )
)
VARIABLES = frozenset(
    (
        *("power", "sensitivity", "promised_mu", "promised_epsilon", "promised_best_guess"),
        "examples_per_node",
        *("records_per_node", *(f"{name}_noise" for name in STATISTICS)),
    )
)
ATTRIBUTES_OF_A_ROUND = ("channel", "draws", "gains_at", "radio", "slots", "air_seconds", "hops", "bits")
VARIABLES_OF_A_ROUND = ("sender", "receiver", "gain", "receiver_noise", "joules")
TABLES_OF_A_ROUND = ("sending_", "receiving_")  # which of them a method has, its account says
METRICS = frozenset(
    (
        *("seed", "epoch", "node", SENDER, *SHAPES, *RADIO_METRICS),
        *(f"{model}_{kind}" for model in ("own", "published", "mean") for kind in ("loss", "accuracy", "distance")),
    )
)
WORDS = {  # of run.json, by section
    "": frozenset(
        (
            *("name", "algorithm", "settings", "rounds", "problem", "epochs", "channel_uses_per_epoch", "setup_uses"),
            *("seeds", "precision", "privacy", "versions", "machine", "commit", "start_loss", "seconds"),
            *("data_commitment", "processes"),
        )
    ),
    "problem": frozenset(("kind", "nodes", "dim", "names")),
    "privacy": frozenset(
        (
            *("epsilon", "delta", "unit", "records_per_person", "against", "basis", "caveat", "weaker", "assumptions"),
            *("noise_source", "settings_chosen", "note"),
        )
    ),
    "seconds": frozenset(("compiling", "training", "all")),
    "machine": frozenset(("system", "kind", "cores")),
    "versions": frozenset(("murmurcast", "jax", "jaxlib", "numpy", "scipy", "python")),
    "processes": frozenset(("count", "signals_across")),
}
_MAY_TELL = "may tell of coins that must stay secret"


def require_known(run: Result, ledger: Ledger, methods: Sequence[Method] = ()) -> None:
    """The ledger has no entry but those that a run of its method writes."""
    rounds = ledger.text("rounds").split()
    beside_nothing = _beside_nothing(ledger)
    attributes = (ATTRIBUTES - beside_nothing) | {f"{one}_{name}" for one in rounds for name in ATTRIBUTES_OF_A_ROUND}
    attributes |= _settings(run, ledger, methods)
    variables = (VARIABLES - beside_nothing) | {f"{one}_{name}" for one in rounds for name in VARIABLES_OF_A_ROUND}
    tables = (OF_A_PROMISE, *(f"{one}_{part}" for one in rounds for part in TABLES_OF_A_ROUND))
    for name in sorted(map(str, ledger.data.attrs)):
        if name not in attributes:
            ledger.refuse(f"says its {name[:60]}, which means nothing here")
    for name in sorted(map(str, ledger.data.variables)):
        if name not in variables and not name.startswith(tables):
            ledger.refuse(f"has {name[:60]}, which means nothing here")
        if ledger.data[name].attrs:
            ledger.refuse(f"has words beside {name[:60]}, which mean nothing here")


def require_promises(ledger: Ledger, releases: tuple[Releases, ...]) -> None:
    """The ledger promises what was held against what was sent, and nothing besides."""
    expected = {"promised_mu", *(promise_to(part) for part in releases[1:])}
    if releases and releases[0].law.name == "sampled gaussian":
        expected |= {"promised_epsilon", "promised_best_guess"}
    for name in sorted(map(str, ledger.data.variables)):
        if name.startswith("promised_") and name not in expected:
            ledger.refuse(f"has {name[:60]}, and its releases promise no such thing")
    if releases and ledger.says("why_nothing"):
        ledger.refuse("promises something, and says why nothing is promised")


def _beside_nothing(ledger: Ledger) -> set[str]:
    """Entries that mean something only beside another word, which this ledger does not say."""
    released = str(ledger.data.attrs.get("first_releases", "")).split()
    names = {f"{name}_noise" for name in STATISTICS if name not in released}
    names |= set() if released else {"first_rows", "first_seed"}
    names |= set() if ledger.says("sampling") else {"room"}
    names |= set() if released or ledger.says("sampling") else {"records_per_node"}
    return names if ledger.noise_source == "secure" else names | {"dim", "sampler_error"}


def require_coins_unseen(run: Result, ledger: Ledger) -> None:
    """Beside secret coins nothing is written that has no meaning here: neither in metrics nor in run.json."""
    if ledger.text("law") != "sampled gaussian":
        return
    _require_metrics_known(run, ledger)
    for section, known in WORDS.items():
        words = run.info.get(section, {}) if section else run.info
        if not isinstance(words, dict):
            refuse(ledger.run, f"run.json says its {section} in other words than a run, which {_MAY_TELL}")
        for name in sorted(map(str, words)):
            if name not in known:
                place = f"{section}.{name}" if section else name
                refuse(ledger.run, f"run.json says its {place[:60]}, which {_MAY_TELL}")
    if not all(isinstance(one, int) and one >= 0 for one in run.info.get("processes", {}).values()):
        refuse(ledger.run, f"run.json says of its processes what is not a count, which {_MAY_TELL}")


def _require_metrics_known(run: Result, ledger: Ledger) -> None:
    for name in sorted(map(str, run.metrics.variables)):
        if name not in METRICS:
            refuse(ledger.run, f"the metrics have {name[:60]}, which {_MAY_TELL}")
        if run.metrics[name].attrs:
            refuse(ledger.run, f"the metrics have words beside {name}, which {_MAY_TELL}")
    for name in sorted(map(str, run.metrics.attrs)):
        if name != "algorithm" or not same(run.metrics.attrs[name], ledger.text("algorithm")):
            refuse(ledger.run, f"the metrics say their {name[:60]}, which {_MAY_TELL}")


def _settings(run: Result, ledger: Ledger, methods: Sequence[Method]) -> set[str]:
    """What a method of the house has for options; what one of somebody's own says are its settings."""
    name = ledger.text("algorithm")
    if name in registry.NAMES and all(method.name != name for method in methods):
        return {option.name for option in registry.find(name).options}
    named = said(run, "settings")
    return set(map(str, named)) if isinstance(named, dict) else set()
