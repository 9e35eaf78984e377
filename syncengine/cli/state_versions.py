"""state versions, state restore: list the versions of a state in Git, and restore a version."""

from __future__ import annotations

import os
from collections.abc import Sequence

from syncengine.cli.state_writing import named_run, writing
from syncengine.errors import SyncengineError, Usage
from syncengine.project.git_ref import is_git_ref
from syncengine.project.model import Project
from syncengine.project.references import sqlite_file
from syncengine.state.folder_memory import memory_of
from syncengine.state.holder import Holder
from syncengine.state.snapshots.git_store import Version
from syncengine.state.store import open_state, refuse_vanished


def versions_of(project: Project) -> Sequence[Version]:
    """Return the stored versions, newest first, even of a state that was set back."""
    from syncengine.state.snapshots.place import GitPlace

    if not is_git_ref(project.state):
        raise no_versions(project.state)
    place = GitPlace(project.state, allows_rewound=True)
    head = place.look()
    return place.store.versions(head) if head else []


def no_versions(place: str) -> SyncengineError:
    """Return the error for a state outside of Git, which has no versions."""
    kind = "a database" if sqlite_file(place) is None else "a file"
    return SyncengineError(
        f"a state in {kind} keeps no versions: only a state in Git does (docs/state.md). To accept a state that was"
        " set back, as from a backup, run `syncengine state restore` without VERSION",
        code="no-versions",
    )


def accept(project: Project) -> int:
    """Accept a state outside of Git that was set back, all rows doubtful; return their number."""
    refuse_vanished(project.state, memory_of(project))
    with open_state(project.state, write=False) as found:
        if not found.exists:
            raise SyncengineError("there is no state yet, so there is nothing to accept", code="no-state")
    with writing(project, "state restore") as store, named_run(store, "state restore", os.environ) as counts:
        store.doubt_all()
        store.use_up_approvals(project.approvals)
        counts["applied"] = store.count()
    return counts["applied"]


def restore(project: Project, version: str) -> Version:
    """Write the rows of a version, all doubtful, as a new version on top of the current one."""
    from syncengine.state.snapshots.working_copy import copy_of

    if not is_git_ref(project.state):
        raise no_versions(project.state)
    if not version.strip():
        raise Usage("VERSION is empty: give an id from `syncengine state versions`")
    service = project.service
    with open_state(project.state, write=True, create=True, allows_rewound=True) as store:
        copy = copy_of(store.database)
        head = copy.place.store.version(version)
        holder = Holder.here("state restore", os.environ)
        with store.lock(holder, wait=service.lock_timeout, request_timeout=service.timeout):
            store.restore(head)
            with named_run(store, "state restore", os.environ) as counts:
                store.doubt_all()
                store.use_up_approvals(project.approvals)
                counts["applied"] = head.info.rows
    return Version(head.version, head.info)
