"""A model of PyTorch: a small convolutional network on the digits, run by JAX, every example clipped, privately.

Run it:  pip install "murmurcast[torch]" && python examples/torch_model.py
"""

import numpy as np
import torch
from torch import nn

import murmurcast as mc

torch.manual_seed(0)  # nodes begin at these weights, which are public
module = nn.Sequential(
    nn.Unflatten(1, (1, 8, 8)),
    nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1),
    nn.GroupNorm(2, 8),  # batch norm would mix examples, and is refused
    nn.Tanh(),
    nn.Flatten(),
    nn.Linear(128, 10),
)

network = mc.topologies.complete(4, seed=0)
data = mc.datasets.digits().partition("iid", nodes=network.nodes)
problem = mc.Model(data=data, module=module, loss="cross-entropy", clip=1.0)
schedule = mc.Schedule(epochs=40, step=0.5, decay="constant", noise_timing="aligned")
plan = mc.plan(network, problem, mc.Budget(epsilon=8.0, unit="record"), schedule, z="perron")
result = mc.run(mc.power_controlled(plan, publish="average"), problem)

print(f"{problem.dim} parameters, accuracy {result.final('published_accuracy').mean():.3f}")
print("certify says:", mc.certify(result).verdict, f"epsilon {plan.certificate.epsilon.max():.3g}")

# A published model back in PyTorch.
tree = problem.parameters(result.published[0, 0])
module.load_state_dict({name: torch.tensor(np.asarray(value)) for name, value in tree.items()})
print("label of the first test image:", int(module(torch.tensor(data.dataset.test_features[:1])).argmax()))
