"""A network of your own: gains you measured, a plan for it, and who learns what.

Run it:  python examples/own_network.py
"""

import numpy as np

import murmurcast as mc

# gains[i, j] is the link from i to j: the row sends, the column receives; 0 is no link.
gains = np.array(
    [
        [0.0, 0.9, 0.0, 0.4],
        [0.5, 0.0, 0.7, 0.0],
        [0.0, 0.3, 0.0, 0.8],
        [1.1, 0.0, 0.6, 0.0],
    ]
)
network = mc.Network(gains=gains, power=[1.0, 2.0, 0.5, 1.5])
problem = mc.ClippedGradients(clip=1.0, examples_per_node=500, dim=650)
plan = mc.plan(network, problem, mc.Budget(epsilon=1.0, unit="record"), mc.Schedule(epochs=50, step=0.1))

print("share of power for the model:", np.round(plan.alpha, 3))
print("certified epsilon of every node:", np.round(plan.certificate.epsilon, 3))
worst = plan.linear_common((1,))
print("what node 1 alone would learn of the others, as mu (a diagnostic):", np.round(worst, 3))
