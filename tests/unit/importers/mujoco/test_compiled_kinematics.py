"""Compiled forward kinematics have the bits of NumPy's, for every kind of joint and any
coordinates."""

from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
import warp as wp

from collidecli.engine.joint_kinematics import MANY, TreeLoader, begin_loading_kinematics, pose_tree
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.importers.mujoco.kinematics import ForwardKinematics, MujocoKinematics
from collidecli.motions.derived import MergedMotion, SlicedMotion
from collidecli.numerics.trigonometry import MODERATE
from collidecli.scene import joint_tree
from tests.support.mujoco_pairs import load

HUMANOID = Path("samples/02_humanoid/humanoid.xml")
LEG = """<body pos="{x} {y} 0"><joint axis="0 0 1" pos="0.01 0.02 0"/><geom type="capsule" size=".05 .1"/>
    <body pos="{x} {y} 0"><joint axis="{y} {x} 0" pos="0.03 0 0.1"/><geom type="capsule" size=".05 .1"/></body>
    </body>"""
ANT = f"""<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".2"/>
    {"".join(LEG.format(x=x, y=y) for x in (-0.3, 0.3) for y in (-0.3, 0.3))}</body></worldbody></mujoco>"""
EVERY = """<mujoco><worldbody>
    <body pos="1 2 3" euler="10 20 30"><geom size=".1"/>
        <body pos="0 0 1"><joint axis="1 2 3"/><geom size=".1"/></body></body>
    <body name="moved" mocap="true" pos="4 5 6" euler="40 50 60"><geom size=".1"/>
        <body pos="1 1 1" euler="1 2 3"><geom size=".1"/></body></body>
    <body pos="0 1 0" euler="70 80 90"><joint type="slide" axis="1 1 0" ref="0.3"/>
        <joint axis="0 1 1" ref="20" pos="0 1 1"/>
        <joint type="slide" axis="0 0 1"/><geom size=".1"/>
        <body pos="0.1 0.2 0.3" euler="5 6 7"><joint type="ball" pos="0.2 0.1 0"/><geom size=".1"/>
            <body pos="1 0 0"><geom size=".1"/></body>
            <body pos="1 0 0"><joint type="slide" axis="0 1 0"/><joint type="ball"/><geom size=".1"/></body>
        </body></body>
    <body><freejoint/><geom size=".1"/></body>
    <body pos="1 1 1"><geom size=".1"/></body></worldbody></mujoco>"""
SCENES = {"humanoid": "", "ant": ANT, "every joint": EVERY}
ODD = np.array(
    [0.0, -0.0, 5e-324, 1e-300, np.pi / 2, -np.pi, 3 * np.pi, 1e5, -MODERATE, 1e-15, 1.0 + 2e-16]
)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> Iterator[None]:
    load_kernels([pose_tree], wp.get_device("cpu"))
    yield
    joint_tree.use(None)


@pytest.fixture
def only_compiled(monkeypatch) -> None:
    """NumPy's forward kinematics of more than two configurations fail; two are used to describe the
    tree."""
    poses = ForwardKinematics.poses

    def of_two(self, qpos, mocap):
        assert qpos.shape[1] == 2, "computed by NumPy"
        return poses(self, qpos, mocap)

    monkeypatch.setattr(ForwardKinematics, "poses", of_two)


def kinematics_of(name: str, tmp_path: Path) -> tuple[MujocoKinematics, mujoco.MjModel]:
    scene, _ = load(tmp_path, SCENES[name] or HUMANOID.read_text())
    return scene.kinematics, scene.mj_model


def coordinates_of(mj_model: mujoco.MjModel, count: int) -> np.ndarray:
    """Random coordinates with quaternions of norms near 1, far from it and 0, and angles at ends of
    quadrants."""
    rng = np.random.default_rng(count)
    qpos = rng.normal(0.0, 3.0, (count, mj_model.nq))
    odd = rng.random(qpos.shape) < 0.2
    qpos[odd] = rng.choice(ODD, int(odd.sum()))
    for joint in range(mj_model.njnt):
        start = mj_model.jnt_qposadr[joint] + 3 * (
            mj_model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
        )
        if mj_model.jnt_type[joint] in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            quaternion = rng.normal(size=(count, 4))
            quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
            quaternion *= rng.choice(
                [1.0, 1.0, 1.0 + 1e-15, 1.0 + 1e-4, 7.0, 1e-16, 0.0], (count, 1)
            )
            qpos[:, start : start + 4] = quaternion
    return qpos


