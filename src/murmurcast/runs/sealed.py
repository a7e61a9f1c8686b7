"""Reading files that somebody else may have made: nothing outside them is read, and nothing larger than they are.

A run writes its arrays plainly: whole, in the file itself, neither compressed nor linked. Whatever is stored in another
way was not written by a run, and is refused before a single number of it is read. So reading takes no more memory than
the file has bytes, whatever sizes it declares.
"""

import hashlib
import io
import os
import stat
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from murmurcast.errors import Altered
from murmurcast.runs.validate import Unsound

if TYPE_CHECKING:
    import xarray as xr

MAX_TEXT_BYTES = 16 * 2**20  # of run.json and experiment.toml
_MAX_ATTRIBUTE_BYTES = 2**20
_MAX_ARRAYS = 10_000
_CHUNK = 2**20
_ONLY_A_LENGTH = b"This is a netCDF dimension but not a netCDF variable"
# What h5netcdf and xarray write beside an array; nothing else may change how its numbers are understood.
_KNOWN_WORDS = frozenset(
    ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_FillValue")
)
_HIDDEN_WORDS = frozenset(("_NCProperties", "_nc3_strict"))  # NetCDF's own, about the file
_RESTORE = "run it again, or restore the file"


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """The content of a regular file; pipes, devices and links are refused without waiting for them.

    Args:
        path: The file.
        most: How many bytes it may have; None for as many as it has.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise Altered(f"{path} has {size} bytes, far more than a run writes", hint=_RESTORE)
        try:
            return file.read()
        except MemoryError:
            raise Altered(f"{path} has {size} bytes, more than memory holds", hint=_RESTORE) from None


def hash_of(path: Path) -> str:
    """The SHA-256 of a regular file, which need not fit in memory."""
    state = hashlib.sha256()
    with _opened(path) as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return state.hexdigest()


def _opened(path: Path) -> io.FileIO:
    """The file itself: looked at once it is open, so that nobody can exchange it in between."""
    quick = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        if path.is_symlink():
            raise Altered(
                f"{path} is a link: a run's files are its own", hint="put the file itself in the place of the link"
            )
        opened = os.open(path, os.O_RDONLY | quick)
    except OSError as problem:
        raise Altered(f"{path} cannot be read: {problem.strerror}", hint=_RESTORE) from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise Altered(f"{path} is not a regular file", hint=_RESTORE)
    return io.FileIO(opened)


def dataset(content: bytes, name: str) -> "xr.Dataset":
    """The arrays of a NetCDF file called `name`, all of which lie in it, plainly.

    Read without h5netcdf, which takes five times as long for what is as plain as this.
    """
    import h5py
    import xarray as xr

    with h5py.File(io.BytesIO(content), "r") as file:
        _require_small_words(file, name)
        _require_plain(file, name, len(content))
        arrays = {key: (_axes(file, one, key), one[()]) for key, one in file.items() if not _is_only_a_length(one)}
        words = {key: _word(value) for key, value in file.attrs.items() if key not in _HIDDEN_WORDS}
    labels = {key: variable for key, variable in arrays.items() if variable[0] == (key,)}
    return xr.Dataset({key: variable for key, variable in arrays.items() if key not in labels}, labels, words)


def _axes(file: Any, array: Any, name: str) -> tuple[str, ...]:
    """The names of an array's axes: each refers to the array, or the length, that is called so."""
    if "CLASS" in array.attrs:  # labels along the axis of the same name
        return (name,)
    listed = array.attrs.get("DIMENSION_LIST", [()] * array.ndim)
    if len(listed) != array.ndim or any(len(references) != 1 for references in listed):
        raise Unsound(f"an axis of {name[:60]} has no name")
    return tuple(file[reference].name.removeprefix("/") for (reference,) in listed)


def _is_only_a_length(array: Any) -> bool:
    return bytes(np.asarray(array.attrs.get("NAME", b""), "S")).startswith(_ONLY_A_LENGTH)


def _word(value: Any) -> Any:
    """An attribute; what is alone in an array stands by itself."""
    return value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value


def _require_plain(file: Any, where: str, size: int) -> None:
    """Every array is whole, in the file, and as large as what is stored of it."""
    from h5py import h5l

    names = [name for _, name in zip(range(_MAX_ARRAYS + 1), file.id, strict=False)]
    if len(names) > _MAX_ARRAYS:
        raise Unsound(f"{where} holds more than {_MAX_ARRAYS} arrays")
    total = 0
    for raw in names:
        name = f"{raw.decode('utf-8', 'replace')[:60]} in {where}"
        if file.id.links.get_info(raw).type != h5l.TYPE_HARD:
            raise Unsound(f"{name} is a link to somewhere else")
        total += _stored_bytes(file, raw, name)
    if total > size:
        raise Unsound(f"the arrays of {where} declare {total} bytes, and it has {size}")


def _stored_bytes(file: Any, raw: bytes, name: str) -> int:
    """How many bytes will be read of one array; 0 of what is only the length of an axis."""
    import h5py
    from h5py import h5d, h5o, h5t

    if h5o.get_info(file.id, raw).type != h5o.TYPE_DATASET:
        raise Unsound(f"{name} is no array")
    one = h5d.open(file.id, raw)
    plan = one.get_create_plist()
    if plan.get_layout() not in (h5d.CONTIGUOUS, h5d.COMPACT) or plan.get_nfilters() or plan.get_external_count():
        raise Unsound(f"{name} is not stored plainly: outside the file, in pieces, or compressed")
    if one.get_type().get_class() not in (h5t.INTEGER, h5t.FLOAT):
        raise Unsound(f"{name} must be numeric")
    array = h5py.Dataset(one)
    _require_small_words(array, name)
    unknown = sorted(set(array.attrs) - _KNOWN_WORDS)
    if unknown:
        raise Unsound(f"{name} has the unknown attribute {unknown[0][:60]}")
    if "_FillValue" in array.attrs and not np.isnan(np.asarray(array.attrs["_FillValue"], np.float64)).all():
        raise Unsound(f"{name} has a number that stands for none")
    if _is_only_a_length(array):
        return 0
    declared = one.get_type().get_size() * int(np.prod(one.shape, dtype=object))
    if declared > one.get_storage_size():
        raise Unsound(f"{name} declares {declared} bytes, and {one.get_storage_size()} of them are there")
    return int(declared)


def _require_small_words(thing: Any, name: str) -> None:
    """No attribute is too large to be one; sizes are looked at before anything is read."""
    from h5py import h5a

    for number in range(h5a.get_num_attrs(thing.id)):
        if h5a.open(thing.id, index=number).get_storage_size() > _MAX_ATTRIBUTE_BYTES:
            raise Unsound(f"{name} has an attribute of more than {_MAX_ATTRIBUTE_BYTES} bytes")


def published(content: bytes) -> NDArray[Any]:
    """The one array of an archive of models."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = archive.infolist()
        if [one.filename for one in files] != ["published.npy"]:
            raise Unsound("the archive of models holds other files than published.npy")
        (one,) = files
        if one.compress_type != zipfile.ZIP_STORED or one.file_size > len(content):
            raise Unsound("the published models are not stored plainly")
        with archive.open(one) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
    if dtype.hasobject or dtype.itemsize * int(np.prod(shape, dtype=object)) > len(content):
        raise Unsound("the published models declare more bytes than their file has")
    with np.load(io.BytesIO(content), allow_pickle=False) as models:
        array: NDArray[Any] = models["published"]
    return array
