"""The sandbox's insides are for this machine only: a request → nothing, or Refused."""

from __future__ import annotations

from ipaddress import ip_address

from starlette.requests import Request

from syncengine.sandbox.asked import Refused


def from_this_machine(request: Request) -> None:
    if request.client is None or not ip_address(request.client.host).is_loopback:
        raise Refused(403, "the console and the control API answer this machine only")
