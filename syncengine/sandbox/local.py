"""Restrict the console and the control API to this machine and the sandbox's own pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from syncengine.sandbox.request import ApiError


def from_this_machine(request: Request) -> None:
    """Raise `ApiError` for a request from another machine, or from another site's page in a browser of this machine.

    The `Origin` header reveals such a page. After DNS rebinding, the site's name in the requested URL does.
    """
    if request.client is None or not _is_here(request.client.host):
        raise ApiError(403, "the console and the control API accept requests from this machine only")
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or not _is_here(request.url.hostname or ""):
        raise ApiError(403, "the console and the control API accept no requests from pages of other sites")


def endpoint(
    answer: Callable[[Request], Awaitable[Response]], refusal: Callable[[ApiError], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint for this machine only. `refusal` turns an `ApiError` into a response."""

    async def answered(request: Request) -> Response:
        try:
            from_this_machine(request)
            return await answer(request)
        except ApiError as error:
            return refusal(error)
        except ClientDisconnect:
            return Response()

    return answered


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
