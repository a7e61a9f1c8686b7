"""Compiled programs, kept between runs: a second run of the same shape starts in a fraction of the time.

JAX's own cache, in the user's cache folder: it is locked, so that several processes can share it, and the entries that
were not used for longest go when it is full. Programs are kept apart by kind of processor and by version, because one
that was compiled for another processor might not run. What is kept are programs: no data, no models, no keys.
"""

import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "MURMURCAST_COMPILE_CACHE"  # "off", or a folder
MAX_BYTES = 2**27
_MIN_SECONDS = 0.02  # of compiling: less is not worth a file
_MIN_BYTES = 2**13  # single operations stay below: JAX reads every entry's age when it adds one, so few must be kept


def use_compile_cache() -> Path | None:
    """Lets JAX keep compiled programs, unless it has been told where to keep them, or not to; returns the folder."""
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() == "off" or jax.config.values["jax_compilation_cache_dir"] is not None:
        return None
    try:
        folder = Path(asked or _user_cache()) / "compiled" / _machine()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: compile anew every time
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", _MIN_BYTES)
    compilation_cache.reset_cache()
    return folder


def _user_cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("murmurcast", appauthor=False))


def _machine() -> str:
    """A word for this kind of processor and these versions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    kind = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    words = (platform.machine(), platform.processor(), *kind, version("jax"), version("jaxlib"))
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16]
