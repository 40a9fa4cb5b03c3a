"""Pairs of real robots' meshes against FCL: which overlap, and how far apart the others are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import collidecli
from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.fcl_pairs import FclPair
from tests.support.mesh_inside import robot_meshes

LARGEST = 2500
"""Triangles of a mesh: FCL and the tests' own winding number take their time."""
NEAR = 1e-6
"""Share of the size within which two meshes may cross or not: FCL's triangles, and a file's float32."""


def sized_mesh(path, rng: np.random.Generator) -> TriangleMesh | None:
    """A file's mesh as it is used, its longest half extent between a half and 1; None for one that is too large."""
    vertices, faces = read_mesh(path)
    if not 12 <= len(faces) <= LARGEST:
        return None
    extent = np.ptp(vertices[faces].reshape(-1, 3), axis=0).max()
    return triangle_mesh(vertices * (2.0 * rng.uniform(0.5, 1.0) / extent), faces, str(path))


def meshes_of(rng: np.random.Generator, count: int) -> list[TriangleMesh]:
    """Meshes of robots that are installed, chosen at random."""
    paths = robot_meshes()
    found = []
    for k in rng.permutation(len(paths)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mesh = sized_mesh(paths[k], rng)
        if mesh is not None:
            found.append(mesh)
        if len(found) == count:
            break
    return found


def near_poses(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    """float64[count, 2, 7]: turned at random, most of them near to a touch."""
    poses = rng.normal(size=(count, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(count, 3))
    away *= size * rng.uniform(0.2, 1.4, (count, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    poses[:, 1, :3] = poses[:, 0, :3] + away
    return poses


def check_pairs(seed: int, mesh_count: int, pairs: int, frames: int) -> tuple[int, int]:
    """How many pairs are apart, and how many overlap; none is missed, none too many."""
    rng = np.random.default_rng(seed)
    meshes = meshes_of(rng, mesh_count)
    if not meshes:
        pytest.skip("no robots are installed")
    apart = overlapping = 0
    for turn in range(pairs):
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2))
        poses = near_poses(rng, frames, float(first.half_extents.max() + second.half_extents.max()))
        builder = ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for mesh in (first, second):
                builder.add_shape_mesh(builder.add_body(), mesh.vertex, mesh.face)
        contacts = collidecli.collide(builder.finalize(), poses[:, None], gap=6.0)
        for frame in range(frames):
            given = [(mesh.vertex, mesh.face) for mesh in (first, second)]
            closed = first.is_closed, second.is_closed
            pair = FclPair(*given, poses[frame, 0], poses[frame, 1], closed)
            found = float(contacts.cell(frame).distance.min())
            if pair.overlaps():
                overlapping += 1
                assert found < NEAR, (turn, frame, found)
            else:
                apart += 1
                assert found == pytest.approx(pair.distance(), abs=5.0 * NEAR), (turn, frame)
    return apart, overlapping


def test_pairs_of_real_meshes():
    apart, overlapping = check_pairs(3, 8, 8, 6)
    assert apart > 10
    assert overlapping > 10


@pytest.mark.slow
def test_two_thousand_pairs_of_real_meshes():
    apart, overlapping = check_pairs(4, 120, 250, 8)
    assert apart > 500
    assert overlapping > 500
