"""Networks to test on, asymmetric, so that a transposed index cannot pass; and algorithms with parts exchanged."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from xdist.scheduler import LoadFileScheduling

from murmurcast.algorithms.base import Algorithm
from murmurcast.engine.compile_cache import use_compile_cache
from murmurcast.network.graph import Network

MakeNetwork = Callable[[int], Network]
_MAX_PROGRAM_BYTES = 2**30


def asymmetric_network(seed: int, nodes: int | None = None) -> Network:
    """A connected random network of 3 to 7 nodes with unequal gains and powers."""
    rng = np.random.default_rng(seed)
    count = nodes or int(rng.integers(3, 8))
    support = np.triu(rng.random((count, count)) < 0.5, 1)
    order = rng.permutation(count)
    for a, b in pairwise(order):  # a path through all nodes keeps it connected
        support[min(a, b), max(a, b)] = True
    support = support | support.T
    return Network(gains=support * rng.uniform(0.3, 1.2, (count, count)), power=rng.uniform(0.5, 2.0, count))


def changed(algorithm: Algorithm, **parts: Any) -> Algorithm:
    """The algorithm with other parts of its only round."""
    (only,) = algorithm.rounds
    return algorithm._replace(rounds=(only._replace(**parts),))


@pytest.fixture(scope="session", autouse=True)
def prepare_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests and their commands keep compiled programs; fonts are listed once for all; Ctrl-C works everywhere."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what goes on in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = use_compile_cache()
    if kept is not None:
        _keep_all_programs(kept.parents[1] / "tests" / kept.name)
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one for all workers
    os.environ["MPLCONFIGDIR"] = str(base / "fonts")


def _keep_all_programs(folder: Path) -> None:
    """A cache beside the users': the tests compile more than theirs holds, so that it would forget each in turn.

    Without a bound JAX does not read the age of every entry whenever it adds one. A bound is kept here instead.
    """
    size = sum(path.stat().st_size for path in folder.glob("*")) if folder.exists() else 0
    if size > _MAX_PROGRAM_BYTES and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Any] = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": -1,
        "jax_persistent_cache_min_compile_time_secs": 0.01,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    for name, value in chosen.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)
    compilation_cache.reset_cache()


@pytest.fixture
def make_network() -> MakeNetwork:
    return asymmetric_network


# Of these, which take minutes together, every nth case is tried by default, and all with the slow tests.
EVERY_NTH = {
    "algorithms/test_accounts.py::test_an_untouched_run_is_kept_and_costs_what_was_on_the_air": 6,
    "algorithms/test_accounts.py::test_no_table_can_be_changed_so_that_the_account_is_too_low": 3,
    "algorithms/test_accounts.py::test_options_and_draws_that_were_edited_are_caught": 2,
    "algorithms/test_observed.py::test_nobody_learns_more_than_is_certified": 2,
    "algorithms/test_observed.py::test_weights_and_noise_are_those_that_the_channel_delivers": 6,
    "algorithms/test_over_radio.py::test_a_trace_costs_no_privacy_whatever_z_is": 4,
    "algorithms/test_over_radio.py::test_noise_follows_the_step_so_that_the_certificate_is_the_budget": 3,
    "algorithms/test_over_radio.py::test_power_per_symbol_stays_within_its_budget": 2,
    "algorithms/test_radio_accounts.py::test_an_edited_ledger_is_caught": 3,
    "algorithms/test_radio_accounts.py::test_an_untouched_run_is_kept_and_costs_what_the_budget_says": 3,
    "algorithms/test_reference_paths.py::test_the_path_is_the_expected_one": 3,
    "algorithms/test_registry.py::test_every_method_is_reached_from_a_file": 5,
    "algorithms/test_testing.py::test_every_method_keeps_to_the_protocol": 5,
    "audits/test_audit.py::test_faults_are_caught": 2,
    "audits/test_audit.py::test_records_of_real_data_at_the_mixed_point": 2,
    "audits/test_canaries.py::test_the_eavesdropper_is_left_with_noise_and_the_shift": 2,
    "audits/test_coins.py::test_coins_that_are_not_as_claimed_are_caught": 2,
    "audits/test_coins.py::test_honest_coins_are_accused_of_nothing": 4,
    "audits/test_controls.py::test_noise_that_is_not_as_claimed_is_caught": 3,
    "audits/test_controls.py::test_records_are_looked_at_as_closely": 2,
    "audits/test_controls_of_methods.py::test_a_broken_promise_is_caught": 3,
    "audits/test_controls_of_radio.py::test_a_control_is_caught_and_its_honest_twin_is_not": 3,
    "audits/test_controls_of_radio.py::test_a_method_that_repeats_with_fresh_noise_does_not_pass": 2,
    "audits/test_controls_of_radio.py::test_a_run_with_other_functions_is_promised_nothing": 2,
    "audits/test_controls_of_radio.py::test_under_fading_it_is_the_budgets": 4,
    "audits/test_first_and_sampled.py::test_releases_with_less_noise_are_caught": 6,
    "audits/test_methods.py::test_an_audit_comes_near_to_the_promise_and_not_above": 4,
    "audits/test_published.py::test_readings_are_white_and_shifted_by_the_canaries": 2,
    "audits/test_receivers.py::test_distribution_is_that_of_the_linear_diagnostic": 2,
    "audits/test_receivers_of_radio.py::test_published_models_alone_are_as_far_apart_as_their_covariance_says": 2,
    "audits/test_receivers_of_radio.py::test_readings_are_white_and_as_far_apart_as_the_diagnostic_says": 4,
    "audits/test_receivers_of_radio.py::test_their_own_signals_in_every_round_are_subtracted": 2,
    "certificates/test_first_and_sampled.py::test_an_edited_sampling_is_caught": 2,
    "certificates/test_forged_data.py::test_what_contradicts_the_rest_is_refused": 3,
    "certificates/test_forged_folders.py::test_a_forged_folder_is_refused": 4,
    "certificates/test_forged_folders.py::test_a_forged_folder_of_another_kind_is_refused": 3,
    "certificates/test_forged_folders.py::test_an_honest_run_is_accepted": 8,
    "certificates/test_forged_preprocessing.py::test_with_experiment_and_data_at_hand_all_of_it_shows": 6,
    "certificates/test_forged_radio.py::test_a_forged_folder_is_refused_beside_its_experiment": 3,
    "certificates/test_forged_radio.py::test_a_forged_folder_is_refused_by_its_own_contradiction": 8,
    "certificates/test_forged_radio.py::test_an_honest_run_over_a_radio_is_accepted": 3,
    "channels/test_radio_air.py::test_a_trace_is_played_back_step_by_step": 2,
    "channels/test_radio_air.py::test_the_units_of_models_decide_nothing": 3,
    "channels/test_radio_air.py::test_what_is_delivered_is_the_matrix_form": 3,
    "cli/test_certify.py::test_edits_with_fresh_hashes": 3,
    "cli/test_plan_nominal.py::test_where_nothing_is_promised_the_plan_says_nominal": 2,
    "cli/test_run.py::test_steps_that_are_too_long_are_not_passed_over": 2,
    "engine/test_algorithm_1.py::test_follows_the_transcription": 2,
    "engine/test_large.py::test_it_is_what_the_compiled_loop_does": 2,
    "experiments/test_problem.py::test_a_run_of_a_shipped_module_is_certified_as_a_whole": 2,
    "experiments/test_rank.py::test_equal_steps_move_the_mean_model_equally_far": 3,
    "experiments/test_tune.py::test_a_try_is_found_again_only_where_nothing_has_changed": 2,
    "experiments/test_tune.py::test_methods_of_every_kind_can_be_tuned": 3,
    "fuzz/test_data_files.py::test_any_accident": 4,
    "fuzz/test_network_files.py::test_any_accident": 2,
    "fuzz/test_run_folders.py::test_accidents_with_fresh_hashes": 4,
    "fuzz/test_run_folders.py::test_any_accident_is_noticed": 4,
    "fuzz/test_run_folders.py::test_figures_and_ledger_forged": 4,
    "fuzz/test_run_folders.py::test_names_are_shown_and_not_obeyed": 9,
    "planning/test_solve.py::test_alpha_for_given_noise_meets_the_total_budget": 3,
    "privacy/test_amplification.py::test_lies_between_the_diagnostic_and_the_certificate": 2,
    "privacy/test_amplification.py::test_more_noise_fewer_epochs_smaller_clip_and_smoothness_never_cost_more": 3,
    "privacy/test_amplification.py::test_the_shift_hides_the_target_and_costs_no_more_than_the_bound": 3,
    "privacy/test_dominating_pair.py::test_records_that_find_no_room_are_counted": 3,
    "privacy/test_exact_joint.py::test_noise_in_models_and_in_gradients": 3,
    "privacy/test_gaussian.py::test_dp_accounting_agrees_on_composition": 3,
    "privacy/test_linear.py::test_diagnostic_stays_below_the_certificate": 2,
    "problems/modules/test_convert.py::test_a_function_of_a_key_begins_anew_for_every_seed_and_a_module_where_it_st"
    "ands": 2,
    "problems/modules/test_convert.py::test_gradients_are_those_of_single_examples": 2,
    "problems/test_base.py::test_a_large_minibatch_has_no_row_twice": 3,
    "problems/test_base.py::test_a_minibatch_has_no_row_twice_and_every_row_with_equal_chance": 2,
    "problems/test_base.py::test_products_are_plain_products": 4,
    "problems/test_per_example.py::test_no_example_and_no_node_passes_the_clip": 3,
    "problems/test_per_example.py::test_sums_are_those_of_single_gradients": 5,
    "problems/test_ridge.py::test_gradients_are_those_of_a_loop": 3,
    "problems/test_sampling.py::test_a_gradient_is_the_clipped_sum_of_those_who_joined_over_the_expected_number": 2,
    "problems/test_softmax.py::test_gradients_are_those_of_a_loop": 3,
    "reports/test_charts.py::test_epsilon_from_the_ledger_is_the_plans": 2,
    "runs/test_run.py::test_evaluation_and_chunks_change_no_bit": 2,
    "runs/test_uses_in_record.py::test_a_run_says_both": 2,
    "runs/test_variants.py::test_a_second_setting_gives_what_a_run_of_its_own_gives": 3,
}


# Files whose tests share nothing, and which are long: any process may take any of their tests.
_TEST_BY_TEST = ("recorded/test_recorded.py", "test_docs.py", "test_examples.py")


class _ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Tests of a file go to one process, which keeps what they share, but for those that share nothing."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return nodeid if file.removeprefix("tests/") in _TEST_BY_TEST else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """Called by pytest-xdist."""
    return _ByFile(config, log)


# Begun first, so that no process is left alone with one of them at the end.
_LONGEST = (
    *("test_docs.py", "recorded/test_recorded.py", "test_examples.py", "audits/test_audit.py"),
    *("experiments/test_rank.py", "algorithms/test_over_radio.py", "audits/test_controls_of_radio.py"),
    *("cli/test_run.py", "cli/test_audit.py", "certificates/test_forged_folders.py", "runs/test_run.py"),
    *("audits/test_controls.py", "fuzz/test_run_folders.py", "audits/test_receivers_of_radio.py"),
    *("certificates/test_accounting.py", "certificates/test_certify.py", "cli/test_sweep.py", "cli/test_processes.py"),
    *("experiments/test_tune.py", "engine/test_large.py", "problems/test_per_example.py", "channels/test_radio_air.py"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first, and marks repetitions as slow."""
    order = {f"tests/{name}": place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.split("::")[0], len(order)))
    seen: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.split("[")[0].removeprefix("tests/")
        if name not in EVERY_NTH or item.get_closest_marker("slow"):
            continue
        if seen[name] % EVERY_NTH[name]:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1


def slow_but_every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of which every nth is tried by default; the others take minutes together, and run with the slow tests."""
    return [
        case if place % nth == 0 else pytest.param(*_parts(case), marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]


def _parts(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
