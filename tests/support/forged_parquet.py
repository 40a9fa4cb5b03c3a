"""Parquet files whose footer declares other sizes than they have."""

import struct
from pathlib import Path

MARK = b"PAR1"


def _number(value: int) -> bytes:
    """A number as Thrift's compact protocol writes it."""
    value <<= 1
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def forge(path: Path, number: int, forged: int, which: int | None = None) -> bool:
    """Replaces a number of the footer wherever it is, or in one place; False without that place."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    parts = data[-8 - length : -8].split(_number(number))
    places = range(len(parts) - 1) if which is None else [which]
    if which is not None and which >= len(parts) - 1:
        return False
    joints = [_number(forged if k in places else number) for k in range(len(parts) - 1)]
    footer = parts[0] + b"".join(j + p for j, p in zip(joints, parts[1:], strict=True))
    path.write_bytes(data[: -8 - length] + footer + struct.pack("<I", len(footer)) + MARK)
    return True
