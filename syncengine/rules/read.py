"""Read rules and tests from files, or report all errors in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as AnyMapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import structs
from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from syncengine.document.diagnostics import Collector, in_order, suggestion
from syncengine.document.nodes import Fields, Items, Mapping, Node, RefusedNode, described, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
from syncengine.document.validation import (
    Model,
    OneOf,
    display,
    each_part,
    part_of,
    problem,
    refusal,
    refuse,
    validated,
)
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.files import ManifestFile, find
from syncengine.project.model import Project
from syncengine.project.schema import address
from syncengine.project.types import (
    AS_WRITTEN,
    Condition,
    Filled,
    Names,
    SinkName,
    Template,
    Texts,
    Whole,
    Words,
    filled_path,
    text_of,
)
from syncengine.rules.model import (
    ACTIONS,
    PolicyRule,
    RuleKind,
    RuleSet,
    RuleTestCase,
    Ruling,
    both_sides,
)


class RuleItem(OneOf):
    """A rule that denies changes for which its expression is true, warns about them, or requires their approval."""

    title = "a rule"
    synonyms: ClassVar[AnyMapping[str, str]] = {"kind": "for", "if": "deny", "title": "name", "who": "by"}
    kinds = tuple(ruling.value for ruling in Ruling)

    name: SinkName = Field(description="Name of the rule, in plans and approvals: letters, digits, - _ and .")
    for_: RuleKind = Field(
        description="The changes to judge: of a tag, category or activity-type, or the plan as a whole.", alias="for"
    )
    deny: Condition | None = Field(default=None, description="An expression; if it is true, the plan is denied.")
    warn: Condition | None = Field(default=None, description="An expression; if it is true, the plan shows a warning.")
    approve: Condition | None = Field(
        default=None, description="An expression; if it is true, the plan needs an approval."
    )
    message: Template | None = Field(default=None, description="A template of the message about each change.")
    by: Words | None = Field(
        default=None, description="The people to ask for the approval; the plan names them to its reviewers."
    )


def _address(value: Any) -> str:
    expected = "an address: tag/NAME, category/EXTERNAL_ID or activity-type/CODE"
    if (found := address(text_of(value, expected))) is None:
        raise problem("bad-value", f"must be {expected}")
    return found


def _action(name: str, action: Any) -> str:
    _address(name)
    if action not in ACTIONS:
        raise problem("bad-value", f"must be {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}")
    return str(action)


def _changes(value: Any) -> tuple[str, ...] | dict[str, str]:
    """Return a list of addresses, or a mapping of addresses to actions."""
    if isinstance(value, Fields):
        return each_part(value, _action)
    if isinstance(value, Items):
        return tuple(dict.fromkeys(each_part(dict(enumerate(value)), lambda _, each: _address(each)).values()))
    raise refusal(value, "a list of addresses, or a mapping of addresses to actions", "[]")


_ADDRESS = {"type": "string", "pattern": "^(tag|category|activity-type)/.+$"}
_ACTIONS = {"type": "object", "propertyNames": _ADDRESS, "additionalProperties": {"enum": list(ACTIONS)}}
Changes = Annotated[
    Any, PlainValidator(_changes), WithJsonSchema({"anyOf": [{"type": "array", "items": _ADDRESS}, _ACTIONS]})
]

_MANIFEST = part_of("Manifest")


def _manifest(value: Any) -> Node:
    if not isinstance(value, Fields):
        raise refusal(value, "a manifest: a mapping of sections", "{}")
    return value.node


Section = Annotated[Any, PlainValidator(_manifest), WithJsonSchema(_MANIFEST)]


def _listed(model: str) -> WithJsonSchema:
    """Return the schema of a list of resources."""
    return WithJsonSchema({"type": "array", "items": part_of(model)})


Tags = Annotated[Any, AS_WRITTEN, _listed("Tag")]
Categories = Annotated[Any, AS_WRITTEN, _listed("TagCategory")]
ActivityTypes = Annotated[Any, AS_WRITTEN, _listed("ActivityType")]


Count = Annotated[Annotated[int, Whole(0, 10**12)] | None, Field(description="The number in the plan's summary.")]


class ExpectedSummary(Model):
    """Counts of a plan, under the names of its JSON."""

    title = "a summary"

    create: Count = None
    update: Count = None
    delete: Count = None
    retire: Count = None
    forget: Count = None
    unchanged: Count = None
    keyword_adds: Count = None
    keyword_deletes: Count = None
    metadata_deletes: Count = None
    cascaded_tags: Count = None
    kept: Count = None
    requests: Count = None


class Expectation(Model):
    """The expectations of a test. Absent keys are not compared."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    denied: Names | None = Field(default=None, description="All rules that deny the plan; [] for none.")
    warned: Names | None = Field(default=None, description="All rules that warn about the plan; [] for none.")
    approve: Names | None = Field(default=None, description="All rules that ask for an approval; [] for none.")
    summary: ExpectedSummary | None = Field(
        default=None, description="Counts of the plan, as in its JSON; counts that are not listed are not compared."
    )
    changes: Changes | None = Field(
        default=None, description="The addresses of all changes in any order, or a mapping of the addresses to actions."
    )
    tags: Tags | None = Field(
        default=None, description="All tags that the manifests declare, with all their fields, in any order."
    )
    tag_categories: Categories | None = Field(
        default=None, description="All tag categories that the manifests declare, with all their fields."
    )
    activity_types: ActivityTypes | None = Field(
        default=None, description="All activity types that the manifests declare, with all their fields."
    )
    errors: Names | None = Field(default=None, description="The codes of all errors that prevent the plan.")


