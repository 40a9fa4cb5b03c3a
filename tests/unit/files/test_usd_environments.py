"""Environments of a stage as worlds: which are the same, where they stand, and each against itself alone."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re

import h5py
import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdPhysics

import collidecli
from collidecli.app.scenes import load_scene
from collidecli.errors import InputError
from collidecli.files.scene_usd import add_usd
from collidecli.model.builder import ModelBuilder
from collidecli.model.options import SceneOptions
from tests.support.environments import ENVIRONMENTS, add_isaac_groups, place, write_environments, write_robot

COUNT = 5
DOUBLE3 = Sdf.ValueTypeNames.Double3
HOW = ("reference", "inherit", "copy")


def env(k: int, below: str = "") -> str:
    return f"{ENVIRONMENTS}/env_{k}{below}"


@pytest.fixture
def stage_of(tmp_path):
    """Writes a stage of COUNT environments; `change` is given its layer before it is saved."""
    robot = write_robot(tmp_path, links=3)

    def write(change=None, how="copy"):
        path = write_environments(tmp_path, robot, COUNT, how, name=f"{how}.usda")
        if change is not None:
            layer = Sdf.Layer.FindOrOpen(str(path))
            change(layer)
            layer.Save()
        return path

    return write


def load(path, **options):
    builder = ModelBuilder()
    scene = add_usd(builder, path, SceneOptions(**options))
    return scene, builder.finalize()


def flattened_alone(path, root, folder):
    """A file with one environment only, at its place, and all that is outside."""
    flat = Usd.Stage.Open(str(path)).Flatten()
    environments = flat.GetPrimAtPath(ENVIRONMENTS).nameChildren
    for name in list(environments.keys()):
        if name != root.rpartition("/")[2]:
            del environments[name]
    target = folder / f"alone_{root.rpartition('/')[2]}.usda"
    flat.Export(str(target))
    return target


def rows(contacts, model):
    """Contacts in an order that does not depend on that of the shapes: two names, then distance and a point.

    Names are without the environment; the point is that on the shape whose name comes first.
    """
    local = [re.sub(rf"^{ENVIRONMENTS}/[^/]*/", "", path) for path in model.shapes.path]
    names = [(local[a], local[b]) for a, b in zip(contacts.shape0, contacts.shape1, strict=True)]
    swapped = np.array([first > second for first, second in names], bool)
    point = np.where(swapped[:, None], contacts.point1, contacts.point0)
    order = sorted(range(len(names)), key=lambda k: (*sorted(names[k]), *point[k].round(5)))
    return [sorted(names[k]) for k in order], np.concatenate([contacts.distance[:, None], point], axis=1)[order]


def check_against_alone(path, folder, roots=None):
    _, model = load(path)
    together = collidecli.collide(model, device="cpu")
    assert model.world_path == tuple(roots or (env(k) for k in range(COUNT)))
    found = []
    for world, root in enumerate(model.world_path):
        single = load(flattened_alone(path, root, folder), environments="none")[1]
        expected = collidecli.collide(single, device="cpu")
        ours, theirs = rows(together.cell(0, world), model), rows(expected, single)
        assert ours[0] == theirs[0], root
        # Poses are composed in float64 from the first environment's; distance is a float32 column.
        np.testing.assert_allclose(ours[1], theirs[1], rtol=0.0, atol=2e-7)
        found.append(len(ours[0]))
    assert min(found) > 0
    return model, found


@pytest.mark.parametrize("how", HOW)
def test_each_environment_has_the_contacts_that_it_has_alone(stage_of, tmp_path, how):
    def wall(layer):
        for path in ("/World/wall", "/World/lamp"):
            Sdf.CopySpec(layer, env(0, "/shelf"), layer, path)
            place(layer, path, (0.2, 2.6, 0.2) if path == "/World/wall" else (2.6, 0.1, 0.6))

    model, found = check_against_alone(stage_of(wall, how), tmp_path)
    assert set(model.world_template.tolist()) == {0}
    assert len(set(found)) > 1, "the wall and the lamp stand in two of the environments"


def test_turned_environments(stage_of, tmp_path):
    def turn(layer):
        for k in range(COUNT):
            spec = Sdf.AttributeSpec(layer.GetPrimAtPath(env(k)), "xformOp:rotateZ", Sdf.ValueTypeNames.Double)
            spec.default = 31.0 * k
            order = layer.GetPrimAtPath(env(k)).attributes["xformOpOrder"]
            order.default = ["xformOp:translate", "xformOp:rotateZ"]

    model, _ = check_against_alone(stage_of(turn), tmp_path)
    assert set(model.world_template.tolist()) == {0}


@pytest.mark.parametrize("how", HOW)
def test_one_template_and_its_origins(stage_of, how):
    scene, model = load(stage_of(how=how))
    assert model.world_template.tolist() == [0] * COUNT
    np.testing.assert_array_equal(model.world_pose[:, :2], [(2.5 * (k // 3), 2.5 * (k % 3)) for k in range(COUNT)])
    assert scene.warnings == ()
    assert [path for path in model.shapes.path if "shelf" in path] == [env(0, "/shelf")]
    np.testing.assert_allclose(
        model.resting_poses()[:, :, :3] - model.world_pose[:, None, :3],
        np.broadcast_to(model.resting_poses()[:1, :, :3], (COUNT, 3, 3)),
        rtol=0.0,
        atol=1e-15,
    )


def attribute(path, name, value, kind=Sdf.ValueTypeNames.Double):
    def change(layer):
        spec = Sdf.CreatePrimInLayer(layer, path)
        held = spec.attributes.get(name) or Sdf.AttributeSpec(spec, name, kind)
        held.default = value

    return change


def filtered(path, target):
    def change(layer):
        spec = Sdf.CreatePrimInLayer(layer, path)
        Sdf.RelationshipSpec(spec, "physics:filteredPairs", custom=False).targetPathList.Append(target)

    return change


def scaled(layer):
    spec = layer.GetPrimAtPath(env(3))
    Sdf.AttributeSpec(spec, "xformOp:scale", Sdf.ValueTypeNames.Float3).default = Gf.Vec3f(1.0001)
    spec.attributes["xformOpOrder"].default = ["xformOp:translate", "xformOp:scale"]


def group_of_one(layer):
    spec = Sdf.CreatePrimInLayer(layer, "/World/group")
    spec.specifier, spec.typeName = Sdf.SpecifierDef, "PhysicsCollisionGroup"
    spec.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=["CollectionAPI:colliders"]))
    Sdf.RelationshipSpec(spec, "collection:colliders:includes", custom=False).targetPathList.Append(env(3))
    Sdf.RelationshipSpec(spec, "physics:filteredGroups", custom=False).targetPathList.Append("/World/group")


def inactive(layer):
    Sdf.CreatePrimInLayer(layer, env(3, "/shelf")).active = False


def another_name(layer):
    inactive(layer)
    Sdf.CreatePrimInLayer(layer, env(3))
    Sdf.CopySpec(layer, env(0, "/shelf"), layer, env(3, "/board"))


def material(layer):
    spec = Sdf.CreatePrimInLayer(layer, "/World/Looks/ice")
    for path in ("/World/Looks", "/World/Looks/ice"):
        layer.GetPrimAtPath(path).specifier = Sdf.SpecifierDef
    spec.typeName = "Material"
    spec.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=["PhysicsMaterialAPI"]))
    Sdf.AttributeSpec(spec, "physics:dynamicFriction", Sdf.ValueTypeNames.Float).default = 0.01
    shelf = Sdf.CreatePrimInLayer(layer, env(3, "/shelf"))
    shelf.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=["PhysicsCollisionAPI", "MaterialBindingAPI"]))
    Sdf.RelationshipSpec(shelf, "material:binding", custom=False).targetPathList.Append("/World/Looks/ice")


def outside_joint(layer):
    spec = Sdf.CreatePrimInLayer(layer, "/World/joint")
    spec.specifier, spec.typeName = Sdf.SpecifierDef, "PhysicsFixedJoint"
    for name, target in (("physics:body0", env(3, "/Robot/link_2")), ("physics:body1", "/World/ground")):
        Sdf.RelationshipSpec(spec, name, custom=False).targetPathList.Append(target)


ODD = {
    "size": attribute(env(3, "/shelf"), "size", np.nextafter(0.5, 1.0)),
    "size below a reference": attribute(env(3, "/Robot/link_1/box"), "size", 0.21),
    "child transform": attribute(env(3, "/shelf"), "xformOp:translate", Gf.Vec3d(0.3, 0.4, 0.2 + 1e-15), DOUBLE3),
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
    "disabled": attribute(env(3, "/shelf"), "physics:collisionEnabled", False, Sdf.ValueTypeNames.Bool),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("odd", list(ODD))
def test_an_odd_one_has_a_template_of_its_own(stage_of, tmp_path, odd, how):
    path = stage_of(ODD[odd], how)
    model, _ = check_against_alone(path, tmp_path)
    assert model.world_template.tolist() == [0, 0, 0, 1, 0]


def test_the_same_change_in_two_is_one_template(stage_of):
    def both(layer):
        for k in (1, 3):
            attribute(env(k, "/shelf"), "size", 0.7)(layer)

    assert load(stage_of(both))[1].world_template.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("inverted", [True, False])
def test_groups_of_a_cloner(stage_of, tmp_path, how, inverted):
    """A group for each environment: 5 groups, of which the stage keeps one, and no warning of those left out."""
    path = stage_of(lambda layer: add_isaac_groups(layer, COUNT, inverted), how)
    if inverted:
        model, _ = check_against_alone(path, tmp_path)
    else:
        model = load(path)[1]
        assert collidecli.collide(model, device="cpu").rigid_contact_count == 0
    assert model.world_template.tolist() == [0] * COUNT
    assert load(path)[0].warnings == ()


def test_a_group_that_differs_in_one(stage_of):
    def change(layer):
        add_isaac_groups(layer, COUNT)
        layer.GetPrimAtPath("/World/collisions/group3").attributes["physics:invertFilteredGroups"].default = False

    assert load(stage_of(change))[1].world_template.tolist() == [0, 0, 0, 1, 0]


def test_a_filter_across_environments_is_fine(stage_of, tmp_path):
    path = stage_of(filtered(env(1, "/shelf"), env(3, "/shelf")))
    scene, model = load(path)
    assert scene.warnings == ()
    # The one that names another differs by that; the one that is named is not shared, whatever is said of it.
    assert model.world_template.tolist() == [0, 1, 0, 2, 0]
    check_against_alone(path, tmp_path)


def test_a_joint_across_environments_is_told(stage_of):
    def joint(layer):
        outside_joint(layer)
        targets = layer.GetPrimAtPath("/World/joint").relationships["physics:body1"].targetPathList
        targets.explicitItems = [env(1, "/Robot/link_0")]

    scene, model = load(stage_of(joint))
    assert "</World/joint>: the joint is between two environments, which never meet" in scene.warnings
    assert model.world_template.tolist() == [0, 1, 0, 2, 0]


def test_a_transform_that_leaves_its_environment(stage_of, tmp_path):
    """A shelf that resets the transform stack stands where it is, whatever its environment's root does."""

    def reset(layer):
        for k in range(COUNT):
            order = layer.GetPrimAtPath(env(k, "/shelf")).attributes["xformOpOrder"]
            order.default = ["!resetXformStack!", "xformOp:translate"]

    model, found = check_against_alone(stage_of(reset), tmp_path)
    assert len(set(model.world_template.tolist())) == COUNT
    assert len(set(found)) > 1


