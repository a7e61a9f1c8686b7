"""`murmurcast plan` says whether exact diffusion would settle on the weights of the plan."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import murmurcast as mc
from murmurcast.cli import _plan_json
from murmurcast.network.stability import exact_diffusion_radius
from murmurcast.planning.plan import Plan
from murmurcast.reports import plan_text
from tests import commands
from tests.conftest import asymmetric_network

FILE = '[network]\ntopology = "ring"\nnodes = 5\n[privacy]\nepsilon = 1.0\n'


def planned(network: mc.Network, **options: object) -> Plan:
    given: dict[str, object] = {"z": "perron"} | options
    return mc.plan(network, mc.ClippedGradients(), mc.Budget(epsilon=1.0), mc.Schedule(epochs=5), **given)  # type: ignore[arg-type]


def test_text_and_json_say_the_same_radius(tmp_path: Path) -> None:
    (tmp_path / "ring.toml").write_text(FILE)
    done = commands.run("plan", "ring.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    weights = csr_array(np.array(values["weights"]))
    assert values["exact_diffusion_radius"] == pytest.approx(exact_diffusion_radius(weights))
    shown = commands.run("plan", "ring.toml", cwd=tmp_path).stdout
    result = re.search(r"exact diffusion stable \(([\d.]+)\)", shown)
    assert result is not None
    assert float(result[1]) == pytest.approx(values["exact_diffusion_radius"], rel=1e-3)


def test_weights_on_which_it_does_not_settle_are_called_unstable() -> None:
    """Strong one way around a ring, weak the other: eigenvalues far from the real line."""
    nodes = 8
    gains = np.roll(np.eye(nodes), 1, axis=1) + 0.01 * np.roll(np.eye(nodes), -1, axis=1)
    plan = planned(mc.Network(gains=gains))
    assert plan.exact_diffusion_radius > 1
    assert dict(plan_text.glance(plan, ""))["Mixing"].endswith(
        f"exact diffusion UNSTABLE ({plan.exact_diffusion_radius:.4g})"
    )
    assert _plan_json.as_dict(plan, {}, None, "", ())["exact_diffusion_radius"] == plan.exact_diffusion_radius


def test_networks_that_are_too_large_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(asymmetric_network(2, 5))
    monkeypatch.setattr(_plan_json, "DENSE_UP_TO", 4)
    monkeypatch.setattr(plan_text, "_RATE_UP_TO", 4)
    assert _plan_json.as_dict(plan, {}, None, "", ())["exact_diffusion_radius"] is None
    assert "Mixing" not in dict(plan_text.glance(plan, ""))
    assert "exact_diffusion_radius" not in vars(plan)  # not even computed
