"""Modules by name: shipped ones with their options, and those of users' own, by where they are."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.problems.modules import registry
from murmurcast.problems.modules.shipped import SHIPPED

DIGITS = mc.datasets.digits()


def build(name: str, **options: Any) -> Any:
    return registry.build(name, DIGITS, options, 0)


@pytest.mark.slow
def test_shipped_modules_fit_the_data() -> None:
    sizes = {
        name: sum(leaf.size for leaf in jax.tree.leaves(build(name).initialise(jax.random.key(0)))) for name in SHIPPED
    }
    assert sizes["softmax"] == 65 * 10
    assert sizes["ridge"] == 64 * 10
    assert sizes["mlp"] == 65 * 64 + 65 * 10
    assert sizes["small-cnn"] == (26 * 16) + (25 * 16 * 32 + 32) + (2 * 2 * 32 * 32 + 32) + 33 * 10
    assert build("mlp", hidden=[3, 4], activation="relu").sizes == (64, 3, 4, 10)


@pytest.mark.slow
def test_images_are_cut_as_asked() -> None:
    wide = build("small-cnn", image=[4, 16], channels=[2], kernel=3)
    assert wide.image == (4, 16, 1)
    coloured = mc.modules.small_cnn(48, 3, image=(4, 4, 3), channels=(2, 4), groups=2)
    result = coloured.apply(coloured.initialise(jax.random.key(0)), jnp.ones(48))
    assert result.shape == (3,)


@pytest.mark.slow
def test_a_convolution_is_that_of_jax() -> None:
    """Patches times a kernel, against JAX's own convolution of stride 2, with zeros around the image."""
    from murmurcast.problems.modules import convolution

    for width in (2, 3, 5):
        image = jnp.asarray(np.random.default_rng(1).standard_normal((7, 6, 2)), jnp.float32)
        kernel = jnp.asarray(np.random.default_rng(2).standard_normal((width, width, 2, 4)), jnp.float32)
        result = convolution._patches(image, width) @ kernel.reshape(-1, 4)
        around = ((width - 1) // 2, width // 2)
        expected = jax.lax.conv_general_dilated(
            image[None], kernel, (2, 2), (around, around), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )[0]
        rows, columns = min(len(result), len(expected)), min(result.shape[1], expected.shape[1])
        assert result.shape[:2] == (4, 3)
        np.testing.assert_allclose(result[:rows, :columns], expected[:rows, :columns], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "words", "hint"),
    [
        ("mpl", {}, 'no module "mpl"', "mlp"),
        ("mlp", {"width": 3}, "unexpected keyword argument 'width'", "hidden, activation"),
        ("mlp", {"hidden": [0]}, "units is 0", ""),
        ("mlp", {"hidden": "much"}, "hidden", "such as hidden=[64]"),
        ("mlp", {"activation": "tanhh"}, "activation", "tanh"),
        ("small-cnn", {"image": [8, 9]}, "no image of 8 x 9", "image = "),
        ("small-cnn", {"image": [64]}, "no image of 64", "image = "),
        ("small-cnn", {"image": []}, "no image of nothing", "image = "),
        ("small-cnn", {"image": [4, 4, 2, 2]}, "no image of 4 x 4 x 2 x 2", "image = "),
        ("small-cnn", {"groups": 5}, "cannot be cut into 5 groups", "divide"),
        ("nowhere_at_all:net", {}, "cannot be found: ModuleNotFoundError", "PYTHONPATH"),
        ("math:nothing", {}, "cannot be found: AttributeError", "package.module:name"),
        ("math:pi", {}, "is float, expected a module", "features, outputs"),
        ("math:sqrt", {}, "cannot be made", "features and outputs"),
        ("builtins:max", {}, "does not say what it takes", "returns a module"),
        ("operator:truediv", {"c": 1}, "cannot be made", "features and outputs"),
    ],
)
def test_what_is_no_module_is_said(name: str, options: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        build(name, **options)
    assert hint in raised.value.hint


@pytest.mark.slow
def test_a_module_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of the data's shape and options, or a module as it stands; a file that fails says why."""
    (tmp_path / "nets_of_mine.py").write_text(
        "import equinox as eqx\n"
        "def net(features, outputs, *, width=2):\n"
        "    return lambda key: eqx.nn.MLP(features, outputs, width, 1, key=key)\n"
        "from flax import linen\nstanding = linen.Dense(10)\n"
        "def fails(features, outputs):\n    raise KeyError('no such layer')\n"
    )
    (tmp_path / "broken_nets_of_mine.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    data = DIGITS.partition("quantity", 4, seed=1)
    for name, options, dim in (("net", {"width": 3}, 65 * 3 + 4 * 10), ("standing", {}, 650)):
        module = build(f"nets_of_mine:{name}", **options)
        assert mc.Model(data=data, module=module, loss="cross-entropy").dim == dim
    with pytest.raises(mc.Error, match="takes no options"):
        build("nets_of_mine:standing", width=3)
    with pytest.raises(mc.Error, match="cannot be made: KeyError: 'no such layer'") as raised:
        build("nets_of_mine:fails")
    assert "64 features, 10 outputs" in raised.value.hint
    with pytest.raises(mc.Error, match="RuntimeError: not today"):
        build("broken_nets_of_mine:net")
