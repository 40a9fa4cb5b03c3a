"""What `diff` is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collidecli.storage.contact_sets.spans import BLOCK_ROWS


@dataclass(frozen=True)
class DiffRequest:
    """Two contact sets, what is compared and what is allowed. By default everything is compared and
    nothing allowed.

    atol, rtol: tolerances, texts "1e-6" or "FIELD=1e-6". fields: names of the compared columns;
    empty is all. renames: texts "OLD=NEW", prefixes of paths. include, exclude: patterns of paths
    of shapes and particle objects. ignore_shallow: missing and extra contacts within this distance
    of the gap are ignored [m]; -1 ignores none. A tolerance of the distance ignores those within it
    of the gap. max_missing, max_extra: allowed number of contacts, or of pairs with pairs_only.
    allow_fraction: allowed fraction of the contacts, for each of missing, extra and changed.
    match_frames: "", "step", "time" or "index". first: number of differences that are listed.
    scene_a, scene_b: file of the scene of each set, or a folder with it; "" searches beside the
    set. trajectory_a, trajectory_b: of its recording, found by its hash.
    """

    a: str
    b: str
    atol: Sequence[str] = ()
    rtol: Sequence[str] = ()
    fields: Sequence[str] = ()
    renames: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    ignore_shallow: float = -1.0
    max_missing: int = 0
    max_extra: int = 0
    allow_fraction: float = 0.0
    pairs_only: bool = False
    match_frames: str = ""
    first: int = 20
    block_rows: int = BLOCK_ROWS
    scene_a: str = ""
    scene_b: str = ""
    trajectory_a: str = ""
    trajectory_b: str = ""
