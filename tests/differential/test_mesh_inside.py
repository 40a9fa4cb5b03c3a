"""The inside of closed and hollow meshes: spheres in known solids, and real robots' meshes at any
gap."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.answers import ROUNDING as ROUNDING_OF_SIGNS
from tests.support.answers import Form, PairCase, answers, described, report, rules
from tests.support.mesh_pairs import (
    FOLDERS,
    FclPair,
    engine_inside,
    mesh_distance,
    placed,
    posed,
    robot_meshes,
    scattered_points,
)
from tests.support.meshes import (
    Mesh,
    blob,
    box,
    joined,
    knot,
    point_distances,
    rough,
    segment_distances,
    turned,
    windings,
)
from tests.support.oracle import ROUNDING

KINDS = (ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.BOX)


def real_mesh(path: Path) -> tuple[Form, TriangleMesh, np.ndarray | None]:
    """A file's mesh, as read and as repaired; and triangles [F, 3, 3] of its solid, None of an open
    one.

    The triangles are the file's own where a winding number is right for them.
    """
    vertices, faces = read_mesh(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mesh = triangle_mesh(vertices, faces, str(path))
    as_read = set(mesh.repairs.counts()) <= {"united", "welded"}
    solid = (
        (vertices[faces] if as_read else mesh.vertex[mesh.face] + mesh.center)
        if mesh.is_closed
        else None
    )
    return Form(path.name, ShapeType.MESH, mesh=(vertices, faces)), mesh, solid


def real_cases(path: Path, count: int, seed: int) -> tuple[list[PairCase], np.ndarray | None]:
    """A case of each kind with `count` poses near the surface and anywhere; and the solid of
    `real_mesh`."""
    first, _, solid = real_mesh(path)
    vertices, faces = first.mesh
    rng = np.random.default_rng(seed)
    cases = []
    for kind in KINDS:
        length = first.extent * 10.0 ** rng.uniform(-1.5, -0.3)
        size = {
            ShapeType.SPHERE: (1.0,),
            ShapeType.CAPSULE: (0.4, 0.6),
            ShapeType.BOX: (0.8, 0.5, 0.3),
        }[kind]
        poses = np.zeros((count, 2, 7))
        poses[:, 0, 6] = 1.0
        poses[:, 1, :3] = scattered_points(rng, vertices[faces], count)
        # Some are moved off, so that the shape does not cross the surface.
        off = rng.normal(size=(count, 3))
        off *= (
            rng.choice([0.0, 1.0, 2.0], (count, 1))
            * length
            / np.linalg.norm(off, axis=1, keepdims=True)
        )
        turn = rng.normal(size=(count, 4))
        poses[:, 1, :3] += off
        poses[:, 1, 3:] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        cases.append(
            PairCase(first, Form(kind.label, kind, tuple(length * one for one in size)), 1.0, poses)
        )
    return cases, solid


def true_distances(case: PairCase, solid: np.ndarray | None) -> np.ndarray:
    """float64[P]: distances of surfaces where the shapes are apart, -inf where they overlap [m]."""
    corners = with_area(case.first.corners)
    second = case.second
    result = np.empty(len(case.poses))
    inside = (
        np.zeros(len(result), bool)
        if solid is None
        else np.abs(windings(solid, case.poses[:, 1, :3])) > 0.5
    )
    for row, pose in enumerate(case.poses[:, 1]):
        if second.type == ShapeType.SPHERE:
            apart = point_distances(corners, pose[:3]).min() - second.size[0]
        elif second.type == ShapeType.CAPSULE:
            ends = posed(np.array([[0.0, 0.0, -second.size[1]], [0.0, 0.0, second.size[1]]]), pose)
            apart = segment_distances(corners, ends[0], ends[1]).min() - second.size[0]
        else:
            pair = FclPair(
                (case.first.vertices, case.first.mesh[1]),
                box(*second.size),
                case.poses[row, 0],
                pose,
                closed=(False, True),
            )
            apart = -np.inf if pair.overlaps() else pair.distance()
        # Where no surface is crossed, the whole shape is on the side of its centre.
        result[row] = -np.inf if inside[row] or apart < 0.0 else apart
    return result


def with_area(corners: np.ndarray) -> np.ndarray:
    """The triangles [F, 3, 3] that are no lower than 1e-12 of their longest side; the program omits
    the others too."""
    sides = corners - np.roll(corners, 1, axis=1)
    longest = np.linalg.norm(sides, axis=2).max(1)
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    return corners[area > 1e-12 * longest**2]


SIZES = (1e-3, 1.0, 1e3)
RADIUS = 0.02
POINTS = 1000
ON_SURFACE = 1e-9
"""Share of the size of a mesh: nearer points are neither inside nor outside."""
BOX = box(1.0, 1.0, 1.0)
DOUBLED = BOX[0], np.concatenate([BOX[1], BOX[1][:1]])
SOUP = BOX[0][BOX[1]].reshape(-1, 3), np.arange(36).reshape(12, 3)
CASES: dict[str, tuple[Mesh, dict[tuple[float, float, float], float]]] = {
    # From 0.5 to 1.5 along x, to 1.2 along y and z: what is nearest outside of both boxes may be an
    # edge of the two.
    "poking": (
        joined(BOX, box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85))),
        {
            (0.05, 0.0, 0.0): -0.95,
            (0.38, 0.1, 0.0): -0.62,
            (0.7, 0.7, 0.7): -float(np.hypot(0.3, 0.2)),
            (1.2, 0.8, 0.8): -0.3,
            (2.0, 0.8, 0.8): 0.5,
            (0.0, 0.0, 1.5): 0.5,
        },
    ),
    "box in box": (
        joined(BOX, box(0.4, 0.4, 0.4)),
        {(0.05, 0.0, 0.0): -0.95, (0.38, 0.1, 0.0): -0.62, (1.5, 0.0, 0.0): 0.5},
    ),
    "cavity": (
        joined(BOX, turned(box(0.5, 0.5, 0.5))),
        {(0.05, 0.0, 0.0): 0.45, (0.7, 0.0, 0.1): -0.2, (1.3, 0.0, 0.0): 0.3},
    ),
    "touching": (
        joined(BOX, box(1.0, 1.0, 1.0, (2.0, 0.0, 0.0))),
        {(0.95, 0.3, 0.0): -0.7, (1.0, 0.3, 0.2): -0.7},
    ),
    "touching part": (
        joined(BOX, box(1.0, 0.5, 0.5, (2.0, 0.0, 0.0))),
        {(0.95, 0.0, 0.0): -float(np.hypot(0.05, 0.5))},
    ),
    "inside out": (turned(BOX), {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "duplicate": (DOUBLED, {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "soup": (SOUP, {(0.05, 0.0, 0.0): -0.95, (1.5, 0.0, 0.0): 0.5}),
    "knot": (knot(), {(2.5, 0.0, 0.05): -0.25, (2.5, 0.0, 1.0): 0.7, (1.0, 0.05, -1.0): -0.15}),
    "along an edge": (
        joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))),
        {(0.9, 0.8, 0.1): -0.1, (0.5, 1.4, 0.0): 0.4},
    ),
}
SAMPLE = (
    # Several bodies, one in or through another.
    "adroit_hand/resources/meshes/F2.stl",
    "meshes/idx-f1.obj",
    "cassie_description/meshes/foot-crank.stl",
    "cassie_description/meshes/heel-spring.stl",
    "cassie_description/meshes/plantar-rod.stl",
    "quadrotor/quadrotor_base.stl",
    "shoulder_v0/upper_arm_roll_L.stl",
    "tilting_laser_v0/hok_tilt.stl",
    "tilting_laser_v0/tilting_hokuyo_L.stl",
    "torso_v0/torso.stl",
    # Surfaces that cross themselves, or have edges of four triangles.
    "upper_arm_v0/elbow_flex.stl",
    "gripper/fingertip.STL",
    "simple/wrist_pitch_right.stl",
    "meshes/fb_palm_ref.obj",
    "meshes/sake_finger_knuckle.obj",
    "laikago_description/meshes/thigh.obj",
    "arm/arm_6.stl",
    # Cracks, fins.
    "meshes/sake_finger_tip.obj",
    "meshes/link_13.0.STL",
    "meshes/link_3.0.STL",
    "finger_edu_description/meshes/base_front.stl",
    "meshes/left_hand_thumb_0_link.STL",
    # Sound ones.
    "adroit_hand/resources/meshes/F1.stl",
    "tiago_description/meshes/arm/arm_6.stl",
)
"""Ends of paths of real meshes."""


def distance_at(mesh: Mesh, size: float, center: tuple[float, float, float]) -> float:
    """Of a sphere about a point from a mesh, in parts of the size."""
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_shape_mesh(-1, size * mesh[0], mesh[1])
    builder.add_shape_sphere(builder.add_body(), radius=RADIUS * size)
    body_q = np.array([[[[*(size * np.array(center)), 0.0, 0.0, 0.0, 1.0]]]])
    return (
        float(collidecli.collide(builder.finalize(), body_q, gap=3.0 * size).distance.min()) / size
    )


@pytest.mark.share(6, 3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_a_sphere_knows_how_deep_it_is(name, size):
    mesh, truth = CASES[name]
    """How far its centre is inside, or more where it must go farther to be free of a corner that
    points inwards."""
    for center, inside in truth.items():
        found = distance_at(mesh, size, center) + RADIUS
        assert (
            1.05 * inside - ROUNDING <= found <= inside + ROUNDING
            if inside < 0.0
            else found == pytest.approx(inside)
        )


@pytest.mark.parametrize("size", SIZES)
def test_where_a_body_crosses_itself(size):
    """The nearest exit from the knot's crossing is 0.28 to the side; a triangle of the downward
    exit begins at z = 0.1.

    A triangle that is hidden in part is in the tree as a whole: a point's nearest place may be on
    its hidden part, but the translation along it ends inside, and the search goes on.
    """
    assert distance_at(knot(), size, (1.0, 0.02, 0.0)) + RADIUS == pytest.approx(-0.28, abs=0.01)


def ending(ends: tuple[str, ...]) -> list[Path]:
    return [path for path in robot_meshes(ends) if path.as_posix().endswith(ends)]


def check_file(path: Path, seed: int) -> bool:
    """Whether a file's mesh is closed; the engine then has POINTS on the side that the winding
    number has."""
    _, mesh, solid = real_mesh(path)
    if solid is None:
        return False
    points = scattered_points(np.random.default_rng(seed), mesh.vertex[mesh.face], POINTS)
    inside, distance = engine_inside(mesh, points)
    numbers = windings(solid - mesh.center, points)
    assert np.abs(numbers - np.round(numbers)).max() < 0.1
    judged = distance > ON_SURFACE * 2.0 * mesh.half_extents.max()
    assert judged.sum() > 0.9 * POINTS
    assert not (judged & (inside != (np.abs(numbers) > 0.5))).any(), (path, mesh.repairs.counts())
    return True


@pytest.mark.rest
@pytest.mark.parametrize("of", ["a sample", pytest.param("all", marks=pytest.mark.slow)])
def test_real_meshes_have_the_inside_of_the_winding_number(of):
    paths = ending(SAMPLE)[::3] if of == "a sample" else robot_meshes()
    if not paths:
        pytest.skip("no robots are installed")
    closed = [check_file(path, seed) for seed, path in enumerate(paths)]
    assert sum(closed) > (0.5 * len(closed) if of == "all" else max(1, len(closed) - 1))


# Hollow meshes: only the surface collides, from both sides; against brute force over their
# triangles.

HOLLOW = ShapeConfig(is_solid=False)
BLOB = blob(np.random.default_rng(3), 7, 9)
FRAMES = 40


def inside_and_outside(seed: int, size: float) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: turned at random, the second anywhere about the first's middle."""
    rng = np.random.default_rng(seed)
    body_q = rng.normal(size=(FRAMES, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    body_q[:, 0, 0, :3] = 0.0
    body_q[:, 0, 1, :3] *= 0.6
    body_q[..., :3] *= size
    return body_q


def least_distances(add_first, add_second, body_q: np.ndarray, gap: float) -> np.ndarray:
    builder = ModelBuilder()
    builder.default_gap = gap
    add_first(builder, builder.add_body())
    add_second(builder, builder.add_body())
    found = collidecli.collide(builder.finalize(), body_q, device="cpu", cache_limit=0)
    return np.array(
        [found.cell(frame, 0).distance.min(initial=np.inf) for frame in range(len(body_q))]
    )


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("other", ["sphere", "box", "mesh"])
def test_the_distance_inside_is_that_of_the_surface(other, size):
    """Where the two do not cross, inside and outside; a solid mesh has contacts with all that is
    inside."""
    radius = 0.05 * size
    small = box(*(0.05 * size * np.ones(3)))
    adds = {
        "sphere": lambda b, body: b.add_shape_sphere(body, radius=radius),
        "box": lambda b, body: b.add_shape_box(body, None, radius, radius, radius),
        "mesh": lambda b, body: b.add_shape_mesh(body, *small, cfg=HOLLOW),
    }
    body_q = inside_and_outside(1, size)
    shell = BLOB[0] * size, BLOB[1]
    found = least_distances(
        lambda b, body: b.add_shape_mesh(body, *shell, cfg=HOLLOW), adds[other], body_q, 0.3 * size
    )
    solid = least_distances(
        lambda b, body: b.add_shape_mesh(body, *shell), adds[other], body_q, 0.3 * size
    )
    apart = inside = 0
    for frame in range(FRAMES):
        corners = placed(shell, body_q[frame, 0, 0])
        if other == "sphere":
            true = float(point_distances(corners, body_q[frame, 0, 1, :3]).min()) - radius
        else:
            true = mesh_distance(corners, placed(small, body_q[frame, 0, 1]))
        if 1e-6 * size < true < 0.3 * size * (1.0 - 1e-6):
            assert found[frame] == pytest.approx(true, abs=3e-6 * size)
            apart += 1
            inside += solid[frame] < -radius
        elif true > 0.3 * size * (1.0 + 1e-6):
            assert found[frame] == np.inf
    assert apart > 5
    assert inside > 2


def test_shells_in_each_other():
    large = box(1.0, 1.0, 1.0)
    small = box(0.3, 0.3, 0.3)
    pose = np.zeros((1, 1, 2, 7))
    pose[..., 6] = 1.0
    for first, second, expected in (
        (HOLLOW, HOLLOW, 0.7),
        (HOLLOW, None, 0.7),
        (None, HOLLOW, -1.3),
    ):
        found = least_distances(
            lambda b, body, cfg=first: b.add_shape_mesh(body, *large, cfg=cfg),
            lambda b, body, cfg=second: b.add_shape_mesh(body, *small, cfg=cfg),
            pose,
            0.8,
        )
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_terrain_in_a_shell():
    pose = np.zeros((1, 1, 2, 7))
    pose[..., 6] = 1.0
    terrain = rough(1)
    # The terrain's own vertices are inside the shell, 1 m from its sides.
    above = least_distances(
        lambda b, body: b.add_shape_mesh(body, *box(9.0, 9.0, 9.0), cfg=HOLLOW),
        lambda b, body: b.add_shape_heightfield(
            body, terrain.heights, terrain.hx, terrain.hy, terrain.base
        ),
        pose,
        0.1,
    )
    assert above[0] == np.inf


def test_particles_in_a_shell():
    large = box(1.0, 1.0, 1.0)
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *large, cfg=HOLLOW)
    builder.add_particles(
        np.array([[0.0, 0.0, 0.0], [0.97, 0.0, 0.0], [1.5, 0.0, 0.0]]), radius=0.01
    )
    contacts = collidecli.collide(builder.finalize(), device="cpu", soft_gap=0.05)
    rows = contacts.groups["soft_contacts"].columns
    assert rows["indices"][:, 0].tolist() == [1]
    np.testing.assert_allclose(rows["distance"], 0.02, atol=1e-6)


def test_inner_walls_of_a_hollow_mesh_stay():
    one = box(1.0, 1.0, 1.0)
    two = box(0.5, 0.5, 0.5)
    both = (
        np.concatenate([one[0], two[0] + [1.0, 0.0, 0.0]]),
        np.concatenate([one[1], two[1] + len(one[0])]),
    )
    hollow, solid = (triangle_mesh(*both, "", is_solid=flag) for flag in (False, True))
    assert len(hollow.face) == len(both[1])
    assert len(solid.face) != len(both[1])
    assert not hollow.is_closed
    assert not hollow.has_front


def test_a_hollow_mesh_is_no_hull():
    one = box(1.0, 1.0, 1.0)
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *one, cfg=HOLLOW)
    builder.add_shape_mesh(-1, *one)
    model = builder.finalize()
    assert [surface is None for surface in model.convex_surfaces] == [True, False]


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda b: b.add_shape_sphere(-1, radius=1.0, cfg=HOLLOW), "a sphere cannot be hollow"),
        (
            lambda b: b.add_shape_heightfield(-1, np.zeros((2, 2)), cfg=HOLLOW),
            "a heightfield cannot be hollow",
        ),
        (
            lambda b: b.add_shape_convex_hull(-1, BLOB[0], cfg=HOLLOW),
            "a convex mesh cannot be hollow",
        ),
        (
            lambda b: b.add_shape_mesh(-1, *BLOB, cfg=HOLLOW, two_sided=False),
            "hollow and one-sided",
        ),
        (
            lambda b: b.add_shape_mesh(-1, triangle_mesh(*BLOB, ""), cfg=HOLLOW),
            "the TriangleMesh is solid",
        ),
        (
            lambda b: b.add_shape_mesh(
                -1, *BLOB, cfg=ShapeConfig(is_solid=False, sdf_max_resolution=16)
            ),
            "a hollow mesh has no signed distance field",
        ),
        (lambda b: b.add_shape_mesh(-1, *BLOB, cfg=ShapeConfig(is_solid="no")), "is_solid"),
    ],
)
def test_refused_by_name(add, words):
    with pytest.raises(InputError, match=words) as error:
        add(ModelBuilder())
    assert error.value.fix


