"""Training as one would write it in NumPy: nodes stacked in arrays, closed-form gradients, no loop over nodes.

float32, per-example clipping without per-example gradients, SFC64 noise, scipy CSR mixing.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float32]


def softmax_loop(
    features: Floats,
    labels: NDArray[np.int32],
    weights: csr_array,
    steps: Floats,
    noise_std: Floats,
    z: Floats,
    clip: float,
    batch: int | None,
    seed: int = 0,
) -> Floats:
    """Algorithm 1 with gradients at the mixed point.

    Args:
        features: [nodes, n, features].
        labels: [nodes, n].
        weights: A, receiver first.
        steps: [epochs].
        noise_std: [epochs, nodes] s, relative to the model.
        z: [nodes].
        clip: C.
        batch: Examples per node and epoch, drawn with replacement; None takes all.
        seed: Of the noise.

    Returns:
        [nodes, classes, features + 1] the own models.
    """
    generator = np.random.Generator(np.random.SFC64(seed))
    nodes, examples, width = features.shape
    classes = int(labels.max()) + 1
    models = np.zeros((nodes, classes, width + 1), np.float32)
    reach = np.sqrt(np.einsum("knd,knd->kn", features, features) + 1)
    noise = np.empty_like(models)
    row = np.arange(nodes)[:, None]
    x, y, length = features, labels, reach
    mixing = weights.astype(np.float32)
    for step, std in zip(steps, noise_std, strict=True):
        generator.standard_normal(dtype=np.float32, out=noise)
        noise *= std[:, None, None]
        noise += models
        mixed = (mixing @ noise.reshape(nodes, -1)).reshape(models.shape)
        if batch is not None:
            picked = generator.integers(0, examples, (nodes, batch))
            x, y, length = features[row, picked], labels[row, picked], reach[row, picked]
        residual = np.matmul(x, mixed[:, :, :-1].transpose(0, 2, 1))
        residual += mixed[:, None, :, -1]
        residual -= residual.max(axis=2, keepdims=True)
        np.exp(residual, out=residual)
        residual /= residual.sum(axis=2, keepdims=True)
        residual[row, np.arange(x.shape[1])[None], y] -= 1
        norms = np.sqrt(np.einsum("knc,knc->kn", residual, residual)) * length
        residual *= np.minimum(1, clip / np.maximum(norms, 1e-12))[:, :, None]
        factor = (step / z / x.shape[1])[:, None, None]
        models = mixed
        models[:, :, :-1] -= factor * np.matmul(residual.transpose(0, 2, 1), x)
        models[:, :, -1] -= factor[:, :, 0] * residual.sum(axis=1)
    return models


def quadratic_loop(
    curvature: Floats, centre: Floats, weights: csr_array, steps: Floats, noise_std: Floats, z: Floats, seeds: int
) -> Floats:
    """Algorithm 1 on quadratics [nodes, dim, dim] with centres [nodes, dim], all seeds stacked; [nodes, dim, seeds]."""
    generator = np.random.Generator(np.random.SFC64(0))
    nodes, dim = centre.shape
    models = np.zeros((nodes, dim, seeds), np.float32)
    noise = np.empty_like(models)
    mixing = weights.toarray().astype(np.float32)
    scaled = curvature / z[:, None, None]
    for step, std in zip(steps, noise_std, strict=True):
        generator.standard_normal(dtype=np.float32, out=noise)
        noise *= std[:, None, None]
        noise += models
        mixed = (mixing @ noise.reshape(nodes, -1)).reshape(models.shape)
        models = mixed - step * np.matmul(scaled, mixed - centre[:, :, None])
    return models
