"""Prepare the deliveries of a group by the compiled settings of posted time. Reads targets for lookups.

Every reason to refuse a group is found here, before any sink gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from syncengine.database.trouble import TroubleKind
from syncengine.document.digest import sha256_of
from syncengine.posted_time.clock import group_start, placed
from syncengine.posted_time.durations import duration_of, objection
from syncengine.posted_time.group import Group, PostedTag, digest, without_descriptions
from syncengine.posted_time.lookups import Lookup, Placeholder
from syncengine.posted_time.narrative import Narrative
from syncengine.posted_time.shares import divided, has_several, shares
from syncengine.posted_time.sinks.contract import Failed, Refused, RenderedGroup, Sink
from syncengine.posted_time.templates import NeedsRow, RenderTrouble, Text, Undeliverable, Variables
from syncengine.project.delivery_schema import DurationSection, Unmatched

NO_SINK = "This time has nowhere to go: no rule of the connector accepts it."
NO_SINK_OF_TAG = "This time has nowhere to go with the tag {tag}: no rule of the connector accepts it."
ONE_TAG = "This time has several tags, and {sink} takes time with one tag only. Please post it once for each tag."
NOT_PREPARED = "This time cannot be delivered now: the connector is not set up for it. Please ask your administrator."


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

    def takes(self, variables: Variables) -> bool:
        return self.when is None or self.when.holds(variables)


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


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """The settings without templates. `needs_narrative`: a sink's content contains the narrative."""

    zone: tzinfo | None
    duration: DurationSection
    unmatched: Unmatched
    needs_narrative: bool = True


