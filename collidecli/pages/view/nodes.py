"""The nodes of a page, recorded by viser. Its script moves them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.pages.view.colours import (
    AGAINST,
    GAP,
    PARTICLES,
    SELF_COLOUR,
    depth_colours,
    shape_colours,
)
from collidecli.pages.view.contact_map import level_colours
from collidecli.pages.view.framing import FIELD_OF_VIEW, Stage, below
from collidecli.pages.view.meshes import ShapeGroup
from collidecli.pages.view.surfaces import LEVELS

if TYPE_CHECKING:
    import viser

CORNERS = np.zeros((3, 3), np.float32)
TRIANGLE = np.array([[0, 1, 2]], np.uint32)
"""An invisible triangle, as a mesh has at least one."""
NO_ARROW = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]], np.float32)
FAINT = 0.1
"""Opacity of shapes outside the selected pair."""
BEHIND_VISUALS = 0.35
"""Opacity of shapes, relative to the chosen one, where visual meshes are drawn too."""
SHEET_OPACITY = 1.1
"""Opacity of cloths and soft bodies relative to that of shapes: the shading of a faint sheet cannot
be seen."""
_REPLACING = threading.Lock()


@contextmanager
def recorder() -> Iterator[viser.ViserServer]:
    """A viser server that listens to no port and records its nodes. Raises InputError without
    viser.

    viser has no recorder without a server, so `websockets.asyncio.server.serve`, which it calls, is
    replaced meanwhile.
    """
    package = extra_module("viser", "view", "collide view")
    import rich
    from websockets.asyncio import server as sockets

    rich.get_console().quiet = True  # stdout is for results

    @asynccontextmanager
    async def serve(*_: Any, **options: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(server=SimpleNamespace(sockets=()))

    with _REPLACING:
        original = sockets.serve
        sockets.serve = serve
        try:
            server = package.ViserServer(host="127.0.0.1", port=0, verbose=False)
        finally:
            sockets.serve = original
    try:
        if server.get_port():
            what = (
                f"viser {package.__version__} starts its server in a manner that collide does not"
                " know"
            )
            raise InputError(what, "collide view", "pip install 'viser==1.1.1'")
        yield server
    finally:
        server.stop()


class GroupNode:
    """The node of a group of shapes. group: its shapes. visual: they are visual geometry.

    colours: uint8[n, 3]. opacity: float64[n], relative to the chosen one: static shapes, such as
    walls, may cover moving shapes, and have half of it.
    """

    def __init__(self, scene: viser.SceneApi, name: str, group: ShapeGroup, stage: Stage) -> None:
        frames = stage.frames
        rows = group.rows
        count = len(group.rows)
        assert frames.model is not None
        self.name = name
        self.group = group
        self.visual = bool(rows[0] >= frames.shape_count)
        body = frames.model.shapes.body[rows]
        self.opacity = np.where((body < 0) & (not group.planes), 0.5, 1.0)
        self.colours = shape_colours(body)
        if self.visual:
            self.colours = frames.visual_colours[rows - frames.shape_count]
        scene.add_batched_meshes_simple(
            name,
            group.mesh.vertex,
            group.mesh.face,
            np.tile(np.array([1.0, 0.0, 0.0, 0.0], np.float32), (count, 1)),
            np.zeros((count, 3), np.float32),
            batched_scales=group.scale * (3.0 * stage.extent.radius if group.planes else 1.0),
            batched_colors=self.colours,
            batched_opacities=np.ones(count, np.float32),
            flat_shading=group.mesh.flat,
            side="double" if group.mesh.open else "front",
            lod="off",
            cast_shadow=not group.planes,
            receive_shadow=True,
            visible=False,
        )

    def drawn(self, poses: np.ndarray, origin: np.ndarray, center: np.ndarray) -> np.ndarray:
        """float64[n, 7]: positions and rotations as xyzw. origin: drawn at 0. center: of the
        scene."""
        group_poses = poses[self.group.rows]
        if self.group.planes:
            group_poses = below(group_poses, center)
        return np.concatenate([group_poses[:, :3] - origin, group_poses[:, 3:]], axis=1)


def _add_surroundings(scene: viser.SceneApi, stage: Stage) -> None:
    """Adds lights and floor."""
    scene.set_up_direction(np.eye(3)[stage.up])
    # With viser's default lights and environment map pale colours become white.
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_ambient("/lights/ambient", intensity=0.8)
    sun = np.roll([-0.35, 0.2, 1.0], (stage.up + 1) % 3)
    scene.add_light_directional(
        "/lights/sun", intensity=1.7, position=tuple(sun.tolist()), cast_shadow=True
    )
    scene.add_grid(
        "/floor",
        plane=("yz", "xz", "xy")[stage.up],  # pyright: ignore[reportArgumentType]
        infinite_grid=True,
        cell_size=stage.cell / 2.0,
        section_size=stage.cell,
        cell_color=(222, 226, 231),
        section_color=(190, 197, 206),
        fade_distance=12.0 * stage.extent.radius,
        shadow_opacity=0.0 if stage.extent.plane else 0.3,  # a plane has the shadows itself
    )


def add_scene(server: viser.ViserServer, stage: Stage) -> None:
    """Adds lights, camera, floor, and nodes of contacts and of what else the set has, which the
    script shows."""
    scene = server.scene
    camera = server.initial_camera
    extent = stage.extent
    frames = stage.frames
    _add_surroundings(scene, stage)
    camera.fov = FIELD_OF_VIEW
    camera.near = extent.radius / 500.0
    camera.far = extent.radius * 500.0
    camera.look_at = extent.center - stage.origin
    camera.position = camera.look_at + stage.camera
    clouds: dict[str, tuple[int, int, int]] = {"/contacts/touching": GAP, "/contacts/gap": GAP}
    if frames.against:
        clouds |= {f"{name}_second": AGAINST for name in [*clouds]}
    if frames.has_self_contacts:
        clouds["/contacts/self"] = SELF_COLOUR
    sheets: dict[str, tuple[int, int, int]] = {}
    if frames.surface_scale is not None:
        scene.add_arrows("/surfaces/forces", NO_ARROW, (0, 0, 0), visible=False)
        levels = (
            depth_colours(np.arange(float(LEVELS)), LEVELS - 1.0)
            if frames.has_faces
            else np.zeros((0, 3), int)
        )
        sheets = {
            f"/surfaces/{number:02d}": (r, g, b) for number, (r, g, b) in enumerate(levels.tolist())
        }
    if frames.has_particles:
        clouds["/particles/points"] = PARTICLES
        sheets["/particles/surfaces"] = PARTICLES
    if frames.contact_map is not None:
        colours = enumerate(level_colours())
        sheets |= {f"/map/{number:02d}": colour for number, colour in colours}
    _add_empty(scene, clouds, sheets, frames.has_particles)


Colours = Mapping[str, tuple[int, int, int]]


def _add_empty(scene: viser.SceneApi, clouds: Colours, sheets: Colours, cables: bool) -> None:
    """Adds invisible nodes of points and of triangles by name, and of lines of cables."""
    for name, colour in clouds.items():
        scene.add_point_cloud(
            name,
            CORNERS[:1],
            colour,
            point_size=1.0,
            point_shape="circle",
            precision="float32",
            visible=False,
        )
    if cables:
        scene.add_line_segments("/particles/cables", CORNERS[None, :2], PARTICLES, visible=False)
    scene.add_arrows("/contacts/normals", NO_ARROW, GAP, visible=False)
    for name, colour in sheets.items():
        scene.add_mesh_simple(
            name,
            CORNERS,
            TRIANGLE,
            color=colour,
            side="double",
            opacity=1.0,
            flat_shading=True,
            cast_shadow=name == "/particles/surfaces",
            receive_shadow=False,
            visible=False,
        )
