"""The regret of Theorem 2, measured: strongly convex quadratics, the paper's steps, the sum of F kept in the loop.

R_i(T) = E[F(x_i,1) + ... + F(x_i,T)] - T F(x*), with F the sum of all f_i and x_i,1 = 0 the start.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local, Sending
from murmurcast.algorithms.power_controlled import Receiving, power_controlled
from murmurcast.engine import loop, sharding
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.base import Leaf
from murmurcast.problems.quadratic import Quadratic

RADIUS = 1.5  # of Omega
CONVEXITY = 1.0  # mu, of every f_i


class Noise(NamedTuple):
    """How much privacy is asked for, in the paper's per-epoch terms.

    Attributes:
        epsilon: Nominal, of one epoch seen alone.
        delta: Failure probability.
        to_step: q, sigma_t over gamma_t.
    """

    epsilon: float
    delta: float
    to_step: float


class Setting(NamedTuple):
    """A problem that meets the theorem's assumptions, with its plan.

    Attributes:
        problem: Strongly convex at every node, over a ball.
        plan: Per-epoch, with gamma_t = 1/(mu divisor t).
        convexity: mu, the smallest curvature of any f_i.
        divisor: theta for the paper's steps.
    """

    problem: Quadratic
    plan: Plan
    convexity: float
    divisor: float


class Regret(NamedTuple):
    """What was measured.

    Attributes:
        horizons: [points] T.
        noisy: [points, levels, nodes, runs] sum of F(x_i,t) - F(x*) over t = 1..T.
        silent: [points, nodes] the same without noise.
    """

    horizons: FloatArray
    noisy: FloatArray
    silent: FloatArray


class Summing(NamedTuple):
    """A node's state that remembers what its models have cost.

    Attributes:
        own: x.
        published: As in every algorithm.
        total: Sum of F(x) - F(x*) over the epochs done.
        level: What this run's noise is multiplied by.
    """

    own: Leaf
    published: Leaf
    total: Leaf
    level: Leaf


def bowls(nodes: int, dim: int, condition: float) -> Quadratic:
    """One quadratic per node, turned against each other so that F is equally curved in all directions.

    In the plane node i has curvature mu along one axis and mu * condition across it; the axes of all nodes are spread
    evenly over half a turn, and so are the centres, at distance 1, half way between each node's axes. More dimensions
    are copies of the plane with the centres scaled down, so that mu, G, the spectra, ||x*|| and F(0) - F(x*) do not
    depend on `dim`, which must be even.
    """
    if dim % 2:
        raise Error(f"dim is {dim}, expected an even number", hint="the problem is made of planes")
    angle = np.pi * np.arange(nodes) / nodes
    along, across = (np.stack([np.cos(a), np.sin(a)], axis=1) for a in (angle, angle + np.pi / 2))
    flat = CONVEXITY * (along[:, :, None] * along[:, None, :] + condition * across[:, :, None] * across[:, None, :])
    planes = dim // 2
    centre = np.tile((along + across) / np.sqrt(2 * planes), (1, planes))
    curvature = np.kron(np.eye(planes), flat)
    return Quadratic(curvature=curvature, centre=centre, clip=gradient_bound(curvature, centre), ball=RADIUS)


def gradient_bound(curvature: FloatArray, centre: FloatArray) -> float:
    """G: no ||Q_i (x - b_i)|| exceeds largest curvature times (radius + ||b_i||), so that the clip never binds."""
    steepest = np.linalg.eigvalsh(curvature)[:, -1]
    return float((steepest * (RADIUS + np.linalg.norm(centre, axis=1))).max())


def setting(network: Network, problem: Quadratic, noise: Noise, epochs: int, divisor: float | None = None) -> Setting:
    """Plans the paper's way: theta from the power split, then gamma_t = 1/(mu theta t).

    The split does not depend on the steps, so the second plan has the first one's; where it had not, this is an error.

    Args:
        network: The network.
        problem: Strongly convex at every node.
        noise: The per-epoch budget and q.
        epochs: T.
        divisor: What stands in theta's place in the steps; None for theta itself.
    """
    convexity = float(np.linalg.eigvalsh(problem.curvature).min())
    budget = Budget(epsilon=noise.epsilon, delta=noise.delta, target="per-epoch")
    schedule = Schedule(epochs=epochs, decay="linear", noise_to_step=noise.to_step)
    first = plan(network, problem, budget, schedule)
    over = first.theta if divisor is None else divisor
    second = plan(network, problem, replace(budget, theta=first.theta), replace(schedule, step=1 / (convexity * over)))
    if not np.allclose(first.alpha, second.alpha, rtol=1e-9, atol=0) or second.theta * second.z.min() < 1:
        raise Error("the power split moved with the steps", hint="theta and the steps must be planned together")
    return Setting(problem, second, convexity, over)


def measure(setting: Setting, horizons: FloatArray, runs: int, levels: tuple[float, ...] = (1.0,)) -> Regret:
    """Runs Algorithm 1 with gradients at the nodes' own points, many times together, in double precision.

    Args:
        setting: What is run.
        horizons: [points] ascending whole numbers, the last at most the plan's epochs.
        runs: Seeds 0..runs-1, the same for every level; one more run has no noise.
        levels: What the noise is multiplied by.
    """
    factors = np.append(np.repeat(levels, runs), 0.0)
    seeds = (*tuple(range(runs)) * len(levels), 0)
    nodes = setting.problem.nodes
    with jax.enable_x64(True):
        layout = sharding.layout(nodes, len(seeds), nodes * setting.problem.bytes_per_gradient)
        program = loop.program(summing(setting), setting.problem, layout, seeds, np.float64)
        level = layout.put_filled(np.tile(factors, (nodes, 1)))
        totals, carry = [], program.start._replace(state=program.start.state._replace(level=level))
        for done, horizon in pairwise((0, *horizons.astype(int))):
            carry = program.advance(program.given, carry, np.int32(done + 1), np.int32(horizon + 1))
            totals.append(layout.take(carry.state.total))
    cost = np.stack(totals)
    noisy = cost[:, :, :-1].reshape(len(horizons), nodes, len(levels), runs).swapaxes(1, 2)
    return Regret(horizons, noisy, cost[:, :, -1])


def summing(setting: Setting) -> Algorithm:
    """Algorithm 1 that adds up F(x) - F(x*) of every model it holds at the beginning of an epoch.

    The `level` of its state is what the noise is multiplied by.
    """
    algorithm = power_controlled(setting.plan, gradient_at="own")
    (inner,) = algorithm.rounds
    hessian, slope, optimum = excess_form(setting.problem)

    def init(model: jax.Array, local: Local) -> Summing:  # noqa: ARG001
        return Summing(model, model, jnp.zeros((), model.dtype), jnp.ones((), model.dtype))

    def send(here: Sending, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:
        return inner.send(here, state, {"noise": state.level * drawn["noise"]})

    def update(here: Receiving, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Summing:
        following = inner.update(here, state, sent, heard, local)
        away = state.own - optimum
        # Of x_t, before the step: after epoch T the total is over x_1..x_T.
        total = state.total + away @ (hessian @ away) / 2 + slope @ away
        return Summing(following.own, following.published, total, state.level)

    return algorithm._replace(init=init, rounds=(inner._replace(send=send, update=update),))


def excess_form(problem: Quadratic) -> tuple[FloatArray, FloatArray, FloatArray]:
    """H, g and x* of F(x) - F(x*) = (x - x*)'H(x - x*)/2 + g'(x - x*): nothing cancels near the optimum."""
    hessian, optimum = problem.curvature.sum(axis=0), problem.optimum()
    gradient = np.einsum("kij,kj->i", problem.curvature, optimum - problem.centre)
    return np.asarray(hessian), np.asarray(gradient), optimum


def contraction(setting: Setting) -> float:
    """a, where the consensus error decays as t^-a: smallest curvature of F times t gamma_t.

    With the paper's steps a = (smallest curvature of F) / (mu theta), of which strong convexity promises K/theta only.
    """
    return float(np.linalg.eigvalsh(setting.problem.curvature.sum(axis=0))[0] * setting.plan.schedule.step)


def foreseen_slope(setting: Setting) -> float:
    """What the noise adds to regret per unit of log T in the long run, in closed form; infinite where a <= 1/2.

    Near x* the pi-weighted mean obeys e_{t+1} = (1 - H c/t) e_t + n_t with c = t gamma_t and n_t of variance v/t^2 per
    coordinate, v = c^2 sum_j pi_j^2 q_j^2 beta_j/alpha_j. So E e e' tends to v (2 c H - 1)^-1 / t, and F - F* is half
    its trace with H. Disagreement between nodes decays as 1/t^2 and adds nothing to the slope.
    """
    planned, step = setting.plan, setting.plan.schedule.step
    curvature = np.linalg.eigvalsh(setting.problem.curvature.sum(axis=0))
    variance = step**2 * np.sum((planned.perron * planned.noise_to_step) ** 2 * planned.beta / planned.alpha)
    if 2 * step * curvature[0] <= 1:
        return float("inf")
    return float(variance * np.sum(curvature / (2 * step * curvature - 1)) / 2)
