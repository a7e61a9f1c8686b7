"""Data of your own: a .csv file with a column "label", dealt out to nodes, and a private run on it.

Run it:  python examples/own_data.py
"""

import tempfile
from pathlib import Path

import numpy as np

import murmurcast as mc

# Stands for your file: two measurements and a label for each of 600 records.
generator = np.random.default_rng(0)
labels = generator.integers(0, 3, 600)
measured = generator.normal(size=(600, 2)) * 0.3 + np.array([[0, 0], [1, 0], [0, 1]])[labels]
folder = Path(tempfile.mkdtemp())
table = np.column_stack([measured, labels])
np.savetxt(folder / "mine.csv", table, delimiter=",", header="first,second,label", comments="", fmt=("%g", "%g", "%d"))

network = mc.topologies.ring(6, seed=1)
# The labels are declared, not read from the records: a promise needs to know them beforehand.
data = mc.datasets.load(folder / "mine.csv", classes=3).partition("iid", nodes=network.nodes)
problem = mc.SoftmaxRegression(data=data, clip=1.0, ball=10.0)
plan = mc.plan(network, problem, mc.Budget(epsilon=4.0, unit="record"), mc.Schedule(epochs=60, step=0.3))
result = mc.run(mc.power_controlled(plan, publish="average"), problem, seeds=range(3))

accuracy = result.final("published_accuracy").mean()
print(f"accuracy {accuracy:.3f} at certified epsilon {plan.certificate.epsilon.max():.3g}")
print("certify says:", mc.certify(result).verdict)