def test_patterns(stage_of):
    path = stage_of()
    assert load(path, environments="none")[1].world_count == 1
    picked = load(path, environments="/World/*/env_[1-3]")[1]
    assert picked.world_path == (env(1), env(2), env(3))
    assert (picked.shapes.template == -1).sum() == 1 + 2 * (2 * 3 + 1)
    for pattern in ("World/envs", "/World//x", "/"):
        with pytest.raises(InputError, match="is no path of prims"):
            load(path, environments=pattern)
    with pytest.raises(InputError, match="no prim of the scene is"):
        load(path, environments="/World/rooms/*")


def test_roots_at_the_top_and_without_a_type(tmp_path):
    shape = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}'
    path = tmp_path / "top.usda"
    rooms = [f'def {kind}"room_{k}" {{ {shape} }}' for k, kind in enumerate(["", "Scope ", "", "Xform "])]
    path.write_text("\n".join(["#usda 1.0\n( metersPerUnit = 1 )", *rooms]))
    model = load(path, environments="/room_*")[1]
    # The type of a root may matter to what is below it, so that other types are other templates.
    assert model.world_template.tolist() == [0, 1, 0, 2]


def test_names_are_ordered_by_number(tmp_path):
    path = write_environments(tmp_path, write_robot(tmp_path, links=1), 12)
    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.GetPrimAtPath(ENVIRONMENTS).nameChildrenOrder = [f"env_{k}" for k in (10, 2, 1, 11, 0)]
    layer.Save()
    assert load(path)[1].world_path == tuple(env(k) for k in range(12))


