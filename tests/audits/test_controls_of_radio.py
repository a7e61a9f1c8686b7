"""Over a radio: honest runs are not accused, and each way to break the rules of the proof is caught.

Quick: one system and every control once. Slow: all kinds of access, fading, rounds and z.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm, Draw
from murmurcast.algorithms.free_rounds import MixingState
from murmurcast.errors import Error
from murmurcast.planning.setup import Budget
from murmurcast.radio.settings import Radio
from murmurcast.testing import check_algorithm
from tests.audits.systems import attacked, checks, falsified_by
from tests.certificates.ledger_edits import caught, scaled, with_ledger
from tests.conftest import asymmetric_network

NODES, DIM, RUNS = 5, 40, 150
SIZE, SILENCE = "the size of the noise", "signals without noise"
SYSTEMS = [
    ("own-slot", "iid", 2, "predicted"),
    ("own-slot", "jakes", 1, "recursive"),
    ("aligned", "iid", 1, "mean"),
    ("aligned", "none", 2, None),
    ("referenced", "none", 1, "mean"),
    ("referenced", "jakes", 2, "predicted"),
    ("digital", "iid", 1, "predicted"),
]


def problem() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, seed=1, ball=1000.0)


@cache
def honest(access: str, fading: str, rounds: int, z: Any, **options: Any) -> Algorithm:
    radio = Radio(access=access, fading=fading, **options)  # type: ignore[arg-type]
    network = mc.Network(gains=asymmetric_network(3, NODES).gains.toarray() * 1e-4, power=0.1)
    schedule = mc.Schedule(epochs=6, step=0.2, noise_timing="aligned", rounds=rounds)
    return mc.power_controlled(mc.plan(network, problem(), Budget(epsilon=2.0), schedule, radio=radio, z=z))


def first(algorithm: Algorithm, **changes: Any) -> Algorithm:
    """With other parts of the round that carries noise."""
    return algorithm._replace(rounds=(algorithm.rounds[0]._replace(**changes), *algorithm.rounds[1:]))


@pytest.mark.parametrize(
    "system", [pytest.param(one, marks=() if place == 0 else pytest.mark.slow) for place, one in enumerate(SYSTEMS)]
)
def test_an_honest_run_over_a_radio_is_not_accused(system: tuple[Any, ...]) -> None:
    algorithm = honest(*system)
    gathered = attacked(algorithm, algorithm, problem(), RUNS)
    assert falsified_by(gathered, algorithm) == set()


def test_a_silent_node_that_keeps_its_own_model_is_caught() -> None:
    """All receivers hold: each keeps V, so that the certificate stands; one that keeps x is accused."""
    algorithm = honest("own-slot", "none", 1, None, hold_below=1e12)
    honestly = attacked(algorithm, algorithm, problem(), RUNS)
    assert falsified_by(honestly, algorithm) == set()
    (only,) = algorithm.rounds

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Any) -> Any:
        return only.update(here, state, sent, state.own + 0 * heard, local)  # x in place of what was said

    cheating = attacked(algorithm, first(algorithm, update=update), problem(), RUNS)
    assert {"eavesdropper"} <= falsified_by(cheating, algorithm)


def test_fresh_noise_in_a_repetition_is_caught() -> None:
    """A second message with a draw of its own, where the account knows of one: audit and account say so."""
    algorithm = honest("own-slot", "none", 2, None)
    carrying, free = algorithm.rounds

    def send(here: Any, state: MixingState, drawn: Any) -> Any:
        sending = carrying.sending
        loud = sending.noise[0, 0] * sending.schedule[0]
        return here.scale * (here.amplitude * state.own + loud * drawn["noise"])

    repeated = algorithm._replace(rounds=(carrying, free._replace(send=send, draws={"noise": Draw()})))
    assert repeated.has_lost_its_proof
    found = {check.name for check in checks(attacked(algorithm, repeated, problem(), 20)) if check.refutes}
    assert SILENCE in found


def test_a_scale_made_of_the_private_norm_is_caught() -> None:
    algorithm = honest("own-slot", "none", 1, None)
    (only,) = algorithm.rounds

    def send(here: Any, state: Any, drawn: Any) -> Any:
        norm = jnp.linalg.norm(state.own)
        return only.send(here, state, drawn) * (1 + 0.5 * jnp.tanh(norm))

    scaled_by_norm = first(algorithm, send=send)
    assert scaled_by_norm.has_lost_its_proof
    gathered = attacked(algorithm, scaled_by_norm, problem(), RUNS)
    assert falsified_by(gathered, algorithm)


def test_a_pilot_that_carries_data_cannot_be_made_and_loses_the_promise() -> None:
    """A channel never sees a model: pilots are made of the radio's seed. A node that adds data itself is caught."""
    algorithm = honest("own-slot", "none", 1, None)
    channel: Any = algorithm.rounds[0].channel
    before = channel.weights(np.array([1, 2]))
    np.testing.assert_array_equal(before, channel.weights(np.array([1, 2])))  # no argument is a model
    (only,) = algorithm.rounds

    def send(here: Any, state: Any, drawn: Any) -> Any:
        return only.send(here, state, drawn) + 100 * here.scale * here.noise * here.schedule * jnp.sign(state.own)

    told = first(algorithm, send=send)
    assert told.has_lost_its_proof
    assert falsified_by(attacked(algorithm, told, problem(), 60), algorithm)


def test_receiver_noise_counted_into_s_is_caught() -> None:
    """By the audit, which finds less noise than claimed, and by certify, whose account it does not fit."""
    algorithm = honest("own-slot", "none", 1, None)
    sending = algorithm.rounds[0].sending
    less = first(algorithm, sending=sending._replace(noise=0.9 * sending.noise))
    found = {check.name for check in checks(attacked(algorithm, less, problem(), RUNS)) if check.refutes}
    assert SIZE in found
    run = mc.run(algorithm, problem())
    assert mc.certify(run).verdict == "kept"
    assert caught(with_ledger(run, scaled("model_sending_noise", 0.9)(run.ledger)))


def test_a_method_that_keeps_its_own_model_does_not_pass_for_one_that_promises() -> None:
    def make(plan: Any) -> Algorithm:
        algorithm = mc.power_controlled(plan)
        (only,) = algorithm.rounds

        def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Any) -> Any:
            following = only.update(here, state, sent, heard, local)
            return following._replace(published=following.own)

        return first(algorithm, update=update)

    from murmurcast.algorithms.method import Method

    method = Method("mine", make, "", "it brings no account", "", needs="two-way links")
    with pytest.raises(Error, match="what is published moves"):
        check_algorithm(method)


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


@pytest.mark.parametrize("access", ["own-slot", "aligned", "referenced", "digital"])
@pytest.mark.parametrize("fading", ["iid", "jakes"])
@pytest.mark.parametrize("z", ["mean", "predicted", "recursive"])
def test_under_fading_it_is_the_budgets(access: str, fading: str, z: str) -> None:
    plan = honest(access, fading, 1, z).plan
    np.testing.assert_allclose(plan.certificate.epsilon, 2.0, rtol=1e-6)
