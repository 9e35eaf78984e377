"""The models of `sources:`, `postedTime:` and `serve:` in the project file (product.md §4, §8)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from syncengine.delivery_shapes import (
    Callback,
    Condition,
    File,
    Headers,
    JsonTemplate,
    Listen,
    Newline,
    Params,
    SinkName,
    Statuses,
    Template,
    TimeZone,
    WrittenFile,
    one_of,
    one_of_schema,
)
from syncengine.document.findings import INVALID, Findings
from syncengine.document.nodes import Mapping, Node
from syncengine.document.shapes import Flag, Reader, Reads, choice, whole_number
from syncengine.document.tables import Model, model_reader
from syncengine.setting_shapes import Duration, Method, Place, SecretReference, Span, UrlPath, WebUrl, web_url


class Mode(StrEnum):
    """How posted time comes."""

    FETCH = "fetch"
    WEBHOOK = "webhook"
    OFF = "off"


class Unmatched(StrEnum):
    """What becomes of a group that no sink takes."""

    REFUSE = "refuse"
    ACCEPT = "accept"


class DurationFrom(StrEnum):
    """What was posted, or what the rows come to."""

    TOTAL = "total"
    ROWS = "rows"


class Weighting(StrEnum):
    """Whether the user's experience weighting counts; an edited total is one that differs from the sum of its rows."""

    ALWAYS = "always"
    NEVER = "never"
    UNLESS_EDITED = "unless-edited"


class HttpSourceSection(Model):
    """An HTTP service that sinks and templates may name."""

    url: WebUrl = Field(description="Its URL, or {env: NAME} or {file: PATH} of one.")
    headers: Headers | None = Field(None, description="Sent with every request; credentials as {env} or {file}.")
    timeout: Duration | None = Field(None, description="How long an answer may take; 30s by default.")


def http_source(name: str) -> Reader:
    """A place, or a mapping that says more."""
    place_of, whole = web_url(name), model_reader(HttpSourceSection, name)

    def read(node: Node, findings: Findings) -> Any:
        if isinstance(node, Mapping) and any(key.text == "url" for key in node.keys):
            return whole(node, findings)
        url = place_of(node, findings)
        return INVALID if url is INVALID else HttpSourceSection.model_construct(url=url, headers=None, timeout=None)

    return read


_HTTP_SOURCE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": "^https?://"},
        {
            "type": "object",
            "properties": {
                **{name: {"type": "string"} for name in ("env", "file")},
                "url": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                "headers": {"type": "object"},
                "timeout": {"type": "string"},
            },
            "additionalProperties": False,
        },
    ]
}
HttpSource = Annotated[HttpSourceSection, Reads(http_source), WithJsonSchema(_HTTP_SOURCE_SCHEMA)]


