"""collide clearance of particles, cables, cloths and soft bodies: distances by brute force in
float64, items, files, and what is not measured."""

import json

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli import ModelBuilder, ShapeConfig
from tests.cli.test_audit_particles import BALL, DROP, FRAMES, GROUND, THICK, write_scene
from tests.support.meshes import every_distance, grid

CLOTH = "/World/cloth"
DROPS = "/World/drops"
SHAPES = ("/World/ball", "/World/ground")
ELEMENT = ("indices", "barycentric")


@pytest.fixture
def points(here) -> dict[str, np.ndarray]:
    """Positions in scene.usda: a rough cloth that sinks through the ball into the ground, and drops
    in random motion, far and near."""
    rng = np.random.default_rng(9)
    vertices, faces = grid(6)
    rough = rng.normal(0.0, 0.02, (FRAMES, len(vertices), 3))
    down = np.linspace(3.0, -0.31, FRAMES)[:, None] * [0.0, 0.0, 1.0]
    drops = rng.uniform(-2.0, 2.0, (FRAMES, 40, 3))
    found = {
        "cloth": (vertices + rough + down[:, None]).astype(np.float32),
        "drops": drops.astype(np.float32),
    }
    write_scene(here / "scene.usda", found, faces)
    return found | {"faces": faces}


def expected(points: dict[str, np.ndarray]) -> dict[tuple[str, str], np.ndarray]:
    """float64[F]: least distance of each pair in each frame."""
    cloth = points["cloth"].astype(np.float64)
    drops = points["drops"].astype(np.float64)
    near = [every_distance(np.zeros((1, 3)), at[points["faces"]]).min() for at in cloth]
    return {
        (SHAPES[0], CLOTH): np.array(near) - BALL - THICK,
        (SHAPES[0], DROPS): np.linalg.norm(drops, axis=2).min(axis=1) - BALL - DROP,
        (SHAPES[1], CLOTH): cloth[..., 2].min(axis=1) - GROUND - THICK,
        (SHAPES[1], DROPS): drops[..., 2].min(axis=1) - GROUND - DROP,
        (CLOTH, DROPS): np.array(
            [
                every_distance(points_at, at[points["faces"]]).min()
                for points_at, at in zip(drops, cloth, strict=True)
            ]
        )
        - THICK
        - DROP,
    }


def test_npz_has_the_arrays_and_attributes_of_hdf5(points, collide):
    collide.ok("clearance scene.usda --margin 0.03 -o near.h5 -q")
    collide.ok("clearance scene.usda --margin 0.03 -o near.npz -q")
    with h5py.File("near.h5") as h5, np.load("near.npz") as npz:
        assert set(npz.files) == {*h5, "attributes"}
        for name, data in h5.items():
            stored = data.asstr()[()] if data.dtype.kind == "O" else data[()]
            np.testing.assert_array_equal(npz[name], stored)
            assert npz[name].shape == data.shape
        attributes = json.loads(str(npz["attributes"]))
        assert attributes["format"] == "collide-clearance"
        assert set(attributes) == set(h5.attrs)
        assert attributes["scene_sha256"] == h5.attrs["scene_sha256"]
        assert attributes["config"] == json.loads(h5.attrs["config"])


