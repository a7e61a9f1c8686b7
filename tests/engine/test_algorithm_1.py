"""The engine does what the paper's equations say, on an asymmetric network."""

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.tables import same_always
from murmurcast.channels.air import Air
from murmurcast.engine import noise
from murmurcast.engine.noise import Purpose
from murmurcast.planning.plan import Plan
from tests.conftest import asymmetric_network, changed
from tests.engine.transcription import algorithm_1, showing_own

EPOCHS, NODES, DIM = 50, 6, 5
CLIP, RADIUS = 2.0, 0.6  # both bind, as the test checks


def quadratic() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, seed=3, clip=CLIP, ball=RADIUS)


def planned(problem: mc.Quadratic, timing: str = "paper") -> Plan:
    network = asymmetric_network(5, NODES)
    budget = mc.Budget(epsilon=200.0, unit="node")
    schedule = mc.Schedule(epochs=EPOCHS, step=0.1, noise_timing=timing)  # type: ignore[arg-type]
    alpha = np.linspace(0.35, 0.8, NODES)
    return mc.plan(network, problem, budget, schedule, power=mc.PowerRule(alpha=alpha))


def draws(seed: int, dtype: str) -> FloatArray:
    """[epochs, nodes, dim] the engine's own draws."""
    with jax.enable_x64(dtype == "float64"):
        root = noise.roots((seed,))[0]

        @jax.jit
        def one(epoch: int, node: int) -> jax.Array:
            return noise.normal(noise.stream(noise.at_epoch(root, Purpose.SIGNAL, epoch)[None], DIM), node, dtype)

        drawn = [[one(epoch, node) for node in range(NODES)] for epoch in range(1, EPOCHS + 1)]
        return np.asarray(drawn, np.float64)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("gradient_at", ["mixed", "own"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_follows_the_transcription(dtype: str, tolerance: float, gradient_at: str) -> None:
    problem = quadratic()
    plan = planned(problem, "aligned" if gradient_at == "own" else "paper")
    clips: list[bool] = []
    projections: list[bool] = []

    def gradient(node: int, point: FloatArray) -> FloatArray:
        slope = problem.curvature[node] @ (point - problem.centre[node])
        clips.append(bool(np.linalg.norm(slope) > CLIP))
        return np.asarray(slope * min(1.0, CLIP / float(np.linalg.norm(slope))))

    def project(point: FloatArray) -> FloatArray:
        projections.append(bool(np.linalg.norm(point) > RADIUS))
        return np.asarray(point * min(1.0, RADIUS / float(np.linalg.norm(point))))

    x, m = algorithm_1(plan, draws(7, dtype), gradient, project, gradient_at)
    algorithm = mc.power_controlled(plan, gradient_at=gradient_at)  # type: ignore[arg-type]
    own = mc.run(showing_own(algorithm), problem, seeds=[7], precision=dtype).published[0]  # type: ignore[arg-type]
    result = mc.run(algorithm, problem, seeds=[7], precision=dtype)  # type: ignore[arg-type]
    assert np.abs(own - x).max() < tolerance
    assert np.abs(result.published[0] - m).max() < tolerance
    for happened in (clips, projections):
        assert 0 < np.mean(happened) < 1


def test_matrix_form_gives_the_same_run() -> None:
    """What the antennas add up, compensated, is A times what is said."""
    problem = quadratic()
    plan = planned(problem)
    signal = mc.power_controlled(plan)
    weights = plan.mixing.weights.toarray()
    sending, receiving = signal.rounds[0].sending, signal.rounds[0].receiving
    matrix = changed(
        signal,
        channel=Air(_off_diagonal(weights)),
        sending=sending._replace(amplitude=np.ones_like(sending.amplitude), noise=sending.noise / sending.amplitude),
        receiving=receiving._replace(heard=np.ones_like(receiving.heard), kept=same_always(weights.diagonal())),
    )
    one, other = (mc.run(form, problem, seeds=[1, 2], precision="float64") for form in (signal, matrix))
    np.testing.assert_allclose(one.published, other.published, rtol=0, atol=1e-12)
    assert not np.allclose(one.published[0], one.published[1])


def _off_diagonal(weights: FloatArray) -> csr_array:
    """Sender first, as a channel wants it."""
    return csr_array((weights - np.diag(weights.diagonal())).T)
