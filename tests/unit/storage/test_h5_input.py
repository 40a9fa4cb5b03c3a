"""HDF5 files that lead elsewhere or promise more than they hold are refused before anything is read of them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.storage import h5_files
from collidecli.storage.h5_files import open_h5


def refusal(path: Path, fill) -> str:
    with h5py.File(path, "w") as file:
        fill(file)
    with pytest.raises(InputError) as caught:
        open_h5(path)
    return str(caught.value)


def test_a_chunked_dataset_that_was_never_written(tmp_path: Path):
    def fill(file):
        file.create_dataset("a/b", shape=(10**10, 7), dtype="f8", chunks=(64, 7))

    said = refusal(tmp_path / "x.h5", fill)
    assert "x.h5: /a/b: declares 522 GiB as [10000000000, 7], and holds 0 of 156250000 chunks" in said


def test_a_dataset_whose_space_was_never_taken(tmp_path: Path):
    said = refusal(tmp_path / "x.h5", lambda file: file.create_dataset("time", shape=(10**9,), dtype="f8"))
    assert "/time: declares 7.45 GiB as [1000000000], more than the whole file holds" in said


def test_a_chunk_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(h5_files, "free_memory", lambda: 1 << 20)

    def fill(file):
        file.create_dataset("time", data=np.zeros(1 << 18), chunks=(1 << 18,), compression="gzip")

    assert "/time: has chunks of 2 MiB, and 1 MiB of memory are free" in refusal(tmp_path / "x.h5", fill)


def test_well_compressed_data_is_no_promise(tmp_path: Path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("time", data=np.zeros(1 << 20), chunks=(1 << 16,), compression="gzip")
        file.create_dataset("small", shape=(100,), dtype="f8")
        file["none"] = np.zeros(0)
    assert (tmp_path / "x.h5").stat().st_size * 100 < 8 << 20
    open_h5(tmp_path / "x.h5").close()


def test_groups_without_end(tmp_path: Path):
    def deep(file):
        group = file
        for _ in range(2000):
            group = group.create_group("g")

    assert "has groups more than 64 deep" in refusal(tmp_path / "x.h5", deep)

    with h5py.File(tmp_path / "ring.h5", "w") as file:
        file["a/root"] = file["/"]
        group = file
        for _ in range(40):
            below = group.create_group("x")
            group["y"] = below
            group = below
    open_h5(tmp_path / "ring.h5").close()


@pytest.mark.parametrize("where", ["/link", "/a/b/link"])
def test_links_to_other_files(tmp_path: Path, where: str):
    said = refusal(tmp_path / "x.h5", lambda file: file.__setitem__(where, h5py.ExternalLink("/secret.h5", "/")))
    assert f"x.h5: {where}: links to another file, /secret.h5" in said
