"""The models of a manifest: names, types, limits and descriptions of every field, once. Data only.

Readers (`tables`) and JSON Schemas come from here (product.md §3, specification §2).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from syncengine.delivery_shapes import at_most_one
from syncengine.document.shapes import (
    Filled,
    Flag,
    Identity,
    Instant,
    Line,
    Names,
    Prose,
    Reads,
    Texts,
    Words,
    by_reader,
    choice,
)
from syncengine.document.tables import Model, Table, plain_fields
from syncengine.manifest.generate_shape import Generate
from syncengine.resource import Kind, Removal

EXCLUSIVE = ("category", "tagCategoryId")
"""Fields of a tag of which it has one, or none."""
_PROTECT = "Never removed by a plan, even when it is gone from the manifests."


class TagCategory(Model):
    """A group of tags."""

    external_id: Identity = Field(description="Identity of the category: its id in the connected system.")
    label: Line | None = Field(None, description="Shown in the console.")
    description: Prose | None = Field(None, description="Shown in the console.")
    keywords: Words | None = Field(None, description="Words that belong to the category.")
    previously: Names | None = Field(None, description="Earlier externalIds of this category: a rename.")
    protect: Flag | None = Field(None, description=_PROTECT)


class ActivityType(Model):
    """A kind of work that time can be posted as."""

    model_config = ConfigDict(json_schema_extra={"required": ["code"]})  # the label may be a default

    code: Identity = Field(description="Identity of the activity type.")
    label: Filled = Field(description="Shown in the console; the service takes it on creation only.")
    description: Prose | None = Field(None, description="Shown in the console.")
    enable_if_new: Flag | None = Field(
        None, description="Offer it to users when it is created; acts on creation only, false by default."
    )
    reenable_if_archived: Flag | None = Field(None, description="Revive a deleted or archived one; false by default.")
    protect: Flag | None = Field(None, description=_PROTECT)


class Tag(Model):
    """A tag that users assign to recorded time."""

    model_config = ConfigDict(json_schema_extra=at_most_one(*EXCLUSIVE))

    name: Identity = Field(description="Identity of the tag.")
    description: Prose | None = Field(None, description="Shown in the console and searched; cannot be cleared.")
    category: Line | None = Field(None, description="The externalId of a category of these manifests.")
    tag_category_id: Line | None = Field(
        None, description="The service's id of a category that is managed elsewhere; not together with `category`."
    )
    keywords: Words | None = Field(None, description="The whole set this manifest wants, besides the tag's name.")
    exclude_tag_name_keyword: Flag | None = Field(
        None, description="Do not make the tag's name one of its keywords; false by default."
    )
    metadata: Texts | None = Field(None, description="Names and values that appear in reports.")
    external_id: Line | None = Field(None, description="The tag's id in the connected system.")
    default_activity_type_code: Line | None = Field(
        None, description="Activity type of time entries for which the user has chosen none."
    )
    url: Line | None = Field(None, description="Where the console links to.")
    visibility: Annotated[Literal["PUBLIC", "PRIVATE"], Reads(choice(("PUBLIC", "PRIVATE")), by_reader)] | None = Field(
        None, description="PRIVATE tags are seen by authorised team members only; PUBLIC by default."
    )
    assignee_external_ids: Words | None = Field(None, description="External ids of the users who work on the matter.")
    managed_by: Line | None = Field(None, description="What manages this tag.")
    path: Line | None = Field(None, description="Deprecated by the service; / by default.")
    created_timestamp: Instant | None = Field(None, description="When the matter was created: RFC 3339, or ms.")
    modified_timestamp: Instant | None = Field(None, description="When the matter was modified: RFC 3339, or ms.")
    closed_timestamp: Instant | None = Field(None, description="When the matter was closed: RFC 3339, or ms.")
    previously: Names | None = Field(None, description="Earlier names of this tag: a rename.")
    protect: Flag | None = Field(None, description=_PROTECT)


class RemovedTag(Model):
    """How a tag leaves that these manifests no longer declare."""

    tag: Identity = Field(description="Name of the tag.")
    as_: Annotated[Removal, Reads(choice(Removal))] = Field(
        alias="as",
        description="forget: leave it to the service; retire: keep it without keywords; delete: remove it.",
    )
    reason: Prose | None = Field(None, description="For those who read the manifest and the plan.")


MODELS: dict[Kind, type[Model]] = {Kind.CATEGORY: TagCategory, Kind.ACTIVITY_TYPE: ActivityType, Kind.TAG: Tag}
SECTIONS = {"tagCategories": Kind.CATEGORY, "activityTypes": Kind.ACTIVITY_TYPE, "tags": Kind.TAG}
IDENTITIES = {Kind.CATEGORY: "externalId", Kind.ACTIVITY_TYPE: "code", Kind.TAG: "name"}
TITLES = {Kind.CATEGORY: "a tag category", Kind.ACTIVITY_TYPE: "an activity type", Kind.TAG: "a tag"}
NEVER_DEFAULTS = frozenset({"previously"})
"""Besides the identity: fields that make sense for one resource only."""
NEVER_FIELDS = frozenset({"keywords", "metadata", "protect", "previously"})
"""Fields of a tag that a body or a resource holds elsewhere than in `fields`; a category's keywords are a field."""

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
"""What people write who know the service's interface, or another kind; the nearest spelling would mislead them."""


