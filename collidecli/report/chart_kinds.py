"""Every kind of chart: its function, its title, when there is something to draw, and what a screen reader says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collidecli.report.chart_style import PAGE, THEMES, Canvas, drawing, file_bytes, page_svg
from collidecli.report.words import length, seconds
from collidecli.scene.text_format import count, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Facts = Mapping[str, Any]
WIDE, NARROW = 920, 320
FILE_WIDTH, FILE_SCALE = 920, 2.0


@dataclass(frozen=True)
class ChartKind:
    """place: module and function. missing: why there is nothing to draw; "" where there is."""

    title: str
    place: tuple[str, str]
    words: Callable[[Facts], str]
    missing: Callable[[Facts], str]

    def draw(self, facts: Facts, canvas: Canvas) -> Figure:
        from importlib import import_module

        module, function = self.place
        return getattr(import_module(f"collidecli.report.{module}"), function)(facts, canvas)


def _no_contacts(facts: Facts) -> str:
    return "" if facts["contacts"] else "it has no contacts"


def _no_penetration(facts: Facts) -> str:
    return "" if facts["penetrating"] else "no contact penetrates"


def _no_stages(facts: Facts) -> str:
    return "" if any(one["seconds"] for one in facts["timing"].get("stages", [])) else "it has no timing of stages"


def _no_phases(facts: Facts) -> str:
    return (
        "" if facts["profile"] is not None or "candidate_count" in facts["timing"] else "it has no count of candidates"
    )


def _no_pairs_differ(facts: Facts) -> str:
    if facts["difference"] is None:
        return "there is nothing to compare it with; give --against"
    return "" if facts["difference"]["pairs"]["listed"] else "no pair differs"


def _no_field_differs(facts: Facts) -> str:
    if facts["difference"] is None:
        return "there is nothing to compare it with; give --against"
    return "" if any(one["histogram"] for one in facts["difference"]["fields"]) else "no field differs"


def _over_time(facts: Facts) -> str:
    most = max(facts["series"]["most"], default=0)
    sums = f"{count(facts['contacts'])} in all, {count(most)} at most"
    return f"Contacts in each of {plural(facts['frames'], 'frame')}: {sums}."


def _deepest(facts: Facts) -> str:
    deepest = facts["deepest"]
    if deepest is None or deepest["distance"] >= 0.0:
        return "Deepest penetration over time: none."
    return f"Deepest penetration over time: at most {length(-deepest['distance'])}, in frame {deepest['frame']}."


def _of_pairs(facts: Facts) -> str:
    listed, pairs = len(facts["pairs"]["listed"]), plural(facts["pairs"]["count"], "pair")
    return f"When {listed} of {pairs} touch, over {plural(facts['frames'], 'frame')}."


def _of_depths(facts: Facts) -> str:
    return f"Histogram of the depths of {plural(facts['penetrating'], 'contact')}."


def _of_stages(facts: Facts) -> str:
    stages = facts["timing"].get("stages", [])
    return "Seconds of each stage: " + ", ".join(
        f"{s['stage']} {seconds(s['seconds'])}" for s in stages if s["seconds"]
    )


KINDS = {
    "contacts": ChartKind("Contacts over time", ("charts", "contacts_chart"), _over_time, _no_contacts),
    "depth": ChartKind("Depth over time", ("charts", "depth_chart"), _deepest, _no_penetration),
    "pairs": ChartKind("Pairs over time", ("charts", "pairs_chart"), _of_pairs, _no_contacts),
    "pair-depths": ChartKind("Depth of pairs over time", ("charts", "pair_depths_chart"), _of_pairs, _no_penetration),
    "depths": ChartKind("Depths", ("charts", "depths_chart"), _of_depths, _no_penetration),
    "stages": ChartKind("Stages of the run", ("cost_charts", "stages_chart"), _of_stages, _no_stages),
    "phases": ChartKind(
        "Broad phases", ("cost_charts", "phases_chart"),
        lambda _: "Candidates, touching pairs and contacts of each broad phase.", _no_phases,
    ),
    "differences": ChartKind(
        "Differences by pair", ("cost_charts", "differences_chart"),
        lambda _: "Contacts missing, extra and changed, by pair of shapes.", _no_pairs_differ,
    ),
    "deviations": ChartKind(
        "Deviations of fields", ("cost_charts", "deviations_chart"),
        lambda _: "How many contacts are off by how much, by field.", _no_field_differs,
    ),
}  # fmt: skip


def page_charts(facts: Facts) -> dict[str, dict[str, str]]:
    """SVG elements by kind, "wide" and "narrow", of all that there is something to draw of."""
    found = {}
    with drawing():
        for name, kind in KINDS.items():
            if kind.missing(facts):
                continue
            found[name] = {
                size: page_svg(kind.draw(facts, Canvas(width, PAGE)), f"{name}-{size}", kind.words(facts))
                for size, width in (("wide", WIDE), ("narrow", NARROW))
            }
    return found


def chart_file(facts: Facts, name: str, form: str, theme: str, width: int = FILE_WIDTH) -> bytes:
    """One chart as "png" or "svg" bytes. width: in pixels of a page; a PNG has twice as many."""
    colours = THEMES[theme]
    with drawing():
        figure = KINDS[name].draw(facts, Canvas(width, colours))
        return file_bytes(figure, form, colours["paper"], FILE_SCALE if form == "png" else 1.0)
