"""A certificate says how settings were chosen, asks where nobody says, and counts the runs that were tried."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.experiments import load as experiment_files
from murmurcast.privacy import best_guess
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import caught, quadratic, with_ledger
from tests.conftest import asymmetric_network


def run(statement: str, name: str = "ours", seed: int = 0) -> Result:
    problem = quadratic()
    budget = mc.Budget(epsilon=1.0, settings_chosen=statement)
    plan = mc.plan(asymmetric_network(3, 4), problem, budget, mc.Schedule(epochs=5, step=0.3))
    return mc.run(mc.power_controlled(plan), problem, seeds=[seed], options=mc.RunOptions(name=name))


def edited(done: Result, statement: str) -> Result:
    return with_ledger(done, done.ledger.assign_attrs(settings_chosen=statement))


@pytest.mark.parametrize("statement", ["fixed beforehand", "on public data"])
def test_the_statement_reaches_run_ledger_and_certificate(statement: str) -> None:
    done = run(statement)
    assert done.info["privacy"]["settings_chosen"] == done.ledger.attrs["settings_chosen"] == statement
    outcome = certify(done)
    assert outcome.settings_chosen == statement
    assert outcome.warnings == ()
    assert any(statement in line for line in outcome.assumptions)


def test_where_nothing_is_stated_the_certificate_asks() -> None:
    outcome = certify(run("not stated"))
    assert outcome.verdict == "kept"
    assert outcome.settings_chosen == "not stated"
    assert len(outcome.warnings) == 1
    assert 'privacy.settings_chosen = "fixed beforehand"' in outcome.warnings[0]


def test_runs_that_leave_the_statement_out_are_refused() -> None:
    done = run("not stated")
    silent = replace(done, info=done.info | {"privacy": dict(done.info["privacy"])}, ledger=done.ledger.copy())
    del silent.info["privacy"]["settings_chosen"], silent.ledger.attrs["settings_chosen"]
    with pytest.raises(mc.Error, match="does not say its settings_chosen"):
        certify(silent)
    assert certify(done).warnings  # said so, it is kept, and asked for


def test_runs_that_were_tried_are_counted_or_named_as_missing() -> None:
    first, second = (run("fixed beforehand", f"runs/try-{seed}", seed) for seed in (1, 2))
    chosen = run("on this data, paid: try-1, try-2", "chosen", 3)
    alone, with_one, with_all = (certify(runs) for runs in (chosen, [chosen, first], [chosen, first, second]))
    assert "missing here: try-1, try-2." in alone.warnings[0]
    assert "missing here: try-2." in with_one.warnings[0]
    assert with_all.warnings == ()
    np.testing.assert_allclose(with_all.mu, np.sqrt(3) * alone.mu)
    assert with_all.settings_chosen == "on this data, paid: try-1, try-2; fixed beforehand"


def test_a_run_that_names_itself_pays_for_nothing() -> None:
    chosen, other = run("on this data, paid: mon/a", "tue/a", 3), run("fixed beforehand", "wed/a", 4)
    for runs in (chosen, [chosen, other]):
        (line,) = certify(runs).warnings
        assert "missing here: mon/a." in line
    assert certify([chosen, run("fixed beforehand", "mon/a", 5)]).warnings == ()


def test_runs_of_one_name_count_for_one_of_those_that_were_tried_each() -> None:
    first, second = run("fixed beforehand", "mon/a", 1), run("fixed beforehand", "tue/a", 2)
    chosen = run("on this data, paid: mon/a, tue/a", "chosen", 3)
    assert "missing here: tue/a." in certify([chosen, first]).warnings[0]
    assert "missing here: mon/a." in certify([second, chosen]).warnings[0]
    assert certify([first, chosen, second]).warnings == ()


def test_two_runs_do_not_pay_for_each_other() -> None:
    both = [run("on this data, paid: tried", name, seed) for seed, name in enumerate(("mon/tried", "tue/tried"))]
    assert [line.count("missing here: tried.") for line in certify(both).warnings] == [1, 1]
    assert certify([*both, run("fixed beforehand", "tried", 2)]).warnings == ()


def test_a_statement_that_was_changed_afterwards_is_refused() -> None:
    done = run("not stated")
    assert "how settings were chosen" in caught(edited(done, "fixed beforehand"))
    info = done.info | {"privacy": done.info["privacy"] | {"settings_chosen": "whatever"}}
    assert "not known" in caught(replace(edited(done, "whatever"), info=info))


def test_the_experiment_says_the_same(tmp_path: Path) -> None:
    text = experiment_files.example("digits")
    path = tmp_path / "digits.toml"
    path.write_text(text)
    experiment = experiment_files.load(path, {"privacy.settings_chosen": "on public data", "schedule.epochs": "3"})
    problem, algorithm = experiment.build(tmp_path)
    options = mc.RunOptions(experiment=experiment.as_toml())
    done = mc.run(algorithm, problem, seeds=range(3), options=options)
    assert certify(done).settings_chosen == "on public data"
    forged = replace(done, experiment=done.experiment.replace("on public data", "fixed beforehand"))
    assert "settings_chosen is fixed beforehand in experiment.toml" in caught(forged)


def test_the_certificate_says_what_its_number_means() -> None:
    outcome = certify(run("fixed beforehand"))
    np.testing.assert_allclose(outcome.best_guess, best_guess.of_mu(outcome.mu))


def test_budgets_without_meaning_are_said_so() -> None:
    done = run("fixed beforehand")
    (line,) = certify(done, delta=0.5).warnings
    assert line.startswith("delta without meaning: 0.5 is not below 1/")
    assert certify(done, delta=1e-6).warnings == ()
