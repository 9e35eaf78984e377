"""The sandbox's insides are for this machine only, and for its own pages: a request → nothing, or ApiError."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from syncengine.sandbox.request import ApiError


def from_this_machine(request: Request) -> None:
    """Refuse other machines, and pages of other sites in a browser of this one.

    A page's origin gives it away; where its site's name was made to lead here (DNS rebinding), that name does.
    """
    if request.client is None or not _is_here(request.client.host):
        raise ApiError(403, "the console and the control API answer this machine only")
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or not _is_here(request.url.hostname or ""):
        raise ApiError(403, "the console and the control API answer no other site's pages")


def endpoint(
    answer: Callable[[Request], Awaitable[Response]], refusal: Callable[[ApiError], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for this machine only; `refusal` answers others, and errors of `answer`."""

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
