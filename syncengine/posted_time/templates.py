"""Templates and expressions, compiled once, or their errors. Reads templates' files.

Jinja2 in a sandbox. A field that a group lacks is none, all the way down (`tag.name` without a tag); one that no
group can have is an error when it is compiled. An expression alone keeps its type, so that a number
stays one in JSON and SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, Template, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.environment import TemplateExpression
from jinja2.meta import find_referenced_templates

from syncengine.document.diagnostics import Collector
from syncengine.document.template_types import Written
from syncengine.document.text import to_camel
from syncengine.posted_time import group, url_paths
from syncengine.posted_time.durations import Duration, NotPositive
from syncengine.posted_time.filters import FILTERS, objection
from syncengine.templating.deliveries import DeliverySandbox, deliverable, limited
from syncengine.templating.names import Scope, Shape, shape_of, unknown_fields, variables_of
from syncengine.templating.troubles import SURPRISES, named_trouble, syntax_trouble

NAMES: Mapping[type[Any], Mapping[str, str]] = {
    **group.NAMES,
    Duration: {to_camel(f.name): f.name for f in fields(Duration)},
}
SCOPE: Scope = {
    "group": shape_of(group.Group, NAMES, "group"),
    "tag": shape_of(group.PostedTag, NAMES, "tag"),
    "tags": Shape("tags", item=shape_of(group.PostedTag, NAMES, "a tag")),
    "rows": Shape("rows", item=shape_of(group.TimeRow, NAMES, "a row")),
    "user": shape_of(group.User, NAMES, "user"),
    "activityType": shape_of(group.PostedActivityType, NAMES, "activityType"),
    "duration": shape_of(Duration, NAMES, "duration"),
    "start": None,
    "connectorConfiguration": None,
}
"""What every template sees."""

Variables = Mapping[str, Any]
_MARKS = ("{{", "{%", "{#")


class RenderTrouble(Exception):
    """A template that is right met data that it cannot take; a defect of the project, not of the user's time."""


class Undeliverable(RenderTrouble):
    """The posted content can never be delivered in this way, whoever tries: the group's refusal.

    `user_message` is a sentence for who posted; the text is for whoever runs this.
    """

    def __init__(self, user_message: str, detail: str) -> None:
        super().__init__(detail)
        self.user_message = user_message


@dataclass(frozen=True, slots=True)
class Text:
    """A compiled template and its place. A template without marks, or plain JSON, is its `constant`."""

    place: str
    constant: Any = None
    template: Template | None = None
    expression: TemplateExpression | None = None

    def value(self, variables: Variables) -> Any:
        """The value: of an expression alone in its own type, else text."""
        try:
            with limited():
                if self.expression is not None:
                    return _defined(self.expression(**variables))
                return self.template.render(variables) if self.template is not None else self.constant
        except NotPositive as error:
            raise Undeliverable(
                str(error), f"the template at {self.place} rounds up a value that is not above zero"
            ) from None
        except SURPRISES as error:
            raise RenderTrouble(f"the template at {self.place} failed: {named_trouble(error)}") from None

    def render(self, variables: Variables) -> str:
        """The same as text; none is empty."""
        value = self.value(variables)
        return "" if value is None else str(value)

    def holds(self, variables: Variables) -> bool:
        """Whether a condition is true."""
        return bool(self.value(variables))


Json = Callable[[Variables], Any]


def _defined(value: Any) -> Any:
    """The value of `x if y` without an else is none; any other name without a value fails."""
    value = deliverable(value)
    return None if isinstance(value, Undefined) else value


