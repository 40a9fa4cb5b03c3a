"""Pairs of triangle meshes against brute force over all pairs of features, coal, FCL and known
solids."""

import warnings
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.mesh_pairs import FclPair, deepest_vertex, mesh_distance, placed, robot_meshes
from tests.support.meshes import Mesh, Terrain, blob, box, cut, grid, point_distances, prism, torus
from tests.support.oracle import ROUNDING, check_contract, directions_on_sphere, rotation_of
from tests.support.poses import poses_of_two, random_quaternions
from tests.support.swept_motions import random_scene, random_step, sampled_poses

FRAMES = 28
SIZES = [1e-3, 1.0, 1e3]
ROOF = prism([(-1, -0.6), (0, -0.4), (1, -0.6), (0, 0.4)], 1.0)
"""A crest at z = 0.4 whose sides fall at 45 degrees, and a dent below."""
PLATE = prism([(-1.2, -0.05), (1.2, -0.05), (1.2, 0.2), (1.1, 0.2), (1.1, 0.05), (-1.2, 0.05)], 1.2)
"""A tenth thick, with a rim."""
CHANNEL = [
    (-0.7, -0.5),
    (0.7, -0.5),
    (0.7, 0.5),
    (0.5, 0.5),
    (0.5, -0.3),
    (-0.5, -0.3),
    (-0.5, 0.5),
    (-0.7, 0.5),
]
STAR = [
    ((1.0, 0.4)[k % 2] * np.cos(0.2 * np.pi * k), (1.0, 0.4)[k % 2] * np.sin(0.2 * np.pi * k))
    for k in range(10)
]
SHAPES = {
    "blob": blob(np.random.default_rng(0), 7, 9),
    "torus": torus(12, 7),
    "box": box(0.5, 0.4, 0.3),
    "bar": box(1.5, 0.1, 0.1),
    "roof": ROOF,
    "plate": PLATE,
    "channel": prism(CHANNEL, 0.5),
    "star": prism(STAR, 0.3),
}
MESHES = {**SHAPES, "open": grid(4, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y))}
SOLID = ("blob", "torus", "box", "bar")
PAIRS = [
    ("blob", "torus"),
    ("box", "box"),
    ("bar", "bar"),
    ("torus", "bar"),
    ("blob", "open"),
    ("open", "open"),
]


def scene(first: Mesh, second: Mesh, size: float = 1.0) -> Model:
    builder = ModelBuilder()
    for vertices, faces in (first, second):
        builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    return builder.finalize()


def pair_scene(first: str, second: str, size: float = 1.0) -> Model:
    return scene(MESHES[first], MESHES[second], size)