# Spheres, capsules and boxes around public robots' meshes: no contact has a wrong sign at any gap,
# none is missing.

GAPS = (0.0, 1e-3, 0.02, 0.3)
"""[m]"""
BAND = 1e-6
"""Of the mesh's half size: nearer to touching either sign is right, as FCL rounds so."""
FCL = 1e-6
"""Tolerance of FCL's distances, `DistanceRequest.distance_tolerance` [m]."""
MOST_FACES = 60_000
ELBOW = "upper_arm_v0/elbow_flex.stl"
ARM = "gr1/meshes/l_lower_arm_pitch.STL"
PALM = "alex_description/meshes/fb_palm_ref.obj"
"""Meshes whose surface crosses itself: contacts and clearances had different rules for what is
inside."""
SHOULDER = "g1_description/meshes/right_shoulder_yaw_link.STL"
"""Two bodies with a common flush side and common vertices: a quarter of the surface was taken as
hidden within them."""
BALLS = [
    # At a gap of 0.1 m these were as deep as they are far off.
    (ELBOW, 0.01, (0.001679160378790151, 0.0584291192555024, -0.03381310578582203)),
    (ELBOW, 0.03, (-0.00682046906646297, 0.06519482846207333, -0.13350103562860538)),
    (ELBOW, 0.0007, (0.0009462352380298078, 0.10028167269831237, -0.13245335230515343)),
    (ARM, 0.01, (-0.001378374847619615, 0.007465928185675652, -0.05164532743445942)),
    # These are inside, and were apart at a gap of 0.1 m.
    (ARM, 0.0007, (0.009149775762954629, 0.03096005638830783, 0.013663792767081004)),
    (PALM, 0.0007, (0.04664282375999898, -0.017403398087469518, -0.04002426406421507)),
    (PALM, 0.0007, (0.03226134140872006, -0.023426656951424416, -0.06254672520573908)),
    (PALM, 0.0007, (0.006708638394954808, -0.010879490255340268, -0.011281663662122576)),
]


