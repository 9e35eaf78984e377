"""One change → its labelled values, by which changes are compared and which are shown; and the words for them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, structs

from syncengine.instants import instant
from syncengine.manifest.schema import INSTANTS
from syncengine.plan.diff import Action, FieldEffect
from syncengine.render.escape import LONGEST, excerpts, quoted, unusual_letters, visible
from syncengine.render.formats import ChangeItem, FieldChangeItem, KeywordChange, MetadataChange, NoteItem
from syncengine.render.words import comma_list, count_of
from syncengine.resource import Kind, Value, is_blank


class ValuePart(StrEnum):
    """The part of a change that a value belongs to, which decides how the value is shown and compared.

    `LOST` keywords are only counted in a row of many, so they are compared more roughly than other values.
    """

    FIELD = "field"
    KEYWORDS = "keywords"
    METADATA = "metadata"
    FORMER = "renamed from"
    OPENED = "makes public"
    REMARK = "remark"
    LOST = "lost"


class ChangeValue(Struct, frozen=True, gc=False):
    """One value of a change. `KEYWORDS` have what is lost before and what is gained after; `note` is a remark."""

    part: ValuePart
    label: str
    before: Value | None
    after: Value | None
    note: str = ""


Values = tuple[ChangeValue, ...]

REMARKS = {
    FieldEffect.APPLIES: "",
    FieldEffect.CREATE_ONLY: " (no effect on existing activity types)",
    FieldEffect.IGNORED: " (cannot be cleared)",
}


def created(change: ChangeItem) -> Values:
    """Return the values of a new resource: its keywords are those besides a tag's own name, unless it excludes that."""
    words, name = change.keywords.add, change.name
    if name in words and not any(each.name == "excludeTagNameKeyword" and each.after for each in change.fields):
        words = tuple([word for word in words if word != name])
    return (
        *_former_names(change),
        *((ChangeValue(ValuePart.KEYWORDS, "keywords", None, words),) if words else ()),
        *_fields(change.fields),
        *_metadata(change),
        *reason(change),
    )


def updated(change: ChangeItem) -> Values:
    """Return the values of an update without those that the sections of its removals show."""
    return (
        *_former_names(change),
        *_fields(f for f in change.fields if not (f is change.opening or f.clears)),
        *(() if change.keywords.delete else _keywords(change)),
        *(() if change.metadata.delete else _metadata(change)),
    )


def keywords_deleted(change: ChangeItem) -> Values:
    return _keywords(change) if change.keywords.delete else ()


def metadata_deleted(change: ChangeItem) -> Values:
    return tuple(_metadata(change)) if change.metadata.delete else ()


def cleared(change: ChangeItem) -> Values:
    return tuple(_fields(f for f in change.fields if f.clears))


def opened(before: Value | None, change: ChangeItem) -> Values:
    """Return the values of a tag that becomes public and had this visibility `before`; nothing for other changes."""
    way = change.opening
    if way is None or way.before != before:
        return ()
    name, names = change.name, change.opens
    others = tuple(each for each in names if each != name)
    return (
        *_fields([way]),
        *((ChangeValue(ValuePart.OPENED, "name", names if len(names) > 1 else names[0], name),) if others else ()),
    )


def removed(change: ChangeItem, *, tags: int = 0) -> Values:
    """Return by what removals are alike: reason, lost keywords, file, and the nature of the content.

    `tags` is the number of those that a category takes along. Numbers are alike up to the next power of two.
    """
    content, lost = change.before or {}, change.keywords.delete
    visibility = content.get("visibility")
    counted = {
        "keywords": () if lost else content.get("keywords"),
        "metadata": content.get("metadata"),
    }
    sizes = {name: len(each) if isinstance(each, tuple | Mapping) else 0 for name, each in counted.items()}
    sizes["tags"] = tags
    return (
        *reason(change),
        *((ChangeValue(ValuePart.LOST, "", None, lost),) if lost else ()),
        *((ChangeValue(ValuePart.REMARK, "file", None, change.source.file),) if change.source else ()),
        *((ChangeValue(ValuePart.FIELD, "visibility", None, visibility),) if isinstance(visibility, str) else ()),
        *(ChangeValue(ValuePart.FIELD, name, None, size.bit_length()) for name, size in sizes.items() if size),
    )


