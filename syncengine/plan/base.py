"""Plan a project against a base revision in Git, with the origin of each change (docs/reviews.md).

Reads Git, manifests, cache and state as `planner` does, and from the history why changes of the base wait. Without a
state, two revisions are compared: the resources of the base count as recorded, and no state, key or secret is read.
Resources made from databases and services are unknown then: blocks that query them are left out on both sides, and
nothing that they may make counts as gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import place
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.manifest.desired import Desired, manifest_set
from syncengine.manifest.resources import DefaultValues, default_values
from syncengine.manifest.schema import SECTIONS
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, UNKNOWN_EFFECT
from syncengine.plan.inputs import Inputs, consistent, with_inputs
from syncengine.plan.model import BASE_INVALID, MERGED, NO_BASE, POLICY_CHANGED, Base, BasePlan, Plan, Wait
from syncengine.plan.planner import declared_by, plan_from, plan_in, plan_of_other, with_warnings
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.project import git
from syncengine.project.git_tree import Repository, RevisionFiles, load_revision, places_outside, repository
from syncengine.project.model import FILE_NAME, MANIFESTS, Checkout, Level, Project, until_text
from syncengine.resource import Key, Kind, Recorded, Resource
from syncengine.rules.model import rule_changes
from syncengine.rules.read import rule_set
from syncengine.service.operations import DELETE_TAG
from syncengine.state.codec import RemovalLine
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import REFUSED, last_writer
from syncengine.state.records import ApprovalRecord, Facts, QuarantineRecord, Refusal, UndoneChange
from syncengine.state.store import State

Load = Callable[[RevisionFiles], Project]
"""A function that loads the project from the files of a revision, with the options of the command."""


@dataclass(slots=True)
class Sides:
    """The head and its base at `commit`. `base` is `None` when the base has no project or an invalid one.

    `name` is the revision of the base, as it was given. `tree` is the Git tree of their merge if `is_merged`.
    """

    head: Project
    name: str
    commit: str
    base: Project | None = None
    is_merged: bool = False
    tree: str = ""
    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))

    def warn_of_base(self, error: SyncengineError) -> None:
        """Warn that the base cannot be planned."""
        first = next((d for d in error.diagnostics() if d.severity is Severity.ERROR), None)
        where = f"{first.file}:{first.line}: " if first and first.file and first.line else ""
        why = f"{where}{first.message}" if first else error.message
        self.warn(BASE_INVALID, f"{self.name} cannot be planned, so every change counts as this pull request's: {why}")

    @contextmanager
    def warnings_before_errors(self) -> Iterator[None]:
        """Raise errors of the head together with the earlier warnings, which come first.

        The cure of an error by a level of the base is to lower that level there.
        """
        try:
            yield
        except Problems as problems:
            levels = self.base.policy.diagnostics if self.base is not None else {}
            found = []
            for each in problems.found:
                if each.severity is Severity.ERROR and levels.get(each.code) is Level.ERROR:
                    level = f"{self.name} has `{each.code}: error` under `policy.diagnostics`"
                    why = f"{level}, and the stricter level of both sides counts"
                    each = replace(each, message=f"{each.message}; this holds once it is merged: {why}")
                found.append(each)
            raise Problems([*self.found, *found]) from None


def plan_two_sides(
    revision: str, project: Project, load: Load, request: PlanRequest, runtime: Runtime, *, uses_state: bool = True
) -> Plan:
    """Plan `project`, and mark the changes that its base would make too. Plan again while the inputs change."""

    def planned(today: Project) -> Plan:
        with repository(today.root) as repo:
            sides = _sides(repo, repo.commit(revision), revision, today, load)
            make = _with_state if uses_state else _in_git
            with sides.warnings_before_errors():
                draft = make(sides, request, runtime)
        base = draft.base or Base("", "")
        compared = replace(base, ref=revision, commit=sides.commit, is_merged=sides.is_merged)
        return replace(draft, compared=compared, diagnostics=(*sides.found, *draft.diagnostics))

    return consistent(project, planned)


def _sides(repo: Repository, commit: str, name: str, project: Project, load: Load) -> Sides:
    """Load both sides; the head is the merge of both where the branch is behind its base."""
    sides = Sides(project, name, commit)
    if not git.contains(project.root, commit):
        tree, conflicts = repo.merged(commit, name, list(places_outside(project, repo)))
        files = RevisionFiles(repo, tree, f"the merge with {name}", repo.objects / "merge")
        sides.warn(MERGED, f"this branch is behind {name}: the plan is for the merge of both")
        sides.found += conflicts
        with sides.warnings_before_errors():
            sides.head, sides.is_merged, sides.tree = load_revision(files, load), True, repo.folder_of(tree)
        sides.found += files.found
    files = RevisionFiles(repo, commit, name, repo.objects / "base")
    try:
        files.bring_project()
        if has_project(files.checkout):
            sides.base = load_revision(files, load)
            rule_set(sides.base)
        else:
            sides.warn(NO_BASE, f"{name} has no project in this folder: every change counts as this pull request's")
    except Problems as problems:
        sides.base = None
        sides.warn_of_base(problems)
    sides.found += files.found
    if (base := sides.base) is not None:
        with sides.warnings_before_errors():
            changes: list[Diagnostic] = []
            try:
                for change in policy_changes(sides.head, base):
                    changes.append(change)
            finally:  # changes of policy come first, even when the head's rules cannot be read
                sides.found[:0] = changes
            sides.head = _with_stricter_judge(sides.head, base)
    return sides


def has_project(checkout: Checkout) -> bool:
    return any((checkout.folder / name).exists() for name in (FILE_NAME, MANIFESTS))


def _with_stricter_judge(head: Project, base: Project) -> Project:
    """Return the head's project, to be judged by the limits, levels and rules of both sides."""
    ours, theirs = head.policy.diagnostics, base.policy.diagnostics
    levels = {
        name: max(ours.get(name, Level.WARNING), theirs.get(name, Level.WARNING), key=STRICTNESS.index)
        for name in {**ours, **theirs}
    }
    limits = head.policy.max_deletes.and_also(base.policy.max_deletes)
    policy = head.policy.model_copy(update={"max_deletes": limits, "diagnostics": levels})
    return with_fields(head, policy=policy, other_judges=(*head.other_judges, base))


