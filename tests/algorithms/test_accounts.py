"""Accounts of finished runs: kept where nothing was touched, and never below what really was on the air."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.certificates.ledger import Ledger
from murmurcast.errors import Altered, Infeasible
from murmurcast.privacy.conversion import mu_of
from murmurcast.runs.result import Result
from tests.algorithms.networks import POWER, one_way, two_way
from tests.algorithms.paths import Tables, follow_by_tables
from tests.certificates.ledger_edits import caught, with_ledger
from tests.privacy.joint import Units, exact_mu, units_of

NODES, DIM, EPOCHS = 5, 2, 5
BY_SENDER = np.array([[0.9], [0.5], [0.7], [1.1], [0.6]])
CASES: dict[str, dict[str, Any]] = {
    "power-controlled": {},
    "orthogonal": {},
    "power-controlled-diffusion": {},
    "dp-dsgd": {},
    "subgradient-push-gaussian": {},
    "row-stochastic-laplace": {},
    "private-frost": {},
    "private-push-pull": {},
    "private-push-pull, ab": {"form": "ab"},
    "private-gradient-tracking": {"weights": "metropolis", "access": "slots"},
    "private-exact-diffusion": {"weights": "metropolis", "access": "orthogonal"},
    "muffliato": {"gossip": 2},
    "mafalda": {"bandwidth": 3},
    "decor": {},
    "decor-exact-diffusion": {},
    "mped2fl": {"headroom": 0.7, "publish_from": "heard"},
    "ped2fl": {"headroom": 0.7, "publish_from": "heard"},
    "dwfl": {"headroom": 0.7, "publish_from": "heard", "rate": 0.6},
}
OTHERWISE = {"central-dp", "local-only"}  # a trusted server, and nothing sent: see tests/certificates


Costs = dict[str, FloatArray]  # [nodes] mu, by adversary


class Made(NamedTuple):
    """A method, a run of it, and what is on the air by any tables."""

    algorithm: Algorithm
    run: Result
    units: Units
    path: Any


def network_of(name: str) -> mc.Network:
    if name in ("ped2fl", "dwfl"):
        links = 1 - np.eye(NODES) if name == "dwfl" else two_way().gains.toarray() > 0
        return mc.Network(gains=BY_SENDER * links, power=POWER)
    return one_way() if name in ("subgradient-push-gaussian", "private-frost") else two_way()


def problem_of(**options: Any) -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, seed=1, clip=1.3, **options)


def setup_for(name: str, **budget: Any) -> mc.Setup:
    given = {"noise_to_step": budget.pop("noise_to_step", None), "noise_timing": "aligned"}
    schedule = mc.Schedule(epochs=EPOCHS, step=0.05, **given)
    problem = budget.pop("problem", None) or problem_of()
    limits = mc.Budget(epsilon=5.0, **budget)
    if registry.find(name).needs_plan:
        rule = mc.PowerRule(alpha=(0.3, 0.5, 0.6, 0.4, 0.7))
        return mc.plan(network_of(name), problem, limits, schedule, power=rule)
    return mc.Setup(network=network_of(name), problem=problem, budget=limits, schedule=schedule)


def make(case: str, **how: Any) -> Algorithm:
    name = case.partition(",")[0]
    return registry.find(name).make(setup_for(name, **how), **CASES[case])


@lru_cache
def built(case: str) -> Made:
    algorithm = make(case)
    units = units_of(algorithm)
    path = follow_by_tables(algorithm, units.fresh, units.start, units.work)
    return Made(algorithm, mc.run(algorithm, problem_of(), precision="float64"), units, path)


def really(one: Made, tables: Tables) -> Costs:
    """What is on the air by these tables, against everybody; with pairs, against an eavesdropper too."""
    joint, by = one.units.joint(one.path(tables)), one.algorithm.setup.sensitivity
    others = {j: set(range(NODES)) - {j} for j in range(NODES)}

    def against(known: dict[int, set[int]]) -> FloatArray:
        return np.array([exact_mu(joint, j, np.full(EPOCHS + 1, by[j]), known[j]) for j in range(NODES)])

    outcome = {"everybody": against(others)}
    if len(one.algorithm.releases) > 1:
        outcome["eavesdropper"] = against({j: set() for j in range(NODES)})
    return outcome


def counted(run: Result) -> Costs | None:
    """By the account from the tables alone, in units of Gaussian noise; None where it refuses them."""
    method = registry.find(str(run.ledger.attrs["algorithm"]))
    assert not isinstance(method.account, str)
    try:
        releases = method.account(Ledger(run.ledger, "edited", NODES, EPOCHS))
    except Altered:
        return None
    unit = np.sqrt(np.pi / 2) if releases[0].law.name == "laplace" else 1.0
    return {part.against: mu_of(part) / unit for part in releases}


def names_of(algorithm: Algorithm) -> list[tuple[int, int, str]]:
    """(round, sending or receiving, name) of all tables."""
    return [
        (number, part, name)
        for number, one in enumerate(algorithm.rounds)
        for part, tables in enumerate((one.sending, one.receiving))
        for name in tables._fields
    ]


def variable(algorithm: Algorithm, where: tuple[int, int, str]) -> str:
    number, part, name = where
    return f"{algorithm.rounds[number].name}_{('sending', 'receiving')[part]}_{name}"


def in_ledger(algorithm: Algorithm, ledger: xr.Dataset) -> Tables:
    """The tables that a ledger says."""
    outcome: Tables = []
    for number, one in enumerate(algorithm.rounds):
        parts = []
        for part, tables in enumerate((one.sending, one.receiving)):
            values = {name: np.array(ledger[variable(algorithm, (number, part, name))]) for name in tables._fields}
            parts.append(tables._replace(**values))
        outcome.append((parts[0], parts[1]))
    return outcome


def edits(values: FloatArray) -> list[FloatArray]:
    """All halved or doubled, one number changed, the first row changed."""
    one, first = values.copy(), values.copy()
    one.flat[min(1, one.size - 1)] *= 3
    first[0] = first[0] * 4
    return [values * 0.5, values * 2, one, first]


def test_every_account_is_tested_here() -> None:
    with_account = {one.name for one in registry.methods() if not one.reason}
    assert {case.partition(",")[0] for case in CASES} | OTHERWISE == with_account


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", CASES)
def test_an_untouched_run_is_kept_and_costs_what_was_on_the_air(case: str) -> None:
    one = built(case)
    outcome = mc.certify(one.run)
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    np.testing.assert_allclose(outcome.mu, mu_of(one.algorithm.releases[0]), rtol=1e-9)
    cost = counted(one.run)
    assert cost is not None
    for who, exact in really(one, in_ledger(one.algorithm, one.run.ledger)).items():
        np.testing.assert_allclose(cost[who], exact, rtol=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES)
def test_no_table_can_be_changed_so_that_the_account_is_too_low(case: str) -> None:
    """Whatever a ledger's tables say, the account refuses them or counts at least what they put on the air."""
    one = built(case)
    ledger, honest = one.run.ledger, counted(one.run)
    assert honest is not None
    noticed = set()
    for where in names_of(one.algorithm):
        name = variable(one.algorithm, where)
        for values in edits(np.array(ledger[name], np.float64)):
            edited = with_ledger(one.run, ledger.assign({name: (ledger[name].dims, values)}))
            cost = counted(edited)
            if cost is None:
                noticed.add(where[2])
                continue
            for who, exact in really(one, in_ledger(one.algorithm, edited.ledger)).items():
                assert (cost[who] >= exact * (1 - 1e-9)).all(), (name, who, cost[who], exact)
            if any(not np.allclose(cost[who], honest[who], rtol=1e-9) for who in cost):
                noticed.add(where[2])
                require_caught(edited)
    assert {"noise", "own"} & noticed
    # Factors of what was sent make public points of it, whichever they are.
    unnoticed = {where[2] for where in names_of(one.algorithm)} - noticed
    assert unnoticed <= {"newest", "lead", "step", "heard", "kept", "amplitude"}, unnoticed


