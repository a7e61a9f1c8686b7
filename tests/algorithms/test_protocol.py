"""Every algorithm against the protocol, and what each says of itself."""

import inspect
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm, Draw, Local, State
from murmurcast.algorithms.central_dp import central_dp
from murmurcast.algorithms.local_only import local_only
from murmurcast.algorithms.mped2fl import mped2fl
from murmurcast.algorithms.noiseless import noiseless
from murmurcast.algorithms.ped2fl import ped2fl
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.algorithms.tables import row_of
from murmurcast.channels.air import Air
from murmurcast.channels.server import Server
from murmurcast.channels.silence import Silence
from murmurcast.channels.slots import Slots
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.problems.quadratic import Quadratic
from murmurcast.runs.record import basis
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS, RADIUS = 5, 3, 6, 0.5
PROBLEM = Quadratic.random(NODES, DIM, seed=1, ball=RADIUS)
Make = Callable[[Plan], Algorithm]


def network_of_senders() -> Network:
    """Gains that depend on the sender alone, unequal between senders."""
    support = asymmetric_network(4, NODES).gains.toarray() > 0
    gains = np.random.default_rng(5).uniform(0.3, 1.2, (NODES, 1))
    return Network(gains=support * gains, power=np.random.default_rng(6).uniform(0.5, 2.0, NODES))


def planned(network: Network | None = None, unit: Literal["node", "record"] = "node", epochs: int = EPOCHS) -> Plan:
    problem: Any = PROBLEM if unit == "node" else ClippedGradients(clip=1.0, examples_per_node=[10, 20, 30, 40, 50])
    return plan(
        network or asymmetric_network(4, NODES),
        problem,
        Budget(epsilon=5.0, unit=unit),
        Schedule(epochs=epochs, step=0.3, noise_timing="aligned"),
    )


ALGORITHMS: dict[str, tuple[Make, type, int]] = {  # channel and channel uses as documented
    "power-controlled": (power_controlled, Air, 1),
    "power-controlled, own, average": (lambda p: power_controlled(p, gradient_at="own", publish="average"), Air, 1),
    "noiseless": (noiseless, Air, 1),
    "mped2fl": (mped2fl, Slots, 2),  # receivers without a common sender share a slot
    "mped2fl, own, long steps": (lambda p: mped2fl(p, gradient_at="own", step_factor=NODES), Slots, 2),
    "ped2fl": (ped2fl, Air, 1),
    "local-only": (local_only, Silence, 0),
    "central-dp": (central_dp, Server, 2),
    "central-dp, average": (lambda p: central_dp(p, publish="average"), Server, 2),
}


def built(name: str) -> Algorithm:
    return ALGORITHMS[name][0](planned(network_of_senders() if name.startswith("ped2fl") else None))


def entry(tables: Any, epoch: int, node: int) -> Any:
    """A node's constants in an epoch, as the engine looks them up: the last row stands for all later epochs."""

    def one(table: Any) -> Any:
        row = np.asarray(table)[min(epoch, len(table)) - 1]
        np.testing.assert_array_equal(row, row_of(table, epoch))
        return float(row) if row.ndim == 0 else float(row[node]) if row.ndim == 1 else row[node]

    return type(tables)(*map(one, tables))


def local(node: int) -> Local:
    mine = jax.tree.map(lambda leaf: jnp.asarray(leaf[node], jnp.float32), PROBLEM.local_data())
    key = jax.random.key(0)
    return Local(
        lambda point: PROBLEM.gradient_at_public(point, mine, key),
        lambda point: PROBLEM.gradient_at_private(point, mine, key),
        PROBLEM.project,
    )


def draw(seed: int, scale: float = 1.0) -> jax.Array:
    return jnp.asarray(scale * np.random.default_rng(seed).standard_normal(DIM), jnp.float32)


def drawn(algorithm: Algorithm, seed: int | None) -> dict[str, jax.Array]:
    """All that a node's send is given to draw with, as the engine names and shapes it; zeros without a seed."""
    result = {}
    for name, one in algorithm.rounds[0].draws.items():
        assert isinstance(one, Draw)
        shape = (algorithm.plan.network.max_degree, DIM) if one.per == "link" else (DIM,)
        values = np.zeros(shape) if seed is None else np.random.default_rng(seed).standard_normal(shape)
        result[name] = jnp.asarray(values, jnp.float32)
    return result


