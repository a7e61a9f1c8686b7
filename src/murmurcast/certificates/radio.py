"""What a ledger says of its radio, against the radio's own settings: all of it follows from them, and is made anew.

None of it protects anybody, so none of it is in a run's account; but a folder whose slots, seconds, joules, receiver
noise or loudness are not those of its settings is not the folder of any run. The public factor has one unknown, the
largest norm of a model: it must be the same in all epochs, and bounds from above what nodes may have sent.
"""

import json

import numpy as np
from scipy.special import gammainccinv

from murmurcast._check import FloatArray
from murmurcast.algorithms import common_reference
from murmurcast.algorithms.account import gains
from murmurcast.algorithms.free_rounds import further_rounds
from murmurcast.algorithms.tables import row_of
from murmurcast.certificates.ledger import Ledger, refuse
from murmurcast.certificates.power import FALSE_ALARM, Sent
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.radio.flooding import flood_cost
from murmurcast.radio.physics import Physics, Split, physics
from murmurcast.radio.settings import Radio

_TOLERANCE = 1e-5  # relative: other machines round otherwise
_ROUNDING = 1e-3  # relative: of sums of squares in float32


def is_over_radio(ledger: Ledger) -> bool:
    """Whether models went over a radio."""
    return ledger.data.attrs.get("model_channel") == "radio"


def require_radio(ledger: Ledger, dim: int, sent: Sent, uses: FloatArray) -> None:
    """Slots, seconds, joules, receiver noise, loudness and power sent are those of a run over this radio.

    Args:
        ledger: Of Algorithm 1 over a radio, its account made.
        dim: Coordinates of a model.
        sent: What the metrics say was sent.
        uses: [epochs] channel uses so far, as the metrics have them, of the same epochs.
    """
    radio = Radio.from_plain(json.loads(ledger.text("model_radio")))
    noise_std, alpha = _noise_std(ledger)
    radius = _radius(ledger, alpha, noise_std, dim)
    rounds = ["model", *further_rounds(ledger)]
    if bool(radio.recentre_every) != (common_reference.NAME in ledger.text("rounds").split()):
        ledger.refuse("has a radio whose recentre_every is not that of its rounds")
    network = Network(gains=gains(ledger, "model"), power=ledger.per_node("power"))
    split = Split(alpha, noise_std, int(ledger.number("normaliser")), dim, radius, len(rounds))
    try:
        expected = physics(network, radio, split)
    except Error as problem:
        ledger.refuse(f"has a radio over which no run is: {str(problem)[:120]}")
    for name in rounds:
        _require_round(ledger, name, expected)
    if radio.recentre_every:
        flood = flood_cost(network, radio, dim)
        _require_cost(ledger, common_reference.NAME, flood.seconds, {"joules": flood.joules})
    if not np.array_equal(uses, sent.epochs * expected.slots.number * len(rounds)):
        refuse(ledger.run, "the metrics have channel_uses other than the slots of all rounds so far")
    if len(rounds) == 1 and not radio.recentre_every:  # else mixed points are sent, or differences
        _require_most(ledger, sent, expected.amplitude * radius, dim)


def _require_round(ledger: Ledger, name: str, expected: Physics) -> None:
    if ledger.number(f"{name}_slots") != expected.slots.number:
        ledger.refuse(f"has {name}_slots other than its links and its access take")
    tables = {"receiver_noise": expected.noise, "joules": expected.joules}
    _require_cost(ledger, name, expected.air_seconds, tables)


def _require_cost(ledger: Ledger, name: str, seconds: float, tables: dict[str, FloatArray]) -> None:
    if not np.isclose(ledger.number(f"{name}_air_seconds"), seconds, rtol=_TOLERANCE, atol=0):
        ledger.refuse(f"has {name}_air_seconds other than its messages take over its radio")
    for table, values in tables.items():
        if not np.allclose(ledger.per_node(f"{name}_{table}"), values, rtol=_TOLERANCE, atol=0):
            ledger.refuse(f"has a {name}_{table} that does not follow from its radio")


def _noise_std(ledger: Ledger) -> tuple[FloatArray, FloatArray]:
    """[epochs, nodes] sigma, and [nodes] alpha: how power is shared between models and noise."""
    epochs, power = np.arange(1, ledger.epochs + 1), ledger.per_node("power")
    alpha = ledger.table("model_sending_amplitude")[0] ** 2 / power
    noise = ledger.per_epoch("model_sending_schedule")[:, None] * row_of(ledger.table("model_sending_noise"), epochs)
    return np.asarray(noise / np.sqrt((1 - alpha) * power)), np.asarray(alpha)


def _radius(ledger: Ledger, alpha: FloatArray, noise_std: FloatArray, dim: int) -> float:
    """The largest norm of a model for which the public factor is the ledger's, in every epoch.

    (m/2) / rho_t^2 = max_i (alpha_i r^2 + beta_i m sigma_i,t^2), over further rounds with the loudest's noise too.
    """
    energy = dim / 2 / ledger.per_epoch("model_sending_scale") ** 2
    of_noise = (1 - alpha) * dim * noise_std**2
    share = alpha
    if further_rounds(ledger):
        loudest = np.max((1 / alpha - 1) * noise_std**2, axis=1, keepdims=True)
        of_noise, share = np.concatenate([of_noise, alpha * dim * loudest], axis=1), np.tile(alpha, 2)
    square = np.min((energy[:, None] - of_noise) / share, axis=1).max()
    if square <= 0 or not np.allclose(np.max(share * square + of_noise, axis=1), energy, rtol=_TOLERANCE, atol=0):
        ledger.refuse("has a model_sending_scale that is not that of its noise, with models of one size in all epochs")
    return float(np.sqrt(square))


def _require_most(ledger: Ledger, sent: Sent, model: FloatArray, dim: int) -> None:
    """No node sent more than its largest model and the noise it claims come to, but by a chance that is known."""
    here = sent.epochs - 1
    schedule, scale = (ledger.per_epoch(f"model_sending_{name}")[here, None] for name in ("schedule", "scale"))
    noise = schedule * row_of(ledger.table("model_sending_noise"), sent.epochs)
    largest = np.sqrt(2 * gammainccinv(dim / 2, FALSE_ALARM / sent.energy.size))
    most = np.square(scale * (model + noise * largest))
    # The start is free of data, and may lie anywhere.
    loud = (sent.energy > most * (1 + _ROUNDING)) & np.isfinite(sent.energy) & (sent.epochs > 1)[:, None]
    if loud.any():
        _, epoch, node = np.argwhere(loud)[0]
        refuse(
            ledger.run,
            f"node {node} sent more in epoch {sent.epochs[epoch]} than its model and its noise come to at the ledger's "
            "model_sending_scale",
        )
