"""touch_only has exactly the pairs of the full contact set, for every type of shape, gap and size."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.meshes import prism
from tests.support.random_scenes import add_planes, add_shapes, random_poses

FRAMES, COUNT = 40, 28
PAIRS = np.dtype([("cell", np.int64), ("shape0", np.int32), ("shape1", np.int32)])


def scene(gap: float, margin: float) -> ModelBuilder:
    """Two planes, shapes of every convex type, and a mesh that is not convex for the pairs with triangles."""
    builder = ModelBuilder()
    config = ShapeConfig(gap=gap, margin=margin)
    add_planes(builder, lambda index: config)
    add_shapes(builder, np.random.default_rng(2), COUNT, lambda index: config)
    vertices, triangles = prism([(0.0, 0.0), (0.4, 0.0), (0.4, 0.15), (0.15, 0.15), (0.15, 0.4), (0.0, 0.4)], 0.1)
    builder.add_shape_mesh(builder.add_body(key="mesh"), vertices, triangles, cfg=config, key="mesh")
    return builder


def table(cell: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
    found = np.zeros(len(cell), PAIRS)
    found["cell"], found["shape0"], found["shape1"] = cell, shape0, shape1
    return found


def pairs_of_contacts(contacts: collidecli.Contacts) -> np.ndarray:
    cell = np.repeat(np.arange(len(contacts.cell_start) - 1), np.diff(contacts.cell_start))
    return np.unique(table(cell, contacts.shape0, contacts.shape1))


def touches(contacts: collidecli.Contacts) -> np.ndarray:
    assert contacts.rigid_contact_count == 0
    rows = contacts.groups["touches"]
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    return table(cell, rows.columns["shape0"], rows.columns["shape1"])


@pytest.mark.parametrize(("gap", "margin"), [(0.0, 0.0), (0.05, 0.0), (0.02, 0.01)])
def test_the_pairs_are_those_of_the_contacts(gap, margin):
    model = scene(gap, margin).finalize()
    poses = random_poses(np.random.default_rng(3), (FRAMES, 1, len(model.bodies)), 0.5)
    full = pairs_of_contacts(collidecli.collide(model, poses, device="cpu"))
    found = touches(collidecli.collide(model, poses, device="cpu", touch_only=True))
    assert len(full) > 1000
    assert (found == full).all(), "in canonical order"
    kinds = np.sort(model.shapes.type[np.stack([found["shape0"], found["shape1"]], axis=1)], axis=1)
    assert len(np.unique(kinds, axis=0)) > 35


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_sizes_of_a_millimetre_and_a_kilometre(scale):
    builder = ModelBuilder()
    rng = np.random.default_rng(4)
    for index, kind in enumerate(("box", "cylinder", "cone", "ellipsoid", "capsule") * 4):
        sizes = (scale * rng.uniform(0.1, 0.3, 3)).tolist()
        count = 3 if kind in ("box", "ellipsoid") else 2
        body = builder.add_body(key=str(index))
        getattr(builder, f"add_shape_{kind}")(body, None, *sizes[:count], cfg=ShapeConfig(gap=0.0), key=str(index))
    model = builder.finalize()
    poses = random_poses(rng, (FRAMES, 1, len(model.bodies)), 0.4 * scale)
    full = pairs_of_contacts(collidecli.collide(model, poses, device="cpu"))
    assert len(full) > 500
    assert (touches(collidecli.collide(model, poses, device="cpu", touch_only=True)) == full).all()


def test_the_pairs_are_the_same_for_any_chunk_thread_count_and_broad_phase():
    model = scene(0.02, 0.0).finalize()
    poses = random_poses(np.random.default_rng(5), (9, 1, len(model.bodies)), 0.5)
    whole = touches(collidecli.collide(model, poses, device="cpu", touch_only=True))
    for options in (
        {"chunk_cells": 1},
        {"chunk_cells": 4, "threads": 2},
        {"broad_phase": "nxn"},
        {"broad_phase": "sap"},
    ):
        assert (touches(collidecli.collide(model, poses, device="cpu", touch_only=True, **options)) == whole).all()


@pytest.mark.parametrize(
    "options",
    [
        {"narrow_phase": "mpr"},
        {"max_contacts_per_pair": 1},
        {"reduce_contacts": True},
        {"contact_ids": True},
        {"sticky_contacts": 0.1},
        {"hydro": "all"},
    ],
)
def test_options_of_contacts_are_refused(options):
    (name,) = options
    model = scene(0.0, 0.0).finalize()
    with pytest.raises(InputError, match=f"{name} applies to contacts, and touch_only finds pairs alone"):
        collidecli.collide(model, device="cpu", touch_only=True, **options)
    with pytest.raises(InputError, match="touch_only finds pairs alone, which have no columns"):
        collidecli.collide(model, device="cpu", touch_only=True, columns="friction")