def reason(change: ChangeItem) -> Values:
    return (ChangeValue(ValuePart.REMARK, "", None, change.reason),) if change.reason else ()


def note_values(note: NoteItem) -> Values:
    return (ChangeValue(ValuePart.REMARK, note.kind, None, note.message),)


def _fields(changes: Iterable[FieldChangeItem]) -> Iterator[ChangeValue]:
    return (ChangeValue(ValuePart.FIELD, f.name, f.before, f.after, REMARKS[f.effect]) for f in changes)


def _keywords(change: ChangeItem) -> Values:
    """Return a keyword and its replacement as two texts, or else the lost and the gained keywords as lists."""
    gains, losses = change.keywords.add, change.keywords.delete
    if len(gains) == len(losses) == 1:
        return (ChangeValue(ValuePart.KEYWORDS, "keyword", losses[0], gains[0]),)
    return (ChangeValue(ValuePart.KEYWORDS, "keywords", losses, gains),) if gains or losses else ()


def _metadata(change: ChangeItem) -> Iterator[ChangeValue]:
    before = change.metadata.before
    for name, value in change.metadata.set.items():
        yield ChangeValue(ValuePart.METADATA, name, before.get(name), value)
    for name in change.metadata.delete:
        yield ChangeValue(ValuePart.METADATA, name, before.get(name, ""), None)


def _former_names(change: ChangeItem) -> Values:
    """Return the former names of a renamed resource, and its name; several names are compared with several alone."""
    names, note = change.merges or change.previously, " (several)" if change.merges else ""
    return (ChangeValue(ValuePart.FORMER, "name", names, change.name, note),) if names else ()


def unusual(values: Values) -> Details:
    """Return a remark that names the invisible and confusable letters of new texts and of list items, if any."""
    texts: list[str] = []
    for value in values:
        before, after = value.before, value.after
        if (
            isinstance(after, str)
            and not after.isascii()
            and set(after) - set(before if isinstance(before, str) else "")
        ):
            texts.append(after)
        elif isinstance(after, tuple) or isinstance(before, tuple):
            texts.extend(set(_texts(after)) ^ set(_texts(before)))
    letters = dict.fromkeys(letter for text in sorted(texts) for letter in unusual_letters(text))
    return (remark(f"contains {', '.join(letters)}"),) if letters else ()


# --- words


class Room(NamedTuple):
    """The number of letters of a value, and of values of a list, that a detail shows; `None` shows all."""

    letters: int | None
    values: int | None


BRIEF = Room(LONGEST, 8)  # one line of most terminals
MANY_ITEMS = Room(LONGEST, 40)
"""The room of an update: short values, but so many items that hardly any change needs more."""
WIDE = Room(240, 40)  # an odd resource is read whole, but no text of pages
ALL = Room(None, None)


class SpanMark(StrEnum):
    """The kind of a piece of text. HTML uses the values as class names."""

    OLD = "old"
    NEW = "new"
    TEXT = "text"
    REMARK = "remark"


class Span(NamedTuple):
    text: str
    mark: SpanMark = SpanMark.TEXT


Spans = tuple[Span, ...]


class ChangeDetail(NamedTuple):
    """One detail of a change: a label, which may be empty, and pieces of text."""

    label: str
    spans: Spans

    def __str__(self) -> str:
        text = "".join(span.text for span in self.spans)
        return f"{self.label}: {text}" if self.label else text


Details = tuple[ChangeDetail, ...]

BRIEF_FIELDS = {
    Kind.CATEGORY: ("label", "description"),
    Kind.ACTIVITY_TYPE: ("label", "description"),
    Kind.TAG: ("visibility", "category", "tagCategoryId", "description"),
}
"""The fields that describe a new resource in short, besides its name and keywords."""

RETIRE = Action.RETIRE.word
_BARE = frozenset({"visibility", "category"})


def remark(text: str) -> ChangeDetail:
    return ChangeDetail("", (Span(visible(text), SpanMark.REMARK),))


