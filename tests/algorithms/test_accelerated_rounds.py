"""Accelerated rounds: NumPy's numbers, the certificate of plain rounds, and edited ledgers refused."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.planning.plan import Plan
from tests.algorithms.paths import LocalWork, draws_of, trace
from tests.certificates.ledger_edits import caught, scaled, with_ledger
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS, ROUNDS = 6, 4, 8, 4


def problem() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, clip=1e3, ball=50.0, seed=2)


def planned(rounds: int = ROUNDS, *, accelerated: bool = True, **more: Any) -> Plan:
    schedule = mc.Schedule(epochs=EPOCHS, step=0.02, noise_timing="aligned", rounds=rounds, accelerated=accelerated)
    z = more.pop("z", "perron")
    return mc.plan(asymmetric_network(4, NODES), problem(), mc.Budget(epsilon=2.0), schedule, z=z, **more)


def polynomial(plan: Plan) -> FloatArray:
    """[nodes, nodes] what the rounds of an epoch make of V, by the recursion of matrices."""
    weights = plan.mixing.weights.toarray()
    radius = np.sort(np.abs(np.linalg.eigvals(weights)))[-2]
    before, now, lead = np.eye(NODES), weights, 1.0
    for number in range(1, ROUNDS):
        lead = 1 / (1 - radius**2 / 2) if number == 1 else 1 / (1 - radius**2 * lead / 4)
        before, now = now, lead * weights @ now + (1 - lead) * before
    return np.asarray(now)


def by_hand(plan: Plan, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """[epochs, nodes, dim] own models and mixed points under given normal draws [epochs, nodes, dim]."""
    task, built, pi = problem(), polynomial(plan), plan.perron
    own, owns, points = np.zeros((NODES, DIM)), [], []
    for epoch in range(EPOCHS):
        said = own + plan.effective_noise[epoch][:, None] * noise[epoch]
        mixed = built @ said
        gradient = np.einsum("kij,kj->ki", task.curvature, mixed - task.centre)
        own = mixed - plan.schedule.steps[epoch] * gradient / pi[:, None]
        owns.append(own)
        points.append(mixed)
    return np.array(owns), np.array(points)


def test_rounds_follow_the_recursion_under_noise() -> None:
    plan, task = planned(), problem()
    noise = np.random.default_rng(7).normal(size=(EPOCHS, NODES, DIM))
    with jax.enable_x64(True):
        algorithm = mc.power_controlled(plan)
        curvature, centre = jnp.asarray(task.curvature), jnp.asarray(task.centre)

        def gradient(number: Any, epoch: Any, point: Any) -> Any:  # noqa: ARG001
            return curvature[number] @ (point - centre[number])

        drawn = draws_of(algorithm, lambda name, draw: jnp.asarray(noise))  # noqa: ARG005
        path = trace(algorithm, drawn, jnp.zeros((NODES, DIM)), LocalWork(gradient, gradient))
    owns, points = by_hand(plan, noise)
    scale = np.abs(points).max()
    np.testing.assert_allclose(path.states.published, points, atol=1e-10 * scale)
    np.testing.assert_allclose(path.states.own, owns, atol=1e-10 * scale)
    assert [one.name for one in algorithm.rounds] == ["model", "mixing2", "mixing3", "mixing4"]
    assert algorithm.channel_uses == ROUNDS
    amplitude = np.sqrt(plan.alpha * plan.network.power)[:, None]
    # What the second round sends is A V, a function of what the first sent.
    first, second = (np.asarray(path.sent[number]) / amplitude for number in (0, 1))
    np.testing.assert_allclose(second, plan.mixing.weights.toarray() @ first, atol=1e-10 * scale)


def test_models_agree_sooner_than_by_plain_rounds() -> None:
    spreads = {}
    for accelerated in (False, True):
        result = mc.run(mc.noiseless(planned(accelerated=accelerated)), problem(), precision="float64")
        spreads[accelerated] = float(np.ptp(result.published[0], axis=0).max())
    assert spreads[True] < 0.7 * spreads[False]


@lru_cache
def finished() -> mc.Result:
    return mc.run(mc.power_controlled(planned()), problem())


def test_the_certificate_is_that_of_plain_rounds_and_is_recomputed() -> None:
    plan = planned()
    np.testing.assert_array_equal(plan.certificate.mu, planned(1, accelerated=False).certificate.mu)
    outcome = mc.certify(finished())
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-9)


def with_one_changed(name: str, factor: float) -> Any:
    def edit(ledger: xr.Dataset) -> xr.Dataset:
        values = np.array(ledger[name])
        values.flat[1] *= factor
        return ledger.assign({name: (ledger[name].dims, values)})

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        with_one_changed("mixing3_receiving_lead", 1.01),  # other weights at one node: pi would move
        scaled("mixing2_receiving_lead", 0.5),
        scaled("mixing4_receiving_lead", 2.0),
        scaled("model_receiving_said", 2.0),
        with_one_changed("mixing4_receiving_z", 1.1),
        lambda ledger: ledger.drop_vars("mixing3_receiving_lead"),
        lambda ledger: ledger.drop_vars("model_receiving_said"),
    ],
)
def test_edited_ledgers_are_refused(edit: Any) -> None:
    assert caught(with_ledger(finished(), edit(finished().ledger)))


def test_where_it_does_not_fit_it_is_refused() -> None:
    with pytest.raises(mc.Error, match="there is one"):
        planned(1)
    with pytest.raises(mc.Error, match='z is "recursive"'):
        planned(z="recursive")
    assert planned(z=None).z_rule == "perron"
    with pytest.raises(mc.Error, match="lean on two earlier ones"):
        mc.observe(planned()).linear((0,))
    radio, budget = mc.Radio(), mc.Budget(epsilon=2.0)
    far = mc.Network(gains=asymmetric_network(4, NODES).gains * 1e-4, power=np.broadcast_to(radio.power_w, NODES))
    with pytest.raises(mc.Error, match="radio's noise"):
        mc.plan(far, problem(), budget, planned().schedule, radio=radio)
    turning = mc.Network(gains=np.eye(5)[[1, 2, 3, 4, 0]] + 1e-4 * np.eye(5)[[4, 0, 1, 2, 3]])
    schedule = mc.Schedule(epochs=EPOCHS, rounds=6, accelerated=True)
    plan = mc.plan(turning, mc.ClippedGradients(), budget, schedule)
    with pytest.raises(mc.Error, match="turn too much"):
        mc.power_controlled(plan)


@pytest.mark.slow
def test_an_audit_looks_and_says_where_it_could_not() -> None:
    outcome = mc.audit(mc.power_controlled(planned()), problem(), options=mc.AuditOptions())
    assert outcome.verdict == "not falsified"
    assert any("accelerated" in line for line in outcome.unseen)
