"""Define the models of `sources:`, `postedTime:` and `serve:` in the project file, and what their parts must agree on.

Settings are explained in docs/project-file.md and docs/posted-time-settings.md.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.nodes import Mapping, at
from syncengine.document.validation import Model, OneOf, display, key_problems, problem
from syncengine.project.references import web_url_trouble
from syncengine.project.types import (
    WEB_URL_SCHEMA,
    Condition,
    Duration,
    FilePath,
    Flag,
    Headers,
    Identity,
    JsonTemplate,
    Method,
    OnlyTrue,
    OrFalse,
    Params,
    Place,
    SecretReference,
    SinkName,
    Span,
    Statuses,
    Template,
    TemplateFile,
    UrlPath,
    WebUrl,
    Whole,
    parsed,
)

PAGINGS = ("next", "page", "cursor", "offset", "link")
PAGING_NEEDS: dict[str, list[Any]] = {
    "cursor": ["at"],
    "at": ["cursor"],
    "limit": ["offset", "size"],
    "size": ["limit"],
}
"""The fields of `paging` that need others."""


class Paging(OneOf):
    """The paging of a long list: how its next page is requested."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {**PAGING_NEEDS}})
    kinds = PAGINGS

    next: Identity | None = Field(
        default=None, description="Path of the next page's URL in the answer, such as `links.next`."
    )
    page: Identity | None = Field(
        default=None, description="Query parameter for the page number; an empty page ends the list."
    )
    cursor: Identity | None = Field(
        default=None, description="Query parameter for the token of the next page, which the answer has `at`."
    )
    at: Identity | None = Field(
        default=None,
        description="Path of the next page's token in the answer, such as `nextPageToken`; without one it ends.",
    )
    offset: Identity | None = Field(
        default=None, description="Query parameter for the number of rows read so far; an empty page ends the list."
    )
    limit: Identity | None = Field(default=None, description="Query parameter for the number of rows of a page.")
    size: Annotated[int, Whole(1, 1_000_000)] | None = Field(
        default=None, description="Number of rows of a page, for `limit`."
    )
    link: OnlyTrue | None = Field(default=None, description='Follow the header `Link` with `rel="next"`.')
    first: Annotated[int, Whole(0, 1_000_000)] | None = Field(
        default=None, description="Number of the first page, 1 by default; or the first offset, 0 by default."
    )

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Paging:
        missing = {
            name: [f"`{other}`" for other in PAGING_NEEDS.get(name, ()) if getattr(self, other) is None]
            for name in self.model_fields_set
        }
        if any(missing.values()):
            words = {name: f"needs {' and '.join(others)} beside it" for name, others in missing.items() if others}
            raise key_problems({name: problem("missing-field", each) for name, each in words.items()})
        return self


USER = "user"
"""The value of `timezone` that selects the time zone of the user who posted the time."""

