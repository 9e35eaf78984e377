"""The models of a manifest: the name, type, limits and description of every field. Data only.

Readers (`model_reader`) and JSON Schemas are derived from these models (docs/manifests.md, docs/interface.md 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_origin

from msgspec import Meta, defstruct, field

from syncengine.document.field_types import (
    DeprecatedLine,
    Filled,
    Flag,
    Identity,
    Instant,
    Line,
    Names,
    Prose,
    Reads,
    Texts,
    WebLink,
    Words,
)
from syncengine.document.model import Model, fields_of, names_of
from syncengine.document.model_reader import Table, fields_by_type
from syncengine.document.scalar_readers import choice
from syncengine.document.template_types import at_most_one
from syncengine.manifest.generate_schema import Generate
from syncengine.resource import Kind, Removal

EXCLUSIVE = ("category", "tagCategoryId")
"""The fields of a tag that exclude each other: a tag has at most one of them."""
_PROTECT = "Never removed by a plan, even when the manifests no longer declare it."


class TagCategory(Model, frozen=True):
    """A group of tags."""

    external_id: Annotated[Identity, Meta(description="Identity of the category: its id in the connected system.")]
    label: Annotated[Line | None, Meta(description="Shown in the console.")] = None
    description: Annotated[Prose | None, Meta(description="Shown in the console.")] = None
    keywords: Annotated[Words | None, Meta(description="Words that belong to the category.")] = None
    previously: Annotated[Names | None, Meta(description="Earlier externalIds of this category, to rename it.")] = None
    protect: Annotated[Flag | None, Meta(description=_PROTECT)] = None


class ActivityType(Model, frozen=True):
    """A kind of work that time can be posted as."""

    beyond_fields: ClassVar[Mapping[str, Any]] = {"required": ["code"]}  # the label may be a default

    code: Annotated[Identity, Meta(description="Identity of the activity type.")]
    label: Annotated[Filled, Meta(description="Shown in the console; the service sets it on creation only.")]
    description: Annotated[Prose | None, Meta(description="Shown in the console.")] = None
    enable_if_new: Annotated[
        Flag | None, Meta(description="Enable a new activity type for users; has no effect later; false by default.")
    ] = None
    reenable_if_archived: Annotated[
        Flag | None, Meta(description="Restore the activity type if it was deleted or archived; false by default.")
    ] = None
    protect: Annotated[Flag | None, Meta(description=_PROTECT)] = None


class Tag(Model, frozen=True):
    """A tag that users assign to recorded time."""

    beyond_fields: ClassVar[Mapping[str, Any]] = at_most_one(*EXCLUSIVE)

    name: Annotated[Identity, Meta(description="The tag's name, which identifies it.")]
    description: Annotated[
        Prose | None, Meta(description="Shown in the console and searchable; cannot be cleared.")
    ] = None
    category: Annotated[Line | None, Meta(description="The externalId of a category in the manifests.")] = None
    tag_category_id: Annotated[
        Line | None,
        Meta(description="The service's id of a category that is managed elsewhere; excludes `category`."),
    ] = None
    keywords: Annotated[Words | None, Meta(description="All keywords of the tag except its name.")] = None
    exclude_tag_name_keyword: Annotated[
        Flag | None, Meta(description="Do not use the tag's name as a keyword; false by default.")
    ] = None
    metadata: Annotated[Texts | None, Meta(description="Names and values that appear in reports.")] = None
    external_id: Annotated[Line | None, Meta(description="The tag's id in the connected system.")] = None
    default_activity_type_code: Annotated[
        Line | None, Meta(description="Activity type for time entries for which the user has chosen none.")
    ] = None
    url: Annotated[WebLink | None, Meta(description="A page that the console links to: https:// or http://.")] = None
    visibility: Annotated[
        Annotated[Literal["PUBLIC", "PRIVATE"], Reads(choice(("PUBLIC", "PRIVATE")))] | None,
        Meta(description="PRIVATE tags are visible to authorised team members only; PUBLIC by default."),
    ] = None
    assignee_external_ids: Annotated[
        Words | None, Meta(description="External ids of the users who work on the matter.")
    ] = None
    managed_by: Annotated[Line | None, Meta(description="The system that manages this tag.")] = None
    path: Annotated[DeprecatedLine | None, Meta(description="Deprecated by the service; `/` by default.")] = None
    created_timestamp: Annotated[
        Instant | None, Meta(description="When the matter was created: RFC 3339, or milliseconds since the epoch.")
    ] = None
    modified_timestamp: Annotated[
        Instant | None, Meta(description="When the matter was modified: RFC 3339, or milliseconds since the epoch.")
    ] = None
    closed_timestamp: Annotated[
        Instant | None, Meta(description="When the matter was closed: RFC 3339, or milliseconds since the epoch.")
    ] = None
    previously: Annotated[Names | None, Meta(description="Earlier names of this tag, to rename it.")] = None
    protect: Annotated[Flag | None, Meta(description=_PROTECT)] = None


class RemovedTag(Model, frozen=True):
    """How to remove a tag that the manifests no longer declare."""

    tag: Annotated[Identity, Meta(description="Name of the tag.")]
    as_: Annotated[
        Annotated[Removal, Reads(choice(Removal))],
        Meta(description="forget: leave it unchanged; retire: keep it without keywords; delete: delete the tag."),
    ] = field(name="as")
    reason: Annotated[Prose | None, Meta(description="Why the tag is removed; shown in the plan.")] = None


MODELS: dict[Kind, type[Model]] = {Kind.CATEGORY: TagCategory, Kind.ACTIVITY_TYPE: ActivityType, Kind.TAG: Tag}
SECTIONS = {"tagCategories": Kind.CATEGORY, "activityTypes": Kind.ACTIVITY_TYPE, "tags": Kind.TAG}
IDENTITIES = {Kind.CATEGORY: "externalId", Kind.ACTIVITY_TYPE: "code", Kind.TAG: "name"}
TITLES = {Kind.CATEGORY: "a tag category", Kind.ACTIVITY_TYPE: "an activity type", Kind.TAG: "a tag"}
_TYPES = {name: bare for model in MODELS.values() for name, (bare, _) in fields_by_type(model).items()}
INSTANTS = frozenset(name for name, bare in _TYPES.items() if bare is int)
LISTS = frozenset(name for name, bare in _TYPES.items() if bare == tuple[str, ...])
NOT_TEXT = INSTANTS | {name for name, bare in _TYPES.items() if bare is bool}
"""The fields that are flags or instants, which are not read from quoted text."""
NEVER_EMPTY = NOT_TEXT | {name for name, bare in _TYPES.items() if get_origin(bare) is Literal}
"""The fields for which empty text has no meaning."""
NEVER_DEFAULTS = frozenset({"previously"})
"""The fields besides the identity that `defaults` cannot set, because they belong to a single resource."""
NEVER_FIELDS = frozenset({"keywords", "metadata", "protect", "previously"})
"""The fields of a tag that are stored outside `Body.fields`. A category's keywords are an ordinary field."""

