"""The refusals of resources and the quarantine, as a state stores them. Values only; pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key
from syncengine.state.codec import to_json

REMOVAL = "removal/"
"""The prefix of a refused removal's content. The action follows it: retire, delete or sweep."""

LONGEST_WORDS = 500
"""The number of characters of the service's message that are stored."""


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
    """A resource that `state quarantine` set aside at the time `at`.

    `until` is in seconds since the epoch, or `None` without an end. `content` is the digest of the refused content, the
    only one that is set aside.
    """

    key: Key
    reason: str
    until: float | None
    at: float
    content: str


def content_of(body: Body) -> str:
    """Return the digest of a resource's declared content, which does not depend on its place or order."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


NO_REFUSALS: Mapping[Key, Refusal] = {}
