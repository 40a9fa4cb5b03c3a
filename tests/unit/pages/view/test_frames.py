"""What a view draws of a frame: shapes, surfaces, touches."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

from collidecli.analysis.touch_intervals import (
    Frames,
    Intervals,
    IntervalTracker,
    MergeGap,
    PairKeys,
    touches,
)
from collidecli.errors import InputError
from collidecli.pages.view import framing, meshes, page
from collidecli.pages.view import (
    surfaces as surfaces_module,
)
from collidecli.pages.view import touches as touches_module
from collidecli.pages.view.drawn_particles import drawn_particles
from collidecli.pages.view.frames import ViewFrames
from collidecli.scene.builder import ModelBuilder

CIRCLE = 0.5 * meshes.AROUND * np.sin(2 * np.pi / meshes.AROUND)
"""Area of the polygon that stands for a circle of radius 1."""


def drawn(builder: ModelBuilder) -> list[trimesh.Trimesh]:
    """A mesh a shape, by its row."""
    model = builder.finalize()
    found: dict[int, trimesh.Trimesh] = {}
    for group in meshes.shape_groups(model, len(model.shapes)):
        for row, scale in zip(group.rows.tolist(), group.scale, strict=True):
            # Rims have two rings of vertices, for the shading; merged, the surface must be closed.
            mesh = trimesh.Trimesh(
                group.mesh.vertex * scale, group.mesh.face.astype(np.int64), process=False
            )
            mesh.merge_vertices(digits_vertex=6)
            found[row] = mesh
    return [found[row] for row in range(len(model.shapes))]


POLES = 4 / 3 * np.pi
"""Volume of a ball of radius 1, of which polygons with 32 sides around and 8 to a pole lose 1.6 %
at most."""


@pytest.mark.parametrize(
    ("kind", "sizes", "volume", "half"),
    [
        ("box", {"hx": 0.1, "hy": 0.2, "hz": 0.3}, 8 * 0.1 * 0.2 * 0.3, (0.1, 0.2, 0.3)),
        ("sphere", {"radius": 0.5}, POLES * 0.5**3, (0.5, 0.5, 0.5)),
        (
            "capsule",
            {"radius": 0.2, "half_height": 0.5},
            POLES * 0.2**3 + np.pi * 0.2**2,
            (0.2, 0.2, 0.7),
        ),
        ("cylinder", {"radius": 0.2, "half_height": 0.5}, CIRCLE * 0.04, (0.2, 0.2, 0.5)),
        ("cone", {"radius": 0.3, "half_height": 0.6}, CIRCLE * 0.09 * 1.2 / 3, (0.3, 0.3, 0.6)),
        ("ellipsoid", {"rx": 0.1, "ry": 0.2, "rz": 0.4}, POLES * 0.1 * 0.2 * 0.4, (0.1, 0.2, 0.4)),
    ],
)
def test_primitives(kind, sizes, volume, half):
    builder = ModelBuilder()
    getattr(builder, f"add_shape_{kind}")(-1, **sizes)
    (mesh,) = drawn(builder)
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    np.testing.assert_allclose(np.abs(mesh.bounds), [half, half], rtol=1e-6)
    if kind in ("sphere", "capsule", "ellipsoid"):
        assert 0.983 * volume < mesh.volume < volume
    else:
        assert mesh.volume == pytest.approx(volume, rel=1e-5)


def test_equal_ones_are_one_mesh():
    builder = ModelBuilder()
    for radius in (0.1, 0.2):
        builder.add_shape_sphere(-1, radius=radius)
        builder.add_shape_capsule(-1, radius=radius, half_height=2 * radius)
    builder.add_shape_capsule(-1, radius=0.1, half_height=0.5)
    builder.add_ground_plane()
    model = builder.finalize()
    groups = meshes.shape_groups(model, 6)
    assert sorted(group.rows.tolist() for group in groups) == [[0, 2], [1, 3], [4], [5]]
    assert [group.planes for group in groups if group.rows[0] == 5] == [True]


def test_shapes_of_faces_are_drawn_whole():
    builder = ModelBuilder()
    rng = np.random.default_rng(3)
    points = rng.normal(size=(40, 3))
    cube = trimesh.creation.box((1, 2, 3))
    heights = rng.uniform(0.1, 0.4, (5, 7))
    builder.add_shape_convex_hull(-1, vertices=points)
    builder.add_shape_mesh(-1, vertices=cube.vertices, faces=cube.faces)
    builder.add_shape_heightfield(-1, heights=heights, hx=1.5, hy=1.0, base=0.2)
    hull, mesh, field = drawn(builder)
    assert hull.is_watertight
    assert hull.volume == pytest.approx(trimesh.convex.convex_hull(points).volume, rel=1e-5)
    assert mesh.volume == pytest.approx(6.0, rel=1e-6)
    assert field.is_watertight
    # Two triangles a cell, cut from its low corner to its far one: the heights' mean over each.
    low = heights[:-1, :-1]
    far = heights[1:, 1:]
    cells = (2 * low + 2 * far + heights[:-1, 1:] + heights[1:, :-1]) / 6.0 - heights.min() + 0.2
    assert field.volume == pytest.approx(cells.sum() * 0.5 * 0.5, rel=1e-5)


def test_large_heightfields_are_thinned():
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights=np.zeros((3, 1000)), hx=1.0, hy=1.0, base=0.1)
    (mesh,) = drawn(builder)
    assert mesh.is_watertight
    assert len(mesh.vertices) < 4 * 3 * meshes.MAX_GRID
    np.testing.assert_allclose(mesh.bounds[:, 0], [-1.0, 1.0])
    assert meshes.coarse_heightfields(builder.finalize()) == 1


SQUARE = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])


def test_fans_of_polygons():
    expected = [[0, 1, 2], [3, 4, 5], [3, 5, 6], [7, 8, 9], [7, 9, 10], [7, 10, 11]]
    assert surfaces_module.triangle_fans(np.array([3, 4, 5])).tolist() == expected
    assert surfaces_module.triangle_fans(np.zeros(0, np.int64)).shape == (0, 3)


def test_levels_of_surfaces():
    scale = surfaces_module.SurfaceScale(100.0, True)
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    assert surfaces_module.SurfaceScale(0.0, True).level(np.array([0.0])).tolist() == [0]
    levels = scale.level(np.array([0.0, 50.0, 100.0, 1e9])).tolist()
    most = surfaces_module.LEVELS
    assert levels == [0, most // 2, most - 1, most - 1]
    assert surfaces_module.Surfaces(pairs, np.zeros((3, 3)), np.zeros((3, 3))).of_pair(
        (0, 2)
    ).tolist() == [
        False,
        True,
        False,
    ]


def test_particles_of_a_world():
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=SQUARE, indices=[0, 1, 2, 0, 2, 3], particle_radius=0.5)
    builder.add_particles([(0, 0, 2.0), (0, 0, 3.0)], radius=[0.1, 0.3])
    drawn = drawn_particles(builder.finalize().particles, 0, 1.0)
    assert (drawn.points.tolist(), drawn.corners.tolist()) == ([4, 5], [0, 1, 2, 3])
    assert drawn.triangle.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert drawn.diameter == pytest.approx(0.4), "of the loose particles alone"


def test_limits_of_a_page(monkeypatch):
    class Held(SimpleNamespace):
        world_count = 2

        def __len__(self):
            return 6

    frames = Held(
        counts=lambda worlds: {"pose": 6 * len(worlds), "contact": 10 * len(worlds), "face": 0}
    )
    page.check_size(frames, (0, 1))
    monkeypatch.setattr(page, "MAX_BYTES", 320)
    assert page.first_worlds(frames) == range(1), "6 poses and 10 contacts of 20 bytes"
    told = r"(?s)6 frames is too large for a browser: it has 20 contacts.*--frames ::2,.*--to rerun"
    with pytest.raises(InputError, match=told):
        page.check_size(frames, (0, 1))


PATHS = ("/w/a/hand", "/w/b/hand", "/w/cup", "floor")


def test_the_list():
    frames = Frames(np.array([4, 5, 6]), np.arange(3.0))
    keys = PairKeys.of_shapes(PATHS, 2)
    world = np.array([0, 0, 1, 0])
    one = np.array([0, 2, 0, 0])
    other = np.array([3, 3, 3, 3])
    place = np.array([0, 0, 0, 2])
    distance = np.array([-0.001, -0.25, -0.5, -0.002], np.float32)
    tracker = IntervalTracker(frames, MergeGap())
    parts = []
    for n in range(3):
        rows = place == n
        found = touches(keys.key(world[rows], one[rows], other[rows]), place[rows], distance[rows])
        parts.append(tracker.add(found, n + 1))
    found = touches_module.TouchList(Intervals.chained(*parts, tracker.finish()), keys)
    labels = [[pair.label for pair in found.of(world)] for world in (0, 1)]
    assert labels == [
        ["cup × floor · 250 mm", "a/hand × floor · 2 mm"],
        ["a/hand × floor · 500 mm"],
    ]
    hand = found.of(0)[1]
    labels = [
        touches_module.touch_label(n, touch, frames.number) for n, touch in enumerate(hand.touches)
    ]
    assert labels == ["0: frame 4", "1: frame 6"]
    assert (found.deepest, hand.deepest.deepest, len(list(found))) == (0.5, 2, 3)


SPEED = 2.0


class Walk(ViewFrames):
    """Two balls, 1 m apart, over a floor at height 0.5, that move along x by SPEED a frame."""

    def __init__(self, speed: float = SPEED, radius: float = 0.1) -> None:
        builder = ModelBuilder()
        builder.add_ground_plane(0.5)
        builder.add_shape_box(-1, hx=50.0, hy=50.0, hz=0.1)
        for _ in range(2):
            builder.add_shape_sphere(builder.add_body(), radius=radius)
        self.model = builder.finalize()
        self.world_count = 1
        self.speed = speed
        self.surface_scale = None
        self.has_particles = False
        self.has_self_contacts = False
        self.shape_count = 4
        self.number, self.time = np.arange(11), np.arange(11) / 10.0

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        poses = self.model.shapes.pose.copy()
        poses[-2:, :3] = [(self.speed * index, side, 0.6) for side in (-0.5, 0.5)]
        return poses

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        at = np.array([[self.speed * index, -0.5, 0.5]])
        return {
            "shape0": np.array([0]), "shape1": np.array([2]), "distance": np.array([-0.01]),
            "normal": np.array([[0.0, 0.0, 1.0]]), "point0": at, "point1": at,
        }  # fmt: skip


@pytest.mark.parametrize("speed", [0.0, SPEED])
def test_only_the_moving_bodies_fill_the_window(speed):
    extent = framing.extent_of(Walk(speed), 0, 2)
    np.testing.assert_allclose(extent.center, (0.0, 0.0, 0.6), atol=1e-9)
    assert 0.5 <= extent.radius <= 0.8, "the floor of 100 m and the walk of 20 m are no part of it"
    assert (extent.floor, extent.plane, extent.travels) == (0.5, True, speed > 0.0)


def test_the_view_follows_the_moving_shapes():
    frames = Walk()
    view = framing.Stage(frames, "Z", 0)
    moved = [view.travel(frames.shape_poses(index, 0), 0)[0] for index in (0, 7)]
    np.testing.assert_allclose(moved, (0.0, 7 * SPEED), atol=1e-9)


def test_frames_of_one_time_follow_each_other():
    frames = Walk()
    assert framing.seconds_between(frames, 1, 3) == pytest.approx(0.2)
    frames.time = np.zeros(11)
    assert framing.seconds_between(frames, 1, 3) == 2 / 30, "frames of one time follow each other"


def test_contacts_are_small_among_small_shapes():
    view = framing.Stage(Walk(), "Z")
    assert view.unit == pytest.approx(framing.CONTACT_SIZE * view.extent.radius)
    assert framing.Stage(Walk(radius=0.01), "Z").unit == pytest.approx(framing.SHAPE_SIZES * 0.01)


def test_the_camera_of_a_pair_is_near_it():
    view = framing.Stage(Walk(), "Z")
    center, distance = view.focus((0, 2), 7, 0)
    np.testing.assert_allclose(center, (7 * SPEED, -0.5, 0.5), atol=1e-9)
    assert 0.1 < distance < view.distance
    assert view.focus((0, 3), 7, 0) is None
