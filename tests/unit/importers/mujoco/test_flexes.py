"""Flexes of MJCF scenes as particles: positions, elements and contacts as MuJoCo has them."""

from __future__ import annotations

import warnings

import h5py
import mujoco
import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.runtime.workspace import Workspace
from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import collected_messages
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.storage.trajectories.motion import open_trajectory
from tests.support.engine_runs import pipeline_of

SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
<geom name="ball" type="sphere" size="0.3" pos="0 0 0.2"/>
<flexcomp name="sheet" type="grid" count="5 5 1" spacing="0.1 0.1 0.1" pos="0 0 0.51" dim="2" radius="0.01" mass="1">
<contact selfcollide="none"/><pin id="0"/></flexcomp>
<flexcomp name="cube" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" pos="2 0 0.105" dim="3" radius="0.01" mass="1">
<contact selfcollide="none"/></flexcomp>
<body name="arm" pos="0 3 1"><freejoint/><geom size="0.2"/>
<flexcomp name="rope" type="grid" count="4 1 1" spacing="0.1 0.1 0.1" dim="1" radius="0.02" mass="1">
<contact selfcollide="none"/><pin id="0"/></flexcomp></body>
</worldbody></mujoco>"""


def loaded(tmp_path, text: str = SCENE):
    path = tmp_path / "scene.xml"
    path.write_text(text)
    builder = ModelBuilder()
    found = add_mjcf(builder, path)
    return found, builder.finalize()


def shaken(mj_model: mujoco.MjModel, frames: int) -> np.ndarray:
    """float64[frames, nq]: the first configuration, displaced at random."""
    rng = np.random.default_rng(3)
    qpos = np.tile(mj_model.qpos0, (frames, 1)) + rng.normal(size=(frames, mj_model.nq)) * 0.03
    return qpos


def positions_of(found, model, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses float64[F, 1, B, 7] and positions of the particles float64[F, 1, P, 3]."""
    poses = found.kinematics.poses(qpos)[:, None]
    return poses, model.with_attached_particles(poses, model.particles.position[None, None])


def test_vertices_move_as_in_mujoco(tmp_path):
    found, model = loaded(tmp_path)
    assert model.particles.path == ("sheet", "cube", "rope")
    assert model.particles.kind == ("cloth", "soft", "particles")
    np.testing.assert_allclose(model.particles.radius, [0.01] * (25 + 27) + [0.02] * 4)
    assert len(model.particles.triangle) == 32 + 48
    qpos = shaken(found.mj_model, 5)
    for joint in np.flatnonzero(found.mj_model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        first = found.mj_model.jnt_qposadr[joint] + 3
        qpos[:, first : first + 4] /= np.linalg.norm(qpos[:, first : first + 4], axis=1)[:, None]
    _, positions = positions_of(found, model, qpos)
    data = mujoco.MjData(found.mj_model)
    for frame in range(len(qpos)):
        data.qpos[:] = qpos[frame]
        mujoco.mj_forward(found.mj_model, data)
        np.testing.assert_allclose(positions[frame, 0], data.flexvert_xpos, atol=1e-12)


def test_contacts_with_a_plane_are_those_of_mujoco(tmp_path):
    """MuJoCo has a contact of each vertex with a plane; with other geoms it has those of elements, which differ."""
    found, model = loaded(tmp_path)
    qpos = np.tile(found.mj_model.qpos0, (4, 1))
    qpos[:, : -7 - 9] += np.random.default_rng(8).normal(size=(4, found.mj_model.nq - 16)) * 0.05
    poses, positions = positions_of(found, model, qpos)
    pipeline = pipeline_of(model, poses, ContactOptions(soft_gap=0.0))
    block = pipeline.collide(PoseBatch(0, 4, 0, poses, positions), Workspace(pipeline.device_model.device, 1 << 32))[0]
    rows = block.groups["soft_contacts"]
    cell = np.repeat(np.arange(4), rows.cell_counts)
    floor = model.shapes.path.index("floor")
    data, compared = mujoco.MjData(found.mj_model), 0
    for frame in range(4):
        data.qpos[:] = qpos[frame]
        mujoco.mj_forward(found.mj_model, data)
        theirs = {}
        for contact in data.contact[: data.ncon]:
            if contact.geom[0] == floor and contact.flex[1] >= 0 and contact.dist < 0.0:
                theirs[int(found.mj_model.flex_vertadr[contact.flex[1]] + contact.vert[1])] = contact.dist
        held = (cell == frame) & (rows.columns["shape"] == floor)
        ours = dict(
            zip(rows.columns["indices"][held, 0].tolist(), rows.columns["distance"][held].tolist(), strict=True)
        )
        assert ours.keys() == theirs.keys()
        np.testing.assert_allclose([ours[key] for key in theirs], list(theirs.values()), atol=1e-7)
        compared += len(ours)
    assert compared > 20


def test_a_pinned_vertex_does_not_touch_the_shapes_of_its_body(tmp_path):
    found, model = loaded(tmp_path)
    poses, positions = positions_of(found, model, found.mj_model.qpos0[None])
    pipeline = pipeline_of(model, poses)
    block = pipeline.collide(PoseBatch(0, 1, 0, poses, positions), Workspace(pipeline.device_model.device, 1 << 32))[0]
    columns = block.groups["soft_contacts"].columns
    arm = int(np.flatnonzero(model.shapes.body == model.bodies.path.index("arm"))[0])
    assert model.particles.body[52] == model.bodies.path.index("arm")
    assert columns["indices"][columns["shape"] == arm, 0].tolist() == [53, 54, 55]


def test_a_flex_that_does_not_collide_is_left_out(tmp_path):
    text = SCENE.replace('selfcollide="none"', 'selfcollide="none" contype="0" conaffinity="0"')
    assert len(loaded(tmp_path, text)[1].particles) == 0


def test_an_interpolated_flex_is_refused_by_name(tmp_path):
    text = """<mujoco><worldbody><flexcomp name="jelly" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" radius="0.01"
    dim="3" mass="1" dof="trilinear"/></worldbody></mujoco>"""
    with pytest.raises(InputError, match="flex 'jelly' are interpolated"):
        loaded(tmp_path, text)


def test_a_recording_of_the_bodies_moves_all_particles_of_flexes(tmp_path):
    _, model = loaded(tmp_path)
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array([1, 1], np.int32)
        file.attrs["creator"] = "test"
        file["time"] = [0.0]
        file["body_name"] = list(model.bodies.path)
        file["body_q"] = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (1, 1, len(model.bodies.path), 1))
    motion = open_trajectory(path, model)
    assert motion.warnings == ()
    motion.close()


def test_a_warning_of_mujoco_has_one_line():
    with collected_messages() as messages:
        warnings.warn("flex 'jelly' has no forces\nElement name 'jelly', id 1", UserWarning, stacklevel=1)
    assert messages == ["flex 'jelly' has no forces; Element name 'jelly', id 1"]
