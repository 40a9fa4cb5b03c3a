"""A view as one HTML file: the client of viser as the renderer, the frames, and controls with a
script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.pages.view.arrays import packed, world_arrays
from collidecli.pages.view.colours import (
    AGAINST,
    GAP,
    OPACITY,
    OPACITY_OVER_SURFACES,
    PARTICLES,
    PICKED,
    SELF_COLOUR,
    depth_colours,
)
from collidecli.pages.view.contact_map import LEVELS as MAP_LEVELS
from collidecli.pages.view.contact_map import STEPS as MAP_STEPS
from collidecli.pages.view.frames import ViewFrames
from collidecli.pages.view.framing import (
    ARROW,
    FIELD_OF_VIEW,
    FORCE_LENGTH,
    GAP_POINT,
    HEAD,
    HEAD_LENGTH,
    POINT,
    SECOND_SHARE,
    SELF_POINT,
    SHAFT,
    Stage,
    seconds_between,
)
from collidecli.pages.view.legend import BOXES, SPEEDS, ended_words, legend, with_panel
from collidecli.pages.view.meshes import shape_groups
from collidecli.pages.view.nodes import (
    BEHIND_VISUALS,
    FAINT,
    SHEET_OPACITY,
    GroupNode,
    add_scene,
    recorder,
)
from collidecli.pages.view.surfaces import LEVELS
from collidecli.pages.view.touches import (
    MAX_LISTED,
    TouchingPair,
    TouchList,
    pair_words,
    touch_label,
)
from collidecli.wording import plural

if TYPE_CHECKING:
    import viser

NO_SHAPE = -1
"""Number of a particle object in place of a shape's row."""
MAX_WORLDS = 8
MAX_BYTES = 256 << 20
"""Most worlds that are drawn if none are chosen; largest size of the arrays of a page, before
compression."""
ITEM_BYTES = {
    "pose": 20,
    "contact": 20,
    "face": 60,
    "particle": 12,
    "self-contact": 14,
    "map point": 1,
}
"""Of an item of `ViewFrames.counts`."""


def view_page(
    frames: ViewFrames,
    touches: TouchList,
    title: str,
    up_axis: str,
    worlds: Sequence[int],
    progress=None,
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
        "groups": {
            template: [_group(node) for node in of_template]
            for template, of_template in nodes.items()
        },
        **_map_constants(frames, nodes),
        "worlds": [],
    }
    for number, world in enumerate(worlds):

        def read(read_count: int, done: int = number * len(frames)) -> None:
            if progress is not None:
                progress(done + read_count, len(worlds) * len(frames))

        template = _template(frames, world)
        data["worlds"].append(
            {"template": template, **_world(stage, world, nodes[template], touches, read)}
        )
    has = (
        len(frames.visual_colours),
        frames.surface_scale,
        frames.has_particles,
        frames.has_self_contacts,
        frames.contact_map is not None,
    )
    boxes = [name for name, of_template in zip(BOXES, has, strict=True) if of_template]
    return with_panel(page, data, title, legend(touches.deepest, frames), boxes)


def first_worlds(frames: ViewFrames) -> range:
    """The worlds that are drawn if none are chosen: the first ones, at most MAX_WORLDS, that fit on
    a page."""
    number = min(MAX_WORLDS, frames.world_count)
    while number > 1 and _array_bytes(frames, range(number)) > MAX_BYTES:
        number -= 1
    return range(number)


def _array_bytes(frames: ViewFrames, worlds: Sequence[int]) -> int:
    """About the size of the frames' arrays of some worlds, before compression."""
    return sum(ITEM_BYTES[name] * number for name, number in frames.counts(worlds).items())


