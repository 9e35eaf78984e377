"""Read rules and tests from files, or report all errors in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import structs

from syncengine.document.diagnostics import INVALID, Collector, in_order, suggestion
from syncengine.document.model import constructed
from syncengine.document.model_reader import display
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, described, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
from syncengine.document.scalar_readers import refused
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.files import ManifestFile, find
from syncengine.project.model import Project
from syncengine.rules.model import PolicyRule, RuleSet, RuleTestCase, TemplateText, both_sides
from syncengine.rules.schema import RULE_TABLE, TEST_TABLE, RuleItem, RuleTest, Ruling

SECTIONS = {"rules": "a rule", "tests": "a test"}
CODES = {"missing-manifests": "missing-policies", "not-a-manifest": "not-a-policy"}
"""The codes of errors in a search for manifests, and the corresponding codes in a search for rules."""
_RULINGS = ", ".join(f"`{ruling}`" for ruling in Ruling)


def rule_set(project: Project, more: Sequence[Path] = ()) -> RuleSet:
    """Return the rules and tests of a project and of `more` files and folders. Raise `Problems` with all errors."""
    if not (project.policy_paths or project.inline_policies or more):
        return RuleSet()
    files, problems = policy_files(project, more)
    contents = [(file.name, file.content(findings := Collector(file.name, problems)), findings) for file in files]
    if problems:
        raise Problems(in_order(problems))
    texts = tuple((name, data) for name, data, _ in contents if data is not None)
    inline = tuple((project.config_name, node) for node in project.inline_policies)
    return rules_in(texts) if not inline else _rules(texts, inline)


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


@lru_cache(maxsize=4)
def rules_in(files: tuple[tuple[str, bytes], ...]) -> RuleSet:
    """Return the rules and tests of files, given as names and contents. Raise `Problems` with all errors."""
    return _rules(files, ())


def _rules(files: Iterable[tuple[str, bytes]], inline: Iterable[tuple[str, Node]]) -> RuleSet:
    reading = _Reading()
    for name, data in files:
        findings = Collector(name, reading.problems)
        for root in read(data, findings).roots:
            reading.document(root, findings)
    for name, node in inline:
        reading.document(node, Collector(name, reading.problems))
    reading.check_expressions()
    if reading.problems:
        raise Problems(in_order(reading.problems))
    return RuleSet(tuple(reading.rules), tuple(reading.tests))


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
            if key.text not in SECTIONS:
                message = f"a rules file has no section `{display(key.text)}`{suggestion(key.text, SECTIONS)}"
                findings.error("unknown-section", key, message)
                continue
            for item in self._items(key.text, value, findings):
                self._rule(item, findings) if key.text == "rules" else self._test(item, findings)

    def _items(self, name: str, value: Node, findings: Collector) -> list[Mapping]:
        if not isinstance(value, SequenceNode):
            refused(value, findings, name, "a list", empty="[]")
            return []
        for item in value.items:
            if not isinstance(item, Mapping):
                refused(item, findings, SECTIONS[name], "a mapping", empty="")
        return [item for item in value.items if isinstance(item, Mapping)]

    def _rule(self, node: Mapping, findings: Collector) -> None:
        before = len(findings.found)
        values = RULE_TABLE.read(node, findings)
        is_missing = RULE_TABLE.missing(values, node, findings)
        written = [key for key in node.keys if key.text in set(Ruling)]
        if len(written) != 1 and len(findings.found) == before:
            findings.error("bad-value", node, f"a rule needs exactly one of {_RULINGS}")
        if is_missing or INVALID in values.values() or len(findings.found) > before:
            return
        rule: RuleItem = constructed(RuleItem, values)
        ruling = Ruling(written[0].text)
        if rule.by is not None and ruling is not Ruling.APPROVE:
            by = next(key for key in node.keys if key.text == "by")
            findings.error("bad-value", by, "`by` is only allowed with `approve`: it names the people to ask")
        if self._is_first("rule", rule.name.text, node.get("name") or node, findings):
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

    def _is_first(self, what: str, name: str, at: Node, findings: Collector) -> bool:
        """Return whether no other rule, or no other test in the file, has this name. Otherwise report it."""
        key = (what if what == "rule" else f"{what} of {findings.file}", name)
        here = (findings.file, *place(at))
        if (there := self._places.setdefault(key, here)) == here:
            return True
        findings.error(f"duplicate-{what}", at, f"a {what} `{display(name)}` already exists at {there[0]}:{there[1]}")
        return False

    def _test(self, node: Mapping, findings: Collector) -> None:
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
        if self._is_first("test", test.name, node.get("name") or node, findings):
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

    def check_expressions(self) -> None:
        """Compile the rules to find errors in their expressions."""
        if self.rules:
            from syncengine.rules.expressions import compiled  # the templates' engine costs more than most plans

            compiled(self.rules, self.problems)
