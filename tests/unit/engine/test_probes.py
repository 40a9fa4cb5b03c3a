"""Distances of points and crossings of rays: against closed forms, MuJoCo and brute force."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.engine.distances.points import PointDistances, point_distances
from collidecli.engine.distances.probes import ProbePlan
from collidecli.engine.distances.rays import RayCaster
from collidecli.engine.pipeline_build import find_device
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.support.meshes import blob, box, every_distance, grid, length, torus, windings

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
FORMS = {
    "plane": {},
    "sphere": {"radius": 0.5},
    "capsule": {"radius": 0.3, "half_height": 0.5},
    "box": {"hx": 0.3, "hy": 0.5, "hz": 0.7},
    "cylinder": {"radius": 0.4, "half_height": 0.6},
    "cone": {"radius": 0.5, "half_height": 0.6},
    "ellipsoid": {"rx": 0.3, "ry": 0.5, "rz": 0.8},
}
ROUNDING = 1e-13
"""Of a distance, relative to the sizes and coordinates that it is computed from."""


def model_of(kind: str, scale: float = 1.0, **more) -> Model:
    builder = ModelBuilder()
    sizes = {name: scale * value for name, value in FORMS[kind].items()}
    getattr(builder, f"add_shape_{kind}")(builder.add_body(), **sizes, **more)
    return builder.finalize()


def of_mesh(mesh) -> Model:
    builder = ModelBuilder()
    builder.add_shape_mesh(builder.add_body(), mesh[0], mesh[1])
    return builder.finalize()


def plan_of(model: Model, count: int, margin: float = 0.0) -> ProbePlan:
    """Every point is measured from every shape."""
    zeros = np.zeros(count, np.int32)
    rows = np.arange(len(model.shapes))
    return ProbePlan(
        model, zeros, zeros, np.array([0, len(rows)]), rows, np.full(len(rows), margin)
    )


def cast(model: Model, start: np.ndarray, along: np.ndarray, pose: np.ndarray = IDENTITY):
    """Distances, rows and normals of rays in the world, with the body at a pose."""
    from collidecli.numerics.poses import compose_poses

    caster = RayCaster(plan_of(model, len(start)), start, along, find_device("cpu"))
    placed = compose_poses(pose, model.shapes.pose)[None]
    found = caster.measure(placed, IDENTITY[None, None], np.zeros(1, np.int32))
    return [each[0] for each in found]


def closed_form(kind: str, p: np.ndarray) -> np.ndarray:
    """float64[n]: signed distances of points from a shape of FORMS, by textbook formulas."""
    flat = np.hypot(p[:, 0], p[:, 1])
    z = p[:, 2]
    if kind == "plane":
        return z
    if kind == "sphere":
        return length(p) - 0.5
    if kind == "capsule":
        return length(p - np.column_stack([0 * z, 0 * z, np.clip(z, -0.5, 0.5)])) - 0.3
    if kind == "box":
        q = np.abs(p) - np.array([0.3, 0.5, 0.7])
        return length(np.maximum(q, 0.0)) + np.minimum(q.max(axis=1), 0.0)
    if kind == "cylinder":
        q = np.column_stack([flat - 0.4, np.abs(z) - 0.6])
        return np.hypot(*np.maximum(q, 0.0).T) + np.minimum(q.max(axis=1), 0.0)
    # A cone is a triangle in the half plane of axis and point.
    corners = np.array([[0.0, 0.6], [0.5, -0.6], [0.0, -0.6]])
    at = np.column_stack([flat, z])
    best = np.full(len(p), np.inf)
    for a, b in ((corners[0], corners[1]), (corners[1], corners[2])):
        t = np.clip((at - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        best = np.minimum(best, np.hypot(*(at - a - t[:, None] * (b - a)).T))
    inside = (z > -0.6) & (flat < 0.5 * (0.6 - z) / 1.2)
    return np.where(inside, -best, best)


def random_rays(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts outside and inside of shapes of half extent 1, and directions towards them and not."""
    rng = np.random.default_rng(seed)
    start = rng.normal(size=(count, 3)) * rng.choice([0.2, 1.0, 5.0], (count, 1))
    along = rng.uniform(-0.5, 0.5, (count, 3)) - start
    along[::5] = rng.normal(size=(len(along[::5]), 3))
    return start, along / length(along)[:, None]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind != "ellipsoid"])