def value_details(values: Sequence[ChangeValue], room: Room, *, fresh: bool = False) -> Details:
    """Return a detail for each value, and one for all metadata; `fresh` resources are new and have no old values."""
    metadata, found = [value for value in values if value.part is ValuePart.METADATA], list[ChangeDetail]()
    for value in values:
        if value.part is not ValuePart.METADATA:
            found.append(_detail(value, room, fresh=fresh))
        elif value is metadata[0]:
            found.append(ChangeDetail("metadata", _metadata_spans(metadata, room)))
    return tuple(found)


def _detail(value: ChangeValue, room: Room, *, fresh: bool) -> ChangeDetail:
    part, label, before, note = value.part, value.label, value.before, value.note
    if part in (ValuePart.FORMER, ValuePart.OPENED):  # all names, however many: each is a tag that somebody misses
        names = visible(before) if part is ValuePart.FORMER and isinstance(before, str) else listed(_texts(before), ALL)
        return ChangeDetail(part.value, (Span(names, SpanMark.OLD),))
    spans = exact_spans(value, ALL if fresh and label in _BARE else room, fresh=fresh)
    label = "keywords" if part is ValuePart.KEYWORDS else label
    return ChangeDetail(label, (*spans, Span(note, SpanMark.REMARK)) if note else spans)


def exact_spans(value: ChangeValue, room: Room, *, fresh: bool) -> Spans:
    """Return the value of one resource: before and after, or the value alone of a `fresh` one, which is new."""
    part, before, after = value.part, value.before, value.after
    if part is ValuePart.REMARK:
        return remark(str(after)).spans
    if fresh and before is None:
        text = listed(after, room) if isinstance(after, tuple) else shown(_field_name(value), after, room)
        return (Span(text, SpanMark.NEW),)
    if part is ValuePart.KEYWORDS:
        return came_and_went(_texts(after), _texts(before), room)
    return value_spans(_field_name(value), before, after, room)


def _field_name(value: ChangeValue) -> str:
    return value.label if value.part is ValuePart.FIELD else ""


def value_spans(name: str, before: Value | None, after: Value | None, room: Room) -> Spans:
    """Return the old and the new value: the differing parts of long texts, the differing items of lists."""
    if isinstance(before, tuple) or isinstance(after, tuple):
        old, new = _texts(before), _texts(after)
        old_items, new_items = set(old), set(new)
        spans = came_and_went([v for v in new if v not in old_items], [v for v in old if v not in new_items], room)
        return spans or (Span("only order or duplicates differ"),)
    if isinstance(before, str) and isinstance(after, str) and room.letters is not None:
        before, after = excerpts(before, after, room.letters)
    return (
        Span(shown(name, before, ALL), SpanMark.OLD),
        Span(" → "),
        Span(shown(name, after, ALL), SpanMark.NEW),
    )


def shown(name: str, value: object, room: Room) -> str:
    """Return the value of a field as text that is safe to show; `name` is empty for what is not a field."""
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return (name in INSTANTS and instant(value)) or str(value)
    if isinstance(value, tuple):
        return listed(value, room)
    text = str(value)
    if room.letters is not None and len(text) > room.letters:
        text = f"{text[: room.letters - 1]}…"
    return visible(text) if name in _BARE and text else quoted(text)


def _texts(value: Value | None) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return () if value is None else (str(value),)


def came_and_went(
    gains: Sequence[str], losses: Sequence[str], room: Room, show: Callable[[str], str] = quoted
) -> Spans:
    """Return added and removed items: `added "a", "b"; removed "c"`."""
    came = (Span("added "), Span(_joined(list(map(show, gains)), room), SpanMark.NEW)) if gains else ()
    went = (Span("removed "), Span(_joined(list(map(show, losses)), room), SpanMark.OLD)) if losses else ()
    return (*came, Span("; "), *went) if came and went else came or went


def listed(texts: Iterable[str], room: Room) -> str:
    return _joined([quoted(text) for text in texts], room)


def _joined(texts: Sequence[str], room: Room) -> str:
    return ", ".join(texts) if room.values is None else comma_list(texts, room.values)


