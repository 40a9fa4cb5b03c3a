"""Two chunks of a device in flight: the host issues one while another is computed, each waits once,
and bits, order and sizes are those of one at a time."""

import threading

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_sizes import (
    IN_FLIGHT,
    ON_CPU,
    ON_DEVICE,
    WAITING_BLOCKS,
    batch_cells,
)
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.runtime import chunk_counts, device_stream
from collidecli.engine.scheduler import Workers, worker_count
from tests.support.engine_runs import mixed_builder, pipeline_of, random_poses
from tests.unit.engine.runtime.test_chunk_counts import (  # noqa: F401
    as_device,
    assert_equal_blocks,
    exceeded,
)

CHUNKS = 8
STEP = 3
COUNT = 12
MEMORY = 1 << 40
PATIENCE = 60.0
"""Longest time in which another chunk is issued [s]."""


@pytest.fixture(scope="module")
def model():
    return mixed_builder(0, COUNT).finalize()


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    rng = np.random.default_rng(2)
    return np.concatenate([random_poses(rng, (STEP, 1, COUNT), 0.4)] * CHUNKS)


class SlowDevice:
    """A device that completes a chunk when the host has issued the next one, or there is none.

    log: "begun", "waits" and "completed", with the number of the chunk, as the host does so.
    expected: numbers of the chunks whose numbers of elements are expected, so that they are issued
    before they wait; the others wait at once.
    """

    def __init__(self, chunks: int) -> None:
        self.log: list[tuple[str, int]] = []
        self.expected: set[int] = set()
        self._chunks = chunks
        self._changed = threading.Condition()
        self._of_thread = threading.local()

    def collide(self, pipeline, batch, workspace):
        """Collides a chunk."""
        number = batch.first_cell // STEP
        self._of_thread.number = number
        if workspace.counts._known:
            self.expected.add(number)
        self._note("begun", number)
        found = COLLIDE(pipeline, batch, workspace)
        self._note("completed", number)
        return found

    def synchronize(self, *_: object) -> None:
        """The wait of a worker, without the turn."""
        number = self._of_thread.number
        self._note("waits", number)
        if number not in self.expected or number + 1 == self._chunks:
            return
        with self._changed:
            assert self._changed.wait_for(lambda: ("waits", number + 1) in self.log, PATIENCE)

    def _note(self, what: str, number: int) -> None:
        with self._changed:
            self.log.append((what, number))
            self._changed.notify_all()


COLLIDE = CollisionPipeline.collide


@pytest.fixture
def device(as_device, monkeypatch) -> SlowDevice:  # noqa: F811
    """The CPU as such a device, for CHUNKS chunks."""
    slow = SlowDevice(CHUNKS)
    monkeypatch.setattr(CollisionPipeline, "collide", lambda *given: slow.collide(*given))
    monkeypatch.setattr(device_stream.DeviceStream, "_synchronize", slow.synchronize)
    return slow


def batches_of(poses: np.ndarray) -> list[PoseBatch]:
    """Chunks of STEP frames of one world."""
    return [PoseBatch(first, STEP, 0, poses) for first in range(0, len(poses), STEP)]


def collided(pipeline: CollisionPipeline, poses: np.ndarray, workers: int) -> list:
    """Blocks and reports of chunks."""
    with Workers(pipeline, workers, MEMORY) as pool:
        return list(pool.collide(batches_of(poses), len(poses)))


def test_a_chunk_is_issued_while_another_is_computed(device, model, poses):
    """Else the device would complete none. In the first pass over the motion scratch grows, which
    waits."""
    pipeline = pipeline_of(model, poses, broad_phase="explicit")
    with Workers(pipeline, worker_count(0, True), MEMORY) as pool:
        for _ in range(2):
            device.log.clear()
            found = list(pool.collide(batches_of(poses), len(poses)))
    assert [block.first_cell for block, _ in found] == list(range(0, len(poses), STEP))
    steps = [(what, number) for number in range(CHUNKS) for what in ("begun", "waits", "completed")]
    assert sorted(device.log) == sorted(steps)
    when = {step: device.log.index(step) for step in steps}
    for number in range(CHUNKS - 1):
        assert when["waits", number + 1] < when["completed", number]
    changes = [{"begun": 1, "waits": 0, "completed": -1}[what] for what, _ in device.log]
    assert max(np.cumsum(changes)) == IN_FLIGHT


def test_chunks_in_flight_have_the_bits_of_the_cpu(
    device,
    exceeded,  # noqa: F811
    model,
    monkeypatch,
):
    """Also those that are computed again while the next one is in flight."""
    rng = np.random.default_rng(3)
    spreads = (3.0, 3.0, 0.25, 0.3, 3.0, 3.0, 0.2, 3.0)
    motion = np.concatenate([random_poses(rng, (STEP, 1, COUNT), spread) for spread in spreads])
    monkeypatch.setattr(chunk_counts, "SPARE", 0)
    pipeline = pipeline_of(model, motion, broad_phase="sap")
    found = collided(pipeline, motion, IN_FLIGHT)
    assert sum(exceeded.values()) >= 1
    monkeypatch.undo()
    assert_equal_blocks(found, collided(pipeline_of(model, motion), motion, 1))


def test_chunks_in_flight_are_as_large_as_one_at_a_time():
    """Of a device; the workers of the CPU divide a run."""
    assert batch_cells(1000, 1, 1000, IN_FLIGHT, ON_DEVICE) == batch_cells(
        1000, 1, 1000, 1, ON_DEVICE
    )
    assert ON_DEVICE.dividing(IN_FLIGHT) == 1
    assert batch_cells(500, 1, 1000, 1, ON_CPU) == 98
    assert batch_cells(500, 1, 1000, 2, ON_CPU) == 63
    assert ON_CPU.dividing(2) == 2


def test_the_memory_limit_counts_both(as_device, model, poses):  # noqa: F811
    """Each worker's scratch and block have a part of it."""
    limit = 1 << 20
    with Workers(pipeline_of(model, poses), IN_FLIGHT, limit) as pool:
        assert pool._worker_memory * (2 * IN_FLIGHT + WAITING_BLOCKS) <= limit
