"""Build the route of posted time from the project file, or report every error in it. Reads templates and databases.

A database that does not answer is not an error in the project: it is reported as trouble, and the route is built.
Offline (for a preview), no target is opened and missing secrets are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from syncengine.database.errors import FAILURES, USER, meaning
from syncengine.database.trouble import TroubleKind
from syncengine.document.diagnostics import in_order
from syncengine.document.model import Model, names_of
from syncengine.document.setting_types import Reference
from syncengine.document.template_types import Written, file_path
from syncengine.errors import Problems
from syncengine.posted_time.clock import named_zone
from syncengine.posted_time.databases import Database, Databases, Statement
from syncengine.posted_time.lookups import Lookup
from syncengine.posted_time.narrative import TEMPLATE, Narrative
from syncengine.posted_time.route import Route, RouteSettings, Rule, SinkRule
from syncengine.posted_time.sinks.appended_file import AnotherForm, AppendedFile
from syncengine.posted_time.sinks.contract import Sink, Words
from syncengine.posted_time.sinks.csv import CsvRecords
from syncengine.posted_time.sinks.find import LATE, Find
from syncengine.posted_time.sinks.http import Address, HttpSink, is_sendable
from syncengine.posted_time.sinks.jsonl import JsonLines
from syncengine.posted_time.sinks.sql import SqlSink
from syncengine.posted_time.templates import Compiler, Json, Text
from syncengine.posted_time.wire import objection
from syncengine.project import delivery_schema as file
from syncengine.project.connections import Connections
from syncengine.project.delivery_schema import USER as USERS_ZONE
from syncengine.project.model import MANIFESTS, Project
from syncengine.project.paging_schema import Paging
from syncengine.project.references import sqlite_file
from syncengine.project.secret_places import places_written
from syncengine.templating.names import Scope, Shape

GROUP_ID = "groupId"
"""What a template contains whose value is a group's own; no other field of a group is there once."""

UNANSWERED = frozenset({TroubleKind.UNREACHABLE, TroubleKind.AUTHENTICATION, TroubleKind.PERMISSIONS})
"""The kinds of trouble that a database may have at start although the project is valid."""


@dataclass(frozen=True, slots=True)
class BuiltRoute:
    """A route, the databases that it uses, and the names and troubles of the parts that were down when it was built."""

    route: Route
    databases: Databases
    troubles: tuple[tuple[str, TroubleKind], ...] = ()


def build(
    project: Project, environ: Mapping[str, str], *, now: Callable[[], float], offline: bool = False
) -> BuiltRoute:
    """Build the route of a project. Raise `Problems` with every error found."""
    section = project.posted_time or file.PostedTimeSection()
    building = _Building(project, Connections(project.sources, project.root, environ), now, offline)
    route = building.route(section)
    if building.compiler.found:
        building.databases.close()
        raise Problems(in_order(building.compiler.found))
    return BuiltRoute(route, building.databases, tuple(building.troubles))


def check(project: Project) -> None:
    """Check the project's posted time without opening any target. Raise `Problems` with every error found."""
    if project.posted_time is not None:
        build(project, {}, now=lambda: 0.0, offline=True).databases.close()


