"""Helpers: manifests as text, recorded rows, plans made from both, and queries of a plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.effects import Effect
from syncengine.errors import Problems, Severity
from syncengine.manifest.desired import Desired, ManifestSet, desired, read_all
from syncengine.manifest.files import ManifestFile
from syncengine.plan.aim import Rules
from syncengine.plan.build import plan
from syncengine.plan.calls import Call, Item, Step
from syncengine.plan.diff import Change, FieldChange
from syncengine.plan.gate import StateRecords
from syncengine.plan.model import Basis, Options, Plan, Quarantine
from syncengine.plan.request import Scope
from syncengine.project.model import Limit, Ownership
from syncengine.project.schema import PolicySection
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Resource, Source, Status

Rows = Mapping[Key, Recorded]
Manifests = str | Mapping[str, str]
"""The text of one manifest, or texts by file name."""

FILE = "manifests/all.yaml"
NOTHING: Rows = {}
LIMITS = PolicySection().max_deletes.by_name()
BASIS = Basis("p-1", "2025-03-01T09:30:00+00:00", "https://api.example.com", "Patents EU", "lineage", swept_before=True)


@dataclass(frozen=True, slots=True)
class Written(ManifestFile):
    """A manifest that exists only in the test."""

    text: str = ""

    def content(self, findings: Collector) -> bytes:
        return self.text.encode()

    def size(self) -> int:
        return len(self.text)


def ask(manifests: Manifests) -> Desired:
    files = {FILE: manifests} if isinstance(manifests, str) else manifests
    written = [Written(Path(name), name, text) for name, text in files.items()]
    return desired(ManifestSet(written), read_all(written))


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How to plan: the project's policy, the options of the command line, and the state's records."""

    scope: Scope = Scope()  # noqa: RUF009 (a frozen value)
    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    deletes_tags: bool = False
    sweep: bool = False
    reassert: bool = False
    limits: Mapping[str, Limit] | None = None
    swept_before: bool = True
    team: str | None = BASIS.team
    lineage: str = BASIS.lineage
    quarantine: Quarantine | None = None
    records: StateRecords = StateRecords()  # noqa: RUF009 (a frozen value)

    @property
    def options(self) -> Options:
        return Options(
            Rules(self.tag_removal, self.activity_types, self.deletes_tags),
            {**LIMITS, **(self.limits or {})},
            self.scope,
            sweep=self.sweep,
            reassert=self.reassert,
            quarantine=self.quarantine,
        )

    @property
    def basis(self) -> Basis:
        return replace(BASIS, team=self.team, lineage=self.lineage, swept_before=self.swept_before)


def planned(manifests: Manifests | Desired, recorded: Rows | Iterable[Recorded] = (), **how: Any) -> Plan:
    wanted = manifests if isinstance(manifests, Desired) else ask(manifests)
    rows = recorded if isinstance(recorded, Mapping) else {row.key: row for row in recorded}
    asked = How(**how)
    return plan(wanted, rows, asked.options, asked.basis, asked.records)


def refused(manifests: Manifests, recorded: Iterable[Recorded] = (), **how: Any) -> dict[str, str]:
    try:
        planned(manifests, recorded, **how)
    except Problems as problems:
        return {found.code: found.address or "" for found in problems.found if found.severity is Severity.ERROR}
    return {}


# --- recorded rows


def row(address: str, *keywords: str, **more: Any) -> Recorded:
    """Return a confirmed row of a resource that the service has, with fields by name and the rest as in `Recorded`.

    A tag's keywords contain its name unless `excludeTagNameKeyword` is true. The tag is public unless `visibility` is
    given; `None` means that its visibility is unknown.
    """
    key = Key.parse(address)
    metadata = more.pop("metadata", {})
    rest = {name: more.pop(name) for name in _COLUMNS & more.keys()}
    if key.kind is Kind.TAG:
        excluded = more.setdefault("excludeTagNameKeyword", False)
        keywords = keywords if excluded or key.name in keywords else (*keywords, key.name)
        if more.setdefault("visibility", "PUBLIC") is None:
            del more["visibility"]
    if key.kind is Kind.CATEGORY:
        rest.setdefault("server_id", f"id-{key.name}")
    return Recorded(key, Body(more, keywords, metadata), **{"confirmed": True, "source": Source(FILE, 1), **rest})


_COLUMNS = {"status", "doubtful", "confirmed", "server_id", "source", "protect", "former_categories"}


def is_as_declared(row: Recorded, resource: Resource) -> bool:
    """Return whether the row equals the declared resource; a tag without a visibility may be PUBLIC."""
    default = {"visibility": "PUBLIC"} if row.key.kind is Kind.TAG else {}
    body = resource.body
    return (
        row.body.fields in (body.fields, {**default, **body.fields})
        and row.body.metadata == body.metadata
        and sorted(row.body.keywords) == sorted(body.keywords)
    )


def gone(address: str, **more: Any) -> Recorded:
    return Recorded(Key.parse(address), status=Status.DELETED, source=Source(FILE, 1), **more)


# --- queries of a plan


def actions(plan: Plan) -> dict[str, str]:
    """Return the action of each change by address."""
    return {str(change.key): change.action.word for change in plan.changes}


def change_of(plan: Plan, address: str) -> Change:
    return next(change for change in plan.changes if str(change.key) == address)


def field_of(plan: Plan, address: str, name: str) -> FieldChange:
    return next(field for field in change_of(plan, address).fields if field.name == name)


def notes(plan: Plan) -> list[tuple[str, str]]:
    return [(str(note.key), note.kind) for note in plan.notes]


def steps(plan: Plan) -> list[str]:
    return [stage.step.value for stage in plan.stages]


def calls(plan: Plan, step: Step) -> list[Call]:
    return [call for stage in plan.stages if stage.step is step for call in stage.calls]


def items(plan: Plan, step: Step) -> list[Item]:
    return [item for call in calls(plan, step) for item in call.items]


def sent(plan: Plan, step: Step, address: str) -> Effect:
    """Return the effect of the only item for this resource in a stage."""
    (effect,) = [item.effects[0] for item in items(plan, step) if str(item.key) == address]
    return effect


def addresses(keys: Iterable[Key]) -> list[str]:
    return [str(key) for key in keys]


def says_nothing(plan: Plan) -> bool:
    return not (plan.changes or plan.sweep or plan.records or plan.notes or plan.stages)
