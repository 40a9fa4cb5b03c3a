"""collide view without a browser, and its export to Rerun and RViz: what it finds, refuses and
says; poses."""

import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import trimesh

from collidecli.errors import InputError
from collidecli.numerics.poses import moved_points
from collidecli.pages.view.colours import GAP, depth_colours
from collidecli.pages.view.framing import Stage
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.view.view import ViewRequest, opened_view
from tests.cli.conftest import FRAMES, arrays, distances, refusals, write_poses
from tests.support.contact_sets import made_up
from tests.support.usd_scenes import COLLIDER, placed, sphere, write_usda

ROOT = Path(__file__).parents[2]


@pytest.fixture
def out(ran) -> str:
    return ran("out.h5", "--gap", "0.02")


def test_shapes_stand_where_their_contacts_say(out):
    with opened_view(ViewRequest(out)) as view:
        assert (view.result.scene, view.result.trajectory) == (["scene.xml"], "motion.h5")
        radius = view.frames.model.shapes.size[:, 0]
        seen = 0
        for place in range(len(view.frames)):
            held = view.frames.contacts(place, 0)
            poses = view.frames.shape_poses(place, 0)
            for one, other, distance in zip(
                held["shape0"], held["shape1"], held["distance"], strict=True
            ):
                apart = (
                    np.linalg.norm(poses[one, :3] - poses[other, :3]) - radius[one] - radius[other]
                )
                assert apart == pytest.approx(distance, abs=1e-6), "float32 of the column"
                seen += 1
        assert seen > 5
        (pair,) = view.touches.of(0)
        assert (pair.paths, len(pair.touches)) == (("base", "ball"), 1)
        touch = pair.touches[0]
        assert (touch.first, touch.deepest, touch.last) == (
            11,
            19,
            19,
        ), "0.105 - 0.01 n is below 0 from frame 11 on"
        assert touch.distance == pytest.approx(0.105 - 0.19, abs=1e-6)


def refused(request: ViewRequest, told: str) -> InputError:
    with pytest.raises(InputError, match=told) as found, opened_view(request):
        pass
    return found.value


def test_contacts_of_a_second_set(ran, collide):
    """Those of a larger gap beside those of the set; a pair that only the second has is listed."""
    out = ran("out.h5", "--margin", "0")
    more = ran("more.h5", "--margin", "0.05")
    with opened_view(ViewRequest(out)) as view:
        alone = [
            view.frames.contacts(place, 0)["distance"].tolist() for place in range(len(view.frames))
        ]
        first = view.touches.of(0)[0].touches[0].first
    with opened_view(ViewRequest(out, against=more)) as view:
        seen = [view.frames.contacts(place, 0) for place in range(len(view.frames))]
        assert [held["distance"][~held["second"]].tolist() for held in seen] == alone
        assert sum(held["second"].sum() for held in seen) > sum(map(len, alone)) > 0
        assert view.touches.of(0)[0].touches[0].first == first, (
            "the touches are those of the first set"
        )
        assert view.frames.counts([0])["contact"] == sum(len(held["distance"]) for held in seen)
    apart = ran("apart.h5", "--frames", ":11")
    more_apart = ran("more_apart.h5", "--frames", ":11", "--margin", "0.05")
    for against, pairs in (("", []), (more_apart, [("base", "ball")])):
        with opened_view(ViewRequest(apart, against=against)) as view:
            assert [pair.paths for pair in view.touches.of(0)] == pairs
    refused(ViewRequest(out, against=apart), r"its frames are not those of out\.h5")


def test_a_slice_of_a_slice_of_two_worlds(here, collide):
    poses = np.repeat(arrays("motion.h5")["body_q"], 2, axis=1)
    poses[:, 1, 0, 0] += 0.25
    write_poses("motion.h5", poses, ["ball"])
    collide.ok("run scene.xml -t motion.h5 -o out.h5 --frames 3::2 --device cpu")
    with opened_view(ViewRequest("out.h5", frames="2:5")) as view:
        ball = view.frames.model.shapes.path.index("ball")
        held = [
            [view.frames.shape_poses(place, world)[ball, :3] for world in (0, 1)]
            for place in range(3)
        ]
        np.testing.assert_allclose(held, poses[[7, 9, 11], :, 0, :3], atol=1e-12)
        assert view.frames.number.tolist() == [2, 3, 4]


