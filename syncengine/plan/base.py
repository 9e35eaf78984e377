"""Plan a project against a base revision in Git, with the origin of each change (docs/reviews.md).

Reads Git, manifests, cache and state as `planner` does, and from the history why changes of the base wait. Without a
state, two revisions are compared: the resources of the base count as recorded, and no state, key or secret is read.
Resources made from databases and services are unknown then: blocks that query them are left out on both sides, and
nothing that they may make counts as gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from datetime import UTC, datetime
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import place
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.manifest.declarations import DefaultValues, default_values
from syncengine.manifest.desired import Desired, manifest_set
from syncengine.manifest.schema import SECTIONS
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, UNKNOWN_EFFECT
from syncengine.plan.inputs import Inputs, consistent, state_warnings, with_inputs
from syncengine.plan.model import BASE_INVALID, MERGED, NO_BASE, POLICY_CHANGED, Base, BasePlan, Plan
from syncengine.plan.planner import declared_by, plan_from, plan_in, plan_of_other, warnings_of_approvals
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.project import git
from syncengine.project.git_tree import Repository, RevisionFiles, load_revision, places_outside, repository
from syncengine.project.load import level_cure
from syncengine.project.model import FILE_NAME, MANIFESTS, Checkout, Level, Project, QuarantineEntry, until_text
from syncengine.resource import Key, Kind, Recorded, Resource
from syncengine.rules.model import RuleChange, rule_changes
from syncengine.rules.read import rule_set
from syncengine.service.operations import DELETE_TAG
from syncengine.state.codec import RemovalLine
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import REFUSED, HistoryEntry, Run, last_writer
from syncengine.state.records import ApprovalRecord, Facts, QuarantineRecord, Refusal, StateReader, UndoneChange
from syncengine.state.store import State

NOTHING = "(none)"
_STRICTNESS = (Level.OFF, Level.WARNING, Level.ERROR)
_NAMES: Mapping[Kind, str] = {kind: name for name, kind in SECTIONS.items()}


def with_stricter_judge(head: Project, base: Project) -> Project:
    """Return the head's project, to be judged by the limits, levels and rules of both sides."""
    names = {**head.policy.diagnostics, **base.policy.diagnostics}
    levels = {name: max((_level(head, name), _level(base, name)), key=_STRICTNESS.index) for name in names}
    limits = head.policy.max_deletes.and_also(base.policy.max_deletes)
    policy = head.policy.model_copy(update={"max_deletes": limits, "diagnostics": levels})
    return with_fields(head, policy=policy, other_judges=(*head.other_judges, base))


def _level(project: Project, name: str) -> Level:
    return project.policy.diagnostics.get(name, Level.WARNING)


def at_levels_of_base(found: Iterable[Diagnostic], base: Project, name: str) -> Iterator[Diagnostic]:
    """Yield the head's findings without the cure of a lower level where the base (called `name`) forbids that."""
    strict = {code for code, level in base.policy.diagnostics.items() if level is Level.ERROR}
    return (_without_cure(each, name) if each.code in strict else each for each in found)


def _without_cure(found: Diagnostic, name: str) -> Diagnostic:
    if not found.message.endswith(cure := level_cure(found.code)):
        return found
    level = f"{name} has `{found.code}: error` under `policy.diagnostics`"
    why = f"{level}, and the stricter level of both sides counts"
    return structs.replace(found, message=f"{found.message.removesuffix(cure)}; {why}")


def policy_changes(head: Project, base: Project) -> Iterator[Diagnostic]:
    """Yield a warning for each change that a pull request makes to the policy or to the defaults of all manifests."""
    was, now = _settings(base), _settings(head)
    for name in dict.fromkeys((*was, *now)):
        if was.get(name) != now.get(name):
            yield _changed(head, "policy", name, was.get(name), now.get(name), head.policy_lines.get(name))
    yield from _quarantine_changes(head, base)
    yield from map(_changed_rule, rule_changes(rule_set(head), rule_set(base)))
    defaults_before, defaults = _defaults(base), _defaults(head)
    before, after = _flat(defaults_before), _flat(defaults)
    for kind, name in dict.fromkeys((*before, *after)):
        if before.get((kind, name)) != after.get((kind, name)):
            line = next((place(v)[0] for node in defaults.nodes.get(kind, ()) if (v := node.get(name))), None)
            address = f"{_NAMES[kind]}.{name}"
            yield _changed(head, "defaults", address, before.get((kind, name)), after.get((kind, name)), line)


