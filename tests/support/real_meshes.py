"""Balls, capsules and boxes around real meshes, and the truth in float64: distances, winding numbers, FCL."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.answers import Form, PairCase
from tests.support.fcl_pairs import FclPair
from tests.support.mesh_inside import scattered_points, winding_numbers
from tests.support.meshes import point_distances, segment_distances
from tests.support.solids import box
from tests.support.translation_oracle import posed

KINDS = (ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.BOX)


def real_mesh(path: Path) -> tuple[Form, np.ndarray | None]:
    """A file's mesh; and triangles [F, 3, 3] of its solid, None of an open one.

    The triangles are the file's own where a winding number is right for them.
    """
    vertices, faces = read_mesh(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mesh = triangle_mesh(vertices, faces, str(path))
    as_read = set(mesh.repairs.counts()) <= {"united", "welded"}
    solid = (vertices[faces] if as_read else mesh.vertex[mesh.face] + mesh.center) if mesh.is_closed else None
    return Form(path.name, ShapeType.MESH, mesh=(vertices, faces)), solid


def real_cases(path: Path, count: int, seed: int) -> tuple[list[PairCase], np.ndarray | None]:
    """A case of each kind with `count` poses near the surface and anywhere; and the solid of `real_mesh`."""
    first, solid = real_mesh(path)
    vertices, faces = first.mesh
    rng = np.random.default_rng(seed)
    cases = []
    for kind in KINDS:
        length = first.extent * 10.0 ** rng.uniform(-1.5, -0.3)
        size = {ShapeType.SPHERE: (1.0,), ShapeType.CAPSULE: (0.4, 0.6), ShapeType.BOX: (0.8, 0.5, 0.3)}[kind]
        poses = np.zeros((count, 2, 7))
        poses[:, 0, 6] = 1.0
        poses[:, 1, :3] = scattered_points(rng, vertices[faces], count)
        # Some are moved off, so that the shape does not cross the surface.
        off = rng.normal(size=(count, 3))
        off *= rng.choice([0.0, 1.0, 2.0], (count, 1)) * length / np.linalg.norm(off, axis=1, keepdims=True)
        turn = rng.normal(size=(count, 4))
        poses[:, 1, :3] += off
        poses[:, 1, 3:] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        cases.append(PairCase(first, Form(kind.label, kind, tuple(length * one for one in size)), 1.0, poses))
    return cases, solid


def true_distances(case: PairCase, solid: np.ndarray | None) -> np.ndarray:
    """float64[P]: distances of surfaces where the shapes are apart, -inf where they overlap [m]."""
    corners, second = with_area(case.first.corners), case.second
    result = np.empty(len(case.poses))
    centers = case.poses[:, 1, :3]
    inside = np.zeros(len(centers), bool)
    if solid is not None:
        numbers = winding_numbers(solid.reshape(-1, 3), np.arange(solid.size // 3).reshape(-1, 3), centers)
        inside = np.abs(numbers) > 0.5
    for row, pose in enumerate(case.poses[:, 1]):
        if second.type == ShapeType.SPHERE:
            apart = point_distances(corners, pose[:3]).min() - second.size[0]
        elif second.type == ShapeType.CAPSULE:
            ends = posed(np.array([[0.0, 0.0, -second.size[1]], [0.0, 0.0, second.size[1]]]), pose)
            apart = segment_distances(corners, ends[0], ends[1]).min() - second.size[0]
        else:
            pair = FclPair((case.first.vertices, case.first.mesh[1]), box(*second.size), case.poses[row, 0], pose,
                           closed=(False, True))  # fmt: skip
            apart = -np.inf if pair.overlaps() else pair.distance()
        # Where no surface is crossed, the whole shape is on the side of its centre.
        result[row] = -np.inf if inside[row] or apart < 0.0 else apart
    return result


def with_area(corners: np.ndarray) -> np.ndarray:
    """The triangles [F, 3, 3] that are no lower than 1e-12 of their longest side; the program omits the others too."""
    sides = corners - np.roll(corners, 1, axis=1)
    longest = np.linalg.norm(sides, axis=2).max(1)
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    return corners[area > 1e-12 * longest**2]