def test_what_is_found_elsewhere(out, here, monkeypatch):
    (here / "sub").mkdir()
    shutil.copy("out.h5", "sub/copy.h5")
    with opened_view(ViewRequest("sub/copy.h5")) as view:
        assert (view.result.scene, view.result.trajectory) == (
            ["scene.xml"],
            "motion.h5",
        ), "in this folder"
    for name in ("scene.xml", "motion.h5"):
        shutil.move(name, f"sub/{name}")
    with opened_view(ViewRequest("sub/copy.h5")) as view:
        assert view.result.trajectory == "sub/motion.h5", "beside the contact set"
    with opened_view(ViewRequest("out.h5", scene="sub/scene.xml")) as view:
        assert view.result.trajectory == "sub/motion.h5", "beside the scene"
    with opened_view(ViewRequest("out.h5")) as view:
        assert view.frames.model is None
        told = (
            f"scene.xml is not in this folder nor in {here.resolve().parent}: give it with --scene;"
            " contacts are"
        )
        assert told in view.result.notes[0]
    (here / "sub" / "out").mkdir()
    shutil.copy("out.h5", "sub/out/out.h5")
    with opened_view(ViewRequest("sub/out/out.h5")) as view:
        assert view.result.scene == [str(here.resolve() / "sub" / "scene.xml")], (
            "above the contact set"
        )
    os.unlink("sub/motion.h5")
    with opened_view(ViewRequest("out.h5", scene="sub/scene.xml")) as view:
        assert (view.frames.model, "give it with -t" in view.result.notes[0]) == (None, True)


def test_what_is_another(out, here):
    def notes(**options) -> list[str]:
        with opened_view(ViewRequest(out, **options)) as view:
            assert (view.frames.model is None) == ("points_only" in options)
            return view.result.notes

    shutil.copy("motion.h5", "other.h5")
    with h5py.File("other.h5", "r+") as other:
        other["body_q"][..., 0] += 0.5
    refused(ViewRequest(out, "", "other.h5"), r"not the recording of out\.h5")
    note = (
        "other.h5: this is not the recording of out.h5: the hashes differ; what is drawn may be"
        " wrong"
    )
    assert note in notes(trajectory="other.h5", allow_mismatch=True)
    text = Path("scene.xml").read_text()
    Path("scene.xml").write_text(text.replace('size="0.5"', 'size="0.6"'))
    assert "--allow-mismatch" in refused(ViewRequest(out), r"not the scene of out\.h5").fix
    assert any(
        "scene.xml: this is not the scene of out.h5" in note for note in notes(allow_mismatch=True)
    )
    assert notes(points_only=True) == []
    Path("scene.xml").write_text(text.replace('name="far" type', 'name="near" type'))
    refused(ViewRequest(out, allow_mismatch=True), "other names")


@pytest.fixture
def made_up_set(here) -> None:
    """The contact set a.h5 of 9 frames and 2 worlds."""
    made_up(frames=9, worlds=2).write(here / "a.h5")


test_refusals = refusals(
    "view",
    ("none.h5", "none.h5"),
    ("scene.xml", "scene.xml"),
    ("a.h5 --frames 99:", "'99:' selects none of 9 frames"),
    ("a.h5 --scene none.usda", "none.usda: there is no such file"),
    ("a.h5 -t none.h5 --scene scene.xml", "none.h5"),
    ("a.h5 --points-only --scene scene.xml", "--points-only draws neither scene nor motion"),
    ("a.h5 --export p.html --world 0,7", "world 7 does not exist"),
    ("a.h5 --export a.h5/p.html", "cannot be created: a file has its name", 3),
    ("a.h5 --export p.png", "p.png: a page has the extension .html or .htm"),
    ("a.h5 --to rerun --export p.html", "p.html: a recording has the extension .rrd"),
    ("a.h5 --to rerun --export a.h5/p.rrd", "a file has its name", 3),
    ("a.h5 --export p", "p: a page has the extension"),
    ("a.h5 --export a.h5 --force", "the output is also an input", 3),
    ("a.h5 --against motion.h5 --export motion.h5 --force", "the output is also an input", 3),
    needs="made_up_set",
)


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("viser", "view a.h5 --export x.html", "view"),
        ("rerun", "view a.h5 --to rerun --export x.rrd", "rerun"),
        ("rosbags.rosbag2", "export a.h5 --to mcap", "ros"),
        ("pyarrow", "events a.h5 --parquet x.parquet", "tables"),
        ("matplotlib", "report a.h5", "plots"),
        ("jinja2", "report a.h5", "plots"),
    ],
)
def test_without_a_package(made_up_set, collide, monkeypatch, package, words, extra):
    monkeypatch.setitem(sys.modules, package, None)
    collide.refused(words, told=f"pip install 'collidecli[{extra}]'")
    assert {each.name for each in Path().iterdir()} == {"a.h5", "motion.h5", "scene.xml"}


