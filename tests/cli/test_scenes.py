"""Options of scenes: URDF, SRDF, asset maps, floating bases, repaired meshes, recorded simulations,
and advice."""

import pickle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import trimesh

import collidecli
from collidecli.engine.geometry import sdf_construction
from tests.cli.conftest import arrays, attributes, refusals, sha
from tests.cli.test_recordings import states, write_demos
from tests.support.fields import RING
from tests.support.meshes import Mesh, box, joined, prism, turned
from tests.support.usd_scenes import BODY_APIS, at, mesh, placed, sphere, write_usda

ARM = """<robot name="arm"><link name="base"><collision><geometry><sphere radius="0.5"/></geometry></collision></link>
<link name="tip"><collision><geometry><sphere radius="0.5"/></geometry></collision></link>
<joint name="j" type="prismatic"><parent link="base"/><child link="tip"/><origin xyz="0 0 0.9"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1"/></joint></robot>"""
SRDF = '<robot name="arm"><disable_collisions link1="base" link2="tip" reason="Adjacent"/></robot>'
BROKEN = """<mujoco><worldbody><geom name="a" size="1"/><body name="b"><freejoint/><geom name="b" size="1"/></body>
</worldbody><actuator><motor joint="none"/></actuator></mujoco>"""
MESH_BOX = """<mujoco><asset><mesh name="m" file="/gone/m.obj"/></asset><worldbody><body name="b"><freejoint/>
<geom name="b" type="box" mesh="m"/></body></worldbody></mujoco>"""
MESH = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
CPU = ("--device", "cpu")
HINGE = """<robot name="arm"><link name="base"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<link name="hand"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="hand"/><origin xyz="0 0 0.5"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1"/></joint></robot>"""
BALL = sphere("ball")
ENVIRONMENTS = (
    '#usda 1.0\n(metersPerUnit = 1\nupAxis = "Z")\ndef "World" { def "envs" {\n'
    + "".join(f'def "env_{k}" {{ {BALL} }}\n' for k in range(3))
    + "}\n}\n"
)
Y_UP = sphere("ball", f"double radius = 30\n{at(500, 29, 0)}")
CENTIMETRES_Y_UP = 'metersPerUnit = 0.01\nupAxis = "Y"'
WALK = "hinge.urdf -t walk.csv --fps 30 --quaternion-order xyzw --joint-names turn"


@pytest.fixture
def arm(here):
    (here / "arm.urdf").write_text(ARM)
    (here / "arm.srdf").write_text(SRDF)
    return here


def test_a_urdf_runs_without_the_pairs_that_are_switched_off(arm, collide):
    found = {}
    for options in (
        "",
        "--disabled-pairs arm.srdf",
        "--self-collisions off",
        "--self-collisions off --ground",
    ):
        collide.ok("run arm.urdf --force -o out.h5", *CPU, *options.split())
        found[options] = held = attributes("out.h5")
        contacts = arrays("out.h5")
        distances = contacts["rigid_contacts/distance"].tolist()
        assert distances == ([] if options else pytest.approx([-0.1], abs=1e-6)), options
        names = ["ground"] * ("ground" in options) + ["base/collision#0", "tip/collision#0"]
        assert sorted(contacts["model/shape/path"]) == sorted(names)
        assert held["config"].get("disabled_pairs") == ("arm.srdf" if "srdf" in options else None)
        assert held["config"].get("self_collisions") == ("off" if "off" in options else None)
    assert found[""]["scene_sha256"] != found["--disabled-pairs arm.srdf"]["scene_sha256"]
    assert allowed(collide, "arm.urdf", "--self-collisions", "off", "--ground") == {
        ("ground", "tip/collision#0")
    }
    with pytest.raises(collidecli.InputError, match="self_collisions is 'maybe'"):
        collidecli.ModelBuilder().add_mjcf("arm.urdf", self_collisions="maybe")


