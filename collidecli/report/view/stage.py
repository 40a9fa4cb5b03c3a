"""The 3D scene in viser: shapes as meshes, contacts as points and arrows; and its playback."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.touches import Intervals, PairKeys
from collidecli.numerics.matrices import compose_poses
from collidecli.report.tables import length, short_names
from collidecli.report.view.framing import (
    GAP,
    LEVELS,
    OPACITY,
    PARTICLES,
    PICKED,
    SELF,
    Extent,
    Frames,
    Look,
    ShapeGroup,
    Surfaces,
    SurfaceScale,
    depth_colours,
    extent_of,
    first_look,
    level_meshes,
    median_size,
    middle_of,
    moving_rows,
    shape_colours,
    shape_groups,
)
from collidecli.scene.model import Model
from collidecli.scene.particles import LOOSE, Particles

if TYPE_CHECKING:
    import viser


# The 3D scene in viser: shapes as meshes, contacts as points and arrows; only changes of a frame are sent.

# Nodes of hydroelastic surfaces, and of particles, cloths and soft bodies in a viser scene.

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


FIELD_OF_VIEW = float(np.radians(45.0))
CONTACT_SIZE = 0.18
"""Length of the unit of points and arrows, relative to the radius of the scene at the first distance of the camera."""
SHAPE_SIZES = 2.0
"""Greatest length of that unit relative to the median size of the moving shapes, which may be small and far apart."""
SPACINGS, LEAST_UNIT = 1.0, 0.2
"""Greatest length of that unit relative to the edges of cloths, and its least length relative to the usual one."""
FAINT = 0.1
"""Opacity of shapes outside the selected pair."""
FAR = 1e3
"""Scenes farther from the origin [m] are drawn relative to their centre, as browsers use float32."""
DOT = np.zeros((1, 3), np.float32)
"""An invisible point of an empty cloud, as clients do not accept clouds without points."""
NO_ARROW = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]], np.float32)


class Stage:
    """The nodes of a viser scene. All worlds are drawn at the position of the first drawn world.

    extent: of world `first`, in a few frames. follows: its shapes travel, so that following them is an option.
    deepest: greatest depth of all contacts, for the last colour [m].

    cell: distance of the thick lines of the grid [m]. seen: number of touching contacts and of contacts within the gap
    in the last drawn frame. surface_count: number of surfaces in it. surfaces, particles, self_contacts: their nodes;
    None without them. unit: length of the unit of points and arrows [m], less for small shapes and fine cloths.
    clicked(path): called when a client clicks on a shape.
    """

    def __init__(self, server: viser.ViserServer, frames: Frames, up_axis: str, deepest: float, first: int = 0) -> None:
        self._server, self._frames, self._deepest, self._first = server, frames, deepest, first
        self._up = "XYZ".index(up_axis)
        self.extent = extent_of(frames, first, self._up)
        self.follows = self.extent.travels
        self._start = np.zeros(3)
        if self.follows:
            self._start = middle_of(frames.shape_poses(0, first), moving_rows(frames, first), self._up)
        self._origin = self.extent.center if np.linalg.norm(self.extent.center) > FAR else np.zeros(3)
        self._aside = self._followed = np.zeros(3)
        self.seen, self.surface_count = (0, 0), 0
        self.clicked: Callable[[str], None] = lambda path: None
        self._groups: list[GroupNode] = []
        self._world = self._template = -1
        self._all_groups = shape_groups(frames.model) if frames.model is not None else []
        scene = server.scene
        scene.set_up_direction(np.eye(3)[self._up])
        # With viser's default lights and environment map pale colours become white.
        scene.configure_environment_map(None)
        scene.configure_default_lights(False)
        scene.add_light_ambient("/lights/ambient", intensity=0.8)
        up = np.roll([-0.35, 0.2, 1.0], (self._up + 1) % 3)
        scene.add_light_directional("/lights/sun", intensity=1.7, position=tuple(up.tolist()), cast_shadow=True)
        self._add_floor()
        self._points, self._gaps = (
            scene.add_point_cloud(
                name, DOT, GAP, point_size=1.0, point_shape="circle", precision="float32", visible=False
            )
            for name in ("/contacts/touching", "/contacts/gap")
        )
        self._arrows = scene.add_arrows("/contacts/normals", NO_ARROW, GAP, visible=False)
        scale = frames.surface_scale
        self.surfaces = None if scale is None else SurfaceNodes(server, scale)
        self.particles = ParticleNodes(server, frames, self.extent.radius) if frames.has_particles else None
        self.self_contacts = SelfContactNode(server, frames) if frames.has_self_contacts else None
        spacing = np.inf if self.particles is None else self.particles.spacing(first)
        self.unit = min(CONTACT_SIZE * self.extent.radius, SHAPE_SIZES * median_size(frames, first))
        self.unit = min(self.unit, max(SPACINGS * spacing, LEAST_UNIT * self.unit))
        self._aim()

    def _add_floor(self) -> None:
        """Adds a grid with shadows at the height of the floor; its lines are a power of ten apart."""
        self.cell = float(10.0 ** np.floor(np.log10(self.extent.radius)))
        self._grid = self._server.scene.add_grid(
            "/floor",
            plane=("yz", "xz", "xy")[self._up],  # pyright: ignore[reportArgumentType]
            infinite_grid=True,
            cell_size=self.cell / 2.0,
            section_size=self.cell,
            cell_color=(222, 226, 231),
            section_color=(190, 197, 206),
            fade_distance=12.0 * self.extent.radius,
            shadow_opacity=0.0 if self.extent.plane else 0.3,  # a plane has the shadows itself
        )

    def _aim(self) -> None:
        away = np.array([-1.0, -1.0, -1.0])
        away[self._up] = 0.75
        away[(self._up + 2) % 3] *= 1.3
        camera = self._server.initial_camera
        center = self.extent.center - self._origin
        camera.fov = FIELD_OF_VIEW
        camera.near, camera.far = self.extent.radius / 500.0, self.extent.radius * 500.0
        camera.look_at = center
        camera.position = center + self.distance * away / np.linalg.norm(away)

    @property
    def distance(self) -> float:
        """Initial distance of the camera from the centre [m]: the extent fills the height of the window."""
        return self.extent.radius / float(np.sin(0.5 * FIELD_OF_VIEW))

    @property
    def origin(self) -> np.ndarray:
        """Point of the first world that is drawn at 0, if nothing is followed [m]."""
        return self._origin

    def zero(self, world: int) -> np.ndarray:
        """Point of a world that is drawn at 0, if nothing is followed [m]."""
        return self._origin + self._world_shift(world)

    def travel(self, poses: np.ndarray, world: int, look: Look) -> np.ndarray:
        """Displacement of the followed shapes since the first frame [m]. poses: of all shapes."""
        if not (self.follows and look.follow):
            return np.zeros(3)
        moved = middle_of(poses, moving_rows(self._frames, world), self._up) - self._world_shift(world) - self._start
        return np.where(np.arange(3) == self._up, 0.0, moved)

    def focus(self, pair: tuple[int, int], index: int, world: int, look: Look) -> tuple[np.ndarray, float] | None:
        """Centre of the contacts of a pair as drawn, and a distance for the camera [m]; None without contacts."""
        held = self._frames.contacts(index, world)
        rows = (held["shape0"] == pair[0]) & (held["shape1"] == pair[1])
        points = 0.5 * (held["point0"][rows].astype(float) + held["point1"][rows])
        if self.surfaces is not None:
            surfaces = self._frames.surfaces(index, world)
            points = np.concatenate([points, surfaces.center[surfaces.of_pair(pair)]])
        if not len(points):
            return None
        size, shift = np.zeros(1), self._world_shift(world)
        if self._frames.model is not None:
            shift = shift + self.travel(self._frames.shape_poses(index, world), world, look)
            size = np.linalg.norm(self._frames.model.shapes.size[list(pair)], axis=1)
        spread = float(np.linalg.norm(np.ptp(points, axis=0)))
        least = 0.05 * self.extent.radius
        sized = size[size > 0.0]
        radius = min(max(float(sized.min(initial=np.inf)) if len(sized) else least, spread, least), self.extent.radius)
        distance = min(3.0 * radius / float(np.sin(0.5 * FIELD_OF_VIEW)), self.distance)
        return points.mean(axis=0) - self._origin - shift, distance

    def _world_shift(self, world: int) -> np.ndarray:
        model = self._frames.model
        if model is None or model.world_shift is None:
            return np.zeros(3)
        return model.world_shift[world, :3] - model.world_shift[self._first, :3]

    def show(self, index: int, world: int, look: Look) -> None:
        """Draws a frame; unchanged properties are not sent."""
        with self._server.atomic():
            if self._frames.model is not None:
                if world != self._world:
                    self._set_world(world)
                poses = self._frames.shape_poses(index, world)
                self._followed = self.travel(poses, world, look)
                drawn_at_zero = self._origin + self._aside + self._followed
                ended = self._frames.ended(index, world)
                for group in self._groups:
                    group.visible = not ended
                    group.show(poses, look, drawn_at_zero, self.extent.center + self._aside + self._followed)
            at = self.extent.floor * np.eye(3)[self._up] - self._origin - self._followed
            sideways = np.arange(3) != self._up
            at[sideways] = np.remainder(at[sideways], self.cell)
            at[self._up] += 1e-3 * self.extent.radius  # above the plane of a floor
            self._grid.position = at
            self._show_contacts(self._frames.contacts(index, world), look)
            self._show_groups(index, world, look)

    def _show_groups(self, index: int, world: int, look: Look) -> None:
        zero = self._origin + self._aside + self._followed
        if self.surfaces is not None:
            surfaces = self._frames.surfaces(index, world)
            self.surface_count = len(surfaces)
            self.surfaces.show(surfaces, look, zero, self._contact_size(look))
        if self.particles is not None:
            self.particles.show(index, world, look, zero)
        if self.self_contacts is not None:
            self.self_contacts.show(index, world, look, zero, self._contact_size(look))

    def _contact_size(self, look: Look) -> float:
        return self.unit * look.size * look.distance

    def _set_world(self, world: int) -> None:
        model = self._frames.model
        assert model is not None
        template = int(model.world_template[world])
        self._world = world
        self._aside = self._world_shift(world)
        if template == self._template:
            return
        self._template = template
        for group in self._groups:
            group.remove()
        self._groups = self.add_groups(world, "/shapes")
        for group in self._groups:
            group.on_click(lambda row: self.clicked(model.shapes.path[row]))

    def add_groups(self, world: int, parent: str) -> list[GroupNode]:
        """Adds the nodes of the shapes of a world."""
        rows, model = self._frames.rows(world), self._frames.model
        assert model is not None
        found = []
        for number, group in enumerate(self._all_groups):
            held = np.isin(group.rows, rows)
            if held.any():
                part = ShapeGroup(group.mesh, group.rows[held], group.scale[held], group.planes)
                found.append(GroupNode(self._server, f"{parent}/{number:03d}", part, model, self.extent))
        return found

    def _show_contacts(self, held: dict[str, np.ndarray], look: Look) -> None:
        touching = held["distance"] <= 0.0
        self.seen = (int(touching.sum()), int((~touching).sum()))
        wanted = np.ones(len(touching), bool)
        if look.pair is not None and look.only_pair:
            wanted = (held["shape0"] == look.pair[0]) & (held["shape1"] == look.pair[1])
        touch, gap = touching & wanted, ~touching & wanted & look.gaps
        zero = self._origin + self._aside + self._followed
        at = (0.5 * (held["point0"].astype(float) + held["point1"]) - zero).astype(np.float32)
        colours = depth_colours(-held["distance"], self._deepest)
        size = self._contact_size(look)
        self._points.point_size = 0.2 * size
        self._gaps.point_size = 0.13 * size
        _set_points(self._points, at[touch], colours[touch])
        _set_points(self._gaps, at[gap], np.array(GAP, np.uint8))
        colours[gap] = GAP
        self._show_arrows(at[touch | gap], held["normal"][touch | gap], colours[touch | gap], look, size)

    def _show_arrows(self, at: np.ndarray, normal: np.ndarray, colours: np.ndarray, look: Look, size: float) -> None:
        length = 0.75 * size
        ends = np.stack([at, at + length * normal], axis=1).astype(np.float32)
        drawn = look.arrows and len(at) > 0
        if drawn:
            self._arrows.shaft_radius, self._arrows.head_radius = 0.022 * length, 0.07 * length
            self._arrows.head_length = 0.25 * length
            self._arrows.points, self._arrows.colors = ends, colours
        self._arrows.visible = drawn


def _set_points(cloud: viser.PointCloudHandle, points: np.ndarray, colours: np.ndarray) -> None:
    if len(points):
        cloud.points, cloud.colors = points, colours
    cloud.visible = len(points) > 0


class GroupNode:
    """The node of a group of shapes. group: its shapes. colours: uint8[n, 3]. static: bool[n], of no body."""

    def __init__(self, server: viser.ViserServer, name: str, group: ShapeGroup, model: Model, extent: Extent) -> None:
        self.group = group
        self.static = model.shapes.body[group.rows] < 0
        self.colours = shape_colours(model.shapes.body[group.rows])
        scale = group.scale * (3.0 * extent.radius if group.planes else 1.0)
        count = len(group.rows)
        resting = np.tile(np.array([1.0, 0.0, 0.0, 0.0], np.float32), (count, 1))
        self._look: tuple | None = None
        self._node = server.scene.add_batched_meshes_simple(
            name,
            group.mesh.vertex,
            group.mesh.face,
            resting,
            np.zeros((count, 3), np.float32),
            batched_scales=scale,
            batched_colors=self.colours,
            batched_opacities=np.ones(count, np.float32),
            flat_shading=group.mesh.flat,
            side="double" if group.mesh.open else "front",
            lod="off",
            cast_shadow=not group.planes,
            receive_shadow=True,
        )

    def remove(self) -> None:
        """Removes the node."""
        self._node.remove()

    @property
    def name(self) -> str:
        """Path of the node."""
        return self._node.name

    @property
    def visible(self) -> bool:
        """Whether it is drawn."""
        return self._node.visible

    @visible.setter
    def visible(self, drawn: bool) -> None:
        self._node.visible = drawn

    def relative_opacity(self) -> np.ndarray:
        """float64[n]: static shapes, such as walls, may cover moving shapes, and get half the opacity."""
        return np.where(self.static & (not self.group.planes), 0.5, 1.0)

    def drawn(self, poses: np.ndarray, origin: np.ndarray, center: np.ndarray) -> np.ndarray:
        """float64[n, 7]: positions and rotations as xyzw. poses: as for `show`."""
        held = poses[self.group.rows]
        if self.group.planes:
            held = _below(held, center)
        return np.concatenate([held[:, :3] - origin, held[:, 3:]], axis=1)

    def on_click(self, action: Callable[[int], None]) -> None:
        """Calls action(row) with the row of the clicked shape."""

        @self._node.on_click
        def _(event: viser.SceneNodePointerEvent) -> None:
            if event.instance_index is not None:
                action(int(self.group.rows[event.instance_index]))

    def show(self, poses: np.ndarray, look: Look, origin: np.ndarray, center: np.ndarray) -> None:
        """Draws the group. poses: float64[S, 7], xyzw, of all shapes. origin: drawn at 0. center: of the scene."""
        sent = self.drawn(poses, origin, center).astype(np.float32)
        # viser does not send unchanged values.
        self._node.batched_positions, self._node.batched_wxyzs = sent[:, :3], np.roll(sent[:, 3:], 1, axis=1)
        if self._look != (look.pair, look.opacity):
            self._look = (look.pair, look.opacity)
            self._show_look(look)

    def _show_look(self, look: Look) -> None:
        colours = self.colours.copy()
        opacity = self.relative_opacity() * look.opacity
        if look.pair is not None:
            opacity[:] = np.minimum(opacity, FAINT)
            for shape, colour in zip(look.pair, PICKED, strict=True):
                colours[self.group.rows == shape] = colour
                opacity[self.group.rows == shape] = max(look.opacity, OPACITY)
        self._node.batched_colors = colours
        self._node.batched_opacities = opacity.astype(np.float32)


def _below(planes: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Poses of planes, each moved within its plane to the point closest to the centre of the scene."""
    normal = compose_poses(
        np.concatenate([np.zeros((len(planes), 3)), planes[:, 3:]], 1), np.array([0, 0, 1.0, 0, 0, 0, 1])
    )
    height = ((center - planes[:, :3]) * normal[:, :3]).sum(axis=1)
    moved = planes.copy()
    moved[:, :3] = center - height[:, None] * normal[:, :3]
    return moved


