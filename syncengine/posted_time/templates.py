"""Compile the templates and expressions of posted time, or report their errors. Reads templates' files.

Templates are Jinja2 in a sandbox. A field that a group lacks is none, and so are all fields below it (`tag.name`
without a tag); a field that no group can have is an error at compile time. A template that is a single expression
keeps the value's type, so that a number remains a number in JSON and SQL. Every filter of ours returns none for none,
so that a group without rows, tag or user still renders.

In the template of a URL path, values are percent-encoded and the project's own text is left unchanged, also as a
literal in an expression (`{{ '/time?draft=1' if tag }}`). So no value can begin a new segment, begin a query or lead to
a parent, whatever a tag is called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from jinja2 import FileSystemLoader, Template, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.environment import TemplateExpression
from jinja2.filters import do_urlencode
from jinja2.loaders import BaseLoader
from jinja2.meta import find_referenced_templates
from jinja2.visitor import NodeTransformer

from syncengine.document.diagnostics import Collector
from syncengine.document.text import foreign, has_conflicts
from syncengine.errors import Diagnostic
from syncengine.instants import span
from syncengine.posted_time import group
from syncengine.posted_time.durations import Duration, NotPositive, decimal, hours, in_words, round_up, rounded
from syncengine.posted_time.group import named_zone, storable
from syncengine.project.types import Written
from syncengine.templating.bounds import MAX_CAPTURED, join_pieces
from syncengine.templating.filters import Filter, FilterTrouble, UnfitValue, formatted, numeric
from syncengine.templating.names import Scope, Shape, shape_of, unknown_fields, variables_of
from syncengine.templating.sandbox import NULL, DeliverySandbox, Fields, deliverable, limited
from syncengine.templating.troubles import SURPRISES, is_of_data, syntax_trouble, trouble
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


@dataclass(frozen=True, slots=True)
class Text:
    """A compiled template, its place, and the variables that it uses. Without template syntax it is its `constant`."""

    place: str
    names: frozenset[str] = frozenset()
    constant: Any = None
    template: Template | None = None
    expression: Callable[[Variables], Any] | None = None

    def value(self, variables: Variables) -> Any:
        """Return the rendered value: of any type for a single expression, else text."""
        try:
            with limited():
                if self.expression is not None:
                    value = deliverable(self.expression(variables))
                    return None if isinstance(value, Undefined) else value  # `x if y` without an else
                if self.template is None:
                    return self.constant
                pieces = self.template.root_render_func(self.template.new_context(dict(variables)))
                return join_pieces(pieces, MAX_CAPTURED, f"it writes more than {MAX_CAPTURED:,} characters")
        except NotPositive as error:
            raise Undeliverable(
                str(error), f"the template at {self.place} rounds up a value that is not positive"
            ) from None
        except UnfitValue as error:
            failure = f"the template at {self.place} failed: {trouble(error)}"
            raise Undeliverable(UNFIT.format(why=error.why), failure) from None
        except NotKnown as error:
            raise NeedsRow(f"the template at {self.place} cannot be previewed: {error}") from None
        except SURPRISES as error:
            failure = f"the template at {self.place} failed: {trouble(error)}"
            if is_of_data(error):
                raise Undeliverable(UNFIT.format(why=ODD_FORM), failure) from None
            raise RenderTrouble(failure) from None

    def render(self, variables: Variables) -> str:
        """Return the rendered value as text, which is empty for none."""
        value = self.value(variables)
        return "" if value is None or value is NULL else str(value)

    def holds(self, variables: Variables) -> bool:
        """Return whether the rendered value, as a condition, is true."""
        return bool(self.value(variables))


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON tree whose texts are templates, and the variables that they use."""

    names: frozenset[str]
    value: Callable[[Variables], Any]


