"""Whether a method keeps to the protocol: what the house asks of its own methods, for methods of your own.

A test of yours calls `check_algorithm(my_method)`; docs/add-a-method.md has a method that passes as it stands.
"""

import inspect
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.algorithms.account import TOLERANCE, Account
from murmurcast.algorithms.base import Algorithm, Local, Round, state_of
from murmurcast.algorithms.method import Make, Method
from murmurcast.algorithms.tables import row_of
from murmurcast.audits.claims import claim
from murmurcast.certificates.read import read
from murmurcast.engine import check, draws
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, Setup
from murmurcast.planning.solve import plan
from murmurcast.privacy.conversion import mu_of
from murmurcast.privacy.releases import ADVERSARIES, Releases
from murmurcast.problems.quadratic import Quadratic
from murmurcast.radio.settings import Radio
from murmurcast.runs.result import Result
from murmurcast.runs.run import RunOptions, run

_EPOCHS, _DIM, _RADIUS = 6, 3, 0.5
_GAINS = (
    (0, 0.9, 0, 0.4, 0),
    (0.5, 0, 0.7, 0, 0),
    (0, 0.3, 0, 0.8, 0.6),
    (1.1, 0, 0.45, 0, 0.35),
    (0, 0, 0.65, 0.95, 0),
)
_NOT_ONE_WAY = "two-way"
_PATH_LOSS = 1e-4  # of amplitudes: 80 dB
_ROUNDING = 1e-4  # relative, in float32


def check_algorithm(method: Method | Make, *, network: Network | None = None, radio: Radio | None = None) -> None:
    """Tries a method step by step; what it finds wrong is an `Error` with a way out.

    It checks that tables, state, signals and draws have the shapes they must have; that `init`, `send` and `update`
    give the same when asked again, and do nothing on the side that JAX knows of (what plain Python does while it is
    traced, such as appending to a list, nobody sees); that releases are numbers in the right order; that what is
    published holds nothing of the gradient that no noise covers yet; that the account makes of a ledger, and of nothing
    else, what the method promised; and that given all that was sent before, no signal is moved further, in units of its
    fresh noise, than was promised, and no noise is as large as data makes it: a node that goes on with its own model
    instead of what it said of it, or that sends twice with noise of its own, costs more than one that does not.

    Args:
        method: A `Method`, or the function that makes the algorithm, with its usual options.
        network: What to try it on; by default five nodes with unequal gains in the two directions of a link.
        radio: What carries its signals; None for the ideal channel. With one, gains are amplitudes with path loss.
    """
    tried = method if isinstance(method, Method) else Method("", method, "", "it brings no account", "")
    gains = np.array(_GAINS) * (1.0 if radio is None else _PATH_LOSS)
    on = network or Network(gains=gains, power=np.array([1.0, 2.0, 0.5, 1.5, 0.8]))
    problem = Quadratic.random(on.nodes, _DIM, seed=1, ball=_RADIUS if tried.projects else None)
    algorithms = [tried.make(_setup(tried, on, problem, epsilon, radio)) for epsilon in (1.0, 5.0)]
    for algorithm in algorithms:
        _require(isinstance(algorithm, Algorithm), f"it makes {type(algorithm).__name__}", "return an Algorithm")
        _check_tables(algorithm)
        check.require_fitting(algorithm, problem, problem.test_data(), np.float32)
        _check_pure(algorithm, problem)
        _check_releases(algorithm)
    _check_account(tried, algorithms, problem)
    for algorithm in algorithms:
        _check_costs(algorithm)


def _setup(method: Method, network: Network, problem: Quadratic, epsilon: float, radio: Radio | None) -> Setup:
    budget = Budget(epsilon=epsilon)
    schedule = Schedule(epochs=_EPOCHS, step=0.1, noise_timing="aligned")
    if method.needs_plan:
        return plan(network, problem, budget, schedule, radio=radio)
    return Setup(network=network, problem=problem, budget=budget, schedule=schedule, radio=radio)


def _require(holds: bool, what: str, hint: str) -> None:
    if not holds:
        raise Error(f"the method does not keep to the protocol: {what}", hint=hint)


