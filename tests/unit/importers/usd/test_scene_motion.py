"""The motion in a USD stage's time samples, against USD's own world transforms."""

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from tests.support.usd_scenes import BODY, COLLIDER, load, sphere

HEADER = 'metersPerUnit = 0.5\n upAxis = "Z"\n timeCodesPerSecond = 10'
MOVE = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]'


def samples(translate="", orient=""):
    return (
        f"double3 xformOp:translate.timeSamples = {{ {translate} }}\n"
        f"quatd xformOp:orient.timeSamples = {{ {orient or '0: (1, 0, 0, 0)'} }}\n{MOVE}\n"
    )


def usd_poses(stage, path, codes, metres_per_unit):
    """(positions [m], rotation matrices) by pxr's own factoring of the world matrix, scale left out."""
    prim = UsdGeom.Xformable(stage.GetPrimAtPath(path))
    positions, rotations = [], []
    for code in codes:
        factored = Gf.Transform(prim.ComputeLocalToWorldTransform(Usd.TimeCode(float(code))))
        quaternion = factored.GetRotation().GetQuat()
        rotations.append(Rotation.from_quat([*quaternion.GetImaginary(), quaternion.GetReal()]).as_matrix())
        positions.append(np.multiply(factored.GetTranslation(), metres_per_unit))
    return np.array(positions), np.array(rotations)


def test_frames_are_the_union_of_all_samples(tmp_path):
    text = sphere("a", samples("0: (0, 0, 0), 10: (10, 0, 0)")) + sphere("b", samples("5: (0, 2, 0), 20: (0, 5, 0)"))
    scene, model = load(tmp_path, text + sphere("still"), header=HEADER)
    motion = scene.motion(model)
    np.testing.assert_allclose(motion.time, (0, 0.5, 1, 2))
    np.testing.assert_array_equal(motion.step, (0, 5, 10, 20))
    assert (motion.world_count, motion.float_type, motion.sha256) == (1, np.float64, "")
    poses = motion.read(range(4))
    assert poses.shape == (4, 1, 3, 7)
    np.testing.assert_allclose(poses[:, 0, 0, 0], (0, 2.5, 5, 5))
    np.testing.assert_allclose(poses[:, 0, 1, 1], (1, 1, 1.5, 2.5))  # held before its first sample
    np.testing.assert_array_equal(poses[:, 0, 2], np.tile(model.bodies.pose[2], (4, 1)))


def test_step_counts_frames_where_time_codes_are_not_whole(tmp_path):
    scene, model = load(tmp_path, sphere("a", samples("0: (0, 0, 0), 0.25: (1, 0, 0), 7: (2, 0, 0)")), header=HEADER)
    np.testing.assert_array_equal(scene.motion(model).step, (0, 1, 2))


def test_poses_against_usd_with_scale_and_reflection_above(tmp_path):
    """Bodies below an animated, scaled parent, itself below a mirrored one, at sampled times and between them."""
    turn = "0: (1, 0, 0, 0), 7: (0.5, 0.5, -0.5, 0.5), 11: (0.6, 0, 0.8, 0)"
    body = f'def Xform "b" {BODY} {{\n{samples("0: (1, 2, 3), 4: (3, 1, 0), 11: (-1, 0, 5)", turn)}'
    text = (
        'def Xform "m" {\nfloat3 xformOp:scale = (2, 2, 2)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
        f'def Xform "p" {{\n{samples("0: (0, 0, 1), 9: (1, 0, 0)", "0: (1, 0, 0, 0), 9: (0.8, 0, 0.6, 0)")}'
        f"{body}{sphere('s', apis=COLLIDER)}}}\n}}\n}}\n"
    )
    for mirror in (1, -1):
        scene, model = load(tmp_path, text.replace("(2, 2, 2)", f"(2, 2, {2 * mirror})"), header=HEADER)
        motion = scene.motion(model)
        codes = motion.step
        np.testing.assert_array_equal(codes, (0, 4, 7, 9, 11))
        poses = motion.read(range(5))[:, 0, 0]
        positions, rotations = usd_poses(scene.stage, "/m/p/b", codes, 0.5)
        np.testing.assert_allclose(poses[:, :3], positions, atol=1e-14)
        np.testing.assert_allclose(Rotation.from_quat(poses[:, 3:]).as_matrix(), rotations, atol=1e-14)
        np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1, atol=1e-15)
        np.testing.assert_array_equal(poses[0], model.bodies.pose[0])


