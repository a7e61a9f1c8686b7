"""The example of a logger writes what the run reached, and nothing else, as TensorBoard reads it."""

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "tensorboard_log.py"


def records(content: bytes) -> Iterator[bytes]:
    """The records of an event file: length, checksum, record, checksum."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack("<Q", content[at : at + 8])
        yield content[at + 12 : at + 12 + length]
        at += 12 + length + 4


@pytest.mark.slow
def test_curves_are_those_of_the_run(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboardX.proto.event_pb2", reason="tensorboardX is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "logs" / "power-controlled").iterdir()
    curves: dict[str, dict[int, float]] = {}
    for record in records(path.read_bytes()):
        event = events.Event.FromString(record)
        for value in event.summary.value:
            curves.setdefault(value.tag, {})[event.step] = value.simple_value
    assert set(curves) == {"published_accuracy", "published_loss"}  # no other metric, and nothing of own models
    for curve in curves.values():
        assert list(curve) == [5, 10, 15, 20]
    said = re.search(r"accuracy ([\d.]+) after 20 epochs", done.stdout)
    assert said is not None
    assert curves["published_accuracy"][20] == pytest.approx(float(said[1]), abs=0.005)
    assert curves["published_loss"][20] < curves["published_loss"][5]
