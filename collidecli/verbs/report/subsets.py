"""Parts of a report that the reader of its page can select: the contacts of one world, one body or
one static shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.event_stream import pair_keys, shape_names
from collidecli.analysis.summary import PairMap, PairTotals, TimeBins, Touches, touches_of
from collidecli.analysis.touch_intervals import PairKeys
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE
from collidecli.errors import InputError
from collidecli.results.result import Progress
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import TOUCHES
from collidecli.storage.contact_sets.readable_rows import check_body_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import SelectedContacts, rows_of

SUBSET_GROUPS = ("hydro_patches", "soft_contacts", "self_contacts")
FORCE = "force"
Part = tuple[int, np.ndarray | None]
"""Position of a world among the selected ones, -1 for all; bool[S], shapes of which a row has one,
or None for all."""


def group_sums(
    selected: SelectedContacts, parts: Sequence[Part], bin_of: np.ndarray
) -> list[dict[str, Any]]:
    """Rows, and their mean number in a frame of each bin, of each group and part; forces of
    surfaces too [N].

    Rows without shapes are in no part that has shapes. bin_of: int[F]. Raises InputError for forces
    that are not finite.
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
                    is_chosen &= (
                        np.any([mask[shape] for shape in shapes], axis=0) if shapes else False
                    )
                at = bin_of[frame[is_chosen]]
                np.add.at(sums[number, 0], at, 1.0)
                np.add.at(sums[number, 1], at, force[is_chosen])
        for is_chosen, (counts, forces) in zip(sums_by_part, sums, strict=True):
            if counts.any():
                is_chosen[name] = {
                    "rows": int(counts.sum()),
                    "per_frame": (counts / lengths).tolist(),
                }
                if name == "hydro_patches":
                    is_chosen[name][FORCE] = (forces / lengths).tolist()
    return sums_by_part


def worlds_and_shapes_with_rows(selected: SelectedContacts) -> tuple[np.ndarray, np.ndarray]:
    """bool[selected worlds], bool[S]: those that have rows of any group."""
    worlds = np.zeros(selected.world_count, bool)
    shapes = np.zeros(len(selected.contacts.shapes), bool)
    for name in SUBSET_GROUPS:
        if name in selected.contacts.groups:
            for _, world, of_rows, _ in _group_blocks(rows_of(selected, name)):
                worlds[world] = True
                for shape in of_rows:
                    shapes[shape] = True
    return worlds, shapes


def _group_blocks(
    rows: SelectedContacts,
) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]]:
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
MAX_WORLDS = 12
MAX_BODIES = 12
MAX_SUBSET_PAIRS = 8
"""Numbers of worlds, of bodies and static shapes, and of pairs of each of them, which bound the
size of a page."""
MAX_SUBSET_BINS = 80


@dataclass
class _Subset:
    """Sums of a subset. kind: "world", "body" or "shape". row: of the set's worlds, bodies or
    shapes.

    world: position among the selected worlds, -1 for all. shapes: bool[S], of which a pair has one;
    None is all pairs.
    """

    kind: str
    name: str
    row: int
    world: int
    shapes: np.ndarray | None
    contacts: np.ndarray
    least: np.ndarray
    pairs: PairTotals = field(default_factory=PairTotals.none)

    @classmethod
    def empty(
        cls, kind: str, name: str, row: int, world: int, shapes: np.ndarray | None, bins: TimeBins
    ) -> _Subset:
        """A subset before its contacts are added."""
        count = len(bins.start)
        none = np.zeros(count, np.int64)
        return cls(kind, name, row, world, shapes, none, np.full(count, np.inf))

    def rows(self, touches: Touches, world_count: int) -> Touches:
        """The touches of this subset."""
        if self.shapes is None:
            return touches.take(touches.cell % world_count == self.world)
        return touches.take(self.shapes[touches.shape0] | self.shapes[touches.shape1])


