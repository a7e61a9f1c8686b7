"""Theorem 2 in figures, one column wide: regret and its fits, C xi^t, how U2 grows, where the rate does not hold."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from murmurcast.reproduction import fits, style
from murmurcast.reproduction.growth import Sweep
from murmurcast.reproduction.theory_cases import Case, Theory

_MARKS = 9  # per curve: enough to tell curves apart, few enough to see them
_FITTED = (("log T", "-"), ("sqrt T", "--"), ("T", ":"))
_WRITTEN = {"log T": r"$\log T$", "sqrt T": r"$\sqrt{T}$", "T": r"$T$"}
_SYMBOLS = {"K": r"$K$", "m": r"$m$", "ln(1.25/delta)": r"$\ln(1.25/\delta)$"}


def theory_figure(theory: Theory) -> Figure:
    """Above the regret of every node against T with three fits, below |z_ii,t - pi_i| against C xi^t."""
    figure, (above, below) = style.column(5.4, rows=2)
    _draw_regret(above, theory.usual)
    _draw_geometric(below, theory.usual)
    return figure


def growth_figure(theory: Theory) -> Figure:
    """U2 against K, m and ln(1.25/delta), with the theorem's slope as a guide."""
    figure, panels = style.column(5.6, rows=3)
    for axes, sweep in zip(panels, theory.sweeps, strict=True):
        _draw_growth(axes, sweep)
    return figure


def rate_figure(theory: Theory) -> Figure:
    """Mean regret where theta exceeds 2 K: with the paper's steps, and with steps 1/(mu K t)."""
    figure, (axes,) = style.column(2.7)
    late = fits.later(theory.flat.horizons)
    for case, look, steps in (
        (theory.flat, style.LOOKS[0], r"1/(\mu\theta t)"),
        (theory.remedied, style.LOOKS[1], r"1/(\mu K t)"),
    ):
        at, drawn = case.horizons, {"color": look.colour, "linewidth": 1.2, "markersize": 3.5}
        label = f"steps ${steps}$"
        every = len(at) // _MARKS
        axes.loglog(at, case.mean.mean(axis=1), look.dashes, marker=look.marker, markevery=every, label=label, **drawn)
        axes.loglog(
            at,
            case.silent.mean(axis=1),
            ":",
            marker=look.marker,
            markevery=every,
            mfc="white",
            label=f"{label}, no noise",
            **drawn,
        )
    _draw_power(axes, theory.flat, late)
    axes.set_xlabel(r"$T$")
    axes.set_ylabel("mean regret of all nodes")
    style.legend(axes, loc="upper left")
    return figure


def _draw_power(axes: Axes, case: Case, late: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    """The power of T that the closed form foresees, a little below the curve without noise."""
    at, exponent = case.horizons[late], case.promised_exponent
    guide = 0.75 * case.silent.mean(axis=1)[-1] * (at / at[-1]) ** exponent
    axes.loglog(at, guide, color=style.INK, linewidth=0.9)
    middle = len(at) // 2
    axes.annotate(
        f"$T^{{{exponent:.2f}}}$",
        (at[middle], guide[middle]),
        (2, -3),
        textcoords="offset points",
        va="top",
        fontsize=7,
        color=style.INK,
    )


def _draw_regret(axes: Axes, case: Case) -> None:
    for node, look in zip(range(case.nodes), style.LOOKS * case.nodes, strict=False):
        axes.plot(
            case.horizons,
            case.mean[:, node],
            linestyle=look.dashes,
            linewidth=0.5,
            marker=look.marker,
            markersize=3,
            color=look.colour,
            markevery=(node, case.nodes),
            label=f"node {node}",
        )
    mean, late = case.mean.mean(axis=1), fits.later(case.horizons)
    shown = case.horizons >= 2
    for law, dashes in _FITTED:
        fitted = fits.fit(law, case.horizons[late], mean[late])
        axes.plot(
            case.horizons[shown],
            fitted.at(case.horizons[shown]),
            dashes,
            color=style.INK,
            linewidth=1,
            label=f"fit {_WRITTEN[law]}",
        )
    axes.set_xscale("log")
    axes.set_ylim(0, 1.12 * float(case.mean.max()))
    axes.set_xlabel(r"$T$")
    axes.set_ylabel(r"regret $R_i(T)$")
    style.legend(axes, loc="lower right", ncols=2, columnspacing=1.0)


def _draw_geometric(axes: Axes, case: Case) -> None:
    at = np.arange(len(case.z))
    axes.plot(at, case.z_bound, color=style.INK, linewidth=1.6, label=r"$C\xi^t$")
    for node, look in zip(range(case.nodes), style.LOOKS * case.nodes, strict=False):
        axes.plot(
            at,
            case.z[:, node],
            linestyle=look.dashes,
            marker=look.marker,
            markevery=(node, 10),
            markersize=3,
            color=look.colour,
            linewidth=0.8,
            label=f"node {node}",
        )
    axes.set_yscale("log")
    axes.set_xlabel(r"rounds of mixing $t$")
    axes.set_ylabel(r"$|z_{ii,t} - \pi_i|$")
    style.legend(axes, loc="upper right", ncols=2, columnspacing=1.0)


def _draw_growth(axes: Axes, sweep: Sweep) -> None:
    value, slope, error, silent, _ = np.array(sweep.points).T
    total, noise = style.LOOKS[0], style.LOOKS[1]
    axes.plot(
        value,
        slope,
        linestyle="none",
        marker=total.marker,
        markersize=4,
        color=total.colour,
        label=f"$U_2$, exponent {sweep.exponent.value:.2f}",
    )
    axes.errorbar(value, slope, 2 * error, fmt="none", ecolor=total.colour, capsize=2, linewidth=0.8)
    axes.plot(
        value,
        slope - silent,
        linestyle="none",
        marker=noise.marker,
        markersize=6,
        mfc="none",
        color=noise.colour,
        label=f"noise alone, exponent {sweep.noise_exponent.value:.2f}",
    )
    guide = slope[0] * (value / value[0]) ** sweep.theorem
    axes.plot(value, guide, "--", color=style.INK, linewidth=0.9, label=f"theorem, exponent {sweep.theorem:g}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(value, [f"{one:.3g}" for one in value])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if sweep.theorem < 2 else (1,)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(_SYMBOLS[sweep.symbol])
    axes.set_ylabel(r"$U_2$")
    style.legend(axes, loc="upper left")
