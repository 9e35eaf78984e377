"""Define the models of `sources:`, `postedTime:` and `serve:` in the project file.

Settings are explained in docs/project-file.md and docs/posted-time-settings.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import Flag, Identity, Reads
from syncengine.document.model import JsonSchema, Model
from syncengine.document.model_reader import model_reader
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node
from syncengine.document.scalar_readers import Reader, choice, flag, tested, whole_number
from syncengine.document.setting_types import (
    DURATION_SCHEMA,
    REFERENCE_SCHEMA,
    WEB_URL_SCHEMA,
    Duration,
    Method,
    Place,
    SecretReference,
    Span,
    UrlPath,
    WebUrl,
    or_off,
    parse_reader,
    web_url,
    web_url_trouble,
)
from syncengine.document.template_types import (
    Condition,
    File,
    Headers,
    JsonTemplate,
    Params,
    SinkName,
    Statuses,
    Template,
    TemplateFile,
    one_of,
    one_of_schema,
)

PAGINGS = ("next", "page", "cursor", "offset", "link")
PAGING_NEEDS = {"cursor": ["at"], "at": ["cursor"], "limit": ["offset", "size"], "size": ["limit"]}
"""The fields of `paging` that need others."""


def paging_reader(name: str) -> Any:
    """Return a reader of `paging` that also reports fields without those that they need."""
    read_one = one_of(Paging, "`paging`", PAGINGS)(name)

    def read(node: Node, findings: Collector) -> Any:
        value = read_one(node, findings)
        if value is INVALID or not isinstance(node, MappingNode):
            return value
        for key in node.keys:
            missing = [f"`{other}`" for other in PAGING_NEEDS.get(key.text, ()) if node.get(other) is None]
            if missing:
                value = findings.error("missing-field", key, f"`{key.text}` needs {' and '.join(missing)} beside it")
        return value

    return read


_true = tested(flag, bool, "bad-value", "can only be true")


class Paging(Model, frozen=True):
    """The paging of a long list: how its next page is requested."""

    beyond_fields: ClassVar[Mapping[str, Any]] = {**one_of_schema(*PAGINGS), "dependentRequired": PAGING_NEEDS}

    next: Annotated[
        Identity | None, Meta(description="Path of the next page's URL in the answer, such as `links.next`.")
    ] = None
    page: Annotated[
        Identity | None, Meta(description="Query parameter for the page number; an empty page ends the list.")
    ] = None
    cursor: Annotated[
        Identity | None, Meta(description="Query parameter for the token of the next page, which the answer has `at`.")
    ] = None
    at: Annotated[
        Identity | None,
        Meta(description="Path of the next page's token in the answer, such as `nextPageToken`; without one it ends."),
    ] = None
    offset: Annotated[
        Identity | None,
        Meta(description="Query parameter for the number of rows read so far; an empty page ends the list."),
    ] = None
    limit: Annotated[Identity | None, Meta(description="Query parameter for the number of rows of a page.")] = None
    size: Annotated[
        Annotated[int, Reads(whole_number(1, 1_000_000))] | None,
        Meta(description="Number of rows of a page, for `limit`."),
    ] = None
    link: Annotated[
        Annotated[bool, Reads(_true), JsonSchema({"const": True})] | None,
        Meta(description='Follow the header `Link` with `rel="next"`.'),
    ] = None
    first: Annotated[
        Annotated[int, Reads(whole_number(0, 1_000_000))] | None,
        Meta(description="Number of the first page, 1 by default; or the first offset, 0 by default."),
    ] = None


PagingSection = Annotated[Paging, Reads(paging_reader)]


USER = "user"
"""The value of `timezone` that selects the time zone of the user who posted the time."""

_LISTEN = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_PORT = "0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"


def listen(text: str) -> tuple[str, int] | None:
    """Return the host and port of an address like `127.0.0.1:8766`, or `None` when `text` is malformed."""
    match = _LISTEN.fullmatch(text)
    return (match[1].strip("[]"), int(match[2])) if match and int(match[2]) <= 65535 else None


def newline(text: str) -> str | None:
    """Return `text` if it is a valid line break, like `<br>` or carriage returns and line feeds; otherwise `None`."""
    return text if re.sub(r"[\r\n]", "", text).isprintable() and len(text) <= 20 else None


def time_zone(text: str) -> str | None:
    from zoneinfo import ZoneInfo

    if text == USER:
        return text
    try:
        return ZoneInfo(text).key
    except (ValueError, OSError, KeyError):  # KeyError: there is no such zone
        return None


def callback(text: str) -> str | None:
    return None if web_url_trouble(text) else text


BIND = ("127.0.0.1", 8080)
"""The default address of the webhook receiver."""
LISTEN = ("127.0.0.1", 8766)
"""The default address of the probes."""
Listen = Annotated[
    tuple[str, int],
    Reads(parse_reader(listen, "HOST:PORT, like 127.0.0.1:8766")),
    JsonSchema({"type": "string", "pattern": f"^(?=.*:{_PORT}$){_LISTEN.pattern}$"}),
]
Newline = Annotated[
    str,
    Reads(parse_reader(newline, 'a line break, like "\\r\\n" or <br>')),
    JsonSchema({"type": "string", "maxLength": 20}),
]
TimeZone = Annotated[
    str,
    Reads(parse_reader(time_zone, "`user` or the name of a time zone like Europe/Vienna")),
    JsonSchema({"type": "string"}),
]
Callback = Annotated[
    str,
    Reads(parse_reader(callback, "a URL that starts with https:// (or http://), without credentials")),
    JsonSchema(WEB_URL_SCHEMA),
]


class Mode(StrEnum):
    """How posted time reaches the connector."""

    FETCH = "fetch"
    WEBHOOK = "webhook"
    OFF = "off"


class Unmatched(StrEnum):
    """The verdict on a group that no sink accepts."""

    REFUSE = "refuse"
    ACCEPT = "accept"


class DurationFrom(StrEnum):
    """The origin of a group's duration: the total that was posted, or the sum of its rows."""

    TOTAL = "total"
    ROWS = "rows"


