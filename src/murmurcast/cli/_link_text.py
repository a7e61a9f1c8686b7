"""A link budget as tables for people, and as plain values for programs."""

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from murmurcast.reports import text_tables
from murmurcast.reports.text_tables import show_table

if TYPE_CHECKING:
    from murmurcast._check import FloatArray
    from murmurcast.cli.link import LinkAnalysis
    from murmurcast.radio.link_budget import LinkBudget
    from murmurcast.radio.settings import Radio

_NODES_SHOWN = 20


def show(analysis: "LinkAnalysis") -> None:
    """Prints it all."""
    console, budget = text_tables.console(), analysis.budget
    console.print(_glance(analysis))
    show_table(console, "What your radio does", _rows(budget, analysis.radio), ("", "", "what it is"))
    _show_receivers(console, budget)
    console.print("\n[bold]Where it departs from the paper[/bold]")
    for line in budget.departures:
        console.print(f"- {text_tables.plain(line)}")
    for line in analysis.warnings:
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}")


def as_dict(analysis: "LinkAnalysis") -> dict[str, Any]:
    """Everything a program may want. What changes over epochs is given for each node's worst epoch."""
    budget = analysis.budget
    weakest = budget.weakest_snr_db
    return {
        "nodes": analysis.plan.network.nodes,
        "epochs": analysis.plan.schedule.epochs,
        "dim": analysis.dim,
        "radius": analysis.radius,
        "radio": analysis.radio.as_plain() | {"power_dbm": np.asarray(analysis.radio.power_dbm).tolist()},
        "sender": budget.sender.tolist(),
        "receiver": budget.receiver.tolist(),
        "distance_m": None if budget.distance_m is None else budget.distance_m.tolist(),
        "snr_db": budget.snr_db.tolist(),
        **({} if weakest is None else {"weakest_snr_db": [x if np.isfinite(x) else None for x in weakest.tolist()]}),
        "noise_dbm": budget.noise_dbm.tolist(),
        "heard_snr_db": budget.heard_snr_db.tolist(),
        "needed_snr_db": budget.needed_snr_db.max(axis=0).tolist(),
        "receiver_noise_share": budget.receiver_noise_share.max(axis=0).tolist(),
        "receiver_noise_std": budget.receiver_noise_std.max(axis=0).tolist(),
        "doppler_per_epoch": budget.doppler_per_epoch,
        "mixing_rate": budget.mixing_rate,
        "mean_square_rate": budget.mean_square_rate,
        "slots": budget.slots,
        "sendings": budget.sendings.tolist(),
        "symbols": budget.symbols.tolist(),
        "uses_per_epoch": budget.uses,
        "seconds_per_epoch": budget.seconds,
        "joules_per_epoch": budget.joules.tolist(),
        "renewal": None
        if budget.renewal is None
        else {**budget.renewal._asdict(), "joules": budget.renewal.joules.tolist()},
        "departures": list(budget.departures),
        "warnings": list(analysis.warnings),
    }


def _glance(analysis: "LinkAnalysis") -> str:
    radio, network, budget = analysis.radio, analysis.plan.network, analysis.budget
    lengths = "" if budget.distance_m is None else f" of {_span(budget.distance_m, '.3g')} m"
    return "\n".join(
        [
            f"[bold]Radio[/bold]    {radio.access}, {radio.duplex} duplex; {_span(_dbm(radio), 'g')} dBm, "
            f"{radio.bandwidth_hz / 1e6:g} MHz at {radio.carrier_hz / 1e9:g} GHz, receiver noise "
            f"{_span(budget.noise_dbm, '.1f')} dBm",
            f"[bold]Network[/bold]  {network.nodes} nodes, {network.links} links{lengths}",
            f"[bold]Model[/bold]    {analysis.dim} parameters within radius {analysis.radius:g}; "
            f"{analysis.plan.schedule.epochs} epochs",
        ]
    )


def _rows(budget: "LinkBudget", radio: "Radio") -> list[tuple[str, str, str]]:
    share = 100 * budget.receiver_noise_share
    rate = "-" if budget.mixing_rate is None else f"{budget.mixing_rate:.4g}"
    given = radio.circuit_watts > 0 or radio.joules_per_gradient > 0
    energy = "with circuits and gradient as given" if given else "radiated only; computing usually takes far more"
    rows = [
        (
            "SNR of links",
            f"{_span(budget.snr_db, '.1f')} dB",
            f"a sender at full power over the receiver's noise, per symbol; median {np.median(budget.snr_db):.1f} dB",
        ),
        *_over_time(budget),
    ]
    if np.isfinite(budget.needed_snr_db).all():
        rows += [
            (
                "SNR* needed",
                f"{_span(budget.needed_snr_db, '.1f')} dB",
                "below it the receiver's noise exceeds the noise that hides data",
            ),
            (
                "receiver noise",
                f"{_span(share, '.2g')} %",
                "its share of all noise in the mixed point; never counted for privacy",
            ),
            ("tau", _span(budget.receiver_noise_std, ".3g"), "its std in each parameter of the mixed point"),
        ]
    return [
        *rows,
        _changing(budget, radio),
        ("mixing rate", rate, "what a round of the mean weights leaves of disagreement; near 1 is slow"),
        *_mean_square(budget),
        ("slots a round", f"{budget.slots}", f"{_span(budget.sendings, 'd')} of them a node sends in"),
        ("time an epoch", f"{budget.seconds * 1e3:.3g} ms", f"{budget.uses:.0f} channel uses of one symbol"),
        ("energy an epoch", f"{_span(budget.joules * 1e3, '.3g')} mJ", f"a node, at full power; {energy}"),
        *_renewal(budget, radio),
    ]


