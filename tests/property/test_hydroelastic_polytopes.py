"""Clipped and sampled surfaces of random polytopes agree: no cell is left out, none counts twice."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from tests.support.hydroelastic import collided, random_rotation, soft

NO_MARGIN = 1e-12
"""A margin selects the sampled path; this one is far below its error [m]."""


def polytopes(seed: int, margin: float) -> ModelBuilder:
    """Two of a box, a rough hull and a prism of 48 sides, whose overlap is anything from slight to nearly whole."""
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


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_agree(seed):
    exact = collided(polytopes(seed, 0.0)).groups["hydro_patches"].columns
    sampled = collided(polytopes(seed, NO_MARGIN), hydro_resolution=64).groups["hydro_patches"].columns
    assert len(exact["area"]) == len(sampled["area"])
    if len(exact["area"]):
        scale = np.linalg.norm(exact["force"][0])
        np.testing.assert_allclose(sampled["force"], exact["force"], atol=2e-2 * scale)
        np.testing.assert_allclose(sampled["area"], exact["area"], rtol=3e-2)
        np.testing.assert_allclose(sampled["center"], exact["center"], atol=2e-2)
        assert exact["face_count"][0] < sampled["face_count"][0]
