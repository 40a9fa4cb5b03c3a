"""Nominal penalty forces: of contacts, pairs, bodies and sensors, against plain Python."""

import re
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.analysis.nominal_forces import contact_forces
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import KIND_PATCH
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import mixed_builder, random_poses
from tests.support.oracle import rotation_of

STIFFNESS = 2e4
NO_TRIGGER = np.zeros(8, bool)


def block_of(rows: list[tuple], cells: int = 1) -> ContactBlock:
    """Contacts (cell, shape0, shape1, distance)."""
    cell, shape0, shape1, distance = (np.array(values) for values in zip(*rows, strict=True))
    columns = {
        "shape0": shape0.astype(np.int32),
        "shape1": shape1.astype(np.int32),
        "distance": distance.astype(np.float32),
        "kind": np.zeros(len(cell), np.uint8),
        "feature0": np.zeros(len(cell), np.int32),
    }
    return ContactBlock(0, np.bincount(cell, minlength=cells).astype(np.int64), columns)


def forces(block: ContactBlock) -> np.ndarray:
    return contact_forces(block, STIFFNESS, NO_TRIGGER)


def test_one_contact_is_a_spring():
    assert forces(block_of([(0, 0, 1, -0.25)])).tolist() == [STIFFNESS * 0.25]
    assert forces(block_of([(0, 0, 1, 0.25)])).tolist() == [0.0]
    assert forces(block_of([(0, 0, 1, 0.0)])).tolist() == [0.0]


@pytest.mark.parametrize("count", [1, 2, 4, 13])
def test_a_pair_is_as_stiff_with_any_number_of_equal_contacts(count):
    found = forces(block_of([(0, 0, 1, -0.125)] * count))
    assert found == pytest.approx(STIFFNESS * 0.125 / count)


def test_pairs_and_cells_have_springs_of_their_own():
    rows = [(0, 0, 1, -0.1), (0, 0, 2, -0.1), (1, 0, 2, -0.1), (1, 0, 2, -0.3), (3, 1, 2, -0.2)]
    found = forces(block_of(rows, 4))
    assert found == pytest.approx(STIFFNESS * np.array([0.1, 0.1, 0.075, 0.225, 0.2]), rel=1e-6)


def test_a_contact_that_ends_makes_no_jump():
    """Without it, and at a depth of next to nothing, the others are equal."""
    others = [(0, 0, 1, -0.1), (0, 0, 1, -0.02)]
    assert forces(block_of([*others, (0, 0, 1, -1e-12)])) == pytest.approx(
        [*forces(block_of(others)), 0.0], rel=1e-9, abs=1e-6
    )
    assert forces(block_of([*others, (0, 0, 1, 0.5)])).tolist() == [*forces(block_of(others)), 0.0]


def test_a_deeper_contact_never_lowers_the_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        distance = rng.uniform(-0.1, 0.03, rng.integers(1, 6))
        before = forces(block_of([(0, 0, 1, d) for d in distance])).sum()
        deeper = distance.copy()
        deeper[rng.integers(len(distance))] -= rng.uniform(0.0, 0.05)
        after = forces(block_of([(0, 0, 1, d) for d in deeper])).sum()
        assert after >= before * (1.0 - 1e-12)
        assert before == pytest.approx(STIFFNESS * max(0.0, -distance.min()), rel=1e-6)


def test_triggers_and_surfaces_have_none():
    block = block_of([(0, 0, 1, -0.1), (0, 0, 2, -0.1), (0, 1, 2, -0.1), (0, 1, 2, -0.1)])
    trigger = np.array([False, True, False])
    assert contact_forces(block, STIFFNESS, trigger).tolist() == pytest.approx([0.0, 2e3, 0.0, 0.0])
    block.columns["kind"][1] = KIND_PATCH
    assert not contact_forces(block, STIFFNESS, trigger).any()
    block.columns["feature0"][1] = -2  # the anchor of a reduction
    assert contact_forces(block, STIFFNESS, trigger)[1] > 0.0
    assert len(contact_forces(block_of([(0, 0, 1, -0.1)]), STIFFNESS, NO_TRIGGER)) == 1
    empty = ContactBlock(0, np.zeros(3, np.int64), {k: v[:0] for k, v in block.columns.items()})
    assert contact_forces(empty, STIFFNESS, trigger).shape == (0,)


