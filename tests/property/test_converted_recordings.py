"""A run of a converted recording has the content hash of a run of the recording."""

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from tests.cli.conftest import collide, here

__all__ = ["collide", "here"]

FRAMES = 40
SCENE = """<mujoco><compiler angle="radian"/><worldbody>
<geom type="plane" size="9 9 0.1"/>
<body name="base" pos="0.1 0.2 0.3" euler="0.3 0.1 0.7"><geom type="box" size="0.3 0.2 0.1"/>
 <body name="arm" pos="0 0 0.2" euler="0.1 0.2 0.3"><joint type="hinge" axis="1 2 3"/>
  <geom type="capsule" size="0.05 0.2"/>
  <body name="hand" pos="0 0 0.3"><joint type="ball"/><geom type="box" size="0.1 0.1 0.1"/></body>
 </body></body>
<body name="stone" pos="0.2 0 0.2"><freejoint/><geom type="box" size="0.2 0.1 0.3"/></body>
<body name="guide" mocap="true" pos="0 0.2 0.2"><geom type="sphere" size="0.2"/></body>
</worldbody></mujoco>"""


def read_poses(path, copies):
    """Poses and float type of the motion that a recording is of the scene in `copies` worlds."""
    request = SceneRequest(scenes=["scene.xml"], trajectory=path, worlds=copies)
    _, motion = scene_in_motion(request)
    try:
        return motion.read(range(len(motion.time))), motion.float_type
    finally:
        motion.close()


def content_hash(collide, path, copies):
    collide.ok(f"run scene.xml -t {path} -o {path}.contacts.h5 --force --worlds {copies}")
    with collidecli.open_contacts(f"{path}.contacts.h5") as contacts:
        assert contacts.contact_count > FRAMES
        return contacts.content_sha256


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("options", ["--joint", "--float-type float32", "--float-type float64"])
def test_a_run_of_a_converted_recording_has_its_content_hash(here, collide, options, copies):
    (here / "scene.xml").write_text(SCENE)
    record = f"record scene.xml --force -o motion.h5 --frames {FRAMES} --noise 0.3"
    collide.ok(f"{record} --worlds {copies} {options}")
    collide.ok(f"traj convert motion.h5 -o once.h5 --scene scene.xml --worlds {copies}")
    collide.ok(f"traj convert once.h5 -o twice.h5 --scene scene.xml --worlds {copies}")
    collide.ok("check once.h5 twice.h5")
    names = ("motion.h5", "once.h5", "twice.h5")
    poses, types = zip(*(read_poses(name, copies) for name in names), strict=True)
    assert len(set(types)) == 1
    assert poses[0].tobytes() == poses[1].tobytes() == poses[2].tobytes()
    assert len({content_hash(collide, name, copies) for name in names}) == 1
    with h5py.File("once.h5") as once, h5py.File("twice.h5") as twice:
        assert once["body_q"][()].tobytes() == twice["body_q"][()].tobytes()
        assert once.attrs["format_version"].tolist() == [1, 2]


def test_only_a_converted_file_says_that_its_quaternions_are_kept(here, collide):
    """So that files of other programs, and of earlier versions, have the results that they had."""
    (here / "scene.xml").write_text(SCENE)
    collide.ok("record scene.xml --force -o motion.h5 --frames 3")
    with h5py.File("motion.h5", "a") as file:
        assert file.attrs["format_version"].tolist() == [1, 1]
        quaternion = np.array([0.6, 0.0, 0.8 * (1 + 4 * np.finfo(float).eps), 0.0])
        file["body_q"][..., 3:] = quaternion
    poses, _ = read_poses("motion.h5", 1)
    moved = poses[..., 3:] != quaternion
    assert moved.any()


@pytest.mark.parametrize("name", ["quaternions", "point_type"])
def test_another_value_of_an_attribute_is_refused(here, collide, name):
    (here / "scene.xml").write_text(SCENE)
    collide.ok("record scene.xml --force -o motion.h5 --frames 3")
    collide.ok("traj convert motion.h5 -o poses.h5 --scene scene.xml")
    with h5py.File("poses.h5", "a") as file:
        file["body_q"].attrs[name] = "other"
    collide.refused("run scene.xml -t poses.h5 -o out.h5", told=name)
