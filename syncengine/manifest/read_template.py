"""The bytes of a text template → its declarations, with places in the template's own lines. Reads sources."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Template, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.environment import Environment
from jinja2.loaders import BaseLoader
from jinja2.parser import Parser
from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.text import decoded, foreign
from syncengine.errors import Diagnostic, Row, Severity
from syncengine.manifest.context import LoadContext, OutsideProject
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.generate.query import query_of_call
from syncengine.manifest.generate.source_map import ROW, Captured, Marks, Places, marked_pieces
from syncengine.manifest.lints import Alike
from syncengine.manifest.read_file import read_manifest
from syncengine.manifest.resources import CategoryReference, Reading
from syncengine.manifest.sources.read import distinct, read_source, read_text, variables_of
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, LeftOut, SourceTrouble, SourceUse
from syncengine.resource import Removed, Resource, Source
from syncengine.templating.bounds import MAX_WRITTEN, join_pieces, unlimited
from syncengine.templating.names import unknown_names
from syncengine.templating.sandbox import SURPRISES, TemplateSandbox, column_hint, syntax_trouble, trouble
from syncengine.templating.values import Record

MAX_TEMPLATE_BYTES = 1_000_000
NAMES = ("var", "env", "data")
GENERATE_SECTION = re.compile(r"\bgenerate\b[\"']?\s*:")
"""The sign of a `generate` section, whose resources depend on more than the template's inputs."""
LINE = "_line"
"""An additional argument of `data`: the line of the call in the manifest's own template."""


class Rendered(NamedTuple):
    """The rendered text, its origins, and the sources that were read.

    `may_generate` is true when one of the templates mentions a `generate` section.
    """

    text: str
    places: Places
    sources: Sequence[SourceUse]
    may_generate: bool


class Loader(BaseLoader):
    """A loader of templates in the project's folder whose names end in `.j2`."""

    def __init__(self, context: LoadContext) -> None:
        self._context = context

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        try:
            data = read_text(self._context, template)
            if len(data) > MAX_TEMPLATE_BYTES:
                raise OutsideProject("the template is larger than 1 MB")
            if what := foreign(data):
                raise OutsideProject(what)
            return data.decode("utf-8"), template, lambda: True
        except (OutsideProject, SourceTrouble, OSError, UnicodeDecodeError) as error:
            raise TemplateNotFound(template, f"the template {template!r} cannot be included: {error}") from None


class MarkingSandbox(TemplateSandbox):
    """The sandbox of one text template, whose result carries marks of its origin."""

    def __init__(self, context: LoadContext, folder: Path) -> None:
        super().__init__(Loader(context))
        self.sources: list[SourceUse] = []
        self.may_generate = False
        self.marks = Marks(secrets.token_hex(4))
        self._context, self._folder = context, folder
        self.filters[ROW] = self.marks.row
        self.filters["indent"] = self.marks.following(self.filters["indent"])
        self.filters["map"] = self.marks.remembering(self.filters["map"])
        self.globals |= {**variables_of(context), "data": self._data}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        self.may_generate = self.may_generate or bool(GENERATE_SECTION.search(source))
        self.marks.added(tree, name or "")
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "data" and len(self.marks.files) == 1:
                call.kwargs.append(nodes.Keyword(LINE, nodes.Const(call.lineno), lineno=call.lineno))
        return tree

    def concat(self, pieces: Iterable[str]) -> str:
        return self.marks.captured(super().concat(marked_pieces(pieces)))

    def finalized(self, value: Any) -> Any:
        return value.marked if type(value) is Captured else super().finalized(value)

    def _data(self, path: str | None = None, **options: Any) -> list[Record]:
        """Return a source's rows: `data('data/matters.csv', delimiter=';')`, `data(source='pms', query='SELECT …')`."""
        line = options.pop(LINE, 1)
        with unlimited():
            call = query_of_call(path, options)
            records = read_source(self._context, self._folder, call.query)
        self.sources.append(records.use(self.marks.files[0], line, 1, may_be_empty=call.may_be_empty))
        return distinct(records.rows, call.distinct)


def render(data: bytes, name: str, context: LoadContext, findings: Collector) -> Rendered | None:
    """Return the rendered template, or `None` when `findings` has its errors."""
    if len(data) > MAX_TEMPLATE_BYTES:
        findings.at("file-too-large", 1, 1, "the template is larger than 1 MB")
        return None
    text = decoded(data, findings)
    if text is None:
        return None
    environment = MarkingSandbox(context, (context.root / name).parent)
    template = _compiled(environment, text, name, findings)
    if template is None:
        return None
    pieces = template.root_render_func(template.new_context())
    try:
        with context.allowance.spend():
            sentence = f"the template writes more than {MAX_WRITTEN // 1024 // 1024} MB"
            marked = join_pieces(marked_pieces(pieces), 2 * MAX_WRITTEN, sentence)
    except (*SURPRISES, SourceTrouble, SyntaxError) as error:
        # A limit can end the template between two pieces: then it waits at the line that wrote the last one.
        waits = getattr(pieces, "gi_frame", None)
        _tell(error, name, template.get_corresponding_lineno(waits.f_lineno) if waits else 1, findings)
        return None
    plain, places = environment.marks.places(marked)
    return Rendered(plain, places, environment.sources, environment.may_generate)


