"""Keep one comment for each key, with the text of the newest run, even if several jobs write at once.

The hosts have no conditional write. So every write is preceded and followed by a look at all of our comments with the
key. One of them survives, by a rule that all jobs share (`_survivor`), and the others are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere
from syncengine.publish.hosts import Comment, Host, HostKind, pull_of_commit
from syncengine.publish.marker import Marker, prefix, run_of
from syncengine.publish.place import CommentPlace, PullState

LOOKS = 12
"""The largest number of looks at the comments. Two are usual."""
SETTLING_SECONDS = 1.0
"""The time that a job of an older run may take from its look to its write, which overwrites ours."""


class Published(StrEnum):
    """The outcomes of a publication."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OLDER = "older"
    SUMMARY = "summary"


class Publishing(NamedTuple):
    """The outcome of a publication, with the URL of the comment, or the reason why there is none."""

    outcome: Published
    url: str = ""
    reason: str = ""


def publish(kind: HostKind, place: CommentPlace, marker: Marker, text: str) -> Publishing:
    """Write the comment. The outcome is `SUMMARY` when this job cannot, and the text must be shown elsewhere."""
    title, host_class = kind.client.title, kind.client
    if place.token is None:
        if not place.is_fork:
            raise SyncengineError(
                f"{host_class.variable} is not set: pass it to this step; it needs {host_class.needs}", code="no-token"
            )
        return Publishing(Published.SUMMARY, reason="the job of a fork has no token")
    with HostApi(title, place.api, kind.headers(place.token), place.token) as api:
        try:
            number = place.number
            if number is None and (pull := pull_of_commit(kind, api, place)) is not None:
                if pull.is_foreign and pull.state is PullState.MERGED:  # its authors see no report of our branch
                    reason = f"{host_class.request} {pull.number} came from another repository"
                    return Publishing(Published.SUMMARY, reason=reason)
                number = pull.number
            if number is None:
                return Publishing(Published.SUMMARY, reason=f"this job belongs to no {host_class.request}")
            return _OneComment(host_class(api, place, number), marker, text).write()
        except NotAllowed as refusal:
            cure = "" if place.is_fork else f"; it needs {host_class.needs}"
            return Publishing(Published.SUMMARY, reason=f"the token may not write comments ({refusal}){cure}")
        except NotThere as refusal:
            cure = f"check that {place.project} and the {host_class.request} exist, and that the token may read them"
            raise SyncengineError(
                f"{title} did not find the {host_class.request} ({refusal}): {cure}", code="publish-place"
            ) from None


class _OneComment:
    """The comment of one key, written by one run."""

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
        raise SyncengineError(
            "another job keeps writing the same comment: repeat when it has ended", code="publish-race"
        )

    def _step(self) -> Publishing | None:
        """Look at the comments and take the next step. Return the outcome once there is nothing left to do."""
        mine = {comment.id: comment for comment in self._host.comments() if self._is_mine(comment)}
        if self._created is not None:  # a list may be older than our last write
            mine.setdefault(self._created.id, self._created)
        if not mine:
            self._create()
            return None
        return self._one_of(list(mine.values()))

    def _one_of(self, mine: Sequence[Comment]) -> Publishing | None:
        """Delete all but one of our comments, and update it if it is older than this run."""
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
        """Create the comment. Its author in the answer replaces a guessed one."""
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
        """Return the outcome, or `None` to look once more after an update, in case an older run overwrites it."""
        if self._outcome is not Published.UPDATED or self._has_settled:
            return Publishing(self._outcome, keeper.url)
        self._has_settled = True
        time.sleep(SETTLING_SECONDS)
        return None


def _survivor(comments: Iterable[Comment]) -> Comment:
    """Return the comment to keep: the first comment of the newest run."""
    return max(comments, key=lambda comment: (run_of(comment.body), -comment.id))


def _same(one: str, other: str) -> bool:
    """Return whether two bodies are equal apart from line ends and outer blanks, which hosts change."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