def resting(x: float, y: float, z: float, count: int = 2) -> np.ndarray:
    """float64[1, 1, count, 7]: bodies that are not turned, the last moved."""
    body_q = np.zeros((1, 1, count, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, -1, :3] = x, y, z
    return body_q


@pytest.mark.share(8, 2)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_distance_and_depth(first, second):
    """Apart, the distance of the surfaces; overlapping, no less deep than the deepest vertex of
    either in the other."""
    distances = {}
    kinds = {}
    body_q = poses_of_two(
        np.random.default_rng(8), FRAMES, 1.2 if "bar" in (first, second) else 2.2
    )
    for size in SIZES:
        moved = body_q.copy()
        moved[..., :3] *= size
        contacts = collidecli.collide(pair_scene(first, second, size), moved, gap=3.0 * size)
        for frame in range(FRAMES):
            cell = contacts.cell(frame)
            check_contract(cell, size)
            distances[size, frame] = cell.distance.min() / size
    for frame in range(FRAMES):
        corners = [
            placed(MESHES[name], body_q[frame, 0, k]) for k, name in enumerate((first, second))
        ]
        distance = mesh_distance(*corners)
        inside = [
            deepest_vertex(corners[1 - k], corners[k])
            for k, name in enumerate((first, second))
            if name in SOLID
        ]
        kinds[frame] = distance > 0.0 and max(inside, default=0.0) == 0.0
        for size in SIZES:
            if kinds[frame]:
                assert distances[size, frame] == pytest.approx(distance, abs=ROUNDING)
            else:
                assert distances[size, frame] < 0.0
                assert distances[size, frame] <= -max(inside, default=0.0) + ROUNDING
    assert 3 < sum(kinds.values()) < FRAMES - 3


@pytest.mark.parametrize(
    ("first", "second", "gap"),
    [
        *((*pair, 0.1) for pair in PAIRS),
        *(("star", "plate", 0.0), ("torus", "roof", 0.0), ("blob", "channel", 0.0)),
    ],
)
def test_points_are_on_the_surfaces(first, second, gap):
    body_q = poses_of_two(np.random.default_rng(10), 10, 2.2 if gap else 1.2)
    contacts = collidecli.collide(pair_scene(first, second), body_q, gap=gap)
    for frame in range(len(body_q)):
        cell = contacts.cell(frame)
        for name, pose, points in ((first, 0, cell.point0), (second, 1, cell.point1)):
            corners = placed(MESHES[name], body_q[frame, 0, pose])
            for point in points:
                assert point_distances(corners, point).min() < 1e-6


def on_edge(mesh: Mesh) -> Mesh:
    """Turned by 45 degrees about x."""
    return mesh[0] @ (np.array([[2**0.5, 0, 0], [0, 1, 1], [0, -1, 1]]) * 0.5**0.5), mesh[1]


def across(mesh: Mesh) -> Mesh:
    """Turned by a right angle about z."""
    return mesh[0][:, [1, 0, 2]] * [-1.0, 1.0, 1.0], mesh[1]


def side_of(mesh: Mesh, sign: float) -> Mesh:
    """The triangles that face up or down, an open mesh."""
    p, q, r = np.moveaxis(mesh[0][mesh[1]], 1, 0)
    return mesh[0], mesh[1][sign * np.cross(q - p, r - p)[:, 2] > 1e-9]


BAR = box(1.5, 0.1, 0.1)
BEAM = on_edge(box(1.0, 0.2, 0.2))
ALIGNED = [
    # Four corners of the upper box; the large one's flat inside gives no contact.
    *(
        (box(2.0, 2.0, 1.0), box(0.5, 0.4, 0.3), (0.3, 0.1, 1.3 + d), 0.01, d, 4)
        for d in (1e-3, 0.0, -1e-3)
    ),
    # Crossing bars: no vertex of either is inside the other, their edges are.
    *((BAR, across(BAR), (0.0, 0.0, 0.2 + d), 0.0, d, None) for d in (-1e-4, -0.03)),
    # Ridges at right angles, edge on edge.
    *((BEAM, across(BEAM), (0.1, 0.2, 0.4 * 2.0**0.5 + d), 0.02, d, None) for d in (0.01, -0.01)),
    (side_of(BEAM, 1.0), across(side_of(BEAM, -1.0)), (0.1, 0.2, 0.4 * 2.0**0.5), 0.02, 0.0, None),
    # One wholly inside the other, farther from the surface than the gap.
    *(
        (box(2.0, 2.0, 1.0), box(0.2, 0.2, 0.1), (0.3, 0.1, 0.4), gap, -0.7, None)
        for gap in (0.0, 0.1)
    ),
]


@pytest.mark.parametrize(("first", "second", "place", "gap", "distance", "count"), ALIGNED)
def test_aligned_solids_part_straight_up(first, second, place, gap, distance, count):
    cell = collidecli.collide(scene(first, second), resting(*place), gap=gap).cell(0)
    assert cell.distance.min() == pytest.approx(distance, abs=1e-7)
    np.testing.assert_allclose(cell.normal[np.argmin(cell.distance)], [0.0, 0.0, 1.0], atol=1e-6)
    # in any pose: the sign of the height of ridges that touch is rounding
    if distance == 0.0 and not count:
        body_q = np.repeat(resting(*place), 20, axis=0)
        body_q[..., 3:] = random_quaternions(np.random.default_rng(5), 20, 1, 1)
        body_q[:, 0, 1, :3] = rotation_of(body_q[:, 0, 0]) @ place
        contacts = collidecli.collide(scene(first, second), body_q, gap=gap)
        for frame in range(20):
            nearest = np.argmin(np.abs(contacts.cell(frame).distance - distance))
            assert contacts.cell(frame).distance[nearest] == pytest.approx(distance, abs=1e-7)
            assert (
                contacts.cell(frame).feature0[nearest] % 3
                == contacts.cell(frame).feature1[nearest] % 3
                == 1
            )
    if count:
        assert len(cell.distance) == count
        np.testing.assert_allclose(cell.distance, distance, atol=1e-9)


@pytest.mark.parametrize("two_sided", [False, True])
def test_edges_that_dip_under_a_crest_have_their_depth(two_sided):
    """A bar across the ridge of an open roof: its ends are far in front of the roof, its middle a
    little behind it."""
    builder = ModelBuilder()
    roof = np.array(
        [[-1, -1, -0.4], [0, -1, 0], [1, -1, -0.4], [-1, 1, -0.4], [0, 1, 0], [1, 1, -0.4]],
        np.float64,
    )
    faces = np.array([[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]])
    builder.add_shape_mesh(-1, roof, faces, two_sided=two_sided)
    builder.add_shape_mesh(builder.add_body(), *box(0.8, 0.3, 0.2))
    depth = 0.01
    contacts = collidecli.collide(
        builder.finalize(), resting(0.03, 0.02, 0.2 - depth, count=1), gap=0.02
    )
    np.testing.assert_allclose(contacts.distance.min(), -depth, atol=ROUNDING)
    assert np.all(contacts.normal[:, 2] > 0.9)


def test_cutting_faces_changes_no_distance():
    """Edges and vertices inside flat faces are no features of the surface; how deep it overlaps
    depends on them."""
    fine = cut(MESHES["box"], 5)
    body_q = poses_of_two(np.random.default_rng(11), FRAMES, 1.2)
    models = []
    for mesh in (MESHES["box"], fine):
        models.append(collidecli.collide(scene(MESHES["torus"], mesh), body_q, gap=0.05))
    coarse, fine = models
    for frame in range(FRAMES):
        first = coarse.cell(frame).distance
        second = fine.cell(frame).distance
        assert (len(first) > 0) == (len(second) > 0)
        if len(first) and first.min() > 0.0:
            assert second.min() == pytest.approx(first.min(), abs=1e-6)
        elif len(first):
            assert second.min() < 0.0


def degenerate(kind: str) -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = box(0.5, 0.4, 0.3)
    if kind == "slivers":  # a vertex of each face's diagonal, a hair's breadth from it
        points = list(vertices)
        extra = []
        for a, b, c in faces.tolist():
            points.append(0.5 * (vertices[a] + vertices[b]) + 1e-9 * (vertices[c] - vertices[a]))
            extra += [(a, len(points) - 1, c), (len(points) - 1, b, c), (a, b, len(points) - 1)]
        return np.array(points), np.array(extra)
    if kind == "soup":
        return vertices[faces].reshape(-1, 3), np.arange(36).reshape(12, 3)
    if kind == "fins":  # a third triangle along an edge, and one triangle twice
        return np.concatenate([vertices, [[0.9, 0.9, 0.0]]]), np.concatenate(
            [faces, [(6, 7, 8)], faces[:1]]
        )
    return vertices, faces[:-2]


@pytest.mark.share(9, 3)
@pytest.mark.filterwarnings("ignore:shape 0. 1 duplicate triangle is left out")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["slivers", "soup", "fins", "open"])
def test_what_is_not_clean_is_as_far_as_its_triangles_are(kind, size):
    vertices, faces = degenerate(kind)
    body_q = poses_of_two(np.random.default_rng(12), FRAMES, 2.2)
    moved = body_q.copy()
    moved[..., :3] *= size
    contacts = collidecli.collide(
        scene((size * vertices, faces), (size * MESHES["blob"][0], MESHES["blob"][1])),
        moved,
        gap=3.0 * size,
    )
    # What hangs on a closed mesh by an edge is left out.
    surface = box(0.5, 0.4, 0.3) if kind == "fins" else (vertices, faces)
    for frame in range(0, FRAMES, 2):
        corners = [
            placed(mesh, body_q[frame, 0, k]) for k, mesh in enumerate((surface, MESHES["blob"]))
        ]
        of_box = placed(box(0.5, 0.4, 0.3), body_q[frame, 0, 0])
        distance = mesh_distance(*corners)
        inside = deepest_vertex(of_box, corners[1])
        cell = contacts.cell(frame)
        check_contract(cell, size)
        assert np.all(np.isfinite(cell.normal))
        if distance > 0.0 and inside == 0.0:
            if cell.distance.min() > 0.0:  # else the blob's vertices are inside the box
                assert cell.distance.min() == pytest.approx(
                    distance * size, abs=2.0 * ROUNDING * size
                )
        else:
            assert cell.distance.min() <= -inside * size + ROUNDING * size


