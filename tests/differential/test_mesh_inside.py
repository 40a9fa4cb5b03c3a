"""The inside of closed meshes: spheres in solids of known shape, and real robots' meshes against the winding number."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.contact_contract import ROUNDING
from tests.support.mesh_inside import engine_inside, robot_meshes, scattered_points, winding_numbers
from tests.support.solids import Mesh, box, joined, knot, turned

SIZES = (1e-3, 1.0, 1e3)
RADIUS = 0.02
POINTS = 1000
ON_SURFACE = 1e-9
"""Share of the size of a mesh: nearer points are neither inside nor outside."""
BOX = box(1.0, 1.0, 1.0)
DOUBLED = BOX[0], np.concatenate([BOX[1], BOX[1][:1]])
SOUP = BOX[0][BOX[1]].reshape(-1, 3), np.arange(36).reshape(12, 3)
CASES: dict[str, tuple[Mesh, dict[tuple[float, float, float], float]]] = {
    # From 0.5 to 1.5 along x, to 1.2 along y and z: what is nearest outside of both boxes may be an edge of the two.
    "poking": (
        joined(BOX, box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85))),
        {
            (0.05, 0.0, 0.0): -0.95,
            (0.38, 0.1, 0.0): -0.62,
            (0.7, 0.7, 0.7): -float(np.hypot(0.3, 0.2)),
            (1.2, 0.8, 0.8): -0.3,
            (2.0, 0.8, 0.8): 0.5,
            (0.0, 0.0, 1.5): 0.5,
        },
    ),
    "box in box": (
        joined(BOX, box(0.4, 0.4, 0.4)),
        {(0.05, 0.0, 0.0): -0.95, (0.38, 0.1, 0.0): -0.62, (1.5, 0.0, 0.0): 0.5},
    ),
    "cavity": (
        joined(BOX, turned(box(0.5, 0.5, 0.5))),
        {(0.05, 0.0, 0.0): 0.45, (0.7, 0.0, 0.1): -0.2, (1.3, 0.0, 0.0): 0.3},
    ),
    "touching": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 0.0, 0.0))), {(0.95, 0.3, 0.0): -0.7, (1.0, 0.3, 0.2): -0.7}),
    "touching part": (
        joined(BOX, box(1.0, 0.5, 0.5, (2.0, 0.0, 0.0))),
        {(0.95, 0.0, 0.0): -float(np.hypot(0.05, 0.5))},
    ),
    "inside out": (turned(BOX), {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "duplicate": (DOUBLED, {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "soup": (SOUP, {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "knot": (knot(), {(2.5, 0.0, 0.05): -0.25, (2.5, 0.0, 1.0): 0.7, (1.0, 0.05, -1.0): -0.15}),
    "along an edge": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))), {(0.9, 0.8, 0.1): -0.1, (0.5, 1.4, 0.0): 0.4}),
}  # fmt: skip
SAMPLE = (
    # Several bodies, one in or through another.
    "adroit_hand/resources/meshes/F2.stl", "meshes/idx-f1.obj", "cassie_description/meshes/foot-crank.stl",
    "cassie_description/meshes/heel-spring.stl", "cassie_description/meshes/plantar-rod.stl",
    "quadrotor/quadrotor_base.stl", "shoulder_v0/upper_arm_roll_L.stl", "tilting_laser_v0/hok_tilt.stl",
    "tilting_laser_v0/tilting_hokuyo_L.stl", "torso_v0/torso.stl",
    # Surfaces that cross themselves, or have edges of four triangles.
    "upper_arm_v0/elbow_flex.stl", "gripper/fingertip.STL", "simple/wrist_pitch_right.stl", "meshes/fb_palm_ref.obj",
    "meshes/sake_finger_knuckle.obj", "laikago_description/meshes/thigh.obj", "arm/arm_6.stl",
    # Cracks, fins.
    "meshes/sake_finger_tip.obj", "meshes/link_13.0.STL", "meshes/link_3.0.STL",
    "finger_edu_description/meshes/base_front.stl", "meshes/left_hand_thumb_0_link.STL",
    # Sound ones.
    "adroit_hand/resources/meshes/F1.stl", "tiago_description/meshes/arm/arm_6.stl",
)  # fmt: skip
"""Ends of paths of real meshes."""


def distance_at(mesh: Mesh, size: float, center: tuple[float, float, float]) -> float:
    """Of a sphere about a point from a mesh, in parts of the size."""
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_shape_mesh(-1, size * mesh[0], mesh[1])
    builder.add_shape_sphere(builder.add_body(), radius=RADIUS * size)
    body_q = np.array([[[[*(size * np.array(center)), 0.0, 0.0, 0.0, 1.0]]]])
    return float(collidecli.collide(builder.finalize(), body_q, gap=3.0 * size).distance.min()) / size


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_a_sphere_knows_how_deep_it_is(name, size):
    mesh, truth = CASES[name]
    """How far its centre is inside, or more where it must go farther to be free of a corner that points inwards."""
    for center, inside in truth.items():
        found = distance_at(mesh, size, center) + RADIUS
        assert (
            1.05 * inside - ROUNDING <= found <= inside + ROUNDING if inside < 0.0 else found == pytest.approx(inside)
        )


@pytest.mark.parametrize("size", SIZES)
def test_where_a_body_crosses_itself(size):
    """The nearest exit from the knot's crossing is 0.28 to the side; a triangle of the downward exit begins at z = 0.1.

    A triangle that is hidden in part is in the tree as a whole: a point's nearest place may be on its hidden part, but
    the translation along it ends inside, and the search goes on.
    """
    assert distance_at(knot(), size, (1.0, 0.02, 0.0)) + RADIUS == pytest.approx(-0.28, abs=0.01)


def wrong_points(mesh: TriangleMesh, triangles: np.ndarray, seed: int) -> int:
    """Of POINTS, those that the engine has on the other side than the winding number of triangles [F, 3, 3] has."""
    points = scattered_points(np.random.default_rng(seed), mesh.vertex[mesh.face], POINTS)
    inside, distance = engine_inside(mesh, points)
    corners = triangles - mesh.center
    numbers = winding_numbers(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), points)
    assert np.abs(numbers - np.round(numbers)).max() < 0.1
    judged = distance > ON_SURFACE * 2.0 * mesh.half_extents.max()
    assert judged.sum() > 0.9 * POINTS
    return int((judged & (inside != (np.abs(numbers) > 0.5))).sum())


def check_file(path: Path, seed: int) -> bool:
    """Whether a file's mesh is closed; its inside is then right, that of the file's own triangles if those are."""
    vertices, faces = read_mesh(path)
    mesh = triangle_mesh(vertices, faces, str(path))
    if not mesh.is_closed:
        return False
    counts = mesh.repairs.counts()
    as_read = set(counts) <= {"united", "welded"}
    triangles = vertices[faces] if as_read else mesh.vertex[mesh.face] + mesh.center
    assert wrong_points(mesh, triangles, seed) == 0, (path, counts)
    return True


def test_real_meshes_have_the_inside_of_the_winding_number():
    paths = [path for path in robot_meshes(SAMPLE) if path.as_posix().endswith(SAMPLE)]
    if not paths:
        pytest.skip("no robots are installed")
    closed = [check_file(path, seed) for seed, path in enumerate(paths[::3])]
    assert all(closed)
    assert len(closed) > 1


@pytest.mark.slow
def test_all_real_meshes_have_the_inside_of_the_winding_number():
    paths = robot_meshes()
    if not paths:
        pytest.skip("no robots are installed")
    closed = [check_file(path, seed) for seed, path in enumerate(paths)]
    assert sum(closed) > 0.5 * len(closed)
