"""The intervals of a pair as marks along the time of a view, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from collidecli.report.view.touch_list import Touch

TOUCH, DEEPEST, NOW = "#e2372a", "#920a46", "#1b2530"
LEAST_WIDTH = 0.4
"""Least width of a mark [% of the bar]."""


def touch_bar(touches: Sequence[Touch], frame_count: int, index: int) -> str:
    """SVG of a bar over all frames: a mark for each interval, darker at its deepest frame, and a line at `index`."""
    step = 100.0 / max(1, frame_count)

    def rect(at: float, width: float, colour: str, name: str) -> str:
        return f'<rect class="{name}" x="{at:.3f}%" width="{width:.3f}%" height="100%" fill="{colour}"/>'

    marks = [rect(step * t.first, max(LEAST_WIDTH, step * (t.last + 1 - t.first)), TOUCH, "touch") for t in touches]
    marks += [rect(step * t.deepest, max(LEAST_WIDTH, step), DEEPEST, "deepest") for t in touches]
    marks.append(rect(step * (index + 0.5), LEAST_WIDTH, NOW, "now"))
    style = "display: block; width: 100%; height: 0.6em; background: #e2e7ec; border-radius: 0.15em"
    return f'<svg id="collide-touches" role="img" aria-label="Touches over time" style="{style}">{"".join(marks)}</svg>'
