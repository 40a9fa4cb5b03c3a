"""collide label: arrays and tables that it writes, and what it refuses."""

import tracemalloc
from collections import defaultdict
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.analysis.labelled_runs import LabelRule
from collidecli.analysis.pair_selection import EventOptions
from collidecli.errors import InputError
from collidecli.pages.canvas import PAGE, Canvas, drawing
from collidecli.scene.episodes import Episodes
from collidecli.storage import flat_tables
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.label import contact_labels, files
from collidecli.verbs.label.chart import label_chart
from collidecli.verbs.label.contact_labels import LabelOptions
from collidecli.verbs.label.label import LabelRequest, label
from collidecli.verbs.label.named_pairs import NamedPairs
from collidecli.verbs.view.view import ViewRequest, opened_view
from tests.cli.conftest import refusals
from tests.cli.test_recordings import write_demos
from tests.support.batches import compute
from tests.support.contact_sets import (
    Touch,
    made_up_block,
    small_model,
    touching_set,
    write_contact_set,
)

ROWS = [
    Touch(0, 0, 0, 1, -0.01),
    Touch(0, 0, 0, 1, 0.02),
    Touch(1, 0, 0, 1, 0.03),
    Touch(3, 0, 0, 1, -0.002),
    Touch(2, 1, 0, 2, -0.005),
    Touch(3, 1, 1, 2, -0.001),
    Touch(4, 1, 0, 2, 0.04),
]
"""Of a static ground (0) and bodies body0 to body3 with the shapes ball (1), bøx (2), pin and
egg."""
SLIP = [0.5, 0.1, 0.2, 1.5, 0.7, 0.3, 0.9]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--enter 0", "in frames with a distance of 0 m or less"),
        ("--enter 0 --leave 20mm", "each from a distance of 0 m or less until it is above 20 mm"),
    ],
)
def test_the_rule_of_labels_is_in_the_summary(made, collide, options, told):
    shown = collide("label", "plain.h5", *options.split()).out
    (line,) = [line for line in shown.splitlines() if line.startswith("labels ")]
    assert line.endswith(told)


@pytest.fixture
def made(here) -> str:
    """A set of 6 frames of 2 worlds with the column slip; plain.h5 is without it."""
    found = touching_set(ROWS, 6, 2)
    found.write(here / "plain.h5")
    found.optional["slip"] = np.array(SLIP, np.float32)
    return found.write(here / "a.h5")


def expected(
    sensors: list[str], partners: list[str], least: float
) -> tuple[np.ndarray, np.ndarray]:
    """bool and float32[6, 2, S, P] in plain Python: touching at `least` or less, and the least
    distance."""
    owner = {0: "ground", 1: "body0", 2: "body1", 3: "body2", 4: "body3"}
    touch = np.zeros((6, 2, len(sensors), len(partners)), bool)
    distance = np.full(touch.shape, np.inf, np.float32)
    for row in ROWS:
        for one, other in ((row.shape0, row.shape1), (row.shape1, row.shape0)):
            if owner[one] in sensors and owner[other] in partners:
                at = row.frame, row.world, sensors.index(owner[one]), partners.index(owner[other])
                touch[at] |= row.distance <= least
                distance[at] = min(distance[at], np.float32(row.distance))
    return touch, distance


BODIES = [f"body{k}" for k in range(4)]