class Compiler:
    """A compiler of the project file's templates. It adds errors to the findings, and then returns `None`."""

    def __init__(self, root: Path, config: str, scope: Scope = SCOPE) -> None:
        self.findings = Collector(config)
        self.names = set[str]()
        """The variables used by any template; `group.tags` counts as `tags`."""
        self._files: dict[str, tuple[Collector, frozenset[str]]] = {}
        self._loader = FileSystemLoader(str(root))
        self._environment = DeliverySandbox(FIELDS, FILTERS, self._loader)
        self._paths = PathSandbox(FIELDS, FILTERS, self._loader)
        self._scope = scope

    @property
    def found(self) -> list[Diagnostic]:
        """All diagnostics, of the project file and of the templates' own files."""
        others = (diagnostic for findings, _ in self._files.values() for diagnostic in findings.found)
        return [*self.findings.found, *others]

    def path(self, written: Written, more: Scope | None = None) -> Text | None:
        """Compile a template of a URL path, which renders as text."""
        source = written.text.strip()
        found = self._parsed(source, self.findings, written.line, written.column, more)
        if found is None:
            return None
        parsed, names = found
        texts = [text.data for text in parsed.find_all(nodes.TemplateData)]
        parts = [part for output in parsed.find_all(nodes.Output) for part in output.nodes]
        is_constant = all(isinstance(part, nodes.Output) for part in parsed.body) and len(texts) == len(parts)
        if not all(map(str.isprintable, texts)):
            self._refuse(written, "a path must be one line of printable characters", "bad-path")
        elif any(upwards(text if is_constant else f"-{text}-") for text in texts):  # a value may extend either end
            self._refuse(written, "a path must not contain the segments `.` or `..`", "bad-path")
        else:
            return Text(self._place(written), names, template=self._paths.from_string(source))
        return None

    def text(self, written: Written, more: Scope | None = None) -> Text | None:
        """Compile a template. A single expression keeps the type of its value."""
        if not any(mark in written.text for mark in ("{{", "{%", "{#")):
            return Text(self._place(written), constant=written.text)
        found = self._parsed(written.text, self.findings, written.line, written.column, more)
        if found is None:
            return None
        parsed, names = found
        if (alone := _expression_alone(parsed)) is not None:
            return Text(self._place(written), names, expression=self._expression(alone))
        return Text(self._place(written), names, template=self._environment.from_string(parsed))

    def condition(self, written: Written, more: Scope | None = None) -> Text | None:
        """Compile a condition: a single expression, with or without `{{ }}`."""
        bare = written.text.strip()
        inner = bare if bare.startswith("{{") else f"{{{{ ({bare}\n) }}}}"
        found = self._parsed(inner, self.findings, written.line, written.column, more)
        if found is None:
            return None
        alone = _expression_alone(found[0])
        if alone is None or (isinstance(alone, nodes.Const) and isinstance(alone.value, str)):
            self._refuse(written, "a condition must be one expression that is true or false, such as `not tag`")
            return None
        return Text(self._place(written), found[1], expression=self._expression(alone))

    def json(self, tree: Any, more: Scope | None = None) -> Json | None:
        """Compile a JSON tree whose texts are templates."""
        names = set[str]()

        def made(part: Any) -> Callable[[Variables], Any] | None:
            match part:
                case Written():
                    text = self.text(part, more)
                    names.update(text.names if text else ())
                    return text.value if text else None
                case dict():
                    inner = {name: make for name, value in part.items() if (make := made(value))}
                    is_whole = len(inner) == len(part)
                    return (lambda seen: {name: make(seen) for name, make in inner.items()}) if is_whole else None
                case tuple():
                    items = [make for value in part if (make := made(value))]
                    return (lambda seen: [make(seen) for make in items]) if len(items) == len(part) else None
                case _:
                    return lambda seen: part

        value = made(tree)
        return Json(frozenset(names), value) if value else None

    def file(self, name: str, more: Scope | None = None, at: Written | None = None) -> Text | None:
        """Compile the template in a file; `at` is where the project file names the file."""
        findings = Collector(name)
        self._files[name] = findings, frozenset()
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
        if has_conflicts(source, findings) or (found := self._parsed(source, findings, 1, None, more)) is None:
            return None
        parsed, names = found
        self._files[name] = findings, names
        return Text(name, names, template=self._environment.from_string(parsed))

    def builtin(self, source: str) -> Text:
        """Compile a built-in template.

        Its variables do not count: that its summary lists the tags does not make a sink of one tag one of several.
        """
        return Text("the built-in template", template=self._environment.from_string(source))

    def _expression(self, alone: nodes.Expr) -> Callable[[Variables], Any]:
        body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), alone, lineno=1)]
        return TemplateExpression(self._environment.from_string(nodes.Template(body, lineno=1)), False)

    def _parsed(
        self, source: str, findings: Collector, line: int, column: int | None, more: Scope | None
    ) -> tuple[nodes.Template, frozenset[str]] | None:
        """Return a template's tree and the variables that it uses, with those of the files that it includes.

        Check its syntax, names and filters. Report errors and return `None` if one is wrong.
        """
        try:
            parsed = self._environment.parse(source)
            # Some errors, as of an unknown filter, are only found by compiling.
            self._environment.compile(parsed)
            parsed = self._environment.parse(source)  # compiling may rewrite the tree
        except TemplateSyntaxError as error:
            findings.at("bad-template", line + error.lineno - 1, column, syntax_trouble(error, self._environment))
            return None
        scope = {**self._environment.globals, **self._scope, **(more or {})}
        shapes = {name: shape if isinstance(shape, Shape) else None for name, shape in scope.items()}
        wrong = [("unknown-name", where, message) for where, message in unknown_fields(parsed, shapes)]
        calls = parsed.find_all(nodes.Filter)
        wrong += [("bad-template", call.lineno, why) for call in calls if (why := _misuse(call))]
        for code, where, message in wrong:
            findings.at(code, line + where - 1, column, message)
        names = frozenset(variables_of(parsed))
        for included in find_referenced_templates(parsed):
            if included is not None:
                if included not in self._files:
                    self.file(included, more)
                names |= self._files[included][1]
        self.names |= names
        return None if wrong else (parsed, names)

    def _place(self, written: Written) -> str:
        return f"{self.findings.file}:{written.line}"

    def _refuse(self, written: Written, message: str, code: str = "bad-template") -> None:
        self.findings.at(code, written.line, written.column, message)


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
        case int():
            return storable(value)
        case float():
            return value
        case Decimal():
            return storable(int(value)) if value == value.to_integral_value() else float(value)
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


