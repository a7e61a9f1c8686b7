"""Algorithm 1 over a radio, with free rounds and with a common reference: NumPy's numbers, and the same certificate."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.planning.plan import Plan
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS = 6, 6, 12
QUIET: dict[str, Any] = {"noise_figure_db": -400.0, "self_interference_db": 400.0, "duplex": "full"}


def problem(**parts: Any) -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, clip=1e3, ball=20.0, **parts)


def planned(
    radio: mc.Radio | None = None, rounds: int = 1, epochs: int = EPOCHS, z: Any = None, step: float = 0.02, **more: Any
) -> Plan:
    plain = asymmetric_network(4, NODES)
    scale = 1.0 if radio is None else 1e-4
    power = plain.power if radio is None else np.broadcast_to(radio.power_w, NODES)
    network = mc.Network(gains=plain.gains * scale, power=power)
    schedule = mc.Schedule(epochs=epochs, step=step, rounds=rounds, **more)
    return mc.plan(network, problem(), mc.Budget(epsilon=2.0), schedule, radio=radio, z=z)


def optimum(task: mc.Quadratic) -> FloatArray:
    moment = np.einsum("kij,kj->i", task.curvature, task.centre)
    return np.asarray(np.linalg.solve(task.curvature.sum(axis=0), moment))


def by_hand(algorithm: Algorithm, weights: FloatArray, epochs: int) -> FloatArray:
    """[nodes, dim] x after so many epochs without noise; weights [epochs, nodes, nodes] of all rounds together."""
    task, receiving = problem(), algorithm.rounds[-1].receiving
    own = np.zeros((NODES, DIM))
    for epoch in range(epochs):
        mixed = weights[epoch] @ own
        gradient = np.einsum("kij,kj->ki", task.curvature, mixed - task.centre)
        z = receiving.z[min(epoch, len(receiving.z) - 1)]
        own = mixed - receiving.step[epoch] * gradient / z[:, None]
    return own


@pytest.mark.parametrize("rounds", [2, 3])
def test_free_rounds_mix_by_powers_of_the_weights(rounds: int) -> None:
    plan = planned(rounds=rounds)
    algorithm = mc.noiseless(plan)
    assert [one.name for one in algorithm.rounds] == ["model", *(f"mixing{n}" for n in range(2, rounds + 1))]
    assert algorithm.channel_uses == rounds
    together = np.linalg.matrix_power(plan.mixing.weights.toarray(), rounds)
    expected = by_hand(algorithm, np.broadcast_to(together, (EPOCHS, NODES, NODES)), EPOCHS)
    outcome = mc.run(algorithm, problem(), precision="float64")
    np.testing.assert_allclose(np.asarray(outcome.final("own_loss")).shape, (1, NODES))
    np.testing.assert_allclose(last_models(outcome, algorithm), expected, rtol=1e-9, atol=1e-10)


def last_models(outcome: mc.Result, algorithm: Algorithm) -> FloatArray:
    """[nodes, dim] x, from the mixed points that are published: one more step."""
    task, receiving = problem(), algorithm.rounds[-1].receiving
    mixed = outcome.published[0]
    gradient = np.einsum("kij,kj->ki", task.curvature, mixed - task.centre)
    return np.asarray(mixed - receiving.step[-1] * gradient / receiving.z[-1][:, None])


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_further_rounds_cost_no_privacy_and_are_recomputed(rounds: int) -> None:
    plan = planned(rounds=rounds, z="perron")
    once = planned(rounds=1, z="perron")
    np.testing.assert_array_equal(plan.certificate.mu, once.certificate.mu)
    result = mc.run(mc.power_controlled(plan), problem())
    assert mc.certify(result).verdict == "kept"
    assert int(result.metrics["channel_uses"][-1]) == rounds * EPOCHS


@pytest.mark.slow
def test_further_rounds_bring_models_together_at_the_same_certificate() -> None:
    spread = []
    for rounds in (1, 2, 4):
        network = mc.topologies.ring(12, seed=1)
        task = mc.Quadratic.random(12, DIM, clip=1.0, ball=20.0)
        schedule = mc.Schedule(epochs=60, step=0.002, rounds=rounds)
        plan = mc.plan(network, task, mc.Budget(epsilon=20.0), schedule, z="perron")
        result = mc.run(mc.power_controlled(plan), task, seeds=range(8))
        spread.append(float(np.asarray(result.final("consensus_error")).mean()))
        np.testing.assert_allclose(plan.certificate.epsilon.max(), 20.0)
    assert spread[0] > 1.3 * spread[1] > 1.3 * 1.3 * spread[2]


RADIOS = [
    (access, fading, rounds)
    for access in ("aligned", "own-slot", "referenced")
    for fading in ("none", "iid", "jakes")
    for rounds in (1, 2)
]
RADIOS.sort(key=lambda radio: radio != ("own-slot", "iid", 2))  # which has most to it: the one that is always tried


@pytest.mark.parametrize(("access", "fading", "rounds"), RADIOS)
@pytest.mark.slow
def test_without_noise_a_run_is_the_weights_applied(access: Any, fading: Any, rounds: int) -> None:
    radio = mc.Radio(access=access, fading=fading, **QUIET)
    algorithm = mc.noiseless(planned(radio, rounds))
    epochs = np.arange(1, EPOCHS + 1)
    together = np.eye(NODES)
    for one in algorithm.rounds:
        channel: Any = one.channel
        together = real_form(channel.weights(epochs)) @ (
            real_form(np.broadcast_to(together, (EPOCHS, NODES, NODES))) if one is algorithm.rounds[0] else together
        )
    expected = by_hand_in_pairs(algorithm, together)
    outcome = mc.run(algorithm, problem(), precision="float64")
    np.testing.assert_allclose(last_models(outcome, algorithm), expected, rtol=1e-4, atol=1e-4)


def real_form(weights: Any) -> FloatArray:
    """[epochs, 2 nodes, 2 nodes] of complex weights, on real and imaginary parts."""
    return np.concatenate(
        [np.concatenate([weights.real, -weights.imag], axis=2), np.concatenate([weights.imag, weights.real], axis=2)],
        axis=1,
    )


def by_hand_in_pairs(algorithm: Algorithm, weights: FloatArray) -> FloatArray:
    task, receiving = problem(), algorithm.rounds[-1].receiving
    own = np.zeros((NODES, DIM))
    for epoch in range(EPOCHS):
        parts = weights[epoch] @ np.concatenate([own[:, 0::2], own[:, 1::2]])
        mixed = np.stack([parts[:NODES], parts[NODES:]], axis=-1).reshape(NODES, DIM)
        gradient = np.einsum("kij,kj->ki", task.curvature, mixed - task.centre)
        z = receiving.z[min(epoch, len(receiving.z) - 1)]
        own = mixed - receiving.step[epoch] * gradient / z[:, None]
    return own


@pytest.mark.slow
def test_chunks_and_evaluations_change_no_bit() -> None:
    plan = planned(mc.Radio(fading="jakes", speed_mps=20.0))
    whole, watched = (
        mc.run(mc.power_controlled(plan), problem(), seeds=range(2), options=mc.RunOptions(evaluate_every=every))
        for every in (EPOCHS, 5)
    )
    np.testing.assert_array_equal(whole.published, watched.published)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("z", ["mean", "predicted", "recursive"])
def test_noise_follows_the_step_so_that_the_certificate_is_the_budget(z: Any) -> None:
    plan = planned(mc.Radio(fading="jakes", speed_mps=5.0), z=z, epochs=20)
    algorithm = mc.power_controlled(plan)
    only = algorithm.rounds[0]
    assert len(only.receiving.z) == (1 if z == "mean" else 20)
    assert len(only.sending.noise) == (1 if z == "mean" else 20)
    result = mc.run(algorithm, problem())
    assert mc.certify(result).verdict == "kept"
    np.testing.assert_allclose(plan.certificate.epsilon.max(), 2.0)
    if z == "predicted":
        followed = only.receiving.z[:-1] * only.sending.noise[1:]
        np.testing.assert_allclose(followed, np.broadcast_to(followed[:1], followed.shape))


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.slow
def test_power_per_symbol_stays_within_its_budget(rounds: int) -> None:
    plan = planned(mc.Radio(fading="iid", power_dbm=10.0), rounds, epochs=40)
    watched = mc.RunOptions(evaluate_every=1)
    result = mc.run(mc.power_controlled(plan), problem(), seeds=range(20), options=watched)
    per_symbol = np.asarray(result.metrics["sent_power"]) * 2 / DIM  # over p, of the loudest round
    chance = 4 * np.sqrt(2 / DIM / (20 * 40))  # of a mean over seeds and epochs of squares of so many draws
    assert per_symbol.mean(axis=(0, 1)).max() < 1 + chance


def drifts(every: int, **wrong: float) -> float:
    """Median of 3 of the farthest node's distance to the optimum over its norm, after 1000 epochs from there."""
    task = replace(problem(), centre=problem().centre + 2.0)
    best, outcome = optimum(task), []
    for seed in range(3):
        impaired: dict[str, Any] = QUIET | wrong
        radio = mc.Radio(access="aligned", recentre_every=every, seed=seed, **impaired)
        plan = planned(radio, epochs=1000, step=0.05, decay="linear")
        last = mc.run(mc.noiseless(plan), replace(task, begin=best), precision="float64").published[0]
        outcome.append(float(np.linalg.norm(last - best, axis=1).max() / np.linalg.norm(best)))
    return float(np.median(outcome))


