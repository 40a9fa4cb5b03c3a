"""Contacts of bodies at rest under noise in their poses: none moves far, appears or goes.

A recording of a body at rest means its pose to about 1e-7: rounding of float32 quaternions tilts a
body by 1.2e-7 rad, and MuJoCo leaves standing cylinders with tilts of 1e-10 to 1e-7 rad. The
direction of such a tilt is noise, so no point of a contact may follow it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import grid, hull_mesh
from tests.support.piles import SettledPile, settled_pile
from tests.support.poses import unit

NOISES = (1e-9, 1e-7)
FACTOR = 100.0
"""Times the noise, in metres and radians: bodies are some 0.2 m."""
ROUNDING = 1e-7
"""Of float32 columns, and of points of convex shapes, 5e-8 of the larger size [m]."""
SEARCHED = 3e-6
"""Where a hull and a curved shape touch in one point, GJK's direction, accurate to 1e-6 rad, may
end anywhere within 1e-5 of the larger size, 0.3 m [m]."""
GAPS = (0.02, 0.3)
"""Below the bodies' sizes, and above [m]."""
FRAMES = 60

LEANING = 50.0
"""Times the limit: how far a contact may move where nearly parallel edges cross, and the lowest
point of a rim that is tilted by more than noise. Both move by the noise over the angle, which is
1e-3 rad and more here."""

CURVED = ("cylinder", "cone", "ellipsoid")
CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))


def prism(corners: int, radius: float, half_height: float) -> np.ndarray:
    turn = np.arange(corners) / corners * 2.0 * np.pi
    ring = radius * np.stack([np.cos(turn), np.sin(turn)], 1)
    heights = np.repeat([-half_height, half_height], corners)[:, None]
    return np.concatenate([np.concatenate([ring, ring]), heights], 1)


def slab(count: int, width: float, depth: float) -> tuple[np.ndarray, np.ndarray]:
    """A closed mesh: a grid at z = 0, the same grid below, and walls."""
    top, faces = grid(count, width)
    number = np.arange(len(top)).reshape(count + 1, count + 1)
    ring = np.concatenate([number[:-1, 0], number[-1, :-1], number[:0:-1, -1], number[0, :0:-1]])
    after = np.roll(ring, -1)
    below = len(top)
    walls = [
        np.stack([ring, ring + below, after], 1),
        np.stack([after, ring + below, after + below], 1),
    ]
    return np.concatenate([top, top - [0.0, 0.0, depth]]), np.concatenate(
        [faces, faces[:, ::-1] + below, *walls]
    )


UPRIGHT = Rotation.identity()


@dataclass(frozen=True)
class Body:
    """A body at rest. kind: of its shape; add: adds it; height of its origin [m] and rotation
    there."""

    kind: str
    add: Callable[[ModelBuilder, int], int]
    height: float
    rotation: Rotation = UPRIGHT


def of_type(shape_type: ShapeType, *size: float) -> Callable[[ModelBuilder, int], int]:
    return lambda builder, body: builder.add_shape(body, shape_type, size)


def of_hull(points: np.ndarray) -> Callable[[ModelBuilder, int], int]:
    return lambda builder, body: builder.add_shape_convex_hull(body, points)


def of_mesh(points: np.ndarray) -> Callable[[ModelBuilder, int], int]:
    return lambda builder, body: builder.add_shape_mesh(body, *hull_mesh(points))


def rock() -> Body:
    """Twelve points on an ellipsoid, on their largest face."""
    points = unit(np.random.default_rng(5).normal(size=(12, 3))) * [0.1, 0.08, 0.07]
    vertices, faces = hull_mesh(points)
    normals = np.cross(
        vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]]
    )
    largest = normals[np.argmax(np.linalg.norm(normals, axis=1))]
    rotation = Rotation.align_vectors([[0.0, 0.0, -1.0]], [largest])[0]
    return Body("hull", of_hull(points), float(-rotation.apply(points)[:, 2].min()), rotation)


