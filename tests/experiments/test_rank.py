"""Ranking: equal terms, settings chosen without the test part, scores that are kept, epsilons that hold."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.data.partition import Partition
from murmurcast.experiments import rank as ranking_file
from murmurcast.experiments.fair_terms import LENGTHS, Steps, contenders, entered
from murmurcast.experiments.load import parse
from murmurcast.experiments.validation import Examples, with_validation
from murmurcast.runs.ranking import NOT_PAID, Ranking, Score
from murmurcast.runs.variants import trainer

TEXT = """
[network]
gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]
[data]
name = "logistic"
examples = 90
features = 3
classes = 3
partition = "sorted"
test_fraction = 0.2
[problem]
kind = "softmax"
[privacy]
epsilon = 1.0
unit = "record"
[algorithm]
name = "power-controlled"
"""
METHODS = ("power-controlled", "private-gradient-tracking", "decor", "central-dp", "dwfl", "dsgd")


def experiment(text: str = TEXT) -> mc.Experiment:
    return parse(text.encode(), "tiny.toml")


def options(**changed: Any) -> mc.RankOptions:
    tiny: dict[str, Any] = {"epsilons": (2.0,), "uses": (6,), "seeds": 2, "methods": METHODS}
    return mc.RankOptions(**(tiny | changed))


def softmax(seed: int = 0) -> mc.SoftmaxRegression:
    data = mc.datasets.logistic(examples=90, features=3, classes=3, seed=seed)
    return mc.SoftmaxRegression(data=data.partition("sorted", nodes=3))


@pytest.fixture(scope="module")
def outcome() -> Ranking:
    return mc.rank(experiment(), options())


def at(ranking: Ranking, method: str, against: str = "everybody") -> Score:
    (score,) = [one for one in ranking.scores if (one.method, one.against) == (method, against)]
    return score


@pytest.mark.slow
def test_methods_have_as_many_epochs_as_their_channel_uses_buy(outcome: Ranking) -> None:
    one, two = at(outcome, "power-controlled"), at(outcome, "private-gradient-tracking")
    assert (one.uses_per_epoch, one.epochs) == (1, 6)
    assert (two.uses_per_epoch, two.epochs) == (2, 3)


@pytest.mark.slow
def test_the_recomputed_epsilon_of_every_score_is_its_budget(outcome: Ranking) -> None:
    assert len(outcome.scores) == 6  # decor once for every adversary
    for score in outcome.scores:
        assert score.certified == pytest.approx(2.0, rel=1e-9), score.method


@pytest.mark.slow
def test_each_adversary_has_a_table_and_strong_promises_count_in_weaker_ones(outcome: Ranking) -> None:
    assert outcome.adversaries == ("everybody", "eavesdropper and one node", "eavesdropper")
    for against in outcome.adversaries:
        table = {score.method: score for score in outcome.table(against, 2.0, 6)}
        assert set(table) == {"power-controlled", "private-gradient-tracking", "decor"}
        assert table["decor"].against == against
        assert table["power-controlled"].against == "everybody"
        means = [score.mean for score in outcome.table(against, 2.0, 6)]
        assert means == sorted(means, reverse=True)
    assert [score.method for score in outcome.ceiling(2.0, 6)] == ["central-dp"]


@pytest.mark.slow
def test_what_cannot_run_and_what_promises_nothing_is_left_out_with_a_reason(outcome: Ranking) -> None:
    reasons = {one.method: one.reason for one in outcome.left_out}
    assert "gain" in reasons["dwfl"]
    assert "no noise is sent" in reasons["dsgd"]
    assert outcome.as_dict()["statement"] == NOT_PAID


@pytest.mark.slow
def test_unprotected_methods_stand_apart_when_asked_for() -> None:
    ranking = mc.rank(experiment(), options(methods=("dsgd", "dp-dsgd"), unprotected=True))
    assert [score.method for score in ranking.table("everybody", 2.0, 6)] == ["dp-dsgd"]
    (score,) = ranking.unprotected(6)
    assert (score.method, score.epsilon, score.certified) == ("dsgd", None, None)


def test_the_validation_part_is_cut_off_the_training_part() -> None:
    problem = softmax()
    cut = with_validation(problem)
    old, new = problem.data, cut.data
    assert (new.sizes == old.sizes - old.sizes // 5).all()
    np.testing.assert_array_equal(cut.examples_per_node, new.sizes)
    together = np.concatenate([new.dataset.features, new.dataset.test_features])
    assert sorted(map(tuple, together.tolist())) == sorted(map(tuple, old.dataset.features.tolist()))
    for node, rows in enumerate(new.rows):  # nodes keep what is theirs
        kept = {tuple(row) for row in new.dataset.features[rows].tolist()}
        assert kept <= {tuple(row) for row in old.dataset.features[old.rows[node]].tolist()}
    assert set(new.dataset.test_targets.tolist()) == {0, 1, 2}


def test_a_node_with_few_records_holds_out_its_last() -> None:
    problem = softmax()
    sizes = (1, 3, len(problem.data.dataset.targets) - 4)
    rows = tuple(np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))
    data = Partition(dataset=problem.data.dataset, rule=problem.data.rule, rows=rows)
    assert with_validation(replace(problem, data=data)).data.sizes[:2].tolist() == [1, 2]


@pytest.mark.slow
def test_settings_do_not_depend_on_the_test_part(monkeypatch: pytest.MonkeyPatch, outcome: Ranking) -> None:
    build = mc.Experiment.build_problem

    def with_other_test_part(self: mc.Experiment, *arguments: object) -> Examples:
        problem = build(self, *arguments)  # type: ignore[arg-type]
        assert isinstance(problem, mc.SoftmaxRegression)
        old = problem.data.dataset
        data = replace(old, test_targets=(old.test_targets + 1) % 3, test_features=old.test_features[::-1] * 7)
        return replace(problem, data=replace(problem.data, dataset=data))

    monkeypatch.setattr(mc.Experiment, "build_problem", with_other_test_part)
    other = mc.rank(experiment(), options(methods=("power-controlled", "decor")))
    for score in other.scores:
        before = at(outcome, score.method, score.against)
        assert (score.step, score.decay, score.options, score.trials) == (
            before.step,
            before.decay,
            before.options,
            before.trials,
        )
        assert score.by_seed != before.by_seed


@pytest.mark.slow
def test_a_ranking_that_was_stopped_goes_on_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Ranking
) -> None:
    trained: list[str] = []
    work = ranking_file._score

    def counted(job: object, place: object) -> Score:
        score = work(job, place)  # type: ignore[arg-type]
        trained.append(score.method)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return score

    monkeypatch.setattr(ranking_file, "_score", counted)
    with pytest.raises(KeyboardInterrupt):
        mc.rank(experiment(), options(folder=tmp_path))
    assert len(list((tmp_path / "scores").glob("*.json"))) == 1
    again = mc.rank(experiment(), options(folder=tmp_path))
    names = [score.method for score in outcome.scores]
    assert trained == [*names[:2], *names[1:]]  # the second was stopped before it was kept
    assert again.as_dict() == outcome.as_dict()
    trained.clear()
    assert mc.rank(experiment(), options(folder=tmp_path)).as_dict() == outcome.as_dict()
    assert trained == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"text": TEXT.replace('unit = "record"', 'unit = "record"\nclip = 0.5')},
        {"text": TEXT.replace("0.9]", "0.8]")},
        {"text": TEXT.replace("test_fraction = 0.2", "test_fraction = 0.3")},
        {"seeds": 3},
        {"uses": (7,)},
        {"epsilons": (2.5,)},
    ],
)
def test_a_score_is_used_again_only_where_nothing_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Ranking, change: dict[str, Any]
) -> None:
    monkeypatch.setattr(ranking_file, "_score", lambda *_: outcome.scores[0])
    only: dict[str, Any] = {"methods": ("power-controlled",), "folder": tmp_path}
    plain: dict[str, Any] = {}
    for count, given in enumerate((plain, plain, change), start=1):
        changed = {key: value for key, value in given.items() if key != "text"}
        mc.rank(experiment(given.get("text", TEXT)), options(**(only | changed)))
        assert len(list((tmp_path / "scores").glob("*.json"))) == max(1, count - 1)


@pytest.mark.slow
def test_a_damaged_score_is_found_anew(tmp_path: Path) -> None:
    only = options(methods=("power-controlled",), folder=tmp_path)
    before = mc.rank(experiment(), only)
    (path,) = (tmp_path / "scores").glob("*.json")
    whole = path.read_bytes()
    for content in (b"[]", whole[:-40]):
        path.write_bytes(content)
        assert mc.rank(experiment(), only).as_dict() == before.as_dict()
        assert json.loads(path.read_bytes())["score"]["method"] == "power-controlled"


def test_terms_are_the_same_for_all_methods_of_the_house() -> None:
    for method in registry.methods():
        for contender in contenders(method, experiment(), 3):
            known = {option.name: option for option in method.options}
            if "publish" in known:
                assert contender.options["publish"] in ("average", "heard")
            if "headroom" in known:
                assert contender.options["headroom"] < 1
            if "step_factor" in known:
                assert contender.options.get("step_factor", 1.0) == (3.0 if method.averages else 1.0)
            changed = entered(experiment(), contender, 4.0, Steps(5, 0.1, "constant"))
            assert changed.privacy.epsilon == 4.0
            assert changed.schedule.noise_timing == "quiet-start"
            assert changed.privacy.clip == experiment().privacy.clip


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    "name",
    [
        *("power-controlled", "power-controlled-diffusion", "dp-dsgd", "subgradient-push", "frost", "push-pull"),
        *("decor", "gradient-tracking", "exact-diffusion", "muffliato", "mafalda", "central-dp"),
    ],
)
def test_equal_steps_move_the_mean_model_equally_far(name: str) -> None:
    """On a complete network with equal gains, from one start: a step along the mean gradient, whatever the method."""
    nodes, epochs = 3, 2
    even = TEXT.replace("[[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]", "[[0, 1, 1], [1, 0, 1], [1, 1, 0]]")
    given = experiment(even.replace("epsilon = 1.0", "epsilon = 1e9").replace("[network]", '[network]\nz = "perron"'))
    network, problem = given.build_network(), given.build_problem(nodes)
    contender = contenders(registry.find(name), given, nodes)[-1]
    contender = contender.with_options({"publish": "last"})  # type: ignore[dict-item]
    changed = entered(given, contender, 1e9, Steps(epochs, 0.01 / nodes, "constant"))
    build = changed.build_plan if contender.method.needs_plan else changed.build_setup
    algorithm = changed.build_algorithm(build(problem=problem, network=network))
    result = mc.run(algorithm, problem, options=mc.RunOptions(evaluate_every=epochs))
    reached = np.linalg.norm(result.published[0].mean(axis=0))
    expected = np.linalg.norm(_mean_gradient(problem)) * 0.01
    assert 0.6 * expected < reached < 2.2 * expected  # of the first or of both steps, as methods publish


def _mean_gradient(problem: object) -> Any:
    import jax
    import jax.numpy as jnp

    assert isinstance(problem, mc.SoftmaxRegression)
    rows = problem.local_data()
    start = jnp.zeros(problem.shape)
    gradients = [
        problem.gradient_at_public(start, jax.tree.map(lambda leaf, at=node: leaf[at], rows), jax.random.key(0))
        for node in range(problem.nodes)
    ]
    return np.mean(gradients, axis=0)


def test_lengths_are_spread_evenly_over_three_decades() -> None:
    ratios = np.array(LENGTHS[1:]) / LENGTHS[:-1]
    np.testing.assert_allclose(ratios, np.sqrt(10), rtol=0.01)
    assert LENGTHS[-1] / LENGTHS[0] == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilons": ()}, "epsilons"),
        ({"epsilons": (1.0, 1.0)}, "epsilons"),
        ({"epsilons": (-1.0,)}, "epsilon"),
        ({"uses": (1,)}, "uses"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": 10**6}, "seeds"),
        ({"methods": ("power-control",)}, "power-control"),
    ],
)
def test_options_that_make_no_sense_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(mc.Error, match=words) as caught:
        options(**changed)
    assert caught.value.hint


def test_too_few_uses_leave_a_method_out() -> None:
    ranking = mc.rank(experiment(), options(methods=("private-gradient-tracking",), uses=(3,)))
    assert ranking.scores == ()
    assert "two epochs need 4 channel uses" in ranking.left_out[0].reason


@pytest.mark.slow
def test_regression_is_ranked_by_loss() -> None:
    text = TEXT.replace('"logistic"', '"least-squares"').replace("classes = 3\n", "").replace("softmax", "ridge")
    ranking = mc.rank(experiment(text), options(methods=("power-controlled", "dp-dsgd"), epsilons=(50.0,)))
    assert ranking.metric == "loss"
    means = [score.mean for score in ranking.table("everybody", 50.0, 6)]
    assert means == sorted(means)
    for score in ranking.scores:
        assert min(trial.value for trial in score.trials) == next(
            trial.value for trial in score.trials if (trial.step, trial.decay) == (score.step, score.decay)
        )


def test_problems_without_examples_or_clip_are_refused() -> None:
    quadratic = '[network]\ntopology = "ring"\nnodes = 3\n[problem]\nkind = "quadratic"\n[privacy]\nepsilon = 1.0\n'
    with pytest.raises(mc.Error, match="no examples"):
        mc.rank(experiment(quadratic))
    with pytest.raises(mc.Error, match="not clipped"):
        mc.rank(experiment(TEXT.replace('kind = "softmax"', 'kind = "softmax"\nclipping = "none"')))


@pytest.mark.slow
def test_what_diverged_comes_last(outcome: Ranking) -> None:
    broken = outcome.scores[0]._replace(method="broken", by_seed=(np.nan, 1.0))
    ranking = outcome._replace(scores=(broken, *outcome.scores))
    assert ranking.table("everybody", 2.0, 6)[-1].method == "broken"


RADIO = (
    TEXT.replace("0.5, 0.9", "5e-5, 9e-5").replace("[0.8, 0, 0.4]", "[8e-5, 0, 4e-5]").replace("0.6, 0.7", "6e-5, 7e-5")
    + '[radio]\nfading = "iid"\n'
).replace('kind = "softmax"', 'kind = "softmax"\nradius = 5.0')


def test_methods_that_do_not_send_over_the_radio_are_left_out_with_the_reason() -> None:
    ranking = mc.rank(experiment(RADIO), options(methods=("dp-dsgd", "orthogonal", "muffliato")))
    assert ranking.scores == ()
    reasons = {one.method: one.reason for one in ranking.left_out}
    assert reasons["dp-dsgd"] == "the setup has a radio, and dp-dsgd does not send over it"
    assert reasons["orthogonal"] == "the setup has a radio, and orthogonal does not send over it"
    assert len(ranking.left_out) == 3  # each once, whatever the budgets


def test_further_rounds_of_the_file_are_kept_and_methods_without_them_left_out() -> None:
    text = TEXT + "[schedule]\nepochs = 5\nrounds = 2\n"
    (contender,) = contenders(registry.find("power-controlled"), experiment(text), 3)
    assert entered(experiment(text), contender, 2.0, Steps(4, 0.1, "sqrt")).schedule.rounds == 2
    ranking = mc.rank(experiment(text), options(methods=("dp-dsgd",)))
    assert ranking.scores == ()
    (only,) = ranking.left_out
    assert only.reason == "schedule.rounds is 2, and dp-dsgd has no further mixing rounds"


@pytest.mark.slow
def test_over_a_radio_every_trial_has_the_loudness_of_its_own_noise() -> None:
    """One compiled program serves all steps; what the channel is made of goes along with them."""
    built = {}
    (contender,) = contenders(registry.find("power-controlled"), experiment(RADIO), 3)
    problem = experiment(RADIO).build_problem(3)
    for step in (0.05, 5.0):
        changed = entered(experiment(RADIO), contender, 2.0, Steps(4, step, "sqrt"))
        built[step] = changed.build_algorithm(changed.build_plan(problem=problem))
    together = trainer(problem, (1, 2))
    for step, algorithm in built.items():
        alone = trainer(problem, (1, 2))(algorithm)
        for name, values in together(algorithm).items():
            np.testing.assert_array_equal(values, alone[name], err_msg=f"{name} at step {step}")
