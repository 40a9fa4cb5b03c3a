"""Contacts of the lines of cables with shapes, in frames and between them: brute force, closed
forms, MuJoCo."""

from itertools import pairwise

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import compile_mjcf
from collidecli.importers.mujoco.scene import add_compiled
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.support.hydroelastic import rotated
from tests.support.particle_oracle import Solid, solids
from tests.support.swept_motions import OnBody, in_shape, moves, random_triangles

SOLIDS = {solid.name: solid for solid in solids()}
PARTS = 400
ZOOMS = 5
"""Parts of a line that are sampled, and how often the best of them is."""
OF_TRIANGLES = ("mesh", "heightfield")
TOLERANCE = 1e-6


def least_on_lines(
    solid: Solid, ends: np.ndarray, radius: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least of distance less radius on lines [n, 2, 3], and of both ends: by samples around the
    best sample."""
    low = np.zeros(len(ends))
    high = np.ones(len(ends))
    for _ in range(ZOOMS):
        part = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, PARTS + 1)
        points = ends[:, :1] + part[..., None] * (ends[:, 1:] - ends[:, :1])
        values = solid.distance(points.reshape(-1, 3)).reshape(part.shape)
        values -= radius[:, :1] + part * (radius[:, 1:] - radius[:, :1])
        rows = np.arange(len(ends))
        best = values.argmin(axis=1)
        low = part[rows, np.maximum(best - 1, 0)]
        high = part[rows, np.minimum(best + 1, PARTS)]
    of_ends = solid.distance(ends.reshape(-1, 3)).reshape(-1, 2) - radius
    return np.minimum(values.min(axis=1), of_ends.min(axis=1)), of_ends


def sampled_lines(solid: Solid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Lines float64[n, 2, 3] around a solid of unit size, of any length, through its features."""
    middles = solid.places[rng.integers(0, len(solid.places), count)]
    middles = middles + rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-3.0, -0.5, (count, 1))
    along = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-1.0, 0.5, (count, 1))
    share = rng.uniform(0.0, 1.0, (count, 1))
    return np.stack([middles - share * along, middles + (1.0 - share) * along], axis=1)


@pytest.mark.share(6)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_lines_are_as_near_as_brute_force_finds(name, size):
    """The least row of a line and its ends is the least distance of all of its points; a row of its
    own is lower than both ends."""
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name))
    lines = sampled_lines(solid, rng, 12 if name in OF_TRIANGLES else 60)
    radius = rng.uniform(0.0, 0.05, (len(lines), 2))
    pose = np.array([*rng.normal(size=3) * 3.0 * size, *[0.1, 0.5, -0.7, 0.5]])
    pose[3:] /= np.linalg.norm(pose[3:])
    builder = ModelBuilder()
    solid.add(builder, pose, size, ShapeConfig(margin=0.02 * size))
    builder.add_cable(
        vertices=rotated(pose[3:], lines.reshape(-1, 3) * size) + pose[:3],
        indices=np.arange(2 * len(lines)),
        particle_radius=radius.ravel() * size,
    )
    found = collidecli.collide(builder.finalize(), soft_gap=1e3 * size).groups["soft_contacts"]
    rows = found.columns
    assert set(rows["kind"].tolist()) <= {0, 1}
    near = np.full(2 * len(lines), np.inf)
    of_ends = rows["kind"] == 0
    near[rows["indices"][of_ends, 0]] = rows["distance"][of_ends]
    near = near.reshape(-1, 2).min(axis=1)
    line = rows["indices"][~of_ends, 0] // 2
    assert (rows["indices"][~of_ends, 1] == 2 * line + 1).all()
    own = rows["distance"][~of_ends]
    assert (own < near[line]).all()
    near[line] = own
    least, ends = least_on_lines(solid, lines, radius)
    longest = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    # The depth inside closed meshes and heightfields is searched to 1e-4 of the longest side.
    slack = (3e-4 if name in OF_TRIANGLES else 1e-6) * np.maximum(longest, 1.0)
    seen = np.isfinite(near)
    assert seen.sum() >= len(lines) - (20 if name == "one_sided" else 0)
    assert (np.abs(near / size - (least - 0.02)) < slack)[seen].all()
    lower = least < ends.min(axis=1) - 2.0 * slack
    assert set(np.flatnonzero(lower & seen)) <= set(line.tolist())
    assert name == "plane" or lower.sum() >= 3


