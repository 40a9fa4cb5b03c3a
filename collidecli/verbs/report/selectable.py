"""Single worlds, bodies and static shapes of a report's page: small charts of one SVG for all
widths.

A page has many of these charts. Their text is HTML and their SVG is stretched to the width of the
page, so that each is drawn once and needs a tenth of the size of a chart of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from collidecli.pages.names import pair_labels, short_names
from collidecli.pages.pair_words import has_named_worlds, pair_words, world_name
from collidecli.pages.parts import figure_list
from collidecli.pages.quantities import ResultDict, length, moment, plain
from collidecli.scene.contact_columns import group_words
from collidecli.wording import count, plural

LEAST_OPACITY = 0.14
LABEL_LENGTH = 44


def selectable(result: ResultDict) -> list[dict[str, Any]]:
    """Groups of choices: title, choices with id, label, path and content, and a text about what is
    left out."""
    subsets = result["subsets"]
    if subsets is None or not subsets["listed"]:
        return []
    choices = [
        _choice(result, subsets, number, subset) for number, subset in enumerate(subsets["listed"])
    ]
    worlds, others = (
        [c for c in choices if (c["kind"] == "world") == is_world] for is_world in (True, False)
    )
    left_out = subsets["left_out"]
    world = "demonstration" if has_named_worlds(result) else "world"
    body = (
        "body or static shape" if any(choice["kind"] == "shape" for choice in choices) else "body"
    )
    groups = []
    for title, of_group, number, options in (
        (f"One {world}", worlds, left_out["worlds"], "--world"),
        (f"One {body}", others, left_out["bodies"], "--body or --include"),
    ):
        for choice, label in zip(
            of_group, short_names([choice["name"] for choice in of_group]), strict=True
        ):
            choice["label"] = label
        more = (
            f"Those with the deepest contacts; {count(number)} more can be selected with {options}."
        )
        if of_group:
            groups.append({"title": title, "choices": of_group, "left_out": more if number else ""})
    return groups


def _figures(result: ResultDict, subset: ResultDict) -> list[tuple[str, str, str]]:
    """Name, value and place of each figure of a subset."""
    pairs = subset["pairs"]
    figures = [
        (group_words(name), count(of_group["rows"]), "")
        for name, of_group in subset["groups"].items()
    ]
    if subset["contacts"] or not figures:
        where = f"{pair_words(pairs[0])}, frame {pairs[0]['frame']}" if pairs else ""
        if pairs and (has_named_worlds(result) or result["worlds"] > 1):
            where += f", {world_name(result, pairs[0]['world'])}"
        of_shapes = [
            ("contacts", count(subset["contacts"]), ""),
            ("pairs of shapes", count(subset["pair_count"]), ""),
        ]
        deepest = length(max(subset["depth"], default=0.0))
        figures = [*of_shapes, ("deepest", deepest, where), *figures]
    for episode in result["episodes"] if subset["kind"] == "world" else ():
        if episode["world"] == subset["row"]:
            span = (
                f"of {count(result['frames'])}, {plain(episode['seconds'])} s from frame"
                f" {episode['first_frame']} on"
            )
            figures.append(("frames", count(episode["frame_count"]), span))
    return figures


def _choice(
    result: ResultDict, subsets: ResultDict, number: int, subset: ResultDict
) -> dict[str, Any]:
    series = {"frame": subsets["frame"], "time": subsets["time"]}
    pairs = subset["pairs"]
    frames = result["frames"]
    per_frame = subset["contacts_per_frame"]
    bins = len(series["frame"])
    deepest = max(subset["depth"], default=0.0)
    figures = _figures(result, subset)
    mean = f", mean of {subsets['frames_per_bin']} frames" if subsets["frames_per_bin"] > 1 else ""
    title = f"Contacts in a frame{mean}, at most {plain(max(per_frame, default=0.0))}"
    charts = [
        _steps(
            "contacts",
            title,
            per_frame,
            [f"{plain(value)} contacts" for value in per_frame],
            series,
            frames,
        )
    ]
    if deepest:
        title = f"Deepest penetration, at most {length(deepest)}"
        charts.append(
            _steps("depth", title, subset["depth"], [*map(length, subset["depth"])], series, frames)
        )
    title = plural(len(pairs), "pair").capitalize()
    if len(pairs) < subset["pair_count"]:
        title = f"The {len(pairs)} deepest of {plural(subset['pair_count'], 'pair')}"
    return {
        "id": f"only-{number}",
        "kind": subset["kind"],
        "name": subset["name"],
        "bins": bins,
        "figures": figure_list(figures),
        "charts": [*charts, *_group_steps(subset["groups"], mean, series, frames)],
        "ends": (
            [f"{plain(series['time'][0])} s", f"{plain(result['end'])} s"] if bins else ["", ""]
        ),
        "pairs_title": title,
        "pairs": _strips(pairs, series, frames),
    }


def _steps(
    kind: str,
    title: str,
    values: Sequence[float],
    texts: Sequence[str],
    series: ResultDict,
    frames: int,
) -> dict[str, Any]:
    """A step chart in a box of one unit per bin by 100. path: of the area below it."""
    top = max(values, default=0.0) or 1.0
    runs = _runs(texts, series, frames)
    heights = [
        f"V{100.0 * (1.0 - 0.96 * values[run['x']] / top):.1f}h{run['width']}" for run in runs
    ]
    return {"kind": kind, "title": title, "path": f"M0 100{''.join(heights)}V100z", "runs": runs}


def _group_steps(
    groups: ResultDict, mean: str, series: ResultDict, frames: int
) -> list[dict[str, Any]]:
    charts = []
    for name, of_group in groups.items():
        words = group_words(name)
        values = of_group["per_frame"]
        title = f"{words.capitalize()} in a frame{mean}, at most {plain(max(values))}"
        charts.append(
            _steps(
                "contacts",
                title,
                values,
                [f"{plain(value)} {words}" for value in values],
                series,
                frames,
            )
        )
        if "force" in of_group:
            values = of_group["force"]
            title = f"Sum of nominal forces in a frame{mean}, at most {plain(max(values))} N"
            charts.append(
                _steps(
                    "depth",
                    title,
                    values,
                    [f"{plain(value)} N" for value in values],
                    series,
                    frames,
                )
            )
    return charts


def _runs(texts: Sequence[str], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    """First bin, number of bins and text of each run of bins with the same text; those without a
    text are left out."""
    runs = [(text, [*group]) for text, group in groupby(range(len(texts)), texts.__getitem__)]
    return [
        {
            "x": bins[0],
            "width": len(bins),
            "text": f"{moment(series, frames, bins[0], bins[-1])}: {text}",
        }
        for text, bins in runs
        if text
    ]


def _strips(pairs: Sequence[ResultDict], series: ResultDict, frames: int) -> list[dict[str, Any]]:
    deepest = max((max(pair["depth"], default=0.0) for pair in pairs), default=0.0) or 1.0
    strips = []
    for pair, label in zip(pairs, pair_labels(pairs, LABEL_LENGTH), strict=True):
        distance = pair["distance"]
        shallow = "touches" if distance is None else "within the gap"
        texts = [
            "" if depth < 0.0 else length(depth) if depth else shallow for depth in pair["depth"]
        ]
        runs = _runs(texts, series, frames)
        for run in runs:
            share = pair["depth"][run["x"]] / deepest
            run["opacity"] = f"{LEAST_OPACITY + (1.0 - LEAST_OPACITY) * share:.2f}"
        deep = "" if distance is None else length(max(0.0, -distance))
        strips.append(
            {
                "label": label,
                "paths": pair_words(pair),
                "runs": runs,
                "deep": deep,
                "frame": pair["frame"],
            }
        )
    return strips
