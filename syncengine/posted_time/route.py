"""What a project says of posted time, compiled; and a group → what goes to which sink. Reads targets for lookups.

Everything that can be wrong with a group is found here, before any sink is given anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from syncengine.delivery_file import DurationSection, Unmatched
from syncengine.posted_time.clock import group_start, placed
from syncengine.posted_time.durations import duration_of, objection
from syncengine.posted_time.group import Group, digest, without_descriptions
from syncengine.posted_time.lookups import Lookup, Placeholder
from syncengine.posted_time.narrative import Narrative
from syncengine.posted_time.sinks.contract import Failed, Parcel, Refused, Sink
from syncengine.posted_time.templates import RenderTrouble, Text, Undeliverable, Variables
from syncengine.posted_time.verdict import TroubleKind

NO_SINK = "This time has nowhere to go: no rule of the connector takes it."
NOT_PREPARED = "This time cannot be delivered now: the connector is not set up for it. Its administrator can see why."


class _Configuration(dict[str, Any]):
    """What the service configured: whatever it did not is none."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """What must not be posted, and what the user is told."""

    when: Text
    message: Text


@dataclass(frozen=True, slots=True)
class Stop:
    """A sink of the route, and the groups that it takes."""

    sink: Sink
    when: Text | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A group, rendered for every sink that takes it."""

    variables: Variables
    parcels: tuple[tuple[Sink, Parcel], ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is not a template."""

    zone: tzinfo | None
    duration: DurationSection
    unmatched: Unmatched


class Route:
    """Rules, lookups, narrative and sinks, in order."""

    def __init__(
        self,
        settings: Settings,
        rules: tuple[Rule, ...],
        lookups: tuple[Lookup, ...],
        narrative: Narrative,
        stops: tuple[Stop, ...],
    ) -> None:
        self.settings = settings
        self.rules = rules
        self.lookups = lookups
        self.narrative = narrative
        self.stops = stops
        self.configuration: Mapping[str, Any] = {}

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(stop.sink for stop in self.stops)

    def parts(self) -> dict[str, Sink | Lookup]:
        """All that can be down, by what it is called."""
        return {**{sink.name: sink for sink in self.sinks}, **{lookup.part: lookup for lookup in self.lookups}}

    async def prepare(self, group: Group, revision: int, *, rehearse: bool = False) -> Prepared | Refused | Failed:
        """What goes where; or why nothing goes anywhere. A rehearsal asks no target."""
        try:
            return await self._prepared(group, revision, rehearse)
        except Undeliverable as error:
            return Refused(error.told, str(error))
        except RenderTrouble as error:
            return Failed(TroubleKind.UNKNOWN, NOT_PREPARED, is_down=False, detail=str(error))

    async def _prepared(self, group: Group, revision: int, rehearse: bool) -> Prepared | Refused | Failed:
        why_not = objection(group, self.settings.duration)
        if why_not is not None:
            return Refused(why_not)
        variables = self.variables(group)
        for rule in self.rules:
            if rule.when.holds(variables):
                return Refused(rule.message.render(variables))
        found: dict[str, Any] = {}
        variables["lookup"] = found
        for lookup in self.lookups:
            row = Placeholder(lookup.name) if rehearse else await lookup.find(variables)
            if isinstance(row, Refused | Failed):
                return row
            found[lookup.name] = row
        variables["narrative"] = self.narrative.render(variables)
        return self._rendered(group, revision, variables)

    def _rendered(self, group: Group, revision: int, variables: dict[str, Any]) -> Prepared | Refused:
        taking = [stop.sink for stop in self.stops if stop.when is None or stop.when.holds(variables)]
        if not taking and self.settings.unmatched is Unmatched.REFUSE:
            return Refused(NO_SINK)
        group_id, hashed = group.group_id or "", digest(group)
        parcels = tuple(
            (sink, Parcel(group_id, revision, hashed, sink.render(variables), variables)) for sink in taking
        )
        return Prepared(variables, parcels)

    def variables(self, group: Group) -> dict[str, Any]:
        """What templates see of a group."""
        zone = self.settings.zone
        seen = placed(without_descriptions(group), zone)
        start: datetime | None = group_start(seen, zone)
        return {
            "group": seen,
            "tag": seen.tag,
            "rows": seen.time_rows,
            "user": seen.user,
            "activityType": seen.activity_type,
            "duration": duration_of(seen, self.settings.duration),
            "start": start,
            "connectorConfiguration": _Configuration(self.configuration),
        }
