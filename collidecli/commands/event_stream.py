"""Intervals in which pairs of a contact set touch, block by block for selected contacts and pairs; their columns."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collidecli.analysis.patterns import Sides, matching_paths
from collidecli.analysis.summary import TOUCHES
from collidecli.analysis.touches import Frames, Intervals, IntervalTracker, MergeGap, Names, PairKeys, touches
from collidecli.commands.results import Progress
from collidecli.commands.scenes import parse_frames
from collidecli.errors import InputError
from collidecli.exporters.rows import chosen_worlds, named_items
from collidecli.scene import tables
from collidecli.scene.motion import check_seconds
from collidecli.scene.options import EVENT_COLUMNS, EVENT_THINGS, recorded_number
from collidecli.scene.tables import ContactBlock, GroupRows
from collidecli.storage.contact_sets import check
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, read_ahead, spans
from collidecli.storage.result_files import TableColumn

# Selection of the pairs whose touches are listed, and the limits of the threshold of a touch.

PARTICLES = "particles"
"""The member of EVENT_THINGS for pairs of single particles."""


@dataclass(frozen=True)
class EventOptions:
    """Definition of a touch and selection of pairs; by default every pair is selected.

    threshold: contacts with a distance of at most this touch [m]; infinity: every contact touches. Contacts of particle
    objects with each other always do. merge_gap: longest pause within an interval. by: pairs of "shapes" or "bodies",
    with particle objects, or pairs of "particles" with shapes and particle objects. include, exclude: a pair must have,
    and must not have, a shape or particle object whose path matches. bodies, exclude_bodies: a pair must have, and must
    not have, a body whose path matches. between: two patterns of paths of shapes, bodies or particle objects; a pair
    must match one with each side. worlds: numbers. frames: A:B:S. with_particles: contacts of particles are counted.
    by_name: items of one path in several templates are one.
    """

    threshold: float = 0.0
    merge_gap: MergeGap = MergeGap()  # noqa: RUF009 - frozen
    by: str = "shapes"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    bodies: Sequence[str] = ()
    exclude_bodies: Sequence[str] = ()
    between: Sequence[str] = ()
    worlds: Sequence[int] = ()
    frames: str = ""
    with_particles: bool = True
    by_name: bool = True
    block_rows: int = BLOCK_ROWS


def threshold_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about contacts that a threshold does not reach.

    particles_only: pairs of shapes are not listed. Raises InputError for a threshold beyond the limit of every contact.
    """
    if threshold <= 0.0 or math.isinf(threshold):
        return []
    limits = [] if particles_only else [float(np.float32(gap)) for gap in check.gap_range(contacts)]
    soft_gap = recorded_number(contacts.config, tables.SOFT_CONTACTS.limit)
    if tables.SOFT_CONTACTS.name in contacts.groups and soft_gap is not None:
        limits.append(float(np.float32(soft_gap)))
    if limits and np.float32(threshold) > max(limits):
        what = f"the contact set has no contacts beyond {max(limits):.6g} m, the largest gap of a pair"
        fix = f"give at most that, or 'any'; collide run --gap {threshold:g} reports contacts up to there"
        raise InputError(what, f"--threshold {threshold:g}", fix)
    if not limits or np.float32(threshold) <= min(limits):
        return []
    what = f"--threshold is {threshold:g} m, but contacts of some pairs are reported only up to their gap"
    return [f"{what} ({min(limits):.6g} m)"]


