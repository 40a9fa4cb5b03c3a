"""The path of a device with a memory of its own on the CPU's arrays, and the launch queue of the
CPU."""

import inspect
import re
import threading
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import warp as wp

from collidecli.engine import candidates, pipeline_build
from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_sizes import IN_FLIGHT, ON_CPU, ON_DEVICE
from collidecli.engine.ordered_contacts import CONTACT_ROWS
from collidecli.engine.particles.self_contacts import SELF_CONTACT_ROWS
from collidecli.engine.particles.self_sweep import SELF_SWEEP_ROWS
from collidecli.engine.particles.soft_contacts import SOFT_ROWS
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import (
    device_stream,
    launch_queue,
    recorded_launches,
    warp_internals,
    workspace,
)
from collidecli.engine.runtime.index_limit import INDEX_LIMIT
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.launch_queue import MAX_STEPS
from collidecli.engine.runtime.moments import Moment
from collidecli.engine.runtime.workspace import ALIGNMENT, ChunkTooLarge, Workspace
from collidecli.engine.scheduler import (
    Workers,
    chunk_sizes,
    engine_memory,
    processing_threads,
    worker_count,
)
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import REDUCED
from tests.support.engine_runs import (
    PHASES,
    assert_identical,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)

FRAMES = 12
COUNT = 24
ERRORS_WITHOUT_MEMORY = {
    "launch": "2: out of memory (in function wp_cuda_launch_kernel, warp.cu:5920)",
    "scan": "101: invalid device ordinal (in function scan_device, scan.cu:97)",
}


@pytest.fixture
def as_device(monkeypatch):
    """The CPU is treated as a device whose arrays must be copied."""
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)


@pytest.fixture(scope="module")
def model():
    return mixed_builder(0, COUNT).finalize()


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    return random_poses(np.random.default_rng(1), (FRAMES, 1, COUNT), 0.5)


def chunk_traffic(pipeline, poses, chunks: int) -> list[tuple[device_stream.Traffic, int]]:
    """What one worker copies for each of several equal chunks, and its contacts: first of one whose
    numbers of elements are read, then of those whose numbers are expected, but for the first of
    them, for which scratch grows."""
    scratch = Workspace(pipeline.device_model.device, 1 << 40)
    found = []
    for _ in range(chunks + 2):
        scratch._stream.traffic = device_stream.Traffic()
        with scratch.turn():
            block, _ = pipeline.collide(PoseBatch(0, len(poses), 0, poses), scratch)
        found.append((scratch.traffic, block.contact_count))
    return [found[0], *found[2:]]


CONTACT_OPTIONS = {"all": ContactOptions(), "reduced": REDUCED}
CHUNK_FRAMES = 3


@pytest.mark.parametrize("options", CONTACT_OPTIONS)
@pytest.mark.parametrize("phase", ["explicit", "nxn", "sap"])
def test_a_chunk_is_one_upload_with_one_download(as_device, model, poses, phase, options):
    """And the host waits once, though it knows no number of elements before."""
    chunk = poses[:CHUNK_FRAMES]
    pipeline = pipeline_of(model, poses, CONTACT_OPTIONS[options], broad_phase=phase)
    (_, contacts), *every = chunk_traffic(pipeline, chunk, 3)
    row_bytes = CONTACT_ROWS[np.dtype(np.float64)].row_bytes
    row_bytes += 4 * (options == "reduced")  # the friction scale
    for traffic, found in every:
        assert found == contacts > 0
        assert (traffic.uploads, traffic.downloads, traffic.waits) == (1, 1, 1)
        assert traffic.uploaded_bytes == CHUNK_FRAMES * COUNT * 7 * 8
        columns = row_bytes * contacts + 4 * CHUNK_FRAMES
        numbers = 4 * (2 * len(pipeline.narrow_phase.table.colliders) + 6)
        assert columns <= traffic.downloaded_bytes <= columns + numbers


