"""`collide run --sweep` on the command line, for every table of steps: shapes, particles, cloths,
self-contacts."""

import math
import re
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.view.view import ViewRequest, opened_view
from tests.cli.conftest import CommandLine, arrays, attributes, write_poses
from tests.support.meshes import grid
from tests.support.usd_scenes import COLLIDER, sphere, write_usda

SCENE = """<mujoco><worldbody>
<geom name="wall" type="box" size="0.0005 1 1"/>
<body name="bullet" pos="-5 0 0"><freejoint/><geom name="bullet" type="sphere" size="0.004"/></body>
<body name="bar" pos="0 0 3"><freejoint/><geom name="bar" type="capsule" size="0.05 0.6" pos="0.3 0 0"/></body>
<body name="post" pos="1 0 3"><freejoint/><geom name="post" type="box" size="0.1 0.1 0.4"/></body>
</worldbody></mujoco>"""
NAMES = ("bullet", "bar", "post")
FRAMES = 24
RATE = 60.0
HEADER = (
    'metersPerUnit = 1\n upAxis = "Z"\n startTimeCode = 0\n endTimeCode = 3\n timeCodesPerSecond'
    " = 60"
)
GRAIN_FALL = 1.0 / 6.0
CLOTH_FALL = 0.5
LIMIT = 0.01
"""Of a grain and of a cloth in a frame [m]; the limit of self-contacts [m]."""


def poses(turn: float = 0.55) -> np.ndarray:
    """A bullet at 100 m/s in frames of 1/60 s, and a bar that turns by 2 * `turn` rad a frame
    through a post."""
    frame = np.arange(FRAMES)
    found = np.zeros((FRAMES, 1, 3, 7))
    found[..., 6] = 1.0
    found[:, 0, 0, 0] = -9.5 + 100.0 / RATE * frame
    found[:, 0, 1, 2] = 3.0
    found[:, 0, 2, 2] = 3.0
    found[:, 0, 2, 0] = 0.35
    found[:, 0, 1, 5], found[:, 0, 1, 6] = np.sin(turn * frame + 0.3), np.cos(turn * frame + 0.3)
    return found


def falling(points: Any, fall: float, first: float = 0.0) -> np.ndarray:
    """float64[4, n, 3]: points that fall by `fall` a frame, in the numbers of float32."""
    found = np.tile(np.array(points, float), (4, 1, 1))
    found[..., 2] += first - fall * np.arange(4)[:, None]
    return found.astype(np.float32).astype(float)


def samples(name: str, positions: np.ndarray) -> str:
    """A point attribute with a time sample for each frame."""
    frames = (", ".join(str(tuple(map(float, point))) for point in frame) for frame in positions)
    return (
        f"point3f[] {name}.timeSamples = {{"
        f" {', '.join(f'{n}: [{text}]' for n, text in enumerate(frames))} }}\n"
    )


def block(name: str, place: tuple, scale: tuple) -> str:
    return f"""def Cube "{name}" {COLLIDER} {{
    double size = 1
    double3 xformOp:translate = {place}
    double3 xformOp:scale = {scale}
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
}}
"""


def cloth(name: str, positions: np.ndarray, faces: np.ndarray, inside: str = "") -> str:
    counts = [3] * len(faces)
    indices = np.ravel(faces).tolist()
    mesh = f"{inside}\nint[] faceVertexCounts = {counts}\nint[] faceVertexIndices = {indices}\n"
    return f'def Mesh "{name}" {COLLIDER} {{\n{mesh}{samples("points", positions)}}}\n'


