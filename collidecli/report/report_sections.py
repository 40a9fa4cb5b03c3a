"""Text and tables of a report, for the template of the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from collidecli.report.audit_words import audit_verdict
from collidecli.report.chart_words import time_axis
from collidecli.report.cost_charts import BEFORE, phases_of
from collidecli.report.diff_words import KINDS, cell_text, deviation, frame_lines, group_lines, model_line, verdict
from collidecli.report.motion_sections import motion_sections
from collidecli.report.report_parts import part, section, table
from collidecli.report.words import ResultDict, length, percent, rate, seconds
from collidecli.scene.run_options import changed_options
from collidecli.scene.text_format import count, memory, plural

MAX_ROWS = 60
"""Number of rows of the table of a chart; a chart over time has hundreds of points."""
MAX_OPTION_LENGTH = 200
PAIR_COUNTS = ("contacts", "touches", "first_frame", "last_frame")


def _pair(one: ResultDict) -> str:
    return f"{one['shape0']} and {one['shape1']}"


def figures(result: ResultDict) -> list[dict[str, str]]:
    """Name, value and comment of the numbers at the top of the page."""
    timing, deepest = result["timing"], result["deepest"]
    frames = result["frames"]
    span = f"{result['end'] - result['start']:.3g} s" if frames > 1 else ""
    found = [
        (
            "contacts",
            count(result["contacts"]),
            f"{percent(result['penetrating'] / result['contacts'])} penetrate" if result["contacts"] else "",
        ),
        (
            "pairs of shapes",
            count(result["pairs"]["count"]),
            f"{count(result['contact_pair_cells'])} summed over frames and worlds",
        ),
        (
            "frames",
            count(frames),
            ", ".join(filter(None, [span, plural(result["worlds"], "world") if result["worlds"] != 1 else ""])),
        ),
        ("shapes", count(result["shapes"]), ", ".join(f"{n} {kind}" for kind, n in result["shape_types"].items())),
    ]
    if deepest is not None:
        deep = deepest["distance"] < 0.0
        name = "deepest" if deep else "nearest"
        where = f"{deepest['shape0']} and {deepest['shape1']}, frame {deepest['frame']}"
        where += f", {_world(result, deepest['world'])}" if _names_worlds(result) else ""
        found.append((name, length(abs(deepest["distance"])), where))
    if timing.get("wall_seconds"):
        wall = timing["wall_seconds"]
        before = [f"{one['stage']} {seconds(one['seconds'])}" for one in timing["stages"] if one["stage"] in BEFORE]
        more = f"; before it {', '.join(before)}" if before else ""
        found.append(("run", seconds(wall), f"{rate(frames / wall)} frames/s on {timing.get('device', '')}{more}"))
    return [{"name": name, "value": value, "more": more} for name, value, more in found]


def headlines(result: ResultDict) -> list[dict[str, str]]:
    """Verdicts about the baseline and of the audit, for the top of the page. kind: "equal" (good) or "different"."""
    found = []
    if (difference := result["difference"]) is not None:
        found.append(_headline(verdict(difference), difference["equal"], "difference", "Differences"))
    if (audit := result.get("audit")) is not None:
        found.append(_headline(f"audit {audit_verdict(audit)}", audit["passed"], "audit", "Audit"))
    return found


def _headline(words: str, is_good: bool, section: str, link: str) -> dict[str, str]:
    kind = "equal" if is_good else "different"
    return {"kind": kind, "words": f"{words[0].upper()}{words[1:]}.", "section": section, "link": link}


def selection_line(result: ResultDict) -> str:
    """The selected worlds and shapes, as text; "" if all are."""
    held = dict(result["selection"])
    worlds = [_world(result, world) for world in held.pop("worlds", ())]
    parts = [f"only {', '.join(worlds)}"] if worlds else []
    words = {"include": "pairs with", "exclude": "no pairs with", "bodies": "pairs with the body"}
    parts += [f"{words[name]} {' or '.join(patterns)}" for name, patterns in held.items()]
    return "; ".join(parts)


def _names_worlds(result: ResultDict) -> bool:
    """Whether a contact's world is worth naming: there are others, or it is a demonstration."""
    return result["worlds"] > 1 or bool(result["demonstrations"] or result["selection"].get("worlds"))


def _world(result: ResultDict, world: int) -> str:
    """A world, or the demonstration in it."""
    names = result["demonstrations"]
    return names[world] if names else f"world {world}"


def sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All sections with content. charts: the charts that were drawn."""
    found = []
    if result["difference"] is not None:
        found.append(_difference(result["difference"], charts))
    found += motion_sections(result, charts)
    if "contacts" in charts:
        parts = [part(chart="contacts")]
        parts += [part(chart="depth", heading="Deepest penetration")] if "depth" in charts else []
        found.append(section("time", "Over time", *parts, lead=_bins(result["series"], result)))
        found.append(_pairs(result, charts))
    if "depths" in charts:
        below = result["contacts"] - result["penetrating"]
        lead = f"{plural(result['penetrating'], 'contact')} penetrate; {count(below)} are within their gap."
        found.append(section("depths", "Depths", part(chart="depths"), lead=lead))
    found += group_sections(result, charts)
    found += _between_frames(result)
    if result["worst"]:
        lead = "The deepest contact of each pair, the deepest first."
        found.append(section("worst", "Worst penetrations", part(table=_worst(result)), lead=lead))
    found += _timing(result, charts)
    found.append(
        section(
            "source",
            "Source",
            part(properties=_source(result)),
            part(lines=[*result["warnings"], *result["notes"]]),
        )
    )
    return found


def group_sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sections of the groups beside /rigid_contacts that have charts."""
    found, per_bin = [], result["groups"]["frames_per_bin"] if result["groups"] else 1
    if "areas" in charts:
        surfaces = result["groups"]["surfaces"]
        largest = "the largest of its frames" if per_bin > 1 else "a frame"
        shown, pairs = len(surfaces["listed"]), plural(surfaces["pairs"], "pair")
        lead = f"{shown} of {pairs}, the largest forces first; forces are nominal. A point is {largest}."
        headings = {"areas": "Area [m²]", "forces": "Force [N]", "pressures": "Mean pressure, force by area [Pa]"}
        parts = [part(chart=name, heading=heading) for name, heading in headings.items()]
        found.append(section("surfaces", "Hydroelastic surfaces", *parts, lead=lead))
    if "particles" in charts:
        lead = "Contacts in a frame" + (f", mean of {per_bin} frames per point." if per_bin > 1 else ".")
        found.append(section("particles", "Contacts of particles", part(chart="particles"), lead=lead))
    return found


def _between_frames(result: ResultDict) -> list[dict[str, Any]]:
    """Section of the touches between frames, those in no frame first."""
    held = result.get("between_frames")
    if not held:
        return []
    lead = f"{plural(held['count'], 'touch', 'touches')}, {count(held['missed'])} of them in no recorded frame"
    lead += f", and {plural(held['undecided'], 'undecided pair')}." if held["undecided"] else "."
    if len(held["listed"]) < held["count"]:
        lead += f" The first {len(held['listed'])} are listed."
    rows = [
        (
            _pair(one),
            f"{one['begin_time']:.6g} s",
            f"{one['end_time']:.6g} s",
            length(one["least_distance"]),
            "missed" if one["missed"] else "recorded",
            *([_world(result, one["world"])] if _names_worlds(result) else []),
        )
        for one in held["listed"]
    ]
    columns = "pair,begin>,end>,least distance>,in frames" + (",world>" if _names_worlds(result) else "")
    parts = [part(table=table("Touches between frames", columns, rows))] if rows else []
    return [section("between", "Between frames", *parts, lead=lead)]


def _bins(series: ResultDict, result: ResultDict) -> str:
    per_bin = series["frames_per_bin"]
    of = f" of all {count(result['worlds'])} worlds together" if result["worlds"] > 1 else ""
    binned = (
        f", {per_bin} frames per point: the line is their mean, the band ends at their maximum" if per_bin > 1 else ""
    )
    return f"Contacts in a frame{of}{binned}." if of or binned else ""