STRICTNESS = (Level.OFF, Level.WARNING, Level.ERROR)


# --- changes of policy


def policy_changes(head: Project, base: Project) -> Iterator[Diagnostic]:
    """Yield a warning for each change that a pull request makes to the policy or to the defaults of all manifests."""
    file = head.config_name

    def changed(what: str, name: str, was: str | None, now: str | None, line: int | None) -> Iterator[Diagnostic]:
        if was != now:
            where = f"{file}:{line}" if line else file
            message = f"This pull request changes {what}: {name} {was or '(none)'} → {now or '(none)'} ({where})"
            yield Diagnostic(severity=Severity.WARNING, code=POLICY_CHANGED, message=message, file=file, line=line)

    was, now = _settings(base), _settings(head)
    for name in dict.fromkeys((*was, *now)):
        yield from changed("policy", name, was.get(name), now.get(name), head.lines.get(f"policy.{name}"))
    before, after = ({each.key: each for each in side.quarantine} for side in (base, head))
    for key in dict.fromkeys((*before, *after)):
        was_so, is_so = (
            f'"{each.reason}"{f" until {until_text(each.until)}" if each.until is not None else ""}' if each else None
            for each in (before.get(key), after.get(key))
        )
        line = after[key].line if key in after else None
        yield from changed("policy", f"quarantine of {key}", was_so, is_so, line)
    for change in rule_changes(rule_set(head), rule_set(base)):
        rule = change.after or change.before
        assert rule is not None
        yield Diagnostic(
            severity=Severity.WARNING,
            code=POLICY_CHANGED,
            message=f"This pull request changes policy: {change.sentence}",
            file=rule.file,
            line=rule.line,
            rule=rule.name,
        )
    defaults_before, defaults = _defaults(base), _defaults(head)
    names = {kind: name for name, kind in SECTIONS.items()}
    for kind in dict.fromkeys((*defaults_before.values, *defaults.values)):
        old, new = defaults_before.values.get(kind, {}), defaults.values.get(kind, {})
        for name in dict.fromkeys((*old, *new)):
            was_so, is_so = (str(side[name]) if name in side else None for side in (old, new))
            line = next((place(v)[0] for node in defaults.nodes.get(kind, ()) if (v := node.get(name))), None)
            yield from changed("defaults", f"{names[kind]}.{name}", was_so, is_so, line)


