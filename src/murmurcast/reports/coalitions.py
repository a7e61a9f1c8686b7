"""Who learns what in a run, from its ledger: everybody together, every receiver alone, the worst two together."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.tables import row_of
from murmurcast.privacy import gaussian
from murmurcast.privacy.coalitions import Collusion, collusion, likely_seconds
from murmurcast.privacy.rounding import at_most
from murmurcast.reports import ledger
from murmurcast.reports.page import Block, Cell, Row, Table, Text, promised
from murmurcast.runs.result import Result

_MATRIX_UP_TO, _ROWS_UP_TO, _WORST = 12, 500, 50  # nodes
_DENSE_UP_TO, _LONGEST = 1000, 60.0  # nodes, and seconds of one receiver: beyond, not even its tables are laid out
_TABLES = ("model_sending_amplitude", "model_sending_noise", "model_receiving_heard")
_TITLE = "Who learns what"


class System(NamedTuple):
    """A run as the linear diagnostic sees it.

    Attributes:
        weights: [nodes, nodes] A, receiver first.
        effective_noise: [epochs, nodes] s_k,t.
        push: [epochs, nodes] S_k gamma_t / z_kk,t.
    """

    weights: FloatArray
    effective_noise: FloatArray
    push: FloatArray


def system(run: Result) -> System | None:
    """What the ledger says, as arrays; None where the run is of another kind, or its weights change on the way."""
    data, gains = run.ledger, ledger.gains(run)
    tables = {name: ledger.constant(run, name) for name in _TABLES}
    kept = ledger.constant(run, "model_receiving_kept")
    if not ledger.is_sum(run) or gains is None or "model_receiving_z" not in data or kept is None:
        return None
    amplitude, noise, heard = tables.values()
    if amplitude is None or noise is None or heard is None or not (noise > 0).all():
        return None
    weights = heard[:, None] * gains.toarray().T * amplitude
    np.fill_diagonal(weights, kept * amplitude)
    z = row_of(np.asarray(data["model_receiving_z"], np.float64), np.arange(1, int(data.attrs["epochs"]) + 1))
    steps, noise_schedule = (
        np.asarray(data[name], np.float64)[:, None] for name in ("model_receiving_step", "model_sending_schedule")
    )
    return System(weights, noise_schedule * noise / amplitude, steps * np.asarray(data["sensitivity"]) / z)


def of_run(run: Result) -> Collusion | None:
    """The linear diagnostic of receivers and pairs, as many as a page has time for; None where there is none."""
    nodes, epochs = ledger.nodes(run), int(run.ledger.attrs["epochs"])
    if nodes > _DENSE_UP_TO or likely_seconds(nodes, epochs) > _LONGEST:
        return None
    linear_system = system(run)
    return None if linear_system is None else collusion(*linear_system)


def blocks(run: Result) -> list[Block]:
    """The tables and what to know of them; nothing where the run promises nothing."""
    promised = np.asarray(run.ledger["promised_mu"], np.float64)
    if not ledger.is_sum(run) or not np.isfinite(promised).all():
        return []
    if "sampling" in run.ledger.attrs:
        why = "records join by secret coins, of which the linear diagnostic knows nothing"
        return [Text((f"{_TITLE} single receivers and pairs is not worked out: {why}.",))]
    diagnostic = of_run(run)
    if diagnostic is None or not diagnostic.receivers:
        several = len(str(run.ledger.attrs["rounds"]).split()) > 1
        why = "it would take too long" if not several else "an epoch has several rounds, see murmurcast plan"
        why = "as nodes drop out, weights change" if "drops" in run.ledger.attrs else why
        return [Text((f"{_TITLE} single receivers and pairs is not worked out: {why}.",))]
    whole = ledger.promised_epsilon(run)
    small = ledger.nodes(run) <= _MATRIX_UP_TO and len(diagnostic.receivers) == ledger.nodes(run)
    return [(_matrix if small else _worst_only)(run, diagnostic, whole)]


def _matrix(run: Result, diagnostic: Collusion, whole: FloatArray) -> Table:
    single = gaussian.epsilon(diagnostic.single_mu, float(run.ledger.attrs["delta"]))
    near = _neighbours(run)

    def alone(receiver: int, target: int) -> Cell:
        value = float(single[receiver, target])
        mark = "+" if near[receiver, target] else ""
        return Cell("-") if receiver == target else Cell(f"{value:#.3g}{mark}", value)

    rows: list[Row] = [
        (
            str(target),
            promised(whole[target]),
            *(alone(r, target) for r in diagnostic.receivers),
            *_pair(run, diagnostic, target),
        )
        for target in range(ledger.nodes(run))
    ]
    headings = ("target", "certified", *(f"to {receiver}" for receiver in diagnostic.receivers), "worst two", "who")
    return Table(_TITLE, headings, tuple(rows), _note(run, diagnostic))


def _worst_only(run: Result, diagnostic: Collusion, whole: FloatArray) -> Table:
    single = gaussian.epsilon(diagnostic.worst_single_mu, float(run.ledger.attrs["delta"]))
    near, receiver = _neighbours(run), diagnostic.worst_receiver
    count = ledger.nodes(run)
    order = np.argsort(-np.round(whole, 9), kind="stable")[: count if count <= _ROWS_UP_TO else _WORST]

    def alone(target: int) -> tuple[Cell, Cell]:
        if receiver[target] < 0:
            return Cell("0", 0.0), Cell("-")
        mark = "+" if near[receiver[target], target] else ""
        return Cell(f"{single[target]:#.3g}", float(single[target])), Cell(f"node {receiver[target]}{mark}")

    rows: list[Row] = [
        (str(target), promised(whole[target]), *alone(target), *_pair(run, diagnostic, target))
        for target in sorted(order.tolist())
    ]
    headings = ("target", "certified", "worst one", "who", "worst two", "who")
    left_out = f" The {len(rows)} of {count} nodes that pay most." if len(rows) < count else ""
    return Table(_TITLE, headings, tuple(rows), _note(run, diagnostic) + left_out)


def _pair(run: Result, diagnostic: Collusion, target: int) -> tuple[Cell, Cell]:
    first, second = diagnostic.pair[target]
    if first < 0:
        return Cell("-"), Cell("-")
    leaked = float(gaussian.epsilon(diagnostic.pair_mu[target], float(run.ledger.attrs["delta"])))
    who = f"{first} and {second if second >= 0 else 'any'}"
    return Cell(f"{leaked:#.3g}", leaked), Cell(who)


def _neighbours(run: Result) -> "np.typing.NDArray[np.bool_]":
    """[nodes, nodes] who has a link to whom, which is the same both ways."""
    gains = ledger.gains(run)
    return np.zeros((ledger.nodes(run),) * 2, bool) if gains is None else np.asarray(gains.toarray() > 0)


def _note(run: Result, diagnostic: Collusion) -> str:
    delta = at_most(run.ledger.attrs["delta"])
    note = (
        f"Epsilon of the whole run at delta {delta}. Certified: what everybody together can learn of the target. All "
        "other numbers are the linear diagnostic, a lower bound of what these receivers learn; not a guarantee. +: a "
        "neighbour of the target. Worked out from the ledger."
    )
    if diagnostic.is_complete:
        return note
    receivers = f"{len(diagnostic.receivers)} of {ledger.nodes(run)} receivers"
    return f"{note} Tried: the likeliest {receivers}, {diagnostic.pairs_tried} of {diagnostic.pairs} pairs."
