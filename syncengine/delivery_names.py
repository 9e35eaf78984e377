"""Sources, lookups and sinks of one environment → what their names do not agree in; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncengine.delivery_file import LookupSection, Mode, PostedTimeSection, Sink, Source
from syncengine.delivery_shapes import Written
from syncengine.document.findings import Findings, suggestion
from syncengine.document.tables import shown


def check_names(sources: dict[str, Source], section: PostedTimeSection, findings: Findings) -> None:
    """That every source is there and of the right kind, that no name is given twice, and what a mode needs."""
    for written, kind in _references(section):
        _check_source(written, kind, sources, findings)
    for what, named in (("sink", section.deliver or ()), ("lookup", section.lookups or ())):
        _check_unique(what, named, findings)
    webhook = section.webhook
    if section.mode is Mode.WEBHOOK and (webhook is None or webhook.callback_url is None):
        findings.at("missing-field", None, None, "`postedTime.mode: webhook` needs `postedTime.webhook.callbackUrl`")


def _references(section: PostedTimeSection) -> Iterator[tuple[Written | None, str]]:
    for lookup in section.lookups or ():
        yield lookup.sql.source, "sql"
    for sink in section.deliver or ():
        for kind, part in (("sql", sink.sql), ("http", sink.http)):
            if part is not None:
                yield part.source, kind


def _check_source(written: Written | None, kind: str, sources: dict[str, Source], findings: Findings) -> None:
    if written is None:
        return
    source = sources.get(written.text)
    if source is None:
        hint = suggestion(written.text, sorted(sources)) or ("" if sources else "; the project file has no `sources:`")
        message = f"there is no source `{shown(written.text)}`{hint}"
        findings.at("unknown-source", written.line, written.column, message)
    elif getattr(source, kind) is None:
        message = f"the source `{shown(written.text)}` is not of the kind `{kind}`"
        findings.at("unknown-source", written.line, written.column, message)


def _check_unique(what: str, named: Iterable[Sink | LookupSection], findings: Findings) -> None:
    met = set[str]()
    for section in named:
        if section.name.text in met:
            message = f"there are two {what}s named `{section.name.text}`"
            findings.at("duplicate-name", section.name.line, section.name.column, message)
        met.add(section.name.text)
