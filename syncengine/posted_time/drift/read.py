"""Find drift between the service's list of posted time and the state. Reads both and changes neither.

A page is decoded into groups with nothing but their tags and times of submission: everything else in a group (people,
narratives, rows) is skipped without creating values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from syncengine.errors import Unreachable
from syncengine.posted_time.drift.compare import (
    Drift,
    DriftComparison,
    DriftFinding,
    DriftKind,
    ListReading,
    RecordedTag,
    Sighting,
    similar_names,
)
from syncengine.posted_time.group import PostedTag
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


_PAGE = msgspec.json.Decoder(list[_Group])
_PIECES = msgspec.json.Decoder(list[Raw])
_ITEM = msgspec.json.Decoder(_Group)
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


def sightings(content: bytes) -> list[Sighting | None] | None:
    """Return the groups of a page, with `None` for each unreadable one; or `None` when the content is not a list."""
    if not content.strip():
        return []
    try:
        return [_sighting(group) for group in _PAGE.decode(content)]
    except _TROUBLE:
        return _one_by_one(mended(content))


def _one_by_one(content: bytes) -> list[Sighting | None] | None:
    try:
        pieces: list[Raw] | list[bytes] | None = _PIECES.decode(content)
    except _TROUBLE:
        pieces = items_in(content)
    return None if pieces is None else [_read(piece) for piece in pieces]


def _read(piece: Raw | bytes) -> Sighting | None:
    try:
        return _sighting(_ITEM.decode(piece))
    except _TROUBLE:
        return None


def _sighting(group: _Group) -> Sighting | None:
    at = group.submissionTime
    if not isinstance(at, int | float) or not 0 <= at < LAST_INSTANT:
        return None
    tags = {tag.name: tag for tag in map(_tag, group.tags or ()) if tag.name}
    key = group.groupId if group.groupId is not None else (int(at), tuple(tags))
    return Sighting(key, int(at), tuple(tags.values()))


def _tag(tag: _Tag) -> PostedTag:
    return PostedTag(name=tag.name, path=tag.path, description=tag.description, externalId=tag.externalId)


ORDER = {kind: place for place, kind in enumerate(DriftKind)}


class DriftState(Protocol):
    """The part of a state that finding drift needs."""

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]: ...
    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]: ...
    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]: ...
    def forgotten(self, keys: Iterable[Key]) -> set[Key]: ...


@dataclass(frozen=True, slots=True)
class Window:
    """The beginning of the compared period, in seconds since epoch. Tags in groups since `unused_since` count as used.

    Tags whose address one of the globs `excludes` selects are not compared at all.
    """

    since: float
    unused_since: float | None = None
    excludes: tuple[str, ...] = ()

    @property
    def begin(self) -> float:
        return min(self.since, self.since if self.unused_since is None else self.unused_since)


async def drift_of(client: Client, state: DriftState, window: Window, most: int = MOST_PAGES) -> Drift:
    """Return the drift in posted time listed since the window's beginning. Raise `SyncengineError` on a failed call."""
    tags = {row.key.name: RecordedTag.of(row) for row in state.rows(Kind.TAG)}
    leaves_out = selector(window.excludes, map(_key, tags))
    tags = {name: tag for name, tag in tags.items() if not leaves_out(_key(name))}
    unused_since = None if window.unused_since is None else window.unused_since * 1000
    comparison, reading = DriftComparison(tags, window.since * 1000, unused_since), ListReading()
    async for page in _pages(client, window, reading, most):
        names = comparison.in_question(page)
        times = state.settled_at(map(_key, names)) if names else {}
        comparison.learn_times(names, {key.name: at for key, at in times.items()})
        comparison.take(page)
    reading.groups = comparison.groups
    findings = [f for f in comparison.findings(is_whole=reading.is_whole) if not leaves_out(_key(f.name))]
    return Drift(
        window.since,
        window.unused_since,
        reading,
        comparison.declared,
        comparison.seen_count,
        tuple(sorted(_compared(findings, tags, state), key=lambda f: (ORDER[f.kind], -f.groups, f.name))),
        comparison.unlisted,
    )


async def _pages(client: Client, window: Window, reading: ListReading, most: int) -> AsyncIterator[list[Sighting]]:
    """Yield the groups of the window page by page, newest first."""

    async def ask(size: int, before: int | None) -> Sequence[Sighting | None]:
        answer = await client.call(LIST_POSTED_TIME, query=list_query(size, before), decode=sightings)
        if isinstance(answer.data, list):
            return answer.data
        if answer.exhausted and not answer.diverted:
            raise Unreachable(
                f"the service cannot list posted time: {answer.summary}; repeat unchanged once it answers"
            )
        raise refusal(LIST_POSTED_TIME, client, answer)

    begin = window.begin * 1000
    events = PageEvents(reading.hidden.append, reading.end_ignored, reading.end_endless)

    def key(group: Sighting | None) -> Hashable:
        return group and group.key

    def at(group: Sighting | None) -> int | None:
        return group and group.at

    async for page in pages(ask, key, at, LISTED_AT_MOST, events, most):
        groups = [group for group in page if group is not None]
        reading.unreadable += len(page) - len(groups)
        yield [group for group in groups if group.at >= begin]
        if groups and _is_past(groups, begin):
            return


def _is_past(groups: Sequence[Sighting], begin: float) -> bool:
    """Return whether all further pages are older than `begin`, judged by this page and whether it is sorted."""
    times = [group.at for group in groups]
    return max(times) < begin or (min(times) < begin and times == sorted(times, reverse=True))


def _compared(
    findings: Sequence[DriftFinding], tags: Mapping[str, RecordedTag], state: DriftState
) -> Iterator[DriftFinding]:
    """Yield the findings that an apply has not changed meanwhile, with similar names for undeclared tags."""
    now = {key.name: RecordedTag.of(row) for key, row in state.get(_key(each.name) for each in findings).items()}
    findings = [each for each in findings if now.get(each.name) == tags.get(each.name)]
    unknown = [each.name for each in findings if each.kind is DriftKind.UNKNOWN]
    left_alone = {key.name for key in state.forgotten(map(_key, unknown))} if unknown else set()
    similar = similar_names(unknown, (name for name, tag in tags.items() if tag.is_declared))
    for each in findings:
        if each.kind is not DriftKind.UNKNOWN:
            yield each
        elif each.name not in left_alone:
            yield replace(each, similar=similar.get(each.name))


def _key(name: str) -> Key:
    return Key(Kind.TAG, name)
