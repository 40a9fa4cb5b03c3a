"""Environments of a stage as worlds: which are the same, what moves them, and each against itself
alone."""

import contextlib
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf, UsdPhysics

import collidecli
from collidecli.cli import main as cli
from collidecli.errors import InputError
from collidecli.motions.scenes import load_scene
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.trajectory_writer import TrajectoryWriter
from tests.support import usd_scenes
from tests.support.usd_scenes import (
    COUNT,
    ENVIRONMENTS,
    HOW,
    add_targets,
    attribute,
    check_against_alone,
    env,
    load,
)


@pytest.fixture
def stage_of(tmp_path):
    return usd_scenes.stage_writer(tmp_path)


@pytest.mark.parametrize("how", HOW)
def test_each_environment_has_the_contacts_that_it_has_alone(stage_of, tmp_path, how):
    def wall(layer):
        for path in ("/World/wall", "/World/lamp"):
            Sdf.CopySpec(layer, env(0, "/shelf"), layer, path)
            usd_scenes.place(
                layer, path, (0.2, 2.6, 0.2) if path == "/World/wall" else (2.6, 0.1, 0.6)
            )

    model, found = check_against_alone(stage_of(wall, how), tmp_path)
    assert set(model.world_template.tolist()) == {0}
    assert len(set(found)) > 1, "the wall and the lamp stand in two of the environments"


