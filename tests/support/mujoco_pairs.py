"""Scenes of MuJoCo: pairs that it lets collide, and its contacts."""

import copy
import itertools
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from collidecli.engine.pipeline_build import find_device
from collidecli.importers.mujoco.scene import MjcfImport, add_mjcf
from collidecli.motions.collision import prepare_collision
from collidecli.motions.timing import TimingReport
from collidecli.numerics.pose_columns import XYZW_TO_WXYZ
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.options import ContactOptions, EngineOptions, SceneOptions
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import ArrayMotion
from tests.support.oracle import rotation_of, signed_distance
from tests.support.poses import quaternion_of
from tests.support.supports import extents

GeomPairs = set[tuple[int, int]]

_PLANE = mujoco.mjtGeom.mjGEOM_PLANE
_FAR = 1e6


def our_pairs(scene: MjcfImport, model: Model) -> GeomPairs:
    """Pairs of geom ids that our filters leave."""
    geom_of = {int(row): geom for geom, row in enumerate(scene.shape_row) if row >= 0}
    return {
        (min(p), max(p))
        for p in ((geom_of[a], geom_of[b]) for a, b in allowed_pairs(model, 0).tolist())
    }


def ruled_pairs(mj_model: mujoco.MjModel) -> GeomPairs:
    """Pairs of geom ids that the documented rules leave."""
    off = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if mj_model.opt.disableflags & off or mj_model.nbody < 2:
        return set()  # the second is not documented
    listed = zip(mj_model.pair_geom1.tolist(), mj_model.pair_geom2.tolist(), strict=True)
    explicit = {(min(pair), max(pair)) for pair in listed}
    weld = [_weld_root(mj_model, body) for body in range(mj_model.nbody)]
    moves = [_moves(mj_model, body) for body in range(mj_model.nbody)]
    above = [None if root == 0 else weld[int(mj_model.body_parentid[root])] for root in weld]
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in mj_model.exclude_signature}
    filter_parent = not mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT

    def dynamic(a: int, b: int) -> bool:
        body_a = int(mj_model.geom_bodyid[a])
        body_b = int(mj_model.geom_bodyid[b])
        root_a = weld[body_a]
        root_b = weld[body_b]
        if root_a == root_b or not (moves[body_a] or moves[body_b]):
            return False
        if (
            filter_parent
            and root_a
            and root_b
            and (above[body_a] == root_b or above[body_b] == root_a)
        ):
            return False
        if {(body_a, body_b), (body_b, body_a)} & excluded:
            return False
        meets = mj_model.geom_contype[a] & mj_model.geom_conaffinity[b]
        return bool(meets | (mj_model.geom_contype[b] & mj_model.geom_conaffinity[a]))

    return {
        (a, b)
        for a, b in itertools.combinations(range(mj_model.ngeom), 2)
        if not (mj_model.geom_type[a] == mj_model.geom_type[b] == _PLANE)
        and ((a, b) in explicit or dynamic(a, b))
    }


def _weld_root(mj_model: mujoco.MjModel, body: int) -> int:
    """The uppermost of the bodies that no joint parts from `body`; a mocap body is parted from the
    world."""
    while body and not mj_model.body_jntnum[body] and mj_model.body_mocapid[body] < 0:
        body = int(mj_model.body_parentid[body])
    return body


def _moves(mj_model: mujoco.MjModel, body: int) -> bool:
    """Whether a joint is between `body` and the world."""
    while body:
        if mj_model.body_jntnum[body]:
            return True
        body = int(mj_model.body_parentid[body])
    return False


def reported_pairs(mj_model: mujoco.MjModel) -> GeomPairs:
    """Pairs of geom ids that `mj_collision` reports when all there is are spheres (planes stay) of
    endless margin.

    Spheres, since MuJoCo's box-box test gives up on boxes that are far apart, whatever the margin.
    """
    model = copy.deepcopy(mj_model)
    listed = np.isin(np.arange(model.ngeom), [*model.pair_geom1, *model.pair_geom2])
    round_ = (model.geom_type != _PLANE) & (
        (model.geom_contype | model.geom_conaffinity != 0) | listed
    )
    model.geom_type[round_] = mujoco.mjtGeom.mjGEOM_SPHERE
    model.geom_size[round_] = model.geom_rbound[round_, None] = 0.05
    model.geom_margin[:] = _FAR / 2
    model.pair_margin[:] = model.body_margin[:] = _FAR
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return {(min(p), max(p)) for p in ((int(c.geom1), int(c.geom2)) for c in data.contact)}


