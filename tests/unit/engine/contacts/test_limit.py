"""--max-contacts-per-pair: the deepest contacts stay, of equally deep ones the first by features, shape0's first."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.tables import RIGID_COLUMNS

TILTED = (np.sin(0.01), 0.0, 0.0, np.cos(0.01))
"""About x: two corners of a box are deeper than the other two, and each two are equally deep."""
TILTED_BACK = (-TILTED[0], 0.0, 0.0, TILTED[3])
CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
FIRST_CORNERS = [(0, 1, 3), (4, 6, 7), (0, 4, 5), (2, 3, 7), (0, 2, 6), (1, 5, 7)]
SECOND_CORNERS = [(0, 3, 2), (4, 7, 5), (0, 5, 1), (2, 7, 6), (0, 6, 4), (1, 7, 3)]

BODIES = {
    "box": lambda builder, body: builder.add_shape_box(body, hx=0.5, hy=0.5, hz=0.5),
    "mesh": lambda builder, body: builder.add_shape_mesh(body, CUBE, np.array(FIRST_CORNERS + SECOND_CORNERS)),
    "cylinder": lambda builder, body: builder.add_shape_cylinder(body, radius=0.5, half_height=0.5),
}
GROUNDS = {
    "plane": lambda builder: builder.add_ground_plane(),
    "box": lambda builder: builder.add_shape_box(-1, hx=2.0, hy=2.0, hz=1.0, xform=(0, 0, -1, 0, 0, 0, 1)),
}


def contacts(body: str, ground: str, ground_first: bool, rotation=(0, 0, 0, 1), depth: float = 0.25, limit: int = 0):
    """Contacts of a body of half size 0.5 that is `depth` deep in the ground at z = 0."""
    builder = ModelBuilder()
    if ground_first:
        GROUNDS[ground](builder)
    BODIES[body](builder, builder.add_body())
    if not ground_first:
        GROUNDS[ground](builder)
    pose = np.zeros((1, 1, 1, 7))
    pose[..., 2], pose[..., 3:] = 0.5 - depth, rotation
    return collidecli.collide(builder.finalize(), pose, gap=0.1, max_contacts_per_pair=limit).cell(0)


def depths(cell) -> np.ndarray:
    """Heights of the points, in float64: of equally deep contacts the same bits."""
    return np.minimum(cell.point0[:, 2], cell.point1[:, 2])


@pytest.mark.parametrize("ground_first", [True, False])
@pytest.mark.parametrize(
    ("body", "ground", "rotation", "count", "distinct"),
    [
        ("box", "plane", (0, 0, 0, 1), 4, 1),
        ("box", "plane", TILTED, 4, 2),
        ("box", "plane", TILTED_BACK, 4, 2),
        ("box", "box", (0, 0, 0, 1), 4, 1),
        ("box", "box", (0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)), 4, 1),
        ("mesh", "plane", (0, 0, 0, 1), 4, 1),
        ("mesh", "plane", (0, 0, 0, 1), 8, 2),
        ("cylinder", "plane", (0, 0, 0, 1), 4, 1),
    ],
)
def test_of_equally_deep_contacts_the_first_by_features_stay(body, ground, rotation, count, distinct, ground_first):
    depth = 1.25 if count == 8 else 0.25
    every = contacts(body, ground, ground_first, rotation, depth)
    assert every.rigid_contact_count == count
    assert len(np.unique(depths(every))) == distinct
    features = list(zip(every.feature0.tolist(), every.feature1.tolist(), strict=True))
    assert features == sorted(features)
    by_depth = np.lexsort((every.feature1, every.feature0, depths(every)))
    for limit in range(1, count + 2):
        kept = contacts(body, ground, ground_first, rotation, depth, limit)
        expected = np.sort(by_depth[:limit])
        for column in RIGID_COLUMNS:
            found, whole = getattr(kept, column.name), getattr(every, column.name)
            np.testing.assert_array_equal(found, whole[expected], err_msg=f"{column.name}, limit {limit}")
