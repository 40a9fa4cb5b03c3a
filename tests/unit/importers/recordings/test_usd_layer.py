"""USD layers of time samples over a scene: composition, rates, and every refusal."""

import hashlib

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.usd.layers import read_motion_layer
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import load_scene, scene_in_motion
from collidecli.python.contacts import collide
from collidecli.verbs.traj.convert import convert
from tests.support.usd_scenes import BOTH, COLLIDER, check_refused, write_usda

MOVES = "double3 xformOp:translate.timeSamples = { 0: (0, 0, 0), 10: (10, 0, 0) }"
ORDER = 'uniform token[] xformOpOrder = ["xformOp:translate"]'
AT = f"double3 xformOp:translate = (1, 2, 3)\n{ORDER}"
SCENE = f"""
def Xform "World" {{
  def Sphere "ball" {BOTH} {{
    double radius = 0.5
    {AT}
  }}
  def Sphere "wall" {COLLIDER} {{
    double radius = 0.5
    {AT}
  }}
  def Camera "camera" {{
    {AT}
  }}
  def Scope "notes" {{
  }}
}}
"""


def over(body: str, *names: str) -> str:
    for name in reversed(names or ("World", "ball")):
        body = f'over "{name}" {{\n{body}\n}}'
    return body


def moved(
    folder, layer, head="timeCodesPerSecond = 10", scene=SCENE, scene_head=None, name="motion.usda"
):
    options = {} if scene_head is None else {"header": scene_head}
    path = write_usda(folder, scene, **options)
    write_usda(folder, layer, header=head, name=name)
    return scene_in_motion(SceneRequest(scenes=[str(path)], trajectory=str(folder / name)))


def places(motion, row=0):
    return motion.read(range(len(motion.time)))[:, 0, row, :3].tolist()


def test_the_layer_is_stronger_than_the_scene(tmp_path):
    scene, motion = moved(tmp_path, over(MOVES))
    assert places(motion) == [[0, 0, 0], [10, 0, 0]]
    assert motion.time.tolist() == [0.0, 1.0]
    assert motion.step.tolist() == [0, 10]
    assert motion.sha256 == hashlib.sha256((tmp_path / "motion.usda").read_bytes()).hexdigest()
    alone = load_scene([tmp_path / "s.usda"], None)
    assert alone.sha256 == scene.sha256
    assert alone.motion().read(range(1))[0, 0, 0, :3].tolist() == [1, 2, 3]
    _, motion = moved(tmp_path, over(MOVES), "framesPerSecond = 20")
    assert motion.time.tolist() == [0.0, 0.5]
    _, motion = moved(tmp_path, over(MOVES.replace(", 10: (10, 0, 0)", "")))
    assert places(motion) == [[0, 0, 0]]
    assert motion.sha256


@pytest.mark.parametrize("rate", [10, 24, 60])
def test_each_layer_keeps_its_own_rate(tmp_path, rate):
    """The scene moves the wall at 24 a second, the layer the ball at its own; the layer below lies
    5 codes late."""
    wall = f'"wall" {COLLIDER} {{\n'
    scene = SCENE.replace(f"{wall}    double radius = 0.5\n    {AT}", f"{wall}{MOVES}\n{ORDER}")
    write_usda(tmp_path, over(MOVES), header=f"timeCodesPerSecond = {rate}", name="below.usda")
    head = f"timeCodesPerSecond = {rate}\n subLayers = [@below.usda@ (offset = 5; scale = 2)]"
    loaded, motion = moved(
        tmp_path, "", head, scene, 'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = 24'
    )
    expected = sorted({0.0, 10 / 24, 5 / rate, 25 / rate})
    np.testing.assert_allclose(motion.time, expected, atol=1e-12)
    ball, wall = (loaded.model.bodies.path.index(f"/World/{name}") for name in ("ball", "wall"))
    x = np.array(places(motion, ball))[:, 0]
    np.testing.assert_allclose(x, np.clip((motion.time * rate - 5) / 2, 0, 10), atol=1e-9)
    np.testing.assert_allclose(
        np.array(places(motion, wall))[:, 0], np.clip(motion.time * 24, 0, 10), atol=1e-9
    )
    assert motion.sha256 != hashlib.sha256((tmp_path / "motion.usda").read_bytes()).hexdigest()


def test_a_static_collider_moves(tmp_path):
    scene, motion = moved(tmp_path, over(MOVES, "World", "wall"))
    assert scene.model.bodies.path == ("/World/ball", "/World/wall")
    assert places(motion, 1) == [[0, 0, 0], [10, 0, 0]]
    assert places(motion, 0) == [[1, 2, 3], [1, 2, 3]]


def test_a_prim_above_moves_what_is_below(tmp_path):
    _, motion = moved(tmp_path, over(f"{MOVES}\n{ORDER}", "World"))
    assert places(motion) == [[1, 2, 3], [11, 2, 3]]