def test_distances_of_points_are_closed_forms(kind, scale):
    points = np.random.default_rng(1).normal(size=(400, 3))
    points[:6] = np.concatenate([np.eye(3), -np.eye(3)]) * 0.25  # on the axes, inside
    points[6] = 0.0
    found = point_distances(model_of(kind, scale), 0, scale * points, find_device("cpu"))
    assert np.abs(found / scale - closed_form(kind, points)).max() < ROUNDING


def test_distances_of_points_from_an_ellipsoid_are_those_of_its_nearest_point():
    points = np.random.default_rng(2).normal(size=(300, 3))
    half = np.array([0.3, 0.5, 0.8])
    found = point_distances(model_of("ellipsoid"), 0, points, find_device("cpu"))
    # x = half^2 p / (half^2 + t) for the root t of |x / half| = 1 above -min(half)^2: bisection
    low = np.full(len(points), -(half.min() ** 2))
    high = np.full(len(points), 100.0)
    for _ in range(200):
        t = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            x = half**2 * points / (half**2 + t[:, None])
        over = ((x / half) ** 2).sum(axis=1) > 1.0
        low = np.where(over, t, low)
        high = np.where(over, high, t)
    inside = ((points / half) ** 2).sum(axis=1) < 1.0
    truth = length(points - x) * np.where(inside, -1.0, 1.0)
    assert np.abs(found - truth).max() < 1e-9


@pytest.mark.parametrize("mesh", [blob(np.random.default_rng(3)), torus(), grid(5)])
def test_distances_of_points_from_a_mesh_are_brute_force(mesh):
    points = np.random.default_rng(4).normal(size=(200, 3)) * 0.7
    points[:20] = mesh[0][:20]  # on the surface
    corners = mesh[0][mesh[1]]
    found = point_distances(of_mesh(mesh), 0, points - centre(mesh), find_device("cpu"))
    truth = every_distance(points, corners).min(axis=1)
    is_open = len(mesh[1]) == 50
    inside = np.zeros(len(points), bool) if is_open else np.abs(windings(corners, points)) > 0.5
    inside[:20] = False
    assert np.abs(found - np.where(inside, -truth, truth)).max() < 1e-12


def centre(mesh) -> np.ndarray:
    return 0.5 * (mesh[0].min(axis=0) + mesh[0].max(axis=0))


def test_a_heightfield_is_its_solid():
    heights = np.array([[0.0, 0.3, 0.1], [0.2, 0.5, 0.0], [0.4, 0.1, 0.2]])
    builder = ModelBuilder()
    builder.add_shape_heightfield(builder.add_body(), heights, hx=1.0, hy=1.0, base=0.5)
    model = builder.finalize()
    lift = model.shapes.pose[0, 2]
    over = np.array([[0.0, 0.0, 2.5], [-1.0, -1.0, 2.0], [0.0, 0.0, -3.0]])
    down = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    distance, _, normal = cast(model, over + np.array([1e-9, 2e-9, 0.0]), down)
    assert np.abs(distance[:1] - 2.0).max() < 1e-8
    assert normal[0, 2] > 0.0
    assert normal[2, 2] == -1.0
    point = over + distance[:, None] * down - [0.0, 0.0, lift]
    reached = point_distances(model, 0, point[[0, 2]], find_device("cpu"))
    assert np.abs(reached).max() < 1e-8


def heap(rng: np.random.Generator) -> Model:
    """Forty shapes of all types, thirty needles whose bounding balls are far larger than they are,
    and a plane."""
    builder = ModelBuilder()
    for k in range(40):
        kind = [name for name in FORMS if name != "plane"][k % 6]
        pose = [*rng.normal(size=3) * 2.0, *Rotation.random(rng=rng).as_quat()]
        getattr(builder, f"add_shape_{kind}")(builder.add_body(), **FORMS[kind], xform=pose)
    for _ in range(30):
        pose = [*rng.normal(size=3) * 2.0, *Rotation.random(rng=rng).as_quat()]
        needle = {"radius": 0.01, "half_height": 1.5}
        builder.add_shape_capsule(builder.add_body(), **needle, xform=pose)
    builder.add_shape_plane(-1)
    return builder.finalize()


