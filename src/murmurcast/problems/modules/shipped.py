"""The modules that come with the package, each a function of the data's shape and of options.

A module of your own is named in a file by where it is, "my_nets:small_cnn", and is such a function too: it takes
`features` and `outputs` and returns whatever `mc.Model` takes as its module.
"""

import math
from collections.abc import Sequence

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.convolution import SmallCnn
from murmurcast.problems.modules.dense import ACTIVATIONS, DenseStack


def mlp(features: int, outputs: int, *, hidden: Sequence[int] = (64,), activation: str = "tanh") -> DenseStack:
    """A network of dense layers, whose examples are clipped in closed form.

    Args:
        features: Of an example.
        outputs: One for every class, or 1 for a value.
        hidden: Units of every hidden layer.
        activation: "tanh", "relu", "gelu" or "sigmoid"; bounded ones do better under clipping.
    """
    units = _check.whole_numbers("[64]", hidden=hidden)
    for size in (features, outputs, *units):
        _check.at_least(1, units=size)
    _check.one_of(ACTIVATIONS, activation=activation)
    return DenseStack((features, *units, outputs), activation)


def softmax(features: int, outputs: int) -> DenseStack:
    """Multinomial logistic regression, begun at 0: for the loss "cross-entropy"."""
    return DenseStack((features, outputs), random=False)


def ridge(features: int, outputs: int = 1) -> DenseStack:
    """Linear regression without intercept, begun at 0: for the loss "squared-error"."""
    return DenseStack((features, outputs), bias=False, random=False)


def small_cnn(
    features: int,
    outputs: int,
    *,
    image: Sequence[int] | None = None,
    channels: Sequence[int] = (16, 32),
    kernel: int = 5,
    hidden: int = 32,
    groups: int = 0,
) -> SmallCnn:
    """Convolutions of stride 2, a hidden layer and outputs, with tanh between them.

    Args:
        features: Of an example: rows x columns x channels of an image, in this order.
        outputs: One for every class, or 1 for a value.
        image: Rows and columns of an image, and its channels if it has more than one; by default a square of one.
        channels: Of every convolution.
        kernel: Width of a convolution.
        hidden: Units of the hidden layer.
        groups: Of a group norm behind every convolution; 0 leaves it out.
    """
    side = math.isqrt(features)
    sizes = _check.whole_numbers("[28, 28]", image=(side, side) if image is None else image)
    if len(sizes) not in (2, 3) or math.prod(sizes) != features:
        raise Error(
            f"an example has {features} features, which is no image of {' x '.join(map(str, sizes)) or 'nothing'}",
            hint="give rows, columns and channels: image = [28, 28], or image = [32, 32, 3]",
        )
    rows, columns, *depth = sizes
    widths = _check.whole_numbers("[16, 32]", channels=channels)
    for size in (kernel, hidden, outputs, rows, columns, *widths):
        _check.at_least(1, units=size)
    _check.at_least(0, groups=groups)
    if groups and any(width % groups for width in widths):
        raise Error(f"channels {list(widths)} cannot be cut into {groups} groups", hint="let groups divide all of them")
    return SmallCnn((rows, columns, math.prod(depth)), widths, kernel, hidden, outputs, groups)


SHIPPED = {"mlp": mlp, "small-cnn": small_cnn, "softmax": softmax, "ridge": ridge}