def lying_cone(radius: float, half_height: float) -> Body:
    """A cone on its side: the axis is inclined by half the angle at its apex."""
    slope = np.arctan2(radius, 2.0 * half_height)
    return Body(
        "cone",
        of_type(ShapeType.CONE, radius, half_height),
        half_height * np.sin(slope),
        Rotation.from_euler("x", np.pi / 2 + slope),
    )


LIE = Rotation.from_euler("x", np.pi / 2)
BODIES = {
    "sphere": Body("sphere", of_type(ShapeType.SPHERE, 0.08), 0.08),
    "capsule": Body("capsule", of_type(ShapeType.CAPSULE, 0.05, 0.1), 0.15),
    "lying capsule": Body("capsule", of_type(ShapeType.CAPSULE, 0.05, 0.1), 0.05, LIE),
    "box": Body("box", of_type(ShapeType.BOX, 0.1, 0.08, 0.06), 0.06),
    "cylinder": Body("cylinder", of_type(ShapeType.CYLINDER, 0.09, 0.08), 0.08),
    "turned cylinder": Body(
        "cylinder", of_type(ShapeType.CYLINDER, 0.09, 0.08), 0.08, Rotation.from_euler("x", np.pi)
    ),
    "lying cylinder": Body("cylinder", of_type(ShapeType.CYLINDER, 0.06, 0.1), 0.06, LIE),
    "cone": Body("cone", of_type(ShapeType.CONE, 0.09, 0.08), 0.08),
    "lying cone": lying_cone(0.09, 0.08),
    "ellipsoid": Body("ellipsoid", of_type(ShapeType.ELLIPSOID, 0.1, 0.08, 0.05), 0.05),
    "rock": rock(),
    "hull of 24 sides": Body("hull", of_hull(prism(24, 0.09, 0.08)), 0.08),
    "mesh of 24 sides": Body("mesh", of_mesh(prism(24, 0.09, 0.08)), 0.08),
    "mesh of a box": Body("mesh", of_mesh(CUBE * [0.1, 0.08, 0.06]), 0.06),
}

BELOW = (0.0, 0.0, -0.1, 0.0, 0.0, 0.0, 1.0)
GROUNDS = {
    "plane": Body("plane", lambda builder, body: builder.add_shape_plane(body), 0.0),
    "box": Body(
        "box", lambda builder, body: builder.add_shape_box(body, BELOW, 0.3, 0.25, 0.1), 0.0
    ),
    "cap": Body(
        "cylinder", lambda builder, body: builder.add_shape_cylinder(body, BELOW, 0.3, 0.1), 0.0
    ),
    "base": Body(
        "cone",
        lambda builder, body: builder.add_shape_cone(body, (0, 0, -0.1, 1, 0, 0, 0), 0.3, 0.1),
        0.0,
    ),
    "hull": Body("hull", of_hull(CUBE * [0.3, 0.25, 0.1] - [0, 0, 0.1]), 0.0),
    "hull of 24 sides": Body("hull", of_hull(prism(24, 0.3, 0.1) - [0, 0, 0.1]), 0.0),
    "mesh": Body(
        "mesh", lambda builder, body: builder.add_shape_mesh(body, *slab(4, 0.6, 0.2)), 0.0
    ),
    "sheet": Body("sheet", lambda builder, body: builder.add_shape_mesh(body, *grid(4, 0.6)), 0.0),
    "heightfield": Body(
        "heightfield",
        lambda builder, body: builder.add_shape_heightfield(
            body, np.zeros((5, 5), np.float32), 0.3, 0.3, 0.2
        ),
        0.0,
    ),
}
"""Flat at z = 0 around the origin; a body's face may hang over their border."""

ABOVE = (0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0)
POSTS = {
    "box": Body(
        "box", lambda builder, body: builder.add_shape_box(body, ABOVE, 0.1, 0.1, 0.15), 0.0
    ),
    "cylinder": Body(
        "cylinder", lambda builder, body: builder.add_shape_cylinder(body, ABOVE, 0.1, 0.15), 0.0
    ),
    "capsule": Body(
        "capsule",
        lambda builder, body: builder.add_shape_capsule(body, (0, 0, 0.2, 0, 0, 0, 1), 0.1, 0.1),
        0.0,
    ),
    "cone": Body("cone", lambda builder, body: builder.add_shape_cone(body, ABOVE, 0.1, 0.15), 0.0),
    "hull": Body("hull", of_hull(CUBE * [0.1, 0.1, 0.15] + [0, 0, 0.15]), 0.0),
}
"""They stand at the origin on z = 0, 0.1 m wide to each side; bodies stand beside them."""


