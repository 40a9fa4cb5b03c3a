"""What the verbs read from a set of touches, which a run with --touch-only writes: each answer is
that of the same run with contacts, without its distances."""

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

import collidecli
from collidecli.analysis.labelled_runs import LabelRule
from collidecli.errors import InputError
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.label.named_pairs import PAIR_LABELS, NamedPairs
from tests.cli.conftest import write_poses

SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="a"><freejoint/><geom name="a" type="sphere" size=".2"/></body>
    <body name="b"><freejoint/>
      <geom name="b" type="box" size=".15 .1 .1"/>
      <geom name="tip" type="sphere" size=".1" pos=".2 0 0"/>
    </body>
    <body name="c"><freejoint/><geom name="c" type="capsule" size=".1 .2"/></body>
  </worldbody>
</mujoco>
"""
FRAMES = 40
OF_DISTANCES = ["least_distance", "deepest_frame", "deepest_time", "contacts", "most_contacts"]


def motion(worlds: int) -> np.ndarray:
    """Poses [FRAMES, worlds, 3, 7] of a, b and c, which wander above the floor and turn at will."""
    rng = np.random.default_rng(7)
    poses = np.zeros((FRAMES, worlds, 3, 7))
    poses[..., :3] = np.cumsum(rng.normal(0.0, 0.08, (FRAMES, worlds, 3, 3)), axis=0)
    poses[..., 2] = np.abs(poses[..., 2]) + 0.1
    turns = rng.normal(size=(FRAMES, worlds, 3, 4))
    poses[..., 3:] = turns / np.linalg.norm(turns, axis=-1, keepdims=True)
    return poses


RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu", "-q", "-o")


def both_sets(collide, worlds: int) -> tuple[str, str]:
    """A set of touches and a contact set of one motion in the current folder, without a gap."""
    Path("scene.xml").write_text(SCENE)
    write_poses("motion.h5", motion(worlds), ["a", "b", "c"])
    collide.ok(*RUN, "touches.h5", "--touch-only")
    collide.ok(*RUN, "contacts.h5")
    return "touches.h5", "contacts.h5"


@pytest.fixture
def sets(here, collide) -> tuple[str, str]:
    """A set of touches and a contact set of two worlds."""
    return both_sets(collide, 2)


def test_tables_do_not_say_that_there_are_no_contacts(sets, collide):
    words = [word for word in RUN if word not in ("-q", "-o")]
    printed = collide.ok(*words, "--touch-only", "-o", "again.h5").out
    for table in (printed, collide.ok("inspect", sets[0]).out):
        assert re.search(r"^contacts +not computed, by --touch-only$", table, re.M)
        assert re.search(r"^touches +\d+ ", table, re.M)
        assert not re.search(r"^deepest ", table, re.M)


@pytest.mark.parametrize("by", ["shapes", "bodies"])
def test_intervals_are_those_of_the_contacts(sets, collide, by):
    """Also with pauses, over the frames of all blocks."""
    tables = []
    for name in sets:
        output = f"{name}.csv"
        collide.ok("events", name, "--by", by, "--merge-gap", "2", "--csv", output, "-q")
        tables.append(pandas.read_csv(output).drop(columns="file"))
    touches, contacts = tables
    assert len(contacts) > 20
    assert touches.drop(columns=OF_DISTANCES).equals(contacts.drop(columns=OF_DISTANCES))
    assert np.isnan(touches[["least_distance", "deepest_time"]].to_numpy()).all()
    assert touches["deepest_frame"].equals(touches["begin_frame"])
    parquet = collide.ok("events", sets[0], "--parquet", "t.parquet")
    assert "counts as one contact, whose distance is not known" in parquet.err
    assert np.isnan(pandas.read_parquet("t.parquet")["least_distance"].to_numpy()).all()


def test_listed_intervals_have_no_distance(sets, collide):
    result = collide.result("events", sets[0], "--graph")
    assert {row["least_distance"] for row in result["listed"]} == {None}
    assert {row["deepest_time"] for row in result["listed"]} == {None}
    assert {edge["least_distance"] for edge in result["graph"]["edges"]} == {None}
    shown = collide.ok("events", sets[0], "--graph").out
    assert "touching in" in shown
    assert "distance at most 0 m" in shown
    assert "in frame" not in shown
    collide.refused("events", sets[0], "--sort", "depth", told="depths are not known")


def test_labels_are_those_of_the_contacts(sets, collide):
    labels = []
    for name in sets:
        collide.ok("label", name, "-o", "labels.npz", "--force", "-q")
        with np.load("labels.npz") as file:
            labels.append({key: file[key] for key in file.files})
    touches, contacts = labels
    assert contacts["touch"].sum() > 50
    assert touches.keys() == contacts.keys()
    for name in touches.keys() - {"distance"}:
        assert np.array_equal(touches[name], contacts[name]), name
    unknown = np.isnan(touches["distance"])
    assert np.array_equal(unknown & touches["present"], touches["touch"])
    assert np.isinf(touches["distance"][~touches["touch"] & touches["present"]]).all()
    result = collide.result("label", sets[0], "-o", "labels.parquet")
    assert {row["least_distance"] for row in result["listed"]} == {None}
    table = pandas.read_parquet("labels.parquet")
    assert np.array_equal(table["distance"].isna(), table["touch"])


def test_labels_of_named_pairs_are_those_of_the_contacts(here, collide):
    """One world, as an episode has."""
    labels = []
    for name in both_sets(collide, 1):
        pairs = NamedPairs([("a", "floor"), ("b", "c"), ("a", "b")], LabelRule())
        with ContactSet.open(name) as contacts:
            labels.append(pairs.labels(contacts))
        pairs.check()
    touches, contacts = labels
    assert tuple(touches) == PAIR_LABELS
    assert contacts["touching"].any(axis=0).all()
    assert np.array_equal(touches["touching"], contacts["touching"])
    assert not touches["valid"].any()


def test_surfaces_are_contacts_of_named_pairs(here, collide):
    """Hydroelastic shapes have no point contacts."""
    labels = []
    both_sets(collide, 1)
    for hydro in ("off", "all"):
        collide.ok(*RUN, "hydro.h5", "--hydro", hydro, "--force")
        with ContactSet.open("hydro.h5") as contacts:
            labels.append(NamedPairs([("a", "b")], LabelRule()).labels(contacts)["touching"])
    assert labels[0].any()
    assert np.array_equal(*labels)


def test_a_page_counts_pairs(sets, collide):
    pytest.importorskip("matplotlib")
    results = []
    for name in sets:
        results.append(collide.result("report", name, "-o", f"{name}.html"))
    touches, contacts = results
    for name in ("contact_pair_cells", "frames", "worlds"):
        assert touches[name] == contacts[name], name
    assert touches["touch_only"] is True
    assert "touch_only" not in contacts
    assert touches["deepest"] is None
    assert touches["contacts"] == touches["contact_pair_cells"]
    assert touches["pairs"]["count"] == contacts["pairs"]["count"]
    of_pairs = [
        {
            (pair["shape0"], pair["shape1"]): (pair["touches"], pair["first_frame"])
            for pair in result["pairs"]["listed"]
        }
        for result in results
    ]
    assert of_pairs[0] == of_pairs[1]
    page = Path("touches.h5.html").read_text()
    assert "pairs that touch, each counted once a frame" in page
    assert "that penetrate" not in page
    told = "depths are not known in a set of a run with --touch-only"
    collide.refused("plot", sets[0], "--kind", "depth", "-o", "d.svg", told=told)
    collide.ok("plot", sets[0], "--kind", "pairs", "-o", "p.svg")


def test_an_audit_finds_the_pairs_that_touch(sets, collide):
    """No shape of the motion touches another without a depth, so that limits of 0 fail for the same
    frames."""
    masks = []
    failing = []
    for name in sets:
        answer = collide("audit", name, "--max-depth", "0", "--json", "--mask", f"{name}.npz")
        assert answer.code == 1
        result = json.loads(answer.out)
        failing.append({(pair["shape0"], pair["shape1"]) for pair in result["pairs"]})
        with np.load(f"{name}.npz") as mask:
            masks.append(mask["usable"])
    assert failing[0] == failing[1]
    assert np.array_equal(*masks)
    assert {pair["depth"] for pair in collide.result("audit", sets[0])["pairs"]} == {None}
    shown = collide("audit", sets[0], "--max-depth", "0").out
    assert "touching" in shown
    assert "pairs touch" in shown


def test_an_audit_refuses_limits_of_depth(sets, collide):
    collide.refused(
        "audit", sets[0], "--max-depth", "1mm", told=("--max-depth: 0.001 m cannot be checked",)
    )
    Path("limits.toml").write_text('[[pair]]\nbetween = ["a", "b"]\nmax-depth = "2mm"\n')
    collide.refused("audit", sets[0], "--limits", "limits.toml", told="0.002 m cannot be checked")
    collide.refused("audit", sets[0], "--chart", "c.svg", told="the chart has nothing to show")


def test_an_audit_compares_touches_with_touches(sets, collide):
    for name in sets:
        Path(f"{name}.json").write_text(collide("audit", name, "--json").out)
    told = "which has none"
    collide.refused("audit", sets[0], "--against", "contacts.h5.json", told=told)
    collide.refused("audit", sets[1], "--against", "touches.h5.json", told=told)
    collide.ok("audit", sets[0], "--against", "touches.h5.json")
    collide.ok(*RUN, "few.h5", "--frames", "39:40", "--touch-only")
    Path("few.json").write_text(collide("audit", "few.h5", "--json").out)
    worse = collide("audit", sets[0], "--against", "few.json", "--json")
    assert worse.code == 1
    few = json.loads(Path("few.json").read_text())["pairs"]
    known = {(pair["shape0"], pair["shape1"]) for pair in few}
    assert known < {(pair["shape0"], pair["shape1"]) for pair in json.loads(worse.out)["pairs"]}
    for pair in json.loads(worse.out)["pairs"]:
        assert pair["worse"] == ((pair["shape0"], pair["shape1"]) not in known)


def test_a_view_lists_the_pairs(sets, collide):
    pytest.importorskip("viser")
    pages = []
    for name in sets:
        result = collide.result("view", name, "--export", f"{name}.html")
        pages.append((result["touching_pairs"], Path(f"{name}.html").read_text()))
    assert pages[0][0] == pages[1][0] > 0
    assert '"touch_only":true' in pages[0][1]
    assert '"touch_only":false' in pages[1][1]
    assert "in the gap: not touching" in pages[1][1]
    assert "in the gap: not touching" not in pages[0][1]


def test_pairs_within_a_gap_may_not_touch(sets, collide):
    """How near they are is not known: a threshold is refused that would ask for it."""
    gap = ("--gap", "0.01", "--gap-rule", "max")
    collide.ok(*RUN, "gap.h5", "--touch-only", *gap)
    told = "the distance of its pairs is at most 0.01 m, and is not known"
    collide.refused("events gap.h5", told=told)
    collide.refused("events gap.h5 --threshold 0.005", told=told)
    every = collide.result("events gap.h5 --threshold any")
    assert collide.result("events gap.h5 --threshold 0.01")["intervals"] == every["intervals"]
    collide.refused("label gap.h5 -o l.npz", told=told)
    collide.refused("label gap.h5 -o l.npz --enter 0.01 --leave 0.02", told=told)
    collide.ok("label gap.h5 -o l.npz --enter 0.01")
    collide.refused("audit gap.h5", told="run with --gap 0")
    collide.ok(*RUN, "near.h5", *gap)
    assert collide.result("events near.h5 --threshold any")["intervals"] == every["intervals"]


def test_an_export_of_contacts_is_refused(sets, collide):
    told = ("it has pairs of shapes and no distances", "--group touches")
    for form in ("csv", "npz", "newton", "dart"):
        collide.refused("export", sets[0], "--to", form, told=told)
    with collidecli.ContactSet.open(sets[0]) as contacts:
        for table in (contacts.to_pandas, contacts.to_xarray):
            with pytest.raises(InputError, match="no distances"):
                table()
        assert len(contacts.to_pandas(group="touches")) == contacts.group_rows["touches"]
        with pytest.warns(UserWarning, match="distance is not known"):
            events = contacts.events()
    assert np.isnan(events["least_distance"]).all()


CLOTH = """#usda 1.0
(
  metersPerUnit = 1
  upAxis = "Z"
  startTimeCode = 0
  endTimeCode = 3
)
def Sphere "ball" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {
  double radius = 0.2
}
def Cube "crate" ( prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"] ) {
  double size = 0.2
  double3 xformOp:translate = (0, 0, %s)
  uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Mesh "cloth" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {
  bool collide:deformable = 1
  int[] faceVertexCounts = [3, 3]
  int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]
  point3f[] points.timeSamples = {
    0: [(-1, -1, 0.5), (1, -1, 0.5), (1, 1, 0.5), (-1, 1, 0.5)],
    1: [(-1, -1, 0.19), (1, -1, 0.19), (1, 1, 0.19), (-1, 1, 0.19)],
    2: [(-1, -1, 0.1), (1, -1, 0.1), (1, 1, 0.1), (-1, 1, 0.1)],
    3: [(-1, -1, 0.5), (1, -1, 0.5), (1, 1, 0.5), (-1, 1, 0.5)]
  }
}
def Points "drops" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {
  float[] widths = [0.02]
  point3f[] points.timeSamples = {
    0: [(0, 0, 0.205), (3, 0, 0), (0, 0.199, 0)],
    1: [(0, 0, 0.3), (3, 0, 0), (0, 0.5, 0)],
    3: [(0, 0, 0.3), (3, 0, 0), (0, 0.5, 0)]
  }
}
"""
PARTICLE_SETS = ("", "--soft-elements nearest", "--touch-only --soft-elements nearest")


@pytest.fixture
def cloths(here, collide) -> list[str]:
    """Sets of a cloth, drops, a ball and a crate that touches none: all contacts, the nearest ones,
    and those beside the pairs of shapes that touch. The gap of shapes is that of USD, 0.1 m."""
    Path("cloth.usda").write_text(CLOTH % 3)
    names = []
    for k, options in enumerate(PARTICLE_SETS):
        names.append(f"{k}.h5")
        collide.ok("run", "cloth.usda", "-q", "-o", names[-1], *options.split())
    return names


def test_which_objects_touch_which_shapes(cloths, collide):
    """One row for each shape and object, with the greatest depth; every verb that reads touches
    gives what it gives of all contacts."""
    counts = []
    for name in cloths:
        with collidecli.ContactSet.open(name) as contacts:
            frame = contacts.to_pandas(group="soft_contacts")
        counts.append(len(frame))
        least = frame.groupby(["frame", "shape", "object"], observed=True)["distance"].min()
        touching = least[least <= 0.0].reset_index()
        rows = [tuple(row) for row in touching[["frame", "shape", "object"]].to_numpy()]
        assert rows == [(0, "/ball", "/drops"), (1, "/ball", "/cloth"), (2, "/ball", "/cloth")]
        expected = [-0.011, -0.01, -0.1]
        assert touching["distance"].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert counts[0] > counts[1] == counts[2] == 3
    tables = []
    labels = []
    for name in cloths:
        collide.ok("events", name, "--csv", "e.csv", "--force", "-q")
        tables.append(pandas.read_csv("e.csv").drop(columns=["file", "contacts", "most_contacts"]))
        collide.ok("label", name, "-o", "l.npz", "--force", "-q")
        with np.load("l.npz") as file:
            labels.append({key: file[key] for key in file.files})
        audited = collide.verdict("audit", name)
        assert {(row["shape0"], row["shape1"]): row["cells"] for row in audited["pairs"]} == {
            ("/ball", "/cloth"): 2, ("/ball", "/drops"): 1
        }  # fmt: skip
        assert audited["pairs"][0]["depth"] == pytest.approx(0.1, abs=1e-6)
    for table, of_set in zip(tables[1:], labels[1:], strict=True):
        assert table.equals(tables[0])
        assert len(table) == 2
        assert of_set["touch"].sum() == labels[0]["touch"].sum() > 0
        for name in ("touch", "distance"):
            assert np.array_equal(of_set[name], labels[0][name], equal_nan=True)
    collide.ok("report", cloths[2], "-o", "report.html", "-q")
    told = "it has the nearest particles alone"
    assert told in collide.ok("events", cloths[1], "--by", "particles").err
    assert told not in collide.ok("events", cloths[0], "--by", "particles").err


def test_a_pair_of_unknown_distance_is_refused_with_particles_too(here, collide):
    """The crate is within the gap of the ball, 0.1 m."""
    Path("cloth.usda").write_text(CLOTH % 0.35)
    collide.ok("run cloth.usda -q --touch-only --soft-elements nearest -o near.h5")
    collide.refused("events near.h5", told="is not known")
    collide.refused("audit near.h5", told="is not known")
    collide.ok("run cloth.usda -q --touch-only --soft-elements nearest --gap 0 -o none.h5")
    listed = collide.result("events none.h5")["listed"]
    assert {row["shape0"] for row in listed} == {"/ball", "/crate"}
    assert {row["shape1"] for row in listed} == {"/cloth", "/drops"}
