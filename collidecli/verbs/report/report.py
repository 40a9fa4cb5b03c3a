"""The verb `report`: totals of a contact set by frame, pair and depth, its timing, and
differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.differing_touches import DifferingTouches, shared_touches
from collidecli.analysis.event_stream import EventStream, shape_names
from collidecli.analysis.local_names import local_names
from collidecli.analysis.pair_selection import EventOptions, items_on_bodies, touch_notes
from collidecli.analysis.set_source import (
    ContactSetSource,
    contact_set_source,
    demos_of,
    read_timing,
)
from collidecli.analysis.summary import (
    DepthHistogram,
    FrameSums,
    PairTotals,
    TimeBins,
    touches_of,
)
from collidecli.analysis.swept_touches import (
    SweptTouches,
    missed_by_world,
    swept_events,
    swept_touches,
)
from collidecli.analysis.world_totals import WorldTotals
from collidecli.errors import InputError
from collidecli.pages.world_tables import path_words
from collidecli.results.result import Progress, Result
from collidecli.scene.chosen_pairs import trigger_notes
from collidecli.scene.contact_columns import RIGID_CONTACTS, SWEEP, TOUCHES
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model_source import SCENE_CONTENT
from collidecli.scene.motion import check_seconds
from collidecli.storage.contact_sets.header import TIME
from collidecli.storage.contact_sets.readable_rows import (
    check_body_rows,
    check_has_touches,
    is_touch_set,
)
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import (
    SelectedContacts,
    chosen_worlds,
    kept_items,
    named_items,
)
from collidecli.storage.process_activity import reading
from collidecli.storage.profile_files import read_profile
from collidecli.verbs.diff.diff import DiffRequest, diff
from collidecli.verbs.report.groups import MAX_POINTS, group_series
from collidecli.verbs.report.other_results import VERB_RESULTS, other_motion, read_verb_result
from collidecli.verbs.report.pairs_over_time import pairs_over_time
from collidecli.verbs.report.subsets import Passes, closest_cell, subsets

MAX_LISTED = 50
"""Touches between frames in the page."""
WORST_PAIRS = 12
MAX_PANELS = 60
MAX_WORLD_BINS = 80
"""Worlds with a panel in a report by world, and points of the line of one."""
TEXTS = ("device", "processor", "broad_phase")
NUMBERS = (
    "wall_seconds",
    "candidate_count",
    "touching_pair_count",
    "contact_count",
    "inexact_pair_count",
    "missed_surface_count",
    "peak_memory_bytes",
)


@dataclass(frozen=True)
class ReportRequest:
    """Contact set, and optionally a baseline (against) with tolerances as in DiffRequest, and a
    profile.

    profile: a file that `collide profile` wrote. audit, labels, clearance: outputs of the verbs of
    these names, with --json; "" is none. worlds: numbers; () is all. include, exclude: a pair must
    have, and must not have, a shape whose path matches. bodies: a pair must have a shape of a body
    that matches; with `include`, one shape matches both. subsets: compute single worlds, bodies and
    static shapes too. by: "world" adds a chart of each world; "" does not.
    scene_a, scene_b, trajectory_a, trajectory_b: of the baseline and of the contact set, as in
    DiffRequest.
    """

    file: str
    against: str = ""
    profile: str = ""
    audit: str = ""
    labels: str = ""
    clearance: str = ""
    atol: Sequence[str] = ()
    rtol: Sequence[str] = ()
    ignore_shallow: float = -1.0
    worlds: Sequence[int] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    bodies: Sequence[str] = ()
    subsets: bool = False
    by: str = ""
    scene_a: str = ""
    scene_b: str = ""
    trajectory_a: str = ""
    trajectory_b: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportResult(ContactSetSource, schema="collide.report/1"):
    """Data of a report. Lengths [m], times [s]; lists over time have one entry per bin of frames.

    selection: options that select contacts, without those at their defaults; worlds is the number
    of those selected. demonstrations: of each world of the set; empty if it has no names of them.
    contact_pair_cells: pairs with contacts, each counted in every cell. penetrating: number of
    contacts with a negative distance. depths: histogram. worst: the pairs with the deepest
    contacts. groups: of `group_series`. subsets: see `subsets`; None if not requested. profile: of
    `read_profile`. difference: a `DiffResult` as dictionary. audit, labels, clearance: of these
    files, or None. output: path of the page. between_frames: of `swept_events`; None for a set
    without contacts between frames. touch_only: True if the contacts are the pairs of a set of
    touches, whose distances are not known; else None. by_world: with `by`, of the selected worlds,
    the outliers first: see `WorldTotals.rows`, and `series`, contacts in a frame by bin of frames;
    their `median` over all selected worlds, and the number `left_out`.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = (
        "output",
        "between_frames",
        "audit",
        "labels",
        "clearance",
        "engine",
        "touch_only",
        "by_world",
    )

    selection: dict[str, Any]
    demonstrations: list[str]
    contacts: int
    contact_pair_cells: int
    penetrating: int
    deepest: dict[str, Any] | None
    series: dict[str, Any]
    pairs: dict[str, Any]
    depths: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    groups: dict[str, Any] | None
    subsets: dict[str, Any] | None
    timing: dict[str, Any]
    profile: dict[str, Any] | None
    profile_file: str
    difference: dict[str, Any] | None
    notes: list[str]
    warnings: list[str]
    output: str | None = None
    between_frames: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None
    clearance: dict[str, Any] | None = None
    touch_only: bool | None = None
    by_world: dict[str, Any] | None = None


