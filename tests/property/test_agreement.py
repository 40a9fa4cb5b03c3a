"""Contacts, touch_only, clearance, distances, gradients and sweeps agree about every pair, at any
gap."""

from dataclasses import replace
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.matrix.cells import CELLS, NEVER, cell_name, poses_for, route
from tests.support.answers import (
    FLOAT32,
    GAPS,
    ROUNDING,
    SPHERE,
    Form,
    PairCase,
    answers,
    clearances,
    deepest,
    forms,
    model_of,
    placed,
    random_case,
    report,
    rules,
    touches_a_back,
)
from tests.support.contact_sets import write_contact_set
from tests.support.engine_runs import ROUND_AND_FLAT, add_shapes, random_poses
from tests.support.meshes import prism

pytestmark = pytest.mark.usefixtures("own_cache")
CLASSES = {
    "convex-convex": ("convex", "convex"),
    "closed-convex": ("closed", "convex"),
    "crossing-convex": ("crossing", "convex"),
    "open-convex": ("open", "convex"),
    "one_sided-convex": ("one-sided", "convex"),
    "heightfield-convex": ("heightfield", "convex"),
    "mesh-mesh": ("closed", "open"),
    "crossing-crossing": ("crossing", "crossing"),
    "one_sided-open": ("one-sided", "open"),
    "mesh-heightfield": ("heightfield", "closed"),
    "field-convex": ("field", "convex"),
}
SIZES = (1e-3, 1.0, 1e3)
PAIRS = 14
CONFIGURATIONS = 36
"""Pairs of shapes of a draw, and configurations of each."""
DRAWS = 10
SLOW_CLASSES = (
    "mesh-mesh",
    "crossing-crossing",
    "one_sided-open",
    "mesh-heightfield",
    "field-convex",
)
FEWER = 12
"""Of these classes the draw in `make test` has fewer configurations of each pair."""


def drawn(name: str, draw: int) -> list[PairCase]:
    """Cases of a class. Every second shape comes up in each draw; sizes and first shapes change
    from draw to draw."""
    rng = np.random.default_rng([draw, *name.encode()])
    first, second = (forms()[one] for one in CLASSES[name])
    count = FEWER if draw == 0 and name in SLOW_CLASSES else CONFIGURATIONS
    return [
        random_case(
            rng,
            first[int(rng.integers(len(first)))],
            second[k % len(second)],
            SIZES[(k + draw) % len(SIZES)],
            count,
        )
        for k in range(PAIRS)
    ]


EVERY_DRAW = pytest.mark.parametrize(
    "draw", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))]
)


@pytest.mark.share(11)
@EVERY_DRAW
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
def test_answers_agree(name, draw):
    cases = drawn(name, draw)
    found = answers(cases)
    overlap = found.clearance < -1e-3
    apart = found.clearance > 1e-9
    assert overlap.mean() > 0.1
    assert apart.mean() > 0.1
    broken = report(cases, found, rules(cases, found))
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.share(2)
@EVERY_DRAW
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
def test_distance_is_the_clearance(name, draw):
    """`distance` of two shapes is that of the model's pair, bit for bit; every pair of shapes in
    `make test-slow`."""
    if CLASSES[name][0] == "field":
        pytest.skip("a Shape has no signed distance field")
    for case in drawn(name, draw) if draw else drawn(name, 0)[2:3]:
        poses = case.poses * [*[case.scale] * 3, 1.0, 1.0, 1.0, 1.0]
        found = collidecli.distance(
            case.first.shape(case.scale),
            case.second.shape(case.scale),
            pose_a=poses[:, 0],
            pose_b=poses[:, 1],
        )
        near = collidecli.clearance(model_of([case], 0.0), placed([case]))
        np.testing.assert_array_equal(found.distance, near.distance[0, :, 0], err_msg=str(case))


