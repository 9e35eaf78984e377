"""state rebuild: rebuild a lost state from the manifests in Git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from syncengine.apply.guards import refuse_other_service
from syncengine.cli.options import Globals
from syncengine.cli.state_writing import writing
from syncengine.errors import SyncengineError, WrongTeam
from syncengine.plan.inputs import InputsChanged
from syncengine.plan.request import Runtime
from syncengine.project import git
from syncengine.project.git_tree import repository
from syncengine.project.model import Project
from syncengine.render.words import count_of
from syncengine.resource import REBUILD, Key, Kind, Recorded
from syncengine.state.history import Run
from syncengine.state.holder import Holder
from syncengine.state.store import State, open_state
from syncengine.tools.rebuild import OPTION, Rebuilt, rebuilt

COMMAND = "state rebuild"


def read_revision(options: Globals, project: Project, revision: str, chosen: Mapping[str, Any]) -> Rebuilt:
    """Read all rows to be recorded from a Git revision, before anything is written."""
    project.base_url()
    with open_state(project.state, write=False, create=chosen["new_state"]) as state:
        _refuse_rows(state, chosen["replace"])
    return rebuilt(revision, project, options.project_at)


def _refuse_rows(state: State, replaces: bool) -> None:
    if not replaces and next(iter(state.rows()), None) is not None:
        message = (
            "the state exists and has rows: use --replace to overwrite the rows that Git declares and keep all others;"
            " to send only a few resources again, use `apply --reassert --target ADDRESS`"
        )
        raise SyncengineError(message, code="state-has-rows")


def record(project: Project, new: Rebuilt, revision: str, *, replaces: bool, create: bool) -> None:
    """Write all rows, or none, as one run of the history. Raise `InputsChanged` if `revision` is another commit now."""
    runtime = Runtime(os.environ)
    holder = Holder.here(COMMAND, os.environ)
    run = Run.here(REBUILD + runtime.new_id(), runtime.now(), holder, os.environ)
    base_url, team = project.base_url(), project.service.team
    with writing(project, COMMAND, create=create) as state:
        with repository(project.root, OPTION) as repo:
            if (now := repo.commit(revision)) != new.commit:
                message = f"{revision} was {new.commit[:10]} and is {now[:10]} now: nothing was recorded; repeat this"
                raise InputsChanged(message)
        facts = state.facts()
        refuse_other_service(facts, base_url)
        if None not in (facts.team, team) and facts.team != team:
            raise WrongTeam(f"the state belongs to team {facts.team!r}, but the project to team {team!r}")
        _refuse_rows(state, replaces)
        ids = {row.key: row.server_id for row in state.rows(Kind.CATEGORY)}
        with state.together():
            begun = replace(run, commit=new.commit, clean=True, limits=new.project.policy.limits())
            state.begin_run(begun, ancestors=git.ancestors(project.root, new.commit))
            state.put([_with_id(row, ids) for row in new.rows])
            state.doubt_all()
            state.begin_lineage(base_url=base_url, team=team)
            state.use_up_approvals((*project.approvals, *new.project.approvals))
            state.end_run("complete", {"applied": len(new.rows)}, new.sources)


def _with_id(row: Recorded, ids: Mapping[Key, str | None]) -> Recorded:
    """Return the row with its recorded server id in `ids`, if there is one."""
    return structs.replace(row, server_id=ids[row.key]) if ids.get(row.key) else row


def question(new: Rebuilt, revision: str) -> str:
    return f"Record {count_of(len(new.rows), 'resource')} from {_name(new, revision)}?"


def answer(new: Rebuilt, revision: str) -> str:
    return (
        f"Recorded {count_of(len(new.rows), 'resource')} from {_name(new, revision)}.\n"
        "All rows are doubtful: `plan` shows which resources the next apply sends again.\n"
    )


def _name(new: Rebuilt, revision: str) -> str:
    short = new.commit[:10]
    return short if new.commit.startswith(revision) else f"{revision} ({short})"
