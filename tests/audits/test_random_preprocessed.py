"""Random small systems with features, centring, whitening and coins: nobody shows more than is certified.

Networks are asymmetric, models of several kinds, all in float32. There are few families of sizes and constants, so that
compiled programs serve many systems, and few budgets, so that what coins bring is computed once for many.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.audits.audit import audit
from murmurcast.audits.verdict import Audit
from murmurcast.data.base import Dataset
from murmurcast.problems.per_example import Example
from tests.audits import faults
from tests.conftest import asymmetric_network

SYSTEMS, NODES, SIDE, COLUMNS = 200, 3, 4, 8
MAPS: dict[str, tuple[Any, ...]] = {  # each ends in as many columns
    "random-fourier": (mc.features.RandomFourier(features=COLUMNS, width=2.0, seed=3), "unit-norm"),
    "random-convolution": (mc.features.RandomConvolution(filters=2, size=3, cells=2, seed=5), "unit-norm"),
    "hog": ("deskew", mc.features.Hog(cells=2, orientations=2)),
    "own": (mc.features.Own(function=lambda rows: rows[:, ::2], data_free="every other pixel"), "unit-norm"),
}


class Family(NamedTuple):
    """What one compiled program serves: a model, a method, a batch, a ball, and rounds of an epoch."""

    kind: str
    method: Any
    batch: int
    ball: float | None = None
    rounds: int = 1


FAMILIES = (
    Family("softmax", mc.power_controlled, 8),
    Family("ridge", mc.dp_dsgd, 20, ball=2.0),
    Family("network", mc.power_controlled_diffusion, 12),
    Family("own loss", mc.orthogonal, 40),
    Family("softmax", mc.power_controlled, 30, ball=2.0, rounds=2),
)


BUDGETS = tuple(
    mc.Budget(epsilon=epsilon, unit="record", centring=centring, whitening=whitening)
    for epsilon, centring, whitening in ((0.6, 0.02, 0.1), (1.5, 0.2, 0.0), (3.0, 0.0, 0.0), (6.0, 0.02, 0.3))
)


class Uneven:
    """Half of all records for one node, the rest in equal parts."""

    def deal(self, generator: np.random.Generator, targets: np.ndarray, nodes: int) -> list[np.ndarray]:
        order = generator.permutation(len(targets))
        half = len(order) // 2
        return [order[:half], *np.array_split(order[half:], nodes - 1)]


class System(NamedTuple):
    algorithm: Any
    problem: Any


@cache
def images(kind: str, maps: str) -> Dataset:
    """Made-up images, as rows that went through the maps."""
    rng = np.random.default_rng(8)
    pixels = rng.random((300, SIDE, SIDE)).astype(np.float32)
    flat = pixels.reshape(len(pixels), -1)
    direction = rng.standard_normal(SIDE * SIDE)
    values = (flat @ direction / SIDE).astype(np.float32)
    labels = np.digitize(values, np.quantile(values, (0.3, 0.6))).astype(np.int32)
    if kind == "ridge":
        built = mc.datasets.from_arrays(pixels, values, seed=1)
    else:
        built = mc.datasets.from_arrays(pixels, labels, classes=3, seed=1)
    return built.with_features(MAPS[maps])


def loss(w: jax.Array, example: Example) -> jax.Array:
    return jnp.square(jnp.tanh(jnp.dot(w, example.features)) - (example.target - 1.0))


def learnt(kind: str, options: dict[str, Any]) -> Any:
    if kind == "ridge":
        return mc.RidgeRegression(**options)
    if kind == "network":
        return mc.Model(module=mc.modules.mlp(COLUMNS, 3, hidden=(3,)), loss="cross-entropy", **options)
    if kind == "own loss":
        return mc.Model(initialise=lambda key: 0.1 * jax.random.normal(key, (COLUMNS,)), loss=loss, **options)
    return mc.SoftmaxRegression(**options)


def system(seed: int) -> System:
    """A random one: any map and step, on a network of its own; families and budgets in turn."""
    rng = np.random.default_rng([seed, 7])
    family, maps = FAMILIES[seed % len(FAMILIES)], str(rng.choice(list(MAPS)))
    budget = BUDGETS[seed // len(FAMILIES) % len(BUDGETS)]
    data = images(family.kind, maps).partition(Uneven(), nodes=NODES, seed=seed)
    if budget.first_releases:
        data = mc.preprocess(data, budget, rows="non-negative" if maps == "hog" else "signed", seed=seed)
    options = {"clip": 0.5, "l2": 0.05, "batch": family.batch, "sampling": "poisson", "ball": family.ball}
    problem = learnt(family.kind, {"data": data, **options})
    schedule = mc.Schedule(
        epochs=5,
        step=float(rng.uniform(0.05, 0.6)),
        noise_timing="aligned",
        decay="constant",
        rounds=family.rounds,
    )
    plan = mc.plan(asymmetric_network(seed, NODES), problem, budget, schedule, z="perron")
    return System(family.method(plan), problem)


def audited(seed: int, canaries: int = 3000) -> Audit:
    """One node of it attacked, another one in the next system."""
    one = system(seed)
    runs = max(1, canaries // one.problem.dim)
    return audit(one.algorithm, one.problem, runs=runs, target=seed % NODES, seed=seed)


def nearest(result: list[Audit]) -> str:
    """How near the promise the best attack of all came, in words."""
    shown = [(attack.excess, number, attack.adversary) for number, one in enumerate(result) for attack in one.attacks]
    excess, number, who = max(shown)
    return f"of {len(result)} systems the nearest is {number}: {who} shows {excess:.3f} of what is certified"


def require_none_above(result: list[Audit]) -> None:
    """Nobody is accused, and every bound is below its certificate."""
    assert [(number, one.falsified_by) for number, one in enumerate(result) if one.verdict != "not falsified"] == []
    for one in result:
        for attack in one.attacks:
            assert attack.mu <= attack.mu_promised
            assert attack.epsilon <= attack.epsilon_promised


@pytest.mark.slow
def test_one_system() -> None:
    result = audited(0)
    require_none_above([result])
    assert {"noise of first releases", "coins"} <= {check.name for check in result.checks}
    # Everybody is held against what coins leave to be guessed, which is less than mu without coins.
    assert all(attack.mu_promised < result.mu_promised for attack in result.attacks)


@pytest.mark.slow
def test_all_systems(record_testsuite_property: Any) -> None:
    require_none_above(result := [audited(seed) for seed in range(SYSTEMS)])
    # The attacks are worth something: in many systems they come near the limit.
    reached = [max(attack.excess for attack in one.attacks) for one in result]
    assert np.median(reached) > 0.1, nearest(result)
    assert max(reached) > 0.3, nearest(result)
    record_testsuite_property("nearest", nearest(result))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_half_the_noise_in_such_a_system_is_caught(seed: int) -> None:
    one = system(seed)
    result = audit(one.algorithm, one.problem, actual=faults.noise_at(one.algorithm, 0.5), runs=100, seed=seed)
    assert "the size of the noise" in str(result.falsified_by)
