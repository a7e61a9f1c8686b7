"""What a method says of itself, once: everything that lists, offers, checks or accounts for methods reads this."""

import inspect
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, get_args, get_origin, get_type_hints

from murmurcast import _check
from murmurcast.algorithms.account import Account, NoiseSent
from murmurcast.algorithms.base import Algorithm
from murmurcast.errors import Error
from murmurcast.planning.schedule import Decay

NumberPerNode = float | Sequence[float]  # one for all nodes, or one for each


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Make(Protocol):
    """Makes an algorithm. Its first parameter is called setup, or plan if it carries one out; options are keywords."""

    def __call__(self, setup: Any, /, *args: Any, **options: Any) -> Algorithm:
        """The algorithm for this setup."""
        ...


class Option(NamedTuple):
    """One option of a method, read off its factory.

    Attributes:
        name: As in [algorithm] of an experiment file.
        choices: The words it may be; () for a number.
        default: Where it is left out.
        per_node: Whether it may also be a list, one number for each node.
    """

    name: str
    choices: tuple[str, ...]
    default: Any
    per_node: bool = False


class Method(NamedTuple):
    """One method.

    Attributes:
        name: As in an experiment file.
        make: Its factory.
        summary: In a few words, what it does.
        account: Recomputes what a run released from its ledger, or the reason why there is nothing to recompute: what
            stands between it and a promise.
        reference: Where it was published.
        promises: Against whom, in words; empty where nothing is promised.
        otherwise: Why nothing is promised where its options leave it without a promise.
        formula: What its account comes to, in symbols.
        needs: What it asks of the network, in words; empty for nothing but what every network is.
        uses: Channel uses per epoch, in words; with another access than by air, of each message as many as slots.
        secure: Whether it can draw its noise on a grid, as secure noise needs.
        sends: Whether anything leaves a node.
        drops: Whether its account knows of nodes that drop out.
        projects: Whether it can keep models within a ball or a box.
        side_vector: What nodes exchange before training to undo unequal weights: "z" (row-stochastic), or "y"
            (column-stochastic); free of data.
        noise_sent: How much noise a ledger claims, for comparison with the energy that was sent; None where that is
            not known.
        free_rounds: Whether it can mix again in an epoch without noise, as `schedule.rounds` says.
        radio: Whether it can send over a radio, as the setup's says.
        counts_coins: Whether its account counts what secret coins hide, where records join by them.
        averages: Whether it steps along the mean of all gradients, not their sum: its steps are then as long as
            Algorithm 1's where step_factor is the number of nodes.
        decays: The schedules of steps that it is tuned over where methods are ranked: constant steps, as all are, and
            those it was published with.
        tries: Options of its own that it is tuned over besides, by name: what its authors leave to be chosen.
    """

    name: str
    make: Make
    summary: str
    account: Account | str
    reference: str
    promises: str = ""
    otherwise: str = ""
    formula: str = "mu_j^2 = sum over epochs of (what one unit's data moves / the noise that hides it)^2"
    needs: str = ""
    uses: str = "1"
    secure: bool = False
    sends: bool = True
    drops: bool = False
    projects: bool = True
    side_vector: Literal["none", "z", "y"] = "none"
    noise_sent: NoiseSent | None = None
    free_rounds: bool = False
    radio: bool = False
    counts_coins: bool = False
    averages: bool = False
    decays: tuple[Decay, ...] = ("constant",)
    tries: Mapping[str, tuple[float, ...]] = MappingProxyType({})

    @property
    def reason(self) -> str:
        """Why nothing is promised; empty where something is."""
        return self.account if isinstance(self.account, str) else ""

    @property
    def needs_plan(self) -> bool:
        """Whether it carries out Algorithm 1's plan; else a setup is enough."""
        first = next(iter(inspect.signature(self.make).parameters))
        return first == "plan"

    @property
    def options(self) -> tuple[Option, ...]:
        """Its options."""
        hints = get_type_hints(self.make)
        return tuple(
            _option(self.name, name, hints.get(name), parameter.default)
            for name, parameter in inspect.signature(self.make).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        )

    def checked(self, given: dict[str, Any]) -> dict[str, Any]:
        """The options as given, each known and of its kind."""
        known = {option.name: option for option in self.options}
        for name, value in given.items():
            if name not in known:
                raise Error(f"{self.name} has no option {name}", hint=_check.nearest(name, known))
            if known[name].choices:
                if value not in known[name].choices:
                    raise Error(f'{name} is "{value}"', hint=_check.nearest(str(value), known[name].choices))
            elif not all(map(_is_number, value if known[name].per_node and isinstance(value, list) else [value])):
                raise Error(f"{name} is {value!r:.60}, expected a number", hint="give a number, without quotes")
        return given


def _option(method: str, name: str, hint: Any, default: Any) -> Option:
    """One keyword of a factory; a word is known by its `Literal`, and anything else is a number."""
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    if not (default in choices if choices else _is_number(default)):
        default_text = "no default" if default is inspect.Parameter.empty else f"the default {default!r:.60}"
        raise Error(
            f"the option {name} of {method} has {default_text}, expected {' or '.join(choices) or 'a number'}",
            hint="give it a number as default, or annotate it as Literal of the words that it may be",
        )
    return Option(name, choices, default, hint == NumberPerNode)