def test_distances_are_those_of_brute_force(points, collide):
    """In the table and in both files, with a margin too."""
    result = collide.result("clearance scene.usda --margin 0.03 -o near.h5")
    margin = {pair: 0.03 if pair[0] in SHAPES else 0.0 for pair in expected(points)}
    values = {pair: of_pair - margin[pair] for pair, of_pair in expected(points).items()}
    listed = {(row["shape0"], row["shape1"]): row for row in result["listed"]}
    assert listed.keys() == values.keys()
    assert result["pairs"] == result["items"] == 5
    assert result["measured"] == 5 * FRAMES
    with h5py.File("near.h5") as file:
        paths = file["shape_path"].asstr()[:]
        assert paths.tolist() == [*SHAPES, CLOTH, DROPS]
        assert file["pair_margin"][:].tolist() == [0.03] * 4 + [0.0]
        names = ("distance", "pair", *(f"{of}{side}" for of in ELEMENT for side in ("", "0")))
        arrays = {name: file[name][:, 0] for name in names}
        arrays |= {name: file[name][:, 0] for name in ("point0", "point1", "normal", "error")}
        pairs = [tuple(pair) for pair in paths[file["pair_shape"][:]].tolist()]
    positions = np.concatenate([points["cloth"], points["drops"]], axis=1).astype(np.float64)
    radius = np.repeat([THICK, DROP], [len(points["cloth"][0]), len(points["drops"][0])])
    for item, pair in enumerate(pairs):
        of_pair = values[pair]
        assert arrays["distance"][:, item] == pytest.approx(of_pair, abs=1e-7)
        row = listed[pair]
        assert row["least_distance"] == pytest.approx(of_pair.min(), abs=1e-7)
        assert row["frame"] == of_pair.argmin()
        indices = arrays["indices"][:, item]
        assert row["indices"] == [k for k in indices[row["frame"]].tolist() if k >= 0]
        normal = arrays["normal"][:, item]
        of_two = pair[0] not in SHAPES
        assert ("indices0" in row) == of_two
        assert (arrays["indices0"][:, item, 0] >= 0).all() == of_two
        for side, sign in (("", -1.0), *([("0", 1.0)] if of_two else [])):
            indices, weights = (arrays[f"{name}{side}"][:, item] for name in ELEMENT)
            frame = np.arange(FRAMES)[:, None]
            middle = (weights[..., None] * positions[frame, indices.clip(0)]).sum(axis=1)
            reach = (weights * radius[indices.clip(0)]).sum(axis=1)[:, None]
            point = arrays["point0" if side else "point1"][:, item]
            assert point == pytest.approx(middle + sign * reach * normal, abs=1e-7)
        along = ((arrays["point1"] - arrays["point0"])[:, item] * normal).sum(axis=1)
        assert along == pytest.approx(of_pair + margin[pair], abs=1e-7)
    assert np.isfinite(arrays["error"]).all()
    collide.ok("clearance scene.usda --margin 0.03 -o near.csv -q")
    collide.ok("clearance scene.usda --margin 0.03 -o near.parquet -q")
    table = pandas.read_csv("near.csv")
    parquet = pandas.read_parquet("near.parquet")
    assert len(table) == len(parquet) == 5 * FRAMES
    for pair, rows in table.groupby(["shape0", "shape1"]):
        assert rows["distance"].to_numpy() == pytest.approx(values[pair], abs=1e-7)
    names = [f"{name}{side}_{k}" for side in ("", "0") for name in ELEMENT for k in range(3)]
    assert table.columns.tolist()[-12:] == parquet.columns.tolist()[-12:] == names
    for k in range(3):
        of_file = arrays["indices"][..., k].reshape(-1)
        assert (
            table[f"indices_{k}"].tolist() == parquet[f"indices_{k}"].tolist() == of_file.tolist()
        )


def test_contacts_have_these_distances(points, collide):
    collide.ok("run scene.usda --soft-gap 10 -o set.h5 -q")
    result = collide.result("clearance scene.usda")
    with collidecli.ContactSet.open("set.h5") as contacts:
        rows = contacts.to_pandas(group="soft_contacts")
    least = rows.groupby(["shape", "object"], observed=True)["distance"].min()
    of_shapes = [row for row in result["listed"] if row["shape0"] in SHAPES]
    assert len(of_shapes) == 4
    for row in of_shapes:
        found = least[row["shape0"], row["shape1"]]
        assert row["least_distance"] == pytest.approx(found, abs=1e-6)


