"""Two bodies in one step, and their distance at many times of it by an independent interpolation."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation, Slerp

from collidecli import ModelBuilder
from collidecli.scene.model import Model

BODIES = 12
REST = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def step_of(*bodies) -> np.ndarray:
    """float64[2, 1, bodies, 7] of pairs of poses, at the begin and the end; None rests at the origin."""
    pairs = [(REST, REST) if pair is None else pair for pair in bodies]
    return np.array(pairs, np.float64).transpose(1, 0, 2)[:, None]


def turned(axis, angle: float, position=(0.0, 0.0, 0.0)) -> np.ndarray:
    """float64[7]: pose with a rotation about an axis [rad]."""
    rotation = Rotation.from_rotvec(np.asarray(axis, np.float64) * angle)
    return np.concatenate([position, rotation.as_quat()])


def sampled_poses(model: Model, poses: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[samples, shapes, 7]: poses of shapes, of which body k has the k-th, in a step float64[2, 1, bodies, 7].

    By SciPy's slerp.
    """
    begin, end = poses[:, 0]
    found = np.empty((len(time), len(begin), 7))
    for body, local in enumerate(model.shapes.pose):
        slerp = Slerp([0.0, 1.0], Rotation.from_quat(np.stack([begin[body, 3:], end[body, 3:]])))(time)
        found[:, body, :3] = (
            begin[body, :3] + time[:, None] * (end[body, :3] - begin[body, :3]) + slerp.apply(local[:3].copy())
        )
        found[:, body, 3:] = (slerp * Rotation.from_quat(local[3:].copy())).as_quat()
    return found


def two_bodies() -> tuple[ModelBuilder, int, int]:
    """A builder with two bodies."""
    builder = ModelBuilder()
    return builder, builder.add_body(key="one"), builder.add_body(key="other")


ADDERS = (
    lambda builder, body: builder.add_shape_box(body, hx=0.3, hy=0.05, hz=0.2),
    lambda builder, body: builder.add_shape_capsule(body, radius=0.05, half_height=0.4),
    lambda builder, body: builder.add_shape_cylinder(body, radius=0.2, half_height=0.02),
    lambda builder, body: builder.add_shape_cone(body, radius=0.2, half_height=0.3),
    lambda builder, body: builder.add_shape_ellipsoid(body, rx=0.4, ry=0.1, rz=0.2),
    lambda builder, body: builder.add_shape_sphere(body, radius=0.15),
)


def star(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and outward triangles of a star-shaped closed mesh: points of a sphere moved along their radii."""
    unit = random.normal(size=(20, 3))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    hull = ConvexHull(unit)
    corners = unit[hull.simplices]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = (outward * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    return unit * random.uniform(0.15, 0.5, (20, 1)), faces


def random_scene(random: np.random.Generator, with_meshes: bool) -> Model:
    """A model of bodies with one shape each: meshes, or every second one a hull."""
    builder = ModelBuilder()
    for number in range(BODIES):
        body = builder.add_body()
        if with_meshes:
            builder.add_shape_mesh(body, *star(random))
        elif number % 2:
            builder.add_shape_convex_hull(
                body, random.normal(size=(random.integers(6, 20), 3)) * random.uniform(0.1, 0.5, 3)
            )
        else:
            ADDERS[number // 2](builder, body)
    return builder.finalize()


def random_step(random: np.random.Generator) -> np.ndarray:
    """float64[2, 1, BODIES, 7]: bodies that pass the origin about the middle of the step, and turn by up to 3.1 rad."""
    middle, shift = (
        random.normal(size=(BODIES, 3)) * 0.3,
        random.normal(size=(BODIES, 3)) * 10.0 ** random.uniform(-1, 1, (BODIES, 1)),
    )
    turn = random.normal(size=(BODIES, 3))
    turn *= (random.uniform(0.0, 3.1, BODIES) / np.linalg.norm(turn, axis=1))[:, None]
    begin = Rotation.random(BODIES, random_state=random.integers(2**31))
    end = Rotation.from_rotvec(turn) * begin
    ends = [np.concatenate([middle + s * shift, r.as_quat()], axis=1) for s, r in ((-0.5, begin), (0.5, end))]
    return np.stack(ends)[:, None]
