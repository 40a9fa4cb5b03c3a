"""A view as one HTML file: the client of viser as the renderer, the frames, and controls with a script."""

from __future__ import annotations

import gzip
import json
import re
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.report.tables import length, with_prefix
from collidecli.report.view import drawing
from collidecli.report.view.stage import (
    ARROW,
    FIELD_OF_VIEW,
    FORCE_LENGTH,
    GAP_POINT,
    HEAD,
    HEAD_LENGTH,
    MAX_LISTED,
    POINT,
    SECOND_SHARE,
    SELF_POINT,
    SHAFT,
    Stage,
    TouchingPair,
    TouchList,
    below,
    pair_words,
    seconds_between,
    touch_label,
)
from collidecli.texts import plural, script_json

if TYPE_CHECKING:
    import viser

# The nodes of a page, recorded by viser. Its script moves them.

CORNERS, TRIANGLE = np.zeros((3, 3), np.float32), np.array([[0, 1, 2]], np.uint32)
"""An invisible triangle, as a mesh has at least one."""
NO_ARROW = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]], np.float32)
FAINT = 0.1
"""Opacity of shapes outside the selected pair."""
BEHIND_VISUALS = 0.35
"""Opacity of shapes, relative to the chosen one, where visual meshes are drawn too."""
SHEET_OPACITY = 1.1
"""Opacity of cloths and soft bodies relative to that of shapes: the shading of a faint sheet cannot be seen."""
_REPLACING = threading.Lock()


