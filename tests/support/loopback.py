"""HTTP on loopback, without certificates: to load them costs a hundred times as much as a call."""

from functools import cache
from typing import Any

import httpx

PATIENCE = 30.0
"""Seconds that a server may take on a machine that has much else to do."""


def client(**options: Any) -> httpx.Client:
    return httpx.Client(**{"verify": False, "trust_env": False, "timeout": PATIENCE, **options})


@cache
def _single() -> httpx.Client:
    return client(limits=httpx.Limits(max_keepalive_connections=0))


def get(url: httpx.URL | str, **options: Any) -> httpx.Response:
    """GET over a connection of its own."""
    return _single().get(url, **options)


def post(url: httpx.URL | str, **options: Any) -> httpx.Response:
    """POST over a connection of its own."""
    return _single().post(url, **options)
