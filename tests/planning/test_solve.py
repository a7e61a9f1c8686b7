"""Plans: what was asked for holds with the weights that come out."""

from dataclasses import replace

import numpy as np
import pytest

from murmurcast.errors import Error, Infeasible
from murmurcast.network import gains, topologies
from murmurcast.network.graph import Network
from murmurcast.network.weights import mixing, perron
from murmurcast.planning.plan import Plan, PowerRule
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from murmurcast.privacy import gaussian
from murmurcast.radio.settings import Radio
from tests.conftest import asymmetric_network

CLIP = ClippedGradients(clip=0.3)


def check_consistent(built: Plan) -> None:
    """What a plan holds follows from its alpha."""
    again = mixing(built.network, built.alpha, built.mixing.normaliser)
    np.testing.assert_allclose(built.mixing.compensation, again.compensation, rtol=1e-12)
    np.testing.assert_allclose(built.mixing.weights.toarray(), again.weights.toarray(), rtol=1e-12)
    np.testing.assert_allclose(built.perron, perron(again.weights), rtol=1e-9)


@pytest.mark.parametrize("objective", ["sum", "max-min", "noise"])
@pytest.mark.parametrize("seed", range(12))
def test_theta_is_a_verified_fixed_point(seed: int, objective: str) -> None:
    built = plan(
        asymmetric_network(seed),
        CLIP,
        Budget(epsilon=2.0, target="per-epoch"),
        Schedule(epochs=30),
        power=PowerRule(objective=objective, minimum=0.001),  # type: ignore[arg-type]
    )
    check_consistent(built)
    assert built.theta >= (1 / built.z).max() * (1 - 1e-9)
    assert built.epsilon_per_epoch.max() <= 2.0 * (1 + 1e-9)
    assert built.epsilon_per_epoch.max() >= 2.0 * (1 - 1e-6) or (built.alpha > 0.99 - 1e-9).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("unit", ["node", "record"])
def test_automatic_noise_meets_the_total_budget_exactly(seed: int, unit: str) -> None:
    problem = ClippedGradients(clip=0.3, examples_per_node=50)
    budget = Budget(epsilon=0.7, delta=1e-6, unit=unit)  # type: ignore[arg-type]
    built = plan(asymmetric_network(seed), problem, budget, Schedule(epochs=40, decay="linear"))
    np.testing.assert_allclose(built.certificate.epsilon, 0.7, rtol=1e-9)
    assert (built.alpha == 0.5).all()
    check_consistent(built)
    assert built.sensitivity[0] == pytest.approx(0.6 if unit == "node" else 0.6 / 50)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("z", ["recursive", "perron"])
def test_alpha_for_given_noise_meets_the_total_budget(seed: int, z: str) -> None:
    built = plan(
        asymmetric_network(seed),
        CLIP,
        Budget(epsilon=1.0),
        Schedule(epochs=20, noise_to_step=60.0),
        power=PowerRule(minimum=1e-4),
        z=z,  # type: ignore[arg-type]
    )
    check_consistent(built)
    assert (built.certificate.epsilon <= 1.0 + 1e-9).all()
    assert (built.alpha >= 1e-4).all()
    if built.fell_back_to_even:
        assert np.ptp(built.alpha) == 0
        assert built.certificate.epsilon.max() == pytest.approx(1.0, rel=1e-7)
        assert any(line.startswith("even split") for line in built.warnings)
    else:
        within = built.alpha < 0.99 * (1 - 1e-9)
        np.testing.assert_allclose(built.certificate.epsilon[within], 1.0, rtol=1e-6)


def test_certificate_is_the_sum_written_out() -> None:
    built = plan(asymmetric_network(7), CLIP, Budget(epsilon=1.0), Schedule(epochs=9, noise_timing="aligned"))
    total = np.zeros(built.network.nodes)
    for t in range(1, 9):  # gradient t is protected by the noise of epoch t + 1
        total += (0.6 * built.schedule.steps[t - 1] / (built.z[t - 1] * built.effective_noise[t])) ** 2
    np.testing.assert_allclose(built.certificate.mu, np.sqrt(total), rtol=1e-12)


def test_aligned_noise_is_one_epoch_late() -> None:
    aligned = Schedule(epochs=4, step=2.0, noise_timing="aligned")
    np.testing.assert_allclose(aligned.noise_schedule, 2 / np.sqrt([1, 1, 2, 3]))
    np.testing.assert_allclose(Schedule(epochs=4, step=2.0).noise_schedule, 2 / np.sqrt([1, 2, 3, 4]))


