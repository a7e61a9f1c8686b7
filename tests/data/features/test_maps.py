"""Feature maps against slow plain loops, one image and one pixel at a time; and every example alone."""

import math
import re

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.features.base import FeatureMap, Rows, windows
from murmurcast.data.features.catalogue import MAPS, in_words, maps_of, words_of_section

# Neither square nor even, so that rows and columns cannot be mixed up.
HEIGHT, WIDTH = 9, 12
IMAGES = np.random.default_rng(3).random((7, HEIGHT, WIDTH), np.float32)
IMAGES[2, :, :4] = 0  # off centre
IMAGES[5] = 0  # nothing on it
ROWS = IMAGES.reshape(len(IMAGES), -1)
SMALL: dict[str, FeatureMap] = {
    "deskew": mc.features.Deskew(),
    "hog": mc.features.Hog(cells=3, orientations=5, blur=0.8),
    "scattering": mc.features.Scattering(angles=4),
    "random-fourier": mc.features.RandomFourier(features=20, width=2.0, seed=4),
    "random-convolution": mc.features.RandomConvolution(filters=4, size=3, cells=2, seed=4),
    "unit-norm": mc.features.UnitNorm(),
}


def slow_deskew(image: "np.typing.NDArray[np.float32]", limit: float) -> "np.typing.NDArray[np.float64]":
    mass = sum(float(image[r, c]) for r in range(HEIGHT) for c in range(WIDTH))
    if mass == 0:
        return image.astype(np.float64)
    points = [(r, c, float(image[r, c]) / mass) for r in range(HEIGHT) for c in range(WIDTH)]
    row, column = sum(r * p for r, _, p in points), sum(c * p for _, c, p in points)
    slope = sum((r - row) * (c - column) * p for r, c, p in points) / sum((r - row) ** 2 * p for r, _, p in points)
    slope = max(-limit, min(limit, slope))
    upright = np.zeros((HEIGHT, WIDTH))
    for r in range(HEIGHT):
        for c in range(WIDTH):
            down = r - (HEIGHT - 1) / 2
            y, x = row + down, column + (c - (WIDTH - 1) / 2) + slope * down
            for i in (math.floor(y), math.floor(y) + 1):
                for j in (math.floor(x), math.floor(x) + 1):
                    if 0 <= i < HEIGHT and 0 <= j < WIDTH:
                        upright[r, c] += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return upright


def slow_hog(image: "np.typing.NDArray[np.float32]", cells: int, orientations: int, blur: float) -> list[float]:
    reach = int(4 * blur + 0.5)
    bell = [math.exp(-(t**2) / (2 * blur**2)) for t in range(-reach, reach + 1)]
    bell = [value / sum(bell) for value in bell]
    slope = [value * t / blur**2 for value, t in zip(bell, range(-reach, reach + 1), strict=True)]

    def at(r: int, c: int) -> float:
        return float(image[min(max(r, 0), HEIGHT - 1), min(max(c, 0), WIDTH - 1)])

    def filtered(r: int, c: int, down: list[float], right: list[float]) -> float:
        return sum(
            down[i + reach] * right[j + reach] * at(r + i, c + j)
            for i in range(-reach, reach + 1)
            for j in range(-reach, reach + 1)
        )

    histogram = np.zeros((cells, cells, orientations))
    for r in range(HEIGHT):
        for c in range(WIDTH):
            down, right = filtered(r, c, slope, bell), filtered(r, c, bell, slope)
            turn = math.atan2(down, right) / (2 * math.pi) * orientations % orientations
            low = math.floor(turn)
            votes = ((low % orientations, 1 - (turn - low)), ((low + 1) % orientations, turn - low))
            for i in range(cells):
                for j in range(cells):
                    y, x = (r + 0.5) / (HEIGHT / cells) - (i + 0.5), (c + 0.5) / (WIDTH / cells) - (j + 0.5)
                    share = max(0.0, 1 - abs(y)) * max(0.0, 1 - abs(x))
                    for orientation, vote in votes:
                        histogram[i, j, orientation] += share * vote * math.hypot(down, right)
    roots = np.sqrt(histogram).ravel()
    length = float(np.linalg.norm(roots))
    return list(roots / length if length else roots)


