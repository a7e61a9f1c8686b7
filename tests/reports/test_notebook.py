"""What a notebook shows of objects: their own numbers, no script, and no epsilon that does not hold."""

import html
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.experiments import display
from murmurcast.privacy.rounding import at_most
from murmurcast.reports import notebook
from murmurcast.runs.compare import Comparison
from tests.conftest import asymmetric_network
from tests.reports.examples import NODES, example, plan
from tests.reports.sweeps import sweep, with_failure
from tests.reports.test_audits import CHECK, FOUND


def words(text: str) -> str:
    """What is left to read."""
    plain = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", plain)).split())


@cache
def shown(name: str) -> str:
    things: dict[str, object] = {
        "network": asymmetric_network(7, nodes=NODES),
        "plan": plan(),
        "run": example("power_controlled"),
        "comparison": mc.compare(example("power_controlled"), example("mped2fl"), metric="published_distance"),
        "certificate": plan().certificate,
        "certified": mc.certify(example("power_controlled")),
        "sweep": sweep(),
    }
    text: str = things[name]._repr_html_()  # type: ignore[attr-defined]
    return text


EVERY = ("network", "plan", "run", "comparison", "certificate", "certified", "sweep")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", EVERY)
def test_it_is_one_part_of_a_page_that_runs_nothing(name: str) -> None:
    text = shown(name)
    assert text.startswith('<div class="murmurcast"><style>')
    assert text.endswith("</div>")
    assert text.count("<div") == text.count("</div>")
    for never in ("<script", "<html", "<body", "http://", "https://", "onload", "<link"):
        assert never not in text
    # Every rule of the style stays inside: the notebook's own cells keep their looks.
    style = re.sub(r"/\*.*?\*/", "", re.findall(r"<style>(.*?)</style>", text, re.DOTALL)[0], flags=re.DOTALL)
    selectors = [one for rule in re.findall(r"([^{}]+)\{", style) for one in re.split(r",(?![^(]*\))", rule)]
    assert selectors
    assert all(one.strip().startswith(".murmurcast") for one in selectors), selectors


def test_a_network_says_what_it_is_and_is_drawn() -> None:
    network, text = asymmetric_network(7, nodes=NODES), words(shown("network"))
    assert f"Network of {NODES} nodes" in text
    assert f"Links {network.links}, all two-way" in text
    assert f"{network.gains.data.min():.3g} to {network.gains.data.max():.3g}" in text
    assert "data:image/png;base64," in shown("network")


def test_large_networks_are_not_drawn() -> None:
    text = display.html(mc.topologies.ring(301, seed=1))
    assert "<img" not in text
    assert "Not drawn" in text
    one_way = np.roll(np.eye(3), 1, axis=1)
    assert "some of them one-way" in words(display.html(mc.Network(gains=one_way, names=["<b>", "y", "z"])))
    assert "<b>" not in display.html(mc.Network(gains=one_way, names=["<b>", "y", "z"]))


def test_a_plan_shows_its_cost_its_nodes_and_its_warnings() -> None:
    result, text = plan(), words(shown("plan"))
    assert f"A run costs epsilon {at_most(result.certificate.epsilon.max())} at delta 1e-05, unit node" in text
    assert "is right at most" in text
    for title in ("What 12 epochs cost", "Nodes", "Schedule 12 epochs"):
        assert title in text
    for line in result.warnings:
        assert " ".join(line[1:].split()) in text
    assert shown("plan").count("<tr>") == 1 + len(result.network.names) + 1 + 3


def test_a_plan_without_a_clip_says_that_it_is_nominal() -> None:
    problem = mc.ClippedGradients(clipping="none")
    result = mc.plan(asymmetric_network(3, 4), problem, mc.Budget(epsilon=1.0), mc.Schedule(epochs=5), z="perron")
    text = words(display.html(result))
    assert "Nominal epsilon" in text
    assert "A run costs" not in text
    assert "certified" not in text


def test_a_run_shows_what_it_promises_and_reached() -> None:
    run, text = example("power_controlled"), words(shown("run"))
    assert "Run power-controlled: power-controlled on 5 nodes, 12 epochs, 2 seeds" in text
    assert f"epsilon {at_most(run.info['privacy']['epsilon'])} at delta 1e-05" in text
    assert f"{run.final('published_distance').mean():.4f} ±" in text
    assert "Seeds 0, 1" in text


