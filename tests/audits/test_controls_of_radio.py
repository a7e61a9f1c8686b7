"""Over a radio: honest runs are not accused, and each way to break the rules of the proof is caught.

Quick: one system and every control once. Slow: all kinds of access, fading, rounds and z, and every control again.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import power_controlled
from murmurcast.algorithms.account import LedgerTables, exposed_ratio, sensitivity
from murmurcast.algorithms.base import Algorithm, Draw, proved
from murmurcast.algorithms.free_rounds import MixingState
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.observed import system_of
from murmurcast.algorithms.tables import row_of
from murmurcast.audits.overheard import overhear
from murmurcast.errors import Error
from murmurcast.planning.setup import Budget
from murmurcast.privacy.releases import GAUSSIAN, Releases
from murmurcast.radio.settings import Radio
from murmurcast.testing import check_algorithm
from tests.audits.systems import attacked, falsified_by
from tests.certificates.ledger_edits import caught, with_ledger
from tests.conftest import asymmetric_network

NODES, DIM, RUNS = 5, 40, 150
AUDITED = 60  # runs of one audit
WEAK_WATTS = 4e-7
SIZE, SILENCE = "the size of the noise", "signals without noise"
LOUDNESS = "is louder in some messages than in others"
SYSTEMS = [
    ("own-slot", "iid", 2, "predicted"),
    ("own-slot", "jakes", 1, "recursive"),
    ("aligned", "iid", 1, "mean"),
    ("aligned", "none", 2, None),
    ("referenced", "none", 1, "mean"),
    ("referenced", "jakes", 2, "predicted"),
    ("digital", "iid", 1, "predicted"),
]


@cache
def within(ball: float) -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, seed=1, ball=ball)


def problem() -> mc.Quadratic:
    return within(1000.0)


@cache
def honest(access: str, fading: str, rounds: int, z: Any, **options: Any) -> Algorithm:
    radio = Radio(access=access, fading=fading, **options)  # type: ignore[arg-type]
    return built(radio, problem(), rounds, z, power=0.1)


def built(radio: Radio, given: mc.Quadratic, rounds: int, z: Any, power: float) -> Algorithm:
    network = mc.Network(gains=asymmetric_network(3, NODES).gains.toarray() * 1e-4, power=power)
    schedule = mc.Schedule(epochs=6, step=0.2, noise_timing="aligned", rounds=rounds)
    return mc.power_controlled(mc.plan(network, given, Budget(epsilon=2.0), schedule, radio=radio, z=z))


def first(algorithm: Algorithm, **changes: Any) -> Algorithm:
    """With other parts of the round that carries noise."""
    return algorithm._replace(rounds=(algorithm.rounds[0]._replace(**changes), *algorithm.rounds[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_honest_run_over_a_radio_is_not_accused(system: tuple[Any, ...]) -> None:
    algorithm = honest(*system)
    gathered = attacked(algorithm, algorithm, problem(), RUNS)
    assert falsified_by(gathered, algorithm) == set()


@pytest.mark.slow
def test_receivers_and_pairs_attack_over_a_radio() -> None:
    result = audited(plain, 1000.0)
    assert result.verdict == "not falsified"
    assert {attack.adversary.split()[0] for attack in result.attacks} >= {"receiver", "receivers", "eavesdropper"}
    assert "receivers" not in " ".join(result.unseen)
    assert any(attack.adversary == "published alone" for attack in result.attacks)
    # Each sender is heard alone: a receiver learns nearly what is certified, and no more.
    best = max((one for one in result.attacks if one.adversary.startswith("receiver ")), key=lambda one: one.mu_linear)
    assert 0.75 < best.mu_linear / best.mu_promised <= 1 + 1e-6


# Systems that break a rule; each test below has its honest twin audited too.


def keeps_own_model(algorithm: Algorithm) -> Algorithm:
    """(a) Where all receivers hold, x in place of what was said."""
    (only,) = algorithm.rounds

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Any) -> Any:
        return only.update(here, state, sent, state.own + 0 * heard, local)

    return first(algorithm, update=update)


def repeated(algorithm: Algorithm) -> Algorithm:
    """(b) The second round says the model again, with a draw of its own, instead of the public mixed point."""
    carrying, free = algorithm.rounds

    def send(here: Any, state: MixingState, drawn: Any) -> Any:
        sending = carrying.sending
        loud = sending.noise[0, 0] * sending.schedule[0]
        return here.scale * (here.amplitude * state.own + loud * drawn["noise"])

    return algorithm._replace(rounds=(carrying, free._replace(send=send, draws={"noise": Draw()})))


def scaled_by_norm(algorithm: Algorithm, strength: float = 1.0) -> Algorithm:
    """(c) As loud as the model's norm lets it be, in whole or in part: noise is then as large as data makes it."""
    (only,) = algorithm.rounds

    def send(here: Any, state: Any, drawn: Any) -> Any:
        return only.send(here, state, drawn) / (1 + jnp.linalg.norm(state.own)) ** strength

    return first(algorithm, send=send)


