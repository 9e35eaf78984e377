"""Build the route of posted time from the project file, or report every error in it. Reads templates and databases.

A database that does not answer is not an error in the project: it is reported as trouble, and the route is built.
Offline (for a preview), no target is opened and missing secrets are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from syncengine.database.errors import FAILURES, USER, cause, meaning
from syncengine.document.diagnostics import in_order
from syncengine.errors import Diagnostic, Problems, Severity, TroubleKind
from syncengine.posted_time.databases import Database, Databases, Statement
from syncengine.posted_time.group import named_zone
from syncengine.posted_time.route import NARRATIVE, Lookup, Narrative, Route, Rule, SinkRule
from syncengine.posted_time.sinks.appended_file import AnotherForm, AppendedFile, CsvRecords, Form, JsonLines
from syncengine.posted_time.sinks.contract import Sink, Words, objection
from syncengine.posted_time.sinks.find import LATE, Find
from syncengine.posted_time.sinks.http import Address, HttpSink, is_sendable
from syncengine.posted_time.sinks.sql import SqlSink
from syncengine.posted_time.templates import Compiler, Json, Text
from syncengine.project import delivery_schema as file
from syncengine.project.connections import Connections
from syncengine.project.load import AT_LEAST_ONCE, levelled
from syncengine.project.model import MANIFESTS, Project
from syncengine.project.references import sqlite_file
from syncengine.project.types import Written
from syncengine.templating.names import Scope, Shape

GROUP_ID = "groupId"
"""What a template contains whose value is a group's own; no other field of a group is there once."""

UNANSWERED = frozenset({TroubleKind.UNREACHABLE, TroubleKind.AUTHENTICATION, TroubleKind.PERMISSIONS})
"""The kinds of trouble that a database may have at start although the project is valid."""


@dataclass(frozen=True, slots=True)
class BuiltRoute:
    """A route, the databases that it uses, and the parts that were down when it was built: name, kind and cause."""

    route: Route
    databases: Databases
    troubles: tuple[tuple[str, TroubleKind, str], ...] = ()


def build(
    project: Project, environ: Mapping[str, str], *, now: Callable[[], float], offline: bool = False
) -> BuiltRoute:
    """Build the route of a project. Raise `Problems` with every error found."""
    building = _Building(project, Connections(project.sources, project.root, environ), now, offline)
    route = building.route(project.posted_time or file.PostedTimeSection())
    if building.compiler.found:
        building.databases.close()
        raise Problems(in_order(building.compiler.found))
    return BuiltRoute(route, building.databases, tuple(building.troubles))


def check(project: Project) -> None:
    """Check the project's posted time without opening any target. Raise `Problems` with every error found."""
    if project.posted_time is not None:
        build(project, {}, now=lambda: 0.0, offline=True).databases.close()


def warnings_of_sinks(project: Project) -> list[Diagnostic]:
    """Return warnings about sinks whose deliveries may come twice, at the project's levels: errors, or left out."""
    section = project.posted_time
    if section is None or section.mode is file.Mode.OFF:
        return []
    warnings = [
        Diagnostic(
            severity=Severity.WARNING,
            code=AT_LEAST_ONCE,
            message=f"{sink.name.text} may get time twice, if an answer is lost and it ignores `Idempotency-Key`:"
            " write `find`, by which it is asked first",
            file=project.config_name,
            line=sink.name.line,
            column=sink.name.column,
        )
        for sink in section.deliver or ()
        if sink.http is not None and sink.http.find is None
    ]
    return levelled(warnings, project.policy.diagnostics)


class _Content(NamedTuple):
    """A sink, and the variables in what it delivers. `is_whole`: it delivers a group with all tags, named or not."""

    sink: Sink
    names: frozenset[str]
    is_whole: bool = False


def _names(*texts: Text | Json | None) -> frozenset[str]:
    return frozenset().union(*(text.names for text in texts if text))