BALL = sphere("ball", f"double radius = 0.2\n{placed((0, 0, 0.1))}")
SPREAD = f"""def Xform "World" {{
    def Plane "floor" {COLLIDER} {{
        uniform token axis = "Z"
    }}
    def Xform "envs" {{
        def Xform "env_0" {{
            {BALL}
        }}
        def Xform "env_1" (prepend inherits = </World/envs/env_0>) {{
            {placed((30, 0, 0))}
        }}
    }}
}}
"""


@pytest.mark.parametrize("first", [0, 1])
def test_worlds_that_stand_apart_are_drawn_in_one_place(here, collide, first):
    write_usda(here, SPREAD, name="envs.usda")
    collide.ok("run envs.usda -o envs.h5 --device cpu")
    with opened_view(ViewRequest("envs.h5")) as view:
        frames = view.frames
        assert [frames.contacts(0, world)["point0"][0, 0] for world in (0, 1)] == pytest.approx(
            [0.0, 30.0]
        )
        stage = Stage(frames, "Z", first)
        balls = [frames.rows(world)[1] for world in (0, 1)]
        placed = [
            frames.shape_poses(0, world)[balls[world], 0] - stage.zero(world)[0] for world in (0, 1)
        ]
        points = [
            frames.contacts(0, world)["point0"][0, 0] - stage.zero(world)[0] for world in (0, 1)
        ]
        np.testing.assert_allclose([*placed, *points], 30.0 * first)
        np.testing.assert_allclose(stage.extent.center[0], 30.0 * first)


CUBE = trimesh.creation.box((0.2, 0.4, 0.6))
VISUAL_USD = f"""def Xform "World" {{
    def Xform "link" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
        {placed((0, 0, 2))}
        def Sphere "shape" {COLLIDER} {{
            double radius = 0.5
        }}
        def Mesh "skin" {{
            point3f[] points = {[tuple(p) for p in CUBE.vertices.tolist()]}
            int[] faceVertexIndices = {CUBE.faces.ravel().tolist()}
            int[] faceVertexCounts = {[3] * 12}
            color3f[] primvars:displayColor = [(0, 1, 0)]
            double3 xformOp:translate = (1, 0, 0)
            double3 xformOp:scale = (1, 2, 1)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
        }}
        def Mesh "guide" (prepend inherits = </World/link/skin>) {{
            uniform token purpose = "guide"
        }}
    }}
}}"""
VISUAL_URDF = """<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material><link name="link">
<collision><geometry><sphere radius="0.5"/></geometry></collision>
<visual><origin xyz="1 0 2" rpy="0 0 1.5707963267948966"/><geometry><mesh filename="cube.stl" scale="3 1 1"/></geometry>
<material name="red"/></visual><visual><geometry><mesh filename="none.dae"/></geometry></visual></link></robot>"""


@pytest.mark.parametrize(
    ("old", "new", "colours"),
    [
        (
            "color3f[] primvars:displayColor = [(0, 1, 0)]",
            'string primvars:displayColor = "x"',
            [[178, 178, 178]],
        ),
        ("double3 xformOp:scale = (1, 2, 1)", "quatf xformOp:scale = (1, 0, 0, 0)", []),
    ],
    ids=["colour", "scale"],
)
def test_a_visual_mesh_with_a_value_of_another_type(here, collide, old, new, colours):
    """It is grey without a colour, and left out without a pose."""
    assert old in VISUAL_USD
    write_usda(here, VISUAL_USD.replace(old, new), name="a.usda")
    collide.ok("run", "a.usda", "-o", "a.h5", "--device", "cpu")
    with opened_view(ViewRequest("a.h5")) as view:
        assert view.frames.shape_count == 1
        assert view.frames.visual_colours.tolist() == colours


