"""Progress, names, numbers and tables on terminals, narrow ones too."""

import re
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from collidecli.pages import names as names_module
from collidecli.pages import tables as tables_module
from collidecli.pages.progress import Rate, frame_progress
from collidecli.verbs.events.tables import events_table


@pytest.fixture
def screen():
    """A console of 120 columns, and a function that returns what a bar of it shows now."""
    out = StringIO()

    def shown(bar) -> str:
        out.truncate(0)
        bar._bar.refresh()
        return out.getvalue()

    return Console(file=out, force_terminal=True, width=120, color_system=None), shown


def test_the_time_of_a_long_load_is_shown(screen, monkeypatch):
    console, shown = screen
    with frame_progress(console, "colliding", "loading") as bar:
        clock = bar._bar.get_time
        assert not re.search(r"\d s", shown(bar))
        monkeypatch.setattr(bar._bar, "get_time", lambda: clock() + 75.0)
        for task in bar._bar.tasks:
            task._get_time = bar._bar.get_time
        assert re.search(r"loading.* 75 s", shown(bar))


def test_compiled_kernels_are_shown(screen):
    console, shown = screen
    with frame_progress(console, "colliding", "loading") as bar:
        assert "loading" in shown(bar)
        bar.compiling(3, 7)
        assert "compiling kernels (first run only), 3 of 7" in shown(bar)
        bar(4, 20)
        text = shown(bar)
        assert "colliding" in text
        assert "4/20" in text
        bar.compiling(7, 7)
        assert "compiling" not in shown(bar)


def test_counts_are_grouped_by_three_digits(screen):
    console, shown = screen
    with frame_progress(console, "computing", "starting workers", "episodes") as bar:
        assert "/" not in shown(bar)
        bar(1200, 3000)
        assert "1 200/3 000" in shown(bar)
        bar(4500, 6000)
        assert "4 500/6 000" in shown(bar)
    assert Rate("episodes").render(SimpleNamespace(speed=1500.4)).plain == "1 500 episodes/s"


def pairs(*names: tuple[str, str]) -> list[dict[str, str]]:
    return [{"shape0": one, "shape1": other} for one, other in names]


def test_a_common_end_is_left_out_of_names():
    paths = ["/r/left_arm/collision/mesh", "/r/right_arm/collision/mesh", "/r/base/collision/mesh"]
    assert names_module.short_names(paths) == ["left_arm", "right_arm", "base"]
    whole = [f"{name}/collision/mesh" for name in ("left_arm", "right_arm", "base")]
    assert names_module.short_names([*paths, "/floor"]) == [*whole, "floor"]
    assert names_module.short_names(["/a/x", "/a/x"]) == ["a/x #0", "a/x #1"]
    assert names_module.short_names(("", "/", "a")) == [" #0", " #1", "a"]


def test_a_numbered_name_keeps_its_body():
    paths = ["table", "arm/tip/geom#7", "arm/base/geom#1", "r/body#4/geom#4", "geom#0"]
    short = ["table", "tip/geom#7", "base/geom#1", "r/body#4/geom#4", "geom#0"]
    assert names_module.short_names(paths) == short
    assert names_module.short_names(["a/b/geom#1", "c/b/geom#1"]) == ["a", "c"]
    assert names_module.short_names(["a/b/x#1", "c/b/x#1", "d"]) == ["a/b/x#1", "c/b/x#1", "d"]


def test_the_middle_of_a_long_name_is_left_out():
    assert names_module.shortened("left_shoulder_collision", 12) == "left…llision"
    assert names_module.shortened("short", 12) == "short"
    names = [(f"{'a' * 40}{n}{'b' * 40}", "floor") for n in range(12)]
    labels = names_module.pair_labels(pairs(*names), 26)
    assert len(set(labels)) == 12, labels
    assert all(len(label) <= 26 for label in labels)


@pytest.mark.parametrize("most", [18, 26, 44])
def test_labels_are_distinct(most):
    ends = (
        "left_shoulder_pitch_link_with_a_long_name/collision",
        "right_shoulder_pitch_link_with_a_long_name/collision",
    )
    ends += (
        "right_shoulder_pitch_link_with_a_longer_name/collision",
        "right_shoulder_pitch_link_with_a_long_name/visual",
    )
    labels = names_module.pair_labels(
        pairs(*((f"/World/robot/{end}", "/World/ground/plane") for end in ends)), most
    )
    assert len(set(labels)) == 4, labels
    assert all(len(label) <= most for label in labels)


