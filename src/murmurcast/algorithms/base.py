"""What an algorithm is: rounds of pure functions of one node, cut at the antenna.

An epoch is a tuple of rounds. In each, `send` makes all that leaves a node, a channel carries it, and `update` makes
the node's next state from what it hears. Whoever audits privacy reads `send`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from murmurcast import _check
from murmurcast.algorithms.tables import Leaf
from murmurcast.channels.base import Channel
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.setup import Setup
from murmurcast.privacy import conversion
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax

Model = Any  # an array of JAX, of one model's shape
Tables = Any  # a NamedTuple of constants; see `murmurcast.algorithms.tables`
Here = Any  # the same NamedTuple for one node and epoch
Info = dict[str, Any]  # metrics for people, each a scalar of JAX
Settings = dict[str, str | float]
Publish = Literal["last", "average"]
Per = Literal["node", "link", "pair"]
NoiseLaw = Literal["normal", "laplace", "discrete gaussian"]


class State(NamedTuple):
    """What a node needs for its next step; a method with more to remember has a State of its own.

    Attributes:
        own: x, the node's model.
        published: What the node would give to the world.
    """

    own: Model
    published: Model


class Updated(NamedTuple):
    """What an update returns that leaves metrics for people besides the next state.

    Attributes:
        state: The next state.
        info: By name; they reach metrics, tables and reports by themselves.
    """

    state: Any
    info: Info


def state_of(updated: Any) -> Any:
    """The next state, whether an update leaves metrics besides or not."""
    return updated.state if isinstance(updated, Updated) else updated


class Gradient(Protocol):
    """One node's gradient, clipped as its problem says."""

    def __call__(self, point: Model, /) -> Model:
        """At this point, on the epoch's examples."""
        ...


class Project(Protocol):
    """The way back into Omega."""

    def __call__(self, point: Model, /) -> Model:
        """The nearest point of Omega."""
        ...


class Local(NamedTuple):
    """What only the node can do, in one epoch.

    Attributes:
        gradient_at_public: Its gradient at a point that everybody may know.
        gradient_at_private: Its gradient at a point of its own.
        project: The nearest point of Omega.
    """

    gradient_at_public: Gradient
    gradient_at_private: Gradient
    project: Project


class Draw(NamedTuple):
    """Fresh randomness of a round: every draw has a key of its own, by seed, epoch, round, name and owner.

    Attributes:
        per: "node": one vector. "link": one for each that hears the node, [links, ...]. "pair": one for each neighbour,
            [neighbours, ...], the same at both ends; links must be two-way.
        law: "normal" (standard), "laplace" (of scale 1), or "discrete gaussian": integers that secure noise brings.
        opposite: Of pairs, whether the two ends have it with opposite signs, so that it cancels in their sum.
    """

    per: Per = "node"
    law: NoiseLaw = "normal"
    opposite: bool = True


class Again(NamedTuple):
    """A draw that was made before, once more: the only way to the same numbers twice, and it stands in the ledger.

    Attributes:
        draw: Its name.
        epochs_ago: How many epochs ago; before epoch 1 all draws are 0.
        of_round: The round it was made in; None for this one.
    """

    draw: str
    epochs_ago: int = 1
    of_round: str | None = None


Draws = Mapping[str, Draw | Again]


class Send(Protocol):
    """Makes all that leaves a node in one round: pure, and the only way out.

    The signal has the model's shape, or [signals, ...] where the channel carries one for each that hears the node.
    """

    def __call__(self, here: Here, state: Any, drawn: dict[str, jax.Array], /) -> jax.Array:
        """From the node's constants, its state, and the round's draws by name."""
        ...


class Update(Protocol):
    """Makes a node's next state from what it heard: pure. What is published must be a function of what was sent."""

    def __call__(self, here: Here, state: Any, sent: jax.Array, heard: jax.Array, local: Local, /) -> Any:
        """From constants, state, its own signal, and what was heard; the next state, or `Updated` with metrics."""
        ...


class Init(Protocol):
    """Makes a node's first state from the public start: pure.

    It may take a gradient there; what is sent first then carries it, and the ledger counts it.
    """

    def __call__(self, start: Model, local: Local, /) -> Any:
        """A NamedTuple with at least `own` and `published`."""
        ...


class Round(NamedTuple):
    """One exchange.

    Attributes:
        name: Prefix of its tables in the ledger, such as "model".
        channel: Who hears what.
        draws: What randomness `send` gets, by name.
        sending: Tables for `send`.
        receiving: Tables for `update`.
        send: All that leaves the node.
        update: What the node makes of what it hears.
    """

    name: str
    channel: Channel
    draws: Draws
    sending: Tables
    receiving: Tables
    send: Send
    update: Update


class Proof(NamedTuple):
    """What a promise was proved for: with any of it exchanged, the promise is gone.

    Attributes:
        releases: The promise.
        setup: What the method was made for.
        parts: Its init, and of every round draws, tables, send and update. Not the channel: whatever one makes of what
            was sent is free of data.
    """

    releases: tuple[Releases, ...]
    setup: Setup
    parts: tuple[object, ...]


