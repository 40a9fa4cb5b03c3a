"""Contacts and columns are functions of scene, motion and options alone: how they are worked out
never shows."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collidecli
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.errors import InputError
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.materials import COMBINE_MODES, Material, PairMaterial
from collidecli.scene.mixing import RULE_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import (
    PHASES,
    ROUND_AND_FLAT,
    EveryPair,
    add_planes,
    add_shapes,
    assert_identical,
    cells_of,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)
from tests.support.meshes import blob, smooth, torus
from tests.support.poses import poses_of_two

REQUIRED = tuple(column.name for column in RIGID_COLUMNS)
FRAMES = 7
COUNT = 24
GAPS = (0.0, 0.02, 0.1)


def config(index: int) -> ShapeConfig:
    return ShapeConfig(
        gap=GAPS[index % 3], margin=0.01 * (index % 2), collision_group=(1, 2, -1)[index % 3]
    )


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    return random_poses(np.random.default_rng(1), (FRAMES, 1, COUNT), 0.5)


@pytest.fixture(scope="module")
def model():
    return mixed_builder(0, COUNT, config).finalize()


@pytest.fixture(scope="module")
def reference(model, poses):
    pipeline = pipeline_of(model, poses, broad_phase="nxn")
    contacts = contacts_of(replace(pipeline, broad_phase=EveryPair(pipeline)), poses)
    assert contacts.rigid_contact_count > 200
    assert len(set(contacts.kind.tolist())) == 3
    return contacts


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("chunk", [1, 3, 0])
def test_any_broad_phase_by_any_chunk(model, poses, reference, phase, chunk):
    assert_identical(
        contacts_of(pipeline_of(model, poses, **PHASES[phase]), poses, chunk), reference
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_any_number_of_threads_in_repeated_runs(model, poses, reference, threads):
    pipeline = pipeline_of(model, poses, broad_phase="sap")
    for _ in range(5):
        assert_identical(contacts_of(pipeline, poses, 1, threads), reference)


@pytest.mark.share(3)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("chunk", [0, 1])
def test_memory_that_splits_chunks_does_not_matter(model, poses, reference, phase, chunk):
    """Halved memory gives halved chunks, then single cells, then parts of a cell, until a single
    cell is refused.

    Whether a limit suffices does not depend on the size of the chunks that were tried before.
    """
    pipeline = pipeline_of(model, poses, **PHASES[phase])
    enough = 2**24
    while (answer := answer_within(pipeline, poses, enough, chunk)) is not None:
        assert_identical(answer, reference)
        enough //= 2
    assert enough < 2**18
    assert answer_within(pipeline, poses, enough, 1 - chunk) is None


def answer_within(
    pipeline: CollisionPipeline, poses: np.ndarray, memory: int, chunk: int
) -> Contacts | None:
    """The contacts in chunks of `chunk` cells, 0 all; None where the memory was refused, by name,
    for one cell."""
    try:
        return contacts_of(pipeline, poses, chunk, 1, memory)
    except InputError as error:
        message = str(error)
    assert re.search(
        r"--memory-limit: frame \d of world 0 needs at least [0-9.]+ KiB; its part", message
    )
    return None


def test_float_type_changes_points_alone(model, poses, reference):
    single = contacts_of(pipeline_of(model, poses, float_type="float32", broad_phase="nxn"), poses)
    for column in RIGID_COLUMNS:
        ours = getattr(single, column.name)
        theirs = getattr(reference, column.name)
        np.testing.assert_array_equal(ours, theirs.astype(ours.dtype))
    assert single.point0.dtype == np.float32


def check_deepest(kept: Contacts, whole: Contacts, limit: int) -> None:
    """Of each pair in each cell the `limit` deepest are kept."""
    every, some = (np.stack([cells_of(one), one.shape0, one.shape1]).T for one in (whole, kept))
    for pair in np.unique(every, axis=0):
        of_all = np.sort(whole.distance[(every == pair).all(1)])
        of_some = np.sort(kept.distance[(some == pair).all(1)])
        np.testing.assert_array_equal(of_some, of_all[:limit], err_msg=str(pair))


def test_the_deepest_are_kept(model, poses, reference):
    for limit in (1, 2):
        options = ContactOptions(max_contacts_per_pair=limit)
        kept = [
            contacts_of(pipeline_of(model, poses, options, **phase), poses)
            for phase in PHASES.values()
        ]
        for other in kept[1:]:
            assert_identical(kept[0], other)
        check_deepest(kept[0], reference, limit)


def mesh_adder(vertices: np.ndarray, faces: np.ndarray, voxels: int = 0):
    cfg = ShapeConfig(sdf_max_resolution=voxels) if voxels else None
    return lambda builder, body: builder.add_shape_mesh(body, vertices, faces, cfg=cfg)


def add_terrain(builder: ModelBuilder, body: int) -> int:
    return builder.add_shape_heightfield(body, smooth().heights, 1.0, 0.8, 3.0)


def add_box(builder: ModelBuilder, body: int) -> int:
    return builder.add_shape_box(body, hx=0.2, hy=0.3, hz=0.1)


BLOB = blob(np.random.default_rng(0), 7, 9)
ORDERED = {
    "mesh, box": (mesh_adder(*torus()), add_box),
    "mesh, mesh": (mesh_adder(*BLOB), mesh_adder(*torus(12, 7))),
    "terrain, mesh": (add_terrain, mesh_adder(0.4 * BLOB[0], BLOB[1])),
    "field, box": (mesh_adder(*BLOB, 24), add_box),
    "field, field": (mesh_adder(*BLOB, 24), mesh_adder(*torus(12, 7), 24)),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ORDERED)
def test_the_order_of_surfaces_does_not_matter(name):
    """Exchanged ends and normals turned; a depth, to what the search over directions promises."""
    poses = poses_of_two(np.random.default_rng(6), 28, 2.0)
    found = []
    for order in (1, -1):
        builder = ModelBuilder()
        for add in ORDERED[name][::order]:
            add(builder, builder.add_body())
        found.append(
            collidecli.collide(builder.finalize(), poses[:, :, ::order], gap=0.2, cache_limit=0)
        )
    apart = renamed = 0
    for first, second in (tuple(one.cell(frame) for one in found) for frame in range(len(poses))):
        if first.distance.min(initial=1.0) < 0.0:
            assert second.distance.min() == pytest.approx(first.distance.min(), rel=0.05)
            continue
        apart += len(first.distance)
        mine = np.lexsort((first.feature1, first.feature0))
        theirs = np.lexsort((second.feature0, second.feature1))
        assert len(mine) == len(theirs)
        if (first.feature0[mine] != second.feature1[theirs]).any():
            # where a witness lies at the end of an edge, rounding decides what names it
            renamed += 1
            continue
        np.testing.assert_allclose(first.distance[mine], second.distance[theirs], atol=1e-6)
        np.testing.assert_allclose(first.normal[mine], -second.normal[theirs], atol=1e-6)
    assert apart > 3
    assert renamed <= 1


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("recorded", [1, 64])
def test_every_world_of_a_copied_scene_is_the_first(poses, reference, phase, recorded):
    model = mixed_builder(0, COUNT, config).finalize(world_count=64)
    few = np.repeat(poses[:2], recorded, axis=1)
    contacts = contacts_of(pipeline_of(model, few, **PHASES[phase]), few, chunk=37)
    for frame in range(2):
        for world in range(64):
            assert_identical(contacts.cell(frame, world), reference.cell(frame))


def two_kinds(templates: tuple[int, ...]) -> ModelBuilder:
    """Global ground and two global bodies; kind 0 is 5 shapes, kind 1 is 11 others and a plane of
    its own."""
    builder = ModelBuilder()
    add_planes(builder)
    add_shapes(builder, np.random.default_rng(5), 2, name="global")
    kinds = [ModelBuilder(), ModelBuilder()]
    add_shapes(kinds[0], np.random.default_rng(6), 5, name="a")
    add_shapes(kinds[1], np.random.default_rng(7), 11, config, name="b")
    kinds[1].add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.3, 0, 0, 0, 1], key="shelf")
    for kind in templates:
        builder.add_world(kinds[kind])
    return builder


@pytest.mark.parametrize("phase", PHASES)
def test_different_worlds_are_as_each_alone(phase):
    order = (0, 1, 1, 0, 1)
    model = two_kinds(order).finalize()
    moved = random_poses(np.random.default_rng(8), (3, len(order), len(model.bodies)), 0.4)
    contacts = contacts_of(pipeline_of(model, moved, **PHASES[phase]), moved, chunk=2)
    for world, kind in enumerate(order):
        alone = two_kinds((kind,)).finalize()
        body = [model.bodies.path.index(path) for path in alone.bodies.path]
        row = np.array([model.shapes.path.index(path) for path in alone.shapes.path])
        own = np.ascontiguousarray(moved[:, world : world + 1, body])
        expected = contacts_of(pipeline_of(alone, own, broad_phase="nxn"), own)
        assert expected.rigid_contact_count > 10
        for frame in range(3):
            cell = expected.cell(frame)
            shapes = {
                name: row[getattr(cell, name)].astype(np.int32) for name in ("shape0", "shape1")
            }
            renamed = replace(cell, **shapes, columns={**cell.columns, **shapes})
            assert_identical(contacts.cell(frame, world), renamed)


CONFIGS = st.builds(
    ShapeConfig,
    collision_group=st.sampled_from([1, 1, 1, 2, -1, 0]),
    gap=st.sampled_from([0.0, 0.1, 2.0, None]),
    margin=st.sampled_from([None, 0.05]),
    mask_either=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)),
)


@st.composite
def scenes(draw):
    """A scene of up to 12 shapes with random filters, forced pairs and gaps, and two frames of its
    motion."""
    builder = ModelBuilder()
    builder.gap_rule = draw(st.sampled_from(["max", "sum"]))
    configs = draw(st.lists(CONFIGS, max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for cfg in configs:
        kind = draw(st.sampled_from([*ROUND_AND_FLAT[:3], ShapeType.PLANE]))
        count = {ShapeType.PLANE: 0, ShapeType.SPHERE: 1, ShapeType.CAPSULE: 2, ShapeType.BOX: 3}[
            kind
        ]
        body = (
            draw(st.sampled_from([-1, builder.body_count]))
            if builder.body_count < 6
            else draw(st.integers(-1, 5))
        )
        if body == builder.body_count:
            builder.add_body()
        size = 10.0 ** rng.uniform(-2, draw(st.sampled_from([-1, 1])), count)
        builder.add_shape(body, kind, size, random_poses(rng, (1,), 0.3)[0], cfg)
    if builder.shape_count > 1:
        for _ in range(draw(st.integers(0, 3))):
            a, b = draw(st.permutations(range(builder.shape_count)))[:2]
            force = draw(st.booleans())
            planes = all(builder._records.shapes[i].type == ShapeType.PLANE for i in (a, b))
            if force and not planes:
                builder.add_shape_forced_pair(a, b, gap=1.0, margin=0.5)
            elif not force:
                builder.add_shape_collision_filter_pair(a, b)
    spread = 10.0 ** draw(st.sampled_from([-1, 0, 3]))
    return builder, random_poses(rng, (2, 1, builder.body_count), spread)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scenes())
def test_any_scene(scene):
    builder, poses = scene
    try:
        model = builder.finalize(static_pairs=True)
    except InputError:  # the same pair forced twice with different words is refused by the builder
        return
    pipeline = pipeline_of(model, poses, broad_phase="nxn")
    expected = contacts_of(replace(pipeline, broad_phase=EveryPair(pipeline)), poses)
    for phase in PHASES.values():
        assert_identical(contacts_of(pipeline_of(model, poses, **phase), poses), expected)


def lone_sphere() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    return builder


def unwilling_pair() -> ModelBuilder:
    builder = lone_sphere()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    builder.add_shape_collision_filter_pair(0, 1)
    return builder


@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
@pytest.mark.parametrize(
    "make", [ModelBuilder, lone_sphere, unwilling_pair], ids=lambda make: make.__name__
)
def test_scenes_where_nothing_can_touch(make, phase):
    contacts = collidecli.collide(make().finalize(world_count=2), **phase)
    assert contacts.cell_start.tolist() == [0, 0, 0]
    assert contacts.point1.shape == (0, 3)


# Optional columns are a function of the pair alone: how the contacts are worked out never shows in
# them.


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


@pytest.fixture(scope="module", params=tuple(RULE_COLUMNS))
def model_of_columns(request) -> Model:
    return scene(request.param).finalize()


@pytest.fixture(scope="module")
def reference_of_columns(model_of_columns, poses):
    columns = RULE_COLUMNS[model_of_columns.material_rule]
    contacts = collidecli.collide(
        model_of_columns, poses, device="cpu", columns=columns, threads=1, broad_phase="nxn"
    )
    assert contacts.rigid_contact_count > 200
    assert len(np.unique(contacts.columns["friction"])) > 10
    return contacts


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("chunk", "threads"), [(1, 1), (3, 2), (0, 4)])
def test_columns_do_not_depend_on_how_work_is_divided(
    model_of_columns, poses, reference_of_columns, phase, chunk, threads
):
    columns = RULE_COLUMNS[model_of_columns.material_rule]
    again = collidecli.collide(
        model_of_columns,
        poses,
        device="cpu",
        columns=columns,
        threads=threads,
        chunk_cells=chunk,
        **PHASES[phase],
    )
    assert set(again.columns) == {*REQUIRED, *columns}
    assert_identical(again, reference_of_columns)


def test_every_world_has_what_the_first_has(model_of_columns, poses, reference_of_columns):
    columns = RULE_COLUMNS[model_of_columns.material_rule]
    many = scene(model_of_columns.material_rule).finalize(world_count=5)
    contacts = collidecli.collide(many, poses, device="cpu", columns=columns, chunk_cells=4)
    for frame in range(FRAMES):
        for world in range(5):
            assert_identical(contacts.cell(frame, world), reference_of_columns.cell(frame))


def test_columns_are_no_part_of_the_rest(model_of_columns, poses, reference_of_columns):
    bare = collidecli.collide(model_of_columns, poses, device="cpu")
    assert list(bare.columns) == list(REQUIRED)
    few = collidecli.collide(model_of_columns, poses, device="cpu", columns=("margin1", "friction"))
    assert list(few.columns) == [*REQUIRED, "friction", "margin1"]
    for name in ("distance", "point0", "shape0", "cell_start"):
        assert getattr(bare, name).tobytes() == getattr(reference_of_columns, name).tobytes()
    for name, values in few.columns.items():
        assert values.tobytes() == reference_of_columns.columns[name].tobytes()


def test_swapped_shapes_have_the_same_coefficients():
    """Two shapes added in the other order: the pair's coefficients stay, its margins change
    sides."""
    found = []
    for order in ((1, 2), (2, 1)):
        for rule in RULE_COLUMNS:
            builder = ModelBuilder()
            builder.material_rule = rule
            for index in order:
                builder.add_shape_sphere(builder.add_body(), cfg=surface(index))
            found.append(
                collidecli.collide(
                    builder.finalize(), device="cpu", columns=RULE_COLUMNS[rule]
                ).columns
            )
    for one, other in ((found[0], found[2]), (found[1], found[3])):
        for name in one:
            if name not in REQUIRED and not name.startswith("margin"):
                assert one[name].tobytes() == other[name].tobytes(), name
        assert one["margin0"] == other["margin1"] != one["margin1"]
