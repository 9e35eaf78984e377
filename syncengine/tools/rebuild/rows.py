"""Turn resources that revisions declared into unconfirmed rows of a state. Pure.

A row is the most that the service may hold: a resource that is no longer declared has all keywords, metadata and fields
that it was ever declared with, and each tag may be in every category in which it was ever declared. So deleting a
category counts the tag, and waits for it while it is still declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source, Status, category_references


def declared_row(resource: Resource) -> Recorded:
    """Return the row of a resource that a revision declares; the resource may or may not exist on the service."""
    return Recorded(
        resource.key,
        resource.body,
        doubtful=True,
        confirmed=True,
        source=resource.source,
        protect=resource.protect,
    )


class EverDeclared:
    """Everything that revisions declared; later declarations take precedence."""

    def __init__(self) -> None:
        self._bodies: dict[Key, Body] = {}
        self._last: dict[Key, Body] = {}
        self._places: dict[Key, tuple[Source, bool]] = {}
        self._references: dict[Key, dict[str, None]] = {}
        self._renamed: dict[str, dict[str, None]] = {}

    def take(self, resource: Resource) -> None:
        """Add a resource as declared by some revision."""
        key, body = resource.key, resource.body
        self._places[key] = resource.source, resource.protect
        if self._last.get(key) == body:
            return
        self._last[key] = body
        self._bodies[key] = _united(self._bodies.get(key), body)
        if key.kind is Kind.TAG:
            self._references.setdefault(key, {}).update(dict.fromkeys(category_references(body.fields)))
        elif key.kind is Kind.CATEGORY:
            for old in resource.previously:
                self._renamed.setdefault(str(Key(Kind.CATEGORY, old)), {})[str(key)] = None

    def rows(self, declared: Mapping[Key, Recorded]) -> Iterator[Recorded]:
        """Yield the rows of declared resources, and of formerly declared resources as released.

        No upload of a formerly declared activity type is known, so it is no reason to delete anything.
        """
        for row in declared.values():
            yield self._in_all_categories(row)
        for key, body in self._bodies.items():
            if key not in declared:
                yield self._in_all_categories(self._former_row(key, body))

    def _former_row(self, key: Key, body: Body) -> Recorded:
        source, protect = self._places[key]
        return Recorded(
            key,
            body,
            Status.RELEASED,
            doubtful=True,
            confirmed=key.kind is Kind.TAG,
            source=source,
            protect=protect,
        )

    def _in_all_categories(self, row: Recorded) -> Recorded:
        if row.key.kind is not Kind.TAG:
            return row
        now = category_references(row.body.fields)
        ever = self._with_later_names((*now, *self._references.get(row.key, ())))
        return replace(row, former_categories=tuple(each for each in ever if each not in now))

    def _with_later_names(self, references: Iterable[str]) -> Iterable[str]:
        """Return references to categories together with their later names."""
        every = dict.fromkeys(references)
        waiting = list(every)
        while waiting:
            new = [name for name in self._renamed.get(waiting.pop(), ()) if name not in every]
            every |= dict.fromkeys(new)
            waiting += new
        return every


def _united(before: Body | None, body: Body) -> Body:
    """Return the union of two bodies; values of the later body take precedence."""
    if before is None:
        return body
    later = set(body.keywords)
    fields = before.fields
    if category_references(body.fields):  # a tag names its category in one way, not both
        fields = {name: value for name, value in fields.items() if name not in ("category", "tagCategoryId")}
    return Body(
        fields={**fields, **body.fields},
        keywords=(*body.keywords, *(keyword for keyword in before.keywords if keyword not in later)),
        metadata={**before.metadata, **body.metadata},
    )
