"""The paper's Figure 3 with slots that a radio can have: what remains of one channel use an epoch against four.

The runs are those of Figure 3; only the count changes. One channel use of the paper is a slot in which a whole message
is sent. It needs nodes that hear while they send, and phases that agree at all receivers of a multicast at once.
Without either, Algorithm 1 takes as many slots as the network has colours. mPED2FL sends to one receiver at a time: a
slot for each, in which phases need to agree at that one alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network
from murmurcast.radio.air_time import joules, message_symbols
from murmurcast.radio.phases import alignment
from murmurcast.radio.settings import Radio
from murmurcast.radio.slots import slots
from murmurcast.reproduction import style
from murmurcast.reproduction.document import Curve, Finding, Table
from murmurcast.reproduction.run_tables import AccuracyCurve, accuracy_curve, find
from murmurcast.reproduction.settings import OURS, PAPER_BUDGETS, RIVAL
from murmurcast.reproduction.training import Run

_FULL = Radio(access="aligned", duplex="full")
_HALF = Radio(access="aligned", duplex="half")
_OWN = Radio(access="own-slot")


class Way(NamedTuple):
    """One way to carry an epoch.

    Attributes:
        name: Of the algorithm and how nodes share the air.
        needs: What a radio must be able to do.
        possible: Whether one can, on this network.
        slots: An epoch.
        sendings: [nodes] an epoch.
        seconds: An epoch, on the air.
        joules: An epoch, radiated by all nodes.
    """

    name: str
    needs: str
    possible: bool
    slots: int
    sendings: FloatArray
    seconds: float
    joules: float


class Duel(NamedTuple):
    """One budget, per slot.

    Attributes:
        budget: Nominal epsilon of an epoch.
        ours: Algorithm 1.
        rival: mPED2FL as published.
        matched: mPED2FL with steps of the same length.
    """

    budget: float
    ours: AccuracyCurve
    rival: AccuracyCurve
    matched: AccuracyCurve


def ways(network: Network, dim: int, rival_slots: int) -> tuple[Way, ...]:
    """Algorithm 1 in full duplex, in half duplex and with own slots; mPED2FL last.

    Args:
        network: Who hears whom.
        dim: m, number of parameters.
        rival_slots: Of mPED2FL, an epoch.
    """
    full, half, own = (slots(network, radio.access, radio.duplex) for radio in (_FULL, _HALF, _OWN))
    agree = alignment(network).possible
    alone = half.number == network.nodes  # one listens at a time, and the others turn their phases for that one
    return (
        _way("Algorithm 1, full duplex", "hearing while sending; phases agree at all receivers at once", agree,
             (full.number, full.sendings), network, dim),
        _way("Algorithm 1, half duplex", "phases agree at who listens now", agree or alone,
             (half.number, half.sendings), network, dim),
        _way("Algorithm 1, own slots", "nothing special", True, (own.number, own.sendings), network, dim),
        _way("mPED2FL", "phases agree at one receiver at a time", True,
             (rival_slots, np.diff(network.gains.indptr)), network, dim),
    )  # fmt: skip


def _way(
    name: str, needs: str, possible: bool, taken: tuple[int, "np.typing.ArrayLike"], network: Network, dim: int
) -> Way:
    number, sendings = taken[0], np.asarray(taken[1], np.float64)
    symbols = message_symbols(network, _HALF, dim)
    seconds = number * float(symbols.max()) / (_HALF.efficiency * _HALF.bandwidth_hz)
    power = np.full(network.nodes, float(_HALF.power_w))
    return Way(
        name, needs, possible, number, sendings, seconds, float(joules(power, _HALF, sendings * symbols, 0).sum())
    )


def ways_and_duels(runs: Sequence[Run]) -> tuple[tuple[Way, ...], tuple[Duel, ...]]:
    """Slots of the paper's network, and its runs."""
    first = find(runs, "published", OURS, PAPER_BUDGETS[0])
    duels = tuple(
        Duel(
            float(budget),
            accuracy_curve(find(runs, "published", OURS, budget)),
            accuracy_curve(find(runs, "published", RIVAL, budget)),
            accuracy_curve(find(runs, "matched", RIVAL, budget)),
        )
        for budget in PAPER_BUDGETS
    )
    rival = duels[0].rival
    dim = first.plan.problem.dim or 0
    return ways(first.plan.network, dim, round(float(rival.uses[-1] / rival.epochs[-1]))), duels


def buildable(listed: Sequence[Way]) -> Way:
    """Algorithm 1 in the fewest slots that a radio can have on this network."""
    return min((way for way in listed[:-1] if way.possible), key=lambda way: (way.slots, way.joules))


