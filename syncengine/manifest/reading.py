"""bytes of one manifest → what it declares, as plain values that a cache can keep; pure.

A boring file is read by `document.plain`, any other by the full reader, which alone finds faults. Places of parts of
a resource are not kept: the few that a report needs are looked up again (`nodes_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from syncengine.document import plain
from syncengine.document.findings import Findings
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import MAX_BYTES, read
from syncengine.document.text import decoded
from syncengine.errors import Diagnostic
from syncengine.manifest.containment import compared_parts
from syncengine.manifest.declarations import Declarations, Declared, DefaultValues, declarations, merged
from syncengine.manifest.lints import broad, cut_texts, folded, report, report_broad
from syncengine.manifest.neighbours import (
    closed_with_keywords,
    is_closed_with_keywords,
    public_by_silence,
    public_by_silence_told,
)
from syncengine.manifest.schema import IDENTITIES, NEVER_FIELDS, PLAIN_SECTIONS, RESOURCE_TABLES, SECTIONS
from syncengine.resource import Body, Key, Kind, Removal, Resource, Source

NO_DEFAULTS = DefaultValues()
SMALL = 8_000
"""Bytes below which a file is read sooner than the expressions for it are compiled."""


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """One resource as its file declares it, over its defaults; `column` of its first key.

    Of one that is not `sound` only key, place, category and former names are known.
    """

    resource: Resource
    column: int
    sound: bool = True


class RemovedEntry(Struct, frozen=True, gc=False, array_like=True):
    """A line of a `removed` section and its column."""

    key: Key
    how: Removal
    line: int
    column: int
    reason: str | None = None


class DefaultCategory(Struct, frozen=True, gc=False, array_like=True):
    """A category that a default refers to, and where."""

    category: str
    line: int
    column: int


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """All of one file. `whole`: everything that it declares has a readable identity."""

    file: str
    entries: tuple[Entry, ...] = ()
    removed: tuple[RemovedEntry, ...] = ()
    default_categories: tuple[DefaultCategory, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    whole: bool = True


class Compared(NamedTuple):
    """What is compared with other files without a look at each resource, as lines of text.

    `names` are the folded names that tags have, had or leave under, `words` their folded keywords,
    `parts` what those are made of.
    """

    names: str
    words: str
    parts: str = ""


def read_manifest(data: bytes, file: str, defaults: DefaultValues = NO_DEFAULTS) -> Reading:
    """What the file declares over the project's `defaults`."""
    return _boring(data, file, defaults) or _in_full(data, file, defaults)


def nodes_of(data: bytes, file: str) -> dict[Key, MappingNode]:
    """The first node of each resource, to find places in."""
    findings = Findings(file)
    found: dict[Key, MappingNode] = {}
    for declared in declarations(read(data, findings), findings).resources:
        if declared.key is not None:
            found.setdefault(declared.key, declared.node)
    return found


# --- boring files


def _boring(data: bytes, file: str, defaults: DefaultValues) -> Reading | None:
    if not SMALL <= len(data) <= MAX_BYTES:
        return None
    unheard = Findings(file)
    text = decoded(data, unheard)
    found = None if text is None else plain.read(text, PLAIN_SECTIONS)
    if found is None or (under := _plain_defaults(found.defaults, file, defaults)) is None:
        return None
    entries = []
    for item in found.items:
        entry = _plain_entry(item, file, under[SECTIONS[item.section]])
        if entry is None:
            return None
        entries.append(entry)
    if public_by_silence([e.resource for e in entries if e.resource.key.kind is Kind.TAG]):
        return None
    return Reading(file, tuple(entries))


def _plain_defaults(
    section: plain.Slice | None, file: str, defaults: DefaultValues
) -> Mapping[Kind, Mapping[str, Any]] | None:
    """What is under each kind's resources; None where places matter."""
    if section is None:
        return {kind: defaults.values.get(kind, {}) for kind in Kind}
    findings = Findings(file)
    documents = read(section.in_place().encode(), findings)
    own = declarations(documents, findings).defaults.values
    if findings.found or documents.cut or "category" in own.get(Kind.TAG, {}):
        return None
    return _under(defaults, own)


def _plain_entry(item: plain.Item, file: str, defaults: Mapping[str, Any]) -> Entry | None:
    kind, own = SECTIONS[item.section], item.values
    name = own.get(IDENTITIES[kind])
    values = merged(defaults, own) if defaults else own
    if name is None or not _BESIDES_IDENTITY[kind] <= values.keys() or ("tagCategoryId" in own and "category" in own):
        return None
    key = Key(kind, name)
    body = _BODIES[kind](key, values)
    if kind is Kind.TAG and (broad(body.keywords) or is_closed_with_keywords(body)):
        return None
    return Entry(Resource(key, body, Source(file, item.line), values.get("protect", False)), item.column)


# --- any file


def _in_full(data: bytes, file: str, defaults: DefaultValues) -> Reading:
    findings = Findings(file)
    documents = read(data, findings)
    declared = declarations(documents, findings)
    cut_texts(documents.cut, findings)
    under = _under(defaults, declared.defaults.values)
    entries = tuple(entry for each in declared.resources if (entry := _entry(each, under[each.kind], findings)))
    _report_silence(entries, declared, findings)
    return Reading(
        file=file,
        entries=entries,
        removed=tuple(RemovedEntry(r.key, r.how, *place(r.node), r.reason) for r in declared.removed),
        default_categories=tuple(default_categories(declared.defaults)),
        found=tuple(findings.found),
        whole=declared.whole,
    )


