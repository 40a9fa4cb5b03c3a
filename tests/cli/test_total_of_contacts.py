"""Why there is no limit on the total number of contacts, and what is in its place."""

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from tests.support.engine_runs import mixed_builder, random_poses

SCENE = """<mujoco><worldbody>
  <geom name="base" type="box" size="0.5 0.5 0.5"/>
  <body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="box" size="0.3 0.3 0.3"/></body>
  <body name="far" pos="9 0 0"><freejoint/><geom name="far" type="sphere" size="0.3"/></body>
</worldbody></mujoco>"""
NEAREST = '[[sensor]]\nname = "all"\nshapes = "*"\nslots = 3\n'


def test_a_total_is_refused_and_the_limit_of_pairs_is_named(here, collide):
    (here / "scene.xml").write_text(SCENE)
    for value in ("0", "5"):
        refused = collide("run scene.xml --max-contacts", value)
        assert refused.code == 2
        assert "--max-contacts-per-pair" in refused.err
        assert not (here / "scene.contacts.h5").exists()
    model = mixed_builder(0).finalize()
    with pytest.raises(InputError, match="no argument 'max_contacts'") as error:
        collidecli.collide(model, max_contacts=0)
    assert "max_contacts_per_pair" in error.value.fix


def test_the_least_limit_leaves_every_pair_a_contact():
    """A total of as many, the deepest of all, would leave some pairs none."""
    builder = ModelBuilder()
    builder.add_world(mixed_builder(0))
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(2), (4, 1, len(model.bodies)), 0.3)
    every = collidecli.collide(model, poses, fps=1.0)
    limited = collidecli.collide(model, poses, fps=1.0, max_contacts_per_pair=1)
    for frame in range(4):
        whole, kept = every.cell(frame), limited.cell(frame)
        pairs = sorted(set(zip(whole.shape0.tolist(), whole.shape1.tolist(), strict=True)))
        assert list(zip(kept.shape0.tolist(), kept.shape1.tolist(), strict=True)) == pairs
        deepest = np.argsort(whole.distance, kind="stable")[: len(pairs)]
        by_depth = set(zip(whole.shape0[deepest], whole.shape1[deepest], strict=True))
        assert len(by_depth) < len(pairs)


def test_a_run_without_contacts_is_said_by_name(here, collide):
    (here / "scene.xml").write_text(SCENE.replace('pos="0 0 2"', 'pos="0 0 .7"'))
    assert collide.result("run scene.xml -o some.h5")["contacts"] > 0
    assert collide.result("run scene.xml -o none.h5 --exclude *,*")["contacts"] == 0


def test_slots_of_a_sensor_are_the_nearest_contacts_of_each_frame(here, collide):
    (here / "all.toml").write_text(NEAREST)
    (here / "scene.xml").write_text(SCENE.replace('pos="0 0 2"', 'pos="0 0 .7"'))
    collide.ok("run scene.xml -o out.h5")
    collide.ok("label scene.xml --sensors all.toml -o all.npz")
    with collidecli.open_contacts("out.h5") as contacts:
        expected = np.sort(contacts.cell(0).distance)[:3]
    with np.load("all.npz") as found:
        assert found["distance"][0, 0].astype(np.float32).tolist() == expected.tolist()
