"""The statistic on real transcripts against the distribution that the linear diagnostic predicts."""

from functools import cache

import jax
import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.algorithms.observed import system_of
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.bounds import measure
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.receivers import View, listen, view
from murmurcast.audits.replay import replay
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.privacy import linear
from murmurcast.problems.quadratic import Quadratic
from tests.audits import faults
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS, TRIALS, TARGET = 5, 3, 6, 4000, 1
COALITIONS = [(0,), (2,), (3,), (4,), (0, 4), (2, 3), (0, 2, 3, 4)]


def saturated(sign: float) -> Quadratic:
    """Every node's gradient has the length of the clip and a fixed direction, wherever the models are.

    Node k has curvature along coordinate k mod DIM only, and a centre far out; the target's centre is on one side or
    the other.
    """
    axis = np.arange(NODES) % DIM
    curvature = np.zeros((NODES, DIM, DIM))
    curvature[np.arange(NODES), axis, axis] = 1.0
    centre = np.zeros((NODES, DIM))
    centre[np.arange(NODES), axis] = [1e6, sign * 1e6, -1e6, 1e6, -1e6]
    return Quadratic(curvature=curvature, centre=centre, clip=0.7)


@cache
def both_worlds() -> tuple[Plan, Transcript, Transcript]:
    """The plan, and transcripts with the target's gradient at -clip and at +clip."""
    absent, present = saturated(+1), saturated(-1)
    schedule = Schedule(epochs=EPOCHS, step=0.4, noise_timing="aligned", noise_to_step=(3.0, 2.0, 5.0, 2.5, 4.0))
    built = plan(asymmetric_network(4, NODES), absent, Budget(epsilon=8.0), schedule)
    kept = [
        transcripts(power_controlled(built), problem, range(first, first + TRIALS), "float64")
        for problem, first in ((absent, 0), (present, TRIALS))
    ]
    return built, kept[0], kept[1]


def statistics(observers: tuple[int, ...]) -> tuple[float, FloatArray, FloatArray]:
    """Mu of the diagnostic, and the statistic in both worlds."""
    built, absent, present = both_worlds()
    result = [attacked(built, kept, observers) for kept in (absent, present)]
    return float(built.linear_common(observers)[TARGET]), result[0], result[1]


def log_likelihood_ratio(built: Plan, seen: View) -> FloatArray:
    """Of the target's gradient at +clip over -clip; half way it is 0, as with canaries that are all its data."""
    runs, change = len(seen.reference), float(built.sensitivity[TARGET])
    hidden = linear.hidden_from(built.mixing.weights.toarray(), seen.observers)
    algorithm = power_controlled(built)
    half_way = Canaries(np.array([TARGET]), np.zeros((1, runs, DIM)), np.array([change]), alone=True)
    with jax.enable_x64(True):
        followed = replay(algorithm, saturated(1), half_way, hidden, tuple(range(runs)))
        heard = listen(algorithm, system_of(built), seen, followed)
        return np.asarray(heard.about(TARGET, change).matched()[:, TARGET % DIM])


def seen_by(built: Plan, kept: Transcript, observers: tuple[int, ...]) -> View:
    return view(power_controlled(built), system_of(built), kept, observers)


def attacked(built: Plan, kept: Transcript, observers: tuple[int, ...]) -> FloatArray:
    return log_likelihood_ratio(built, seen_by(built, kept, observers))


