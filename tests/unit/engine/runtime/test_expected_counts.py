"""Numbers that a device's chunk expects from the last one with colliders of sub-pairs, pairs that
touch, and particles: one wait, the bits of the CPU, and chunks that are computed again."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine.candidate_rows import CANDIDATE_ROWS, end_cells
from collidecli.engine.contact_record import Candidates
from collidecli.engine.narrowphase.collider import Bucket
from collidecli.engine.narrowphase.sub_pairs import FEW, copy_sub_pairs
from collidecli.engine.narrowphase.touch_sub_pairs import list_undecided
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import chunk_counts, device_stream, recorded_launches
from collidecli.engine.runtime.chunk_counts import ChunkCounts, CountsExceeded
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.engine.touching_pairs import TOUCH_ROWS, mark_touching
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import REDUCED, SCENES
from tests.support.engine_runs import mixed_builder, pipeline_of, random_poses
from tests.unit.engine.runtime.test_chunk_counts import (  # noqa: F401
    STEP,
    Guards,
    as_device,
    assert_equal_blocks,
    blocks_of,
    exceeded,
    forget_arrays,
)

pytestmark = pytest.mark.rest

SPREADS = (2.0, 0.4, 0.5, 4.0, 0.4)
"""Of each chunk: the second has several times the sub-pairs of the first."""
OPTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "reduced": vars(REDUCED),
    "limited": {"max_contacts_per_pair": 2},
    "touch": {"touch_only": True},
    "candidates": {"candidates_only": True},
}


@dataclass(frozen=True)
class Motion:
    """A model in motion, STEP frames for each of SPREADS. poses: float64[F, 1, B, 7]. positions:
    float64[F, 1, P, 3] of particles, or None."""

    model: Model
    options: ContactOptions
    poses: np.ndarray
    positions: np.ndarray | None

    def pipeline(self, phase: str) -> CollisionPipeline:
        """The pipeline with a broad phase."""
        return pipeline_of(self.model, self.poses, self.options, broad_phase=phase)


def motion_of(kind: str, name: str) -> Motion:
    """A scene of `device_scenes` in one world, with options by name."""
    options = ContactOptions(**OPTIONS[name])
    if kind == "primitives":
        model = mixed_builder(0, 14).finalize()
    else:
        scene = SCENES[kind](options)
        model, options = scene.model, scene.options
    rng = np.random.default_rng(5)
    counts = STEP, 1, len(model.bodies)
    poses = np.concatenate([random_poses(rng, counts, spread) for spread in SPREADS])
    positions = None
    if len(model.particles):
        rest = model.particles.position
        noise = rng.normal(size=(len(poses), 1, *rest.shape))
        positions = np.repeat(SPREADS, STEP)[:, None, None, None] * (rest + 0.1 * noise)
    return Motion(model, options, poses, positions)


MESHES = ("meshes", "heightfields", "terrains", "fields")
PARTICLES = ("particles", "elements")
CASES = [
    *((kind, name, "explicit") for kind in MESHES for name in OPTIONS if name != "candidates"),
    *(
        ("primitives", name, phase)
        for name in ("touch", "candidates")
        for phase in ("explicit", "nxn", "sap")
    ),
    *((kind, "all", phase) for kind in MESHES for phase in ("nxn", "sap")),
    *((kind, "all", phase) for kind in PARTICLES for phase in ("explicit", "nxn", "sap")),
    *(("hydroelastic", "all", phase) for phase in ("explicit", "nxn", "sap")),
    ("hydroelastic", "reduced", "explicit"),
]


@pytest.mark.parametrize(("kind", "name", "phase"), CASES)
def test_a_chunk_with_more_than_expected_is_computed_again(
    exceeded,  # noqa: F811
    monkeypatch,
    kind,
    name,
    phase,
):
    """With the bits of the CPU, and no array is left meanwhile."""
    motion = motion_of(kind, name)
    reference = blocks_of(motion.pipeline(phase), motion.poses, positions=motion.positions)
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    monkeypatch.setattr(chunk_counts, "SPARE", 0)
    guards = Guards(monkeypatch)
    pipeline = motion.pipeline(phase)
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    assert_equal_blocks(blocks_of(pipeline, motion.poses, scratch, motion.positions), reference)
    assert sum(exceeded.values()) >= 1
    guards.assert_untouched()


NAMES = [
    ("primitives", "touch", "touching"),
    ("primitives", "candidates", "candidate_bucket"),
    ("primitives", "candidates", "listed_candidate"),
    ("meshes", "all", "candidate_bucket"),
    ("meshes", "all", "mesh_mesh_sub_pair"),
    ("meshes", "all", "mesh_mesh_row"),
    ("meshes", "all", "convex_triangles_sub_pair"),
    ("meshes", "touch", "hull_triangles_touch_listed_sub_pair"),
    ("meshes", "touch", "mesh_mesh_touch_undecided"),
    ("meshes", "touch", "mesh_mesh_touch_row"),
    ("heightfields", "all", "mesh_heightfield_sub_pair"),
    ("heightfields", "all", "mesh_heightfield_row"),
    ("heightfields", "all", "hull_field_sub_pair"),
    ("terrains", "all", "heightfields_sub_pair"),
    ("terrains", "all", "heightfields_row"),
    ("terrains", "all", "plane_heightfield_sub_pair"),
    ("fields", "all", "sdf_sub_pair"),
    ("fields", "reduced", "contact"),
    ("particles", "all", "soft_contacts_pair"),
    ("particles", "all", "soft_contacts_row"),
    ("elements", "all", "soft_contacts_row"),
    ("particles", "all", "self_contacts_pair"),
    ("hydroelastic", "all", "hydro_candidate_bucket"),
    ("hydroelastic", "all", "hydro_face"),
    ("hydroelastic", "all", "hydro_cell"),
    ("hydroelastic", "all", "hydro_cell_pair"),
    ("hydroelastic", "all", "hydro_vertex"),
    ("hydroelastic", "all", "hydro_root"),
    ("hydroelastic", "all", "hydro_left_-1"),
    ("hydroelastic", "all", "hydro_left_1"),
    ("hydroelastic", "all", "hydro_final_1"),
    ("hydroelastic", "all", "hydro_child_0"),
    ("hydroelastic", "all", "hydro_face_1"),
    ("hydroelastic", "all", "hydro_vertex_1"),
]


@pytest.mark.parametrize(("kind", "options", "name"), NAMES)
def test_each_number_beyond_its_capacity_is_found(
    as_device,  # noqa: F811
    exceeded,  # noqa: F811
    monkeypatch,
    kind,
    options,
    name,
):
    """Of equal chunks each has exactly as many as the last: a capacity that is less by one is
    exceeded, and no array is left; an equal one is not."""
    for margin in ("SPARE", "MARGIN", "LEAST_MARGIN"):
        monkeypatch.setattr(chunk_counts, margin, 0)
    motion = motion_of(kind, options)
    pipeline = motion.pipeline("explicit")
    frames = np.tile(np.arange(STEP, 2 * STEP), 3)
    poses = motion.poses[frames]
    positions = None if motion.positions is None else motion.positions[frames]
    reference = blocks_of(pipeline, poses, positions=positions)
    assert sum(exceeded.values()) == 0
    plain = ChunkCounts.capacities
    taken: dict[str, np.ndarray] = {}

    def less(counts, of, spare_for_none):
        most = plain(counts, of, spare_for_none)
        if of == name:
            fewer = np.maximum(most - 1, 0)
            assert (fewer < most).any()
            most = counts._most[of] = taken.setdefault(of, fewer)
        return most

    monkeypatch.setattr(ChunkCounts, "capacities", less)
    guards = Guards(monkeypatch)
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    found = blocks_of(pipeline, poses, scratch, positions, forget_arrays)
    assert_equal_blocks(found, reference)
    assert exceeded == {name: 2}
    guards.assert_untouched()


CEILINGS = {
    ("primitives", "all"): (33, 7, 1, 1),
    ("primitives", "touch"): (32, 7, 1, 1),
    ("primitives", "candidates"): (14, 6, 1, 1),
    ("meshes", "all"): (60, 12, 1, 1),
    ("meshes", "touch"): (57, 15, 1, 1),
    ("heightfields", "all"): (68, 14, 1, 1),
    ("terrains", "all"): (33, 10, 1, 1),
    ("fields", "all"): (38, 10, 1, 1),
    ("particles", "all"): (46, 15, 5, 3),
    ("elements", "all"): (48, 15, 5, 3),
    ("hydroelastic", "all"): (264, 59, 1, 16),
    ("hydroelastic", "reduced"): (262, 60, 1, 15),
}
"""Launches; scans, fills and copies; uploads; downloads of an expected chunk with broad phase
`explicit`. The host waits once."""
READS = {
    "primitives": 4,
    "meshes": 16,
    "heightfields": 17,
    "terrains": 9,
    "fields": 10,
    "particles": 11,
    "elements": 11,
    "hydroelastic": 51,
}
"""Largest number of waits of the first chunk of a worker, each for a number that decides how much
memory the next step needs, and one for the results."""


@pytest.fixture
def issued(monkeypatch) -> list[str]:
    """What is issued to the device: "launch", or another function."""
    found: list[str] = []

    def counted(owner: Any, name: str) -> None:
        plain = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, **options: found.append(name) or plain(*given, **options)
        )

    for name in ("launch", "scan"):
        counted(recorded_launches.RecordedLaunches, name)
    for name in ("fill_", "zero_"):
        counted(wp.array, name)
    counted(wp.utils, "radix_sort_pairs")
    counted(wp, "copy")
    return found


@pytest.mark.parametrize(("kind", "name"), CEILINGS)
def test_a_chunk_waits_once(as_device, issued, kind, name):  # noqa: F811
    """Whatever its shapes and frames; the launches of undecided touches depend on whether there were
    any, those of voxels on how far they were divided."""
    motion = motion_of(kind, name)
    pipeline = motion.pipeline("explicit")
    found = []
    for first in (STEP, 4 * STEP):
        scratch = Workspace(pipeline.device_model.device, 1 << 40)
        frames = np.arange(first, first + STEP)
        poses = motion.poses[frames]
        positions = None if motion.positions is None else motion.positions[frames]
        waits = []
        for _ in range(3):
            issued.clear()
            traffic = scratch._stream.traffic = device_stream.Traffic()
            blocks_of(pipeline, poses, scratch, positions)
            waits.append(traffic.waits)
        assert waits[0] <= READS[kind]  # though all arrays are new,
        assert waits[1:] == [1, 1]  # and grow by the margins of the second chunk
        launches = issued.count("launch")
        others = len(issued) - launches
        found.append((launches, others, traffic.uploads, traffic.downloads))
    assert tuple(np.max(found, axis=0)) == CEILINGS[kind, name]
    differs = kind == "hydroelastic" or (kind, name) == ("meshes", "touch")
    assert len(set(found)) == (2 if differs else 1)


def test_colliders_compiled_on_demand_are_expected(as_device, exceeded):  # noqa: F811
    """Their kernels are loaded by the chunk that has the first candidates, which is computed
    again."""
    motion = motion_of("primitives", "all")
    pipeline = replace(motion.pipeline("explicit"), on_demand=True)
    reference = blocks_of(motion.pipeline("explicit"), motion.poses)
    scratch = Workspace(pipeline.device_model.device, 1 << 40)
    assert_equal_blocks(blocks_of(pipeline, motion.poses, scratch), reference)
    traffic = scratch._stream.traffic = device_stream.Traffic()
    blocks_of(pipeline, motion.poses[-STEP:], scratch)
    assert traffic.waits == 1
    assert sum(exceeded.values()) >= 1


@pytest.mark.parametrize("threads", [2, 3, 4, 5, 9])
def test_a_sum_beyond_32_bits_has_no_elements(as_device, threads):  # noqa: F811
    """Of five or nine threads the sum of 32 bits is positive again."""
    each = 1 << 30
    scratch = Workspace(find_device("cpu"), 1 << 40)
    counts = scratch.counts
    ends = scratch.array("ends", threads, wp.int32)
    for expected in (False, True):
        counts.begin(1, expected)
        ends.fill_(0)
        assert scratch.scanned("some", ends, threads, each).most <= chunk_counts.SPARE
        counts.complete(scratch.host(counts.found, counts.used))
        counts.keep()
    counts.begin(1, expected=True)
    ends.fill_(each)
    total = scratch.scanned("some", ends, threads, each)
    assert total.bound.numpy().tolist() == [0]
    assert ends.numpy()[:threads].tolist() == [0] * threads
    with pytest.raises(CountsExceeded, match="some"):
        counts.complete(scratch.host(counts.found, counts.used))
    counts.begin(1)
    ends.fill_(each)
    with pytest.raises(ChunkTooLarge):
        scratch.scanned("some", ends, threads, each)


def test_a_negative_number_bounds_nothing(as_device):  # noqa: F811
    """A sum beyond 32 bits whose threads are not checked: kernels compare a bound with 0."""
    scratch = Workspace(find_device("cpu"), 1 << 40)
    counts = scratch.counts
    ends = scratch.array("ends", 1, wp.int32)
    for value in (0, -5):
        counts.begin(1, expected=True)
        ends.fill_(value)
        bound = counts.of("some", ends, 1).bound
        found = scratch.host(counts.found, counts.used)
        if value == 0:
            counts.complete(found)
            counts.keep()
    assert bound.numpy().tolist() == [0]
    with pytest.raises(CountsExceeded, match="some"):
        counts.complete(found)


def ints(*values: int) -> wp.array:
    """int32 on the CPU."""
    return wp.array(np.array(values, np.int32), dtype=wp.int32, device="cpu")


def pairs(*values: tuple[int, int]) -> wp.array:
    """vec2i on the CPU."""
    return wp.array(np.array(values, np.int32), dtype=wp.vec2i, device="cpu")


@pytest.mark.parametrize(("candidates", "touches"), [(4, 4), (2, 2), (2, 0), (0, 0)])
def test_touches_beyond_a_bound_are_not_listed(candidates, touches):
    """What earlier chunks left behind the last candidate is no touch."""
    find_device("cpu")
    given = Candidates()
    given.row = pairs((1, 2), (3, 4), (5, 6), (7, 8))
    given.count = ints(1, 1, 1, 1)
    given.end = ints(1, 2, 3, 4)
    columns = TOUCH_ROWS.struct()
    columns.shape0 = ints(-1, -1, -1, -1)
    columns.shape1 = ints(-1, -1, -1, -1)
    arguments = [given, ints(candidates), ints(touches), columns]
    wp.launch(TOUCH_ROWS.kernel, 4, arguments, device="cpu")
    listed = candidates if touches else 0
    assert columns.shape0.numpy().tolist() == [1, 3, 5, 7][:listed] + [-1] * (4 - listed)
    assert columns.shape1.numpy().tolist() == [2, 4, 6, 8][:listed] + [-1] * (4 - listed)
    counts = ints(9, 9, 9, 9)
    wp.launch(mark_touching, 4, [ints(3, 0, 1, 2), ints(candidates), counts], device="cpu")
    assert counts.numpy().tolist() == [1, 0, 1, 1][:candidates] + [9] * (4 - candidates)


@pytest.mark.parametrize(("rows", "listed"), [(4, 4), (3, 3), (0, 3), (3, 0)])
def test_candidates_beyond_a_bound_are_not_listed(rows, listed):
    """Those of a bucket and those of the table have a capacity each. The cells have two parts."""
    find_device("cpu")
    columns = CANDIDATE_ROWS.struct()
    columns.shape0 = ints(-1, -1, -1, -1)
    columns.shape1 = ints(-1, -1, -1, -1)
    arguments = [pairs((1, 2), (3, 4), (5, 6), (7, 8)), ints(rows), ints(listed), columns]
    wp.launch(CANDIDATE_ROWS.kernel, 4, arguments, device="cpu")
    both = min(rows, listed)
    assert columns.shape0.numpy().tolist() == [1, 3, 5, 7][:both] + [-1] * (4 - both)
    assert columns.shape1.numpy().tolist() == [2, 4, 6, 8][:both] + [-1] * (4 - both)
    ends = ints(9, 9)
    wp.launch(end_cells, 2, [ints(1, 1, 2, 4), 2, ints(listed), ends], device="cpu")
    assert ends.numpy().tolist() == ([1, 4] if listed else [0, 0])


@pytest.mark.parametrize("bound", [0, 3])
def test_sub_pairs_are_not_copied_where_they_exceed_their_capacity(bound):
    find_device("cpu")
    few = pairs(*((thread, slot) for thread in range(2) for slot in range(int(FEW))))
    copied = pairs((-1, -1), (-1, -1), (-1, -1))
    most = ints(0)
    wp.launch(copy_sub_pairs, 2, [ints(1, 3), few, ints(bound), copied, most], device="cpu")
    expected = [[0, 0], [1, 0], [1, 1]] if bound else [[-1, -1]] * 3
    assert copied.numpy().tolist() == expected


@pytest.mark.parametrize("bound", [0, 2])
def test_undecided_pairs_are_not_listed_where_they_exceed_their_capacity(bound):
    find_device("cpu")
    bucket = Bucket()
    bucket.order = ints(9, 10, 11, 12, 13)
    bucket.start = ints(0, 1, 4)
    bucket.index = 1
    listed = ints(-1, -1)
    start = ints(-1, -1)
    arguments = [bucket, ints(1, 1, 2, 2), 4, ints(bound), listed, start]
    wp.launch(list_undecided, 4, arguments, device="cpu")
    assert listed.numpy().tolist() == ([10, 12] if bound else [-1, -1])
    assert start.numpy().tolist() == [0, bound]
