"""Depths of pairs with meshes and of their copies with noise of 1e-12: equal, and they separate the
pair."""

import manifold3d
import numpy as np
import pytest

from tests.support.mesh_pairs import posed
from tests.support.meshes import Mesh, bumpy, grid, prism, torus
from tests.support.noisy_pairs import (
    NoisyPair,
    NoisyShape,
    contacts_of_copies,
    deepest,
    random_pose_pair,
)
from tests.support.oracle import directions_on_sphere
from tests.support.translation_scan import first_free

NOISE = 1e-12
COPIES = 4
SAME_DEPTH = 1e-6
"""Distances are float32, and a search takes translations within 1e-6 of each other for equal
[m]."""
SAME_NORMAL = 1e-4
WITHIN = 1.05
DENT = 0.6 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]], np.float64)
DENTED = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 4), (2, 3, 4), (3, 1, 4)])


def dented_tetrahedron(rng: np.random.Generator) -> Mesh:
    """A tetrahedron, 0.6 m long, with right angles at a corner; one of its faces is dented inwards
    by a vertex."""
    depth = rng.uniform(0.2, 0.8)
    inner = (1.0 - depth) * DENT[1:].mean(0) + depth * DENT[0]
    return np.vstack([DENT, inner]), DENTED


def scaled(mesh: Mesh, size: float) -> Mesh:
    return mesh[0] * size, mesh[1]


def wavy() -> Mesh:
    return grid(5, 0.6, lambda x, y: 0.08 * np.sin(7.0 * x) * np.cos(6.0 * y))


ELL = prism([(-0.3, -0.3), (0.3, -0.3), (0.3, -0.1), (-0.1, -0.1), (-0.1, 0.3), (-0.3, 0.3)], 0.15)
TEE = prism(
    [
        (-0.3, 0.1),
        (-0.1, 0.1),
        (-0.1, -0.3),
        (0.1, -0.3),
        (0.1, 0.1),
        (0.3, 0.1),
        (0.3, 0.3),
        (-0.3, 0.3),
    ],
    0.12,
)
HALVES = (0.22, 0.16, 0.12)
KINDS = {
    "L": lambda rng: NoisyShape(ELL),
    "T": lambda rng: NoisyShape(TEE),
    "torus": lambda rng: NoisyShape(scaled(torus(8, 6), 0.25)),
    "bumpy": lambda rng: NoisyShape(bumpy(rng, 5, 7, 0.3)),
    "sheet": lambda rng: NoisyShape(wavy()),
    "one_sided": lambda rng: NoisyShape(wavy(), two_sided=False),
    "dented": lambda rng: NoisyShape(dented_tetrahedron(rng)),
    "box": lambda rng: NoisyShape(
        add=lambda builder, body: builder.add_shape_box(
            body, hx=HALVES[0], hy=HALVES[1], hz=HALVES[2]
        )
    ),
}


def drawn(first: str, second: str, seed: int, count: int) -> list[NoisyPair]:
    rng = np.random.default_rng(seed)
    pairs = []
    for k in range(count):
        shapes = KINDS[first](rng), KINDS[second](rng)
        pairs.append(NoisyPair(*shapes, random_pose_pair(rng, 0.45), (seed, k, 7)))
    return pairs


def check_copies(cells: list, has_rows: bool, where: tuple) -> None:
    """Presence, depth and normal of the deepest contact, and the number of rows, are equal in all
    copies."""
    found = [deepest(cell) for cell in cells]
    if not np.isfinite(found[0][0]):
        assert all(not np.isfinite(distance) for distance, _ in found), where
        return
    distances = np.array([distance for distance, _ in found])
    normals = np.array([normal for _, normal in found])
    assert np.ptp(distances) < SAME_DEPTH, (where, distances)
    assert np.abs(normals - normals[0]).max() < SAME_NORMAL, (where, normals)
    if has_rows:
        assert len({len(cell.distance) for cell in cells}) == 1, where


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("first", "second", "seed", "poses"),
    [
        ("L", "L", 1, 24),
        ("T", "L", 1, 16),
        ("torus", "L", 1, 16),
        ("bumpy", "bumpy", 1, 8),
        ("sheet", "L", 2, 10),
        ("one_sided", "bumpy", 2, 40),
        pytest.param("L", "L", 2, 300, marks=pytest.mark.slow),
        pytest.param("torus", "L", 2, 300, marks=pytest.mark.slow),
        pytest.param("one_sided", "bumpy", 1, 300, marks=pytest.mark.slow),
    ],
)
def test_copies_with_noise_have_equal_contacts(first, second, seed, poses):
    """Exits that are equal by symmetry, and contacts at right angles, are not told apart by
    rounding."""
    pairs = drawn(first, second, seed, poses)
    for k, cells in enumerate(contacts_of_copies(pairs, COPIES, NOISE)):
        check_copies(cells, True, (first, second, seed, k))