@dataclass(frozen=True)
class PlotResult(Result, schema="collide.plot/1"):
    """A chart. words: its description. output: path of the picture."""

    file: str
    kind: str
    words: str
    output: str


@dataclass
class _Sums:
    frames: FrameSums
    depths: DepthHistogram
    pairs: PairTotals
    world_least: np.ndarray
    world_touches: np.ndarray
    worlds: WorldTotals | None


def _page(
    contacts: ContactSet, request: ReportRequest, passes: Passes, sums: _Sums
) -> dict[str, Any]:
    """The fields of a report that are read from the contact set, without those of `sums` alone."""
    selected = passes.selected
    demonstrations = _demonstrations(contacts)
    pairs = sums.pairs
    bins = TimeBins(contacts.frame_count, MAX_POINTS)
    swept = _swept(contacts, request)
    if swept is not None and sums.worlds is not None:
        sums.worlds.missed = missed_by_world(*swept)[selected.worlds]
    page: dict[str, Any] = {
        **contact_set_source(contacts),
        "worlds": selected.world_count,
        "demonstrations": demonstrations,
        "series": {
            **bins.axis(contacts.time),
            "contacts": bins.means(sums.frames.contacts),
            "most": bins.greatest(sums.frames.contacts),
            "penetrating": bins.means(sums.frames.penetrating),
            "depth": bins.greatest(np.maximum(0.0, -sums.frames.least)),
        },
        "pairs": pairs_over_time(passes, pairs),
        "deepest": (
            closest_cell(selected, pairs, int(pairs.deepest_order()[0]))
            if len(pairs.key) and not passes.has_unknown_distances
            else None
        ),
        "worst": _worst(selected, pairs),
        "groups": group_series(selected),
        "between_frames": None if swept is None else swept_events(*swept, MAX_LISTED, "depth"),
        "touch_only": passes.has_unknown_distances or None,
        "by_world": None if sums.worlds is None else _by_world(passes, sums.worlds),
        "subsets": (
            subsets(passes, pairs, _world_order(passes, sums), demonstrations)
            if request.subsets
            else None
        ),
    }
    page["notes"] = [
        *touch_notes(contacts),
        *_notes(page["series"], page["pairs"]),
        *_early_ends(selected),
        *_path_notes(selected),
    ]
    return page