_MEANT = {
    Kind.CATEGORY: {"id": "externalId", "name": "label", "code": "externalId", "title": "label"},
    Kind.ACTIVITY_TYPE: {"name": "label", "id": "code", "externalId": "code", "title": "label"},
    Kind.TAG: {
        "additionalKeywords": "keywords",
        "categoryId": "tagCategoryId",
        "categoryExternalId": "category",
        "tagCategory": "category",
        "label": "name",
        "title": "name",
        "id": "externalId",
        "code": "name",
        "assignees": "assigneeExternalIds",
        "private": "visibility",
        "link": "url",
        "activityType": "defaultActivityTypeCode",
    },
}
"""The right fields for names that people take by mistake from the service's interface or from another kind, where the
nearest spelling would mislead."""


def _defaults_model(kind: Kind) -> type[Model]:
    """Return a model with the kind's fields, all optional, without those that belong to a single resource."""
    model = MODELS[kind]
    optional = [
        (each.name, _optional(each.type), None)
        for each in fields_of(model)
        if each.encode_name != IDENTITIES[kind] and each.name not in NEVER_DEFAULTS
    ]
    exclusive = {"beyond_fields": at_most_one(*EXCLUSIVE)} if kind is Kind.TAG else {}
    each: type[Model] = _model(f"{model.__name__}Defaults", optional, exclusive)
    return each


def _model(name: str, model_fields: list[tuple[str, Any, None]], namespace: dict[str, Any]) -> Any:
    """Return a model with computed fields, typed as `Any` because type checkers cannot know them."""
    return defstruct(name, model_fields, bases=(Model,), namespace=namespace, frozen=True)


def _optional(declared: Any) -> Any:
    """Return the annotated type `declared`, extended by `None`, with its description."""
    return Annotated[(declared | None, *(meta for meta in declared.__metadata__ if isinstance(meta, Meta)))]


DEFAULTS: dict[Kind, type[Model]] = {kind: _defaults_model(kind) for kind in MODELS}


_SAID = "Default values for all `{}`."
Defaults: Any = _model(
    "Defaults",
    [
        (section, Annotated[DEFAULTS[kind] | None, Meta(description=_SAID.format(section))], None)
        for section, kind in SECTIONS.items()
    ],
    {"__doc__": "Default values for all resources of a kind. A resource adds to maps, and replaces lists and scalars."},
)


class Manifest(Model, frozen=True):
    """One document of a manifest file; every section is optional."""

    beyond_fields: ClassVar[Mapping[str, Any]] = {
        "title": "syncengine manifest",
        "type": ["object", "null"],
    }  # a document may be empty

    tag_categories: Annotated[
        list[TagCategory] | None, Meta(description="Groups of tags; a category that is no longer declared is deleted.")
    ] = None
    activity_types: Annotated[
        list[ActivityType] | None, Meta(description="Kinds of work that time can be posted as.")
    ] = None
    tags: Annotated[list[Tag] | None, Meta(description="Tags for recorded time, such as matters or projects.")] = None
    defaults: Annotated[Defaults | None, Meta(description="Default values for all resources of this file.")] = None
    removed: Annotated[list[RemovedTag] | None, Meta(description="How to remove tags that are no longer declared.")] = (
        None
    )
    generate: Annotated[list[Generate] | None, Meta(description="Resources generated from the rows of a source.")] = (
        None
    )


RESOURCE_TABLES = {kind: Table.of(model, TITLES[kind], _MEANT[kind]) for kind, model in MODELS.items()}
DEFAULTS_TABLES = {
    kind: Table.of(model, f"`defaults.{section}`", _MEANT[kind])
    for section, kind in SECTIONS.items()
    for model in (DEFAULTS[kind],)
}
REMOVED_TABLE = Table.of(RemovedTag, "an item of `removed`", {"name": "tag", "how": "as"})
MANIFEST_SECTIONS = tuple(names_of(Manifest))
