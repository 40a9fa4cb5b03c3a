"""The framing of a view: its camera, sizes and floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.numerics.poses import moved_points
from collidecli.pages.view.drawn_particles import DrawnParticles, drawn_particles
from collidecli.pages.view.frames import ViewFrames
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

SAMPLED_FRAMES = 9
SAMPLED_PARTICLES = 10_000
NEAR_UP = 0.99
"""Least cosine between the normal of a plane and up, for a plane that is a floor."""


@dataclass(frozen=True)
class Extent:
    """Extent of the moving shapes, in the world of the first frame.

    center: float64[3]. radius: of all [m]. floor: height of the floor along the up axis [m]. plane:
    it is a plane of the scene. travels: the shapes move together by more than their radius, so that
    the view follows them.
    """

    center: np.ndarray
    radius: float
    floor: float
    plane: bool
    travels: bool


def moving_rows(frames: ViewFrames, world: int) -> np.ndarray:
    """Rows of the moving shapes of a world that have a size; those of all shapes if none moves."""
    assert frames.model is not None
    shapes = frames.model.shapes
    rows = frames.rows(world)
    rows = rows[rows < frames.shape_count]
    sized = rows[np.linalg.norm(shapes.size[rows], axis=1) > 0.0]
    moving = sized[shapes.body[sized] >= 0]
    return moving if len(moving) else sized


def median_size(frames: ViewFrames, world: int) -> float:
    """Median distance of a corner of the moving shapes of a world from their centres [m]; infinite
    without a scene."""
    if frames.model is None or not len(rows := moving_rows(frames, world)):
        return np.inf
    return float(np.median(np.linalg.norm(frames.model.shapes.size[rows], axis=1)))


def middle_of(poses: np.ndarray, rows: np.ndarray, up: int) -> np.ndarray:
    """float64[3]: the median position of shapes without its height; it is continuous, and ignores
    single shapes."""
    middle = np.median(poses[rows, :3], axis=0) if len(rows) else np.zeros(3)
    middle[up] = 0.0
    return middle


def extent_of(frames: ViewFrames, world: int, up: int) -> Extent:
    """Extent of the moving shapes of a world in some frames, or of the contacts without a scene."""
    sampled = (
        distinct(np.linspace(0, len(frames) - 1, SAMPLED_FRAMES).astype(int)).tolist()
        if len(frames)
        else []
    )
    touched = [frames.contacts(index, world)["point0"].astype(float) for index in sampled]
    if frames.surface_scale is not None:
        touched += [frames.surfaces(index, world).center for index in sampled]
    points = np.concatenate(touched) if touched else np.zeros((0, 3))
    floor = float(points[:, up].min()) if len(points) else 0.0
    if frames.model is None:
        center, radius = _ball(points, np.zeros(len(points)))
        return Extent(center, radius, floor, False, False)
    rows = moving_rows(frames, world)
    size = np.linalg.norm(frames.model.shapes.size[rows], axis=1)
    poses = [frames.shape_poses(index, world) for index in sampled]
    middles = np.array([middle_of(frame_poses, rows, up) for frame_poses in poses]).reshape(-1, 3)
    travel = middles - middles[:1]
    places = [frame_poses[rows, :3] for frame_poses in poses]
    first_radius = _ball(places[0], size)[1] if places else 1.0
    travels = bool(np.linalg.norm(travel, axis=1).max(initial=0.0) > first_radius)
    if travels:
        places = [place - moved for place, moved in zip(places, travel, strict=True)]
    middle_points = np.concatenate(places) if places else np.zeros((0, 3))
    middle_points, sizes = _with_particles(
        frames,
        world,
        sampled,
        middle_points,
        np.tile(size, len(places)),
        travel if travels else None,
    )
    center, radius = _ball(middle_points, sizes)
    planes = _floor_planes(frames.model, frames.rows(world), poses[0], up) if poses else np.zeros(0)
    if len(planes):
        floor = float(planes.max())
    elif not len(points) and len(middle_points):
        floor = float((middle_points[:, up] - sizes).min())
    return Extent(center, radius, floor, len(planes) > 0, travels)


def _with_particles(
    frames: ViewFrames,
    world: int,
    sampled: list[int],
    points: np.ndarray,
    size: np.ndarray,
    travel: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and sizes with those of at most SAMPLED_PARTICLES particles in each sampled
    frame."""
    if not frames.has_particles:
        return points, size
    assert frames.model is not None
    particles = frames.model.particles
    rows = particles.of_template(int(frames.model.world_template[world]))
    rows = rows[:: -(-len(rows) // SAMPLED_PARTICLES) or 1]
    moved = np.zeros((len(sampled), 3)) if travel is None else travel
    positions = [
        frames.particles(index, world)[rows] - by for index, by in zip(sampled, moved, strict=True)
    ]
    return np.concatenate([points, *positions]), np.concatenate(
        [size, np.tile(particles.radius[rows], len(sampled))]
    )


def _ball(points: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a ball around points with sizes; percentiles exclude shapes that leave
    the scene."""
    if not len(points):
        return np.zeros(3), 1.0
    low = np.percentile(points, 3, axis=0)
    high = np.percentile(points, 97, axis=0)
    center = 0.5 * (low + high)
    radius = float(np.percentile(np.linalg.norm(points - center, axis=1) + size, 95))
    return center, radius or 1.0


def _floor_planes(model: Model, rows: np.ndarray, poses: np.ndarray, up: int) -> np.ndarray:
    kinds = model.shapes.types()
    planes = [row for row in rows.tolist() if kinds[row] == ShapeType.PLANE]
    if not planes:
        return np.zeros(0)
    return poses[planes, up][_plane_normals(poses[planes])[:, up] > NEAR_UP]


def _plane_normals(poses: np.ndarray) -> np.ndarray:
    still = np.concatenate([np.zeros((len(poses), 3)), poses[:, 3:]], axis=1)
    return moved_points(still, np.array([0.0, 0.0, 1.0]))


FIELD_OF_VIEW = float(np.radians(45.0))
CONTACT_SIZE = 0.18
"""Length of the unit of points and arrows, relative to the radius of the scene at the first
distance of the camera."""
SHAPE_SIZES = 2.0
"""Greatest length of that unit relative to the median size of the moving shapes, which may be small
and far apart."""
SPACINGS = 1.0
LEAST_UNIT = 0.2
"""Greatest length of that unit relative to the edges of cloths, and its least length relative to
the usual one."""
POINT = 0.2
GAP_POINT = 0.13
SELF_POINT = 0.13
ARROW = 0.75
"""Diameters of points of contacts, of those in the gap and of self-contacts, and length of arrows,
in that unit."""
SECOND_SHARE = 0.5
"""Size of a point of a second set, as a part of that of the first: where both are at one place both
are visible."""
SHAFT = 0.022
HEAD = 0.07
HEAD_LENGTH = 0.25
"""Radii of an arrow of a normal and length of its head, relative to its length."""
FORCE_LENGTH = 5.0
"""Length of the arrow of the greatest force, in units of the size of contacts."""
FAR = 1e3
"""Scenes farther from the origin [m] are drawn relative to their centre, as browsers use
float32."""


class Stage:
    """The framing of a view. All worlds are drawn at the position of the first drawn world.

    extent: of world `first`, in a few frames. follows: its shapes travel, so that following them is
    an option. origin: point of the first world that is drawn at 0, if nothing is followed [m].
    cell: distance of the thick lines of the grid [m]. distance: initial one of the camera from the
    centre [m]; the extent fills the height of the window. unit: length of the unit of points and
    arrows [m], less for small shapes and fine cloths.
    """

    def __init__(self, frames: ViewFrames, up_axis: str, first: int = 0) -> None:
        self.frames = frames
        self._first = first
        self.up = "XYZ".index(up_axis)
        self.extent = extent_of(frames, first, self.up)
        self.follows = self.extent.travels
        self._start = np.zeros(3)
        if self.follows:
            self._start = middle_of(
                frames.shape_poses(0, first), moving_rows(frames, first), self.up
            )
        self.origin = (
            self.extent.center if np.linalg.norm(self.extent.center) > FAR else np.zeros(3)
        )
        self.cell = float(10.0 ** np.floor(np.log10(self.extent.radius)))
        self.distance = self.extent.radius / float(np.sin(0.5 * FIELD_OF_VIEW))
        self.unit = min(CONTACT_SIZE * self.extent.radius, SHAPE_SIZES * median_size(frames, first))
        if frames.has_particles:
            assert frames.model is not None
            spacing = self.particles(first).spacing(frames.model.particles)
            self.unit = min(self.unit, max(SPACINGS * spacing, LEAST_UNIT * self.unit))

    @property
    def camera(self) -> np.ndarray:
        """Initial position of the camera relative to the centre [m]."""
        away = np.array([-1.0, -1.0, -1.0])
        away[self.up] = 0.75
        away[(self.up + 2) % 3] *= 1.3
        return self.distance * away / np.linalg.norm(away)

    def particles(self, world: int) -> DrawnParticles:
        """The drawn particles of a world of a scene that has some."""
        model = self.frames.model
        assert model is not None
        return drawn_particles(
            model.particles, int(model.world_template[world]), self.extent.radius
        )

    def zero(self, world: int) -> np.ndarray:
        """Point of a world that is drawn at 0, if nothing is followed [m]."""
        return self.origin + self._world_shift(world)

    def travel(self, poses: np.ndarray, world: int) -> np.ndarray:
        """Displacement of the followed shapes since the first frame [m]. poses: of all shapes."""
        if not self.follows:
            return np.zeros(3)
        moved = (
            middle_of(poses, moving_rows(self.frames, world), self.up)
            - self._world_shift(world)
            - self._start
        )
        return np.where(np.arange(3) == self.up, 0.0, moved)

    def focus(
        self, pair: tuple[int, int], index: int, world: int
    ) -> tuple[np.ndarray, float] | None:
        """Centre of the contacts of a pair as drawn, and a distance for the camera [m]; None
        without contacts."""
        contacts = self.frames.contacts(index, world)
        rows = (contacts["shape0"] == pair[0]) & (contacts["shape1"] == pair[1])
        points = 0.5 * (contacts["point0"][rows].astype(float) + contacts["point1"][rows])
        if self.frames.surface_scale is not None:
            surfaces = self.frames.surfaces(index, world)
            points = np.concatenate([points, surfaces.center[surfaces.of_pair(pair)]])
        if self.frames.has_self_contacts:
            near = self.frames.self_contacts(index, world)
            points = np.concatenate([points, near["point"][(near["pair"] == pair).all(axis=1)]])
        if not len(points):
            return None
        size = np.zeros(1)
        if self.frames.model is not None:
            # a particle object has no size of its own
            shapes = [item for item in pair if item < self.frames.shape_count]
            size = np.linalg.norm(self.frames.model.shapes.size[shapes], axis=1)
        spread = float(np.linalg.norm(np.ptp(points, axis=0)))
        least = 0.05 * self.extent.radius
        sized = size[size > 0.0]
        radius = min(
            max(float(sized.min(initial=np.inf)) if len(sized) else least, spread, least),
            self.extent.radius,
        )
        distance = min(3.0 * radius / float(np.sin(0.5 * FIELD_OF_VIEW)), self.distance)
        return points.mean(axis=0) - self.zero(world), distance

    def _world_shift(self, world: int) -> np.ndarray:
        model = self.frames.model
        if model is None or model.world_shift is None:
            return np.zeros(3)
        return model.world_shift[world, :3] - model.world_shift[self._first, :3]


def below(planes: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Poses of planes, each moved within its plane to the point closest to the centre of the
    scene."""
    normal = _plane_normals(planes)
    height = ((center - planes[:, :3]) * normal).sum(axis=1)
    moved = planes.copy()
    moved[:, :3] = center - height[:, None] * normal
    return moved


FRAME_SECONDS = 1.0 / 30.0
"""Time between frames of one time [s]."""


def seconds_between(frames: ViewFrames, first: int, last: int) -> float:
    """Time between two frames [s]; 1/30 s per frame if all frames have one time."""
    if frames.time[-1] > frames.time[0]:
        return float(frames.time[last] - frames.time[first])
    return (last - first) * FRAME_SECONDS
