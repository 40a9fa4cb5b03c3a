"""Numbers that a device's chunk expects from the last one with colliders of sub-pairs, and with
pairs that touch: one wait, the bits of the CPU, and chunks that are computed again."""

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.runtime import chunk_counts, device_stream
from collidecli.engine.runtime.chunk_counts import ChunkCounts
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import REDUCED, SCENES
from tests.support.engine_runs import mixed_builder, pipeline_of, random_poses
from tests.unit.engine.runtime.test_chunk_counts import (  # noqa: F401
    STEP,
    Guards,
    as_device,
    assert_equal_blocks,
    blocks_of,
    exceeded,
    forget_arrays,
)

SPREADS = (2.0, 0.4, 0.5, 4.0, 0.4)
"""Of each chunk: the second has several times the sub-pairs of the first."""
KINDS = ("primitives", "meshes", "heightfields", "terrains", "fields")
OPTIONS = {
    "all": ContactOptions(),
    "reduced": REDUCED,
    "limited": ContactOptions(max_contacts_per_pair=2),
    "touch": ContactOptions(touch_only=True),
}


def model_of(kind: str) -> Model:
    """The model of a scene of `device_scenes`, in one world."""
    if kind == "primitives":
        return mixed_builder(0, 14).finalize()
    return SCENES[kind](ContactOptions()).model


def poses_of(model: Model) -> np.ndarray:
    """float64[frames, 1, B, 7]: STEP frames for each of SPREADS."""
    rng = np.random.default_rng(5)
    counts = STEP, 1, len(model.bodies)
    return np.concatenate([random_poses(rng, counts, spread) for spread in SPREADS])


CASES = [
    *((kind, name, "explicit") for kind in KINDS[1:] for name in OPTIONS),
    *(("primitives", "touch", phase) for phase in ("explicit", "nxn", "sap")),
    *((kind, "all", phase) for kind in KINDS[1:] for phase in ("nxn", "sap")),
]


@pytest.mark.parametrize(("kind", "name", "phase"), CASES)
def test_a_chunk_with_more_than_expected_is_computed_again(
    exceeded,  # noqa: F811
    monkeypatch,
    kind,
    name,
    phase,
):
    """With the bits of the CPU, and no array is left meanwhile."""
    model = model_of(kind)
    poses = poses_of(model)
    reference = blocks_of(pipeline_of(model, poses, OPTIONS[name], broad_phase=phase), poses)
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    monkeypatch.setattr(chunk_counts, "SPARE", 0)
    guards = Guards()
    monkeypatch.setattr(Workspace, "_allocated", lambda *arguments: guards.allocated(*arguments))
    pipeline = pipeline_of(model, poses, OPTIONS[name], broad_phase=phase)
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    assert_equal_blocks(blocks_of(pipeline, poses, scratch), reference)
    assert sum(exceeded.values()) >= 1
    guards.assert_untouched()


NAMES = [
    ("primitives", "touch", "touching"),
    ("meshes", "all", "candidate_bucket"),
    ("meshes", "all", "mesh_mesh_sub_pair"),
    ("meshes", "all", "mesh_mesh_row"),
    ("meshes", "all", "convex_mesh_sub_pair"),
    ("meshes", "touch", "convex_mesh_touch_listed_sub_pair"),
    ("meshes", "touch", "mesh_mesh_touch_undecided"),
    ("heightfields", "all", "mesh_heightfield_sub_pair"),
    ("heightfields", "all", "mesh_heightfield_row"),
    ("terrains", "all", "heightfields_sub_pair"),
    ("terrains", "all", "heightfields_row"),
    ("terrains", "all", "plane_heightfield_sub_pair"),
    ("fields", "all", "sdf_sub_pair"),
    ("fields", "reduced", "contact"),
]


@pytest.mark.parametrize(("kind", "options", "name"), NAMES)
def test_each_number_beyond_its_capacity_is_found(
    as_device,  # noqa: F811
    exceeded,  # noqa: F811
    monkeypatch,
    kind,
    options,
    name,
):
    """Of equal chunks each has exactly as many as the last: a capacity that is less by one is
    exceeded, and no array is left; an equal one is not."""
    for margin in ("SPARE", "MARGIN", "LEAST_MARGIN"):
        monkeypatch.setattr(chunk_counts, margin, 0)
    model = model_of(kind)
    poses = poses_of(model)
    pipeline = pipeline_of(model, poses, OPTIONS[options], broad_phase="explicit")
    same = np.concatenate([poses[STEP : 2 * STEP]] * 3)
    reference = blocks_of(pipeline, same)
    assert sum(exceeded.values()) == 0
    plain = ChunkCounts.capacities
    taken: dict[str, np.ndarray] = {}

    def less(counts, of, spare_for_none):
        most = plain(counts, of, spare_for_none)
        if of == name:
            fewer = np.maximum(most - 1, 0)
            assert (fewer < most).any()
            most = counts._most[of] = taken.setdefault(of, fewer)
        return most

    monkeypatch.setattr(ChunkCounts, "capacities", less)
    guards = Guards()
    monkeypatch.setattr(Workspace, "_allocated", lambda *arguments: guards.allocated(*arguments))
    scratch = Workspace(pipeline.device_model.device, 1 << 40, exact=True)
    found = []
    for first in range(0, len(same), STEP):
        forget_arrays(scratch)
        with scratch.turn():
            found.append(pipeline.collide(PoseBatch(first, STEP, 0, same), scratch))
    assert_equal_blocks(found, reference)
    assert exceeded == {name: 2}
    guards.assert_untouched()
