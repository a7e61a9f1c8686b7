"""How a process finds the others that train the same network with it.

JAX's distributed runtime brings them together: the first process listens, on the one address that is named and no
other, and all connect to it. Under SLURM the address follows from the environment; under Open MPI the first process
tells the others.
"""

import contextlib
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

from murmurcast import _check
from murmurcast.errors import Error

CONNECT_WITHIN = 60  # seconds
WATCHED = "MURMURCAST_WATCHED"  # set for a process that a command started and watches: a file it writes once joined
CORES = "MURMURCAST_CORES"  # the cores that such a process is to use
_SILENT_FOR = 20  # seconds after which a process that says nothing is given up
_FIRST_PORT = 2**16 - 2**12  # of those that a job of SLURM meets at
_LEAVE_WITHIN = 600  # seconds: all leave together, and whoever watches them knows sooner if one does not
# What JAX asks SLURM for; within a job that srun did not start, some of it is missing.
_OF_SRUN = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_LOCALID")


class Membership(NamedTuple):
    """One process among those of a run.

    Attributes:
        coordinator: "HOST:PORT" of the first process; None where it tells the others itself.
        rank: Which process this is, from 0; None where the launcher knows.
        size: How many there are; None where the launcher knows.
        launcher: What JAX asks for the rest: "slurm", "mpi4py", or None for nobody.
        within: Seconds to find the others in.
    """

    coordinator: str | None
    rank: int | None
    size: int | None
    launcher: str | None = None
    within: int = CONNECT_WITHIN


def by_hand(coordinator: str | None, rank: int | None, size: int | None, within: int) -> Membership | None:
    """What options on a command line say; None where they say nothing."""
    _check.at_least(1, **{"--connect-within": within})
    given = {"--coordinator": coordinator, "--process-id": rank, "--num-processes": size}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if missing or coordinator is None or rank is None or size is None:
        raise Error(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            hint="give all three: --coordinator HOST:PORT --process-id I --num-processes N, or --processes N",
        )
    _require_address(coordinator)
    _check.at_least(1, **{"--num-processes": size})
    if not 0 <= rank < size:
        raise Error(f"--process-id is {rank}, and there are {size} processes", hint=f"number them 0 to {size - 1}")
    return Membership(coordinator, rank, size, within=within)


def _require_address(words: str) -> None:
    match = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", words)
    if match is None or not 0 < int(match[2]) < 2**16:
        raise Error(f"--coordinator is {words[:60]!r}", hint="write the first process's HOST:PORT, such as node1:29400")


def by_launcher(environment: Mapping[str, str], within: int = CONNECT_WITHIN) -> Membership | None:
    """What srun or mpirun say in the environment; None where neither started several processes."""

    def several(size: str, rank: str) -> bool:
        return environment.get(size, "1").isdecimal() and int(environment.get(size, "1")) > 1 and rank in environment

    if several("SLURM_NTASKS", "SLURM_PROCID") and all(name in environment for name in _OF_SRUN):
        return Membership(_first_of_step(environment), int(environment["SLURM_PROCID"]), None, "slurm", within)
    if several("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"):
        return Membership(None, int(environment["OMPI_COMM_WORLD_RANK"]), None, "mpi4py", within)
    return None


def _first_of_step(environment: Mapping[str, str]) -> str:
    """The first machine of "n[01-03,07]-a,m5", and a port that follows from the job and its step."""
    match = re.match(r"([^\[,]*)(?:\[(\w+)[^\]]*\]([^,]*))?", environment["SLURM_STEP_NODELIST"])
    host = "".join(part or "" for part in match.groups()) if match else ""
    job, step = (environment.get(f"SLURM_{name}_ID", "0") for name in ("JOB", "STEP"))
    number = 31 * int(job if job.isdecimal() else 0) + int(step if step.isdecimal() else 0)  # of neighbours far apart
    return f"{host}:{environment.get('JAX_COORDINATOR_PORT', _FIRST_PORT + number % (2**16 - _FIRST_PORT))}"


def _address_over_mpi() -> str:
    """The first process's address, as its machine's name leads to it, with a port that is free there."""
    from mpi4py import MPI

    address, world = "", MPI.COMM_WORLD
    if world.Get_rank() == 0:
        with contextlib.suppress(OSError), socket.socket() as listening:
            listening.bind(("", 0))
            address = f"{socket.gethostbyname(socket.gethostname())}:{listening.getsockname()[1]}"
    address = str(world.bcast(address, root=0))
    if not address:
        raise Error("the name of the first process's machine leads nowhere", hint="give it an address in /etc/hosts")
    return address


def require_nodes(processes: int, nodes: int) -> None:
    """There is a node for every process."""
    if processes > nodes:
        raise Error(
            f"there are {processes} processes for {nodes} nodes",
            hint=f"start at most {nodes}: every process holds some node",
        )


def join(member: Membership) -> None:
    """Meets the others, before anything is computed; says so where they cannot be met in time."""
    import jax

    if member.launcher == "mpi4py":
        _require_mpi4py()
    if member.size == 1:
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if member.coordinator is None:
        member = member._replace(coordinator=_address_over_mpi())
    given: dict[str, Any] = {
        "coordinator_address": member.coordinator,
        # Not on all interfaces: nothing asks who connects.
        "coordinator_bind_address": os.environ.get("JAX_COORDINATOR_BIND_ADDRESS", member.coordinator),
        "cluster_detection_method": member.launcher or "deactivate",
    }
    if member.launcher is None:
        given |= {"num_processes": member.size, "process_id": member.rank}
    try:
        jax.distributed.initialize(
            **given,
            initialization_timeout=member.within,
            heartbeat_timeout_seconds=_SILENT_FOR,
            shutdown_timeout_seconds=_LEAVE_WITHIN,
        )
        jax.devices()  # they exchange what they have; later, one that reads its data for minutes would be given up
    except (KeyError, RuntimeError, ValueError) as problem:
        raise _not_met(member, str(problem)) from None


def is_known_as_itself_only(coordinator: str | None) -> bool:
    """Whether this machine's name leads back to it alone, while the coordinator is reached over a network.

    Rows are exchanged at the address that a machine's name leads to, and many systems lead it to 127.0.1.1.
    """
    if coordinator is None:
        return False
    try:
        here, there = (
            ipaddress.ip_address(socket.gethostbyname(name))
            for name in (socket.gethostname(), coordinator.rpartition(":")[0])
        )
    except OSError:  # a name that leads nowhere: another fault, of which JAX tells
        return False
    return here.is_loopback and not there.is_loopback


def _not_met(member: Membership, words: str) -> Error:
    where = member.coordinator
    if re.search("ALREADY_EXISTS|ABORTED|already|incarnation", words):
        return Error(
            f"there is a process {member.rank} already at {where}", hint="give every process a --process-id of its own"
        )
    if "DEADLINE" in words or "UNAVAILABLE" in words:
        return Error(
            f"process {member.rank} did not meet the others at {where} within {member.within} s",
            hint="start all of them, process 0 at that address, which its machine's name must lead to for all (not to "
            "127.0.1.1, as many an /etc/hosts has it); --connect-within SECONDS waits longer",
        )
    return Error(
        f"the processes did not come together at {where}: {' '.join(words.split())[:160]}",
        hint="try another port, and an address of the first process's machine",
    )


def _require_mpi4py() -> None:
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        raise Error(
            "under mpirun the processes find each other through mpi4py, which is not installed",
            hint='install it: pip install "murmurcast[cluster]"',
        ) from None
