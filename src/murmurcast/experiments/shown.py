"""`murmurcast.compare` and `murmurcast.report`: runs as they may be shown, an epsilon only where `certify` keeps it."""

from collections.abc import Sequence
from pathlib import Path

from murmurcast.algorithms.method import Method
from murmurcast.certificates import compare as side_by_side
from murmurcast.experiments.rebuild import Rebuilder
from murmurcast.reports import runs as pages
from murmurcast.reports import sweep as sweep_pages
from murmurcast.runs.compare import Comparison
from murmurcast.runs.result import Result
from murmurcast.runs.sweep import Sweep


def compare(
    *runs: Result | Sweep, metric: str | None = None, target: float | None = None, methods: Sequence[Method] = ()
) -> Comparison:
    """Sets runs side by side; "not certified" stands for the epsilon of a run that `certify` would refuse.

    Args:
        runs: At least one; a sweep stands for all its finished runs.
        metric: A metric of every node, such as "published_accuracy"; by default "own_accuracy" (the paper's curves), or
            "own_loss" where there is no accuracy.
        target: Time how soon runs reach this; by default what the weakest of them ends with.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
    """
    listed = [run for one in runs for run in (one.runs.values() if isinstance(one, Sweep) else (one,))]
    return side_by_side.compare(*listed, metric=metric, target=target, methods=methods, rebuild=Rebuilder())


def report(runs: Sequence[Result] | Sweep, path: Path | str, methods: Sequence[Method] = ()) -> None:
    """Writes one self-contained, interactive page about runs or a sweep. It shows no epsilon `certify` would refuse.

    Args:
        runs: At least one, made by `mc.run` or read by `mc.load_run`, best of one problem; or a sweep.
        path: Where to write it; ends in .html. A file that is no such page is not overwritten.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
    """
    if isinstance(runs, Sweep):
        sweep_pages.report(runs, path, methods, Rebuilder())
    else:
        pages.report(runs, path, methods, Rebuilder())
