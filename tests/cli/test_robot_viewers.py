"""Contacts in the viewers of roboticists: recordings of Rerun, and MCAP files for ROS 2 and Foxglove."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collidecli.report.view.framing import GAP, depth_colours
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import FRAMES, distances
from tests.support.contact_sets import made_up

CLOTH = Path(__file__).parents[2] / "samples" / "06_cloth" / "cloth.usda"


class Recorded:
    """A recording of Rerun as Rerun reads it."""

    def __init__(self, path: str) -> None:
        chunk = pytest.importorskip("rerun.chunk", reason="this version of rerun-sdk reads no recordings")
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


def test_shapes_contacts_and_depths_of_a_recording(ran, collide):
    """A ball of 0.3 m comes down by 1 cm a frame on another of 0.5 m; both have a contact within 2 cm."""
    found = recorded(collide, ran("out.h5", "--gap", "0.01"))
    ball = found.columns("/world_0/shapes/ball/shape")
    assert ball["frame"] == list(range(FRAMES))
    assert [time.total_seconds() for time in ball["time"]] == pytest.approx(0.01 * np.arange(FRAMES))
    np.testing.assert_allclose(np.array(ball["translation"])[:, 0, 2], 0.8 + distances(), atol=1e-6)
    assert "Ellipsoids3D:half_sizes" in found.fixed("/world_0/shapes/ball/shape")
    assert {"Transform3D:translation", "Ellipsoids3D:half_sizes"} <= found.fixed("/world_0/shapes/base/shape")
    touching, gap = (found.columns(f"/world_0/contacts/{name}") for name in ("touching", "gap"))
    assert [len(each) for each in touching["positions"]] == [int(d <= 0.0) for d in distances()]
    assert [len(each) for each in gap["positions"]] == [int(0.0 < d < 0.02) for d in distances()]
    deep = np.array([each[0] for each in touching["positions"] if each])
    height = 0.5 + 0.5 * distances()
    np.testing.assert_allclose(deep[:, 2], height[distances() <= 0.0], atol=1e-6)
    arrows = found.columns("/world_0/contacts/normals")
    np.testing.assert_allclose([np.sign(each[0]) for each in arrows["vectors"] if each], [[0, 0, 1]] * 11, atol=1e-6)
    depth = found.columns("/world_0/depth/base/ball")
    wanted = {n: max(0.0, -d) for n, d in enumerate(distances())}
    assert depth["frame"] == [0, *range(10, FRAMES)], "the frames of touch, those beside them, and the ends"
    assert np.ravel(depth["scalars"]) == pytest.approx([wanted[n] for n in depth["frame"]], abs=1e-6)
    colours = {tuple(c) for each in touching["colors"] for c in _rgb(each)}
    assert len(colours) == 9
    assert tuple(depth_colours(np.ones(1), 1.0)[0]) in colours
    assert {tuple(c) for each in gap["colors"] for c in _rgb(each)} == {GAP}


def _rgb(packed: list[int]) -> np.ndarray:
    return (np.array(packed, np.uint32).reshape(-1, 1) >> np.array([24, 16, 8], np.uint32)) & 255


def test_worlds_and_visual_meshes_of_a_recording(here, collide):
    ball = '<geom name="ball" type="sphere" size="0.3"/>'
    skin = '<geom type="box" size=".1 .1 .1" contype="0" conaffinity="0" name="skin"/>'
    Path("scene.xml").write_text(Path("scene.xml").read_text().replace(ball, ball + skin))
    collide.ok("run scene.xml -t motion.h5 --worlds 3 -o out.h5 --device cpu")
    found = recorded(collide, "out.h5", "--world", "0,2", "--frames", "5:9")
    assert {path[:8] for path in found.chunks if path.startswith("/world")} == {"/world_0", "/world_2"}
    skin = found.columns("/world_2/visuals/skin/shape")
    assert skin["frame"] == [5, 6, 7, 8]
    np.testing.assert_allclose(np.array(skin["translation"])[:, 0, 2], 0.8 + distances()[5:9], atol=1e-6)
    assert "Boxes3D:half_sizes" in found.fixed("/world_2/visuals/skin/shape")
    with ContactSet.open("out.h5") as contacts:
        assert "skin" not in contacts.shapes.path


def test_cloth_and_its_contacts_with_itself(tmp_path, collide):
    words = ("--self-contacts", "0.02", "--frames", "23:25", "--device", "cpu", "-o", "a.h5", "-q")
    collide.ok("run", str(CLOTH), *words)
    found = recorded(collide, "a.h5", "--scene", CLOTH)
    with ContactSet.open("a.h5") as contacts:
        start = contacts.groups["self_contacts"].cell_start()
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
    with ContactSet.open("a.h5") as contacts:
        (block,) = contacts.groups["hydro_faces"].blocks(names=("pressure", "vertices"), first=0, last=1)
        lengths, corner = block.groups["hydro_faces"].lists["vertices"]
    np.testing.assert_allclose(next(each for each in found["vertex_positions"] if each), corner, atol=1e-6)
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
    assert sorted(read) == sorted((topic, time) for topic, each in found.items() for time, _ in each)
    return found


def test_messages_of_contacts(ran, collide):
    result = collide.result("export", ran("out.h5", "--gap", "0.01"), "--to", "mcap", "-o", "x.mcap")
    assert result["left_out"] == ["clock of the recording: times are seconds from 0"]
    found = messages("x.mcap")
    assert sorted(found) == ["/collide/contacts", "/collide/markers"]
    for n, ((time, states), (_, markers)) in enumerate(zip(*(found[topic] for topic in sorted(found)), strict=True)):
        points, normals = markers.markers
        near, depth = distances()[n] < 0.02, -distances()[n]
        assert time == n * 10_000_000 == states.header.stamp.sec * 10**9 + states.header.stamp.nanosec
        assert states.header.frame_id == points.header.frame_id == "world"
        assert ([len(each.points) for each in (points, normals)], points.action) == ([near, 2 * near], 0 if near else 2)
        if near:
            (red,), (begin, end) = points.colors, ([p.x, p.y, p.z] for p in normals.points)
            assert (red.r > red.b) == (depth >= 0.0)
            np.testing.assert_allclose(begin, [0.0, 0.0, 0.5 - 0.5 * depth], atol=1e-6)
            np.testing.assert_allclose(np.subtract(end, begin), [0.0, 0.0, 0.05], atol=1e-6)
        assert len(states.states) == (depth >= 0.0)
        for state in states.states:
            assert (state.collision1_name, state.collision2_name) == ("base", "ball")
            assert state.depths == pytest.approx([depth], abs=1e-6)
            assert [each.z for each in state.contact_normals] == pytest.approx([1.0])
            assert [each.z for each in state.contact_positions] == pytest.approx([0.5 - 0.5 * depth])


def test_worlds_have_topics_of_their_own(here, collide):
    made_up(frames=4, worlds=3).write(here / "a.h5")
    collide.ok("export a.h5 --to mcap --world 0,2 -o x.mcap --frame-id map --frames 1:3")
    found = messages("x.mcap")
    assert sorted(found) == [f"/collide/world_{world}/{name}" for world in (0, 2) for name in ("contacts", "markers")]
    with ContactSet.open("a.h5") as contacts:
        held = contacts.cells(5, 6, ("distance", "point0", "point1", "shape0", "shape1")).columns
        path = contacts.shapes.path
    points = found["/collide/world_2/markers"][0][1].markers[0]
    middle = 0.5 * (held["point0"].astype(float) + held["point1"])
    np.testing.assert_allclose([(p.x, p.y, p.z) for p in points.points], middle)
    wanted: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one, other, distance in zip(*(held[name].tolist() for name in ("shape0", "shape1", "distance")), strict=True):
        if distance <= 0.0:
            wanted[path[one], path[other]].append(-distance)
    states = found["/collide/world_2/contacts"][0][1].states
    assert {(s.collision1_name, s.collision2_name): s.depths.tolist() for s in states} == wanted


def test_the_clock_of_the_bag(tmp_path, collide):
    bags = pytest.importorskip("tests.cli.test_ros_bags")
    (tmp_path / "arm.urdf").write_text(bags.ROBOT)
    bags.driving().write("drive.mcap")
    run = "run arm.urdf -t drive.mcap -o out.h5 --floating-base --ground --base-from tf:map:base --from 0.12 -q"
    collide.ok(run, "--device", "cpu")
    result = collide.result("export out.h5 --to mcap -o x.mcap")
    assert result["left_out"] == []
    found = messages("x.mcap")["/collide/contacts"]
    with ContactSet.open("out.h5") as contacts:
        assert [time for time, _ in found] == [bags.START + round(t * 10**9) for t in contacts.time.tolist()]
    assert found[0][0] == bags.START + 120 * bags.MILLI, "of the message in the bag"
    assert found[0][1].header.frame_id == "map"
    assert collide.result("view out.h5 --export x.html")["trajectory"] == "drive.mcap"
