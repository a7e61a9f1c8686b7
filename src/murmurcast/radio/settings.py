"""What is known of the radio: power, band, receiver, how nodes share the air, and how the channel moves."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.radio import units
from murmurcast.radio.trace import ChannelTrace

LARGEST_SEED = 2**32 - 1  # a key has 32 bits for it
AccessName = Literal["aligned", "own-slot", "referenced", "digital"]
Duplex = Literal["half", "full"]
Fading = Literal["none", "iid", "jakes"]
_SPEED_MPS = 1.0
_OF_A_TRACE = ("trace", "repeat")


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class Radio:
    """A radio, in physical units. Gains of the network are then amplitudes with real path loss.

    Args:
        power_dbm: Mean power of one complex symbol, one number or one per node.
        backoff_db: What an amplifier needs below that; it is subtracted.
        bandwidth_hz: B; one complex symbol takes 1/B seconds.
        carrier_hz: f_c.
        noise_figure_db: Of the receivers.
        temperature_k: Of the receivers.
        self_interference_db: By how much a node hears itself less than it sends, where it hears while it sends.
        access: How nodes share the air: "aligned" (the paper's ideal: phases agree at every receiver), "own-slot"
            (every sender alone), "referenced" (all at once, one pilot, nobody knows the channel) or "digital".
        duplex: "half": a node does not hear while it sends; "full".
        pilots: Symbols of a pilot.
        kappa: Of "referenced": how far a node moves to what it hears.
        damping: Of "referenced": c, what keeps it still when it hears little.
        dither: Of "referenced": whether every node turns its phase at random, publicly, in every epoch.
        bits: Of "digital": per parameter.
        gap_db: Of "digital": how far from capacity the link works.
        hold_below: A receiver keeps its own point where the pilot's energy is below so many times its noise.
        recentre_every: Epochs after which all take node 0's mixed point as their common reference; 0 for never.
        fading: "none", "iid" (new in every epoch) or "jakes" (by Doppler shift).
        k_factor_db: A line of sight, so far above the scattered power; None for none.
        speed_mps: How fast nodes move against each other.
        trace: A channel that is played back instead: epoch t takes step t - 1, all its rounds the same. The network
            must be the trace's own, `trace.network(power=radio.power_w)`.
        repeat: After the last step of the trace comes the first again; else a run may have no more epochs than steps.
        compute_seconds: Between two exchanges.
        efficiency: Share of symbols that carry data or pilots; the rest is prefix and guard.
        circuit_watts: What a node takes besides what it radiates.
        joules_per_gradient: What a gradient costs.
        compensation_error: Standard deviation of a relative error of the pilot, new in every round, to see what it
            does.
        calibration_error: The same of an error that every receiver has for good.
        phase_std: Radians by which aligned phases miss, to see what it does.
        cfo: Radians by which a sender's data turns against its pilot, as a wrong carrier does, for the same.
        seed: Of fading, phases and dither: public, and the same for all runs.
    """

    power_dbm: ArrayLike = 20.0
    backoff_db: float = 0.0
    bandwidth_hz: float = 1e6
    carrier_hz: float = 2.4e9
    noise_figure_db: float = 7.0
    temperature_k: float = 290.0
    self_interference_db: float = 110.0
    access: AccessName = "own-slot"
    duplex: Duplex = "half"
    pilots: int = 64
    kappa: float = 1.0
    damping: float = 1.0
    dither: bool = True
    bits: int = 6
    gap_db: float = 3.0
    hold_below: float = 10.0
    recentre_every: int = 0
    fading: Fading = "none"
    k_factor_db: float | None = None
    speed_mps: float = _SPEED_MPS
    trace: ChannelTrace | None = None
    repeat: bool = False
    compute_seconds: float = 0.0
    efficiency: float = 0.8
    circuit_watts: float = 0.0
    joules_per_gradient: float = 0.0
    compensation_error: float = 0.0
    calibration_error: float = 0.0
    phase_std: float = 0.0
    cfo: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive(
            bandwidth_hz=self.bandwidth_hz,
            carrier_hz=self.carrier_hz,
            temperature_k=self.temperature_k,
            efficiency=self.efficiency,
            kappa=self.kappa,
            damping=self.damping,
        )
        _check.not_negative(
            hold_below=self.hold_below,
            speed_mps=self.speed_mps,
            compute_seconds=self.compute_seconds,
            circuit_watts=self.circuit_watts,
            joules_per_gradient=self.joules_per_gradient,
            compensation_error=self.compensation_error,
            calibration_error=self.calibration_error,
            phase_std=self.phase_std,
            cfo=self.cfo,
        )
        _check.at_least(1, pilots=self.pilots, bits=self.bits)
        _check.at_least(0, recentre_every=self.recentre_every, seed=self.seed)
        _check.at_most(LARGEST_SEED, seed=self.seed)
        _check.one_of(get_args(AccessName), access=self.access)
        _check.one_of(get_args(Duplex), duplex=self.duplex)
        _check.one_of(get_args(Fading), fading=self.fading)
        if self.efficiency > 1:
            raise Error(
                f"efficiency is {self.efficiency:g}, expected at most 1", hint="give it as a share, such as 0.8"
            )
        self._check_decibels()
        if self.access == "referenced" and not self.dither and self.fading == "none":
            raise Error(
                "referenced access without dither diverges on a channel that stands still",
                hint="set radio.dither = true, or give the channel fading",
            )
        if self.trace is not None:
            self._check_trace(self.trace)
        elif self.repeat:
            raise Error("repeat has no meaning without a trace", hint="remove radio.repeat, or give radio.trace")

    def _check_trace(self, trace: ChannelTrace) -> None:
        _check.instance(ChannelTrace, trace=trace)
        ours = {"fading": self.fading != "none", "k_factor_db": self.k_factor_db is not None}
        for name, given in {**ours, "speed_mps": self.speed_mps != _SPEED_MPS}.items():
            if given:
                raise Error(
                    f"{name} has no meaning beside a trace, which says how the channel changes",
                    hint=f"remove radio.{name}, or radio.trace",
                )
        if trace.blocks > 1:
            raise Error(
                f"the trace has {trace.blocks} blocks of the band, and a run sends all of a message through one",
                hint="keep one of them, such as mc.ChannelTrace(gains=trace.gains[..., 0]).save(path)",
            )
        if trace.carrier_hz not in (None, self.carrier_hz):
            raise Error(
                f"the trace was measured at {trace.carrier_hz:g} Hz, and carrier_hz is {self.carrier_hz:g}",
                hint=f"set radio.carrier_hz = {trace.carrier_hz:g}",
            )

    def _check_decibels(self) -> None:
        for name in ("backoff_db", "noise_figure_db", "self_interference_db", "gap_db", "k_factor_db"):
            value = getattr(self, name)
            if value is not None and not abs(value) <= 400:
                raise Error(f"{name} is {value:g}, expected -400 to 400", hint="give it in decibels")
        power = np.asarray(self.power_dbm, np.float64)
        if not (np.abs(power) <= 100).all():
            raise Error("power_dbm is beyond -100 to 100", hint="give it in dBm: 20 is a tenth of a watt")

    @property
    def power_w(self) -> FloatArray:
        """What a node may send with, in watts: one number or [nodes]."""
        return units.watts(np.asarray(self.power_dbm, np.float64) - self.backoff_db)

    def noise_w(self, power: FloatArray) -> FloatArray:
        """[nodes] N, what a receiver adds to every complex symbol, in watts; with its own signal in full duplex."""
        thermal = units.thermal_noise(self.bandwidth_hz, self.noise_figure_db, self.temperature_k)
        leaking = power * units.ratio(-self.self_interference_db) if self.duplex == "full" else np.zeros_like(power)
        return np.asarray(thermal + leaking)

    @property
    def varies(self) -> bool:
        """Whether weights change from epoch to epoch."""
        return self.fading != "none" or self.access == "referenced" or self.trace is not None

    @property
    def doppler_hz(self) -> float:
        """f_D = v f_c / c."""
        return self.speed_mps * self.carrier_hz / units.SPEED_OF_LIGHT

    def as_plain(self) -> dict[str, Any]:
        """All settings but the power, which is a node's; a trace by its SHA-256, and nothing of one where none is."""
        left_out = ("power_dbm", *(() if self.trace is not None else _OF_A_TRACE))
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in left_out}
        return plain if self.trace is None else {**plain, "trace": self.trace.sha256}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The radio of such settings, without its trace: that they only name."""
        if not isinstance(plain, Mapping):
            raise Error("the settings of a radio are not a table", hint="restore the run's folder")
        if not re.fullmatch("[0-9a-f]{64}", plain.get("trace", "0" * 64)):
            raise Error("the trace is not named by its SHA-256", hint="restore the run's folder")
        return cls(**{name: value for name, value in plain.items() if name not in _OF_A_TRACE})