LEGS = """<mujoco><worldbody>
<geom name="floor" type="box" size="3 3 0.1"/>
<body name="fixed" pos="1 0 0.2"><geom name="base" size="0.2"/>
<body name="arm"><joint axis="0 1 0"/><geom name="arm" size="0.2"/>
<body name="hand"><joint axis="0 1 0"/><geom name="hand" size="0.2"/>
<body name="tip"><joint axis="0 1 0"/><geom name="tip" size="0.2"/></body></body></body></body>
<body name="ball" pos="1 0 0.2"><freejoint/><geom name="ball" size="0.2"/></body>
</worldbody>FORCED</mujoco>"""


def allowed(collide, *options):
    """Pairs of names that may touch."""
    return {tuple(sorted(pair)) for pair in collide.result("inspect", *options, "--pairs")["pairs"]}


def test_self_collisions_of_kinematic_trees(here, collide):
    (here / "legs.xml").write_text(LEGS.replace("FORCED", ""))
    every = allowed(collide, "legs.xml")
    own = {("arm", "tip"), ("arm", "base"), ("base", "hand"), ("base", "tip")}
    assert own <= every
    assert allowed(collide, "legs.xml", "--self-collisions", "on") == every
    assert allowed(collide, "legs.xml", "--self-collisions", "off") == every - own
    for pair in own:
        answer = collide("inspect legs.xml --self-collisions off --why", *pair)
        assert answer.out.strip().endswith(
            "may not touch: self-collision of the articulation is off"
        )
    (here / "forced.xml").write_text(
        LEGS.replace("FORCED", '<contact><pair geom1="arm" geom2="tip"/></contact>')
    )
    assert allowed(collide, "forced.xml", "--self-collisions", "off") == (every - own) | {
        ("arm", "tip")
    }


def test_what_is_left_out_is_told(here, collide):
    (here / "broken.xml").write_text(BROKEN)
    answer = collide.ok("inspect broken.xml")
    assert "warning: removed, as it does not compile" in answer.err


def test_asset_map(here, collide):
    (here / "box.xml").write_text(MESH_BOX)
    (here / "m.obj").write_text(MESH)
    collide.ok("inspect box.xml --asset-map /gone=.")
    (here / "collide.toml").write_text('asset-map = "/gone=."\n')
    collide.ok("inspect box.xml")


def test_from_python(arm):
    builder = collidecli.ModelBuilder()
    imported = builder.add_mjcf("arm.urdf", disabled_pairs="arm.srdf")
    contacts = collidecli.collide(builder.finalize(), device="cpu")
    assert (len(contacts.distance), imported.warnings) == (0, ())


RUN = ("--device", "cpu", "--force", "-o", "out.h5")
ROBOT = """<robot name="legs">
  <link name="pelvis"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="foot"><collision><geometry>{foot}</geometry></collision></link>
  <joint name="knee" type="revolute">
    <parent link="pelvis"/><child link="foot"/><origin xyz="0 0 -0.5"/><axis xyz="0 1 0"/><limit lower="-2" upper="2"/>
  </joint>
</robot>
"""
SPHERE = '<sphere radius="0.1"/>'
FRAMES = 5


@pytest.fixture
def robot(here):
    (here / "legs.urdf").write_text(ROBOT.format(foot=SPHERE))
    rows = np.zeros((FRAMES, 8))
    # the foot's lowest point: 2 cm above the ground, then 1 cm less each
    rows[:, 2] = 0.62 - 0.01 * np.arange(FRAMES)
    rows[:, 6] = 1.0
    np.savetxt(here / "motion.csv", rows, delimiter=",")
    return here


MOTION = ("-t", "motion.csv", "--fps", "50", "--quaternion-order", "xyzw", "--joint-names", "knee")


def run(collide, *words):
    return collide.result("run", *words, *RUN)


