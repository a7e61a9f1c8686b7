"""Commands through their real entry point, and scripts, each in a process of its own.

The process is forked from one that has imported the libraries already, because importing them takes longer than most
commands: it runs the installed script, or another one, with its arguments, its folder and a standard output of its own.
What depends on a new interpreter (signals, environment, start-up) starts one.
"""

import contextlib
import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("murmurcast")
_LIBRARIES = [
    "h5netcdf",
    "highspy",
    "jax",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "murmurcast.algorithms.central_dp",
    "murmurcast.algorithms.mped2fl",
    "murmurcast.audits.audit",
    "murmurcast.certificates.certify",
    "murmurcast.certificates.compare",
    "murmurcast.certificates.document",
    "murmurcast.cli",
    "murmurcast.data.datasets",
    "murmurcast.experiments.load",
    "murmurcast.experiments.rebuild",
    "murmurcast.network.topologies",
    "murmurcast.planning.solve",
    "murmurcast.problems.model",
    "murmurcast.problems.softmax",
    "murmurcast.reports.audits",
    "murmurcast.reports.runs",
    "murmurcast.runs.run",
    "networkx",
    "plotly.graph_objects",
    "rich.progress",
    "rich.table",
    "scipy.optimize",
    "scipy.stats",
    "typer.rich_utils",
    "xarray",
]


def run(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command printed, and how it ended."""
    return run_script(COMMAND, *arguments, cwd=cwd, env=env)


def run_script(
    script: Path, *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a Python script printed, and how it ended."""
    words = [str(script), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        place = (str(cwd or Path.cwd()), dict(os.environ if env is None else env), str(out), str(err))
        process = _warm().Process(target=_execute, args=(words, *place))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())


@cache
def _warm() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LIBRARIES)
    return context


def _execute(words: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """In the new process: standard streams, folder and arguments as a shell would set them, then the script."""
    for name, stream, mode in ((os.devnull, 0, os.O_RDONLY), (out, 1, os.O_WRONLY), (err, 2, os.O_WRONLY)):
        os.dup2(os.open(name, mode | os.O_CREAT, 0o600), stream)
    # The libraries were imported with the streams of before.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    gc.freeze()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    sys.path[:0] = [str(Path(words[0]).parent), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    try:
        runpy.run_path(words[0], run_name="__main__")
    finally:
        with contextlib.suppress(ValueError, AttributeError):  # a command that lost its reader has let go of it
            sys.stdout.flush()
            sys.stderr.flush()


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    """Until there is such a file, which the process writes."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The message of a refusal, after checking its form."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    first, second = done.stderr.strip().split("\n")
    assert first.startswith("error: ")
    assert second.startswith("hint: ")
    assert "Traceback" not in done.stderr
    return done.stderr