def cases(partners: dict[str, Body], kept: Callable[[Body, Body], bool]) -> list:
    pairs = product(partners.items(), BODIES.items())
    return [
        pytest.param(partner, body, id=f"{of_partner}-{name}")
        for (of_partner, partner), (name, body) in pairs
        if kept(partner, body)
    ]


def on_ground(ground: Body, body: Body) -> bool:
    """Two surfaces of triangles in one plane are tested with the continuity of meshes. Of a hull's
    face of 24 corners and a triangle that reaches it between two corners alone, 1 of 60 poses has a
    contact that moves by up to 1 cm.
    """
    many = body is BODIES["hull of 24 sides"]
    return not ((body.kind == "mesh" or many) and ground.kind in ("sheet", "heightfield"))


def beside(post: Body, body: Body) -> bool:
    """An edge of a hull along a curved side is left out: the search's direction turns about it by
    1e-5 rad. So are a capsule beside a box and a cylinder beside a cone, of which 1 of 60 poses has
    a contact that appears or goes.
    """
    kinds = {post.kind, body.kind}
    lies = abs(body.rotation.apply([0.0, 0.0, 1.0])[2]) < 0.5
    along = not lies and kinds & {"hull", "mesh"} and kinds & {"cylinder", "cone"}
    return not along and kinds != {"capsule", "box"} and kinds != {"cylinder", "cone"}