@pytest.mark.parametrize(("phase", "sizes"), [("explicit", 3), ("nxn", 3), ("sap", 4)])
def test_a_first_chunk_is_one_packed_download_besides_its_sizes(
    as_device, model, poses, phase, sizes
):
    """The sizes are those of the pairs, of the candidates, of each collider's part of them, and of
    the contacts."""
    pipeline = pipeline_of(model, poses, broad_phase=phase)
    traffic, contacts = chunk_traffic(pipeline, poses[:CHUNK_FRAMES], 1)[0]
    assert traffic.downloads == sizes + 1
    columns = CONTACT_ROWS[np.dtype(np.float64)].row_bytes * contacts + 4 * CHUNK_FRAMES
    read = 4 * sizes * (2 * len(pipeline.narrow_phase.table.colliders) + 6)
    # Each of the columns and the cells' ends begins at a multiple of ALIGNMENT.
    most = columns + read + len(RIGID_COLUMNS) * ALIGNMENT
    assert columns <= traffic.downloaded_bytes <= most


@pytest.mark.parametrize(
    ("phase", "launches", "others"), [("explicit", 16, 7), ("nxn", 16, 7), ("sap", 23, 9)]
)
def test_launches_of_a_chunk(as_device, model, poses, monkeypatch, phase, launches, others):
    """Besides one launch for each collider that has candidates; others: scans, sorts, fills and
    copies. The numbers do not depend on the frames."""
    pipeline = pipeline_of(model, poses, broad_phase=phase)
    colliders = {each.kernel for each in pipeline.narrow_phase.table.colliders}
    issued: list[Any] = []

    def counted(owner, name):
        plain = getattr(owner, name)

        def counting(*arguments, **options):
            issued.append(arguments[1] if name == "launch" else name)
            return plain(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    counted(recorded_launches.RecordedLaunches, "launch")
    counted(recorded_launches.RecordedLaunches, "scan")
    for name in ("fill_", "zero_"):
        counted(wp.array, name)
    counted(wp.utils, "radix_sort_pairs")
    counted(wp, "copy")
    found = set()
    for frames in (3, 6):
        scratch = Workspace(pipeline.device_model.device, 1 << 40)
        for _ in range(3):
            issued.clear()
            with scratch.turn():
                pipeline.collide(PoseBatch(0, frames, 0, poses), scratch)
        launched = [each for each in issued if isinstance(each, wp.Kernel)]
        of_colliders = sum(each in colliders for each in launched)
        assert of_colliders <= len(colliders)
        found.add((len(launched) - of_colliders, len(issued) - len(launched)))
    assert found == {(launches, others)}


def test_no_array_is_read_past_the_counted_copies(as_device, model, poses, monkeypatch):
    pipeline = pipeline_of(model, poses, broad_phase="sap")
    chunk_traffic(pipeline, poses, 4)
    read: list[str] = []
    plain = wp.array.numpy
    monkeypatch.setattr(wp.array, "numpy", lambda self: read.append(str(self.dtype)) or plain(self))
    scratch = Workspace(pipeline.device_model.device, 1 << 40)
    with scratch.turn():
        pipeline.collide(PoseBatch(0, 3, 0, poses), scratch)
        read.clear()
        pipeline.collide(PoseBatch(3, 3, 0, poses), scratch)
    # Of page-locked memory: one for each upload, and one or two for each download and its parts.
    assert all(
        "uint8" in kind or "int32" in kind or "vec" in kind or "float" in kind for kind in read
    )


def test_stages_of_a_device_are_timed(as_device, model, poses):
    pipeline = pipeline_of(model, poses, broad_phase="sap")
    with Workers(pipeline, 1, 1 << 40) as pool:
        reports = [report for _, report in pool.collide([PoseBatch(0, FRAMES, 0, poses)])]
    assert all(
        seconds > 0.0 for stage, seconds in reports[0].seconds.items() if stage != "reduction"
    )


def test_memory_that_a_device_refuses_makes_chunks_smaller(as_device, model, poses, monkeypatch):
    """Warp raises RuntimeError then; the chunk is halved until it fits, and nothing is lost."""
    pipeline = pipeline_of(model, poses, broad_phase="nxn")
    reference = contacts_of(pipeline, poses)
    plain = wp.empty
    most = [1 << 40]
    refused = []

    def limited(shape, *args, **options):
        if "pinned" not in options and shape > most[0]:
            refused.append(shape)
            raise RuntimeError(f"Failed to allocate {shape} bytes on device 'cuda:0'")
        return plain(shape, *args, **options)

    monkeypatch.setattr(workspace.wp, "empty", limited)
    most[0] = 6000
    assert_identical(contacts_of(pipeline, poses), reference)
    assert refused


def test_a_device_that_is_full_reports_what_was_needed(as_device, monkeypatch):
    scratch = Workspace(find_device("cpu"), 1 << 40)
    fails = RuntimeError("Failed to allocate 8 bytes on device 'cuda:0'")
    monkeypatch.setattr(workspace.wp, "empty", Mock(side_effect=fails))
    with pytest.raises(ChunkTooLarge) as raised:
        scratch.array("any", 800, wp.int32)
    assert raised.value.needed >= 3200


def test_a_full_cpu_raises_the_error_itself(as_device, monkeypatch):
    fails = RuntimeError("Failed to allocate 8 bytes on device 'cuda:0'")
    monkeypatch.setattr(workspace.wp, "empty", Mock(side_effect=fails))
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", set())
    with pytest.raises(RuntimeError, match="allocate"):
        Workspace(find_device("cpu"), 1 << 40).array("any", 8, wp.int32)


def test_limits_are_those_of_the_device(as_device, monkeypatch):
    device = find_device("cpu")
    assert chunk_sizes(device) is ON_DEVICE
    assert worker_count(7, True) == IN_FLIGHT
    assert processing_threads(7) == 7  # compression does not wait for the few workers of a device
    monkeypatch.setattr("collidecli.engine.scheduler.free_device_memory", lambda device: 1000)
    assert engine_memory(10**9, device) == 500
    assert engine_memory(300, device) == 300
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", set())
    assert chunk_sizes(device) is ON_CPU
    assert engine_memory(10**9, device) == 10**9
    monkeypatch.setattr(wp, "is_cuda_available", lambda: True)
    assert find_device("").is_cpu  # also beside another


def test_a_pool_keeps_freed_memory(monkeypatch):
    """By default Warp's pool returns all memory at each wait."""
    set_to = []
    cuda = SimpleNamespace(alias="cuda:7", is_cuda=True)
    monkeypatch.setattr(wp, "is_mempool_supported", lambda device: True)
    monkeypatch.setattr(
        wp,
        "set_mempool_release_threshold",
        lambda device, value: set_to.append((device.alias, value)),
    )
    monkeypatch.setattr(wp, "get_device", lambda name: cuda)
    assert find_device("cuda") is cuda
    assert set_to == [("cuda:7", 1.0)]
    monkeypatch.setattr(wp, "is_mempool_supported", lambda device: False)
    find_device("cuda")
    assert len(set_to) == 1


@pytest.mark.parametrize("function", ["launch", "scan"])
def test_chunks_are_halved_where_a_launch_or_scan_has_too_little_memory(
    as_device, model, poses, function, monkeypatch
):
    """On an H200 with 617 MiB left a scan's own scratch memory could not be allocated."""
    reference = contacts_of(pipeline_of(model, poses), poses)
    issue = getattr(recorded_launches.RecordedLaunches, function)
    refused = []

    def limited(self, first, count, *others):
        if count > 1000:
            refused.append(count)
            raise RuntimeError(f"{function}: Warp CUDA error " + ERRORS_WITHOUT_MEMORY[function])
        return issue(self, first, count, *others)

    monkeypatch.setattr(recorded_launches.RecordedLaunches, function, limited)
    assert_identical(contacts_of(pipeline_of(model, poses), poses), reference)
    assert refused
    with pytest.raises(RuntimeError, match="illegal"), Workspace(wp.get_device("cpu"), 100).turn():
        raise RuntimeError("Warp CUDA error 700: an illegal memory access was encountered")


def test_no_worker_issues_while_a_model_is_uploaded(as_device, model, poses, monkeypatch):
    """On a GPU the upload waited behind another worker's kernels, while the new model's kernels
    read its arrays."""
    held = []
    upload = pipeline_build.upload_model
    turn = device_stream._turns["cpu"]
    monkeypatch.setattr(
        pipeline_build,
        "upload_model",
        lambda *given: (held.append(turn.locked()), upload(*given))[1],
    )
    pipeline_of(model, poses)
    assert held == [True]
    assert not device_stream._turns["cpu"].locked()


def test_workers_issue_by_turns(as_device, model, poses):
    """While one waits another has the turn; two never have it at once."""
    pipeline = pipeline_of(model, poses, broad_phase="nxn")
    busy = [0]
    most = [0]
    take = device_stream.DeviceStream._take
    give = device_stream.DeviceStream._give
    lock = threading.Lock()

    def taken(self):
        take(self)
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])

    def given(self):
        with lock:
            busy[0] -= 1
        give(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_stream.DeviceStream, "_take", taken)
        patch.setattr(device_stream.DeviceStream, "_give", given)
        batches = [PoseBatch(first, 1, 0, poses) for first in range(FRAMES)]
        with Workers(pipeline, 3, 1 << 40) as pool:
            blocks = [block for block, _ in pool.collide(batches)]
    assert len(blocks) == FRAMES
    assert (busy[0], most[0]) == (0, 1)


