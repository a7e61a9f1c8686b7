"""What an eavesdropper reads of one record, epoch by epoch, who hears every antenna and knows all data but that record.

Everything said up to epoch t makes node j's mixed point m_t public, and with it the gradient of every record but one:

    V_j,t+1 = m_t - gamma_t/z_jj,t ( known_t + clip((p(m_t) - y) (x, 1)') / n ) + noise of epoch t + 1

So the epochs 1..T-1 each give the missing record's gradient with noise of a known size on it: the adversary of
differential privacy, at work. The noise on gradient t is drawn in epoch t + 1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Sending
from murmurcast.audits.transcript import Transcript
from murmurcast.errors import Error
from murmurcast.problems.softmax import SoftmaxRegression

_OF_ALGORITHM_1 = {"heard", "kept", "step", "z", "newest"}  # tables of its update, where noise is seeded
_RECORDS_PER_PRODUCT = 1000  # whose gradients are one product


class Record(NamedTuple):
    """Whom the eavesdropper is after.

    Attributes:
        node: Who holds it.
        place: Which of the node's records it is, from 0.
    """

    node: int
    place: int


class Readings(NamedTuple):
    """All that a run tells of one record.

    Attributes:
        points: [epochs - 1, classes, features + 1] the public points at which gradients were taken.
        gradients: [epochs - 1, classes, features + 1] the record's gradient there, clipped, with noise.
        noise: [epochs - 1] its std, the same in every entry; what rounding leaves where no noise was sent.
        clip: What the record's gradient was clipped to; infinite without clipping.
    """

    points: FloatArray
    gradients: FloatArray
    noise: FloatArray
    clip: float


def readings(
    algorithm: Algorithm, problem: SoftmaxRegression, transcript: Transcript, record: Record
) -> tuple[Readings, ...]:
    """What an eavesdropper makes of a transcript, one for each of its seeds. The record itself is not looked at.

    Args:
        algorithm: Algorithm 1, with or without noise, gradients taken at the mixed point.
        problem: What was learnt, on all records at once and in all of R^m.
        transcript: What was sent.
        record: The one that is not known.

    Raises:
        Error: The gradient of one record cannot be told from what is sent.
    """
    _require_readable(algorithm, problem, record)
    plan, node = algorithm.plan, record.node
    said = transcript.sent.astype(np.float64) / algorithm.rounds[0].sending.amplitude[..., None]
    points = np.einsum("k,stkd->std", plan.mixing.weights.toarray()[node], said)[:, :-1]
    step = (plan.schedule.steps / plan.z[:, node])[:-1]
    whole = (points - said[:, 1:, node]) / step[:, None]
    count = problem.data.sizes[node]
    own = count * (whole - _known_gradients(problem, record, points))
    rounding = np.finfo(transcript.sent.dtype).eps * np.sqrt(np.square(said[:, 1:, node]).mean(axis=2))
    noise = count * np.hypot(_noise_said(algorithm)[1:, node], rounding) / step
    shape = (len(said), len(step), *problem.shape)
    return tuple(
        Readings(*run, _clip(problem)) for run in zip(points.reshape(shape), own.reshape(shape), noise, strict=True)
    )


def _noise_said(algorithm: Algorithm) -> FloatArray:
    """[epochs, nodes] s, the noise in what a node says, in the units of models."""
    sending: Sending = algorithm.rounds[0].sending
    return np.asarray(sending.noise * sending.schedule[:, None] / sending.amplitude)


def _known_gradients(problem: SoftmaxRegression, record: Record, points: FloatArray) -> FloatArray:
    """[seeds, epochs - 1, dim] the node's gradient without the record, still divided by all it has."""
    data, clip = problem.data.dataset, _clip(problem)
    rows = np.delete(problem.data.rows[record.node], record.place)
    models = points.reshape(-1, *problem.shape)
    total = np.zeros((models.shape[0] * models.shape[1], models.shape[2]))
    for some in np.array_split(rows, -(-len(rows) // _RECORDS_PER_PRODUCT) or 1):
        features = data.features[some].astype(np.float64)
        total += coefficients(models, features, data.targets[some], clip).reshape(len(total), -1) @ extended(features)
    return np.asarray(total.reshape(points.shape) / problem.data.sizes[record.node] + problem.l2 * points)


def coefficients(points: FloatArray, features: FloatArray, labels: NDArray[Any], clip: float) -> FloatArray:
    """[points, classes, records] a = clip factor times (p - y): every record's gradient is a (x, 1)'.

    Args:
        points: [points, classes, features + 1] models.
        features: [records, features].
        labels: [records].
        clip: The longest gradient of a record.
    """
    inputs = extended(features)
    scores = points.reshape(-1, inputs.shape[1]) @ inputs.T
    residual = np.asarray(softmax(scores.reshape(*points.shape[:2], -1), axis=1))
    residual[:, labels, np.arange(len(labels))] -= 1
    if np.isinf(clip):
        return residual
    lengths = np.linalg.norm(residual, axis=1) * np.linalg.norm(inputs, axis=1)
    return np.asarray(residual * np.minimum(1, clip / np.maximum(lengths, 1e-6 * clip))[:, None])


def extended(features: FloatArray) -> FloatArray:
    """[records, features + 1] (x, 1), as the bias sees it."""
    return np.column_stack([features, np.ones(len(features))])


def _clip(problem: SoftmaxRegression) -> float:
    return problem.clip if problem.gradient_clip.per in ("example", "layer") else np.inf


def _require_readable(algorithm: Algorithm, problem: SoftmaxRegression, record: Record) -> None:
    if set(algorithm.rounds[0].receiving._fields) != _OF_ALGORITHM_1:
        raise Error(f'no readings are known for "{algorithm.name}"', hint="use Algorithm 1, with or without noise")
    if algorithm.settings["gradient_at"] != "mixed":
        raise Error("gradients are taken at private points", hint='set gradient_at = "mixed", the public point')
    if problem.batch is not None or problem.gradient_clip.per == "node" or problem.radius is not None:
        raise Error(
            "minibatches, a clip of the whole node and a bounded Omega hide which part is the record's",
            hint='leave batch, ball and box out, and set clipping to "example" or "none"',
        )
    if problem.bias != 1:
        raise Error(f"the bias stands for a constant feature of {problem.bias:g}", hint="leave bias out: it is then 1")
    size = problem.data.sizes[record.node] if 0 <= record.node < problem.nodes else 0
    if not 0 <= record.place < size:
        raise Error(
            f"node {record.node} holds no record {record.place}",
            hint="name a node and one of its records, both from 0",
        )
