"""One motion is one contact set, whichever kind of recording holds it.

The joints of a drawn robot have limits and one coordinate each, so that every kind has the same
numbers, and the poses must be equal to the last bit. A converted trajectory has poses in place of
joints, and keeps the bits of its quaternions.
"""

import pickle
import shlex

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import RecordingOptions
from tests.cli.conftest import collide, here

__all__ = ["collide", "here"]

SEEDS = 3
TYPES = ("hinge", "slide")
JOINTS = 4
FRAMES = 12
RATE = 0.02
"""Between two frames [s]."""
NAMES = tuple(f"joint{k}" for k in range(JOINTS))
STATE = ("--joint-names", ",".join(NAMES))


def write_robot(path, random):
    """A chain of links that moves through a floor and three balls."""
    opened = []
    for name in NAMES:
        axis = " ".join(map(repr, random.normal(size=3).tolist()))
        kind = random.choice(TYPES)
        opened.append(
            f'<body pos="0 0 0.2" name="of_{name}"><joint name="{name}" type="{kind}" axis="{axis}"'
            ' range="-2 2" limited="true"/><geom type="capsule" size="0.05 0.08"/>'
        )
    balls = "".join(
        f'<geom size="0.25" pos="{x:.17g} {y:.17g} 0.5"/>'
        for x, y in random.uniform(-0.3, 0.3, (3, 2))
    )
    floor = '<geom type="plane" size="5 5 0.1" pos="0 0 0.3"/>'
    text = f"{floor}{balls}{''.join(opened)}{'</body>' * JOINTS}"
    compiler = '<compiler angle="radian"/>'
    path.write_text(f"<mujoco>{compiler}<worldbody>{text}</worldbody></mujoco>")


def write_kinds(folder, time, positions):
    """The recordings of a motion, by name: file and further words of the command."""
    table = pandas.DataFrame({"time": time, **dict(zip(NAMES, positions.T, strict=True))})
    table.to_csv(folder / "titles.csv", index=False, float_format="%.17g")
    np.savez(folder / "qpos.npz", qpos=positions, time=time)
    np.savez(folder / "named.npz", measured=positions, time=time)
    with h5py.File(folder / "named.h5", "w") as file:
        file["robot/measured"] = positions
        file["robot/time"] = time
    (folder / "named.pkl").write_bytes(pickle.dumps({"measured": positions, "time": time}))
    return {
        "csv": ("titles.csv",),
        "qpos": ("qpos.npz",),
        "npz": ("named.npz", "--state", "measured", *STATE),
        "hdf5": ("named.h5", "--state", "/robot/measured", *STATE),
        "pickle": ("named.pkl", "--state", "measured", *STATE),
        "trajectory": ("converted.h5",),
    }


def poses_of(words):
    """Poses and episodes of the motion that the words of a recording give."""
    given = dict(zip(words[1::2], words[2::2], strict=True))
    names = tuple(filter(None, given.get("--joint-names", "").split(",")))
    options = RecordingOptions(state=given.get("--state", ""), joint_names=names)
    request = SceneRequest(scenes=["robot.xml"], trajectory=words[0], recording=options)
    _, motion = scene_in_motion(request)
    try:
        return motion.read(range(len(motion.time))), motion.episodes
    finally:
        motion.close()


def hash_without_episodes(collide, words):
    """The content hash of a run with some words, whose contact set has contacts and no episodes."""
    output = "of_kind.contacts.h5"
    collide.ok(f"run robot.xml -t {shlex.join(words)} -o {output} --force")
    with collidecli.open_contacts(output) as contacts:
        assert contacts.episodes is None, words
        assert contacts.contact_count > 0
        return contacts.content_sha256


@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_motion_has_one_content_hash(here, collide, seed):
    random = np.random.default_rng(seed)
    write_robot(here / "robot.xml", random)
    time = np.arange(FRAMES) * RATE
    kinds = write_kinds(here, time, random.uniform(-1.5, 1.5, (FRAMES, JOINTS)))
    convert = shlex.join(kinds["csv"])
    collide.ok(f"traj convert {convert} --scene robot.xml -o converted.h5")
    expected = poses_of(kinds["qpos"])[0]
    hashes = []
    for kind, words in kinds.items():
        poses, episodes = poses_of(words)
        np.testing.assert_array_equal(poses, expected, err_msg=kind)
        assert episodes is None, kind
        copies = (*words, "--worlds", "2")
        hashes.append([hash_without_episodes(collide, each) for each in (words, copies)])
    assert hashes == hashes[:1] * len(kinds)


def test_demonstrations_stay_episodes(here, collide):
    """One that a pattern names, and one that is chosen, as of several."""
    random = np.random.default_rng(SEEDS)
    write_robot(here / "robot.xml", random)
    for count, options in ((1, ()), (3, ("--demos", "demo_0"))):
        with h5py.File(here / "demos.h5", "w") as file:
            for demo in range(count):
                file[f"demo_{demo}/q"] = random.uniform(-1.5, 1.5, (FRAMES, JOINTS))
        words = ("demos.h5", "--state", "demo_*/q", *STATE, "--fps", "50", *options)
        collide.ok(f"run robot.xml -t {shlex.join(words)} -o {count}.h5")
        with collidecli.open_contacts(f"{count}.h5") as contacts:
            assert contacts.episodes is not None
            assert contacts.episodes.name == ("demo_0",)
            assert contacts.to_pandas()["episode"].unique().tolist() == ["demo_0"]