def test_an_upload_does_not_overwrite_what_the_device_has_not_read(as_device, monkeypatch):
    """Copies from page-locked memory end after the call that issues them; the host does not wait
    between, and memory is used again after the next wait."""
    plain = wp.copy
    issued = []

    def complete():
        while issued:
            plain(*issued[0][0], **issued.pop(0)[1])

    monkeypatch.setattr(
        device_stream.wp, "copy", lambda *args, **options: issued.append((args, options))
    )
    stream = device_stream.DeviceStream(find_device("cpu"))
    targets = [wp.zeros(4, dtype=wp.int32, device="cpu") for _ in range(3)]
    for first in (0, 5):
        for number, target in enumerate(targets):
            stream.upload(target, np.full(4, first + number, np.int32))
        assert stream._uploads.free == []
        complete()
        stream.wait()
        assert len(stream._uploads.free) == len(targets)
        found = [target.numpy().tolist() for target in targets]
        assert found == [[first] * 4, [first + 1] * 4, [first + 2] * 4]


@pytest.mark.parametrize("writers", [CONTACT_ROWS, SOFT_ROWS, SELF_CONTACT_ROWS, SELF_SWEEP_ROWS])
def test_the_kernel_of_a_table_writes_every_column(writers):
    """A column that it does not write would hold what an earlier chunk left, in the range that
    `check` allows."""
    for writer in writers.values():
        called = inspect.getclosurevars(writer.kernel.func).nonlocals.values()
        sources = [
            writer.kernel.adj.source,
            *(getattr(each, "native_snippet", None) or "" for each in called),
        ]
        missing = [
            name
            for name in writer.elements
            if not re.search(rf"columns\.{name}\b", "".join(sources))
        ]
        assert missing == []


