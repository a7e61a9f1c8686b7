"""PyTorch modules, where it is installed: gradients are PyTorch's own, and what cannot be converted is named."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.problems.per_example import Example
from tests.problems.one_by_one import clipped, clipped_mean, gradients, node_data

torch = pytest.importorskip("torch")
pytest.importorskip("torchax")
nn = torch.nn
DATA = mc.datasets.digits().partition("quantity", 12, seed=1)
pytestmark = pytest.mark.filterwarnings("default")  # those of PyTorch and torchax are their own


class Reshaped(nn.Module):  # type: ignore[misc, name-defined]
    """Applies a function; a layer with a name of its own."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, rows: Any) -> Any:
        return self.function(rows)


def network(*layers: Any) -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 8), *layers, nn.Linear(8, 10))


def convolution() -> Any:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 4, 3, stride=2),
        nn.GroupNorm(2, 4),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(36, 10),
    )


def problem_of(module: Any) -> mc.Model:
    return mc.Model(data=DATA, module=module, loss="cross-entropy", clip=0.3)


@pytest.mark.parametrize("make", [lambda: network(nn.Tanh()), convolution], ids=["mlp", "cnn"])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)])
def test_gradients_are_those_of_single_examples(make: Any, precision: str, tolerance: float) -> None:
    with jax.enable_x64(precision == "float64"):
        problem = problem_of(make())
        point, mine = problem.start(jax.random.key(0)).astype(precision), node_data(problem, 3, precision)
        result = jax.jit(problem.gradient_at_public)(point, mine, jax.random.key(0))
        expected = clipped_mean(problem, point, gradients(problem, point, mine), public=True)
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_gradients_are_those_of_torch() -> None:
    module = convolution()
    problem = problem_of(module)
    point, mine = problem.start(jax.random.key(0)), node_data(problem, 3)
    total = np.zeros(problem.dim)
    for row in range(int(mine.size)):
        module.zero_grad()
        outputs = module(torch.tensor(np.asarray(mine.features[row : row + 1])))
        nn.functional.cross_entropy(outputs, torch.tensor([int(mine.targets[row])])).backward()
        grown = dict(module.named_parameters())
        total += clipped(problem, np.concatenate([grown[name].grad.numpy().ravel() for name in sorted(grown)]))
    result = problem.gradient_at_public(point, mine, jax.random.key(0))
    np.testing.assert_allclose(result, total / int(mine.size), rtol=1e-4, atol=1e-6)


def test_frozen_parameters_are_constants() -> None:
    """They are neither counted nor clipped nor moved, and the rest learns with them as they are."""
    module, free = network(nn.Tanh()), problem_of(network(nn.Tanh()))
    module[0].weight.requires_grad_(False)
    module[2].bias.requires_grad_(False)
    problem = problem_of(module)
    point, mine = problem.start(jax.random.key(0)), node_data(problem, 3)
    assert problem.dim == 8 + 8 * 10
    assert set(problem.parameters(point)) == {"0.bias", "2.weight"}
    everything = free.start(jax.random.key(0))
    first = Example(mine.features[0], mine.targets[0])
    whole = jax.grad(lambda flat: free._loss(free.parameters(flat), first))(everything)
    alone, expected = problem.parameters(jnp.asarray(gradients(problem, point, mine)[0])), free.parameters(whole)
    for name in ("0.bias", "2.weight"):
        np.testing.assert_allclose(alone[name], expected[name], rtol=1e-5, atol=1e-7)


def test_frozen_convolutions_run_in_the_precision_of_the_run() -> None:
    images = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 10))
    images[1].weight.requires_grad_(False)
    problem = problem_of(images)
    with jax.enable_x64(True):
        point = jnp.asarray(problem.start(jax.random.key(0)), jnp.float64)
        features, target = jnp.asarray(problem.data.dataset.features[0], jnp.float64), jnp.int32(3)
        slopes = problem._gradient(problem.parameters(point), Example(features, target))
    assert {leaf.dtype for leaf in jax.tree.leaves(slopes)} == {jnp.dtype("float64")}


def test_it_begins_at_its_weights_and_gives_them_back() -> None:
    module = network(nn.Tanh())
    problem = problem_of(module)
    tree = problem.parameters(problem.start(jax.random.key(9)))
    module.load_state_dict({name: torch.tensor(np.asarray(value)) for name, value in tree.items()})
    np.testing.assert_array_equal(tree["2.bias"], module[2].bias.detach().numpy())
    assert problem._tree.layers == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("layer", "words", "hint"),
    [
        (nn.BatchNorm1d(8), r"1 \(BatchNorm1d\) is a BatchNorm1d", "group norm"),
        (nn.Dropout(0.5), r"1 \(Dropout\) drops units", "inference mode"),
        (Reshaped(lambda rows: rows - rows.mean(0)), "mixes examples", "group norm"),
        (Reshaped(lambda rows: rows if rows.sum() > 0 else -rows), r"1 \(Reshaped\) cannot be converted", "JAX"),
    ],
    ids=["batch norm", "dropout", "own mixing", "a branch on data"],
)
def test_what_has_no_gradient_of_its_own_is_refused_by_name(layer: Any, words: str, hint: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        problem_of(network(layer))
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (lambda: network(nn.Tanh()).bfloat16(), "0.weight cannot be read as an array: TypeError"),
        (lambda: nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 10)), "0.weight cannot be read as an array"),
    ],
    ids=["bfloat16", "lazy"],
)
def test_weights_that_are_no_arrays_are_refused_by_name(module: Any, words: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        problem_of(module())
    assert "float32" in raised.value.hint


def test_a_module_that_cannot_be_applied_to_rows_is_refused() -> None:
    with pytest.raises(mc.Error, match="cannot be converted"):
        problem_of(nn.Linear(7, 10))


def test_dropout_at_rest_is_no_dropout() -> None:
    module = network(nn.Dropout(0.5)).eval()
    assert problem_of(module).dim == 64 * 8 + 8 + 8 * 10 + 10


def test_a_file_seeds_the_weights(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch_nets_of_mine.py").write_text(
        "from torch import nn\ndef net(features, outputs, *, hidden=3):\n"
        "    return nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, outputs))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from murmurcast.problems.modules import registry

    before = torch.get_rng_state()
    one, same, other = (
        registry.build("torch_nets_of_mine:net", DATA.dataset, {"hidden": 4}, seed)[0].weight.detach().numpy()
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    assert torch.equal(before, torch.get_rng_state())
