"""The eavesdropper gets the record where nothing hides it, and no more than a guess where a certificate does."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy.stats import binom, chi2

from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.local_only import local_only
from murmurcast.algorithms.noiseless import noiseless
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.inversion import Inversion, Picture, image_side, run_inversion
from murmurcast.audits.reconstruction import Prior, Reconstruction, prior_of, reconstruct
from murmurcast.audits.record_readings import Readings, Record, readings
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.data import sources
from murmurcast.data.base import Dataset
from murmurcast.data.datasets import digits, least_squares, mnist
from murmurcast.data.partition import QuantitySkew
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.softmax import SoftmaxRegression
from tests.conftest import asymmetric_network

NODES, EPOCHS, NODE = 5, 12, 1  # a node whose row and column of weights differ
RECORD = Record(NODE, 2)
TRIALS = 40


@cache
def every_image() -> Dataset:
    return digits()


@cache
def images(examples: int = 240) -> Dataset:
    """Some digits, dealt unevenly below."""
    result = every_image()
    return replace(result, features=result.features[:examples], targets=result.targets[:examples])


def narrow(features: int) -> Dataset:
    """Digits without their last pixels."""
    result = images()
    return replace(
        result,
        features=result.features[:, :features],
        test_features=result.test_features[:, :features],
        image_shape=None,
    )


def problem_of(clipping: str = "example", l2: float = 0.0) -> SoftmaxRegression:
    data = images().partition(QuantitySkew(concentration=5.0, minimum=20), NODES, seed=3)
    assert len(set(data.sizes)) > 1
    return SoftmaxRegression(data=data, clip=1.0, clipping=clipping, l2=l2)  # type: ignore[arg-type]


def planned(problem: SoftmaxRegression, epsilon: float = 1.0) -> Plan:
    schedule = Schedule(epochs=EPOCHS, step=0.5, decay="linear", noise_timing="paper")
    return plan(asymmetric_network(4, NODES), problem, Budget(epsilon=epsilon, unit="record"), schedule)


def row_of(problem: SoftmaxRegression, record: Record) -> int:
    return int(problem.data.rows[record.node][record.place])


@cache
def prior_without(row: int) -> Prior:
    result = every_image()
    known = np.arange(len(result.features)) != row
    return prior_of(result.features[known], result.targets[known], 10)


def attacked(algorithm: Algorithm, problem: SoftmaxRegression, run: int, record: Record) -> Reconstruction:
    """What one run gives away of one record."""
    kept = transcripts(algorithm, problem, (run,))
    (seen,) = readings(algorithm, problem, kept, record)
    return reconstruct(seen, prior_without(row_of(problem, record)))


def relative_error(result: Reconstruction, row: int) -> float:
    original, guess = images().features[row].astype(float), prior_without(row).guess
    return float(np.square(result.features - original).sum() / np.square(guess - original).sum())


@pytest.mark.parametrize(("clipping", "l2"), [("none", 0.0), ("example", 0.0), ("example", 0.1)])
def test_without_noise_the_record_is_reconstructed(clipping: str, l2: float) -> None:
    problem = problem_of(clipping, l2)
    row = row_of(problem, RECORD)
    result = attacked(noiseless(planned(problem)), problem, 0, RECORD)
    np.testing.assert_allclose(result.features, images().features[row], atol=2e-4)
    assert result.label == images().targets[row]
    assert result.chances.max() == pytest.approx(1.0)


def test_in_float64_it_is_exact() -> None:
    problem = problem_of()
    algorithm = noiseless(planned(problem))
    (seen,) = readings(algorithm, problem, transcripts(algorithm, problem, (0,), "float64"), RECORD)
    row = row_of(problem, RECORD)
    np.testing.assert_allclose(reconstruct(seen, prior_without(row)).features, images().features[row], atol=1e-9)


def true_gradients(problem: SoftmaxRegression, points: np.ndarray) -> np.ndarray:
    """[points, classes, features + 1] the record's own gradient, as the engine computes it."""
    with jax.enable_x64(True):
        mine = jax.tree.map(lambda leaf: np.asarray(leaf)[NODE], problem.local_data())
        only = mine._replace(present=np.arange(len(mine.present)) == RECORD.place)
        result = [problem.gradient_at_public(jax.numpy.asarray(point), only, jax.random.key(0)) for point in points]
        return np.asarray(result) * float(problem.data.sizes[NODE])


