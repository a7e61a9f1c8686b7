"""Runs side by side, as they may be shown: an epsilon only where the run's account holds.

Reports and comparisons make the same account as `certify`, from the ledger and all that stands beside it in the folder;
whoever can build experiments hands in how plans are made anew, as for `certify`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from murmurcast.algorithms.method import Method
from murmurcast.certificates.rebuilt import Rebuild, not_rebuilt
from murmurcast.certificates.recompute import account_of
from murmurcast.errors import Altered
from murmurcast.runs import compare as side_by_side
from murmurcast.runs.compare import NOT_CERTIFIED, Comparison
from murmurcast.runs.result import Result, listed


def compare(
    *runs: Result,
    metric: str | None = None,
    target: float | None = None,
    methods: Sequence[Method] = (),
    rebuild: Rebuild = not_rebuilt,
) -> Comparison:
    """Sets runs side by side; "not certified" stands for the epsilon of a run whose account does not hold.

    Args:
        runs: At least one.
        metric: A metric of every node, such as "published_accuracy"; by default "own_accuracy" (the paper's curves), or
            "own_loss" where there is no accuracy.
        target: Time how soon runs reach this; by default what the weakest of them ends with.
        methods: Methods of your own whose accounts may be asked: code that a run names is never run by itself.
        rebuild: Makes a run's plan anew from its experiment, to compare every table with it; `murmurcast.compare` does.
    """
    return side_by_side.compare(*(shown(run, methods, rebuild) for run in listed(runs)), metric=metric, target=target)


def shown(run: Result, methods: Sequence[Method] = (), rebuild: Rebuild = not_rebuilt) -> Result:
    """The run as it may be shown: with all that it promises struck out where its account does not hold."""
    why = _why_not_certified(run, methods, rebuild)
    if not why:
        return run
    struck_out: dict[str, Any] = {
        "epsilon": None,
        "against": "nobody",
        "weaker": [],
        "caveat": NOT_CERTIFIED,
        "basis": why,
    }
    promises = [name for name in map(str, run.ledger.variables) if name.startswith("promised_")]
    nothing = ("node", np.full(run.ledger.sizes["node"], np.inf))
    ledger = run.ledger.drop_vars(promises).assign(promised_mu=nothing)
    return replace(run, info=run.info | {"privacy": run.info["privacy"] | struck_out}, ledger=ledger)


def _why_not_certified(run: Result, methods: Sequence[Method], rebuild: Rebuild) -> str:
    try:
        account = account_of(run, methods, rebuild)
    except Altered as problem:
        return str(problem)
    return "" if {"costs more", "costs less"}.isdisjoint(account.verdicts) else "what was sent is not what was promised"
