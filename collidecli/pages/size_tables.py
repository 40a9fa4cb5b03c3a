"""Tables of the greatest counts of a motion, and of the sizes of buffers that follow."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict, gap_range_text
from collidecli.pages.tables import Column, more_text, name_value_table, rows_table
from collidecli.scene.contact_columns import group_words
from collidecli.wording import count

NEWTON_GAP = "Newton's default rigid_gap is 0.1 m of a shape: count with the gap of the engine"
THIS_MOTION = (
    "contacts, touching pairs and candidates as collide counts them; pairs of naconmax and"
    " shape_pairs_max, and triangles, by the rule of the engine"
)
"""Whose counts the column of this name has."""
SHOWN_WORLDS = 10
"""Worlds that are listed without --all."""


def _number(value: int | None) -> str:
    return "" if value is None else count(value)


PEAK_COLUMNS: list[Column] = [
    ("most", "left", lambda row: row["name"]),
    ("in a world", "right", lambda row: count(row["a_world"]["count"])),
    ("world", "right", lambda row: str(row["a_world"]["world"])),
    ("frame", "right", lambda row: str(row["a_world"]["frame"])),
    ("in all worlds", "right", lambda row: count(row["all_worlds"]["count"])),
    ("frame", "right", lambda row: str(row["all_worlds"]["frame"])),
]
SETTING_COLUMNS: list[Column] = [
    ("engine", "left", lambda row: row["engine"]),
    ("setting", "left", lambda row: row["name"]),
    ("of", "left", lambda row: row["scope"]),
    ("this motion", "right", lambda row: _number(row["ours"])),
    ("bound", "right", lambda row: _number(row["bound"])),
    ("advised", "right", lambda row: _number(row["advised"])),
]


def size_tables(sizes: ResultDict, every: bool = False) -> list[RenderableType]:
    """The tables of the entry `sizes` of a result. every: of all worlds, else of the greatest."""
    rows = [
        ("this motion", THIS_MOTION),
        ("gap", f"{gap_range_text(sizes['gap'])}: the counts hold for it. {NEWTON_GAP}"),
        ("margin", f"{sizes['margin']:g} times the bound, rounded up"),
    ]
    pair = sizes["contacts_of_a_pair"]
    if pair["contacts"]:
        where = f"{pair['shape0']} and {pair['shape1']}, frame {pair['frame']}"
        rows.append(
            ("most of a pair", f"{_contacts(pair['contacts'])}: {where}, world {pair['world']}")
        )
    if triangles := sizes.get("triangles"):
        most = triangles["of_a_pair"]
        where = f"{most['mesh']} and {most['shape']}, frame {most['frame']}, world {most['world']}"
        rows.append(("triangles of a pair", f"{count(most['triangles'])}: {where}"))
    rows += [("not advised", text) for text in _not_advised(sizes["settings"])]
    if groups := sizes["not_counted"]:
        names = ", ".join(map(group_words, groups))
        rows.append(("not counted", f"{names}: the sizes above are without them"))
    peaks = list(sizes["peaks"])
    if triangles:
        peaks.append({"name": "triangles", **triangles})
    parts: list[RenderableType] = [rows_table(PEAK_COLUMNS, peaks)]
    parts += _world_tables(sizes, None if every else SHOWN_WORLDS)
    return [*parts, rows_table(SETTING_COLUMNS, sizes["settings"]), name_value_table(rows), Text()]


def _not_advised(settings: Sequence[ResultDict]) -> list[str]:
    """A text of each reason, with the settings that are not advised for it."""
    names: dict[str, list[str]] = {}
    for setting in settings:
        if setting["reason"]:
            named = f"{setting['name']} of {setting['engine']}"
            names.setdefault(setting["reason"], []).append(named)
    return [f"{', '.join(named)}: {reason}" for reason, named in names.items()]


def _contacts(number: int) -> str:
    return f"{count(number)} contact{'' if number == 1 else 's'}"


def _world_tables(sizes: ResultDict, limit: int | None) -> list[RenderableType]:
    """Greatest counts of the worlds with the most contacts, if there are several worlds."""
    worlds = sizes["worlds"]
    if len(worlds) < 2:
        return []
    names = [peak["name"] for peak in sizes["peaks"]]
    shown = sorted(worlds, key=lambda row: -row["contacts"]["count"])[:limit]
    columns: list[Column] = [("world", "left", lambda row: str(row["world"]))]
    for name in names:
        columns += [
            (name, "right", lambda row, name=name: count(row[name]["count"])),
            ("frame", "right", lambda row, name=name: str(row[name]["frame"])),
        ]
    more = more_text(len(worlds) - len(shown), "world")
    return [rows_table(columns, shown, *((more,) if more else ()))]
