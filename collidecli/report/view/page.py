"""A view as one HTML file: viser's own client with the frames recorded in it, and a list of pairs beside its player."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from collidecli.report.view.panel import legend, pair_words
from collidecli.report.view.player import seconds_between
from collidecli.report.view.server import start_server
from collidecli.report.view.stage import Frames, Look, Stage
from collidecli.report.view.touch_list import MOST_LISTED, TouchList, touch_label

HERE = Path(__file__).parent
LOCAL = "127.0.0.1"


def view_page(frames: Frames, touches: TouchList, title: str, up_axis: str, world: int, progress=None) -> str:
    """The page of one world. Raises InputError where viser is not installed.

    A frame begins at its time in the motion, from 0 on.
    """
    # viser records what it would send; its server is not told to anyone and ends with the recording.
    server = start_server(LOCAL, 0)
    try:
        stage = Stage(server, frames, up_axis, touches.deepest)
        serializer = server.get_scene_serializer()
        last = len(frames) - 1
        for place in range(len(frames)):
            stage.show(place, world, Look())
            if place < last:
                serializer.insert_sleep(seconds_between(frames, place, place + 1))
            elif last:
                serializer.insert_sleep(seconds_between(frames, place - 1, place))
            if progress is not None:
                progress(place + 1, len(frames))
        page = serializer.as_html()
    finally:
        server.stop()
    return _with_list(page, frames, touches, title, world)


def _with_list(page: str, frames: Frames, touches: TouchList, title: str, world: int) -> str:
    pairs = touches.of(world)
    held: list[dict[str, Any]] = []
    for pair in pairs[:MOST_LISTED]:
        at = [[seconds_between(frames, 0, place) for place in (t.first, t.deepest, t.last)] for t in pair.touches]
        labels = [touch_label(number, touch, frames.number) for number, touch in enumerate(pair.touches, 1)]
        held.append({"label": pair.label, "paths": pair.paths, "words": pair_words(pair), "touches": labels, "at": at})
    more = f"The {MOST_LISTED} deepest of {len(pairs)} pairs" if len(pairs) > MOST_LISTED else ""
    # In a script, "</" would end it.
    data = json.dumps({"pairs": held, "more": more}).replace("<", "\\u003c")
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    # Where nothing moves, viser's one button is in that corner.
    panel = panel.replace("$TOP", "1rem" if len(frames) > 1 else "4rem")
    panel = panel.replace("$TITLE", escape(title)).replace("$LEGEND", legend(touches.deepest)).replace("$DATA", data)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + panel + page[end:]
