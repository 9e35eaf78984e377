"""The inputs of a plan: whether they are still what was read, and planning again where they are not.

What is read is read consistently (docs/planning.md 2.8): settings, rules, manifests, everything that these read, and
the Git tree of the project's folder. Reads files and Git; databases and services are not queried again. Trees are equal
after a merge, a squash or a rebase that brought nothing else into the project (docs/reviews.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from syncengine.content import sha256_at, sha256_or_empty
from syncengine.effects import Effect
from syncengine.errors import Diagnostic, Problems, Severity, StalePlan
from syncengine.manifest.desired import ManifestSet
from syncengine.manifest.files import find
from syncengine.plan.model import (
    ANCESTRY,
    NO_STATE,
    OLDER_COMMIT,
    OTHER_SERVICE,
    WRONG_TEAM,
    Plan,
    Quarantine,
    Tree,
    few,
)
from syncengine.project import git
from syncengine.project.git_ref import is_git_ref, read_ref, without_login
from syncengine.project.model import FILE_NAME, POLICIES, Project
from syncengine.project.references import canonical_url
from syncengine.project.signals import pause
from syncengine.rules.read import policy_files
from syncengine.state.records import NO_REFUSALS, Facts, StateReader

UNCOMMITTED = "uncommitted-inputs"
"""The code of the warning that a plan was made from uncommitted files."""


def with_inputs(plan: Plan, project: Project, manifests: ManifestSet, merged: str = "") -> Plan:
    """Return the plan with digests of the inputs that its Git tree does not cover. Warn of uncommitted inputs.

    `merged` is the tree that was planned if it is the merge of two sides instead of the tree that is checked out.
    """
    tree = plan.basis.tree
    if tree is None:
        return plan
    root, outer = project.root.resolve(), os.pardir + os.sep

    def settled(path: Path) -> Path:
        """Return the path with its folder resolved. Git tracks a link itself, and its target is another input."""
        return path.parent.resolve() / path.name

    def name_of(path: Path) -> str:
        """Return the path relative to the project's folder, or to that of the revision that is planned instead."""
        names = (os.path.relpath(path, folder.resolve()) for folder in (project.files, project.root))
        return min(names, key=lambda name: Path(name).parts.count(os.pardir))

    # Another checkout has no files beside it: an existing file comes last, and counts.
    read = {*manifests.inputs(), *([project.config] if project.config is not None else ())}
    paths = {name_of(path): path for path in map(settled, sorted(read, key=lambda path: path.exists()))}
    outside = sorted(name for name in paths if name.startswith(outer))
    inside = sorted(paths.keys() - set(outside))
    searched = (*project.manifests, *project.policy_paths, project.files / POLICIES, project.files / FILE_NAME)
    differing = git.uncommitted(root, inside, [name_of(settled(path)) for path in searched])
    names = [*(inside if differing is None else differing), *outside]
    inputs = {name: sha256_at(paths.get(name, project.files / name)) for name in names}
    # The other side of a merge has files that are not here.
    in_no_commit = [
        name
        for name in names
        if (not git.is_committed(root, name) if name.startswith(outer) else not merged or (root / name).exists())
    ]
    found = plan.diagnostics
    if in_no_commit:
        message = f"made from uncommitted files: {few(in_no_commit)}"
        cure = "commit them and plan again, or keep the same files in place for the `apply` of this plan"
        found = (Diagnostic(severity=Severity.WARNING, code=UNCOMMITTED, message=f"{message}; {cure}"), *found)
    basis = replace(plan.basis, tree=Tree(merged or tree.id, inputs))
    return replace(plan, basis=basis, diagnostics=found)