def scaled_a_little(algorithm: Algorithm) -> Algorithm:
    return scaled_by_norm(algorithm, 0.2)


def telling_pilot(algorithm: Algorithm) -> Algorithm:
    """(d) The pilot's amplitude says a sign of the model, and receivers divide by it."""
    (only,) = algorithm.rounds

    def send(here: Any, state: Any, drawn: Any) -> Any:
        return only.send(here, state, drawn) * (1 + 0.1 * jnp.sign(state.own[0]))

    return first(algorithm, send=send)


def counted(algorithm: Algorithm) -> Algorithm:
    """(e) Less noise by what receivers add, as if that hid something."""
    sending = algorithm.rounds[0].sending
    return first(algorithm, sending=sending._replace(noise=left_of_noise(algorithm) * sending.noise))


def left_of_noise(algorithm: Algorithm) -> Any:
    """[epochs, nodes] the share of its std."""
    system = system_of(algorithm.plan)
    return np.sqrt(np.maximum(1 - (system.rounds[0].noise / system.effective_noise) ** 2, 0.0))


@cache
def weak() -> Algorithm:
    """At -10 dB, where receivers add more than nodes do."""
    return built(Radio(hold_below=0.0), within(5.0), 1, None, power=WEAK_WATTS)


def kept() -> Algorithm:
    """Every receiver keeps what it said."""
    return honest("own-slot", "none", 1, None, hold_below=1e12)


def plain() -> Algorithm:
    return honest("own-slot", "none", 1, None)


def twice() -> Algorithm:
    return honest("own-slot", "none", 2, None)


@cache
def audited(claimed: Callable[[], Algorithm], ball: float) -> mc.Audit:
    """An honest system by the public entry, at its default confidence; once for all tests."""
    return mc.audit(claimed(), within(ball), runs=AUDITED)


class Control(NamedTuple):
    """What is claimed, what is done, by what that is seen, and on which problem."""

    claimed: Callable[[], Algorithm]
    fault: Callable[[Algorithm], Algorithm]
    seen_by: str
    ball: float = 1000.0


