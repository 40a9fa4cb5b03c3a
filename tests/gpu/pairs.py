"""Scenes of two shapes for every pair of kinds of shapes, and contacts of both devices compared."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.device_comparison import MOST_BEYOND, Difference, difference
from tests.support.device_scenes import Scene, scene_blocks, scene_pipeline
from tests.support.engine_runs import random_poses
from tests.support.fields import add
from tests.support.heightfields import rough

STATIC = ("plane", "heightfield")
CONVEX = ("sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "hull")
KINDS = (*STATIC, *CONVEX, "mesh", "field")
"""A field is a mesh with a signed distance field."""
PAIRS = tuple(pair for pair in combinations_with_replacement(KINDS, 2) if not set(pair) <= set(STATIC))
GAP = 0.1
SPREAD = 0.7


def pair_scene(kinds: tuple[str, str], frames: int) -> Scene:
    """The two shapes at random poses, about two thirds of which touch."""
    builder = ModelBuilder()
    builder.default_gap = GAP
    for kind in kinds:
        if kind == "plane":
            builder.add_shape(-1, ShapeType.PLANE)
        elif kind == "heightfield":
            terrain = rough(3, 6, 7)
            builder.add_shape_heightfield(-1, terrain.heights, terrain.hx, terrain.hy, terrain.base)
        else:
            name = {"mesh": "blob", "field": "ring"}.get(kind, kind)
            add(builder, builder.add_body(), name, ShapeConfig(sdf_max_resolution=16) if kind == "field" else None)
    model = builder.finalize()
    rng = np.random.default_rng(KINDS.index(kinds[0]) * len(KINDS) + KINDS.index(kinds[1]))
    poses = random_poses(rng, (frames, 1, len(model.bodies)), SPREAD)
    return Scene(model, poses, ContactOptions())


def part_beyond(kinds: tuple[str, str]) -> float:
    """The part of the pairs that may differ beyond rounding: none of those whose depth is one minimum."""
    return 0.0 if set(kinds) <= {"plane", *CONVEX} else MOST_BEYOND


def pair_difference(device: str, frames: int, kinds: tuple[str, str]) -> Difference:
    """The difference of the contacts of a pair of kinds on a device and on the CPU."""
    scene = pair_scene(kinds, frames)
    here, there = (scene_blocks(scene_pipeline(scene, "explicit", name), scene) for name in ("cpu", device))
    return difference(here, there)
