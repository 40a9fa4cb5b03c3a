"""collide view --map: the colours of a contact map on a page, against its distances, and what is
refused."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.pages.view.contact_map import LEVELS, STEPS, level_colours, levels, refined
from collidecli.verbs.view.view import ViewRequest, opened_view
from tests.cli.conftest import arrays, write_poses
from tests.cli.test_view import Recorded, recorded

BOX = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="box"><freejoint/>
      <geom name="box" type="box" size="0.1 0.2 0.05" pos="0.3 0 0" euler="30 20 10"/></body>
    <body name="ball" pos="5 0 0.35"><freejoint/><geom name="ball" type="sphere" size="0.3"/></body>
  </worldbody>
</mujoco>
"""
FRAMES = 30
REACH = 0.08


@pytest.fixture
def box(here, collide) -> None:
    """A box that turns and sinks into a floor in two worlds, its contact set out.h5 and the map
    map.h5."""
    rng = np.random.default_rng(3)
    poses = np.zeros((FRAMES, 2, 1, 7))
    poses[..., 3:] = rng.normal(size=(FRAMES, 2, 1, 4))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses[..., 2] = np.linspace(0.4, -0.1, FRAMES)[:, None, None]
    Path("scene.xml").write_text(BOX)
    write_poses("motion.h5", poses, ["box"])
    collide.ok("run scene.xml -t motion.h5 -o out.h5 --device cpu -q")
    collide.ok(
        "probe scene.xml -t motion.h5 --vertices-of box,ball --spacing 3cm -o map.h5 --device cpu"
    )


def page_data(path: str) -> dict:
    """The data of a page's script."""
    text = Path(path).read_text(encoding="utf-8")
    found = re.search(r'id="collide-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def unpacked(packed: dict) -> dict[str, np.ndarray]:
    content = gzip.decompress(b64decode(packed["bytes"]))
    found = {}
    at = 0
    for name, kind, size in packed["arrays"]:
        found[name] = np.frombuffer(content, kind, size, at)
        at += found[name].nbytes
    return found


@pytest.mark.rest
@pytest.mark.usefixtures("box")
def test_triangles_have_the_colour_of_the_nearest_point(collide):
    """Of all frames and worlds; the nearest point by brute force over those of the shape, and the
    level by its definition."""
    result = json.loads(
        collide.ok(f"view out.h5 --map map.h5 --map-range {REACH} --export p.html --json").out
    )
    held = arrays("map.h5")
    assert result["map_points"] == len(held["point"])
    data = page_data("p.html")
    with opened_view(ViewRequest("out.h5", map="map.h5")) as view:
        model = view.frames.model
        deepest = view.touches.deepest
    assert deepest > 0.05
    ((_, packed),) = data["map"]["triangles"].items()
    drawn = unpacked(packed)
    corner = drawn["corner"].reshape(-1, 3, 3).astype(float)
    (groups,) = data["groups"].values()
    rows = np.concatenate([group["rows"] for group in groups])
    shape = rows[drawn["row"]]
    assert sorted({model.shapes.path[row] for row in shape}) == ["ball", "box"]
    for row in np.unique(shape):
        own = np.flatnonzero(held["point_shape"] == row)
        x, y, z, qx, qy, qz, qw = model.shapes.pose[row]
        turn = np.array(
            [
                [1 - 2 * (qy**2 + qz**2), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw)],
                [2 * (qx * qy + qz * qw), 1 - 2 * (qx**2 + qz**2), 2 * (qy * qz - qx * qw)],
                [2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx**2 + qy**2)],
            ]
        )
        middle = corner[shape == row].mean(axis=1) @ turn.T + (x, y, z)
        apart = np.linalg.norm(middle[:, None] - held["point"][own], axis=2)
        chosen = apart[np.arange(len(apart)), np.searchsorted(own, drawn["point"][shape == row])]
        assert (chosen <= apart.min(axis=1) + 1e-6).all()
    for number, world in enumerate(data["worlds"]):
        level = unpacked(world)["map_level"].reshape(-1, FRAMES)
        distance = held["distance"][:, number].T.astype(float)
        near = (distance > 0.0) & (distance < REACH)
        assert (level[distance >= REACH] == 0).all()
        np.testing.assert_array_equal(
            level[near], 1 + np.minimum(np.floor(STEPS * (1 - distance[near] / REACH)), STEPS - 1)
        )
        deep = distance <= 0.0
        np.testing.assert_array_equal(
            level[deep],
            1 + STEPS + np.minimum(np.floor(STEPS * -distance[deep] / deepest), STEPS - 1),
        )
        assert near.sum() > 100
        assert deep.sum() > 100