@cache
def heard() -> tuple[SoftmaxRegression, Algorithm, Transcript]:
    problem = problem_of()
    algorithm = power_controlled(planned(problem))
    return problem, algorithm, transcripts(algorithm, problem, range(4), "float64")


def outside(seen: Readings, truth: np.ndarray, noise: np.ndarray) -> int:
    """In how many epochs the noise on the readings has not the std it is said to have."""
    squares = np.square((seen.gradients - truth) / noise[:, None, None]).sum(axis=(1, 2))
    low, high = (float(chi2.ppf(level, truth[0].size)) for level in (1e-5, 1 - 1e-5))
    return int(((squares < low) | (squares > high)).sum())


def test_readings_are_the_gradient_with_noise_of_the_stated_size() -> None:
    problem, algorithm, kept = heard()
    for seen in readings(algorithm, problem, kept, RECORD):
        assert seen.points.shape == seen.gradients.shape == (EPOCHS - 1, 10, 65)
        assert outside(seen, true_gradients(problem, seen.points), seen.noise) == 0


def test_a_shifted_epoch_is_noticed() -> None:
    """The noise on gradient t is drawn in epoch t + 1: with that of epoch t the first epochs are off by t/(t + 1)."""
    problem, algorithm, kept = heard()
    built = algorithm.plan
    count = problem.data.sizes[NODE]
    for seen in readings(algorithm, problem, kept, RECORD):
        truth = true_gradients(problem, seen.points)
        early = count * (built.effective_noise[:, NODE] * built.z[:, NODE] / built.schedule.steps)[:-1]
        assert outside(seen, truth, early) >= 5
    late = kept._replace(sent=np.roll(kept.sent, 1, axis=1))  # every signal one epoch later than it was sent
    (shifted, *_) = readings(algorithm, problem, late, RECORD)
    assert outside(shifted, true_gradients(problem, shifted.points), shifted.noise) >= 5


def test_transposed_weights_are_noticed() -> None:
    problem, algorithm, kept = heard()
    mixing = algorithm.plan.mixing
    turned = replace(algorithm.plan, mixing=mixing._replace(weights=mixing.weights.T.tocsr()))
    (seen, *_) = readings(algorithm._replace(setup=turned), problem, kept, RECORD)
    assert outside(seen, true_gradients(problem, seen.points), seen.noise) == EPOCHS - 1
    silent = noiseless(planned(problem))
    (seen,) = readings(silent._replace(setup=turned), problem, transcripts(silent, problem, (0,)), RECORD)
    result = reconstruct(seen, prior_without(row_of(problem, RECORD)))
    assert relative_error(result, row_of(problem, RECORD)) > 0.1


def test_the_record_itself_is_not_looked_at() -> None:
    problem, algorithm, kept = heard()
    features, targets = images().features.copy(), images().targets.copy()
    row = row_of(problem, RECORD)
    features[row], targets[row] = 0.5, (targets[row] + 1) % 10
    blind = replace(problem, data=replace(problem.data, dataset=replace(images(), features=features, targets=targets)))
    for seen, unseen in zip(*(readings(algorithm, one, kept, RECORD) for one in (problem, blind)), strict=True):
        np.testing.assert_array_equal(seen.gradients, unseen.gradients)


