"""Pages of a list → the URL of the next page, and signs that the list is longer than what was read, or changed. Pure.

Manifests read lists by it, and sinks that are asked for an entry.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import httpx

from syncengine.content import sha256_of
from syncengine.document.json_text import Steps, steps_of, value_at
from syncengine.http.exchange import PORTS, Reply, tidy
from syncengine.project.delivery_schema import Paging

NEXT = frozenset({"next", "nextoffset", "odatanextlink"}) | {
    f"next{what}{how}" for what in ("", "page", "records", "results") for how in ("", "href", "link", "uri", "url")
}
TOKENS = frozenset("nextpagetoken nexttoken nextcursor continuationtoken".split())  # noqa: SIM905 - words
TRUE_IF_MORE = frozenset({"more", "hasnext", "hasnextpage", "istruncated", "moreitemsincollection", "morerecords"}) | {
    f"hasmore{what}" for what in ("", "items", "pages", "records", "results")
}
FALSE_IF_MORE = frozenset({"islast", "islastpage", "last", "lastpage"})
TOTALS = frozenset(
    {"odatacount", "recordsfiltered", "wptotal"}
    | {f"total{of}" for of in ("", "count", "elements", "entries", "items", "records", "results", "size")}
)
PAGES = frozenset({"lastpage", "pagecount", "pages", "totalpages", "wptotalpages"})
SIGNS = {
    "the URL, the token or the number of the next page": NEXT,
    "a token for the next page": TOKENS,
    "true": TRUE_IF_MORE,
    "false": FALSE_IF_MORE,
    "a number above that of the rows read": TOTALS,
    "a number above that of the pages read": PAGES,
}
"""Values by which services tell of more rows, and the names of their fields in small letters without punctuation."""
HOLDERS = frozenset(
    "additionaldata data info links meta metadata page pageinfo pager pagination paginator paging responsemetadata"  # noqa: SIM905 - words
    " resultinfo".split()
)
"""Names of objects that hold such fields."""
KEYS = ("id", "_id", "uuid", "guid", "key", "sys_id")
"""Names of fields that identify a row, in small letters, if their values differ on a page."""
URLS = ("href", "url", "uri", "link")
AFTER = ("after", "cursor", "token")
"""Names of fields, in an object about the next page, with its URL or with a token for it."""
PUNCTUATION = re.compile(r"[^a-z]+")
PARTIAL_CONTENT = 206
LONGEST_COUNT = 19
"""The number of digits from which on a text is no number of rows."""

DECODED = 3
"""The number of times that programs on the way are assumed to percent-decode a path."""

COUNTED = "`paging: {page: PARAMETER}` or `paging: {offset: PARAMETER}`"


@dataclass(frozen=True, slots=True)
class Page:
    """One answer: its URL, its JSON, its items, their path in it, and the reply as it came."""

    url: httpx.URL
    answer: Any
    items: list[Any]
    steps: Steps
    reply: Reply

    @property
    def size(self) -> int:
        """The number of bytes of the answer."""
        return len(self.reply.content or b"")

    @property
    def link(self) -> str | None:
        return next_link(self.reply.headers)


def next_link(headers: Mapping[str, str]) -> str | None:
    """Return the URL of the next page in the header Link (RFC 8288), if any."""
    return linked(headers).get("next")


def linked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the URLs in the header Link by their relations, in small letters: `next`, `last` and others."""
    links = httpx.Response(200, headers={"link": headers.get("link", "")}).links
    return {name: link["url"] for relations, link in links.items() for name in (relations or "").lower().split()}


class Sign(NamedTuple):
    """A sign that a list is longer than what was read: a clause that names it, and the setting that reads all."""

    words: str
    setting: str


class NoPage(Exception):
    """Raised when the next page of a list has no URL that may be requested. The message is a clause that says why."""


def first_parameters(paging: Paging) -> dict[str, str]:
    """Return the query parameters of the first page, beside those of the query itself."""
    found = dict[str, str]()
    if paging.page:
        found[paging.page] = str(1 if paging.first is None else paging.first)
    if paging.offset:
        found[paging.offset] = str(paging.first or 0)
    if paging.limit:
        found[paging.limit] = str(paging.size)
    return found


def next_url(paging: Paging, base: str, first: httpx.URL, page: Page, read: int, turn: int) -> httpx.URL | None:
    """Return the URL of the page that follows `page`, or `None` at the end of the list.

    `first` is the URL of the first page; `read` rows on `turn` pages are read. Raise `NoPage` if there is no such URL,
    or it is not below `base`.
    """
    if parameter := paging.page or paging.offset:
        start = paging.first if paging.first is not None else 1 if paging.page else 0
        number = start + (turn if paging.page else read)
        return first.copy_merge_params({parameter: str(number)}) if page.items else None
    if paging.cursor:
        token = value_at(page.answer, at := steps_of(paging.at), None)
        if token is None or token is False or token == "":
            return None
        if not isinstance(token, str | int):
            raise NoPage(f"the value{at_path(at)} is not a text or number to get the next page by")
        return first.copy_merge_params({paging.cursor: str(token)})
    path = steps_of(paging.next)
    address = page.link if paging.link else value_at(page.answer, path, None) if path else None
    if not address:
        return None
    if not isinstance(address, str):
        raise NoPage(f"the next page{at_path(path)} is not a URL")
    following = httpx.URL(address_below(base, address.strip(), str(page.url)))
    return None if same_place(following) == same_place(page.url) else following


