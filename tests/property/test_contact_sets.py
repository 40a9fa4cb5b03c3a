"""Tracking, events, comparison and merging of contact sets against plain loops."""

import json
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import collidecli
from collidecli.analysis.contact_tracking import _nearest_first
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.touch_intervals import MergeGap
from collidecli.errors import InputError
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock, groups_of_cells
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.verbs.check.check import check
from collidecli.verbs.diff.diff import DiffRequest, diff
from collidecli.verbs.events.events import EventsRequest, events
from collidecli.verbs.merge import merge as merge_module
from collidecli.verbs.merge.merge import MergeRequest, merge
from tests.support.contact_sets import (
    ATTRIBUTES,
    OF_CELLS,
    Edited,
    Touch,
    block_with_groups,
    intervals,
    made_up,
    ordered,
    small_model,
    touching_set,
)
from tests.support.engine_runs import assert_identical
from tests.support.meshes import grid
from tests.support.oracle import rotation_of

FRAMES = 12
STICK = 0.02
MARGIN = 0.004


def scene(world_count: int = 1) -> Model:
    """A bumpy floor; a box, a ball and a can that move."""
    config = ShapeConfig(gap=0.02, margin=MARGIN / 2)
    builder = ModelBuilder()
    builder.add_shape_mesh(
        -1, *grid(12, 2.0, lambda x, y: 0.02 * np.sin(5.0 * x + 2.0 * y)), cfg=config
    )
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1, cfg=config)
    builder.add_shape_sphere(builder.add_body(), radius=0.2, cfg=config)
    builder.add_shape_cylinder(builder.add_body(), radius=0.15, half_height=0.2, cfg=config)
    return builder.finalize(world_count=world_count)


def motion() -> np.ndarray:
    """float64[FRAMES, 1, 3, 7]: slow slides and turns near the floor, the box and the can into each
    other."""
    time = np.arange(FRAMES)
    angle = np.stack([0.02 * time, 0.03 * time, 0.05 * time], axis=1)
    body_q = np.zeros((FRAMES, 1, 3, 7))
    body_q[:, 0, :, 0] = np.array([-0.2, 0.6, 0.2]) + np.stack(
        [0.006 * time, 0.01 * time, -0.004 * time], axis=1
    )
    body_q[:, 0, :, 1] = [0.1, -0.5, 0.1]
    body_q[:, 0, :, 2] = [0.1, 0.19, 0.19]
    axis = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
    body_q[:, 0, :, 3:6] = np.sin(angle / 2)[..., None] * axis
    body_q[:, 0, :, 6] = np.cos(angle / 2)
    return body_q


def rows(contacts: Contacts, frame: int) -> list[dict[str, Any]]:
    """A frame's contacts, the points in float64."""
    cell = contacts.cell(frame)
    names = ("shape0", "shape1", "feature0", "feature1", "normal", "point0", "point1")
    return [
        {name: getattr(cell, name)[row] for name in names}
        for row in range(cell.rigid_contact_count)
    ]


def followed(
    model: Model, body_q: np.ndarray, contacts: Contacts, stick: float
) -> tuple[list[int], np.ndarray]:
    """Ids and, at both ends, points of all contacts: what the documents say, said by loops.
    contacts: as found."""
    ids: list[int] = []
    points: list[np.ndarray] = []
    before: list[dict[str, Any]] = []
    new = 0
    for frame in range(len(body_q)):

        def pose(shape: int, frame: int = frame) -> tuple[np.ndarray, np.ndarray]:
            body = model.shapes.body[shape]
            if body < 0:
                return np.eye(3), np.zeros(3)
            return rotation_of(body_q[frame, 0, body][None])[0], body_q[frame, 0, body, :3]

        def carried(row: dict[str, Any], pose=pose) -> np.ndarray:
            ends = [pose(row[f"shape{k}"]) for k in (0, 1)]
            return sum(r @ row["kept"][k] + t for k, (r, t) in enumerate(ends)) / 2

        def middle(row: dict[str, Any]) -> np.ndarray:
            return (row["point0"] + row["point1"]) / 2

        now = rows(contacts, frame)
        keys = ("shape0", "shape1", "feature0", "feature1")
        known = {tuple(other[k] for k in keys): j for j, other in enumerate(before)}
        named = [tuple(row[k] for k in keys) for row in now]
        match = {i: known[name] for i, name in enumerate(named) if name in known}
        ways = sorted(
            (np.linalg.norm(middle(row) - carried(other)), i, j)
            for i, row in enumerate(now)
            for j, other in enumerate(before)
            if i not in match
            and j not in match.values()
            and all(row[k] == other[k] for k in keys[:2])
        )
        for way, i, j in ways:
            if stick and way <= stick and i not in match and j not in match.values():
                match[i] = j
        for i, row in enumerate(now):
            row["id"] = before[match[i]]["id"] if i in match else new
            new += i not in match
            shift = np.zeros(3)
            if stick and i in match:
                n = row["normal"].astype(np.float64)
                shift = carried(before[match[i]]) - middle(row)
                shift = shift - n * (n @ shift) / (n @ n)
                if np.linalg.norm(shift) > stick:
                    shift = np.zeros(3)
            row["point0"] = row["point0"] + shift
            row["point1"] = row["point1"] + shift
            row["kept"] = [
                r.T @ (row[f"point{k}"] - t)
                for k, (r, t) in enumerate(map(pose, (row["shape0"], row["shape1"])))
            ]
            ids.append(row["id"])
            points.append(np.concatenate([row["point0"], row["point1"]]))
        before = now
    return ids, np.array(points)


