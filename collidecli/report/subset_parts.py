"""Single worlds, bodies and static shapes for the template of a report's page: small charts of one SVG for all widths.

A page has many of these charts. Their text is HTML and their SVG is stretched to the width of the page, so that each
is drawn once and needs a tenth of the size of a chart of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from collidecli.report.chart_words import moment
from collidecli.report.short_names import pair_labels, short_names
from collidecli.report.words import ResultDict, length
from collidecli.scene.contact_groups import group_words
from collidecli.scene.text_format import count, plural

LEAST_OPACITY = 0.14
LABEL_LENGTH = 44


def selectable(result: ResultDict) -> list[dict[str, Any]]:
    """Groups of choices: title, choices with id, label, path and content, and a text about what is left out."""
    found = result["subsets"]
    if found is None or not found["listed"]:
        return []
    choices = [_choice(result, found, number, one) for number, one in enumerate(found["listed"])]
    left_out, world = found["left_out"], "demonstration" if result["demonstrations"] else "world"
    bodies = "body or static shape" if any(choice["kind"] == "shape" for choice in choices) else "body"
    groups = [
        _group(f"One {world}", [c for c in choices if c["kind"] == "world"], left_out["worlds"], "--world"),
        _group(
            f"One {bodies}", [c for c in choices if c["kind"] != "world"], left_out["bodies"], "--body or --include"
        ),
    ]
    return [group for group in groups if group["choices"]]


def _group(title: str, choices: Sequence[dict[str, Any]], left_out: int, options: str) -> dict[str, Any]:
    for choice, label in zip(choices, short_names([choice["name"] for choice in choices]), strict=True):
        choice["label"] = label
    more = (
        f"Those with the deepest contacts; {count(left_out)} more can be selected with {options}." if left_out else ""
    )
    return {"title": title, "choices": choices, "left_out": more}


def _choice(result: ResultDict, found: ResultDict, number: int, one: ResultDict) -> dict[str, Any]:
    series = {"frame": found["frame"], "time": found["time"]}
    pairs, frames = one["pairs"], result["frames"]
    bins = len(series["frame"])
    deepest = max(one["depth"], default=0.0)
    touching = [f"{value:.4g} contacts" for value in one["contacts_per_frame"]]
    deep = [length(value) for value in one["depth"]]
    most = max(one["contacts_per_frame"], default=0.0)
    of_pairs = (
        f"The {len(pairs)} deepest of {plural(one['pair_count'], 'pair')}" if len(pairs) < one["pair_count"] else ""
    )
    figures = [
        ("contacts", count(one["contacts"]), ""),
        ("pairs of shapes", count(one["pair_count"]), ""),
        ("deepest", length(deepest), _where(result, pairs[0]) if pairs else ""),
        *((group_words(name), count(held["rows"]), "") for name, held in one["groups"].items()),
    ]
    if one["kind"] == "world":
        figures += [
            (
                "frames",
                count(episode["frame_count"]),
                f"of {count(frames)}, {episode['seconds']:.4g} s from frame {episode['first_frame']} on",
            )
            for episode in result["episodes"]
            if episode["world"] == one["row"]
        ]
    mean = f", mean of {found['frames_per_bin']} frames" if found["frames_per_bin"] > 1 else ""
    return {
        "id": f"only-{number}",
        "kind": one["kind"],
        "name": one["name"],
        "bins": bins,
        "figures": [{"name": name, "value": value, "more": more} for name, value, more in figures],
        "charts": [
            _steps(
                "contacts",
                f"Contacts in a frame{mean}, at most {most:.4g}",
                one["contacts_per_frame"],
                touching,
                series,
                frames,
            ),
            *(
                [_steps("depth", f"Deepest penetration, at most {length(deepest)}", one["depth"], deep, series, frames)]
                if deepest
                else []
            ),
            *_group_steps(one["groups"], mean, series, frames),
        ],
        "ends": [f"{series['time'][0]:.4g} s", f"{result['end']:.4g} s"] if bins else ["", ""],
        "pairs_title": of_pairs or plural(len(pairs), "pair").capitalize(),
        "pairs": _strips(pairs, series, frames),
    }


def _where(result: ResultDict, pair: ResultDict) -> str:
    text = f"{pair['shape0']} and {pair['shape1']}, frame {pair['frame']}"
    if result["demonstrations"]:
        text += f", {result['demonstrations'][pair['world']]}"
    elif result["worlds"] > 1:
        text += f", world {pair['world']}"
    return text


def _steps(
    kind: str, title: str, values: Sequence[float], texts: Sequence[str], series: ResultDict, frames: int
) -> dict[str, Any]:
    """A step chart in a box of one unit per bin by 100. path: of the area below it."""
    top = max(values, default=0.0) or 1.0
    runs = _runs(texts, series, frames)
    heights = [f"V{100.0 * (1.0 - 0.96 * values[run['x']] / top):.1f}h{run['width']}" for run in runs]
    return {"kind": kind, "title": title, "path": f"M0 100{''.join(heights)}V100z", "runs": runs}


def _group_steps(groups: ResultDict, mean: str, series: ResultDict, frames: int) -> list[dict[str, Any]]:
    """Charts of the rows of each group, and of the force of hydroelastic surfaces."""
    charts = []
    for name, held in groups.items():
        words, values = group_words(name), held["per_frame"]
        title = f"{words.capitalize()} in a frame{mean}, at most {max(values):.4g}"
        charts.append(_steps("contacts", title, values, [f"{value:.4g} {words}" for value in values], series, frames))
        if "force" in held:
            values = held["force"]
            title = f"Sum of nominal forces in a frame{mean}, at most {max(values):.4g} N"
            charts.append(_steps("depth", title, values, [f"{value:.4g} N" for value in values], series, frames))
    return charts


def _runs(texts: Sequence[str], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    """First bin, number of bins and text of each run of bins with the same text; those without a text are left out."""
    runs = []
    for text, group in groupby(range(len(texts)), texts.__getitem__):
        held = list(group)
        if text:
            words = f"{moment(series, frames, held[0], held[-1])}: {text}"
            runs.append({"x": held[0], "width": len(held), "text": words})
    return runs


def _strips(pairs: Sequence[ResultDict], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    """A strip of each pair, darker where it is deeper."""
    deepest = max((max(pair["depth"], default=0.0) for pair in pairs), default=0.0) or 1.0
    strips = []
    for pair, label in zip(pairs, pair_labels(pairs, LABEL_LENGTH), strict=True):
        texts = ["" if depth < 0.0 else length(depth) if depth else "within the gap" for depth in pair["depth"]]
        runs = _runs(texts, series, frames)
        for run in runs:
            share = pair["depth"][run["x"]] / deepest
            run["opacity"] = f"{LEAST_OPACITY + (1.0 - LEAST_OPACITY) * share:.2f}"
        paths = f"{pair['shape0']} and {pair['shape1']}"
        deep = length(max(0.0, -pair["distance"]))
        strips.append({"label": label, "paths": paths, "runs": runs, "deep": deep, "frame": pair["frame"]})
    return strips
