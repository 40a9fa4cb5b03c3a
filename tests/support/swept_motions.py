"""Motions of shapes and particles between two frames, and their touches by dense sampling."""

import fcl
import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from collidecli import ModelBuilder, ParticleSweep
from collidecli.scene.model import Model
from tests.support.mesh_pairs import bvh
from tests.support.meshes import hull_mesh
from tests.support.oracle import unit
from tests.support.particle_oracle import Solid

BODIES = 12
REST = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def step_of(*bodies) -> np.ndarray:
    """float64[2, 1, bodies, 7] of pairs of poses, at the begin and the end; None rests at the
    origin."""
    pairs = [(REST, REST) if pair is None else pair for pair in bodies]
    return np.array(pairs, np.float64).transpose(1, 0, 2)[:, None]


def turned(axis, angle: float, position=(0.0, 0.0, 0.0)) -> np.ndarray:
    """float64[7]: pose with a rotation about an axis [rad]."""
    rotation = Rotation.from_rotvec(np.asarray(axis, np.float64) * angle)
    return np.concatenate([position, rotation.as_quat()])


def sampled_poses(model: Model, poses: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[samples, shapes, 7]: poses of shapes, of which body k has the k-th, in a step
    float64[2, 1, bodies, 7].

    By SciPy's slerp.
    """
    begin, end = poses[:, 0]
    found = np.empty((len(time), len(begin), 7))
    for body, local in enumerate(model.shapes.pose):
        slerp = Slerp([0.0, 1.0], Rotation.from_quat(np.stack([begin[body, 3:], end[body, 3:]])))(
            time
        )
        found[:, body, :3] = (
            begin[body, :3]
            + time[:, None] * (end[body, :3] - begin[body, :3])
            + slerp.apply(local[:3].copy())
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
    """Vertices and outward triangles of a star-shaped closed mesh: points of a sphere moved along
    their radii."""
    vertices, faces = hull_mesh(unit(random.normal(size=(20, 3))))
    return vertices * random.uniform(0.15, 0.5, (20, 1)), faces


def random_scene(random: np.random.Generator, with_meshes: bool, world_count: int = 1) -> Model:
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
    return builder.finalize(world_count=world_count)


def random_step(random: np.random.Generator) -> np.ndarray:
    """float64[2, 1, BODIES, 7]: bodies that pass the origin about the middle of the step, and turn
    by up to 3.1 rad."""
    middle = random.normal(size=(BODIES, 3)) * 0.3
    shift = random.normal(size=(BODIES, 3)) * 10.0 ** random.uniform(-1, 1, (BODIES, 1))
    turn = random.normal(size=(BODIES, 3))
    turn *= (random.uniform(0.0, 3.1, BODIES) / np.linalg.norm(turn, axis=1))[:, None]
    begin = Rotation.random(BODIES, random_state=random.integers(2**31))
    end = Rotation.from_rotvec(turn) * begin
    ends = [
        np.concatenate([middle + s * shift, r.as_quat()], axis=1)
        for s, r in ((-0.5, begin), (0.5, end))
    ]
    return np.stack(ends)[:, None]


class OnBody:
    """Adds shapes to a body of a builder in place of the static world."""

    def __init__(self, builder: ModelBuilder, body: int) -> None:
        self._builder = builder
        self._body = body

    def __getattr__(self, name: str):
        return lambda _, *arguments: getattr(self._builder, name)(self._body, *arguments)


def moves(begin, end) -> np.ndarray:
    """float64[2, 1, n, 3]: positions of particles in two frames."""
    return np.stack([np.atleast_2d(begin), np.atleast_2d(end)])[:, None].astype(np.float64)


def random_motion(rng: np.random.Generator, solid: Solid, size: float, count: int):
    """Poses float64[2, 1, 1, 7] of a body, and positions of particles that pass features of the
    solid on it."""
    poses = random_poses(rng, size)
    time, at = random_places(rng, poses, solid, size, count)
    shift = rng.normal(size=(count, 3)) * size * 10.0 ** rng.uniform(-2, 1, (count, 1))
    return poses, moves(at - time[:, None] * shift, at + (1.0 - time[:, None]) * shift)


def random_poses(rng: np.random.Generator, size: float) -> np.ndarray:
    """float64[2, 1, 1, 7]: poses of a body that turns by up to 2.5 rad."""
    begin = np.zeros(7)
    end = np.zeros(7)
    turn = Rotation.from_rotvec(rng.normal(size=3) / np.sqrt(3.0) * rng.uniform(0.0, 2.5))
    first = Rotation.random(random_state=rng.integers(2**31))
    for pose, rotation in ((begin, first), (end, turn * first)):
        pose[:3], pose[3:] = rng.normal(size=3) * size, rotation.as_quat()
    return np.stack([begin, end])[:, None, None]


def random_places(
    rng, poses: np.ndarray, solid: Solid, size: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times float64[n] of the step, and points float64[n, 3] of the world near features of the
    solid then."""
    time = rng.uniform(0.2, 0.8, count)
    places = solid.places[rng.integers(0, len(solid.places), count)] * rng.uniform(
        0.5, 1.05, (count, 1)
    )
    begin, end = poses[:, 0, 0]
    return time, begin[:3] + time[:, None] * (end - begin)[:3] + _turned(poses)(time).apply(
        places * size
    )


def random_triangles(
    rng: np.random.Generator, solid: Solid, size: float, count: int, corners: int = 3
):
    """Poses float64[2, 1, 1, 7] of a body, and positions float64[2, n, corners, 3] of triangles, or
    of lines, of which an inner point passes a feature of the solid on it."""
    poses = random_poses(rng, size)
    time, at = random_places(rng, poses, solid, size, count)
    shape = (
        rng.normal(size=(count, corners, 3)) * size * 10.0 ** rng.uniform(-0.5, 1, (count, 1, 1))
    )
    weights = rng.dirichlet([2.0] * corners, count)
    at = at[:, None] + shape - (weights[..., None] * shape).sum(axis=1)[:, None]
    shift = rng.normal(size=(count, 1, 3)) * size * 10.0 ** rng.uniform(-2, 1, (count, 1, 1))
    shift = shift + 0.3 * rng.normal(size=(count, corners, 3)) * size
    time = time[:, None, None]
    return poses, np.stack([at - time * shift, at + (1.0 - time) * shift])


def covered(found: ParticleSweep, rows: np.ndarray, time: np.ndarray) -> np.ndarray:
    """bool[times]: whether times are from `enter` to `leave` of one of some rows."""
    return ((found.enter[rows] <= time[:, None]) & (time[:, None] <= found.leave[rows])).any(axis=1)


def in_shape(poses: np.ndarray, points: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[n, 3]: positions of a particle, of both frames, in the frame of the body at times of
    the step."""
    begin, end = poses[:, 0, 0]
    at = points[0] + time[:, None] * (points[1] - points[0])
    return _turned(poses)(time).inv().apply(at - begin[:3] - time[:, None] * (end - begin)[:3])


def _turned(poses: np.ndarray) -> Slerp:
    return Slerp([0.0, 1.0], Rotation.from_quat(poses[:, 0, 0, 3:]))


INTERVALS = 1 << 16


class SweptMeshes:
    """The meshes of a model, one a body, in a step float64[2, 1, bodies, 7].

    Times at which two surfaces cannot meet are passed over: their distance at one time, divided by
    the largest relative speed of their points, which is constant for a body that turns at a
    constant rate.
    """

    def __init__(self, model: Model, step: np.ndarray) -> None:
        meshes = [model.meshes[row] for row in model.shapes.mesh]
        self._objects = [fcl.CollisionObject(bvh((mesh.vertex, mesh.face))) for mesh in meshes]
        self._path = sampled_poses(model, step, np.linspace(0.0, 1.0, INTERVALS + 1))
        self._model = model
        self._step = step
        begin, end = step[:, 0]
        self._shift = end[:, :3] - begin[:, :3]
        turns = (
            Rotation.from_quat(end[:, 3:]) * Rotation.from_quat(begin[:, 3:]).inv()
        ).magnitude()
        in_bodies = [
            Rotation.from_quat(pose[3:].copy()).apply(mesh.vertex) + pose[:3]
            for pose, mesh in zip(model.shapes.pose, meshes, strict=True)
        ]
        self._turning = turns * [np.linalg.norm(each, axis=1).max() for each in in_bodies]

    def touch(self, a: int, b: int) -> np.ndarray | None:
        """float64[2]: the first and the last of the times at which the surfaces of two bodies meet;
        None without."""
        speed = (
            np.linalg.norm(self._shift[a] - self._shift[b]) + self._turning[a] + self._turning[b]
        )
        advance = (1.0 - 1e-6) * INTERVALS / max(speed, 1e-30)
        first = self._next(a, b, 0, 1, advance)
        if first is None:
            return None
        last = self._next(a, b, INTERVALS, -1, advance)
        return np.array([first, first if last is None else last]) / INTERVALS

    def _next(self, a: int, b: int, number: int, direction: int, advance: float) -> int | None:
        while 0 <= number <= INTERVALS:
            apart = self._distance(a, b, self._path[number])
            if apart <= 0.0:
                return number
            number += direction * max(1, int(apart * advance))
        return None

    def distance(self, a: int, b: int, time: float) -> float:
        """Distance of the surfaces of two bodies at a time of the step [m]."""
        return self._distance(a, b, sampled_poses(self._model, self._step, np.array([time]))[0])

    def poses(self, a: int, b: int, time: np.ndarray) -> np.ndarray:
        """float64[times, 2, 7]: of both bodies' meshes."""
        return sampled_poses(self._model, self._step, time)[:, [a, b]]

    def _distance(self, a: int, b: int, poses: np.ndarray) -> float:
        for body in (a, b):
            self._objects[body].setTransform(
                fcl.Transform(poses[body, [6, 3, 4, 5]], poses[body, :3])
            )
        request = fcl.DistanceRequest(enable_nearest_points=False)
        return float(
            fcl.distance(self._objects[a], self._objects[b], request, fcl.DistanceResult())
        )