CONTROLS = {
    "a silent node keeps its own model": Control(kept, keeps_own_model, "eavesdropper"),
    "fresh noise in a repetition": Control(twice, repeated, SILENCE),
    "a scale made of the private norm": Control(plain, scaled_by_norm, SIZE),
    "a scale made of it in part": Control(plain, scaled_a_little, SIZE),
    "a pilot that carries data": Control(plain, telling_pilot, LOUDNESS),
    "receiver noise counted into s": Control(weak, counted, SIZE, 5.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_caught_and_its_honest_twin_is_not(name: str) -> None:
    control = CONTROLS[name]
    twin = audited(control.claimed, control.ball)
    assert twin.verdict == "not falsified", twin.falsified_by
    algorithm = control.claimed()
    result = mc.audit(algorithm, within(control.ball), actual=control.fault(algorithm), runs=AUDITED)
    assert result.verdict == "FALSIFIED"
    assert control.seen_by in "; ".join(result.falsified_by)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_caught_again_and_again(name: str) -> None:
    control = CONTROLS[name]
    algorithm, given = control.claimed(), within(control.ball)
    for seed in (1000, 2000, 3000, 4000, 5000):
        assert mc.audit(algorithm, given, seed=seed, runs=AUDITED).verdict == "not falsified"
        actual = control.fault(algorithm)
        assert mc.audit(algorithm, given, actual=actual, seed=seed, runs=AUDITED).verdict == "FALSIFIED"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if "scale" in name else pytest.mark.slow)
        for name, control in CONTROLS.items()
        if control.fault is not counted
    ],
)
def test_a_run_with_other_functions_is_promised_nothing(name: str) -> None:
    """What was proved, was proved of others; certify says so."""
    control = CONTROLS[name]
    run = mc.run(control.fault(control.claimed()), within(control.ball))
    assert run.info["privacy"]["epsilon"] is None
    result = mc.certify(run)
    assert result.verdict == "nothing is promised"
    assert "proved" in result.basis


@pytest.mark.slow
def test_the_account_refuses_a_draw_in_a_repetition() -> None:
    run = mc.run(honest("own-slot", "none", 2, None), problem())
    assert mc.certify(run).verdict == "kept"
    assert caught(with_ledger(run, run.ledger.assign_attrs(mixing2_draws="noise: normal of a node")))


@pytest.mark.slow
def test_pilots_are_the_same_whatever_the_data() -> None:
    """What is sent before a message, and the phase of both, are made of public numbers."""
    for algorithm in (honest("own-slot", "iid", 1, "mean"), honest("referenced", "none", 1, "mean")):
        other = mc.Quadratic.random(NODES, DIM, seed=9, ball=1000.0)
        said = [overhear(algorithm, one, seed=0, node=2, epochs=range(1, 7)).messages for one in (problem(), other)]
        for mine, yours in zip(*said, strict=True):
            assert (mine.pilot, mine.turn) == (yours.pilot, yours.turn)
        assert not np.array_equal(said[0][-1].signal, said[1][-1].signal)


@pytest.mark.slow
def test_much_receiver_noise_counted_into_s_is_caught_by_certify_too() -> None:
    """By what the ledger costs, even if it is called proved; where it claims all noise, by the power that was sent."""
    strongest = asymmetric_network(3, NODES).gains.max() * 1e-4
    ratio = strongest**2 * WEAK_WATTS / Radio().noise_w(np.ones(1))[0]
    assert 10 * np.log10(ratio) == pytest.approx(-8, abs=3)
    assert left_of_noise(weak()).min() < 0.8
    run, claimed = (mc.run(one, within(5.0)) for one in (proved(counted(weak())), weak()))
    assert mc.certify(claimed).verdict == "kept"
    assert caught(run)
    assert "was not sent" in caught(replace(run, ledger=claimed.ledger))


@pytest.mark.slow
def test_a_little_receiver_noise_counted_into_s_is_caught_by_the_account() -> None:
    """Too little for an audit to see."""
    left = left_of_noise(plain()).min()
    assert 0.9 < left < 1 - 1e-6
    assert mc.certify(mc.run(counted(plain()), problem())).verdict == "nothing is promised"  # its tables were exchanged
    result = mc.certify(mc.run(proved(counted(plain())), problem()))
    assert result.verdict == "broken"
    assert (result.mu > result.promised_mu).any()
    assert mc.certify(mc.run(plain(), problem())).verdict == "kept"


# The rules, enforced before anything is run


def own_method(change: Callable[[Algorithm], Algorithm]) -> Method:
    """Somebody's method, who brings an account: that of Algorithm 1."""
    return power_controlled.METHOD._replace(make=lambda plan: change(mc.power_controlled(plan)))