def test_a_floating_base_takes_the_root_motion_over_the_ground(robot, collide):
    collide.refused("run legs.urdf", *MOTION, *RUN)
    result = run(collide, "legs.urdf", *MOTION, "--floating-base", "--ground", "--gap", "0.1")
    assert (result["frames"], result["deepest"]["distance"]) == (
        FRAMES,
        pytest.approx(-0.02, abs=1e-6),
    )
    assert {*arrays("out.h5")["model/shape/path"]} >= {"ground", "foot/collision#0"}
    config = attributes("out.h5")["config"]
    assert config["floating_base"] is config["ground"] is True
    collide.ok("export out.h5 --to usd -o out.usda --force")


def test_record_simulates_a_floating_base_on_the_ground(robot, collide):
    collide.ok("record legs.urdf --frames 400 -o m.h5 --floating-base --ground")
    assert run(collide, "legs.urdf", "-t", "m.h5", "--floating-base", "--ground")["contacts"] > 0


def test_ground_of_usd_is_normal_to_the_up_axis(here, collide):
    write_usda(here, Y_UP, CENTIMETRES_Y_UP, "y.usda")
    assert run(collide, "y.usda", "--ground")["deepest"]["distance"] == pytest.approx(
        -0.01, abs=1e-6
    )


@pytest.fixture
def scenes(arm, walk, collide):
    """Scenes that options have no effect on, or that lack what they refer to, and recordings that
    do not fit them."""
    write_usda(arm, Y_UP, CENTIMETRES_Y_UP, "y.usda")
    (arm / "ground.xml").write_text(
        "<mujoco><worldbody><geom name='ground' size='1'/></worldbody></mujoco>"
    )
    (arm / "fixed.urdf").write_text(ROBOT.format(foot=SPHERE).replace('"pelvis"', '"world"'))
    (arm / "seen.xml").write_text(
        BROKEN.replace('name="a" size', 'name="a" contype="0" conaffinity="0" size')
    )
    (arm / "box.xml").write_text(MESH_BOX)
    (arm / "m.obj").write_text(MESH)
    (arm / "broken.xml").write_text(BROKEN)
    (arm / "a.usda").write_text('#usda 1.0\ndef "World" (references = @./no.usda@) {}')
    (arm / "envs.usda").write_text(ENVIRONMENTS)
    write_demos(arm / "demos.hdf5", {"demo_0": states(4, 0), "demo_1": states(4, 0)})
    motion = {
        "root_pos": np.zeros((4, 3)),
        "root_quat_xyzw": np.zeros((4, 4)),
        "dof_pos": np.zeros((4, 1)),
    }
    np.savez("objects.npz", **motion, dof_names=np.array(["turn", None], dtype=object))


test_refused = refusals(
    "",
    ("run scene.xml --floating-base", "--floating-base is for URDF scenes"),
    ("run y.usda --floating-base", "--floating-base is for URDF scenes"),
    ("run ground.xml --ground", "a geom 'ground' already"),
    ("run fixed.urdf --floating-base", "can move already"),
    ("run arm.urdf --self-collisions maybe", "maybe"),
    ("record broken.xml -o m.h5 --frames 2", "broken.xml"),
    ("inspect box.xml", "geom 'b' collides, and its file '/gone/m.obj'"),
    ("inspect seen.xml --why a b", "'a' is only visual"),
    ("inspect seen.xml --why c b", "there is no shape or body 'c'"),
    (f"run {WALK}", "--floating-base"),
    ("inspect hinge.urdf --why hand ground", "--ground"),
    ("run hinge.urdf --joint-names turn", "give a recording with -t"),
    ("run scene.xml -t objects.npz", "--fps"),
    ("run envs.usda -t demos.hdf5",
     ("there are 2 worlds of the recording, and the scene has 3 worlds of its own", "--demos")),
    ("run a.usda", "replace the path, as written, with --asset-map"),
    ("record scene.xml", "'--frames'"),
    ("record scene.xml --frames 0", "'--frames'"),
    ("record scene.xml --frames 3 --seed -1", "'--seed'"),
    ("record scene.xml --frames 3 --control nowhere.npy", "nowhere.npy"),
    ("record scene.xml --frames 3 --keyframe stand", "stand"),
    ("record scene.xml --frames 3 -o scene.xml --force", "scene.xml", 3),
    ("record scene.xml --frames 3 -o motion.h5", "motion.h5", 3),
    needs="scenes",
)  # fmt: skip


