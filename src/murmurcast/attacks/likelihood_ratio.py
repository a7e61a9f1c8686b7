"""The best guess of observers between two worlds: the likelihood ratio of all they heard.

Two worlds differ in one unit of the target's data, which moves its gradient by S along one direction u in every epoch.
The observers know everything else: all other data, the plan, what they sent and what they heard. Under gradients that
do not react to hidden states all is linear and Gaussian, and the Kalman filter of the linear diagnostic gives the log
likelihood ratio exactly: N(-mu^2/2, mu^2) in one world and N(+mu^2/2, mu^2) in the other, mu = `Plan.linear_common`.

Where gradients do react, the observers take them at the filter's estimate of the mixed points. The statistic is then
an approximation; as an attack it is as honest, because it uses nothing that they do not have.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.attacks.transcript import Transcript
from murmurcast.errors import Error
from murmurcast.plans import Plan
from murmurcast.privacy import linear
from murmurcast.problems.base import Problem

_SEEDS_TOGETHER = 64  # whose gradients fit in the cache
Gradients = Callable[[FloatArray], FloatArray]  # [seeds, nodes, dim] mixed points -> gradients there


class View(NamedTuple):
    """All that a coalition has of a run, in the units of models.

    Attributes:
        observers: Its members, in ascending order.
        said: [seed, epoch, observer, dim] V, what its members said: model and noise of their own.
        received: [seed, epoch, observer, dim] what the others said, as it arrived: sum of a_ij V_j over others j.
    """

    observers: tuple[int, ...]
    said: FloatArray
    received: FloatArray


class Worlds(NamedTuple):
    """What the observers want to tell apart, and all they know of it beforehand.

    Attributes:
        target: Whose data differs.
        direction: [dim] u, of length 1: the gradient is S u larger in the world "present" than in "absent".
        gradients: Of all nodes, half way between the worlds; only hidden nodes' are used.
    """

    target: int
    direction: FloatArray
    gradients: Gradients


def view(plan: Plan, transcript: Transcript, observers: tuple[int, ...]) -> View:
    """What a coalition has of runs of Algorithm 1: its own signals, and what its antennas heard beside them."""
    members = list(_check.observers(plan.network.nodes, observers))
    amplitude = np.sqrt(plan.alpha * plan.network.power)[members, None]
    compensation = (plan.mixing.compensation * plan.mixing.normaliser)[members, None]
    said = transcript.sent[:, :, members].astype(np.float64) / amplitude
    among = plan.mixing.weights.toarray()[np.ix_(members, members)]
    np.fill_diagonal(among, 0.0)  # nobody hears itself
    received = transcript.heard[:, :, members].astype(np.float64) / compensation - among @ said
    return View(tuple(members), said, received)


def log_likelihood_ratio(plan: Plan, seen: View, worlds: Worlds) -> FloatArray:
    """Log likelihood of "present" over "absent", from what the observers have and nothing else.

    Written for Algorithm 1 with gradients at the mixed point, models that start at 0, and an Omega that does not bind.

    Args:
        plan: The public plan.
        seen: What the observers have.
        worlds: What they want to tell apart.

    Returns:
        [seeds] large where "present" is likely.
    """
    weights, observers = plan.mixing.weights.toarray(), list(seen.observers)
    hidden = linear.hidden_from(weights, seen.observers)
    if worlds.target not in hidden:
        raise Error(f"node {worlds.target} is an observer of itself", hint="name a target outside the coalition")
    step = plan.schedule.steps[:, None] / plan.z
    push = plan.sensitivity[worlds.target] * step[:, worlds.target] * (hidden == worlds.target)[:, None]
    seeds, _, _, dim = seen.said.shape
    expected, response = np.zeros((seeds, len(hidden), dim)), np.zeros(len(hidden))
    said, ratio = np.zeros((seeds, len(weights), dim)), np.zeros(seeds)
    for epoch, now in enumerate(linear.filter_steps(weights, seen.observers, plan.effective_noise)):
        surprise = now.whiten @ seen.received[:, epoch] - now.observe @ expected
        ratio += np.einsum("r,srd,d->s", now.observe @ response, surprise, worlds.direction)
        said[:, observers], said[:, hidden] = seen.said[:, epoch], expected + now.correct @ surprise
        mixed = weights @ said
        expected = (mixed - step[epoch][:, None] * worlds.gradients(mixed))[:, hidden]
        response = now.carry @ response - push[:, epoch]
    return ratio


def gradients_of(problem: Problem) -> Gradients:
    """Every node's gradient at a public point of its own, in float64, as the engine computes it.

    Args:
        problem: Without minibatches, whose draws an observer does not know.
    """
    if getattr(problem, "batch", None) is not None:
        raise Error("the gradients of minibatches are not known to observers", hint="leave batch out")

    def of_node(point: jax.Array, mine: Any) -> jax.Array:
        return problem.gradient_at_public(point, mine, jax.random.key(0))  # without minibatches no key is used

    def of_all(points: jax.Array, data: Any) -> jax.Array:
        found: jax.Array = jax.lax.map(lambda seed: jax.vmap(of_node)(seed, data), points, batch_size=_SEEDS_TOGETHER)
        return found

    everybody = jax.jit(of_all)
    data = jax.tree.map(_in_float64, problem.local_data())

    def gradients(points: FloatArray) -> FloatArray:
        with jax.enable_x64(True):
            found = everybody(points.reshape(*points.shape[:2], *problem.shape), data)
            return np.asarray(found).reshape(points.shape)

    return gradients


def _in_float64(leaf: Any) -> NDArray[Any]:
    array = np.asarray(leaf)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
