"""What a radio does to learning, in five plots: access, time and energy, slots, fading, errors of compensation.

And, without a plot, what the noise that hides data costs where nodes send at once without knowing the channel.

Every number comes from the engine that trains; nothing is downloaded. It prints what it plots.

Run it:       python examples/radio_plots.py                   (a few minutes; writes radio/*.png)
Elsewhere:    python examples/radio_plots.py --out docs/images/radio
A quick try:  python examples/radio_plots.py --quick           (coarse, in less than a minute)
One of them:  python examples/radio_plots.py --only fading
The numbers:  python examples/radio_plots.py --only noise
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import murmurcast as mc
from murmurcast.radio import units
from murmurcast.radio.air_time import joules, message_symbols, uses_of_round
from murmurcast.radio.physics import Split, physics
from murmurcast.radio.slots import slots
from murmurcast.reproduction import style

Floats = NDArray[np.float64]
NODES, GAIN = 10, 1e-4  # amplitude: 80 dB of path loss, as across an office
NOISE = units.thermal_noise(1e6, 7.0, 290.0)  # of the default receiver, watts per symbol
OPTIONS = mc.RunOptions(evaluate_every=2)
HARDLY_ANY = 1e6  # an epsilon that leaves hardly any noise
UNLIKE = 1.9  # under fading: how far nodes' own optima lie from the common one, over its norm


class Size(NamedTuple):
    """How much is computed."""

    seeds: int
    epochs: int
    snr_db: tuple[float, ...]
    networks: int
    quadratic_epochs: int
    doppler: tuple[float, ...]
    errors: tuple[float, ...]
    nodes: tuple[int, ...]


FULL = Size(
    seeds=5,
    epochs=40,
    snr_db=(-20, -15, -10, -5, 0, 5, 10, 20),
    networks=4,
    quadratic_epochs=3008,  # 47 pieces of 64
    doppler=(0.004, 0.02, 0.1),
    errors=(0.0, 0.001, 0.003, 0.01, 0.03),
    nodes=(10, 20, 30, 50, 100, 200, 300),
)
QUICK = Size(1, 6, (0, 20), 1, 60, (0.02,), (0.01,), (10, 30))


class Way(NamedTuple):
    """How nodes share the air, and how it is drawn."""

    label: str
    radio: mc.Radio
    rounds: int
    look: style.Look


FADING = mc.Radio(fading="iid")
WAYS = (
    Way("aligned, full duplex", replace(FADING, access="aligned", duplex="full"), 1, style.LOOKS[0]),
    Way("own slot", FADING, 1, style.LOOKS[1]),
    Way("referenced, half duplex", replace(FADING, access="referenced"), 1, style.LOOKS[2]),
    Way("digital, 6 bits", replace(FADING, access="digital"), 1, style.LOOKS[3]),
)


def main() -> None:
    """All plots, and the numbers without one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("radio"), help="folder of the plots")
    parser.add_argument("--quick", action="store_true", help="coarse, in less than a minute")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    size = QUICK if given.quick else FULL
    for name in given.only:
        figure = PARTS[name](size)
        if figure is not None:
            mc.figures.save(figure, given.out / f"{name}.png")
            print(f"-> {given.out / name}.png", flush=True)
        print(flush=True)


def office(snr_db: float) -> mc.Network:
    """Everybody hears everybody, links 5 dB more or less than so far above the receivers' noise."""
    level = np.triu(np.random.default_rng(0).uniform(-5, 5, (NODES, NODES)), 1)
    gains = GAIN * 10 ** ((level + level.T) / 20)
    np.fill_diagonal(gains, 0)
    return mc.Network(gains=gains, power=float(units.ratio(snr_db)) * NOISE / GAIN**2)


def digits() -> mc.SoftmaxRegression:
    """The small digits that come with scikit-learn, shared out alike."""
    return mc.SoftmaxRegression(data=mc.datasets.digits().partition("iid", nodes=NODES), clip=1.0, ball=10.0)


def planned(way: Way, snr_db: float, problem: mc.SoftmaxRegression, size: Size, epsilon: float = 3.0) -> mc.Plan:
    """Algorithm 1 with so much epsilon in all, against everybody, over a radio."""
    network = office(snr_db)
    radio = replace(way.radio, power_dbm=float(units.dbm(network.power[0])))
    schedule = mc.Schedule(epochs=size.epochs, step=0.4, noise_timing="aligned", rounds=way.rounds)
    return mc.plan(network, problem, mc.Budget(epsilon=epsilon, delta=1e-5, unit="record"), schedule, radio=radio)


