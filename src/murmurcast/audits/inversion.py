"""A demonstration: what an eavesdropper reconstructs of one image with noise off, as published, and as certified.

Four nodes on the paper's first network learn to tell images apart. The eavesdropper hears every antenna and knows all
images but one. In every setting each node holds one image, ten, or all that there are for it; images are dealt at
random, so that who holds the one says nothing about it. What is reconstructed is shown as it comes out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.noiseless import noiseless
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.reconstruction import Prior, Reconstruction, prior_of, reconstruct
from murmurcast.audits.record_readings import Record, readings
from murmurcast.audits.transcript import transcripts
from murmurcast.data.base import Dataset
from murmurcast.data.partition import Iid, Partition
from murmurcast.errors import Error
from murmurcast.network import gains
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.privacy.rounding import at_most
from murmurcast.problems.softmax import SoftmaxRegression

_PURPOSE = 7  # of the draw of the image, beside the seed
_TARGET = Record(node=2, place=0)
_IMAGES_PER_NODE = (1, 10)  # images per node, beside all
_EPOCHS, _RUNS = 40, 3
_CONFIDENCE = 0.99
# As in the experiment "paper-1": G at which the rival costs epsilon 1 an epoch; nothing is clipped to it.
_NOMINAL_BOUND, _NOMINAL_NOISE, _EPSILON, _DELTA = 0.0751784, 10.0, 1.0, 1e-5


class Setting(NamedTuple):
    """One way to run Algorithm 1.

    Attributes:
        name: "noise off", "nominal" or "certified".
        promise: In words, what it says of privacy.
        epsilon: Of the whole run about one record, as certified; infinite where nothing is.
    """

    name: str
    promise: str
    epsilon: float


class Picture(NamedTuple):
    """What was reconstructed in one setting.

    Attributes:
        setting: The setting's name.
        images_per_node: How many images every node holds.
        image: [side, side] of the first run.
        labels: [runs] the label that the eavesdropper holds for most likely.
        errors: [runs] mean squared error, in units of that of the best guess without listening.
        correlations: [runs] with the original, over pixels.
    """

    setting: str
    images_per_node: int
    image: FloatArray
    labels: tuple[int, ...]
    errors: FloatArray
    correlations: FloatArray

    @property
    def error(self) -> float:
        """Mean over the runs; 0 is the image itself, 1 is no better than guessing."""
        return float(self.errors.mean())

    @property
    def uncertainty(self) -> float:
        """Standard error of that mean; 0 for a single run, which only a setting without noise has."""
        return float(self.errors.std(ddof=1) / math.sqrt(len(self.errors))) if len(self.errors) > 1 else 0.0

    @property
    def beats_guessing(self) -> bool:
        """Whether the error is below that of guessing, at 99 % (Student's t, for the runs are few)."""
        quantile = float(t.ppf(_CONFIDENCE, max(len(self.errors) - 1, 1)))
        return self.error + quantile * self.uncertainty < 1


class Inversion(NamedTuple):
    """The whole demonstration.

    Attributes:
        data: The name of the set.
        label_names: Of its labels.
        original: [side, side] the image that was not known.
        label: Its label.
        guess: [side, side] the mean of all other images: the best guess of one who hears nothing.
        guess_error: Mean squared error of that guess.
        value_range: The least and the largest pixel.
        epochs: Transmissions of every run.
        delta: Of every epsilon.
        images_per_node: How many images every node holds, row by row.
        settings: Column by column.
        pictures: Row by row.
    """

    data: str
    label_names: tuple[str, ...]
    original: FloatArray
    label: int
    guess: FloatArray
    guess_error: float
    value_range: tuple[float, float]
    epochs: int
    delta: float
    images_per_node: tuple[int, ...]
    settings: tuple[Setting, ...]
    pictures: tuple[Picture, ...]

    def picture(self, setting: str, images: int) -> Picture:
        """The picture of one setting and one row."""
        return next(one for one in self.pictures if (one.setting, one.images_per_node) == (setting, images))


class _Case(NamedTuple):
    """A setting made for some data."""

    setting: Setting
    algorithm: Algorithm
    problem: SoftmaxRegression


def image_side(dataset: Dataset) -> int | None:
    """The side of the set's images; None where its examples are not labelled square images of at least 4 x 4."""
    if dataset.maps and dataset.image_shape is None:  # features that are no images any more
        return None
    side = math.isqrt(dataset.features.shape[1])
    return side if side >= 4 and side**2 == dataset.features.shape[1] and dataset.classes is not None else None


def run_inversion(
    dataset: Dataset, *, seed: int = 0, epochs: int = _EPOCHS, runs: int = _RUNS, on_stage: Stage = quiet
) -> Inversion:
    """Runs all settings and attacks them.

    Args:
        dataset: Square images with labels, at least two for every node.
        seed: Of the image that is attacked, of who holds what, and of the noise.
        epochs: Transmissions of every run.
        runs: Of every setting with noise, at least 2; all but the first count for the numbers only.
        on_stage: Called with a few words on the work.

    Raises:
        Error: The set does not hold square images with labels, or too few of them.
    """
    _check.at_least(0, seed=seed)
    _check.at_least(2, runs=runs)
    network = Network(gains=gains.paper(1), power=1.0)
    side, most = _require_images(dataset, network.nodes), len(dataset.features) // network.nodes
    order = np.random.default_rng([seed, _PURPOSE]).permutation(len(dataset.features))
    target, known = order[0], np.sort(order[1:])
    on_stage("looking at the images that are known")
    prior = prior_of(dataset.features[known], dataset.targets[known], dataset.classes or 0, seed)
    original = dataset.features[target].astype(np.float64)
    image_counts = tuple(sorted({min(count, most) for count in _IMAGES_PER_NODE} | {most}))
    pictures = []
    for row, count in enumerate(image_counts):
        data = _dealt(dataset, order[: count * network.nodes], network.nodes)
        for make in (_noise_off, _nominal, _certified):
            case = make(network, data, epochs)
            on_stage(f"{case.setting.name}, {count} per node: running and listening")
            first = (seed * len(image_counts) + row) * runs  # no two rows, nor two seeds, share a draw of noise
            seeds = range(first, first + (1 if case.setting.name == "noise off" else runs))
            pictures.append((case.setting, _picture(case, count, prior, original, seeds, side)))
    return Inversion(
        data=dataset.name,
        label_names=dataset.label_names,
        original=original.reshape(side, side),
        label=int(dataset.targets[target]),
        guess=prior.guess.reshape(side, side),
        guess_error=_error(prior.guess, original),
        value_range=(prior.low, prior.high),
        epochs=epochs,
        delta=_DELTA,
        images_per_node=image_counts,
        settings=tuple(setting for setting, _ in pictures[:3]),
        pictures=tuple(picture for _, picture in pictures),
    )


def _dealt(dataset: Dataset, rows: "np.typing.NDArray[np.int64]", nodes: int) -> Partition:
    """The same number of examples for every node, the first of the rows at the target's place."""
    part = replace(dataset, features=dataset.features[rows], targets=dataset.targets[rows], optimum=None, holders=None)
    hands = np.roll(np.arange(len(rows)).reshape(nodes, -1), _TARGET.node, axis=0)
    return Partition(dataset=part, rule=Iid(), rows=tuple(hands))


def _nominal(network: Network, data: Partition, epochs: int) -> _Case:
    """The paper's own: sigma_t = 10 gamma_t, alpha for epsilon 1 an epoch, no clipping."""
    problem = SoftmaxRegression(data=data, clip=_NOMINAL_BOUND, clipping="none")
    budget = Budget(epsilon=_EPSILON, delta=_DELTA, unit="node", target="per-epoch")
    planned = plan(network, problem, budget, Schedule(epochs=epochs, noise_to_step=_NOMINAL_NOISE))
    setting = Setting("nominal", f"claims epsilon {_EPSILON:g} in every epoch", math.inf)
    return _Case(setting, power_controlled(planned), problem)


def _noise_off(network: Network, data: Partition, epochs: int) -> _Case:
    """As nominal, and nobody adds noise."""
    case = _nominal(network, data, epochs)
    return _Case(Setting("noise off", "nothing promised", math.inf), noiseless(case.algorithm.plan), case.problem)


def _certified(network: Network, data: Partition, epochs: int) -> _Case:
    """As in the experiment "certified": one record, one total budget, the least noise that meets it."""
    problem = SoftmaxRegression(data=data, clip=1.0, clipping="example")
    budget = Budget(epsilon=_EPSILON, delta=_DELTA, unit="record")
    schedule = Schedule(epochs=epochs, step=2.0, decay="constant", noise_to_step="auto", noise_timing="aligned")
    planned = plan(network, problem, budget, schedule, z="perron")
    epsilon = float(planned.certificate.epsilon[_TARGET.node])
    return _Case(
        Setting("certified", f"epsilon {at_most(epsilon, 3)} in all, against everybody", epsilon),
        power_controlled(planned),
        problem,
    )


def _picture(case: _Case, images: int, prior: Prior, original: FloatArray, seeds: Sequence[int], side: int) -> Picture:
    heard = transcripts(case.algorithm, case.problem, seeds)
    reconstructions = [reconstruct(one, prior) for one in readings(case.algorithm, case.problem, heard, _TARGET)]
    scale = _error(prior.guess, original)
    return Picture(
        setting=case.setting.name,
        images_per_node=images,
        image=reconstructions[0].features.reshape(side, side),
        labels=tuple(one.label for one in reconstructions),
        errors=_each(reconstructions, lambda features: _error(features, original) / scale),
        correlations=_each(reconstructions, lambda features: _correlation(features, original)),
    )


def _each(reconstructions: Sequence[Reconstruction], measure: Callable[[FloatArray], float]) -> FloatArray:
    return np.array([measure(one.features) for one in reconstructions])


def _error(features: FloatArray, original: FloatArray) -> float:
    return float(np.square(features - original).mean())


def _correlation(features: FloatArray, original: FloatArray) -> float:
    """Over pixels; 0 where one of the images is all of one shade."""
    one, other = features - features.mean(), original - original.mean()
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size > 0 else 0.0


def _require_images(dataset: Dataset, nodes: int) -> int:
    side = image_side(dataset)
    if side is None:
        raise Error(
            f'"{dataset.name}" does not hold square images with labels',
            hint="use a set such as mnist, fashion-mnist or digits",
        )
    if len(dataset.features) < 2 * nodes:
        raise Error(f"{len(dataset.features)} images are too few for {nodes} nodes", hint=f"bring at least {2 * nodes}")
    return side
