"""A report as one self-contained HTML page: text, tables, and charts as SVG."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidecli.errors import InputError
from collidecli.report import results
from collidecli.report.charts import (
    BEFORE,
    NARROW,
    PAGE,
    PAGE_KINDS,
    WIDE,
    Canvas,
    Hover,
    Kinds,
    drawing,
    phases_of,
    time_axis,
    with_hovers,
)
from collidecli.report.diff import FIELDS, KINDS, cell_text, frame_lines, group_lines, model_line, verdict
from collidecli.report.tables import (
    STAGE_COLUMNS,
    Column,
    ResultDict,
    length,
    moment,
    more_text,
    pair_labels,
    percent,
    plain,
    rate,
    seconds,
    seconds_text,
    short_names,
)
from collidecli.scene.options import changed_options
from collidecli.scene.tables import group_words
from collidecli.texts import count, memory, plural, printable_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Tables, parts and sections of a report, for the template of the page.


def table(name: str, columns: str | Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> dict[str, Any]:
    """A table for the template. columns: titles, or one text with commas; those that end with > are right-aligned."""
    given = columns.split(",") if isinstance(columns, str) else columns
    titles = [{"title": title.rstrip(">"), "right": title.endswith(">")} for title in given]
    return {"name": name, "columns": titles, "rows": [list(row) for row in rows], "more": more}


def columns_table(name: str, columns: Sequence[Column], rows: Iterable[ResultDict], more: str = "") -> dict[str, Any]:
    """A table for the template of the columns that a terminal has."""
    titles = [title + (">" if side == "right" else "") for title, side, _ in columns]
    return table(name, titles, [[text(row) for _, _, text in columns] for row in rows], more)


def part(**given: Any) -> dict[str, Any]:
    """A part of a section; by default its entries are empty."""
    empty = {"heading": "", "lead": "", "chart": "", "lines": [], "table": None, "properties": [], "files": []}
    return {**empty, **given}


def section(name: str, title: str, *parts: dict[str, Any], lead: str = "") -> dict[str, Any]:
    """A section of the page. name: its id."""
    return {"id": name, "title": title, "lead": lead, "parts": list(parts)}


# Sections of a report about an audit, labels and least distances of the motion.

MAX_PAIRS = 12


def _audit(result: ResultDict) -> dict[str, Any]:
    """Depth over time with limits and the mask, the checks, the findings and the deepest pairs of collide.audit/1."""
    lead = f"{results.audit_words(result).capitalize()}. "
    lead += f"Usable frames: {results.usable_text(result)}; the others are shaded."
    failures = [line for finding in results.findings(result) for line in finding.lines]
    pairs, more = result["pairs"][:MAX_PAIRS], more_text(len(result["pairs"]) - MAX_PAIRS)
    deepest = columns_table("Deepest pairs", [("pair", "left", _pair), *results.DEEPEST, *results.OVER], pairs, more)
    parts = [part(chart="audit"), part(table=columns_table("Checks", results.CHECK_COLUMNS, result["checks"]))]
    parts += [part(heading="Findings", lines=failures)] if failures else []
    parts += [part(heading="Deepest pairs", table=deepest)] if pairs else []
    return section("audit", "Audit", *parts, lead=lead)


def _labels(result: ResultDict) -> dict[str, Any]:
    options, per_bin = result["options"], result["series"]["frames_per_bin"]
    lead = f"{plural(result['labelled'], 'label')}, {results.label_rule(options)}"
    lead += f"; a column is {plural(per_bin, 'frame')}." if per_bin > 1 else "."
    if len(result["listed"]) < result["pairs"]:
        lead += f" {len(result['listed'])} of {plural(result['pairs'], 'pair')} are shown."
    pair: Column = ("pair", "left", lambda label: f"{label['sensor']} and {label['partner']}")
    labelled = columns_table("Labels", [pair, *results.label_columns(options)], result["listed"])
    parts = [part(table=labelled)] if result["listed"] else []
    return section("labels", "Labels", part(chart="labels"), *parts, lead=lead)


def _clearance(result: ResultDict) -> dict[str, Any]:
    of_bodies = result["by"] == "body"
    lead = f"Without a cutoff, of {plural(result['pairs'], 'pair')} of shapes; negative is penetration."
    if len(result["listed"]) < result["items"]:
        items = plural(result["items"], *(("body", "bodies") if of_bodies else ("pair",)))
        lead += f" The nearest {len(result['listed'])} of {items} are shown."
    rows = []
    for item in result["listed"]:
        row = [_pair(item), length(item["least_distance"]), str(item["frame"]), str(item["world"])]
        rows.append([item["body"], *row] if of_bodies else row)
    columns = ("body," if of_bodies else "") + "pair,least distance>,in frame>,world>"
    parts = [part(table=table("Nearest", columns, rows))] if rows else []
    return section("clearance", "Clearance", part(chart="clearance"), *parts, lead=lead)


# Text and tables of a report, for the template of the page.

MAX_ROWS = 60
"""Number of rows of the table of a chart; a chart over time has hundreds of points."""
MAX_OPTION_LENGTH = 200


def _pair(row: ResultDict) -> str:
    return f"{row['shape0']} and {row['shape1']}"


def figures(result: ResultDict) -> list[dict[str, str]]:
    """Name, value and comment of the numbers at the top of the page."""
    timing, deepest, frames, contacts = result["timing"], result["deepest"], result["frames"], result["contacts"]
    span = [f"{plain(result['end'] - result['start'], 3)} s"] if frames > 1 else []
    span += [plural(result["worlds"], "world")] if result["worlds"] != 1 else []
    of_cells = f"{count(result['contact_pair_cells'])} summed over frames and worlds"
    listed = [
        ("contacts", count(contacts), f"{percent(result['penetrating'] / contacts)} penetrate" if contacts else ""),
        ("pairs of shapes", count(result["pairs"]["count"]), of_cells),
        ("frames", count(frames), ", ".join(span)),
        ("shapes", count(result["shapes"]), ", ".join(f"{n} {kind}" for kind, n in result["shape_types"].items())),
    ]
    if groups := results.group_figures(result):  # without contacts of shapes, two zeros would say nothing of them
        listed = [*(listed[:2] if contacts else ()), *groups, *listed[2:]]
    if deepest is not None:
        where = f"{_pair(deepest)}, frame {deepest['frame']}"
        where += f", {_world(result, deepest['world'])}" if _names_worlds(result) else ""
        name = "deepest" if deepest["distance"] < 0.0 else "nearest"
        listed.append((name, length(abs(deepest["distance"])), where))
    if wall := timing.get("wall_seconds"):
        before = [f"{s['stage']} {seconds(s['seconds'])}" for s in timing["stages"] if s["stage"] in BEFORE]
        more = f"; before it {', '.join(before)}" if before else ""
        speed = f"{rate(frames / wall)} frames/s on {timing.get('device', '')}"
        listed.append(("run", seconds(wall), f"{speed}, until the last row{more}"))
    return _figures(listed)


def _figures(listed: Iterable[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value, "more": more} for name, value, more in listed]


def headlines(result: ResultDict) -> list[dict[str, str]]:
    """Verdicts about the baseline and of the audit, for the top of the page. kind: "equal" (good) or "different"."""
    verdicts = []
    if (difference := result["difference"]) is not None:
        verdicts.append((verdict(difference), difference["equal"], "difference", "Differences"))
    if (audit := result.get("audit")) is not None:
        verdicts.append((f"audit {results.audit_words(audit)}", audit["passed"], "audit", "Audit"))
    names = ("kind", "words", "section", "link")
    return [
        dict(zip(names, ("equal" if good else "different", f"{words[0].upper()}{words[1:]}.", *link), strict=True))
        for words, good, *link in verdicts
    ]


def selection_line(result: ResultDict) -> str:
    """The selected worlds and shapes, as text; "" if all are."""
    selection = dict(result["selection"])
    worlds = [_world(result, world) for world in selection.pop("worlds", ())]
    parts = [f"only {', '.join(worlds)}"] if worlds else []
    words = {"include": "pairs with", "exclude": "no pairs with", "bodies": "pairs with the body"}
    parts += [f"{words[name]} {' or '.join(patterns)}" for name, patterns in selection.items()]
    return "; ".join(parts)


def _names_worlds(result: ResultDict) -> bool:
    """Whether a contact's world is worth naming: there are others, or it is a demonstration."""
    return result["worlds"] > 1 or bool(result["demonstrations"] or result["selection"].get("worlds"))