def test_items_by_body_and_together(points, collide):
    values = expected(points)
    result = collide.result("clearance scene.usda --by body")
    found = {row["body"]: row["least_distance"] for row in result["listed"]}
    assert found.keys() == {*SHAPES, CLOTH, DROPS}
    for name, least in found.items():
        near = min(of_pair.min() for pair, of_pair in values.items() if name in pair)
        assert least == pytest.approx(near, abs=1e-7)
    (row,) = collide.result("clearance scene.usda --by all")["listed"]
    assert row["least_distance"] == pytest.approx(min(v.min() for v in values.values()), abs=1e-7)
    order = sorted(values, key=lambda pair: values[pair].min())
    result = collide.result("clearance scene.usda --top 3")
    assert [(row["shape0"], row["shape1"]) for row in result["listed"]] == order[:3]
    collide.ok("clearance scene.usda --by all -o all.csv -q")
    every = np.array(list(values.values()))
    table = pandas.read_csv("all.csv")
    assert table["distance"].to_numpy() == pytest.approx(every.min(axis=0), abs=1e-7)
    names = [list(values)[k] for k in every.argmin(axis=0)]
    assert list(zip(table["shape0"], table["shape1"], strict=True)) == names


def test_selections_name_particle_objects(points, collide):
    values = expected(points)
    (row,) = collide.result("clearance", "scene.usda", "--between", "*cloth,*ground")["listed"]
    assert row["least_distance"] == pytest.approx(values[SHAPES[1], CLOTH].min(), abs=1e-7)
    (row,) = collide.result("clearance", "scene.usda", "--between", "*cloth,*drops")["listed"]
    assert row["least_distance"] == pytest.approx(values[CLOTH, DROPS].min(), abs=1e-7)
    told = "no pair of shapes or particle objects may touch"
    collide.refused("clearance", "scene.usda", "--between", "*ball,*ground", told=told)
    told = "matches no shape, particle object"
    collide.refused("clearance", "scene.usda", "--between", "*cloth,*water", told=told)
    words = ("clearance", "scene.usda", "--exclude", "*cloth,*")
    result = collide.result(*words)
    assert {row["shape1"] for row in result["listed"]} == {DROPS}
    words = ("clearance", "scene.usda", "--include", "*cloth,*drops")
    (row,) = collide.result(*words)["listed"]
    assert row["least_distance"] == pytest.approx(values[CLOTH, DROPS].min(), abs=1e-7)


def test_two_cloths_without_a_shape(points, collide):
    assert collide.result("clearance scene.usda")["warnings"] == []
    builder = ModelBuilder()
    vertices, faces = grid(1)
    for height in (0.0, 0.5):
        builder.add_cloth_mesh(
            (0.0, 0.0, height), vertices=vertices, indices=faces, particle_radius=0.1
        )
    found = collidecli.clearance(builder.finalize(), device="cpu")
    assert found.distance[0, 0] == pytest.approx([0.3], abs=1e-12)
    assert found.to_pandas()["indices0_0"].tolist() == found.indices0[0, 0, :, 0].tolist()


def test_filters_are_those_of_two_shapes():
    """Masks and groups decide which objects have a distance, as for objects and shapes."""
    masks = {"a": (1, 1), "b": (2, 2), "c": (3, 3)}
    builder = ModelBuilder()
    for name, mask in masks.items():
        cfg = ShapeConfig(mask_either=mask)
        builder.add_particles([[len(name), mask[0], 0.0]], radius=0.1, cfg=cfg, key=name)
    builder.add_particles(
        [[9.0, 0.0, 0.0]], radius=0.1, key="none", cfg=ShapeConfig(has_particle_collision=False)
    )
    builder.add_particles([[8.0, 0.0, 0.0]], radius=0.1, key="off", flags=0)
    found = collidecli.clearance(builder.finalize(), device="cpu")
    assert found.items == (("a", "c"), ("b", "c"))


def test_pairs_with_objects_have_no_gradients():
    with pytest.warns(RuntimeWarning, match="have no gradients"):
        found = collidecli.clearance(falling()[0], gradient=True, device="cpu")
    of_object = found.shape1[0, 0] >= 2
    assert of_object.tolist() == [False, True, True]
    assert np.isnan(found.gradient0[0, 0]).all(axis=1).tolist() == of_object.tolist()
    assert found.gradient_exact[0, 0].tolist() == [True, False, False]


