"""Read rules and tests from files, or report all errors in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as AnyMapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field, structs

from syncengine.document.diagnostics import INVALID, Collector, in_order, suggestion
from syncengine.document.field_types import Filled, Names, Reads, Texts, Words
from syncengine.document.model import JsonSchema, Model, constructed, part_of
from syncengine.document.model_reader import Table, display, unexamined
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, described, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
from syncengine.document.scalar_readers import choice, list_reader, refused, whole_number, words
from syncengine.document.setting_types import parse_reader
from syncengine.document.template_types import Condition, SinkName, Template, one_of_schema
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.files import ManifestFile, find
from syncengine.project.model import Project
from syncengine.project.schema import address
from syncengine.rules.model import (
    ACTIONS,
    COUNTS,
    PolicyRule,
    RuleKind,
    RuleSet,
    RuleTestCase,
    Ruling,
    TemplateText,
    both_sides,
)


class RuleItem(Model, frozen=True):
    """A rule that denies changes for which its expression is true, warns about them, or requires their approval."""

    schema_name = "Rule"
    beyond_fields: ClassVar[AnyMapping[str, Any]] = one_of_schema(*Ruling)

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
        if isinstance(node, SequenceNode):
            return addresses(node, findings)
        if not isinstance(node, Mapping):
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
        if not isinstance(node, Mapping):
            return refused(node, findings, name, "a mapping of counts", "{}")
        counts = table.read(node, findings)
        return INVALID if INVALID in counts.values() else counts

    return read


_MANIFEST = part_of("Manifest")


def _listed(model: str) -> JsonSchema:
    return JsonSchema({"type": "array", "items": part_of(model)})


Tags = Annotated[Any, Reads(unexamined), _listed("Tag")]
Categories = Annotated[Any, Reads(unexamined), _listed("TagCategory")]
ActivityTypes = Annotated[Any, Reads(unexamined), _listed("ActivityType")]


class Expectation(Model, frozen=True):
    """The expectations of a test. Absent keys are not compared."""

    beyond_fields: ClassVar[AnyMapping[str, Any]] = {"minProperties": 1}

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
        Tags | None,
        Meta(description="All tags that the manifests declare, with all their fields, in any order."),
    ] = None
    tag_categories: Annotated[
        Categories | None,
        Meta(description="All tag categories that the manifests declare, with all their fields."),
    ] = None
    activity_types: Annotated[
        ActivityTypes | None,
        Meta(description="All activity types that the manifests declare, with all their fields."),
    ] = None
    errors: Annotated[Names | None, Meta(description="The codes of all errors that prevent the plan.")] = None


def _manifests(name: str) -> Any:
    """Return a reader of a manifest, or of a list of paths and manifests. Manifests are examined when the test runs."""
    path = parse_reader(lambda text: text if text.strip() and "\0" not in text else None, "a path")

    def one(node: Node, findings: Collector) -> Any:
        return node if isinstance(node, Mapping) else path(f"an item of {name}")(node, findings) and node

    several = list_reader(name, one, "a manifest, or a list of paths and manifests", "{}")

    def read(node: Node, findings: Collector) -> Any:
        return (node,) if isinstance(node, Mapping) else several(node, findings)

    return read


class RuleTest(Model, frozen=True, kw_only=True):
    """A test of a plan, with the resources applied before, the manifests, and the expectations."""

    name: Annotated[Filled, Meta(description="The name of the test.")]
    recorded: Annotated[
        Annotated[Any, Reads(unexamined), JsonSchema(_MANIFEST)] | None,
        Meta(description="A manifest of what was applied before; nothing by default."),
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

    beyond_fields: ClassVar[AnyMapping[str, Any]] = {"title": "syncengine rules", "type": ["object", "null"]}

    rules: Annotated[list[RuleItem] | None, Meta(description="Rules for plans of this project.")] = None
    tests: Annotated[list[RuleTest] | None, Meta(description="Tests of rules, manifests and templates.")] = None


RULE_TABLE = Table.of(RuleItem, "a rule", {"kind": "for", "if": "deny", "title": "name", "who": "by"})
TEST_TABLE = Table.of(RuleTest, "a test", {"given": "recorded", "state": "recorded", "want": "expect"})


SECTIONS = {"rules": "a rule", "tests": "a test"}
CODES = {"missing-manifests": "missing-policies", "not-a-manifest": "not-a-policy"}
"""The codes of errors in a search for manifests, and the corresponding codes in a search for rules."""


def rule_set(project: Project, more: Sequence[Path] = ()) -> RuleSet:
    """Return the rules and tests of a project and of `more` files and folders. Raise `Problems` with all errors."""
    if not (project.policy_paths or project.inline_policies or more):
        return RuleSet()
    files, problems = policy_files(project, more)
    contents = [(file.name, file.content(findings := Collector(file.name, problems)), findings) for file in files]
    if problems:
        raise Problems(in_order(problems))
    texts = ((name, data) for name, data, _ in contents if data is not None)
    return rules_in(texts, ((project.config_name, node) for node in project.inline_policies))


def rules_in(files: Iterable[tuple[str, bytes]], inline: Iterable[tuple[str, Node]] = ()) -> RuleSet:
    """Return the rules and tests of files, given as names and contents. Raise `Problems` with all errors.

    `inline` are documents in the project file, with its name.
    """
    reading = _Reading()
    for name, data in files:
        findings = Collector(name, reading.problems)
        for root in read(data, findings).roots:
            reading.document(root, findings)
    for name, node in inline:
        reading.document(node, Collector(name, reading.problems))
    if reading.rules:
        from syncengine.rules.judge import compiled  # the templates' engine costs more than most plans

        compiled(reading.rules, reading.problems)
    if reading.problems:
        raise Problems(in_order(reading.problems))
    return RuleSet(tuple(reading.rules), tuple(reading.tests))


def rules_that_hold(project: Project) -> RuleSet:
    """Return the rules of a project and of its other judges, such as the base of a pull request."""
    rules = rule_set(project)
    for judge in project.other_judges:
        rules = both_sides(rules, rule_set(judge))
    return rules


def policy_files(project: Project, more: Sequence[Path] = ()) -> tuple[list[ManifestFile], list[Diagnostic]]:
    """Return the files of a project's rules, and the problems met in the search for them."""
    search = find((*project.policy_paths, *more), project.files, secrets=project.secret_files())
    problems = [structs.replace(d, code=CODES.get(d.code, d.code)) for d in search.problems]
    for file in search.files:
        if file.is_template:
            findings = Collector(file.name, problems)
            findings.at("not-a-policy", None, None, "a rules file cannot be a template")
    return [file for file in search.files if not file.is_template], problems


