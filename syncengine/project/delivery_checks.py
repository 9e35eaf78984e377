"""Check that the names of sources, lookups and sinks of one environment agree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.model_reader import display
from syncengine.document.nodes import Mapping
from syncengine.document.template_types import Written
from syncengine.project.delivery_schema import (
    LookupSection,
    Mode,
    PostedTimeSection,
    SinkConfig,
    SourceConfig,
    WebhookSection,
)

LONGEST_OF_TAGS = 38
"""Maximum characters in the name of a sink with `each: tag`: receipts (63 characters) append a digest of the tag."""


def check_names(
    sources: dict[str, SourceConfig], section: PostedTimeSection, node: Mapping, findings: Collector
) -> None:
    """Report unknown or mismatched sources, duplicate names, and settings that `mode` requires but the section lacks.

    `node` is the `postedTime` section as parsed.
    """
    for written, kind in _references(section):
        _check_source(written, kind, sources, findings)
    for sink in section.deliver or ():
        _check_length(sink, findings)
    for what, named in (("sink", section.deliver or ()), ("lookup", section.lookups or ())):
        _check_unique(what, named, findings)
    if section.mode is Mode.WEBHOOK:
        _check_webhook(section.webhook or WebhookSection(), node, findings)


def _check_webhook(webhook: WebhookSection, node: Mapping, findings: Collector) -> None:
    at = node.get("webhook") or node.get("mode") or node
    if webhook.callback_url is None:
        findings.error("missing-field", at, "`postedTime.mode: webhook` needs `postedTime.webhook.callbackUrl`")
    if webhook.caller_key is None:
        why = "without it, anybody could post time"
        findings.error("missing-field", at, f"`postedTime.mode: webhook` needs `postedTime.webhook.callerKey`: {why}")


def _references(section: PostedTimeSection) -> Iterator[tuple[Written | None, str]]:
    for lookup in section.lookups or ():
        yield lookup.sql.source, "sql"
    for sink in section.deliver or ():
        for kind, part in (("sql", sink.sql), ("http", sink.http)):
            if part is not None:
                yield part.source, kind


def _check_source(written: Written | None, kind: str, sources: dict[str, SourceConfig], findings: Collector) -> None:
    if written is None:
        return
    source = sources.get(written.text)
    if source is None:
        hint = suggestion(written.text, sorted(sources)) or ("" if sources else "; the project file has no `sources:`")
        message = f"there is no source `{display(written.text)}`{hint}"
        findings.at("unknown-source", written.line, written.column, message)
    elif getattr(source, kind) is None:
        message = f"the source `{display(written.text)}` is not of the kind `{kind}`"
        findings.at("unknown-source", written.line, written.column, message)


def _check_length(sink: SinkConfig, findings: Collector) -> None:
    if sink.each is not None and len(sink.name.text) > LONGEST_OF_TAGS:
        message = f"the name of a sink with `each: tag` must be at most {LONGEST_OF_TAGS} characters"
        findings.at("bad-value", sink.name.line, sink.name.column, message)


def _check_unique(what: str, named: Iterable[SinkConfig | LookupSection], findings: Collector) -> None:
    met = set[str]()
    for section in named:
        if section.name.text in met:
            message = f"there are two {what}s named `{section.name.text}`"
            findings.at("duplicate-name", section.name.line, section.name.column, message)
        met.add(section.name.text)