@pytest.fixture(scope="module")
def found() -> Contacts:
    contacts = collidecli.collide(scene(), motion())
    assert contacts.rigid_contact_count > 100
    return contacts


@pytest.fixture(scope="module")
def sticky() -> Contacts:
    return collidecli.collide(scene(), motion(), sticky_contacts=STICK)


def test_ids_alone_change_nothing_else(found):
    contacts = collidecli.collide(scene(), motion(), contact_ids=True)
    ids = contacts.columns["contact_id"]
    assert ids.dtype == np.int64
    assert ids.tolist() == followed(scene(), motion(), found, 0.0)[0]
    assert 10 < len(set(ids.tolist())) < len(ids) / 2
    contacts.columns.pop("contact_id")
    assert_identical(contacts, found)


def test_sticky_contacts_are_those_of_the_loops(found, sticky):
    ids, points = followed(scene(), motion(), found, STICK)
    assert sticky.columns["contact_id"].tolist() == ids
    # Offsets, which say where a contact was on its body, are float32.
    np.testing.assert_allclose(
        np.concatenate([sticky.point0, sticky.point1], axis=1), points, atol=2e-6
    )
    moved = np.linalg.norm(sticky.point0 - found.point0, axis=1)
    assert 0.2 < (moved > 1e-4).mean() < 1.0
    assert len(set(ids)) < len(set(followed(scene(), motion(), found, 0.0)[0]))


def test_what_sticks_moves_along_its_surface_alone(found, sticky):
    for name in ("shape0", "shape1", "distance", "normal", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(sticky, name), getattr(found, name))
    way = sticky.point0 - found.point0
    assert np.linalg.norm(way, axis=1).max() <= STICK + 1e-12
    np.testing.assert_allclose((way * found.normal).sum(axis=1), 0.0, atol=1e-9)
    apart = ((sticky.point1 - sticky.point0) * sticky.normal).sum(axis=1)
    np.testing.assert_allclose(apart, sticky.distance + MARGIN, atol=1e-7)
    model = scene()
    body_q = motion()
    frame = np.repeat(np.arange(FRAMES), np.diff(sticky.cell_start))
    for side in "01":
        body = model.shapes.body[getattr(sticky, f"shape{side}")]
        pose = body_q[frame, 0, np.maximum(body, 0)]
        world = (
            np.einsum("nij,nj->ni", rotation_of(pose), getattr(sticky, f"offset{side}"))
            + pose[:, :3]
        )
        point = getattr(sticky, f"point{side}")
        world = np.where((body < 0)[:, None], getattr(sticky, f"offset{side}"), world)
        np.testing.assert_allclose(world, point, atol=1e-6)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "options", [{"chunk_cells": 1}, {"chunk_cells": 5, "threads": 3}, {"broad_phase": "sap"}]
)
def test_one_answer(sticky, options):
    assert_identical(
        collidecli.collide(scene(), motion(), sticky_contacts=STICK, **options), sticky
    )


