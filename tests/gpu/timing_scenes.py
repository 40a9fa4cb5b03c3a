"""Scenes that a first run on a GPU is timed with, and their forms for Newton and MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType
from tests.support.device_scenes import Scene
from tests.support.engine_runs import ROUND_AND_FLAT, add_shapes
from tests.support.fields import BLOB
from tests.support.poses import random_quaternions

LINKS = 16
ROBOT_TYPES = (ShapeType.CAPSULE, ShapeType.BOX, ShapeType.SPHERE)
ROBOT_SIZES = {ShapeType.CAPSULE: (0.06, 0.12), ShapeType.BOX: (0.08, 0.06, 0.1), ShapeType.SPHERE: (0.1,)}
NAMES = {ShapeType.CAPSULE: "capsule", ShapeType.BOX: "box", ShapeType.SPHERE: "sphere"}
SHAPE_SPACING = 0.35
"""Distance of shapes of 0.1 to 0.6 m in a pile [m]: each touches a few others."""


@dataclass(frozen=True)
class Case:
    """A scene to time. frames: of its motion. passes over them are timed."""

    name: str
    scene: Scene


def robot_poses(frames: int, worlds: int) -> np.ndarray:
    """float64[frames, worlds, LINKS, 7]: links around a circle above the ground, that move by centimetres."""
    rng = np.random.default_rng(5)
    angle = 2.0 * np.pi * np.arange(LINKS) / LINKS
    center = np.stack([0.4 * np.cos(angle), 0.4 * np.sin(angle), np.where(np.arange(LINKS) % 4 == 0, 0.09, 0.25)], 1)
    poses = np.empty((frames, worlds, LINKS, 7))
    poses[..., :3] = center + rng.normal(size=(frames, worlds, LINKS, 3)) * 0.02
    poses[..., 3:] = random_quaternions(rng, frames * worlds * LINKS).reshape(frames, worlds, LINKS, 4)
    return poses


def robot(frames: int, worlds: int) -> Case:
    """LINKS capsules, boxes and spheres on a plane in each world."""
    builder = ModelBuilder()
    builder.add_ground_plane(0.0)
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        builder.add_shape(builder.add_body(), shape_type, ROBOT_SIZES[shape_type])
    scene = Scene(builder.finalize(world_count=worlds), robot_poses(frames, worlds), ContactOptions())
    return Case(f"robot of {LINKS} shapes, {worlds} worlds", scene)


def pile(shapes: int, frames: int) -> Case:
    """Convex shapes of all types, as dense as in a pile."""
    builder = ModelBuilder()
    add_shapes(builder, np.random.default_rng(0), shapes, types=ROUND_AND_FLAT)
    return Case(f"pile of {shapes}", Scene(builder.finalize(), _dense_poses(shapes, frames), ContactOptions()))


def meshes(shapes: int, frames: int) -> Case:
    """Closed meshes of one form, as dense as in a pile."""
    builder = ModelBuilder()
    for _ in range(shapes):
        builder.add_shape_mesh(builder.add_body(), *BLOB)
    return Case(f"{shapes} meshes", Scene(builder.finalize(), _dense_poses(shapes, frames), ContactOptions()))


def _dense_poses(shapes: int, frames: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    side = SHAPE_SPACING * shapes ** (1.0 / 3.0)
    position = rng.uniform(-side / 2, side / 2, (shapes, 3))
    poses = np.empty((frames, 1, shapes, 7))
    poses[..., :3] = position + rng.normal(size=(frames, 1, shapes, 3)) * 0.01
    poses[..., 3:] = random_quaternions(rng, frames * shapes).reshape(frames, 1, shapes, 4)
    return poses


def cases(small: bool) -> list[Case]:
    """Scenes of the timings; in a rehearsal few frames."""
    if small:
        return [robot(8, 1), robot(2, 16), pile(50, 4), meshes(4, 2)]
    return [robot(50_000, 1), robot(64, 1024), robot(8, 8192), pile(1000, 200), meshes(20, 50)]


def newton_robot(worlds: int, device: Any) -> Any:
    """Newton's model of `robot`, without gaps."""
    import newton

    one, many = newton.ModelBuilder(), newton.ModelBuilder()
    for each in (one, many):
        each.default_shape_cfg.gap = 0.0
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        body, size = one.add_body(), ROBOT_SIZES[shape_type]
        if shape_type == ShapeType.BOX:
            one.add_shape_box(body, hx=size[0], hy=size[1], hz=size[2])
        elif shape_type == ShapeType.CAPSULE:
            one.add_shape_capsule(body, radius=size[0], half_height=size[1])
        else:
            one.add_shape_sphere(body, radius=size[0])
    many.replicate(one, worlds)
    many.add_ground_plane()
    model = many.finalize(device=device)
    model.shape_gap.zero_()
    return model


def robot_mjcf() -> str:
    """MJCF of `robot` with its first frame as a keyframe."""
    poses = robot_poses(1, 1)[0, 0]
    bodies = []
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        size = " ".join(map(str, ROBOT_SIZES[shape_type]))
        bodies.append(f'<body><freejoint/><geom type="{NAMES[shape_type]}" size="{size}"/></body>')
    order = [0, 1, 2, 6, 3, 4, 5]  # MuJoCo's quaternions begin with w
    qpos = " ".join(f"{value:.6g}" for value in poses[:, order].ravel())
    return (
        '<mujoco><worldbody><geom type="plane" size="5 5 1"/>'
        + "".join(bodies)
        + f'</worldbody><keyframe><key qpos="{qpos}"/></keyframe></mujoco>'
    )
