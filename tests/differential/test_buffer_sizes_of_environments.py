"""Sizes of buffers of environments with static shapes, against the counts of the engines."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.motions.scenes import load_scene

PLACES = [(0.0, 0.0, 0.0), (4.0, 0.0, 30.0), (0.0, 5.0, 0.0), (-6.0, 2.0, 200.0), (9.0, 9.0, 75.0)]
"""x, y [m] and the turn about z [degrees] of each environment."""
BALLS = 6
CRATES = 3
FRAMES = 12
BLOCK = (0.25, 0.1, 0.12)
PIT = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, 0, -0.5)]
PIT_FACES = [(0, 1, 2), (0, 2, 3), (1, 0, 4), (2, 1, 4), (3, 2, 4), (0, 3, 4)]
PIT_PLACE = (0.1, 0.0, 0.3)


def moved_prim(kind, name, apis, lines, place=(0, 0, 0), turn=0.0):
    listed = ", ".join(f'"{api}"' for api in apis)
    return (
        f'def {kind} "{name}" (prepend apiSchemas = [{listed}])\n{{\n{lines}\n'
        f"double3 xformOp:translate = {tuple(place)}\ndouble xformOp:rotateZ = {turn}\n"
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]\n}\n'
    )


def stage_text(has_mesh, crates):
    collider = ["PhysicsCollisionAPI"]
    rigid = ["PhysicsRigidBodyAPI", *collider]
    scale = "double size = 2"
    sized = (
        f'{scale}\nfloat3 xformOp:scale = {BLOCK}\nuniform token[] xformOpOrder = ["xformOp:scale"]'
    )
    inside = f'def Cube "block" (prepend apiSchemas = ["PhysicsCollisionAPI"])\n{{\n{sized}\n}}\n'
    if has_mesh:
        faces = (
            'uniform token physics:approximation = "none"\n'
            f"point3f[] points = {PIT}\nint[] faceVertexCounts = {[3] * len(PIT_FACES)}\n"
            f"int[] faceVertexIndices = {[k for face in PIT_FACES for k in face]}"
        )
        apis = [*collider, "PhysicsMeshCollisionAPI"]
        inside += moved_prim("Mesh", "pit", apis, faces, PIT_PLACE)
    for k in range(BALLS):
        inside += moved_prim("Sphere", f"ball_{k}", rigid, "double radius = 0.12")
    for k in range(crates):
        inside += moved_prim("Cube", f"crate_{k}", rigid, "double size = 0.2")
    worlds = f'def Xform "env_0"\n{{\n{inside}}}\n'
    for k, (x, y, turn) in enumerate(PLACES[1:], 1):
        worlds += (
            f'def Xform "env_{k}" (prepend inherits = </World/envs/env_0>)\n{{\n'
            f"double3 xformOp:translate = ({x}, {y}, 0)\ndouble xformOp:rotateZ = {turn}\n"
            'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]\n}\n'
        )
    ground = 'def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"])\n{\n'
    ground += 'uniform token axis = "Z"\n}\n'
    head = '#usda 1.0\n( metersPerUnit = 1\n upAxis = "Z" )\n'
    return f'{head}def Xform "World"\n{{\n{ground}def Xform "envs"\n{{\n{worlds}}}\n}}\n'


def poses_of_a_world(crates=CRATES):
    """float64[frames, bodies, 7] in the environment; float32 numbers, as the engines have them."""
    rng = np.random.default_rng(7)
    pose = rng.uniform(-0.5, 0.5, (FRAMES, BALLS + CRATES, 7))
    pose[..., 2] = rng.uniform(0.1, 0.6, pose.shape[:2])
    pose[..., 3:] = rng.normal(size=(*pose.shape[:2], 4))
    pose[..., 3:] /= np.linalg.norm(pose[..., 3:], axis=-1, keepdims=True)
    return pose[:, : BALLS + crates].astype(np.float32).astype(float)


def sizes_of(folder, has_mesh, crates=CRATES):
    file = folder / "stage.usda"
    file.write_text(stage_text(has_mesh, crates))
    model = load_scene([str(file)], None).model
    assert model.world_count == len(PLACES)
    names = [path.rsplit("/", 1)[-1] for path in model.bodies.path]
    listed = [*(f"ball_{k}" for k in range(BALLS)), *(f"crate_{k}" for k in range(crates))]
    local = poses_of_a_world(crates)[:, [listed.index(name) for name in names]]
    found = collidecli.profile(model, local[:, None], gap=0.0, sizes=True, repeats=1)
    return {setting["name"]: setting for setting in found.sizes["settings"]}


def too_small(setting):
    """0.9 of the advised size; rounding lifts it to the bound where that is at most 90."""
    return min(int(0.9 * setting["advised"]), setting["bound"] - 1)


def newton_counts(has_mesh, **limits):
    """The greatest numbers of pairs and of triangles of a frame that Newton counts."""
    newton = pytest.importorskip("newton")
    import warp as wp

    builder = newton.ModelBuilder()
    builder.rigid_gap = 0.0
    builder.default_shape_cfg.gap = 0.0
    builder.add_ground_plane()
    turns = [Rotation.from_euler("z", turn, degrees=True) for _, _, turn in PLACES]
    for (x, y, _), turn in zip(PLACES, turns, strict=True):
        builder.begin_world()
        quaternion = wp.quat(*turn.as_quat())
        hx, hy, hz = BLOCK
        place = wp.transform((x, y, 0.0), quaternion)
        builder.add_shape_box(-1, xform=place, hx=hx, hy=hy, hz=hz)
        if has_mesh:
            mesh = newton.Mesh(np.array(PIT, np.float32), np.array(PIT_FACES, np.int32).ravel())
            place = wp.transform(turn.apply(PIT_PLACE) + np.array([x, y, 0.0]), quaternion)
            builder.add_shape_mesh(-1, xform=place, mesh=mesh)
        for _ in range(BALLS):
            builder.add_shape_sphere(builder.add_body(), radius=0.12)
        for _ in range(CRATES):
            builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
        builder.end_world()
    most = np.zeros(2, int)
    with wp.ScopedDevice("cpu"):
        model = builder.finalize()
        pipeline = newton.CollisionPipeline(model, broad_phase="nxn", **limits)
        contacts, state = pipeline.contacts(), model.state()
        for local in poses_of_a_world():
            worlds = [
                np.concatenate(
                    [
                        turn.apply(local[:, :3]) + np.array([x, y, 0.0]),
                        (turn * Rotation.from_quat(local[:, 3:])).as_quat(),
                    ],
                    axis=1,
                )
                for (x, y, _), turn in zip(PLACES, turns, strict=True)
            ]
            state.body_q.assign(np.concatenate(worlds).astype(np.float32))
            pipeline.collide(state, contacts)
            found = [pipeline.broad_phase_pair_count]
            if has_mesh:
                found.append(pipeline.narrow_phase.triangle_pairs_count)
            numbers = [int(count.numpy()[0]) for count in found]
            most[: len(numbers)] = np.maximum(most[: len(numbers)], numbers)
    return most


@pytest.mark.rest
@pytest.mark.parametrize("has_mesh", [False, True], ids=["boxes", "mesh"])
def test_newton_overflows_below_the_advised_size(tmp_path, has_mesh):
    named = sizes_of(tmp_path, has_mesh)
    names = ("shape_pairs_max", "max_triangle_pairs")[: 1 + has_mesh]
    advised = {name: named[name]["advised"] for name in names}
    found = newton_counts(has_mesh, **advised)
    for column, name in enumerate(names):
        setting = named[name]
        assert setting["ours"] == setting["bound"] == found[column] > 10, name
        smaller = too_small(setting)
        less = newton_counts(has_mesh, **{**advised, name: smaller})
        assert less[column] > smaller, name


def mujoco_xml():
    bodies = '<body><freejoint/><geom type="sphere" size="0.12"/></body>' * BALLS
    size = " ".join(str(half) for half in BLOCK)
    static = f'<geom type="plane" size="0 0 1"/><geom type="box" size="{size}"/>'
    return f"<mujoco><worldbody>{static}{bodies}</worldbody></mujoco>"


def warp_count(**limits):
    """The greatest number of MuJoCo Warp's pairs after the broad phase, or contacts, of a frame."""
    mujoco_warp = pytest.importorskip("mujoco_warp")
    import mujoco
    import warp as wp

    model = mujoco.MjModel.from_xml_string(mujoco_xml())
    with wp.ScopedDevice("cpu"):
        on_device = mujoco_warp.put_model(model)
        data = mujoco_warp.make_data(model, nworld=len(PLACES), njmax=4000, **limits)
        most = 0
        for local in poses_of_a_world(crates=0):
            qpos = local[:, [0, 1, 2, 6, 3, 4, 5]].reshape(-1)
            data.qpos.assign(np.tile(qpos, (len(PLACES), 1)).astype(np.float32))
            mujoco_warp.fwd_position(on_device, data)
            found = [int(count.numpy().max()) for count in (data.ncollision, data.nacon)]
            most = max(most, *found)
    return most


@pytest.mark.parametrize("as_mjcf", [False, True], ids=["environments", "worlds of MJCF"])
def test_mujoco_warp_overflows_below_the_advised_size(tmp_path, as_mjcf):
    """The environments are worlds of one model in MuJoCo Warp, whose positions do not differ. Of
    balls every contact is one of both engines."""
    if as_mjcf:
        (tmp_path / "one.xml").write_text(mujoco_xml())
        qpos = poses_of_a_world(crates=0)[:, :, [0, 1, 2, 6, 3, 4, 5]].reshape(FRAMES, 1, -1)
        np.savez(tmp_path / "one.npz", time=np.arange(FRAMES) * 0.1, qpos=qpos)
        files = tmp_path / "one.xml", tmp_path / "one.npz"
        found = collidecli.profile(*files, worlds=len(PLACES), sizes=True, repeats=1)
        named = {setting["name"]: setting for setting in found.sizes["settings"]}
    else:
        named = sizes_of(tmp_path, has_mesh=False, crates=0)
    setting = named["naconmax"]
    count = warp_count(naconmax=setting["advised"])
    assert setting["ours"] == setting["bound"] == count > 3 * len(PLACES)
    smaller = too_small(setting)
    assert warp_count(naconmax=smaller) > smaller
