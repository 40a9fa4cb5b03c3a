"""Reader of mesh files: STL, OBJ, PLY, OFF and glTF with trimesh, MuJoCo's MSH and COLLADA
directly, as arrays."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import python_call
from collidecli.storage.reading_limit import check_size
from collidecli.storage.regular_files import (
    open_input,
    refuse_pointer,
    refuse_special_file,
    require_regular_file,
)

EXTRA = "pip install 'collidecli[meshes]'"


def library(module: str, package: str, what: str, where: str) -> ModuleType:
    """The module. Raises InputError with the install command where it is missing. package: its name
    on the index."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {package}, which is not installed", where, EXTRA) from None


_GLB = b"glTF"
_GLB_HEADER = 20
"""Bytes before the JSON text of a GLB file: its header, and the length and kind of the text."""
_MOST_COMPONENTS = 4
"""Numbers in an element of an accessor of positions or indices, rounded up."""
_NUMBER_BYTES = 8
BY_TRIMESH = (".stl", ".obj", ".ply", ".off", ".gltf", ".glb")
ENDINGS = (*BY_TRIMESH, ".dae", ".msh")
"""Endings of mesh files."""


@dataclass(frozen=True)
class MeshFile:
    """The content of a mesh file: vertices float64[n, 3] [m], triangles int64[m, 3]. files: the
    file, and those that it names and whose content is in the triangles. notes: warnings."""

    vertices: np.ndarray
    faces: np.ndarray
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()


@python_call
def read_mesh(path: str | os.PathLike[str], scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices float64[n, 3] [m] and triangles int64[m, 3] of a mesh file, with all of its parts.

    Arguments for the builder: `builder.add_shape_mesh(body, *read_mesh("part.stl"))`,
    `builder.add_shape_convex_hull(body, read_mesh("part.stl")[0])`. Transforms of a glTF or COLLADA
    scene are applied; its up axis is kept. Coincident vertices are not merged, but of COLLADA.
    scale: multiplies every length. glTF has the metre as its unit, COLLADA names its unit, and
    lengths of other files are taken as metres. Raises InputError with the file: no such file, an
    unknown ending, invalid content, no triangles, or the library is not installed.
    """
    if not np.isfinite(scale) or scale <= 0.0:
        raise InputError(f"scale is {scale!r}", str(path), "give a number greater than zero")
    mesh = read_mesh_file(path)
    return mesh.vertices * scale, mesh.faces


def read_mesh_file(path: str | os.PathLike[str]) -> MeshFile:
    """The content of a mesh file; see `read_mesh`."""
    file = Path(path)
    where = str(path)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        what = f"'{file.suffix}' is not the ending of a mesh file"
        raise InputError(what, where, f"give {', '.join(ENDINGS)}")
    require_regular_file(file, "mesh", "give the path of a mesh")
    named = _NamedFiles(file)
    notes: list[str] = []
    if ending in BY_TRIMESH:
        vertices, faces = _by_trimesh(file, where, named)
    else:
        with open_input(file) as stream:
            data = stream.read()
        vertices, faces = _dae(data, where, notes) if ending == ".dae" else _msh(data, where)
    if not len(faces):
        raise InputError("the file has no triangles", where, "give a mesh with faces")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(
            f"a triangle has vertex {wrong} of {len(vertices)}", where, "correct the mesh"
        )
    if not np.isfinite(vertices).all():
        raise InputError("a vertex is not finite", where, "correct the mesh")
    return MeshFile(vertices, faces, (os.path.abspath(file), *named.files), tuple(notes))


class _NamedFiles:
    """The files that a mesh file names, by their paths relative to its folder, as trimesh reads
    them.

    files: those that have been read. refused: why one cannot be.
    """

    def __init__(self, file: Path) -> None:
        self._folder = file.parent
        self._named_by = str(file)
        self.files: list[str] = []
        self.refused: InputError | None = None

    def get(self, name: str) -> bytes:
        """The content of a file. Raises InputError for a URI, no file, or no regular file."""
        try:
            return self._content(name)
        except InputError as error:
            self.refused = error  # trimesh replaces exceptions
            raise

    __getitem__ = get

    def _content(self, name: str) -> bytes:
        path = os.path.abspath(self._folder / name)
        refuse_special_file(path, self._named_by)
        refuse_pointer(path, self._named_by)
        if "://" in name or not os.path.isfile(path):
            raise InputError(f"names '{name}', which is no file", self._named_by, "put it there")
        with open_input(path) as stream:
            data = stream.read()
        if path not in self.files:
            self.files.append(path)
        return data


def _by_trimesh(file: Path, where: str, named: _NamedFiles) -> tuple[np.ndarray, np.ndarray]:
    trimesh = library("trimesh", "trimesh", "a mesh file", where)
    try:
        # Nothing is merged or removed here: the builder repairs meshes and reports repairs.
        with open_input(file) as stream:
            data = stream.read()
        if file.suffix.lower() in (".gltf", ".glb"):
            _check_accessors(data, where)
        with BytesIO(data) as stream:
            scene = trimesh.load_scene(
                stream,
                file_type=file.suffix.lower()[1:],
                resolver=named,
                process=False,
                skip_materials=True,
            )
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    except InputError:
        raise
    except Exception as error:  # trimesh passes on all exceptions of its readers
        if named.refused is not None:
            raise named.refused from None
        raise InputError(
            f"the mesh cannot be read ({_reason(error)})", where, "export it again"
        ) from None
    vertices = [np.asarray(part.vertices, np.float64).reshape(-1, 3) for part in parts]
    first = np.cumsum([0, *(len(vertex) for vertex in vertices)])
    faces = [
        np.asarray(part.faces, np.int64).reshape(-1, 3) + start
        for part, start in zip(parts, first, strict=False)
    ]
    return np.concatenate([np.zeros((0, 3)), *vertices]), np.concatenate(
        [np.zeros((0, 3), np.int64), *faces]
    )


def _check_accessors(data: bytes, where: str) -> None:
    """Raises InputError for a glTF file whose accessors declare more numbers than the memory limit
    allows: one without a buffer is as many zeros. What is no glTF is left to trimesh."""
    if data.startswith(_GLB):
        data = data[_GLB_HEADER : _GLB_HEADER + int.from_bytes(data[12:16], "little")]
    try:
        accessors = json.loads(data)["accessors"]
        numbers = sum(_MOST_COMPONENTS * int(accessor["count"]) for accessor in accessors)
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return
    check_size(_NUMBER_BYTES * numbers, "the mesh", where, "export it again")


def _dae(data: bytes, where: str, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    from collidecli.importers.collada import read_collada  # with an XML parser

    return read_collada(data, where, notes)


def _msh(data: bytes, where: str) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's binary format: four counts, vertices, normals, texture coordinates, faces; little
    endian.

    Source: mujoco.readthedocs.io, XML reference, asset/mesh.
    """
    counts = np.frombuffer(data[:16], "<i4").astype(np.int64) if len(data) >= 16 else np.full(4, -1)
    vertex, normal, texture, face = counts.tolist()
    if counts.min() < 0 or len(data) != 16 + 4 * (3 * vertex + 3 * normal + 2 * texture + 3 * face):
        raise InputError("the file is not a MuJoCo MSH file", where, "export it again")
    vertices = np.frombuffer(data, "<f4", 3 * vertex, 16).reshape(-1, 3)
    start = 16 + 4 * (3 * vertex + 3 * normal + 2 * texture)
    return vertices.astype(np.float64), np.frombuffer(data, "<i4", 3 * face, start).reshape(
        -1, 3
    ).astype(np.int64)


def _reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text and text[0] else type(error).__name__