def _check_tables(algorithm: Algorithm) -> None:
    nodes = algorithm.setup.network.nodes
    for one in algorithm.rounds:
        for part, tables in (("sending", one.sending), ("receiving", one.receiving)):
            for field, table in tables._asdict().items():
                name = f"{one.name}_{part}_{field}"
                sound = isinstance(table, np.ndarray) and table.dtype == np.float64 and bool(np.isfinite(table).all())
                _require(sound, f"{name} is not an array of finite float64", "make tables with same_always(values)")
                rows = table.ndim == 1 and len(table) == algorithm.epochs
                by_node = table.ndim in (2, 3) and table.shape[1] == nodes and 1 <= len(table) <= algorithm.epochs
                _require(rows or by_node, f"{name} has shape {table.shape}", "give [epochs], [rows, nodes] or one more")


def _check_pure(algorithm: Algorithm, problem: Quadratic) -> None:
    """Nothing leaves a node but by `send`; the same in gives the same out; Omega holds; what is published is public."""
    first = jnp.zeros(_DIM)

    def local(size: float) -> Local:
        return Local(lambda point: size * (1 + point), lambda point: size * (1 + point), problem.project)

    _no_effects(algorithm, "init", lambda start: algorithm.init(start, local(1.0)), first)
    state = other = algorithm.init(first, local(1.0))
    for epoch in (1, 2):
        for number, one in enumerate(algorithm.rounds):
            name = f'round "{one.name}"'
            drawn = _drawn(algorithm, number, epoch)
            here = jax.tree.map(lambda table, epoch=epoch: _entry(table, epoch), one.sending)
            _no_effects(algorithm, "send", one.send, here, state, drawn)
            sent = one.send(here, state, drawn)
            _require(
                bool(jnp.array_equal(sent, one.send(here, state, drawn))),
                f"{name}: send gives another signal when it is asked again",
                "use the draws it is given, and no randomness of its own",
            )
            if algorithm.releases:
                _check_noise(name, one, here, drawn, (state, other))
            heard = jnp.full(check.heard_shape(one.channel, problem.shape), 0.1)
            there = jax.tree.map(lambda table, epoch=epoch: _entry(table, epoch), one.receiving)
            _no_effects(
                algorithm, "update", lambda *given, one=one: one.update(*given, local(1.0)), there, state, sent, heard
            )
            following, other = (state_of(one.update(there, state, sent, heard, local(size))) for size in (1.0, 0.1))
            if algorithm.releases:
                _require(
                    bool(jnp.array_equal(following.published, other.published)),
                    f"{name}: what is published moves with a gradient that no noise covers yet",
                    "publish a function of what was sent, such as the mixed point",
                )
            state = following


def _check_noise(name: str, one: Round, here: Any, drawn: dict[str, jax.Array], states: tuple[Any, Any]) -> None:
    """The noise in what is sent is the same whatever the node's data did to its state."""
    quiet = {draw: jnp.zeros_like(values) for draw, values in drawn.items()}
    first, other = (one.send(here, state, drawn) - one.send(here, state, quiet) for state in states)
    _require(
        bool(jnp.allclose(first, other, rtol=_ROUNDING, atol=_ROUNDING * float(jnp.abs(first).max()))),
        f"{name}: how large the noise is in what is sent moves with the node's own state",
        "scale signals by public numbers, such as those in tables, and never by the model itself",
    )


def _no_effects(algorithm: Algorithm, what: str, function: Callable[..., Any], *arguments: Any) -> None:
    effects = jax.make_jaxpr(function)(*arguments).effects
    _require(
        not effects,
        f"{what} of {algorithm.name} does something on the side ({', '.join(map(str, effects))})",
        "let everything that leaves a node be the signal that send returns",
    )


def _entry(table: Any, epoch: int) -> Any:
    row = row_of(table, epoch)
    return jnp.asarray(row if row.ndim == 0 else row[1])


def _drawn(algorithm: Algorithm, number: int, epoch: int) -> dict[str, jax.Array]:
    gains = algorithm.setup.network.gains
    normals = {}
    for place, (name, source) in enumerate(draws.sources(algorithm, number).items()):
        rng = np.random.default_rng([number, place, epoch])
        normals[name] = jnp.asarray(rng.standard_normal((*draws.owners(source.draw, gains), _DIM)))
    return normals


