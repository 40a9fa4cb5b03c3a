"""collide audit of particles, cloths and soft bodies, in frames and between them: depths and steps
by brute force in float64, classes, names, and what has no depth."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdPhysics, Vt

import collidecli
from collidecli import ModelBuilder
from collidecli.analysis.touch_intervals import Names
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.verbs.audit.limits import AuditedShapes
from tests.support.contact_sets import small_model
from tests.support.meshes import every_distance, grid

BALL = 0.2
"""Radius of the ball at the origin [m]."""
GROUND = -0.3
"""Height of the ground [m]."""
DROP = 0.01
THICK = 0.004
"""Radii of loose particles and of the cloth's [m]."""
FRAMES = 12
RATE = 24.0
PAIRS = ("/World/ball", "/World/cloth"), ("/World/ball", "/World/drops")
GROUND_PAIRS = ("/World/ground", "/World/cloth"), ("/World/ground", "/World/drops")


def write_scene(path: Path, points: dict[str, np.ndarray], faces: np.ndarray) -> None:
    """A ball and the ground, a cloth and loose particles. points: "cloth" and "drops", float32[F,
    n, 3]."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(RATE)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(len(points["cloth"]) - 1)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.CreateRadiusAttr(BALL)
    ground = UsdGeom.Plane.Define(stage, "/World/ground")
    ground.CreateAxisAttr(UsdGeom.Tokens.z)
    ground.AddTranslateOp().Set((0.0, 0.0, GROUND))
    cloth = UsdGeom.Mesh.Define(stage, "/World/cloth")
    cloth.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(faces)))
    cloth.CreateFaceVertexIndicesAttr(Vt.IntArray(faces.reshape(-1).tolist()))
    cloth.GetPrim().CreateAttribute("collide:particleRadius", Sdf.ValueTypeNames.Float).Set(THICK)
    drops = UsdGeom.Points.Define(stage, "/World/drops")
    drops.CreateWidthsAttr([2.0 * DROP])
    for name, prim in (("cloth", cloth), ("drops", drops)):
        for frame, positions in enumerate(points[name]):
            prim.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(positions), frame)
    for prim in (ball, ground, cloth, drops):
        UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    stage.GetRootLayer().Export(str(path))


@pytest.fixture
def points(here) -> dict[str, np.ndarray]:
    """Positions in scene.usda: a rough cloth that sinks through the ball into the ground, and drops
    in fast random motion."""
    rng = np.random.default_rng(5)
    vertices, faces = grid(8, 8)
    vertices = (vertices - vertices.mean(axis=0)) * (0.6 / np.ptp(vertices[:, 0]))
    rough = rng.normal(0.0, 0.01, (FRAMES, len(vertices), 3))
    down = np.linspace(0.3, -0.31, FRAMES)[:, None] * [0.0, 0.0, 1.0]
    drops = rng.uniform(-0.5, 0.5, (FRAMES, 60, 3))
    drops[..., 2] += 0.19
    found = {
        "cloth": (vertices + rough + down[:, None]).astype(np.float32),
        "drops": drops.astype(np.float32),
    }
    write_scene(here / "scene.usda", found, faces)
    return found | {"faces": faces}


def depths(points: dict[str, np.ndarray]) -> dict[tuple[str, str], np.ndarray]:
    """float64[F]: greatest depth of each pair in each frame, 0 without penetration."""
    cloth = points["cloth"].astype(np.float64)
    drops = points["drops"].astype(np.float64)
    triangles = cloth[:, points["faces"]]
    near = [every_distance(np.zeros((1, 3)), corners).min() for corners in triangles]
    distance = {
        PAIRS[0]: np.array(near) - BALL - THICK,
        PAIRS[1]: np.linalg.norm(drops, axis=2).min(axis=1) - BALL - DROP,
        GROUND_PAIRS[0]: cloth[..., 2].min(axis=1) - GROUND - THICK,
        GROUND_PAIRS[1]: drops[..., 2].min(axis=1) - GROUND - DROP,
    }
    return {pair: np.maximum(0.0, -values) for pair, values in distance.items()}


@pytest.fixture
def audit(here, collide):
    """audit(*options): the result; the exit code must agree with it."""
    return lambda *options: collide.verdict("audit", *options)


@pytest.fixture(params=["scene", "set"])
def source(request, points, collide) -> list[str]:
    """The scene, and its contact set with contacts up to 5 cm and with self-contacts."""
    if request.param == "scene":
        return ["scene.usda"]
    words = ("--soft-gap", "0.05", "--self-contacts", "0.02", "--sweep")
    collide.ok("run scene.usda", *words, "-o", "set.h5", "-q")
    return ["set.h5"]


def test_depths_are_those_of_brute_force(audit, source, points):
    limit = 0.03
    result = audit(*source, "--max-depth", str(limit), "--mask", "mask.npz")
    expected = depths(points)
    assert all((values > 0.0).any() for values in expected.values())
    found = {(pair["shape0"], pair["shape1"]): pair for pair in result["pairs"]}
    assert found.keys() == expected.keys()
    for pair, values in expected.items():
        row = found[pair]
        assert row["depth"] == pytest.approx(values.max(), abs=1e-6)
        assert row["frame"] == values.argmax()
        assert row["cells"] == (values > 0.0).sum()
        assert row["cells_over"] == (values > limit).sum()
        assert row["start_depth"] == pytest.approx(values[0], abs=1e-6)
        assert row["check"] == ("ground" if pair in GROUND_PAIRS else "depth")
    every = np.array(list(expected.values()))
    with np.load("mask.npz") as mask:
        assert mask["depth"][:, 0] == pytest.approx(every.max(axis=0), abs=1e-6)
        of_ground = every[[pair in GROUND_PAIRS for pair in expected]]
        assert mask["ground_depth"][:, 0] == pytest.approx(of_ground.max(axis=0), abs=1e-6)
        deepest = [list(expected)[n] for n in every.argmax(axis=0)]
        shown = mask["shape_path"][mask["deepest"][:, 0]]
        assert [tuple(pair) for pair in shown.tolist()] == deepest
        if "tunnels" not in result:
            assert mask["usable"][:, 0].tolist() == (every.max(axis=0) <= limit).tolist()


def test_limits_and_classes_name_particle_objects(audit, source, here):
    (here / "limits.toml").write_text(
        'max-depth = 1.0\nmax-ground = "1mm"\nallow = [["/World/drops", "*"]]\n'
        '[[pair]]\nbetween = ["/World/cloth", "*/ball"]\nmax-depth = "2mm"\n'
    )
    result = audit(*source, "--limits", "limits.toml")
    checks = {(pair["shape0"], pair["shape1"]): pair for pair in result["pairs"]}
    assert checks[PAIRS[0]]["exceeds"] == ["own"]
    assert checks[GROUND_PAIRS[0]]["exceeds"] == ["ground"]
    assert [checks[pair]["allowed"] for pair in (PAIRS[1], GROUND_PAIRS[1])] == [True, True]
    result = audit(*source, "--ground-shapes", "*/cloth")
    checks = {(pair["shape0"], pair["shape1"]): pair["check"] for pair in result["pairs"]}
    assert [checks[PAIRS[0]], checks[GROUND_PAIRS[0]]] == ["ground", "ground"]
    assert [checks[PAIRS[1]], checks[GROUND_PAIRS[1]]] == ["depth", "depth"]


def test_triggers_are_left_out(audit, points, collide):
    collide.ok("run scene.usda --triggers */ball --sweep -o set.h5 -q")
    for words in (["scene.usda", "--triggers", "*/ball", "--sweep"], ["set.h5"]):
        result = audit(*words)
        assert {pair["shape0"] for pair in result["pairs"]} == {"/World/ground"}
        assert "/World/ball" not in {row["shape0"] for row in result["tunnels"]}


def test_particles_that_tunnel(audit, source, points):
    """A drop tunnels through the ball where its segment comes near and its ends do not; all drops
    are one pair, which tunnels once a step."""
    result = audit(*source, "--sweep", "--mask", "mask.npz")
    drops = points["drops"].astype(np.float64)
    reach = BALL + DROP
    steps = {}
    for frame, (begin, end) in enumerate(pairwise(drops)):
        along = end - begin
        part = np.clip(-(begin * along).sum(axis=1) / (along * along).sum(axis=1), 0.0, 1.0)
        least = np.linalg.norm(begin + part[:, None] * along, axis=1) - reach
        apart = [np.linalg.norm(ends, axis=1) > reach for ends in (begin, end)]
        tunnels = (least < 0.0) & apart[0] & apart[1]
        if tunnels.any():
            square = (along * along).sum(axis=1)[tunnels]
            half = (begin * along).sum(axis=1)[tunnels]
            outside = (begin * begin).sum(axis=1)[tunnels] - reach * reach
            enter = (-half - np.sqrt(half * half - square * outside)) / square
            steps[frame] = enter.min(), -least[tunnels].min(), tunnels.sum()
    assert max(count for *_, count in steps.values()) > 1
    row = next(row for row in result["tunnels"] if (row["shape0"], row["shape1"]) == PAIRS[1])
    first = min(steps)
    assert (row["steps"], row["frame"]) == (len(steps), first)
    assert row["time"] == pytest.approx((first + steps[first][0]) / RATE, abs=1e-6)
    assert row["depth"] == pytest.approx(max(depth for _, depth, _ in steps.values()), abs=1e-4)
    assert row["exceeds"]
    with np.load("mask.npz") as mask:
        usable = mask["usable"][:, 0]
    assert not usable[[*steps]].any()
    assert not usable[[frame + 1 for frame in steps]].any()
    allowed = audit(*source, "--sweep", "--allow", "/World/*,/World/*")
    assert allowed["passed"]


def test_a_scene_agrees_with_its_contact_set(audit, points, collide):
    collide.ok("run scene.usda --sweep -o set.h5 -q")
    of_scene, of_set = (audit(name, "--sweep") for name in ("scene.usda", "set.h5"))
    for name in ("checks", "usable", "series", "pairs", "tunnels"):
        assert of_scene[name] == of_set[name]


def two_cloths(gap: float):
    """A sheet of two triangles, and one that falls through it in the step from frame 1 to 2, from
    `gap` above to `gap` below [m]."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, (0.0, 0.0, -9.0, 0.0, 0.0, 0.0, 1.0), radius=0.1, key="far")
    for key in ("lower", "upper"):
        builder.add_cloth_mesh(vertices=vertices, indices=[0, 1, 2, 0, 2, 3], key=key)
    positions = np.zeros((4, 1, 8, 3))
    positions[..., :4, :] = vertices
    positions[..., 4:, :] = vertices * [0.4, 0.3, 1.0] + [0.25, 0.35, 0.0]
    positions[..., 4:, 2] += np.array([3 * gap, gap, -gap, -3 * gap])[:, None, None]
    return builder.finalize(), positions


