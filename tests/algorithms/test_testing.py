"""The protocol test that users get: every method passes it, and each way to break the protocol is caught."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import power_controlled, registry
from murmurcast.algorithms.account import LedgerTables
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.method import Method
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import Releases
from murmurcast.testing import check_algorithm
from tests.conftest import changed

BY_SENDER = np.array(
    [[0, 0.9, 0, 0.9, 0], [0.5, 0, 0.5, 0, 0], [0, 0.3, 0, 0.3, 0.3], [1.1, 0, 1.1, 0, 1.1], [0, 0, 0.65, 0.65, 0]]
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", registry.NAMES)
def test_every_method_keeps_to_the_protocol(name: str) -> None:
    networks = {"ped2fl": BY_SENDER, "dwfl": np.outer([0.9, 0.5, 0.3, 1.1, 0.65], np.ones(5)) * (1 - np.eye(5))}
    check_algorithm(registry.find(name), network=mc.Network(gains=networks[name]) if name in networks else None)


def broken(change: Callable[[Algorithm], Algorithm], account: Any = power_controlled.account) -> Method:
    def make(plan: mc.Plan) -> Algorithm:
        return change(mc.power_controlled(plan))

    return power_controlled.METHOD._replace(make=make, account=account)


def talking(here: Any, state: Any, sent: Any, heard: Any, local: Any) -> Any:
    """An update that tells somebody else what it knows."""
    jax.debug.callback(lambda model: None, state.own)  # noqa: ARG005
    return mc.power_controlled(PLAN).rounds[0].update(here, state, sent, heard, local)


PLAN = mc.plan(
    mc.Network(gains=BY_SENDER), mc.Quadratic.random(5, 3), mc.Budget(epsilon=5.0), mc.Schedule(epochs=6, step=0.1)
)


def forgetful(algorithm: Algorithm) -> Algorithm:
    inner = algorithm.rounds[0].update

    def update(*given: Any) -> Any:
        following = inner(*given)
        return following._replace(published=following.own)

    return changed(algorithm, update=update)


def restless() -> Callable[[Algorithm], Algorithm]:
    count = [0.0]

    def send(here: Any, state: Any, drawn: Any) -> Any:
        count[0] += 1.0
        return here.amplitude * state.own + drawn["noise"] + count[0]

    return lambda algorithm: changed(algorithm, send=send)


def half_promised(algorithm: Algorithm) -> Algorithm:
    (part,) = algorithm.releases
    return algorithm._replace(releases=(part._replace(ratio=part.ratio / 2),))


LATEST: list[mc.Plan] = []


def remembering(algorithm: Algorithm) -> Algorithm:
    LATEST.append(algorithm.plan)
    return algorithm


def account_that_asks_the_plan(ledger: LedgerTables) -> tuple[Releases, ...]:  # noqa: ARG001
    return (power_controlled.releases(LATEST[-1]),)


def closed_over(plan: mc.Plan) -> Any:
    return lambda ledger: (power_controlled.releases(plan),)  # noqa: ARG005


BY_PROMISE: dict[float, Any] = {}


def remembering_promises(algorithm: Algorithm) -> Algorithm:
    BY_PROMISE[round(float(mu_of(algorithm.releases[0]).max()), 6)] = algorithm.releases
    return algorithm


def account_from_memory(ledger: LedgerTables) -> Any:
    """What was promised, whatever was sent."""
    return BY_PROMISE[round(float(ledger.per_node("promised_mu").max()), 6)]


def account_with_a_default(ledger: LedgerTables, known: Any = PLAN) -> Any:  # noqa: ARG001
    return (power_controlled.releases(known),)


class Asking:
    def __call__(self, ledger: LedgerTables) -> Any:  # noqa: ARG002
        return (power_controlled.releases(PLAN),)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (broken(lambda algorithm: changed(algorithm, update=talking)), "on the side"),
        (broken(forgetful), "no noise covers yet"),
        (broken(restless()), "asked again"),
        (broken(half_promised), "other ratios"),
        (broken(remembering, account_that_asks_the_plan), "other ratios"),
        (broken(remembering_promises, account_from_memory), "says otherwise of what was sent"),
        (broken(lambda algorithm: algorithm, closed_over(PLAN)), "more to ask than the ledger"),
        (broken(lambda algorithm: algorithm, account_with_a_default), "more to ask than the ledger"),
        (broken(lambda algorithm: algorithm, partial(power_controlled.account)), "more to ask than the ledger"),
        (broken(lambda algorithm: algorithm, Asking()), "more to ask than the ledger"),
        (broken(lambda algorithm: algorithm, "no account"), "has no account"),
        (broken(lambda algorithm: changed(algorithm, send=lambda *_: jnp.zeros(7))), "carries"),
        (broken(lambda algorithm: algorithm._replace(releases=algorithm.releases * 2)), "strongest first"),
        (broken(lambda algorithm: algorithm._replace(rounds=algorithm.rounds * 2)), "are called"),
    ],
)
def test_what_breaks_the_protocol_is_caught(method: Method, words: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        check_algorithm(method)
    assert raised.value.hint


def test_a_plain_factory_is_a_method_without_promises() -> None:
    def quiet(plan: mc.Plan) -> Algorithm:
        return mc.noiseless(plan)

    check_algorithm(quiet)
