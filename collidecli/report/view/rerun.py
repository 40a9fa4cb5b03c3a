"""A view as a recording of Rerun: shapes, contacts and what else a set has on the timelines `frame` and `time`.

Entities of world k begin with `world_<k>`: `shapes/<path>/shape`, `visuals/<path>/shape`, `contacts/touching`, `/gap`,
`/normals` and `/self`, `surfaces/faces` or `/forces`, `particles/points` and `/surfaces`, and `depth/<pair>`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from collidecli.errors import extra_module
from collidecli.report.view import framing
from collidecli.report.view.framing import DrawnMesh, Frames, depth_colours, shape_groups, triangle_fans
from collidecli.report.view.stage import (
    ARROW,
    FORCE_LENGTH,
    GAP_POINT,
    MAX_LISTED,
    POINT,
    SELF_POINT,
    SHAFT,
    Stage,
    TouchingPair,
    TouchList,
    below,
    drawn_particles,
)
from collidecli.scene.shape_types import ShapeType
from collidecli.temporary_folders import TemporaryFolder

CHUNK = 256
"""Frames that are read and sent together."""
PLOTTED = 8
"""Pairs in the plot of a world at first, the deepest; the recording has MAX_LISTED."""
UP = {"X": "RIGHT_HAND_X_UP", "Y": "RIGHT_HAND_Y_UP", "Z": "RIGHT_HAND_Z_UP"}
TIMELINE, PLOT = "time", "Depth of the deepest pairs [m]"


def write_recording(
    output: IO[bytes],
    frames: Frames,
    touches: TouchList,
    title: str,
    up_axis: str,
    worlds: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Writes some worlds as a recording. Raises InputError without Rerun."""
    rr = rerun()
    stage = Stage(frames, up_axis, worlds[0])
    recording = rr.RecordingStream("collide")
    with TemporaryFolder("rerun") as folder:
        path = os.path.join(folder, "view.rrd")
        recording.save(path, default_blueprint=_blueprint(rr, stage, touches, worlds))
        recording.send_recording_name(title)
        for number, world in enumerate(worlds):
            sender = _Sender(rr, recording, frames, f"world_{world}")
            sender.fixed("", getattr(rr.ViewCoordinates, UP[up_axis]))
            for done in _send_world(sender, stage, touches, world):
                if progress is not None:
                    progress(number * len(frames) + done, len(worlds) * len(frames))
        recording.flush()
        recording.disconnect()
        with open(path, "rb") as file:
            shutil.copyfileobj(file, output, 1 << 20)


def rerun() -> Any:
    """Rerun's package. Raises InputError if it is not installed."""
    return extra_module("rerun-sdk", "rerun", "--to rerun", "rerun")


def _pair_name(pair: TouchingPair) -> str:
    return pair.label.rpartition(" · ")[0]


def _blueprint(rr: Any, stage: Stage, touches: TouchList, worlds: Sequence[int]) -> Any:
    """A 3D view and a plot of depths side by side; a tab for each world."""
    rrb, frames = extra_module("rerun-sdk", "rerun", "--to rerun", "rerun.blueprint"), stage.frames
    center = stage.extent.center - stage.origin
    eye = rrb.EyeControls3D(position=center + stage.camera, look_target=center, eye_up=np.eye(3)[stage.up])
    pairs = []
    for world in worlds:
        root, name = f"/world_{world}", frames.world_name(world)
        deepest = [rr.new_entity_path([root[1:], "depth", _pair_name(pair)]) for pair in touches.of(world)[:PLOTTED]]
        pairs.append(
            rrb.Horizontal(
                rrb.Spatial3DView(origin=root, name=name, eye_controls=eye),
                rrb.TimeSeriesView(
                    origin=f"{root}/depth", contents=deepest, name=PLOT, plot_legend=rrb.Corner2D.RightTop
                ),
                column_shares=[3, 2],
                name=name,
            )
        )
    view = rrb.Tabs(*pairs) if len(pairs) > 1 else pairs[0]
    return rrb.Blueprint(view, rrb.TimePanel(timeline=TIMELINE), collapse_panels=True)


