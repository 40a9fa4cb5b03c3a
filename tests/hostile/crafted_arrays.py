"""NumPy's files: headers that lie, pickled objects, archives that unpack to more than there is."""

from __future__ import annotations

import io
import pickle
import struct
import warnings
import zipfile
from collections.abc import Iterator

import numpy as np

from tests.hostile.seeds import states

BOMB_BYTES = 3 << 30
SHAPES = (
    "(1, 10000000000, 29)", "(1, 4611686018427387904, 29)", "(10000000000, 4, 29)", "(1, 4, 100000000000)",
    "(-1, 4, 29)", "(1, 4)", "()", "(0, 4, 29)", "(1, 0, 29)", "(1.5, 4, 29)", "(True, 4, 29)",
    "'abc'", "(1, 4, 29, 10**9)",
    "(1,) * 10**9", "(9" + "9" * 400 + ",)", "(" * 2000 + ")" * 2000,
)  # fmt: skip
DIRECTORY = {
    "size": (24, b"\xff\xff\xff\x7f"),
    "packed size": (20, b"\xff\xff\xff\x7f"),
    "encryption": (8, b"\x01\x00"),
    "method": (10, b"\x63\x00"),
    "checksum": (16, b"\0\0\0\0"),
    "place": (42, b"\xff\xff\xff\x7f"),
}
"""Where a zip directory's entry has a field, and what it is set to."""
TYPES = (
    "'|O'", "'<f2'", "'>f8'", "'<c16'", "'<U1000000000'", "'|V16'", "[('x', '<f8')]", "'<M8[ns]'", "'<i8'", "'<f16'",
    "'nonsense'", "3", "'<f8'*1000", "'|S0'", "[('x', '<f8', (1000000000,))]",
)  # fmt: skip


class Shout:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return (print, ("PICKLE WAS LOADED",))


def npy(header: str | bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    text = header if isinstance(header, bytes) else header.encode("latin1")
    text = text.ljust((len(text) + 16) // 64 * 64 + 53) + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text) % (65536 if version == (1, 0) else 2**32))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def described(descr: str = "'<f8'", order: str = "False", shape: str = "(1, 4, 29)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def saved(values: np.ndarray) -> bytes:
    memory = io.BytesIO()
    np.save(memory, values, allow_pickle=True)
    return memory.getvalue()


def npy_files() -> Iterator[tuple[str, bytes]]:
    good = states()
    body = good.tobytes()
    for shape in SHAPES:
        yield f"shape {shape[:40]}", npy(described(shape=shape), body)
    for descr in TYPES:
        yield f"type {descr[:40]}", npy(described(descr), body)
    yield "header not closed", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4", body)
    yield "header with a call", npy("__import__('os').system('echo PICKLE WAS LOADED')", body)
    yield "header of nested brackets", npy("[" * 9000 + "]" * 9000, body, (2, 0))
    yield "header that is vast", npy(described() + " " * 10_000_000, body, (2, 0))
    yield "header longer than the file", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"
    yield "version 9", npy(described(), body, (9, 9))
    yield "Fortran order", npy(described(order="True"), body)
    yield "order is text", npy(described(order="'no'"), body)
    yield "a key too many", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), 'x': 1}", body)
    yield "cut short", saved(good)[:-100]
    yield "pickled", saved(np.array([Shout(), Shout()], object))
    yield "pickle alone", pickle.dumps([Shout()])
    for name, value in (("NaN", np.nan), ("infinite", np.inf), ("denormal", 5e-324), ("huge", 1e308), ("zero", 0.0)):
        yield f"all {name}", saved(np.full_like(good, value))
        bad = good.copy()
        bad[0, 2, 3] = value
        yield f"one {name}", saved(bad)


def npz_files() -> Iterator[tuple[str, bytes]]:
    good = saved(states())
    yield "pickled", archive({"states.npy": saved(np.array([Shout()], object))})
    yield "pickled beside", archive({"states.npy": good, "other.npy": saved(np.array([Shout()], object))})
    yield "names that lead out", archive({"../../states.npy": good, "/etc/states.npy": good})
    yield "name twice", archive([("states.npy", good), ("states.npy", saved(np.zeros((1, 1, 29))))])
    yield "no arrays", archive({"readme.txt": b"hello"})
    yield "empty member", archive({"states.npy": b""})
    yield "archive in an archive", archive({"states.npy": archive({"states.npy": good})})
    yield "many members", archive({f"a{k}.npy": good for k in range(3000)})
    yield "one array of another name", archive({"x.npy": good})
    yield "strange names", archive({"\x1b[31mstates.npy": good, "a" * 60000 + ".npy": good})
    bomb = npy(described(shape=f"(1, {BOMB_BYTES // 232}, 29)"))
    yield "bomb that keeps its word", archive({"states.npy": zeros_after(bomb)}, zipfile.ZIP_DEFLATED)
    yield "bomb in a header's place", archive({"states.npy": bytes(128 << 20)}, zipfile.ZIP_DEFLATED)
    packed = bytearray(archive({"states.npy": good}, zipfile.ZIP_DEFLATED))
    for what, (offset, value) in DIRECTORY.items():
        changed = packed.copy()
        at = packed.rindex(b"PK\x01\x02") + offset
        changed[at : at + len(value)] = value
        yield f"directory with another {what}", bytes(changed)
    yield "without its directory", bytes(packed[:-60])


def zeros_after(header: bytes) -> bytes:
    """An eighth of a gigabyte is enough to tell; the header promises more."""
    return header + bytes(128 << 20)


def archive(members: dict[str, bytes] | list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    memory = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(memory, "w", method) as made:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members.items() if isinstance(members, dict) else members:
            made.writestr(name, data)
    return memory.getvalue()
