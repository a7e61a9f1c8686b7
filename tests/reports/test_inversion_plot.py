"""The figure shows every picture where it belongs, and its caption says what the numbers say."""

from pathlib import Path

import numpy as np

from murmurcast.audits.inversion import Inversion, Picture, Setting
from murmurcast.reports import plots
from murmurcast.reports.inversion_plot import inversion_caption, inversion_figure

SETTINGS = (
    Setting("noise off", "nothing promised", np.inf),
    Setting("nominal", "claims epsilon 1 in every epoch", np.inf),
    Setting("certified", "epsilon 1 in all, against everybody", 1.0),
)
ERRORS = {
    ("noise off", 1): [0.0],
    ("noise off", 70): [0.001],
    ("nominal", 1): [0.24, 0.26],
    ("nominal", 70): [0.9, 1.2],
    ("certified", 1): [0.998, 1.0],
}


def inversion() -> Inversion:
    pictures = []
    for place, (kept, setting) in enumerate((kept, one.name) for kept in (1, 70) for one in SETTINGS):
        errors = np.array(ERRORS.get((setting, kept), [1.0, 1.1]))
        labels = (3,) * len(errors) if setting == "noise off" else (3, 1)[: len(errors)]
        pictures.append(Picture(setting, kept, np.full((4, 4), place / 10), labels, errors, 0 * errors))
    names = tuple("abcdefgh")
    pair = np.zeros((4, 4)), np.ones((4, 4))
    return Inversion("mine", names, pair[0], 3, pair[1], 0.1, (0.0, 1.0), 9, 1e-5, (1, 70), SETTINGS, tuple(pictures))


def test_every_picture_is_in_its_row_and_column() -> None:
    figure = inversion_figure(inversion())
    figure.canvas.draw()
    shown = [float(np.asarray(axes.images[0].get_array())[0, 0]) for axes in figure.axes]
    np.testing.assert_allclose(shown, [0, 0, 0.1, 0.2, 1, 0, 0.3, 0.4, 0.5, 1])
    assert [axes.get_ylabel() for axes in figure.axes[::5]] == ["1 image\nper node", "70 images\nper node"]
    below = [axes.get_xlabel() for axes in figure.axes]
    assert below[1] == "error below 0.01\nlabel right: 1 of 1"
    assert below[2] == "error 0.25 \N{PLUS-MINUS SIGN} 0.01\nlabel right: 1 of 2"
    assert below[3] == "error 0.999 \N{PLUS-MINUS SIGN} 0.001\nlabel right: 1 of 2"
    assert [axes.texts[0].get_text() for axes in figure.axes[:5]] == [
        "original",
        "noise off",
        "nominal",
        "certified",
        "best guess",
    ]
    assert figure.axes[0].get_title().strip() == '"d"'
    assert figure.axes[2].get_title() == "claims epsilon 1\nin every epoch"


def test_the_caption_is_made_of_the_numbers() -> None:
    words = inversion_caption(inversion())
    assert "Noise off: error below 0.01 and below 0.01 with 1 and 70 images per node." in words
    assert "Nominal: error 0.25 ± 0.01 and 1.05 ± 0.15 (not told apart from guessing) with 1 and 70" in words
    assert "9 epochs" in words


def test_it_is_the_same_file_every_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plots.save(inversion_figure(inversion()), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
