"""Kinds of charts: title, drawing function, text for screen readers, and whether a result has data for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collidecli.escaping import printable_values
from collidecli.report.audit_words import audit_verdict
from collidecli.report.chart_style import PAGE, THEMES, Canvas, drawing, file_bytes, page_svg
from collidecli.report.words import ResultDict, length, seconds
from collidecli.scene.contact_groups import group_words
from collidecli.scene.text_format import count, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, NARROW = 920, 320
FILE_WIDTH, FILE_SCALE = 920, 2.0


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart. function: module and name. words: description. missing: why there is no data; "" if there is."""

    title: str
    function: tuple[str, str]
    words: Callable[[ResultDict], str]
    missing: Callable[[ResultDict], str]

    def draw(self, result: ResultDict, canvas: Canvas) -> Figure:
        """Draws the chart."""
        from importlib import import_module

        module, function = self.function
        return getattr(import_module(f"collidecli.report.{module}"), function)(result, canvas)


def _no_contacts(result: ResultDict) -> str:
    return "" if result["contacts"] else "it has no contacts"


def _no_penetration(result: ResultDict) -> str:
    return "" if result["penetrating"] else "no contact penetrates"


def _no_surfaces(result: ResultDict) -> str:
    surfaces = (result["groups"] or {}).get("surfaces")
    return "" if surfaces and surfaces["listed"] else "it has no hydroelastic surfaces"


def _no_particles(result: ResultDict) -> str:
    counts = (result["groups"] or {}).get("counts", {})
    return "" if any(held["rows"] for held in counts.values()) else "it has no contacts of particles"


def _of_surfaces(result: ResultDict) -> str:
    surfaces = result["groups"]["surfaces"]
    pairs = plural(surfaces["pairs"], "pair")
    return f"Hydroelastic surfaces of {len(surfaces['listed'])} of {pairs} over {plural(result['frames'], 'frame')}."


def _of_particles(result: ResultDict) -> str:
    words = (f"{count(held['rows'])} {group_words(name)}" for name, held in result["groups"]["counts"].items())
    return f"Contacts of particles in each of {plural(result['frames'], 'frame')}: {', '.join(words)} in all."


def _no_stages(result: ResultDict) -> str:
    return "" if any(one["seconds"] for one in result["timing"].get("stages", [])) else "it has no timing of stages"


def _no_phases(result: ResultDict) -> str:
    return (
        ""
        if result["profile"] is not None or "candidate_count" in result["timing"]
        else "it has no count of candidates"
    )


def _no_pairs_differ(result: ResultDict) -> str:
    if result["difference"] is None:
        return "it needs a baseline; give --against"
    return "" if result["difference"]["pairs"]["listed"] else "no pair differs"


def _no_field_differs(result: ResultDict) -> str:
    if result["difference"] is None:
        return "it needs a baseline; give --against"
    return "" if any(one["histogram"] for one in result["difference"]["fields"]) else "no field differs"


def _over_time(result: ResultDict) -> str:
    most = max(result["series"]["most"], default=0)
    sums = f"{count(result['contacts'])} in all, {count(most)} at most"
    return f"Contacts in each of {plural(result['frames'], 'frame')}: {sums}."


def _deepest(result: ResultDict) -> str:
    deepest = result["deepest"]
    if deepest is None or deepest["distance"] >= 0.0:
        return "Deepest penetration over time: none."
    return f"Deepest penetration over time: at most {length(-deepest['distance'])}, in frame {deepest['frame']}."


def _of_pairs(result: ResultDict) -> str:
    listed, pairs = len(result["pairs"]["listed"]), plural(result["pairs"]["count"], "pair")
    return f"When {listed} of {pairs} touch, over {plural(result['frames'], 'frame')}."


def _of_depths(result: ResultDict) -> str:
    return f"Histogram of the depths of {plural(result['penetrating'], 'contact')}."


def _of_stages(result: ResultDict) -> str:
    stages = result["timing"].get("stages", [])
    return "Seconds of each stage: " + ", ".join(
        f"{s['stage']} {seconds(s['seconds'])}" for s in stages if s["seconds"]
    )


KINDS = {
    "contacts": ChartKind("Contacts over time", ("charts", "contacts_chart"), _over_time, _no_contacts),
    "depth": ChartKind("Depth over time", ("charts", "depth_chart"), _deepest, _no_penetration),
    "pairs": ChartKind("Pairs over time", ("charts", "pairs_chart"), _of_pairs, _no_contacts),
    "pair-depths": ChartKind("Depth of pairs over time", ("charts", "pair_depths_chart"), _of_pairs, _no_penetration),
    "depths": ChartKind("Depths", ("charts", "depths_chart"), _of_depths, _no_penetration),
    "areas": ChartKind("Areas over time", ("group_charts", "areas_chart"), _of_surfaces, _no_surfaces),
    "forces": ChartKind("Forces over time", ("group_charts", "forces_chart"), _of_surfaces, _no_surfaces),
    "pressures": ChartKind("Pressures over time", ("group_charts", "pressures_chart"), _of_surfaces, _no_surfaces),
    "particles": ChartKind(
        "Contacts of particles over time", ("group_charts", "particles_chart"), _of_particles, _no_particles
    ),
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
        lambda _: "Number of contacts by field and deviation.", _no_field_differs,
    ),
}  # fmt: skip


PAGE_KINDS = KINDS | {
    "audit": ChartKind(
        "Audit", ("audit_chart", "audited_chart"),
        lambda result: f"Greatest depth over time and limits: {audit_verdict(result['audit'])}.",
        lambda result: "" if result.get("audit") else "it needs an audit; give --audit",
    ),
    "labels": ChartKind(
        "Labels", ("label_chart", "labelled_chart"),
        lambda result: f"When {plural(len(result['labels']['listed']), 'pair')} of labels touch.",
        lambda result: "" if (result.get("labels") or {}).get("listed") else "it has no labels; give --labels",
    ),
    "clearance": ChartKind(
        "Clearance", ("clearance_chart", "measured_chart"),
        lambda result: "Least distances over time; the least is "
        f"{length(result['clearance']['listed'][0]['least_distance'])}.",
        lambda result: "" if (result.get("clearance") or {}).get("listed") else "it has no distances; give --clearance",
    ),
}  # fmt: skip
"""Kinds of charts of a page: those of `collide plot`, and those of the results of other verbs."""


def page_charts(result: ResultDict) -> dict[str, dict[str, str]]:
    """SVG elements, "wide" and "narrow", by kind of chart, for all kinds with data."""
    found = {}
    with drawing():
        for name, kind in PAGE_KINDS.items():
            if kind.missing(result):
                continue
            found[name] = {}
            for size, width in (("wide", WIDE), ("narrow", NARROW)):
                canvas = Canvas(width, PAGE)
                figure = kind.draw(result, canvas)
                found[name][size] = page_svg(figure, f"{name}-{size}", kind.words(result), canvas.hovers)
    return found


def chart_file(result: ResultDict, name: str, form: str, theme: str, width: int = FILE_WIDTH) -> bytes:
    """A chart as a "png" or "svg" file. width: [px] of a page; a PNG has twice as many."""
    colours, result = THEMES[theme], printable_values(result)
    with drawing():
        canvas = Canvas(width, colours)
        figure = KINDS[name].draw(result, canvas)
        return file_bytes(figure, form, colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
