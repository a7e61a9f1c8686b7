"""How much memory a process can still have: of the machine, of its container or job, and of its own limit."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

_UNKNOWN = 4 * 2**30  # bytes, where the system does not say
_GROUPS = Path("/sys/fs/cgroup")
# Where a group says its limit and what it uses, by version.
_FILES = {2: ("memory.max", "memory.current"), 1: ("memory.limit_in_bytes", "memory.usage_in_bytes")}


def free_memory() -> int:
    """Bytes that can be had without swapping."""
    return max(0, min([_of_machine(), *_of_groups(), *_of_process()]))


def _of_machine() -> int:
    match = re.search(r"MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo")))
    if match is not None:
        return 1024 * int(match[1])
    if "SC_AVPHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return _UNKNOWN
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[int]:
    """What is left of every limit on the way from the process's group to the root; containers and jobs set them."""
    for line in ["0::/", *_text(Path("/proc/self/cgroup")).splitlines()]:
        number, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if number != "0" and "memory" not in kinds.split(","):
            continue
        version, root = (2, _GROUPS) if number == "0" else (1, _GROUPS / "memory")
        group = root / place.strip("/")
        for each in (group, *(above for above in group.parents if above.is_relative_to(root))):
            limit, used = (_text(each / name).strip() for name in _FILES[version])
            if limit.isdecimal() and used.isdecimal():
                yield int(limit) - int(used)


def _of_process() -> Iterator[int]:
    """What is left of the limit that `ulimit -v` sets."""
    limit = re.search(r"Max address space\s+(\d+)", _text(Path("/proc/self/limits")))
    used = re.search(r"VmSize:\s+(\d+) kB", _text(Path("/proc/self/status")))
    if limit is not None and used is not None:
        yield int(limit[1]) - 1024 * int(used[1])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