class _Reading:
    """The rules and tests read so far, and the problems found."""

    def __init__(self) -> None:
        self.rules: list[PolicyRule] = []
        self.tests: list[RuleTestCase] = []
        self.problems: list[Diagnostic] = []
        self._places: dict[tuple[str, str], tuple[str, int, int]] = {}

    def document(self, root: Node, findings: Collector) -> None:
        if not isinstance(root, Mapping):
            if not isinstance(root, RefusedNode):
                message = f"a rules file consists of the sections `rules:` and `tests:`, not of {described(root)}"
                findings.error("wrong-type", root, message)
            return
        for key, value in zip(root.keys, root.values, strict=True):
            if (what := SECTIONS.get(key.text)) is None:
                message = f"a rules file has no section `{display(key.text)}`{suggestion(key.text, SECTIONS)}"
                findings.error("unknown-section", key, message)
            elif not isinstance(value, SequenceNode):
                refused(value, findings, key.text, "a list", empty="[]")
            else:
                add = self._add_rule if key.text == "rules" else self._add_test
                for item in value.items:
                    add(item, findings) if isinstance(item, Mapping) else refused(item, findings, what, "a mapping", "")

    def _add_rule(self, node: Mapping, findings: Collector) -> None:
        before = len(findings.found)
        values = RULE_TABLE.read(node, findings)
        is_missing = RULE_TABLE.missing(values, node, findings)
        written = [key for key in node.keys if key.text in set(Ruling)]
        if len(written) != 1 and len(findings.found) == before:
            rulings = ", ".join(f"`{ruling}`" for ruling in Ruling)
            findings.error("bad-value", node, f"a rule needs exactly one of {rulings}")
        if is_missing or INVALID in values.values() or len(findings.found) > before:
            return
        rule: RuleItem = constructed(RuleItem, values)
        ruling = Ruling(written[0].text)
        if rule.by is not None and ruling is not Ruling.APPROVE:
            by = next(key for key in node.keys if key.text == "by")
            findings.error("bad-value", by, "`by` is only allowed with `approve`: it names the people to ask")
        if self._is_first("rule", rule.name.text, node, findings):
            # The models keep no style of a scalar, by which a block's text begins one line later.
            condition, message = node.get(ruling.value), node.get("message")
            assert isinstance(condition, Scalar)
            self.rules.append(
                PolicyRule(
                    name=rule.name.text,
                    kind=rule.for_,
                    ruling=ruling,
                    condition=TemplateText.of(condition),
                    message=TemplateText.of(message) if isinstance(message, Scalar) else None,
                    by=rule.by or (),
                    file=findings.file,
                    line=place(node)[0],
                )
            )

    def _add_test(self, node: Mapping, findings: Collector) -> None:
        before = len(findings.found)
        values = TEST_TABLE.read(node, findings)
        is_missing = TEST_TABLE.missing(values, node, findings)
        expect, recorded = node.get("expect"), node.get("recorded")
        if isinstance(expect, Mapping) and not expect.keys:
            findings.error("missing-field", expect, "`expect` is empty: add at least one expectation of the plan")
        if recorded is not None and not isinstance(recorded, Mapping):
            refused(recorded, findings, "recorded", "a manifest: a mapping of sections", empty="{}")
        if is_missing or INVALID in values.values() or len(findings.found) > before:
            return
        test: RuleTest = constructed(RuleTest, values)
        if self._is_first("test", test.name, node, findings):
            assert recorded is None or isinstance(recorded, Mapping)
            self.tests.append(
                RuleTestCase(
                    name=test.name,
                    file=findings.file,
                    line=place(node)[0],
                    recorded=recorded,
                    manifests=test.manifests,
                    data=test.data or {},
                    variables=test.variables or {},
                    expect=test.expect,
                )
            )

    def _is_first(self, what: str, name: str, node: Mapping, findings: Collector) -> bool:
        """Return whether no other rule, or no other test in the file, has this name. Otherwise report it."""
        at = node.get("name") or node
        key = (what if what == "rule" else f"{what} of {findings.file}", name)
        here = (findings.file, *place(at))
        if (there := self._places.setdefault(key, here)) == here:
            return True
        findings.error(f"duplicate-{what}", at, f"a {what} `{display(name)}` already exists at {there[0]}:{there[1]}")
        return False
