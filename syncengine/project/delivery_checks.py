"""Check that the names of sources, lookups and sinks of one environment agree. Pure."""

from __future__ import annotations

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.nodes import Mapping, at
from syncengine.document.validation import display
from syncengine.project.delivery_schema import (
    BIND,
    LookupSection,
    Mode,
    PostedTimeSection,
    ServeSection,
    SinkConfig,
    SourceConfig,
    WebhookSection,
)
from syncengine.project.types import Written

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

    def refuse(code: str, written: Written, message: str) -> None:
        findings.at(code, written.line, written.column, message)

    references = [(lookup.sql.source, "sql") for lookup in section.lookups or ()]
    for sink in section.deliver or ():
        references += [(part.source, kind) for kind, part in (("sql", sink.sql), ("http", sink.http)) if part]
        if sink.each is not None and len(sink.name.text) > LONGEST_OF_TAGS:
            message = f"the name of a sink with `each: tag` must be at most {LONGEST_OF_TAGS} characters"
            refuse("bad-value", sink.name, message)
    for written, kind in references:
        source = sources.get(written.text) if written else None
        if written is not None and source is None:
            hint = suggestion(written.text, sorted(sources)) or (
                "" if sources else "; the project file has no `sources:`"
            )
            refuse("unknown-source", written, f"there is no source `{display(written.text)}`{hint}")
        elif written is not None and getattr(source, kind) is None:
            refuse("unknown-source", written, f"the source `{display(written.text)}` is not of the kind `{kind}`")
    groups: tuple[tuple[str, tuple[SinkConfig | LookupSection, ...]], ...]
    groups = (("sink", section.deliver or ()), ("lookup", section.lookups or ()))
    for what, named in groups:
        met = set[str]()
        for each in named:
            if each.name.text in met:
                refuse("duplicate-name", each.name, f"there are two {what}s named `{each.name.text}`")
            met.add(each.name.text)
    webhook = section.webhook or WebhookSection()
    where = node.get("webhook") or node.get("mode") or node
    if section.mode is Mode.WEBHOOK and webhook.callback_url is None:
        findings.error("missing-field", where, "`postedTime.mode: webhook` needs `postedTime.webhook.callbackUrl`")
    if section.mode is Mode.WEBHOOK and webhook.caller_key is None:
        why = "without it, anybody could post time"
        findings.error(
            "missing-field", where, f"`postedTime.mode: webhook` needs `postedTime.webhook.callerKey`: {why}"
        )


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