def _path_notes(selected: SelectedContacts) -> list[str]:
    """A note if a path of a table stands for several shapes."""
    templates = distinct(selected.contacts.world_template[selected.worlds])
    words = path_words(selected.world_count, len(templates))
    return [words] if words else []


def _by_world(passes: Passes, worlds: WorldTotals) -> dict[str, Any]:
    """The field `by_world`: as many worlds as have a panel."""
    selected = passes.selected
    contacts = selected.contacts
    numbers = [int(world) for world in selected.worlds]
    bins = TimeBins(contacts.frame_count, MAX_WORLD_BINS)
    rows = worlds.rows(contacts.world_template, contacts.shapes.path, numbers)
    place = {number: row for row, number in enumerate(numbers)}
    in_a_frame = worlds.series / np.asarray(bins.lengths)[:, None]
    listed = [
        {**row, "series": in_a_frame[:, place[row["world"]]].tolist()} for row in rows[:MAX_PANELS]
    ]
    return {
        **bins.axis(contacts.time),
        "listed": listed,
        "median": np.median(in_a_frame, axis=1).tolist(),
        "left_out": len(rows) - len(listed),
        "outliers": sum(row["outlier"] for row in rows),
    }


def _world_order(passes: Passes, sums: _Sums) -> np.ndarray:
    """float64[W]: see `subsets`."""
    if not passes.has_unknown_distances:
        return sums.world_least
    return np.where(sums.world_touches > 0, -sums.world_touches.astype(np.float64), np.inf)


def _search_warnings(timing: dict[str, Any]) -> list[str]:
    """Warnings of overlaps for which the timing counts a search that did not end."""
    warnings = []
    if missed := timing.get("missed_surface_count", 0):
        warnings.append(
            f"{missed} hydroelastic overlaps have no surface: it was thinner than the finest voxels"
        )
    if inexact := timing.get("inexact_pair_count", 0):
        warnings.append(f"{inexact} depths are upper bounds: the search for them hit its limit")
    return warnings


def report(request: ReportRequest, progress: Progress = None) -> ReportResult:
    """Computes the data of a report.

    Reads the contacts twice, with subsets four times, a block at a time. Raises InputError for
    unusable files.
    """
    if request.against and (request.worlds or request.bodies):
        what = "a baseline is compared in all worlds, by paths of shapes"
        raise InputError(
            what, "--against", "leave out --world and --body; --include and --exclude select shapes"
        )
    profile = read_profile(request.profile) if request.profile else None
    shown: dict[str, Any] = {
        name: read_verb_result(name, getattr(request, name)) for name in VERB_RESULTS
    }
    difference = _difference(request) if request.against else None
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        check_seconds(contacts.time_unit, f"{request.file}: {TIME}")
        passes = Passes(_selected(contacts, request), progress, 4 if request.subsets else 2)
        sums = _first_pass(passes, request.by == "world")
        page = _page(contacts, request, passes, sums)
    timing, warnings = _timing(request.file)
    warnings = [*_search_warnings(timing), *warnings]
    if profile is not None and profile["scene_sha256"] != page["scene_sha256"]:
        what = f"{request.profile} profiles another scene than this one ({SCENE_CONTENT})"
        warnings.insert(0, what)
    for name, result in shown.items():
        warnings += [] if result is None else other_motion(getattr(request, name), result, page)
    given = {
        "worlds": request.worlds,
        "include": request.include,
        "exclude": request.exclude,
        "bodies": request.bodies,
    }
    return ReportResult(
        **page,
        selection={name: list(value) for name, value in given.items() if len(value)},
        contacts=int(sums.pairs.contacts.sum()),
        contact_pair_cells=int(sums.pairs.touches.sum()),
        penetrating=int(sums.frames.penetrating.sum()),
        depths=_depths(sums.depths),
        timing=timing,
        profile=profile,
        profile_file=request.profile,
        difference=difference,
        warnings=[*warnings, *trigger_notes(contacts.shapes.is_trigger)],
        **shown,
    )


