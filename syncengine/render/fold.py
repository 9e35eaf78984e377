"""The values of many changes → groups of resources to which the same was done, the odd ones apart; pure.

What was done to a value is an `Edit`: with the resource's name and the old value it gives the new value, so one row
with one example describes a whole group and no other change can hide in it. Exceptions are a date that moved, for which
the row shows the range, and lost keywords, which are only counted. A value without an edit that others share stands
alone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from syncengine.instants import instant
from syncengine.render.escape import quoted, shared_length, visible
from syncengine.render.values import (
    ALL,
    WIDE,
    ChangeDetail,
    ChangeValue,
    Details,
    Span,
    SpanMark,
    Spans,
    ValuePart,
    Values,
    came_and_went,
    exact_spans,
    shown,
)
from syncengine.resource import Value

ALIKE = 3
"""The smallest number of values with the same edit: two may be alike by chance."""

SAME = 6
"""The smallest number of resources that are folded into one row: a row and its example take as much room as three."""

MANY = 20
"""The number of rows that people read one by one."""


class OwnName(NamedTuple):
    """A text with the resource's own name between its parts."""

    parts: tuple[str, ...]


Pattern = Value | OwnName | tuple[str | OwnName, ...] | None
"""A value in which the resource's own name is masked."""


class Edit(NamedTuple):
    """What was done to a value. `is_rough` edits do not describe the new value, and only serve to find odd ones."""

    kind: str
    old: Pattern = None
    new: Pattern = None
    is_rough: bool = False


_Column = tuple[list[int], list[Value | None], list[Value | None]]
"""The values of one name: the numbers of their resources, each value before, and after."""


class EditedValue(NamedTuple):
    """A value of all resources of a group. `edit` is `None` where each has its own."""

    part: ValuePart
    label: str
    note: str
    edit: Edit | None


class AlikeGroup(NamedTuple):
    """The numbers of the resources to which the same was done."""

    values: tuple[EditedValue, ...]
    members: Sequence[int]

    @property
    def is_described(self) -> bool:
        """Whether one row can describe all changes of the group."""
        return all(value.edit and not value.edit.is_rough for value in self.values)


class Arrangement(NamedTuple):
    """All resources of a section by number. Each odd or single one becomes a row, and so does each group."""

    odd: Sequence[int]
    odd_groups: Sequence[AlikeGroup]
    groups: Sequence[AlikeGroup]
    singles: Sequence[int]


def arranged(names: Sequence[str], values: Iterable[Values], *, folding: bool, fresh: bool = False) -> Arrangement:
    """Return the arrangement of the resources with these names and values; without `folding` it has no groups.

    The values of `fresh` resources, which are new, differ more than what is done to others.
    """
    groups = _alike(names, values)
    seen = _seen_otherwise(groups, len(names)) if fresh and len(names) > SAME else set[int]()
    odd = seen | _odd(groups, fresh=fresh)
    rows = {id(group) for group in groups if folding and _is_row(group)}
    # the rarest first: those are the likeliest mistakes
    smallest_first = sorted(groups, key=lambda group: (id(group) not in seen, len(group.members), group.members[0]))
    return Arrangement(
        [n for group in smallest_first if id(group) in odd - rows for n in group.members],
        [group for group in smallest_first if id(group) in odd & rows],
        [group for group in groups if id(group) in rows - odd],
        sorted(n for group in groups if id(group) not in odd | rows for n in group.members),
    )


def _is_row(group: AlikeGroup) -> bool:
    return len(group.members) >= SAME and group.is_described


def _seen_otherwise(groups: Sequence[AlikeGroup], total: int) -> set[int]:
    """Return the `id` of each group of new tags that are public, or private, unlike nearly all others."""
    field = (ValuePart.FIELD, "visibility")
    ways = {id(group): next((v for v in group.values if v[:2] == field), None) for group in groups}
    counts = Counter[EditedValue | None]()
    for group in groups:
        counts[ways[id(group)]] += len(group.members)
    return {each for each, way in ways.items() if _is_rare(counts[way], total)}


