"""Ledgers over a radio and of free rounds: kept where nothing was touched, else refused or not charged too little."""

import json
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.certificates.ledger import Ledger
from murmurcast.errors import Altered
from murmurcast.privacy.conversion import mu_of
from murmurcast.radio.settings import Radio
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import caught, entry, scaled, with_attributes, with_ledger
from tests.conftest import asymmetric_network

NODES, EPOCHS = 5, 4
Case = tuple[str | None, str, int, str | None]
CASES: tuple[Case, ...] = (
    ("own-slot", "iid", 2, "predicted"),
    ("own-slot", "none", 1, "recursive"),
    (None, "none", 3, None),
    ("aligned", "iid", 1, "recursive"),
    ("referenced", "none", 2, "mean"),
    ("digital", "jakes", 1, "predicted"),
    ("own-slot", "none", 1, "perron"),
    ("own-slot", "none", 2, "recursive"),
    ("referenced", "jakes", 1, "recursive"),
)
FIRST, STILL, IDEAL, MOVING = CASES[0], CASES[1], CASES[2], CASES[5]


@lru_cache
def built(case: Case) -> tuple[mc.Plan, Result]:
    access, fading, rounds, z = case
    radio = None if access is None else Radio(access=access, fading=fading)  # type: ignore[arg-type]
    gains = asymmetric_network(3, NODES).gains.toarray() * (1 if radio is None else 1e-4)
    problem = mc.Quadratic.random(NODES, 3, seed=1, ball=20.0)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.2, noise_timing="aligned", rounds=rounds)
    network = mc.Network(gains=gains, power=np.linspace(0.05, 0.1, NODES))
    plan = mc.plan(network, problem, mc.Budget(epsilon=2.0), schedule, radio=radio, z=z)  # type: ignore[arg-type]
    return plan, mc.run(mc.power_controlled(plan), problem)


def counted(run: Result) -> Any:
    """[nodes] mu by the account; None where it refuses."""
    method = registry.find("power-controlled")
    assert not isinstance(method.account, str)
    try:
        (only,) = method.account(Ledger(run.ledger, "edited", NODES, EPOCHS))
    except Altered:
        return None
    return mu_of(only)


@pytest.mark.parametrize("case", [(case,) for case in CASES])
@pytest.mark.slow
def test_an_untouched_run_is_kept_and_costs_what_the_budget_says(case: Any) -> None:
    """The certificate is that without a radio, in every realisation of the channel."""
    plan, run = built(case[0] if isinstance(case[0], tuple) else case)
    outcome = mc.certify(run)
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-9)


def last_round(ledger: xr.Dataset) -> str:
    return str(ledger.attrs["rounds"]).split()[-1]


def other_radio(ledger: xr.Dataset, **changes: Any) -> xr.Dataset:
    names = [name for name in ledger.attrs if str(name).endswith("_radio")]
    return ledger.assign_attrs(
        {name: json.dumps(json.loads(ledger.attrs[name]) | changes, sort_keys=True) for name in names}
    )


def receiver_noise_counted(ledger: xr.Dataset) -> xr.Dataset:
    """Noise in the ledger that receivers, not nodes, would have to add."""
    return ledger.assign(model_sending_noise=ledger["model_sending_noise"] * 1.01)


def first_noise_row(ledger: xr.Dataset) -> xr.Dataset:
    """The table of the noise cut to its first row, which then stands for all epochs."""
    name = "model_sending_noise"
    return ledger.assign({name: (("always", "node"), np.array(ledger[name])[:1])})


EDITS: dict[str, tuple[Case, Any]] = {
    "louder in a free round": (FIRST, scaled("mixing2_sending_amplitude", 1.5)),
    "a free round that draws": (FIRST, with_attributes(mixing2_draws="noise: normal of a node")),
    "something kept": (STILL, entry("model_receiving_kept", 0.2)),
    "kept in all rounds": (
        FIRST,
        lambda ledger: ledger.assign(
            {name: ledger[name] + 0.1 for name in ("model_receiving_kept", "mixing2_receiving_kept")}
        ),
    ),
    "not all of what is heard": (STILL, scaled("model_receiving_heard", 0.5)),
    "scale 0": (STILL, entry("model_sending_scale", 0.0)),
    "another scale in a free round": (FIRST, scaled("mixing2_sending_scale", 2.0)),
    "noise that stops following": (MOVING, first_noise_row),
    "z raised": (STILL, scaled("model_receiving_z", 1.2)),
    "z that follows raised": (FIRST, scaled("mixing2_receiving_z", 1.2)),
    "z and noise": (
        FIRST,
        lambda ledger: scaled("model_sending_noise", 1 / 1.2)(scaled("mixing2_receiving_z", 1.2)(ledger)),
    ),
    "other fading": (MOVING, lambda ledger: other_radio(ledger, seed=5)),
    "another radio in a free round": (FIRST, with_attributes(mixing2_radio="{}")),
    "no radio": (FIRST, lambda ledger: ledger.assign_attrs(model_radio="{")),
    "a radio that nobody knows": (FIRST, lambda ledger: other_radio(ledger, secret=1)),
    "receiver noise counted into s": (STILL, receiver_noise_counted),
    "sold as the ideal channel": (STILL, with_attributes(model_channel="air")),
    "ideal: louder in a free round": (IDEAL, scaled("mixing3_sending_amplitude", 0.5)),
    "ideal: a free round that draws": (IDEAL, with_attributes(mixing3_draws="noise: normal of a node")),
    "ideal: more kept in a free round": (IDEAL, scaled("mixing2_receiving_kept", 1.5)),
    "ideal: z of one round": (IDEAL, scaled("mixing3_receiving_z", 1.1)),
    "ideal: a round less": (IDEAL, with_attributes(rounds="model mixing2")),
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_ledger_is_caught(name: str) -> None:
    case, edit = EDITS[name]
    _, run = built(case)
    assert caught(with_ledger(run, edit(run.ledger)))


@pytest.mark.parametrize("case", [FIRST, IDEAL])
def test_the_account_never_falls_below_what_its_tables_put_on_the_air(case: Case) -> None:
    """Whatever is accepted costs sum (S gamma / (z s))^2 of the tables as they stand, by hand."""
    _, run = built(case)
    accepted = 0
    for name in map(str, run.ledger.variables):
        if "sending" not in name and "receiving" not in name:
            continue
        for factor in (0.5, 2.0):
            edited = with_ledger(run, scaled(name, factor)(run.ledger))
            cost = counted(edited)
            if cost is None:
                continue
            accepted += 1
            ledger, last = edited.ledger, last_round(edited.ledger)
            rows = np.arange(EPOCHS)

            def of(table: str, ledger: Any = ledger, rows: Any = rows) -> Any:
                values = np.array(ledger[table])
                return values[:, None] if values.ndim == 1 else values[np.minimum(rows, len(values) - 1)]

            std = of("model_sending_schedule") * of("model_sending_noise") / of("model_sending_amplitude")
            push = np.array(ledger["sensitivity"]) * of(f"{last}_receiving_step") / of(f"{last}_receiving_z")
            np.testing.assert_allclose(cost, np.sqrt(np.square(push[:-1] / std[1:]).sum(axis=0)), rtol=1e-9)
    assert accepted >= 4
