"""Theorem 2 measured: regret over T, its constants, how U2 grows, and where the rate does not hold."""

import numpy as np

from murmurcast._progress import Stage, quiet
from murmurcast.network.graph import Network
from murmurcast.reproduction import growth
from murmurcast.reproduction.document import Curve
from murmurcast.reproduction.growth import BASE, CONDITION, base_network, horizons
from murmurcast.reproduction.regret import bowls, measure, setting
from murmurcast.reproduction.theory_cases import Case, Theory, case
from murmurcast.reproduction.theory_text import findings, tables

__all__ = ["Case", "Theory", "case", "curves", "findings", "hardly_heard", "run_theory", "tables"]

EPOCHS, RUNS = 5000, 400


def run_theory(on_stage: Stage = quiet) -> Theory:
    """Measures everything; the same numbers every time."""
    on_stage("regret over T")
    network = base_network()
    usual = _case("as in the theorem", network, CONDITION, None, RUNS)
    on_stage("regret where one node is hardly heard")
    hardly = hardly_heard()
    flat = _case("equal curvature, one node hardly heard", hardly, 1.0, None, RUNS // 2)
    remedied = _case("the same, steps 1/(mu K t)", hardly, 1.0, float(hardly.nodes), RUNS // 2)
    return Theory(usual, flat, remedied, growth.sweeps(on_stage))


def hardly_heard() -> Network:
    """A ring of five, all gains different, in which node 0 speaks at a tenth of the others' strength."""
    nodes = 5
    clockwise = np.roll(np.eye(nodes), 1, axis=1)
    number = np.arange(nodes)[:, None]
    gains = (0.9 + 0.02 * number) * clockwise + (0.7 + 0.03 * number) * clockwise.T
    return Network(gains=gains * np.where(number == 0, 0.1, 1.0))


def _case(title: str, network: Network, condition: float, divisor: float | None, runs: int) -> Case:
    prepared = setting(network, bowls(network.nodes, 2, condition), BASE, EPOCHS, divisor)
    return case(title, prepared, measure(prepared, horizons(EPOCHS, 80), runs))


def curves(theory: Theory) -> dict[str, Curve]:
    """Every curve by the stem of its file."""
    cases = {"regret": theory.usual, "regret-flat": theory.flat, "regret-remedied": theory.remedied}
    geometric_bound = Curve(
        ("t", *(f"z{node}" for node in range(theory.usual.nodes)), "bound"),
        np.column_stack([np.arange(len(theory.usual.z)), theory.usual.z, theory.usual.z_bound]),
    )
    grown = {
        f"growth-{stem}": Curve(growth.Point._fields, np.array(sweep.points))
        for stem, sweep in zip(("nodes", "dim", "delta"), theory.sweeps, strict=True)
    }
    return {name: _regret_curve(one) for name, one in cases.items()} | {"geometric": geometric_bound} | grown


def _regret_curve(one: Case) -> Curve:
    names = [f"{what}{node}" for what in ("mean", "error", "silent") for node in range(one.nodes)]
    return Curve(("T", *names), np.column_stack([one.horizons, one.mean, one.error, one.silent]))
