"""Access to the viewer's server: a secret in the URL, and checks of the headers Host and Origin of every request."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from websockets.http11 import Request, Response

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