def made_model():
    """Two worlds of shapes of each type, at random poses."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    builder.add_world(mixed_builder(0, config=lambda index: ShapeConfig(gap=0.1)), count=2)
    model = builder.finalize()
    return model, random_poses(rng, (6, 2, len(model.bodies)), 0.3)


def by_loop(contacts: collidecli.Contacts, stiffness: float) -> list[dict]:
    """Frame, world, shapes, size, force on shape1 and point of each contact, in plain Python."""
    found = []
    for cell in range(len(contacts.cell_start) - 1):
        rows = range(contacts.cell_start[cell], contacts.cell_start[cell + 1])
        for row in rows:
            pair = contacts.shape0[row], contacts.shape1[row]
            depths = [
                max(0.0, -float(contacts.distance[k]))
                for k in rows
                if (contacts.shape0[k], contacts.shape1[k]) == pair
            ]
            depth = max(0.0, -float(contacts.distance[row]))
            if depth > 0.0:
                size = stiffness * max(depths) * depth / sum(depths)
                found.append(
                    {
                        "cell": cell,
                        "row": row,
                        "pair": tuple(int(shape) for shape in pair),
                        "size": size,
                        "force": size * contacts.normal[row].astype(np.float64),
                        "point": (contacts.point0[row] + contacts.point1[row]) / 2.0,
                    }
                )
    return found


def test_tables_are_those_of_a_loop():
    model, poses = made_model()
    contacts = collidecli.collide(model, poses, fps=10.0)
    expected = by_loop(contacts, STIFFNESS)
    found = contacts.nominal_forces(STIFFNESS)
    assert found.row_count == len(expected) > 50
    paths = model.shapes.path
    for k, one in enumerate(expected):
        assert (found["frame"][k], found["world"][k]) == divmod(one["cell"], 2)
        assert (found["shape0"][k], found["shape1"][k]) == tuple(paths[s] for s in one["pair"])
        assert [found[f"force_{axis}"][k] for axis in "xyz"] == pytest.approx(one["force"])
        assert [found[f"point_{axis}"][k] for axis in "xyz"] == pytest.approx(one["point"])
        assert found["distance"][k] == contacts.distance[one["row"]]
    pairs = contacts.nominal_forces(STIFFNESS, by="pairs")
    keys = list(dict.fromkeys((one["cell"], one["pair"]) for one in expected))
    assert pairs.row_count == len(keys)
    several = 0
    for k, key in enumerate(keys):
        of_pair = [one for one in expected if (one["cell"], one["pair"]) == key]
        several += len(of_pair) > 1
        sizes = np.array([one["size"] for one in of_pair])
        force = sum(one["force"] for one in of_pair)
        centre = sum(s * one["point"] for s, one in zip(sizes, of_pair, strict=True)) / sizes.sum()
        assert [pairs[f"force_{axis}"][k] for axis in "xyz"] == pytest.approx(force, abs=1e-9)
        assert [pairs[f"point_{axis}"][k] for axis in "xyz"] == pytest.approx(centre)
        assert sizes.sum() == pytest.approx(STIFFNESS * -float(pairs["distance"][k]))
    assert several > 5
    with pytest.raises(InputError, match="0 is no stiffness"):
        contacts.nominal_forces(0.0)
    with pytest.raises(InputError, match="by is 'body'"):
        contacts.nominal_forces(1.0, by="body")
    with pytest.raises(InputError, match="touch_only"):
        collidecli.collide(model, poses, touch_only=True).nominal_forces(1.0)


def test_labels_are_sums_over_the_shapes_of_bodies():
    """On each sensor, from each partner; opposite where the two are exchanged."""
    model, poses = made_model()
    contacts = collidecli.collide(model, poses, fps=10.0)
    labels = collidecli.label(contacts, nominal_stiffness=STIFFNESS)
    force = np.zeros(labels.nominal_force.shape)
    weight = np.zeros(force.shape[:-1])
    moment = np.zeros(force.shape)
    names = list(labels.partners)
    owner = [
        names.index(model.bodies.path[body] if body >= 0 else path)
        for body, path in zip(model.shapes.body.tolist(), model.shapes.path, strict=True)
    ]
    for one in by_loop(contacts, STIFFNESS):
        a, b = (owner[shape] for shape in one["pair"])
        for sensor, partner, sign in ((a, b, -1.0), (b, a, 1.0)):
            if names[sensor] in labels.sensors:
                at = (*divmod(one["cell"], 2), labels.sensors.index(names[sensor]), partner)
                force[at] += sign * one["force"]
                weight[at] += one["size"]
                moment[at] += one["size"] * one["point"]
    assert labels.nominal_force == pytest.approx(force, rel=1e-5, abs=1e-3)
    assert labels.nominal_force.dtype == np.float32
    has_force = weight > 0.0
    centre = moment[has_force] / weight[has_force][:, None]
    assert labels.pressure_centre[has_force] == pytest.approx(centre)
    assert np.isnan(labels.pressure_centre[~has_force]).all()
    assert has_force.sum() > 30
    rows = labels.to_pandas()
    assert rows["nominal_force_z"].to_numpy() == pytest.approx(
        labels.nominal_force[labels._rows][:, 2]
    )
    assert labels.to_xarray()["nominal_force"].attrs["units"] == "N"
    without = collidecli.label(contacts)
    assert without.nominal_force is None
    assert np.array_equal(without.touch, labels.touch)


def test_labels_do_not_depend_on_blocks(monkeypatch):
    model, poses = made_model()
    contacts = collidecli.collide(model, poses, fps=10.0)
    options = {"nominal_stiffness": STIFFNESS, "frames": "1:6:2", "worlds": [1], "by": "shapes"}
    whole = collidecli.label(contacts, **options)
    monkeypatch.setattr("collidecli.verbs.label.contact_labels.BLOCK_VALUES", 1)
    # of the class of Python's interface, whose methods check their arguments
    blocks = collidecli.ContactSet.blocks
    sizes = []

    def of_few_rows(contacts, max_rows=0, **options):
        for block in blocks(contacts, 1, **options):
            sizes.append(block.contact_count)
            yield block

    monkeypatch.setattr(collidecli.ContactSet, "blocks", of_few_rows)
    parts = collidecli.label(contacts, **options)
    for name in ("nominal_force", "pressure_centre"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name), equal_nan=True)
    assert np.abs(whole.nominal_force).max() > 0.0
    assert len(sizes) > 5


def test_a_box_that_lies_flat_and_a_box_on_an_edge():
    """The centre of pressure is below the middle, and moves to the edge as the box tilts."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    box = builder.add_body(key="box")
    builder.add_shape_box(box, hx=0.2, hy=0.1, hz=0.1, key="box")
    angle = 0.01
    flat = [1.0, 2.0, 0.1 - 0.004, 0.0, 0.0, 0.0, 1.0]
    tilted = [*flat[:3], 0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]
    poses = np.array([flat, tilted])[:, None, None]
    found = collidecli.collide(builder.finalize(), poses, fps=1.0).nominal_forces(1e4, by="pairs")
    assert found["force_z"][0] == pytest.approx(40.0, rel=1e-5)
    assert [found[f"point_{axis}"][0] for axis in "xyz"] == pytest.approx([1, 2, -0.002], abs=1e-6)
    corners = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.1, 0.1)])
    placed = corners @ rotation_of(np.array(tilted)).T + tilted[:3]
    depth = np.maximum(-placed[:, 2], 0.0)
    assert found["force_z"][1] == pytest.approx(1e4 * depth.max(), rel=1e-5)
    at = (depth[:, None] * placed).sum(axis=0) / depth.sum()
    assert found["point_x"][1] == pytest.approx(at[0], abs=1e-5)
    assert found["point_x"][1] > 1.09


