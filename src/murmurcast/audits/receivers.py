"""Receivers, one or several together: they know their own signals and noise, and hear sums of everybody else's.

Under gradients that do not react to hidden states all is linear and Gaussian, and the Kalman filter of the linear
diagnostic whitens what they hear: readings are exactly standard normal, and the worlds lie `Plan.linear_common` apart.
Where gradients do react, the receivers take them at the filter's estimate of what the hidden nodes said. The statistic
is then an approximation; as an attack it is as honest, because it uses nothing that they do not have.
"""

from typing import NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.replay import Replay
from murmurcast.audits.transcript import Transcript
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.privacy import linear


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


class Heard(NamedTuple):
    """What observers make of what they have; it serves for all targets.

    Attributes:
        observers: Who they are.
        readings: [readings, runs, dim] whitened by what is claimed of the noise.
        shift: [nodes, readings] by a unit change of every gradient of a node; 0 for the observers.
    """

    observers: tuple[int, ...]
    readings: FloatArray
    shift: FloatArray

    def about(self, target: int, change: float) -> Evidence:
        """The evidence of one target, whose gradients change by so much."""
        if target in self.observers:
            raise Error(f"node {target} is an observer of itself", hint="name a target outside the coalition")
        return Evidence(self.readings, change * self.shift[target])


def listen(plan: Plan, seen: View, followed: Replay, on_epoch: Count = quiet) -> Heard:
    """Filters what observers have, and nothing else.

    Args:
        plan: The public plan of Algorithm 1.
        seen: What the observers have.
        followed: All hidden nodes half way between the worlds, as `linear.hidden_from` orders them.
        on_epoch: Called with (epochs done, epochs in all).
    """
    weights, observers = plan.mixing.weights.toarray(), list(seen.observers)
    hidden = linear.hidden_from(weights, seen.observers)
    amplitude = np.sqrt(plan.alpha * plan.network.power)[:, None, None]
    arriving = plan.network.gains.toarray().T
    push = (plan.schedule.steps[:, None] / plan.z)[:, hidden]
    seeds, epochs, _, dim = seen.said.shape
    state, moved = followed.start, np.zeros((len(hidden), len(hidden)))
    said, readings, shift = np.zeros((len(weights), seeds, dim)), [], []
    for epoch, now in enumerate(linear.filter_steps(weights, seen.observers, plan.effective_noise)):
        expected = np.asarray(state.own, np.float64).reshape(len(hidden), seeds, dim)
        heard = seen.received[:, epoch].swapaxes(0, 1)
        surprise = np.tensordot(now.whiten, heard, axes=1) - np.tensordot(now.observe, expected, axes=1)
        readings.append(surprise)
        shift.append(now.observe @ moved)
        said[observers] = seen.said[:, epoch].swapaxes(0, 1)
        said[hidden] = expected + np.tensordot(now.correct, surprise, axes=1)
        sent = amplitude * said
        signals = sent[hidden], np.tensordot(arriving[hidden], sent, axes=1)
        state = followed.step(epoch + 1, state, (signals,)).state
        moved = now.carry @ moved - np.diag(push[epoch])
        on_epoch(epoch + 1, epochs)
    by_node = np.zeros((len(weights), sum(map(len, shift))))
    by_node[hidden] = np.concatenate(shift).T
    return Heard(seen.observers, np.concatenate(readings), by_node)
