"""Recordings as others read them: the reference reader of the format opens and validates what is written."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import sigmf as reference

from murmurcast.errors import Error
from murmurcast.radio import sigmf
from murmurcast.radio.sigmf import Band, Part

BAND = Band(1e6, 2.4e9)


def parts() -> list[Part]:
    return [
        Part("pilot", "epoch 1, round model", sigmf.pilot(4, 0.5)),
        Part("data", "epoch 1, round model", sigmf.symbols(np.array([1.0, -2.0, 3.0]))),
    ]


def test_two_real_numbers_make_a_symbol_and_an_odd_one_stands_alone() -> None:
    assert sigmf.symbols(np.array([1.0, -2.0, 3.0, 4.0])).tolist() == [1 - 2j, 3 + 4j]
    assert sigmf.symbols(np.array([1.0, -2.0, 3.0])).tolist() == [1 - 2j, 3 + 0j]
    assert sigmf.symbols(np.array([0.1], np.float64)).dtype == np.complex64


def test_a_pilot_is_the_same_for_everybody() -> None:
    result = sigmf.pilot(64, 0.7)
    assert np.unique(result).tolist() == [np.complex64(0.7)]
    assert len(result) == 64


def test_the_reference_reader_reads_and_validates_it(tmp_path: Path) -> None:
    data, meta = sigmf.write(tmp_path / "one", parts(), BAND, "a try", "0.0")
    assert (data.name, meta.name) == ("one.sigmf-data", "one.sigmf-meta")
    recording = reference.fromfile(str(meta))
    recording.validate()
    np.testing.assert_array_equal(recording.read_samples(), np.concatenate([part.samples for part in parts()]))
    assert recording.get_global_field("core:sample_rate") == 1e6
    assert recording.get_global_field("core:datatype") == "cf32_le"
    assert recording.get_global_field("core:version") == reference.__specification__
    assert recording.get_captures() == [{"core:sample_start": 0, "core:frequency": 2.4e9}]
    annotations = recording.get_annotations()
    result = [(one["core:sample_start"], one["core:sample_count"], one["core:label"]) for one in annotations]
    assert result == [(0, 4, "pilot"), (4, 2, "data")]
    assert annotations[1]["core:comment"] == "epoch 1, round model"
    assert hashlib.sha512(data.read_bytes()).hexdigest() == recording.get_global_field("core:sha512")


def test_samples_are_little_endian_floats_real_part_first(tmp_path: Path) -> None:
    data, _ = sigmf.write(tmp_path / "one", parts(), BAND, "", "0.0")
    assert np.frombuffer(data.read_bytes(), "<f4")[8:].tolist() == [1, -2, 3, 0]


def test_an_altered_sample_is_noticed_by_the_reader(tmp_path: Path) -> None:
    data, meta = sigmf.write(tmp_path / "one", parts(), BAND, "", "0.0")
    data.write_bytes(b"\0" + data.read_bytes()[1:-1] + b"\1")
    with pytest.raises(reference.error.SigMFFileError):
        reference.fromfile(str(meta))


def test_only_recordings_of_our_own_are_replaced(tmp_path: Path) -> None:
    base = tmp_path / "one"
    sigmf.write(base, parts(), BAND, "first", "0.0")
    _, meta = sigmf.write(base, parts(), BAND, "second", "0.0")
    assert json.loads(meta.read_text())["global"]["core:description"] == "second"
    stated = json.loads(meta.read_text())
    stated["global"]["core:recorder"] = "somebody else"
    for content in (json.dumps(stated), "[]", "no json", '{"global": 3}'):
        meta.write_text(content)
        with pytest.raises(Error, match="was not written by murmurcast export-iq"):
            sigmf.write(base, parts(), BAND, "third", "0.0")
        assert meta.read_text() == content
    meta.unlink()
    with pytest.raises(Error, match=r"one\.sigmf-data was not written"):
        sigmf.require_free(base)


@pytest.mark.parametrize("band", [Band(0, 1e9), Band(1e6, -1.0), Band(float("nan"), 1e9), Band(1e12, 1e12)])
def test_bands_that_no_recording_can_have(tmp_path: Path, band: Band) -> None:
    with pytest.raises(Error):
        sigmf.write(tmp_path / "one", parts(), band, "", "0.0")
    assert not list(tmp_path.iterdir())
