"""The skeletons in docs/add-a-method.md keep to the protocol as they stand, and certify what they promise."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.method import Method
from murmurcast.testing import check_algorithm

PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"


@pytest.fixture(scope="module", params=["gossip", "tracking"])
def method(request: pytest.FixtureRequest) -> Method:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if f'name="{request.param}"' in block)
    names: dict[str, Any] = {"__name__": "skeleton"}
    exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - a page of our own
    result = names["METHOD"]
    assert isinstance(result, Method)
    return result


def test_the_skeleton_keeps_to_the_protocol(method: Method) -> None:
    check_algorithm(method)


def test_an_account_that_halves_the_cost_would_be_noticed(method: Method) -> None:
    honest: Any = method.account

    def generous(ledger: Any) -> Any:
        return tuple(part._replace(ratio=part.ratio / 2) for part in honest(ledger))

    network = mc.topologies.ring(5, seed=2)
    problem = mc.Quadratic.random(network.nodes, 4, clip=1.0)
    schedule = mc.Schedule(epochs=10, step=0.2)
    setup = mc.Setup(network=network, problem=problem, budget=mc.Budget(epsilon=8.0), schedule=schedule)
    run = mc.run(method.make(setup), problem)
    result = mc.certify(run, methods=[method])
    assert result.verdict == "kept"
    np.testing.assert_allclose(result.epsilon, 8.0, rtol=1e-6)
    assert mc.certify(run, methods=[method._replace(account=generous)]).verdict == "broken"
