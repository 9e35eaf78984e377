"""Count the drifting tags in groups that are being delivered, for metrics. Sends nothing to the service.

The newest posted content of each tag is remembered, and compared with the state whenever the counts are read, so that
a tag that was corrected no longer counts. No names are shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from syncengine.posted_time.drift.compare import DriftKind, RecordedTag, differences, is_absence
from syncengine.posted_time.drift.read import DriftState
from syncengine.posted_time.group import Group, PostedTag
from syncengine.resource import Key, Kind

MOST = 10_000
"""The maximum number of tags that are remembered; further tags are ignored."""

WATCHED = (DriftKind.UNKNOWN, DriftKind.RETIRED_IN_USE, DriftKind.DIFFERS)


class TagWatch:
    """A memory of the newest posted content of each tag. Nothing else of a group is kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._newest: dict[str, tuple[int, PostedTag]] = {}

    def observe(self, group: Group) -> None:
        """Remember the tags of an offered group."""
        at = group.submissionTime
        for tag in group.tags if at is not None else ():
            name = tag.name
            if not name or at is None or (name not in self._newest and len(self._newest) >= self._most):
                continue
            if name not in self._newest or self._newest[name][0] <= at:
                self._newest[name] = (at, tag)

    def counts(self, state: DriftState) -> dict[DriftKind, int]:
        """Return the number of drifting tags by kind, compared with the current state."""
        newest = dict(self._newest)
        if not newest:
            return dict.fromkeys(WATCHED, 0)
        rows = {key.name: RecordedTag.of(row) for key, row in state.get(map(_key, newest)).items()}
        unknown = {_key(name) for name in newest if name not in rows}
        kinds = {name: kind for name in rows if (kind := _kind(newest, name, rows[name]))}
        times = {key.name: at for key, at in state.settled_at(map(_key, kinds)).items()} if kinds else {}
        later = [kind for name, kind in kinds.items() if name in times and newest[name][0] > times[name] * 1000]
        return {
            **{kind: later.count(kind) for kind in WATCHED},
            DriftKind.UNKNOWN: len(unknown - state.forgotten(unknown)) if unknown else 0,
        }


def _kind(newest: Mapping[str, tuple[int, PostedTag]], name: str, recorded: RecordedTag) -> DriftKind | None:
    """Return the kind of drift that the newest posted content of a tag shows, or `None`."""
    tag = newest[name][1]
    if not recorded.speaks:
        return None
    if recorded.is_gone:
        return DriftKind.RETIRED_IN_USE
    values = differences(tag, recorded)
    sends_ids = any(tag.externalId is not None for _, tag in newest.values()) if is_absence(tag, values) else True
    return DriftKind.DIFFERS if values and sends_ids else None


def _key(name: str) -> Key:
    return Key(Kind.TAG, name)