def _report_silence(entries: Sequence[Entry], declared: Declarations, findings: Findings) -> None:
    silent = public_by_silence([e.resource for e in entries if e.sound and e.resource.key.kind is Kind.TAG])
    nodes = {each.key: each.node for each in declared.resources} if silent else {}
    for tag in silent:
        report(tag.key, public_by_silence_told(tag), nodes[tag.key], findings)


def _under(project: DefaultValues, own: Mapping[Kind, Mapping[str, Any]]) -> dict[Kind, Mapping[str, Any]]:
    return {kind: merged(project.values.get(kind, {}), own.get(kind, {})) for kind in Kind}


def _entry(declared: Declared, defaults: Mapping[str, Any], findings: Findings) -> Entry | None:
    key, node = declared.key, declared.node
    values = merged(defaults, declared.values) if defaults else declared.values
    absent = _BESIDES_IDENTITY[declared.kind].difference(values)
    if absent:
        RESOURCE_TABLES[declared.kind].missing({*values, IDENTITIES[declared.kind]}, node, findings)
    if key is None:
        return None
    line, column = place(node)
    source = Source(findings.file, line)
    former = _former(declared)
    if not declared.sound or absent:
        return Entry(Resource(key, _category_only(declared.values), source, previously=former), column, sound=False)
    body = _BODIES[key.kind](key, values)
    if key.kind is Kind.TAG:
        report_broad(key, body.keywords, node, findings)
        if is_closed_with_keywords(body):
            report(key, closed_with_keywords(body), node.get("closedTimestamp") or node, findings)
    return Entry(Resource(key, body, source, values.get("protect", False), former), column)


def entries_of(declared: Declarations, findings: Findings) -> list[Entry | None]:
    """Each resource over the defaults of its own file; None where its identity cannot be read."""
    under = _under(NO_DEFAULTS, declared.defaults.values)
    return [_entry(each, under[each.kind], findings) for each in declared.resources]


def _former(declared: Declared) -> tuple[str, ...]:
    listed = declared.node.get("previously")
    if not isinstance(listed, SequenceNode):
        return ()
    return tuple(dict.fromkeys(item.text for item in listed.items if isinstance(item, Scalar)))


def _category_only(values: Mapping[str, Any]) -> Body:
    category = values.get("category")
    return Body({"category": category} if isinstance(category, str) else {})


def default_categories(defaults: DefaultValues) -> Iterable[DefaultCategory]:
    """The categories that defaults of tags refer to, with their places."""
    for node in defaults.nodes.get(Kind.TAG, ()):
        value = node.get("category")
        if isinstance(value, Scalar) and not value.is_null and value.text:
            yield DefaultCategory(value.text, *place(value))


# --- what is compared


def compared(reading: Reading) -> Compared:
    """What other files must be compared with."""
    tags = [e.resource for e in reading.entries if e.resource.key.kind is Kind.TAG]
    names = [tag.key.name for tag in tags]
    names += [former for tag in tags for former in tag.previously]
    names += [line.key.name for line in reading.removed]
    words = _words(tags)
    return Compared(_folded_lines("\n".join(names)), words, compared_parts(tags, words))


def _words(tags: Sequence[Resource]) -> str:
    """Each tag's own spellings of a keyword count once."""
    lines = _folded_lines("\n".join(["\n".join(tag.body.keywords) for tag in tags if tag.body.keywords]))
    listed = lines.split("\n")
    if len(set(listed)) == len(listed):
        return lines
    return "\n".join(word for tag in tags for word in dict.fromkeys(map(folded, tag.body.keywords)))


def _folded_lines(lines: str) -> str:
    """Folded all at once where that is the same."""
    return lines.casefold() if lines.isascii() else "\n".join(map(folded, lines.split("\n")))


# --- bodies


def _tag_body(key: Key, values: Mapping[str, Any]) -> Body:
    """engine.md 2.3: effective keywords; 2.4: whether the name is excluded is always explicit."""
    name, excluded = key.name, values.get("excludeTagNameKeyword", False)
    keywords: tuple[str, ...] = values.get("keywords", ())
    if not excluded and name not in keywords:
        keywords = (*keywords, name)
    fields = {n: v for n, v in values.items() if n not in _NOT_TAG_FIELDS}
    fields["excludeTagNameKeyword"] = excluded
    return Body(fields, keywords, values.get("metadata", {}))


def _plain_body(key: Key, values: Mapping[str, Any]) -> Body:
    not_fields = {IDENTITIES[key.kind], "protect", "previously"}
    return Body({n: v for n, v in values.items() if n not in not_fields})


_BESIDES_IDENTITY = {kind: table.required - {IDENTITIES[kind]} for kind, table in RESOURCE_TABLES.items()}
_NOT_TAG_FIELDS = NEVER_FIELDS | {IDENTITIES[Kind.TAG]}
_BODIES = {Kind.TAG: _tag_body, Kind.CATEGORY: _plain_body, Kind.ACTIVITY_TYPE: _plain_body}
