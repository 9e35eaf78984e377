"""The crash model's checks of service and state, at every instant and at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from syncengine.resource import Key, Kind, Recorded, Resource, Status
from tests.support.world import Tag, World

from .crash_model import THEIR_TYPE, House, Manifest

UNCLEARABLE = frozenset({"description"})
DEFAULTS = {"path": "/", "visibility": "PUBLIC"}


def troubles_of(house: House, manifest: Manifest) -> list[str]:
    """Return all that differs from the manifest and the state after an undisturbed apply."""
    rows = house.rows
    return [
        *house.violations,
        *_tags_not_as_desired(house, manifest),
        *_categories_not_as_desired(house, manifest),
        *_types_not_as_desired(house, manifest),
        *_rows_not_as_held(house, rows),
        *beyond_recorded(house),
        *(f"tag {name} of somebody else is gone" for name in house.others.tags - house.world.tags.keys()),
        *(f"{key} is still active" for key, row in rows.items() if _lingers(key, row, manifest)),
    ]


def _lingers(key: Key, row: Recorded, manifest: Manifest) -> bool:
    return key not in manifest.resources and row.status is Status.ACTIVE


def _tags_not_as_desired(house: House, manifest: Manifest) -> Iterator[str]:
    for resource in manifest.of(Kind.TAG):
        name = resource.key.name
        held = house.world.tags.get(name)
        if held is None:
            yield f"tag {name} is not there"
            continue
        wanted = _fields_on_the_wire(house.world, resource)
        for field_name in {*wanted, *held.fields} - (UNCLEARABLE - wanted.keys()):
            if held.fields.get(field_name) != wanted.get(field_name):
                yield f"tag {name}: {field_name} is {held.fields.get(field_name)!r}, not {wanted.get(field_name)!r}"
        keywords = held.keywords - (house.others.keywords[name] - set(resource.body.keywords))
        if keywords != set(resource.body.keywords):
            yield f"tag {name}: keywords are {sorted(keywords)}, not {sorted(resource.body.keywords)}"
        if dict(held.metadata) != dict(resource.body.metadata):
            yield f"tag {name}: metadata is {held.metadata}, not {resource.body.metadata}"


def _fields_on_the_wire(world: World, resource: Resource) -> dict[str, Any]:
    wanted: dict[str, Any] = dict(DEFAULTS)
    for name, value in resource.body.fields.items():
        if name == "category":
            wanted["tagCategoryId"] = world.category_ids.get(str(value), "missing")
        elif name != "excludeTagNameKeyword" and value not in ("", ()):
            wanted[name] = value
    return wanted


def _categories_not_as_desired(house: House, manifest: Manifest) -> Iterator[str]:
    """Skip categories that a run reported as kept, since the service made new ones instead of renaming them."""
    wanted = {
        resource.key.name: {n: _listed(v) for n, v in resource.body.fields.items() if v not in ("", ())}
        for resource in manifest.of(Kind.CATEGORY)
    }
    held = {
        category.external_id: dict(category.fields)
        for category in house.world.categories.values()
        if Key(Kind.CATEGORY, category.external_id) not in house.let_go
    }
    if wanted != held:
        yield f"categories are {held}, not {wanted}"


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _types_not_as_desired(house: House, manifest: Manifest) -> Iterator[str]:
    alive = {code for code, known in house.world.activity_types.items() if not known.deleted}
    yield from (f"type {code} of somebody else is gone" for code in house.others.types - alive)
    for resource in manifest.of(Kind.ACTIVITY_TYPE):
        code = resource.key.name
        if code not in alive:
            yield f"type {code} is not there"
        elif house.world.activity_types[code].description != resource.body.fields.get("description", ""):
            yield f"type {code}: the description is {house.world.activity_types[code].description!r}"


def _rows_not_as_held(house: House, rows: Mapping[Key, Recorded]) -> Iterator[str]:
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
