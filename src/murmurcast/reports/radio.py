"""What the page says of a run's radio: how nodes share the air, in which units, and what it took."""

from typing import Any

import numpy as np

from murmurcast.reports.page import Block, Cell, Row, Table, Text
from murmurcast.runs.radio_use import RadioUse
from murmurcast.runs.result import Result

_ACCESS = {
    "aligned": "the paper's ideal: all send at once, and phases agree at every receiver",
    "own-slot": "every sender is heard alone",
    "referenced": "all send at once with one pilot, and nobody knows the channel",
    "digital": "every sender is heard alone, quantised",
}
_FADING = {"none": "gains stay", "iid": "gains are new in every epoch", "jakes": "gains change by Doppler shift"}
_UNAFFECTED = (
    "What the run promises does not depend on the radio: gains, phases, pilots and receivers' noise are free of data, "
    "and none of them is counted as protection."
)


def blocks(run: Result) -> list[Block]:
    """A table of settings, time and energy; nothing where the run has no radio."""
    radio = run.radio
    if radio is None:
        return []
    rows = (*_settings(radio), *_taken(radio, int(run.info["epochs"])))
    note = (
        f"Energy is {radio.energy_in_words}. All other settings are in the ledger. The power budget p is that of a "
        "symbol, two parameters each."
    )
    return [Table("Radio", ("", "", "what it is"), rows, note), Text((_UNAFFECTED,))]


def _settings(radio: RadioUse) -> tuple[Row, ...]:
    settings, power = radio.settings, np.asarray(radio.settings["power_dbm"]) - radio.settings["backoff_db"]
    sight = (
        ""
        if settings["k_factor_db"] is None
        else f"; a line of sight {settings['k_factor_db']:g} dB above what is scattered"
    )
    hears = "hears" if settings["duplex"] == "full" else "does not hear"
    shown = {f"{power.min():.3g}", f"{power.max():.3g}"}
    rounds = f", in {radio.rounds} rounds of an epoch" if radio.rounds > 1 else ""
    return (
        ("access", str(settings["access"]), _ACCESS[settings["access"]]),
        ("duplex", str(settings["duplex"]), f"a node {hears} while it sends"),
        ("power", f"{' to '.join(sorted(shown, key=float))} dBm", "of a symbol, mean"),
        ("bandwidth", f"{settings['bandwidth_hz'] / 1e6:.4g} MHz", f"at {settings['carrier_hz'] / 1e9:.4g} GHz"),
        ("pilots", str(settings["pilots"]), "symbols before every message"),
        _changing(settings, sight),
        ("slots of a round", Cell(str(radio.slots), radio.slots), f"each as long as one message{rounds}"),
    )


def _changing(settings: dict[str, Any], sight: str) -> Row:
    if "trace" in settings:
        again = "; after the last comes the first again" if settings["repeat"] else ""
        return "trace", f"SHA-256 {settings['trace'][:16]}", f"a channel is played back, one step an epoch{again}"
    return "fading", str(settings["fading"]), f"{_FADING[settings['fading']]}{sight}"


def _taken(radio: RadioUse, epochs: int) -> tuple[Row, ...]:
    energy, in_all = float(radio.joules.mean()), float(radio.joules_until(epochs).mean())
    time = float(radio.seconds_until(epochs))
    computing = f", and {radio.compute_seconds:.4g} s computing" if radio.compute_seconds > 0 else ""
    return (
        ("time of an epoch", Cell(f"{radio.seconds * 1e3:.4g} ms", radio.seconds), f"on the air{computing}"),
        ("time of the run", Cell(f"{time:.4g} s", time), f"{epochs} epochs{_renewed(radio)}"),
        ("energy of an epoch", Cell(f"{energy * 1e3:.4g} mJ", energy), "of a node, mean over nodes"),
        ("energy of the run", Cell(f"{in_all * 1e3:.4g} mJ", in_all), "of a node, mean over nodes"),
    )


def _renewed(radio: RadioUse) -> str:
    if not radio.renewed_every:
        return ""
    return f", and every {radio.renewed_every} epochs {radio.renewal_seconds * 1e3:.4g} ms to renew the reference"
