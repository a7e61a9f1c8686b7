"""Certificates against an exact joint calculation of everything on the air: they are tight, not only sound."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.locally_balanced import cost_if_counted
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import Releases
from tests.algorithms.networks import one_way, two_way
from tests.conftest import asymmetric_network
from tests.privacy.joint import Joint, exact_mu, joint_of

EPOCHS, CLIP, EXAMPLES, SMOOTHNESS = 6, 0.8, (30, 20, 25, 40, 35), 0.7


def by_sender(network: mc.Network, *, complete: bool = False) -> mc.Network:
    """The network with gains that depend on the sender alone."""
    gain = np.random.default_rng(5).uniform(0.4, 1.2, (network.nodes, 1))
    links = 1 - np.eye(network.nodes) if complete else network.gains.toarray() > 0
    return mc.Network(gains=gain * links, power=network.power)


NETWORKS = {"ring with a chord": two_way(), "random": asymmetric_network(12, 5), "one-way": one_way()}
NETWORKS |= {f"{name}, by sender": by_sender(NETWORKS[name]) for name in ("ring with a chord", "random")}
NETWORKS |= {f"{name}, complete": by_sender(NETWORKS[name], complete=True) for name in ("ring with a chord", "random")}
TWO_WAY = ("ring with a chord", "random")


def setup_of(name: str, *, unit: Any = "record", timing: Any = "aligned", planned: bool = False) -> mc.Setup:
    problem = mc.ClippedGradients(clip=CLIP, examples_per_node=EXAMPLES, dim=3)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.4, noise_timing=timing)
    network, budget = NETWORKS[name], mc.Budget(epsilon=2.0, unit=unit)
    if planned:
        return mc.plan(network, problem, budget, schedule, power=mc.PowerRule(alpha=(0.3, 0.5, 0.6, 0.4, 0.7)))
    return mc.Setup(network=network, problem=problem, budget=budget, schedule=schedule)


def built(name: str, network: str, options: dict[str, Any], **how: Any) -> Algorithm:
    method = registry.find(name)
    return method.make(setup_of(network, planned=method.needs_plan, **how), **options)


def everybody(joint: Joint, target: int, by: FloatArray) -> float:
    nodes = joint.moved.shape[2]
    return exact_mu(joint, target, by, set(range(nodes)) - {target})


def evenly(algorithm: Algorithm, node: int) -> FloatArray:
    """Every gradient moves by S."""
    return np.full(algorithm.epochs + 1, algorithm.setup.sensitivity[node])


def require_tight(joint: Joint, algorithm: Algorithm, releases: Releases) -> None:
    result = mu_of(releases)
    exact = [everybody(joint, node, evenly(algorithm, node)) for node in range(len(result))]
    np.testing.assert_allclose(result, exact, rtol=1e-9)
    assert (result > 0.1).all()


F1: dict[str, tuple[str, dict[str, Any]]] = {
    "power-controlled": ("power-controlled", {}),
    "dp-dsgd": ("dp-dsgd", {}),
    "dp-dsgd, each heard apart": ("dp-dsgd", {"weights": "metropolis", "access": "orthogonal"}),
    "dp-dsgd in slots": ("dp-dsgd", {"weights": "metropolis", "access": "slots"}),
    "subgradient-push-gaussian": ("subgradient-push-gaussian", {}),
    "muffliato of one round": ("muffliato", {"gossip": 1}),
    "muffliato of three rounds": ("muffliato", {"gossip": 3, "weights": "metropolis", "access": "orthogonal"}),
    "mafalda without correlation": ("mafalda", {"bandwidth": 1}),
}
F2: dict[str, tuple[str, dict[str, Any]]] = {
    "private-frost": ("private-frost", {"step_factor": 0.2}),
    "private-push-pull": ("private-push-pull", {"step_factor": 0.2}),
    "private-ab": ("private-push-pull", {"form": "ab", "step_factor": (0.2, 0.1, 0.3, 0.25, 0.15)}),
    "private-gradient-tracking": ("private-gradient-tracking", {"step_factor": 0.2}),
    "private-exact-diffusion": ("private-exact-diffusion", {}),
    "private-exact-diffusion on rows": ("private-exact-diffusion", {"weights": "row"}),
    "power-controlled-diffusion": ("power-controlled-diffusion", {"step_factor": 0.3}),
}
ONE_WAY = ("subgradient-push-gaussian", "private-frost", "private-push-pull", "private-ab")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("network", "curvature"), list(zip(TWO_WAY, (0.0, 0.6), strict=True)))
@pytest.mark.parametrize("case", [*F1, *F2])
def test_noise_in_models_and_in_gradients(case: str, network: str, curvature: float) -> None:
    """F1 and F2; with a curvature too, because all points where gradients are taken are public."""
    name, options = (F1 | F2)[case]
    algorithm = built(name, network, options)
    (releases,) = algorithm.releases
    require_tight(joint_of(algorithm, curvature=curvature), algorithm, releases)


@pytest.mark.parametrize("case", ONE_WAY)
def test_links_that_go_one_way(case: str) -> None:
    name, options = (F1 | F2)[case]
    algorithm = built(name, "one-way", options)
    (releases,) = algorithm.releases
    require_tight(joint_of(algorithm, curvature=0.6), algorithm, releases)


@pytest.mark.parametrize("case", ["dp-dsgd", "muffliato of three rounds", "power-controlled"])
def test_a_first_message_without_noise_costs_nothing(case: str) -> None:
    name, options = F1[case]
    algorithm = built(name, "random", options, timing="quiet-start")
    (releases,) = algorithm.releases
    require_tight(joint_of(algorithm), algorithm, releases)


DECOR: dict[str, tuple[str, dict[str, Any]]] = {
    "decor on rows": ("decor", {"weights": "row"}),
    "decor": ("decor", {"weights": "sinkhorn", "against": "everybody"}),
    "decor-exact-diffusion": ("decor-exact-diffusion", {}),
    "decor-exact-diffusion on rows": ("decor-exact-diffusion", {"weights": "row"}),
}


@pytest.mark.parametrize("network", TWO_WAY)
@pytest.mark.parametrize("case", DECOR)
def test_noise_that_cancels_between_neighbours(case: str, network: str) -> None:
    """F3, against each of the three adversaries."""
    name, options = DECOR[case]
    algorithm = built(name, network, options | {"shared_to_own": 3.0})
    joint, nodes = joint_of(algorithm), range(algorithm.setup.network.nodes)
    exact = {
        "everybody": [everybody(joint, j, evenly(algorithm, j)) for j in nodes],
        "eavesdropper": [exact_mu(joint, j, evenly(algorithm, j)) for j in nodes],
        "eavesdropper and one node": [
            max(exact_mu(joint, j, evenly(algorithm, j), {curious}) for curious in nodes if curious != j) for j in nodes
        ],
    }
    assert {part.against for part in algorithm.releases} == set(exact)
    for part in algorithm.releases:
        np.testing.assert_allclose(mu_of(part), exact[part.against], rtol=1e-9, err_msg=part.against)
    assert (np.array(exact["eavesdropper"]) < 0.9 * np.array(exact["everybody"])).all()


@pytest.mark.parametrize(
    ("bandwidth", "network", "timing"),
    [
        (2, "random", "aligned"),
        (4, "ring with a chord", "aligned"),
        (4, "random", "quiet-start"),
        (9, "random", "aligned"),
    ],
)
def test_noise_that_is_correlated_in_time(bandwidth: int, network: str, timing: str) -> None:
    """F4: the worst is that all gradients move the same way."""
    algorithm = built("mafalda", network, {"bandwidth": bandwidth}, timing=timing)
    (releases,) = algorithm.releases
    require_tight(joint_of(algorithm), algorithm, releases)


MEMORY: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "mped2fl": ("mped2fl", TWO_WAY, {}),
    "mped2fl at own points": ("mped2fl", TWO_WAY, {"gradient_at": "own"}),
    "ped2fl": ("ped2fl", tuple(f"{name}, by sender" for name in TWO_WAY), {}),
    "dwfl": ("dwfl", tuple(f"{name}, complete" for name in TWO_WAY), {"rate": 0.6}),
    "dwfl with uniform averaging": ("dwfl", tuple(f"{name}, complete" for name in TWO_WAY), {}),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("case", MEMORY)
def test_a_plain_own_term_that_remembers(case: str, which: int) -> None:
    """F5, with gradients that push differences apart as fast as their smoothness allows."""
    name, networks, options = MEMORY[case]
    stated = options | {"headroom": 0.7, "publish_from": "heard", "smoothness": SMOOTHNESS}
    algorithm = built(name, networks[which], stated)
    (releases,) = algorithm.releases
    require_tight(joint_of(algorithm, curvature=-SMOOTHNESS), algorithm, releases)


@pytest.mark.parametrize("case", MEMORY)
def test_a_plain_own_term_of_gradients_that_only_the_clip_bounds(case: str) -> None:
    """F5 without a smoothness: the first gradient moves by S, all later ones by twice the clip."""
    name, networks, options = MEMORY[case]
    algorithm = built(name, networks[0], options | {"headroom": 0.7, "publish_from": "heard"})
    (releases,) = algorithm.releases
    joint, result = joint_of(algorithm), mu_of(releases)
    first = 0 if name == "dwfl" else 1  # whose gradient at the start is in its first message
    for node, mu in enumerate(result):
        by = np.where(np.arange(EPOCHS + 1) <= first, algorithm.setup.sensitivity[node], 2 * CLIP)
        if name == "dwfl" and algorithm.rounds[0].receiving.kept[0, node] == 0:
            by = evenly(algorithm, node)  # nothing is remembered
        assert mu == pytest.approx(everybody(joint, node, by), rel=1e-9)


@pytest.mark.parametrize("case", ["mped2fl", "ped2fl", "dwfl"])
def test_without_headroom_or_with_mixed_points_published_nothing_is_hidden(case: str) -> None:
    name, networks, options = MEMORY[case]
    weakest = built(name, networks[0], options | {"publish_from": "heard"})
    joint = joint_of(weakest)
    exact = np.array([everybody(joint, node, evenly(weakest, node)) for node in range(5)])
    assert np.isinf(exact).any()
    assert not weakest.releases
    mixed = built(name, networks[0], options | {"headroom": 0.7})
    joint = joint_of(mixed)
    assert np.isinf([everybody(joint, node, evenly(mixed, node)) for node in range(5)]).all()
    assert not mixed.releases


@pytest.mark.parametrize("network", TWO_WAY)
def test_balanced_perturbations_forget_nothing(network: str) -> None:
    """F6, unit node, of what is sent."""
    setup = setup_of(network, unit="node", planned=True)
    algorithm = registry.find("locally-balanced").make(setup, noise_to_step=0.7)
    assert not algorithm.releases
    joint = joint_of(algorithm, published=False)
    exact = [everybody(joint, node, evenly(algorithm, node)) for node in range(setup.network.nodes)]
    np.testing.assert_allclose(cost_if_counted(setup, 0.7), exact, rtol=1e-9)


def test_the_calculation_sees_what_is_not_hidden() -> None:
    """With the draws of the last two epochs known, the gradients of these epochs lie open."""
    algorithm = built("private-frost", "random", {"step_factor": 0.2})
    joint, late = joint_of(algorithm), 2 * algorithm.setup.network.nodes
    known = tuple(
        owner | {9} if place >= len(joint.owners) - late else owner for place, owner in enumerate(joint.owners)
    )
    by = evenly(algorithm, 0)
    assert np.isinf(exact_mu(joint._replace(owners=known), 0, by, {1, 2, 3, 4, 9}))
    by[-3:] = 0  # but for them, and for the last of all, which is never sent
    assert exact_mu(joint._replace(owners=known), 0, by, {1, 2, 3, 4, 9}) < everybody(joint, 0, evenly(algorithm, 0))
