"""Settles what a file leaves to its network: epochs and rounds for a number of channel uses, a step for a distance.

Both are free of data. The settled experiment says epochs, rounds and step as if they had been written, so that whoever
runs or certifies it needs to choose nothing.
"""

from pathlib import Path

from murmurcast.algorithms import registry
from murmurcast.errors import Error
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.schema import ScheduleSection
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.spend_uses import Spending, spend_uses, step_of_travel
from murmurcast.radio.slots import slots

INSTEAD_OF = {"uses": ("epochs", "rounds"), "travel": ("step",)}  # what is given instead of what


def settle(experiment: Experiment, folder: Path = Path()) -> Experiment:
    """The experiment with epochs, rounds and step; `folder` is where its relative files start."""
    section = experiment.schedule
    _require_one_of_each(section)
    if section.uses is not None:
        spent, leaning = _spent(experiment, section.uses, folder)
        chosen = {"epochs": spent.epochs, "rounds": spent.rounds, "accelerated": leaning, "uses": None}
        section = section.model_copy(update=chosen)
    if section.travel is not None:
        plain = Schedule(epochs=section.epochs, decay=section.decay)
        step = step_of_travel(section.travel, float(plain.steps.sum()))
        section = section.model_copy(update={"step": step, "travel": None})
    return experiment.model_copy(update={"schedule": section})


def _require_one_of_each(section: ScheduleSection) -> None:
    for key, others in INSTEAD_OF.items():
        both = [other for other in others if other in section.model_fields_set]
        if getattr(section, key) is not None and both:
            raise Error(
                f"schedule.{key} and schedule.{both[0]} are both given, and one follows from the other",
                hint=f"remove one of them; --set schedule.{key}=... replaces what the file says",
            )


def _spent(experiment: Experiment, uses: int, folder: Path) -> tuple[Spending, bool]:
    """Epochs and rounds, and whether these are accelerated: as the file says, or where that leaves less."""
    method = registry.find(experiment.algorithm.name)
    if not method.free_rounds or experiment.privacy.noise_source == "secure":
        who = "secure noise" if method.free_rounds else method.name
        raise Error(
            f"schedule.uses chooses between epochs and mixing rounds, and {who} has no such rounds",
            hint=f"give schedule.epochs, or use {registry.names_that('free_rounds')} with seeded noise",
        )
    network, radio = experiment.build_network(folder), experiment.build_radio(folder)
    per_round = 1 if radio is None else slots(network, radio.access, radio.duplex).number
    wanted, allowed = experiment.schedule.accelerated, radio is None and experiment.network.z in (None, "perron")
    tries = (False, True) if wanted is None and allowed else (bool(wanted),)
    spent = {one: spend_uses(network, uses, uses_per_round=per_round, accelerated=one) for one in tries}
    best = min(tries, key=lambda one: (spent[one].rounds, spent[one].per_epoch))
    return spent[best], best and spent[best].rounds > 1  # with one round there is nothing to accelerate