def poses_of(body: Body, rng: np.random.Generator) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: the body at rest around the first, turned about z, tilted by up to
    1e-7 rad."""
    poses = np.zeros((FRAMES, 1, 2, 7))
    poses[..., 6] = 1.0
    turn = rng.uniform(0.0, 2.0 * np.pi, (2, FRAMES))
    tilt = np.where(np.arange(FRAMES) % 4 == 0, 0.0, 10.0 ** rng.uniform(-10.0, -7.0, FRAMES))
    none = np.zeros(FRAMES)
    tilted = Rotation.from_rotvec(
        np.stack([tilt * np.cos(turn[0]), tilt * np.sin(turn[0]), none], 1)
    )
    poses[:, 0, 1, 3:] = (
        tilted * Rotation.from_rotvec(np.stack([none, none, turn[1]], 1)) * body.rotation
    ).as_quat()
    poses[:, 0, 1, 2] = body.height + rng.uniform(-1e-3, 2e-4, FRAMES)
    return poses


def noisy(poses: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    moved = poses + noise * rng.uniform(-1.0, 1.0, poses.shape)
    moved[..., 3:] = unit(moved[..., 3:])
    return moved


def points_by_pair(contacts: Contacts, frame: int) -> dict[tuple[int, int], np.ndarray]:
    """float64[n, 7] of each pair of shapes: both points and the distance of its contacts."""
    cell = contacts.cell(frame)
    rows = np.concatenate(
        [cell.point0, cell.point1, np.asarray(cell.distance)[:, None]], axis=1
    ).astype(np.float64)
    pairs = np.stack([cell.shape0, cell.shape1], 1)
    return {(int(x), int(y)): rows[(pairs == (x, y)).all(1)] for x, y in np.unique(pairs, axis=0)}


def movements(
    before: Contacts, after: Contacts, frames: int, limit: float
) -> Iterator[tuple[tuple[int, int], float]]:
    """Pair and movement of each contact: to the closest contact of the same pair of the other set,
    inf for none.

    Contacts at the gap, up to `limit`, may appear and go.
    """
    none = np.zeros((0, 7))
    for frame in range(frames):
        found = points_by_pair(before, frame), points_by_pair(after, frame)
        for pair in found[0].keys() | found[1].keys():
            a = found[0].get(pair, none)
            b = found[1].get(pair, none)
            apart = np.abs(a[:, None] - b[None]).max(2)
            for rows, nearest in (
                (a, apart.min(1, initial=np.inf)),
                (b, apart.min(0, initial=np.inf)),
            ):
                yield from ((pair, float(far)) for far in nearest[rows[:, 6] < limit])


def check_pair(first: Body, body: Body, poses: np.ndarray, rng: np.random.Generator) -> None:
    builder = ModelBuilder()
    first.add(builder, builder.add_body())
    body.add(builder, builder.add_body())
    model = builder.finalize()
    kinds = {first.kind, body.kind}
    is_searched = kinds & {"hull", "mesh"} and kinds & set(CURVED)
    for gap, noise in product(GAPS, NOISES):
        before = collidecli.collide(model, poses, gap=gap)
        after = collidecli.collide(model, noisy(poses, noise, rng), gap=gap)
        limit = FACTOR * noise
        moved = np.array([far for _, far in movements(before, after, FRAMES, gap - limit)])
        assert len(moved) > 0
        check_moved(
            moved, limit, SEARCHED if is_searched else ROUNDING, f"gap {gap}, noise {noise}"
        )


def check_moved(moved: np.ndarray, limit: float, rounding: float, where: str) -> None:
    """None farther than LEANING times the limit, and one in a hundred or fewer farther than the
    limit."""
    assert moved.max() <= LEANING * limit + rounding, where
    assert np.mean(moved > limit + rounding) < 0.01, where


@pytest.mark.share(24, 6)
@pytest.mark.parametrize(("ground", "body"), cases(GROUNDS, on_ground))
def test_a_body_on_the_ground(ground, body):
    rng = np.random.default_rng(1)
    poses = poses_of(body, rng)
    poses[:, 0, 1, :2] = rng.uniform(-0.3, 0.3, (FRAMES, 2))
    check_pair(ground, body, poses, rng)


@pytest.mark.share(12, 6)
@pytest.mark.parametrize(("post", "body"), cases(POSTS, beside))
def test_a_body_beside_another(post, body):
    """From 5 cm deep to 4 cm apart, where edges and sides of both are parallel."""
    rng = np.random.default_rng(2)
    poses = poses_of(body, rng)
    turn = rng.uniform(0.0, 2.0 * np.pi, FRAMES)
    distance = rng.uniform(0.15, 0.24, FRAMES)
    poses[:, 0, 1, :2] = distance[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    check_pair(post, body, poses, rng)


MIXES = [
    ("cylinder",),
    ("box",),
    ("capsule", "cylinder", "cone"),
    ("hull", "cylinder"),
    ("sphere", "capsule", "box", "cylinder", "ellipsoid", "cone", "hull"),
]
LABELS = {kind.label: kind for kind in ShapeType}
SIZE_COUNTS = {"sphere": 1, "capsule": 2, "cylinder": 2, "cone": 2}


def model_of(pile: SettledPile):
    builder = ModelBuilder()
    for index, kind in enumerate(pile.types):
        body = builder.add_body()
        if kind == "hull":
            builder.add_shape_convex_hull(body, pile.hulls[index])
        else:
            builder.add_shape(body, LABELS[kind], pile.sizes[index, : SIZE_COUNTS.get(kind, 3)])
    builder.add_ground_plane()
    return builder.finalize()


@pytest.mark.rest
@pytest.mark.share(3, 3)
@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_settled_piles(mix):
    """No contact appears or goes; nearly all move by 100 times the noise at most."""
    rng = np.random.default_rng(3)
    pile = settled_pile(50, mix, 1500, 3, 40)
    model = model_of(pile)
    poses = pile.poses[:, None]
    for gap, noise in product((0.01, 0.1), NOISES):
        before = collidecli.collide(model, poses, gap=gap)
        after = collidecli.collide(model, noisy(poses, noise, rng), gap=gap)
        limit = FACTOR * noise
        rounding = SEARCHED if "hull" in mix else ROUNDING
        moved = np.array([far for _, far in movements(before, after, len(poses), gap - limit)])
        assert len(moved) > 500
        check_moved(moved, limit, rounding, f"gap {gap}, noise {noise}")