def load(
    folder: Path, scene: str | Path, name: str = "scene.xml", **options
) -> tuple[MjcfImport, Model]:
    """An MJCF or URDF of a file, or of a text that is written to one. options: of the importer."""
    path = scene if isinstance(scene, Path) else folder / name
    if isinstance(scene, str):
        path.write_text(scene)
    builder = ModelBuilder()
    return add_mjcf(builder, path, SceneOptions(**options)), builder.finalize()


BAND = 2e-6
"""Two distances that differ by more are a dispute, and so is a pair that only one finds, this far
inside its gap [m]. It is some 1e-5 of the shapes' sizes: far above the rounding of both, and twice
the tolerance of this engine."""
CCD_TOLERANCE = 1e-12
CCD_ITERATIONS = 500
"""MuJoCo's own are 1e-6 and 35. With these its convex distances are as exact as they come; some
stay off."""


@dataclass(frozen=True)
class PairDistances:
    """The least distance of every touching pair of every frame. key: int64[n], ascending, see
    `pair_key`."""

    key: np.ndarray
    distance: np.ndarray


@dataclass(frozen=True)
class Verdicts:
    """Every dispute, settled by the oracle.

    frame, shape0, shape1, ours, mujoco, oracle: [n]; a distance is infinite where there is no
    contact. gap: of the pair. size: largest half extent of the pair [m]. agreed: |ours - mujoco|
    where both have the pair.
    """

    frame: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    ours: np.ndarray
    mujoco: np.ndarray
    oracle: np.ndarray
    gap: np.ndarray
    size: np.ndarray
    agreed: np.ndarray

    def off(self, distance: np.ndarray) -> np.ndarray:
        """How far from the oracle [m]; a contact that is missing is off by how far it is inside its
        gap."""
        missing = np.maximum(0.0, self.gap - self.oracle)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(distance), missing, np.abs(distance - self.oracle))


@dataclass(frozen=True)
class LoadedScene:
    """A scene file in both: the importer's model and MuJoCo's."""

    imported: MjcfImport
    model: Model


def load_scene(path: Path, options: SceneOptions | None = None) -> LoadedScene:
    """A scene for both, MuJoCo's convex collisions as exact as they can be."""
    builder = ModelBuilder()
    imported = add_mjcf(builder, path, options or SceneOptions())
    imported.mj_model.opt.ccd_tolerance = CCD_TOLERANCE
    imported.mj_model.opt.ccd_iterations = CCD_ITERATIONS
    return LoadedScene(imported, builder.finalize())


def pair_key(
    shape_count: int, frame: np.ndarray, shape0: np.ndarray, shape1: np.ndarray
) -> np.ndarray:
    """One number a frame and pair, in canonical order."""
    return (np.asarray(frame, np.int64) * shape_count + shape0) * shape_count + shape1


def our_distances(scene: LoadedScene, poses: np.ndarray) -> PairDistances:
    """This engine's contacts of poses float64[F, B, 7]."""
    timing = TimingReport()
    made = prepare_collision(
        scene.model,
        ArrayMotion(poses[:, None]),
        ContactOptions(),
        EngineOptions(),
        find_device("cpu"),
        timing,
    )
    blocks = list(made.blocks(timing))
    frame = np.repeat(
        np.arange(len(poses)), np.concatenate([block.cell_counts for block in blocks])
    )
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in ("shape0", "shape1", "distance")
    }
    key = pair_key(len(scene.model.shapes), frame, columns["shape0"], columns["shape1"])
    return _least(key, columns["distance"].astype(np.float64))


def mujoco_distances(scene: LoadedScene, poses: np.ndarray) -> PairDistances:
    """mj_collision's contacts of the same poses, in our meaning of distance."""
    mj_model = scene.imported.mj_model
    data = mujoco.MjData(scene.imported.mj_model)
    mujoco.mj_kinematics(mj_model, data)
    mujoco.mj_comPos(mj_model, data)
    keys = []
    distances = []
    for frame in range(len(poses)):
        _place_bodies(mj_model, data, poses[frame])
        mujoco.mj_collision(mj_model, data)
        rows = np.sort(scene.imported.shape_row[data.contact.geom], axis=1)
        keys.append(pair_key(len(scene.model.shapes), frame, rows[:, 0], rows[:, 1]))
        distances.append(data.contact.dist - data.contact.includemargin)
    return _least(np.concatenate(keys), np.concatenate(distances))


