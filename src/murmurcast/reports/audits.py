"""The page of an audit: what adversaries learn, against what is promised."""

from collections.abc import Sequence
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from scipy.stats import norm

from murmurcast import _files
from murmurcast.audits.attack import CURVE, FALSE_POSITIVE_RATES, Attack
from murmurcast.audits.inversion import Inversion
from murmurcast.audits.verdict import NOTE, Audit, in_words, sure
from murmurcast.privacy.rounding import at_least, at_most
from murmurcast.reports.inversion_plot import inversion_caption, inversion_figure
from murmurcast.reports.page import (
    Cell,
    Chart,
    Code,
    Outcome,
    Picture,
    Row,
    Section,
    Table,
    Text,
    Verdict,
    number,
    promised,
    render,
)
from murmurcast.reports.runs import citation, require_path

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def write(
    audit: Audit,
    settings: str,
    name: str,
    path: Path,
    inversion: Inversion | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Writes one self-contained page.

    Args:
        audit: The audit.
        settings: Of the experiment, as TOML.
        name: Of the experiment.
        path: Where to write it; ends in .html.
        inversion: What an eavesdropper reconstructs of an image, where there are images.
        warnings: What may mislead about the experiment, beside the audit's own.
    """
    require_path(path)
    lead = [f"{in_words(audit)}.", f"Made by murmurcast {version('murmurcast')}. All of it is in this one file."]
    pictures = [] if inversion is None else [_pictures(inversion)]
    verdict = verdict_section(audit, (*audit.warnings, *warnings))
    sections = [verdict, _curves(audit), *pictures, _how(audit, settings), citation()]
    _files.write_atomically(path, render(f"Audit of {name}", lead, sections).encode())


def verdict_section(audit: Audit, warnings: Sequence[str]) -> Section:
    """What was found, in sentences and in a table."""
    outcomes: dict[str, Outcome] = {"not falsified": "not falsified", "FALSIFIED": "did not hold"}
    lines = [f"{heading}: {line}." for heading, line in audit.summary]
    verdicts = [
        Verdict(lines[0], outcomes.get(audit.verdict, "for information")),
        *(Verdict(line) for line in lines[1:]),
    ]
    verdicts += [Verdict(f"{line[0].upper()}{line[1:]}.", "warning") for line in warnings]
    return Section("What was found", (*verdicts, _table(audit), Text((f"{NOTE[0].upper()}{NOTE[1:]}.",))))


def _table(audit: Audit) -> Table:
    rates = tuple(f"TPR at {rate:g}" for rate in FALSE_POSITIVE_RATES)
    headings = (
        "adversary",
        "node",
        "linear mu",
        "guessed right",
        "mu at least",
        "epsilon at least",
        *rates,
        "catches",
    )
    rows = [_row(attack) for attack in audit.strongest]
    if audit.verdict != "nothing is promised":
        allowed = tuple(number(rate, ".3g") for rate in audit.true_positives_allowed)
        limits = (promised(audit.mu_promised, 3), promised(audit.worst.epsilon, 3))
        rows.append(("certified, at most", str(audit.worst.target), "", "", *limits, *allowed, ""))
    note = (
        f"Each row: the node of which the adversary showed most. All bounds hold together at {sure(audit)}; epsilon at "
        f"delta {at_most(audit.delta)}. Linear mu: what the diagnostic predicts, not a guarantee. TPR at x: the "
        "true-positive rate at a false-positive rate of x. Catches: a cut of the noise's standard deviation to this "
        "share would have been caught by guessing, at power 0.9."
    )
    return Table("What adversaries learn", headings, tuple(rows), note)


def _row(attack: Attack) -> Row:
    rates = tuple(number(rate, ".3g", "-") for rate in attack.true_positives)
    return (
        attack.adversary,
        str(attack.target),
        number(attack.mu_linear, ".3g"),
        number(attack.right / attack.guesses, ".1%"),
        number(attack.mu, ".3g"),
        Cell(at_least(attack.epsilon, 3), float(attack.epsilon)),
        *rates,
        number(attack.caught_from or None, ".0%", "-"),
    )


def _curves(audit: Audit) -> Section:
    """The true-positive rate at every false-positive rate."""
    figure = go.Figure()
    rates = np.array(CURVE)
    shown = audit.strongest
    for place, attack in enumerate(shown):
        # A curve that the same ones are drawn over is wider than they, so that it shows.
        width = 2 + 2 * sum(later.curve == attack.curve for later in shown[place + 1 :])
        line = {
            "color": f"var(--series-{place % 5 + 1})",
            "dash": _DASHES[(place + place // 5) % len(_DASHES)],
            "width": width,
        }
        figure.add_scatter(x=CURVE, y=attack.curve, name=attack.adversary, mode="lines", line=line)
    if np.isfinite(audit.mu_promised):
        most = norm.cdf(norm.ppf(rates) + audit.mu_promised)
        grey = {"color": "var(--series-6)", "width": 3}
        figure.add_scatter(x=rates, y=most, name="certified, at most", mode="lines", line=grey)
    figure.update_xaxes(type="log", dtick=1, hoverformat=".3g", title="false-positive rate")
    figure.update_yaxes(type="log", dtick=1, hoverformat=".3g", title="true-positive rate")
    caption = (
        "Counted on canaries that no filter was made from. A curve may cross the certified line by chance where few "
        "canaries are left, at the lower left; the bounds in the table allow for chance, the curves do not. "
        f"Rates of 0 are not drawn.{_same_curves(audit)}"
    )
    return Section("True- and false-positive rates", (Chart(figure, caption, "chart-alarms"),))


def _same_curves(audit: Audit) -> str:
    """A sentence for every group of adversaries with one curve, which hide each other."""
    by_curve: dict[tuple[float, ...], list[str]] = {}
    for attack in audit.strongest:
        by_curve.setdefault(attack.curve, []).append(f'"{attack.adversary}"')
    alike = [names for names in by_curve.values() if len(names) > 1]
    return "".join(f" {', '.join(names[:-1])} and {names[-1]} have the same curve." for names in alike)


def _pictures(inversion: Inversion) -> Section:
    """One image, as it is reconstructed from the air."""
    kept = BytesIO()
    inversion_figure(inversion).savefig(kept, format="png", dpi=200)
    why = (
        "A demonstration beside the audit: not the settings above, but the paper's first network with this data, noise "
        "off, as published, and certified."
    )
    caption = inversion_caption(inversion)
    return Section("What an eavesdropper sees of an image", (Text((why,)), Picture(kept.getvalue(), caption, caption)))


def _how(audit: Audit, settings: str) -> Section:
    text = (
        f"In each of {audit.runs} runs of the real engine {audit.canaries} canaries were planted at each of "
        f"{len(audit.targets)} of {audit.nodes} nodes, one for every parameter: units of data whose gradient is +c in "
        "one world and -c in the other, the worlds drawn at random. Every adversary knows all other data, the plan and "
        "the code, and guesses from what it really has.",
        "Whoever planted the canaries can subtract all that is known from what was sent. The noise that is left must "
        "be as large as claimed at every node in every epoch, independent between nodes, epochs and coordinates, and "
        "independent of everything that data did.",
        "Two filters are tried: the one that is best if the noise is as claimed, and one that is learned from canaries "
        "whose worlds are told, and counted on others. Mu follows from how often guesses are right; epsilon from "
        "Clopper-Pearson bounds of false and true positives and from the bound for many canaries in one run.",
    )
    return Section("How it was done", (Text(text), Code("Settings", settings)))