class Weighting(StrEnum):
    """Whether to apply the user's experience weighting; a total is edited when it differs from the sum of its rows."""

    ALWAYS = "always"
    NEVER = "never"
    UNLESS_EDITED = "unless-edited"


class Each(StrEnum):
    """How often a sink receives a group."""

    TAG = "tag"


class HttpSourceSection(Model, frozen=True):
    """An HTTP service that sinks and templates may name."""

    url: Annotated[WebUrl, Meta(description="The service's URL, or a reference to it: {env: NAME} or {file: PATH}.")]
    headers: Annotated[
        Headers | None, Meta(description="Sent with every request; write credentials as {env} or {file}.")
    ] = None
    timeout: Annotated[Duration | None, Meta(description="How long an answer may take; 30s by default.")] = None


def http_source(name: str) -> Reader:
    """Return a reader of an HTTP source: a URL or reference, or a mapping with `url`, headers and a timeout."""
    place_of, whole = web_url(name), model_reader(HttpSourceSection, name)

    def read(node: Node, findings: Collector) -> Any:
        if isinstance(node, MappingNode) and any(key.text == "url" for key in node.keys):
            return whole(node, findings)
        url = place_of(node, findings)
        return INVALID if url is INVALID else HttpSourceSection(url=url)

    return read


_HTTP_SOURCE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        WEB_URL_SCHEMA,
        REFERENCE_SCHEMA,
        {
            "type": "object",
            "properties": {
                "url": {"anyOf": [WEB_URL_SCHEMA, REFERENCE_SCHEMA]},
                "headers": {"type": "object"},
                "timeout": DURATION_SCHEMA,
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    ]
}
HttpSource = Annotated[HttpSourceSection, Reads(http_source), JsonSchema(_HTTP_SOURCE_SCHEMA)]


