"""One comment for a key: the newest run's, updated in place, whoever else writes at the same time.

The host has no write that depends on the text before it. So every write is preceded and followed by a look at all
comments of ours with the key; one of them survives, by a rule that all jobs share (`_survivor`), and only its older
fellows are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere
from syncengine.publish.hosts import Comment, Host, HostKind, number_of_commit
from syncengine.publish.marker import Marker, prefix, run_of
from syncengine.publish.place import CommentPlace

LOOKS = 12
"""How often the comments are looked at, at most; two are usual."""
SETTLING_SECONDS = 1.0
"""How long a job of an older run may be between its look and its write, so that it writes over ours."""


class Published(StrEnum):
    """The end of a publication."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OLDER = "older"
    SUMMARY = "summary"


class Publishing(NamedTuple):
    """The outcome of publishing a text, the page of its comment, and why there is none."""

    outcome: Published
    url: str = ""
    reason: str = ""


def publish(kind: HostKind, place: CommentPlace, marker: Marker, text: str) -> Publishing:
    """Write the comment; Published.SUMMARY where this job may not, and the text has to go elsewhere."""
    title, host_class = kind.client.title, kind.client
    if place.token is None:
        if not place.is_fork:
            raise SyncengineError(
                f"{host_class.variable} is not set: hand it to this step; it needs {host_class.needs}", code="no-token"
            )
        return Publishing(Published.SUMMARY, reason="a fork's job has no token")
    with HostApi(title, place.api, kind.headers(place.token), place.token) as api:
        try:
            number = place.number or number_of_commit(kind, api, place)
            if number is None:
                return Publishing(Published.SUMMARY, reason=f"this job belongs to no {host_class.request}")
            return _OneComment(host_class(api, place, number), marker, text).write()
        except NotAllowed as refusal:
            cure = "" if place.is_fork else f"; it needs {host_class.needs}"
            return Publishing(Published.SUMMARY, reason=f"the token may not write here ({refusal}){cure}")
        except NotThere as refusal:
            cause = f"is {place.project} right, is the {host_class.request} there, and may the token see both?"
            raise SyncengineError(f"{title} knows no such place ({refusal}): {cause}", code="publish-place") from None


class _OneComment:
    """The comment of one key, and one run that writes it."""

    def __init__(self, host: Host, marker: Marker, text: str) -> None:
        self._host = host
        self._marker = marker
        self._text = text
        self._author = ""
        self._created: Comment | None = None
        self._outcome = Published.UNCHANGED
        self._has_settled = False

    def write(self) -> Publishing:
        self._author = self._host.author()
        for _ in range(LOOKS):
            if (end := self._host.api.persist(self._step)) is not None:
                return end
        raise SyncengineError("another job writes the same comment again and again", code="publish-race")

    def _step(self) -> Publishing | None:
        """Look, and take the next step; return the end once there is none."""
        mine = {comment.id: comment for comment in self._host.comments() if self._is_mine(comment)}
        if self._created is not None:  # a list may be older than what was just written
            mine.setdefault(self._created.id, self._created)
        if not mine:
            self._create()
            return None
        return self._one_of(list(mine.values()))

    def _one_of(self, mine: Sequence[Comment]) -> Publishing | None:
        """Leave one of our comments, and see to it that it is not older than this run."""
        keeper = _survivor(mine)
        for comment in mine:
            if comment.id != keeper.id:
                self._host.delete(comment.id)
        order, wrote = run_of(keeper.body), self._outcome is not Published.UNCHANGED
        if order > self._marker.run:
            return Publishing(Published.OLDER, keeper.url, f"run {order.number or order.id} is newer")
        if _same(keeper.body, self._text) or (wrote and order == self._marker.run):
            return self._settled(keeper)
        self._update(keeper)
        return None

    def _is_mine(self, comment: Comment) -> bool:
        return comment.author == self._author and comment.body.startswith(prefix(self._marker.key))

    def _create(self) -> None:
        """Create it. The answer tells whose the token is, if that was a guess."""
        self._created = self._host.create(self._text)
        self._outcome = Published.CREATED
        if self._created is not None and self._created.author:
            self._author = self._created.author

    def _update(self, keeper: Comment) -> None:
        try:
            self._host.update(keeper.id, self._text)
        except NotThere:  # another job has deleted it since: look again
            self._created = None
            return
        self._outcome = Published.CREATED if self._outcome is Published.CREATED else Published.UPDATED
        self._has_settled = False

    def _settled(self, keeper: Comment) -> Publishing | None:
        """The end, if an older run that had looked before our update has not written over it a moment later."""
        if self._outcome is not Published.UPDATED or self._has_settled:
            return Publishing(self._outcome, keeper.url)
        self._has_settled = True
        time.sleep(SETTLING_SECONDS)
        return None


def _survivor(comments: Iterable[Comment]) -> Comment:
    """Choose the comment that stays: the first one of the newest run."""
    return max(comments, key=lambda comment: (run_of(comment.body), -comment.id))


def _same(one: str, other: str) -> bool:
    """Whether two bodies are the same, as hosts store them."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
