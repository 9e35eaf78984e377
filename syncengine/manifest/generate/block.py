"""One `generate` block → a function of a row, compiled once; a row → the results of its templates, or problems. Pure.

A row is built as nodes with the places of its templates, and is read like a resource that was written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, Sequence
from syncengine.errors import Diagnostic
from syncengine.manifest.generate.fields import ResourceTemplate, Results, Twice, is_dynamic, resource_template
from syncengine.manifest.generate.scalars import Compiled, Leaf
from syncengine.manifest.generate_schema import Generate
from syncengine.manifest.schema import RESOURCE_TABLES, SECTIONS
from syncengine.resource import Kind
from syncengine.templating.bounds import OutOfBounds
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import Record


class Block:
    """A `generate` block with its compiled templates. Problems in them are reported to `findings`.

    A block that `is_faulty` has errors already: its rows make nothing, and only further errors are looked for.
    """

    def __init__(
        self,
        settings: Generate,
        node: MappingNode,
        findings: Collector,
    ) -> None:
        self.node = node
        self.row_name = settings.as_ or "row"
        self.whole = True
        self.is_faulty = False
        self._compiled = Compiled(TemplateSandbox(), (self.row_name, "var", "env"), findings)
        when = node.get("when")
        before = len(findings.found)
        self.when = self._compiled.condition(when) if isinstance(when, Scalar) else None
        self.has_faulty_condition = len(findings.found) > before
        self.templates = [
            resource for section, kind in SECTIONS.items() for resource in self._section(section, kind, findings)
        ]
        if not self.templates and not findings.found:
            findings.error(
                "missing-field", node, "an item of `generate` needs `tags`, `tagCategories` or `activityTypes`"
            )

    def _section(self, section: str, kind: Kind, findings: Collector) -> Iterator[ResourceTemplate]:
        items = self.node.get(section)
        if items is None:
            return
        if not isinstance(items, Sequence):
            findings.error("wrong-type", items, f"`{section}` must be a list")
            return
        for item in items.items:
            if not isinstance(item, MappingNode):
                findings.error("wrong-type", item, f"an item of {section} must be a mapping of fields")
                continue
            table = RESOURCE_TABLES[kind]
            constant = [n for n, v in enumerate(item.values) if not is_dynamic(v)]
            fixed = MappingNode([item.keys[n] for n in constant], [item.values[n] for n in constant], item.mark)
            table.read(fixed, findings)
            for n, key in enumerate(item.keys):
                if n not in constant and key.text not in table.readers:
                    table.read(MappingNode([key], [item.values[n]], item.mark), findings)
            yield resource_template(kind, item, self._compiled)

    def begin(self, variables: Mapping[str, Any], findings: Collector) -> None:
        """Compile the templates into one function."""
        self._variables = variables
        self._file = findings.file
        self._function = self._compiled.function()

    def results(self, row: Record, diagnostics: list[Diagnostic]) -> Results | None:
        """Return the results of the templates for a row, or `None` if it is left out or fails with a diagnostic.

        Raise `OutOfBounds` when all further rows would fail as well.
        """
        variables = {**self._variables, self.row_name: row}
        if self.is_faulty:
            self._examine(variables, Collector(self._file, diagnostics))
            return None
        try:
            return self._function(variables) if self.when is None or self._holds(variables) else None
        except OutOfBounds:
            raise
        except SURPRISES as error:
            self._explain(variables, error, diagnostics)
            return None

    def explain(self, row: Record, error: BaseException, diagnostics: list[Diagnostic]) -> None:
        """Report why a row failed. Raise `OutOfBounds` as `results` does."""
        self._explain({**self._variables, self.row_name: row}, error, diagnostics)

    def _holds(self, variables: Mapping[str, Any]) -> bool:
        assert self.when is not None
        value = self.when.value(variables)
        if isinstance(value, str):
            raise WhenText
        return bool(value)

    def _explain(self, variables: Mapping[str, Any], error: BaseException, diagnostics: list[Diagnostic]) -> None:
        """Report each field that fails, or else the error itself."""
        self.whole = False
        findings = Collector(self._file, diagnostics)
        if isinstance(error, Twice):
            findings.at("duplicate-key", error.at.line + 1, error.at.column + 1, str(error))
            return
        count = len(diagnostics)
        self._examine(variables, findings)
        if len(diagnostics) == count:
            leaf = next((each for each in (self.when, *self._compiled.leaves) if each is not None), None)
            _tell(findings, leaf, "bad-template", f"the template failed: {trouble(error)}")

    def _examine(self, variables: Mapping[str, Any], findings: Collector) -> None:
        """Evaluate each template of a row by itself, and report those that fail or have a value that is refused."""
        if self.when is not None:
            try:
                if not self._holds(variables):
                    return
            except OutOfBounds:
                raise
            except WhenText:
                _tell(findings, self.when, "when-text", "`when` must be an expression that is true or false, not text")
                return
            except SURPRISES as reason:
                _tell(findings, self.when, "bad-template", f"the template failed: {trouble(reason)}")
                return
        results: dict[int, Any] = {}
        for number, leaf in enumerate(self._compiled.leaves):
            try:
                results[number] = leaf.value(variables)
            except OutOfBounds:
                raise
            except SURPRISES as reason:
                _tell(findings, leaf, "bad-template", f"the template failed: {trouble(reason)}")
        if not self.is_faulty:  # or leaves may be missing, so that their numbers mean others
            for template in self.templates:
                RESOURCE_TABLES[template.kind].read(template.sound_fields(results), findings)


class WhenText(ValueError):
    """Raised when the result of `when` is text."""


def _tell(findings: Collector, leaf: Leaf | None, code: str, message: str) -> None:
    if leaf is not None:
        findings.at(code, leaf.line, leaf.column, message)