SENSED = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="foot" pos="0 0 .1"><freejoint/>
      <geom name="sole" type="box" size=".2 .1 .1"/>
      <site name="heel" type="box" size=".15 .2 .2" pos="-.15 0 0"/>
      <site name="toes" type="box" size=".15 .2 .2" pos=".15 0 0"/>
      <geom name="knob" type="sphere" size=".05" pos="0 0 .2"/></body>
    <body name="ball" pos="3 0 0"><freejoint/><geom name="ball" type="sphere" size=".1"/></body>
  </worldbody>
  <sensor>
    <contact name="foot" body1="foot" data="found" reduce="mindist"/>
    <contact name="heel" site="heel" body2="foot" data="found" reduce="mindist"/>
    <contact name="toes" site="toes" body2="foot" data="found" reduce="mindist"/>
    <contact name="floor" geom1="floor" geom2="sole" data="found" reduce="mindist" num="2"/>
    <distance name="apart" geom1="ball" geom2="sole" cutoff="9"/>
  </sensor>
</mujoco>"""


def test_sensors_sum_the_forces_of_their_contacts(tmp_path: Path):
    """Those of two regions that part the sole are those of the sole; on the floor the opposite."""
    (tmp_path / "scene.xml").write_text(SENSED)
    rng = np.random.default_rng(3)
    poses = np.tile([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], (20, 1, 2, 1))
    poses[:, 0, 1, 0] = 3.0
    tilt = rng.uniform(-0.04, 0.04, (20, 3))
    poses[:, 0, 0, 3:6] = tilt
    poses[:, 0, 0, 6] = np.sqrt(1.0 - (tilt**2).sum(axis=1))
    poses[:, 0, 0, 2] += rng.uniform(-0.02, 0.02, 20)
    recording = tmp_path / "motion.npz"
    qpos = poses[:, 0][..., [0, 1, 2, 6, 3, 4, 5]].reshape(20, 14)
    np.savez(recording, qpos=qpos, time=np.arange(20.0))
    given = {"sensors": "scene", "nominal_stiffness": STIFFNESS}
    found = collidecli.label_sensors(str(tmp_path / "scene.xml"), str(recording), **given)
    force = dict(zip(found.sensors, np.moveaxis(found.nominal_force[:, 0], 1, 0), strict=True))
    centre = dict(zip(found.sensors, np.moveaxis(found.pressure_centre[:, 0], 1, 0), strict=True))
    corners = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.1, 0.1)])
    rotations = rotation_of(poses[:, 0, 0])
    placed = np.einsum("fij,cj->fci", rotations, corners) + poses[:, 0, :1, :3]
    depth = np.maximum(-placed[..., 2], 0.0)
    assert (depth > 0.0).any(axis=1).sum() > 10
    assert force["foot"][:, 2] == pytest.approx(STIFFNESS * depth.max(axis=1), abs=0.01)
    # A site has no side: of these two sensors the first side is the floor.
    assert force["heel"] + force["toes"] == pytest.approx(0.0 - force["foot"], abs=1e-9)
    assert (force["heel"] != 0.0).any()
    assert (force["toes"] != 0.0).any()
    assert np.array_equal(force["floor[0]"], 0.0 - force["foot"])
    assert np.isnan(force["apart"]).all()
    some = depth.max(axis=1) > 1e-6
    middle = placed - 0.5 * np.array([0.0, 0.0, 1.0]) * placed[..., 2:]
    with np.errstate(invalid="ignore"):
        at = (depth[..., None] * middle).sum(axis=1) / depth.sum(axis=1)[:, None]
    assert centre["foot"][some] == pytest.approx(at[some], abs=1e-5)
    without = collidecli.label_sensors(str(tmp_path / "scene.xml"), str(recording), sensors="scene")
    assert without.nominal_force is None
    for name in ("touch", "count", "distance", "centre"):
        assert np.array_equal(getattr(without, name), getattr(found, name), equal_nan=True)
    assert "nominal_force_x" in found.to_pandas()
    with pytest.raises(InputError, match=re.escape("-1 is no stiffness")):
        collidecli.label_sensors(
            str(tmp_path / "scene.xml"), str(recording), nominal_stiffness=-1.0
        )


def test_hydroelastic_pairs_have_the_force_of_their_surface():
    """Its own stiffness, in place of the given one; with its reduced contacts, it counts once."""
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(is_hydroelastic=True))
    body = builder.add_body(key="balls")
    builder.add_shape_sphere(body, radius=0.1, cfg=ShapeConfig(is_hydroelastic=True), key="soft")
    builder.add_shape_sphere(
        body, xform=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), radius=0.1, key="hard"
    )
    poses = np.array([[0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0] for z in (0.09, 0.2)])[:, None, None]
    model = builder.finalize()
    for reduce in (False, True):
        contacts = collidecli.collide(model, poses, fps=1.0, hydro_reduce=reduce)
        patch = contacts.groups["hydro_patches"].columns
        sign = -1.0 if model.shapes.body[patch["shape0"][0]] >= 0 else 1.0
        own = sign * patch["force"][0]
        labels = collidecli.label(contacts, sensors="balls", nominal_stiffness=STIFFNESS)
        force = labels.nominal_force[:, 0, 0, list(labels.partners).index("ground_plane")]
        assert own[2] > 1.0
        hard = STIFFNESS * 0.01
        assert force[0] == pytest.approx(own + np.array([0.0, 0.0, hard]), rel=1e-5)
        assert not force[1].any()
        centre = labels.pressure_centre[0, 0, 0, list(labels.partners).index("ground_plane")]
        size = np.linalg.norm(own)
        moment = hard * np.array([1.0, 0.0, -0.005]) + size * patch["center"][0]
        assert centre == pytest.approx(moment / (hard + size), abs=1e-9)
        table = contacts.nominal_forces(STIFFNESS)
        assert table["shape1" if sign > 0 else "shape0"].tolist() == ["hard"]


def test_particles_have_no_force():
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5, key="ball")
    builder.add_shape_sphere(builder.add_body(key="other"), radius=0.5, key="other")
    builder.add_particle(pos=(0.0, 0.0, 0.51), vel=(0.0, 0.0, 0.0), mass=1.0, radius=0.05)
    poses = np.array([[[[0, 0, 0, 0, 0, 0, 1], [0.9, 0, 0, 0, 0, 0, 1.0]]]], float)
    contacts = collidecli.collide(builder.finalize(), poses, fps=1.0)
    with pytest.warns(UserWarning, match="contacts of particles have no nominal force"):
        labels = collidecli.label(contacts, sensors="ball", nominal_stiffness=STIFFNESS)
    force = dict(zip(labels.partners, labels.nominal_force[0, 0, 0], strict=True))
    assert force["other"] == pytest.approx([-0.1 * STIFFNESS, 0.0, 0.0], rel=1e-5)
    (particles,) = [name for name in force if name not in ("ball", "other")]
    assert np.isnan(force[particles]).all()
    assert labels.touch[0, 0, 0, list(labels.partners).index(particles)]