def test_coincident_solids_overlap():
    for name in SOLID:
        cell = collidecli.collide(pair_scene(name, name), resting(0.0, 0.0, 0.0), gap=0.0).cell(0)
        check_contract(cell, 1.0)
        assert cell.distance.min() < -0.1


def test_a_sheet_with_two_faces_is_as_far_as_it_is():
    """Its triangles lie back to back, so that the normals at its corners cancel: no side of it is
    back-facing."""
    vertices, faces = box(0.5, 0.4, 0.3)
    flap = np.array([vertices[6], vertices[7], [0.5, 0.9, 0.0]])
    both = np.array([[8, 9, 10], [10, 9, 8]])
    body_q = poses_of_two(np.random.default_rng(15), FRAMES, 2.2)
    body_q[:, 0, 1, :3] += 0.8
    contacts = collidecli.collide(
        scene((np.concatenate([vertices, flap]), np.concatenate([faces, both])), MESHES["blob"]),
        body_q,
        gap=4.0,
    )
    surface = (np.concatenate([vertices, flap]), np.concatenate([faces, both[:1]]))
    apart = 0
    for frame in range(FRAMES):
        corners = [
            placed(mesh, body_q[frame, 0, k]) for k, mesh in enumerate((surface, MESHES["blob"]))
        ]
        distance = mesh_distance(*corners)
        if distance > 0.0 and contacts.cell(frame).distance.min() > 0.0:
            apart += 1
            assert contacts.cell(frame).distance.min() == pytest.approx(distance, abs=ROUNDING)
    assert apart > 5