def _is_rare(count: int, total: int) -> bool:
    return count == 1 or count * 100 < total  # less than 1 %


def _odd(groups: Sequence[AlikeGroup], *, fresh: bool) -> set[int]:
    """Return the `id` of each odd group: rare as a whole or, where many groups are, rare in one of its values.

    Groups with values of their own are odd too, where they are few. What holds for half of a section is not odd; of
    many `fresh` resources, whose values all differ, what holds for a tenth, or makes more rows than people read.
    """
    total = sum(len(group.members) for group in groups)
    share = 10 if fresh and total > MANY else 2

    def few(chosen: Iterable[AlikeGroup]) -> set[int]:
        found = list(chosen)
        are_few = sum(len(g.members) for g in found) * share < total
        are_few &= not fresh or sum(1 if _is_row(g) else len(g.members) for g in found) <= MANY
        return {id(group) for group in found} if are_few else set()

    if any(len(group.members) >= ALIKE for group in groups):
        of_their_own = few(group for group in groups if not group.is_described)
        rare = few(g for g in groups if _is_rare(len(g.members), total) or id(g) in of_their_own)
        if rare or not any(_is_rare(len(group.members), total) for group in groups):
            return rare
    if total <= SAME:  # of so few, people see themselves which one is odd
        return set()
    # The edited values of each group, and what is edited at all.
    parts = {id(group): (*group.values, tuple(value[:3] for value in group.values)) for group in groups}
    counts = Counter[object]()
    for group in groups:
        for part in parts[id(group)]:
            counts[part] += len(group.members)
    rare_parts = defaultdict[object, list[object]](list)  # by what they are values of
    for each, count in counts.items():
        if _is_rare(count, total):
            rare_parts[each[:3] if isinstance(each, EditedValue) else None].append(each)
    # Where many values of a kind are rare, none of them is odd: such as dates.
    odd_parts, members = set[object](), 0
    for kind in sorted(rare_parts.values(), key=lambda kind: sum(counts[part] for part in kind)):
        members += sum(counts[part] for part in kind)
        odd_parts.update(kind if members * share < total else ())
    return {id(group) for group in groups if not odd_parts.isdisjoint(parts[id(group)])}


def _alike(names: Sequence[str], values: Iterable[Values]) -> list[AlikeGroup]:
    """Return the resources grouped by what was done to each of their values, in the order of their first ones."""
    columns = defaultdict[tuple[ValuePart, str, str, bool], _Column](lambda: ([], [], []))
    for number, own in enumerate(values):
        for each in own:
            numbers, befores, afters = columns[each.part, each.label, each.note, each.before is None]
            numbers.append(number)
            befores.append(each.before)
            afters.append(each.after)
    places: dict[EditedValue, int] = {}  # small numbers to compare, because a plan may have very many values
    keys: list[list[int]] = [[] for _ in names]
    for (part, label, note, is_new), (numbers, befores, afters) in columns.items():
        # That a new name is the resource's own says nothing of the name before.
        bare = part in (ValuePart.FORMER, ValuePart.OPENED)
        own_names = [""] * len(numbers) if bare else [names[number] for number in numbers]
        is_first = is_new and part is not ValuePart.LOST
        edits = _first_edits(own_names, afters) if is_first else _edits_of(part, own_names, befores, afters)
        own_places = {
            id(edit): places.setdefault(EditedValue(part, label, note, edit), len(places))
            for edit in {id(edit): edit for edit in edits}.values()
        }
        for number, edit in zip(numbers, edits, strict=True):
            keys[number].append(own_places[id(edit)])
    found = defaultdict[tuple[int, ...], list[int]](list)
    for number, key in enumerate(keys):
        found[tuple(sorted(key))].append(number)
    edited = list(places)
    return [AlikeGroup(tuple(edited[place] for place in key), members) for key, members in found.items()]


# --- what was done to a value


