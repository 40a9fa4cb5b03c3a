"""A report as one self-contained HTML page: text, tables, and charts as SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collidecli.analysis.differences import KINDS
from collidecli.escaping import printable_values
from collidecli.pages.between_frames import least_text, time_text
from collidecli.pages.pair_words import has_named_worlds, pair_words, world_name
from collidecli.pages.parts import (
    columns_table,
    figure_list,
    html_page,
    page_charts,
    part,
    section,
    table,
)
from collidecli.pages.quantities import (
    ResultDict,
    length,
    percent,
    plain,
    rate,
    seconds,
    seconds_text,
    shape_counts,
)
from collidecli.pages.tables import CALLS, more_text, stage_columns
from collidecli.pages.time_axis import time_axis
from collidecli.pages.world_tables import differing_columns, differing_rows, world_columns
from collidecli.scene.options import changed_options
from collidecli.verbs.audit.page import audit_section
from collidecli.verbs.audit.words import audit_headline
from collidecli.verbs.clearance.page import clearance_section
from collidecli.verbs.diff.cause_words import cause_columns, cause_lines
from collidecli.verbs.diff.one_sided_pairs import one_sided_lines
from collidecli.verbs.diff.words import (
    FIELDS,
    cell_text,
    frame_lines,
    group_lines,
    model_line,
    verdict,
)
from collidecli.verbs.label.page import labels_section
from collidecli.verbs.report.charts.costs import BEFORE, phases_of
from collidecli.verbs.report.charts.kinds import PAGE_KINDS
from collidecli.verbs.report.selectable import selectable
from collidecli.verbs.report.tables import group_figures
from collidecli.wording import count, memory, part_of, plural

MAX_ROWS = 60
"""Number of rows of the table of a chart; a chart over time has hundreds of points."""
MAX_OPTION_LENGTH = 200


def figures(result: ResultDict) -> list[dict[str, str]]:
    """Name, value and comment of the numbers at the top of the page."""
    timing = result["timing"]
    deepest = result["deepest"]
    frames = result["frames"]
    contacts = result["contacts"]
    span = [f"{plain(result['end'] - result['start'], 3)} s"] if frames > 1 else []
    span += [plural(result["worlds"], "world")] if result["worlds"] != 1 else []
    of_cells = f"{count(result['contact_pair_cells'])} summed over frames and worlds"
    listed = [
        (
            "contacts",
            count(contacts),
            _of_contacts(result),
        ),
        ("pairs of shapes", count(result["pairs"]["count"]), of_cells),
        ("frames", count(frames), ", ".join(span)),
        (
            "shapes",
            count(result["shapes"]),
            shape_counts(result["shape_types"]),
        ),
    ]
    # without contacts of shapes, two zeros would say nothing of them
    if groups := group_figures(result):
        listed = [*(listed[:2] if contacts else ()), *groups, *listed[2:]]
    if deepest is not None:
        where = f"{pair_words(deepest)}, frame {deepest['frame']}"
        where += f", {world_name(result, deepest['world'])}" if _names_worlds(result) else ""
        name = "deepest" if deepest["distance"] < 0.0 else "nearest"
        listed.append((name, length(abs(deepest["distance"])), where))
    if wall := timing.get("wall_seconds"):
        before = [
            f"{s['stage']} {seconds(s['seconds'])}"
            for s in timing["stages"]
            if s["stage"] in BEFORE
        ]
        more = f"; before it {', '.join(before)}" if before else ""
        speed = f"{rate(frames / wall)} frames/s on {timing.get('device', '')}"
        listed.append(("run", seconds(wall), f"{speed}, until the last row{more}"))
    return figure_list(listed)


def _of_contacts(result: ResultDict) -> str:
    """What there is to say of the number of contacts."""
    if result.get("touch_only"):
        return "pairs that touch, each counted once a frame"
    contacts = result["contacts"]
    return f"{percent(result['penetrating'] / contacts)} penetrate" if contacts else ""


def _depth(distance: float | None) -> str:
    """The depth of a pair as text; "" if its distance is not known."""
    return "" if distance is None else length(max(0.0, -distance))


def headlines(result: ResultDict) -> list[dict[str, str]]:
    """Verdicts about the baseline and of the audit, for the top of the page. kind: "equal" (good),
    "different", or "open" for an audit without limits."""
    verdicts = []
    if (difference := result["difference"]) is not None:
        words = verdict(difference)
        kind = "equal" if difference["equal"] else "different"
        words = f"{words[0].upper()}{words[1:]}."
        verdicts.append((kind, words, "difference", "Differences"))
    if (audit := result.get("audit")) is not None:
        verdicts.append((*audit_headline(audit), "audit", "Audit"))
    names = ("kind", "words", "section", "link")
    return [dict(zip(names, each, strict=True)) for each in verdicts]


def selection_line(result: ResultDict) -> str:
    """The selected worlds and shapes, as text; "" if all are."""
    selection = dict(result["selection"])
    worlds = [world_name(result, world) for world in selection.pop("worlds", ())]
    parts = [f"only {', '.join(worlds)}"] if worlds else []
    words = {"include": "pairs with", "exclude": "no pairs with", "bodies": "pairs with the body"}
    parts += [f"{words[name]} {' or '.join(patterns)}" for name, patterns in selection.items()]
    return "; ".join(parts)


def _names_worlds(result: ResultDict) -> bool:
    """Whether a contact's world is worth naming: there are others, or it has a name."""
    return (
        result["worlds"] > 1 or has_named_worlds(result) or bool(result["selection"].get("worlds"))
    )


def sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All sections with content. charts: the charts that were drawn."""
    listed = []
    for name, section_of in (
        ("difference", _difference),
        ("audit", audit_section),
        ("labels", labels_section),
        ("clearance", clearance_section),
    ):
        if result.get(name):
            listed.append(section_of(result[name]))
    listed += _by_world(result, charts)
    if "contacts" in charts:
        parts = [part(chart="contacts")]
        parts += [part(chart="depth", heading="Deepest penetration")] if "depth" in charts else []
        per_bin = result["series"]["frames_per_bin"]
        lead = f" of all {count(result['worlds'])} worlds together" if result["worlds"] > 1 else ""
        if per_bin > 1:
            lead += (
                f", {per_bin} frames per point: the line is their mean, the band ends at their"
                " maximum"
            )
        listed.append(
            section("time", "Over time", *parts, lead=lead and f"Contacts in a frame{lead}.")
        )
    if "pairs" in charts:
        listed.append(_pairs(result, charts))
    if "depths" in charts:
        below = result["contacts"] - result["penetrating"]
        lead = (
            f"{plural(result['penetrating'], 'contact')} penetrate; {count(below)} are within their"
            " gap."
        )
        listed.append(section("depths", "Depths", part(chart="depths"), lead=lead))
    listed += group_sections(result, charts)
    listed += _between_frames(result)
    if result["worst"]:
        lead = "The deepest contact of each pair, the deepest first."
        listed.append(section("worst", "Worst penetrations", part(table=_worst(result)), lead=lead))
    listed += _timing(result, charts)
    lines = part(lines=[*result["warnings"], *result["notes"]])
    timing = result["timing"]
    rows = [(name, result[name], True) for name in ("file", "scene", "scene_sha256")]
    rows += [
        ("recording", result["trajectory_sha256"] or "none", True),
        ("content", result["content_sha256"], True),
    ]
    rows.append(("format", f"collide-contacts {result['version']}, by {result['creator']}", False))
    rows += [
        (name.replace("_", " "), _option(value), True)
        for name, value in changed_options(result["config"]).items()
    ]
    names = ("device", "processor", "broad_phase")
    rows += [
        (name.replace("_", " "), str(timing[name]), False) for name in names if timing.get(name)
    ]
    if timing.get("peak_memory_bytes"):
        rows.append(("peak memory", memory(int(timing["peak_memory_bytes"])), False))
    return [*listed, section("source", "Source", part(properties=rows), lines)]


def _by_world(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The section of small multiples, if they were requested."""
    if "worlds" not in charts:
        return []
    given = result["by_world"]
    shown = len(given["listed"])
    lead = "Contacts in a frame over time of each world, with one scale; the grey line is the"
    lead += f" median of all {plural(shown + given['left_out'], 'world')}."
    if given["outliers"]:
        lead += (
            f" {plural(given['outliers'], 'outlier')}, far from the median in contacts, touches,"
            " depth, touches in no frame or differing touches, drawn first in another colour."
        )
    elif result["worlds"] > 1:
        lead += " No world is an outlier."
    if given["left_out"]:
        lead += f" {count(given['left_out'])} more are not drawn."
    parts = [part(chart="worlds")]
    if differing := differing_rows(given["listed"]):
        of_pairs = "Touches that most worlds of a template have and this one lacks, or the reverse."
        pairs = columns_table("Differing touches", differing_columns(0), differing)
        parts.append(part(heading="Differing touches", lead=of_pairs, table=pairs))
    return [section("worlds", "Worlds", *parts, lead=lead)]


