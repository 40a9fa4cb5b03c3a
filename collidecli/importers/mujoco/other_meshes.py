"""Mesh files of formats that MuJoCo does not read, given to it as vertices and triangles."""

from __future__ import annotations

import os
from collections.abc import Sequence

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mesh_files import ENDINGS, read_mesh_file
from collidecli.importers.mujoco.left_out import partition_geoms
from collidecli.importers.mujoco.scene_files import asset_paths
from collidecli.storage.regular_files import open_input

_OF_MUJOCO = (".obj", ".msh")
_VERBS = ("is ", "has ", "names ")
"""Beginnings of messages whose subject is the file."""
_STL_HEADER = 84
_STL_FACE = 50
_MOST_STL_FACES = 200_000
"""MuJoCo refuses binary STL files with more, and STL files of text."""


class OtherMeshes:
    """The mesh files of one scene that are read here. files: those read, and those that they name.
    notes: warnings about them."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.notes: list[str] = []
        self._read: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def insert(self, spec: mujoco.MjSpec, included: Sequence[str], location: str) -> None:
        """Replaces the files of meshes that collide and that MuJoCo does not read by their content,
        with equal vertices merged. Meshes that are only drawn, and missing files, stay.

        included: files of the scene. Raises InputError with the geom for a file that cannot be
        read.
        """
        if not len(spec.meshes):
            return
        users = {geom.meshname: geom for geom in reversed(partition_geoms(spec)[0])}
        for mesh in spec.meshes:
            name = mesh.name or os.path.splitext(os.path.basename(mesh.file))[0]
            if not mesh.file or name not in users:
                continue
            paths = asset_paths(spec, mesh.file, mesh.compiler.meshdir, included)
            path = next((path for path in paths if os.path.isfile(path)), None)
            if path is None or _is_of_mujoco(path):
                continue
            vertices, faces = self._content(path, users[name], location)
            mesh.name = name
            mesh.file = ""
            mesh.uservert = vertices
            mesh.userface = faces

    def _content(
        self, path: str, geom: mujoco.MjsGeom, location: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates float32[3 n] and vertices of triangles int32[3 m]; a scene that is compiled
        repeatedly reads a file once."""
        if path not in self._read:
            try:
                read = read_mesh_file(path)
            except InputError as error:
                shown = f"geom '{geom.name}'" if geom.name else f"a geom of '{geom.parent.name}'"
                reason = f"it {error.what}" if error.what.startswith(_VERBS) else error.what
                what = f"{shown} collides, and its file '{path}' cannot be used: {reason}"
                raise InputError(what, location, error.fix) from error
            points = read.vertices.astype(np.float32)
            vertices, corner = np.unique(points, axis=0, return_inverse=True)
            faces = corner.reshape(-1)[read.faces].astype(np.int32)
            self._read[path] = vertices.ravel(), faces.ravel()
            self.files += read.files
            self.notes += read.notes
        return self._read[path]


def _is_of_mujoco(path: str) -> bool:
    ending = os.path.splitext(path)[1].lower()
    if ending == ".stl":
        with open_input(path) as file:
            header = file.read(_STL_HEADER)
        faces = int.from_bytes(header[-4:], "little") if len(header) == _STL_HEADER else 0
        is_binary = os.path.getsize(path) == _STL_HEADER + _STL_FACE * faces
        return is_binary and 0 < faces <= _MOST_STL_FACES
    return ending in _OF_MUJOCO or ending not in ENDINGS