_LISTEN = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")


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
Listen = Annotated[
    tuple[str, int],
    parsed(listen, "HOST:PORT, like 127.0.0.1:8766"),
    WithJsonSchema({"type": "string", "pattern": f"^{_LISTEN.pattern}$"}),
]
Newline = Annotated[
    str,
    parsed(newline, 'a line break, like "\\r\\n" or <br>'),
    WithJsonSchema({"type": "string", "maxLength": 20}),
]
TimeZone = Annotated[
    str,
    parsed(time_zone, "`user` or the name of a time zone like Europe/Vienna"),
    WithJsonSchema({"type": "string"}),
]
Callback = Annotated[
    str,
    parsed(callback, "a URL that starts with https:// (or http://), without credentials"),
    WithJsonSchema(WEB_URL_SCHEMA),
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


class HttpSourceSection(Model):
    """An HTTP service that sinks and templates may name."""

    url: WebUrl = Field(description="The service's URL, or a reference to it: {env: NAME} or {file: PATH}.")
    headers: Headers | None = Field(
        default=None, description="Sent with every request; write credentials as {env} or {file}."
    )
    timeout: Duration | None = Field(default=None, description="How long an answer may take; 30s by default.")


def _in_full(value: Any) -> Any:
    """Return an HTTP source as a mapping: a URL, or a reference to one, may stand alone."""
    return value if isinstance(value, dict) and "url" in value else {"url": value}


HttpSource = Annotated[HttpSourceSection, BeforeValidator(_in_full, json_schema_input_type=WebUrl | HttpSourceSection)]


class SourceConfig(OneOf):
    """A connection that sinks, lookups and manifests may name."""

    title = "a source"
    kinds = ("sql", "http")

    sql: Place | None = Field(
        default=None, description="A SQLAlchemy URL without a password, a SQLite file, or a reference."
    )
    http: HttpSource | None = Field(default=None, description="The URL of an HTTP service, or a reference.")


class InDatabase(OneOf):
    """A statement in a database: of a source, or at a URL of its own."""

    kinds = ("source", "url")

    source: Template | None = Field(default=None, description="A source of the project file.")
    url: Place | None = Field(
        default=None, description="A SQLAlchemy URL without a password, a SQLite file, or a reference."
    )


class LookupQuery(InDatabase):
    """A database query that finds a row of the target."""

    query: Template = Field(description="One SELECT with :names for its parameters.")
    params: Params | None = Field(default=None, description="A template for each parameter of the query.")


class SqlSinkConfig(InDatabase):
    """A statement that delivers a group."""

    statement: Template = Field(description="One statement with :names for its parameters; never a template.")
    params: Params | None = Field(default=None, description="A template for each name in the statement.")
    receipts: Flag | None = Field(
        default=None, description="Keep receipts in the target; without them, delivery is at least once."
    )
    allow_no_row: Flag | None = Field(
        default=None, description="Take a statement that changes no row for a delivery; refused by default."
    )


class FindConfig(Model):
    """A request that finds the entry of a group in the receiver, after an attempt of unknown end."""

    method: Method | None = Field(default=None, description="The HTTP method; GET by default.")
    path: Template | None = Field(
        default=None, description="The path below the source's URL; a template. For a sink with a `source`."
    )
    url: WebUrl | None = Field(
        default=None, description="The URL to ask, or a reference. For a sink with a `url` of its own."
    )
    query: Params | None = Field(
        default=None,
        description="Query parameters; templates. `reference` must be equal to the one with `group.groupId`.",
    )
    entries: Template = Field(description='The list in the answer, such as "{{ response.time_entries }}".')
    reference: Template = Field(description='The reference of an `entry`, such as "{{ entry.external_reference.id }}".')
    external_id: Template | None = Field(
        default=None, description="Sent to the service as external id of an entry that is found."
    )
    after: Duration | None = Field(
        default=None,
        description="When to ask, since the end of the last attempt; the sink's timeout and 60s by default.",
    )
    paging: Paging | None = None


class HttpSinkConfig(OneOf):
    """A request that delivers a group."""

    kinds = ("source", "url")

    source: Template | None = Field(default=None, description="A source of the project file.")
    url: WebUrl | None = Field(default=None, description="The URL of the service, or a reference.")
    method: Method | None = Field(default=None, description="The HTTP method; POST by default.")
    path: Template | None = Field(default=None, description="The path below the URL; a template.")
    headers: Headers | None = Field(default=None, description="Headers of the request: templates, {env} or {file}.")
    body: JsonTemplate | None = Field(
        default=None, description="The body: JSON whose texts are templates.", alias="json"
    )
    health: UrlPath | None = Field(
        default=None, description="A path that answers 2xx to GET when the service is healthy."
    )
    timeout: Duration | None = Field(default=None, description="How long an answer may take; 30s by default.")
    find: FindConfig | None = Field(
        default=None, description="Ask for a group's entry before the group is sent again; without it, at least once."
    )


class JsonlSection(Model):
    """A file with one JSON object per line."""

    path: FilePath = Field(description="The file's path, relative to the project's folder.")
    body: JsonTemplate | None = Field(
        default=None, description="The object to write; the whole group by default.", alias="json"
    )


class CsvSection(Model):
    """A CSV file with one record per group below a header."""

    path: FilePath = Field(description="The file's path, relative to the project's folder.")
    columns: Params = Field(description="A template for each column of the header, in order.")


class RefuseRule(Model):
    """A rule that refuses posted time."""

    when: Condition = Field(description="An expression; a group for which it is true is refused.")
    message: Template = Field(description="The message shown to the user who posted the time.")


class LookupSection(Model):
    """A row of the target that is looked up before any delivery."""

    name: SinkName = Field(description="The lookup's name; its row is `lookup.NAME` in templates.")
    when: Condition | None = Field(
        default=None, description="Look up only if this expression is true; otherwise `lookup.NAME` is none."
    )
    sql: LookupQuery
    missing: Template | None = Field(default=None, description="The message of the refusal when no row is found.")


class NarrativeSection(Model):
    """The text that describes the work of a group."""

    template: TemplateFile | None = Field(
        default=None, description="The template file, relative to the project's folder."
    )
    max_length: Annotated[int, Whole(0, 10_000_000)] | None = Field(
        default=None, description="Maximum characters; longer text is cut. 0 (default) means no limit."
    )
    newline: Newline | None = Field(default=None, description="Text that replaces each line break.")
    summary: Flag | None = Field(
        default=None,
        description="Whether the built-in narrative ends with a summary of the durations;"
        " by default, ADD_SUMMARY_TO_NARRATIVE of the registration decides.",
    )


class DurationSection(Model):
    """How the duration is computed."""

    from_: DurationFrom | None = Field(
        default=None, description="The posted total (total, default), or the sum of the rows (rows).", alias="from"
    )
    weighting: Weighting | None = Field(
        default=None, description="Whether experienceWeightingPercent counts; unless-edited by default."
    )
    round_up_to: Span | None = Field(default=None, description="A unit to round up to, like 6m; 0s (default): off.")


SINKS: dict[str, type[Model]] = {
    "sql": SqlSinkConfig,
    "http": HttpSinkConfig,
    "jsonl": JsonlSection,
    "csv": CsvSection,
}
"""The model of each kind of sink, by the field of `SinkConfig`. A sink has exactly one of them."""
FILES = {JsonlSection: ("path",), CsvSection: ("path",)}
"""The fields that name the files which a sink writes: they hold posted time, so no template may read them."""


class SinkConfig(OneOf):
    """A target of posted time. Receipts and `Idempotency-Key` contain its name, so renaming it creates a new sink."""

    title = "a sink"
    kinds = SINKS

    name: SinkName = Field(description="The name of the sink in receipts and in `Idempotency-Key`.")
    when: Condition | None = Field(default=None, description="Deliver only groups for which this expression is true.")
    each: Each | None = Field(
        default=None,
        description="tag: a group with several tags is delivered once for each tag, with its share of the duration;"
        " `when`, lookups and narrative are evaluated for that tag."
        " Without it, such a group is refused unless `tags` is used.",
    )
    sql: SqlSinkConfig | None = None
    http: HttpSinkConfig | None = None
    jsonl: JsonlSection | None = None
    csv: CsvSection | None = None
    external_id: Template | None = Field(default=None, description="Sent to the service with SUCCESS as external id.")
    refuse_on: Statuses | None = Field(
        default=None, description="Additional HTTP statuses that count as a refusal, not as a failure."
    )
    trouble_on: Statuses | None = Field(
        default=None,
        description="Additional HTTP statuses that count as a failure, not as a refusal: 404 of an ingress.",
    )
    refused: Template | None = Field(default=None, description="The message shown to the user when the sink refuses.")


class WebhookSection(Model):
    """The webhook receiver to which the service posts time."""

    callback_url: Callback | None = Field(default=None, description="The public URL of this receiver.")
    caller_key: SecretReference | None = Field(
        default=None, description="The key that the service sends to authenticate itself."
    )
    bind: Listen | None = Field(default=None, description="HOST:PORT to listen on; 127.0.0.1:8080 by default.")
    max_body: Annotated[int, Whole(1024, 1 << 30)] | None = Field(
        default=None, description="Maximum size of a request body in bytes; 1048576 by default."
    )


class PostedTimeSection(Model):
    """Where posted time comes from and where it is delivered."""

    mode: Annotated[Mode, OrFalse()] | None = Field(
        default=None, description="How posted time arrives; fetch by default."
    )
    webhook: WebhookSection | None = None
    fetch_limit: Annotated[int, Whole(1, 10_000)] | None = Field(
        default=None, description="Groups to request at once; 25 by default."
    )
    timezone: TimeZone | None = Field(
        default=None, description="`user` (default), or the time zone in which all times are shown."
    )
    refuse: tuple[RefuseRule, ...] | None = Field(default=None, description="Rules that refuse posted time.")
    unmatched: Unmatched | None = Field(
        default=None, description="Whether a group that no sink accepts is refused or accepted; refuse by default."
    )
    lookups: tuple[LookupSection, ...] | None = Field(
        default=None, description="Rows of the target, looked up before any delivery."
    )
    narrative: NarrativeSection | None = None
    duration: DurationSection | None = None
    deliver: tuple[SinkConfig, ...] | None = Field(default=None, description="Sinks, in order of delivery.")
    keep: Duration | None = Field(default=None, description="How long delivered groups are kept whole; 60d by default.")


class ServeSection(Model):
    """The long-running connector."""

    every: Duration = Field(default=300.0, description="How often manifests are applied; 5m by default.")
    listen: Listen = Field(
        default=("127.0.0.1", 8766), description="Address of /healthz, /readyz and /metrics; 127.0.0.1:8766 by default."
    )


# --- what the parts of one environment must agree on

LOOPBACK = {"localhost": "127.0.0.1"}
EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - recognised, not bound
LONGEST_OF_TAGS = 38
"""Maximum characters in the name of a sink with `each: tag`: receipts (63 characters) append a digest of the tag."""


def check_names(
    sources: dict[str, SourceConfig], section: PostedTimeSection, node: Mapping, findings: Collector
) -> None:
    """Report unknown or mismatched sources, duplicate names, and settings that `mode` requires but the section lacks.

    `node` is the `postedTime` section as parsed.
    """
    sinks, lookups = section.deliver or (), section.lookups or ()
    references = [(lookup.sql.source, "sql") for lookup in lookups]
    for sink in sinks:
        references += [(part.source, kind) for kind, part in (("sql", sink.sql), ("http", sink.http)) if part]
        if sink.each is not None and len(sink.name.text) > LONGEST_OF_TAGS:
            message = f"the name of a sink with `each: tag` must be at most {LONGEST_OF_TAGS} characters"
            findings.at("bad-value", sink.name.line, sink.name.column, message)
    for written, kind in references:
        if written is None:
            continue
        name, source = display(written.text), sources.get(written.text)
        if source is None:
            none = "" if sources else "; the project file has no `sources:`"
            message = f"there is no source `{name}`{suggestion(written.text, sorted(sources)) or none}"
            findings.at("unknown-source", written.line, written.column, message)
        elif getattr(source, kind) is None:
            message = f"the source `{name}` is not of the kind `{kind}`"
            findings.at("unknown-source", written.line, written.column, message)
    met = set[tuple[str, str]]()
    for what, each in [*(("sink", sink.name) for sink in sinks), *(("lookup", lookup.name) for lookup in lookups)]:
        if (what, each.text) in met:
            message = f"there are two {what}s named `{each.text}`"
            findings.at("duplicate-name", each.line, each.column, message)
        met.add((what, each.text))
    if section.mode is Mode.WEBHOOK:
        webhook = section.webhook or WebhookSection()
        where, needs = node.get("webhook") or node.get("mode") or node, "`postedTime.mode: webhook` needs"
        if webhook.callback_url is None:
            findings.error("missing-field", where, f"{needs} `postedTime.webhook.callbackUrl`")
        if webhook.caller_key is None:
            why = "without it, anybody could post time"
            findings.error("missing-field", where, f"{needs} `postedTime.webhook.callerKey`: {why}")


def check_addresses(section: PostedTimeSection, serve: ServeSection, node: Mapping, findings: Collector) -> None:
    """Report a webhook receiver at the address of the probes, where only one of them can listen.

    Addresses are compared as far as their text tells.
    """
    if section.mode is not Mode.WEBHOOK:
        return
    (host, port), (probes, other) = (section.webhook and section.webhook.bind) or BIND, serve.listen
    hosts = {LOOPBACK.get(name.lower(), name.lower()) for name in (host, probes)}
    if port == other != 0 and (len(hosts) == 1 or not hosts.isdisjoint(EVERYWHERE)):  # 0 is any free port
        where = at(node, "webhook", "bind") or node.get("webhook") or node
        message = f"`serve` answers probes at {probes}:{other} (`serve.listen`): choose another port"
        findings.error("bad-value", where, message)
