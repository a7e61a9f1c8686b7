"""What `plan` must do with any file at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from murmurcast.experiments import load as experiment_files
from tests.fuzz.corruptions import Bomb, Done, call, replaced


def require_sound(done: Done, path: Path, overrides: dict[str, str] | None = None) -> None:
    """A plan that was accepted is one: weights that sum to 1, shares within (0, 1), no number that is none."""
    if done.code:
        assert done.code == 2
        assert done.out == ""
        return
    json.loads(done.out)
    built = experiment_files.load(path, overrides).build_plan(path.parent)
    assert ((built.alpha > 0) & (built.alpha < 1)).all()
    weights = built.mixing.weights
    assert (weights.data >= 0).all()
    np.testing.assert_allclose(np.asarray(weights.sum(axis=1)).ravel(), 1.0, rtol=1e-9)
    numbers: list[Any] = [
        built.certificate.mu,
        built.certificate.epsilon,
        built.epsilon_per_epoch.data,
        built.perron,
        built.theta,
    ]
    numbers += [built.noise_to_step, built.objective_value, built.paper_claim.epsilon, built.sensitivity]
    for values in numbers:
        assert not np.isnan(values).any()
        assert (np.asarray(values) >= 0).all()
    if built.budget.target == "certificate":
        assert (built.certificate.epsilon <= built.budget.epsilon * (1 + 1e-6)).all()
    for line in built.warnings:
        assert "nan" not in line.split()


def require_plan_or_refusal(folder: Path, name: str, content: bytes) -> None:
    """`plan` of NAME.toml, while the file it reads holds something else."""
    with replaced(folder / name, content):
        require_sound(call("plan", f"{name}.toml", "--json", folder=folder), folder / f"{name}.toml")
    assert not Bomb.went_off
