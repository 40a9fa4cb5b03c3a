"""The viser server of a view."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from ipaddress import ip_address
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from collidecli.errors import InputError, missing_extra
from collidecli.report.tables import length, with_prefix
from collidecli.report.view.framing import GAP, PICKED, SELF, Frames, css, depth_gradient
from collidecli.report.view.stage import (
    MAX_LISTED,
    Player,
    Stage,
    Touch,
    TouchingPair,
    TouchList,
    pair_words,
    touch_bar,
    touch_label,
)
from collidecli.scene.text_format import plural

if TYPE_CHECKING:
    import viser
    from websockets.http11 import Request, Response


# Access to the viewer's server: a secret in the URL, and checks of the headers Host and Origin of every request.

WILDCARDS = ("", "0.0.0.0", "::")
"""Hosts that stand for every address of the machine."""
HEADERS = {
    "Referrer-Policy": "no-referrer",  # the URL holds the secret
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_REPLACING = threading.Lock()


class Access:
    """Who may use a server: requests whose path begins with /`token`, from the server's own pages.

    A page of another origin cannot read the token, its requests have another Origin, and a foreign name that is made
    to resolve to this machine (DNS rebinding) is another Host. The port of Host is not checked: it differs if the
    port is forwarded. Host may be an address, which does not need to be resolved.
    """

    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._names = {"localhost", host.lower()}
        if host in WILDCARDS:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def admitted(self, request: Request) -> Request | None:
        """The request without the token in its path; None if it is refused."""
        path, question, query = request.path.partition("?")
        _, token, *rest = [*path.split("/", 2), ""][:3]
        if not (self._same_origin(request) and secrets.compare_digest(token.encode(), self.token.encode())):
            return None
        return replace(request, path="/" + "".join(rest) + question + query)

    def _same_origin(self, request: Request) -> bool:
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._known(hosts[0]):
            return False
        # Browsers send no Origin when a page is opened, and always send one when a websocket is.
        if not origins:
            return "Upgrade" not in request.headers
        return origins == [f"http://{hosts[0]}"]

    def _known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@contextmanager
def guarded(access: Access) -> Iterator[list[Any]]:
    """Makes the servers that are started inside refuse other requests with 403. Yields the list of those servers.

    viser has no option for this, so `websockets.asyncio.server.serve`, which it calls, is replaced meanwhile. A caller
    finds an empty list if viser no longer calls it.
    """
    import http

    from websockets.asyncio import server as package

    original, served = package.serve, []

    def serve(*arguments: Any, process_request: Callable[..., Response | None] | None = None, **options: Any) -> Any:
        def checked(connection: Any, request: Request) -> Response | None:
            inner = access.admitted(request)
            if inner is None:
                return connection.respond(http.HTTPStatus.FORBIDDEN, "Open the URL that collide view printed.\n")
            response = None if process_request is None else process_request(connection, inner)
            if response is not None:
                response.headers.update(HEADERS)
            return response

        served.append(original(*arguments, process_request=checked, **options))
        return served[-1]

    with _REPLACING:
        package.serve = serve
        try:
            yield served
        finally:
            package.serve = original


# The control panel of the viewer: time, touching pairs and their intervals, drawing options, legend.

EVERY: str = "all pairs"
SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")
DISTANCE_STEP, LEAST_DISTANCE = 1.1, 1e-4
SMALL = "font-size: 0.85em; line-height: 1.45; padding: 0 0.75em"


class Panel:
    """The controls of the viewer; every change is passed on to the player."""

    def __init__(self, server: viser.ViserServer, frames: Frames, stage: Stage, touches: TouchList, title: str) -> None:
        self._server, self._gui, self._frames, self._stage, self._touches = server, server.gui, frames, stage, touches
        self.player = Player(frames, stage, self._shown)
        self._pairs: dict[str, TouchingPair] = {}
        self._pair: TouchingPair | None = None
        self._gui.set_panel_label(title)
        self._gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        self._status = self._gui.add_html("")
        self._add_time()
        with self._gui.add_folder("Touching pairs"):
            self._add_pairs()
        with self._gui.add_folder("Drawn"):
            self._add_look()
        self._gui.add_html(legend(touches.deepest, frames))
        self._list_pairs()
        for pair in touches.of(0)[:1]:
            self.player.go(pair.deepest.deepest)
        stage.clicked = self._shape_clicked
        server.on_client_connect(self._connected)

    def _add_time(self) -> None:
        last = len(self._frames) - 1
        self._slider = self._gui.add_slider("Frame", 0, max(1, last), 1, 0, disabled=last < 1)
        self._marks = self._gui.add_html("", visible=False)
        self._steps = self._gui.add_button_group("Step", ("|<", "<", ">", ">|"))
        self._play = self._gui.add_button("Play", disabled=last < 1)
        self._speed = self._gui.add_dropdown("Speed", SPEEDS, initial_value="1x")
        _on_user(self._slider.on_update, lambda: self._go(self._slider.value))
        _on_user(self._speed.on_update, lambda: setattr(self.player, "speed", float(self._speed.value[:-1])))
        self._steps.on_click(lambda _: self._stepped(self._steps.value))
        self._play.on_click(lambda _: self.player.play(not self.player.playing))
        worlds = self._frames.world_count
        if 1 < worlds <= MAX_LISTED:
            names = _texts(*(self._frames.world_name(world) for world in range(worlds)))
            choice = self._gui.add_dropdown("World", names)
            _on_user(choice.on_update, lambda: self._enter(names.index(choice.value)))
        elif worlds > 1:
            number = self._gui.add_number("World", 0, min=0, max=worlds - 1, step=1)
            _on_user(number.on_update, lambda: self._enter(int(number.value)))

    def _add_pairs(self) -> None:
        self._find = self._gui.add_text("Find", "", hint="Part of a shape's path, or a pattern. Or click on a shape.")
        self._choice = self._gui.add_dropdown("Pair", _texts(EVERY))
        self._summary = self._gui.add_html("")
        self._event = self._gui.add_dropdown("Touch", _texts("-"), visible=False)
        self._jump = self._gui.add_button_group("Go to", ("begin", "deepest", "end"), visible=False)
        self._only = self._gui.add_checkbox("Only its contacts", False, visible=False)
        _on_user(self._find.on_update, self._list_pairs)
        _on_user(self._choice.on_update, self._picked)
        _on_user(self._event.on_update, lambda: self._go_to("begin"))
        self._jump.on_click(lambda _: self._go_to(self._jump.value))
        _on_user(self._only.on_update, lambda: self.player.set_look(only_pair=self._only.value))

    def _add_look(self) -> None:
        look = self.player.look
        controls = {
            "opacity": self._gui.add_slider("Shapes", 0.0, 1.0, 0.05, look.opacity, hint="Opacity of shapes."),
            "size": self._gui.add_slider("Size", 0.2, 5.0, 0.1, look.size, hint="Size of points and arrows."),
            "arrows": self._gui.add_checkbox("Normals", look.arrows),
            "gaps": self._gui.add_checkbox("Contacts in the gap", look.gaps),
        }
        if self._stage.surfaces is not None:
            controls["surfaces"] = self._gui.add_checkbox("Surfaces", look.surfaces)
        if self._stage.particles is not None:
            controls["particles"] = self._gui.add_checkbox("Particles", look.particles)
        if self._stage.self_contacts is not None:
            controls["self_contacts"] = self._gui.add_checkbox("Self-contacts", look.self_contacts)
        if self._stage.follows:
            controls["follow"] = self._gui.add_checkbox("Follow", look.follow, hint="Move with the moving shapes.")

        def bind(name: str, control) -> None:
            _on_user(control.on_update, lambda: self.player.set_look(**{name: control.value}))

        for name, control in controls.items():
            bind(name, control)

    def _connected(self, client: viser.ClientHandle) -> None:
        """Keeps the contacts of one size on the screen; with several clients, on the screen of the last to move."""

        @client.camera.on_update
        def _(camera: viser.CameraHandle) -> None:
            away = float(np.linalg.norm(camera.position - camera.look_at)) / self._stage.distance
            self._set_distance(away)

    def _set_distance(self, away: float) -> None:
        """Scales the contacts to a distance of the camera, relative to its first one; in steps, as each is drawn."""
        distance = DISTANCE_STEP ** round(np.log(max(away, LEAST_DISTANCE)) / np.log(DISTANCE_STEP))
        if distance != self.player.look.distance:
            self.player.set_look(distance=distance)

    def _focus(self, touch: Touch) -> None:
        """Moves the cameras to the contacts of the selected pair in the deepest frame of an interval."""
        assert self._pair is not None
        player = self.player
        found = self._stage.focus(self._pair.shapes, touch.deepest, player.world, player.look)
        if found is None:
            return
        center, distance = found
        self._set_distance(distance / self._stage.distance)
        for client in self._server.get_clients().values():
            with client.atomic():
                away = client.camera.position - client.camera.look_at
                client.camera.position = center + distance * away / (np.linalg.norm(away) or 1.0)
                client.camera.look_at = center

    def _go(self, index: int) -> None:
        self.player.playing = False
        self.player.go(index)

    def _stepped(self, sign: str) -> None:
        last = len(self._frames) - 1
        self._go({"|<": 0, "<": self.player.index - 1, ">": self.player.index + 1, ">|": last}[sign])

    def _enter(self, world: int) -> None:
        self.player.go(world=world)
        self._list_pairs()

    def _list_pairs(self) -> None:
        found = self._touches.of(self.player.world, self._find.value.strip())
        self._pairs = {pair.label: pair for pair in found[:MAX_LISTED]}
        self._choice.options = (EVERY, *self._pairs)
        self._choice.value = EVERY
        more = f"The {MAX_LISTED} deepest of {plural(len(found), 'pair')}." if len(found) > MAX_LISTED else ""
        summary = more or (f"{plural(len(found), 'pair')}." if found else "No pair of shapes touches.")
        self._pick(None)
        self._summary.content = _small(summary)

    def _picked(self) -> None:
        self._pick(self._pairs.get(self._choice.value))
        if self._pair is not None:
            self._focus(self._pair.deepest)
            self._go_to("begin")

    def _pick(self, pair: TouchingPair | None) -> None:
        self._pair = pair
        for control in (self._event, self._jump, self._only, self._marks):
            control.visible = pair is not None
        self.player.set_look(pair=None if pair is None else pair.shapes)
        if pair is None:
            self._summary.content = _small(f"{plural(len(self._pairs), 'pair')}.")
            return
        self._event.options = [touch_label(n, touch, self._frames.number) for n, touch in enumerate(pair.touches, 1)]
        self._event.value = self._event.options[0]
        names = "".join(
            f'<div><span style="{_swatch(css(colour))}"></span>{escape(path)}</div>'
            for path, colour in zip(pair.paths, PICKED, strict=True)
        )
        self._summary.content = f'<div style="{SMALL}">{names}{escape(pair_words(pair))}</div>'

    def _touch(self) -> Touch | None:
        if self._pair is None or self._event.value not in self._event.options:
            return None
        return self._pair.touches[self._event.options.index(self._event.value)]

    def _go_to(self, what: str) -> None:
        touch = self._touch()
        if touch is not None:
            self._go({"begin": touch.first, "deepest": touch.deepest, "end": touch.last}[what])

    def _shape_clicked(self, path: str) -> None:
        self._find.value = path
        self._list_pairs()

    def _shown(self, index: int) -> None:
        player, frames = self.player, self._frames
        if index == player.index:  # else a newer frame is requested, and the slider would jump back
            self._slider.value = index
        if self._pair is not None:
            bar = touch_bar(self._pair.touches, len(frames), index)
            self._marks.content = f'<div style="{SMALL}">{bar}</div>'
        label = "Pause" if player.playing else "Play"
        if self._play.label != label:
            self._play.label = label
        touching, near = self._stage.seen
        parts = [f"<b>frame {int(frames.number[index])}</b> of {int(frames.number[-1])}"]
        parts.append(f"{frames.time[index]:.4g} s")
        if frames.ended(index, player.world):
            parts.append(escape(ended_words(frames.world_name(player.world))))
        else:
            parts.append(f"{plural(touching, 'contact')} touching" + (f", {near} in the gap" if near else ""))
            if self._stage.surfaces is not None:
                parts.append(plural(self._stage.surface_count, "surface"))
            if self._stage.self_contacts is not None:
                parts.append(plural(self._stage.self_contacts.count, "self-contact"))
        self._status.content = f'<div id="collide-status" style="{SMALL}; font-size: 0.95em">{" · ".join(parts)}</div>'


def ended_words(name: str) -> str:
    """Status of a frame outside the demonstrations of a world."""
    return f"ended: {name} has no recorded frame here"


def legend(deepest: float, frames: Frames) -> str:
    """Legend of the colours, as HTML."""
    surfaces = frames.surface_scale
    found = f'<div style="{SMALL}; padding-bottom: 0.75em">{_gradient("depth", length(deepest))}'
    if surfaces is not None:
        found += _gradient(f"{surfaces.quantity} of surfaces", with_prefix(surfaces.greatest, surfaces.unit))
    found += f'<div><span style="{_swatch(css(GAP))}"></span>in the gap: not touching</div>'
    if frames.has_self_contacts:
        found += f'<div><span style="{_swatch(css(SELF))}"></span>self-contact of cloths or soft bodies</div>'
    return found + "</div>"


def _gradient(name: str, end: str) -> str:
    bar = f"height: 0.7em; border-radius: 0.2em; background: {depth_gradient()}"
    ends = f"<span>0</span><span>{name}</span><span>{end}</span>"
    return f'<div style="{bar}"></div><div style="display: flex; justify-content: space-between">{ends}</div>'


def _swatch(colour: str) -> str:
    round_ = "display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; margin-right: 0.4em"
    return f"{round_}; background: {colour}"


def _texts(*options: str) -> Sequence[str]:
    """Options typed as Sequence[str], so that a type checker allows other values later."""
    return options


def _small(text: str) -> str:
    return f'<div style="{SMALL}">{escape(text)}</div>'


def _on_user(register: Callable, action: Callable[[], None]) -> None:
    """Calls `action` if a client changed the control, and not if this program did."""

    @register
    def _(event: viser.GuiEvent) -> None:
        if event.client_id is not None:
            action()


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
