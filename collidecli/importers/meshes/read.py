"""Mesh files that a user names: STL, OBJ, PLY, OFF, glTF through trimesh, MuJoCo's MSH by itself, as arrays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.meshes.extra import library

ENDINGS = (".stl", ".obj", ".ply", ".off", ".gltf", ".glb")
"""What trimesh reads here."""


def read_mesh(path: str | os.PathLike[str], scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices float64[n, 3] [m] and triangles int64[m, 3] of a mesh file, all of its parts together.

    What add_shape_mesh and add_shape_convex_hull take: `builder.add_shape_mesh(body, *read_mesh("part.stl"))`, and
    `builder.add_shape_convex_hull(body, read_mesh("part.stl")[0])`. A glTF scene's transforms are applied; its up axis
    (y) is kept. Vertices in one place stay several. scale: multiplies every length; files say no unit but for glTF,
    which is in metres.
    Raises InputError, naming the file, where there is none, its kind is not known, it is broken, it has no triangles,
    or the library is not installed.
    """
    file = Path(path)
    where = str(path)
    ending = file.suffix.lower()
    if ending not in (*ENDINGS, ".msh"):
        raise InputError(f"the ending '{file.suffix}' is no mesh's", where, f"give {', '.join((*ENDINGS, '.msh'))}")
    if not file.is_file():
        raise InputError("there is no such file", where, "give the path of a mesh")
    if not np.isfinite(scale) or scale <= 0.0:
        raise InputError(f"scale is {scale!r}", where, "give a number greater than zero")
    vertices, faces = _msh(file, where) if ending == ".msh" else _by_trimesh(file, where)
    if not len(faces):
        raise InputError("the file has no triangles", where, "give a mesh with faces")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(f"a triangle names vertex {wrong} of {len(vertices)}", where, "correct the mesh")
    if not np.isfinite(vertices).all():
        raise InputError("a vertex is not finite", where, "correct the mesh")
    return vertices * scale, faces


def _by_trimesh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    trimesh = library("trimesh", "trimesh", "a mesh file", where)
    try:
        # Nothing is merged or dropped: what is left out of a mesh is said where it becomes a shape.
        scene = trimesh.load_scene(str(file), process=False, skip_materials=True)
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    except Exception as error:  # trimesh lets through whatever a broken file makes its readers do
        raise InputError(f"the mesh cannot be read ({_said(error)})", where, "export it again") from None
    vertices = [np.asarray(part.vertices, np.float64).reshape(-1, 3) for part in parts]
    first = np.cumsum([0, *(len(each) for each in vertices)])
    faces = [np.asarray(part.faces, np.int64).reshape(-1, 3) + start for part, start in zip(parts, first, strict=False)]
    return np.concatenate([np.zeros((0, 3)), *vertices]), np.concatenate([np.zeros((0, 3), np.int64), *faces])


def _msh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's binary format: four counts, vertices, normals, texture coordinates, faces; little endian.

    Source: mujoco.readthedocs.io, XML reference, asset/mesh.
    """
    data = file.read_bytes()
    counts = np.frombuffer(data[:16], "<i4").astype(np.int64) if len(data) >= 16 else np.full(4, -1)
    vertex, normal, texture, face = counts.tolist()
    if counts.min() < 0 or len(data) != 16 + 4 * (3 * vertex + 3 * normal + 2 * texture + 3 * face):
        raise InputError("the file is no MSH of MuJoCo", where, "export it again")
    vertices = np.frombuffer(data, "<f4", 3 * vertex, 16).reshape(-1, 3)
    start = 16 + 4 * (3 * vertex + 3 * normal + 2 * texture)
    return vertices.astype(np.float64), np.frombuffer(data, "<i4", 3 * face, start).reshape(-1, 3).astype(np.int64)


def _said(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text and text[0] else type(error).__name__