class _Building:
    """One building of a route. Errors are collected in the compiler's findings."""

    def __init__(self, project: Project, connections: Connections, now: Callable[[], float], offline: bool) -> None:
        self.project = project
        self.connections = connections
        self.now = now
        self.offline = offline
        self.compiler = Compiler(project.root, project.config_name)
        self.databases = Databases()
        self.troubles: list[tuple[str, TroubleKind, str]] = []
        self._sink_of: dict[Database, str] = {}
        self._forms: dict[Path, tuple[str, type]] = {}
        """The sink that first writes a file, and the form of its lines."""
        self._scope: dict[str, Shape | None] = {}
        """The variables beyond those of a group that the next template may use."""

    def route(self, section: file.PostedTimeSection) -> Route:
        rules = []
        for rule in section.refuse or ():
            when, message = self.compiler.condition(rule.when), self.compiler.text(rule.message)
            rules += [Rule(when, message)] if when and message else []
        lookups = self._lookups(section.lookups or ())
        told = section.narrative or file.NarrativeSection()
        template = self.compiler.builtin(NARRATIVE)
        if told.template:
            template = self.compiler.file(told.template.text, self._scope, told.template) or template
            if told.summary is not None:
                why = "`summary` is about the built-in narrative: leave it or `template` out"
                self._refuse(told.template, why)
        line_break = "\n" if told.newline is None else told.newline
        narrative = Narrative(template, told.max_length or 0, line_break, told.summary)
        self._scope["narrative"] = None
        # What is behind `lookup` and `narrative` counts as used by the template that uses them.
        behind = {"lookup": _names(*(text for each in lookups for text in (each.params, each.when, each.missing)))}
        of_narrative = template.names
        behind["narrative"] = of_narrative | (behind["lookup"] if "lookup" in of_narrative else frozenset())
        sink_rules, needs_narrative = list[SinkRule](), False
        for sink in section.deliver or ():
            when = self._condition(sink.when)
            content = self._content(sink)
            if content is not None:
                names = content.names.union(*(inner for name, inner in behind.items() if name in content.names))
                is_of_one_tag = "tag" in names and "tags" not in names and not content.is_whole
                sink_rules.append(SinkRule(content.sink, when, sink.each is not None, is_of_one_tag))
                needs_narrative = needs_narrative or content.is_whole
        return Route(
            zone=named_zone(section.timezone),
            duration=section.duration or file.DurationSection(),
            unmatched=section.unmatched or file.Unmatched.REFUSE,
            needs_narrative=needs_narrative or "narrative" in self.compiler.names,
            rules=tuple(rules),
            lookups=lookups,
            narrative=narrative,
            sink_rules=tuple(sink_rules),
        )

    def _lookups(self, sections: tuple[file.LookupSection, ...]) -> tuple[Lookup, ...]:
        """Build the lookups in order, so that each can use the columns of earlier lookups."""
        found, shapes = [], dict[str, Shape | None]()
        for section in sections:
            name, sql = section.name.text, section.sql
            database = self._database(sql, name, sql.query, f"The database where {name} is looked up")
            statement, params = self._statement(sql.query, sql.params), self._json(sql.params or {})
            when, missing = self._condition(section.when), self._text(section.missing)
            shapes[name] = None
            if database is not None and statement is not None and params is not None:
                lookup = Lookup(name, database, statement, params, when, missing)
                found.append(lookup)
                if columns := self._judged(lookup.part, sql.query, lookup.columns):
                    shapes[name] = Shape(f"lookup.{name}", dict.fromkeys(columns))
            self._scope["lookup"] = Shape("lookup", dict(shapes))
        self._scope.setdefault("lookup", Shape("lookup", {}))
        return tuple(found)

    # --- sinks

    def _content(self, section: file.SinkConfig) -> _Content | None:
        """Build a sink from the only section of a kind that it has. Return `None` when that is invalid.

        Its files must be written line by line, and have no other use in the project.
        """
        kind, settings = next((kind, found) for kind in SINK_KINDS if (found := getattr(section, kind)) is not None)
        for name in file.FILES.get(type(settings), ()):
            path = getattr(settings, name)
            place = self.project.root / path
            if use := self._use_of(place.resolve()):
                self._refuse(section.name, f"{path} is {use}: set `path` to a file for posted time alone", "bad-path")
            elif place.exists() and not place.is_file():
                why = "so what was written cannot be read again after a crash"
                self._refuse(section.name, f"{path} is no regular file, {why}: set `path` to a file", "bad-path")
        return SINK_KINDS[kind](self, section, settings)

    def _use_of(self, path: Path) -> str | None:
        """Return the use that the project already has for a file, as the end of a message, or `None`."""
        if self.project.config is not None and path == self.project.config.resolve():
            return "the project file"
        manifests = self.project.manifests or (self.project.root / MANIFESTS,)
        if any(path.is_relative_to(folder.resolve()) for folder in manifests):
            return "in the manifests' folder"
        try:
            state = sqlite_file(self.project.state)
        except Problems:  # the secret in its URL is missing
            return None
        # A state on a server is no file. One in SQLite has others beside it, whose names begin with its own.
        is_state = state is not None and path.name.startswith(state.name) and path.parent == state.resolve().parent
        return "part of the state" if is_state else None

    def _words(self, section: file.SinkConfig) -> Words:
        """Compile the templates of a delivery's reference and refusal."""
        answers: Scope = {"response": None, "returned": None, "status": None}
        return Words(self._text(section.external_id, answers), self._text(section.refused, answers))

    def _sql(self, section: file.SinkConfig, sql: file.SqlSinkConfig) -> _Content | None:
        name = section.name.text
        database = self._database(sql, name, sql.statement, name)
        statement, params = self._statement(sql.statement, sql.params), self._json(sql.params or {})
        words = self._words(section)
        if database is None or statement is None or params is None:
            return None
        database.public_name = self._sink_of.setdefault(database, name)
        keeps, allows = sql.receipts is not False, bool(sql.allow_no_row)
        if statement.forbears and not allows:
            self._refuse(
                sql.statement,
                f"with {statement.forbears}, the statement may leave the table as it is, and the posted time would be"
                " lost without a word: write `allowNoRow: true` if that is right, or let the statement fail",
                "no-row",
            )
        sink = SqlSink(
            name, database, statement, params, words, keeps_receipts=keeps, allows_no_row=allows, now=self.now
        )
        if engine := self._judged(name, sql.statement, sink.check):
            self._refuse(
                sql.statement,
                f"the engine {engine} of the table has no transactions, so a group could be delivered twice: run `ALTER"
                " TABLE … ENGINE=InnoDB`, or set `receipts: false` if that is acceptable",
                "bad-statement",
            )
        return _Content(sink, params.names)

    def _http(self, section: file.SinkConfig, http: file.HttpSinkConfig) -> _Content:
        found = self.connections.http(http, f"the URL of {section.name.text}", lambda name: f"the header {name}")
        address = Address(found.url, found.secrets, found.timeout, http.health)
        self._check_address(address, http.source or section.name)
        if both := sorted({*(section.refuse_on or ())} & {*(section.trouble_on or ())}):
            text = ", ".join(map(str, both))
            self._refuse(section.name, f"both `refuseOn` and `troubleOn` list {text}: list it in one", "bad-value")
        path = self.compiler.path(http.path, self._scope) if http.path else None
        headers = dict[str, Text]()
        for name, value in found.headers.items():
            if isinstance(value, Written) and (written := self._text(value)) is not None:
                headers[name] = written
                if isinstance(written.constant, str) and (odd := objection(written.constant.strip())):
                    self._refuse(value, f"the header {name} cannot be sent: {odd}", "bad-value")
        body = None if http.body is None else self._json(http.body)
        sink = HttpSink(
            name=section.name.text,
            address=address,
            method=http.method or "POST",
            path=path,
            headers=headers,
            body=body,
            refuse_on=frozenset(section.refuse_on or ()),
            trouble_on=frozenset(section.trouble_on or ()),
            words=self._words(section),
            find=self._find(section, http, http.find, address) if http.find else None,
        )
        return _Content(sink, _names(path, body, *headers.values()))

    def _check_address(self, address: Address, at: Written) -> None:
        """Check that the URL and the secret headers exist and can be sent, without showing them."""
        if self.offline:
            return
        try:
            if not address.url().startswith(("http://", "https://")):
                self._refuse(at, "the URL in this reference must start with http:// or https://", "bad-source")
            for name, read in address.secrets.items():
                if not is_sendable(read()):
                    self._refuse(at, f"the value of the header {name} must be one line of ASCII", "bad-source")
        except Problems as problems:
            for problem in problems.found:
                self._refuse(at, problem.message, problem.code)

    def _find(
        self, section: file.SinkConfig, http: file.HttpSinkConfig, found: file.FindConfig, address: Address
    ) -> Find | None:
        """Compile `find`, whose templates see the group alone: lookups may find something else at a later time."""
        path = self.compiler.path(found.path) if found.path else None
        query, of_group = dict[str, Text](), set[str]()
        for name, value in (found.query or {}).items():
            if not isinstance(value, Written):
                plain = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
                query[name] = Text(name, constant=plain)
                continue
            of_group |= {name} if GROUP_ID in value.text else set()
            if (text := self.compiler.text(value)) is not None:
                query[name] = text
        answer: Scope = {"response": None, "status": None}
        entry: Scope = {**answer, "entry": None}
        entries = self.compiler.text(found.entries, answer)
        reference = self.compiler.text(found.reference, entry)
        external_id = self.compiler.text(found.external_id, entry) if found.external_id else None
        # What is asked for must be the group's own, and the tag's own with `each: tag`: else another entry is found.
        names = _names(*(query.get(name) for name in of_group)) if of_group else _names(path)
        why = None
        if (http.url is None) == (found.url is not None) or (http.url is not None and found.path is not None):
            pair = "`url`, since the sink has one" if http.url else "`path`, since the sink has a `source`"
            why = f"needs a {pair}"
        elif len(of_group) > 1:
            why = "has several parameters with `group.groupId`, so that an entry cannot be known: write one"
        elif not of_group and (found.path is None or GROUP_ID not in found.path.text):
            why = (
                "asks for nothing with `group.groupId`, so that an entry cannot be known: write a parameter such as"
                ' `external_reference_id: "{{ group.groupId }}"` under `query`'
            )
        elif section.each is not None and "tag" not in names:
            why = (
                "would take the entry of one tag for that of another: with `each: tag`, send and ask for a reference"
                ' such as "{{ group.groupId }}/{{ tag.name }}"'
            )
        if why is not None:
            self._refuse(found.entries, f"`find` {why}", "bad-value")
        if entries is None or reference is None:
            return None
        base = address.url
        if found.url is not None:
            base = self.connections.reader(found.url, f"the URL of `find` of {section.name.text}")
            self._check_address(Address(base), found.entries)
        return Find(
            base,
            found.method or "GET",
            path,
            query,
            frozenset(of_group),
            entries,
            reference,
            external_id,
            after=address.timeout + LATE if found.after is None else found.after,
            paging=found.paging or file.Paging.model_construct(),
        )

    def _jsonl(self, section: file.SinkConfig, jsonl: file.JsonlSection) -> _Content:
        body = None if jsonl.body is None else self._json(jsonl.body)
        form = JsonLines(body, section.each is not None)
        sink = self._appended(section, jsonl.path, form)
        return _Content(sink, _names(body), is_whole=jsonl.body is None)

    def _csv(self, section: file.SinkConfig, csv: file.CsvSection) -> _Content | None:
        values, path = self._json(csv.columns), self.project.root / csv.path
        if not csv.columns:
            self._refuse(section.name, "`columns` must name at least one column", "bad-value")
        if values is None or not csv.columns:
            return None
        form = CsvRecords(tuple(csv.columns), values)
        try:
            if not self.offline:
                form.check(path)
        except AnotherForm as error:
            self._refuse(section.name, f"{csv.path}: {error.strerror}", "bad-path")
        return _Content(self._appended(section, csv.path, form), values.names)

    def _appended(self, section: file.SinkConfig, path: str, form: Form) -> AppendedFile:
        place, name = self.project.root / path, section.name.text
        other, kind = self._forms.setdefault(Path(os.path.realpath(place)), (name, type(form)))
        if kind is not type(form):  # each would cut off the other's lines as torn
            message = f"{path} is the file of the sink `{other}`, whose lines have another form: name another file"
            self._refuse(section.name, message, "bad-path")
        return AppendedFile(name, place, form, self._words(section))

    # --- parts of lookups and sinks

    def _text(self, written: Written | None, more: Scope | None = None) -> Text | None:
        return self.compiler.text(written, {**self._scope, **(more or {})}) if written else None

    def _condition(self, written: Written | None) -> Text | None:
        return self.compiler.condition(written, self._scope) if written else None

    def _json(self, tree: Any) -> Json | None:
        return self.compiler.json(tree, self._scope)

    def _statement(self, written: Written, params: Mapping[str, Any] | None) -> Statement | None:
        """Return the statement, or `None` and report errors when its parameters and `params` do not match."""
        statement, names = Statement(written.text), frozenset(params or {})
        for name in sorted(statement.names - names):
            self._refuse(written, f"the statement uses `:{name}`, but `params` does not define it")
        for name in sorted(names - statement.names):
            self._refuse(written, f"`params` defines `{name}`, but the statement does not use `:{name}`")
        if "{{" in written.text or "{%" in written.text:
            self._refuse(written, "a statement is not a template: write `:NAME`, and put the template under `params`")
        return statement if statement.names == names else None

    def _database(
        self, section: file.LookupQuery | file.SqlSinkConfig, name: str, at: Written, unnamed: str
    ) -> Database | None:
        source = section.source
        try:
            what, url = self.connections.database(section, name)
            return self.databases.database(url, what, source.text if source else unnamed)
        except Problems as error:
            if self.offline:
                return Database(sa.create_engine("sqlite://"), name)
            for problem in error.found:
                self._refuse(source or at, problem.message, problem.code)
            return None

    def _judged(self, part: str, written: Written, judge: Callable[[], Any]) -> Any:
        """Return the result of `judge`, or `None`. Report a rejected statement as an error, an outage as trouble."""
        if self.offline:
            return None
        try:
            return judge()
        except FAILURES as error:
            kind = meaning(error)
            if kind in UNANSWERED and kind is not USER:
                self.troubles.append((part, kind, cause(error)))
            else:
                text = str(getattr(error, "orig", None) or error).splitlines()[0][:200]
                self._refuse(written, f"the database rejects the statement: {text}", "bad-statement")
        return None

    def _refuse(self, written: Written, message: str, code: str = "bad-params") -> None:
        self.compiler.findings.at(code, written.line, written.column, message)


SINK_KINDS: Mapping[str, Callable[[_Building, file.SinkConfig, Any], _Content | None]] = {
    "sql": _Building._sql,
    "http": _Building._http,
    "jsonl": _Building._jsonl,
    "csv": _Building._csv,
}
"""What builds a sink of each kind, by its section's name in the project file."""
