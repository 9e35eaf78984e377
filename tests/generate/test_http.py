"""A list of a service is read completely, whatever its paging, or refused (docs/manifests-from-data.md)."""

import base64
import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from syncengine.errors import Diagnostic, Problems
from syncengine.http.list_pages import origin, same_place
from syncengine.manifest.desired import load
from syncengine.manifest.sources.http import http_rows
from syncengine.manifest.sources.records import HttpQuery, SourceTrouble
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.delivery_schema import Paging
from syncengine.project.load import load_project
from tests.dripping import BODY, HEADERS, dripping
from tests.manifest.loading import block, write
from tests.support.quiet import QuietHandler, listening

pytestmark = pytest.mark.slow

ROWS = [{"id": number, "n": f"M-{number}"} for number in range(1, 8)]
"""Seven rows, in pages of three."""

Reply = tuple[Any, dict[str, str]] | tuple[Any, dict[str, str], int]
Answering = Callable[[str, dict[str, str], int], Reply]
"""The path, the parameters, and the number of the request from 1 → JSON, headers, and a status."""


@contextmanager
def service(answer: Answering) -> Iterator[tuple[str, list[str]]]:
    """The URL of a service, and the targets of its requests. In answers, `{url}` is that URL, and `{port}` its port."""
    heard: list[str] = []

    class Handler(QuietHandler):
        def answer(self) -> None:
            heard.append(self.path)
            parts = urlsplit(self.path)
            body, headers, *status = answer(parts.path, dict(parse_qsl(parts.query)), len(heard))
            content = (
                body
                if isinstance(body, bytes)
                else json.dumps(body).replace("{url}", url).replace("{port}", url.rpartition(":")[2]).encode()
            )
            self.say(status[0] if status else 200, content, headers)

    with listening(Handler) as url:
        yield url, heard


def names(folder: Path, url: str, http: str = "items: rows", beside: str = "") -> list[str]:
    """The names of the tags made from the list."""
    source = f"{{url: '{url}', timeout: 5s, headers: {{Authorization: {{env: CRM_TOKEN}}}}}}"
    settings = f"version: 1\nvariables: {{where: list}}\nallowEnv: [TEAM]\nsources: {{crm: {{http: {source}}}}}\n"
    asked = http if http.startswith("path: ") else f"path: list, {http}"
    write(folder, {"syncengine.yaml": settings, "manifests/m.yaml": block(f"http: {{source: crm, {asked}}}{beside}")})
    environ = {"CRM_TOKEN": "a-secret", "TEAM": "blue"}
    return [key.name for key in load(load_project(folder=folder, environ=environ)).resources]


def refusal(folder: Path, url: str, http: str = "items: rows", beside: str = "") -> Diagnostic:
    with pytest.raises(Problems) as refused:
        names(folder, url, http, beside)
    (found,) = refused.value.found
    assert (found.file, found.line) == ("manifests/m.yaml", 2)
    assert refused.value.exit_code == (9 if found.code == "source-unreachable" else 8)
    assert "a-secret" not in found.message
    return found


ALL = [row["n"] for row in ROWS]


def by_page(path: str, query: dict[str, str], _: int) -> Reply:
    begin = 3 * (int(query["p"]) - 1)
    return {"rows": ROWS[begin : begin + 3], "total": 7}, {}


def by_offset(path: str, query: dict[str, str], _: int) -> Reply:
    begin, size = int(query["startAt"]), min(int(query["max"]), 3)  # the service has a limit of its own
    return {"rows": ROWS[begin : begin + size], "total": 7, "isLast": begin + size >= 7}, {}


def by_cursor(path: str, query: dict[str, str], _: int) -> Reply:
    begin = int(query.get("token", "0"))
    more = {"nextPageToken": str(begin + 3)} if begin + 3 < 7 else {}
    return {"rows": ROWS[begin : begin + 3], **more}, {}


