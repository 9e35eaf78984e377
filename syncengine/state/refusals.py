"""The refusals of resources and the quarantine, as a state stores them. Values only; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key
from syncengine.state.codec import KINDS, to_json

REMOVAL = "removal/"
"""The prefix of a refused removal's content. The action follows it: retire, delete or sweep."""

LONGEST_WORDS = 500
"""The number of characters of the service's message that are stored."""

BY_HAND = "state"
"""The origin of a quarantine that was set by the command `state quarantine`."""


class Refusal(Struct, frozen=True, gc=False, kw_only=True):
    """The refusals of one resource since it was last applied.

    `times` is the number of refused runs; `since` and `at` are the times of the first and the last refusal, in seconds
    since the epoch. `message` is the service's message at the last refusal, `content` the digest of the refused content
    (`content_of`). `is_last`: no call for the resource has been sent since, so that its outcome is certain.
    """

    key: Key
    times: int
    since: float
    at: float
    message: str
    content: str
    is_last: bool = True


class QuarantineRecord(Struct, frozen=True, gc=False, kw_only=True):
    """A quarantined resource. `origin` is `BY_HAND`, or the digest of an entry of the project file.

    `until` is in seconds since the epoch, or `None` without an end. `content` is the digest of the refused content; the
    quarantine is over once the manifests ask for other content. `ended` is the time at which an entry of the project
    file stopped applying.
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
    """Return the digest of a resource's declared content, which does not depend on its place or order."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


def refusals_of(rows: Sequence[Sequence[Any]]) -> dict[Key, Refusal]:
    """Convert rows in the order of `REFUSAL_COLUMNS` to refusals, without resources that were applied since.

    Raise `ValueError` or `LookupError` for damaged rows.
    """
    refusals = {}
    for kind, name, times, since, at, message, content, _, pending, applied_at in rows:
        if not (isinstance(name, str) and isinstance(message, str) and isinstance(content, str)):
            raise ValueError("a refusal has a value of the wrong type")
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
    """Convert rows in the order of `QUARANTINE_COLUMNS` to records. Raise `ValueError` or `LookupError` if damaged."""
    records = []
    for kind, name, origin, reason, until, at, content, ended in rows:
        if not all(isinstance(text, str) for text in (name, origin, reason, content)):
            raise ValueError("a quarantine record has a value of the wrong type")
        end, over = (None if each is None else float(each) for each in (until, ended))
        key = Key(KINDS[kind], name)
        record = QuarantineRecord(
            key=key, origin=origin, reason=reason, until=end, at=float(at), content=content, ended=over
        )
        records.append(record)
    return records


def with_end(record: QuarantineRecord, now: float) -> QuarantineRecord:
    """Return the record of a quarantine that ended at `now`."""
    return replace(record, ended=now)


NO_REFUSALS: Mapping[Key, Refusal] = {}
