"""The verb `merge`: the contact set of one run from contact sets of its disjoint frames or worlds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from collidecli.commands.merge_plan import (
    MergePlan,
    check_same_worlds,
    demos_of,
    merged_blocks,
    plan_frames,
    plan_worlds,
)
from collidecli.commands.merge_timing import merged_timing
from collidecli.commands.output_paths import check_output
from collidecli.commands.result import Result
from collidecli.errors import InputError
from collidecli.scene.contacts import OPTIONAL_COLUMNS, RIGID_COLUMNS, Column, ContactBlock
from collidecli.scene.run_options import recorded_option
from collidecli.storage.contact_sets.merged_writer import MergedHeader, write_merged
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.stored_tables import StoredTable, check_groups, model_attributes, model_tables
from collidecli.storage.process_activity import reading

WORLD_TEMPLATE = "/model/world/template"
DIFFER_BY_FRAMES, DIFFER_BY_WORLDS = ("frames",), ("worlds", "demos", "frames")
"""Options in which the runs of the merged sets may differ."""
SAME_RUN = "make the sets again, of one scene with the same options"

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True)
class MergeRequest:
    """Contact sets to merge, at least two, and the output. worlds: they have equal frames and disjoint worlds.

    Otherwise they have equal worlds and disjoint frames.
    """

    contacts: Sequence[str]
    output: str
    worlds: bool = False
    compression: str = "gzip"
    force: bool = False


@dataclass(frozen=True)
class MergeResult(Result):
    """Merged files and size of the output. parted_by: "worlds" or "frames". recordings: number of different ones."""

    SCHEMA: ClassVar[str] = "collide.merge/1"

    files: list[str]
    output: str
    parted_by: str
    frames: int
    worlds: int
    contacts: int
    recordings: int
    content_sha256: str


def merge(request: MergeRequest, progress: Progress = None) -> MergeResult:
    """Merges contact sets.

    Raises InputError, naming the file and the difference, for sets that cannot be merged; OutputError for an output
    that cannot be written. Then no output is left.
    """
    if len(request.contacts) < 2:
        raise InputError("there is only one contact set", "the command line", "give two contact sets or more")
    check_output(request.output, request.force, request.contacts)
    with ExitStack() as stack:
        sets = []
        for path in request.contacts:
            with reading("contact set", path):
                sets.append(stack.enter_context(ContactSet.open(path)))
                check_groups(sets[-1])
        if not request.worlds:
            sets.sort(key=lambda one: one.step[0] if one.frame_count else 0)
        for one in sets[1:]:
            if not request.worlds:
                check_same_worlds(one, sets[0])
            _check_alike(one, sets[0], request.worlds)
        plan = plan_worlds(sets) if request.worlds else plan_frames(sets)
        header = _header(sets, plan, request.worlds)
        blocks = _blocks(sets, plan, tuple(column.name for column, _ in header.columns), progress)
        sha = write_merged(request.output, header, blocks, request.compression, request.force)
        return MergeResult(
            files=[one.path for one in sets],
            output=request.output,
            parted_by="worlds" if request.worlds else "frames",
            frames=plan.frame_count,
            worlds=plan.world_count,
            contacts=sum(one.contact_count for one in sets),
            recordings=len({one.trajectory_sha256 for one in sets}),
            content_sha256=sha,
        )


def _blocks(
    sets: Sequence[ContactSet], plan: MergePlan, names: tuple[str, ...], progress: Progress
) -> Iterator[ContactBlock]:
    for block in merged_blocks(sets, plan, names):
        yield block
        if progress is not None:
            progress((block.first_cell + len(block.cell_counts)) // plan.world_count, plan.frame_count)


def _check_alike(one: ContactSet, first: ContactSet, worlds: bool) -> None:
    """Raises InputError for a different scene, model, version, option or column, naming the first difference."""
    if one.version != first.version:
        versions = " and ".join(".".join(map(str, each.version)) for each in (one, first))
        _refuse(one, first, f"format versions {versions}")
    if one.scene_sha256 != first.scene_sha256:
        _refuse(one, first, "scene_sha256: the scenes are different files")
    allowed = DIFFER_BY_WORLDS if worlds else DIFFER_BY_FRAMES
    for name in sorted((one.config.keys() | first.config.keys()) - set(allowed)):
        ours, theirs = (recorded_option(each.config, name) for each in (one, first))
        if ours != theirs:
            _refuse(one, first, f"the option {name}: {json.dumps(ours)} and {json.dumps(theirs)}")
    tables = [model_tables(each) for each in (one, first)]
    for path in sorted(tables[0].keys() | tables[1].keys()):
        if worlds and path == WORLD_TEMPLATE:
            continue
        if path not in tables[0] or path not in tables[1] or not tables[0][path].equals(tables[1][path]):
            _refuse(one, first, f"the models: {path}")
    if model_attributes(one) != model_attributes(first):
        _refuse(one, first, "the rules, attributes of /model")
    if one.optional_columns != first.optional_columns:
        columns = sorted(set(one.optional_columns) ^ set(first.optional_columns))
        _refuse(one, first, f"columns: {', '.join(columns)}")
    if one.float_type != first.float_type:
        _refuse(one, first, f"points: {one.float_type} and {first.float_type}")


def _refuse(one: ContactSet, first: ContactSet, what: str) -> None:
    raise InputError(f"differs from {first.path} in {what}", one.path, SAME_RUN)


def _header(sets: Sequence[ContactSet], plan: MergePlan, worlds: bool) -> MergedHeader:
    first = sets[0]
    tables = model_tables(first)
    if worlds:
        templates = np.concatenate([one.world_template for one in sets])
        if len(set(templates.tolist())) > 1:
            raise InputError(
                "the worlds are of several scenes, whose templates have other numbers in one run",
                first.path,
                "run the scenes together",
            )
        tables[WORLD_TEMPLATE] = replace(tables[WORLD_TEMPLATE], values=templates.astype(np.int32))
    held = [
        *tables.values(),
        StoredTable("/time/step", np.dtype("<i8"), plan.step.astype(np.int64), ""),
        StoredTable("/time/time", np.dtype("<f8"), plan.time.astype(np.float64), "s"),
    ]
    attributes = {
        "scene": first.scene,
        "scene_sha256": first.scene_sha256,
        "trajectory_sha256": _recording(sets),
        "config": json.dumps(_config(sets, worlds), sort_keys=True),
    }
    columns = [(column, column.dtype_for(first.float_type)) for column in _columns(first)]
    return MergedHeader(first.version, attributes, held, model_attributes(first), columns, merged_timing(sets))


def _columns(contacts: ContactSet) -> list[Column]:
    return [*RIGID_COLUMNS, *(column for column in OPTIONAL_COLUMNS if column.name in contacts.optional_columns)]


def _recording(sets: Sequence[ContactSet]) -> str:
    """Hash of the recording; of several recordings, the hash of their hashes in order."""
    hashes = list(dict.fromkeys(one.trajectory_sha256 for one in sets))
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _config(sets: Sequence[ContactSet], worlds: bool) -> dict[str, Any]:
    """The common options, and the options in which the runs may differ with the values of all runs."""
    config = dict(sets[0].config)
    for name in DIFFER_BY_WORLDS if worlds else DIFFER_BY_FRAMES:
        given = [one.config.get(name) for one in sets]
        if name == "worlds":
            config[name] = sum(one.world_count for one in sets)
        elif name == "frames" and any(given):
            config[name] = ", ".join(dict.fromkeys(map(str, given)))
        elif any(given):
            config[name] = [demo for one in sets for demo in demos_of(one)]
    return config
