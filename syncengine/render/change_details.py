"""One change → its details for people: labelled pieces of text; pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from syncengine.document.instants import instant
from syncengine.manifest.schema import INSTANTS
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect, appearance
from syncengine.render.escape import LONGEST, excerpts, quoted, visible
from syncengine.render.words import comma_list, count_of
from syncengine.resource import Body, Key, Kind, Value, is_blank


class Room(NamedTuple):
    """The number of letters of a value, and of values of a list, that a detail shows; `None` shows all."""

    letters: int | None
    values: int | None

    def cut(self, text: str) -> str:
        """Return the text, or the beginning of a long one."""
        return text if self.letters is None or len(text) <= self.letters else f"{text[: self.letters - 1]}…"


BRIEF = Room(LONGEST, 8)
MANY_ITEMS = Room(LONGEST, 40)
"""The room of an update: short values, but so many items that hardly any change needs more."""
WIDE = Room(240, 40)
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


class ChangeDetail(NamedTuple):
    """One detail of a change: a label, which may be empty, and pieces of text."""

    label: str
    spans: tuple[Span, ...]

    def __str__(self) -> str:
        text = "".join(span.text for span in self.spans)
        return f"{self.label}: {text}" if self.label else text


Details = tuple[ChangeDetail, ...]

REMARKS = {
    FieldEffect.APPLIES: "",
    FieldEffect.CREATE_ONLY: " (no effect on existing activity types)",
    FieldEffect.IGNORED: " (cannot be cleared)",
}

BRIEF_FIELDS = {
    Kind.CATEGORY: ("label", "description"),
    Kind.ACTIVITY_TYPE: ("label", "description"),
    Kind.TAG: ("category", "tagCategoryId", "visibility", "description"),
}
"""The fields that describe a new resource in short, besides its name and keywords."""

_BARE = frozenset({"visibility", "category"})

_NO_NAME = FieldChange("excludeTagNameKeyword", None, True)


def remark(text: str) -> ChangeDetail:
    return ChangeDetail("", (Span(visible(text), SpanMark.REMARK),))


def field_detail(change: FieldChange, room: Room = BRIEF) -> ChangeDetail:
    """Return `description: "old" → "new"`, or the added and removed items of a list."""
    spans = value_spans(change.name, change.before, change.after, room)
    remark = REMARKS[change.effect]
    return ChangeDetail(change.name, (*spans, Span(remark, SpanMark.REMARK)) if remark else spans)


def value_spans(name: str, before: Value | None, after: Value | None, room: Room) -> tuple[Span, ...]:
    """Return the old and the new value: the differing parts of long texts, the differing items of lists."""
    if isinstance(before, tuple) or isinstance(after, tuple):
        return _list_spans(before, after, room)
    if isinstance(before, str) and isinstance(after, str) and room.letters is not None:
        before, after = excerpts(before, after, room.letters)
    return (
        Span(shown(name, before, ALL), SpanMark.OLD),
        Span(" → "),
        Span(shown(name, after, ALL), SpanMark.NEW),
    )


def shown(name: str, value: object, room: Room) -> str:
    """Return the value of a field as text that is safe to show."""
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return (name in INSTANTS and instant(value)) or str(value)
    if isinstance(value, tuple):
        return values(value, room)
    text = room.cut(str(value))
    return visible(text) if name in _BARE and text else quoted(text)


def _list_spans(before: Value | None, after: Value | None, room: Room) -> tuple[Span, ...]:
    old, new = _texts(before), _texts(after)
    old_items, new_items = set(old), set(new)
    spans = came_and_went([v for v in new if v not in old_items], [v for v in old if v not in new_items], room)
    return spans or (Span("only order or duplicates differ"),)


def _texts(value: Value | None) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return () if value is None else (str(value),)


def came_and_went(gains: Sequence[str], losses: Sequence[str], room: Room = BRIEF) -> tuple[Span, ...]:
    """Return added and removed items: `added "a", "b"; removed "c"`."""
    came = (Span("added "), Span(values(gains, room), SpanMark.NEW)) if gains else ()
    went = (Span("removed "), Span(values(losses, room), SpanMark.OLD)) if losses else ()
    return (*came, Span("; "), *went) if came and went else came or went


def values(texts: Sequence[str], room: Room) -> str:
    return _listed([quoted(text) for text in texts], room)


def _listed(texts: Sequence[str], room: Room) -> str:
    return ", ".join(texts) if room.values is None else comma_list(texts, room.values)


def created_details(change: Change, room: Room = BRIEF, *, whole: bool = False) -> Details:
    """Return the details of a new resource: its best-known fields, and any others that `room` has; all if `whole`."""
    fields = change.fields if whole else _short(change, room)
    keywords = other_words(change)
    return (
        *(ChangeDetail(f.name, (Span(_first_value(f, room), SpanMark.NEW),)) for f in fields),
        *_some("keywords", (Span(values(keywords, room), SpanMark.NEW),) if keywords else ()),
        *metadata_details(change, room),
        *former_names(change),
        *reason(change),
        *_left_out(change, fields),
    )


def other_words(change: Change) -> tuple[str, ...]:
    """Return the keywords of a new resource without a tag's own name, unless the tag excludes its name."""
    words, name = change.keywords_added, change.key.name
    if name not in words or _NO_NAME in change.fields:
        return words
    place = words.index(name)
    return words[:place] + words[place + 1 :]


