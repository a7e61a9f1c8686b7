"""A clip knows the sensitivity it gives, and what cannot rest on it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.problems.clip import Clip, norm, shrink, smallest_limit


@pytest.mark.parametrize(("per", "bounds"), [("node", True), ("example", True), ("layer", True), ("none", False)])
def test_unit_node_moves_by_twice_the_limit(per: Any, bounds: bool) -> None:
    clip = Clip(limit=0.7, per=per, examples_per_node=[10, 20])
    np.testing.assert_allclose(clip.sensitivity("node", 2), 1.4)
    assert clip.bounds is bounds


def test_unit_record_moves_by_its_share() -> None:
    clip = Clip(limit=0.5, per="example", examples_per_node=[10, 20, 40])
    np.testing.assert_allclose(clip.sensitivity("record", 3), [0.1, 0.05, 0.025])
    clip.require_unit("record")
    same = Clip(limit=0.5, per="example", examples_per_node=10)
    np.testing.assert_allclose(same.sensitivity("record", 3), 0.1)


def test_layers_share_the_limit() -> None:
    """Each is shortened to limit / sqrt(L), so that all together keep the limit, and the sensitivity is as before."""
    clip = Clip(limit=0.6, per="layer", examples_per_node=10)
    assert 3**0.5 * clip.for_layers(3).limit == pytest.approx(0.6)
    np.testing.assert_allclose(clip.sensitivity("record", 3), 0.12)
    clip.require_unit("record")
    scales = clip.for_layers(4).of_examples(jnp.array([1.0, 0.0]), jnp.array([0.6, 0.6]))
    np.testing.assert_allclose(scales, [0.5, 0.0])


def test_what_cannot_rest_on_a_clip_is_refused() -> None:
    with pytest.raises(Error, match="number of examples"):
        Clip(limit=1.0, per="example").sensitivity("record", 3)
    with pytest.raises(Error, match="every example") as raised:
        Clip(limit=1.0, per="node").require_unit("record")
    assert "example" in raised.value.hint
    Clip(limit=1.0, per="node").require_unit("node")
    for limit, per in ((0.0, "node"), (float("nan"), "node"), (1.0, "nodes")):
        with pytest.raises(Error):
            Clip(limit=limit, per=per)  # type: ignore[arg-type]


def test_a_node_is_shortened_and_never_lengthened() -> None:
    clip = Clip(limit=1.0, per="node")
    long, short = jnp.array([3.0, 4.0]), jnp.array([0.3, 0.4])
    np.testing.assert_allclose(clip.of_node(long), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_array_equal(clip.of_node(short), short)
    np.testing.assert_array_equal(Clip(limit=1.0, per="example").of_node(long), long)


def test_a_mean_is_shortened_only_by_what_rounding_can_have_added() -> None:
    clip = Clip(limit=0.3, per="example")
    for most in (1.0, 2.5):
        ball = 0.3 * most
        for size, expected in ((0.5, 1.0), (1.0, 1.0), (1 + 3e-7, 1.0), (1 + 1e-4, 1 + 1e-4), (2.0, 2.0)):
            mean = jnp.asarray(ball * size * np.array([0.6, 0.8]), jnp.float32)
            excess = float(clip.excess(mean, most))
            assert excess == pytest.approx(expected, rel=1e-6)
            assert (excess == 1) is (expected == 1)  # to the bit: an ordinary mean stays as it is
    vast = Clip(limit=1e25, per="layer")
    assert float(vast.excess(jnp.full(4, 0.5e25, jnp.float32))) == 1  # whose square float32 cannot hold
    for per in ("node", "none"):
        assert Clip(limit=0.3, per=per).excess(jnp.ones(4)) == 1
    with jax.enable_x64(True):
        assert clip.excess(jnp.ones(4, jnp.float64)) == 1  # where the account of secure noise counts roundings


def test_examples_are_shortened_one_by_one_and_filling_stays_out() -> None:
    present, norms = jnp.array([1.0, 1.0, 0.0]), jnp.array([4.0, 0.5, 9.0])
    np.testing.assert_allclose(Clip(limit=1.0, per="example").of_examples(present, norms), [0.25, 1.0, 0.0])
    np.testing.assert_array_equal(Clip(limit=1.0, per="none").of_examples(present, norms), present)
    assert float(norm(jnp.array([[3.0], [4.0]]))) == 5.0
    assert float(shrink(jnp.asarray(0.0), 2.0)) == 1.0


def test_below_the_smallest_limit_longer_vectors_pass_and_above_none_does() -> None:
    dim = 50
    # Entries whose squares float32 cannot hold: a hundred thousand times longer than the limit, and not noticed.
    passed = Clip(limit=1e-24, per="node").of_node(jnp.full(dim, 1e-20, jnp.float32))
    assert float(np.linalg.norm(np.asarray(passed, np.float64))) > 1e4 * 1e-24
    least = smallest_limit(dim, "float32")
    clip = Clip(limit=least, per="node")
    generator = np.random.default_rng(5)
    for scale in 10.0 ** np.arange(-24, 4, 0.5):
        vector = jnp.asarray(scale * generator.uniform(0.5, 1, dim) * generator.choice([-1, 1], dim), jnp.float32)
        kept = np.linalg.norm(np.asarray(clip.of_node(vector), np.float64))
        assert kept <= least * (1 + 1e-5)


def test_the_smallest_limit_grows_with_parameters_and_features_and_shrinks_with_precision() -> None:
    one = smallest_limit(1, "float32")
    assert one == pytest.approx(np.sqrt(2.0**-126 / 2.0**-23))
    assert smallest_limit(100, "float32") == pytest.approx(10 * one)
    assert smallest_limit(1, "float32", 30.0) == pytest.approx(30 * one)
    assert smallest_limit(10**9, "float64", 1e12) < 1e-100
