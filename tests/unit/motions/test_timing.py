"""Seconds of a run, of which those of compilation are none."""

import time

import numpy as np

from collidecli.elapsed import Elapsed
from collidecli.engine.chunk_report import STAGES, ChunkReport
from collidecli.motions import timing as timing_module
from collidecli.motions.timing import TimingReport, covered_seconds


def test_covered_seconds():
    cases = [
        ([], 0.0),
        ([(1.0, 3.0)], 2.0),
        ([(1.0, 3.0), (5.0, 6.0)], 3.0),
        ([(2.0, 12.0), (0.0, 10.0)], 12.0),
    ]
    cases += [([(0.0, 10.0), (2.0, 3.0)], 10.0), ([(0.0, 1.0), (1.0, 2.0)], 2.0)]
    assert [covered_seconds(intervals) for intervals, _ in cases] == [
        seconds for _, seconds in cases
    ]


def test_time_of_compilation_is_no_time_of_the_run(monkeypatch):
    """Two threads wait for the same kernels: the time counts once."""
    timing = TimingReport()
    timing.seconds["compile"] = 0.5
    timing.add_chunk(ChunkReport(thread="a", compiling=((11.0, 14.0),)))
    timing.add_chunk(ChunkReport(thread="b", compiling=((12.0, 15.0),)))
    monkeypatch.setattr(timing_module.time, "perf_counter", lambda: 20.0)
    for _ in range(2):
        assert timing.end_run(10.0) == 10.0
        assert timing.wall_seconds == 6.0
        assert timing.seconds["compile"] == 4.5
    spans = [(span.name, span.thread, span.seconds) for span in timing.spans]
    assert spans == [("compile", name, 3.0) for name in "ab"]


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_waiting_is_of_the_clock_and_not_of_the_processor():
    timing = TimingReport()
    with timing.stage("write"):
        spin(0.01)
        time.sleep(0.05)
    (write,) = (stage for stage in timing.stages() if stage.stage == "write")
    assert write.processor_seconds >= 0.01
    assert write.seconds - write.processor_seconds >= 0.04


def test_processor_time_is_summed_over_chunks_and_moved_with_the_time():
    timing = TimingReport()
    for factor in (1.0, 2.0):
        report = ChunkReport(seconds=dict.fromkeys(STAGES, 4.0 * factor))
        report.processor_seconds.update(dict.fromkeys(STAGES, 3.0 * factor))
        timing.add_chunk(report.plus(ChunkReport()))
    timing.seconds["read"] = 5.0
    timing.processor_seconds["read"] = 2.0
    timing.move("read", "kinematics", Elapsed(1.0, 0.5))
    times = {stage.stage: (stage.seconds, stage.processor_seconds) for stage in timing.stages()}
    assert times["order"] == (12.0, 9.0)
    assert (times["read"], times["kinematics"]) == ((4.0, 1.5), (1.0, 0.5))
    tables = timing.as_tables()
    assert tables["processor_seconds"].tolist() == [of[1] for of in times.values()]
    np.testing.assert_array_equal(tables["chunk"]["order_processor_seconds"], [3.0, 6.0])