def findings(listed: Sequence[Way], duels: Sequence[Duel]) -> list[Finding]:
    """What remains of the count, and who is ahead after as many slots."""
    ideal, *_, rival = listed
    best = buildable(listed)
    impossible = "" if ideal.possible else ", which no multicast can have on a network with such cycles"
    lines = [
        Finding(
            best.slots < rival.slots,
            f"Algorithm 1 needs fewer channel uses an epoch than mPED2FL: {ideal.slots} against {rival.slots} takes "
            f"full duplex and phases that agree at all receivers at once{impossible}. Without, it takes {best.slots} "
            f"against {rival.slots} ({_half_and_own(listed)}), with {best.joules / rival.joules:.2g} times the "
            "radiated energy.",
        )
    ]
    for duel in duels:
        at = min(duel.ours.epochs[-1] * best.slots, duel.rival.uses[-1])
        ours, published, matched = _after(at, best, duel)
        lead = "Algorithm 1 leads" if ours > matched else "mPED2FL leads"
        lines.append(
            Finding(
                ours > published,
                f"Budget {duel.budget:g}, after {at:g} slots that a radio can have: Algorithm 1 stands at {ours:.3f}, "
                f"mPED2FL as published at {published:.3f}, and with steps of the same length at {matched:.3f}: there "
                f"{lead}. The paper's count has Algorithm 1 at {ours:.3f} after {duel.ours.epochs[-1]:g}.",
            )
        )
    return lines


def _half_and_own(listed: Sequence[Way]) -> str:
    _, half, own, _ = listed
    return f"half duplex {half.slots}, own slots {own.slots}"


def _after(at: float, best: Way, duel: Duel) -> tuple[float, float, float]:
    ours = float(np.interp(at, duel.ours.epochs * best.slots, duel.ours.mean))
    published, matched = (float(np.interp(at, one.uses, one.mean)) for one in (duel.rival, duel.matched))
    return ours, published, matched


def table(listed: Sequence[Way], epochs: float) -> Table:
    """One line for each way."""
    rows = tuple(
        (
            way.name,
            way.needs,
            "yes" if way.possible else "no",
            str(way.slots),
            f"{way.sendings.max():g}",
            f"{way.seconds * epochs:.3g}",
            f"{way.joules * epochs * 1e3:.3g}",
        )
        for way in listed
    )
    note = (
        f"Of {epochs:g} epochs, at {_HALF.bandwidth_hz / 1e6:g} MHz and {float(np.asarray(_HALF.power_dbm)):g} dBm, "
        f"{_HALF.efficiency:.0%} of symbols in use, {_HALF.pilots} of each message a pilot. Energy: radiated by all "
        "nodes; computing takes far more. Accuracies are those of the runs without receiver noise."
    )
    headings = ("run", "needs", "possible here", "slots an epoch", "sendings of a node", "seconds", "mJ")
    return Table("real-slots", "An epoch on a real radio", headings, rows, note)


def curves(listed: Sequence[Way], duels: Sequence[Duel]) -> dict[str, Curve]:
    """Accuracy against slots, both as they can be had."""
    best = buildable(listed)
    return {
        f"real-slots-{duel.budget:g}": Curve(
            ("epoch", "slots", "ours", "rival_slots", "rival", "matched"),
            np.column_stack(
                [
                    duel.ours.epochs,
                    duel.ours.epochs * best.slots,
                    duel.ours.mean,
                    duel.rival.uses,
                    duel.rival.mean,
                    duel.matched.mean,
                ]
            ),
        )
        for duel in duels
    }


def slots_figure(listed: Sequence[Way], duels: Sequence[Duel]) -> Figure:
    """Accuracy against slots, a panel for each budget."""
    ideal, best = listed[0], buildable(listed)
    figure, panels = style.column(1.9 * len(duels) + 0.5, rows=len(duels))
    for axes, duel in zip(panels, duels, strict=True):
        no = "" if ideal.possible else " (impossible)"
        lines = (
            (duel.ours.epochs * ideal.slots, duel.ours, f"Alg. 1, {ideal.slots} slot{no}", 4),
            (duel.ours.epochs * best.slots, duel.ours, f"Alg. 1, {best.slots} slots", 0),
            (duel.rival.uses, duel.rival, "mPED$^2$FL", 1),
            (duel.matched.uses, duel.matched, "mPED$^2$FL, long steps", 2),
        )
        for at, one, label, place in lines:
            look = style.LOOKS[place]
            shown: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes, "linewidth": 1.1, "label": label}
            axes.plot(at, one.mean, marker=look.marker, markersize=3, markevery=max(1, len(at) // 8), **shown)
            axes.fill_between(at, one.mean - one.spread, one.mean + one.spread, color=look.colour, alpha=0.15, lw=0)
        style.title(axes, rf"$\epsilon_{{\max}}={duel.budget:g}$")
        axes.set_ylabel("test accuracy")
    panels[-1].set_xlabel("slots, each as long as a message")
    style.legend(figure, *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