def test_closed_forms_of_a_round_line():
    """A line of radius 0.01 along x above a plane, a ball, a rod across it and a box."""
    builder = ModelBuilder()
    builder.add_ground_plane(0.0)
    builder.add_shape_sphere(-1, [0.3, 0.05, 0.9, 0, 0, 0, 1], 0.08)
    turn = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    builder.add_shape_capsule(-1, [1.3, 0.0, 0.95, *turn], 0.03, 0.2)
    builder.add_shape_box(-1, [2.5, 0.0, 0.9, 0, 0, 0, 1], 0.1, 0.1, 0.095)
    builder.add_cable(vertices=[[0, 0, 1.0], [1, 0, 1.0], [3, 0, 1.0]], particle_radius=0.01)
    rows = collidecli.collide(builder.finalize(), soft_gap=0.1).groups["soft_contacts"].columns
    assert rows["kind"].tolist() == [1, 1, 1]
    assert rows["indices"].tolist() == [[0, 1, -1], [1, 2, -1], [1, 2, -1]]
    assert rows["shape"].tolist() == [1, 2, 3]
    expected = [np.hypot(0.05, 0.1) - 0.08 - 0.01, 0.05 - 0.03 - 0.01, 0.1 - 0.095 - 0.01]
    np.testing.assert_allclose(rows["distance"], expected, atol=1e-8)
    np.testing.assert_allclose(rows["barycentric"][0], [0.7, 0.3, 0.0], atol=1e-6)
    np.testing.assert_allclose(rows["barycentric"][1], [0.85, 0.15, 0.0], atol=1e-6)
    np.testing.assert_allclose(rows["normal"][1:], [[0, 0, 1]] * 2, atol=1e-7)
    np.testing.assert_allclose(rows["point_world"][1], [1.3, 0.0, 0.98], atol=1e-6)


GEOMS = {
    "plane": 'type="plane" size="0 0 1"',
    "sphere": 'type="sphere" size="0.08"',
    "capsule": 'type="capsule" size="0.04 0.1"',
    "box": 'type="box" size="0.06 0.08 0.05"',
    "cylinder": 'type="cylinder" size="0.06 0.08"',
    "ellipsoid": 'type="ellipsoid" size="0.06 0.08 0.04"',
    "mesh": 'type="mesh" mesh="rock"',
}
MARGIN = 0.03
ROPE = """<mujoco>
<asset><mesh name="rock" vertex="0 0 0.1  0.1 0 -0.05  -0.06 0.08 -0.05  -0.06 -0.08 -0.05"/></asset>
<worldbody><body name="b" mocap="true"><geom {geom}/></body>
<body name="r"><flexcomp name="rope" type="grid" count="{count} 1 1" spacing="0.15 1 1" dim="1"
 radius="0.01" mass="1"><contact selfcollide="none" margin="{margin}"/></flexcomp></body></worldbody></mujoco>"""


def mujocos_rows(mj_model: mujoco.MjModel, data: mujoco.MjData) -> dict[int, float]:
    """Least distance of each line of the flex from the geom; of vertices under -1 - vertex."""
    found: dict[int, float] = {}
    for row in range(data.ncon):
        contact = data.contact[row]
        key = int(contact.elem[1])
        if key < 0:
            key = -1 - int(contact.vert[1])
        found[key] = min(found.get(key, np.inf), contact.dist)
    return found