def test_memory_of_a_result_is_used_again_when_nothing_refers_to_it(as_device):
    stream = device_stream.DeviceStream(find_device("cpu"))

    def kept(number: int) -> np.ndarray:
        source = wp.full(100, number, dtype=wp.int32, device="cpu")
        return stream.download_kept(source, 400).view(np.int32)

    address = lambda values: values.__array_interface__["data"][0]  # noqa: E731
    first = kept(1)[:50]
    second = kept(2)
    assert address(first) != address(second)
    before = address(second)
    del second
    third = kept(3)
    assert address(third) == before
    assert (first == 1).all()
    assert (third == 3).all()
    del first
    assert stream.download_kept(wp.zeros(1000, dtype=wp.int32, device="cpu"), 4000).size == 4000
    assert len(stream._results.free) == 1  # in place of the one that was too small


def test_page_locked_values_are_uploaded_from_where_they_are(as_device, monkeypatch):
    """And belong to the device until it has read them, though nothing else refers to them."""
    plain = wp.copy
    issued: list[Any] = []
    monkeypatch.setattr(
        device_stream.wp, "copy", lambda *args, **options: issued.append((args, options))
    )
    device = find_device("cpu")
    pool = device_stream.PageLockedPool(device)
    stream = device_stream.DeviceStream(device)
    targets = [wp.zeros(12, dtype=wp.float64, device="cpu") for _ in range(3)]
    for number, target in enumerate(targets):
        values = pool.empty((3, 4))
        assert device_stream.is_page_locked(values[1:])
        values[...] = number
        stream.upload(target, values.reshape(-1))
        del values
    for args, options in issued:
        plain(*args, **options)
    assert [target.numpy().tolist() for target in targets] == [[0.0] * 12, [1.0] * 12, [2.0] * 12]
    assert stream.traffic.uploaded_bytes == 3 * 12 * 8
    assert stream.traffic.host_copied_bytes == 0
    assert len(pool.free) == 0
    stream.wait()
    assert len(pool.free) == 3
    assert not device_stream.is_page_locked(np.zeros(3)[1:])


