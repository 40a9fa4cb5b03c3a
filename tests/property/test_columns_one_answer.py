"""Optional columns are a function of the pair alone: how the contacts are worked out never shows in them."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.material import COMBINE_MODES, Material, PairMaterial
from collidecli.scene.mixing import RULE_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import PHASES, assert_identical
from tests.support.random_scenes import mixed_builder, random_poses

FRAMES, COUNT = 7, 24


def surface(index: int) -> ShapeConfig:
    rng = np.random.default_rng(index)
    material = Material(
        *rng.uniform(0.0, 1.0, 5),
        *rng.choice(COMBINE_MODES, 2),
        condim=int(rng.choice([1, 3, 4, 6])),
        priority=index % 3,
        solmix=rng.uniform(0.0, 3.0),
        solref=tuple(rng.uniform(-0.1, 1.0, 2)),
        solimp=tuple(rng.uniform(0.1, 1.0, 5)),
    )
    return ShapeConfig(gap=0.1, margin=0.01 * (index % 2), material=material)


def scene(rule: str) -> ModelBuilder:
    builder = mixed_builder(0, COUNT, surface)
    builder.material_rule = rule
    own = PairMaterial(condim=1, solref=(-5.0, -6.0)) if rule == "mujoco" else None
    for a in range(2, COUNT - 1, 3):  # the planes come first
        builder.add_shape_forced_pair(a, a + 1, margin=0.02, material=own)
    return builder


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    return random_poses(np.random.default_rng(1), (FRAMES, 1, COUNT), 0.5)


@pytest.fixture(scope="module", params=tuple(RULE_COLUMNS))
def model(request) -> Model:
    return scene(request.param).finalize()


@pytest.fixture(scope="module")
def reference(model, poses):
    columns = RULE_COLUMNS[model.material_rule]
    contacts = collidecli.collide(model, poses, device="cpu", columns=columns, threads=1, broad_phase="nxn")
    assert contacts.rigid_contact_count > 200
    assert len(np.unique(contacts.columns["friction"])) > 10
    return contacts


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("chunk", "threads"), [(1, 1), (3, 2), (0, 4)])
def test_broad_phases_chunks_and_threads(model, poses, reference, phase, chunk, threads):
    columns = RULE_COLUMNS[model.material_rule]
    again = collidecli.collide(
        model, poses, device="cpu", columns=columns, threads=threads, chunk_cells=chunk, **PHASES[phase]
    )
    assert set(again.columns) == set(columns)
    assert_identical(again, reference)


def test_every_world_has_what_the_first_has(model, poses, reference):
    columns = RULE_COLUMNS[model.material_rule]
    many = scene(model.material_rule).finalize(world_count=5)
    contacts = collidecli.collide(many, poses, device="cpu", columns=columns, chunk_cells=4)
    for frame in range(FRAMES):
        for world in range(5):
            assert_identical(contacts.cell(frame, world), reference.cell(frame))


def test_columns_are_no_part_of_the_rest(model, poses, reference):
    bare = collidecli.collide(model, poses, device="cpu")
    assert bare.columns == {}
    few = collidecli.collide(model, poses, device="cpu", columns=("margin1", "friction"))
    assert list(few.columns) == ["friction", "margin1"]
    for name in ("distance", "point0", "shape0", "cell_start"):
        assert getattr(bare, name).tobytes() == getattr(reference, name).tobytes()
    for name, values in few.columns.items():
        assert values.tobytes() == reference.columns[name].tobytes()


def test_swapped_shapes_have_the_same_coefficients():
    """Two shapes added in the other order: the pair's coefficients stay, its margins change sides."""
    found = []
    for order in ((1, 2), (2, 1)):
        for rule in RULE_COLUMNS:
            builder = ModelBuilder()
            builder.material_rule = rule
            for index in order:
                builder.add_shape_sphere(builder.add_body(), cfg=surface(index))
            found.append(collidecli.collide(builder.finalize(), device="cpu", columns=RULE_COLUMNS[rule]).columns)
    for one, other in ((found[0], found[2]), (found[1], found[3])):
        for name in one:
            if not name.startswith("margin"):
                assert one[name].tobytes() == other[name].tobytes(), name
        assert one["margin0"] == other["margin1"] != one["margin1"]
