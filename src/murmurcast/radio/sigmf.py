"""Recordings in the SigMF format: complex samples in one file, and what they are in another beside it."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _files
from murmurcast.errors import Error

Samples = NDArray[np.complex64]
DATA, META = ".sigmf-data", ".sigmf-meta"
RECORDER = "murmurcast export-iq"
_SPECIFICATION = "1.2.6"
_HIGHEST_HZ = 1e12  # the format's own limit


class Band(NamedTuple):
    """Where in the spectrum.

    Attributes:
        sample_rate: In samples per second: the bandwidth.
        carrier_hz: The middle of the band.
    """

    sample_rate: float
    carrier_hz: float


class Part(NamedTuple):
    """Samples that belong together.

    Attributes:
        label: A word.
        comment: More words.
        samples: [n] complex.
    """

    label: str
    comment: str
    samples: Samples


def symbols(signal: NDArray[Any]) -> Samples:
    """[ceil(m / 2)] u = v[0::2] + i v[1::2] of a real signal [m]; where m is odd, the last has no imaginary part."""
    pairs = np.pad(signal, (0, len(signal) % 2)).astype(np.float32)
    return np.asarray(pairs[0::2] + 1j * pairs[1::2], dtype=np.complex64)


def pilot(count: int, amplitude: float) -> Samples:
    """[count] symbols that are all the same and know nothing of any data."""
    return np.full(count, amplitude, dtype=np.complex64)


def metadata(parts: Iterable[Part], band: Band, description: str, recorder: str, sha512: str) -> dict[str, Any]:
    """What the `.sigmf-meta` file holds: one capture, and an annotation for every part."""
    annotations, start = [], 0
    for part in parts:
        annotations.append(
            {
                "core:sample_start": start,
                "core:sample_count": len(part.samples),
                "core:freq_lower_edge": band.carrier_hz - band.sample_rate / 2,
                "core:freq_upper_edge": band.carrier_hz + band.sample_rate / 2,
                "core:label": part.label,
                "core:comment": part.comment,
            }
        )
        start += len(part.samples)
    return {
        "global": {
            "core:datatype": "cf32_le",
            "core:sample_rate": band.sample_rate,
            "core:version": _SPECIFICATION,
            "core:num_channels": 1,
            "core:sha512": sha512,
            "core:author": recorder.split()[0],
            "core:description": description,
            "core:recorder": recorder,
        },
        "captures": [{"core:sample_start": 0, "core:frequency": band.carrier_hz}],
        "annotations": annotations,
    }


def require_band(band: Band) -> None:
    """The format can say where in the spectrum this is."""
    for name, value in (("bandwidth", band.sample_rate), ("carrier", band.carrier_hz)):
        if not 0 < value <= _HIGHEST_HZ:
            raise Error(f"{name} is {value:g}, expected hertz above 0 up to {_HIGHEST_HZ:g}", hint="give it in hertz")
    if band.carrier_hz + band.sample_rate / 2 > _HIGHEST_HZ:
        raise Error(f"the band ends beyond {_HIGHEST_HZ:g} Hz", hint="lower the carrier or the bandwidth")


def require_free(base: Path) -> None:
    """Both files of a recording can be written, and nobody else's are lost."""
    data, meta = files(base)
    for path in (data, meta):
        _files.require_writable(path)
    if (data.exists() or meta.exists()) and not _is_ours(meta):
        taken = data if data.exists() else meta
        raise Error(f"{taken} was not written by {RECORDER}", hint="choose another folder with --out")


def files(base: Path) -> tuple[Path, Path]:
    """The two files of a recording: samples, and what they are."""
    return base.with_name(base.name + DATA), base.with_name(base.name + META)


def write(base: Path, parts: list[Part], band: Band, description: str, version: str) -> tuple[Path, Path]:
    """Writes a recording; an earlier one of ours is replaced.

    Args:
        base: Both files' path, without their endings.
        parts: One after another.
        band: Where in the spectrum.
        description: Of the whole.
        version: Of murmurcast.

    Returns:
        The files with the samples and with the metadata.
    """
    require_band(band)
    require_free(base)
    samples = np.concatenate([part.samples for part in parts]).astype("<c8").tobytes()
    digest = hashlib.sha512(samples).hexdigest()
    document = metadata(parts, band, description, f"{RECORDER} {version}", digest)
    data, meta = files(base)
    _files.write_atomically(data, samples)
    _files.write_atomically(meta, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    return data, meta


def _is_ours(meta: Path) -> bool:
    try:
        document = json.loads(meta.read_bytes()) if meta.is_file() else None
        return str(document["global"]["core:recorder"]).startswith(RECORDER) if document else False
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return False
