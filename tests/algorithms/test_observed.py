"""What observers learn of a plan over a radio, or in several rounds: of what their antennas really have."""

from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import over_radio
from murmurcast.algorithms.observed import is_too_large
from murmurcast.channels.antennas import antennas
from murmurcast.channels.base import Moment
from murmurcast.engine.sharding import Gathered
from murmurcast.radio.settings import Radio
from tests.conftest import asymmetric_network

NODES, EPOCHS = 5, 7


@lru_cache
def planned(access: str | None, fading: str = "none", rounds: int = 1, **options: Any) -> mc.Plan:
    radio = None if access is None else Radio(access=access, fading=fading, **options)  # type: ignore[arg-type]
    shape = asymmetric_network(3, NODES).gains.toarray()
    network = mc.Network(gains=shape * (1 if radio is None else 1e-4), power=0.1)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.2, noise_timing="aligned", rounds=rounds)
    problem = mc.Quadratic.random(NODES, 4, seed=1, ball=50.0)
    return mc.plan(network, problem, mc.Budget(epsilon=2.0), schedule, radio=radio)


def test_the_ideal_channel_in_one_round_is_the_plans_own() -> None:
    plan = planned(None)
    result = mc.observe(plan)
    np.testing.assert_array_equal(result.linear_common((1,)), plan.linear_common((1,)))
    np.testing.assert_array_equal(result.linear((1,)), plan.linear((1,)))
    np.testing.assert_array_equal(result.collusion().pair_mu, plan.collusion().pair_mu)


@pytest.mark.parametrize(("access", "rounds"), [("own-slot", 1), (None, 2)])
def test_a_plan_gives_no_number_of_another_channel(access: str | None, rounds: int) -> None:
    plan = planned(access, rounds=rounds)
    for ask in (lambda: plan.linear((0,)), lambda: plan.linear_common((0,)), plan.collusion):
        with pytest.raises(mc.Error, match="ideal channel in one round") as raised:
            ask()
        assert "murmurcast.observe(plan)" in raised.value.hint
    with pytest.raises(mc.Error, match="network amplification of a plan is that of the ideal channel") as refused:
        plan.amplified((0,), 1.0)
    assert "proved for that channel only" in refused.value.hint
    assert any("Corollary not checked" in line for line in plan.warnings)


@pytest.mark.slow
def test_a_radio_that_is_nearly_ideal_tells_what_the_ideal_channel_tells() -> None:
    ideal = planned(None)
    radio = planned("aligned", duplex="full", noise_figure_db=-100.0, self_interference_db=300.0)
    for members in ((0,), (2,), (1, 3)):
        np.testing.assert_allclose(
            mc.observe(radio).linear_common(members), ideal.linear_common(members), rtol=2e-3, atol=1e-6
        )
    np.testing.assert_allclose(
        mc.observe(radio).linear((2,)).mu_worst_upper, ideal.linear((2,)).mu_worst_upper, rtol=2e-3, atol=1e-6
    )


@pytest.mark.parametrize("access", ["own-slot", "digital"])
def test_who_hears_a_sender_alone_learns_nearly_all_that_is_certified(access: str) -> None:
    """Nothing of others hides what is heard alone; only what the target heard from elsewhere is not known."""
    plan = planned(access)
    result, certified = mc.observe(plan).collusion(), plan.certificate.mu
    for receiver in range(NODES):
        near = np.array(sorted(plan.network.neighbours(receiver)))
        assert (result.single_mu[receiver, near] > 0.95 * certified[near]).all()
        far = np.setdiff1d(np.arange(NODES), [*near, receiver])
        assert (result.single_mu[receiver, far] < 0.9 * certified[far]).all()
    assert (result.single_mu <= certified * (1 + 1e-9)).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("access", "fading", "rounds"),
    [("aligned", "iid", 1), ("referenced", "none", 1), ("own-slot", "jakes", 2), ("referenced", "iid", 2)],
)
def test_nobody_learns_more_than_is_certified(access: str, fading: str, rounds: int) -> None:
    plan = planned(access, fading, rounds)
    result = mc.observe(plan)
    assert (result.collusion().pair_mu <= plan.certificate.mu * (1 + 1e-9)).all()
    worst = result.linear((0, 2))
    assert (worst.mu_worst_upper <= plan.certificate.mu * (1 + 1e-6)).all()
    assert (worst.mu_common[[1, 3, 4]] > 0).all()


