"""The bytes of a text template → its declarations, with places in the template's own lines. Reads sources.

The text that a template writes carries marks of its origin. A mark says which line of which file writes the text behind
it. Further marks enclose a loop or a captured text, such as that of a macro, and name the data row of a loop's turn. A
turn without a row of its own, such as a word of a cell, belongs to that of the loop around it; so does a captured text.
The result of a filter has no marks, so it has the line and the row of where it is written.
"""

from __future__ import annotations

import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.environment import Environment
from jinja2.loaders import BaseLoader
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer
from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.text import LINE_END, decoded, foreign
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.context import LoadContext, OutsideProject
from syncengine.manifest.generate.query import query_of_call
from syncengine.manifest.lints import Alike
from syncengine.manifest.read_file import read_manifest
from syncengine.manifest.resources import DefaultValues, Reading
from syncengine.manifest.sources.read import distinct, read_source, template_bytes, variables_of
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, LeftOut, SourceTrouble, SourceUse
from syncengine.resource import Row, Source
from syncengine.templating.bounds import MAX_WRITTEN, join_pieces, unlimited
from syncengine.templating.names import unknown_names
from syncengine.templating.sandbox import TemplateSandbox, filtered
from syncengine.templating.troubles import SURPRISES, column_hint, syntax_trouble, trouble
from syncengine.templating.values import Record

# A template is parsed and compiled before any limit of time or memory holds.
MAX_TEMPLATE_BYTES = 1_000_000
NAMES = ("var", "env", "data")
GENERATE_SECTION = re.compile(r"\bgenerate\b[\"']?\s*:")
"""The sign of a `generate` section, whose resources depend on more than the template's inputs."""
LINE = "_line"
"""An additional argument of `data`: the line of the call in the manifest's own template."""
ROW = "row of"
"""The name of the filter that writes the mark of a turn. No template can spell it."""
_VISIBLE = re.compile(r"\S")


def read_template(data: bytes, file: str, defaults: DefaultValues, context: LoadContext) -> Reading:
    """Render a text template, and return its declarations over the project's `defaults`."""
    findings = Collector(file)
    refused = Reading(file, whole=False)
    if len(data) > MAX_TEMPLATE_BYTES:
        findings.at("file-too-large", 1, 1, "the template is larger than 1 MB")
    text = None if findings.found else decoded(data, findings)
    environment = MarkingSandbox(context, (context.root / file).parent)
    written = None if text is None else _rendered(environment, text, file, findings)
    if text is None or written is None:
        return replace(refused, found=tuple(findings.found))
    plain, places = environment.marks.places(written)
    encoded = plain.encode("utf-8", "surrogatepass")
    reading = read_manifest(encoded, file, defaults, context, line_of=lambda line: places.at(line, 1).line)
    if reading.sources and not environment.may_generate:
        message = "`generate:` must be written in the file itself, not produced by an expression"
        findings.at("bad-template", 1, 1, message)
        return replace(refused, found=tuple(findings.found))
    return _relocated(reading, places, environment.sources, text.split("\n"))


def _rendered(environment: MarkingSandbox, text: str, name: str, findings: Collector) -> str | None:
    """Return the text that a template writes, with marks, or `None` when `findings` has its errors."""
    template = _compiled(environment, text, name, findings)
    if template is None:
        return None
    pieces = template.root_render_func(template.new_context())
    try:
        with environment.context.allowance.spend():
            sentence = f"the template writes more than {MAX_WRITTEN // 1024 // 1024} MB"
            return join_pieces(marked_pieces(pieces), 2 * MAX_WRITTEN, sentence)
    except (*SURPRISES, SourceTrouble, SyntaxError) as error:
        # A limit can end the template between two pieces: then it waits at the line that wrote the last one.
        waits = getattr(pieces, "gi_frame", None)
        _tell(error, name, template.get_corresponding_lineno(waits.f_lineno) if waits else 1, findings)
        return None


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
        line, trace = 1, error.__traceback__
        while trace is not None:  # down to what Jinja2 was parsing or compiling
            variables = trace.tb_frame.f_locals
            if isinstance(node := variables.get("node"), nodes.Node):
                line = node.lineno or line
            elif isinstance(parser := variables.get("self"), Parser):
                line = parser.stream.current.lineno
            trace = trace.tb_next
        findings.at("bad-template", line, 1, f"the template is not valid: {trouble(error)}")
    return None


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