def test_deskewing_is_what_a_plain_loop_does() -> None:
    limit = 0.05  # so small that some slopes are cut off
    result = mc.features.Deskew(max_slope=limit).apply(ROWS, (HEIGHT, WIDTH))
    for image, row in zip(IMAGES, result, strict=True):
        np.testing.assert_allclose(row.reshape(HEIGHT, WIDTH), slow_deskew(image, limit), atol=2e-6)


def test_a_slanted_bar_in_a_corner_becomes_upright_and_central() -> None:
    image = np.zeros((1, 21, 21), np.float32)
    for row in range(2, 12):
        image[0, row, 2 + row // 2] = 1
    upright = mc.features.Deskew().apply(image.reshape(1, -1), (21, 21)).reshape(21, 21)
    lit = upright.sum(axis=0)
    assert lit[9:12].sum() > 0.99 * lit.sum()
    assert abs((upright.sum(axis=1) @ np.arange(21)) / upright.sum() - 10) < 1e-5


def test_hog_is_what_a_plain_loop_does() -> None:
    chosen = mc.features.Hog(cells=3, orientations=5, blur=0.8)
    result = chosen.apply(ROWS, (HEIGHT, WIDTH))
    for image, row in zip(IMAGES, result, strict=True):
        np.testing.assert_allclose(row, slow_hog(image, 3, 5, 0.8), atol=2e-4)
    assert result.shape == (7, 3 * 3 * 5)
    assert (result >= 0).all()


def test_windows_of_a_line_share_out_every_pixel_inside() -> None:
    result = windows(28, 7)
    assert result.shape == (7, 28)
    np.testing.assert_allclose(result[:, 2:-2].sum(axis=0), 1, atol=1e-6)
    assert (result > 0).sum(axis=1).max() == 8  # half width 4 pixels


@pytest.mark.parametrize("kind", MAPS)
def test_what_a_row_becomes_does_not_depend_on_the_rows_beside_it(kind: str) -> None:
    chosen, shape = SMALL[kind], (HEIGHT, WIDTH)
    together = chosen.apply(ROWS, shape)
    alone = np.concatenate([chosen.apply(ROWS[[row]], shape) for row in range(len(ROWS))])
    np.testing.assert_allclose(alone, together, atol=1e-5 * max(1, np.abs(together).max()))
    others = ROWS[::-1].copy() * 3
    others[4] = ROWS[4]
    np.testing.assert_array_equal(chosen.apply(others, shape)[4], together[4])  # to the last bit
    assert together.dtype == np.float32
    assert chosen.data_free


def test_random_maps_follow_their_public_seed_and_nothing_else() -> None:
    for make in (mc.features.RandomFourier, mc.features.RandomConvolution):
        first, again, other = (make(seed=seed).apply(ROWS, (HEIGHT, WIDTH)) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert np.abs(first - other).max() > 0.01


def test_random_fourier_features_come_near_their_kernel() -> None:
    points = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
    result = mc.features.RandomFourier(features=60_000, width=1.5).apply(points, None)
    distance = np.square(points[:, None] - points[None]).sum(axis=2)
    np.testing.assert_allclose(result @ result.T, np.exp(-distance / (2 * 1.5**2)), atol=0.02)


def test_random_convolutions_are_what_a_plain_loop_does() -> None:
    chosen = mc.features.RandomConvolution(filters=2, size=3, cells=1, seed=7)
    filters = np.random.default_rng([7, 6]).standard_normal((2, 9))
    filters -= filters.mean(axis=1, keepdims=True)
    filters /= np.linalg.norm(filters, axis=1, keepdims=True)
    expected = np.zeros(2)
    for r in range(HEIGHT - 2):
        for c in range(WIDTH - 2):
            share = (1 - abs((r + 0.5) / (HEIGHT - 2) - 0.5)) * (1 - abs((c + 0.5) / (WIDTH - 2) - 0.5))
            expected += share * np.maximum(filters @ IMAGES[0, r : r + 3, c : c + 3].ravel(), 0)
    np.testing.assert_allclose(chosen.apply(ROWS[:1], (HEIGHT, WIDTH))[0], expected, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_no_row_of_norm_one_exceeds_it_in_float32(scale: float) -> None:
    rows = (np.random.default_rng(2).standard_normal((2000, 37)) * scale).astype(np.float32)
    rows[3] = 0
    result = mc.features.UnitNorm().apply(rows, None).astype(np.float64)
    norms = np.sqrt(np.square(result).sum(axis=1))
    assert norms.max() <= 1
    assert norms[3] == 0
    assert np.delete(norms, 3).min() > 1 - 1e-6
    hog = mc.features.Hog().apply(np.random.default_rng(2).random((500, 784), np.float32), (28, 28))
    assert np.sqrt(np.square(hog.astype(np.float64)).sum(axis=1)).max() <= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mc.features.Deskew(max_slope=0.0), "max_slope"),
        (lambda: mc.features.Hog(cells=0), "cells"),
        (lambda: mc.features.Hog(blur=1e9), "blur"),
        (lambda: mc.features.RandomFourier(features=10**9), "features"),
        (lambda: mc.features.RandomConvolution(filters=0), "filters"),
        (lambda: mc.features.Scattering(order=3), "order"),
        (lambda: maps_of("hog"), "list of maps"),
        (lambda: maps_of(["hogg"]), '"hogg" is not a feature map'),
        (lambda: maps_of([3]), "int is not a feature map"),  # type: ignore[list-item]
        (lambda: mc.features.Hog().apply(ROWS, None), 'the feature map "hog" needs images'),
        (lambda: mc.features.RandomConvolution(size=11).apply(ROWS, (HEIGHT, WIDTH)), "do not fit"),
        (lambda: mc.features.Scattering(scales=5).apply(ROWS, (HEIGHT, WIDTH)), "5 scales need images of 32"),
    ],
)
def test_what_does_not_fit_is_an_error_with_a_hint(make: "object", words: str) -> None:
    with pytest.raises(mc.Error, match=re.escape(words)) as raised:
        make()  # type: ignore[operator]
    assert raised.value.hint


