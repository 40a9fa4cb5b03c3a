"""NumPy's files and meshes: headers that lie, pickled objects, archives that unpack to more than
there is."""

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
    "(1, 10000000000, 29)",
    "(1, 4611686018427387904, 29)",
    "(10000000000, 4, 29)",
    "(1, 4, 100000000000)",
    "(-1, 4, 29)",
    "(1, 4)",
    "()",
    "(0, 4, 29)",
    "(1, 0, 29)",
    "(1.5, 4, 29)",
    "(True, 4, 29)",
    "'abc'",
    "(1, 4, 29, 10**9)",
    "(1,) * 10**9",
    "(9" + "9" * 400 + ",)",
    "(" * 2000 + ")" * 2000,
)
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
    "'|O'",
    "'<f2'",
    "'>f8'",
    "'<c16'",
    "'<U1000000000'",
    "'|V16'",
    "[('x', '<f8')]",
    "'<M8[ns]'",
    "'<i8'",
    "'<f16'",
    "'nonsense'",
    "3",
    "'<f8'*1000",
    "'|S0'",
    "[('x', '<f8', (1000000000,))]",
)


class Shout:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return (print, ("PICKLE WAS LOADED",))


def npy(header: str | bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    text = header if isinstance(header, bytes) else header.encode("latin1")
    text = text.ljust((len(text) + 16) // 64 * 64 + 53) + b"\n"
    length = struct.pack(
        "<H" if version == (1, 0) else "<I", len(text) % (65536 if version == (1, 0) else 2**32)
    )
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
    yield (
        "a key too many",
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), 'x': 1}", body),
    )
    yield "cut short", saved(good)[:-100]
    yield "pickled", saved(np.array([Shout(), Shout()], object))
    yield "pickle alone", pickle.dumps([Shout()])
    for name, value in (
        ("NaN", np.nan),
        ("infinite", np.inf),
        ("denormal", 5e-324),
        ("huge", 1e308),
        ("zero", 0.0),
    ):
        yield f"all {name}", saved(np.full_like(good, value))
        bad = good.copy()
        bad[0, 2, 3] = value
        yield f"one {name}", saved(bad)


def npz_files() -> Iterator[tuple[str, bytes]]:
    good = saved(states())
    yield "pickled", archive({"states.npy": saved(np.array([Shout()], object))})
    yield (
        "pickled beside",
        archive({"states.npy": good, "other.npy": saved(np.array([Shout()], object))}),
    )
    yield "names that lead out", archive({"../../states.npy": good, "/etc/states.npy": good})
    yield "name twice", archive([("states.npy", good), ("states.npy", saved(np.zeros((1, 1, 29))))])
    yield "no arrays", archive({"readme.txt": b"hello"})
    yield "empty member", archive({"states.npy": b""})
    yield "archive in an archive", archive({"states.npy": archive({"states.npy": good})})
    yield "many members", archive({f"a{k}.npy": good for k in range(3000)})
    yield "one array of another name", archive({"x.npy": good})
    yield "strange names", archive({"\x1b[31mstates.npy": good, "a" * 60000 + ".npy": good})
    # An eighth of a gigabyte is enough to tell; the header promises more.
    bomb = npy(described(shape=f"(1, {BOMB_BYTES // 232}, 29)"), bytes(128 << 20))
    yield "bomb that keeps its word", archive({"states.npy": bomb}, zipfile.ZIP_DEFLATED)
    yield (
        "bomb in a header's place",
        archive({"states.npy": bytes(128 << 20)}, zipfile.ZIP_DEFLATED),
    )
    packed = bytearray(archive({"states.npy": good}, zipfile.ZIP_DEFLATED))
    for what, (offset, value) in DIRECTORY.items():
        changed = packed.copy()
        at = packed.rindex(b"PK\x01\x02") + offset
        changed[at : at + len(value)] = value
        yield f"directory with another {what}", bytes(changed)
    yield "without its directory", bytes(packed[:-60])


def archive(
    members: dict[str, bytes] | list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED
) -> bytes:
    memory = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(memory, "w", method) as made:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members.items() if isinstance(members, dict) else members:
            made.writestr(name, data)
    return memory.getvalue()


SQUARE = "[(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]"
SOLID = "[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]"
SIDES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
APPROXIMATIONS = ("none", "convexHull", "boundingCube", "boundingSphere", "meshSimplification")