def test_a_cloth_through_a_cloth():
    model, positions = two_cloths(0.1)
    found = collidecli.collide(model, particle_q=positions, sweep=True, self_contacts=0.01)
    with pytest.warns(UserWarning, match="have no depth and are not audited"):
        audited = collidecli.audit(found)
    (row,) = list(audited.result.tunnels or ())
    assert (row["shape0"], row["shape1"], row["steps"], row["frame"]) == ("lower", "upper", 1, 1)
    assert audited.pairs == []
    assert audited.usable[:, 0].tolist() == [True, False, False, True]
    assert not audited.passed
    with pytest.warns(UserWarning, match="have no depth"):
        allowed = collidecli.audit(found, allow=[("lower", "upper")])
    assert allowed.passed
    with pytest.warns(UserWarning, match="have no depth"):
        later = collidecli.audit(found, frames="2:")
    assert later.result.tunnels == []


def test_a_cloth_through_itself():
    """Two sheets of one object, of which the upper one falls through the lower one."""
    positions = two_cloths(0.1)[1]
    faces = [0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7]
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=positions[0, 0], indices=faces, key="cloth")
    model = builder.finalize()
    found = collidecli.collide(model, particle_q=positions, sweep=True, self_contacts=0.01)
    with pytest.warns(UserWarning, match="have no depth"):
        (row,) = list(collidecli.audit(found).result.tunnels or ())
    assert (row["shape0"], row["shape1"], row["steps"], row["frame"]) == ("cloth", "cloth", 1, 1)


