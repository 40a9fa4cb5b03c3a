"""Hydroelastic surfaces of small scenes, and rotations of poses."""

from dataclasses import dataclass

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline_build import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_config import ShapeConfig

RIGID = np.inf


def soft(stiffness: float, **values) -> ShapeConfig:
    """Configuration of a hydroelastic shape."""
    return ShapeConfig(is_hydroelastic=True, k_hydro=stiffness, **values)


@dataclass(frozen=True)
class Surface:
    """The only patch of a block, and all columns of its faces."""

    area: float
    force: np.ndarray
    center: np.ndarray
    torque: np.ndarray
    depth: float
    faces: dict[str, np.ndarray]


def collided(
    builder: ModelBuilder, body_q: np.ndarray | None = None, static_pairs: bool = False, **options
) -> ContactBlock:
    """Contacts of a scene in its resting pose, or in poses [frames, worlds, bodies, 7]."""
    model = builder.finalize(static_pairs=static_pairs)
    poses = model.resting_poses()[None] if body_q is None else body_q
    device = find_device("cpu")
    contact = ContactOptions(**{"hydro_surface": True, **options}).checked()
    pipeline, _ = build_pipeline(
        model, contact, EngineOptions(), device, lambda: poses, np.dtype(np.float64)
    )
    batch = PoseBatch(0, len(poses) * model.world_count, 0, np.ascontiguousarray(poses))
    return pipeline.collide(batch, Workspace(device, 4 << 30))[0]


def surface(builder: ModelBuilder, body_q: np.ndarray | None = None, **options) -> Surface:
    """The surface of a scene with one hydroelastic pair that overlaps."""
    groups = collided(builder, body_q, **options).groups
    patch = groups["hydro_patches"].columns
    assert len(patch["area"]) == 1
    found = {name: patch[name][0] for name in ("area", "force", "center", "torque", "depth")}
    return Surface(**found, faces=groups["hydro_faces"].columns if "hydro_faces" in groups else {})


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A unit quaternion, xyzw."""
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors [..., 3] rotated by a unit quaternion, xyzw."""
    return v + 2.0 * np.cross(q[:3], np.cross(q[:3], v) + q[3] * v)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Product of two quaternions, xyzw."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.array([*vector, p[3] * q[3] - p[:3] @ q[:3]])


def moved(pose: np.ndarray, q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A pose x y z qx qy qz qw after a rotation and a translation of the world."""
    pose = np.asarray(pose, float)
    return np.array([*(rotated(q, pose[:3]) + t), *product(q, pose[3:])])