def check_size(frames: ViewFrames, worlds: Sequence[int]) -> None:
    """Raises InputError for frames of some worlds that are too large for a page."""
    part = -(-_array_bytes(frames, worlds) // MAX_BYTES)
    if part > 1:
        large = max(frames.counts(worlds).items(), key=lambda item: ITEM_BYTES[item[0]] * item[1])
        raise InputError(
            f"a page of {plural(len(frames), 'frame')} is too large for a browser: it has"
            f" {plural(large[1], large[0])}",
            "collide view",
            f"draw one frame in {part} with --frames ::{part}, fewer worlds with --world, or give"
            " --to rerun",
        )


def _template(frames: ViewFrames, world: int) -> int:
    """Template of a world; -1 if no shapes are drawn."""
    return -1 if frames.model is None else int(frames.model.world_template[world])


def _nodes(
    scene: viser.SceneApi, stage: Stage, worlds: Sequence[int]
) -> dict[int, list[GroupNode]]:
    """Nodes of the shapes of each template, which are not visible before the script draws them."""
    frames = stage.frames
    model = stage.frames.model
    first = {_template(frames, world): world for world in reversed(worlds)}
    groups = [] if model is None else shape_groups(model, frames.shape_count)
    nodes: dict[int, list[GroupNode]] = {}
    for template, world in first.items():
        parts = [] if model is None else [group.of_rows(frames.rows(world)) for group in groups]
        rows = [(number, part) for number, part in enumerate(parts) if len(part.rows)]
        nodes[template] = [
            GroupNode(scene, f"/shapes/{template}/{number:03d}", part, stage)
            for number, part in rows
        ]
    return nodes


def _world(
    stage: Stage,
    world: int,
    nodes: Sequence[GroupNode],
    touches: TouchList,
    read: Callable[[int], None],
) -> dict[str, Any]:
    frames = stage.frames
    pairs = touches.of(world)
    listed = pairs[:MAX_LISTED]
    name = frames.world_name(world)
    pairs_text = plural(len(pairs), "pair") if pairs else "No pair touches"
    return {
        "number": world,
        "name": name,
        "ended_words": ended_words(name),
        "ended": [int(frames.ended(index, world)) for index in range(len(frames))],
        "pairs": [_pair(stage, pair) for pair in listed],
        "summary": (
            f"The {'first ' if frames.touch_only else ''}{MAX_LISTED}"
            f"{'' if frames.touch_only else ' deepest'} of {pairs_text}."
            if len(pairs) > MAX_LISTED
            else f"{pairs_text}."
        ),
        **world_arrays(stage, world, nodes, listed, touches.deepest, read),
    }


def _constants(stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    frames = stage.frames
    model = stage.frames.model
    rows = (
        {row for world in worlds for row in frames.rows(world).tolist()}
        if model is not None
        else ()
    )
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
        "field_of_view": FIELD_OF_VIEW,
        "follows": stage.follows,
        "touch_only": frames.touch_only,
        "paths": {} if model is None else {row: model.shapes.path[row] for row in sorted(rows)},
        "unit": stage.unit,
        "sizes": {"touching": POINT, "gap": GAP_POINT, "arrow": ARROW, "second": second},
        "arrow": {"shaft_radius": SHAFT, "head_radius": HEAD, "head_length": HEAD_LENGTH},
        "opacity": OPACITY if frames.surface_scale is None else OPACITY_OVER_SURFACES,
        "behind_visuals": BEHIND_VISUALS if len(frames.visual_colours) else 1.0,
        "picked_opacity": OPACITY,
        "faint": FAINT,
        "picked": PICKED,
        "gap": GAP,
        "against": AGAINST,
        "depths": depth_colours(np.arange(255.0), 254.0).ravel().tolist(),
        **_group_constants(stage, worlds),
    }


def _group_constants(stage: Stage, worlds: Sequence[int]) -> dict[str, Any]:
    constants = dict[str, Any]()
    frames = stage.frames
    if frames.has_self_contacts:
        constants["self_contacts"] = {"colour": SELF_COLOUR, "size": SELF_POINT}
    if (scale := frames.surface_scale) is not None:
        constants["surfaces"] = {
            "faces": scale.has_faces,
            "greatest": scale.greatest,
            "length": FORCE_LENGTH,
        }
        constants["surfaces"]["levels"] = LEVELS if scale.has_faces else 0
    if frames.has_particles:
        constants |= {"particles": {}, "sheet_opacity": SHEET_OPACITY, "particle_colour": PARTICLES}
        for world in worlds:
            drawn = stage.particles(world)
            constants["particles"][_template(frames, world)] = {
                "points": len(drawn.points),
                "diameter": drawn.diameter,
                "thickness": drawn.thickness,
                "triangles": drawn.triangle.ravel().tolist(),
                "lines": drawn.line.ravel().tolist(),
            }
    return constants


def _map_constants(frames: ViewFrames, nodes: Mapping[int, Sequence[GroupNode]]) -> dict[str, Any]:
    """The triangles of a contact map by template; a row is that of a shape among the nodes'."""
    if frames.contact_map is None:
        return {}
    triangles = {}
    for template, of_template in nodes.items():
        drawn = frames.contact_map.of_template(template)
        rows = np.concatenate([node.group.rows for node in of_template])
        order = np.argsort(rows, kind="stable")
        at = order[np.searchsorted(rows, drawn.row, sorter=order)]
        triangles[template] = packed(
            {"corner": drawn.corner, "row": at.astype(np.int32), "point": drawn.point}
        )
    about = {"levels": MAP_LEVELS, "touching": 1 + MAP_STEPS, "triangles": triangles}
    return {"map": {**about, "rows": frames.contact_map.rows.tolist()}}


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
    """An entry of the list of a world. at: indices of frames. focus: centre and distance for the
    camera."""
    focus = stage.focus(pair.shapes, pair.deepest.deepest, pair.world)
    center, distance = (np.zeros(3), stage.distance) if focus is None else focus
    return {
        # rows from `shape_count` on are those of visual meshes
        "shapes": [item if item < stage.frames.shape_count else NO_SHAPE for item in pair.shapes],
        "label": pair.label,
        "paths": pair.paths,
        "words": pair_words(pair),
        "touches": [
            touch_label(number, touch, stage.frames.number)
            for number, touch in enumerate(pair.touches, 1)
        ],
        "at": [[touch.first, touch.deepest, touch.last] for touch in pair.touches],
        "focus": [*center.tolist(), distance],
        "deepest": pair.deepest.deepest,
    }
