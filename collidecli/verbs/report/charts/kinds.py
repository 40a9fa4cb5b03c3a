"""The kinds of charts of `collide plot`, and of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from collidecli.pages.chart_kinds import ChartKind, missing_unless
from collidecli.pages.quantities import ResultDict, length, seconds
from collidecli.scene.contact_columns import group_words
from collidecli.verbs.audit.chart import AUDIT_CHART
from collidecli.verbs.clearance.chart import CLEARANCE_CHART
from collidecli.verbs.label.chart import LABEL_CHART
from collidecli.verbs.report.charts.contacts import (
    contacts_chart,
    depth_chart,
    depths_chart,
    pair_depths_chart,
    pairs_chart,
)
from collidecli.verbs.report.charts.costs import (
    missing_phases,
    phases_chart,
    stages_chart,
    timed_stages,
)
from collidecli.verbs.report.charts.differences import deviations_chart, differences_chart
from collidecli.verbs.report.charts.groups import particles_chart, surfaces_chart
from collidecli.verbs.report.charts.worlds import WORLDS_CHART
from collidecli.wording import count, part_of, plural

if TYPE_CHECKING:
    from collidecli.pages.chart_kinds import Kinds


def missing_unless_compared(
    words: str, rows: Callable[[ResultDict], Iterable[object]]
) -> Callable[[ResultDict], str]:
    """The function `missing` of a kind of chart of differences. rows: of a comparison, none without
    data."""

    def missing(result: ResultDict) -> str:
        if result["difference"] is None:
            return "it needs a baseline; give --against"
        return "" if any(rows(result["difference"])) else words

    return missing


def _has_particle_rows(result: ResultDict) -> bool:
    return any(one["rows"] for one in _groups(result, "counts").values())


def _of_shapes(words: str, result: ResultDict) -> str:
    """Why a set without contacts of shapes has no data: `words`, or that it has those of
    particles."""
    if result["contacts"] or not _has_particle_rows(result):
        return words
    return "it has no contacts of shapes; --kind particles draws those of particles"


def _no_contacts(result: ResultDict) -> str:
    return "" if result["contacts"] else _of_shapes("it has no contacts", result)


def _no_penetration(result: ResultDict) -> str:
    if result.get("touch_only"):
        return "depths are not known in a set of a run with --touch-only"
    return "" if result["penetrating"] else _of_shapes("no contact penetrates", result)


def _no_pairs(result: ResultDict) -> str:
    return "" if result["pairs"]["listed"] else "it has no contacts"


def _no_deep_pair(result: ResultDict) -> str:
    if result.get("touch_only"):
        return _no_penetration(result)
    depths = (depth for pair in result["pairs"]["listed"] for depth in pair["depth"])
    is_deep = result["penetrating"] or any(depth > 0.0 for depth in depths)
    return "" if is_deep else "no contact penetrates"


def _of_pairs(result: ResultDict) -> str:
    listed = len(result["pairs"]["listed"])
    of_particles = result["pairs"]["of_particles"]
    pairs = part_of(listed, result["pairs"]["count"] + of_particles, "pair")
    touch = "touches" if listed == 1 else "touch"
    words = f"When {pairs}{'' if of_particles else ' of shapes'} {touch}, over"
    words += f" {plural(result['frames'], 'frame')}."
    return f"{words} {count(of_particles)} of particles." if of_particles else words


def _deepest(result: ResultDict) -> str:
    deepest = result["deepest"]
    if deepest is None or deepest["distance"] >= 0.0:
        return "Deepest penetration over time: none."
    return (
        f"Deepest penetration over time: at most {length(-deepest['distance'])}, in frame"
        f" {deepest['frame']}."
    )


def _of_particles(result: ResultDict) -> str:
    words = (
        f"{count(of_group['rows'])} {group_words(name)}"
        for name, of_group in result["groups"]["counts"].items()
    )
    return (
        f"Contacts of particles in each of {plural(result['frames'], 'frame')}: {', '.join(words)}"
        " in all."
    )


def _of_surface(field: str, unit: str, words: str) -> ChartKind:
    """A kind of chart of contact surfaces, see `surfaces_chart`."""

    def about(result: ResultDict) -> str:
        surfaces = result["groups"]["surfaces"]
        pairs = part_of(len(surfaces["listed"]), surfaces["pairs"], "pair")
        frames = plural(result["frames"], "frame")
        return f"Hydroelastic surfaces of {pairs} over {frames}."

    missing = missing_unless(
        "it has no hydroelastic surfaces", lambda result: _groups(result, "surfaces").get("listed")
    )
    return ChartKind(partial(surfaces_chart, field=field, unit=unit, words=words), about, missing)


def _groups(result: ResultDict, name: str) -> ResultDict:
    return (result["groups"] or {}).get(name) or {}


KINDS: Kinds = {
    "contacts": ChartKind(
        contacts_chart,
        lambda result: (
            f"Contacts in each of {plural(result['frames'], 'frame')}: {count(result['contacts'])}"
            f" in all, {count(max(result['series']['most'], default=0))} at most."
        ),
        _no_contacts,
    ),
    "depth": ChartKind(depth_chart, _deepest, _no_penetration),
    "pairs": ChartKind(pairs_chart, _of_pairs, _no_pairs),
    "pair-depths": ChartKind(pair_depths_chart, _of_pairs, _no_deep_pair),
    "depths": ChartKind(
        depths_chart,
        lambda result: f"Histogram of the depths of {plural(result['penetrating'], 'contact')}.",
        _no_penetration,
    ),
    "areas": _of_surface("area", "m²", "area"),
    "forces": _of_surface("force", "N", "nominal force"),
    "pressures": _of_surface("pressure", "Pa", "mean pressure"),
    "particles": ChartKind(
        particles_chart,
        _of_particles,
        missing_unless(
            "it has no contacts of particles",
            _has_particle_rows,
        ),
    ),
    "stages": ChartKind(
        stages_chart,
        lambda result: (
            "Seconds of each stage: "
            + ", ".join(f"{one['stage']} {seconds(one['seconds'])}" for one in timed_stages(result))
        ),
        missing_unless("it has no timing of stages", timed_stages),
    ),
    "phases": ChartKind(
        phases_chart,
        lambda _: "Candidates, touching pairs and contacts of each broad phase.",
        missing_phases,
    ),
    "differences": ChartKind(
        differences_chart,
        lambda _: "Contacts missing, extra and changed, by pair of shapes.",
        missing_unless_compared("no pair differs", lambda found: found["pairs"]["listed"]),
    ),
    "deviations": ChartKind(
        deviations_chart,
        lambda _: "Number of contacts by field and deviation.",
        missing_unless_compared(
            "no field differs", lambda found: (one["histogram"] for one in found["fields"])
        ),
    ),
}
PAGE_KINDS: Kinds = {
    **KINDS,
    "audit": AUDIT_CHART,
    "labels": LABEL_CHART,
    "clearance": CLEARANCE_CHART,
    "worlds": WORLDS_CHART,
}
"""Kinds of charts of a page: those of `collide plot`, those of the results of other verbs, and
small multiples of worlds."""
