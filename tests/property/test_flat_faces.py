"""Flat faces on flat surfaces have the contacts of an exact clipping, whatever lies in one
plane."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.flat_faces import (
    BODIES,
    HALF,
    LETTER_L,
    LETTER_U,
    RECTANGLE,
    SURFACES,
    Standing,
    contact_patch,
    flat_scene,
    hull_area,
    offsets_on_grid,
    upright_prism,
)

HEIGHTS = (1e-8, 0.0, -1e-9, -2e-9, -5e-9, -6e-9, -1e-8, -1.2e-8, -1e-7, -1e-6, -1e-5, -2e-3)
"""Of the base above the surface [units]. A touch is 4e-9: 1e-9 of the larger half extent."""
TOUCH = 1e-9 * HALF
NOISES = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)
"""Of a pose [units, rad]."""
PLACINGS = ("inside", "border", "half", "free")
POSES = 120


def standing_poses(rng: np.random.Generator, placing: str) -> Standing:
    """POSES poses with each height and each noise."""
    noise = rng.choice(NOISES, POSES)[:, None]
    offset = offsets_on_grid(rng, placing, POSES)
    yaw = np.zeros(POSES)
    if placing == "free":
        offset += rng.uniform(0.0, 1.0, offset.shape)
        yaw = rng.uniform(0.0, 2.0 * np.pi, POSES)
    shift = noise * rng.uniform(-1.0, 1.0, (POSES, 3))
    return Standing(
        offset + shift[:, :2],
        rng.choice(HEIGHTS, POSES) + shift[:, 2],
        yaw,
        noise * rng.uniform(-1.0, 1.0, (POSES, 3)),
    )


def is_nearly_flush(standing: Standing, patch: np.ndarray, k: int) -> bool:
    """Whether walls on grid lines cross the border, moved off them by more than a touch.

    A corner of either shape is then closer to a side of the other than it is deep, and exits there.
    """
    shift = np.abs(standing.offset[k] - np.round(4.0 * standing.offset[k]) / 4.0).max()
    moves = max(shift, np.abs(standing.tilt[k]).max()) > 0.2 * TOUCH
    return bool(standing.yaw[k] == 0.0 and moves and np.abs(patch).max() > HALF - 1e-4)


def faults_of_pose(
    contacts: Contacts,
    k: int,
    frame: np.ndarray,
    size: float,
    patch: np.ndarray,
    heights: np.ndarray,
    is_flush: bool = False,
) -> list[str]:
    """What is wrong with the contacts of frame k.

    frame: pose of the surface. heights: of the base at the patch. is_flush: whether corners may
    exit over the border, so that normals and hull are not compared.
    """
    rows = slice(contacts.cell_start[k], contacts.cell_start[k + 1])
    if rows.start == rows.stop:
        return ["no contact"]
    into_surface = Rotation.from_quat(frame[3:]).inv()
    point = into_surface.apply(contacts.point0[rows] - frame[:3]) / size
    normal = into_surface.apply(contacts.normal[rows])
    distance = contacts.distance[rows] / size
    faults = []
    least = heights.min()
    if abs(distance.min() - least) > TOUCH + 2e-6 * abs(least):
        faults.append(f"distance {distance.min():.3e} in place of {least:.3e}")
    is_upright = normal[:, 2] > 1.0 - 1e-6
    # A contact that is apart may be that of a corner beside a wall; what touches the border from
    # outside has a contact across it.
    beside = is_flush | (distance > heights.max() + TOUCH)
    on_border = (np.abs(np.abs(point[:, :2]) - HALF) < 1e-5) & (
        np.sign(point[:, :2]) * normal[:, :2] > 0.5
    )
    if not (is_upright | beside | on_border.any(axis=1)).all():
        faults.append("normals")
    # A corner nearer to the border than it is deep exits there.
    area = hull_area(patch)
    covered = hull_area(point[is_upright, :2])
    lost = 10.0 * max(-least, 0.0)
    if not is_flush and (covered < area - 1e-4 - lost or covered > area + 1e-4):
        faults.append(f"hull of {covered:.4f} in place of {area:.4f}")
    if len(np.unique(np.concatenate([point, normal, distance[:, None]], axis=1), axis=0)) < len(
        point
    ):
        faults.append("twice the same")
    return faults


def compare(surface: str, body: str, seed: int, wanted: tuple[str, int] | None = None):
    """Number of compared poses, and what is wrong with their contacts. wanted: placing and number
    of the only pose to compare; None for all."""
    rng = np.random.default_rng([seed, *map(ord, surface + body)])
    size = float(rng.choice([1e-3, 1.0, 1e3]))
    model = flat_scene(surface, body, size)
    faults = []
    compared = 0
    for placing in PLACINGS:
        standing = standing_poses(rng, placing)
        poses = standing.poses(rng, size, turned=seed % 2 == 1)
        chosen = np.arange(POSES)
        if wanted is not None:
            chosen = chosen[(wanted[0] == placing) & (chosen == wanted[1])]
        if not len(chosen):
            continue
        contacts = collidecli.collide(model, poses[chosen], device="cpu")
        touched = (
            collidecli.collide(model, poses[chosen], device="cpu", touch_only=True)
            .groups["touches"]
            .cell_counts
        )
        for cell, k in enumerate(chosen):
            patch = contact_patch(body, standing, k)
            if patch is None or not len(patch):
                continue
            compared += 1
            heights = standing.heights_at(patch, k)
            is_flush = is_nearly_flush(standing, patch, k)
            found = faults_of_pose(contacts, cell, poses[k, 0, 0], size, patch, heights, is_flush)
            if touched[cell] != 1:
                found.append("touch_only has none")
            faults += [f"{placing} {k}: {fault}" for fault in found]
    return compared, faults


@pytest.mark.share(260, 10)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("surface", SURFACES)
def test_contacts_are_those_of_an_exact_clipping(surface, body, seed):
    compared, faults = compare(surface, body, seed)
    assert compared > 200
    assert not faults, f"{len(faults)} of {compared}\n" + "\n".join(faults[:20])


TILTED = [
    ("sheet", "box of triangles", 5, "inside", 89),
    ("sheet", "T of triangles", 5, "inside", 62),
    ("one-sided sheet", "T of triangles", 9, "border", 101),
]
"""Of equal exits, that of triangles with another normal stood for the direction."""
LOST_AT_PARALLEL_EDGES = [
    ("sheet", "T of triangles", 6, "half", 57),
    ("sheet", "box of triangles", 4, "border", 87),
]
"""The axis of two edges that differ by 1e-12 rad decided that a wall does not cross the sheet."""
LOST_AT_BORDER = [
    ("sheet", "T of triangles", 7, "free", 73),
    ("sheet", "L of triangles", 9, "free", 38),
    ("one-sided sheet", "L of triangles", 4, "free", 105),
]
"""Points of the border beside a wall, and an edge that crosses the border at 3 degrees."""
TOO_DEEP = [
    ("heightfield", "L of triangles", 9, "border", 29),
    ("heightfield", "T of triangles", 5, "border", 57),
    ("heightfield", "box of triangles", 3, "border", 118),
]
"""The least translation was found and dropped, since its triangle of the heightfield was not."""
TOO_FAR = [("box", "hull", 7, "border", 7)]
"""Separations were raised to that of a search which rounding had ended above the exact one."""


@pytest.mark.parametrize(
    ("surface", "body", "seed", "placing", "pose"),
    [*TILTED, *LOST_AT_PARALLEL_EDGES, *LOST_AT_BORDER, *TOO_DEEP, *TOO_FAR],
)
def test_contacts_of_mended_poses(surface, body, seed, placing, pose):
    assert compare(surface, body, seed, (placing, pose)) == (1, [])


DEPTHS = (6e-9, 1e-8, 3e-8, 1e-7, 1e-6, 5e-6, 8e-6, 1e-5, 1.2e-5, 2e-5, 1e-4)
"""Of a base below the surface [units]: from a touch to depths that are searched."""


def test_shallow_bases_on_grid_lines_keep_the_normal_of_the_surface():
    """A search must not gain what it leaves of an overlap: up to a touch.

    Of 8 000 poses one, among those that are compared, had a normal tilted by a few mrad.
    """
    rng = np.random.default_rng(1)
    count = 4000
    offset = offsets_on_grid(rng, "inside", count)
    noise = rng.choice((1e-12, 1e-10, 1e-8), count)[:, None]
    shift = noise * rng.uniform(-1.0, 1.0, (count, 3))
    height = shift[:, 2] - rng.choice(DEPTHS, count)
    standing = Standing(
        offset + shift[:, :2], height, np.zeros(count), noise * rng.uniform(-1.0, 1.0, (count, 3))
    )
    poses = standing.poses(rng, 1.0, turned=True)[1200:1300]
    contacts = collidecli.collide(flat_scene("sheet", "box"), poses, device="cpu")
    rows = np.diff(contacts.cell_start)
    assert (rows >= 4).all()
    frame = np.repeat(poses[:, 0, 0], rows, axis=0)
    normal = Rotation.from_quat(frame[:, 3:]).inv().apply(contacts.normal)
    assert normal[:, 2].min() > 1.0 - 1e-6


# Corners of a contact patch at which the outlines of two solids cross.


def crossings_of_outlines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[m, 2]: points at which sides of two polygons cross, away from their ends."""
    u = np.roll(first, -1, axis=0) - first
    v = np.roll(second, -1, axis=0) - second
    across = u[:, None, 0] * v[None, :, 1] - u[:, None, 1] * v[None, :, 0]
    between = second[None] - first[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (between[..., 0] * v[None, :, 1] - between[..., 1] * v[None, :, 0]) / across
        t = (between[..., 0] * u[:, None, 1] - between[..., 1] * u[:, None, 0]) / across
    crosses = (np.abs(across) > 1e-9) & (s > 0.01) & (s < 0.99) & (t > 0.01) & (t < 0.99)
    return (first[:, None] + s[..., None] * u[:, None])[crosses]


def two_solids(below: np.ndarray, above: np.ndarray) -> Model:
    builder = ModelBuilder()
    for outline in (below, above):
        mesh = upright_prism(tuple(map(tuple, outline)))
        builder.add_shape_mesh(builder.add_body(), *mesh, cfg=ShapeConfig(gap=0.01))
    return builder.finalize()


@pytest.mark.parametrize("depth", [2e-3, -2e-3], ids=["overlap", "apart"])
@pytest.mark.parametrize(
    ("below", "above"), [(LETTER_L, LETTER_L), (LETTER_L, RECTANGLE), (LETTER_U, LETTER_U)]
)
def test_solids_in_each_other_have_a_contact_where_their_outlines_cross(below, above, depth):
    count = 120
    rng = np.random.default_rng(5)
    larger = 1.3 * np.array(below)
    smaller = np.array(above)
    standing = Standing(
        rng.uniform(-1.0, 3.0, (count, 2)),
        np.full(count, 1.0 - depth),
        rng.uniform(0.0, 2.0 * np.pi, count),
        np.zeros((count, 3)),
    )
    contacts = collidecli.collide(
        two_solids(larger, smaller), standing.poses(rng, 1.0, False), device="cpu"
    )
    expected = 0
    lost = []
    for k in range(count):
        corners = crossings_of_outlines(larger, standing.turned(smaller, k))
        point = contacts.point0[contacts.cell_start[k] : contacts.cell_start[k + 1], :2]
        expected += len(corners)
        for corner in corners:
            apart = np.abs(point - corner).max(axis=1) if len(point) else np.array([np.inf])
            if apart.min() > 1e-6:
                lost.append((k, corner))
    assert expected > 150
    assert not lost
