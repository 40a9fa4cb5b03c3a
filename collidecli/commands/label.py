"""The verb `label`: which bodies touch in each frame of each world of a contact set, as dense arrays or a table."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.patterns import NamedItems, Sides
from collidecli.analysis.summary import TimeBins
from collidecli.analysis.touches import RIGID, Intervals, LabelRule, labelled_runs
from collidecli.commands.event_stream import EventOptions, EventStream, group_notes, row_templates
from collidecli.commands.results import HDF5_ENDINGS, Progress, Result, check_ending, check_output, html_table
from collidecli.errors import InputError
from collidecli.exporters.rows import Array, episode_arrays, held, named_items, rows_of_block, texts, write_npz
from collidecli.scene.model import may_share_world
from collidecli.scene.motion import check_seconds, recorded_cells
from collidecli.scene.options import LABEL_THINGS, recorded_number
from collidecli.scene.tables import SOFT_CONTACTS
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_shape_rows, gap_range, pair_values
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.schema import TIME
from collidecli.storage.process_activity import reading
from collidecli.storage.result_files import (
    LABELS_FORMAT,
    Append,
    TableColumn,
    arrays_h5,
    cell_columns,
    parquet_table,
    require_pyarrow,
)
from collidecli.texts import plural

if TYPE_CHECKING:
    import pandas

    from collidecli.commands.contact_set import NamedColumns

# Labels of a contact set: which sensors touch which partners in each frame of each world, and how fast they slip.

BLOCK_VALUES = 1 << 22
"""Labels of one block: frames, worlds, sensors and partners multiplied."""
Missing = set[tuple[str, str]]
"""Options and their patterns that match nothing."""
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
    contacts [m], infinite without one, NaN where the world does not have the pair. slip: float32, the greatest of the
    contacts within `leave` [m/s], NaN where there is no label or no such contact; None if it is not read.
    """

    first: int
    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None