def _place_bodies(mj_model: mujoco.MjModel, data: mujoco.MjData, pose: np.ndarray) -> None:
    """Puts every body but the world at pose float64[B, 7], and what is fixed to bodies with
    them."""
    data.xpos[1:] = pose[:, :3]
    data.xquat[1:] = pose[:, 3:][:, XYZW_TO_WXYZ]
    rotation = np.concatenate([np.eye(3)[None], rotation_of(pose)])
    data.xmat[:] = rotation.reshape(-1, 9)
    data.xipos[:] = data.xpos + np.einsum("bij,bj->bi", rotation, mj_model.body_ipos)
    inertia = rotation_of(
        np.concatenate([mj_model.body_ipos, mj_model.body_iquat[:, [1, 2, 3, 0]]], axis=1)
    )
    data.ximat[:] = (rotation @ inertia).reshape(-1, 9)
    body = mj_model.geom_bodyid
    data.geom_xpos[:] = data.xpos[body] + np.einsum("gij,gj->gi", rotation[body], mj_model.geom_pos)
    own = rotation_of(
        np.concatenate([mj_model.geom_pos, mj_model.geom_quat[:, [1, 2, 3, 0]]], axis=1)
    )
    data.geom_xmat[:] = (rotation[body] @ own).reshape(-1, 9)


def _least(key: np.ndarray, distance: np.ndarray) -> PairDistances:
    pairs, inverse = np.unique(key, return_inverse=True)
    least = np.full(len(pairs), np.inf)
    np.minimum.at(least, inverse, distance)
    return PairDistances(pairs, least)


def judge(
    scene: LoadedScene, poses: np.ndarray, ours: PairDistances, theirs: PairDistances
) -> Verdicts:
    """Compares the two, and lets the oracle decide every pair on which they differ by more than
    BAND."""
    shapes = scene.model.shapes
    count = len(scene.model.shapes)
    key = np.union1d(ours.key, theirs.key)
    found = {}
    for name, side in (("ours", ours), ("mujoco", theirs)):
        found[name] = np.full(len(key), np.inf)
        found[name][np.searchsorted(key, side.key)] = side.distance
    shape1 = key % count
    shape0 = key // count % count
    frame = key // count**2
    gap = shapes.gap[shape0] + shapes.gap[shape1]
    both = np.isfinite(found["ours"]) & np.isfinite(found["mujoco"])
    with np.errstate(invalid="ignore"):
        apart = np.abs(found["ours"] - found["mujoco"])
    inside = gap - np.minimum(found["ours"], found["mujoco"])
    disputed = np.flatnonzero(np.where(both, apart, inside) > BAND)
    oracle = oracle_distances(
        scene.model, poses, frame[disputed], shape0[disputed], shape1[disputed]
    )
    half = np.array([extents(t, s[None]).max() if t != ShapeType.PLANE else 0.0
                     for t, s in zip(shapes.types(), shapes.size, strict=True)])  # fmt: skip
    size = np.maximum(half[shape0], half[shape1])
    return Verdicts(
        frame[disputed],
        shape0[disputed],
        shape1[disputed],
        found["ours"][disputed],
        found["mujoco"][disputed],
        oracle,
        gap[disputed],
        size[disputed],
        apart[both],
    )


def oracle_distances(
    model: Model, poses: np.ndarray, frame: np.ndarray, shape0: np.ndarray, shape1: np.ndarray
) -> np.ndarray:
    """The oracle's distance of pairs [n] in frames of poses float64[F, B, 7], less both margins:
    float64[n]."""
    shapes = model.shapes
    swap = shapes.type[shape0] > shapes.type[shape1]
    a = np.where(swap, shape1, shape0)
    b = np.where(swap, shape0, shape1)
    point_a, rotation_a = _placed(model, poses, frame, a)
    point_b, rotation_b = _placed(model, poses, frame, b)
    offset = np.einsum("nji,nj->ni", rotation_a, point_b - point_a)
    relative = np.concatenate(
        [offset, quaternion_of(np.swapaxes(rotation_a, 1, 2) @ rotation_b)], axis=1
    )
    distance = np.empty(len(frame))
    types = np.stack([shapes.type[a], shapes.type[b]], axis=1)
    for type_a, type_b in np.unique(types, axis=0):
        rows = np.flatnonzero((types == (type_a, type_b)).all(axis=1))
        found, _ = signed_distance(
            ShapeType(type_a),
            shapes.size[a[rows]],
            ShapeType(type_b),
            shapes.size[b[rows]],
            relative[rows],
        )
        distance[rows] = found
    return distance - shapes.margin[a] - shapes.margin[b]


def _placed(
    model: Model, poses: np.ndarray, frame: np.ndarray, shape: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """World position [n, 3] and rotation [n, 3, 3] of shapes [n]."""
    body = model.shapes.body[shape]
    body_pose = np.where(
        (body == STATIC_BODY)[:, None], [0, 0, 0, 0, 0, 0, 1.0], poses[frame, body]
    )
    rotation = rotation_of(body_pose)
    own = model.shapes.pose[shape]
    return body_pose[:, :3] + np.einsum("nij,nj->ni", rotation, own[:, :3]), rotation @ rotation_of(
        own
    )