def address_below(base: str, address: str, page: str = "") -> str:
    """Return an address, which may be relative to a page's.

    Raise `NoPage` unless it belongs to the service of `base`, below its path.
    """
    try:
        address = urljoin(page, address)
        ours, theirs = urlsplit(base), urlsplit(address)
        same = origin(base) == origin(address)
        httpx.URL(address)
    except (ValueError, httpx.InvalidURL):
        same = False
    is_below = same and (theirs.path + "/").startswith(ours.path.rstrip("/") + "/")
    if not is_below or _goes_up(theirs.path) or "@" in theirs.netloc:
        raise NoPage("the address is outside the source's URL")
    return address


def at_path(steps: Steps) -> str:
    """Return the end of a message about the value at a path, or nothing for the whole answer."""
    return f" at `{'.'.join(steps)}`" if steps else ""


def _goes_up(path: str) -> bool:
    """Return whether a path has a `..` for any reader, however often it is decoded, with either slash or parameters."""
    for _ in range(DECODED):
        path = unquote(path)
    return any(part.partition(";")[0] == ".." for part in path.replace("\\", "/").split("/"))


def sign_of_partial_list(paging: Paging, last: Page, total: RowTotal, read: int, pages: int) -> Sign | None:
    """Return the sign of more than the `read` rows on `pages`, as of a list whose pages are not followed."""
    if more := total.above(read):
        return Sign(more, COUNTED)
    if paging.page or paging.offset:  # their last page is empty, whatever else it says
        return None
    is_part = last.reply.status == PARTIAL_CONTENT and not (paging.next or paging.cursor or paging.link)
    of_status = Sign(f"its status is {PARTIAL_CONTENT}, a part of the content", COUNTED) if is_part else None
    return next(signs_of_more(last, pages), of_status)


def same_place(url: httpx.URL | str) -> Hashable:
    """Return what distinguishes a URL from those of other pages, however it is written."""
    address = httpx.URL(url)
    parameters = sorted(parse_qsl(address.query.decode("ascii"), keep_blank_values=True))
    return origin(str(address)), address.path, tuple(parameters)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL. The port of its scheme may be left out; -1 is none that can be."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or PORTS.get(parts.scheme)


def _told(page: Page) -> Iterator[tuple[str, str, Any, bool]]:
    """Yield what an answer tells beside its items: where, its plain name, its value, and whether it is a header."""
    for name, value in page.reply.headers.items():
        if name.lower().startswith("x-"):
            yield name.title(), _plain(name[2:]), value, True
        elif name.lower() == "content-range" and not value.startswith("bytes"):  # such as `items 0-24/500`
            yield name.title(), "total", value.rpartition("/")[2], True
    # The objects around the list, and those beside it that hold the fields of paging.
    around, waiting = [page.steps[:count] for count in range(len(page.steps) + 1)], list[Steps]([()])
    while waiting:
        path = waiting.pop()
        fields = value_at(page.answer, path, None)
        for name, value in fields.items() if isinstance(fields, dict) else ():
            plain = _plain(name)
            yield ".".join((*path, name)), plain, value, False
            # Some services tell of each list by its name, such as `meta.paging.matters`.
            if plain in HOLDERS or (*path, name) in around or (path and (name,) == page.steps[-1:]):
                waiting.append((*path, name))


def signs_of_more(page: Page, pages: int) -> Iterator[Sign]:
    """Yield the signs in an answer that further pages follow the number that were read."""
    if page.link is not None and not _is_own(page.link, page):
        yield Sign("its header `Link` names a next page", "`paging: {link: true}`")
    for where, plain, value, is_header in _told(page):
        truth = str(value).lower() if isinstance(value, bool | str) else ""
        count = _count(value)
        if plain in PAGES and count is not None and count > pages and (is_header or page.steps):
            yield Sign(f"`{where}` is {count:,}", COUNTED)
        elif plain in TOKENS and isinstance(value, str | int) and value not in ("", False, 0):
            yield Sign(f"`{where}` is a token for the next page", _setting("cursor: PARAMETER, at", where))
        elif plain in NEXT and (sign := _sign_of_next(value, where, page)):
            yield sign._replace(setting=COUNTED) if is_header else sign
        elif (plain in TRUE_IF_MORE and truth == "true") or (plain in FALSE_IF_MORE and truth == "false"):
            yield Sign(f"`{where}` is {truth}", COUNTED)
        elif plain in ("link", "links") and isinstance(value, list):
            links = [each for each in value if isinstance(each, dict)]
            following = [each for each in links if "next" in (each.get("rel"), each.get("relation"))]
            urls = (each.get(url) for each in following for url in URLS)
            if any(isinstance(url, str) and not _is_own(url, page) for url in urls):
                yield Sign(f"`{where}` names a next page", COUNTED)


