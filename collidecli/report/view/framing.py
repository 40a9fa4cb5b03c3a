"""What the camera of a view is aimed at: the moving shapes; the floor; and whether the view follows the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from collidecli.report.view.surfaces import Surfaces, SurfaceScale
from collidecli.scene.model import Model
from collidecli.scene.placement import compose
from collidecli.scene.shape_types import ShapeType

SAMPLED_FRAMES = 9
SAMPLED_PARTICLES = 10_000
NEAR_UP = 0.99
"""Least cosine between the normal of a plane and up, for a plane that is a floor."""


class Frames(Protocol):
    """Poses and contacts by frame index and world; see `commands.view_sources.ViewFrames`.

    surface_scale: None in a contact set without hydroelastic surfaces. has_particles: whether the scene has some.
    has_self_contacts: whether the set has contacts of cloths and soft bodies with themselves.
    """

    model: Model | None
    world_count: int
    number: np.ndarray
    time: np.ndarray
    surface_scale: SurfaceScale | None
    has_particles: bool
    has_self_contacts: bool

    @property
    def has_faces(self) -> bool:
        """Whether it draws faces of hydroelastic surfaces."""
        ...

    def __len__(self) -> int: ...
    def rows(self, world: int) -> np.ndarray: ...
    def shape_poses(self, index: int, world: int) -> np.ndarray: ...
    def ended(self, index: int, world: int) -> bool: ...
    def world_name(self, world: int) -> str: ...
    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]: ...
    def surfaces(self, index: int, world: int) -> Surfaces: ...
    def particles(self, index: int, world: int) -> np.ndarray: ...
    def face_count(self, worlds: Sequence[int]) -> int: ...
    def self_contacts(self, index: int, world: int) -> np.ndarray: ...
    def self_contact_count(self, worlds: Sequence[int]) -> int: ...
    def without(self, faces: bool = False, particles: bool = False, self_contacts: bool = False) -> Frames: ...


@dataclass(frozen=True)
class Extent:
    """Extent of the moving shapes, in the world of the first frame.

    center: float64[3]. radius: of all [m]. floor: height of the floor along the up axis [m]. plane: it is a plane of
    the scene. travels: the shapes move together by more than their radius, so that the view follows them.
    """

    center: np.ndarray
    radius: float
    floor: float
    plane: bool
    travels: bool


def moving_rows(frames: Frames, world: int) -> np.ndarray:
    """Rows of the moving shapes of a world that have a size; those of all shapes if none moves."""
    assert frames.model is not None
    shapes, rows = frames.model.shapes, frames.rows(world)
    sized = rows[np.linalg.norm(shapes.size[rows], axis=1) > 0.0]
    moving = sized[shapes.body[sized] >= 0]
    return moving if len(moving) else sized


def middle_of(poses: np.ndarray, rows: np.ndarray, up: int) -> np.ndarray:
    """float64[3]: the median position of shapes without its height; it is continuous, and ignores single shapes."""
    found = np.median(poses[rows, :3], axis=0) if len(rows) else np.zeros(3)
    found[up] = 0.0
    return found


def extent_of(frames: Frames, world: int, up: int) -> Extent:
    """Extent of the moving shapes of a world in some frames, or of the contacts without a scene."""
    sampled = np.unique(np.linspace(0, len(frames) - 1, SAMPLED_FRAMES).astype(int)).tolist() if len(frames) else []
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
    middles = np.array([middle_of(one, rows, up) for one in poses]).reshape(-1, 3)
    travel = middles - middles[:1]
    places = [one[rows, :3] for one in poses]
    first_radius = _ball(places[0], size)[1] if places else 1.0
    travels = bool(np.linalg.norm(travel, axis=1).max(initial=0.0) > first_radius)
    if travels:
        places = [place - moved for place, moved in zip(places, travel, strict=True)]
    found = np.concatenate(places) if places else np.zeros((0, 3))
    found, sizes = _with_particles(
        frames, world, sampled, found, np.tile(size, len(places)), travel if travels else None
    )
    center, radius = _ball(found, sizes)
    planes = _floor_planes(frames.model, frames.rows(world), poses[0], up) if poses else np.zeros(0)
    if len(planes):
        floor = float(planes.max())
    elif not len(points) and len(found):
        floor = float((found[:, up] - sizes).min())
    return Extent(center, radius, floor, len(planes) > 0, travels)


def _with_particles(
    frames: Frames, world: int, sampled: list[int], found: np.ndarray, size: np.ndarray, travel: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and sizes with those of at most SAMPLED_PARTICLES particles in each sampled frame."""
    if not frames.has_particles:
        return found, size
    assert frames.model is not None
    particles = frames.model.particles
    rows = particles.of_template(int(frames.model.world_template[world]))
    rows = rows[:: -(-len(rows) // SAMPLED_PARTICLES) or 1]
    moved = np.zeros((len(sampled), 3)) if travel is None else travel
    positions = [frames.particles(index, world)[rows] - by for index, by in zip(sampled, moved, strict=True)]
    return np.concatenate([found, *positions]), np.concatenate([size, np.tile(particles.radius[rows], len(sampled))])


def _ball(points: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a ball around points with sizes; percentiles exclude shapes that leave the scene."""
    if not len(points):
        return np.zeros(3), 1.0
    low, high = np.percentile(points, 3, axis=0), np.percentile(points, 97, axis=0)
    center = 0.5 * (low + high)
    radius = float(np.percentile(np.linalg.norm(points - center, axis=1) + size, 95))
    return center, radius or 1.0


def _floor_planes(model: Model, rows: np.ndarray, poses: np.ndarray, up: int) -> np.ndarray:
    """Heights of the planes whose normals are up."""
    kinds = model.shapes.types()
    planes = [row for row in rows.tolist() if kinds[row] == ShapeType.PLANE]
    if not planes:
        return np.zeros(0)
    still = np.concatenate([np.zeros((len(planes), 3)), poses[planes, 3:]], axis=1)
    normal = compose(still, np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]))[:, :3]
    return poses[planes, up][normal[:, up] > NEAR_UP]