@pytest.mark.parametrize("kind", GEOMS)
def test_lines_are_as_near_as_in_mujoco(kind, tmp_path):
    """Of each line that is within the margin and whose axis is outside the geom, the distance of
    MuJoCo's capsule; MuJoCo's planes have the vertices alone, as ours."""
    path = tmp_path / "rope.xml"
    path.write_text(ROPE.format(geom=GEOMS[kind], count=5, margin=MARGIN))
    compiled = compile_mjcf(str(path))
    builder = ModelBuilder()
    found = add_compiled(builder, compiled, SceneOptions())
    model = builder.finalize()
    assert model.particles.kind == ("cable",)
    assert model.particles.line.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    data = mujoco.MjData(found.mj_model)
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(60):
        data.qpos[:] = rng.normal(size=found.mj_model.nq) * 0.05
        data.mocap_pos[0] = rng.uniform([-0.3, -0.1, -0.1], [0.3, 0.1, 0.1])
        turn = rng.normal(size=4)
        data.mocap_quat[0] = turn / np.linalg.norm(turn)
        mujoco.mj_forward(found.mj_model, data)
        theirs = mujocos_rows(found.mj_model, data)
        poses = np.concatenate([data.xpos[1:], data.xquat[1:][:, [1, 2, 3, 0]]], axis=1)
        particle_q = np.array(data.flexvert_xpos)[None, None]
        contacts = collidecli.collide(model, poses[None, None], particle_q=particle_q, soft_gap=0.2)
        rows = contacts.groups["soft_contacts"].columns
        vertex = np.full(len(model.particles), np.inf)
        of_vertex = rows["kind"] == 0
        vertex[rows["indices"][of_vertex, 0]] = rows["distance"][of_vertex]
        if kind == "plane":
            expected = {-1 - k: vertex[k] for k in np.flatnonzero(vertex < MARGIN).tolist()}
            assert set(theirs) == set(expected)
            for key, value in theirs.items():
                assert abs(value - expected[key]) < 1e-6
            compared += len(theirs)
            continue
        ours = [min(vertex[a], vertex[b]) for a, b in model.particles.line]
        for row in np.flatnonzero(~of_vertex):
            line = int(rows["indices"][row, 0])
            ours[line] = min(ours[line], float(rows["distance"][row]))
        for line, value in enumerate(ours):
            if abs(value - MARGIN) < 1e-5 or value < -0.009:
                continue  # at the margin, or the axis is in the geom: another quantity
            assert (line in theirs) == (value < MARGIN), (line, value, theirs)
            if value < MARGIN:
                assert abs(theirs[line] - value) < 2e-5, (line, value, theirs[line])
                compared += 1
    assert compared > 10


TWO_ROPES = """<mujoco><worldbody>
<body name="c"><flexcomp name="a" type="grid" count="8 1 1" spacing="0.15 1 1" dim="1" radius="0.03" mass="1">
<contact selfcollide="auto" margin="0.01"/></flexcomp></body>
<body name="d" pos="0 0.1 0.05"><flexcomp name="b" type="grid" count="8 1 1" spacing="0.15 1 1" dim="1"
 radius="0.02" mass="1"><contact selfcollide="auto" margin="0.01"/></flexcomp></body>
</worldbody></mujoco>"""
Lines = tuple[tuple[int, int], tuple[int, int]]
"""Two lines, each the number of its flex and its own."""


def mujocos_line_pairs(data: mujoco.MjData) -> dict[Lines, float]:
    """Least distance of each two lines in contact."""
    found: dict[Lines, float] = {}
    for row in range(data.ncon):
        contact = data.contact[row]
        both = zip(contact.flex.tolist(), contact.elem.tolist(), strict=True)
        key = tuple(sorted((flex, line) for flex, line in both))
        found[key] = min(found.get(key, np.inf), contact.dist)
    return found


def test_lines_of_cables_touch_each_other_as_in_mujoco(tmp_path):
    """All pairs of MuJoCo are found, with its distances; those that overlap are in MuJoCo. Lines
    that share a vertex are in neither."""
    path = tmp_path / "ropes.xml"
    path.write_text(TWO_ROPES)
    builder = ModelBuilder()
    found = add_compiled(builder, compile_mjcf(str(path)), SceneOptions())
    model = builder.finalize()
    data = mujoco.MjData(found.mj_model)
    rng = np.random.default_rng(0)
    options = {"self_contacts": 0.1, "self_contact_rings": 0, "self_contact_rest": 0.0}
    kinds = set()
    compared = 0
    for _ in range(40):
        data.qpos[:] = rng.normal(size=found.mj_model.nq) * 0.1
        mujoco.mj_forward(found.mj_model, data)
        theirs = mujocos_line_pairs(data)
        poses = np.concatenate([data.xpos[1:], data.xquat[1:][:, [1, 2, 3, 0]]], axis=1)
        contacts = collidecli.collide(model, poses[None, None], **options)
        rows = contacts.groups["self_contacts"].columns
        first = rows["indices"][:, [0, 2]]
        owner = model.particles.owner[first]
        line = first - model.particles.first[owner]
        distance = rows["distance"] - np.array([0.03, 0.02])[owner].sum(axis=1)
        ours = {
            tuple(sorted(zip(*key, strict=True))): float(value)
            for key, value in zip(
                zip(owner.tolist(), line.tolist(), strict=True), distance, strict=True
            )
        }
        for key, value in theirs.items():
            assert abs(ours[key] - value) < 1e-6, key
            kinds.add(key[0][0] == key[1][0])
        assert {key for key, value in ours.items() if value < -1e-6} <= set(theirs)
        compared += len(theirs)
    assert kinds == {True, False}
    assert compared > 100