def test_one_environment_is_one_world_that_can_be_copied(tmp_path):
    path = write_environments(tmp_path, write_robot(tmp_path, links=1), 1)
    layer = Sdf.Layer.FindOrOpen(str(path))
    place(layer, env(0), (3.0, 4.0, 0.0))
    layer.Save()
    model = load_scene([path], 3).model
    plain = load_scene([path], 3, options=SceneOptions(environments="none")).model
    np.testing.assert_array_equal(model.world_pose, [(3, 4, 0, 0, 0, 0, 1)] * 3)
    assert model.shapes.path == plain.shapes.path
    np.testing.assert_array_equal(model.bodies.pose, plain.bodies.pose)
    np.testing.assert_array_equal(model.shapes.pose, plain.shapes.pose)


def test_worlds_that_do_not_agree_are_refused(stage_of, tmp_path):
    path = stage_of()
    assert load_scene([path], COUNT).model.world_count == COUNT
    with pytest.raises(InputError, match="3 worlds, and the scene has 5 environments"):
        load_scene([path], 3)
    with pytest.raises(InputError, match="2 scenes, and the scene has 5 environments"):
        load_scene([path, path], None)
    recording = write_recording(tmp_path, ["Robot/link_0"], np.zeros((1, 4, 1, 7)))
    with pytest.raises(InputError, match="4 worlds of the recording, and the scene has 5 environments"):
        load_scene([path], None, trajectory=recording)