VISUAL_ROBOT = """<robot name="r"><link name="hand"><visual><geometry><sphere radius="0.1"/></geometry></visual>
</link></robot>"""
NO_GEOMETRY = {
    "visual.urdf": (VISUAL_ROBOT, ("has no collision geometry", "add <collision> to the links")),
    "empty.xml": ("<mujoco/>", ("has no collision geometry: it has no geom", "includes it")),
    "seen.xml": (
        BROKEN.replace("<geom", '<geom contype="0" conaffinity="0"'),
        (
            "has no collision geometry: none of its 2 geoms can collide",
            "add contype and conaffinity",
        ),
    ),
}


@pytest.mark.parametrize(
    "verb", ["run", "run --ground", "inspect", "clearance", "profile", "audit"]
)
@pytest.mark.parametrize("name", NO_GEOMETRY)
def test_a_scene_without_collision_geometry_is_refused(robot, collide, name, verb):
    content, told = NO_GEOMETRY[name]
    (robot / name).write_text(content)
    needed = ["--max-depth", "1mm"] if verb == "audit" else []
    collide.refused(verb, name, *needed, told=(f"{name}: the scene", *told))


@pytest.mark.parametrize(
    "variable", ["ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "--package-path", "beside"]
)
def test_package_paths_are_found(robot, collide, monkeypatch, variable):
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    mesh = '<mesh filename="package://legs_description/meshes/foot.stl"/>'
    scene = robot / "robots" / "urdf" / "legs.urdf"
    scene.parent.mkdir(parents=True)
    scene.write_text(ROBOT.format(foot=mesh))
    told = "package://legs_description=FOLDER, or that of its packages with --package-path"
    collide.refused("run", scene, *MOTION, "--floating-base", *RUN, told=told)
    root = {"AMENT_PREFIX_PATH": "install/share", "beside": "robots"}.get(variable, "ros")
    meshes = robot / root / "legs_description" / "meshes"
    meshes.mkdir(parents=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(meshes / "foot.stl")
    more = (variable, "ros") if variable.startswith("-") else ()
    if variable.endswith("PATH"):
        monkeypatch.setenv(variable, f"{robot / 'nothing'}:{robot / root.removesuffix('/share')}")
    result = run(collide, str(scene), *MOTION, "--floating-base", "--ground", *more)
    assert result["deepest"]["distance"] == pytest.approx(-0.02, abs=1e-6)


def test_motions_of_other_tools_are_named_with_their_conversion(robot, collide):
    np.savez(
        "amass.npz",
        poses=np.zeros((3, 156)),
        trans=np.zeros((3, 3)),
        betas=np.zeros(16),
        gender=np.array("male"),
    )
    objects = np.array([{}], dtype=object)
    np.savez("stageii.npz", poses=np.zeros((3, 165)), trans=np.zeros((3, 3)), labels=objects)
    gmr = {
        "fps": 30,
        "root_pos": np.zeros((3, 3)),
        "root_rot": np.zeros((3, 4)),
        "dof_pos": np.zeros((3, 1)),
    }
    for name, held in (("gmr", gmr), ("other", {"a": 1})):
        (robot / f"{name}.pkl").write_bytes(pickle.dumps(held))
    for name, told in {
        "amass.npz": ("a motion of AMASS", "retarget it to the robot"),
        "stageii.npz": ("a motion of AMASS", "retarget it to the robot"),
        "gmr.pkl": ("does not define the order", "--quaternion-order"),
        "other.pkl": ("a pickle file with a int64[]", "known kinds"),
    }.items():
        collide.refused("run legs.urdf --floating-base -t", name, told=told)
    root = np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    np.savez(
        "gmr.npz", root_pos=gmr["root_pos"], root_quat_xyzw=root, dof_pos=gmr["dof_pos"], fps=30
    )
    assert (
        run(collide, *["legs.urdf", "-t", "gmr.npz", "--floating-base", "--joint-names", "knee"])[
            "frames"
        ]
        == 3
    )


CLEAN = box(1.0, 1.0, 1.0)
NOISE = np.random.default_rng(0).uniform(-1e-6, 1e-6, (36, 3))
"""USD has points in float32, for which 1e-9 m is nothing here."""


def with_faces(more: Any) -> np.ndarray:
    """The triangles of CLEAN and some more."""
    return np.concatenate([CLEAN[1], more])


SPIKE = np.concatenate([CLEAN[0], [[1.5, 1.5, 0.0]]])
DIRTY = {
    "duplicate": (
        (CLEAN[0], with_faces(CLEAN[1][:1])),
        "1 duplicate triangle is left out",
        "1 duplicates",
    ),
    "opposite": (
        (CLEAN[0], with_faces(CLEAN[1][:1, ::-1])),
        "1 triangle that faces away from an equal one is left out",
        "1 opposite",
    ),
    "fin": ((SPIKE, with_faces([[6, 7, 8]])), "1 triangle of a fin is left out", "1 fins"),
    "soup": (
        (CLEAN[0][CLEAN[1]].reshape(-1, 3) + NOISE, np.arange(36).reshape(12, 3)),
        "border vertices are welded to others",
        "welded",
    ),
    "over": (
        (CLEAN[0], np.concatenate([CLEAN[1][1:], CLEAN[1][:1, ::-1]])),
        "1 triangle is turned over to face as those beside",
        "1 turned",
    ),
    "inside_out": (turned(CLEAN), "1 inside-out body is turned over", "1 inside out"),
    "overlapping": (
        joined(CLEAN, box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85))),
        "2 overlapping bodies are united",
        "2 united",
    ),
    "flat": (
        (CLEAN[0], with_faces([[0, 0, 1]])),
        "1 triangle without area is left out",
        "1 degenerate",
    ),
}


