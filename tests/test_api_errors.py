"""Slips in Python: every one ends in an error with a way out, none in a traceback or in silence."""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from tests.conftest import asymmetric_network, changed
from tests.experiments.sweeps import tiny

NODES, EPOCHS, DIM = 5, 8, 40


@cache
def problem(nodes: int = NODES, dim: int = DIM) -> mc.Quadratic:
    return mc.Quadratic.random(nodes, dim, seed=1)


@cache
def planned(epochs: int = EPOCHS, nodes: int = NODES) -> mc.Plan:
    schedule = mc.Schedule(epochs=epochs, step=0.1)
    return mc.plan(asymmetric_network(3, nodes), problem(nodes), mc.Budget(epsilon=2.0), schedule)


@cache
def claimed() -> mc.Algorithm:
    return mc.power_controlled(planned())


@cache
def result() -> mc.Result:
    return mc.run(claimed(), problem())


def refused(slip: Callable[[], object], words: str, way_out: str) -> None:
    with pytest.raises(mc.Error, match=words) as caught:
        slip()
    assert way_out in caught.value.hint


def not_numbers() -> mc.Algorithm:
    algorithm = claimed()
    send = algorithm.rounds[0].send
    return changed(algorithm, send=lambda here, state, drawn: jnp.nan * send(here, state, drawn))


def publishes_no_numbers() -> mc.Algorithm:
    algorithm = claimed()

    def update(*arguments: Any) -> Any:
        state = algorithm.rounds[0].update(*arguments)
        return state._replace(published=jnp.inf * state.published)

    return changed(algorithm, update=update)


@pytest.mark.parametrize(
    ("actual", "words", "way_out"),
    [
        (lambda: mc.mped2fl(planned()), r"another channel .* \['slots'\], not \['air'\]", "one channel"),
        (lambda: mc.central_dp(planned()), r"another channel .* \['server'\], not \['air'\]", "one channel"),
        (lambda: mc.power_controlled(planned(12)), "number of epochs .* 12, not 8", "one plan"),
        (lambda: mc.power_controlled(planned(6)), "number of epochs .* 6, not 8", "one plan"),
        (lambda: mc.power_controlled(planned(nodes=6)), "number of nodes .* 6, not 5", "one plan"),
        (planned, "Plan is given", "mc.power_controlled(plan)"),
        (not_numbers, "node 0 sends what is not a finite number", "division by 0"),
        (publishes_no_numbers, "node 0 publishes what is not a finite number", "division by 0"),
    ],
)
def test_what_cannot_be_held_against_the_claim(actual: Callable[[], Any], words: str, way_out: str) -> None:
    refused(lambda: mc.audit(claimed(), problem(), actual=actual(), runs=10), words, way_out)


@pytest.mark.parametrize(
    ("options", "words", "way_out"),
    [
        ({"target": "0"}, "target is '0'", "without quotes"),
        ({"target": 1.0}, r"target is 1\.0", "decimal point"),
        ({"target": -1}, "target is -1", "raise target"),
        ({"coalition": 1}, "coalition is 1", "coalition=(0, 2)"),
        ({"coalition": (1.0,)}, r"coalition is \(1\.0,\)", "coalition=(0, 2)"),
        ({"seed": "a"}, "seed is 'a'", "without quotes"),
        ({"seed": 1.0}, r"seed is 1\.0", "decimal point"),
        ({"runs": 99_999_999_999}, "99999999999 runs of 40 canaries", "lower the number of runs"),
    ],
)
def test_wishes_of_another_kind(options: dict[str, Any], words: str, way_out: str) -> None:
    refused(lambda: mc.audit(claimed(), problem(), **options), words, way_out)


@pytest.mark.parametrize(
    ("options", "words", "way_out"),
    [
        ({"precision": "x"}, 'precision is "x"', "float32"),
        ({"precision": 32}, 'precision is "32"', "float32"),
        ({"confidence": "0.9"}, "confidence must be numeric", "as a number"),
    ],
)
def test_options_of_another_kind(options: dict[str, Any], words: str, way_out: str) -> None:
    refused(lambda: mc.audit(claimed(), problem(), options=mc.AuditOptions(**options)), words, way_out)