def require_caught(run: Result) -> None:
    """The certificate says so: tables and promise are not of one run."""
    try:
        outcome = mc.certify(run)
    except Altered:
        return
    assert outcome.verdict == "broken"
    assert {"costs more", "costs less"} & set(outcome.verdicts)


def several_edits(one: Made, seed: int) -> dict[str, Any]:
    """Tables of a few names changed alike: by one factor, by factors of nodes, or of epochs; z stays consistent."""
    rng, ledger = np.random.default_rng(seed), one.run.ledger
    names = names_of(one.algorithm)
    chosen = set(rng.choice(sorted({where[2] for where in names}), size=3))
    chosen |= {"z", "next_z"} if chosen & {"z", "next_z"} else set()
    factors = np.exp(rng.normal(scale=0.5, size=(EPOCHS + 1, NODES)))
    factors = [factors[:1, :1], factors[:1], factors[:, :1]][seed % 3] * np.ones_like(factors)
    edited = {}
    for where in names:
        if where[2] in chosen:
            name = variable(one.algorithm, where)
            values = np.array(ledger[name], np.float64)
            rows = factors[int(where[2] == "next_z") :][: len(values)]
            by = rows[:, 0] if values.ndim == 1 else rows.reshape(*rows.shape, *(1,) * (values.ndim - 2))
            edited[name] = (ledger[name].dims, values * by)
    return edited


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_tables_can_be_changed_together_so_that_the_account_is_too_low(case: str) -> None:
    one, accepted = built(case), 0
    for seed in range(150):
        edited = with_ledger(one.run, one.run.ledger.assign(several_edits(one, seed)))
        cost = counted(edited)
        if cost is not None:
            accepted += 1
            for who, exact in really(one, in_ledger(one.algorithm, edited.ledger)).items():
                assert (cost[who] >= exact * (1 - 1e-6)).all(), (seed, who)
    assert accepted > 5  # of a method whose z must follow from its weights, most edits are refused outright


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("mafalda", {"bandwidth": 1}),
        ("muffliato", {"gossip": 1}),
        ("muffliato", {"gossip": 3}),
        ("private-push-pull", {"form": "ab"}),
        ("decor", {"weights": "sinkhorn"}),
        ("mped2fl", {"publish_from": "mixed"}),
        ("dwfl", {"model_channel": "slots"}),
        ("private-exact-diffusion", {"start_gradients": 0}),
        ("private-frost", {"tracker_draws": "none"}),
        ("private-gradient-tracking", {"tracker_draws": "noise: normal of a node"}),
        ("decor-exact-diffusion", {"model_draws": "own: normal of a node; shared: normal of a pair"}),
        ("row-stochastic-laplace", {"model_draws": "noise: normal of a node"}),
        ("mped2fl", {"model_draws": "noise: normal of a node"}),
    ],
)
def test_options_and_draws_that_were_edited_are_caught(case: str, changes: dict[str, Any]) -> None:
    run = built(case).run
    assert set(changes) <= set(run.ledger.attrs)
    assert caught(with_ledger(run, run.ledger.assign_attrs(changes)))