GRAINS = falling([[2.1, 0.05, 0.25], [0.0, 0.0, 0.7], [9.0, 0.0, 0.25]], GRAIN_FALL)
"""One falls through the plate between frames, one onto the ball, one beside both."""
SQUARE = falling(
    [(-1.2, -1.0, 0.0), (0.8, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)], CLOTH_FALL, 0.75
)
"""A cloth that falls past a peg, which is inside one triangle, and past a post with a corner."""
LOWER = np.tile(grid(2)[0], (4, 1, 1)).astype(np.float32).astype(float)
FACES = grid(2)[1]
UPPER = falling(grid(2)[0] + np.array([0.1, 0.05, 0.7]), CLOTH_FALL)
"""A cloth that falls through another, which rests, from the second to the third frame."""
PARTICLES = f"""{sphere("ball", "double radius = 0.3", COLLIDER)}
{block("plate", (2, 0, 0), (0.5, 0.5, 0.001))}
def Points "grains" {COLLIDER} {{
    float[] widths = [0.002, 0.002, 0.002]
    {samples("points", GRAINS)}}}
"""
PEG = f"""def Capsule "peg" {COLLIDER} {{
    double radius = 0.01
    double height = 0.18
    uniform token axis = "Z"
}}
{block("post", (1, 1, 0), (0.02, 0.02, 0.2))}
{cloth("cloth", SQUARE, np.array([[0, 1, 2], [0, 2, 3]]), "float collide:particleRadius = 0")}
"""


def write_rigid(folder: Path) -> None:
    (folder / "scene.xml").write_text(SCENE)
    write_poses(folder / "motion.h5", poses(), NAMES, 1.0 / RATE)


def stage(text: str) -> Callable[[Path], object]:
    return lambda folder: write_usda(folder, text, HEADER, "scene.usda")


def check_shot(columns: dict[str, np.ndarray], frame: np.ndarray) -> None:
    shot = (columns["shape0"] == 0) & (columns["shape1"] == 1)
    assert shot.sum() == 1
    assert (frame[shot][0] + columns["enter"][shot][0]) / RATE == pytest.approx(
        (9.5 - 0.0045) / 100.0, abs=1e-6
    )
    assert columns["tunnel"][shot].tolist() == [1]


def check_grains(columns: dict[str, np.ndarray], frame: np.ndarray) -> None:
    assert (frame.tolist(), columns["indices"][:, 0].tolist(), columns["tunnel"].tolist()) == (
        [1, 2],
        [0, 1],
        [1, 0],
    )
    assert columns["enter"][0] == pytest.approx((0.25 - GRAIN_FALL - 0.0015) / GRAIN_FALL, abs=1e-5)


def check_square(columns: dict[str, np.ndarray], frame: np.ndarray) -> None:
    assert (frame.tolist(), columns["shape"].tolist(), columns["kind"].tolist()) == (
        [1, 1],
        [1, 0],
        [0, 2],
    )
    assert columns["indices"].tolist() == [[2, -1, -1], [0, 1, 2]]
    np.testing.assert_allclose(columns["enter"], (0.25 - 0.1) / CLOTH_FALL, atol=1e-5)
    np.testing.assert_allclose(columns["barycentric"].sum(axis=1), 1.0, atol=1e-6)


def check_cloths(columns: dict[str, np.ndarray], frame: np.ndarray) -> None:
    assert (frame == 1).all()
    assert set(columns["kind"].tolist()) == {0, 1}
    faces = columns["kind"] == 0
    np.testing.assert_allclose(columns["enter"][faces], (0.2 - LIMIT) / CLOTH_FALL, atol=1e-5)
    np.testing.assert_allclose(columns["leave"][faces], (0.2 + LIMIT) / CLOTH_FALL, atol=1e-5)


@dataclass(frozen=True)
class Case:
    """A scene with one table of steps.

    counts: touches, tunnels; None for some. line: of the summary. check: of columns and frames.
    events: whether each pair is missed, and its begin [s]. of_particles: events of single
    particles.
    """

    table: str
    write: Callable[[Path], object]
    run: str
    check: Callable[[dict[str, np.ndarray], np.ndarray], None]
    line: str
    counts: tuple[int, int] | None = None
    owners: tuple[tuple[str, ...], ...] = ()
    positions: np.ndarray | None = None
    events: dict[tuple[str, str], tuple[bool, float | None]] | None = None
    of_particles: tuple[tuple[str, str], ...] = ()


