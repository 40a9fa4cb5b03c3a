"""A view as one HTML file: the client of viser as the renderer, the frames, and controls with a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from collidecli.escaping import script_json
from collidecli.report.view import colours
from collidecli.report.view.framing import Frames
from collidecli.report.view.group_nodes import FORCE_LENGTH, SELF_SIZE, SHEET_OPACITY
from collidecli.report.view.look import OPACITY, Look, first_look
from collidecli.report.view.page_data import world_arrays
from collidecli.report.view.panel import SPEEDS, ended_words, legend, pair_words
from collidecli.report.view.player import MAX_RATE, seconds_between
from collidecli.report.view.server import start_server
from collidecli.report.view.stage import FAINT, GroupNode, Stage
from collidecli.report.view.surfaces import LEVELS
from collidecli.report.view.touch_list import MAX_LISTED, TouchingPair, TouchList, touch_label
from collidecli.scene.text_format import count, plural

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
    return _with_panel(page, data, title, legend(touches.deepest, frames), _boxes(stage))


def _boxes(stage: Stage) -> list[str]:
    """The checkboxes of what the contact set has beside rigid contacts."""
    return [name for name in BOXES if getattr(stage, name) is not None]


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
    """What the script shares with the viewer that is served."""
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
        "picked": colours.PICKED,
        "gap": colours.GAP,
        "depths": colours.depth_colours(np.arange(255.0), 254.0).ravel().tolist(),
        **_group_constants(frames, stage, worlds),
    }


def _group_constants(frames: Frames, stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if stage.self_contacts is not None:
        found["self_contacts"] = {"colour": colours.SELF, "size": SELF_SIZE}
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
        found["particle_colour"] = colours.PARTICLES
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
