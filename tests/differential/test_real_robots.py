"""Public robots in random configurations: the same touching pairs as MuJoCo, and why depths differ
where they do.

MuJoCo finds further contacts of a pair by turning the shapes by 1e-3 rad (multiccd), and keeps a
depth that is off by up to so much of their size. Without that the two agree to rounding; what is
left is MuJoCo's own closed forms, where facets of the Minkowski difference decide, of the vertices
that MuJoCo has.
"""

# pyright: reportAttributeAccessIssue=false

import importlib.metadata
import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType
from tests.support.hull_oracle import POLYTOPES, core, placed, polytope_distance
from tests.support.mujoco_pairs import LoadedScene, PairDistances, mujoco_distances, our_distances
from tests.support.mujoco_pairs import load_scene as load
from tests.support.oracle import rotation_of

BAND = 2e-4
"""Depth or gap within which one side may have a pair that the other does not [m]."""
SAME = 1e-5
"""Of the larger shape's size: more has to be decided by the facets."""
EXACT = 2e-6
"""Of that size: what ours may be off then. Vertices are float32, faces are merged to 3e-7,
distances are float32."""
TURN = 3e-3
"""Of that size, half of a box whose corner is farther off: what a turn by 1e-3 rad may move."""
FRAMES = 24
JUDGED = 6

GYMNASIUM = "gymnasium_robotics/envs/assets"
ROBOSUITE = "robosuite/models/assets"
DESCRIPTIONS = "example-robot-data"
"""A distribution of URDF and meshes alone: no module has its name, and its files name each other by
`package://`."""
ROBOTS = {
    "dog": ("dm_control/suite/dog.xml", 400),
    "quadruped": ("dm_control/suite/quadruped.xml", 20),
    "dog with meshes": ("dm_control/locomotion/walkers/assets/dog_v2/dog.xml", 1000),
    "fruit fly": ("dm_control/locomotion/walkers/assets/fruitfly_v2/fruitfly.xml", 100),
    "humanoid of the suite": ("dm_control/suite/humanoid.xml", 10),
    "gripper arm: Fetch": (f"{GYMNASIUM}/fetch/pick_and_place.xml", 30),
    "hand: Shadow": (f"{GYMNASIUM}/hand/manipulate_block.xml", 20),
    "hand: Adroit": (f"{GYMNASIUM}/adroit_hand/adroit_relocate.xml", 50),
    "hand: Fourier": (f"{ROBOSUITE}/grippers/fourier_left_hand.xml", 100),
    "hand: Inspire": (f"{ROBOSUITE}/grippers/inspire_right_hand.xml", 5),
    "gripper: Robotiq 140": (f"{ROBOSUITE}/grippers/robotiq_gripper_140.xml", 150),
    "gripper: Jaco": (f"{ROBOSUITE}/grippers/jaco_three_finger_gripper.xml", 50),
    "legged: Spot": (f"{ROBOSUITE}/robots/spot/robot.xml", 10),
    "arm: UR5e": (f"{ROBOSUITE}/robots/ur5e/robot.xml", 10),
    "arm: Panda": (f"{ROBOSUITE}/robots/panda/robot.xml", 1),
    "mobile: Tiago": (f"{ROBOSUITE}/robots/tiago/robot.xml", 20),
    "legged: Go2": (f"{DESCRIPTIONS}/robots/go2_description/urdf/go2.urdf", 100),
    "legged: Solo": (f"{DESCRIPTIONS}/robots/solo_description/robots/solo12.urdf", 200),
    "humanoid with hands: G1": (
        f"{DESCRIPTIONS}/robots/g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
        200,
    ),
    "hand: Allegro": (
        f"{DESCRIPTIONS}/robots/allegro_hand_description/urdf/allegro_right_hand.urdf",
        100,
    ),
    "gripper arm: Panda": (f"{DESCRIPTIONS}/robots/panda_description/urdf/panda.urdf", 1),
    "arm: UR5": (f"{DESCRIPTIONS}/robots/ur_description/urdf/ur5_gripper.urdf", 20),
}


def asset(name: str) -> Path:
    package, _, rest = name.partition("/")
    if package == DESCRIPTIONS:
        return descriptions() / rest
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(found.submodule_search_locations[0]) / rest


def descriptions() -> Path:
    try:
        found = importlib.metadata.distribution(DESCRIPTIONS)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{DESCRIPTIONS} is not installed")
    return Path(str(found.locate_file(f"cmeel.prefix/share/{DESCRIPTIONS}")))


def loaded(name: str) -> LoadedScene:
    path = asset(name)
    if path.suffix != ".urdf":
        return load(path)
    return load(path, SceneOptions(asset_map=(f"package://{DESCRIPTIONS}={descriptions()}",)))


