"""Contact sets whose tables do not fit each other, or hold values of another kind, are refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.storage.contact_sets.reader import ContactSet

GOLDEN = Path(__file__).parents[3] / "golden" / "contacts_1_0.h5"


def refusal(path: Path, dataset: str, **how) -> str:
    shutil.copy(GOLDEN, path)
    with h5py.File(path, "r+") as file:
        del file[dataset]
        file.create_dataset(dataset, **how)
    with pytest.raises(InputError) as caught:
        ContactSet.open(path)
    return str(caught.value)


def test_tables_of_different_lengths(tmp_path: Path):
    with h5py.File(GOLDEN) as file:
        count = len(file["/model/shape/path"])
    said = refusal(tmp_path / "x.h5", "/model/shape/gap", data=np.zeros(count - 1, np.float32))
    assert f"x.h5: /model/shape/gap: has {count - 1} rows, and /model/shape/path has {count}" in said
    said = refusal(tmp_path / "x.h5", "/time/time", data=np.zeros(0))
    assert "/time/time: has 0 rows, and /time/step has" in said


@pytest.mark.parametrize(
    "how",
    [
        {"dtype": np.dtype("V16")},
        {"dtype": np.dtype([("x", "f8")])},
        {"dtype": h5py.ref_dtype},
        {"dtype": h5py.vlen_dtype(np.float64)},
        {"dtype": np.complex128},
        {"dtype": np.float64},
        {"dtype": np.int64},
        {"dtype": bool},
    ],
    ids=lambda how: str(how["dtype"])[:20],
)
def test_values_of_another_kind(tmp_path: Path, how):
    with h5py.File(GOLDEN) as file:
        shapes, rows = len(file["/model/shape/path"]), len(file["/rigid_contacts/shape0"])
    said = refusal(tmp_path / "x.h5", "/model/shape/body", shape=(shapes,), **how)
    assert "x.h5: /model/shape/body: is " in said
    assert "not int32 of one extent" in said
    said = refusal(tmp_path / "x.h5", "/rigid_contacts/shape0", shape=(rows,), **how)
    assert "x.h5: /rigid_contacts/shape0: is " in said


def test_a_dataset_of_nothing(tmp_path: Path):
    for name in ("/model/shape/body", "/rigid_contacts/shape0", "/rigid_contacts/cell_start"):
        assert f"x.h5: {name}: " in refusal(tmp_path / "x.h5", name, data=h5py.Empty("i4"))


def test_chunks_that_are_unpacked_whole(tmp_path: Path):
    with h5py.File(GOLDEN) as file:
        rows = len(file["/rigid_contacts/cell_start"])
    how = {"shape": (rows,), "maxshape": (None,), "chunks": (1 << 24,), "dtype": "i8", "compression": "gzip"}
    said = refusal(tmp_path / "x.h5", "/rigid_contacts/cell_start", **how)
    assert "x.h5: /rigid_contacts/cell_start: has chunks of 128 MiB, and at most 64 MiB are read" in said


def test_cell_starts_of_a_smaller_type_are_read(tmp_path: Path):
    shutil.copy(GOLDEN, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        start = file["/rigid_contacts/cell_start"][()]
        del file["/rigid_contacts/cell_start"]
        file["/rigid_contacts/cell_start"] = start.astype(np.int8)
    with ContactSet.open(tmp_path / "x.h5") as contacts:
        assert sum(block.contact_count for block in contacts.blocks()) == contacts.contact_count == start[-1]


@pytest.mark.parametrize("change", [lambda v: v[::-1], lambda v: v - 1, lambda v: v + 1, lambda v: v * 10**12])
def test_cell_starts_that_make_no_sense(tmp_path: Path, change):
    shutil.copy(GOLDEN, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["/rigid_contacts/cell_start"][...] = change(file["/rigid_contacts/cell_start"][()])
    with ContactSet.open(tmp_path / "x.h5") as contacts, pytest.raises(InputError, match="is not ascending from 0"):
        list(contacts.blocks())
