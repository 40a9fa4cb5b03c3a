"""`diff --by-pair`: what two contact sets, of any engines, say about each pair of shapes in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.alignment import Contacts, FrameAlignment, align_frames
from collidecli.analysis.differences import CHANGED, EXTRA, KINDS, MISSING, Tolerances, spread
from collidecli.commands.diff import file_of, share_of
from collidecli.commands.diff_blocks import DiffRequest, ModelComparison, Side, compare_models, matched_blocks
from collidecli.commands.results import Progress, Result
from collidecli.engines import unusable_normals
from collidecli.numerics.matrices import cross, dot
from collidecli.scene.text_format import count, plural
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_has_contacts
from collidecli.storage.process_activity import reading

NAMES = ("shape0", "shape1", "distance", "normal", "point0", "point1")
MEASURES = ("distance", "angle", "centre")


@dataclass(frozen=True)
class PairDiffRequest(DiffRequest):
    """Two contact sets, compared by pair and cell. Gaps, features and numbers of contacts are not compared.

    band: least distances that differ by less are equal, and a pair that is this near to contact may be missing [m].
    max_angle: of the normals of the deepest contacts [degree]. max_missing, max_extra, allow_fraction: of pairs, each
    counted in every cell.
    """

    band: float = 1e-4
    max_angle: float = 1.0


@dataclass(frozen=True)
class PairDiffResult(Result):
    """Differences of contact set B from contact set A by pair and cell. Lengths [m], angles [degree].

    engines: name and version of each, or of collide. counts: pairs with a contact in a and b and in both, each counted
    in every cell, those missing, extra or changed, and those that are not compared, as an engine does not hold a shape
    or the pair; allowed: of these. normals: contacts of each set whose normal is
    not of unit length, and those of them without direction, of which no angle is taken. distance, angle, centre: of
    pairs in both sets, differences of the least distance, of its normal and of the mean point; contacts_a, contacts_b:
    mean number of contacts. pairs: the same by pair, the first so many that differ.
    """

    SCHEMA: ClassVar[str] = "collide.diff_pairs/1"

    a: dict[str, Any]
    b: dict[str, Any]
    engines: dict[str, str]
    equal: bool
    reasons: list[str]
    options: dict[str, Any]
    frames: dict[str, Any]
    counts: dict[str, int]
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


@dataclass
class _Answers:
    """What one set says about the pairs of cells. key: int64[n], ascending. least [m], normal, centre: of each pair;
    rows: number of contacts.
    """

    key: np.ndarray
    least: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, contacts: Contacts, first_cell: int, shapes: int) -> _Answers:
        values = contacts.columns
        key = ((contacts.cell + first_cell) * shapes + contacts.first) * shapes + contacts.second
        distance = values["distance"].astype(np.float64)
        order = np.lexsort((distance, key))
        keys, start, rows = np.unique(key[order], return_index=True, return_counts=True)
        middle = 0.5 * (values["point0"].astype(np.float64) + values["point1"])[order]
        centre = np.add.reduceat(middle, start) / rows[:, None] if len(start) else middle
        return cls(keys, distance[order][start], values["normal"].astype(np.float64)[order][start], centre, rows)

    @classmethod
    def joined(cls, parts: list[_Answers]) -> _Answers:
        empty = _Answers(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64))
        return cls(*(np.concatenate([getattr(one, name) for one in (empty, *parts)]) for name in vars(empty)))

    def at(self, key: np.ndarray) -> _Answers:
        """The answers about other pairs: least is infinite, normal and centre are NaN, and rows 0 of one without."""
        row = np.minimum(np.searchsorted(self.key, key), max(0, len(self.key) - 1))
        has = self.key[row] == key if len(self.key) else np.zeros(len(key), bool)
        vectors = [np.full((len(key), 3), np.nan) for _ in range(2)]
        nothing = _Answers(key, np.full(len(key), np.inf), vectors[0], vectors[1], np.zeros_like(key))
        for name in ("least", "normal", "centre", "rows"):
            getattr(nothing, name)[has] = getattr(self, name)[row[has]]
        return nothing


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
        for one in (a, b):
            check_has_contacts(one)
        model = compare_models(a, b, Tolerances({"gap": np.inf}), request)
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
        worlds = max(1, min(a.world_count, b.world_count))
        answers, normals = _answers(request, a, b, model, frames, progress)
        shapes = len(model.shapes.names)
        not_asked = _not_asked(a, model.shapes.number_a, shapes) | _not_asked(b, model.shapes.number_b, shapes)
        compared = _Compared.of(answers[0], answers[1], request, not_asked)
        allowed, reasons = _verdict(request, compared, model, frames, normals)
        return PairDiffResult(
            a=file_of(a),
            b=file_of(b),
            engines={name: _engine(each) for name, each in (("a", a), ("b", b))},
            equal=not reasons,
            reasons=reasons,
            options={name: getattr(request, name) for name in ("band", "max_angle", "include", "exclude", "renames")},
            frames={"by": frames.by, "compared": len(frames.a), "worlds": worlds},
            counts={**compared.counts(slice(None)), "not_asked": compared.not_asked},
            allowed=allowed,
            normals=normals,
            **compared.spreads(slice(None)),
            **_pairs(compared, a, frames, worlds, model.shapes.names, request.first),
            notes=model.notes,
        )


def _answers(
    request: PairDiffRequest,
    a: ContactSet,
    b: ContactSet,
    model: ModelComparison,
    frames: FrameAlignment,
    progress: Progress,
) -> tuple[list[_Answers], dict[str, dict[str, int]]]:
    """The answers of both sets, and their unusable normals."""
    numbers = (model.shapes.number_a, model.shapes.number_b)
    sides = [Side.of(one, number, model.kept, NAMES, False, False) for one, number in zip((a, b), numbers, strict=True)]
    answers: tuple[list[_Answers], list[_Answers]] = ([], [])
    normals = {name: {"unusable": 0, "zero": 0} for name in "ab"}
    for first, *begins, cells in matched_blocks(a, b, frames, [(a.rigid, b.rigid)], 2 * request.block_rows):
        for name, found, side, begin in zip("ab", answers, sides, begins, strict=True):
            held = side.read(begin, begin + cells)
            found.append(_Answers.of(held, first, len(model.shapes.names)))
            bad, zero = unusable_normals(held.columns["normal"])
            normals[name]["unusable"] += int(bad.sum())
            normals[name]["zero"] += int(zero.sum())
        if progress is not None:
            progress(first // min(a.world_count, b.world_count), len(frames.a))
    return [_Answers.joined(each) for each in answers], normals


def _verdict(
    request: PairDiffRequest,
    compared: _Compared,
    model: ModelComparison,
    frames: FrameAlignment,
    normals: dict[str, dict[str, int]],
) -> tuple[dict[str, int], list[str]]:
    """The numbers of pairs that may differ, and the reasons why the sets do."""
    only = [(len(model.differences), "difference", "of the model")]
    only += [(len(each), "frame", f"only in {name}") for each, name in ((frames.only_a, "A"), (frames.only_b, "B"))]
    reasons = [f"{plural(number, noun)} {of}" for number, noun, of in only if number]
    limits = {MISSING: request.max_missing, EXTRA: request.max_extra, CHANGED: 0}
    of_kind = dict(zip(KINDS, (compared.touching_a, compared.touching_b, compared.both), strict=True))
    allowed = {
        kind: max(limits[kind], share_of(request.allow_fraction, int(each.sum()))) for kind, each in of_kind.items()
    }
    for kind, most in allowed.items():
        if (found := int(compared.kinds[kind].sum())) > most:
            words = f"{plural(found, 'pair')} {kind}"
            reasons.append(f"{words}, and {count(most)} allowed" if most else words)
    for name, held in normals.items():
        if held["unusable"]:
            zero = f"{count(held['zero'])} of them zero"
            reasons.append(f"{plural(held['unusable'], 'unusable normal')} in {name.upper()}, {zero}")
    return allowed, reasons


def _not_asked(contacts: ContactSet, numbers: np.ndarray, shapes: int) -> np.ndarray:
    """bool[shapes, shapes]: pairs that the engine of a set does not hold, by common numbers."""
    found = np.zeros((shapes, shapes), bool)
    if contacts.engine is not None:
        skipped = numbers[np.array(contacts.engine.treated) == "skipped"]
        found[skipped] = True
        found[numbers[contacts.engine.not_asked0], numbers[contacts.engine.not_asked1]] = True
    return found | found.T


def _engine(contacts: ContactSet) -> str:
    engine = contacts.engine
    return contacts.creator if engine is None else f"{engine.name} {engine.version}".strip()


@dataclass
class _Compared:
    """Both sets about n pairs of cells that both engines hold; not_asked: number of others with a contact.

    touching_a, touching_b: deeper than the band. both: each has a contact. measures: the differences of MEASURES [m,
    degree], NaN where not both have it.
    """

    not_asked: int
    key: np.ndarray
    a: _Answers
    b: _Answers
    touching_a: np.ndarray
    touching_b: np.ndarray
    both: np.ndarray
    kinds: dict[str, np.ndarray]
    measures: dict[str, np.ndarray]

    @classmethod
    def of(cls, one: _Answers, other: _Answers, request: PairDiffRequest, not_asked: np.ndarray) -> _Compared:
        every, band = np.union1d(one.key, other.key), request.band
        held = ~not_asked.ravel()[every % not_asked.size]
        key = every[held]
        a, b = one.at(key), other.at(key)
        both = (a.rows > 0) & (b.rows > 0)
        touching_a, touching_b = a.least < -band, b.least < -band
        usable = both & ~(unusable_normals(a.normal)[0] | unusable_normals(b.normal)[0])
        turn = np.arctan2(np.linalg.norm(cross(a.normal, b.normal), axis=1), dot(a.normal, b.normal))
        apart = np.full(len(key), np.nan)
        apart[both] = np.abs(a.least[both] - b.least[both])
        measures = {
            "distance": apart,
            "angle": np.where(usable, np.degrees(turn), np.nan),
            "centre": np.where(both, np.linalg.norm(a.centre - b.centre, axis=1), np.nan),
        }
        missing, extra = touching_a & ~(b.least <= band), touching_b & ~(a.least <= band)
        beyond = (measures["distance"] > band) | (measures["angle"] > request.max_angle)
        kinds = {MISSING: missing, EXTRA: extra, CHANGED: both & beyond & ~missing & ~extra}
        return cls(int((~held).sum()), key, a, b, touching_a, touching_b, both, kinds, measures)

    @property
    def differs(self) -> np.ndarray:
        return np.logical_or.reduce(list(self.kinds.values()))

    def counts(self, rows: Any) -> dict[str, int]:
        found = {"a": self.a.rows > 0, "b": self.b.rows > 0, "both": self.both, **self.kinds}
        return {name: int(each[rows].sum()) for name, each in found.items()}

    def spreads(self, rows: Any) -> dict[str, Any]:
        """The spreads of the measures, and mean numbers of contacts of the pairs that both have."""
        both = self.both[rows]
        means = {f"contacts_{name}": each.rows[rows][both] for name, each in (("a", self.a), ("b", self.b))}
        return {
            **{name: spread(values[rows]) for name, values in self.measures.items()},
            **{name: float(values.mean()) if len(values) else None for name, values in means.items()},
        }


def _pairs(
    compared: _Compared, a: ContactSet, frames: FrameAlignment, worlds: int, names: list[str], first: int
) -> dict[str, Any]:
    """The pairs of shapes that differ, those that differ in most cells first."""
    shapes = len(names)
    pair, differs = compared.key % shapes**2, compared.differs
    listed = []
    for one in np.unique(pair[differs]).tolist():
        rows = np.flatnonzero(pair == one)
        match, world = divmod(int(compared.key[rows[differs[rows]][0]]) // shapes**2, worlds)
        frame = int(frames.a[match])
        cell = {"frame_a": frame, "frame_b": int(frames.b[match]), "step": int(a.step[frame])}
        cell |= {"time": float(a.time[frame]), "world": world}
        sides = {"shape0": names[one // shapes], "shape1": names[one % shapes]}
        listed.append({**sides, **compared.counts(rows), **compared.spreads(rows), "first": cell})
    listed.sort(key=lambda one: -sum(one[kind] for kind in KINDS))
    return {"differing_pairs": len(listed), "pairs": listed[:first]}
