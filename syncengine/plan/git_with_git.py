"""Plan from the resources of a project's base to those of its head. No state, key or secret is read.

Resources made from databases and services are unknown here. Blocks that query them are left out on both sides, and
nothing that they may make counts as gone (docs/reviews.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_fields

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.manifest.desired import Desired, manifest_set
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, UNKNOWN_EFFECT
from syncengine.plan.inputs import Inputs
from syncengine.plan.model import Base, Plan
from syncengine.plan.planner import declared_by, plan_from
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.sides import Sides, invalid
from syncengine.project.model import Project
from syncengine.resource import Key, Kind, Recorded, Resource
from syncengine.state.info import Facts
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.losses import ApprovalRecord
from syncengine.state.refusals import QuarantineRecord, Refusal
from syncengine.state.undone import UndoneChange


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
    return _rows(resource for key, resource in base.resources.items() if key not in missing)


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


def _rows(resources: Iterable[Resource]) -> dict[Key, Recorded]:
    return {resource.key: recorded_as(resource) for resource in resources}


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
