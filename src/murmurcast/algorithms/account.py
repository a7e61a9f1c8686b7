"""What an account may read, and what accounts share.

An account recomputes a finished run's releases from the ledger's tables alone, never from the plan: that it does not
trust what made the run is the point.
"""

from collections.abc import Collection
from typing import Literal, NoReturn, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from murmurcast._check import FloatArray
from murmurcast.algorithms.data_account import records_per_person as records_per_person
from murmurcast.algorithms.data_account import sampling_of
from murmurcast.algorithms.tables import row_of
from murmurcast.errors import Error
from murmurcast.network.weights import RECURSIVE_UP_TO, Z, perron, z_diagonal
from murmurcast.privacy import discrete
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases
from murmurcast.privacy.releases import exposed_ratio as exposed_ratio
from murmurcast.problems.clip import Clipping

TOLERANCE = 1e-9  # relative: far above rounding, far below any change that matters
_Z_TOLERANCE = 1e-7  # relative: where nodes hardly mix, other machines round z to other digits
_EPOCHS_PER_CHUNK = 4096
Sums = Literal["rows", "columns", "both"]


class LedgerTables(Protocol):
    """A ledger as an account sees it; whatever is missing, of another shape or out of range is refused."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        ...

    @property
    def epochs(self) -> int:
        """T, how many epochs it holds."""
        ...

    @property
    def noise_source(self) -> str:
        """Where the noise came from: "seeded" or "secure"."""
        ...

    def refuse(self, what: str) -> NoReturn:
        """Says what is wrong with the ledger, as the end of a sentence."""
        ...

    def text(self, name: str, known: Collection[str] = ()) -> str:
        """A word it says."""
        ...

    def number(self, name: str) -> float:
        """A number above 0 that it says."""
        ...

    def has(self, name: str) -> bool:
        """Whether it has a table or array of this name."""
        ...

    def says(self, name: str) -> bool:
        """Whether it has a word or number of this name."""
        ...

    def ndim(self, name: str) -> int:
        """How many dimensions a table has."""
        ...

    def per_node(self, name: str, *, infinite: bool = False) -> FloatArray:
        """[nodes] numbers of 0 or more."""
        ...

    def per_epoch(self, name: str) -> FloatArray:
        """[epochs] numbers of 0 or more."""
        ...

    def table(self, name: str) -> FloatArray:
        """[rows, nodes] numbers of 0 or more."""
        ...

    def link_table(self, name: str) -> FloatArray:
        """[rows, nodes, links] numbers of 0 or more."""
        ...

    def sends(self, round_name: str) -> FloatArray | None:
        """[rows, nodes] 1 while a node sends, 0 once it has dropped out; None where nobody drops out."""
        ...

    def links(self, round_name: str) -> "tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]":
        """Sender, receiver and gain of every link of a round, each [links]."""
        ...

    def require_rounds(self, **rounds: str) -> None:
        """The run had these rounds and no others, each with the draws that it names, as the ledger words them.

        No gradient was taken before the first.
        """
        ...

    def require_rounds_after_gradient(self, **rounds: str) -> None:
        """The same for methods that take one gradient at the public start, before the first round."""
        ...

    def require_tables(self, *names: str) -> None:
        """These and no other tables: what is not known here cannot be accounted for."""
        ...


class Account(Protocol):
    """Recomputes what a finished run released, from its ledger alone."""

    def __call__(self, ledger: LedgerTables, /) -> tuple[Releases, ...]:
        """One for every adversary that anything is promised against, the strongest first."""
        ...


class NoiseSent(Protocol):
    """How much noise a ledger claims there is in a signal."""

    def __call__(self, ledger: LedgerTables, epochs: "NDArray[np.int64]", /) -> FloatArray:
        """[these epochs, nodes] the standard deviation of every coordinate's noise, in what leaves the antenna."""
        ...


