"""What a compiled run over a radio holds: as much for two thousand epochs as for fifty."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm
from murmurcast.engine import loop, sharding
from tests.conftest import asymmetric_network

NODES, SHORT, LONG = 40, 50, 2000
PER_EPOCH = 16  # numbers of all nodes together: steps, schedules, the public factor, pilots
NUMBER = 4  # bytes


class Held(NamedTuple):
    """Bytes of a compiled program.

    Attributes:
        given: Arguments, and constants that came with the code.
        working: What it needs besides while it runs.
    """

    given: int
    working: int


def algorithm_over(fading: Any, epochs: int) -> tuple[Algorithm, mc.Quadratic]:
    radio = mc.Radio(fading=fading)
    plain = asymmetric_network(4, NODES)
    network = mc.Network(gains=plain.gains * 1e-4, power=np.broadcast_to(radio.power_w, NODES))
    problem = mc.Quadratic.random(NODES, 6, clip=1.0, ball=5.0)
    schedule = mc.Schedule(epochs=epochs, step=0.01, noise_timing="aligned")
    plan = mc.plan(network, problem, mc.Budget(epsilon=8.0), schedule, radio=radio)
    return mc.power_controlled(plan, publish="average"), problem


def kept(fading: Any, epochs: int) -> Held:
    algorithm, problem = algorithm_over(fading, epochs)
    program: Any = loop.program(algorithm, problem, sharding.layout(NODES, 1, 2**30), (0,), np.float32)
    result = program.advance.memory_analysis()
    arguments = sum(leaf.nbytes for leaf in jax.tree.leaves(program.given))
    return Held(
        arguments + result.generated_code_size_in_bytes, result.temp_size_in_bytes + result.output_size_in_bytes
    )


@pytest.mark.slow
@pytest.mark.parametrize("fading", ["iid", "jakes"])
def test_memory_does_not_grow_with_epochs(fading: Any) -> None:
    """A table of all epochs and links, or of all epochs and nodes, would be seen at once."""
    short, long = kept(fading, SHORT), kept(fading, LONG)
    allowed = (LONG - SHORT) * NUMBER * PER_EPOCH
    assert long.given - short.given <= allowed
    assert long.working - short.working <= allowed
    links = algorithm_over(fading, SHORT)[0].setup.network.links
    assert links > NODES > 2 * PER_EPOCH  # so that such a table is larger than what is allowed
