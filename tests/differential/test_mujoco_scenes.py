"""Whole scenes against `mj_collision`, frame by frame; an independent oracle decides every difference.

MuJoCo's convex pairs (those of cylinders and ellipsoids, and boxes and capsules that overlap) stop short of the least
distance at times. So neither side is taken at its word: where the two differ, the oracle must side with this engine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from collidecli.storage.trajectories.motion import open_trajectory
from tests.support.mujoco_contacts import (
    LoadedScene,
    PairDistances,
    Verdicts,
    judge,
    load,
    mujoco_distances,
    our_distances,
)
from tests.support.piles import pile_xml

MEDIAN_TOLERANCE = 2e-5
ORACLE_TOLERANCE = 1e-6  # of the larger shape's half extent
SAMPLE = Path("samples/02_humanoid")


def compare(scene: LoadedScene, poses: np.ndarray, record: Callable[[str, object], None]) -> Verdicts:
    """Asserts that the two agree where they should, and that the oracle is on our side where they do not."""
    verdicts = judge(scene, poses, our_distances(scene, poses), mujoco_distances(scene, poses))
    record("mujoco", verdicts.summary(scene.model))
    check(scene, verdicts)
    return verdicts


def check(scene: LoadedScene, verdicts: Verdicts) -> None:
    summary = verdicts.summary(scene.model)
    print(summary)
    assert len(verdicts.agreed), "no pair touches: the scene tests nothing"
    assert np.median(verdicts.agreed) <= MEDIAN_TOLERANCE
    off = verdicts.off(verdicts.ours)
    worst = int(np.argmax(off / verdicts.size)) if len(off) else 0
    assert np.all(off <= ORACLE_TOLERANCE * verdicts.size), (
        f"{summary}\nworst: frame {verdicts.frame[worst]}, "
        f"shapes {scene.model.shapes.path[verdicts.shape0[worst]]}, {scene.model.shapes.path[verdicts.shape1[worst]]}, "
        f"ours {verdicts.ours[worst]}, MuJoCo {verdicts.mujoco[worst]}, oracle {verdicts.oracle[worst]}"
    )


def stepped(mj_model: mujoco.MjModel, frames: int, every: int, start: int) -> np.ndarray:
    """qpos float64[frames, nq] of a simulation under random controls."""
    data = mujoco.MjData(mj_model)
    rng = np.random.default_rng(0)
    kept = []
    for step in range(start + frames * every):
        data.ctrl[:] = rng.uniform(-1, 1, mj_model.nu)
        mujoco.mj_step(mj_model, data)
        if step >= start and (step - start) % every == 0:
            kept.append(data.qpos.copy())
    return np.array(kept)


def test_humanoid_sample(record_property):
    scene = load(SAMPLE / "humanoid.xml")
    motion = open_trajectory(SAMPLE / "motion.h5", scene.model, scene.imported.kinematics)
    poses = motion.read(range(len(motion.time)))[:, 0]
    motion.close()
    compare(scene, poses, record_property)


def moving_pile(tmp_path: Path, gap: float, frames: int = 40) -> tuple[LoadedScene, np.ndarray]:
    path = tmp_path / "pile.xml"
    path.write_text(pile_xml(60, gap))
    scene = load(path)
    qpos = stepped(scene.imported.mj_model, frames, every=8, start=60)
    return scene, scene.imported.kinematics.poses(qpos)


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_pile(gap, tmp_path, record_property):
    """With a gap, pairs apart are compared too."""
    scene, poses = moving_pile(tmp_path, gap)
    verdicts = compare(scene, poses, record_property)
    assert len(verdicts.agreed) > 40 * 60, "a pile has more pairs than shapes"


def test_what_is_wrong_on_either_side_is_told(tmp_path):
    """A distance 1 % off, a pair left out, a pair made up: all are found and attributed correctly."""
    scene, poses = moving_pile(tmp_path, 0.01, frames=2)
    right = our_distances(scene, poses)
    deepest = int(np.argmin(right.distance))
    off = PairDistances(right.key, np.where(np.arange(len(right.key)) == deepest, 0.99, 1.0) * right.distance)
    missing = PairDistances(np.delete(right.key, deepest), np.delete(right.distance, deepest))
    unheard = np.setdiff1d(np.arange(right.key[0], right.key[-1]), right.key)[:1]
    extra = PairDistances(np.append(unheard, right.key), np.append(-0.01, right.distance))
    extra = PairDistances(np.sort(extra.key), extra.distance[np.argsort(extra.key)])
    for wrong in (off, missing, extra):
        with pytest.raises(AssertionError, match="ours off in 1 of 1"):
            check(scene, judge(scene, poses, wrong, right))
        verdicts = judge(scene, poses, right, wrong)
        check(scene, verdicts)
        assert "mujoco off in 1 of 1" in verdicts.summary(scene.model)


def test_dm_control_humanoid(tmp_path, record_property):
    suite = pytest.importorskip("dm_control.suite.humanoid", reason="dm_control is not installed")
    xml, assets = suite.get_model_and_assets()
    for name, content in {"humanoid.xml": xml, **assets}.items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    scene = load(tmp_path / "humanoid.xml")
    qpos = stepped(scene.imported.mj_model, frames=500, every=1, start=0)
    compare(scene, scene.imported.kinematics.poses(qpos), record_property)
