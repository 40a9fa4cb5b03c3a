"""Writer of NPZ files, array by array and block by block, in memory of one block."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib import format as npy

from collidecli.exporters.arrays import Array
from collidecli.storage.atomic_output import AtomicOutput

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time of the ZIP format, so that equal contacts give equal bytes."""


def write_npz(output: AtomicOutput, arrays: Iterable[Array]) -> None:
    """Writes an uncompressed NPZ, which `numpy.load` reads without pickles. Raises OutputError after a failed write."""
    stream: Any = output
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for array in arrays:
            member = zipfile.ZipInfo(f"{array.name}.npy", _EPOCH)
            with archive.open(member, "w", force_zip64=True) as file:
                dtype = array.dtype.newbyteorder("<")
                header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": array.shape}
                npy.write_array_header_1_0(file, header)
                rows = 0
                for piece in array.pieces():
                    rows += len(piece)
                    file.write(np.ascontiguousarray(piece, dtype).tobytes())
                    output.check()
                if array.shape and rows != array.shape[0]:
                    raise ValueError(f"{array.name}: {rows} rows were made for {array.shape}")
    output.check()