def _manifest_or_path(value: Any) -> Node:
    if not isinstance(value, Fields) and filled_path(text_of(value, "a path")) is None:
        raise problem("bad-value", "must be a path")
    node: Node = value.node
    return node


Manifests = Annotated[
    tuple[Annotated[Any, PlainValidator(_manifest_or_path)], ...],
    BeforeValidator(lambda value: [value] if isinstance(value, Fields) else value),
    WithJsonSchema({"anyOf": [_MANIFEST, {"type": "array", "items": {"anyOf": [{"type": "string"}, _MANIFEST]}}]}),
]
"""A manifest, or a list of manifests and paths. Manifests are examined when the test runs."""


class RuleTest(Model):
    """A test of a plan, with the resources applied before, the manifests, and the expectations."""

    title = "a test"
    synonyms: ClassVar[AnyMapping[str, str]] = {"given": "recorded", "state": "recorded", "want": "expect"}

    name: Filled = Field(description="The name of the test.")
    recorded: Section | None = Field(
        default=None, description="A manifest of what was applied before; nothing by default."
    )
    manifests: Manifests = Field(description="A manifest, or a list of manifests and paths of the project's manifests.")
    data: Texts | None = Field(
        default=None, description="Files that the manifests read, by path, instead of the project's own."
    )
    variables: Texts | None = Field(default=None, description="Variables that override the project's variables.")
    expect: Expectation = Field(description="The expected plan or errors.")


class Policies(Model):
    """One document of a rules file."""

    model_config = ConfigDict(title="syncengine rules", json_schema_extra={"type": ["object", "null"]})

    rules: list[RuleItem] | None = Field(default=None, description="Rules for plans of this project.")
    tests: list[RuleTest] | None = Field(default=None, description="Tests of rules, manifests and templates.")


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
    rules, tests, problems = list[PolicyRule](), list[RuleTestCase](), list[Diagnostic]()
    documents = list[tuple[Node, Collector]]()
    for file, data in files:
        findings = Collector(file, problems)
        documents += [(root, findings) for root in read(data, findings).roots]
    documents += [(node, Collector(file, problems)) for file, node in inline]
    places = dict[tuple[str, str], tuple[str, int, int]]()
    for root, findings in documents:
        for section, item in _items(root, findings):
            # Tests are named for one file alone, since nothing but its own report names them.
            rule = _rule(item, findings) if section == "rules" else None
            test = _test(item, findings) if section == "tests" else None
            name = rule.name if rule else test.written.name if test else None
            if name is None:
                continue
            at, what = item.get("name") or item, section.removesuffix("s")
            here = (findings.file, *place(at))
            there = places.setdefault((what if rule else f"{what} of {findings.file}", name), here)
            if there != here:
                message = f"a {what} `{display(name)}` already exists at {there[0]}:{there[1]}"
                findings.error(f"duplicate-{what}", at, message)
            elif rule:
                rules.append(rule)
            elif test:
                tests.append(test)
    if rules:
        from syncengine.rules.judge import compiled  # the templates' engine costs more than most plans

        compiled(rules, problems)
    if problems:
        raise Problems(in_order(problems))
    return RuleSet(tuple(rules), tuple(tests))


def _items(root: Node, findings: Collector) -> Iterator[tuple[str, Mapping]]:
    """Yield the items of a document's sections, and report what has another form."""
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
            refuse(value, findings, key.text, "a list", empty="[]")
        else:
            for item in value.items:
                if isinstance(item, Mapping):
                    yield key.text, item
                else:
                    refuse(item, findings, what, "a mapping", "")


def _rule(node: Mapping, findings: Collector) -> PolicyRule | None:
    rule = validated(RuleItem, node, findings)
    if rule is None:
        return None
    ruling = next(Ruling(key.text) for key in node.keys if key.text in RuleItem.kinds)
    if rule.by is not None and ruling is not Ruling.APPROVE:
        by = next(key for key in node.keys if key.text == "by")
        findings.error("bad-value", by, "`by` is only allowed with `approve`: it names the people to ask")
    condition = getattr(rule, ruling.value)
    at, by_whom = (findings.file, place(node)[0]), rule.by or ()
    return PolicyRule(rule.name.text, rule.for_, ruling, condition, rule.message, by_whom, *at)


def _test(node: Mapping, findings: Collector) -> RuleTestCase | None:
    expect = node.get("expect")
    if isinstance(expect, Mapping) and not expect.keys:
        findings.error("missing-field", expect, "`expect` is empty: add at least one expectation of the plan")
    test = validated(RuleTest, node, findings)
    return None if test is None else RuleTestCase(test, findings.file, place(node)[0])


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
