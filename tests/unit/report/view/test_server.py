"""Who may read the viewer's server, and where its camera is."""

from __future__ import annotations

import http
import http.client
import json
import re
from collections.abc import Iterator

import numpy as np
import pytest

from collidecli import ModelBuilder
from collidecli.errors import InputError
from collidecli.report.view.framing import Look, extent_of
from collidecli.report.view.server import Access, start_server
from collidecli.report.view.stage import CONTACT_SIZE, SHAPE_SIZES, Player, Stage, Touch, touch_bar

pytest.importorskip("viser")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[int, str]]:
    """Port and token of a server with one point of a scene."""
    access = Access("127.0.0.1")
    server = start_server("127.0.0.1", 0, access)
    server.scene.add_point_cloud("/secret", np.zeros((1, 3)), (1, 2, 3))
    yield server.get_port(), access.token
    server.stop()


@pytest.mark.parametrize(
    ("path", "host", "origin", "status"),
    [
        ("/TOKEN", "127.0.0.1:PORT", None, 200),
        ("/TOKEN/", "localhost:PORT", None, 200),
        ("/TOKEN/?x=1", "localhost:PORT", "http://localhost:PORT", 200),
        ("/TOKEN", "localhost:9999", None, 200),  # a forwarded port
        ("/TOKEN/none", "localhost:PORT", None, 404),
        ("/", "localhost:PORT", None, 403),
        ("/TOKENx", "localhost:PORT", None, 403),
        ("//TOKEN", "localhost:PORT", None, 403),
        ("/index.html", "localhost:PORT", None, 403),
        ("/TOKEN", "evil.example:PORT", None, 403),
        ("/TOKEN", "localhost.evil.example", None, 403),
        ("/TOKEN", "localhost@evil.example", None, 403),
        ("/TOKEN", "", None, 403),
        ("/TOKEN", "[", None, 403),
        ("/TOKEN", "localhost:PORT", "http://evil.example", 403),
        ("/TOKEN", "localhost:PORT", "https://localhost:PORT", 403),
        ("/TOKEN", "localhost:PORT", "http://localhost:1", 403),
        ("/TOKEN", "localhost:PORT", "null", 403),
    ],
)
def test_pages(running, path, host, origin, status):
    port, token = running
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Host": host.replace("PORT", str(port))} | (
        {"Origin": origin.replace("PORT", str(port))} if origin else {}
    )
    connection.request("GET", path.replace("TOKEN", token), headers=headers)
    answer = connection.getresponse()
    assert answer.status == status
    if status == 200:
        assert b"<html" in answer.read()
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    connection.close()


@pytest.mark.parametrize(
    ("path", "origin", "admitted"),
    [
        ("/TOKEN", "http://127.0.0.1:PORT", True),
        ("/TOKEN/", "http://127.0.0.1:PORT", True),
        ("/TOKEN", "http://evil.example", False),
        ("/TOKEN", "http://localhost:PORT", False),  # another origin than that of the Host
        ("/TOKEN", None, False),
        ("/", "http://127.0.0.1:PORT", False),
        ("", "http://127.0.0.1:PORT", False),
        ("/other", "http://127.0.0.1:PORT", False),
    ],
)
def test_websockets(running, path, origin, admitted):
    import viser

    port, token = running
    url = f"ws://127.0.0.1:{port}{path.replace('TOKEN', token)}"
    origin = origin and origin.replace("PORT", str(port))

    def received() -> bytes:
        with client.connect(url, origin=origin, subprotocols=[f"viser-v{viser.__version__}"]) as socket:
            return socket.recv(timeout=30)

    if admitted:
        assert len(received()) > 16
        return
    with pytest.raises(exceptions.InvalidStatus) as told:
        received()
    assert told.value.response.status_code == 403


def test_every_token_is_new():
    tokens = {Access("localhost").token for _ in range(50)}
    assert len(tokens) == 50
    assert all(len(token) >= 32 for token in tokens)


def test_a_server_that_cannot_be_protected_is_not_started(monkeypatch):
    import viser

    class Unprotected:
        stopped = False

        def __init__(self, **options) -> None:
            self.options = json.dumps(options)

        def stop(self) -> None:
            Unprotected.stopped = True

    monkeypatch.setattr(viser, "ViserServer", Unprotected)
    with pytest.raises(InputError, match="cannot protect"):
        start_server("127.0.0.1", 0)
    assert Unprotected.stopped


SPEED = 2.0