def test_a_class_derived_from_a_map_may_do_anything_and_is_refused() -> None:
    class Fitted(mc.features.UnitNorm):
        """Says what its parent says."""

    with pytest.raises(mc.Error, match="Fitted is not a feature map"):
        maps_of([Fitted()])


def test_scattering_without_kymatio_is_refused_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmurcast.data.features.scattering.find_spec", lambda _: None)
    with pytest.raises(mc.Error, match="needs kymatio") as raised:
        mc.features.Scattering(angles=3).apply(ROWS, (HEIGHT, WIDTH))
    assert raised.value.hint == "pip install murmurcast[scattering]"


@pytest.mark.parametrize("kind", MAPS)
def test_maps_have_the_same_words_as_their_section_in_a_file(kind: str) -> None:
    from dataclasses import asdict

    chosen: FeatureMap = SMALL[kind]
    assert in_words(chosen) == words_of_section(asdict(chosen))  # type: ignore[call-overload]
    assert in_words(chosen).startswith(kind)


def test_bytes_are_those_of_the_recipe_version() -> None:
    """Whoever changes what a map gives counts its version up, or the cache gives the old numbers."""
    rows: Rows = np.linspace(0, 1, 64, dtype=np.float32)[None].repeat(2, axis=0)
    rows[1] = rows[1, ::-1] ** 2
    versions = {kind: one.version for kind, one in SMALL.items()}
    assert versions == dict.fromkeys(MAPS, 1)
    sums = {kind: float(one.apply(rows, (8, 8)).sum()) for kind, one in SMALL.items() if kind != "scattering"}
    assert sums == pytest.approx(SUMS, rel=1e-4)


SUMS = {
    "deskew": 51.195107,
    "hog": 7.998282,
    "random-fourier": -1.069605,
    "random-convolution": 13.624294,
    "unit-norm": 12.840627,
}
