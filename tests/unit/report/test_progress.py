"""The progress bar: what it shows while kernels are compiled, and afterwards."""

from __future__ import annotations

import re
from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from collidecli.report.progress import Rate, frame_progress


def test_the_time_of_a_long_load_is_shown(monkeypatch):
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)
    with frame_progress(console, "colliding", "loading") as bar:
        clock = bar._bar.get_time
        assert not re.search(r"\d s", out.getvalue())
        monkeypatch.setattr(bar._bar, "get_time", lambda: clock() + 75.0)
        for task in bar._bar.tasks:
            task._get_time = bar._bar.get_time
        bar._bar.refresh()
        assert re.search(r"loading.* 75 s", out.getvalue())


def test_compiled_kernels_are_counted_until_the_first_frame():
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)

    def shown() -> str:
        out.truncate(0)
        bar._bar.refresh()
        return out.getvalue()

    with frame_progress(console, "colliding", "loading") as bar:
        assert "loading" in shown()
        bar.compiling(3, 7)
        assert "compiling kernels (first run only), 3 of 7" in shown()
        bar(4, 20)
        text = shown()
        assert "colliding" in text
        assert "4/20" in text
        bar.compiling(7, 7)
        assert "compiling" not in shown()


def test_counts_are_grouped_and_follow_a_growing_total():
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)

    def shown() -> str:
        out.truncate(0)
        bar._bar.refresh()
        return out.getvalue()

    with frame_progress(console, "computing", "starting workers", "episodes") as bar:
        assert "/" not in shown()
        bar(1200, 3000)
        assert "1 200/3 000" in shown()
        bar(4500, 6000)
        assert "4 500/6 000" in shown()
    assert Rate("episodes").render(SimpleNamespace(speed=1500.4)).plain == "1 500 episodes/s"
