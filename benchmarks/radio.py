"""What a radio adds to an epoch: receiver noise, pilots and fading beside the paper's channel, in one process."""

import numpy as np

import murmurcast as mc
from benchmarks.methods import ratio_of_epochs
from benchmarks.training import WORKS, Ours, Work
from murmurcast.algorithms.base import Algorithm
from murmurcast.radio.settings import Fading

BARS: dict[Fading, float] = {"none": 1.5, "iid": 1.5, "jakes": 3.0}
_RADIUS = 100.0


def bench() -> None:
    """One line per workload and kind of fading."""
    for name in ("W100", "W1000"):
        work = WORKS[name]()
        reference = Ours(work)
        for fading, bar in BARS.items():
            ratio, own = ratio_of_epochs(reference, work, _over_radio(work, fading))
            verdict = "within" if ratio <= bar else "OVER"
            print(
                f"{name}, own slots, fading {fading}: {own * 1e3:.3g} ms per epoch, {ratio:.2f} times the paper's "
                f"channel, {verdict} {bar:g}",
                flush=True,
            )


def _over_radio(work: Work, fading: Fading) -> Algorithm:
    radio = mc.Radio(fading=fading)
    plan = work.plan
    network = mc.Network(gains=plan.network.gains * 1e-4, power=np.broadcast_to(radio.power_w, plan.network.nodes))
    facts = mc.ClippedGradients(
        clip=1.0, examples_per_node=work.problem.examples_per_node, dim=work.problem.dim, radius=_RADIUS
    )
    still = fading == "none"
    built = mc.plan(network, facts, plan.budget, plan.schedule, z="perron" if still else "mean", radio=radio)
    return mc.power_controlled(built)