def test_a_box_in_two_arms_has_the_depth_of_its_deeper_region():
    """The second region must not replace the first one's contact, in whatever order a tree gives
    them."""
    pairs = drawn("box", "L", 1, 49)[44:]
    for k, cells in enumerate(contacts_of_copies(pairs, COPIES, NOISE)):
        check_copies(cells, False, ("box", "L", k))


@pytest.mark.parametrize(
    ("second", "seed", "cases"),
    [
        ("L", 3, [70]),
        ("torus", 3, [33, 75]),
        ("sheet", 3, [84]),
        ("torus", 4, [95]),
        ("sheet", 4, [82]),
        ("one_sided", 4, [20]),
    ],
)
def test_a_box_in_a_mesh_has_one_depth(second, seed, cases):
    """The order in which a tree gives triangles must choose neither the first triangle beyond a
    limit, nor those of a region, nor the normals that are tried."""
    pairs = [drawn("box", second, seed, 120)[k] for k in cases]
    for k, cells in zip(cases, contacts_of_copies(pairs, COPIES, NOISE), strict=True):
        check_copies(cells, False, ("box", second, k))


@pytest.mark.slow
@pytest.mark.parametrize("second", ["L", "T", "torus", "bumpy", "sheet", "one_sided", "dented"])
def test_boxes_in_meshes_have_one_depth(second):
    pairs = drawn("box", second, 4, 120)
    for k, cells in enumerate(contacts_of_copies(pairs, COPIES, NOISE)):
        distances = [deepest(cell)[0] for cell in cells]
        assert np.isfinite(distances).all() == np.isfinite(distances).any(), k
        if np.isfinite(distances).all():
            assert np.ptp(distances) < SAME_DEPTH, (k, distances)


def test_a_point_that_leaves_last_is_outside():
    """A region's inner point is on the surface where the last triangles are left; whether it is
    inside there must not be rounding."""
    pairs = drawn("dented", "dented", 2, 236)[235:]
    for cells in contacts_of_copies(pairs, COPIES, NOISE):
        check_copies(cells, True, (2, 235))


def part_count(pair: NoisyPair) -> int:
    """Number of connected parts of the intersection of two closed meshes."""
    solids = []
    for shape, pose in zip((pair.first, pair.second), pair.poses, strict=True):
        vertices, faces = shape.mesh
        mesh = manifold3d.Mesh64(posed(vertices, pose), np.asarray(faces, np.uint64))
        solids.append(manifold3d.Manifold(mesh))
    return len((solids[0] ^ solids[1]).decompose())


@pytest.mark.rest
@pytest.mark.parametrize(
    ("seed", "poses", "least"), [(1, 45, 12), pytest.param(2, 600, 200, marks=pytest.mark.slow)]
)
def test_dented_tetrahedra_are_separated_by_their_depth(seed, poses, least):
    """A spike through two walls: triangles of the region that is separated do not become those of
    another.

    The depth of copies with noise is equal. Where the intersection is connected, depth times normal
    separates the pair and no move before it does, and few directions of a sphere have a shorter
    one.
    """
    pairs = drawn("dented", "dented", seed, poses)
    spread = directions_on_sphere(200)
    ratios = []
    for k, (pair, cells) in enumerate(
        zip(pairs, contacts_of_copies(pairs, COPIES, NOISE), strict=True)
    ):
        check_copies(cells, True, (seed, k))
        distance, normal = deepest(cells[0])
        if distance >= 0.0 or part_count(pair) != 1:
            continue
        corners = [
            posed(shape.mesh[0], pose)[shape.mesh[1]]
            for shape, pose in zip((pair.first, pair.second), pair.poses, strict=True)
        ]
        assert first_free(*corners, normal) == pytest.approx(-distance, abs=1e-6, rel=1e-5), k
        ratios.append(-distance / min(first_free(*corners, direction) for direction in spread))
    assert len(ratios) > least
    assert sum(ratio > WITHIN for ratio in ratios) <= 0.02 * len(ratios), sorted(ratios)[-5:]