def keeps_own_model_in_silence(algorithm: Algorithm) -> Algorithm:
    (only,) = algorithm.rounds

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Any) -> Any:
        silent = jnp.all(heard == 0)
        return only.update(here, state, sent, jnp.where(silent, state.own, heard), local)

    return first(algorithm, update=update)


def publishes_own_model(algorithm: Algorithm) -> Algorithm:
    (only,) = algorithm.rounds

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Any) -> Any:
        following = only.update(here, state, sent, heard, local)
        return following._replace(published=following.own)

    return first(algorithm, update=update)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (keeps_own_model_in_silence, "given all that was sent before"),
        (scaled_by_norm, "how large the noise is"),
        (publishes_own_model, "what is published moves"),
    ],
)
def test_a_method_that_breaks_a_rule_does_not_pass_for_one_that_promises(change: Any, words: str) -> None:
    with pytest.raises(Error, match=words):
        check_algorithm(own_method(change), radio=Radio())


@pytest.mark.parametrize(
    "radio",
    [
        Radio(),
        pytest.param(Radio(access="referenced"), marks=pytest.mark.slow),
        pytest.param(Radio(recentre_every=2), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_method_that_keeps_the_rules_passes(radio: Radio) -> None:
    check_algorithm(power_controlled.METHOD, radio=radio)


def careless_account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """One that looks at the first round only."""
    epochs = np.arange(1, ledger.epochs + 1)
    amplitude, noise = (row_of(ledger.table(f"model_sending_{name}"), epochs) for name in ("amplitude", "noise"))
    step, z = ledger.per_epoch("mixing2_receiving_step"), row_of(ledger.table("mixing2_receiving_z"), epochs)
    std = ledger.per_epoch("model_sending_schedule")[:, None] * noise / amplitude
    return (Releases(GAUSSIAN, exposed_ratio(sensitivity(ledger), step[:, None] / z, std), "everybody"),)


@pytest.mark.parametrize(
    ("account", "words"),
    [(power_controlled.account, "mixing2"), (careless_account, "given all that was sent before")],
)
@pytest.mark.slow
def test_a_method_that_repeats_with_fresh_noise_does_not_pass(account: Any, words: str) -> None:
    """The account refuses a draw in a round that should send what is public; one that does not look is found out."""

    def make(plan: Any) -> Algorithm:
        schedule = replace(plan.schedule, rounds=2)
        return repeated(mc.power_controlled(replace(plan, schedule=schedule)))

    with pytest.raises(Error, match=words):
        check_algorithm(power_controlled.METHOD._replace(make=make, account=account), radio=Radio())


@pytest.mark.parametrize("access", ["own-slot", "aligned", "digital"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_the_certificate_is_the_same_bit_for_bit_with_and_without_a_radio(access: str, rounds: int) -> None:
    """On a channel that stands still the weights are the paper's, so split, noise and mu are."""
    network = mc.Network(gains=asymmetric_network(3, NODES).gains.toarray() * 1e-4, power=0.1)
    schedule = mc.Schedule(epochs=6, step=0.2, noise_timing="aligned", rounds=rounds)

    def planned(radio: Radio | None) -> mc.Plan:
        return mc.plan(network, problem(), Budget(epsilon=2.0), schedule, radio=radio, z="perron")

    radio = Radio(access=access)  # type: ignore[arg-type]
    np.testing.assert_array_equal(planned(radio).certificate.mu, planned(None).certificate.mu)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("access", ["own-slot", "aligned", "referenced", "digital"])
@pytest.mark.parametrize("fading", ["iid", "jakes"])
@pytest.mark.parametrize("z", ["mean", "predicted", "recursive"])
def test_under_fading_it_is_the_budgets(access: str, fading: str, z: str) -> None:
    plan = honest(access, fading, 1, z).plan
    np.testing.assert_allclose(plan.certificate.epsilon, 2.0, rtol=1e-6)
