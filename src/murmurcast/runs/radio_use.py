"""What a run's radio was, and what it took in time and energy: all of it stands in the ledger.

Time is that on the air, and what nodes compute in between where `radio.compute_seconds` says it. Energy is radiated,
and what circuits and gradients take where the radio's settings say that.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.radio import units
from murmurcast.radio.settings import Radio


class RadioUse(NamedTuple):
    """A run's radio. Times and energies are those of an epoch; a run's are so many times as large as it has epochs.

    Attributes:
        settings: As in [radio]; `power_dbm` is a list of every node's, as it was used.
        slots: Of one round.
        rounds: Of an epoch.
        air_seconds: On the air.
        compute_seconds: In between; 0 where that was not given.
        joules: [nodes]
    """

    settings: dict[str, Any]
    slots: int
    rounds: int
    air_seconds: float
    compute_seconds: float
    joules: FloatArray

    @property
    def seconds(self) -> float:
        """On the air, and in between."""
        return self.air_seconds + self.compute_seconds

    @property
    def slots_per_epoch(self) -> int:
        """Of all rounds."""
        return self.slots * self.rounds

    @property
    def access_in_words(self) -> str:
        """How nodes share the air."""
        return f"{self.settings['access']}, {self.settings['duplex']} duplex"

    @property
    def energy_in_words(self) -> str:
        """What the joules hold."""
        given = {"circuits": "circuit_watts", "gradients": "joules_per_gradient"}
        counted = [name for name, key in given.items() if self.settings[key] > 0]
        return f"radiated, and {' and '.join(counted)} as given" if counted else "radiated only"


def radio_round(attributes: Mapping[Any, Any]) -> str | None:
    """The first round that went over a radio, by what a ledger says; None where none did."""
    rounds = str(attributes.get("rounds", "")).split()
    return next((one for one in rounds if f"{one}_radio" in attributes), None)


def radio_use(attributes: Mapping[Any, Any], arrays: Mapping[Any, Any]) -> RadioUse | None:
    """From a ledger's words and numbers, and its arrays by name; None where no round went over a radio."""
    name = radio_round(attributes)
    if name is None:
        return None
    settings = json.loads(attributes[f"{name}_radio"])
    radio = Radio(**settings)  # all that was written, as it would be checked
    power = units.dbm(np.asarray(arrays["power"], np.float64)) + radio.backoff_db
    return RadioUse(
        settings={"power_dbm": power.round(9).tolist(), **settings},
        slots=int(attributes[f"{name}_slots"]),
        rounds=sum(f"{one}_radio" in attributes for one in str(attributes["rounds"]).split()),
        air_seconds=float(attributes[f"{name}_air_seconds"]),
        compute_seconds=float(radio.compute_seconds),
        joules=np.asarray(arrays[f"{name}_joules"], np.float64),
    )