def test_a_prim_of_an_instance_moves_alone(tmp_path):
    scene = f"""
def Xform "kit" {{
  def Sphere "ball" {BOTH} {{
    double radius = 0.5
    {AT}
  }}
}}
def Xform "World" {{
  def "a" (instanceable = true
    references = </kit>) {{
  }}
}}
"""
    loaded, motion = moved(tmp_path, over(MOVES, "World", "a", "ball"), scene=scene)
    assert places(motion, loaded.model.bodies.path.index("/World/a/ball")) == [
        [0, 0, 0],
        [10, 0, 0],
    ]
    assert places(motion, loaded.model.bodies.path.index("/kit/ball")) == [[1, 2, 3], [1, 2, 3]]


def test_splines_are_refused_by_name(tmp_path):
    """In the scene, and in a layer beside time samples: a frame could not stand where the spline
    has none."""
    spline = (
        "double xformOp:translateX.spline = {\n0: 0,\n10:"
        f" 5,\n}}\n{ORDER.replace('translate', 'translateX')}"
    )
    scene = SCENE.replace(AT, spline, 1)
    check_refused(
        lambda: load_scene([write_usda(tmp_path, scene)], None).motion(),
        ("spline", "</World/ball>"),
    )
    layer = over(over(MOVES, "wall") + "\n" + over(spline, "ball"), "World")
    with pytest.raises(InputError, match="spline"):
        moved(tmp_path, layer)


def test_a_changed_layer_is_read_again(tmp_path):
    """pxr keeps by path the layers of stages that are open."""
    layers = []
    for end in (10, 200):
        path = write_usda(tmp_path, over(MOVES.replace("10:", f"{end}:")), name="motion.usda")
        layers.append(read_motion_layer(str(path)))
        assert layers[-1].last == end


def test_whole_scenes_are_layers_too(tmp_path):
    from pxr import Usd

    animated = SCENE.replace("double3 xformOp:translate = (1, 2, 3)", MOVES, 1)
    path = write_usda(tmp_path, animated, name="whole.usda")
    stage = Usd.Stage.Open(str(path))
    stage.GetRootLayer().Export(str(tmp_path / "whole.usdc"))
    for name in ("whole.usda", "whole.usdc"):
        request = SceneRequest(
            scenes=[str(write_usda(tmp_path, SCENE))], trajectory=str(tmp_path / name)
        )
        assert places(scene_in_motion(request)[1]) == [[0, 0, 0], [10, 0, 0]]


@pytest.mark.parametrize(
    ("layer", "head", "words"),
    [
        (over(MOVES, "World", "bale"), "", ("</World/bale>", "not in the scene")),
        (
            over(f"{MOVES}\n{ORDER}", "World", "camera"),
            "",
            ("nothing that collides", "</World/camera>"),
        ),
        (over(MOVES, "World"), "", ("</World>", "not in the prim's xformOpOrder")),
        (
            over(MOVES.replace("translate", "translate:more")),
            "",
            ("xformOp:translate:more", "xformOpOrder"),
        ),
        (over(MOVES, "World", "notes"), "", ("Scope", "no transform")),
        (over(""), "", ("time samples",)),
        (over(MOVES), "metersPerUnit = 0.01", ("metersPerUnit is 0.01", "the scene's 1")),
        (over(MOVES), 'upAxis = "Y"', ("upAxis is Y", "the scene's Z")),
        (over(MOVES), "timeCodesPerSecond = 0", ("timeCodesPerSecond",)),
        (over(MOVES) + "}", "", ("cannot be read",)),
    ],
)
def test_refusals(tmp_path, layer, head, words):
    check_refused(lambda: moved(tmp_path, layer, head), ("motion.usda", *words))


def test_a_layer_of_a_name_that_usd_does_not_know_or_of_two_scenes_is_refused(tmp_path):
    check_refused(lambda: moved(tmp_path, over(MOVES), name="motion.dat"), ["ending"])
    scenes = [str(write_usda(tmp_path, SCENE, name=name)) for name in ("s.usda", "t.usda")]
    layer = str(write_usda(tmp_path, over(MOVES), name="motion.usda"))
    check_refused(
        lambda: scene_in_motion(SceneRequest(scenes=scenes, trajectory=layer)), ["one USD scene"]
    )