def test_the_first_crossing_of_several_shapes_is_that_of_all_of_them():
    """Bounding balls leave out none that is crossed first."""
    rng = np.random.default_rng(11)
    model = heap(rng)
    start = rng.normal(size=(500, 3)) * 2.0
    along = rng.normal(size=(500, 3))
    along /= length(along)[:, None]
    distance, nearest, normal = cast(model, start, along)
    placed = np.array(model.shapes.pose)[None]
    each = []
    for row in range(len(model.shapes)):
        plan = replace(plan_of(model, 500), start=np.array([0, 1]), row=np.array([row]))
        caster = RayCaster(plan, start, along, find_device("cpu"))
        each.append(caster.measure(placed, IDENTITY[None, None], np.zeros(1, np.int32)))
    truth = np.stack([found[0][0] for found in each])
    assert np.array_equal(distance, truth.min(axis=0))
    hit = nearest >= 0
    assert 300 < hit.sum() < 400
    assert len(np.unique(nearest)) > 40
    assert np.array_equal(nearest[hit], truth.argmin(axis=0)[hit])
    of_nearest = np.stack([found[2][0] for found in each])[nearest[hit], np.flatnonzero(hit)]
    assert np.array_equal(normal[hit], of_nearest)


def test_the_nearest_of_several_shapes_is_that_of_all_of_them():
    """Bounding balls leave out none that is nearest."""
    rng = np.random.default_rng(5)
    model = heap(rng)
    points = rng.normal(size=(300, 3)) * 3.0
    placed = np.array(model.shapes.pose)
    device = find_device("cpu")
    distance, nearest = PointDistances(plan_of(model, 300, 0.05), points, device).measure(
        placed[None], IDENTITY[None, None], np.zeros(1, np.int32)
    )
    each = np.empty((len(placed), 300))
    for row, pose in enumerate(placed):
        local = Rotation.from_quat(pose[3:]).inv().apply(points - pose[:3])
        each[row] = point_distances(model, row, local, device) - 0.05
    assert np.abs(distance[0] - each.min(axis=0)).max() < 1e-12
    assert np.array_equal(nearest[0], each.argmin(axis=0))


def test_a_world_sees_the_shapes_of_its_template_alone():
    joined = ModelBuilder()
    for radius in (0.5, 1.0):
        one = ModelBuilder()
        one.add_shape_sphere(one.add_body(), radius=radius)
        joined.add_world(one)
    model = joined.finalize()
    point = np.array([[3.0, 0.0, 0.0]])
    placed = np.tile(IDENTITY, (2, 2, 1))
    frames = np.tile(IDENTITY, (2, 1, 1))
    measure = PointDistances(plan_of(model, 1), point, find_device("cpu")).measure
    distance, nearest = measure(placed, frames, model.world_template)
    assert np.array_equal(distance[:, 0], [2.5, 2.0])
    assert np.array_equal(nearest[:, 0], [0, 1])
    caster = RayCaster(plan_of(model, 1), point, -point / 3.0, find_device("cpu"))
    crossed = caster.measure(placed, frames, model.world_template)
    assert np.array_equal(crossed[0][:, 0], [2.5, 2.0])
    assert np.array_equal(crossed[1][:, 0], [0, 1])
    frames[1] = np.nan
    assert np.isinf(caster.measure(placed, frames, model.world_template)[0][1, 0])
    distance, nearest = measure(placed, frames, model.world_template)
    assert np.isinf(distance[1, 0])
    assert nearest[1, 0] == -1


GEOMS = {
    "sphere": "0.5",
    "capsule": "0.3 0.5",
    "box": "0.3 0.5 0.7",
    "cylinder": "0.4 0.6",
    "ellipsoid": "0.3 0.5 0.8",
}


