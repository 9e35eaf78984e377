"""Query the inbox for groups, deliveries, events and receipts. Reads only. A missing inbox reads as empty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from syncengine.state.database import StateDatabase
from syncengine.state.inbox_entries import (
    BETWEEN_TAGS,
    PART,
    TAKEN,
    Acknowledgement,
    Delivered,
    DeliveryKey,
    DeliveryStatus,
    Event,
    InboxEntry,
    SinkReceipt,
    acknowledgement_from,
    delivered_from,
    entry_from,
    event_from,
    sink_of,
)
from syncengine.state.inbox_states import FINAL, UNDECIDED, PostedTimeStatus
from syncengine.state.inbox_tables import DELIVERIES, EVENTS, GROUPS

PIECE = 200
"""The number of groups in one IN list."""


_TROUBLED = sa.exists().where(
    DELIVERIES.c.group_id == GROUPS.c.group_id, DELIVERIES.c.status != DeliveryStatus.ACCEPTED
)
_MAY_BE_UNSETTLED = sa.or_(
    GROUPS.c.state.not_in(FINAL), GROUPS.c.outcome != PostedTimeStatus.SUCCESS, GROUPS.c.waiting, _TROUBLED
)
"""The condition for groups that may be unsettled: the few groups for which `InboxEntry.is_settled` is then computed."""


class InboxQueries:
    """The read-only queries of an inbox."""

    def __init__(self, database: StateDatabase) -> None:
        self.database = database
        with database.transaction() as connection:
            self._is_there = sa.inspect(connection).has_table(GROUPS.name)

    def entry(self, group_id: str) -> InboxEntry | None:
        """Return a group with its deliveries, or `None` if it is not in the inbox."""
        if not self._is_there:
            return None
        with self.database.transaction() as connection:
            return entry_of(connection, group_id)

    def entries(
        self,
        *,
        states: Sequence[str] = (),
        user: str | None = None,
        tag: str | None = None,
        since: float | None = None,
        unsettled: bool = False,
    ) -> list[InboxEntry]:
        """Return the groups that match all given filters, last offered first. `user` is any name or id of the user."""
        query = sa.select(GROUPS).order_by(GROUPS.c.offered.desc(), GROUPS.c.group_id)
        if states:
            query = query.where(GROUPS.c.state.in_(states))
        if tag is not None:
            query = query.where(_has_tag(tag))
        if since is not None:
            query = query.where(GROUPS.c.offered >= since)
        if unsettled:
            query = query.where(_MAY_BE_UNSETTLED)
        if not self._is_there:
            return []
        with self.database.transaction() as connection:
            rows = [row for row in connection.execute(query) if user is None or _is_user(row, user)]
            found = _with_deliveries(connection, rows)
            return [entry for entry in found if not (unsettled and entry.is_settled)]

    def story(self, group_id: str) -> list[Event]:
        """Return the events of a group, oldest first."""
        query = sa.select(EVENTS).where(EVENTS.c.group_id == group_id).order_by(EVENTS.c.id)
        return [event_from(row) for row in self._rows(query)]

    def receipts(self, sink: str, since: float) -> Iterator[SinkReceipt]:
        """Yield the deliveries that a sink took since `since`, oldest first, including those of reduced groups."""
        columns = (DELIVERIES.c.group_id, DELIVERIES.c.sink, DELIVERIES.c.last.label("at"), DELIVERIES.c.external_id)
        took = sa.and_(of_sink(sink), DELIVERIES.c.status == DeliveryStatus.ACCEPTED, DELIVERIES.c.last >= since)
        return iter(
            [
                SinkReceipt(**row._mapping)
                for row in self._rows(sa.select(*columns).where(took).order_by(DELIVERIES.c.last))
            ]
        )

    def delivered_since(self, since: float) -> list[InboxEntry]:
        """Return the groups that some sink took since `since`, those that are reduced to their receipts too."""
        took = sa.and_(DELIVERIES.c.status.in_(TAKEN), DELIVERIES.c.last >= since)
        query = sa.select(GROUPS).where(GROUPS.c.group_id.in_(sa.select(DELIVERIES.c.group_id).where(took)))
        if not self._is_there:
            return []
        with self.database.transaction() as connection:
            return list(_with_deliveries(connection, connection.execute(query).all()))

    def with_notes(self, sink: str, memos: Collection[str]) -> list[tuple[DeliveryKey, str]]:
        """Return the deliveries of a sink whose memo is in `memos`, each with its memo. Scans all its deliveries."""
        columns = (DELIVERIES.c.group_id, DELIVERIES.c.revision, DELIVERIES.c.sink, DELIVERIES.c.memo)
        query = sa.select(*columns).where(of_sink(sink), DELIVERIES.c.memo.in_(memos))
        return [(DeliveryKey(*key), memo) for *key, memo in self._rows(query)]

    def last_troubles(self) -> dict[str, float]:
        """Return the sinks whose last attempt met trouble or has no known answer, with the time of the attempt."""
        last = sa.func.max(DELIVERIES.c.last).label("at")
        newest = sa.select(DELIVERIES.c.sink, last).group_by(DELIVERIES.c.sink).subquery()
        same = sa.and_(DELIVERIES.c.sink == newest.c.sink, DELIVERIES.c.last == newest.c.at)
        query = sa.select(DELIVERIES.c.sink, newest.c.at, DELIVERIES.c.status).join(newest, same)
        attempts: dict[str, tuple[float, bool]] = {}
        for key, at, status in self._rows(query):
            sink, failed = sink_of(key), status in (DeliveryStatus.TROUBLE, DeliveryStatus.UNKNOWN)
            attempts[sink] = max(attempts.get(sink, (at, failed)), (at, failed))
        return {sink: at for sink, (at, failed) in attempts.items() if failed}

    def counts(self) -> dict[str, int]:
        """Return the number of groups in each state."""
        query = sa.select(GROUPS.c.state, sa.func.count()).group_by(GROUPS.c.state)
        return {row[0]: row[1] for row in self._rows(query)}

    def waiting(self) -> Iterator[Acknowledgement]:
        """Yield the verdicts of the fetch mechanism that the service has not accepted yet, oldest first."""
        columns = (
            GROUPS.c.group_id,
            GROUPS.c.outcome.label("status"),
            GROUPS.c.message,
            GROUPS.c.external_id,
            GROUPS.c.decided,
            GROUPS.c.offers,
        )
        query = sa.select(*columns).where(GROUPS.c.waiting).order_by(GROUPS.c.decided, GROUPS.c.group_id)
        return iter([acknowledgement_from(row) for row in self._rows(query)])

    def redeliveries(self) -> list[str]:
        """Return the ids of the groups that somebody asked to deliver again, in the order of the requests."""
        query = sa.select(GROUPS.c.group_id).where(GROUPS.c.asked.is_not(None))
        return [row.group_id for row in self._rows(query.order_by(GROUPS.c.asked, GROUPS.c.group_id))]

    def undecided(self, after: tuple[float, str] | None, most: int) -> list[tuple[float, str]]:
        """Return up to `most` undecided groups as ordered pairs (time offered, id), only pairs later than `after`."""
        order = (GROUPS.c.offered, GROUPS.c.group_id)
        query = sa.select(*order).where(GROUPS.c.state.in_(UNDECIDED)).order_by(*order).limit(most)
        if after is not None:
            query = query.where(sa.or_(order[0] > after[0], sa.and_(order[0] == after[0], order[1] > after[1])))
        return [(row.offered, row.group_id) for row in self._rows(query)]

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        if not self._is_there:
            return ()
        with self.database.transaction() as connection:
            return connection.execute(query).all()


def of_sink(sink: str) -> sa.ColumnElement[bool]:
    """Return the condition for the deliveries of a sink, of whole groups and of parts for one tag."""
    return sa.or_(DELIVERIES.c.sink == sink, DELIVERIES.c.sink.startswith(sink + PART, autoescape=True))


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    return sa.or_(
        GROUPS.c.tag == tag,
        GROUPS.c.tag.startswith(tag + BETWEEN_TAGS, autoescape=True),
        GROUPS.c.tag.endswith(BETWEEN_TAGS + tag, autoescape=True),
        GROUPS.c.tag.contains(BETWEEN_TAGS + tag + BETWEEN_TAGS, autoescape=True),
    )


def entry_of(connection: sa.Connection, group_id: str) -> InboxEntry | None:
    return entries_of(connection, [group_id]).get(group_id)


def entries_of(connection: sa.Connection, group_ids: Sequence[str]) -> dict[str, InboxEntry]:
    """Return groups by their ids. Ids that are not in the inbox are left out."""
    found = dict[str, InboxEntry]()
    for start in range(0, len(group_ids), PIECE):
        piece = GROUPS.c.group_id.in_(group_ids[start : start + PIECE])
        rows = connection.execute(sa.select(GROUPS).where(piece)).all()
        found |= {entry.group_id: entry for entry in _with_deliveries(connection, rows)}
    return found


def last_of(connection: sa.Connection, group_id: str) -> sa.Row[Any] | None:
    """Return the latest event of a group, or `None` if it has none."""
    mine = sa.select(EVENTS).where(EVENTS.c.group_id == group_id)
    return connection.execute(mine.order_by(EVENTS.c.id.desc()).limit(1)).one_or_none()


def _with_deliveries(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> Iterator[InboxEntry]:
    for start in range(0, len(rows), PIECE):
        piece = rows[start : start + PIECE]
        query = sa.select(DELIVERIES).where(DELIVERIES.c.group_id.in_([row.group_id for row in piece]))
        found: dict[str, list[Delivered]] = {}
        for row in connection.execute(query.order_by(DELIVERIES.c.revision, DELIVERIES.c.first)):
            found.setdefault(row.group_id, []).append(delivered_from(row))
        for row in piece:
            yield entry_from(row, tuple(found.get(row.group_id, ())))


def _is_user(row: sa.Row[Any], user: str) -> bool:
    return user.casefold() in {key.casefold() for key in entry_from(row, ()).user_keys}