@pytest.mark.parametrize(
    ("slip", "words", "way_out"),
    [
        (lambda: mc.certify("runs/my"), '"runs/my" is a name', 'mc.load_run("runs/my")'),  # type: ignore[arg-type]
        (lambda: mc.certify([Path("runs/my")]), '"runs/my" is a name', "mc.load_run"),  # type: ignore[list-item]
        (lambda: mc.certify([]), "no run is given", "at least one"),
        (lambda: mc.compare("runs/my"), '"runs/my" is a name', "mc.load_run"),  # type: ignore[arg-type]
        (lambda: mc.compare([result()]), "list is given", "each by itself"),  # type: ignore[arg-type]
        (lambda: mc.report(result(), "x.html"), "a run by itself", "[run]"),  # type: ignore[arg-type]
        (lambda: mc.report("runs/my", "x.html"), '"runs/my" is a name', "mc.load_run"),  # type: ignore[arg-type]
        (lambda: mc.audit(planned(), problem()), "Plan is given", "mc.power_controlled(plan)"),  # type: ignore[arg-type]
        (lambda: mc.run(planned(), problem()), "Plan is given", "mc.power_controlled(plan)"),  # type: ignore[arg-type]
        (lambda: mc.run(claimed(), problem(), seeds=3), "seeds is 3", "seeds=range(3)"),  # type: ignore[arg-type]
        (lambda: mc.run(claimed(), problem(), seeds=(0.5,)), r"seeds is \(0\.5,\)", "seeds=range(3)"),  # type: ignore[arg-type]
        (lambda: result().final("accuracy"), "no metric 'accuracy'", "known here: "),
        (lambda: result().final("loss"), "no metric 'loss'", "own_loss, published_loss"),
        (lambda: result().final("own_los"), "no metric 'own_los'", '"own_loss"'),
        (lambda: result().outcome().final("loss"), "no metric 'loss'", "own_loss, published_loss"),
        (
            lambda: mc.plan(problem(), asymmetric_network(3, NODES), mc.Budget(epsilon=1.0), mc.Schedule(epochs=8)),  # type: ignore[arg-type]
            "network is Quadratic, expected Network",
            "network=mc.Network(...)",
        ),
        (
            lambda: mc.plan(asymmetric_network(3, NODES), problem(), mc.Schedule(epochs=8), mc.Budget(epsilon=1.0)),  # type: ignore[arg-type]
            "budget is Schedule, expected Budget",
            "budget=mc.Budget(...)",
        ),
        (
            lambda: mc.plan(asymmetric_network(3, NODES), 3, mc.Budget(epsilon=1.0), mc.Schedule(epochs=8)),  # type: ignore[arg-type]
            "problem is int, expected a problem",
            "mc.ClippedGradients",
        ),
        (
            lambda: mc.plan(
                asymmetric_network(3, NODES),
                mc.Quadratic,  # type: ignore[arg-type]
                mc.Budget(epsilon=1.0),
                mc.Schedule(epochs=8),
            ),
            "problem is the class Quadratic, expected a problem",
            "mc.ClippedGradients",
        ),
        (lambda: mc.power_controlled(problem()), "plan is Quadratic, expected Plan", "plan=mc.Plan(...)"),  # type: ignore[arg-type]
        (lambda: mc.run(claimed(), problem(), seeds=[-1]), "seed is -1, expected 0 to 4294967295", "one of these"),
        (lambda: mc.run(claimed(), problem(dim=20)), "made for 40 parameters", "plan for this problem"),
        (lambda: mc.audit(claimed(), problem(dim=20)), "made for 40 parameters", "plan for this problem"),
    ],
)
def test_one_thing_for_another(
    slip: Callable[[], object], words: str, way_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(slip, words, way_out)


@pytest.mark.parametrize(
    ("slip", "words", "way_out"),
    [
        (lambda plan: plan.linear(0), "observers is 0", "observers=(0, 2)"),
        (lambda plan: plan.linear(("a",)), "observers is", "observers=(0, 2)"),
        (lambda plan: plan.linear_common(0), "observers is 0", "observers=(0, 2)"),
        (lambda plan: plan.amplified(0, 1.0), "observers is 0", "observers=(0, 2)"),
        (lambda plan: plan.collusion("a"), "seconds must be numeric", "a number"),
        (lambda plan: plan.collusion(-1), "seconds is -1", "0 or more"),
        (lambda plan: plan.collusion(math.nan), "seconds is nan", "0 or more"),
        (lambda plan: plan.until(99), "epochs is 99, and the plan has 8", "lower it"),
        (lambda plan: plan.until("x"), "epochs is 'x'", "without quotes"),
        (lambda plan: plan.mu_until("x"), "last must be numeric", "a number"),
        (lambda plan: plan.mu_until([3, 3]), r"last has shape \(2,\)", "one entry per node"),
        (lambda plan: plan.mu_until(99), "last is 99, and the plan has 8 epochs", "1 to 8"),
        (lambda plan: plan.mu_until(0), "last is 0", "1 to 8"),
        (lambda plan: plan.mu_until(2.5), r"last is 2\.5", "1 to 8"),
    ],
)
def test_questions_to_a_plan(slip: Callable[[Any], object], words: str, way_out: str) -> None:
    refused(lambda: slip(planned()), words, way_out)


def test_a_last_epoch_for_all_nodes_is_that_of_every_node() -> None:
    alike = [planned().mu_until(last) for last in (3, [3] * NODES, np.full(NODES, 3))]
    np.testing.assert_array_equal(alike, [planned().until(3).certificate.mu] * 3)


@pytest.mark.parametrize(
    ("slip", "words", "way_out"),
    [
        (lambda: mc.Schedule(epochs="x"), "epochs is 'x'", "without quotes"),  # type: ignore[arg-type]
        (lambda: mc.Schedule(epochs=8.0), r"epochs is 8\.0", "decimal point"),  # type: ignore[arg-type]
        (lambda: mc.Schedule(epochs=math.nan), "epochs is nan", "such as 2"),  # type: ignore[arg-type]
        (lambda: mc.Schedule(epochs=None), "epochs is None", "such as 2"),  # type: ignore[arg-type]
        (lambda: mc.Budget(epsilon="2"), "epsilon must be numeric", "a number"),  # type: ignore[arg-type]
        (lambda: mc.Budget(epsilon=2.0, unit=3), 'unit is "3"', "record"),  # type: ignore[arg-type]
        (lambda: mc.Budget(10.0), "Budget takes its arguments by name", "Budget(epsilon=...)"),  # type: ignore[call-arg]
        (lambda: mc.Budget(), "Budget needs epsilon", "Budget(epsilon=..., ...)"),  # type: ignore[call-arg]
        (lambda: mc.Budget(epsilom=1.0), "Budget has no argument epsilom", '"epsilon"'),  # type: ignore[call-arg]
        (lambda: mc.Network([[0, 1], [1, 0]]), "Network takes its arguments by name", "gains="),  # type: ignore[call-arg]
    ],
)
def test_settings_of_another_kind(slip: Callable[[], object], words: str, way_out: str) -> None:
    refused(slip, words, way_out)


def frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"u": [0.1, 0.2], "label": ["a", "b"]})