def sensitivity(ledger: LedgerTables) -> FloatArray:
    """[nodes] S: 2 clip for unit node, 2 clip k / n for k records of a person; infinite where nothing is clipped.

    The ledger's own number must agree. With secure noise the roundings of float64 are counted in.
    """
    clipping, clip = ledger.text("clipping", get_args(Clipping)), ledger.number("clip")
    expected = np.full(ledger.nodes, 2 * clip)
    together = records_per_person(ledger)
    if ledger.text("unit") == "record":
        if clipping == "node":
            ledger.refuse("has unit record, and clips nodes: every example's gradient must be clipped")
        examples = ledger.per_node("examples_per_node")
        if (examples < 1).any():
            ledger.refuse("has a node without examples")
        if ledger.says("batch") and (examples != ledger.number("batch")).any():
            ledger.refuse("averages gradients over other numbers of examples than its batch")
        if together > examples.min():
            ledger.refuse(f"hides {together} records of a person, and a node averages over {examples.min():g}")
        expected = expected * together / examples
    written = ledger.per_node("sensitivity")
    if not np.allclose(written, expected, rtol=TOLERANCE, atol=0):
        node = int(np.argmax(np.abs(written - expected)))
        ledger.refuse(
            f"has sensitivity {written[node]:.6g} of node {node}, and clip and unit make it {expected[node]:.6g}"
        )
    if clipping == "none":
        return np.full(ledger.nodes, np.inf)
    if ledger.noise_source == "secure":
        sizes = ledger.per_node("examples_per_node") if ledger.has("examples_per_node") else 0.0
        return discrete.sensitivity(expected, clip, sizes, int(ledger.number("dim")))
    return expected


def constant(ledger: LedgerTables, name: str) -> FloatArray:
    """[nodes] a table that is the same in all epochs, of numbers above 0."""
    table = above_zero(ledger, name)
    if len(table) > 1:
        ledger.refuse(f"has {name} that changes over epochs")
    return table[0]


def gains(ledger: LedgerTables, round_name: str) -> csr_array:
    """[sender, receiver] the gains of a round's links."""
    sender, receiver, values = ledger.links(round_name)
    return csr_array((values, (sender, receiver)), (ledger.nodes, ledger.nodes))


def law_of(ledger: LedgerTables) -> Law:
    """Of the noise that hides a vector of the model's size."""
    if ledger.noise_source == "secure":
        return Law("discrete gaussian", dim=int(ledger.number("dim")))
    sampling = sampling_of(ledger)
    return GAUSSIAN if sampling is None else Law("sampled gaussian", rates=sampling.rates, overflow=sampling.overflow)


def above_zero(ledger: LedgerTables, name: str, sends: FloatArray | None = None) -> FloatArray:
    """A table of numbers above 0, of all nodes that have not dropped out."""
    table = ledger.table(name)
    needed = np.ones(table.shape) if sends is None else row_of(sends, np.arange(1, len(table) + 1))
    if not (table[needed > 0] > 0).all():
        ledger.refuse(f"has a 0 in {name}")
    return table


def require_row_stochastic(ledger: LedgerTables, amplitude: FloatArray, sends: FloatArray | None) -> None:
    """The mixed point is made of what was sent, the node's own noisy signal among it, with weights that sum to 1.

    Own term: kept = (1 - d/R) / amplitude. Any other coefficient is that of a point which is not the public one. A node
    that has dropped out mixes nothing any more.
    """
    taking_part = np.ones_like(amplitude[:1]) if sends is None else sends
    sender, receiver, gain = ledger.links("model")
    degree = np.bincount(sender, minlength=ledger.nodes)
    share = degree / ledger.number("normaliser")
    if (share > 1).any() or not np.array_equal(degree, np.bincount(receiver, minlength=ledger.nodes)):
        ledger.refuse("has links that do not fit its normaliser, or go one way only")
    kept, heard = ledger.table("model_receiving_kept"), ledger.table("model_receiving_heard")
    tables = (amplitude, kept, heard, taking_part)
    for epoch in range(1, max(map(len, tables)) + 1):
        loud, own, factor, here = (row_of(table, epoch) for table in tables)
        off = np.abs(own * loud - 1 + share) * here
        if not (off <= TOLERANCE).all():
            node = int(np.argmax(off))
            ledger.refuse(f"has model_receiving_kept of node {node} at which its own noisy signal is not what it keeps")
        arriving = np.bincount(receiver, gain * loud[sender], ledger.nodes)
        if not np.allclose(factor * arriving * here, share * here, rtol=TOLERANCE, atol=TOLERANCE):
            ledger.refuse("has amplitudes, gains and model_receiving_heard that do not belong together")