# The depth of two meshes that overlap: the least translation that separates them, against FCL over
# many directions.

CONVEX = ("box", "bar")
WITHIN = 1.05
"""How many times the best of all directions a depth may be, except for one in a hundred with a
narrow exit."""


def judged(
    first: str, second: str, body_q: np.ndarray, directions: np.ndarray
) -> tuple[list[float], list[bool]]:
    """Of poses that overlap: the depth over the best of the directions; whether depth times normal
    separates the pair.

    Where a pair has several regions, the depth of the deepest need not.
    """
    ratios = []
    separated = []
    contacts = collidecli.collide(scene(SHAPES[first], SHAPES[second]), body_q, gap=0.0)
    for frame in range(len(body_q)):
        cell = contacts.cell(frame)
        check_contract(cell, 1.0)
        pair = FclPair(SHAPES[first], SHAPES[second], body_q[frame, 0, 0], body_q[frame, 0, 1])
        distance = float(cell.distance.min(initial=1.0))
        assert pair.overlaps() == (distance < 0.0), (first, second, frame)
        if distance < 0.0:
            deepest = int(np.argmin(cell.distance))
            # Points and distances of a file are float32.
            moved = (-distance * (1.0 + 1e-6) + 2e-6) * cell.normal[deepest].astype(np.float64)
            ratios.append(-distance / pair.least_translation(-distance, directions, WITHIN))
            separated.append(not pair.overlaps(moved))
    return ratios, separated


def check_depths(seed: int, frames: int, directions: int) -> tuple[int, int]:
    """How many poses of all pairs overlap, and how many of those depth times normal separates."""
    rng = np.random.default_rng(seed)
    found = separated = too_deep = 0
    spread = directions_on_sphere(directions)
    for first, second in combinations_with_replacement(SHAPES, 2):
        ratios, free = judged(first, second, poses_of_two(rng, frames, 1.2), spread)
        found = found + len(ratios)
        separated = separated + sum(free)
        if first in CONVEX and second in CONVEX:
            assert all(free)
        too_deep += sum(ratio > WITHIN * 1.0001 for ratio in ratios)
    assert too_deep <= 0.01 * found
    return found, separated


@pytest.mark.parametrize(
    ("draws", "least"),
    [((5, 3, 200), 60), pytest.param((6, 32, 2000), 900, marks=pytest.mark.slow)],
)
def test_depths_are_the_least_translations(draws, least):
    found, separated = check_depths(*draws)
    assert found > least
    assert separated >= 0.9 * found