def _compiled(environment: MarkingSandbox, text: str, name: str, findings: Collector) -> Template | None:
    lines = [*text.split("\n"), ""]  # an error may stand at the end
    try:
        tree = environment.parse(text, name)
        unknown = unknown_names(tree, NAMES)
        for line, message in unknown:
            Collector(name, findings.found).at("unknown-name", line, 1, message + column_hint(lines[line - 1]))
        environment.marks.files.clear()
        code = environment.compile(text, name)
        return None if unknown else Template.from_code(environment, code, dict(environment.globals))
    except TemplateSyntaxError as error:
        findings.at("bad-template", error.lineno, 1, syntax_trouble(error, environment, lines[error.lineno - 1]))
    except (SyntaxError, RecursionError, MemoryError, ValueError, AssertionError) as error:
        findings.at("bad-template", _line_at(error), 1, f"the template is not valid: {trouble(error)}")
    return None


def _line_at(error: BaseException) -> int:
    """Return the line that Jinja2 was parsing or compiling when the error was raised."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        variables = trace.tb_frame.f_locals
        if isinstance(node := variables.get("node"), nodes.Node):
            line = node.lineno or line
        elif isinstance(parser := variables.get("self"), Parser):
            line = parser.stream.current.lineno
        trace = trace.tb_next
    return line


def _tell(error: BaseException, file: str, line: int, findings: Collector) -> None:
    """Report the error of a template with its line and row: the given line if it was not raised inside of one."""
    row = None
    trace = error.__traceback__
    while trace is not None:
        scope = trace.tb_frame.f_globals
        template = scope.get("__jinja_template__")
        if template is not None:
            file, line = template.name or file, template.get_corresponding_lineno(trace.tb_lineno)
            records = [value for value in trace.tb_frame.f_locals.values() if type(value) is Record]
            row = records[-1].row if records else row
        trace = trace.tb_next
    if isinstance(error, TemplateSyntaxError):
        file, line = error.name or file, error.lineno
    if isinstance(error, LeftOut):
        Collector(file, findings.found).at(SOURCE_LEFT_OUT, line, 1, str(error), severity=Severity.WARNING)
        return
    is_source = isinstance(error, SourceTrouble)
    code = error.code if isinstance(error, SourceTrouble) else "bad-template"
    message = str(error) if is_source else f"the template failed: {trouble(error)}"
    Collector(file, findings.found).at(code, line, 1, message, data=row)


Declared = TypeVar("Declared", Resource, Removed)
Placed = TypeVar("Placed", CategoryReference, SourceUse)


def read_template(data: bytes, file: str, defaults: DefaultValues, context: LoadContext) -> Reading:
    """Render a text template, and return its declarations over the project's `defaults`."""
    findings = Collector(file)
    result = render(data, file, context, findings)
    if result is None:
        return Reading(file, found=tuple(findings.found), whole=False)
    text = result.text.encode("utf-8", "surrogatepass")
    reading = read_manifest(text, file, defaults, context, line_of=result.places.line)
    if reading.sources and not result.may_generate:
        message = "`generate:` must be written in the file itself, not produced by an expression"
        findings.at("bad-template", 1, 1, message)
        return Reading(file, found=tuple(findings.found), whole=False)
    return relocated(reading, result, data.decode("utf-8-sig").split("\n"))


def relocated(reading: Reading, result: Rendered, lines: Sequence[str]) -> Reading:
    """Return the reading of a rendered text with its places moved to the template, whose lines are `lines`."""
    move = _Move(result.places, reading.file, lines)
    empty = ", ".join(dict.fromkeys(use.name for use in result.sources if use.is_empty))
    return replace(
        reading,
        resources=tuple(map(move.declared, reading.resources)),
        removed=tuple(map(move.declared, reading.removed)),
        default_categories=tuple(map(move.placed, reading.default_categories)),
        found=tuple(_without_repeats(move.diagnostic(d, empty) for d in reading.found)),
        sources=(*map(move.placed, reading.sources), *dict.fromkeys(result.sources)),
    )


def _without_repeats(pairs: Iterable[tuple[Diagnostic, Row | None]]) -> Iterator[Diagnostic]:
    """Yield the diagnostics, with one for all rows that have the same message at the same place."""
    alike = Alike()
    for diagnostic, row in pairs:
        if row is None:
            yield diagnostic
        else:
            alike.add(diagnostic, row)
    yield from alike.diagnostics()


@dataclass(frozen=True, slots=True)
class _Move:
    """A mapping of places in a rendered text to places in its template."""

    places: Places
    file: str
    lines: Sequence[str]

    def declared(self, each: Declared) -> Declared:
        at = self.places.at(each.source.line, each.column)
        data = each.source.data or at.data if isinstance(each, Resource) else None
        return replace(each, source=at._replace(data=data), column=self._column(at))

    def placed(self, each: Placed) -> Placed:
        at = self.places.at(each.line, each.column)
        return replace(each, file=at.file, line=at.line, column=self._column(at))

    def diagnostic(self, d: Diagnostic, empty: str) -> tuple[Diagnostic, Row | None]:
        """Return the diagnostic at its place in the template, and its row unless its message names one already.

        `empty` names the sources without rows, which may explain a missing value.
        """
        if d.line is None:
            return d, None
        at = self.places.at(d.line, d.column or 1)
        message = f"{d.message} (no rows in {empty})" if d.code == "null-value" and empty else d.message
        moved = replace(d, file=at.file, line=at.line, column=self._column(at), message=message)
        return (moved, None) if d.data else (moved, at.data)

    def _column(self, at: Source) -> int:
        """Return the column at which the template's line begins, since its text may be anywhere in the result."""
        text = self.lines[at.line - 1] if at.file == self.file and at.line <= len(self.lines) else ""
        return len(text) - len(text.lstrip()) + 1