class Route:
    """The compiled rules, lookups, narrative and sinks through which groups are delivered."""

    def __init__(
        self,
        settings: RouteSettings,
        rules: tuple[Rule, ...],
        lookups: tuple[Lookup, ...],
        narrative: Narrative,
        stops: tuple[SinkRule, ...],
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
        """Return the sinks and lookups, which can be down, by name."""
        return {**{sink.name: sink for sink in self.sinks}, **{lookup.part: lookup for lookup in self.lookups}}

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
        except RenderTrouble as error:
            if isinstance(error, NeedsRow):
                raise
            return Failed(TroubleKind.UNKNOWN, NOT_PREPARED, is_down=False, detail=str(error))

    async def _prepared(
        self, group: Group, revision: int, rehearse: bool, heard: Callable[[str], None]
    ) -> Prepared | Refused | Failed:
        why_not = objection(group, self.settings.duration)
        if why_not is not None:
            return Refused(why_not)
        whole = Part(self.variables(group))
        refused = self._refused(whole.variables)
        if refused is not None:
            return refused
        parts = self._parts(whole)
        if isinstance(parts, Refused):
            return parts
        for part in self._looked_at(whole, parts):
            trouble = await self._completed(part.variables, rehearse, heard)
            if trouble is not None:
                return trouble
        taking = self._taking(whole, parts)
        if isinstance(taking, Refused):
            return taking
        self._divide_anew(whole, parts, [part for _, part in taking])
        return self._rendered(group, revision, whole, taking)

    def _parts(self, whole: Part) -> tuple[Part, ...] | Refused:
        """Return the parts of a group for sinks with `each: tag`, sorted by tag name; else the whole group."""
        seen = whole.variables
        if not has_several(seen["group"]) or not any(stop.each_tag for stop in self.stops):
            return (whole,)
        parts = shares(seen["group"], seen["duration"])
        if isinstance(parts, str):
            return Refused(parts)
        return tuple(Part({**seen, "tag": share.tag, "duration": share.duration}, share.suffix) for share in parts)

    def variables_at(self, sink: str, group: Group, key: str) -> Variables | None:
        """Return the variables of the part of a group that a sink got under this key, without lookups and narrative.

        Return `None` if the group, as it is now, has no such part.
        """
        stop = next(stop for stop in self.stops if stop.sink.name == sink)
        whole = Part(self.variables(group))
        parts = self._parts(whole) if stop.each_tag else (whole,)
        if isinstance(parts, Refused):
            return None
        return next((part.variables for part in parts if sink + part.suffix == key), None)

    def _looked_at(self, whole: Part, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Return the parts to look up and render. The whole group is left out if every sink has `each: tag`."""
        return parts if whole in parts or all(stop.each_tag for stop in self.stops) else (whole, *parts)

    def _refused(self, variables: dict[str, Any]) -> Refused | None:
        """Return the refusal by the first rule that matches the group with any of its tags, or `None`."""
        for tag in variables["tags"] or (None,):
            seen = {**variables, "tag": tag}
            for rule in self.rules:
                if rule.when.holds(seen):
                    return Refused(rule.message.render(seen))
        return None

    async def _completed(
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
        if self.settings.needs_narrative:
            variables["narrative"] = self.narrative.render(variables)
        elif rehearse:  # to be shown, although no sink needs it
            with suppress(RenderTrouble):
                variables["narrative"] = self.narrative.render(variables)
        return None

    def _taking(self, whole: Part, parts: tuple[Part, ...]) -> list[tuple[Sink, Part]] | Refused:
        """Return the sinks with the parts that each takes, or the refusal of a tag that no sink takes."""
        taking = list[tuple[Sink, Part]]()
        for stop in self.stops:
            choice = tuple(reversed(parts)) if stop.each_tag else (whole,)
            matches = [(stop.sink, part) for part in choice if stop.takes(part.variables)]
            if matches and stop.is_of_one_tag and not stop.each_tag and has_several(whole.variables["group"]):
                return Refused(ONE_TAG.format(sink=stop.sink.name))
            taking += matches
        takers = [part for _, part in taking]
        if self.settings.unmatched is Unmatched.ACCEPT or whole in takers:
            return taking
        rest = [part.variables["tag"] for part in parts if part not in takers]
        return Refused(_nowhere(rest, taking)) if rest else taking

    def _divide_anew(self, whole: Part, parts: tuple[Part, ...], takers: Sequence[Part]) -> None:
        """Divide the duration between the tags that a sink with `each: tag` takes, if there are others.

        The share of a tag that goes nowhere would be lost. Connectors leave such tags out before they divide.
        """
        kept = [part for part in parts if part is not whole and part in takers]
        if len(kept) in (0, len(parts)):
            return
        durations = divided(whole.variables["group"], whole.variables["duration"], len(kept))
        for part, duration in zip(kept, durations, strict=True):
            part.variables["duration"] = duration
            if "narrative" in part.variables:
                part.variables["narrative"] = self.narrative.render(part.variables)

    def _rendered(self, group: Group, revision: int, whole: Part, taking: Sequence[tuple[Sink, Part]]) -> Prepared:
        group_id, content = group.groupId or "", digest(group)
        rendered_groups = []
        for sink, part in taking:
            # A part has another digest than the whole: a sink that has the whole under this key must not get a part.
            mark = content if part is whole else sha256_of(f"{content}/each tag")
            seen = part.variables
            rendered_groups.append(
                (sink, RenderedGroup(group_id, sink.name + part.suffix, revision, mark, sink.render(seen), seen))
            )
        return Prepared(whole.variables, tuple(rendered_groups))

    def variables(self, group: Group) -> dict[str, Any]:
        """Return the template variables of a group."""
        zone = self.settings.zone
        seen = placed(without_descriptions(group), zone)
        start: datetime | None = group_start(seen, zone)
        return {
            "group": seen,
            "tag": seen.tag,
            "tags": seen.tags,
            "rows": seen.timeRows,
            "user": seen.user,
            "activityType": seen.activityType,
            "duration": duration_of(seen, self.settings.duration),
            "start": start,
            "connectorConfiguration": _Configuration(self.configuration),
        }


def _nowhere(rest: Sequence[PostedTag | None], taking: Sequence[object]) -> str:
    return NO_SINK_OF_TAG.format(tag=rest[0] and rest[0].name) if taking else NO_SINK