def test_other_workers_have_the_turn_during_work_of_the_host(as_device):
    one, other = (device_stream.DeviceStream(find_device("cpu")) for _ in range(2))
    with one.turn():
        with one.aside(), other.turn():
            assert not one._has_turn
        assert one._has_turn
    with one.aside():
        assert not one._has_turn


@pytest.mark.parametrize("pairs_of_thread", [1, 7, 10**9])
def test_parts_of_blocks_have_the_candidates_of_whole_blocks(
    as_device, model, poses, monkeypatch, pairs_of_thread
):
    """Of a device: up to 1024 parts of a block, one after the other in canonical order."""
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", set())
    reference = contacts_of(pipeline_of(model, poses, broad_phase="sap"), poses)
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(candidates, "PAIRS_OF_THREAD", pairs_of_thread)
    for phase in PHASES.values():
        assert_identical(contacts_of(pipeline_of(model, poses, **phase), poses), reference)


# The launch queue of the CPU, and recorded launches: order, arguments, growth of arrays, refusals.


@wp.struct
class Line:
    slope: int
    value: wp.array[wp.int32]


@kernel
def fill_line(start: int, line: Line):
    thread = wp.tid()
    line.value[thread] = start + line.slope * thread


@kernel
def add_up(one: wp.array[wp.int32], other: wp.array[wp.int32]):
    thread = wp.tid()
    other[thread] = other[thread] + one[thread]


@pytest.fixture(params=["known Warp", "another Warp"])
def queue_workspace(request, monkeypatch):
    if request.param == "another Warp":
        monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    return Workspace(find_device("cpu"), 1 << 30)


def line_of(queue_workspace: Workspace, name: str, count: int, slope: int) -> Line:
    return queue_workspace.struct(
        Line, slope=slope, value=queue_workspace.array(name, count, wp.int32)
    )


def test_each_launch_has_what_a_struct_held_then(queue_workspace):
    """One instance of a struct serves every launch, and is filled anew for each."""
    lines = {3: "three", 5: "five", 7: "seven"}
    for name in lines.values():
        queue_workspace.array(name, 4, wp.int32)  # an array that grew would make what is noted
    for start in range(3):
        for slope, name in lines.items():
            queue_workspace.launch(fill_line, 4, [start, line_of(queue_workspace, name, 4, slope)])
        line_of(queue_workspace, "three", 4, 100)
        for slope, name in lines.items():
            found = queue_workspace.host(queue_workspace.array(name, 4, wp.int32), 4)
            np.testing.assert_array_equal(found, start + slope * np.arange(4))


