"""Starts the processes of a run, watches them, and ends all where one ends badly: one message, whoever failed.

JAX's runtime ends a process on the spot when another is gone, with a page of its own words. So whatever trains is
started by a process that only watches: it tells what happened, and what can be done.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple

from murmurcast.cli._options import complain
from murmurcast.cli._watched import words_of_runtime
from murmurcast.engine.membership import CORES, WATCHED, Membership, is_known_as_itself_only

_LOOK_EVERY = 0.1  # seconds
_SECONDS_TO_FAIL = 5.0  # for the others, where one has failed by itself: bad input is bad for all of them
_SECONDS_TO_END = 5.0  # once they are asked to
_PORTS_TRIED = 5
_STOPPED = 130  # exit code after Ctrl-C
_REASONS = {  # by what JAX's runtime writes before it ends a process
    "different incarnation|ALREADY_EXISTS": "a second process came with an id that was taken",
    "heartbeat": "one of them gave no sign of life",
    "closed by peer|Connection reset|UNAVAILABLE": "a connection was closed",
}


class _Process(NamedTuple):
    """One that trains.

    Attributes:
        member: Which.
        running: The process itself.
        said: A file that it writes when it has met the others.
        errors: What it wrote to stderr; None of the one that speaks for all.
    """

    member: Membership
    running: "subprocess.Popen[bytes]"
    said: Path
    errors: "IO[bytes] | None"

    @property
    def joined(self) -> bool:
        """Whether it has met the others."""
        return self.said.exists()


def run_on_this_machine(processes: int, words: list[str], within: int, folder: Path) -> int:
    """As many processes as asked for, over the loopback; returns the exit code.

    Args:
        processes: How many.
        words: What each is told, besides which it is.
        within: Seconds in which they must find each other.
        folder: Of the run, for the message.
    """
    for _ in range(_PORTS_TRIED):
        address = f"127.0.0.1:{_free_port()}"
        members = [Membership(address, rank, processes, within=within) for rank in range(processes)]
        arguments = [[*words, *_options(member)] for member in members]
        code = _watch(members, arguments, folder)
        if code is not None:
            return code
    complain("no port of this machine could be had for the processes to meet at", "try again")
    return 2


def run_one(member: Membership, words: list[str], folder: Path) -> int:
    """One process of a run whose others are started elsewhere; returns the exit code."""
    arguments = [*words, *_options(member)] if member.launcher is None else words
    code = _watch([member], [arguments], folder)
    return 2 if code is None else code


def _options(member: Membership) -> list[str]:
    return [
        *("--coordinator", str(member.coordinator)),
        *("--process-id", str(member.rank)),
        *("--num-processes", str(member.size)),
    ]


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _watch(members: list[Membership], arguments: list[list[str]], folder: Path) -> int | None:
    """Starts processes and waits for all; the exit code, or None where the address was taken by somebody else."""
    started: list[_Process] = []
    forward = _Forward(started)
    before = {each: signal.signal(each, forward) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with tempfile.TemporaryDirectory(prefix="murmurcast-") as place:
            try:
                for member, words, share in zip(members, arguments, _shares(len(members)), strict=True):
                    started.append(_start(member, words, Path(place), share))
                    if forward.asked:  # not all are there, so nothing has been trained
                        return _STOPPED
                return _wait(started, folder)
            finally:
                for process in started:
                    _end(process)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _shares(processes: int) -> list[list[int]]:
    """The cores of every process; where there are too few, some share one."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if processes == 1 or not cores:
        return [cores] * processes
    return [cores[rank::processes] or [cores[rank % len(cores)]] for rank in range(processes)]


def _start(member: Membership, words: list[str], place: Path, cores: list[int]) -> _Process:
    leads = member.rank == 0
    said = place / f"said-{member.rank}"
    errors = None if leads else tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
    environment = os.environ | {
        WATCHED: str(said),
        CORES: ",".join(map(str, cores)),
        "JAX_NUM_CPU_DEVICES": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),  # methods of the user's own
    }
    running = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "murmurcast", "run", *words],
        stdin=subprocess.PIPE,  # it ends when we do
        stdout=None if leads else subprocess.DEVNULL,
        stderr=errors,
        env=environment,
        start_new_session=True,  # Ctrl-C is ours to pass on
    )
    return _Process(member, running, said, errors)


