"""Edit the state by hand, locked and as a run of its history: quarantine, versions, other rows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from syncengine.document.diagnostics import MANY, suggestion
from syncengine.errors import SyncengineError, Usage
from syncengine.manifest.desired import manifest_set
from syncengine.plan.inputs import quarantine_in
from syncengine.plan.model import Quarantine
from syncengine.plan.planner import declared_by, rules_of
from syncengine.plan.quarantine import NEVER, QuarantineVerdict, contents_by, obstacle, verdict_of
from syncengine.plan.request import Runtime
from syncengine.project.git_ref import is_git_ref
from syncengine.project.model import Project
from syncengine.project.references import sqlite_file
from syncengine.resource import IMPORT, RESTORE, Key
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import Run
from syncengine.state.holder import Holder
from syncengine.state.records import QuarantineRecord
from syncengine.state.snapshots.git_store import Version
from syncengine.state.store import State, open_state, refuse_vanished

BEGINNINGS = {"state import": IMPORT, "state restore": RESTORE}
"""The prefix of run ids for each command that writes rows which other commands must not trust."""

REPLACING = ("state import", "state restore", "state rebuild")


@contextmanager
def writing(project: Project, command: str, *, create: bool = False) -> Iterator[State]:
    """Yield the locked state. `create` allows creating a state in Git.

    A command that replaces what is recorded accepts a state that was set back, and all folders accept it from then on.
    """
    memory, is_meant = memory_of(project), command in REPLACING and not is_git_ref(project.state)
    with open_state(project.state, write=True, create=create, allows_rewound=is_meant, memory=memory) as store:
        holder = Holder.here(command, os.environ)
        service = project.service
        with store.lock(holder, wait=service.lock_timeout, request_timeout=service.timeout):
            yield store


@contextmanager
def named_run(store: State, command: str, environ: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """Begin a run in the history, yield its counts, and end it. An exception leaves the run without an end.

    It applies no commit, so it does not change the last applied one (docs/planning.md 1.7).
    """
    runtime, holder = Runtime(environ), Holder.here(command, environ)
    counts: dict[str, int] = {}
    id = BEGINNINGS.get(command, "") + runtime.new_id()
    store.begin_run(Run.here(id, runtime.now(), holder, environ))
    yield counts
    store.end_run("complete", counts)


def near(store: State, key: Key) -> str:
    """Return `; did you mean …?` for an unrecorded address, or `""`. A large state is not searched."""
    return suggestion(str(key), (str(row.key) for row in islice(store.rows(key.kind), MANY + 1)))


LONGEST_REASON = 500  # characters: every plan shows it, as one paragraph


def set_aside(project: Project, key: Key, reason: str, until: float | None) -> QuarantineRecord:
    """Set aside a resource whose last call was rejected. Raise `SyncengineError` for any other resource."""
    why = reason.strip()
    if not why:
        raise Usage("--reason is empty: give a few words, which every plan shows")
    if len(why) > LONGEST_REASON:
        raise Usage(f"--reason has {len(why)} characters: shorten it to at most {LONGEST_REASON}")
    unknown = f"{key} is not recorded, so there is nothing to set aside"
    with open_state(project.state, write=False, memory=memory_of(project)) as looked:  # which creates no state
        if key not in looked.get([key]):
            raise SyncengineError(f"{unknown}{near(looked, key)}", code="not-recorded")
    desired = declared_by(project, manifest_set(project))
    with writing(project, "state quarantine") as store:
        refusals, now = store.refusals(), time.time()
        content = refusals[key].content if key in refusals else ""
        record = QuarantineRecord(key=key, reason=why, until=until, at=now, content=content)
        trouble = obstacle(record, Quarantine(now, refusals=refusals), contents_by(desired, rules_of(project)))
        if trouble is NEVER and key not in store.get([key]):  # it was forgotten meanwhile
            raise SyncengineError(unknown, code="not-recorded")
        if trouble is not None and trouble.option is not None:
            raise Usage(f"{key} cannot be set aside: {trouble.option}")
        if trouble is not None:
            raise SyncengineError(f"{key} cannot be set aside: {trouble.why}", code="not-refused")
        with named_run(store, "state quarantine", os.environ) as counts:
            store.set_aside([record])
            counts["applied"] = 1
    return record


def end_quarantine(project: Project, key: Key) -> None:
    """End a quarantine that was set with `state quarantine`."""
    with open_state(project.state, write=False, memory=memory_of(project)) as looked:
        if not any(record.key == key for record in looked.quarantine()):
            places = (f"{project.config_name}:{entry.line}" for entry in project.quarantine if entry.key == key)
            place = next(places, None)
            why = "not in quarantine" if place is None else f"in quarantine because of {place}: remove that entry"
            raise SyncengineError(f"{key} is {why}", code="not-quarantined")
    with writing(project, "state quarantine") as store, named_run(store, "state quarantine", os.environ) as counts:
        store.end_quarantine([key])
        counts["applied"] = 1


def current_quarantine(project: Project) -> QuarantineVerdict:
    """Return all entries of the quarantine, judged as in a plan."""
    desired = declared_by(project, manifest_set(project))
    with open_state(project.state, write=False, memory=memory_of(project)) as store:
        rows = {row.key: row for row in store.rows()}
        quarantine = quarantine_in(store, project, time.time())
    return verdict_of(quarantine, desired, rows, rules_of(project))


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