def test_dense_arrays(made, collide):
    result = collide.result("label a.h5 -o out.npz")
    partners = [*BODIES, "ground"]
    touch, distance = expected(BODIES, partners, 0.0)
    with np.load("out.npz") as found:
        values = {"touch": touch, "distance": distance, "sensors": BODIES, "partners": partners}
        for name, wanted in (
            values | {"time": 0.25 * np.arange(6), "recorded": np.ones((6, 2), bool)}
        ).items():
            np.testing.assert_array_equal(found[name], wanted, name)
        assert "slip" not in found
    assert (result["schema"], result["labelled"], touch.sum()) == ("collide.label/1", 5, 5)
    assert result["shape"] == {"frames": 6, "worlds": 2, "sensors": 4, "partners": 5}
    first = result["listed"][0]
    assert (first["sensor"], first["least_distance"]) == ("body0", pytest.approx(-0.01))
    options = ["--sensors", "body0,body1", "--partners", "ground", "--leave", "40mm"]
    collide.ok("label", made, "-o", "a.npz", *options)
    collide.ok("label", made, "-o", "b.npz", *options, "--min-frames", "2")
    with np.load("a.npz") as a, np.load("b.npz") as b:
        # body0 in world 0: touches, is 30 mm away, has no contact, touches. body1 in world 1:
        # touches, then 40 mm.
        assert a["touch"][:, 0, 0, 0].tolist() == [True, True, False, True, False, False]
        assert a["touch"][:, 1, 1, 0].tolist() == [False, False, True, False, False, False]
        assert b["touch"][:, 0, 0, 0].tolist() == [True, True, True, True, False, False]
        assert not b["touch"][:, 1, 1, 0].any()


def test_the_files_agree_with_python(made, collide):
    options = ["--by", "shapes", "--partners", "ground", "--slip", "--world", "1"]
    for name in ("l.parquet", "l.npz", "l.h5"):
        collide.ok("label", made, "-o", name, *options)
    labels = collidecli.label(made, by="shapes", partners="ground", slip=True, worlds=[1])
    table = pandas.read_parquet("l.parquet")
    rows = labels.to_pandas()
    assert len(labels) == len(table)
    pandas.testing.assert_frame_equal(
        rows, table[rows.columns], check_dtype=False, check_categorical=False
    )
    assert len(table) == 6 * 4
    with np.load("l.npz") as npz, h5py.File("l.h5") as h5:
        assert h5.attrs["format"] == "collide-labels"
        assert (
            h5["sensors"].asstr()[:].tolist()
            == list(labels.sensors)
            == ["ball", "bøx", "pin", "egg"]
        )
        for name in ("touch", "distance", "slip", "time", "step", "world", "recorded"):
            np.testing.assert_array_equal(npz[name], getattr(labels, name))
            np.testing.assert_array_equal(h5[name][:], getattr(labels, name))
        assert h5["slip"].attrs["unit"] == "m/s"
    ordered = table.sort_values(["frame", "world", "sensor", "partner"], kind="stable")
    assert ordered["touch"].sum() == labels.touch.sum() == 1
    row = table[table["touch"]].iloc[0]
    named = (*row[["frame", "world", "sensor", "partner", "distance", "slip"]],)
    assert named == (2, 1, "bøx", "ground", np.float32(-0.005), np.float32(0.7))
    assert table["slip"].notna().sum() == 1


def test_slip_is_the_fastest_contact_within_leave(made):
    labels = collidecli.label(made, sensors="body0", partners="ground", slip=True)
    # the other contact, at 20 mm, is beyond --leave
    assert labels.slip[0, 0, 0, 0] == np.float32(0.5)
    assert np.isnan(labels.slip[1, 0, 0, 0])
    assert labels.slip[3, 0, 0, 0] == np.float32(1.5)
    near = collidecli.label(made, sensors="body0", partners="ground", slip=True, leave=0.03)
    assert near.slip[1, 0, 0, 0] == np.float32(0.2)
    labels = collidecli.label(made, frames="1::2")
    assert labels.frame.tolist() == [1, 3, 5]
    whole = collidecli.label(made)
    np.testing.assert_array_equal(labels.touch, whole.touch[1::2])


@pytest.mark.parametrize(
    "between", ["body0,ground", "b*,*", "ball,b?x", "body2,g*", "pin,body2", "*,body1"]
)
def test_a_pattern_selects_equal_pairs_in_every_verb(made, collide, between):
    def pairs(listed: list[dict], *names: str) -> set[frozenset[str]]:
        return {frozenset(str(one[name]) for name in names) for one in listed}

    def events(*words: str) -> set[frozenset[str]]:
        return pairs(
            collide.result("events a.h5 --first 1000", *words)["listed"], "shape0", "shape1"
        )

    label = "label a.h5 --by shapes -o out.npz --force --first 1000 --between"
    labels = pairs(collide.result(label, between)["listed"], "sensor", "partner")
    assert labels == events("--between", between)
    first = between.split(",")[0]
    assert events("--include", first) == events("--between", f"{first},*")
    collide.ok("export a.h5 --to csv -o out.csv --force --include", first)
    rows = pandas.read_csv("out.csv").query("distance <= 0")
    assert pairs(rows.to_dict("records"), "shape0", "shape1") == events("--include", first)