@pytest.mark.parametrize(
    ("name", "text", "half", "colour", "told"),
    [
        ("a.usda", VISUAL_USD, (0.1, 0.4, 0.3), (0, 255, 0), ""),
        (
            "a.urdf",
            VISUAL_URDF,
            (0.2, 0.3, 0.3),
            (255, 0, 0),
            "1 visual meshes are not drawn: none.dae",
        ),
    ],
)
def test_visual_meshes_stand_where_the_scene_has_them(
    here, collide, name, text, half, colour, told
):
    """A box of 0.2, 0.4 and 0.6 m at (1, 0, 2): stretched along y in USD; in the URDF along x, then
    turned about z."""
    CUBE.export("cube.stl")
    Path(name).write_text(text) if name == "a.urdf" else write_usda(here, text, name=name)
    collide.ok("run", name, "-o", "a.h5", "--device", "cpu")
    with opened_view(ViewRequest("a.h5")) as view:
        frames = view.frames
        (row,) = range(frames.shape_count, len(frames.model.shapes))
        mesh = frames.model.meshes[frames.model.shapes.mesh[row]]
        found = moved_points(frames.shape_poses(0, 0)[row], mesh.vertex)
        expected = np.add((1, 0, 2), np.outer((-1, 1), half))
        np.testing.assert_allclose([found.min(axis=0), found.max(axis=0)], expected, atol=1e-6)
        assert frames.visual_colours.tolist() == [list(colour)]
        assert told in "".join(view.result.notes)


CLOTH = Path(__file__).parents[2] / "samples" / "06_cloth" / "cloth.usda"


class Recorded:
    """A recording of Rerun as Rerun reads it."""

    def __init__(self, path: str) -> None:
        chunk = pytest.importorskip(
            "rerun.chunk", reason="this version of rerun-sdk reads no recordings"
        )
        self.chunks: dict[str, list[Any]] = defaultdict(list)
        for each in chunk.RrdReader(path).stream():
            self.chunks[str(each.entity_path)].append(each)

    def fixed(self, path: str) -> set[str]:
        """Names of the components that an entity has in all frames."""
        batches = [each.to_record_batch() for each in self.chunks[path] if each.is_static]
        return {name for batch in batches for name in batch.schema.names}

    def columns(self, path: str) -> dict[str, list]:
        """Rows of an entity in frames, by the part of the column's name after the last colon."""
        found: dict[str, list] = defaultdict(list)
        for each in self.chunks[path]:
            if not each.is_static:
                for name, values in each.to_record_batch().to_pydict().items():
                    found[name.rpartition(":")[2]] += values
        return found


def recorded(collide, *words: object) -> Recorded:
    pytest.importorskip("rerun", reason="rerun-sdk is not installed (extra rerun)")
    collide.ok("view", *words, "--to", "rerun", "--export", "x.rrd")
    return Recorded("x.rrd")


def test_a_recording_shows_what_the_spheres_do(ran, collide):
    """A ball of 0.3 m comes down by 1 cm a frame on another of 0.5 m; both have a contact within 2
    cm."""
    found = recorded(collide, ran("out.h5", "--gap", "0.01"))
    ball = found.columns("/world_0/shapes/ball/shape")
    assert ball["frame"] == list(range(FRAMES))
    assert [time.total_seconds() for time in ball["time"]] == pytest.approx(
        0.01 * np.arange(FRAMES)
    )
    np.testing.assert_allclose(np.array(ball["translation"])[:, 0, 2], 0.8 + distances(), atol=1e-6)
    assert "Ellipsoids3D:half_sizes" in found.fixed("/world_0/shapes/ball/shape")
    assert {"Transform3D:translation", "Ellipsoids3D:half_sizes"} <= found.fixed(
        "/world_0/shapes/base/shape"
    )
    touching, gap = (found.columns(f"/world_0/contacts/{name}") for name in ("touching", "gap"))
    for points, expected in (
        (touching, distances() <= 0.0),
        (gap, (distances() > 0.0) & (distances() < 0.02)),
    ):
        assert [len(each) for each in points["positions"]] == expected.tolist()
    deep = np.array([each[0] for each in touching["positions"] if each])
    height = 0.5 + 0.5 * distances()
    np.testing.assert_allclose(deep[:, 2], height[distances() <= 0.0], atol=1e-6)
    arrows = found.columns("/world_0/contacts/normals")
    np.testing.assert_allclose(
        [np.sign(each[0]) for each in arrows["vectors"] if each], [[0, 0, 1]] * 11, atol=1e-6
    )
    depth = found.columns("/world_0/depth/base/ball")
    wanted = {n: max(0.0, -d) for n, d in enumerate(distances())}
    assert depth["frame"] == [
        0,
        *range(10, FRAMES),
    ], "the frames of touch, those beside them, and the ends"
    assert np.ravel(depth["scalars"]) == pytest.approx(
        [wanted[n] for n in depth["frame"]], abs=1e-6
    )
    colours = {tuple(c) for each in touching["colors"] for c in _rgb(each)}
    assert len(colours) == 9
    assert tuple(depth_colours(np.ones(1), 1.0)[0]) in colours
    assert {tuple(c) for each in gap["colors"] for c in _rgb(each)} == {GAP}


