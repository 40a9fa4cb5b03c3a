"""Which requests the viewer's server admits, over HTTP and websocket."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.report.view.server import Access, start_server

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
