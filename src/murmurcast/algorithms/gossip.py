"""What methods share that say their model under noise, mix what they hear, and take a step.

    V_i = x_i + n_i,  n_i ~ N(0, (q_i std_t)^2)        m_i = sum_j w_ij V_j        x_i <- Proj( m_i - gamma_t g_i(m_i) )

The node's own V stands in its mixed point as it was sent, noise included: so m is public, and what follows it moves by
gamma_t S at most when one unit's data changes, under the noise of the next epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Draws, Local, Model, Publish, State, require_publish
from murmurcast.algorithms.mixer import Mixer, mix, radiate
from murmurcast.algorithms.tables import Leaf, newest_share, row_of, same_always
from murmurcast.errors import Error, Infeasible
from murmurcast.planning.setup import Setup
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases, exposed_ratio

if TYPE_CHECKING:
    import jax

WITHIN = 1 + 1e-9  # relative: noise that was found for a budget meets it but for rounding


class Sending(NamedTuple):
    """Constants of what is said.

    Attributes:
        amplitude: Of all that is said, at the antenna.
        noise: q, the standard deviation (or scale) of the noise in units of its schedule, against the model.
        schedule: std_t.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: Factor of what is heard.
        kept: Factor of the node's own signal.
        step: gamma_t, times the step factor.
        newest: Weight of the newest point in the published model.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf
    newest: Leaf


def say(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """X + n."""
    return radiate(here.amplitude, state.own + here.noise * here.schedule * drawn["noise"])


def step_at_mixed(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(m)); m is published."""
    mixed = mix(here, sent, heard)
    own = local.project(mixed - here.step * local.gradient_at_public(mixed))
    return State(own, averaged(here, state, mixed))


def averaged(here: Any, state: Any, point: Model) -> Model:
    """What is published now: the newest point, or an average of all of them."""
    return (1 - here.newest) * state.published + here.newest * point


def newest(setup: Setup, publish: Publish) -> FloatArray:
    """[epochs] the newest point's weight in what is published: 1 for "last"."""
    require_publish(publish)
    epochs = setup.schedule.epochs
    return np.ones(epochs) if publish == "last" else newest_share(epochs)


def steps_of(setup: Setup, step_factor: Any) -> FloatArray:
    """gamma_t times the factor: [epochs], or [epochs, nodes] where every node has a factor of its own."""
    _check.positive(step_factor=step_factor)
    steps = setup.schedule.steps
    if np.ndim(step_factor) == 0:
        return np.asarray(float(step_factor) * steps)
    return np.asarray(steps[:, None] * _check.per_node(setup.network.nodes, step_factor=step_factor))


def sending(mixer: Mixer, setup: Setup, noise: FloatArray) -> Sending:
    """Tables of what is said."""
    return Sending(mixer.amplitude, same_always(noise), setup.schedule.noise_schedule)


def gossip_releases(setup: Setup, steps: FloatArray, noise: FloatArray, law: Law = GAUSSIAN) -> Releases:
    """What a run releases that says its model with this noise: [nodes] q."""
    return exposed_releases(setup.sensitivity, steps, setup.schedule.noise_schedule[:, None] * noise, law)


def exposed_releases(sensitivity: FloatArray, push: FloatArray, std: FloatArray, law: Law = GAUSSIAN) -> Releases:
    """From how far a gradient pushes what is said next, [epochs] or [epochs, nodes], and the noise there."""
    wide = np.broadcast_to(push if push.ndim > 1 else push[:, None], std.shape)
    return Releases(law, exposed_ratio(sensitivity, wide, std), "everybody")


def noise_for(setup: Setup, name: str, unit: Releases) -> FloatArray:
    """[nodes] q: the schedule's noise_to_step where it is a number, else the least that meets the budget.

    Args:
        setup: Budget and schedule.
        name: Of the method, for errors.
        unit: What a run with q = 1 releases, against whom the budget is about.
    """
    require_seeded(setup, name)
    budget, given = setup.budget, setup.schedule.noise_to_step
    curve = setup.curve_of(unit)
    mu = mu_of(unit)
    if not np.isfinite(mu).all():
        raise Infeasible(
            f"no noise hides what node {int(np.argmax(~np.isfinite(mu)))} sends with {name}: a gradient is sent with a "
            "noise schedule of 0",
            hint='set noise_timing = "aligned"',
            smallest_epsilon=np.inf,
        )
    allowed = curve.mu_of_steps(budget.epsilon, budget.delta)
    if given is None or isinstance(given, str):
        return np.asarray(mu / allowed)
    noise = _check.per_node(setup.network.nodes, noise_to_step=given)
    if (mu / noise > allowed * WITHIN).any():
        epsilon = curve.epsilon_for(mu / noise, budget.epsilon, budget.delta)
        worst = int(np.argmax(epsilon))
        raise Infeasible(
            f"with this noise_to_step {name} costs node {worst} a total epsilon of {float(epsilon[worst]):.4g}, and "
            f"the budget is {budget.epsilon:g}",
            hint='remove noise_to_step, or set it to "auto": the least noise that meets the budget is found',
            smallest_epsilon=float(epsilon[worst]) * WITHIN,
        )
    return noise


def require_seeded(setup: Setup, name: str) -> None:
    """No grid was made for this method."""
    if setup.budget.noise_source == "secure":
        raise Error(
            f"secure noise is made for {registry.names_that('secure')}, not for {name}",
            hint='set noise_source = "seeded"',
        )


def require_fixed_batches(setup: Setup, name: str) -> None:
    """The account rests on how long a node's whole gradient can be, which coins leave open."""
    if setup.sampling is not None:
        raise Error(
            f'no account of {name} is known for sampling = "poisson": it counts on a bound of a node\'s whole gradient',
            hint=f'set problem.sampling = "fixed", or use {registry.names_that("counts_coins")}',
        )


def require_unbounded(setup: Setup, name: str, why: str) -> None:
    """The method knows no way back into Omega."""
    if setup.problem.radius is not None:
        raise Error(
            f"{name} cannot keep models within a ball or a box: {why}",
            hint=f"remove problem.radius and problem.box, or use a method that projects, such as {registry.DEFAULT}",
        )


def account_of_gossip(
    ledger: accounts.LedgerTables, draws: Draws | str, sums: accounts.Sums, law: Law = GAUSSIAN
) -> tuple[Releases, ...]:
    """What was said, over its noise, from the ledger's tables alone."""
    ledger.require_rounds(model=str(draws))
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    accounts.require_weights(ledger, "model", sums)
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")
    push = accounts.by_epoch(ledger, "model_receiving_step")
    return (exposed_releases(accounts.sensitivity(ledger), push, said_std(ledger), law),)


def said_std(ledger: accounts.LedgerTables) -> FloatArray:
    """[epochs, nodes] of the noise in what is said."""
    epochs = np.arange(1, ledger.epochs + 1)
    noise = row_of(ledger.table("model_sending_noise"), epochs)
    return np.asarray(ledger.per_epoch("model_sending_schedule")[:, None] * noise)


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Amplitude times the noise in what is said; of the loudest signal where a node sends several."""
    amplitude = accounts.loudest(ledger, "model_sending_amplitude")
    return np.asarray(said_std(ledger)[epochs - 1] * amplitude)
