"""Keys → the times at which their rows got their current content, by the end of a call or by a record without a call.

The journal is followed backwards from the rows' last packed lines, for many rows at a time: each line is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state import packed_lines
from syncengine.state.journal import FAILED, FORGOTTEN, INTENDED, PACKED, SETTLED
from syncengine.state.packed_lines import CallEnd, PackedEntry
from syncengine.state.queries import select_keyed
from syncengine.state.tables import JOURNAL, ROWS

PIECE = 20
"""The number of packed lines read at a time."""

Ends = Mapping[str, Sequence[tuple[float, str, CallEnd]]]
"""The times and verbs with which calls of one run ended as a whole or in part, by call, in order."""


def settled_at(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the time (seconds since the epoch) at which each row got its current content, if that time is known."""
    all_keys = set(keys)
    ends_of = cache(partial(_ends, connection))
    times: dict[Key, float] = {}
    heads = _heads(connection, all_keys)
    while heads:
        earlier = defaultdict(set)
        for line, entry in _entries(connection, heads):
            at = _time_of(line, entry, ends_of)
            if at is not None:
                times[entry.key] = max(at, times.get(entry.key, at))
            elif entry.line.previous is not None:
                earlier[entry.line.previous].add(entry.key)
        heads = {line: remaining for line, these in earlier.items() if (remaining := these - times.keys())}
    return times


def forgotten(connection: sa.Connection, keys: Iterable[Key]) -> set[Key]:
    """Return the subset of `keys` that `state forget` has ever dropped."""
    return {Key(key.kind, key.name) for key in map(_key, select_keyed(connection, _FORGOTTEN, JOURNAL, keys))}


_FORGOTTEN = sa.select(JOURNAL.c.kind, JOURNAL.c.name).where(JOURNAL.c.verb == FORGOTTEN)
_ENTRIES = sa.select(ROWS.c.kind, ROWS.c.name, ROWS.c.entry).where(ROWS.c.entry.is_not(None))


def _key(row: Any) -> Key:
    return Key.parse(f"{row.kind}/{row.name}")


def _heads(connection: sa.Connection, keys: Collection[Key]) -> dict[int, set[Key]]:
    """Return the ids of the last packed lines of `keys`, each with the keys that end there."""
    heads = defaultdict(set)
    for row in select_keyed(connection, _ENTRIES, ROWS, keys):
        heads[int(row.entry)].add(_key(row))
    return heads


def _entries(connection: sa.Connection, heads: Mapping[int, Collection[Key]]) -> Iterator[tuple[Any, PackedEntry]]:
    """Yield the packed lines with the ids in `heads`, each with its entry for every key there."""
    query = sa.select(JOURNAL.c.id, JOURNAL.c.run, JOURNAL.c.at, JOURNAL.c.verb, JOURNAL.c.packed)
    ids = sorted(heads)
    for start in range(0, len(ids), PIECE):
        for line in connection.execute(query.where(JOURNAL.c.id.in_(ids[start : start + PIECE]))):
            for each in packed_lines.entries(line.packed, set(map(str, heads[line.id]))):
                yield line, each


def _time_of(line: Any, entry: PackedEntry, ends_of: Callable[[str | None], Ends]) -> float | None:
    """Return the time at which an entry took effect: `None` if its call did not settle, or only the place changed."""
    if line.verb != INTENDED:
        return float(line.at) if entry.line.detail or entry.line.body else None
    ends = ends_of(line.run).get(entry.call or "", ())
    # The first end counts: an end without keys ends only what is still open of the call.
    own = next(((at, verb) for at, verb, end in ends if not end.keys or str(entry.key) in end.keys), None)
    return own[0] if own and own[1] == SETTLED else None


def _ends(connection: sa.Connection, run: str | None) -> Ends:
    ends = defaultdict(list)
    of_run = sa.and_(JOURNAL.c.run == run, JOURNAL.c.verb.in_((SETTLED, FAILED)), JOURNAL.c.kind == PACKED)
    lines = sa.select(JOURNAL.c.at, JOURNAL.c.verb, JOURNAL.c.packed).where(of_run).order_by(JOURNAL.c.id)
    for at, verb, packed in connection.execute(lines):
        for end in packed_lines.ends(packed):
            ends[end.call].append((float(at), verb, end))
    return ends