@pytest.mark.slow
def test_a_receiver_that_is_wrong_by_one_percent_spoils_learning_unless_a_reference_is_renewed() -> None:
    for_good, renewed = drifts(0, calibration_error=0.01), drifts(20, calibration_error=0.01)
    new_each_time = drifts(0, compensation_error=0.01)
    assert renewed < 0.01 < new_each_time < 0.3 < for_good


@pytest.mark.slow
def test_a_renewed_reference_is_recomputed_and_costs_nothing() -> None:
    plan = planned(mc.Radio(recentre_every=5), rounds=2)
    algorithm = mc.power_controlled(plan)
    assert [one.name for one in algorithm.rounds] == ["model", "mixing2", "reference"]
    result = mc.run(algorithm, problem())
    assert mc.certify(result).verdict == "kept"
    np.testing.assert_array_equal(plan.certificate.mu, planned(mc.Radio(), rounds=2).certificate.mu)


def a_trace(steps: int = 5) -> mc.ChannelTrace:
    rng = np.random.default_rng(9)
    turned = rng.normal(size=(steps, NODES, NODES, 2)) @ [1, 1j]
    return mc.ChannelTrace(gains=1e-4 * asymmetric_network(4, NODES).gains.toarray() * turned)


def planned_on(trace: mc.ChannelTrace, rounds: int = 1, z: Any = None, **settings: Any) -> Plan:
    radio = mc.Radio(trace=trace, repeat=True, **settings)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.02, rounds=rounds, noise_timing="aligned")
    network = trace.network(power=radio.power_w)
    return mc.plan(network, problem(), mc.Budget(epsilon=2.0), schedule, radio=radio, z=z)