def test_every_world_is_the_first(sticky):
    contacts = collidecli.collide(
        scene(world_count=3), motion(), sticky_contacts=STICK, chunk_cells=4
    )
    for frame in range(FRAMES):
        for world in range(3):
            assert_identical(contacts.cell(frame, world), sticky.cell(frame))


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_are_matched_first(seed):
    rng = np.random.default_rng(seed)
    # A lattice, so that many ways are equal.
    here, there = (
        rng.integers(0, 4, (int(rng.integers(1, 20)), 3)).astype(float) for _ in range(2)
    )
    matched: dict[int, int] = {}
    for way, i, j in sorted(
        (np.linalg.norm(p - q), i, j) for i, p in enumerate(here) for j, q in enumerate(there)
    ):
        if way <= 2.0 and i not in matched and j not in matched.values():
            matched[i] = j
    assert dict(_nearest_first(here, there, 2.0)) == matched


def test_a_distance_is_a_length():
    with pytest.raises(InputError, match="sticky_contacts"):
        collidecli.collide(scene(), motion(), sticky_contacts=-1.0)


# Whatever is done to a contact set, the comparison finds that and nothing else.

quick = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FLOATS = ("distance", "point0", "point1", "offset0", "offset1")


def compared(a: Edited, b: Edited, packed: int = 0, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            one.write(Path(folder) / name, packed=packed)
            for one, name in ((a, "a.h5"), (b, "b.h5"))
        ]
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
    """A set, the set edited, the rows that were moved, and those that were dropped, in pairs of
    their own."""
    a = made_up(
        frames=4, contacts_per_cell=draw(st.integers(0, 8)), seed=draw(st.integers(0, 1000))
    )
    rows = list(range(len(a.cell)))
    chosen = draw(st.lists(st.sampled_from(rows), unique=True, max_size=6)) if rows else []
    cut = draw(st.integers(0, len(chosen)))
    moved = chosen[:cut]
    dropped = chosen[cut:]
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
    assert result["contacts"]["matched"] == len(b.cell)
    cells = [int(a.cell[row]) for row in moved + dropped]
    if cells:
        assert result["first"]["frame_a"] * a.worlds + result["first"]["world"] == min(cells)
    else:
        assert (result["equal"], result["first"]) == (True, None)


@given(edits())
@quick
def test_the_other_way_round_only_the_names_change(case):
    a, b, _, _ = case
    there = compared(a, b)
    back = compared(b, a)
    for kind, other in (("missing", "extra"), ("extra", "missing"), ("changed", "changed")):
        assert told(there, kind) == told(back, other)
    for one, other in zip(there["fields"], back["fields"], strict=True):
        # a point0 there is a point1 where the shapes are in another order
        if one["name"] == "normal":
            assert (one["changed"], one["largest"]) == (other["changed"], other["largest"])
    assert there["contacts"]["missing_pairs"] == back["contacts"]["extra_pairs"]


@given(edits(), st.integers(1, 20), st.integers(0, 9))
@quick
def test_neither_blocks_nor_chunks_show(case, block_rows, packed):
    """Chunks whose bytes are the same in both files are not unpacked, or once for both."""
    a, b, _, _ = case
    whole = compared(a, b)
    blocks = compared(a, b, packed, block_rows=block_rows)
    for result in (whole, blocks):
        del result["a"], result["b"]
    assert whole == blocks


# Intervals of random touches against plain Python: blocks, worlds, frames, pauses, bodies.

quick_events = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
PAIRS = [(0, 1), (0, 2), (1, 2), (1, 4), (3, 4)]
SHAPES = ("ground", "ball", "bøx", "pin", "egg")
EVERY = 10**9


@st.composite
def patterns(draw) -> tuple[list[Touch], int, int]:
    """Touches, frames and worlds: pairs that flicker; some cells have several contacts of a pair,
    some only apart."""
    frames = draw(st.integers(1, 12))
    worlds = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    density = draw(st.sampled_from([0.1, 0.5, 0.9]))
    rows = []
    for frame in range(frames):
        for world in range(worlds):
            for one, other in PAIRS:
                if rng.random() < density:
                    # Few values, so that several frames are equally deep, and some contacts are in
                    # the gap.
                    distances = rng.choice([-0.02, -0.01, 0.0, 0.03], rng.integers(1, 4))
                    rows += [
                        Touch(frame, world, one, other, float(distance)) for distance in distances
                    ]
    return rows, frames, worlds


