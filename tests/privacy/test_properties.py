"""What must never cost more: more noise, fewer observers, fewer epochs, a smaller clip. On random networks.

Tier 3 is the exact likelihood of a linear Gaussian system along fixed directions. More noise anywhere is what the
observers heard with something independent added, fewer observers or epochs are a part of what was heard, a smaller clip
is a smaller shift: none of them can tell more. Of tier 2, where v is a guess, not all of it holds; see
test_amplification.
"""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurcast._check import FloatArray
from murmurcast.privacy import certificate, linear
from murmurcast.privacy.amplification import spread_and_clean
from murmurcast.privacy.coalitions import collusion
from tests.privacy.test_linear import setting

SEEDS = st.integers(0, 2**31 - 1)
SLACK = 1e-9


class Case(NamedTuple):
    """A random network and its noise, with two or more observers."""

    weights: FloatArray
    noise: FloatArray
    push: FloatArray
    observers: tuple[int, ...]

    def mu(self) -> dict[str, FloatArray]:
        """Every form of tier 3, [nodes] each; the worst sequence from both sides."""
        arguments = (self.weights, self.observers, self.noise, self.push)
        lower, upper = linear.worst_direction(*arguments)
        result = {"common": linear.common_direction, "quick": linear.steady_or_turning}
        return {name: form(*arguments) for name, form in result.items()} | {"lower": lower, "upper": upper}


def case(seed: int, epochs: int) -> Case:
    weights, noise, push, _ = setting(seed, epochs)
    rng = np.random.default_rng([seed, 7])
    size = int(rng.integers(1, len(weights)))
    observers = tuple(sorted(rng.choice(len(weights), size, replace=False).tolist()))
    return Case(weights, noise * rng.uniform(0.5, 2.0, noise.shape), push, observers)


def require_no_more(less: Case, than: Case) -> None:
    """No node is better known from `less`; only nodes that both hide are compared."""
    result, before = less.mu(), than.mu()
    hidden = linear.hidden_from(than.weights, than.observers)
    hidden = np.intersect1d(hidden, linear.hidden_from(less.weights, less.observers))
    for name in ("common", "quick"):
        assert (result[name][hidden] <= before[name][hidden] * (1 + SLACK) + 1e-12).all(), name
    # The worst sequence lies between its bounds: what was found for less is no more than what bounds the other.
    assert (result["lower"][hidden] <= before["upper"][hidden] * (1 + SLACK) + 1e-12).all()


@given(seed=SEEDS, epochs=st.integers(2, 7), factor=st.floats(1.0, 100.0), data=st.data())
@settings(max_examples=60)
def test_more_noise_at_any_one_node_and_epoch(seed: int, epochs: int, factor: float, data: st.DataObject) -> None:
    built = case(seed, epochs)
    node = data.draw(st.integers(0, len(built.weights) - 1))
    louder = built.noise.copy()
    louder[data.draw(st.integers(0, epochs - 1)) :, node] *= factor
    require_no_more(built._replace(noise=louder), built)


@given(seed=SEEDS, epochs=st.integers(2, 7), data=st.data())
@settings(max_examples=60)
def test_fewer_observers(seed: int, epochs: int, data: st.DataObject) -> None:
    """Those who leave the coalition keep their noise to themselves, too."""
    built = case(seed, epochs)
    fewer = data.draw(st.sets(st.sampled_from(built.observers), min_size=1))
    require_no_more(built._replace(observers=tuple(sorted(fewer))), built)


@given(seed=SEEDS, epochs=st.integers(3, 8), data=st.data())
@settings(max_examples=60)
def test_fewer_epochs(seed: int, epochs: int, data: st.DataObject) -> None:
    built = case(seed, epochs)
    kept = data.draw(st.integers(2, epochs - 1))
    require_no_more(built._replace(noise=built.noise[:kept], push=built.push[:kept]), built)


@given(seed=SEEDS, epochs=st.integers(2, 7), factor=st.floats(0.01, 1.0))
@settings(max_examples=40)
def test_a_smaller_clip(seed: int, epochs: int, factor: float) -> None:
    built = case(seed, epochs)
    smaller, before = built._replace(push=factor * built.push).mu(), built.mu()
    for name, result in smaller.items():
        np.testing.assert_allclose(result, factor * before[name], rtol=1e-6, atol=1e-12)


