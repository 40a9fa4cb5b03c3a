"""Intervals in which pairs of a contact set touch, block by block for selected contacts and pairs; their columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collidecli.analysis.path_patterns import matching_paths
from collidecli.analysis.touch_intervals import Frames, Intervals, IntervalTracker, MergeGap, PairKeys, touches
from collidecli.commands.motions import parse_frames
from collidecli.commands.result import Progress
from collidecli.commands.touching_blocks import touching_blocks
from collidecli.errors import InputError
from collidecli.scene.contact_groups import HYDRO_PATCHES
from collidecli.scene.contacts import ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.scene.option_choices import EVENT_COLUMNS, EVENT_THINGS
from collidecli.scene.text_format import numbered
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, read_ahead
from collidecli.storage.contact_sets.rules import check_body_rows, check_shape_rows, gap_range
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


@dataclass(frozen=True)
class EventOptions:
    """Definition of a touch and selection of pairs; by default every pair is selected.

    threshold: contacts with a distance of at most this touch [m]; infinity: every contact touches. merge_gap: longest
    pause within an interval. by: pairs of "shapes" or "bodies". include, exclude: a pair must have, and must not have,
    a shape whose path matches. bodies, exclude_bodies: a pair must have, and must not have, a body whose path matches.
    between: two patterns of shape or body paths; a pair must match one with each side. worlds: numbers. frames: A:B:S.
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
    block_rows: int = BLOCK_ROWS


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
            raise InputError(f"'{options.by}' is neither {' nor '.join(EVENT_THINGS)}", "--by")
        if math.isnan(options.threshold):
            raise InputError("the threshold is no number", "--threshold")
        self.notes = _limits_of_threshold(contacts, options.threshold)
        if options.threshold > 0.0 and HYDRO_PATCHES.name in contacts.groups:
            self.notes.append("hydroelastic surfaces are there only where shapes overlap: the threshold adds none")
        check_body_rows(contacts)
        self._contacts, self._options = contacts, options
        picked = parse_frames(options.frames, contacts.frame_count)
        self._start, self._step = picked.start, picked.step
        number = np.arange(picked.start, picked.stop, picked.step)
        episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
        self.frames = Frames(number, contacts.time[number], episodes)
        self._is_selected_world = _worlds(contacts, options.worlds)
        self.worlds = np.flatnonzero(self._is_selected_world)
        shapes = contacts.shapes
        if options.by == "bodies":
            self.keys = PairKeys.of_bodies(contacts.body_path, shapes.path, shapes.body, contacts.world_count)
        else:
            self.keys = PairKeys.of_shapes(shapes.path, contacts.world_count)
        self._selection = _PairSelection.of(contacts, options)
        self._tracker = IntervalTracker(self.frames, options.merge_gap)
        self.contact_count = self.touching_count = 0

    def batches(self, progress: Progress = None) -> Iterator[Intervals]:
        """Intervals in the order in which they end; to be called once. Raises InputError for a damaged file."""
        worlds, count = self._contacts.world_count, len(self.frames)
        if count and worlds:
            first, last = int(self.frames.number[0]) * worlds, (int(self.frames.number[-1]) + 1) * worlds
            for block in read_ahead(touching_blocks(self._contacts, self._options.block_rows, first, last)):
                following = self._index((block.first_cell + len(block.cell_counts)) // worlds)
                yield self._tracker.add(self._touches(block), following)
                if progress is not None:
                    progress(min(following, count), count)
        yield self._tracker.finish()

    def _index(self, frame: int) -> int:
        """Index of the first selected frame that is not before `frame`."""
        return -(-(frame - self._start) // self._step)

    def _touches(self, block: ContactBlock) -> Intervals:
        check_shape_rows(self._contacts, block)
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
        rows = np.flatnonzero(near if selected is None else near & selected)
        self.touching_count += len(rows)
        cell = cell[rows]
        key = self.keys.key(world[cell], shape0[rows], shape1[rows])
        found = touches(key, index[cell], distance[rows])
        begin, end = self.frames.borders(self.keys.world(found.key), found.first)
        return replace(found, begin=begin, end=end)


def _limits_of_threshold(contacts: ContactSet, threshold: float) -> list[str]:
    """A warning if some pairs are reported only up to a smaller distance. Raises InputError if every pair is."""
    least, largest = (float(np.float32(gap)) for gap in gap_range(contacts))
    if threshold <= 0.0 or math.isinf(threshold) or np.float32(threshold) <= least:
        return []
    if np.float32(threshold) > largest:
        raise InputError(
            f"the contact set has no contacts beyond {largest:.6g} m, the largest gap of a pair",
            f"--threshold {threshold:g}",
            f"give at most that, or 'any'; collide run --gap {threshold:g} reports contacts up to there",
        )
    return [
        f"--threshold is {threshold:g} m, but contacts of some pairs are reported only up to their gap ({least:.6g} m)"
    ]


def _worlds(contacts: ContactSet, worlds: Sequence[int]) -> np.ndarray:
    """bool[W]: whether each world is selected."""
    wanted = np.full(contacts.world_count, not len(worlds))
    for world in worlds:
        if not 0 <= world < contacts.world_count:
            held = numbered(contacts.world_count, "world")
            raise InputError(f"world {world} does not exist", contacts.path, f"it has {held}")
        wanted[world] = True
    return wanted


@dataclass(frozen=True)
class _PairSelection:
    """Masks bool[S] of shapes. A pair has a shape in each of `one`, both in `both`, and one in each of `sides`."""

    one: list[np.ndarray]
    both: np.ndarray | None
    sides: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def of(cls, contacts: ContactSet, options: EventOptions) -> _PairSelection:
        shapes, body = contacts.shapes, contacts.shapes.body
        bodies = np.append(np.zeros(len(contacts.body_path), bool), False)

        def of_shapes(patterns: Sequence[str], option: str) -> np.ndarray:
            return matching_paths(shapes.path, patterns, option, f"no shape of {contacts.path}")

        def of_bodies(patterns: Sequence[str], option: str) -> np.ndarray:
            bodies[:-1] = matching_paths(contacts.body_path, patterns, option, f"no body of {contacts.path}")
            return bodies[body]  # the last entry is for body -1

        def of_either(pattern: str) -> np.ndarray:
            names = [*shapes.path, *contacts.body_path]
            met = matching_paths(names, [pattern], "--between", f"no shape or body of {contacts.path}")
            return met[: len(shapes)] | np.append(met[len(shapes) :], False)[body]

        one = [of_shapes(options.include, "--include")] if options.include else []
        one += [of_bodies(options.bodies, "--body")] if options.bodies else []
        out = [of_shapes(options.exclude, "--exclude")] if options.exclude else []
        out += [of_bodies(options.exclude_bodies, "--exclude-body")] if options.exclude_bodies else []
        if options.between and len(options.between) != 2:
            many = "1 pattern is" if len(options.between) == 1 else f"{len(options.between)} patterns are"
            raise InputError(f"{many} given", "--between", "give two, as 'hand*,cup*'")
        sides = (of_either(options.between[0]), of_either(options.between[1])) if options.between else None
        return cls(one, ~np.logical_or.reduce(out) if out else None, sides)

    def of_rows(self, shape0: np.ndarray, shape1: np.ndarray, selected: np.ndarray | None) -> np.ndarray | None:
        """bool[n]: `selected` and in a selected pair; None is all."""
        masks = [mask[shape0] | mask[shape1] for mask in self.one]
        if self.both is not None:
            masks.append(self.both[shape0] & self.both[shape1])
        if self.sides is not None:
            left, right = self.sides
            masks.append((left[shape0] & right[shape1]) | (right[shape0] & left[shape1]))
        for mask in masks:
            selected = mask if selected is None else selected & mask
        return selected