@pytest.mark.share(4)
@EVERY_DRAW
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
def test_an_audit_reports_the_depths_of_the_contacts(name, draw, tmp_path):
    cases = drawn(name, draw) if draw else drawn(name, 0)[:3]
    model = model_of(cases, 0.1)
    contacts = collidecli.collide(model, placed(cases))
    columns = {column.name: getattr(contacts, column.name) for column in RIGID_COLUMNS}
    block = ContactBlock(0, np.diff(contacts.cell_start), columns)
    write_contact_set(tmp_path / "a.h5", model, block)
    depth = collidecli.audit(tmp_path / "a.h5").depth[0]
    np.testing.assert_array_equal(depth, np.maximum(-deepest(contacts)[0], 0.0))
    assert (depth > 0.0).sum() > 10


@pytest.mark.share(24, 4)
@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize(
    "name", ["convex", "closed", "crossing", "open", "one-sided", "heightfield", "field"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
def test_particles_are_balls(name, scale):
    """A particle's contacts and sweep have the sign of a ball's, and its distance where they are
    apart."""
    for index, form in enumerate(forms()[name]):
        case = random_case(np.random.default_rng([index, *name.encode()]), form, SPHERE, scale, 80)
        found = answers([case])
        soft, swept = particle_answers(form, scale, case.poses[:, 1, :3])
        # The radius is float32, too.
        slack = ROUNDING + FLOAT32 * (np.abs(found.clearance) + SPHERE.size[0]) + 0.5 * form.voxel
        apart = found.clearance > slack
        overlap = found.clearance < -slack
        assert min(apart.sum(), overlap.sum()) > 8, form.name
        wrong = apart & np.isfinite(soft) & (np.abs(soft - found.clearance) > slack)
        wrong |= overlap & ~(soft < slack)
        if form.two_sided:  # else the ball may leave over the border
            wrong |= overlap & (soft < found.clearance - slack)
        present = np.isfinite(found.least[-1])
        wrong |= (apart & (found.clearance < 0.99)) & (np.isfinite(soft) != present)
        wrong |= (apart & (found.clearance > 2e-6) & (swept != 0)) | (overlap & (swept != 1))
        rows = np.flatnonzero(wrong & ~touches_a_back([case], found))
        texts = [
            f"{case}, pose {case.poses[row, 1].tolist()}: particle {soft[row]:.9g}, sweep"
            f" {swept[row]}, ball {found.least[:, row].tolist()}, clearance"
            f" {found.clearance[row]:.9g}"
            for row in rows[:6]
        ]
        assert not texts, "\n".join([f"{len(rows)} of {len(soft)}", *texts])


def particle_answers(form: Form, scale: float, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of particles of SPHERE's radius the distance of their contact within the unit size, and a
    sweep at rest."""
    builder = collidecli.ModelBuilder()
    form.add(builder, -1, scale, 0.0)
    builder.add_particles(scale * points, radius=scale * SPHERE.size[0])
    model = builder.finalize()
    rows = collidecli.collide(model, soft_gap=scale, soft_elements="vertices").groups[
        "soft_contacts"
    ]
    least = np.full(len(points), np.inf)
    swept = np.zeros(len(points), int)
    np.minimum.at(least, rows.columns["indices"][:, 0], rows.columns["distance"] / scale)
    rest = np.tile(scale * points, (2, 1, 1, 1))
    found = collidecli.sweep(model, None, particle_q=rest, tolerance=1e-6 * scale).particles
    assert found is not None
    swept[found.particle] = np.where(found.touches, 1, -1)
    return least, swept


# Poses at which the answers about a pair once disagreed; random ones are in test_agreement.py.

FOUND = {
    "the nearest point is beside a vertex of the rim by less than a touch": (
        "heightfield/smooth closed/elbow 1000",
        "-1.6846449314248246 -0.8659984735054781 -0.09860787907865042",
        "0.38711051085677306 0.6329861614167783 0.6667112249280955 0.0704990382483252",
    ),
    "the overlap of an ellipsoid is less than the rounding of a float32 height": (
        "heightfield/rough convex/ellipsoid 0.001",
        "0.18855052598074779 0.03834489128216172 0.3357186256534705",
        "0.3336135597745693 -0.5981819478271564 0.7266662374107103 -0.053259078433727576",
    ),
    "a cap is behind a triangle parallel to it by 6e-9 of the size": (
        "heightfield/smooth convex/cylinder 1",
        "0.6960173780228346 0.02462093145571506 -0.40968783718704077",
        "0.6089334297137697 0.7623553894455778 -0.13675401558609715 -0.17120945529200302",
    ),
    "a vertex is below a cone's base, 4e-9 of the size inside its rim": (
        "open/channel convex/cone 1",
        "-0.5042078878671323 0.8051082095855479 1.0600427733640951",
        "-0.09635317710079579 0.07220677256377295 0.8204509578370047 -0.5588939729884798",
    ),
    "concave edges alone cross, from behind": (
        "one-sided/waves open/flat 1",
        "-0.27213440839368125 0.28032024921266674 -0.27505914672406406",
        "0.9202720177064291 0.3763507838201523 0.005476468078772604 0.10690888289509454",
    ),
    "beside the crossing two edges touch, which is a contact only with a gap": (
        "one-sided/waves open/fold 1",
        "0.16718183205016143 0.042150947601777955 0.14012900889665694",
        "-0.2520197280465146 0.9437850835661264 -0.13452182402482282 0.16631191050094743",
    ),
    "a wall is level with a corner of the border": (
        "one-sided/flat open/channel 1000",
        "0.8708912819587618 1.1941412407898058 -0.6549754055484676",
        "-0.22642051656181392 0.6698759211076939 -0.22642051656181397 -0.6698759211076939",
    ),
    "a wall is level with it, and leans by 1e-12": (
        "one-sided/flat open/channel 1000",
        "0.8708912819587618 1.1941412407898058 -0.6549754055484676",
        "-0.22642051656170353 0.669875921107358 -0.22642051656192436 -0.6698759211080297",
    ),
    "a pose whose last bit decides between two exits": (
        "crossing/knot crossing/pierced 1",
        "-1.939075220256791 -0.3961512284257498 0.5950061559032991",
        "0.9353847365623457 0.0455978947173117 0.3499154667392013 -0.023138555275279814",
    ),
}
"""Each pair, its size [m], and the second shape's position, of the unit size, and rotation."""


def form_named(kind: str, name: str) -> Form:
    return next(form for form in forms()[kind] if form.name == name)


def case_of(name: str) -> PairCase:
    pair, position, rotation = FOUND[name]
    *forms_of_pair, scale = pair.split()
    pose = np.array(
        [[[0, 0, 0, 0, 0, 0, 1], [*map(float, (*position.split(), *rotation.split()))]]], float
    )
    return PairCase(*(form_named(*form.split("/")) for form in forms_of_pair), float(scale), pose)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
def test_answers_agree_at(name):
    cases = [case_of(name)]
    found = answers(cases)
    broken = report(cases, found, rules(cases, found))
    assert not broken, "\n" + "\n".join(broken)


def test_concave_edges_that_cross_are_left_by_the_front_or_past_the_border():
    """By the front it would be 0.5361 m; past the border is nearer, and separates too."""
    case = case_of("concave edges alone cross, from behind")
    found = answers([case])
    normal = found.normal[0, 0]
    depth = -found.least[0, 0]
    assert normal[2] > -1e-6
    assert 0.0 < depth < 0.5361
    after = case.poses.copy()
    after[0, 1, :3] += (depth + 1e-6) * normal
    twin = replace(case, first=replace(case.first, two_sided=True), poses=after)
    assert clearances([twin])[0].distance[0, 0, 0] > 0.0


# Gradients of distance against central differences in float64 of the least distance, for every pair
# of types.

FRAMES = 40
STEP = 1e-4
"""Displacement [m] and rotation [rad] of the differences."""
SMOOTH = 0.02
"""Largest second difference over STEP of a distance without a kink, whose curvature is then below
200 / m."""
ERROR = 2e-3
"""Of a difference: STEP^2 / 6 times a third derivative of 200^2 / m^2 is 7e-5, rounding of EPA 1e-9
/ STEP is 1e-5, and a float32 point 1e-7 / STEP is 1e-3."""
DEPTH_ERROR = 0.02
"""The same of depths in surfaces of triangles, which are found to 1e-6 of a size of some 1 m: 2e-6
/ STEP."""
GRADIENT_PAIRS = [
    *combinations_with_replacement(ROUND_AND_FLAT, 2),
    *((ShapeType.PLANE, kind) for kind in (*ROUND_AND_FLAT, ShapeType.MESH)),
    *((kind, ShapeType.MESH) for kind in (ShapeType.SPHERE, ShapeType.BOX, ShapeType.CONVEX_MESH)),
    *((kind, ShapeType.HEIGHTFIELD) for kind in (ShapeType.SPHERE, ShapeType.BOX)),
    (ShapeType.MESH, ShapeType.MESH),
]
BRACKET = [(0.0, 0.0), (0.3, 0.0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.3), (0.0, 0.3)]
FAR = ShapeConfig(gap=2.0)


def pair_model(first: ShapeType, second: ShapeType, seed: int) -> Model:
    builder = ModelBuilder()
    rng = np.random.default_rng(seed)
    for name, kind in (("first", first), ("second", second)):
        if kind in ROUND_AND_FLAT:
            add_shapes(builder, rng, 1, lambda index: FAR, (kind,), name)
            continue
        body = builder.add_body(key=name)
        if kind == ShapeType.PLANE:
            builder.add_shape(body, kind, (), [0.1, -0.2, 0.3, 0.0, 0.6, 0.0, 0.8], FAR, key=name)
        elif kind == ShapeType.MESH:
            builder.add_shape_mesh(body, *prism(BRACKET, 0.1), cfg=FAR, key=name)
        else:
            heights = rng.uniform(0.0, 0.15, (3, 3))
            builder.add_shape_heightfield(body, heights, hx=0.3, hy=0.3, cfg=FAR, key=name)
    return builder.finalize()


def rotated(pose: np.ndarray, axis: int, angle: float) -> np.ndarray:
    """Poses [..., 7] after a rotation about an axis of the world through the body's origin."""
    turn = Rotation.from_rotvec(angle * np.eye(3)[axis]) * Rotation.from_quat(
        pose[..., 3:].reshape(-1, 4)
    )
    return np.concatenate([pose[..., :3], turn.as_quat().reshape(*pose.shape[:-1], 4)], axis=-1)


def moved(poses: np.ndarray, body: int, axis: int, step: float) -> np.ndarray:
    """Poses float64[F, 1, 2, 7] with one body moved along axis 0 to 2 or turned about axis 3 to
    5."""
    found = poses.copy()
    if axis < 3:
        found[:, :, body, axis] += step
    else:
        found[:, :, body] = rotated(poses[:, :, body], axis - 3, step)
    return found


def least(contacts: collidecli.Contacts) -> tuple[np.ndarray, np.ndarray]:
    """Row and float64 distance of the least contact of each frame."""
    start = contacts.cell_start
    assert (np.diff(start) > 0).all(), "every frame has a contact within the gap"
    rows = np.array([a + np.argmin(contacts.distance[a:b]) for a, b in pairwise(start)])
    apart = contacts.point1[rows] - contacts.point0[rows]
    return rows, np.sign(contacts.distance[rows]) * np.linalg.norm(apart, axis=1)


@pytest.mark.share(4)
@pytest.mark.parametrize(("first", "second"), GRADIENT_PAIRS, ids=lambda kind: kind.label)
def test_gradients_are_those_of_the_least_distance(first, second):
    model = pair_model(first, second, int(first) * 16 + int(second))
    poses = random_poses(np.random.default_rng(int(first) + 5), (FRAMES, 1, 2), 0.25)
    columns = ["distance_grad0", "distance_grad1", "grad_exact"]
    contacts = collidecli.collide(model, poses, device="cpu", columns=columns)
    rows, here = least(contacts)
    assert model.shapes.body.tolist() == [0, 1]
    steps = [(side, axis) for side in (0, 1) for axis in range(6)]
    probes = [moved(poses, side, axis, sign * STEP) for side, axis in steps for sign in (-1.0, 1.0)]
    _, probed = least(collidecli.collide(model, np.concatenate(probes), device="cpu"))
    probed = probed.reshape(len(steps), 2, len(poses))
    is_exact = contacts.columns["grad_exact"] == 1
    assert np.isin(np.flatnonzero(is_exact), rows).all(), "one contact of a pair at most"
    smooth = (np.abs(probed.sum(axis=1) - 2.0 * here) < SMOOTH * STEP).all(axis=0)
    assert smooth.mean() > 0.5
    # Slopes of depths in surfaces of triangles differ over the column's shorter steps.
    is_certain = smooth & ((here > 0.0) | (second < ShapeType.MESH))
    assert is_exact[rows][is_certain].all()
    assert is_exact[rows][smooth].mean() > 0.7
    smooth &= is_exact[rows]
    for index, (side, axis) in enumerate(steps):
        gradient = contacts.columns[f"distance_grad{side}"][rows, axis]
        difference = (probed[index, 1] - probed[index, 0]) / (2.0 * STEP)
        allowed = np.where(is_certain, ERROR, DEPTH_ERROR)
        assert (np.abs(gradient - difference) < allowed)[smooth].all(), (side, axis)


# The depth of a pair and the directions of its deepest contacts do not depend on the gap, for all
# pairs of types.

TURN = 1e-5
"""Of a normal: mesh contacts merge within 1e-6 rad, and float32 rounds 1e-7."""


def deepest_of(contacts, world: int) -> tuple[float, np.ndarray]:
    """The least distance, 0 without penetration, and the normals [n, 3] of the contacts that have
    it."""
    cell = contacts.cell(0, world)
    least = float(cell.distance.min(initial=0.0))
    if least > -ROUNDING:
        return 0.0, np.zeros((0, 3))
    return least, cell.normal[cell.distance <= least + ROUNDING + FLOAT32 * abs(least)].astype(
        np.float64
    )


def covered(normals: np.ndarray, others: np.ndarray) -> bool:
    """Whether each normal is among others."""
    return all((np.abs(others - normal).max(1) < TURN).any() for normal in normals)


def differences(
    cells: list[tuple[Form, Form]], poses: np.ndarray
) -> tuple[dict[str, list[str]], int]:
    """Of each pair the poses at which a gap changes what is deepest; and the number of overlaps."""
    cases = [PairCase(*cell, 1.0, poses[:, k]) for k, cell in enumerate(cells)]
    runs = [collidecli.collide(model_of(cases, gap), placed(cases), device="cpu") for gap in GAPS]
    wrong: dict[str, list[str]] = {}
    overlaps = 0
    for number, cell in enumerate(cells):
        for frame in range(len(poses)):
            found = [deepest_of(run, number * len(poses) + frame) for run in runs]
            depth, normals = found[0]
            overlaps += depth < 0.0
            allowed = ROUNDING + FLOAT32 * abs(depth)
            for gap, (other, theirs) in zip(GAPS[1:], found[1:], strict=True):
                if abs(other - depth) > allowed or not (
                    covered(normals, theirs) and covered(theirs, normals)
                ):
                    pose = poses[frame, number].tolist()
                    text = (
                        f"{depth} along {normals.tolist()}, at gap {gap:g} {other} along"
                        f" {theirs.tolist()}: {pose}"
                    )
                    wrong.setdefault(cell_name(cell), []).append(text)
                    break
    return wrong, overlaps


@pytest.mark.parametrize(("poses", "seed"), [(9, 20), pytest.param(60, 21, marks=pytest.mark.slow)])
def test_the_deepest_contact_does_not_depend_on_the_gap(poses, seed):
    touching = [cell for cell in CELLS if route(*cell) != NEVER]
    wrong, overlaps = differences(touching, poses_for(touching, poses, seed))
    assert overlaps > poses * len(touching) / 5
    assert not wrong, "\n".join(
        f"{name}: {len(texts)}, first {texts[0]}" for name, texts in wrong.items()
    )
