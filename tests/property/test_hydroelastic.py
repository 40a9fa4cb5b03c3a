"""Hydroelastic surfaces: one answer however they are computed, and clipped and sampled ones
agree."""

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.scheduler import Workers
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import GroupRows, consecutive_groups
from collidecli.scene.options import ContactOptions
from tests.support.engine_runs import pipeline_of
from tests.support.hydroelastic import collided, random_rotation, soft

OPTIONS = ContactOptions(hydro_surface=True, hydro_reduce=True, hydro_resolution=16)
WORLDS = 3
FRAMES = 4


def scene() -> ModelBuilder:
    """A pile of several types over a plane, in worlds; one sphere is not hydroelastic, and one pair
    is filtered."""
    one = ModelBuilder()
    for number in range(8):
        body = one.add_body((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        cfg = soft(1e6 * (1 + number))
        if number % 4 == 0:
            one.add_shape_box(body, hx=0.2, hy=0.3, hz=0.25, cfg=cfg)
        elif number % 4 == 1:
            one.add_shape_sphere(body, radius=0.3, cfg=cfg)
        elif number % 4 == 2:
            one.add_shape_convex_hull(
                body, vertices=np.random.default_rng(number).normal(size=(20, 3)) * 0.2, cfg=cfg
            )
        else:
            one.add_shape_cylinder(body, radius=0.25, half_height=0.2)
    one.add_shape_collision_filter_pair(0, 1)
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=soft(5e6))
    builder.add_world(one, count=WORLDS)
    return builder


def poses(body_count: int) -> np.ndarray:
    rng = np.random.default_rng(9)
    result = np.empty((FRAMES, WORLDS, body_count, 7))
    result[..., :3] = rng.uniform(-0.4, 0.4, (*result.shape[:-1], 3)) + np.array([0.0, 0.0, 0.3])
    for index in np.ndindex(result.shape[:-1]):
        result[index][3:] = random_rotation(rng)
    return result


def groups_of(
    pipeline, motion: np.ndarray, step: int, threads: int, memory: int = 4 << 30
) -> dict[str, GroupRows]:
    cells = WORLDS * FRAMES
    batches = [
        PoseBatch(first, min(step, cells - first), 0, motion) for first in range(0, cells, step)
    ]
    with Workers(pipeline, threads, memory) as pool:
        blocks = [block for block, _ in pool.collide(batches)]
    names = blocks[0].columns
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in names}
    rigid = GroupRows(np.concatenate([block.cell_counts for block in blocks]), columns)
    return {**consecutive_groups([block.groups for block in blocks]), "rigid_contacts": rigid}


def assert_equal(one: dict[str, GroupRows], other: dict[str, GroupRows]) -> None:
    assert list(one) == list(other)
    for name, rows in one.items():
        np.testing.assert_array_equal(rows.cell_counts, other[name].cell_counts)
        for column, values in rows.columns.items():
            np.testing.assert_array_equal(
                values, other[name].columns[column], err_msg=f"{name}/{column}"
            )
        for column, (lengths, values) in rows.lists.items():
            np.testing.assert_array_equal(lengths, other[name].lists[column][0])
            np.testing.assert_array_equal(values, other[name].lists[column][1])


@pytest.fixture(scope="module")
def reference():
    model = scene().finalize()
    motion = poses(len(model.bodies))
    groups = groups_of(
        pipeline_of(model, motion, OPTIONS, broad_phase="nxn"), motion, WORLDS * FRAMES, 1
    )
    assert groups["hydro_patches"].row_count > 40
    assert (groups["hydro_patches"].cell_counts > 0).all()
    return model, motion, groups


def test_one_answer_in_parts_of_a_cell(reference):
    model, motion, groups = reference
    pipeline = pipeline_of(model, motion, OPTIONS, broad_phase="nxn")
    assert_equal(groups_of(pipeline, motion, 4, 1, memory=24 << 20), groups)


def test_rows_of_hydroelastic_pairs_are_in_canonical_order(reference):
    model, _, groups = reference
    patches = groups["hydro_patches"]
    faces = groups["hydro_faces"]
    cell = np.repeat(np.arange(WORLDS * FRAMES), patches.cell_counts)
    keys = np.stack([cell, patches.columns["shape0"], patches.columns["shape1"]], axis=1)
    assert (np.lexsort(keys.T[::-1]) == np.arange(len(keys))).all()
    assert len(np.unique(keys, axis=0)) == len(keys)
    marked = model.shapes.is_hydroelastic
    assert marked[patches.columns["shape0"]].all()
    assert marked[patches.columns["shape1"]].all()
    np.testing.assert_array_equal(
        np.bincount(faces.columns["patch"]), patches.columns["face_count"]
    )
    area = np.bincount(faces.columns["patch"], faces.columns["area"])
    np.testing.assert_allclose(area, patches.columns["area"])
    filtered = {tuple(pair) for pair in model.pair_filter.excluded}
    assert filtered
    assert not filtered & set(map(tuple, keys[:, 1:].tolist()))


def test_scenes_without_hydroelastic_shapes_have_no_stage():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.3)
    model = builder.finalize()
    pipeline = pipeline_of(model, model.resting_poses()[None])
    assert pipeline.hydro is None
    assert not [kernel for kernel in pipeline.kernels() if "hydro" in kernel.module.name]


# Clipped and sampled surfaces of random polytopes agree: no cell is left out, none counts twice.

NO_MARGIN = 1e-12
"""A margin selects the sampled path; this one is far below its error [m]."""


def polytopes(seed: int, margin: float) -> ModelBuilder:
    """Two of a box, a rough hull and a prism of 48 sides, whose overlap is anything from slight to
    nearly whole."""
    rng = np.random.default_rng(seed)
    offset = rng.normal(size=3)
    offset *= rng.uniform(0.2, 1.2) / np.linalg.norm(offset)
    builder = ModelBuilder()
    for number in range(2):
        body = builder.add_body((*(number * offset), *random_rotation(rng)))
        cfg = soft(10.0 ** rng.uniform(5, 7), margin=margin)
        kind = rng.integers(0, 3)
        if kind == 0:
            builder.add_shape_box(body, hx=0.7, hy=0.5, hz=0.6, cfg=cfg)
        elif kind == 1:
            points = rng.normal(size=(60, 3))
            points *= rng.uniform(0.7, 1.0, (60, 1)) / np.linalg.norm(points, axis=1)[:, None]
            builder.add_shape_convex_hull(body, vertices=points, cfg=cfg)
        else:
            angle = np.arange(48) * 2.0 * np.pi / 48
            rim = 0.8 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            ends = [np.column_stack([rim, np.full(48, z)]) for z in (-0.32, 0.4)]
            builder.add_shape_convex_hull(body, vertices=np.concatenate(ends), cfg=cfg)
    return builder


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(12))
def test_both_ways_agree(seed):
    exact = collided(polytopes(seed, 0.0)).groups["hydro_patches"].columns
    sampled = (
        collided(polytopes(seed, NO_MARGIN), hydro_resolution=64).groups["hydro_patches"].columns
    )
    assert len(exact["area"]) == len(sampled["area"])
    if len(exact["area"]):
        scale = np.linalg.norm(exact["force"][0])
        np.testing.assert_allclose(sampled["force"], exact["force"], atol=2e-2 * scale)
        np.testing.assert_allclose(sampled["area"], exact["area"], rtol=3e-2)
        np.testing.assert_allclose(sampled["center"], exact["center"], atol=2e-2)
        assert exact["face_count"][0] < sampled["face_count"][0]