@pytest.mark.parametrize("moving", [(0, 1, 2), (1,)])
def test_environments_move_where_they_stand(tmp_path, moving):
    """Three environments 10 m apart; converted to a trajectory, the motion gives the same
    contacts."""
    ball = (
        f'def Sphere "ball" {BOTH} {{\ndouble radius = 0.5\n{AT}\n}}\ndef Sphere "base" {COLLIDER}'
        f" {{\n{ORDER}\n}}"
    )
    place = "double3 xformOp:translate = ({x}, 0, 0)\n" + ORDER
    all_three = "".join(
        f'def Xform "env_{k}" {{\n{place.format(x=10 * k)}\n{ball}\n}}\n' for k in range(3)
    )
    scene = f'def Xform "World" {{\ndef Xform "envs" {{\n{all_three}}}\n}}'
    falls = "double3 xformOp:translate.timeSamples = { 0: (0, 0, 3), 10: (0, 0, 1.25) }"
    layer = over("".join(over(falls, f"env_{k}", "ball") + "\n" for k in moving), "World", "envs")
    path = write_usda(tmp_path, scene)
    request = SceneRequest(
        scenes=[str(path)], trajectory=str(write_usda(tmp_path, layer, name="motion.usda"))
    )
    loaded, motion = scene_in_motion(request)
    contacts = collide(loaded.model, motion, gap=0.1, device="cpu")
    assert loaded.model.world_count == 3
    last = [contacts.cell(1, world) for world in range(3)]
    assert [cell.rigid_contact_count for cell in last] == [
        int(world in moving) for world in range(3)
    ]
    for world in moving:
        np.testing.assert_allclose(last[world].distance, [1.25 - 0.5 - 1.0], atol=1e-6)
        np.testing.assert_allclose(last[world].point0[:, 0], [10.0 * world], atol=1e-6)
    output = str(tmp_path / "converted.h5")
    assert convert(request, output).worlds == 3
    loaded, motion = scene_in_motion(SceneRequest(scenes=[str(path)], trajectory=output))
    again = collide(loaded.model, motion, gap=0.1, device="cpu")
    for name in ("distance", "point0", "cell_start"):
        np.testing.assert_allclose(getattr(again, name), getattr(contacts, name), atol=1e-6)


QUARTER = "[(1, 0, 0, 0), (0, 1, 0, 0)], 8: [(0.6, 0, 0.8, 0), (0, 0, 1, 0)]"
ARRAYS = {
    "positions": (
        "point3f[] positions.timeSamples = { 0: [(0, 0, 0), (4, 0, 0)], 10: [(1, 2, 3), (4, 0,"
        " 9)] }"
    ),
    "orientations": f"quath[] orientations.timeSamples = {{ 2: {QUARTER} }}",
    "orientationsf": f"quatf[] orientationsf.timeSamples = {{ 2: {QUARTER} }}",
    "scales": (
        "float3[] scales.timeSamples = { 0: [(1, 2, 3), (1, 1, 1)], 4: [(1, 2, 3), (1, 1, 1)] }"
    ),
}
PLACED = "point3f[] positions = [(0, 0, 0), (4, 0, 0)]"


def instancer(inside: str, beside: str = "") -> str:
    """Two instances of a prototype that is not below the instancer."""
    return (
        'def PointInstancer "points" {\nrel prototypes = </stock/box>\nint[] protoIndices = [0,'
        f' 0]\n{inside}\n}}\nclass "stock" {{\ndef Cube "box" {COLLIDER} {{\n}}\n}}\n{beside}'
    )


@pytest.mark.parametrize(
    "names",
    [
        ("positions",),
        ("orientations",),
        ("orientationsf",),
        ("positions", "orientationsf", "scales"),
    ],
)
@pytest.mark.parametrize("rate", [10, 24])
def test_arrays_of_a_point_instancer_move_as_in_the_scene_itself(tmp_path, names, rate):
    """With nothing else in the layer; the same samples in the scene are what they are held
    against."""
    samples = "\n".join(ARRAYS[name] for name in names)
    head = f'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = {rate}'
    inside = samples if "positions" in names else f"{PLACED}\n{samples}"
    whole = write_usda(tmp_path, instancer(inside), head, name="whole.usda")
    expected_scene = load_scene([whole], None)
    expected = expected_scene.motion()
    scene, motion = moved(tmp_path, f'over "points" {{\n{samples}\n}}', head, instancer(PLACED))
    assert scene.model.bodies.path == expected_scene.model.bodies.path
    assert len(motion.time) > 1
    np.testing.assert_array_equal(motion.time, expected.time)
    every = range(len(motion.time))
    np.testing.assert_array_equal(motion.read(every), expected.read(every))
    assert np.ptp(motion.read(every), axis=0).max() > 0.1


@pytest.mark.parametrize(
    ("prim", "array", "said"),
    [
        ("points", "orientations", "orientationsf, which USD uses instead"),
        ("stock", "scales", "moves nothing that collides"),
        ("elsewhere", "positions", "not in the scene"),
    ],
)
def test_arrays_that_move_no_instance_are_refused(tmp_path, prim, array, said):
    """Of orientations where the scene has those in single precision, and of what is no
    instancer."""
    scene = instancer(f"{PLACED}\nquatf[] orientationsf = [(1, 0, 0, 0), (1, 0, 0, 0)]")
    check_refused(lambda: moved(tmp_path, over(ARRAYS[array], prim), scene=scene), [said])
