"""A model of one's own: gradients by autodiff, each example clipped, whatever the loss; trees at the edge only."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import murmurcast as mc
from murmurcast.problems import per_example
from murmurcast.problems.per_example import Example
from murmurcast.problems.trust import clips_as_proved, engine_clip

NODES = 4


def initialise(key: jax.Array) -> dict[str, jax.Array]:
    first, second = jax.random.split(key)
    return {"hidden": jax.random.normal(first, (64, 5)) / 8, "out": jax.random.normal(second, (5, 10)) / 2}


def scores(parameters: Any, features: jax.Array) -> jax.Array:
    outcome: jax.Array = jnp.tanh(features @ parameters["hidden"]) @ parameters["out"]
    return outcome


def loss(parameters: Any, example: Example) -> jax.Array:
    outcome = scores(parameters, example.features)
    return jax.nn.logsumexp(outcome) - outcome[example.target]


def predict(parameters: Any, features: jax.Array) -> jax.Array:
    return jnp.argmax(scores(parameters, features))


def built(clipping: Literal["node", "example", "none"] = "example", **options: Any) -> mc.Model:
    data = mc.datasets.digits().partition("quantity", NODES, seed=1)
    given: dict[str, Any] = {"clip": 0.3, "predict": predict} | options
    return mc.Model(data=data, initialise=initialise, loss=loss, clipping=clipping, **given)


def at(problem: mc.Model, node: int) -> tuple[jax.Array, Any]:
    mine = jax.tree.map(lambda leaf: jnp.asarray(leaf[node]), problem.local_data())
    return problem.start(jax.random.key(5)), mine


@pytest.mark.parametrize("public", [True, False])
def test_gradients_are_clipped_example_by_example(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one example after the other, over blocks that do not divide their number."""
    problem = built(l2=0.1)
    point, mine = at(problem, 2)
    monkeypatch.setattr(per_example, "BLOCK_BYTES", 7 * point.size * 4)
    size, flat = int(mine.size), np.zeros(point.shape)
    tree: Any = problem.parameters(point)
    of_one = jax.jit(lambda features, target: ravel_pytree(jax.grad(loss)(tree, Example(features, target)))[0])
    for row in range(size):
        gradient = np.asarray(of_one(mine.features[row], mine.targets[row]))
        gradient = gradient + (0 if public else problem.l2 * np.asarray(point))
        flat = flat + gradient * min(1.0, 0.3 / float(np.linalg.norm(gradient)))
    expected = flat / size + (problem.l2 * point if public else 0)
    take = problem.gradient_at_public if public else problem.gradient_at_private
    np.testing.assert_allclose(take(point, mine, jax.random.key(0)), expected, rtol=1e-4, atol=1e-6)


def test_one_hostile_record_moves_no_gradient_by_more_than_the_sensitivity() -> None:
    problem = built()
    point, mine = at(problem, 0)
    sensitivity = problem.gradient_clip.sensitivity("record", NODES)[0]
    for size in (1.0, 1e3, 1e6):
        moved = mine._replace(features=mine.features.at[0].set(size))
        change = problem.gradient_at_public(point, moved, jax.random.key(0)) - problem.gradient_at_public(
            point, mine, jax.random.key(0)
        )
        assert float(jnp.linalg.norm(change)) <= sensitivity * (1 + 1e-4)


def test_a_node_is_clipped_where_that_is_asked() -> None:
    problem = built("node", clip=0.01)
    point, mine = at(problem, 1)
    gradient = problem.gradient_at_public(point, mine, jax.random.key(0))
    assert float(jnp.linalg.norm(gradient)) == pytest.approx(0.01, rel=1e-5)


def test_nothing_of_a_gradient_stays_with_the_problem() -> None:
    """A run is resumed where all settings of its problem are those it began with."""

    def settings(problem: mc.Model) -> dict[str, Any]:
        return {name: value for name, value in vars(problem).items() if isinstance(value, int | float | str)}

    problem = built()
    before, (point, mine) = settings(problem), at(problem, 0)
    problem.gradient_at_public(point, mine, jax.random.key(0))
    assert settings(problem) == before


@pytest.mark.parametrize("name", ["_sum", "_clipped_sum", "averaged", "drawn", "gradient_at_public"])
def test_a_method_of_an_instances_own_is_not_trusted(name: str) -> None:
    problem = built()
    assert clips_as_proved(problem)
    assert not engine_clip(problem).bounds
    object.__setattr__(problem, name, getattr(problem, name))
    assert not clips_as_proved(problem)
    assert engine_clip(problem).per == "node"


@pytest.mark.slow
def test_it_learns_privately_from_its_own_start() -> None:
    """All nodes begin at the same public point, another one for every seed, and none at zero."""
    problem = built(batch=20, clip=1.0)
    network = mc.topologies.complete(NODES, seed=0)
    schedule = mc.Schedule(epochs=40, step=0.5, decay="constant", noise_timing="aligned")
    plan = mc.plan(network, problem, mc.Budget(epsilon=50.0, unit="record"), schedule, z="perron")
    result = mc.run(mc.power_controlled(plan), problem, seeds=[0, 1], options=mc.RunOptions(evaluate_every=40))
    assert result.final("published_accuracy").mean() > 0.6
    assert mc.certify(result).verdict == "kept"
    tree = problem.parameters(result.published[0, 0])
    assert {name: array.shape for name, array in tree.items()} == {"hidden": (64, 5), "out": (5, 10)}
    still = mc.run(mc.local_only(plan), problem, seeds=[0, 1])  # publishes its start
    assert np.abs(still.published[0, 0]).max() > 0.1
    np.testing.assert_array_equal(still.published[:, 0], still.published[:, 1])
    assert np.abs(still.published[0] - still.published[1]).max() > 0.1


def test_labels_are_predicted_for_labels_only() -> None:
    data = mc.datasets.least_squares(examples=40, features=3).partition("iid", NODES)
    with pytest.raises(mc.Error, match="predict"):
        mc.Model(data=data, initialise=initialise, loss=loss, predict=predict)
