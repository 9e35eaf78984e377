"""Find drift between posted time and the state: in the service's list, or in the groups that are being delivered.

Reads both and changes neither. A page of the list is decoded into groups with nothing but their tags and times of
submission: everything else in a group (people, narratives, rows) is skipped without creating values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec import Raw, Struct

from syncengine.document.json_text import InvalidJson, decode_json
from syncengine.document.text import folded
from syncengine.errors import Unreachable
from syncengine.posted_time.drift import (
    Drift,
    DriftComparison,
    DriftKind,
    ListReading,
    RecordedTag,
    Sighting,
)
from syncengine.posted_time.group import Group, PostedTag
from syncengine.resource import Key, Kind, Recorded, selector
from syncengine.service.answers import mended
from syncengine.service.client import Client
from syncengine.service.operations import LIST_POSTED_TIME
from syncengine.service.posted_time import (
    LAST_INSTANT,
    LISTED_AT_MOST,
    MOST_PAGES,
    PageEvents,
    items_in,
    list_query,
    pages,
    refusal,
)

Text = str | int | float | None


class _Tag(Struct, gc=False):
    name: Text = None
    path: Text = None
    description: Text = None
    externalId: Text = None  # noqa: N815 - as it is sent


class _Group(Struct, gc=False):
    groupId: Text = None  # noqa: N815 - as it is sent
    submissionTime: Text = None  # noqa: N815 - as it is sent
    tags: list[_Tag] | None = None


def sightings(content: bytes) -> list[Sighting | None] | None:
    """Return the groups of a page, with `None` for each unreadable one; or `None` when the content is not a list."""
    if not content.strip():
        return []
    pieces: Sequence[Raw | bytes] | None
    try:
        pieces = decode_json(content, list[Raw])
    except InvalidJson:
        pieces = items_in(mended(content))
    return None if pieces is None else [_sighting(piece) for piece in pieces]


def _sighting(piece: Raw | bytes) -> Sighting | None:
    try:
        group: _Group = decode_json(piece, _Group)
    except InvalidJson:
        try:
            group = decode_json(mended(bytes(piece)), _Group)
        except InvalidJson:
            return None
    at = group.submissionTime
    if not isinstance(at, int | float) or not 0 <= at < LAST_INSTANT:
        return None
    tags = {
        tag.name: tag
        for t in group.tags or ()
        if (tag := PostedTag(name=t.name, path=t.path, description=t.description, externalId=t.externalId)).name
    }
    key = group.groupId if group.groupId is not None else (int(at), tuple(tags))
    return Sighting(key, int(at), tuple(tags.values()))


class DriftState(Protocol):
    """The part of a state that finding drift needs."""

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]: ...
    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]: ...
    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]: ...
    def forgotten(self, keys: Iterable[Key]) -> set[Key]: ...


def _key(name: str) -> Key:
    return Key(Kind.TAG, name)


def _settled_at(state: DriftState, names: Collection[str]) -> dict[str, float]:
    return {key.name: at for key, at in state.settled_at(map(_key, names)).items()} if names else {}


@dataclass(frozen=True, slots=True)
class Window:
    """The beginning of the compared period, in seconds since epoch. Tags in groups since `unused_since` count as used.

    Tags whose address one of the globs `excludes` selects are not compared at all.
    """

    since: float
    unused_since: float | None = None
    excludes: tuple[str, ...] = ()


async def drift_of(client: Client, state: DriftState, window: Window, most: int = MOST_PAGES) -> Drift:
    """Return the drift in posted time listed since the window's beginning. Raise `SyncengineError` on a failed call."""
    since, unused = window.since, window.unused_since
    tags = {row.key.name: RecordedTag.of(row) for row in state.rows(Kind.TAG)}
    leaves_out = selector(window.excludes, map(_key, tags))
    tags = {name: tag for name, tag in tags.items() if not leaves_out(_key(name))}
    unused_ms = None if unused is None else unused * 1000
    comparison = DriftComparison(tags, since * 1000, unused_ms, lambda names: _settled_at(state, names))
    reading = ListReading()
    async for page in _pages(client, min(since, since if unused is None else unused) * 1000, reading, most):
        comparison.take(page)
    reading.groups = comparison.groups
    found = [f for f in comparison.findings(is_whole=reading.is_whole) if not leaves_out(_key(f.name))]
    now = {key.name: RecordedTag.of(row) for key, row in state.get(_key(each.name) for each in found).items()}
    found = [each for each in found if now.get(each.name) == tags.get(each.name)]  # an apply changed the others
    unknown = [each.name for each in found if each.kind is DriftKind.UNKNOWN]
    left_alone = {key.name for key in state.forgotten(map(_key, unknown))} if unknown else set()
    forms = {folded(name) for name in unknown}
    similar = {form: name for name, tag in tags.items() if tag.is_declared and (form := folded(name)) in forms}
    findings = [
        replace(each, similar=similar.get(folded(each.name))) if each.kind is DriftKind.UNKNOWN else each
        for each in found
        if each.kind is not DriftKind.UNKNOWN or each.name not in left_alone
    ]
    order = list(DriftKind)
    findings.sort(key=lambda each: (order.index(each.kind), -each.groups, each.name))
    declared = sum(tag.is_declared for tag in tags.values())
    counts = declared, len(comparison.declared_seen)
    return Drift(since, unused, reading, *counts, tuple(findings), comparison.unlisted)


