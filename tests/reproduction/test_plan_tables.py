"""Tables about the paper's networks, against the plans they come from."""

import numpy as np
import pytest

from murmurcast.planning.plan import Plan
from murmurcast.privacy import gaussian
from murmurcast.reproduction import plan_tables
from murmurcast.reproduction.document import Table
from murmurcast.reproduction.settings import OURS, settings


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    published = [setting for setting in settings("mnist", 5) if setting.group == "published"]
    return [setting.experiment.build_plan() for setting in published if setting.algorithm == OURS]


@pytest.fixture(scope="module")
def tables(plans: list[Plan]) -> dict[str, Table]:
    return {table.name: table for table in plan_tables.tables(plans)}


def test_the_rival_s_ratio_depends_on_the_order_of_the_printed_rows(tables: dict[str, Table]) -> None:
    ratios = {(row[0], row[1].split()[0]): float(row[2]) for row in tables["readings"].rows}
    assert ratios == {
        ("1", "receivers"): 3.355,
        ("1", "senders"): 3.424,
        ("2", "receivers"): 5.793,
        ("2", "senders"): 3.424,
    }


def test_the_split_and_epsilon_are_the_plans(tables: dict[str, Table], plans: list[Plan]) -> None:
    shown = np.array([[float(cell) for cell in row[2:4]] for row in tables["power-split"].rows])
    np.testing.assert_allclose(shown[:, 0], np.concatenate([plan.alpha for plan in plans]), atol=5e-5)
    np.testing.assert_allclose(shown.sum(axis=1), 1, atol=1.1e-4)
    for budget, plan in zip(("1", "2"), plans, strict=True):
        rows = [row[2:] for row in tables["epsilon-per-epoch"].rows if row[0] == budget]
        matrix = np.array([[0.0 if cell == "-" else float(cell) for cell in row] for row in rows])
        exact = plan.epsilon_per_epoch.toarray()
        np.testing.assert_allclose(matrix, exact, atol=1e-4)
        assert (matrix >= exact * (1 - 1e-9)).all()  # rounded up
        assert matrix.max() == pytest.approx(float(budget), abs=1e-3)
        assert not np.allclose(matrix, matrix.T, atol=1e-3)  # receiver and sender cannot be swapped unnoticed


def test_pairs_learn_more_than_their_members_and_less_than_everybody(plans: list[Plan]) -> None:
    for plan in plans:
        leaks = plan_tables.leakage(plan)
        certified = gaussian.epsilon(plan.certificate.mu, plan.paper_claim.delta)
        for observers, leaked in leaks.items():
            assert (leaked <= certified * (1 + 1e-9)).all()
            assert (leaked[list(observers)] == 0).all()
            for member in observers:
                others = [node for node in range(4) if node not in observers]
                assert (leaked[others] >= leaks[(member,)][others] * (1 - 1e-9)).all()


def test_the_cost_table_sets_claim_and_what_holds_side_by_side(tables: dict[str, Table], plans: list[Plan]) -> None:
    rows = [row for row in tables["cost"].rows if row[0] == "1"]
    by = {(row[1], row[4]): float(row[3]) for row in rows if row[1] != "linear diagnostic"}
    assert by["the paper's Corollary", "0.001"] == pytest.approx(100, rel=1e-3)
    assert by["nominal, by the certificate's formula", "1e-05"] == pytest.approx(
        plans[0].certificate.epsilon.max(), rel=1e-3
    )
    assert "no guarantee" in tables["cost"].note
    assert all("certif" not in row[2] for row in rows if row[1] == "linear diagnostic")


def test_the_rival_s_own_epsilon_is_the_label_only_with_matched_steps(plans: list[Plan]) -> None:
    """By hand: S/q times c_i/sqrt(noise) at the worst receiver times the textbook factor, without theta."""
    factor = np.sqrt(2 * np.log(1.25 / 1e-5))
    for plan, ratio, label in zip(plans, (3.355, 5.793), (1, 2), strict=True):
        published = 2 * plan.problem.gradient_clip.limit / 10 * ratio * factor
        assert plan_tables.rival_epsilon(plan, 1) == pytest.approx(published, rel=1e-3)
        assert plan_tables.rival_epsilon(plan, plan.theta) == pytest.approx(label, rel=1e-3)
        assert plan_tables.rival_epsilon(plan, 4) == pytest.approx(label, rel=0.03)


def test_a_claim_below_the_diagnostic_is_called_contradicted(
    plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [finding.holds for finding in plan_tables.findings(plans)] == 6 * [None]
    monkeypatch.setattr(plan_tables, "worst", lambda *_: ((0, 1), 1e4))
    assert plan_tables.findings(plans)[0].holds is False
    assert "contradicts it" in plan_tables.findings(plans)[0].text


def test_the_certificate_is_never_named_beside_the_diagnostic(plans: list[Plan]) -> None:
    for finding in plan_tables.findings(plans):
        assert not ("certif" in finding.text and "diagnostic" in finding.text)