@pytest.mark.parametrize("kind", GEOMS)
def test_rays_are_those_of_mujoco(kind):
    text = f'<mujoco><worldbody><geom type="{kind}" size="{GEOMS[kind]}"/></worldbody></mujoco>'
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    start, along = random_rays(6, 600)
    distance, row, _ = cast(model_of(kind), start, along)
    geom = np.zeros(1, np.int32)
    truth = np.array(
        [
            mujoco.mj_ray(compiled, data, p, d, None, 1, -1, geom)
            for p, d in zip(start, along, strict=True)
        ]
    )
    assert 300 < (truth >= 0.0).sum() < 600
    assert np.array_equal(truth >= 0.0, row == 0)
    hit = row == 0
    assert np.isinf(distance[~hit]).all()
    assert np.abs(distance[hit] - truth[hit]).max() < 1e-9


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind != "ellipsoid"])
def test_a_ray_ends_on_the_surface_and_crosses_nothing_before(kind, scale):
    start, along = random_rays(7, 500)
    distance, row, normal = cast(model_of(kind, scale), scale * start, along)
    distance = distance / scale
    hit = row == 0
    assert 200 < hit.sum() < 500
    at = start[hit] + distance[hit, None] * along[hit]
    assert np.abs(closed_form(kind, at)).max() < 1e-12
    # The normal is the gradient of the signed distance beside the surface.
    step = 1e-6
    slope = (
        closed_form(kind, at + step * normal[hit]) - closed_form(kind, at - step * normal[hit])
    ) / (2.0 * step)
    assert np.abs(np.median(slope) - 1.0) < 1e-6
    assert (slope > 0.99).mean() > 0.99
    assert np.abs(length(normal[hit]) - 1.0).max() < 1e-12
    side = np.sign(closed_form(kind, start))
    reach = np.where(hit, distance, 20.0)
    for part in np.linspace(0.0, 1.0, 101)[:-1]:
        between = closed_form(kind, start + part * reach[:, None] * along)
        assert (between * side > -1e-12).all()


@pytest.mark.parametrize("turn", [False, True])
def test_rays_that_graze_a_mesh_or_start_in_it_are_brute_force(turn):
    mesh = blob(np.random.default_rng(8))
    start, along = random_rays(9, 400)
    # Through vertices and edges.
    aim = np.concatenate(
        [mesh[0][:60], 0.5 * (mesh[0][mesh[1][:60, 0]] + mesh[0][mesh[1][:60, 1]])]
    )
    along[:120] = (aim - start[:120]) / length(aim - start[:120])[:, None]
    pose = IDENTITY
    if turn:
        pose = np.array(
            [500.0, -20.0, 3.0, *Rotation.random(rng=np.random.default_rng(1)).as_quat()]
        )
    rotation = Rotation.from_quat(pose[3:])
    world = pose[:3] + rotation.apply(start)
    distance, row, normal = cast(of_mesh(mesh), world, rotation.apply(along), pose)
    corners = mesh[0][mesh[1]]
    truth, outward = brute_rays(start, along, corners)
    clear = np.ones(len(start), bool)
    clear[:120] = False  # of a silhouette either answer is right
    assert np.array_equal(np.isfinite(truth)[clear], row[clear] == 0)
    hit = (row == 0) & np.isfinite(truth) & clear
    assert hit.sum() > 150
    assert np.abs(distance[hit] - truth[hit]).max() < 1e-11
    assert np.abs(rotation.inv().apply(normal[hit]) - outward[hit]).max() < 1e-11
    # Through an edge or a vertex a ray from inside never leaves the closed mesh.
    inside = np.abs(windings(corners, start)) > 0.5
    assert inside[:120].sum() > 15
    assert (row[inside] == 0).all()
    grazing = np.flatnonzero(row[:120] == 0)
    at = start[grazing] + distance[grazing, None] * along[grazing]
    assert every_distance(at, corners).min(axis=1).max() < 1e-9


def brute_rays(start: np.ndarray, along: np.ndarray, corners: np.ndarray):
    """First crossings and unit normals, by Moeller and Trumbore over all triangles."""
    p, q, r = (corners[None, :, k] for k in range(3))
    d = along[:, None]
    h = np.cross(d, r - p)
    a = ((q - p) * h).sum(-1)
    s = start[:, None] - p
    u = (s * h).sum(-1) / a
    c = np.cross(s, q - p)
    v = (d * c).sum(-1) / a
    t = ((r - p) * c).sum(-1) / a
    t = np.where((u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t >= 0.0), t, np.inf)
    nearest = t.argmin(axis=1)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= length(normal)[:, None]
    return t[np.arange(len(t)), nearest], normal[nearest]