def by_epoch(ledger: LedgerTables, name: str) -> FloatArray:
    """[epochs] or [epochs, nodes] numbers of 0 or more, whichever the ledger has."""
    if ledger.ndim(name) == 1:
        return ledger.per_epoch(name)
    return np.asarray(row_of(ledger.table(name), np.arange(1, ledger.epochs + 1)))


def loudest(ledger: LedgerTables, name: str) -> FloatArray:
    """[nodes] the largest amplitude of a node's signals, of a table that is the same in all epochs."""
    amplitudes = ledger.table(name) if ledger.ndim(name) == 2 else ledger.link_table(name).max(axis=2)
    if len(amplitudes) > 1 or not (amplitudes > 0).all():
        ledger.refuse(f"has a 0 in {name}, or changes it over epochs")
    return np.asarray(amplitudes[0])


def require_weights(ledger: LedgerTables, round_name: str, sums: Sums) -> csr_array:
    """[receiver, sender] the weights that a round's tables make of its links; what should sum to 1 does.

    Of the tables that `murmurcast.algorithms.mixer` makes: by air, orthogonal access or slots. So a mixed point is made
    of what was sent, the node's own noisy signal among it as it was sent.
    """
    kind = ledger.text(f"{round_name}_channel", ("air", "links", "slots"))
    sender, receiver, gain = ledger.links(round_name)
    loud, factor = f"{round_name}_sending_amplitude", f"{round_name}_receiving_heard"
    order = np.lexsort((receiver, sender))  # as a node's row of gains has them
    sender, receiver, gain = sender[order], receiver[order], gain[order]
    amplitude, heard = loudest(ledger, loud)[sender], np.ones(1)
    if kind == "slots":
        slot = _places(sender, ledger.nodes)
        amplitude = _entries(ledger, loud, sender, slot)
    if kind == "links":
        by_receiver = np.lexsort((sender, receiver))
        place = np.empty(len(sender), np.int64)
        place[by_receiver] = _places(receiver[by_receiver], ledger.nodes)
        heard = _entries(ledger, factor, receiver, place)
    else:
        heard = constant(ledger, factor)[receiver]
    first = amplitude[np.searchsorted(sender, np.arange(ledger.nodes))] if kind == "slots" else loudest(ledger, loud)
    own = constant_or_zero(ledger, f"{round_name}_receiving_kept") * first
    weights = csr_array((heard * gain * amplitude, (receiver, sender)), (ledger.nodes, ledger.nodes))
    weights = csr_array(weights + diags_array(own))
    for name, axis in (("rows", 1), ("columns", 0)):
        if sums in (name, "both") and not np.allclose(weights.sum(axis=axis), 1, rtol=0, atol=TOLERANCE):
            ledger.refuse(f"has amplitudes, gains and factors of round {round_name} whose {name} do not sum to 1")
    return weights


def require_same(ledger: LedgerTables, name: str, other: str) -> None:
    """Two tables hold the same numbers."""
    one, two = (ledger.table(each) if ledger.ndim(each) == 2 else ledger.link_table(each) for each in (name, other))
    if not np.array_equal(one, two):
        ledger.refuse(f"has other numbers in {name} than in {other}")


def constant_or_zero(ledger: LedgerTables, name: str) -> FloatArray:
    """[nodes] a table that is the same in all epochs, of numbers of 0 or more."""
    table = ledger.table(name)
    if len(table) > 1:
        ledger.refuse(f"has {name} that changes over epochs")
    return table[0]


def _places(owner: "NDArray[np.int64]", nodes: int) -> "NDArray[np.int64]":
    """[links] which of its owner's links each is, from 0; links sorted by owner."""
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=nodes))[:-1]])
    return np.asarray(np.arange(len(owner)) - first[owner])


def _entries(ledger: LedgerTables, name: str, owner: "NDArray[np.int64]", place: "NDArray[np.int64]") -> FloatArray:
    table = ledger.link_table(name)
    if len(table) > 1 or place.max() >= table.shape[2]:
        ledger.refuse(f"has a {name} that does not fit its links")
    entries = table[0, owner, place]
    if not (entries > 0).all():
        ledger.refuse(f"has a 0 in {name}")
    return np.asarray(entries)