def _world(result: ResultDict, world: int) -> str:
    names = result["demonstrations"]
    return names[world] if names else f"world {world}"


def sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All sections with content. charts: the charts that were drawn."""
    listed = []
    for name, section_of in (
        ("difference", _difference), ("audit", _audit), ("labels", _labels), ("clearance", _clearance)
    ):  # fmt: skip
        if result.get(name):
            listed.append(section_of(result[name]))
    if "contacts" in charts:
        parts = [part(chart="contacts")]
        parts += [part(chart="depth", heading="Deepest penetration")] if "depth" in charts else []
        per_bin = result["series"]["frames_per_bin"]
        lead = f" of all {count(result['worlds'])} worlds together" if result["worlds"] > 1 else ""
        if per_bin > 1:
            lead += f", {per_bin} frames per point: the line is their mean, the band ends at their maximum"
        listed.append(section("time", "Over time", *parts, lead=lead and f"Contacts in a frame{lead}."))
        listed.append(_pairs(result, charts))
    if "depths" in charts:
        below = result["contacts"] - result["penetrating"]
        lead = f"{plural(result['penetrating'], 'contact')} penetrate; {count(below)} are within their gap."
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
    rows += [("recording", result["trajectory_sha256"] or "none", True), ("content", result["content_sha256"], True)]
    rows.append(("format", f"collide-contacts {result['version']}, by {result['creator']}", False))
    rows += [
        (name.replace("_", " "), _option(value), True) for name, value in changed_options(result["config"]).items()
    ]
    names = ("device", "processor", "broad_phase")
    rows += [(name.replace("_", " "), str(timing[name]), False) for name in names if timing.get(name)]
    if timing.get("peak_memory_bytes"):
        rows.append(("peak memory", memory(int(timing["peak_memory_bytes"])), False))
    return [*listed, section("source", "Source", part(properties=rows), lines)]


def group_sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sections of the groups beside /rigid_contacts that have charts."""
    listed, per_bin = [], result["groups"]["frames_per_bin"] if result["groups"] else 1
    if "areas" in charts:
        surfaces = result["groups"]["surfaces"]
        largest = "the largest of its frames" if per_bin > 1 else "a frame"
        shown, pairs = len(surfaces["listed"]), plural(surfaces["pairs"], "pair")
        lead = f"{shown} of {pairs}, the largest forces first; forces are nominal. A point is {largest}."
        headings = {"areas": "Area [m²]", "forces": "Force [N]", "pressures": "Mean pressure, force by area [Pa]"}
        parts = [part(chart=name, heading=heading) for name, heading in headings.items()]
        listed.append(section("surfaces", "Hydroelastic surfaces", *parts, lead=lead))
    if "particles" in charts:
        lead = "Contacts in a frame" + (f", mean of {per_bin} frames per point." if per_bin > 1 else ".")
        listed.append(section("particles", "Contacts of particles", part(chart="particles"), lead=lead))
    return listed