def _rgb(packed: list[int]) -> np.ndarray:
    return (np.array(packed, np.uint32).reshape(-1, 1) >> np.array([24, 16, 8], np.uint32)) & 255


def test_a_recording_shows_the_chosen_worlds(here, collide):
    ball = '<geom name="ball" type="sphere" size="0.3"/>'
    skin = '<geom type="box" size=".1 .1 .1" contype="0" conaffinity="0" name="skin"/>'
    Path("scene.xml").write_text(Path("scene.xml").read_text().replace(ball, ball + skin))
    collide.ok("run scene.xml -t motion.h5 --worlds 3 -o out.h5 --device cpu")
    found = recorded(collide, "out.h5", "--world", "0,2", "--frames", "5:9")
    assert {path[:8] for path in found.chunks if path.startswith("/world")} == {
        "/world_0",
        "/world_2",
    }
    skin = found.columns("/world_2/visuals/skin/shape")
    assert skin["frame"] == [5, 6, 7, 8]
    np.testing.assert_allclose(
        np.array(skin["translation"])[:, 0, 2], 0.8 + distances()[5:9], atol=1e-6
    )
    assert "Boxes3D:half_sizes" in found.fixed("/world_2/visuals/skin/shape")
    assert "skin" not in arrays("out.h5")["model/shape/path"]


def test_contacts_of_cloth_with_itself_are_shown(tmp_path, collide):
    words = ("--self-contacts", "0.02", "--frames", "23:25", "--device", "cpu", "-o", "a.h5", "-q")
    collide.ok("run", str(CLOTH), *words)
    found = recorded(collide, "a.h5", "--scene", CLOTH)
    start = arrays("a.h5")["self_contacts/cell_start"]
    points = found.columns("/world_0/contacts/self")["positions"]
    assert [len(each) for each in points] == np.diff(start).tolist()
    corners = np.array(found.columns("/world_0/particles/surfaces")["vertex_positions"])
    assert corners.shape[0] == 2
    assert np.ptp(corners[0], axis=0).max() > 0.1
    assert np.abs(corners[1] - corners[0]).max() > 0.0, "it moves"


def test_surfaces_of_a_recording(here, collide):
    Path("scene.xml").write_text(Path("scene.xml").read_text().replace("0 0 2", "0 0 0.7"))
    hydro = ("--hydro", "all", "--hydro-resolution", "12", "--hydro-surface")
    collide.ok("run scene.xml -o a.h5 --device cpu -q", *hydro)
    found = recorded(collide, "a.h5").columns("/world_0/surfaces/faces")
    held = arrays("a.h5")
    corner = held["hydro_faces/vertices"]
    lengths = np.diff(held["hydro_faces/vertex_start"])
    np.testing.assert_allclose(
        next(each for each in found["vertex_positions"] if each), corner, atol=1e-6
    )
    assert max(len(each) for each in found["triangle_indices"] if each) == int((lengths - 2).sum())


def messages(path: str) -> dict[str, list[tuple[int, Any]]]:
    """Times and messages of each topic, as the libraries of MCAP and ROS read them."""
    reader = pytest.importorskip("mcap.reader", reason="mcap is not installed (extra dev)")
    highlevel = pytest.importorskip("rosbags.highlevel")
    found: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    with highlevel.AnyReader([Path(path)]) as bag:
        for connection, time, raw in bag.messages():
            found[connection.topic].append((time, bag.deserialize(raw, connection.msgtype)))
    with open(path, "rb") as file:
        held = reader.make_reader(file)
        assert held.get_header().profile == "ros2"
        read = [(channel.topic, message.log_time) for _, channel, message in held.iter_messages()]
    assert sorted(read) == sorted(
        (topic, time) for topic, each in found.items() for time, _ in each
    )
    return found