# --- filters


def _exact(value: Any) -> Decimal:
    """Return a number, or a text that is one, as a decimal number."""
    found: Any = numeric(value)
    if not math.isfinite(found):
        raise UnfitValue(f"{found} is not a number")
    return decimal(found)


def _round(value: Any, precision: int = 0) -> int | Decimal:
    found = rounded(_exact(value), precision)
    return int(found) if precision <= 0 else found


def _round_up(value: Any, unit: object) -> int:
    """Round a number of seconds up to a unit such as `6m` or 360."""
    seconds = span(unit) if isinstance(unit, str) else unit
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise FilterTrouble(f"{unit!r} is neither a unit such as 6m nor a number of seconds")
    return round_up(_exact(value), decimal(seconds))


def _instant(value: object) -> datetime:
    """Return the instant of a `datetime`, a date in ISO 8601, or milliseconds since the epoch."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 -- a day has no zone
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000, UTC)
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise UnfitValue(f"{value!r} is not an ISO 8601 date or time", ", such as 2026-03-01") from None


def _local(value: object, name: str) -> datetime:
    """Return the time in a zone. A day begins there; a time without a zone is in UTC, as in the interface."""
    found, there = _instant(value), named_zone(name)
    if there is None:
        raise FilterTrouble(f"{name!r} is not a time zone")
    if found.tzinfo is not None:
        return found.astimezone(there)
    is_day = isinstance(value, str) and not re.search(r"\d[T ]\d", value)
    return found.replace(tzinfo=there) if is_day else found.replace(tzinfo=UTC).astimezone(there)


def _cut(value: object, length: int, end: str = "...") -> str:
    """Cut a text, and show it by `end`: in ASCII by default, which a ledger in any encoding takes."""
    text = str(value)
    return text if len(text) <= length else text[: max(0, length - len(end))] + end[:length]


class PostedFilter(NamedTuple):
    """A filter of ours: how it is written, what it gives for 10000 s or a time, and a value that it accepts.

    With that value, the arguments of a call are tried at the start.
    """

    function: Callable[..., Any]
    written: str
    result: str
    example: Any


_A_TIME = datetime(2024, 5, 2, 9, 5, tzinfo=UTC)
ENTRIES: Mapping[str, PostedFilter] = {
    "duration": PostedFilter(lambda value: in_words(_exact(value)), "`duration`", "`2h 46m 40s`", 1.5),
    "hours": PostedFilter(
        lambda value, precision=2: hours(_exact(value), precision),
        "`hours`, `hours(3)`",
        "`2.78`, `2.778` (half up)",
        1.5,
    ),
    "round_up": PostedFilter(_round_up, "`round_up('6m')`", "`10080`", 1.5),
    "round": PostedFilter(_round, "`round`, `round(2)`", "half up, to this number of decimal places", 1.5),
    "date": PostedFilter(
        lambda value, format="%Y-%m-%d": formatted(_instant(value), format),
        "`date`, `date('%d.%m.%Y')`",
        "`2024-05-02`, `02.05.2024`",
        _A_TIME,
    ),
    "time": PostedFilter(
        lambda value, format="%H:%M": formatted(_instant(value), format), "`time`", "`09:05`", _A_TIME
    ),
    "local": PostedFilter(
        _local,
        "`local('Europe/Vienna')`",
        "the time in that zone; a time without a zone is in UTC, and a day begins in that zone",
        _A_TIME,
    ),
    "cut": PostedFilter(
        _cut,
        "`cut(80)`",
        "at most this number of characters; a longer text ends with `...`, or with what is given as `end`",
        "text",
    ),
    "unwrap": PostedFilter(lambda value: group.unwrapped(str(value)), "`unwrap`", "`Name` of `@_Name_@`", "text"),
}
"""The filters that only posted time has, or has in its own way."""


def _missing_goes_through(filter: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter)
    def wrapped(value: Any, *positional: Any, **named: Any) -> Any:
        return value if value is None or isinstance(value, Unknown) else filter(value, *positional, **named)

    return wrapped


FILTERS: Mapping[str, Filter] = {name: _missing_goes_through(filter) for name, (filter, *_) in ENTRIES.items()}


def _misuse(call: nodes.Filter) -> str | None:
    """Return the reason why a filter of ours can never take its constant arguments, or `None`."""
    arguments = [*call.args, *(pair.value for pair in call.kwargs)]
    if call.name not in ENTRIES or not all(isinstance(arg, nodes.Const) for arg in arguments):
        return None
    positional = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
    named = {str(pair.key): pair.value.value for pair in call.kwargs if isinstance(pair.value, nodes.Const)}
    entry = ENTRIES[call.name]
    try:
        entry.function(entry.example, *positional, **named)
    except FilterTrouble as error:
        return f"`{call.name}`: {error}"
    except (TypeError, ValueError, ArithmeticError):
        shown = ", ".join([*map(repr, positional), *(f"{key}={value!r}" for key, value in named.items())])
        return f"`{call.name}` cannot be called with ({shown})"
    return None


# --- paths


def _quoting(part: nodes.Expr) -> nodes.Expr:
    match part:
        case nodes.TemplateData():
            return part
        case nodes.Const() if isinstance(part.value, str):
            return part
        case nodes.CondExpr():
            otherwise = nodes.Const("") if part.expr2 is None else _quoting(part.expr2)
            return nodes.CondExpr(part.test, _quoting(part.expr1), otherwise, lineno=part.lineno)
        case nodes.Concat():
            return nodes.Concat([_quoting(inner) for inner in part.nodes], lineno=part.lineno)
        case nodes.Filter() if part.name == "urlencode":
            return nodes.Filter(part.node, "encoded value", [], [], None, None, lineno=part.lineno)
        case _:
            return nodes.Filter(part, "quoted value", [], [], None, None, lineno=part.lineno)


class Quoting(NodeTransformer):
    """A visitor that makes a template percent-encode every value that it writes into a path."""

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        node.nodes = [_quoting(part) for part in node.nodes]
        return node


class PathSandbox(DeliverySandbox):
    """A template sandbox that percent-encodes every value, also in included templates."""

    rewritings = (Quoting, *DeliverySandbox.rewritings)

    def __init__(self, fields: Fields, filters: Mapping[str, Filter], loader: BaseLoader) -> None:
        # No template can spell these names.
        super().__init__(fields, {**filters, "quoted value": self._quoted, "encoded value": self._encoded}, loader)

    def _quoted(self, value: Any) -> str:
        """Return a value as one piece of a path or query, with all but letters, digits and `-._~` percent-encoded."""
        return quote(str(self.finalized(value)), safe="")

    def _encoded(self, value: Any) -> str:
        """Return the result of the filter `urlencode`: a query for a mapping or pairs, else an encoded value."""
        is_query = isinstance(value, Iterable) and not isinstance(value, str)
        return do_urlencode(value) if is_query else self._quoted(value)


def upwards(path: str) -> str | None:
    """Return the first segment that a reader may take for `.` or `..`, even encoded or with parameters, or `None`."""
    plain = unquote(path.partition("#")[0].partition("?")[0]).replace("\\", "/")
    return next((part for part in plain.split("/") if part.partition(";")[0] in (".", "..")), None)