def group_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about rows of groups, on which a threshold above zero has no effect."""
    if threshold <= 0.0 or math.isinf(threshold):
        return []
    notes = []
    if tables.HYDRO_PATCHES.name in contacts.groups and not particles_only:
        notes.append("hydroelastic surfaces are there only where shapes overlap: the threshold adds none")
    if tables.SELF_CONTACTS.name in contacts.groups:
        notes.append("contacts of particle objects with each other touch at any reported distance")
    return notes


def items_on_bodies(contacts: ContactSet, patterns: Sequence[str], option: str) -> np.ndarray:
    """bool[n]: of `named_items`, those on a body whose path matches. Raises InputError for one without a match."""
    met = matching_paths(contacts.body_path, patterns, option, f"body of {contacts.path}")
    return np.append(met, False)[named_items(contacts).body]  # the last entry is for body -1


class PairSelection:
    """Selected pairs of the items of `touching_blocks`.

    Masks bool[items]: a pair has an item in each of `one`, both items in `both`, and one in each of `sides`.
    """

    def __init__(self, contacts: ContactSet, options: EventOptions) -> None:
        items, objects = named_items(contacts), contacts.particle_objects
        # A particle is selected as its object is.
        counts = objects.particle_count if options.by == PARTICLES else 0
        owner = np.repeat(len(contacts.shapes) + np.arange(len(objects)), counts)
        row = np.concatenate([np.arange(len(items.path)), owner])
        masks = [items.matching(options.include, "--include")] if options.include else []
        masks += [items_on_bodies(contacts, options.bodies, "--body")] if options.bodies else []
        out = [items.matching(options.exclude, "--exclude")] if options.exclude else []
        bodies = options.exclude_bodies
        out += [items_on_bodies(contacts, bodies, "--exclude-body")] if bodies else []
        self.one = [mask[row] for mask in masks]
        self.both = ~np.logical_or.reduce(out)[row] if out else None
        self.sides = None
        if options.between:
            self.sides = Sides(*(side[row] for side in items.sides(options.between, "--between")))

    def of_rows(self, shape0: np.ndarray, shape1: np.ndarray, selected: np.ndarray | None) -> np.ndarray | None:
        """bool[n]: `selected` and in a selected pair; None is all."""
        masks = [mask[shape0] | mask[shape1] for mask in self.one]
        if self.both is not None:
            masks.append(self.both[shape0] & self.both[shape1])
        if self.sides is not None:
            masks.append(self.sides.of_pairs(shape0, shape1))
        for mask in masks:
            selected = mask if selected is None else selected & mask
        return selected


# The contacts of a contact set by which pairs touch: of shapes, of particle objects, and of single particles.

COLUMNS = ("shape0", "shape1", "distance")
OF_STEPS = ("status", "tunnel", "enter", "leave", "least")
_READ = {
    tables.RIGID_CONTACTS.name: COLUMNS,
    tables.HYDRO_PATCHES.name: ("shape0", "shape1", "depth"),
    tables.SOFT_CONTACTS.name: ("shape", "indices", "distance"),
    tables.SELF_CONTACTS.name: ("kind", "indices", "distance"),
    tables.SWEEP.name: ("shape0", "shape1", *OF_STEPS),
    tables.SOFT_SWEEP.name: ("shape", "indices", *OF_STEPS),
    tables.SELF_SWEEP.name: ("kind", "indices", *OF_STEPS),
}
"""Columns of each table: two that have the items of its rows, then the distance or the columns of steps."""


def touching_blocks(
    contacts: ContactSet, max_rows: int, first: int, last: int, with_particles: bool, each_particle: bool
) -> Generator[ContactBlock, None, None]:
    """Blocks of the cells `first` to `last` - 1 with the columns shape0, shape1 and distance.

    Items are the shapes, S of them, then the particle objects, then the particles. A hydroelastic surface is a contact
    of its pair, whose distance is the least separation of its faces. with_particles: a contact of particles is one of
    its shape and object, or of both objects. each_particle: only contacts of particles, each one of its shape, or of
    the other object, with each of its particles. Raises InputError for unknown shapes and particles.
    """
    names = [] if each_particle else [tables.RIGID_CONTACTS.name, tables.HYDRO_PATCHES.name]
    names += [tables.SOFT_CONTACTS.name, tables.SELF_CONTACTS.name] if with_particles else []
    selected = {name: contacts.tables[name] for name in names if name in contacts.tables}
    starts = [table.cell_start for table in selected.values()]
    for begin, end in spans(starts, max_rows, first, last) if starts else ():
        groups = {name: table.rows(begin, end, _READ[name]) for name, table in selected.items()}
        check.check_group_rows(contacts, groups, begin, end)
        parts = []
        for name, rows in groups.items():
            row, one, other = _items(contacts, name, rows, each_particle)
            cell = np.repeat(np.arange(end - begin), rows.cell_counts)[row]
            parts.append((cell, one, other, rows.columns[_READ[name][2]][row].astype(np.float32, copy=False)))
        cell, *columns = (np.concatenate(values) for values in zip(*parts, strict=True))
        order = np.argsort(cell, kind="stable") if len(parts) > 1 else slice(None)
        counts = np.bincount(cell, minlength=end - begin).astype(np.int64)
        values = zip(COLUMNS, columns, strict=True)
        yield ContactBlock(begin, counts, {name: column[order] for name, column in values})


def _items(
    contacts: ContactSet, group: str, rows: GroupRows, each_particle: bool
) -> tuple[np.ndarray | slice, np.ndarray, np.ndarray]:
    """Rows and their two items: with `each_particle` each particle of a row, and what its element touches."""
    one, other = (rows.columns[name] for name in _READ[group][:2])
    if not contacts.tables[group].definition.objects:
        return slice(None), one, other
    first = len(contacts.shapes)
    owners = [first + owner for owner in check.objects_of(contacts, group, rows)]
    is_self = len(owners) == 2
    if not each_particle:
        return slice(None), owners[0] if is_self else one, owners[-1]
    row, entry = np.nonzero(other >= 0)
    partner = one[row]
    if is_self:  # the first element is a vertex, or an edge of two particles
        partner = np.where(entry <= partner, owners[1][row], owners[0][row])
    return row, partner, first + len(contacts.particle_objects) + other[row, entry].astype(np.int64)


TIME_COLUMNS = ("begin_time", "end_time", "deepest_time")
"""In the unit of the times of the set."""
DURATION = "seconds"
_UNITS = {DURATION: "s", "least_distance": "m"}


def interval_seconds(intervals: Intervals, frames: Frames) -> np.ndarray:
    """Duration of each interval [s]: up to the first frame without touch, or the last frame of its episode."""
    return frames.time[_following(intervals)] - frames.time[intervals.first]


def is_known(intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """bool[n]: whether the begin, and the end, of each interval is recorded: not at a border of its episode."""
    return intervals.first > intervals.begin, intervals.last + 1 < intervals.end


def _following(intervals: Intervals) -> np.ndarray:
    """int64[n]: the frame after each interval; the last one if the interval lasts to the end of its episode."""
    return np.minimum(intervals.last + 1, intervals.end - 1)


def interval_rows(intervals: Intervals, frames: Frames, keys: PairKeys, by: str) -> dict[str, np.ndarray]:
    """Columns by name, with a row per interval; see docs/howto/list-touches.md. Paths are rows of `keys.paths`.

    by: what the pairs are of, one of EVENT_THINGS.
    episode: only if there are episodes: row of the episode, plus one. end_time is NaN if the end is unknown.
    """
    begun, ended = is_known(intervals)
    following, world = _following(intervals), keys.world(intervals.key)
    episode = {} if frames.episodes is None else {"episode": frames.episodes.row(world, intervals.first) + 1}
    return {
        "world": world,
        **episode,
        **dict(zip(EVENT_COLUMNS[by], keys.items(intervals.key), strict=True)),
        "begin_frame": frames.number[intervals.first],
        "last_frame": frames.number[intervals.last],
        "begin_time": frames.time[intervals.first],
        "end_time": np.where(ended, frames.time[following], np.nan),
        "begin_known": begun,
        "end_known": ended,
        DURATION: interval_seconds(intervals, frames),
        "touching_frames": intervals.touching,
        "pauses": intervals.pauses,
        "contacts": intervals.contacts,
        "most_contacts": intervals.most,
        "least_distance": intervals.distance,
        "deepest_frame": frames.number[intervals.deepest],
        "deepest_time": frames.time[intervals.deepest],
    }


class EventStream:
    """Intervals of a contact set, ordered by last frame, then world and pair.

    keys: pairs of the intervals' keys. frames: frames of the intervals' indices. worlds: selected worlds.
    contact_count: contacts and hydroelastic surfaces of the selected pairs, worlds and frames; touching_count: those
    that touch. notes: warnings.

    Raises InputError for a threshold beyond the gap of every pair, for patterns, worlds and frames that are not in the
    set, and for unsorted times if the merge gap depends on them.
    """

    def __init__(self, contacts: ContactSet, options: EventOptions) -> None:
        if options.by not in EVENT_THINGS:
            raise InputError(f"'{options.by}' is none of {', '.join(EVENT_THINGS)}", "--by")
        if math.isnan(options.threshold):
            raise InputError("the threshold is no number", "--threshold")
        check.check_has_contacts(contacts)
        if options.merge_gap.seconds is not None:
            check_seconds(contacts.time_unit, "--merge-gap")
        particles_only = options.by == PARTICLES
        self.notes = threshold_notes(contacts, options.threshold, particles_only)
        self.notes += group_notes(contacts, options.threshold, particles_only)
        check.check_body_rows(contacts)
        self.contacts, self.by, self._options = contacts, options.by, options
        picked = parse_frames(options.frames, contacts.frame_count)
        self._start, self._step = picked.start, picked.step
        number = np.arange(picked.start, picked.stop, picked.step)
        episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
        self.frames = Frames(number, contacts.time[number], episodes)
        self.worlds = chosen_worlds(options.worlds, contacts)
        self._is_selected_world = np.isin(np.arange(contacts.world_count), self.worlds)
        self.keys = pair_keys(contacts, options.by, options.by_name)
        self._selection = PairSelection(contacts, options)
        self._tracker = IntervalTracker(self.frames, options.merge_gap)
        self.contact_count = self.touching_count = 0

    def rows(self, intervals: Intervals) -> dict[str, np.ndarray]:
        """See `interval_rows`."""
        return interval_rows(intervals, self.frames, self.keys, self.by)

    def columns(self, intervals: Intervals) -> dict[str, np.ndarray]:
        """The rows, with paths and names of episodes as objects of type str in place of their numbers."""
        return {
            column.name: values if column.words is None else np.array(column.words, object)[values]
            for column, values in zip(self.table(), self.rows(intervals).values(), strict=True)
        }

    def table(self) -> tuple[TableColumn, ...]:
        """Descriptions of the columns of a file of `rows`."""
        episodes, words = self.frames.episodes, dict.fromkeys(EVENT_COLUMNS[self.by], self.keys.paths)
        words["episode"] = ("", *(() if episodes is None else episodes.name))
        units = {**_UNITS, **dict.fromkeys(TIME_COLUMNS, self.contacts.time_unit)}
        return tuple(
            TableColumn(name, values.dtype, units.get(name, ""), words=words.get(name), nan_is_none=name == "end_time")
            for name, values in self.rows(Intervals.none()).items()
        )

    def batches(self, progress: Progress = None) -> Iterator[Intervals]:
        """Intervals in the order in which they end; to be called once. Raises InputError for a damaged file."""
        for following, touches_of_frame in self.frame_touches(progress):
            yield self._tracker.add(touches_of_frame, following)
        yield self._tracker.finish()

    def frame_touches(self, progress: Progress = None) -> Iterator[tuple[int, Intervals]]:
        """Lower bounds of the frames of later touches, and results of `touches_of`. Raises InputError as `batches`."""
        worlds, count = self.contacts.world_count, len(self.frames)
        if count and worlds:
            first, last = int(self.frames.number[0]) * worlds, (int(self.frames.number[-1]) + 1) * worlds
            particles = self._options.with_particles, self._options.by == PARTICLES
            blocks = touching_blocks(self.contacts, self._options.block_rows, first, last, *particles)
            for block in read_ahead(blocks):
                following = self._index((block.first_cell + len(block.cell_counts)) // worlds)
                yield following, self.touches_of(block)
                if progress is not None:
                    progress(min(following, count), count)

    def _index(self, frame: int) -> int:
        return -(-(frame - self._start) // self._step)

    def selected_steps(self, cell: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """int64: rows of steps that begin in `cell`, int[n], of selected pairs and worlds, between selected frames."""
        frame, world = np.divmod(cell, self.contacts.world_count)
        last = self.frames.number[-1] if len(self.frames) else -1
        between = (frame >= self._start) & (frame + 1 <= last) & self._is_selected_world[world]
        selected = self._selection.of_rows(shape0, shape1, between)
        return np.flatnonzero(between if selected is None else selected & between)

    def touches_of(self, block: ContactBlock) -> Intervals:
        """An interval of one frame for each touching pair of each cell of a block of `touching_blocks`."""
        worlds = self.contacts.world_count
        cells = block.first_cell + np.arange(len(block.cell_counts))
        frame, world = cells // worlds, cells % worlds
        index, between = np.divmod(frame - self._start, self._step)
        cell = np.repeat(np.arange(len(cells)), block.cell_counts)
        shape0, shape1 = block.columns["shape0"], block.columns["shape1"]
        distance = block.columns["distance"].astype(np.float32, copy=False)
        is_selected_cell = (between == 0) & self._is_selected_world[world]
        selected = None if is_selected_cell.all() else is_selected_cell[cell]
        selected = self._selection.of_rows(shape0, shape1, selected)
        self.contact_count += len(cell) if selected is None else int(selected.sum())
        # In float32, like the column, so that a distance that was written as 0.001 equals the threshold 0.001.
        near = distance <= np.float32(self._options.threshold)
        near |= shape0 >= len(self.contacts.shapes)  # contacts of particle objects with each other
        rows = np.flatnonzero(near if selected is None else near & selected)
        self.touching_count += len(rows)
        cell = cell[rows]
        key = self.keys.key(world[cell], shape0[rows], shape1[rows])
        intervals = touches(key, index[cell], distance[rows])
        begin, end = self.frames.borders(self.keys.world(intervals.key), intervals.first)
        return replace(intervals, begin=begin, end=end)


def pair_keys(contacts: ContactSet, by: str, by_name: bool = True) -> PairKeys:
    """Keys of pairs of the items of `touching_blocks`, by name over all templates, or each item by itself."""
    shapes, objects, worlds = contacts.shapes, contacts.particle_objects, contacts.world_count
    if by == "bodies":
        keys = PairKeys.of_bodies(contacts.body_path, shapes.path, shapes.body, worlds)
    else:
        keys = PairKeys.of_shapes(shapes.path, worlds)
    keys = keys.with_more(objects.path, objects.kind, worlds)
    if by == PARTICLES:
        counts = zip(objects.path, objects.particle_count.tolist(), strict=True)
        paths = [f"{path}[{k}]" for path, count in counts for k in range(count)]
        keys = keys.with_more(paths, ("particle",) * objects.total, worlds)
    return keys.by_name(row_templates(contacts, len(keys.number))) if by_name else keys


def shape_names(contacts: ContactSet) -> Names:
    """The names of the shapes of a set over all templates."""
    return Names.of(contacts.shapes.path, contacts.shapes.template)


def row_templates(contacts: ContactSet, count: int) -> np.ndarray:
    """int[count]: templates of the first rows of `touching_blocks`: shapes, particle objects, particles."""
    objects = contacts.particle_objects
    every = contacts.shapes.template, objects.template, np.repeat(objects.template, objects.particle_count)
    return np.concatenate(every)[:count]


# Touches between frames: rows of the groups of steps joined over steps, with their begins and ends in seconds.

TIMES = ("enter_time", "leave_time")
"""Columns of a table of intervals: when a pair begins and ends to touch, between frames too [s]."""
MISSED = "missed"


@dataclass(frozen=True)
class SweptTouches:
    """Touches of selected pairs, worlds and frames, joined over steps; ordered by key, then begin.

    key: of `EventStream.keys`. frame: of the first step. begin, end: times [s]. missed: in no frame. least: least
    distance [m]. undecided: rows of pairs that may touch.
    """

    key: np.ndarray
    frame: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    missed: np.ndarray
    least: np.ndarray
    undecided: int

    def times(self, key: np.ndarray, first: np.ndarray, last: np.ndarray) -> dict[str, np.ndarray]:
        """TIMES of touches in frames, of pairs `key` from time `first` to `last` [s]: the begin of the earliest touch
        of the pair at one of these times, and the end of the latest. NaN without one, such as at a larger threshold.
        """
        order = np.unique(np.concatenate([self.begin, self.end, first, last]), return_inverse=True)[1]
        n, m, count = len(self.key), len(key), int(order.max(initial=0)) + 1
        numbered = np.unique(np.concatenate([self.key, key]), return_inverse=True)[1]
        pair = numbered[n:]
        begins, ends = (numbered[:n] * count + order[at : at + n] for at in (0, n))
        since = np.searchsorted(ends, pair * count + order[2 * n : 2 * n + m], side="left")
        until = np.searchsorted(begins, pair * count + order[2 * n + m :], side="right") - 1
        swept = since <= until
        times = {name: np.full(m, np.nan) for name in TIMES}
        times["enter_time"][swept], times["leave_time"][swept] = self.begin[since[swept]], self.end[until[swept]]
        return times

    def missed_rows(self, stream: EventStream) -> dict[str, np.ndarray]:
        """Rows of `interval_rows`, TIMES and MISSED for the touches in no frame, by begin."""
        rows = np.flatnonzero(self.missed)
        rows = rows[np.lexsort((self.key[rows], self.begin[rows]))]
        key, frame, begin, end = self.key[rows], self.frame[rows], self.begin[rows], self.end[rows]
        none, known, world = np.zeros(len(rows), np.int64), np.ones(len(rows), bool), stream.keys.world(key)
        episodes = stream.frames.episodes
        first = int(stream.frames.number[0]) if len(stream.frames) else 0
        return {
            "world": world,
            **({} if episodes is None else {"episode": episodes.row(world, frame - first) + 1}),
            **dict(zip(EVENT_COLUMNS[stream.by], stream.keys.items(key), strict=True)),
            **dict.fromkeys(("begin_frame", "last_frame", "deepest_frame"), frame),
            **dict.fromkeys(("begin_known", "end_known", MISSED), known),
            **dict.fromkeys(("touching_frames", "pauses", "contacts", "most_contacts"), none),
            **{"begin_time": begin, "end_time": end, "seconds": end - begin, "enter_time": begin, "leave_time": end},
            **{"least_distance": self.least[rows].astype(np.float32), "deepest_time": np.full(len(rows), np.nan)},
        }


def swept_columns(columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
    """Columns of a table of intervals, with TIMES and MISSED."""
    kept = [replace(column, nan_is_none=True) if column.name == "deepest_time" else column for column in columns]
    times = (TableColumn(name, np.dtype(np.float64), "s", nan_is_none=True) for name in TIMES)
    return (*kept, *times, TableColumn(MISSED, np.dtype(bool)))


def swept_touches(stream: EventStream) -> SweptTouches:
    """The touches of a stream's set with contacts between frames.

    A touch that lasts to the end of its step goes on in a touch of the pair from the begin of the next step. Particles
    touch as their object, or each by itself with `by` particles. Raises InputError for a set without contacts between
    frames, and for frames that are not consecutive.
    """
    contacts = stream.contacts
    if tables.SWEEP.name not in contacts.groups:
        fix = "run it with --sweep"
        what = "the contact set has no contacts between frames"
        raise InputError(what, f"{contacts.path}: /{tables.SWEEP.name}", fix)
    if stream.by == PARTICLES and tables.SOFT_SWEEP.name not in contacts.groups:
        what = "the contact set has no particles between frames"
        raise InputError(what, f"{contacts.path}: /{tables.SOFT_SWEEP.name}", "give --by shapes or bodies")
    frames = stream.frames
    if len(frames) > 1 and frames.number[1] - frames.number[0] > 1:
        raise InputError("the frames are not consecutive", "--frames", "select a range of frames")
    columns, cell = _swept_rows(contacts, stream.by == PARTICLES)
    rows = stream.selected_steps(cell, columns["shape0"], columns["shape1"])
    columns, cell = {name: values[rows] for name, values in columns.items()}, cell[rows]
    touches = columns["status"] == TOUCHES
    undecided = int((~touches).sum())
    columns, cell = {name: values[touches] for name, values in columns.items()}, cell[touches]
    frame, world = np.divmod(cell, contacts.world_count)
    key = stream.keys.key(world, columns["shape0"], columns["shape1"])
    before, after = contacts.time[frame], contacts.time[frame + 1]
    begin, end = before + columns["enter"] * (after - before), before + columns["leave"] * (after - before)
    end = np.where(columns["leave"] == 1.0, after, end)  # equal to the bit to the begin of a touch that goes on
    order = np.lexsort((end, begin, key))
    key, begin, end, frame = key[order], begin[order], end[order], frame[order]
    tunnel, least = columns["tunnel"][order] == 1, columns["least"][order]
    # Rows are ordered by key, then begin. A later row belongs to a touch that has not ended before it begins.
    first, latest = [], -np.inf
    for row, (begins, ends) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if row == 0 or key[row] != key[row - 1] or begins > latest:
            first.append(row)
            latest = ends
        latest = max(latest, ends)
    start = np.array(first, np.int64)
    if len(start):
        end, least = np.maximum.reduceat(end, start), np.minimum.reduceat(least, start)
        tunnel = np.logical_and.reduceat(tunnel, start)
    return SweptTouches(key[start], frame[start], begin[start], end, tunnel, least, undecided)


def swept_events(swept: SweptTouches, stream: EventStream, first: int) -> dict[str, Any]:
    """Counts of the touches between frames, and the first ones by begin."""
    shown = np.lexsort((swept.key, swept.begin))[:first]
    items = (rows[shown].tolist() for rows in stream.keys.items(swept.key))
    names = ([stream.keys.paths[row] for row in rows] for rows in items)
    listed = {
        "world": stream.keys.world(swept.key[shown]).tolist(),
        **dict(zip(EVENT_COLUMNS[stream.by], names, strict=True)),
        "frame": swept.frame[shown].tolist(),
        "begin_time": swept.begin[shown].tolist(),
        "end_time": swept.end[shown].tolist(),
        "missed": swept.missed[shown].tolist(),
        "least_distance": swept.least[shown].tolist(),
    }
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    counts = {"count": len(swept.key), "missed": int(swept.missed.sum()), "undecided": swept.undecided}
    return {**counts, "listed": rows}


def _swept_rows(contacts: ContactSet, each_particle: bool) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns of the rows of all groups, with the items of `touching_blocks` as shape0 and shape1; and their cells."""
    parts, cells = [], []
    of_particles = [tables.SOFT_SWEEP.name, tables.SELF_SWEEP.name]
    for group in of_particles if each_particle else [tables.SWEEP.name, *of_particles]:
        if group in contacts.groups:
            table = contacts.groups[group]
            rows = GroupRows(np.diff(table.cell_start()), {name: table.column(name) for name in _READ[group]})
            check.check_group_rows(contacts, {group: rows}, 0, contacts.cell_count)
            row, one, other = _items(contacts, group, rows, each_particle)
            parts.append({"shape0": one, "shape1": other} | {name: rows.columns[name][row] for name in OF_STEPS})
            cells.append(np.repeat(np.arange(contacts.cell_count), rows.cell_counts)[row])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, np.concatenate(cells)
