"""One change → its aspects, by which it is compared with others: for each row the values, nothing cut; pure."""

from __future__ import annotations

from collections.abc import Iterable

from syncengine.plan.aim import Note
from syncengine.plan.diff import OPENED, Change, FieldChange
from syncengine.render.change_details import REMARKS
from syncengine.render.value_shapes import Aspect

Aspects = tuple[Aspect, ...]

KEYWORD = "keyword"
ADDED = "keywords added"
REMOVED = "keywords removed"
METADATA = "metadata "
NAME = "name"


def reason(change: Change) -> Aspects:
    return (Aspect("", None, change.reason),) if change.reason else ()


def removed(change: Change) -> Aspects:
    """The reason of a removal, the number of keywords that go with it, and the file that says so."""
    lost = f"{len(change.keywords_deleted)} lost" if change.keywords_deleted else ""
    return (
        *reason(change),
        *((Aspect(REMOVED, None, lost),) if lost else ()),
        *((Aspect("file", None, change.source.file),) if change.source else ()),
    )


def keywords(change: Change) -> Aspects:
    """A keyword in the place of another, or those that come and go. A change of which all go has another row."""
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


def former_name(change: Change) -> Aspects:
    return (Aspect(NAME, change.previously, change.key.name),) if change.previously else ()


def created(change: Change) -> Aspects:
    name = change.key.name
    words = tuple([word for word in change.keywords_added if word != name])
    return (
        *[Aspect(field.name, None, field.after) for field in change.fields],
        *((Aspect(ADDED, None, words),) if words else ()),
        *[Aspect(METADATA + key, None, value) for key, value in change.metadata_set.items()],
        *former_name(change),
        *reason(change),
    )


def keywords_deleted(change: Change) -> Aspects:
    return keywords(change) if change.keywords_deleted else ()


def metadata_deleted(change: Change) -> Aspects:
    return metadata(change) if change.metadata_deleted else ()


def cleared(change: Change) -> Aspects:
    return fields(f for f in change.fields if f.clears)


def opening(change: Change) -> Aspects:
    names = (Aspect(NAME, name, change.key.name) for name in change.opens or () if name != change.key.name)
    return (*fields(f for f in change.fields if f == OPENED), *names)


def updated(change: Change) -> Aspects:
    """The aspects of an update that its removals do not show."""
    return (
        *former_name(change),
        *fields(f for f in change.fields if not (f == OPENED or f.clears)),
        *(() if change.keywords_deleted else keywords(change)),
        *(() if change.metadata_deleted else metadata(change)),
    )


def note(note: Note) -> Aspects:
    return (Aspect(note.kind, None, note.message),)