def write_part(
    folder: Path, name: str, part: Mesh, approximation: str = "none", file: str = "dirty.usda"
) -> None:
    """A scene of this mesh and a ball."""
    ball = sphere("ball", f"double radius = 0.02\n{placed((0.05, 0, 0))}")
    write_usda(folder, mesh(name, *part, approximation) + ball, name=file)


@pytest.mark.parametrize("name", DIRTY)
def test_what_is_repaired_is_told(here, collide, name):
    part, told, counted = DIRTY[name]
    write_part(here, name, part)
    table = collide.ok("inspect dirty.usda")
    for text, words in ((table.err, (f"</{name}>", told)), (table.out, (counted, "closed"))):
        assert [word for word in words if word not in text] == []
    result = collide.result("inspect dirty.usda -q")
    assert result["shapes"][0]["closed"]
    assert sum(result["shapes"][0]["repairs"].values()) > 0
    assert any(told in warning for warning in result["warnings"])
    message = collide.refused("inspect dirty.usda --strict-meshes", told=(f"</{name}>", told))
    assert "the mesh needs repairs: " in message
    assert name == "soup" or f"the mesh needs repairs: {told}" in message
    assert len(message.strip().splitlines()) <= 2


def test_run_warns_of_repairs_or_refuses_them(here, collide):
    part, told, _ = DIRTY["overlapping"]
    write_part(here, "part", part)
    run = ("run", "dirty.usda", "--device", "cpu", "-o", "out.h5")
    collide.refused(*run, "--strict-meshes", told="</part>")
    done = collide.ok(*run)
    assert told in done.err
    result = collide.result("inspect out.h5")
    assert result["deepest"]["distance"] == pytest.approx(-0.97, abs=1e-6)


def test_strict_meshes_leave_no_trace_in_a_contact_set(here, collide):
    write_part(here, "part", CLEAN, file="clean.usda")
    run = ("run", "clean.usda", "--device", "cpu", "-o")
    clean = [collide.result(*run, "0.h5"), collide.result(*run, "1.h5", "--strict-meshes")]
    assert clean[0]["content_sha256"] == clean[1]["content_sha256"]
    assert "strict_meshes" not in attributes("1.h5")["config"]


