"""Mesh geoms against MuJoCo: pairs with every primitive and with each other, and whole robots.

MuJoCo's search for the depth of two meshes stops early at times, by up to a tenth of a metre for the Jaco arm. So
neither side is taken at its word: Qhull's facets of the Minkowski difference decide for what has flat faces, and a
direction that proves a distance for what is round.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from tests.differential.test_mujoco_scenes import stepped
from tests.support.hull_oracle import POLYTOPES, core, polytope_distance, proven
from tests.support.mujoco_contacts import load, mujoco_distances, our_distances

SAME = 1e-5
"""Of the larger shape's size: what MuJoCo's distance may be off before somebody has to decide."""
EXACT = 2e-6
"""Of that size: what ours may be off then. Vertices are float32, faces are merged to 3e-7, distances are float32."""
BAND = 2e-4
"""Depth or gap within which one side may have a pair that the other does not [m]."""
FRAMES = 200
OTHERS = {
    "plane": "1 1 1",
    "sphere": "0.7",
    "capsule": "0.4 0.6",
    "box": "0.5 0.8 0.3",
    "cylinder": "0.5 0.7",
    "ellipsoid": "0.4 0.8 0.6",
    "mesh": "",
}


def cloud(rng: np.random.Generator, count: int, size: float) -> str:
    """`count` points of which all are on their hull: on an ellipsoid."""
    points = rng.normal(size=(count, 3))
    points *= size * rng.uniform(0.3, 1.0, 3) / np.linalg.norm(points, axis=1, keepdims=True)
    return " ".join(f"{x:.9g}" for x in points.ravel())


def two_geoms(rng: np.random.Generator, other: str, count: int, size: float) -> str:
    """A mesh that moves, and something that does; a plane, which may not in MuJoCo, is carried by nothing."""
    sizes = " ".join(str(float(s) * size) for s in OTHERS[other].split())
    geom = '<geom type="mesh" mesh="n"/>' if other == "mesh" else f'<geom type="{other}" size="{sizes}"/>'
    carried = geom if other == "plane" else f"<body><freejoint/>{geom}</body>"
    return f"""<mujoco>
    <asset><mesh name="m" vertex="{cloud(rng, count, size)}"/><mesh name="n" vertex="{cloud(rng, 40, size)}"/></asset>
    <worldbody>{carried}<body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def by_facets(model: Model, pose: np.ndarray, first: int, second: int) -> float:
    """The distance of two shapes of POLYTOPES."""
    (p, radius_p), (q, radius_q) = (core(model, pose, row) for row in (first, second))
    return polytope_distance(p, q) - radius_p - radius_q


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [0.01, 1.0])
@pytest.mark.parametrize("other", OTHERS)
def test_pairs(tmp_path, other, size, record_property):
    rng = np.random.default_rng(list(OTHERS).index(other))
    path = tmp_path / "pair.xml"
    apart = off = 0
    for count in (5, 12, 40, 300):
        path.write_text(two_geoms(rng, other, count, size))
        scene = load(path)
        mj_model, data = scene.imported.mj_model, mujoco.MjData(scene.imported.mj_model)
        qpos = rng.normal(size=(40, mj_model.nq // 7, 7))
        qpos[..., 3:] /= np.linalg.norm(qpos[..., 3:], axis=-1, keepdims=True)
        qpos[..., :3] *= size * rng.uniform(0.0, 1.5, (40, 1, 1))
        poses = scene.imported.kinematics.poses(qpos.reshape(40, -1))
        contacts = collidecli.collide(scene.model, poses[:, None], gap=100.0 * size)
        for frame in range(len(qpos)):
            data.qpos[:] = qpos[frame].ravel()
            mujoco.mj_kinematics(mj_model, data)
            ends = np.zeros(6)
            theirs = mujoco.mj_geomDistance(mj_model, data, 0, 1, 100.0 * size, ends)
            cell = contacts.cell(frame)
            nearest = int(np.argmin(cell.distance))
            ours, normal = float(cell.distance[nearest]), cell.normal[nearest].astype(np.float64)
            apart += ours > 0.0
            off += abs(ours - theirs) > SAME * size
            level = EXACT * max(size, abs(ours))
            assert proven_by(scene.model, poses[frame], normal) == pytest.approx(ours, abs=level), (count, frame)
            if other in ("sphere", "capsule", "box", "mesh"):
                assert ours == pytest.approx(by_facets(scene.model, poses[frame], 0, 1), abs=level), (count, frame)
            elif abs(ours - theirs) > SAME * size:
                # MuJoCo's own direction does not bear out its distance, and does no better than ours.
                along = np.sign(theirs) * (ends[3:] - ends[:3])
                assert proven_by(scene.model, poses[frame], along) <= ours + level, (count, frame, theirs)
    record_property("mujoco_off", f"{off} of 160")
    assert 20 < apart < 140, "poses are not both separated and overlapping"


def proven_by(model: Model, pose: np.ndarray, direction: np.ndarray) -> float:
    if model.shapes.type[0] == ShapeType.PLANE:
        direction = np.array([0.0, 0.0, 1.0])  # the only one that a plane has, not rounded to float32
    return float(proven(model, pose, 0, 1, direction[None] / np.linalg.norm(direction))[0])


def dm_control(name: str) -> Path:
    found = importlib.util.find_spec("dm_control")
    if found is None or not found.submodule_search_locations:
        pytest.skip("dm_control is not installed")
    return Path(found.submodule_search_locations[0]) / name


ROBOTS = [
    "third_party/kinova/jaco_arm.xml",
    "third_party/kinova/jaco_hand.xml",
    "suite/dog.xml",
    "locomotion/walkers/assets/dog_v2/dog.xml",
    "locomotion/walkers/assets/fruitfly_v2/fruitfly.xml",
    "locomotion/walkers/assets/jumping_ball/jumping_ball_with_head.xml",
    "locomotion/soccer/assets/boxhead/boxhead.xml",
]


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_touch_what_they_touch_in_mujoco(name, record_property):
    """The same pairs outside the band, and where depths differ Qhull is on our side."""
    compare(dm_control(name), record_property)


def test_the_jaco_arm_of_composer_with_its_hand_over_a_floor(tmp_path, record_property):
    """Written out by composer: prefixes, attachments, mesh files named by content."""
    kinova = pytest.importorskip("dm_control.entities.manipulators.kinova", reason="dm_control is not installed")
    mjcf = pytest.importorskip("dm_control.mjcf")
    arm, hand = kinova.JacoArm(), kinova.JacoHand()
    arm.attach(hand)
    arm.mjcf_model.worldbody.add("geom", type="plane", size=[1, 1, 1], pos=[0, 0, 0.3], name="floor")
    mjcf.export_with_assets(arm.mjcf_model, str(tmp_path), "arm.xml")
    assert compare(tmp_path / "arm.xml", record_property) > 1000


def compare(path: Path, record_property) -> int:
    """How many pairs with convex meshes both have."""
    start = time.perf_counter()
    scene = load(path)
    record_property("load_seconds", round(time.perf_counter() - start, 3))
    shapes = scene.model.shapes
    if not len(shapes):
        return 0
    poses = scene.imported.kinematics.poses(stepped(scene.imported.mj_model, FRAMES, every=1, start=0))
    ours, theirs = our_distances(scene, poses), mujoco_distances(scene, poses)
    count = len(shapes)
    keys = np.union1d(ours.key, theirs.key)
    mine, their = np.full(len(keys), np.inf), np.full(len(keys), np.inf)
    mine[np.searchsorted(keys, ours.key)] = ours.distance
    their[np.searchsorted(keys, theirs.key)] = theirs.distance
    frame, first, second = keys // count**2, keys // count % count, keys % count
    kinds = shapes.types()
    meshes = np.array([kind == ShapeType.CONVEX_MESH for kind in kinds])
    gap = shapes.gap[first] + shapes.gap[second]
    alone = np.isinf(mine) | np.isinf(their)
    assert not np.any(alone & (gap - np.minimum(mine, their) > BAND))
    hulls = ~alone & (meshes[first] | meshes[second])
    off = np.where(alone, 0.0, np.abs(np.where(alone, 0.0, mine) - np.where(alone, 0.0, their)))
    disputes = np.flatnonzero(hulls & (off > SAME * 0.1))
    flat = [row for row in disputes if kinds[first[row]] in POLYTOPES and kinds[second[row]] in POLYTOPES]
    for row in flat[:: max(1, len(flat) // 25)]:
        a, b = int(first[row]), int(second[row])
        truth = by_facets(scene.model, poses[frame[row]], a, b)
        size = shapes.size[[a, b]].max()
        assert mine[row] + shapes.margin[a] + shapes.margin[b] == pytest.approx(truth, abs=EXACT * size), (
            f"{shapes.path[a]} and {shapes.path[b]}, frame {frame[row]}: MuJoCo has {their[row]}"
        )
    record_property(
        "pairs", f"{hulls.sum()} with meshes, MuJoCo off in {len(disputes)} by {off[disputes].max(initial=0)}"
    )
    return int(hulls.sum())
