"""Labels of a contact set: which sensors touch which partners in each frame of each world, and how fast they slip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from collidecli.analysis.contact_labels import LabelRule, Runs, labelled_runs
from collidecli.analysis.path_patterns import matching_paths
from collidecli.analysis.touch_intervals import Frames, Intervals, PairKeys
from collidecli.commands.event_selection import EventOptions, group_notes
from collidecli.commands.event_stream import EventStream
from collidecli.commands.result import Progress
from collidecli.errors import InputError
from collidecli.scene.contact_groups import SOFT_CONTACTS
from collidecli.scene.contacts import ContactBlock
from collidecli.scene.option_choices import LABEL_THINGS
from collidecli.scene.run_options import recorded_number
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_shape_rows, gap_range, pair_values

BLOCK_VALUES = 1 << 22
"""Labels of one block: frames, worlds, sensors and partners multiplied."""
SLIP = "slip"
"""Optional column of contacts: tangential speed of the two bodies' points [m/s]."""


@dataclass(frozen=True)
class LabelOptions:
    """What is labelled, and when.

    sensors, partners: patterns of the paths of bodies, static shapes and particle objects (by "bodies"), or of shapes
    and particle objects (by "shapes"); () is every body or moving shape, and every item. enter, leave [m], min_frames:
    see `LabelRule`; leave None is `enter`. slip: read the column of that name. worlds: numbers; () is all. frames:
    A:B:S.
    """

    sensors: Sequence[str] = ()
    partners: Sequence[str] = ()
    by: str = LABEL_THINGS[0]
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1
    slip: bool = False
    worlds: Sequence[int] = ()
    frames: str = ""

    @property
    def rule(self) -> LabelRule:
        """The rule of these options. Raises InputError for values that are not one."""
        leave = self.enter if self.leave is None else self.leave
        for name, value in (("--enter", self.enter), ("--leave", leave)):
            if not math.isfinite(value):
                raise InputError(f"'{value}' is not a finite distance", name, "give metres")
        if leave < self.enter:
            what = f"{leave:g} m is below --enter {self.enter:g} m: a touch would end where it begins"
            raise InputError(what, "--leave", "give at least --enter")
        if self.min_frames != int(self.min_frames) or self.min_frames < 1:
            raise InputError(f"{self.min_frames} is no number of frames", "--min-frames", "give at least 1")
        return LabelRule(self.enter, leave, self.min_frames)


@dataclass(frozen=True)
class LabelBlock:
    """Labels of consecutive frames from index `first`. touch: bool[f, W, S, P]. distance: float32, the least of the
    contacts [m], infinite without one. slip: float32, the greatest of the contacts within `leave` [m/s], NaN where
    there is no label or no such contact; None if it is not read.
    """

    first: int
    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None