def test_strict_meshes_refuse_parts_but_no_hulls(here, collide):
    """Parts are made of the triangles, and are refused too; a hull is of points alone."""
    part, told, _ = DIRTY["duplicate"]
    for approximation, code in (("convexDecomposition", 2), ("convexHull", 0)):
        write_part(here, "part", part, approximation)
        answer = collide("inspect dirty.usda --strict-meshes")
        assert answer.code == code
        assert (told in answer.err) == (code == 2)


@pytest.mark.parametrize(
    "words", ["profile dirty.usda --device cpu", "traj convert motion.h5 --scene dirty.usda"]
)
def test_other_verbs_refuse_too(here, collide, words):
    write_part(here, "part", DIRTY["duplicate"][0])
    collide.refused(words, "--strict-meshes", told="the mesh needs repairs")


@pytest.fixture
def walk(here) -> None:
    """Root poses and a joint of an arm that moves along x."""
    (here / "hinge.urdf").write_text(HINGE)
    rows = np.zeros((4, 8))
    rows[:, 0] = 0.1 * np.arange(4)
    rows[:, 6] = 1.0
    np.savetxt("walk.csv", rows, delimiter=",")


def test_a_moved_root_is_an_option(scenes, collide):
    collide.ok(f"run {WALK} --floating-base --device cpu")


def test_the_ground_is_an_option(scenes, collide):
    collide.ok("inspect hinge.urdf --ground --why hand ground")


def test_refused_worlds_of_a_scene_do_not_name_demos(scenes, collide):
    assert "--demos" not in collide.refused("run envs.usda --worlds 2")


def test_the_span_of_demonstrations_is_that_of_the_longest(here, collide):
    write_demos(here / "demos.hdf5", {"demo_0": states(4, 0), "demo_1": states(7, 0)})
    assert "7, from 0 s to 0.6 s" in collide("inspect demos.hdf5").out


def test_recorded_motion_runs(here, collide):
    result = collide.result("record scene.xml -o out.h5 --frames 6 --every 2 --worlds 2")
    names = ("schema", "frames", "worlds", "bodies")
    assert [result[name] for name in names] == ["collide.record/1", 6, 2, 2]
    # five times two steps of MuJoCo's default 2 ms
    assert result["duration"] == pytest.approx(0.02)
    collide.ok("check out.h5")
    # Without --worlds, as many as were recorded.
    computed = collide.result("run scene.xml -t out.h5 --device cpu")
    assert (computed["frames"], computed["worlds"]) == (6, 2)


def test_the_same_arguments_record_the_same(here, collide):
    for name in ("a.h5", "b.h5"):
        collide.ok("record scene.xml --frames 5 --noise 0.01 --seed 3 -o", name)
    assert (here / "a.h5").read_bytes() == (here / "b.h5").read_bytes()


