"""What a run's radio was, and what it took in time and energy: all of it stands in the ledger.

Time is that on the air, and what nodes compute in between where `radio.compute_seconds` says it. Energy is radiated,
and what circuits and gradients take where the radio's settings say that.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.common_reference import NAME
from murmurcast.radio import units
from murmurcast.radio.settings import Radio


class RadioUse(NamedTuple):
    """A run's radio. Times and energies are those of an epoch; `seconds_until` and `joules_until` add epochs up.

    Attributes:
        settings: As in [radio]; `power_dbm` is a list of every node's, as it was used.
        slots: Of one round.
        rounds: Of an epoch.
        air_seconds: On the air.
        compute_seconds: In between; 0 where that was not given.
        joules: [nodes]
        renewed_every: Epochs after which the common reference is renewed; 0 for never.
        renewal_seconds: On the air, of one such flood, which comes on top of its epoch.
        renewal_joules: [nodes] of one such flood.
    """

    settings: dict[str, Any]
    slots: int
    rounds: int
    air_seconds: float
    compute_seconds: float
    joules: FloatArray
    renewed_every: int
    renewal_seconds: float
    renewal_joules: FloatArray

    @property
    def seconds(self) -> float:
        """On the air, and in between."""
        return self.air_seconds + self.compute_seconds

    def seconds_until(self, epochs: ArrayLike) -> FloatArray:
        """[...] on the air and in between, of so many epochs."""
        return np.asarray(np.asarray(epochs) * self.compute_seconds + self.air_seconds_until(epochs))

    def air_seconds_until(self, epochs: ArrayLike) -> FloatArray:
        """[...] on the air, of so many epochs."""
        return np.asarray(np.asarray(epochs) * self.air_seconds + self._renewals(epochs) * self.renewal_seconds)

    def joules_until(self, epochs: ArrayLike) -> FloatArray:
        """[..., nodes] of so many epochs."""
        passed = np.asarray(epochs)[..., None]
        return np.asarray(passed * self.joules + self._renewals(passed) * self.renewal_joules)

    def _renewals(self, epochs: ArrayLike) -> NDArray[np.int64]:
        return np.asarray(epochs) // self.renewed_every if self.renewed_every else np.zeros_like(epochs)

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
    radio = Radio.from_plain(settings)  # all that was written, as it would be checked
    renewed = NAME in str(attributes["rounds"]).split()
    power = units.dbm(np.asarray(arrays["power"], np.float64)) + radio.backoff_db
    return RadioUse(
        settings={"power_dbm": power.round(9).tolist(), **settings},
        slots=int(attributes[f"{name}_slots"]),
        rounds=sum(f"{one}_radio" in attributes for one in str(attributes["rounds"]).split()),
        air_seconds=float(attributes[f"{name}_air_seconds"]),
        compute_seconds=float(radio.compute_seconds),
        joules=np.asarray(arrays[f"{name}_joules"], np.float64),
        renewed_every=radio.recentre_every if renewed else 0,
        renewal_seconds=float(attributes[f"{NAME}_air_seconds"]) if renewed else 0.0,
        renewal_joules=np.asarray(arrays[f"{NAME}_joules"] if renewed else np.zeros(len(power)), np.float64),
    )


def uses_in_words(info: Mapping[str, Any], in_training: float) -> str:
    """The channel uses of a run, with those before training where there are any to speak of."""
    before = info.get("setup_uses") or 0.0
    return f"{int(in_training)} uses" + (f", and about {before:.0f} before training" if before >= 0.5 else "")
