"""The version that this project last saw, stored in its own folder, by which a ref that was set back is detected."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from syncengine.errors import GateTripped
from syncengine.project.atomic_write import replace_whole
from syncengine.state.snapshots.git_store import GitStore
from syncengine.state.snapshots.layout import lock_rows
from syncengine.state.snapshots.versions import REMEMBERED, Snapshot

REWOUND = "state-rewound"


class Seen(Struct, frozen=True):
    """A snapshot that this project has seen: its id and version, and the epoch of its lock."""

    id: str
    version: str
    serial: int
    epoch: int


def seen_of(head: Snapshot) -> Seen:
    return Seen(head.id, head.version, head.info.serial, epoch_of(head))


def epoch_of(head: Snapshot) -> int:
    return max((int(row["epoch"]) for row in lock_rows(head.lock)), default=0)


def remember(file: Path, head: Snapshot) -> None:
    replace_whole(file, [msgspec.json.encode(seen_of(head))], mode=0o600)


def last_seen(file: Path) -> Seen | None:
    """Return the snapshot last seen, or `None` when there is none or the file cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Seen)
    except (OSError, msgspec.MsgspecError):
        return None


def refuse_rewound(store: GitStore, head: Snapshot, last: Seen | None) -> None:
    """Raise `GateTripped` unless this snapshot is, or descends from, the version last seen."""
    if last is not None and not _follows(store, head, last):
        cure = (
            "list the versions with `syncengine state versions`; to return to the one last seen, run `syncengine state"
            f" restore {last.version[:12]}`"
        )
        message = (
            f"state {store.name} was set to version {head.version[:12]} (number {head.info.serial}), which does not"
            f" descend from the version that this project last saw, {last.version[:12]} (number {last.serial}): {cure}"
        )
        raise GateTripped(message, code=REWOUND)


def _follows(store: GitStore, head: Snapshot, last: Seen) -> bool:
    if head.version == last.version:
        return epoch_of(head) >= last.epoch
    descends = store.is_descendant(head, last.version)
    return descends if descends is not None else head.info.serial > last.serial + REMEMBERED