def _defaults_model(kind: Kind) -> type[Model]:
    """The kind's fields, none of them required, without those that only one resource can have."""
    model = MODELS[kind]
    fields: dict[str, Any] = {
        name: (_optional(info), Field(None, description=info.description))
        for name, info in model.model_fields.items()
        if info.alias != IDENTITIES[kind] and name not in NEVER_DEFAULTS
    }
    exclusive: dict[str, Any] = {"json_schema_extra": at_most_one(*EXCLUSIVE)} if kind is Kind.TAG else {}
    return create_model(f"{model.__name__}Defaults", __base__=Model, __cls_kwargs__=exclusive, **fields)


def _optional(info: FieldInfo) -> Any:
    declared: Any = info.annotation
    for extra in info.metadata:
        declared = Annotated[declared, extra]
    return declared | None


DEFAULTS: dict[Kind, type[Model]] = {kind: _defaults_model(kind) for kind in MODELS}


_defaults_fields: Any = {
    section: (DEFAULTS[kind] | None, Field(None, description=f"What each of the {section} has that does not say it."))
    for section, kind in SECTIONS.items()
}
Defaults: type[Model] = create_model(
    "Defaults",
    __base__=Model,
    __doc__="Merged under every resource of a kind: maps merge, lists and scalars replace.",
    **_defaults_fields,
)


class Manifest(Model):
    """One document of a manifest file; every section is optional."""

    model_config = ConfigDict(
        title="syncengine manifest",
        json_schema_extra={"type": ["object", "null"]},  # a document may be empty
    )

    tag_categories: list[TagCategory] | None = Field(None, description="Groups of tags; what is gone is deleted.")
    activity_types: list[ActivityType] | None = Field(None, description="Kinds of work that time can be posted as.")
    tags: list[Tag] | None = Field(None, description="What users assign to recorded time: matters, projects.")
    defaults: Defaults | None = Field(None, description="Merged under every resource of this file.")
    removed: list[RemovedTag] | None = Field(None, description="How tags leave that are no longer declared.")
    generate: list[Generate] | None = Field(None, description="Resources made of the rows of a source.")


RESOURCE_TABLES = {kind: Table.of(model, TITLES[kind], _MEANT[kind]) for kind, model in MODELS.items()}
DEFAULTS_TABLES = {
    kind: Table.of(model, f"the defaults of {section}", _MEANT[kind])
    for section, kind in SECTIONS.items()
    for model in (DEFAULTS[kind],)
}
PLAIN_SECTIONS = {section: plain_fields(MODELS[kind], RESOURCE_TABLES[kind]) for section, kind in SECTIONS.items()}
"""What `document.plain` can read of each section."""
REMOVED_TABLE = Table.of(RemovedTag, "an item of `removed`", {"name": "tag", "how": "as"})
MANIFEST_SECTIONS = tuple(info.alias or name for name, info in Manifest.model_fields.items())
