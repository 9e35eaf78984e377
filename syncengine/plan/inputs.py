"""The inputs of a plan: whether they are still what was read, and planning again where they are not.

What is read is read consistently (docs/planning.md 2.8): settings, rules, manifests, everything that these read, and
the Git tree of the project's folder. Reads files and Git; databases and services are not queried again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from syncengine.document.digest import sha256_at
from syncengine.effects import Effect
from syncengine.errors import Problems, StalePlan
from syncengine.manifest.desired import ManifestSet
from syncengine.manifest.files import find
from syncengine.plan.model import Plan
from syncengine.plan.tree import digest_of_file, some
from syncengine.project import git
from syncengine.project.model import Project
from syncengine.project.signals import pause
from syncengine.rules.read import policy_files

PAUSES = (0.0, 0.2, 0.5, 1.0)
"""The seconds before each reading: an update of many files takes longer than reading a few of them again."""
GIT_SECONDS = 10.0
"""The seconds to wait for Git to end its update of a work tree."""
LOOK_SECONDS = 0.05
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
        names = list(self._changed())
        return f"files of this project changed meanwhile: {some(names)}; {REPEAT}" if names else None

    def _changed(self) -> Iterator[str]:
        if not is_as_loaded(self.project):
            yield self.project.config_name
            return
        now = find(self.project.manifests, self.project.files, secrets=self.project.secret_files()).files
        yield from sorted({file.name for file in now} ^ {file.name for file in self.manifests.files})
        context = self.manifests.context
        for path, sha256 in context.read.items() if context else ():
            if sha256_at(Path(path)) != sha256:
                yield os.path.relpath(path, self.project.files)
        yield from _differing(self.rules, _rules(self.project))
        if git.tree_of(self.project.root) != self.tree:
            yield "the commit that is checked out"


def is_as_loaded(project: Project) -> bool:
    """Return whether the project file and the variable files are those from which the project was loaded."""
    return all(digest_of_file(Path(path)) == digest for path, digest in project.digests.items())


def consistent(project: Project, make: Callable[[Project], Plan]) -> Plan:
    """Return the plan that `make` makes of a project, made again while it raises `StillChanging`, three times at most.

    Where the inputs do not come to rest, the plan counts if the same changes came out each time. Raise `InputsChanged`
    otherwise.
    """
    outcomes: set[bytes | None] = set()
    for seconds in PAUSES:
        pause(seconds)
        project = project if is_as_loaded(project) else project.again()
        _wait_for_git(project)
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
        msgspec.json.encode((call.operation, replace(item, effects=tuple(map(_placeless, item.effects)))))
        for call in plan.calls()
        for item in call.items
    )
    records = sorted(
        msgspec.json.encode(_placeless(effect))
        for effect in plan.records
        if effect.says_something(None) or effect.protect
    )
    return b"\n".join([*calls, b"", *records, b"", str(plan.sweep is not None).encode()])


def _placeless(effect: Effect) -> Effect:
    return replace(effect, source=None)


def _rules(project: Project) -> dict[str, str]:
    return {file.name: file.sha256() for file in policy_files(project)[0]}


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _lock(project: Project) -> Path | None:
    """Return the file that shows that Git is updating a work tree, or was killed meanwhile."""
    if "GIT_INDEX_FILE" in os.environ:  # this is a hook of the Git that holds the lock, and waits for it
        return None
    folders = (project.root, *(project.root / name for name in project.data_folders))
    indexes = (git.index_of(folder) for folder in folders)
    return next((lock for index in indexes if index and (lock := git.lock_of(index)).exists()), None)


def _wait_for_git(project: Project) -> None:
    until = time.monotonic() + GIT_SECONDS
    while lock := _lock(project):
        if time.monotonic() > until:
            why = "Git has been updating the work tree for too long, or was killed"
            cure = "end Git, check out the commit again, and remove the file if it is still there"
            raise InputsChanged(f"{why}: {lock} exists; {cure}")
        pause(LOOK_SECONDS)