PATHS = ("/World/Objects/cylinder_03", "/World/Objects/a_box_of_a_longer_name")
TOUCH = {
    "shape0": PATHS[0],
    "shape1": PATHS[1],
    "world": 0,
    "begin_frame": 1100,
    "last_frame": 1215,
}
TOUCH |= {"begin_known": True, "end_known": True, "begin_time": 18.3333333, "seconds": 0.0667}
TOUCH |= {
    "touching_frames": 11_600,
    "contacts": 23_200,
    "least_distance": -0.01165,
    "deepest_frame": 1187,
}
WHOLE = ("1100 to 1215", "18.3333 s", "66.7 ms", "-11.65 mm", "1187")


def events(worlds: int = 1) -> dict[str, Any]:
    return {
        "file": "a.h5",
        "frames": {
            "count": 2,
            "first": 0,
            "last": 1,
            "begin_time": 0.0,
            "last_time": 1.0,
            "episodes": None,
        },
        "worlds": {"count": worlds, "looked_at": worlds},
        "intervals": {"count": 3, "begins": 3, "ends": 3, "pairs": 1, "pairs_and_worlds": 1},
        "contacts": {"asked_for": 9, "touching": 9},
        "options": {"threshold": 0.0, "by": "shapes", "merge_gap": {"seconds": None, "frames": 0}},
        "written": {},
        "listed": [TOUCH],
        "graph": None,
    }


def on_terminal(table, width: int) -> list[str]:
    stream = StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(table)
    return stream.getvalue().splitlines()


def printed(result: dict[str, Any], width: int) -> list[str]:
    return on_terminal(events_table(result), width)


@pytest.mark.parametrize(
    ("width", "worlds"),
    [(60, 1), *((width, worlds) for width in (80, 100, 120, 200) for worlds in (1, 2))],
)
def test_lines_that_fit_have_whole_numbers(width, worlds):
    """A narrow terminal leaves the begin out."""
    lines = printed(events(worlds), width)
    assert max(map(len, lines)) <= width
    row = next(line for line in lines if WHOLE[0] in line)
    has_begin = (width, worlds) not in ((60, 1), (80, 2))
    assert all(number in row for number in WHOLE if has_begin or number != "18.3333 s")
    assert has_begin or WHOLE[1] not in row


@pytest.mark.parametrize("width", [40, 50])
def test_no_character_is_lost_on_any_terminal(width):
    """Numbers fold where they do not fit; rich alone cuts them off."""
    lines = printed(events(2), width)
    assert max(map(len, lines)) <= width
    rule = next(k for k, line in enumerate(lines) if "───" in line)
    left_out = next(
        k for k, line in enumerate(lines) if line.startswith(f"not in {width} columns: ")
    )
    digits = sorted(
        character for line in lines[rule:left_out] for character in line if character.isdigit()
    )
    assert digits == sorted("".join(filter(str.isdigit, f"{PATHS} 0 1100 1215 66.7 11.65 1187 2")))
    table = tables_module.listing(("name", "left"), ("first", "right"), ("second", "right"))
    table.add_row("abcdefghijklmnop", "123456789", "987654321")
    columns = re.findall(r"\d+", "\n".join(on_terminal(table, width)))
    assert sorted("".join(columns)) == sorted("123456789987654321")


TITLES = ("distance", "begin", "touching in", "contacts")


def test_a_narrow_terminal_leaves_columns_out():
    columns = {width: "\n".join(printed(events(), width)) for width in (200, *range(60, 160))}
    wide = columns.pop(200)
    narrow = columns[80]
    for text in ("  contacts  ", "23 200", f"{PATHS[0]}   {PATHS[1]}"):
        assert text in wide
        assert text not in narrow
    joined = "".join(line.split("  ")[0].strip() for line in narrow.splitlines())
    assert PATHS[0] in joined
    assert PATHS[1] in joined
    assert "not in 80 columns: contacts, touching in" in narrow
    assert "not in" not in wide
    held = {
        name: min(width for width, text in columns.items() if f" {name} " in text)
        for name in TITLES
    }
    assert list(held) == sorted(held, key=held.__getitem__), "the least important is left out first"
    for name, width in held.items():
        assert max(map(len, columns[width].splitlines())) > width - 2, (
            f"{name} would fit in fewer columns"
        )


@pytest.mark.parametrize("width", [24, 30, 44])
def test_names_break_after_slashes_or_underscores(width):
    for table in (
        tables_module.name_value_table([("in", PATHS[1])]),
        tables_module.rows_table(
            [("x", "left", str), ("n", "right", lambda name: "39")], [PATHS[1]]
        ),
    ):
        cells = (
            re.sub(r"^in|^ x +n| 39", "", line).strip(" ─") for line in on_terminal(table, width)
        )
        pieces = [cell for cell in cells if cell]
        assert "".join(pieces) == PATHS[1]
        assert all(piece.endswith(("/", "_", "name")) for piece in pieces)
        assert len(pieces) > 1 or width > len(PATHS[1])
