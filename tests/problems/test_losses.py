"""Losses by name, against their formulas and JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.problems.losses import LOSSES, named_loss, outputs_for

OUTPUTS = jnp.asarray([0.3, -2.0, 1.5])


@pytest.mark.slow
def test_cross_entropy_and_its_slope() -> None:
    loss = LOSSES["cross-entropy"].of
    for target in range(3):
        value, slope = jax.value_and_grad(loss)(OUTPUTS, jnp.asarray(target))
        np.testing.assert_allclose(value, -jax.nn.log_softmax(OUTPUTS)[target], rtol=1e-6)
        np.testing.assert_allclose(slope, jax.nn.softmax(OUTPUTS) - np.eye(3)[target], rtol=1e-5, atol=1e-6)


def test_squared_error_and_its_slope() -> None:
    value, slope = jax.value_and_grad(LOSSES["squared-error"].of)(jnp.asarray([3.0]), jnp.asarray(1.0))
    assert (float(value), slope.tolist()) == (2.0, [2.0])


def test_a_loss_fits_the_targets() -> None:
    labels, values = mc.datasets.digits(), mc.datasets.least_squares(examples=20, features=2)
    assert named_loss("cross-entropy", labels).labels
    assert not named_loss("squared-error", values).labels
    assert (outputs_for(labels), outputs_for(values)) == (10, 1)
    for name, dataset, fitting in (
        ("squared-error", labels, "cross-entropy"),
        ("cross-entropy", values, "squared-error"),
    ):
        with pytest.raises(mc.Error, match=f"not for {name}") as raised:
            named_loss(name, dataset)
        assert fitting in raised.value.hint
    with pytest.raises(mc.Error, match="hinge"):
        named_loss("hinge", labels)
