"""Values of sensors against a plain loop over contacts."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.analysis.sensor_contacts import ContactColumn, SensorRows, contact_rows
from collidecli.scene.sensor_volumes import BOX, SPHERE, Volume
from collidecli.scene.sensors import OWN_POINT, POSITION, RAY, Placement, Region
from tests.support.contact_sets import ContactBlock, split

SHAPES = 6
SHAPE_BODY = np.array([-1, 0, 0, 1, 2, 2])
CELLS = 12
LIMIT = 0.01
BODY_POSE = np.concatenate(
    [
        np.random.default_rng(8).normal(scale=0.3, size=(CELLS, 4, 3)),
        Rotation.random(CELLS * 4, random_state=5).as_quat().reshape(CELLS, 4, 4),
    ],
    axis=2,
)
"""Poses of the world, moved for the test too, and of bodies 0 to 2 in each cell."""


def poses(body: np.ndarray, cell: np.ndarray) -> np.ndarray:
    return BODY_POSE[cell, body + 1]


def made_up(rng: np.random.Generator) -> ContactBlock:
    counts = rng.integers(0, 9, CELLS)
    counts[3] = 0
    total = int(counts.sum())
    pair = np.sort([rng.choice(SHAPES, 2, replace=False) for _ in range(total)], axis=1)
    normal = rng.normal(size=(total, 3))
    columns = {
        "shape0": pair[:, 0].astype(np.int32),
        "shape1": pair[:, 1].astype(np.int32),
        # few values, so that some contacts of a cell are equally near
        "distance": rng.choice([-0.02, 0.0, 0.01, 0.03], total).astype(np.float32),
        "normal": (normal / np.linalg.norm(normal, axis=1, keepdims=True)).astype(np.float32),
        "point0": rng.normal(scale=0.3, size=(total, 3)),
        "point1": rng.normal(scale=0.3, size=(total, 3)),
    }
    return ContactBlock(0, counts.astype(np.int64), columns)


def region(test: str, placement: Placement | None) -> Region:
    volume = Volume(SPHERE, (0.45,)) if test == OWN_POINT else Volume(BOX, (0.4, 0.3, 0.35))
    return Region(volume, test, placement, (0.05, -0.02, 0.1, 0.0, 0.0, 0.0, 1.0))


def in_region(column: ContactColumn, contact: dict, side: int, cell: int) -> bool:
    """Whether a contact is in the region, with the sensing shape of a side; by matrices."""
    chosen = column.region
    if chosen is None:
        return True
    placement = chosen.placement
    if placement is None:
        body = SHAPE_BODY[contact[f"shape{side}"]]
        local = chosen.pose
    else:
        body = column.region_body[contact[f"shape{side}"]]
        local = placement.pose
    of_body = BODY_POSE[cell, body + 1]
    frame = Rotation.from_quat(of_body[3:])
    origin = of_body[:3] + frame.apply(local[:3])
    frame = frame * Rotation.from_quat(local[3:])
    middle = (contact["point0"] + contact["point1"]) / 2.0
    point = contact[f"point{side}"] if chosen.test == OWN_POINT else middle
    point = frame.inv().apply(point - origin)
    if chosen.test != RAY:
        return bool(chosen.volume.contains(point[None])[0])
    away = frame.inv().apply(contact["normal"] * (1.0 if side == 0 else -1.0))
    # the half-line, sampled
    steps = np.linspace(0.0, 4.0, 4001)[:, None]
    return bool(chosen.volume.contains(point + steps * away).any())


def by_loop(block: ContactBlock, column: ContactColumn) -> list[tuple]:
    """Cell, slot, count, shape, partner, distance and centre of each value, contact by contact."""
    found = []
    row = 0
    for cell, count in enumerate(block.cell_counts.tolist()):
        matched = []
        for _ in range(count):
            contact = {name: values[row] for name, values in block.columns.items()}
            row += 1
            for side in (0, 1):
                shape = contact[f"shape{side}"]
                other = contact[f"shape{1 - side}"]
                fits = column.sensing[shape] and column.other[other]
                if fits and in_region(column, contact, side, cell):
                    matched.append((float(contact["distance"]), row, shape, other, contact, side))
                    break
        touching = [entry for entry in matched if np.float32(entry[0]) <= np.float32(LIMIT)]
        middles = [(entry[4]["point0"] + entry[4]["point1"]) / 2.0 for entry in touching]
        centre = np.mean(middles, axis=0) if middles else np.full(3, np.nan)
        nearest = sorted(matched, key=lambda entry: entry[:2])[: column.slots]
        found += [
            (cell, slot, len(touching), shape, other, distance, centre, contact, side)
            for slot, (distance, _, shape, other, contact, side) in enumerate(nearest)
        ]
    return found


REGIONS = {
    "none": None,
    "own": region(OWN_POINT, None),
    "of a body": region(POSITION, Placement("b", (0.1, 0.0, 0.0, 0.0, 0.6, 0.0, 0.8))),
    "ray": region(RAY, Placement("b")),
}


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("sides", ["apart", "within", "any"])
def test_values_are_those_of_a_loop_over_contacts(slots, name, sides):
    rng = np.random.default_rng(slots + 10 * len(name))
    block = made_up(rng)
    sensing = np.isin(
        np.arange(SHAPES), {"apart": [1, 2, 5], "within": [1, 2, 3, 4]}.get(sides, range(6))
    )
    other = np.isin(np.arange(SHAPES), {"apart": [0, 3, 4]}.get(sides, range(6)))
    body = np.full(SHAPES, 1)
    column = ContactColumn(4, slots, sensing, other, REGIONS[name], body)
    rows = contact_rows(block, [column], LIMIT, SHAPE_BODY, poses)
    expected = by_loop(block, column)
    assert len(rows) == len(expected) > 3
    order = np.lexsort((rows.column, rows.cell))
    rows = rows.take(order)
    for k, (cell, slot, count, shape, partner, distance, centre, contact, side) in enumerate(
        expected
    ):
        assert (rows.cell[k], rows.column[k], rows.count[k]) == (cell, 4 + slot, count)
        assert (rows.shape[k], rows.partner[k], rows.distance[k]) == (shape, partner, distance)
        assert np.array_equal(rows.point[k], contact[f"point{side}"])
        assert np.array_equal(rows.partner_point[k], contact[f"point{1 - side}"])
        sign = 1.0 if side == 0 else -1.0
        assert np.array_equal(rows.normal[k], sign * contact["normal"].astype(np.float64))
        assert np.allclose(rows.centre[k], centre, rtol=0.0, atol=1e-15, equal_nan=True)


def test_values_are_equal_in_blocks_of_any_size():
    block = made_up(np.random.default_rng(0))
    every = np.ones(SHAPES, bool)
    columns = [
        ContactColumn(0, 2, every, every, None, np.full(SHAPES, -1)),
        ContactColumn(2, 1, every, every, REGIONS["ray"], np.full(SHAPES, 1)),
    ]
    whole = contact_rows(block, columns, LIMIT, SHAPE_BODY, poses)
    for size in (1, 5):
        parts = SensorRows.chained(
            *(contact_rows(b, columns, LIMIT, SHAPE_BODY, poses) for b in split(block, size))
        )
        parts = parts.take(np.lexsort((parts.cell, parts.column)))
        for name, values in vars(whole).items():
            assert values.tobytes() == vars(parts)[name].tobytes(), name
    assert not math.isnan(whole.distance.sum())