def check_selection(request: ReportRequest) -> None:
    """Raises InputError for a selection of a contact set that matches nothing."""
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        check_seconds(contacts.time_unit, f"{request.file}: {TIME}")
        _selected(contacts, request)


def _swept(contacts: ContactSet, request: ReportRequest) -> tuple[SweptTouches, EventStream] | None:
    """The touches between frames, and their stream; None for a set without a sweep."""
    if SWEEP.name not in contacts.groups:
        return None
    given = {name: getattr(request, name) for name in ("include", "exclude", "bodies", "worlds")}
    stream = EventStream(contacts, EventOptions(**given))
    swept = swept_touches(stream)
    if swept.of_particles.any():
        for _, touches in stream.frame_touches():
            swept.lower_least(touches, stream.frames.time)
    return swept, stream


def _timing(path: str) -> tuple[dict[str, Any], list[str]]:
    """Valid entries of /timing, and a warning about the invalid ones."""
    recorded = read_timing(path)
    timing: dict[str, Any] = {
        name: recorded[name] for name in TEXTS if isinstance(recorded.get(name), str)
    }
    timing |= {name: recorded[name] for name in NUMBERS if _is_amount(recorded.get(name))}
    stages = recorded.get("stages", [])
    timing["stages"] = [stage for stage in stages if _is_amount(stage["seconds"])]
    unclear = [name for name in (*TEXTS, *NUMBERS) if name in recorded and name not in timing]
    unclear += [f"stage {stage['stage']}" for stage in stages if not _is_amount(stage["seconds"])]
    return timing, (
        [f"ignored entries of the timing that are no amounts: {', '.join(unclear)}"]
        if unclear
        else []
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value < np.inf


def _selected(contacts: ContactSet, request: ReportRequest) -> SelectedContacts:
    check_has_touches(contacts)
    kept = kept_items(contacts, request.include, request.exclude)
    if request.bodies:
        check_body_rows(contacts)
        on_bodies = items_on_bodies(contacts, request.bodies, "--body")
        kept = np.ones((len(on_bodies), 2), bool) if kept is None else kept
        kept[:, 0] &= on_bodies
    if contacts.shapes.is_trigger.any():
        kept = np.ones((len(named_items(contacts).path), 2), bool) if kept is None else kept
        kept[: len(contacts.shapes), 1] &= ~contacts.shapes.is_trigger
    table = TOUCHES.name if is_touch_set(contacts) else RIGID_CONTACTS.name
    return SelectedContacts(
        contacts, range(contacts.frame_count), chosen_worlds(request.worlds, contacts), kept, table
    )


def _demonstrations(contacts: ContactSet) -> list[str]:
    if contacts.episodes is not None:
        of_world: dict[int, list[str]] = {}
        for name, world in zip(
            contacts.episodes.name, contacts.episodes.world.tolist(), strict=True
        ):
            of_world.setdefault(world, []).append(name)
        return [", ".join(of_world.get(world, ())) for world in range(contacts.world_count)]
    names = demos_of(contacts)  # a set of version 1.1 has no table of episodes
    return list(names) if len(names) == contacts.world_count else []


def _difference(request: ReportRequest) -> dict[str, Any]:
    names = ("atol", "rtol", "ignore_shallow", "include", "exclude")
    sources = ("scene_a", "scene_b", "trajectory_a", "trajectory_b")
    given = {name: getattr(request, name) for name in (*names, *sources)}
    return diff(DiffRequest(request.against, request.file, **given)).as_dict()


def _first_pass(passes: Passes, by_world: bool) -> _Sums:
    selected = passes.selected
    contacts = passes.selected.contacts
    if not np.isfinite(contacts.time).all():
        frame = int(np.argmin(np.isfinite(contacts.time)))
        what = "is not a finite number"
        raise InputError(
            what, f"{contacts.path}: /time/time, frame {frame}", "repair the recording"
        )
    frames = FrameSums(selected.frame_count, selected.world_count)
    worlds = selected.world_count
    sums = _Sums(
        frames,
        DepthHistogram(),
        PairTotals.none(),
        np.full(worlds, np.inf),
        np.zeros(worlds, np.int64),
        _world_totals(passes) if by_world else None,
    )
    names = shape_names(contacts)
    for block in passes.blocks():
        finite = np.isfinite(block.columns["distance"]) | passes.has_unknown_distances
        if not finite.all():
            frame, world = divmod(int(block.cell[np.argmin(finite)]), selected.world_count)
            where = (
                f"{contacts.path}: /rigid_contacts/distance, frame {frame}, world"
                f" {selected.worlds[world]}"
            )
            raise InputError("is not a finite number", where, "make the contact set again")
        sums.frames.add(block)
        if sums.worlds is not None:
            sums.worlds.add(block)
        sums.depths.add(block.columns["distance"])
        touches = touches_of(block).named(names)
        sums.pairs = sums.pairs.joined(PairTotals.of(touches, len(contacts.shapes)))
        world = touches.cell % selected.world_count
        np.minimum.at(sums.world_least, world, touches.distance)
        sums.world_touches += np.bincount(world, minlength=selected.world_count)
    return sums


def _world_totals(passes: Passes) -> WorldTotals:
    """No totals yet, of the selected worlds."""
    selected = passes.selected
    contacts = selected.contacts
    worlds = selected.worlds
    template = contacts.world_template[worlds]
    return WorldTotals(
        DifferingTouches(template, len(contacts.shapes), contacts.episodes, worlds),
        TimeBins(selected.frame_count, MAX_WORLD_BINS).of,
        has_distances=not passes.has_unknown_distances,
        shared=shared_touches(
            template,
            local_names(contacts),
            contacts.shapes.template,
            contacts.episodes,
            worlds,
        ),
    )


def _depths(depths: DepthHistogram) -> list[dict[str, Any]]:
    """Bins from the first to the last that is not empty; `from` is 0 in the lowest bin, `to` is
    None in the highest."""
    filled = np.flatnonzero(depths.counts)
    if not len(filled):
        return []
    edges = [0.0, *depths.edges.tolist(), None]
    return [
        {"from": edges[n], "to": edges[n + 1], "contacts": int(depths.counts[n])}
        for n in range(int(filled[0]), int(filled[-1]) + 1)
    ]


def _worst(selected: SelectedContacts, pairs: PairTotals) -> list[dict[str, Any]]:
    order = pairs.deepest_order()[:WORST_PAIRS]
    return [
        {
            **closest_cell(selected, pairs, row),
            "contacts": int(pairs.contacts[row]),
            "touches": int(pairs.touches[row]),
        }
        for row in order.tolist()
        if pairs.least[row] < 0.0
    ]


def _early_ends(selected: SelectedContacts) -> list[str]:
    """A note if demonstrations end before the last frame: sums over the worlds of a frame are of
    fewer of them."""
    episodes = selected.contacts.episodes
    frames = selected.contacts.frame_count
    if episodes is None:
        return []
    of_worlds = episodes.of_worlds(selected.worlds)
    early = int((of_worlds.end_frame < frames).sum())
    what = f"{early} of {len(of_worlds)} demonstrations end before frame {frames - 1}"
    return [f"{what}; they have no contacts after their end"] if early else []


def _notes(series: dict[str, Any], pairs: dict[str, Any]) -> list[str]:
    notes = []
    if pairs["frames_per_bin"] > 1:
        notes.append(f"a column of the map of pairs is {pairs['frames_per_bin']} frames")
    if series["frames_per_bin"] > 1:
        notes.append(f"a point of a line over time is {series['frames_per_bin']} frames")
    return notes
