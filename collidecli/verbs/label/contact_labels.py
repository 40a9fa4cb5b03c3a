"""Labels of a contact set: which sensors touch which partners in each frame, and how fast they
slip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from collidecli.analysis.event_stream import EventStream, row_templates
from collidecli.analysis.labelled_runs import LabelRule, beyond_gap, gap_option
from collidecli.analysis.nominal_forces import (
    CENTRE,
    FORCE,
    check_nominal_stiffness,
    nominal_option,
)
from collidecli.analysis.pair_selection import (
    EventOptions,
    check_known_touches,
    group_notes,
    touch_notes,
)
from collidecli.analysis.touch_intervals import RIGID, TRIGGER, Intervals
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE
from collidecli.errors import InputError
from collidecli.results.result import Progress
from collidecli.scene.contact_columns import SOFT_CONTACTS
from collidecli.scene.distinct_values import distinct
from collidecli.scene.episodes import recorded_cells
from collidecli.scene.option_values import LABEL_THINGS
from collidecli.scene.options import recorded_number
from collidecli.scene.records import may_share_world
from collidecli.storage.array_files import LABELS_FORMAT
from collidecli.storage.contact_sets.readable_rows import check_shape_rows, is_touch_set
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import gap_range, pair_values
from collidecli.storage.contact_sets.selected import named_items, rows_of_block
from collidecli.verbs.label.dense import DenseArray
from collidecli.verbs.label.frame_values import LabelReader, ValueReader
from collidecli.verbs.label.pair_forces import (
    ForceReader,
    PairForces,
    point_forces,
    surface_forces,
)

BLOCK_VALUES = 1 << 20
"""Labels of one block: frames, worlds, sensors and partners multiplied."""
Missing = set[tuple[str, str]]
"""Options and their patterns that match nothing."""
AXES = ("sensors", "partners")
"""Axes of the dense arrays after frames and worlds."""
STIFFNESS = "--nominal-stiffness"
SLIP = "slip"
"""Optional column of contacts: tangential speed of the two bodies' points [m/s]."""


@dataclass(frozen=True)
class LabelOptions:
    """What is labelled, and when.

    sensors, partners: patterns of the paths of bodies, static shapes and particle objects (by
    "bodies"), or of shapes and particle objects (by "shapes"); () is every body or moving shape,
    and every item. enter, leave [m], min_frames: see `LabelRule`; leave None is `enter`. slip: read
    the column of that name. nominal_stiffness: of nominal forces [N/m]; None computes none. worlds:
    numbers; () is all. frames: A:B:S.
    """

    sensors: Sequence[str] = ()
    partners: Sequence[str] = ()
    by: str = LABEL_THINGS[0]
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1
    slip: bool = False
    nominal_stiffness: float | None = None
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
            what = (
                f"{leave:g} m is below --enter {self.enter:g} m: a touch would end where it begins"
            )
            raise InputError(what, "--leave", "give at least --enter")
        if self.min_frames != int(self.min_frames) or self.min_frames < 1:
            raise InputError(
                f"{self.min_frames} is no number of frames", "--min-frames", "give at least 1"
            )
        return LabelRule(self.enter, leave, self.min_frames)


@dataclass(frozen=True)
class LabelBlock:
    """Labels of consecutive frames from index `first`. touch: bool[f, W, S, P]. distance: float32,
    the least of the contacts [m], infinite without one, NaN where the world does not have the pair
    and where a set of touches does not tell it.
    slip: float32, the greatest of the contacts within `leave` [m/s], NaN where there is no label or
    no such contact; None if it is not read. nominal_force: float32[f, W, S, P, 3], on the sensor
    [N], NaN where the world does not have the pair and for particles; pressure_centre: float64, of
    that force [m], NaN without one; None without a stiffness.
    """

    first: int
    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None
    nominal_force: np.ndarray | None = None
    pressure_centre: np.ndarray | None = None