def _quarantine_changes(head: Project, base: Project) -> Iterator[Diagnostic]:
    """Yield a warning for each resource that a pull request puts into quarantine or takes out."""
    was, now = ({each.key: each for each in side.quarantine} for side in (base, head))
    for key in dict.fromkeys((*was, *now)):
        before, after = was.get(key), now.get(key)
        if _why(before) != _why(after):
            line = after.line if after else None
            yield _changed(head, "policy", f"quarantine of {key}", _why(before), _why(after), line)


def _why(entry: QuarantineEntry | None) -> str | None:
    if entry is None:
        return None
    until = f" until {until_text(entry.until)}" if entry.until is not None else ""
    return f'"{entry.reason}"{until}'


def _changed_rule(change: RuleChange) -> Diagnostic:
    rule = change.after or change.before
    assert rule is not None
    message = f"This pull request changes policy: {change.sentence}"
    return Diagnostic(
        severity=Severity.WARNING, code=POLICY_CHANGED, message=message, file=rule.file, line=rule.line, rule=rule.name
    )


def _changed(head: Project, what: str, name: str, was: str | None, now: str | None, line: int | None) -> Diagnostic:
    file = head.config_name
    where = f"{file}:{line}" if line else file
    message = f"This pull request changes {what}: {name} {was or NOTHING} → {now or NOTHING} ({where})"
    return Diagnostic(severity=Severity.WARNING, code=POLICY_CHANGED, message=message, file=file, line=line)


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


def _flat(defaults: DefaultValues) -> dict[tuple[Kind, str], str]:
    return {(kind, name): str(value) for kind, values in defaults.values.items() for name, value in values.items()}


@dataclass(slots=True)
class Sides:
    """The head and its base at `commit`. `base` is `None` when the base has no project or an invalid one.

    `tree` is the Git tree of their merge if `is_merged`.
    """

    head: Project
    commit: str
    base: Project | None = None
    is_merged: bool = False
    tree: str = ""
    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))


def invalid(name: str, error: SyncengineError) -> tuple[str, str]:
    """Return the code and the message of the warning about a base that cannot be planned."""
    first = next((d for d in error.diagnostics() if d.severity is Severity.ERROR), None)
    place = f"{first.file}:{first.line}: " if first and first.file and first.line else ""
    why = f"{place}{first.message}" if first else error.message
    return BASE_INVALID, f"{name} cannot be planned, so every change counts as this pull request's: {why}"


def plan_in_git(sides: Sides, name: str, request: PlanRequest, runtime: Runtime) -> Plan:
    """Return the plan of the head's changes, judged as if the base had been applied."""
    head = sides.head.without_secrets()
    request = with_fields(request, reassert=False)
    base = sides.base and sides.base.without_secrets()
    inputs = Inputs.of(head, manifest_set(head, is_offline=True))
    return inputs.planned(lambda: _compared(inputs, base, sides, name, request, runtime))


def _compared(
    inputs: Inputs, base: Project | None, sides: Sides, name: str, request: PlanRequest, runtime: Runtime
) -> Plan:
    head = inputs.project
    desired = declared_by(head, inputs.manifests)
    recorded = _declared_at_base(base, sides, name)
    state = DeclaredState(_kept(desired, recorded, sides))
    draft = plan_from(state, desired, head, request, runtime)
    compared = draft.base or Base("", "")
    return replace(draft, gate=draft.gate.without_hashes(), compared=replace(compared, is_in_git=True))


def _declared_at_base(base: Project | None, sides: Sides, name: str) -> Desired:
    if base is None:
        return Desired()
    try:
        return declared_by(base, manifest_set(base, is_offline=True))
    except SyncengineError as error:
        sides.warn(*invalid(name, error))
        return Desired()


def _kept(desired: Desired, base: Desired, sides: Sides) -> Mapping[Key, Recorded]:
    """Return the base's resources as rows, without any that a source left out at the head may still make."""
    ours, theirs = list(_left_out(desired)), list(_left_out(base))
    places = {(d.file, d.message) for d in ours}
    sides.found += (d for d in theirs if (d.file, d.message) not in places)
    sides.found += _unknown_effects(desired, base, ours, theirs)
    is_new = any(desired.files.get(d.file or "") != base.files.get(d.file or "") for d in ours)
    missing = base.resources.keys() - desired.resources.keys() if is_new else set()
    if missing:
        names = ", ".join(sorted(map(str, missing))[:3]) + (", …" if len(missing) > 3 else "")
        is_one = len(missing) == 1
        some = f"{len(missing)} resource{' is' if is_one else 's are'} no longer declared in Git"
        end = "it does not count as removed" if is_one else "they do not count as removed"
        sides.warn(SOURCE_LEFT_OUT, f"{some} but may come from a source that is left out ({names}): {end}")
    return {key: recorded_as(resource) for key, resource in base.resources.items() if key not in missing}