def test_further_rounds_tell_observers_more_than_a_mixture_of_all_rounds() -> None:
    """An observer hears every round; who looked at A^2 alone would see too little."""
    once, twice = planned(None), planned(None, rounds=2)
    result = mc.observe(twice).linear_common((0,))
    squared = np.linalg.matrix_power(twice.mixing.weights.toarray(), 2)
    from murmurcast.privacy import linear

    system = mc.observe(twice).system
    assert system is not None
    last_only = linear.common_direction(squared, (0,), system.effective_noise, system.push)
    first_only = once.linear_common((0,))
    assert (result[1:] > last_only[1:] * (1 + 1e-6)).all()
    assert result[1:].sum() > first_only[1:].sum()


@pytest.mark.parametrize(("access", "fading"), [("aligned", "iid"), ("own-slot", "iid"), ("referenced", "none")])
@pytest.mark.slow
def test_weights_and_noise_are_those_that_the_channel_delivers(access: str, fading: str) -> None:
    """Against `deliver` itself, in float32 and in float64: what is drawn in public is the same in both."""
    plan = planned(access, fading)
    assert plan.radio is not None
    channel = over_radio.carrier(plan, plan.radio).channels[0]
    epoch, result = 3, channel.realised(np.array([3]))
    for double in (False, True):
        with jax.enable_x64(double):
            heard = [np.asarray(_delivered(channel, epoch, sender)) for sender in range(NODES)]
            quiet = _delivered(channel, epoch, None, noise=1.0)
        loud = channel.physics.amplitude * channel.physics.scale[epoch - 1]
        columns = np.stack(heard, axis=1) * loud[None, :, None]  # [receiver, sender, 2 coordinates]
        np.testing.assert_allclose(columns[..., 0], result.weights[0].real, atol=2e-5)
        np.testing.assert_allclose(columns[..., 1], result.weights[0].imag, atol=2e-5)
        np.testing.assert_allclose(np.asarray(quiet)[:, 0], result.noise[0], rtol=1e-4)


def _delivered(channel: Any, epoch: int, sender: int | None, noise: float = 0.0) -> Any:
    """[receivers, 2] what everybody makes of one sender's symbol 1 + 0i, and of its own noise."""
    import jax.numpy as jnp

    lists = jax.tree.map(jnp.asarray, channel.lists(NODES))
    sent = np.zeros((NODES, 1, 2))
    if sender is not None:
        sent[sender, 0, 0] = 1.0

    class Alone:
        reach = staticmethod(Gathered)
        total = staticmethod(lambda values: values.sum(axis=0))

    moment = Moment(jnp.asarray(epoch), jnp.arange(NODES), lambda _: jnp.full((1, 2), noise))
    listed, hear = channel.deliver(lists, jnp.asarray(sent), moment, Alone())
    return jax.vmap(hear)(listed)[:, 0]


def test_an_observer_in_half_duplex_hears_in_every_slot_in_which_it_is_silent() -> None:
    plan = planned("aligned")
    assert plan.radio is not None
    channel: Any = over_radio.carrier(plan, plan.radio).channels[0]
    turn, linked = channel.physics.slots.turn, plan.network.gains.toarray() > 0
    for observer in range(NODES):
        rows = antennas(channel, np.array([1]))((observer,))[0]
        silent = [slot for slot in range(turn.max() + 1) if not linked[observer, turn == slot].any()]
        assert len(rows) == len(silent) >= 1
        for row, slot in zip(rows, silent, strict=True):
            expected = linked[:, observer] & linked[:, turn == slot].any(axis=1)
            np.testing.assert_array_equal(np.abs(row) > 0, expected)


def test_a_receiver_that_holds_has_heard_its_sum() -> None:
    """So weak a radio that pilots are lost: weights are 0, and what the antenna has is not."""
    plan = planned("aligned", duplex="full", power_dbm=20.0, hold_below=1e12)
    assert plan.radio is not None
    channel: Any = over_radio.carrier(plan, plan.radio).channels[0]
    weights = channel.weights(np.array([1, 2]))
    np.testing.assert_allclose(weights, np.broadcast_to(np.eye(NODES), weights.shape))
    assert (np.abs(antennas(channel, np.array([1, 2]))((0,))).sum(axis=2) > 0).all()
    assert mc.observe(plan).linear_common((0,)).max() > 0


def test_weights_of_too_many_epochs_are_refused() -> None:
    assert not is_too_large(planned("own-slot"))
    schedule = mc.Schedule(epochs=2_000_000, step=0.2, noise_timing="aligned", rounds=2)
    problem = mc.Quadratic.random(NODES, 4, seed=1)
    plan = mc.plan(asymmetric_network(3, NODES), problem, mc.Budget(epsilon=2.0), schedule, z="perron")
    assert is_too_large(plan)
    with pytest.raises(mc.Error, match="the weights of all of them at once"):
        mc.observe(plan).linear((0,))
