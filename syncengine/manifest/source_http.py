"""An HTTP service → the items of its list, page by page. Asks the service.

Nothing is sent anywhere but below the source's own URL: no redirects, no other host, no way up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from syncengine.manifest.records import SourceTrouble

MAX_PAGES = 10_000
MAX_BYTES = 64 * 1024 * 1024
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `items` and `next` are paths of names into the answer; `page` is a parameter that counts."""

    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    page: str | None = None
    first: int = 1


def http_rows(
    name: str, url: str, headers: Mapping[str, str], timeout: float, question: Question
) -> Iterator[tuple[int, Any]]:
    """The items of all pages, numbered from 1."""
    transport = httpx.HTTPTransport(retries=ATTEMPTS - 1)
    with httpx.Client(timeout=timeout, follow_redirects=False, transport=transport, headers=dict(headers)) as client:
        number = 0
        for items in _pages(client, name, url.rstrip("/"), question):
            for item in items:
                number += 1
                yield number, item


def _pages(client: httpx.Client, name: str, base: str, question: Question) -> Iterator[list[Any]]:
    address: str | None = _below(base, question.path, name)
    page = question.first
    for turn in range(MAX_PAGES):
        if address is None:
            return
        counting = {question.page: str(page + turn)} if question.page else {}
        query = {**question.query, **counting} if turn == 0 or question.page else {}
        answer = _answer(client, name, address, query)
        items = _at(answer, question.items, name)
        if not isinstance(items, list):
            raise SourceTrouble(f"{name}: the answer holds no list{_where(question.items)}")
        yield items
        if question.page:
            if not items:
                return
        else:
            address = _next(answer, question, base, address, name)
    raise SourceTrouble(f"{name}: more than {MAX_PAGES:,} pages")


def _next(answer: Any, question: Question, base: str, address: str, name: str) -> str | None:
    if not question.next:
        return None
    found: Any = answer
    for step in question.next:
        found = found.get(step) if isinstance(found, dict) else None
    if not found:
        return None
    if not isinstance(found, str):
        raise SourceTrouble(f"{name}: the next page{_where(question.next)} is no URL")
    following = urljoin(address, found)
    if following == address:
        raise SourceTrouble(f"{name}: a page names itself as the next")
    return _checked(base, following, name)


def _below(base: str, path: str, name: str) -> str:
    if not path.isprintable() or "://" in path.partition("?")[0] or path.startswith("//") or "\\" in path:
        raise SourceTrouble(f"{name}: the path is not one below the source's URL")
    return _checked(base, f"{base}/{path.lstrip('/')}" if path else base, name)


def _checked(base: str, address: str, name: str) -> str:
    """Still the same service, below the same path."""
    try:
        ours, theirs = urlsplit(base), urlsplit(address)
        same = (ours.scheme, ours.hostname, ours.port) == (theirs.scheme, theirs.hostname, theirs.port)
    except ValueError:
        same = False
    segments = theirs.path.replace("%2e", ".").replace("%2E", ".").split("/") if same else [".."]
    if ".." in segments or "@" in theirs.netloc or not (theirs.path + "/").startswith(ours.path.rstrip("/") + "/"):
        raise SourceTrouble(f"{name}: the address leads out of the source's URL")
    return address


def _answer(client: httpx.Client, name: str, address: str, query: Mapping[str, str]) -> Any:
    shown = urlsplit(address).path
    content = _content(client, name, address, query, shown)
    try:
        return json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise SourceTrouble(f"{name}: {shown} did not answer with JSON") from None


def _content(client: httpx.Client, name: str, address: str, query: Mapping[str, str], shown: str) -> bytes:
    for attempt in range(ATTEMPTS):
        try:
            with client.stream("GET", address, params=dict(query) or None) as response:
                if response.status_code >= 500 and attempt < ATTEMPTS - 1:
                    continue
                if not response.is_success:
                    raise SourceTrouble(f"{name}: {shown} answered {response.status_code}")
                return _bounded(response, name, shown)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if attempt == ATTEMPTS - 1:
                raise SourceTrouble(f"{name}: {shown} cannot be read: {type(error).__name__}") from None
    raise SourceTrouble(f"{name}: {shown} cannot be read")


def _bounded(response: httpx.Response, name: str, shown: str) -> bytes:
    found = bytearray()
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > MAX_BYTES:
            raise SourceTrouble(f"{name}: {shown} answered with more than {MAX_BYTES // 1024 // 1024} MB")
    return bytes(found)


def _at(answer: Any, steps: tuple[str, ...], name: str) -> Any:
    for step in steps:
        if not isinstance(answer, dict) or step not in answer:
            raise SourceTrouble(f"{name}: the answer has no `{step}`")
        answer = answer[step]
    return answer


def _where(steps: Callable[..., Any] | tuple[str, ...]) -> str:
    return f" at `{'.'.join(steps)}`" if isinstance(steps, tuple) and steps else ""
