"""A plan as plain values, for programs."""

from typing import TYPE_CHECKING, Any

from scipy.sparse import csr_array

from murmurcast.network.stability import DENSE_UP_TO
from murmurcast.privacy import gaussian
from murmurcast.privacy.best_guess import best_guess

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan
    from murmurcast.privacy.coalitions import Collusion
    from murmurcast.privacy.linear import Linear

_DENSE_UP_TO = 500  # nodes


def as_dict(
    plan: "Plan",
    linears: "dict[tuple[int, ...], Linear]",
    collusion: "Collusion | None",
    why_nominal: str,
    warned: tuple[str, ...],
) -> dict[str, Any]:
    """Everything a program may want; matrices [receiver][sender], sparse beyond 500 nodes.

    `linear` belongs to the first observer asked for; `linears` lists all of them. Of `certificate` and `nominal` one
    is null: a number that no run of the file promises is nominal, and says why.
    """
    certified, claim, sent = plan.certificate, plan.paper_claim, plan.sent_power()
    cost: dict[str, Any] = {
        "mu": certified.mu.tolist(),
        "epsilon": certified.epsilon.tolist(),
        "delta": certified.delta,
        "unit": certified.unit,
        "best_guess": best_guess(certified.mu, plan.curve, certified.delta).tolist(),
    }
    result: dict[str, Any] = _data(plan) | {
        "nodes": plan.network.nodes,
        "links": plan.network.links,
        **{name: getattr(plan, name).tolist() for name in ("alpha", "beta", "perron", "noise_to_step", "sensitivity")},
        "compensation": plan.mixing.compensation.tolist(),
        "weights": _matrix(plan.mixing.weights),
        "normaliser": plan.mixing.normaliser,
        "exact_diffusion_radius": plan.exact_diffusion_radius if plan.network.nodes <= DENSE_UP_TO else None,
        "schedule": _schedule(plan),
        "theta": plan.theta,
        "objective": plan.rule.objective,
        "objective_value": plan.objective_value,
        "target": plan.budget.target,
        "unit": plan.budget.unit,
        "records_per_person": plan.budget.records_per_person,
        "noise_source": plan.budget.noise_source,
        "epsilon_per_epoch": _matrix(plan.epsilon_per_epoch),
        "certificate": None if why_nominal else cost,
        "nominal": cost | {"reason": why_nominal} if why_nominal else None,
        "paper_claim": {"epsilon": claim.epsilon, "delta": claim.delta},
        "power_note": plan.power_note or None,
        "warnings": [*warned, *plan.warnings],
    }
    if sent is not None:
        result["sent_power"] = {
            "largest_over_budget": sent.largest.tolist(),
            "largest_over_budget_per_symbol": sent.per_symbol.tolist(),
            "public_scale": sent.public_scale,
            "snr_change_db": sent.snr_change_db,
        }
    if collusion is not None:
        result["collusion"] = _collusion(collusion, certified.delta)
    if linears:
        listed = [
            {"observers": list(members)} | {name: value.tolist() for name, value in linear._asdict().items()}
            for members, linear in linears.items()
        ]
        result |= {"linear": listed[0], "linears": listed}
    return result


def _data(plan: "Plan") -> dict[str, Any]:
    """What is released before training, and what coins are worth."""
    entries: dict[str, Any] = {}
    if plan.budget.first_releases:
        entries["first_releases"] = dict(plan.budget.first_releases)
    if plan.sampling is not None and (noise := plan.noise_over_full_batches) is not None:
        entries["sampling"] = {"rates": list(plan.sampling.rates), "noise_over_full_batches": noise.tolist()}
    return entries


def _collusion(collusion: "Collusion", delta: float) -> dict[str, Any]:
    """The linear diagnostic of receivers, a row for each that was tried, and of the worst two, an entry per target."""
    return {
        "receivers": list(collusion.receivers),
        "single_mu": collusion.single_mu.tolist(),
        "single_epsilon": gaussian.epsilon(collusion.single_mu, delta).tolist(),
        "pairs": collusion.pairs,
        "pairs_tried": collusion.pairs_tried,
        "pair": [[node for node in pair if node >= 0] for pair in collusion.pair.tolist()],
        "pair_mu": collusion.pair_mu.tolist(),
        "pair_epsilon": gaussian.epsilon(collusion.pair_mu, delta).tolist(),
        "is_complete": collusion.is_complete,
    }


def _schedule(plan: "Plan") -> dict[str, Any]:
    """Epochs, rounds and steps, and what rounds leave of a disagreement."""
    schedule = plan.schedule
    left = plan.disagreement_left if plan.network.nodes <= DENSE_UP_TO else (None, None)
    return {
        "epochs": schedule.epochs,
        "rounds": schedule.rounds,
        "accelerated": schedule.accelerated,
        "step": schedule.step,
        "decay": schedule.decay,
        "noise_timing": schedule.noise_timing,
        "disagreement_left": {"by_round": left[0], "by_epoch": left[1]},
    }


def _matrix(matrix: csr_array) -> Any:
    if matrix.shape[0] <= _DENSE_UP_TO:
        return matrix.toarray().tolist()
    row, column = matrix.nonzero()
    return {"row": row.tolist(), "column": column.tolist(), "value": matrix[row, column].tolist()}
