"""Reader of mesh files: STL, OBJ, PLY, OFF and glTF with trimesh, MuJoCo's MSH directly, as
arrays."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from collidecli.errors import InputError
from collidecli.storage.regular_files import open_input, require_regular_file

EXTRA = "pip install 'collidecli[meshes]'"


def library(module: str, package: str, what: str, where: str) -> ModuleType:
    """The module. Raises InputError with the install command where it is missing. package: its name
    on the index."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {package}, which is not installed", where, EXTRA) from None


ENDINGS = (".stl", ".obj", ".ply", ".off", ".gltf", ".glb")
"""Endings of files that trimesh reads."""


def read_mesh(path: str | os.PathLike[str], scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices float64[n, 3] [m] and triangles int64[m, 3] of a mesh file, with all of its parts.

    Arguments for the builder: `builder.add_shape_mesh(body, *read_mesh("part.stl"))`,
    `builder.add_shape_convex_hull(body, read_mesh("part.stl")[0])`. A glTF scene's transforms are
    applied; its up axis (y) is kept. Coincident vertices are not merged. scale: multiplies every
    length; only glTF has a unit, the metre. Raises InputError with the file: no such file, an
    unknown ending, invalid content, no triangles, or the library is not installed.
    """
    file = Path(path)
    where = str(path)
    ending = file.suffix.lower()
    if ending not in (*ENDINGS, ".msh"):
        what = f"'{file.suffix}' is not the ending of a mesh file"
        raise InputError(what, where, f"give {', '.join((*ENDINGS, '.msh'))}")
    require_regular_file(file, "mesh", "give the path of a mesh")
    if not np.isfinite(scale) or scale <= 0.0:
        raise InputError(f"scale is {scale!r}", where, "give a number greater than zero")
    vertices, faces = _msh(file, where) if ending == ".msh" else _by_trimesh(file, where)
    if not len(faces):
        raise InputError("the file has no triangles", where, "give a mesh with faces")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(
            f"a triangle has vertex {wrong} of {len(vertices)}", where, "correct the mesh"
        )
    if not np.isfinite(vertices).all():
        raise InputError("a vertex is not finite", where, "correct the mesh")
    return vertices * scale, faces


def _by_trimesh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    trimesh = library("trimesh", "trimesh", "a mesh file", where)
    try:
        # Nothing is merged or removed here: the builder repairs meshes and reports repairs.
        scene = trimesh.load_scene(str(file), process=False, skip_materials=True)
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    except Exception as error:  # trimesh passes on all exceptions of its readers
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


def _msh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's binary format: four counts, vertices, normals, texture coordinates, faces; little
    endian.

    Source: mujoco.readthedocs.io, XML reference, asset/mesh.
    """
    with open_input(file) as stream:
        data = stream.read()
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