@pytest.mark.parametrize(("rounds", "z"), [(1, None), (2, "recursive")])
@pytest.mark.slow
def test_a_trace_costs_no_privacy_whatever_z_is(rounds: int, z: Any) -> None:
    """The plan's certificate, recomputed; z by the plain formulas from the weights of every epoch."""
    plan = planned_on(a_trace(), rounds, z)
    still = planned(mc.Radio(), rounds)
    np.testing.assert_allclose(plan.certificate.epsilon, still.certificate.epsilon, rtol=1e-9)
    algorithm = mc.power_controlled(plan)
    result = mc.run(algorithm, problem())
    outcome = mc.certify(result)
    assert outcome.verdict == "kept"
    np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-9)
    used = algorithm.rounds[-1].receiving.z
    channel: Any = algorithm.rounds[0].channel
    weights = np.linalg.matrix_power(channel.clear_weights(np.arange(1, EPOCHS + 1)).real, rounds)
    if z is None:
        values, vectors = np.linalg.eig(weights.mean(axis=0).T)
        pi = vectors[:, np.argmax(values.real)].real
        np.testing.assert_allclose(used, np.broadcast_to(pi / pi.sum(), used.shape), rtol=1e-5)
        return
    influence = np.eye(NODES)
    for epoch in range(EPOCHS):
        np.testing.assert_allclose(used[epoch], influence.diagonal(), rtol=1e-4)
        influence = weights[epoch] @ influence
    noise = algorithm.rounds[0].sending.noise  # of the row after, which hides what z divided
    np.testing.assert_allclose(noise[1:] * used[:-1] / (noise[0] * plan.z[:-1]), 1, rtol=1e-9)


