"""Refusals of resources, and the quarantine, as a state keeps them. Values only; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key
from syncengine.state.codec import KINDS, to_json

REMOVAL = "removal/"
"""What the content of a refused removal begins with; behind it the way: retire, delete, sweep."""

LONGEST_WORDS = 500
"""Letters of the service's words that are kept."""

BY_HAND = "state"
"""The origin of a quarantine that the command set."""


class Refusal(Struct, frozen=True, gc=False, kw_only=True):
    """The refusals of one resource since it was last applied.

    `times` counts runs, `since` is the first of them and `at` the last, in seconds since epoch. `message` has the
    service's words of the last, `content` the digest of the refused content (`content_of`). `is_last`: no call for it
    has been sent since then, so that nothing is unknown.
    """

    key: Key
    times: int
    since: float
    at: float
    message: str
    content: str
    is_last: bool = True


class QuarantineRecord(Struct, frozen=True, gc=False, kw_only=True):
    """A resource that is set aside. `origin`: BY_HAND, or the digest of an entry of the project file.

    `until`: seconds since epoch, None without an end. `content` is the refused content; once the manifests ask
    for another, it is over. `ended`: the time from which an entry of the project file no longer counts.
    """

    key: Key
    origin: str
    reason: str
    until: float | None
    at: float
    content: str
    ended: float | None = None


REFUSAL_COLUMNS = ("kind", "name", "times", "since", "at", "message", "content", "run", "pending", "settled")
ALL_REFUSALS = f"SELECT {', '.join(REFUSAL_COLUMNS)} FROM state_refusals ORDER BY kind, name"  # noqa: S608 - names of columns
QUARANTINE_COLUMNS = ("kind", "name", "origin", "reason", "until", "at", "content", "ended")
ALL_QUARANTINE = f"SELECT {', '.join(QUARANTINE_COLUMNS)} FROM state_quarantine ORDER BY kind, name, origin"  # noqa: S608 - names of columns


def content_of(body: Body) -> str:
    """The digest of a resource's declared content, whatever its place and order in the manifest."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


def refusals_of(rows: Sequence[Sequence[Any]]) -> dict[Key, Refusal]:
    """The refusals of rows in the order of REFUSAL_COLUMNS; ValueError or LookupError where they are damaged.

    One whose resource was applied since is none.
    """
    refusals = {}
    for kind, name, times, since, at, message, content, _, pending, applied_at in rows:
        if not (isinstance(name, str) and isinstance(message, str) and isinstance(content, str)):
            raise ValueError("a refusal holds a value of another type")
        if applied_at is None:
            key = Key(KINDS[kind], name)
            refusals[key] = Refusal(
                key=key,
                times=int(times),
                since=float(since),
                at=float(at),
                message=message,
                content=content,
                is_last=pending is None,
            )
    return refusals


def quarantine_of(rows: Sequence[Sequence[Any]]) -> list[QuarantineRecord]:
    """The records of rows in the order of QUARANTINE_COLUMNS; ValueError or LookupError where they are damaged."""
    records = []
    for kind, name, origin, reason, until, at, content, ended in rows:
        if not all(isinstance(text, str) for text in (name, origin, reason, content)):
            raise ValueError("a quarantine holds a value of another type")
        end, over = (None if each is None else float(each) for each in (until, ended))
        key = Key(KINDS[kind], name)
        record = QuarantineRecord(
            key=key, origin=origin, reason=reason, until=end, at=float(at), content=content, ended=over
        )
        records.append(record)
    return records


def with_end(record: QuarantineRecord, now: float) -> QuarantineRecord:
    """The record of one that is over."""
    return replace(record, ended=now)


NO_REFUSALS: Mapping[Key, Refusal] = {}
