"""The crash model's checks of service and state, at every instant and at the end."""

from collections.abc import Iterator, Mapping
from typing import Any

from syncengine.resource import Key, Kind, Recorded, Status
from tests.support.world import Tag, World

from .crash_model import THEIR_TYPE, House, Manifest

UNCLEARABLE = frozenset({"description"})
DEFAULTS = {"path": "/", "visibility": "PUBLIC"}


def troubles_of(house: House, manifest: Manifest) -> list[str]:
    """Return all that differs from the manifest and the state after an undisturbed apply."""
    rows, types = house.rows, house.world.activity_types
    return [
        *house.violations,
        *_not_as_desired(house, manifest),
        *rows_not_as_held(house, rows),
        *beyond_recorded(house),
        *(f"tag {name} of somebody else is gone" for name in house.others.tags - house.world.tags.keys()),
        *(f"type {code} of somebody else is gone" for code in house.others.types if types[code].deleted),
        *(f"{key} is still active" for key in rows.keys() - manifest.resources if rows[key].status is Status.ACTIVE),
    ]


def shown(world: World, others: Mapping[str, set[str]]) -> dict[Key, dict[str, Any]]:
    """Return what the service holds of each resource, without tags' keywords of others, by names instead of ids."""
    held: dict[Key, dict[str, Any]] = {}
    for name, tag in world.tags.items():
        fields = {**DEFAULTS, **tag.fields}
        place = world.categories.get(str(fields.pop("tagCategoryId", None)))
        own = {"keywords": tag.keywords - others.get(name, set()), "metadata": dict(tag.metadata)}
        held[Key(Kind.TAG, name)] = {**fields, **own, "category": place and place.external_id}
    for category in world.categories.values():
        held[Key(Kind.CATEGORY, category.external_id)] = dict(category.fields)
    for code, known in world.activity_types.items():
        if not known.deleted:
            held[Key(Kind.ACTIVITY_TYPE, code)] = {"description": known.description}
    return held


def _not_as_desired(house: House, manifest: Manifest) -> Iterator[str]:
    """Skip categories that a run reported as kept, since the service made new ones instead of renaming them."""
    found = shown(house.world, house.others.keywords)
    for key, resource in manifest.resources.items():
        if (held := found.get(key)) is None:
            yield f"{key} is not there"
            continue
        body = resource.body
        wanted: dict[str, Any] = {n: list(v) if isinstance(v, tuple) else v for n, v in body.fields.items() if v}
        names = {*held} if key.kind is Kind.ACTIVITY_TYPE else {*held, *wanted}
        if key.kind is Kind.TAG:
            wanted = {**DEFAULTS, **wanted, "keywords": set(body.keywords), "metadata": dict(body.metadata)}
            names = {*held, *wanted} - {"excludeTagNameKeyword"} - (UNCLEARABLE - wanted.keys())
        for name in names:
            if (held.get(name) or None) != (wanted.get(name) or None):
                yield f"{key}: {name} is {held.get(name)!r}, not {wanted.get(name)!r}"
    for key in found.keys() - manifest.resources.keys() - house.let_go:
        if key.kind is Kind.CATEGORY:
            yield f"{key} is there"


def rows_not_as_held(house: House, rows: Mapping[Key, Recorded]) -> Iterator[str]:
    """Compare each row that is not in doubt with what the service holds."""
    for key, row in rows.items():
        if row.doubtful:
            continue
        there = is_held(house.world, key)
        if there != (row.status is not Status.DELETED):
            yield f"{key} is recorded {row.status} and is {'' if there else 'not '}there"
        elif there and key.kind is Kind.TAG:
            yield from _tag_not_as_recorded(house, row, house.world.tags[key.name])
        elif there and key.kind is Kind.CATEGORY and house.world.category_ids[key.name] != row.server_id:
            yield f"{key} is recorded with id {row.server_id}, held with {house.world.category_ids[key.name]}"


def _tag_not_as_recorded(house: House, row: Recorded, held: Tag) -> Iterator[str]:
    if absent := set(row.body.keywords) - held.keywords:
        yield f"{row.key}: recorded keywords {sorted(absent)} are not there"
    if dict(row.body.metadata) != dict(held.metadata):
        yield f"{row.key}: recorded metadata {row.body.metadata}, held {held.metadata}"
    for name, value in row.body.fields.items():
        if name not in ("category", "excludeTagNameKeyword") and (held.fields.get(name) or "") != value:
            yield f"{row.key}: {name} recorded {value!r}, held {held.fields.get(name)!r}"


def is_held(world: World, key: Key) -> bool:
    if key.kind is Kind.TAG:
        return key.name in world.tags
    if key.kind is Kind.CATEGORY:
        return key.name in world.category_ids
    return key.name in world.activity_types and not world.activity_types[key.name].deleted


def beyond_recorded(house: House) -> Iterator[str]:
    """Yield what the service holds of this project and the state does not have, at any instant (leaves.py)."""
    world, others, rows = house.world, house.others, house.rows
    ours = [*(Key(Kind.TAG, n) for n in world.tags if n not in others.tags)]
    ours += [Key(Kind.CATEGORY, n) for n in world.category_ids]
    ours += [Key(Kind.ACTIVITY_TYPE, c) for c, t in world.activity_types.items() if not t.deleted and c != THEIR_TYPE]
    for key in ours:
        row = rows.get(key)
        if row is None:
            yield f"{key} is held and not recorded"
        elif row.status is Status.DELETED and not row.doubtful:
            yield f"{key} is held and recorded as deleted"
        elif key.kind is Kind.TAG:
            yield from _tag_beyond_recorded(house, row, world.tags[key.name])


def _tag_beyond_recorded(house: House, row: Recorded, held: Tag) -> Iterator[str]:
    if more := held.keywords - house.others.keywords[row.key.name] - set(row.body.keywords):
        yield f"{row.key}: keywords {sorted(more)} are held and not recorded"
    if unnamed := held.metadata.keys() - row.body.metadata.keys():
        yield f"{row.key}: metadata {sorted(unnamed)} is held and not recorded"
    known = {*row.body.fields, *UNCLEARABLE, *DEFAULTS, *(["tagCategoryId"] if row.category_references() else [])}
    if unknown := held.fields.keys() - known:
        yield f"{row.key}: fields {sorted(unknown)} are held and not recorded"
