"""Compile the templates and expressions of posted time, or report their errors. Reads templates' files.

Templates are Jinja2 in a sandbox. A field that a group lacks is none, and so are all fields below it (`tag.name`
without a tag); a field that no group can have is an error at compile time. A template that is a single expression
keeps the value's type, so that a number remains a number in JSON and SQL.
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
from syncengine.document.text import foreign, has_conflicts
from syncengine.posted_time import group, url_paths
from syncengine.posted_time.durations import Duration, NotPositive
from syncengine.posted_time.filters import FILTERS, objection
from syncengine.templating.bounds import MAX_CAPTURED, join_pieces
from syncengine.templating.deliveries import DeliverySandbox, Fields, deliverable, limited
from syncengine.templating.filters import UnfitValue
from syncengine.templating.names import Scope, Shape, shape_of, unknown_fields, variables_of
from syncengine.templating.troubles import SURPRISES, is_of_data, named_trouble, syntax_trouble
from syncengine.templating.values import NotKnown, Unknown

FIELDS: Fields = {
    **{model: tuple(model.model_fields) for model in group.MODELS},
    Duration: tuple(field.name for field in fields(Duration)),
}
"""The fields of each value of a group that templates can use."""
SCOPE: Scope = {
    "group": shape_of(group.Group, FIELDS, "group"),
    "tag": shape_of(group.PostedTag, FIELDS, "tag"),
    "tags": Shape("tags", item=shape_of(group.PostedTag, FIELDS, "a tag")),
    "rows": Shape("rows", item=shape_of(group.TimeRow, FIELDS, "a row")),
    "user": shape_of(group.User, FIELDS, "user"),
    "activityType": shape_of(group.PostedActivityType, FIELDS, "activityType"),
    "duration": shape_of(Duration, FIELDS, "duration"),
    "start": None,
    "connectorConfiguration": None,
}
"""The variables of every template, with their fields."""

UNFIT = "This time cannot be delivered: {why}. Please correct that, or ask your administrator."
"""The sentence for the user whose content has a value that a template cannot use, however often it is tried."""
ODD_FORM = "it lacks something that its delivery needs, or has it in another form"
"""Why content cannot be delivered where a template calculates with it in vain."""

Variables = Mapping[str, Any]
_MARKS = ("{{", "{%", "{#")


class RenderTrouble(Exception):
    """Raised when a valid template fails. An error of the project, not of the posted time."""


class NeedsRow(RenderTrouble):
    """Raised when a template decides by the row of a lookup, which a preview does not read."""


class Undeliverable(RenderTrouble):
    """Raised when posted content can never be delivered in this form, so that the group is refused.

    `user_message` is for the user who posted; the exception's text is for the operator.
    """

    def __init__(self, user_message: str, detail: str) -> None:
        super().__init__(detail)
        self.user_message = user_message


Expression = Callable[[Variables], Any]
"""A function from variables to the value of an expression, which may be undefined."""


@dataclass(frozen=True, slots=True)
class Text:
    """A compiled template and its place. A text without template syntax is its `constant`."""

    place: str
    constant: Any = None
    template: Template | None = None
    expression: Expression | None = None

    def value(self, variables: Variables) -> Any:
        """Return the rendered value: of any type for a single expression, else text."""
        try:
            with limited():
                if self.expression is not None:
                    return _defined(self.expression(variables))
                if self.template is None:
                    return self.constant
                pieces = self.template.root_render_func(self.template.new_context(dict(variables)))
                return join_pieces(pieces, MAX_CAPTURED, f"it writes more than {MAX_CAPTURED:,} characters")
        except NotPositive as error:
            raise Undeliverable(
                str(error), f"the template at {self.place} rounds up a value that is not positive"
            ) from None
        except UnfitValue as error:
            failure = f"the template at {self.place} failed: {named_trouble(error)}"
            raise Undeliverable(UNFIT.format(why=error.why), failure) from None
        except NotKnown as error:
            raise NeedsRow(f"the template at {self.place} cannot be previewed: {error}") from None
        except SURPRISES as error:
            failure = f"the template at {self.place} failed: {named_trouble(error)}"
            if is_of_data(error):
                raise Undeliverable(UNFIT.format(why=ODD_FORM), failure) from None
            raise RenderTrouble(failure) from None

    def render(self, variables: Variables) -> str:
        """Return the rendered value as text, which is empty for none."""
        value = self.value(variables)
        return "" if value is None else str(value)

    def holds(self, variables: Variables) -> bool:
        """Return whether the rendered value, as a condition, is true."""
        return bool(self.value(variables))


Json = Callable[[Variables], Any]


def _defined(value: Any) -> Any:
    """Return a deliverable value, with none for an undefined one, such as `x if y` without an else."""
    value = deliverable(value)
    return None if isinstance(value, Undefined) else value


class Compiler:
    """A compiler of the project file's templates. It adds errors to the findings, and then returns `None`."""

    def __init__(self, root: Path, config: str, scope: Scope = SCOPE) -> None:
        self.root = root
        self.findings = Collector(config)
        self.others: list[Collector] = []
        self.names = set[str]()
        """The variables used since the caller last cleared the set; `group.tags` counts as `tags`."""
        self.all_names = set[str]()
        """The variables used by any template."""
        self._loader = FileSystemLoader(str(root))
        self._environment = DeliverySandbox(FIELDS, FILTERS, self._loader)
        self._scope = scope
        self._included: dict[str, frozenset[str]] = {}

    @property
    def found(self) -> list[Any]:
        """All diagnostics, of the project file and of the templates' own files."""
        return [diagnostic for findings in (self.findings, *self.others) for diagnostic in findings.found]

    def path(self, written: Written, more: Scope | None = None) -> Text | None:
        """Compile a template of a URL path, which renders as text: see `url_paths`."""
        parsed = self._parsed(written.text.strip(), self.findings, written.line, written.column, more)
        if parsed is None:
            return None
        why = url_paths.unfit(parsed)
        if why is not None:
            self._refuse(written, why, "bad-path")
            return None
        sandbox = url_paths.PathSandbox(FIELDS, FILTERS, self._loader)
        return Text(f"{self.findings.file}:{written.line}", template=sandbox.from_string(written.text.strip()))

    def text(self, written: Written, more: Scope | None = None) -> Text | None:
        """Compile a template. A single expression keeps the type of its value."""
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
        """Compile a condition: a single expression, with or without `{{ }}`."""
        bare = written.text.strip()
        inner = bare if bare.startswith("{{") else f"{{{{ ({bare}\n) }}}}"
        parsed = self._parsed(inner, self.findings, written.line, written.column, more)
        alone = _expression_alone(parsed) if parsed else None
        if parsed is None:
            return None
        if alone is None or (isinstance(alone, nodes.Const) and isinstance(alone.value, str)):
            self._refuse(written, "a condition must be one expression that is true or false, such as `not tag`")
            return None
        return Text(f"{self.findings.file}:{written.line}", expression=self._expression(alone))

    def json(self, tree: Any, more: Scope | None = None) -> Json | None:
        """Compile a JSON tree whose texts are templates."""
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
        """Compile the template in a file; `at` is where the project file names the file."""
        findings = Collector(name)
        self.others.append(findings)
        try:
            source, _, _ = self._loader.get_source(self._environment, name)
        except (OSError, UnicodeDecodeError, TemplateNotFound) as error:
            reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "was not found in the project"
            where, line, column = (self.findings, at.line, at.column) if at else (findings, None, None)
            where.at("unreadable-file", line, column, f"the template cannot be read: the file {reason}")
            return None
        if what := foreign(source.encode()):
            findings.at("not-text", 1, 1, what)
            return None
        if has_conflicts(source, findings):
            return None
        parsed = self._parsed(source, findings, 1, None, more)
        if parsed is None:
            return None
        return Text(name, template=self._environment.from_string(parsed))

    def builtin(self, source: str) -> Text:
        """Compile a built-in template."""
        return Text("the built-in template", template=self._environment.from_string(source))

    def _expression(self, alone: nodes.Expr) -> Expression:
        body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), alone, lineno=1)]
        return TemplateExpression(self._environment.from_string(nodes.Template(body, lineno=1)), False)

    def _parsed(
        self, source: str, findings: Collector, line: int, column: int | None, more: Scope | None
    ) -> nodes.Template | None:
        """Parse a template and check its syntax, names and filters. Report errors and return `None` if one is wrong."""
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
    """Return the error in a filter's constant arguments, or `None`."""
    arguments = [*call.args, *(pair.value for pair in call.kwargs)]
    if not all(isinstance(arg, nodes.Const) for arg in arguments):
        return None
    args = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
    named = {str(pair.key): pair.value.value for pair in call.kwargs if isinstance(pair.value, nodes.Const)}
    return objection(call.name, args, named)


def _expression_alone(template: nodes.Template) -> nodes.Expr | None:
    """Return the expression that is all of the template except whitespace, or `None`."""
    if len(template.body) != 1 or not isinstance(template.body[0], nodes.Output):
        return None
    content = [n for n in template.body[0].nodes if not (isinstance(n, nodes.TemplateData) and not n.data.strip())]
    return content[0] if len(content) == 1 and not isinstance(content[0], nodes.TemplateData) else None


def plain(value: Any) -> Any:
    """Return a value in a form that JSON can hold: numbers remain numbers, and values without a JSON form are text."""
    match value:  # the most frequent types first
        case Unknown():
            return str(value)
        case str() | None:
            return value
        case int() if abs(value) >= 1 << 63:
            return str(value)
        case int() | float():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _ if type(value) in FIELDS:
            return {wire: plain(inner) for wire, inner in fields_of(value).items()}
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a value of a class in `FIELDS`."""
    return {name: getattr(value, name) for name in FIELDS[type(value)]}