def _left_out(desired: Desired) -> Iterator[Diagnostic]:
    return (d for d in desired.diagnostics if d.code == SOURCE_LEFT_OUT)


def _unknown_effects(
    desired: Desired, base: Desired, ours: Iterable[Diagnostic], theirs: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Yield a warning for each file that queries a source on either side and differs between the sides."""
    here = {d.file: d for d in reversed(list(ours)) if d.file}
    for file in sorted({*here, *(d.file for d in theirs if d.file)}):
        if desired.files.get(file) == base.files.get(file):
            continue
        differs = f"{file} queries a source that is left out, and differs from the base"
        message = differs if file in here else f"{file} no longer queries a source that it queried at the base"
        yield Diagnostic(
            severity=Severity.WARNING,
            code=UNKNOWN_EFFECT,
            message=f"{message}: the effect is unknown without the source",
            file=file,
            line=here[file].line if file in here else None,
        )


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


LOOKED_UP = 200  # each is a query
"""The number of changes up to which the history of each change is read."""
LAST_RUNS = 50
LEFT_OVER = "not completed by the last apply, or its data has changed since"
NOT_APPLIED = "merged but not yet applied"


def why_they_wait(addresses: Collection[str], commit: str, state: State) -> dict[str, str]:
    """Return why the change at each address waits, with the base at `commit`. Read nothing when no change waits."""
    if not addresses:
        return {}
    general = _general(commit, state.runs(LAST_RUNS))
    if len(addresses) > LOOKED_UP:
        return dict.fromkeys(addresses, general)
    return {address: _reason(state.history(Key.parse(address)), general) for address in addresses}


def _general(commit: str, runs: Iterable[Run]) -> str:
    """Return the general reason for waiting: the last apply was refused, preceded the merge, or applied only a part.

    The history does not record the changes of a refused run. Only a run of `commit` itself asked for all that wait.
    """
    applies = [run for run in runs if (run.commit == commit if run.outcome == REFUSED else run.limits or run.plan)]
    last = next(iter(applies), None)
    if last is not None and last.outcome == REFUSED:
        return f"refused before: {_run(last.id, last.commit, last.ended or last.started)}: {last.reason}"
    done = next((run for run in applies if run.outcome not in (None, REFUSED)), None)
    if done is None:
        return f"{NOT_APPLIED}: nothing has been applied yet"
    why = LEFT_OVER if done.commit == commit else NOT_APPLIED
    return f"{why}: the last apply was {_run(done.id, done.commit, done.ended or done.started)}"


def _reason(history: list[HistoryEntry], general: str) -> str:
    """Return why a change waits: its call failed or has an unknown outcome, its row was edited, or else `general`."""
    last = last_writer(history)
    if last is None:
        return general
    when = _run(last.run, last.commit, last.at)
    if last.outcome == "failed":
        words = f": {last.detail.message}" if last.detail.message else ""
        return f"refused before: {when}{words}"
    if last.outcome == "intended":
        return f"sent before with an unknown outcome: {when}"
    by_hand = "state forget" if last.outcome == "forgotten" else last.command or ""
    if by_hand.startswith(("state", "adopt")):
        return f"edited by hand in the state: `{by_hand}`, {when}"
    return general


def _run(id: str | None, commit: str | None, at: float) -> str:
    """Return a run's id, commit and time as part of a sentence."""
    names = (f"run {id}" if id else "", f"commit {commit[:12]}" if commit else "")
    return ", ".join((*filter(None, names), f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"))


Load = Callable[[RevisionFiles], Project]
"""A function that loads the project from the files of a revision, with the options of the command."""


def plan_two_sides(
    revision: str, project: Project, load: Load, request: PlanRequest, runtime: Runtime, *, uses_state: bool = True
) -> Plan:
    """Plan `project`, and mark the changes that its base would make too. Plan again while the inputs change."""
    return consistent(project, lambda today: _planned(revision, today, load, request, runtime, uses_state=uses_state))


def _planned(
    revision: str, project: Project, load: Load, request: PlanRequest, runtime: Runtime, *, uses_state: bool
) -> Plan:
    with ExitStack() as stack:
        repo = stack.enter_context(repository(project.root))
        commit = repo.commit(revision)
        sides = _sides(repo, commit, revision, project, load)
        make = _with_state if uses_state else plan_in_git
        with _warnings_before_errors(sides, revision):
            draft = make(sides, revision, request, runtime)
    base = replace(draft.base or Base("", ""), ref=revision, commit=commit, is_merged=sides.is_merged)
    return replace(draft, compared=base, diagnostics=(*sides.found, *draft.diagnostics))


def _sides(repo: Repository, commit: str, name: str, project: Project, load: Load) -> Sides:
    sides = Sides(project, commit)
    if not git.contains(project.root, commit):
        tree, conflicts = repo.merged(commit, name, list(places_outside(project, repo)))
        files = RevisionFiles(repo, tree, f"the merge with {name}", repo.objects / "merge")
        sides.warn(MERGED, f"this branch is behind {name}: the plan is for the merge of both")
        sides.found += conflicts
        with _warnings_before_errors(sides, name):
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
        sides.warn(*invalid(name, problems))
    sides.found += files.found
    if sides.base is not None:
        with _warnings_before_errors(sides, name):
            _judge_by_both(sides, sides.base)
    return sides


def _judge_by_both(sides: Sides, base: Project) -> None:
    """Judge the head by both policies, and report policy changes first, even when the head's rules cannot be read."""
    changes: list[Diagnostic] = []
    try:
        for change in policy_changes(sides.head, base):
            changes.append(change)
    finally:
        sides.found[:0] = changes
    sides.head = with_stricter_judge(sides.head, base)


@contextmanager
def _warnings_before_errors(sides: Sides, name: str) -> Iterator[None]:
    """Raise errors of the head together with the earlier warnings, which come first."""
    try:
        yield
    except Problems as problems:
        found = problems.found if sides.base is None else at_levels_of_base(problems.found, sides.base, name)
        raise Problems([*sides.found, *found]) from None


def has_project(checkout: Checkout) -> bool:
    return any((checkout.folder / name).exists() for name in (FILE_NAME, MANIFESTS))


# --- with a state


def _with_state(sides: Sides, name: str, request: PlanRequest, runtime: Runtime) -> Plan:
    answers = dict[object, Any]()
    inputs = Inputs.of(sides.head, manifest_set(sides.head, answers))
    return inputs.planned(lambda: _against_state(inputs, answers, sides, name, request, runtime))


def _against_state(
    inputs: Inputs, answers: dict[object, Any], sides: Sides, name: str, request: PlanRequest, runtime: Runtime
) -> Plan:
    project = inputs.project
    from syncengine.state.store import open_state  # with SQLAlchemy, which commands without a state do not need

    memory = memory_of(project)
    with open_state(project.state, write=False, now=runtime.now, create=request.new_state, memory=memory) as state:
        other = _other(sides, name, state, answers, request, runtime)
        draft = plan_in(state, inputs.manifests, project, request, runtime, other)
        warnings = state_warnings(project, state, draft.basis.commit)
        base = draft.base or Base("", "")
        if request.saves:
            draft = with_inputs(draft, sides.head, inputs.manifests, sides.tree if sides.is_merged else "")
        base = replace(base, waiting=why_they_wait(base.waiting, sides.commit, state))
        approval_warnings = warnings_of_approvals(draft, state, project, request)
        return replace(draft, compared=base, diagnostics=(*warnings, *draft.diagnostics, *approval_warnings))


def _other(
    sides: Sides, name: str, state: StateReader, answers: dict[object, Any], request: PlanRequest, runtime: Runtime
) -> BasePlan:
    """Return the plan of the whole base, or an empty one when the base is invalid."""
    if sides.base is None:
        return BasePlan()
    # With the head's service: both are planned in one state.
    base = with_fields(
        sides.base, service=sides.base.service.model_copy(update={"base_url": sides.head.service.base_url})
    )
    everything = with_fields(request, scope=Scope(no_delete=request.scope.no_delete))
    try:
        return plan_of_other(state, manifest_set(base, answers), base, everything, runtime)
    except SyncengineError as error:
        sides.warn(*invalid(name, error))
        return BasePlan()
