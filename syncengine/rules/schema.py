"""The models of a file of rules, with names, types and descriptions of all keys. Data only (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import Filled, Names, Reads, Texts, Words
from syncengine.document.model import JsonSchema, Model, part_of
from syncengine.document.model_reader import Table, unexamined
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar, Sequence
from syncengine.document.scalar_readers import choice, list_reader, refused, whole_number, words
from syncengine.document.setting_types import parse_reader
from syncengine.document.template_types import Condition, SinkName, Template, one_of_schema
from syncengine.project.schema import address
from syncengine.resource import Kind


class RuleKind(StrEnum):
    """The kind of resource whose changes a rule judges, or `plan` for the plan as a whole."""

    __hash__ = str.__hash__

    TAG = Kind.TAG.value
    CATEGORY = Kind.CATEGORY.value
    ACTIVITY_TYPE = Kind.ACTIVITY_TYPE.value
    PLAN = "plan"


class Ruling(StrEnum):
    """The consequence of a rule whose expression is true."""

    DENY = "deny"
    WARN = "warn"
    APPROVE = "approve"


ACTIONS = ("create", "update", "delete", "retire", "forget")
COUNTS = (
    *(*ACTIONS, "unchanged", "keywordAdds", "keywordDeletes"),
    *("metadataDeletes", "cascadedTags", "kept", "requests"),
)
"""The counts of a plan's summary, by their names in its JSON."""


class RuleItem(Model, frozen=True):
    """A rule that denies changes for which its expression is true, warns about them, or requires their approval."""

    schema_name = "Rule"
    beyond_fields: ClassVar[Mapping[str, Any]] = one_of_schema(*Ruling)

    name: Annotated[SinkName, Meta(description="Name of the rule, in plans and approvals: letters, digits, - _ and .")]
    for_: Annotated[
        Annotated[RuleKind, Reads(choice(RuleKind))],
        Meta(description="The changes to judge: of a tag, category or activity-type, or the plan as a whole."),
    ] = field(name="for")
    deny: Annotated[Condition | None, Meta(description="An expression; if it is true, the plan is denied.")] = None
    warn: Annotated[Condition | None, Meta(description="An expression; if it is true, the plan shows a warning.")] = (
        None
    )
    approve: Annotated[
        Condition | None, Meta(description="An expression; if it is true, the plan needs an approval.")
    ] = None
    message: Annotated[Template | None, Meta(description="A template of the message about each change.")] = None
    by: Annotated[
        Words | None, Meta(description="The people to ask for the approval; the plan names them to its reviewers.")
    ] = None


ADDRESS_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^(tag|category|activity-type)/.+$"}
_address_of = parse_reader(address, "an address: tag/NAME, category/EXTERNAL_ID or activity-type/CODE")


def _changes(name: str) -> Any:
    """Return a reader of a list of addresses, or of a mapping of addresses to actions."""
    addresses, action = words(_address_of)(name), choice(ACTIONS)

    def read(node: Node, findings: Collector) -> Any:
        if isinstance(node, Sequence):
            return addresses(node, findings)
        if not isinstance(node, MappingNode):
            return refused(node, findings, name, "a list of addresses, or a mapping of addresses to actions", "[]")
        for key in node.keys:
            _address_of(f"a name in {name}")(Scalar(key.text, key.mark, '"'), findings)
        pairs = zip(node.keys, node.values, strict=True)
        actions = {key.text: action(key.text)(value, findings) for key, value in pairs}
        return INVALID if INVALID in actions.values() else actions

    return read


def _counts(name: str) -> Any:
    count = whole_number(0, 10**12)
    table = Table("a summary", {each: (each, count(f"{name}.{each}")) for each in COUNTS}, frozenset())

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, MappingNode):
            return refused(node, findings, name, "a mapping of counts", "{}")
        counts = table.read(node, findings)
        return INVALID if INVALID in counts.values() else counts

    return read


_MANIFEST = part_of("Manifest")
Section = Annotated[Any, Reads(unexamined), JsonSchema(_MANIFEST)]


def _listed(model: str) -> JsonSchema:
    """Return the schema of a list of resources."""
    return JsonSchema({"type": "array", "items": part_of(model)})


Tags = Annotated[Any, Reads(unexamined), _listed("Tag")]
Categories = Annotated[Any, Reads(unexamined), _listed("TagCategory")]
ActivityTypes = Annotated[Any, Reads(unexamined), _listed("ActivityType")]