def write_recording(folder, names, poses):
    path = folder / "motion.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "collide-trajectory", "format_version": np.array([1, 0], np.int32)})
        file.attrs["creator"] = "test"
        file["time"] = np.arange(len(poses)) * 0.1
        file["body_name"] = names
        file["body_q"] = poses
    return path


@pytest.mark.parametrize("prefix", [env(0, "/"), env(4, "/"), ""])
def test_recordings_name_bodies_in_any_environment(stage_of, tmp_path, prefix):
    """Each world has poses of its own; the odd one's bodies are meant too; what is left out rests in each world."""
    scene = load_scene([stage_of(ODD["size"])], None)
    assert scene.model.world_template.tolist() == [0, 0, 0, 1, 0]
    rng = np.random.default_rng(3)
    poses = np.zeros((2, COUNT, 2, 7))
    poses[..., :3], poses[..., 6] = rng.uniform(-1, 1, (2, COUNT, 2, 3)), 1.0
    path = write_recording(tmp_path, [prefix + "Robot/link_2", prefix + "Robot/link_0"], poses)
    motion = scene.motion(path)
    read = motion.read(range(2))
    motion.close()
    for world in range(COUNT):
        first = env(3 if world == 3 else 0)
        row = scene.model.bodies.path.index
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_2")], poses[:, world, 0])
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_0")], poses[:, world, 1])
        resting = scene.model.resting_poses()[world, row(f"{first}/Robot/link_1")]
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_1")], [resting, resting])


