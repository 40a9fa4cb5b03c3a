"""Tables of pairs of shapes with their counts of contacts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from collidecli.pages.names import world_text
from collidecli.pages.quantities import ResultDict, gap_range_text, length
from collidecli.pages.tables import Column, more_text, pair_columns, rows_table
from collidecli.scene.contact_columns import OF_PARTICLES, TOUCHES
from collidecli.wording import count, plural


def pair_tables(result: ResultDict) -> list[Table]:
    """Table of pairs of shapes with their counts of contacts, and the number of other pairs; none
    without contacts."""
    columns: list[Column] = [
        ("contacts", "right", lambda pair: count(pair["contacts"])),
        ("touching", "right", lambda pair: count(pair["touching"])),
        *pair_columns(0),
    ]
    more = result["contact_pair_count"] - len(result["top_pairs"])
    pairs = result["top_pairs"]
    return [rows_table(columns, pairs, "", "", more_text(more), "")] if pairs else []


def deepest_text(deepest: ResultDict | None) -> str:
    """The deepest contact as text: depth or distance, frame, world and shapes."""
    if deepest is None:
        return "no contact"
    distance = deepest["distance"]
    what = f"{length(-distance)} deep" if distance < 0.0 else f"{length(distance)} apart"
    when = f"frame {deepest['frame']}, world {world_text(deepest['world'], deepest['episode'])}"
    names = " and ".join(filter(None, (deepest["shape0"], deepest["shape1"])))
    return f"{what}, {when}" + (f": {names}" if names else "")


def _deepest_rigid(result: ResultDict) -> str:
    """The deepest contact of two solid shapes as text; without one what there is in its place."""
    if result["deepest"] is None and result["contacts"]:
        return "no contact of two solid shapes"
    groups = result.get("groups") or {}
    if result["deepest"] is None and any(group["rows"] for group in groups.values()):
        return "no rigid contact; other contacts are below"
    return deepest_text(result["deepest"])


def contact_rows(result: ResultDict) -> list[tuple[str, str]]:
    """Rows of a summary: contacts, triggers and the deepest contact; of a set of touches that they
    are not computed."""
    if TOUCHES.name in (result.get("groups") or {}):
        return [("contacts", "not computed, by --touch-only"), *trigger_rows(result)]
    return [
        ("contacts", contact_text(result)),
        *trigger_rows(result),
        ("deepest", _deepest_rigid(result)),
    ]


def contact_text(result: ResultDict) -> str:
    """Counts of touching and near contacts and of their pairs of shapes, as text; without one, the
    number of contacts of particles, if there are any."""
    if not result["contacts"]:
        groups = result.get("groups") or {}
        particles = sum(groups[name]["rows"] for name in OF_PARTICLES if name in groups)
        return f"none of shapes; {count(particles)} of particles" if particles else "none"
    pairs = result["touching_pair_count"]
    near = result["contact_pair_count"] - result["touching_pair_count"]
    text = f"{count(result['contacts'])}: {count(result['touching_contacts'])} touching"
    text += f" ({plural(pairs, 'pair')} of shapes)" if pairs else ""
    if result["near_contacts"]:
        text += f", {count(result['near_contacts'])} near, in the gap"
        more = "more " if pairs else ""
        text += (
            f" ({plural(near, f'{more}pair of shapes', f'{more}pairs of shapes')})" if near else ""
        )
    return text


def trigger_rows(result: ResultDict) -> list[tuple[str, str]]:
    """A row of the shapes that are not solid and of their contacts, if there are any."""
    triggers = result.get("triggers")
    if not triggers:
        return []
    shapes = plural(triggers["shapes"], "shape")
    if not result["contacts"]:
        return [("triggers", shapes)]
    of_all = f"{count(triggers['contacts'])} of {plural(result['contacts'], 'contact')}"
    return [("triggers", f"{shapes}, in {of_all}, which the deepest leaves out")]


def margin_rows(ends: Sequence[float] | None) -> list[tuple[str, str]]:
    """A row of the margins of pairs, if any has one."""
    if not ends or not ends[1]:
        return []
    return [("margin", f"{gap_range_text(ends)}; distances are of surfaces this much further out")]