CASES = {
    "shapes": Case(
        "sweep",
        write_rigid,
        "run scene.xml -t motion.h5",
        check_shot,
        " of touches between frames, 1 of them in no frame",
    ),
    "grains": Case(
        "soft_sweep",
        stage(PARTICLES),
        "run scene.usda",
        check_grains,
        "particles: 2 rows of touches between frames, 1 of them in no frame",
        (2, 1),
        (("/grains",),),
        GRAINS,
        {("/plate", "/grains"): (True, None), ("/ball", "/grains"): (False, (0.7 - 0.301) / 10.0)},
        (("/ball", "/grains[1]"), ("/plate", "/grains[0]")),
    ),
    "cloth": Case(
        "soft_sweep",
        stage(PEG),
        "run scene.usda",
        check_square,
        "particles: 2 rows of touches between frames, 2 of them in no frame",
        (2, 2),
        (("/cloth",),),
        SQUARE,
        {("/peg", "/cloth"): (True, None), ("/post", "/cloth"): (True, None)},
        (*(("/peg", f"/cloth[{n}]") for n in (0, 1, 2)), ("/post", "/cloth[2]")),
    ),
    "self": Case(
        "self_sweep",
        stage(cloth("lower", LOWER, FACES) + cloth("upper", UPPER, FACES)),
        f"run scene.usda --self-contacts {LIMIT}",
        check_cloths,
        "self-contacts: ",
        None,
        (("/lower", "/upper"), ("/upper", "/lower")),
        np.concatenate([LOWER, UPPER], axis=1),
        {("/lower", "/upper"): (True, (1.0 + (0.2 - LIMIT) / CLOTH_FALL) / RATE)},
    ),
}


@dataclass(frozen=True)
class Swept:
    """A folder with swept.h5 and plain.h5, the runs with and without --sweep; rows and output of
    the former."""

    case: Case
    folder: Path
    result: dict[str, Any]
    columns: dict[str, np.ndarray]
    frame: np.ndarray