def _count(value: Any) -> int | None:
    """Return a number of rows or pages, which some services give as text, with a fraction of zero or a relation."""
    value = value.get("value") if isinstance(value, dict) and "relation" in value else value
    digits = str(value).removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < LONGEST_COUNT else None


def _sign_of_next(value: Any, where: str, page: Page) -> Sign | None:
    """Return the sign in a field for the next page: a URL, an object with one, a token or a number."""
    if isinstance(value, dict):
        named = next((name for name in (*URLS, *AFTER) if isinstance(value.get(name), str)), None)
        return None if named is None else _sign_of_next(value[named], f"{where}.{named}", page)
    if isinstance(value, str):
        if not value.strip() or _is_own(value, page):
            return None
        is_url = "/" in value or "?" in value
        return Sign(f"`{where}` names a next page", _setting("next" if is_url else "cursor: PARAMETER, at", where))
    if value is True or (isinstance(value, int) and value > 0):
        return Sign(f"`{where}` is {str(value).lower()}", COUNTED)
    return None


def _setting(key: str, where: str) -> str:
    path = where if where.replace(".", "").replace("_", "").isalnum() else f'"{where}"'
    return f"`paging: {{{key}: {path}}}`"


def _is_own(address: str, page: Page) -> bool:
    """Return whether an address is the page's own, which some services give at the end."""
    try:
        return same_place(urljoin(str(page.url), address.strip())) == same_place(page.url)
    except (ValueError, httpx.InvalidURL):
        return False


def _plain(name: str) -> str:
    return PUNCTUATION.sub("", name.lower())


@dataclass(slots=True)
class RowTotal:
    """The numbers of all rows that the pages of a list give beside their items, by their places."""

    counts: dict[str, int] = field(default_factory=dict)

    def above(self, read: int) -> str | None:
        """Return the words for a number that is above that of the rows `read`."""
        return next((f"`{where}` is {count:,}" for where, count in self.counts.items() if count > read), None)

    def trouble_of(self, page: Page) -> str | None:
        """Note the numbers of a page. Return the trouble if one is another than before.

        A last page without items may have any number, such as 0.
        """
        for where, plain, value, is_header in _told(page) if page.items or not self.counts else ():
            # Without a path to the items, the answer may be an item itself.
            if plain in TOTALS and (is_header or page.steps) and (count := _count(value)) is not None:
                before, self.counts[where] = self.counts.get(where, count), count
                if before != count:
                    return f"`{where}` changed from {before:,} to {count:,} while the list was read"
        return None


@dataclass(slots=True)
class Repeats:
    """What the pages read so far contain, to find a page or a row that comes twice.

    A row is known by a field such as `id` whose values differ on the first page, or else as a whole. If `may_repeat`,
    equal rows are expected, but not equal values of such a field.
    """

    may_repeat: bool = False
    _pages: set[str] = field(default_factory=set)
    _rows: set[Hashable] = field(default_factory=set)
    _key: str | None = None
    _is_known: bool = False

    def trouble_of(self, items: Sequence[Any]) -> str | None:
        """Note the items of a page. Return the trouble if it or one of its rows has been met before."""
        if not items:
            return None
        page = sha256_of(repr(items))
        if page in self._pages:
            return "two pages are the same"
        if not self._pages:
            names = {name.lower(): name for name in items[0]} if isinstance(items[0], dict) else {}
            for key in (names[key] for key in KEYS if key in names):
                values = [item.get(key) if isinstance(item, dict) else None for item in items]
                if all(isinstance(value, str | int) for value in values) and len({*values}) == len(values):
                    self._key = key
                    break
            self._is_known = self._key is not None or not self.may_repeat
        self._pages.add(page)
        if not self._is_known:
            return None
        rows: list[Hashable] = []
        for item in items:
            own = item.get(self._key) if self._key is not None and isinstance(item, dict) else None
            rows.append(own if isinstance(own, str | int) else sha256_of(repr(item)))
        self._is_known = len({*rows}) == len(rows)  # or rows are equal by nature
        twice = next((row for row in rows if row in self._rows), None) if self._is_known else None
        self._rows.update(rows)
        if twice is None:
            return None
        return "a row is on two pages" if self._key is None else f"`{self._key}` {tidy(str(twice))} is on two pages"