async def _pages(client: Client, begin: float, reading: ListReading, most: int) -> AsyncIterator[list[Sighting]]:
    """Yield the groups since `begin` (milliseconds since the epoch) page by page, newest first."""

    async def ask(size: int, before: int | None) -> Sequence[Sighting | None]:
        answer = await client.call(LIST_POSTED_TIME, query=list_query(size, before), decode=sightings)
        if isinstance(answer.data, list):
            return answer.data
        if answer.exhausted and not answer.diverted:
            raise Unreachable(
                f"the service cannot list posted time: {answer.summary}; repeat unchanged once it answers"
            )
        raise refusal(LIST_POSTED_TIME, client, answer)

    def key(group: Sighting | None) -> Hashable:
        return group and group.key

    def at(group: Sighting | None) -> int | None:
        return group and group.at

    def ignored() -> None:
        reading.ignored = True

    def endless() -> None:
        reading.endless = True

    events = PageEvents(reading.hidden.append, ignored, endless)
    async for page in pages(ask, key, at, LISTED_AT_MOST, events, most):
        groups = [group for group in page if group is not None]
        reading.unreadable += len(page) - len(groups)
        yield [group for group in groups if group.at >= begin]
        times = [group.at for group in groups]
        # All further pages are older, too: if none of this page is newer, or if some are older and the page is sorted.
        is_sorted = times == sorted(times, reverse=True)
        if times and (max(times) < begin or (min(times) < begin and is_sorted)):
            return


# --- groups that are being delivered

MOST = 10_000
"""The maximum number of tags that are remembered; further tags are ignored."""

WATCHED = (DriftKind.UNKNOWN, DriftKind.RETIRED_IN_USE, DriftKind.DIFFERS)


class TagWatch:
    """A memory of the newest posted content of each tag, for metrics. Nothing else of a group is kept.

    It is compared with the state whenever the counts are read, so that a tag that was corrected no longer counts. No
    names are shown, and nothing is sent to the service.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._newest: dict[str, tuple[int, PostedTag]] = {}

    def observe(self, group: Group) -> None:
        """Remember the tags of an offered group."""
        at = group.submissionTime
        for tag in group.tags if at is not None else ():
            if not (name := tag.name) or at is None or (name not in self._newest and len(self._newest) >= self._most):
                continue
            if name not in self._newest or self._newest[name][0] <= at:
                self._newest[name] = (at, tag)

    def counts(self, state: DriftState) -> dict[DriftKind, int]:
        """Return the number of drifting tags by kind, compared with the current state."""
        newest = dict(self._newest)  # deliveries go on meanwhile
        rows = {key.name: RecordedTag.of(row) for key, row in state.get(map(_key, newest)).items()} if newest else {}
        comparison = DriftComparison(rows, 0, None, lambda names: _settled_at(state, names))
        comparison.take([Sighting(name, at, (tag,)) for name, (at, tag) in newest.items()])
        found = list(comparison.findings(is_whole=False))
        unknown = {_key(each.name) for each in found if each.kind is DriftKind.UNKNOWN}
        left_alone = state.forgotten(unknown) if unknown else set()
        kinds = Counter(each.kind for each in found)
        kinds[DriftKind.UNKNOWN] -= len(left_alone)
        return {kind: kinds[kind] for kind in WATCHED}