def require_z(ledger: LedgerTables, amplitude: FloatArray, starts: tuple[Z, ...]) -> None:
    """What gradients are divided by follows from the ledger's own weights: by the recursion, or its limit.

    Ends that are fixed beforehand change neither: z is that of the whole network.

    Args:
        ledger: The ledger, of row-stochastic weights.
        amplitude: [rows, nodes] of the models.
        starts: How z may have begun.
    """
    heard, degree = ledger.table("model_receiving_heard")[0], np.bincount(ledger.links("model")[0], None, ledger.nodes)
    if (degree < 1).any():
        ledger.refuse("has a node without links")
    arriving = csr_array(gains(ledger, "model").T @ diags_array(amplitude[0]))
    own = diags_array(1 - degree / ledger.number("normaliser"))
    weights, last = csr_array(diags_array(heard) @ arriving + own), ledger.text("rounds").split()[-1]
    rounds, z = len(ledger.text("rounds").split()), ledger.table(f"{last}_receiving_z")
    # Only the recursion begins at 1, and only it changes.
    recursive = "recursive" in starts and np.allclose(z[0], 1, rtol=_Z_TOLERANCE)
    if recursive and ledger.nodes > RECURSIVE_UP_TO:  # before anything of nodes x nodes is laid out
        ledger.refuse(f"has a {last}_receiving_z that no plan of more than {RECURSIVE_UP_TO} nodes has")
    try:
        together = (
            weights if rounds == 1 or not recursive else csr_array(np.linalg.matrix_power(weights.toarray(), rounds))
        )
        expected = z_diagonal(together, ledger.epochs, "recursive") if recursive else perron(weights)[None]
    except Error as problem:
        ledger.refuse(f"has a model_receiving_z that no plan has: {problem}")
    for first in range(1, ledger.epochs + 1 if recursive else len(z) + 1, _EPOCHS_PER_CHUNK):
        here = np.arange(first, min(first + _EPOCHS_PER_CHUNK, ledger.epochs + 1))
        off = np.abs(row_of(z, here) / row_of(expected, here) - 1)
        if not (off <= _Z_TOLERANCE).all():
            node = int(np.argmax(off.max(axis=0)))
            ledger.refuse(f"has a {last}_receiving_z of node {node} that does not follow from its gains and amplitudes")


def require_divisor(ledger: LedgerTables, name: str, expected: FloatArray) -> None:
    """What is divided by follows from the ledger's own weights, from which `expected` [rows, nodes] was made."""
    epochs = np.arange(1, ledger.epochs + 1)
    if not np.allclose(row_of(ledger.table(name), epochs), row_of(expected, epochs), rtol=_Z_TOLERANCE, atol=0):
        ledger.refuse(f"has a {name} that does not follow from its gains and amplitudes")


def require_grid(ledger: LedgerTables, schedule: FloatArray, amplitude: FloatArray, noise: FloatArray) -> None:
    """The grid of every epoch and node is the one of its noise, and the sampler is the one that is counted."""
    if ledger.number("sampler_error") != discrete.SAMPLER_ERROR:
        ledger.refuse(f"was written with another sampler: its error is {ledger.number('sampler_error'):g}")
    spacing, limit = above_zero(ledger, "model_sending_spacing"), ledger.table("model_receiving_limit")
    fine = 2.0**discrete.FINENESS
    for first in range(1, ledger.epochs + 1, _EPOCHS_PER_CHUNK):
        here = np.arange(first, min(first + _EPOCHS_PER_CHUNK, ledger.epochs + 1))
        steps, following = row_of(spacing, here), row_of(spacing, np.minimum(here + 1, ledger.epochs))
        with np.errstate(all="ignore"):
            std = schedule[here - 1, None] * row_of(noise, here) / (row_of(amplitude, here) * steps)
        within = (std >= fine * (1 - TOLERANCE)) & (std <= 2 * fine * (1 + TOLERANCE))
        if not (within & (np.frexp(steps)[0] == 0.5)).all():
            ledger.refuse("has a model_sending_spacing that is not the grid of its noise")
        sent_later = here < ledger.epochs  # what follows the last epoch stays on the node
        if not np.array_equal(row_of(limit, here)[sent_later], discrete.MAX_STEPS * following[sent_later]):
            ledger.refuse("has a model_receiving_limit that does not belong to its grid")