@pytest.mark.parametrize("name", ALGORITHMS)
def test_protocol(name: str) -> None:
    algorithm = built(name)
    channel, uses = ALGORITHMS[name][1:]
    (only,) = algorithm.rounds
    assert algorithm.name == name.split(",")[0]
    assert isinstance(only.channel, channel)
    assert algorithm.channel_uses == uses
    assert algorithm.epochs == EPOCHS
    for part in algorithm.releases:
        assert part.ratio.shape == (EPOCHS, NODES)
        assert (part.ratio >= 0).all()
        assert part.against in ADVERSARIES
        assert mu_of(part).shape == (NODES,)
        assert (mu_of(part) >= 0).all()
    assert basis(algorithm, PROBLEM)[0]
    widest = int(algorithm.plan.network.degree.max())
    for where, tables in (("sending", only.sending), ("receiving", only.receiving)):
        for field, table in tables._asdict().items():
            assert isinstance(table, np.ndarray), field
            assert table.dtype == np.float64, field
            assert np.isfinite(table).all(), field
            per_link = where == "sending" and channel is Slots
            shapes = [(EPOCHS,)] + [(r, NODES, *([widest] if per_link else [])) for r in range(1, EPOCHS + 1)]
            assert table.shape in shapes, field
    for node in range(NODES):
        state = algorithm.init(jnp.zeros(DIM, jnp.float32), local(node))
        np.testing.assert_array_equal(np.asarray(state.own), 0)
        for epoch in range(1, EPOCHS + 1):
            here = entry(only.sending, epoch, node)
            before = jax.tree.map(np.asarray, state)
            sent = only.send(here, state, drawn(algorithm, epoch))
            assert sent.shape == ((widest, DIM) if channel is Slots else (DIM,))
            again = only.send(here, state, drawn(algorithm, epoch))
            np.testing.assert_array_equal(np.asarray(sent), np.asarray(again))
            quiet = here._replace(noise=0 * here.noise) if hasattr(here, "noise") else here
            still = [np.asarray(only.send(quiet, state, drawn(algorithm, seed))) for seed in (1, 2)]
            np.testing.assert_array_equal(still[0], still[1])
            np.testing.assert_array_equal(still[0], np.asarray(only.send(here, state, drawn(algorithm, None))))
            jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, state))
            following = only.update(
                entry(only.receiving, epoch, node), state, sent, draw(100 + epoch, scale=5.0), local(node)
            )
            assert type(following) is type(state)
            assert jax.tree.map(jnp.shape, following) == jax.tree.map(jnp.shape, state)
            assert {"own", "published"} <= set(following._fields)
            assert np.isfinite(np.asarray(following.published)).all()
            assert np.linalg.norm(np.asarray(following.own)) <= RADIUS * (1 + 1e-5)
            state = following


@pytest.mark.parametrize("name", ALGORITHMS)
def test_only_an_algorithm_with_noise_promises(name: str) -> None:
    algorithm = built(name)
    (only,) = algorithm.rounds
    if name.startswith(("power-controlled", "central")):
        (part,) = algorithm.releases
        assert part.against == ("trusted server" if name.startswith("central") else "everybody")
        assert np.isfinite(mu_of(part)).all()
        assert (mu_of(part) > 0).all()
        assert (np.asarray(only.sending.noise) > 0).all()
    elif name == "local-only":
        (part,) = algorithm.releases
        np.testing.assert_array_equal(mu_of(part), 0)
        assert not only.draws
        np.testing.assert_array_equal(np.asarray(only.send(only.sending, State(draw(1), draw(1)), {})), 0)
    else:
        assert algorithm.releases == ()
        assert (np.asarray(only.sending.noise) == 0).any()


@pytest.mark.parametrize("make", [power_controlled, noiseless, mped2fl, ped2fl, local_only, central_dp])
def test_every_file_states_equation_weights_noise_and_channel_uses(make: Make) -> None:
    module = inspect.getmodule(make)
    assert module is not None
    text = module.__doc__ or ""
    for words in ("Weights:", "oise:", "Channel uses:"):
        assert words in text
    assert "\n    " in text  # an equation stands indented


def test_power_controlled_is_the_plans() -> None:
    """Signal and mixed point are those of the matrix form A V."""
    made_plan = planned()
    algorithm = power_controlled(made_plan)
    rng = np.random.default_rng(0)
    x, eta = rng.standard_normal((2, NODES, DIM))
    (only,) = algorithm.rounds
    heres = [entry(only.sending, 3, node) for node in range(NODES)]
    sent = np.array([np.asarray(only.send(heres[n], State(x[n], x[n]), {"noise": eta[n]})) for n in range(NODES)])
    spoken = x + (np.sqrt(made_plan.beta / made_plan.alpha) * made_plan.noise_std[2])[:, None] * eta
    np.testing.assert_allclose(sent, np.sqrt(made_plan.alpha * made_plan.network.power)[:, None] * spoken, rtol=1e-12)
    heard = made_plan.network.gains.T @ sent
    still = Local(lambda point: 0 * point, lambda point: 0 * point, lambda point: point)
    mixed = [
        only.update(entry(only.receiving, 3, n), State(x[n], x[n]), sent[n], heard[n], still).own for n in range(NODES)
    ]
    np.testing.assert_allclose(mixed, made_plan.mixing.weights @ spoken, rtol=1e-10)
    for epoch in range(1, EPOCHS + 1):
        here = entry(only.receiving, epoch, 2)
        push = Local(lambda _: jnp.ones(DIM), lambda _: jnp.ones(DIM), lambda point: point)
        step = only.update(here, State(x[2], x[2]), 0 * x[2], 0 * x[2], push).own
        np.testing.assert_allclose(
            np.asarray(step), -made_plan.schedule.steps[epoch - 1] / made_plan.z[epoch - 1, 2], rtol=1e-6
        )


