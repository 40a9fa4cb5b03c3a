"""touch_only has exactly the pairs of the full contact set, for every type of shape, gap and
size."""

from typing import Any

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import ROUND_AND_FLAT, SIZE_COUNTS, random_cloud, random_poses
from tests.support.meshes import box, bumpy, channel, joined, patch, prism, torus

PAIRS = np.dtype([("cell", np.int64), ("shape0", np.int32), ("shape1", np.int32)])


def table(cell: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
    found = np.zeros(len(cell), PAIRS)
    found["cell"] = cell
    found["shape0"] = shape0
    found["shape1"] = shape1
    return found


def pairs_of_contacts(contacts: collidecli.Contacts) -> np.ndarray:
    cell = np.repeat(np.arange(len(contacts.cell_start) - 1), np.diff(contacts.cell_start))
    return np.unique(table(cell, contacts.shape0, contacts.shape1))


def touches(contacts: collidecli.Contacts) -> np.ndarray:
    assert contacts.rigid_contact_count == 0
    rows = contacts.groups["touches"]
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    return table(cell, rows.columns["shape0"], rows.columns["shape1"])


def test_the_pairs_do_not_depend_on_how_work_is_divided():
    model = scene_of_triangles(1.0, 0.02).finalize()
    poses = random_poses(np.random.default_rng(5), (5, 1, len(model.bodies)), 0.5)
    whole = touches(collidecli.collide(model, poses, device="cpu", touch_only=True))
    for options in (
        {"chunk_cells": 1, "broad_phase": "nxn"},
        {"chunk_cells": 2, "threads": 2, "broad_phase": "sap"},
    ):
        assert (
            touches(collidecli.collide(model, poses, device="cpu", touch_only=True, **options))
            == whole
        ).all()


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
    model = scene_of_triangles(1.0, 0.0).finalize()
    with pytest.raises(
        InputError, match=f"{name} applies to contacts, and touch_only finds pairs alone"
    ):
        collidecli.collide(model, device="cpu", touch_only=True, **options)
    with pytest.raises(InputError, match="touch_only finds pairs alone, which have no columns"):
        collidecli.collide(model, device="cpu", touch_only=True, columns="friction")


# touch_only has exactly the pairs of the full contact set, for pairs with triangles: meshes,
# heightfields, fields.

RNG = np.random.default_rng(6)
ELBOW = prism([(0.0, 0.0), (1.0, 0.0), (1.0, 0.4), (0.4, 0.4), (0.4, 1.0), (0.0, 1.0)], 0.2)
TWO_BOXES = joined(
    box(0.3, 0.3, 0.3), (box(0.2, 0.2, 0.2)[0] + [0.8, 0.0, 0.0], box(0.2, 0.2, 0.2)[1])
)
MESHES = {
    "torus": (torus(14, 8), {}),
    "bumpy": (bumpy(RNG, 8, 12), {}),
    "convex": (box(0.7, 0.5, 0.3), {}),
    "elbow": (ELBOW, {}),
    "two_boxes": (TWO_BOXES, {}),
    "hollow": (torus(14, 8), {"is_solid": False}),
    "sheet": (channel(0.5, 0.4, 0.7), {}),
    "one_sided": (patch(RNG, bumpy(RNG, 8, 12)), {"two_sided": False}),
}
"""Closed, hollow and open meshes, one with two parts: the mesh, and how it is added."""


def compared(model: Model, poses: np.ndarray) -> np.ndarray:
    """The pairs of the full contact set, which touch_only must have in the same order."""
    full = pairs_of_contacts(collidecli.collide(model, poses, device="cpu"))
    found = touches(collidecli.collide(model, poses, device="cpu", touch_only=True))
    assert len(found) == len(full)
    assert (found == full).all()
    return full


def scene_of_triangles(scale: float, gap: float) -> ModelBuilder:
    """Every mesh, convex type, a plane, two heightfields and a shape with a field, of size 0.1 to
    0.5 times `scale`."""
    builder = ModelBuilder()
    rng = np.random.default_rng(7)

    def config(**others: Any) -> ShapeConfig:
        return ShapeConfig(gap=gap * scale, margin=0.25 * gap * scale, **others)

    builder.add_shape(
        -1, ShapeType.PLANE, (), [0, 0, -0.6 * scale, 0, 0, 0, 1], config(), key="plane"
    )
    for name in ("terrain", "field"):
        heights = scale * rng.uniform(-0.3, 0.3, (9, 7))
        body = -1 if name == "terrain" else builder.add_body(key=name)
        builder.add_shape_heightfield(
            body, heights, 0.9 * scale, 0.8 * scale, 0.2 * scale, cfg=config(), key=name
        )
    for name, ((vertices, faces), how) in MESHES.items():
        cfg = config(is_solid=how.get("is_solid", True))
        body = builder.add_body(key=name)
        two_sided = how.get("two_sided", True)
        builder.add_shape_mesh(
            body, 0.4 * scale * vertices, faces, cfg=cfg, key=name, two_sided=two_sided
        )
    for index, kind in enumerate(ROUND_AND_FLAT):
        body = builder.add_body(key=f"s{index}")
        cfg = config()
        if kind == ShapeType.CONVEX_MESH:
            builder.add_shape_convex_hull(body, scale * random_cloud(rng), cfg=cfg, key=f"s{index}")
        else:
            size = (scale * rng.uniform(0.05, 0.3, SIZE_COUNTS.get(kind, 2))).tolist()
            builder.add_shape(body, kind, size, cfg=cfg, key=f"s{index}")
    cfg = config(sdf_max_resolution=16)
    builder.add_shape_mesh(
        builder.add_body(key="sdf"), 0.3 * scale * ELBOW[0], ELBOW[1], cfg=cfg, key="sdf"
    )
    return builder


@pytest.mark.share(3)
@pytest.mark.parametrize(("scale", "gap"), [(1e-3, 0.0), (1.0, 0.04), (1e3, 0.0)])
def test_the_pairs_of_triangles_are_those_of_the_contacts(scale, gap):
    model = scene_of_triangles(scale, gap).finalize()
    poses = random_poses(np.random.default_rng(8), (12, 1, len(model.bodies)), 0.8 * scale)
    full = compared(model, poses)
    assert len(full) > 350
    of_meshes = np.sort(
        model.shapes.type[np.stack([full["shape0"], full["shape1"]], axis=1)], axis=1
    )
    assert len(np.unique(of_meshes, axis=0)) >= 33


def test_shapes_deep_inside_what_is_solid():
    """No triangle is near: only the inside tells that they touch; between two parts or in a hollow
    mesh they do not."""
    builder = ModelBuilder()
    large = box(5.0, 5.0, 5.0)
    small = box(1.0, 1.0, 1.0)
    vertices, faces = joined(large, (small[0] + [0.0, 9.0, 0.0], small[1]))
    for index, is_solid in enumerate((True, False)):
        at = [20.0 * index, 0, 0, 0, 0, 0, 1]
        builder.add_shape_mesh(
            -1, vertices, faces, at, ShapeConfig(gap=0.0, is_solid=is_solid), key=f"mesh{index}"
        )
    builder.add_shape_heightfield(
        -1, np.zeros((3, 3)), 4.0, 4.0, 9.0, [0, 0, 40, 0, 0, 0, 1], ShapeConfig(gap=0.0)
    )
    kinds = {"ball": [0.2], "rod": [0.1, 0.2]}
    for name, sizes in kinds.items():
        adder = builder.add_shape_sphere if name == "ball" else builder.add_shape_capsule
        adder(builder.add_body(key=name), None, *sizes, cfg=ShapeConfig(gap=0.0), key=name)
    vertices, faces = TWO_BOXES
    builder.add_shape_mesh(
        builder.add_body(key="parts"), vertices, faces, cfg=ShapeConfig(gap=0.0), key="parts"
    )
    model = builder.finalize()
    places = [[0, 0, 0], [20, 0, 0], [0, 9, 0], [0, 6.8, 0], [0, 0, 37], [4.9, 0, 0], [0, -5.5, 0]]
    poses = np.zeros((len(places), 1, 3, 7))
    poses[..., 6] = 1.0
    poses[..., :3] = (
        np.array(places, np.float64)[:, None, None]
        + np.array([[0, 0, 0], [0, 0, 1], [0, 0, -1]]) * 0.9
    )
    full = compared(model, poses)
    touching = np.bincount(full["cell"], minlength=len(places)) > 0
    assert touching.tolist() == [True, False, True, False, True, True, False]


@pytest.mark.parametrize("lift", [0.0, 1e-15, 1e-12, 1e-9, -1e-15, -1e-12, -1e-9])
def test_shapes_that_rest_exactly_on_triangles(lift):
    builder = ModelBuilder()
    ground = np.array([[x, y, 0.0] for x in (-9.0, 0.5, 9.0) for y in (-9.0, 0.3, 9.0)])
    faces = np.array(
        [[0, 3, 4], [0, 4, 1], [1, 4, 5], [1, 5, 2], [3, 6, 7], [3, 7, 4], [4, 7, 8], [4, 8, 5]]
    )
    cfg = ShapeConfig(gap=0.0)
    builder.add_shape_mesh(-1, ground, faces, cfg=cfg, key="ground")
    builder.add_shape_heightfield(
        -1, np.zeros((4, 4)), 9.0, 9.0, 1.0, [0, 40, 0, 0, 0, 0, 1], cfg, key="field"
    )
    heights = []
    for index, (kind, size) in enumerate(
        (("box", [0.5, 0.4, 0.3]), ("cylinder", [0.3, 0.3]), ("sphere", [0.3]))
    ):
        getattr(builder, f"add_shape_{kind}")(
            builder.add_body(key=kind), None, *size, cfg=cfg, key=kind
        )
        heights.append([2.0 * index, 0.0, 0.3 + lift])
    builder.add_shape_mesh(
        builder.add_body(key="mesh"), *prism([(0, 0), (1, 0), (0.3, 0.3), (0, 1)], 0.3), cfg=cfg
    )
    heights.append([-2.0, 0.0, 0.3 + lift])
    poses = np.zeros((2, 1, 4, 7))
    poses[..., 6] = 1.0
    poses[..., :3] = heights
    poses[1, ..., 1] += 40.0
    compared(builder.finalize(), poses)
