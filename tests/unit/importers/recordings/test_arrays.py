"""Arrays of .npy and .npz files: headers that lie, objects, damage."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.content import npy_header, npz_headers, read_npy, read_npz


def header(shape: str, descr: str = "'<f8'", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (header("(1000000000000, 1000000000000)") + bytes(80), "declares"),
        (header("(10,)") + bytes(79), "declares 80 bytes"),
        (header("(10,)") + bytes(81), "declares 80 bytes"),
        (header("(-1,)") + bytes(8), "cannot be read|shape"),
        (header("(1,)", "'|O'") + bytes(8), "pickled"),
        (header("(1,)", "'no type'") + bytes(8), "cannot be read"),
        (header("(1,)", version=b"\x09\x00") + bytes(8), "cannot be read|9.0"),
        (b"\x93NUMPY\x01\x00\xff", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x04\x00(((((", "cannot be read"),
    ],
)
def test_headers_that_lie(tmp_path, data, words):
    path = str(tmp_path / "a.npy")
    (tmp_path / "a.npy").write_bytes(data)
    for read in (npy_header, read_npy):
        with pytest.raises(InputError, match=words) as raised:
            read(path)
        assert "a.npy" in raised.value.where
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("states.npy", data)
    with pytest.raises(InputError, match=words):
        npz_headers(str(tmp_path / "a.npz"))


def test_a_later_header_version_is_read(tmp_path):
    (tmp_path / "a.npy").write_bytes(header("(2,)", version=b"\x02\x00") + np.array([1.5, 2.5]).tobytes())
    assert npy_header(str(tmp_path / "a.npy")).shape == (2,)
    assert read_npy(str(tmp_path / "a.npy")).tolist() == [1.5, 2.5]


def test_an_array_beyond_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", states=np.zeros((1000, 100)))
    monkeypatch.setattr("collidecli.storage.input_limits.LEAST_LIMIT", 500)
    monkeypatch.setattr("collidecli.storage.input_limits.free_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"needs 1.53 MiB of memory, and the limit is 500 B") as raised:
        read_npz(str(tmp_path / "a.npz"), "states")
    assert ".npy" in raised.value.fix


def test_damage_within_is_told(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, states=np.random.default_rng(0).normal(size=(50, 20)))
    data = bytearray(buffer.getvalue())
    data[400:440] = bytes(40)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        read_npz(str(tmp_path / "a.npz"), "states")


def test_an_array_that_is_not_there(tmp_path):
    np.savez(tmp_path / "a.npz", states=np.zeros(3))
    with pytest.raises(InputError, match="no array 'b'") as raised:
        read_npz(str(tmp_path / "a.npz"), "b")
    assert "states" in raised.value.fix
