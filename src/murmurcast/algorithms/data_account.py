"""What an account reads of a ledger about its data: who is hidden together, who joins, what was released before."""

from typing import TYPE_CHECKING

import numpy as np

from murmurcast.privacy.first_releases import STATISTICS, sensitivity
from murmurcast.problems.sampling import Sampling

if TYPE_CHECKING:
    from murmurcast.algorithms.account import LedgerTables


def records_per_person(ledger: "LedgerTables") -> int:
    """k, how many records are hidden together; 1 where the ledger does not say."""
    if not ledger.says("records_per_person"):
        return 1
    records = ledger.number("records_per_person")
    if records < 1 or records != np.floor(records):
        ledger.refuse(f"has records_per_person {records:g}, expected a whole number of at least 1")
    if records > 1 and ledger.text("unit") == "node":
        ledger.refuse(f"hides {records:g} records of a person, and has unit node")
    return int(records)


def mu_before(ledger: "LedgerTables") -> float:
    """What nodes released before training comes to as mu, at the node that paid most; 0 where nothing was released.

    From the ledger's constants alone: how far data can move each, by what rows are and how many there are, over its
    noise. Infinite where one has no noise.
    """
    if not ledger.says("first_releases"):
        return 0.0
    if ledger.noise_source == "secure":
        ledger.refuse("has secure noise, and releases before training, for which there is none")
    names = ledger.text("first_releases").split()
    if not names or any(name not in STATISTICS for name in names) or len(set(names)) < len(names):
        ledger.refuse("has first releases that are not known here")
    rows, unit = ledger.text("first_rows", ("signed", "non-negative")), ledger.text("unit")
    sizes = ledger.per_node("records_per_node")
    if (sizes < 1).any():
        ledger.refuse("has a node without records")
    if not ledger.says("batch") and not np.array_equal(sizes, ledger.per_node("examples_per_node")):
        ledger.refuse("has other numbers of records in its first releases than gradients are averaged over")
    together, squares = records_per_person(ledger), np.zeros(ledger.nodes)
    for name in names:
        moved = sensitivity(name, rows, "record" if unit == "record" else "node", sizes, together)
        with np.errstate(divide="ignore"):
            squares = squares + np.square(moved / ledger.per_node(f"{name}_noise"))
    return float(np.sqrt(squares.max()))


def sampling_of(ledger: "LedgerTables") -> Sampling | None:
    """How records joined by secret coins; None where the ledger does not say that they did.

    Only then is anything counted for it: a batch of a fixed size, however it was drawn, has the plain bound.
    """
    if not ledger.says("sampling"):
        return None
    ledger.text("sampling", ("poisson",))
    batch, room, sizes = ledger.number("batch"), ledger.number("room"), ledger.per_node("records_per_node")
    if any(number != np.floor(number) for number in (batch, room, *sizes)) or not batch <= min(room, sizes.min()):
        ledger.refuse("has a batch, room and numbers of records that no sampling by coins has")
    clipped = ledger.text("clipping") in ("example", "layer")  # layer by layer, the whole is within the clip too
    if ledger.text("unit") != "record" or not clipped or records_per_person(ledger) > 1:
        ledger.refuse("samples records by coins, and what it hides is not one record whose gradient is clipped")
    return Sampling(int(batch), tuple(map(int, sizes)), int(room))
