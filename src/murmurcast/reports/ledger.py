"""What a run's ledger says of its network: gains, power split, and the paper's view of one epoch."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.privacy import paper
from murmurcast.privacy.best_guess import best_guess
from murmurcast.privacy.conversion import Curve, curve
from murmurcast.runs.result import Result


class Split(NamedTuple):
    """How power is split.

    Attributes:
        alpha: Share for the model, of every node, or of every link in the order of the ledger.
        beta: Share for the noise; 0 where no noise is sent, whatever the model leaves over.
    """

    alpha: FloatArray
    beta: FloatArray


def promised_epsilon(run: Result) -> FloatArray:
    """[nodes] at the run's delta; infinite where nothing is promised."""
    if "promised_epsilon" in run.ledger:  # of records that join by coins it is not a function of mu alone
        return np.asarray(run.ledger["promised_epsilon"], np.float64)
    promised = np.asarray(run.ledger["promised_mu"], np.float64)
    return _curve(run.ledger.attrs).epsilon(promised, float(run.ledger.attrs["delta"]))


def _curve(attributes: Mapping[str, Any]) -> Curve:
    if attributes.get("law") == "laplace":
        return Curve(laplace=True)
    return curve(attributes.get("noise_source", "seeded"), int(attributes.get("dim", 0)), int(attributes["epochs"]))


def best_guess_of(ledger: Mapping[Any, Any], attributes: Mapping[str, Any]) -> FloatArray:
    """[nodes] the best chance of guessing right under what a ledger promises.

    Args:
        ledger: Its arrays, by name.
        attributes: Its words and numbers: of its noise, and delta.
    """
    if "promised_best_guess" in ledger:  # of records that join by coins it is not a function of mu alone
        return np.asarray(ledger["promised_best_guess"], np.float64)
    return best_guess(ledger["promised_mu"], _curve(attributes), float(attributes["delta"]))


def nodes(run: Result) -> int:
    """How many nodes there are."""
    return int(run.ledger.sizes["node"])


def power_share(run: Result) -> float:
    """What makes of `sent_power` the share of p that is used: over a radio p is that of a symbol, two parameters."""
    return 1.0 if run.radio is None else 2 / int(run.info["problem"]["dim"])


def gains(run: Result) -> csr_array | None:
    """[sender, receiver] the gains of all links; None where there are none, as with a server."""
    first = first_round(run)
    if f"{first}_gain" not in run.ledger:
        return None
    names = (f"{first}_{part}" for part in ("sender", "receiver", "gain"))
    sender, receiver, values = (np.asarray(run.ledger[name]) for name in names)
    return csr_array((values, (sender, receiver)), shape=(nodes(run), nodes(run)))


def first_round(run: Result) -> str:
    """The name of the round that a ledger's pages are about: the first, in which models are sent."""
    return str(run.ledger.attrs["rounds"]).split()[0]


def is_sum(run: Result) -> bool:
    """Whether models are sent once to all, and heard as a sum."""
    return bool(run.ledger.attrs[f"{first_round(run)}_channel"] == "air")


def split_of_nodes(run: Result) -> Split | None:
    """[nodes] the power split where every node has one for all it sends; None where it has not."""
    amplitude = constant(run, "model_sending_amplitude")
    if amplitude is None or amplitude.ndim != 1:
        return None
    return _split(amplitude, np.asarray(run.ledger["power"]), constant(run, "model_sending_noise"))


def split_of_links(run: Result) -> Split | None:
    """[links] the power split where every link has its own; None where it has not."""
    amplitude, noise = constant(run, "model_sending_amplitude"), constant(run, "model_sending_noise")
    links = gains(run)
    if links is None or amplitude is None or amplitude.ndim != 2:
        return None
    sender = np.asarray(run.ledger["model_sender"])
    slot = np.arange(len(sender)) - links.indptr[sender]  # neighbours in the order of the sender's row of gains
    power = np.asarray(run.ledger["power"])[sender]
    return _split(amplitude[sender, slot], power, None if noise is None else noise[sender, slot])


def theta(run: Result) -> float | None:
    """The largest 1/z; None where nothing is divided by z."""
    return float(1 / run.ledger["model_receiving_z"].min()) if "model_receiving_z" in run.ledger else None


def epsilon_per_epoch(run: Result) -> csr_array | None:
    """[receiver, sender] the paper's eps_ij, a claim about one epoch seen alone.

    Theorem 1 speaks of nodes that send a model with noise and divide by z: None where a run is not of that kind. Its
    theta is the largest 1/z of the ledger.
    """
    split, links, bound = split_of_nodes(run), gains(run), theta(run)
    if split is None or links is None or bound is None or not is_sum(run) or not (split.beta > 0).all():
        return None
    power = np.asarray(run.ledger["power"])
    noise = constant(run, "model_sending_noise")
    if noise is None:
        return None
    noise_to_step = noise / np.sqrt(split.beta * power)
    ratio = paper.ratio(links, power, split.alpha, noise_to_step, np.asarray(run.ledger["sensitivity"]), bound)
    return paper.epsilon_per_epoch(ratio, float(run.ledger.attrs["delta"]))


def constant(run: Result, name: str) -> FloatArray | None:
    """A table that is the same in all epochs, without the axis of epochs; None where there is no such table."""
    if name not in run.ledger or "always" not in run.ledger[name].dims:
        return None
    return np.asarray(run.ledger[name].isel(always=0), np.float64)


def _split(amplitude: FloatArray, power: FloatArray, noise: FloatArray | None) -> Split:
    alpha = np.clip(amplitude**2 / power, 0.0, 1.0)
    sent = np.zeros(len(alpha), bool) if noise is None else noise > 0
    return Split(alpha, np.where(sent, 1 - alpha, 0.0))
