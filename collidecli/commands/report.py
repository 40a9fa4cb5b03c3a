"""The verbs `report` and `plot`: totals of a contact set by frame, pair and depth, its timing, and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis import summary
from collidecli.analysis.summary import PairMap, PairTotals, TimeBins, Touches, touches_of
from collidecli.commands import event_stream
from collidecli.commands.audit import CHECKS, SCHEMA, TUNNEL
from collidecli.commands.clearance import ClearanceResult
from collidecli.commands.diff import DiffRequest, diff
from collidecli.commands.event_stream import items_on_bodies, pair_keys, shape_names
from collidecli.commands.inspect import ContactSetSource, contact_set_source, read_timing
from collidecli.commands.label import LabelResult
from collidecli.commands.merge import demos_of
from collidecli.commands.results import Progress, Result
from collidecli.errors import InputError
from collidecli.exporters.rows import SelectedContacts, chosen_worlds, kept_items, rows_of
from collidecli.scene.motion import check_seconds
from collidecli.scene.options import CLEARANCE_THINGS
from collidecli.scene.tables import SWEEP, ContactBlock
from collidecli.storage.contact_sets.check import check_body_rows, check_has_contacts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.schema import TIME
from collidecli.storage.process_activity import reading
from collidecli.storage.result_files import AUDIT, BASELINE_PAIRS, CLEARANCE, LABELS, fits, read_profile, read_result

# Data of a report about the groups of contacts beside /rigid_contacts, over time.

MAX_GROUP_PAIRS = 4
"""Pairs with a line of their own, as many as a chart has colours."""
GROUP_COLUMNS = ("shape0", "shape1", "area", "force")


def group_series(selected: SelectedContacts) -> dict[str, Any] | None:
    """Surfaces of the pairs with the largest forces, and counts of contacts of particles, by bins of frames.

    None for a set without groups. Raises InputError for areas and forces that are not finite.
    """
    contacts = selected.contacts
    if not contacts.groups:
        return None
    bins, counts, surfaces = summary.TimeBins(contacts.frame_count, MAX_POINTS), {}, None
    for name in ("soft_contacts", "self_contacts"):
        if name in contacts.groups:
            rows = rows_of(selected, name)
            by_frame = np.zeros(rows.frame_count, np.int64)
            for block in rows.blocks(()):
                cell = block.first_cell + np.arange(len(block.cell_counts))
                np.add.at(by_frame, cell // rows.world_count, block.cell_counts)
            counts[name] = {"rows": int(by_frame.sum()), "per_frame": bins.means(by_frame)}
    if "hydro_patches" in contacts.groups:
        surfaces = _surfaces(rows_of(selected, "hydro_patches"), bins.start)
    return {**bins.axis(contacts.time), "surfaces": surfaces, "counts": counts}


def _surfaces(rows: SelectedContacts, start: np.ndarray) -> dict[str, Any]:
    contacts, names = rows.contacts, shape_names(rows.contacts)
    shapes = len(contacts.shapes)
    sums = summary.PairForces(shapes)
    for block in rows.blocks(GROUP_COLUMNS):
        columns = block.columns
        for name in ("area", "force"):
            if not np.isfinite(columns[name]).all():
                where = f"{contacts.path}: /hydro_patches/{name}"
                raise InputError("is not finite", where, "collide check names the rows")
        pair = names.pair(columns["shape0"], columns["shape1"])
        sums.add(*pair, columns["area"], columns["force"])
    chosen = sums.largest(MAX_GROUP_PAIRS)
    series = summary.SurfaceSeries(chosen, shapes, rows.frame_count)
    for block in rows.blocks(GROUP_COLUMNS) if len(chosen) else ():
        pair = names.pair(block.columns["shape0"], block.columns["shape1"])
        series.add(block.cell // rows.world_count, *pair, block.columns["area"], block.columns["force"])
    area, force, pressure = series.binned(start)
    listed = [
        {
            "shape0": names.text[int(key) // shapes],
            "shape1": names.text[int(key) % shapes],
            "area": area[row].tolist(),
            "force": force[row].tolist(),
            "pressure": pressure[row].tolist(),
        }
        for row, key in enumerate(chosen)
    ]
    return {"rows": rows.contact_count, "pairs": len(sums.key), "listed": listed}


# Results of `collide audit`, `collide label` and `collide clearance` that a report shows.


def read_verb_result(name: str, path: str) -> dict[str, Any] | None:
    """The object of a verb with --json; None for "". name: of VERB_RESULTS.

    Raises InputError for another file, and a damaged one.
    """
    if not path:
        return None
    schema, layout, is_whole, fix = VERB_RESULTS[name]
    result = read_result(path, schema, layout)
    if not is_whole(result):
        raise InputError("lacks values, or has damaged ones", path, fix)
    return result


def _is_audit(result: Mapping[str, Any]) -> bool:
    checks = [*(entry["name"] for entry in result["checks"]), *(entry["check"] for entry in result["pairs"])]
    lengths = {len(values) for values in result["series"].values() if isinstance(values, list)}
    has_baseline = fits(result["pairs"], BASELINE_PAIRS) or result["baseline"] is None
    return len(lengths) == 1 and has_baseline and {*checks} <= {*CHECKS, TUNNEL}


def _is_labels(result: Mapping[str, Any]) -> bool:
    series = result["series"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["labelled"])}
    return len(bins) == 1 and len(series["labelled"]) == len(result["listed"])


def _is_clearance(result: Mapping[str, Any]) -> bool:
    series, listed = result["series"], result["listed"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["least"])}
    texts = {value for row in series["least"] for value in row if isinstance(value, str)}
    names_bodies = all(isinstance(entry.get("body"), str) == (result["by"] == "body") for entry in listed)
    is_even = len(bins) == 1 and len(series["least"]) == len(listed) and texts <= {"inf"}
    return is_even and names_bodies and result["by"] in CLEARANCE_THINGS


VERB_RESULTS: dict[str, tuple[str, Any, Callable[[Mapping[str, Any]], bool], str]] = {
    "audit": (SCHEMA, AUDIT, _is_audit, "make the audit again"),
    "labels": (LabelResult.SCHEMA, LABELS, _is_labels, "make the labels again"),
    "clearance": (ClearanceResult.SCHEMA, CLEARANCE, _is_clearance, "measure the distances again"),
}
"""Schema, keys and checks of the results that a report shows, by the name of their option, and how to repair them."""


def other_motion(path: str, result: Mapping[str, Any], source: Mapping[str, Any]) -> list[str]:
    """A warning about a result of another scene or recording than that of the report."""
    for name, what in (("scene_sha256", "scene"), ("trajectory_sha256", "recording")):
        if result[name] != source[name]:
            return [f"{path} is of another {what} than this one"]
    return []


MAX_POINTS = 600
"""Number of points of a line over time, about the number of pixels that show it."""
MAX_BINS = 160
MAX_PAIRS = 24
MAX_LISTED = 50
"""Touches between frames in the page."""
WORST_PAIRS = 12
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
    """Contact set, and optionally a baseline (against) with tolerances as in DiffRequest, and a profile.

    profile: a file that `collide profile` wrote. audit, labels, clearance: outputs of the verbs of these names, with
    --json; "" is none. worlds: numbers; () is all. include, exclude: a pair must
    have, and must not have, a shape whose path matches. bodies: a pair must have a shape of a body that matches; with
    `include`, one shape matches both. subsets: compute single worlds, bodies and static shapes too.
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


