"""One change → its aspects, the labelled values by which changes are compared; nothing is cut. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from syncengine.plan.aim import Note
from syncengine.plan.diff import Change, FieldChange
from syncengine.render.change_details import REMARKS, other_words
from syncengine.render.section_entries import Aspects, AspectTable, Column, Label, aspect_tables
from syncengine.render.value_shapes import Aspect
from syncengine.resource import Body, Value

KEYWORD = "keyword"
ADDED = "keywords added"
REMOVED = "keywords removed"
METADATA = "metadata "
NAME = "name"
SEVERAL = " (several)"
"""The note of a name that replaces several names, so that it is compared only with other such names."""
AT_ONCE = 500
"""The number of new resources whose labels are compared together, which takes a quarter of the time."""


def reason(change: Change) -> Aspects:
    return (Aspect("", None, change.reason),) if change.reason else ()


def removed(change: Change) -> Aspects:
    """Return the reason of a removal, the number of its lost keywords, its file, and the nature of its content."""
    if change.keywords_deleted:
        return _removed(change, str(len(change.keywords_deleted)))
    return _removed(change, _size(len(change.removed.keywords)) if change.removed else "")


def removed_tables(changes: Sequence[Change], losses: Sequence[str]) -> list[AspectTable]:
    """Return the aspects of many removals in tables; `losses` has a comparable text for the keywords of each one."""
    return aspect_tables(map(_removed, changes, losses))


def _removed(change: Change, lost: str) -> Aspects:
    content = change.removed or Body()
    visibility, metadata = content.fields.get("visibility"), _size(len(content.metadata))
    return (
        *reason(change),
        *((Aspect(REMOVED, None, lost),) if lost else ()),
        *((Aspect("file", None, change.source.file),) if change.source else ()),
        *((Aspect("visibility", None, visibility),) if visibility else ()),
        *((Aspect(METADATA, None, metadata),) if metadata else ()),
    )


def _size(count: int) -> str:
    """Return a text that is equal for about equal counts, to the next power of two; empty for none."""
    return str(count.bit_length()) if count else ""


def cascaded(change: Change) -> Aspects:
    """Return the aspects of a tag that is deleted with its category: those of a removal whose reason is another one."""
    return removed(change)[len(reason(change)) :]


def removed_category(change: Change, tags: int) -> Aspects:
    """Return the aspects of a deleted category: besides those of a removal, the size of what it takes along."""
    words = change.removed.fields.get("keywords") if change.removed else ()
    keywords = _size(len(words) if isinstance(words, tuple) else 0)
    return (*_removed(change, keywords), *((Aspect("tags", None, _size(tags)),) if tags else ()))


def keywords(change: Change) -> Aspects:
    """Return a keyword and its replacement as one aspect, or else added and removed keywords as separate aspects."""
    gains, losses = change.keywords_added, change.keywords_deleted
    if len(gains) == len(losses) == 1:
        return (Aspect(KEYWORD, losses[0], gains[0]),)
    return (
        *((Aspect(ADDED, None, gains),) if gains else ()),
        *((Aspect(REMOVED, None, losses),) if losses else ()),
    )


def metadata(change: Change) -> Aspects:
    before = change.metadata_before
    return (
        *(Aspect(METADATA + name, before.get(name), value) for name, value in change.metadata_set.items()),
        *(Aspect(METADATA + name, before.get(name, ""), None) for name in change.metadata_deleted),
    )


def fields(changes: Iterable[FieldChange]) -> Aspects:
    return tuple(Aspect(f.name, f.before, f.after, REMARKS[f.effect]) for f in changes)


def former_names(change: Change) -> Aspects:
    """Return the former and the new name of a renamed resource as an aspect; nothing for other changes."""
    names, note = _formers(change), SEVERAL if change.merges else ""
    return (Aspect(NAME, names, change.key.name, note),) if names else ()


def _formers(change: Change) -> Value | None:
    return change.merges or change.previously


def created(change: Change) -> Aspects:
    (table,) = created_tables([change])
    return table.aspects(0)


def created_tables(changes: Sequence[Change]) -> list[AspectTable]:
    """Return the aspects of new resources as columns, without an object for each: a plan may create very many."""
    words = list(map(other_words, changes))
    found: dict[_Form, list[int]] = defaultdict(list)
    for start in range(0, len(changes), AT_ONCE):
        some, own = changes[start : start + AT_ONCE], words[start : start + AT_ONCE]
        form = _form(some[0], own[0])
        if _have_all(form, some, own):
            found[form].extend(range(start, start + len(some)))
            continue
        for number, form in enumerate(map(_form, some, own), start):
            found[form].append(number)
    return [_created_table(n, [changes[each] for each in n], [words[each] for each in n]) for n in found.values()]


class _Form(NamedTuple):
    """The labels of a change: names of its fields and metadata, and whether its other parts are empty."""

    fields: tuple[str, ...]
    metadata: tuple[str, ...]
    has_no_words: bool
    others: tuple[bool, ...]


def _form(change: Change, words: Sequence[str]) -> _Form:
    others = not change.previously, not change.merges, not change.reason
    return _Form(tuple(map(_FIELD_NAME, change.fields)), tuple(change.metadata_set), not words, others)


def _have_all(form: _Form, changes: Sequence[Change], words: Sequence[Sequence[str]]) -> bool:
    """Return whether all changes certainly have `form`, the form of the first one. A change has no field twice."""
    names = map(_FIELD_NAME, chain.from_iterable(map(_FIELDS, changes)))
    return (
        list(names) == [*form.fields] * len(changes)
        and list(map(tuple, map(_METADATA_SET, changes))).count(form.metadata) == len(changes)
        and len(set(map(bool, words))) == 1
        and len(set(map(_OTHERS, changes))) == 1
    )


_FIELD_NAME, _FIELDS, _METADATA_SET = attrgetter("name"), attrgetter("fields"), attrgetter("metadata_set")
_OTHERS = attrgetter("previously", "merges", "reason")


def _created_table(numbers: list[int], changes: Sequence[Change], words: Column) -> AspectTable:
    """Return the aspects of new resources with the same labels; only the name of a renamed one has an old value."""
    first, fields, nothing = changes[0], [change.fields for change in changes], [None] * len(changes)
    columns: list[tuple[Label, Column, Column]] = [
        ((field.name, ""), nothing, [own[place].after for own in fields]) for place, field in enumerate(first.fields)
    ]
    if words[0]:
        columns.append(((ADDED, ""), nothing, words))
    for name in first.metadata_set:
        columns.append(((METADATA + name, ""), nothing, [change.metadata_set[name] for change in changes]))
    for aspect in former_names(first):
        label = aspect.label, aspect.note
        columns.append((label, list(map(_formers, changes)), [change.key.name for change in changes]))
    if first.reason:
        columns.append((("", ""), nothing, [change.reason for change in changes]))
    labels = tuple(label for label, _, _ in columns)
    return AspectTable(labels, numbers, [before for _, before, _ in columns], [after for _, _, after in columns])


def keywords_deleted(change: Change) -> Aspects:
    return keywords(change) if change.keywords_deleted else ()


def metadata_deleted(change: Change) -> Aspects:
    return metadata(change) if change.metadata_deleted else ()


def cleared(change: Change) -> Aspects:
    return fields(f for f in change.fields if f.clears)


def opening(way: FieldChange, change: Change) -> Aspects:
    """Return the aspects of a tag that becomes public in this `way`; nothing for other changes."""
    if change.opening != way:
        return ()
    names = tuple(name for name in change.opens or () if name != change.key.name)
    each = (Aspect(NAME, names if len(names) > 1 else names[0], change.key.name),) if names else ()
    return (*fields([way]), *each)


def updated(change: Change) -> Aspects:
    """Return the aspects of an update without those that the rows of its removals show."""
    return (
        *former_names(change),
        *fields(f for f in change.fields if not (f is change.opening or f.clears)),
        *(() if change.keywords_deleted else keywords(change)),
        *(() if change.metadata_deleted else metadata(change)),
    )


def note(note: Note) -> Aspects:
    return (Aspect(note.kind, None, note.message),)