def _metadata_spans(values: Sequence[ChangeValue], room: Room) -> Spans:
    """Return the added, changed and deleted metadata entries of one resource."""
    new = [f"{visible(v.label)} = {quoted(str(v.after))}" for v in values if v.before is None]
    different = [v for v in values if v.before is not None and v.after is not None]
    lost = [
        f"{visible(v.label)} = {quoted(str(v.before))}" if v.before else visible(v.label)
        for v in values
        if v.after is None
    ]
    added = "added " if different or lost else ""
    parts: list[Spans] = [(Span(added + _joined(new, room), SpanMark.NEW),)] if new else []
    for value in different[: room.values]:
        parts.append((Span(f"{visible(value.label)} = "), *value_spans("", value.before, value.after, room)))
    if room.values is not None and len(different) > room.values:
        parts.append((Span(f"and {len(different) - room.values:,} more"),))
    if lost:
        parts.append((Span("removed "), Span(_joined(lost, room), SpanMark.OLD)))
    return tuple(span for n, part in enumerate(parts) for span in (*((Span("; "),) if n else ()), *part))


def created_details(change: ChangeItem, room: Room, *, whole: bool) -> Details:
    """Return the details of a new resource: its best-known fields, and any others that `room` has; all if `whole`."""
    values = created(change)
    if whole:
        return value_details(values, room, fresh=True)
    names = BRIEF_FIELDS[change.kind]
    fields = [value for value in values if value.part is ValuePart.FIELD]
    brief = sorted(
        (v for v in fields if v.label in names and v.after not in (None, "")), key=lambda v: names.index(v.label)
    )
    others = [value for value in fields if value.after is not False and value not in brief]
    if len(others) == 1 or room is ALL:  # a count of one takes as much room as the field itself
        brief, others = [*brief, *others], []
    # A line is cut at its end: former names and visibility, for which somebody may be sorry, come first.
    first = [v for v in values if v.part is ValuePart.FORMER] + [v for v in brief if v.label == "visibility"]
    words = [v for v in values if v.part is ValuePart.KEYWORDS]
    rest = [v for v in values if v.part in (ValuePart.METADATA, ValuePart.REMARK)]
    shown = dict.fromkeys((*first, *words, *brief, *rest))
    found = value_details(tuple(shown), room, fresh=True)
    left_out = ChangeDetail("", (Span(f"… {count_of(len(others), 'more field')}"),))
    return (*found, left_out) if others else found


def removed_details(change: ChangeItem, room: Room) -> Details:
    """Return the details of a removed resource: the deleted keywords of a retired tag, the reason, and its content."""
    lost = keywords_deleted(change) if change.action == RETIRE else ()
    return (*value_details((*lost, *reason(change)), room), *removed_content(change, room))


def removed_content(change: ChangeItem, room: Room = BRIEF) -> Details:
    """Return what is recorded of a removed resource, as a new one is shown, without a retired tag's keywords."""
    fields, words = dict[str, Value](), tuple[str, ...]()
    metadata: Mapping[str, str] = {}
    for name, value in (change.before or {}).items():
        if isinstance(value, Mapping):
            metadata = value
        elif name == "keywords" and change.kind is Kind.TAG and isinstance(value, tuple):
            words = () if change.action == RETIRE else value
        elif value is not None and value is not False and not is_blank(value):
            fields[name] = value
    was = structs.replace(
        change,
        fields=[FieldChangeItem(name, None, value, FieldEffect.APPLIES) for name, value in fields.items()],
        keywords=KeywordChange(words, ()),
        metadata=MetadataChange(metadata, ()),
        previously=None,
        merges=(),
        reason=None,
    )
    return tuple(
        each._replace(spans=tuple(s._replace(mark=SpanMark.OLD) if s.mark is SpanMark.NEW else s for s in each.spans))
        for each in created_details(was, room, whole=room is not BRIEF)
    )


def keywords_in_all(lists: Sequence[Sequence[str]]) -> Details:
    """Return the number of keywords that many tags lose, and their names or those of the first tag as an example."""
    if not any(lists):
        return ()
    is_same = len({*map(frozenset, lists)}) == 1
    count = count_of(sum(map(len, lists)), "keyword")
    words = Span(listed(lists[0], BRIEF), SpanMark.OLD)
    return (ChangeDetail("", (Span(f"{count} deleted{': ' if is_same else ', e.g. '}"), words)),)
