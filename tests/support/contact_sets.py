"""Small contact sets that obey every rule, made up rather than computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from collidecli.scene.material import Material, Materials
from collidecli.scene.model import Bodies, Model, PairFilter, Shapes
from collidecli.scene.particles import CLOTH, SOFT, Particles
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import GROUPS_BY_NAME, RIGID_COLUMNS, ContactBlock, groups_of_cells
from collidecli.storage.contact_sets.writer import ContactWriter

ATTRIBUTES = {
    "scene": "made_up.xml",
    "scene_sha256": "ab" * 32,
    "trajectory_sha256": "cd" * 32,
    "config": json.dumps({"gap_rule": "max", "narrow_phase": "gjk"}),
}


PARTICLES = Particles(
    path=("/cloth", "gel"),
    kind=(CLOTH, SOFT),
    template=np.array([-1, 0], np.int32),
    first=np.array([0, 6, 9]),
    position=np.zeros((9, 3)),
    radius=np.zeros(9),
    active=np.ones(9, bool),
    body=np.full(9, -1, np.int32),
    local=np.zeros((9, 3)),
    object_class=np.zeros(2, np.int32),
    shape_class=np.zeros(5, np.int32),
    class_table=np.ones((1, 1), bool),
)
"""A cloth of every world and a soft body of template 0, without elements."""


def small_model(world_count: int = 3, forced: bool = False) -> Model:
    """A global plane and four moving shapes of template 0, and PARTICLES; pair (1, 2) is forced with a margin of 0.5
    if asked.
    """
    shape_count, body_count = 5, 4
    pairs = np.array([[1, 2], [2, 4]], np.int32) if forced else np.zeros((0, 2), np.int32)
    return Model(
        Bodies(tuple(f"body{i}" for i in range(body_count)), np.zeros(body_count, np.int32), np.zeros((body_count, 7))),
        Shapes(
            path=("ground", "ball", "bøx", "pin", "egg"),
            type=np.array([ShapeType.PLANE, ShapeType.SPHERE, ShapeType.BOX, ShapeType.CAPSULE, ShapeType.ELLIPSOID]),
            body=np.array([-1, 0, 1, 2, 3], np.int32),
            template=np.array([-1, 0, 0, 0, 0], np.int32),
            pose=np.zeros((shape_count, 7)),
            size=np.ones((shape_count, 3)),
            margin=np.array([0.0, 0.01, 0.02, 0.0, 0.125]),
            gap=np.array([0.1, 0.2, 0.05, 0.1, 0.1]),
            material=Materials.of([Material(friction=1.0)] * shape_count),
            hull=np.full(shape_count, -1, np.int32),
            mesh=np.full(shape_count, -1, np.int32),
            heightfield=np.full(shape_count, -1, np.int32),
            sdf=np.full(shape_count, -1, np.int32),
        ),
        PairFilter(np.zeros(shape_count, np.int32), np.ones((1, 1), bool), np.zeros((0, 2), np.int32), (), pairs),
        np.zeros(world_count, np.int32),
        forced_gap=np.array([np.nan, 0.3]) if forced else np.zeros(0),
        forced_margin=np.array([0.5, np.nan]) if forced else np.zeros(0),
        particles=PARTICLES,
    )


def pair_margin(model: Model, shape0: int, shape1: int) -> float:
    forced = [tuple(pair) for pair in model.pair_filter.forced]
    if (shape0, shape1) in forced and not np.isnan(own := model.forced_margin[forced.index((shape0, shape1))]):
        return float(own)
    return float(model.shapes.margin[shape0] + model.shapes.margin[shape1])


def made_up_block(
    model: Model, frame_count: int, contacts_per_cell: int = 8, float_type: str = "float64", seed: int = 5
) -> ContactBlock:
    """All cells in one block; up to `contacts_per_cell` in each, and some with none."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, contacts_per_cell + 1, frame_count * model.world_count)
    shape_count = len(model.shapes)
    every_pair = [(a, b) for a in range(shape_count) for b in range(a + 1, shape_count)]
    keys = [(*every_pair[p], f0, f1) for p in range(len(every_pair)) for f0 in (-1, 3) for f1 in (-1, 0, 7)]
    chosen = [keys[i] for count in counts for i in sorted(rng.choice(len(keys), count, replace=False))]
    shape0, shape1, feature0, feature1 = np.array(chosen, np.int32).reshape(-1, 4).T
    n = len(shape0)

    normal = rng.normal(size=(n, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    distance = rng.uniform(-0.2, 0.05, n)
    margin = np.array([pair_margin(model, int(a), int(b)) for a, b in zip(shape0, shape1, strict=True)])
    point0 = rng.normal(size=(n, 3))
    point1 = point0 + normal * (distance + margin)[:, None]
    columns = {
        "shape0": shape0,
        "shape1": shape1,
        "distance": distance,
        "normal": normal,
        "point0": point0,
        "point1": point1,
        "offset0": rng.normal(size=(n, 3)),
        "offset1": rng.normal(size=(n, 3)),
        "feature0": feature0,
        "feature1": feature1,
        "kind": rng.integers(0, 3, n),
    }
    types = {column.name: column.dtype_for(np.dtype(float_type)) for column in RIGID_COLUMNS}
    return ContactBlock(0, counts.astype(np.int64), {name: columns[name].astype(types[name]) for name in types})


def split(block: ContactBlock, cells_per_block: int) -> list[ContactBlock]:
    """The same contacts in blocks of so many cells."""
    if cells_per_block >= len(block.cell_counts):
        return [block]
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    blocks = []
    for first in range(0, len(block.cell_counts), cells_per_block):
        last = min(first + cells_per_block, len(block.cell_counts))
        columns = {name: values[start[first] : start[last]] for name, values in block.columns.items()}
        groups = groups_of_cells(block.groups, np.arange(first, last))
        blocks.append(ContactBlock(block.first_cell + first, block.cell_counts[first:last], columns, groups))
    return blocks


def write_contact_set(
    path: Path, model: Model, block: ContactBlock, cells_per_block: int = 10**9, timing: dict | None = None, **options
) -> None:
    frame_count = len(block.cell_counts) // model.world_count
    time, step = np.arange(frame_count) * 0.01, np.arange(frame_count) * 5
    float_type = block.columns["point0"].dtype
    options.setdefault("groups", [GROUPS_BY_NAME[name] for name in block.groups])
    with ContactWriter(path, model, frame_count, time, step, float_type, ATTRIBUTES, **options) as writer:
        for part in split(block, cells_per_block):
            writer.append(part)
        writer.end_contacts()
        writer.write_timing(timing or {})
        writer.finish()