def by_next(path: str, query: dict[str, str], _: int) -> Reply:
    begin = int(query.get("from", "0"))
    following = f"?from={begin + 3}&a=b" if begin + 3 < 7 else None
    return {"rows": ROWS[begin : begin + 3], "meta": {"paging": {"next": following}}}, {}


def by_link(path: str, query: dict[str, str], _: int) -> Reply:
    begin = int(query.get("from", "0"))
    link = f'<{path}>; rel="first", </list?from={begin + 3}&x=a,b>; title="a, b"; rel="next"'
    return ROWS[begin : begin + 3], {"Link": link} if begin + 3 < 7 else {"Link": f'<{path}>; rel="first"'}


WAYS: dict[str, tuple[Answering, str]] = {
    "page": (by_page, "items: rows, paging: {page: p}"),
    "offset": (by_offset, "items: rows, paging: {offset: startAt, limit: max, size: 100}"),
    "cursor": (by_cursor, "items: rows, query: {q: open}, paging: {cursor: token, at: nextPageToken}"),
    "next": (by_next, "items: rows, paging: {next: meta.paging.next}"),
    "link": (by_link, "paging: {link: true}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_paging_reads_the_whole_list(tmp_path: Path, way: str) -> None:
    """The query's parameters are kept, unless the service gives the next URL itself."""
    answer, http = WAYS[way]
    with service(answer) as (url, heard):
        assert names(tmp_path, url, http) == ALL
        assert all("q=open" in target for target in heard) or way != "cursor"


SIGNS: dict[str, tuple[dict[str, Any], str, str]] = {
    "next": ({"next": "/list?page=2"}, "`next` names a next page", "paging: {next: next}"),
    "nextPage": ({"nextPage": 2}, "`nextPage` is 2", "paging: {page: PARAMETER}"),
    "a token": (
        {"nextPageToken": "abc"}, "`nextPageToken` is a token", "paging: {cursor: PARAMETER, at: nextPageToken}",
    ),
    "paging.next": ({"paging": {"next": "http://a/?p=2"}}, "`paging.next` names", "paging: {next: paging.next}"),
    "meta.paging.next": (
        {"meta": {"paging": {"next": "/l?p=2"}}}, "`meta.paging.next` names", "next: meta.paging.next",
    ),
    "links.next": ({"links": {"next": "/l?p=2"}}, "`links.next` names", "paging: {next: links.next}"),
    "a HAL link": ({"_links": {"next": {"href": "/l?p=2"}}}, "`_links.next.href` names", "next: _links.next.href"),
    "OData": ({"@odata.nextLink": "/l?p=2"}, "`@odata.nextLink` names", 'paging: {next: "@odata.nextLink"}'),
    "isLast": ({"isLast": False}, "`isLast` is false", "paging: {page: PARAMETER}"),
    "has_more": ({"has_more": True}, "`has_more` is true", "paging: {offset: PARAMETER}"),
    "hasMore": ({"paging": {"hasMore": True}}, "`paging.hasMore` is true", "paging: {offset: PARAMETER}"),
    "total": ({"total": 7}, "`total` is 7", "paging: {offset: PARAMETER}"),
    "total_count": ({"total_count": 7}, "`total_count` is 7", "paging: {page: PARAMETER}"),
    "a total in text": ({"total": "7"}, "`total` is 7", "paging: {page: PARAMETER}"),
    "a truth value in text": ({"has_more": "True"}, "`has_more` is true", "paging: {page: PARAMETER}"),
    "Salesforce": ({"nextRecordsUrl": "/q/01g-2000"}, "`nextRecordsUrl` names", "paging: {next: nextRecordsUrl}"),
    "HubSpot": (
        {"paging": {"next": {"after": "NTI1Cg=="}}}, "`paging.next.after` names",
        "paging: {cursor: PARAMETER, at: paging.next.after}",
    ),
    "FHIR": ({"link": [{"relation": "self", "url": "/list"}, {"relation": "next", "url": "/l?2"}]}, "`link`", "page"),
    "Spring": (
        {"page": {"totalElements": 7, "totalPages": 3}}, "`page.totalElements` is 7", "paging: {page: PARAMETER}",
    ),
    "Laravel": ({"meta": {"current_page": 1, "last_page": 3}}, "`meta.last_page` is 3", "paging: {page: PARAMETER}"),
    "pages": ({"page": 1, "pages": "3"}, "`pages` is 3", "paging: {page: PARAMETER}"),
    "a total with a relation": ({"total": {"value": 7, "relation": "eq"}}, "`total` is 7", "paging"),
    "by the list's name": (
        {"meta": {"paging": {"rows": {"pageCount": 3}}}}, "`meta.paging.rows.pageCount` is 3", "page",
    ),
    "other holders": ({"result_info": {"total_count": 7}}, "`result_info.total_count` is 7", "page"),
    "an empty page": ({"rows": [], "total": 7}, "the 0 rows that were read, since `total` is 7", "paging"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_of_more_rows_is_an_error_that_says_how_to_read_them(tmp_path: Path, name: str) -> None:
    """A partial list would remove the other rows' tags, so it is refused unless `allowPartial` is set."""
    beside, sign, setting = SIGNS[name]
    with service(lambda *_: ({"rows": ROWS[:3], **beside}, {})) as (url, _):
        found = refusal(tmp_path, url)
        rows = beside.get("rows", ROWS[:3])
        assert names(tmp_path, url, "items: rows, allowPartial: true") == [row["n"] for row in rows]
    assert (found.code, found.file, found.line) == ("source-partial", "manifests/m.yaml", 2)
    assert sign in found.message
    assert setting in found.message


@pytest.mark.parametrize(
    ("header", "status", "words"),
    [
        ({"Link": '</list?from=3>; title="a, b"; rel="next"'}, 200, "`paging: {link: true}`"),
        *(({name: "7"}, 200, f"`{name}` ") for name in ("X-Next-Page", "X-Total-Count", "X-Total", "X-Total-Pages")),
        ({"Content-Range": "items 0-2/7"}, 200, "`Content-Range` "),
        ({"Content-Range": "0-2/*"}, 206, "its status is 206"),
    ],
)
def test_headers_are_signs(tmp_path: Path, header: dict[str, str], status: int, words: str) -> None:
    """A service whose answer is only a list tells of more rows by its headers, or only by status 206."""
    with service(lambda *_: (ROWS[:3], header, status)) as (url, _):
        found = refusal(tmp_path, url, "path: list")
    assert (found.code, words in found.message) == ("source-partial", True), found.message


NO_SIGNS: dict[str, Any] = {
    "empty": {"next": None, "nextPageToken": "", "paging": {"next": ""}, "links": {"next": None}, "nextPage": 0},
    "the last": {"isLast": True, "has_more": False, "total": 3},
    "the last, in text": {"isLast": "true", "has_more": "false", "total": "3", "paging": {"next": {"after": ""}}},
    "an unknown total": {"total": -1},
    "links to other pages": {"links": [{"rel": "self", "href": "/list"}, {"rel": "next", "href": ""}]},
    "its own URL": {"next": "/list?b=2&a=1", "links": {"next": "?a=1&b=2"}},
    "its own URL, whole": {"next": "{url}/list?b=2&a=1"},
    "elsewhere": {"statistics": {"total": 9, "pages": 3, "next": "/x"}, "author": {"next": "/x"}},
    "one page": {"totalPages": 1, "meta": {"last_page": 1, "total": 3}},
    "an amount": {"total": {"value": 900, "currency": "CHF"}},
    "in the rows": {"rows": [{**row, "next": "/x", "total": 9, "isLast": False} for row in ROWS[:3]]},
}


@pytest.mark.parametrize("name", NO_SIGNS)
def test_an_answer_without_a_sign_of_more_rows_is_accepted(tmp_path: Path, name: str) -> None:
    """A total counts beside the items or in an object about them; an empty next page, or the page itself, is none."""
    with service(lambda *_: ({"rows": ROWS[:3], **NO_SIGNS[name]}, {})) as (url, _):
        assert names(tmp_path, url, "items: rows, query: {a: 1, b: 2}") == ALL[:3]


@pytest.mark.parametrize(
    ("http", "answer", "sign"),
    [
        ("items: rows, paging: {next: meta.nxt}", by_next, "`meta.paging.next`"),
        ("items: rows, paging: {cursor: token, at: next}", by_cursor, "`nextPageToken`"),
        (
            "items: rows, paging: {page: p}",
            lambda _, query, __: by_page("", {"p": query["p"] if query["p"] < "2" else "9"}, 0),
            "`total` is 7",
        ),
    ],
)
def test_paging_that_ends_too_early_is_an_error(tmp_path: Path, http: str, answer: Answering, sign: str) -> None:
    """A misspelt path or a service's limit of pages leaves rows unread."""
    with service(answer) as (url, _):
        found = refusal(tmp_path, url, http)
    assert (found.code, sign in found.message) == ("source-partial", True)


PAGE, NEXT, LIST = "items: rows, paging: {page: p}", "items: rows, paging: {next: next}", "paging: {page: p}"
LAST: tuple[Any, ...] = ({"rows": [], "next": None}, {"rows": None, "next": None}, {"next": None}, {})
OTHER: tuple[Any, ...] = ({"error": "too many"}, [], "text", {"rows": "text"}, {"rows": None, "message": "x"})


@pytest.mark.parametrize(
    ("http", "answer", "ends"),
    [
        *((http, last, True) for http in (PAGE, NEXT) for last in LAST),
        *((NEXT, other, False) for other in OTHER),
        *((LIST, other, False) for other in ({}, {"message": "no more pages"})),
    ],
)
def test_a_later_page_without_rows_ends_the_list(tmp_path: Path, http: str, answer: Any, *, ends: bool) -> None:
    """Some services omit an empty list. What is something else is an error, even with status 200."""
    first = ROWS if http == LIST else {"rows": ROWS, "next": "/list?q=2"}
    with service(lambda _, __, turn: (first if turn == 1 else answer, {})) as (url, _):
        if ends:
            assert names(tmp_path, url, http) == ALL
        else:
            assert "the answer has no " in refusal(tmp_path, url, http).message


def changing(first: list[Reply], then: Answering) -> Answering:
    """Answer with each reply of `first` once, and then with `then`."""
    return lambda path, query, turn: first[turn - 1] if turn <= len(first) else then(path, query, turn)


CHANGES: dict[str, list[Reply]] = {
    "a key twice": [
        ({"rows": ROWS[0:3], "total": 7}, {}),
        ({"rows": [{**ROWS[2], "n": "renamed"}, *ROWS[3:5]], "total": 7}, {}),
    ],
    "a key in capitals twice": [
        ({"rows": [{"ID": 1, "n": "A"}, {"ID": 2, "n": "B"}], "total": 7}, {}),
        ({"rows": [{"ID": 2, "n": "renamed"}, {"ID": 3, "n": "C"}], "total": 7}, {}),
    ],
    "a page twice": [({"rows": ROWS[0:3], "total": 7}, {}), ({"rows": ROWS[0:3], "total": 7}, {})],
    "another total": [({"rows": ROWS[0:3], "total": 8}, {}), ({"rows": ROWS[3:6], "total": 7}, {})],
    "a whole row twice": [({"rows": [{"n": "A"}, {"n": "B"}]}, {}), ({"rows": [{"n": "B"}, {"n": "C"}]}, {})],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_that_changes_while_it_is_read_is_read_again(tmp_path: Path, change: str) -> None:
    """A row that moves to another page appears twice, and another row may be missing."""
    with service(changing(CHANGES[change], by_page)) as (url, heard):
        assert names(tmp_path, url, "items: rows, paging: {page: p}") == ALL
    assert len(heard) == 2 + 4


def test_a_list_that_keeps_changing_is_an_error(tmp_path: Path) -> None:
    """With `distinct`, equal rows on two pages are expected, and the list is not read again."""
    with service(lambda _, query, __: ({"rows": ROWS[:3] if query["p"] == "1" else ROWS[2:5]}, {})) as (url, heard):
        found = refusal(tmp_path, url, PAGE)
    assert (found.code, len(heard)) == ("source-partial", 2 * 4)
    assert "`id` 3 is on two pages" in found.message
    pages = {"1": [{"n": "A"}, {"n": "B"}], "2": [{"n": "B"}, {"n": "C"}]}
    with service(lambda _, query, __: ({"rows": pages.get(query["p"], [])}, {})) as (url, heard):
        assert names(tmp_path, url, PAGE, ", distinct: n") == ["A", "B", "C"]


def two_pages(following: str) -> Answering:
    """The first page names the next one so."""
    return lambda _, query, turn: ({"rows": ROWS[3:6] if query else ROWS[:3], "next": None if query else following}, {})


@pytest.mark.parametrize(
    "following", ["{url}/list?p=2", "list?p=2", "?p=2", "//127.0.0.1:{port}/list?p=2", "/../list?p=2"]
)
def test_the_next_page_is_read_on_the_same_host(tmp_path: Path, following: str) -> None:
    """Some services write the default port into the next URL."""
    with service(two_pages(following)) as (url, _):
        assert names(tmp_path, url, NEXT) == ALL[:6]
    assert same_place("https://crm.example:443/l?a=1&b=2") == same_place("https://CRM.example/l?b=2&a=1")
    assert origin("http://crm.example:80/") == origin("http://crm.example") != origin("http://crm.example:443")


@pytest.mark.parametrize(
    "following",
    [
        *("http://LOCALHOST:{port}/list", "http://127.0.0.2:{port}/list", "http://u:p@127.0.0.1:{port}/list"),
        *("https://127.0.0.1:{port}/list", "/%2e%2e/list", "http://[::1/list"),
    ],
)
def test_no_next_page_is_read_elsewhere(tmp_path: Path, following: str) -> None:
    """Another host must not get the source's headers."""
    with service(two_pages(following)) as (url, heard):
        assert "outside the source's URL" in refusal(tmp_path, url, NEXT).message
    assert len(heard) == 1


def test_a_busy_service_is_waited_for_but_not_for_minutes(tmp_path: Path) -> None:
    busy: Reply = ({}, {"Retry-After": "1"}, 429)
    with service(changing([busy], lambda *_: ({"rows": ROWS}, {}))) as (url, heard):
        began = time.monotonic()
        assert names(tmp_path, url) == ALL
    assert (len(heard), time.monotonic() - began >= 1) == (2, True)
    with service(lambda *_: ({}, {"Retry-After": "600"}, 429)) as (url, heard):
        found = refusal(tmp_path, url)
    assert (found.code, len(heard)) == ("source-unreachable", 1)
    assert "status 429 (it asks for a retry in 600 s)" in found.message


def test_proxies_of_the_environment_hold_for_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used unless NO_PROXY excepts the host, and errors do not show its password."""
    monkeypatch.setenv("HTTP_PROXY", "http://me:s3cret@127.0.0.1:9")
    with service(lambda *_: ({"rows": ROWS}, {})) as (url, heard):
        with pytest.raises(Problems) as refused:
            names(tmp_path, url)
        assert (refused.value.exit_code, heard) == (9, [])
        (found,) = refused.value.found
        assert (found.code, "127.0.0.1:9 (HTTP_PROXY)" in found.message) == ("source-unreachable", True)
        assert "s3cret" not in found.message
        monkeypatch.setenv("NO_PROXY", "[::1],127.0.0.0/8")
        assert names(tmp_path, url) == ALL
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", "socks4://127.0.0.1:9")
    found = refusal(tmp_path, url)
    assert (found.code, "HTTP_PROXY names a kind of proxy" in found.message) == ("bad-source", True)


def test_a_service_is_asked_once_by_a_cold_plan(tmp_path: Path) -> None:
    """This holds beside a large manifest, too."""
    large = "tags:\n" + "".join(f"  - {{name: Matter {n:06}, description: {'x' * 100}}}\n" for n in range(10_000))
    with service(lambda *_: (ROWS, {})) as (url, heard):
        settings = f"service: {{baseUrl: https://service.invalid}}\nsources: {{crm: {{http: {{url: '{url}'}}}}}}\n"
        manifests = {"manifests/large.yaml": large, "manifests/m.yaml": block("http: {source: crm, path: list}")}
        write(tmp_path, {"syncengine.yaml": f"version: 1\n{settings}", **manifests})
        planned = make_plan(load_project(folder=tmp_path, environ={}), PlanRequest("plan"), Runtime({}))
    assert (planned.summary.create, heard) == (10_007, ["/list"])


@pytest.mark.parametrize(
    ("http", "target"),
    [
        ("path: 'list?status=open&a=1', query: {b: 2}", "/list?status=open&a=1&b=2"),
        ("path: 'list?status=open', query: {status: all}", "/list?status=all"),
        ("path: 'list?status=open', paging: {page: page}", "/list?status=open&page=1"),
        ("path: '{{ var.where }}', query: {b: '{{ env.TEAM }} & {{ var.where }}'}", "/list?b=blue+%26+list"),
        ("query: {open: true, closed: false, year: 2024, of: null, who: 'yes'}",
         "/list?open=true&closed=false&year=2024&of=&who=yes"),
    ],
)  # fmt: skip
def test_parameters_are_sent_as_they_are_written(tmp_path: Path, http: str, target: str) -> None:
    """Those of `query` and `paging` are added to those of the path; all may contain variables. A flag that a service
    does not understand could be a filter that it ignores; null is empty."""
    with service(lambda *_: ([], {})) as (url, heard):
        names(tmp_path, url, http)
    assert heard == [target]


def test_a_user_and_password_in_a_url_are_sent_as_such(tmp_path: Path) -> None:
    """They are sent as Basic authentication; such a URL comes from the environment, and is not shown."""

    class Echo(QuietHandler):
        def answer(self) -> None:
            status = 200 if self.path == "/" else 404
            self.say(status, json.dumps([{"n": self.headers["Authorization"]}]).encode())

    settings = "version: 1\nsources: {crm: {http: {env: CRM_URL}}}\n"
    write(tmp_path, {"syncengine.yaml": settings, "manifests/m.yaml": block("http: {source: crm}")})
    with listening(Echo) as url:
        environ = {"CRM_URL": url.replace("http://", "http://us%40r:a-secret@")}
        (made,) = load(load_project(folder=tmp_path, environ=environ)).resources
        assert made.name == "Basic " + base64.b64encode(b"us@r:a-secret").decode()
        with pytest.raises(Problems) as refused:
            load(load_project(folder=tmp_path, environ={"CRM_URL": f"{url}/sk-THEKEY/"}))
    assert "crm: its URL answered with status 404" in refused.value.found[0].message
    assert "THEKEY" not in refused.value.found[0].message


@pytest.mark.parametrize("before", [HEADERS, BODY], ids=["headers", "body"])
def test_an_answer_that_drips_is_not_waited_for(before: bytes) -> None:
    """Each answer has its time, and so have all pages: one that drips is a timeout, and is retried as long as that. One
    that unpacks to too much is not read."""
    packed = gzip.compress(bytes(128 * 1024 * 1024), 1)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    with dripping(before, {b"/large": head + packed}) as server:
        with pytest.raises(SourceTrouble, match=r"cannot be read: (no answer in time|the answer began)"):
            list(http_rows("crm", server.url, {}, 0.1, HttpQuery(), seconds=1.0))
        with pytest.raises(SourceTrouble, match=r"crm: all pages together take longer than 0\.5 s"):
            list(http_rows("crm", server.url, {}, 5.0, HttpQuery(), 0.5))
        with pytest.raises(SourceTrouble, match="more than 64 MB"):
            list(http_rows("crm", server.url, {}, 5.0, HttpQuery("/large")))


def test_pages_without_an_end_are_an_error(tmp_path: Path) -> None:
    """A circle of links, whatever is on its pages, and a paging parameter that the service ignores are found."""

    def circle(path: str, query: dict[str, str], turn: int) -> Reply:
        return {"rows": [{"n": f"M-{turn}"}], "next": "?p=1" if query.get("p") == "2" else "?p=2"}, {}

    def ignoring(*_: object) -> Reply:
        return {"rows": [{"n": "A"}], "next": "?p=2"}, {}

    for answer, http, words in (
        (circle, NEXT, "the next page is one that has already been read"),
        (ignoring, NEXT, "two pages are the same"),
        (ignoring, PAGE, "is `p` the right parameter"),
    ):
        with service(answer) as (url, _):
            found = refusal(tmp_path, url, http)
        assert (found.code, words in found.message) == ("source-partial", True), found.message


@pytest.mark.parametrize(
    ("limit", "words"),
    [({"pages": 3}, "there are more than 3 pages"), ({"most": 10**6}, "the rows take more than 1 MB")],
)
def test_pages_are_limited_in_number_and_in_memory(limit: dict[str, Any], words: str) -> None:
    """All pages together, even when each is small."""
    question = HttpQuery("/list", paging=Paging(page="p"))
    with (
        service(lambda _, query, __: ([{"n": f"{query['p']}-{n}"} for n in range(500)], {})) as (url, _),
        pytest.raises(SourceTrouble, match=f"crm: {words}"),
    ):
        list(http_rows("crm", url, {}, 5.0, question, **limit))


ODD: dict[str, Reply] = {
    "/html": (b"<html>Sign in</html>", {"Content-Type": "text/html; charset=utf-8"}),
    "/broken": ({}, {"Retry-After": "0"}, 500),  # or else the retries wait for eight seconds
    "/half": ({"rows": ROWS[:3], "next": "broken"}, {}),
    "/moved": ({}, {"Location": "http://example.com/"}, 302),
    "/text": ("no list", {}),
}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/../x", "is outside"),
        ("/%2e%2e/x", "is outside"),
        *((f"/a/{way}/x", "is outside") for way in ("..%2f..", "..%2F..%2Fx", "%252e%252e", "..%5c..", "..;a=b")),
        ("/html", "crm: the answer of /html is not JSON, but a web page"),
        ("/broken", "answered with status 500"),
        ("/half", "crm: /broken answered with status 500"),
        ("http://example.com", "must be below"),
        ("/moved", "answered with status 302: it redirects to http://example.com, which is not followed"),
        ("/missing", "crm: /missing answered with status 404"),
        ("/text", "no `rows`"),
    ],
)
def test_nothing_is_asked_of_others(tmp_path: Path, path: str, words: str) -> None:
    """Redirects, other hosts and paths above the source's URL are refused, and failures are errors. They show only the
    path from the manifest, and not the source's own URL, whose path may be a key."""
    with service(lambda path, *_: ODD.get(path.removeprefix("/sk-THEKEY"), ({}, {}, 404))) as (url, _):
        found = refusal(tmp_path, f"{url}/sk-THEKEY", f"path: '{path}', items: rows, paging: {{next: next}}")
    assert found.code == ("source-unreachable" if "status 500" in words else "bad-source")
    assert (words in found.message, "THEKEY" in found.message) == (True, False)