class ContactLabels:
    """Labels of a contact set over selected frames, worlds, sensors and partners.

    frames: selected. worlds: int64[W]. sensors, partners: names, each once over all templates. present: bool[W, S, P],
    whether the world's template has shapes or particles of both. runs: of every pair of items, by `keys`.
    contact_count: contacts of the selected worlds and frames. notes: warnings.

    Raises InputError for options that do not fit the set, and for a `leave` beyond the gap of a selected pair.
    """

    def __init__(
        self, contacts: ContactSet, options: LabelOptions, progress: Progress = None, missing: Missing | None = None
    ) -> None:
        """missing: option and pattern of each pattern without a match are added to it; None: they are refused."""
        rule = options.rule
        if options.by not in LABEL_THINGS:
            raise InputError(f"'{options.by}' is none of {', '.join(LABEL_THINGS)}", "--by")
        if options.slip and SLIP not in contacts.column_names:
            fix = f"collide run --columns {SLIP} writes it"
            raise InputError(f"the contact set has no column '{SLIP}'", f"{contacts.path}: --slip", fix)
        chosen = EventOptions(math.inf, by=options.by, worlds=options.worlds, frames=options.frames)
        stream = self._stream = EventStream(contacts, chosen)
        self.contacts, self.options = contacts, options
        self.frames, self.keys = stream.frames, stream.keys
        self.worlds = stream.worlds.astype(np.int64)
        self._sensor = self._selected(options.sensors, "--sensors", missing)
        self._partner = self._selected(options.partners, "--partners", missing)
        self.sensors, self.partners = ([self.keys.paths[row] for row in rows] for rows in (self._sensor, self._partner))
        # A body without a shape in any template is present everywhere, and touches nothing.
        templates = self.contacts.world_template
        row_template = row_templates(self.contacts, len(self.keys.number))
        in_template = np.zeros((int(templates.max(initial=0)) + 1, len(self.keys.paths)), bool)
        in_template[row_template, self.keys.number] = True
        in_template |= ~in_template.any(axis=0)
        in_template[:, self.keys.number[row_template < 0]] = True
        in_world = in_template[templates[self.worlds]]
        self.present = in_world[:, self._sensor, None] & in_world[:, None, self._partner]
        self.notes = group_notes(contacts, rule.leave, False)
        if absent := int((~self.present).sum()):
            what = f"{absent} of {self.present.size} triples of world, sensor and partner are not in the world's scene"
            self.notes.append(f"{what}: they have no label ('present' is false in arrays, a table has no row)")
        self._check_covered(rule.leave)
        selected = [touches.take(self._is_selected(touches)) for _, touches in stream.frame_touches(progress)]
        self.contact_count = stream.contact_count
        self._found = _by_key(selected)
        # Contacts of particle objects with each other touch at any distance, as in `events`.
        is_rigid = np.array([kind in RIGID for kind in self.keys.kinds], bool)
        one, other = self.keys.items(self._found.key)
        always = np.zeros(0, bool) if not len(self._found) else ~(is_rigid[one] | is_rigid[other])
        distance = np.where(always, np.float32(-np.inf), self._found.distance)
        self.runs = labelled_runs(self._found.key, self._found.first, distance, rule, self._found.end)
        self._slip = _by_key(self._slips(rule.leave)) if options.slip else None

    def _selected(self, patterns: Sequence[str], option: str, missing: Missing | None) -> np.ndarray:
        """int64[n]: items that match a pattern; without patterns every item, or the moving ones for --sensors."""
        keys, contacts = self.keys, self.contacts
        if patterns:
            items = named_items(contacts)
            if missing is not None:
                missing |= {(option, pattern) for pattern in patterns if not items.met(pattern).any()}
                patterns = [pattern for pattern in patterns if (option, pattern) not in missing]
            return np.unique(keys.number[: len(items.path)][items.matching(patterns, option)])
        if option == "--partners":
            return np.arange(len(keys.paths))
        moving = np.array([kind != "shape" for kind in keys.kinds], bool)
        if self.options.by == "shapes":
            moving[keys.number[: len(contacts.shapes)][contacts.shapes.body >= 0]] = True
        if not moving.any():
            raise InputError("nothing in the contact set moves", contacts.path, "name the sensors with --sensors")
        return np.flatnonzero(moving)

    def _check_covered(self, leave: float) -> None:
        """Raises InputError if contacts of a selected pair of shapes are not reported up to `leave`: a pair without
        contacts may then be nearer.
        """
        limit, contacts = np.float32(leave), self.contacts
        if limit <= 0.0:
            return
        soft_gap = recorded_number(contacts.config, SOFT_CONTACTS.limit)
        if SOFT_CONTACTS.name in contacts.groups and soft_gap is not None and np.float32(soft_gap) < limit:
            what = f"contacts of particles are reported only up to {soft_gap:g} m"
            raise InputError(what, f"--leave {leave:g}", f"run with --soft-gap {leave:g}, or give at most {soft_gap:g}")
        if np.float32(gap_range(contacts)[0]) >= limit:
            return
        shapes, (_, pair_gap) = contacts.shapes, pair_values(contacts)
        item, rows = self.keys.number[: len(shapes)], np.arange(len(shapes))
        others = rows[np.isin(item, self._partner)]
        for row in rows[np.isin(item, self._sensor)]:
            near = others[
                (item[others] != item[row])
                & ((shapes.body[others] >= 0) | (shapes.body[row] >= 0))
                & may_share_world(shapes.template[others], shapes.template[row])
            ]
            gap = pair_gap(np.minimum(near, row), np.maximum(near, row)).astype(np.float32)
            if (gap < limit).any():
                pair = f"{shapes.path[row]} and {shapes.path[int(near[np.argmin(gap)])]}"
                what = f"contacts of {pair} are reported only up to {gap.min():.6g} m, their gap"
                fix = f"run with --gap {leave:g} (--gap {leave / 2:g} with --gap-rule sum), or give at most that"
                raise InputError(what, f"--leave {leave:g}", fix)

    def _is_selected(self, intervals: Intervals) -> np.ndarray:
        """int64[n]: rows of pairs of a sensor and a partner, which are two items."""
        one, other = self.keys.items(intervals.key)
        sensor, partner = (np.zeros(len(self.keys.paths), bool) for _ in range(2))
        sensor[self._sensor] = partner[self._partner] = True
        either = (sensor[one] & partner[other]) | (sensor[other] & partner[one])
        return np.flatnonzero(either & (one != other))

    def _slips(self, leave: float) -> Iterator[Intervals]:
        """As of `touches`, with the negative of the greatest slip in place of the least distance."""
        if not len(self.frames):
            return
        worlds, number = self.contacts.world_count, self.frames.number
        cells = int(number[0]) * worlds, (int(number[-1]) + 1) * worlds
        for block in self.contacts.blocks(names=("shape0", "shape1", "distance", SLIP), first=cells[0], last=cells[1]):
            check_shape_rows(self.contacts, block)
            near = np.flatnonzero((block.distance <= np.float32(leave)) & np.isfinite(block.columns[SLIP]))
            near = rows_of_block(block, near)
            near.columns["distance"] = -near.columns[SLIP]
            touches = self._stream.touches_of(near)
            yield touches.take(self._is_selected(touches))

    @cached_property
    def recorded(self) -> np.ndarray:
        """bool[F, W]: whether each cell is recorded: in an episode, if the set has some."""
        every = recorded_cells(self.frames.episodes, len(self.frames), self.contacts.world_count)
        return every[:, self.worlds]

    def cells(self, sensor: int, partner: int) -> np.ndarray:
        """int64[F]: recorded cells of each frame whose world has the pair."""
        return self.recorded @ self.present[:, sensor, partner].astype(np.int64)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, worlds, sensors, partners."""
        return len(self.frames), len(self.worlds), len(self.sensors), len(self.partners)

    def blocks(self) -> Iterator[LabelBlock]:
        """The labels in order, in blocks of whole frames."""
        frames, *row = self.shape
        at_once = max(1, BLOCK_VALUES // max(1, math.prod(row)))
        key, frame = self.runs.cells()
        touches = _Dense(self, key, frame, np.ones(len(key), bool), np.zeros(1, bool))
        apart = np.where(self.present, np.float32(np.inf), np.float32(np.nan))
        distances = _Dense(self, self._found.key, self._found.first, self._found.distance, apart)
        slips = None
        if self._slip is not None:
            unknown = np.full(1, np.nan, np.float32)
            slips = _Dense(self, self._slip.key, self._slip.first, -self._slip.distance, unknown)
        for first in range(0, frames, at_once):
            count = min(at_once, frames - first)
            touch, slip = touches.frames(first, count), None
            if slips is not None:
                slip = slips.frames(first, count)
                slip[~touch] = np.nan
            yield LabelBlock(first, touch, distances.frames(first, count), slip)


class _Dense:
    """Values of pairs in frames as dense arrays [f, W, S, P]; a pair of two sensors that are partners has two entries.

    empty: [1] or [W, S, P], the other values.
    """

    def __init__(
        self, labels: ContactLabels, key: np.ndarray, frame: np.ndarray, values: np.ndarray, empty: np.ndarray
    ) -> None:
        keys, self._row_shape, self._empty = labels.keys, labels.shape[1:], empty
        world_of = _inverse(labels.worlds, labels.contacts.world_count)
        sensor_of, partner_of = (_inverse(rows, len(keys.paths)) for rows in (labels._sensor, labels._partner))
        one, other = keys.items(key)
        row = np.tile(np.arange(len(key)), 2)
        sensor, partner = np.concatenate([one, other]), np.concatenate([other, one])
        place = np.stack([frame[row], world_of[keys.world(key)][row], sensor_of[sensor], partner_of[partner]])
        labelled = np.flatnonzero((place >= 0).all(axis=0))
        labelled = labelled[np.argsort(place[0, labelled], kind="stable")]
        self._values, self._place = values[row[labelled]], place[:, labelled]

    def frames(self, first: int, count: int) -> np.ndarray:
        """[count, W, S, P]: the values of frames from `first`."""
        dense = np.broadcast_to(self._empty, (count, *self._row_shape)).copy()
        low, high = np.searchsorted(self._place[0], [first, first + count])
        frame, world, sensor, partner = self._place[:, low:high]
        dense[frame - first, world, sensor, partner] = self._values[low:high]
        return dense


def _inverse(rows: np.ndarray, count: int) -> np.ndarray:
    """int64[count]: position of each number in `rows`, or -1."""
    inverse = np.full(count, -1, np.int64)
    inverse[rows] = np.arange(len(rows))
    return inverse


def _by_key(parts: Iterator[Intervals] | list[Intervals]) -> Intervals:
    both = Intervals.chained(Intervals.none(), *parts)
    return both.take(np.argsort(both.key, kind="stable"))


# Labels of named pairs of one world, as columns of a data set.

PAIR_LABELS = ("touching", "valid", "distance", "present")


class NamedPairs:
    """The pairs of --pairs, each two patterns of shapes or bodies, and their labels.

    names: of the pairs. Raises InputError for one given twice.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], rule: LabelRule) -> None:
        self._patterns, self.names, self._rule = pairs, tuple(map(" ".join, pairs)), rule
        self._missing = set(self.names)
        for text in self.names:
            if self.names.count(text) > 1:
                raise InputError(f"'{text}' is given twice", "--pairs", "give each pair once")

    def labels(self, contacts: ContactSet) -> dict[str, np.ndarray]:
        """The PAIR_LABELS [F, P] of the pairs; "distance" is float32, the least of the pair's contacts [m].

        A pair touches by the rule. In a frame without a contact of the pair, which is then beyond the gap, "valid" is
        false and "distance" is the least gap of its shapes. Where the scene does not have the pair, "present" is false
        in all frames and "distance" the least gap of all shapes. contacts: of one world. Raises InputError for a rule
        beyond the gap of a pair.
        """
        gap, count = contacts.shapes.gap, len(self.names)
        join = np.maximum if contacts.gap_rule == "max" else np.add
        distance, present = np.full((contacts.frame_count, count), np.inf, np.float32), np.zeros(count, bool)
        shapes = contacts.shapes
        items = NamedItems(shapes.path, shapes.body, contacts.body_path, f"shape or body of {contacts.path}")
        sides, limit = [], np.full(count, gap.min(initial=np.inf), np.float32)
        for column, pair in enumerate(self.names):
            first, second = pair_sides = Sides(*map(items.met, self._patterns[column]))
            sides.append(pair_sides)
            present[column] = first.any() and second.any()
            if not present[column]:
                continue
            self._missing.discard(pair)
            gaps = contacts.forced.gap[pair_sides.of_pairs(contacts.forced.shape0, contacts.forced.shape1)]
            limit[column] = np.nanmin([join(gap[first].min(), gap[second].min()), *gaps])
            if max(0.0, self._rule.leave) > limit[column]:
                what = f"contacts of {pair} are reported only up to {limit[column]:.6g} m, their gap"
                raise InputError(what, f"--leave {self._rule.leave:g}", "run with a larger gap, or give at most that")
        for block in contacts.blocks(names=("shape0", "shape1", "distance")) if self.names else ():
            frame = block.cell  # of one world
            for column, pair_sides in enumerate(sides):
                chosen = pair_sides.of_pairs(block.shape0, block.shape1)
                np.minimum.at(distance[:, column], frame[chosen], block.distance[chosen])
        valid, touching = np.isfinite(distance), np.zeros(distance.shape, bool)
        column, frame = np.nonzero(valid.T)
        touching.T[labelled_runs(column, frame, distance[frame, column], self._rule).cells()] = True
        of_frames = np.broadcast_to(present, distance.shape)
        return dict(zip(PAIR_LABELS, (touching, valid, np.where(valid, distance, limit), of_frames), strict=True))

    def check(self) -> None:
        """Raises InputError for a pair that no set of `labels` has."""
        for pair in sorted(self._missing):
            what = f"'{pair}': no scene has shapes that match both"
            raise InputError(what, "--pairs", "collide inspect lists the shapes, and patterns match whole paths")