def with_reused_noise(built: Plan, problem: Quadratic) -> Transcript:
    """Transcripts of the same mechanism whose every epoch repeats the draw of the first: A V - step, written out."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((TRIALS, NODES, DIM))
    # Saturated: the clip along the node's axis, away from its centre.
    gradients = -0.7 * np.sign(problem.centre)
    amplitude = np.sqrt(built.alpha * built.network.power)[:, None]
    x, sent = np.zeros_like(drawn), []
    for epoch in range(EPOCHS):
        said = x + built.effective_noise[epoch][:, None] * drawn
        mixed = built.mixing.weights.toarray() @ said
        x = mixed - (built.schedule.steps[epoch] / built.z[epoch])[:, None] * gradients
        sent.append(amplitude * said)
    signals = np.stack(sent, axis=1)
    return Transcript(signals, built.network.gains.toarray().T @ signals, x, mixed)


def deviations(mu: float, absent: FloatArray, present: FloatArray) -> FloatArray:
    """How far means and variances of both worlds are off, in standard errors."""
    errors = []
    for sign, values in ((-1, absent), (1, present)):
        errors.append((values.mean() - sign * mu**2 / 2) / (mu / np.sqrt(len(values))))
        errors.append((values.var(ddof=1) / mu**2 - 1) / np.sqrt(2 / (len(values) - 1)))
    return np.abs(errors)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("observers", COALITIONS, ids=str)
def test_distribution_is_that_of_the_linear_diagnostic(observers: tuple[int, ...]) -> None:
    mu, absent, present = statistics(observers)
    assert mu > 0.1
    assert deviations(mu, absent, present).max() < 4.5


def test_some_observer_is_no_neighbour_and_a_pair_learns_more() -> None:
    built, _, _ = both_worlds()
    gains = built.network.gains.toarray()
    assert any(gains[TARGET, observer] == 0 for (observer,) in COALITIONS[:4])
    assert statistics((0, 4))[0] > max(statistics((0,))[0], statistics((4,))[0])
    everybody = statistics((0, 2, 3, 4))[0]
    assert everybody == pytest.approx(built.certificate.mu[TARGET], rel=1e-9)


def test_a_different_noise_is_noticed() -> None:
    """Noise that is 5 % louder than planned, or of the same draw in every epoch, gives another distribution."""
    built, *_ = both_worlds()
    observers = (0, 2, 3, 4)
    mu = float(built.linear_common(observers)[TARGET])
    algorithm = power_controlled(built)
    louder = faults.noise_at(algorithm, 1.05)
    amplified = [transcripts(louder, saturated(sign), range(TRIALS), "float64") for sign in (1, -1)]
    repeated = [with_reused_noise(built, saturated(sign)) for sign in (1, -1)]
    for changed in (amplified, repeated):
        result = [attacked(built, world, observers) for world in changed]
        assert deviations(mu, *result).max() > 4.5


def test_dropped_noise_shows_more() -> None:
    """Where the target adds no noise the worlds lie apart, and the same attack is wrong by rounding only."""
    built, absent, present = both_worlds()
    algorithm = power_controlled(built)
    silent = faults.noise_at(algorithm, np.arange(NODES) != TARGET)
    observers = (0, 2, 3, 4)
    without = [transcripts(silent, saturated(sign), range(TRIALS), "float64") for sign in (1, -1)]
    planned = measure(attacked(built, absent, observers), attacked(built, present, observers), 1e-5)
    dropped = measure(attacked(built, without[0], observers), attacked(built, without[1], observers), 1e-5)
    assert (
        dropped.false_positives <= 3
    )  # the threshold is the largest of other trials, which are the same but for rounding
    assert dropped.true_positives == dropped.trials
    assert planned.epsilon <= built.certificate.epsilon[TARGET]
    assert planned.epsilon < dropped.epsilon


def test_known_inputs_must_be_subtracted() -> None:
    """The observers' own noise is in what they hear back: without their own signals the statistic is worse."""
    built, absent, present = both_worlds()
    observers = (0, 4)
    mu = float(built.linear_common(observers)[TARGET])
    result = []
    for kept in (absent, present):
        seen = seen_by(built, kept, observers)
        result.append(log_likelihood_ratio(built, seen._replace(said=(0 * seen.said[0],))))
    assert deviations(mu, *result).max() > 10


def test_nothing_but_the_view_is_used() -> None:
    """Other nodes' signals may be anything: only the observers' signals and sums count."""
    built, absent, _ = both_worlds()
    few = absent.of_seeds(slice(20))
    others = [0, 1, 4]
    spoiled = few._replace(sent=few.sent.copy(), heard=few.heard.copy())
    spoiled.sent[:, :, others] = np.nan
    spoiled.heard[:, :, others] = np.nan
    plain, blind = (log_likelihood_ratio(built, seen_by(built, kept, (2, 3))) for kept in (few, spoiled))
    np.testing.assert_array_equal(plain, blind)
    assert seen_by(built, few, (3, 2)).observers == (2, 3)


def test_an_observer_of_itself_is_an_error() -> None:
    built, _, _ = both_worlds()
    nothing = (np.zeros((1, EPOCHS, 2, DIM)),)
    empty = View((1, 2), nothing, nothing, np.zeros((1, EPOCHS, DIM)))
    with pytest.raises(Error, match="observer of itself"):
        log_likelihood_ratio(built, empty)
