"""A view as one HTML file: the client of viser as the renderer, the frames, and controls with a script."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from collidecli.escaping import script_json
from collidecli.report.view import framing
from collidecli.report.view.framing import LEVELS, OPACITY, Frames, Look, first_look
from collidecli.report.view.server import SPEEDS, ended_words, legend, pair_words, start_server
from collidecli.report.view.stage import (
    FAINT,
    FORCE_LENGTH,
    MAX_LISTED,
    MAX_RATE,
    SELF_SIZE,
    SHEET_OPACITY,
    GroupNode,
    Stage,
    TouchingPair,
    TouchList,
    seconds_between,
    touch_label,
)
from collidecli.scene.text_format import count, plural

# The motion and the contacts of a world as compressed arrays, which the script of a page draws.

POSITION_STEP = 1e-6
"""Resolution of positions, relative to the radius of the scene: far below a pixel."""
CONTACT_STEP = 1e-5
MOST_STEPS = 2.0**30
ROTATION_STEPS = 32767
NO_PAIR = 0xFFFF
"""Number of a contact's pair that is not listed."""


def world_arrays(
    frames: Frames,
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
    count = sum(len(node.group.rows) for node in groups)
    poses = np.zeros((len(frames), count, 7), np.float32)
    travel = np.zeros((len(frames), 3), np.float32)
    contacts = []
    for index in range(len(frames)):
        if groups:
            placed = frames.shape_poses(index, world)
            travel[index] = moved = stage.travel(placed, world, Look())
            center = stage.extent.center + stage.zero(world) - stage.origin + moved
            poses[index] = np.concatenate([node.drawn(placed, stage.zero(world), center) for node in groups])
        contacts.append(frames.contacts(index, world))
        progress(index + 1)
    radius = stage.extent.radius
    groups_held = _group_arrays(frames, stage, world, CONTACT_STEP * radius, pairs)
    moving = np.flatnonzero((poses != poses[:1]).any(axis=(0, 2)))
    step = max(POSITION_STEP * radius, float(np.abs(poses[..., :3]).max(initial=0.0)) / MOST_STEPS)
    arrays = {
        "rest": poses[0],
        "moving": moving.astype(np.int32),
        "position": _changes(poses[:, moving, :3], step, np.int32),
        "rotation": _changes(poses[:, moving, 3:], 1.0 / ROTATION_STEPS, np.int16),
        "travel": travel,
        **_contact_arrays(contacts, stage.zero(world), CONTACT_STEP * radius, pairs, deepest),
        **groups_held,
    }
    stored = {"particle_frames": groups_held["particle"].shape[-1]} if "particle" in groups_held else {}
    return {"position_step": step, "contact_step": CONTACT_STEP * radius, **stored, **_packed(arrays)}


def _changes(values: np.ndarray, step: float, kind: type) -> np.ndarray:
    """Differences between frames of rounded values [F, n, k], as [n, k, F]."""
    steps = np.rint(values.transpose(1, 2, 0) / step).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(kind)


def _contact_arrays(
    cells: Sequence[Mapping[str, np.ndarray]],
    zero: np.ndarray,
    step: float,
    pairs: Sequence[TouchingPair],
    deepest: float,
) -> dict[str, np.ndarray]:
    """start: first contact of each frame. Per contact: point [3, n], normal [3, n], depth, pair.

    depth: 0 in the gap, else 1 to 255, in proportion to the depth. pair: number of a listed pair.
    """
    held = {name: np.concatenate([cell[name] for cell in cells]) for name in cells[0]}
    middle = 0.5 * (held["point0"].astype(float) + held["point1"]) - zero
    points = np.clip(np.rint(middle.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
    depth = np.clip(-held["distance"] / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(middle))
    number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
    names = zip(held["shape0"].tolist(), held["shape1"].tolist(), strict=True)
    return {
        "start": np.cumsum([0, *(len(cell["distance"]) for cell in cells)]).astype(np.int32),
        "point": np.diff(points, axis=-1, prepend=0).astype(np.int32),
        "pair": np.array([number_of.get(name, NO_PAIR) for name in names], np.uint16),
        "normal": np.rint(127.0 * held["normal"].T).astype(np.int8),
        "depth": np.where(held["distance"] <= 0.0, 1 + np.rint(254.0 * depth), 0).astype(np.uint8),
    }


def _group_arrays(
    frames: Frames, stage: Stage, world: int, step: float, pairs: Sequence[TouchingPair]
) -> dict[str, np.ndarray]:
    """Arrays of surfaces, particles and self-contacts, of contact sets and scenes that have them.

    surface_start: first surface of each frame. Per surface: surface_pair, number of a listed pair; center and force
    [n, 3], or face_count. Per face: face_level, colour; face_corners, their number. corner: [3, n].
    particle: [n, 3, F], with one frame if none moves. self_start: first self-contact of each frame. self_point: [3, n].
    """
    arrays: dict[str, np.ndarray] = {}
    zero = stage.zero(world)
    if stage.surfaces is not None:
        held = [frames.surfaces(index, world) for index in range(len(frames))]
        number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
        names = [tuple(row) for surfaces in held for row in surfaces.pair.tolist()]
        arrays["surface_start"] = np.cumsum([0, *map(len, held)]).astype(np.int32)
        arrays["surface_pair"] = np.array([number_of.get(name, NO_PAIR) for name in names], np.uint16)
        if stage.surfaces.scale.has_faces:
            counts = [np.bincount(surfaces.faces.patch, minlength=len(surfaces)) for surfaces in held]
            arrays["face_count"] = np.concatenate(counts).astype(np.int32)
            level = [stage.surfaces.scale.level(surfaces.faces.pressure) for surfaces in held]
            arrays["face_level"] = np.concatenate(level)
            arrays["face_corners"] = np.concatenate([surfaces.faces.lengths for surfaces in held]).astype(np.uint16)
            corner = np.concatenate([surfaces.faces.corner for surfaces in held]) - zero
            steps = np.clip(np.rint(corner.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
            arrays["corner"] = np.diff(steps, axis=-1, prepend=0).astype(np.int32)
        else:
            arrays["center"] = np.concatenate([surfaces.center for surfaces in held]).astype(np.float64) - zero
            arrays["center"] = arrays["center"].astype(np.float32)
            arrays["force"] = np.concatenate([surfaces.force for surfaces in held]).astype(np.float32)
    if stage.particles is not None:
        rows = stage.particles.drawn(world).rows
        places = np.array([frames.particles(index, world)[rows] - zero for index in range(len(frames))])
        arrays["particle"] = _changes(places[:1] if (places == places[:1]).all() else places, step, np.int32)
    if stage.self_contacts is not None:
        near = [frames.self_contacts(index, world) for index in range(len(frames))]
        arrays["self_start"] = np.cumsum([0, *map(len, near)]).astype(np.int32)
        steps = np.clip(np.rint((np.concatenate(near) - zero).T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
        arrays["self_point"] = np.diff(steps, axis=-1, prepend=0).astype(np.int32)
    return arrays


def _packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays in descending order of the size of their items, so that each is aligned."""
    ordered = sorted(arrays.items(), key=lambda one: -one[1].dtype.itemsize)
    blob = b"".join(np.ascontiguousarray(array).tobytes() for _, array in ordered)
    table = [[name, array.dtype.name, array.size] for name, array in ordered]
    return {"arrays": table, "bytes": b64encode(gzip.compress(blob, 6, mtime=0)).decode("ascii")}


HERE = Path(__file__).parent
LOCAL = "127.0.0.1"
SCRIPTS = ("page_scene.js", "page_controls.js")
GROUP_SCRIPT = "page_groups.js"
"""Only on pages with surfaces or particles."""
BOXES = {"surfaces": "Surfaces", "particles": "Particles", "self_contacts": "Self-contacts"}
"""Labels of the checkboxes of what a set may have, by the field of `Look` and of `Stage`."""
MAX_FACES = 300_000
"""Largest number of faces of surfaces on a page, which is about 6 MiB of it."""
MAX_POSITIONS = 2_000_000
"""Largest number of positions of particles on a page: particles times frames and worlds."""
MAX_SELF_CONTACTS = 1_000_000
"""Largest number of self-contacts on a page."""


def view_page(
    frames: Frames, touches: TouchList, title: str, up_axis: str, worlds: Sequence[int], progress=None
) -> str:
    """HTML page of one or more worlds. Raises InputError without viser."""
    # viser records the nodes of a server, which has no clients and is stopped after the recording.
    server = start_server(LOCAL, 0)
    try:
        stage = Stage(server, frames, up_axis, touches.deepest, worlds[0])
        nodes = _nodes(frames, stage, worlds)
        data = {
            **_constants(frames, stage, up_axis, worlds),
            "groups": {template: [_group(node) for node in held] for template, held in nodes.items()},
            "worlds": [],
        }
        for number, world in enumerate(worlds):

            def read(read_count: int, done: int = number * len(frames)) -> None:
                if progress is not None:
                    progress(done + read_count, len(worlds) * len(frames))

            template = _template(frames, world)
            data["worlds"].append(
                {"template": template, **_world(frames, stage, world, nodes[template], touches, read)}
            )
        page = server.get_scene_serializer().as_html()
    finally:
        server.stop()
    return _with_panel(
        page, data, title, legend(touches.deepest, frames), [name for name in BOXES if getattr(stage, name) is not None]
    )


def page_frames(frames: Frames, worlds: Sequence[int]) -> tuple[Frames, list[str]]:
    """The frames without what exceeds the limits of a page, and a note of each."""
    notes = []
    faces = frames.face_count(worlds)
    if faces > MAX_FACES:
        notes.append(
            f"the page has arrows of the forces instead of surfaces: they have {count(faces)} faces, more than "
            f"{count(MAX_FACES)}; for surfaces, export at most one in {-(-faces // MAX_FACES)} of these frames "
            "with --frames"
        )
    positions = 0
    if frames.has_particles:
        assert frames.model is not None
        templates = frames.model.world_template[np.asarray(worlds)]
        positions = sum(len(frames.model.particles.of_template(int(each))) for each in templates) * len(frames)
    if positions > MAX_POSITIONS:
        notes.append(
            f"the page has no particles, only their contacts: they have {count(positions)} positions, more than "
            f"{count(MAX_POSITIONS)}; for particles, export at most one in {-(-positions // MAX_POSITIONS)} of these "
            "frames with --frames"
        )
    near = frames.self_contact_count(worlds)
    if near > MAX_SELF_CONTACTS:
        notes.append(
            f"the page has no self-contacts: they are {count(near)}, more than {count(MAX_SELF_CONTACTS)}; for these, "
            f"export at most one in {-(-near // MAX_SELF_CONTACTS)} of these frames with --frames"
        )
    if notes:
        frames = frames.without(faces > MAX_FACES, positions > MAX_POSITIONS, near > MAX_SELF_CONTACTS)
    return frames, notes


def _template(frames: Frames, world: int) -> int:
    """Template of a world; -1 if no shapes are drawn."""
    return -1 if frames.model is None else int(frames.model.world_template[world])


def _nodes(frames: Frames, stage: Stage, worlds: Sequence[int]) -> dict[int, list[GroupNode]]:
    """Nodes of the shapes of each template, which are not visible before the script draws them."""
    first = {_template(frames, world): world for world in reversed(worlds)}
    found = {
        template: stage.add_groups(world, f"/shapes/{template}") if template >= 0 else []
        for template, world in first.items()
    }
    for node in chain(*found.values()):
        node.visible = False
    return found


def _world(
    frames: Frames,
    stage: Stage,
    world: int,
    nodes: Sequence[GroupNode],
    touches: TouchList,
    read: Callable[[int], None],
) -> dict[str, Any]:
    pairs = touches.of(world)
    listed = pairs[:MAX_LISTED]
    name = frames.world_name(world)
    return {
        "name": name,
        "ended_words": ended_words(name),
        "ended": [int(frames.ended(index, world)) for index in range(len(frames))],
        "pairs": [_pair(frames, stage, pair) for pair in listed],
        "summary": _summary(len(pairs)),
        **world_arrays(frames, stage, world, nodes, listed, touches.deepest, read),
    }


def _summary(number: int) -> str:
    if not number:
        return "No pair of shapes touches."
    return (
        f"The {MAX_LISTED} deepest of {plural(number, 'pair')}."
        if number > MAX_LISTED
        else f"{plural(number, 'pair')}."
    )


def _constants(frames: Frames, stage: Stage, up_axis: str, worlds: Sequence[int]) -> dict[str, Any]:
    model = frames.model
    rows = {row for world in worlds for row in frames.rows(world).tolist()} if model is not None else ()
    return {
        "times": [seconds_between(frames, 0, index) for index in range(len(frames))],
        "clock": frames.time.tolist(),
        "frames": frames.number.tolist(),
        "rate": MAX_RATE,
        "speeds": SPEEDS,
        "up": "XYZ".index(up_axis),
        "radius": stage.extent.radius,
        "floor": stage.extent.floor - float(stage.origin["XYZ".index(up_axis)]),
        "origin": stage.origin.tolist(),
        "cell": stage.cell,
        "distance": stage.distance,
        "follows": stage.follows,
        "paths": {} if model is None else {row: model.shapes.path[row] for row in sorted(rows)},
        "unit": stage.unit,
        "opacity": first_look(frames.surface_scale is not None).opacity,
        "picked_opacity": OPACITY,
        "faint": FAINT,
        "picked": framing.PICKED,
        "gap": framing.GAP,
        "depths": framing.depth_colours(np.arange(255.0), 254.0).ravel().tolist(),
        **_group_constants(frames, stage, worlds),
    }


def _group_constants(frames: Frames, stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if stage.self_contacts is not None:
        found["self_contacts"] = {"colour": framing.SELF, "size": SELF_SIZE}
    if stage.surfaces is not None:
        scale = stage.surfaces.scale
        found["surfaces"] = {"faces": scale.has_faces, "greatest": scale.greatest, "length": FORCE_LENGTH}
        found["surfaces"]["levels"] = LEVELS if scale.has_faces else 0
    if stage.particles is not None:
        templates = {_template(frames, world): stage.particles.drawn(world) for world in worlds}
        found["particles"] = {
            template: {
                "points": len(drawn.points),
                "diameter": drawn.diameter,
                "triangles": drawn.triangle.ravel().tolist(),
            }
            for template, drawn in templates.items()
        }
        found["sheet_opacity"] = SHEET_OPACITY
        found["particle_colour"] = framing.PARTICLES
    return found


def _group(node: GroupNode) -> dict[str, Any]:
    """A node and its shapes. opacity: of each, relative to the chosen one."""
    return {
        "name": node.name,
        "rows": node.group.rows.tolist(),
        "colours": node.colours.ravel().tolist(),
        "opacity": node.relative_opacity().tolist(),
    }


def _pair(frames: Frames, stage: Stage, pair: TouchingPair) -> dict[str, Any]:
    """An entry of the list of a world. at: indices of frames. focus: centre and distance for the camera."""
    center, distance = stage.focus(pair.shapes, pair.deepest.deepest, pair.world, Look(follow=False)) or (
        np.zeros(3),
        stage.distance,
    )
    return {
        "shapes": pair.shapes,
        "label": pair.label,
        "paths": pair.paths,
        "words": pair_words(pair),
        "touches": [touch_label(number, touch, frames.number) for number, touch in enumerate(pair.touches, 1)],
        "at": [[touch.first, touch.deepest, touch.last] for touch in pair.touches],
        "focus": [*center.tolist(), distance],
        "deepest": pair.deepest.deepest,
    }


def _with_panel(page: str, data: dict[str, Any], title: str, legend_html: str, boxes: Sequence[str]) -> str:
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    names = (SCRIPTS[0], GROUP_SCRIPT, *SCRIPTS[1:]) if boxes else SCRIPTS
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in names)
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
    panel = re.sub(r"\$(TITLE|LEGEND|BOXES|SCRIPT|DATA)\b", lambda found: parts[found[1]], panel)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + panel + page[end:]