def test_self_contacts_between_frames_of_a_scene(audit, here, collide):
    """Both sheets of the scene's cloth, as of its set; without a sweep the option is of no use."""
    positions = two_cloths(0.1)[1][:, 0]
    faces = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]])
    far = np.full((len(positions), 1, 3), 5.0)
    moved = {"cloth": (positions + 2.0).astype(np.float32), "drops": far.astype(np.float32)}
    write_scene(here / "scene.usda", moved, faces)
    words = ("scene.usda", "--sweep", "--self-contacts", "0.01")
    collide.ok("run", *words, "-o", "set.h5", "-q")
    result = audit(*words)
    (row,) = result["tunnels"]
    assert (row["shape0"], row["shape1"], row["frame"]) == ("/World/cloth", "/World/cloth", 1)
    assert audit("set.h5")["tunnels"] == result["tunnels"]
    assert audit("scene.usda", "--sweep")["tunnels"] == []
    answer = collide.ok("audit scene.usda --self-contacts 0.01 --self-contact-rings 2")
    assert "--self-contacts has an effect with --sweep alone" in answer.err


def test_particles_of_several_worlds_have_one_name():
    """Worlds of two templates: a particle of one path in each, and one of every world."""
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.1, key="ball")
    builder.add_particles([[0.0, 0.0, 0.095]], radius=0.01, key="dust")
    for height in (0.08, 0.05):
        own = ModelBuilder()
        own.add_particles([[0.0, 0.0, height]], radius=0.01, key="grain")
        builder.add_world(own)
    audited = collidecli.audit(collidecli.collide(builder.finalize()), max_depth="4cm")
    found = {(pair["shape0"], pair["shape1"]): pair for pair in audited.pairs}
    assert found.keys() == {("ball", "grain"), ("ball", "dust")}
    grain = found["ball", "grain"]
    assert grain["depth"] == pytest.approx(0.06, abs=1e-7)
    assert (grain["world"], grain["cells"], grain["cells_over"]) == (1, 2, 1)


