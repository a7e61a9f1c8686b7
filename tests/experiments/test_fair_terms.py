"""Terms of a ranking, method by method: what is made equal, and what stays as the file says."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.method import Method
from murmurcast.experiments.fair_terms import (
    HEADROOM,
    LENGTHS,
    Contender,
    Steps,
    around,
    contenders,
    entered,
    lengths_in_steps,
)
from murmurcast.experiments.load import parse
from murmurcast.privacy.releases import ADVERSARIES

NODES = 7
FILE = """
[network]
topology = "ring"
nodes = 7
[data]
name = "logistic"
[privacy]
epsilon = 1.5
delta = 1e-4
unit = "record"
clip = 0.3
target = "per-epoch"
[schedule]
epochs = 50
step = 3.0
noise_timing = "paper"
noise_to_step = 2.0
[run]
seeds = 9
stop_after = 5
"""
STEP_ALONG_THE_MEAN = {
    *("power-controlled-diffusion", "dp-dsgd", "dsgd", "subgradient-push-gaussian", "subgradient-push"),
    *("private-push-pull", "push-pull", "private-gradient-tracking", "gradient-tracking"),
    *("private-exact-diffusion", "exact-diffusion", "decor-exact-diffusion"),
    *("muffliato", "mafalda", "mped2fl", "ped2fl", "dwfl"),
}


def experiment(algorithm: str = 'name = "power-controlled"') -> mc.Experiment:
    return parse(f"{FILE}[algorithm]\n{algorithm}\n".encode(), "my.toml")


def terms(name: str, algorithm: str = 'name = "power-controlled"') -> list[dict[str, Any]]:
    return [one.options for one in contenders(registry.find(name), experiment(algorithm), NODES)]


@pytest.mark.parametrize("method", registry.methods(), ids=lambda method: method.name)
def test_steps_are_lengthened_for_methods_that_step_along_the_mean_and_no_others(method: Method) -> None:
    for given in terms(method.name):
        assert given.get("step_factor") == (NODES if method.name in STEP_ALONG_THE_MEAN else None)
    assert method.averages == (method.name in STEP_ALONG_THE_MEAN)


@pytest.mark.parametrize("method", registry.methods(), ids=lambda method: method.name)
def test_published_points_are_averages_or_what_was_heard(method: Method) -> None:
    known = {option.name for option in method.options}
    for given in terms(method.name):
        assert given.get("publish") == ("average" if "publish" in known else None)
        assert given.get("publish_from") == ("heard" if "publish_from" in known else None)
        assert given.get("headroom") == (HEADROOM if "headroom" in known else None)
        assert not {"publish", "publish_from"} <= known  # of both, one alone would be made equal
        method.checked(given)  # options that it has, of their kind
    assert 0 < HEADROOM < 1


@pytest.mark.parametrize("name", ["decor", "decor-exact-diffusion"])
def test_methods_with_a_choice_of_adversary_enter_once_for_each(name: str) -> None:
    assert {given["against"] for given in terms(name)} == set(ADVERSARIES) - {"trusted server"}
    assert len(terms(name)) == 3
    shared = [{key: value for key, value in given.items() if key != "against"} for given in terms(name)]
    assert shared[0] == shared[1] == shared[2]


def test_all_others_enter_once_and_say_no_adversary() -> None:
    for method in registry.methods():
        if not method.name.startswith("decor"):
            (given,) = terms(method.name)
            assert "against" not in given


def test_numbers_stay_as_the_file_says_and_words_that_make_methods_unequal_do_not() -> None:
    (given,) = terms("muffliato", 'name = "muffliato"\ngossip = 9\nweights = "metropolis"\nstep_factor = 0.5')
    assert given == {"gossip": 9, "step_factor": float(NODES), "publish": "average"}
    (given,) = terms("frost", 'name = "frost"\nstep_factor = 0.5\npublish = "last"')
    assert given == {"publish": "average"}
    (given,) = terms("mped2fl", 'name = "mped2fl"\nheadroom = 0.2\nsmoothness = 3.0\npublish_from = "mixed"')
    assert given == {"smoothness": 3.0, "headroom": HEADROOM, "publish_from": "heard", "step_factor": float(NODES)}
    first, *_ = terms("decor", 'name = "decor"\nshared_to_own = 4.0\nagainst = "everybody"')
    assert first["shared_to_own"] == 4.0


def test_options_of_another_method_are_not_taken_over() -> None:
    (given,) = terms("dp-dsgd", 'name = "muffliato"\ngossip = 9')
    assert "gossip" not in given


def test_an_entered_experiment_has_the_method_the_budget_and_the_schedule() -> None:
    before = experiment()
    contender = Contender(registry.find("muffliato"), {"gossip": 3, "publish": "average"})
    after = entered(before, contender, 4.0, Steps(12, 0.25, "linear"))
    assert (after.algorithm.name, after.algorithm.options) == ("muffliato", contender.options)
    assert (after.schedule.epochs, after.schedule.step, after.schedule.decay) == (12, 0.25, "linear")
    assert (after.schedule.noise_timing, after.schedule.noise_to_step) == ("quiet-start", None)
    assert (after.privacy.epsilon, after.privacy.target, after.privacy.noise_source) == (4.0, "certificate", "seeded")
    for kept in ("delta", "unit", "clip", "records_per_person"):
        assert getattr(after.privacy, kept) == getattr(before.privacy, kept)
    assert (after.network, after.data, after.problem, after.power) == (
        before.network,
        before.data,
        before.problem,
        before.power,
    )
    assert (after.run.seeds, after.run.stop_after) == (1, None)
    assert (before.schedule.epochs, before.algorithm.name) == (50, "power-controlled")  # untouched


def test_without_a_budget_the_files_own_stays() -> None:
    contender = Contender(registry.find("dsgd"), {})
    assert entered(experiment(), contender, None, Steps(2, 1.0, "constant")).privacy.epsilon == 1.5


def test_the_grid_is_one_length_along_the_mean_whatever_the_number_of_nodes() -> None:
    for nodes in (1, 3, 50):
        np.testing.assert_allclose(np.array(lengths_in_steps(nodes)) * nodes, LENGTHS)
    assert list(LENGTHS) == sorted(LENGTHS)


def test_the_surroundings_of_a_step_lie_half_way_to_its_neighbours() -> None:
    grid = lengths_in_steps(NODES)
    for below, step, above in zip(grid, grid[1:], grid[2:], strict=False):
        low, high = around(step)
        assert below < low < step < high < above
        assert low == pytest.approx(np.sqrt(below * step), rel=2e-3)
        assert high == pytest.approx(np.sqrt(step * above), rel=2e-3)
        assert low * high == pytest.approx(step**2)


def test_changed_options_leave_a_contender_as_it_was() -> None:
    before = Contender(registry.find("decor"), {"against": "everybody", "shared_to_own": 10.0})
    after = before.with_options({"shared_to_own": 1.0})
    assert after.options == {"against": "everybody", "shared_to_own": 1.0}
    assert before.options["shared_to_own"] == 10.0
    assert after.method is before.method
