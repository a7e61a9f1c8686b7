"""The settings of the reproduction, as experiments that anybody can run one by one.

published: as the paper has it; every epsilon is nominal, nothing is clipped.
matched: the rival with the effective step of Algorithm 1, all else as published.
certified: one total budget for the whole run, one record hidden, against everybody.
features: the same on inputs that are described without looking at any other, centred and whitened for a share of it.
"""

from typing import Literal, NamedTuple

from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.settle import settle

Group = Literal["published", "matched", "certified", "features"]
DataName = Literal["mnist", "digits"]
NODES = 4
PAPER_BUDGETS = (1, 2)  # epsilon_max, each with a network of its own
CERTIFIED_BUDGETS = (0.3, 1.0, 3.0)
CERTIFIED_SEEDS = 3  # at most: these settings have most runs, and their spread is small
OURS, RIVAL, CENTRAL, NOISELESS = "power-controlled", "mped2fl", "central-dp", "noiseless"
DIFFUSION = "power-controlled-diffusion"  # our own, beside the paper's: same budget, same channel uses
# Chosen on Fashion-MNIST by `make choose`, so that the choice costs nothing of the budget. Without noise the steps are
# those of Algorithm 1, so that the noise is all that differs.
_OUR_STEPS = {0.3: 1.0, 1.0: 2.0, 3.0: 4.0}
CERTIFIED_STEPS = {
    OURS: _OUR_STEPS,
    NOISELESS: _OUR_STEPS,
    CENTRAL: {0.3: 1.0, 1.0: 2.0, 3.0: 4.0},
}
# Steps on features, chosen in the same way by `murmurcast tune`: the clip at epsilon 1, the step at every budget.
# Digits, which stand in for MNIST in a quick look, have about a fortieth of its images at every node, and so forty
# times the noise in every step.
FEATURE_STEPS = {0.3: 45.25, 1.0: 128.0, 3.0: 256.0}
_SHORTER_ON_DIGITS = 40
GROUP_NAMES: dict[Group, str] = {
    "published": "As published",
    "matched": "Matched steps",
    "certified": "Certified",
    "features": "Certified, on features",
}
GROUP_TITLES: dict[Group, str] = {
    "published": "As published (nominal epsilon)",
    "matched": "Matched steps (nominal epsilon)",
    "certified": "Certified (total epsilon, one record, against everybody)",
    "features": "Certified, on features that look at no data",
}
PROMISED: tuple[Group, ...] = ("certified", "features")  # a promise covers what is published
_LABELS = {OURS: "Algorithm 1", RIVAL: "mPED2FL", CENTRAL: "trusted server"}
_DIM = {"mnist": 7850, "digits": 650}


class Setting(NamedTuple):
    """One run of the reproduction.

    Attributes:
        name: Its folder.
        group: The setting it belongs to.
        algorithm: What it runs.
        epsilon: Nominal in the first two groups, for the whole run in the third.
        experiment: All of it.
    """

    name: str
    group: Group
    algorithm: str
    epsilon: float
    experiment: Experiment

    @property
    def label(self) -> str:
        """For people."""
        if self.algorithm == NOISELESS:
            return f"no noise, steps of epsilon {self.epsilon:g}"
        longer = {"matched": ", longer steps", "features": " on features"}.get(self.group, "")
        return f"{_LABELS[self.algorithm]}{longer}, epsilon {self.epsilon:g}"


def settings(data: DataName, seeds: int) -> tuple[Setting, ...]:
    """All runs, in the order in which they are made."""
    published = [_published(data, seeds, budget, algorithm) for budget in PAPER_BUDGETS for algorithm in (OURS, RIVAL)]
    matched = [_published(data, seeds, budget, RIVAL, matched=True) for budget in PAPER_BUDGETS]
    few = min(seeds, CERTIFIED_SEEDS)
    certified = [
        _certified(data, few, budget, algorithm)
        for budget in CERTIFIED_BUDGETS
        for algorithm in (OURS, CENTRAL, NOISELESS)
    ]
    features = [
        _features(data, few, budget, algorithm) for budget in CERTIFIED_BUDGETS for algorithm in (OURS, CENTRAL)
    ]
    return (*published, *matched, *certified, *features)


def _published(data: DataName, seeds: int, budget: int, algorithm: str, *, matched: bool = False) -> Setting:
    group: Group = "matched" if matched else "published"
    changed = {
        "algorithm.name": algorithm,
        "run.evaluate_every": "5",
        **({"algorithm.step_factor": str(float(NODES))} if matched else {}),
    }
    experiment = _experiment(f"paper-{budget}", data, seeds, changed)
    return Setting(f"{group}-{algorithm}-{budget}", group, algorithm, float(budget), experiment)


def _certified(data: DataName, seeds: int, budget: float, algorithm: str) -> Setting:
    changed = {
        "algorithm.name": algorithm,
        "privacy.epsilon": str(budget),
        "schedule.step": str(CERTIFIED_STEPS[algorithm][budget]),
        "run.evaluate_every": "10",  # half as often as the others: it has most runs
    }
    # Without noise all seeds are the same run.
    experiment = _experiment("certified", data, 1 if algorithm == NOISELESS else seeds, changed)
    return Setting(f"certified-{algorithm}-{budget:g}", "certified", algorithm, budget, experiment)


def _features(data: DataName, seeds: int, budget: float, algorithm: str) -> Setting:
    step = FEATURE_STEPS[budget] / (_SHORTER_ON_DIGITS if data == "digits" else 1)
    changed = {
        "algorithm.name": algorithm,
        "privacy.epsilon": str(budget),
        "schedule.step": str(step),
        "run.evaluate_every": "1",
        "data.name": data,
        "run.seeds": str(seeds),
        **({"data.features": '["unit-norm"]'} if data == "digits" else {}),  # images of 8 x 8 have little to describe
    }
    return Setting(f"features-{algorithm}-{budget:g}", "features", algorithm, budget, from_example("features", changed))


def _experiment(example: str, data: DataName, seeds: int, changed: dict[str, str]) -> Experiment:
    common = {"data.name": data, "problem.dim": str(_DIM[data]), "run.seeds": str(seeds)}
    return from_example(example, common | changed)


def from_example(example: str, changed: dict[str, str]) -> Experiment:
    """A shipped experiment with some keys changed."""
    return settle(experiment_files.parse(experiment_files.example(example).encode(), f"{example}.toml", changed))