@dataclass(slots=True)
class _Building:
    project: Project
    connections: Connections
    now: Callable[[], float]
    offline: bool
    databases: Databases = field(default_factory=Databases)
    troubles: list[tuple[str, TroubleKind]] = field(default_factory=list)
    compiler: Compiler = field(init=False)
    sinks: dict[Database, str] = field(default_factory=dict)
    scope: dict[str, Shape | None] = field(default_factory=dict)
    names_of: dict[str, frozenset[str]] = field(default_factory=dict)
    """The variables that `lookup` and `narrative` are made from."""

    def __post_init__(self) -> None:
        self.compiler = Compiler(self.project.root, self.project.config_name)

    def route(self, section: file.PostedTimeSection) -> Route:
        zone = named_zone(section.timezone) if section.timezone not in (None, USERS_ZONE) else None
        duration = section.duration or file.DurationSection()
        settings = RouteSettings(zone, duration, section.unmatched or file.Unmatched.REFUSE)
        rules = [self._rule(rule) for rule in section.refuse or ()]
        self.compiler.names.clear()
        lookups = self._lookups(section.lookups or ())
        self.names_of["lookup"] = self._names()
        narrative = self._narrative(section.narrative or file.NarrativeSection())
        self.names_of["narrative"] = self._names()
        self.scope["narrative"] = None
        stops = [self._stop(sink) for sink in section.deliver or ()]
        needs_narrative = "narrative" in self.compiler.all_names or any(map(_is_whole, section.deliver or ()))
        return Route(
            replace(settings, needs_narrative=needs_narrative),
            tuple(rule for rule in rules if rule),
            lookups,
            narrative,
            tuple(stop for stop in stops if stop),
        )

    def _rule(self, section: file.RefuseRule) -> Rule | None:
        when, message = self.compiler.condition(section.when), self.compiler.text(section.message)
        return Rule(when, message) if when and message else None

    # --- lookups

    def _lookups(self, sections: tuple[file.LookupSection, ...]) -> tuple[Lookup, ...]:
        """Build the lookups in order, so that each can use the columns of earlier lookups."""
        found, shapes = [], dict[str, Shape | None]()
        for section in sections:
            lookup = self._lookup(section)
            shapes[section.name.text] = self._columns(lookup, section) if lookup else None
            self.scope["lookup"] = Shape("lookup", dict(shapes))
            found.append(lookup)
        self.scope.setdefault("lookup", Shape("lookup", dict(shapes)))
        return tuple(lookup for lookup in found if lookup)

    def _lookup(self, section: file.LookupSection) -> Lookup | None:
        name, sql = section.name.text, section.sql
        unnamed = f"The database where {name} is looked up"
        database = self._database(sql, name, sql.query, unnamed)
        statement, params = self._statement(sql.query, sql.params), self._json(sql.params or {})
        when = self._condition(section.when)
        missing = self._text(section.missing)
        if database is None or statement is None or params is None:
            return None
        return Lookup(name, database, statement, params, when, missing)

    def _columns(self, lookup: Lookup, section: file.LookupSection) -> Shape | None:
        columns = self._judged(lookup.part, section.sql.query, lookup.columns)
        return Shape(f"lookup.{lookup.name}", dict.fromkeys(columns)) if columns else None

    # --- narrative and sinks

    def _narrative(self, section: file.NarrativeSection) -> Narrative:
        ours = self.compiler.builtin(TEMPLATE)
        template = self._template(section.template) if section.template else ours
        if section.template and section.summary is not None:
            self._refuse(section.template, "`summary` is about the built-in narrative: leave it or `template` out")
        newline = "\n" if section.newline is None else section.newline
        return Narrative(template or ours, section.max_length or 0, newline, section.summary)

    def _template(self, written: Written) -> Text | None:
        return self.compiler.file(written.text, self.scope, written)

    def _stop(self, section: file.SinkConfig) -> SinkRule | None:
        when = self._condition(section.when)
        self.compiler.names.clear()
        sink = self._sink(section)
        if sink is None:
            return None
        names = self._names()
        is_of_one_tag = "tag" in names and "tags" not in names and not _is_whole(section)
        return SinkRule(sink, when, section.each is not None, is_of_one_tag)

    def _names(self) -> frozenset[str]:
        """Return the variables used by templates since the last call, with those behind `lookup` and `narrative`."""
        names, self.compiler.names = self.compiler.names, set()
        for name in ("narrative", "lookup"):
            names |= self.names_of.get(name, frozenset()) if name in names else frozenset()
        return frozenset(names)

    def _sink(self, section: file.SinkConfig) -> Sink | None:
        kind, settings = _kind_of(section)
        self._check_files(section.name, settings)
        return kind.build(self, section, settings)

    def _check_files(self, at: Written, settings: Model) -> None:
        """Check that a sink can write its files line by line, and that they have no other use in the project."""
        attributes = names_of(type(settings))
        for name in places_written(type(settings), file_path):
            path = getattr(settings, attributes[name])
            if path is None:
                continue
            place = self.project.root / path
            if use := self._use_of(place.resolve()):
                self._refuse(at, f"{path} is {use}: set `path` to a file for posted time alone", "bad-path")
            elif place.exists() and not place.is_file():
                why = "so what was written cannot be read again after a crash"
                self._refuse(at, f"{path} is no regular file, {why}: set `path` to a file", "bad-path")

    def _words(self, section: file.SinkConfig) -> Words:
        """Compile the templates of a delivery's reference and refusal, whose variables the sink does not deliver."""
        answers: Scope = {"response": None, "returned": None, "status": None}
        before = set(self.compiler.names)
        words = Words(self._text(section.external_id, answers), self._text(section.refused, answers))
        self.compiler.names = before
        return words

    def _sql(self, section: file.SinkConfig, sql: file.SqlSinkConfig) -> Sink | None:
        name = section.name.text
        database = self._database(sql, name, sql.statement, name)
        statement, params = self._statement(sql.statement, sql.params), self._json(sql.params or {})
        words = self._words(section)
        if database is None or statement is None or params is None:
            return None
        database.public_name = self.sinks.setdefault(database, name)
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
        self._judged(name, sql.statement, sink.check)
        return sink

    def _http(self, section: file.SinkConfig, http: file.HttpSinkConfig) -> Sink:
        found = self.connections.http(http, f"the URL of {section.name.text}", lambda name: f"the header {name}")
        address = Address(found.url, found.secrets, found.timeout, http.health)
        self._check_address(address, http.source or section.name)
        if both := sorted({*(section.refuse_on or ())} & {*(section.trouble_on or ())}):
            text = ", ".join(map(str, both))
            self._refuse(section.name, f"both `refuseOn` and `troubleOn` list {text}: list it in one", "bad-value")
        return HttpSink(
            section.name.text,
            address,
            method=http.method or "POST",
            path=self.compiler.path(http.path, self.scope) if http.path else None,
            headers=self._headers(found.headers),
            body=None if http.body is None else self._json(http.body),
            refuse_on=frozenset(section.refuse_on or ()),
            trouble_on=frozenset(section.trouble_on or ()),
            words=self._words(section),
            find=self._find(section, http, address) if http.find else None,
        )

    def _find(self, section: file.SinkConfig, http: file.HttpSinkConfig, address: Address) -> Find | None:
        """Compile `find`, whose templates see the group alone: lookups may find something else at a later time."""
        found = http.find
        assert found is not None
        before = set(self.compiler.names)
        answer: Scope = {"response": None, "status": None}
        entry: Scope = {**answer, "entry": None}
        parts = {name: value for name, value in (found.query or {}).items() if isinstance(value, Written)}
        of_group = {name for name, value in parts.items() if GROUP_ID in value.text}
        query = {n: Text(n, constant=_parameter(value)) for n, value in (found.query or {}).items() if n not in parts}
        self.compiler.names.clear()
        path = self.compiler.path(found.path) if found.path else None
        is_of_tag = "tag" in self.compiler.names and not of_group
        for name, value in parts.items():
            self.compiler.names.clear()
            query |= {name: text} if (text := self.compiler.text(value)) else {}
            is_of_tag = is_of_tag or (name in of_group and "tag" in self.compiler.names)
        entries, reference = self.compiler.text(found.entries, answer), self.compiler.text(found.reference, entry)
        external_id = self.compiler.text(found.external_id, entry) if found.external_id else None
        self.compiler.names = before
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
        elif section.each is not None and not is_of_tag:
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
        after = address.timeout + LATE if found.after is None else found.after
        return Find(
            base,
            found.method or "GET",
            path,
            query,
            frozenset(of_group),
            entries,
            reference,
            external_id,
            after,
            found.paging or Paging(),
        )

    def _headers(self, headers: Mapping[str, Written | Reference]) -> dict[str, Text]:
        """Compile the headers that are templates, and check that constant values can be sent."""
        made = dict[str, Text]()
        for name, value in headers.items():
            text = self._text(value) if isinstance(value, Written) else None
            if text is None:
                continue
            made[name] = text
            why = objection(text.constant.strip()) if isinstance(text.constant, str) else None
            if why and isinstance(value, Written):
                self._refuse(value, f"the header {name} cannot be sent: {why}", "bad-value")
        return made

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

    def _jsonl(self, section: file.SinkConfig, jsonl: file.JsonlSection) -> Sink:
        form = JsonLines(None if jsonl.body is None else self._json(jsonl.body), section.each is not None)
        return AppendedFile(section.name.text, self.project.root / jsonl.path, form, self._words(section))

    def _csv(self, section: file.SinkConfig, csv: file.CsvSection) -> Sink | None:
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
        return AppendedFile(section.name.text, path, form, self._words(section))

    def _use_of(self, path: Path) -> str | None:
        """Return the use that the project already has for a file, as the end of a message, or `None`."""
        if self.project.config is not None and path == self.project.config.resolve():
            return "the project file"
        manifests = self.project.manifests or (self.project.root / MANIFESTS,)
        if any(path.is_relative_to(folder.resolve()) for folder in manifests):
            return "in the manifests' folder"
        state = self._state_file()
        is_state = state is not None and path.name.startswith(state.name) and path.parent == state.resolve().parent
        return "part of the state" if is_state else None

    def _state_file(self) -> Path | None:
        """Return the state's file, or `None` when the state is on a server or the secret in its URL is missing."""
        try:
            return sqlite_file(self.project.state)
        except Problems:
            return None

    # --- parts

    def _text(self, written: Written | None, more: Scope | None = None) -> Text | None:
        return self.compiler.text(written, {**self.scope, **(more or {})}) if written else None

    def _condition(self, written: Written | None) -> Text | None:
        return self.compiler.condition(written, self.scope) if written else None

    def _json(self, tree: Any) -> Json | None:
        return self.compiler.json(tree, self.scope)

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
                self.compiler.findings.at(problem.code, (source or at).line, (source or at).column, problem.message)
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
                self.troubles.append((part, kind))
            else:
                text = str(getattr(error, "orig", None) or error).splitlines()[0][:200]
                self._refuse(written, f"the database rejects the statement: {text}", "bad-statement")
        return None

    def _refuse(self, written: Written, message: str, code: str = "bad-params") -> None:
        self.compiler.findings.at(code, written.line, written.column, message)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind of sink. `build` returns a sink from its section of the project file, or `None` when that is invalid.

    `is_whole` returns whether the sink delivers the whole group, with all tags, although no template names them.
    """

    build: Callable[[_Building, file.SinkConfig, Any], Sink | None]
    is_whole: Callable[[Any], bool] = lambda settings: False


SINK_KINDS: Mapping[str, SinkKind] = {
    "sql": SinkKind(_Building._sql),
    "http": SinkKind(_Building._http),
    "jsonl": SinkKind(_Building._jsonl, is_whole=lambda jsonl: jsonl.body is None),
    "csv": SinkKind(_Building._csv),
}
"""The kinds of sinks, by their section's name in the project file."""


def _parameter(value: Any) -> str:
    """Return a plain value of a query as text, which is empty for none."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _kind_of(section: file.SinkConfig) -> tuple[SinkKind, Any]:
    """Return the kind of a sink and its settings, from the only section that the sink has."""
    return next((kind, found) for name, kind in SINK_KINDS.items() if (found := getattr(section, name)) is not None)


def _is_whole(section: file.SinkConfig) -> bool:
    kind, settings = _kind_of(section)
    return kind.is_whole(settings)
