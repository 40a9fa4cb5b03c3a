"""Numbers of elements that a device's chunk expects from the last one: their capacities, and chunks
that are computed again."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.narrowphase.collider import Bucket, candidate_of
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import chunk_counts, device_stream
from collidecli.engine.runtime.chunk_counts import SPARE, ChunkCounts, CountsExceeded, ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import REDUCED
from tests.support.engine_runs import mixed_builder, pipeline_of, random_poses

COUNT = 24
STEP = 3
SPREADS = (3.0, 0.25, 0.3, 3.0, 0.2)
"""Of each chunk: the second has some ten times the candidates of the first."""
GUARD_BYTES = 4096
OPTIONS = {
    "all": ContactOptions(),
    "reduced": REDUCED,
    "limited": ContactOptions(max_contacts_per_pair=2),
}


class Guards:
    """Scratch arrays exactly as long as requested, between bytes that no kernel may change, as are
    those between the columns of a table."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._held: list[tuple[np.ndarray, int, int]] = []
        self._between: dict[str, tuple[wp.array, np.ndarray]] = {}
        packed = Workspace.packed_table

        def packed_table(workspace: Workspace, name: str, *arguments):
            self._assert_untouched_between(name)
            struct, arrays = packed(workspace, name, *arguments)
            self._guard_between(name, list(arrays.values()))
            return struct, arrays

        patch.setattr(Workspace, "_allocated", lambda *arguments: self.allocated(*arguments))
        patch.setattr(Workspace, "packed_table", packed_table)

    def allocated(self, workspace: Workspace, count: int, dtype, needed: int) -> wp.array:
        size = count * wp.types.type_size_in_bytes(dtype)
        block = np.full(size + 2 * GUARD_BYTES + 16, 0xCD, np.uint8)
        first = block.__array_interface__["data"][0]
        begin = GUARD_BYTES + (-first - GUARD_BYTES) % 16
        self._held.append((block, begin, size))
        return wp.array(ptr=first + begin, shape=count, dtype=dtype, device="cpu")

    def _guard_between(self, name: str, columns: list[wp.array]) -> None:
        """Sets the bytes of a table that are of no column."""
        whole: wp.array = vars(columns[0])["held"]
        is_between = np.ones(whole.size, bool)
        for column in columns:
            begin = column.ptr - whole.ptr
            size = column.size * wp.types.type_size_in_bytes(column.dtype)
            is_between[begin : begin + size] = False
        whole.numpy()[is_between] = 0xCD
        self._between[name] = whole, is_between

    def _assert_untouched_between(self, name: str) -> None:
        if name in self._between:
            whole, is_between = self._between.pop(name)
            assert (whole.numpy()[is_between] == 0xCD).all(), name

    def assert_untouched(self) -> None:
        for name in list(self._between):
            self._assert_untouched_between(name)
        for block, begin, size in self._held:
            assert (block[:begin] == 0xCD).all()
            assert (block[begin + size :] == 0xCD).all()


@pytest.fixture
def as_device(monkeypatch):
    """The CPU is treated as a device whose arrays must be copied."""
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)


@pytest.fixture
def exceeded(monkeypatch) -> Counter[str]:
    """How often a number of each name exceeded its capacity."""
    found: Counter[str] = Counter()
    plain = ChunkCounts.complete

    def counting(counts, values):
        try:
            return plain(counts, values)
        except CountsExceeded as error:
            found[str(error)] += 1
            raise

    monkeypatch.setattr(ChunkCounts, "complete", counting)
    return found


@pytest.fixture(scope="module")
def model():
    return mixed_builder(0, COUNT).finalize()


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    rng = np.random.default_rng(2)
    return np.concatenate([random_poses(rng, (STEP, 1, COUNT), spread) for spread in SPREADS])


def blocks_of(
    pipeline,
    poses: np.ndarray,
    workspace: Workspace | None = None,
    positions: np.ndarray | None = None,
    begin: Callable[[Workspace], None] = lambda workspace: None,
):
    """The block and the report of each chunk of one worker. positions: of particles. begin: is
    called before each chunk."""
    scratch = workspace or Workspace(pipeline.device_model.device, 1 << 40)
    found = []
    for first in range(0, len(poses), STEP):
        begin(scratch)
        with scratch.turn():
            found.append(pipeline.collide(PoseBatch(first, STEP, 0, poses, positions), scratch))
    return found