def test_trackers_that_begin_divided_are_refused() -> None:
    """The first gradient is sent undivided: a larger z there would count too little of it."""
    run = built("private-frost").run
    z = np.array(run.ledger["tracker_receiving_z"])
    z[0] *= 4
    ledger = run.ledger.assign(tracker_receiving_z=(run.ledger["tracker_receiving_z"].dims, z))
    with pytest.raises(Altered, match="no tracker begins"):
        mc.certify(with_ledger(run, ledger))


NOISY = [case for case in CASES if case.partition(",")[0] not in ("power-controlled", "orthogonal")]


@pytest.mark.parametrize("case", [case for case in NOISY if not registry.find(case.partition(",")[0]).needs_plan])
def test_given_noise_that_costs_more_than_the_budget_is_refused(case: str) -> None:
    with pytest.raises(Infeasible, match="costs node") as raised:
        make(case, noise_to_step=1e-3)
    assert '"auto"' in raised.value.hint
    assert raised.value.smallest_epsilon is not None
    assert raised.value.smallest_epsilon > 5.0


@pytest.mark.parametrize("name", [one.name for one in registry.methods() if not one.projects])
def test_models_in_a_ball_are_refused_by_methods_that_cannot_keep_them_there(name: str) -> None:
    with pytest.raises(mc.Error, match="ball or a box") as raised:
        registry.find(name).make(setup_for(name, problem=problem_of(ball=2.0)))
    assert "problem.radius" in raised.value.hint


@pytest.mark.parametrize("case", NOISY)
def test_secure_noise_is_refused_where_no_grid_was_made(case: str) -> None:
    name = case.partition(",")[0]
    assert not registry.find(name).secure
    with pytest.raises(mc.Error, match="secure noise") as raised:
        make(case, noise_source="secure")
    assert raised.value.hint


def test_an_exchanged_function_loses_the_promise() -> None:
    """A promise is tied to what it was proved for."""
    algorithm = built("dp-dsgd").algorithm
    (only,) = algorithm.rounds
    assert algorithm.is_as_proved
    other = algorithm._replace(rounds=(only._replace(send=lambda here, state, drawn: state.own),))  # noqa: ARG005
    assert other.has_lost_its_proof
    assert algorithm._replace(setup=replace(algorithm.setup)).has_lost_its_proof
