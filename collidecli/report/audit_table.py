"""Terminal tables of an audit."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.audit_words import CHECKS, audit_verdict, check_limit, tunnel_lines, usable_text
from collidecli.report.fitting import Fitting, stacked
from collidecli.report.run_table import world_text
from collidecli.report.words import Listing, ResultDict, length, listing, name_value_table
from collidecli.scene.text_format import count, plural

MEASURES = ("overlap_volume", "deepest_point")


def audit_table(first: int, result: ResultDict) -> RenderableType:
    """Tables of collide.audit/1: the verdict, the checks and the deepest pairs. first: number of pairs."""
    parts: list[RenderableType] = [Text(audit_verdict(result), style="bold"), Text(), _summary(result), _checks(result)]
    if result["pairs"] and first:
        parts.append(Fitting(partial(_pairs, result, first)))
    parts += [Text(f"tunnelling: {line}") for line in tunnel_lines(result)]
    parts += [Text(f"note: {note}") for note in _notes(result)]
    return Group(*parts)


def _notes(result: ResultDict) -> list[str]:
    baseline = result["baseline"]
    return [baseline["note"]] if baseline is not None and baseline["note"] else []


def _summary(result: ResultDict) -> RenderableType:
    rows = [("input", result["input"])]
    if result["trajectory"]:
        rows.append(("recording", result["trajectory"]))
    frames = plural(result["frames"], "frame")
    rows.append(("motion", frames if result["worlds"] == 1 else f"{frames} of {plural(result['worlds'], 'world')}"))
    rows.append(("usable", usable_text(result)))
    if result["baseline"] is not None:
        base = result["baseline"]
        rows.append(("baseline", f"{base['file']}: {count(base['worse'])} worse, {count(base['gone'])} gone"))
    rows += [("written", path) for path in (result.get("written") or {}).values()]
    return name_value_table(rows)


def _checks(result: ResultDict) -> Listing:
    table = listing(
        ("check", "left"), ("limit", "right"), ("pairs", "right"), ("deepest", "right"), ("failing", "right")
    )
    for one in result["checks"]:
        table.add_row(
            CHECKS[one["name"]], check_limit(one), count(one["pairs"]), length(one["deepest"]),
            count(one["failing"]),
        )  # fmt: skip
    return table


def _pairs(result: ResultDict, first: int, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    names, (has_volume, has_point) = ("shape 0", "shape 1"), (one in result["pairs"][0] for one in MEASURES)
    table = listing(
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        ("check", "left"),
        ("deepest", "right"),
        ("in frame", "right"),
        *([("world", "right")] if result["worlds"] > 1 else []),
        ("frames", "right"),
        ("over limit", "right"),
        *([("deepest point", "right")] if has_point else []),
        *([("volume", "right")] if has_volume else []),
    )
    for one in result["pairs"][:first]:
        pair = one["shape0"], one["shape1"]
        table.add_row(
            *([stacked(*pair)] if narrow else pair),
            "allowed" if one["allowed"] else CHECKS[one["check"]],
            length(one["depth"]),
            str(one["frame"]),
            *([world_text(one["world"], one.get("episode", ""))] if result["worlds"] > 1 else []),
            count(one["cells"]),
            count(one["cells_over"]),
            *([length(one["deepest_point"]) if "deepest_point" in one else ""] if has_point else []),
            *([_volume(one)] if has_volume else []),
        )
    more = len(result["pairs"]) - first
    if more > 0:
        table.add_row(f"and {plural(more, 'more pair')}")
    return table


def _volume(pair: ResultDict) -> str:
    """A volume in cubic centimetres with its bound, or the reason of none."""
    if pair.get("overlap_volume") is None:
        return pair.get("overlap_note", "")
    bound = pair["overlap_volume_error"] * 1e6
    return f"{pair['overlap_volume'] * 1e6:.4g} cm^3" + (f" +- {bound:.1g}" if bound else "")
