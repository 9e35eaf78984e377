"""Ask a receiver whether it has the entry of a group, before the group is sent again. Sends requests.

Every page of the answer is read. Found is only an entry whose reference equals a value that was asked for and that is
made of the group; an answer that cannot be read whole proves nothing (docs/posted-time.md 4).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx

from syncengine.document.json_text import InvalidJson, Steps, decode_json
from syncengine.errors import TroubleKind
from syncengine.http.exchange import Reply, cause_of, retry_after
from syncengine.http.list_pages import (
    NoPage,
    Page,
    Repeats,
    RowTotal,
    address_below,
    first_parameters,
    next_url,
    same_place,
    sign_of_partial_list,
)
from syncengine.posted_time.sinks.contract import LONGEST_REST, Differs, Failed, Lacks, Took, reference_in_answer
from syncengine.posted_time.templates import RenderTrouble, Text, Variables, upwards
from syncengine.project.delivery_schema import Paging
from syncengine.templating.sandbox import with_nulls

LATE = 60.0
"""Seconds beyond the sink's time-out for which a receiver may still execute a request, or not list its entry yet."""
MOST_PAGES, MOST_SECONDS = 1_000, 300.0
"""The limits of one question: a filter that the receiver ignores would have us read all that it ever recorded."""
MISSING = 404


@dataclass(frozen=True, slots=True)
class Find:
    """The question for a group's entry. `base` returns the URL, and `path` is below it.

    `of_group` are the names in `query` whose values contain the group's id; without one, it is in the path.
    `after` is in seconds since the end of the last attempt.
    """

    base: Callable[[], str]
    method: str
    path: Text | None
    query: Mapping[str, Text]
    of_group: frozenset[str]
    entries: Text
    reference: Text
    external_id: Text | None
    after: float
    paging: Paging


Ask = Callable[[str, httpx.URL], Awaitable[Reply]]
"""A function that sends a request without a body, by its method and URL. It raises `httpx.HTTPError` when it fails."""


class _Unread(Exception):
    """Raised when an answer cannot be read, or not as a whole. The message is a clause that says why.

    `rest`: the seconds for which the receiver wants to be asked nothing.
    """

    def __init__(self, message: str, rest: float = 0.0) -> None:
        super().__init__(message)
        self.rest = rest


async def find_entry(
    find: Find, sink: str, ask: Ask, variables: Variables, trouble_on: frozenset[int]
) -> Took | Differs | Lacks | Failed:
    """Return `Took` if the receiver has exactly one entry of the group, `Differs` if it has more than one.

    Return `Failed` if that cannot be known now.
    """
    try:
        return await _found(find, ask, variables, trouble_on)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return unknown(sink, f"asking for it failed: {cause_of(error)}", is_down=True)
    except _Unread as why:
        return unknown(sink, f"asking for it failed: {why}", is_down=why.rest > 0, rest=why.rest)
    except (NoPage, RenderTrouble) as why:
        return unknown(sink, f"asking for it failed: {why}")


def unknown(sink: str, why: str, *, is_down: bool = False, rest: float = 0.0) -> Failed:
    """Return the answer for a group that a sink perhaps has, which is not known yet. `why` is for the operator."""
    return Failed(
        TroubleKind.UNREACHABLE if is_down else TroubleKind.UNKNOWN,
        f"{sink} may already have this time. It is looked up there before it is sent again.",
        is_sure=False,
        is_down=is_down,
        has_answered=rest > 0,
        detail=f"perhaps taken: {why}",
        rest=rest,
    )