def _pairs(result: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    pairs = result["pairs"]
    shown = len(pairs["listed"])
    which = (
        f"The {shown} with the most contacts of {plural(pairs['count'], 'pair')}"
        if shown < pairs["count"]
        else f"{plural(shown, 'pair').capitalize()} of shapes"
    )
    lead = f"{which}, in the order of their first contacts."
    parts = [part(chart="pairs", heading="Contacts in a frame" if "pair-depths" in charts else "")]
    if "pair-depths" in charts:
        parts.append(part(chart="pair-depths", heading="Depth"))
    return section("pairs", "Pairs over time", *parts, lead=lead)


def _worst(result: ResultDict) -> dict[str, Any]:
    worlds, named = _names_worlds(result), bool(result["demonstrations"])
    rows = [
        (
            _pair(one),
            length(-one["distance"]),
            str(one["frame"]),
            f"{one['time']:.4g} s",
            *([_world(result, one["world"]) if named else str(one["world"])] if worlds else []),
            count(one["contacts"]),
        )
        for one in result["worst"]
    ]
    return table(
        "Worst penetrations",
        "pair,depth>,frame>,time>"
        + (",demonstration>" if named else ",world>" if worlds else "")
        + ",contacts in all>",
        rows,
    )


def _difference(found: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    """The section about differences. found: of schema collide.diff/1."""
    frames, first = found["frames"], found["first"]
    rows = [
        ("baseline", found["a"]["file"], True),
        ("compared", f"{plural(frames['compared'], 'frame')}, by {frames['by']}", False),
    ]
    if frames["differing"]:
        rows.append(("frames that differ", count(frames["differing"]), False))
    if first is not None:
        rows.append(("first in", cell_text(first), False))
    lines = [model_line(one) for one in found["model"]["listed"]] + frame_lines(found)
    parts = [part(properties=rows), part(lines=lines)]
    listed = found["pairs"]["listed"]
    if listed:
        more = found["pairs"]["differing"] - len(listed)
        columns = "pair,missing>,extra>,changed>,first in"
        of_pairs = table(
            "Differences by pair",
            columns,
            [(_pair(p), *(count(p[k]) for k in KINDS), cell_text(p["first"])) for p in listed],
            f"and {plural(more, 'more pair')}" if more else "",
        )
        parts += [part(heading="By pair", chart="differences" if "differences" in charts else ""), part(table=of_pairs)]
    fields = [one for one in found["fields"] if one["differing"]]
    if fields:
        of_fields = table(
            "Deviations of fields",
            "field,different>,changed>,largest>",
            [
                (f["name"], count(f["differing"]), count(f["changed"]), deviation(f["largest"], f["unit"]))
                for f in fields
            ],
        )
        parts += [part(heading="By field", chart="deviations" if "deviations" in charts else ""), part(table=of_fields)]
    parts.append(part(lines=[*group_lines(found), *found["notes"]]))
    return section("difference", "Compared with the baseline", *parts)


def _timing(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    if "stages" in charts:
        lead = (
            "Stages of the engine are summed over its threads. Loading the scene and compiling kernels are before the "
            "run, not part of its time, and have a scale of their own."
        )
        found.append(section("timing", "Stages of the run", part(chart="stages"), lead=lead))
    if "phases" in charts:
        phases = phases_of(result)
        first = phases[0] if phases else None
        lead = ""
        if first is not None and first["candidates"]:
            false = 1.0 - first["touching_pairs"] / first["candidates"]
            lead = f"A candidate is a pair with overlapping bounds; {percent(false)} of the candidates have no contact."
        if result["profile"] is None:
            lead += " This run used one broad phase; collide profile measures all of them."
        found.append(section("phases", "Candidates against contacts", part(chart="phases"), lead=lead.strip()))
    return found


def _source(result: ResultDict) -> list[tuple[str, str, bool]]:
    timing = result["timing"]
    rows = [
        ("file", result["file"], True),
        ("scene", result["scene"], True),
        ("scene_sha256", result["scene_sha256"], True),
    ]
    rows += [("recording", result["trajectory_sha256"] or "none", True), ("content", result["content_sha256"], True)]
    rows.append(("format", f"collide-contacts {result['version']}, by {result['creator']}", False))
    given = changed_options(result["config"])
    rows += [(name.replace("_", " "), _option(value), True) for name, value in given.items()]
    for name in ("device", "processor", "broad_phase"):
        if timing.get(name):
            rows.append((name.replace("_", " "), str(timing[name]), False))
    if timing.get("peak_memory_bytes"):
        rows.append(("peak memory", memory(int(timing["peak_memory_bytes"])), False))
    return rows


def _option(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_OPTION_LENGTH else f"{text[:MAX_OPTION_LENGTH]}…"


def page_tables(result: ResultDict) -> dict[str, dict[str, Any]]:
    """A table of the numbers of each chart, by kind."""
    found = {}
    series = result["series"]
    times, label = time_axis(series)
    some = range(0, len(times), max(1, -(-len(times) // MAX_ROWS)))
    found["contacts"] = table(
        "Contacts over time",
        f"{label},contacts>,that penetrate>",
        [(f"{times[n]:.4g}", f"{series['contacts'][n]:.4g}", f"{series['penetrating'][n]:.4g}") for n in some],
    )
    found["depth"] = table(
        "Depth over time", f"{label},deepest>", [(f"{times[n]:.4g}", length(series["depth"][n])) for n in some]
    )
    found["pairs"] = table(
        "Pairs over time",
        "pair,contacts>,cells>,first frame>,last frame>",
        [(_pair(p), *(count(p[k]) for k in PAIR_COUNTS)) for p in result["pairs"]["listed"]],
    )
    found["pair-depths"] = table(
        "Depth of pairs",
        "pair,deepest>,in frame>",
        [(_pair(p), length(max(0.0, -p["distance"])), str(p["frame"])) for p in result["pairs"]["listed"]],
    )
    found["depths"] = table(
        "Depths",
        "from,to>,contacts>",
        [
            (length(b["from"]), length(b["to"]) if b["to"] is not None else "", count(b["contacts"]))
            for b in result["depths"]
        ],
    )
    stages = [one for one in result["timing"].get("stages", []) if one["seconds"]]
    rows = [(one["stage"].replace("_", " "), seconds(one["seconds"]), count(one["calls"])) for one in stages]
    found["stages"] = table("Stages of the run", "stage,time>,calls>", rows)
    rows = [
        (
            p["name"],
            *(count(p[k]) for k in ("candidates", "touching_pairs", "contacts")),
            seconds(p["compute_seconds"]) if "compute_seconds" in p else "",
        )
        for p in phases_of(result)
    ]
    found["phases"] = table(
        "Broad phases", "broad phase,candidates>,with contacts>,contacts>,time of the engine>", rows
    )
    return found
