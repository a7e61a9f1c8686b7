"""What an audit found, and in which words it says so: nothing that it did not look at passes as looked at."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm

from murmurcast._display import html_of
from murmurcast.audits.attack import FALSE_POSITIVE_RATES, Attack, Promise
from murmurcast.audits.clipping import Clipped
from murmurcast.audits.noise_checks import Check
from murmurcast.privacy.rounding import at_least, at_most

NOTE = "an audit can refute a promise, not prove it: what it did not try may still leak"
Verdict = Literal["not falsified", "FALSIFIED", "nothing is promised"]
_MAX_NAMED = 8  # nodes that a line names one by one


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """What attacks on a system and a look at its noise showed. All of it holds together with the confidence.

    Attributes:
        algorithm: Its name.
        unit: What is promised to be hidden.
        nodes: How many there are.
        runs: How many were made.
        canaries: How many in each run, at each target.
        delta: At which every epsilon is meant.
        confidence: Of all bounds and checks together.
        promises: What is promised to every target, that with the largest mu first.
        attacks: What every adversary showed of every target.
        checks: What the auditor saw of the noise; empty where no noise is promised.
        cut_caught: The largest share of its std to which noise may be cut, at one node in one epoch, and is caught by
            the checks at power 0.9; 0 without checks.
        hostile: What hostile data did to gradients.
        unseen: Where the audit could not look, in words.
        warnings: What was asked for and not done.
        weaker: What is promised besides, against weaker adversaries, of the target to which most is.
    """

    algorithm: str
    unit: str
    nodes: int
    runs: int
    canaries: int
    delta: float
    confidence: float
    promises: tuple[Promise, ...]
    attacks: tuple[Attack, ...]
    checks: tuple[Check, ...]
    cut_caught: float
    hostile: Clipped
    unseen: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    weaker: tuple[Promise, ...] = ()

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def targets(self) -> tuple[int, ...]:
        """The nodes under attack."""
        return tuple(sorted(promise.target for promise in self.promises))

    @property
    def worst(self) -> Promise:
        """The promise with the largest mu."""
        return self.promises[0]

    @property
    def mu_promised(self) -> float:
        """The largest of all targets."""
        return self.worst.mu

    @property
    def clip(self) -> float | None:
        """Largest change by hostile data, as a share of the sensitivity; None where it could not be tried."""
        return self.hostile.share

    @property
    def true_positives_allowed(self) -> tuple[float, ...]:
        """The largest rates that the largest promise allows at `FALSE_POSITIVE_RATES`."""
        return tuple(float(norm.cdf(norm.ppf(rate) + self.mu_promised)) for rate in FALSE_POSITIVE_RATES)

    @property
    def strongest(self) -> tuple[Attack, ...]:
        """For every adversary what it showed of the target of which it showed most, as a share of what it may."""
        best: dict[str, Attack] = {}
        for attack in self.attacks:
            word, _, _ = attack.adversary.partition(" ")
            name = word if word in ("receiver", "receivers") else attack.adversary
            if name not in best or attack.excess > best[name].excess:
                best[name] = attack
        return tuple(best.values())

    @property
    def falsified_by(self) -> tuple[str, ...]:
        """Everything that contradicts the promise."""
        if not np.isfinite(self.mu_promised):
            return ()
        targets: dict[str, list[int]] = {}
        for attack in self.attacks:
            if attack.refutes:
                targets.setdefault(attack.adversary, []).append(attack.target)
        said = [f"{who} about {self._named(whom)}" for who, whom in targets.items()]
        checked = [f"a check of {check.name}: {check.worst}" for check in self.checks if check.refutes]
        clipped = ["hostile data"] if self.hostile.refutes else []
        return (*checked, *clipped, *said)

    @property
    def verdict(self) -> Verdict:
        """Whether the promise stands."""
        if not np.isfinite(self.mu_promised):
            return "nothing is promised"
        return "FALSIFIED" if self.falsified_by else "not falsified"

    @property
    def caught_from(self) -> float:
        """The largest share of the noise's std that would have been caught at any target, with power 0.9."""
        by_target: dict[int, float] = {}
        for attack in self.attacks:
            by_target[attack.target] = max(by_target.get(attack.target, 0.0), attack.caught_from)
        return max(self.cut_caught, min(by_target.values()))

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """(heading, line) of what was found."""
        lines = [("Verdict", self._verdict_in_words())]
        if self.verdict == "not falsified":
            lines.append(("Power", self._power_in_words()))
        lines += [("Noise", self._noise_in_words())] if self.checks else []
        return (*lines, ("Clip", self.hostile.in_words))

    def _verdict_in_words(self) -> str:
        if self.verdict == "nothing is promised":
            most = max(self.attacks, key=lambda attack: attack.epsilon)
            of = f"{most.adversary} shows epsilon {at_least(most.epsilon, 3)} or more of node {most.target}"
            return f"nothing is promised, and {of}"
        promised = f"the certified epsilon {at_most(self.worst.epsilon)} (mu {at_most(self.mu_promised)})"
        if self.worst.share < 1:
            promised += f" of changes of this size; of the largest change it is {at_most(self.worst.epsilon_whole)}"
        promised += "".join(f", or {at_most(one.epsilon)} against an {one.against}" for one in self.weaker)
        if self.verdict == "FALSIFIED":
            return f"FALSIFIED by {'; by '.join(self.falsified_by)}. It does not keep {promised}"
        seen = f"not falsified: nobody shows more of {self._named(self.targets)} than {promised}"
        return f"{seen}. NOT LOOKED AT: {'; '.join(self.unseen)}" if self.unseen else seen

    def _power_in_words(self) -> str:
        if not self.caught_from:
            return "no cut in noise would have been caught; more runs give more power"
        where = f"at {self._named(self.targets)}"
        if len(self.targets) > 1:
            whole = len(self.targets) == self.nodes
            where = "at any one node" if whole else f"at any one of {self._named(self.targets)}"
        when = "even in a single epoch" if self.caught_from == self.cut_caught else "in all epochs"
        cut = f"noise cut to {self.caught_from:.0%} of its std or less {where}, {when},"
        return f"{cut} would have been caught, at power 0.9"

    def _noise_in_words(self) -> str:
        bad = [check.name for check in self.checks if check.refutes]
        tests = sum(check.tests for check in self.checks)
        looked = ", ".join(check.name for check in self.checks if check.tests)
        return f"NOT as claimed: {', '.join(bad)}" if bad else f"as claimed in {tests:,} tests ({looked})"

    def _named(self, nodes: "tuple[int, ...] | list[int]") -> str:
        """Nodes in words."""
        if len(nodes) == self.nodes:
            return "all nodes"
        if len(nodes) > _MAX_NAMED:
            return f"{len(nodes)} of {self.nodes} nodes"
        return f"node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"


def in_words(report: Audit) -> str:
    """What was attacked, in a line."""
    runs = f"{report.runs} run{'s' if report.runs > 1 else ''}"
    share = min(promise.share for promise in report.promises)
    size = "the largest change" if share == 1 else f"{share:.3g} of the largest change"
    whom = "every node" if len(report.targets) == report.nodes else f"node {', '.join(map(str, report.targets))}"
    return (
        f"{report.algorithm}, {whom}, unit {report.unit}; {runs} with {report.canaries} canaries at each, of {size} "
        f"that one {report.unit} can make"
    )


def sure(report: Audit) -> str:
    """How sure it is, as a percentage."""
    return f"{100 * report.confidence:.6g}%"
