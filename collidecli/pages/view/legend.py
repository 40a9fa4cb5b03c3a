"""The legend of a page, and what else its panel says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from collidecli.escaping import script_json
from collidecli.pages.quantities import length, with_prefix
from collidecli.pages.view.colours import AGAINST, DEPTHS, GAP, SELF_COLOUR, css
from collidecli.pages.view.contact_map import FARTHER, STEPS, level_colours
from collidecli.pages.view.content_policy import with_policy
from collidecli.pages.view.frames import ViewFrames

SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")


def ended_words(name: str) -> str:
    """Status of a frame outside the demonstrations of a world."""
    return f"ended: {name} has no recorded frame here"


def legend(deepest: float, frames: ViewFrames) -> str:
    """Legend of the colours, as HTML."""
    surfaces = frames.surface_scale
    swatches = "" if frames.touch_only else _gradient("depth", length(deepest))
    if surfaces is not None:
        swatches += _gradient(
            f"{surfaces.quantity} of surfaces", with_prefix(surfaces.greatest, surfaces.unit)
        )
    if not frames.touch_only:
        swatches += _swatch(GAP, "in the gap: not touching")
    if frames.has_self_contacts:
        swatches += _swatch(SELF_COLOUR, "self-contact of cloths or soft bodies")
    if (shown := frames.contact_map) is not None:
        near = level_colours()[1 : 1 + STEPS]
        swatches += _gradient("distance of the map", "0", near, length(shown.reach))
        swatches += _swatch(FARTHER, "map: farther, or no distance")
    if frames.against:
        swatches += _swatch(AGAINST, escape(f"of {frames.against}"))
    return swatches


def _gradient(
    name: str, end: str, colours: Sequence[tuple[int, int, int]] = DEPTHS, begin: str = "0"
) -> str:
    depths = ", ".join(map(css, colours))
    bar = f"height: 0.7em; border-radius: 0.2em; background: linear-gradient(90deg, {depths})"
    ends = f"<span>{begin}</span><span>{name}</span><span>{end}</span>"
    return (
        f'<div style="{bar}"></div><div style="display: flex; justify-content:'
        f' space-between">{ends}</div>'
    )


def _swatch(colour: tuple[int, int, int], text: str) -> str:
    return f'<div><span class="dot" style="background: {css(colour)}"></span>{text}</div>'


def with_panel(
    page: str, data: dict[str, Any], title: str, legend_html: str, boxes: Sequence[str]
) -> str:
    """The page of viser with the panel of controls, the legend and the data of its script."""
    panel = (HERE / "page_panel.html").read_text(encoding="utf-8")
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "LEGEND": legend_html,
        "BOXES": "".join(
            f'\n      <label><input type="checkbox" id="collide-{name}" checked>'
            f" {BOXES[name]}</label>"
            for name in boxes
        ),
        "SCRIPT": script,
        "DATA": script_json(json.dumps(data, separators=(",", ":"))),
    }
    # In one pass, as a title may contain $DATA.
    panel = re.sub(r"\$(TITLE|LEGEND|BOXES|SCRIPT|DATA)\b", lambda match: parts[match[1]], panel)
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>", 1)
    end = page.rindex("</body>")
    return with_policy(page[:end] + panel + page[end:])


HERE = Path(__file__).parent
SCRIPTS = ("page_scene.js", "page_groups.js", "page_map.js", "page_controls.js")
BOXES = {
    "visuals": "Visual meshes",
    "surfaces": "Surfaces",
    "particles": "Particles",
    "self_contacts": "Self-contacts",
    "map": "Contact map",
}
"""Labels of the checkboxes of what a set or scene may have."""