def test_a_depth_is_no_longer_than_that_of_the_hulls():
    """Two stars pass through each other's corners. What separates their hulls separates them; it
    follows from a direction that itself is longer than the first one that was found."""
    random = np.random.default_rng(2)
    model = random_scene(random, with_meshes=True)
    random_step(random)
    step = random_step(random)
    pair = [3, 4]
    stars = [model.meshes[row] for row in model.shapes.mesh[pair]]
    poses = sampled_poses(model, step, np.linspace(0.1340, 0.1368, 29))[:, pair]
    builder = ModelBuilder()
    for star in stars:
        builder.add_shape_mesh(builder.add_body(), star.vertex, star.face.reshape(-1, 3))
    contacts = collidecli.collide(builder.finalize(), poses[:, None], gap=0.0)
    for frame, (first, second) in enumerate(poses):
        one, other = (
            Rotation.from_quat(pose[3:]).apply(star.vertex) + pose[:3]
            for pose, star in zip((first, second), stars, strict=True)
        )
        hulls = ConvexHull((one[:, None] - other).reshape(-1, 3)).equations[:, 3].max()
        assert -0.026 < hulls < -0.020
        assert contacts.cell(frame).distance.min() >= hulls - 1e-6, frame


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_plate_over_the_crest_of_a_roof(size, swapped):
    """The crest is through the plate: it is lifted until the crest is below it."""
    first, second = (PLATE, ROOF) if swapped else (ROOF, PLATE)
    body_q = resting(0.02, 0.03, -0.1 if swapped else 0.1)
    body_q[..., :3] *= size
    cell = collidecli.collide(scene(first, second, size), body_q, gap=0.0).cell(0)
    check_contract(cell, size)
    deepest = int(np.argmin(cell.distance))
    assert -cell.distance[deepest] / size == pytest.approx(0.35, abs=1e-6)
    up = cell.normal[deepest] * (-1.0 if swapped else 1.0)
    np.testing.assert_allclose(up, [0.0, 0.0, 1.0], atol=1e-6)


def test_a_box_is_not_pushed_from_one_wall_into_the_other():
    """A slot of 0.4 between walls 2 m thick, and a box in one of them: moved by 0.9 it would be
    inside the other."""
    outline = [
        (-2.2, -0.5),
        (2.2, -0.5),
        (2.2, 1.5),
        (0.2, 1.5),
        (0.2, 0.05),
        (-0.2, 0.05),
        (-0.2, 1.5),
        (-2.2, 1.5),
    ]
    slot = prism(outline, 1.0)
    solid = box(0.3, 0.3, 0.3)
    body_q = resting(0.0, 0.0, 0.0)
    for place in ((0.4, 0.0, 0.75), (0.45, 0.1, 1.0), (-0.38, 0.15, 0.8)):
        body_q[0, 0, 1, :3] = place
        cell = collidecli.collide(scene(slot, solid), body_q, gap=0.0).cell(0)
        deepest = int(np.argmin(cell.distance))
        moved = (-float(cell.distance[deepest]) + 1e-5) * cell.normal[deepest].astype(np.float64)
        assert not FclPair(slot, solid, body_q[0, 0, 0], body_q[0, 0, 1]).overlaps(moved)
        assert -cell.distance[deepest] <= (1.5 - (place[2] - 0.3)) * WITHIN


def test_two_feet_of_one_body_are_two_regions():
    """A table stands 0.1 deep in one floor and 0.2 in another: each foot has its own depth."""
    table = prism(
        [(-1, 0), (-0.8, 0), (-0.8, 0.9), (0.8, 0.9), (0.8, 0), (1, 0), (1, 1), (-1, 1)], 0.3
    )
    floors = prism(
        [
            (-1.5, -1),
            (1.5, -1),
            (1.5, 0.2),
            (0.5, 0.2),
            (0.5, -0.5),
            (-0.5, -0.5),
            (-0.5, 0.1),
            (-1.5, 0.1),
        ],
        1,
    )
    cell = collidecli.collide(scene(floors, table), resting(0.02, 0.03, 0.0), gap=0.0).cell(0)
    left = cell.point1[:, 0] < 0.0
    right = cell.point1[:, 0] > 0.0
    assert cell.distance[left].min() == pytest.approx(-0.1, abs=1e-6)
    assert cell.distance[right].min() == pytest.approx(-0.2, abs=1e-6)


def test_a_plate_over_the_crest_of_a_terrain():
    """It is lifted, and then free: none of its points is in the ground."""
    heights = np.zeros((9, 9), np.float32)
    heights[:] = np.maximum(0.0, 0.8 - 0.2 * np.abs(np.arange(9) - 4))
    terrain = Terrain(heights, 1.0, 1.0, 3.0)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, 1.0, 1.0, 3.0)
    builder.add_shape_mesh(builder.add_body(), *PLATE)
    turn = np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    share = np.linspace(-1.2, 1.2, 49)
    face = np.stack(np.meshgrid(share, share, [-0.05]), axis=-1).reshape(-1, 3)
    for z in (0.6, 0.4):
        pose = np.array([[0.01, 0.02, z, *turn]])
        cell = collidecli.collide(builder.finalize(), pose[None, None], gap=0.0).cell(0)
        deepest = int(np.argmin(cell.distance))
        # Up by the crest's height over the lower face, or aside by less.
        assert 0.1 < -cell.distance[deepest] <= 0.8 - (z - 0.05) + 1e-6
        moved = (
            face @ rotation_of(pose)[0].T
            + pose[0, :3]
            - cell.distance[deepest] * cell.normal[deepest]
        )
        moved[:, 2] += 1e-5
        assert not any(terrain.is_inside(point) for point in moved)


