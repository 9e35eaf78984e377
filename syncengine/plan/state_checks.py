"""Check a project against its state: no state yet, another service or team, an older commit.

The quarantine of the project file and the state is also read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from syncengine.document.urls import canonical_url
from syncengine.errors import Diagnostic, Severity
from syncengine.plan.model import Quarantine
from syncengine.project import git
from syncengine.project.git_ref import is_git_ref, read_ref, without_login
from syncengine.project.model import Project
from syncengine.state.records import Facts, StateReader

NO_STATE, OTHER_SERVICE, WRONG_TEAM, OLDER_COMMIT = "no-state", "other-service", "wrong-team", "older-commit"
ANCESTRY = "unknown-ancestry"
HOLDS_ALREADY = (
    "if the service holds tags, categories or activity types already, record them with `syncengine adopt FILE` first,"
    " or they are changed unseen"
)
SAID_FIRST = frozenset({NO_STATE, OTHER_SERVICE, WRONG_TEAM, OLDER_COMMIT, ANCESTRY})


def of_another_service(facts: Facts, base_url: str) -> bool:
    """Return whether the state belongs to another service. Different spellings of a URL are the same service."""
    return facts.base_url is not None and canonical_url(facts.base_url) != canonical_url(base_url)


def quarantine_in(state: StateReader, project: Project, now: float) -> Quarantine:
    """Return the quarantine made by hand and by the project file, with the refusals that it concerns."""
    return Quarantine(now, project.config_name, project.quarantine, tuple(state.quarantine()), state.refusals())


def first_contact(project: Project, state: StateReader) -> Iterator[Diagnostic]:
    """Yield a warning that everything counts as new, if there is no state, or one that knows nothing of the service.

    An apply creates the state before it plans. The embedded sandbox holds nothing that was not applied to it.
    """
    if not state.exists:
        what = f"no state at {_shown(project)} yet: everything is new"
    elif project.is_sandbox or state.facts().base_url is not None or next(iter(state.rows()), None) is not None:
        return
    else:
        what = f"nothing is recorded in {_shown(project)} yet: everything is new"
    yield _warning(NO_STATE, what if project.is_sandbox else f"{what}; {HOLDS_ALREADY}")


def state_warnings(project: Project, state: StateReader, commit: str | None) -> Iterator[Diagnostic]:
    """Yield warnings about the state to show before the plan of `commit`."""
    facts = state.facts()
    yield from first_contact(project, state)
    if of_another_service(facts, project.base_url()):
        of, cure = facts.base_url, "`apply` refuses this until `state rebind` accepts it"
        yield _warning(OTHER_SERVICE, f"the state belongs to {of}, but this plan is for {project.base_url()}: {cure}")
    if None not in (project.service.team, facts.team) and project.service.team != facts.team:
        of, cure = f"team {facts.team!r}", "`apply` refuses this until `state rebind` accepts it"
        yield _warning(WRONG_TEAM, f"the state belongs to {of}, but service.team is {project.service.team!r}: {cure}")
    if commit is None and (why := unread(project.root, facts)):
        yield _warning(ANCESTRY, why)
    if commit and is_older(project.root, commit, facts):
        cure = "`apply` refuses it without --allow-older"
        yield _warning(OLDER_COMMIT, f"{older_than(commit, facts)}: {cure}")


def is_older(root: Path, commit: str, facts: Facts) -> bool | None:
    """Return whether `commit` is a strict ancestor of the last applied commit, or `None` when that is unknown.

    Git alone does not know this in a pipeline that had to wait: its clone lacks the commits that were merged meanwhile.
    """
    if facts.commit is None:
        return False
    return commit in facts.ancestors or git.is_older(root, commit, facts.commit)


def older_commits(root: Path, commit: str, facts: Facts) -> tuple[str, ...]:
    """Return the ancestors of a commit to apply, from Git, and from the state if it has the same history.

    Git lists only a few in a shallow clone.
    """
    older = git.ancestors(root, commit)
    before = facts.ancestors if facts.commit in (commit, *older) else ()
    return tuple(dict.fromkeys((*older, *before)))[: 2 * git.ANCESTORS]


def older_than(commit: str, facts: Facts) -> str:
    return f"{commit[:12]} is older than the last applied commit {(facts.commit or '')[:12]}"


def unread(root: Path, facts: Facts) -> str | None:
    """Return why Git cannot tell whether this checkout is older than the last applied commit, or `None`."""
    why = git.refusal(root) if facts.commit else None
    if why is None:
        return None
    unknown = f"it is unknown whether {older_than('it', facts)}"
    return f"Git cannot read this checkout, so {unknown} ({why}; {git.CURE})"


def _warning(code: str, message: str) -> Diagnostic:
    return Diagnostic(severity=Severity.WARNING, code=code, message=message)


def _shown(project: Project) -> str:
    """Return the place of the state without its password; a file relative to the project's folder."""
    place = project.state
    if is_git_ref(place):
        return read_ref(place).name
    if "://" in place:
        return without_login(place).partition("?")[0]
    path = Path(place)
    return path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else place