def intervals_of(
    pattern: tuple[list[Touch], int, int], time: Any = None, **options: Any
) -> dict[str, Any]:
    """Shapes 1 and 2 are of one body."""
    edited = replace(touching_set(*pattern, time), body=np.array([-1, 0, 0, 2, 3]))
    with tempfile.TemporaryDirectory() as folder:
        path = edited.write(Path(folder) / "a.h5")
        return events(
            EventsRequest(path, EventOptions(**options), first=EVERY, graph=True)
        ).as_dict()


@given(patterns(), st.integers(0, 3), st.sampled_from([-0.015, 0.0, 0.03]), st.integers(1, 30))
@quick_events
def test_intervals_are_those_of_plain_python(pattern, gap, threshold, block_rows):
    rows, frames, _ = pattern
    options = {"threshold": threshold, "merge_gap": MergeGap(gap), "block_rows": block_rows}
    result = intervals_of(pattern, **options)
    time = [0.25 * frame for frame in range(frames)]
    expected = intervals(
        rows,
        range(frames),
        time,
        lambda last, next: next - last - 1 <= gap,
        SHAPES.__getitem__,
        threshold,
    )
    assert ordered(result["listed"]) == expected
    assert result["intervals"]["count"] == len(expected)
    assert result["intervals"]["begins"] == sum(one["begin_known"] for one in expected)
    assert result["intervals"]["ends"] == sum(one["end_known"] for one in expected)
    assert result["contacts"] == {
        "asked_for": len(rows),
        "touching": sum(one["contacts"] for one in expected),
    }


@given(
    patterns(),
    st.integers(0, 8),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(1, 30),
    st.integers(0, 2),
)
@quick_events
def test_intervals_of_some_frames_with_a_pause_in_seconds(
    pattern, quarter_seconds, start, step, block_rows, at
):
    rows, frames, worlds = pattern
    world = at % worlds
    start = min(start, frames - 1)
    picked = range(frames)[start::step]
    # Uneven times, two of them equal; all are sums of powers of two, so that no difference is
    # rounded.
    time = np.cumsum([0.0, *([0.25, 0.0, 1.0, 0.5] * 3)])[:frames].tolist()
    limit = 0.25 * quarter_seconds
    options = {
        "merge_gap": MergeGap(seconds=limit),
        "frames": f"{start}::{step}",
        "block_rows": block_rows,
    }
    result = intervals_of(pattern, time, worlds=(world,), **options)
    rows = [row for row in rows if row.world == world]

    def continues(last: int, following: int) -> bool:
        return following == last + 1 or time[picked[following]] - time[picked[last]] <= limit

    assert ordered(result["listed"]) == intervals(rows, picked, time, continues, SHAPES.__getitem__)


@given(patterns(), st.integers(0, 2), st.integers(1, 30))
@quick_events
def test_the_graph_adds_up_the_intervals_of_bodies(pattern, gap, block_rows):
    """The pairs of the shapes of one body with others become one."""
    rows, frames, _ = pattern
    result = intervals_of(pattern, by="bodies", merge_gap=MergeGap(gap), block_rows=block_rows)
    names = ("ground", "body0", "body0", "body2", "body3")
    time = [0.25 * frame for frame in range(frames)]
    expected = intervals(
        rows, range(frames), time, lambda last, next: next - last - 1 <= gap, names.__getitem__
    )
    assert ordered(result["listed"]) == expected
    for edge in result["graph"]["edges"]:
        of = [
            one for one in expected if one["pair"] == tuple(sorted((edge["body0"], edge["body1"])))
        ]
        assert (edge["intervals"], edge["contacts"]) == (
            len(of),
            sum(one["contacts"] for one in of),
        )
        assert edge["touching_frames"] == sum(one["touching_frames"] for one in of)
        assert edge["seconds"] == sum(one["seconds"] for one in of)  # quarters: sums are exact
        assert edge["worlds"] == len({one["world"] for one in of})
        assert edge["least_distance"] == min(one["least_distance"] for one in of)
        assert edge["unknown_ends"] == sum(
            not (one["begin_known"] and one["end_known"]) for one in of
        )
    assert len(result["graph"]["edges"]) == len({one["pair"] for one in expected})


# collide merge: however a set is parted, its parts make it again, to the bit of its content hash.

MERGED_FRAMES = 9
WORLDS = 4
STEP = 5


@cache
def every_contact() -> ContactBlock:
    return block_with_groups(small_model(WORLDS), MERGED_FRAMES)


