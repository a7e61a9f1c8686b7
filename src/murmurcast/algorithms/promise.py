"""Whether a number is promised at all: the one place that plans, runs and their ledgers ask.

A number is a promise only where an account was proved for what is sent, and where something bounds how far one unit's
data can move it. Else it is nominal: what a formula gives under conditions that nobody enforces.
"""

from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, counting_first_releases
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import Releases
from murmurcast.problems.trust import Clipped, why_not_bounded

OF_A_PROMISE = "promised_mu_against_"
_ROUNDING = 1e-9  # relative: two ways of adding up the same terms


def why_nothing(algorithm: Algorithm, problem: Clipped) -> str:
    """What stands between a run and a promise; empty where something is promised."""
    name = algorithm.name
    if not algorithm.releases:
        method = registry.find(name) if name in registry.NAMES else None
        return (method.reason or method.otherwise if method else "") or "it brings no account of what it releases"
    if algorithm.has_lost_its_proof:
        return "its setup, its init or a part of its rounds is not the one that its promise was proved for"
    if name in registry.NAMES and not algorithm.is_as_proved:
        return f"it goes by the name of {name} and answers for itself; give it a name and an account of its own"
    if not any(part.ratio.any() for part in algorithm.releases):
        return ""
    return why_not_bounded(problem, algorithm.setup.budget.unit)


def promise_to(part: Releases) -> str:
    """What a ledger calls the mu that is promised against a weaker adversary."""
    return f"{OF_A_PROMISE}{part.against.replace(' ', '_')}"


def in_words(part: Releases, unit: str) -> tuple[str, str]:
    """What stands behind a number about releases, and what must be said in one breath with it; "" for a certificate."""
    bound = ", by the discrete Gaussian's bound" if part.law.name == "discrete gaussian" else ""
    if part.law.name == "none":
        return "nothing is sent, and nothing published", "nothing sent"
    if part.against == "everybody":
        return f"certificate, unit {unit}, against everybody{bound}", ""
    if part.against == "trusted server":
        return f"unit {unit}, if the server is trusted", "trusted server"
    return f"unit {unit}, against an {part.against} only{bound}", part.against


def why_not_certified(algorithm: Algorithm) -> str:
    """Why the number of the plan that an algorithm carries out is no certificate of its runs; empty where it is one.

    A certificate holds against everybody, and a run may not cost more than its plan says.
    """
    plan = algorithm.plan
    reason = why_nothing(algorithm, plan.problem)
    if reason:
        return reason
    strongest = counting_first_releases(algorithm).releases[0]
    if strongest.law.name == "none":
        return f"{algorithm.name} sends nothing, and publishes nothing"
    if strongest.against != "everybody":
        return f"what {algorithm.name} promises is not against everybody, but: {strongest.against}"
    if (mu_of(strongest) > plan.certificate.mu * (1 + _ROUNDING)).any():
        return f"{algorithm.name} costs more against everybody than this plan says"
    return ""
