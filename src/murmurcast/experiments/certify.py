"""`murmurcast.certify`: what runs really cost, with every table compared with the plan that their experiments make."""

from collections.abc import Sequence
from pathlib import Path

from murmurcast.algorithms.method import Method
from murmurcast.certificates import certify as certificates
from murmurcast.certificates.certify import Certified
from murmurcast.experiments.rebuild import Rebuilder
from murmurcast.runs.result import Result


def certify(
    runs: Result | Sequence[Result],
    delta: float | None = None,
    methods: Sequence[Method] = (),
    data: Path | str | None = None,
) -> Certified:
    """Recomputes what runs cost from their ledgers, and compares it with what they promised and what was planned.

    Args:
        runs: One run, or several on the same data by the same nodes, which compose.
        delta: Failure probability for epsilon; by default the runs'.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
        data: The folder in which the experiments' files of data lie; by default a run's folder, the one that holds it,
            and the next one up are looked in.

    Guarantees:
        As `murmurcast.certificates.certify.certify`. Besides, the ledger is the one that the experiment leads to, as
        far as the data is at hand; what was not compared is among the assumptions.

    Raises:
        Altered: A ledger is incomplete, out of range, or at odds with itself, with the rest of its run, or with the
            plan that its experiment leads to.
        Error: Runs that do not compose: other units, other numbers of nodes, the same noise twice.
    """
    return certificates.certify(runs, delta, methods, Rebuilder(None if data is None else Path(data)))
