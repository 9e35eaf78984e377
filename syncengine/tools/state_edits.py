"""Edit the state by hand, locked and as a run of its history: quarantine, versions, a rebuild from Git, other rows."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from syncengine.apply.guards import refuse_other_service
from syncengine.document.diagnostics import MANY, suggestion
from syncengine.errors import Diagnostic, Severity, SyncengineError, Usage, WrongTeam
from syncengine.manifest.cache import delete_cache
from syncengine.manifest.desired import manifest_set
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT
from syncengine.plan.base import Load, has_project, recorded_as
from syncengine.plan.inputs import InputsChanged, quarantine_in
from syncengine.plan.model import Quarantine
from syncengine.plan.planner import declared_by, rules_of
from syncengine.plan.quarantine import NEVER, QuarantineVerdict, contents_by, obstacle, verdict_of
from syncengine.plan.request import Runtime
from syncengine.project import git
from syncengine.project.files import OWN_FOLDER
from syncengine.project.git_ref import is_git_ref
from syncengine.project.git_tree import RevisionFiles, load_revision, repository
from syncengine.project.model import Project
from syncengine.project.references import setting_problem, sqlite_file
from syncengine.project.runner import Holder
from syncengine.resource import IMPORT, REBUILD, RESTORE, Key, Kind, Recorded, Status
from syncengine.state.folder_memory import memory_of
from syncengine.state.git_store import Version
from syncengine.state.history import Run
from syncengine.state.records import QuarantineRecord
from syncengine.state.removal import Erased
from syncengine.state.store import State, open_state, refuse_vanished
from syncengine.state.transfer import Exported

BEGINNINGS = {"state import": IMPORT, "state restore": RESTORE}
"""The prefix of run ids for each command that writes rows which other commands must not trust."""

LONGEST_REASON = 500  # characters: every plan shows it, as one paragraph
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


def refuse_unknown(store: State, keys: Sequence[Key], known: Collection[Key], words: str) -> None:
    """Raise `not-recorded` for those of `keys` that are not `known`; `words` say what they are not."""
    if missing := [key for key in keys if key not in known]:
        names, are = ", ".join(map(str, missing)), "is" if len(missing) == 1 else "are"
        raise SyncengineError(f"{names} {are} {words}{near(store, missing[0])}", code="not-recorded")


def put_export(project: Project, exported: Exported, *, create: bool) -> None:
    """Record the rows of an export, all of them doubtful. Raise `WrongTeam` if it is of another team."""
    head = exported.head
    with writing(project, "state import", create=create) as store:
        own = store.facts().team
        if None not in (own, head.team) and own != head.team:  # docs/planning.md 1.6
            raise WrongTeam(f"the file belongs to team {head.team!r}, but the state to team {own!r}")
        with named_run(store, "state import", os.environ) as counts:
            store.put(exported.rows)
            store.import_quarantine(exported.refusals, exported.quarantine)
            store.doubt_all()
            store.set_facts(base_url=head.base_url, team=head.team)
            store.use_up_approvals(project.approvals)
            store.add_undone(head.undone)
            store.take_commit(head.commit, head.ancestors)
            counts["applied"] = len(exported.rows)


def erase(project: Project, keys: Sequence[Key]) -> tuple[Erased, Sequence[Recorded], bool]:
    """Erase resources from the state, its history and the cache of manifests.

    Return what was erased, the rows of what the service may still have, and whether no byte is left in the state's
    file. Raise `SyncengineError` if one is unknown, or may not be erased yet.
    """
    with writing(project, "state erase") as store:
        recorded = store.get(keys)
        known = [key for key in keys if key in recorded or store.history(key)]
        refuse_unknown(store, keys, known, "neither recorded nor in the history, so nothing was erased")
        if obstacles := store.obstacles(keys, project.service.landing):
            message = "; ".join(f"{each.key}: {each.reason}" for each in obstacles)
            raise SyncengineError(f"{message}; nothing was erased", code="not-erasable")
        with named_run(store, "state erase", os.environ) as counts:
            erased = store.erase(keys)
            counts["erased"] = len(keys)
        is_compact = store.compact()
    delete_cache(project.root / OWN_FOLDER)
    return erased, [row for row in recorded.values() if row.status is not Status.DELETED], is_compact


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
    from syncengine.state.git_store import GitPlace

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
    from syncengine.state.working_copy import copy_of

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


# --- rebuild

OPTION = "--from-git"
IGNORED = "ignored-inputs"
"""The diagnostic code of inputs that no commit contains."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The rows of a rebuilt state, with the commit, its project and the row counts of its sources."""

    commit: str
    project: Project
    rows: tuple[Recorded, ...]
    sources: Mapping[str, int]
    diagnostics: tuple[Diagnostic, ...]


