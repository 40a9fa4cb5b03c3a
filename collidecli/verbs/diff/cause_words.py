"""Lines and columns about the causes of a difference: the scenes, the motions, common shapes."""

from __future__ import annotations

import math
from functools import partial

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column, more_text
from collidecli.verbs.diff.causes import EQUAL_RECORDINGS
from collidecli.verbs.diff.times import time_words
from collidecli.verbs.diff.value_words import both_values, deviation, short
from collidecli.wording import count, plural, some_names

POSES_UNKNOWN = "poses that follow from it in each scene are not compared"
"""Of equal recordings of which a scene is not found."""
MOST_LINES = 8
"""Differences of the scenes, and bodies that move otherwise, that have a line."""
KNOWN = {
    "scenes": "a shape that differs in the scenes:",
    "motions": "a body that moves otherwise:",
}
OF_ANY = {"scenes": "differences", "motions": "differing"}
"""The number in `causes` of what differs."""
MORE_OF_SCENES = "differences of the scenes"


def cause_lines(result: ResultDict) -> list[str]:
    """Lines about what all differing pairs have in common, and what differs between the scenes and
    between the motions."""
    causes = result["causes"]
    lines = _common_lines(result)
    if causes is None:
        return lines
    return [
        *lines,
        *_scene_lines(causes, result),
        *_motion_lines(causes, result),
        *_pair_lines(causes),
    ]


def _common_lines(result: ResultDict) -> list[str]:
    common = result["common"]
    if common is None:
        return []
    pairs = "both differing pairs"
    if common["pairs"] > 2:
        pairs = f"all {count(common['pairs'])} differing pairs"
    lines = []
    for item in common["items"]:
        kind = "" if item["kind"] == "shape" else f"the {item['kind']} "
        lines.append(f"{kind}{item['path']} is in {pairs}")
    told = result["causes"] is not None
    return [*lines, *([f"  {common['scenes']}"] if common["scenes"] and not told else [])]


def _scene_lines(causes: ResultDict, result: ResultDict) -> list[str]:
    scenes = causes["scenes"]
    if scenes["reason"]:
        return [scenes["reason"]]
    if not scenes["differences"] and result["model"]["differences"]:
        return ["no shape or body that both scenes have differs in size or pose"]
    if not scenes["differences"]:
        return ["no shape or body differs between the scenes: other content of their files does"]
    words = [plural(scenes["shape_count"], "shape")] if scenes["shape_count"] else []
    words += [plural(scenes["body_count"], "body", "bodies")] if scenes["body_count"] else []
    lines = [f"the scenes differ in {' and '.join(words)}"]
    listed = scenes["listed"][:MOST_LINES]
    for row in listed:
        kind = "" if row["kind"] == "shape" else f"the {row['kind']} "
        lines.append(f"  {kind}{row['path']}: its {row['what']} is {both_values(row)}")
    more = more_text(
        scenes["differences"] - len(listed), "difference of the scenes", MORE_OF_SCENES
    )
    return [*lines, *([f"  {more}"] if more else [])]


def _motion_lines(causes: ResultDict, result: ResultDict) -> list[str]:
    motions = causes["motions"]
    if motions["reason"]:
        reason = motions["reason"]
        if reason == EQUAL_RECORDINGS:
            return [f"{reason}: all recorded motion is equal; {POSES_UNKNOWN}"]
        told = reason == causes["scenes"]["reason"]
        return [f"the motions are not compared{'' if told else f': {reason}'}"]
    particles = ["  particles, which are not compared, may move otherwise"]
    particles = particles if motions["has_particles"] else []
    if not motions["differing"]:
        return ["no body moves otherwise: all poses are equal in the compared frames", *particles]
    frames = plural(motions["frames"], "frame")
    bodies = plural(motions["bodies"], "body", "bodies")
    lines = [f"the motions differ in {count(motions['differing'])} of {bodies}, in {frames}"]
    listed = [row for row in motions["listed"] if not row["with_parent"]][:MOST_LINES]
    worlds = result["worlds"]["a"] > 1
    lines += _joint_lines(motions["joints"], worlds)
    lines += [f"  {_body_line(row, worlds)}" for row in listed]
    moved = motions["with_parent"]
    if text := more_text(motions["differing"] - moved["bodies"] - len(listed), "body", "bodies"):
        lines.append(f"  {text}")
    if moved["bodies"]:
        bodies = plural(moved["bodies"], "body", "bodies")
        most = _most(moved)
        lines.append(f"  {bodies} moved with a parent, the farthest {moved['path']}: {most}")
    return [*lines, *particles]