# Pairs of real robots' meshes against FCL: which overlap, and how far apart the others are.

LARGEST = 2500
"""Triangles of a mesh: FCL and the tests' own winding number take their time."""
NEAR = 1e-6
"""Share of the size within which two meshes may cross or not: FCL's triangles, and a file's
float32."""


def sized_mesh(path, rng: np.random.Generator) -> TriangleMesh | None:
    """A file's mesh as it is used, its longest half extent between a half and 1; None for one that
    is too large."""
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


def check_pairs(seed: int, mesh_count: int, pairs: int, frames: int) -> tuple[int, int]:
    """How many pairs are apart, and how many overlap; none is missed, none too many."""
    rng = np.random.default_rng(seed)
    meshes = meshes_of(rng, mesh_count)
    if not meshes:
        pytest.skip("no robots are installed")
    apart = overlapping = 0
    for turn in range(pairs):
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2))
        size = float(first.half_extents.max() + second.half_extents.max())
        poses = poses_of_two(rng, frames, 1.4 * size, 0.2 * size)[:, 0]
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


@pytest.mark.parametrize(
    ("draws", "least"),
    [
        pytest.param((3, 8, 8, 6), 10, marks=pytest.mark.rest),
        pytest.param((4, 120, 250, 8), 500, marks=pytest.mark.slow),
    ],
)
def test_pairs_of_real_meshes(draws, least):
    assert min(check_pairs(*draws)) > least


FLAT = np.zeros((9, 9), np.float32)
PLATEAU = np.pad(np.full((3, 3), 0.25, np.float32), 3)
FIXED = {"sheet": grid(8, 2.0), "box": box(1.0, 1.0, 0.5), "heightfield": FLAT, "plateau": PLATEAU}
MOVED = {"cube": box(0.25, 0.25, 0.25), "bar": box(0.5, 0.25, 0.125), "sheet": grid(4, 1.0)}


def aligned_poses() -> np.ndarray:
    """float64[F, 7]: corners and sides over those of the fixed shape, turned by multiples of 45
    degrees."""
    turns = [("x", 0), ("x", 90), ("y", 90), ("z", 90), ("z", 45), ("x", 180)]
    places = product((0.0, 0.125, 0.25, 0.3), (0.0, 0.25, 0.0625), (0.0, 0.125, 0.2, 0.25))
    poses = product(places, turns)
    return np.array(
        [[*place, *Rotation.from_euler(*turn, degrees=True).as_quat()] for place, turn in poses]
    )


@pytest.mark.rest
@pytest.mark.share(3, 3)
@pytest.mark.parametrize(
    ("fixed", "moved"), [p for p in product(FIXED, MOVED) if p != ("plateau", "sheet")]
)
def test_aligned_surfaces_have_the_depths_of_those_beside_them(fixed, moved):
    """Surfaces may pass through each other along sides and vertices of triangles alone, of which
    none cross."""
    builder = ModelBuilder()
    poses = aligned_poses()
    if isinstance(FIXED[fixed], np.ndarray):
        builder.add_shape_heightfield(-1, FIXED[fixed], 1.0, 1.0, 0.5)
    else:
        builder.add_shape_mesh(-1, *FIXED[fixed])
    builder.add_shape_mesh(builder.add_body(), *MOVED[moved])
    model = builder.finalize()
    deepest = []
    for draw in range(4):
        body_q = poses[:, None, None].copy()
        if draw:
            body_q[..., :3] += 1e-7 * np.random.default_rng(draw).normal(size=body_q[..., :3].shape)
        contacts = collidecli.collide(model, body_q, gap=0.05)
        deepest.append(
            [contacts.cell(frame).distance.min(initial=0.05) for frame in range(len(poses))]
        )
    beside = np.array(deepest[1:])
    assert (beside.min(axis=0) < -0.1).sum() > 40
    assert np.all(deepest[0] < beside.max(axis=0) + 1e-6)
    # of several exits of almost one length the search may end at another than beside
    if fixed != "plateau":
        assert np.all(beside.min(axis=0) - 1e-6 < deepest[0])
