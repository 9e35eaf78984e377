"""One change → its details for people: labelled pieces of text; pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.render.escape import LONGEST, excerpts, quoted, visible
from syncengine.render.words import comma_list, instant
from syncengine.resource import Kind, Value

MANY_VALUES = 8
"""Values of a list that a detail shows."""


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
    """One detail of a change; `label` may be empty."""

    label: str
    spans: tuple[Span, ...]

    def __str__(self) -> str:
        text = "".join(span.text for span in self.spans)
        return f"{self.label}: {text}" if self.label else text


Details = tuple[ChangeDetail, ...]

REMARKS = {
    FieldEffect.APPLIES: "",
    FieldEffect.CREATE_ONLY: " (no effect on an existing type)",
    FieldEffect.IGNORED: " (cannot be cleared)",
}

BRIEF_FIELDS = {
    Kind.CATEGORY: ("label", "description"),
    Kind.ACTIVITY_TYPE: ("label", "description"),
    Kind.TAG: ("category", "tagCategoryId", "visibility", "description"),
}
"""Fields that describe a created resource, besides its name and keywords."""

_BARE = frozenset({"visibility", "category"})


def remark(text: str) -> ChangeDetail:
    return ChangeDetail("", (Span(visible(text), SpanMark.REMARK),))


def field_detail(change: FieldChange) -> ChangeDetail:
    """`description: "old" → "new"`; of lists, the added and removed items."""
    both = (change.before, change.after)
    spans = _list_spans(*both) if any(isinstance(value, tuple) for value in both) else _value_spans(change)
    remark = REMARKS[change.effect]
    return ChangeDetail(change.name, (*spans, Span(remark, SpanMark.REMARK)) if remark else spans)


def _value_spans(change: FieldChange) -> tuple[Span, ...]:
    before, after = change.before, change.after
    if isinstance(before, str) and isinstance(after, str):
        before, after = excerpts(before, after)
    return (
        Span(_shown(change.name, before), SpanMark.OLD),
        Span(" → "),
        Span(_shown(change.name, after), SpanMark.NEW),
    )


def _shown(name: str, value: Value | None) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return (name.endswith("Timestamp") and instant(value)) or str(value)
    if isinstance(value, tuple):
        return values(value)
    return visible(value) if name in _BARE and value else quoted(value)


def _list_spans(before: Value | None, after: Value | None) -> tuple[Span, ...]:
    old, new = _texts(before), _texts(after)
    old_items, new_items = set(old), set(new)
    spans = came_and_went([v for v in new if v not in old_items], [v for v in old if v not in new_items])
    return spans or (Span("only the order or repeats differ"),)


def _texts(value: Value | None) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return () if value is None else (str(value),)


def came_and_went(gains: Sequence[str], losses: Sequence[str]) -> tuple[Span, ...]:
    """`added "a", "b"; removed "c"`."""
    came = (Span("added "), Span(values(gains), SpanMark.NEW)) if gains else ()
    went = (Span("removed "), Span(values(losses), SpanMark.OLD)) if losses else ()
    return (*came, Span("; "), *went) if came and went else came or went


def values(texts: Sequence[str]) -> str:
    return comma_list([quoted(text) for text in texts], MANY_VALUES)


def created_details(change: Change, *, verbose: bool) -> Details:
    """The details of a new resource: in brief its best-known fields and who sees it, else every field."""
    brief = BRIEF_FIELDS[change.key.kind]
    fields = change.fields if verbose else sorted(_brief(change, brief), key=lambda f: brief.index(f.name))
    keywords = [keyword for keyword in change.keywords_added if keyword != change.key.name]
    return (
        *(ChangeDetail(f.name, (Span(_shown(f.name, _shortened(f, verbose)), SpanMark.NEW),)) for f in fields),
        *_some("keywords", (Span(values(keywords), SpanMark.NEW),) if keywords else ()),
        *metadata_details(change),
        *former_name(change),
        *reason(change),
    )


def _brief(change: Change, names: Sequence[str]) -> list[FieldChange]:
    """The fields of these names that say something."""
    return [f for f in change.fields if f.name in names and f.after not in (None, "")]


def _shortened(change: FieldChange, verbose: bool) -> Value | None:
    """The new value; in brief, only the beginning of a long text, since nothing in it differs from another."""
    value = change.after
    is_long = isinstance(value, str) and len(value) > LONGEST and change.name not in _BARE and not verbose
    return f"{value[: LONGEST - 1]}…" if is_long and isinstance(value, str) else value


def metadata_details(change: Change) -> Details:
    """The metadata of one resource: added, changed and deleted entries, in one place."""
    before = change.metadata_before
    new = [_pair(name, value) for name, value in change.metadata_set.items() if name not in before]
    different = [(name, before[name], value) for name, value in change.metadata_set.items() if name in before]
    deletions = [_pair(name, before[name]) if name in before else visible(name) for name in change.metadata_deleted]
    parts = [
        *(
            [(Span(("added " if before or deletions else "") + comma_list(new, MANY_VALUES), SpanMark.NEW),)]
            if new
            else []
        ),
        *(_metadata_change(*each) for each in different[:MANY_VALUES]),
        *([(Span(f"and {len(different) - MANY_VALUES:,} more"),)] if len(different) > MANY_VALUES else []),
        *([(Span("removed "), Span(comma_list(deletions, MANY_VALUES), SpanMark.OLD))] if deletions else []),
    ]
    return _some(
        "metadata", tuple(span for n, part in enumerate(parts) for span in (*((Span("; "),) if n else ()), *part))
    )


def _pair(name: str, value: str) -> str:
    return f"{visible(name)} = {quoted(value)}"


def _metadata_change(name: str, before: str, after: str) -> tuple[Span, ...]:
    old, new = excerpts(before, after)
    return (Span(f"{visible(name)} = "), Span(quoted(old), SpanMark.OLD), Span(" → "), Span(quoted(new), SpanMark.NEW))


def former_name(change: Change) -> Details:
    return _some("renamed from", (Span(visible(change.previously), SpanMark.OLD),) if change.previously else ())


def reason(change: Change) -> Details:
    return (remark(change.reason),) if change.reason else ()


def _some(label: str, spans: tuple[Span, ...]) -> Details:
    return (ChangeDetail(label, spans),) if spans else ()


def keywords_added(change: Change) -> Details:
    """Added keywords, where none is deleted: else they are shown beside those."""
    return () if change.keywords_deleted else _some("keywords", came_and_went(change.keywords_added, ()))


def keywords_deleted(change: Change) -> Details:
    """Deleted keywords, with the added ones."""
    both = came_and_went(change.keywords_added, change.keywords_deleted)
    return _some("keywords", both if change.keywords_deleted else ())


def metadata_deleted(change: Change) -> Details:
    """Deleted metadata, with the entries in their place."""
    return metadata_details(change) if change.metadata_deleted else ()


def opening(change: Change) -> Details:
    """PRIVATE → PUBLIC: everybody can read it from then on."""
    return tuple(field_detail(f) for f in change.fields if is_opening(f))


def cleared(change: Change) -> Details:
    return tuple(field_detail(f) for f in change.fields if f.clears)


def is_opening(field: FieldChange) -> bool:
    return (field.name, field.before, field.after) == ("visibility", "PRIVATE", "PUBLIC")


def takes(change: Change) -> bool:
    """Whether an update removes something or makes it public: that part is shown before the rest."""
    return bool(change.keywords_deleted or change.metadata_deleted or opening(change) or cleared(change))


def updated(change: Change) -> Details:
    """The details of an update besides its removals; empty if it has no others."""
    rest = (f for f in change.fields if not (is_opening(f) or f.clears))
    return (
        *former_name(change),
        *(field_detail(f) for f in rest),
        *keywords_added(change),
        *(() if change.metadata_deleted else metadata_details(change)),
    )


def removed_details(change: Change) -> Details:
    """The details of a resource that is removed."""
    if change.action is Action.RETIRE:
        return (*keywords_deleted(change), *reason(change))
    return reason(change)