def _settings(project: Project) -> dict[str, str]:
    """Return the policy's settings as text, by their names in the project file."""
    policy = project.policy
    return {
        **{f"maxDeletes.{name}": each for name, each in policy.limits().items()},
        "tagRemoval": str(policy.tag_removal),
        "activityTypes": str(policy.activity_types),
        **{f"diagnostics.{name}": str(level) for name, level in policy.diagnostics.items() if level != Level.WARNING},
        **({"endpoints.deleteTag": "set"} if DELETE_TAG.id in project.service.endpoints else {}),
    }


def _defaults(project: Project) -> DefaultValues:
    if not isinstance(project.defaults, MappingNode):
        return DefaultValues()
    return default_values(project.defaults, Collector(project.config_name))


# --- with a state


def _with_state(sides: Sides, request: PlanRequest, runtime: Runtime) -> Plan:
    """Plan the head in its state, and the whole base in the same one, with the reasons why changes wait."""
    from syncengine.state.store import open_state  # with SQLAlchemy, which commands without a state do not need

    project, answers = sides.head, dict[object, Any]()
    inputs = Inputs.of(project, manifest_set(project, answers))

    def planned() -> Plan:
        memory = memory_of(project)
        with open_state(project.state, write=False, now=runtime.now, create=request.new_state, memory=memory) as state:
            other = BasePlan()  # of a base that is invalid
            if sides.base is not None:
                # With the head's service: both are planned in one state.
                service = sides.base.service.model_copy(update={"base_url": project.service.base_url})
                base = with_fields(sides.base, service=service)
                everything = with_fields(request, scope=Scope(no_delete=request.scope.no_delete))
                try:
                    other = plan_of_other(state, manifest_set(base, answers), base, everything, runtime)
                except SyncengineError as error:
                    sides.warn_of_base(error)
            draft = plan_in(state, inputs.manifests, project, request, runtime, other)
            compared = draft.base or Base("", "")
            if request.saves:
                draft = with_inputs(draft, project, inputs.manifests, sides.tree if sides.is_merged else "")
            waiting = why_they_wait(compared.waiting, sides.commit, state)
            draft = replace(draft, compared=replace(compared, waiting=waiting))
            return with_warnings(draft, state, project, request)

    return inputs.planned(planned)


LOOKED_UP = 200  # each is a query
"""The number of changes up to which the history of each change is read."""
LAST_RUNS = 50  # nobody waits for longer: the rest is history
LEFT_OVER = "not completed by the last apply, or its data has changed since"
NOT_APPLIED = "merged but not yet applied"
REFUSED_BEFORE = "refused before"
UNKNOWN_OUTCOME = "sent before with an unknown outcome"
BY_HAND = "edited by hand in the state"


def why_they_wait(addresses: Collection[str], commit: str, state: State) -> dict[str, Wait]:
    """Return why the change at each address waits, with the base at `commit`. Read nothing when no change waits.

    A change was refused, has an unknown outcome, or its row was edited by hand. Otherwise it has the general reason:
    the last apply was refused, preceded the merge, or applied only a part. The history does not record the changes of a
    refused run, and only a run of `commit` itself asked for all that wait.
    """
    if not addresses:
        return {}
    runs = state.runs(LAST_RUNS)
    applies = [run for run in runs if (run.commit == commit if run.outcome == REFUSED else run.limits or run.plan)]
    last = next(iter(applies), None)
    done = next((run for run in applies if run.outcome not in (None, REFUSED)), None)
    if last is not None and last.outcome == REFUSED:
        cause, words = REFUSED_BEFORE, f"{_run(last.id, last.commit, last.ended or last.started)}: {last.reason}"
    elif done is None:
        cause, words = NOT_APPLIED, "nothing has been applied yet"
    else:
        cause = LEFT_OVER if done.commit == commit else NOT_APPLIED
        words = f"the last apply was {_run(done.id, done.commit, done.ended or done.started)}"
    waits = dict.fromkeys(addresses, Wait(cause, f"{cause}: {words}"))
    for address in addresses if len(addresses) <= LOOKED_UP else ():
        if (entry := last_writer(state.history(Key.parse(address)))) is None:
            continue
        when = _run(entry.run, entry.commit, entry.at)
        by_hand = "state forget" if entry.outcome == "forgotten" else entry.command or ""
        if entry.outcome == "failed":
            cause, words = REFUSED_BEFORE, f"{when}: {entry.detail.message}" if entry.detail.message else when
        elif entry.outcome == "intended":
            cause, words = UNKNOWN_OUTCOME, when
        elif by_hand.startswith(("state", "adopt")):
            cause, words = BY_HAND, f"`{by_hand}`, {when}"
        else:
            continue
        waits[address] = Wait(cause, f"{cause}: {words}")
    return waits


