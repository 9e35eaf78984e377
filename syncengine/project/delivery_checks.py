"""Check that the names of sources, lookups and sinks of one environment agree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.model_reader import display
from syncengine.document.nodes import Mapping, at
from syncengine.document.template_types import Written
from syncengine.project.delivery_schema import (
    BIND,
    LISTEN,
    LookupSection,
    Mode,
    PostedTimeSection,
    ServeSection,
    SinkConfig,
    SourceConfig,
    WebhookSection,
)

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


def check_addresses(section: PostedTimeSection, serve: ServeSection, node: Mapping, findings: Collector) -> None:
    """Report a webhook receiver at the address of the probes, where only one of them can listen."""
    bind = (section.webhook and section.webhook.bind) or BIND
    listen = serve.listen or LISTEN
    if section.mode is Mode.WEBHOOK and _is_one_place(bind, listen):
        where = at(node, "webhook", "bind") or node.get("webhook") or node
        message = f"`serve` answers probes at {listen[0]}:{listen[1]} (`serve.listen`): choose another port"
        findings.error("bad-value", where, message)


def _is_one_place(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Return whether two addresses are one, as far as their text tells. Port 0 is any free port."""
    (host, port), (other_host, other_port) = one, other
    hosts = {LOOPBACK.get(host.lower(), host.lower()), LOOPBACK.get(other_host.lower(), other_host.lower())}
    return port == other_port != 0 and (len(hosts) == 1 or not hosts.isdisjoint(EVERYWHERE))


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