# Playback: a thread that draws the frame requested last, and further frames while it plays.

MAX_RATE = 30.0
"""Largest number of frames per second; a motion with a higher frame rate is shown with skipped frames."""


class Player:
    """Playback of a motion. index, world, look: requested frame, world and drawing options.

    playing: whether it plays. speed: seconds of the motion per second. shown(index): called by the thread after every
    frame. failure: the exception that ended the thread.
    """

    def __init__(self, frames: Frames, stage: Stage, shown: Callable[[int], None]) -> None:
        self.index, self.world, self.look = 0, 0, first_look(frames.surface_scale is not None)
        self.playing, self.speed = False, 1.0
        self.failure: BaseException | None = None
        self._frames, self._stage, self._shown = frames, stage, shown
        self._wanted = threading.Condition()
        self._changed, self._ended = True, False
        self._thread = threading.Thread(target=self._work, name="collide-view", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        with self._wanted:
            self._ended = True
            self._wanted.notify()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def go(self, index: int | None = None, world: int | None = None) -> None:
        """Requests another frame or world."""
        with self._wanted:
            self.index = self.index if index is None else min(max(0, index), len(self._frames) - 1)
            self.world = self.world if world is None else world
            self._changed = True
            self._wanted.notify()

    def set_look(self, **changes) -> None:
        """Changes drawing options, by field of `Look`."""
        with self._wanted:
            self.look = replace(self.look, **changes)
            self._changed = True
            self._wanted.notify()

    def play(self, playing: bool) -> None:
        """Starts or pauses; at the last frame, and at the end of a demonstration, it starts from the first."""
        with self._wanted:
            if playing and (self.index == len(self._frames) - 1 or self._frames.ended(self.index + 1, self.world)):
                recorded = (n for n in range(len(self._frames)) if not self._frames.ended(n, self.world))
                self.index = next(recorded, 0)
            self.playing, self._changed = playing, True
            self._wanted.notify()

    def _work(self) -> None:
        try:
            while self._next():
                pass
        except BaseException as error:
            self.failure = error

    def _next(self) -> bool:
        with self._wanted:
            while not (self._changed or self.playing or self._ended):
                self._wanted.wait()
            if self._ended:
                return False
            self._changed = False
            index, world, look = self.index, self.world, self.look
        began = time.perf_counter()
        self._stage.show(index, world, look)
        self._shown(index)
        with self._wanted:
            if self.playing and not self._changed:
                due = self._seconds(index, min(index + 1, len(self._frames) - 1)) / self.speed
                self._wanted.wait_for(
                    lambda: self._changed or self._ended,
                    max(0.0, max(due, 1.0 / MAX_RATE) - (time.perf_counter() - began)),
                )
            if self.playing and not self._changed:
                self._step(index, world, time.perf_counter() - began)
        return not self._ended

    def _step(self, index: int, world: int, passed: float) -> None:
        """Advances to the last frame that is due after `passed` seconds; stops at the end, and of a demonstration."""
        last = len(self._frames) - 1
        if not self._frames.ended(index, world):
            last = next((n - 1 for n in range(index + 1, last + 1) if self._frames.ended(n, world)), last)
        reached = min(index + 1, last)
        while reached < last and self._seconds(index, reached + 1) <= passed * self.speed + 1e-4:
            reached += 1
        self.index, self.playing, self._changed = reached, reached < last, True

    def _seconds(self, first: int, last: int) -> float:
        return seconds_between(self._frames, first, last)


def seconds_between(frames: Frames, first: int, last: int) -> float:
    """Time between two frames [s]; 1/30 s per frame if all frames have one time."""
    if frames.time[-1] > frames.time[0]:
        return float(frames.time[last] - frames.time[first])
    return (last - first) / MAX_RATE


# The touching pairs of each world and the frames of their intervals.

MAX_LISTED = 500
"""Largest number of pairs in a list."""


@dataclass(frozen=True)
class Touch:
    """An interval of a pair: frame indices, and the least distance [m], at index `deepest`."""

    first: int
    last: int
    deepest: int
    distance: float


@dataclass(frozen=True)
class TouchingPair:
    """A pair and its intervals in order. shapes: rows, sorted. label: unique in its world."""

    world: int
    shapes: tuple[int, int]
    paths: tuple[str, str]
    label: str
    touches: tuple[Touch, ...]

    @property
    def deepest(self) -> Touch:
        """The interval with the least distance."""
        return min(self.touches, key=lambda touch: touch.distance)


class TouchList:
    """The touching pairs of every world, deepest first. deepest: greatest depth of all pairs [m]."""

    def __init__(self, found: Intervals, keys: PairKeys) -> None:
        self._of_world: dict[int, list[TouchingPair]] = {}
        self.deepest = float(max(0.0, -found.distance.min(initial=0.0)))
        order = np.lexsort((found.first, found.key))
        start = np.flatnonzero(np.diff(found.key[order], prepend=-1))
        short = short_names(keys.paths)
        for rows in np.split(order, start[1:]) if len(order) else []:
            self._add(found, keys, rows, short)
        for pairs in self._of_world.values():
            pairs.sort(key=lambda pair: (pair.deepest.distance, pair.shapes))

    def _add(self, found: Intervals, keys: PairKeys, rows: np.ndarray, short: Sequence[str]) -> None:
        key = found.key[rows[:1]]
        world, (one, other) = int(keys.world(key)[0]), (int(side[0]) for side in keys.items(key))
        columns = (found.first, found.last, found.deepest, found.distance)
        touches = tuple(Touch(*numbers) for numbers in zip(*(column[rows].tolist() for column in columns), strict=True))
        least = min(touch.distance for touch in touches)
        label = f"{short[one]} × {short[other]} · {length(max(0.0, -least))}"
        pair = TouchingPair(world, (one, other), (keys.paths[one], keys.paths[other]), label, touches)
        self._of_world.setdefault(world, []).append(pair)

    def of(self, world: int, wanted: str = "") -> list[TouchingPair]:
        """Pairs of a world with a path that contains or matches `wanted`; deepest first."""
        pairs = self._of_world.get(world, [])
        if not wanted:
            return pairs
        pattern = wanted if any(sign in wanted for sign in "*?[") else f"*{wanted}*"
        return [pair for pair in pairs if any(fnmatchcase(path, pattern) for path in pair.paths)]

    def __iter__(self) -> Iterator[TouchingPair]:
        return (pair for world in sorted(self._of_world) for pair in self._of_world[world])


def touch_label(number: int, touch: Touch, frames: np.ndarray) -> str:
    """Label of an interval: its number and frames. frames: int64[K], frame number of each index."""
    first, last = int(frames[touch.first]), int(frames[touch.last])
    when = f"frame {first}" if first == last else f"frames {first} to {last}"
    return f"{number}: {when}"


def pair_words(pair: TouchingPair) -> str:
    """Number of intervals of a pair and its depth, as text."""
    return f"{len(pair.touches)} touch{'' if len(pair.touches) == 1 else 'es'}, {length(-pair.deepest.distance)} deep"


# The intervals of a pair as marks along the time of a view, as SVG.

TOUCH, DEEPEST, NOW = "#e2372a", "#920a46", "#1b2530"
LEAST_WIDTH = 0.4
"""Least width of a mark [% of the bar]."""


def touch_bar(touches: Sequence[Touch], frame_count: int, index: int) -> str:
    """SVG of a bar over all frames: a mark for each interval, darker at its deepest frame, and a line at `index`."""
    step = 100.0 / max(1, frame_count)

    def rect(at: float, width: float, colour: str, name: str) -> str:
        return f'<rect class="{name}" x="{at:.3f}%" width="{width:.3f}%" height="100%" fill="{colour}"/>'

    marks = [rect(step * t.first, max(LEAST_WIDTH, step * (t.last + 1 - t.first)), TOUCH, "touch") for t in touches]
    marks += [rect(step * t.deepest, max(LEAST_WIDTH, step), DEEPEST, "deepest") for t in touches]
    marks.append(rect(step * (index + 0.5), LEAST_WIDTH, NOW, "now"))
    style = "display: block; width: 100%; height: 0.6em; background: #e2e7ec; border-radius: 0.15em"
    return f'<svg id="collide-touches" role="img" aria-label="Touches over time" style="{style}">{"".join(marks)}</svg>'
