"""Intervals in which pairs of a contact set touch, block by block for selected contacts and pairs; their columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from collidecli.analysis.touch_intervals import Frames, Intervals, IntervalTracker, PairKeys, touches
from collidecli.commands.event_selection import (
    PARTICLES,
    EventOptions,
    PairSelection,
    group_notes,
    threshold_notes,
)
from collidecli.commands.motions import parse_frames
from collidecli.commands.result import Progress
from collidecli.commands.touching_blocks import touching_blocks
from collidecli.errors import InputError
from collidecli.scene.contacts import ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.scene.option_choices import EVENT_COLUMNS, EVENT_THINGS
from collidecli.scene.text_format import numbered
from collidecli.storage.contact_sets.reader import ContactSet, read_ahead
from collidecli.storage.contact_sets.rules import check_body_rows, check_has_contacts
from collidecli.storage.flat_tables import TableColumn

_UNITS = {"begin_time": "s", "end_time": "s", "seconds": "s", "least_distance": "m", "deepest_time": "s"}


def interval_seconds(found: Intervals, frames: Frames) -> np.ndarray:
    """Duration of each interval [s]: up to the first frame without touch, or the last frame of its episode."""
    return frames.time[_following(found)] - frames.time[found.first]


def is_known(found: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """bool[n]: whether the begin, and the end, of each interval is recorded: not at a border of its episode."""
    return found.first > found.begin, found.last + 1 < found.end


def _following(found: Intervals) -> np.ndarray:
    """int64[n]: the frame after each interval; the last one if the interval lasts to the end of its episode."""
    return np.minimum(found.last + 1, found.end - 1)


def interval_columns(found: Intervals, frames: Frames, keys: PairKeys, by: str) -> dict[str, np.ndarray]:
    """Columns of `interval_rows` with paths and names of episodes as objects of type str in place of rows."""
    words: dict[str, np.ndarray] = dict.fromkeys(EVENT_COLUMNS[by], np.array(keys.paths, object))
    if frames.episodes is not None:
        words["episode"] = np.array(["", *frames.episodes.name], object)
    columns = interval_rows(found, frames, keys, by)
    return columns | {name: texts[columns[name]] for name, texts in words.items()}


def interval_table(keys: PairKeys, episodes: Episodes | None, by: str) -> tuple[TableColumn, ...]:
    """Descriptions of the columns of a file of `interval_rows`."""
    words = dict.fromkeys(EVENT_COLUMNS[by], keys.paths) | {
        "episode": ("", *(episodes.name if episodes is not None else ()))
    }
    no_frames = Frames(np.zeros(0, np.int64), np.zeros(0), episodes)
    return tuple(
        TableColumn(
            name,
            values.dtype,
            _UNITS.get(name, ""),
            words=words.get(name),
            nan_is_none=name == "end_time",
        )
        for name, values in interval_rows(Intervals.none(), no_frames, keys, by).items()
    )


def interval_rows(found: Intervals, frames: Frames, keys: PairKeys, by: str) -> dict[str, np.ndarray]:
    """Columns by name, with a row per interval; see docs/howto/list-touches.md. Paths are rows of `keys.paths`.

    by: what the pairs are of, one of EVENT_THINGS.
    episode: only if there are episodes: row of the episode, plus one. end_time is NaN if the end is unknown.
    """
    begun, ended = is_known(found)
    following, world = _following(found), keys.world(found.key)
    episode = {} if frames.episodes is None else {"episode": frames.episodes.row(world, found.first) + 1}
    return {
        "world": world,
        **episode,
        **dict(zip(EVENT_COLUMNS[by], keys.items(found.key), strict=True)),
        "begin_frame": frames.number[found.first],
        "last_frame": frames.number[found.last],
        "begin_time": frames.time[found.first],
        "end_time": np.where(ended, frames.time[following], np.nan),
        "begin_known": begun,
        "end_known": ended,
        "seconds": interval_seconds(found, frames),
        "touching_frames": found.touching,
        "pauses": found.pauses,
        "contacts": found.contacts,
        "most_contacts": found.most,
        "least_distance": found.distance,
        "deepest_frame": frames.number[found.deepest],
        "deepest_time": frames.time[found.deepest],
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
        check_has_contacts(contacts)
        particles_only = options.by == PARTICLES
        self.notes = threshold_notes(contacts, options.threshold, particles_only)
        self.notes += group_notes(contacts, options.threshold, particles_only)
        check_body_rows(contacts)
        self._contacts, self._options = contacts, options
        picked = parse_frames(options.frames, contacts.frame_count)
        self._start, self._step = picked.start, picked.step
        number = np.arange(picked.start, picked.stop, picked.step)
        episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
        self.frames = Frames(number, contacts.time[number], episodes)
        self._is_selected_world = _worlds(contacts, options.worlds)
        self.worlds = np.flatnonzero(self._is_selected_world)
        self.keys = _keys(contacts, options.by)
        self._selection = PairSelection.of(contacts, options)
        self._tracker = IntervalTracker(self.frames, options.merge_gap)
        self.contact_count = self.touching_count = 0

    def batches(self, progress: Progress = None) -> Iterator[Intervals]:
        """Intervals in the order in which they end; to be called once. Raises InputError for a damaged file."""
        for following, found in self.frame_touches(progress):
            yield self._tracker.add(found, following)
        yield self._tracker.finish()

    def frame_touches(self, progress: Progress = None) -> Iterator[tuple[int, Intervals]]:
        """Lower bounds of the frames of later touches, and results of `touches_of`. Raises InputError as `batches`."""
        worlds, count = self._contacts.world_count, len(self.frames)
        if count and worlds:
            first, last = int(self.frames.number[0]) * worlds, (int(self.frames.number[-1]) + 1) * worlds
            particles = self._options.with_particles, self._options.by == PARTICLES
            blocks = touching_blocks(self._contacts, self._options.block_rows, first, last, *particles)
            for block in read_ahead(blocks):
                following = self._index((block.first_cell + len(block.cell_counts)) // worlds)
                yield following, self.touches_of(block)
                if progress is not None:
                    progress(min(following, count), count)

    def _index(self, frame: int) -> int:
        """Index of the first selected frame that is not before `frame`."""
        return -(-(frame - self._start) // self._step)

    def selected_steps(self, cell: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """int64: rows of steps that begin in `cell`, int[n], of selected pairs and worlds, between selected frames."""
        frame, world = np.divmod(cell, self._contacts.world_count)
        last = self.frames.number[-1] if len(self.frames) else -1
        between = (frame >= self._start) & (frame + 1 <= last) & self._is_selected_world[world]
        selected = self._selection.of_rows(shape0, shape1, between)
        return np.flatnonzero(between if selected is None else selected & between)

    def touches_of(self, block: ContactBlock) -> Intervals:
        """An interval of one frame for each touching pair of each cell of a block of `touching_blocks`."""
        worlds = self._contacts.world_count
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
        near |= shape0 >= len(self._contacts.shapes)  # contacts of particle objects with each other
        rows = np.flatnonzero(near if selected is None else near & selected)
        self.touching_count += len(rows)
        cell = cell[rows]
        key = self.keys.key(world[cell], shape0[rows], shape1[rows])
        found = touches(key, index[cell], distance[rows])
        begin, end = self.frames.borders(self.keys.world(found.key), found.first)
        return replace(found, begin=begin, end=end)


def _keys(contacts: ContactSet, by: str) -> PairKeys:
    """Keys of pairs of the items of `touching_blocks`."""
    shapes, objects, worlds = contacts.shapes, contacts.particle_objects, contacts.world_count
    if by == "bodies":
        keys = PairKeys.of_bodies(contacts.body_path, shapes.path, shapes.body, worlds)
    else:
        keys = PairKeys.of_shapes(shapes.path, worlds)
    keys = keys.with_more(objects.path, objects.kind, worlds)
    if by != PARTICLES:
        return keys
    counts = zip(objects.path, objects.particle_count.tolist(), strict=True)
    return keys.with_more(
        [f"{path}[{k}]" for path, count in counts for k in range(count)], ("particle",) * objects.total, worlds
    )


def _worlds(contacts: ContactSet, worlds: Sequence[int]) -> np.ndarray:
    """bool[W]: whether each world is selected."""
    wanted = np.full(contacts.world_count, not len(worlds))
    for world in worlds:
        if not 0 <= world < contacts.world_count:
            held = numbered(contacts.world_count, "world")
            raise InputError(f"world {world} does not exist", contacts.path, f"it has {held}")
        wanted[world] = True
    return wanted