class Algorithm(NamedTuple):
    """One way to learn over a network.

    Attributes:
        name: As in an experiment file.
        setup: What it is made for; the plan it carries out, where it needs one.
        rounds: What happens in every epoch, in this order.
        settings: The options it was made with, for the ledger.
        init: A node's first state.
        releases: What a run releases, one for every adversary that anything is promised against, the strongest first;
            () promises nothing. Of a method that answers for itself, of training alone: what nodes release before it is
            added wherever it is run.
        proof: What `releases` was proved for, of the methods here; None for a method that answers for itself.
    """

    name: str
    setup: Setup
    rounds: tuple[Round, ...]
    settings: Settings
    init: Init
    releases: tuple[Releases, ...] = ()
    proof: Proof | None = None

    @property
    def is_as_proved(self) -> bool:
        """Whether everything that its promise was proved for is still there."""
        if self.proof is None:
            return False
        before, now = ((proof.releases, proof.setup, *proof.parts) for proof in (self.proof, _proof(self)))
        return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))

    @property
    def has_lost_its_proof(self) -> bool:
        """Whether it claims what was proved before something was exchanged; new releases answer for themselves."""
        return self.proof is not None and self.releases is self.proof.releases and not self.is_as_proved

    @property
    def plan(self) -> Plan:
        """The plan it carries out."""
        if not isinstance(self.setup, Plan):
            raise Error(f"{self.name} carries out no plan of Algorithm 1", hint="ask for its setup, or use Algorithm 1")
        return self.setup

    @property
    def channel_uses(self) -> int:
        """Per epoch, of all rounds."""
        return sum(one.channel.uses for one in self.rounds)

    @property
    def epochs(self) -> int:
        """How many there are."""
        return self.setup.schedule.epochs


def proved(algorithm: Algorithm) -> Algorithm:
    """The algorithm, its promise tied to the parts it has now: only for whoever has proved it for them.

    What its nodes release before training, by the budget, is a part of the promise.
    """
    counted = algorithm._replace(releases=_after_first_releases(algorithm))
    return counted._replace(proof=_proof(counted))


def counting_first_releases(algorithm: Algorithm) -> Algorithm:
    """The algorithm, its promise with what its nodes release before training, by the budget.

    A method that answers for itself gives the releases of training alone, and a promise of these would be too small.
    What was proved has the rest already, and what has lost its proof is known by its releases: both stay as they are.
    Asked again, it changes nothing.
    """
    if algorithm.proof is not None and algorithm.releases is algorithm.proof.releases:
        return algorithm
    return algorithm._replace(releases=_after_first_releases(algorithm))


def _after_first_releases(algorithm: Algorithm) -> tuple[Releases, ...]:
    before = algorithm.setup.budget.spent_before
    return tuple(conversion.after(before, part) for part in algorithm.releases)


def with_proof_of(before: Algorithm, after: Algorithm) -> Algorithm:
    """An algorithm made from another in a way that keeps what was proved of it, if it was still as proved."""
    if before.is_as_proved:
        return proved(after)
    if before.proof is not None and before.has_lost_its_proof:
        return after._replace(proof=before.proof._replace(releases=after.releases))
    return after


def _proof(algorithm: Algorithm) -> Proof:
    parts = ((one.draws, one.sending, one.receiving, one.send, one.update) for one in algorithm.rounds)
    return Proof(algorithm.releases, algorithm.setup, (algorithm.init, *chain.from_iterable(parts)))


class Sending(NamedTuple):
    """Constants of a signal that is a model with noise.

    Attributes:
        amplitude: sqrt(alpha p), of the model.
        noise: sqrt((1 - alpha) p) q, of the noise, in units of its schedule.
        schedule: sigma_t / q.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf


NOISE: Draws = {"noise": Draw()}
NO_DRAWS: Draws = {}


def send_model_with_noise(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """sqrt(alpha p) x + sqrt((1 - alpha) p) eta, with eta ~ N(0, sigma_t^2)."""
    return here.amplitude * state.own + here.noise * here.schedule * drawn["noise"]


def start(model: Model, local: Local) -> State:  # noqa: ARG001
    """The state of a node that has heard nothing yet."""
    return State(model, model)


def require_publish(publish: str) -> None:
    """What is published is a known choice."""
    _check.one_of(get_args(Publish), publish=publish)


def per_link(constant: Leaf, model: Model) -> jax.Array:
    """[links, 1, ...] a constant of every link, ready to be multiplied with a model."""
    return constant.reshape(-1, *(1,) * model.ndim)


def weighed_sum(weights: Leaf, values: Model) -> jax.Array:
    """[...] from [links] and [links, ...]: as a product, which XLA on CPUs does several times quicker than a sum."""
    import jax.numpy as jnp

    return jnp.tensordot(weights, values, axes=1)


def sum_of_links(values: Model) -> jax.Array:
    """[...] from [links, ...]."""
    import jax.numpy as jnp

    return weighed_sum(jnp.ones(len(values), values.dtype), values)