@pytest.mark.usefixtures("box")
def test_an_npz_file_has_the_colours_of_the_hdf5_file(collide):
    words = "probe scene.xml -t motion.h5 --vertices-of box,ball --spacing 3cm --device cpu"
    collide.ok(f"{words} -o map.npz")
    before = Path("map.npz").read_bytes()
    pages = []
    for ending in ("h5", "npz"):
        collide.ok(f"view out.h5 --map map.{ending} --export {ending}.html")
        data = page_data(f"{ending}.html")
        pages.append([unpacked(world)["map_level"] for world in data["worlds"]])
    np.testing.assert_array_equal(*pages)
    assert Path("map.npz").read_bytes() == before, "it is read, not written"


@pytest.mark.usefixtures("box")
def test_a_recording_has_the_colours_of_the_map(collide):
    """Each corner of a triangle is in the middle of the pixel of the nearest point, whose colour is
    that of its level in each frame; the measured shapes have no other geometry."""
    found = recorded(collide, "out.h5", "--map", "map.h5", "--map-range", str(REACH))
    held = arrays("map.h5")
    palette = np.array(level_colours(), np.uint8)
    with opened_view(ViewRequest("out.h5", map="map.h5", map_range=REACH)) as view:
        model = view.frames.model
        drawn = view.frames.contact_map.of_template(0)
        deepest = view.touches.deepest
    for world in (0, 1):
        for name in ("box", "ball"):
            row = model.shapes.path.index(name)
            path = f"/world_{world}/shapes/{name}/shape"
            fixed = found.fixed(path)
            assert {"Mesh3D:vertex_texcoords", "Mesh3D:albedo_texture_format"} <= fixed
            assert not any("half_sizes" in component for component in fixed)
            mesh = fixed_values(found, path)
            own = drawn.row == row
            corner = np.array(mesh["vertex_positions"]).reshape(-1, 3, 3)
            np.testing.assert_array_equal(corner, drawn.corner[own])
            (size,) = mesh["albedo_texture_format"]
            width = size["width"]
            height = size["height"]
            place = np.array(mesh["vertex_texcoords"]).reshape(-1, 3, 2)
            assert (place == place[:, :1]).all()
            column, line = (place[:, 0] * [width, height] - 0.5).T
            np.testing.assert_allclose(column, np.rint(column), atol=1e-3)
            pixel = np.rint(line).astype(int) * width + np.rint(column).astype(int)
            textures = textures_of(found, path)
            assert len(textures) == 1 if name == "ball" else 10 < len(textures) <= FRAMES
            shown = None
            for frame in range(FRAMES):
                if frame in textures:
                    shown = textures[frame].reshape(-1, 3)
                distance = held["distance"][frame, world][drawn.points[drawn.point[own]]]
                expected = palette[levels(distance, REACH, deepest)]
                np.testing.assert_array_equal(shown[pixel], expected)
    assert "Boxes3D:half_sizes" not in {c for p in found.chunks for c in found.fixed(p)}