@dataclass(frozen=True, kw_only=True)
class ReportResult(ContactSetSource, schema="collide.report/1"):
    """Data of a report. Lengths [m], times [s]; lists over time have one entry per bin of frames.

    selection: options that select contacts, without those at their defaults; worlds is the number of those selected.
    demonstrations: of each world of the set; empty if it has no names of them. contact_pair_cells: pairs with contacts,
    each counted in every cell. penetrating: number of contacts with a negative distance. depths: histogram. worst: the
    pairs with the deepest contacts. groups: of `group_series`. subsets: see `subsets`; None if not
    requested. profile: of `read_profile`. difference: a `DiffResult` as dictionary. audit, labels, clearance: of these
    files, or None. output: path of the page. between_frames: of `swept_events`; None for a set without contacts between
    frames.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = ("output", "between_frames", "audit", "labels", "clearance", "engine")

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


@dataclass(frozen=True)
class PlotResult(Result, schema="collide.plot/1"):
    """A chart. words: its description. output: path of the picture."""

    file: str
    kind: str
    words: str
    output: str


@dataclass
class _Sums:
    frames: summary.FrameSums
    depths: summary.DepthHistogram
    pairs: summary.PairTotals
    world_least: np.ndarray


def report(request: ReportRequest, progress: Progress = None) -> ReportResult:
    """Computes the data of a report.

    Reads the contacts twice, with subsets four times, a block at a time. Raises InputError for unusable files.
    """
    if request.against and (request.worlds or request.bodies):
        what = "a baseline is compared in all worlds, by paths of shapes"
        raise InputError(what, "--against", "leave out --world and --body; --include and --exclude select shapes")
    profile = read_profile(request.profile) if request.profile else None
    shown: dict[str, Any] = {name: read_verb_result(name, getattr(request, name)) for name in VERB_RESULTS}
    difference = _difference(request) if request.against else None
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        check_seconds(contacts.time_unit, f"{request.file}: {TIME}")
        check_has_contacts(contacts)
        passes = Passes(_selected(contacts, request), progress, 4 if request.subsets else 2)
        selected, sums, demonstrations = passes.selected, _first_pass(passes), _demonstrations(contacts)
        pairs = sums.pairs
        bins = summary.TimeBins(contacts.frame_count, MAX_POINTS)
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
            "pairs": _pairs(passes, pairs),
            "deepest": closest_cell(selected, pairs, int(np.argmin(pairs.least))) if len(pairs.key) else None,
            "worst": _worst(selected, pairs),
            "groups": group_series(selected),
            "between_frames": _between_frames(contacts, request),
            "subsets": subsets(passes, pairs, sums.world_least, demonstrations) if request.subsets else None,
        }
        page["notes"] = [*_notes(page["series"], page["pairs"]), *_early_ends(selected)]
    timing, warnings = _timing(request.file)
    if inexact := timing.get("inexact_pair_count", 0):
        warnings.insert(0, f"{inexact} depths are upper bounds: the search for them hit its limit")
    if missed := timing.get("missed_surface_count", 0):
        warnings.insert(0, f"{missed} hydroelastic overlaps have no surface: it was thinner than the finest voxels")
    if profile is not None and profile["scene_sha256"] != page["scene_sha256"]:
        warnings.insert(0, f"{request.profile} profiles another scene than this one")
    for name, result in shown.items():
        warnings += [] if result is None else other_motion(getattr(request, name), result, page)
    given = {"worlds": request.worlds, "include": request.include, "exclude": request.exclude, "bodies": request.bodies}
    return ReportResult(
        **page,
        selection={name: list(value) for name, value in given.items() if len(value)},
        contacts=int(pairs.contacts.sum()),
        contact_pair_cells=int(pairs.touches.sum()),
        penetrating=int(sums.frames.penetrating.sum()),
        depths=_depths(sums.depths),
        timing=timing,
        profile=profile,
        profile_file=request.profile,
        difference=difference,
        warnings=warnings,
        **shown,
    )


def check_selection(request: ReportRequest) -> None:
    """Raises InputError for a selection of a contact set that matches nothing."""
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        check_seconds(contacts.time_unit, f"{request.file}: {TIME}")
        _selected(contacts, request)


def _between_frames(contacts: ContactSet, request: ReportRequest) -> dict[str, Any] | None:
    if SWEEP.name not in contacts.groups:
        return None
    given = {name: getattr(request, name) for name in ("include", "exclude", "bodies", "worlds")}
    stream = event_stream.EventStream(contacts, event_stream.EventOptions(**given))
    return event_stream.swept_events(event_stream.swept_touches(stream), stream, MAX_LISTED)


def _timing(path: str) -> tuple[dict[str, Any], list[str]]:
    """Valid entries of /timing, and a warning about the invalid ones."""
    recorded = read_timing(path)
    timing: dict[str, Any] = {name: recorded[name] for name in TEXTS if isinstance(recorded.get(name), str)}
    timing |= {name: recorded[name] for name in NUMBERS if _is_amount(recorded.get(name))}
    stages = recorded.get("stages", [])
    timing["stages"] = [stage for stage in stages if _is_amount(stage["seconds"])]
    unclear = [name for name in (*TEXTS, *NUMBERS) if name in recorded and name not in timing]
    unclear += [f"stage {stage['stage']}" for stage in stages if not _is_amount(stage["seconds"])]
    return timing, [f"ignored entries of the timing that are no amounts: {', '.join(unclear)}"] if unclear else []


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value < np.inf


def _selected(contacts: ContactSet, request: ReportRequest) -> SelectedContacts:
    kept = kept_items(contacts, request.include, request.exclude)
    if request.bodies:
        check_body_rows(contacts)
        on_bodies = items_on_bodies(contacts, request.bodies, "--body")
        kept = np.ones((len(on_bodies), 2), bool) if kept is None else kept
        kept[:, 0] &= on_bodies
    return SelectedContacts(contacts, range(contacts.frame_count), chosen_worlds(request.worlds, contacts), kept)


def _demonstrations(contacts: ContactSet) -> list[str]:
    if contacts.episodes is not None:
        of_world: dict[int, list[str]] = {}
        for name, world in zip(contacts.episodes.name, contacts.episodes.world.tolist(), strict=True):
            of_world.setdefault(world, []).append(name)
        return [", ".join(of_world.get(world, ())) for world in range(contacts.world_count)]
    names = demos_of(contacts)  # a set of version 1.1 has no table of episodes
    return list(names) if len(names) == contacts.world_count else []


def _difference(request: ReportRequest) -> dict[str, Any]:
    given = {name: getattr(request, name) for name in ("atol", "rtol", "ignore_shallow", "include", "exclude")}
    return diff(DiffRequest(request.against, request.file, **given)).as_dict()


def _first_pass(passes: Passes) -> _Sums:
    selected, contacts = passes.selected, passes.selected.contacts
    if not np.isfinite(contacts.time).all():
        frame = int(np.argmin(np.isfinite(contacts.time)))
        what = "is not a finite number"
        raise InputError(what, f"{contacts.path}: /time/time, frame {frame}", "repair the recording")
    frames = summary.FrameSums(selected.frame_count, selected.world_count)
    sums = _Sums(frames, summary.DepthHistogram(), summary.PairTotals.none(), np.full(selected.world_count, np.inf))
    names = shape_names(contacts)
    for block in passes.blocks():
        finite = np.isfinite(block.columns["distance"])
        if not finite.all():
            frame, world = divmod(int(block.cell[np.argmin(finite)]), selected.world_count)
            where = f"{contacts.path}: /rigid_contacts/distance, frame {frame}, world {selected.worlds[world]}"
            raise InputError("is not a finite number", where, "make the contact set again")
        sums.frames.add(block)
        sums.depths.add(block.columns["distance"])
        touches = summary.touches_of(block).named(names)
        sums.pairs = sums.pairs.joined(summary.PairTotals.of(touches, len(contacts.shapes)))
        np.minimum.at(sums.world_least, touches.cell % selected.world_count, touches.distance)
    return sums


def _pairs(passes: Passes, pairs: summary.PairTotals) -> dict[str, Any]:
    """The pairs with the most contacts over time, in the order of their first contacts."""
    selected = passes.selected
    contacts, names = selected.contacts, shape_names(selected.contacts)
    chosen = np.sort(np.lexsort((pairs.key, -pairs.contacts))[:MAX_PAIRS])
    bins = summary.TimeBins(contacts.frame_count, MAX_BINS)
    map_of_pairs = summary.PairMap(pairs.key[chosen], bins.of, selected.world_count, len(contacts.shapes))
    if len(chosen):
        for block in passes.blocks():
            map_of_pairs.add(summary.touches_of(block).named(names))
    listed = []
    for row in np.lexsort((pairs.key[chosen], pairs.first[chosen])).tolist():
        pair = int(chosen[row])
        first, last = (int(cells[pair]) // selected.world_count for cells in (pairs.first, pairs.last))
        least = map_of_pairs.least[row]
        listed.append(
            {
                **closest_cell(selected, pairs, pair),
                "contacts": int(pairs.contacts[pair]),
                "touches": int(pairs.touches[pair]),
                "first_frame": first,
                "last_frame": last,
                "contacts_per_frame": (map_of_pairs.contacts[row] / bins.lengths).tolist(),
                "depth": np.where(np.isfinite(least), np.maximum(0.0, -least), -1.0).tolist(),
            }
        )
    return {"count": len(pairs.key), "listed": listed, **bins.axis(contacts.time)}


def _depths(depths: summary.DepthHistogram) -> list[dict[str, Any]]:
    """Bins from the first to the last that is not empty; `from` is 0 in the lowest bin, `to` is None in the highest."""
    filled = np.flatnonzero(depths.counts)
    if not len(filled):
        return []
    edges = [0.0, *depths.edges.tolist(), None]
    return [
        {"from": edges[n], "to": edges[n + 1], "contacts": int(depths.counts[n])}
        for n in range(int(filled[0]), int(filled[-1]) + 1)
    ]


def _worst(selected: SelectedContacts, pairs: summary.PairTotals) -> list[dict[str, Any]]:
    order = np.lexsort((pairs.key, pairs.least))[:WORST_PAIRS]
    return [
        {**closest_cell(selected, pairs, row), "contacts": int(pairs.contacts[row]), "touches": int(pairs.touches[row])}
        for row in order.tolist()
        if pairs.least[row] < 0.0
    ]


def _early_ends(selected: SelectedContacts) -> list[str]:
    """A note if demonstrations end before the last frame: sums over the worlds of a frame are of fewer of them."""
    episodes, frames = selected.contacts.episodes, selected.contacts.frame_count
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


# Parts of a report that the reader of its page can select: the contacts of one world, one body or one static shape.

# Rows of the groups beside /rigid_contacts in the parts of a report that the reader of its page can select.

SUBSET_GROUPS = ("hydro_patches", "soft_contacts", "self_contacts")
FORCE = "force"
Part = tuple[int, np.ndarray | None]
"""Position of a world among the selected ones, -1 for all; bool[S], shapes of which a row has one, or None for all."""


def group_sums(selected: SelectedContacts, parts: Sequence[Part], bin_of: np.ndarray) -> list[dict[str, Any]]:
    """Rows, and their mean number in a frame of each bin, of each group and part; forces of surfaces too [N].

    Rows without shapes are in no part that has shapes. bin_of: int[F]. Raises InputError for forces that are not
    finite.
    """
    lengths = np.bincount(bin_of)
    sums_by_part: list[dict[str, Any]] = [{} for _ in parts]
    for name in SUBSET_GROUPS if parts else ():
        if name not in selected.contacts.groups:
            continue
        rows = rows_of(selected, name)
        sums = np.zeros((len(parts), 2, len(lengths)))
        for frame, world, shapes, force in _group_blocks(rows):
            for number, (of_world, mask) in enumerate(parts):
                is_chosen = np.ones(len(frame), bool) if of_world < 0 else world == of_world
                if mask is not None:
                    is_chosen &= np.any([mask[shape] for shape in shapes], axis=0) if shapes else False
                at = bin_of[frame[is_chosen]]
                np.add.at(sums[number, 0], at, 1.0)
                np.add.at(sums[number, 1], at, force[is_chosen])
        for is_chosen, (counts, forces) in zip(sums_by_part, sums, strict=True):
            if counts.any():
                is_chosen[name] = {"rows": int(counts.sum()), "per_frame": (counts / lengths).tolist()}
                if name == "hydro_patches":
                    is_chosen[name][FORCE] = (forces / lengths).tolist()
    return sums_by_part


def worlds_and_shapes_with_rows(selected: SelectedContacts) -> tuple[np.ndarray, np.ndarray]:
    """bool[selected worlds], bool[S]: those that have rows of any group."""
    worlds, shapes = np.zeros(selected.world_count, bool), np.zeros(len(selected.contacts.shapes), bool)
    for name in SUBSET_GROUPS:
        if name in selected.contacts.groups:
            for _, world, of_rows, _ in _group_blocks(rows_of(selected, name)):
                worlds[world] = True
                for shape in of_rows:
                    shapes[shape] = True
    return worlds, shapes


def _group_blocks(rows: SelectedContacts) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]]:
    has_force = rows.group.name == "hydro_patches"
    for block in rows.blocks((*rows.shape_columns, *((FORCE,) if has_force else ()))):
        frame, world = np.divmod(block.cell, rows.world_count)
        force = np.zeros(len(frame))
        if has_force:
            if not np.isfinite(block.columns[FORCE]).all():
                where = f"{rows.contacts.path}: /hydro_patches/force"
                raise InputError("is not finite", where, "collide check names the rows")
            force = np.linalg.norm(block.columns[FORCE], axis=1)
        yield frame, world, [block.columns[name] for name in rows.shape_columns], force


COLUMNS = ("shape0", "shape1", "distance")
BLOCK_ROWS = 1 << 20
MAX_WORLDS, MAX_BODIES, MAX_SUBSET_PAIRS = 12, 12, 8
"""Numbers of worlds, of bodies and static shapes, and of pairs of each of them, which bound the size of a page."""
MAX_SUBSET_BINS = 80


@dataclass
class _Subset:
    """Sums of a subset. kind: "world", "body" or "shape". row: of the set's worlds, bodies or shapes.

    world: position among the selected worlds, -1 for all. shapes: bool[S], of which a pair has one; None is all pairs.
    """

    kind: str
    name: str
    row: int
    world: int
    shapes: np.ndarray | None
    contacts: np.ndarray
    least: np.ndarray
    pairs: PairTotals = field(default_factory=PairTotals.none)

    def rows(self, touches: Touches, world_count: int) -> Touches:
        """The touches of this subset."""
        if self.shapes is None:
            return touches.take(touches.cell % world_count == self.world)
        return touches.take(self.shapes[touches.shape0] | self.shapes[touches.shape1])


@dataclass
class Passes:
    """Passes over the selected contacts, whose progress is reported as that of one. count, done: of passes."""

    selected: SelectedContacts
    progress: Progress
    count: int
    done: int = 0

    def blocks(self) -> Iterator[ContactBlock]:
        """The contacts in blocks, in one more pass."""
        frames, worlds = self.selected.frame_count, self.selected.world_count
        for block in self.selected.blocks(COLUMNS, BLOCK_ROWS):
            yield block
            if self.progress is not None and worlds:
                last = (block.first_cell + len(block.cell_counts)) // worlds
                self.progress((self.done * frames + last) // self.count, frames)
        self.done += 1


def subsets(passes: Passes, pairs: PairTotals, world_least: np.ndarray, demonstrations: list[str]) -> dict[str, Any]:
    """Contacts, rows of groups, and depth over time of single worlds, bodies and static shapes: the deepest of many.

    pairs: totals of all selected contacts. world_least: float64[W], least distance in each selected world, inf without
    contacts. Reads the contacts twice. listed is empty if there is no choice; left_out are numbers of those not listed.
    """
    selected, contacts = passes.selected, passes.selected.contacts
    bins = TimeBins(selected.frame_count, MAX_SUBSET_BINS)
    world_rows, shape_rows = worlds_and_shapes_with_rows(selected)
    worlds, more_worlds = _deepest(_present(world_least, world_rows), MAX_WORLDS)
    check_body_rows(contacts)
    owners = pair_keys(contacts, "bodies")
    owner_of = owners.number[: len(contacts.shapes)]
    owner_least = np.full(len(owners.paths), np.inf)
    for shape in np.divmod(pairs.key, len(contacts.shapes)):
        np.minimum.at(owner_least, owner_of[shape], pairs.least)
    owner_rows = np.bincount(owner_of[shape_rows], minlength=len(owners.paths)) > 0
    bodies, more_bodies = _deepest(_present(owner_least, owner_rows), MAX_BODIES)

    def empty(kind: str, name: str, row: int, world: int, shapes: np.ndarray | None) -> _Subset:
        count = len(bins.start)
        return _Subset(kind, name, row, world, shapes, np.zeros(count, np.int64), np.full(count, np.inf))

    parts = []
    for place in worlds:
        world = int(selected.worlds[place])
        parts.append(empty("world", demonstrations[world] if demonstrations else f"world {world}", world, place, None))
    for owner in bodies:
        kind, mine = owners.kinds[owner], owner_of == owner
        row = contacts.shapes.body[mine].max() if kind == "body" else np.argmax(mine)
        parts.append(empty(kind, owners.paths[owner], int(row), -1, mine))
    shape_count, names = len(contacts.shapes), shape_names(contacts)
    for touches in map(touches_of, passes.blocks() if parts else ()):
        for subset in parts:
            mine = subset.rows(touches, selected.world_count).named(names)
            at = bins.of[mine.cell // selected.world_count]
            np.add.at(subset.contacts, at, mine.contact_count)
            np.minimum.at(subset.least, at, mine.distance)
            subset.pairs = subset.pairs.joined(PairTotals.of(mine, shape_count))
    listed = _listed(passes, parts, bins.of)
    groups = group_sums(selected, [(subset.world, subset.shapes) for subset in parts], bins.of)
    return {
        **bins.axis(contacts.time),
        "left_out": {"worlds": more_worlds, "bodies": more_bodies},
        "listed": [{**subset, "groups": of_groups} for subset, of_groups in zip(listed, groups, strict=True)],
    }


def closest_cell(selected: SelectedContacts, pairs: PairTotals, row: int) -> dict[str, Any]:
    """A pair, its least distance, and the frame and world of it."""
    contacts, text = selected.contacts, shape_names(selected.contacts).text
    frame, world = divmod(int(pairs.at[row]), selected.world_count)
    shape0, shape1 = divmod(int(pairs.key[row]), len(contacts.shapes))
    return {
        "shape0": text[shape0],
        "shape1": text[shape1],
        "distance": float(pairs.least[row]),
        "frame": frame,
        "world": int(selected.worlds[world]),
        "episode": "" if contacts.episodes is None else contacts.episodes.name_at(int(selected.worlds[world]), frame),
        "time": float(contacts.time[frame]),
    }


def _deepest(least: np.ndarray, most: int) -> tuple[list[int], int]:
    """The rows with the least distances, ascending, and the number of other rows with contacts; none if one is all."""
    filled = np.flatnonzero(np.isfinite(least))
    if len(filled) < 2:
        return [], 0
    kept = filled[np.argsort(least[filled], kind="stable")[:most]]
    return np.sort(kept).tolist(), len(filled) - len(kept)


def _present(least: np.ndarray, has_rows: np.ndarray) -> np.ndarray:
    """Least distances; those without contacts that have rows of groups come after all others."""
    return np.where(np.isinf(least) & has_rows, np.finfo(np.float64).max, least)


def _listed(passes: Passes, found: list[_Subset], bin_of: np.ndarray) -> list[dict[str, Any]]:
    selected = passes.selected
    shape_count, names = len(selected.contacts.shapes), shape_names(selected.contacts)
    deepest = [np.sort(np.lexsort((subset.pairs.key, subset.pairs.least))[:MAX_SUBSET_PAIRS]) for subset in found]
    maps = [
        PairMap(subset.pairs.key[rows], bin_of, selected.world_count, shape_count)
        for subset, rows in zip(found, deepest, strict=True)
    ]
    for touches in map(touches_of, passes.blocks() if found else ()):
        for subset, pairs in zip(found, maps, strict=True):
            pairs.add(subset.rows(touches, selected.world_count).named(names))
    lengths = np.bincount(bin_of)
    listed = []
    for subset, rows, pairs in zip(found, deepest, maps, strict=True):
        order = np.lexsort((subset.pairs.key[rows], subset.pairs.least[rows])).tolist()
        listed.append(
            {
                "kind": subset.kind,
                "name": subset.name,
                "row": subset.row,
                "contacts": int(subset.contacts.sum()),
                "pair_count": len(subset.pairs.key),
                "contacts_per_frame": (subset.contacts / lengths).tolist(),
                "depth": np.maximum(0.0, -subset.least).tolist(),
                "pairs": [
                    {
                        **closest_cell(selected, subset.pairs, int(rows[n])),
                        "contacts": int(subset.pairs.contacts[rows[n]]),
                        "depth": np.where(np.isfinite(pairs.least[n]), np.maximum(0.0, -pairs.least[n]), -1.0).tolist(),
                    }
                    for n in order
                ],
            }
        )
    return listed
