"""A view as a recording of Rerun: shapes, contacts and what else a set has on the timelines `frame`
and `time`.

Entities of world k begin with `world_<k>`: `shapes/<path>/shape`, `visuals/<path>/shape`,
`contacts/touching`, `/gap`, `/normals` and `/self`, `surfaces/faces` or `/forces`,
`particles/points`, `/cables` and `/surfaces`, and `depth/<a>/<b>`. Of a contact map the measured
shapes have a mesh with a texture, which changes with the frames, in place of their own geometry.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from collidecli.errors import extra_module
from collidecli.escaping import unicode_text
from collidecli.pages.view.colours import (
    AGAINST,
    GAP,
    OPACITY,
    OPACITY_OVER_SURFACES,
    PARTICLES,
    SELF_COLOUR,
    depth_colours,
    shape_colours,
)
from collidecli.pages.view.frames import ViewFrames
from collidecli.pages.view.framing import (
    ARROW,
    FORCE_LENGTH,
    GAP_POINT,
    POINT,
    SELF_POINT,
    SHAFT,
    Stage,
    below,
)
from collidecli.pages.view.meshes import DrawnMesh, shape_groups
from collidecli.pages.view.rerun_map import MappedShape, mapped_shapes
from collidecli.pages.view.surfaces import triangle_fans
from collidecli.pages.view.touches import MAX_LISTED, TouchList
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.temporary_folders import TemporaryFolder

CHUNK = 256
"""Frames that are read and sent together."""
PLOTTED = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (204, 121, 167),
    (0, 114, 178),
    (213, 94, 0),
    (120, 94, 240),
)
"""Colours of the pairs in the plot of a world at first, the deepest; the recording has
MAX_LISTED."""
TIMELINE = "time"
PLOT = "Depth of the deepest pairs [m]"
PLOT_OF_TOUCHES = "Pairs that touch"
package = partial(extra_module, "rerun-sdk", "rerun", "--to rerun")
"""A module of Rerun. Raises InputError if it is not installed."""


def write_recording(
    output: AtomicOutput,
    frames: ViewFrames,
    touches: TouchList,
    title: str,
    up_axis: str,
    worlds: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Writes some worlds as a recording. Raises InputError without Rerun."""
    rr = package("rerun")
    stage = Stage(frames, up_axis, worlds[0])
    recording = rr.RecordingStream("collide")
    with TemporaryFolder("rerun") as folder:
        path = os.path.join(folder, "view.rrd")
        recording.save(path, default_blueprint=_blueprint(rr, stage, touches, worlds))
        recording.send_recording_name(unicode_text(title))
        for number, world in enumerate(worlds):
            sender = _World(rr, recording, stage, touches, world)
            for first in range(0, len(frames), CHUNK):
                indices = range(first, min(first + CHUNK, len(frames)))
                sender.send(indices)
                if progress is not None:
                    progress(number * len(frames) + indices.stop, len(worlds) * len(frames))
            sender.send_depths()
        recording.flush()
        recording.disconnect()
        output.copy(path)


def _path(rr: Any, world: int, *parts: str) -> str:
    return rr.new_entity_path([f"world_{world}", *(part for part in parts if part)])


def _blueprint(rr: Any, stage: Stage, touches: TouchList, worlds: Sequence[int]) -> Any:
    """A 3D view and a plot of depths side by side; a tab for each world."""
    rrb = package("rerun.blueprint")
    center = stage.extent.center - stage.origin
    eye = rrb.EyeControls3D(
        position=center + stage.camera, look_target=center, eye_up=np.eye(3)[stage.up]
    )
    tabs = []
    for world in worlds:
        name = stage.frames.world_name(world)
        pairs = touches.of(world)[: len(PLOTTED)]
        deepest = [_path(rr, world, "depth", *pair.name.split(" × ")) for pair in pairs]
        legend = rrb.Corner2D.LeftTop
        plot = rrb.TimeSeriesView(
            origin=_path(rr, world),
            contents=deepest,
            name=PLOT if touches.has_depths else PLOT_OF_TOUCHES,
            plot_legend=legend,
        )
        hidden = {}
        if stage.frames.contact_map is not None:
            # They would hide the colours of the map.
            hidden = {_path(rr, world, "visuals"): rrb.EntityBehavior(visible=False)}
        view = rrb.Spatial3DView(
            origin=_path(rr, world), name=name, eye_controls=eye, overrides=hidden
        )
        tabs.append(rrb.Horizontal(view, plot, column_shares=[3, 2], name=name))
    both = rrb.Tabs(*tabs) if len(tabs) > 1 else tabs[0]
    return rrb.Blueprint(both, rrb.TimePanel(timeline=TIMELINE), collapse_panels=True)