def _relocated(reading: Reading, places: Places, sources: Sequence[SourceUse], lines: Sequence[str]) -> Reading:
    """Return the reading of a rendered text with its places moved to the template, whose lines are `lines`."""
    alike, found = Alike(), list[Diagnostic]()

    def column(at: Source) -> int:
        """Return the column at which the template's line begins, since its text may be anywhere in the result."""
        text = lines[at.line - 1] if at.file == reading.file and at.line <= len(lines) else ""
        return len(text) - len(text.lstrip()) + 1

    def placed(each: Any) -> Any:
        at = places.at(each.line, each.column)
        return replace(each, file=at.file, line=at.line, column=column(at))

    def declared(each: Any, *, has_row: bool) -> Any:
        at = places.at(each.source.line, each.column)
        row = each.source.data or at.data if has_row else None
        return replace(each, source=at._replace(data=row), column=column(at))

    empty = ", ".join(dict.fromkeys(use.name for use in sources if use.is_empty))
    for each in reading.found:
        if each.line is None:
            found.append(each)
            continue
        # Sources without rows may explain a missing value.
        hint = f" (no rows in {empty})" if each.code == "null-value" and empty else ""
        moved = placed(replace(each, message=f"{each.message}{hint}", column=each.column or 1))
        row = None if each.data else places.at(each.line, each.column or 1).data
        if row is None:  # or its message names one already
            found.append(moved)
        else:
            alike.add(moved, row)
    return replace(
        reading,
        resources=tuple(declared(each, has_row=True) for each in reading.resources),
        removed=tuple(declared(each, has_row=False) for each in reading.removed),
        default_categories=tuple(map(placed, reading.default_categories)),
        found=(*found, *alike.diagnostics()),
        sources=(*map(placed, reading.sources), *dict.fromkeys(sources)),
    )


class Loader(BaseLoader):
    """A loader of templates in the project's folder whose names end in `.j2`."""

    def __init__(self, context: LoadContext) -> None:
        self._context = context

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        try:
            data = template_bytes(self._context, template)
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
        self.context, self._folder = context, folder
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

    def _data(self, path: str | None = None, /, **options: Any) -> list[Record]:
        """Return a source's rows: `data('data/matters.csv', delimiter=';')`, `data(source='pms', query='SELECT …')`."""
        line = options.pop(LINE, 1)
        with unlimited():
            call = query_of_call(self.context, path, options)
            records = read_source(self.context, self._folder, call.query)
        self.sources.append(records.use(self.marks.files[0], line, 1, may_be_empty=call.may_be_empty))
        return distinct(records.rows, call.distinct)


class Captured(str):
    """Captured text, whose marked form is written in its place. What a filter makes of it is another text."""

    __slots__ = ("marked",)
    marked: str


