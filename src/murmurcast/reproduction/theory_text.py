"""Theorem 2 in words and tables, all of it computed from the numbers."""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.reproduction import fits
from murmurcast.reproduction.document import Finding, Table
from murmurcast.reproduction.fits import LAWS
from murmurcast.reproduction.growth import BASE, Sweep
from murmurcast.reproduction.theory_cases import Case, Theory

_ERRORS = 2  # standard errors that an exponent may lie above the theorem's before it contradicts it


def findings(theory: Theory) -> list[Finding]:
    """What was found: whether it held (None for what is only told), and in words."""
    return [
        _rate(theory.usual, f"In a setting as the theorem has it, theta = {_theta(theory.usual)},"),
        _end(theory.usual),
        _closed_form(theory.usual),
        _below(theory.usual),
        _first_term(theory.usual),
        _geometric(theory.usual),
        *(_growth(sweep) for sweep in theory.sweeps),
        _rate(theory.flat, f"With all curvatures equal to mu and theta = {_theta(theory.flat)}"),
        _why(theory.flat),
        _rate(theory.remedied, "In that setting with steps 1/(mu K t) instead of 1/(mu theta t)"),
    ]


def is_logarithmic(case: Case) -> bool:
    """Whether log T leaves least at every node, over the later part."""
    return all(fits.best(node).law == "log T" for node in case.later)


def _rate(case: Case, where: str) -> Finding:
    laws = [fits.best(node).law for node in case.later]
    counted = ", ".join(f"{law} at {laws.count(law)} of {case.nodes} nodes" for law in LAWS if law in laws)
    left = ", ".join(f"{law} {_span(residual, '.2%')}" for law, residual in zip(LAWS, _residuals(case), strict=True))
    first, last = case.horizons[fits.later(case.horizons)][[0, -1]]
    return Finding(
        is_logarithmic(case),
        f"{where} regret is fitted best by {counted}, over T = {first:.0f} to {last:.0f} "
        f"(root mean square residual over mean: {left}).",
    )


def _end(case: Case) -> Finding:
    return Finding(
        None,
        f"At the end regret grows as T to the power {_span(case.exponent, '.2f')}, "
        f"without noise {_span(case.silent_exponent, '.3f')}; the exponent of log T tends to 0.",
    )


def _closed_form(case: Case) -> Finding:
    slope, error, silent = case.slope
    return Finding(
        None,
        f"The mean regret of all nodes grows by {slope:.1f} (standard error {error:.1f}) per unit of log T, "
        f"without noise by {silent:.2f}; a closed form of the noise in the consensus foresees {case.foreseen:.1f}.",
    )


def _below(case: Case) -> Finding:
    used = (case.mean / case.bound).max()
    place = "stays below" if used <= 1 else "exceeds"
    return Finding(
        None,
        f"With the U2 fitted to each node, regret {place} U1 + U2 (1 + log T) (at most {used:.2f} of it). "
        f"The theorem gives U2 only up to a constant, so its bound as such cannot be checked.",
    )


def _first_term(case: Case) -> Finding:
    fitted = np.array([node[0].constant - node[0].slope for node in case.later])
    return Finding(
        None,
        f"The theorem's U1 is {case.first_term:.0f} (C = {case.mixing.constant:.3f}, xi = {case.mixing.rate:.3f}, "
        f"G = {case.gradient:g}, theta = {case.theta:.2f}); fitted in its form the constants are "
        f"{_span(fitted, '.0f')}.",
    )


def _geometric(case: Case) -> Finding:
    return Finding(
        None,
        f"C is the smallest that bounds all of A^t, so |z_ii,t - pi_i| lies below C xi^t; for t = 0 to "
        f"{len(case.z) - 1} it takes at most {float((case.z / case.z_bound[:, None]).max()):.2f} of it.",
    )


def _growth(sweep: Sweep) -> Finding:
    value, error = sweep.exponent
    contradicted = value - _ERRORS * error > sweep.theorem
    if contradicted:
        verdict = "it is larger, which contradicts the theorem"
    elif value < sweep.theorem - _ERRORS * error:
        verdict = "the theorem is an upper bound, so a smaller exponent does not contradict it"
    else:
        verdict = f"the two agree within {_ERRORS} times the error"
    noise = sweep.noise_exponent
    return Finding(
        not contradicted,
        f"U2 grows as {sweep.symbol} to the power {value:.3f} +- {error:.1g} (what the noise adds: {noise.value:.3f} "
        f"+- {noise.error:.1g}); the theorem says {sweep.theorem:g}: {verdict}. Held while it is swept: {sweep.fixed}.",
    )


def _why(case: Case) -> Finding:
    seen = _span(case.silent_exponent, ".3f")
    decay = (
        f"There the consensus error decays as t^-a with a = {case.contraction:.3f} "
        f"(strong convexity promises K/theta = {case.nodes / case.divisor:.3f})"
    )
    if case.contraction > 0.5:
        return Finding(None, f"{decay}, fast enough for log T; without noise the exponent at the end is {seen}.")
    return Finding(
        None,
        f"{decay}. So without noise regret grows as T to the power 1 - 2a = {case.promised_exponent:.3f} (measured "
        f"{seen}; with noise {_span(case.exponent, '.2f')}), and no U1 and U2 can hold for all T, although every "
        f"assumption holds. theta is at least 1/min pi, hence at least K; strong convexity alone gives log T only for "
        f"theta below 2 K, or for steps 1/(mu K t).",
    )