def falling() -> tuple[collidecli.Model, np.ndarray]:
    """A ball above a floor, two particles, and three frames of their positions."""
    builder = ModelBuilder()
    builder.add_shape_plane(-1, key="floor")
    body = builder.add_body((0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), key="ball")
    builder.add_shape_sphere(body, radius=0.25, key="ball/shape")
    builder.add_particles([[2.0, 0.0, 1.0], [2.0, 0.0, 3.0]], radius=0.5, key="rain")
    model = builder.finalize()
    down = np.zeros((3, 1, 1, 3))
    down[..., 2] = np.array([0.0, -0.5, -1.0])[:, None, None]
    positions = model.particles.position + down
    return model, positions


def test_python_has_the_arrays():
    model, positions = falling()
    found = collidecli.clearance(model, particle_q=positions, device="cpu")
    assert found.items == (("floor", "ball/shape"), ("floor", "rain"), ("ball/shape", "rain"))
    assert found.distance[:, 0, 1] == pytest.approx([0.5, 0.0, -0.5], abs=1e-12)
    near = np.sqrt(4.0 + np.array([0.0, 0.25, 1.0])) - 0.75
    assert found.distance[:, 0, 2] == pytest.approx(near, abs=1e-12)
    assert found.shape_path == ("floor", "ball/shape", "rain")
    assert found.shape1[0, 0].tolist() == [1, 2, 2]
    assert found.indices[:, 0].tolist() == [[[-1] * 3, [0, -1, -1], [0, -1, -1]]] * 3
    assert found.barycentric[0, 0].tolist() == [[0.0] * 3, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    table = found.to_pandas()
    assert table["indices_0"].tolist() == [-1, 0, 0] * 3
    assert table["shape1"].tolist() == ["ball/shape", "rain", "rain"] * 3
    assert found.to_xarray()["indices"].dims == ("frame", "world", "item", "indices_part")
    alone = collidecli.clearance(model, between=("floor", "ball"), device="cpu")
    assert alone.indices is None
    assert alone.shape_path == ("floor", "ball/shape")


def test_worlds_have_the_distances_of_their_own_positions():
    """Two worlds at other places, with one recording and with one for each, and a particle in
    both."""
    builder = ModelBuilder()
    first = builder.begin_world("a", [0, 0, 0, 0, 0, 0, 1])
    builder.add_shape_sphere(-1, radius=0.5, key="post")
    builder.add_particles([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]], radius=0.0, key="rain")
    builder.end_world()
    half = np.sqrt(0.5)
    builder.repeat_world(first, "b", [10.0, 0.0, 0.0, half, 0.0, 0.0, half])
    builder.add_particles([[4.0, 0.0, 0.0]], radius=0.0, key="sun")
    model = builder.finalize()
    found = collidecli.clearance(model, device="cpu")
    assert found.items == (("post", "sun"), ("post", "rain"), ("sun", "rain"))
    assert found.distance[0, :, :2] == pytest.approx(np.array([[3.5, 0.5], [5.5, 0.5]]), abs=1e-12)
    assert found.point1[0, 1, 1] == pytest.approx([10.0, -1.0, 0.0], abs=1e-12)
    by_ball = collidecli.clearance(model, by="all", device="cpu")
    assert by_ball.distance[0, :, 0] == pytest.approx([0.5, 0.5], abs=1e-12)
    own = np.tile(model.particles.position, (1, 2, 1, 1))
    rows = np.array([path == "rain" for path in model.particles.path])[model.particles.owner]
    own[0, 0, rows] += (0.0, 0.0, 3.0)
    own[0, 1, rows] += (10.0, 0.0, -0.25)
    found = collidecli.clearance(model, particle_q=own, device="cpu")
    assert found.distance[0, :, 1] == pytest.approx([np.sqrt(13.0) - 0.5, 0.25], abs=1e-12)
