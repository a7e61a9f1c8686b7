"""Folders whose metrics, models or words about data contradict the rest, with every hash made anew."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.result import Result
from tests.certificates import forgeries as forge
from tests.certificates.forgeries import Forge, all_of, in_run, metric, stated
from tests.certificates.test_forged_folders import command, refused
from tests.conftest import asymmetric_network

LABELLED: dict[str, Any] = {
    "data__name": "logistic",
    "data__features": 5,
    "data__classes": 3,
    "problem__kind": "softmax",
    "schedule__epochs": 3,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as the command makes it, of three labels."""
    place = tmp_path_factory.mktemp("labelled")
    (place / "my.toml").write_text(forge.experiment(**LABELLED))
    done = command("run", str(place / "my.toml"), "--out", str(place / "my"))
    assert done.code == 0, done.err
    return place / "my"


def says(**attributes: Any) -> Forge:
    """As if made in Python, with other words about its data."""
    return in_run(lambda run: replace(run, experiment="", ledger=run.ledger.assign_attrs(attributes)))


def of_kind(kind: str) -> Forge:
    return all_of(says(), stated("problem", "kind", value=kind))


def models(edit: Any) -> Forge:
    return in_run(lambda run: replace(run, published=edit(run.published)))


def measured_besides(run: Result) -> Result:
    more = {f"{model}_honesty": run.metrics[f"{model}_accuracy"] for model in ("own", "published")}
    return replace(run, metrics=run.metrics.assign(more))


FORGED: dict[str, tuple[Forge, str]] = {
    "no records": (says(data_partition="none"), "contradicts itself about its data"),
    "no labels": (says(data_labels="values", data_classes=0), "contradicts itself about its data"),
    "fewer labels": (says(data_classes=2), "contradicts itself about its data"),
    "a bowl on records": (of_kind("Quadratic"), "run.json says that Quadratic learnt"),
    "a problem that nobody has": (of_kind("Mine"), "run.json says that Mine learnt"),
    "half the channel uses": (metric("channel_uses", lambda uses: uses // 2), "other channel_uses than 1"),
    "a metric of nobody's": (in_run(measured_besides), "published_honesty, which its experiment does not measure"),
    "models in half precision": (models(lambda given: given.astype(np.float16)), "are not in float32"),
    "models of another machine": (models(lambda given: given.astype(">f4")), "are not in float32"),
    "models without rows": (
        all_of(says(), models(lambda given: given.reshape(*given.shape[:2], -1))),
        "contradicts itself about its data",
    ),
    "an experiment cut short": (
        in_run(lambda run: replace(run, experiment=run.experiment + "\n[network]\n")),
        "experiment.toml cannot be read",
    ),
    "an experiment too deep": (
        in_run(lambda run: replace(run, experiment=run.experiment + "\nmore = " + 5000 * "[")),
        "experiment.toml cannot be read",
    ),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", FORGED)
def test_what_contradicts_the_rest_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    forgery, words = FORGED[name]
    shutil.copytree(saved, tmp_path / "my")
    forgery(tmp_path / "my")
    assert words in refused(tmp_path / "my")


def test_the_run_itself_and_notes_beside_it_are_accepted(saved: Path) -> None:
    assert mc.certify(mc.load_run(saved)).verdict == "kept"
    run = replace(mc.load_run(saved), experiment="the third try, = see my [notes]")
    assert mc.certify(run).verdict == "kept"
    assert "there is no experiment" in " ".join(mc.certify(run).not_compared)
    own = run.ledger.assign_attrs(data_own_model=1)  # a class of somebody's own, whatever it is called
    assert "shape, start and loss" in " ".join(mc.certify(replace(run, ledger=own)).assumptions)


def test_what_a_ledger_that_promises_nothing_calls_its_features_may_be_anything() -> None:
    """Nothing rests on it, so nobody has checked that it is text."""
    data = mc.datasets.logistic(examples=60, features=3, classes=3).partition("iid", nodes=4)
    problem, network = mc.SoftmaxRegression(data=data, clip=0.5), asymmetric_network(3, 4)
    schedule = mc.Schedule(epochs=2, step=0.2, noise_timing="aligned")
    plan = mc.plan(network, problem, mc.Budget(epsilon=1.5, unit="record"), schedule)
    run = mc.run(mc.noiseless(plan), problem)
    forged = run.ledger.assign_attrs(data_features=np.array(["hog", "mine"]), data_features_sha256=7)
    assert mc.certify(replace(run, ledger=forged)).verdict == "nothing is promised"