# Between frames.


def swept_line(builder: ModelBuilder, begin, end, radius=0.0) -> collidecli.ParticleSweep:
    """The rows of one line from two positions to two others."""
    builder.add_cable(vertices=begin, particle_radius=radius)
    found = collidecli.sweep(builder.finalize(), None, particle_q=moves(begin, end)).particles
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["capsule", "box", "hull", "mesh"])
def test_a_line_through_a_thin_bar(kind):
    """A cable falls at 100 m/s, recorded at 60 Hz, across a bar along y that is 20 mm high."""
    builder = ModelBuilder()
    corners = np.array(
        [(x, y, z) for x in (-0.01, 0.01) for y in (-0.5, 0.5) for z in (-0.01, 0.01)]
    )
    if kind == "capsule":
        builder.add_shape_capsule(-1, [0, 0, 0, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], 0.01, 0.5)
    elif kind == "box":
        builder.add_shape_box(-1, hx=0.01, hy=0.5, hz=0.01)
    elif kind == "hull":
        builder.add_shape_convex_hull(-1, corners)
    else:
        faces = [
            [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
            [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
        ]  # fmt: skip
        builder.add_shape_mesh(-1, corners, faces)
    begin = np.array([[-1.0, 0.0, 1.0], [3.0, 0.0, 1.0]])
    fall = 100.0 / 60.0
    found = swept_line(builder, begin, begin - [0.0, 0.0, fall], radius=0.002)
    assert found.kind.tolist() == [1]
    assert found.indices.tolist() == [[0, 1, -1]]
    assert found.tunnel.all()
    enter = (1.0 - 0.01 - 0.002) / fall
    leave = (1.0 + 0.01 + 0.002) / fall
    assert found.enter[0] < enter
    assert leave < found.leave[0]
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.leave[0] == pytest.approx(leave, abs=1e-6)
    assert found.least_bound[0] <= -0.012 + 1e-12
    np.testing.assert_allclose(found.normal[0], [0.0, 0.0, 1.0], atol=1e-7)
    np.testing.assert_allclose(found.barycentric[0] @ [-1.0, 3.0, 0.0], 0.0, atol=0.011)
    assert found.barycentric[0, 2] == 0.0
    assert found.barycentric[0].sum() == pytest.approx(1.0, abs=1e-6)


def test_a_line_that_touches_with_an_end_has_the_row_of_its_end():
    builder = ModelBuilder()
    builder.add_shape_box(-1, hx=0.01, hy=0.5, hz=0.01)
    begin = np.array([[0.0, 0.0, 1.0], [3.0, 0.0, 1.0]])
    found = swept_line(builder, begin, begin - [0.0, 0.0, 2.0])
    assert found.kind.tolist() == [0]
    assert found.indices.tolist() == [[0, -1, -1]]


def test_a_line_in_either_direction_has_one_row():
    """Lines that are given twice, and from the greater particle on, are told once each, from the
    smaller one on, in the order of their particles."""
    bar = np.array([[-1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [3.0, 0.0, 1.0]])
    builder = ModelBuilder()
    for x in (0.0, 2.0):
        builder.add_shape_box(-1, [x, 0, 0, 0, 0, 0, 1], hx=0.01, hy=0.5, hz=0.01)
    builder.add_cable(vertices=bar, indices=[[2, 1], [1, 0], [0, 1], [1, 2]])
    model = builder.finalize()
    end = bar - [0.0, 0.0, 2.0]
    found = collidecli.sweep(model, None, particle_q=moves(bar, end)).particles
    assert found is not None
    assert found.indices.tolist() == [[0, 1, -1], [1, 2, -1]]
    assert found.shape.tolist() == [0, 1]
    rows = collidecli.collide(model, None, particle_q=moves(bar, end)[:1], soft_gap=2.0)
    rows = rows.groups["soft_contacts"].columns
    edges = rows["indices"][rows["kind"] == 1]
    assert {tuple(edge) for edge in edges.tolist()} == {(0, 1, -1), (1, 2, -1)}


def apart(solid: Solid, size: float, poses, ends, inflation, time, share) -> np.ndarray:
    """float64[times, shares]: distances of points of a line, with the inflation of each end."""
    inside = np.stack([in_shape(poses, ends[:, k], time) for k in range(2)], axis=1)
    weights = np.stack([1.0 - share, share], axis=1)
    points = np.einsum("wk,tkc->twc", weights, inside)
    distance = solid.distance(points.reshape(-1, 3) / size).reshape(points.shape[:2]) * size
    return distance - weights @ inflation


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_no_touch_of_a_line_is_missed(name, size):
    """Random motions of lines and a shape, against the distances of points at many times."""
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name))
    count, samples, parts = (8, 17, 20) if name in OF_TRIANGLES else (25, 65, 80)
    poses, positions = random_triangles(rng, solid, size, count, corners=2)
    margin = 0.02 * size
    radius = rng.uniform(0.0, 0.05, (count, 2)) * size
    builder = ModelBuilder()
    rest = np.array([0, 0, 0, 0, 0, 0, 1.0])
    solid.add(OnBody(builder, builder.add_body()), rest, size, ShapeConfig(margin=margin))
    begin, end = positions.reshape(2, -1, 3)
    builder.add_cable(
        vertices=begin, indices=np.arange(2 * count), particle_radius=radius.reshape(-1)
    )
    found = collidecli.sweep(builder.finalize(), poses, particle_q=moves(begin, end)).particles
    assert found is not None
    line_of = found.particle // 2
    row_of = {int(line_of[row]): row for row in np.flatnonzero(found.kind == 1)}
    time = np.linspace(0.0, 1.0, samples)
    share = np.linspace(0.0, 1.0, parts + 1)
    rounding = (1e-7 if name == "heightfield" else 1e-12) * size  # heights are float32
    touching = 0
    for line in range(count):
        of = (solid, size, poses, positions[:, line], radius[line] + margin)
        distance = apart(*of, time, share).min(axis=1)
        touching += bool(distance.min() <= 0.0)
        rows = np.flatnonzero(line_of == line)  # of the line and of its particles
        has_particle = bool((found.kind[rows] == 0).any())
        inside = (found.enter[rows, None] <= time) & (time <= found.leave[rows, None])
        least_apart = (0.25 if has_particle else 0.5) * TOLERANCE
        assert (distance[~inside.any(axis=0)] > least_apart - rounding).all(), (name, line)
        row = row_of.get(line)
        if row is None:
            continue
        assert found.touches[row], (name, line)
        at = found.barycentric[row, 1:2].astype(np.float64)
        off = 2e-7 * np.abs(positions[0, line, 1] - positions[0, line, 0]).max()
        assert apart(*of, found.enter[row][None], at)[0, 0] <= TOLERANCE + rounding + off
        assert found.least_bound[row] <= min(distance.min(), found.least[row]) + rounding
    assert len(np.unique(line_of)) >= touching
    assert touching >= (0 if name == "plane" else 2)


# What is given.


def test_vertices_are_joined_in_their_order():
    builder = ModelBuilder()
    first = builder.add_cable(vertices=[[0, 0, 0], [1, 0, 0], [1, 1, 0]], key="hose")
    assert first == 0
    builder.add_cable(vertices=[[0, 0, 1], [1, 0, 1], [1, 1, 1]], indices=[[2, 0]])
    particles = builder.finalize(2).particles
    assert particles.line.tolist() == [[0, 1], [1, 2], [5, 3]]
    assert particles.edge.tolist() == [[0, 1], [1, 2], [3, 5]]
    assert particles.kind == ("cable", "cable")
    assert [b - a for a, b in pairwise(particles.first.tolist())] == [3, 3]


@pytest.mark.parametrize(
    ("vertices", "indices", "message"),
    [
        ([[0, 0, 0]], None, "the lines have shape"),
        ([[0, 0, 0], [1, 0, 0]], [[0, 0]], "has one particle twice"),
        ([[0, 0, 0], [1, 0, 0]], [[0, 2]], "element 0 of the lines is"),
    ],
)
def test_lines_that_are_none_are_refused(vertices, indices, message):
    with pytest.raises(InputError, match=message):
        ModelBuilder().add_cable(vertices=vertices, indices=indices)