class _Sender:
    """Sends what entities below `root` have, in some frames or in all."""

    def __init__(self, rr: Any, recording: Any, frames: Frames, root: str) -> None:
        self.rr, self._recording, self._frames, self._root = rr, recording, frames, root

    def path(self, *parts: str) -> str:
        return self.rr.new_entity_path([self._root, *(part for part in parts if part)])

    def fixed(self, path: str, *archetypes: Any) -> None:
        """What an entity has in all frames."""
        self._recording.log(path or self.path(), *archetypes, static=True)

    def columns(self, path: str, columns: Any, indices: np.ndarray, lengths: np.ndarray | None = None) -> None:
        """What an entity has in the frames of some indices. lengths: number of items in each; one without them."""
        rr, frames = self.rr, self._frames
        if len(indices):
            times = [
                rr.TimeColumn("frame", sequence=frames.number[indices]),
                rr.TimeColumn(TIMELINE, duration=frames.time[indices]),
            ]
            parts = columns if lengths is None else columns.partition(lengths)
            rr.send_columns(path, times, parts, recording=self._recording)


def _send_world(send: _Sender, stage: Stage, touches: TouchList, world: int) -> Iterator[int]:
    """Sends a world; yields the number of frames that are sent."""
    frames, zero = stage.frames, stage.zero(world)
    shapes = _Shapes(send, stage, world) if frames.model is not None else None
    depths = _Depths(touches.of(world)[:MAX_LISTED])
    _send_sizes(send, stage)
    for first in range(0, len(frames), CHUNK):
        indices = np.arange(first, min(first + CHUNK, len(frames)))
        recorded = np.array([not frames.ended(index, world) for index in indices.tolist()])
        if shapes is not None:
            shapes.send(indices[recorded])
        cells = [frames.contacts(index, world) for index in indices.tolist()]
        depths.add(first, cells)
        _send_contacts(send, cells, indices, zero, ARROW * stage.unit, touches.deepest)
        _send_groups(send, stage, indices, world)
        yield int(indices[-1]) + 1
    for pair, at, depth in depths.series(len(frames)):
        path = send.path("depth", _pair_name(pair))
        send.columns(path, send.rr.Scalars.columns(scalars=depth), at)
        send.fixed(path, send.rr.SeriesLines(names=_pair_name(pair)))


class _Shapes:
    """The shapes and visual geometry of a world."""

    def __init__(self, send: _Sender, stage: Stage, world: int) -> None:
        self._send, self._stage, self._world = send, stage, world
        frames, model = stage.frames, stage.frames.model
        assert model is not None
        self._moving: dict[int, str] = {}
        placed = frames.shape_poses(0, world)
        opacity = framing.OPACITY if frames.surface_scale is None else framing.OPACITY_OVER_SURFACES
        colours = np.concatenate(
            [framing.shape_colours(model.shapes.body[: frames.shape_count]), frames.visual_colours]
        )
        for group in shape_groups(model, frames.shape_count):
            group = group.of_rows(frames.rows(world))
            for row, scale in zip(group.rows.tolist(), group.scale, strict=True):
                visual, static = row >= frames.shape_count, model.shapes.body[row] < 0
                # A path may continue that of another shape, whose transform would apply to it.
                path = send.path("visuals" if visual else "shapes", *model.shapes.path[row].split("/"), "shape")
                alpha = 1.0 if visual else opacity * (0.5 if static else 1.0)
                colour = (*colours[row].tolist(), round(255 * alpha))
                scale = scale * (3.0 * stage.extent.radius if group.planes else 1.0)
                kind, size = ShapeType(model.shapes.type[row]), model.shapes.size[row]
                send.fixed(path, _geometry(send.rr, kind, size, group.mesh, scale, colour))
                if static:
                    pose = below(placed[[row]], stage.extent.center)[0] if group.planes else placed[row]
                    at = send.rr.Transform3D(translation=pose[:3] - stage.zero(world), quaternion=pose[3:])
                    send.fixed(path, at)
                else:
                    self._moving[row] = path

    def send(self, indices: np.ndarray) -> None:
        """The poses of the moving ones in some frames."""
        frames, zero, columns = self._stage.frames, self._stage.zero(self._world), self._send.rr.Transform3D.columns
        poses = np.array([frames.shape_poses(index, self._world) for index in indices.tolist()])
        for row, path in self._moving.items() if len(indices) else ():
            found = columns(translation=poses[:, row, :3] - zero, quaternion=poses[:, row, 3:])
            self._send.columns(path, found, indices)