def test_an_object_with_the_path_of_a_shape_has_its_kind():
    shapes = small_model().shapes
    names = shapes.path
    objects = ParticleObjects(
        (names[0], "own"),
        ("cloth", "soft"),
        np.array([-1, -1], np.int32),
        np.array([0, 3]),
        np.array([3, 4]),
    )
    plain = AuditedShapes(
        names, Names.of(names, shapes.template), [""] * len(names), shapes.body < 0, names
    )
    items = plain.with_objects(objects, shapes.template)
    assert items.names.text == (*names, f"{names[0]} (cloth)", "own")
    assert items.is_object.tolist() == [False] * len(names) + [True, True]
    assert not items.is_ground[-2:].any()


def test_particles_have_no_volume(audit, points, collide):
    result = audit("scene.usda", "--overlap-volume", "--deepest-point")
    for pair in result["pairs"]:
        assert pair["overlap_volume"] is pair["deepest_point"] is None
        assert pair["overlap_note"] == "particles have no volume"
    assert "particles have no volume" in collide.ok("audit scene.usda --overlap-volume").out


def test_particles_of_a_set_of_touches(audit, points, collide):
    """Depths of particles are known there, those of shapes are not."""
    collide.ok("run scene.usda --touch-only --gap 0 -o set.h5 -q")
    result = audit("set.h5")
    expected = depths(points)
    for pair in result["pairs"]:
        key = pair["shape0"], pair["shape1"]
        assert pair["depth"] == pytest.approx(expected.pop(key).max(), abs=1e-6)
    assert not expected