def _short(change: Change, room: Room) -> Sequence[FieldChange]:
    """Return the best-known fields of a new resource, and the others if there is only one or room for all."""
    names = BRIEF_FIELDS[change.key.kind]
    fields = sorted(_brief(change, names), key=lambda f: names.index(f.name))
    others = _others(change, fields)
    return (*fields, *others) if len(others) == 1 or room is ALL else fields


def _others(change: Change, fields: Sequence[FieldChange]) -> Sequence[FieldChange]:
    """Return the fields of a change that are not in `fields`, without flags that are false by default."""
    return [f for f in change.fields if f.after is not False and f not in fields]


def _left_out(change: Change, fields: Sequence[FieldChange]) -> Details:
    count = len(_others(change, fields))
    return _some("", (Span(f"… {count_of(count, 'more field')}"),) if count else ())


def _brief(change: Change, names: Sequence[str]) -> list[FieldChange]:
    """Return the fields with one of `names` whose new value is not empty."""
    return [f for f in change.fields if f.name in names and f.after not in (None, "")]


def _first_value(change: FieldChange, room: Room) -> str:
    """Return the value of a new resource's field; only the beginning of a long text."""
    return shown(change.name, change.after, ALL if change.name in _BARE else room)


def metadata_details(change: Change, room: Room = BRIEF) -> Details:
    """Return the added, changed and deleted metadata entries of one resource as one detail."""
    before = change.metadata_before
    new = [_pair(name, value) for name, value in change.metadata_set.items() if name not in before]
    different = [(name, before[name], value) for name, value in change.metadata_set.items() if name in before]
    deletions = [_pair(name, before[name]) if name in before else visible(name) for name in change.metadata_deleted]
    added = "added " if before or deletions else ""
    parts = [
        *([(Span(added + _listed(new, room), SpanMark.NEW),)] if new else []),
        *(_metadata_change(*each, room) for each in different[: room.values]),
        *_more(len(different), room),
        *([(Span("removed "), Span(_listed(deletions, room), SpanMark.OLD))] if deletions else []),
    ]
    return _some(
        "metadata", tuple(span for n, part in enumerate(parts) for span in (*((Span("; "),) if n else ()), *part))
    )


def _more(count: int, room: Room) -> list[tuple[Span, ...]]:
    if room.values is None or count <= room.values:
        return []
    return [(Span(f"and {count - room.values:,} more"),)]


def _pair(name: str, value: str) -> str:
    return f"{visible(name)} = {quoted(value)}"


def _metadata_change(name: str, before: str, after: str, room: Room) -> tuple[Span, ...]:
    return (Span(f"{visible(name)} = "), *value_spans("", before, after, room))