def not_merged(plan: Plan, root: Path) -> str | None:
    """Return how a saved plan's files differ from those checked out, or `None` if they do not or Git cannot tell."""
    tree = plan.basis.tree
    if tree is None:
        return None
    if (now := git.tree_of(root)) is None:
        why = git.refusal(root)
        return why and f"a Git tree, but Git cannot read this checkout ({why}; {git.CURE})"
    inputs = tree.uncommitted or {}
    if other := [name for name, digest in inputs.items() if sha256_at(root / name) != digest]:
        return f"files that are missing or different here: {few(other)}"
    if tree.id == now:
        return None
    differing = git.differing_files(root, tree.id, now)
    if differing is not None and differing <= inputs.keys():
        return None  # the uncommitted files are committed now
    verb = "differs" if differing is not None and len(differing) == 1 else "differ"
    which = f" ({few(sorted(differing))} {verb})" if differing else ""
    return f"other files than are checked out{which}"


def commit_of(plan: Plan, checked_out: git.Commit | None, root: Path) -> str | None:
    """Return the commit that a plan applies: the one checked out if its files are those of the saved plan.

    The plan's own commit may be of a branch that was merged or squashed since, without the commits that came before.
    """
    commit = plan.basis.commit
    if commit is None or checked_out is None or checked_out.id == commit or plan.basis.tree is None:
        return commit
    return checked_out.id if not_merged(plan, root) is None else commit


PAUSES = (0.0, 0.2, 0.5, 1.0)
"""The seconds before each reading: an update of many files takes longer than reading a few of them again."""
GIT_SECONDS = 10.0
"""The seconds to wait for Git to end its update of a work tree."""
LOOK_SECONDS = 0.05
"""The seconds between two looks at Git's lock of a work tree."""
REPEAT = "nothing was sent; repeat this once all files are in place"


class InputsChanged(StalePlan):
    """Raised when the inputs of a plan have changed since they were read."""

    code = "inputs-changed"


