"""`murmurcast rank` through its real entry point."""

import json
from pathlib import Path

import pytest

from murmurcast.experiments.load import example, parse
from tests import commands

TINY = """
[network]
gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]
[data]
name = "logistic"
examples = 90
features = 3
classes = 3
test_fraction = 0.2
[privacy]
epsilon = 1.0
unit = "record"
"""
FEW = ("--epsilon", "2", "--uses", "6", "--seeds", "2", "--methods", "power-controlled,decor,dwfl")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("rank")
    (folder / "tiny.toml").write_text(TINY)
    done = commands.run("rank", "tiny.toml", *FEW, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_tables_name_adversary_unit_and_that_the_choice_is_not_paid(ranked: tuple[Path, str]) -> None:
    _, shown = ranked
    for against in ("everybody", "eavesdropper and one node", "eavesdropper"):
        assert f"Against {against}: epsilon 2 (delta 1e-05, unit record), 6 uses" in shown
    assert "settings chosen on this data, not paid: a comparison, not a release" in shown
    assert "Not ranked" in shown
    assert "6 x 1" in shown


def test_page_plots_and_values_are_kept(ranked: tuple[Path, str]) -> None:
    folder, shown = ranked
    kept = folder / "rankings" / "tiny"
    for name in ("ranking.html", "uses.png", "uses.pdf", "adversaries.png", "adversaries.pdf", "ranking.json"):
        assert (kept / name).stat().st_size > 1000
        assert str(Path("rankings", "tiny", name)) in shown
    page = (kept / "ranking.html").read_text()
    assert "Settings chosen on this data, not paid" in page
    assert "Against eavesdropper and one node" in page


@pytest.mark.slow
def test_the_same_command_goes_on_from_what_is_done(ranked: tuple[Path, str]) -> None:
    folder, _ = ranked
    before = {path: path.stat().st_mtime_ns for path in (folder / "rankings" / "tiny" / "scores").glob("*.json")}
    assert len(before) == 4
    done = commands.run("rank", "tiny.toml", *FEW, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert before == {path: path.stat().st_mtime_ns for path in before}
    values = json.loads(done.stdout)
    assert {score["method"] for score in values["scores"]} == {"power-controlled", "decor"}
    assert all(abs(score["certified"] - 2) < 1e-9 for score in values["scores"])
    assert [one["method"] for one in values["left_out"]] == ["dwfl"]
    assert values["statement"].startswith("settings chosen on this data, not paid")
    assert values["tables"][0]["methods"][0]["mean"] >= values["tables"][0]["methods"][-1]["mean"]


@pytest.mark.parametrize(
    "words",
    [
        ("--epsilon", "-1"),
        ("--uses", "0"),
        ("--seeds", "0"),
        ("--methods", "nothing-like-it"),
        ("--methods", ""),
        ("--out", "tiny.toml"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    commands.refused(commands.run("rank", "tiny.toml", *words, cwd=tmp_path))


def test_a_file_that_cannot_be_ranked_is_refused(tmp_path: Path) -> None:
    commands.refused(commands.run("rank", "none.toml", cwd=tmp_path))
    (tmp_path / "free.toml").write_text(f"{TINY}[problem]\nclipping = 'none'\n")
    assert "not clipped" in commands.refused(commands.run("rank", "free.toml", cwd=tmp_path))


def test_the_shipped_example_is_sparse_and_asymmetric() -> None:
    network = parse(example("digits-sparse").encode(), "digits-sparse").build_network()
    gains = network.gains.toarray()
    assert network.nodes == 10
    assert (gains > 0).sum() == 2 * 14
    assert not (gains == gains.T)[gains > 0].any()


QUADRATIC = "[network]\ntopology = 'ring'\nnodes = 3\n[problem]\nkind = 'quadratic'\n[privacy]\nepsilon = 1.0\n"


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (TINY, ("--epsilon", "0"), "epsilon is 0"),
        (TINY, ("--epsilon", "nan"), "epsilon is nan"),
        (TINY, ("--epsilon", "much"), "--epsilon"),
        (TINY, ("--epsilon", "1", "--epsilon", "1"), "epsilons is (1.0, 1.0)"),
        (TINY, ("--uses", "1"), "uses is 1"),
        (TINY, ("--uses", "2.5"), "--uses"),
        (TINY, ("--seeds", "1001"), "seeds is 1001, more than 1000"),
        (TINY, ("--methods", "power-controlled,decorr"), 'no method "decorr"'),
        (TINY, ("--methods", "no_such_module:mine"), "no_such_module"),
        (QUADRATIC, (), 'problem.kind is "quadratic"'),
    ],
)
def test_refusals_name_what_is_wrong_and_keep_nothing(
    tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "tiny.toml").write_text(text)
    assert said in commands.refused(commands.run("rank", "tiny.toml", *words, cwd=tmp_path))
    assert not (tmp_path / "rankings").exists()


def test_where_nothing_can_be_ranked_it_says_why_and_shows_no_table(tmp_path: Path) -> None:
    """Uses below two epochs, a method that promises nothing, and one that sends nothing."""
    (tmp_path / "tiny.toml").write_text(TINY)
    names = "private-gradient-tracking,dsgd,local-only"
    done = commands.run("rank", "tiny.toml", "--uses", "3", "--epsilon", "2", "--methods", names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "two epochs need 4 channel uses, and there are 3" in shown
    assert "nothing is promised: " in shown
    assert "nothing is sent, and nothing published" in shown
    assert "Against " not in shown
    assert {path.name for path in (tmp_path / "rankings" / "tiny").glob("*.*")} == {"ranking.html", "ranking.json"}
    kept = json.loads((tmp_path / "rankings" / "tiny" / "ranking.json").read_text())
    assert (kept["scores"], kept["tables"], len(kept["left_out"])) == ([], [], 3)
