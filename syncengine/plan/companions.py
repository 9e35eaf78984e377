"""Find the resources that must wait with those in quarantine, so that nothing related to them is deleted. Pure.

Both names of a rename wait together. With a category wait the tags whose calls need it and, if it would be deleted,
the members that would go with it. A tag that may still be in a category keeps the category from being deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from syncengine.plan.aim import may_be_held
from syncengine.resource import Key, Kind, Recorded, Resource, Status, category_references

CODE = "defaultActivityTypeCode"


@dataclass(slots=True)
class Estate:
    """All recorded and desired resources, and the renames between them in both directions. Indexed on demand."""

    recorded: Mapping[Key, Recorded]
    desired: Mapping[Key, Resource]
    renames: Mapping[Key, Sequence[Key]]
    taken_over: Mapping[Key, Key]
    _tags: dict[str, list[Key]] | None = field(default=None)
    _members: dict[str, list[Key]] | None = field(default=None)
    _owners: dict[str, list[Key]] | None = field(default=None)

    def companions(self, key: Key) -> Iterator[Key]:
        """Yield the resources that are directly tied to `key` and must wait with it."""
        yield from self.renames.get(key, ())
        if (new := self.taken_over.get(key)) is not None:
            yield new
        if key.kind is Kind.CATEGORY:
            yield from self._of_category(key)
        elif key.kind is Kind.TAG and (row := self.recorded.get(key)) is not None:
            yield from self._categories_going(row)

    def _of_category(self, key: Key) -> Iterator[Key]:
        row = self.recorded.get(key)
        references = (str(key), *((f"id/{row.server_id}",) if row is not None and row.server_id else ()))
        if self._is_going(key):
            members = self._members = self._members or self._members_of_rows()
            yield from (member for reference in references for member in members.get(reference, ()))
        tags = self._tags = self._tags or self._desired_tags()
        yield from (tag for reference in references for tag in tags.get(reference, ()))

    def _is_going(self, key: Key) -> bool:
        """Return whether `key` is a category to delete: managed, maybe held by the service, and no longer declared."""
        row = self.recorded.get(key)
        is_held = row is not None and may_be_held(row) and row.status is not Status.RELEASED and not row.protect
        return is_held and key not in self.desired and key not in self.taken_over

    def _categories_going(self, tag: Recorded) -> Iterator[Key]:
        owners = self._owners = self._owners or self._owners_of_ids()
        for reference in tag.category_references():
            yield from (key for key in owners.get(reference, ()) if self._is_going(key))

    def _desired_tags(self) -> dict[str, list[Key]]:
        """Return the desired tags by their references to a category."""
        tags: dict[str, list[Key]] = defaultdict(list)
        for key, resource in self.desired.items():
            if key.kind is Kind.TAG:
                for reference in category_references(resource.body.fields):
                    tags[reference].append(key)
        return tags

    def _members_of_rows(self) -> dict[str, list[Key]]:
        """Return the recorded tags that no manifest declares, by their references to a category."""
        members: dict[str, list[Key]] = defaultdict(list)
        for key, row in self.recorded.items():
            if key.kind is Kind.TAG and key not in self.desired and key not in self.taken_over and may_be_held(row):
                for reference in row.category_references():
                    members[reference].append(key)
        return members

    def _owners_of_ids(self) -> dict[str, list[Key]]:
        """Return the recorded categories by every reference to them. Rows with one server id share their references."""
        owners: dict[str, list[Key]] = defaultdict(list)
        by_id: dict[str, list[Key]] = defaultdict(list)
        for key, row in self.recorded.items():
            if key.kind is Kind.CATEGORY:
                by_id[row.server_id or str(key)].append(key)
        for server_id, keys in by_id.items():
            owners[f"id/{server_id}"] = keys
            owners.update((str(key), keys) for key in keys)
        return owners


def with_companions(quarantined: Iterable[Key], estate: Estate) -> dict[Key, Key]:
    """Return every resource that is left alone, mapped to the quarantined resource that it waits for."""
    aside = {key: key for key in quarantined}
    queue = list(aside)
    while queue:
        key = queue.pop()
        for companion in estate.companions(key):
            if companion not in aside:
                aside[companion] = aside[key]
                queue.append(companion)
    return aside


def keeper_of_types(aside: Mapping[Key, Key], estate: Estate) -> Key | None:
    """Return the quarantined resource that prevents a sweep, or `None`.

    It is an activity type, or a tag that may still carry the code of an activity type to delete. A row has the content
    that was sent last, so the service may hold an earlier code of a refused tag.
    """
    for key, cause in aside.items():
        if key.kind is Kind.ACTIVITY_TYPE:
            return cause
    types = (row for key, row in estate.recorded.items() if key.kind is Kind.ACTIVITY_TYPE)
    codes = {row.key.name for row in types if row.key not in estate.desired and may_be_held(row)}
    for key, cause in aside.items() if codes else ():
        row, resource = estate.recorded.get(key), estate.desired.get(key)
        if resource is not None and resource.body.fields.get(CODE) in codes:
            return cause
        carried = row.body.fields.get(CODE) if row is not None and may_be_held(row) else None
        if row is not None and carried and (row.doubtful or carried in codes):
            return cause
    return None