def _geometry(rr: Any, kind: ShapeType, size: np.ndarray, mesh: DrawnMesh, scale: np.ndarray, colour: tuple) -> Any:
    """A shape in its own frame."""
    look = {"colors": [colour], "fill_mode": "solid"}
    if kind == ShapeType.BOX:
        return rr.Boxes3D(half_sizes=[size], **look)
    if kind in (ShapeType.SPHERE, ShapeType.ELLIPSOID):
        return rr.Ellipsoids3D(half_sizes=[scale], **look)
    if kind == ShapeType.CYLINDER:
        return rr.Cylinders3D(radii=[size[0]], lengths=[2.0 * size[1]], **look)
    if kind == ShapeType.CAPSULE:
        ends = {"radii": [size[0]], "lengths": [2.0 * size[1]], "translations": [(0.0, 0.0, -size[1])]}
        return rr.Capsules3D(**ends, **look)
    # A colour for each vertex would hide the alpha of the mesh's.
    return rr.Mesh3D(vertex_positions=mesh.vertex * scale, triangle_indices=mesh.face, albedo_factor=colour)


def _send_sizes(send: _Sender, stage: Stage) -> None:
    """The sizes of points and arrows, which are those of all frames."""
    rr, unit = send.rr, stage.unit
    for name, size in (("touching", POINT), ("gap", GAP_POINT), ("self", SELF_POINT)):
        send.fixed(send.path("contacts", name), rr.Points3D.from_fields(radii=0.5 * size * unit))
    send.fixed(send.path("contacts", "normals"), rr.Arrows3D.from_fields(radii=SHAFT * ARROW * unit))


def _send_contacts(
    send: _Sender,
    cells: Sequence[Mapping[str, np.ndarray]],
    indices: np.ndarray,
    zero: np.ndarray,
    arrow: float,
    deepest: float,
) -> None:
    rr = send.rr
    held = {name: np.concatenate([cell[name] for cell in cells]) for name in cells[0]}
    frame = np.repeat(np.arange(len(cells)), [len(cell["distance"]) for cell in cells])
    at = 0.5 * (held["point0"].astype(float) + held["point1"]) - zero
    touching = held["distance"] <= 0.0
    colours = np.where(touching[:, None], depth_colours(-held["distance"], deepest), framing.GAP).astype(np.uint8)
    for name, rows in (("touching", touching), ("gap", ~touching)):
        columns = rr.Points3D.columns(positions=at[rows], colors=colours[rows])
        send.columns(send.path("contacts", name), columns, indices, np.bincount(frame[rows], minlength=len(cells)))
    columns = rr.Arrows3D.columns(origins=at, vectors=arrow * held["normal"], colors=colours)
    send.columns(send.path("contacts", "normals"), columns, indices, np.bincount(frame, minlength=len(cells)))


