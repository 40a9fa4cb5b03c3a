"""Whatever is done to a contact set, the comparison finds that and nothing else."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collidecli.commands.diff import DiffRequest, diff
from tests.support.contact_edits import Edited, made_up

quick = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FLOATS = ("distance", "point0", "point1", "offset0", "offset1")


def compared(a: Edited, b: Edited, packed: int = 0, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [one.write(Path(folder) / name, packed=packed) for one, name in ((a, "a.h5"), (b, "b.h5"))]
        return diff(DiffRequest(*paths, first=10_000, **options)).as_dict()


def named(edited: Edited, rows: list[int]) -> Counter:
    """Contacts as the result name them, whichever of the two shapes comes first."""
    found = []
    for row in rows:
        frame, world = divmod(int(edited.cell[row]), edited.worlds)
        pair = frozenset(edited.path[edited.columns[name][row]] for name in ("shape0", "shape1"))
        found.append((frame, world, pair))
    return Counter(found)


def told(result: dict[str, Any], kind: str) -> Counter:
    return Counter(
        (one["frame_a"], one["world"], frozenset((one["shape0"], one["shape1"])))
        for one in result["differences"]
        if one["kind"] == kind
    )


@st.composite
def edits(draw) -> tuple[Edited, Edited, list[int], list[int]]:
    """A set, the set edited, the rows that were moved, and those that were dropped, in pairs of their own."""
    a = made_up(frames=4, contacts_per_cell=draw(st.integers(1, 8)), seed=draw(st.integers(0, 1000)))
    rows = list(range(len(a.cell)))
    chosen = draw(st.lists(st.sampled_from(rows), unique=True, max_size=6)) if rows else []
    cut = draw(st.integers(0, len(chosen)))
    moved, dropped = chosen[:cut], chosen[cut:]
    b = a.copy()
    for row in moved:
        name = draw(st.sampled_from(FLOATS))
        b.columns[name][row] += np.float32(draw(st.sampled_from([1e-4, 1e-2, 1.0])))
    b = b.rows(~np.isin(np.arange(len(a.cell)), dropped))
    order = draw(st.permutations(range(len(a.path))))
    return a, b.with_shape_order(list(order)), moved, dropped


@given(edits())
@quick
def test_what_was_done_is_what_is_found(case):
    a, b, moved, dropped = case
    result = compared(a, b)
    assert told(result, "changed") == named(a, moved)
    assert told(result, "missing") == named(a, dropped)
    assert told(result, "extra") == Counter()
    assert result["model"]["differences"] == 0
    cells = [int(a.cell[row]) for row in moved + dropped]
    if cells:
        assert result["first"]["frame_a"] * a.worlds + result["first"]["world"] == min(cells)
    else:
        assert (result["equal"], result["first"]) == (True, None)


@given(edits())
@quick
def test_the_other_way_round_only_the_names_change(case):
    a, b, _, _ = case
    there, back = compared(a, b), compared(b, a)
    for kind, other in (("missing", "extra"), ("extra", "missing"), ("changed", "changed")):
        assert told(there, kind) == told(back, other)
    for one, other in zip(there["fields"], back["fields"], strict=True):
        if one["name"] == "normal":  # a point0 there is a point1 where the shapes are in another order
            assert (one["changed"], one["largest"]) == (other["changed"], other["largest"])
    assert there["contacts"]["missing_pairs"] == back["contacts"]["extra_pairs"]


@given(st.integers(0, 1000), st.integers(0, 12), st.integers(1, 20))
@quick
def test_a_set_is_equal_to_itself_in_blocks_of_any_size(seed, contacts, block_rows):
    a = made_up(contacts_per_cell=contacts, seed=seed)
    result = compared(a, a, block_rows=block_rows)
    assert (result["equal"], result["contacts"]["matched"]) == (True, len(a.cell))


@given(edits(), st.integers(1, 20), st.integers(0, 9))
@quick
def test_neither_blocks_nor_chunks_show(case, block_rows, packed):
    """Chunks whose bytes are the same in both files are not unpacked, or once for both."""
    a, b, _, _ = case
    whole, blocks = compared(a, b), compared(a, b, packed, block_rows=block_rows)
    for result in (whole, blocks):
        del result["a"], result["b"]
    assert whole == blocks