def former_names(change: Change) -> Details:
    """Return all former names of a renamed resource, however many; nothing for other changes."""
    if change.previously is None:
        return ()
    shown_names = values(change.merges, ALL) if change.merges else visible(change.previously)
    return _some("renamed from", (Span(shown_names, SpanMark.OLD),))


def reason(change: Change) -> Details:
    return (remark(change.reason),) if change.reason else ()


def _some(label: str, spans: tuple[Span, ...]) -> Details:
    return (ChangeDetail(label, spans),) if spans else ()


def keywords_added(change: Change, room: Room = BRIEF) -> Details:
    """Return the added keywords; nothing when keywords are also deleted, because both are then shown together."""
    return () if change.keywords_deleted else _some("keywords", came_and_went(change.keywords_added, (), room))


def keywords_deleted(change: Change, room: Room = BRIEF) -> Details:
    """Return the deleted keywords together with the added ones; nothing when none is deleted."""
    both = came_and_went(change.keywords_added, change.keywords_deleted, room)
    return _some("keywords", both if change.keywords_deleted else ())


def keywords_in_all(lists: Sequence[Sequence[str]]) -> Details:
    """Return the number of keywords that many tags lose, and their names or those of the first tag as an example."""
    if not any(lists):
        return ()
    is_same = len({*map(frozenset, lists)}) == 1
    count = count_of(sum(map(len, lists)), "keyword")
    words = Span(values(lists[0], BRIEF), SpanMark.OLD)
    return (ChangeDetail("", (Span(f"{count} deleted{': ' if is_same else ', e.g. '}"), words)),)


def metadata_deleted(change: Change, room: Room = BRIEF) -> Details:
    """Return the metadata changes of one resource; nothing when no entry is deleted."""
    return metadata_details(change, room) if change.metadata_deleted else ()


def opening(change: Change, room: Room = BRIEF) -> Details:
    """Return the details of a tag that becomes public; nothing for other changes.

    All names of private tags that a rename makes public are shown, however many.
    """
    opened, own = change.opening, (change.key.name,)
    opens = () if change.opens == own else change.opens or ()
    names = _some("makes public", (Span(values(opens, ALL), SpanMark.OLD),) if opens else ())
    return (*([field_detail(opened, room)] if opened else []), *names)


def cleared(change: Change, room: Room = BRIEF) -> Details:
    return tuple(field_detail(f, room) for f in change.fields if f.clears)


def takes(change: Change) -> bool:
    """Return whether an update removes something or makes it public, which is shown in a section of its own."""
    return bool(
        change.keywords_deleted
        or change.metadata_deleted
        or change.opening is not None
        or any(f.clears for f in change.fields)
    )


def updated(change: Change, room: Room = BRIEF) -> Details:
    """Return the details of an update without its removals; empty when it only removes."""
    rest = (f for f in change.fields if not (f is change.opening or f.clears))
    return (
        *former_names(change),
        *(field_detail(f, room) for f in rest),
        *keywords_added(change, room),
        *(() if change.metadata_deleted else metadata_details(change, room)),
    )


def removed_details(change: Change, room: Room = BRIEF) -> Details:
    """Return the details of a removed resource: the deleted keywords of a retired tag, the reason, and its content."""
    lost = keywords_deleted(change, room) if change.action is Action.RETIRE else ()
    return (*lost, *reason(change), *removed_content(change, room))


def removed_content(change: Change, room: Room = BRIEF) -> Details:
    """Return what is recorded of a removed resource, without the deleted keywords of a retired tag."""
    return _content(change.key, change.removed, room, change.action) if change.removed else ()


def _content(key: Key, body: Body, room: Room, action: Action) -> Details:
    """Return a recorded content in the order in which a new one is shown."""
    keywords = action is not Action.RETIRE
    says = {name: value for name, value in body.fields.items() if value is not False and not is_blank(value)}
    was = appearance(key, Body(says, body.keywords if keywords else (), body.metadata), None)
    shown = created_details(was, room, whole=room is not BRIEF)
    return tuple(each._replace(spans=tuple(map(_as_old, each.spans))) for each in shown)


def _as_old(span: Span) -> Span:
    return span._replace(mark=SpanMark.OLD) if span.mark is SpanMark.NEW else span
