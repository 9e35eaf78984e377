"""Deliver a group as one HTTP request with an Idempotency-Key.

The key is GROUP_ID/SINK for a group's first revision, and the same in every repeat, so that the receiver can recognize
repeats. With `each: tag`, the second and later tags of a group (by name) have keys of their own. The status decides
whether an answer is a refusal or trouble (docs/posted-time.md 4).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from syncengine.content import sha256_of
from syncengine.document.json_text import InvalidJson, decode_json
from syncengine.errors import Problems, TroubleKind
from syncengine.http.exchange import (
    HEADERS,
    NOT_SENT,
    Explained,
    Reply,
    cause_of,
    exchange,
    http_client,
    is_answered,
    retry_after,
)
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.pace import Turns
from syncengine.posted_time.sinks.contract import (
    LONGEST_REST,
    MAX_LINE,
    TOO_LONG,
    Answer,
    Failed,
    Notes,
    Recalled,
    Refused,
    RenderedGroup,
    Took,
    Words,
    document,
    line,
    reference_in_answer,
    undeliverable,
)
from syncengine.posted_time.sinks.find import Find, find_entry, unknown
from syncengine.posted_time.templates import Json, RenderTrouble, Text, Undeliverable, Variables, upwards
from syncengine.service.operations import LARGEST
from syncengine.state.inbox_model import DeliveryKey

NOT_THE_USERS: Mapping[int, TroubleKind] = {
    401: TroubleKind.AUTHENTICATION,
    402: TroubleKind.SUBSCRIPTION,
    403: TroubleKind.PERMISSIONS,
    407: TroubleKind.AUTHENTICATION,
    408: TroubleKind.UNREACHABLE,
    425: TroubleKind.UNREACHABLE,
    429: TroubleKind.UNREACHABLE,
}
"""The 4xx statuses that mean trouble of the sink, not a refusal of the group, with the kind of trouble."""

UNDECIDED_4XX = frozenset({408, 425, 429})
"""The 4xx statuses that say nothing about whether the receiver has the group."""

NO_NAME = (
    "{sink} cannot take this time: a name in it is only `.` or `..`, which cannot be part of a web address. Please"
    " post it with another tag, or ask your administrator."
)
SIDE_BY_SIDE = 8
"""The maximum number of requests to one receiver at the same time."""

KEPT_SECONDS = 5.0
"""How long an idle connection is kept. It is short, because receivers close idle connections without notice."""

MAX_GROUP_ID = MAX_LINE - 200
"""The maximum number of bytes of a group's id that fit into an Idempotency-Key beside the sink's name."""
_WORDS: Mapping[TroubleKind, str] = {
    TroubleKind.UNREACHABLE: "cannot be reached",
    TroubleKind.AUTHENTICATION: "does not accept our credentials",
    TroubleKind.PERMISSIONS: "does not permit us to deliver",
    TroubleKind.SUBSCRIPTION: "has a problem with its subscription",
    TroubleKind.UNKNOWN: "does not work as expected",
}


class NoTurn(Explained, httpx.ConnectError):
    """Raised for a request that is not sent, because the receiver did not answer, or asked to be left alone, while the
    request waited for its turn.
    """

    def __init__(self) -> None:
        super().__init__("it was not tried: others got no answer meanwhile, or were asked to wait")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The rendered request for one group. `path` is below the sink's URL."""

    path: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a sink. `url` and `secrets` (headers) are read for each request, so that they may change."""

    url: Callable[[], str]
    secrets: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    timeout: float = 30.0
    health: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class HttpSink:
    """A sink that delivers each group as one HTTP request with a JSON body."""

    name: str
    address: Address
    method: str
    path: Text | None
    headers: Mapping[str, Text]
    body: Json | None
    refuse_on: frozenset[int]
    trouble_on: frozenset[int]
    words: Words
    find: Find | None = None
    _turns: Turns = field(default_factory=lambda: Turns(SIDE_BY_SIDE), init=False)
    _client: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        limits = httpx.Limits(max_keepalive_connections=SIDE_BY_SIDE, keepalive_expiry=KEPT_SECONDS)
        self._client = http_client(HEADERS, limits=limits)

    def render(self, variables: Variables) -> HttpRequest:
        path = line(self.path.render(variables), f"the path of {self.name}") if self.path else ""
        if upwards(path) is not None:
            raise Undeliverable(NO_NAME.format(sink=self.name), f"the path of {self.name} would be {path}")
        headers = {
            name: line(text.render(variables).strip(), f"the header {name} of {self.name}")
            for name, text in self.headers.items()
        }
        body = None if self.body is None else document(self.body.value(variables), f"the body of {self.name}")
        if len(quote(variables["group"].groupId or "")) > MAX_GROUP_ID:
            raise undeliverable(TOO_LONG, f"the Idempotency-Key of {self.name}")
        return HttpRequest(path, headers, body)

    def shown(self, content: HttpRequest) -> Any:
        body = None if content.body is None else decode_json(content.body)
        return {"method": self.method, "path": content.path, "headers": dict(content.headers), "json": body}

    async def deliver(self, rendered: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        request: HttpRequest = rendered.content
        headers = {**request.headers, "Idempotency-Key": idempotency_key(rendered)}
        unreachable, rejected = TroubleKind.UNREACHABLE, TroubleKind.AUTHENTICATION
        try:
            async with self._turns.one(NoTurn()):
                reply = await self._send(self.method, request.path, headers, request.body)
                answer = self._answer(reply, rendered.variables)
                if isinstance(answer, Failed) and answer.rest:
                    self._turns.refuse_waiting()
                return answer
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            answered = is_answered(error)  # whatever it meant to say: what it did with the time is not known
            kind = TroubleKind.UNKNOWN if answered else unreachable
            is_sure = isinstance(error, NOT_SENT)
            return Failed(kind, self._sentence(kind), is_sure, has_answered=answered, detail=cause_of(error))
        except Problems as problems:  # the file of a secret is missing
            return Failed(rejected, self._sentence(rejected), detail=problems.found[0].message)

    def receiver(self) -> str:
        """Return a digest of the sink's name and URL. Raise `Problems` when the file of a secret URL is missing."""
        return sha256_of(f"{self.name} {self.address.url()}".encode())

    @property
    def asked_after(self) -> float | None:
        return self.find.after if self.find else None

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes, variables: Variables | None) -> Recalled:
        if self.find is None or variables is None:
            return None
        headers = {name: text.constant for name, text in self.headers.items() if isinstance(text.constant, str)}

        async def ask(method: str, url: httpx.URL) -> Reply:
            async with self._turns.one(NoTurn()):
                return await self._exchange(method, url, headers, None)

        try:
            return await find_entry(self.find, self.name, ask, variables, self.trouble_on)
        except Problems as problems:  # the file of a secret is missing
            return unknown(self.name, problems.found[0].message)

    async def probe(self) -> SinkTrouble | None:
        method, path = ("GET", self.address.health) if self.address.health else ("HEAD", "")
        try:
            status = (await self._send(method, path or "", {}, None)).status
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return self._trouble(TroubleKind.UNREACHABLE, cause_of(error))
        except Problems as problems:
            return self._trouble(TroubleKind.AUTHENTICATION, problems.found[0].message)
        if self.address.health and not httpx.codes.is_success(status):
            return self._trouble(NOT_THE_USERS.get(status, TroubleKind.UNREACHABLE))
        return self._trouble(TroubleKind.UNREACHABLE) if status in (502, 503, 504) else None

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        base = self.address.url()
        url = base.rstrip("/") + "/" + path.lstrip("/") if path else base
        return await self._exchange(method, url, headers, body)

    async def _exchange(
        self, method: str, url: httpx.URL | str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        secrets = {name: read() for name, read in self.address.secrets.items()}
        if not all(map(is_sendable, secrets.values())):
            raise httpx.LocalProtocolError("a secret must be one line of ASCII")
        usual = {} if body is None else {"Content-Type": "application/json"}
        # Each name once: a later mapping overrides earlier ones. Content always goes unchunked, with its length.
        merged = {name.lower(): (name, value) for each in (usual, secrets, headers) for name, value in each.items()}
        merged.pop("transfer-encoding", None)
        sent = [(name.encode("ascii"), value.encode()) for name, value in merged.values()]
        request = self._client.build_request(method, url, headers=sent, content=body)
        try:
            return await exchange(
                self._client, request, seconds=self.address.timeout, most=LARGEST, needs_content=False
            )
        except httpx.TimeoutException:
            self._turns.give_up()
            raise

    def _answer(self, reply: Reply, variables: Variables) -> Answer:
        """Return the meaning of an answer. Only 2xx, and a 4xx about the request itself, prove what was decided."""
        status = reply.status
        try:
            response = decode_json(reply.content or b"")  # no content where the answer was too large to be read
        except InvalidJson:
            response = None
        scope = {**variables, "response": response, "status": status}
        if httpx.codes.is_success(status):
            return Took(reference_in_answer(self.words.external_id, scope))
        is_4xx = 400 <= status < 500
        is_trouble = status in NOT_THE_USERS or status in self.trouble_on
        if status in self.refuse_on or (is_4xx and not is_trouble):
            words = ""
            with suppress(RenderTrouble):  # the refusal counts nevertheless
                words = self.words.refused.render(scope) if self.words.refused else ""
            return Refused(words or f"{self.name} rejected the time ({status}).")
        if status in self.trouble_on:
            kind = TroubleKind.UNREACHABLE
        else:
            kind = NOT_THE_USERS.get(status, TroubleKind.UNREACHABLE if status >= 502 else TroubleKind.UNKNOWN)
        rest = retry_after(reply.headers.get("retry-after"), time.time()) or 0.0
        return Failed(
            kind,
            self._sentence(kind, status),
            is_sure=is_4xx and status not in UNDECIDED_4XX,
            has_answered=True,
            rest=min(rest, LONGEST_REST),
        )

    def _sentence(self, kind: TroubleKind, status: int | None = None) -> str:
        return f"{self.name} {_WORDS[kind]}" + (f" ({status})." if status else ".")

    def _trouble(self, kind: TroubleKind, detail: str | None = None) -> SinkTrouble:
        return SinkTrouble(self.name, kind, self._sentence(kind), detail)


def idempotency_key(rendered: RenderedGroup) -> str:
    """Return the key of a delivery: GROUP_ID/SINK, then /TAG for one of several tags, and /REVISION if above 1."""
    revision = "" if rendered.revision == 1 else f"/{rendered.revision}"
    return quote(f"{rendered.group_id}/{rendered.key}{revision}", safe="/:@!$&'()*+,;=-._~")


def is_sendable(value: str) -> bool:
    """Return whether a secret can be sent in a header: only printable ASCII arrives unchanged."""
    return value.isascii() and value.isprintable()