def textures_of(found: Recorded, path: str) -> dict[int, np.ndarray]:
    """uint8: bytes of the texture of an entity, by the frames in which it changes."""
    textures = {}
    for each in found.chunks[path]:
        rows = each.to_record_batch().to_pydict()
        buffers = [rows[name] for name in rows if name.endswith("albedo_texture_buffer")]
        for frame, (buffer,) in (
            zip(rows.get("frame", ()), *buffers, strict=True) if buffers else ()
        ):
            textures[frame] = np.frombuffer(bytes(buffer), np.uint8)
    return textures


def fixed_values(found: Recorded, path: str) -> dict[str, list]:
    """Values of an entity in all frames, by the part of the column's name after the last colon."""
    values = {}
    for each in found.chunks[path]:
        if each.is_static:
            for name, column in each.to_record_batch().to_pydict().items():
                if column[0] is not None:
                    values[name.rpartition(":")[2]] = column[0]
    return values


def test_levels():
    found = levels(np.array([np.inf, np.nan, 0.1, 0.0999, 1e-9, 0.0, -0.01, -9.0]), 0.1, 0.02)
    assert found.tolist() == [0, 0, 0, 1, STEPS, STEPS + 1, STEPS + 1 + STEPS // 2, LEVELS - 1]
    assert levels(np.array([-1.0, 0.0]), 0.1, 0.0).tolist() == [STEPS + 1] * 2
    assert len(level_colours()) == LEVELS == len(set(level_colours()))


@pytest.mark.parametrize("seed", range(3))
def test_refined_triangles_cover_the_surface(seed):
    """Halving keeps the area and the plane; edges are short, or there are as many as may be."""
    corner = np.random.default_rng(seed).normal(size=(7, 3, 3))

    def area(of: np.ndarray) -> float:
        across = np.cross(of[:, 1] - of[:, 0], of[:, 2] - of[:, 0])
        return 0.5 * np.linalg.norm(across, axis=1).sum()

    found = refined(corner, 300, 100_000)
    assert area(found) == pytest.approx(area(corner), rel=1e-12)
    edges = np.linalg.norm(found - np.roll(found, 1, axis=1), axis=2)
    assert edges.max() <= 0.7 * np.sqrt(area(corner) / 300)
    assert len(corner) < len(refined(corner, 300, 100)) <= 100
    flat = np.zeros((2, 3, 3))
    np.testing.assert_array_equal(refined(flat, 5, 100), flat)


@pytest.mark.usefixtures("box")
def test_frames_of_a_map_are_found_by_their_time(collide):
    collide.ok("run scene.xml -t motion.h5 -o some.h5 --frames 4::3 --device cpu -q")
    collide.ok(f"view some.h5 --map map.h5 --map-range {REACH} --frames 1:4 --export p.html")
    distance = arrays("map.h5")["distance"][[7, 10, 13], 1].T
    level = unpacked(page_data("p.html")["worlds"][1])["map_level"].reshape(-1, 3)
    np.testing.assert_array_equal(level > 0, distance < REACH)
    np.testing.assert_array_equal(level > STEPS, distance <= 0)
    collide.ok("probe scene.xml -t motion.h5 --vertices-of box --frames ::2 -o few.h5 --device cpu")
    collide.refused(
        "view out.h5 --map few.h5 --export q.html", told="no frame at the time of frame 1"
    )


@pytest.mark.usefixtures("box")
def test_the_range_is_the_threshold_of_the_map(collide):
    for more, reach in ((("--threshold", "5mm"), 0.005), ((), 0.05)):
        words = "probe scene.xml -t motion.h5 --vertices-of box --device cpu --force -o t.h5"
        collide.ok(words, *more)
        with opened_view(ViewRequest("out.h5", map="t.h5")) as view:
            assert view.frames.contact_map.reach == reach


@pytest.mark.usefixtures("box")
def test_refusals(collide):
    np.savez("plain.npz", distance=np.zeros((1, 1, 1)))
    np.savez("text.npz", attributes="{")
    np.savez("list.npz", attributes="[]")
    np.savez("empty.npz", attributes=json.dumps({"format": "collide-contact-map"}))
    new = {"format": "collide-contact-map", "format_version": [10**30, 0]}
    np.savez("new.npz", attributes=json.dumps(new))
    np.savez("null.npz", attributes="{}", shape_path=np.array(["a\0b"]))
    with h5py.File("map.h5") as file:
        about = {name: str(value) for name, value in file.attrs.items()}
    about |= {"format_version": [1, 0], "scene_sha256": "a\0b"}
    np.savez("odd.npz", attributes=json.dumps(about))
    Path("bad.npz").write_bytes(b"PK\x03\x04 damaged")
    Path("p.csv").write_text("x,y,z,body\n0,0,1,box\n")
    collide.ok("probe scene.xml -t motion.h5 --points p.csv -o points.h5 --device cpu")
    for words, told in (
        ("--map plain.npz", "is no contact map: it has no array 'attributes'"),
        ("--map text.npz", "text.npz: attributes: is not JSON"),
        ("--map list.npz", "list.npz: attributes: is no JSON object"),
        ("--map empty.npz", "empty.npz: the root attribute"),
        ("--map new.npz", "this program reads 1.x"),
        ("--map null.npz", "null.npz: shape_path: cannot be read"),
        ("--map odd.npz", "odd.npz: the root attribute scene_sha256"),
        ("--map bad.npz", "bad.npz"),
        ("--map points.h5", "points.h5: has points, not the vertices of shapes"),
        ("--map out.h5", "out.h5: is no contact map"),
        ("--map none.h5", "none.h5: there is no such file"),
        ("--map-range 2cm", "the range is that of a contact map"),
        ("--map map.h5 --map-range 0", "the range is not above 0"),
        ("--map map.h5 --points-only", "--points-only draws none"),
    ):
        collide.refused(f"view out.h5 {words} --export p.html", told=told)
    collide.refused(
        "view out.h5 --map map.h5 --export map.h5 --force", told="also an input", code=3
    )
    Path("scene.xml").rename("other.xml")
    collide.refused("view out.h5 --map map.h5 --export p.html", told="the scene is not found")


@pytest.mark.usefixtures("box")
def test_a_map_of_another_scene_or_motion(collide):
    text = Path("scene.xml").read_text()
    Path("other.xml").write_text(text.replace("0.35", "0.36"))
    collide.ok("probe other.xml -t motion.h5 --vertices-of box -o other.h5 --device cpu")
    words = "view out.h5 --map other.h5 --export p.html"
    collide.refused(words, told="it is not of the scene of out.h5")
    collide.ok(f"{words} --allow-mismatch")
    with h5py.File("other.h5", "r+") as file:
        file["shape_path"][1] = "another"
    collide.refused(
        f"{words} --allow-mismatch --force", told="it has other shapes than the contact set"
    )


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda file: file.pop("point"), "/point: is missing"),
        (lambda file: file.attrs.pop("kind"), "kind"),
        (
            lambda file: file["point_shape"].write_direct(
                np.full(len(file["point"]), 99, np.int32)
            ),
            "/shape_path does not have",
        ),
        (
            lambda file: file["point"].write_direct(np.full(file["point"].shape, np.nan)),
            "not finite",
        ),
        (
            lambda file: (file.pop("time"), file.create_dataset("time", data=[0.0])),
            "/time: has the shape [1]",
        ),
        (
            lambda file: (file.pop("step"), file.create_dataset("step", data=np.zeros(FRAMES))),
            "/step: has the type",
        ),
        (
            lambda file: (file.pop("distance"), file.create_dataset("distance", data=[0.5])),
            "/distance: has not the axes",
        ),
        (
            lambda file: (file.pop("shape_path"), file.create_dataset("shape_path", data=[1, 2])),
            "/shape_path: is not a list",
        ),
    ],
)
def test_damaged_maps(collide, change, told):
    with h5py.File("map.h5", "r+") as file:
        change(file)
    collide.refused("view out.h5 --map map.h5 --export p.html", told=told)
    with pytest.raises(InputError), opened_view(ViewRequest("out.h5", map="map.h5")):
        pass