@pytest.mark.parametrize("rounds", [1, 2, MAX_STEPS])
def test_steps_of_a_queue_execute_in_order(queue_workspace, rounds):
    total, one, end = (
        queue_workspace.array(name, 100, wp.int32) for name in ("total", "one", "end")
    )
    queue_workspace.fill(total, 0)
    expected = np.zeros(100, np.int64)
    copies = []
    for k in range(rounds):
        count = 100 - k % 7
        queue_workspace.launch(fill_line, count, [k, line_of(queue_workspace, "one", 100, 1)])
        assert queue_workspace.scan(one, count, end) == np.sum(k + np.arange(count))
        np.testing.assert_array_equal(queue_workspace.host(one, count), k + np.arange(count))
        queue_workspace.launch(add_up, count, [end, total])
        expected[:count] += np.cumsum(k + np.arange(count))
        copies.append((queue_workspace.copied(total, 100), expected.copy()))
    queue_workspace.finish()
    for copy, wanted in copies:
        np.testing.assert_array_equal(copy, wanted)


def test_a_scan_may_be_in_place(queue_workspace):
    counts = queue_workspace.array("counts", 10, wp.int32)
    queue_workspace.fill(counts, 3)
    assert queue_workspace.scan(counts, 10) == 30
    np.testing.assert_array_equal(queue_workspace.host(counts, 10), 3 * np.arange(1, 11))


def test_copies_are_by_the_c_library(queue_workspace):
    assert launch_queue.COPY
    copy = queue_workspace.copied(queue_workspace.array("empty", 1, wp.vec3f), 0)
    assert copy.shape == (0, 3)


def test_too_many_threads_are_refused(queue_workspace):
    arguments = [0, line_of(queue_workspace, "value", 8, 1)]
    queue_workspace.launch(fill_line, 8, arguments)
    with pytest.raises(ValueError, match="2147483648"):
        queue_workspace.launch(fill_line, 2 * (INDEX_LIMIT + 1), arguments)


@pytest.mark.parametrize("queue_workspace", ["known Warp"], indirect=True)
def test_nothing_is_made_before_it_is_asked_for(queue_workspace):
    value = queue_workspace.array("value", 8, wp.int32)
    queue_workspace.fill(value, 7)
    seen = value.numpy()[:8]
    queue_workspace.launch(fill_line, 8, [0, line_of(queue_workspace, "value", 8, 1)])
    np.testing.assert_array_equal(seen, 7)
    queue_workspace.finish()
    np.testing.assert_array_equal(seen, np.arange(8))


def test_an_array_that_grows_is_written_before_it_is_freed(queue_workspace):
    """What was noted for the old memory is made while that is there; nothing of it is kept."""
    first = queue_workspace.array("value", 64, wp.int32)
    held = first.numpy()[:64]
    queue_workspace.launch(fill_line, 64, [0, line_of(queue_workspace, "value", 64, 2)])
    queue_workspace.array("value", 100_000, wp.int32)
    np.testing.assert_array_equal(held, 2 * np.arange(64))
    queue_workspace.launch(fill_line, 100_000, [0, line_of(queue_workspace, "value", 100_000, 1)])
    found = queue_workspace.host(queue_workspace.array("value", 100_000, wp.int32), 100_000)
    np.testing.assert_array_equal(found, np.arange(100_000))


@pytest.mark.parametrize("clock", ["in the queue", "of Python"])
def test_marks_are_when_the_launches_before_them_are_complete(queue_workspace, clock, monkeypatch):
    if clock == "of Python":
        monkeypatch.setattr(launch_queue, "CLOCK_GETTIME", None)
    count = 3_000_000
    line = line_of(queue_workspace, "long", count, 1)
    queue_workspace.launch(fill_line, 1, [0, line])
    queue_workspace.finish()
    begin = Moment.now()
    marks = [queue_workspace.mark()]
    queue_workspace.launch(fill_line, count, [0, line])
    marks.append(queue_workspace.mark())
    queue_workspace.launch(add_up, 1, [line.value, line.value])
    marks.append(queue_workspace.mark())
    first, second = (queue_workspace.time_between(*pair) for pair in pairwise(marks))
    moments = [begin, *marks, Moment.now()]
    for clock in ("clock", "processor"):
        times = [float(getattr(moment, clock)) for moment in moments]
        assert times == sorted(times)
    assert min(first) > 1e-4  # 12 MB are written, in a millisecond
    assert min(second) >= 0.0
