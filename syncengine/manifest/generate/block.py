"""One `generate` block → its templates, each compiled once; a row → their results, or problems. Pure.

A row is built as nodes with the places of its templates, and is read like a resource that was written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, plain
from syncengine.document.validation import names_of, report
from syncengine.errors import Diagnostic
from syncengine.manifest.declarations import declared_by
from syncengine.manifest.generate.fields import ResourceTemplate, Twice, resource_template
from syncengine.manifest.generate.scalars import Compiled, Leaf
from syncengine.manifest.schema import SECTIONS, TEMPLATED, Generate
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
        self._file = findings.file
        self.row_name = settings.as_ or "row"
        self.whole = True
        self.is_faulty = False
        self._compiled = Compiled(TemplateSandbox(), (self.row_name, "var", "env"), findings)
        when = node.get("when")
        before = len(findings.found)
        self.when = self._compiled.condition(when) if isinstance(when, Scalar) else None
        self.has_faulty_condition = len(findings.found) > before
        self.templates = [
            self._template(kind, item, findings)
            for section, kind in SECTIONS.items()
            for item in getattr(settings, names_of(Generate)[section]) or ()
        ]
        if not self.templates and not findings.found:
            findings.error(
                "missing-field", node, "an item of `generate` needs `tags`, `tagCategories` or `activityTypes`"
            )

    def _template(self, kind: Kind, node: MappingNode, findings: Collector) -> ResourceTemplate:
        """Return the template of one resource, after reporting what is wrong with it whatever the rows are."""
        try:
            TEMPLATED[kind].model_validate(plain(node))
        except ValidationError as error:
            report(error, TEMPLATED[kind], node, findings)
        return resource_template(kind, node, self._compiled)

    def results(
        self, row: Record, variables: Mapping[str, Any], diagnostics: list[Diagnostic]
    ) -> dict[int, Any] | None:
        """Return the results of the templates for a row, or `None` if it is left out or fails with diagnostics.

        Raise `OutOfBounds` when all further rows would fail as well.
        """
        findings, before = Collector(self._file, diagnostics), len(diagnostics)
        variables = {**variables, self.row_name: row}
        holds = self.when is None or self._value(self.when, variables, findings)
        if isinstance(holds, str):
            assert self.when is not None
            _tell(findings, self.when, "when-text", "`when` must be an expression that is true or false, not text")
        elif holds and holds is not FAILED:
            values = {n: self._value(leaf, variables, findings) for n, leaf in enumerate(self._compiled.leaves)}
            if len(diagnostics) == before and not self.is_faulty:
                return values
            sound = {n: value for n, value in values.items() if value is not FAILED}
            for template in () if self.is_faulty else self.templates:  # leaves of a faulty block may be missing
                declared_by(template.kind, template.as_node(sound, *SURPRISES), findings, ignore=("missing",))
        self.whole = self.whole and len(diagnostics) == before
        return None

    def _value(self, leaf: Leaf, variables: Mapping[str, Any], findings: Collector) -> Any:
        """Return the value of a template, or `FAILED` after reporting why it fails."""
        try:
            return leaf.value(variables)
        except OutOfBounds:
            raise
        except SURPRISES as error:
            _tell(findings, leaf, "bad-template", f"the template failed: {trouble(error)}")
            return FAILED

    def explain(self, error: BaseException, diagnostics: list[Diagnostic]) -> None:
        """Report why the results of a row make no resource."""
        self.whole = False
        findings = Collector(self._file, diagnostics)
        if isinstance(error, Twice):
            findings.at("duplicate-key", error.at.line + 1, error.at.column + 1, str(error))
        else:
            _tell(findings, self._compiled.leaves[0], "bad-template", f"the template failed: {trouble(error)}")


FAILED: Any = object()
"""The result of a template that fails."""


def _tell(findings: Collector, leaf: Leaf, code: str, message: str) -> None:
    findings.at(code, leaf.line, leaf.column, message)