def test_a_run_whose_account_does_not_hold_shows_no_epsilon() -> None:
    """As `compare` and `report`: what `certify` would refuse is not shown as a promise."""
    run = example("power_controlled")
    privacy = run.info["privacy"] | {"epsilon": 0.125}
    forged = mc.Result(**vars(run) | {"info": run.info | {"privacy": privacy}})
    text = words(display.html(forged))
    assert "not certified" in text
    assert "promises epsilon" not in text
    assert "0.13 (node)" not in text  # nor in the table, where it would be rounded up


def test_the_name_of_a_run_stays_text() -> None:
    run = example("noiseless", called="<script>alert(1)</script>")
    text = display.html(run)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "promises nothing" in words(text)


def test_a_comparison_shows_its_own_table() -> None:
    result = mc.compare(example("power_controlled"), example("mped2fl"), metric="published_distance")
    text = words(shown("comparison"))
    for row in result.cells:
        assert " ".join(" ".join(row).split()) in text
    assert "seed by seed" in text
    assert isinstance(result, Comparison)


def test_a_certificate_lists_what_nodes_pay() -> None:
    result, text = plan().certificate, words(shown("certificate"))
    assert f"epsilon {at_most(result.epsilon.max())} at delta 1e-05, unit node, is the most" in text
    assert shown("certificate").count("<tr>") == 1 + NODES
    many = result._replace(mu=np.linspace(1, 2, 50), epsilon=np.linspace(3, 4, 50))
    text = display.html(many)
    assert text.count("<tr>") == 1 + 20
    assert "The 30 nodes that pay least are left out here." in text
    assert f">{at_most(4.0)}<" in text
    assert f">{at_most(3.0)}<" not in text


def test_what_certify_found_is_held_or_broken() -> None:
    assert "held The promise is kept." in words(shown("certified"))
    broken = mc.certify(example("power_controlled"))._replace(verdict="broken", problems=("it costs more",))
    text = words(display.html(broken))
    assert "did not hold The promise is broken." in text
    assert "It costs more." in text
    nothing = words(display.html(mc.certify(example("mped2fl"))))
    assert "Nothing is promised." in nothing
    assert "What it cost Nodes" not in nothing


def test_a_sweep_has_a_table_and_a_plot() -> None:
    result, text = sweep(), words(shown("sweep"))
    assert "6 points, 3 seeds each" in text
    assert "At the end, published distance" in text or "At the end, published loss" in text
    assert "<img" in shown("sweep")
    name = next(iter(result.runs))
    failed = words(display.html(with_failure(result, name, "no plan meets the budget")))
    assert f"{name} failed: no plan meets the budget." in failed
    nothing = mc.Sweep(**vars(result) | {"runs": {}, "epsilons": {}})
    assert "No point is done yet." in display.html(nothing)


def test_anything_else_is_refused() -> None:
    for asked in (display.html, display.text):
        with pytest.raises(Error, match="int has no") as raised:
            asked(3)
        assert raised.value.hint
    assert set(notebook.shown.registry) >= {mc.Network, mc.Plan, mc.Result, mc.Certificate, mc.Audit, mc.Sweep}


def test_ipython_takes_the_view() -> None:
    """As Jupyter does: by its own formatters, without importing anything but the object."""
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    built, _ = formatters.DisplayFormatter().format(plan().certificate)
    assert built["text/html"] == shown("certificate")


def test_a_falsified_audit_says_so() -> None:
    assert "not falsified Verdict:" in words(display.html(FOUND))
    text = display.html(replace(FOUND, checks=(CHECK._replace(refutes=True),), warnings=("it was <quick>",)))
    assert "did not hold Verdict: FALSIFIED by a check of the size of the noise" in words(text)
    assert "warning It was <quick>." in words(text)
    assert "What adversaries learn" in text
    assert "<script" not in text


def test_a_plan_as_a_frame_has_a_row_for_every_node() -> None:
    result = plan()
    frame = result.to_frame()
    assert list(frame["node"]) == list(result.network.names)
    np.testing.assert_array_equal(frame["alpha"] + frame["beta"], 1)
    np.testing.assert_array_equal(frame["epsilon"], result.certificate.epsilon)
    assert set(frame["why_nominal"]) == {""}