def _send_groups(send: _Sender, stage: Stage, indices: np.ndarray, world: int) -> None:
    """Surfaces, self-contacts and particles in some frames, of sets and scenes that have them."""
    rr, frames, zero = send.rr, stage.frames, stage.zero(world)
    if (scale := frames.surface_scale) is not None:
        held = [frames.surfaces(index, world) for index in indices.tolist()]
        if scale.has_faces:
            faces = [each.faces for each in held]
            corner = np.concatenate([each.corner for each in faces]) - zero
            colours = [depth_colours(np.repeat(scale.fraction(f.pressure), f.lengths), 1.0) for f in faces]
            triangles = [triangle_fans(each.lengths) for each in faces]
            path, corners = send.path("surfaces", "faces"), np.array([len(each.corner) for each in faces])
            columns = rr.Mesh3D.columns(vertex_positions=corner, vertex_colors=np.concatenate(colours))
            send.columns(path, columns, indices, corners)
            columns = rr.Mesh3D.columns(triangle_indices=np.concatenate(triangles))
            send.columns(path, columns, indices, np.array([len(each) for each in triangles]))
        else:
            force = np.concatenate([each.force for each in held])
            longest = FORCE_LENGTH * stage.unit / (scale.greatest or 1.0)
            origins = np.concatenate([each.center for each in held]) - zero
            colours = depth_colours(scale.fraction(np.linalg.norm(force, axis=1)), 1.0)
            columns = rr.Arrows3D.columns(origins=origins, vectors=longest * force, colors=colours)
            send.columns(send.path("surfaces", "forces"), columns, indices, np.array([len(each) for each in held]))
    if frames.has_self_contacts:
        points = [frames.self_contacts(index, world) - zero for index in indices.tolist()]
        lengths = np.array([len(each) for each in points])
        colours = np.tile(np.array(framing.SELF, np.uint8), (int(lengths.sum()), 1))
        columns = rr.Points3D.columns(positions=np.concatenate(points), colors=colours)
        send.columns(send.path("contacts", "self"), columns, indices, lengths)
    if frames.has_particles:
        _send_particles(send, stage, indices, world)


def _send_particles(send: _Sender, stage: Stage, indices: np.ndarray, world: int) -> None:
    rr, frames, model = send.rr, stage.frames, stage.frames.model
    assert model is not None
    drawn = drawn_particles(model.particles, int(model.world_template[world]), stage.extent.radius)
    places = np.array([frames.particles(index, world)[drawn.rows] for index in indices.tolist()]) - stage.zero(world)
    loose, look = len(drawn.points), {"radii": 0.5 * drawn.diameter, "colors": framing.PARTICLES}
    parts = {
        "points": (places[:, :loose], rr.Points3D.from_fields(**look), rr.Points3D.columns, "positions"),
        "surfaces": (
            places[:, loose:],
            rr.Mesh3D.from_fields(triangle_indices=drawn.triangle, albedo_factor=framing.PARTICLES),
            rr.Mesh3D.columns,
            "vertex_positions",
        ),
    }
    for name, (points, fixed, columns, field) in parts.items():
        if points.shape[1]:
            path, count = send.path("particles", name), points.shape[1]
            send.fixed(path, fixed)
            lengths = np.full(len(indices), count)
            send.columns(path, columns(**{field: points.reshape(-1, 3)}), indices, lengths)


class _Depths:
    """The greatest depth of each of some pairs in each frame in which it touches."""

    def __init__(self, pairs: Sequence[TouchingPair]) -> None:
        self._pairs, self._found = pairs, [np.zeros((0, 3))]
        self._number = {pair.shapes: number for number, pair in enumerate(pairs)}

    def add(self, first: int, cells: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Contacts of the frames from index `first` on."""
        for index, cell in enumerate(cells, first):
            names = zip(cell["shape0"].tolist(), cell["shape1"].tolist(), strict=True)
            number = np.array([self._number.get(name, -1) for name in names], np.int64)
            rows = np.flatnonzero((number >= 0) & (cell["distance"] <= 0.0))
            found, place = np.unique(number[rows], return_inverse=True)
            depth = np.zeros(len(found))
            np.maximum.at(depth, place, -cell["distance"][rows].astype(float))
            self._found.append(np.column_stack([found, np.full(len(found), index), depth]))

    def series(self, frame_count: int) -> Iterator[tuple[TouchingPair, np.ndarray, np.ndarray]]:
        """Each pair, indices of frames, and depths [m]: where it touches, and 0 in the frames before and after that."""
        rows = np.concatenate(self._found)
        for number, pair in enumerate(self._pairs):
            at, depth = rows[rows[:, 0] == number, 1].astype(np.int64), rows[rows[:, 0] == number, 2]
            known = np.unique(np.concatenate([[0, frame_count - 1], at - 1, at, at + 1]))
            known = known[(known >= 0) & (known < frame_count)]
            values = np.zeros(len(known))
            values[np.searchsorted(known, at)] = depth
            yield pair, known, values