class Source(Model):
    """A connection that sinks, lookups and manifests may name."""

    model_config = one_of_schema("sql", "http")

    sql: Place | None = Field(None, description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    http: HttpSource | None = Field(None, description="The URL of an HTTP service, or a reference.")


SourceSection = Annotated[Source, Reads(one_of(Source, "a source", ("sql", "http")))]


class LookupQuery(Model):
    """A query of a database."""

    model_config = one_of_schema("source", "url")

    source: Template | None = Field(None, description="A source of the project file.")
    url: Place | None = Field(None, description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    query: Template = Field(description="One SELECT with :names for its parameters.")
    params: Params | None = Field(None, description="A template for each name in the query.")


class SqlSink(Model):
    """A statement that delivers a group."""

    model_config = one_of_schema("source", "url")

    source: Template | None = Field(None, description="A source of the project file.")
    url: Place | None = Field(None, description="A SQLAlchemy URL without a password, a SQLite file, or a reference.")
    statement: Template = Field(description="One statement with :names for its parameters; never a template.")
    params: Params | None = Field(None, description="A template for each name in the statement.")
    receipts: Flag | None = Field(None, description="Keep our receipts in the target; without, at least once.")


class HttpSink(Model):
    """A request that delivers a group."""

    model_config = one_of_schema("source", "url")

    source: Template | None = Field(None, description="A source of the project file.")
    url: WebUrl | None = Field(None, description="The URL of the service, or a reference.")
    method: Method | None = Field(None, description="POST by default.")
    path: Template | None = Field(None, description="Below the URL; a template.")
    headers: Headers | None = Field(None, description="Templates, or {env} or {file}.")
    body: JsonTemplate | None = Field(None, alias="json", description="The body: JSON whose texts are templates.")
    health: UrlPath | None = Field(None, description="A path that answers 2xx to GET when the service is well.")
    timeout: Duration | None = Field(None, description="How long an answer may take; 30s by default.")


class JsonlSection(Model):
    """A file with one JSON object a line."""

    path: File = Field(description="Relative to the project's folder.")
    body: JsonTemplate | None = Field(None, alias="json", description="The line; the whole group by default.")


SqlQuery = Annotated[LookupQuery, Reads(one_of(LookupQuery, "`sql`", ("source", "url")))]
SqlSection = Annotated[SqlSink, Reads(one_of(SqlSink, "`sql`", ("source", "url")))]
HttpSection = Annotated[HttpSink, Reads(one_of(HttpSink, "`http`", ("source", "url")))]


class RefuseRule(Model):
    """What must not be posted."""

    when: Condition = Field(description="An expression; the group is refused where it holds.")
    message: Template = Field(description="Shown to the user who posted.")


class LookupSection(Model):
    """A row of the target, found before anything is delivered."""

    name: SinkName = Field(description="`lookup.NAME` in templates.")
    when: Condition | None = Field(None, description="Only where this holds; `lookup.NAME` is none elsewhere.")
    sql: SqlQuery
    missing: Template | None = Field(None, description="The sentence of the refusal when there is no row.")


class NarrativeSection(Model):
    """The text that tells what was done."""

    template: WrittenFile | None = Field(None, description="A template's file, relative to the project's folder.")
    max_length: Annotated[int, Reads(whole_number(0, 10_000_000)), Field(ge=0)] | None = Field(
        None, description="Longer text is cut; 0 (default): never."
    )
    newline: Newline | None = Field(None, description="Written for each end of a line.")


class DurationSection(Model):
    """How long it took."""

    from_: Annotated[DurationFrom, Reads(choice(DurationFrom))] | None = Field(
        None, alias="from", description="What the user posted (total, default), or the sum of its rows."
    )
    weighting: Annotated[Weighting, Reads(choice(Weighting))] | None = Field(
        None, description="Whether experienceWeightingPercent counts; unless-edited by default."
    )
    round_up_to: Span | None = Field(None, description="A unit to round up to, like 6m; 0s (default): none.")


class Sink(Model):
    """Where posted time goes. Its name stands in receipts and in `Idempotency-Key`: renaming it makes it another."""

    model_config = one_of_schema("sql", "http", "jsonl")

    name: SinkName = Field(description="In receipts and in `Idempotency-Key`.")
    when: Condition | None = Field(None, description="Only groups for which this expression holds.")
    sql: SqlSection | None = None
    http: HttpSection | None = None
    jsonl: JsonlSection | None = None
    external_id: Template | None = Field(None, description="Sent back to the service with SUCCESS.")
    refuse_on: Statuses | None = Field(None, description="More statuses that are the user's matter, not trouble.")
    refused: Template | None = Field(None, description="What the user is told when the sink refuses.")


SinkSection = Annotated[Sink, Reads(one_of(Sink, "a sink", ("sql", "http", "jsonl")))]


class WebhookSection(Model):
    """Where the service posts time to."""

    callback_url: Callback | None = Field(None, description="The public URL of this receiver.")
    caller_key: SecretReference | None = Field(None, description="What the service proves itself with.")
    bind: Listen | None = Field(None, description="HOST:PORT to listen on; 127.0.0.1:8080 by default.")
    max_body: Annotated[int, Reads(whole_number(1024, 1 << 30)), Field(ge=1024)] | None = Field(
        None, description="Bytes of the largest body that is read; 1048576 by default."
    )


class PostedTimeSection(Model):
    """Where posted time comes from and goes to."""

    mode: Annotated[Mode, Reads(choice(Mode))] | None = Field(None, description="fetch by default.")
    webhook: WebhookSection | None = None
    fetch_limit: Annotated[int, Reads(whole_number(1, 10_000)), Field(ge=1, le=10_000)] | None = Field(
        None, description="Groups asked for at once; 25 by default."
    )
    timezone: TimeZone | None = Field(None, description="`user` (default), or a zone that all times are shown in.")
    refuse: tuple[RefuseRule, ...] | None = Field(None, description="What must not be posted.")
    unmatched: Annotated[Unmatched, Reads(choice(Unmatched))] | None = Field(
        None, description="What becomes of a group that no sink takes; refuse by default."
    )
    lookups: tuple[LookupSection, ...] | None = Field(
        None, description="Rows of the target, found before any delivery."
    )
    narrative: NarrativeSection | None = None
    duration: DurationSection | None = None
    deliver: tuple[SinkSection, ...] | None = Field(None, description="Sinks, in order.")
    keep: Duration | None = Field(None, description="How long delivered groups are kept whole; 60d by default.")


class ServeSection(Model):
    """The long-running connector."""

    every: Duration | None = Field(None, description="How often manifests are applied; 5m by default.")
    listen: Listen | None = Field(None, description="Of /healthz, /readyz and /metrics; 127.0.0.1:9100 by default.")
