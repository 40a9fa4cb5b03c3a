"""The verb `merge`: the contact set of one run from contact sets of its disjoint frames or
worlds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from collidecli.analysis.set_source import demos_of
from collidecli.errors import InputError
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import check_output
from collidecli.results.result import Progress, Result
from collidecli.scene.contact_blocks import ContactBlock, consecutive_groups, groups_of_cells
from collidecli.scene.contact_columns import CONTACT_ID, OF_STEPS
from collidecli.scene.episodes import Episodes
from collidecli.scene.model_source import SCENE_CONTENT
from collidecli.scene.options import recorded_option
from collidecli.storage.contact_sets.header import SCENE_KIND, tables_version, version_of
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS
from collidecli.storage.contact_sets.stored_tables import (
    Header,
    StoredTable,
    check_groups,
    episode_tables,
    model_attributes,
    model_tables,
    write_merged,
)
from collidecli.storage.process_activity import reading
from collidecli.verbs.merge.episodes import merged_episodes
from collidecli.verbs.merge.timing import merged_timing
from collidecli.wording import count

CELL_WINDOW = 1 << 18
"""Number of cells that are sorted together."""


@dataclass(frozen=True)
class MergePlan:
    """Mapping to the merged set. frame_of: for each set, intp[its frames], ascending merged frames.

    first_world: merged number of the first world of each set. world_count, step, time: of the
    merged set.
    """

    frame_of: tuple[np.ndarray, ...]
    first_world: tuple[int, ...]
    world_count: int
    step: np.ndarray
    time: np.ndarray

    @property
    def frame_count(self) -> int:
        """Number of merged frames."""
        return len(self.step)


def plan_frames(sets: Sequence[ContactSet]) -> MergePlan:
    """Plan for sets of disjoint frames, ordered by step, with equal worlds.

    Raises InputError for contact ids, which start anew in every set; for contacts between frames;
    for steps that do not increase, a step in two sets, or times that decrease.
    """
    for part in sets:
        if CONTACT_ID.name in part.optional_columns:
            what = "it has contact ids, which start anew in every set"
            raise InputError(
                what,
                f"{part.path}: /rigid_contacts/{CONTACT_ID.name}",
                "run the whole motion at once",
            )
        for name in OF_STEPS:
            if name in part.groups:
                what = (
                    "it has contacts between frames, and none between its frames and those of"
                    " another set"
                )
                raise InputError(what, f"{part.path}: /{name}", "run the whole motion at once")
        falls = np.flatnonzero(part.step[1:] <= part.step[:-1])
        if len(falls):
            what = (
                f"step {part.step[falls[0] + 1]} follows step {part.step[falls[0]]}: steps must"
                " increase"
            )
            raise InputError(what, f"{part.path}: /time/step", "record increasing steps")
    steps = np.concatenate([part.step for part in sets])
    owner = np.repeat(np.arange(len(sets)), [part.frame_count for part in sets])
    order = np.argsort(steps, kind="stable")
    same = np.flatnonzero(steps[order[1:]] == steps[order[:-1]])
    if len(same):
        first, second = (sets[int(owner[order[same[0] + k]])].path for k in (0, 1))
        what = f"step {steps[order[same[0]]]} is in {first} too"
        what += f", and so are {count(len(same) - 1)} more" if len(same) > 1 else ""
        raise InputError(
            what, second, "give disjoint frames, or --worlds if these are other worlds"
        )
    time = np.concatenate([part.time for part in sets])[order]
    back = np.flatnonzero(np.diff(time) < 0.0)
    if len(back):
        before, after = (sets[int(owner[order[back[0] + k]])].path for k in (0, 1))
        part, next_one = steps[order[back[0] : back[0] + 2]]
        what = (
            f"step {next_one} is earlier than step {part} of {before}: times must increase with"
            " steps"
        )
        raise InputError(what, after, "give sets of one recording")
    merged = np.empty(len(order), np.intp)
    merged[order] = np.arange(len(order))
    frame_of = tuple(merged[owner == k] for k in range(len(sets)))
    return MergePlan(frame_of, (0,) * len(sets), sets[0].world_count, steps[order], time)


def plan_worlds(sets: Sequence[ContactSet]) -> MergePlan:
    """Plan for sets of disjoint worlds, in the order of the sets, with equal frames.

    Raises InputError for different frames, and for sets of one recording with common worlds.
    """
    for k, contacts in enumerate(sets):
        for name in ("step", "time"):
            if not np.array_equal(getattr(contacts, name), getattr(sets[0], name)):
                fix = (
                    "give sets of the same frames, or leave --worlds out if these are other frames"
                )
                raise InputError(
                    f"the frames differ from those of {sets[0].path} in /time/{name}",
                    contacts.path,
                    fix,
                )
        twin = next((other for other in sets[:k] if _share_worlds(contacts, other)), None)
        if twin is not None:
            what = f"it has worlds of {twin.path}: both are of one motion"
            raise InputError(what, contacts.path, "give sets of disjoint worlds")
    counts = [contacts.world_count for contacts in sets]
    every = np.arange(sets[0].frame_count)
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    return MergePlan((every,) * len(sets), first, sum(counts), sets[0].step, sets[0].time)


def _share_worlds(contacts: ContactSet, other: ContactSet) -> bool:
    """Whether both are of one recording without disjoint demonstrations."""
    if contacts.trajectory_sha256 != other.trajectory_sha256:
        return False
    demos = [set(demos_of(part)) for part in (contacts, other)]
    return not (demos[0] and demos[1]) or bool(demos[0] & demos[1])


def merged_blocks(
    sets: Sequence[ContactSet], plan: MergePlan, names: tuple[str, ...], max_rows: int = BLOCK_ROWS
) -> Iterator[ContactBlock]:
    """Merged cells in order, in blocks of whole frames with at most `max_rows` contacts, or of one
    frame.

    The frames of a block are consecutive in each set, as `frame_of` is ascending.
    """
    rows = np.zeros(plan.frame_count, np.int64)
    for contacts, frames in zip(sets, plan.frame_of, strict=True):
        tables = (contacts, *contacts.groups.values())
        rows[frames] += np.stack(
            [_rows_by_frame(contacts, table.cell_start) for table in tables]
        ).sum(axis=0)
    ends = np.cumsum(rows)
    most_frames = max(1, CELL_WINDOW // max(1, plan.world_count))
    first = 0
    while first < plan.frame_count:
        done = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, done + max_rows, side="right"))
        last = max(first + 1, min(last, first + most_frames))
        yield _joined(sets, plan, first, last, names)
        first = last


def _rows_by_frame(contacts: ContactSet, cell_start: Callable[[slice], np.ndarray]) -> np.ndarray:
    worlds = contacts.world_count
    starts = []
    step = max(1, CELL_WINDOW // max(1, worlds))
    for first in range(0, contacts.frame_count, step):
        last = min(first + step, contacts.frame_count)
        starts.append(cell_start(slice(first * worlds, last * worlds))[::worlds])
    ends = cell_start(slice(contacts.cell_count, contacts.cell_count + 1))
    return np.diff(np.concatenate([*starts, ends]))


def _joined(
    sets: Sequence[ContactSet], plan: MergePlan, first: int, last: int, names: tuple[str, ...]
) -> ContactBlock:
    counts = np.zeros((last - first, plan.world_count), np.int64)
    parts = []
    cells = []
    groups = []
    numbers = []
    for contacts, frames, world in zip(sets, plan.frame_of, plan.first_world, strict=True):
        low, high = np.searchsorted(frames, (first, last))
        if low == high:
            continue
        worlds = slice(world, world + contacts.world_count)
        block = contacts.cells(
            int(low) * contacts.world_count,
            int(high) * contacts.world_count,
            names,
            with_groups=True,
        )
        counts[frames[low:high] - first, worlds] = block.cell_counts.reshape(
            -1, contacts.world_count
        )
        merged = (frames[low:high, None] - first) * plan.world_count + np.arange(plan.world_count)[
            worlds
        ]
        cells.append(np.repeat(merged.reshape(-1), block.cell_counts))
        parts.append(block.columns)
        numbers.append(merged.reshape(-1))
        groups.append(block.groups)
    cell = np.concatenate(cells)
    # The rows of a cell are of one set; the stable sort keeps their order.
    order = np.argsort(cell, kind="stable") if len(parts) > 1 else slice(None)
    columns = {name: np.concatenate([part[name] for part in parts])[order] for name in names}
    number = np.concatenate(numbers)
    merged_groups = groups_of_cells(consecutive_groups(groups), np.argsort(number))
    for name, rows in merged_groups.items():
        of_cells = np.zeros(counts.size, np.int64)
        of_cells[np.sort(number)] = rows.cell_counts
        merged_groups[name] = replace(rows, cell_counts=of_cells)
    return ContactBlock(first * plan.world_count, counts.reshape(-1), columns, merged_groups)


WORLD_TEMPLATE = "/model/world/template"
DIFFER_BY_FRAMES = ("frames",)
DIFFER_BY_WORLDS = ("worlds", "demos", "frames")
"""Options in which the runs of the merged sets may differ."""
SAME_RUN = "make the sets again, of one scene with the same options"


@dataclass(frozen=True)
class MergeRequest:
    """Contact sets to merge, at least two, and the output. worlds: they have equal frames and
    disjoint worlds.

    Otherwise they have equal worlds and disjoint frames. format: major version of the output's
    format; None is that of all sets.
    """

    contacts: Sequence[str]
    output: str
    worlds: bool = False
    compression: str = "gzip"
    format: int | None = None
    force: bool = False


@dataclass(frozen=True)
class MergeResult(Result, schema="collide.merge/1"):
    """Merged files and size of the output. parted_by: "worlds" or "frames". group_rows: rows of
    each table beside /rigid_contacts, by name. recordings: number of different ones."""

    files: list[str]
    output: str
    parted_by: str
    frames: int
    worlds: int
    contacts: int
    group_rows: dict[str, int]
    recordings: int
    content_sha256: str


def merge(request: MergeRequest, progress: Progress = None) -> MergeResult:
    """Merges contact sets.

    Raises InputError, naming the file and the difference, for sets that cannot be merged;
    OutputError for an output that cannot be written. Then no output is left.
    """
    if len(request.contacts) < 2:
        what = "there is only one contact set" if request.contacts else "there is no contact set"
        raise InputError(what, "merge", "give two contact sets or more")
    check_output(request.output, request.force, request.contacts, HDF5_ENDINGS, "a contact set")
    with ExitStack() as stack:
        sets = []
        for path in request.contacts:
            with reading("contact set", path):
                sets.append(stack.enter_context(ContactSet.open(path)))
                check_groups(sets[-1])
        if not request.worlds:
            sets.sort(key=lambda contacts: contacts.step[0] if contacts.frame_count else 0)
        for contacts in sets[1:]:
            if not request.worlds and contacts.world_count != sets[0].world_count:
                what = (
                    f"has {contacts.world_count} worlds, and {sets[0].path} has"
                    f" {sets[0].world_count}"
                )
                raise InputError(
                    what,
                    contacts.path,
                    "give sets of the same worlds, or --worlds if these are other worlds",
                )
            _check_alike(contacts, sets[0], request.worlds)
        plan = plan_worlds(sets) if request.worlds else plan_frames(sets)
        header = _header(sets, plan, request.worlds, _major(sets, request.format))
        blocks = _blocks(sets, plan, tuple(column.name for column in sets[0].columns), progress)
        sha = write_merged(request.output, header, blocks, request.compression, request.force)
        return MergeResult(
            files=[contacts.path for contacts in sets],
            output=request.output,
            parted_by="worlds" if request.worlds else "frames",
            frames=plan.frame_count,
            worlds=plan.world_count,
            contacts=sum(contacts.contact_count for contacts in sets),
            group_rows={
                name: sum(contacts.group_rows[name] for contacts in sets) for name in sets[0].groups
            },
            recordings=len({contacts.trajectory_sha256 for contacts in sets}),
            content_sha256=sha,
        )


def _blocks(
    sets: Sequence[ContactSet], plan: MergePlan, names: tuple[str, ...], progress: Progress
) -> Iterator[ContactBlock]:
    for block in merged_blocks(sets, plan, names):
        yield block
        if progress is not None:
            progress(
                (block.first_cell + len(block.cell_counts)) // plan.world_count, plan.frame_count
            )


def _check_alike(other: ContactSet, first: ContactSet, worlds: bool) -> None:
    """Raises InputError for a different scene, model, version, option or column, naming the first
    difference."""
    if tables_version(other.version) != tables_version(first.version):
        versions = " and ".join(".".join(map(str, part.version)) for part in (other, first))
        _refuse(other, first, f"format versions {versions}")
    if other.scene_sha256 != first.scene_sha256:
        _refuse(other, first, f"scene_sha256: the scenes are different files ({SCENE_CONTENT})")
    allowed = DIFFER_BY_WORLDS if worlds else DIFFER_BY_FRAMES
    for name in sorted((other.config.keys() | first.config.keys()) - set(allowed)):
        ours, theirs = (recorded_option(part.config, name) for part in (other, first))
        if ours != theirs:
            _refuse(other, first, f"the option {name}: {json.dumps(ours)} and {json.dumps(theirs)}")
    tables = [model_tables(part) for part in (other, first)]
    for path in sorted(tables[0].keys() | tables[1].keys()):
        if worlds and path == WORLD_TEMPLATE:
            continue
        if (
            path not in tables[0]
            or path not in tables[1]
            or not tables[0][path].equals(tables[1][path])
        ):
            _refuse(other, first, f"the models: {path}")
    if model_attributes(other) != model_attributes(first):
        _refuse(other, first, "the rules, attributes of /model")
    if other.optional_columns != first.optional_columns:
        columns = sorted(set(other.optional_columns) ^ set(first.optional_columns))
        _refuse(other, first, f"columns: {', '.join(columns)}")
    if other.groups.keys() != first.groups.keys():
        names = ", ".join(f"/{name}" for name in sorted(other.groups.keys() ^ first.groups.keys()))
        _refuse(other, first, f"groups: {names}")
    for name, group in first.groups.items():
        if differing := sorted(set(group.names) ^ set(other.groups[name].names)):
            _refuse(other, first, f"columns of /{name}: {', '.join(differing)}")
    if other.float_type != first.float_type:
        _refuse(other, first, f"points: {other.float_type} and {first.float_type}")


def _major(sets: Sequence[ContactSet], asked: int | None) -> int:
    """Major version of the merged set. Raises InputError for sets of several without one that is
    asked for."""
    versions = sorted({contacts.version[0] for contacts in sets})
    if asked is None and len(versions) > 1:
        what = f"the sets have format versions {' and '.join(map(str, versions))}"
        raise InputError(what, sets[0].path, "choose that of the output with --format")
    return asked or versions[0]


def _refuse(contacts: ContactSet, first: ContactSet, what: str) -> None:
    raise InputError(f"differs from {first.path} in {what}", contacts.path, SAME_RUN)


def merge_episodes(
    sets: Sequence[ContactSet], plan: MergePlan, episodes: Episodes, output: str
) -> None:
    """Writes sets of one scene to one set; frames of a world after the end of its set have no
    contacts.

    Raises InputError for sets that cannot be merged, OutputError; then no output is left.
    """
    for contacts in sets[1:]:
        _check_alike(contacts, sets[0], worlds=True)
    header = _header(sets, plan, True, _major(sets, None), episodes)
    names = tuple(column.name for column in sets[0].columns)
    write_merged(output, header, merged_blocks(sets, plan, names), "gzip", force=False)


def _header(
    sets: Sequence[ContactSet],
    plan: MergePlan,
    worlds: bool,
    major: int,
    episodes: Episodes | None = None,
) -> Header:
    """The header of the merged set. episodes: of the set; None is those of `merged_episodes`."""
    first = sets[0]
    if episodes is None:
        episodes = merged_episodes(sets, plan.frame_of, plan.first_world, worlds)
    tables = model_tables(first)
    if worlds:
        templates = np.concatenate([contacts.world_template for contacts in sets])
        if len(set(templates.tolist())) > 1:
            what = "the worlds are of several scenes, whose templates have other numbers in one run"
            raise InputError(what, first.path, "run the scenes together")
        tables[WORLD_TEMPLATE] = replace(tables[WORLD_TEMPLATE], values=templates.astype(np.int32))
    attributes_of_tables = [
        *tables.values(),
        StoredTable("/time/step", np.dtype("<i8"), plan.step.astype(np.int64), ""),
        StoredTable("/time/time", np.dtype("<f8"), plan.time.astype(np.float64), "s"),
        *episode_tables(episodes),
    ]
    hashes = list(dict.fromkeys(contacts.trajectory_sha256 for contacts in sets))
    # The common options, and the options in which the runs may differ with the values of all runs.
    config = dict(sets[0].config)
    for name in DIFFER_BY_WORLDS if worlds else DIFFER_BY_FRAMES:
        given = [contacts.config.get(name) for contacts in sets]
        if name == "worlds":
            config[name] = sum(contacts.world_count for contacts in sets)
        elif name == "frames" and any(given):
            config[name] = ", ".join(dict.fromkeys(map(str, given)))
        elif any(given):
            config[name] = [demo for contacts in sets for demo in demos_of(contacts)]
    attributes = {
        "scene": first.scene,
        "scene_sha256": first.scene_sha256,
        SCENE_KIND: first.scene_kind,
        "trajectory_sha256": (
            hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
        ),
        "config": json.dumps(config, sort_keys=True),
    }
    version = (
        first.version
        if first.version[0] == major
        else version_of(major, first.groups, has_triggers=bool(first.shapes.is_trigger.any()))
    )
    definitions = [table.definition for table in first.tables.values()]
    of_model = model_attributes(first)
    timing = merged_timing(sets)
    return Header(
        version, attributes, attributes_of_tables, of_model, definitions, first.float_type, timing
    )