def assert_equal_blocks(ours, theirs) -> None:
    block: ContactBlock
    for (block, report), (other, other_report) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(block.cell_counts, other.cell_counts)
        assert block.columns.keys() == other.columns.keys()
        for name, column in block.columns.items():
            assert column.dtype == other.columns[name].dtype
            assert column.tobytes() == other.columns[name].tobytes(), name
        assert block.groups.keys() == other.groups.keys()
        for name, rows in block.groups.items():
            np.testing.assert_array_equal(rows.cell_counts, other.groups[name].cell_counts)
            for key, column in rows.columns.items():
                assert column.dtype == other.groups[name].columns[key].dtype
                assert column.tobytes() == other.groups[name].columns[key].tobytes(), (name, key)
        for count in ("candidate_count", "touching_count", "contact_count", "inexact_count"):
            assert getattr(report, count) == getattr(other_report, count), count


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("phase", ["explicit", "nxn", "sap"])
def test_a_chunk_with_more_than_expected_is_computed_again(
    model, poses, exceeded, monkeypatch, phase, name
):
    """With the bits of the CPU, and no array is left meanwhile."""
    reference = blocks_of(pipeline_of(model, poses, OPTIONS[name], broad_phase=phase), poses)
    assert reference[1][1].contact_count > 2 * reference[0][1].contact_count > 0
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    monkeypatch.setattr(chunk_counts, "SPARE", 0)
    guards = Guards(monkeypatch)
    pipeline = pipeline_of(model, poses, OPTIONS[name], broad_phase=phase)
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    assert_equal_blocks(blocks_of(pipeline, poses, scratch), reference)
    assert sum(exceeded.values()) >= 1
    guards.assert_untouched()


NAMES = [
    ("explicit", "block_pair"),
    ("nxn", "block_pair"),
    ("sap", "block_pair"),
    ("sap", "entry"),
    ("explicit", "candidate_bucket"),
    ("sap", "contact"),
]


@pytest.mark.parametrize(("phase", "name"), NAMES)
def test_each_number_beyond_its_capacity_is_found(
    as_device, model, poses, exceeded, monkeypatch, phase, name
):
    """Of equal chunks each has exactly as many as the last: a capacity that is less by one is
    exceeded, and no array is left; an equal one is not. Entries are written to arrays of twice the
    capacity, of which a sort needs one half."""
    for margin in ("SPARE", "MARGIN", "LEAST_MARGIN"):
        monkeypatch.setattr(chunk_counts, margin, 0)
    pipeline = pipeline_of(model, poses, broad_phase=phase)
    same = np.concatenate([poses[STEP : 2 * STEP]] * 3)
    reference = blocks_of(pipeline, same)
    assert sum(exceeded.values()) == 0
    plain = ChunkCounts.capacities
    taken: dict[str, np.ndarray] = {}

    def less(counts, of, spare_for_none):
        most = plain(counts, of, spare_for_none)
        if of == name:
            fewer = most // 3 if of == "entry" else np.maximum(most - 1, 0)
            most = counts._most[of] = taken.setdefault(of, fewer)
        return most

    monkeypatch.setattr(ChunkCounts, "capacities", less)
    guards = Guards(monkeypatch)
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    found = blocks_of(pipeline, same, scratch, begin=forget_arrays)
    assert_equal_blocks(found, reference)
    assert exceeded == {name: 2}
    guards.assert_untouched()


def forget_arrays(scratch: Workspace) -> None:
    """Has the next chunk allocate all scratch arrays anew, no longer than it needs."""
    scratch._packed.clear()
    for held in (scratch._arrays, scratch._structs, scratch._tables, scratch._host):
        held.clear()
    scratch._launches.forget()
    scratch.bytes = 0


@kernel
def list_candidates(bucket: Bucket, found: wp.array[wp.int32]):
    """One thread per element of `found`: its candidate."""
    thread = wp.tid()
    found[thread] = candidate_of(bucket, thread)


def test_threads_beyond_a_bucket_have_no_candidate():
    device = find_device("cpu")
    bucket = Bucket()
    bucket.order = wp.array(np.arange(10, 20, dtype=np.int32), dtype=wp.int32, device=device)
    bucket.start = wp.array(np.array([0, 3, 3, 7], np.int32), dtype=wp.int32, device=device)
    found = wp.zeros(5, dtype=wp.int32, device=device)
    for index, expected in enumerate(([10, 11, 12, -1, -1], [-1] * 5, [13, 14, 15, 16, -1])):
        bucket.index = index
        wp.launch(list_candidates, 5, [bucket, found], device=device)
        assert found.numpy().tolist() == expected


