"""Honest runs of every private method: nobody is accused, and attacks come near to what is promised.

Quick: one of every kind. Slow: all of them, of nodes and of records, several times.
"""

from typing import Any

import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.noiseless import noiseless
from murmurcast.algorithms.observed import system_of
from murmurcast.audits.audit import audit
from murmurcast.audits.claims import carries_out, claim, takes_private_gradients
from murmurcast.audits.laplace_readings import as_normal, clipped, variance_as_normal
from murmurcast.privacy.conversion import mu_of
from murmurcast.problems.base import Problem
from tests.audits import methods
from tests.audits.systems import attacked, audits, bowls, claimed, claimed_of_records, falsified_by, softmax

RUNS, MANY = 150, 10
QUICK = ("dp-dsgd, slots",)
LEAST = {"row-stochastic-laplace": 0.45}  # of the promise, which Laplace noise cannot reach: at most 0.8
MEMORIES = ("mped2fl", "ped2fl", "dwfl")  # whose promise about records counts on the clip alone


@pytest.mark.parametrize(
    "variant",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in methods.VARIANTS],
)
@pytest.mark.slow
def test_an_audit_comes_near_to_the_promise_and_not_above(variant: str) -> None:
    report = audit(methods.of_nodes(variant), bowls(5), runs=RUNS)
    assert (report.verdict, report.targets) == ("not falsified", (0, 1, 2, 3, 4))
    shares = [attack.mu / attack.mu_promised for attack in report.attacks]
    assert LEAST.get(variant, 0.6) < max(shares) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("variant", methods.VARIANTS)
def test_records_are_audited_too(variant: str) -> None:
    report = audit(methods.of_records(variant), softmax(), runs=RUNS)
    assert report.verdict == "not falsified"
    if variant not in MEMORIES:
        assert max(attack.mu / attack.mu_promised for attack in report.attacks) > LEAST.get(variant, 0.55)


@pytest.mark.slow
@pytest.mark.parametrize("variant", methods.VARIANTS)
def test_honest_methods_are_accused_of_nothing(variant: str) -> None:
    systems: tuple[tuple[Algorithm, Problem], ...] = (
        (methods.of_nodes(variant), bowls(5)),
        (methods.of_records(variant), softmax()),
    )
    for algorithm, problem in systems:
        gathered = attacked(algorithm, algorithm, problem, MANY * RUNS, seed=500)
        for part in audits(gathered, RUNS):
            assert falsified_by(part, algorithm) == set()


@pytest.mark.parametrize("variant", methods.VARIANTS)
def test_what_functions_claim_is_what_releases_promise(variant: str) -> None:
    """The best attack by noise and shifts as asked of send and update has the mu of the account, node by node."""
    algorithm = methods.of_nodes(variant)
    claims = claim(algorithm, np.arange(5), algorithm.setup.sensitivity)
    promised = mu_of(algorithm.releases[0]) * (np.sqrt(2 / np.pi) if claims.law == "laplace" else 1.0)
    reached = np.linalg.norm(claims.shift, axis=(1, 2)) * (np.sqrt(2) if claims.law == "laplace" else 1.0)
    np.testing.assert_allclose(reached, promised, rtol=1e-9)
    assert np.abs(claims.published_shift).max() < 1e-12


@pytest.mark.parametrize("variant", methods.VARIANTS)
def test_where_gradients_are_taken_is_asked_of_functions(variant: str) -> None:
    assert takes_private_gradients(methods.of_nodes(variant)) == (variant in MEMORIES)


def test_only_algorithm_1_is_taken_for_algorithm_1() -> None:
    """Receivers filter by the plan: whoever carries out something else must not be filtered so."""
    for algorithm in (claimed(), claimed_of_records(), noiseless(claimed().plan)):
        nodes = np.arange(algorithm.plan.network.nodes)
        assert carries_out(algorithm, system_of(algorithm.plan), claim(algorithm, nodes, np.ones(len(nodes))))
    for variant in ("ped2fl", "power-controlled-diffusion"):
        other = methods.of_nodes(variant)
        claims = claim(other, np.arange(5), np.ones(5))
        assert not carries_out(other, system_of(other.plan), claims)


@pytest.mark.slow
def test_a_promise_for_every_adversary_is_shown() -> None:
    report = audit(methods.of_nodes("decor"), bowls(5), runs=20)
    assert [promise.against for promise in report.weaker] == ["eavesdropper and one node", "eavesdropper"]
    assert report.weaker[-1].epsilon == pytest.approx(methods.EPSILON, rel=1e-6)
    assert report.worst.epsilon > methods.EPSILON
    assert "2 against an eavesdropper" in dict(report.summary)["Verdict"]
    limits: dict[str, set[float]] = {}
    for attack in report.attacks:
        limits.setdefault(attack.adversary.partition(" and ")[0], set()).add(attack.mu_promised)
    assert max(limits["eavesdropper"]) < max(limits["everybody"])


def test_laplace_readings_have_the_moments_they_are_said_to_have() -> None:
    rng, shift = np.random.default_rng(1), np.array([0.05, -0.6, 2.5, 0.0])
    noise: Any = rng.laplace(scale=np.sqrt(0.5), size=(4, 200, 1000))
    assert as_normal(noise).var() == pytest.approx(1.0, abs=0.01)
    assert variance_as_normal(1.0) == pytest.approx(1.0, abs=1e-3)
    assert as_normal(0.7 * noise).var() == pytest.approx(variance_as_normal(0.7), abs=0.01)
    above, moved = clipped(noise + shift[:, None, None] / 2, shift)
    below, _ = clipped(noise - shift[:, None, None] / 2, shift)
    np.testing.assert_allclose(above.mean(axis=(1, 2)) - below.mean(axis=(1, 2)), moved, atol=0.02)
    np.testing.assert_allclose(above.var(axis=(1, 2)), 1.0, atol=0.02)
    # Of a small shift, twice the information that its mean has.
    assert moved[0] == pytest.approx(np.sqrt(2) * shift[0], rel=0.05)
