"""A method of your own: gossip with noise and steps that are not divided by z, from an empty file to a certificate.

    sent_i = sqrt(p_i) (x_i + s eta_i),   m_i = sum_j a_ij sent_j/sqrt(p_j),   x_i <- Proj( m_i - gamma_t g_i(m_i) )

Run it:           python examples/own_method.py
From a file:      PYTHONPATH=examples murmurcast run digits.toml --set algorithm.name=own_method:METHOD
Certify the run:  PYTHONPATH=examples murmurcast certify runs/digits --method own_method:METHOD
"""

from typing import Any, NamedTuple

import numpy as np

import murmurcast as mc
from murmurcast.algorithms.account import LedgerTables, above_zero, exposed_ratio, require_row_stochastic, sensitivity
from murmurcast.algorithms.base import NOISE, Algorithm, Local, Round, State, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import same_always
from murmurcast.channels.air import Air
from murmurcast.network.weights import mixing, normaliser
from murmurcast.privacy.releases import GAUSSIAN, Releases
from murmurcast.testing import check_algorithm


class Sending(NamedTuple):
    """sqrt(p), and the standard deviation of the noise."""

    amplitude: Any
    noise: Any


class Receiving(NamedTuple):
    """Factors of what is heard and of what was sent, and the step."""

    heard: Any
    kept: Any
    step: Any


def gossip(setup: mc.Setup) -> Algorithm:
    """Noisy gossip, with the least noise that meets the setup's budget."""
    network, steps = setup.network, setup.schedule.steps
    network.require_two_way("gossip")
    made = mixing(network, np.ones(network.nodes), normaliser(network, "lazy"))
    amplitude = np.sqrt(network.power)
    mu = setup.curve.mu_of_steps(setup.budget.epsilon, setup.budget.delta)
    noise = setup.sensitivity * np.sqrt(np.sum(steps[:-1] ** 2)) / mu  # T - 1 gradients are exposed

    def send(here: Sending, state: State, drawn: dict[str, Any]) -> Any:
        return here.amplitude * (state.own + here.noise * drawn["noise"])

    def update(here: Receiving, state: State, sent: Any, heard: Any, local: Local) -> State:
        mixed = here.heard * heard + here.kept * sent
        return State(local.project(mixed - here.step * local.gradient_at_public(mixed)), mixed)

    heard = 1 / (made.compensation * made.normaliser)
    kept = (1 - network.degree / made.normaliser) / amplitude
    only = Round(
        name="model",
        channel=Air(network.gains),
        draws=NOISE,
        sending=Sending(same_always(amplitude), same_always(noise)),
        receiving=Receiving(same_always(heard), same_always(kept), steps),
        send=send,
        update=update,
    )
    ratio = exposed_ratio(setup.sensitivity, np.tile(steps[:, None], network.nodes), np.tile(noise, (len(steps), 1)))
    promised = (Releases(GAUSSIAN, ratio, "everybody"),)
    return Algorithm("gossip", setup, (only,), {"normaliser": made.normaliser}, start, promised)


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """What a run released, from its ledger and from nothing else."""
    ledger.require_rounds(model="noise: normal of a node")
    tables = ("sending_amplitude", "sending_noise", "receiving_heard", "receiving_kept", "receiving_step")
    ledger.require_tables(*(f"model_{name}" for name in tables))
    require_row_stochastic(ledger, above_zero(ledger, "model_sending_amplitude"), None)
    steps, noise = ledger.per_epoch("model_receiving_step"), above_zero(ledger, "model_sending_noise")
    ratio = exposed_ratio(sensitivity(ledger), np.tile(steps[:, None], ledger.nodes), np.tile(noise, (len(steps), 1)))
    return (Releases(GAUSSIAN, ratio, "everybody"),)


METHOD = Method(
    name="gossip",
    make=gossip,
    summary="gossip with noise, steps not divided by z",
    account=account,
    promises="against everybody",
    reference="an example",
    needs="two-way links",
)

if __name__ == "__main__":
    check_algorithm(METHOD)
    network = mc.topologies.ring(5, seed=2)
    problem = mc.Quadratic.random(network.nodes, 4, clip=1.0, ball=5.0)
    schedule = mc.Schedule(epochs=40, step=0.2)
    setup = mc.Setup(network=network, problem=problem, budget=mc.Budget(epsilon=8.0), schedule=schedule)
    result = mc.run(gossip(setup), problem)
    found = mc.certify(result, methods=[METHOD])
    print(f"{found.verdict}: epsilon {found.epsilon.max():.3g}, {found.tier}")
