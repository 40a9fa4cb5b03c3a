"""Of `diff --by-pair`: what two contact sets, of any engines, contain about each pair of shapes in
each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.adapters.rows import unusable_normals
from collidecli.analysis.contact_matching import Contacts
from collidecli.analysis.deviations import Tolerances, spread
from collidecli.analysis.differences import CHANGED, EXTRA, KINDS, MISSING
from collidecli.analysis.model_alignment import FrameAlignment, align_frames
from collidecli.numerics.products import cross, dot
from collidecli.results.result import Progress, Result
from collidecli.scene.distinct_values import distinct
from collidecli.storage.contact_sets.readable_rows import check_has_contacts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading
from collidecli.verbs.diff.blocks import Side, matched_blocks
from collidecli.verbs.diff.diff import file_of, share_of
from collidecli.verbs.diff.models import ModelComparison, compare_models
from collidecli.verbs.diff.request import DiffRequest
from collidecli.verbs.diff.times import time_at
from collidecli.wording import count, plural

NAMES = ("shape0", "shape1", "distance", "normal", "point0", "point1")
MEASURES = ("distance", "angle", "centre")


@dataclass(frozen=True)
class PairDiffRequest(DiffRequest):
    """Two contact sets, compared by pair and cell. Gaps, features and numbers of contacts are not
    compared.

    band: least distances that differ by less are equal, and a pair that is this near to contact may
    be missing [m]. max_angle: of the normals of the deepest contacts [degree]. max_missing,
    max_extra, allow_fraction: of pairs, each counted in every cell.
    """

    band: float = 1e-4
    max_angle: float = 1.0


@dataclass(frozen=True)
class PairDiffResult(Result, schema="collide.diff_pairs/1"):
    """Differences of contact set B from contact set A by pair and cell. Lengths [m], angles
    [degree].

    engines: name and version of each, or of collide. counts: pairs with a contact in a and b and in
    both, each counted in every cell, and those missing, extra or changed; allowed: of these.
    not_asked: pairs that are not compared, as an engine does not hold a shape or the pair. normals:
    contacts of each set whose normal is not of unit length, and those of them without direction, of
    which no angle is taken. distance, angle, centre: of pairs in both sets, differences of the
    least distance, of its normal and of the mean point; contacts_a, contacts_b: mean number of
    contacts. pairs: the same by pair, the first so many that differ.
    """

    a: dict[str, Any]
    b: dict[str, Any]
    engines: dict[str, str]
    equal: bool
    reasons: list[str]
    options: dict[str, Any]
    frames: dict[str, Any]
    counts: dict[str, int]
    not_asked: int
    allowed: dict[str, int]
    normals: dict[str, dict[str, int]]
    distance: dict[str, float] | None
    angle: dict[str, float] | None
    centre: dict[str, float] | None
    contacts_a: float | None
    contacts_b: float | None
    differing_pairs: int
    pairs: list[dict[str, Any]]
    notes: list[str]


def diff_pairs(request: PairDiffRequest, progress: Progress = None) -> PairDiffResult:
    """Compares two contact sets by pair and cell.

    Raises InputError for files that are not contact sets, and for frames that cannot be matched.
    """
    with (
        reading("contact set", request.a),
        ContactSet.open(request.a) as a,
        reading("contact set", request.b),
        ContactSet.open(request.b) as b,
    ):
        for contacts in (a, b):
            check_has_contacts(contacts)
        model = compare_models(a, b, Tolerances({"gap": np.inf}), request)
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
        sides = [Side(contacts, index, model, NAMES) for index, contacts in enumerate((a, b))]
        compared = _compared_pairs(sides, frames, request, progress)
        allowed, reasons = _verdict(request, compared, model, frames)
        differing, pairs = compared.pairs(a, frames, model.shapes.names, request.first)
        return PairDiffResult(
            a=file_of(a),
            b=file_of(b),
            engines={name: _engine(contacts) for name, contacts in (("a", a), ("b", b))},
            equal=not reasons,
            reasons=reasons,
            options={
                name: getattr(request, name)
                for name in ("band", "max_angle", "include", "exclude", "renames")
            },
            frames={"by": frames.by, "compared": len(frames.a), "worlds": compared.worlds},
            **compared.about(slice(None)),
            not_asked=compared.not_asked,
            allowed=allowed,
            normals=compared.normals,
            differing_pairs=differing,
            pairs=pairs,
            notes=model.notes,
        )


def _engine(contacts: ContactSet) -> str:
    engine = contacts.engine
    return contacts.creator if engine is None else f"{engine.name} {engine.version}".strip()


@dataclass
class _Compared:
    """What A and B, the first index, say about n pairs of cells that both engines hold.

    key: int64[n], of cell, then pair. rows: int64[2, n], numbers of contacts. least: float64[2, n]
    [m], infinite without a contact; normal: of it, and centre: the mean point, float64[2, n, 3],
    NaN without one. worlds: of a frame. not_asked: number of the pairs of cells with a contact that
    an engine does not hold. normals: numbers of unusable ones, by set. kinds: bool[n] of KINDS.
    measures: float64[n] of MEASURES [m, degree], NaN where not both sets have it.
    """

    key: np.ndarray
    rows: np.ndarray
    least: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    worlds: int
    not_asked: int
    normals: dict[str, dict[str, int]]
    kinds: dict[str, np.ndarray] = field(default_factory=dict)
    measures: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def both(self) -> np.ndarray:
        """bool[n]: pairs of which both sets have a contact."""
        return (self.rows[0] > 0) & (self.rows[1] > 0)

    def compare(self, band: float, max_angle: float) -> None:
        """Sets kinds and measures."""
        (a, b) = self.normal
        both = self.both
        usable = both & ~(unusable_normals(a)[0] | unusable_normals(b)[0])
        turn = np.degrees(np.arctan2(np.linalg.norm(cross(a, b), axis=1), dot(a, b)))
        apart = np.where(both, self.least, np.nan)
        self.measures = {
            "distance": np.abs(apart[0] - apart[1]),
            "angle": np.where(usable, turn, np.nan),
            "centre": np.linalg.norm(self.centre[0] - self.centre[1], axis=1),
        }
        missing, extra = (self.least < -band) & ~(self.least[::-1] <= band)
        beyond = (self.measures["distance"] > band) | (self.measures["angle"] > max_angle)
        self.kinds = {
            MISSING: missing,
            EXTRA: extra,
            CHANGED: beyond & ~missing & ~extra,
        }

    def about(self, chosen: Any) -> dict[str, Any]:
        """Counts and measures of chosen pairs of cells."""
        both = self.both[chosen]
        has = self.rows[:, chosen] > 0
        kinds = {kind: int(mask[chosen].sum()) for kind, mask in self.kinds.items()}
        means = self.rows[:, chosen][:, both].mean(axis=1).tolist() if both.any() else (None, None)
        return {
            "counts": {
                "a": int(has[0].sum()),
                "b": int(has[1].sum()),
                "both": int(both.sum()),
                **kinds,
            },
            **{name: spread(values[chosen]) for name, values in self.measures.items()},
            **dict(zip(("contacts_a", "contacts_b"), means, strict=True)),
        }

    def pairs(
        self, a: ContactSet, frames: FrameAlignment, names: list[str], most: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """The number of pairs of shapes that differ, and `most` of them, those that differ in most
        cells first."""
        shapes = len(names)
        pair = self.key % max(1, shapes**2)
        differs = np.logical_or.reduce(list(self.kinds.values()))
        # a pair of a cell is of one kind at most
        every, cells = np.unique(pair[differs], return_counts=True)
        rows = []
        for pair_key in every[np.argsort(-cells, kind="stable")][:most].tolist():
            chosen = np.flatnonzero(pair == pair_key)
            match, world = divmod(
                int(self.key[chosen[differs[chosen]][0]]) // shapes**2, self.worlds
            )
            frame = int(frames.a[match])
            cell = {"frame_a": frame, "frame_b": int(frames.b[match]), "step": int(a.step[frame])}
            cell |= {"time": time_at(a, frame), "world": world}
            about = self.about(chosen)
            sides = {"shape0": names[pair_key // shapes], "shape1": names[pair_key % shapes]}
            rows.append({**sides, **about.pop("counts"), **about, "first": cell})
        return len(every), rows


def _compared_pairs(
    sides: Sequence[Side], frames: FrameAlignment, request: PairDiffRequest, progress: Progress
) -> _Compared:
    """Both sets by pair and cell, and their unusable normals."""
    sets = [side.contacts for side in sides]
    shapes = len(sides[0].model.shapes.names)
    worlds = max(1, min(one.world_count for one in sets))
    parts: list[list[tuple[np.ndarray, ...]]] = [[_pairs_of(None, 0, shapes)] for _ in sides]
    normals = {name: {"unusable": 0, "zero": 0} for name in "ab"}
    tables = [(sets[0].rigid, sets[1].rigid)]
    for first, *begins, cells in matched_blocks(
        sets[0], sets[1], frames, tables, 2 * request.block_rows
    ):
        for name, part, side, begin in zip("ab", parts, sides, begins, strict=True):
            block = side.read(begin, begin + cells)
            part.append(_pairs_of(block, first, shapes))
            for kind, broken in zip(
                normals[name], unusable_normals(block.columns["normal"]), strict=True
            ):
                normals[name][kind] += int(broken.sum())
        if progress is not None:
            progress(first // worlds, len(frames.a))
    joined = [[np.concatenate(column) for column in zip(*part, strict=True)] for part in parts]
    unheld = np.logical_or.reduce([_not_asked(side, shapes) for side in sides]).ravel()
    every = distinct(np.concatenate([joined[0][0], joined[1][0]]))
    key = every[~unheld[every % max(1, shapes**2)]]
    rows = np.zeros((2, len(key)), np.int64)
    least = np.full((2, len(key)), np.inf)
    normal, centre = np.full((2, 2, len(key), 3), np.nan)
    result = _Compared(key, rows, least, normal, centre, worlds, len(every) - len(key), normals)
    for side, (own_key, *columns) in enumerate(joined):
        kept = np.isin(own_key, key)
        at = np.searchsorted(key, own_key[kept])
        for values, column in zip(
            (result.rows, result.least, result.normal, result.centre), columns, strict=True
        ):
            values[side, at] = column[kept]
    result.compare(request.band, request.max_angle)
    return result


def _pairs_of(contacts: Contacts | None, first_cell: int, shapes: int) -> tuple[np.ndarray, ...]:
    """Key, number of contacts, least distance, its normal and the mean point of each pair of each
    cell."""
    if contacts is None or not len(contacts):
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3))
    values = {name: column.astype(np.float64) for name, column in contacts.columns.items()}
    key = ((contacts.cell + first_cell) * shapes + contacts.first) * shapes + contacts.second
    order = np.lexsort((values["distance"], key))
    keys, start, rows = np.unique(key[order], return_index=True, return_counts=True)
    centre = (
        np.add.reduceat(0.5 * (values["point0"] + values["point1"])[order], start) / rows[:, None]
    )
    return keys, rows, values["distance"][order][start], values["normal"][order][start], centre


def _not_asked(side: Side, shapes: int) -> np.ndarray:
    """bool[shapes, shapes]: pairs that the engine of a set does not hold, by common numbers."""
    unasked = np.zeros((shapes, shapes), bool)
    numbers = side.numbers
    engine = side.contacts.engine
    if engine is not None:
        unasked[numbers[np.array(engine.treated) == "skipped"]] = True
        unasked[numbers[engine.not_asked0], numbers[engine.not_asked1]] = True
    return unasked | unasked.T


def _verdict(
    request: PairDiffRequest, compared: _Compared, model: ModelComparison, frames: FrameAlignment
) -> tuple[dict[str, int], list[str]]:
    """The numbers of pairs that may differ, and the reasons why the sets do."""
    only = [(len(model.differences), "difference", "of the model")]
    only += [
        (len(rows), "frame", f"only in {name}")
        for rows, name in ((frames.only_a, "A"), (frames.only_b, "B"))
    ]
    reasons = [f"{plural(number, noun)} {place}" for number, noun, place in only if number]
    limits = {MISSING: request.max_missing, EXTRA: request.max_extra, CHANGED: 0}
    totals = (*(compared.least < -request.band).sum(axis=1).tolist(), int(compared.both.sum()))
    shares = (share_of(request.allow_fraction, total) for total in totals)
    allowed = {kind: max(limits[kind], share) for kind, share in zip(KINDS, shares, strict=True)}
    for kind, most in allowed.items():
        if (number_of_kind := int(compared.kinds[kind].sum())) > most:
            words = f"{plural(number_of_kind, 'pair')} {kind}"
            reasons.append(f"{words}, and {count(most)} allowed" if most else words)
    for name, normals in compared.normals.items():
        if normals["unusable"]:
            zero = f"{count(normals['zero'])} of them zero"
            reasons.append(
                f"{plural(normals['unusable'], 'unusable normal')} in {name.upper()}, {zero}"
            )
    return allowed, reasons
