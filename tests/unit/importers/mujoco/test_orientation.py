"""Every form of orientation of MJCF gives the poses that MuJoCo's own compiler gives it."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from tests.support.mujoco_scenes import load

SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3)]
MIXED = ["XYZ", "ZYX", "xYz", "XyZ", "xyZ", "zzZ", "YxZ", "ZXZ"]


def poses(mj_model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, data)
    return data.geom_xpos.copy(), data.geom_xmat.copy()


def check(tmp_path, text: str) -> None:
    """The importer's model, whose orientations are resolved by this program, against that of the same text."""
    scene, _ = load(tmp_path, text)
    theirs = mujoco.MjModel.from_xml_string(text)
    for ours, expected in zip(poses(scene.mj_model), poses(theirs), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    np.testing.assert_allclose(scene.mj_model.geom_size, theirs.geom_size, atol=1e-12)


@pytest.mark.parametrize("angle", ["degree", "radian"])
@pytest.mark.parametrize("sequence", SEQUENCES + MIXED)
def test_euler_angles_of_every_sequence(tmp_path, sequence, angle):
    euler = "20 -50 110" if angle == "degree" else "0.4 -0.9 2.1"
    check(
        tmp_path,
        f"""<mujoco><compiler angle="{angle}" eulerseq="{sequence}"/><worldbody>
        <geom type="box" size="0.1 0.2 0.3" euler="{euler}"/>
        <frame euler="{euler}"><body pos="1 2 3" euler="{euler}"><joint/>
          <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2" euler="{euler}"/></body></frame>
        </worldbody></mujoco>""",
    )


Z_AXES = ("1 2 3", "0 0 1", "0 0 -1", "2.7e-7 0 -3", "3.3e-7 0 -3", "0 -9e-8 1", "0 -1.1e-7 1")
FORMS = (
    *(f'axisangle="{values}"' for values in ("1 2 3 40", "0 0 -2 -200")),
    *(f'zaxis="{values}"' for values in Z_AXES),
    'xyaxes="1 1 0 -1 2 0.5"',
    'quat="1 2 3 4"',
)


@pytest.mark.parametrize("form", FORMS)
def test_other_forms(tmp_path, form):
    check(
        tmp_path,
        f"""<mujoco><worldbody><geom type="box" size="0.1 0.2 0.3" {form}/>
        <frame {form}><body pos="1 2 3" {form}><joint/><geom type="box" size="0.1 0.2 0.3" {form}/></body></frame>
        </worldbody></mujoco>""",
    )


@pytest.mark.parametrize(
    "ends", ["0 0 0 0.1 0.2 0.3", "1 1 1 1 1 -2", "1 1 1 1 1 2", "3 0 0 -1 0 0", "9e-8 0 -1 0 0 0"]
)
@pytest.mark.parametrize("kind", ["capsule", "cylinder", "ellipsoid", "box"])
def test_ends(tmp_path, kind, ends):
    """MuJoCo's z axis points from the second end to the first."""
    check(
        tmp_path,
        f"""<mujoco><worldbody><body pos="1 2 3" zaxis="1 0 2"><joint/>
        <geom type="{kind}" size="0.1" fromto="{ends}"/></body></worldbody></mujoco>""",
    )
