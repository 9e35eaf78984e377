"""Prepare the deliveries of a group by the compiled settings of posted time. Reads targets for lookups.

Every reason to refuse a group is found here, before any sink gets it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

import sqlalchemy as sa

from syncengine.content import sha256_of
from syncengine.database.errors import FAILURES, USER, cause, is_down, meaning, sentence
from syncengine.errors import Problems, TroubleKind
from syncengine.posted_time.databases import Database, Statement, bound
from syncengine.posted_time.durations import divided, duration_of, has_several, objection, shares
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.group import Group, digest, group_start, placed, without_descriptions
from syncengine.posted_time.sinks.contract import Failed, Refused, RenderedGroup, Sink
from syncengine.posted_time.templates import FILTERS, Json, NeedsRow, RenderTrouble, Text, Undeliverable, Variables
from syncengine.project.delivery_schema import DurationSection, Unmatched
from syncengine.templating.values import Unknown

NO_SINK = "This time has nowhere to go: no rule of the connector accepts it."
NO_SINK_OF_TAG = "This time has nowhere to go with the tag {tag}: no rule of the connector accepts it."
ONE_TAG = "This time has several tags, and {sink} takes time with one tag only. Please post it once for each tag."
NOT_PREPARED = "This time cannot be delivered now: the connector is not set up for it. Please ask your administrator."


class Placeholder(dict[str, Any]):
    """The row of a lookup in a rehearsal, in which every column has the unknown value `<LOOKUP.COLUMN>`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, column: str) -> Unknown:
        return Unknown(f"<{self.name}.{column}>")


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query with bound parameters that must find exactly one row."""

    name: str
    database: Database
    query: Statement
    params: Json
    when: Text | None
    missing: Text | None

    @property
    def part(self) -> str:
        """The lookup's name among the parts that can be down, which no sink can have."""
        return f"lookup {self.name}"

    @property
    def public_name(self) -> str:
        """The database's name for people who post time; `name` is internal to the project file."""
        return self.database.public_name

    def columns(self) -> frozenset[str] | None:
        """Return the names of the query's columns. Raise the database's own errors."""

        def look(_: threading.Event) -> frozenset[str]:
            with self.database.engine.connect() as connection:
                self.query.check(connection)
                result = connection.execute(self.query.clause, dict.fromkeys(self.query.names))
                return frozenset(result.keys()) if result.returns_rows else frozenset()

        return self.database.ask_now(look)

    async def find(self, variables: Variables) -> Mapping[str, Any] | Refused | Failed | None:
        """Return the row, the reason why there is not exactly one, or `None` when the lookup's condition is false."""
        if self.when is not None and not self.when.holds(variables):
            return None
        dialect = self.database.engine.dialect.name
        params = {name: bound(value, dialect) for name, value in self.params.value(variables).items()}

        def rows(connection: sa.Connection) -> list[Mapping[str, Any]]:
            # Two are enough to know whether there is exactly one.
            return [dict(row) for row in connection.execute(self.query.clause, params).mappings().fetchmany(2)]

        try:
            found = await self.database.read(rows)
        except FAILURES as error:
            if (kind := meaning(error)) is not USER:
                kind = kind or TroubleKind.UNKNOWN
                answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
                words = sentence(self.public_name, kind)
                return Failed(
                    kind, words, is_down=is_down(error), has_answered=answered, detail=cause(error), where=self.part
                )
            found = []  # a value that does not fit the column is in none of its rows
        if len(found) == 1:
            return found[0]
        words = self.missing.render(variables) if self.missing and not found else ""
        return Refused(words or f"{self.name} was {'found more than once' if found else 'not found'}.")

    async def probe(self) -> SinkTrouble | None:
        return await self.database.probe(self.public_name)


NARRATIVE = """\
{% if group.description %}
{{ group.description }}

{% endif %}
{% if group.narrativeType != "NARRATIVE_ONLY" %}
{% for row in rows %}
{% if row.start %}{{ row.start | time }} {% endif %}{{ row.activity }}
{%- if row.description %}: {{ row.description }}{% endif %} ({{ row.durationSecs | duration }})
{% endfor %}
{% if rows %}

{% endif %}
{% endif %}
{% if summary %}
{% if tags | length > 1 %}
Tags: {{ tags | map(attribute="name") | join(", ") }}
{% endif %}
Worked: {{ duration.workedSeconds | duration }}
{% if duration.totalSeconds != duration.workedSeconds %}
Posted: {{ duration.totalSeconds | duration }}
{% endif %}
{% if duration.weightingPercent and duration.weightingPercent < 100 %}
Weighted: {{ duration.weightingPercent }}%
{% endif %}
{% if duration.seconds != duration.totalSeconds %}
Charged: {{ duration.seconds | duration }}
{% endif %}
{% endif %}
"""
"""The narrative template of projects without one of their own: what the person wrote and did, and a summary if it is
wanted.
"""