def rebuilt(revision: str, project: Project, load: Load, *, replaces: bool, create: bool) -> Rebuilt:
    """Return the rows that a revision declares, without those made from databases and services, which Git lacks.

    Raise `Problems` when the revision is invalid, and `SyncengineError` when the state has rows, unless it `replaces`
    them.
    """
    project.base_url()  # or its absence would be found only once all is read
    with open_state(project.state, write=False, create=create) as state:
        _refuse_rows(state, replaces=replaces)
    with repository(project.root, OPTION) as repo:
        commit = repo.commit(revision)
        files = RevisionFiles(repo, commit, revision, repo.objects / "revision")
        files.bring_project()
        if not has_project(files.checkout):
            raise setting_problem("no-project", f"{revision} has no project in this folder")
        there = load_revision(files, load).without_secrets()
        manifests = manifest_set(there, is_offline=True)
        desired = declared_by(there, manifests)
        found = list(files.found)
        for each in desired.diagnostics:
            if each.code == SOURCE_LEFT_OUT:
                what = each.message.partition(";")[0]
                words = f"{what}: resources made from its rows are not recorded; the next apply does"
                found.append(replace(each, message=words))
        ignored = {os.path.normpath(files.checkout.folder / name): name for name in files.ignored()}
        inputs = {os.path.normpath(path) for path in manifests.inputs()} if ignored else set()
        for path in sorted(inputs & ignored.keys()):
            message = "Git ignores this file: its current version was read, not the one at that commit"
            found.append(Diagnostic(severity=Severity.WARNING, code=IGNORED, message=message, file=ignored[path]))
        # Each may or may not exist on the service, whose ids Git does not know.
        rows = (replace(recorded_as(each), doubtful=True, server_id=None) for each in desired.resources.values())
        return Rebuilt(commit, there, tuple(rows), desired.rows_of_sources(), tuple(found))


def _refuse_rows(state: State, *, replaces: bool) -> None:
    if not replaces and next(iter(state.rows()), None) is not None:
        message = (
            "the state exists and has rows: use --replace to overwrite the rows that Git declares and keep all others;"
            " to send only a few resources again, use `apply --reassert --target ADDRESS`"
        )
        raise SyncengineError(message, code="state-has-rows")


def record(project: Project, new: Rebuilt, revision: str, *, replaces: bool, create: bool) -> None:
    """Write all rows, or none, as one run of the history. Raise `InputsChanged` if `revision` is another commit now."""
    runtime = Runtime(os.environ)
    holder = Holder.here("state rebuild", os.environ)
    run = Run.here(REBUILD + runtime.new_id(), runtime.now(), holder, os.environ)
    base_url, team = project.base_url(), project.service.team
    with writing(project, "state rebuild", create=create) as state:
        with repository(project.root, OPTION) as repo:
            if (now := repo.commit(revision)) != new.commit:
                message = f"{revision} was {new.commit[:10]} and is {now[:10]} now: nothing was recorded; repeat this"
                raise InputsChanged(message)
        facts = state.facts()
        refuse_other_service(facts, base_url)
        if None not in (facts.team, team) and facts.team != team:
            raise WrongTeam(f"the state belongs to team {facts.team!r}, but the project to team {team!r}")
        _refuse_rows(state, replaces=replaces)
        ids = {row.key: row.server_id for row in state.rows(Kind.CATEGORY)}
        with state.together():
            begun = dataclasses.replace(run, commit=new.commit, clean=True, limits=new.project.policy.limits())
            state.begin_run(begun, ancestors=git.ancestors(project.root, new.commit))
            state.put([replace(row, server_id=ids.get(row.key) or row.server_id) for row in new.rows])
            state.doubt_all()
            state.begin_lineage(base_url=base_url, team=team)
            state.use_up_approvals((*project.approvals, *new.project.approvals))
            state.end_run("complete", {"applied": len(new.rows)}, new.sources)