@pytest.mark.slow
def test_resumed_and_rechunked_runs_on_a_trace_change_no_bit(tmp_path: Path) -> None:
    algorithm, task = mc.power_controlled(planned_on(a_trace(), rounds=2)), problem()
    whole = mc.run(algorithm, task, options=mc.RunOptions(evaluate_every=12))

    def stop(done: int, of: int, metrics: dict[str, float]) -> None:  # noqa: ARG001
        if done == 8:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mc.run(algorithm, task, options=mc.RunOptions(evaluate_every=4, folder=tmp_path, on_progress=stop))
    again = mc.RunOptions(evaluate_every=4, folder=tmp_path, resume=True)
    other = mc.power_controlled(planned_on(mc.ChannelTrace(gains=a_trace().gains * np.exp(1j)), rounds=2))
    with pytest.raises(mc.Error, match="other data"):  # the same amplitudes with other phases
        mc.run(other, task, options=again)
    resumed = mc.run(algorithm, task, options=again)
    np.testing.assert_array_equal(resumed.published, whole.published)


def test_observers_of_a_trace_learn_no_more_than_is_certified() -> None:
    plan = planned_on(a_trace(), access="aligned", duplex="full")
    outcome = mc.observe(plan).linear_common((0,))
    assert outcome.max() > 0.1
    assert (outcome <= plan.certificate.mu * (1 + 1e-9)).all()


def test_z_above_1_is_refused_where_the_ledger_only_names_the_trace() -> None:
    result = mc.run(mc.power_controlled(planned_on(a_trace())), problem())
    ledger = result.ledger.assign(model_receiving_z=result.ledger["model_receiving_z"] * 0 + 1.1)
    forged = mc.Result(metrics=result.metrics, ledger=ledger, published=result.published, info=result.info)
    with pytest.raises(mc.Error, match="above 1"):
        mc.certify(forged)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(mc.Error, match="nothing says how much of a trace"):
        planned_on(a_trace(), z="predicted")
    with pytest.raises(mc.Error, match="weights change"):
        planned_on(a_trace(), z="perron")
    boundless = replace(planned(mc.Radio()), problem=mc.Quadratic.random(NODES, DIM))
    with pytest.raises(mc.Error, match=r"problem\.radius"):
        mc.power_controlled(boundless)
    with pytest.raises(mc.Error, match="do not change"):
        planned(mc.Radio(), z="mean")
    with pytest.raises(mc.Error, match="weights change"):
        planned(mc.Radio(fading="iid"), z="perron")
    with pytest.raises(mc.Error, match="without dither"):
        mc.Radio(access="referenced", dither=False)