def test_degenerate_rays():
    x, y, z = np.eye(3)
    cases = [
        ("sphere", (0.0, 0.5, -2.0), z, 2.0),  # tangent
        ("sphere", (0.0, 0.5 + 1e-9, -2.0), z, np.inf),
        ("sphere", (0.0, 0.0, 0.0), z, 0.5),  # from the centre
        ("sphere", (0.0, 0.0, 0.5), z, 0.0),  # on the surface, outwards
        ("sphere", (0.0, 0.0, 0.5), -z, 0.0),
        ("sphere", (0.0, 0.0, 1.0), z, np.inf),  # behind the start
        ("plane", (0.0, 0.0, 1.0), x, np.inf),  # parallel
        ("plane", (0.0, 0.0, 0.0), x, 0.0),
        ("plane", (0.0, 0.0, -1.0), z, 1.0),  # from inside
        ("plane", (0.0, 0.0, 1.0), z, np.inf),
        ("box", (-2.0, 0.5, 0.7), x, 1.7),  # along an edge
        ("box", (-2.0, 0.6, 0.0), x, np.inf),
        ("box", (0.0, 0.0, 0.0), y, 0.5),
        ("cylinder", (0.0, 0.0, 2.0), -z, 1.4),  # along the axis
        ("cylinder", (0.4, 0.0, 2.0), -z, 1.4),  # along the side
        ("cylinder", (0.4 + 1e-9, 0.0, 2.0), -z, np.inf),
        ("capsule", (0.3, 0.0, 2.0), -z, 1.5),
        ("capsule", (0.0, 0.0, 2.0), -z, 1.2),
        ("cone", (0.0, 0.0, 2.0), -z, 1.4),  # at the apex
        ("cone", (0.0, 0.0, -2.0), z, 1.4),
        ("cone", (0.0, 0.0, 0.0), z, 0.6),
        ("cone", (-2.0, 0.0, 0.6), x, 2.0),  # past the apex
        ("cone", (-2.0, 0.0, 0.7), x, np.inf),
        ("cone", (0.25, 0.0, 2.0), -z, 2.0),
        ("ellipsoid", (0.0, 0.0, -3.0), z, 2.2),
        ("ellipsoid", (0.0, 0.5, -3.0), z, 3.0),  # tangent
    ]
    for kind, start, along, truth in cases:
        distance, row, normal = cast(model_of(kind), np.array([start]), along[None])
        assert distance[0] == pytest.approx(truth, abs=1e-7), (kind, start, along)
        assert row[0] == (-1 if np.isinf(truth) else 0), (kind, start, along)
        expected = 0.0 if np.isinf(truth) else 1.0
        assert length(normal)[0] == pytest.approx(expected, abs=1e-12), (kind, start, along)


def test_a_ray_along_the_side_of_a_cone_and_almost_along_it():
    side = np.array([0.5, 0.0, -1.2]) / 1.3
    for tilt in (0.0, 1e-15, -1e-15, 1e-9, -1e-9, 1e-4, -1e-4):
        along = side + np.array([0.0, 0.0, tilt])
        start = np.array([[-0.3, 0.0, 0.6]])
        distance, row, _ = cast(model_of("cone"), start, along[None] / np.linalg.norm(along))
        at = start + distance[:, None] * along / np.linalg.norm(along)
        assert row[0] == 0
        assert np.abs(closed_form("cone", at)).max() < 1e-12


def test_a_ray_from_a_kilometre_hits_a_millimetre():
    start = np.array([[600.0, 700.0, 400.0]])
    aim = np.array([0.0001, -0.0001, 0.0001])
    along = (aim - start) / np.linalg.norm(aim - start)
    for kind in ("sphere", "capsule", "box", "cylinder", "cone"):
        distance, row, _ = cast(model_of(kind, 1e-3), start, along)
        assert row[0] == 0
        at = start + distance[:, None] * along
        assert np.abs(closed_form(kind, 1e3 * at)).max() < 1e-9  # rounding of 1 km is 1e-13


def test_a_hull_is_crossed_as_its_mesh():
    mesh = box(0.3, 0.5, 0.7)
    builder = ModelBuilder()
    builder.add_shape_convex_hull(builder.add_body(), mesh[0])
    start, along = random_rays(10, 300)
    found = cast(builder.finalize(), start, along)
    truth = cast(model_of("box"), start, along)
    assert np.array_equal(found[1], truth[1])
    hit = found[1] == 0
    assert np.abs(found[0][hit] - truth[0][hit]).max() < 1e-12
    assert np.abs(found[2][hit] - truth[2][hit]).max() < 1e-12