@cache
def scored(epsilon: float | None, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """[trials] relative errors, and whether the label was right: another record of the node in every run."""
    problem = problem_of()
    built = planned(problem, epsilon or 1.0)
    algorithm = power_controlled(built) if epsilon else noiseless(built)
    kept = transcripts(algorithm, problem, range(trials))
    errors, right = [], []
    for run in range(trials):
        record = Record(NODE, run)
        row = row_of(problem, record)
        alone = kept.of_seeds(slice(run, run + 1))
        (seen,) = readings(algorithm, problem, alone, record)
        result = reconstruct(seen, prior_without(row))
        errors.append(relative_error(result, row))
        right.append(result.label == images().targets[row])
    return np.array(errors), np.array(right)


@pytest.mark.slow
def test_more_noise_shows_less() -> None:
    means = [float(scored(epsilon, 12)[0].mean()) for epsilon in (None, 3000.0, 300.0, 60.0)]
    means.append(float(scored(1.0, TRIALS)[0].mean()))
    assert means[0] < 1e-6
    assert all(less < more for less, more in pairwise(means[:-1]))
    assert means[-2] < 0.9 < means[-1]


def test_as_certified_it_is_no_better_than_guessing() -> None:
    """Epsilon 1 lets a guess of one of ten labels be right e times as often as chance, and delta; a mean of errors
    more than three standard errors below 1 would show that the image leaks."""
    errors, right = scored(1.0, TRIALS)
    assert errors.mean() + 3 * errors.std(ddof=1) / np.sqrt(TRIALS) > 1
    most_frequent = prior_without(0).chance.max()
    assert right.sum() <= binom.ppf(0.999, TRIALS, np.e * most_frequent + 1e-5)
    # The same statistics do see a leak where there is one.
    errors, right = scored(60.0, 12)
    assert errors.mean() + 3 * errors.std(ddof=1) / np.sqrt(12) < 1
    assert right.sum() > binom.ppf(0.999, 12, np.e * most_frequent)


def test_hopeless_readings_leave_the_guess() -> None:
    problem, algorithm, kept = heard()
    (seen, *_) = readings(algorithm, problem, kept, RECORD)
    prior = prior_without(row_of(problem, RECORD))
    result = reconstruct(seen._replace(noise=1e9 * seen.noise), prior)
    np.testing.assert_allclose(result.features, prior.guess, atol=1e-3)
    np.testing.assert_allclose(result.chances, prior.chance, atol=1e-3)


def test_prior_has_the_moments_of_the_known_records() -> None:
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 2, 4000)
    mixing = np.array([[[0.3, 0.1], [0.0, 0.2]], [[0.1, 0.0], [0.4, 0.5]]])
    features = np.einsum("nij,nj->ni", mixing[labels], generator.standard_normal((4000, 2))) + labels[:, None]
    prior = prior_of(features, labels, 3)
    for label in (0, 1):
        result = prior.axes[label] * prior.spread[label] @ prior.axes[label].T
        np.testing.assert_allclose(result, mixing[label] @ mixing[label].T, atol=0.03)
        np.testing.assert_allclose(prior.mean[label], label, atol=0.05)
    np.testing.assert_allclose(prior.mean[2], features.mean(axis=0))  # nothing is known of a label never seen


def test_the_closed_form_is_that_of_gaussian_regression() -> None:
    """Improved features and evidence of a candidate against dense linear algebra."""
    from murmurcast.audits import reconstruction
    from murmurcast.audits.record_readings import coefficients

    generator = np.random.default_rng(5)
    known = generator.uniform(0, 1, (60, 3))
    prior = prior_of(known, np.arange(60) % 2, 2)._replace(low=-99.0, high=99.0)
    seen = Readings(
        generator.standard_normal((4, 2, 4)), generator.standard_normal((4, 2, 4)), generator.uniform(0.5, 2, 4), 0.7
    )
    judged = reconstruction._judged(seen, prior, known[:2], np.array([0, 1]))
    for which in (0, 1):
        factor = coefficients(seen.points, known[which : which + 1], np.array([which]), 0.7)[..., 0].ravel()
        design = np.kron(factor[:, None], np.eye(4))
        weight = np.repeat(1 / seen.noise**2, 2 * 4)
        covariance = prior.axes[which] * prior.spread[which] @ prior.axes[which].T
        target = seen.gradients.ravel() - design[:, 3]
        precision = np.linalg.inv(covariance) + design[:, :3].T * weight @ design[:, :3]
        right = np.linalg.solve(covariance, prior.mean[which]) + design[:, :3].T @ (weight * target)
        np.testing.assert_allclose(judged.features[which], np.linalg.solve(precision, right))
        spread = np.diag(1 / weight) + design[:, :3] @ covariance @ design[:, :3].T
        off = target - design[:, :3] @ prior.mean[which]
        dense = -(off @ np.linalg.solve(spread, off) + np.linalg.slogdet(spread)[1]) / 2
        nothing = -(weight @ np.square(seen.gradients.ravel()) - np.log(weight).sum()) / 2
        assert judged.evidence[which] == pytest.approx(dense - nothing)