class Walk:
    """Two balls, 1 m apart, over a floor at height 0.5, that move along x by SPEED a frame."""

    def __init__(self, speed: float = SPEED, frames: int = 11, radius: float = 0.1) -> None:
        builder = ModelBuilder()
        builder.add_ground_plane(0.5)
        builder.add_shape_box(-1, hx=50.0, hy=50.0, hz=0.1)
        for _ in range(2):
            builder.add_shape_sphere(builder.add_body(), radius=radius)
        self.model = builder.finalize()
        self.world_count, self.speed, self.end = 1, speed, frames
        self.number, self.time = np.arange(frames), np.arange(frames) / 10.0

    surface_scale, has_particles, has_self_contacts, has_faces = None, False, False, False

    def __len__(self) -> int:
        return len(self.number)

    def rows(self, world: int) -> np.ndarray:
        return np.arange(len(self.model.shapes))

    def ended(self, index: int, world: int) -> bool:
        return index >= self.end

    def world_name(self, world: int) -> str:
        return f"demo_{world}"

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        poses = self.model.shapes.pose.copy()
        poses[-2:, :3] = [(self.speed * index, side, 0.6) for side in (-0.5, 0.5)]
        return poses

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        at = np.array([[self.speed * index, -0.5, 0.5]])
        return {
            "shape0": np.array([0]), "shape1": np.array([2]), "distance": np.array([-0.01]),
            "normal": np.array([[0.0, 0.0, 1.0]]), "point0": at, "point1": at,
        }  # fmt: skip


@pytest.fixture
def server():
    running = start_server("127.0.0.1", 0)
    yield running
    running.stop()


@pytest.mark.parametrize("speed", [0.0, SPEED])
def test_the_moving_bodies_fill_the_window_and_not_the_floor(speed):
    extent = extent_of(Walk(speed), 0, 2)
    np.testing.assert_allclose(extent.center, (0.0, 0.0, 0.6), atol=1e-9)
    assert 0.5 <= extent.radius <= 0.8, "the floor of 100 m and the walk of 20 m are no part of it"
    assert (extent.floor, extent.plane, extent.travels) == (0.5, True, speed > 0.0)


def test_the_view_follows(server):
    frames = Walk()
    stage = Stage(server, frames, "Z", 0.01)
    places = []
    for index in (0, 7):
        for follow in (True, False):
            stage.show(index, 0, Look(follow=follow))
            ball = next(group for group in stage._groups if 2 in group.group.rows)
            places.append(float(ball._node.batched_positions[0, 0]))
            grid = server.scene.get_handle_by_name("/floor").position
            assert grid[2] == pytest.approx(0.5, abs=0.01)
            shift = index * SPEED if follow else 0.0
            assert (grid[0] + shift) / stage.cell == pytest.approx(round((grid[0] + shift) / stage.cell)), "in place"
    np.testing.assert_allclose(places, (0.0, 0.0, 0.0, 7 * SPEED), atol=1e-6)


def test_nothing_is_drawn_after_the_end_of_a_demonstration(server):
    frames = Walk()
    frames.end = 7
    stage = Stage(server, frames, "Z", 0.01)
    shown = []
    for index in (6, 7, 3):
        stage.show(index, 0, Look())
        shown.append({group.visible for group in stage._groups})
    assert shown == [{True}, {False}, {True}]


def test_playback_stops_at_the_end_of_a_demonstration(server):
    frames = Walk()
    frames.end = 7
    player = Player(frames, Stage(server, frames, "Z", 0.01), lambda index: None)
    player.index, player.playing = 4, True
    player._step(4, 0, 60.0)
    assert (player.index, player.playing) == (6, False)
    player.play(True)
    assert player.index == 0
    player.playing = True
    player._step(8, 0, 60.0)
    assert player.index == 10, "a frame after the end was chosen with the slider"


def test_contacts_grow_with_the_distance_of_the_camera(server):
    stage = Stage(server, Walk(), "Z", 0.01)
    for distance in (1.0, 0.1, 7.0):
        stage.show(0, 0, Look(distance=distance))
        assert stage._points.point_size == pytest.approx(0.2 * CONTACT_SIZE * stage.extent.radius * distance)
        arrow = stage._arrows.points[0]
        assert np.linalg.norm(arrow[1] - arrow[0]) == pytest.approx(
            0.75 * CONTACT_SIZE * stage.extent.radius * distance, rel=1e-5
        )


def test_contacts_are_small_where_small_shapes_are_far_apart(server):
    assert Stage(server, Walk(radius=0.01), "Z", 0.01).unit == pytest.approx(SHAPE_SIZES * 0.01)


def test_the_camera_of_a_pair(server):
    stage = Stage(server, Walk(), "Z", 0.01)
    center, distance = stage.focus((0, 2), 7, 0, Look()) or (np.zeros(3), 0.0)
    np.testing.assert_allclose(center, (0.0, -0.5, 0.5), atol=1e-9)
    assert 0.1 < distance < stage.distance
    far, _ = stage.focus((0, 2), 7, 0, Look(follow=False)) or (np.zeros(3), 0.0)
    np.testing.assert_allclose(far, (7 * SPEED, -0.5, 0.5), atol=1e-9)
    assert stage.focus((0, 3), 7, 0, Look()) is None


def test_marks_of_touches():
    bar = touch_bar([Touch(2, 4, 3, -0.1), Touch(8, 8, 8, -0.2)], 10, 5)
    marks = re.findall(r'class="(\w+)" x="([\d.]+)%" width="([\d.]+)%"', bar)
    assert [(name, float(x), float(width)) for name, x, width in marks] == [
        ("touch", 20.0, 30.0),
        ("touch", 80.0, 10.0),
        ("deepest", 30.0, 10.0),
        ("deepest", 80.0, 10.0),
        ("now", 55.0, 0.4),
    ]
