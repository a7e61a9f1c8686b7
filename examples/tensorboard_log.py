"""Watch a run in TensorBoard: three lines, by the callback that every run has.

Run it:  pip install tensorboardX, python examples/tensorboard_log.py, tensorboard --logdir logs
"""

from tensorboardX import SummaryWriter

import murmurcast as mc

network = mc.topologies.geometric(6, seed=0)
data = mc.datasets.digits().partition("iid", nodes=network.nodes)
problem = mc.SoftmaxRegression(data=data, clip=1.0, ball=20.0)
budget = mc.Budget(epsilon=10.0, unit="record")
plan = mc.plan(network, problem, budget, mc.Schedule(epochs=20, step=0.4), z="perron")

# Metrics only, and of published models only: no noise covers the nodes' own. They are means over nodes and seeds.
writer = SummaryWriter("logs/power-controlled")


def log(epoch: int, metrics: dict[str, float]) -> None:
    """One point of every curve."""
    for name in metrics.keys() & {"published_accuracy", "published_loss"}:
        writer.add_scalar(name, metrics[name], epoch)


options = mc.RunOptions(evaluate_every=5, on_evaluation=log)
run = mc.run(mc.power_controlled(plan), problem, options=options)
writer.close()

print(f"accuracy {run.final('published_accuracy').mean():.2f} after {plan.schedule.epochs} epochs; see logs/")
