"""Everything by subject: findings, figures, tables and curves together."""

from collections.abc import Sequence

from murmurcast.reproduction import better_inputs as inputs
from murmurcast.reproduction import counterexample as refutation
from murmurcast.reproduction import further, plan_tables, real_slots, run_tables
from murmurcast.reproduction import theory as theories
from murmurcast.reproduction import unequal_data as unequal
from murmurcast.reproduction.counterexample_plot import counterexample_figure
from murmurcast.reproduction.curve_plots import accuracy_figure, certified_figure, curves, topology_figure
from murmurcast.reproduction.document import Chapter, Picture
from murmurcast.reproduction.settings import OURS
from murmurcast.reproduction.theory_plot import growth_figure, rate_figure, theory_figure
from murmurcast.reproduction.training import Run


def accuracy(runs: Sequence[Run]) -> Chapter:
    """All settings."""
    first, *_ = runs
    band = "Mean over nodes and seeds, band: standard deviation over seeds."
    pictures = (
        Picture(
            "figure-1",
            "The paper's first network as a diamond: gains on the links, and every node's power split.",
            topology_figure(first.plan),
        ),
        Picture(
            "figure-2",
            f"Test accuracy against epochs, as published (above) and with matched steps (below). {band}",
            accuracy_figure(runs, "epochs"),
        ),
        Picture(
            "figure-3",
            f"Test accuracy against channel uses, as published (above) and with matched steps (below). {band}",
            accuracy_figure(runs, "uses"),
        ),
        Picture(
            "certified",
            "Test accuracy of the published models with a total budget for the whole run, beside a trusted server "
            f"with the same budget and the same steps without noise. {band}",
            certified_figure(runs),
        ),
    )
    findings, tables = run_tables.findings(runs), run_tables.tables(runs)
    return Chapter("Accuracy in all settings", tuple(findings), pictures, tuple(tables), curves(runs))


def privacy(runs: Sequence[Run]) -> Chapter:
    """The paper's networks: split, claims, and what holds."""
    plans = [run.plan for run in runs if run.setting.group == "published" and run.setting.algorithm == OURS]
    return Chapter(
        "Privacy and power of the paper's networks",
        tuple(plan_tables.findings(plans)),
        (),
        tuple(plan_tables.tables(plans)),
        {},
    )


def theory(measured: theories.Theory) -> Chapter:
    """Theorem 2, measured."""
    pictures = (
        Picture(
            "regret",
            "Regret of every node against T with three fits; and how fast z reaches its limit, against C xi^t.",
            theory_figure(measured),
        ),
        Picture("growth", "How the slope U2 grows with K, m and ln(1.25/delta).", growth_figure(measured)),
        Picture("rate", "Regret where one node is hardly heard and theta exceeds 2 K.", rate_figure(measured)),
    )
    findings, tables = theories.findings(measured), theories.tables(measured)
    return Chapter("Theorem 2: regret", tuple(findings), pictures, tuple(tables), theories.curves(measured))


def corollary(counterexample: refutation.Counterexample) -> Chapter:
    """A network on which the Corollary is attacked."""
    caption = "The attack's statistic on real transcripts of both worlds, and the epsilon that is claimed and shown."
    pictures = (Picture("counterexample", caption, counterexample_figure(counterexample)),)
    findings, tables = refutation.findings(counterexample), refutation.tables(counterexample)
    title = "A network that refutes the Corollary" if counterexample.refuted else "An attack on the Corollary"
    return Chapter(title, tuple(findings), pictures, tuple(tables), refutation.curves(counterexample))


def better_inputs(runs: Sequence[Run], rows: tuple[further.Row, ...] = ()) -> Chapter:
    """The certified setting on features, and elsewhere where that was tried."""
    lines = inputs.lines(runs, rows)
    caption = (
        "Test accuracy of published models against the epsilon of the whole run: on raw pixels, and on features that "
        "look at no data, each beside a trusted server with the same budget. Mean and standard deviation over seeds."
    )
    return Chapter(
        "Beyond the paper: better inputs under the same certificate",
        (*inputs.findings(lines), *further.findings(rows)),
        (Picture("better-inputs", caption, inputs.figure(lines)),),
        (inputs.table(lines), *([further.table(rows)] if rows else [])),
        inputs.curves(lines),
    )


def unequal_data(duels: tuple[unequal.Duel, ...]) -> Chapter:
    """Algorithm 1's multicast without the bias of unequal data."""
    caption = (
        "Test accuracy against channel uses: ten nodes with a digit each on a sparse network, Algorithm 1 and exact "
        "diffusion on the same multicast, at the same certified budget. Mean and standard deviation over seeds."
    )
    pictures = (Picture("unequal-data", caption, unequal.unequal_data_figure(duels)),)
    title = "Beyond the paper: unequal data on a sparse network"
    return Chapter(title, tuple(unequal.findings(duels)), pictures, (unequal.table(duels),), unequal.curves(duels))


def on_a_radio(runs: Sequence[Run]) -> Chapter:
    """Figure 3 with slots that a radio can have."""
    ways, duels = real_slots.ways_and_duels(runs)
    caption = (
        "The paper's Figure 3 with slots that a radio can have: test accuracy against slots. The runs are those of "
        "Figure 3. Mean over nodes and seeds, band: standard deviation over seeds."
    )
    return Chapter(
        "Figure 3 on a real radio",
        tuple(real_slots.findings(ways, duels)),
        (Picture("real-slots", caption, real_slots.slots_figure(ways, duels)),),
        (real_slots.table(ways, float(duels[0].ours.epochs[-1])),),
        real_slots.curves(ways, duels),
    )