class _Forward:
    """Passes on what asks to stop: a first time for a checkpoint, a second time at once."""

    def __init__(self, to: list[_Process]) -> None:
        self._to = to
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.asked = True
        for process in self._to:
            if process.running.poll() is None:
                process.running.send_signal(signal.SIGINT)


def _wait(started: list[_Process], folder: Path) -> int | None:
    """Until all are done, or one has failed and the others had their time."""
    failed: _Process | None = None
    until = 0.0
    while True:
        ended = [process for process in started if process.running.poll() is not None]
        bad = [process for process in ended if process.running.returncode != 0]
        if failed is None and bad:
            failed, until = bad[0], time.monotonic() + _SECONDS_TO_FAIL
        if len(ended) == len(started) or (failed is not None and time.monotonic() > until):
            break
        time.sleep(_LOOK_EVERY)
    return 0 if failed is None else _report_failure(started, failed, folder)


def _report_failure(started: list[_Process], failed: _Process, folder: Path) -> int | None:
    """Says what happened, unless the process that speaks for all has; its exit code, or None to try another port."""
    by_themselves = [process for process in started if process.running.poll() in (1, 2, 130)]
    speaker = next((process for process in by_themselves if process.errors is None), None)
    killed = next((process for process in started if _was_killed(process)), None)
    if killed is None and speaker is not None:
        return int(speaker.running.returncode)
    if killed is None and by_themselves:
        _repeat_errors(by_themselves[0])
        return int(by_themselves[0].running.returncode)
    lost = killed or failed
    who = f"process {lost.member.rank}" + (f" of {lost.member.size}" if lost.member.size else "")
    if not lost.joined:
        if killed is None and len(started) > 1:
            return None
        complain(
            f"{who} ended before it had met the others within {lost.member.within} s",
            "start every process once, each with its own --process-id and process 0 at the coordinator's address; "
            "--connect-within waits longer",
        )
        return 2
    what = f"was ended from outside (signal {-killed.running.returncode})" if killed else "lost the others"
    complain(f"{who} {what}, and with it the run ended{_why(lost)}", _way_on(folder, lost.member))
    return 2


def _why(lost: _Process) -> str:
    """What JAX's runtime had to say of it, in our words; empty where it said nothing that is known."""
    words = words_of_runtime(lost.said)
    text = words.read_text("utf-8", "replace") if words.exists() else ""
    return next((f": {why}" for pattern, why in _REASONS.items() if re.search(pattern, text)), "")


def _was_killed(process: _Process) -> bool:
    """By a signal that no process of ours sends itself."""
    code = process.running.poll()
    return code is not None and -code in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGBUS)


def _repeat_errors(process: _Process) -> None:
    if process.errors is None:
        return
    process.errors.seek(0)
    lines = process.errors.read().decode("utf-8", "replace").splitlines()
    sys.stderr.write("".join(f"{line}\n" for line in lines if line.startswith(("error:", "hint:"))))


def _way_on(folder: Path, member: Membership) -> str:
    from murmurcast.runs.result import CHECKPOINT, RUN

    if (folder / RUN).exists():
        return f"the run was finished before that, and is whole in {folder}: nothing is left to do"
    if (folder / CHECKPOINT).exists():
        return "go on from its checkpoint: the same command with --resume, on any number of processes"
    if is_known_as_itself_only(member.coordinator):
        return (
            f"this machine's name, {socket.gethostname()}, leads back to it alone: give it the address that the others "
            f"know, in /etc/hosts, then remove {folder} and start again"
        )
    again = f"remove {folder} and start again" if folder.exists() else "start again"
    return f"it had not come to a checkpoint: {again}; every process needs a --process-id of its own"


def _end(process: _Process) -> None:
    """Nothing of ours runs on."""
    if process.running.poll() is None:
        process.running.terminate()
        try:
            process.running.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.running.kill()
            process.running.wait()
    if process.running.stdin is not None:
        process.running.stdin.close()
    if process.errors is not None:
        process.errors.close()
