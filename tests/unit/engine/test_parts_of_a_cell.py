"""A cell that is collided in parts of its candidates: every candidate once, in order, for parts of any size."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import CollisionPipeline, joined_parts
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.tables import ContactBlock
from tests.support.engine_runs import MEMORY, pipeline_of

LIMIT = 1 << 24


def row_of_spheres(count: int) -> tuple[CollisionPipeline, PoseBatch]:
    """`count` spheres in the ground, each as deep as its number, in frame 1 of 2: `count` candidates."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for _ in range(count):
        builder.add_shape_sphere(builder.add_body(), radius=0.5)
    poses = np.zeros((2, 1, count, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = 10.0 * np.arange(count)
    poses[1, 0, :, 2] = -0.01 * np.arange(count)
    return pipeline_of(builder.finalize(), poses, broad_phase="nxn"), PoseBatch(1, 1, 0, poses)


@pytest.mark.parametrize("fitting", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 7, 8])
def test_parts_of_any_size_are_the_whole(count, fitting, monkeypatch):
    pipeline, batch = row_of_spheres(count)
    whole, report = pipeline.collide(batch, Workspace(pipeline.device_model.device, MEMORY))
    sizes: list[int] = []
    collide_part = CollisionPipeline._collide_part

    def limited(self, batch, pairs, workspace):
        if len(pairs) > fitting:
            raise ChunkTooLarge(LIMIT + 1)
        sizes.append(len(pairs))
        return collide_part(self, batch, pairs, workspace)

    monkeypatch.setattr(CollisionPipeline, "_collide_part", limited)
    block, report_of_parts = pipeline.collide_in_parts(batch, LIMIT)
    assert (block.first_cell, block.cell_counts.tolist()) == (1, [count])
    assert list(block.columns) == list(whole.columns)
    for name, values in whole.columns.items():
        assert block.columns[name].tobytes() == values.tobytes(), name
    size = max(1, count)
    while size > fitting:
        size //= 2
    assert sizes == ([size] * (count // size) + ([count % size] if count % size else []) or [0])
    for name in ("cell_count", "candidate_count", "touching_count", "contact_count"):
        assert getattr(report_of_parts, name) == getattr(report, name), name


def test_a_candidate_that_does_not_fit_is_refused_with_what_the_cell_needs(monkeypatch):
    pipeline, batch = row_of_spheres(5)
    seen = []

    def never(self, batch, pairs, workspace):
        seen.append(len(pairs))
        raise ChunkTooLarge(12345)

    monkeypatch.setattr(CollisionPipeline, "_collide_part", never)
    with pytest.raises(ChunkTooLarge) as caught:
        pipeline.collide_in_parts(batch, LIMIT)
    assert seen == [5, 2, 1]
    assert caught.value.needed == 12345 + 5 * 8, "and the candidates, 8 bytes each"


def test_joined_parts_of_one_cell():
    parts = [
        ContactBlock(7, np.array([n]), {"shape0": np.full(n, n, np.int32), "normal": np.full((n, 3), n, np.float32)})
        for n in (2, 0, 3)
    ]
    one = joined_parts(parts)
    assert (one.first_cell, one.cell_counts.tolist()) == (7, [5])
    assert one.columns["shape0"].tolist() == [2, 2, 3, 3, 3]
    assert one.columns["normal"][:, 0].tolist() == [2, 2, 3, 3, 3]