WRIST = """<robot name="arm"><link name="base"/>
  <link name="hand"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="package://arm/meshes/wedge.obj"/></geometry></collision></link>
  <joint name="wrist" type="continuous"><parent link="base"/><child link="hand"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.mark.parametrize(
    "verb", [("record", "arm.urdf", "--frames", "2", "-o", "arm.h5"), ("inspect", "arm.urdf")]
)
def test_meshes_of_a_package_are_where_the_asset_map_says(here, collide, verb):
    (here / "arm.urdf").write_text(WRIST)
    collide.refused(*verb, told="--asset-map package://arm=FOLDER")
    (here / "robots" / "meshes").mkdir(parents=True)
    (here / "robots" / "meshes" / "wedge.obj").write_text(MESH)
    collide.ok(*verb, "--asset-map", f"package://arm={here / 'robots'}")


RADIUS = "double radius = 0.1"


def ring(resolution: int) -> str:
    """A mesh with a signed distance field."""
    return mesh(
        "ring",
        *RING,
        "sdf",
        f"uniform int physxSDFMeshCollision:sdfResolution = {resolution}",
        BODY_APIS,
    )


def test_the_second_run_finds_the_field(tmp_path, collide, monkeypatch):
    write_usda(tmp_path, ring(40) + sphere("ball", f"{RADIUS}\n{placed((1, 0, 0))}"))
    build = Mock(side_effect=sdf_construction.build_sdf)
    monkeypatch.setattr(sdf_construction, "build_sdf", build)
    one, other = (
        collide.result(f"run s.usda -o {name}.h5 --device cpu --cache-dir cache") for name in "ab"
    )
    assert build.call_count == 1
    assert one["content_sha256"] == other["content_sha256"]
    for result in (one, other):  # the scene, and its fields
        assert [stage["calls"] for stage in result["stages"] if stage["stage"] == "load"] == [2]
    assert len(collide.result("cache --cache-dir cache")["entries"]) == 1
    # The ball is on the middle line of the tube, 0.35 thick: a polygon of ten sides, so cos(18 deg)
    # of it at least.
    voxel = 2.7 / 40
    assert (
        -0.45 - voxel <= other["deepest"]["distance"] <= -0.35 * np.cos(np.pi / 10.0) - 0.1 + voxel
    )


@pytest.mark.parametrize("verb", ["run -o o.h5", "profile"])
def test_too_many_voxels_are_refused_with_their_place(tmp_path, collide, verb):
    write_usda(tmp_path, ring(8192) + sphere("ball", RADIUS))
    told = "error: s.usda: shape '/ring': the signed distance field would have ", "larger than"
    collide.refused(verb, "s.usda", "--device", "cpu", "--cache-limit", "0", told=told)


DRAWN = (
    'def Cube "floor" {\n}\n' + sphere("ball", at(0, 0, 1.9), BODY_APIS) + 'def Xform "bare" {\n}\n'
)


def test_visuals_collide_by_an_option(here, collide):
    write_usda(here, DRAWN)
    (here / "r.urdf").write_text(ARM.replace("collision>", "visual>"))
    collide.refused("run r.urdf -o out.h5", told="--visuals-as-colliders '*'")
    collide.refused("run --visuals-as-colliders s.usda -o out.h5", told="after the scene")
    collide.refused(
        "run s.usda -o out.h5 --visuals-as-colliders flor",
        told=["'flor' matches no visual mesh or shape", "did you mean /floor?"],
    )
    found = {}
    for name, words in (
        ("none", "s.usda"),
        ("all", "s.usda --visuals-as-colliders"),
        ("floor", "s.usda --visuals-as-colliders /fl*,*oor"),
        ("urdf", "r.urdf --visuals-as-colliders"),
    ):
        collide.ok(f"run {words} -o {name}.h5 --device cpu")
        held = arrays(f"{name}.h5")
        found[name] = held["rigid_contacts/distance"].tolist(), sha(f"{name}.h5")
    assert [len(found[name][0]) for name in ("none", "all", "floor", "urdf")] == [0, 1, 1, 1]
    assert found["all"][0] == pytest.approx([-0.1], abs=1e-6)
    assert found["all"][1] == found["floor"][1]
    assert attributes("all.h5")["config"]["visuals_as_colliders"] == ["*"]
    assert "visuals_as_colliders" not in attributes("none.h5")["config"]
    (here / "collide.toml").write_text('visuals-as-colliders = "/floor"\n')
    collide.ok("run s.usda -o by_file.h5 --device cpu")
    assert sha("by_file.h5") == found["floor"][1]
    collidecli.run("s.usda", output="by_python.h5", visuals_as_colliders=["/floor"], device="cpu")
    assert sha("by_python.h5") == found["floor"][1]


@pytest.mark.parametrize("verb", ["run", "inspect", "audit", "matrix"])
def test_a_scene_that_an_option_has_taken_is_named(here, collide, verb):
    (here / "arm.urdf").write_text("<robot/>")
    refused = collide.refused(f"{verb} --visuals-as-colliders arm.urdf")
    assert "'arm.urdf' is taken as the value of --visuals-as-colliders" in refused


BRACKET = """<mujoco><asset><mesh name="u" vertex="{vertices}" face="{faces}"/></asset><worldbody>
  <geom name="bracket" type="mesh" mesh="u" gap="0.1"/>
  <body name="ball" pos="0 0 0.21"><freejoint/><geom name="ball" size="0.05"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def bracket(here) -> None:
    """A ball in the free space of a U, 0.05 m from both walls and 0.1 m deep in the hull."""
    u = [(-12, 0), (12, 0), (12, 40), (10, 40), (10, 2), (-10, 2), (-10, 40), (-12, 40)]
    vertices, faces = prism([(0.01 * x, 0.01 * z) for x, z in u], 0.05)
    texts = [" ".join(f"{x:.9g}" for x in array.ravel()) for array in (vertices, faces)]
    (here / "bracket.xml").write_text(BRACKET.format(vertices=texts[0], faces=texts[1]))