@pytest.mark.parametrize("rate", ["0", "-24"])
def test_rate_that_is_none(tmp_path, rate):
    header = f'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = {rate}'
    scene, model = load(tmp_path, sphere("a", samples("0: (0, 0, 0), 1: (1, 0, 0)")), header=header)
    with pytest.raises(InputError, match="timeCodesPerSecond"):
        scene.motion(model)


def test_any_chunk_reads_the_same(tmp_path):
    track = ", ".join(f"{i}: ({i * i}, {-i}, {np.sin(i)})" for i in range(20))
    scene, model = load(tmp_path, sphere("a", samples(track)), header=HEADER)
    motion = scene.motion(model)
    whole = motion.read(range(20))
    for frames in (range(0, 7), range(7, 20), range(19, -1, -3), range(5, 5), range(2, 20, 5)):
        np.testing.assert_array_equal(motion.read(frames), whole[list(frames)])


def test_nothing_animated_is_no_motion(tmp_path):
    scene, model = load(tmp_path, sphere("a", samples("3: (1, 2, 3)")))
    assert scene.motion(model) is None
    np.testing.assert_allclose(model.bodies.pose[0, :3], (1, 2, 3))


def test_animated_static_collider_is_a_body(tmp_path):
    """And so is a body that is not enabled, when it is animated."""
    off = f'def Xform "off" {BODY} {{\nbool physics:rigidBodyEnabled = 0\n%s{sphere("t", apis=COLLIDER)}}}\n'
    text = sphere("s", samples("0: (0, 0, 0), 1: (1, 0, 0)"), COLLIDER)
    text += off % samples("0: (0, 0, 0), 1: (0, 1, 0)")
    text += f'def Xform "x" {{\n{samples("0: (0, 0, 0), 1: (0, 0, 1)")}{sphere("u", apis=COLLIDER)}}}\n'
    scene, model = load(tmp_path, text)
    assert set(model.bodies.path) == {"/s", "/off", "/x/u"}
    assert all(model.shapes.body >= 0)
    last = scene.motion(model).read(range(1, 2))[0, 0, :, :3]
    moved = {path: tuple(last[i]) for i, path in enumerate(model.bodies.path)}
    assert moved == {"/s": (1, 0, 0), "/off": (0, 1, 0), "/x/u": (0, 0, 1)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'def Xform "b" {BODY} {{\n{sphere("s", samples("0: (0, 0, 0), 1: (1, 0, 0)"), COLLIDER)}}}',
         ["</b/s>", "moves relative to its body </b>"]),
        (f'def Xform "b" {BODY} {{\n{samples("0: (0, 0, 0), 1: (1, 0, 0)")}'
         + sphere("s", 'uniform token[] xformOpOrder = ["!resetXformStack!"]', COLLIDER) + "}",
         ["</b/s>", "moves relative to its body </b>"]),
    ],
)  # fmt: skip
def test_colliders_that_move_within_their_body_are_refused(tmp_path, text, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    for words in said:
        assert words in str(error.value)


def matrices(*rows):
    return (
        "matrix4d xformOp:transform.timeSamples = { "
        + ", ".join(f"{i}: ({', '.join(str(r) for r in m)}, (0, 0, 0, 1))" for i, m in enumerate(rows))
        + ' }\nuniform token[] xformOpOrder = ["xformOp:transform"]\n'
    )


UNIT = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0))


@pytest.mark.parametrize(
    ("third", "said"),
    [
        (((2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 2, 0)), "scale changes over time (here it is 2, 2, 2)"),
        (((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, 0)), "scale changes over time (here it is -1, -1, -1)"),
        (((1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0)), "shear"),
        (((0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)), "scale of zero"),
        ((("nan", 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)), "not finite"),
    ],
)
def test_bad_frames_are_named(tmp_path, third, said):
    scene, model = load(tmp_path, sphere("a", matrices(UNIT, UNIT, third)) + sphere("b"))
    motion = scene.motion(model)
    motion.read(range(2))
    with pytest.raises(InputError) as error:
        motion.read(range(3))
    for words in ("s.usda", "</a>", "time code 2", said):
        assert words in str(error.value)