class Expectation(Model, frozen=True):
    """The expectations of a test. Absent keys are not compared."""

    beyond_fields: ClassVar[Mapping[str, Any]] = {"minProperties": 1}

    denied: Annotated[Names | None, Meta(description="All rules that deny the plan; [] for none.")] = None
    warned: Annotated[Names | None, Meta(description="All rules that warn about the plan; [] for none.")] = None
    approve: Annotated[Names | None, Meta(description="All rules that ask for an approval; [] for none.")] = None
    summary: Annotated[
        Annotated[
            dict[str, int],
            Reads(_counts),
            JsonSchema(
                {
                    "type": "object",
                    "properties": {name: {"type": "integer", "minimum": 0} for name in COUNTS},
                    "additionalProperties": False,
                }
            ),
        ]
        | None,
        Meta(description="Counts of the plan, as in its JSON; counts that are not listed are not compared."),
    ] = None
    changes: Annotated[
        Annotated[
            Any,
            Reads(_changes),
            JsonSchema(
                {
                    "anyOf": [
                        {"type": "array", "items": ADDRESS_SCHEMA},
                        {
                            "type": "object",
                            "propertyNames": ADDRESS_SCHEMA,
                            "additionalProperties": {"enum": list(ACTIONS)},
                        },
                    ]
                }
            ),
        ]
        | None,
        Meta(description="The addresses of all changes in any order, or a mapping of the addresses to actions."),
    ] = None
    tags: Annotated[
        Tags | None, Meta(description="All tags that the manifests declare, with all their fields, in any order.")
    ] = None
    tag_categories: Annotated[
        Categories | None, Meta(description="All tag categories that the manifests declare, with all their fields.")
    ] = None
    activity_types: Annotated[
        ActivityTypes | None, Meta(description="All activity types that the manifests declare, with all their fields.")
    ] = None
    errors: Annotated[Names | None, Meta(description="The codes of all errors that prevent the plan.")] = None


def _manifests(name: str) -> Any:
    """Return a reader of a manifest, or of a list of paths and manifests. Manifests are examined when the test runs."""
    path = parse_reader(lambda text: text if text.strip() and "\0" not in text else None, "a path")

    def one(node: Node, findings: Collector) -> Any:
        return node if isinstance(node, MappingNode) else path(f"an item of {name}")(node, findings) and node

    several = list_reader(name, one, "a manifest, or a list of paths and manifests", "{}")

    def read(node: Node, findings: Collector) -> Any:
        return (node,) if isinstance(node, MappingNode) else several(node, findings)

    return read


class RuleTest(Model, frozen=True, kw_only=True):
    """A test of a plan, with the resources applied before, the manifests, and the expectations."""

    name: Annotated[Filled, Meta(description="The name of the test.")]
    recorded: Annotated[
        Section | None, Meta(description="A manifest of what was applied before; nothing by default.")
    ] = None
    manifests: Annotated[
        Annotated[
            Any,
            Reads(_manifests),
            JsonSchema({"anyOf": [_MANIFEST, {"type": "array", "items": {"anyOf": [{"type": "string"}, _MANIFEST]}}]}),
        ],
        Meta(description="A manifest, or a list of manifests and paths of the project's manifests."),
    ]
    data: Annotated[
        Texts | None, Meta(description="Files that the manifests read, by path, instead of the project's own.")
    ] = None
    variables: Annotated[Texts | None, Meta(description="Variables that override the project's variables.")] = None
    expect: Annotated[Expectation, Meta(description="The expected plan or errors.")]


class Policies(Model, frozen=True):
    """One document of a rules file."""

    beyond_fields: ClassVar[Mapping[str, Any]] = {"title": "syncengine rules", "type": ["object", "null"]}

    rules: Annotated[list[RuleItem] | None, Meta(description="Rules for plans of this project.")] = None
    tests: Annotated[list[RuleTest] | None, Meta(description="Tests of rules, manifests and templates.")] = None


RULE_TABLE = Table.of(RuleItem, "a rule", {"kind": "for", "if": "deny", "title": "name", "who": "by"})
TEST_TABLE = Table.of(RuleTest, "a test", {"given": "recorded", "state": "recorded", "want": "expect"})