def test_a_hull_that_is_larger_than_its_mesh_is_told_with_the_remedy(bracket, collide):
    run = ("run bracket.xml", *RUN)
    hull = collide.ok(*run)
    told = "the hull of 'bracket' is 4.8 times its volume: --meshes 'bracket=exact'"
    assert told in hull.err
    assert "100 mm deep" in hull.out
    exact = collide.ok(*run, "--meshes", "bracket=exact")
    assert (exact.err, "50 mm apart" in exact.out) == ("", True)
    assert attributes("out.h5")["config"]["meshes"] == ["bracket=exact"]


def test_meshes_may_be_given_several_times_in_a_file_and_in_python(bracket, collide, tmp_path):
    def answer(*words):
        result = collide.result("run bracket.xml", *RUN, *words)
        return result["deepest"]["distance"], result["content_sha256"]

    several = ("--meshes", "*=hull", "--meshes", "ball*=hull,b*=exact", "--meshes", "nothing*=sdf")
    collide.refused("run bracket.xml", *RUN, *several, told="'ball*' matches no mesh collider")
    exact = answer("--meshes", "*=hull", "--meshes", "*=parts,b*=exact")
    assert exact[0] == pytest.approx(0.05, abs=1e-6)
    (tmp_path / "collide.toml").write_text('meshes = "*=hull,bracket=exact"\n')
    assert answer() == exact
    assert answer("--meshes", "*=hull")[0] == pytest.approx(-0.1, abs=1e-6)
    for meshes in ({"bracket": "exact"}, ["bracket=exact"], "*=hull,bracket=exact"):
        builder = collidecli.ModelBuilder()
        builder.add_mjcf("bracket.xml", meshes=meshes)
        distance = collidecli.collide(builder.finalize(), device="cpu").distance
        assert distance.min() == pytest.approx(0.05, abs=1e-6)
        collidecli.run("bracket.xml", None, "python.h5", meshes=meshes, device="cpu")
        assert attributes("python.h5")["content_sha256"] == exact[1]
        Path("python.h5").unlink()


test_refused_meshes = refusals(
    "run bracket.xml --device cpu -o no.h5",
    ("--meshes bracket", ("'bracket' has no pattern or no kind", "PATTERN=KIND")),
    ("--meshes bracket=exakt", ("'exakt' is no collider of a mesh", "did you mean exact?")),
    ("--meshes bracket=sdf:0", ("the resolution is '0'", "1 to 8192")),
    ("--meshes ball=exact", ("'ball' matches no mesh collider", "--meshes")),
    needs="bracket",
)


def test_every_mesh_may_be_none(arm, collide):
    run = ("run arm.urdf", *RUN, "--meshes")
    collide.ok(*run, "*=hull")
    Path("out.h5").unlink()
    collide.refused(*run, "*=hull,*arm*=hull", told="the scene has no mesh that collides")
