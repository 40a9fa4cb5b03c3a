"""collide diff: contacts, models, frames and worlds edited by hand; reports, settings and
refusals."""

import json
import math
import re
import shutil
import threading
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from collidecli.scene.options import ContactOptions, declared_options
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.diff import DiffRequest
from collidecli.verbs.diff.diff import diff as compare
from tests.cli.conftest import refusals
from tests.support.contact_sets import Edited, made_up


def counts(result: dict) -> tuple[int, ...]:
    return tuple(result["contacts"][kind] for kind in ("missing", "extra", "changed"))


def where(edited: Edited, row: int) -> dict:
    frame, world = divmod(int(edited.cell[row]), edited.worlds)
    place = {"frame_a": frame, "frame_b": frame, "step": int(edited.step[frame]), "world": world}
    return place | {"time": float(edited.time[frame])}


def pair(edited: Edited, row: int) -> tuple[str, str]:
    return edited.path[edited.columns["shape0"][row]], edited.path[edited.columns["shape1"][row]]


def without(edited: Edited, *rows: int) -> Edited:
    return edited.rows(~np.isin(np.arange(len(edited.cell)), rows))


def deviation(result: dict) -> dict:
    """The one field that differs."""
    (field,) = [field for field in result["fields"] if field["differing"]]
    return field


@pytest.fixture
def diff(here, collide):
    """diff(a, b, *options): the result; both are Edited, and a.h5 and b.h5. The exit code must
    agree with them."""

    def call(a: Edited, b: Edited, *options: str) -> dict:
        a.write(here / "a.h5")
        b.write(here / "b.h5")
        result = collide.verdict("diff a.h5 b.h5", *options)
        assert result["schema"] == "collide.diff/1"
        return result

    return call


def test_the_same_file_is_equal(here, collide):
    made_up().write(here / "a.h5", sha="ab" * 32)
    assert "hashes are equal" in collide.ok("diff a.h5 a.h5").out
    full = collide.result("diff a.h5 a.h5 --full")  # an option of old scripts
    assert (full["equal"], full["by_hash"], counts(full), full["notes"]) == (
        True,
        True,
        (0, 0, 0),
        [],
    )
    assert full["contacts"]["matched"] == len(made_up().cell)


def test_a_hash_that_lies_is_caught(here, collide):
    """A file that was changed after it was written has the hash of the other."""
    edited = made_up()
    edited.write(here / "a.h5", sha="ab" * 32)
    edited.columns["distance"][3] += 1e-3
    edited.write(here / "b.h5", sha="ab" * 32)
    result = collide.result("diff a.h5 b.h5", code=1)
    assert counts(result) == (0, 0, 1)
    assert result["notes"] == [
        "the content hashes are equal: one of the files was changed after it was written (collide"
        " check)"
    ]
    allowed = collide.ok("diff a.h5 b.h5 --atol 2e-3").out
    assert "the content hashes are equal" in allowed
    edited.write(here / "b.h5", sha="cd" * 32)
    assert "matched; the content hashes differ" in collide.ok("diff a.h5 b.h5 --atol 2mm").out
    for words, code in (
        ("normal=1mm", 2),
        ("distance=2mm", 0),
        ("2mm --atol distance=0", 1),
        ("0.9mm", 1),
    ):
        assert collide("diff a.h5 b.h5 --atol", *words.split()).code == code
    edited.columns["distance"][3] += 1e-8 - 1e-3
    edited.write(here / "b.h5")
    told = re.search(r"(\S+) in A, (\S+) in B", collide.ok("diff a.h5 b.h5 --atol 1um").out)
    assert told is not None
    assert told[1] != told[2]
    assert "shape 0" not in collide("diff a.h5 b.h5 --first 0").out