@pytest.mark.parametrize("problem", [mc.SoftmaxRegression, mc.RidgeRegression])
@pytest.mark.parametrize(
    ("data", "words", "way_out"),
    [
        (mc.datasets.digits, "data is a Dataset, expected a partition", 'data.partition("iid", nodes=network.nodes)'),
        (frame, "data is a DataFrame, expected a partition", "mc.datasets.load"),
        (lambda: np.zeros((3, 2)), "data is a ndarray", '.partition("iid", nodes=4)'),
        (lambda: None, "data is a NoneType", "mc.datasets.load"),
    ],
)
def test_data_that_is_not_shared_out(problem: Any, data: Callable[[], Any], words: str, way_out: str) -> None:
    refused(lambda: problem(data=data()), words, way_out)


@pytest.mark.parametrize("load", [mc.datasets.load, mc.datasets.from_file])
@pytest.mark.parametrize("given", [frame, lambda: np.zeros((3, 2)), lambda: 3])
def test_a_table_is_not_the_name_of_one(load: Any, given: Callable[[], Any]) -> None:
    refused(lambda: load(given()), "is given, expected the name of a set or of a file", "from_frame")


def test_a_missing_file_is_looked_for_in_a_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(lambda: mc.datasets.load("none.csv"), "none.csv does not exist", f"current folder, {tmp_path}")


@pytest.mark.parametrize(
    ("grid", "ranges", "words", "way_out"),
    [
        ({"privacy.epsilon": 3}, {}, "no values of privacy.epsilon: 3 is not a list", "[1, 2]"),
        ({"algorithm.name": "dp-dsgd"}, {}, "'dp-dsgd' is not a list", "[1, 2]"),
        ({"privacy.epsilon": [object()]}, {}, "a value of privacy.epsilon of type object", "numbers, words"),
        ({3: [1]}, {}, "3 is not a dotted key", "privacy.epsilon"),
        ([1.0], {}, "list is given, expected a dict", "privacy.epsilon"),
        (None, {"schedule.step": (0.1,)}, r"the range of schedule.step is \(0.1,\)", "(low, high)"),
        (None, {"schedule.step": ("a", "b")}, "expected two numbers", "(low, high)"),
        (None, {"schedule.step": 3}, "the range of schedule.step is 3", "(low, high)"),
        (None, [0.1, 1.0], "list is given, expected a dict", "schedule.step"),
    ],
)
def test_what_a_sweep_cannot_vary(grid: Any, ranges: Any, words: str, way_out: str, tmp_path: Path) -> None:
    options = mc.SweepOptions(ranges=ranges, random=2 if ranges else None, folder=tmp_path / "sweep")
    refused(lambda: mc.sweep(tiny(), grid, options), words, way_out)
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("given", [mc.progress, lambda: None, lambda: 3])
def test_whom_a_sweep_cannot_tell(given: Callable[[], Any]) -> None:
    refused(lambda: mc.SweepOptions(on_change=given()), "on_change is ", "with mc.progress() as bar:")


@pytest.mark.parametrize("noise", ["auto", 10.0])
def test_an_epsilon_that_rounding_swallows_is_named(noise: Any) -> None:
    schedule = mc.Schedule(epochs=EPOCHS, noise_to_step=noise)
    refused(
        lambda: mc.plan(asymmetric_network(3, NODES), problem(), mc.Budget(epsilon=1e-20), schedule),
        "epsilon 1e-20 is too small",
        "raise epsilon",
    )
    refused(lambda: mc.gaussian.mu([1.0, 1e20], 1e-5), r"epsilon 1e\+20 is too large", "lower epsilon")