def in_small_blocks(monkeypatch: pytest.MonkeyPatch, rows: int, values: int) -> None:
    """Contacts are read, and labels made, in blocks of this size."""
    small = partial(EventOptions, block_rows=rows)
    monkeypatch.setattr(contact_labels, "EventOptions", small)
    monkeypatch.setattr(contact_labels, "BLOCK_VALUES", values)


@pytest.mark.parametrize("rule", [{}, {"leave": 0.04, "min_frames": 2}, {"min_frames": 4}])
def test_labels_do_not_depend_on_blocks(made, monkeypatch, rule):
    whole = collidecli.label(made, slip=True, **rule)
    for rows, values in ((1, 1), (2, 100), (1, 1 << 20)):
        in_small_blocks(monkeypatch, rows, values)
        found = collidecli.label(made, slip=True, **rule)
        for name in ("touch", "distance", "slip"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


WORLDS = 20


@pytest.mark.share(3)
@pytest.mark.parametrize("ending", ["parquet", "npz", "h5"])
def test_memory_does_not_grow_with_the_rows(here, monkeypatch, ending):
    """Of a cell the offset of its contacts and a share of a row group stay, some 20 bytes; its
    touches would take 250."""

    def peak(frames: int) -> int:
        rows = [
            Touch(frame, world, 0, shape, -0.01)
            for frame in range(frames)
            for world in range(WORLDS)
            for shape in (1, 2, 3, 4)
            if (frame + shape) % 3
        ]
        touching_set(rows, frames, WORLDS).write(here / f"in{frames}.h5")
        request = LabelRequest(f"in{frames}.h5", f"{frames}.{ending}", LabelOptions(min_frames=2))
        tracemalloc.start()
        label(request)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    in_small_blocks(monkeypatch, 250, 2000)
    monkeypatch.setattr(flat_tables, "GROUP_ROWS", 2000)
    peak(2)  # what is imported once
    few, many = 40, 1000
    least = peak(few)
    grown = (peak(many) - least) / (WORLDS * (many - few))
    assert grown < 40, grown


def test_cells_after_the_end_of_a_demonstration(here, collide):
    episodes = Episodes(
        ("a", "b"), np.array([0, 1], np.int32), np.zeros(2, np.int64), np.array([4, 2])
    )
    block = episodes.without_others(made_up_block(small_model(2), 4), 2)
    write_contact_set(here / "e.h5", small_model(2), block, episodes=episodes)
    collide.ok("label e.h5 -o e.parquet --sensors body0")
    table = pandas.read_parquet("e.parquet")
    assert table.groupby("episode", observed=True)["frame"].nunique().to_dict() == {"a": 4, "b": 2}
    with pytest.warns(UserWarning, match="with each other are not in the set"):
        labels = collidecli.label("e.h5")
    assert labels.recorded.tolist() == [[True, True], [True, True], [True, False], [True, False]]
    assert not labels.touch[~labels.recorded].any()


test_refused = refusals(
    "label",
    *((f"a.h5 -o out.npz {words}", told) for words, told in (
        ("--sensors nothing*", "'nothing*' matches no"),
        ("--partners x", "'x' matches no shape or body of"),
        ("--sensors ''", "it is empty"),
        ("--between body0,ground --between a,b", "takes one value: 're:a|b' is a pattern of"),
        ("--between body0,ground --partners ground", "one of them is given too"),
        ("--enter 0.01 --leave 0.005", "below --enter"),
        ("--enter nan", "not a length"),
        ("--leave inf", "not a length"),
        ("--leave '2 miles'", "not a length"),
        ("--leave 0.3", "--gap 0.3"),
        ("--leave 150mm --sensors body0,body1 --partners ground", "bøx and ground"),
        ("--min-frames 0", "at least 1"),
        ("--world 7", "world 7"),
        ("--frames 9:", "selects none"),
        ("--chart x.txt", "extension"),
        ("--chart x.svg --first 0", "--first"),
    )),
    ("a.h5 -o labels.txt", "extension"),
    ("a.h5 -o a.h5 --force", "", 3),
    ("plain.h5 --slip -o x.npz", "--columns slip"),
    ("a.h5 -o x.npz --sensors '.*1'", ("'.*1' matches no", "as 're:.*1'")),
    ("a.h5 -o x.npz --sensors '^body[0-9]+$'", "as 're:body[0-9]+'"),
    ("a.h5 -o x.npz --sensors feet.toml", "give the scene in place"),
    ("a.h5 -o x.npz --sensors scene:foot", "give the scene in place"),
    ("a.h5 -o x.npz -t motion.h5", "-t"),
    ("a.h5 -o x.npz --gap 1mm", "--gap, a.h5"),
    ("scene.xml -o x.npz", "--sensors scene"),
    ("scene.xml --sensors body0 -o x.npz", "'body0' names no sensors"),
    ("scene.xml --sensors a,b -o x.npz", "--sensors FILE.toml"),
    ("scene.xml --sensors scene --partners x -o x.npz", "--partners is for contact sets"),
    needs="made",
)  # fmt: skip


def test_arguments_that_are_none_in_python(made):
    for words in (
        {"sensors": "none"},
        {"by": "worlds"},
        {"enter": float("nan")},
        {"min_frames": 1.5},
        {"worlds": 0},
    ):
        with pytest.raises(collidecli.InputError):
            collidecli.label(made, **words)
    with pytest.raises(collidecli.InputError):
        collidecli.label(3)  # pyright: ignore[reportArgumentType]
    one, other = (collidecli.label(made, enter="1mm", leave=leave) for leave in ("2mm", 0.002))
    assert (one.touch == other.touch).all()


def test_the_last_bin_of_the_chart_ends_with_the_last_frame():
    result = {
        "listed": [{"sensor": "ball", "partner": "ground"}],
        "series": {"labelled": [[1.0, 0.5]], "frame": [2, 4], "time": [0.2, 0.4]},
        "shape": {"frames": 4},
    }
    canvas = Canvas(920, PAGE)
    with drawing():
        label_chart(result, canvas)
    assert [hover.text.split(", ", 1)[1] for hover in canvas.hovers[1:]] == [
        "frames 2 to 3, 0.2 s: touching",
        "frames 4 to 5, 0.4 s: touching in 50.0 %",
    ]


NAMES = ("cube", "can", "bowl", "tray")


def table_scene(rng: np.random.Generator, names: tuple[str, ...]) -> str:
    """A table, and free bodies of two spheres in any order; all sizes are drawn."""
    body = (
        '<body name="{0}"><freejoint/><geom name="{0}_top" size="{1:.3f}"/><geom name="{0}_low"'
        ' size="{2:.3f}"/></body>'
    )
    bodies = "".join(
        body.format(name, *rng.uniform(0.1, 0.3, 2)) for name in rng.permutation(names)
    )
    post = '<body name="mount"/><geom name="table" type="box" size="1 1 0.1"/>'
    return f"<mujoco><worldbody>{post}{bodies}</worldbody></mujoco>"


@pytest.fixture
def tables(here, collide) -> list[str]:
    """tables.h5, of three demonstrations with scenes of their own, of which each lacks an object;
    and each alone."""
    rng = np.random.default_rng(3)
    demos = {}
    scenes = {}
    for number, frames in enumerate((5, 4, 6)):
        held = tuple(name for name in NAMES if name != NAMES[number])
        states = np.zeros((frames, 1 + 13 * len(held)))
        states[:, 0] = 0.1 * np.arange(frames)
        place = states[:, 1 : 1 + 7 * len(held)].reshape(frames, len(held), 7)
        place[:] = [*rng.uniform(-0.5, 0.5, 3), 1.0, 0.0, 0.0, 0.0]
        place[..., :3] = rng.uniform(-0.4, 0.4, (frames, len(held), 3))
        demos[f"demo_{number}"], scenes[f"demo_{number}"] = states, table_scene(rng, held)
    write_demos("demos.hdf5", demos, scenes)
    collide.ok("run demos.hdf5 --uneven-demos hold --gap 0.1 --columns slip -o tables.h5")
    for name in demos:
        collide.ok(f"run demos.hdf5 --demos {name} --gap 0.1 --columns slip -o {name}.h5")
    return [f"{name}.h5" for name in demos]


@pytest.mark.parametrize("by", ["bodies", "shapes"])
def test_names_are_one_axis_over_scenes(tables, collide, by):
    """The labels of several scenes equal those of each demonstration alone, and there is none where
    it has no pair."""
    options: Any = {"by": by, "leave": 0.05, "min_frames": 2, "slip": True}
    with pytest.warns(UserWarning, match="not in the world's scene"):
        both = collidecli.label("tables.h5", **options)
    assert len(set(both.sensors)) == len(both.sensors)
    assert set(both.partners) == {*both.sensors, "table"}
    rows = 0
    for world, file in enumerate(tables):
        alone = collidecli.label(file, **options)
        frames = len(alone.frame)
        here = [
            [names.index(name) for name in own]
            for names, own in zip(
                (both.sensors, both.partners), (alone.sensors, alone.partners), strict=True
            )
        ]
        places = (slice(frames), world, *np.ix_(*here))
        for name in ("touch", "distance", "slip"):
            np.testing.assert_array_equal(getattr(both, name)[places], getattr(alone, name)[:, 0])
        present = np.zeros(both.present.shape[1:], bool)
        present[np.ix_(*here)] = True
        np.testing.assert_array_equal(both.present[world], present)
        assert np.isnan(both.distance[:, world, ~present]).all()
        assert alone.touch.any()
        rows += frames * (present.sum() - len(alone.sensors))
    collide.ok(f"label tables.h5 --by {by} --leave 5cm --min-frames 2 -o all.parquet --slip")
    table = pandas.read_parquet("all.parquet")
    assert (len(table), table["touch"].sum()) == (rows, both.touch[both.recorded].sum())


@pytest.mark.rest
def test_rows_of_names_in_other_verbs(tables, collide, no_charts):
    """Totals of a name in several scenes are those of the demonstrations together."""
    whole, *alone = (
        collide.result("report", file, "--include", "tray_top") for file in ("tables.h5", *tables)
    )
    for rows_of, value, total in (
        (lambda r: r["pairs"]["listed"], "contacts", sum),
        (lambda r: r["worst"], "distance", min),
    ):
        counts = defaultdict(list)
        for row in chain(*map(rows_of, alone)):
            counts[frozenset((row["shape0"], row["shape1"]))].append(row[value])
        rows = [(frozenset((row["shape0"], row["shape1"])), row[value]) for row in rows_of(whole)]
        assert len(rows) == len(dict(rows)) > 3
        assert dict(rows) == {pair: total(values) for pair, values in counts.items()}
    totals, *parts = (collide.result("inspect", file) for file in ("tables.h5", *tables))
    assert totals["contacts"] == sum(part["contacts"] for part in parts)
    assert (
        totals["contact_pair_count"] == collide.result("report tables.h5 --force")["pairs"]["count"]
    )
    audits = [collide.result("audit", file)["pairs"] for file in ("tables.h5", *tables)]
    rows, *parts = (
        {frozenset((one["shape0"], one["shape1"])): one for one in pairs} for pairs in audits
    )
    assert rows.keys() == set().union(*parts)
    for pair, one in rows.items():
        held = [part[pair] for part in parts if pair in part]
        assert one["cells"] == sum(each["cells"] for each in held)
        assert one["depth"] == max(each["depth"] for each in held)
    for options in (("--top", "3"), ("--by", "body"), ("--between", "*_top", "*_low")):
        more = (("--uneven-demos", "hold"), *(("--demos", Path(file).stem) for file in tables))
        found = [
            collide.result("clearance demos.hdf5 --first 99", *options, *words)["listed"]
            for words in more
        ]
        whole, *parts = (
            [
                (
                    one.get("body", frozenset((one.get("shape0"), one.get("shape1")))),
                    one["least_distance"],
                )
                for one in listed
            ]
            for listed in found
        )
        nearest = {}
        for name, least in chain(*parts):
            nearest[name] = min(least, nearest.get(name, np.inf))
        if "--between" in options:
            nearest = {name: min(nearest.values()) for name, _ in whole}
        count = 3 if "--top" in options else len(nearest)
        assert [least for _, least in whole] == sorted(nearest.values())[:count], options
        assert all(nearest[name] == least for name, least in whole), options


def test_pairs_of_a_view_are_shapes_of_its_world(tables):
    """A name is one row in tables, and in a view each world has its own shapes."""
    with opened_view(ViewRequest("tables.h5")) as view, ContactSet.open("tables.h5") as contacts:
        pairs = list(view.touches)
        for pair in pairs:
            template = contacts.shapes.template[list(pair.shapes)]
            assert set(template.tolist()) <= {-1, contacts.world_template[pair.world]}
            assert tuple(contacts.shapes.path[row] for row in pair.shapes) == pair.paths
        assert {pair.world for pair in pairs} == {0, 1, 2}


def test_a_rule_beyond_the_gap_of_a_forced_pair_is_refused(here):
    model = replace(small_model(1, forced=True), forced_gap=np.array([np.nan, 0.01]))
    write_contact_set(here / "f.h5", model, made_up_block(model, 3))
    with ContactSet.open("f.h5") as contacts:
        for pair, limit in (("bøx", "egg"), 0.01), (("ball", "egg"), 0.2):
            NamedPairs([pair], LabelRule(0.0, limit)).labels(contacts)
            with pytest.raises(InputError, match=f"only up to {limit:g} m"):
                NamedPairs([pair], LabelRule(0.0, 1.1 * limit)).labels(contacts)


def _check_pairs_of_gather(collide):
    """Pairs of `gather` are labelled by the rule of `label`; an episode without the pair is
    marked."""
    rule = ("--leave", "5cm", "--min-frames", "2")
    collide.ok("batch gather B --to robomimic -o R --pairs", "can_top tray_top", *rule)
    collide.ok("label B -o shapes.parquet --by shapes --sensors can_top --partners tray_top", *rule)
    labels = pandas.read_parquet("shapes.parquet").groupby("demo", observed=True)
    (path,) = Path("R").rglob("*.hdf5")
    with h5py.File(path) as file:
        for name, demo in file["data"].items():
            of_pair = {key: values[:, 0] for key, values in demo["pairs"].items()}
            assert of_pair["present"].all() == (name in labels.groups) == (name != "demo_1")
            if name in labels.groups:
                expected = labels.get_group(name).sort_values("frame")
                assert (of_pair["touching"] == expected["touch"]).all()
                valid = of_pair["valid"]
                assert (of_pair["distance"][valid] == expected["distance"][valid]).all()
            else:
                assert not any(of_pair[key].any() for key in ("present", "touching", "valid"))


@pytest.mark.rest
def test_one_table_of_several_sets(tables, collide):
    """A folder, several files and a batch give the rows of each set; a pattern may match in some of
    them only."""
    options = ("--sensors", "cube,bowl", "--partners", "tray,can", "--leave", "5cm", "--slip")
    for file in tables:
        Path("sets").mkdir(exist_ok=True)
        Path(file).rename(f"sets/{file}")
    collide.ok("label tables.h5 -o whole.parquet", *options)
    collide.ok("label sets -o each.parquet", *options)
    job = '[[job]]\nname = "pick"\nmotion = ["demos.hdf5"]\n'
    Path("jobs.toml").write_text(
        job + 'options = { gap = 0.1, columns = ["slip"], device = "cpu" }\n'
    )
    compute(collide)
    result = collide.result("label B -o batch.parquet", *options)
    assert (result["counts"]["done"], result["written"]) == (3, "batch.parquet")
    names = [f"demos.hdf5 demo_{k}" for k in range(3)]
    assert sorted(item["name"] for item in result["items"]) == names
    shown = collide.ok("audit B").out
    assert all(f" {name} " in shown for name in names)
    columns = ["episode", "frame", "sensor", "partner", "time", "touch", "distance", "slip"]
    whole, each, batch = (
        pandas.read_parquet(f"{name}.parquet").astype(
            {"sensor": str, "partner": str, "episode": str}
        )
        for name in ("whole", "each", "batch")
    )
    batch["episode"] = batch["demo"].astype(str)
    assert set(zip(batch["job"], batch["motion"], strict=True)) == {
        ("pick", str(Path("demos.hdf5").resolve()))
    }
    whole, each, batch = (
        table[columns].sort_values(columns[:4]).reset_index(drop=True)
        for table in (whole, each, batch)
    )
    pandas.testing.assert_frame_equal(each, whole)
    pandas.testing.assert_frame_equal(batch, whole)
    assert whole["touch"].sum() == sum(item["result"]["labelled"] for item in result["items"]) > 0
    _check_pairs_of_gather(collide)
    collide.refused(
        "label sets -o x.parquet --partners tray,cop",
        told="'cop' matches nothing in 3 contact sets",
    )
    collide.refused("label sets -o x.npz", told=".parquet")
    collide.refused("label sets -o x.parquet --chart x.svg", told="--chart is for one contact set")
    Path("sets/bad.h5").write_text("no contact set")
    assert collide("label sets -o some.parquet", *options).code == 1
    assert len(pandas.read_parquet("some.parquet")) == len(each)
    assert collide("label sets/bad.h5 sets/bad.h5 -o none.parquet").code == 2
    assert not Path("none.parquet").exists()


def test_nominal_forces(made, collide):
    """On request: arrays, columns, the listed pairs, and what is refused."""
    plain = collide.result("label a.h5 -o plain.npz")
    options = ["--nominal-stiffness", "20000N/m", "--by", "shapes"]
    result = collide.result("label a.h5 -o out.npz", *options)
    assert "nominal_stiffness" not in plain["options"]
    assert result["options"]["nominal_stiffness"] == 20000.0
    first = result["listed"][0]
    assert first["greatest_force"] == pytest.approx(20000.0 * -first["least_distance"])
    assert "greatest_force" not in plain["listed"][0]
    with np.load("out.npz") as found, np.load("plain.npz") as without:
        sensors, partners = found["sensors"].tolist(), found["partners"].tolist()
        force = found["nominal_force"]
        size = np.linalg.norm(force, axis=-1)
        expected = np.zeros(size.shape)
        for row in ROWS:
            names = ["ground", "ball", "bøx"]
            for one, other in ((row.shape0, row.shape1), (row.shape1, row.shape0)):
                if names[one] in sensors:
                    at = sensors.index(names[one]), partners.index(names[other])
                    place = (row.frame, row.world, *at)
                    expected[place] = max(expected[place], 20000.0 * max(0.0, -row.distance))
        assert size == pytest.approx(expected, rel=1e-5)
        ball, box = sensors.index("ball"), sensors.index("bøx")
        pair = force[3, 1, ball, partners.index("bøx")], force[3, 1, box, partners.index("ball")]
        assert np.array_equal(pair[0], -pair[1])
        assert "nominal_force" not in without
        assert "pressure_centre" not in without
    for name in ("l.parquet", "l.csv", "l.h5"):
        collide.ok("label", made, "-o", name, *options)
    for table in (pandas.read_parquet("l.parquet"), pandas.read_csv("l.csv")):
        columns = [f"nominal_force_{axis}" for axis in "xyz"]
        assert np.linalg.norm(table[columns], axis=1).max() == pytest.approx(200.0)
        assert table["pressure_centre_x"].notna().sum() == (expected > 0.0).sum()
    with h5py.File("l.h5") as file:
        assert file["nominal_force"].attrs["unit"] == "N"
        assert np.array_equal(file["nominal_force"][()], force)
    assert "nominal force" in collide("label", made, "-o", "shown.npz", *options).out
    for value in ("0", "-1", "nan", "inf", "1kg"):
        assert collide("label a.h5 -o no.npz --nominal-stiffness", value).code == 2


def test_a_wide_table_of_pairs(made, collide):
    """A row for each frame and world, with the columns of each pair of two different bodies."""
    options = ["--sensors", "body0,body1", "--partners", "body1,ground"]
    collide.ok("label a.h5 -o rows.parquet", *options)
    collide.ok("label a.h5 -o wide.parquet --wide", *options)
    rows, wide = (pandas.read_parquet(f"{name}.parquet") for name in ("rows", "wide"))
    pairs = ["body0|body1", "body0|ground", "body1|ground"]
    assert [name for name in wide.columns if name.endswith(".touch")] == [
        f"{pair}.touch" for pair in pairs
    ]
    assert len(wide) == 6 * 2
    for pair in pairs:
        sensor, partner = pair.split("|")
        of_pair = rows[(rows["sensor"] == sensor) & (rows["partner"] == partner)]
        for name in ("touch", "distance"):
            np.testing.assert_array_equal(wide[f"{pair}.{name}"], of_pair[name])
    collide.ok("label a.h5 -o some.csv --wide --columns touch", *options)
    some = pandas.read_csv("some.csv")
    assert [*some.columns] == [
        name for name in wide.columns if "." not in name or name.endswith(".touch")
    ]
    told = "the labels have no column 'tuch'\n  did you mean touch?"
    collide.refused("label a.h5 -o x.csv --wide --columns tuch", *options, told=told)
    collide.refused("label a.h5 -o x.csv --columns touch", *options, told="give --wide too")
    collide.refused("label a.h5 a.h5 -o x.parquet --wide", told="--wide is for one contact set")


def test_a_wide_table_of_too_many_columns_is_refused(made, collide, monkeypatch):
    monkeypatch.setattr(files, "MOST_WIDE", 5)
    collide.refused("label a.h5 -o x.parquet --wide", told="at most 5 fit")


@pytest.mark.parametrize(("rule", "gap"), [("sum", "0.0025"), ("max", "0.005")])
def test_the_gap_that_a_rule_needs(here, collide, rule, gap):
    """--leave beyond the gap: the option that gives it by the rule of the set, and no other."""
    scene = "<geom name='g' type='plane' size='1 1 1'/><body name='b' pos='0 0 1'><freejoint/>"
    scene = f"{scene}<geom name='s' size='.1'/></body>"
    (here / "s.xml").write_text(f"<mujoco><worldbody>{scene}</worldbody></mujoco>")
    collide.ok(f"run s.xml --gap 0 --gap-rule {rule} --device cpu -o s.h5")
    both = ", of which a pair has the sum of two" if rule == "sum" else ""
    for option in ("--leave", "--enter"):  # --leave is that of --enter where it is not given
        told = f"run with --gap {gap}{both}, or give {option} 0 at most"
        answer = collide.refused(f"label s.h5 {option} 5mm -o x.npz", told=told)
        assert f"{option} 0.005: contacts of " in answer
    with pytest.raises(InputError, match=r"^enter 0.005: .*\n.*, or give enter 0 at most"):
        collidecli.label("s.h5", enter="5mm")
    collide.ok(f"run s.xml --gap {gap} --gap-rule {rule} --device cpu -o s.h5 --force")
    collide.ok("label s.h5 --leave 5mm -o x.npz")


def test_labels_are_listed_without_an_output(made, collide):
    """The result is that of a run with a file, without the file."""
    written = collide.result("label plain.h5 -o a.npz")
    plain = collide.result("label plain.h5")
    assert (plain.pop("output"), plain.get("bytes")) == (None, None)
    assert {written.pop("output"), written.pop("bytes") > 0} == {"a.npz", True}
    assert plain == written
    assert plain["labelled"] > 0
    shown = collide.ok("label plain.h5").out
    assert "written" not in shown
    assert plain["listed"][0]["sensor"] in shown
    Path("other.h5").write_bytes(Path("plain.h5").read_bytes())
    several = collide.result("label plain.h5 other.h5")
    assert several["written"] is None
    assert [item["result"]["labelled"] for item in several["items"]] == [plain["labelled"]] * 2
    collide.refused("label plain.h5 --wide", told="--wide is for a table with a row for each frame")
