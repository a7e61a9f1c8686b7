"""Whatever the weights and the access: what nodes hear and keep comes to W V exactly, within their power."""

from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.mixer import Access, Mixer, Weights, mix, mixer, radiate
from murmurcast.algorithms.tracking import MixingFactors
from murmurcast.channels.base import Moment
from murmurcast.channels.colouring import slots_of_receivers, slots_of_senders
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from tests.algorithms.networks import one_way, two_way
from tests.algorithms.paths import heard_by
from tests.conftest import asymmetric_network
from tests.network.test_link_weights import rank_one

RNG = np.random.default_rng(0)


def setup_on(network: mc.Network) -> mc.Setup:
    return mc.Setup(
        network=network,
        problem=mc.ClippedGradients(),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=3),
    )


def plan_on(network: mc.Network) -> Plan:
    alpha = tuple(np.random.default_rng(1).uniform(0.2, 0.8, network.nodes))
    setup = setup_on(network)
    return mc.plan(network, setup.problem, setup.budget, setup.schedule, power=mc.PowerRule(alpha=alpha))


def mixed(by: Mixer, said: Any) -> Any:
    """One round by the tables, through the real channel."""
    with jax.enable_x64(True):
        sent = jax.vmap(radiate)(jnp.asarray(by.amplitude[0]), jnp.asarray(said))
        nobody = Moment(jnp.asarray(1), jnp.arange(len(said)), lambda _: jnp.zeros(()))
        factors = MixingFactors(jnp.asarray(by.heard[0]), jnp.asarray(by.kept[0]))
        return np.asarray(jax.vmap(mix)(factors, sent, heard_by(by.channel, sent, nobody)))


NETWORKS = {"two-way": two_way(), "one-way": one_way(), "rank one": rank_one(3), "random": asymmetric_network(8)}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("access", get_args(Access))
@pytest.mark.parametrize("weights", get_args(Weights))
def test_what_is_heard_and_kept_is_the_weighed_sum(weights: Any, access: Any, network: str) -> None:
    setup = setup_on(NETWORKS[network])
    try:
        by = mixer(setup, weights, access)
    except Error as refused:
        one_way_links = network == "one-way" and weights in ("sinkhorn", "max-degree", "metropolis")
        not_by_air = access == "air" and weights in ("max-degree", "metropolis", "out-degree")
        assert one_way_links or not_by_air, refused  # noqa: PT017 - nothing else may be refused
        return
    said = RNG.normal(size=(setup.network.nodes, 3))
    np.testing.assert_allclose(mixed(by, said), by.weights @ said, rtol=1e-12, atol=1e-13)
    require_sums(by, weights)
    amplitude = by.amplitude[0] if by.amplitude[0].ndim == 1 else by.amplitude[0].max(axis=1)
    over = amplitude**2 / setup.network.power
    assert over.max() <= 1 + 1e-12
    assert over.max() == pytest.approx(1.0)  # somebody sends with all its power, else all could be louder
    assert (
        by.channel.uses
        == {
            "air": 1,
            "orthogonal": slots_of_senders(setup.network.gains),
            "slots": slots_of_receivers(setup.network.gains),
        }[access]
    )


def require_sums(by: Mixer, weights: str) -> None:
    dense = by.weights.toarray()
    if weights not in ("column", "out-degree"):
        np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-13)
    if weights != "row":
        np.testing.assert_allclose(dense.sum(axis=0), 1, atol=1e-13)
    assert (dense >= 0).all()


def test_rows_of_a_plan_leave_power_for_its_noise() -> None:
    plan = plan_on(two_way())
    by = mixer(plan, "row")
    np.testing.assert_allclose(by.amplitude[0] ** 2, plan.alpha * plan.network.power)
    np.testing.assert_allclose(by.weights.toarray(), plan.mixing.weights.toarray())
    said = RNG.normal(size=(5, 2))
    np.testing.assert_allclose(mixed(by, said), plan.mixing.weights @ said, rtol=1e-12, atol=1e-13)


def test_an_unknown_access_is_refused() -> None:
    with pytest.raises(mc.Error, match="access"):
        mixer(setup_on(two_way()), "row", "wire")  # type: ignore[arg-type]