def tables(theory: Theory) -> list[Table]:
    """Everything that was measured, as text."""
    return [_fit_table(theory.usual), _case_table(theory), _growth_table(theory), _point_table(theory)]


def _fit_table(case: Case) -> Table:
    rows = []
    for node, (later, whole) in enumerate(zip(case.later, case.whole, strict=True)):
        regret = f"{case.mean[-1, node]:.1f} +- {case.error[-1, node]:.1f}"
        laws = [f"{fit.constant:.1f} + {fit.slope:.4g} {fit.law}" for fit in later]
        left = [f"{fit.residual:.2%} / {full.residual:.2%}" for fit, full in zip(later, whole, strict=True)]
        cells = [cell for pair in zip(laws, left, strict=True) for cell in pair]
        rows.append((str(node), regret, *cells, fits.best(later).law, f"{case.exponent[node]:.3f}"))
    headings = [heading for law in LAWS for heading in (f"by {law}", "residual")]
    first = case.horizons[fits.later(case.horizons)][0]
    return Table(
        "theory-fits",
        "Regret of every node and three laws",
        ("node", f"R({case.horizons[-1]:.0f})", *headings, "best", "exponent"),
        tuple(rows),
        f"Mean of {case.runs} runs with its standard error. Fits over T from {first:.0f} on; residuals are root mean "
        f"squares over the mean, of that part and of all T from 10 on. Exponent: d log R / d log T at the end.",
    )


def _case_table(theory: Theory) -> Table:
    rows = tuple(_case_row(case) for case in (theory.usual, theory.flat, theory.remedied))
    headings = (
        "setting",
        "K",
        "theta/K",
        "a",
        "G",
        "C",
        "xi",
        "U1",
        "U2",
        "foreseen",
        "best",
        "exponent",
        "silent",
        "1 - 2a",
    )
    note = (
        f"m = {theory.usual.dim}, mu = {theory.usual.convexity:g}, epsilon = {BASE.epsilon:g} for one epoch (nominal), "
        f"delta = {BASE.delta:g}, q = {BASE.to_step:g}. The consensus error decays as t^-a. U2: slope of the mean "
        f"regret of all nodes; foreseen: its closed form. Exponents: d log R / d log T at the end, with noise and "
        f"without (silent), mean over nodes; without noise 1 - 2a is foreseen, 0 where that is negative."
    )
    return Table("theory-settings", "Three settings", headings, rows, note)


def _case_row(case: Case) -> tuple[str, ...]:
    slope, error, _ = case.slope
    laws = sorted({fits.best(node).law for node in case.later})
    return (
        case.title,
        str(case.nodes),
        f"{case.theta / case.nodes:.3f}",
        f"{case.contraction:.3f}",
        f"{case.gradient:g}",
        f"{case.mixing.constant:.4f}",
        f"{case.mixing.rate:.4f}",
        f"{case.first_term:.0f}",
        f"{slope:.1f} +- {error:.1f}",
        f"{case.foreseen:.1f}" if np.isfinite(case.foreseen) else "none",
        " or ".join(laws),
        f"{case.exponent.mean():.3f}",
        f"{case.silent_exponent.mean():.3f}",
        f"{case.promised_exponent:.3f}",
    )


def _growth_table(theory: Theory) -> Table:
    rows = tuple(
        (
            sweep.symbol,
            f"{sweep.points[0].value:.3g} to {sweep.points[-1].value:.3g}",
            f"{sweep.theorem:g}",
            f"{sweep.exponent.value:.3f} +- {sweep.exponent.error:.1g}",
            f"{sweep.noise_exponent.value:.3f} +- {sweep.noise_exponent.error:.1g}",
            sweep.fixed,
        )
        for sweep in theory.sweeps
    )
    return Table(
        "theory-growth",
        "How U2 grows",
        ("of", "from", "theorem", "measured", "noise alone", "held"),
        rows,
        "Exponents are slopes of log U2 against the logarithm of what is swept, with their errors. Noise "
        "alone: of U2 less its value without noise. The theorem's U2 is an upper bound.",
    )


def _point_table(theory: Theory) -> Table:
    rows = tuple(
        (
            sweep.symbol,
            f"{point.value:.4g}",
            f"{point.slope:.1f} +- {point.error:.1f}",
            f"{point.silent:.2f}",
            f"{point.foreseen:.1f}",
        )
        for sweep in theory.sweeps
        for point in sweep.points
    )
    return Table(
        "theory-slopes",
        "U2 at every value",
        ("of", "value", "U2", "without noise", "foreseen"),
        rows,
        "U2 is the slope of the mean regret of all nodes against log T over the later part, with its standard error "
        "over runs. Foreseen: what the noise adds in the long run, in closed form.",
    )


def _theta(case: Case) -> str:
    return f"{case.theta / case.nodes:.2f} K"


def _residuals(case: Case) -> FloatArray:
    """[laws, nodes] of the later part."""
    return np.array([[fit.residual for fit in node] for node in case.later]).T


def _span(values: FloatArray, form: str) -> str:
    low, high = (f"{value:{form}}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