@pytest.mark.parametrize("how", HOW)
def test_equal_environments_are_one_template(tmp_path, stage_of, how):
    scene, model = load(tmp_path, stage_of(how=how))
    assert model.world_template.tolist() == [0] * COUNT
    np.testing.assert_array_equal(
        model.world_pose[:, :2], [(2.5 * (k // 3), 2.5 * (k % 3)) for k in range(COUNT)]
    )
    assert scene.warnings == ()
    assert [path for path in model.shapes.path if "shelf" in path] == [env(0, "/shelf")]
    places = model.resting_poses()[:, :, :3]
    expected = np.broadcast_to(places[:1], (COUNT, 3, 3))
    np.testing.assert_allclose(
        places - model.world_pose[:, None, :3], expected, rtol=0.0, atol=1e-15
    )


def filtered(path, target):
    def change(layer):
        Sdf.CreatePrimInLayer(layer, path)
        add_targets(layer, path, "physics:filteredPairs", [target])

    return change


def scaled(layer):
    spec = layer.GetPrimAtPath(env(3))
    Sdf.AttributeSpec(spec, "xformOp:scale", Sdf.ValueTypeNames.Float3).default = Gf.Vec3f(1.0001)
    spec.attributes["xformOpOrder"].default = ["xformOp:translate", "xformOp:scale"]


def group_of_one(layer):
    group = usd_scenes.add_group(layer, "/World/group", [env(3)], False)
    add_targets(layer, group, "physics:filteredGroups", [group])


def inactive(layer):
    Sdf.CreatePrimInLayer(layer, env(3, "/shelf")).active = False


def another_name(layer):
    inactive(layer)
    Sdf.CreatePrimInLayer(layer, env(3))
    Sdf.CopySpec(layer, env(0, "/shelf"), layer, env(3, "/board"))


def material(layer):
    usd_scenes.apply(usd_scenes.define(layer, "/World/Looks/ice", "Material"), "PhysicsMaterialAPI")
    attribute("/World/Looks/ice", "physics:dynamicFriction", 0.01, Sdf.ValueTypeNames.Float)(layer)
    schemas = Sdf.TokenListOp.Create(prependedItems=["PhysicsCollisionAPI", "MaterialBindingAPI"])
    Sdf.CreatePrimInLayer(layer, env(3, "/shelf")).SetInfo("apiSchemas", schemas)
    add_targets(layer, env(3, "/shelf"), "material:binding", ["/World/Looks/ice"])


def outside_joint(layer):
    usd_scenes.define(layer, "/World/joint", "PhysicsFixedJoint")
    for name, target in (
        ("physics:body0", env(3, "/Robot/link_2")),
        ("physics:body1", "/World/ground"),
    ):
        add_targets(layer, "/World/joint", name, [target])


ODD = {
    "size": attribute(env(3, "/shelf"), "size", np.nextafter(0.5, 1.0)),
    "size below a reference": attribute(env(3, "/Robot/link_1/box"), "size", 0.21),
    "child transform": attribute(
        env(3, "/shelf"), "xformOp:translate", Gf.Vec3d(0.3, 0.4, 0.2 + 1e-15), usd_scenes.DOUBLE3
    ),
    "margin": attribute(env(3, "/shelf"), "newton:contactMargin", 0.01, Sdf.ValueTypeNames.Float),
    "margin on the root": attribute(env(3), "newton:contactMargin", 0.01, Sdf.ValueTypeNames.Float),
    "filter within": filtered(env(3, "/shelf"), env(3, "/Robot/link_0")),
    "filter from outside": filtered("/World/ground", env(3, "/Robot/link_0")),
    "filter to outside": filtered(env(3, "/shelf"), "/World/ground"),
    "scale of the root": scaled,
    "group": group_of_one,
    "name": another_name,
    "inactive": inactive,
    "material": material,
    "joint from outside": outside_joint,
    "disabled": attribute(
        env(3, "/shelf"), "physics:collisionEnabled", False, Sdf.ValueTypeNames.Bool
    ),
}


@pytest.mark.share(9, 3)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("odd", list(ODD))
def test_an_odd_one_has_a_template_of_its_own(stage_of, tmp_path, odd, how):
    path = stage_of(ODD[odd], how)
    model, _ = check_against_alone(path, tmp_path)
    assert model.world_template.tolist() == [0, 0, 0, 1, 0]


def same_in_two(layer):
    for k in (1, 3):
        attribute(env(k, "/shelf"), "size", 0.7)(layer)


def another_group(layer):
    usd_scenes.add_isaac_groups(layer, COUNT)
    layer.GetPrimAtPath("/World/collisions/group3").attributes[
        "physics:invertFilteredGroups"
    ].default = False


def collection_by_expression(layer):
    """Which may mean any environment."""
    group_of_one(layer)
    group = layer.GetPrimAtPath("/World/group")
    group.relationships["collection:colliders:includes"].targetPathList.ClearEdits()
    name = "collection:colliders:membershipExpression"
    kind = Sdf.ValueTypeNames.PathExpression
    Sdf.AttributeSpec(group, name, kind).default = Sdf.PathExpression(env(2, "//"))


def physics_scene_in_each(layer):
    for k in range(COUNT):
        usd_scenes.define(layer, env(k, "/scene"), "PhysicsScene")


def numbered(layer):
    """Stages that Kit saves number the articulations of Newton, another number in each
    environment."""
    for k in range(COUNT):
        name = "physics:newton:articulation_index"
        kind = Sdf.ValueTypeNames.UInt
        robot = Sdf.CreatePrimInLayer(layer, env(k, "/Robot"))
        Sdf.AttributeSpec(robot, name, kind, declaresCustom=True).default = k


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("change", "templates"),
    [
        (numbered, [0] * COUNT),
        (same_in_two, [0, 1, 0, 1, 0]),
        (another_group, [0, 0, 0, 1, 0]),
        (collection_by_expression, list(range(COUNT))),
        (physics_scene_in_each, list(range(COUNT))),
    ],
)
def test_templates(tmp_path, stage_of, change, templates, how):
    assert load(tmp_path, stage_of(change, how))[1].world_template.tolist() == templates


@pytest.mark.share(2)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("inverted", [True, False])
def test_groups_of_a_cloner(stage_of, tmp_path, how, inverted):
    """A group for each environment: 5 groups, of which the stage keeps one, and no warning of those
    left out."""
    path = stage_of(lambda layer: usd_scenes.add_isaac_groups(layer, COUNT, inverted), how)
    if inverted:
        model, _ = check_against_alone(path, tmp_path)
    else:
        model = load(tmp_path, path)[1]
        assert collidecli.collide(model, device="cpu").rigid_contact_count == 0
    assert model.world_template.tolist() == [0] * COUNT
    assert load(tmp_path, path)[0].warnings == ()


def test_a_filter_across_environments_is_fine(stage_of, tmp_path):
    path = stage_of(filtered(env(1, "/shelf"), env(3, "/shelf")))
    scene, model = load(tmp_path, path)
    assert scene.warnings == ()
    # The one that names another differs by that; the one that is named is not shared, whatever is
    # said of it.
    assert model.world_template.tolist() == [0, 1, 0, 2, 0]
    check_against_alone(path, tmp_path)


def test_a_joint_across_environments_is_told(tmp_path, stage_of):
    def joint(layer):
        outside_joint(layer)
        targets = layer.GetPrimAtPath("/World/joint").relationships["physics:body1"].targetPathList
        targets.explicitItems = [env(1, "/Robot/link_0")]

    scene, model = load(tmp_path, stage_of(joint))
    assert (
        "</World/joint>: the joint is between two environments, which cannot collide"
        in scene.warnings
    )
    assert model.world_template.tolist() == [0, 1, 0, 2, 0]


def turn(layer):
    for k in range(COUNT):
        attribute(env(k), "xformOp:rotateZ", 31.0 * k)(layer)
        layer.GetPrimAtPath(env(k)).attributes["xformOpOrder"].default = [
            "xformOp:translate",
            "xformOp:rotateZ",
        ]


def reset(layer):
    """A shelf that resets the transform stack stands where it is, whatever its environment's root
    does."""
    for k in range(COUNT):
        order = layer.GetPrimAtPath(env(k, "/shelf")).attributes["xformOpOrder"]
        order.default = ["!resetXformStack!", "xformOp:translate"]


def only_shelves(layer):
    for k in range(COUNT):
        layer.GetPrimAtPath(env(k, "/Robot")).active = False


def carried(layer):
    """Their colliders are the body's, each where it stands on it: no two environments are then the
    same."""
    only_shelves(layer)
    usd_scenes.apply(layer.GetPrimAtPath("/World/envs"), "PhysicsRigidBodyAPI")


@pytest.mark.parametrize(
    ("change", "templates"),
    [(turn, [0] * COUNT), (reset, list(range(COUNT))), (carried, list(range(COUNT)))],
)
def test_what_is_above_environments_counts(stage_of, tmp_path, change, templates):
    model, found = check_against_alone(stage_of(change), tmp_path)
    assert model.world_template.tolist() == templates
    assert change is not reset or len(set(found)) > 1
    assert change is not carried or model.bodies.path == (ENVIRONMENTS,)


def test_static_pairs_within_an_environment(stage_of):
    """A second shelf in each: static pairs, where asked for, are those of one environment and of
    what is outside."""

    def change(layer):
        only_shelves(layer)
        for k in range(COUNT):
            Sdf.CopySpec(layer, env(k, "/shelf"), layer, env(k, "/board"))

    model = load_scene([stage_of(change)], None, static_pairs=True).model
    contacts = collidecli.collide(model, device="cpu")
    counts = np.diff(contacts.cell_start)
    assert (counts.min() > 0, np.ptp(counts)) == (True, 0)
    at = contacts.point0.reshape(COUNT, -1, 3) - model.world_pose[:, None, :3]
    np.testing.assert_allclose(at - at[:1], 0.0, rtol=0.0, atol=1e-12)


def test_variants_in_one_environment(tmp_path, stage_of):
    def change(layer):
        for k in range(COUNT):
            shelf = layer.GetPrimAtPath(env(k, "/shelf"))
            sizes = Sdf.VariantSetSpec(shelf, "size")
            shelf.variantSetNameList.Prepend("size")
            for name, size in (("small", 0.5), ("large", 0.8)):
                held = Sdf.VariantSpec(sizes, name).primSpec
                Sdf.AttributeSpec(held, "size", Sdf.ValueTypeNames.Double).default = size
            shelf.RemoveProperty(shelf.properties["size"])
            shelf.variantSelections["size"] = "small"

    path = stage_of(change)
    assert load(tmp_path, path)[1].world_template.tolist() == [0] * COUNT
    model = load(tmp_path, path, variants=(f"{env(2, '/shelf')}:size=large",))[1]
    assert model.world_template.tolist() == [0, 0, 1, 0, 0]
    sizes = {path: size[0] for path, size in zip(model.shapes.path, model.shapes.size, strict=True)}
    assert (sizes[env(0, "/shelf")], sizes[env(2, "/shelf")]) == (0.25, 0.4)


def test_patterns(tmp_path, stage_of):
    path = stage_of()
    assert load(tmp_path, path, environments="none")[1].world_count == 1
    picked = load(tmp_path, path, environments="/World/*/env_[1-3]")[1]
    assert picked.world_path == (env(1), env(2), env(3))
    assert (picked.shapes.template == -1).sum() == 1 + 2 * (2 * 3 + 1)
    assert load(tmp_path, path, environments="re:/World/.*/env_(1|3)")[1].world_path == (
        env(1),
        env(3),
    )
    for pattern in ("World/envs", "/World//x", "/", "re:World/envs", "re:/"):
        with pytest.raises(InputError, match="is no path of prims"):
            load(tmp_path, path, environments=pattern)
    with pytest.raises(InputError, match="no prim of the scene is"):
        load(tmp_path, path, environments="/World/halls/*")
    assert load_scene([path], COUNT).model.world_count == COUNT
    with pytest.raises(InputError, match="3 worlds, and the scene has 5 worlds of its own"):
        load_scene([path], 3)
    with pytest.raises(InputError, match="2 scenes, and the scene has 5 worlds of its own"):
        load_scene([path, path], None)
    recording = write_recording(
        tmp_path, ["Robot/link_0"], np.tile([0.0, 0, 0, 0, 0, 0, 1], (1, 4, 1, 1))
    )
    with pytest.raises(
        InputError, match="4 worlds of the recording, and the scene has 5 worlds of its own"
    ):
        load_scene([path], None, trajectory=recording)


def test_roots_may_be_at_the_top_without_a_type(tmp_path):
    shape = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])\n{\n}'
    path = tmp_path / "top.usda"
    colliders = [
        f'def {kind}"room_{k}" {{\n{shape}\n}}'
        for k, kind in enumerate(["", "Scope ", "", "Xform "])
    ]
    path.write_text("\n".join(["#usda 1.0\n( metersPerUnit = 1 )", *colliders]))
    model = load(tmp_path, path, environments="/room_*")[1]
    # The type of a root may matter to what is below it, so that other types are other templates.
    assert model.world_template.tolist() == [0, 1, 0, 2]