def write_part(
    path: Path,
    frames: list[int],
    worlds: list[int],
    config: dict | None = None,
    recording: str = "cd" * 32,
) -> str:
    """Some frames and worlds of one made-up set, as a run of them alone would write it."""
    block = every_contact()
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    cells = [frame * WORLDS + world for frame in frames for world in worlds]
    rows = np.concatenate(
        [np.arange(start[cell], start[cell + 1]) for cell in cells] or [np.zeros(0, np.intp)]
    )
    columns = {name: values[rows] for name, values in block.columns.items()}
    groups = groups_of_cells(block.groups, np.array(cells, np.intp))
    part = ContactBlock(0, block.cell_counts[cells], columns, groups)
    attributes = {
        **ATTRIBUTES,
        "trajectory_sha256": recording,
        "config": json.dumps(config or {"gap": 0.1}),
    }
    at = np.array(frames)
    times = at * 0.01, at * STEP, np.dtype(np.float64), attributes
    with ContactWriter(
        path, small_model(len(worlds)), len(frames), *times, force=True, groups=OF_CELLS
    ) as writer:
        writer.append(part)
        writer.end_contacts()
        writer.write_timing(
            {
                "wall_seconds": 0.5,
                "contact_count": part.contact_count,
                "device": f"d{frames[0] % 2}",
            }
        )
        writer.finish()
        return writer.content_sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("merge")


@pytest.fixture(scope="module")
def whole(folder) -> str:
    return write_part(folder / "whole.h5", list(range(MERGED_FRAMES)), list(range(WORLDS)))


SLOW = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def merged_in_blocks(rows: int, request: MergeRequest) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_module.merged_blocks, "__defaults__", (rows,))
        return merge(request).as_dict()


@SLOW
@given(
    owner=st.lists(st.integers(0, 2), min_size=MERGED_FRAMES, max_size=MERGED_FRAMES),
    rows=st.sampled_from([1, 40, 10**6]),
)
def test_frames_parted_in_any_way(folder, whole, owner, rows):
    """Slices, every second frame, anything: in whatever order the parts are given."""
    parts = [[f for f in range(MERGED_FRAMES) if owner[f] == k] for k in (2, 0, 1)]
    names = []
    for k, frames in enumerate(parts):
        if frames:
            names.append(str(folder / f"f{k}.h5"))
            write_part(Path(names[-1]), frames, list(range(WORLDS)), config={"frames": f"part {k}"})
    if len(names) > 1:
        result = merged_in_blocks(rows, MergeRequest(names, str(folder / "out.h5"), force=True))
        assert result["content_sha256"] == whole
        assert (result["frames"], result["worlds"]) == (MERGED_FRAMES, WORLDS)


@SLOW
@given(
    cut=st.lists(st.integers(1, WORLDS - 1), min_size=1, max_size=2, unique=True),
    rows=st.sampled_from([1, 10**6]),
)
def test_worlds_parted_in_any_way(folder, whole, cut, rows):
    names = []
    for k, worlds in enumerate(np.split(np.arange(WORLDS), sorted(cut))):
        names.append(str(folder / f"w{k}.h5"))
        write_part(
            Path(names[-1]), list(range(MERGED_FRAMES)), worlds.tolist(), recording=f"a{k}" * 32
        )
    result = merged_in_blocks(
        rows, MergeRequest(names, str(folder / "out.h5"), worlds=True, force=True)
    )
    assert result["content_sha256"] == whole


def test_a_merged_set_says_where_it_is_from(folder, whole):
    for name, frames in (("a", range(4)), ("b", range(4, MERGED_FRAMES))):
        write_part(
            folder / f"{name}.h5",
            list(frames),
            list(range(WORLDS)),
            config={"frames": name, "gap": 0.1},
        )
    merge(
        MergeRequest(
            [str(folder / f"{name}.h5") for name in "ba"], str(folder / "ab.h5"), force=True
        )
    )
    assert check(folder / "ab.h5").findings == []
    with ContactSet.open(folder / "ab.h5") as merged:
        assert merged.content_sha256 == whole
        assert merged.config == {"frames": "a, b", "gap": 0.1}
        assert merged.trajectory_sha256 == "cd" * 32
        timing = {
            "wall_seconds": 1.0,
            "contact_count": merged.contact_count,
            "device": "d0",
            "merged_runs": 2,
        }
        assert {name: merged.file["timing"].attrs[name] for name in timing} == timing