@given(seed=SEEDS, epochs=st.integers(2, 7))
@settings(max_examples=40)
def test_the_order_of_the_forms_and_tier_one(seed: int, epochs: int) -> None:
    built = case(seed, epochs)
    result = built.mu()
    tier_one = np.sqrt(np.sum((built.push[:-1] / built.noise[1:]) ** 2, axis=0))
    for name, larger in (("common", "quick"), ("quick", "upper"), ("lower", "upper")):
        assert (result[name] <= result[larger] * (1 + 1e-8) + 1e-12).all(), name
    assert (result["upper"] <= tier_one * (1 + 1e-8) + 1e-12).all()


@given(seed=SEEDS, epochs=st.integers(2, 5))
@settings(max_examples=25)
def test_pairs_learn_at_least_what_their_members_do(seed: int, epochs: int) -> None:
    built = case(seed, epochs)
    result = collusion(built.weights, built.noise, built.push)
    assert result.is_complete
    assert (result.pair_mu >= result.worst_single_mu * (1 - SLACK)).all()
    for target, pair in enumerate(result.pair.tolist()):
        assert target not in pair


@given(seed=SEEDS, factor=st.floats(1.0, 100.0), epochs=st.integers(2, 40), data=st.data())
@settings(max_examples=80)
def test_tier_one(seed: int, factor: float, epochs: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 6))
    steps, schedule = rng.uniform(0.1, 2.0, (2, epochs))
    z, alpha = rng.uniform(0.05, 1.0, (epochs, nodes)), rng.uniform(0.05, 0.95, nodes)
    noise, moved = rng.uniform(0.5, 20.0, (2, nodes))
    node = data.draw(st.integers(0, nodes - 1))
    others = np.arange(nodes) != node

    def mu(
        schedule: FloatArray = schedule, alpha: FloatArray = alpha, noise: FloatArray = noise, last: Any = None
    ) -> FloatArray:
        return certificate.mu(certificate.exposure(steps, schedule, z, last), alpha, noise, moved)

    before = mu()
    louder = np.where(others, noise, noise * factor)
    result = mu(noise=louder)
    assert result[node] <= before[node] * (1 + SLACK)
    np.testing.assert_array_equal(result[others], before[others])  # it rests on a node's own noise alone
    assert (mu(alpha=alpha / factor) <= before * (1 + SLACK)).all()
    np.testing.assert_allclose(mu(schedule=schedule * factor), before / factor, rtol=1e-12)
    last = rng.integers(1, epochs + 1, nodes)
    assert (mu(last=last) <= before * (1 + SLACK)).all()
    np.testing.assert_allclose(mu(last=np.full(nodes, epochs)), before, rtol=1e-12)
    exposed = certificate.exposure(steps, schedule, z)
    smaller = certificate.mu(exposed, alpha, noise, moved / factor)
    np.testing.assert_allclose(smaller, before / factor, rtol=1e-12)


@given(seed=SEEDS, epochs=st.integers(3, 8), factor=st.floats(1.0, 50.0), data=st.data())
@settings(max_examples=40)
def test_what_holds_of_tier_two(seed: int, epochs: int, factor: float, data: st.DataObject) -> None:
    """More noise everywhere alike, a smaller clip, fewer epochs; fewer observers and noise at one node may raise it."""
    built = case(seed, epochs)
    rng = np.random.default_rng([seed, 8])
    clip, smooth = float(rng.uniform(0.2, 2.0)), rng.uniform(0.0, 0.5, len(built.weights))
    moved = np.full(len(built.weights), 2 * clip)

    def mu(noise: FloatArray, stride: FloatArray, scale: float = 1.0) -> FloatArray:
        return spread_and_clean(built.weights, built.observers, noise, stride, moved * scale, clip * scale, smooth)

    before = mu(built.noise, built.push)
    np.testing.assert_allclose(mu(factor * built.noise, built.push), before / factor, rtol=1e-9, atol=1e-12)
    assert (mu(built.noise, built.push, 1 / factor) <= before * (1 + SLACK) + 1e-12).all()
    kept = data.draw(st.integers(2, epochs - 1))
    assert (mu(built.noise[:kept], built.push[:kept]) <= before * (1 + SLACK) + 1e-12).all()
