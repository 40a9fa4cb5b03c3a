"""How deep pairs with a signed distance field are, against points all over both surfaces, in float64.

No exit is shorter than that of the deepest point of either surface in the other.
"""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.model import Model
from collidecli.scene.signed_distance import facets
from tests.support.deepest_places import deepest_of_pair
from tests.support.field_scenes import found, least, pair_model, random_poses
from tests.support.oracle import rotation_of

RESOLUTION = 32
FRAMES = 9
PAIRS = (("box", "box"), ("blob", "box"), ("blob", "blob"))
MISSED = 0.06
"""The points on a surface of about 8 m^2 are some 0.1 m apart: what lies between them is deeper by half of that [m]."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Fields are built once for all tests here, and kept nowhere else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "fields"))


def surface(model: Model, row: int) -> np.ndarray:
    """float64[F, 3, 3]: a shape's triangles, its frame."""
    shapes = model.shapes
    hull = model.hulls[shapes.hull[row]] if shapes.hull[row] >= 0 else None
    mesh = model.meshes[shapes.mesh[row]] if shapes.mesh[row] >= 0 else None
    solid = facets(shapes.types()[row], shapes.size[row], hull, mesh)
    assert solid is not None
    return solid.vertex[solid.face]


@pytest.mark.share(3)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_no_place_is_half_a_voxel_deeper(pair):
    poses = random_poses(FRAMES, 1.1, 6)
    rng = np.random.default_rng(0)
    model = pair_model(*pair, (True, True), RESOLUTION)
    deepest = []
    for frame in range(FRAMES):
        corners = []
        for row in range(2):
            pose = poses[frame, 0, row]
            placed = surface(model, row) + model.shapes.pose[row, :3]
            corners.append(placed @ rotation_of(pose[None])[0].T + pose[:3])
        deepest.append(deepest_of_pair(corners, rng))
    deepest = np.array(deepest)
    assert (deepest > 0.1).sum() > FRAMES // 2
    for fields in ((True, False), (False, True), (True, True)):
        model = pair_model(*pair, fields, RESOLUTION)
        depth = -least(found(model, poses), FRAMES)
        voxel = max(2.0 * model.shapes.size[row].max() for row in range(2) if fields[row]) / RESOLUTION
        over = deepest > 0.0
        assert (deepest - depth)[over].max() <= 0.5 * voxel, fields
        assert (depth - deepest)[over].max() <= 0.5 * voxel + MISSED, fields