def rows_of(path: str | Path, table: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns and cells."""
    with ContactSet.open(path) as contacts:
        held = contacts.groups[table]
        columns = {column.name: held.column(column.name) for column in held.columns}
        return columns, np.repeat(np.arange(contacts.cell_count), np.diff(held.cell_start()))


@pytest.fixture(scope="module", params=CASES)
def computed(request, tmp_path_factory) -> Swept:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("swept")
    collide = CommandLine()
    with chdir(folder):
        case.write(folder)
        collide.ok(case.run, "-o", "plain.h5")
        result = collide.result(case.run, "--sweep", "-o", "swept.h5")
    assert not any("swept" in warning for warning in result["warnings"]), "every object is"
    return Swept(case, folder, result, *rows_of(folder / "swept.h5", case.table))


@pytest.fixture
def swept(computed, collide, monkeypatch) -> Swept:
    """The current folder is that of the runs."""
    monkeypatch.chdir(computed.folder)
    return computed


only_shapes = pytest.mark.parametrize("computed", ["shapes"], indirect=True)
of_particles = pytest.mark.parametrize(
    "computed", [name for name in CASES if name != "shapes"], indirect=True
)


@pytest.mark.rest
def test_the_table_agrees_with_the_summary(swept, collide):
    case = swept.case
    columns = swept.columns
    count = len(swept.frame)
    assert check_file("swept.h5") == []
    case.check(columns, swept.frame)
    touches, tunnels = case.counts or (count, int(columns["tunnel"].sum()))
    assert swept.result[case.table] == {"touches": touches, "tunnels": tunnels, "undecided": 0}
    assert swept.result["groups"][case.table]["rows"] == count == touches > 1
    assert swept.result["groups"][case.table]["deepest"]["distance"] == columns["least"].min()
    shown = collide.ok(case.run, "--sweep", "-o", "again.h5", "--force").out
    assert case.line in shown
    title = case.table.replace("_", " ")
    of_table = next(line for line in shown.splitlines() if re.match(rf"{title} +\d", line))
    assert "; between frames" in of_table
    assert ("none of their particles touches" in of_table) == (case.table == "soft_sweep")
    assert f"{count} rows of touches between frames, " in shown
    with collidecli.ContactSet.open("swept.h5") as contacts:
        held = (contacts.version, contacts.config["sweep"], "sweep_tolerance" in contacts.config)
        assert held == ((1, 4), True, False)
        table = contacts.to_pandas(group=case.table)
    owners = table[[name for name in table.columns if name.startswith("object")]]
    assert {*owners.itertuples(index=False, name=None)} == {*case.owners} or not case.owners
    collide.ok("export swept.h5 --to csv --force -o t.csv --group", case.table)
    rows = pandas.read_csv("t.csv")
    assert len(rows) == count
    if "kind" in rows:
        words = (
            ("vertex", "edge", "face")
            if case.table == "soft_sweep"
            else ("vertex-face", "edge-edge")
        )
        assert rows["kind"].tolist() == [words[kind] for kind in columns["kind"]]


def test_the_contacts_in_frames_are_those_without_sweep(swept):
    plain = arrays("plain.h5")
    found = arrays("swept.h5")
    groups, more = ({name.split("/")[0] for name in held} for held in (plain, found))
    assert {swept.case.table} <= more - groups <= {"sweep", "soft_sweep", "self_sweep"}
    for name, values in plain.items():
        if name.split("/")[0] in ("rigid_contacts", "soft_contacts", "self_contacts"):
            np.testing.assert_array_equal(values, found[name])
    assert attributes("plain.h5")["format_version"].tolist() == [1, 3]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "more",
    [
        "--threads 2 --chunk-cells 1 --broad-phase sap",
        "--threads 1 --chunk-cells 5 --broad-phase nxn",
    ],
)
def test_bits_do_not_depend_on_the_execution(swept, collide, more):
    run = (swept.case.run, "--sweep", "-o", "o.h5", "--force", "--memory-limit", "256MiB")
    assert collide.result(*run, *more.split())["content_sha256"] == swept.result["content_sha256"]


@pytest.mark.share(2)
def test_worlds_of_one_recording_have_equal_rows(swept, collide):
    collide.ok(swept.case.run, "--sweep", "--worlds", "3", "-o", "o.h5", "--force")
    columns, cell = rows_of("o.h5", swept.case.table)
    for world in range(3):
        assert (cell[cell % 3 == world] // 3).tolist() == swept.frame.tolist()
        for name, values in swept.columns.items():
            np.testing.assert_array_equal(columns[name][cell % 3 == world], values)


@of_particles
def test_python_has_the_rows_of_the_command(swept):
    builder = collidecli.ModelBuilder()
    builder.add_usd("scene.usda")
    limit = {"self_contacts": LIMIT} if swept.case.table == "self_sweep" else {}
    made = collidecli.sweep(
        builder.finalize(), None, particle_q=swept.case.positions[:, None], **limit
    )
    found = made.elements if limit else made.particles
    assert found is not None
    assert found.frame.tolist() == swept.frame.tolist()
    names = {"kind", "indices", "shape", "barycentric", "enter", "leave", "least", "least_bound"}
    for name in names & {*swept.columns}:
        np.testing.assert_array_equal(getattr(found, name), swept.columns[name])


@of_particles
@pytest.mark.usefixtures("no_charts")
def test_other_verbs_read_the_table(swept, collide):
    case = swept.case
    columns = swept.columns

    def events(*options):
        return collide.result("events swept.h5 --sweep --first 1000", *options)["between_frames"]

    found = events()
    missed = sum(one for one, _ in case.events.values())
    assert (found["count"], found["missed"], found["undecided"]) == (len(case.events), missed, 0)
    for one in found["listed"]:
        is_missed, begin = case.events[one["shape0"], one["shape1"]]
        assert one["missed"] == is_missed
        assert begin is None or one["begin_time"] == pytest.approx(begin, abs=1e-6)
    shape, _ = next(iter(case.events))
    assert events("--include", shape)["count"] == sum(shape in pair for pair in case.events)
    alone = events("--by", "particles")["listed"]
    if case.of_particles:
        assert sorted((one["shape"], one["particle"]) for one in alone) == sorted(case.of_particles)
    else:
        assert len(alone) == len(np.unique(columns["indices"]))
    page = collide.result("report swept.h5 -o page.html --force")["between_frames"]
    assert (page["count"], page["missed"]) == (found["count"], found["missed"])
    with opened_view(ViewRequest("swept.h5")) as view:
        drawn = (
            view.frames.self_contacts(1, 0)["point"]
            if case.table == "self_sweep"
            else view.frames.contacts(1, 0)["point0"]
        )
    assert len(drawn) == (swept.frame == 1).sum()
    if case.table == "self_sweep":
        np.testing.assert_allclose(drawn[:, 2], 0.5 * LIMIT, atol=2e-6)
    elif case.positions is GRAINS:
        np.testing.assert_allclose(drawn, [[2.1, 0.05, 0.0005]], atol=1e-6)


def test_neither_one_frame_nor_parts_of_a_motion(swept, collide):
    run = (swept.case.run, "--sweep", "--force")
    collide.refused(*run, "--frames", "1", "-o", "one.h5", told="has one frame")
    for name, frames in (("a.h5", ":2"), ("b.h5", "2:")):
        collide.ok(*run, "--frames", frames, "-o", name)
    collide.refused(
        "merge a.h5 b.h5 -o c.h5", told="none between its frames and those of another set"
    )


@pytest.mark.parametrize("computed", ["self"], indirect=True)
def test_self_contacts_are_swept_where_both_are_asked_for(swept, collide):
    collide.ok("run scene.usda --sweep -o b.h5 --force")
    assert not any("self_sweep" in name for path in ("plain.h5", "b.h5") for name in arrays(path))


@only_shapes
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--sweep --sweep-tolerance 0", "sweep_tolerance is 0"),
        ("--sweep --sweep-tolerance -1e-6", "-1e-6"),
        ("--sweep --sweep-tolerance nan", "nan"),
        ("--sweep-tolerance 1mm", "--sweep"),
        ("--sweep --frames ::2", "body 'bar' rotates by half a turn"),
    ],
)
def test_bad_input_is_refused(swept, collide, more, message):
    write_poses("quarter.h5", poses(np.pi / 4), NAMES, 1.0 / RATE)
    collide.refused("run scene.xml -t quarter.h5 -o out.h5", *more.split(), told=message)


@only_shapes
def test_events_join_the_touches_of_consecutive_steps(swept, collide):
    values = np.zeros((4, 1, 3, 7))
    values[..., 6] = 1.0
    values[:, 0, 1, 1] = 50.0
    values[:, 0, 2, 1] = 90.0
    # the ball touches the wall from -0.0045 to 0.0045
    values[:, 0, 0, 0] = [-0.01, -0.002, 0.002, 0.05]
    write_poses("slow.h5", values, NAMES, 1.0 / RATE)
    collide.ok("run scene.xml -t slow.h5 --sweep -o out.h5")
    found = collide.result("events out.h5 --sweep")["between_frames"]
    assert (found["count"], found["missed"], found["undecided"]) == (1, 0, 0)
    (one,) = found["listed"]
    named = [one[name] for name in ("frame", "world", "shape0", "shape1", "missed")]
    assert named == [0, 0, "wall", "bullet", False]
    times = np.array([0.0055 / 0.008, 2.0 + 0.0025 / 0.048]) / RATE
    assert [one["begin_time"], one["end_time"]] == pytest.approx(times, abs=1e-5)
    assert (
        "1 touch with times between frames, 0 in no frame"
        in collide("events out.h5 --sweep --by bodies").out
    )
    none = collide.result("events out.h5 --sweep --include post")["between_frames"]
    assert none == {"count": 0, "missed": 0, "undecided": 0, "listed": []}


@pytest.mark.share(3)
@only_shapes
@pytest.mark.parametrize(
    "options", ["", "--by bodies", "--merge-gap 3", "--threshold any", "--frames 5:20"]
)
def test_tables_of_events_have_the_times_between_frames(swept, collide, options):
    """A touch in frames has begin and end of those in --json that overlap it; missed ones are rows
    at the end."""
    collide.ok(swept.case.run, "--sweep", "--worlds", "2", "-o", "two.h5", "--force")
    words = (
        "events two.h5 --sweep --first 1000 --csv t.csv --parquet t.parquet --force",
        *options.split(),
    )
    found = collide.result(*words)
    table = pandas.read_csv("t.csv")
    assert table["missed"].sum() == found["between_frames"]["missed"] > 0
    assert len(table) == found["intervals"]["count"] + found["between_frames"]["missed"]
    assert len(pandas.read_parquet("t.parquet")) == len(table)
    assert table["missed"].is_monotonic_increasing
    names = [name for name in table.columns if name[:-1] in ("shape", "body")]
    with ContactSet.open("two.h5") as contacts:
        time = contacts.time
    for row in table.to_dict("records"):
        listed = found["between_frames"]["listed"]
        pair = [one for one in listed if all(one[n] == row[n] for n in (*names, "world"))]
        if row["missed"]:
            (one,) = [
                one for one in pair if one["begin_time"] == row["begin_time"] == row["enter_time"]
            ]
            assert (one["missed"], one["end_time"], row["contacts"]) == (True, row["leave_time"], 0)
            assert time[row["begin_frame"]] <= row["enter_time"] <= time[row["begin_frame"] + 1]
            continue
        first = row["begin_time"]
        last = time[row["last_frame"]]
        held = [one for one in pair if one["end_time"] >= first and one["begin_time"] <= last]
        if not held:
            assert np.isnan(row["enter_time"])
            assert options == "--threshold any"
            continue
        assert row["enter_time"] == min(one["begin_time"] for one in held)
        assert row["leave_time"] == max(one["end_time"] for one in held)


@only_shapes
@pytest.mark.parametrize("options", [{}, {"by": "bodies", "threshold": "any"}])
def test_python_has_the_table_of_events_with_sweep(swept, collide, options):
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    collide.ok("events swept.h5 --sweep --parquet t.parquet --force", *words)
    table = pandas.read_parquet("t.parquet").drop(columns="file")
    with collidecli.ContactSet.open("swept.h5") as contacts:
        found = contacts.events(sweep=True, **options).to_pandas()
    assert table["missed"].any()
    found = found.sort_values("missed", kind="stable").reset_index(drop=True)
    assert found.columns.tolist() == table.columns.tolist()
    order = ["missed", "begin_time", *table.columns[1:3], "world"]
    one, other = (t.astype(dict.fromkeys(table.columns[1:3], str)) for t in (found, table))
    one, other = (t.sort_values(order).reset_index(drop=True) for t in (one, other))
    pandas.testing.assert_frame_equal(one, other, check_dtype=False)


@only_shapes
def test_python_refuses_a_sweep_of_a_set_without_one(swept):
    with (
        collidecli.ContactSet.open("plain.h5") as contacts,
        pytest.raises(InputError, match="no contacts between frames"),
    ):
        contacts.events(sweep=True)


@only_shapes
def test_triggers_that_the_frames_miss_have_rows(swept, collide):
    """The column of triggers is in the rows of missed touches too."""
    collide.ok(swept.case.run, "--sweep", "--triggers", "bullet", "-o", "trigger.h5", "--force")
    found = collide.result("events trigger.h5 --sweep --csv trigger.csv --force")
    table = pandas.read_csv("trigger.csv")
    assert table["missed"].sum() == found["between_frames"]["missed"]
    has_bullet = (table[["shape0", "shape1"]] == "bullet").any(axis=1)
    assert table["trigger"].tolist() == has_bullet.tolist()
    assert (has_bullet & table["missed"]).any()


@only_shapes
def test_times_between_frames_have_the_digits_of_a_thousandth_of_a_step(swept, collide):
    listed = collide.result("events swept.h5 --sweep")["between_frames"]["listed"]
    decimals = math.floor(math.log10(RATE * 1000.0))
    shown = collide.ok("events swept.h5 --sweep").out
    times = re.findall(r"(\d+\.\d+) s +(\d+\.\d+) s", shown[shown.index("between frames") :])
    assert len(times) == len(listed)
    for texts, one in zip(times, listed, strict=True):
        for text, name in zip(texts, ("begin_time", "end_time"), strict=True):
            assert len(text.partition(".")[2]) <= decimals
            assert float(text) == pytest.approx(one[name], abs=0.51 * 10.0**-decimals)


@only_shapes
@pytest.mark.parametrize("order", ["begin", "end", "duration", "depth", "contacts"])
def test_sort_and_first_choose_the_touches_between_frames(swept, collide, order):
    """Touches in no frame come first."""
    value = {
        "end": lambda one: one["end_time"],
        "duration": lambda one: one["begin_time"] - one["end_time"],
        "depth": lambda one: one["least_distance"],
    }.get(order, lambda one: one["begin_time"])
    every = collide.result("events swept.h5 --sweep --first 1000")["between_frames"]["listed"]
    assert {one["missed"] for one in every} == {True, False}
    words = f"events swept.h5 --sweep --sort {order} --first"
    listed = collide.result(words, "1000")["between_frames"]["listed"]
    wanted = sorted(every, key=lambda one: (not one["missed"], value(one), one["begin_time"]))
    assert listed == wanted
    assert collide.result(words, "2")["between_frames"]["listed"] == listed[:2]


@only_shapes
@pytest.mark.usefixtures("no_charts")
def test_the_report_lists_missed_touches_before_deep_ones(swept, collide, monkeypatch):
    monkeypatch.setattr("collidecli.verbs.report.report.MAX_LISTED", 2)
    found = collide.result("report swept.h5 -o first.html")["between_frames"]
    every = collide.result("events swept.h5 --sweep --sort depth")["between_frames"]["listed"]
    assert found["listed"] == every[:2]
    assert [one["missed"] for one in found["listed"]] == [True, False]
    assert "Listed are 2: those in no recorded frame before" in Path("first.html").read_text()


@only_shapes
def test_events_of_a_set_without_sweep(swept, collide):
    collide.refused("events plain.h5 --sweep", told="no contacts between frames")
    assert "between_frames" not in collide.result("events plain.h5")
    collide.ok("events plain.h5 --csv plain.csv")
    assert "missed" not in pandas.read_csv("plain.csv")


@only_shapes
@pytest.mark.usefixtures("no_charts")
def test_the_report_lists_missed_touches(swept, collide):
    found = collide.result("report swept.h5 -o out.html")["between_frames"]
    assert found["missed"] == 1
    text = Path("out.html").read_text()
    assert "Between frames" in text
    assert f"{found['count']} touches, 1 of them in no recorded frame." in text
    none = collide.result("report swept.h5 -o b.html --include post")
    assert none["between_frames"]["missed"] == 0


@only_shapes
def test_a_view_draws_the_touches_that_the_frames_miss(swept):
    """In the frame before, after the contacts of the frame; what the frames have is drawn once."""
    columns = swept.columns
    frame = swept.frame
    missed = np.flatnonzero(columns["tunnel"] == 1)
    assert 0 < len(missed) < len(frame)
    with opened_view(ViewRequest("swept.h5")) as view, ContactSet.open("swept.h5") as contacts:
        for index in range(FRAMES):
            drawn = view.frames.contacts(index, 0)
            assert not drawn.pop("second").any()
            held = contacts.cells(index, index + 1, tuple(drawn)).columns
            rows = missed[frame[missed] == index]
            for name, values in drawn.items():
                added = columns["least" if name == "distance" else name][rows]
                assert np.array_equal(
                    values, np.concatenate([held[name], added.astype(values.dtype)])
                ), name
        assert view.touches.deepest >= -columns["least"].min()
