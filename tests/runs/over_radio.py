"""Small runs over a radio, on an asymmetric network whose gains have real path loss."""

from functools import cache
from typing import Any

import numpy as np

import murmurcast as mc
from tests.conftest import asymmetric_network

NODES, DIM, EPOCHS = 5, 3, 12
POWER_DBM = (20.0, 10.0, 17.0, 20.0, 13.0)


def radio(**settings: Any) -> mc.Radio:
    return mc.Radio(**{"power_dbm": POWER_DBM, "fading": "iid", **settings})


@cache
def problem() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, dim=DIM, seed=1, ball=2.0)


def setup(carrying: mc.Radio | None, rounds: int = 1, learnt: mc.Quadratic | None = None) -> mc.Plan:
    network = asymmetric_network(7, nodes=NODES)
    if carrying is not None:
        network = mc.Network(gains=network.gains.toarray() * 1e-4, power=carrying.power_w)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.1, noise_timing="aligned", rounds=rounds)
    return mc.plan(network, learnt or problem(), mc.Budget(epsilon=8.0), schedule, radio=carrying)


@cache
def plain() -> mc.Result:
    """The same without a radio."""
    return mc.run(mc.power_controlled(setup(None)), problem(), options=mc.RunOptions(name="plain"))


@cache
def own_slot() -> mc.Result:
    """Every sender heard alone; two seeds."""
    options = mc.RunOptions(name="own-slot", evaluate_every=5)
    return mc.run(mc.power_controlled(setup(radio())), problem(), seeds=(3, 8), options=options)


COMPUTING = {"access": "aligned", "duplex": "full", "compute_seconds": 0.5, "circuit_watts": 0.2}


@cache
def aligned() -> mc.Result:
    """The paper's ideal with two rounds an epoch, and nodes that take time and energy for computing."""
    algorithm = mc.noiseless(setup(radio(**COMPUTING, joules_per_gradient=1e-3), rounds=2))
    return mc.run(algorithm, problem(), options=mc.RunOptions(name="aligned"))


@cache
def renewed() -> mc.Result:
    """Still gains, and a common reference that is renewed every five epochs."""
    carrying = radio(fading="none", recentre_every=5)
    options = mc.RunOptions(name="renewed", evaluate_every=4)
    return mc.run(mc.power_controlled(setup(carrying)), problem(), options=options)


def joules_of_epoch(sendings: int = 1) -> np.ndarray[Any, Any]:
    """[nodes] by hand: power times symbols over bandwidth, (m/2 rounded up + 64 pilots) of them a sending."""
    return np.asarray(10 ** (np.array(POWER_DBM) / 10) / 1000 * sendings * (2 + 64) / 1e6)