def _first_edits(names: Sequence[str], values: Sequence[Value | None]) -> list[Edit | None]:
    """Return the edit of each new value: that it is equal to others, or but for the own name, or but for numbers."""
    edits: list[Edit | None] = [None] * len(values)
    rest: Sequence[int] = range(len(values))
    enough = max(ALIKE, -(-len(values) // 100))
    # In large plans most values are new. Edits are only made of what others share, in a third of the time.
    for pattern_of in (lambda name, value: value, _masked_or_year, _outline):
        found = [pattern_of(names[n], values[n]) for n in rest]
        kind, is_rough = ("outline", True) if pattern_of is _outline else ("set", False)
        shared = {
            each: each if isinstance(each, Edit) else Edit(kind, None, each, is_rough)
            for each, count in Counter(found).items()
            if count >= enough
        }
        for n, each in zip(rest, found, strict=True):
            edits[n] = shared.get(each)
        rest = [n for n in rest if edits[n] is None]
    return edits


def _masked_or_year(name: str, value: Value | None) -> Pattern | Edit:
    if isinstance(value, int) and not isinstance(value, bool):
        return Edit("date", "set", (instant(value) or str(value))[:4])
    return masked(name, value)


def _edits_of(
    part: ValuePart, names: Sequence[str], before: Sequence[Value | None], after: Sequence[Value | None]
) -> list[Edit | None]:
    """Return the edit of each value: the most exact one that enough others share, or else `None`."""
    edits: list[Edit | None] = [None] * len(names)
    rest: Sequence[int] = range(len(names))
    # Keywords are lost for good, so that a few with the same ones may be odd among many.
    enough = max(SAME, len(names) // 100) if part is ValuePart.LOST else ALIKE
    for ways in LOSSES if part is ValuePart.LOST else WAYS:
        if ways is _counted and len(rest) * 2 < len(names):
            break  # where most lose the same, another keyword is odd, whatever their number
        candidates = [(n, edit) for n in rest for edit in ways(names[n], before[n], after[n])]
        often = Counter(edit for _, edit in dict.fromkeys(candidates))
        shared = {edit: edit for edit, count in often.items() if count >= enough}
        for n, edit in candidates:
            edits[n] = edits[n] or shared.get(edit)
        rest = [n for n in rest if edits[n] is None]
    return edits


def _exact(name: str, before: Value | None, after: Value | None) -> Iterable[Edit]:
    """Return what may have been done to a value, the most telling first."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        gains, losses = tuple(v for v in after if v not in before), tuple(v for v in before if v not in after)
        if after == (*(v for v in before if v not in losses), *gains):
            return (Edit("items", masked(name, losses), masked(name, gains)),)
    if isinstance(before, str) and isinstance(after, str) and before and after and before != after:
        return (*_text_edits(before, after), Edit("same", before, after))
    return (Edit("same", before, after),)


def _set(name: str, before: Value | None, after: Value | None) -> Iterable[Edit]:
    """Return that a value became this one, whatever it was, or that a date moved within or into a year."""
    if type(after) is int and type(before) is int:  # and no boolean
        return (Edit("date", "later" if after > before else "earlier", (instant(after) or str(after))[:4]),)
    return (Edit("set", None, masked(name, after)),)


def _counted(name: str, before: Value | None, after: Value | None) -> Iterable[Edit]:
    return (Edit("lost", None, len(after) if isinstance(after, tuple) else 1),)


Ways = Callable[[str, "Value | None", "Value | None"], Iterable[Edit]]
WAYS: tuple[Ways, ...] = (
    _exact,
    _set,
    # The texts without their numbers, by which values of their own are compared.
    lambda name, before, after: (Edit("outline", _outline(name, before), _outline(name, after), True),),
)
LOSSES: tuple[Ways, ...] = (
    lambda name, before, after: (Edit("lost", None, masked(name, after)),),
    lambda name, before, after: (Edit("lost", None, _outline(name, after)),),
    _counted,
)

_WORDS = re.compile(r"\w+|\W")
_DIGITS = re.compile(r"\d+")

CASES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "title case": str.title,
    "first letter capitalized": lambda text: text[:1].upper() + text[1:],
}


def masked(name: str, value: Value | None) -> Pattern:
    """Return the value with the resource's own name masked in its texts."""
    if len(name) < 2:  # a name of one letter stands in many words
        return value
    if isinstance(value, tuple):
        return tuple([OwnName(tuple(item.split(name))) if name in item else item for item in value])
    return OwnName(tuple(value.split(name))) if isinstance(value, str) and name in value else value


def _outline(name: str, value: Value | None) -> str:
    """Return the texts of a value without their numbers and the resource's own name."""
    text = "\n".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    outline = _DIGITS.sub("#", text.replace(name, "\0") if len(name) > 1 else text)
    return "\n".join(sorted(outline.split("\n"))) if isinstance(value, tuple) else outline


def _text_edits(before: str, after: str) -> Iterator[Edit]:
    """Yield what was added, removed or replaced in a text."""
    if after.startswith(before):
        yield Edit("appended", None, after[len(before) :])
    elif after.endswith(before):
        yield Edit("prepended", None, after[: -len(before)])
    elif before.startswith(after):
        yield Edit("shortened", before[len(after) :])
    elif before.endswith(after):
        yield Edit("beheaded", before[: -len(after)])
    else:
        yield from _replacements(before, after)
    if len(before) == len(after):
        yield from (Edit("case", None, case) for case, make in CASES.items() if make(before) == after)


def _replacements(before: str, after: str) -> Iterator[Edit]:
    """Yield words that became other words everywhere in a text.

    Where only blanks or signs differ, or words came or went, what differs occurs elsewhere too or says little; then the
    words beside it belong to it: `Trade mark` → `Trade-mark`.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = shared_length(old, new)
    tail = shared_length(old[head:][::-1], new[head:][::-1])
    ends = len(old) - tail, len(new) - tail
    pairs = {(a, b) for a, b in zip(old, new, strict=False) if a != b} if len(old) == len(new) else set()
    pieces = list(pairs) if len(pairs) == 1 else []  # one word, perhaps several times
    pieces.append(("".join(old[head : ends[0]]), "".join(new[head : ends[1]])))
    begin = next((n for n in range(head - 1, -1, -1) if old[n].isalnum()), head)
    right = next((n + 1 for n, text in enumerate(old[ends[0] :]) if text.isalnum()), 0)
    wider = [
        ("".join(old[start : ends[0] + more]), "".join(new[start : ends[1] + more]))
        for start, more in ((begin, right), (head, right), (begin, 0))
    ]
    is_said = any(letter.isalnum() for piece in pieces for text in piece for letter in text)
    for piece in (*pieces, *wider) if is_said else (wider[0], *pieces, *wider[1:]):
        yield from _replacement(before, after, *piece)


def _replacement(before: str, after: str, old: str, new: str) -> Iterator[Edit]:
    """Yield the edit if it gives the new text: `old` becomes `new` wherever it stands as whole words."""
    if not (old and new and old != before and old in before):
        return
    pieces = before.split(old)
    text = pieces[0]
    for piece in pieces[1:]:
        within = (text[-1:].isalnum() and old[0].isalnum()) or (old[-1].isalnum() and piece[:1].isalnum())
        text += (old if within else new) + piece
    if text == after:
        yield Edit("replaced", old, new)


# --- its words

FEW_VALUES = 3
"""The largest number of different old values that are listed when all became the same value."""


def group_details(group: AlikeGroup, members: Sequence[Values], *, fresh: bool) -> Details:
    """Return a detail for each value of a group, whose `members` are given; `fresh` ones have no old values."""
    found = []
    for each in group.values:
        own = [value for values in members for value in values if (value.part, value.label, value.note) == each[:3]]
        spans = _edit_spans(each, own, fresh) if each.edit else ()
        found.append(
            _labelled(each.part, each.label, (*spans, Span(each.note, SpanMark.REMARK)) if each.note else spans)
        )
    return tuple(found)


def example_of(name: str, group: AlikeGroup, values: Values, *, fresh: bool) -> str:
    """Return the values of one member of a group that the group's details do not tell."""
    edits = {each[:3]: each.edit for each in group.values}
    parts = [
        str(_labelled(value.part, value.label, exact_spans(value, WIDE, fresh=fresh)))
        for value in values
        if (edit := edits[value.part, value.label, value.note])
        and not (edit.kind == "same" or (edit.kind == "set" and not _names_itself(edit.new)))
    ]
    if len(values) == 1 and parts:
        parts = [parts[0].partition(": ")[2] or parts[0]]
    return f"e.g. {visible(name)}: {'; '.join(parts)}" if parts else ""


def _labelled(part: ValuePart, label: str, spans: Spans) -> ChangeDetail:
    return ChangeDetail(f"metadata {visible(label)}" if part is ValuePart.METADATA else visible(label), spans)


def _names_itself(pattern: Pattern) -> bool:
    return isinstance(pattern, OwnName) or (isinstance(pattern, tuple) and any(isinstance(p, OwnName) for p in pattern))


def _edit_spans(value: EditedValue, own: Sequence[ChangeValue], fresh: bool) -> Spans:
    edit, name = value.edit, value.label if value.part is ValuePart.FIELD else ""
    assert edit is not None
    first, old, new = own[0], edit.old, edit.new
    if edit.kind == "date":
        instants = [each.after for each in own if isinstance(each.after, int)]
        since, until = (shown(name, at, ALL) for at in (min(instants), max(instants)))
        reach = since if since == until else f"{since} to {until}"
        return (Span(f"{old}, ", SpanMark.REMARK), Span(reach, SpanMark.NEW))
    if edit.kind == "items" or (value.part is ValuePart.KEYWORDS and isinstance(new, tuple)):
        gains, losses = (
            [_pattern("", item) for item in each] if isinstance(each, tuple) else [] for each in (new, old)
        )
        return came_and_went(gains, losses, ALL, str)
    if edit.kind == "set":
        if not _names_itself(new) and len({each.before for each in own}) == 1:
            return exact_spans(first, ALL, fresh=fresh)
        became = Span(_pattern(name, new), SpanMark.NEW)
        values = dict.fromkeys(each.before for each in own)
        if not values.keys() - {None}:
            return (became,)
        various = Span("various values", SpanMark.REMARK)
        if len(values) <= FEW_VALUES:
            various = Span(", ".join(shown(name, value, ALL) for value in values), SpanMark.OLD)
        return (various, Span(" → "), became)
    if edit.kind == "replaced":
        return (Span(_pattern("", old), SpanMark.OLD), Span(" → "), Span(_pattern("", new), SpanMark.NEW), _IN_TEXT)
    if edit.kind == "case":
        return (Span(str(new), SpanMark.NEW),)
    if edit.kind in SIGNS:
        sign, where = SIGNS[edit.kind]
        text = Span(_pattern("", old or new), SpanMark.OLD if old else SpanMark.NEW)
        return (Span(sign), text, Span(where, SpanMark.REMARK)) if where else (Span(sign), text)
    return exact_spans(first, ALL, fresh=fresh)


SIGNS = {
    "appended": ("+ ", ""),
    "prepended": ("+ ", " (at the start)"),
    "shortened": ("- ", " (at the end)"),
    "beheaded": ("- ", " (at the start)"),
}
_IN_TEXT = Span(" (in the text)", SpanMark.REMARK)


def _pattern(name: str, pattern: object) -> str:
    """Return a value as it is shown, with `its name` where it has the resource's name: `"https://pms/" + its name`."""
    if isinstance(pattern, OwnName):
        first, *others = pattern.parts
        texts = [quoted(first)] if first else []
        for part in others:
            texts += ["its name", quoted(part)] if part else ["its name"]
        return " + ".join(texts)
    if isinstance(pattern, tuple):
        return ", ".join(_pattern("", item) for item in pattern)
    return shown(name, pattern, ALL)