def test_image_side() -> None:
    assert image_side(every_image()) == 8
    assert image_side(least_squares(examples=50, features=16, seed=0)) is None
    assert image_side(narrow(60)) is None
    assert image_side(narrow(49)) == 7
    assert image_side(narrow(1)) is None


@cache
def demonstration() -> Inversion:
    return run_inversion(every_image(), seed=1, epochs=15, runs=2)


@pytest.mark.slow
def test_the_demonstration_shows_every_setting() -> None:
    shown = demonstration()
    assert [setting.name for setting in shown.settings] == ["noise off", "nominal", "certified"]
    assert shown.images_per_node == (1, 10, 359)
    assert shown.settings[2].epsilon == pytest.approx(1.0)
    assert np.isinf([setting.epsilon for setting in shown.settings[:2]]).all()
    assert shown.guess_error == pytest.approx(np.square(shown.guess - shown.original).mean())
    for holding in shown.images_per_node:
        exact = shown.picture("noise off", holding)
        np.testing.assert_allclose(exact.image, shown.original, atol=2e-3)
        assert exact.labels == (shown.label,)
        assert exact.beats_guessing
        assert shown.picture("certified", holding).error > 0.85
    errors = [shown.picture("nominal", holding).error for holding in shown.images_per_node]
    assert errors[0] < errors[1] < errors[2]
    assert errors[0] < 0.7 < 0.85 < errors[2]


def test_what_a_picture_says_of_its_runs() -> None:
    picture = Picture("nominal", 1, np.zeros((2, 2)), (1, 2, 2), np.array([0.78, 0.8, 0.82]), np.zeros(3))
    assert picture.error == pytest.approx(0.8)
    assert picture.uncertainty == pytest.approx(0.02 / np.sqrt(3))
    assert picture.beats_guessing
    assert not picture._replace(errors=np.array([0.7, 0.8, 0.9])).beats_guessing  # Student: 6.96 standard errors


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"batch": 2}, "minibatches"), ({"clipping": "node"}, "minibatches"), ({"ball": 1.0}, "Omega")],
)
def test_what_hides_the_record_is_an_error(changed: dict[str, object], message: str) -> None:
    problem, algorithm, kept = heard()
    with pytest.raises(Error, match=message):
        readings(algorithm, replace(problem, **changed), kept, RECORD)  # type: ignore[arg-type]


def test_other_algorithms_points_and_records_are_errors() -> None:
    problem, algorithm, kept = heard()
    built = plan(algorithm.plan.network, problem, Budget(epsilon=1.0), Schedule(epochs=EPOCHS))
    with pytest.raises(Error, match="local-only"):
        readings(local_only(built), problem, kept, RECORD)
    with pytest.raises(Error, match="private points"):
        readings(power_controlled(built, gradient_at="own"), problem, kept, RECORD)
    for record in (Record(NODES, 0), Record(-1, 0), Record(NODE, 10_000), Record(NODE, -1)):
        with pytest.raises(Error, match="holds no record"):
            readings(algorithm, problem, kept, record)


def test_bad_input_to_the_demonstration() -> None:
    with pytest.raises(Error, match="square images"):
        run_inversion(narrow(60))
    with pytest.raises(Error, match="too few"):
        run_inversion(images(7))
    with pytest.raises(Error, match="seed"):
        run_inversion(images(), seed=-1)
    with pytest.raises(Error, match="runs"):
        run_inversion(images(), runs=0)
    with pytest.raises(Error, match="known records"):
        prior_of(images().features[:1], images().targets[:1], 10)
    problem, algorithm, kept = heard()
    (seen, *_) = readings(algorithm, problem, kept, RECORD)
    with pytest.raises(Error, match="readings have shape"):
        reconstruct(seen, prior_of(np.eye(4), np.arange(4), 4))


@pytest.mark.slow
def test_mnist() -> None:
    if not sources.cache_file(sources.MNIST).exists():
        pytest.skip("MNIST is not in the cache")
    shown = run_inversion(mnist())
    assert shown.images_per_node == (1, 10, 15_000)
    for holding in shown.images_per_node:
        assert shown.picture("noise off", holding).error < 1e-4
        assert shown.picture("certified", holding).error > 0.98
    assert shown.picture("nominal", 1).error < shown.picture("nominal", 10).error < 0.9
    assert shown.picture("nominal", 15_000).error > 0.99
