"""A ledger as it was loaded: every entry is checked for its shape and its range when it is asked for.

A folder may be incomplete, or edited by somebody who made its hashes anew. Whatever does not fit is refused as
`Altered`.
"""

import re
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.tables import row_of
from murmurcast.errors import Altered, Error
from murmurcast.privacy import settings_chosen
from murmurcast.privacy.conversion import NoiseSource
from murmurcast.problems.sampling import MAX_RECORDS
from murmurcast.runs.result import Result

if TYPE_CHECKING:
    import xarray as xr

LARGEST_NUMBER = 1e100  # beyond, squares and products leave the numbers


class Ledger(NamedTuple):
    """A ledger, and how long its tables must be.

    Attributes:
        data: As it was loaded.
        run: What the run is called.
        nodes: How many nodes there are.
        epochs: T, how many transmissions are in the ledger.
    """

    data: "xr.Dataset"
    run: str
    nodes: int
    epochs: int

    def refuse(self, what: str) -> NoReturn:
        """Says what is wrong with it."""
        refuse(self.run, f"the ledger {what}")

    def text(self, name: str, known: Collection[str] = ()) -> str:
        """An attribute that is one of the known words, or any word."""
        value = self.data.attrs.get(name)
        if not isinstance(value, str):
            self.refuse(f"does not say its {name}")
        if known and value not in known:
            self.refuse(f'has {name} "{value}", expected {" or ".join(sorted(known))}')
        return value

    def number(self, name: str) -> float:
        """An attribute that is a number above 0."""
        value = self.data.attrs.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            self.refuse(f"does not say its {name}")
        if not 0 < value <= LARGEST_NUMBER:
            self.refuse(f"has {name} {value:g}, expected a number above 0")
        return float(value)

    @property
    def noise_source(self) -> NoiseSource:
        """Where the noise came from."""
        return "secure" if self.text("noise_source", ("seeded", "secure")) == "secure" else "seeded"

    @property
    def settings_chosen(self) -> str:
        """How settings were chosen, as the run states."""
        statement = self.text("settings_chosen")
        try:
            settings_chosen.check(statement)
        except Error:
            self.refuse("says how its settings were chosen in words that are not known")
        return statement

    def per_node(self, name: str, *, infinite: bool = False) -> FloatArray:
        """[nodes] numbers of 0 or more."""
        return self._numbers(name, ("node",), (self.nodes,), infinite=infinite)

    @property
    def records_per_node(self) -> "NDArray[np.int64]":
        """[nodes] how many records every node has, as coins and releases before training rest on it."""
        sizes = self.per_node("records_per_node")
        if not ((sizes >= 1) & (sizes <= MAX_RECORDS) & (sizes == np.floor(sizes))).all():
            self.refuse(f"has a number of records_per_node that is not a whole one from 1 to {MAX_RECORDS}")
        return sizes.astype(np.int64)

    def per_epoch(self, name: str) -> FloatArray:
        """[epochs] numbers of 0 or more, not one fewer than there were transmissions."""
        return self._numbers(name, ("epoch",), (self.epochs,))

    def table(self, name: str) -> FloatArray:
        """[rows, nodes] numbers of 0 or more; the last row stands for all later epochs."""
        variable = self._variable(name)
        if variable.ndim != 2 or variable.dims[1] != "node" or not 1 <= variable.shape[0] <= self.epochs:
            self.refuse(f"has {name} of shape {variable.shape}, expected 1 to {self.epochs} rows of {self.nodes} nodes")
        return self._numbers(name, variable.dims, (variable.shape[0], self.nodes))

    def ndim(self, name: str) -> int:
        """How many dimensions a table has."""
        return self._variable(name).ndim

    def link_table(self, name: str) -> FloatArray:
        """[rows, nodes, links] numbers of 0 or more; the last row stands for all later epochs."""
        variable = self._variable(name)
        if variable.ndim != 3 or variable.dims[1] != "node" or not 1 <= variable.shape[0] <= self.epochs:
            self.refuse(f"has {name} of shape {variable.shape}, expected rows of {self.nodes} nodes and their links")
        return self._numbers(name, variable.dims, (variable.shape[0], self.nodes, variable.shape[2]))

    def sends(self, round_name: str) -> FloatArray | None:
        """[rows, nodes] 1 while a node sends, 0 once it has dropped out; None where nobody drops out.

        Who has dropped out stays out, and neither model nor noise of it is sent: tables and words must say the same.
        """
        stated, name = self.data.attrs.get("drops"), f"{round_name}_receiving_sends"
        if stated is None and not self.has(name):
            return None
        sends = self.table(name)
        if not np.isin(sends, (0.0, 1.0)).all() or (np.diff(sends, axis=0) > 0).any() or not sends[0].all():
            self.refuse(f"has a {name} of other numbers than 1 and then 0")
        for part in ("amplitude", "noise"):
            table = self.table(f"{round_name}_sending_{part}")
            rows = np.arange(1, max(len(sends), len(table)) + 1)
            if (row_of(table, rows)[row_of(sends, rows) == 0] != 0).any():
                self.refuse(f"has a {round_name}_sending_{part} of a node that has dropped out")
        last = sends.sum(axis=0).astype(int)
        gone = np.flatnonzero(sends[-1] == 0).tolist()
        dropped = ", ".join(f"node {node} after epoch {last[node]}" for node in gone)
        if stated != dropped:
            self.refuse(f"says that drops are {stated or 'none'}, and its tables have {dropped or 'none'}")
        return sends

    def links(self, round_name: str) -> "tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]":
        """Sender, receiver and gain of every link of a round, each [links]."""
        dims = (f"{round_name}_link",)
        shape = (self.data.sizes.get(dims[0], 0),)
        gain = self._numbers(f"{round_name}_gain", dims, shape)
        ends = tuple(self._numbers(f"{round_name}_{name}", dims, shape) for name in ("sender", "receiver"))
        if any((end >= self.nodes).any() or (end != np.floor(end)).any() for end in ends):
            self.refuse("has a link to a node that does not exist")
        return ends[0].astype(np.int64), ends[1].astype(np.int64), gain

    def has(self, name: str) -> bool:
        """Whether there is a table or array of this name."""
        return name in self.data.variables

    def says(self, name: str) -> bool:
        """Whether there is a word or number of this name."""
        return name in self.data.attrs

    def require_rounds(self, **rounds: str) -> None:
        """The run had these rounds and no others, each with the draws that it names; no gradient came before them."""
        self._require_rounds(rounds, 0)

    def require_rounds_after_gradient(self, **rounds: str) -> None:
        """The same for methods that take one gradient at the public start, before the first round."""
        self._require_rounds(rounds, 1)

    def _require_rounds(self, rounds: dict[str, str], start_gradients: int) -> None:
        if self.text("rounds").split() != list(rounds):
            self.refuse(f'has the rounds "{self.text("rounds")}", expected {" ".join(rounds)}')
        for name, words in rounds.items():
            if self.text(f"{name}_draws") != words:
                self.refuse(f'draws "{self.text(f"{name}_draws")}" in round {name}, expected "{words}"')
        if not same(start_gradients, self.data.attrs.get("start_gradients")):
            self.refuse(f"has other gradients at the start than this method takes there, which are {start_gradients}")

    def require_tables(self, *names: str) -> None:
        """These and no other tables of what is sent and received: what is not known here cannot be accounted for."""
        # Of all rounds, whether the ledger names them or not.
        present = {name for name in map(str, self.data.variables) if re.search("(^|_)(sending|receiving)_", name)}
        for name in sorted(set(names) - present):
            self.refuse(f"has no {name}")
        for name in sorted(present - set(names)):
            self.refuse(f"has {name}, which this algorithm does not use")

    def _variable(self, name: str) -> "xr.DataArray":
        if name not in self.data.variables:
            self.refuse(f"has no {name}")
        variable = self.data[name]
        if variable.dtype.kind not in "fiu":
            self.refuse(f"has {name}, which must be numeric")
        return variable

    def _numbers(
        self, name: str, dims: tuple[Any, ...], shape: tuple[int, ...], *, infinite: bool = False
    ) -> FloatArray:
        variable = self._variable(name)
        if variable.dims != dims or variable.shape != shape:
            self.refuse(f"has {name} of shape {variable.shape}, expected {shape}")
        values = np.asarray(variable, np.float64)
        if np.isnan(values).any() or not (infinite or np.isfinite(values).all()):
            self.refuse(f"has a number in {name} that is not finite")
        if (values < 0).any():
            self.refuse(f"has a negative number in {name}")
        if (values[np.isfinite(values)] > LARGEST_NUMBER).any():
            self.refuse(f"has a number above {LARGEST_NUMBER:g} in {name}")
        return values


def said(run: Result, *keys: str) -> Any:
    """What run.json says."""
    value: Any = run.info
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            refuse(str(run.info.get("name", "run")), f"run.json does not say its {'.'.join(keys)}")
        value = value[key]
    return value


def refuse(run: str, what: str) -> NoReturn:
    """Says what is wrong with a run."""
    raise Altered(f'run "{run}": {what}', hint="restore the run's folder, or run it again")


def is_number(value: Any) -> "TypeGuard[float]":
    """One that can be reckoned with: files may hold whole numbers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def same(one: object, other: object) -> bool:
    """Equal words, or equal numbers whatever their type: a file knows 1, 1.0 and NumPy's kinds of both."""
    numbers = (int, float, np.integer, np.floating)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
    return isinstance(one, str) and isinstance(other, str) and one == other
