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
from collidecli.report.view.page_data import world_arrays
from collidecli.report.view.panel import SPEEDS, ended_words, legend, pair_words
from collidecli.report.view.player import MAX_RATE, seconds_between
from collidecli.report.view.server import start_server
from collidecli.report.view.stage import CONTACT_SIZE, FAINT, OPACITY, GroupNode, Look, Stage
from collidecli.report.view.touch_list import MAX_LISTED, TouchingPair, TouchList, touch_label
from collidecli.scene.text_format import plural

HERE = Path(__file__).parent
LOCAL = "127.0.0.1"
SCRIPTS = ("page_scene.js", "page_controls.js")


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

            def read(count: int, done: int = number * len(frames)) -> None:
                if progress is not None:
                    progress(done + count, len(worlds) * len(frames))

            template = _template(frames, world)
            data["worlds"].append(
                {"template": template, **_world(frames, stage, world, nodes[template], touches, read)}
            )
        page = server.get_scene_serializer().as_html()
    finally:
        server.stop()
    return _with_panel(page, data, title, touches.deepest)


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


def _summary(count: int) -> str:
    if not count:
        return "No pair touches."
    return (
        f"The {MAX_LISTED} deepest of {plural(count, 'pair')}." if count > MAX_LISTED else f"{plural(count, 'pair')}."
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
        "size": CONTACT_SIZE,
        "opacity": OPACITY,
        "faint": FAINT,
        "picked": colours.PICKED,
        "gap": colours.GAP,
        "depths": colours.depth_colours(np.arange(255.0), 254.0).ravel().tolist(),
    }


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


def _with_panel(page: str, data: dict[str, Any], title: str, deepest: float) -> str:
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "LEGEND": legend(deepest),
        "SCRIPT": script,
        "DATA": script_json(json.dumps(data, separators=(",", ":"))),
    }
    # In one pass, as a title may contain $DATA.
    panel = re.sub(r"\$(TITLE|LEGEND|SCRIPT|DATA)\b", lambda found: parts[found[1]], panel)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + panel + page[end:]