def contradictions(path: Path, count: int, seed: int) -> tuple[list[str], int]:
    """What is wrong about `count` poses of each kind, and the number of poses that are judged."""
    cases, solid = real_cases(path, count, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answers(cases, GAPS)
        lines = report(cases, found, rules(cases, found, GAPS))
    truth = np.concatenate([true_distances(case, solid) for case in cases])
    size = cases[0].first.extent
    surface = np.abs(truth) < BAND * size
    for k, gap in enumerate(GAPS):
        least = found.least[k]
        broken = {
            "no overlap": (truth > 0.0) & (least < -ROUNDING_OF_SIGNS * size),
            "an overlap": np.isinf(truth) & ~(least < ROUNDING_OF_SIGNS * size),
            "a contact in the gap": (truth < gap - BAND * size) & np.isinf(least),
            "the distance": (
                (truth > 0.0) & np.isfinite(least) & (np.abs(least - truth) > max(BAND * size, FCL))
            ),
        }
        for what, where in broken.items():
            rows = np.flatnonzero(where & ~surface)
            lines += [
                f"{len(rows)}: there is {what}, gap {gap:g} m; {described(cases, found, r)}; truth"
                f" {truth[r]:g}"
                for r in rows[:3]
            ]
    return [f"{path.name}: {line}" for line in lines], int((~surface).sum())


def check(paths: list[Path], count: int) -> None:
    if not paths:
        pytest.skip("no robots are installed")
    wrong = []
    judged = 0
    for seed, path in enumerate(paths):
        lines, poses = contradictions(path, count, seed)
        wrong = wrong + lines
        judged = judged + poses
    assert judged > 2.5 * count * len(paths)
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.rest
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))]
)
def test_a_sample_of_real_meshes(part):
    check(ending(SAMPLE)[part::8], 6)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_real_meshes(part):
    """Some of every folder: 256 meshes with 12 poses each."""
    small = [path for path in robot_meshes() if path.stat().st_size < 50 * MOST_FACES]
    check(small[:: max(1, len(small) // 256)][part::8], 4)


def installed(ends: str) -> Path:
    for path in ending((ends,)):
        return path
    pytest.skip(f"{ends} is not installed; {FOLDERS} may name its folder")


@pytest.mark.rest
@pytest.mark.share(4, 2)
@pytest.mark.parametrize("ends", [ELBOW, ARM, PALM, SHOULDER], ids=lambda ends: Path(ends).stem)
def test_meshes_that_cross_themselves(ends):
    check([installed(ends)], 30)


@pytest.mark.share(2)
@pytest.mark.parametrize(("ends", "radius", "center"), BALLS)
def test_balls_at_meshes_that_cross_themselves(ends, radius, center):
    """By the winding number and the nearest triangle, at every gap and for every answer."""
    first, _, solid = real_mesh(installed(ends))
    poses = np.array([[[0.0] * 6 + [1.0], [*center, 0.0, 0.0, 0.0, 1.0]]])
    case = PairCase(first, Form("sphere", ShapeType.SPHERE, (radius,)), 1.0, poses)
    truth = true_distances(case, solid)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answers([case], (0.0, 0.02, 0.1))
    for least in (*found.least[:, 0], found.clearance[0]):
        if truth > 0.0:
            assert least == pytest.approx(truth, abs=BAND * first.extent) or least == np.inf
        else:
            assert least < -radius
    assert found.least[2, 0] < 0.1