def test_messages_of_contacts(ran, collide):
    result = collide.result(
        "export", ran("out.h5", "--gap", "0.01"), "--to", "mcap", "-o", "x.mcap"
    )
    assert result["left_out"] == ["clock of the recording: times are seconds from 0"]
    found = messages("x.mcap")
    assert sorted(found) == ["/collide/contacts", "/collide/markers"]
    for n, ((time, states), (_, markers)) in enumerate(
        zip(*(found[topic] for topic in sorted(found)), strict=True)
    ):
        points, normals = markers.markers
        near = distances()[n] < 0.02
        depth = -distances()[n]
        assert (
            time == n * 10_000_000 == states.header.stamp.sec * 10**9 + states.header.stamp.nanosec
        )
        assert states.header.frame_id == points.header.frame_id == "world"
        assert ([len(each.points) for each in (points, normals)], points.action) == (
            [near, 2 * near],
            0 if near else 2,
        )
        if near:
            (red,) = points.colors
            begin, end = ([p.x, p.y, p.z] for p in normals.points)
            assert (red.r > red.b) == (depth >= 0.0)
            np.testing.assert_allclose(begin, [0.0, 0.0, 0.5 - 0.5 * depth], atol=1e-6)
            np.testing.assert_allclose(np.subtract(end, begin), [0.0, 0.0, 0.05], atol=1e-6)
        assert len(states.states) == (depth >= 0.0)
        for state in states.states:
            assert (state.collision1_name, state.collision2_name) == ("base", "ball")
            assert state.depths == pytest.approx([depth], abs=1e-6)
            assert [each.z for each in state.contact_normals] == pytest.approx([1.0])
            assert [each.z for each in state.contact_positions] == pytest.approx(
                [0.5 - 0.5 * depth]
            )


def test_worlds_have_topics_of_their_own(here, collide):
    made_up(frames=4, worlds=3).write(here / "a.h5")
    collide.ok("export a.h5 --to mcap --world 0,2 -o x.mcap --frame-id map --frames 1:3")
    found = messages("x.mcap")
    assert sorted(found) == [
        f"/collide/world_{world}/{name}" for world in (0, 2) for name in ("contacts", "markers")
    ]
    with ContactSet.open("a.h5") as contacts:
        held = contacts.cells(5, 6, ("distance", "point0", "point1", "shape0", "shape1")).columns
        path = contacts.shapes.path
    points = found["/collide/world_2/markers"][0][1].markers[0]
    middle = 0.5 * (held["point0"].astype(float) + held["point1"])
    np.testing.assert_allclose([(p.x, p.y, p.z) for p in points.points], middle)
    wanted: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one, other, distance in zip(
        *(held[name].tolist() for name in ("shape0", "shape1", "distance")), strict=True
    ):
        if distance <= 0.0:
            wanted[path[one], path[other]].append(-distance)
    states = found["/collide/world_2/contacts"][0][1].states
    assert {(s.collision1_name, s.collision2_name): s.depths.tolist() for s in states} == wanted


@pytest.mark.parametrize("bag", ["drive.mcap", "drive"])
def test_the_clock_of_the_bag(tmp_path, collide, bag):
    """Of a file, and of a folder, as ROS 2 records it."""
    bags = pytest.importorskip("tests.cli.test_ros_bags")
    (tmp_path / "arm.urdf").write_text(bags.ROBOT)
    bags.driving().write(bag)
    run = (
        f"run arm.urdf -t {bag} -o out.h5 --floating-base --ground --base-from tf:map:base"
        " --from 0.12 -q"
    )
    collide.ok(run, "--device", "cpu")
    result = collide.result("export out.h5 --to mcap -o x.mcap")
    assert result["left_out"] == []
    found = messages("x.mcap")["/collide/contacts"]
    times = arrays("out.h5")["time/time"].tolist()
    assert [time for time, _ in found] == [bags.START + round(t * 10**9) for t in times]
    assert found[0][0] == bags.START + 120 * bags.MILLI, "of the message in the bag"
    assert found[0][1].header.frame_id == "map"
    assert collide.result("view out.h5 --export x.html")["trajectory"] == bag
