"""Advised sizes of buffers against the real counts and overflows of Newton and MuJoCo Warp."""

import mujoco
import numpy as np
import pytest

import collidecli

WORLDS = 2
STEPS = 200


def too_small(setting):
    """0.9 of the advised size; rounding lifts it to the bound where that is at most 90."""
    return min(int(0.9 * setting["advised"]), setting["bound"] - 1)


def pile_xml(kinds, count=18):
    """Free bodies of these kinds of geoms that fall on a plane."""
    rng = np.random.default_rng(count)
    sizes = {"sphere": "0.1", "box": "0.09 0.08 0.1", "capsule": "0.06 0.08"}
    bodies = []
    for k in range(count):
        x, y = 0.21 * (k % 3) + rng.uniform(-0.02, 0.02), 0.21 * (k // 3 % 3)
        kind = kinds[k % len(kinds)]
        bodies.append(
            f'<body name="b{k}" pos="{x} {y} {0.15 + 0.25 * (k // 9)}"><freejoint/>'
            f'<geom name="g{k}" type="{kind}" size="{sizes[kind]}"/></body>'
        )
    floor = '<geom name="floor" type="plane" size="0 0 1"/>'
    return f"<mujoco><worldbody>{floor}{''.join(bodies)}</worldbody></mujoco>"


@pytest.fixture(scope="module", params=[("sphere",), ("sphere", "box", "capsule")], ids=len)
def pile(request, tmp_path_factory):
    """The model, qpos[frames, worlds, nq], and the sizes of the profile."""
    folder = tmp_path_factory.mktemp("pile")
    (folder / "pile.xml").write_text(pile_xml(request.param))
    model = mujoco.MjModel.from_xml_path(str(folder / "pile.xml"))
    kept = []
    for world in range(WORLDS):
        data = mujoco.MjData(model)
        data.qvel[:] = 0.2 * np.random.default_rng(world).standard_normal(model.nv)
        states = []
        for step in range(STEPS):
            mujoco.mj_step(model, data)
            if step % 10 == 0:
                # The engines compute in float32.
                states.append(data.qpos.astype(np.float32).astype(float))
        kept.append(states)
    qpos = np.array(kept).transpose(1, 0, 2)
    np.savez(folder / "pile.npz", time=np.arange(len(qpos)) * 0.1, qpos=qpos)
    result = collidecli.profile(folder / "pile.xml", folder / "pile.npz", sizes=True, repeats=1)
    return model, qpos, result.sizes, request.param


def settings(sizes):
    return {setting["name"]: setting for setting in sizes["settings"]}


def newton_counts(model, qpos, **limits):
    """Greatest numbers of pairs and of contacts that Newton counts, which may exceed its limits."""
    newton = pytest.importorskip("newton")
    import warp as wp

    one = newton.ModelBuilder()
    all_worlds = newton.ModelBuilder()
    for builder in (one, all_worlds):
        builder.rigid_gap = 0.0
        builder.default_shape_cfg.gap = 0.0
    for geom in range(1, model.ngeom):
        body = one.add_body()
        x, y, z = model.geom_size[geom]
        kind = mujoco.mjtGeom(model.geom_type[geom])
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            one.add_shape_sphere(body, radius=x)
        elif kind == mujoco.mjtGeom.mjGEOM_BOX:
            one.add_shape_box(body, hx=x, hy=y, hz=z)
        else:
            one.add_shape_capsule(body, radius=x, half_height=y)
    all_worlds.add_ground_plane()
    for _ in range(WORLDS):
        all_worlds.add_world(one)
    with wp.ScopedDevice("cpu"):
        built = all_worlds.finalize()
        pipeline = newton.CollisionPipeline(built, broad_phase="nxn", **limits)
        contacts, state = pipeline.contacts(), built.state()
        most = np.zeros(2, int)
        for frame in qpos:
            pose = frame.reshape(-1, 7)
            state.body_q.assign(pose[:, [0, 1, 2, 4, 5, 6, 3]].astype(np.float32))
            pipeline.collide(state, contacts)
            found = (pipeline.broad_phase_pair_count, contacts.rigid_contact_count)
            most = np.maximum(most, [int(count.numpy()[0]) for count in found])
    return most


@pytest.mark.rest
def test_newton_overflows_below_the_advised_size(pile):
    model, qpos, sizes, kinds = pile
    named = settings(sizes)
    pairs, contacts = (named[name] for name in ("shape_pairs_max", "rigid_contact_max"))
    advised = {setting["name"]: setting["advised"] for setting in (pairs, contacts)}
    found = newton_counts(model, qpos, **advised)
    assert found[0] == pairs["ours"]
    assert contacts["ours"] * 0.9 < found[1] <= contacts["bound"]
    assert found[0] <= advised["shape_pairs_max"]
    assert found[1] <= advised["rigid_contact_max"]
    for column, setting in enumerate((pairs, contacts)):
        if setting["ours"] < setting["bound"]:
            continue
        smaller = too_small(setting)
        less = newton_counts(model, qpos, **{**advised, setting["name"]: smaller})
        assert less[column] > smaller, (kinds, setting)


def warp_counts(model, qpos, **limits):
    """Greatest counts of MuJoCo Warp by limit: pairs, contacts of all worlds, rows of a world."""
    mujoco_warp = pytest.importorskip("mujoco_warp")
    import warp as wp

    with wp.ScopedDevice("cpu"):
        on_device = mujoco_warp.put_model(model)
        data = mujoco_warp.make_data(model, nworld=WORLDS, **limits)
        most = np.zeros(3, int)
        for frame in qpos:
            data.qpos.assign(frame.astype(np.float32))
            mujoco_warp.fwd_position(on_device, data)
            found = (data.ncollision, data.nacon, data.nefc)
            most = np.maximum(most, [int(count.numpy().max()) for count in found])
    return most


def test_mujoco_warp_overflows_below_the_advised_size(pile):
    model, qpos, sizes, _ = pile
    named = settings(sizes)
    advised = {name: named[name]["advised"] for name in ("naconmax", "njmax")}
    found = warp_counts(model, qpos, **advised)
    assert max(found[:2]) <= named["naconmax"]["bound"]
    assert found[2] <= named["njmax"]["bound"]
    for name, count in (("naconmax", max(found[:2])), ("njmax", found[2])):
        assert named[name]["ours"] * 0.95 <= count <= advised[name]
        if named[name]["ours"] == named[name]["bound"]:
            smaller = too_small(named[name])
            less = warp_counts(model, qpos, **{**advised, name: smaller})
            assert (less[2] if name == "njmax" else max(less[:2])) > smaller