def _check_options(contacts: ContactSet, options: LabelOptions) -> None:
    """Raises InputError for things that have no labels, and for slip and forces that the set does
    not have."""
    if options.by not in LABEL_THINGS:
        raise InputError(f"'{options.by}' is none of {', '.join(LABEL_THINGS)}", "--by")
    if options.slip and SLIP not in contacts.column_names:
        fix = f"collide run --columns {SLIP} writes it"
        raise InputError(f"the contact set has no column '{SLIP}'", f"{contacts.path}: --slip", fix)
    if options.nominal_stiffness is not None:
        check_nominal_stiffness(options.nominal_stiffness, STIFFNESS)
        if is_touch_set(contacts):
            raise InputError(
                "the contact set is of a run with --touch-only, in which depths are not known",
                f"{contacts.path}: {STIFFNESS}",
                "run without --touch-only",
            )


class ContactLabels:
    """Labels of a contact set over selected frames, worlds, sensors and partners.

    frames: selected. worlds: int64[W]. sensors, partners: names, each once over all templates.
    present: bool[W, S, P], whether the world's template has shapes or particles of both. notes:
    warnings. After a reading of all `blocks`: contact_count, of the selected worlds and frames;
    run_count, of every pair of items.

    Raises InputError for options that do not fit the set, and for a `leave` beyond the gap of a
    selected pair.
    """

    def __init__(
        self,
        contacts: ContactSet,
        options: LabelOptions,
        missing: Missing | None = None,
    ) -> None:
        """missing: option and pattern of each pattern without a match are added to it; None: they
        are refused."""
        rule = options.rule
        _check_options(contacts, options)
        for name, threshold in (("--enter", rule.enter), ("--leave", rule.leave)):
            check_known_touches(contacts, threshold, name)
        chosen = EventOptions(math.inf, by=options.by, worlds=options.worlds, frames=options.frames)
        # Each reading has a copy, which counts its contacts.
        stream = self._stream = EventStream(contacts, chosen)
        self.contacts = contacts
        self.options = options
        self.frames = stream.frames
        self.keys = stream.keys
        self.worlds = stream.worlds.astype(np.int64)
        self._sensor = self._selected(options.sensors, "--sensors", missing)
        self._partner = self._selected(options.partners, "--partners", missing)
        self.sensors, self.partners = (
            [self.keys.paths[row] for row in rows] for rows in (self._sensor, self._partner)
        )
        self.present = self._presence()
        self.notes = [*group_notes(contacts, rule.leave, False), *touch_notes(contacts)]
        if absent := int((~self.present).sum()):
            what = (
                f"{absent} of {self.present.size} triples of world, sensor and partner are not in"
                " the world's scene"
            )
            self.notes.append(
                f"{what}: they have no label ('present' is false in arrays, a table has no row)"
            )
        if options.nominal_stiffness is not None and self._is_particle.any():
            self.notes.append(
                "contacts of particles have no nominal force: it is NaN in pairs with their objects"
            )
        self._check_covered(rule)
        self.contact_count = 0
        self.run_count = 0

    def _presence(self) -> np.ndarray:
        """bool[W, S, P], whether the world's template has both; see `ContactLabels`."""
        # A body without a shape in any template is present everywhere, and touches nothing.
        templates = self.contacts.world_template
        row_template = row_templates(self.contacts, len(self.keys.number))
        in_template = np.zeros((int(templates.max(initial=0)) + 1, len(self.keys.paths)), bool)
        in_template[row_template, self.keys.number] = True
        in_template |= ~in_template.any(axis=0)
        in_template[:, self.keys.number[row_template < 0]] = True
        in_world = in_template[templates[self.worlds]]
        return in_world[:, self._sensor, None] & in_world[:, None, self._partner]

    def _selected(
        self, patterns: Sequence[str], option: str, missing: Missing | None
    ) -> np.ndarray:
        """int64[n]: items that match a pattern; without patterns every item, or the moving ones for
        --sensors."""
        keys = self.keys
        contacts = self.contacts
        if patterns:
            items = named_items(contacts)
            if missing is not None:
                missing |= {
                    (option, pattern)
                    for pattern in patterns
                    if not items.met(pattern, option).any()
                }
                patterns = [pattern for pattern in patterns if (option, pattern) not in missing]
            return distinct(keys.number[: len(items.path)][items.matching(patterns, option)])
        if option == "--partners":
            return np.arange(len(keys.paths))
        moving = np.array([kind != "shape" for kind in keys.kinds], bool)
        if self.options.by == "shapes":
            moving[keys.number[: len(contacts.shapes)][contacts.shapes.body >= 0]] = True
        if not moving.any():
            raise InputError(
                "nothing in the contact set moves", contacts.path, "name the sensors with --sensors"
            )
        return np.flatnonzero(moving)

    def _check_covered(self, rule: LabelRule) -> None:
        """Raises InputError if contacts of a selected pair of shapes are not reported up to
        `leave`: a pair without contacts may then be nearer.
        """
        leave = rule.leave
        limit = np.float32(leave)
        contacts = self.contacts
        if limit <= 0.0:
            return
        soft_gap = recorded_number(contacts.config, SOFT_CONTACTS.limit)
        if (
            SOFT_CONTACTS.name in contacts.groups
            and soft_gap is not None
            and np.float32(soft_gap) < limit
        ):
            fix = f"run with --soft-gap {leave:g}"
            raise beyond_gap("particles", soft_gap, leave, rule.enter, fix)
        if np.float32(gap_range(contacts)[0]) >= limit:
            return
        shapes = contacts.shapes
        _, pair_gap = pair_values(contacts)
        item = self.keys.number[: len(shapes)]
        rows = np.arange(len(shapes))
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
                fix = f"run with {gap_option(leave, contacts.gap_rule)}"
                raise beyond_gap(pair, gap.min(), leave, rule.enter, fix)

    def _is_selected(self, intervals: Intervals) -> np.ndarray:
        """int64[n]: rows of pairs of a sensor and a partner, which are two items."""
        one, other = self.keys.items(intervals.key)
        sensor, partner = (np.zeros(len(self.keys.paths), bool) for _ in range(2))
        sensor[self._sensor] = partner[self._partner] = True
        either = (sensor[one] & partner[other]) | (sensor[other] & partner[one])
        return np.flatnonzero(either & (one != other))

    def _distances(
        self, stream: EventStream, progress: Progress
    ) -> Iterator[tuple[int, Intervals]]:
        """As `EventStream.frame_touches`, of the selected pairs."""
        for following, touches in stream.frame_touches(progress):
            yield following, touches.take(self._is_selected(touches))

    def _slips(self) -> Iterator[tuple[int, Intervals]]:
        """As `_distances`, with the negative of the greatest slip in place of the least distance,
        of contacts within `leave`."""
        if not len(self.frames):
            return
        leave = np.float32(self.options.rule.leave)
        stream = copy(self._stream)
        worlds = self.contacts.world_count
        number = self.frames.number
        cells = int(number[0]) * worlds, (int(number[-1]) + 1) * worlds
        for block in self.contacts.blocks(
            names=("shape0", "shape1", "distance", SLIP), first=cells[0], last=cells[1]
        ):
            check_shape_rows(self.contacts, block)
            near = np.flatnonzero((block.distance <= leave) & np.isfinite(block.columns[SLIP]))
            near = rows_of_block(block, near)
            near.columns["distance"] = -near.columns[SLIP]
            touches = stream.touches_of(near)
            yield stream.following(block), touches.take(self._is_selected(touches))

    def _always_touch(self, key: np.ndarray) -> np.ndarray:
        """bool[n]: pairs that touch at any distance, as in `events`: of particle objects, and of
        shapes in a set of touches."""
        is_rigid = np.array([kind in RIGID for kind in self.keys.kinds], bool)
        if not len(key):
            return np.zeros(0, bool)
        one, other = self.keys.items(key)
        always = ~(is_rigid[one] | is_rigid[other])
        if self._stream.without_values:
            always |= is_rigid[one] & is_rigid[other]
        return always

    @cached_property
    def _is_particle(self) -> np.ndarray:
        """bool[items]: particle objects."""
        return np.array([kind not in (*RIGID, TRIGGER) for kind in self.keys.kinds], bool)

    def _force_readers(self) -> list[ForceReader]:
        """Readers of nominal forces, of point contacts and of surfaces; none without a
        stiffness."""
        stiffness = self.options.nominal_stiffness
        if stiffness is None:
            return []
        parts = (
            point_forces(self._stream, self.contacts, stiffness),
            surface_forces(self._stream, self.contacts),
        )
        return [ForceReader(part, len(self.frames)) for part in parts]

    def _forces(
        self, dense: _DenseAxes, first: int, count: int, readers: Sequence[ForceReader]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nominal forces and centres of pressure of `count` frames."""
        shape = count, *self.shape[1:], 3
        taken = [reader.take(first + count) for reader in readers]
        rows = PairForces.chained(*taken).merged()
        one, other = self.keys.items(rows.key)
        rows = rows.take(one != other)
        is_known = self.present & ~self._is_particle[self._sensor][:, None]
        is_known = is_known & ~self._is_particle[self._partner]
        apart = np.where(is_known, np.float32(0.0), np.float32(np.nan))
        force = np.broadcast_to(apart[..., None], shape).copy()
        dense.fill(force, first, rows.key, rows.frame, rows.force, 0.0 - rows.force)
        centre = np.full(shape, np.nan)
        dense.fill(centre, first, rows.key, rows.frame, rows.sums.centre)
        return force, centre

    @property
    def recorded(self) -> np.ndarray:
        """bool[F, W]: whether each cell is recorded: in an episode, if the set has some."""
        return self._recorded

    @cached_property
    def _recorded(self) -> np.ndarray:
        every = recorded_cells(self.frames.episodes, len(self.frames), self.contacts.world_count)
        return every[:, self.worlds]

    def cells(self, sensor: int, partner: int) -> np.ndarray:
        """int64[F]: recorded cells of each frame whose world has the pair."""
        return self.recorded @ self.present[:, sensor, partner].astype(np.int64)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, worlds, sensors, partners."""
        return len(self.frames), len(self.worlds), len(self.sensors), len(self.partners)

    @property
    def form(self) -> str:
        """Name of the HDF5 format."""
        return LABELS_FORMAT

    @property
    def dense(self) -> dict[str, DenseArray]:
        """The arrays by name."""
        return dense_arrays(self.options)

    @property
    def items(self) -> dict[str, list[str]]:
        """Names along the axes of pairs."""
        return dict(zip(AXES, (self.sensors, self.partners), strict=True))

    @property
    def texts(self) -> dict[str, list[str]]:
        """No array numbers texts."""
        return {}

    @property
    def step(self) -> np.ndarray:
        """int64[F]: the recorder's numbers of the frames."""
        return self.contacts.step[self.frames.number]

    @property
    def is_row(self) -> np.ndarray:
        """bool[W, S, P]: present pairs of two items."""
        sensors, partners = (np.array(names, object) for names in (self.sensors, self.partners))
        return self.present & (sensors[:, None] != partners)

    @property
    def about(self) -> dict[str, Any]:
        """Attributes of a file."""
        return {
            "scene": self.contacts.scene,
            "contacts_sha256": self.contacts.content_sha256,
            "options": options_dict(self.options),
        }

    def check(self, progress: Progress = None) -> None:
        """Reads all that `blocks` reads. Raises InputError for a damaged file."""
        for _ in chain(self._distances(copy(self._stream), progress), self._slip_touches()):
            pass
        for reader in self._force_readers():
            while reader.read() is not None:
                pass

    def _slip_touches(self) -> Iterator[tuple[int, Intervals]]:
        return self._slips() if self.options.slip else iter(())

    def blocks(self, progress: Progress = None) -> Iterator[LabelBlock]:
        """The labels in order, in blocks of whole frames; each call reads the contact set.

        Raises InputError for a damaged file.
        """
        frames, *row = self.shape
        at_once = max(1, BLOCK_VALUES // max(1, math.prod(row)))
        stream = copy(self._stream)
        values = ValueReader(self._distances(stream, progress), frames)
        labels = LabelReader(values, self.options.rule, self._always_touch)
        slips = ValueReader(self._slip_touches(), frames)
        readers = self._force_readers()
        dense = _DenseAxes(self)
        apart = np.where(self.present, np.float32(np.inf), np.float32(np.nan))
        for first in range(0, frames, at_once):
            count = min(at_once, frames - first)
            touch = np.zeros((count, *row), bool)
            dense.fill(touch, first, *labels.take(first + count).cells(), True)
            distance = np.broadcast_to(apart, (count, *row)).copy()
            near = values.take(first + count)
            known = np.where(near.value == UNKNOWN_DISTANCE, np.float32(np.nan), near.value)
            dense.fill(distance, first, near.key, near.frame, known)
            slip = None
            if self.options.slip:
                slip = np.full((count, *row), np.nan, np.float32)
                fast = slips.take(first + count)
                dense.fill(slip, first, fast.key, fast.frame, -fast.value)
                slip[~touch] = np.nan
            forces = self._forces(dense, first, count, readers) if readers else (None, None)
            yield LabelBlock(first, touch, distance, slip, *forces)
        labels.finish()
        self.contact_count = stream.contact_count
        self.run_count = labels.run_count


class _DenseAxes:
    """Places of pairs in dense arrays [f, W, S, P]; a pair of two sensors that are partners has
    two."""

    def __init__(self, labels: ContactLabels) -> None:
        self._keys = labels.keys
        self._world = _inverse(labels.worlds, labels.contacts.world_count)
        self._sensor, self._partner = (
            _inverse(rows, len(labels.keys.paths)) for rows in (labels._sensor, labels._partner)
        )

    def fill(
        self,
        dense: np.ndarray,
        first: int,
        key: np.ndarray,
        frame: np.ndarray,
        values: np.ndarray | bool,
        reverse: np.ndarray | None = None,
    ) -> None:
        """Sets the values of pairs in an array of the frames from `first`. key, frame: int64[n].

        reverse: values where the larger item is the sensor; None is `values`.
        """
        world = self._world[self._keys.world(key)]
        one, other = self._keys.items(key)
        mirrored = values if reverse is None else reverse
        for sensor, partner, of_order in ((one, other, values), (other, one, mirrored)):
            place = (frame - first, world, self._sensor[sensor], self._partner[partner])
            known = np.flatnonzero(np.min(place, axis=0, initial=0) >= 0)
            dense[tuple(axis[known] for axis in place)] = (
                of_order if isinstance(of_order, bool) else of_order[known]
            )


def _inverse(rows: np.ndarray, count: int) -> np.ndarray:
    """int64[count]: position of each number in `rows`, or -1."""
    inverse = np.full(count, -1, np.int64)
    inverse[rows] = np.arange(len(rows))
    return inverse


DENSE = {
    "touch": DenseArray(np.dtype(bool)),
    "distance": DenseArray(np.dtype(np.float32), "m", nan_is_none=True),
    SLIP: DenseArray(np.dtype(np.float32), "m/s", nan_is_none=True),
    FORCE: DenseArray(np.dtype(np.float32), "N", 3, nan_is_none=True),
    CENTRE: DenseArray(np.dtype(np.float64), "m", 3, nan_is_none=True),
}
"""The dense arrays; the slip and the forces only on request."""


def dense_arrays(options: LabelOptions) -> dict[str, DenseArray]:
    """The arrays of labels with these options, by name."""
    left_out = () if options.slip else (SLIP,)
    left_out += () if options.nominal_stiffness is not None else (FORCE, CENTRE)
    return {name: array for name, array in DENSE.items() if name not in left_out}


def options_dict(options: LabelOptions) -> dict[str, Any]:
    """The options of labels in the types of JSON."""
    rule = options.rule
    return {
        "sensors": list(options.sensors),
        "partners": list(options.partners),
        "by": options.by,
        "enter": rule.enter,
        "leave": rule.leave,
        "min_frames": rule.min_frames,
        "slip": options.slip,
        "frames": options.frames,
        **nominal_option(options.nominal_stiffness),
    }