def both(
    kinematics: MujocoKinematics, qpos: np.ndarray, mocap: np.ndarray | None, monkeypatch
) -> list[np.ndarray]:
    """Bits of the poses by compiled code and by NumPy."""
    joint_tree.use(TreeLoader())
    compiled = kinematics.poses(qpos, mocap)
    joint_tree.use(None)
    monkeypatch.undo()
    return [compiled.view(np.int64), kinematics.poses(qpos, mocap).view(np.int64)]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 4001])
@pytest.mark.parametrize("name", [*SCENES, "mocap"])
def test_poses_equal_to_the_bit(name, count, tmp_path, only_compiled, monkeypatch):
    kinematics, mj_model = kinematics_of(name.replace("mocap", "every joint"), tmp_path)
    mocap = np.random.default_rng(1).normal(size=(count, 1, 7)) if name == "mocap" else None
    compiled, by_numpy = both(kinematics, coordinates_of(mj_model, count), mocap, monkeypatch)
    np.testing.assert_array_equal(compiled, by_numpy)


@pytest.mark.parametrize("angle", [2.0 * MODERATE * 1.001, -1e300, np.inf, np.nan])
def test_angles_beyond_those_of_compiled_code_are_computed_by_numpy(angle, tmp_path, monkeypatch):
    kinematics, mj_model = kinematics_of("ant", tmp_path)
    qpos = coordinates_of(mj_model, 20)
    qpos[13, 8] = angle
    compiled, by_numpy = both(kinematics, qpos, None, monkeypatch)
    np.testing.assert_array_equal(compiled, by_numpy)
    if abs(angle) < np.inf:
        assert np.isfinite(compiled.view(np.float64)).all()


def test_there_may_be_no_configurations(tmp_path, monkeypatch):
    kinematics, mj_model = kinematics_of("ant", tmp_path)
    assert both(kinematics, np.zeros((0, mj_model.nq)), None, monkeypatch)[0].shape == (0, 9, 7)


def test_there_may_be_no_bodies(tmp_path, monkeypatch):
    scene, _ = load(tmp_path, "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    assert both(scene.kinematics, np.zeros((5, 0)), None, monkeypatch)[0].shape == (5, 0, 7)


class StubMotion:
    """A motion without poses; `has_joint_tree` None is that of a recording of body poses."""

    warnings = ()
    float_type = np.dtype(np.float64)
    sha256 = ""
    episodes = None

    def __init__(self, frames: int, worlds: int = 1, has_joint_tree: bool | None = True) -> None:
        self.time = self.step = np.zeros(frames)
        self.world_count = worlds
        if has_joint_tree is not None:
            self.has_joint_tree = has_joint_tree


@pytest.mark.parametrize(
    ("motion", "is_compiled", "is_begun"),
    [
        *(
            (StubMotion(1, has_joint_tree=known), True, bool(known))
            for known in (True, False, None)
        ),
        (StubMotion(MANY), False, True),
        (StubMotion(MANY // 8, 8), False, True),
        (StubMotion(MANY - 1), False, False),
        (StubMotion(MANY, has_joint_tree=False), False, False),
        (StubMotion(MANY, has_joint_tree=None), False, False),
        (SlicedMotion(StubMotion(MANY), range(MANY)), False, True),
        (SlicedMotion(StubMotion(MANY), range(0, MANY, 2)), False, False),
        (MergedMotion([None, StubMotion(MANY)], None), False, True),
        (MergedMotion([StubMotion(MANY, has_joint_tree=None), None], None), False, False),
    ],
)
def test_the_kernel_is_compiled_only_for_many_configurations(
    motion, is_compiled, is_begun, monkeypatch
):
    begun = []
    for name, answer in (("is_loaded", False), ("is_found", is_compiled)):
        monkeypatch.setattr(
            f"collidecli.engine.joint_kinematics.{name}", lambda *_, answer=answer: answer
        )
    monkeypatch.setattr(
        "collidecli.engine.joint_kinematics.begin_loading", lambda *_: begun.append(1)
    )
    begin_loading_kinematics(motion)
    assert bool(begun) == is_begun