def test_unit_record_needs_gradients_at_the_public_point() -> None:
    made_plan = planned(unit="record")
    for make in (power_controlled, noiseless):
        with pytest.raises(Error, match="public mixed point") as raised:
            make(made_plan, gradient_at="own")
        assert "mixed" in raised.value.hint
    (part,) = power_controlled(made_plan).releases
    np.testing.assert_allclose(mu_of(part), made_plan.certificate.mu, rtol=1e-12)


def test_gradients_are_taken_where_they_say() -> None:
    def asked(make: Make) -> tuple[str, list[float]]:
        (only,) = make(planned()).rounds
        seen: list[tuple[str, Any]] = []

        def public(point: jax.Array) -> jax.Array:
            seen.append(("public", np.asarray(point).tolist()))
            return point

        def private(point: jax.Array) -> jax.Array:
            seen.append(("private", np.asarray(point).tolist()))
            return point

        state, here = State(draw(1), draw(2)), entry(only.receiving, 1, 0)
        only.update(here, state, draw(3), draw(4), Local(public, private, lambda point: point))
        ((kind, where),) = seen
        return kind, where

    own = np.asarray(draw(1)).tolist()
    assert asked(lambda p: power_controlled(p, gradient_at="own")) == ("private", own)
    assert asked(lambda p: mped2fl(p, gradient_at="own")) == ("private", own)
    kind, where = asked(power_controlled)
    assert (kind, where != own) == ("public", True)
    kind, where = asked(mped2fl)  # its mixed point holds its own model as it is: not public
    assert (kind, where != own) == ("private", True)


@pytest.mark.parametrize("make", [power_controlled, central_dp])
def test_published_average_is_the_weighted_average_of_public_points(make: Any) -> None:
    """Weights t (t + 1) (t + 2), which is what the recursion by 4/(t + 3) comes to."""
    made_plan = planned(epochs=12)
    algorithm = make(made_plan, publish="average")
    last, average = make(made_plan).rounds[0], algorithm.rounds[0]
    state, points = algorithm.init(jnp.zeros(DIM), local(1)), []
    for epoch in range(1, 13):
        here, sent, heard = entry(average.receiving, epoch, 1), draw(epoch), draw(50 + epoch)
        plain = last.update(here, state, sent, heard, local(1))
        points.append(np.asarray(plain.published, np.float64))
        state = average.update(here, state, sent, heard, local(1))
        t = np.arange(1.0, epoch + 1)
        expected = np.average(points, axis=0, weights=t * (t + 1) * (t + 2))
        np.testing.assert_allclose(np.asarray(state.published), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(np.asarray(state.own), np.asarray(plain.own))


@pytest.mark.parametrize("word", ["gradient_at", "publish"])
def test_unknown_options_have_a_hint(word: str) -> None:
    options: dict[str, Any] = {word: "lastt" if word == "publish" else "mixd"}
    with pytest.raises(Error, match=f"{word} is") as raised:
        power_controlled(planned(), **options)
    assert "did you mean" in raised.value.hint


@pytest.mark.parametrize("unit", ["node", "record"])
def test_central_noise_costs_exactly_the_plans_mu(unit: Literal["node", "record"]) -> None:
    made_plan = planned(unit=unit)
    algorithm = central_dp(made_plan)
    (only,), (part,) = algorithm.rounds, algorithm.releases
    mu = mu_of(part)
    rho = np.sqrt((only.sending.noise[0] ** 2).sum())  # of the sum, independent at every node
    np.testing.assert_allclose(mu**2, (EPOCHS - 1) * (made_plan.sensitivity / rho) ** 2, rtol=1e-12)
    assert mu.max() == pytest.approx(made_plan.certificate.mu.max(), rel=1e-12)
    np.testing.assert_array_equal(only.receiving.step, [0, *made_plan.schedule.steps[:-1]])


def test_central_sends_nothing_but_noise_first_and_the_gradient_at_the_public_model_after() -> None:
    algorithm = central_dp(planned())
    (only,) = algorithm.rounds
    nothing = {"noise": jnp.zeros(DIM)}
    state = algorithm.init(jnp.zeros(DIM), local(0))
    here = entry(only.sending, 1, 0)
    np.testing.assert_array_equal(np.asarray(only.send(here, state, nothing)), 0)
    state = only.update(entry(only.receiving, 1, 0), state, draw(1), draw(2), local(0))
    np.testing.assert_array_equal(np.asarray(state.own), 0)
    np.testing.assert_array_equal(np.asarray(state.own), np.asarray(state.published))
    np.testing.assert_allclose(
        np.asarray(only.send(here, state, nothing)),
        np.asarray(local(0).gradient_at_public(jnp.zeros(DIM))),
        rtol=1e-6,
    )
