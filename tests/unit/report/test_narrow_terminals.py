"""Tables in terminals of 80 columns and more: numbers stay whole, no line is longer than the terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from collidecli.report.events import events_table
from collidecli.report.tables import listing

PATHS = ("/World/Objects/cylinder_03", "/World/Objects/a_box_of_a_longer_name")
TOUCH = {
    "shape0": PATHS[0],
    "shape1": PATHS[1],
    "world": 0,
    "begin_frame": 1100,
    "last_frame": 1215,
    "begin_known": True,
    "end_known": True,
    "begin_time": 18.3333333,
    "seconds": 0.0667,
    "touching_frames": 11_600,
    "contacts": 23_200,
    "least_distance": -0.01165,
    "deepest_frame": 1187,
}
WHOLE = ("1100 to 1215", "18.3333 s", "66.7 ms", "-11.65 mm", "1187")


def events(worlds: int = 1) -> dict[str, Any]:
    return {
        "file": "a.h5",
        "frames": {"count": 2, "first": 0, "last": 1, "begin_time": 0.0, "last_time": 1.0, "episodes": None},
        "worlds": {"count": worlds, "looked_at": worlds},
        "intervals": {"count": 3, "begins": 3, "ends": 3, "pairs": 1, "pairs_and_worlds": 1},
        "contacts": {"asked_for": 9, "touching": 9},
        "options": {"threshold": 0.0, "by": "shapes", "merge_gap": {"seconds": None, "frames": 0}},
        "written": {},
        "listed": [TOUCH],
        "graph": None,
    }


def printed(result: dict[str, Any], width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(events_table(result))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("worlds", [1, 2])
@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_numbers_are_whole_and_lines_fit(width, worlds):
    lines = printed(events(worlds), width)
    assert max(map(len, lines)) <= width
    row = next(line for line in lines if WHOLE[0] in line)
    assert all(number in row for number in WHOLE)


def test_a_terminal_of_60_columns_has_whole_numbers_and_no_begin():
    lines = printed(events(), 60)
    assert max(map(len, lines)) <= 60
    row = next(line for line in lines if WHOLE[0] in line)
    assert all(number in row for number in WHOLE if number != "18.3333 s")
    assert WHOLE[1] not in row


@pytest.mark.parametrize("width", [40, 50])
def test_no_character_is_lost_on_any_terminal(width):
    """Numbers fold where they do not fit; rich alone cuts them off."""
    lines = printed(events(2), width)
    assert max(map(len, lines)) <= width
    rule = next(k for k, line in enumerate(lines) if "───" in line)
    digits = sorted(character for line in lines[rule:] for character in line if character.isdigit())
    assert digits == sorted("".join(filter(str.isdigit, f"{PATHS} 0 1100 1215 66.7 11.65 1187 2")))
    stream = io.StringIO()
    table = listing(("name", "left"), ("first", "right"), ("second", "right"))
    table.add_row("abcdefghijklmnop", "123456789", "987654321")
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(table)
    columns = re.findall(r"\d+", stream.getvalue())
    assert sorted("".join(columns)) == sorted("123456789987654321")


def test_a_wide_terminal_has_every_column_and_a_narrow_one_the_names_above_each_other():
    wide, narrow = ("\n".join(printed(events(), width)) for width in (200, 80))
    assert "  ".join(("", "contacts", "")) in wide
    assert "23 200" in wide
    assert "23 200" not in narrow
    assert f"{PATHS[0]}   {PATHS[1]}" in wide
    joined = "".join(line.split("  ")[0].strip() for line in narrow.splitlines())
    assert PATHS[0] in joined
    assert PATHS[1] in joined
