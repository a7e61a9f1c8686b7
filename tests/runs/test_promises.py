"""No promise travels further than its proof: exchanged functions, borrowed names, classes that clip by themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm, Draw
from murmurcast.engine import node
from murmurcast.problems.trust import clips_as_proved, engine_clip
from murmurcast.runs import record
from tests.algorithms.networks import NODES, two_way
from tests.conftest import changed


@pytest.fixture(scope="module")
def problem() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, 3, ball=2.0)


@pytest.fixture(scope="module")
def plan(problem: mc.Quadratic) -> mc.Plan:
    return mc.plan(two_way(), problem, mc.Budget(epsilon=4.0), mc.Schedule(epochs=4, step=0.3))


def loud(here: Any, state: Any, drawn: Any) -> Any:  # noqa: ARG001
    """Sends the bare model: no noise at all."""
    return here.amplitude * state.own


def quieter(sending: Any) -> Any:
    """A hundredth of the noise."""
    return sending._replace(noise=sending.noise / 100)


def says_nothing(algorithm: Algorithm, problem: Any, *, because: str) -> None:
    ran = mc.run(algorithm, problem, options=mc.RunOptions(evaluate_every=4))
    privacy = ran.info["privacy"]
    assert privacy["epsilon"] is None
    assert privacy["against"] == "nobody"
    assert because in privacy["basis"]
    assert np.isinf(ran.ledger["promised_mu"]).all()
    certified = mc.certify(ran)
    assert certified.verdict == "nothing is promised"
    assert because in str(certified)


EXCHANGED: dict[str, Callable[[Algorithm], Algorithm]] = {
    "send": lambda algorithm: changed(algorithm, send=loud),
    "update": lambda algorithm: changed(algorithm, update=lambda *given: algorithm.rounds[0].update(*given)),
    "init": lambda algorithm: algorithm._replace(init=lambda start, local: algorithm.init(start, local)),
    "setup": lambda algorithm: algorithm._replace(setup=algorithm.setup.until(algorithm.epochs)),
    "tables": lambda algorithm: changed(algorithm, sending=quieter(algorithm.rounds[0].sending)),
    "draws": lambda algorithm: changed(algorithm, draws={"noise": Draw(per="link")}),
}


@pytest.mark.parametrize("what", EXCHANGED)
def test_exchanged_parts_lose_the_promise(plan: mc.Plan, problem: mc.Quadratic, what: str) -> None:
    honest = mc.power_controlled(plan)
    assert record.promised(honest, problem) == honest.releases
    altered = EXCHANGED[what](honest)
    assert altered.releases is honest.releases
    assert record.promised(altered, problem) == ()
    assert "proved for" in record.why_nothing(altered, problem)


@pytest.mark.slow
def test_run_and_certify_say_so(plan: mc.Plan, problem: mc.Quadratic) -> None:
    honest = mc.power_controlled(plan)
    says_nothing(changed(honest, send=loud), problem, because="proved for")
    says_nothing(changed(honest, sending=quieter(honest.rounds[0].sending)), problem, because="proved for")


@pytest.mark.parametrize("make", [mc.power_controlled, mc.orthogonal, mc.central_dp, mc.decor, mc.local_only])
def test_every_method_is_tied_to_its_functions(plan: mc.Plan, problem: mc.Quadratic, make: Any) -> None:
    honest = make(plan)
    assert honest.is_as_proved
    assert record.promised(honest, problem)
    assert record.promised(changed(honest, send=lambda *given: honest.rounds[0].send(*given)), problem) == ()


@pytest.mark.parametrize("ends", [{"stop_after": 3}, {"drops": {1: 2}}, {"stop_after": 3, "drops": {1: 2}}])
def test_ends_neither_lose_nor_restore_it(plan: mc.Plan, problem: mc.Quadratic, ends: dict[str, Any]) -> None:
    from murmurcast.algorithms.early_end import with_ends

    honest = mc.power_controlled(plan)
    assert record.promised(with_ends(honest, **ends), problem)
    altered = changed(honest, update=lambda *given: honest.rounds[0].update(*given))
    assert record.promised(with_ends(altered, **ends), problem) == ()


def test_releases_of_ones_own_need_a_name_of_ones_own(plan: mc.Plan, problem: mc.Quadratic) -> None:
    honest = mc.power_controlled(plan)
    (only,) = honest.rounds
    mine = honest._replace(rounds=(only._replace(send=loud),), releases=(*honest.releases,), proof=None)
    assert "name" in record.why_nothing(mine, problem)
    assert record.promised(mine._replace(name="mine"), problem) == mine.releases


@dataclass(frozen=True, kw_only=True, eq=False)
class Overlong(mc.Quadratic):
    """Says that it clips, and returns a gradient 59 times too long."""

    def gradient_at_public(self, model: jax.Array, mine: Any, key: jax.Array) -> jax.Array:
        return 59 * super().gradient_at_public(model, mine, key)

    def gradient_at_private(self, model: jax.Array, mine: Any, key: jax.Array) -> jax.Array:
        return 59 * super().gradient_at_private(model, mine, key)


def test_a_gradient_of_an_instances_own_is_not_trusted() -> None:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    assert clips_as_proved(problem)
    object.__setattr__(
        problem, "gradient_at_public", lambda *given: 59 * mc.Quadratic.gradient_at_public(problem, *given)
    )
    assert not clips_as_proved(problem)
    assert engine_clip(problem).per == "node"


def test_the_engine_clips_what_a_class_of_ones_own_returns(plan: mc.Plan) -> None:
    base = mc.Quadratic.random(NODES, 3, ball=2.0)
    problem = Overlong(curvature=base.curvature, centre=base.centre, ball=2.0)
    assert not clips_as_proved(problem)
    mine = jax.tree.map(lambda leaf: jnp.asarray(leaf)[1], problem.local_data())
    local = node.local(problem, mine, jax.random.key(0))
    point = jnp.full(3, 1.5)
    assert float(jnp.linalg.norm(problem.gradient_at_public(point, mine, jax.random.key(0)))) > 50
    for gradient in (local.gradient_at_public, local.gradient_at_private):
        assert float(jnp.linalg.norm(gradient(point))) <= 1 + 1e-6
    # Whole nodes are then hidden by construction.
    ran = mc.run(mc.power_controlled(plan), problem)
    assert ran.info["privacy"]["epsilon"] == pytest.approx(4.0)
    assert mc.certify(ran).verdict == "kept"


def test_the_engine_leaves_proved_problems_to_their_own_clip(problem: mc.Quadratic) -> None:
    assert clips_as_proved(problem)
    assert not engine_clip(problem).bounds
    unclipped = mc.Quadratic.random(NODES, 3, clipping="none")
    assert not engine_clip(unclipped).bounds


@pytest.mark.slow
def test_records_are_not_promised_to_a_class_that_clips_by_itself() -> None:
    class Mine(mc.SoftmaxRegression):
        """Could do anything."""

    split = mc.datasets.digits().partition("iid", nodes=NODES)
    own, known = (kind(data=split, clip=1.0) for kind in (Mine, mc.SoftmaxRegression))
    plan = mc.plan(two_way(), own, mc.Budget(epsilon=9.0, unit="record"), mc.Schedule(epochs=3, step=0.1))
    algorithm = mc.power_controlled(plan)
    assert record.promised(algorithm, known)
    assert "mc.Model" in record.why_nothing(algorithm, own)
    says_nothing(algorithm, own, because="clips its examples by itself")