def test_names_of_environments_are_ordered_by_number(tmp_path):
    path = usd_scenes.write_environments(tmp_path, usd_scenes.write_robot(tmp_path, links=1), 12)
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetPrimAtPath(ENVIRONMENTS).nameChildrenOrder = [f"env_{k}" for k in (10, 2, 1, 11, 0)]
    layer.Save()
    assert load(tmp_path, path)[1].world_path == tuple(env(k) for k in range(12))


@pytest.mark.parametrize("environments", ["", "none"])
def test_a_referenced_file_that_has_changed_is_read_anew(tmp_path, stage_of, environments):
    path = stage_of(how="reference")
    held = load(tmp_path, path, environments=environments)  # while this lives, pxr keeps the layers
    robot = path.parent / "robot.usda"
    robot.write_text(robot.read_text().replace("double radius = 0.08", "double radius = 0.07"))
    model = load(tmp_path, path, environments=environments)[1]
    assert set(model.shapes.size[model.shapes.type == ShapeType.CAPSULE, 0].tolist()) == {0.07}
    assert held[1].world_count == model.world_count


def test_one_environment_is_one_world_that_can_be_copied(tmp_path):
    path = usd_scenes.write_environments(tmp_path, usd_scenes.write_robot(tmp_path, links=1), 1)
    layer = Sdf.Layer.FindOrOpen(str(path))
    usd_scenes.place(layer, env(0), (3.0, 4.0, 0.0))
    layer.Save()
    model, plain = (
        load_scene([path], 3, options=SceneOptions(environments=each)).model
        for each in ("", "none")
    )
    np.testing.assert_array_equal(model.world_pose, [(3, 4, 0, 0, 0, 0, 1)] * 3)
    assert model.shapes.path == plain.shapes.path
    for ours, theirs in ((model.bodies, plain.bodies), (model.shapes, plain.shapes)):
        np.testing.assert_array_equal(ours.pose, theirs.pose)


