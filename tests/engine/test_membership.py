"""Which of several processes one is: by options, by srun or mpirun, or none of several."""

import re
import socket
import sys
from types import SimpleNamespace

import pytest

from murmurcast.engine import membership
from murmurcast.engine.membership import Membership, by_hand, by_launcher, is_known_as_itself_only, join
from murmurcast.errors import Error


def test_options_say_all_or_nothing() -> None:
    assert by_hand(None, None, None, 60) is None
    assert by_hand("node1:29400", 1, 3, 9) == Membership("node1:29400", 1, 3, within=9)
    assert by_hand("[::1]:29400", 0, 1, 9) is not None
    with pytest.raises(Error, match="--process-id and --num-processes are missing"):
        by_hand("node1:29400", None, None, 60)
    with pytest.raises(Error, match="--coordinator is missing"):
        by_hand(None, 0, 2, 60)


@pytest.mark.parametrize("address", ["node1", "node1:", ":29400", "node1:0", "node1:70000", "a b:1", "http://node1:1"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(Error, match="--coordinator is") as raised:
        by_hand(address, 0, 2, 60)
    assert "HOST:PORT" in raised.value.hint


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0)])
def test_a_process_is_one_of_those_there_are(rank: int, size: int) -> None:
    with pytest.raises(Error, match=r"--process-id|--num-processes"):
        by_hand("node1:29400", rank, size, 60)


def test_time_to_connect_is_at_least_a_second() -> None:
    with pytest.raises(Error, match="--connect-within"):
        by_hand("node1:29400", 0, 2, 0)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, None),
        ({"SLURM_NTASKS": "4"}, None),  # within a job, but not started by srun
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_LOCALID": "0"}, None),  # nor here
        (
            {"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_JOB_ID": "7", "SLURM_LOCALID": "1"}
            | {"SLURM_STEP_NODELIST": "n[1-2]"},
            Membership("n1:61657", 3, None, "slurm", 7),
        ),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, None),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, Membership(None, 1, None, "mpi4py", 7)),
        ({"SLURM_NTASKS": "many", "SLURM_PROCID": "0"}, None),
    ],
)
def test_launchers_are_known_by_what_they_set(environment: dict[str, str], expected: Membership | None) -> None:
    assert by_launcher(environment, 7) == expected


@pytest.mark.parametrize(
    ("machines", "step", "address"),
    [
        ("n7", None, "n7:61750"),
        ("n7,m2", "0", "n7:61750"),
        ("rack-a[003-005,009],m2", "2", "rack-a003:61752"),
        ("n[11]-ib,m2", "extern", "n11-ib:61750"),
        ("127.0.0.1", "4094", "127.0.0.1:61748"),
    ],
)
def test_a_step_of_slurm_meets_at_its_first_machine(machines: str, step: str | None, address: str) -> None:
    environment = {"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_JOB_ID": "10", "SLURM_LOCALID": "1"}
    environment |= {"SLURM_STEP_NODELIST": machines} | ({} if step is None else {"SLURM_STEP_ID": step})
    member = by_launcher(environment)
    assert member is not None
    assert member.coordinator == address
    chosen = by_launcher(environment | {"JAX_COORDINATOR_PORT": "29400"})
    assert chosen is not None
    assert chosen.coordinator == address.partition(":")[0] + ":29400"


class World:
    """Stands in for all processes of mpirun, of which this is one."""

    def __init__(self, rank: int, said: str) -> None:
        self.rank, self.said = rank, said

    def Get_rank(self) -> int:  # noqa: N802 - so it is called
        return self.rank

    def bcast(self, words: str, root: int) -> str:
        return words if self.rank == root else self.said


@pytest.mark.parametrize(
    ("rank", "own", "address"), [(0, "192.0.2.1", r"192\.0\.2\.1:\d+"), (1, None, "192.0.2.9:4000")]
)
def test_under_mpirun_the_first_process_says_where(
    rank: int, own: str | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(name: str) -> str:
        if own is None:
            raise socket.gaierror(name)
        return own

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=SimpleNamespace(COMM_WORLD=World(rank, address))))
    assert re.fullmatch(address, membership._address_over_mpi())


def test_a_first_machine_without_an_address_is_said_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=SimpleNamespace(COMM_WORLD=World(1, ""))))
    with pytest.raises(Error, match="leads nowhere") as raised:
        membership._address_over_mpi()
    assert "/etc/hosts" in raised.value.hint


def test_mpirun_needs_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(Error, match="mpi4py") as raised:
        join(Membership(None, 1, None, "mpi4py"))
    assert "murmurcast[cluster]" in raised.value.hint


def test_one_process_needs_nobody() -> None:
    join(Membership("127.0.0.1:1", 0, 1))


@pytest.mark.parametrize(
    ("own", "coordinator", "expected"),
    [
        ("127.0.1.1", "first:29400", True),
        ("192.0.2.7", "first:29400", False),
        ("127.0.1.1", "localhost:29400", False),  # all on one machine
        ("127.0.1.1", "unheard-of:29400", False),
        ("127.0.1.1", None, False),
    ],
)
def test_a_name_that_leads_back_to_its_machine_is_seen(
    own: str, coordinator: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"here": own, "first": "192.0.2.1", "localhost": "127.0.0.1"}

    def look_up(name: str) -> str:
        if name not in addresses:
            raise socket.gaierror(name)
        return addresses[name]

    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    monkeypatch.setattr(socket, "gethostbyname", look_up)
    assert is_known_as_itself_only(coordinator) is expected