SUMMARY_SETTING = "ADD_SUMMARY_TO_NARRATIVE"
"""The service's setting by which the narrative ends with a summary, unless the project file says whether it does."""
_YES = ("true", "yes", "on", "1")

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Narrative:
    """A narrative template, its line ending, and its longest text in characters; a `max_length` of 0 means no limit.

    `summary`: whether the built-in template adds a summary of the durations; `None` leaves that to the service.
    """

    template: Text
    max_length: int = 0
    newline: str = "\n"
    summary: bool | None = None

    def render(self, variables: Variables) -> str:
        """Return the narrative without surrounding whitespace. Raise `RenderTrouble` when the template fails."""
        summary = self.summary
        if summary is None:  # settings may be texts
            summary = str(variables["connectorConfiguration"][SUMMARY_SETTING]).strip().lower() in _YES
        seen = {**variables, "summary": summary}
        text = _LINE_END.sub("\n", self.template.render(seen)).strip().replace("\n", self.newline)
        return str(FILTERS["cut"](text, self.max_length)) if self.max_length else text


class _Configuration(dict[str, Any]):
    """The service's configuration of the connector, in which a missing setting is `None`."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that refuses posted time when a condition holds, with the message to the user."""

    when: Text
    message: Text


@dataclass(frozen=True, slots=True)
class SinkRule:
    """A sink of the route, and the condition for groups that it takes.

    `each_tag`: a group with several tags is delivered once for each tag, with that tag's share of the duration.
    `is_of_one_tag`: the content has room for one tag only, so further tags would be lost silently.
    """

    sink: Sink
    when: Text | None
    each_tag: bool = False
    is_of_one_tag: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The template variables of a group, or of one tag's share. `suffix` follows a sink's name in the key."""

    variables: dict[str, Any]
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group, rendered for each sink that takes it. The first tag comes last, because its key is that of a whole."""

    variables: Variables
    rendered_groups: tuple[tuple[Sink, RenderedGroup], ...]

    def keys(self) -> dict[str, set[str]]:
        """Return the keys under which the group is delivered, by sink."""
        keys: dict[str, set[str]] = {}
        for sink, rendered in self.rendered_groups:
            keys.setdefault(sink.name, set()).add(rendered.key)
        return keys