def _check_releases(algorithm: Algorithm) -> None:
    shape = (algorithm.epochs, algorithm.setup.network.nodes)
    order = [ADVERSARIES.index(part.against) for part in algorithm.releases]
    _require(order == sorted(set(order)), "releases are not one for each adversary, the strongest first", "sort them")
    for part in algorithm.releases:
        _require(part.ratio.shape == shape, f"a ratio has shape {part.ratio.shape}", f"give [epochs, nodes], {shape}")
        _require(bool((part.ratio >= 0).all()), "a ratio is negative or no number", "give what moves over its noise")


def _check_costs(algorithm: Algorithm) -> None:
    """Given all that was sent before, data moves nothing further than was promised, in units of fresh noise.

    Both are asked of `send` and `update` themselves. Where no such reckoning is known, nothing is checked.
    """
    nodes = np.arange(algorithm.setup.network.nodes)
    try:
        claims = claim(algorithm, nodes, algorithm.setup.sensitivity)
    except Error:
        return
    if not algorithm.releases or claims.law != "normal" or algorithm.releases[0].against != "everybody":
        return
    without_noise = ((claims.std == 0) & (claims.shift != 0)).any(axis=(1, 2))
    moved = np.where(without_noise, np.inf, np.linalg.norm(claims.shift, axis=(1, 2)))
    promised = mu_of(algorithm.releases[0])
    _require(
        bool((moved <= promised * (1 + _ROUNDING)).all()),
        f"given all that was sent before, a node's data moves its signals by mu {moved.max():.4g}, and mu "
        f"{promised.max():.4g} was promised",
        "let a node go on from what it sent, noise and all, also where it hears nothing; and count every fresh draw",
    )


def _check_account(method: Method, algorithms: list[Algorithm], problem: Quadratic) -> None:
    """The account makes of each run's ledger what that run promised, though another was made after it."""
    if isinstance(method.account, str):
        _require(
            not any(one.releases for one in algorithms), "it promises something, and has no account", "bring an account"
        )
        return
    account = method.account
    _require(
        inspect.isfunction(account) and not (account.__closure__ or account.__defaults__ or account.__kwdefaults__),
        "the account has more to ask than the ledger: it is closed over something else",
        "make it a plain function of a module, of the ledger alone",
    )
    for algorithm in algorithms:
        result = run(algorithm, problem, options=RunOptions(evaluate_every=_EPOCHS))
        recomputed = account(read(result))
        _compare(recomputed, algorithm.releases)
        sending = [name for name in result.ledger if "_sending_" in str(name)]
        _require(
            not any(part.ratio.any() for part in recomputed)
            or any(_is_noticed(account, result, name, recomputed) for name in sending),
            "the account finds the same in a ledger that says otherwise of what was sent",
            "work it out from the ledger's tables, and from nothing that the method remembers",
        )


def _is_noticed(account: Account, result: Result, table: Hashable, before: tuple[Releases, ...]) -> bool:
    """Whether an account finds another cost, or refuses, where a table has half its numbers."""
    halved = result.ledger.assign({table: result.ledger[table] / 2})
    try:
        recomputed = account(read(replace(result, ledger=halved)))
    except Error:
        return True
    return len(recomputed) != len(before) or not all(
        np.array_equal(one.ratio, other.ratio) for one, other in zip(recomputed, before, strict=True)
    )


def _compare(recomputed: tuple[Releases, ...], promised: tuple[Releases, ...]) -> None:
    _require(
        [(part.law, part.against) for part in recomputed] == [(part.law, part.against) for part in promised],
        "the account finds other laws or adversaries than were promised",
        "let both name the same, the strongest adversary first",
    )
    for computed, said in zip(recomputed, promised, strict=True):
        _require(
            np.allclose(computed.ratio, said.ratio, rtol=TOLERANCE, atol=0),
            f"against {said.against} the account finds other ratios in the ledger than were promised",
            "work them out from the ledger's tables: what moves in epoch t is hidden by the noise of what is sent next",
        )