def _between_frames(result: ResultDict) -> list[dict[str, Any]]:
    touches, worlds = result.get("between_frames"), _names_worlds(result)
    if not touches:
        return []
    lead = f"{plural(touches['count'], 'touch', 'touches')}, {count(touches['missed'])} of them in no recorded frame"
    lead += f", and {plural(touches['undecided'], 'undecided pair')}." if touches["undecided"] else "."
    if len(touches["listed"]) < touches["count"]:
        lead += f" The first {len(touches['listed'])} are listed."
    rows = []
    for touch in touches["listed"]:
        times = [f"{touch[name]:.6g} s" for name in ("begin_time", "end_time")]
        row = [_pair(touch), *times, length(touch["least_distance"]), "missed" if touch["missed"] else "recorded"]
        rows.append([*row, _world(result, touch["world"])] if worlds else row)
    columns = "pair,begin>,end>,least distance>,in frames" + (",world>" if worlds else "")
    parts = [part(table=table("Touches between frames", columns, rows))] if rows else []
    return [section("between", "Between frames", *parts, lead=lead)]


def _pairs(result: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    pairs, depths = result["pairs"], "pair-depths" in charts
    shown = len(pairs["listed"])
    which = f"{plural(shown, 'pair').capitalize()} of shapes"
    if shown < pairs["count"]:
        which = f"The {shown} with the most contacts of {plural(pairs['count'], 'pair')}"
    parts = [part(chart="pairs", heading="Contacts in a frame" if depths else "")]
    parts += [part(chart="pair-depths", heading="Depth")] if depths else []
    return section("pairs", "Pairs over time", *parts, lead=f"{which}, in the order of their first contacts.")


def _worst(result: ResultDict) -> dict[str, Any]:
    named = bool(result["demonstrations"])
    world = ["demonstration>" if named else "world>"] if _names_worlds(result) else []
    rows = []
    for contact in result["worst"]:
        where = [_world(result, contact["world"]) if named else str(contact["world"])] if world else []
        row = [_pair(contact), length(-contact["distance"]), str(contact["frame"]), f"{plain(contact['time'])} s"]
        rows.append([*row, *where, count(contact["contacts"])])
    return table("Worst penetrations", ("pair", "depth>", "frame>", "time>", *world, "contacts in all>"), rows)


def _difference(difference: ResultDict) -> dict[str, Any]:
    frames, first, listed = difference["frames"], difference["first"], difference["pairs"]["listed"]
    rows = [
        ("baseline", difference["a"]["file"], True),
        ("compared", f"{plural(frames['compared'], 'frame')}, by {frames['by']}", False),
        *([("frames that differ", count(frames["differing"]), False)] if frames["differing"] else []),
        *([("first in", cell_text(first), False)] if first is not None else []),
    ]
    lines = [model_line(row) for row in difference["model"]["listed"]] + frame_lines(difference)
    parts = [part(properties=rows), part(lines=lines)]
    if listed:
        pairs = [(_pair(p), *(count(p[k]) for k in KINDS), cell_text(p["first"])) for p in listed]
        more = more_text(difference["pairs"]["differing"] - len(listed))
        of_pairs = table("Differences by pair", "pair,missing>,extra>,changed>,first in", pairs, more)
        parts += [part(heading="By pair", chart="differences"), part(table=of_pairs)]
    fields = [[text(row) for _, _, text in FIELDS] for row in difference["fields"] if row["differing"]]
    if fields:
        of_fields = table("Deviations of fields", "field,different>,changed>,largest>", fields)
        parts += [part(heading="By field", chart="deviations"), part(table=of_fields)]
    parts.append(part(lines=[*group_lines(difference), *difference["notes"]]))
    return section("difference", "Compared with the baseline", *parts)


def _timing(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = []
    if "stages" in charts:
        lead = (
            "Stages of the engine are summed over its threads. Loading the scene and compiling kernels are before the "
            "run, not part of its time, and have a scale of their own."
        )
        listed.append(section("timing", "Stages of the run", part(chart="stages"), lead=lead))
    if "phases" in charts:
        lead = ""
        for first in phases_of(result)[:1]:
            if first["candidates"]:
                false = percent(1.0 - first["touching_pairs"] / first["candidates"])
                lead = f"A candidate is a pair with overlapping bounds; {false} of the candidates have no contact."
        if result["profile"] is None:
            lead += " This run used one broad phase; collide profile measures all of them."
        listed.append(section("phases", "Candidates against contacts", part(chart="phases"), lead=lead.strip()))
    return listed


def _option(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_OPTION_LENGTH else f"{text[:MAX_OPTION_LENGTH]}…"


def page_tables(result: ResultDict) -> dict[str, dict[str, Any]]:
    """A table of the numbers of each chart, by kind."""
    series, pairs = result["series"], result["pairs"]["listed"]
    times, label = time_axis(series)
    some = range(0, len(times), max(1, -(-len(times) // MAX_ROWS)))
    stages = [stage for stage in result["timing"].get("stages", []) if stage["seconds"]]
    numbers = ("candidates", "touching_pairs", "contacts")
    return {
        "contacts": table(
            "Contacts over time",
            f"{label},contacts>,that penetrate>",
            [[plain(values[n]) for values in (times, series["contacts"], series["penetrating"])] for n in some],
        ),
        "depth": table(
            "Depth over time", f"{label},deepest>", [(plain(times[n]), length(series["depth"][n])) for n in some]
        ),
        "pairs": table(
            "Pairs over time",
            "pair,contacts>,cells>,first frame>,last frame>",
            [(_pair(p), *(count(p[k]) for k in ("contacts", "touches", "first_frame", "last_frame"))) for p in pairs],
        ),
        "pair-depths": table(
            "Depth of pairs",
            "pair,deepest>,in frame>",
            [(_pair(p), length(max(0.0, -p["distance"])), str(p["frame"])) for p in pairs],
        ),
        "depths": table(
            "Depths",
            "from,to>,contacts>",
            [
                (length(b["from"]), length(b["to"]) if b["to"] is not None else "", count(b["contacts"]))
                for b in result["depths"]
            ],
        ),
        "stages": columns_table("Stages of the run", STAGE_COLUMNS, stages),
        "phases": table(
            "Broad phases",
            "broad phase,candidates>,with contacts>,contacts>,time of the engine>",
            [
                (p["name"], *(count(p[k]) for k in numbers), seconds_text(p.get("compute_seconds")))
                for p in phases_of(result)
            ],
        ),
    }


# Single worlds, bodies and static shapes for the template of a report's page: small charts of one SVG for all widths.
#
# A page has many of these charts. Their text is HTML and their SVG is stretched to the width of the page, so that each
# is drawn once and needs a tenth of the size of a chart of matplotlib.

LEAST_OPACITY = 0.14
LABEL_LENGTH = 44


def selectable(result: ResultDict) -> list[dict[str, Any]]:
    """Groups of choices: title, choices with id, label, path and content, and a text about what is left out."""
    subsets = result["subsets"]
    if subsets is None or not subsets["listed"]:
        return []
    choices = [_choice(result, subsets, number, subset) for number, subset in enumerate(subsets["listed"])]
    worlds, others = ([c for c in choices if (c["kind"] == "world") == is_world] for is_world in (True, False))
    left_out, world = subsets["left_out"], "demonstration" if result["demonstrations"] else "world"
    body = "body or static shape" if any(choice["kind"] == "shape" for choice in choices) else "body"
    groups = []
    for title, of_group, number, options in (
        (f"One {world}", worlds, left_out["worlds"], "--world"),
        (f"One {body}", others, left_out["bodies"], "--body or --include"),
    ):
        for choice, label in zip(of_group, short_names([choice["name"] for choice in of_group]), strict=True):
            choice["label"] = label
        more = f"Those with the deepest contacts; {count(number)} more can be selected with {options}."
        if of_group:
            groups.append({"title": title, "choices": of_group, "left_out": more if number else ""})
    return groups


def _choice(result: ResultDict, subsets: ResultDict, number: int, subset: ResultDict) -> dict[str, Any]:
    series = {"frame": subsets["frame"], "time": subsets["time"]}
    pairs, frames, per_frame = subset["pairs"], result["frames"], subset["contacts_per_frame"]
    bins = len(series["frame"])
    deepest = max(subset["depth"], default=0.0)
    figures = [(group_words(name), count(of_group["rows"]), "") for name, of_group in subset["groups"].items()]
    if subset["contacts"] or not figures:
        where = f"{_pair(pairs[0])}, frame {pairs[0]['frame']}" if pairs else ""
        if pairs and (result["demonstrations"] or result["worlds"] > 1):
            where += f", {_world(result, pairs[0]['world'])}"
        of_shapes = [("contacts", count(subset["contacts"]), ""), ("pairs of shapes", count(subset["pair_count"]), "")]
        figures = [*of_shapes, ("deepest", length(deepest), where), *figures]
    for episode in result["episodes"] if subset["kind"] == "world" else ():
        if episode["world"] == subset["row"]:
            span = f"of {count(frames)}, {plain(episode['seconds'])} s from frame {episode['first_frame']} on"
            figures.append(("frames", count(episode["frame_count"]), span))
    mean = f", mean of {subsets['frames_per_bin']} frames" if subsets["frames_per_bin"] > 1 else ""
    title = f"Contacts in a frame{mean}, at most {plain(max(per_frame, default=0.0))}"
    charts = [_steps("contacts", title, per_frame, [f"{plain(value)} contacts" for value in per_frame], series, frames)]
    if deepest:
        title = f"Deepest penetration, at most {length(deepest)}"
        charts.append(_steps("depth", title, subset["depth"], [*map(length, subset["depth"])], series, frames))
    title = plural(len(pairs), "pair").capitalize()
    if len(pairs) < subset["pair_count"]:
        title = f"The {len(pairs)} deepest of {plural(subset['pair_count'], 'pair')}"
    return {
        "id": f"only-{number}",
        "kind": subset["kind"],
        "name": subset["name"],
        "bins": bins,
        "figures": _figures(figures),
        "charts": [*charts, *_group_steps(subset["groups"], mean, series, frames)],
        "ends": [f"{plain(series['time'][0])} s", f"{plain(result['end'])} s"] if bins else ["", ""],
        "pairs_title": title,
        "pairs": _strips(pairs, series, frames),
    }


def _steps(
    kind: str, title: str, values: Sequence[float], texts: Sequence[str], series: ResultDict, frames: int
) -> dict[str, Any]:
    """A step chart in a box of one unit per bin by 100. path: of the area below it."""
    top = max(values, default=0.0) or 1.0
    runs = _runs(texts, series, frames)
    heights = [f"V{100.0 * (1.0 - 0.96 * values[run['x']] / top):.1f}h{run['width']}" for run in runs]
    return {"kind": kind, "title": title, "path": f"M0 100{''.join(heights)}V100z", "runs": runs}


def _group_steps(groups: ResultDict, mean: str, series: ResultDict, frames: int) -> list[dict[str, Any]]:
    charts = []
    for name, of_group in groups.items():
        words, values = group_words(name), of_group["per_frame"]
        title = f"{words.capitalize()} in a frame{mean}, at most {plain(max(values))}"
        charts.append(
            _steps("contacts", title, values, [f"{plain(value)} {words}" for value in values], series, frames)
        )
        if "force" in of_group:
            values = of_group["force"]
            title = f"Sum of nominal forces in a frame{mean}, at most {plain(max(values))} N"
            charts.append(_steps("depth", title, values, [f"{plain(value)} N" for value in values], series, frames))
    return charts


def _runs(texts: Sequence[str], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    """First bin, number of bins and text of each run of bins with the same text; those without a text are left out."""
    runs = [(text, [*group]) for text, group in groupby(range(len(texts)), texts.__getitem__)]
    return [
        {"x": bins[0], "width": len(bins), "text": f"{moment(series, frames, bins[0], bins[-1])}: {text}"}
        for text, bins in runs
        if text
    ]


def _strips(pairs: Sequence[ResultDict], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    deepest = max((max(pair["depth"], default=0.0) for pair in pairs), default=0.0) or 1.0
    strips = []
    for pair, label in zip(pairs, pair_labels(pairs, LABEL_LENGTH), strict=True):
        texts = ["" if depth < 0.0 else length(depth) if depth else "within the gap" for depth in pair["depth"]]
        runs = _runs(texts, series, frames)
        for run in runs:
            share = pair["depth"][run["x"]] / deepest
            run["opacity"] = f"{LEAST_OPACITY + (1.0 - LEAST_OPACITY) * share:.2f}"
        deep = length(max(0.0, -pair["distance"]))
        strips.append({"label": label, "paths": _pair(pair), "runs": runs, "deep": deep, "frame": pair["frame"]})
    return strips


def page_charts(result: ResultDict, kinds: Kinds = PAGE_KINDS) -> dict[str, dict[str, str]]:
    """SVG elements, "wide" and "narrow", by kind of chart, for all kinds with data."""
    charts = {}
    with drawing():
        for name, kind in kinds.items():
            if kind.missing(result):
                continue
            charts[name] = {}
            for size, width in (("wide", WIDE), ("narrow", NARROW)):
                canvas = Canvas(width, PAGE)
                figure = kind.draw(result, canvas)
                charts[name][size] = page_svg(figure, f"{name}-{size}", kind.words(result), canvas.hovers)
    return charts


def page_svg(figure: Figure, prefix: str, words: str, hovers: Sequence[Hover]) -> str:
    """An SVG element with the colours and width of the page. prefix: of its ids. words: for screen readers."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)

    def page_tag(tag: re.Match[str]) -> str:
        """A tag with CSS variables in place of the placeholders of PAGE, and with ids that are unique in the page."""
        svg = tag[0]
        for role, colour in PAGE.items():
            svg = svg.replace(colour, f"var(--{role})")
        svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
        return re.sub(r'(url\(|xlink:href="|href=")#', rf"\1#{prefix}-", svg)

    text = re.sub(r"<[^>]*>", page_tag, text)  # tags only: a name of a shape may look like a colour or a reference
    head = re.search(r'viewBox="([^"]*)"', text)
    assert head is not None
    links = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    opening = f'<svg viewBox="{head[1]}" role="img" aria-label="{escape(words)}" {links}>'
    return with_hovers(re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip(), figure, hovers)


HERE = Path(__file__).parent


def report_page(result: ResultDict) -> str:
    """HTML page of collide.report/1, with escaped names. Raises InputError if the packages for plots are missing."""
    result = printable_values(result)
    charts = page_charts(result)
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


def html_page(**values: Any) -> str:
    """A page by the template with these values. Raises InputError if jinja2 is missing."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise InputError("a report needs jinja2 and matplotlib", "", "pip install 'collidecli[plots]'") from error
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # The words of a text may break after / and _.
    environment.filters["breaking"] = lambda text: Markup("<wbr>").join(re.split(r"(?<=[/_])(?=[^/_])", text))
    style = (HERE / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(style=style, **values)
