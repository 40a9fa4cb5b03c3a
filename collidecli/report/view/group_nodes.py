"""Nodes of hydroelastic surfaces, and of particles, cloths and soft bodies in a viser scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.report.view.colours import PARTICLES, SELF, depth_colours
from collidecli.report.view.framing import Frames
from collidecli.report.view.look import Look
from collidecli.report.view.surfaces import LEVELS, Surfaces, SurfaceScale, level_meshes
from collidecli.scene.particles import LOOSE, Particles

if TYPE_CHECKING:
    import viser

FORCE_LENGTH = 5.0
"""Length of the arrow of the greatest force, in units of the size of contacts."""
SELF_SIZE = 0.13
"""Diameter of points of self-contacts, in units of the size of contacts."""
SHEET_OPACITY = 1.1
"""Opacity of cloths and soft bodies relative to that of shapes: the shading of a faint sheet cannot be seen."""
LEAST_POINT = 0.01
"""Diameter of points of particles without a radius, relative to the radius of the scene."""
CORNERS, TRIANGLE = np.zeros((3, 3), np.float32), np.array([[0, 1, 2]], np.uint32)
"""An invisible triangle, as a mesh has at least one."""


def level_colours() -> np.ndarray:
    """uint8[LEVELS, 3]: the colours of faces."""
    return depth_colours(np.arange(float(LEVELS)), LEVELS - 1.0)


class SurfaceNodes:
    """A mesh for each colour of faces, or arrows for the forces of surfaces without faces."""

    def __init__(self, server: viser.ViserServer, scale: SurfaceScale) -> None:
        self.scale = scale
        scene = server.scene
        self._arrows = scene.add_arrows("/surfaces/forces", np.array([[[0, 0, 0], [0, 0, 1]]], np.float32), (0, 0, 0))
        self._arrows.visible = False
        self._meshes = [
            scene.add_mesh_simple(
                f"/surfaces/{number:02d}", CORNERS, TRIANGLE, color=tuple(colour), side="double", flat_shading=True,
                cast_shadow=False, receive_shadow=False, visible=False,
            )
            for number, colour in enumerate(level_colours().tolist() if scale.has_faces else ())
        ]  # fmt: skip

    def show(self, surfaces: Surfaces, look: Look, zero: np.ndarray, size: float) -> None:
        """Draws the surfaces of a cell. zero: point drawn at 0 [m]. size: of contacts [m]."""
        wanted = np.full(len(surfaces), look.surfaces)
        if look.pair is not None and look.only_pair:
            wanted &= surfaces.of_pair(look.pair)
        if not self.scale.has_faces:
            self._show_forces(surfaces, wanted, zero, size)
            return
        found = level_meshes(surfaces.faces, self.scale, wanted[surfaces.faces.patch])
        for node, (corner, triangle) in zip(self._meshes, found, strict=True):
            _set_mesh(node, corner - zero, triangle)

    def _show_forces(self, surfaces: Surfaces, wanted: np.ndarray, zero: np.ndarray, size: float) -> None:
        force, begin = surfaces.force[wanted], surfaces.center[wanted] - zero
        if len(force):
            longest = FORCE_LENGTH * size / (self.scale.greatest or 1.0)
            fraction = self.scale.fraction(np.linalg.norm(force, axis=1))
            self._arrows.shaft_radius, self._arrows.head_radius = 0.05 * size, 0.12 * size
            self._arrows.head_length = 0.3 * size
            self._arrows.points = np.stack([begin, begin + longest * force], axis=1).astype(np.float32)
            self._arrows.colors = depth_colours(fraction, 1.0)
        self._arrows.visible = len(force) > 0


@dataclass(frozen=True)
class DrawnParticles:
    """Particles of a world. points: rows of the loose ones. corners: rows of others.

    triangle: uint32[T, 3], of corners. diameter: of the points [m], the median one.
    """

    points: np.ndarray
    corners: np.ndarray
    triangle: np.ndarray
    diameter: float

    @property
    def rows(self) -> np.ndarray:
        """Rows of the points, then of the corners."""
        return np.concatenate([self.points, self.corners])


def drawn_particles(particles: Particles, template: int, radius: float) -> DrawnParticles:
    """What is drawn of the particles of a world. radius: of the scene [m]."""
    rows = particles.of_template(template)
    loose = np.array([kind == LOOSE for kind in particles.kind], bool)[particles.owner[rows]]
    points, corners = rows[loose], rows[~loose]
    number = np.full(len(particles), -1, np.int64)
    number[corners] = np.arange(len(corners))
    triangle = number[particles.triangle]
    triangle = triangle[(triangle >= 0).all(axis=1)].astype(np.uint32)
    diameter = 2.0 * float(np.median(particles.radius[points])) if len(points) else 0.0
    return DrawnParticles(points, corners, triangle, diameter or LEAST_POINT * radius)


class ParticleNodes:
    """Loose particles as points, cloths and soft bodies as surfaces."""

    def __init__(self, server: viser.ViserServer, frames: Frames, radius: float) -> None:
        self._frames, self._radius = frames, radius
        self._world, self._drawn = -1, None
        self._points = server.scene.add_point_cloud(
            "/particles/points", np.zeros((1, 3), np.float32), PARTICLES, point_size=1.0, point_shape="circle",
            precision="float32", visible=False,
        )  # fmt: skip
        self._mesh = server.scene.add_mesh_simple(
            "/particles/surfaces",
            CORNERS,
            TRIANGLE,
            color=PARTICLES,
            side="double",
            opacity=1.0,
            flat_shading=True,
            receive_shadow=False,
            visible=False,
        )

    def spacing(self, world: int) -> float:
        """Median length at rest of the first edges of the drawn triangles of a world [m]; infinite without any."""
        drawn, model = self.drawn(world), self._frames.model
        assert model is not None
        corner = model.particles.position[drawn.corners[drawn.triangle[:, :2].astype(int)]]
        return float(np.median(np.linalg.norm(corner[:, 1] - corner[:, 0], axis=1))) if len(corner) else np.inf

    def drawn(self, world: int) -> DrawnParticles:
        """The drawn particles of a world."""
        if self._drawn is None or self._world != world:
            model = self._frames.model
            assert model is not None
            self._drawn = drawn_particles(model.particles, int(model.world_template[world]), self._radius)
            self._world = world
        return self._drawn

    def show(self, index: int, world: int, look: Look, zero: np.ndarray) -> None:
        """Draws the particles of a cell. zero: point drawn at 0 [m]."""
        visible = look.particles and not self._frames.ended(index, world)
        position = self._frames.particles(index, world) if visible else None
        if position is None:
            self._points.visible = self._mesh.visible = False
            return
        drawn = self.drawn(world)
        if len(drawn.points):
            self._points.points = (position[drawn.points] - zero).astype(np.float32)
            self._points.colors = np.array(PARTICLES, np.uint8)
            self._points.point_size = drawn.diameter
        self._points.visible = len(drawn.points) > 0
        self._mesh.opacity = min(1.0, SHEET_OPACITY * look.opacity)
        _set_mesh(self._mesh, position[drawn.corners] - zero, drawn.triangle)


class SelfContactNode:
    """Contacts of cloths and soft bodies with themselves, as points. count: of the last drawn frame."""

    def __init__(self, server: viser.ViserServer, frames: Frames) -> None:
        self._frames, self.count = frames, 0
        self._points = server.scene.add_point_cloud(
            "/contacts/self", CORNERS[:1], SELF, point_size=1.0, point_shape="circle", precision="float32",
            visible=False,
        )  # fmt: skip

    def show(self, index: int, world: int, look: Look, zero: np.ndarray, size: float) -> None:
        """Draws those of a cell. zero: point drawn at 0 [m]. size: of contacts [m]."""
        points = self._frames.self_contacts(index, world)
        self.count = len(points)
        self._points.visible = drawn = look.self_contacts and len(points) > 0
        if drawn:
            self._points.points = (points - zero).astype(np.float32)
            self._points.colors, self._points.point_size = np.array(SELF, np.uint8), SELF_SIZE * size


def _set_mesh(node: viser.MeshHandle, corner: np.ndarray, triangle: np.ndarray) -> None:
    if len(triangle):
        node.vertices, node.faces = corner.astype(np.float32), triangle
    node.visible = len(triangle) > 0
