"""The refusals of resources and the quarantine, as a state stores them. Values only; pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key
from syncengine.state.codec import to_json

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


def content_of(body: Body) -> str:
    """Return the digest of a resource's declared content, which does not depend on its place or order."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


def with_end(record: QuarantineRecord, now: float) -> QuarantineRecord:
    """Return the record of a quarantine that ended at `now`."""
    return replace(record, ended=now)


NO_REFUSALS: Mapping[Key, Refusal] = {}
