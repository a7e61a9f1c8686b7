"""Audits of real runs: honest systems stand, and every way of cutting corners is caught."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from murmurcast.algorithms.base import Again, Draw, Draws
from murmurcast.algorithms.central_dp import central_dp
from murmurcast.algorithms.early_end import with_ends
from murmurcast.algorithms.local_only import local_only
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.noiseless import noiseless
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.adversaries import Gathered, evidence_of
from murmurcast.audits.attack import Attack, Promise
from murmurcast.audits.audit import AuditOptions, audit
from murmurcast.audits.clipping import Clipped
from murmurcast.audits.noise_checks import Check
from murmurcast.audits.verdict import Audit
from murmurcast.data.datasets import logistic
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.privacy.conversion import mu_of
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.softmax import SoftmaxRegression
from tests.audits import faults
from tests.audits.systems import DIM, TARGET, Fault, attacked, attacks, audits, bowls, claimed, planned
from tests.conftest import asymmetric_network

AUDITS, MANY, RUNS = 2, 30, 200  # audits of so many runs each: 30 of 30 caught shows a power above 0.9 at 95 %
FEW = 50  # runs where any number will do: always the same, so that programs are compiled once for all such tests


def power(result: "list[dict[str, Attack]]", limit: float, who: str | None = None) -> float:
    """Share of audits in which somebody, or this adversary, shows more mu than the limit."""
    return float(
        np.mean([any(attack.mu > limit for name, attack in one.items() if who in (None, name)) for one in result])
    )


def judged(gathered: Gathered, limit: float) -> "list[dict[str, Attack]]":
    """What everybody shows of the target, audit by audit."""
    return [attacks(part, limit, seed=seed) for seed, part in enumerate(audits(gathered, RUNS))]


def mu_promised() -> float:
    return float(mu_of(claimed().releases[0])[TARGET])


ONLY_THE_EAVESDROPPER = [
    "eavesdropper",
    "last epoch alone",
    "squares and low bits",
    "published, with the air",
]
HEARING = ("all other receivers", "eavesdropper")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("fault", "finders"),
    [
        (lambda algorithm: faults.noise_at(algorithm, 0.0), (*HEARING, "receiver 3", "published alone")),
        (lambda algorithm: faults.noise_at(algorithm, 0.5), HEARING),
        (faults.own_noise_dropped, HEARING),
        (faults.noise_reused, HEARING),
        (faults.first_noise_once_more, ("eavesdropper",)),
        (faults.one_draw_for_all_coordinates, ("eavesdropper",)),
        (faults.own_model_published, ("published, with the air",)),
        (faults.own_noise_left_out_of_what_is_published, ("published, with the air",)),
    ],
    ids=[
        "noise off",
        "noise halved",
        "own noise dropped",
        "noise reused",
        "first noise once more",
        "one draw for all coordinates",
        "x published",
        "published without own noise",
    ],
)
@pytest.mark.parametrize("count", [AUDITS, pytest.param(MANY, marks=pytest.mark.slow)])
def test_faults_are_caught(fault: Fault, finders: tuple[str, ...], count: int) -> None:
    result = judged(attacked(claimed(), fault(claimed()), bowls(5), count * RUNS, targets=(TARGET,)), mu_promised())
    for finder in finders:
        assert power(result, mu_promised(), finder) == 1.0  # every one of them


@pytest.mark.slow
def test_an_honest_system_stands_and_the_eavesdropper_reaches_the_promise() -> None:
    gathered = attacked(claimed(), claimed(), bowls(5), MANY * RUNS)
    assert power(judged(gathered, mu_promised()), mu_promised()) == 0.0
    evidence = dict(evidence_of(gathered, TARGET))
    assert evidence["eavesdropper"].mu == pytest.approx(mu_promised(), rel=1e-9)
    eavesdropper = attacks(gathered, mu_promised())["eavesdropper"]
    assert 0.85 * mu_promised() < eavesdropper.mu < mu_promised()
    expected = tuple(float(norm.cdf(norm.ppf(rate) + mu_promised())) for rate in (0.1, 0.01))
    assert eavesdropper.true_positives[:2] == pytest.approx(expected, rel=0.15)


def test_few_canaries_accuse_nobody() -> None:
    """With few runs the learned filter sees little; what it was told of some canaries must not show others."""
    gathered = attacked(claimed(), claimed(), bowls(5), FEW)
    for number, part in enumerate(audits(gathered, 5)):
        assert not any(attack.refutes for attack in attacks(part, mu_promised(), seed=number).values())


@pytest.mark.slow
def test_the_stated_power_is_that_of_repeated_audits() -> None:
    """A cut that an audit says it would catch is caught in 9 of 10 audits, and a quarter of that cut seldom."""
    honest = judged(attacked(claimed(), claimed(), bowls(5), MANY * RUNS), mu_promised())
    stated = np.median([max(attack.caught_from for attack in one.values()) for one in honest])
    assert 0.4 < stated < 0.9
    for share, least, most in ((stated, 0.85, 1.0), ((3 + stated) / 4, 0.0, 0.5)):
        gathered = attacked(claimed(), faults.noise_at(claimed(), float(share)), bowls(5), MANY * RUNS)
        assert least <= power(judged(gathered, mu_promised()), mu_promised()) <= most


@pytest.mark.slow
def test_canaries_of_others_do_not_change_what_the_eavesdropper_reaches() -> None:
    """With canaries at all nodes it is as sure of each as with canaries at that node alone."""
    alone, together = (
        dict(evidence_of(attacked(claimed(), claimed(), bowls(5), 400, targets=targets), TARGET))["eavesdropper"]
        for targets in ((TARGET,), None)
    )
    np.testing.assert_allclose(alone.shift, together.shift)
    noise = together.readings[: claimed().epochs]
    assert noise.var() == pytest.approx(1 + np.square(together.shift).mean() / 4, abs=0.05)


@pytest.mark.parametrize("count", [AUDITS, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_relay_with_a_state_dependent_gradient_leaks_more_than_the_linear_diagnostic(count: int) -> None:
    """Line 2 - 1 - 0, observer 0: the relay overshoots, and what it heard comes out of its own noise."""
    gains = np.array([[0, 0.6, 0], [0.7, 0, 0.8], [0, 0.9, 0]])
    curvature = np.array([1.0, 40.0, 1.0])[:, None, None] * np.eye(DIM)
    problem = Quadratic(curvature=curvature, centre=np.zeros((3, DIM)), clip=1e4)
    schedule = Schedule(epochs=6, step=0.1, noise_timing="aligned", noise_to_step=1.0)
    budget = Budget(epsilon=1e6, target="per-epoch")
    built = plan(Network(gains=gains, power=[0.8, 1.3, 1.0]), problem, budget, schedule)
    share = 2.0 / float(built.certificate.mu[TARGET])
    honest = power_controlled(built)
    gathered = attacked(honest, honest, problem, count * RUNS, targets=(TARGET,), coalition=(0,), share=share)
    most = share * float(built.linear((0,)).mu_worst_upper[TARGET])
    result = judged(gathered, 2.0)
    assert power(result, most, "receiver 0") == 1.0
    assert power(result, 2.0) == 0.0  # the certificate holds nevertheless


@pytest.mark.parametrize("count", [AUDITS, pytest.param(MANY, marks=pytest.mark.slow)])
def test_one_draw_for_all_links_of_mped2fl_is_caught(count: int) -> None:
    """Independent noise on every link has a mu for the eavesdropper; with a shared draw two links cancel it."""
    gains = np.array([[0, 0.5, 0.7, 0.4], [0.4, 0, 0.6, 0.6], [1.1, 0.9, 0, 0.8], [0.35, 0.3, 0.45, 0]])
    problem = bowls(4)
    schedule = Schedule(epochs=4, step=0.5, noise_timing="aligned", noise_to_step=6.0)
    built = plan(Network(gains=gains), problem, Budget(epsilon=8.0), schedule, normaliser="max-degree", z="perron")
    algorithm = mped2fl(built)
    sending = algorithm.rounds[0].sending
    assert (sending.noise[0, TARGET] > 0).all()  # the target is nobody's weakest sender
    for actual, least, most in ((algorithm, 0.0, 0.0), (faults.one_draw_for_all_links(algorithm), 1.0, 1.0)):
        gathered = attacked(algorithm, actual, problem, count * RUNS, targets=(TARGET,))
        limit = dict(evidence_of(gathered, TARGET))["eavesdropper"].mu
        amplitude, noise = sending.amplitude[0, TARGET], sending.noise[0, TARGET]
        reported = (
            built.sensitivity[TARGET] * np.linalg.norm(amplitude / noise) * np.sqrt(3)
        )  # aligned: each epoch alike
        assert limit == pytest.approx(reported)
        assert least <= power(judged(gathered, limit), limit) <= most


@pytest.mark.one_in(2)
@pytest.mark.parametrize("publish", ["last", "average"])
def test_records_of_real_data_at_the_mixed_point(publish: str) -> None:
    data = logistic(examples=200, features=7, classes=4, seed=3).partition("sorted", 4)
    problem = SoftmaxRegression(data=data, clip=0.5, l2=0.01)
    algorithm = power_controlled(
        planned(problem, asymmetric_network(5, 4), unit="record"),
        publish=publish,  # type: ignore[arg-type]
    )
    honest = audit(algorithm, problem, runs=200)
    assert (honest.verdict, honest.targets) == ("not falsified", (0, 1, 2, 3))
    assert honest.worst.target == int(np.argmax(mu_of(algorithm.releases[0])))
    assert honest.worst.share == 1.0
    assert honest.clip == pytest.approx(1.0, abs=1e-4)
    heard = [attack for attack in honest.attacks if attack.adversary == "eavesdropper"]
    assert [attack.target for attack in heard] == [0, 1, 2, 3]
    assert all(attack.mu > 0.55 * attack.mu_promised for attack in heard)
    halved = audit(algorithm, problem, runs=200, actual=faults.noise_at(algorithm, 0.5))
    assert halved.verdict == "FALSIFIED"
    assert "eavesdropper about all nodes" in halved.falsified_by


@pytest.mark.slow
def test_minibatches_are_granted_to_the_attacker() -> None:
    data = logistic(examples=200, features=7, classes=4, seed=3).partition("sorted", 4)
    problem = SoftmaxRegression(data=data, clip=0.5, batch=5)
    algorithm = power_controlled(planned(problem, asymmetric_network(5, 4), unit="record"))
    result = audit(algorithm, problem, runs=80)
    assert result.verdict == "not falsified"
    assert max(attack.mu for attack in result.attacks) > 0.45 * result.mu_promised
    halved = audit(algorithm, problem, runs=80, actual=faults.noise_at(algorithm, 0.5))
    assert "eavesdropper about all nodes" in halved.falsified_by


@pytest.mark.slow
def test_own_points_are_followed_at_node_level() -> None:
    algorithm = power_controlled(claimed().plan, gradient_at="own")
    result = audit(algorithm, bowls(5), runs=RUNS)
    assert result.verdict == "not falsified"
    assert max(attack.mu for attack in result.attacks) > 0.65 * result.mu_promised
    halved = audit(algorithm, bowls(5), runs=RUNS, actual=faults.noise_at(algorithm, 0.5))
    assert "eavesdropper about all nodes" in halved.falsified_by


class Unclipped(SoftmaxRegression):
    def gradient_at_public(self, model, mine, key):  # type: ignore[no-untyped-def]
        return 3 * super().gradient_at_public(model, mine, key)


@pytest.mark.parametrize("batch", [None, pytest.param(5, marks=pytest.mark.slow)])
def test_an_unclipped_gradient_is_found(batch: int | None) -> None:
    """The plan promises for a clip that the problem does not apply: canaries behind the clip cannot see it."""
    data = logistic(examples=200, features=7, classes=4, seed=3).partition("sorted", 4)
    problem = Unclipped(data=data, clip=0.5, batch=batch)
    algorithm = power_controlled(planned(problem, asymmetric_network(5, 4), unit="record"))
    result = audit(algorithm, problem, runs=20)
    assert result.clip == pytest.approx(3.0, abs=0.01)
    assert (result.verdict, result.falsified_by) == ("FALSIFIED", ("hostile data",))


def test_nothing_promised_is_not_falsified() -> None:
    for algorithm in (noiseless(claimed().plan), mped2fl(claimed().plan)):
        result = audit(algorithm, bowls(5), runs=FEW, target=TARGET)
        assert result.verdict == "nothing is promised"
        assert max(attack.epsilon for attack in result.attacks) > 2.0


@pytest.mark.slow
def test_a_large_promise_is_tried_with_small_canaries() -> None:
    problem = bowls(5)
    built = planned(problem, asymmetric_network(3, 5), epsilon=200.0)
    algorithm = power_controlled(built)
    result = audit(algorithm, problem, runs=RUNS, target=TARGET)
    assert result.worst.share == pytest.approx(2.5 / built.certificate.mu[TARGET])
    assert result.mu_promised == pytest.approx(2.5)
    assert result.verdict == "not falsified"
    assert audit(algorithm, problem, runs=RUNS, actual=faults.noise_at(algorithm, 0.8)).verdict == "FALSIFIED"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_audit() -> None:
    one, again, other = (audit(claimed(), bowls(5), runs=10, seed=seed).attacks for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 5}, "target is 5"),
        ({"target": 1, "coalition": (0, 1)}, "against itself"),
        ({"coalition": (7,)}, "7"),
        ({"runs": 0}, "runs"),
        ({"runs": 1}, "too few"),
    ],
)
def test_wrong_wishes_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=message):
        audit(claimed(), bowls(5), **options)


def test_certainty_is_not_to_be_had() -> None:
    with pytest.raises(Error, match="confidence"):
        audit(claimed(), bowls(5), options=AuditOptions(confidence=1.0))


def test_what_is_not_on_the_air_is_an_error() -> None:
    for algorithm in (central_dp(claimed().plan), local_only(claimed().plan)):
        with pytest.raises(Error, match="on the air"):
            audit(algorithm, bowls(5), runs=5)


@pytest.mark.parametrize(
    "draws",
    [
        {"noise": Draw(), "before": Again("noise")},
        {"noise": Draw(), "more": Draw(law="laplace")},
        {"noise": Draw(), "one": Draw(per="pair"), "other": Draw(per="pair")},
    ],
    ids=["drawn again", "two laws", "two draws of pairs"],
)
def test_draws_that_no_attack_is_known_on_are_errors_that_say_so(draws: Draws) -> None:
    with pytest.raises(Error, match="no attack is known") as raised:
        audit(faults.changed(claimed(), draws=draws), bowls(5), runs=5)
    assert raised.value.hint.startswith("audit an algorithm")


def test_verdict_follows_from_the_attacks_the_checks_and_the_clip() -> None:
    rates = (0.1, 0.01, 0.001)
    harmless = Attack("nobody", 1, 0.1, "matched", 100, 50, 0.0, 0.0, 0.0, rates, 0.5, 0.5, 2.0)
    check = Check("the size of the noise", 10, 1.0, "node 1 has 99.9% of the std", refutes=False)
    promise = Promise(1, 1.0, 0.5, 2.0, 2.0, 1e-5)
    common = {"algorithm": "any", "unit": "node", "nodes": 3, "runs": 1, "canaries": 100, "delta": 1e-5}
    common |= {"confidence": 0.95, "promises": (promise,), "cut_caught": 0.0, "hostile": Clipped(1.0, "", 9)}

    def result(**changed: object) -> Audit:
        return Audit(**(common | {"attacks": (harmless,), "checks": (check,)} | changed))  # type: ignore[arg-type]

    assert result().verdict == "not falsified"
    assert result(attacks=(harmless, harmless._replace(mu=0.51))).falsified_by == ("nobody about node 1",)
    assert result(attacks=(harmless._replace(epsilon_one_run=2.5),)).verdict == "FALSIFIED"
    assert result(attacks=(harmless._replace(epsilon_by_counts=2.5),)).verdict == "FALSIFIED"
    assert result(checks=(check._replace(refutes=True),)).verdict == "FALSIFIED"
    assert result(hostile=Clipped(1.01, "one record", 9)).falsified_by == ("hostile data",)
    blind = result(hostile=Clipped(None, "no data of Mine could be made hostile"), unseen=("the clip: none",))
    assert blind.verdict == "not falsified"
    assert dict(blind.summary)["Clip"].startswith("NOT LOOKED AT")
    assert dict(blind.summary)["Verdict"].endswith("NOT LOOKED AT: the clip: none")
    nothing = result(promises=(promise._replace(mu=np.inf),), hostile=Clipped(7.0, "", 9))
    assert nothing.verdict == "nothing is promised"
    assert nothing.falsified_by == ()


def test_secure_noise_is_attacked_as_it_is_sent() -> None:
    problem = bowls(4)
    schedule = Schedule(epochs=5, step=0.3, noise_timing="aligned", noise_to_step="auto")
    built = plan(asymmetric_network(5, 4), problem, Budget(epsilon=2.0, noise_source="secure"), schedule)
    result = audit(power_controlled(built), problem, runs=60)
    assert result.verdict == "not falsified"
    assert result.worst.epsilon == pytest.approx(2.0, rel=1e-6)
    # Of secure noise no two runs are alike: 0.4 to 0.68 in 25 audits.
    assert max(attack.mu for attack in result.attacks) > 0.2 * result.mu_promised


@pytest.mark.slow
def test_ends_fixed_beforehand_are_attacked_as_they_are() -> None:
    algorithm, problem = claimed(), bowls(5)
    options = AuditOptions(confidence=0.95)
    stopped = audit(with_ends(algorithm, stop_after=4), problem, runs=200, target=TARGET, options=options)
    assert stopped.verdict == "not falsified"
    assert 0.3 * stopped.mu_promised < max(attack.mu for attack in stopped.attacks) < mu_promised()
    ended = with_ends(algorithm, stop_after=4)
    quieter = audit(ended, problem, runs=200, target=TARGET, options=options, actual=faults.noise_at(ended, 0.5))
    assert f"eavesdropper about node {TARGET}" in quieter.falsified_by
    silent = audit(with_ends(algorithm, drops={TARGET: 1}), problem, runs=200, target=TARGET)
    assert (silent.mu_promised, silent.verdict) == (0.0, "not falsified")
    dropped = audit(with_ends(algorithm, drops={TARGET: 5}), problem, runs=200, target=TARGET, options=options)
    assert [attack.adversary for attack in dropped.attacks] == ONLY_THE_EAVESDROPPER
    assert (dropped.verdict, dropped.warnings) == ("not falsified", ())
    assert 0.5 * dropped.mu_promised < dropped.attacks[0].mu < dropped.mu_promised < mu_promised()


@pytest.mark.slow
def test_a_coalition_that_cannot_attack_is_a_warning() -> None:
    ours = claimed()
    dropped = with_ends(ours, drops={TARGET: 5})
    own = ours._replace(name="mine", settings={})
    for algorithm, words in ((mped2fl(ours.plan), "mped2fl"), (dropped, "drop out"), (own, "mine")):
        result = audit(algorithm, bowls(5), runs=FEW, target=TARGET, coalition=(0, 1))
        assert [attack.adversary for attack in result.attacks] == ONLY_THE_EAVESDROPPER
        (line,) = result.warnings
        assert "receivers 0, 1 did not attack" in line
        assert words in line
    heard = audit(ours, bowls(5), runs=FEW, coalition=(0, 1))
    assert (heard.warnings, heard.targets) == ((), (2, 3, 4))
    assert heard.unseen == ("attacks on the members of the coalition",)
