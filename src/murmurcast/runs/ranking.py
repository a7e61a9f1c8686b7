"""What a ranking is: how well every method did at equal cost, and who comes before whom."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from murmurcast.privacy.certificate import unit_in_words
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.runs.result import spread_over_seeds

NOBODY = "nobody"
TRUSTED = "trusted server"
NOT_PAID = "settings chosen on this data, not paid: a comparison, not a release"


class Trial(NamedTuple):
    """One setting that was tried on the validation part.

    Attributes:
        step: gamma_1.
        decay: How steps decay.
        options: Options of the method's own that were tried.
        value: Of the ranked metric, mean over nodes and seeds; not a number if it diverged.
    """

    step: float
    decay: str
    options: dict[str, float]
    value: float


class Score(NamedTuple):
    """How well one method did at one budget.

    Attributes:
        method: Its name.
        against: Whom its budget is about; "nobody" where nothing is promised.
        epsilon: The budget; None where nothing is promised.
        certified: What the run costs the node that pays most, recomputed from its ledger.
        uses: How often it might use the channel.
        uses_per_epoch: How often one epoch does.
        epochs: How many epochs that makes.
        step: The step size that was chosen, in units of Algorithm 1's.
        decay: The schedule of steps that was chosen.
        options: What was chosen of the method's own options.
        at_edge: Whether the step is the smallest or the largest that was tried: a better one may lie beyond.
        by_seed: Of each seed, the mean over nodes of the published models' metric on the test part.
        by_node: Of each node, the mean over seeds.
        trials: All settings that were tried on the validation part.
    """

    method: str
    against: str
    epsilon: float | None
    certified: float | None
    uses: int
    uses_per_epoch: int
    epochs: int
    step: float
    decay: str
    options: dict[str, float]
    at_edge: bool
    by_seed: tuple[float, ...]
    by_node: tuple[float, ...]
    trials: tuple[Trial, ...]

    @property
    def mean(self) -> float:
        """Over seeds and nodes; not a number where a seed diverged."""
        return float(np.mean(self.by_seed))

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None with one seed."""
        return float(spread_over_seeds(np.array(self.by_seed))) if len(self.by_seed) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return self._asdict() | {"trials": [one._asdict() for one in self.trials]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From plain values; numbers that JSON does not know come back as not a number."""
        by_seed, by_node = (tuple(map(_number, values[name])) for name in ("by_seed", "by_node"))
        trials = tuple(Trial(**one | {"value": _number(one["value"])}) for one in values["trials"])
        return cls(**values | {"by_seed": by_seed, "by_node": by_node, "trials": trials})


class LeftOut(NamedTuple):
    """A method that cannot be ranked here, and why."""

    method: str
    reason: str


class Ranking(NamedTuple):
    """Methods at equal cost: equal promised epsilon against one adversary, and equal channel uses.

    Attributes:
        name: Of the experiment.
        metric: Of the published models on the test part: "accuracy", or "loss" where there is none.
        unit: What every epsilon hides.
        records_per_person: How many records are hidden together.
        delta: Beside every epsilon.
        nodes: Of the network.
        seeds: How many seeds every score is a mean of.
        epsilons: The budgets.
        uses: How often the channel might be used.
        scores: One for every method, adversary, epsilon and number of uses.
        left_out: Methods that cannot run here, or not at some budget.
    """

    name: str
    metric: str
    unit: str
    records_per_person: int
    delta: float
    nodes: int
    seeds: int
    epsilons: tuple[float, ...]
    uses: tuple[int, ...]
    scores: tuple[Score, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def hidden(self) -> str:
        """What every epsilon hides, in words."""
        return unit_in_words(self.unit, self.records_per_person)

    @property
    def adversaries(self) -> tuple[str, ...]:
        """Against whom methods are ranked, the strongest first: each has tables of its own."""
        present = {score.against for score in self.scores}
        return tuple(who for who in ADVERSARIES if who in present and who != TRUSTED)

    def table(self, against: str, epsilon: float, uses: int) -> tuple[Score, ...]:
        """Methods whose epsilon holds against this adversary, the best first; those that diverged come last.

        A method that can be made for this adversary is, and stands here with that; others hold against a stronger one.
        """
        stronger = ADVERSARIES[: ADVERSARIES.index(against) + 1]
        by_method: dict[str, Score] = {}
        for who in stronger:
            scores = [
                score for score in self.scores if (score.against, score.epsilon, score.uses) == (who, epsilon, uses)
            ]
            by_method |= {score.method: score for score in scores}
        return self.ordered(by_method.values())

    def ceiling(self, epsilon: float, uses: int) -> tuple[Score, ...]:
        """What a server that everybody trusts reaches: not ranked, because its adversary is not of this kind."""
        return self.ordered(self._at(TRUSTED, epsilon, uses))

    def unprotected(self, uses: int) -> tuple[Score, ...]:
        """What is reached without any promise."""
        return self.ordered(self._at(NOBODY, None, uses))

    def ordered(self, scores: Iterable[Score]) -> tuple[Score, ...]:
        """The best first."""
        sign = -1 if self.metric == "accuracy" else 1

        def place(score: Score) -> tuple[float, str]:
            return sign * score.mean if math.isfinite(score.mean) else math.inf, score.method

        return tuple(sorted(scores, key=place))

    def _at(self, against: str, epsilon: float | None, uses: int) -> list[Score]:
        return [one for one in self.scores if (one.against, one.epsilon, one.uses) == (against, epsilon, uses)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, with the tables as they are shown."""
        tables = [
            {
                "against": against,
                "epsilon": epsilon,
                "uses": uses,
                "methods": [
                    {"method": score.method, "against": score.against, "mean": score.mean, "spread": score.spread}
                    for score in self.table(against, epsilon, uses)
                ],
            }
            for against in self.adversaries
            for epsilon in self.epsilons
            for uses in self.uses
        ]
        plain = {"scores": [score.as_dict() for score in self.scores], "left_out": [x._asdict() for x in self.left_out]}
        return self._asdict() | plain | {"tables": tables, "statement": NOT_PAID}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
