"""Rays and contact maps of the humanoid's motion, against MuJoCo and closed forms."""

from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.motions.clearance import shape_poses
from collidecli.scene.shape_types import ShapeType
from tests.cli.conftest import CommandLine

SAMPLE = Path(__file__).parents[2] / "samples" / "02_humanoid"
SCENE = SAMPLE / "humanoid.xml"
MOTION = SAMPLE / "motion.h5"
EVERY = 10


@pytest.fixture
def posed():
    """The model, and world poses of its shapes [frames, shapes, 7]."""
    recording = collidecli.open_recording(str(MOTION))
    model, motion = recording.with_scene(str(SCENE))
    frames = len(motion.time)
    return model, shape_poses(model, motion.read(range(frames)))[::EVERY, 0]


def test_rays_of_a_motion_are_those_of_mujoco(posed, tmp_path):
    model, poses = posed
    rng = np.random.default_rng(1)
    start = rng.uniform([-1.5, -1.5, 0.05], [1.5, 1.5, 2.5], (200, 3))
    along = rng.normal(size=(200, 3))
    along[:100] = rng.uniform([-0.5, -0.5, 0.2], [0.5, 0.5, 1.5], (100, 3)) - start[:100]
    np.save(tmp_path / "rays.npy", np.column_stack([start, along]))
    out = str(tmp_path / "rays.h5")
    CommandLine().ok(
        f"probe {SCENE} -t {MOTION} --rays {tmp_path / 'rays.npy'} --frames ::{EVERY} -o {out}"
    )
    with h5py.File(out) as file:
        distance, row = file["distance"][:, 0], file["shape"][:, 0]
        paths = file["shape_path"].asstr()[()]
    compiled = mujoco.MjModel.from_xml_path(str(SCENE))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    geoms = [compiled.geom(path.rsplit("/", 1)[-1]).id for path in model.shapes.path]
    others = sorted(set(range(compiled.ngeom)) - set(geoms))
    assert not compiled.geom_contype[others].any()  # drawn alone
    data.geom_xpos[others] = 1e6
    # For rays MuJoCo's planes end at the size of their picture.
    compiled.geom_size[compiled.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = 0.0
    hits = 0
    found = np.zeros(1, np.int32)
    for frame, placed in enumerate(poses):
        data.geom_xpos[geoms] = placed[:, :3]
        data.geom_xmat[geoms] = Rotation.from_quat(placed[:, 3:]).as_matrix().reshape(-1, 9)
        for k, (point, direction) in enumerate(zip(start, along, strict=True)):
            length = np.linalg.norm(direction)
            truth = mujoco.mj_ray(compiled, data, point, direction, None, 1, -1, found) * length
            assert (truth >= 0.0) == (row[frame, k] >= 0)
            if truth >= 0.0:
                hits += 1
                assert abs(distance[frame, k] - truth) < 1e-9
                assert paths[row[frame, k]] == model.shapes.path[geoms.index(int(found[0]))]
    assert hits > 0.5 * row.size


def test_a_map_of_a_motion_is_that_of_closed_forms(posed, tmp_path):
    model, poses = posed
    out = str(tmp_path / "map.h5")
    CommandLine().ok(
        f"probe {SCENE} -t {MOTION} --vertices-of foot_*,hand_* --partners floor,kerb,step_*,ball"
        f" --spacing 3cm --frames ::{EVERY} -o {out}"
    )
    with h5py.File(out) as file:
        found = {name: file[name][()] for name in file}
    kinds = {ShapeType.PLANE, ShapeType.BOX, ShapeType.CAPSULE, ShapeType.SPHERE}
    partners = [k for k, path in enumerate(model.shapes.path) if path in ("floor", "ball")]
    partners += [k for k, path in enumerate(model.shapes.path) if path in ("kerb",)]
    partners += [k for k, path in enumerate(model.shapes.path) if path.startswith("step_")]
    assert {ShapeType(model.shapes.type[k]) for k in partners} <= kinds
    owner = found["point_shape"]
    # point is in the frame of the body; that of its shape has it, and the shape's pose is known
    back = model.shapes.pose[owner]
    local = Rotation.from_quat(back[:, 3:]).inv().apply(found["point"] - back[:, :3])
    for frame, placed in enumerate(poses):
        own = placed[owner]
        world = own[:, :3] + Rotation.from_quat(own[:, 3:]).apply(local)
        each = np.stack([signed(model, k, placed[k], world) for k in partners])
        assert np.abs(found["distance"][frame, 0] - each.min(axis=0)).max() < 1e-6
    assert (found["distance"] < 0.0).any()


def signed(model, row: int, pose: np.ndarray, world: np.ndarray) -> np.ndarray:
    """float64[n]: signed distances of points from a plane, sphere, capsule or box."""
    p = Rotation.from_quat(pose[3:]).inv().apply(world - pose[:3])
    size = model.shapes.size[row]
    kind = model.shapes.type[row]
    if kind == ShapeType.PLANE:
        return p[:, 2]
    if kind == ShapeType.BOX:
        q = np.abs(p) - size[:3]
        return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)
    if kind == ShapeType.CAPSULE:
        p = p - np.outer(np.clip(p[:, 2], -size[1], size[1]), [0.0, 0.0, 1.0])
    return np.linalg.norm(p, axis=1) - size[0]