FILE, EPISODE = "file", "episode"
OF_EPISODE = ("job", "motion", "demo")
"""Columns of the episodes of a batch, in a table of their labels."""
MAX_BINS = 160
DENSE = {"touch": ("bool", ""), "distance": ("float32", "m"), "slip": ("float32", "m/s")}
"""Types and units of the dense arrays; the slip only on request."""


@dataclass(frozen=True)
class LabelRequest:
    """A contact set, options and the output. first: number of listed pairs; 0 lists none."""

    path: str
    output: str
    options: LabelOptions = field(default_factory=LabelOptions)
    first: int = 20
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class LabelResult(Result, schema="collide.label/1", optional=("chart", "bytes")):
    """Labels of a contact set. shape: frames, worlds, sensors, partners. recorded: cells with a frame of the recording.

    bytes: of the output, None for a part of one. labelled: labels that are true; runs: of consecutive ones. pairs:
    number of labelled pairs of sensor and partner.
    listed: the first of them, with most labels first. series: of bins of frames, and `labelled` of each listed pair:
    the fraction of the recorded cells of the bin that have the label. chart: path of the picture.
    """

    file: str
    scene: str
    scene_sha256: str
    trajectory_sha256: str
    options: dict[str, Any]
    shape: dict[str, int]
    sensors: list[str]
    partners: list[str]
    recorded: int
    contacts: int
    labelled: int
    runs: int
    pairs: int
    listed: list[dict[str, Any]]
    series: dict[str, Any]
    warnings: list[str]
    output: str
    bytes: int | None
    chart: str | None = None