@pytest.mark.rest
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))]
)
def test_a_changed_number_or_unit_of_any_dataset_is_found(made, collide, part):
    """By `check`, and by `diff`, which does not trust the hash; the timing is a report, not a
    result."""
    with h5py.File(made / "a.h5") as file:
        names: list[str] = []
        file.visit(names.append)
        found = [
            name
            for name in names
            if isinstance(file[name], h5py.Dataset) and not name.startswith("timing")
        ]
        assert len(found) > 20
    for name, what in product(found[part::3], ("value", "unit")):
        shutil.copy(made / "a.h5", made / "changed.h5")
        with h5py.File(made / "changed.h5", "r+") as file:
            values = file[name]
            if what == "unit" and "unit" in values.attrs:
                values.attrs["unit"] = "ft"
            elif what == "value" and values.size and values.dtype.kind != "O":
                at = tuple(length // 2 for length in values.shape)
                values[at] = (
                    np.nextafter(values[at], np.inf) if values.dtype.kind == "f" else values[at] ^ 1
                )
            else:
                continue
        assert collide("check changed.h5").code == 1, (name, what)
        answer = collide("diff a.h5 changed.h5")
        assert answer.code in (1, 2) or "one of the files was changed" in answer.out, (name, what)


def edited(column: str, at: object, by: object) -> Edited:
    """made_up() with numbers of a column of contacts, shapes or frames changed."""
    b = made_up()
    values = b.columns[column] if column in b.columns else getattr(b, column).copy()
    values[at] += by
    if column not in b.columns:
        setattr(b, column, values)
    return b


MOVED = ("point0", (20, 1), 1e-4)


def test_one_contact_moved(diff):
    a = made_up()
    b = edited(*MOVED)
    result = diff(a, b)
    frames = result["frames"]
    assert (
        result["model"]["differences"],
        frames["only_a"],
        frames["only_b"],
        frames["times_changed"],
    ) == (0, 0, 0, 0)
    assert (counts(result), result["pairs"]["differing"]) == ((0, 0, 1), 1)
    (found,) = result["differences"]
    assert (found["kind"], found["shape0"], found["shape1"]) == ("changed", *pair(a, 20))
    assert {k: found[k] for k in where(a, 20)} == result["first"] == where(a, 20)
    assert list(found["fields"]) == [deviation(result)["name"]] == ["point0"]
    # The point is float64 and of size 1: 1e-4 is met to some units of 2e-16.
    assert deviation(result)["largest"] == pytest.approx(1e-4, rel=1e-11)


@pytest.mark.parametrize(
    ("edit", "options", "equal"),
    [
        *(
            (MOVED, f"--atol {of}{size}", equal)
            for of in ("", "point0=")
            for size, equal in ((9.9e-5, 0), (1.01e-4, 1))
        ),
        (MOVED, "--atol distance=1", False),
        (MOVED, "--fields distance,normal", True),
        (MOVED, "--atol 1 --atol point0=0", False),
        *(
            (("distance", 7, 0.01 * made_up().columns["distance"][7]), f"--rtol 0.0{n}", n == 11)
            for n in ("09", 11)
        ),
        (("feature0", 8, 99), "--fields distance,point0", True),
        (("margin", 2, 0.5), "--atol margin=0.6", True),
        (("time", 3, 1e-3), "--atol time=2e-3", True),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_options_decide_whether_a_change_is_a_difference(diff, edit, options, equal):
    result = diff(made_up(), edited(*edit), *options.split())
    assert result["equal"] == equal
    if edit is MOVED and "fields" not in options:
        assert result["contacts"]["within_tolerance"] == equal


def test_numbers_of_features_that_differ_have_no_amount(diff, collide, here):
    """98 and 57 are names of features, which are not 41 apart."""
    diff(made_up(), edited("feature0", 8, 99))
    lines = collide.found("diff a.h5 b.h5").splitlines()
    (row,) = [line.split() for line in lines if line.startswith(" feature0 ")]
    assert row == ["feature0", "1", "1"]
    (line,) = [line for line in lines if line.startswith("feature0: ")]
    assert line.startswith("feature0: the feature's number differs in 1 contact, one at ")
    collide.found("diff a.h5 b.h5 --markdown diff.md --junit-xml diff.xml")
    assert "| feature0 | 1 | 1 |  |\n" in (here / "diff.md").read_text()
    report = (here / "diff.xml").read_text()
    assert "feature0: 1 changed" in report
    assert "feature0: 1 changed, by up to" not in report
    diff(made_up(), edited("distance", 8, 0.5))
    assert "distance: largest at " in collide.found("diff a.h5 b.h5")


def test_a_change_is_listed_where_it_is(diff):
    result = diff(made_up(), edited("feature0", 8, 99))
    assert counts(result) == (0, 0, 1)
    assert list(result["differences"][0]["fields"]) == ["feature0"]
    result = diff(made_up(), edited("margin", 2, 0.5))
    (found,) = result["model"]["listed"]
    assert (found["path"], found["what"], counts(result)) == ("bøx", "margin", (0, 0, 0))
    assert found["b"] - found["a"] == pytest.approx(0.5)
    result = diff(made_up(), edited("time", 3, 1e-3))
    assert (result["frames"]["times_changed"], counts(result)) == (1, (0, 0, 0))


@pytest.mark.parametrize(
    ("moved", "least"),
    [(3e-12, 0.0), (3e-9, 1e-9), (3e-8, 1e-8), (3e-4, 1e-4), (0.3, 0.1), (3e4, 1.0)],
)
def test_the_histogram_has_the_decade_of_a_deviation(diff, moved, least):
    a = made_up()
    b = made_up()
    a.columns["point0"][20] = 0.0
    b.columns["point0"][20] = (0.0, moved, 0.0)
    (found,) = deviation(diff(a, b))["histogram"]
    assert found["contacts"] == 1
    assert (found["from"] or 0.0) == pytest.approx(least)


@pytest.mark.parametrize("kind", ["missing", "extra"])
def test_a_number_or_a_fraction_of_contacts_may_differ(diff, kind):
    a = made_up()
    one, other = (a, without(a, 11))[:: 1 if kind == "missing" else -1]
    result = diff(one, other)
    (found,) = result["differences"]
    assert (found["kind"], found["shape0"], found["shape1"]) == (kind, *pair(a, 11))
    assert (counts(result), result["first"]) == (
        (int(kind == "missing"), int(kind == "extra"), 0),
        where(a, 11),
    )
    for options, equal in (
        (f"--max-{kind} 1", True),
        ("--allow-fraction 0.05", True),
        ("--allow-fraction 0.001", False),
    ):
        assert diff(one, other, *options.split())["equal"] == equal


def test_touching_pairs_alone(diff):
    a = made_up()
    keys = np.stack([a.cell, a.columns["shape0"], a.columns["shape1"]])
    _, first, times = np.unique(keys, axis=1, return_index=True, return_counts=True)
    alone = int(first[times == 1][0])
    shared = int(first[times > 1][0])
    assert diff(a, without(a, shared), "--pairs-only")["equal"]
    result = diff(a, without(a, alone), "--pairs-only")
    assert counts(result) == (1, 0, 0)
    assert result["contacts"]["a"] == len(times)
    (found,) = result["pairs"]["listed"]
    assert ((found["shape0"], found["shape1"]), found["first"]) == (pair(a, alone), where(a, alone))
    assert [diff(a, without(a, row))["contacts"]["missing_pairs"] for row in (alone, shared)] == [
        1,
        0,
    ]


@pytest.mark.parametrize(
    ("turn", "atol", "equal"),
    [(180.0, "", False), (1.0, "0.9deg", False), (1.0, "1.1deg", True), (1.0, "0.0192", True)],
)
def test_normals_are_compared_by_angle(diff, turn, atol, equal):
    a = made_up()
    b = made_up()
    n = b.columns["normal"][15].astype(np.float64)
    side = np.cross(n, [1.0, 0.0, 0.0] if abs(n[0]) < 0.9 else [0.0, 1.0, 0.0])
    angle = math.radians(turn)
    b.columns["normal"][15] = math.cos(angle) * n + math.sin(angle) * side / np.linalg.norm(side)
    result = diff(a, b, *(("--atol", f"normal={atol}") if atol else ()))
    assert (result["equal"], counts(result)) == (equal, (0, 0, int(not equal)))
    (field,) = [field for field in result["fields"] if field["name"] == "normal"]
    # float32 components: 1e-7 of an angle of 1.7e-2. The chord of a flipped unit vector is 2 within
    # 1e-7, where the arc's slope lets sqrt(2e-7) through.
    assert (field["unit"], field["largest"]) == (
        "rad",
        pytest.approx(angle, abs=1e-3 if turn == 180.0 else 2e-7),
    )


def test_every_feature_changed_is_matched_by_place(diff):
    a = made_up(contacts_per_cell=30)
    b = made_up(contacts_per_cell=30)
    rng = np.random.default_rng(2)
    b.columns["feature0"] = rng.permutation(len(b.cell)).astype(np.int32) + 1000
    result = diff(a, b)
    assert (counts(result), deviation(result)["name"]) == ((0, 0, len(a.cell)), "feature0")


def test_shallow_ones_are_left_out(diff):
    a = made_up()
    a.gap = np.full(5, 0.1)
    a.columns["distance"][11] = 0.0999
    b = without(a, 11)
    for one, other in ((a, b), (b, a)):
        result = diff(one, other, "--ignore-shallow", "2e-4")
        assert (result["equal"], result["contacts"]["ignored_shallow"]) == (True, 1)
        assert not diff(one, other, "--ignore-shallow", "5e-5")["equal"]
        assert diff(one, other, "--ignore-shallow", "2e-4", "--pairs-only")["equal"]


def test_only_chosen_shapes_are_compared(diff):
    a = made_up()
    b = made_up()
    row = int(np.flatnonzero((a.columns["shape0"] == 1) & (a.columns["shape1"] == 2))[0])
    b.columns["distance"][row] += 1.0
    assert not diff(a, b, "--include", "ball")["equal"]
    assert diff(a, b, "--include", "egg")["equal"]
    assert diff(a, b, "--exclude", "b*")["equal"]
    included = diff(a, b, "--include", "egg")["contacts"]["a"]
    assert included == int(((a.columns["shape0"] == 4) | (a.columns["shape1"] == 4)).sum())


KEYS = {"shape0", "shape1", "feature0", "feature1"}
POINTS = {"point0", "point1"}


@pytest.mark.share(3, 3)
@pytest.mark.parametrize(
    ("edit", "of_a", "of_b"),
    [
        ("nothing", set(), set()),
        ("distance", {*KEYS, "distance"}, {"distance"}),
        ("point0", {*KEYS, *POINTS, "distance"}, {"point0"}),
        ("normal", {*KEYS, "normal", "distance"}, {"normal"}),
        ("feature0", None, {"feature0"}),
        ("a row less", None, None),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"exclude": ["egg"], "ignore_shallow": 1e-3}, {"pairs_only": True}], ids=str
)
def test_what_is_packed_alike_is_not_unpacked(here, monkeypatch, edit, of_a, of_b, options):
    """And the answer is that of files without chunks, which are read whole."""
    a = made_up(frames=3)
    b = made_up(frames=3)
    a.columns["distance"][5] = b.columns["distance"][5] = np.nan
    if edit in b.columns:
        b.columns[edit][3] += 1
    elif edit == "a row less":
        b = without(b, 3)
    read: dict[str, set[str]] = {}
    column = ContactSet.column

    def noted(contacts, name, rows=slice(None)):
        if threading.current_thread().name.startswith("collide-unpack"):
            read[contacts.path].add(name)
        return column(contacts, name, rows)

    found = []
    for packed in (0, 1000):
        for one, name in ((a, "a.h5"), (b, "b.h5")):
            one.write(here / name, packed=packed)
        with monkeypatch.context() as patch:
            patch.setattr(ContactSet, "column", noted)
            read.update({"a.h5": set(), "b.h5": set()})
            found.append(compare(DiffRequest("a.h5", "b.h5", first=100, **options)).as_dict())
        if packed == 1000 and not options:
            assert read["a.h5"] == (set(a.columns) if of_a is None else of_a)
            assert read["b.h5"] == (set(a.columns) if of_b is None else of_b)
    assert repr(found[0]) == repr(found[1])
    assert found[0]["equal"] == (edit == "nothing") or options


def test_numbers_that_are_not_finite(diff):
    a = made_up()
    b = made_up()
    a.columns["distance"][2] = b.columns["distance"][2] = np.nan
    assert diff(a, b)["equal"]
    b.columns["distance"][3] = np.inf
    b.columns["point0"][4, 2] = np.nan
    result = diff(a, b, "--atol", "1e9", "--rtol", "1")
    assert counts(result) == (0, 0, 2)


@pytest.mark.share(2)
@pytest.mark.parametrize("gap", [0.1, 0.01, 3.0])
@pytest.mark.parametrize("kind", ["missing", "extra"])
def test_a_tolerance_covers_contacts_at_the_limit(diff, gap, kind):
    """A contact that one file has 1e-9 m below the reporting limit, and the other, 1e-9 m beyond
    it, lacks."""
    a = made_up()
    a.gap = np.full(5, gap)
    keys = list(zip(a.cell, a.columns["shape0"], a.columns["shape1"], strict=True))
    row = next(n for n, key in enumerate(keys) if keys.count(key) == 1)
    a.columns["distance"][row] = np.float32(gap - 1e-9)
    both = (a, without(a, row))[:: 1 if kind == "missing" else -1]
    listed = [{**dict(zip(("shape0", "shape1"), pair(a, row), strict=True)), "contacts": 1}]
    expected = {"missing": 0, "extra": 0, "pairs": listed} | {kind: 1}
    for options in (
        "--atol 2e-9",
        "--atol distance=2e-9",
        "--rtol 1e-6",
        "--atol 2e-9 --pairs-only",
    ):
        result = diff(*both, *options.split())
        found = {name: result["contacts"]["at_limit"][name] for name in expected}
        assert (result["equal"], counts(result), found) == (True, (0, 0, 0), expected), options
    assert not diff(*both)["equal"]
    assert not diff(*both, "--atol", "normal=1deg")["equal"]


def test_a_tolerance_does_not_cover_contacts_below_the_limit(diff, collide):
    a = made_up()
    a.gap = np.full(5, 0.1)
    a.columns["distance"][11] = 0.0989
    a.columns["distance"][12] = 0.0991
    b = without(a, 11, 12)
    result = diff(a, b, "--atol", "1e-3")
    assert (result["equal"], counts(result), result["contacts"]["at_limit"]["missing"]) == (
        False,
        (1, 0, 0),
        1,
    )
    assert (
        diff(a, b, "--atol", "1e-3", "--ignore-shallow", "0.002")["contacts"]["ignored_shallow"]
        == 1
    )
    answer = collide("diff a.h5 b.h5 --atol 2e-3")
    assert (answer.code, "2 missing at the limit" in answer.out) == (0, True), answer.out
    assert "not counted: their distance is within the tolerance" in answer.out


def test_renamed_shapes(diff):
    a = made_up()
    b = made_up()
    b.path[3] = "needle"
    result = diff(a, b)
    (found,) = result["model"]["listed"]
    assert (found["kind"], found["path"], found["a"], found["b"]) == (
        "renamed",
        "pin",
        "pin",
        "needle",
    )
    assert counts(result) == (0, 0, 0)
    assert diff(a, b, "--rename", "pin=needle")["equal"]
    a.path, b.path = [f"/World/{p}" for p in a.path], [f"/Scene/{p}" for p in made_up().path]
    result = diff(a, b)
    assert [one["kind"] for one in result["model"]["listed"]] == ["renamed"] * 5
    assert counts(result) == (0, 0, 0)
    assert diff(a, b, "--rename", "/World=/Scene")["equal"]


def test_a_shape_removed(diff):
    a = made_up()
    b = a.rows((a.columns["shape0"] != 4) & (a.columns["shape1"] != 4)).copy()
    b = replace(
        b, **{name: getattr(b, name)[:4] for name in ("path", "type", "body", "margin", "gap")}
    )
    lost = len(a.cell) - len(b.cell)
    for one, other, kind, expected in (
        (a, b, "removed", (lost, 0, 0)),
        (b, a, "added", (0, lost, 0)),
    ):
        result = diff(one, other)
        assert [(each["kind"], each["path"]) for each in result["model"]["listed"]] == [
            (kind, "egg")
        ]
        assert counts(result) == expected
        assert {
            "egg" in (each["shape0"], each["shape1"]) for each in result["pairs"]["listed"]
        } == {True}
    assert diff(a, b, "--exclude", "egg")["equal"]


def test_a_frame_that_is_not_there(diff):
    a = made_up()
    b = a.rows(a.cell < 5 * a.worlds)
    b.step = a.step[:5]
    b.time = a.time[:5]
    result = diff(a, b)
    assert (counts(result), result["frames"]["only_a"], diff(b, a)["frames"]["only_b"]) == (
        (0, 0, 0),
        1,
        1,
    )
    assert result["frames"]["first_only_a"] == {"frame": 5, "step": 25, "time": a.time[5]}


def without_first_frames(a: Edited, count: int) -> Edited:
    """The set that begins `count` frames later."""
    late = a.rows(a.cell >= count * a.worlds).copy()
    return replace(
        late, cell=late.cell - count * a.worlds, step=a.step[count:], time=a.time[count:]
    )


@pytest.mark.parametrize("by", ["step", "time"])
@pytest.mark.parametrize(("a_earlier", "b_earlier"), [(0, 1), (0, 4), (2, 0)])
def test_a_file_that_begins_before_the_other(diff, by, a_earlier, b_earlier):
    whole = made_up()
    a = without_first_frames(whole, b_earlier)
    b = without_first_frames(whole, a_earlier)
    if by == "time":
        a.step = a.step + 1000
    shared = 6 - a_earlier - b_earlier
    result = diff(a, b)
    frames = result["frames"]
    assert [frames[name] for name in ("by", "compared", "only_a", "only_b")] == [
        by,
        shared,
        a_earlier,
        b_earlier,
    ]
    first = frames["first_only_a"] or frames["first_only_b"]
    assert first == {"frame": 0, "step": 1000 * (by == "time") * (a_earlier > 0), "time": 0.0}
    assert counts(result) == (0, 0, 0)
    assert result["contacts"]["matched"] == min(len(a.cell), len(b.cell))
    last = len(a.cell) - 1
    a.columns["distance"] = a.columns["distance"].copy()
    a.columns["distance"][last] += 0.5
    result = diff(a, b)
    (found,) = result["differences"]
    expected = where(a, last)
    expected["frame_b"] += b_earlier - a_earlier
    assert (counts(result), result["first"], {key: found[key] for key in expected}) == (
        (0, 0, 1),
        expected,
        expected,
    )
    assert found["fields"]["distance"]["a"] > found["fields"]["distance"]["b"]


def test_a_contact_of_a_frame_before_a_is_no_difference(diff):
    b = made_up()
    a = without_first_frames(b, 2)
    b = without(b, 0)
    assert b.cell[0] < 2 * b.worlds
    assert counts(diff(a, b)) == (0, 0, 0)
    assert counts(diff(a, b, "--match-frames", "index")) != (0, 0, 0)


BALL = (
    '<body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.3"'
    ' margin="0.01"/></body>'
)


def test_runs_of_scenes_whose_shapes_are_in_another_order(here, collide):
    """Geoms of the world come first in MuJoCo's model, so the base belongs to a static body."""
    static = '<body name="stand"><geom name="base" type="sphere" size="0.5" margin="0.04"/></body>'
    for name, bodies in (("first", static + BALL), ("second", BALL + static)):
        (here / f"{name}.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
        collide.ok(
            f"run {name}.xml -t motion.h5 -o {name}.h5 --columns"
            " margin0,margin1,distance_grad0,distance_grad1"
        )
    with h5py.File(here / "first.h5") as one, h5py.File(here / "second.h5") as other:
        contacts = one["/rigid_contacts"]
        exchanged = other["/rigid_contacts"]
        assert (
            set(contacts["margin0"][:].tolist())
            == set(exchanged["margin1"][:].tolist())
            == {np.float32(0.04)}
        )
        assert (
            set(contacts["margin1"][:].tolist())
            == set(exchanged["margin0"][:].tolist())
            == {np.float32(0.01)}
        )
    result = collide.result("diff first.h5 second.h5")
    assert counts(result) == (0, 0, 0)
    assert result["contacts"]["matched"] > 5
    assert any("order" in note for note in result["notes"])
    assert {"margin0", "margin1", "distance_grad0", "distance_grad1"} <= {
        field["name"] for field in result["fields"]
    }
    with h5py.File(here / "second.h5", "a") as other:
        other["/rigid_contacts/margin0"][3] += 0.5
    result = collide.result("diff first.h5 second.h5", code=1)
    assert counts(result) == (0, 0, 1)
    assert list(result["differences"][0]["fields"]) == ["margin1"]
    for name, code in (("margin1", 0), ("margin0", 1)):
        assert collide("diff first.h5 second.h5 --atol", f"{name}=0.6").code == code


def test_frames_without_common_steps_are_matched_by_time(diff):
    a = made_up()
    later = replace(a, step=a.step + 1)
    result = diff(a, later)
    assert (result["frames"]["by"], result["equal"]) == ("time", True)
    assert diff(a, later, "--match-frames", "index")["equal"]


def test_files_of_other_versions_are_compared(diff):
    a = made_up()
    result = diff(a, replace(a, version=(1, 1)))
    assert (result["equal"], any("1.0 and 1.1" in note for note in result["notes"])) == (True, True)


def test_contacts_shifted_by_a_frame(diff):
    a = made_up()
    b = a.rows(a.cell < 5 * a.worlds).copy()
    b.cell = b.cell + a.worlds
    result = diff(a, b)
    assert result["first"] == where(a, 0)
    assert any(
        "shifted" in note and "frame 0" in note and "frame 1" in note for note in result["notes"]
    )


def test_worlds_exchanged(diff):
    a = made_up()
    frame, world = np.divmod(a.cell, 3)
    b = replace(a, cell=frame * 3 + np.array([2, 1, 0])[world])
    b = b.rows(np.argsort(b.cell, kind="stable"))
    result = diff(a, b)
    assert result["worlds"]["listed"] == [0, 2]
    assert any("worlds shifted or exchanged" in note for note in result["notes"])


def test_a_world_less(diff):
    a = made_up()
    frame, world = np.divmod(a.cell, 3)
    b = a.rows(world < 2)
    b.cell = frame[world < 2] * 2 + world[world < 2]
    b.worlds = 2
    result = diff(a, b)
    assert (result["equal"], counts(result), result["worlds"]["compared"]) == (False, (0, 0, 0), 2)
    assert result["contacts"]["matched"] == len(b.cell)


def test_reports(here, collide):
    a = made_up()
    b = made_up()
    b.path[1] = "b|all"
    b.columns["distance"][9] += 0.5
    a.write(here / "a.h5")
    b.write(here / "b.h5")
    pages = ("--junit-xml", "d.xml", "--markdown", "d.md")
    answer = collide("diff a.h5 b.h5 --github", *pages)
    (suite,) = ElementTree.parse(here / "d.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert (answer.code, failed) == (1, ["model", "contacts changed"])
    assert (suite.get("tests"), suite.get("failures")) == (str(len(suite)), "2")
    text = (here / "d.md").read_text()
    assert "### collide diff: different" in text
    assert "b\\|all" in text
    lines = answer.err.splitlines()
    assert [line.split("::")[1] for line in lines] == [
        f"error title=collide diff%3A {name}" for name in failed
    ]
    collide.refused("diff a.h5 b.h5 --markdown d.md", told="--force", code=3)
    assert collide("diff a.h5 b.h5 --markdown d.md --force --quiet").code == 1


@pytest.mark.parametrize("by_pair", [[], ["--by-pair"]])
def test_without_a_comparison_no_report_is_written(here, collide, by_pair):
    """The repeat, with the right name, then needs no --force; the annotation names the file."""
    made_up().write(here / "a.h5")
    pages = (*by_pair, "--junit-xml", "d.xml", "--markdown", "d.md", "--github")
    answer = collide("diff a.h5 none.h5", *pages)
    assert (answer.code, answer.err.count("::error")) == (2, 1)
    assert "none.h5" in answer.err
    assert not [name for name in ("d.xml", "d.md") if (here / name).exists()]
    collide.ok("diff a.h5 a.h5", *pages)
    assert (here / "d.xml").exists()


@pytest.fixture
def files(here) -> None:
    """a.h5, and files that cannot be compared with it."""
    edited = made_up()
    edited.write(here / "a.h5")
    (here / "text.h5").write_text("words")
    edited.path[1] = edited.path[2]
    edited.write(here / "twice.h5")
    broken = made_up()
    broken.columns["shape1"][4] = 77
    broken.write(here / "broken.h5")


test_refused = refusals(
    "diff a.h5",
    ("a.h5 --atol few", ("--atol", "few", "or a length as 1mm")),
    ("a.h5 --atol normal=1mm", ("--atol", "normal=1mm")),
    ("a.h5 --atol distnce=1", ("--atol", "did you mean distance?")),
    ("a.h5 --rtol 1mm", ("--rtol", "1mm")),
    ("a.h5 --match-frames tim", ("'tim' is not one of", "did you mean time?")),
    ("a.h5 --atol feature0=1", ("feature0", "no field")),
    ("a.h5 --rtol normal=1", ("normal", "--rtol")),
    ("a.h5 --atol -1", ("-1", "at least 0")),
    ("a.h5 --include nobody*", ("nobody*", "--include")),
    ("a.h5 --rename ball", ("ball", "OLD=NEW")),
    ("a.h5 --fields friction", ("friction", "--fields")),
    ("a.h5 --allow-fraction 2", ("--allow-fraction", "from 0 to 1")),
    ("text.h5", "text.h5"),
    ("nowhere.h5", "nowhere.h5"),
    ("motion.h5", "motion.h5"),
    ("twice.h5", ("twice.h5", "bøx")),
    ("broken.h5", ("77", "broken.h5")),
    needs="files",
)


def test_settings(diff, here, collide, monkeypatch):
    (here / "collide.toml").write_text('[diff]\natol = "distance=0.6, point0=0.2"\n')
    b = edited("distance", 9, 0.5)
    b.columns["point0"][9] += 0.1
    assert diff(made_up(), b)["equal"]
    monkeypatch.setenv("COLLIDE_DIFF_ATOL", "distance=0.4,point0=0.2")
    assert collide("diff a.h5 b.h5").code == 1
    collide.ok("diff a.h5 b.h5 --atol distance=0.6 --atol point0=0.2")


def test_golden_files_compare_with_each_other(collide, here, request):
    golden = request.path.parents[1] / "golden"
    for one, other in (("1_0", "1_0"), ("1_1", "1_1"), ("1_0", "1_1"), ("1_1", "1_0")):
        files = (golden / f"contacts_{name}.h5" for name in (one, other))
        result = collide.result("diff", *files, code=int(one != other))
        assert result["equal"] == (one == other)
        for word in ("versions", "materials") if one != other else ():
            assert any(word in note for note in result["notes"])


def test_options_at_their_defaults_are_no_notes(here, ran, collide):
    """Versions write more or fewer options; one that is not there had its default."""
    ran("now.h5")
    ran("r.h5", "--reduce-contacts")
    with h5py.File(here / "now.h5") as now, h5py.File(here / "r.h5") as reduced:
        written, all_of_them = (json.loads(str(file.attrs["config"])) for file in (now, reduced))
    assert "betas" not in written
    reductions = {
        name
        for name, option in declared_options(ContactOptions).items()
        if option.of_reduction and option.is_stored
    }
    assert set(all_of_them) - set(written) == reductions
    for name, config in (
        ("old.h5", {"narrow_phase": "gjk", "frames": "", "worlds": None}),
        ("more.h5", {**all_of_them, "reduce_contacts": False}),
        ("other.h5", {"narrow_phase": "mpr", "uneven_demos": "cut", "later": 1}),
    ):
        shutil.copyfile(here / "now.h5", here / name)
        with h5py.File(here / name, "a") as file:
            file.attrs["config"] = json.dumps(config)
    for name in ("old.h5", "more.h5"):
        assert collide.result("diff now.h5", name)["notes"] == []
        # As far as options go, these could be joined.
        assert (
            "it has worlds of now.h5" in collide("merge now.h5", name, "--worlds", "-o", "m.h5").err
        )
    assert "the option reduce_contacts: true and false" in collide("merge now.h5 r.h5 -o m.h5").err
    assert collide.result("diff other.h5 now.h5")["notes"] == [
        "the option later differs: 1 in A, none in B",
        "the option narrow_phase differs: mpr in A, gjk in B",
        "the option uneven_demos differs: cut in A, none in B",
    ]
    notes = collide.result("diff r.h5 now.h5")["notes"]
    assert notes == ["the option reduce_contacts differs: True in A, False in B"]


def test_what_rests_is_not_called_shifted(diff):
    """Every frame of A is the same; the last of B has a contact elsewhere."""
    a = made_up(frames=1, worlds=1, contacts_per_cell=6, seed=3)
    assert len(a.cell)
    still = a.rows(np.tile(np.arange(len(a.cell)), 4))
    still.cell = np.repeat(np.arange(4), len(a.cell))
    still.step, still.time = np.arange(4) * 5, np.arange(4) * 0.01
    moved = still.copy()
    moved.columns["point0"][-1] += 0.5
    result = diff(still, moved)
    assert (result["first"]["frame_a"], counts(result)) == (3, (0, 0, 1))
    assert not any("shifted" in note for note in result["notes"])
