"""Open and lock the state for a command that writes rows by hand, and record the command as a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from syncengine.document.diagnostics import MANY, suggestion
from syncengine.plan.request import Runtime
from syncengine.project.git_ref import is_git_ref
from syncengine.project.model import Project
from syncengine.resource import IMPORT, RESTORE, Key
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import Run
from syncengine.state.holder import Holder
from syncengine.state.store import State, open_state

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