def random_configurations(mj_model: mujoco.MjModel, count: int) -> np.ndarray:
    """qpos float64[count, nq]: joints anywhere in their ranges, free bodies turned about where they
    stand."""
    rng = np.random.default_rng(0)
    qpos = np.tile(mj_model.qpos0, (count, 1))
    for joint in range(mj_model.njnt):
        place = mj_model.jnt_qposadr[joint]
        kind = mj_model.jnt_type[joint]
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            first = place + 3 * int(kind == mujoco.mjtJoint.mjJNT_FREE)
            turn = rng.normal(size=(count, 4))
            qpos[:, first : first + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
            qpos[:, place:first] += rng.uniform(-0.05, 0.05, (count, first - place))
        else:
            open_ended = (-np.pi, np.pi) if kind == mujoco.mjtJoint.mjJNT_HINGE else (-0.2, 0.2)
            low, high = mj_model.jnt_range[joint] if mj_model.jnt_limited[joint] else open_ended
            qpos[:, place] = rng.uniform(low, high, count)
    return qpos


@pytest.mark.share(6, 2)
@pytest.mark.parametrize("name", ROBOTS)
def test_robots_touch_what_they_touch_in_mujoco(name, record_property):
    path, least = ROBOTS[name]
    scene = loaded(path)
    mj_model = scene.imported.mj_model
    shapes = scene.model.shapes
    poses = scene.imported.kinematics.poses(random_configurations(mj_model, FRAMES))
    ours = our_distances(scene, poses)
    as_shipped = mujoco_distances(scene, poses)
    assert missing(scene, ours, as_shipped) == []
    mj_model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    exact = mujoco_distances(scene, poses)
    assert missing(scene, ours, exact) == []
    key = np.intersect1d(np.intersect1d(ours.key, exact.key), as_shipped.key)
    assert len(key) >= least
    mine, turned, single = (
        side.distance[np.searchsorted(side.key, key)] for side in (ours, as_shipped, exact)
    )
    frame = key // len(shapes) ** 2
    first = key // len(shapes) % len(shapes)
    second = key % len(shapes)
    size = np.maximum(shapes.size[first].max(axis=1), shapes.size[second].max(axis=1))
    kinds = shapes.types()
    disputed = np.flatnonzero(np.abs(mine - single) > SAME * size)
    judged = [r for r in disputed if kinds[first[r]] in POLYTOPES and kinds[second[r]] in POLYTOPES]
    for row in sorted(judged, key=lambda r: -abs(mine[r] - single[r]))[:JUDGED]:
        a = int(first[row])
        b = int(second[row])
        truth = by_facets(scene, poses[frame[row]], a, b) - shapes.margin[a] - shapes.margin[b]
        assert mine[row] == pytest.approx(truth, abs=EXACT * size[row]), (
            shapes.path[a],
            shapes.path[b],
            single[row],
        )
    # Hulls: nothing is left without multiccd, and what it adds is within its turn.
    hulls = np.array(
        [ShapeType.CONVEX_MESH in (kinds[a], kinds[b]) for a, b in zip(first, second, strict=True)],
        bool,
    )
    hulls[disputed] = False
    assert (np.abs(turned - single)[hulls] <= TURN * size[hulls]).all()
    record_property(
        "pairs",
        f"{len(key)}, {hulls.sum()} of them with hulls; off by more than {SAME:g} of the size"
        f" without multiccd in {len(disputed)}, by up to {np.abs(mine - single).max():.2g} m; with"
        f" it by up to {np.abs(mine - turned).max():.2g} m",
    )


def missing(scene: LoadedScene, ours: PairDistances, theirs: PairDistances) -> list[tuple]:
    """Pairs that one side alone has, deeper in their gap than BAND."""
    shapes = scene.model.shapes
    found = []
    for side, other in ((ours, theirs), (theirs, ours)):
        alone = ~np.isin(side.key, other.key)
        for key, distance in zip(
            side.key[alone].tolist(), side.distance[alone].tolist(), strict=True
        ):
            a = key // len(shapes) % len(shapes)
            b = key % len(shapes)
            if shapes.gap[a] + shapes.gap[b] - distance > BAND:
                found.append(
                    (
                        shapes.path[a],
                        shapes.path[b],
                        key // len(shapes) ** 2,
                        distance,
                        side is ours,
                    )
                )
    return found


def by_facets(scene: LoadedScene, pose: np.ndarray, first: int, second: int) -> float:
    """The distance of two shapes of POLYTOPES; of a mesh with the vertices that MuJoCo has
    compiled."""
    (p, radius_p), (q, radius_q) = (_core(scene, pose, row) for row in (first, second))
    return polytope_distance(p, q) - radius_p - radius_q


def _core(scene: LoadedScene, pose: np.ndarray, row: int) -> tuple[np.ndarray, float]:
    mj_model = scene.imported.mj_model
    model = scene.model
    if model.shapes.type[row] != ShapeType.CONVEX_MESH:
        return core(model, pose, row)
    geom = int(np.flatnonzero(scene.imported.shape_row == row)[0])
    mesh = int(mj_model.geom_dataid[geom])
    start = int(mj_model.mesh_vertadr[mesh])
    count = int(mj_model.mesh_vertnum[mesh])
    vertex = mj_model.mesh_vert[start : start + count].astype(np.float64)
    vertex = vertex[ConvexHull(vertex).vertices]
    world = placed(model, pose, row)
    # The shape's frame stands in the middle of the box around the vertices.
    middle = 0.5 * (vertex.min(axis=0) + vertex.max(axis=0))
    return (vertex - middle) @ rotation_of(world).T + world[:3], 0.0
