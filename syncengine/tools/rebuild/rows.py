"""Resources as revisions declare them → rows of a state that nobody confirmed; pure.

A row is the most that the service may hold: a resource that is no longer declared has all keywords, metadata and fields
that it ever was declared with, and each tag may be in every category that it was ever declared in. So the deletion of a
category counts it, and waits for it where it is still declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source, Status, category_references


def declared_row(resource: Resource) -> Recorded:
    """The row of a resource as the revision declares it: it may be there, or not."""
    return Recorded(
        resource.key,
        resource.body,
        doubtful=True,
        confirmed=True,
        source=resource.source,
        protect=resource.protect,
    )


class EverDeclared:
    """Everything that revisions declared, the later over the earlier."""

    def __init__(self) -> None:
        self._bodies: dict[Key, Body] = {}
        self._last: dict[Key, Body] = {}
        self._places: dict[Key, tuple[Source, bool]] = {}
        self._references: dict[Key, dict[str, None]] = {}
        self._renamed: dict[str, dict[str, None]] = {}

    def take(self, resource: Resource) -> None:
        """Add a resource as some revision declares it."""
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
        """The rows that are declared, and those that only were, as released.

        Of activity types that only were, no upload is known: they are no reason to delete anything.
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
        """References to categories, and to their later names."""
        every = dict.fromkeys(references)
        waiting = list(every)
        while waiting:
            new = [name for name in self._renamed.get(waiting.pop(), ()) if name not in every]
            every |= dict.fromkeys(new)
            waiting += new
        return every


def _united(before: Body | None, body: Body) -> Body:
    """A body with all that two have, as the later one has it."""
    if before is None:
        return body
    later = set(body.keywords)
    fields = before.fields
    if category_references(body.fields):  # one way to say in which category a tag is, not both
        fields = {name: value for name, value in fields.items() if name not in ("category", "tagCategoryId")}
    return Body(
        fields={**fields, **body.fields},
        keywords=(*body.keywords, *(keyword for keyword in before.keywords if keyword not in later)),
        metadata={**before.metadata, **body.metadata},
    )
