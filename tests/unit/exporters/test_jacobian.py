"""Jacobian of distances over joint velocities against MuJoCo's mj_jac, and against central differences over joints."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import scipy.sparse

import collidecli
from collidecli.commands.export import ExportRequest, export
from collidecli.commands.run import RunRequest, run
from collidecli.errors import InputError
from collidecli.scene.options import ContactOptions
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.trajectories.writer import TrajectoryWriter

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="base" pos="0 0 .3"><freejoint name="free"/><geom name="base" type="capsule" size=".1 .2"/>
      <body name="arm" pos=".3 0 0">
        <joint name="yaw" type="hinge" axis="0 0 1"/><joint name="pitch" type="hinge" axis="0 1 0" pos="-.1 0 0"/>
        <geom name="arm" type="box" size=".15 .05 .04"/>
        <body name="wrist" pos=".25 0 0"><joint name="ball" type="ball"/>
          <geom name="wrist" type="ellipsoid" size=".08 .05 .06"/></body>
      </body>
    </body>
    <body name="cart" pos="1 .2 .2"><joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="cart" type="sphere" size=".15"/></body>
    <body name="hand" mocap="true" pos="-.5 0 .3"><geom name="hand" type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>
"""
FRAMES, STEP = 12, 1e-4


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The scene, its model, random joint positions [F, 1, nq], and its contact set with a gap that has every pair."""
    folder = tmp_path_factory.mktemp("jacobian")
    scene, motion, output = folder / "scene.xml", folder / "motion.h5", folder / "out.h5"
    scene.write_text(SCENE)
    model = mujoco.MjModel.from_xml_string(SCENE)
    rng, qpos = np.random.default_rng(0), np.tile(model.qpos0, (FRAMES, 1))
    for frame in range(FRAMES):
        mujoco.mj_integratePos(model, qpos[frame], rng.uniform(-0.6, 0.6, model.nv), 1.0)
    with TrajectoryWriter(motion, coordinate_count=model.nq) as writer:
        writer.append(np.arange(FRAMES) * 0.1, np.arange(FRAMES), joint_q=qpos[:, None])
    contact = ContactOptions(gap=2.0)
    run(RunRequest(scenes=(str(scene),), trajectory=str(motion), output=str(output), contact=contact))
    return folder, model, qpos


def matrix_of(folder, **options):
    output = folder / "jacobian.npz"
    result = export(
        ExportRequest(str(folder / "out.h5"), "jacobian", str(output), str(folder / "scene.xml"), force=True, **options)
    )
    assert result.left_out == ()
    return scipy.sparse.load_npz(output).toarray(), np.load(output)


def test_rows_are_those_of_mj_jac(recorded):
    folder, model, qpos = recorded
    matrix, arrays = matrix_of(folder, trajectory=str(folder / "motion.h5"))
    assert arrays["velocity_name"].tolist()[5:9] == ["free/rz", "yaw", "pitch", "ball/rx"]
    data = mujoco.MjData(model)
    jacobians = [np.zeros((3, model.nv)) for _ in range(2)]
    with ContactSet.open(str(folder / "out.h5")) as contacts:
        assert matrix.shape == (contacts.contact_count, model.nv)
        (block,) = contacts.blocks()
        body = [model.geom(path).bodyid[0] for path in contacts.shapes.path]
    for row, frame in enumerate(np.repeat(np.arange(FRAMES), block.cell_counts)):
        data.qpos[:] = qpos[frame]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for side, jacobian in enumerate(jacobians):
            shape, point = block.columns[f"shape{side}"][row], block.columns[f"point{side}"][row]
            mujoco.mj_jac(model, data, jacobian, None, point.astype(float), body[shape])
        expected = block.normal[row].astype(float) @ (jacobians[1] - jacobians[0])
        assert matrix[row] == pytest.approx(expected, abs=1e-12)
    assert len(np.unique(block.columns["shape0"])) > 3


def test_rows_are_derivatives_of_the_least_distance(recorded):
    """Central differences over each velocity; rows of pairs with one contact, which is then the nearest."""
    folder, model, qpos = recorded
    matrix, _ = matrix_of(folder)  # the recording is found by its hash
    builder = collidecli.ModelBuilder()
    scene = builder.add_mjcf(folder / "scene.xml")
    finished = builder.finalize()

    def distances(positions: np.ndarray) -> dict[tuple[int, int, int], float]:
        body_q = scene.kinematics.poses(positions)[:, None]
        contacts = collidecli.collide(finished, body_q, gap=2.0, device="cpu")
        cell = np.repeat(np.arange(len(positions)), np.diff(contacts.cell_start))
        apart = (contacts.point1 - contacts.point0).astype(float)
        distance = np.sign(contacts.distance) * np.linalg.norm(apart, axis=1)
        keys = list(zip(cell.tolist(), contacts.shape0.tolist(), contacts.shape1.tolist(), strict=True))
        return {key: d for key, d in zip(keys, distance, strict=True) if keys.count(key) == 1}

    rows = {key: row for row, key in enumerate(_keys(folder))}
    compared = 0
    for velocity in range(model.nv):
        ends = []
        for sign in (-1.0, 1.0):
            moved, change = qpos.copy(), np.zeros(model.nv)
            change[velocity] = sign * STEP
            for each in moved:
                mujoco.mj_integratePos(model, each, change, 1.0)
            ends.append(distances(moved))
        here = distances(qpos)
        for key in here.keys() & ends[0].keys() & ends[1].keys():
            if abs(ends[0][key] + ends[1][key] - 2.0 * here[key]) < 0.01 * STEP:
                slope = (ends[1][key] - ends[0][key]) / (2.0 * STEP)
                assert matrix[rows[key], velocity] == pytest.approx(slope, abs=2e-3), (key, velocity)
                compared += 1
    assert compared > 500


def _keys(folder) -> list[tuple[int, int, int]]:
    with ContactSet.open(str(folder / "out.h5")) as contacts:
        (block,) = contacts.blocks()
        pairs = block.columns["shape0"].tolist(), block.columns["shape1"].tolist()
        return list(zip(np.repeat(np.arange(FRAMES), block.cell_counts).tolist(), *pairs, strict=True))


def test_a_selection_has_the_rows_of_its_contacts(recorded):
    folder, _, _ = recorded
    whole, arrays = matrix_of(folder)
    part, selected = matrix_of(folder, frames="3:9:2", include=("arm",))
    frame = np.repeat(np.arange(FRAMES), np.diff(arrays["cell_start"]))
    with ContactSet.open(str(folder / "out.h5")) as contacts:
        (block,) = contacts.blocks()
        arm = contacts.shapes.path.index("arm")
    kept = np.isin(frame, (3, 5, 7)) & ((block.columns["shape0"] == arm) | (block.columns["shape1"] == arm))
    assert 0 < len(part) < len(whole)
    assert (part == whole[kept]).all()
    assert (selected["distance"] == block.distance[kept]).all()


def test_a_scene_at_rest_has_its_initial_joint_positions(recorded, tmp_path):
    folder, model, _ = recorded
    output, target = str(tmp_path / "rest.h5"), tmp_path / "rest.npz"
    run(RunRequest(scenes=(str(folder / "scene.xml"),), output=output, contact=ContactOptions(gap=2.0)))
    export(ExportRequest(output, "jacobian", str(target), str(folder / "scene.xml")))
    matrix = scipy.sparse.load_npz(target).toarray()
    with ContactSet.open(output) as contacts:
        (block,) = contacts.blocks()
        path = contacts.shapes.path
    # The cart is a sphere on a rail along x: its distance from the floor does not change, from the base by the normal.
    rail = list(np.load(target)["velocity_name"]).index("rail")
    for row in range(len(matrix)):
        names = [path[block.columns[f"shape{side}"][row]] for side in (0, 1)]
        sign = {"cart": (-1.0, 1.0)[names.index("cart")]} if "cart" in names else {"cart": 0.0}
        assert matrix[row, rail] == pytest.approx(sign["cart"] * block.normal[row, 0], abs=1e-7)
    assert matrix.shape == (len(block.distance), model.nv)


def test_recordings_of_body_poses_are_refused(recorded):
    folder, _, _ = recorded
    poses = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (2, 1, 5, 1))
    with TrajectoryWriter(folder / "poses.h5", body_names=("base", "arm", "wrist", "cart", "hand")) as writer:
        writer.append(np.arange(2.0), np.arange(2), body_q=poses)
    output = folder / "poses.contacts.h5"
    scene = str(folder / "scene.xml")
    run(RunRequest(scenes=(scene,), trajectory=str(folder / "poses.h5"), output=str(output)))
    target = folder / "none.npz"
    with pytest.raises(InputError, match="the recording has body poses") as error:
        export(ExportRequest(str(output), "jacobian", str(target), scene, str(folder / "poses.h5")))
    assert "collide record --joint" in error.value.fix
    with pytest.raises(InputError, match="hashes differ"):
        export(ExportRequest(str(output), "jacobian", str(target), scene, str(folder / "motion.h5")))
    assert not target.exists()