class Compiler:
    """Compiles templates of the project file; errors go to the findings, and None is returned."""

    def __init__(self, root: Path, config: str, scope: Scope = SCOPE) -> None:
        self.root = root
        self.findings = Collector(config)
        self.others: list[Collector] = []
        self.names = set[str]()
        """Variables used since the caller last cleared the set; `group.tags` counts as `tags`."""
        self.all_names = set[str]()
        """Variables used by anything."""
        self._loader = FileSystemLoader(str(root))
        self._environment = DeliverySandbox(NAMES, FILTERS, self._loader)
        self._scope = scope
        self._included: dict[str, frozenset[str]] = {}

    @property
    def found(self) -> list[Any]:
        """Every diagnostic, of the project file and of the templates' own files."""
        return [diagnostic for findings in (self.findings, *self.others) for diagnostic in findings.found]

    def path(self, written: Written, more: Scope | None = None) -> Text | None:
        """A template of a path below a URL, always text: see `url_paths`."""
        parsed = self._parsed(written.text.strip(), self.findings, written.line, written.column, more)
        if parsed is None:
            return None
        why = url_paths.unfit(parsed)
        if why is not None:
            self._refuse(written, why, "bad-path")
            return None
        sandbox = url_paths.PathSandbox(NAMES, FILTERS, self._loader)
        return Text(f"{self.findings.file}:{written.line}", template=sandbox.from_string(written.text.strip()))

    def text(self, written: Written, more: Scope | None = None) -> Text | None:
        """A template."""
        place = f"{self.findings.file}:{written.line}"
        if not any(mark in written.text for mark in _MARKS):
            return Text(place, constant=written.text)
        parsed = self._parsed(written.text, self.findings, written.line, written.column, more)
        if parsed is None:
            return None
        alone = _expression_alone(parsed)
        if alone is not None:
            return Text(place, expression=self._expression(alone))
        return Text(place, template=self._environment.from_string(parsed))

    def condition(self, written: Written, more: Scope | None = None) -> Text | None:
        """An expression, bare or in {{ }}."""
        bare = written.text.strip()
        inner = bare if bare.startswith("{{") else f"{{{{ ({bare}\n) }}}}"
        parsed = self._parsed(inner, self.findings, written.line, written.column, more)
        alone = _expression_alone(parsed) if parsed else None
        if parsed is None:
            return None
        if alone is None or (isinstance(alone, nodes.Const) and isinstance(alone.value, str)):
            self._refuse(written, "a condition is one expression that is true or false, like `not tag`")
            return None
        return Text(f"{self.findings.file}:{written.line}", expression=self._expression(alone))

    def json(self, tree: Any, more: Scope | None = None) -> Json | None:
        """JSON whose texts are templates."""
        match tree:
            case Written():
                text = self.text(tree, more)
                return text.value if text else None
            case dict():
                inner = {name: self.json(value, more) for name, value in tree.items()}
                return lambda variables: {name: make(variables) for name, make in inner.items() if make}
            case tuple():
                items = [self.json(value, more) for value in tree]
                return lambda variables: [make(variables) for make in items if make]
            case _:
                return lambda variables: tree

    def file(self, name: str, more: Scope | None = None, at: Written | None = None) -> Text | None:
        """A template in a file of its own; `at` is where the project file names it."""
        findings = Collector(name)
        self.others.append(findings)
        try:
            source, _, _ = self._loader.get_source(self._environment, name)
        except (OSError, UnicodeDecodeError, TemplateNotFound) as error:
            reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else "it is not in the project"
            where, line, column = (self.findings, at.line, at.column) if at else (findings, None, None)
            where.at("unreadable-file", line, column, f"the template cannot be read: {reason}")
            return None
        parsed = self._parsed(source, findings, 1, None, more)
        if parsed is None:
            return None
        return Text(name, template=self._environment.from_string(parsed))

    def builtin(self, source: str) -> Text:
        """A template of our own."""
        return Text("the built-in template", template=self._environment.from_string(source))

    def _expression(self, alone: nodes.Expr) -> TemplateExpression:
        body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), alone, lineno=1)]
        return TemplateExpression(self._environment.from_string(nodes.Template(body, lineno=1)), False)

    def _parsed(
        self, source: str, findings: Collector, line: int, column: int | None, more: Scope | None
    ) -> nodes.Template | None:
        """The template, if it can be compiled and all of its names are known."""
        try:
            parsed = self._environment.parse(source)
            self._environment.compile(parsed)
            parsed = self._environment.parse(source)  # compiling may rewrite the tree
        except TemplateSyntaxError as error:
            findings.at("bad-template", line + error.lineno - 1, column, syntax_trouble(error, self._environment))
            return None
        scope = {**self._environment.globals, **self._scope, **(more or {})}
        shapes = {name: shape if isinstance(shape, Shape) else None for name, shape in scope.items()}
        unknown = unknown_fields(parsed, shapes)
        for where, message in unknown:
            findings.at("unknown-name", line + where - 1, column, message)
        wrong = [(call.lineno, why) for call in parsed.find_all(nodes.Filter) if (why := _misused(call))]
        for where, why in wrong:
            findings.at("bad-template", line + where - 1, column, why)
        own = variables_of(parsed)
        self.names |= own
        self.all_names |= own
        for included in find_referenced_templates(parsed):
            if included is not None and included not in {other.file for other in self.others}:
                before, self.names = self.names, set()
                self.file(included, more)
                self._included[included], self.names = frozenset(self.names), before
            self.names |= self._included.get(included or "", frozenset())
        return None if unknown or wrong else parsed

    def _refuse(self, written: Written, message: str, code: str = "bad-template") -> None:
        self.findings.at(code, written.line, written.column, message)


def _misused(call: nodes.Filter) -> str | None:
    """The error of a filter of ours whose arguments are constant."""
    arguments = [*call.args, *(pair.value for pair in call.kwargs)]
    if not all(isinstance(arg, nodes.Const) for arg in arguments):
        return None
    args = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
    named = {str(pair.key): pair.value.value for pair in call.kwargs if isinstance(pair.value, nodes.Const)}
    return objection(call.name, args, named)


def _expression_alone(template: nodes.Template) -> nodes.Expr | None:
    """The expression, if the template is nothing else; blanks around it do not count."""
    if len(template.body) != 1 or not isinstance(template.body[0], nodes.Output):
        return None
    content = [n for n in template.body[0].nodes if not (isinstance(n, nodes.TemplateData) and not n.data.strip())]
    return content[0] if len(content) == 1 and not isinstance(content[0], nodes.TemplateData) else None


def plain(value: Any) -> Any:
    """A value as JSON can hold it: numbers as numbers, values without a JSON form as text."""
    match value:
        case int() if abs(value) >= 1 << 63:
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _ if type(value) in NAMES:
            return {wire: plain(getattr(value, name)) for wire, name in NAMES[type(value)].items()}
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)