def paper_plan(case: int, clip: float) -> Plan:
    budget = Budget(epsilon=float(case), target="per-epoch")
    return plan(Network(gains=gains.paper(case)), ClippedGradients(clip=clip), budget, Schedule(epochs=100))


@pytest.mark.parametrize(("case", "clip", "largest"), [(1, 0.0751784, 3.355), (2, 0.0882822, 5.793)])
def test_shipped_clip_makes_the_rival_cost_the_label(case: int, clip: float, largest: float) -> None:
    h = gains.paper(case)
    # mPED2FL: every sender arrives as the weakest, c; what is left of each one's power is noise.
    ratios = []
    for receiver in range(4):
        arriving = np.delete(h[:, receiver], receiver)
        ratios.append(arriving.min() / np.sqrt(np.sum(arriving**2 - arriving.min() ** 2)))
    assert max(ratios) == pytest.approx(largest, abs=5e-4)
    built = paper_plan(case, clip)
    cost = float(gaussian.classical_epsilon(2 * clip * built.theta * max(ratios) / 10, 1e-5))
    assert cost == pytest.approx(case, rel=1e-4)


def test_paper_networks_split_as_expected() -> None:
    assert paper_plan(1, 0.0751784).alpha == pytest.approx(0.97, abs=0.005)
    assert paper_plan(2, 0.0882822).alpha == pytest.approx(0.99, abs=0.002)


def test_warnings_name_what_breaks() -> None:
    built = paper_plan(2, 0.0882822)
    text = "\n".join(built.warnings)
    for words in ("corner alpha", "formula outside its range", "the whole run comes to epsilon"):
        assert words in text
    assert "Corollary false" not in text
    assert "power" not in text.replace("power.max", "")  # what the signals take is a fact of its own


def test_corollary_is_caught_where_it_is_false() -> None:
    # A line 0 - 1 - 2. Node 2's loud noise hides node 0 from the relay 1, but node 2 knows its own noise.
    built = plan(
        Network(gains=[[0, 0.9, 0], [0.8, 0, 0.7], [0, 0.6, 0]]),
        ClippedGradients(examples_per_node=[10, 10_000, 10_000]),
        Budget(epsilon=1.0, target="per-epoch", unit="record"),
        Schedule(epochs=100, noise_to_step=(0.1, 0.1, 20.0)),
        power=PowerRule(maximum=0.9),
    )
    claim = built.paper_claim
    leaked = float(gaussian.epsilon(built.linear_common((2,))[0], claim.delta))
    assert leaked > 10 * claim.epsilon
    (line,) = [line for line in built.warnings if line.startswith("Corollary false")]
    assert "receiver 2" in line
    assert f"{leaked:.4g} about node 0" in line


def test_textbook_formula_is_flagged_where_it_is_false() -> None:
    budget = Budget(epsilon=20.0, target="per-epoch")
    built = plan(asymmetric_network(2), ClippedGradients(clip=2.0), budget, Schedule(epochs=5))
    assert any(line.startswith("formula false") for line in built.warnings)


def test_given_theta_below_one_over_z_is_flagged() -> None:
    built = plan(asymmetric_network(2), CLIP, Budget(epsilon=3, target="per-epoch", theta=1.5), Schedule(epochs=5))
    assert built.theta == 1.5
    assert any(line.startswith("theta too small") for line in built.warnings)


def test_sent_power_and_its_public_scale() -> None:
    problem = ClippedGradients(clip=0.3, dim=100, radius=2.0)
    built = plan(asymmetric_network(2), problem, Budget(epsilon=1.0), Schedule(epochs=5))
    sent = built.sent_power()
    assert sent is not None
    expected = built.alpha * 4 + built.beta * 100 * built.noise_std**2
    np.testing.assert_allclose(sent.largest, expected.max(axis=0))
    np.testing.assert_allclose(sent.smallest, expected.min(axis=0))
    assert (expected * sent.public_scale**2).max() == pytest.approx(1.0)
    assert sent.symbols == 50
    np.testing.assert_allclose(sent.per_symbol, sent.largest / 50)
    assert sent.snr_change_db == pytest.approx(-10 * np.log10(expected.max()))


def test_power_is_said_in_words_with_what_it_is_held_against() -> None:
    network, budget = asymmetric_network(2), Budget(epsilon=1.0)

    def note(problem: ClippedGradients) -> str:
        return plan(network, problem, budget, Schedule(epochs=5)).power_note

    loud = note(ClippedGradients(clip=0.3, dim=101, radius=2.0))
    for words in ("whole message of 101 numbers", "one channel use", "in each of 51 complex symbols", "falls by"):
        assert words in loud
    quiet = note(ClippedGradients(clip=0.001, dim=101, radius=0.01))
    assert "whole message of 101 numbers" in quiet
    assert "public factor" not in quiet
    assert "set problem.dim" in note(ClippedGradients(clip=0.3))
    built = plan(network, ClippedGradients(clip=0.3, dim=101), budget, Schedule(epochs=5))
    assert replace(built, radio=Radio()).power_note == ""


