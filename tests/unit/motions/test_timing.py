"""Seconds of a run, of which those of compilation are none."""

from collidecli.engine.pipeline import ChunkReport
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
