"""A run for people, and for programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from murmurcast.privacy.rounding import at_most
from murmurcast.reports import text_tables
from murmurcast.runs.radio_use import uses_in_words
from murmurcast.runs.result import samples_in_words

_FAR_WORSE = 10.0  # times the loss at the start

if TYPE_CHECKING:
    from murmurcast.algorithms.base import Algorithm
    from murmurcast.problems.base import Problem
    from murmurcast.runs.radio_use import RadioUse
    from murmurcast.runs.result import Outcome


_COVERED = "of what is sent and of the published models; no noise covers own models"


def show_beginning(algorithm: "Algorithm", problem: "Problem", warned: tuple[str, ...]) -> None:
    """Who holds what, and what may surprise."""
    console = text_tables.console()
    partition = getattr(problem, "data", None)
    if partition is not None:
        console.print(f"[bold]Data[/bold]     {text_tables.plain(repr(partition.dataset))}", soft_wrap=True)
        console.print(text_tables.plain(partition.as_text()), soft_wrap=True)
    for line in (*warned, *warnings(algorithm, problem)):
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}", soft_wrap=True)


def warnings(algorithm: "Algorithm", problem: "Problem") -> list[str]:
    """What may surprise about data, plan and algorithm."""
    partition = getattr(problem, "data", None)
    lines = [] if partition is None else list(partition.warnings)
    from murmurcast.data.assumptions import partition_warnings
    from murmurcast.planning.warnings import without_meaning_for
    from murmurcast.privacy.best_guess import of_releases
    from murmurcast.problems.trust import data_facts
    from murmurcast.runs.record import promises_about_data, why_nothing

    if promises_about_data(algorithm, problem):
        lines += partition_warnings(data_facts(problem), algorithm.setup.budget.unit)
    reason = why_nothing(algorithm, problem)
    if reason:
        return [*lines, f"{algorithm.name}: {reason}: nothing is promised"]
    chance = of_releases(algorithm.releases[0], algorithm.setup.budget.delta)
    return [*lines, *without_meaning_for(algorithm.setup, float(chance.max()))]


def show_end(result: "Outcome", folder: Path) -> None:
    """Metrics at the end, privacy, power, time."""
    console = text_tables.console()
    info, metrics = result.info, result.metrics.variables
    rows = []
    for model, what in (("own", "own"), ("published", "published"), ("mean", "mean of all own")):
        for name in [key for key in metrics if key.startswith(f"{model}_")]:
            final = summary(result, name)
            spread = f"{final['spread']:.4f}" if "spread" in final else ""
            worst = f"{final['worst']:.4f} (node {result.node_names[final['worst_node']]})" if "worst" in final else ""
            rows.append((what, name.split("_", 1)[1], f"{final['mean']:.4f}", spread, worst))
    for name in result.left_by_method:
        final = summary(result, name)
        worst = f"{final['worst']:.4f} (node {result.node_names[final['worst_node']]})"
        rows.append(("left by the method", name, f"{final['mean']:.4f}", "", worst))
    count = len(info["seeds"])
    seeds = f"{count} seed{'s' if count > 1 else ''}"
    title = f"{info['algorithm']} after {info['epochs']} epochs, {seeds}"
    text_tables.show_table(console, title, rows, ("model", "metric", "mean", "spread over seeds", "worst node"))
    for line in diverged(result):
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}", soft_wrap=True)
    privacy, seconds = info["privacy"], info["seconds"]
    cost = _cost(privacy["epsilon"], privacy["delta"]) if privacy["epsilon"] is not None else ""
    radio = result.radio
    lines = (
        ("Privacy", f"{cost}{privacy['basis']}"),
        *([("", _COVERED), ("Means", _meaning(result))] if cost else []),
        *(("", _against_weaker(one, privacy["delta"])) for one in privacy["weaker"]),
        ("", privacy["note"]),
        *(
            [("", f"of one seed, named before the run: all {count} cost sqrt({count}) times mu")]
            if cost and count > 1
            else []
        ),
        *text_tables.headed("Assumed", privacy["assumptions"]),
        ("Power", _power(result, radio)),
        ("Channel", uses_in_words(info, float(result.final("channel_uses")))),
        *([] if radio is None else [("Radio", over_radio(radio, int(info["epochs"])))]),
        ("Nodes", f"lie {float(result.final('consensus_error').mean()):.3g} from their mean (root mean square)"),
        *(("", line) for line in samples_in_words(result)),
        *_processes(result),
        ("Time", f"{seconds['training']:.1f} s training, {seconds['compiling']:.1f} s setting up"),
        ("Kept in", str(folder)),
    )
    for heading, line in lines:
        console.print(f"[bold]{heading:<8}[/bold] {text_tables.plain(line)}", soft_wrap=True)


def _processes(result: "Outcome") -> list[tuple[str, str]]:
    """A line where several processes trained."""
    if (processes := result.info.get("processes")) is None:
        return []
    count, across = processes["count"], processes["signals_across"]
    return [("", f"in {count} processes, between which {across} signals cross in a round")]


def _against_weaker(promised: dict[str, Any], delta: float) -> str:
    return f"{_cost(promised['epsilon'], delta)}against an {promised['against']} only"


def _cost(epsilon: float, delta: float) -> str:
    return f"epsilon {at_most(epsilon)}, delta {at_most(delta)}: "


def _meaning(result: "Outcome") -> str:
    """What the promise comes to for the node that pays most, from what the ledger promises."""
    from murmurcast.privacy.best_guess import in_words
    from murmurcast.reports.ledger import best_guess_of

    attributes = result.ledger.attributes
    chance = best_guess_of({name: one.values for name, one in result.ledger.variables.items()}, attributes)
    return in_words(float(chance.max()), str(attributes["unit"]))


def diverged(result: "Outcome") -> list[str]:
    """A line where models, or what is sent of them, have left the numbers, or end far worse than they began."""
    looked_at = ("own_loss", "published_loss", "sent_power")
    wild = ~np.all([np.isfinite(result.metrics.variables[name].values).all(axis=(0, 2)) for name in looked_at], axis=0)
    if wild.any():
        first = int(result.metrics.coordinates["epoch"][int(np.argmax(wild))])
        return [f"the run diverged by epoch {first}: shorten schedule.step, or set problem.radius"]
    began = result.info["start_loss"]
    ended = max(float(result.final(name).mean()) for name in ("own_loss", "published_loss"))
    if began is None or not ended > _FAR_WORSE * max(began, 0.0):
        return []
    return [
        f"the models end far worse than they began: loss {ended:.3g}, and {began:.3g} before the first epoch; shorten "
        "schedule.step, or allow a larger privacy.epsilon"
    ]


def summary(result: "Outcome", name: str) -> dict[str, Any]:
    """A metric at the end: mean, spread over seeds, worst node."""
    from murmurcast.runs.result import spread_over_seeds

    final = result.final(name)
    per_seed = final.reshape(len(final), -1).mean(axis=1)
    statistics: dict[str, Any] = {"mean": float(final.mean())}
    if len(final) > 1:
        statistics["spread"] = float(spread_over_seeds(per_seed))
    if final.ndim > 1:
        by_node = final.mean(axis=0)
        worst = int(by_node.argmin() if name.endswith("accuracy") else by_node.argmax())
        number = int(result.metrics.coordinates["node"][worst])
        statistics |= {"worst": float(by_node[worst]), "worst_node": number}
    return statistics


def _power(result: "Outcome", radio: "RadioUse | None") -> str:
    """What was sent, as p is held against it: a whole message, or over a radio a symbol in the mean."""
    words, share = "energy of a whole message over p", 1.0
    if radio is not None:
        words, share = "mean power of a symbol over p", 2 / int(result.info["problem"]["dim"])
    loudest = share * float(result.metrics.variables["loudest"].values.max())
    chance = "; p limits its expectation" if radio is not None and loudest > 1 else ""
    return (
        f"{words}: {_range(share * result.final('sent_power'))} in the last epoch, at most {loudest:.3g} in any{chance}"
    )


def over_radio(radio: "RadioUse", epochs: int) -> str:
    """What the whole run takes over its radio."""
    air, computing = _short(float(radio.air_seconds_until(epochs))), _short(epochs * radio.compute_seconds)
    energy = f"{_range(radio.joules_until(epochs) * 1e3, _short)} mJ a node"
    taken = f"{air} s and {energy} on the air"
    if radio.compute_seconds > 0:
        taken = f"{air} s on the air, {computing} s of computing, and {energy}"
    slots = f"{radio.slots_per_epoch} slot{'s' if radio.slots_per_epoch > 1 else ''} an epoch"
    return f"{radio.access_in_words}: {slots}, {taken} ({radio.energy_in_words})"


def as_dict(result: "Outcome", folder: Path) -> dict[str, Any]:
    """The run as one JSON object."""
    names = [name for name, one in result.metrics.variables.items() if one.dims[:2] == ("seed", "epoch")]
    radio = result.radio
    return {
        "folder": str(folder),
        **result.info,
        "channel_uses": int(result.final("channel_uses")),
        **({} if radio is None else {"radio": _radio_as_dict(radio, result.info["epochs"])}),
        "final": {name: summary(result, name) for name in names},
    }


def _radio_as_dict(radio: "RadioUse", epochs: int) -> dict[str, Any]:
    """Settings, and what the whole run takes."""
    return {
        "settings": radio.settings,
        "slots_per_epoch": radio.slots_per_epoch,
        "air_seconds": float(radio.air_seconds_until(epochs)),
        "compute_seconds": epochs * radio.compute_seconds,
        "joules": radio.joules_until(epochs).tolist(),
        "energy": radio.energy_in_words,
    }


class _Write(Protocol):
    """How a number is written."""

    def __call__(self, value: float, /) -> str:
        """As text."""
        ...


def _range(values: "np.typing.NDArray[Any]", write: _Write = "{:.3g}".format) -> str:
    low, high = write(float(values.min())), write(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    """Three digits, and no powers of ten for what people count in hundreds or thousands."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
