"""Algorithm 1 and its multicast without bias at equal budgets: files are what they claim, and who leads is told."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.reproduction import unequal_data
from murmurcast.reproduction.settings import DIFFUSION, OURS
from murmurcast.reproduction.unequal_data import Duel


@pytest.fixture(scope="module")
def duel() -> Duel:
    return Duel(3.0, 40, *(unequal_data._trained(name, 3.0, 40) for name in (OURS, DIFFUSION)))


def test_both_have_the_same_budget_uses_data_and_network() -> None:
    for epsilon, uses in unequal_data.BUDGETS:
        ours, diffusion = (unequal_data.experiment(name, epsilon, uses) for name in (OURS, DIFFUSION))
        assert ours.privacy == diffusion.privacy
        assert (ours.network, ours.data, ours.problem) == (diffusion.network, diffusion.data, diffusion.problem)
        assert ours.privacy.epsilon == epsilon
        assert ours.schedule.epochs == diffusion.schedule.epochs == uses


@pytest.mark.slow
def test_exact_diffusion_leads_clearly_where_data_is_unequal_and_uses_are_few(duel: Duel) -> None:
    for result in (duel.ours, duel.diffusion):
        assert result.info["privacy"]["epsilon"] == pytest.approx(3.0)
        assert result.info["privacy"]["against"] == "everybody"
        assert int(result.metrics["channel_uses"][-1]) == 40
        assert mc.certify(result).verdict == "kept"
    gap, error = duel.lead
    assert gap > 0.2
    assert gap > 4 * error


@pytest.mark.slow
def test_table_curves_and_words_are_of_the_runs(duel: Duel) -> None:
    [finding] = unequal_data.findings((duel,))
    [row] = unequal_data.table((duel,)).rows
    assert "exact diffusion leads" in finding.text
    end = float(np.asarray(duel.diffusion.final("published_accuracy")).mean())
    assert f"{end:.3f}" in finding.text
    assert row[:2] == ("3", "40")
    assert row[3].startswith(f"{end:.3f}")
    _, columns = unequal_data.curves((duel,))["unequal-data-3-40"]
    np.testing.assert_allclose(columns[-1, [0, 3]], [40, end], rtol=1e-6)


@pytest.mark.slow
def test_who_does_not_lead_clearly_is_not_said_to(duel: Duel) -> None:
    [finding] = unequal_data.findings((duel._replace(diffusion=duel.ours),))
    assert "neither leads clearly" in finding.text
    [finding] = unequal_data.findings((duel._replace(ours=duel.diffusion, diffusion=duel.ours),))
    assert "Algorithm 1 leads" in finding.text
