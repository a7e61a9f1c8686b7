"""Forged folders of other methods, with every hash made anew; as if made in Python, so that no plan gives them away."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.special import erf

import murmurcast as mc
from murmurcast.algorithms.registry import find
from murmurcast.certificates.certify import certify
from murmurcast.errors import Altered
from murmurcast.privacy import gaussian, laplace
from murmurcast.runs.result import Result
from tests.certificates.forgeries import promised_anew, times
from tests.certificates.ledger_edits import EPOCHS, make_plan, with_ledger

DIM = 40


@cache
def honest(name: str, seed: int = 0) -> Result:
    problem = mc.Quadratic.random(4, DIM, seed=1, clip=1.3)
    return mc.run(find(name).make(make_plan(problem)), problem, seeds=[seed])


def forged(name: str, edit: Any) -> Result:
    run = honest(name)
    return promised_anew(with_ledger(run, edit(run.ledger)))


def later_rows(name: str, factor: float, first: int = 1) -> Any:
    """A table larger in later epochs: what data is divided by there, and so what it costs, follows."""

    def edit(ledger: xr.Dataset) -> xr.Dataset:
        values = np.broadcast_to(ledger[name], (EPOCHS, *ledger[name].shape[1:])).copy()
        values[first:] *= factor
        return ledger.drop_vars(name).assign({name: (("forged_row", "node"), values)})

    return edit


def trackers_divided(ledger: xr.Dataset) -> xr.Dataset:
    """z after the first epoch, in both places where it stands."""
    once: xr.Dataset = later_rows("tracker_receiving_z", 3.0)(ledger)
    both: xr.Dataset = later_rows("tracker_receiving_next_z", 3.0, first=0)(once)
    return both


FORGED = {
    "row-stochastic-laplace": later_rows("model_receiving_z", 2.0),
    "private-frost": trackers_divided,
    "private-push-pull": trackers_divided,
    "private-gradient-tracking": trackers_divided,
    "decor": times(model_receiving_z=2.0),
    "subgradient-push-gaussian": times(model_receiving_y=2.0),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FORGED)
def test_what_is_divided_by_follows_from_the_weights(name: str) -> None:
    """A larger divisor makes data count less, and the promise with it."""
    assert certify(honest(name)).verdict == "kept"
    with pytest.raises(Altered, match="does not follow from its gains and amplitudes"):
        certify(forged(name, FORGED[name]))


def test_laplace_noise_that_was_never_sent_is_found_out() -> None:
    louder = forged("row-stochastic-laplace", times(model_sending_noise=4.0))
    with pytest.raises(Altered, match="the noise in the ledger was not sent"):
        certify(louder)
    for seed in range(3):
        assert certify(honest("row-stochastic-laplace", seed)).verdict == "kept"


def test_laplace_noise_has_more_energy_than_the_gaussian_it_is_compared_with() -> None:
    """In distribution, whatever the size: so an honest run is refused no more often than under Gaussian noise."""
    size = np.logspace(-9, 2, 2000)
    assert (-np.expm1(-size) <= erf(size * np.sqrt(np.pi) / 2) * (1 + 1e-12)).all()


def test_laplace_noise_is_certified_by_its_own_curve() -> None:
    """The number of the run is that of its certificate; beside Gaussian noise, the curve that holds for both."""
    run, other = honest("row-stochastic-laplace"), honest("dp-dsgd", 1)
    certified, delta = certify(run), 1e-5
    assert certified.epsilon.max() == pytest.approx(run.info["privacy"]["epsilon"], rel=1e-9)
    assert (certified.epsilon < gaussian.epsilon(certified.mu, delta) * 0.95).all()
    twice = certify([run, honest("row-stochastic-laplace", 2)])
    np.testing.assert_allclose(twice.epsilon, laplace.epsilon(np.sqrt(2) * certified.mu, delta), rtol=1e-9)
    both = certify([run, other])
    np.testing.assert_allclose(both.epsilon, gaussian.epsilon(both.mu, delta), rtol=1e-9)