def test_infeasible_total_budget_names_node_and_smallest_epsilon() -> None:
    network, schedule = asymmetric_network(3), Schedule(epochs=50, noise_to_step=5.0)
    with pytest.raises(Infeasible, match="node") as raised:
        plan(network, CLIP, Budget(epsilon=0.01), schedule)
    plan(network, CLIP, Budget(epsilon=raised.value.smallest_epsilon), schedule)


@pytest.mark.parametrize("seed", range(12))
def test_smallest_epsilon_per_epoch_works_when_tried(seed: int) -> None:
    network = asymmetric_network(seed)
    with pytest.raises(Infeasible, match="link") as raised:
        plan(network, CLIP, Budget(epsilon=1e-3, target="per-epoch"), Schedule(epochs=20))
    smallest = raised.value.smallest_epsilon
    built = plan(network, CLIP, Budget(epsilon=smallest, target="per-epoch"), Schedule(epochs=20))
    assert built.epsilon_per_epoch.max() <= smallest * (1 + 1e-9)


def test_record_needs_the_number_of_examples() -> None:
    with pytest.raises(Error, match="number of examples"):
        plan(asymmetric_network(3), CLIP, Budget(epsilon=1.0, unit="record"), Schedule(epochs=5))


def test_automatic_noise_needs_a_total_budget() -> None:
    with pytest.raises(Error, match="total budget"):
        plan(
            asymmetric_network(3), CLIP, Budget(epsilon=1, target="per-epoch"), Schedule(epochs=5, noise_to_step="auto")
        )


def test_max_degree_with_recursion_is_refused_and_with_perron_works() -> None:
    arguments = (topologies.complete(4), CLIP, Budget(epsilon=1.0), Schedule(epochs=5))
    with pytest.raises(Error, match="is 0 in epoch 2"):
        plan(*arguments, normaliser="max-degree")
    assert plan(*arguments, normaliser="max-degree", z="perron").mixing.normaliser == 3


def test_more_noise_fewer_epochs_smaller_clip_never_cost_more() -> None:
    network, budget = asymmetric_network(6), Budget(epsilon=2.0, target="per-epoch", theta=9.0)

    def mu(clip: float, epochs: int, noise: float) -> FloatLike:
        rule = PowerRule(minimum=0.3, maximum=0.3)  # the same split throughout
        problem, schedule = ClippedGradients(clip=clip), Schedule(epochs=epochs, noise_to_step=noise)
        return plan(network, problem, budget, schedule, power=rule).certificate.mu

    base = mu(0.01, 20, 10.0)
    assert (mu(0.01, 20, 11.0) < base).all()
    assert (mu(0.01, 19, 10.0) < base).all()
    assert (mu(0.009, 20, 10.0) < base).all()


FloatLike = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Budget(epsilon=0.0), "epsilon is 0"),
        (lambda: Budget(epsilon=1.0, delta=1.0), "delta is 1"),
        (lambda: Budget(epsilon=1.0, unit="recrod"), "unit"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=1), "epochs is 1"),
        (lambda: Schedule(epochs=5, decay="cube"), "decay"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=5, noise_to_step="much"), "noise_to_step"),  # type: ignore[arg-type]
        (lambda: Schedule(epochs=5, noise_to_step=0.0), "noise_to_step is 0"),
        (lambda: PowerRule(minimum=0.0), r"power\.min is 0"),
        (lambda: PowerRule(maximum=1.0), r"power\.max is 1"),
        (lambda: PowerRule(minimum=0.9, maximum=0.5), "above"),
        (lambda: PowerRule(objective="best"), "objective"),  # type: ignore[arg-type]
        (lambda: ClippedGradients(clip=0.0), "clip is 0"),
    ],
)
def test_impossible_values_are_errors(build: object, message: str) -> None:
    with pytest.raises(Error, match=message):
        build()  # type: ignore[operator]


def test_nothing_falls_back_where_the_even_split_is_the_best() -> None:
    budget = Budget(epsilon=20.0, target="per-epoch")
    built = plan(
        asymmetric_network(2),
        ClippedGradients(clip=1e-3),
        budget,
        Schedule(epochs=5),
        power=PowerRule(objective="noise"),
    )
    np.testing.assert_allclose(built.alpha, 0.99, rtol=1e-6)
    assert not built.fell_back_to_even
    check_consistent(built)