class StillChanging(InputsChanged):
    """Raised when inputs changed while a plan was made from them; `plan` is what came out, if anything did."""

    def __init__(self, message: str, plan: Plan | None) -> None:
        super().__init__(message)
        self.plan = plan


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a plan: a project, the digests of its rules, and its manifests, which know what they have read.

    `tree` is the Git tree of its folder that was checked out before, `None` outside Git.
    """

    project: Project
    rules: Mapping[str, str]
    manifests: ManifestSet
    tree: str | None

    @classmethod
    def of(cls, project: Project, manifests: ManifestSet) -> Inputs:
        """Return the inputs of a plan that is about to be made."""
        return cls(project, _rules(project), manifests, git.tree_of(project.root))

    def planned(self, make: Callable[[], Plan]) -> Plan:
        """Return the plan that `make` makes from these inputs. Raise `StillChanging` if they changed meanwhile."""
        try:
            plan = make()
        except Problems:
            if why := self.change():
                raise StillChanging(why, None) from None
            raise
        if why := self.change():
            raise StillChanging(why, plan)
        return plan

    def change(self) -> str | None:
        """Return how the inputs are changing or have changed since they were read, or `None` if they have not."""
        if lock := _lock(self.project):
            return f"Git is updating the work tree ({lock} exists); {REPEAT}"
        names: list[str] = []
        if is_as_loaded(self.project):
            now = find(self.project.manifests, self.project.files, secrets=self.project.secret_files()).files
            names += sorted({file.name for file in now} ^ {file.name for file in self.manifests.files})
            context, folder = self.manifests.context, self.project.files
            read = context.read if context else {}
            names += (os.path.relpath(path, folder) for path, sha in read.items() if sha256_or_empty(Path(path)) != sha)
            rules = _rules(self.project)
            names += (name for name in {**self.rules, **rules} if self.rules.get(name) != rules.get(name))
            if git.tree_of(self.project.root) != self.tree:
                names.append("the commit that is checked out")
        else:
            names.append(self.project.config_name)
        return f"files of this project changed meanwhile: {few(names)}; {REPEAT}" if names else None


def is_as_loaded(project: Project) -> bool:
    """Return whether the project file and the variable files are those from which the project was loaded."""
    return all(sha256_at(Path(path)) == digest for path, digest in project.digests.items())


def consistent(project: Project, make: Callable[[Project], Plan]) -> Plan:
    """Return the plan that `make` makes of a project, made again while it raises `StillChanging`, three times at most.

    Where the inputs do not come to rest, the plan counts if the same changes came out each time. Raise `InputsChanged`
    otherwise.
    """
    outcomes: set[bytes | None] = set()
    for seconds in PAUSES:
        pause(seconds)
        project = project if is_as_loaded(project) else project.again()
        until = time.monotonic() + GIT_SECONDS
        while lock := _lock(project):
            if time.monotonic() > until:
                why = "Git has been updating the work tree for too long, or was killed"
                cure = "end Git, check out the commit again, and remove the file if it is still there"
                raise InputsChanged(f"{why}: {lock} exists; {cure}")
            pause(LOOK_SECONDS)
        try:
            return make(project)
        except StillChanging as error:
            changing = error
            outcomes.add(demand_of(error.plan) if error.plan else None)
    if changing.plan is None or len(outcomes) > 1 or _lock(project):
        raise changing
    return changing.plan


def demand_of(plan: Plan) -> bytes:
    """Return all that a plan asks of the service and writes to the state, wherever in the files it is declared."""
    calls = sorted(
        msgspec.json.encode((call.operation, replace(item, effects=tuple(map(_without_place, item.effects)))))
        for call in plan.calls()
        for item in call.items
    )
    records = sorted(
        msgspec.json.encode(_without_place(effect))
        for effect in plan.records
        if effect.says_something(None) or effect.protect
    )
    return b"\n".join([*calls, b"", *records, b"", str(plan.sweep is not None).encode()])


def _without_place(effect: Effect) -> Effect:
    return replace(effect, source=None)


def _rules(project: Project) -> dict[str, str]:
    return {file.name: file.sha256() for file in policy_files(project)[0]}


def _lock(project: Project) -> Path | None:
    """Return the file that shows that Git is updating a work tree, or was killed meanwhile."""
    if "GIT_INDEX_FILE" in os.environ:  # this is a hook of the Git that holds the lock, and waits for it
        return None
    folders = (project.root, *(project.root / name for name in project.data_folders))
    indexes = (git.index_of(folder) for folder in folders)
    return next((lock for index in indexes if index and (lock := git.lock_of(index)).exists()), None)


HOLDS_ALREADY = (
    "if the service holds tags, categories or activity types already, record them with `syncengine adopt FILE` first,"
    " or they are changed unseen"
)


def of_another_service(facts: Facts, base_url: str) -> bool:
    """Return whether the state belongs to another service. Different spellings of a URL are the same service."""
    return facts.base_url is not None and canonical_url(facts.base_url) != canonical_url(base_url)


def quarantine_in(state: StateReader, project: Project, now: float) -> Quarantine:
    """Return the quarantine made by hand and by the project file, with the refusals if it has any entry."""
    records = tuple(state.quarantine())
    refusals = state.refusals() if records or project.quarantine else NO_REFUSALS
    return Quarantine(now, project.config_name, project.quarantine, records, refusals)


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
    yield _state_warning(NO_STATE, what if project.is_sandbox else f"{what}; {HOLDS_ALREADY}")


def state_warnings(project: Project, state: StateReader, commit: str | None) -> Iterator[Diagnostic]:
    """Yield warnings about the state to show before the plan of `commit`."""
    facts, url, team = state.facts(), project.base_url(), project.service.team
    yield from first_contact(project, state)
    rebind = "`apply` refuses this until `state rebind` accepts it"
    if of_another_service(facts, url):
        yield _state_warning(
            OTHER_SERVICE, f"the state belongs to {facts.base_url}, but this plan is for {url}: {rebind}"
        )
    if None not in (team, facts.team) and team != facts.team:
        yield _state_warning(
            WRONG_TEAM, f"the state belongs to team {facts.team!r}, but service.team is {team!r}: {rebind}"
        )
    if commit is None and (why := unread(project.root, facts)):
        yield _state_warning(ANCESTRY, why)
    if commit and is_older(project.root, commit, facts):
        cure = "`apply` refuses it without --allow-older"
        yield _state_warning(OLDER_COMMIT, f"{older_than(commit, facts)}: {cure}")


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


def _state_warning(code: str, message: str) -> Diagnostic:
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
