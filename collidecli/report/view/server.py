"""The viser server of a view."""

from __future__ import annotations

import socket
from types import ModuleType
from typing import TYPE_CHECKING

from collidecli.errors import InputError, missing_extra
from collidecli.report.view.access import WILDCARDS, Access, guarded
from collidecli.report.view.framing import Frames
from collidecli.report.view.panel import Panel
from collidecli.report.view.stage import Stage
from collidecli.report.view.touch_list import TouchList

if TYPE_CHECKING:
    import viser

FIRST_PORT, PORTS = 8080, 100


class Served:
    """A running server. url: its address with the secret. failure: the exception that ended the drawing thread."""

    def __init__(self, server: viser.ViserServer, panel: Panel, host: str, token: str) -> None:
        self._server, self._panel = server, panel
        shown = "localhost" if host in WILDCARDS else host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{server.get_port()}/{token}"

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended the drawing thread."""
        return self._panel.player.failure

    def stop(self) -> None:
        """Stops the drawing thread and the server."""
        self._panel.player.stop()
        self._server.stop()


def require_viser() -> ModuleType:
    """The package viser. Raises InputError if it is not installed."""
    try:
        import viser
    except ImportError as error:
        raise missing_extra("viser", "view", "collide view") from error
    return viser


def serve(frames: Frames, touches: TouchList, title: str, up_axis: str, host: str, port: int | None) -> Served:
    """Starts a server. port: None is the first free port from 8080 on, 0 is any free port.

    Raises InputError without viser, and for a host or port that is not available.
    """
    access = Access(host)
    server = start_server(host, _free_port(host, port), access)
    panel = Panel(server, frames, Stage(server, frames, up_axis, touches.deepest), touches, title)
    panel.player.start()
    return Served(server, panel, host, access.token)


def start_server(host: str, port: int, access: Access | None = None) -> viser.ViserServer:
    """A viser server without messages on stdout, which is for results. Raises InputError for a used port.

    access: what it admits; None is a secret that nobody has.
    """
    import logging

    import rich

    package = require_viser()
    rich.get_console().quiet = True
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # no messages about closed connections
    with guarded(access or Access(host)) as served:
        server = package.ViserServer(host=host, port=port, verbose=False)
    if not served:
        server.stop()
        raise InputError(
            f"viser {package.__version__} starts its server in a manner that collide cannot protect",
            "collide view",
            "pip install 'viser==1.1.1'",
        )
    if port and server.get_port() != port:
        server.stop()
        raise _taken(host, port)
    return server


def _free_port(host: str, port: int | None) -> int:
    """A free port. Raises InputError for a used one, for which viser would silently use another port."""
    for tried in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        try:
            found = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise InputError(
                f"there is no host '{host}'", "--host", "give localhost, or an address of this machine"
            ) from error
        try:
            for family, kind, protocol, _, address in found:
                with socket.socket(family, kind, protocol) as tester:
                    tester.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    tester.bind(address)
        except PermissionError as error:
            raise InputError(f"port {tried} is not permitted", "--port", "give one above 1023") from error
        except OSError as error:
            if error.errno == 99:
                raise InputError(f"'{host}' is not an address of this machine", "--host", "leave it out") from error
            continue
        return tried
    raise _taken(host, port or FIRST_PORT)


def _taken(host: str, port: int) -> InputError:
    return InputError(f"port {port} of {host} is in use", "--port", "give another, or leave it out")
