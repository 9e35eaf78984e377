"""HTTP on loopback, without certificates: to load them costs a hundred times as much as a call."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx


def client(**options: Any) -> httpx.Client:
    """A client for `http://` on loopback."""
    return httpx.Client(verify=False, trust_env=False, **options)


@cache
def _single() -> httpx.Client:
    return client(limits=httpx.Limits(max_keepalive_connections=0))


def get(url: httpx.URL | str, **options: Any) -> httpx.Response:
    """GET over a connection of its own."""
    return _single().get(url, **options)


def post(url: httpx.URL | str, **options: Any) -> httpx.Response:
    """POST over a connection of its own."""
    return _single().post(url, **options)