def _renewal(budget: "LinkBudget", radio: "Radio") -> list[tuple[str, str, str]]:
    """A row where the common reference is renewed."""
    cost = budget.renewal
    if cost is None:
        return []
    often = f"every {radio.recentre_every} epochs besides: {cost.hops} hop{'s' if cost.hops > 1 else ''} of a flood"
    return [("new reference", f"{cost.seconds * 1e3:.3g} ms", f"{often}, {_span(cost.joules * 1e3, '.3g')} mJ a node")]


def _mean_square(budget: "LinkBudget") -> list[tuple[str, str, str]]:
    """A row where weights change."""
    rate = budget.mean_square_rate
    if rate is None:
        return []
    words = "weights change: what a round leaves of disagreement squared, on average"
    return [("mean-square rate", f"{rate:.3g}", words if rate < 1 else f"{words}; AT 1 OR ABOVE MODELS DRIFT APART")]


def _over_time(budget: "LinkBudget") -> list[tuple[str, str, str]]:
    """A row where a trace is played back."""
    weakest = budget.weakest_snr_db
    if weakest is None:
        return []
    heard = weakest[np.isfinite(weakest)]
    silent = len(weakest) - len(heard)
    words = "of every link at its weakest step; above, of the root mean square over time"
    cut = f"; {silent} of {len(weakest)} links are not heard at some step" if silent else ""
    return [("SNR over time", f"{_span(heard, '.1f')} dB" if len(heard) else "-", words + cut)]


def _changing(budget: "LinkBudget", radio: "Radio") -> tuple[str, str, str]:
    """How gains change."""
    if radio.trace is None:
        return "Doppler x epoch", f"{budget.doppler_per_epoch:.3g}", _doppler_in_words(budget, radio)
    again = "; after the last comes the first again" if radio.repeat else ""
    return "trace", f"{radio.trace.steps} steps", f"one an epoch, SHA-256 {radio.trace.sha256[:16]}{again}"


def _doppler_in_words(budget: "LinkBudget", radio: "Radio") -> str:
    if radio.fading == "none":
        return "the shift times an epoch's time; fading is none, so gains stay as they are"
    if radio.fading == "iid":
        return "the shift times an epoch's time; fading is iid, so gains are new in every epoch whatever it is"
    slow = budget.doppler_per_epoch < 0.1  # a rule of thumb
    return f"the shift times an epoch's time; gains change {'slowly from epoch to epoch' if slow else 'fast'}"


def _show_receivers(console: Console, budget: "LinkBudget") -> None:
    """The receivers with the least to spare."""
    worst = budget.needed_snr_db.max(axis=0)
    nodes = len(worst)
    spare = budget.heard_snr_db - worst if np.isfinite(worst).all() else budget.heard_snr_db
    weakest = np.full(nodes, np.inf)
    np.minimum.at(weakest, budget.receiver, budget.snr_db)
    hears = np.bincount(budget.receiver, minlength=nodes)
    shown = sorted(np.argsort(spare, kind="stable")[:_NODES_SHOWN].tolist())
    share = 100 * budget.receiver_noise_share.max(axis=0)
    rows = [
        (
            str(node),
            str(hears[node]),
            f"{weakest[node]:.1f}",
            f"{budget.heard_snr_db[node]:.1f}",
            f"{worst[node]:.1f}" if np.isfinite(worst[node]) else "-",
            f"{share[node]:.2g}",
            f"{budget.joules[node] * 1e3:.3g}",
        )
        for node in shown
    ]
    title = "Receivers" if nodes <= _NODES_SHOWN else f"The {_NODES_SHOWN} receivers with the least to spare"
    headings = ("node", "hears", "weakest link, dB", "heard, dB", "SNR*, dB", "receiver noise, %", "mJ an epoch")
    note = "heard: of the mean amplitude of all links. SNR* and the share: of the worst epoch."
    show_table(console, title, rows, headings, note)


def _dbm(radio: "Radio") -> "FloatArray":
    return np.asarray(radio.power_dbm, np.float64) - radio.backoff_db


def _span(values: Any, how: str) -> str:
    """Least to most, or one number where they read the same."""
    least, most = (format(end.item(), how) for end in (np.min(values), np.max(values)))
    return least if least == most else f"{least} to {most}"
