"""What was released before training, and records that join by coins: recomputed from the ledger alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.certificates.known import METRICS, WORDS
from murmurcast.errors import Altered
from murmurcast.experiments.certify import certify as certify_with_experiment
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import Edit, caught, entry, scaled, with_attributes, with_ledger, without_attribute
from tests.conftest import asymmetric_network

METHODS: dict[str, Callable[..., Any]] = {
    "power-controlled": mc.power_controlled,
    "power-controlled-diffusion": mc.power_controlled_diffusion,
    "dp-dsgd": mc.dp_dsgd,
    "orthogonal": mc.orthogonal,
}


def problem(budget: mc.Budget, seed: int = 0, **options: Any) -> mc.SoftmaxRegression:
    data = mc.datasets.logistic(examples=300, features=4, classes=3, seed=1)
    shared = data.partition(mc.datasets.QuantitySkew(concentration=4.0, minimum=30), nodes=4, seed=2)
    kept = mc.preprocess(shared, budget, seed=seed) if budget.first_releases else shared
    return mc.SoftmaxRegression(data=kept, clip=0.5, **options)


def budget(**options: Any) -> mc.Budget:
    return mc.Budget(**{"epsilon": 1.5, "unit": "record", **options})


@cache
def run_of(method: str, seed: int = 0, sampling: bool = False, shares: bool = True) -> Result:
    of = budget(**({"centring": 0.02, "whitening": 0.1} if shares else {}))
    one = problem(of, seed, **({"batch": 10, "sampling": "poisson"} if sampling else {}))
    schedule = mc.Schedule(epochs=4, step=0.2, noise_timing="aligned", decay="constant")
    plan = mc.plan(asymmetric_network(3, 4), one, of, schedule, z="perron")
    return mc.run(METHODS[method](plan), one, seeds=(seed,))


@pytest.mark.parametrize(
    ("method", "sampling"),
    [(method, sampling) for method in METHODS for sampling in (True, False)],
)
@pytest.mark.slow
def test_an_untouched_run_is_kept_and_costs_its_budget(method: str, sampling: bool) -> None:
    outcome = certify(run_of(method, sampling=sampling))
    assert outcome.verdict == "kept"
    assert outcome.tier == "tier 1"
    assert outcome.epsilon.max() == pytest.approx(1.5, rel=1e-5)
    assert any("before training every node released once" in line for line in outcome.assumptions)
    assert any("join every epoch by a coin" in line for line in outcome.assumptions) == sampling
    ledger = run_of(method, sampling=sampling).ledger
    moved = 2 / np.asarray(ledger["records_per_node"])
    mu = float(mc.gaussian.mu(1.5, 1e-5))
    np.testing.assert_allclose(moved / np.asarray(ledger["centring_noise"]), mu * 0.02**0.5)


@pytest.mark.slow
def test_at_another_delta_coins_still_count() -> None:
    run = run_of("power-controlled", sampling=True)
    costs = [float(certify(run, delta=delta).epsilon.max()) for delta in (1e-7, 1e-5, 1e-3)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] < float(mc.gaussian.epsilon(certify(run).mu.max(), 1e-7)) / 2


@pytest.mark.slow
def test_runs_add_up() -> None:
    one, other = (run_of("power-controlled", seed, sampling=True) for seed in (0, 1))
    plain = run_of("power-controlled", 2, shares=False)
    outcome = certify([one, other])
    assert outcome.verdict == "kept"
    assert 1.5 < outcome.epsilon.max() < 2.6
    assert certify([one, other, plain]).epsilon.max() > outcome.epsilon.max()


def test_two_runs_may_not_share_the_noise_of_what_was_released_before() -> None:
    one = run_of("power-controlled", 0)
    same_first = with_ledger(one, one.ledger, seeds=[7], name="other")  # other seeds in training
    with pytest.raises(mc.Error, match="the same noise twice"):
        certify([one, same_first])


FIRST_EDITS: dict[str, Edit] = {
    "no noise at one node": entry("centring_noise", 0.0),
    "no noise": scaled("whitening_noise", 0.0),
    "noise halved": scaled("centring_noise", 0.5),
    "noise doubled": scaled("whitening_noise", 2.0),
    "rows that are not negative": with_attributes(first_rows="non-negative"),
    "rows of any kind": with_attributes(first_rows="long"),
    "a release left out": with_attributes(first_releases="centring"),
    "a release twice": with_attributes(first_releases="centring centring whitening"),
    "another release": with_attributes(first_releases="centring median"),
    "releases not said": lambda ledger: without_attribute(ledger, "first_releases"),
    "noise dropped": lambda ledger: ledger.drop_vars("centring_noise"),
    "more records": scaled("records_per_node", 2.0),
    "no records": entry("records_per_node", 0.0),
    "seed not said": lambda ledger: without_attribute(ledger, "first_seed"),
    "several records of a person": with_attributes(records_per_person=2),
}


@pytest.mark.parametrize("edit", FIRST_EDITS)
def test_an_edited_first_release_is_caught(edit: str) -> None:
    run = run_of("power-controlled")
    assert caught(with_ledger(run, FIRST_EDITS[edit](run.ledger)))


SAMPLED_EDITS: dict[str, Edit] = {
    "noise halved": scaled("model_sending_noise", 0.5),
    "sampling not said": lambda ledger: without_attribute(ledger, "sampling"),
    "another sampling": with_attributes(sampling="shuffled"),
    "fixed batches": with_attributes(sampling="fixed"),
    "more records, so rarer coins": scaled("records_per_node", 4.0),
    "fewer records than a batch": scaled("records_per_node", 0.01),
    "a larger batch": with_attributes(batch=20),
    "little room": with_attributes(room=11),
    "room not said": lambda ledger: without_attribute(ledger, "room"),
    "whole nodes": with_attributes(unit="node"),
    "clipped nodes": with_attributes(clipping="node"),
    "a plain law": with_attributes(law="gaussian"),
    "epsilon lowered": scaled("promised_epsilon", 0.9),
    "epsilon dropped": lambda ledger: ledger.drop_vars("promised_epsilon"),
    "best guess lowered": scaled("promised_best_guess", 0.9),
}


@pytest.mark.slow
def test_coins_count_where_examples_are_clipped_layer_by_layer() -> None:
    data = mc.datasets.logistic(examples=200, features=4, classes=3, seed=1).partition("iid", nodes=4)
    one = mc.Model(
        data=data,
        module=mc.modules.mlp(4, 3, hidden=(2,)),
        loss="cross-entropy",
        clip=0.5,
        clipping="layer",
        batch=10,
        sampling="poisson",
    )
    schedule = mc.Schedule(epochs=3, step=0.2, noise_timing="aligned", decay="constant")
    plan = mc.plan(asymmetric_network(3, 4), one, budget(), schedule, z="perron")
    run = mc.run(mc.power_controlled(plan), one)
    outcome = certify(run)
    assert (outcome.verdict, run.ledger.attrs["clipping"]) == ("kept", "layer")
    assert outcome.epsilon.max() == pytest.approx(1.5, rel=1e-5)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("edit", SAMPLED_EDITS)
def test_an_edited_sampling_is_caught(edit: str) -> None:
    run = run_of("power-controlled", sampling=True, shares=False)
    assert caught(with_ledger(run, SAMPLED_EDITS[edit](run.ledger)))


def test_the_ledger_says_nothing_of_coins() -> None:
    """Sizes that are fixed beforehand, and no other: no name of a coin, and the same for any seed but for noise."""
    one, other = (run_of("power-controlled", seed, sampling=True, shares=False).ledger for seed in (0, 1))
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name], other[name])
    assert one.attrs == other.attrs
    assert (one.attrs["sampling"], one.attrs["batch"]) == ("poisson", 10)


def test_metrics_and_words_say_nothing_of_coins() -> None:
    """What differs between seeds is what training does; names and words are those of fixed batches."""
    runs = [run_of("power-controlled", seed, sampling=True, shares=False) for seed in (0, 1)]
    assert {str(name) for run in runs for name in run.metrics.variables} <= METRICS
    same = [
        {key: value for key, value in run.info.items() if key not in ("seeds", "seconds", "data_commitment")}
        for run in runs
    ]
    assert same[0] == same[1]
    for run in runs:
        assert set(run.info) <= WORDS[""]
        np.testing.assert_array_equal(run.metrics["channel_uses"], runs[0].metrics["channel_uses"])


def stated(**words: Any) -> Callable[[Result], Result]:
    return lambda run: with_ledger(run, run.ledger, **words)


def measured(name: str, dims: tuple[str, ...]) -> Callable[[Result], Result]:
    def edit(run: Result) -> Result:
        shape = tuple(run.metrics.sizes[dim] for dim in dims)
        joined = np.random.default_rng(0).binomial(40, 0.2, shape)
        return replace(run, metrics=run.metrics.assign({name: (dims, joined)}))

    return edit


def recorded(edit: Edit) -> Callable[[Result], Result]:
    return lambda run: with_ledger(run, edit(run.ledger))


# Coins, or how many joined, in all places where a run could say so.
TOLD_OF_COINS: dict[str, Callable[[Result], Result]] = {
    "sizes in the ledger": recorded(lambda ledger: ledger.assign(realised_batch=("node", np.full(4, 11.0)))),
    "coins in the ledger": recorded(with_attributes(coins="0110")),
    "words beside a table": recorded(
        lambda ledger: ledger.assign(power=ledger["power"].assign_attrs(joined=11)),
    ),
    "sizes in the metrics": measured("joined", ("seed", "epoch", "node")),
    "sizes by seed": measured("batch", ("seed",)),
    "sizes as a metric of models": measured("own_joined", ("seed", "epoch", "node")),
    "sizes in run.json": stated(realised_batches=[11, 9, 10, 12]),
    "sizes among seconds": stated(seconds={"compiling": 1.0, "training": 1.0, "all": 2.0, "joined": 11.0}),
    "sizes in the promise": lambda run: stated(privacy=run.info["privacy"] | {"joined": 11})(run),
}


@pytest.mark.parametrize("place", TOLD_OF_COINS)
def test_a_run_that_tells_of_its_coins_is_refused(place: str) -> None:
    run = run_of("power-controlled", sampling=True, shares=False)
    assert "broken" not in certify(run).verdict
    assert caught(TOLD_OF_COINS[place](run))


def test_metrics_of_ones_own_are_only_refused_beside_coins() -> None:
    plain = run_of("power-controlled", 2, shares=False)
    assert certify(measured("joined", ("seed", "epoch", "node"))(plain)).verdict == "kept"


EXPERIMENT = """
[network]
topology = "ring"
nodes = 4
gain = {{kind = "uniform", low = 0.4, high = 1.0}}
[privacy]
epsilon = 1.5
unit = "record"
clip = 0.5
{privacy}
[schedule]
epochs = 4
noise_timing = "aligned"
[data]
name = "logistic"
examples = 240
features = 4
classes = 3
[problem]
batch = 10
sampling = "{sampling}"
"""


def from_file(folder: Path, sampling: str, privacy: str = "") -> Result:
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(sampling=sampling, privacy=privacy))
    experiment = mc.load(path)
    built = experiment.build(folder)
    return mc.run(built.algorithm, built.problem, options=mc.RunOptions(experiment=experiment.as_toml()))


@pytest.mark.slow
def test_an_experiment_leads_to_the_same_releases(tmp_path: Path) -> None:
    run = from_file(tmp_path, "poisson", "centring = 0.02\nwhitening = 0.1")
    outcome = certify_with_experiment(run)
    assert outcome.verdict == "kept"
    assert not outcome.not_compared
    assert outcome.epsilon.max() == pytest.approx(1.5, rel=1e-5)
    left_out = run.ledger.drop_vars(["centring_noise", "whitening_noise"])
    for name in ("first_releases", "first_rows", "first_seed"):
        left_out = without_attribute(left_out, name)
    with pytest.raises(Altered, match="first releases none"):
        certify_with_experiment(with_ledger(run, left_out))


@pytest.mark.slow
def test_amplification_for_batches_of_a_fixed_size_is_refused(tmp_path: Path) -> None:
    """The ledger of an honest run with coins, put in place of that of a run with fixed batches."""
    honest, fixed = from_file(tmp_path, "poisson"), from_file(tmp_path, "fixed")
    assert fixed.info["privacy"]["epsilon"] == pytest.approx(1.5, rel=1e-6)
    forged = Result(
        metrics=fixed.metrics,
        ledger=honest.ledger,
        published=fixed.published,
        info=honest.info,
        experiment=fixed.experiment,
    )
    for check in (certify, certify_with_experiment):
        with pytest.raises(Altered, match="its sampling is fixed in"):
            check(forged)
    # Said of the fixed run itself, it is not what its noise comes to.
    claimed = fixed.ledger.assign_attrs(sampling="poisson", room=40, law="sampled gaussian")
    claimed = claimed.assign(records_per_node=honest.ledger["records_per_node"])
    with pytest.raises(Altered):
        certify(with_ledger(fixed, claimed))


def test_a_table_of_numbers_is_no_release(tmp_path: Path) -> None:
    run = from_file(tmp_path, "fixed")
    more: xr.Dataset = run.ledger.assign(centring_noise=run.ledger["power"])
    with pytest.raises(Altered, match="centring_noise"):
        certify_with_experiment(with_ledger(run, more))