@contextmanager
def recorder() -> Iterator[viser.ViserServer]:
    """A viser server that listens to no port and records its nodes. Raises InputError without viser.

    viser has no recorder without a server, so `websockets.asyncio.server.serve`, which it calls, is replaced meanwhile.
    """
    package = extra_module("viser", "view", "collide view")
    import rich
    from websockets.asyncio import server as sockets

    rich.get_console().quiet = True  # stdout is for results

    @asynccontextmanager
    async def serve(*_: Any, **options: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(server=SimpleNamespace(sockets=()))

    with _REPLACING:
        original, sockets.serve = sockets.serve, serve
        try:
            server = package.ViserServer(host="127.0.0.1", port=0, verbose=False)
        finally:
            sockets.serve = original
    try:
        if server.get_port():
            what = f"viser {package.__version__} starts its server in a manner that collide does not know"
            raise InputError(what, "collide view", "pip install 'viser==1.1.1'")
        yield server
    finally:
        server.stop()


class GroupNode:
    """The node of a group of shapes. group: its shapes. visual: they are visual geometry.

    colours: uint8[n, 3]. opacity: float64[n], relative to the chosen one: static shapes, such as walls, may cover
    moving shapes, and have half of it.
    """

    def __init__(self, scene: viser.SceneApi, name: str, group: drawing.ShapeGroup, stage: Stage) -> None:
        frames, rows, count = stage.frames, group.rows, len(group.rows)
        assert frames.model is not None
        self.name, self.group, self.visual = name, group, bool(rows[0] >= frames.shape_count)
        body = frames.model.shapes.body[rows]
        self.opacity = np.where((body < 0) & (not group.planes), 0.5, 1.0)
        self.colours = drawing.shape_colours(body)
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
        """float64[n, 7]: positions and rotations as xyzw. origin: drawn at 0. center: of the scene."""
        group_poses = poses[self.group.rows]
        if self.group.planes:
            group_poses = below(group_poses, center)
        return np.concatenate([group_poses[:, :3] - origin, group_poses[:, 3:]], axis=1)


def add_scene(server: viser.ViserServer, stage: Stage) -> None:
    """Adds lights, camera, floor, and nodes of contacts and of what else the set has, which the script shows."""
    scene, camera, extent, frames = server.scene, server.initial_camera, stage.extent, stage.frames
    scene.set_up_direction(np.eye(3)[stage.up])
    # With viser's default lights and environment map pale colours become white.
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_ambient("/lights/ambient", intensity=0.8)
    sun = np.roll([-0.35, 0.2, 1.0], (stage.up + 1) % 3)
    scene.add_light_directional("/lights/sun", intensity=1.7, position=tuple(sun.tolist()), cast_shadow=True)
    scene.add_grid(
        "/floor",
        plane=("yz", "xz", "xy")[stage.up],  # pyright: ignore[reportArgumentType]
        infinite_grid=True,
        cell_size=stage.cell / 2.0,
        section_size=stage.cell,
        cell_color=(222, 226, 231),
        section_color=(190, 197, 206),
        fade_distance=12.0 * extent.radius,
        shadow_opacity=0.0 if extent.plane else 0.3,  # a plane has the shadows itself
    )
    camera.fov, camera.near, camera.far = FIELD_OF_VIEW, extent.radius / 500.0, extent.radius * 500.0
    camera.look_at = extent.center - stage.origin
    camera.position = camera.look_at + stage.camera
    clouds: dict[str, tuple[int, int, int]] = {"/contacts/touching": drawing.GAP, "/contacts/gap": drawing.GAP}
    if frames.against:
        clouds |= {f"{name}_second": drawing.AGAINST for name in [*clouds]}
    if frames.has_self_contacts:
        clouds["/contacts/self"] = drawing.SELF_COLOUR
    sheets: dict[str, tuple[int, int, int]] = {}
    if frames.surface_scale is not None:
        scene.add_arrows("/surfaces/forces", NO_ARROW, (0, 0, 0), visible=False)
        levels = (
            drawing.depth_colours(np.arange(float(drawing.LEVELS)), drawing.LEVELS - 1.0)
            if frames.has_faces
            else np.zeros((0, 3), int)
        )
        sheets = {f"/surfaces/{number:02d}": (r, g, b) for number, (r, g, b) in enumerate(levels.tolist())}
    if frames.has_particles:
        clouds["/particles/points"], sheets["/particles/surfaces"] = drawing.PARTICLES, drawing.PARTICLES
    for name, colour in clouds.items():
        scene.add_point_cloud(
            name, CORNERS[:1], colour, point_size=1.0, point_shape="circle", precision="float32", visible=False
        )
    scene.add_arrows("/contacts/normals", NO_ARROW, drawing.GAP, visible=False)
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


# The motion and the contacts of a world as compressed arrays, which the script of a page draws.

POSITION_STEP = 1e-6
"""Resolution of positions, relative to the radius of the scene: far below a pixel."""
CONTACT_STEP = 1e-5
MOST_STEPS = 2.0**30
ROTATION_STEPS = 32767
NO_PAIR = 0xFFFF
"""Number of a contact's pair that is not listed."""


def world_arrays(
    stage: Stage,
    world: int,
    groups: Sequence[GroupNode],
    pairs: Sequence[TouchingPair],
    deepest: float,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """The frames of a world: `arrays` with name, type and shape of each array, and `bytes`, their compressed bytes.

    groups: nodes of its shapes. pairs: those that are listed. deepest: greatest depth of all contacts [m].
    progress: called with the number of frames that are read.
    """
    frames, zero, radius = stage.frames, stage.zero(world), stage.extent.radius
    poses = np.zeros((len(frames), sum(len(node.group.rows) for node in groups), 7), np.float32)
    travel = np.zeros((len(frames), 3), np.float32)
    contacts = []
    for index in range(len(frames)):
        if groups:
            placed = frames.shape_poses(index, world)
            travel[index] = moved = stage.travel(placed, world)
            center = stage.extent.center + zero - stage.origin + moved
            poses[index] = np.concatenate([node.drawn(placed, zero, center) for node in groups])
        contacts.append(frames.contacts(index, world))
        progress(index + 1)
    groups_held = _group_arrays(stage, world, CONTACT_STEP * radius, pairs)
    moving = np.flatnonzero((poses != poses[:1]).any(axis=(0, 2)))
    step = max(POSITION_STEP * radius, float(np.abs(poses[..., :3]).max(initial=0.0)) / MOST_STEPS)
    # depth: 0 in the gap, else 1 to 255. pair: of a listed pair. second: 1 for contacts of a second set.
    joined = {name: np.concatenate([cell[name] for cell in contacts]) for name in contacts[0]}
    middle = 0.5 * (joined["point0"].astype(float) + joined["point1"]) - zero
    depth = np.clip(-joined["distance"] / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(middle))
    arrays = {
        "rest": poses[0],
        "moving": moving.astype(np.int32),
        "position": _changes(poses[:, moving, :3], step, np.int32),
        "rotation": _changes(poses[:, moving, 3:], 1.0 / ROTATION_STEPS, np.int16),
        "travel": travel,
        "start": np.cumsum([0, *(len(cell["distance"]) for cell in contacts)]).astype(np.int32),
        "point": _point_changes(middle, CONTACT_STEP * radius),
        "pair": _pair_numbers(pairs, np.stack([joined["shape0"], joined["shape1"]], axis=1)),
        "normal": np.rint(127.0 * joined["normal"].T).astype(np.int8),
        "depth": np.where(joined["distance"] <= 0.0, 1 + np.rint(254.0 * depth), 0).astype(np.uint8),
        **({"second": joined["second"].astype(np.uint8)} if joined["second"].any() else {}),
        **groups_held,
    }
    stored = {"particle_frames": groups_held["particle"].shape[-1]} if "particle" in groups_held else {}
    return {"position_step": step, "contact_step": CONTACT_STEP * radius, **stored, **_packed(arrays)}


def _changes(values: np.ndarray, step: float, kind: type) -> np.ndarray:
    """Differences between frames of rounded values [F, n, k], as [n, k, F]."""
    steps = np.rint(values.transpose(1, 2, 0) / step).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(kind)


def _point_changes(points: np.ndarray, step: float) -> np.ndarray:
    """int32[3, n]: differences between rounded points [n, 3]."""
    steps = np.clip(np.rint(points.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(np.int32)


def _pair_numbers(pairs: Sequence[TouchingPair], rows: np.ndarray) -> np.ndarray:
    """uint16[n]: numbers of listed pairs of shapes, NO_PAIR for others. rows: [n, 2]."""
    number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
    return np.array([number_of.get((one, other), NO_PAIR) for one, other in rows.tolist()], np.uint16)


def _group_arrays(stage: Stage, world: int, step: float, pairs: Sequence[TouchingPair]) -> dict[str, np.ndarray]:
    """Arrays of surfaces, particles and self-contacts, of contact sets and scenes that have them.

    surface_start: first surface of each frame. Per surface: surface_pair, number of a listed pair; center and force
    [n, 3], or face_count. Per face: face_level, colour; face_corners, their number. corner: [3, n].
    particle: [n, 3, F], with one frame if none moves. self_start: first self-contact of each frame. self_point: [3, n].
    """
    arrays: dict[str, np.ndarray] = {}
    frames, zero = stage.frames, stage.zero(world)
    if frames.surface_scale is not None:
        cells = [frames.surfaces(index, world) for index in range(len(frames))]
        arrays["surface_start"] = np.cumsum([0, *map(len, cells)]).astype(np.int32)
        arrays["surface_pair"] = _pair_numbers(pairs, np.concatenate([surfaces.pair for surfaces in cells]))
        if frames.has_faces:
            counts = [np.bincount(surfaces.faces.patch, minlength=len(surfaces)) for surfaces in cells]
            arrays["face_count"] = np.concatenate(counts).astype(np.int32)
            arrays["face_level"] = np.concatenate([frames.surface_scale.level(cell.faces.pressure) for cell in cells])
            arrays["face_corners"] = np.concatenate([surfaces.faces.lengths for surfaces in cells]).astype(np.uint16)
            corner = np.concatenate([surfaces.faces.corner for surfaces in cells])
            arrays["corner"] = _point_changes(corner - zero, step)
        else:
            center = np.concatenate([surfaces.center for surfaces in cells]).astype(np.float64)
            arrays["center"] = (center - zero).astype(np.float32)
            arrays["force"] = np.concatenate([surfaces.force for surfaces in cells]).astype(np.float32)
    if frames.has_particles:
        rows = stage.particles(world).rows
        places = np.array([frames.particles(index, world)[rows] - zero for index in range(len(frames))])
        arrays["particle"] = _changes(places[:1] if (places == places[:1]).all() else places, step, np.int32)
    if frames.has_self_contacts:
        near = [frames.self_contacts(index, world) for index in range(len(frames))]
        arrays["self_start"] = np.cumsum([0, *map(len, near)]).astype(np.int32)
        arrays["self_point"] = _point_changes(np.concatenate(near) - zero, step)
    return arrays


def _packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays in descending order of the size of their items, so that each is aligned."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    blob = b"".join(np.ascontiguousarray(array).tobytes() for _, array in ordered)
    table = [[name, array.dtype.name, array.size] for name, array in ordered]
    return {"arrays": table, "bytes": b64encode(gzip.compress(blob, 6, mtime=0)).decode("ascii")}


HERE = Path(__file__).parent
SCRIPTS = ("page_scene.js", "page_groups.js", "page_controls.js")
BOXES = {"visuals": "Visual meshes", "surfaces": "Surfaces", "particles": "Particles", "self_contacts": "Self-contacts"}
"""Labels of the checkboxes of what a set or scene may have."""
MAX_WORLDS, MAX_BYTES = 8, 256 << 20
"""Most worlds that are drawn if none are chosen; largest size of the arrays of a page, before compression."""
ITEM_BYTES = {"pose": 20, "contact": 20, "face": 60, "particle": 12, "self-contact": 12}
"""Of an item of `ViewFrames.counts`."""


def view_page(
    frames: drawing.ViewFrames, touches: TouchList, title: str, up_axis: str, worlds: Sequence[int], progress=None
) -> str:
    """HTML page of one or more worlds. Raises InputError without viser, and see `check_size`."""
    check_size(frames, worlds)
    with recorder() as server:
        stage = Stage(frames, up_axis, worlds[0])
        add_scene(server, stage)
        nodes = _nodes(server.scene, stage, worlds)
        page = server.get_scene_serializer().as_html()
    data = {
        **_constants(stage, worlds),
        "groups": {template: [_group(node) for node in of_template] for template, of_template in nodes.items()},
        "worlds": [],
    }
    for number, world in enumerate(worlds):

        def read(read_count: int, done: int = number * len(frames)) -> None:
            if progress is not None:
                progress(done + read_count, len(worlds) * len(frames))

        template = _template(frames, world)
        data["worlds"].append({"template": template, **_world(stage, world, nodes[template], touches, read)})
    has = len(frames.visual_colours), frames.surface_scale, frames.has_particles, frames.has_self_contacts
    boxes = [name for name, of_template in zip(BOXES, has, strict=True) if of_template]
    return _with_panel(page, data, title, legend(touches.deepest, frames), boxes)


def first_worlds(frames: drawing.ViewFrames) -> range:
    """The worlds that are drawn if none are chosen: the first ones, at most MAX_WORLDS, that fit on a page."""
    number = min(MAX_WORLDS, frames.world_count)
    while number > 1 and _array_bytes(frames, range(number)) > MAX_BYTES:
        number -= 1
    return range(number)


def _array_bytes(frames: drawing.ViewFrames, worlds: Sequence[int]) -> int:
    """About the size of the frames' arrays of some worlds, before compression."""
    return sum(ITEM_BYTES[name] * number for name, number in frames.counts(worlds).items())


def check_size(frames: drawing.ViewFrames, worlds: Sequence[int]) -> None:
    """Raises InputError for frames of some worlds that are too large for a page."""
    part = -(-_array_bytes(frames, worlds) // MAX_BYTES)
    if part > 1:
        large = max(frames.counts(worlds).items(), key=lambda item: ITEM_BYTES[item[0]] * item[1])
        raise InputError(
            f"a page of {plural(len(frames), 'frame')} is too large for a browser: it has {plural(large[1], large[0])}",
            "collide view",
            f"draw one frame in {part} with --frames ::{part}, fewer worlds with --world, or give --to rerun",
        )


def _template(frames: drawing.ViewFrames, world: int) -> int:
    """Template of a world; -1 if no shapes are drawn."""
    return -1 if frames.model is None else int(frames.model.world_template[world])


def _nodes(scene: viser.SceneApi, stage: Stage, worlds: Sequence[int]) -> dict[int, list[GroupNode]]:
    """Nodes of the shapes of each template, which are not visible before the script draws them."""
    frames, model = stage.frames, stage.frames.model
    first = {_template(frames, world): world for world in reversed(worlds)}
    groups = [] if model is None else drawing.shape_groups(model, frames.shape_count)
    nodes: dict[int, list[GroupNode]] = {}
    for template, world in first.items():
        parts = [] if model is None else [group.of_rows(frames.rows(world)) for group in groups]
        rows = [(number, part) for number, part in enumerate(parts) if len(part.rows)]
        nodes[template] = [GroupNode(scene, f"/shapes/{template}/{number:03d}", part, stage) for number, part in rows]
    return nodes


def _world(
    stage: Stage,
    world: int,
    nodes: Sequence[GroupNode],
    touches: TouchList,
    read: Callable[[int], None],
) -> dict[str, Any]:
    frames, pairs = stage.frames, touches.of(world)
    listed, name = pairs[:MAX_LISTED], frames.world_name(world)
    pairs_text = plural(len(pairs), "pair") if pairs else "No pair of shapes touches"
    return {
        "number": world,
        "name": name,
        "ended_words": ended_words(name),
        "ended": [int(frames.ended(index, world)) for index in range(len(frames))],
        "pairs": [_pair(stage, pair) for pair in listed],
        "summary": f"The {MAX_LISTED} deepest of {pairs_text}." if len(pairs) > MAX_LISTED else f"{pairs_text}.",
        **world_arrays(stage, world, nodes, listed, touches.deepest, read),
    }


def _constants(stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    frames, model = stage.frames, stage.frames.model
    rows = {row for world in worlds for row in frames.rows(world).tolist()} if model is not None else ()
    second = SECOND_SHARE if frames.against else 0.0
    return {
        "times": [seconds_between(frames, 0, index) for index in range(len(frames))],
        "clock": frames.time.tolist(),
        "frames": frames.number.tolist(),
        "speeds": SPEEDS,
        "up": stage.up,
        "radius": stage.extent.radius,
        "floor": stage.extent.floor - float(stage.origin[stage.up]),
        "origin": stage.origin.tolist(),
        "cell": stage.cell,
        "distance": stage.distance,
        "follows": stage.follows,
        "paths": {} if model is None else {row: model.shapes.path[row] for row in sorted(rows)},
        "unit": stage.unit,
        "sizes": {"touching": POINT, "gap": GAP_POINT, "arrow": ARROW, "second": second},
        "arrow": {"shaft_radius": SHAFT, "head_radius": HEAD, "head_length": HEAD_LENGTH},
        "opacity": drawing.OPACITY if frames.surface_scale is None else drawing.OPACITY_OVER_SURFACES,
        "behind_visuals": BEHIND_VISUALS if len(frames.visual_colours) else 1.0,
        "picked_opacity": drawing.OPACITY,
        "faint": FAINT,
        "picked": drawing.PICKED,
        "gap": drawing.GAP,
        "against": drawing.AGAINST,
        "depths": drawing.depth_colours(np.arange(255.0), 254.0).ravel().tolist(),
        **_group_constants(stage, worlds),
    }


def _group_constants(stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    constants, frames = dict[str, Any](), stage.frames
    if frames.has_self_contacts:
        constants["self_contacts"] = {"colour": drawing.SELF_COLOUR, "size": SELF_POINT}
    if (scale := frames.surface_scale) is not None:
        constants["surfaces"] = {"faces": scale.has_faces, "greatest": scale.greatest, "length": FORCE_LENGTH}
        constants["surfaces"]["levels"] = drawing.LEVELS if scale.has_faces else 0
    if frames.has_particles:
        constants |= {"particles": {}, "sheet_opacity": SHEET_OPACITY, "particle_colour": drawing.PARTICLES}
        for world in worlds:
            drawn = stage.particles(world)
            sizes = {"points": len(drawn.points), "diameter": drawn.diameter}
            triangles = drawn.triangle.ravel().tolist()
            constants["particles"][_template(frames, world)] = {**sizes, "triangles": triangles}
    return constants


def _group(node: GroupNode) -> dict[str, Any]:
    """A node and its shapes. opacity: of each, relative to the chosen one."""
    return {
        "name": node.name,
        "visual": node.visual,
        "rows": node.group.rows.tolist(),
        "colours": node.colours.ravel().tolist(),
        "opacity": node.opacity.tolist(),
    }


def _pair(stage: Stage, pair: TouchingPair) -> dict[str, Any]:
    """An entry of the list of a world. at: indices of frames. focus: centre and distance for the camera."""
    focus = stage.focus(pair.shapes, pair.deepest.deepest, pair.world)
    center, distance = (np.zeros(3), stage.distance) if focus is None else focus
    return {
        "shapes": pair.shapes,
        "label": pair.label,
        "paths": pair.paths,
        "words": pair_words(pair),
        "touches": [touch_label(number, touch, stage.frames.number) for number, touch in enumerate(pair.touches, 1)],
        "at": [[touch.first, touch.deepest, touch.last] for touch in pair.touches],
        "focus": [*center.tolist(), distance],
        "deepest": pair.deepest.deepest,
    }


# The legend of a page, and what else its panel says.

SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")


def ended_words(name: str) -> str:
    """Status of a frame outside the demonstrations of a world."""
    return f"ended: {name} has no recorded frame here"


def legend(deepest: float, frames: drawing.ViewFrames) -> str:
    """Legend of the colours, as HTML."""
    surfaces = frames.surface_scale
    swatches = _gradient("depth", length(deepest))
    if surfaces is not None:
        swatches += _gradient(f"{surfaces.quantity} of surfaces", with_prefix(surfaces.greatest, surfaces.unit))
    swatches += _swatch(drawing.GAP, "in the gap: not touching")
    if frames.has_self_contacts:
        swatches += _swatch(drawing.SELF_COLOUR, "self-contact of cloths or soft bodies")
    if frames.against:
        swatches += _swatch(drawing.AGAINST, escape(f"of {frames.against}"))
    return swatches


def _gradient(name: str, end: str) -> str:
    depths = ", ".join(map(drawing.css, drawing.DEPTHS))
    bar = f"height: 0.7em; border-radius: 0.2em; background: linear-gradient(90deg, {depths})"
    ends = f"<span>0</span><span>{name}</span><span>{end}</span>"
    return f'<div style="{bar}"></div><div style="display: flex; justify-content: space-between">{ends}</div>'


def _swatch(colour: tuple[int, int, int], text: str) -> str:
    return f'<div><span class="dot" style="background: {drawing.css(colour)}"></span>{text}</div>'


def _with_panel(page: str, data: dict[str, Any], title: str, legend_html: str, boxes: Sequence[str]) -> str:
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "LEGEND": legend_html,
        "BOXES": "".join(
            f'\n      <label><input type="checkbox" id="collide-{name}" checked> {BOXES[name]}</label>'
            for name in boxes
        ),
        "SCRIPT": script,
        "DATA": script_json(json.dumps(data, separators=(",", ":"))),
    }
    # In one pass, as a title may contain $DATA.
    panel = re.sub(r"\$(TITLE|LEGEND|BOXES|SCRIPT|DATA)\b", lambda match: parts[match[1]], panel)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + panel + page[end:]