def group_sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sections of the groups beside /rigid_contacts that have charts."""
    listed = []
    per_bin = result["groups"]["frames_per_bin"] if result["groups"] else 1
    if "areas" in charts:
        surfaces = result["groups"]["surfaces"]
        largest = "the largest of its frames" if per_bin > 1 else "a frame"
        shown = len(surfaces["listed"])
        pairs = part_of(shown, surfaces["pairs"], "pair")
        lead = f"{pairs}, the largest forces first; forces are nominal. A point is {largest}."
        headings = {
            "areas": "Area [m²]",
            "forces": "Force [N]",
            "pressures": "Mean pressure, force by area [Pa]",
        }
        parts = [part(chart=name, heading=heading) for name, heading in headings.items()]
        listed.append(section("surfaces", "Hydroelastic surfaces", *parts, lead=lead))
    if "particles" in charts:
        lead = "Contacts in a frame" + (
            f", mean of {per_bin} frames per point." if per_bin > 1 else "."
        )
        listed.append(
            section("particles", "Contacts of particles", part(chart="particles"), lead=lead)
        )
    return listed


def _between_frames(result: ResultDict) -> list[dict[str, Any]]:
    touches = result.get("between_frames")
    worlds = _names_worlds(result)
    if not touches:
        return []
    lead = (
        f"{plural(touches['count'], 'touch', 'touches')}, {count(touches['missed'])} of them in no"
        " recorded frame"
    )
    lead += (
        f", and {plural(touches['undecided'], 'undecided pair')}." if touches["undecided"] else "."
    )
    if len(touches["listed"]) < touches["count"]:
        lead += (
            f" Listed are {count(len(touches['listed']))}: those in no recorded frame before the"
            " others, the deepest first."
        )
    time = time_text(result["start"], result["end"], result["frames"] - 1)
    rows = []
    for touch in touches["listed"]:
        times = [time(touch[name]) for name in ("begin_time", "end_time")]
        row = [
            pair_words(touch),
            *times,
            least_text(touch["least_distance"]),
            "missed" if touch["missed"] else "recorded",
        ]
        rows.append([*row, world_name(result, touch["world"])] if worlds else row)
    columns = "pair,begin>,end>,least distance>,in frames" + (",world>" if worlds else "")
    parts = [part(table=table("Touches between frames", columns, rows))] if rows else []
    return [section("between", "Between frames", *parts, lead=lead)]


def _pairs(result: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    pairs = result["pairs"]
    depths = "pair-depths" in charts
    shown = len(pairs["listed"])
    of_particles = pairs["of_particles"]
    every = pairs["count"] + of_particles
    which = f"{plural(shown, 'pair').capitalize()}{'' if of_particles else ' of shapes'}"
    if shown < every:
        which = f"The {shown} with the most contacts of {plural(every, 'pair')}"
    if of_particles:
        which += (
            " of particles" if of_particles == every else f", {count(of_particles)} of particles"
        )
    parts = [part(chart="pairs", heading="Contacts in a frame" if depths else "")]
    parts += [part(chart="pair-depths", heading="Depth")] if depths else []
    return section(
        "pairs", "Pairs over time", *parts, lead=f"{which}, in the order of their first contacts."
    )


def _worst(result: ResultDict) -> dict[str, Any]:
    named = has_named_worlds(result)
    world = ["demonstration>" if named else "world>"] if _names_worlds(result) else []
    rows = []
    for contact in result["worst"]:
        where = (
            [world_name(result, contact["world"]) if named else str(contact["world"])]
            if world
            else []
        )
        row = [
            pair_words(contact),
            length(-contact["distance"]),
            str(contact["frame"]),
            f"{plain(contact['time'])} s",
        ]
        rows.append([*row, *where, count(contact["contacts"])])
    return table(
        "Worst penetrations",
        ("pair", "depth>", "frame>", "time>", *world, "contacts in all>"),
        rows,
    )


def _difference(difference: ResultDict) -> dict[str, Any]:
    frames = difference["frames"]
    first = difference["first"]
    listed = difference["pairs"]["listed"]
    rows = [
        ("baseline", difference["a"]["file"], True),
        ("compared", f"{plural(frames['compared'], 'frame')}, by {frames['by']}", False),
        *(
            [("frames that differ", count(frames["differing"]), False)]
            if frames["differing"]
            else []
        ),
        *([("first in", cell_text(first), False)] if first is not None else []),
    ]
    lines = [model_line(row) for row in difference["model"]["listed"]] + frame_lines(difference)
    parts = [part(properties=rows), part(lines=lines)]
    causes = part(lines=[*one_sided_lines(difference), *cause_lines(difference)])
    if not listed:
        parts.append(causes)
    else:
        of_causes = cause_columns(difference)
        pairs = [
            (
                pair_words(p),
                *(count(p[k]) for k in KINDS),
                cell_text(p["first"]),
                *(text(p) for _, _, text in of_causes),
            )
            for p in listed
        ]
        more = more_text(difference["pairs"]["differing"] - len(listed))
        of_pairs = table(
            "Differences by pair",
            ",".join(
                ["pair,missing>,extra>,changed>,first in", *(title for title, _, _ in of_causes)]
            ),
            pairs,
            more,
        )
        parts += [part(heading="By pair", chart="differences"), causes, part(table=of_pairs)]
    fields = [
        [text(row) for _, _, text in FIELDS] for row in difference["fields"] if row["differing"]
    ]
    if fields:
        of_fields = table("Deviations of fields", "field,different>,changed>,largest>", fields)
        parts += [part(heading="By field", chart="deviations"), part(table=of_fields)]
    parts.append(part(lines=[*group_lines(difference), *difference["notes"]]))
    return section("difference", "Compared with the baseline", *parts)


def _timing(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = []
    if "stages" in charts:
        lead = (
            "Stages of the engine are summed over its threads. Loading the scene and compiling"
            " kernels are before the run, not part of its time, and have a scale of their own."
        )
        listed.append(section("timing", "Stages of the run", part(chart="stages"), lead=lead))
    if "phases" in charts:
        lead = ""
        for first in phases_of(result)[:1]:
            if first["candidates"]:
                false = percent(1.0 - first["touching_pairs"] / first["candidates"])
                lead = (
                    f"A candidate is a pair with overlapping bounds; {false} of the candidates have"
                    " no contact."
                )
        if result["profile"] is None:
            lead += " This run used one broad phase; collide profile measures all of them."
        listed.append(
            section(
                "phases", "Candidates against contacts", part(chart="phases"), lead=lead.strip()
            )
        )
    return listed


def _option(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_OPTION_LENGTH else f"{text[:MAX_OPTION_LENGTH]}…"


def _contacts_over_time(result: ResultDict, bins: Sequence[int]) -> dict[str, Any]:
    """The table of the chart of contacts, of some bins of frames."""
    series = result["series"]
    times, label = time_axis(series)
    columns = [times, series["contacts"]]
    counted = "pairs that touch>"
    if not result.get("touch_only"):
        columns.append(series["penetrating"])
        counted = "contacts>,that penetrate>"
    rows = [[plain(values[n]) for values in columns] for n in bins]
    return table("Contacts over time", f"{label},{counted}", rows)


def page_tables(result: ResultDict) -> dict[str, dict[str, Any]]:
    """A table of the numbers of each chart, by kind."""
    series = result["series"]
    pairs = result["pairs"]["listed"]
    times, label = time_axis(series)
    some = range(0, len(times), max(1, -(-len(times) // MAX_ROWS)))
    stages = [stage for stage in result["timing"].get("stages", []) if stage["seconds"]]
    numbers = ("candidates", "touching_pairs", "contacts")
    worlds = (result.get("by_world") or {"listed": []})["listed"]
    return {
        "contacts": _contacts_over_time(result, some),
        "depth": table(
            "Depth over time",
            f"{label},deepest>",
            [(plain(times[n]), length(series["depth"][n])) for n in some],
        ),
        "pairs": table(
            "Pairs over time",
            "pair,contacts>,cells>,first frame>,last frame>",
            [
                (
                    pair_words(p),
                    *(count(p[k]) for k in ("contacts", "touches", "first_frame", "last_frame")),
                )
                for p in pairs
            ],
        ),
        "pair-depths": table(
            "Depth of pairs",
            "pair,deepest>,in frame>",
            [(pair_words(p), _depth(p["distance"]), str(p["frame"])) for p in pairs],
        ),
        "depths": table(
            "Depths",
            "from,to>,contacts>",
            [
                (
                    length(b["from"]),
                    length(b["to"]) if b["to"] is not None else "",
                    count(b["contacts"]),
                )
                for b in result["depths"]
            ],
        ),
        "worlds": columns_table("Worlds", world_columns(worlds), worlds),
        "stages": columns_table("Stages of the run", [*stage_columns(stages), CALLS], stages),
        "phases": table(
            "Broad phases",
            "broad phase,candidates>,with contacts>,contacts>,time of the engine>",
            [
                (p["name"], *(count(p[k]) for k in numbers), seconds_text(p.get("compute_seconds")))
                for p in phases_of(result)
            ],
        ),
    }


def report_page(result: ResultDict) -> str:
    """HTML page of collide.report/1, with escaped names. Raises InputError if the packages for
    plots are missing."""
    result = printable_values(result)
    charts = page_charts(result, PAGE_KINDS)
    return html_page(
        title=result["scene"] or Path(result["file"]).name,
        subtitle=f"Contacts of {Path(result['file']).name}",
        what="contacts",
        generator=result["creator"] or "collide",
        headlines=headlines(result),
        selection=selection_line(result),
        groups=selectable(result),
        charts=charts,
        tables=page_tables(result),
        figures=figures(result),
        sections=sections(result, charts),
    )