def _run(id: str | None, commit: str | None, at: float) -> str:
    """Return a run's id, commit and time as part of a sentence."""
    names = (f"run {id}" if id else "", f"commit {commit[:12]}" if commit else "")
    return ", ".join((*filter(None, names), f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"))


# --- in Git alone


def _in_git(sides: Sides, request: PlanRequest, runtime: Runtime) -> Plan:
    """Return the plan of the head's changes, judged as if the base had been applied."""
    head, base = sides.head.without_secrets(), sides.base and sides.base.without_secrets()
    inputs = Inputs.of(head, manifest_set(head, is_offline=True))

    def planned() -> Plan:
        desired, declared = declared_by(head, inputs.manifests), Desired()
        if base is not None:
            try:
                declared = declared_by(base, manifest_set(base, is_offline=True))
            except SyncengineError as error:
                sides.warn_of_base(error)
        state = DeclaredState(_rows_of_base(desired, declared, sides))
        draft = plan_from(state, desired, head, with_fields(request, reassert=False), runtime)
        compared = replace(draft.base or Base("", ""), is_in_git=True)
        return replace(draft, gate=draft.gate.without_hashes(), compared=compared)

    return inputs.planned(planned)


def _rows_of_base(desired: Desired, base: Desired, sides: Sides) -> Mapping[Key, Recorded]:
    """Return the base's resources as rows, without any that a source left out at the head may still make.

    Warn of each file that queries a source on either side and differs between the sides.
    """
    ours, theirs = ([d for d in each.diagnostics if d.code == SOURCE_LEFT_OUT] for each in (desired, base))
    places = {(d.file, d.message) for d in ours}
    sides.found += (d for d in theirs if (d.file, d.message) not in places)
    here = {d.file: d for d in reversed(ours) if d.file}
    for file in sorted({*here, *(d.file for d in theirs if d.file)}):
        if desired.files.get(file) != base.files.get(file):
            differs = f"{file} queries a source that is left out, and differs from the base"
            message = differs if file in here else f"{file} no longer queries a source that it queried at the base"
            unknown = Diagnostic(
                severity=Severity.WARNING,
                code=UNKNOWN_EFFECT,
                message=f"{message}: the effect is unknown without the source",
                file=file,
                line=here[file].line if file in here else None,
            )
            sides.found.append(unknown)
    is_new = any(desired.files.get(d.file or "") != base.files.get(d.file or "") for d in ours)
    missing = base.resources.keys() - desired.resources.keys() if is_new else set()
    if missing:
        names = ", ".join(sorted(map(str, missing))[:3]) + (", …" if len(missing) > 3 else "")
        is_one = len(missing) == 1
        some = f"{len(missing)} resource{' is' if is_one else 's are'} no longer declared in Git"
        end = "it does not count as removed" if is_one else "they do not count as removed"
        sides.warn(SOURCE_LEFT_OUT, f"{some} but may come from a source that is left out ({names}): {end}")
    return {key: recorded_as(resource) for key, resource in base.resources.items() if key not in missing}


def recorded_as(resource: Resource) -> Recorded:
    """Return the row that an apply of the resource would record."""
    server_id = f"id-of-{resource.key.name}" if resource.key.kind is Kind.CATEGORY else None
    return Recorded(
        resource.key,
        resource.body,
        confirmed=True,
        server_id=server_id,
        source=resource.source,
        protect=resource.protect,
    )


@dataclass(slots=True)
class DeclaredState:
    """A read-only stand-in for a state, with the resources of a revision as its rows."""

    recorded: Mapping[Key, Recorded]
    exists: bool = True

    def facts(self) -> Facts:
        return Facts("", None, None, True, None)

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        rows = (self.recorded[key] for key in sorted(self.recorded))
        return (row for row in rows if kind in (None, row.key.kind))

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        return {key: self.recorded[key] for key in keys if key in self.recorded}

    def removals(self, since: float) -> list[RemovalLine]:
        return []

    def approvals(self) -> list[ApprovalRecord]:
        return []

    def refusals(self) -> dict[Key, Refusal]:
        return {}

    def quarantine(self) -> list[QuarantineRecord]:
        return []

    def undone(self) -> list[UndoneChange]:
        return []
