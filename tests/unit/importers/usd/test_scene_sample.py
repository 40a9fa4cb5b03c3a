"""The USD sample: what its stage says, its filters, and that its motion is that of bodies at rest on a ground."""

from pathlib import Path

import numpy as np
import pytest

from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import explain

SCENE = Path(__file__).parents[4] / "samples" / "01_usd_pile" / "pile.usda"


@pytest.fixture(scope="module")
def sample():
    builder = ModelBuilder()
    scene = add_usd(builder, SCENE)
    return scene, builder.finalize()


def rule(sample, first, second):
    scene, model = sample
    shapes = [next(i for p, i in scene.shape_of.items() if p.endswith("/" + name)) for name in (first, second)]
    return explain(model, *shapes)


def test_shapes_and_bodies(sample):
    scene, model = sample
    assert (len(model.shapes), len(model.bodies), scene.warnings) == (55, 48, ())
    assert {t.label for t in model.shapes.types()} == {
        "plane", "sphere", "ellipsoid", "box", "capsule", "cylinder", "cone",
    }  # fmt: skip
    assert np.allclose(model.shapes.gap, 0.01)
    assert [Path(f).name for f in scene.files] == ["pile.usda", "motion.usdc"]


def test_filters(sample):
    """sphere_00 is in no group, sphere_06 in Red, sphere_12 in Blue."""
    assert not rule(sample, "sphere_06", "sphere_12").may_touch
    assert rule(sample, "sphere_06", "box_07").may_touch
    assert rule(sample, "sphere_00", "sphere_06").may_touch
    assert rule(sample, "sphere_00", "sphere_12").may_touch
    assert rule(sample, "crate_a", "crate_b").rule == "filteredPairs"
    assert rule(sample, "handle", "head").rule.startswith("joint between bodies")
    assert not rule(sample, "trigger", "crate_a").may_touch
    assert rule(sample, "ground", "paddle").may_touch


def test_motion(sample):
    scene, model = sample
    motion = scene.motion(model)
    np.testing.assert_allclose(motion.time, np.arange(120) / 60)
    poses = motion.read(range(120))[:, 0]
    np.testing.assert_allclose(poses[0], model.bodies.pose, atol=1e-15)
    assert np.all(poses[..., 2] > 0), "every body's centre stays above the ground"
    crates = [model.bodies.path.index(f"/World/Objects/crate_{x}") for x in "ab"]
    apart = np.abs(poses[:, crates[0], :3] - poses[:, crates[1], :3]).max(axis=1)
    assert apart.min() < 0.2, "the filtered crates, 0.2 m wide, overlap"