@pytest.mark.parametrize(("name", "origin"), [(env(2, "/Robot/link_0"), 2), ("Robot/link_0", 0)])
def test_a_recording_of_one_world_moves_with_each_origin(stage_of, tmp_path, name, origin):
    scene = load_scene([stage_of(ODD["size"])], None)
    pose = np.array((7.0, 8.0, 9.0, 0, 0, 0, 1))
    path = write_recording(tmp_path, [name], pose[None, None, None])
    motion = scene.motion(path)
    placed = scene.model.moved_with_worlds(motion.read(range(1)))[0]
    assert any("of one world" in warning for warning in motion.warnings)
    motion.close()
    origins = scene.model.world_pose[:, :3]
    for world in range(COUNT):
        row = scene.model.bodies.path.index(env(3 if world == 3 else 0, "/Robot/link_0"))
        expected = pose[:3] + origins[world] - origins[origin]
        np.testing.assert_allclose(placed[world, row, :3], expected, rtol=0.0, atol=1e-14)


def test_one_body_of_several_environments_is_refused(stage_of, tmp_path):
    scene = load_scene([stage_of()], None)
    path = write_recording(tmp_path, [env(0, "/Robot/link_0"), env(1, "/Robot/link_0")], np.ones((1, 1, 2, 7)))
    with pytest.raises(InputError, match="one body of several environments"):
        scene.motion(path)


def animate(layer, path, values):
    spec = Sdf.CreatePrimInLayer(layer, path)
    if "xformOp:translate" not in spec.attributes:
        Sdf.AttributeSpec(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3)
    for time, value in values.items():
        layer.SetTimeSample(f"{path}.xformOp:translate", time, Gf.Vec3d(*value))


def check_motion_against_alone(path, folder):
    scene = load_scene([path], None)
    motion = scene.motion(None)
    together = collidecli.collide(scene.model, motion, device="cpu")
    count = 0
    for world, root in enumerate(scene.model.world_path):
        target = flattened_alone(path, root, folder)
        single = load_scene([target], None, options=SceneOptions(environments="none"))
        own = single.motion(None)
        times = [int(t * 24) for t in motion.time]
        expected = collidecli.collide(single.model, own, device="cpu")
        for frame, time in enumerate(times):
            theirs = list((own.time * 24).astype(int)).index(time) if len(own.time) > 1 else 0
            ours = rows(together.cell(frame, world), scene.model)
            other = rows(expected.cell(theirs, 0), single.model)
            assert ours[0] == other[0]
            np.testing.assert_allclose(ours[1], other[1], rtol=0.0, atol=2e-7)
            count += len(ours[0])
    assert count > 0
    return scene.model


def test_an_animation_that_all_have(stage_of, tmp_path):
    def change(layer):
        for k in range(COUNT):
            animate(layer, env(k, "/Robot/link_2"), {0: (0.4, 0.1, 0.3), 24: (0.3, 0.35, 0.3)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0] * COUNT


def test_an_animation_of_one(stage_of, tmp_path):
    def change(layer):
        animate(layer, env(3, "/Robot/link_2"), {0: (0.4, 0.1, 0.3), 24: (0.3, 0.35, 0.3)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0, 0, 0, 1, 0]


def test_an_environment_that_moves_as_a_whole(stage_of, tmp_path):
    def change(layer):
        animate(layer, env(3), {0: (2.5, 0.0, 0.0), 24: (2.5, 0.4, 0.5)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0, 0, 0, 1, 0]


def test_the_stage_holds_one_environment_of_each_kind(stage_of):
    scene, _ = load(stage_of(ODD["size"]))
    held = [prim.GetName() for prim in scene.stage.GetPrimAtPath(ENVIRONMENTS).GetChildren()]
    assert held == ["env_0", "env_3"]
    assert len([prim for prim in scene.stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]) == 2