def _joint_lines(joints: ResultDict | None, worlds: bool) -> list[str]:
    """Lines about the joints whose recorded positions differ, and those of one motion alone."""
    if joints is None:
        return []
    listed = joints["listed"][:MOST_LINES]
    lines = [f"  joint {row['name']}: {_since(row, worlds)}, {_turned(row)}" for row in listed]
    if text := more_text(joints["differing"] - len(listed), "joint", "joints"):
        lines.append(f"  {text}")
    for side in ("a", "b"):
        if names := joints[f"only_{side}"]:
            lines.append(f"  recorded in {side.upper()} only: joints {some_names(names)}")
    has_one_sided = any(joints[f"only_{side}"] for side in ("a", "b"))
    if joints["compared"] and not joints["differing"] and not has_one_sided:
        equal = "all joint positions that both recordings have are equal"
        lines.append(f"  {equal}: the scenes' joints, or poses of roots, differ")
    return lines


def _turned(row: ResultDict) -> str:
    """By how much a joint differs, in its unit."""
    most = f"by up to {deviation(row['most'], row['unit'])}"
    degrees = short(math.degrees(row["most"]), 3)
    return most if row["unit"] == "m" else f"{most} ({degrees} degrees)"


def _body_line(row: ResultDict, worlds: bool) -> str:
    return f"{row['path']}: {_since(row, worlds)}, {_most(row)}"


def _since(row: ResultDict, worlds: bool) -> str:
    """From when a joint or a body differs."""
    world = f", world {row['world']}" if worlds else ""
    return f"from frame {row['frame']}{world}{time_words(row['time'])}"


def _most(row: ResultDict) -> str:
    degrees = short(math.degrees(row["angle"]), 3)
    return f"by up to {deviation(row['distance'], 'm')} and {degrees} degrees"


def _pair_lines(causes: ResultDict) -> list[str]:
    pairs = causes["pairs"]
    names = [name for name in KNOWN if _is_known(causes, name)]
    if not pairs["differing"] or not names:
        return []
    of_all = f" of {count(pairs['differing'])}"
    words = [f"with {KNOWN[name]} {count(pairs[name])}{of_all}" for name in names]
    words += [f"with neither {count(pairs['neither'])}"] if len(names) > 1 else []
    return [f"differing pairs {', '.join(words)}"]


def _is_known(causes: ResultDict, name: str) -> bool:
    """Whether the scenes, or the motions, were compared and differ."""
    return not causes[name]["reason"] and causes[name][OF_ANY[name]] > 0


def cause_columns(result: ResultDict) -> list[Column]:
    """The columns of differing pairs that say in what their shapes differ; none if neither the
    scenes nor the motions are known to differ."""
    causes = result["causes"]
    if causes is None:
        return []
    names = [name for name in KNOWN if _is_known(causes, name)]
    return [(f"{name} differ", "left", partial(_cell, name=name)) for name in names]


def _cell(pair: ResultDict, name: str) -> str:
    paths = pair["causes"][name]
    shapes = list(dict.fromkeys((pair["shape0"], pair["shape1"])))
    if not paths:
        return "none"
    return "both" if len(paths) == len(shapes) > 1 else f"shape {shapes.index(paths[0])}"
