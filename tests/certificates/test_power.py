"""Power sent against noise claimed: when the test speaks up, and how rarely it does so wrongly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from murmurcast._check import FloatArray
from murmurcast.certificates.ledger import Ledger
from murmurcast.certificates.power import FALSE_ALARM, require_noise_sent
from murmurcast.errors import Altered
from murmurcast.runs.result import Result

NODES, EPOCHS, SEEDS, DIM = 3, 5, 2, 20
POWER, STD = np.array([1.0, 2.0, 0.5]), np.array([0.3, 2.0, 1.0])


def sent(squares: FloatArray) -> tuple[Result, Ledger]:
    """A run that sent these energies, [seeds, epochs, nodes], over the variance of its noise."""
    stated = squares * STD**2 / POWER
    metrics = xr.Dataset(
        {"sent_power": (("seed", "epoch", "node"), stated), "loudest": (("seed", "node"), stated.max(axis=1))},
        {"epoch": np.arange(1, EPOCHS + 1)},
    )
    ledger = xr.Dataset({"power": ("node", POWER)}, attrs={"epochs": EPOCHS})
    run = Result(metrics=metrics, ledger=ledger, published=np.zeros((SEEDS, NODES, DIM)), info={"name": "one"})
    return run, Ledger(ledger, "one", NODES, EPOCHS)


def claimed(ledger: Any, epochs: Any) -> FloatArray:  # noqa: ARG001
    return np.broadcast_to(STD, (len(epochs), NODES))


def test_noise_alone_is_enough_and_more_is_never_too_much() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        noise = rng.standard_normal((SEEDS, EPOCHS, NODES, DIM))
        require_noise_sent(*sent((noise**2).sum(axis=-1)), claimed)
        require_noise_sent(*sent(((noise + rng.uniform(-9, 9)) ** 2).sum(axis=-1)), claimed)


def test_the_chance_of_a_false_alarm_is_what_it_says() -> None:
    """Just above the quantile of a node's sum, and just below it."""
    freedom = DIM * EPOCHS * SEEDS
    least = stats.chi2.ppf(FALSE_ALARM / 2 / NODES, freedom) / (EPOCHS * SEEDS)
    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))
    squares[:, :, 1] = least * 1.001
    require_noise_sent(*sent(squares), claimed)
    squares[:, :, 1] = least * 0.99
    with pytest.raises(Altered, match=f"node 1 sent .* and {freedom} draws"):
        require_noise_sent(*sent(squares), claimed)


def test_one_quiet_epoch_is_found_among_loud_ones() -> None:
    squares = np.full((SEEDS, EPOCHS, NODES), 9.0 * DIM)
    squares[1, 3, 2] = 0.01
    with pytest.raises(Altered, match="node 2 sent"):
        require_noise_sent(*sent(squares), claimed)


def test_who_has_dropped_out_sends_nothing() -> None:
    def until(ledger: Any, epochs: Any) -> FloatArray:
        return np.asarray(claimed(ledger, epochs) * ((epochs[:, None] <= 2) | (np.arange(NODES) != 1)))

    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))
    squares[:, 2:, 1] = 0
    require_noise_sent(*sent(squares), until)
    squares[0, 4, 1] = 1.0
    with pytest.raises(Altered, match="where the ledger has none"):
        require_noise_sent(*sent(squares), until)


def test_numbers_that_are_none_need_a_model_that_diverged() -> None:
    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))
    squares[0, 2, 0] = np.nan
    run, ledger = sent(squares)
    with pytest.raises(Altered, match="do not say what node 0 sent"):
        require_noise_sent(run, ledger, claimed)
    models = run.published.copy()
    models[0, 0] = np.nan
    require_noise_sent(replace(run, published=models), ledger, claimed)


def quiet_start(ledger: Any, epochs: Any) -> FloatArray:
    return np.asarray(claimed(ledger, epochs) * (epochs[:, None] > 1))


def test_the_first_message_may_be_sent_without_noise() -> None:
    """Whatever its power is: the start is public, and may be loud or 0."""
    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))
    for first in (0.0, 1e-9, 1.0, 1e9):
        squares[:, 0] = first
        require_noise_sent(*sent(squares), quiet_start)


def test_later_messages_may_not_be_sent_without_noise() -> None:
    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))

    def quiet_second(ledger: Any, epochs: Any) -> FloatArray:
        return np.asarray(claimed(ledger, epochs) * (epochs[:, None] > 2))

    with pytest.raises(Altered, match="where the ledger has none"):
        require_noise_sent(*sent(squares), quiet_second)


def test_a_quiet_start_counts_as_no_draw_of_noise() -> None:
    """The quantile is that of one epoch fewer: what is just enough then would be too little for all epochs."""
    freedom = DIM * (EPOCHS - 1) * SEEDS
    least = stats.chi2.ppf(FALSE_ALARM / 2 / NODES, freedom) / ((EPOCHS - 1) * SEEDS)
    squares = np.full((SEEDS, EPOCHS, NODES), float(DIM))
    squares[:, 0], squares[:, 1:, 1] = 1e6, least * 1.001
    require_noise_sent(*sent(squares), quiet_start)
    squares[:, 1:, 1] = least * 0.99
    with pytest.raises(Altered, match=f"node 1 sent .* and {freedom} draws"):
        require_noise_sent(*sent(squares), quiet_start)


def test_a_loud_start_does_not_hide_that_noise_was_not_sent() -> None:
    squares = np.full((SEEDS, EPOCHS, NODES), 1e-6 * DIM)
    squares[:, 0] = 1e6
    with pytest.raises(Altered, match="the noise in the ledger was not sent"):
        require_noise_sent(*sent(squares), quiet_start)
