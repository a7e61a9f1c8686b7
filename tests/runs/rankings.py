"""Rankings made by hand: every number is chosen, and nothing is trained."""

from typing import Any

from murmurcast.runs.ranking import NOBODY, TRUSTED, LeftOut, Ranking, Score, Trial

EVERYBODY, ONE_NODE, EAVESDROPPER = "everybody", "eavesdropper and one node", "eavesdropper"
EPSILONS, USES = (0.5, 2.0), (10, 40)


def score(method: str, mean: float, **changed: Any) -> Score:
    """Two seeds around a mean, at epsilon 2 and 40 uses against everybody."""
    plain: dict[str, Any] = {
        "method": method,
        "against": EVERYBODY,
        "epsilon": 2.0,
        "certified": 1.9996,
        "uses": 40,
        "uses_per_epoch": 2,
        "epochs": 20,
        "step": 0.125,
        "decay": "sqrt",
        "options": {},
        "at_edge": False,
        "by_seed": (mean - 0.01, mean + 0.01),
        "by_node": (mean, mean - 0.2, mean + 0.2),
        "trials": (Trial(0.125, "sqrt", {}, mean), Trial(4.0, "sqrt", {}, float("nan"))),
    }
    return Score(**(plain | changed))


def ranking(*scores: Score, **changed: Any) -> Ranking:
    plain: dict[str, Any] = {
        "name": "hand-made",
        "metric": "accuracy",
        "unit": "record",
        "records_per_person": 1,
        "delta": 1e-5,
        "nodes": 3,
        "seeds": 2,
        "epsilons": (2.0,),
        "uses": (40,),
        "scores": scores,
        "left_out": (),
    }
    return Ranking(**(plain | changed))


def full(**changed: Any) -> Ranking:
    """Three adversaries, a server, a method without promise, two budgets, two numbers of uses."""
    scores = []
    for more, epsilon in enumerate(EPSILONS):
        for longer, uses in enumerate(USES):
            given = {"epsilon": epsilon, "uses": uses, "certified": epsilon}
            gained = 0.1 * more + 0.05 * longer
            scores += [
                score("power-controlled", 0.5 + gained, **given),
                score("slow", 0.3 + gained, **given),
                score("paired", 0.2 + gained, **given),
                score("paired", 0.6 + gained, **given, against=ONE_NODE),
                score("paired", 0.7 + gained, **given, against=EAVESDROPPER),
                score("server", 0.8 + gained, **given, against=TRUSTED),
            ]
    scores += [score("open", 0.97, epsilon=None, certified=None, against=NOBODY, uses=uses) for uses in USES]
    left_out = (LeftOut("one-gain", "gains differ"),)
    plain: dict[str, Any] = {"epsilons": EPSILONS, "uses": USES, "left_out": left_out}
    return ranking(*scores, **(plain | changed))