class Marks:
    """The marks of one rendering. No template can write one, since `token` is random."""

    def __init__(self, token: str) -> None:
        self.rows: list[Row] = []
        self.files: list[str] = []
        self._token = token
        self._pattern = re.compile(f"\x02{token}([^\x03]*)\x03")
        self._mapped: dict[int, tuple[object, Row | None]] = {}
        """The values of `map` by identity, each with the row that it came from, `None` if it came from several."""

    def mark(self, what: str) -> str:
        return f"\x02{self._token}{what}\x03"

    def row(self, values: Any) -> str:
        """Return the mark of a turn with these values of its loop: an empty text if none is of a data row."""
        row = self._row_of(values)
        if row is None:
            return ""
        if not self.rows or self.rows[-1] is not row:
            self.rows.append(row)
        return self.mark(f"r{len(self.rows) - 1}")

    def captured(self, marked: str, text: str | None = None) -> Captured:
        """Return a text with this marked form."""
        captured = Captured(self._pattern.sub("", marked) if text is None else text)
        captured.marked = f"{self.mark('(')}{marked}{self.mark(')')}"
        return captured

    def following(self, filter: Callable[..., str]) -> Callable[..., str]:
        """Return a filter that keeps marks, such as one that only adds blanks to lines."""

        @wraps(filter)
        def follow(value: Any, *arguments: Any, **options: Any) -> str:
            text = filter(value, *arguments, **options)
            return self.captured(filter(value.marked, *arguments, **options), text) if type(value) is Captured else text

        return follow

    def remembering(self, mapped: Callable[..., Any]) -> Callable[..., Any]:
        """Return the filter `map`, extended to remember the row that each value came from."""

        @wraps(mapped)
        def remember(context: Any, value: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            current: list[Any] = [None]

            def items() -> Iterator[Any]:
                for current[0] in value or ():
                    yield current[0]

            for result in mapped(context, items(), *arguments, **options):
                row = self._row_of(current[0])
                if row is not None and _has_identity(result):
                    _, first = self._mapped.setdefault(id(result), (result, row))
                    if first != row:  # such as the text of `map('default', 'none')`
                        self._mapped[id(result)] = result, None
                yield result

        return remember

    def added(self, tree: nodes.Template, name: str) -> nodes.Template:
        """Return the syntax tree of the template `name` with marks in its text."""
        self.files.append(name)
        _Marking(self, len(self.files) - 1).visit(tree)
        return tree

    def places(self, marked: str) -> tuple[str, Places]:
        """Return a rendered text without its marks, and the origins of its parts."""
        pieces = self._pattern.split(marked)
        stack, found = [Source(self.files[0], 1)], list[tuple[int, Source]]()
        last, offset = (0, stack[0]), len(pieces[0])
        for mark, text in zip(pieces[1::2], pieces[2::2], strict=True):
            match mark[0]:
                case "(":
                    stack.append(stack[-1])
                case ")":
                    stack.pop()
                case "r":
                    stack[-1] = stack[-1]._replace(data=self.rows[int(mark[1:])])
                case _:
                    file, line = mark.split(":")
                    stack[-1] = Source(self.files[int(file)], int(line), stack[-1].data)
            if text:
                if stack[-1] != last[1]:
                    found += [last] if offset else []
                    last = (offset, stack[-1])
                offset += len(text)
        return "".join(pieces[::2]), Places("".join(pieces[::2]), [*found, last])

    def _row_of(self, value: Any) -> Row | None:
        """Return the row of a record, of the first in a list (a group's), of a tuple's first, or of a mapped value."""
        if type(value) is Record:
            return value.row
        if isinstance(value, list):
            return self._row_of(value[0]) if value and type(value[0]) is Record else None
        if isinstance(value, tuple):
            return next((row for part in value if (row := self._row_of(part))), None)
        return self._mapped.get(id(value), (None, None))[1]


def _has_identity(value: Any) -> bool:
    """Return whether values of several rows are several objects: Python shares small numbers and single letters."""
    if isinstance(value, str):
        return len(value) > 1
    return isinstance(value, Decimal) or (isinstance(value, int) and not -5 <= value <= 256)


def marked_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Yield pieces of text, with captured ones in their marked form."""
    return (piece.marked if type(piece) is Captured else piece for piece in pieces)


class _Marking(NodeTransformer):
    """The addition of marks to a syntax tree: before each line of text, around each loop, and at each of its turns."""

    def __init__(self, marks: Marks, file: int) -> None:
        self._marks = marks
        self._file = file

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        parts: list[nodes.Expr] = []
        marked = 0
        for part in node.nodes:
            is_text = isinstance(part, nodes.TemplateData)
            lines = re.findall(r"[^\n]*\n|[^\n]+", part.data) if isinstance(part, nodes.TemplateData) else [""]
            for number, line in enumerate(lines, part.lineno):
                if number != marked:
                    parts.append(self._data(f"{self._file}:{number}"))
                    marked = number
                parts.append(nodes.TemplateData(line, lineno=number) if is_text else part)
        node.nodes = parts
        return node

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:  # noqa: N802 - as above
        self.generic_visit(node)
        names = [n.name for n in (node.target, *node.target.find_all(nodes.Name)) if isinstance(n, nodes.Name)]
        values = nodes.Tuple(
            [nodes.Name(name, "load", lineno=node.lineno) for name in names], "load", lineno=node.lineno
        )
        node.body.insert(0, nodes.Output([filtered(values, ROW)], lineno=node.lineno))
        begin, end = (nodes.Output([self._data(what)], lineno=node.lineno) for what in "()")
        return [begin, *self._with_line(node), end]

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> list[nodes.Node]:  # noqa: N802 - as above
        self.generic_visit(node)
        return self._with_line(node)

    visit_CallBlock = visit_Include = visit_FilterBlock  # noqa: N815 - as above

    def _with_line(self, node: nodes.Node) -> list[nodes.Node]:
        return [nodes.Output([self._data(f"{self._file}:{node.lineno}")], lineno=node.lineno), node]

    def _data(self, mark: str) -> nodes.TemplateData:
        return nodes.TemplateData(self._marks.mark(mark), lineno=1)


class Places:
    """The origin of each character of `text`.

    `marks` are ascending offsets, the first of them 0, each with the template's line, and the data row, that wrote the
    text from there on.
    """

    def __init__(self, text: str, marks: Sequence[tuple[int, Source]]) -> None:
        self.marks = marks
        self._text = text
        self._offsets = [offset for offset, _ in marks]
        self._lines = [0, *(end.end() for end in LINE_END.finditer(text)), len(text) + 1]

    def at(self, line: int, column: int) -> Source:
        """Return the origin of the first visible character at or after a column of a line; both count from 1.

        A line beyond the last one counts as that.
        """
        n = min(max(line, 1), len(self._lines) - 1)
        begin, end = self._lines[n - 1], self._lines[n]
        offset = min(begin + column - 1, end - 1)
        visible = _VISIBLE.search(self._text, offset, end)
        return self.marks[bisect_right(self._offsets, visible.start() if visible else offset) - 1][1]
