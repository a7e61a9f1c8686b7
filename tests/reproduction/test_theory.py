"""Theorem 2 measured: the sum is the paper's, fits find what is there, words follow the numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.weights import mixing, mixing_rate, z_diagonal
from murmurcast.reproduction import fits, growth
from murmurcast.reproduction import theory_plot as theory_figure
from murmurcast.reproduction import theory_text as theory_words
from murmurcast.reproduction.fits import Exponent
from murmurcast.reproduction.geometric import Geometric, excess_over, first_term, geometric
from murmurcast.reproduction.growth import BASE, Point, at_delta, base_network, horizons, repeated_ring, sweep
from murmurcast.reproduction.regret import (
    RADIUS,
    Noise,
    Regret,
    Setting,
    bowls,
    contraction,
    excess_form,
    foreseen_slope,
    gradient_bound,
    measure,
    setting,
)
from murmurcast.reproduction.theory import Case, Theory, case, curves, hardly_heard

EPOCHS = 40


@pytest.fixture(scope="module")
def small() -> Setting:
    return setting(base_network(), bowls(6, 2, 3.0), BASE, EPOCHS)


@pytest.fixture(scope="module")
def measured(small: Setting) -> Regret:
    return measure(small, horizons(EPOCHS), 4, (1.0, 2.0))


@pytest.fixture(scope="module")
def usual(small: Setting, measured: Regret) -> Case:
    return case("usual", small, measured)


@pytest.fixture(scope="module")
def theory(usual: Case) -> Theory:
    flat = setting(hardly_heard(), bowls(5, 2, 1.0), BASE, EPOCHS)
    slow = case("flat", flat, measure(flat, horizons(EPOCHS), 4))
    return Theory(usual, slow, slow._replace(title="remedied"), tuple(law(*given) for given in LAWS))


LAWS = (("K", 3.0, 0.5), ("m", 1.0, 1.0), ("ln(1.25/delta)", 1.0, 1.0))


def law(symbol: str, theorem: float, exponent: float) -> growth.Sweep:
    values = np.array([2.0, 3.0, 7.0, 11.0])
    points = tuple(Point(x, 5 * x**exponent + 0.1, 0.01 * x, 0.1, 5 * x**exponent) for x in values)
    return sweep(symbol, theorem, points, "all else")


def written_out(prepared: Setting, epochs: int) -> FloatArray:
    """[epochs, nodes] F(x_i,t) - F(x*) without noise, by Algorithm 1 as it is printed."""
    problem, planned = prepared.problem, prepared.plan
    gains, degree = planned.network.gains.toarray(), planned.network.degree
    normaliser = planned.network.max_degree + 1
    amplitude = np.sqrt(planned.alpha * planned.network.power)

    def cost(x: FloatArray) -> float:
        return sum(float((x - b) @ q @ (x - b)) / 2 for q, b in zip(problem.curvature, problem.centre, strict=True))

    x, z, costs = np.zeros((problem.nodes, problem.dim)), np.eye(problem.nodes), []
    for t in range(1, epochs + 1):
        costs.append([cost(row) - cost(problem.optimum()) for row in x])
        following, z_following = np.empty_like(x), np.empty_like(z)
        for i in range(problem.nodes):
            neighbours = np.flatnonzero(gains[:, i])
            compensation = sum(gains[j, i] * amplitude[j] for j in neighbours) / degree[i]
            weight = np.zeros(problem.nodes)
            weight[neighbours] = gains[neighbours, i] * amplitude[neighbours] / (compensation * normaliser)
            weight[i] = 1 - degree[i] / normaliser
            step = 1 / (prepared.convexity * planned.theta * t)
            moved = weight @ x - step * problem.curvature[i] @ (x[i] - problem.centre[i]) / z[i, i]
            following[i] = moved * min(1.0, RADIUS / max(float(np.linalg.norm(moved)), 1e-9))
            z_following[i] = weight @ z
        x, z = following, z_following
    return np.array(costs)


def test_regret_is_the_sum_of_the_algorithm_as_printed(small: Setting, measured: Regret) -> None:
    costs = written_out(small, EPOCHS)
    at = measured.horizons.astype(int)
    expected = np.cumsum(costs, axis=0)[at - 1]
    np.testing.assert_allclose(measured.silent, expected, rtol=1e-9)
    one_late = np.cumsum(costs[1:], axis=0)[at[:-1] - 1]  # x_2..x_{T+1}: the index that must not be
    assert (np.abs(measured.silent[:-1] / one_late - 1) > 0.01).any(axis=1).all()


def test_first_horizon_counts_the_start_only(small: Setting, measured: Regret) -> None:
    hessian, slope, optimum = excess_form(small.problem)
    start = optimum @ hessian @ optimum / 2 - slope @ optimum
    assert measured.horizons[0] == 1
    np.testing.assert_allclose(measured.noisy[0], start)
    np.testing.assert_allclose(measured.silent[0], start)


def test_noise_levels_scale_the_noise_of_the_same_draws(small: Setting, measured: Regret) -> None:
    assert measured.noisy.shape == (len(measured.horizons), 2, 6, 4)
    assert measured.noisy[-1, 1].mean() > measured.noisy[-1, 0].mean() > measured.silent[-1].mean()
    louder = setting(base_network(), small.problem, at_delta(1e-5)._replace(to_step=BASE.to_step), EPOCHS)
    again = measure(louder, measured.horizons, 4, (1.0, 2.0))
    np.testing.assert_array_equal(again.noisy, measured.noisy)  # the same numbers every time


def test_excess_is_the_difference_of_f_where_the_optimum_is_on_the_border() -> None:
    outside = replace(bowls(5, 2, 3.0), centre=np.array([[3.0, 1.0]] * 5))
    hessian, slope, optimum = excess_form(outside)
    assert np.linalg.norm(optimum) == pytest.approx(RADIUS)
    point = np.array([0.3, -0.4])

    def cost(x: FloatArray) -> float:
        away = x - outside.centre
        return float(np.einsum("ki,kij,kj->", away, outside.curvature, away)) / 2

    away = point - optimum
    assert away @ hessian @ away / 2 + slope @ away == pytest.approx(cost(point) - cost(optimum))


@pytest.mark.parametrize(("nodes", "dim", "condition"), [(5, 2, 1.0), (6, 2, 3.0), (8, 6, 3.0)])
def test_problem_meets_the_assumptions(nodes: int, dim: int, condition: float) -> None:
    problem = bowls(nodes, dim, condition)
    curvature = np.linalg.eigvalsh(problem.curvature)
    np.testing.assert_allclose(curvature[:, 0], 1.0)
    np.testing.assert_allclose(problem.curvature.sum(axis=0), np.eye(dim) * nodes * (1 + condition) / 2, atol=1e-12)
    draws = np.random.default_rng(0).standard_normal((1000, dim))
    border = RADIUS * draws / np.linalg.norm(draws, axis=1, keepdims=True)
    gradients = np.einsum("kij,nkj->nki", problem.curvature, border[:, None] - problem.centre)
    assert np.linalg.norm(gradients, axis=-1).max() <= problem.clip == gradient_bound(*problem.local_data())
    assert np.linalg.norm(problem.optimum()) < RADIUS


def test_dimension_changes_nothing_without_noise(small: Setting, measured: Regret) -> None:
    wide = setting(base_network(), bowls(6, 6, 3.0), BASE, EPOCHS)
    np.testing.assert_allclose(wide.plan.alpha, small.plan.alpha)
    assert wide.problem.clip == pytest.approx(small.problem.clip)
    np.testing.assert_allclose(measure(wide, measured.horizons, 1).silent, measured.silent, rtol=1e-9)
    assert foreseen_slope(wide) == pytest.approx(3 * foreseen_slope(small))


def test_odd_dimension_is_refused() -> None:
    with pytest.raises(Error, match="even"):
        bowls(4, 3, 2.0)


def test_steps_and_theta_belong_together(small: Setting) -> None:
    planned = small.plan
    assert small.divisor == planned.theta
    assert planned.schedule.step == pytest.approx(1 / (small.convexity * planned.theta))
    assert (1 / planned.z <= planned.theta).all()
    assert planned.theta == pytest.approx(1 / planned.z.min(), rel=1e-6)
    assert planned.epsilon_per_epoch.max() <= BASE.epsilon * (1 + 1e-6)
    other = setting(base_network(), small.problem, BASE, EPOCHS, 6.0)
    np.testing.assert_array_equal(other.plan.alpha, planned.alpha)
    assert contraction(other) == pytest.approx(contraction(small) * planned.theta / 6)


def test_delta_leaves_the_power_split(small: Setting) -> None:
    for delta in (1e-2, 1e-9):
        other = setting(base_network(), small.problem, at_delta(delta), EPOCHS)
        np.testing.assert_allclose(other.plan.alpha, small.plan.alpha, rtol=1e-6)
        grown = np.log(1.25 / delta) / np.log(1.25 / BASE.delta)
        assert foreseen_slope(other) == pytest.approx(grown * foreseen_slope(small), rel=1e-6)


def test_noise_slope_is_the_closed_form() -> None:
    prepared = setting(base_network(), bowls(6, 2, 3.0), Noise(40.0, 1e-5, 40.0), 1500)
    result, error, silent = growth.slopes(measure(prepared, horizons(1500), 200))
    assert abs(result - silent - foreseen_slope(prepared)) < 4 * error
    assert error < 0.1 * result


def test_no_slope_is_foreseen_where_the_error_decays_too_slowly() -> None:
    slow = setting(hardly_heard(), bowls(5, 2, 1.0), BASE, EPOCHS)
    assert slow.plan.theta > 2 * 5
    assert contraction(slow) == pytest.approx(5 / slow.plan.theta)
    assert foreseen_slope(slow) == np.inf


def test_regret_outgrows_log_where_theta_exceeds_twice_the_nodes() -> None:
    epochs = 4000
    slow = setting(hardly_heard(), bowls(5, 2, 1.0), BASE, epochs)
    cured = setting(hardly_heard(), bowls(5, 2, 1.0), BASE, epochs, 5.0)
    at = horizons(epochs)
    exponents = [fits.local_exponent(at, measure(prepared, at, 1).silent.mean(axis=1)) for prepared in (slow, cured)]
    assert exponents[0] == pytest.approx(1 - 2 * 5 / slow.plan.theta, abs=0.02)
    assert exponents[1] < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_geometric_bound_holds_and_no_smaller_constant_does(make_network: Callable[[int], Network], seed: int) -> None:
    network = make_network(seed)
    alpha = np.random.default_rng(seed).uniform(0.2, 0.9, network.nodes)
    weights = mixing(network, alpha, network.max_degree + 1).weights
    bound = geometric(weights)
    assert bound.constant <= mixing_rate(weights).constant * (1 + 1e-9)
    dense, power = weights.toarray(), np.eye(network.nodes)
    limit = np.linalg.matrix_power(dense, 2**10)
    limit /= limit.sum(axis=1, keepdims=True)
    z = z_diagonal(weights, bound.checked + 1, "recursive")
    broken = False
    for t in range(bound.checked + 1):
        allowed = bound.bound(np.array(float(t)))
        assert np.abs(power - limit).max() <= allowed * (1 + 1e-6) + 1e-12
        assert np.abs(z[t] - limit.diagonal()).max() <= allowed * (1 + 1e-6) + 1e-12
        broken |= bool(np.abs(power - limit).max() > 0.99 * allowed)
        power = power @ dense
    assert broken


def test_excess_over_a_faster_rate_grows() -> None:
    network = base_network()
    weights = mixing(network, np.linspace(0.3, 0.8, 6), 3).weights
    assert excess_over(weights, 0.9 * geometric(weights).rate, 200)[-1] > 1e3


def test_first_term_is_the_theorems() -> None:
    bound = Geometric(2.0, 0.5, 10)
    assert first_term(bound, 3.0, 4, 5.0, 6.0) == pytest.approx(0.5 * 2 * 3 / 0.5 * (4 * 5 * 6))
    assert first_term(bound, 3.0, 4, 5.0, 6.0, 7.0) == pytest.approx(6 * (2 * 9 * 7 + 120))


@pytest.mark.parametrize("name", fits.LAWS)
def test_fits_find_what_is_there(name: str) -> None:
    at = horizons(1000)
    result = fits.fits(at, 30 + 7 * fits.LAWS[name](at))
    assert fits.best(result).law == name
    assert fits.best(result)[1:] == pytest.approx((30, 7, 0), abs=1e-9)
    np.testing.assert_allclose(fits.best(result).at(at), 30 + 7 * fits.LAWS[name](at))


def test_local_exponent_of_powers_and_of_log() -> None:
    at = horizons(100_000, 200)
    assert fits.local_exponent(at, 3 * at**0.37) == pytest.approx(0.37)
    assert fits.local_exponent(at, np.log(at) + 5) < 0.08


def test_exponent_of_a_law_with_scatter() -> None:
    generator = np.random.default_rng(3)
    x = np.geomspace(2, 64, 12)
    result = [fits.power_law(x, 4 * x**1.5 * np.exp(0.1 * generator.standard_normal(12))) for _ in range(300)]
    values, errors = np.array(result).T
    assert values.mean() == pytest.approx(1.5, abs=0.01)
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)


def test_known_errors_count_where_points_lie_on_a_line_by_luck() -> None:
    x = np.geomspace(2, 32, 5)
    assert fits.power_law(x, x**2).error < 1e-9
    generator = np.random.default_rng(4)
    values = [fits.power_law(x, x**2 * (1 + 0.02 * generator.standard_normal(5))).value for _ in range(500)]
    assert fits.power_law(x, x**2, 0.02 * x**2).error == pytest.approx(np.std(values), rel=0.15)


def test_repeated_ring_is_uneven_and_keeps_its_theta() -> None:
    ratios = []
    for nodes in growth.NODES:
        network = repeated_ring(nodes)
        assert (network.degree == 4).all()
        assert not np.allclose(network.gains.toarray(), network.gains.toarray().T)
        noise = BASE._replace(to_step=BASE.to_step / 6 * nodes)
        ratios.append(setting(network, bowls(nodes, 2, 3.0), noise, 400).plan.theta / nodes)
    assert max(ratios) < 1.25 * min(ratios)
    with pytest.raises(Error, match="multiple of 4"):
        repeated_ring(10)


def test_hardly_heard_network_is_asymmetric() -> None:
    network: Network = hardly_heard()
    assert not np.allclose(network.gains.toarray(), network.gains.toarray().T)


def test_case_carries_the_theorems_constants(usual: Case, small: Setting, measured: Regret) -> None:
    assert usual.first_term == pytest.approx(
        first_term(usual.mixing, small.problem.clip, 6, small.plan.theta, 2 * RADIUS)
    )
    np.testing.assert_allclose(usual.mean, measured.noisy[:, 0].mean(axis=-1))
    assert (usual.z <= usual.z_bound[: len(usual.z), None] * (1 + 1e-9)).all()
    assert usual.bound.shape == usual.mean.shape


def sentence(theory: Theory, start: str) -> tuple[bool | None, str]:
    (result,) = (one for one in theory_words.findings(theory) if one[1].startswith(start))
    return result


def with_regret(one: Case, regret: FloatArray) -> Case:
    by_node = tuple(fits.fits(one.horizons, regret) for _ in range(one.nodes))
    return one._replace(mean=np.tile(regret[:, None], (1, one.nodes)), later=by_node)


def test_rate_sentence_follows_the_numbers(theory: Theory) -> None:
    at = theory.usual.horizons
    as_log = theory._replace(usual=with_regret(theory.usual, 5 + 3 * np.log(at)))
    as_root = theory._replace(usual=with_regret(theory.usual, 5 + 3 * np.sqrt(at)))
    holds, text = sentence(as_log, "In a setting as")
    assert holds
    assert "best by log T at 6 of 6 nodes" in text
    holds, text = sentence(as_root, "In a setting as")
    assert holds is False
    assert "best by sqrt T at 6 of 6 nodes" in text


def test_bound_sentence_follows_the_numbers(theory: Theory) -> None:
    start = "With the U2 fitted"
    assert "stays below" in sentence(theory, start)[1]
    small = theory.usual._replace(first_term=0.0, mean=theory.usual.mean * 1e3)
    holds, text = sentence(theory._replace(usual=small), start)
    assert holds is None  # U2 was fitted: neither way does it judge the theorem
    assert "exceeds" in text


def test_geometric_sentence_follows_the_numbers(theory: Theory) -> None:
    holds, text = sentence(theory, "C is the smallest")
    assert holds is None  # true by the choice of C
    closest = (theory.usual.z / theory.usual.z_bound[:, None]).max()
    assert f"at most {closest:.2f} of it" in text


@pytest.mark.parametrize(
    ("value", "holds", "words"),
    [(0.4, True, "upper bound"), (3.01, True, "agree"), (3.4, False, "contradicts the theorem")],
)
def test_growth_sentence_follows_the_numbers(theory: Theory, value: float, holds: bool, words: str) -> None:
    changed = theory.sweeps[0]._replace(exponent=Exponent(value, 0.1))
    result, text = sentence(theory._replace(sweeps=(changed, *theory.sweeps[1:])), "U2 grows as K")
    assert result is holds
    assert f"{value:.3f}" in text
    assert words in text


def test_reason_follows_the_contraction(theory: Theory) -> None:
    holds, text = sentence(theory, "There the consensus")
    assert holds is None
    assert "no U1 and U2 can hold" in text
    assert f"{1 - 2 * theory.flat.contraction:.3f}" in text
    faster = theory._replace(flat=theory.flat._replace(contraction=0.8))
    assert "fast enough for log T" in sentence(faster, "There the consensus")[1]


def test_tables_are_complete(theory: Theory) -> None:
    result = theory_words.tables(theory)
    assert len({table.name for table in result}) == len(result)
    for table in result:
        assert table.rows
        assert all(len(row) == len(table.headings) for row in table.rows)
        assert "certificate" not in " ".join((table.title, table.note, *sum(table.rows, ())))


def test_curves_are_rectangles_of_finite_numbers(theory: Theory) -> None:
    for headings, rows in curves(theory).values():
        assert rows.shape[1] == len(headings)
        assert np.isfinite(rows).all()


@pytest.mark.parametrize("draw", [theory_figure.theory_figure, theory_figure.growth_figure, theory_figure.rate_figure])
def test_figures_draw(theory: Theory, draw: Callable[[Theory], Figure]) -> None:
    figure = draw(theory)
    figure.draw_without_rendering()
    assert figure.get_size_inches()[0] == 3.5
