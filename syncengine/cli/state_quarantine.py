"""state quarantine: set a rejected resource aside, list the quarantine, or end one (docs/repair.md)."""

from __future__ import annotations

import os
import time

from syncengine.cli.state_writing import named_run, near, writing
from syncengine.errors import SyncengineError, Usage
from syncengine.manifest.desired import manifest_set
from syncengine.plan.model import Quarantine
from syncengine.plan.planner import declared_by, rules_of
from syncengine.plan.quarantine import NEVER, Hindrance, QuarantineVerdict, contents_by, obstacle, verdict_of
from syncengine.plan.state_checks import quarantine_in
from syncengine.project.model import Project
from syncengine.resource import Key
from syncengine.state.folder_memory import memory_of
from syncengine.state.records import QuarantineRecord
from syncengine.state.store import State, open_state

NOT_REFUSED, NOT_QUARANTINED = "not-refused", "not-quarantined"
LONGEST_REASON = 500


def set_aside(project: Project, key: Key, reason: str, until: float | None) -> QuarantineRecord:
    """Set aside a resource whose last call was rejected. Raise `SyncengineError` for any other resource."""
    why = _reason(reason)
    _refuse_unrecorded(project, key)
    desired = declared_by(project, manifest_set(project))
    with writing(project, "state quarantine") as store:
        rows, now = store.get([key]), time.time()
        refusals = store.refusals()
        content = refusals[key].content if key in refusals else ""
        record = QuarantineRecord(key=key, reason=why, until=until, at=now, content=content)
        trouble = obstacle(record, Quarantine(now, refusals=refusals), contents_by(desired, rules_of(project)))
        if trouble is not None:
            raise _refused(key, trouble, is_known=key in rows)
        with named_run(store, "state quarantine", os.environ) as counts:
            store.set_aside([record])
            counts["applied"] = 1
    return record


def _refused(key: Key, why: Hindrance, *, is_known: bool) -> SyncengineError:
    if not is_known and why is NEVER:
        return SyncengineError(f"{key} is not recorded, so there is nothing to set aside", code="not-recorded")
    if why.option is not None:
        return Usage(f"{key} cannot be set aside: {why.option}")
    return SyncengineError(f"{key} cannot be set aside: {why.why}", code=NOT_REFUSED)


def _refuse_unrecorded(project: Project, key: Key) -> None:
    """Raise `not-recorded` for an unrecorded resource, without creating a state."""
    with open_state(project.state, write=False, memory=memory_of(project)) as looked:
        if key not in looked.get([key]):
            message = f"{key} is not recorded, so there is nothing to set aside{near(looked, key)}"
            raise SyncengineError(message, code="not-recorded")


def _reason(text: str) -> str:
    reason = text.strip()
    if not reason:
        raise Usage("--reason is empty: give a few words, which every plan shows")
    if len(reason) > LONGEST_REASON:
        raise Usage(f"--reason has {len(reason)} characters: shorten it to at most {LONGEST_REASON}")
    return reason


def end(project: Project, key: Key) -> None:
    """End a quarantine that was set with `state quarantine`."""
    with open_state(project.state, write=False, memory=memory_of(project)) as looked:
        if not _by_hand(looked, key):
            raise SyncengineError(_not_by_hand(project, key), code=NOT_QUARANTINED)
    with writing(project, "state quarantine") as store, named_run(store, "state quarantine", os.environ) as counts:
        store.end_quarantine([key])
        counts["applied"] = 1


def _by_hand(store: State, key: Key) -> bool:
    return any(record.key == key for record in store.quarantine())


def _not_by_hand(project: Project, key: Key) -> str:
    for entry in project.quarantine:
        if entry.key == key:
            return f"{key} is in quarantine because of {project.config_name}:{entry.line}: remove that entry"
    return f"{key} is not in quarantine"


def current_quarantine(project: Project) -> QuarantineVerdict:
    """Return all entries of the quarantine, judged as in a plan."""
    desired = declared_by(project, manifest_set(project))
    with open_state(project.state, write=False, memory=memory_of(project)) as store:
        rows = {row.key: row for row in store.rows()}
        quarantine = quarantine_in(store, project, time.time())
    return verdict_of(quarantine, desired, rows, rules_of(project))