def trained(way: Way, snr_db: float, problem: mc.SoftmaxRegression, size: Size, epsilon: float = 3.0) -> mc.Result:
    """A run of it, with its promise kept."""
    plan = planned(way, snr_db, problem, size, epsilon)
    result = mc.run(mc.power_controlled(plan, publish="average"), problem, seeds=range(size.seeds), options=OPTIONS)
    if mc.certify(result).verdict != "kept":  # whatever the radio does
        raise SystemExit(f"{way.label} at {snr_db:g} dB: the promise was not kept")
    return result


def curve(result: mc.Result) -> Floats:
    """[evaluations] accuracy of published models, mean over nodes and seeds."""
    return np.asarray(result.metrics["published_accuracy"].mean(("seed", "node")), np.float64)


def access_plot(size: Size) -> Figure:
    """Accuracy against the links' signal-to-noise ratio."""
    problem, snr = digits(), np.array(size.snr_db)
    print(f"accuracy at epsilon 3, {NODES} nodes, Rayleigh fading, {size.epochs} epochs; SNR in dB: {snr}")
    reached = {way.label: [curve(trained(way, one, problem, size))[-1] for one in snr] for way in WAYS}
    figure, (axes,) = style.column(2.7)
    for way in WAYS:
        print(f"  {way.label:24}", " ".join(f"{value:.3f}" for value in reached[way.label]))
        _line(axes, snr, np.array(reached[way.label]), way.look, way.label)
    later = 10 * math.log10(NODES - 1)
    aligned, _ = (np.array(reached[way.label]) for way in WAYS[:2])
    noisy = WAYS[1]._replace(radio=replace(WAYS[1].radio, hold_below=0.0))
    without = np.array([curve(trained(noisy, one, problem, size))[-1] for one in snr])
    print(f"  {'own slot, hold_below = 0':24}", " ".join(f"{value:.3f}" for value in without))
    axes.plot(snr, without, color=WAYS[1].look.colour, linewidth=0.8, alpha=0.7, label="own slot, weak pilots used")
    axes.plot(snr + later, aligned, color=style.INK, linewidth=0.6, label=f"aligned, {later:.1f} dB later")
    for words, own in (("own slot", np.array(reached["own slot"])), ("own slot, hold_below = 0", without)):
        print(f"  {words} comes {_shift(snr, aligned, own):.1f} dB after aligned; 10 lg d is {later:.1f} dB")
    axes.set_xlim(snr.min() - 1, snr.max() + 1)
    axes.set(xlabel="SNR of a mean link, dB", ylabel="test accuracy")
    style.legend(figure, *axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _shift(snr: Floats, first: Floats, second: Floats) -> float:
    """By how many dB the second curve is behind, where both are half way up."""
    half = (first.min() + first.max()) / 2
    return float(np.interp(half, second, snr) - np.interp(half, first, snr))


def time_and_energy_plot(size: Size) -> Figure:
    """The paper's Figure 3 with physical units: one accuracy, against time on the air and against energy."""
    problem, snr_db = digits(), 20.0
    network = office(snr_db)
    ideal, *others = WAYS
    half = Way("aligned, half duplex", replace(ideal.radio, duplex="half"), 1, style.LOOKS[5])
    figure, panels = style.column(4.4, rows=2)
    print(f"at {snr_db:g} dB, 1 MHz: slots a round, seconds and millijoules (all nodes) of the run, accuracy")
    for way in (ideal, half, *others):
        result = trained(way, snr_db, problem, size)
        epoch = np.asarray(result.metrics["epoch"], np.float64)
        seconds, energy, number = _price(network, way, problem.dim)
        found = curve(result)
        for axes, spent in zip(panels, (epoch * seconds, epoch * energy * 1e3), strict=True):
            _line(axes, spent, found, way.look, way.label)
        total, spent = epoch[-1] * seconds, epoch[-1] * energy * 1e3
        print(f"  {way.label:24} {number:3d} {total:8.3f} s {spent:8.4f} mJ {found[-1]:.3f}")
    panels[0].set(xlabel="seconds on the air (1 s: a million channel uses)", xscale="log", ylabel="test accuracy")
    panels[1].set(xlabel="radiated energy of all nodes, mJ", xscale="log", ylabel="test accuracy")
    style.legend(figure, *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _price(network: mc.Network, way: Way, dim: int) -> tuple[float, float, int]:
    """Seconds of an epoch, joules of all nodes, slots of a round."""
    turns = slots(network, way.radio.access, way.radio.duplex)
    symbols = message_symbols(network, way.radio, dim)
    seconds = way.rounds * uses_of_round(turns, symbols, way.radio) / way.radio.bandwidth_hz
    energy = joules(network.power, way.radio, way.rounds * turns.sendings * symbols, seconds)
    return seconds, float(energy.sum()), turns.number


def noise_numbers(size: Size) -> None:
    """What the noise that hides data costs "referenced" access, and what more of it costs own slots; at 20 dB."""
    problem, snr_db = digits(), 20.0
    _, own, referenced, _ = WAYS
    usual = planned(own, snr_db, problem, size).effective_noise
    print(f"accuracy at {snr_db:g} dB, {size.epochs} epochs, mean and its standard error over {size.seeds} seeds")
    cases = (
        (referenced, (HARDLY_ANY, 3.0)),
        (own, (HARDLY_ANY, 3.0, 2.4, 2.0)),
    )
    for way, budgets in cases:
        for epsilon in budgets:
            result = trained(way, snr_db, problem, size, epsilon)
            of_seeds = np.asarray(result.metrics["published_accuracy"].mean("node"))[:, -1]
            noise = planned(way, snr_db, problem, size, epsilon).effective_noise
            error = of_seeds.std(ddof=1) / math.sqrt(len(of_seeds)) if len(of_seeds) > 1 else math.nan
            print(
                f"  {way.label:24} epsilon {epsilon:<6g} {of_seeds.mean():.3f} +- {error:.3f}, "
                f"{(noise**2).sum() / (usual**2).sum():.3g} times the noise power of own slots at epsilon 3",
                flush=True,
            )


def slots_plot(size: Size) -> Figure:
    """Slots of one round against the number of nodes."""
    print(f"slots on geometric networks of {size.nodes} nodes, mean of 5")
    ways: tuple[tuple[str, Any, Any], ...] = (
        ("own slot, digital: colours of G$^2$", "own-slot", "half"),
        ("aligned, half duplex: colours of G", "aligned", "half"),
        ("referenced, half duplex", "referenced", "half"),
        ("full duplex", "aligned", "full"),
    )
    figure, (axes,) = style.column(2.6)
    for (label, access, duplex), look in zip(ways, style.LOOKS, strict=False):
        number = [
            float(np.mean([slots(mc.topologies.geometric(n, seed=seed), access, duplex).number for seed in range(5)]))
            for n in size.nodes
        ]
        print(f"  {access:12} {duplex:6}", " ".join(f"{one:5.1f}" for one in number))
        _line(axes, np.array(size.nodes, float), np.array(number), look, label)
    axes.set(xlabel="nodes", ylabel="slots a round", xscale="log", yscale="log")
    axes.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
    axes.set_xticks([], minor=True)
    axes.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    axes.set_yticks([], minor=True)
    style.legend(figure, *axes.get_legend_handles_labels(), loc="outside upper center")
    return figure


def ring(seed: int, unlike: float) -> tuple[mc.Network, mc.Quadratic]:
    """Six nodes in a ring with links of -10 to 10 dB, each with a quadratic.

    The optimum of their sum has norm 1, and their own optima lie `unlike` from it: root mean square over nodes.
    """
    rng, nodes = np.random.default_rng(seed), 6
    gains = np.zeros((nodes, nodes))
    for node in range(nodes):
        for other in (node - 1, node + 1):
            gains[node, other % nodes] = GAIN * 10 ** (rng.uniform(-10, 10) / 20)
    curvature, away = rng.uniform(0.5, 1.5, (nodes, 4)), rng.normal(size=(nodes, 4))
    away -= (curvature * away).sum(axis=0) / curvature.sum(axis=0)
    centre = 0.5 + unlike * away / np.sqrt(np.square(away).sum(axis=1).mean())
    matrix = curvature[:, :, None] * np.eye(4)
    problem = mc.Quadratic(curvature=matrix, centre=centre, clip=1e3, clipping="node", ball=30.0)
    return mc.Network(gains=gains, power=1e6), problem


def distance(
    seed: int, radio: mc.Radio, z: Any, epochs: int, unlike: float = 1.0, doppler: float | None = None
) -> float:
    """From the optimum, relative to its norm, of the mean of all own models; hardly any noise."""
    network, problem = ring(seed, unlike)
    radio = replace(radio, power_dbm=90.0, seed=seed)
    schedule = mc.Schedule(epochs=epochs, step=0.3, decay="linear")
    budget = mc.Budget(epsilon=1e12, delta=1e-5, unit="node")
    if doppler is not None:
        split = Split(np.full(6, 0.5), np.zeros((1, 6)), 3, problem.dim, 30.0, 1)
        radio = replace(radio, speed_mps=doppler / physics(network, radio, split).doppler)
    plan = mc.plan(network, problem, budget, schedule, z=z, radio=radio)
    result = mc.run(mc.power_controlled(plan), problem)
    optimum = np.linalg.norm(problem.optimum())
    return float(result.metrics["mean_distance"].values[0, -1] / optimum)


def fading_plot(size: Size) -> Figure:
    """Distance from the optimum under fading, by what gradients are divided by."""
    print(f"distance to the optimum over its norm, rings of 6, median of {size.networks}; f_D T_e: {size.doppler}, new")
    figure, (axes,) = style.column(2.6)
    at = np.array([*size.doppler, 4 * size.doppler[-1]])  # the last stands for a channel that is new in every epoch
    rules: tuple[tuple[Any, str, style.Look], ...] = (
        ("recursive", "recursive (the paper's)", style.LOOKS[1]),
        ("mean", "mean", style.LOOKS[0]),
        ("predicted", "predicted", style.LOOKS[2]),
    )
    channels = [*((mc.Radio(fading="jakes"), one) for one in size.doppler), (mc.Radio(fading="iid"), None)]
    for rule, label, look in rules:
        found = np.array(
            [
                [distance(seed, radio, rule, size.quadratic_epochs, UNLIKE, doppler) for radio, doppler in channels]
                for seed in range(size.networks)
            ]
        )
        middle = np.median(found, axis=0)
        print(f"  {rule:10}", " ".join(f"{one:.4f}" for one in middle))
        _line(axes, at, middle, look, label)
        low, high = np.quantile(found, (0.25, 0.75), axis=0)
        axes.fill_between(at, low, high, color=look.colour, alpha=0.15, lw=0)
    axes.set(xlabel="$f_D T_e$, Doppler shift times epoch", ylabel="distance to $x^*$", xscale="log", yscale="log")
    axes.set_xticks(at, [*(f"{one:g}" for one in size.doppler), "new"])
    axes.set_xticks([], minor=True)
    style.legend(figure, *axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def compensation_plot(size: Size) -> Figure:
    """Distance from the optimum where receivers err in what they divide by, with and without a common reference."""
    print(f"the same without fading, against the std of a relative error of compensation: {size.errors}")
    figure, (axes,) = style.column(2.6)
    shown = np.array(size.errors) > 0
    at = 100 * np.array(size.errors)[shown]
    ways: tuple[tuple[str, str, int, style.Look], ...] = (
        ("an error that stays, no common reference", "calibration_error", 0, style.LOOKS[1]),
        ("new in every epoch, no common reference", "compensation_error", 0, style.LOOKS[2]),
        ("one that stays, reference renewed every 20 epochs", "calibration_error", 20, style.LOOKS[0]),
    )
    for label, kind, every, look in ways:
        radios = [mc.Radio(recentre_every=every, **{kind: one}) for one in size.errors]  # type: ignore[arg-type]
        found = np.array(
            [
                [distance(seed, radio, "perron", size.quadratic_epochs) for radio in radios]
                for seed in range(size.networks)
            ]
        )
        middle, worst = np.median(found, axis=0), found.max(axis=0)
        print(f"  {label}: median", *(f"{one:.4f}" for one in middle), "worst", *(f"{one:.4f}" for one in worst))
        _line(axes, at, middle[shown], look, label)
        axes.fill_between(at, found.min(axis=0)[shown], worst[shown], color=look.colour, alpha=0.15, lw=0)
    axes.set(xlabel="error of compensation, %", ylabel="distance to $x^*$", xscale="log", yscale="log")
    axes.set_xticks(at, [f"{one:g}" for one in at])
    axes.set_xticks([], minor=True)
    style.legend(figure, *axes.get_legend_handles_labels(), loc="outside upper center")
    return figure


def _line(axes: Axes, at: Floats, values: Floats, look: style.Look, label: str) -> None:
    shape: dict[str, Any] = {
        "color": look.colour,
        "linestyle": look.dashes,
        "linewidth": 1.2,
        "marker": look.marker,
        "markersize": 3,
    }
    axes.plot(at, values, label=label, markevery=max(1, len(at) // 8), **shape)


PARTS: dict[str, Callable[[Size], Figure | None]] = {
    "access": access_plot,
    "time-and-energy": time_and_energy_plot,
    "slots": slots_plot,
    "fading": fading_plot,
    "compensation": compensation_plot,
    "noise": noise_numbers,
}

if __name__ == "__main__":
    main()