@dataclass(frozen=True)
class Labels:
    """Labels of contacts as arrays; F frames, W worlds, S sensors, P partners.

    touch: bool[F, W, S, P]. distance: float32[F, W, S, P], least distance of the contacts [m], negative is penetration,
    infinite without a contact in the set. slip: float32[F, W, S, P] [m/s], greatest of the contacts, NaN without one;
    None without slip=True. sensors, partners: names. frame, step: int64[F], numbers in the set and of the recorder.
    time: float64[F] [s], or numbers of frames for an array of poses without times.
    world: int64[W]. recorded: bool[F, W], false after the end of a demonstration. present:
    bool[W, S, P], false where the world's scene does not have both; there touch is false and distance NaN. `len` is the
    number of labels of recorded cells.
    """

    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None
    sensors: tuple[str, ...]
    partners: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray
    world: np.ndarray
    recorded: np.ndarray
    present: np.ndarray

    def __repr__(self) -> str:
        return f"<Labels {' '.join(f'{name}={size}' for name, size in _sizes(self.touch.shape).items())}>"

    def __len__(self) -> int:
        return int(self._rows.sum())

    def _repr_html_(self) -> str:
        return html_table(
            _sizes(self.touch.shape) | {"labels": len(self), "touching": int(self.touch[self._rows].sum())}
        )

    @property
    def _rows(self) -> np.ndarray:
        """bool[F, W, S, P]: recorded cells of two different items that are present."""
        sensors, partners = (np.array(names, object) for names in (self.sensors, self.partners))
        return self.recorded[:, :, None, None] & self.present & (sensors[:, None] != partners)

    def _axes(self, **of_frames: np.ndarray) -> list[dict[str, np.ndarray]]:
        named = {"sensor": self.sensors, "partner": self.partners}
        items = [{name: np.array(paths, object)} for name, paths in named.items()]
        return [{"frame": self.frame, **of_frames, "time": self.time}, {"world": self.world}, *items]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows and columns of `label -o x.parquet`, `len` of them. Raises InputError without pandas."""
        from collidecli.commands.contact_set import dense_rows

        arrays = {name: getattr(self, name) for name in DENSE if getattr(self, name) is not None}
        return dense_rows(self._axes(step=self.step), arrays, self._rows).to_pandas()

    def events(self) -> NamedColumns:
        """A row for each run of frames with a label: world, sensor, partner, begin_frame, last_frame, and the times."""
        from collidecli.commands.contact_set import dense_intervals

        return dense_intervals(self._axes(), self.touch & self._rows)


def _sizes(shape: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("frames", "worlds", "sensors", "partners"), shape, strict=True))


def label(request: LabelRequest, progress: Progress = None) -> LabelResult:
    """Labels a contact set and writes the output.

    Raises InputError for a file that is not a contact set and options that do not fit it, OutputError; then there is
    no output.
    """
    check_ending(request.output, (".parquet", ".npz", *HDF5_ENDINGS), "a file of labels")
    check_output(request.output, request.force, (request.path,))
    if request.output.lower().endswith(".parquet"):
        require_pyarrow("Parquet")
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts:
        check_seconds(contacts.time_unit, f"{request.path}: {TIME}")
        tally = _Tally(ContactLabels(contacts, request.options, progress))
        with AtomicOutput(request.output, request.force) as output:
            _WRITERS[os.path.splitext(request.output)[1].lower()](output, tally)
            output.commit()
        return _result(request, tally)


class LabelTable:
    """Rows of the labels of several contact sets in one Parquet table, with a column of the file.

    request: its path is not used. append: of the table. done: number of sets.
    """

    def __init__(self, request: LabelRequest, append: Append) -> None:
        self._request, self._append, self.done = request, append, 0
        self._missing: Missing | None = None

    def add(self, path: str, episodes: Sequence[Mapping[str, str]], progress: Progress = None) -> LabelResult:
        """Appends the rows of a set, once for each of its episodes. Raises InputError as `label`, without a row.

        episodes: values of the columns OF_EPISODE; of a table without them one without values.
        """
        missing: Missing = set()
        with reading("contact set", path), ContactSet.open(path) as contacts:
            tally = _Tally(ContactLabels(contacts, self._request.options, progress, missing))
            names = {name: [episode[name] for episode in episodes] for name in episodes[0]}
            words = _words(tally.labels) | {FILE: (path,)} | names
            for block in _parquet_rows(tally):
                zero = np.zeros(len(block["frame"]), np.int64)
                block = {EPISODE: zero, FILE: zero, **block}
                for number in range(len(episodes)):
                    self._append(block | dict.fromkeys(episodes[0], zero + number), words)
            self.done += 1
            self._missing = missing if self._missing is None else self._missing & missing
            return _result(self._request, tally, whole=False)

    def check(self) -> None:
        """Raises InputError for a pattern that matches nothing in any set."""
        for option, pattern in sorted(self._missing or ()):
            raise InputError(f"'{pattern}' matches nothing in {plural(self.done, 'contact set')}", option)


@contextmanager
def labels_table(request: LabelRequest, of_batch: bool) -> Iterator[LabelTable]:
    """The table of `request`, which is written at the end of the block if a set has been added.

    of_batch: it has the columns OF_EPISODE. Raises InputError and OutputError.
    """
    check_ending(request.output, (".parquet",), "a table of several contact sets")
    require_pyarrow("Parquet")
    names = (FILE, *(OF_EPISODE if of_batch else ()))
    columns = (*(TableColumn(name, np.dtype(np.int32), words=()) for name in names), *_columns(request.options, True))
    with AtomicOutput(request.output, request.force) as output:
        with parquet_table(output, columns) as append:
            table = LabelTable(request, append)
            yield table
            table.check()
        if table.done:
            output.commit()


def labels_in_memory(contacts: ContactSet, options: LabelOptions) -> Labels:
    """The labels of a contact set as arrays. Raises InputError for options that do not fit it."""
    labels = ContactLabels(contacts, options)
    for note in labels.notes:
        warnings.warn(note, stacklevel=4)
    blocks = list(labels.blocks())
    empty = np.zeros((0, *labels.shape[1:]))

    def whole(name: str) -> np.ndarray:
        kind = np.dtype(DENSE[name][0])
        return np.concatenate([empty.astype(kind), *(getattr(block, name) for block in blocks)])

    number = labels.frames.number
    return Labels(
        whole("touch"), whole("distance"), whole("slip") if options.slip else None, tuple(labels.sensors),
        tuple(labels.partners), number, contacts.step[number], labels.frames.time, labels.worlds, labels.recorded,
        labels.present,
    )  # fmt: skip


class _Tally:
    """Sums over the blocks that are written: labels, and of each pair the cells, the least distance and the slip."""

    def __init__(self, labels: ContactLabels) -> None:
        self.labels = labels
        shape = labels.shape[2:]
        self.cells, self.slipping = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.distance, self.slip = np.full(shape, np.inf, np.float32), np.zeros(shape)

    def blocks(self) -> Iterator[LabelBlock]:
        """The blocks of the labels, each counted once it is taken."""
        for block in self.labels.blocks():
            self.cells += block.touch.sum(axis=(0, 1))
            least = np.where(block.touch, block.distance, np.inf).min(axis=(0, 1), initial=np.inf)
            self.distance = np.minimum(self.distance, least.astype(np.float32))
            if block.slip is not None:
                known = ~np.isnan(block.slip)
                self.slipping += known.sum(axis=(0, 1))
                self.slip += np.where(known, block.slip, 0.0).sum(axis=(0, 1), dtype=np.float64)
            yield block


def _small_arrays(labels: ContactLabels) -> tuple[Array, ...]:
    number = labels.frames.number
    return (
        held("frame_index", number.astype(np.int64)),
        held("step", labels.contacts.step[number]),
        held("time", labels.frames.time),
        held("world", labels.worlds),
        held("recorded", labels.recorded),
        held("present", labels.present),
        *episode_arrays(labels.frames.episodes and labels.frames.episodes.of_worlds(labels.worlds)),
    )


def _dense(options: LabelOptions) -> dict[str, tuple[np.dtype, str]]:
    names = [name for name in DENSE if name != "slip" or options.slip]
    return {name: (np.dtype(DENSE[name][0]), DENSE[name][1]) for name in names}


def _write_npz(output: AtomicOutput, tally: _Tally) -> None:
    labels = tally.labels

    def pieces(name: str) -> Callable[[], Iterator[np.ndarray]]:
        return lambda: (getattr(block, name) for block in (tally if name == "touch" else labels).blocks())

    dense = [Array(name, dtype, labels.shape, pieces(name)) for name, (dtype, _) in _dense(labels.options).items()]
    names = (texts("sensors", labels.sensors), texts("partners", labels.partners))
    write_npz(output, (*dense, *names, *_small_arrays(labels)))


def _write_h5(output: AtomicOutput, tally: _Tally) -> None:
    labels, contacts, dense = tally.labels, tally.labels.contacts, _dense(tally.labels.options)
    small = (*_small_arrays(labels), texts("sensors", labels.sensors), texts("partners", labels.partners))
    about = {"scene": contacts.scene, "contacts_sha256": contacts.content_sha256, "options": _options(labels.options)}
    units = {"time": "s", **{name: unit for name, (_, unit) in dense.items() if unit}}
    shapes = {name: (dtype, labels.shape) for name, (dtype, _) in dense.items()}
    tables = {array.name: next(array.pieces()) for array in small}
    with arrays_h5(output, LABELS_FORMAT, about, tables, units, shapes) as append:
        for block in tally.blocks():
            append(block.first, {name: getattr(block, name) for name in dense})


def _write_parquet(output: AtomicOutput, tally: _Tally) -> None:
    labels, contacts = tally.labels, tally.labels.contacts
    about = {"scene": contacts.scene, "content_sha256": contacts.content_sha256}
    columns = _columns(labels.options, labels.frames.episodes is not None)
    with parquet_table(output, columns, about) as append:
        for block in _parquet_rows(tally):
            append(block, _words(labels))


def _columns(options: LabelOptions, has_episodes: bool) -> tuple[TableColumn, ...]:
    """Columns of `_parquet_rows`, whose words are `_words`."""
    dense = _dense(options).items()
    return (
        *cell_columns(None),
        *(TableColumn(n, np.dtype(np.int32), words=()) for n in (*[EPISODE] * has_episodes, "sensor", "partner")),
        *(TableColumn(name, dtype, unit, nan_is_none=name == "slip") for name, (dtype, unit) in dense),
    )


def _words(labels: ContactLabels) -> dict[str, Sequence[str]]:
    episodes = labels.frames.episodes
    names = ("", *(() if episodes is None else episodes.name))
    return {"sensor": labels.sensors, "partner": labels.partners, EPISODE: names}


def _parquet_rows(tally: _Tally) -> Iterator[dict[str, np.ndarray]]:
    """Rows of the recorded cells and of present pairs of two items, block by block."""
    labels, episodes = tally.labels, tally.labels.frames.episodes
    differ = np.array(labels.sensors, object)[:, None] != np.array(labels.partners, object)[None]
    for block in tally.blocks():
        recorded = labels.recorded[block.first : block.first + len(block.touch), :, None, None]
        rows = recorded & labels.present & differ
        frame, world, sensor, partner = np.nonzero(rows)
        index = frame + block.first
        number = labels.frames.number[index]
        yield {
            "frame": number,
            "step": labels.contacts.step[number],
            "time": labels.frames.time[index],
            "world": labels.worlds[world],
            **({} if episodes is None else {EPISODE: episodes.row(labels.worlds[world], index) + 1}),
            "sensor": sensor,
            "partner": partner,
            **{name: getattr(block, name)[rows] for name in _dense(labels.options)},
        }


_WRITERS = {".npz": _write_npz, ".parquet": _write_parquet, **dict.fromkeys(HDF5_ENDINGS, _write_h5)}


def _options(options: LabelOptions) -> dict[str, Any]:
    rule = options.rule
    return {
        "sensors": list(options.sensors), "partners": list(options.partners), "by": options.by, "enter": rule.enter,
        "leave": rule.leave, "min_frames": rule.min_frames, "slip": options.slip, "frames": options.frames,
    }  # fmt: skip


def _result(request: LabelRequest, tally: _Tally, whole: bool = True) -> LabelResult:
    labels, contacts = tally.labels, tally.labels.contacts
    listed = _listed(tally, request.first)
    bins = TimeBins(len(labels.frames), MAX_BINS)
    key, frame = labels.runs.cells()
    low, high = labels.keys.items(key)
    labelled = []
    for row in listed:
        at = labels.sensors.index(row["sensor"]), labels.partners.index(row["partner"])
        cells = np.add.reduceat(labels.cells(*at), bins.start)
        rows = sorted((labels._sensor[at[0]], labels._partner[at[1]]))
        labelled_bins = bins.of[frame[(low == rows[0]) & (high == rows[1])]]
        labelled.append((np.bincount(labelled_bins, minlength=len(cells)) / np.maximum(cells, 1)).tolist())
    return LabelResult(
        file=contacts.path,
        scene=contacts.scene,
        scene_sha256=contacts.scene_sha256,
        trajectory_sha256=contacts.trajectory_sha256,
        options=_options(request.options),
        shape=_sizes(labels.shape),
        sensors=labels.sensors,
        partners=labels.partners,
        recorded=int(labels.recorded.sum()),
        contacts=labels.contact_count,
        labelled=int(tally.cells.sum()),
        runs=len(labels.runs),
        pairs=int((tally.cells > 0).sum()),
        listed=listed,
        series={**bins.axis(labels.frames.time, labels.frames.number), "labelled": labelled},
        warnings=labels.notes,
        output=os.fspath(request.output),
        bytes=os.path.getsize(request.output) if whole else None,
    )


def _listed(tally: _Tally, first: int) -> list[dict[str, Any]]:
    """The pairs with most labels. share: part of recorded cells that have the pair. slip: mean of those with one."""
    labels, (sensor, partner) = tally.labels, np.nonzero(tally.cells)
    order: Sequence[int] = np.lexsort((partner, sensor, -tally.cells[sensor, partner])).tolist()
    rows = []
    for row in order[:first]:
        at = sensor[row], partner[row]
        slipping = int(tally.slipping[at])
        rows.append(
            {
                "sensor": labels.sensors[at[0]],
                "partner": labels.partners[at[1]],
                "cells": int(tally.cells[at]),
                "share": float(tally.cells[at] / labels.cells(*at).sum()),
                "least_distance": float(tally.distance[at]),
                **(
                    {"mean_slip": float(tally.slip[at] / slipping) if slipping else None} if labels.options.slip else {}
                ),
            }
        )
    return rows