class ContactLabels:
    """Labels of a contact set over selected frames, worlds, sensors and partners.

    frames: selected. worlds: int64[W]. sensors, partners: paths. runs: of every pair of items, by `keys`.
    contact_count: contacts of the selected worlds and frames. notes: warnings.

    Raises InputError for options that do not fit the set, and for a `leave` beyond the gap of a selected pair.
    """

    def __init__(self, contacts: ContactSet, options: LabelOptions, progress: Progress = None) -> None:
        rule = options.rule
        if options.by not in LABEL_THINGS:
            raise InputError(f"'{options.by}' is none of {', '.join(LABEL_THINGS)}", "--by")
        if options.slip and SLIP not in contacts.column_names:
            fix = f"collide run --columns {SLIP} writes it"
            raise InputError(f"the contact set has no column '{SLIP}'", f"{contacts.path}: --slip", fix)
        chosen = EventOptions(math.inf, by=options.by, worlds=options.worlds, frames=options.frames)
        stream = self._stream = EventStream(contacts, chosen)
        self.frames: Frames = stream.frames
        self.worlds = stream.worlds.astype(np.int64)
        self.keys: PairKeys = stream.keys
        self.has_slip = options.slip
        self._sensor = _selected(contacts, self.keys, options.sensors, "--sensors", options.by)
        self._partner = _selected(contacts, self.keys, options.partners, "--partners", options.by)
        self.sensors, self.partners = ([self.keys.paths[row] for row in rows] for rows in (self._sensor, self._partner))
        self.notes = group_notes(contacts, rule.leave, False)
        _check_covered(contacts, self.keys, self._sensor, self._partner, rule.leave)
        found = [one.take(self._is_selected(one)) for _, one in stream.frame_touches(progress)]
        self.contact_count = stream.contact_count
        self._found = _by_key(found)
        self.runs = _runs(self._found, self.keys, rule)
        self._slip = _by_key(self._slips(contacts, rule.leave)) if options.slip else None

    def _is_selected(self, found: Intervals) -> np.ndarray:
        """int64[n]: rows of pairs of a sensor and a partner, which are two items."""
        one, other = self.keys.items(found.key)
        sensor, partner = (np.zeros(len(self.keys.paths), bool) for _ in range(2))
        sensor[self._sensor] = partner[self._partner] = True
        either = (sensor[one] & partner[other]) | (sensor[other] & partner[one])
        return np.flatnonzero(either & (one != other))

    def _slips(self, contacts: ContactSet, leave: float) -> Iterator[Intervals]:
        """As of `touches`, with the negative of the greatest slip in place of the least distance."""
        if not len(self.frames):
            return
        worlds, number = contacts.world_count, self.frames.number
        cells = int(number[0]) * worlds, (int(number[-1]) + 1) * worlds
        for block in contacts.blocks(names=("shape0", "shape1", "distance", SLIP), first=cells[0], last=cells[1]):
            check_shape_rows(contacts, block)
            speed = block.columns[SLIP]
            rows = np.flatnonzero((block.distance <= np.float32(leave)) & np.isfinite(speed))
            cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)[rows]
            counts = np.bincount(cell, minlength=len(block.cell_counts)).astype(np.int64)
            columns = {name: block.columns[name][rows] for name in ("shape0", "shape1")}
            found = self._stream.touches_of(
                ContactBlock(block.first_cell, counts, {**columns, "distance": -speed[rows]})
            )
            yield found.take(self._is_selected(found))

    @cached_property
    def recorded(self) -> np.ndarray:
        """bool[F, W]: whether each cell is recorded: in an episode, if the set has some."""
        shape = len(self.frames), len(self.worlds)
        if self.frames.episodes is None:
            return np.ones(shape, bool)
        frame, world = np.divmod(np.arange(shape[0] * shape[1]), max(1, shape[1]))
        return (self.frames.episodes.row(self.worlds[world], frame) >= 0).reshape(shape)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, worlds, sensors, partners."""
        return len(self.frames), len(self.worlds), len(self.sensors), len(self.partners)

    def blocks(self) -> Iterator[LabelBlock]:
        """The labels in order, in blocks of whole frames."""
        frames, *row = self.shape
        at_once = max(1, BLOCK_VALUES // max(1, math.prod(row)))
        key, frame = self.runs.cells()
        labels = _Places(self, key, frame)
        least = _Places(self, self._found.key, self._found.first)
        slips = None if self._slip is None else _Places(self, self._slip.key, self._slip.first)
        for first in range(0, frames, at_once):
            count = min(at_once, frames - first)
            touch = labels.filled(first, count, np.zeros(1, bool), np.ones(len(key), bool))
            distance = least.filled(first, count, np.full(1, np.inf, np.float32), self._found.distance)
            slip = None
            if slips is not None and self._slip is not None:
                slip = slips.filled(first, count, np.full(1, np.nan, np.float32), -self._slip.distance)
                slip[~touch] = np.nan
            yield LabelBlock(first, touch, distance, slip)


class _Places:
    """Places of rows of pairs in dense arrays [f, W, S, P]; a pair of two sensors that are partners has two."""

    def __init__(self, labels: ContactLabels, key: np.ndarray, frame: np.ndarray) -> None:
        keys, self._row_shape = labels.keys, labels.shape[1:]
        world_of, sensor_of, partner_of = (
            _inverse(rows, most)
            for rows, most in (
                (labels.worlds, int(labels.worlds.max(initial=0)) + 1),
                (labels._sensor, len(keys.paths)),
                (labels._partner, len(keys.paths)),
            )
        )
        one, other = keys.items(key)
        row = np.tile(np.arange(len(key)), 2)
        sensor, partner = np.concatenate([one, other]), np.concatenate([other, one])
        place = np.stack([frame[row], world_of[keys.world(key)][row], sensor_of[sensor], partner_of[partner]])
        held = np.flatnonzero((place >= 0).all(axis=0))
        held = held[np.argsort(place[0, held], kind="stable")]
        self._row, self._place = row[held], place[:, held]

    def filled(self, first: int, count: int, empty: np.ndarray, values: np.ndarray) -> np.ndarray:
        """[count, W, S, P] of frames from `first`: `values` of the rows in their places, `empty` elsewhere."""
        found = np.broadcast_to(empty, (count, *self._row_shape)).copy()
        low, high = np.searchsorted(self._place[0], [first, first + count])
        frame, world, sensor, partner = self._place[:, low:high]
        found[frame - first, world, sensor, partner] = values[self._row[low:high]]
        return found


def _inverse(rows: np.ndarray, count: int) -> np.ndarray:
    """int64[count]: position of each number in `rows`, or -1."""
    found = np.full(count, -1, np.int64)
    found[rows] = np.arange(len(rows))
    return found


def _by_key(parts: Iterator[Intervals] | list[Intervals]) -> Intervals:
    """Intervals of one frame ordered by key, then frame."""
    both = Intervals.chained(Intervals.none(), *parts)
    return both.take(np.argsort(both.key, kind="stable"))


def _runs(found: Intervals, keys: PairKeys, rule: LabelRule) -> Runs:
    """The runs of touches. Contacts of particle objects with each other touch at any distance, as in `events`."""
    is_rigid = np.array([kind in ("shape", "body") for kind in keys.kinds], bool)
    one, other = keys.items(found.key)
    always = np.zeros(0, bool) if not len(found) else ~(is_rigid[one] | is_rigid[other])
    distance = np.where(always, np.float32(-np.inf), found.distance)
    return labelled_runs(found.key, found.first, distance, rule, found.end)


def _selected(contacts: ContactSet, keys: PairKeys, patterns: Sequence[str], option: str, by: str) -> np.ndarray:
    """int64[n]: items that match a pattern; without patterns every item, or the moving ones for --sensors."""
    if patterns:
        every = "body, static shape or particle object" if by == "bodies" else "shape"
        for pattern in patterns if by == "bodies" else ():
            met = [any(fnmatchcase(path, pattern) for path in paths) for paths in (keys.paths, contacts.shapes.path)]
            if met == [False, True]:
                what = f"'{pattern}' matches shapes of bodies, and no body or static shape"
                raise InputError(what, option, "name their bodies, or label shapes with --by shapes")
        return np.flatnonzero(matching_paths(keys.paths, patterns, option, f"no {every} of {contacts.path}"))
    if option == "--partners":
        return np.arange(len(keys.paths))
    moving = np.array([kind != "shape" for kind in keys.kinds], bool)
    if by == "shapes":
        moving[: len(contacts.shapes)] = contacts.shapes.body >= 0
    if not moving.any():
        raise InputError("nothing in the contact set moves", contacts.path, "name the sensors with --sensors")
    return np.flatnonzero(moving)


def _check_covered(contacts: ContactSet, keys: PairKeys, sensor: np.ndarray, partner: np.ndarray, leave: float) -> None:
    """Raises InputError if contacts of a selected pair of shapes are not reported up to `leave`: a pair without
    contacts may then be nearer.
    """
    limit = np.float32(leave)
    if limit <= 0.0:
        return
    soft_gap = recorded_number(contacts.config, SOFT_CONTACTS.limit)
    if SOFT_CONTACTS.name in contacts.groups and soft_gap is not None and np.float32(soft_gap) < limit:
        what = f"contacts of particles are reported only up to {soft_gap:g} m"
        raise InputError(what, f"--leave {leave:g}", f"run with --soft-gap {leave:g}, or give at most {soft_gap:g}")
    if np.float32(gap_range(contacts)[0]) >= limit:
        return
    shapes, (_, pair_gap) = contacts.shapes, pair_values(contacts)
    item, rows = keys.number[: len(shapes)], np.arange(len(shapes))
    others = rows[np.isin(item, partner)]
    for row in rows[np.isin(item, sensor)]:
        near = others[
            (item[others] != item[row])
            & ((shapes.body[others] >= 0) | (shapes.body[row] >= 0))
            & (
                (shapes.template[others] == shapes.template[row])
                | (shapes.template[others] < 0)
                | (shapes.template[row] < 0)
            )
        ]
        gap = pair_gap(np.minimum(near, row), np.maximum(near, row)).astype(np.float32)
        if (gap < limit).any():
            other = int(near[np.argmin(gap)])
            pair = f"{shapes.path[row]} and {shapes.path[other]}"
            what = f"contacts of {pair} are reported only up to {gap.min():.6g} m, their gap"
            fix = f"run with --gap {leave:g} (--gap {leave / 2:g} with --gap-rule sum), or give at most that"
            raise InputError(what, f"--leave {leave:g}", fix)
