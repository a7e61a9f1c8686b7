"""What a checkpoint says that it is of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.checkpoint import digest
from tests.conftest import asymmetric_network


@pytest.mark.parametrize("kept", [jnp.arange(3.0), jax.random.key(4)], ids=["numbers", "a key"])
def test_a_loss_that_holds_other_constants_is_another_run(kept: jax.Array) -> None:
    """Such as frozen layers, which no plan and no start tells of."""
    data = mc.datasets.logistic(examples=60, features=3, classes=2, seed=1).partition("quantity", nodes=4, seed=2)

    def digest_of(constant: jax.Array) -> str:
        def loss(parameters, example):  # type: ignore[no-untyped-def]
            is_key = jnp.issubdtype(constant.dtype, jax.dtypes.prng_key)
            scale = jax.random.uniform(constant, (3,)) if is_key else constant
            return jnp.sum((parameters["w"] - scale * example.features) ** 2)

        problem = mc.Model(data=data, initialise=lambda _: {"w": jnp.zeros(3)}, loss=loss, clip=1.0)
        budget = mc.Budget(epsilon=3.0, unit="record")
        plan = mc.plan(asymmetric_network(4, 4), problem, budget, mc.Schedule(epochs=3, step=0.1), z="perron")
        return digest(mc.power_controlled(plan), problem, (0,))

    assert digest_of(kept) == digest_of(kept)
    other = jax.random.key(5) if kept.ndim == 0 else kept.at[1].set(7)
    assert digest_of(kept) != digest_of(other)


def test_without_constants_nothing_is_added() -> None:
    data = mc.datasets.logistic(examples=60, features=3, classes=2, seed=1).partition("quantity", nodes=4, seed=2)
    assert mc.Model(data=data, module=mc.modules.mlp(3, 2, hidden=(2,)), loss="cross-entropy").constants_of_loss == ()
    assert np.isfinite(mc.SoftmaxRegression(data=data).dim)