def test_the_stage_holds_one_environment_of_each_kind(tmp_path, stage_of):
    scene, _ = load(tmp_path, stage_of(ODD["size"]))
    held = [prim.GetName() for prim in scene.stage.GetPrimAtPath(ENVIRONMENTS).GetChildren()]
    assert held == ["env_0", "env_3"]
    assert (
        len(
            [prim for prim in scene.stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
        )
        == 2
    )


def test_example_of_the_documents(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[4] / "docs/reference/usd-environments.md").read_text(
        encoding="utf-8"
    )
    (example,) = re.findall(r"^```usda\n(.*?)^```", page, re.S | re.M)
    (tmp_path / "envs.usda").write_text(example)
    monkeypatch.chdir(tmp_path)
    said = []
    for line in re.findall(r"^    collide (.*)$", page, re.M):
        more = ["--force", "--device", "cpu"] if line.startswith("run") else []
        with contextlib.suppress(SystemExit):
            assert cli.main([*shlex.split(line), "--json", *more]) == 0
        said.append(json.loads(capsys.readouterr().out))
    inspected, _, whole = said
    assert (inspected["worlds"], inspected["templates"]) == (3, 2)
    assert [body["path"] for body in inspected["bodies"]] == [env(0, "/crate"), env(2, "/crate")]
    assert whole["worlds"] == 1
    # Four corners of each crate on the ground; the larger one's are below it, as far as its size
    # says.
    contacts = collidecli.collide(load(tmp_path, Path("envs.usda"))[1], device="cpu")
    assert np.diff(contacts.cell_start).tolist() == [4, 4, 4]
    expected = [[3 * k + s * a for s in (-1, 1)] for k, a in enumerate((0.5, 0.5, 0.6))]
    found = [sorted(set(contacts.cell(0, k).point1[:, 0].round(6))) for k in range(3)]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(contacts.distance, [0.0] * 8 + [-0.1] * 4, rtol=0.0, atol=1e-6)


# What moves the environments of a stage: recordings, and the stage's own animation.

BIGGER_SHELF = attribute(env(3, "/shelf"), "size", 0.7)


def write_recording(folder, names, poses):
    with TrajectoryWriter(
        folder / "motion.h5", world_count=poses.shape[1], body_names=names
    ) as writer:
        writer.append(np.arange(len(poses)) * 0.1, np.arange(len(poses)), body_q=poses)
    return folder / "motion.h5"


@pytest.mark.parametrize("prefix", [env(0, "/"), env(4, "/"), ""])
def test_recordings_name_bodies_in_any_environment(stage_of, tmp_path, prefix):
    """Each world has poses of its own; the odd one's bodies are meant too; what is left out rests
    in each world."""
    rng = np.random.default_rng(3)
    poses = np.zeros((2, COUNT, 2, 7))
    poses[..., :3] = rng.uniform(-1, 1, (2, COUNT, 2, 3))
    poses[..., 6] = 1.0
    twice = write_recording(
        tmp_path, [env(0, "/Robot/link_0"), env(1, "/Robot/link_0")], poses[:1, :1]
    )
    with pytest.raises(InputError, match="one body in several environments"):
        load_scene([stage_of()], None, trajectory=twice).motion()
    twice.unlink()
    path = write_recording(tmp_path, [prefix + "Robot/link_2", prefix + "Robot/link_0"], poses)
    scene = load_scene([stage_of(BIGGER_SHELF)], None, trajectory=path)
    assert scene.model.world_template.tolist() == [0, 0, 0, 1, 0]
    motion = scene.motion()
    read = motion.read(range(2))
    motion.close()
    for world in range(COUNT):
        first = env(3 if world == 3 else 0)
        row = scene.model.bodies.path.index
        np.testing.assert_array_equal(
            read[:, world, row(f"{first}/Robot/link_2")], poses[:, world, 0]
        )
        np.testing.assert_array_equal(
            read[:, world, row(f"{first}/Robot/link_0")], poses[:, world, 1]
        )
        resting = scene.model.resting_poses()[world, row(f"{first}/Robot/link_1")]
        np.testing.assert_array_equal(
            read[:, world, row(f"{first}/Robot/link_1")], [resting, resting]
        )


@pytest.mark.parametrize(("name", "origin"), [(env(2, "/Robot/link_0"), 2), ("Robot/link_0", 0)])
def test_a_recording_of_one_world_moves_with_each_origin(stage_of, tmp_path, name, origin):
    pose = np.array((7.0, 8.0, 9.0, 0, 0, 0, 1))
    path = write_recording(tmp_path, [name], pose[None, None, None])
    scene = load_scene([stage_of(BIGGER_SHELF)], None, trajectory=path)
    motion = scene.motion()
    placed = scene.model.moved_with_worlds(motion.read(range(1)))[0]
    assert any("of one world" in warning for warning in motion.warnings)
    motion.close()
    origins = scene.model.world_pose[:, :3]
    for world in range(COUNT):
        row = scene.model.bodies.path.index(env(3 if world == 3 else 0, "/Robot/link_0"))
        expected = pose[:3] + origins[world] - origins[origin]
        np.testing.assert_allclose(placed[world, row, :3], expected, rtol=0.0, atol=1e-14)


def animate(layer, path, values):
    spec = Sdf.CreatePrimInLayer(layer, path)
    if "xformOp:translate" not in spec.attributes:
        Sdf.AttributeSpec(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3)
    for time, value in values.items():
        layer.SetTimeSample(f"{path}.xformOp:translate", time, Gf.Vec3d(*value))


def check_motion_against_alone(path, folder):
    scene = load_scene([path], None)
    motion = scene.motion()
    together = collidecli.collide(scene.model, motion, device="cpu")
    count = 0
    for world, root in enumerate(scene.model.world_path):
        target = usd_scenes.flattened_alone(path, root, folder)
        single = load_scene([target], None, options=SceneOptions(environments="none"))
        own = single.motion()
        times = [int(t * 24) for t in motion.time]
        expected = collidecli.collide(single.model, own, device="cpu")
        for frame, time in enumerate(times):
            theirs = list((own.time * 24).astype(int)).index(time) if len(own.time) > 1 else 0
            ours = usd_scenes.rows(together.cell(frame, world), scene.model)
            other = usd_scenes.rows(expected.cell(theirs, 0), single.model)
            assert ours[0] == other[0]
            np.testing.assert_allclose(ours[1], other[1], rtol=0.0, atol=2e-7)
            count += len(ours[0])
    assert count > 0
    return scene.model


MOVED_LINK = {0: (0.4, 0.1, 0.3), 24: (0.3, 0.35, 0.3)}


@pytest.mark.parametrize(
    ("moved", "templates"),
    [
        ([(env(k, "/Robot/link_2"), MOVED_LINK) for k in range(COUNT)], [0] * COUNT),
        ([(env(3, "/Robot/link_2"), MOVED_LINK)], [0, 0, 0, 1, 0]),
        ([(env(3), {0: (2.5, 0.0, 0.0), 24: (2.5, 0.4, 0.5)})], [0, 0, 0, 1, 0]),
    ],
    ids=["all", "one", "one as a whole"],
)
def test_animated_environments(stage_of, tmp_path, moved, templates):
    def change(layer):
        for path, values in moved:
            animate(layer, path, values)

    assert (
        check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == templates
    )


def robots(stem, count, under="/World", different=()):
    """Xforms with a body each, a collider in it."""
    parts = []
    for k in range(count):
        ball = usd_scenes.sphere("ball" if k not in different else "cube")
        parts.append(f'def Xform "{stem}{k}" {{\n{usd_scenes.at(0, 3 * k, 0)}{ball}}}\n')
    names = [name for name in under.split("/") if name]
    opened = "".join(f'def Xform "{name}" {{\n' for name in names)
    return opened + "".join(parts) + "}\n" * len(names)


@pytest.mark.parametrize("stem", ["Env_", "env_"])
def test_environments_of_the_guide_are_found(tmp_path, stem):
    scene, model = load(tmp_path, usd_scenes.write_usda(tmp_path, robots(stem, 3)))
    assert model.world_template.tolist() == [0] * 3
    assert scene.warnings == ()
    np.testing.assert_array_equal(model.world_pose[:, 1], [0, 3, 6])
    text = robots(stem, 3).replace('"World" {', '"World" {\n' + usd_scenes.sphere("Env_0_lamp"))
    scene, model = load(tmp_path, usd_scenes.write_usda(tmp_path, text))
    assert len(model.world_template) == 3, "the lamp is in every world"
    _, alone = load(tmp_path, usd_scenes.write_usda(tmp_path, robots(stem, 3)), environments="none")
    assert len(alone.world_template) == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (robots("Robot_", 3), "</World/Robot_0> and 2 more have equal structure"),
        (robots("Robot_", 4, different=(2,)), "</World/Robot_0> and 2 more have equal structure"),
        (robots("Robot_", 2, "/a/b"), "--environments '/a/b/Robot_[0-9]*'"),
        (robots("Robot_", 1), ""),
        (robots("Robot", 3), ""),
        (robots("Robot_", 2, different=(1,)), ""),
        ("".join(usd_scenes.sphere(f"ball_{k}") for k in range(3)), ""),  # a pile of bodies
    ],
)
def test_siblings_of_equal_structure_in_one_world_get_a_hint(tmp_path, text, hint):
    path = usd_scenes.write_usda(tmp_path, text)
    scene, _ = load(tmp_path, path)
    assert len(scene.warnings) == bool(hint)
    assert hint in "".join(scene.warnings)
    if hint:
        option = re.findall("--environments '(.*)'", scene.warnings[0])[0]
        scene, model = load(tmp_path, path, environments=option)
        assert len(model.world_template) > 1
        assert scene.warnings == ()