@dataclass(eq=False, repr=False, kw_only=True)
class Route:
    """The compiled rules, lookups, narrative and sinks through which groups are delivered.

    `zone` is the zone in which all times are shown, `None` for those of the rows. `needs_narrative`: a sink's content
    contains the narrative.
    """

    zone: tzinfo | None
    duration: DurationSection
    unmatched: Unmatched
    needs_narrative: bool
    rules: tuple[Rule, ...]
    lookups: tuple[Lookup, ...]
    narrative: Narrative
    sink_rules: tuple[SinkRule, ...]
    configuration: Mapping[str, Any] = field(default_factory=dict, init=False)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(rule.sink for rule in self.sink_rules)

    def parts(self) -> dict[str, Sink | Lookup]:
        """Return the sinks and lookups, which can be down, by name."""
        return {**{sink.name: sink for sink in self.sinks}, **{lookup.part: lookup for lookup in self.lookups}}

    def receivers(self) -> dict[str, str]:
        """Return what identifies the target of each sink by name, but where that cannot be read."""
        found = dict[str, str]()
        for sink in self.sinks:
            with suppress(Problems):
                found[sink.name] = sink.receiver()
        return found

    async def prepare(
        self, group: Group, revision: int, *, rehearse: bool = False, heard: Callable[[str], None] = lambda part: None
    ) -> Prepared | Refused | Failed:
        """Return the deliveries of a group, or the reason why there are none. A rehearsal reads no target.

        `heard` is called with each lookup that answered, whether it found a row or not. Raise `NeedsRow` in a rehearsal
        in which a template decides by a row.
        """
        try:
            return await self._prepared(group, revision, rehearse, heard)
        except Undeliverable as error:
            return Refused(error.user_message, str(error))
        except NeedsRow:
            raise
        except RenderTrouble as error:
            return Failed(TroubleKind.UNKNOWN, NOT_PREPARED, is_down=False, detail=str(error))

    async def _prepared(
        self, group: Group, revision: int, rehearse: bool, heard: Callable[[str], None]
    ) -> Prepared | Refused | Failed:
        # The order decides which reason a person reads: of the time itself, of the firm's rules, of its tags, of what
        # the ledger does not know, of where it may go.
        if (why_not := objection(group, self.duration)) is not None:
            return Refused(why_not)
        whole = Part(self.variables(group))
        for tag in whole.variables["tags"] or (None,):
            seen = {**whole.variables, "tag": tag}
            for rule in self.rules:
                if rule.when.holds(seen):
                    return Refused(rule.message.render(seen))
        parts = self._parts(whole)
        if isinstance(parts, Refused):
            return parts
        needs_whole = whole not in parts and not all(rule.each_tag for rule in self.sink_rules)
        for part in (whole, *parts) if needs_whole else parts:
            if (trouble := await self._complete(part.variables, rehearse, heard)) is not None:
                return trouble
        taking = self._taking(whole, parts)
        if isinstance(taking, Refused):
            return taking
        # The share of a tag that goes nowhere would be lost, so the duration is divided anew between those that a sink
        # takes. Connectors leave such tags out before they divide.
        takers = [part for _, part in taking]
        kept = [part for part in parts if part is not whole and part in takers]
        if kept and len(kept) < len(parts):
            durations = divided(whole.variables["group"], whole.variables["duration"], len(kept))
            for part, duration in zip(kept, durations, strict=True):
                part.variables["duration"] = duration
                if "narrative" in part.variables:
                    part.variables["narrative"] = self.narrative.render(part.variables)
        group_id, content = group.groupId or "", digest(group)
        rendered_groups = []
        for sink, part in taking:
            # A part has another digest than the whole: a sink that has the whole under this key must not get a part.
            mark = content if part is whole else sha256_of(f"{content}/each tag")
            key, body = sink.name + part.suffix, sink.render(part.variables)
            rendered_groups.append((sink, RenderedGroup(group_id, key, revision, mark, body, part.variables)))
        return Prepared(whole.variables, tuple(rendered_groups))

    def variables_at(self, sink: str, group: Group, key: str) -> Variables | None:
        """Return the variables of the part of a group that a sink got under this key, without lookups and narrative.

        Return `None` if the group, as it is now, has no such part.
        """
        rule = next(rule for rule in self.sink_rules if rule.sink.name == sink)
        whole = Part(self.variables(group))
        parts = self._parts(whole) if rule.each_tag else (whole,)
        if isinstance(parts, Refused):
            return None
        return next((part.variables for part in parts if sink + part.suffix == key), None)

    def _parts(self, whole: Part) -> tuple[Part, ...] | Refused:
        """Return the parts of a group for sinks with `each: tag`, sorted by tag name; else the whole group."""
        seen = whole.variables
        if not has_several(seen["group"]) or not any(rule.each_tag for rule in self.sink_rules):
            return (whole,)
        parts = shares(seen["group"], seen["duration"])
        if isinstance(parts, str):
            return Refused(parts)
        return tuple(Part({**seen, "tag": share.tag, "duration": share.duration}, share.suffix) for share in parts)

    async def _complete(
        self, variables: dict[str, Any], rehearse: bool, heard: Callable[[str], None]
    ) -> Refused | Failed | None:
        """Add the lookups' rows and any narrative needed to `variables`, or return the reason why that failed."""
        rows = variables["lookup"] = dict[str, Any]()
        for lookup in self.lookups:
            row = Placeholder(lookup.name) if rehearse else await lookup.find(variables)
            if row is not None and not isinstance(row, Failed):
                heard(lookup.part)
            if isinstance(row, Refused | Failed):
                return row
            rows[lookup.name] = row
        if self.needs_narrative or rehearse:
            # In a rehearsal it is shown, although no sink may need it.
            with nullcontext() if self.needs_narrative else suppress(RenderTrouble):
                variables["narrative"] = self.narrative.render(variables)
        return None

    def _taking(self, whole: Part, parts: tuple[Part, ...]) -> list[tuple[Sink, Part]] | Refused:
        """Return the sinks with the parts that each takes, or the refusal of a tag that no sink takes."""
        taking = list[tuple[Sink, Part]]()
        for rule in self.sink_rules:
            # The first tag comes last: under its key, which is that of a whole, a sink may have the whole group.
            choice = tuple(reversed(parts)) if rule.each_tag else (whole,)
            matches = [part for part in choice if rule.when is None or rule.when.holds(part.variables)]
            if matches and rule.is_of_one_tag and not rule.each_tag and has_several(whole.variables["group"]):
                return Refused(ONE_TAG.format(sink=rule.sink.name))
            taking += [(rule.sink, part) for part in matches]
        takers = [part for _, part in taking]
        if self.unmatched is Unmatched.ACCEPT or whole in takers:
            return taking
        rest = [part.variables["tag"] for part in parts if part not in takers]
        if not rest:
            return taking
        return Refused(NO_SINK_OF_TAG.format(tag=rest[0] and rest[0].name) if taking else NO_SINK)

    def variables(self, group: Group) -> dict[str, Any]:
        """Return the template variables of a group."""
        seen = placed(without_descriptions(group), self.zone)
        return {
            "group": seen,
            "tag": seen.tag,
            "tags": seen.tags,
            "rows": seen.timeRows,
            "user": seen.user,
            "activityType": seen.activityType,
            "duration": duration_of(seen, self.duration),
            "start": group_start(seen, self.zone),
            "connectorConfiguration": _Configuration(self.configuration),
        }
