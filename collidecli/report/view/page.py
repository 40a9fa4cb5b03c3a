"""A view as one HTML file: the client of viser with recorded frames, and a list of pairs beside its player."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from collidecli.escaping import script_json
from collidecli.report.view.framing import Frames
from collidecli.report.view.panel import legend, pair_words
from collidecli.report.view.player import seconds_between
from collidecli.report.view.server import start_server
from collidecli.report.view.stage import Look, Stage
from collidecli.report.view.touch_list import MAX_LISTED, TouchingPair, TouchList, touch_label

HERE = Path(__file__).parent
LOCAL = "127.0.0.1"


def view_page(
    frames: Frames, touches: TouchList, title: str, up_axis: str, worlds: Sequence[int], progress=None
) -> str:
    """HTML page of one or more worlds, which are played in succession. Raises InputError without viser.

    A frame begins at its time in the motion, relative to the first frame, plus the durations of the worlds before.
    """
    # viser records the messages of a server, which has no clients and is stopped after the recording.
    server = start_server(LOCAL, 0)
    try:
        stage = Stage(server, frames, up_axis, touches.deepest, worlds[0])
        serializer = server.get_scene_serializer()
        last = len(frames) - 1
        for number, world in enumerate(worlds):
            for index in range(len(frames)):
                stage.show(index, world, Look())
                if last or len(worlds) > 1:
                    serializer.insert_sleep(_pause(frames, index))
                if progress is not None:
                    progress(number * len(frames) + index + 1, len(worlds) * len(frames))
        page = serializer.as_html()
    finally:
        server.stop()
    return _with_list(page, frames, touches, title, worlds)


def _pause(frames: Frames, index: int) -> float:
    """Duration of a frame [s]; the last frame has that of the frame before it, a single frame one second."""
    last = len(frames) - 1
    before = min(index, last - 1)
    return seconds_between(frames, before, before + 1) if last else 1.0


def _with_list(page: str, frames: Frames, touches: TouchList, title: str, worlds: Sequence[int]) -> str:
    held = [{"name": f"world {world}", **_pairs(frames, touches.of(world))} for world in worlds]
    times = [seconds_between(frames, 0, index) for index in range(len(frames))]
    last = len(frames) - 1
    span = seconds_between(frames, 0, last) + _pause(frames, last)
    data = script_json(json.dumps({"worlds": held, "span": span, "times": times, "frames": frames.number.tolist()}))
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    # Without a player, viser has a button in that corner.
    top = "1rem" if len(frames) * len(worlds) > 1 else "4rem"
    parts = {"TOP": top, "TITLE": escape(title), "LEGEND": legend(touches.deepest), "DATA": data}
    # In one pass, as a title may contain $DATA.
    panel = re.sub(r"\$(TOP|TITLE|LEGEND|DATA)\b", lambda found: parts[found[1]], panel)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + panel + page[end:]


def _pairs(frames: Frames, pairs: Sequence[TouchingPair]) -> dict[str, Any]:
    """Entries of the list of a world; at: indices of frames."""
    held: list[dict[str, Any]] = []
    for pair in pairs[:MAX_LISTED]:
        at = [[touch.first, touch.deepest, touch.last] for touch in pair.touches]
        labels = [touch_label(number, touch, frames.number) for number, touch in enumerate(pair.touches, 1)]
        held.append({"label": pair.label, "paths": pair.paths, "words": pair_words(pair), "touches": labels, "at": at})
    more = f"The {MAX_LISTED} deepest of {len(pairs)} pairs" if len(pairs) > MAX_LISTED else ""
    return {"pairs": held, "more": more}