class _World:
    """Sends a world in parts, and what it has in all frames at first."""

    def __init__(
        self, rr: Any, recording: Any, stage: Stage, touches: TouchList, world: int
    ) -> None:
        self._rr = rr
        self._recording = recording
        self._stage = stage
        self._world = world
        self._frames = stage.frames
        self._zero = stage.zero(world)
        self._deepest = touches.deepest
        self._pairs = touches.of(world)[:MAX_LISTED]
        self._depths = {pair.shapes: (array("q"), array("d")) for pair in self._pairs}
        self._moving: dict[int, str] = {}
        self._mapped: dict[int, MappedShape] = {}
        self._map_paths: dict[int, str] = {}
        if self._frames.contact_map is not None and self._frames.model is not None:
            template = int(self._frames.model.world_template[world])
            self._mapped = mapped_shapes(self._frames.contact_map, template)
        self._fixed(getattr(rr.ViewCoordinates, f"RIGHT_HAND_{'XYZ'[stage.up]}_UP"))
        for name, size in (("touching", POINT), ("gap", GAP_POINT), ("self", SELF_POINT)):
            self._fixed(rr.Points3D.from_fields(radii=0.5 * size * stage.unit), "contacts", name)
        self._fixed(
            rr.Arrows3D.from_fields(radii=SHAFT * ARROW * stage.unit), "contacts", "normals"
        )
        self._particles = stage.particles(world) if self._frames.has_particles else None
        if (drawn := self._particles) is not None:
            look = {"radii": 0.5 * drawn.diameter, "colors": PARTICLES}
            sheet = {"triangle_indices": drawn.triangle, "albedo_factor": PARTICLES}
            self._fixed(rr.Points3D.from_fields(**look), "particles", "points")
            if len(drawn.line):
                look["radii"] = 0.5 * drawn.thickness
                self._fixed(rr.LineStrips3D.from_fields(**look), "particles", "cables")
            self._fixed(rr.Mesh3D.from_fields(**sheet), "particles", "surfaces")
        if self._frames.model is not None:
            self._send_shapes()

    def _fixed(self, archetype: Any, *parts: str) -> None:
        self._recording.log(_path(self._rr, self._world, *parts), archetype, static=True)

    def _rows(self, path: str, indices: Sequence[int], columns: Any) -> None:
        """What an entity has in the frames of some indices."""
        rr = self._rr
        frames = self._frames
        rows = np.asarray(indices, int)
        if len(rows):
            numbers = rr.TimeColumn("frame", sequence=frames.number[rows])
            times = rr.TimeColumn(TIMELINE, duration=frames.time[rows])
            rr.send_columns(path, [numbers, times], columns, recording=self._recording)

    def _lists(
        self, parts: tuple[str, str], indices: range, kind: Any, **fields: Sequence[np.ndarray]
    ) -> None:
        """The items of an entity: of each field an array for each frame."""
        lengths = [len(values) for values in next(iter(fields.values()))]
        columns = kind.columns(**{name: np.concatenate(arrays) for name, arrays in fields.items()})
        self._rows(_path(self._rr, self._world, *parts), indices, columns.partition(lengths))

    def _send_shapes(self) -> None:
        frames = self._frames
        model = self._frames.model
        rr = self._rr
        stage = self._stage
        assert model is not None
        placed = frames.shape_poses(0, self._world)
        count = frames.shape_count
        opacity = OPACITY if frames.surface_scale is None else OPACITY_OVER_SURFACES
        colours = np.concatenate([shape_colours(model.shapes.body[:count]), frames.visual_colours])
        groups = [group.of_rows(frames.rows(self._world)) for group in shape_groups(model, count)]
        for group in groups:
            for row, scale in zip(group.rows.tolist(), group.scale, strict=True):
                static = model.shapes.body[row] < 0
                kind = ShapeType(model.shapes.type[row])
                # A path may continue that of another shape, whose transform would apply to it.
                parts = (
                    "visuals" if row >= count else "shapes",
                    *model.shapes.path[row].split("/"),
                    "shape",
                )
                alpha = 1.0 if row >= count else opacity * (0.5 if static else 1.0)
                colour = (*colours[row].tolist(), round(255 * alpha))
                scale = scale * (3.0 * stage.extent.radius if group.planes else 1.0)
                if (mapped := self._mapped.get(row)) is not None:
                    self._map_paths[row] = _path(rr, self._world, *parts)
                    drawn = mapped.mesh(rr)
                else:
                    size = model.shapes.size[row, :3]
                    drawn = _geometry(rr, kind, size, group.mesh, scale, colour)
                self._fixed(drawn, *parts)
                if static:
                    pose = (
                        below(placed[[row]], stage.extent.center)[0]
                        if group.planes
                        else placed[row]
                    )
                    self._fixed(
                        rr.Transform3D(translation=pose[:3] - self._zero, quaternion=pose[3:]),
                        *parts,
                    )
                else:
                    self._moving[row] = _path(rr, self._world, *parts)

    def send(self, indices: range) -> None:
        """Sends the frames of some indices."""
        frames = self._frames
        world = self._world
        rr = self._rr
        zero = self._zero
        recorded = [index for index in indices if not frames.ended(index, world)]
        if self._moving:
            poses = np.array([frames.shape_poses(index, world) for index in recorded]).reshape(
                len(recorded), -1, 7
            )
            for row, path in self._moving.items():
                at = poses[:, row, :3] - zero
                turn = poses[:, row, 3:]
                self._rows(path, recorded, rr.Transform3D.columns(translation=at, quaternion=turn))
        self._send_contacts(indices, [frames.contacts(index, world) for index in indices])
        if self._mapped:
            self._send_map(recorded)
        if frames.surface_scale is not None:
            self._send_surfaces(indices)
        if frames.has_self_contacts:
            cells = [frames.self_contacts(index, world) for index in indices]
            for index, cell in zip(indices, cells, strict=True):
                self._add_depths(index, cell["pair"], cell["distance"])
            points = [cell["point"] - zero for cell in cells]
            colours = [
                np.tile(np.array(SELF_COLOUR, np.uint8), (len(items), 1)) for items in points
            ]
            self._lists(
                ("contacts", "self"), indices, rr.Points3D, positions=points, colors=colours
            )
        if (drawn := self._particles) is not None:
            places = [frames.particles(index, world) - zero for index in indices]
            loose, corners = (
                [items[rows] for items in places] for rows in (drawn.points, drawn.corners)
            )
            self._lists(("particles", "points"), indices, rr.Points3D, positions=loose)
            if len(drawn.line):
                strips = [items[drawn.line.astype(int)] for items in corners]
                self._lists(("particles", "cables"), indices, rr.LineStrips3D, strips=strips)
            self._lists(("particles", "surfaces"), indices, rr.Mesh3D, vertex_positions=corners)

    def _send_contacts(self, indices: range, cells: Sequence[Mapping[str, np.ndarray]]) -> None:
        middle = [
            0.5 * (cell["point0"].astype(float) + cell["point1"]) - self._zero for cell in cells
        ]
        touching = [cell["distance"] <= 0.0 for cell in cells]
        colours = [depth_colours(-cell["distance"], self._deepest) for cell in cells]
        for colour, touches in zip(colours, touching, strict=True):
            colour[~touches] = GAP
        for colour, cell in zip(colours, cells, strict=True):
            colour[cell["second"]] = AGAINST
        for name, wanted in (("touching", True), ("gap", False)):
            chosen = [values == wanted for values in touching]
            points, painted = (
                [a[b] for a, b in zip(values, chosen, strict=True)] for values in (middle, colours)
            )
            self._lists(
                ("contacts", name), indices, self._rr.Points3D, positions=points, colors=painted
            )
        vectors = [ARROW * self._stage.unit * cell["normal"] for cell in cells]
        fields = {"vectors": vectors, "origins": middle, "colors": colours}
        self._lists(("contacts", "normals"), indices, self._rr.Arrows3D, **fields)
        for index, cell in zip(indices, cells, strict=True):
            rows = (cell["distance"] <= 0.0) & ~cell["second"]
            pairs = np.stack([cell["shape0"], cell["shape1"]], axis=1)[rows]
            self._add_depths(index, pairs, cell["distance"][rows])

    def _add_depths(self, index: int, pairs: np.ndarray, distance: np.ndarray) -> None:
        """Adds the depths of touching pairs in a frame. pairs: int[n, 2], items. distance: float[n]
        [m], above 0 for particle objects that touch each other."""
        for (one, other), each in zip(pairs.tolist(), distance.tolist(), strict=True):
            depths = self._depths.get((one, other))
            if depths is None:
                continue
            if not depths[0] or depths[0][-1] != index:
                depths[0].append(index)
                depths[1].append(0.0)
            depths[1][-1] = max(depths[1][-1], -each)

    def _send_map(self, indices: Sequence[int]) -> None:
        """Sends the textures of the measured shapes in the frames of some indices, each where it
        differs from the one before."""
        shown = self._frames.contact_map
        assert shown is not None
        if not indices:
            return
        frames = range(indices[0], indices[-1] + 1)
        levels = shown.levels(self._world, self._deepest, frames).T
        for row, path in self._map_paths.items():
            own = levels[:, self._mapped[row].points]
            changes = np.ones(len(own), bool)
            changes[1:] = (own[1:] != own[:-1]).any(axis=1)
            pixels = self._mapped[row].pixels(levels[changes])
            sent = (np.flatnonzero(changes) + frames.start).tolist()
            columns = self._rr.Mesh3D.columns(albedo_texture_buffer=list(pixels))
            self._rows(path, sent, columns)

    def _send_surfaces(self, indices: range) -> None:
        rr = self._rr
        scale = self._frames.surface_scale
        assert scale is not None
        cells = [self._frames.surfaces(index, self._world) for index in indices]
        if scale.has_faces:
            faces = [cell.faces for cell in cells]
            parts = ("surfaces", "faces")
            corners = [cell.corner - self._zero for cell in faces]
            colours = [
                depth_colours(np.repeat(scale.fraction(cell.pressure), cell.lengths), 1.0)
                for cell in faces
            ]
            self._lists(parts, indices, rr.Mesh3D, vertex_positions=corners, vertex_colors=colours)
            triangles = [triangle_fans(cell.lengths) for cell in faces]
            self._lists(parts, indices, rr.Mesh3D, triangle_indices=triangles)
        else:
            longest = FORCE_LENGTH * self._stage.unit / (scale.greatest or 1.0)
            colours = [
                depth_colours(scale.fraction(np.linalg.norm(cell.force, axis=1)), 1.0)
                for cell in cells
            ]
            vectors = [longest * cell.force for cell in cells]
            origins = [cell.center - self._zero for cell in cells]
            fields = {"vectors": vectors, "origins": origins, "colors": colours}
            self._lists(("surfaces", "forces"), indices, rr.Arrows3D, **fields)

    def send_depths(self) -> None:
        """Sends the depth of each pair [m] where it touches, 1 if no depth is known, and 0 in the
        frames before and after that."""
        last = len(self._frames) - 1
        for number, pair in enumerate(self._pairs):
            depth_at = dict(zip(*self._depths[pair.shapes], strict=True))
            if not pair.has_depth:
                spans = (range(touch.first, touch.last + 1) for touch in pair.touches)
                depth_at = dict.fromkeys(chain.from_iterable(spans), 1.0)
            parts = ("depth", *pair.name.split(" × "))
            near = {index + step for index in depth_at for step in (-1, 0, 1)}
            known = sorted({0, last, *(index for index in near if 0 <= index <= last)})
            depth = self._rr.Scalars.columns(scalars=[depth_at.get(index, 0.0) for index in known])
            self._rows(_path(self._rr, self._world, *parts), known, depth)
            look = {"colors": [PLOTTED[number]]} if number < len(PLOTTED) else {}
            self._fixed(self._rr.SeriesLines(names=pair.name, **look), *parts)


def _geometry(
    rr: Any, kind: ShapeType, size: np.ndarray, mesh: DrawnMesh, scale: np.ndarray, colour: tuple
) -> Any:
    """A shape in its own frame."""
    look = {"colors": [colour], "fill_mode": "solid"}
    if kind == ShapeType.BOX:
        return rr.Boxes3D(half_sizes=[size], **look)
    if kind in (ShapeType.SPHERE, ShapeType.ELLIPSOID):
        return rr.Ellipsoids3D(half_sizes=[scale], **look)
    if kind == ShapeType.CYLINDER:
        return rr.Cylinders3D(radii=[size[0]], lengths=[2.0 * size[1]], **look)
    if kind == ShapeType.CAPSULE:
        ends = {
            "radii": [size[0]],
            "lengths": [2.0 * size[1]],
            "translations": [(0.0, 0.0, -size[1])],
        }
        return rr.Capsules3D(**ends, **look)
    return rr.Mesh3D(
        vertex_positions=mesh.vertex * scale, triangle_indices=mesh.face, albedo_factor=colour
    )