def mesh(
    points: str,
    faces: tuple[tuple[int, ...], ...] | str,
    more: str = "",
    approximation: str = "none",
) -> str:
    """A collider that is a mesh, and a ball near it."""
    if not isinstance(faces, str):
        counts = ", ".join(str(len(face)) for face in faces)
        indices = ", ".join(str(k) for face in faces for k in face)
        faces = f"int[] faceVertexCounts = [{counts}]\nint[] faceVertexIndices = [{indices}]"
    apis = '["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]'
    ball = (
        'def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]) {'
        " double radius = 1 }"
    )
    return (
        f'def Mesh "m" (prepend apiSchemas = {apis})\n{{\n point3f[] points = {points}\n{faces}\n'
        f'uniform token physics:approximation = "{approximation}"\n{more}\n}}\n{ball}\n'
    )


def meshes() -> Iterator[tuple[str, str]]:
    """What it is, and the prims."""
    for approximation in APPROXIMATIONS:
        for what, points, faces, more in _dirty():
            yield f"a mesh as {approximation}: {what}", mesh(points, faces, more, approximation)
    yield "a mesh of no known approximation", mesh(SOLID, SIDES, approximation="x" * 5000)
    spiral = np.array([(r * np.cos(7 * r), r * np.sin(7 * r)) for r in np.linspace(0.5, 9.0, 900)])
    around = np.concatenate([spiral, 0.93 * spiral[::-1]])
    points = ", ".join(f"({x:.6f}, {y:.6f}, 0)" for x, y in around)
    yield "a face of 1800 corners that no fan covers", mesh(f"[{points}]", (tuple(range(1800)),))
    points = ", ".join(f"({np.cos(k):.6f}, {np.sin(k):.6f}, 0)" for k in range(1500))
    yield "a face of 1500 corners that crosses itself", mesh(f"[{points}]", (tuple(range(1500)),))
    yield "one point for 200000 triangles", mesh(SOLID, ((0, 0, 0),) * 200_000)
    yield "one triangle 100000 times", mesh(SOLID, ((0, 1, 2),) * 100_000)
    hulls = "int physxConvexDecompositionCollision:maxConvexHulls = -2147483648"
    yield "parts by a number below zero", mesh(SOLID, SIDES, hulls, "convexDecomposition")
    yield "a decomposition of a flat mesh", mesh(SQUARE, ((0, 1, 2, 3),), "", "convexDecomposition")


def _dirty() -> Iterator[tuple[str, str, tuple[tuple[int, ...], ...] | str, str]]:
    yield "flat", SQUARE, ((0, 1, 2, 3),), ""
    yield "a point", "[(0, 0, 0)]", ((0, 0, 0),), ""
    yield "a line", "[(0, 0, 0), (1, 0, 0), (2, 0, 0)]", ((0, 1, 2),), ""
    yield "no points", "[]", ((0, 1, 2),), ""
    yield "no faces", SOLID, "", ""
    yield (
        "faces of no corners",
        SOLID,
        "int[] faceVertexCounts = [0, 0]\nint[] faceVertexIndices = []",
        "",
    )
    yield "faces of one corner and two", SOLID, ((0,), (0, 1), *SIDES), ""
    yield "an edge of three triangles", SOLID, (*SIDES, (0, 1, 2)), ""
    yield "an index too large", SOLID, ((0, 1, 2147483647),), ""
    yield "an index below zero", SOLID, ((0, 1, -2147483648),), ""
    yield (
        "counts below zero",
        SOLID,
        "int[] faceVertexCounts = [-3, 6]\nint[] faceVertexIndices = [0, 1, 2]",
        "",
    )
    yield (
        "counts whose sum is 32 bits off",
        SOLID,
        "int[] faceVertexCounts = [2147483647, 2147483647, 5]\nint[] faceVertexIndices = [0, 1, 2]",
        "",
    )
    yield "points that are not finite", SOLID.replace("1", "nan"), SIDES, ""
    yield "points too far off", SOLID.replace("1", "3e38"), SIDES, ""
    yield "points too near", SOLID.replace("1", "1e-44"), SIDES, ""
    yield "points hardly off a plane", SOLID.replace("0, 1)", "0, 1e-12)"), SIDES, ""
    yield "holes that are no faces", SOLID, SIDES, "int[] holeIndices = [0, 99, -1]"
    yield "all holes", SOLID, SIDES, "int[] holeIndices = [0, 1, 2, 3, 3]"
    yield "an orientation that is none", SOLID, SIDES, 'uniform token orientation = "sideways"'
    yield (
        "a scale of nothing",
        SOLID,
        SIDES,
        (
            "double3 xformOp:scale = (1, 1e-200, -1e200)\nuniform token[] xformOpOrder ="
            ' ["xformOp:scale"]'
        ),
    )