@dataclass
class Passes:
    """Passes over the selected contacts, whose progress is reported as that of one. count, done: of
    passes."""

    selected: SelectedContacts
    progress: Progress
    count: int
    done: int = 0

    @property
    def has_unknown_distances(self) -> bool:
        """Whether the contacts are the pairs of a set of touches."""
        return self.selected.group.name == TOUCHES.name

    def blocks(self) -> Iterator[ContactBlock]:
        """The contacts in blocks, in one more pass."""
        frames = self.selected.frame_count
        worlds = self.selected.world_count
        columns = COLUMNS[:2] if self.has_unknown_distances else COLUMNS
        for block in self.selected.blocks(columns, BLOCK_ROWS):
            if self.has_unknown_distances:
                unknown = np.full(block.contact_count, UNKNOWN_DISTANCE, np.float32)
                block.columns["distance"] = unknown
            yield block
            if self.progress is not None and worlds:
                last = (block.first_cell + len(block.cell_counts)) // worlds
                self.progress((self.done * frames + last) // self.count, frames)
        self.done += 1


def subsets(
    passes: Passes, pairs: PairTotals, world_order: np.ndarray, demonstrations: list[str]
) -> dict[str, Any]:
    """Contacts, rows of groups, and depth over time of single worlds, bodies and static shapes: the
    deepest of many, or in a set of touches those that touch the most.

    pairs: totals of all selected contacts. world_order: float64[W], least distance in each selected
    world, or minus its number of touches; inf without contacts. Reads the contacts twice. listed is
    empty if there is no choice; left_out are numbers of those not listed.
    """
    selected = passes.selected
    contacts = passes.selected.contacts
    bins = TimeBins(selected.frame_count, MAX_SUBSET_BINS)
    world_rows, shape_rows = worlds_and_shapes_with_rows(selected)
    worlds, more_worlds = _deepest(_present(world_order, world_rows), MAX_WORLDS)
    check_body_rows(contacts)
    owners = pair_keys(contacts, "bodies")
    owner_of = owners.number[: len(contacts.shapes)]
    owner_order = _owner_order(passes, pairs, owner_of, len(owners.paths))
    owner_rows = np.bincount(owner_of[shape_rows], minlength=len(owners.paths)) > 0
    bodies, more_bodies = _deepest(_present(owner_order, owner_rows), MAX_BODIES)
    parts = [
        *_world_subsets(selected, worlds, demonstrations, bins),
        *_owner_subsets(contacts, bodies, owners, bins),
    ]
    _add_touches(passes, parts, bins)
    listed = _listed(passes, parts, bins.of)
    groups = group_sums(selected, [(subset.world, subset.shapes) for subset in parts], bins.of)
    return {
        **bins.axis(contacts.time),
        "left_out": {"worlds": more_worlds, "bodies": more_bodies},
        "listed": [
            {**subset, "groups": of_groups}
            for subset, of_groups in zip(listed, groups, strict=True)
        ],
    }


def _world_subsets(
    selected: SelectedContacts, worlds: Sequence[int], demonstrations: list[str], bins: TimeBins
) -> Iterator[_Subset]:
    """Empty sums of single worlds. worlds: positions among the selected ones."""
    for place in worlds:
        world = int(selected.worlds[place])
        name = demonstrations[world] if demonstrations else f"world {world}"
        yield _Subset.empty("world", name, world, place, None, bins)


def _owner_subsets(
    contacts: ContactSet, chosen: Sequence[int], owners: PairKeys, bins: TimeBins
) -> Iterator[_Subset]:
    """Empty sums of single bodies and static shapes. chosen: numbers of `owners`."""
    owner_of = owners.number[: len(contacts.shapes)]
    for owner in chosen:
        kind = owners.kinds[owner]
        mine = owner_of == owner
        row = contacts.shapes.body[mine].max() if kind == "body" else np.argmax(mine)
        yield _Subset.empty(kind, owners.paths[owner], int(row), -1, mine, bins)


def _add_touches(passes: Passes, parts: Sequence[_Subset], bins: TimeBins) -> None:
    """Adds the touches of one pass over the contacts to the sums of each subset."""
    selected = passes.selected
    shape_count = len(selected.contacts.shapes)
    names = shape_names(selected.contacts)
    for touches in map(touches_of, passes.blocks() if parts else ()):
        for subset in parts:
            mine = subset.rows(touches, selected.world_count).named(names)
            at = bins.of[mine.cell // selected.world_count]
            np.add.at(subset.contacts, at, mine.contact_count)
            np.minimum.at(subset.least, at, mine.distance)
            subset.pairs = subset.pairs.joined(PairTotals.of(mine, shape_count))


def _owner_order(
    passes: Passes, pairs: PairTotals, owner_of: np.ndarray, owner_count: int
) -> np.ndarray:
    """float64[owners]: the least distance of each body or static shape, or minus the number of
    touches of its pair with most, see `subsets`."""
    order = np.full(owner_count, np.inf)
    of_pairs = -pairs.touches.astype(float) if passes.has_unknown_distances else pairs.least
    for shape in np.divmod(pairs.key, len(passes.selected.contacts.shapes)):
        np.minimum.at(order, owner_of[shape], of_pairs)
    return order


def closest_cell(
    selected: SelectedContacts, pairs: PairTotals, row: int, names: Sequence[str] = ()
) -> dict[str, Any]:
    """A pair, its least distance, None if it is not known, and the frame and world of it. names: of
    the items of the keys, () of the shapes."""
    contacts = selected.contacts
    text = names or shape_names(selected.contacts).text
    frame, world = divmod(int(pairs.at[row]), selected.world_count)
    shape0, shape1 = divmod(int(pairs.key[row]), len(text))
    return {
        "shape0": text[shape0],
        "shape1": text[shape1],
        "distance": None if pairs.least[row] == UNKNOWN_DISTANCE else float(pairs.least[row]),
        "frame": frame,
        "world": int(selected.worlds[world]),
        "episode": ""
        if contacts.episodes is None
        else contacts.episodes.name_at(int(selected.worlds[world]), frame),
        "time": float(contacts.time[frame]),
    }


def _deepest(least: np.ndarray, most: int) -> tuple[list[int], int]:
    """The rows with the least distances, ascending, and the number of other rows with contacts;
    none if one is all."""
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
    shape_count = len(selected.contacts.shapes)
    names = shape_names(selected.contacts)
    deepest = [np.sort(subset.pairs.deepest_order()[:MAX_SUBSET_PAIRS]) for subset in found]
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
        order = subset.pairs.take(rows).deepest_order().tolist()
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
                        "depth": pairs.depths[n].tolist(),
                    }
                    for n in order
                ],
            }
        )
    return listed
