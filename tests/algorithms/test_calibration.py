"""Noise that is found for a budget, and options: what holds for every method that promises something."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.errors import Infeasible
from murmurcast.privacy.conversion import epsilon_of, mu_of
from tests.algorithms.calibrated import (
    CLIP,
    DELTA,
    EPSILON,
    EXAMPLES,
    ORDER,
    allowed_mu,
    noise_in,
    plan_of,
    relabelled,
    setup_of,
)
from tests.algorithms.networks import POWER, one_way, two_way

Make = Callable[[mc.Setup], Algorithm]
BY_ROWS: dict[str, Make] = {  # how rows weigh depends on how loud senders are
    "row-stochastic-laplace": mc.row_stochastic_laplace,
    "row-stochastic-laplace, l1": lambda setup: mc.row_stochastic_laplace(setup, calibration="l1"),
}
ONE_BY_ONE: dict[str, Make] = {  # every node has noise of its own
    "dp-dsgd": mc.dp_dsgd,
    "subgradient-push-gaussian": mc.subgradient_push_gaussian,
    "private-frost": mc.private_frost,
    "private-push-pull": mc.private_push_pull,
    "private-push-pull, ab": lambda setup: mc.private_push_pull(setup, form="ab"),
    "private-gradient-tracking": mc.private_gradient_tracking,
    "private-exact-diffusion": mc.private_exact_diffusion,
    "private-exact-diffusion, row": lambda setup: mc.private_exact_diffusion(setup, weights="row"),
    "muffliato": mc.muffliato,
    "mafalda": mc.mafalda,
}
COMMON: dict[str, Make] = {  # one scale for all, as pairs need
    "decor, sinkhorn": lambda setup: mc.decor(setup, weights="sinkhorn"),
    "decor-exact-diffusion": mc.decor_exact_diffusion,
    "decor-exact-diffusion, everybody": lambda setup: mc.decor_exact_diffusion(setup, against="everybody"),
}
ALL = BY_ROWS | ONE_BY_ONE | COMMON


@pytest.mark.parametrize("case", ALL)
def test_noise_grows_with_the_clip_and_falls_with_epsilon(case: str) -> None:
    plain = noise_in(ALL[case](setup_of()))
    np.testing.assert_allclose(noise_in(ALL[case](setup_of(clip=3 * CLIP))), 3 * plain, rtol=1e-12)
    looser = noise_in(ALL[case](setup_of(epsilon=2 * EPSILON)))
    tighter = noise_in(ALL[case](setup_of(epsilon=EPSILON / 2)))
    assert (looser < plain).all()
    assert (plain < tighter).all()


@pytest.mark.parametrize("case", BY_ROWS | ONE_BY_ONE)
def test_a_node_with_more_records_needs_less_noise(case: str) -> None:
    """S_j is 2 C for a node, 2 C / n_j for a record."""
    node, record = (noise_in(ALL[case](setup_of(unit=unit))) for unit in ("node", "record"))
    np.testing.assert_allclose(record, node / np.array(EXAMPLES), rtol=1e-12)


@pytest.mark.parametrize("case", COMMON)
def test_a_common_scale_is_that_of_the_fewest_records(case: str) -> None:
    record = noise_in(ALL[case](setup_of(unit="record")))
    np.testing.assert_allclose(record, record[0], rtol=1e-12)
    for part in ALL[case](setup_of(unit="record")).releases:
        assert int(np.argmax(mu_of(part))) == int(np.argmin(EXAMPLES))
    node = noise_in(ALL[case](setup_of()))
    assert (record < node / 9).all()  # ten records at the least; pairs hide nodes unequally


@pytest.mark.parametrize("case", ONE_BY_ONE | COMMON)
def test_noise_does_not_depend_on_power(case: str) -> None:
    other = mc.Network(gains=two_way().gains, power=POWER[::-1] * 7)
    one, louder = (noise_in(ALL[case](setup_of(network))) for network in (two_way(), other))
    np.testing.assert_allclose(one, louder, rtol=1e-9)


@pytest.mark.parametrize("case", ALL)
def test_power_that_all_have_more_of_changes_nothing_but_amplitudes(case: str) -> None:
    other = mc.Network(gains=two_way().gains, power=POWER * 9)
    one, louder = (ALL[case](setup_of(network)) for network in (two_way(), other))
    np.testing.assert_allclose(noise_in(one), noise_in(louder), rtol=1e-9)
    for before, after in zip(one.rounds, louder.rounds, strict=True):
        np.testing.assert_allclose(after.sending.amplitude, 3 * before.sending.amplitude, rtol=1e-9)
        np.testing.assert_allclose(after.receiving.heard, before.receiving.heard / 3, rtol=1e-9)


@pytest.mark.parametrize("case", ALL)
def test_relabelling_nodes_permutes_noise_and_tables(case: str) -> None:
    one, other = (ALL[case](setup_of(network)) for network in (two_way(), relabelled(two_way())))
    np.testing.assert_allclose(noise_in(other), noise_in(one)[ORDER], rtol=1e-9)
    for before, after in zip(one.rounds, other.rounds, strict=True):
        for part in ("sending", "receiving"):
            for name, table in getattr(before, part)._asdict().items():
                there = getattr(getattr(after, part), name)
                expected = table if table.ndim == 1 else table[:, ORDER]
                np.testing.assert_allclose(there, expected, rtol=1e-9, atol=1e-14, err_msg=name)
    for before_part, after_part in zip(one.releases, other.releases, strict=True):
        np.testing.assert_allclose(after_part.ratio, before_part.ratio[:, ORDER], rtol=1e-9)


@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_every_node_pays_the_whole_budget(case: str) -> None:
    (part,) = ALL[case](setup_of(unit="record")).releases
    assert part.against == "everybody"
    np.testing.assert_allclose(mu_of(part), allowed_mu(), rtol=1e-9)


@pytest.mark.parametrize("case", ONE_BY_ONE | {"row-stochastic-laplace": mc.row_stochastic_laplace})
def test_more_noise_than_needed_is_taken_as_given_and_less_is_refused(case: str) -> None:
    least = noise_in(ALL[case](setup_of()))
    more = ALL[case](setup_of(noise_to_step=tuple(2 * least)))
    np.testing.assert_allclose(noise_in(more), 2 * least, rtol=1e-12)
    np.testing.assert_allclose(mu_of(more.releases[0]), mu_of(ALL[case](setup_of()).releases[0]) / 2, rtol=1e-9)
    less = least * np.array([1, 1, 0.5, 1, 1])
    with pytest.raises(Infeasible, match=f"costs node {int(np.argmin(less / least))} a total epsilon") as raised:
        ALL[case](setup_of(noise_to_step=tuple(less)))
    smallest = raised.value.smallest_epsilon
    assert '"auto"' in raised.value.hint
    tried = ALL[case](setup_of(noise_to_step=tuple(less), epsilon=smallest))
    assert epsilon_of(tried.releases[0], DELTA).max() == pytest.approx(smallest, rel=1e-8)
    with pytest.raises(Infeasible):
        ALL[case](setup_of(noise_to_step=tuple(less), epsilon=smallest * 0.999))


@pytest.mark.parametrize("case", ALL)
def test_a_promise_is_tied_to_functions_setup_and_releases(case: str) -> None:
    algorithm = ALL[case](setup_of())
    assert algorithm.is_as_proved
    assert not algorithm.has_lost_its_proof
    for number, one in enumerate(algorithm.rounds):
        for part in ("send", "update"):
            parts: dict[str, Any] = {part: lambda *_: None}
            other = list(algorithm.rounds)
            other[number] = one._replace(**parts)
            exchanged = algorithm._replace(rounds=tuple(other))
            assert not exchanged.is_as_proved
            assert exchanged.has_lost_its_proof
    assert algorithm._replace(init=lambda start, _: start).has_lost_its_proof
    without = algorithm._replace(releases=())
    assert (without.is_as_proved, without.has_lost_its_proof) == (False, False)  # it claims nothing


NEEDS_PLAN = [one.name for one in registry.methods() if one.needs_plan]
PLAIN = [one.name for one in registry.methods() if not one.needs_plan and one.name != "dwfl"]


@pytest.mark.parametrize("name", PLAIN)
def test_one_way_links_are_accepted_or_refused_as_methods_say(name: str) -> None:
    method = registry.find(name)
    if "two-way links" not in method.needs:
        assert method.make(setup_of(one_way())).name == name
        return
    with pytest.raises(mc.Error, match=r"needs two-way links: node \d hears node \d but not") as raised:
        method.make(setup_of(one_way()))
    assert "use a method for one-way links" in raised.value.hint


def test_there_are_methods_of_both_kinds() -> None:
    refusing = {name for name in PLAIN if "two-way links" in registry.find(name).needs}
    assert {"dp-dsgd", "decor", "muffliato", "mafalda", "private-gradient-tracking"} <= refusing
    assert {"private-frost", "private-push-pull", "subgradient-push", "row-stochastic"} <= set(PLAIN) - refusing


@pytest.mark.parametrize("name", [*PLAIN, *(name for name in NEEDS_PLAN if name != "ped2fl")])
def test_settings_are_all_options_and_make_the_same_again(name: str) -> None:
    """What the ledger says of options is enough to make the method anew, table by table."""
    method = registry.find(name)
    setup = plan_of() if method.needs_plan else setup_of()
    algorithm = method.make(setup)
    names = {option.name for option in method.options}
    assert names - set(algorithm.settings) <= {"smoothness"}  # what is not known is not said
    assert set(algorithm.settings) <= names
    again = method.make(setup, **algorithm.settings)
    assert again.settings == algorithm.settings
    for one, other in zip(algorithm.rounds, again.rounds, strict=True):
        for part in ("sending", "receiving"):
            for field, table in getattr(one, part)._asdict().items():
                np.testing.assert_array_equal(getattr(getattr(other, part), field), table, err_msg=field)


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("dsgd", {"step_factor": 0}, "step_factor is 0", "above 0"),
    ("dsgd", {"weights": "sinkhor"}, 'weights is "sinkhor"', 'did you mean "sinkhorn"'),
    ("dp-dsgd", {"access": "slot"}, 'access is "slot"', 'did you mean "slots"'),
    ("dp-dsgd", {"step_factor": -1.0}, "step_factor is -1", "above 0"),
    ("dp-dsgd", {"publish": "avrage"}, 'publish is "avrage"', 'did you mean "average"'),
    ("dp-dsgd", {"weights": "metropolis"}, "cannot be made by one multicast", 'access = "slots"'),
    ("subgradient-push", {"weights": "colum"}, 'weights is "colum"', 'did you mean "column"'),
    ("subgradient-push-gaussian", {"step_factor": 0}, "step_factor is 0", "above 0"),
    ("row-stochastic", {"access": "wire"}, 'access is "wire"', "known here: air, orthogonal, slots"),
    ("row-stochastic-laplace", {"calibration": "certifed"}, 'calibration is "certifed"', 'did you mean "certified"'),
    ("row-stochastic-laplace", {"gradient_at": "mixd"}, 'gradient_at is "mixd"', 'did you mean "mixed"'),
    ("private-frost", {"step_factor": [1.0, 2.0]}, r"shape \(2,\), expected one number or 5", "one entry per node"),
    ("private-frost", {"step_factor": [1.0, 1, 1, 0, 1]}, r"step_factor\[3\] is 0", "above 0"),
    ("private-push-pull", {"form": "a-b"}, 'form is "a-b"', 'did you mean "ab"'),
    ("private-push-pull", {"step_factor": [1.0] * 6}, r"shape \(6,\)", "one entry per node"),
    ("private-gradient-tracking", {"weights": "metropoli"}, 'weights is "metropoli"', 'did you mean "metropolis"'),
    ("private-gradient-tracking", {"step_factor": 0.0}, "step_factor is 0", "above 0"),
    ("exact-diffusion", {"access": "orthogonl"}, 'access is "orthogonl"', 'did you mean "orthogonal"'),
    ("private-exact-diffusion", {"step_factor": 0}, "step_factor is 0", "above 0"),
    ("muffliato", {"gossip": 0}, "gossip is 0, expected a whole number of at least 1", "raise gossip"),
    ("muffliato", {"gossip": 101}, "gossip is 101, expected at most 100", "such as 4"),
    ("muffliato", {"gossip": 2.5}, "gossip is 2.5", "without quotes"),
    ("mafalda", {"bandwidth": 0}, "bandwidth is 0", "raise bandwidth"),
    ("mafalda", {"bandwidth": 65}, "bandwidth is 65, expected at most 64", "such as 4"),
    ("decor", {"against": "everyone"}, 'against is "everyone"', 'did you mean "everybody"'),
    ("decor", {"weights": "rows"}, 'weights is "rows"', 'did you mean "row"'),
    ("decor", {"shared_to_own": 0}, "shared_to_own is 0", "above 0"),
    ("decor-exact-diffusion", {"shared_to_own": -2}, "shared_to_own is -2", "above 0"),
    ("decor-exact-diffusion", {"against": "eavesdroper"}, 'against is "eavesdroper"', 'did you mean "eavesdropper"'),
    ("locally-balanced", {"noise_to_step": 0}, "noise_to_step is 0", "above 0"),
]


@pytest.mark.parametrize(("name", "options", "words", "hint"), BAD, ids=[f"{one[0]} {one[1]}" for one in BAD])
def test_bad_options_are_refused_by_name_and_with_a_way_out(
    name: str, options: dict[str, Any], words: str, hint: str
) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        registry.find(name).make(setup_of(), **options)
    assert hint in raised.value.hint
