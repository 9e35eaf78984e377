"""Shapes of a group of changes → the group's details for people, and an example; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from syncengine.render.arrangement import AlikeGroup
from syncengine.render.change_aspects import ADDED, METADATA, REMOVED
from syncengine.render.change_details import (
    ALL,
    WIDE,
    ChangeDetail,
    Details,
    Room,
    Span,
    SpanMark,
    came_and_went,
    remark,
    shown,
    value_spans,
)
from syncengine.render.escape import quoted, visible
from syncengine.render.value_shapes import Aspect, Parameters, ValueShape
from syncengine.resource import Value

FEW_VALUES = 3
"""The largest number of different old values that are listed when all became the same value."""

Spans = tuple[Span, ...]


def group_details(group: AlikeGroup, *, fresh: bool) -> Details:
    """Return one detail for each shape, with all its values; `fresh` resources are new and show no old values."""
    return tuple(
        _detail(label, note, _spans(group, place, shape, fresh))
        for place, (label, note, shape) in enumerate(group.shapes)
        if shape
    )


def example_of(name: str, group: AlikeGroup, *, fresh: bool) -> str:
    """Return an example: the first member's values for the shapes that do not fix the values themselves."""
    parts = [
        str(_detail(each.label, "", _exact(aspect, fresh, WIDE)))
        for each, aspect in zip(group.shapes, group.example, strict=True)
        if each.shape and each.shape.rule != "same"
    ]
    if len(group.shapes) == 1 and parts:
        parts = [parts[0].partition(": ")[2] or parts[0]]
    return f"e.g. {visible(name)}: {'; '.join(parts)}" if parts else ""


def _detail(label: str, note: str, spans: Spans) -> ChangeDetail:
    noted = (*spans, Span(note, SpanMark.REMARK)) if note else spans
    return ChangeDetail("keywords" if label in (ADDED, REMOVED) else visible(label), noted)


def _spans(group: AlikeGroup, place: int, shape: ValueShape, fresh: bool) -> Spans:
    label = group.shapes[place].label
    if shape.rule == "same":
        return _exact(group.example[place], fresh, ALL)
    if shape.rule == "set":
        old = _various(label, group.before(place))
        return (*old, Span(" → "), Span(_shown(label, shape.parameters[0]), SpanMark.NEW))
    if shape.rule == "dated":
        return _range(label, str(shape.parameters[0]), [at for at in group.after(place) if isinstance(at, int)])
    if shape.rule == "named items":
        return _named_items(shape.parameters, lost=label == REMOVED)
    return WORDS[shape.rule](shape.parameters)


def _exact(aspect: Aspect, fresh: bool, room: Room) -> Spans:
    """Return the exact values of an aspect."""
    label = aspect.label
    if label in (ADDED, REMOVED) and isinstance(aspect.after, tuple):
        return came_and_went(aspect.after, (), room) if label == ADDED else came_and_went((), aspect.after, room)
    if not label:
        return remark(_text(aspect.after)).spans
    if fresh and aspect.before is None:
        return (Span(shown(_field(label), aspect.after, room), SpanMark.NEW),)
    return value_spans(_field(label), aspect.before, aspect.after, room)


def _field(label: str) -> str:
    """Return the field name that decides how a value is shown; empty for metadata, whose names are the user's."""
    return "" if label.startswith(METADATA) else label


def _shown(label: str, value: object) -> str:
    return shown(_field(label), value, ALL)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _various(label: str, before: Iterable[Value | None]) -> Spans:
    """Return the values that became the same value, or `various values` when there are many."""
    values = dict.fromkeys(before)
    if len(values) > FEW_VALUES:
        return (Span("various values", SpanMark.REMARK),)
    return (Span(", ".join(_shown(label, value) for value in values), SpanMark.OLD),)


def _range(label: str, way: str, instants: Sequence[int]) -> Spans:
    first, last = (shown(label, at, ALL) for at in (min(instants), max(instants)))
    return (Span(f"{way}, ", SpanMark.REMARK), Span(first if first == last else f"{first} to {last}", SpanMark.NEW))


def _quoted(text: object) -> str:
    return quoted(_text(text))


def _new(sign: str, text: object, where: str = "") -> Spans:
    return (Span(sign), Span(_quoted(text), SpanMark.NEW), *_where(where))


def _old(text: object, where: str) -> Spans:
    return (Span("- "), Span(_quoted(text), SpanMark.OLD), *_where(where))


def _where(where: str) -> Spans:
    return (Span(f" ({where})", SpanMark.REMARK),) if where else ()


def _replacement(parameters: Parameters) -> Spans:
    old, new = parameters
    return (Span(_quoted(old), SpanMark.OLD), Span(" → "), Span(_quoted(new), SpanMark.NEW), *_where("in the text"))


def _moved_items(parameters: Parameters) -> Spans:
    gains, losses = (tuple(map(str, each)) if isinstance(each, tuple) else () for each in parameters)
    return came_and_went(gains, losses, ALL)


def _own_name(parts: Sequence[object]) -> str:
    """Return the parts of a text with `its name` between them: `"https://pms/" + its name`."""
    return " + its name + ".join(_quoted(part) for part in parts).replace('"" + ', "").replace(' + ""', "")


def _named_items(parameters: Parameters, *, lost: bool) -> Spans:
    items = parameters[0] if isinstance(parameters[0], tuple) else ()
    word, mark = ("removed ", SpanMark.OLD) if lost else ("added ", SpanMark.NEW)
    return (Span(word), Span(", ".join(_own_name(parts) for parts in items), mark))


WORDS: Mapping[str, Callable[[Parameters], Spans]] = {
    "appended": lambda p: _new("+ ", p[0]),
    "prepended": lambda p: _new("+ ", p[0], "at the start"),
    "shortened": lambda p: _old(p[0], "at the end"),
    "beheaded": lambda p: _old(p[0], "at the start"),
    "replaced": _replacement,
    "cased": lambda p: (Span(_text(p[0]), SpanMark.NEW),),
    "items": _moved_items,
    "named": lambda p: (Span(_own_name(p), SpanMark.NEW),),
}
"""The words for shapes that their parameters describe completely."""
