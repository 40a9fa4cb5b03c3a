"""Shapes at a distance of exactly the gap have a contact; shapes that are farther have none."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig

CUBE = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
CUBE_FACES = np.array([
    *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
    *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
])  # fmt: skip
SHEET = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
SHEET_FACES = np.array([[0, 1, 2], [0, 2, 3]])
TRIANGLE = np.array([[-0.25, -0.25, 0.0], [0.25, -0.25, 0.0], [0.0, 0.25, 0.0]])

Add = Callable[[ModelBuilder, int, ShapeConfig], object]
ADD: dict[str, Add] = {
    "plane": lambda scene, body, cfg: scene.add_shape_plane(body, cfg=cfg),
    "sphere": lambda scene, body, cfg: scene.add_shape_sphere(body, radius=0.5, cfg=cfg),
    "capsule": lambda scene, body, cfg: scene.add_shape_capsule(
        body, radius=0.25, half_height=0.25, cfg=cfg
    ),
    "box": lambda scene, body, cfg: scene.add_shape_box(body, cfg=cfg),
    "cylinder": lambda scene, body, cfg: scene.add_shape_cylinder(body, radius=0.5, cfg=cfg),
    "cone": lambda scene, body, cfg: scene.add_shape_cone(body, radius=0.5, cfg=cfg),
    "ellipsoid": lambda scene, body, cfg: scene.add_shape_ellipsoid(body, cfg=cfg),
    "hull": lambda scene, body, cfg: scene.add_shape_convex_hull(body, vertices=CUBE, cfg=cfg),
    "mesh": lambda scene, body, cfg: scene.add_shape_mesh(body, CUBE, CUBE_FACES, cfg=cfg),
    "sheet": lambda scene, body, cfg: scene.add_shape_mesh(
        body, SHEET, SHEET_FACES, two_sided=True, cfg=cfg
    ),
    "one-sided sheet": lambda scene, body, cfg: scene.add_shape_mesh(
        body, SHEET, SHEET_FACES, cfg=cfg
    ),
    "heightfield": lambda scene, body, cfg: scene.add_shape_heightfield(
        body, np.zeros((5, 5), np.float32), cfg=cfg
    ),
}
FLAT = ("plane", "sheet", "one-sided sheet", "heightfield")
"""Shapes whose top is at the height 0; that of the others is at 0.5 m, and their lowest point at
-0.5 m."""
LOWER_ONLY = ("plane", "one-sided sheet", "heightfield")
"""Shapes that stand on nothing."""
CASES = [(gap, margin) for gap in (0.0, 0.25) for margin in (0.0, 0.125)]
PARTICLE_RADIUS = 0.0625
APART = 64.0
"""Of the cases [m]; a power of two, so that no coordinate is rounded."""


def top(name: str) -> float:
    return 0.0 if name in FLAT else 0.5


def is_found_by_iteration(below: str, above: str, gap: float, margin: float) -> bool:
    """Whether the computed distance of a pair differs from the exact one by some 1e-17 m, which
    decides at a gap of 0 alone."""
    names = {below, above}
    if gap > 0.0:
        return False
    if "ellipsoid" in names and names & {"sheet", "one-sided sheet", "heightfield"}:
        return True
    return names == {"box", "cylinder"} and margin > 0.0


def stacked(below: str, above: str) -> tuple[Model, np.ndarray]:
    """For each of CASES two shapes on bodies of their own, and float64[2, 1, B, 7]: poses in which
    the second one is exactly the gap above the first, and then 1e-6 m farther."""
    scene = ModelBuilder()
    poses = np.zeros((2, 1, 2 * len(CASES), 7))
    poses[..., 6] = 1.0
    for k, (gap, margin) in enumerate(CASES):
        for name in (below, above):
            ADD[name](scene, scene.add_body(), ShapeConfig(gap=gap, margin=margin))
        height = top(below) + (0.0 if above in FLAT else 0.5) + gap + 2.0 * margin
        poses[:, 0, 2 * k : 2 * k + 2, 0] = APART * k
        poses[:, 0, 2 * k + 1, 2] = height, height + 1e-6
    return scene.finalize(), poses


def cases_in_contact(shape0: np.ndarray, shape1: np.ndarray) -> set[int]:
    """The numbers of the cases whose two shapes are a row's."""
    own = (shape0 // 2 == shape1 // 2) & (shape0 != shape1)
    return set((shape0[own] // 2).tolist())


PAIRS = [(below, above) for below in ADD for above in ADD if above not in LOWER_ONLY]
"""Every kind of shape below every other."""


@pytest.mark.rest
@pytest.mark.parametrize(("below", "above"), PAIRS, ids=[" ".join(pair) for pair in PAIRS])
def test_shapes_at_the_gap_have_contacts(below, above):
    model, poses = stacked(below, above)
    sure = {k for k, case in enumerate(CASES) if not is_found_by_iteration(below, above, *case)}
    found = collidecli.collide(model, poses)
    near = np.repeat(np.arange(2), np.diff(found.cell_start)) == 0
    assert cases_in_contact(found.shape0[near], found.shape1[near]) >= sure
    assert not cases_in_contact(found.shape0[~near], found.shape1[~near])
    for k, (gap, _) in enumerate(CASES):
        distance = found.distance[(found.shape0 == 2 * k) & (found.shape1 == 2 * k + 1)]
        assert distance.max(initial=-1.0) <= np.float32(gap)
    touches = collidecli.collide(model, poses, touch_only=True).groups["touches"]
    columns = touches.columns
    at = np.repeat(np.arange(2), touches.cell_counts)
    touching = [
        cases_in_contact(columns["shape0"][at == k], columns["shape1"][at == k]) for k in (0, 1)
    ]
    assert touching[0] == cases_in_contact(found.shape0[near], found.shape1[near])
    assert not touching[1]


@pytest.mark.parametrize("gap", [0.25, 0.7, 0.1, 0.3, 0.0037109375, 1e-3, 3.0, 63.9999])
def test_the_float32_of_the_distance_and_of_the_gap_decide(gap):
    """Spheres at distances of a few float32 numbers around the gap."""
    scene = ModelBuilder()
    for _ in range(2):
        scene.add_shape_sphere(scene.add_body(), radius=0.5, cfg=ShapeConfig(gap=gap))
    distance = gap * (1.0 + np.arange(-200, 201) * 2.0**-30)
    poses = np.zeros((len(distance), 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 1, 2] = 1.0 + distance
    exact = (poses[:, 0, 1, 2] - 0.5) - 0.5
    found = collidecli.collide(scene.finalize(), poses)
    reported = np.diff(found.cell_start) > 0
    assert np.array_equal(reported, exact.astype(np.float32) <= np.float32(gap))
    assert found.distance.max() == np.float32(gap)


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (0.0, 0.0, -0.5), (1000.25, -3.5, 0.125)])
def test_every_broad_phase_finds_boxes_that_touch(broad_phase, at):
    """Also where the faces are at a coordinate of 0, which relative widening leaves as it is."""
    scene = ModelBuilder()
    poses = np.zeros((1, 1, 2, 7))
    poses[..., :3] = at
    poses[0, 0, 1, 2] += 1.0
    poses[..., 6] = 1.0
    for _ in range(2):
        scene.add_shape_box(scene.add_body(), cfg=ShapeConfig(gap=0.0))
    assert len(collidecli.collide(scene.finalize(), poses, broad_phase=broad_phase)) == 4


@pytest.mark.rest
@pytest.mark.parametrize("kind", ["particle", "cloth"])
@pytest.mark.parametrize("below", ADD)
def test_particles_at_the_gap_have_contacts(below, kind):
    for gap, margin in CASES:
        for farther in (0.0, 1e-6):
            scene = ModelBuilder()
            ADD[below](scene, scene.add_body(), ShapeConfig(margin=margin))
            height = top(below) + gap + margin + PARTICLE_RADIUS + farther
            corners = TRIANGLE + np.array([0.0, 0.0, height])
            if kind == "particle":
                scene.add_particles([[0.0, 0.0, height]], radius=PARTICLE_RADIUS)
            else:
                scene.add_cloth_mesh(
                    vertices=corners, indices=[[0, 1, 2]], particle_radius=PARTICLE_RADIUS
                )
            poses = np.array([[[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]]])
            found = collidecli.collide(
                scene.finalize(),
                poses,
                soft_gap=gap,
                soft_elements="vertices" if kind == "particle" else "all",
            )
            distance = found.groups["soft_contacts"].columns["distance"]
            if farther:
                assert not len(distance), (gap, margin)
            elif (
                kind == "particle" or below in FLAT or below in ("box", "cylinder", "hull", "mesh")
            ):
                # the triangle's point above a round top is found by iteration
                assert len(distance), (gap, margin)
                assert distance.max() <= np.float32(gap)


GEOMS = {
    "plane": "type='plane' size='1 1 1'",
    "sphere": "type='sphere' size='0.5'",
    "capsule": "type='capsule' size='0.25 0.25'",
    "box": "type='box' size='0.5 0.5 0.5'",
    "cylinder": "type='cylinder' size='0.5 0.5'",
}


@pytest.mark.parametrize("above", ["sphere", "capsule", "box", "cylinder"])
@pytest.mark.parametrize("below", GEOMS)
def test_mujoco_reports_them_too(below, above, tmp_path):
    """Bodies of an MJCF scene, whose gap is 0, that stand on each other."""
    mujoco = pytest.importorskip("mujoco")
    height = top(below) + top(above)
    text = f"""<mujoco><worldbody><geom {GEOMS[below]}/><body pos="0 0 {height}"><freejoint/>
 <geom {GEOMS[above]}/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (tmp_path / "scene.xml").write_text(text)
    ours = collidecli.run(tmp_path / "scene.xml")
    assert len(ours)
    if data.ncon:  # the general solver of MuJoCo ends at some 1e-7 m for some pairs
        assert data.contact.dist.max() <= 1e-6
    assert ours.distance.max() == 0.0