class SourceConfig(Model, frozen=True):
    """A connection that sinks, lookups and manifests may name."""

    schema_name = "Source"
    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema("sql", "http")

    sql: Annotated[
        Place | None, Meta(description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    ] = None
    http: Annotated[HttpSource | None, Meta(description="The URL of an HTTP service, or a reference.")] = None


SourceSection = Annotated[SourceConfig, Reads(one_of(SourceConfig, "a source", ("sql", "http")))]


class LookupQuery(Model, frozen=True, kw_only=True):
    """A database query that finds a row of the target."""

    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema("source", "url")

    source: Annotated[Template | None, Meta(description="A source of the project file.")] = None
    url: Annotated[
        Place | None, Meta(description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    ] = None
    query: Annotated[Template, Meta(description="One SELECT with :names for its parameters.")]
    params: Annotated[Params | None, Meta(description="A template for each parameter of the query.")] = None


class SqlSinkConfig(Model, frozen=True, kw_only=True):
    """A statement that delivers a group."""

    schema_name = "SqlSink"
    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema("source", "url")

    source: Annotated[Template | None, Meta(description="A source of the project file.")] = None
    url: Annotated[
        Place | None, Meta(description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    ] = None
    statement: Annotated[Template, Meta(description="One statement with :names for its parameters; never a template.")]
    params: Annotated[Params | None, Meta(description="A template for each name in the statement.")] = None
    receipts: Annotated[
        Flag | None, Meta(description="Keep receipts in the target; without them, delivery is at least once.")
    ] = None
    allow_no_row: Annotated[
        Flag | None, Meta(description="Take a statement that changes no row for a delivery; refused by default.")
    ] = None


class FindConfig(Model, frozen=True, kw_only=True):
    """A request that finds the entry of a group in the receiver, after an attempt of unknown end."""

    schema_name = "Find"

    method: Annotated[Method | None, Meta(description="The HTTP method; GET by default.")] = None
    path: Annotated[
        Template | None, Meta(description="The path below the source's URL; a template. For a sink with a `source`.")
    ] = None
    url: Annotated[
        WebUrl | None, Meta(description="The URL to ask, or a reference. For a sink with a `url` of its own.")
    ] = None
    query: Annotated[
        Params | None,
        Meta(description="Query parameters; templates. `reference` must be equal to the one with `group.groupId`."),
    ] = None
    entries: Annotated[Template, Meta(description='The list in the answer, such as "{{ response.time_entries }}".')]
    reference: Annotated[
        Template, Meta(description='The reference of an `entry`, such as "{{ entry.external_reference.id }}".')
    ]
    external_id: Annotated[
        Template | None, Meta(description="Sent to the service as external id of an entry that is found.")
    ] = None
    after: Annotated[
        Duration | None,
        Meta(description="When to ask, since the end of the last attempt; the sink's timeout and 60s by default."),
    ] = None
    paging: PagingSection | None = None


class HttpSinkConfig(Model, frozen=True):
    """A request that delivers a group."""

    schema_name = "HttpSink"
    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema("source", "url")

    source: Annotated[Template | None, Meta(description="A source of the project file.")] = None
    url: Annotated[WebUrl | None, Meta(description="The URL of the service, or a reference.")] = None
    method: Annotated[Method | None, Meta(description="The HTTP method; POST by default.")] = None
    path: Annotated[Template | None, Meta(description="The path below the URL; a template.")] = None
    headers: Annotated[Headers | None, Meta(description="Headers of the request: templates, {env} or {file}.")] = None
    body: Annotated[JsonTemplate | None, Meta(description="The body: JSON whose texts are templates.")] = field(
        default=None, name="json"
    )
    health: Annotated[
        UrlPath | None, Meta(description="A path that answers 2xx to GET when the service is healthy.")
    ] = None
    timeout: Annotated[Duration | None, Meta(description="How long an answer may take; 30s by default.")] = None
    find: Annotated[
        FindConfig | None,
        Meta(description="Ask for a group's entry before the group is sent again; without it, at least once."),
    ] = None


class JsonlSection(Model, frozen=True):
    """A file with one JSON object per line."""

    path: Annotated[File, Meta(description="The file's path, relative to the project's folder.")]
    body: Annotated[JsonTemplate | None, Meta(description="The object to write; the whole group by default.")] = field(
        default=None, name="json"
    )


class CsvSection(Model, frozen=True):
    """A CSV file with one record per group below a header."""

    path: Annotated[File, Meta(description="The file's path, relative to the project's folder.")]
    columns: Annotated[Params, Meta(description="A template for each column of the header, in order.")]


SqlQuery = Annotated[LookupQuery, Reads(one_of(LookupQuery, "`sql`", ("source", "url")))]
SqlSection = Annotated[SqlSinkConfig, Reads(one_of(SqlSinkConfig, "`sql`", ("source", "url")))]
HttpSection = Annotated[HttpSinkConfig, Reads(one_of(HttpSinkConfig, "`http`", ("source", "url")))]


class RefuseRule(Model, frozen=True):
    """A rule that refuses posted time."""

    when: Annotated[Condition, Meta(description="An expression; a group for which it is true is refused.")]
    message: Annotated[Template, Meta(description="The message shown to the user who posted the time.")]


class LookupSection(Model, frozen=True, kw_only=True):
    """A row of the target that is looked up before any delivery."""

    name: Annotated[SinkName, Meta(description="The lookup's name; its row is `lookup.NAME` in templates.")]
    when: Annotated[
        Condition | None, Meta(description="Look up only if this expression is true; otherwise `lookup.NAME` is none.")
    ] = None
    sql: SqlQuery
    missing: Annotated[Template | None, Meta(description="The message of the refusal when no row is found.")] = None


class NarrativeSection(Model, frozen=True):
    """The text that describes the work of a group."""

    template: Annotated[
        TemplateFile | None, Meta(description="The template file, relative to the project's folder.")
    ] = None
    max_length: Annotated[
        Annotated[int, Reads(whole_number(0, 10_000_000)), Meta(ge=0)] | None,
        Meta(description="Maximum characters; longer text is cut. 0 (default) means no limit."),
    ] = None
    newline: Annotated[Newline | None, Meta(description="Text that replaces each line break.")] = None
    summary: Annotated[
        Flag | None,
        Meta(
            description="Whether the built-in narrative ends with a summary of the durations;"
            " by default, ADD_SUMMARY_TO_NARRATIVE of the registration decides."
        ),
    ] = None


class DurationSection(Model, frozen=True):
    """How the duration is computed."""

    from_: Annotated[
        Annotated[DurationFrom, Reads(choice(DurationFrom))] | None,
        Meta(description="The posted total (total, default), or the sum of the rows (rows)."),
    ] = field(default=None, name="from")
    weighting: Annotated[
        Annotated[Weighting, Reads(choice(Weighting))] | None,
        Meta(description="Whether experienceWeightingPercent counts; unless-edited by default."),
    ] = None
    round_up_to: Annotated[Span | None, Meta(description="A unit to round up to, like 6m; 0s (default): off.")] = None


SINKS = ("sql", "http", "jsonl", "csv")
"""The kinds of sinks, as fields of `SinkConfig`. A sink has exactly one of them."""


class SinkConfig(Model, frozen=True):
    """A target of posted time. Receipts and `Idempotency-Key` contain its name, so renaming it creates a new sink."""

    schema_name = "Sink"
    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema(*SINKS)

    name: Annotated[SinkName, Meta(description="The name of the sink in receipts and in `Idempotency-Key`.")]
    when: Annotated[Condition | None, Meta(description="Deliver only groups for which this expression is true.")] = None
    each: Annotated[
        Annotated[Each, Reads(choice(Each))] | None,
        Meta(
            description="tag: a group with several tags is delivered once for each tag, with its share of the duration;"
            " `when`, lookups and narrative are evaluated for that tag."
            " Without it, such a group is refused unless `tags` is used."
        ),
    ] = None
    sql: SqlSection | None = None
    http: HttpSection | None = None
    jsonl: JsonlSection | None = None
    csv: CsvSection | None = None
    external_id: Annotated[Template | None, Meta(description="Sent to the service with SUCCESS as external id.")] = None
    refuse_on: Annotated[
        Statuses | None, Meta(description="Additional HTTP statuses that count as a refusal, not as a failure.")
    ] = None
    trouble_on: Annotated[
        Statuses | None,
        Meta(description="Additional HTTP statuses that count as a failure, not as a refusal: 404 of an ingress."),
    ] = None
    refused: Annotated[Template | None, Meta(description="The message shown to the user when the sink refuses.")] = None


SinkSection = Annotated[SinkConfig, Reads(one_of(SinkConfig, "a sink", SINKS))]


class WebhookSection(Model, frozen=True):
    """The webhook receiver to which the service posts time."""

    callback_url: Annotated[Callback | None, Meta(description="The public URL of this receiver.")] = None
    caller_key: Annotated[
        SecretReference | None, Meta(description="The key that the service sends to authenticate itself.")
    ] = None
    bind: Annotated[Listen | None, Meta(description="HOST:PORT to listen on; 127.0.0.1:8080 by default.")] = None
    max_body: Annotated[
        Annotated[int, Reads(whole_number(1024, 1 << 30)), Meta(ge=1024)] | None,
        Meta(description="Maximum size of a request body in bytes; 1048576 by default."),
    ] = None


class PostedTimeSection(Model, frozen=True):
    """Where posted time comes from and where it is delivered."""

    mode: Annotated[
        Annotated[Mode, Reads(or_off(Mode)), JsonSchema({"enum": [*Mode, False]})] | None,
        Meta(description="How posted time arrives; fetch by default."),
    ] = None
    webhook: WebhookSection | None = None
    fetch_limit: Annotated[
        Annotated[int, Reads(whole_number(1, 10_000)), Meta(ge=1, le=10_000)] | None,
        Meta(description="Groups to request at once; 25 by default."),
    ] = None
    timezone: Annotated[
        TimeZone | None, Meta(description="`user` (default), or the time zone in which all times are shown.")
    ] = None
    refuse: Annotated[tuple[RefuseRule, ...] | None, Meta(description="Rules that refuse posted time.")] = None
    unmatched: Annotated[
        Annotated[Unmatched, Reads(choice(Unmatched))] | None,
        Meta(description="Whether a group that no sink accepts is refused or accepted; refuse by default."),
    ] = None
    lookups: Annotated[
        tuple[LookupSection, ...] | None, Meta(description="Rows of the target, looked up before any delivery.")
    ] = None
    narrative: NarrativeSection | None = None
    duration: DurationSection | None = None
    deliver: Annotated[tuple[SinkSection, ...] | None, Meta(description="Sinks, in order of delivery.")] = None
    keep: Annotated[Duration | None, Meta(description="How long delivered groups are kept whole; 60d by default.")] = (
        None
    )


class ServeSection(Model, frozen=True):
    """The long-running connector."""

    every: Annotated[Duration | None, Meta(description="How often manifests are applied; 5m by default.")] = None
    listen: Annotated[
        Listen | None, Meta(description="Address of /healthz, /readyz and /metrics; 127.0.0.1:8766 by default.")
    ] = None
