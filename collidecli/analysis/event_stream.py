"""Intervals in which pairs of a contact set touch, block by block for selected contacts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.frame_texts import parse_frames
from collidecli.analysis.interval_rows import (
    COLUMN_UNITS,
    OF_DISTANCES,
    TIME_COLUMNS,
    interval_rows,
)
from collidecli.analysis.pair_selection import (
    PARTICLES,
    THRESHOLD,
    PairSelection,
    check_known_touches,
    group_notes,
    threshold_notes,
    touch_notes,
)
from collidecli.analysis.touch_intervals import (
    Frames,
    Intervals,
    IntervalTracker,
    Names,
    PairKeys,
    touches,
)
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE, touching_blocks
from collidecli.errors import InputError
from collidecli.results.result import Progress
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.episodes import row_names
from collidecli.scene.motion import check_seconds
from collidecli.scene.option_values import EVENT_COLUMNS, EVENT_THINGS
from collidecli.storage.contact_sets.readable_rows import check_body_rows, is_touch_set
from collidecli.storage.contact_sets.reader import ContactSet, read_ahead
from collidecli.storage.contact_sets.selected import chosen_worlds
from collidecli.storage.flat_tables import TableColumn

if TYPE_CHECKING:
    from collidecli.analysis.pair_selection import EventOptions


class EventStream:
    """Intervals of a contact set, ordered by last frame, then world and pair.

    keys: pairs of the intervals' keys. frames: frames of the intervals' indices. worlds: selected
    worlds. contact_count: contacts and hydroelastic surfaces of the selected pairs, worlds and
    frames; touching_count: those that touch, and object_count: of these, those of particle objects
    with each other, which touch at any distance. without_values: columns of `rows` that are NaN
    where a pair is of a set of touches. notes: warnings.

    Raises InputError for a threshold beyond the gap of every pair, for patterns, worlds and frames
    that are not in the set, and for unsorted times if the merge gap depends on them.
    """

    def __init__(self, contacts: ContactSet, options: EventOptions) -> None:
        if options.by not in EVENT_THINGS:
            raise InputError(f"'{options.by}' is none of {', '.join(EVENT_THINGS)}", "--by")
        if math.isnan(options.threshold):
            raise InputError("the threshold is no number", "--threshold")
        check_known_touches(contacts, options.threshold, THRESHOLD)
        if options.merge_gap.seconds is not None:
            check_seconds(contacts.time_unit, "--merge-gap")
        particles_only = options.by == PARTICLES
        self.notes = threshold_notes(contacts, options.threshold, particles_only)
        self.notes += group_notes(contacts, options.threshold, particles_only)
        self.notes += touch_notes(contacts)
        check_body_rows(contacts)
        self.contacts = contacts
        self.without_values = OF_DISTANCES if is_touch_set(contacts) else ()
        self.by = options.by
        self._options = options
        picked = parse_frames(options.frames, contacts.frame_count)
        self._start = picked.start
        self._step = picked.step
        number = np.arange(picked.start, picked.stop, picked.step)
        episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
        self.frames = Frames(number, contacts.time[number], episodes)
        self.worlds = chosen_worlds(options.worlds, contacts)
        self._is_selected_world = np.isin(np.arange(contacts.world_count), self.worlds)
        self.keys = pair_keys(contacts, options.by, options.by_name)
        self._selection = PairSelection(contacts, options)
        self._tracker = IntervalTracker(self.frames, options.merge_gap)
        self.contact_count = self.touching_count = self.object_count = 0

    def rows(self, intervals: Intervals) -> dict[str, np.ndarray]:
        """See `interval_rows`."""
        return interval_rows(intervals, self.frames, self.keys, self.by)

    def columns(self, intervals: Intervals, recorded_names: bool = False) -> dict[str, np.ndarray]:
        """The rows, with paths and names of episodes as objects of type str in place of their
        numbers. recorded_names: see `table`."""
        return {
            column.name: values if column.words is None else np.array(column.words, object)[values]
            for column, values in zip(
                self.table(recorded_names), self.rows(intervals).values(), strict=True
            )
        }

    def table(self, recorded_names: bool = False) -> tuple[TableColumn, ...]:
        """Descriptions of the columns of a file of `rows`. recorded_names: of episodes, as the
        contact set has them, in place of `row_names`."""
        episodes = self.frames.episodes
        given = () if episodes is None else episodes.name
        words = dict.fromkeys(EVENT_COLUMNS[self.by], self.keys.paths)
        words["episode"] = (
            "",
            *(given if recorded_names else row_names(episodes, self.contacts.path)),
        )
        units = {**COLUMN_UNITS, **dict.fromkeys(TIME_COLUMNS, self.contacts.time_unit)}
        return tuple(
            TableColumn(
                name,
                values.dtype,
                units.get(name, ""),
                words=words.get(name),
                nan_is_none=name in ("end_time", *self.without_values),
            )
            for name, values in self.rows(Intervals.none()).items()
        )

    def batches(
        self, progress: Progress = None, each: Callable[[Intervals], None] | None = None
    ) -> Iterator[Intervals]:
        """Intervals in the order in which they end; to be called once. each: called with every
        result of `touches_of`. Raises InputError for a damaged file."""
        for following, touches_of_frame in self.frame_touches(progress):
            if each is not None:
                each(touches_of_frame)
            yield self._tracker.add(touches_of_frame, following)
        yield self._tracker.finish()

    def frame_touches(self, progress: Progress = None) -> Iterator[tuple[int, Intervals]]:
        """Lower bounds of the frames of later touches, and results of `touches_of`. Raises
        InputError as `batches`."""
        worlds = self.contacts.world_count
        count = len(self.frames)
        if count and worlds:
            first = int(self.frames.number[0]) * worlds
            last = (int(self.frames.number[-1]) + 1) * worlds
            particles = self._options.with_particles, self._options.by == PARTICLES
            blocks = touching_blocks(
                self.contacts, self._options.block_rows, first, last, *particles
            )
            for block in read_ahead(blocks):
                following = self.following(block)
                yield following, self.touches_of(block)
                if progress is not None:
                    progress(min(following, count), count)

    def following(self, block: ContactBlock) -> int:
        """Lower bound of the frames of the blocks after a block, as an index."""
        frame = (block.first_cell + len(block.cell_counts)) // self.contacts.world_count
        return -(-(frame - self._start) // self._step)

    def selected_steps(
        self, cell: np.ndarray, shape0: np.ndarray, shape1: np.ndarray
    ) -> np.ndarray:
        """int64: rows of steps that begin in `cell`, int[n], of selected pairs and worlds, between
        selected frames."""
        frame, world = np.divmod(cell, self.contacts.world_count)
        last = self.frames.number[-1] if len(self.frames) else -1
        between = (frame >= self._start) & (frame + 1 <= last) & self._is_selected_world[world]
        selected = self._selection.of_rows(shape0, shape1, between)
        return np.flatnonzero(between if selected is None else selected & between)

    def touches_of(self, block: ContactBlock) -> Intervals:
        """An interval of one frame for each touching pair of each cell of a block of
        `touching_blocks`."""
        cell, index, world, selected = self._selected(block)
        shape0 = block.columns["shape0"]
        shape1 = block.columns["shape1"]
        distance = block.columns["distance"].astype(np.float32, copy=False)
        self.contact_count += len(cell) if selected is None else int(selected.sum())
        # In float32, like the column, so that a distance that was written as 0.001 equals the
        # threshold 0.001.
        near = distance <= np.float32(self._options.threshold)
        is_of_objects = shape0 >= len(self.contacts.shapes)  # of two of them, or of one with itself
        near |= is_of_objects
        if self.without_values:
            near |= distance == UNKNOWN_DISTANCE
        rows = np.flatnonzero(near if selected is None else near & selected)
        self.touching_count += len(rows)
        self.object_count += int(is_of_objects[rows].sum())
        cell = cell[rows]
        key = self.keys.key(world[cell], shape0[rows], shape1[rows])
        intervals = touches(key, index[cell], distance[rows])
        begin, end = self.frames.borders(self.keys.world(intervals.key), intervals.first)
        return replace(intervals, begin=begin, end=end)

    def row_keys(
        self, block: ContactBlock, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int64[n] each: the rows of a block that are selected and wanted, bool[rows], their keys
        and the indices of their frames."""
        cell, index, world, selected = self._selected(block)
        rows = np.flatnonzero(wanted if selected is None else wanted & selected)
        cell = cell[rows]
        shapes = (block.columns[name][rows] for name in ("shape0", "shape1"))
        return rows, self.keys.key(world[cell], *shapes), index[cell]

    def _selected(
        self, block: ContactBlock
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """The cell of each row in the block; of each cell the index of its frame, and its world;
        bool[rows], whether a row is of a selected pair, world and frame, None for all."""
        cells = block.first_cell + np.arange(len(block.cell_counts))
        frame, world = np.divmod(cells, self.contacts.world_count)
        index, between = np.divmod(frame - self._start, self._step)
        cell = np.repeat(np.arange(len(cells)), block.cell_counts)
        is_selected_cell = (between == 0) & self._is_selected_world[world]
        selected = None if is_selected_cell.all() else is_selected_cell[cell]
        of_pairs = self._selection.of_rows(
            block.columns["shape0"], block.columns["shape1"], selected
        )
        return cell, index, world, of_pairs


def pair_keys(contacts: ContactSet, by: str, by_name: bool = True) -> PairKeys:
    """Keys of pairs of the items of `touching_blocks`, by name over all templates, or each item by
    itself."""
    shapes = contacts.shapes
    objects = contacts.particle_objects
    worlds = contacts.world_count
    if by == "bodies":
        keys = PairKeys.of_bodies(
            contacts.body_path, shapes.path, shapes.body, worlds, shapes.is_trigger
        )
    else:
        keys = PairKeys.of_shapes(shapes.path, worlds, shapes.is_trigger)
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
    """int[count]: templates of the first rows of `touching_blocks`: shapes, particle objects,
    particles."""
    objects = contacts.particle_objects
    every = (
        contacts.shapes.template,
        objects.template,
        np.repeat(objects.template, objects.particle_count),
    )
    return np.concatenate(every)[:count]