async def _found(find: Find, ask: Ask, variables: Variables, trouble_on: frozenset[int]) -> Took | Differs | Lacks:
    base = httpx.URL(find.base())
    userinfo = base.userinfo  # kept apart, since a page's URL with credentials would not be below the base
    base = base.copy_with(userinfo=b"")
    url, wanted = _question(find, base, variables)
    first_url, deadline = url, time.monotonic() + MOST_SECONDS
    repeats, total, met = Repeats(), RowTotal(), set[object]()
    first: Page | None = None
    matches, read, readable, turn = list[dict[str, Any]](), 0, 0, 0
    while True:
        if (place := same_place(url)) in met:
            raise _Unread("its next page is one that has already been read")
        met.add(place)
        reply = await ask(find.method, url.copy_with(userinfo=userinfo))
        # A receiver that is asked for one entry by its path answers so if it has none.
        if reply.status == MISSING and first is None and MISSING not in trouble_on:
            return Lacks()
        page = _page(find, url, reply, variables, first)
        if trouble := repeats.trouble_of(page.items) or total.trouble_of(page):
            raise _Unread(trouble)
        try:
            answer, entries = with_nulls(page.answer), with_nulls(page.items)
        except RecursionError:
            raise _Unread("the answer is nested too deeply") from None
        for entry, plain in zip(entries, page.items, strict=True):
            own = _reference(find.reference, {**variables, "response": answer, "entry": entry})
            readable += own is not None
            if own is not None and own in wanted:
                matches.append({**variables, "response": page.answer, "entry": plain})
        first, read, turn = first or page, read + len(page.items), turn + 1
        following = next_url(find.paging, str(base), first_url, page, read, turn)
        if following is None:
            break
        if turn == MOST_PAGES or time.monotonic() > deadline:
            raise _Unread(f"the answer has more than {turn:,} pages: does the receiver ignore the query?")
        url = following
    if sign := sign_of_partial_list(find.paging, page, total, read, turn):
        raise _Unread(f"the list is longer than the {read:,} that were read, since {sign.words}: set {sign.setting}")
    if read and not readable:
        raise _Unread(f"`reference` finds nothing in the answer's entries ({find.reference.place})")
    if len(matches) > 1:
        return Differs(copies=len(matches))
    return Took(reference_in_answer(find.external_id, matches[0])) if matches else Lacks()


def _question(find: Find, base: httpx.URL, variables: Variables) -> tuple[httpx.URL, frozenset[str]]:
    """Return the URL of the first page, and the values of which an entry's reference must be one."""
    path = find.path.render(variables).strip() if find.path else ""
    if upwards(path) is not None or not path.isprintable():
        raise _Unread(f"the path would be {path}")
    whole = str(base).rstrip("/") + "/" + path.lstrip("/") if path else str(base)
    query = {name: text.render(variables) for name, text in find.query.items()}
    url = httpx.URL(address_below(str(base), whole)).copy_merge_params({**query, **first_parameters(find.paging)})
    if find.of_group:
        wanted = {query[name] for name in find.of_group}
    else:
        before, _, parameters = path.partition("?")
        wanted = {unquote(part) for part in before.split("/")} | set(httpx.QueryParams(parameters).values())
    if not (wanted := {value.strip() for value in wanted} - {""}):  # as the references in the answer are read
        raise _Unread("there is nothing to ask for: the value made of the group is empty")
    return url, frozenset(wanted)


def _page(find: Find, url: httpx.URL, reply: Reply, variables: Variables, first: Page | None) -> Page:
    """Return an answer with its entries. Raise `_Unread` if it is no list of them."""
    if not 200 <= reply.status < 300:
        rest = min(retry_after(reply.headers.get("retry-after"), time.time()) or 0.0, LONGEST_REST)
        raise _Unread(f"the answer has the status {reply.status}", rest)
    if reply.content is None:
        raise _Unread("the answer is too large")
    try:
        answer = decode_json(reply.content)
    except InvalidJson:
        raise _Unread("the answer is not JSON") from None
    items = find.entries.value({**variables, "response": answer, "status": reply.status})
    if items is None and first is not None and isinstance(answer, dict) and isinstance(first.answer, dict):
        items = [] if answer.keys() <= first.answer.keys() else None  # some leave the list out after the last entry
    if not isinstance(items, list):
        raise _Unread(f"`entries` finds no list in the answer ({find.entries.place})")
    return Page(url, answer, items, _steps_to(answer, items), reply)


def _steps_to(answer: Any, items: list[Any]) -> Steps:
    """Return the path of a list in an answer, beside which services write how long it is; empty if it is not there."""
    waiting: list[tuple[Steps, Any]] = [((), answer)]
    for steps, value in waiting:
        if value == items:
            return steps
        if isinstance(value, dict):
            waiting += [((*steps, name), inner) for name, inner in value.items()]
    return ()


def _reference(text: Text, scope: Variables) -> str | None:
    """Return the reference in an entry, or `None` if it has none that is text or a whole number."""
    try:
        value = text.value(scope)
    except RenderTrouble:
        return None
    is_one = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip() or None if is_one else None