@pytest.mark.parametrize("phase", ["explicit", "nxn", "sap"])
def test_chunks_without_candidates_are_followed_by_any(as_device, exceeded, phase):
    builder = ModelBuilder()
    for _ in range(8):
        builder.add_shape_sphere(builder.add_body(), radius=0.3)
    alone = builder.finalize()
    spreads = (500.0, 500.0, 0.3, 500.0, 0.3)
    rng = np.random.default_rng(3)
    poses = np.concatenate([random_poses(rng, (STEP, 1, 8), spread) for spread in spreads])
    found = blocks_of(pipeline_of(alone, poses, broad_phase=phase), poses)
    counts = [report.contact_count for _, report in found]
    assert counts[0] == counts[1] == counts[3] == 0
    assert min(counts[2], counts[4]) > 0
    assert [block.contact_count for block, _ in found] == counts
    assert exceeded == {"candidate_bucket": 1}  # the place of a kind that was there is kept


def test_a_device_without_memory_for_margins_reads_the_numbers(as_device, model, poses):
    pipeline = pipeline_of(model, poses, broad_phase="sap")
    reference = blocks_of(pipeline, poses[:STEP])
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    blocks_of(pipeline, poses[:STEP], scratch)
    scratch.memory_limit = scratch.bytes
    assert_equal_blocks(blocks_of(pipeline, poses[:STEP], scratch), reference)
    assert not scratch.counts.expects
    traffic = scratch._stream.traffic = device_stream.Traffic()
    blocks_of(pipeline, poses[:STEP], scratch)
    assert traffic.waits > 1


@pytest.fixture
def counts(as_device) -> ChunkCounts:
    """The numbers of a chunk of 10 cells, of which 10, none and 4000 of a kind were found."""
    counts = Workspace(find_device("cpu"), 1 << 30).counts
    counts.slots("few", 3)
    counts.begin(10)
    counts.numbers = {"few": [10, 0, 4000]}
    counts.keep()
    return counts


def test_capacities_are_in_proportion_to_the_cells(counts):
    counts.begin(20, expected=True)
    assert counts.capacities("few", 7).tolist() == [25 + SPARE, 7, 10_000 + SPARE]


def test_capacities_of_chunks_before_are_kept_while_they_suffice(counts):
    """So that launches of equal chunks are equal."""
    counts.begin(10, expected=True)
    first = counts.capacities("few", 0)
    for found in ([9, 0, 4300], [200, 0, 2700], [0, 0, 4000]):
        counts.numbers = {"few": found}
        counts.keep()
        counts.begin(10, expected=True)
        assert counts.capacities("few", 0) is first
    counts.numbers = {"few": [0, 3, 4800]}
    counts.keep()
    counts.begin(10, expected=True)
    # 4800 leave too little of 5000 + SPARE.
    assert counts.capacities("few", 0).tolist() == [first[0], 4 + SPARE, 6000 + SPARE]


def test_a_kind_that_a_chunk_did_not_have_keeps_its_place(counts):
    """Else each chunk that has one again would be computed twice."""
    counts.begin(10, expected=True)
    counts.capacities("few", 0)
    counts.numbers = {"few": [0, 0, 4000]}
    counts.keep()
    counts.begin(10, expected=True)
    assert counts.capacities("few", 0)[0] >= SPARE


@pytest.mark.parametrize("values", [[10, 0, 5257], [10, 1, 4000], [10, 0, -1]])
def test_a_number_beyond_its_capacity_is_an_error(counts, values):
    """Negative numbers are sums beyond 32 bits."""
    counts.begin(10, expected=True)
    assert counts.capacities("few", 0).tolist() == [13 + SPARE, 0, 5000 + SPARE]
    with pytest.raises(CountsExceeded, match="few"):
        counts.complete(np.array(values, np.int32))
    assert counts.complete(np.array([269, 0, 5256], np.int32)) == {"few": [269, 0, 5256]}


def test_an_exceeded_number_of_threads_has_no_elements(as_device):
    """The ends of its list are not read."""
    scratch = Workspace(find_device("cpu"), 1 << 30)
    counts = scratch.counts
    ends = scratch.array("ends", 64, wp.int32)
    ends.fill_(99)
    zero = wp.zeros(1, dtype=wp.int32, device="cpu")
    counts.begin(1)
    assert counts.of("some", ends, 64).most == 99
    assert counts.of("none", ends, ElementCount(64, zero)).most == 0
